/* above: what a file above the checkpoints says. A tuner's state names the checkpoints that its trials
 * go on from; one that names what nobody has is of no use. Pure: texts go in, names come out. */
#ifndef PLAN_ABOVE_H
#define PLAN_ABOVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/names.h"

/* So many generations of each kind of such a file are kept: the newest may name what was not in the
 * store before the machine was lost. */
enum { ABOVE_KEPT = 3 };

/* Larger texts are not read. */
enum { ABOVE_TEXT_MAX = 64 << 20 };

/* Collects the last two components of each path in the text, "trial_1/checkpoint_000003", sorted and
 * each once. Python objects are looked into, too, as they are and as hexadecimal digits (as Ray puts
 * them into JSON). What is no path may be among them: ask for what you know. ERR_LIMIT: there is too
 * much in it. */
int above_read(const char *text, size_t len, names *out, err *e);

#endif
