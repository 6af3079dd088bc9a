#include "archive_pipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prims/fs_find.h"
#include "prims/child.h"

static const int64_t stall_ns = (int64_t)60 * 1000000000, patience_ns = 300000000;

struct archive_pipe {
  archive_pipe_options o;
  child *child;
  size_t left; /* of the frame of output that is being taken */
  bool done;
  unsigned char feed[BUNDLE_COUNT + BUNDLE_CHUNK];
};

static int start(archive_pipe *p, err *e) {
  static const char *const kept[] = {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                     "LSAN_OPTIONS", NULL};
  char path[FS_PATH_MAX];
  names env = {0};
  int rc = fs_find_helper(p->o.io, p->o.libexec, "ckpt-archive", path, e);
  if (rc < 0) return rc;
  char *const argv[] = {path, (char *)p->o.verb, (char *)p->o.argument, NULL};
  rc = child_env(kept, &env)
           ? child_start(p->o.io, path, argv, (char **)names_list(&env), &p->child, e)
           : err_set(e, ERR_NOMEM, "cannot start %s: out of memory", path);
  names_free(&env);
  if (rc < 0)
    return err_wrap(e, "archives need their helper program (CKPT_LIBEXEC=DIR names another place)");
  return 0;
}

int archive_pipe_open(const archive_pipe_options *options, archive_pipe **out, err *e) {
  *out = NULL;
  archive_pipe *p = calloc(1, sizeof *p);
  if (!p) return err_set(e, ERR_NOMEM, "no memory for an archive");
  p->o = *options;
  int rc = start(p, e);
  if (rc < 0)
    archive_pipe_close(p);
  else
    *out = p;
  return rc;
}

void archive_pipe_close(archive_pipe *p) {
  if (!p) return;
  child_end(p->child, 0, NULL);
  free(p);
}

static child_limit limit_of(const archive_pipe *p) {
  return (child_limit){.wall_ns = p->o.io->now(p->o.io, IO_MONO) + stall_ns, .cpu_ns = INT64_MAX};
}

/* Fails because the helper is gone, or was too slow; `why` is the first sign of that. */
static int lost(archive_pipe *p, const err *why, err *e) {
  char how[CHILD_HOW_MAX];
  bool slow = why->code == ERR_TIMEOUT;
  child_end(p->child, slow ? 0 : patience_ns, how);
  p->child = NULL;
  if (slow)
    return err_set(e, ERR_TIMEOUT, "%s: the helper for archives moved nothing for a minute",
                   p->o.what);
  return err_set(e, ERR_IO, "%s: the helper for archives is gone: %s", p->o.what, how);
}

static int receive(archive_pipe *p, void *to, size_t len, err *e) {
  err why = {0};
  child_limit limit = limit_of(p);
  if (!p->child) return err_set(e, ERR_IO, "%s: the helper for archives is gone", p->o.what);
  return child_recv(p->child, to, len, &limit, &why) == 0 ? 0 : lost(p, &why, e);
}

static int feed(archive_pipe *p, err *e) {
  err why = {0};
  ssize_t n = p->o.feed(p->o.ctx, p->feed + BUNDLE_COUNT, BUNDLE_CHUNK, e);
  if (n < 0) return (int)n;
  bundle_put_count(p->feed, (uint32_t)n);
  child_limit limit = limit_of(p);
  int rc = child_send(p->child, p->feed, BUNDLE_COUNT + (size_t)n, &limit, &why);
  return rc == 0 ? 0 : lost(p, &why, e);
}

/* The helper's words are shown to people, and may be anybody's. */
static int failed(archive_pipe *p, size_t len, err *e) {
  unsigned char bytes[BUNDLE_COUNT + ERR_TEXT_MAX + 1] = {0};
  buf text;
  if (len < BUNDLE_COUNT || len > BUNDLE_COUNT + ERR_TEXT_MAX)
    return err_set(e, ERR_FORMAT, "%s: the helper for archives said nonsense", p->o.what);
  int rc = receive(p, bytes, len, e);
  if (rc < 0) return rc;
  int code = (int)bundle_get_count(bytes);
  if (code >= 0 || strcmp(err_name(code), "UNKNOWN") == 0) code = ERR_FORMAT;
  buf_init(&text, ERR_TEXT_MAX);
  js_plain((const char *)bytes + BUNDLE_COUNT, ERR_TEXT_MAX - 1, &text);
  rc = err_set(e, code, "%s: %s", p->o.what, text.data ? text.data : err_text(code));
  buf_free(&text);
  return rc;
}

/* Serves the helper until there is output to take, or it is over. */
static int next_frame(archive_pipe *p, err *e) {
  unsigned char head[BUNDLE_FRAME_HEAD];
  int rc = 0;
  while (rc == 0 && p->left == 0 && !p->done) {
    rc = receive(p, head, sizeof head, e);
    if (rc < 0) break;
    size_t len = bundle_get_count(head + 1);
    if (head[0] == BUNDLE_BYTES)
      p->left = len;
    else if (head[0] == BUNDLE_FAILED)
      rc = failed(p, len, e);
    else if (head[0] == BUNDLE_WANT && len == 0)
      rc = feed(p, e);
    else if (head[0] == BUNDLE_DONE && len == 0)
      p->done = true;
    else
      rc = err_set(e, ERR_FORMAT, "%s: the helper for archives said nonsense", p->o.what);
  }
  return rc;
}

ssize_t archive_pipe_take(archive_pipe *p, void *to, size_t len, err *e) {
  size_t got = 0;
  while (got < len) {
    int rc = next_frame(p, e);
    if (rc < 0) return rc;
    if (p->done) break;
    size_t n = len - got < p->left ? len - got : p->left;
    rc = receive(p, (char *)to + got, n, e);
    if (rc < 0) return rc;
    p->left -= n;
    got += n;
  }
  return (ssize_t)got;
}

int archive_pipe_need(archive_pipe *p, void *to, size_t len, err *e) {
  ssize_t n = archive_pipe_take(p, to, len, e);
  if (n < 0) return (int)n;
  return (size_t)n == len ? 0 : err_set(e, ERR_FORMAT, "%s: it ends too early", p->o.what);
}
