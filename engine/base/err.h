/* err: the one table of status codes, and the error text that travels with a code.
 *
 * A function that can fail returns 0 (or a count) for success and a negative ERR_* otherwise, and
 * writes the whole story into the `err` that its caller owns: what failed, where, why, and what to
 * do next. Nobody logs and returns: the top of the call decides what to do with the text. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stddef.h>

/* The class says what a caller may do about an error. It belongs to the code, so it can be tested
 * and is never guessed from a text. */
typedef enum err_class {
  ERR_CLASS_NONE,      /* success */
  ERR_CLASS_RETRYABLE, /* the same request may succeed later */
  ERR_CLASS_PERMANENT, /* it will not succeed until something is changed */
  ERR_CLASS_FATAL,     /* this writer must stop writing */
} err_class;

/* name, number, class, text. Numbers are part of the ABI (ckpt.h repeats them as CKPT_E*, ckpt.c
 * asserts that both agree): append, never renumber. */
#define ERR_MAP(X)                                                                                 \
  X(INVAL, -1, PERMANENT, "invalid argument")                                                      \
  X(NOMEM, -2, FATAL, "out of memory")                                                             \
  X(IO, -3, RETRYABLE, "input/output error")                                                       \
  X(NOENT, -4, PERMANENT, "not found")                                                             \
  X(EXISTS, -5, PERMANENT, "exists already")                                                       \
  X(ACCESS, -6, PERMANENT, "permission denied")                                                    \
  X(NOSPACE, -7, PERMANENT, "no space, inodes or quota left")                                      \
  X(CORRUPT, -8, PERMANENT, "data does not match its digest")                                      \
  X(FORMAT, -9, PERMANENT, "malformed data")                                                       \
  X(VERSION, -10, PERMANENT, "written by a newer version")                                         \
  X(RETIRED, -11, PERMANENT, "changed or vanished while it was read")                              \
  X(FENCED, -12, FATAL, "fenced by a newer term")                                                  \
  X(OTHER_RUN, -13, PERMANENT, "the target belongs to another run")                                \
  X(HELD, -14, RETRYABLE, "held by another process")                                               \
  X(CANCELED, -15, PERMANENT, "cancelled")                                                         \
  X(TIMEOUT, -16, RETRYABLE, "timed out")                                                          \
  X(UNSUPPORTED, -17, PERMANENT, "not supported here")                                             \
  X(CONFLICT, -18, RETRYABLE, "lost a race with another writer")                                   \
  X(NOSTORE, -19, PERMANENT, "the store does not exist")                                           \
  X(LIMIT, -20, PERMANENT, "over a limit")                                                         \
  X(INTERNAL, -21, FATAL, "internal error")                                                        \
  X(POLICY, -22, PERMANENT, "the policy failed")

enum {
  ERR_OK = 0,
#define X(name, number, class, text) ERR_##name = number,
  ERR_MAP(X)
#undef X
};

enum { ERR_TEXT_MAX = 1024 };

/* One error. Zero-initialise it (`err e = {0}`); it owns nothing and may be copied. */
typedef struct err {
  int code;
  int sys; /* the errno behind it, or 0 */
  char text[ERR_TEXT_MAX];
} err;

/* Sets `e` (may be NULL) and returns `code`, so that `return err_set(e, ERR_X, ...)` reads well.
 * A text that is too long is cut, never overflows. The arguments may point into e->text. */
int err_set(err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Does as err_set for a failed system call: picks the code for `errnum` (an errno, positive or
 * negated) and appends its text. A text that is too long is cut before that, so the reason
 * survives. */
int err_sys(err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "where" in front of the text that is already in `e`; returns e->code. With a NULL `e` the
 * code is not known here (ERR_INTERNAL comes back): a function whose `e` may be NULL returns the
 * code that it kept. */
int err_wrap(err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifndef ERR_HOME
/* Compilers and clang-tidy read one file at a time. These macros tell them that err_set and err_sys
 * return a number below 0, so they do not follow paths on which a failed call goes on as if it had
 * worked, and warn of variables that it left unset. */
static inline int err_below_zero(int code) {
  return code < 0 ? code : ERR_INTERNAL;
}
#define err_set(...) err_below_zero(err_set(__VA_ARGS__))
#define err_sys(...) err_below_zero(err_sys(__VA_ARGS__))
#endif

const char *err_name(int code);        /* of the table: "NOENT"; "UNKNOWN" for an unknown code */
int err_of_name(const char *name);     /* the code; 0: none has this name */
const char *err_text(int code);        /* the table's text */
err_class err_class_of(int code);      /* ERR_CLASS_PERMANENT for an unknown code */
const char *err_class_name(err_class); /* "none", "retryable", "permanent", "fatal" */
int err_code_of_errno(int errnum);     /* the code that stands for an errno */

#endif
