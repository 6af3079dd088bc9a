#include "common_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "with_cmocka.h"

/* A sanitizer would call it a fault that all is looked at. */
#define LOOKS_AT_ALL __attribute__((no_sanitize("address"))) __attribute__((no_sanitize("thread")))

LOOKS_AT_ALL static bool stands_at(const char *at, const char *text) {
  while (*text && *at == (char)(*text ^ COMMON_MEMORY_CHANGED)) at++, text++;
  return !*text;
}

LOOKS_AT_ALL int common_memory_has(const char *text) {
  char line[1024], rights[8] = "";
  unsigned long from = 0, to = 0, a, b;
  size_t len = strlen(text);
  int found = 0;
  FILE *f = fopen("/proc/self/smaps", "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    char r[8];
    if (sscanf(line, "%lx-%lx %4s", &a, &b, r) == 3) {
      from = a, to = b;
      memcpy(rights, r, sizeof r);
    }
    if (strncmp(line, "VmFlags:", 8) != 0 || strncmp(rights, "rw", 2) != 0) continue;
    if (strstr(line, " dd") || from == 0 || to - from > 1UL << 30) continue;
    for (const char *at = (const char *)from; at + len <= (const char *)to; at++)
      found += *at == (char)(*text ^ COMMON_MEMORY_CHANGED) && stands_at(at, text);
  }
  fclose(f);
  return found;
}
