/* plan: the ordered operations of one job, as data. It can be printed, parsed, compared, and looked
 * at without being run; an operation that is unknown or out of order rejects the whole plan. */
#ifndef CORE_PLAN_H
#define CORE_PLAN_H

#include "base/buf.h"
#include "base/err.h"
#include "core/detect.h"
#include "core/policy.h"

typedef enum plan_op {
  PLAN_PROVE,    /* a structural check of the unit: not sound ends the job, nothing was done */
  PLAN_SNAPSHOT, /* copy it into the staging of this machine: the framework writes on under its name
                  */
  PLAN_ATTEMPT,  /* announce the save in the log */
  PLAN_UPLOAD,   /* move the files */
  PLAN_WITH,     /* save what belongs beside it */
  PLAN_GATHER,   /* of several ranks: put our part record, and wait for those of the others, who
                    see by ours that what is beside it was saved */
  PLAN_MANIFEST, /* write the table of contents */
  PLAN_PUBLISH,  /* one rename shows the directory */
  PLAN_COMMIT,   /* the one entry that makes it a checkpoint */
} plan_op;

enum { PLAN_OPS_MAX = 10, PLAN_UNIT_MAX = 4096 };

typedef struct plan {
  char unit[PLAN_UNIT_MAX]; /* path below the watched directory */
  match_kind kind;
  int64_t step;
  plan_op ops[PLAN_OPS_MAX];
  int count;
} plan;

/* What a plan has beside the usual. */
enum { PLAN_CAN_PUBLISH = 1, PLAN_HAS_RANKS = 2, PLAN_HAS_WITH = 4 };

/* The plan that carries a decision out on these facts. `flags`: PLAN_CAN_PUBLISH if the store has
 * the capability, ... A decision to wait gives an empty plan. ERR_LIMIT if the unit's path is too
 * long. */
int plan_save(const detect_unit *facts, const decision *want, unsigned flags, plan *out, err *e);

/* 0 if it is safe: each operation at most once and after those that it builds on, the commit last,
 * or no operation at all; a unit that lies below the watched directory by its name. ERR_INVAL or
 * ERR_LIMIT says what is wrong. A plan that does not pass is never begun. */
int plan_check(const plan *p, err *e);

const char *plan_op_name(plan_op op);
int plan_print(const plan *p, buf *out, err *e); /* one JSON object */
/* Also passes plan_check; after an error *out is an empty plan. Members that it does not know are
 * passed over. */
int plan_parse(const char *text, size_t len, plan *out, err *e);

#endif
