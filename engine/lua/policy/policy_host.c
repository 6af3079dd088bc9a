/* libexec/ckpt-policy: the process in which policies run. Frames on descriptors 0 and 1
 * (decision/policy_link.h); it ends when its input does. */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "prims/lockdown.h"
#include "policy_serve.h"

enum { FRAME_MAX = 64 << 20, CHUNK = 64 << 10 };

/* What was read and not asked for yet: most questions come with their length in one read. */
static struct {
  char bytes[CHUNK];
  size_t at, end;
} ahead;

/* Reads at least one byte; false: the other side is gone. */
static bool read_ahead(void) {
  ssize_t n;
  do n = read(0, ahead.bytes, sizeof ahead.bytes);
  while (n < 0 && errno == EINTR);
  ahead.at = 0;
  ahead.end = n > 0 ? (size_t)n : 0;
  return n > 0;
}

/* False: the other side is gone. */
static bool read_all(char *to, size_t len) {
  while (len > 0) {
    if (ahead.at == ahead.end && !read_ahead()) return false;
    size_t n = ahead.end - ahead.at < len ? ahead.end - ahead.at : len;
    memcpy(to, ahead.bytes + ahead.at, n);
    ahead.at += n;
    to += n;
    len -= n;
  }
  return true;
}

static bool write_all(const char *from, size_t len) {
  while (len > 0) {
    ssize_t n = write(1, from, len);
    if (n < 0 && errno != EINTR) return false;
    if (n < 0) continue;
    from += n;
    len -= (size_t)n;
  }
  return true;
}

static size_t frame_length(const unsigned char at[4]) {
  return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* Memory comes with the bytes, not with the length that was announced. */
static bool read_frame(const policy_serve *p, buf *request) {
  unsigned char head[4];
  if (!read_all((char *)head, sizeof head)) return false;
  size_t left = frame_length(head);
  if (left > FRAME_MAX) return false;
  lockdown_allow(left, policy_serve_states(p));
  buf_init(request, FRAME_MAX);
  while (left > 0) {
    size_t n = left < CHUNK ? left : CHUNK;
    char *to = buf_reserve(request, n);
    if (!to || !read_all(to, n)) return false;
    buf_grown(request, n);
    left -= n;
  }
  return true;
}

static bool write_frame(const buf *answer) {
  size_t len = answer->len;
  static char first[4 + CHUNK]; /* the length and as much as fits go in one write */
  size_t part = len < CHUNK ? len : CHUNK;
  for (int i = 0; i < 4; i++) first[i] = (char)(len >> 8 * i & 0xff);
  if (part > 0) memcpy(first + 4, answer->data, part);
  return len <= FRAME_MAX && write_all(first, 4 + part) &&
         write_all(answer->data + part, len - part);
}

static bool serve_one(policy_serve *p) {
  buf request = {0}, answer = {0};
  bool ok = read_frame(p, &request) &&
            policy_serve_call(p, request.data ? request.data : "", request.len, &answer) == 0 &&
            write_frame(&answer);
  buf_free(&request);
  buf_free(&answer);
  return ok;
}

int main(void) {
  json_object_seed(0); /* reads /dev/urandom, which is out of reach in a moment */
  policy_serve *p = policy_serve_new(lockdown());
  while (p && serve_one(p)) continue;
  policy_serve_free(p);
  return 0;
}
