/* collect_target: runs collect.h on every log at or below a place. If one log cannot be read, or
 * not be collected whole, the others are collected all the same. Blocks. */
#ifndef JOB_KEEP_COLLECT_TARGET_H
#define JOB_KEEP_COLLECT_TARGET_H

#include "catalog/catalog.h"
#include "collect.h"

/* `log` is the place of a log below the target. A log that cannot be read is told, too: as "log",
 * with its status. Returns 0 to go on; another value ends the walk, and is returned. */
typedef int collect_target_told(void *ctx, const char *log, const collected *what);

typedef struct collect_target {
  const io *io;
  const log_sink *sink;
  const char *where;
  int64_t grace_ns; /* as in struct collect, and so is `dry` */
  bool dry;
  collect_target_told *told;
  void *ctx;
} collect_target;

/* Runs collect_log() on each. The first failure is returned, with the count of the others in its
 * text. */
int collect_target_logs(const collect_target *t, err *e);
/* Runs collect_run() on each: all of them are asked before the first one is ended. */
int collect_target_runs(const collect_target *t, err *e);
/* Runs collect_key() on the one that has the key. ERR_NOENT: none may remove it. */
int collect_target_key(const collect_target *t, const char *key, err *e);

#endif
