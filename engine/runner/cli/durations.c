#include "durations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plain decimal number; strtod alone would take "inf", "0x10" and " 5" too. */
static bool number(const char *text, double *out, const char **rest) {
  size_t n = strspn(text, "0123456789.");
  char *end;
  if (n == 0) return false;
  *out = strtod(text, &end);
  *rest = end;
  return end == text + n;
}

bool duration_read(const char *text, double *seconds) {
  static const char letters[] = "smhd";
  static const double factors[] = {1, 60, 3600, 86400};
  const char *rest;
  if (strcmp(text, "inf") == 0) {
    *seconds = INFINITY;
    return true;
  }
  if (!number(text, seconds, &rest)) return false;
  if (*rest) {
    const char *letter = strchr(letters, *rest);
    if (!letter || rest[1]) return false;
    *seconds *= factors[letter - letters];
  }
  return true;
}

bool share_read(const char *text, double *share) {
  const char *rest;
  if (!number(text, share, &rest)) return false;
  bool percent = strcmp(rest, "%") == 0;
  if (percent) *share /= 100;
  /* "1" could be meant as one checkpoint, one per cent, or all. */
  if (!percent && (*rest || !strchr(text, '.'))) return false;
  return *share > 0 && *share <= 1;
}

bool size_read(const char *text, uint64_t *bytes) {
  static const char letters[] = "KMGTP";
  const char *rest;
  double size;
  if (!number(text, &size, &rest)) return false;
  const char *letter = *rest ? strchr(letters, *rest) : NULL;
  if (*rest && (!letter || (rest[1] && strcmp(rest + 1, "iB") != 0))) return false;
  for (const char *at = letters; letter && at <= letter; at++) size *= 1024;
  if (!(size >= 1 && size < 0x1p62)) return false;
  *bytes = (uint64_t)size;
  return true;
}
