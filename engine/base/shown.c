#include "shown.h"

#include <stdio.h>
#include <string.h>

size_t shown_utf8_len(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  size_t len = at[0] >= 0xc2 && at[0] <= 0xdf   ? 2
               : at[0] >= 0xe0 && at[0] <= 0xef ? 3
               : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                : 0;
  for (size_t i = 1; i < len; i++)
    if ((at[i] & 0xc0) != 0x80) return 0; /* also stops at the NUL */
  if (at[0] == 0xe0 && at[1] < 0xa0) return 0;
  if (at[0] == 0xed && at[1] > 0x9f) return 0;
  if (at[0] == 0xf0 && at[1] < 0x90) return 0;
  if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
  return len;
}

/* These change the direction of text: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069. */
static bool turns(const unsigned char *at, size_t len) {
  if (len == 2) return memcmp(at, "\xd8\x9c", 2) == 0;
  if (len != 3 || at[0] != 0xe2) return false;
  unsigned char last = at[2];
  return (at[1] == 0x80 && (last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae))) ||
         (at[1] == 0x81 && last >= 0xa6 && last <= 0xa9);
}

bool is_shown(const unsigned char *at, size_t *len) {
  size_t n = shown_utf8_len(at);
  *len = n ? n : 1;
  if (n == 0 || *at < 0x20 || *at == 0x7f) return false;
  return !(n == 2 && *at == 0xc2 && at[1] < 0xa0) && !turns(at, n);
}

const char *shown_size(uint64_t bytes, char out[SHOWN_SIZE_MAX]) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes / 1024;
  size_t unit = 0;
  if (bytes < 1024) {
    snprintf(out, SHOWN_SIZE_MAX, "%u B", (unsigned)bytes);
    return out;
  }
  /* 1023.5 would be rounded up to 1024 of a unit that has only 1023. */
  while (value >= 1023.5 && unit + 1 < sizeof units / sizeof *units) {
    value /= 1024;
    unit++;
  }
  snprintf(out, SHOWN_SIZE_MAX, value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return out;
}
