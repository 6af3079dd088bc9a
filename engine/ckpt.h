/* ckpt.h: the public interface of libckpt, a checkpoint engine.
 *
 * One engine (`ckpt`) has threads and a descriptor to poll; it carries any number of runs
 * (`ckpt_run`): a watched directory, a target, a log. The engine watches, decides, uploads and
 * commits by itself; the host calls ckpt_dispatch() when ckpt_fd() is readable and pulls
 * completions with ckpt_next().
 *
 * Results: >= 0 is success, negative is CKPT_E*; the text is in ckpt_error(). Handles are opaque.
 * Every struct that crosses begins with `size`: set it to sizeof the struct; fields are only ever
 * appended, zero means the default. After a failed open, close is still due; NULL is fine to close.
 * Strings passed in are copied. Strings handed out live as long as each function says.
 *
 * Threads: all calls on one engine and its runs from one thread at a time (the "owner"); nothing is
 * ever called back on another thread but the log and the progress. The library prints nothing,
 * never exits, installs no signal handler, and closes its descriptors on exec.
 *
 * NULL for a handle, or for what a call fills in, is CKPT_EINVAL. A forked child has no use for the
 * engine of its parent, whose threads it has not got: each call there is CKPT_EUNSUPPORTED, and
 * ckpt_close() only lets go of what the two share, its locks and descriptors (the memory stays).
 * The child opens an engine of its own, or calls exec; one that does neither and lives on should
 * call ckpt_close(), or it keeps the directory locked when the parent is gone.
 *
 * This header includes no other and goes through LuaJIT's ffi.cdef as it stands, without its
 * preprocessor lines. */
#ifndef CKPT_H
#define CKPT_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckpt ckpt;
typedef struct ckpt_run ckpt_run;

/* Status codes. The class of one says what may be done about it: ckpt_class(). */
enum {
  CKPT_OK = 0,
  CKPT_EINVAL = -1,
  CKPT_ENOMEM = -2,
  CKPT_EIO = -3,
  CKPT_ENOENT = -4,
  CKPT_EEXISTS = -5,
  CKPT_EACCESS = -6,
  CKPT_ENOSPACE = -7,
  CKPT_ECORRUPT = -8,
  CKPT_EFORMAT = -9,
  CKPT_EVERSION = -10,
  CKPT_ERETIRED = -11,
  CKPT_EFENCED = -12,
  CKPT_EOTHER_RUN = -13,
  CKPT_EHELD = -14,
  CKPT_ECANCELED = -15,
  CKPT_ETIMEOUT = -16,
  CKPT_EUNSUPPORTED = -17,
  CKPT_ECONFLICT = -18,
  CKPT_ENOSTORE = -19,
  CKPT_ELIMIT = -20,
  CKPT_EINTERNAL = -21,
  CKPT_EPOLICY = -22
};
enum { CKPT_CLASS_NONE, CKPT_CLASS_RETRYABLE, CKPT_CLASS_PERMANENT, CKPT_CLASS_FATAL };

const char *ckpt_version(void);         /* "0.1.0" */
const char *ckpt_status_name(int code); /* "NOENT"; static */
int ckpt_class(int code);               /* CKPT_CLASS_* */

/* ---- the engine ---- */

enum { CKPT_LOG_DEBUG, CKPT_LOG_INFO, CKPT_LOG_WARN, CKPT_LOG_ERROR };
/* Called from the engine's threads, too, one line at a time, without a line end. Warnings and
 * errors of one kind are handed over ten times; then they are counted, and one an hour comes with
 * the count. With a log_level of CKPT_LOG_DEBUG each one comes. */
typedef void ckpt_log_fn(void *ctx, int level, const char *text);

/* Tells how far a call is that blocks while data moves: of one checkpoint after the other. */
typedef struct ckpt_progress {
  size_t size;
  const char *what; /* "restore", "verify"; "check": a copy that is here is read and compared */
  const char *unit; /* its own name; both texts are valid during the call */
  uint64_t bytes, total; /* done so far, and of the whole checkpoint */
  uint64_t files;        /* of the whole checkpoint */
  uint32_t over;         /* 1: this was the last of it; `bytes` is then less than `total` if the
                            call fails, or if something was missing or wrong */
} ckpt_progress;
/* Called only within ckpt_run_prepare, ckpt_foresee, ckpt_restore and ckpt_verify, one call at a
 * time, from any of the engine's threads: at most four times a second, and at the end of each
 * checkpoint. It must not call the engine. */
typedef void ckpt_progress_fn(void *ctx, const ckpt_progress *progress);

typedef struct ckpt_options {
  size_t size;
  uint32_t workers;   /* threads for disk, digests and transfers; 0: 4 */
  uint32_t log_level; /* the least that is logged: CKPT_LOG_* */
  ckpt_log_fn *log;   /* NULL: silent */
  void *log_ctx;
  const char
      *libexec;   /* where the helper programs are; NULL: found beside the program or library */
  uint32_t flags; /* CKPT_POLICY_IN_PROCESS */
  ckpt_progress_fn *progress; /* NULL: nobody wants to know */
  void *progress_ctx;
} ckpt_options;

enum {
  /* Policies run in this process instead of the helper program: a bug in LuaJIT is then ours. For
   * policies that the operator wrote. */
  CKPT_POLICY_IN_PROCESS = 1
};

/* `options` may be NULL. On failure *out is still set (or NULL when out of memory) so that
 * ckpt_error(*out) tells why. Threads start with the first run. */
int ckpt_open(ckpt **out, const ckpt_options *options);
/* Closes all runs too. Running jobs are cancelled and waited for. */
void ckpt_close(ckpt *engine);
/* Logs the lines that were only counted so far, kind by kind. ckpt_close() does it, too. */
void ckpt_log_counted(ckpt *engine);
/* Returns the text of the last call on this engine that failed; never NULL; valid until the next call. This
 * text, and those of completions and of the log, name a call or an option in backquotes and without
 * what is common to all: `list` is ckpt_list(), `take_over` CKPT_TAKE_OVER, `rank_wait` rank_wait_s
 * of ckpt_run_options. A host with words of its own for these can put them there. */
const char *ckpt_error(const ckpt *engine);

/* Returns a descriptor that is readable when ckpt_dispatch() has work. It is one, however many runs
 * there are. */
int ckpt_fd(const ckpt *engine);
/* Does what is due: takes in file-system events and finished jobs, starts new ones. Waits up to
 * timeout_ms for the first event (0: not at all, -1: without limit). Returns the number of
 * completions that ckpt_next() will hand out, or a negative code. */
int ckpt_dispatch(ckpt *engine, int timeout_ms);

/* ---- a run ---- */

enum {
  CKPT_CONTINUE_RUN = 1,   /* go on though the target belongs to another run id */
  CKPT_TAKE_OVER = 2,      /* push a writer aside that may be alive */
  CKPT_POLL = 4,           /* list the tree now and then instead of trusting inotify */
  CKPT_NO_DELETE = 8,      /* checkpoints that are no longer kept are hidden, their data stays */
  CKPT_SINGLE_WRITER = 16, /* nobody else writes to this target: it need not arbitrate */
  CKPT_KEEP_ALL = 32,     /* for a directory that nobody writes to any more: no save is let go for a
                         newer one, and nothing stops being kept, here or there */
  CKPT_START_ANYWAY = 64, /* begin though the store does not answer, with CKPT_RESTORE_NEVER or from
                            a whole checkpoint here that is the newest commit known of its log */
  CKPT_TRUST = 128,    /* what stands there at the start, and nothing proves to be whole or torn, is
                      saved as it stands */
  CKPT_BESIDE = 256,   /* watches and saves while others may own `dir`: it restores and quarantines
                         nothing; what its `keep_local` lets go goes while nobody else owns it */
  CKPT_OWNS_DIR = 512, /* nobody else restores to `dir`: where "<dir>.ckpt" cannot be, in which that
                         would be seen (a mount point, a parent that cannot be written) */
  CKPT_FRESH = 1024    /* of several ranks: whole checkpoints in `dir` that a target without any has
                       not saved go to quarantine, and the job begins without them; else
                       CKPT_EOTHER_RUN */
};

typedef struct ckpt_run_options {
  size_t size;
  const char *dir;             /* the watched directory; made if absent */
  const char *to;              /* target: path or URI; {NAME} is expanded from the environment */
  const char *state;           /* state directory; NULL: "<dir>.ckpt" */
  const char *run_id;          /* NULL: a digest of `program` and `dir` */
  const char *command;         /* the job's command with its flags: others than at the last start
                                  are told, and nothing of before is dropped then; may be NULL */
  const char *launch;          /* launch id; NULL: a fresh one */
  const char *const *units;    /* globs, ended by NULL; NULL: the built-in list */
  const char *const *excludes; /* added to the built-in ones; may be NULL */
  const char *const *markers;  /* names that every directory unit needs; may be NULL */
  double quiet_s;              /* quiet time of closed files; 0: 30 s; negative: none;
                                  INFINITY: without end, as for all times. NaN is CKPT_EINVAL */
  uint32_t flags;              /* CKPT_CONTINUE_RUN | ... */
  uint32_t tries;              /* of a save with a retryable error, before it is given up; 0: 8 */
  const char *const *policies; /* names ("default") or paths of policies, the first is asked first,
                                  ended by NULL; NULL: the built-in rule alone */
  const char *const *settings; /* "NAME=VALUE": their options; may be NULL */
  const char *policy_dir;      /* where names are looked up; NULL: as installed */
  double max_delete;     /* share of a group's checkpoints that one pass may drop, at least one
                            checkpoint; 0: 0.25. What is not in 0..1 is CKPT_EINVAL */
  double grace_delete_s; /* from drop to delete; 0: 24 h; negative: none; INFINITY: never */
  uint32_t rank, world;  /* of the writers of one launch that save together, each its own part of
                            every checkpoint; `launch` is then needed. world 0 and 1: alone */
  double rank_wait_s;    /* how long one waits for the others; 0: 10 minutes */
  uint32_t bad_after;    /* a checkpoint that so many starts in a row were resumed from, and ended
                            without saving one, is marked bad at the next; 0: 3; UINT32_MAX: never */
  double stall_s;        /* a save that waits that long for one thing is named; 0: 60 s */
  const char *program;   /* what `command` runs, as a name that flags do not change; identifies the
                            job when there is no run_id; NULL: `command` does */
  double start_wait_s; /* how long a store that does not answer is waited for when the run opens and
                            makes its directory ready; 0: 2 minutes where this place has committed to
                            it before, else 15 s; negative: a second */
  double wait_lease_s; /* how long another writer that is alive is waited for; 0: not at all */
  const char *const
      *environment;        /* "NAME=VALUE", ended by NULL: laid over the process's environment
                            where the target's keys, region and endpoint are looked for: two runs of
                            a process may have two accounts. Where one names keys, AWS_PROFILE or a
                            token file, those of the process are passed over. Copied into memory that
                            no core file has; NULL: none */
  double in_place_every_s; /* a name without a number, which is written again and again, is saved at
                              most once in that time while the job runs; 0: 60 s; negative: each
                              time that it is complete */
  const char *record;      /* a file to which is added what happens, an event in JSON on a line, for
                              ckpt_simulate(). That it cannot be written is a warning; NULL: none */
  double deadline_s;       /* from this call on until whoever started the job ends it, for policies
                              to see; 0: as SLURM_JOB_END_TIME says; negative, INFINITY: not known */
  uint32_t task, tasks; /* of a launch: of the `tasks` that write into `dir`, the one that this is,
                              from 0; `launch` is then needed. Nothing is complete before each other
                              one (ckpt_task_join) agrees or has ended. tasks 0 and 1: alone */
  const char
      *restore_parts; /* "own": of `world` ranks each gets back what the rank of its number had
                              of a checkpoint that as many saved; "all", NULL: the whole of it */
} ckpt_run_options;

/* The facts that the environment tells about a launcher (Slurm, torchrun, Open MPI, PMI). */
typedef struct ckpt_ranks {
  size_t size;
  uint32_t rank, world;             /* of all tasks; world 0: no launcher is known */
  uint32_t local_rank, local_world; /* on this host; local_world 0: not known */
  uint32_t node, nodes;             /* nodes 0: not known */
  char launch[128];                 /* shared by all tasks of this launch; "": none that is safe */
  char source[32];                  /* "slurm", "torchrun", ... */
} ckpt_ranks;
/* Reads the environment. CKPT_EINVAL names a variable that cannot be right. Needs no run. */
int ckpt_ranks_detect(ckpt *engine, ckpt_ranks *out);
/* Returns 1 if other hosts see the same files there (NFS, Lustre, GPFS, CephFS, ..., or a file
 * system that is not known), 0 if `dir` is on a disk of this host. A directory that is not there
 * yet counts as the one in which it will be made. */
int ckpt_dir_is_shared(ckpt *engine, const char *dir);

/* The time that this job has left, as the scheduler and the launcher say that started it. Negative: not
 * known, or nobody has begun to end it. */
typedef struct ckpt_time_left {
  size_t size;
  double
      ends_s; /* until the scheduler ends it, 0 where it does so already; till then it may be told
                    to start it again */
  double kill_s; /* until SIGKILL */
  double
      launcher_s; /* from a SIGTERM of the launcher (mpirun, torchrun) to its SIGKILL; known before it
                         has sent one */
  char launcher[128]; /* which one, and what gives a task more; "": launcher_s is not known */
} ckpt_time_left;
/* Asks Slurm's commands (squeue, scontrol), 2 s at most: to be called when a signal came, since a
 * job that is preempted has another end than before. What the launcher leaves is read from the
 * environment. Needs no run. */
int ckpt_time_left_detect(ckpt *engine, ckpt_time_left *out);
/* Has the scheduler start this job again: Slurm ends it for that, so it is the last thing to do.
 * CKPT_ECONFLICT: it does not run any more, e.g. since it was cancelled; CKPT_EUNSUPPORTED: no scheduler
 * is known that could. Blocks up to 20 s. Needs no run. */
int ckpt_requeue(ckpt *engine);

/* Puts a line into a comment of the job of Slurm's that this process is in, for those who look at the queue.
 * CKPT_COMMENT_ADMIN: AdminComment, which Slurm lets operators write; CKPT_COMMENT_USER: Comment, which the
 * user of the job may. The text begins with "ckpt-lua ", and has no quotes and no line's end. Returns at once;
 * *job is the number of the CKPT_COMMENTED that says how it went. Slurm's controller is asked, and told,
 * each time: not more often than once in some minutes, please. */
enum { CKPT_COMMENT_ADMIN, CKPT_COMMENT_USER };
int ckpt_comment(ckpt *engine, uint32_t which, const char *text, uint64_t *job);
/* Ends the programs of one that is under way, and returns when they are gone: before all that is below this
 * process is ended, say. Its CKPT_COMMENTED comes all the same. */
void ckpt_comment_stop(ckpt *engine);

/* One of several tasks that write into a directory which another one watches (`tasks` of its
 * ckpt_run_options): it says that it lives, what of a checkpoint is seen from its host, and that it
 * has ended. It needs no run. */
typedef struct ckpt_task ckpt_task;
typedef struct ckpt_task_options {
  size_t size;
  const char *dir;    /* absolute, without links */
  const char *state;  /* as in the ckpt_run_options of the one that watches */
  const char *launch; /* the same */
  uint32_t number;    /* of the launch, for texts */
  uint32_t task;      /* of those that write there, from 0 */
} ckpt_task_options;
/* To be called once the directory is ready, and before this task writes. CKPT_ENOENT: the one that
 * watches asks nobody; *out is NULL then. */
int ckpt_task_join(ckpt *engine, ckpt_task **out, const ckpt_task_options *options);
typedef struct ckpt_task_seen {
  size_t size;
  double next_s;  /* call it again by then */
  double quiet_s; /* so long the one that watches has asked nothing; it does each 10 s */
  uint32_t over;  /* 1: it has ended, in order */
} ckpt_task_seen;
/* Answers what was asked. It lists the checkpoints that the question is about, and looks at the
 * processes of this host. */
int ckpt_task_step(ckpt_task *task, ckpt_task_seen *out);
/* Says that no process of this task writes any more; `clean` 1: it ended with 0. Frees the handle; NULL
 * is fine. */
int ckpt_task_end(ckpt_task *task, int clean);

/* Opens a run: checks the places, takes the local lock of the state directory, reads the logs at
 * the target, opens a term in each, and settles the open saves of an earlier run (a sealed save is
 * committed, an unfinished one swept). Blocks on the store. CKPT_EOTHER_RUN: the target is another
 * run's; CKPT_EHELD: another process or a live lease has it, or (without CKPT_BESIDE) another one
 * owns `dir`; CKPT_EINVAL: "<dir>.ckpt" cannot be, so nobody can tell (CKPT_OWNS_DIR). Nothing in
 * `dir` is touched. */
int ckpt_run_open(ckpt *engine, ckpt_run **out, const ckpt_run_options *options);
/* Cancels open jobs, ends the term, drops the lock. */
void ckpt_run_close(ckpt_run *run);

/* Returns the address of this run for a job's environment (CKPT_SOCKET); "": there is no place
 * where it could listen. Valid for the run's life. */
const char *ckpt_run_socket(const ckpt_run *run);
/* Returns the id that each process of the job has to carry in its environment (CKPT_STATE_ID), so
 * that the next run on the same state directory finds it if this one is killed. */
const char *ckpt_run_state_id(const ckpt_run *run);
const char *ckpt_run_dir(const ckpt_run *run);    /* absolute */
const char *ckpt_run_state(const ckpt_run *run);  /* absolute */
const char *ckpt_run_target(const ckpt_run *run); /* as a URI */
const char *ckpt_run_id(const ckpt_run *run);

/* The places where the run that watches `dir` keeps its state and listens, whether it is alive or
 * not. */
typedef struct ckpt_place {
  size_t size;
  char state[4096]; /* "": not known */
  char socket[108]; /* "": nobody listens, as far as is known here */
  char state_id[40];
  uint32_t held;    /* 1: some run, which may have no socket, has the state directory */
  char launch[128]; /* the launch id of its newest start; "": not known here */
  /* The host and boot of its newest start, if on another boot of this machine, or on another
   * machine: nothing else is known of it then. "": here, or nowhere. */
  char host[128], boot[128];
  char waits[256]; /* why the run that has it waits before it listens; "": nothing is said */
} ckpt_place;
/* Finds them. `dir` may be NULL where `state` is given; `state` NULL: "<dir>.ckpt". Needs no
 * run. */
int ckpt_locate(ckpt *engine, const char *dir, const char *state, ckpt_place *out);

/* One that watches a directory, or did and is to come back. The strings are valid during the call,
 * and "?" where its file cannot be read. */
typedef struct ckpt_watcher {
  size_t size;
  const char *state, *target, *run_id, *host;
  int64_t pid;
  uint32_t alive;   /* 1: as far as is seen from here */
  const char *file; /* to be removed if it is not to come back: until then it counts */
} ckpt_watcher;
typedef void ckpt_watcher_fn(void *ctx, const ckpt_watcher *watcher);
/* Tells who watches `dir`, whatever their state directories are. Needs no run. */
int ckpt_watchers(ckpt *engine, const char *dir, ckpt_watcher_fn *fn, void *ctx);

/* A live process that an earlier run on this state directory may have left. */
typedef struct ckpt_trainer {
  size_t size;
  int32_t pid, sid;
  uint64_t start;      /* clock ticks since boot: pid and start name a process */
  const char *command; /* valid during the call, as is `left` */
  const char *left;    /* why it is not to be ended; NULL: it carries this run's id, and is ours */
  uint32_t unproven;   /* 1: it was the trainer in this directory, and nothing proves it now */
} ckpt_trainer;
typedef void ckpt_trainer_fn(void *ctx, const ckpt_trainer *trainer);
/* Returns how many there are that are ours to end, the caller excepted. */
int ckpt_run_trainers(ckpt_run *run, ckpt_trainer_fn *fn, void *ctx);

enum { CKPT_RESTORE_AUTO, CKPT_RESTORE_NEVER, CKPT_RESTORE_REQUIRED, CKPT_RESTORE_NAMED };

typedef struct ckpt_prepare_options {
  size_t size;
  uint32_t restore;  /* CKPT_RESTORE_* */
  const char *named; /* with CKPT_RESTORE_NAMED: a checkpoint of this target, or the URI of another
                        run or of a checkpoint of it, which is only read */
} ckpt_prepare_options;

typedef struct ckpt_prepared {
  size_t size;
  const char *resume;        /* absolute path to resume from, or NULL; valid for the run's life */
  const char *restored_from; /* URI of the restored checkpoint, or NULL */
  uint32_t restored, quarantined, found; /* units: downloaded; moved away; complete and local */
  uint32_t incomplete; /* of the quarantined: torn, or not proven whole; the others are whole, and
                          not as this start needs them, or stood where a checkpoint belongs */
} ckpt_prepared;

/* Makes the directory ready for a trainer, while nothing runs in it: quarantines units that are
 * provably torn, restores the newest commit if it is not there whole, and tells where to resume.
 * Blocks. Call it once for a run. CKPT_ENOENT with CKPT_RESTORE_REQUIRED (or _NAMED) when there is
 * nothing; with CKPT_BESIDE only CKPT_RESTORE_NEVER is no error. CKPT_EFENCED: a newer term was
 * opened meanwhile, and nothing is moved any more. CKPT_EOTHER_RUN, before anything is moved: of
 * several ranks, and whole checkpoints are here, of which none is the target's (CKPT_FRESH). */
int ckpt_run_prepare(ckpt_run *run, const ckpt_prepare_options *options, ckpt_prepared *out);

/* Begins to watch. From here on nothing of ours is ever written below `dir`. */
int ckpt_run_start(ckpt_run *run);

enum { CKPT_WOULD_SAVE, CKPT_IS_THERE, CKPT_IS_OLDER, CKPT_IS_NOT_PROVEN };
typedef struct ckpt_foreseen {
  size_t size;
  const char *unit; /* strings: valid during the call */
  int64_t step;     /* -1: none */
  uint32_t what;    /* CKPT_WOULD_SAVE, ... */
  const char *reason;
} ckpt_foreseen;
/* Returns 0 to go on. */
typedef int ckpt_foreseen_fn(void *ctx, const ckpt_foreseen *foreseen);
/* Tells what a run would do with the units in `dir`, if nobody writes there any more. Writes
 * nothing. The policies' `sync` rules are not asked. CKPT_ENOENT: there is no such directory. */
int ckpt_foresee(ckpt *engine, const ckpt_run_options *options, ckpt_foreseen_fn *fn, void *ctx);

/* ---- events and completions ---- */

enum {
  CKPT_EVENT_CHILD,  /* a trainer was started: `pid` */
  CKPT_EVENT_EXIT,   /* it ended: `clean` if with code 0 */
  CKPT_EVENT_RESULT, /* `json`: one object from inside the job; "checkpoint" in it
                         names whose it is, else it is of the next one that is written */
  CKPT_EVENT_PREEMPT, /* what can be durable in `grace_s` seconds: older saves wait no more, unless all
                         of it fits */
  CKPT_EVENT_LIST,    /* list the tree now (a hint that something was written) */
  CKPT_EVENT_DRAIN /* what is complete now is to be durable in `grace_s` seconds, the newest first; the
                         job goes on, and when that is over all is as it was. CKPT_DRAINED says so;
                         ckpt_run_drained() how it stands */
};

typedef struct ckpt_event {
  size_t size;
  uint32_t kind; /* CKPT_EVENT_* */
  int32_t pid;
  int32_t clean;
  double grace_s;
  const char *json;
  int32_t outside; /* of CKPT_EVENT_EXIT: it ended by somebody's signal (a scheduler's, say), which
                      says nothing about the checkpoint that it went on from */
  const char
      *lines; /* of CKPT_EVENT_EXIT: what the job said last, a line's end between lines; kept with
                      * the mark if the checkpoint is marked bad. NULL: not known */
} ckpt_event;

/* Hands an event in, once the run has started; returns at once, the event is copied. *job (may be
 * NULL) is the number of a CKPT_EVENT_DRAIN; of others 0: jobs are named by their completions. */
int ckpt_notify(ckpt_run *run, const ckpt_event *event, uint64_t *job);
/* Gives a job up, also one that waits for its next try; its completion follows (CKPT_FAILED with
 * CKPT_ECANCELED, unless it was committed just before). CKPT_ENOENT if it is over. */
int ckpt_cancel(ckpt *engine, uint64_t job);

enum {
  CKPT_COMMITTED = 1, /* durable: it can be restored from now on */
  CKPT_DROPPED,       /* let go by the queue before it was begun: a newer one took its place */
  CKPT_RETIRED,       /* changed or vanished while it was read: no error */
  CKPT_FAILED,        /* given up after an error: status, class, reason */
  CKPT_RETRYING,      /* failed, will be tried again */
  CKPT_FENCED,        /* a newer term writes here: this run writes no more */
  CKPT_UNPROVEN,      /* not saved: nothing proves that it is whole (reason) */
  CKPT_SKIPPED,       /* the policy does not want it saved (reason) */
  CKPT_EXPIRED,       /* in the store, and no longer kept: it is not listed any more (reason) */
  CKPT_DELETED,       /* in the store: its data is gone (reason: by which rule it was dropped) */
  CKPT_TREE,          /* a ckpt_tree() is over: status, reason; it has no run */
  CKPT_DRAINED,  /* a CKPT_EVENT_DRAIN is over. CKPT_OK: the newest of each kind that is wanted is
                         durable, or there is none; else `unit` is not, of which `bytes` are left:
                         CKPT_ETIMEOUT: time is up; CKPT_ERETIRED: it is gone, and no newer one came */
  CKPT_COMMENTED /* a ckpt_comment() is over; it has no run. CKPT_EHELD: there is one that is not
                         ours; CKPT_EACCESS: Slurm refuses it; CKPT_EIO: Slurm does not answer */
};

typedef struct ckpt_completion {
  size_t size;
  ckpt_run *run;
  uint64_t job;    /* 0 if none was begun; the same for all tries of a save */
  uint32_t kind;   /* CKPT_COMMITTED, ... */
  int32_t status;  /* CKPT_OK or CKPT_E* */
  uint32_t class_; /* CKPT_CLASS_* of the status */
  int64_t step;    /* -1: none */
  uint64_t files, bytes;
  double seconds;   /* from complete to durable */
  const char *unit; /* path below the directory; the strings are valid until the next ckpt_next */
  const char *reason;
  uint32_t is_copy; /* it came back with its table of contents. CKPT_COMMITTED: `reason` tells of
                       what it is a copy; CKPT_RETIRED: this very target has it already */
} ckpt_completion;

/* Pulls one completion: returns 1, or 0 if there is none. */
int ckpt_next(ckpt *engine, ckpt_completion *out);

typedef struct ckpt_run_status {
  size_t size;
  uint32_t committed, dropped, retired, failed; /* since ckpt_run_open */
  uint32_t pending;  /* wanted, not durable yet (settling, waiting, running, retrying): while there
                        is one, there is something to wait for */
  uint32_t settling; /* those of them that are written, but not yet known to be complete */
  uint32_t unproven; /* there, but nothing proves them whole */
  uint64_t bytes_committed, bytes_left; /* left: of all that ckpt_run_pending() tells */
  int64_t newest_step;     /* of the newest commit, of this run or an earlier one; -1: none */
  double newest_age_s;     /* since that commit; negative: there is none */
  const char *newest_unit; /* valid until the next call; NULL: none */
  int32_t newest_status;   /* of the newest complete unit: CKPT_OK if it is durable (or there is
                              none), else why not */
  uint32_t fenced;
  uint64_t unmatched; /* files written that belong to no unit */
  const char *unmatched_example;
  const char *policies;      /* "mine, default"; "builtin"; valid until the next call */
  uint64_t policy_fallbacks; /* times that a policy could not be asked, and the safe answer held */
  uint32_t skipped;          /* the policies did not want them */
  uint32_t keeping;  /* 1: checkpoints that are no longer kept are being removed, or are due now */
  uint32_t standing; /* CKPT_DURABLE, ...; 0: not known, the run has not started */
  uint32_t saw_file; /* 1: `dir` had a file at some time, whatever its name */
  /* These are valid until the next call; NULL: none. */
  const char *unproven_unit, *unproven_reason; /* newer than all of its kind that is whole */
  const char *unwanted_unit; /* newer than all of its kind that a policy wanted, */
  const char *unwanted_policy, *unwanted_reason; /* whose word that was, and why */
  uint32_t tasks; /* of this launch, once the own job has ended: so many others may still write, and
                     while there is one, there is something to wait for */
} ckpt_run_status;
int ckpt_run_get_status(ckpt_run *run, ckpt_run_status *out);

/* What it costs to end the job now, for one that has to choose. Times are seconds since 1970. */
typedef struct ckpt_evict {
  size_t size;
  double time; /* now */
  double
      last_durable_time; /* when the newest checkpoint of the target was committed; negative: none */
  double complete_time;  /* when what it has was whole on this machine; negative: not known */
  const char *name;      /* its path below the directory, until the next call; NULL: none */
  int64_t step;          /* of it; -1: none */
  uint64_t bytes_pending;    /* to be sent yet of what is complete and wanted */
  double seconds_to_durable; /* what that takes, as quick as the saves before; 0: nothing is to be
                                sent; negative: nobody knows, none was seen */
  double
      lost_since; /* the work since then is lost by a kill: since the newest durable checkpoint was
                        whole, or this run began, if that was later. Negative: nothing is lost */
  double lost_if_killed_now; /* so many seconds of work that is */
} ckpt_evict;
/* Once the run has started. It asks nobody, and may be called as often as you like. */
int ckpt_run_evict(ckpt_run *run, ckpt_evict *out);

/* One checkpoint of a CKPT_EVENT_DRAIN. */
enum {
  CKPT_DRAIN_WAITS = 1, /* wanted, and not in the target yet */
  CKPT_DRAIN_STORED,    /* it is, or a newer one of its kind, which `reason` names */
  CKPT_DRAIN_UNWANTED,  /* a policy said no */
  CKPT_DRAIN_OPEN,      /* not known to be complete: it is not waited for */
  CKPT_DRAIN_LEFT,      /* a newer one was committed, and it is too late */
  CKPT_DRAIN_FAILED,    /* given up after an error */
  CKPT_DRAIN_GONE,      /* removed, or written again, before it was saved */
  CKPT_DRAIN_UNPROVEN   /* nothing proves that it is whole, or it is torn: it is not waited for */
};
typedef struct ckpt_drained {
  size_t size;
  const char *unit, *reason; /* valid during the call */
  int64_t step;              /* -1: none */
  uint64_t bytes, bytes_left;
  uint32_t is; /* CKPT_DRAIN_* */
  uint32_t
      counts;    /* 1, once it is over: it is the newest of its kind that is wanted, so it counts */
  uint32_t late; /* 1: it is the newest of those that are not durable; the status is its own */
} ckpt_drained;
typedef void ckpt_drained_fn(void *ctx, const ckpt_drained *unit);
typedef struct ckpt_drain {
  size_t size;
  uint32_t over;
  int32_t status;     /* once it is over, as in CKPT_DRAINED */
  double left_s;      /* until it is */
  uint32_t standing;  /* once it is over: CKPT_DURABLE and so on, as ckpt_run_status has it */
  const char *reason; /* why it is not durable, until the next call; NULL: it is */
} ckpt_drain;
/* Says how the drain of this number stands; `fn` (may be NULL) is told each checkpoint. CKPT_ENOENT: there
 * was none, or it was over long ago: the last 16 are remembered. */
int ckpt_run_drained(ckpt_run *run, uint64_t job, ckpt_drain *out, ckpt_drained_fn *fn, void *ctx);

/* What would be lost with this machine, in one word. */
enum {
  CKPT_DURABLE = 1,     /* nothing: the newest complete checkpoint of each kind that the policies
                           wanted is in this target */
  CKPT_NOTHING_TO_SAVE, /* no complete checkpoint was seen */
  CKPT_NOT_WANTED,      /* there were complete ones, and the policies wanted none of them */
  CKPT_NOT_PROVEN,      /* nothing proves that the newest one is whole: it was not saved */
  CKPT_NOT_DURABLE      /* what ckpt_run_pending() tells, and what becomes complete by then */
};
/* Returns it as "not_durable"; static. NULL for another number. */
const char *ckpt_standing_name(uint32_t standing);

/* Asks the target whether it still has what is called durable: for the end of a run, since somebody may
 * have emptied it meanwhile. It is one request for the newest checkpoint of each kind, and blocks for
 * a second at most where the target does not answer: then nothing changes. What is gone makes the
 * standing CKPT_NOT_DURABLE, and newest_status CKPT_ECORRUPT. */
int ckpt_run_prove(ckpt_run *run);

/* Called for each unit that is complete, or still settling, and not durable; for those given up,
 * too. */
typedef struct ckpt_pending {
  size_t size;
  const char *unit;   /* valid during the call */
  const char *reason; /* "uploading", "waiting for checkpoint-3", "closed, quiet 4 of 30 s" */
  uint64_t bytes, bytes_left;
  uint32_t begun; /* 1: its upload runs */
} ckpt_pending;
typedef void ckpt_pending_fn(void *ctx, const ckpt_pending *pending);
int ckpt_run_pending(ckpt_run *run, ckpt_pending_fn *fn, void *ctx);

/* ---- other policies in the middle of a run ---- */

typedef struct ckpt_reload_options {
  size_t size;
  const char *const *policies; /* NULL: the files that the run's own were read from, read again */
  const char *const *settings; /* "NAME=VALUE"; NULL: those of the run; with `policies`: none */
  uint32_t flags;              /* CKPT_DRY_RUN: it is only told what would differ */
} ckpt_reload_options;
/* Begins to take other policies, and returns at once; *job is the name by which ckpt_run_reloaded() tells what came
 * of it. The files are read on a thread of their own, for 10 s at most; then they are checked as
 * ckpt_policy_check() does, which may take seconds of a later ckpt_dispatch(). Policies that are
 * taken decide from then on what is saved. What is kept is ruled by those before beside them, each by its
 * own memory, until `grace_delete_s` is over. Nothing is ever taken because a file was edited.
 * A failure of something else that was due may come back, too: where *job is not 0, the reload has begun all the same.
 * The same files and settings that rule already change nothing. CKPT_EPOLICY in the end: they are broken, or their
 * `keep` fails for the commits that there are.
 * CKPT_EHELD: ask again later (the run has not started; another one is being read; what the policies remember is not
 * known; 32 chains that were replaced rule still).
 * CKPT_ECANCELED: the run is ending. CKPT_EUNSUPPORTED: it has no policies, or is a rank that asks none. */
int ckpt_run_reload(ckpt_run *run, const ckpt_reload_options *options, uint64_t *job);

/* All texts of these are valid until the next call. */
typedef struct ckpt_reloaded {
  size_t size;
  uint32_t over;        /* 0: the files are being read; nothing else is told then */
  uint32_t dry;         /* 1: nothing was taken, as it was asked for */
  int32_t status;       /* CKPT_OK, or why those before go on: CKPT_EPOLICY, CKPT_EINVAL, ... */
  const char *text;     /* of a failure; "": there was none */
  const char *policies; /* the new ones; with job 0: the newest */
  const char *replaced; /* those before, with job 0: all that rule still; "": none */
  double left_s; /* until the new ones alone rule what is kept; infinite: never; 0: they do */
  /* Of what a checkpoint is: what the new ones do not name, and stays as those before have it, since it
   * cannot change while the run watches: "markers, with"; "": nothing. */
  const char *stays;
  uint64_t changes;    /* how many there are; 300 of them are told at most */
  uint64_t uncompared; /* commits that were not looked at, as a comparison takes some 5 s at most */
  double
      max_delete; /* of the run: the share of a group's checkpoints that one pass drops at most */
  const char *
      newest_only; /* files that older checkpoints lose by the new ones, and how many of the newest keep them:
                            * "optimizer.pt (2 keep them)"; "": none */
} ckpt_reloaded;
/* A commit of which the policies before and the new ones say otherwise whether it is kept, each by its own
 * word: the newest of each kind, pinned ones and others stay whatever a policy says. */
typedef struct ckpt_reload_change {
  size_t size;
  const char *group, *name;
  uint64_t commit;
  int64_t step;           /* -1: none */
  uint32_t before, after; /* 1: it is kept by the policies before; it would be by the new ones */
  const char *before_policy, *before_reason, *after_policy, *after_reason;
} ckpt_reload_change;
/* Returns 0 to go on; any other value ends the call and is returned. */
typedef int ckpt_reload_change_fn(void *ctx, const ckpt_reload_change *change);
/* Tells what came of the last reload, and the changes of that moment. With job 0: who rules now, and what
 * would go if the newest ones ruled alone. `fn` may be NULL. CKPT_ENOENT: it was not the last one. */
int ckpt_run_reloaded(ckpt_run *run, uint64_t job, ckpt_reloaded *out, ckpt_reload_change_fn *fn,
                      void *ctx);

/* ---- plain trees: directories to and from places that no run knows of ---- */

enum { CKPT_TREE_UPLOAD, CKPT_TREE_DOWNLOAD, CKPT_TREE_DELETE, CKPT_TREE_COPY };
enum { CKPT_TREE_MERGE = 1, CKPT_TREE_UNFINISHED = 2 };

typedef struct ckpt_tree_options {
  size_t size;
  uint32_t kind;   /* CKPT_TREE_UPLOAD, ... */
  uint32_t flags;  /* CKPT_TREE_MERGE: a download or copy may go into a directory that is there;
                      CKPT_TREE_UNFINISHED: a download takes what an upload that was cut off sent */
  const char *dir; /* the directory that is read, or that a download makes */
  const char *to;  /* of a copy: the directory that it makes */
  const char *uri; /* the place in a store, or a path; not of a copy */
  const char *const *excludes; /* shell patterns against paths relative to the top, as Ray's syncers
                                  have them; `*` crosses slashes, what is below a directory that
                                  matches is excluded too; ended by NULL, may be NULL */
  const char *const *environment; /* as of ckpt_run_options */
} ckpt_tree_options;
/* Starts a transfer and returns at once; *job is its name. Its end is a completion CKPT_TREE (files
 * and bytes: those that had to be moved), and ckpt_cancel() ends it early. An upload overwrites and
 * removes nothing; files that the place has with the same size and time already are not sent. A
 * link that leads out of the directory to a file that its owner may read is taken to be that file,
 * by an upload and a copy; of other links that lead out, or nowhere, one warning tells.
 * Beside the files it leaves a record with digests, modes, times, links and empty directories,
 * ".ckpt-manifest.json". A download is held against it, and appears at once, whole; files without a
 * record are fetched as they are listed. An upload that is cut off goes on where it was when it is
 * started again. CKPT_EEXISTS if the directory is there; CKPT_ECONFLICT if an upload to the place
 * goes on or was cut off; CKPT_ENOENT if nothing is at the place. Others may write to the
 * directory that is sent or copied: of a file that only grows meanwhile is taken what it had when
 * it was opened; CKPT_ERETIRED if one is rewritten again and again. */
int ckpt_tree(ckpt *engine, const ckpt_tree_options *options, uint64_t *job);
/* Tells how far it is, in bytes; *total is 0 until it is known. CKPT_ENOENT if it is over. */
int ckpt_tree_progress(ckpt *engine, uint64_t job, uint64_t *done, uint64_t *total);

/* ---- what a target holds; these block and need no run ---- */

typedef struct ckpt_item {
  size_t size;
  const char *group;             /* strings: valid during the call */
  const char *name;              /* the unit's own name */
  const char *dir;               /* its directory in the store: "last.ckpt", "last.ckpt.~7" */
  int64_t step;                  /* -1: none */
  int64_t time_ns;               /* of the commit, since 1970 */
  uint64_t files, bytes, number; /* number: of its log entry */
  const char *root;              /* root digest, hex */
  const char *uri;
  const char *policy, *reason; /* who wanted it saved, and why; "" if the log does not say */
  const char *metrics;         /* a JSON object, or "" */
  uint32_t life;               /* CKPT_LIVE, ... */
  const char *drop_policy, *drop_reason; /* of a dropped one; else "" */
  int64_t drop_ns;
  uint32_t bad;           /* 1: it was marked as one that does not load */
  const char *bad_reason; /* "": none was given */
  uint64_t left_out; /* files that excludes have left out of it, or that were taken since (`thin`);
                      * 0: none, or not known */
  uint32_t foreign;  /* 1: another tool wrote it, so there was nothing to hold it against */
  uint32_t
      above; /* 1: a file above the checkpoints (a tuner's state): it belongs to a resume, and is
                   * no checkpoint itself */
  const char *bad_lines; /* what the job that failed from it said last, a line's end between lines;
                          * "": not known */
  const char *needs; /* names of other checkpoints that it, or a list beside it, names, each with a
                      * slash behind it; "": none */
  uint64_t chosen_files,
      chosen_bytes; /* of `files` and `bytes`: what ckpt_restore() by `only` brought of
                                        * it, or would bring; else 0 */
  uint32_t thin;    /* 1: some of `left_out` were taken of it since newer checkpoints are there */
} ckpt_item;

enum { CKPT_LIVE, CKPT_LIFE_DROPPED, CKPT_LIFE_DELETED };
/* Returns 0 to go on; another value ends the call, which returns it. */
typedef int ckpt_item_fn(void *ctx, const ckpt_item *item);
/* Tells the live commits of a target, group by group, oldest first: not what was dropped.
 * CKPT_ENOSTORE, CKPT_ENOENT (no log). */
int ckpt_list(ckpt *engine, const char *uri, ckpt_item_fn *fn, void *ctx);

enum {
  CKPT_RESTORE_ALONE = 8, /* without the files that were saved beside it (`with`) */
  CKPT_RESTORE_RECORD =
      16, /* its bytes were all compared: the target remembers it as verified, as after
                             * ckpt_verify() */
};
typedef struct ckpt_restore_options {
  size_t size;
  const char *uri;  /* a target, or a checkpoint in it (<target>/<name>) */
  const char *name; /* a unit's name or directory; NULL: the newest of each group */
  const char *dir;  /* where to; made if absent. A name that exists there is CKPT_EEXISTS */
  uint32_t flags;   /* CKPT_DRY_RUN: nothing is written; fn is told what would be restored.
                       CKPT_RESTORE_ALONE, CKPT_RESTORE_RECORD */
  /* Of each one only the files that one of these means, a list that ends in NULL: patterns as of
   * `excludes`, but with the checkpoint's own directory as the root. Nothing beside it comes then, and
   * what came is not remembered as restored. One without such a file is passed over, CKPT_ENOENT if
   * that is each of them. NULL, or none: all. Not of
   * a place that another tool wrote (CKPT_EUNSUPPORTED). */
  const char *const *only;
} ckpt_restore_options;
/* Restores, verified block by block, each unit in one step (staged beside `dir` or in it, renamed).
 * A place that another tool wrote, if `uri` names it and there is no `name`, comes as it is, into a
 * directory of its name; fn is told that it is `foreign`.
 * fn (may be NULL) is told each one that is there. */
int ckpt_restore(ckpt *engine, const ckpt_restore_options *options, ckpt_item_fn *fn, void *ctx);

typedef struct ckpt_verified {
  size_t size;
  const ckpt_item *item;
  int32_t status;     /* CKPT_OK, CKPT_ECORRUPT, ... */
  const char *reason; /* "" or the fault, first finding */
  uint32_t findings;
  /* Links in it that lead out of it or nowhere: what is there was not saved, and that is no finding.
   * The first thousand, as a JSON array of objects with "name", "target" and "leads" ("out" or
   * "nowhere"), and how many there are. */
  const char *links;
  uint64_t link_count;
} ckpt_verified;
typedef int ckpt_verified_fn(void *ctx, const ckpt_verified *verified);
/* Reads every byte of a checkpoint and compares: of `name`, or of all commits when it is NULL.
 * `uri` may also be a checkpoint that was copied elsewhere, with its manifest in it. Returns
 * CKPT_ECORRUPT if any was bad. */
int ckpt_verify(ckpt *engine, const char *uri, const char *name, ckpt_verified_fn *fn, void *ctx);

/* Reads the logs of a target as a run does that begins, and nothing of its checkpoints. CKPT_ECORRUPT if an
 * entry is lost, or is not what its writer put there: no run would begin. CKPT_ENOSTORE, CKPT_ENOENT (no log). */
int ckpt_check_logs(ckpt *engine, const char *uri);

/* ---- a place, before it is relied on ---- */

enum {
  CKPT_FINE,
  CKPT_NOTE,    /* worth knowing */
  CKPT_WARNING, /* something will not work, or not as well as it could */
  CKPT_FAULT    /* saving would fail */
};
typedef struct ckpt_examined {
  size_t size;
  const char *topic;  /* one word: "write", "race", "clock", "log", ... */
  uint32_t word;      /* CKPT_FINE, ... */
  int32_t status;     /* of a fault: CKPT_E* */
  const char *text;   /* what was seen, and what it means; valid during the call, as all of it */
  const char *advice; /* what to do about it; "": nothing */
} ckpt_examined;
typedef void ckpt_examined_fn(void *ctx, const ckpt_examined *examined);
/* Tries out whether checkpoints can be saved at a target: writes, reads, lists, replaces, races and
 * deletes below its .ckpt, looks whose credentials, which server or disk that is, and reads the logs that
 * stand there. `fn` (may be NULL) is told each finding. What was made is removed again, or named. Returns
 * CKPT_OK where all that a save needs is there, else the status of the first fault. Blocks. */
int ckpt_doctor(ckpt *engine, const char *uri, ckpt_examined_fn *fn, void *ctx);

/* ---- retention by hand ---- */

/* Describes the newest live checkpoint of `name` (NULL: of all; in each group), with all that log
 * and manifest say about it, as one JSON object in *json (valid until the next call on this
 * engine). With several groups it is the newest of them all. */
int ckpt_show(ckpt *engine, const char *uri, const char *name, const char **json);

/* Keeps a checkpoint from being deleted, until `seconds` from now (0: until it is unpinned). `id`
 * gets the pin's name. CKPT_ENOENT if there is no such live checkpoint. */
int ckpt_pin(ckpt *engine, const char *uri, const char *name, double seconds, char id[33]);
/* Removes one pin by its id, or all of a checkpoint by its name. Returns how many. CKPT_ENOENT. */
int ckpt_unpin(ckpt *engine, const char *uri, const char *name_or_id);

enum {
  CKPT_REMOVE_ALL = 1, /* without a name: every checkpoint, the newest too */
  CKPT_DRY_RUN = 2     /* nothing is written; fn is told what would be done */
};
typedef struct ckpt_remove_options {
  size_t size;
  const char *uri;
  const char *name;
  double grace_delete_s; /* as in ckpt_run_options */
  uint32_t flags;        /* CKPT_REMOVE_ALL | CKPT_DRY_RUN */
} ckpt_remove_options;
/* Drops a checkpoint (readers stop choosing it) and deletes those that were dropped longer than the
 * grace period ago. Refuses checkpoints that the engine guards (the newest without CKPT_REMOVE_ALL,
 * a pinned one): CKPT_EHELD with the reason. fn (may be NULL) is told each checkpoint that was
 * dropped or deleted; `life` says which. */
int ckpt_remove(ckpt *engine, const ckpt_remove_options *options, ckpt_item_fn *fn, void *ctx);

enum { CKPT_KEEP, CKPT_GUARDED, CKPT_LIMITED, CKPT_DROP, CKPT_WAIT, CKPT_DELETE };
typedef struct ckpt_verdict {
  size_t size;
  const ckpt_item *item;
  uint32_t verdict; /* CKPT_KEEP, ... */
  const char *policy, *reason;
  double wait_s; /* with CKPT_WAIT, and with CKPT_DROP: until its data may go */
  /* Of one that stays and would lose files, since newer ones have them (`newest_only`): what these globs
   * mean, ended by NULL, so much; and until it goes: 0: now; negative: in a later pass, after others. */
  const char *const *lost_globs; /* NULL: it loses none */
  uint64_t lost_files, lost_bytes;
  double lost_wait_s;
} ckpt_verdict;
typedef int ckpt_verdict_fn(void *ctx, const ckpt_verdict *verdict);
typedef struct ckpt_plan_options {
  size_t size;
  const char *uri;
  const char *const *policies, *const *settings;
  const char *policy_dir;
  double max_delete, grace_delete_s;
  uint32_t flags; /* CKPT_NO_DELETE */
} ckpt_plan_options;
/* Tells what retention would do at a target now, and why. Writes nothing. */
int ckpt_plan(ckpt *engine, const ckpt_plan_options *options, ckpt_verdict_fn *fn, void *ctx);

/* ---- policies ---- */

/* A policy that comes with us. All texts are valid during the call. */
typedef struct ckpt_policy {
  size_t size;
  const char *name, *path;
  const char *about; /* what its first comment says */
  const char *text;
  const char *why; /* why its file cannot be read: about and text are NULL then; NULL: it was */
} ckpt_policy;
/* Returns 0 to go on; any other value ends the walk and is returned. */
typedef int ckpt_policy_fn(void *ctx, const ckpt_policy *policy);
/* Tells the policies that a name without a slash means, in the order of their names. `policy_dir`: where
 * they are; NULL: as installed. Needs no run. */
int ckpt_policies(ckpt *engine, const char *policy_dir, ckpt_policy_fn *fn, void *ctx);

/* What is to be said of a policy; the texts are valid during the call. */
typedef struct ckpt_remark {
  size_t size;
  uint32_t word; /* CKPT_FAULT: it does not load, or would fail in a run; CKPT_WARNING: it is
                          * probably not what is meant; CKPT_NOTE: what a run has to bring along */
  uint32_t line, column; /* in the file, from 1; 0: not known */
  const char *topic;     /* one word: "load", "function", "field", "rule", "unit", "metric", ... */
  const char *text;
} ckpt_remark;
/* Returns 0 to go on; any other value ends the check and is returned. */
typedef int ckpt_remark_fn(void *ctx, const ckpt_remark *remark);
typedef struct ckpt_check_options {
  size_t size;
  const char *policy;          /* a name, or the path of a file */
  const char *const *settings; /* "NAME=VALUE"; may be NULL */
  const char *policy_dir;      /* where names are looked up; NULL: as installed */
  const char *dir;             /* a directory with checkpoints, to hold it against; may be NULL */
} ckpt_check_options;
/* Looks for what is wrong with a policy: loads it, calls its functions with made-up events of every kind,
 * and asks whether each rule makes a difference. `fn` (may be NULL) is told each remark. CKPT_EPOLICY:
 * one was a CKPT_FAULT. Writes nothing. Takes less than a second; of a policy that runs
 * into its limits 10 s at most, and as long for a `dir` with very many files. */
int ckpt_policy_check(ckpt *engine, const ckpt_check_options *options, ckpt_remark_fn *fn,
                      void *ctx);

/* What an event of a simulation led to, until the next one comes; all texts are valid during the call. */
typedef struct ckpt_simulated {
  size_t size;
  int64_t index; /* of the event in the file, from 0; -1: a failure that was made up */
  double t;      /* in seconds, as in the file */
  const char *event, *trial;
  uint32_t asked;              /* 1: a policy decided, or the core for it: */
  uint32_t sync;               /* 1: it is to be saved */
  const char *unit;            /* what that is about, */
  const char *policy, *reason; /* and whose word it is */
  /* Names of checkpoints, ended by NULL: committed; of a failed try; let go while they waited; no longer
   * kept. */
  const char *const *saved, *const *failed, *const *let_go, *const *deleted;
  double lost_s; /* work, of a crash */
  /* What came of each of `failed`: "retry 30" (seconds), "skip", "abort": nothing is saved any more. */
  const char *const *remedies;
  /* Names of checkpoints with which a trial goes on whose machine was lost. */
  const char *const *restored;
} ckpt_simulated;
/* Returns 0 to go on; any other value ends the simulation and is returned. */
typedef int ckpt_simulated_fn(void *ctx, const ckpt_simulated *what);
typedef struct ckpt_simulation {
  size_t size;
  uint64_t events, questions;
  uint64_t saved, failed, let_go,
      unsaved; /* failed: tries; unsaved: given up, lost on their way, or never sent to the end */
  uint64_t deleted, kept;                      /* deleted: no longer kept */
  uint64_t bytes_sent, bytes_kept, bytes_most; /* kept: at the end; most: at one moment */
  uint64_t crashes;
  double lost_s;      /* work that crashes have cost */
  double seconds;     /* from the first event to the last thing that happened */
  uint64_t fallbacks; /* so often a policy had no good answer, and the safe one held */
} ckpt_simulation;
/* CKPT_MADE: a checkpoint is complete; CKPT_WANTED: it is to be saved; CKPT_SAVED: it is committed;
 * CKPT_LET_GO: it is kept no longer; CKPT_LOST: the trial's machine is gone. */
enum { CKPT_MADE = 1, CKPT_WANTED, CKPT_SAVED, CKPT_LET_GO, CKPT_LOST };
/* One moment of one trial of a simulation; valid during the call. */
typedef struct ckpt_moment {
  size_t size;
  uint32_t what;            /* CKPT_MADE, ... */
  double t;                 /* in seconds, as in the file */
  uint64_t of;              /* the trial's place among all, from 0 */
  const char *trial, *name; /* name: of the checkpoint, or NULL */
  uint64_t checkpoint; /* its number, from 1, in the order in which they were complete; 0: none */
  double lost_s;       /* CKPT_LOST: work */
} ckpt_moment;
typedef void ckpt_moment_fn(void *ctx, const ckpt_moment *moment);
typedef struct ckpt_simulate_options {
  size_t size;
  const char *events; /* a file: what happened, in JSON Lines, or a trace of a directory */
  const char *const *policies, *const *settings;
  const char *policy_dir;
  double max_delete, grace_delete_s; /* as in ckpt_run_options */
  double
      bandwidth;  /* bytes a second; 0: a save takes no time, unless an event says what it takes */
  double mtbf_s;  /* failures are made up, so far apart in the mean; 0: none */
  uint64_t seed;  /* the same one makes up the same failures */
  uint32_t flags; /* CKPT_NO_DELETE */
  ckpt_moment_fn *moment; /* is told what becomes of each checkpoint, when that is; may be NULL */
  void *moment_ctx;
} ckpt_simulate_options;
/* Tells what policies would have done in a run of which these are the events: the rules that decide are
 * those of a run, and the clock is that of the file. Writes nothing. `fn` and `out` may be NULL.
 * CKPT_EINVAL, CKPT_ELIMIT: a line of the file is wrong; nothing was told then. */
int ckpt_simulate(ckpt *engine, const ckpt_simulate_options *options, ckpt_simulated_fn *fn,
                  void *ctx, ckpt_simulation *out);

enum { CKPT_WOULD_KEEP = 1, CKPT_WOULD_DROP, CKPT_EARLIER, CKPT_LATER };
/* A checkpoint that other policies would have let another fate have; valid during the call. */
typedef struct ckpt_fate {
  size_t size;
  const ckpt_item *item; /* with the fate that it had: life, drop_policy, drop_reason, drop_ns */
  uint32_t what;         /* CKPT_WOULD_KEEP: it was dropped; CKPT_WOULD_DROP: it is kept;
                            CKPT_EARLIER, CKPT_LATER: it was dropped behind a later commit, or an earlier
                            one, than it would be */
  int64_t drop_ns;       /* when it would be dropped; 0: it would be kept */
  uint64_t after;        /* the number of the commit after which that is */
  const char *policy, *reason; /* whose word that is */
} ckpt_fate;
/* Returns 0 to go on; any other value ends the replay and is returned. */
typedef int ckpt_fate_fn(void *ctx, const ckpt_fate *fate);
typedef struct ckpt_replay {
  size_t size;
  uint64_t logs, commits;                 /* logs: those with a commit */
  uint64_t would_keep, would_drop, moved; /* moved: dropped earlier or later */
  /* Kept at the end, and at most at one moment of a log: as it was, and as it would be. What waits for
   * the end of its grace does not count. */
  uint64_t was_kept, kept, was_bytes, bytes, was_most, most;
  uint64_t fallbacks; /* so often a policy had no good answer, and the safe one held */
} ckpt_replay;
/* Tells what these policies would have kept and dropped of all that was committed at a target, had they
 * governed it from its beginning: each difference, in the order of the log. A mark as bad holds from the
 * checkpoint's beginning, and pins are not known. Options as those of ckpt_plan(). Writes nothing. `fn`
 * and `out` may be NULL. */
int ckpt_replay_log(ckpt *engine, const ckpt_plan_options *options, ckpt_fate_fn *fn, void *ctx,
                    ckpt_replay *out);

enum { CKPT_STOOD = 1, CKPT_TO_COME, CKPT_WENT };
/* What is said of a checkpoint at a past moment; valid during the call. */
typedef struct ckpt_past {
  size_t size;
  const ckpt_item *item; /* with the fate that it had */
  uint32_t stance;  /* CKPT_STOOD: it was there; CKPT_TO_COME: it was committed later; CKPT_WENT: it
                            was dropped before */
  uint64_t after;   /* the question is that behind this commit, */
  int64_t after_ns; /* at its time; 0: there was no commit yet */
  uint64_t stood;   /* of so many */
  uint32_t verdict; /* of one that stood: CKPT_KEEP, CKPT_GUARDED, CKPT_LIMITED, CKPT_DROP, */
  const char *policy, *reason; /* and whose word that is */
} ckpt_past;
/* Returns 0 to go on; any other value ends the call and is returned. */
typedef int ckpt_past_fn(void *ctx, const ckpt_past *past);
/* Asks policies a past question again: what they keep of the checkpoints that stood behind entry `at` of
 * each log of a target, with the numbers that these have in it and the time of the last commit until then.
 * What is not in a log is not known: pins, what verified, what a start resumed from, a policy's memory,
 * when a result came and a mark as bad was made (they hold as they do now), and when something was lost (it is taken as
 * there). Tells each commit of each log, in its order. Options as those of ckpt_plan(). Writes nothing. */
int ckpt_replay_at(ckpt *engine, const ckpt_plan_options *options, uint64_t at, ckpt_past_fn *fn,
                   void *ctx);

enum { CKPT_DIFFERENT = 1, CKPT_EQUAL, CKPT_NONE_FOUND };
/* What was found out of one key of two policies; the texts are valid during the call. */
typedef struct ckpt_difference {
  size_t size;
  const char *key; /* "keep", "keep_local", "restore" */
  /* A checkpoint of the shortest list on which they differ, the oldest first; NULL: the word on the key,
   * which comes after them. */
  const char *name;
  const char *facts; /* what of it matters: "c1 (loss = 0, step 1000)" */
  uint32_t a, b;     /* 1: the first policy keeps it; the second one does */
  const char *why_a, *why_b;
  /* With the word on the key. CKPT_EQUAL: on all lists that their rules can tell apart, as far as
   * `searched` says; CKPT_NONE_FOUND: that does not show that they are equal, and `why` says why not. */
  uint32_t verdict;
  const char *why;
  uint64_t checkpoints, lists; /* of the list; of how many lists it was asked */
  /* What was searched, and what was held constant: texts, ended by NULL. */
  const char *const *searched;
  const char *const *held;
} ckpt_difference;
/* Returns 0 to go on; any other value ends the search and is returned. */
typedef int ckpt_difference_fn(void *ctx, const ckpt_difference *difference);
typedef struct ckpt_diff_options {
  size_t size;
  const char *a, *b;           /* two policies: names, or paths of files */
  const char *const *settings; /* "NAME=VALUE", for both; may be NULL */
  const char *policy_dir;      /* where names are looked up; NULL: as installed */
} ckpt_diff_options;
/* Looks for the shortest list of checkpoints of which two policies keep different ones, among made-up ones,
 * for each key that decides what stays. `fn` may be NULL. Takes some seconds, a minute at most; writes nothing.
 * CKPT_EPOLICY: one does not load, or a function of it fails on a list. */
int ckpt_policy_diff(ckpt *engine, const ckpt_diff_options *options, ckpt_difference_fn *fn,
                     void *ctx);

typedef struct ckpt_mark_options {
  size_t size;
  const char *uri, *name; /* name NULL: the newest */
  const char *reason;     /* may be NULL */
  uint32_t good;          /* 1: takes an earlier mark back */
  uint64_t number;        /* not 0: of those only the one with this entry */
  uint32_t flags;         /* CKPT_DRY_RUN: nothing is written; fn is told what would be marked */
} ckpt_mark_options;
/* Marks a live checkpoint as one that does not load: restores choose another, and it does not count
 * as the newest that must be kept. fn (may be NULL) is told which. CKPT_ENOENT. */
int ckpt_mark(ckpt *engine, const ckpt_mark_options *options, ckpt_item_fn *fn, void *ctx);

enum { CKPT_COLLECT_RUN = 4 /* the runs there are to be removed whole: `end`, then their data */ };
typedef struct ckpt_collect_options {
  size_t size;
  const char *uri;       /* a target, or a place above several: every log below it */
  double grace_delete_s; /* as in ckpt_run_options */
  uint32_t flags;        /* CKPT_DRY_RUN | CKPT_COLLECT_RUN */
  const char *remove;    /* not NULL: nothing but what stands at this key, which was told as "left".
                            CKPT_ENOENT: it is in no such place; CKPT_EHELD: it is somebody's */
} ckpt_collect_options;
typedef struct ckpt_collected {
  size_t size;
  const char *log;  /* the place of the log; strings are valid during the call */
  const char *what; /* "attempt", "checkpoint", "upload", "pin", "temporary", "run", ... */
  const char *name; /* its directory or key */
  const char *reason;
  uint64_t bytes; /* freed; 0: not known */
  int32_t status; /* CKPT_OK, or why it stays */
} ckpt_collected;
typedef int ckpt_collected_fn(void *ctx, const ckpt_collected *collected);
/* Removes everything at a target that nobody needs, from any machine, beside a live run too:
 * attempts whose writer is gone, checkpoints that were dropped longer than the grace period ago,
 * expired pins, leftovers of killed processes, uploads of no attempt. Objects that a live writer
 * may still use stay. */
int ckpt_collect(ckpt *engine, const ckpt_collect_options *options, ckpt_collected_fn *fn,
                 void *ctx);

enum { CKPT_REPAIR_TAKE_OVER = 4 /* nobody is at work, or is to be stopped (`take_over`) */ };
typedef struct ckpt_repair_options {
  size_t size;
  const char *uri; /* a target, or a place above several: every log below it */
  uint32_t flags;  /* CKPT_DRY_RUN | CKPT_REPAIR_TAKE_OVER */
} ckpt_repair_options;
typedef struct ckpt_repaired {
  size_t size;
  const char *log;  /* the place of the log; strings are valid during the call */
  const char *what; /* "log": its summary, which comes last; "commit": a save whose entries were
                       lost, and that is a checkpoint; "bad": a checkpoint that is not whole; "left":
                       what nothing proves, which stays where it is */
  const char *name; /* its directory; of a log "" */
  const char *reason;
  uint64_t lost, torn; /* of a log: entries that are absent, or no entries */
  uint64_t epoch;      /* of a log: in which it goes on; 0: nothing is missing, or a dry run */
} ckpt_repaired;
typedef int ckpt_repaired_fn(void *ctx, const ckpt_repaired *repaired);
/* Makes a new log of what is left, where entries of one were lost, and nothing is done with it any
 * more. Nothing is removed. CKPT_EHELD: a writer is alive, or may be. */
int ckpt_repair(ckpt *engine, const ckpt_repair_options *options, ckpt_repaired_fn *fn, void *ctx);

/* ---- archives ---- */

typedef struct ckpt_archive_options {
  size_t size;
  const char *dir;  /* pack: what to pack; unpack: where to, made if absent, else empty */
  const char *file; /* the archive: tar, plain or compressed with gzip or zstd (pack: by its name);
                       unpack: a regular file, or "-": standard input */
  uint64_t bytes_max;   /* unpack: what it may grow to; 0: 1 TiB */
  uint64_t entries_max; /* 0: 4 million */
} ckpt_archive_options;
/* Both work in a helper process. Unpack takes files, directories and symbolic links that stay
 * inside; anything else in the archive (absolute names, "..", devices, links out, more than the
 * limits) is CKPT_EFORMAT or CKPT_ELIMIT, and `dir` is as it was. */
int ckpt_pack(ckpt *engine, const ckpt_archive_options *options);
int ckpt_unpack(ckpt *engine, const ckpt_archive_options *options);

/* Puts the path of a program that comes with us ("ckpt-script") into path[room]: found as `libexec`
 * of ckpt_options says. The caller has to see whether it is there. */
int ckpt_helper(ckpt *engine, const char *name, char *path, size_t room);

/* Returns the process in which policies run, while there is one; else 0. It is a child of ours: a
 * search for processes that a job left running passes it over. */
int ckpt_helper_pid(const ckpt *engine);

/* ---- why ---- */

typedef struct ckpt_why_options {
  size_t size;
  const char *name;  /* a unit's name, or a path: of a unit, or of a file in or outside of one */
  const char *dir;   /* the watched directory; NULL: found from the path */
  const char *state; /* NULL: "<dir>.ckpt" */
  const char *to;    /* the target, for what this machine does not know; may be NULL */
} ckpt_why_options;
typedef struct ckpt_finding {
  size_t size;
  const char *topic; /* "seen", "unit", "rule", "decision", "queue", "save", "store", "retention";
                        "standing": the text is that of ckpt_standing_name(), of this one */
  const char *text;
  int64_t time_ns; /* 0: it holds now, or the time is not known */
} ckpt_finding;
typedef int ckpt_finding_fn(void *ctx, const ckpt_finding *finding);
/* Tells step by step what became of it; *cause gets the one word for it ("committed", "excluded",
 * "no-unit", "marker-missing", "open", "not-quiet", ...: docs/why.md has them all) and *text the
 * sentence. Both are valid until the next call on this engine. */
int ckpt_why(ckpt *engine, const ckpt_why_options *options, ckpt_finding_fn *fn, void *ctx,
             const char **cause, const char **text);
/* Puts the watched directory that a path is in or under, as the state directory beside it tells,
 * into `dir`. CKPT_ENOENT: there is none. */
int ckpt_find_dir(ckpt *engine, const char *path, char *dir, size_t room);
/* Does the same from inside the engine that runs it: it also knows what is going on just now. */
int ckpt_run_why(ckpt_run *run, const char *name, ckpt_finding_fn *fn, void *ctx,
                 const char **cause, const char **text);

#ifdef __cplusplus
}
#endif
#endif
