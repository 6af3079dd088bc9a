#include "retry.h"

#include "base/seconds.h"

/* Returns 1, 2, 4, ... 60 s; when time is short, each second counts. */
static int64_t pause_before(const retry_facts *f) {
  enum { LAST_S = 60 };
  int64_t s = f->short_of_time ? 1 : f->tries > 6 ? LAST_S : (int64_t)1 << (f->tries - 1);
  return s * SECOND_NS;
}

bool retry_again(const retry_facts *f, int64_t *pause_ns) {
  enum { LONGEST_S = 3600 };
  bool again = err_class_of(f->status) == ERR_CLASS_RETRYABLE;
  *pause_ns = pause_before(f);
  if (f->remedy == POLICY_RETRY) {
    again = err_class_of(f->status) != ERR_CLASS_FATAL;
    if (seconds_to_ns(f->seconds, "retry", pause_ns, NULL) < 0 || *pause_ns > LONGEST_S * SECOND_NS)
      *pause_ns = LONGEST_S * SECOND_NS;
  }
  return again && f->remedy != POLICY_GIVE_UP && f->remedy != POLICY_ABORT && f->tries < f->most;
}
