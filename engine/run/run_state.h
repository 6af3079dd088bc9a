/* run_state: declarations that the files of `run` share: the run's own struct and its parts. For
 * run*.c and begin/ only. */
#ifndef RUN_RUN_STATE_H
#define RUN_RUN_STATE_H

#include "base/names.h"
#include "event/detect.h"
#include "commit/group.h"
#include "job/keep/prune_thin.h"
#include "job/move/node_share.h"
#include "job/save/job.h"
#include "run/journal/journal.h"
#include "why/last_rules.h"
#include "decision/policy_once.h"
#include "plan/deadline.h"
#include "plan/above.h"
#include "plan/generations.h"
#include "plan/queue.h"
#include "plan/recover.h"
#include "plan/retention.h"
#include "run/run.h"
#include "run/policies/memory.h"
#include "run/policies/ruling.h"
#include "run/start/opened.h"
#include "run/start/starts.h"
#include "why/trail.h"
#include "lab/recorder.h"
#include "prims/fs_held.h"
#include "prims/lock.h"
#include "watchers/home.h"
#include "watchers/owner.h"
#include "watchers/watchers.h"
#include "launch/hub.h"

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
typedef struct run_freeing run_freeing;
typedef struct run_later run_later;
typedef struct run_emptying run_emptying;
typedef struct run_demand run_demand;

/* One unit of the watched tree. */
typedef struct run_unit {
  char *path, *series;
  run_group *group;
  match_kind kind;
  int64_t step;
  bool in_place, gone, above, reused; /* as in detect_unit, but for `gone` */
  uint64_t bytes, stamp;
  digest fingerprint;
  int64_t changed_ns, made_ns; /* as in detect_unit */
  queue_place place;           /* in its group's line, as run_order.c says */
  digest place_of;             /* the content that has it */
  decision want;
  policy_once once; /* what the policies were asked about it, and answered */
  uint64_t asked;   /* its first question's place among those of all units */
  int64_t ask_at;   /* IO_MONO: when its rule may say otherwise; 0: time alone changes nothing */
  char reason[256];
  unit_phase phase;
  uint64_t job;                    /* of its save, tries included; 0: none was begun */
  unsigned tries, retired;         /* retired: in a row, though it looks unchanged */
  unsigned yields;                 /* in a row, to another one that rank 0 saves first */
  int64_t complete_at, next_try;   /* IO_MONO; next_try: not begun before */
  int status;                      /* of the last try */
  uint64_t attempt, attempt_shape; /* that the last try left for the next one, as in job.h */
  char staging[RUNLOG_NONCE_MAX];  /* as in job.h, too */
  run_save *save;                  /* while RUNNING */
  job_beside *beside; /* what stood beside it when it was complete; while it is saved, the job's */
  digest beside_of;   /* with this content */
  int64_t beside_until;
  int64_t beside_next; /* IO_MONO: to be looked at again, since a pointer is late; 0: it is not */
  bool drained;        /* a drain waits for it, or for one that it takes the place of */
  int64_t ask_before;  /* ask_at, as it was when a drain began to ask */
  bool hastened;       /* queued since a drain was asked for: the policies did not want it before */
  bool counted;        /* among its group's `since` */
  bool refused;        /* it counts among those that the policies did not want */
  bool asked_for;      /* a result named it: a temporary one is saved then */
  bool leaving;        /* it is being removed here, for the policy or as a temporary one */
  bool unflushed;      /* it became complete, and its files are to be flushed to their server */
  bool last_tried;  /* failed for want of space, and was tried once more when the job had ended */
  bool unwanted;    /* DROPPED because the policy wants it that way: it is not taken back */
  bool passed_over; /* DROPPED on a rank: rank 0 saves another one, which may never get there */
  /* IO_MONO: its last change when it was first and last seen at rest, unproven; 0: not seen */
  int64_t first_rest_at, rested_at;
  unsigned hasty; /* so often it was written again then */
  bool late;      /* DROPPED since a newer one is committed: it stays here, and is named */
  bool named;     /* DROPPED, and it is named in the end: somebody may look for it */
  bool kept;      /* in the queue: `keep` wants it, as far as it knows what comes behind it */
  char kept_why[POLICY_REASON_MAX];
  names mentions;     /* of a file above the checkpoints: what it names, as it was with */
  digest mentions_of; /* this content; no name: nothing is known of it */
  uint64_t told; /* the stamp with which the other watchers were told of it; 0: they were not */
  /* run_results.c: the numbers of the result that is its own (NULL: none), and whether that named
   * it; all its numbers, once they were asked for, of the content `numbers_of`. */
  char *result, *numbers;
  bool result_named, result_late; /* late: it goes to the commit behind it */
  bool begun, numbered;
  digest numbers_of;
  /* What it is saved without, by the policies: asked when its save begins, about this content. */
  names left;
  bool left_asked;
  digest left_of;
} run_unit;

/* A result that names a checkpoint which is not there yet. */
typedef struct run_waiting {
  char *name, *numbers;
} run_waiting;

/* A name without a number that was committed, however often its unit was removed and came again. */
typedef struct run_name {
  char *path;
  bool fixed;              /* it has one, which never changed */
  int64_t since, at_ns;    /* IO_MONO: of its first commit, and of its last one */
  uint64_t commits, bytes; /* of this run */
} run_name;

/* Numbers of a result that named none, and its IO_WALL time. */
typedef struct run_heard {
  char *numbers;
  int64_t at_ns;
} run_heard;

/* Numbers that were reported after the commit of their checkpoint. */
typedef struct run_late {
  uint64_t commit;
  char *metrics;
} run_late;

/* The newest unit that the policy did not want, also when it is gone from the directory. */
typedef struct run_refused {
  char *unit, *series; /* NULL: none */
  const run_group *group;
  int64_t made_ns, step;
  char policy[POLICY_NAME_MAX], reason[POLICY_REASON_MAX];
} run_refused;

/* A commit whose data is gone from the store. */
typedef struct run_lost {
  uint64_t n;
  char *unit; /* its path below the watched directory */
  int64_t step;
  uint64_t bytes;
  bool counts; /* it is the newest of its kind: the run's final status depends on it */
  char why[256];
} run_lost;

struct run_group {
  group group;
  run_lost *lost; /* the owner's */
  size_t lost_count, lost_room;
  uint64_t term;                       /* once begun, as the owner knows it */
  run_save *save;                      /* the one that runs */
  bool foreign;                        /* another writer holds it, and nothing of it is here */
  bool ours, over;                     /* it may be begun; since its writer's job is over */
  runlog_writer *before;               /* who had it before this start; NULL: not known */
  int64_t newest_step, newest_time_ns; /* of its newest commit; time 0: none */
  char *newest_unit;
  queue_place newest_place; /* of its newest good commit */
  int64_t whole_ns;         /* IO_WALL: when what its newest commit has was whole; 0: not known */
  uint64_t commits;         /* live ones, as the owner last saw its log */
  char *memory;             /* the policies' table, as JSON text; NULL: empty */
  bool memory_changed;      /* since it was last handed to a save */
  memory_state remembers;   /* how far `memory` is what the store has */
  uint64_t hooked;          /* by a hook of what has happened: the newest first question by then */
  uint64_t results, checkpoints, bytes; /* since its last save was begun */
  int64_t saved_ns;                     /* IO_WALL time of that; 0: there was none */
  int64_t spent_ns;                     /* of all tries of its saves that are over */
  uint64_t resumed; /* the commit that the job goes on from; RUNLOG_NONE: none */
  bool keep_asked;  /* its commits have changed since the policy was asked what to keep */
  bool keep_litter; /* data of a deleted one could not be removed yet */
  struct {
    names globs;            /* that were asked for last */
    prune_thin_whole whole; /* commits that have no such file; the worker's while a pass runs */
    bool left;              /* some that the log lets go may still be there; the worker's as well */
    int64_t at;             /* IO_MONO: when a pass looks again; INT64_MAX: not by itself */
  } thin;                   /* files that only the newest keep */
  char log_name[RUNLOG_NONCE_MAX]; /* the nonce of entry 0; "": not known yet */
  bool local_waits;                /* `keep_local` lets go what another watcher has not saved yet */
  uint64_t local_sum;              /* watchers_sum() when that was seen */
  names needed;                    /* units that lists name which came with its newest commits */
  bool needs_unknown;              /* out of memory for those */
  policy_item *listed;             /* its commits as `keep` sees them: a worker may have its log */
  size_t listed_count;
  /* Of files above the checkpoints (run_above.c), IO_MONO; 0: none. */
  int64_t above_at;              /* when they were saved last */
  int64_t above_since;           /* since when one waits to be saved */
  names above_named[ABOVE_KEPT]; /* what those that were saved last name, the newest first */
  int64_t in_place_at; /* IO_MONO: when the round of run_in_place.c began; 0: there was none */
  int64_t keep_at;     /* IO_MONO time of the next pass; INT64_MAX: none is due by itself */
  run_keeping
      *keeping;   /* the commits of its log to be dropped or deleted; the worker's while it runs */
  run_late *late; /* to be told to the log, the oldest first */
  size_t late_count, late_room;
  struct run_telling *telling; /* the worker's while it runs */
  int64_t late_at;             /* IO_MONO; not told before */
};

/* With the newer one's name behind it; the last line and others know it by these words. */
#define RUN_NOT_SAVED "not saved: "
#define RUN_LATE RUN_NOT_SAVED "newer is committed: "

#define RUN_TRUSTED "taken as it stands, by the user's word (`trust`)"

/* A log, and what this machine took for its newest commit when the job began without the store. */
typedef struct run_came {
  char *group;
  runlog_ref newest;
} run_came;

struct run {
  const run_env *env; /* `own`, once the state directory is held */
  run_env own;
  const io *outer; /* the engine's, below `held`: for copies of an io, and objects that outlive the
                    * run */
  int64_t compare_ns; /* for so long at most it stands still to compare policies */
  const io *lasting;  /* for threads that nobody waits for: it outlives all engines */
  io laid;            /* the given one with the environment of this run; all zeros: it has none */
  fs_held *held;      /* the state directory, by whatever path below it it is asked for */
  places places;
  store *store;
  policy *policy;            /* the newest chain */
  ruling replaced;           /* those before, as long as they rule beside it what is kept */
  struct run_reload *reload; /* of run_reload.c */
  const rules *rules;        /* of the first chain */
  lock lock;                 /* of the state directory */
  home home;                 /* of the watched one */
  owner owner;               /* held unless `beside` */
  bool beside, owns_dir;     /* as in the options */
  watcher watcher;           /* how the other watchers know of us */
  bool hasty_said, day_said;
  names said; /* warnings that need no second time */
  journal *journal;
  detect *detect;
  group_env group_env;
  job_env job_env;
  ranks ranks;
  bool ranks_begun, ranks_over; /* what the other ranks were told */
  node_share *node;             /* ranks on this node that restore the same; NULL: we are alone */
  uint32_t task_index, task_count; /* `task` and `tasks` of the options */
  hub *hub;                        /* by which the other tasks are asked; NULL: there is none */
  bool own_end;                    /* our own job has ended, and others may still write */
  unsigned plan_flags,
      bad_after; /* `bad_after`: failed starts from one commit before it is marked bad */
  int64_t stall_ns, in_place_every_ns;
  run_name *names; /* in the order of their first commits */
  size_t name_count, name_room;
  run_group **groups;
  size_t group_count, group_room;
  run_known *known; /* manifests of commits */
  size_t known_count, known_room;
  names dirs;       /* paths of the committed directories, in byte order */
  run_unit **units; /* sorted by path */
  size_t unit_count, unit_room;
  unsigned tries, tasks; /* tasks: on the workers now */
  bool own_parts, fresh; /* as in the options */
  bool vacant; /* at the start nothing wrote in the directory: it was made ready for a job */
  bool served; /* a server has what is flushed in the directory (fs_kind.keeps_flushed) */
  bool flush_due, flushing; /* a unit waits for it; one is being flushed */
  bool trust;               /* what nothing proves to be whole is taken as it stands */
  bool keep_all;            /* none is let go for a newer one, none stops being kept */
  bool poll, prepared, started, closing, fenced, preempted, writer_gone;
  atomic_bool hurried; /* saves wait for nothing that may be written beside a unit */
  atomic_int stop;     /* the store's calls give up: the run is being closed while it saves */
  bool aborted;        /* a policy wants nothing saved any more */
  bool forsaken;      /* the job has ended, and another rank did not come: older units get no try */
  policy_rest rest;   /* what is still saved, once preempted */
  double grace_s;     /* of the preemption */
  int64_t end_at;     /* IO_MONO: when its time is over */
  run_demand *drains; /* the newest first */
  unsigned draining;  /* so many of them are not over */
  deadline_pace pace; /* of the saves */
  uint64_t results;   /* that came */
  uint64_t questions; /* the first ones about each unit */
  uint64_t event, end_event;      /* number of the last event, and of the last end of the job */
  int64_t ask_due;                /* IO_MONO: when the policies are next asked, by time alone */
  int64_t started_ns, started_at; /* IO_WALL, IO_MONO */
  int64_t deadline_ns;            /* IO_WALL: when the job is ended; 0: not known */
  int64_t moment_ns;     /* IO_WALL, never set back: what becomes known has its place now */
  identity identity;     /* its name on this machine */
  int64_t lease_at;      /* IO_MONO */
  lease_wait lease_wait; /* while the run opens */
  int64_t wait_lease_ns, lease_wait_until; /* as asked for; IO_MONO, 0: it is not waited yet */
  /* run_anyway.c: it began without its store, because of this; the store has answered since. */
  bool anyway, answered, met; /* answered: for the first group; met: for all that are known */
  bool meeting_refused;       /* it was said that the store refuses it */
  err anyway_why;
  run_came *came;
  size_t came_count;
  struct run_meeting *meeting; /* the store is being asked; NULL: it is not */
  int64_t meet_at;             /* IO_MONO; when it is next */
  struct ticker *silence;      /* of run_patience.c, while the run begins; */
  int64_t silence_told_s;      /* its own */
  char *result;                /* the last one, as JSON text */
  char *unnamed;               /* the last one that named no checkpoint */
  run_heard *heard;            /* while the tree is polled: the last of those, the oldest first */
  size_t heard_count, heard_room;
  run_waiting *waiting; /* the oldest first */
  size_t waiting_count, waiting_room;
  trail *trail;         /* NULL: it could not be opened */
  int64_t noted_at;     /* IO_MONO: when run_note_open() last looked */
  lab_recorder *record; /* NULL: nothing is recorded */
  retention_limits limits;
  run_freeing *freeing;   /* what is removed here: the first is at work, the others wait for it */
  run_emptying *emptying; /* quarantine is being emptied; NULL: it is not */
  int64_t empty_at;       /* IO_MONO: when it is next */
  run_later *later;       /* what is restored while the job runs: the first that waits is next */
  int64_t local_at;       /* IO_MONO: when to look again at what waits for other watchers */
  char *resume, *restored_from;
  const run_group *resumed_group; /* in which the job goes on from a commit; NULL: from none */
  runlog_ref resumed_commit;      /* the commit */
  uint64_t resumed_newest;        /* and the newest of its log then */
  opened *opened;                 /* watches its files; NULL: nobody sees them, or there is none */
  starts past;  /* of earlier starts, as they were read; its commit need not be `resumed_commit` */
  char nan[64]; /* a result had this name and was no number, since it was restored; "": none */
  uint32_t committed, dropped, retired, failed, skipped;
  uint64_t bytes_committed;
  run_refused refused;
  standing_unit *facts; /* room for what is decided on; one more than there are units */
  size_t facts_room;
  queue_unit *line; /* room for as many as there are units; run_line() fills it */
  size_t line_room;
};

/* A save on a worker. */
struct run_save {
  run *run;
  job job;
  run_unit *unit;
  run_group *group;
  _Atomic uint64_t term; /* found by the worker; RUNLOG_NONE: none yet */
  /* The unit as it was when the save began: it may be another one by now. */
  digest fingerprint;
  char reason[256];
  bool sure;              /* it was known to be whole */
  int64_t begun_at;       /* IO_MONO; 0: it goes on from what an earlier try has sent */
  int64_t tried_at;       /* IO_MONO: of this try */
  queue_place place;      /* its own in the line */
  char *memory;           /* of the group, to be written with the commit; NULL: as it is there */
  memory_state remembers; /* of the group, when this save began */
  bool memory_kept;       /* it was written */
  bool copied;            /* it is sent from a snapshot: changes of the original do not matter */
  bool given_up;          /* the host cancelled it */
  /* These are the owner's, for run_stall.c; times are IO_MONO. */
  uint64_t moved;            /* as last seen */
  int64_t alive_at, said_at; /* of its last progress, and when that was last complained about */
  bool stalled;              /* it was stopped for that */
};

/* run.c: work(ctx) comes on a worker, and then done(ctx), which takes it off r->tasks, on the owner's thread. False:
 * the pool has no room for it now. */
bool run_submit(run *r, pool_fn *work, pool_fn *done, void *ctx);

/* run_groups.c */
int run_group_look(run *r, run_group *g, err *e); /* reads its log, and writes nothing */
int run_group_get(run *r, const char *prefix, run_group **out, err *e); /* touches no store */
run_group *run_group_find(const run *r, const char *prefix);            /* NULL: there is none */
int run_group_begin(run_group *g, err *e);
/* Notes in the journal which log it is, and its newest commit; NULL: as the log has it. */
void run_group_note_log(run *r, run_group *g, const runlog_ref *newest);
void run_group_note_newest(run_group *g);
void run_group_note_writer(run_group *g); /* before a term of ours is opened */
/* True of a group that another one holds, and that has something to go on from. */
bool run_group_is_held(const run_group *g);
/* True if another one holds something that this job might have to go on from: then nothing is begun
 * before that is settled. Never for one that watches beside others. */
bool run_groups_held(const run *r);
int run_groups_open(run *r, err *e);  /* those at the target */
int run_groups_begin(run *r, err *e); /* opens the terms of those that may be begun */
void run_groups_close(run *r);
/* Remembers that `path` is a committed directory: its files are its content, never a unit or a
 * group of its own. */
int run_dir_note(run *r, const char *path, err *e);
bool run_dir_inside(const run *r, const char *path); /* strictly below one of them? */
/* The paths that logs and journal know as units, for detect_options.known. Before the run has
 * started. */
int run_known_paths(run *r, names *out, err *e);

/* run_ranks.c: ranks that save together (r->ranks). All these return 0 for a run that is alone. */
bool run_follows(const run *r); /* true for every rank but the first: rank 0 decides for us then */
int run_ranks_await(run *r, err *e); /* for the others: waits until rank 0 has made its directory
                                      * ready */
void run_ranks_wait(const run *r);   /* tells the others why rank 0 waits, as in its identity */
int run_ranks_begun(run *r, err *e); /* tells the others, which wait for it, that rank 0 has opened
                                      * its run */
/* On rank 0: tells that it is ready. On the others: checks that we resume from the same checkpoint:
 * ERR_CONFLICT. */
int run_ranks_ready(run *r, err *e);
void run_ranks_failed(run *r,
                      const err *why); /* this rank cannot begin: the others need not wait */
void run_ranks_refused(run *r, const err *why); /* nor here, where the store was not opened yet */
void run_ranks_close(run *r);

/* run_ranks.c, too: the other tasks that write into the directory. */
int run_tasks_open(run *r, err *e);
detect_agree_fn run_tasks_agree; /* `ctx`: the run */
/* Takes in that our own job has ended. True: others may still write, and run_writers_gone() comes when
 * they have ended. */
bool run_tasks_left(run *r, bool clean);
void run_tasks_again(run *r);              /* another job of ours was started */
int64_t run_tasks_step(run *r);            /* returns when to call it again */
void run_writers_gone(run *r, bool clean); /* run.c: nobody writes any more */

/* run_units.c */
run_unit *run_unit_find(run *r, const char *path);
int run_unit_take(run *r, const detect_unit *facts, run_unit **out, err *e);
void run_unit_remove(run *r, run_unit *u);
/* The only writers of a unit's phase, and of the counters of those that failed or were let go. run_unit_to() also notes
 * `what` in the trail, and tells the host where that is news; `status` 0: it has none; `reason` NULL: as the detector
 * has it. run_unit_again() puts one that had failed or was let go into the line after all. */
void run_unit_is(run *r, run_unit *u, unit_phase phase);
void run_unit_to(run *r, run_unit *u, unit_phase phase, trail_what what, int status,
                 const char *reason);
void run_unit_again(run *r, run_unit *u);
/* Reads what stands beside a unit that became complete just now: it may wait long for its save. */
void run_unit_beside(run *r, run_unit *u);
void run_unit_beside_drop(run_unit *u); /* it is another content, or needs it no more */
/* Looks again for what is late beside those that wait; returns when to call it again. */
int64_t run_beside_step(run *r, int64_t now);
/* Tells a piece of news. For a commit `j` has the numbers; else it is NULL. */
void run_tell(run *r, const run_unit *u, run_kind kind, const job *j, int status,
              const char *reason);

/* run_policy.c: asks the policies. The event of a unit that was just found complete is NULL. */
void run_consider(run *r, run_unit *u, const char *event); /* queues it, or not */
/* True if it is complete, and the policies cannot be asked: what they remember is in a store that is away. */
bool run_unit_unasked(const run *r, const run_unit *u);
/* Asks again about units that were skipped, or were not ready, and are the newest of their kind. */
void run_reconsider(run *r, const char *event);
/* Asks what the unit is saved without, once for each content: u->left. */
void run_policy_exclude(run *r, run_unit *u);
void run_policy_begun(run *r, run_group *g); /* a save begins: counts start anew */
policy_rest run_policy_rest(run *r);         /* at a preemption */
double run_policy_left(const run *r); /* seconds until the job is ended; negative: not known */
policy_remedy run_policy_error(run *r, run_unit *u, int status, const char *text, double *seconds);
void run_policy_tell(run *r, run_unit *u, policy_hook hook, int status, const char *text);
/* policy_select() for a group of the run, with its memory. */
bool run_policy_select(run *r, run_group *g, policy_hook hook, const policy_item *items,
                       size_t count, policy_kept *kept);
bool run_remembers(const run *r);                  /* its policies may */
int run_memory_load(run *r, run_group *g, err *e); /* the group's; blocks on the store */
/* Takes over what was read after the job began, and asks about what has waited for it. */
void run_memory_recall(run *r, run_group *g, char *memory, memory_state state);
/* The policies' memory as the next run is to have it, JSON text. It asks anew about what stands here and is in no
 * store: it has not been counted then. */
const char *run_memory_at_end(const run *r, const run_group *g);

void run_event(run *r, bool is_end); /* something happens that units are asked about */
int run_ask_in_time(run *r, err *e); /* asks those that it is time for; sets r->ask_due */
/* run_results.c: which checkpoint a result belongs to. */
void run_result_begin(run *r, run_unit *u); /* its first write was noticed: it gets its own */
/* Keeps of the run before only what was reported for this content; to be called before the journal has
 * that. */
void run_result_recall(run *r, const char *path, int64_t step, const digest *content);
/* A result came, when all that was written before it is known. */
void run_result_take(run *r, const char *json, const char *checkpoint);
/* True if what the job calls so means this unit. */
bool run_result_names(const run *r, const char *name, const char *path);
/* All numbers of a unit, by the policy's `metrics`, as JSON text; NULL: it has none. The same as long
 * as its content is, unless another result names it. */
const char *run_unit_numbers(run *r, run_unit *u, const detect_unit *facts);
const char *run_numbers_now(run *r, run_unit *u);       /* of the unit as it is now */
void run_result_committed(run *r, run_unit *u);         /* its journal knows the commit */
int64_t run_result_step(run *r);                        /* tells the logs; when it is due again */
bool run_result_busy(const run_group *g);               /* its log is written to */
bool run_result_late(const run *r, const run_group *g); /* or will be, as soon as it may */
void run_results_free(run *r);
void run_results_close(run_group *g);

/* run_local.c: units of the watched directory that nobody needs any more. */
typedef enum unit_sort { SORT_PERM, SORT_NULL, SORT_TEMP } unit_sort;
/* Tells by the marker files at its top which sort a directory unit is. */
unit_sort run_unit_sort(const run *r, const char *path, match_kind kind);
const char *run_sort_name(unit_sort sort);
void run_local_sweep(run *r, run_group *g); /* after a commit: removes units that `keep_local` lets
                                             * go */
void run_local_end(run *r);                 /* temporary ones go with a job that ended well */
/* Looks again at what waits for another watcher; returns when to call it again. */
int64_t run_local_again(run *r, int64_t now);

/* run_later.c: checkpoints that are restored behind the start of the job. */
bool run_later_may(const run *r, const runlog_commit *c);
/* `for_unit` names the commit, which is not here; `made_way`: what was here went to quarantine. Before
 * the run has started. */
int run_later_add(run *r, run_group *g, const runlog_commit *c, const char *for_unit, bool made_way,
                  err *e);
int64_t run_later_step(run *r,
                       int64_t now); /* begins the next one; returns when to call it again */
bool run_later_pending(const run *r);
bool run_later_stop(run *r); /* time is over; true: a worker has to see that yet */
void run_later_free(run *r);
/* Returns 1 for news of such a one, which are nobody else's. */
int run_later_takes(run *r, const detect_unit *facts, err *e);

/* run_watchers.c: the others that watch the same directory, and who owns it. */
void run_find_home(run *r);
int run_own(run *r, err *e);         /* takes the directory, or is refused; before any store */
int run_own_by_term(run *r, err *e); /* when the terms are open; nothing was changed until then */
/* Makes this a moment's owner, for a worker of one that watches beside others; `log` and `term` are
 * ours. owner_drop() it. */
int run_own_briefly(const run *r, const char *log, uint64_t term, owner *out, err *e);
/* Asks, right before something is changed in the directory, whether it is still ours to change:
 * ERR_FENCED if a newer term is there (RUNLOG_NONE: we have none), ERR_HELD if it is another's. One
 * thread at a time for a group. */
int run_may_change(const run *r, const owner *o, group *g, uint64_t term, err *e);
void run_group_name_log(run *r, run_group *g); /* sets log_name; while no worker uses the log */
void run_join(run *r);                         /* lets the other watchers know of us */
/* Lists what it excludes beside the built-in ones; false: no memory. */
bool run_own_excludes(const run *r, names *out);
/* Tells them that the unit, which is durable, need not stay here for us, nor what it supersedes. */
void run_tell_watchers(run *r, const run_unit *u);
void run_tell_group(run *r, const run_group *g); /* the same of all that is durable in it */
bool run_has_all(const run *r);              /* nothing is left that this watcher wanted to save */
void run_leave(run *r, bool has_all);        /* at the end of all tasks; gives the directory up */
void run_say_once(run *r, const char *text); /* as a warning */

/* run_why.c: tells `why` the news. `reason` NULL: the unit's own. */
void run_note(run *r, const run_unit *u, trail_what what, const char *reason);
void run_note_saved(run *r, const run_save *s, const char *reason); /* a commit */
void run_note_start(run *r); /* tells which rules hold, too: why/last_rules.h */
void run_note_rules(run *r); /* other ones hold now */
void run_note_open(run *r);  /* tells what open units wait for now; not more than once a second */
void run_note_end(run *r);
last_rules run_last_rules(const run *r); /* all borrowed */

/* run_above.c: files above the checkpoints. They are saved together, a minute after the last time,
 * and when the checkpoints that they name are in the store. */
int64_t run_above_due(run *r, run_unit *u, int64_t now); /* IO_MONO: it may be saved then */
/* True of one that an earlier session than the last here began: it is not saved any more. */
bool run_above_is_outdated(const run *r, const detect_unit *facts);
void run_above_overtake(run *r, const run_unit *u); /* nobody waits any more for those before it */
void run_above_waits(run *r, run_unit *u);          /* it was put into the queue */
void run_above_begun(run *r, run_unit *u);          /* its save begins */
/* True if one of those that were saved last, or that stand here, names this commit, or the next one
 * may: whoever restores that file needs it. */
bool run_above_names(run *r, const run_group *g, const runlog_commit *c);
void run_above_free(run_group *g);

/* run_starts.c: what the job does with the checkpoint that it went on from. */
/* Notes that the job will go on from this commit. */
void run_starts_begun(run *r, run_group *g, uint64_t commit);
/* Finds the remembered commit, if it is one of this log, nothing was committed since, and it may
 * still be chosen. */
const runlog_commit *run_starts_accused(const run_group *g, const starts *s, err *e);
void run_starts_watch(run *r);                   /* from here on it is seen who opens its files */
void run_starts_result(run *r, const json_t *v); /* a result came */
/* Why a commit is suspect; NULL: it is not. Static memory: of two that are, each has its own. While no
 * worker uses the log. */
const char *run_starts_suspect(const run *r, const run_group *g, uint64_t commit);
void run_starts_note(const run *r, const run_group *g, policy_item *items, size_t count);
generations_doubt run_starts_doubt(const run *r, const run_group *g);
const char *run_starts_resumed_suspect(const run *r); /* of that which the job went on from */
void run_starts_free(run *r);

/* run_keep.c: retention, group by group, when no save of the group waits or runs. */
void run_keep_ask(run *r, run_group *g); /* its commits have changed: judge them anew */
bool run_keep_busy(const run_group *g);  /* its log is used by a worker just now */
int run_keep_step(run *r, err *e);       /* begins what is due */
int64_t run_keep_due(const run *r);      /* IO_MONO; INT64_MAX: nothing */
bool run_keep_pending(const run *r);     /* a pass is under way, or due now */
void run_keep_ask_all(run *r);
void run_keep_stop(run *r); /* passes end after the step that they are at */
void run_keep_close(run_group *g);

/* run_keep_lineup.c: what waits, by the rules of what is kept. */
void run_keep_list(run *r, run_group *g); /* notes its commits, while no worker uses the log */
void run_keep_unlist(run_group *g);
/* Asks the policy which of those that wait it would keep: run_unit.kept. */
void run_keep_judge(run *r, run_group *g);

/* run.c: takes in what the detector says of a unit. */
int run_unit_news(run *r, const detect_unit *facts, err *e);
/* run_reload.c: other policies in the middle of a run. */
int run_open_policy(run *r, const run_options *o, err *e); /* reads the first ones */
int64_t run_reload_step(run *r, int64_t now);              /* returns when to call it again */
/* Takes in what would be kept by the newest chain alone, and what those before keep beside it. */
void run_reload_told(run *r, const run_group *g, const policy_item *items, size_t count,
                     const policy_kept *newest, const policy_kept *others);
void run_reload_leave(run *r); /* nothing that is being read is waited for */
void run_reload_free(run *r);  /* all policies are gone then */

/* run_order.c: the order of commits within a group */
void run_order_begin(run *r); /* while the manifests are at hand */
/* When the content of a commit was written; 0: not known. */
int64_t run_order_of_commit(run *r, run_group *g, const runlog_commit *c);
/* True of what was a checkpoint further up and was moved to where it is now: it was deleted. Notes
 * that for the next start. */
bool run_is_aside(const run *r, const detect_unit *facts);
/* Of how many ranks what the journal knows here is one's part, where these are not ours: nobody alone, and no
 * other number of ranks, has the rest. 0: it is all here, or ours, or was written since. */
uint32_t run_others_parts(const run *r, const journal_unit *known, const digest *fingerprint);
/* True if it is such a part, and no commit of the target at hand: it is not saved. */
bool run_is_others_part(const run *r, const detect_unit *facts);
int run_note_aside(run *r, const char *path, const digest *fingerprint, err *e);
int64_t run_step_of(const run *r, const run_group *g, const runlog_commit *c); /* by its name */
void run_order_now(run *r);                 /* what comes next becomes known now */
void run_order_note(run *r, run_unit *u);   /* gives its content a place, when it is first queued */
int64_t run_order_whole(queue_place place); /* IO_WALL: when what has this place was whole */
bool run_order_before(const run *r, const run_unit *a, const run_unit *b);
/* What the rules of the queue see: of a unit, and of all of a group (NULL: none of them), valid until
 * it is called again. */
queue_unit run_line_unit(const run *r, const run_unit *u);
queue run_line(const run *r, const run_group *g);
double run_line_takes(const run *r);                      /* as in `queue` */
bool run_order_at_start(const run *r, const run_unit *u); /* it stood there when the run began */
bool run_is_late(const run *r, const run_unit *u);        /* a newer one is committed already */
/* Takes in a commit: what was complete before it, and is still queued, is late. */
void run_order_committed(run *r, run_group *g, queue_place place);
bool run_order_awaits(const run *r, const run_unit *u, int64_t now); /* an older one settles */

/* run_queue.c */
bool run_unit_queued(const run_unit *u); /* wanted, and not begun */
bool run_unit_sure(const run_unit *u);   /* known to be whole: durable, or on its way */
/* Better for a restart in every way, and of one group? */
bool run_supersedes(const run *r, const run_unit *newer, const run_unit *u);
void run_enqueue(run *r, run_unit *u);
void run_unit_durable(run *r, run_unit *u); /* its content is in the store */
/* Takes units back that were dropped for one that did not make it. */
void run_take_back(run *r);
/* Takes in that a newer writer is there: this run writes no more, which is told once. */
void run_fenced(run *r, const char *where, const char *reason);
/* Does the same with another reason to write no more: ERR_HELD or ERR_OTHER_RUN where another one
 * has the place; the job may go on. */
void run_end_saving(run *r, const char *where, int status, const char *reason);
int run_start_saves(run *r, err *e);
void run_hurry(run *r);     /* time is short: older ones go, the newest is next, retries come now */
void run_no_writer(run *r); /* nobody writes any more: units that wait for quiet need not */
/* Makes the drop of older units final, now that this one is in the store. */
void run_made_it(run *r, const run_unit *newer);
void run_drop_unwanted(run *r, run_unit *u, const char *reason);    /* by the policy's word */
void run_drop_passed_over(run *r, run_unit *u, const char *reason); /* by rank 0's */
void run_drop_late(run *r, run_unit *u);
int64_t run_next_save(run *r); /* IO_MONO, when the next save may begin; INT64_MAX: none waits */
void run_save_free(run_save *s);

/* run_drain.c */
int run_drain_begin(run *r, double for_s, uint64_t *id, err *e);
int64_t run_drain_step(run *r,
                       int64_t now);   /* ends those that are over; returns when to call it again */
int64_t run_drain_until(const run *r); /* IO_MONO: the first end of them; INT64_MAX: none is on */
double run_drain_left(const run *r);   /* seconds until then */
bool run_drain_wants(const run *r,
                     const run_unit *u); /* it is to be saved now, whatever its pace */
/* This content of the unit, which was made then, is in the target. */
void run_drain_stored(run *r, const run_unit *u, const digest *content, int64_t made_ns);
void run_drains_free(run *r);

/* run_done.c */
void run_save_done(void *ctx); /* ctx: the run_save */

/* run_status.c */
uint64_t run_unit_left(const run_unit *u); /* bytes that are yet to be sent */
/* What a unit is to standing.h; what the run as a whole is, without its units; and why it may not be durable
 * though none of them is late: 0, or an error (that it is fenced is told by itself). */
standing_is run_unit_standing(const run *r, const run_unit *u);
standing_facts run_standing_facts(const run *r);
int run_standing_unseen(const run *r);
/* Why it is not durable; NULL: nothing is waited for. */
const char *run_unit_waits_for(const run *r, const run_unit *u, char *text, size_t room);
void run_note_refused(run *r, const run_unit *u); /* the policy's last word on it was no */
void run_status_free(run *r);

/* run_lease.c */
int64_t run_renew_leases(run *r, int64_t now); /* returns when to call it again */
/* Renews them from a thread of its own, until it is told to stop, while the owner's thread is busy
 * for long. NULL: it could not be started; a lease is only a hint. */
typedef struct run_lease_keeper run_lease_keeper;
run_lease_keeper *run_leases_keep(const run *r);
int run_leases_await(run *r, err *e);
void run_leases_may_wait(run *r, bool may); /* whether the next lease that is asked about may be
                                             * waited for, as far as the user allows it */
void run_leases_kept(run_lease_keeper *k);  /* ends it; NULL is fine */
int64_t run_leases_left(const run *r);      /* seconds for which another writer may be waited for */
void run_leases_say(run *r, int64_t left);  /* tells others that one is; 0: no longer */

/* run_in_place.c: names without a number are not saved each time that they are written */
bool run_in_place_is_fixed(const run *r, const char *path); /* its number never changed */
int64_t run_in_place_due(const run *r, const run_unit *u);  /* IO_MONO; 0: now */
void run_in_place_begun(run *r, const run_unit *u);
void run_in_place_committed(run *r, const run_unit *u, uint64_t bytes);
void run_in_place_free(run *r);

/* run_hasty.c: what is replaced before it can be proven is named once, with what to do */
void run_hasty_look(run *r);
void run_hasty_gone(run *r, const run_unit *u, const detect_unit *facts);

/* run_patience.c: while the run begins, a store that does not answer is waited for. */
void run_patience_begin(run *r, int64_t wanted_ns);
void run_patience_end(run *r); /* calls give up by themselves from here on; may be called again */
void run_patience_explain(const run *r, err *e); /* adds to the text of a failure that it was */

/* run_stall.c: names saves that make no progress. */
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
  bool above;       /* as in detect_unit */
  bool by_manifest; /* WHOLE, since a manifest in the store vouches for it */
  bool more; /* has files that the commit which it is was saved without, and nobody vouches for */
  bool seen; /* the journal has it as whole, as it is now */
  bool lacking;   /* a file is missing that the unit of its kind before it had */
  uint32_t parts; /* more than 1: it is one rank's part of so many */
  uint64_t
      commit; /* of the newest commit of its name; with RECOVER_SUPERSEDED: of the one that it is */
  char reason[256];
} survey_unit;

typedef struct survey {
  survey_unit *units; /* in byte order of their paths */
  size_t count;
} survey;

/* run_record.c: tells the record, if there is one. */
void run_record_open(run *r, const char *path); /* NULL: none was asked for */
void run_record_start(run *r);
void run_record_group(run *r, const run_group *g); /* it has come while the run goes on */
void run_record_result(run *r, const char *json);
void run_record_preempt(run *r);
void run_record_end(run *r);
void run_record_complete(run *r, run_unit *u, const detect_unit *unit);
void run_record_transfer(run *r, const run_save *s, int64_t took_ns); /* it is over */

/* run_anyway.c: a run that begins without its store. */
/* True if it may go on so far after run_open() failed with *e; else *e may say why not. */
bool run_anyway_begin(run *r, bool wished, err *e);
int run_anyway_may(run *r, const survey *s, run_restore how, err *e); /* once it is surveyed */
/* The newest commit that is known of a group's log at this target; NULL: none is. */
const runlog_ref *run_anyway_log(const run *r, const char *group);
/* Returns 1, with its standing, if the journal ties a unit to that log, and it is whole. */
int run_anyway_standing(run *r, survey_unit *u, const journal_unit *known, err *e);
int run_anyway_admit(void *ctx, group *g, err *e); /* group_env.admit */
bool run_anyway_unmet(const run *r);               /* the store has not answered yet */
/* False while only the journal says what of the group is saved: its log was not seen. */
bool run_anyway_sure(const run *r, const run_group *g);
/* What the policies remember of the group is not known yet: they are asked later. */
bool run_anyway_forgets(const run *r, const run_group *g);
bool run_anyway_holds(const run *r, const run_group *g); /* saves of the group have to wait */
int64_t run_anyway_step(run *r, int64_t now); /* asks the store; returns when to call it again */
void run_anyway_free(run *r);

/* run_here.c: holds the units that the journal calls committed against the target at hand, which
 * may be another one than that of the run before. Called once, when the logs are read; may
 * block. */
int run_judge_journal(run *r, err *e);
/* Ranks go on from commits alone, so whole checkpoints of another target's would all go to quarantine.
 * ERR_OTHER_RUN, before anything is moved, where start_may_move() says no. *used: the directory is used
 * with this target from now on, which run_note_used() notes when it is ready. */
int run_check_strangers(run *r, const survey *s, run_restore how, bool *used, err *e);
int run_note_used(run *r, err *e);
/* A unit that is complete and noted in the journal is flushed, where that outlives a reboot: one after
 * the other on a worker, by run_flush_step(). */
void run_flush_want(run *r, run_unit *u);
void run_flush_step(run *r);
/* Returns the newest commit of a name that is no longer kept, if something newer of its kind is
 * live, so that nobody needs this one. NULL: it is as good as never committed. */
const runlog_commit *run_no_longer_kept(const runlog_state *state, const char *name);

/* run_emptying.c: empties quarantine. */
int64_t run_empty_step(run *r, int64_t now); /* returns when to call it again */
bool run_empty_stop(run *r);                 /* true if it was at work */

/* run_lost.c: finds commits whose data is gone from the store. Called once, when the logs are read,
 * before the journal is judged; blocks. */
int run_look_for_lost(run *r, err *e);
bool run_is_lost(const run_group *g, uint64_t n);
const run_lost *run_lost_find(const run_group *g, const char *path); /* NULL: it is not lost */
void run_lost_forget(run_group *g, const run_unit *u);               /* after its commit */
void run_lost_pass_over(run_group *g, uint64_t n); /* another commit is the newest now */
void run_lost_free(run_group *g);
int run_lost_note(run *r, run_group *g, const runlog_commit *c, const char *why,
                  err *e);         /* of the newest of its kind */
int run_lost_status(const run *r); /* ERR_CORRUPT: the newest of some kind is not in the store */
bool run_newest_of_series(const runlog_state *state, const runlog_commit *c); /* looks at good
                                                                               * commits only */

/* run_manifests.c: reads the manifests of commits once, and keeps them until the run has
 * started. */
int run_manifest(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e);
/* What our rank had of it; NULL: it does not tell that to as many ranks as we are. */
int run_part(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e);
/* True if a rank restores its own part of what tells it: `own_parts`, and there are several. */
bool run_restores_parts(const run *r);
/* What is to be restored of it: the whole, or our part. That the whole is, where a part was asked for, is
 * said. */
int run_manifest_here(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e);
/* The same of another run's: 1 if *out is our part (manifest_part), 0 if it is the whole. */
int run_part_of(run *r, const manifest *whole, manifest *out, err *e);
/* Tells the detector which files the newest commits have. */
int run_manifests_learn(run *r, detect *d, err *e);
void run_manifests_drop(run *r);

#endif
