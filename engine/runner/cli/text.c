#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/shown.h"
#include "flags_named.h"

void text_size(FILE *out, uint64_t bytes) {
  char text[SHOWN_SIZE_MAX];
  fputs(shown_size(bytes, text), out);
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
  size_t len;
  for (const unsigned char *p = (const unsigned char *)text; *p; p += len) {
    bool shown = is_shown(p, &len);
    for (size_t i = 0; i < len; i++)
      if (shown)
        fputc(p[i], out);
      else
        fprintf(out, "\\x%02x", p[i]);
  }
}

static void prose(FILE *out, const char *text, void (*write)(FILE *, const char *)) {
  char *said = flags_named(text);
  write(out, said ? said : text);
  free(said);
}

void text_prose(FILE *out, const char *text) {
  prose(out, text, text_plain);
}

void text_json_prose(FILE *out, const char *text) {
  prose(out, text, text_json);
}

void text_member(FILE *out, const char *key, const char *value) {
  fprintf(out, "%-10s ", key);
  text_plain(out, value);
  fputc('\n', out);
}

void text_path(FILE *out, const char *path) {
  if (isatty(fileno(out)))
    text_plain(out, path);
  else
    fputs(path, out);
}

/* Writes a character of one to four bytes as JSON does in ASCII. No character that is not to be
 * shown lies past U+FFFF. */
static void put_escaped(FILE *out, const unsigned char *p, size_t len) {
  unsigned code = len == 1   ? *p
                  : len == 2 ? (*p & 0x1fu) << 6 | (p[1] & 0x3fu)
                             : (*p & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
  fprintf(out, "\\u%04x", code);
}

static void json_string(FILE *out, const char *text, bool name) {
  size_t len;
  fputc('"', out);
  for (const unsigned char *p = (const unsigned char *)text; *p; p += len) {
    bool shown = is_shown(p, &len), valid = shown_utf8_len(p) > 0;
    if (name && (!valid || *p < 0x20 || *p == 0x7f || *p == '%'))
      fprintf(out, "%%%02X", *p);
    else if (!valid)
      fputs("\\ufffd", out);
    else if (*p == '"' || *p == '\\')
      fprintf(out, "\\%c", *p);
    else if (!shown)
      put_escaped(out, p, len);
    else
      fwrite(p, 1, len, out);
  }
  fputc('"', out);
}

void text_json_printed(FILE *out, const char *json) {
  size_t len;
  for (const unsigned char *p = (const unsigned char *)json; *p; p += len)
    if (is_shown(p, &len) || *p == '\n' || *p == '\t')
      fwrite(p, 1, len, out);
    else if (shown_utf8_len(p) == 0)
      fputs("\\ufffd", out);
    else
      put_escaped(out, p, len);
}

void text_json(FILE *out, const char *text) {
  json_string(out, text, false);
}

void text_json_name(FILE *out, const char *name) {
  json_string(out, name, true);
}
