/* outcome: the end of a run: what is durable, its exit code, the last line and exit.json. */
#ifndef RUNNER_OUTCOME_H
#define RUNNER_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"

typedef struct outcome {
  const char *verb;
  int exit_code;
  const char *reason; /* a word: done, child, signal, deadline, fenced, store, nothing, start */
  const char *text;   /* the error's text, "" if none */
  bool has_child;
  int child_status; /* as wait() has it */
  int signal;       /* the first that we got; 0: none */
  int64_t begin_ns, end_ns;
  const char *target;     /* of which it speaks */
  bool unopened;          /* there was no run: of what is durable nothing is known */
  ckpt_run_status status; /* strings valid until the next call that asks for it */
  ckpt_pending *pending;  /* copies */
  size_t pending_count;
} outcome;

/* Fills status and pending from the run; outcome_free() frees it. */
void outcome_take(outcome *o, ckpt_run *run);
void outcome_free(outcome *o);
/* Nothing that is complete, or may become so, would be lost with this machine. */
bool outcome_durable(const outcome *o);
/* The exit code by what is durable and what the child said. `deadline`: we stopped waiting. */
void outcome_decide(outcome *o, bool deadline, bool stopped_as_fenced, bool require_commit);

/* The same for `sync`: all that is there should be saved. `found`: complete checkpoints that were
 * there at the start. */
void outcome_decide_sync(outcome *o, bool deadline, uint32_t found);

/* What is durable and what is not, in one sentence. */
void outcome_sentence(FILE *out, const outcome *o);
/* The last line on stderr: the same. */
void outcome_print(const outcome *o);
/* Members of a JSON object, from "durable" on: counters, the newest commit, what is not durable. */
void outcome_json_state(FILE *out, const outcome *o);
/* Writes <state>/exit.json in one step, or says why not. */
void outcome_write(const outcome *o, const char *state);
/* Removes what an earlier run said, so that nobody takes it for ours if we are killed. */
void outcome_forget(const char *state);

#endif
