#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

void text_size(FILE *out, uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    fprintf(out, "%u B", (unsigned)bytes);
    return;
  }
  double value = (double)bytes / 1024;
  size_t unit = 0;
  /* 1023.5 would be rounded up to 1024 of a unit that has only 1023. */
  while (value >= 1023.5 && unit + 1 < sizeof units / sizeof *units) {
    value /= 1024;
    unit++;
  }
  fprintf(out, value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void text_age(FILE *out, double seconds, int fine) {
  if (!(seconds > 0)) seconds = 0;
  if (fine && seconds < 9.95)
    fprintf(out, "%.1f s", seconds);
  else if (seconds < 120)
    fprintf(out, "%.0f s", seconds);
  else if (seconds < 2 * 3600.0)
    fprintf(out, "%.0f min", seconds / 60);
  else if (seconds < 48 * 3600.0)
    fprintf(out, "%.0f h", seconds / 3600);
  else
    fprintf(out, "%.0f d", seconds / 86400);
}

void text_time(FILE *out, int64_t ns) {
  time_t seconds = (time_t)(ns / 1000000000);
  struct tm tm;
  char text[64];
  if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
    fputs("?", out);
  else
    fputs(text, out);
}

void text_plain(FILE *out, const char *text) {
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    if (*p < 0x20 || *p == 0x7f)
      fprintf(out, "\\x%02x", *p);
    else
      fputc(*p, out);
  }
}

/* The length of the well-formed UTF-8 sequence at `p`, or 0: no overlong forms, no surrogates,
 * nothing above U+10FFFF, since strict JSON readers refuse a document that has them. */
static size_t utf8_length(const unsigned char *p) {
  static const struct {
    unsigned char first, last, low, high; /* of the first byte; of the second */
    size_t length;
  } forms[] = {
      {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
      {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
      {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (*p < forms[i].first || *p > forms[i].last) continue;
    if (forms[i].length > 1 && (p[1] < forms[i].low || p[1] > forms[i].high)) return 0;
    for (size_t k = 2; k < forms[i].length; k++)
      if ((p[k] & 0xc0) != 0x80) return 0;
    return forms[i].length;
  }
  return 0;
}

static void json_string(FILE *out, const char *text, bool name) {
  fputc('"', out);
  for (const unsigned char *p = (const unsigned char *)text; *p;) {
    size_t n = utf8_length(p);
    if (name && (n == 0 || *p < 0x20 || *p == 0x7f || *p == '%'))
      fprintf(out, "%%%02X", *p);
    else if (n == 0)
      fputs("\\ufffd", out);
    else if (*p == '"' || *p == '\\')
      fprintf(out, "\\%c", *p);
    else if (*p < 0x20 || *p == 0x7f)
      fprintf(out, "\\u%04x", *p);
    else
      fwrite(p, 1, n, out);
    p += n ? n : 1;
  }
  fputc('"', out);
}

void text_json(FILE *out, const char *text) {
  json_string(out, text, false);
}

void text_json_name(FILE *out, const char *name) {
  json_string(out, name, true);
}
