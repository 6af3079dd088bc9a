/* detect_trace: recordings of real trainings (spec/data/traces), replayed through a detector in virtual
 * time.
 *
 * For tests: a recording that cannot be read, and a promise that all of them hold, fail the test. */
#ifndef SPEC_DETECT_TRACE_H
#define SPEC_DETECT_TRACE_H

#include "detect_sim.h"

typedef struct trace_line {
  char ev[32], path[512], link[512];
  double t, t_end;
  int64_t size; /* -1: not known */
  uint32_t cookie;
  bool is_dir, to_known; /* to_known: its MOVED_FROM was seen */
} trace_line;

typedef struct trace {
  trace_line *at;
  size_t count;
} trace;

/* The recording of that name; its lines are the caller's to free. */
trace trace_read(const char *name);
bool trace_is(const trace_line *l, const char *ev);
/* The virtual time of a recorded one. */
int64_t trace_ns(double t);
bool trace_is_above(const char *path);

/* Replays it; none may be complete before its last write, and at the end all that are left, so many,
 * must be. */
sim *trace_replay(const char *name, size_t expected);
/* Fails the test unless the unit was complete within so many seconds of that time. */
void trace_complete_by(const sim *s, const char *path, double t, double within_s);
/* Fails the test unless each that was complete was so within so many seconds of its own last write. */
void trace_each_within(const sim *s, const char *name, double within_s);

/* What a SIGKILL in the middle of a save left, before a detector is opened on it. */
sim *trace_ruins(const char *name);

#endif
