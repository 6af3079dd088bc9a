/* record: a JSON object, written member by member in the order of the calls, without blanks. */
#ifndef RUNNER_CLI_RECORD_H
#define RUNNER_CLI_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct record {
  FILE *out;
  bool more; /* it has a member */
} record;

record record_begin(FILE *out);
void record_end(record *r);
/* Ends it, with a line's end. */
void record_end_line(record *r);

/* Writes the key; its value is for the caller to write. */
FILE *record_key(record *r, const char *key);

/* Writes a text; NULL becomes null. */
void record_text(record *r, const char *key, const char *text);
/* Writes a text of the library, as text_prose() has it; NULL becomes "". */
void record_prose(record *r, const char *key, const char *text);
void record_json(record *r, const char *key, const char *json); /* that the library printed */
/* Writes a file's name, as text_json_name() does; NULL becomes "". */
void record_name(record *r, const char *key, const char *name);
void record_bool(record *r, const char *key, bool value);
void record_count(record *r, const char *key, uint64_t count);
/* These write null for a number below 0, which is not known. */
void record_step(record *r, const char *key, int64_t step);
void record_seconds(record *r, const char *key, double seconds); /* whole ones */
/* Writes nanoseconds since 1970, as text_time() does. */
void record_time(record *r, const char *key, int64_t ns);

#endif
