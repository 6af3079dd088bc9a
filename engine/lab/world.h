/* world: what the files of a simulation share. For lab/ only. */
#ifndef LAB_WORLD_H
#define LAB_WORLD_H

#include "commit/log/runlog.h"
#include "base/names.h"
#include "lab/events.h"
#include "lab/simulate.h"
#include "plan/queue.h"

typedef enum lab_phase {
  LAB_HELD, /* complete, and a policy holds it back */
  LAB_WAITS,
  LAB_RUNS,
  LAB_STORED,
  LAB_DROPPED, /* let go for a newer one, which is not stored yet */
  LAB_FAILED,
  LAB_GONE, /* nobody looks at it any more */
} lab_phase;

typedef struct lab_unit {
  uint64_t id; /* they count from 1 */
  char *name, *series;
  int64_t step, made_ns;
  queue_place place;
  uint64_t bytes;
  const char *kind;
  char *metrics;
  bool in_place;
  lab_phase phase;
  decision want;
  policy_asked asked[POLICY_DECIDING];
  int64_t ask_at; /* 0: time alone changes nothing */
  int64_t next_try;
  unsigned tries;
  int fault;     /* of its last try */
  bool unwanted; /* DROPPED by the policy's word */
  bool kept;
  char kept_why[POLICY_REASON_MAX];
} lab_unit;

/* The tries of one checkpoint's saves that are told, in their order. */
typedef struct lab_tries {
  const char *name;
  const lab_event **events;
  size_t count, room, next; /* next: the first one that was not taken */
} lab_tries;

/* What is said of each commit of a log, while `keep` is asked. */
typedef struct lab_sheet {
  size_t room;
  policy_item *items;
  policy_kept *said, *kept;
  bool *keep;
  retention_item *plan;
} lab_sheet;

/* A trial is a run of its own, with one log. */
typedef struct lab_trial {
  const char *name;
  bool names; /* it names checkpoints; else its directory is one */
  bool begun, over, preempted;
  bool lost; /* its machine is gone: it begins again in an empty directory */
  policy_rest rest;
  int64_t end_at;   /* when its grace is over; */
  int64_t idle_ns;  /* and since when it works no more: preempted, or over */
  int64_t since_ns; /* the work since then is lost if it crashes now */
  lab_unit **units; /* in the order in which they came */
  size_t count, room;
  lab_unit *save;  /* the one that is sent, */
  int64_t sent_at; /* and when that is over */
  int64_t begun_at;
  queue_unit *line; /* room for as many as there are units */
  size_t line_room;
  queue_place newest_place;
  deadline_pace pace;
  runlog_state log;
  lab_sheet sheet;
  uint64_t next_commit, resumed;
  int64_t keep_at; /* when something that was dropped is deleted; INT64_MAX: never */
  bool keep_asked;
  size_t fresh; /* commits since it was last asked what is kept */
  /* Some that its answer let go are there all the same: the core keeps them, or the limit of a
   * pass. */
  bool some_stay;
  char *result, *memory, *memory_stored; /* stored: with the last commit */
  uint64_t results, since_results, since_checkpoints, since_bytes;
  int64_t saved_ns;  /* 0: there was none */
  int64_t job_ns;    /* when its job began, */
  double limit_s;    /* and how long that has; negative: not known */
  double spent_s;    /* of all tries of its saves that are over */
  double transfer_s; /* negative: by the pace */
  int fault;         /* how each save fails from here on; 0: it does not */
  lab_tries *tries;  /* by their names */
  size_t tries_count, tries_room;
  double told_s, told_bytes; /* of those that got there, together */
  lab_outcome ends;          /* the one that is sent; LAB_AS_BEFORE: as `fault` says then, */
  int ends_by;               /* else this is its error */
  const char *stopped;       /* why its job saves no more; NULL: it does */
  uint64_t bytes;            /* of the last checkpoint whose size was given */
} lab_trial;

/* What is told of the present event. */
typedef struct lab_news {
  bool asked, sync;
  char unit[256], policy[POLICY_NAME_MAX], reason[POLICY_REASON_MAX];
  names saved, failed, remedies, let_go, deleted, restored; /* remedies: one for each that failed */
  double lost_s;
} lab_news;

typedef struct lab {
  io io; /* the given one with the clock of this world; the first member, by which the clock finds it */
  const lab_options *o;
  int64_t now; /* IO_WALL */
  policy *policy;
  lab_trial *trials; /* by their names */
  size_t trial_count;
  lab_news news;
  lab_sum *sum;
  uint64_t bytes_kept;
  /* Of the events of LAB_EACH: what a trial knows when it begins. */
  const char *result; /* NULL: none has come */
  uint64_t results;
  int64_t since_ns; /* 0: it begins with its own first event */
  double limit_s;
  uint64_t made;   /* units */
  uint64_t alarms; /* questions by time alone since the last event */
  bool answers;    /* an event is taken in: what is decided is told of it */
  bool broken;     /* memory ran out */
  /* Is told what becomes of each live commit whenever `keep` was asked; NULL: nobody is. */
  void (*judged)(void *ctx, const retention_item *item, const policy_kept *said);
  void *judged_ctx;
} lab;

/* Makes a world whose clock stands at 0, with the policies in it. The options are borrowed. Fails as
 * policy_open(); what it has made so far is to be freed then, too. */
int lab_open(lab *l, const lab_options *o, lab_sum *sum, err *e);

enum { LAB_TRIES = 8, LAB_ALARMS_MAX = 10000 };

/* ---- tries.c: how the saves of a trial go that are told ---- */

/* Notes a LAB_TRANSFER, which lives as long as the trial. False: memory ran out. */
bool lab_tries_note(lab_trial *t, const lab_event *event);
/* The next try of that checkpoint's save that is told; NULL: no more is. */
const lab_event *lab_tries_next(lab_trial *t, const char *name);
/* Seconds that so many bytes take by the pace of those that are told; negative: none is. */
double lab_tries_pace(const lab_trial *t, uint64_t bytes);
void lab_tries_free(lab_trial *t);

/* ---- named.c ---- */

/* Gives the numbers of a result to the checkpoint that its member "checkpoint" names, if one is named. */
void lab_result_named(lab *l, lab_trial *t, const char *result);

/* ---- line.c: its units ---- */

/* Makes a unit of what the event tells; NULL: memory ran out. One that waits under its name goes. */
lab_unit *lab_unit_new(lab *l, lab_trial *t, const lab_event *event);

/* ---- trial.c: what a trial does ---- */

/* Asks about a unit that is complete, and obeys. */
void lab_consider(lab *l, lab_trial *t, lab_unit *u, const char *event);
/* Asks again about those that are held back. */
void lab_reconsider(lab *l, lab_trial *t, const char *event);
void lab_preempt(lab *l, lab_trial *t, double grace_s);
/* Its job begins, if it does not run. */
void lab_begin(lab *l, lab_trial *t);
/* All that is not in the store is gone, as is the work since the last checkpoint that is; of a trial that
 * is over, if something was still to be saved. */
void lab_lose(lab *l, lab_trial *t);
uint64_t lab_pending(const lab_trial *t); /* how many are sent or wait */
/* Does what is due by now: the end of a save, the next one, what is kept. */
void lab_step(lab *l, lab_trial *t);
/* Returns when there is something to do next; INT64_MAX: never. `draining`: no policy is asked by time
 * alone any more. */
int64_t lab_due(const lab *l, const lab_trial *t, bool draining);
void lab_trial_free(lab_trial *t);

/* ---- resume.c ---- */

/* Tells what is restored for a trial that begins again on another machine. */
void lab_resume(lab *l, lab_trial *t);

/* ---- kept.c: its log ---- */

void lab_commit(lab *l, lab_trial *t, const lab_unit *u);
/* A commit of a real log comes, as it was before anybody dropped it; it is copied. */
void lab_commit_again(lab *l, lab_trial *t, const runlog_commit *c);
/* Asks what is kept, if that is due, and deletes what was dropped long enough ago. */
void lab_keep(lab *l, lab_trial *t);
/* Lists the commits as `keep` sees them; `out` has room for t->log.commit_count. */
size_t lab_items(const lab_trial *t, policy_item *out);
uint64_t lab_live(const lab_trial *t); /* how many there are */
void lab_log_free(lab_trial *t);

/* Tells a moment of this trial; without a checkpoint its name is NULL and its number 0. */
void lab_tell(const lab *l, const lab_trial *t, lab_turn what, const char *name, uint64_t id,
              double lost_s);

/* Adds to a sum that stays at its end. */
void lab_add(uint64_t *sum, uint64_t more);

#endif
