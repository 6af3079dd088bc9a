/* begin: how a run begins: it is opened, made ready, and started; or it only tells what it would do. */
#ifndef RUN_BEGIN_BEGIN_H
#define RUN_BEGIN_BEGIN_H

#include "run/run.h"

/* A forecast for a unit, by a run over a directory in which nobody writes. */
typedef enum run_foreseen {
  RUN_WOULD_SAVE,
  RUN_IS_THERE,     /* this very content is committed */
  RUN_IS_OLDER,     /* it is an older commit of its name */
  RUN_IS_NOT_PROVEN /* nothing proves it whole, or it is torn */
} run_foreseen;
typedef int run_foresee_fn(void *ctx, const char *unit, int64_t step, run_foreseen what,
                           const char *reason);
/* Reads directory, rules and target, and writes nothing. Units come in byte order of their paths;
 * `fn` returns 0 to go on. Returns ERR_NOENT if there is no such directory, ERR_OTHER_RUN as
 * run_open does; whether a policy's `sync` wants a unit is not asked. Blocks. */
int run_foresee(const run_env *env, const run_options *options, run_foresee_fn *fn, void *ctx,
                err *e);

/* The functions below do as those of ckpt.h, with the texts in *e. */
int run_open(const run_env *env, const run_options *options, run **out, err *e);

typedef struct run_prepared {
  const char *resume, *restored_from; /* valid for the run's life; NULL: none */
  uint32_t restored, quarantined, found;
  uint32_t incomplete; /* of the quarantined */
} run_prepared;
int run_prepare(run *r, run_restore how, const char *named, run_prepared *out, err *e);

int run_start(run *r, err *e);

#endif
