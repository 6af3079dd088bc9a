/* policy_localtime: the local time of this host as data. "At night" is said by the clock on the wall, and
 * where that is set to summer time within the next day, the table says when and to what: a rule can
 * tell how long it is to a time of day without asking anybody. */
#include <time.h>

#include "base/packed.h"
#include "decision/policy_impl.h"

enum { LOOK_AHEAD_S = 26 * 3600 /* a day that is an hour longer, and some */ };

static const int64_t second_ns = 1000000000;

/* Finds the first second of another offset, if there is one within LOOK_AHEAD_S. */
static bool find_change(int64_t now_s, int32_t *after, int32_t *offset) {
  const int32_t present = io_utc_offset(now_s * second_ns);
  int32_t same = 0, other = LOOK_AHEAD_S;
  *offset = io_utc_offset((now_s + other) * second_ns);
  if (*offset == present) return false;
  while (other - same > 1) {
    int32_t middle = same + (other - same) / 2;
    int32_t there = io_utc_offset((now_s + middle) * second_ns);
    if (there == present) {
      same = middle;
    } else {
      other = middle;
      *offset = there;
    }
  }
  *after = other;
  return true;
}

static void put(packed_table *t, const char *key, int value) {
  packed_member(t, key);
  packed_put_real(t->out, value);
}

void policy_localtime(int64_t wall_ns, buf *out) {
  const int64_t now_s = wall_ns / second_ns;
  const int32_t ahead = io_utc_offset(wall_ns);
  time_t there = (time_t)(now_s + ahead);
  int32_t after, offset;
  struct tm t;
  packed_table local = packed_open(out, PACKED_OBJECT);
  if (gmtime_r(&there, &t)) {
    put(&local, "year", t.tm_year + 1900);
    put(&local, "month", t.tm_mon + 1);
    put(&local, "day", t.tm_mday);
    put(&local, "hour", t.tm_hour);
    put(&local, "minute", t.tm_min);
    put(&local, "second", t.tm_sec);
    put(&local, "weekday", t.tm_wday == 0 ? 7 : t.tm_wday);
    put(&local, "offset", ahead);
    if (find_change(now_s, &after, &offset)) {
      packed_member(&local, "change");
      packed_table change = packed_open(out, PACKED_OBJECT);
      put(&change, "after", after);
      put(&change, "offset", offset);
      packed_close(&change);
    }
  }
  packed_close(&local);
}
