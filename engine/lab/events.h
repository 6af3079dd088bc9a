/* events: reads what happened in a run, as a simulation is told it: a JSON object on a line for each
 * event, or, of a trace of a directory, for each change. It comes from outside: each line is checked as a whole, and a wrong one is named. */
#ifndef LAB_EVENTS_H
#define LAB_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "lab/change.h"

typedef enum lab_what {
  LAB_START,      /* the job of a trial begins, or begins again */
  LAB_RESULT,     /* it reports numbers */
  LAB_CHECKPOINT, /* it has written one */
  LAB_COMPLETE,   /* the trial is over */
  LAB_ERROR,      /* it has failed */
  LAB_PREEMPT,    /* time is short from here on */
  LAB_CRASH,      /* its machine is gone, with all that it had */
  LAB_END,        /* all trials are over */
  LAB_TRANSFER,   /* a try of a save has ended: how long it took, and how */
  LAB_WHATS
} lab_what;

/* The word for it in a file. */
const char *lab_word(lab_what what);

typedef enum lab_outcome { LAB_AS_BEFORE, LAB_OK, LAB_FAIL } lab_outcome;

/* The trial of an event that concerns each trial that has begun. */
#define LAB_EACH "*"

/* The time 0 of a history is midnight, UTC, at the beginning of 2024, a Monday. */
#define LAB_BEGINNING_S INT64_C(1704067200)

/* 30 years: what is longer is another unit of time. */
#define LAB_LONGEST_S 1e9

/* One event; the texts are its own. */
typedef struct lab_event {
  int64_t at_ns; /* since the beginning */
  lab_what what;
  char *trial;  /* its directory's path; "" where none is named, LAB_EACH */
  bool of_each; /* it is of each trial that has begun */
  char *result; /* numbers: a JSON object as text, or NULL */
  bool makes; /* a checkpoint is complete with it: of a checkpoint, and of a result that has one */
  char *name; /* of the checkpoint; NULL: it is the trial's directory itself */
  const char *kind; /* "perm", "null", "temp", "memory" */
  char *metrics;    /* a JSON object as text, or NULL */
  int64_t step;     /* or MATCH_NO_STEP */
  uint64_t bytes;   /* of the checkpoint, where `sized` */
  bool sized;
  /* What the saves of the trial take from here on, or what this try took; negative: as before, or
   * not told. */
  double transfer_s;
  lab_outcome outcome; /* how those saves end from here on, or how this try ended */
  int fault;           /* with LAB_FAIL: the error */
  double grace_s;      /* of a preemption */
  double limit_s;      /* of a start: until its job is ended; negative: not known */
} lab_event;

void lab_event_free(lab_event *event);

/* Reads one line; `where` ("events.jsonl:12") is what an error begins with, `after_ns` the time of the
 * event before, which is this one's where it has none. ERR_INVAL, ERR_LIMIT. */
int lab_event_read(const char *line, size_t len, const char *where, int64_t after_ns,
                   lab_event *out, err *e);

typedef struct lab_history {
  lab_event *events;
  size_t count, room;
  lab_change *changes; /* of a trace, which has no events: lab_trace_play() finds them */
  size_t change_count, change_room;
  size_t torn; /* the number of the last line, which was cut while it was written: it is left out;
                * 0: it is whole */
} lab_history;

enum { LAB_LINE_MAX = 1 << 20, LAB_EVENTS_MAX = 1000000, LAB_BYTES_MAX = 256 << 20 };

/* Reads all lines of a file; empty ones are passed over. A wrong one ends it, but for the last one where
 * that is no JSON and has no line end: whoever wrote it was killed. /dev/stdin is read from where it
 * stands, and may be a socket. */
int lab_history_read(const io *io, const char *path, lab_history *out, err *e);
void lab_history_free(lab_history *h);

#endif
