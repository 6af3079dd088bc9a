/* trace: a recording of what happened to the files below a directory, as inotify tells it, one change on
 * a line. It is played on a clock that is none through the detector of a run (event/detect.h), so that
 * what it finds complete is what a run finds, and at the same moments. */
#ifndef LAB_TRACE_H
#define LAB_TRACE_H

#include "base/log.h"
#include "event/rules.h"
#include "lab/events.h"

/* What the files say that a policy names. */
typedef struct trace_rules {
  const rules *rules;
  const char *null_marker, *temp_marker; /* names in a checkpoint that make it one of that kind */
} trace_rules;

/* Plays the changes of a history, which gets the events that come of them: a start, and a checkpoint when
 * it is complete. `file` is where they were read. ERR_INVAL: no tree can have changed so. */
int lab_trace_play(lab_history *h, const char *file, const trace_rules *by, const log_sink *log,
                   err *e);

#endif
