/* members: reads the members of an object in a line of a file that comes from outside, and says of a
 * wrong one where it stands and what it is to be. Each returns 0, or the error that it has set. */
#ifndef LAB_MEMBERS_H
#define LAB_MEMBERS_H

#include "base/err.h"
#include "base/json.h"

typedef struct members {
  const char *where; /* "events.jsonl:12": what an error begins with */
  err *e;
} members;

/* ERR_INVAL: this member is to be something else. */
int members_wrong(const members *m, const char *key, const char *wants);
/* Refuses what nobody reads: it would be taken for something that counts. `in` says what the object
 * is, `known` ends with NULL. */
int members_check(const members *m, const json_t *object, const char *in, const char *const *known);
/* True if it is there, and not null. */
bool members_given(const json_t *object, const char *key, json_t **value);
/* Leave *out as it is where the member is not given. */
int members_seconds(const members *m, const json_t *object, const char *key, double *out);
int members_whole(const members *m, const json_t *object, const char *key, int64_t most,
                  int64_t *out);

#endif
