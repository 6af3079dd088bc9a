/* simulate: what policies would have done in a run of which the events are told, on a clock that is
 * none. The policies are asked as a run asks them, and what is saved, let go and kept is decided by the
 * very rules that a run obeys (plan/queue.h, plan/retry.h, plan/retention.h). Nothing is written, and no
 * file is looked at but that of the events and those of the policies. */
#ifndef LAB_SIMULATE_H
#define LAB_SIMULATE_H

#include "decision/policy.h"
#include "plan/retention.h"

/* What an event led to, until the next one comes; valid during the call. */
typedef struct lab_told {
  int64_t i; /* the place of the event in the file, from 0; negative: an invented failure */
  double t;  /* seconds since the beginning */
  const char *event, *trial;
  bool asked; /* a decision was made; else these are "" and false: */
  bool sync;
  const char *unit, *policy, *reason;
  /* Names, ended by NULL. */
  const char *const *saved, *const *failed, *const *let_go, *const *deleted;
  const char *const *remedies; /* what came of each of `failed`: "retry 30", "skip", "abort" */
  const char *const *restored; /* with what a trial goes on whose machine was lost */
  double lost_s; /* of a crash, and of a preemption whose time is over: work that was lost */
} lab_told;

/* Returns 0 to go on; any other value ends the simulation and is returned. */
typedef int lab_told_fn(void *ctx, const lab_told *told);

typedef enum lab_turn {
  LAB_MADE = 1, /* a checkpoint is complete; */
  LAB_WANTED,   /* it is to be saved, */
  LAB_SAVED,    /* is committed, */
  LAB_LET_GO,   /* and is kept no longer */
  LAB_LOST,     /* a trial's machine is gone */
} lab_turn;

/* One moment of one trial; valid during the call. */
typedef struct lab_moment {
  lab_turn what;
  double t;                 /* seconds since the beginning */
  uint64_t of;              /* the trial's place among all */
  const char *trial, *name; /* name: of the checkpoint */
  uint64_t checkpoint;      /* they count from 1, as they come; 0: it is of none */
  double lost_s;            /* LAB_LOST: work */
} lab_moment;

typedef void lab_moment_fn(void *ctx, const lab_moment *moment);

typedef struct lab_sum {
  uint64_t events, questions;              /* questions: units that the policies were asked about */
  uint64_t saved, failed, let_go, unsaved; /* unsaved: given up, or lost on their way */
  uint64_t deleted, kept;
  uint64_t bytes_sent, bytes_kept, bytes_most; /* most: at one moment */
  uint64_t crashes;
  double lost_s;      /* work, all crashes together */
  double seconds;     /* from the first event to the last thing that happened */
  uint64_t fallbacks; /* a policy gave no good answer: the safe one held */
} lab_sum;

typedef struct lab_options {
  const io *io;
  const log_sink *log;
  const char *events;    /* the file */
  policy_options policy; /* its io is made here */
  retention_limits limits;
  double bandwidth;      /* bytes a second; 0: what has no time of its own takes none */
  double mtbf_s;         /* the mean time between two invented failures; 0: none */
  uint64_t seed;         /* the same one makes the same failures */
  lab_moment_fn *moment; /* is told each, as they come; NULL: nobody is */
  void *moment_ctx;
} lab_options;

/* ERR_INVAL, ERR_LIMIT: a line of the file is wrong, and nothing was told; else as policy_open(). */
int lab_simulate(const lab_options *o, lab_told_fn *fn, void *ctx, lab_sum *sum, err *e);

#endif
