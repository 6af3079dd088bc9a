#include "match.h"

#include <string.h>
#include <stdint.h>

#include "prims/numbers/match_step.h"

enum { PATTERN_MAX = 255 };

typedef struct span {
  const char *at, *end;
} span;

/* A match finds these out besides yes or no. */
typedef struct capture {
  span step;            /* the digits that {step} stood for; NULL if there were none */
  const char *tail_at;  /* where the text of the pattern's last star begins */
  const char *last_end; /* in: the end of the pattern, so that only its last star counts */
} capture;

typedef enum element_kind { ONE_BYTE, ANY_BYTE, SET, STAR, STEP } element_kind;

typedef struct element {
  element_kind kind;
  size_t len; /* bytes in the pattern */
} element;

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool starts(span s, const char *word) {
  size_t len = strlen(word);
  return (size_t)(s.end - s.at) >= len && memcmp(s.at, word, len) == 0;
}

/* Returns the component that begins at `at`. */
static span component(const char *at, const char *end) {
  const char *slash = memchr(at, '/', (size_t)(end - at));
  return (span){at, slash ? slash : end};
}

/* Returns where the next component begins, or NULL after the last. */
static const char *after(span part, const char *end) {
  return part.end < end ? part.end + 1 : NULL;
}

/* Finds the bracket that closes the set at p.at, or NULL: then '[' is an ordinary byte.
 * `last_close` is the last ']' of the component: with it a row of open brackets is not searched
 * again and again. */
static const char *set_close(span p, const char *last_close) {
  const char *q = p.at + 1;
  if (q < p.end && *q == '!') q++;
  if (q < p.end && *q == ']') q++; /* a ']' that comes first is a member */
  if (!last_close || last_close < q) return NULL;
  return memchr(q, ']', (size_t)(p.end - q));
}

static element element_at(span p, const char *last_close, bool braces) {
  if (*p.at == '*') return (element){STAR, 1};
  if (*p.at == '?') return (element){ANY_BYTE, 1};
  if (*p.at == '[') {
    const char *close = set_close(p, last_close);
    if (close) return (element){SET, (size_t)(close - p.at) + 1};
  }
  if (braces && starts(p, "{step}")) return (element){STEP, 6};
  if (braces && starts(p, "{*}")) return (element){STAR, 3};
  return (element){ONE_BYTE, 1};
}

/* `p` is a whole set, brackets and all. */
static bool set_has(span p, unsigned char c) {
  const char *q = p.at + 1, *close = p.end - 1;
  bool negated = q < close && *q == '!';
  if (negated) q++;
  bool found = false;
  while (q < close) {
    unsigned char low = (unsigned char)*q, high = low;
    if (q + 2 < close && q[1] == '-') {
      high = (unsigned char)q[2];
      q += 2;
    }
    q++;
    found |= low <= c && c <= high;
  }
  return found != negated;
}

/* Returns how many bytes of text the element takes at t.at, 0 if it does not match. Every element
 * but a star takes at least one, and always the same number at the same place: that is why going
 * back to the last star alone is enough. */
static size_t take(element el, span p, span t, const char *text) {
  if (t.at == t.end) return 0;
  if (el.kind == ANY_BYTE) return 1;
  if (el.kind == ONE_BYTE) return *t.at == *p.at;
  if (el.kind == SET) return set_has((span){p.at, p.at + el.len}, (unsigned char)*t.at);
  /* {step} takes a whole run of digits, never a part of one. Otherwise "1234" would be read as step
   * 4 after a star, and each start inside a long run would cost the rest of the run. */
  if (t.at > text && is_digit(t.at[-1])) return 0;
  size_t n = 0;
  while (t.at + n < t.end && is_digit(t.at[n])) n++;
  return n;
}

/* Matches one component against one component. On a mismatch the last star takes one byte more;
 * earlier stars need not be tried again. So each pair of a pattern byte and a text byte meets at
 * most once for each star segment, which keeps the cost at pattern * text. */
static bool match_component(span p, span t, bool braces, capture *found) {
  const char *text = t.at, *last_close = memrchr(p.at, ']', (size_t)(p.end - p.at));
  const char *star = NULL, *resume = NULL;
  for (;;) {
    if (p.at < p.end) {
      element el = element_at(p, last_close, braces);
      if (el.kind == STAR) {
        p.at += el.len;
        star = p.at;
        resume = t.at;
        if (p.at == found->last_end) found->tail_at = t.at;
        continue;
      }
      size_t took = take(el, p, t, text);
      if (took > 0) {
        if (el.kind == STEP) found->step = (span){t.at, t.at + took};
        p.at += el.len;
        t.at += took;
        continue;
      }
    } else if (t.at == t.end) {
      return true;
    }
    if (!star || resume == t.end) return false;
    p.at = star;
    t.at = ++resume;
  }
}

/* Uses the idea of match_component one floor up: components are the letters and "**" is the star.
 * Each pair of components meets at most once, so the sum stays at pattern * text. */
static bool match_spans(span pattern, span text, bool braces, capture *found) {
  const char *p = pattern.at, *t = text.at; /* NULL: no component left */
  const char *star = NULL, *resume = NULL;
  bool starred = false;
  found->last_end = pattern.end;
  for (;;) {
    if (p) {
      span pc = component(p, pattern.end);
      if (pc.end - pc.at == 2 && starts(pc, "**")) {
        starred = true;
        star = p = after(pc, pattern.end);
        resume = t;
        continue;
      }
      if (t) {
        span tc = component(t, text.end);
        if (match_component(pc, tc, braces, found)) {
          p = after(pc, pattern.end);
          t = after(tc, text.end);
          continue;
        }
      }
    } else if (!t) {
      return true;
    }
    if (!starred || !resume) return false;
    p = star;
    t = resume = after(component(resume, text.end), text.end);
  }
}

static span whole(const char *text) {
  return (span){text, text + strlen(text)};
}

static const char *base_of(const char *path, const char *end) {
  const char *slash = memrchr(path, '/', (size_t)(end - path));
  return slash ? slash + 1 : path;
}

bool match_glob(const char *glob, const char *text) {
  capture found = {0};
  return match_spans(whole(glob), whole(text), false, &found);
}

/* A pattern without its anchor and its trailing slash. */
typedef struct shape {
  span body;
  bool anchored; /* against the whole path, else against the last component */
  bool dir;      /* it ended in a slash */
} shape;

static shape shape_of(const char *pattern) {
  shape s = {.body = whole(pattern)};
  s.dir = s.body.end > s.body.at && s.body.end[-1] == '/';
  if (s.dir) s.body.end--;
  s.anchored = memchr(s.body.at, '/', (size_t)(s.body.end - s.body.at)) != NULL;
  if (starts(s.body, "./")) s.body.at += 2;
  return s;
}

static bool match_shape(const shape *s, const char *path, bool braces, capture *found) {
  span text = whole(path);
  if (!s->anchored) text.at = base_of(path, text.end);
  return match_spans(s->body, text, braces, found);
}

bool match_exclude(const char *pattern, const char *path, bool is_dir) {
  shape s = shape_of(pattern);
  capture found = {0};
  return (is_dir || !s.dir) && match_shape(&s, path, false, &found);
}

/* The checks. A pattern that a person wrote and that can never do what it seems to say is refused:
 * nobody would notice before the day when nothing was saved. */

static int bad(err *e, const char *pattern, const char *why) {
  return err_set(e, ERR_INVAL, "pattern \"%.*s\": %s", PATTERN_MAX, pattern, why);
}

static int check_set(const char *pattern, span set, err *e) {
  if (starts(set, "[^")) return bad(e, pattern, "write [!...] for \"none of these\", not [^...]");
  if (starts(set, "[[:")) return bad(e, pattern, "[[:class:]] is not known: write out the range");
  for (const char *q = set.at + 1; q + 2 < set.end - 1; q++)
    if (q[1] == '-' && (unsigned char)q[0] > (unsigned char)q[2])
      return bad(e, pattern, "a range in [...] runs backwards");
  return 0;
}

static int check_brace(const char *pattern, span p, bool braces, err *e) {
  if (!braces)
    return bad(e, pattern,
               "{...} has no meaning here: use * or [0-9]*, or [{] for the brace itself");
  const char *close = memchr(p.at, '}', (size_t)(p.end - p.at));
  if (!close) return bad(e, pattern, "\"{\" is not closed (write [{] for the brace itself)");
  return err_set(e, ERR_INVAL,
                 "pattern \"%s\": \"%.*s\" is not known: there are {step} and {*} "
                 "(write [{] for the brace itself)",
                 pattern, (int)(close - p.at) + 1, p.at);
}

/* Checks one component; *steps counts the {step}s of the whole pattern. */
static int check_component(const char *pattern, span p, bool braces, int *steps, err *e) {
  size_t len = (size_t)(p.end - p.at);
  if (len == 0) return bad(e, pattern, "an empty name between slashes");
  if ((len == 1 && *p.at == '.') || (len == 2 && starts(p, "..")))
    return bad(e, pattern, "\".\" and \"..\" cannot be matched");
  const char *begin = p.at, *last_close = memrchr(p.at, ']', len);
  while (p.at < p.end) {
    element el = element_at(p, last_close, braces);
    int rc = 0;
    if (el.kind == SET) rc = check_set(pattern, (span){p.at, p.at + el.len}, e);
    if (el.kind == ONE_BYTE && *p.at == '[') rc = bad(e, pattern, "\"[\" is not closed");
    if (el.kind == ONE_BYTE && *p.at == '{') rc = check_brace(pattern, p, braces, e);
    if (el.kind == STEP) {
      const char *next = p.at + el.len;
      if (++*steps > 1) rc = bad(e, pattern, "{step} may stand in it only once");
      if ((p.at > begin && is_digit(p.at[-1])) || (next < p.end && is_digit(*next)))
        rc = bad(e, pattern, "a digit beside {step} never matches: {step} takes all digits");
    }
    if (rc < 0) return rc;
    p.at += el.len;
  }
  return 0;
}

static int check(const char *pattern, bool braces, err *e) {
  size_t len = strlen(pattern);
  if (len == 0) return err_set(e, ERR_INVAL, "a pattern is empty");
  if (len > PATTERN_MAX)
    return err_set(e, ERR_INVAL, "pattern \"%.40s...\": %zu bytes, at most %d are allowed", pattern,
                   len, PATTERN_MAX);
  if (*pattern == '/')
    return bad(e, pattern, "patterns are relative: write ./ in front of this one");
  shape s = shape_of(pattern);
  int steps = 0, rc = 0;
  for (const char *p = s.body.at; p && rc == 0;) {
    span part = component(p, s.body.end);
    rc = check_component(pattern, part, braces, &steps, e);
    p = after(part, s.body.end);
  }
  return rc;
}

int match_exclude_check(const char *pattern, err *e) {
  return check(pattern, false, e);
}

int match_anywhere_check(const char *pattern, err *e) {
  int rc = match_exclude_check(pattern, e);
  const char *slash = rc == 0 ? strchr(pattern, '/') : NULL;
  if (!slash || slash[1] == 0) return rc;
  return err_set(e, ERR_INVAL,
                 "\"%.80s\" has a slash that is not at its end: it means names below a checkpoint, "
                 "at any depth",
                 pattern);
}

static bool ends(span s, const char *word) {
  size_t len = strlen(word);
  return (size_t)(s.end - s.at) >= len && memcmp(s.end - len, word, len) == 0;
}

static match_kind kind_of(const shape *s) {
  if (s->dir) return MATCH_DIR;
  return ends(s->body, "{step}.*") || ends(s->body, "{*}.*") ? MATCH_GROUP : MATCH_FILE;
}

int match_unit_check(const char *pattern, match_kind *kind, err *e) {
  int rc = check(pattern, true, e);
  if (rc == 0 && kind) {
    shape s = shape_of(pattern);
    *kind = kind_of(&s);
  }
  return rc;
}

static int64_t number_of(span digits) {
  int64_t n = 0;
  for (; digits.at < digits.end; digits.at++) {
    int digit = *digits.at - '0';
    if (n > (INT64_MAX - digit) / 10) return MATCH_NO_STEP;
    n = n * 10 + digit;
  }
  return n;
}

/* Returns the part of `name` that the pattern leaves open, from its first wildcard to its last. The
 * part that the pattern spells out says nothing about this unit: with "*.h5" each file would be
 * step 5. */
static span open_part(span pattern, span name) {
  const char *last_close = memrchr(pattern.at, ']', (size_t)(pattern.end - pattern.at));
  size_t before = 0, behind = 0;
  bool open = false;
  while (pattern.at < pattern.end) {
    element el = element_at(pattern, last_close, true);
    if (el.kind != ONE_BYTE) {
      open = true;
      behind = 0;
    } else if (open) {
      behind++;
    } else {
      before++;
    }
    pattern.at += el.len;
  }
  if (!open) return (span){name.at, name.at};
  return (span){name.at + before, name.end - behind};
}

bool match_unit_path(const char *pattern, const char *path, bool is_dir, match_unit *out) {
  shape s = shape_of(pattern);
  match_kind kind = kind_of(&s);
  capture found = {0};
  if (is_dir != (kind == MATCH_DIR) || !match_shape(&s, path, true, &found)) return false;
  span text = whole(path), body = s.body;
  if (kind == MATCH_GROUP) {
    text.end = found.tail_at - 1; /* without the dot */
    body.end -= 2;
  }
  span name = {base_of(path, text.end), text.end};
  if (name.at == name.end) return false; /* ".x" has no stem */
  body.at = base_of(body.at, body.end);
  *out = (match_unit){.kind = kind, .name_len = (size_t)(text.end - path)};
  span open = open_part(body, name);
  out->step =
      found.step.at ? number_of(found.step) : match_step_between(name.at, open.at, open.end);
  out->numbered = found.step.at || match_numbered_between(name.at, open.at, open.end);
  out->called = !found.step.at && match_called_between(name.at, open.at, open.end);
  return true;
}
