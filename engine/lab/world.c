#include "lab/world.h"

static int64_t world_now(const io *io, io_clock clock) {
  const lab *l = (const lab *)io; /* the io is its first member */
  (void)clock;
  return l->now;
}

int lab_open(lab *l, const lab_options *o, lab_sum *sum, err *e) {
  policy_options options = o->policy;
  *l = (lab){.io = *o->io, .o = o, .sum = sum};
  l->io.now = world_now;
  options.io = &l->io;
  options.log = o->log;
  int rc = policy_open(&options, &l->policy, e);
  if (rc == 0 && policy_has(l->policy, POLICY_EXCLUDE))
    log_say(o->log, LOG_WARN,
            "the function of `exclude` is not asked here: each checkpoint has the bytes that are "
            "told of it");
  if (rc == 0 && policy_newest(l->policy)->globs.count)
    log_say(o->log, LOG_WARN,
            "newest_only is not asked here: each checkpoint has the bytes that are told of it");
  return rc;
}

void lab_add(uint64_t *sum, uint64_t more) {
  if (__builtin_add_overflow(*sum, more, sum)) *sum = UINT64_MAX;
}
