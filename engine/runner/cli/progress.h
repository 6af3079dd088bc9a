/* progress: shows how far the transfers of a run, or of a call that blocks, are.
 *
 * On a terminal of our own it is one line that is drawn anew, at most four times a second; elsewhere,
 * and where the job writes to the terminal, a line every 30 seconds. It works only while something
 * moves: with nothing to show there is no wake-up. */
#ifndef RUNNER_CLI_PROGRESS_H
#define RUNNER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"

/* So many bytes were done at that time. */
typedef struct progress_mark {
  uint64_t done;
  double at;
} progress_mark;

typedef struct progress {
  bool quiet, terminal;
  bool shared; /* others write to the terminal, too: nothing is drawn */
  int columns;
  bool moving;              /* a transfer runs */
  double begin_at;          /* when it began: monotonic seconds */
  double next_at;           /* when to look again; INFINITY: when something happens */
  uint64_t done;            /* bytes, as last seen */
  progress_mark from, next; /* the rate is since `from`, whose place `next` takes */
  double rate;              /* bytes in a second; 0: not known yet */
} progress;

/* `terminal`: stderr is one. */
void progress_begin(progress *p, bool quiet, bool terminal, int columns);
/* Begins, and finds out what stderr is. */
void progress_begin_here(progress *p, bool quiet);

/* Says whether the job writes to the terminal, too. Its text would land in a line that is drawn. */
void progress_share(progress *p, bool on);

/* To be called when something happened, and at next_at. `now`: monotonic seconds. Draws, or says a
 * line, if it is time, and sets next_at. */
void progress_look(progress *p, ckpt_run *run, double now);

/* Takes in the engine's report while a call of it blocks. */
void progress_take(progress *p, const ckpt_progress *told, double now);
/* Does the same as a ckpt_progress_fn: `ctx` is a progress, which only the blocking call uses
 * then. */
void progress_heard(void *ctx, const ckpt_progress *told);

/* The sum of the transfers, for the above and tests of it. */
typedef struct progress_sum {
  const char *what;        /* "restore", ... (ckpt_progress); NULL: a save */
  unsigned begun, waiting; /* numbers of checkpoints */
  const char *name;        /* the first that moves, or NULL */
  const char *waits_for;   /* why the first that does not is waiting, or NULL */
  const char *holds;       /* for whom the first waits that moves nothing any more, or NULL */
  uint64_t done, total;    /* bytes of those that have begun */
} progress_sum;
/* Writes one line without its end, at most `columns` wide (0: no limit). */
void progress_write(FILE *out, const progress *p, const progress_sum *sum, int columns);

#endif
