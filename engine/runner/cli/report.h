/* report: the messages to the user on stderr, and the exit codes.
 *
 * A message is one line, "ckpt-lua: ...", written in one piece, so that lines of the job's own
 * processes do not come between its parts. */
#ifndef RUNNER_CLI_REPORT_H
#define RUNNER_CLI_REPORT_H

#include <stdbool.h>
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

/* Returns the exit code that stands for a CKPT_* status. */
int exit_code_of(int status);
/* Returns the exit code for a wait status, as shells have it: 128+n for a signal. */
int exit_code_of_wait(int status);

/* Sets the level: -1: errors and the last line only; 0; 1: all. */
void report_level(int level);

/* From here on errors are kept, for a caller that wants them as JSON. */
void report_errors_as_json(void);
/* Ends that: if the command ends with a code, writes one object with what was kept to stderr, else
 * what was kept as lines. `where`: the place that the command is about, or NULL. */
void report_json_error(int code, const char *where);

void report_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same of how the run stands: it comes last, and is no cause of anything. */
void report_last_word(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Shows a line on a terminal that stands below all messages until it is replaced; NULL takes it
 * away. A message is written in its place, and it comes again below. The cursor rests at its
 * beginning, so that output of others to the terminal goes over it. Any thread. */
void report_status(const char *text);

/* Says whether others write to this terminal, too: the job, whose output goes past us. While they do,
 * each message has a row of its own, also where their last one has no end yet, and nothing may be
 * drawn with report_status(). Without a terminal it does nothing. */
void report_share(bool on);

/* The engine's log goes here; ctx is not used. Any thread. */
void report_log(void *ctx, int level, const char *text);

/* Returns the least level that is shown: errors with -q, else warnings, with -v all. What the user
 * must see is no LOG_INFO of the engine, which only -v shows, but a completion or a line of the
 * runner. */
uint32_t report_log_level(void);

/* Says a completion in one line, if it is worth one. */
void report_completion(const ckpt_completion *c);

/* Writes a completion as one JSON object on a line, for those kinds that end a checkpoint's way. */
void completion_json(FILE *out, const ckpt_completion *c);

/* Says how many warnings were only counted, of the engine (NULL: none) and of completions. */
void report_counted(ckpt *engine);

/* Says that files were written which belong to no unit, with an example. */
void report_unmatched(const ckpt_run_status *status);

#endif
