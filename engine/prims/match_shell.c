#include <string.h>

#include "match.h"

/* A pattern is held against a subject: `lead` ("" or "./") and the bytes behind it. */
typedef struct subject {
  const char *lead, *at, *end;
} subject;

/* One character: a code point, or a byte that belongs to none. */
typedef struct character {
  uint32_t code;
  size_t len;
} character;

enum { LONE_BYTE = 0x110000 }; /* added to it: no code point is that large */

static bool is_tail(const unsigned char *at, const unsigned char *end, size_t n) {
  for (size_t i = 1; i <= n; i++)
    if (at + i >= end || (at[i] & 0xc0) != 0x80) return false;
  return true;
}

/* Reads the character at `from`, which is before `to`. Names need not be UTF-8: a byte that is none
 * stands for itself. */
static character character_at(const char *from, const char *to) {
  const unsigned char *at = (const void *)from, *end = (const void *)to;
  uint32_t code;
  if (*at < 0x80) return (character){*at, 1};
  if (*at >= 0xc2 && *at < 0xe0 && is_tail(at, end, 1))
    return (character){(*at & 0x1fU) << 6 | (at[1] & 0x3fU), 2};
  if (*at >= 0xe0 && *at < 0xf0 && is_tail(at, end, 2)) {
    code = (*at & 0x0fU) << 12 | (at[1] & 0x3fU) << 6 | (at[2] & 0x3fU);
    if (code >= 0x800 && (code < 0xd800 || code > 0xdfff)) return (character){code, 3};
  }
  if (*at >= 0xf0 && *at < 0xf5 && is_tail(at, end, 3)) {
    code = (*at & 0x07U) << 18 | (at[1] & 0x3fU) << 12 | (at[2] & 0x3fU) << 6 | (at[3] & 0x3fU);
    if (code >= 0x10000 && code <= 0x10ffff) return (character){code, 4};
  }
  return (character){LONE_BYTE + *at, 1};
}

/* Finds the bracket that closes the set which begins behind the '[' before `at`, or NULL: then that
 * '[' is a plain character. A ']' that comes first is a member. `last` is the last ']' of the
 * pattern: with it a row of open brackets is not searched again and again. */
static const char *set_close(const char *at, const char *last) {
  if (*at == '!') at++;
  if (*at == ']') at++;
  return last && at <= last ? strchr(at, ']') : NULL;
}

/* True if `c` is in the set between the brackets. A range that runs backwards is empty. */
static bool set_has(const char *at, const char *close, uint32_t c) {
  bool negated = *at == '!', found = false;
  if (negated) at++;
  while (at < close) {
    character low = character_at(at, close), high = low;
    at += low.len;
    if (close - at >= 2 && *at == '-') {
      high = character_at(at + 1, close);
      at += 1 + high.len;
    }
    found |= low.code <= c && c <= high.code;
  }
  return found != negated;
}

static bool at_end(const subject *s) {
  return !*s->lead && s->at == s->end;
}

static character next_of(const subject *s) {
  return *s->lead ? (character){(unsigned char)*s->lead, 1} : character_at(s->at, s->end);
}

static void go_on(subject *s, size_t len) {
  if (*s->lead)
    s->lead++;
  else
    s->at += len;
}

/* On a mismatch the last star takes one character more, as in match.c; so each pair of an element
 * and a character meets at most once for each star. */
static bool match_subject(const char *pattern, subject s) {
  const char *last = strrchr(pattern, ']'), *end = pattern + strlen(pattern), *star = NULL;
  subject resume = s;
  for (;;) {
    if (*pattern == '*') {
      star = ++pattern;
      resume = s;
      continue;
    }
    if (!*pattern && at_end(&s)) return true;
    if (*pattern && !at_end(&s)) {
      character want = character_at(pattern, end), have = next_of(&s);
      const char *close = *pattern == '[' ? set_close(pattern + 1, last) : NULL;
      if (close ? set_has(pattern + 1, close, have.code)
                : *pattern == '?' || want.code == have.code) {
        pattern = close ? close + 1 : pattern + want.len;
        go_on(&s, have.len);
        continue;
      }
    }
    if (!star || at_end(&resume)) return false;
    go_on(&resume, next_of(&resume).len);
    pattern = star;
    s = resume;
  }
}

bool match_shell(const char *pattern, const char *text) {
  return match_subject(pattern, (subject){"", text, text + strlen(text)});
}

static bool match_any(const char *const *patterns, const char *path, const char *end) {
  for (; *patterns; patterns++)
    if (match_subject(*patterns, (subject){"", path, end}) ||
        match_subject(*patterns, (subject){"./", path, end}))
      return true;
  return false;
}

bool match_excluded(const char *const *patterns, const char *path) {
  if (!patterns) return false;
  while (strncmp(path, "./", 2) == 0) path += 2;
  for (const char *end = path; *end;) {
    end = strchrnul(end + 1, '/');
    if (match_any(patterns, path, end)) return true;
  }
  return false;
}
