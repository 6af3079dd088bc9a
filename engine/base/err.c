#define ERR_HOME
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
  int code;
  err_class class;
  const char *name, *text;
} table[] = {
#define X(name, number, class, text) {number, ERR_CLASS_##class, #name, text},
    ERR_MAP(X)
#undef X
};

enum { TABLE_LEN = sizeof table / sizeof table[0] };

static int row_of(int code) {
  for (int i = 0; i < TABLE_LEN; i++)
    if (table[i].code == code) return i;
  return -1;
}

const char *err_name(int code) {
  int row = row_of(code);
  return code == 0 ? "OK" : row < 0 ? "UNKNOWN" : table[row].name;
}

int err_of_name(const char *name) {
  for (int i = 0; i < TABLE_LEN; i++)
    if (strcmp(table[i].name, name) == 0) return table[i].code;
  return 0;
}

const char *err_text(int code) {
  int row = row_of(code);
  return code == 0 ? "success" : row < 0 ? "unknown error" : table[row].text;
}

err_class err_class_of(int code) {
  int row = row_of(code);
  return code == 0 ? ERR_CLASS_NONE : row < 0 ? ERR_CLASS_PERMANENT : table[row].class;
}

const char *err_class_name(err_class class) {
  switch (class) {
  case ERR_CLASS_NONE: return "none";
  case ERR_CLASS_RETRYABLE: return "retryable";
  case ERR_CLASS_PERMANENT: return "permanent";
  case ERR_CLASS_FATAL: return "fatal";
  }
  return "permanent";
}

int err_code_of_errno(int errnum) {
  switch (errnum < 0 ? -errnum : errnum) {
  case 0: return ERR_OK;
  case ENOENT:
  case ENOTDIR: return ERR_NOENT;
  case EEXIST:
  case ENOTEMPTY: return ERR_EXISTS;
  case EACCES:
  case EPERM:
  case EROFS: return ERR_ACCESS;
  case ENOSPC:
  case EDQUOT:
  case EFBIG: return ERR_NOSPACE;
  case ENOMEM: return ERR_NOMEM;
  case EINVAL:
  case ENAMETOOLONG:
  case ELOOP:
  case EISDIR: return ERR_INVAL;
  case ENOSYS:
  case EOPNOTSUPP:
  case EXDEV: return ERR_UNSUPPORTED;
  case ETIMEDOUT: return ERR_TIMEOUT;
  /* Errors that may pass belong here, too: descriptors come free (EMFILE, ENFILE), and a server
   * finds a file that it mislaid (ESTALE). If they were taken for "not there", a log would seem to
   * end. */
  default: return ERR_IO;
  }
}

/* The arguments may point into the old text of the same err, so the new one goes through a copy. */
static void format(err *e, const char *fmt, va_list args) {
  char text[ERR_TEXT_MAX];
  vsnprintf(text, sizeof text, fmt, args);
  memcpy(e->text, text, strlen(text) + 1);
}

/* Appends ": tail", cutting the text that is there to at most `keep` bytes, and then the tail. */
static void append(err *e, size_t keep, const char *tail) {
  size_t len = strnlen(e->text, keep);
  size_t room = sizeof e->text - len - 3;
  size_t more = strnlen(tail, room);
  memcpy(e->text + len, ": ", 2);
  memcpy(e->text + len + 2, tail, more);
  e->text[len + 2 + more] = 0;
}

int err_set(err *e, int code, const char *fmt, ...) {
  if (!e) return code;
  e->code = code;
  e->sys = 0;
  va_list args;
  va_start(args, fmt);
  format(e, fmt, args);
  va_end(args);
  return code;
}

/* Tells a person what can be done about it, where the errno alone says that. */
static const char *advice(int errnum) {
  switch (errnum) {
  case ENOSPC: return "; free space or inodes there";
  case EDQUOT: return "; free space there, or have the quota raised";
  case EFBIG: return "; raise the limit of file sizes (ulimit -f)";
  case EROFS: return "; mount it writable, or name another place";
  case EMFILE: return "; raise the limit of open files (ulimit -n)";
  default: return "";
  }
}

int err_sys(err *e, int errnum, const char *fmt, ...) {
  if (errnum < 0) errnum = -errnum;
  /* A caller that says "failed" without an errno must not hand out success. */
  int code = errnum ? err_code_of_errno(errnum) : ERR_INTERNAL;
  if (!e) return code;
  e->code = code;
  e->sys = errnum;
  va_list args;
  va_start(args, fmt);
  format(e, fmt, args);
  va_end(args);
  char space[128], why[256];
  snprintf(why, sizeof why, "%s%s", strerror_r(errnum, space, sizeof space), advice(errnum));
  /* A path can be longer than the text: the reason must not be what is cut. */
  append(e, sizeof e->text - strlen(why) - 3, why);
  return code;
}

int err_wrap(err *e, const char *fmt, ...) {
  if (!e) return ERR_INTERNAL;
  char old[ERR_TEXT_MAX];
  memcpy(old, e->text, sizeof old);
  va_list args;
  va_start(args, fmt);
  format(e, fmt, args);
  va_end(args);
  /* Both halves can be as long as the whole: a long "where" leaves the cause half of the room. */
  size_t half = sizeof old / 2, len = strlen(old);
  append(e, len < half ? sizeof old - len - 3 : half, old);
  return e->code;
}
