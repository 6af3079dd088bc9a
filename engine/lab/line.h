/* line: the units of a trial in the line of those that are to be saved: which wait, which go for newer
 * ones, by the rules of plan/queue.h. */
#ifndef LAB_LINE_H
#define LAB_LINE_H

#include "lab/world.h"

void line_unit_free(lab_unit *u); /* NULL is fine */
/* Adds its name to what is told of an event. */
void line_note(lab *l, names *list, const lab_unit *u);
bool line_waits(const lab_unit *u);

/* What the rules of the queue see; the line is the trial's own room, until it is asked for again. */
queue_unit line_unit(lab_unit *u);
queue line_of(const lab *l, const lab_trial *t);

/* Puts a unit that is wanted into the line, or drops it, by the policy's word on the queue. */
void line_enter(lab *l, lab_trial *t, lab_unit *u);
/* The one that waits goes for a newer one of itself, which is wanted. */
void line_replace_waiting(lab *l, const lab_trial *t, const lab_unit *by);
void line_drop(lab *l, lab_unit *u, const char *reason, bool unwanted);
/* Those go for it that are older, and may; `all`: also those that could stay. */
void line_drop_older(lab *l, lab_trial *t, lab_unit *newer, bool all);
/* Puts those that are sent or wait behind the commits, in their order, and asks `keep` what it would
 * say then; what it remembers is not changed. */
void line_judge(lab *l, lab_trial *t);
/* Those come back that were let go for one that did not make it; */
void line_take_back(lab *l, lab_trial *t);
/* and none of them any more for which this one is there. */
void line_make_final(lab_trial *t, lab_unit *newer);

#endif
