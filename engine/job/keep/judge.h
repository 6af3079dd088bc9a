/* judge: tells what retention would do with each checkpoint of a target, and why. Reads only. */
#ifndef JOB_KEEP_JUDGE_H
#define JOB_KEEP_JUDGE_H

#include "catalog/catalog.h"
#include "decision/policy.h"
#include "job/keep/prune_thin.h"
#include "plan/generations.h"
#include "plan/retention.h"

typedef struct judge {
  const io *io;
  const log_sink *log;
  policy *policy; /* asked which it keeps; changes of its memory are forgotten */
  retention_limits limits;
} judge;

/* Valid in the call. */
typedef struct judged {
  const catalog_item *item;
  retention_verdict verdict;
  const char *policy;              /* the policy that decided, or "" */
  const char *reason;              /* of a rule of retention.h with the policy's own after it */
  int64_t wait_ns;                 /* as in retention_item; with RETENTION_DROP: its grace period */
  const prune_thin_planned *loses; /* what newer ones have goes of it; NULL: nothing */
} judged;

/* Returns 0 to go on; any other value ends the walk and is returned. */
typedef int judge_fn(void *ctx, const judged *what);

/* True if older commits of its name may go without the policy's word: that name is written again and again. */
bool judge_reused(const policy *p, const runlog_state *state, const char *prefix,
                  const runlog_commit *c);
/* Returns why the core lets this commit go, without the policy's word (static text); NULL: it does
 * not. `doubt` may be NULL. Where nothing is deleted it lets nothing go by itself: what it dropped somebody
 * else would delete, and nobody has asked for that. */
const char *judge_passed(const policy *p, const runlog_state *state, const char *prefix,
                         const runlog_commit *c, bool no_delete, const generations_doubt *doubt);

/* Judges each commit of each log at or below the place, except those whose data is gone. */
int judge_target(const judge *how, const char *where, judge_fn *fn, void *ctx, err *e);

#endif
