/* Loaded before a program (LD_PRELOAD), it lets its clock on the wall go DAYS_AHEAD days before the
 * others. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int clock_fn(clockid_t which, struct timespec *out);

int clock_gettime(clockid_t which, struct timespec *out) {
  clock_fn *next = (clock_fn *)dlsym(RTLD_NEXT, "clock_gettime");
  const char *days = getenv("DAYS_AHEAD");
  int rc = next(which, out);
  if (rc == 0 && days && which == CLOCK_REALTIME) out->tv_sec += 86400 * atol(days);
  return rc;
}
