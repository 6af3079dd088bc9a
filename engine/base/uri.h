/* uri: the names of stores: "file:///abs/path", "s3://bucket/path?region=eu-west-1", or a plain local
 * path. */
#ifndef BASE_URI_H
#define BASE_URI_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"

enum { URI_MAX = 4096, URI_QUERY_MAX = 1024, URI_NAME_MAX = 64 };

typedef struct uri {
  char scheme[16];    /* lower case; "file" for a plain path */
  char host[256];     /* bucket, name; empty for file */
  char path[URI_MAX]; /* for file: absolute, without a trailing slash; else without a leading one */
  char query[URI_QUERY_MAX]; /* of a bucket's, without the "?": how it is reached. It is no part of
                              * the place's name: two that differ in it alone are one place */
} uri;

/* Parses `text`, which is shorter than URI_MAX. A plain path is made absolute against the working
 * directory, `.` and `..` are resolved by name. A malformed text is ERR_INVAL; the error names the
 * part at fault and never shows a password. */
int uri_parse(const char *text, uri *out, err *e);

/* Returns the directory of this machine in which the place lies, in `u`; NULL: it lies in none. */
const char *uri_dir(const uri *u);

/* Appends the place as text ("file:///x"), without the query. It shows no secret, since none is
 * kept. */
void uri_print(const uri *u, buf *out);
/* Appends the URI of what is at `key` below the place ("": the place itself), with the query: what
 * opens it again. */
void uri_print_below(const uri *u, const char *key, buf *out);

/* True if two targets, as a user writes them, are one place. */
bool uri_same_place(const char *a, const char *b);

/* Takes the next "name=value" of a query, from *at on, and decodes it ("+" is a space, "%2F" a
 * slash). Returns 1; 0 at the end; ERR_INVAL, whose text shows no value. */
int uri_query_next(const char **at, char name[URI_NAME_MAX], char value[URI_QUERY_MAX], err *e);

/* Replaces each `{NAME}` of `text` ([A-Z_][A-Z0-9_]*) by the environment's value into `out`. A name
 * that is unset or empty is an error, because two runs would silently share one target. */
int uri_expand(const char *text, buf *out, err *e);

/* True if the local path `inner` is `outer` or lies below it (both absolute and normal). */
int uri_path_within(const char *outer, const char *inner);

#endif
