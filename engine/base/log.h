/* log: one callback for all that the engine has to say. The engine itself never prints. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } log_level;

/* Called from the engine's worker threads too, one line at a time, without a line end: the callee
 * must be thread-safe and must not call back into the engine. */
typedef void log_fn(void *ctx, log_level level, const char *text);

typedef struct log_sink {
  log_fn *fn; /* NULL: silent */
  void *ctx;
  log_level min; /* what is below is not even formatted */
} log_sink;

/* A NULL sink is silent. A text of more than 2000 bytes is cut. Control characters in it are shown
 * as '?', so that a file's name cannot forge a line or drive a terminal. */
void log_say(const log_sink *sink, log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

const char *log_level_name(log_level level); /* "debug", "info", "warning", "error" */

#endif
