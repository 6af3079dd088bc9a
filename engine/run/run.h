/* run: one watched directory and its target, on the owner's thread: events come in, decisions are
 * taken, jobs are started and their results told.
 *
 * run_step() does what is due and says when to call it again; jobs run on the pool's workers and come back by its
 * pool_settle(), which the owner calls before the step. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "run/places/places.h"
#include "decision/policy_link.h"
#include "job/move/progress_sink.h"
#include "event/rules.h"
#include "plan/drain.h"
#include "plan/standing.h"
#include "prims/pool.h"
#include "prims/proc.h"

typedef struct run run;

typedef enum run_kind {
  RUN_COMMITTED = 1,
  RUN_DROPPED,
  RUN_RETIRED,
  RUN_FAILED,
  RUN_RETRYING,
  RUN_FENCED,
  RUN_UNPROVEN,
  RUN_SKIPPED,
  RUN_EXPIRED,
  RUN_DELETED,
  RUN_DRAINED = 12, /* the number of ckpt.h */
} run_kind;

/* A piece of news; the strings are valid during the call. */
typedef struct run_news {
  run_kind kind;
  int status;
  uint64_t job;
  int64_t step;
  uint64_t files, bytes;
  double seconds;
  const char *unit, *reason;
  bool is_copy;
} run_news;

/* The engine gives this to its runs, and it outlives them. */
typedef struct run_env {
  const io *io;
  const log_sink *log;
  pool *pool;            /* what has ended is settled on the owner's thread */
  policy_link *policies; /* may be NULL where no run has a policy */
  void *ctx;
  void (*tell)(void *ctx, run *r, const run_news *news); /* on the owner's */
  uint64_t (*next_job)(void *ctx);                       /* a fresh job number */
  const progress_sink *progress; /* of run_prepare and run_foresee; may be NULL */
} run_env;

typedef struct run_options {
  places_options places;
  const char *launch;
  const char *const *environment; /* laid over the process's for the target; may be NULL */
  const char *const *units, *const *excludes, *const *markers; /* see rules_custom */
  int64_t quiet_ns;                                            /* < 0: built-in */
  bool poll, continue_run, take_over, no_delete, single_writer, keep_all, trust;
  unsigned tries;                                /* 0: 8 */
  const char *const *policies, *const *settings; /* see policy_options */
  const char *policy_dir;
  double max_delete;         /* 0: 0.25 */
  int64_t grace_delete_ns;   /* < 0: 24 h */
  uint32_t rank, world;      /* world 0 and 1: alone */
  uint32_t task, tasks;      /* of those that write into the directory; tasks 0 and 1: alone */
  int64_t rank_wait_ns;      /* 0: 10 minutes */
  unsigned bad_after;        /* 0: 3; UINT_MAX: never */
  int64_t stall_ns;          /* 0: 1 minute */
  int64_t in_place_every_ns; /* 0: each is saved */
  int64_t start_wait_ns;     /* see start_patience() */
  int64_t wait_lease_ns;     /* 0: another live writer is not waited for */
  bool start_anyway;         /* see start_refusal() */
  bool beside;               /* it watches and saves; others may own the directory */
  bool owns_dir;             /* the user's word, where `dir` can have no home */
  const char *record;        /* the file that is told what happens; may be NULL */
  int64_t deadline_ns;       /* IO_WALL: when the job is ended by who started it; 0: not known */
  bool own_parts;            /* a rank restores what the rank of its number had */
  bool fresh;                /* see start_may_move() */
} run_options;

/* The functions below do as those of ckpt.h, with the texts in *e. */
void run_close(run *r); /* waits for its tasks */
/* In a forked child: lets go of the locks that it shares with its parent, who keeps them. Frees
 * nothing. */
void run_abandon(run *r);

const places *run_places(const run *r);

typedef enum run_restore { RUN_AUTO, RUN_NEVER, RUN_REQUIRED, RUN_NAMED } run_restore;
/* The processes of a run carry the id of its state directory in this variable of their
 * environment. */
#define RUN_ID_VARIABLE "CKPT_STATE_ID"
#define RUN_LEFT_COPY                                                                              \
  "the state directory is a copy, or was written on another boot: it is the other run's"
#define RUN_LEFT_UNPROVEN "it does not carry this run's " RUN_ID_VARIABLE

/* Tells live processes of an earlier run, each with the reason why it is not ours to end (NULL: it
 * is). Returns how many are to be ended; `fn` may be NULL. See ckpt_run_trainers. */
typedef int run_trainer_fn(void *ctx, const proc_info *info, const char *left);
int run_trainers(run *r, run_trainer_fn *fn, void *ctx, err *e);

/* run_watchers.c: tells who watches a directory. */
struct watcher_seen;
typedef void run_watcher_fn(void *ctx, const struct watcher_seen *watcher);
int run_watchers_of(const io *io, const char *dir, run_watcher_fn *fn, void *ctx, err *e);

int run_fd(const run *r); /* to be polled, or -1 */

int run_child(run *r, pid_t pid, err *e);
int run_child_exit(run *r, bool clean, err *e);
/* How a job ended. */
typedef struct run_end {
  bool clean;        /* with code 0 */
  bool outside;      /* by somebody's signal, which says nothing about the checkpoint */
  const char *lines; /* what it said last, a line's end between lines; NULL: not known */
} run_end;
/* Takes in that the job has ended, however it did. Counts the starts from one commit that fail, but not
 * those that never opened it. Call it before run_child_exit(). */
int run_start_over(run *r, const run_end *end, err *e);
int run_result(run *r, const char *json, err *e);
int run_preempt(run *r, double grace_s, err *e);
int run_list(run *r, err *e);
/* What is complete now is to be durable in so many seconds; RUN_DRAINED, with this number, says that it is,
 * or that time is up. Then all goes on as before. */
int run_drain(run *r, double for_s, uint64_t *id, err *e);
int run_cancel(run *r, uint64_t job); /* 1 if it was ours */

/* Does what is due. *due is the IO_MONO time at which to call again; INT64_MAX: only for events. */
int run_step(run *r, int64_t *due, err *e);
/* Takes a task back; on the owner's thread. Frees it. */

/* For the end: asks the target whether it still has the newest commits, if all is durable; what is
 * gone is no longer. Blocks, for a second where the target does not answer. */
int run_prove(run *r, err *e);

typedef struct run_status {
  uint32_t committed, dropped, retired, failed, skipped, pending, settling, unproven;
  const char *policies;
  uint64_t fallbacks; /* times that a policy could not be asked */
  uint64_t bytes_committed, bytes_left;
  int64_t newest_step, newest_time_ns; /* newest_time_ns 0: there is none */
  const char *newest_unit;
  int newest_status;
  bool fenced;
  bool keeping; /* retention is at work, or due now */
  uint64_t unmatched;
  const char *unmatched_example;
  bool saw_file;          /* the directory had a file at some time */
  uint32_t tasks;         /* others that may still write, once our own job has ended */
  standing_word standing; /* STANDING_UNKNOWN before the start */
  /* These are NULL where there is none. */
  const char *unproven_unit, *unproven_reason;                   /* STANDING_NOT_PROVEN */
  const char *unwanted_unit, *unwanted_policy, *unwanted_reason; /* newer than all wanted ones */
} run_status;
void run_get_status(run *r, run_status *out); /* the strings are valid until something happens */

/* run_reload.c: asks for other policies; see ckpt_run_reload(). */
typedef struct run_reload_options {
  const char *const *policies, *const *settings; /* NULL: those that it has */
  bool dry;
} run_reload_options;
int run_reload_ask(run *r, const run_reload_options *o, uint64_t *job, err *e);

/* The strings are valid until something happens. */
typedef struct run_reload_result {
  bool over, dry;
  int status;
  const char *text;                /* of a failure */
  const char *policies, *replaced; /* that rule, and that rule beside them what is kept */
  const char *stays;               /* policy_stays() of the new ones */
  const char *newest_only;         /* what older checkpoints lose by the new ones; "": nothing */
  int64_t left_ns;                 /* until the last one of those rules no more; INT64_MAX: never */
  uint64_t changes;                /* how many there are; not all may be told */
  uint64_t uncompared;             /* commits that there was no time for */
  double max_drop;                 /* the share that one pass lets go */
} run_reload_result;
struct policy_kept;
typedef struct run_changed {
  const char *group, *name;
  uint64_t commit;
  int64_t step;
  const struct policy_kept *before, *after; /* by the chains before, and by the new one alone */
} run_changed;
/* Returns 0 to go on; any other value ends the walk and is returned. */
typedef int run_changed_fn(void *ctx, const run_changed *what);
/* Tells what came of a reload, or with `job` 0 how it stands now. */
int run_reloaded(run *r, uint64_t job, run_reload_result *out, run_changed_fn *fn, void *ctx,
                 err *e);
/* run_evict.c: what it costs to end the job now; see evict.h. Times are IO_WALL, 0: none. */
typedef struct run_evict {
  int64_t now_ns;
  int64_t durable_ns, complete_ns; /* when the newest commit was made, and what it has was whole */
  int64_t step;
  const char *unit; /* valid until something happens; NULL: there is no commit */
  uint64_t bytes;   /* yet to be sent */
  int64_t lost_since_ns;
  double lost_s, durable_in_s;
} run_evict;
void run_get_evict(run *r, run_evict *out);

/* run_drain.c: how a drain stands. */
typedef struct run_drain_state {
  bool over;
  /* Once it is over: what it came to, as a run stands; 0, or why the newest of some kind is not durable; and
   * that in words, NULL: none. */
  standing_word word;
  int status;
  const char *reason;
  double left_s;
} run_drain_state;
typedef struct run_drained_unit {
  const char *unit, *reason; /* valid during the call */
  int64_t step;
  uint64_t bytes, left;
  drain_is is;
  bool counts; /* once it is over: it is the newest of its kind that is wanted */
  bool late;   /* the newest of those that are not durable: the status is about this one */
} run_drained_unit;
typedef void run_drained_fn(void *ctx, const run_drained_unit *unit);
/* ERR_NOENT: there was none, or it was over long ago. `fn` may be NULL. */
int run_drained(run *r, uint64_t id, run_drain_state *out, run_drained_fn *fn, void *ctx);

/* run_why.c: explains a name or path; see inquiry.h. explain_free() *out, on failure too. */
struct explain;
int run_why(run *r, const char *name, struct explain *out, err *e);

typedef void run_pending_fn(void *ctx, const char *unit, const char *reason, uint64_t bytes,
                            uint64_t left, bool begun);
int run_pending(run *r, run_pending_fn *fn, void *ctx);

#endif
