/* report: what the user gets to see on stderr, and the exit codes.
 *
 * A message is one line, "ckpt-lua: ...", written in one piece, so that lines of the job's own
 * processes do not come between its parts. */
#ifndef RUNNER_REPORT_H
#define RUNNER_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"

enum {
  EXIT_DONE = 0,
  EXIT_FAILED = 1,
  EXIT_USAGE = 2,
  EXIT_PARTIAL = 3,
  EXIT_NOTHING = 4,
  EXIT_CORRUPT = 5,
  EXIT_GAVE_UP = 6,
  EXIT_STORE = 7,
  EXIT_NO_STORE = 10,
  EXIT_HELD = 11,
  EXIT_DEADLINE = 13,
  EXIT_FENCED = 14,
  EXIT_NOT_STARTED = 125
};

/* The exit code that stands for a CKPT_* status. */
int exit_code_of(int status);
/* The exit code for a wait status, as shells have it: 128+n for a signal. */
int exit_code_of_wait(int status);

/* -1: errors and the last line only; 0; 1: all. */
void report_level(int level);

void report_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* On a terminal: the line that stands below all messages until it is replaced; NULL takes it away.
 * A message is written in its place, and it comes again below. The cursor rests at its beginning,
 * so that what others write to the terminal goes over it. Any thread. */
void report_status(const char *text);

/* The engine's log goes here; ctx is not used. Any thread. */
void report_log(void *ctx, int level, const char *text);
uint32_t report_log_level(void); /* what the engine need not make lines for */

/* One line for a completion, if it is worth one. */
void report_completion(const ckpt_completion *c);

/* The same as one JSON object on a line, for those kinds that end a checkpoint's way. */
void completion_json(FILE *out, const ckpt_completion *c);

/* Says how many warnings were only counted, of the engine (NULL: none) and of completions. */
void report_counted(ckpt *engine);

/* That files were written which belong to no unit, with an example. */
void report_unmatched(const ckpt_run_status *status);

#endif
