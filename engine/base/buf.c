#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "secret.h"

void buf_init(buf *b, size_t max) {
  *b = (buf){.max = max};
}

void buf_init_secret(buf *b, size_t max) {
  *b = (buf){.max = max, .secret = true};
}

void buf_free(buf *b) {
  if (b->secret)
    secret_free(b->data);
  else
    free(b->data);
  b->data = NULL;
  b->len = b->room = 0;
}

void buf_clear(buf *b) {
  if (b->secret && b->data) explicit_bzero(b->data, b->len);
  b->len = 0;
  b->failure = 0;
  if (b->data) b->data[0] = 0;
}

char *buf_reserve(buf *b, size_t len) {
  if (b->failure) return NULL;
  if (len > b->max - b->len) {
    b->failure = ERR_LIMIT;
    return NULL;
  }
  size_t need = b->len + len + 1;
  if (need > b->room) {
    size_t room = b->room ? b->room : 64;
    while (room < need) room += room / 2;
    if (room > b->max) room = b->max + 1; /* the cap holds for the memory too */
    char *data = b->secret ? secret_resize(b->data, room) : realloc(b->data, room);
    if (!data) {
      b->failure = ERR_NOMEM;
      return NULL;
    }
    b->data = data;
    b->room = room;
  }
  return b->data + b->len;
}

void buf_grown(buf *b, size_t len) {
  b->len += len;
  b->data[b->len] = 0;
}

void buf_add(buf *b, const void *bytes, size_t len) {
  char *to = buf_reserve(b, len);
  if (!to) return;
  if (len) memcpy(to, bytes, len);
  buf_grown(b, len);
}

void buf_str(buf *b, const char *text) {
  buf_add(b, text, strlen(text));
}

void buf_fmt(buf *b, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  if (len < 0 && !b->failure) b->failure = ERR_LIMIT; /* more than INT_MAX bytes */
  char *to = len < 0 ? NULL : buf_reserve(b, (size_t)len);
  if (to) {
    vsnprintf(to, (size_t)len + 1, fmt, again);
    buf_grown(b, (size_t)len);
  }
  va_end(again);
}

int buf_failed(const buf *b) {
  return b->failure;
}

char *buf_take(buf *b) {
  if (b->failure || b->secret) return NULL;
  char *data = b->data;
  buf_init(b, b->max);
  return data;
}
