/* flat: a strict reader of one flat JSON object, for what passes over the runner's own socket.
 *
 * Values are texts, booleans and whole numbers from 0 to 2^53; anything else (nesting, null,
 * fractions, a key twice, a NUL) is refused. It works in the caller's buffer, allocates nothing,
 * and takes time in proportion to the text. */
#ifndef RUNNER_FLAT_H
#define RUNNER_FLAT_H

#include <stdbool.h>
#include <stdint.h>

enum { FLAT_MEMBERS = 16 };

typedef enum flat_kind { FLAT_TEXT, FLAT_BOOL, FLAT_NUMBER } flat_kind;

typedef struct flat_member {
  flat_kind kind;
  const char *key, *text; /* within the buffer; text "" but for FLAT_TEXT */
  uint64_t number;        /* FLAT_BOOL: 0 or 1 */
} flat_member;

typedef struct flat {
  flat_member members[FLAT_MEMBERS];
  int count;
} flat;

/* Reads `text`, which is overwritten and has to outlive `out`. NULL, or in a few words what is
 * wrong with it. */
const char *flat_read(char *text, flat *out);
/* Reads one JSON text at *at (its opening quote), overwrites it, and moves *at behind it. The text,
 * or NULL. */
char *flat_read_text(char **at);

/* The value of `key`, or the default if there is none of this kind. */
const char *flat_text(const flat *f, const char *key, const char *otherwise);
bool flat_bool(const flat *f, const char *key);
uint64_t flat_number(const flat *f, const char *key, uint64_t otherwise);

/* Takes the %XX of text_json_name() back, in place. */
void flat_decode_name(char *name);

#endif
