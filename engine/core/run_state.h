/* run_state: what the files of `run` share: the run's own struct and its parts. For run*.c only. */
#ifndef CORE_RUN_STATE_H
#define CORE_RUN_STATE_H

#include "core/detect.h"
#include "core/group.h"
#include "core/job.h"
#include "core/journal.h"
#include "core/last_rules.h"
#include "core/policy.h"
#include "core/recover.h"
#include "core/retention.h"
#include "core/run.h"
#include "core/trail.h"
#include "prims/fs_held.h"
#include "prims/lock.h"

typedef enum unit_phase {
  UNIT_SETTLING, /* being written, or not yet quiet */
  UNIT_WAITING,  /* wanted; its group saves another one */
  UNIT_RUNNING,
  UNIT_RETRYING, /* failed; waits for its next try */
  UNIT_DURABLE,
  UNIT_FAILED,   /* given up */
  UNIT_UNPROVEN, /* nothing proves it whole, or it is torn */
  UNIT_RETIRED,  /* changed or vanished, the detector will say more; or no longer wanted */
  UNIT_DROPPED,  /* let go for a newer one, which is not in the store yet */
  UNIT_SKIPPED,  /* complete, and the policy does not want it now */
} unit_phase;

typedef struct run_group run_group;
typedef struct run_save run_save;
typedef struct run_known run_known;
typedef struct run_keeping run_keeping;

/* One unit of the watched tree. */
typedef struct run_unit {
  char *path, *series;
  run_group *group;
  match_kind kind;
  int64_t step;
  bool in_place, gone;
  uint64_t bytes, stamp;
  digest fingerprint;
  int64_t changed_ns, made_ns; /* as in detect_unit */
  decision want;
  char reason[256];
  unit_phase phase;
  uint64_t job;                    /* of its save, tries included; 0: none was begun */
  unsigned tries, retired;         /* retired: in a row, though it looks unchanged */
  unsigned yields;                 /* in a row, to another one that rank 0 saves first */
  int64_t complete_at, next_try;   /* IO_MONO; next_try: not begun before */
  int status;                      /* of the last try */
  uint64_t attempt, attempt_shape; /* that it left for the next one, as in job.h */
  char staging[RUNLOG_NONCE_MAX];  /* the same */
  run_save *save;                  /* while RUNNING */
  bool counted;                    /* among its group's `since` */
  bool asked_for;                  /* a result named it: a temporary one is saved then */
  bool leaving;    /* it is being removed here, for the policy or as a temporary one */
  bool last_tried; /* failed for want of space, and was tried once more when the job had ended */
  bool unwanted;   /* DROPPED because the policy wants it that way: it is not taken back */
} run_unit;

/* A commit whose data is gone from the store. */
typedef struct run_lost {
  uint64_t n;
  char *unit; /* its path below the watched directory */
  int64_t step;
  uint64_t bytes;
  bool counts; /* it is the newest of its kind: what the run ends with depends on it */
  char why[256];
} run_lost;

struct run_group {
  group group;
  run_lost *lost; /* the owner's */
  size_t lost_count;
  uint64_t term;                       /* once begun, as the owner knows it */
  run_save *save;                      /* the one that runs */
  bool foreign;                        /* another writer holds it, and nothing of it is here */
  int64_t newest_step, newest_time_ns; /* of its newest commit; time 0: none */
  char *newest_unit;
  uint64_t commits;                     /* live ones, as the owner last saw its log */
  char *memory;                         /* the policies' table, as JSON text; NULL: empty */
  bool memory_changed;                  /* since it was last handed to a save */
  uint64_t results, checkpoints, bytes; /* since its last save was begun */
  int64_t saved_ns;                     /* IO_WALL time of that; 0: there was none */
  uint64_t resumed; /* the commit that the job goes on from; RUNLOG_NONE: none */
  bool keep_asked;  /* its commits have changed since the policy was asked what to keep */
  bool keep_litter; /* data of a deleted one could not be removed yet */
  int64_t keep_at;  /* IO_MONO time of the next pass; INT64_MAX: none is due by itself */
  run_keeping
      *keeping; /* what of its log is to be dropped or deleted; the worker's while it runs */
};

struct run {
  const run_env *env; /* `own`, once the state directory is held */
  run_env own;
  const io *outer; /* the engine's, below `held`: for what outlives the run, or copies an io */
  fs_held *held;   /* the state directory, by whatever path below it it is asked for */
  places places;
  store *store;
  policy *policy;
  const rules *rules;  /* the policy's */
  lock lock, dir_lock; /* of the state directory; of the watched one */
  journal *journal;
  detect *detect;
  group_env group_env;
  job_env job_env;
  ranks ranks;
  bool ranks_begun, ranks_over; /* of rank 0: what the other ranks were told */
  unsigned plan_flags,
      bad_after; /* PLAN_*; failed starts from one commit before it is marked bad */
  int64_t stall_ns;
  run_group **groups;
  size_t group_count;
  run_known *known; /* manifests of commits */
  size_t known_count;
  char **dirs; /* paths of the committed directories, in byte order */
  size_t dir_count, dir_room;
  run_unit **units; /* sorted by path */
  size_t unit_count, unit_room;
  unsigned tries, tasks; /* tasks: on the workers now */
  bool keep_all;         /* none is let go for a newer one, none stops being kept */
  bool poll, prepared, started, closing, fenced, preempted, writer_gone;
  atomic_int stop;   /* the store's calls give up: the run is being closed while it saves */
  bool aborted;      /* a policy wants nothing saved any more */
  bool forsaken;     /* the job has ended, and another rank did not come: older ones have no try */
  policy_rest rest;  /* what is still saved, once preempted */
  double grace_s;    /* of the preemption */
  uint64_t results;  /* that came */
  identity identity; /* by what it is known on this machine */
  int64_t lease_at;  /* IO_MONO */
  char *metrics;     /* the last result, as JSON text */
  trail *trail;      /* NULL: it could not be opened */
  int64_t noted_at;  /* IO_MONO: when run_note_open() last looked */
  retention_limits limits;
  char *resume, *restored_from;
  const run_group *resumed_group; /* in which the job goes on from a commit; NULL: from none */
  runlog_ref resumed_commit;      /* that */
  uint64_t resumed_newest;        /* and the newest of its log then */
  uint32_t committed, dropped, retired, failed, skipped;
  uint64_t bytes_committed;
};

/* A save on a worker. */
struct run_save {
  run_task task;
  job job;
  run_unit *unit;
  run_group *group;
  _Atomic uint64_t term; /* found by the worker; RUNLOG_NONE: none yet */
  /* The unit as it was when the save began: it may be another one by now. */
  digest fingerprint;
  char reason[256];
  bool sure;        /* it was known to be whole */
  char *memory;     /* of the group, to be written with the commit; NULL: as it is there */
  bool memory_kept; /* it was written */
  bool copied;      /* it is sent from a snapshot: what becomes of the original is no matter */
  bool given_up;    /* the host cancelled it */
  /* The owner's, for run_stall.c; IO_MONO. */
  uint64_t moved;            /* as last seen */
  int64_t alive_at, said_at; /* of its last progress, and when that was last complained about */
  bool stalled;              /* it was stopped for that */
};

/* run_groups.c */
int run_group_look(run *r, run_group *g, err *e); /* reads its log, and writes nothing */
int run_group_get(run *r, const char *prefix, run_group **out, err *e); /* touches no store */
run_group *run_group_find(const run *r, const char *prefix);            /* NULL: there is none */
int run_group_begin(run_group *g, err *e);
void run_group_note_newest(run_group *g);
int run_groups_open(run *r, err *e); /* those at the target */
void run_groups_close(run *r);
/* Remembers that `path` is a committed directory: what is in it is its content, never a unit or a
 * group of its own. */
int run_dir_note(run *r, const char *path, err *e);
bool run_dir_inside(const run *r, const char *path); /* strictly below one of them? */
/* The paths that logs and journal know as units, for detect_options.known. */
typedef struct run_paths {
  char **names;
  size_t count, room;
} run_paths;
int run_paths_take(run *r, run_paths *out, err *e); /* before the run has started */
void run_paths_free(run_paths *p);

/* run_ranks.c: ranks that save together (r->ranks). All are 0 for one that is alone. */
bool run_follows(const run *r);      /* are we a rank but the first? Rank 0 decides for us then */
int run_ranks_await(run *r, err *e); /* until rank 0 has made its directory ready; for the others */
void run_ranks_wait(const run *r);   /* rank 0 waits for what its identity says */
int run_ranks_begun(run *r, err *e); /* what they wait for: rank 0 has opened its run */
/* Of rank 0: it is ready. Of the others: whether we resume from the same: ERR_CONFLICT. */
int run_ranks_ready(run *r, err *e);
void run_ranks_failed(run *r, const err *why); /* rank 0 cannot begin: the others need not wait */
void run_ranks_close(run *r);

/* run_units.c */
run_unit *run_unit_find(run *r, const char *path);
int run_unit_take(run *r, const detect_unit *facts, run_unit **out, err *e);
void run_unit_remove(run *r, run_unit *u);
/* Of a commit, `j` has the numbers; else NULL. */
void run_tell(run *r, const run_unit *u, run_kind kind, const job *j, int status,
              const char *reason);

/* run_policy.c: what the policies say. The event of a unit that was just found complete is NULL. */
void run_consider(run *r, run_unit *u, const char *event); /* queues it, or not */
/* Asks again about what was skipped, or was not ready, and is the newest of its kind. */
void run_reconsider(run *r, const char *event);
void run_policy_begun(run *r, run_group *g); /* a save begins: counts start anew */
policy_rest run_policy_rest(run *r);         /* at a preemption */
policy_remedy run_policy_error(run *r, run_unit *u, int status, const char *text, double *seconds);
void run_policy_tell(run *r, run_unit *u, policy_hook hook, int status, const char *text);
/* policy_select() for a group of the run, with its memory. */
bool run_policy_select(run *r, run_group *g, policy_hook hook, const policy_item *items,
                       size_t count, policy_kept *kept);
char *run_policy_metrics(run *r, const run_unit *u); /* for its commit; malloced, or NULL */
int run_memory_load(run *r, run_group *g, err *e);   /* blocks on the store, as the next one */
int run_memory_write(store *s, const char *prefix, const char *memory, err *e);

/* run_local.c: units of the watched directory that nobody needs any more. */
typedef enum unit_sort { SORT_PERM, SORT_NULL, SORT_TEMP } unit_sort;
/* What the marker files at its top make of a directory unit. */
unit_sort run_unit_sort(const run *r, const char *path, match_kind kind);
const char *run_sort_name(unit_sort sort);
void run_local_sweep(run *r, run_group *g); /* after a commit: what `keep_local` lets go */
void run_local_end(run *r);                 /* temporary ones go with a job that ended well */

/* run_trail.c: what `why` is told. `reason` NULL: the unit's own. */
void run_note(run *r, const run_unit *u, trail_what what, const char *reason);
void run_note_saved(run *r, const run_save *s, const char *reason); /* a commit */
void run_note_start(run *r); /* and which rules hold: core/last_rules.h */
void run_note_open(run *r); /* for what those that are open wait now; not more than once a second */
void run_note_end(run *r);
last_rules run_last_rules(const run *r); /* all borrowed */

/* run_keep.c: retention, group by group, when no save of the group waits or runs. */
void run_keep_ask(run *r, run_group *g); /* its commits have changed: judge them anew */
bool run_keep_busy(const run_group *g);  /* its log is used by a worker just now */
int run_keep_step(run *r, err *e);       /* begins what is due */
int64_t run_keep_due(const run *r);      /* IO_MONO; INT64_MAX: nothing */
bool run_keep_pending(const run *r);     /* a pass is under way, or due now */
void run_keep_ask_all(run *r);
void run_keep_stop(run *r); /* passes end after the step that they are at */
void run_keep_close(run_group *g);

/* run.c: reads the rules of a run. */
int run_open_policy(run *r, const run_options *o, err *e);

/* run_queue.c */
bool run_unit_queued(const run_unit *u); /* wanted, and not begun */
bool run_unit_sure(const run_unit *u);   /* known to be whole: durable, or on its way */
void run_enqueue(run *r, run_unit *u);
void run_unit_durable(run *r, run_unit *u); /* its content is in the store */
/* Those that were let go for one that did not make it wait again. */
void run_take_back(run *r);
/* A newer writer is there: this run writes no more, which is told once. */
void run_fenced(run *r, const char *where, const char *reason);
int run_start_saves(run *r, err *e);
void run_hurry(run *r);     /* time is short: older ones go, the newest is next, retries come now */
void run_no_writer(run *r); /* nobody writes any more: what waits for quiet need not */
/* What was let go for this one stays so, now that it is in the store. */
void run_made_it(run *r, const run_unit *newer);
void run_drop_unwanted(run *r, run_unit *u, const char *reason); /* by the policy's word */
void run_save_free(run_save *s);

/* run_done.c */
void run_save_done(run_task *task);

/* run_lease.c */
int64_t run_renew_leases(run *r, int64_t now); /* returns when to call it again */
/* Renews them from a thread of its own, until it is told to stop: for what keeps the owner's thread
 * busy for long. NULL: it could not be started; a lease is only a hint. */
typedef struct run_lease_keeper run_lease_keeper;
run_lease_keeper *run_leases_keep(const run *r);
int run_leases_await(run *r, err *e);
void run_leases_kept(run_lease_keeper *k); /* ends it; NULL is fine */

/* run_stall.c: saves that make no progress are named. */
int64_t run_watch_stalls(run *r, int64_t now); /* returns when to call it again */

/* A local unit, held against the journal, the log and its own structure. */
typedef struct survey_unit {
  char *path, *series;
  const char *name; /* in path */
  char *group;
  match_kind kind;
  int64_t step, made_ns;
  digest fingerprint;
  recover_standing standing;
  bool by_manifest; /* WHOLE, since it is what a manifest in the store says */
  uint64_t
      commit; /* of the newest commit of its name; with RECOVER_SUPERSEDED: of the one that it is */
  char reason[256];
} survey_unit;

typedef struct survey {
  survey_unit *units; /* in byte order of their paths */
  size_t count;
} survey;

/* run_survey.c: what stands in the directory while nobody writes there. Blocks. */
int run_survey(run *r, survey *out, err *e);
void run_survey_free(survey *s);
/* Tells the detector what files the newest commits have. */
int run_survey_learn(run *r, detect *d, err *e);

/* run_here.c: what the journal calls committed, held against the target at hand, which may be
 * another one than that of the run before. Once, when the logs are read; may block. */
int run_judge_journal(run *r, err *e);
/* Of a name that is no longer kept: the newest of its commits, if something newer of its kind is
 * live, so that nobody needs this one. NULL: it is as good as never committed. */
const runlog_commit *run_no_longer_kept(const runlog_state *state, const char *name);

/* run_lost.c: commits whose data is gone from the store. Looked for once, when the logs are read,
 * before the journal is judged; blocks. */
int run_look_for_lost(run *r, err *e);
bool run_is_lost(const run_group *g, uint64_t n);
const run_lost *run_lost_find(const run_group *g, const char *path); /* NULL: it is not lost */
void run_lost_forget(run_group *g, const run_unit *u);               /* after its commit */
void run_lost_pass_over(run_group *g, uint64_t n); /* another one is the newest now */
void run_lost_free(run_group *g);
int run_lost_status(const run *r); /* ERR_CORRUPT: the newest of some kind is not in the store */
bool run_newest_of_series(const runlog_state *state, const runlog_commit *c); /* the good ones */

/* run_manifests.c: the manifests of commits, read once and kept until the run has started. */
int run_manifest(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e);
void run_manifests_drop(run *r);

#endif
