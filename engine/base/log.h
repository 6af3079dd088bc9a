/* log: one callback for all that the engine has to say. The engine itself never prints. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <pthread.h>

#include "base/io.h"

typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } log_level;

/* Called from the engine's worker threads too, one line at a time, without a line end: the callee
 * must be thread-safe and must not call back into the engine. */
typedef void log_fn(void *ctx, log_level level, const char *text);

/* Counts how often each kind of warning and error was said. A kind is a place in the code, never a
 * text: names and numbers in it change. Ten of a kind are handed over; from then on they are
 * counted, and one an hour is handed over with the count, since a run may go on for weeks. */
typedef struct log_counts {
  const io *io; /* for its clock */
  pthread_mutex_t mutex;
  struct log_kind *kinds;
} log_counts;

typedef struct log_sink {
  log_fn *fn; /* NULL: silent */
  void *ctx;
  log_level min;      /* lower levels are not even formatted; with LOG_DEBUG nothing is counted */
  log_counts *counts; /* NULL: nothing is counted */
} log_sink;

/* A NULL sink is silent. A text of more than 2000 bytes is cut. Control characters in it are shown
 * as '?', so that a file's name cannot forge a line or drive a terminal. */
#define log_say(sink, level, ...) log_say_of(sink, LOG_KIND(__FILE__, __LINE__), level, __VA_ARGS__)
#define LOG_KIND(file, line) LOG_KIND_OF(file, line)
#define LOG_KIND_OF(file, line) file ":" #line

/* Does as log_say for a kind that its caller names; the name must outlive the counts. */
void log_say_of(const log_sink *sink, const char *kind, log_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Hands over, or counts, a text that was put together elsewhere. */
void log_tell(const log_sink *sink, const char *kind, log_level level, const char *text);

void log_counts_init(log_counts *c, const io *io);
/* Says what was only counted, kind by kind, and counts on from there. */
void log_counts_say(const log_sink *sink);
void log_counts_free(log_counts *c);

const char *log_level_name(log_level level); /* "debug", "info", "warning", "error" */

#endif
