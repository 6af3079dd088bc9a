/* last_rules: the rules by which a directory was last watched, and its target, written down in the
 * state directory so that `why` can judge a path by them after the run. */
#ifndef WHY_LAST_RULES_H
#define WHY_LAST_RULES_H

#include "base/err.h"
#include "base/io.h"
#include "event/rules.h"

typedef struct last_rules {
  rules *rules;
  char *dir, *target;              /* as in places */
  char *policies;                  /* their names */
  char *null_marker, *temp_marker; /* names of marker files, or NULL */
  int64_t grace_ns;                /* from drop to delete */
  bool no_delete;
} last_rules;

/* Replaces <state>/rules.json. The conditions of completeness are left out: the trail has their
 * results. */
int last_rules_write(const io *io, const char *state, const last_rules *now, err *e);
/* ERR_NOENT if there is none. Free it with last_rules_free, on failure too. */
int last_rules_read(const io *io, const char *state, last_rules *out, err *e);
void last_rules_free(last_rules *l);

#endif
