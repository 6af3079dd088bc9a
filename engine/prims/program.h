/* program: a program of the user's: it runs beside us, its output is taken in, and it may report on
 * a socket and wait there for its answer.
 *
 * Like a helper (child.h) it is started without fork(2), and only this very process, or its group,
 * is ever waited for or signalled. It is reaped when it is closed and not before: until then its
 * number, and that of its group, belong to nobody else. One thread at a time. */
#ifndef PRIMS_PROGRAM_H
#define PRIMS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/io.h"

typedef struct program program;

typedef struct program_plan {
  char *const *argv; /* ended by NULL; its first word is looked for along our PATH */
  char *const *envp; /* ended by NULL; NULL: our environment */
  const char *dir;   /* where it runs; NULL: where we do */
  const char *input; /* what it can read as its standard input; NULL: nothing */
  size_t input_len;
  size_t keep;        /* of each of its two outputs the last `keep` bytes are kept */
  bool secret;        /* in the memory of base/secret.h */
  const char *socket; /* path of the socket that it may report on, made here; NULL: none */
} program_plan;

/* Starts it: in a process group of its own, with no signal held back, no other descriptor of ours.
 * The plan is copied where it is needed. The io is for clocks and files. */
int program_start(const io *io, const program_plan *plan, program **out, err *e);

pid_t program_pid(const program *c);

/* Takes in output and reports, and waits for them at most `timeout_ms` (negative: without limit).
 * Returns 1 if there was something (output, a report, its end), 0 if not, or a negative ERR_*. */
int program_turn(program *c, int timeout_ms, err *e);

/* True once it has ended and its own output is taken in. The output of others that inherited its
 * pipes is not waited for. `code` gets its exit code, -1 if it has none; `signal` the signal that
 * killed it, else 0. Both are unknown when somebody else reaped it: -1 and 0. */
bool program_ended(const program *c, int *code, int *signal);

/* True when both of its outputs are at their end: nobody has them any more. */
bool program_silent(const program *c);

/* Returns the last bytes that it has printed until now; they are good until the next turn.
 * `dropped`: how many came before them. `which`: 1 or 2, as descriptors are numbered. */
const char *program_output(const program *c, int which, size_t *len, uint64_t *dropped);

/* Takes a report: a line that waits for its answer. Until then nothing more is read from the same
 * client. `from` names it for the answer. The line is good until the next call; it has no NUL in
 * it. False if there is none. */
enum { PROGRAM_LINE_MAX = 64 * 1024, PROGRAM_CLIENTS = 64 };
bool program_report(program *c, uint64_t *from, const char **line, size_t *len);
/* Sends a line, whose end is added. ERR_NOENT if the one who asked is not there any more. */
int program_answer(program *c, uint64_t from, const char *line, err *e);

/* Asks it and its group to end (TERM), lets `patience_ns` pass, kills what is left. It is over when
 * it has ended and nobody has its outputs any more. Blocks no longer than that and a second. True
 * if it has ended then: a process can hang in the kernel. */
bool program_stop(program *c, int64_t patience_ns);

/* Kills what is left of it and its group, removes the socket, frees `c` (NULL is fine). Whoever
 * waits for an answer finds the socket closed. */
void program_close(program *c);

#endif
