/* question: answers questions to a live run over its socket. Each is a line that begins with
 * {"$ckpt".
 *
 *   {"$ckpt":"status","json":BOOL}             how the run stands
 *   {"$ckpt":"why","name":NAME,"json":BOOL}    what became of a checkpoint or a file
 *   {"$ckpt":"wait","name":NAME}               one line: "waiting: ...", "failed: ..." or "done"
 *   {"$ckpt":"drain","ms":N}                   begins a drain; one line: its number
 *   {"$ckpt":"drained","drain":N,"json":BOOL}  one line: how it stands; once it is over, more
 *
 *   {"$ckpt":"reload","policies":[NAME,...],"options":["N=V",...],"dry_run":BOOL}
 *                                              takes other policies; without lists: its own again
 *   {"$ckpt":"reloaded","job":N,"json":BOOL}   what came of it
 *
 * Answers to the last two begin with "job N", "reading" or "over STATUS"; see answer.h.
 *
 * NAME is written as text_json_name() does it. Any other line is a result for the policies. */
#ifndef RUNNER_JOB_QUESTION_H
#define RUNNER_JOB_QUESTION_H

#include <stdbool.h>
#include <stdio.h>

#include "ckpt.h"

bool is_question(const char *line);
/* Answers. Returns NULL, or why there is no answer (a static text). */
const char *question_answer(ckpt *engine, ckpt_run *run, const char *line, FILE *answer);

#endif
