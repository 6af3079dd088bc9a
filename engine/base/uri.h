/* uri: the names of stores: "file:///abs/path", "mem://name/path", or a plain local path. */
#ifndef BASE_URI_H
#define BASE_URI_H

#include "buf.h"
#include "err.h"

enum { URI_MAX = 4096 };

typedef struct uri {
  char scheme[16];    /* lower case; "file" for a plain path */
  char host[256];     /* bucket, name; empty for file */
  char path[URI_MAX]; /* for file: absolute, without a trailing slash; else without a leading one */
} uri;

/* Parses `text`, which is shorter than URI_MAX. A plain path is made absolute against the working
 * directory, `.` and `..` are resolved by name. A malformed text is ERR_INVAL; the error names the
 * part at fault and never shows a password. */
int uri_parse(const char *text, uri *out, err *e);

/* Returns the directory of this machine in which the place lies, in `u`; NULL: it lies in none. */
const char *uri_dir(const uri *u);

/* Appends the URI as text ("file:///x"). It shows no secret, since none is kept. */
void uri_print(const uri *u, buf *out);

/* Replaces each `{NAME}` of `text` ([A-Z_][A-Z0-9_]*) by the environment's value into `out`. A name
 * that is unset or empty is an error, because two runs would silently share one target. */
int uri_expand(const char *text, buf *out, err *e);

/* True if the local path `inner` is `outer` or lies below it (both absolute and normal). */
int uri_path_within(const char *outer, const char *inner);

#endif
