/* start_rule: what a start does where the store does not answer, and what becomes of one that began
 * without it when the store answers later. Decisions alone, of facts that others found. */
#ifndef RUN_START_RULE_H
#define RUN_START_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "commit/log/runlog_ref.h"

/* For how long an outage is waited out. `wanted_ns`: 0 is the default, 2 minutes where this place
 * has committed to this target before, else 15 s (it may never have worked); below 0 for a
 * second. */
int64_t start_patience(int64_t wanted_ns, bool committed_before);

/* What is known of a start that could not reach its store. */
typedef struct start_facts {
  bool wished; /* `start_anyway` */
  bool outage; /* it may answer later: not one that refused us, or that is not there */
  bool ranks;  /* it saves together with others */
  bool never;  /* the job gets no checkpoint to go on from */
  bool named;  /* it is to go on from one that was named */
  bool tied;   /* the newest commit that is known of this very log stands whole here */
} start_facts;
/* NULL: the job may begin without the store. Else why not; "": that was not wished. */
const char *start_refusal(const start_facts *f);

/* A log as it is when the store answers, for a job that began without it. */
typedef struct start_answer {
  bool other_run;       /* the place is another run's, and we are not to go on with that */
  bool held;            /* a writer is alive there, and we are not to push it aside */
  bool has_log;         /* there is one */
  runlog_ref newest;    /* its newest commit, dropped or not; n RUNLOG_NONE: none. `log` is known in
                        * any case */
  runlog_ref came_from; /* what we took for its newest commit; n RUNLOG_NONE: we knew of none */
} start_answer;
/* NULL: the run goes on as if it had begun with the store. Else why nothing may be saved there. */
const char *start_end(const start_answer *a);

/* What is known of whole checkpoints in the directory of a rank that are none of its target's. */
typedef struct start_strangers {
  bool fresh;    /* `fresh` */
  bool restores; /* the start makes the directory right by the rule: else it leaves them */
  size_t count;
  bool committed; /* the target has a commit of this run */
  bool used;      /* the directory was used with this very log before */
} start_strangers;
/* True if they may go to quarantine: no copy of a job that was begun with another target may be
 * lost from sight because a target was mistyped. With a commit it is the right one; and a start
 * that died before its first commit left them itself. */
bool start_may_move(const start_strangers *s);

#endif
