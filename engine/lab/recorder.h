/* recorder: writes down what happens in a run as events.h reads it, a line for each event, so that
 * simulate.h can play the run again, with other policies.
 *
 * Each line goes to the file with one write: of a run that is killed all is there but at most a torn last
 * line. What cannot be written is one warning, and the end of the record: the run goes on. */
#ifndef LAB_RECORDER_H
#define LAB_RECORDER_H

#include "base/log.h"
#include "lab/events.h"

typedef struct lab_recorder lab_recorder;

/* Opens a file for appending, for this run alone. One that is there must be a record: a line that was cut at its end is taken
 * away, and where its run did not come to its end, a `crash` of all trials is put behind it, at the time of
 * its last event. NULL: that did not succeed, and a warning says why. */
lab_recorder *lab_recorder_open(const io *io, const log_sink *log, const char *path);
void lab_recorder_close(lab_recorder *r); /* NULL is fine */

/* Appends an event, which happens now: its `at_ns` is not looked at. `r` may be NULL. */
void lab_recorder_add(lab_recorder *r, const lab_event *event);

#endif
