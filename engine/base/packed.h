/* packed: numbers and texts one after the other, for another process on this machine. A number is
 * there to the bit, and nothing is printed or parsed. The reader trusts nothing that it reads. */
#ifndef BASE_PACKED_H
#define BASE_PACKED_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"

/* NaN stands for a number that is absent. */
void packed_put_number(buf *out, double value);
/* A text without NUL; NULL is one that is absent. */
void packed_put_text(buf *out, const char *text);
void packed_put_byte(buf *out, unsigned char byte);

/* Tables have the number of their members behind their kind; a member of an object is its key and a
 * value. */
enum packed_kind {
  PACKED_NULL,
  PACKED_FALSE,
  PACKED_TRUE,
  PACKED_NUMBER,
  PACKED_STRING,
  PACKED_ARRAY,
  PACKED_OBJECT
};

/* These put a value with its kind. JSON integers become numbers as any. */
void packed_put_json(buf *out, const json_t *value);
void packed_put_string(buf *out, const char *text);
void packed_put_real(buf *out, double value);
void packed_put_bool(buf *out, bool yes);

/* A table whose members are put one after the other: an object's as packed_put_text() of the key and a
 * value, an array's as values. */
typedef struct packed_table {
  buf *out;
  size_t place; /* of its count */
  size_t count;
} packed_table;

packed_table packed_open(buf *out, enum packed_kind kind);
/* Announces the next member; `key` is NULL in an array. */
void packed_member(packed_table *t, const char *key);
void packed_close(const packed_table *t);

/* What is left to read. */
typedef struct packed {
  const char *at, *end;
} packed;

/* These read the next value, and return false if what is left does not have one: then nothing more
 * can be read. */
bool packed_number(packed *from, double *out);
/* *out points into what is read, ends with a NUL, and has no other; NULL: it is absent. */
bool packed_text(packed *from, const char **out, size_t *len);
bool packed_byte(packed *from, unsigned char *out);

#endif
