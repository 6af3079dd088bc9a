/* answer: makes the answers about a run: of a live run that is asked over its socket, or from the
 * files of one that has ended. */
#ifndef RUNNER_JOB_ANSWER_H
#define RUNNER_JOB_ANSWER_H

#include <stdbool.h>
#include <stdio.h>

#include "ckpt.h"
#include "runner/cli/record.h"

/* Describes how a live run stands. 0, or negative: there is no answer. */
int status_answer(ckpt_run *run, bool json, FILE *out);
/* Begins a drain, and writes its number. Returns NULL, or why not, until the next call. */
const char *drain_begin(ckpt_run *run, int64_t ms, FILE *out);
/* Writes {"over":...,"code":...,"status":...,"late":...} on a line, and once it is over what became of each
 * checkpoint. Returns the same. */
const char *drain_answer(ckpt_run *run, int64_t number, bool json, FILE *out);
/* Explains a checkpoint or a file of a live run; returns the same. */
int why_answer(ckpt_run *run, const char *name, bool json, FILE *out);
/* Asks `run`, or if it is NULL the files that `o` names. 0, or a negative CKPT_* status. */
int why_print(ckpt *engine, ckpt_run *run, const ckpt_why_options *o, bool json, FILE *out);

/* Begins to take other policies: "job N"; or "over STATUS", and in the next line why not. */
void reload_answer(ckpt *engine, ckpt_run *run, const ckpt_reload_options *o, FILE *out);
/* "reading"; or "over STATUS", and behind it what came of it. 0, or negative: it is not known. */
int reloaded_answer(ckpt_run *run, uint64_t job, bool json, FILE *out);
/* Writes which policies rule beside the newest ones, and what those would let go; nothing, if there are none. */
void ruling_print(FILE *out, ckpt_run *run);
void ruling_json(record *r, ckpt_run *run);

#endif
