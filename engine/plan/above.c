#include "above.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 511, NAMES_MOST = 1 << 20, HEX_LEAST = 32 };

typedef struct reading {
  names *out;
  err *e;
} reading;

/* Returns the length of the UTF-8 character at `at`, or 0: a stray byte ends a name. After a text in a
 * Python object there is one. */
static size_t wide(const unsigned char *at, size_t left) {
  size_t len = *at >= 0xc2 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3 : 4;
  if (*at < 0xc2 || *at > 0xf4 || len > left) return 0;
  for (size_t i = 1; i < len; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return len;
}

static size_t run_length(const char *at, size_t left) {
  size_t len = 0;
  while (len < left) {
    unsigned char c = (unsigned char)at[len];
    size_t step = c >= 0x80 ? wide((const unsigned char *)at + len, left - len)
                            : c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
    if (step == 0) break;
    len += step;
  }
  return len;
}

/* Adds the last two components of a path. */
static int take_path(const reading *r, const char *at, size_t len) {
  const char *last = memrchr(at, '/', len);
  if (!last || last == at || last + 1 == at + len) return 0;
  const char *before = memrchr(at, '/', (size_t)(last - at));
  const char *begin = before ? before + 1 : at;
  char name[NAME_MAX_LEN + 1];
  size_t size = (size_t)(at + len - begin);
  if (begin == last || size > NAME_MAX_LEN) return 0;
  if (r->out->count >= NAMES_MOST) return err_set(r->e, ERR_LIMIT, "too many names in it");
  memcpy(name, begin, size);
  name[size] = 0;
  return names_add(r->out, name) ? 0 : err_set(r->e, ERR_NOMEM, "read its names: out of memory");
}

static bool is_hex(const char *at, size_t len) {
  if (len < HEX_LEAST || len % 2) return false;
  for (size_t i = 0; i < len; i++)
    if (!isxdigit((unsigned char)at[i])) return false;
  return true;
}

static unsigned digit(char c) {
  return (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

static int read_plain(const reading *r, const char *text, size_t len) {
  int rc = 0;
  for (size_t at = 0; rc == 0 && at < len;) {
    size_t size = run_length(text + at, len - at);
    rc = size ? take_path(r, text + at, size) : 0;
    at += size ? size : 1;
  }
  return rc;
}

static int read_hex(const reading *r, const char *at, size_t len) {
  char *bytes = malloc(len / 2);
  if (!bytes) return err_set(r->e, ERR_NOMEM, "read its names: out of memory");
  for (size_t i = 0; i < len / 2; i++)
    bytes[i] = (char)(digit(at[2 * i]) << 4 | digit(at[2 * i + 1]));
  int rc = read_plain(r, bytes, len / 2);
  free(bytes);
  return rc;
}

int above_read(const char *text, size_t len, names *out, err *e) {
  const reading r = {out, e};
  int rc = 0;
  for (size_t at = 0; rc == 0 && at < len;) {
    size_t size = run_length(text + at, len - at);
    if (size)
      rc = is_hex(text + at, size) ? read_hex(&r, text + at, size) : take_path(&r, text + at, size);
    at += size ? size : 1;
  }
  if (rc < 0)
    names_free(out);
  else
    names_sort_unique(out);
  return rc;
}
