/* outcome: the end of a run: how it stands, its exit code, the last line and exit.json. The standing
 * is the library's word; here it is only put into codes and sentences. */
#ifndef RUNNER_JOB_OUTCOME_H
#define RUNNER_JOB_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"
#include "runner/cli/record.h"

typedef struct outcome {
  const char *verb;
  int exit_code;
  const char *reason; /* a word: done, child, signal, deadline, fenced, store, unproven, partial,
                       * nothing, start, engine */
  const char *text;   /* the error's text, "" if none */
  bool has_child;
  int child_status; /* as wait() has it */
  int signal;       /* the first that we got; 0: none */
  int64_t begin_ns, end_ns;
  const char *target; /* the target that it is about */
  bool turned_away;   /* saving ended, since the target turned out not to be ours */
  const char *run_id; /* NULL: not known, as the next two */
  const char *dir;    /* the watched directory */
  char host[256];
  uint32_t rank, world;   /* world 1: it saves alone */
  bool unopened;          /* there was no run: nothing is known about what is durable */
  ckpt_run_status status; /* strings valid until the next call that asks for it */
  ckpt_pending *pending;  /* copies */
  size_t pending_count;
} outcome;

/* Fills status and pending from the run; outcome_free() frees it. */
void outcome_take(outcome *o, ckpt_run *run);
void outcome_free(outcome *o);
/* True if the newest complete checkpoint that the policies wanted is in the target: never if nothing
 * is there. */
bool outcome_durable(const outcome *o);
/* Sets the exit code by what is durable and by the child's end. `deadline`: we stopped waiting. */
void outcome_decide(outcome *o, bool deadline, bool stopped_as_fenced, bool require_commit);

/* Does the same for `sync`: all units that are there should be saved. */
void outcome_decide_sync(outcome *o, bool deadline, bool require_commit);

/* Writes the standing as a part of a sentence: "not wanted: checkpoint-5 (...)"; nothing where it is
 * not known. */
void outcome_standing(FILE *out, const outcome *o);

/* Writes in one sentence what is durable and what is not. */
void outcome_sentence(FILE *out, const outcome *o);
/* Prints that as the last line on stderr. */
void outcome_print(const outcome *o);
/* Adds from "standing" on: counters, the newest commit, what is not durable. */
void outcome_json_state(record *r, const outcome *o);
/* Writes <state>/exit.json in one step, or says why not. */
void outcome_write(const outcome *o, const char *state);
/* Removes the outcome of an earlier run, so that nobody takes it for ours if we are killed. */
void outcome_forget(const char *state);

#endif
