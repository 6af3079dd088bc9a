/* buf: a byte buffer with a cap that is set at its birth.
 *
 * Appending past the cap, or running out of memory, sets a sticky failure: a writer may append many
 * times and look once, at the end, with buf_failed(). The content is always NUL-terminated. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

typedef struct buf {
  char *data; /* owned; never NULL after the first append; NUL at data[len] */
  size_t len;
  size_t room;
  size_t max;  /* the most bytes it may ever hold */
  int failure; /* 0, ERR_LIMIT or ERR_NOMEM; sticky */
  bool secret; /* its memory is that of secret.h */
} buf;

void buf_init(buf *b, size_t max);
/* For what has keys or tokens in it: it is wiped when it is freed, cleared, or moves as it grows,
 * and buf_take() gives nothing. */
void buf_init_secret(buf *b, size_t max);
void buf_free(buf *b); /* may be called twice, and on a zeroed struct */
void buf_clear(buf *b);

void buf_add(buf *b, const void *bytes, size_t len);
void buf_str(buf *b, const char *text);
void buf_fmt(buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `len` more bytes and returns where they go, or NULL; follow with buf_grown(). */
char *buf_reserve(buf *b, size_t len);
void buf_grown(buf *b, size_t len);

/* 0, or ERR_LIMIT / ERR_NOMEM when any append failed. */
int buf_failed(const buf *b);

/* Hands the memory over: the caller frees it with free(). The buffer is empty afterwards. NULL if
 * the buffer failed or never held anything. */
char *buf_take(buf *b);

#endif
