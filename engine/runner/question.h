/* question: what is asked of a live run over its socket: a line that begins with {"$ckpt".
 *
 *   {"$ckpt":"status","json":BOOL}             how the run stands
 *   {"$ckpt":"why","name":NAME,"json":BOOL}    what became of a checkpoint or a file
 *   {"$ckpt":"wait","name":NAME}               one line: "waiting: ...", "failed: ..." or "done"
 *
 * NAME is written as text_json_name() does it. Any other line is a result for the policies. */
#ifndef RUNNER_QUESTION_H
#define RUNNER_QUESTION_H

#include <stdbool.h>
#include <stdio.h>

#include "ckpt.h"

bool is_question(const char *line);
/* NULL, or why there is no answer (a static text). Overwrites `line`. */
const char *question_answer(ckpt_run *run, char *line, FILE *answer);

#endif
