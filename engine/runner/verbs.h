/* verbs: one function for each verb of the command line; it returns the exit code. */
#ifndef RUNNER_VERBS_H
#define RUNNER_VERBS_H

#include <stdbool.h>
#include <stdio.h>

#include "ckpt.h"
#include "options.h"

int verb_run(const options *o); /* also `watch` and `sync`: the same without a child */
int verb_sync(const options *o);
int verb_restore(const options *o);
int verb_ls(const options *o);
int verb_show(const options *o);
int verb_latest(const options *o);
int verb_verify(const options *o);
int verb_why(const options *o);
int verb_plan(const options *o);
int verb_rm(const options *o);
int verb_gc(const options *o);
int verb_pack(const options *o);
int verb_unpack(const options *o);
int verb_pin(const options *o);
int verb_unpin(const options *o);
int verb_mark(const options *o);
int verb_bisect(const options *o);
int verb_notify(const options *o);
int verb_status(const options *o);
int verb_exec(const options *o);
int verb_version(const options *o);

/* What a live run answers when it is asked over its socket. 0, or negative: no answer. */
int status_answer(ckpt_run *run, bool json, FILE *out);
int why_answer(ckpt_run *run, const char *name, bool json, FILE *out);

#endif
