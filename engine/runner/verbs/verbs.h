/* verbs: the table of everything that a user can type behind the program's name. Each verb is a
 * file, verb_NAME.c. */
#ifndef RUNNER_VERBS_VERBS_H
#define RUNNER_VERBS_VERBS_H

#include "runner/cli/verb.h"

extern const verb verb_run;
extern const verb verb_watch;
extern const verb verb_sync;
extern const verb verb_restore;
extern const verb verb_ls;
extern const verb verb_show;
extern const verb verb_latest;
extern const verb verb_verify;
extern const verb verb_drill;
extern const verb verb_doctor;
extern const verb verb_why;
extern const verb verb_plan;
extern const verb verb_policy;
extern const verb verb_rm;
extern const verb verb_gc;
extern const verb verb_repair;
extern const verb verb_pin;
extern const verb verb_unpin;
extern const verb verb_mark;
extern const verb verb_bisect;
extern const verb verb_notify;
extern const verb verb_status;
extern const verb verb_drain;
extern const verb verb_pack;
extern const verb verb_unpack;
extern const verb verb_exec;
extern const verb verb_version;
extern const verb verb_help;

/* The verbs, in the order of the help. */
extern const verb *const verbs[];

/* Finds a verb; NULL: there is none of that name. */
const verb *verbs_find(const char *name);
/* Says that there is no such verb, and which one may be meant. Returns the exit code. */
int verbs_unknown(const char *name);
/* The same of the second word of a verb that has verbs of its own; `name` NULL: it is missing. */
int verbs_unknown_sub(const verb *v, const char *name);

/* Writes a line for each. */
void verbs_list(FILE *out);
/* Prints the help of one verb, NULL: the list. Returns the exit code. */
int verbs_explain(const verb *v);

#endif
