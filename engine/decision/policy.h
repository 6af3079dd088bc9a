/* policy: decides what a run does with a unit, as data. Pure: facts in, decision out; it never sees
 * a store.
 *
 * It has two parts. The built-in safe decision saves what is complete, and keeps everything. The
 * chain of policies that governs a run is evaluated by the other side of a policy_link: each answer
 * is checked against the vocabulary here. If anything goes wrong with it (an error, a timeout, a
 * dead helper, nonsense), that gives the safe decision, a warning in the log, and one more in
 * policy_fallbacks(). */
#ifndef DECISION_POLICY_H
#define DECISION_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/log.h"
#include "base/names.h"
#include "event/detect.h"
#include "decision/policy_files.h"
#include "decision/policy_link.h"
#include "event/rules.h"

enum {
  POLICY_NAME_MAX = 64,
  POLICY_REASON_MAX = 256,
  POLICY_MEMORY_MAX = 64 << 10,
  POLICY_FILE_MAX = 256 << 10 /* the helper takes no longer ones */
};

typedef enum policy_action {
  POLICY_WAIT, /* not now; asked again when the unit changes its state */
  POLICY_SAVE,
  POLICY_SAVE_IF_SOUND, /* save it if a structural check passes */
  POLICY_SKIP,          /* complete, and not wanted now; a later event may want it */
} policy_action;

typedef enum policy_queue {
  POLICY_NEWEST,   /* a waiting older save of the same kind is dropped from the queue */
  POLICY_ALL,      /* each one has its turn */
  POLICY_NO_QUEUE, /* "skip": not saved if another save of its group runs or waits */
  POLICY_BLOCK,    /* as all; whoever reported it waits for it (`notify --wait`) */
} policy_queue;

typedef struct decision {
  policy_action action;
  policy_queue queue;
  double again_s; /* when the policy may say otherwise though nothing happens; 0: it would not */
  char policy[POLICY_NAME_MAX];
  char reason[POLICY_REASON_MAX];
} decision;

/* Makes the safe decision. */
decision policy_builtin(const detect_unit *facts);

/* ---- the shipped policies ---- */

/* One of them; valid during the call. */
typedef struct policy_shipped_one {
  const char *name, *path;
  const char *about; /* what its first comment says, in one line */
  const char *text;
  const char *why; /* why its file cannot be read: about and text are NULL then; NULL: it was */
} policy_shipped_one;
/* Returns 0 to go on; any other value ends the walk and is returned. */
typedef int policy_shipped_fn(void *ctx, const policy_shipped_one *one);

/* Tells each file of the directory in which names of policies are looked up (`dir`: as in
 * policy_options), in the order of their names. */
int policy_shipped(const io *io, const char *dir, policy_shipped_fn *fn, void *ctx, err *e);

/* ---- the chain of a run ---- */

typedef struct policy policy;

typedef struct policy_options {
  const io *io;
  const log_sink *log;
  policy_link *link;         /* borrowed; may be NULL without names */
  const char *id;            /* the run's, unique on the link */
  const char *const *names;  /* "default", or a path (has a slash, or ends in .lua); asked in this
                                  order; NULL: the built-in rule alone */
  const policy_files *files; /* those of the names, read already; NULL: policy_open() reads them */
  const char *const *settings; /* "NAME=VALUE"; the environment's CKPT_O_<NAME> stand behind them */
  const char *dir; /* where names are looked up; NULL: $CKPT_POLICIES, else `policies` or
                      `../share/ckpt-lua/policies` beside the program, else as installed */
  /* These come from the command line, before the policies' own: as rules_custom() takes them. */
  const char *const *units, *const *excludes, *const *markers;
  int64_t quiet_ns; /* < 0: not given */
  bool untried;     /* its functions are not tried with made-up facts: somebody else looks at it */
  bool apart;       /* policies of one name in different files are different ones */
} policy_options;

/* Reads and loads the chain. A file that is not there, does not load, or a setting that no policy
 * has or that is of the wrong type is an error (ERR_INVAL, ERR_POLICY: a usage error),
 * as is a helper that cannot be started: a run does not begin under another rule than the user's.
 */
int policy_open(const policy_options *options, policy **out, err *e);
void policy_close(policy *p); /* NULL is fine */

const rules *policy_rules(const policy *p); /* valid for p's life */
const char *policy_names(const policy *p);  /* "mine, default"; "builtin" */
/* Returns the i-th thing that the chain has to say at the start; NULL after the last. */
const char *policy_note(const policy *p, size_t i);
uint64_t policy_fallbacks(const policy *p);
/* Why there was none of its answers, the last time: "keep: it raised an error: ..."; "": there never was such a time. */
const char *policy_fault(const policy *p);
/* True if they are of the same texts, by the same settings. */
bool policy_same(const policy *a, const policy *b);

/* These return the names of marker files (`markers = {...}`); NULL: none. */
const char *policy_null_marker(const policy *p);
const char *policy_temp_marker(const policy *p);

/* Has a chain that was just opened with these options say of what a checkpoint is, and when it is complete, what
 * the one before says: `unit`, `above`, `exclude`, `complete`, `markers` and `with`. What it does not name it takes over;
 * ERR_POLICY: it names something else. */
int policy_take_shape(policy *p, const policy *before, const policy_options *options, err *e);
/* The keys that it took over, and that mean something else by themselves: "markers, with"; "": none. */
const char *policy_stays(const policy *p);

/* True if the core lets older generations of names go that are written again and again: no policy
 * has `keep`, and none says `keep_in_place = "all"`. */
bool policy_keeps_few(const policy *p);
/* Tells by the chain's rules whether the next save of this unit has the same name. `prefix` is its
 * group's. What is no unit by them has none. */
typedef enum policy_reuse {
  POLICY_NEW_NAME,
  POLICY_SAME_IF_FIXED, /* the number in it may be a part of what it is called */
  POLICY_SAME_NAME,
} policy_reuse;
policy_reuse policy_reuses(const policy *p, const char *prefix, const char *unit, bool is_dir);

/* Returns the globs of companions (`with = {...}`; without it those of the known frameworks), ended by
 * NULL. Links to checkpoints are companions without being named. */
const char *const *policy_companions(const policy *p);

/* Files that only the newest good checkpoints of a kind keep (`newest_only`). */
enum { POLICY_NEWEST_GLOBS = 64 };
typedef struct policy_newest_only {
  names globs;     /* each passes match_anywhere_check(); empty: there are no such files */
  uint64_t newest; /* so many newer ones have them, or they stay */
  char policy[POLICY_NAME_MAX];
} policy_newest_only;
const policy_newest_only *policy_newest(const policy *p);

typedef enum policy_hook {
  POLICY_READY,
  POLICY_SYNC,
  POLICY_QUEUE,
  POLICY_EXCLUDE, /* its functions; its globs are of the rules */
  POLICY_KEEP,
  POLICY_KEEP_LOCAL,
  POLICY_RESTORE,
  POLICY_ON_ERROR,
  POLICY_ON_PREEMPT,
  POLICY_ON_COMMITTED,
  POLICY_ON_FAILED,
  POLICY_HOOKS
} policy_hook;
bool policy_has(const policy *p, policy_hook hook);

/* The hooks of policy_decide(): those of a checkpoint that is complete. */
enum { POLICY_DECIDING = POLICY_QUEUE + 1 };

/* That a hook was asked about some content, and the memory that it was handed. Asked again it is
 * handed that one, and what it remembers stays as it is: it counts one thing once. */
typedef struct policy_asked {
  bool yes;
  char *memory; /* malloced; NULL: empty */
} policy_asked;

/* Frees and empties POLICY_DECIDING of them: the next question is about another content. */
void policy_asked_clear(policy_asked *asked);

/* The facts of an event, for a policy to see. Zeroed members are unknown, but for seconds of which
 * it is said. In Lua
 * (docs/policies.md):
 *   e.event e.now e.run e.group e.grace
 *   e.localtime { year month day hour minute second weekday offset change { after offset } }
 *   e.checkpoint { name path step bytes files kind names age metrics in_place generation reason }
 *   e.result e.results e.since { results seconds checkpoints bytes }
 *   e.queue { waiting running }  e.store { commits }  e.error { code class text tries }
 *   e.job { seconds left }  e.saves { seconds spent }
 * and in e.list of keep, keep_local and restore, oldest first:
 *   { number name dir step time age files bytes metrics kind newest pinned durable } */
typedef struct policy_facts {
  const char *event; /* "complete" "result" "time" "end" "preempt" "error" "committed" "failed" */
  const char *group;
  const detect_unit *unit;  /* NULL: none is meant */
  const char *kind;         /* "perm", "null", "temp" */
  const char *const *names; /* of files at the top of the unit, sorted; the first 256 */
  size_t name_count;
  const char *metrics, *result; /* JSON objects as texts, or NULL */
  uint64_t results;             /* how many came in this run */
  struct {                      /* since the last save of the group was begun */
    uint64_t results, checkpoints, bytes;
    double seconds; /* negative: there was none */
  } since;
  struct {
    double seconds; /* since the run began to watch it */
    double left;    /* until whoever started it ends it; negative: not known */
  } job;
  struct {          /* of the group, as this run has measured */
    double seconds; /* that a save of this unit takes, by those before; negative: not known */
    double spent;   /* of all tries, the one that runs and those that failed too */
  } saves;
  unsigned waiting;
  bool running;
  uint64_t commits;
  double grace_s; /* of a preemption */
  const char
      *suspect; /* why the checkpoint that the job went on from may be bad; NULL: nothing says so */
  int status;   /* of an error */
  const char *text;
  unsigned tries;
  policy_asked *asked; /* POLICY_DECIDING of them, for policy_decide(), which fills them in; NULL:
                          each question is the first */
} policy_facts;

/* `memory` below is a group's memory table, as JSON text; NULL: empty. The policy may replace
 * *memory (malloced). */

/* Decides whether this unit is saved now, and how it queues. Asks ready, sync and queue; a unit
 * that the built-in rule calls not complete is never asked about. */
void policy_decide(policy *p, const policy_facts *facts, char **memory, decision *out);

/* What one checkpoint is saved without, beside the excludes of all. */
enum { POLICY_LEFT_MAX = 64 };
typedef struct policy_left {
  names globs; /* match_exclude patterns; names_free() */
  char policy[POLICY_NAME_MAX];
  char reason[POLICY_REASON_MAX]; /* "": none was given */
} policy_left;
/* Asks for it; by an answer that is none nothing is left out. */
void policy_exclude(policy *p, const policy_facts *facts, char **memory, policy_left *out);

typedef enum policy_rest {
  POLICY_REST_NEWEST,
  POLICY_REST_ALL,
  POLICY_REST_NONE,
  POLICY_REST_FIT, /* no policy says it: all if they fit before the end, else the newest */
} policy_rest;
/* Decides which checkpoints are still saved when time is short. */
policy_rest policy_preempt(policy *p, const policy_facts *facts, char **memory);

typedef enum policy_remedy {
  POLICY_BY_CLASS,
  POLICY_RETRY,
  POLICY_GIVE_UP,
  POLICY_ABORT
} policy_remedy;
/* Decides what follows after a save failed. *seconds is set with POLICY_RETRY. ABORT: this run
 * saves no more. */
policy_remedy policy_on_error(policy *p, const policy_facts *facts, char **memory, double *seconds);

/* Calls on_committed or on_failed, for a policy that wants to remember the event. */
void policy_tell(policy *p, policy_hook hook, const policy_facts *facts, char **memory);

/* One item of a list that is judged as a whole. */
typedef struct policy_item {
  uint64_t number; /* of its commit; 0 for a local one */
  const char *name, *dir;
  int64_t step;    /* or MATCH_NO_STEP */
  int64_t time_ns; /* of the commit, or of the newest change */
  uint64_t files, bytes;
  uint64_t left_out;   /* files that it alone lacks, by `exclude` or `newest_only`; 0: none */
  const char *metrics; /* JSON object as text, or NULL */
  const char *kind;    /* "perm", "null", "temp"; NULL: perm */
  bool newest, pinned, durable;
  const char *suspect; /* why it may be bad; NULL: nothing says so */
} policy_item;

typedef struct policy_kept {
  bool keep;
  char policy[POLICY_NAME_MAX];
  char reason[POLICY_REASON_MAX];
} policy_kept;

/* Decides which items of a list stay (POLICY_KEEP, POLICY_KEEP_LOCAL) or are restored
 * (POLICY_RESTORE). Without a rule for it, and whenever something goes wrong, all stay, nothing
 * local goes, only the newest is restored. `items` come oldest first. Returns false if it was such
 * a safe answer. */
bool policy_select(policy *p, policy_hook hook, const char *group, const policy_item *items,
                   size_t count, char **memory, policy_kept *out);

/* Gathers the metrics of a complete unit, by the policy's `metrics`: a flat JSON object as text
 * (malloced), or NULL if there are none. `result` is the one that is the unit's (NULL: none). If no
 * policy names sources, they are those of the known frameworks, and then the result. A unit that is
 * no directory has its files beside it. Reads files below `root`; a file that cannot be read is left
 * out, with *warning set to why (may be NULL); so is a missing one, if it is the only source. */
char *policy_metrics(const policy *p, const char *root, const detect_unit *unit, const char *result,
                     char warning[POLICY_REASON_MAX]);

/* Returns what a result has of numbers, flat and as small as a checkpoint may have them: JSON text
 * (malloced), or NULL if there are none. Of `newer` (may be NULL), which tells of the same, the
 * members count first. */
char *policy_numbers(const char *result, const char *newer);

#endif
