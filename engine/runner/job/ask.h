/* ask: the other end of the listener: sends a run's process one line and reads its answer. */
#ifndef RUNNER_JOB_ASK_H
#define RUNNER_JOB_ASK_H

#include <stdio.h>

#include "ckpt.h"
#include "runner/cli/options.h"

enum { ASK_ERROR_MAX = 1024 };

typedef enum ask_result {
  ASK_DONE,    /* accepted */
  ASK_REFUSED, /* the run's process said why not */
  ASK_NOBODY,  /* nobody listens there: no run is alive */
  ASK_FAILED,  /* somebody does, and gives no (sensible) answer; or it may not be asked */
  ASK_HUNG_UP  /* somebody did, and hung up: it ends, or has too many clients */
} ask_result;

/* These name the run: by its directory, or its state directory. */
extern const option_spec ask_dir, ask_state;

/* Returns the exit code: 4 if nobody is there; 1 if it refused or failed. */
int ask_exit_code(ask_result result);

/* Finds the run that is meant: that of --dir or --state, else that of the job which we are part of
 * ($CKPT_SOCKET). Returns ASK_DONE; or ASK_NOBODY if neither is given, or no run with a socket was
 * there on this boot; ASK_FAILED if there can be none; `error` says so. ask() finds out whether
 * anybody listens. */
ask_result ask_find(const options *o, ckpt_place *out, char error[ASK_ERROR_MAX]);

/* Asks. `line` is one JSON object without a line end. The lines behind the first one of the answer
 * go to `out` (may be NULL). Takes 10 s at most ($CKPT_ANSWER_WAIT), connecting included. Except
 * for ASK_DONE, `error` says why. */
ask_result ask(const char *socket, const char *line, FILE *out, char error[ASK_ERROR_MAX]);

/* Asks the question of a verb: {"$ckpt":VERB,"name":NAME,"json":BOOL}; `name` may be NULL. */
ask_result ask_question(const char *socket, const char *verb, const char *name, bool json,
                        FILE *out, char error[ASK_ERROR_MAX]);

#endif
