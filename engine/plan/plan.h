/* plan: the ordered operations of one job, as data, which can be looked at without being run. An
 * operation that is unknown or out of order rejects the whole plan. */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "base/err.h"
#include "event/detect.h"
#include "decision/policy.h"

typedef enum plan_op {
  PLAN_PROVE,    /* check the unit's structure: if it is not sound, the job ends, and nothing was
                  * done */
  PLAN_SNAPSHOT, /* copy it into the staging of this machine: the framework writes on under its name
                  */
  PLAN_ATTEMPT,  /* announce the save in the log */
  PLAN_UPLOAD,   /* move the files */
  PLAN_COMPANIONS, /* save the companions */
  PLAN_GATHER,     /* with several ranks: put our part record, and wait for those of the others, to
                  * whom ours says that the companions are saved */
  PLAN_MANIFEST,   /* write the table of contents */
  PLAN_PUBLISH,    /* one rename shows the directory */
  PLAN_COMMIT,     /* the one entry that makes it a checkpoint */
} plan_op;

enum { PLAN_OPS_MAX = 10, PLAN_UNIT_MAX = 4096 };

typedef struct plan {
  char unit[PLAN_UNIT_MAX]; /* path below the watched directory */
  match_kind kind;
  int64_t step;
  bool above; /* a file above the checkpoints */
  plan_op ops[PLAN_OPS_MAX];
  int count;
} plan;

/* A plan may have these beside the usual. */
enum { PLAN_CAN_PUBLISH = 1, PLAN_HAS_RANKS = 2, PLAN_HAS_COMPANIONS = 4 };

/* Makes the plan that carries a decision out on these facts; a file above the checkpoints has no
 * companions. `flags`: PLAN_CAN_PUBLISH if the store
 * has the capability, ... A decision to wait gives an empty plan. ERR_LIMIT if the unit's path is
 * too long. */
int plan_save(const detect_unit *facts, const decision *want, unsigned flags, plan *out, err *e);

/* Returns 0 if the plan is safe: each operation at most once and after those that it builds on, the
 * commit last, or no operation at all; a unit that lies below the watched directory by its name.
 * ERR_INVAL or ERR_LIMIT tells the fault. A plan that does not pass is never begun. */
int plan_check(const plan *p, err *e);

const char *plan_op_name(plan_op op);

#endif
