#include "match_series.h"

#include <string.h>

#include "prims/numbers/match_step.h"

static size_t put(char *out, size_t len, size_t at, const char *from, const char *to) {
  while (from < to && at + 1 < len) out[at++] = *from++;
  return at;
}

/* The shards of one model and the files of several ranks are kinds of their own: none is newer than
 * the others. A number stands for all that belongs to it, so a metric that gets a sign or another
 * length makes no other kind. */
void match_series(const char *unit_name, char *out, size_t len) {
  const char *from = unit_name, *end = from + strlen(from);
  static const char number[] = "#";
  match_number n;
  size_t at = 0;
  while (match_number_next(unit_name, from, end, &n)) {
    at = put(out, len, at, from, n.begin);
    if (n.kind == MATCH_NUMBER_PART)
      at = put(out, len, at, n.begin, n.end);
    else
      at = put(out, len, at, number, number + 1);
    from = n.end;
  }
  at = put(out, len, at, from, end);
  if (len) out[at] = '\0';
}

bool match_same_series(const char *unit_name, const char *other) {
  char a[512], b[512];
  match_series(unit_name, a, sizeof a);
  match_series(other, b, sizeof b);
  return strcmp(a, b) == 0;
}
