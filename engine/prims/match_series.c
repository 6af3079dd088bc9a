#include "match_series.h"

#include <string.h>

#include "match.h"

/* The shards of one model and the files of several ranks are kinds of their own: none is newer than
 * the others. */
void match_series(const char *unit_name, char *out, size_t len) {
  size_t at = 0;
  for (const char *c = unit_name; *c && at + 1 < len;) {
    size_t digits = strspn(c, "0123456789");
    if (digits && !match_part_number(unit_name, c, c + digits)) {
      out[at++] = '#';
      c += digits;
      continue;
    }
    size_t run = digits ? digits : 1;
    while (run-- && at + 1 < len) out[at++] = *c++;
  }
  if (len) out[at] = '\0';
}

bool match_same_series(const char *unit_name, const char *other) {
  char a[512], b[512];
  match_series(unit_name, a, sizeof a);
  match_series(other, b, sizeof b);
  return strcmp(a, b) == 0;
}
