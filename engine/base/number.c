#include "number.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char point_here(void) {
  const struct lconv *here = localeconv();
  return here && *here->decimal_point ? *here->decimal_point : '.';
}

/* Takes the exponent's plus and leading zeros away, gives a number without point and exponent a
 * point, and exchanges the locale's point. */
static void tidy(char *text, char point) {
  char *at = strchr(text, point), *e = strchr(text, 'e');
  if (at) *at = '.';
  if (!at && !e) memcpy(text + strlen(text), ".0", 3);
  if (!e) return;
  char *from = e + 1, *to = e + 1;
  if (*from == '-') to++;
  if (*from == '-' || *from == '+') from++;
  while (*from == '0' && from[1]) from++;
  memmove(to, from, strlen(from) + 1);
}

void number_print(double value, char out[NUMBER_MAX]) {
  enum { DIGITS = 17, PLAIN = 16 };
  /* Where the full number needs no exponent, a short form has none either. */
  bool plain = value == 0 || (fabs(value) >= 1e-5 && fabs(value) < 1e16);
  for (int digits = 1; digits <= DIGITS; digits++) {
    snprintf(out, NUMBER_MAX, "%.*g", digits, value);
    if (plain && digits < PLAIN && strchr(out, 'e')) continue;
    if (strtod(out, NULL) == value) break;
  }
  tidy(out, point_here());
}

static size_t number_len(const char *at, const char *end, bool *real) {
  const char *from = at;
  *real = false;
  if (*at != '-' && !(*at >= '0' && *at <= '9')) return 0;
  for (; at < end && (strchr("+-.eE", *at) || (*at >= '0' && *at <= '9')); at++)
    *real = *real || *at == '.' || *at == 'e' || *at == 'E';
  return (size_t)(at - from);
}

static size_t string_len(const char *at, const char *end) {
  const char *from = at++;
  while (at < end && *at != '"') at += *at == '\\' && at + 1 < end ? 2 : 1;
  return (size_t)(at - from) + (at < end);
}

static void add_short(const char *at, size_t len, buf *out) {
  char text[400], number[NUMBER_MAX];
  if (len >= sizeof text) { /* of another program */
    buf_add(out, at, len);
    return;
  }
  memcpy(text, at, len);
  text[len] = 0;
  char *dot = strchr(text, '.');
  if (dot) *dot = point_here();
  double value = strtod(text, NULL);
  if (!isfinite(value)) {
    buf_add(out, at, len);
    return;
  }
  number_print(value, number);
  buf_str(out, number);
}

void number_shorten(const char *json, size_t len, buf *out) {
  const char *end = json + len;
  for (const char *at = json; at < end && !buf_failed(out);) {
    bool real = false;
    size_t n = *at == '"' ? string_len(at, end) : number_len(at, end, &real);
    if (real)
      add_short(at, n, out);
    else
      buf_add(out, at, n ? n : 1);
    at += n ? n : 1;
  }
}

static const struct {
  const char *name;
  double value;
} names[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
enum { NAMES = sizeof names / sizeof *names };

static bool ends_word(const char *at, const char *end) {
  return at >= end || strchr(",]} \t\r\n", *at);
}

void number_spell(const char *json, size_t len, buf *out) {
  const char *end = json + len;
  bool begins = true; /* a value may begin here */
  for (const char *at = json; at < end && !buf_failed(out);) {
    size_t n = *at == '"' ? string_len(at, end) : 1, i = 0;
    for (; begins && i < NAMES; i++) {
      size_t size = strlen(names[i].name);
      if ((size_t)(end - at) >= size && memcmp(at, names[i].name, size) == 0 &&
          ends_word(at + size, end))
        break;
    }
    if (begins && i < NAMES) {
      n = strlen(names[i].name);
      buf_fmt(out, "\"%s\"", names[i].name);
    } else {
      buf_add(out, at, n);
    }
    begins = strchr(":,[ \t\r\n", *at) != NULL;
    at += n;
  }
}

int number_spelt(const char *text, double *out) {
  for (size_t i = 0; i < NAMES; i++)
    if (strcmp(text, names[i].name) == 0) {
      *out = names[i].value;
      return 1;
    }
  return 0;
}
