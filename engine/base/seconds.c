#include "seconds.h"

#include <math.h>

int seconds_to_ns(double seconds, const char *what, int64_t *ns, err *e) {
  if (isnan(seconds) || seconds < 0)
    return err_set(e, ERR_INVAL,
                   "%s: %g is no time: give 0 or more seconds, infinity for one without end", what,
                   isnan(seconds) ? fabs(seconds) : seconds);
  double exact = seconds * 1e9;
  if (exact >= 0x1p63)
    *ns = SECONDS_FOREVER;
  else
    *ns = exact > 0 && exact < 1 ? 1 : (int64_t)exact;
  return 0;
}

int seconds_or(double seconds, int64_t otherwise, const char *what, int64_t *ns, err *e) {
  *ns = otherwise;
  return seconds == 0 ? 0 : seconds_to_ns(seconds, what, ns, e);
}

int seconds_or_none(double seconds, int64_t otherwise, const char *what, int64_t *ns, err *e) {
  *ns = 0;
  return seconds < 0 ? 0 : seconds_or(seconds, otherwise, what, ns, e);
}

double seconds_of_ns(int64_t ns) {
  return ns == SECONDS_FOREVER ? INFINITY : (double)ns / 1e9;
}

int64_t seconds_later(int64_t at, int64_t ns) {
  int64_t sum;
  return __builtin_add_overflow(at, ns, &sum) ? SECONDS_FOREVER : sum;
}

int64_t seconds_left(int64_t at, int64_t ns, int64_t now) {
  const int64_t end = seconds_later(at, ns);
  int64_t left;
  if (ns == SECONDS_FOREVER || end == SECONDS_FOREVER) return SECONDS_FOREVER;
  if (__builtin_sub_overflow(end, now, &left)) return now < 0 ? SECONDS_FOREVER : 0;
  return left > 0 ? left : 0;
}
