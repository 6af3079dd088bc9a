/* asked: finds the checkpoints of a target that a caller's words mean. */
#ifndef CATALOG_ASKED_H
#define CATALOG_ASKED_H

#include "catalog.h"

/* The words of a caller: <target> and "exp/T1/checkpoint-3", or <target>/<group>/<name> in one. */
typedef struct asked {
  const io *io;
  const log_sink *log;
  char where[URI_MAX];
  const char *name; /* NULL: any; may point into `where` */
} asked;

/* Reads them. Without a name the last part of the place may be one. `out` must not be copied. */
int asked_parse(const io *io, const log_sink *log, const char *uri, const char *name, asked *out,
                err *e);
int asked_each_log(const asked *a, catalog_log_fn *fn, void *ctx, err *e);
int asked_no_such(const asked *a, err *e); /* ERR_NOENT */

/* The newest live commit, of all groups, that is meant. */
typedef struct asked_one {
  const asked *asked;
  char group[STORE_KEY_MAX];
  uint64_t number;
  int64_t time_ns;
  bool found;
} asked_one;

/* Calls `fn` for the log that has it, with *one known. */
int asked_with_one(const asked *a, asked_one *one, catalog_log_fn *fn, void *ctx, err *e);
/* Finds that commit in its log as it is by now; ERR_CONFLICT: it is not live any more. */
int asked_get_one(const asked_one *one, const runlog *log, const runlog_commit **out, err *e);

#endif
