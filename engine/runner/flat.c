#include "flat.h"

#include <stddef.h>
#include <string.h>

static void skip_blanks(char **at) {
  while (**at == ' ' || **at == '\t' || **at == '\r' || **at == '\n') ++*at;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Four digits at `p`; negative if they are none. */
static long hex4(const char *p) {
  long value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(p[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* Writes a character as UTF-8, which is never longer than its escape. */
static char *put_utf8(char *to, long c) {
  if (c < 0x80) {
    *to++ = (char)c;
  } else if (c < 0x800) {
    *to++ = (char)(0xc0 | c >> 6);
    *to++ = (char)(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *to++ = (char)(0xe0 | c >> 12);
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  } else {
    *to++ = (char)(0xf0 | c >> 18);
    *to++ = (char)(0x80 | (c >> 12 & 0x3f));
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  }
  return to;
}

/* \uXXXX, or two of them that make one character. A NUL would cut the text short, half of a pair is
 * no character. */
static long take_escape_u(const char **from) {
  long c = hex4(*from);
  if (c <= 0 || (c >= 0xdc00 && c < 0xe000)) return -1;
  *from += 4;
  if (c < 0xd800 || c >= 0xdc00) return c;
  if ((*from)[0] != '\\' || (*from)[1] != 'u') return -1;
  long low = hex4(*from + 2);
  if (low < 0xdc00 || low >= 0xe000) return -1;
  *from += 6;
  return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

char *flat_read_text(char **at) {
  static const char escapes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  if (**at != '"') return NULL;
  char *text = *at + 1, *to = text;
  const char *from = text;
  while (*from != '"') {
    if ((unsigned char)*from < 0x20) return NULL; /* the end, too */
    if (*from != '\\') {
      *to++ = *from++;
      continue;
    }
    const char *which = from[1] ? strchr(escapes, from[1]) : NULL;
    from += 2;
    if (which) {
      *to++ = values[which - escapes];
      continue;
    }
    if (from[-1] != 'u') return NULL;
    long c = take_escape_u(&from);
    if (c < 0) return NULL;
    to = put_utf8(to, c);
  }
  *at += from + 1 - *at;
  *to = 0;
  return text;
}

static bool take_word(char **at, const char *word) {
  size_t n = strlen(word);
  if (strncmp(*at, word, n) != 0) return false;
  *at += n;
  return true;
}

static bool take_number(char **at, uint64_t *out) {
  const uint64_t most = UINT64_C(1) << 53;
  uint64_t value = 0;
  const char *from = *at;
  while (**at >= '0' && **at <= '9') {
    value = value * 10 + (uint64_t)(*(*at)++ - '0');
    if (value > most) return false;
  }
  *out = value;
  size_t digits = (size_t)(*at - from);
  return digits == 1 || (digits > 1 && *from != '0');
}

static const char *take_value(char **at, flat_member *m) {
  if (**at == '"') {
    m->kind = FLAT_TEXT;
    m->text = flat_read_text(at);
    return m->text ? NULL : "a text is malformed";
  }
  m->kind = FLAT_BOOL;
  m->number = take_word(at, "true");
  if (m->number || take_word(at, "false")) return NULL;
  m->kind = FLAT_NUMBER;
  return take_number(at, &m->number) ? NULL : "a value is no text, boolean or whole number";
}

static const flat_member *find(const flat *f, const char *key) {
  for (int i = 0; i < f->count; i++)
    if (strcmp(f->members[i].key, key) == 0) return &f->members[i];
  return NULL;
}

static const char *take_member(char **at, flat *f) {
  if (f->count == FLAT_MEMBERS) return "it has too many members";
  flat_member m = {.text = ""};
  m.key = flat_read_text(at);
  if (!m.key) return "a key is malformed";
  if (find(f, m.key)) return "a key is there twice";
  skip_blanks(at);
  if (*(*at)++ != ':') return "there is no colon behind a key";
  skip_blanks(at);
  const char *wrong = take_value(at, &m);
  f->members[f->count++] = m;
  return wrong;
}

const char *flat_read(char *text, flat *out) {
  char *at = text;
  out->count = 0;
  skip_blanks(&at);
  if (*at++ != '{') return "it is no object";
  skip_blanks(&at);
  if (*at == '}') {
    at++;
  } else {
    for (char next = ','; next == ',';) {
      skip_blanks(&at);
      const char *wrong = take_member(&at, out);
      if (wrong) return wrong;
      skip_blanks(&at);
      next = *at ? *at++ : 0;
      if (next != ',' && next != '}') return "the object does not end";
    }
  }
  skip_blanks(&at);
  return *at ? "something follows the object" : NULL;
}

const char *flat_text(const flat *f, const char *key, const char *otherwise) {
  const flat_member *m = find(f, key);
  return m && m->kind == FLAT_TEXT ? m->text : otherwise;
}

bool flat_bool(const flat *f, const char *key) {
  const flat_member *m = find(f, key);
  return m && m->kind == FLAT_BOOL && m->number;
}

uint64_t flat_number(const flat *f, const char *key, uint64_t otherwise) {
  const flat_member *m = find(f, key);
  return m && m->kind == FLAT_NUMBER ? m->number : otherwise;
}

void flat_decode_name(char *name) {
  char *to = name;
  for (const char *p = name; *p; p++) {
    int high = *p == '%' ? hex_digit(p[1]) : -1;
    int low = high >= 0 ? hex_digit(p[2]) : -1;
    if (low >= 0 && high * 16 + low != 0) {
      *to++ = (char)(high * 16 + low);
      p += 2;
    } else {
      *to++ = *p;
    }
  }
  *to = 0;
}
