#include "clock.h"

#include <time.h>

double clock_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void clock_pause(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds,
                       .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}
