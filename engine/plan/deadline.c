#include "deadline.h"

void deadline_note(deadline_pace *pace, uint64_t bytes, int64_t took_ns) {
  const double fades = 0.5; /* what a store does now is what counts */
  double seconds = (double)took_ns / 1e9;
  if (seconds <= 0) return;
  pace->bytes = fades * pace->bytes + (double)bytes;
  pace->seconds = fades * pace->seconds + seconds;
  if (pace->least_s <= 0 || seconds < pace->least_s) pace->least_s = seconds;
}

double deadline_takes(const deadline_pace *pace, uint64_t bytes) {
  if (pace->seconds <= 0) return -1;
  double takes = pace->bytes > 0 ? (double)bytes * pace->seconds / pace->bytes : pace->least_s;
  return takes < pace->least_s ? pace->least_s : takes;
}

bool deadline_fits(double takes_s, int64_t left_ns) {
  const double spare = 1.25; /* the store may be slower than it was */
  return takes_s >= 0 && takes_s * spare * 1e9 <= (double)left_ns;
}
