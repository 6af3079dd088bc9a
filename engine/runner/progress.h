/* progress: how far the transfers of a run, or of a call that blocks, are, for the one who watches.
 *
 * On a terminal one line that is drawn anew, at most four times a second; elsewhere a line every 30
 * seconds. Only while something moves: with nothing to show there is no wake-up. */
#ifndef RUNNER_PROGRESS_H
#define RUNNER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"

typedef struct progress {
  bool quiet, terminal;
  int columns;
  bool moving;     /* a transfer runs */
  double begin_at; /* when it began: monotonic seconds */
  double next_at;  /* when to look again; INFINITY: when something happens */
  uint64_t done;   /* bytes at `done_at` */
  double done_at;
  double rate; /* bytes in a second, smoothed; 0: not known yet */
} progress;

/* `terminal`: stderr is one. */
void progress_begin(progress *p, bool quiet, bool terminal, int columns);
/* The same with what stderr is. */
void progress_begin_here(progress *p, bool quiet);

/* To be called when something happened, and at next_at. `now`: monotonic seconds. Draws, or says a
 * line, if it is time, and sets next_at. */
void progress_look(progress *p, ckpt_run *run, double now);

/* What the engine tells while a call of it blocks. */
void progress_take(progress *p, const ckpt_progress *told, double now);
/* The same as a ckpt_progress_fn: `ctx` is a progress, which only the blocking call uses then. */
void progress_heard(void *ctx, const ckpt_progress *told);

/* What has moved, for the above and tests of it. */
typedef struct progress_sum {
  const char *what;        /* "restore", ... (ckpt_progress); NULL: it is saved */
  unsigned begun, waiting; /* checkpoints */
  const char *name;        /* the first that moves, or NULL */
  const char *waits_for;   /* why the first that does not is waiting, or NULL */
  uint64_t done, total;    /* bytes of those that have begun */
} progress_sum;
/* One line without its end, at most `columns` wide (0: no limit). */
void progress_write(FILE *out, const progress *p, const progress_sum *sum, int columns);

#endif
