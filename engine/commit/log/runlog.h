/* runlog: the log of one run, which decides who may write and which checkpoints there are.
 *
 * Entries are objects <prefix>/.ckpt/log/<20 digits>.json, each made once by put-if-absent and
 * never removed. Whoever appends entry n has read 0 to n-1, and its preconditions hold on exactly
 * that.
 *
 *   run      number 0: the run that the place belongs to
 *   term     a writer starts; its number is the fencing token
 *   attempt  a save announces the directory that it alone will write
 *   adopt    a newer term takes over an attempt of an older one
 *   sweep    an attempt is given up; nothing follows it
 *   commit   the one atomic publish: the attempt's manifest is valid
 *   drop     a commit is no longer kept: readers stop choosing it
 *   delete   its data may go now; the log keeps its name for ever
 *   bad      a commit does not load: restores choose another one (or it is taken back)
 *   thin     files of an older commit go, since newer ones are there: it is a whole one without them
 *   end      the run was removed: nothing of it is kept but its log
 *   snapshot the state after entry `through`: a reader may begin there
 *   moved    a repair has put it where an entry was lost, or behind the end: the log goes on in
 *            another epoch (runlog_epoch.h)
 *
 * The state is plain data made by folding entries (runlog_apply); effects are the get and put of
 * one small object. A handle is used by one thread at a time. */
#ifndef COMMIT_LOG_RUNLOG_H
#define COMMIT_LOG_RUNLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "commit/manifest/manifest.h"
#include "commit/manifest/manifest_thin.h"
#include "store/store.h"

enum { RUNLOG_FORMAT = 1, RUNLOG_ID_MAX = 128, RUNLOG_NAME_MAX = 512 };
/* An entry asks for the reader of 1.0, but for one that 1.0 would take for a breach of the rules. */
enum { RUNLOG_READER = 2, RUNLOG_READER_1 = 1 };
enum { RUNLOG_DIGEST_MAX = 33, RUNLOG_JOINED_MAX = 64 };
enum { RUNLOG_METRICS_MAX = 4096, RUNLOG_REASON_MAX = 256, RUNLOG_NEEDS_MAX = 4096 };
/* The last lines of a job, kept with a mark: so many at most, each as long as a reason. */
enum { RUNLOG_LINES = 12, RUNLOG_LINES_MAX = RUNLOG_LINES * RUNLOG_REASON_MAX };
/* The room for an entry's nonce in memory; ours have 32 characters. */
enum { RUNLOG_NONCE_MAX = 64 };
#define RUNLOG_NONE UINT64_MAX

/* A writer, as a term describes it. */
typedef struct runlog_writer {
  char launch[RUNLOG_ID_MAX]; /* shared by all that one launch started; a nonce by default */
  char job[RUNLOG_ID_MAX];    /* the scheduler's job ("slurm:CLUSTER/123", of 1.0 "slurm:123"), or
                               * empty */
  char host[RUNLOG_ID_MAX];
  char boot[RUNLOG_ID_MAX];
  char state[RUNLOG_NAME_MAX]; /* the state directory on that host, for people */
  /* Digests of the machine's id and of the state directory's (identity.h); "": not known. A log of
   * 1.0 has neither. */
  char machine[RUNLOG_DIGEST_MAX], place[RUNLOG_DIGEST_MAX];
  char pids
      [RUNLOG_DIGEST_MAX]; /* digest of the space in which `pid` and `start` hold on that boot (proc_space());
                                  * "": not known */
  char flags[RUNLOG_DIGEST_MAX]; /* digest of the job's command with its flags; "": not known */
  bool epochs;    /* it asks for a later epoch after each entry (runlog_epoch.h); set by who opens a
                * term */
  bool any_flags; /* the user said that other flags are the same run all the same */
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
  uint64_t n;     /* the number of its entry, which names it in parts/, staging/ */
  uint64_t owner; /* the term that may go on with it */
  uint32_t world; /* ranks that put a part record each before it can be committed; at least 1 */
  runlog_fate fate;
  char *unit;                   /* "last.ckpt" */
  char *dir;                    /* "last.ckpt", or "last.ckpt.~7" */
  char nonce[RUNLOG_NONCE_MAX]; /* of its entry; "": ask runlog_nonce() */
  bool plain_keys;              /* in a bucket its files are spelt as they are; else as by 1.0 */
} runlog_attempt;

typedef enum runlog_life { RUNLOG_LIVE, RUNLOG_DROPPED, RUNLOG_DELETED } runlog_life;

/* The companions of a checkpoint (the files of the policy's `with`):
 * <prefix>/.ckpt/with/<attempt>/<term>/, with a manifest of their own. */
typedef struct runlog_companions {
  uint64_t term;
  uint64_t files, bytes; /* files 0: there are none */
  digest root;           /* of its manifest's table */
} runlog_companions;

/* What is gone of a commit since newer ones are there (manifest_thin.h). */
typedef struct runlog_thinned {
  names globs;     /* empty: it has all that was committed */
  uint64_t newest; /* so many newer good ones of its kind must be there while files are taken */
  char *policy, *reason;
} runlog_thinned;

typedef struct runlog_commit {
  uint64_t n;
  uint64_t attempt;
  char *unit, *dir; /* the attempt's own strings */
  match_kind kind;
  int64_t step;
  int64_t time_ns;
  uint64_t files, bytes; /* of what is not gone */
  uint64_t left_out;     /* files that excludes left out, or that are gone; 0: none, or of 1.0 */
  uint64_t left_here;    /* of these, those that were left out of this one alone, or are gone */
  runlog_thinned thin;
  bool above;            /* a file above the checkpoints of other logs, and no checkpoint */
  digest root;           /* of the manifest's table */
  digest manifest;       /* of its whole text; empty: not known (1.0) */
  char *metrics;         /* a JSON object as text, at most RUNLOG_METRICS_MAX bytes, or NULL */
  char *policy, *reason; /* who wanted it, and why; NULL: not stated */
  runlog_companions companions;
  char *needs; /* names of other units that a list of it names, each with a slash behind it; NULL:
                     * none */
  bool bad;    /* it does not load: never chosen by default, and never the one that must
                     * stay */
  char *bad_reason; /* NULL: not stated */
  char *bad_lines;  /* what the job said last, a line's end between lines; NULL: not known */
  runlog_life life;
  char nonce[RUNLOG_NONCE_MAX]; /* of its entry; "": ask runlog_nonce() */
  uint64_t drop;                /* number of the `drop` entry */
  int64_t drop_ns;              /* its time, by its writer's clock */
  char *drop_policy, *drop_reason;
} runlog_commit;

typedef struct runlog_state {
  char run_id[RUNLOG_ID_MAX]; /* empty: no entry 0 yet */
  char (*joined)[RUNLOG_ID_MAX];
  size_t joined_count; /* ids of other runs that went on here by a user's word: theirs, too.
                                 * At most RUNLOG_JOINED_MAX: the word is needed each time then */
  char flags[RUNLOG_DIGEST_MAX]; /* of the newest term that says them */
  uint64_t flags_since;          /* what was committed before this entry was so under other flags
                                  * than those, and nobody said that this is the same; 0: nothing */
  char nonce[RUNLOG_NONCE_MAX];  /* of entry 0: only a copy of this log shares it */
  uint64_t next;                 /* entries 0 to next-1 were read */
  bool ended;                    /* by an `end`; the next `run_id` that opens a term gets the
                                 * place */
  uint64_t end;                  /* that entry, and its writer's clock; only while `ended` */
  int64_t end_ns;
  char *end_reason;  /* NULL: not stated */
  uint64_t since;    /* the term with which this run followed a removed one; 0: it is the first */
  uint64_t snapshot; /* the newest snapshot's entry; RUNLOG_NONE: none */
  uint64_t moved;    /* a repair has closed the log, which goes on in that epoch; 0: it has not */
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

/* Returns 0, or ERR_INVAL for a text that cannot be a unit's name: it must be one component of at
 * most 255 bytes, not ".", "..", ".ckpt". */
int runlog_unit_check(const char *unit, err *e);

/* True if the next attempt of `unit` may have its plain name, as far as the log alone can tell. It
 * may not if an attempt had it, nor if the name could be meant for another unit's later generation
 * ("x.~6"). */
bool runlog_plain_free(const runlog_state *s, const char *unit);

typedef struct runlog runlog;

/* Opens the log at `prefix` ("" for the root of the store; else a group's path) and reads it to its
 * end. A place without a log has an empty state. ERR_CORRUPT if an entry is missing before that
 * end. The store is borrowed. */
int runlog_open(store *s, const char *prefix, runlog **out, err *e);
/* Does the same, and goes by no snapshot: each entry is read, and proven as far as it can be. */
int runlog_open_whole(store *s, const char *prefix, runlog **out, err *e);
void runlog_close(runlog *log); /* NULL is fine */
/* Makes a handle of its own, without a term, that knows what `log` knows; nothing is read. */
int runlog_copy(const runlog *log, runlog **out, err *e);

/* Returns the state as it is known; it is valid until the next call on this handle. */
const runlog_state *runlog_view(const runlog *log);

/* Returns ERR_CORRUPT, with what was noticed, if what was read of the log contradicts itself: a text
 * is not that of its sum, an entry follows another one than its writer had read. Who only reads
 * has been warned, and goes on; everything that appends fails so, and nothing may be removed. */
int runlog_check_damage(const runlog *log, err *e);

/* How much of a log that was opened as a whole is proven. */
typedef struct runlog_proven {
  uint64_t entries;
  uint64_t unproven; /* of them without a digest of their own: 1.0 made them */
  uint64_t
      behind; /* came after the commit that the head names: that they are all nobody can tell */
} runlog_proven;
runlog_proven runlog_tell_proven(const runlog *log);

/* Reads the entries that were appended since. ERR_FENCED if this handle opened a term and a newer
 * one is there, or the log was repaired. Without a term the handle goes on in the repaired log. */
int runlog_refresh(runlog *log, err *e);
/* The same, and looks behind the end: an entry that was lost may have let something go, or one behind
 * it (ERR_CORRUPT). One request more. */
int runlog_refresh_whole(runlog *log, err *e);

/* For who waits for the next entry: reads that one, and asks nothing else. Returns 1 if it was there, 0 if it is
 * not yet; ERR_FENCED as above. What was read stays in doubt. */
int runlog_read_next(runlog *log, err *e);

/* For who is about to tell of the last entry that was read, which is another rank's commit: does it count? Its
 * writer asks that before the head names it, so where the head does, it is one request; else all is asked
 * that runlog_refresh() asks. */
int runlog_confirm(runlog *log, err *e);

/* True while nobody has asked, since the last entry of ours was put, whether a repair was begun
 * meanwhile: then what the log says may be forgotten. runlog_refresh() asks. */
bool runlog_in_doubt(const runlog *log);

/* Asks now: ERR_FENCED. For who is about to remove what the log has let go. */
int runlog_ask_epoch(runlog *log, err *e);

/* Makes `term` ours here, too: for a second handle of the writer that opened it by another one, so
 * that runlog_refresh() tells when it is over. */
void runlog_claim(runlog *log, uint64_t term);

/* For every rank of a launch but the first, which opens the term: from here on the newest term, if
 * it is of this launch, counts as ours (appending and fencing alike). ERR_NOENT: the newest term is
 * another's, so rank 0 has not begun yet. ERR_CONFLICT: it is of the launch, and says another
 * `world`. Who follows already reads on to the end, and what was read stays in doubt. */
int runlog_follow(runlog *log, const char *launch, uint32_t world, err *e);

/* By what a run asks for a place. */
typedef struct runlog_title {
  const char *id;
  const char *former; /* the id that 1.0 gave the same run; NULL: none */
  bool continue_run;  /* the user's word: another run's place will do */
  uint64_t vacant; /* the place is nobody's (nothing was ever committed, and nobody is at work), as
                       * long as this is its next entry; 0: it is somebody's */
  /* Asked whether the newest term's writer may be pushed aside, when that term was `newest`; false:
   * whoever it is may be. */
  bool asked;
  uint64_t newest;
} runlog_title;

/* True if the place belongs to a run of this id: by entry 0, or since it joined. */
bool runlog_admits(const runlog_state *s, const char *run_id);

/* Opens a term: makes entry 0 if there is none, then appends `term`. A run that the place does not
 * belong to is ERR_OTHER_RUN, with a text that names both ids, the last commit and what to do,
 * unless its title lets it in: then it has joined, and needs no title later. lease.h tells before
 * whether an older holder may be pushed aside; where another one came since (title->asked), ERR_CONFLICT. */
int runlog_begin_as(runlog *log, const runlog_title *title, const runlog_writer *who, err *e);

/* Does the same with an id and the user's word alone. */
int runlog_begin(runlog *log, const char *run_id, const runlog_writer *who, bool continue_run,
                 err *e);

/* Opens a term on the log's own run, unless anything was appended since the last read: then
 * ERR_CONFLICT. It is for a caller that found that the newest term's writer is gone: a writer that
 * comes meanwhile is not fenced. */
int runlog_begin_quiet(runlog *log, const runlog_writer *who, err *e);

/* Gives the answer of runlog_begin_as, from the state as it is known, without writing. */
int runlog_check_run(const runlog *log, const runlog_title *title, err *e);

/* The functions below need a term of ours and return ERR_FENCED as soon as a newer one is seen.
 * A collision with another entry is read, checked against and tried again. An answer that was lost
 * is recognised by the entry's nonce. */

/* Announces a save of `unit`. The directory is the plain name if no entry names it and the store
 * has nothing there, else "<unit>.~<this entry's number>". *out is the attempt's number. */
int runlog_attempt_begin(runlog *log, const char *unit, uint64_t *out, err *e);
/* Does the same for a save that stands whole in a staging named by this nonce, which becomes the
 * entry's. It is appended once: if an entry of that nonce is there already, that one is
 * returned. */
int runlog_attempt_staged(runlog *log, const char *unit, const char *nonce, uint64_t *out, err *e);
/* Takes an open attempt of an older term over. ERR_CONFLICT if it is not open any more. */
int runlog_adopt(runlog *log, uint64_t attempt, err *e);
/* True if a repair of the log has found this attempt: it may have been committed before. */
bool runlog_was_found(const runlog *log, uint64_t attempt);
/* Gives an open attempt up (ours, or one of an older term). Fine if it is swept already. A guest
 * may sweep one whose owner is not the newest term; another one is ERR_HELD. */
int runlog_sweep(runlog *log, uint64_t attempt, err *e);
/* Commits our open attempt with its sealed manifest, from which policy and metrics are taken (those
 * that are too large stay in the manifest alone). `note` may be NULL. *out (may be NULL) is the
 * commit's number. */
typedef struct runlog_note {
  const char *reason; /* why it was wanted; may be NULL */
  runlog_companions companions;
  const char *needs; /* as in the commit; at most RUNLOG_NEEDS_MAX bytes; may be NULL */
} runlog_note;
int runlog_commit_attempt(runlog *log, uint64_t attempt, const manifest *m, const runlog_note *note,
                          uint64_t *out, err *e);

/* Marks a live commit as no longer kept, or a dropped one as deletable. It works with a term of
 * ours, or as a guest without one (`rm` from elsewhere): a guest fences nobody, and never makes
 * entry 0. `may` (NULL: yes) is asked on the log as the entry follows it, anew whenever somebody
 * else appended in between: ERR_CONFLICT if it says no. It is fine if the commit is so already.
 * ERR_INVAL: there is no such commit, or a live one is to be deleted. */
typedef bool runlog_may_fn(void *ctx, const runlog_state *state, const runlog_commit *commit);
int runlog_drop(runlog *log, uint64_t commit, const char *policy, const char *reason,
                runlog_may_fn *may, void *ctx, err *e);
int runlog_delete(runlog *log, uint64_t commit, runlog_may_fn *may, void *ctx, err *e);

/* Says that files of a live commit may go, those that `globs` mean: from here on it is a checkpoint of
 * `rest`. It needs a term of ours, and takes a commit that is neither bad nor thin yet (ERR_CONFLICT).
 * `may` is asked as above. It is fine if the same globs are gone of it already. */
int runlog_thin(runlog *log, uint64_t commit, const runlog_thinned *how, const manifest_rest *rest,
                runlog_may_fn *may, void *ctx, err *e);

/* Says that a live commit does not load, or (`bad` false) takes that back. It works as a guest,
 * too, and is fine if the commit is so already. */
int runlog_mark(runlog *log, uint64_t commit, bool bad, const char *reason, err *e);
/* Marks it bad, and keeps the last lines of the job that failed with it; "": they are not known. */
int runlog_mark_failed(runlog *log, uint64_t commit, const char *reason, const char *lines, err *e);

/* Gives a live commit other metrics, a JSON object as text: those that were reported after it. It is
 * fine if it has them already, or is not live any more. */
int runlog_tell_numbers(runlog *log, uint64_t commit, const char *metrics, err *e);

/* Removes the run: nothing of it is live any more, its open attempts are swept, and a term that is
 * open can append nothing (ERR_FENCED). It works as a guest, too. `may` is asked as above, with
 * commit NULL. */
int runlog_end(runlog *log, const char *reason, runlog_may_fn *may, void *ctx, err *e);

/* Appends a snapshot, if so much was appended since the last one that readers gain by it, and
 * points the head hint at it. Needs a term of ours. A failure loses nothing. */
int runlog_snapshot(runlog *log, err *e);

const runlog_attempt *runlog_find_attempt(const runlog_state *s, uint64_t n);
/* Returns the attempt whose entry has this nonce; NULL if there is none, or its nonce is not
 * known. */
const runlog_attempt *runlog_find_nonce(const runlog_state *s, const char *nonce);
/* Returns the commit of that attempt; NULL if it has none. */
const runlog_commit *runlog_commit_of(const runlog_state *s, uint64_t attempt);
/* Returns the commit of that number; NULL if there is none. */
const runlog_commit *runlog_find_commit(const runlog_state *s, uint64_t n);
/* True if a list that was saved with the commit names that unit. */
bool runlog_commit_needs(const runlog_commit *c, const char *unit);
/* Returns the newest live commit of a unit name that is not bad; NULL if there is none. `unit`
 * NULL: the newest checkpoint of all: a file above the checkpoints of other logs is none. */
const runlog_commit *runlog_newest(const runlog_state *s, const char *unit);
/* Does the same, bad, dropped and deleted commits included; but not those of a run that was
 * removed. */
const runlog_commit *runlog_newest_ever(const runlog_state *s, const char *unit);
/* Returns the commit whose directory is exactly `dir` ("last.ckpt.~7"), for restoring a generation;
 * dropped and deleted ones too. */
const runlog_commit *runlog_find_dir(const runlog_state *s, const char *dir);

/* Gives the nonce of entry 0, or of the entry of an attempt or a commit. Snapshots of 1.0 do not
 * have it: then that entry is read, once. ERR_INVAL: no such entry is known. */
int runlog_nonce(runlog *log, uint64_t n, const char **out, err *e);

/* Gives the name of an attempt in keys, in its manifest and in its objects' marks: the nonce of its
 * entry, or where that is not 32 hex digits (of another program) the entry's number. */
int runlog_attempt_id(runlog *log, uint64_t n, char out[RUNLOG_NONCE_MAX], err *e);

/* Tells when entry `n` came into being by the store's own clock, which no writer's clock can
 * shorten. Of one that was lost: when the log was repaired, which was later. */
int runlog_entry_time(const runlog *log, uint64_t n, int64_t *out, err *e);

/* Returns the prefix that it was opened at. */
const char *runlog_prefix(const runlog *log);

/* Makes the key "<prefix>/<rest>" of an object at a log's place. ERR_LIMIT if it is too long. */
int runlog_join(const char *prefix, const char *rest, char out[STORE_KEY_MAX], err *e);
/* Makes the key of its entry `n`. */
int runlog_key_entry(const char *prefix, uint64_t n, char out[STORE_KEY_MAX], err *e);
/* These make the keys of an attempt's data: "<prefix>/<dir>", "<prefix>/.ckpt/staging/<n>". */
int runlog_key_dir(const runlog *log, const char *dir, char out[STORE_KEY_MAX], err *e);
int runlog_key_staging(const runlog *log, uint64_t attempt, char out[STORE_KEY_MAX], err *e);
/* Makes the key of companions: "<prefix>/.ckpt/with/<attempt>" and, unless `term` is RUNLOG_NONE,
 * "/<term>" behind it. */
int runlog_key_companions(const char *prefix, uint64_t attempt, uint64_t term,
                          char out[STORE_KEY_MAX], err *e);
/* Makes the key of part records: "<prefix>/.ckpt/parts/<attempt>[/<term>]". */
int runlog_key_parts(const runlog *log, uint64_t attempt, uint64_t term, char out[STORE_KEY_MAX],
                     err *e);

/* Calls `fn` with each log below `prefix` (itself included), in byte order: the groups of a target.
 * The log is open during the call, and nobody has to read it once more. A directory that a log names
 * as a checkpoint's is not entered. The depth is at most 16. If `fn` returns other than 0, that ends the walk and is returned. */
typedef int runlog_group_fn(void *ctx, runlog *log, err *e);
int runlog_groups(store *s, const char *prefix, runlog_group_fn *fn, void *ctx, err *e);
/* Does the same for a place that somebody named, and that may be a whole disk: it ends after so
 * many directories without a log, with ERR_NOENT where it found none, else with a warning. Logs
 * that cannot be read are passed over if there is an `unread`: it is told each, with the reason,
 * returns as `fn` does, and nothing below that log is entered. */
typedef int runlog_unread_fn(void *ctx, const char *prefix, int status, const char *why);
int runlog_groups_all(store *s, const char *prefix, runlog_group_fn *fn, runlog_unread_fn *unread,
                      void *ctx, err *e);

/* Adds the member `sum` to the text of an object; pins have one, too. */
int runlog_seal(buf *text, err *e);
/* False if an object has a sum that is not that of its text. */
bool runlog_sum_holds(const json_t *object, const buf *text);

#endif
