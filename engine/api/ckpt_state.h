/* ckpt_state: declarations that the files of the public API share: the engine's own struct, and
 * functions by which values cross. For ckpt*.c only. */
#ifndef API_CKPT_STATE_H
#define API_CKPT_STATE_H

/* All other symbols are hidden in the shared library. */
#pragma GCC visibility push(default)
#include "ckpt.h"
#pragma GCC visibility pop

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/log.h"
#include "catalog/asked.h"
#include "catalog/catalog.h"
#include "decision/policy_link.h"
#include "job/move/progress_sink.h"
#include "run/run.h"
#include "run/start/slurm.h"
#include "prims/pool.h"

typedef struct told {
  struct told *next;
  ckpt_completion what;
  char *unit, *reason;
} told;

/* ckpt_progress.c: carries progress to the host, not too often and not twice at once. */
typedef struct ckpt_teller {
  ckpt_progress_fn *fn; /* NULL: tells nobody */
  void *ctx;
  const io *io;
  progress_sink sink;
  _Atomic uint64_t moved;  /* of the checkpoint in `now` */
  _Atomic int64_t next_ns; /* IO_MONO: not before this */
  pthread_mutex_t mutex;   /* guards `now`; held while the host is called */
  ckpt_progress now;
} ckpt_teller;

typedef struct ckpt_tree_job ckpt_tree_job;     /* ckpt_tree.c */
typedef struct ckpt_commenting ckpt_commenting; /* ckpt_comment.c */

struct ckpt_run {
  ckpt *engine;
  ckpt_run *next;
  run *run;
  int fd;         /* of its detector, in the epoll set; -1: none */
  int64_t due;    /* IO_MONO time at which it has to be stepped though nothing happens */
  bool ready;     /* something has come for it since it was stepped */
  uint64_t steps; /* how often it was: what many runs cost */
};

struct ckpt {
  pid_t process; /* that opened it: a forked child has none of its threads */
  ckpt_options options;
  log_sink log;
  log_counts log_counts;
  unsigned workers;
  err error;
  pool *pool;
  int epoll, event, timer;
  ckpt_run *runs;
  ckpt_tree_job *trees;
  ckpt_commenting *commenting; /* NULL: nothing was put yet */
  uint64_t last_job;
  told *told_first, **told_last;
  size_t told_count;
  told *handed; /* the one whose strings the caller may still read */
  policy_link *policies;
  ckpt_teller teller;
  char *text; /* the text that the last call handed out; see ckpt_show */
  run_env env;
};

/* Begins every call. CKPT_EINVAL for a NULL handle, CKPT_EUNSUPPORTED in a forked child, whose copy
 * has no threads behind it; what is behind the handle is not touched then. */
int ckpt_enter(ckpt *c);
int ckpt_enter_run(ckpt_run *h);
/* The same of something else that a call cannot do without; `what` names it. */
int ckpt_need(ckpt *c, const void *given, const char *what);

/* Takes a struct of the caller's: members that an older, shorter one lacks become zero. */
int ckpt_take(void *to, size_t room, const void *from, const char *what, err *e);
/* Gives a struct to the caller, and never writes past the caller's size. */
void ckpt_give(void *to, size_t size, void *from, size_t room);

/* Converts `grace_delete_s`, as ckpt_run_options has it, to ns. */
int ckpt_grace_ns(double seconds, int64_t *ns, err *e);
/* Takes `max_delete`: 0 becomes the default; a number that is no share is CKPT_EINVAL, never the
 * default. */
int ckpt_share(double share, double *out, err *e);

/* Lets a run do what is due, and sets the engine's timer. */
int ckpt_step(ckpt *c, ckpt_run *h);
/* Drops the completions of a run that nobody has pulled: its handle is gone. */
void ckpt_forget(ckpt *c, const ckpt_run *h);

/* Opens a pool; ckpt_fd() is readable while there is something to settle. */
int ckpt_pool_open(ckpt *c, unsigned workers, size_t depth, pool **out);
/* Threads, and the helper of the policies, start with the first work that needs them. */
int ckpt_need_pool(ckpt *c);
int ckpt_need_policies(ckpt *c);

/* Hands a completion to ckpt_next(); the texts are copied. */
void ckpt_tell(ckpt *c, const ckpt_completion *what, const char *unit, const char *reason);

/* Asks a tree, or all, to stop; forgets them, when no worker is left. */
bool ckpt_trees_cancel(ckpt *c, uint64_t job);
void ckpt_trees_stop(ckpt *c);
void ckpt_trees_free(ckpt *c);

/* Tells what became of the comment of our job; ends its thread. */
void ckpt_comment_settle(ckpt *c);
void ckpt_comment_close(ckpt *c);
bool ckpt_own_job(char out[SLURM_OWN_MAX]); /* false: we are in none of Slurm's */

void ckpt_teller_open(ckpt_teller *t, const io *io, ckpt_progress_fn *fn, void *ctx);
void ckpt_teller_close(ckpt_teller *t);
/* Returns the sink for transfers; NULL where nobody listens. It is valid as long as the teller. */
const progress_sink *ckpt_teller_sink(const ckpt_teller *t);

/* Makes the item that a caller gets of a commit; `root` is memory of the caller's. */
ckpt_item ckpt_item_of(const catalog_item *item, char root[HASH_HEX_MAX]);

/* Hands each item of a walk on to the caller: a catalog_fn, whose context is a ckpt_items. */
typedef struct ckpt_items {
  ckpt_item_fn *fn; /* may be NULL */
  void *ctx;
} ckpt_items;
int ckpt_on_item(void *ctx, store *s, const catalog_item *item, err *e);

/* Reads the words by which a caller names checkpoints; an error is set at the engine. */
int ckpt_ask(ckpt *c, const char *uri, const char *name, asked *out);

#endif
