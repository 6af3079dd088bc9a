/* runlog: the log of one run, which decides who may write and what is there.
 *
 * Entries are objects <prefix>/.ckpt/log/<20 digits>.json, each made once by put-if-absent and
 * never removed. Whoever appends entry n has read 0 to n-1, and its preconditions hold on exactly
 * that.
 *
 *   run      number 0: whose place this is
 *   term     a writer starts; its number is the fencing token
 *   attempt  a save announces the directory that it alone will write
 *   adopt    a newer term takes over an attempt of an older one
 *   sweep    an attempt is given up; nothing follows it
 *   commit   the one atomic publish: the attempt's manifest is valid
 *   drop     a commit is no longer kept: readers stop choosing it
 *   delete   its data may go now; the log keeps its name for ever
 *   bad      a commit does not load: restores choose another one (or it is taken back)
 *   end      the run was removed: nothing of it is kept but its log
 *   snapshot the state after entry `through`: a reader may begin there
 *
 * The state is plain data made by folding entries (runlog_apply); effects are the get and put of
 * one small object. A handle is used by one thread at a time. */
#ifndef CORE_RUNLOG_H
#define CORE_RUNLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "core/manifest.h"
#include "store/store.h"

enum { RUNLOG_FORMAT = 1, RUNLOG_READER = 1, RUNLOG_ID_MAX = 128, RUNLOG_NAME_MAX = 512 };
enum { RUNLOG_DIGEST_MAX = 33 };
enum { RUNLOG_METRICS_MAX = 4096, RUNLOG_REASON_MAX = 256 };
/* Of an entry's nonce as it is remembered; ours have 32 characters. */
enum { RUNLOG_NONCE_MAX = 64 };
#define RUNLOG_NONE UINT64_MAX

/* Who writes. Also what a term says of itself. */
typedef struct runlog_writer {
  char launch[RUNLOG_ID_MAX]; /* shared by all that one launch started; a nonce by default */
  char job[RUNLOG_ID_MAX];    /* the scheduler's job id ("slurm:123"), or empty */
  char host[RUNLOG_ID_MAX];
  char boot[RUNLOG_ID_MAX];
  char state[RUNLOG_NAME_MAX]; /* the state directory on that host, for people */
  /* Digests of the machine's id and of the state directory's (identity.h); "": not known. A log of
   * 1.0 has neither. */
  char machine[RUNLOG_DIGEST_MAX], place[RUNLOG_DIGEST_MAX];
  int64_t pid;
  uint64_t start; /* of that process, in clock ticks since boot */
  uint32_t world; /* how many ranks save together; 0 and 1: one writer does all */
} runlog_writer;

typedef struct runlog_term {
  uint64_t n; /* RUNLOG_NONE: no term yet */
  int64_t time_ns;
  runlog_writer writer;
} runlog_term;

typedef enum runlog_fate { RUNLOG_OPEN, RUNLOG_SWEPT, RUNLOG_COMMITTED } runlog_fate;

typedef struct runlog_attempt {
  uint64_t n;     /* the number of its entry: its name in parts/, staging/ */
  uint64_t owner; /* the term that may go on with it */
  uint32_t world; /* ranks that put a part record each before it can be committed; at least 1 */
  runlog_fate fate;
  char *unit;                   /* "last.ckpt" */
  char *dir;                    /* "last.ckpt", or "last.ckpt.~7" */
  char nonce[RUNLOG_NONCE_MAX]; /* of its entry; "": ask runlog_nonce() */
} runlog_attempt;

typedef enum runlog_life { RUNLOG_LIVE, RUNLOG_DROPPED, RUNLOG_DELETED } runlog_life;

/* What was saved beside a checkpoint (the policy's `with`): <prefix>/.ckpt/with/<attempt>/<term>/,
 * with a manifest of its own. */
typedef struct runlog_with {
  uint64_t term;
  uint64_t files, bytes; /* files 0: there are none */
  digest root;           /* of its manifest's table */
} runlog_with;

typedef struct runlog_commit {
  uint64_t n;
  uint64_t attempt;
  char *unit, *dir; /* the attempt's own strings */
  match_kind kind;
  int64_t step;
  int64_t time_ns;
  uint64_t files, bytes;
  digest root;           /* of the manifest's table */
  char *metrics;         /* a JSON object as text, at most RUNLOG_METRICS_MAX bytes, or NULL */
  char *policy, *reason; /* who wanted it, and why; NULL: not stated */
  runlog_with with;
  bool bad;         /* it does not load: never chosen by itself, never the one that must stay */
  char *bad_reason; /* NULL: not stated */
  runlog_life life;
  char nonce[RUNLOG_NONCE_MAX]; /* of its entry; "": ask runlog_nonce() */
  uint64_t drop;                /* number of the `drop` entry */
  int64_t drop_ns;              /* its time, by its writer's clock */
  char *drop_policy, *drop_reason;
} runlog_commit;

typedef struct runlog_state {
  char run_id[RUNLOG_ID_MAX];   /* empty: no entry 0 yet */
  char nonce[RUNLOG_NONCE_MAX]; /* of entry 0: no other log has it but a copy of this one */
  uint64_t next;                /* entries 0 to next-1 were read */
  bool ended;                   /* by an `end`; the next `run_id` to open a term gets the place */
  uint64_t end;                 /* that entry, and its writer's clock; only while `ended` */
  int64_t end_ns;
  char *end_reason;  /* NULL: not stated */
  uint64_t since;    /* the term with which this run followed one that was removed; 0: none was */
  uint64_t snapshot; /* the newest snapshot's entry; RUNLOG_NONE: none */
  runlog_term term;  /* the newest */
  runlog_attempt *attempts;
  size_t attempt_count, attempt_room;
  runlog_commit *commits; /* in the order of the log: the last one is the newest */
  size_t commit_count, commit_room;
  size_t *plain; /* a hash table of the attempts (index + 1) whose directory is the plain name */
  size_t plain_count, plain_room;
} runlog_state;

void runlog_state_free(runlog_state *s);

/* Folds entry number `s->next` into the state. An entry that breaks a precondition (only a broken
 * writer makes one) changes nothing but `next`, and *ignored (may be NULL) is set to why; an entry
 * of an unknown type or a newer format is ERR_VERSION, one that is no entry ERR_FORMAT. */
int runlog_apply(runlog_state *s, const json_t *entry, const char **ignored, err *e);

/* 0, or ERR_INVAL for what cannot be a unit's name: one component of at most 255 bytes, not ".",
 * "..", ".ckpt". */
int runlog_unit_check(const char *unit, err *e);

/* May the next attempt of `unit` have its plain name, as far as the log alone can tell? Not if an
 * attempt had it, nor if the name could be meant for another unit's later generation ("x.~6"). */
bool runlog_plain_free(const runlog_state *s, const char *unit);

typedef struct runlog runlog;

/* Opens the log at `prefix` ("" for the root of the store; else a group's path) and reads it to its
 * end. A place without a log has an empty state. ERR_CORRUPT if an entry is missing before that
 * end. The store is borrowed. */
int runlog_open(store *s, const char *prefix, runlog **out, err *e);
void runlog_close(runlog *log); /* NULL is fine */

/* What is known; valid until the next call on this handle. */
const runlog_state *runlog_view(const runlog *log);

/* Reads what was appended since. ERR_FENCED if this handle opened a term and a newer one is there.
 */
int runlog_refresh(runlog *log, err *e);

/* For a second handle of the writer that opened `term` by another one: that term is ours here, too,
 * so that runlog_refresh() tells when it is over. */
void runlog_claim(runlog *log, uint64_t term);

/* For the ranks of a launch but the first, which opens the term: from here on the newest term, if
 * it is of this launch, counts as ours (appending and fencing alike). ERR_NOENT: the newest term is
 * another's, so rank 0 has not begun yet. ERR_CONFLICT: it is of the launch, and says another
 * `world`. */
int runlog_follow(runlog *log, const char *launch, uint32_t world, err *e);

/* Opens a term: makes entry 0 if there is none, then appends `term`. Another run's id is
 * ERR_OTHER_RUN, with a text that names both ids, the last commit and --continue-run, unless
 * `continue_run`. Whether an older holder may be pushed aside is asked before, by lease.h. */
int runlog_begin(runlog *log, const char *run_id, const runlog_writer *who, bool continue_run,
                 err *e);

/* Opens a term on the log's own run, unless anything was appended since what is known here: then
 * ERR_CONFLICT. For who found that the newest term's writer is gone: one that comes meanwhile is
 * not fenced. */
int runlog_begin_quiet(runlog *log, const runlog_writer *who, err *e);

/* What runlog_begin says to another run's id, asked without writing, on what is known. */
int runlog_check_run(const runlog *log, const char *run_id, bool continue_run, err *e);

/* The functions below need a term of ours and return ERR_FENCED as soon as a newer one is seen.
 * A collision with another entry is read, checked against and tried again. An answer that was lost
 * is recognised by the entry's nonce. */

/* Announces a save of `unit`. The directory is the plain name if no entry names it and the store
 * has nothing there, else "<unit>.~<this entry's number>". *out is the attempt's number. */
int runlog_attempt_begin(runlog *log, const char *unit, uint64_t *out, err *e);
/* The same for a save that stands whole in a staging named by this nonce, which becomes the
 * entry's. It is appended once: an entry of that nonce that is there already is the one. */
int runlog_attempt_staged(runlog *log, const char *unit, const char *nonce, uint64_t *out, err *e);
/* Takes an open attempt of an older term over. ERR_CONFLICT if it is not open any more. */
int runlog_adopt(runlog *log, uint64_t attempt, err *e);
/* Gives an open attempt up (ours, or one of an older term). Fine if it is swept already. A guest
 * may sweep one whose owner is not the newest term; another one is ERR_HELD. */
int runlog_sweep(runlog *log, uint64_t attempt, err *e);
/* Commits our open attempt with its sealed manifest, from which policy and metrics are taken (those
 * that are too large stay in the manifest alone). `note` may be NULL. *out (may be NULL) is the
 * commit's number. */
typedef struct runlog_note {
  const char *reason; /* why it was wanted; may be NULL */
  runlog_with with;
} runlog_note;
int runlog_commit_attempt(runlog *log, uint64_t attempt, const manifest *m, const runlog_note *note,
                          uint64_t *out, err *e);

/* Marks a live commit as no longer kept, or one that was dropped as deletable. With a term of ours,
 * or as a guest without one (`rm` from elsewhere): a guest fences nobody, and never makes entry 0.
 * `may` (NULL: yes) is asked on the log as the entry follows it, anew whenever somebody else
 * appended in between: ERR_CONFLICT if it says no. Fine if it is so already. ERR_INVAL: there is no
 * such commit, or one that is live is to be deleted. */
typedef bool runlog_may_fn(void *ctx, const runlog_state *state, const runlog_commit *commit);
int runlog_drop(runlog *log, uint64_t commit, const char *policy, const char *reason,
                runlog_may_fn *may, void *ctx, err *e);
int runlog_delete(runlog *log, uint64_t commit, runlog_may_fn *may, void *ctx, err *e);

/* Says that a live commit does not load, or (`bad` false) takes that back. As a guest, too. Fine if
 * it is so already. */
int runlog_mark(runlog *log, uint64_t commit, bool bad, const char *reason, err *e);

/* Removes the run: nothing of it is live any more, its open attempts are swept, and a term that is
 * open can append nothing (ERR_FENCED). As a guest, too. `may` as above, with commit NULL. */
int runlog_end(runlog *log, const char *reason, runlog_may_fn *may, void *ctx, err *e);

/* Appends a snapshot if enough was appended since the last one that reading from there is worth it,
 * and points the head hint at it. Needs a term of ours. A failure loses nothing. */
int runlog_snapshot(runlog *log, err *e);

const runlog_attempt *runlog_find_attempt(const runlog_state *s, uint64_t n);
/* The attempt whose entry has this nonce; NULL if there is none, or that is not known. */
const runlog_attempt *runlog_find_nonce(const runlog_state *s, const char *nonce);
/* The commit of that attempt; NULL if it has none. */
const runlog_commit *runlog_commit_of(const runlog_state *s, uint64_t attempt);
/* The commit of that number; NULL if there is none. */
const runlog_commit *runlog_find_commit(const runlog_state *s, uint64_t n);
/* The newest live commit of a unit name that is not bad; NULL if there is none. `unit` NULL: of
 * all. */
const runlog_commit *runlog_newest(const runlog_state *s, const char *unit);
/* The same, with those that are bad, dropped or deleted; not those of a run that was removed. */
const runlog_commit *runlog_newest_ever(const runlog_state *s, const char *unit);
/* The commit whose directory is exactly `dir` ("last.ckpt.~7"), for restoring a generation; dropped
 * and deleted ones too. */
const runlog_commit *runlog_find_dir(const runlog_state *s, const char *dir);

/* The nonce of entry 0, or of the entry of an attempt or a commit. Snapshots of 1.0 do not have it:
 * then that entry is read, once. ERR_INVAL: no such entry is known. */
int runlog_nonce(runlog *log, uint64_t n, const char **out, err *e);

/* The name of an attempt in keys, in its manifest and in its objects' marks: the nonce of its
 * entry, or where that is not 32 hex digits (of another program) the entry's number. */
int runlog_attempt_id(runlog *log, uint64_t n, char out[RUNLOG_NONCE_MAX], err *e);

/* When entry `n` came into being by the store's own clock, which no writer's clock can shorten. */
int runlog_entry_time(const runlog *log, uint64_t n, int64_t *out, err *e);

/* The place that it was opened at. */
const char *runlog_prefix(const runlog *log);

/* The key of what lies at a log's place: "<prefix>/<rest>". ERR_LIMIT if it is too long. */
int runlog_join(const char *prefix, const char *rest, char out[STORE_KEY_MAX], err *e);
/* That of its entry `n`. */
int runlog_key_entry(const char *prefix, uint64_t n, char out[STORE_KEY_MAX], err *e);
/* Keys, for those who move the data: "<prefix>/<dir>", "<prefix>/.ckpt/staging/<n>". */
int runlog_key_dir(const runlog *log, const char *dir, char out[STORE_KEY_MAX], err *e);
int runlog_key_staging(const runlog *log, uint64_t attempt, char out[STORE_KEY_MAX], err *e);
/* "<prefix>/.ckpt/with/<attempt>" and, unless `term` is RUNLOG_NONE, "/<term>" behind it. */
int runlog_key_with(const char *prefix, uint64_t attempt, uint64_t term, char out[STORE_KEY_MAX],
                    err *e);
/* The same for the part records: "<prefix>/.ckpt/parts/<attempt>[/<term>]". */
int runlog_key_parts(const runlog *log, uint64_t attempt, uint64_t term, char out[STORE_KEY_MAX],
                     err *e);

/* Calls fn with the prefix of each log below `prefix` (itself included), in byte order: the groups
 * of a target. What a log names as a checkpoint's directory is not entered. Depth at most 16. What
 * fn returns, if it is not 0, ends the walk and is returned. */
typedef int runlog_group_fn(void *ctx, const char *prefix, err *e);
int runlog_groups(store *s, const char *prefix, runlog_group_fn *fn, void *ctx, err *e);
/* The same for a place that somebody named, and that may be a whole disk: it ends after so many
 * directories without a log, with ERR_NOENT where it found none, else with a warning. Logs that
 * cannot be read are passed over if there is an `unread`, which is told each, with why (what is
 * below that one is not entered) and returns as fn does. */
typedef int runlog_unread_fn(void *ctx, const char *prefix, int status, const char *why);
int runlog_groups_all(store *s, const char *prefix, runlog_group_fn *fn, runlog_unread_fn *unread,
                      void *ctx, err *e);

#endif
