#include <string.h>

#include "structure_format.h"

/* Walks the values of a UBJSON object up to the brace that closes it. Strings and arrays of numbers
 * are jumped over, so that little is read; past WALK_MAX bytes or STEPS_MAX values the question
 * stays open, since a run serves no signal meanwhile. A tree of XGBoost has some twenty values: its
 * arrays are jumped over. */
enum { DEPTH_MAX = 64, WALK_MAX = 256 << 20, STEPS_MAX = 16 << 20 };

typedef enum ubjson_found { FOUND_ON, FOUND_CUT, FOUND_ODD } ubjson_found;

/* An object or array that is not closed yet. */
typedef struct ubjson_open {
  bool is_object, is_counted; /* a counted one has no closing bracket */
  uint8_t type;               /* of each of its values; 0: each has its own */
  uint64_t left;              /* of a counted one */
} ubjson_open;

typedef struct ubjson_walk {
  format_window *w;
  ubjson_found found;
  size_t depth;
  ubjson_open open[DEPTH_MAX];
} ubjson_walk;

/* Ends the walk. */
static int stop(ubjson_walk *u, ubjson_found found) {
  u->found = found;
  return 0;
}

/* These return 1, or 0 where the walk is over, or an error. */

static int byte(ubjson_walk *u, uint8_t *out) {
  int rc = format_byte(u->w, out);
  return rc == 0 ? stop(u, FOUND_CUT) : rc;
}

static int skip(ubjson_walk *u, uint64_t n) {
  return format_skip(u->w, n) ? 1 : stop(u, FOUND_CUT);
}

/* Returns the bytes of a number, a character or a word; -1: it is none of them. */
static int width_of(uint8_t type) {
  switch (type) {
  case 'Z':
  case 'T':
  case 'F': return 0;
  case 'i':
  case 'U':
  case 'C': return 1;
  case 'I': return 2;
  case 'l':
  case 'd': return 4;
  case 'L':
  case 'D': return 8;
  default: return -1;
  }
}

/* Reads the number of a length or a count: its type, then its bytes, the highest first. */
static int length(ubjson_walk *u, uint8_t type, uint64_t *out) {
  uint8_t b = 0;
  if (!type || !strchr("iUIlL", type)) return stop(u, FOUND_ODD);
  *out = 0;
  for (int i = 0; i < width_of(type); i++) {
    int rc = byte(u, &b);
    if (rc <= 0) return rc;
    if (i == 0 && type != 'U' && b & 0x80) return stop(u, FOUND_ODD);
    *out = *out << 8 | b;
  }
  return 1;
}

static int typed_length(ubjson_walk *u, uint64_t *out) {
  uint8_t type;
  int rc = byte(u, &type);
  return rc <= 0 ? rc : length(u, type, out);
}

static int skip_text(ubjson_walk *u) {
  uint64_t len;
  int rc = typed_length(u, &len);
  return rc <= 0 ? rc : skip(u, len);
}

static int skip_numbers(ubjson_walk *u, uint64_t count, uint64_t width) {
  if (width > 0 && count > (u->w->f->size - u->w->at) / width) return stop(u, FOUND_CUT);
  return skip(u, count * width);
}

/* Reads what stands behind "[" or "{" before the first value: "$type" and "#count", or nothing. */
static int head(ubjson_walk *u, ubjson_open *o) {
  uint8_t b;
  int rc = byte(u, &b);
  if (rc > 0 && b == '$') {
    rc = byte(u, &o->type);
    if (rc > 0) rc = byte(u, &b);
    if (rc > 0 && b != '#') return stop(u, FOUND_ODD);
  }
  if (rc <= 0) return rc;
  o->is_counted = b == '#';
  if (o->is_counted) return typed_length(u, &o->left);
  u->w->at--; /* it was the first of the values */
  return 1;
}

static int open_one(ubjson_walk *u, bool is_object) {
  ubjson_open o = {.is_object = is_object};
  int rc = head(u, &o);
  if (rc <= 0) return rc;
  int width = o.type ? width_of(o.type) : -1;
  if (!is_object && width >= 0) return skip_numbers(u, o.left, (uint64_t)width);
  if (u->depth == DEPTH_MAX) return stop(u, FOUND_ODD);
  u->open[u->depth++] = o;
  return 1;
}

static int value(ubjson_walk *u, uint8_t type) {
  int width = width_of(type);
  if (width >= 0) return skip(u, (uint64_t)width);
  if (type == 'S' || type == 'H') return skip_text(u);
  if (type == '[' || type == '{') return open_one(u, type == '{');
  return stop(u, FOUND_ODD);
}

/* The next thing in the innermost that is open: its end, or a value with its key. */
static int step(ubjson_walk *u) {
  ubjson_open *o = &u->open[u->depth - 1];
  uint8_t b = 0, type = o->type;
  uint64_t len;
  int rc = 1;
  if (o->is_counted && o->left-- == 0) {
    u->depth--;
    return 1;
  }
  if (o->is_object || !type) rc = byte(u, &b);
  if (rc > 0 && !o->is_counted && b == (o->is_object ? '}' : ']')) {
    u->depth--;
    return 1;
  }
  if (rc > 0 && o->is_object) {
    rc = length(u, b, &len);
    if (rc > 0) rc = skip(u, len);
    if (rc > 0 && !type) rc = byte(u, &b);
  }
  return rc <= 0 ? rc : value(u, type ? type : b);
}

int format_ubjson(format_file *f) {
  format_window w = {.f = f, .at = 1}; /* behind the brace that it was known by */
  ubjson_walk u = {.w = &w};
  int rc = open_one(&u, true);
  for (int i = 0; rc > 0 && u.depth > 0 && w.read <= WALK_MAX && i < STEPS_MAX; i++) rc = step(&u);
  if (rc < 0) return rc;
  if (u.found == FOUND_CUT) return format_says(f, STRUCTURE_TORN, "UBJSON: it breaks off");
  if (rc > 0 && u.depth > 0) return format_says(f, STRUCTURE_UNKNOWN, "UBJSON: too large to check");
  if (u.found == FOUND_ODD || w.at != f->size)
    return format_says(f, STRUCTURE_UNKNOWN, "UBJSON: not one object");
  return format_proves(f, STRUCTURE_PROVES_WHOLE, "UBJSON: closed");
}
