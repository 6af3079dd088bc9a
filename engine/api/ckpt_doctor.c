/* ckpt_doctor: the part of the public API that tries out a target. */
#include "ckpt_state.h"
#include "doctor/doctor.h"

_Static_assert((int)CKPT_FINE == (int)STORE_FINE && (int)CKPT_NOTE == (int)STORE_NOTE &&
                   (int)CKPT_WARNING == (int)STORE_WARNING && (int)CKPT_FAULT == (int)STORE_FAULT,
               "ckpt.h and store.h disagree");

struct examining {
  ckpt_examined_fn *fn;
  void *ctx;
};

static void on_finding(void *ctx, const store_finding *f) {
  const struct examining *x = ctx;
  ckpt_examined examined = {.size = sizeof examined,
                            .topic = f->topic,
                            .word = (uint32_t)f->word,
                            .status = f->status,
                            .text = f->text,
                            .advice = f->advice ? f->advice : ""};
  if (x->fn) x->fn(x->ctx, &examined);
}

int ckpt_doctor(ckpt *c, const char *uri, ckpt_examined_fn *fn, void *ctx) {
  struct examining x = {fn, ctx};
  doctor_sum sum;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, uri, "the target");
  if (rc < 0) return rc;
  rc = doctor_examine(c->env.io, &c->log, uri, on_finding, &x, &sum, &c->error);
  if (rc < 0 || sum.faults == 0) return rc;
  return err_set(&c->error, sum.status, "%s: saving there would fail: %u fault%s", uri, sum.faults,
                 sum.faults == 1 ? "" : "s");
}
