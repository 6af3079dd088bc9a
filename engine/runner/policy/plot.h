/* plot: a simulation as a picture, in one SVG file that needs nothing else: neither scripts nor fonts.
 * However much happens it is bounded: what is too much for a row of its own is counted in columns. */
#ifndef RUNNER_POLICY_PLOT_H
#define RUNNER_POLICY_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"

/* PLOT_ROWS: checkpoints of a trial that have a row each; PLOT_ROWS_ALL: in the whole picture.
 * PLOT_LOSSES: of a trial, each with a mark; PLOT_LOSSES_ALL: of all of which the time is remembered. */
enum {
  PLOT_ROWS = 40,
  PLOT_ROWS_ALL = 120,
  PLOT_LANES = 16,
  PLOT_COLUMNS = 100,
  PLOT_LOSSES = 50,
  PLOT_LOSSES_ALL = 1000000
};

/* A checkpoint. Times are in seconds; below 0: that never was. */
typedef struct plot_mark {
  double made, saved, gone;
  bool wanted;
  char *name; /* of the first ones of a trial; else NULL */
  uint64_t lane;
} plot_mark;

/* A trial's machine that went. */
typedef struct plot_loss {
  double t, lost_s;
  uint64_t lane;
} plot_loss;

/* A trial; of those that are never heard of the name is NULL. */
typedef struct plot_lane {
  char *name;
  uint64_t made, saved, gone, losses;
  double lost_s;
} plot_lane;

typedef struct plot {
  plot_mark *marks; /* by their numbers, from 1 */
  plot_loss *losses;
  plot_lane *lanes;
  size_t mark_count, mark_room, loss_count, loss_room, lane_count, lane_room;
  uint64_t forgotten; /* losses of which only the sums are known */
  double first, last; /* the time that it spans */
  bool begun, failed; /* failed: out of memory */
} plot;

/* Takes a moment in: a ckpt_moment_fn, whose ctx is the plot. */
void plot_take(void *ctx, const ckpt_moment *moment);
/* The picture spans that time, too. */
void plot_span(plot *p, double t);
void plot_free(plot *p);

/* What its head says. */
typedef struct plot_head {
  const char *const *policies; /* ended by NULL; NULL: those that are built in */
  const char *events;          /* the file */
  const ckpt_simulation *sum;
} plot_head;

/* Draws it. False: out of memory. */
bool plot_draw(const plot *p, const plot_head *head, FILE *out);

/* Looks whether a file could be made there, before much work is done for it; writes it, in one piece: what
 * is there stays as it is until all of the new one is on the disk. False: it was said why. */
bool plot_can_write(const char *path);
bool plot_write(const plot *p, const plot_head *head, const char *path);

#endif
