#include "policy_link.h"

#include <stdlib.h>
#include <string.h>

#include "prims/fs_find.h"
#include "decision/policy_module.h"
#include "prims/child.h"

static const int64_t ms = 1000000, second = 1000000000;

enum {
  WALL_S = 5,
  CPU_MS = 400,   /* the helper's own limit is less: it is to say which policy exceeded it */
  START_MS = 600, /* for a new one on top: loading itself */
  DEATHS_MAX = 5, /* within a minute */
  PAUSE_MAX_S = 60,
  CHUNK = 64 << 10, /* memory comes with the bytes, not with the length that was announced */
};

struct policy_link {
  const io *io;
  const log_sink *log;
  char path[FS_PATH_MAX]; /* of the helper or module */
  bool in_process;
  policy_module *module;
  child *child;
  bool fresh; /* it has not answered yet */
  uint64_t generation;
  int64_t deaths[DEATHS_MAX + 1]; /* the last ones, a ring */
  uint64_t death_count;
  int64_t pause_ns, rest_until; /* IO_MONO */
};

int policy_link_open(const policy_link_options *options, policy_link **out, err *e) {
  *out = NULL;
  policy_link *l = calloc(1, sizeof *l);
  if (!l) return err_set(e, ERR_NOMEM, "policies: out of memory");
  l->io = options->io ? options->io : io_system();
  l->log = options->log;
  l->in_process = options->in_process;
  int rc = fs_find_helper(l->io, options->libexec, l->in_process ? "ckpt-policy.so" : "ckpt-policy",
                          l->path, e);
  if (rc < 0) {
    free(l);
    return rc;
  }
  *out = l;
  return 0;
}

void policy_link_close(policy_link *l) {
  if (!l) return;
  child_end(l->child, 0, NULL);
  policy_module_close(l->module);
  free(l);
}

uint64_t policy_link_generation(const policy_link *l) {
  return l->generation;
}

pid_t policy_link_pid(const policy_link *l) {
  return l->child ? child_pid(l->child) : 0;
}

/* ---- the helper's life ---- */

/* Of our environment. What looks for processes of a job by a variable must not find it. */
static const char *const kept[] = {
    "LD_LIBRARY_PATH", "LUA_CPATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
    "LSAN_OPTIONS",    NULL};

static int start(policy_link *l, err *e) {
  int64_t now = l->io->now(l->io, IO_MONO);
  if (now < l->rest_until)
    return err_set(e, ERR_POLICY,
                   "the policy helper died too often; it is started again in %.0f s at most",
                   (double)(l->rest_until - now) / 1e9 + 0.5);
  char *const argv[] = {l->path, NULL};
  names env = {0};
  int rc = child_env(kept, &env)
               ? child_start(l->io, l->path, argv, (char **)names_list(&env), &l->child, e)
               : err_set(e, ERR_NOMEM, "cannot start %s: out of memory", l->path);
  names_free(&env);
  if (rc < 0)
    return err_wrap(e, "policies need their helper program (CKPT_LIBEXEC=DIR names another place)");
  l->fresh = true;
  l->generation++;
  log_say(l->log, LOG_DEBUG, "policy helper started: process %d", (int)child_pid(l->child));
  return 0;
}

/* A policy may kill the helper at each question: the machine must not be busy with that. */
static void count_death(policy_link *l) {
  enum { RING = DEATHS_MAX + 1 };
  int64_t now = l->io->now(l->io, IO_MONO);
  l->deaths[l->death_count++ % RING] = now;
  int64_t oldest = l->death_count < RING ? INT64_MIN : l->deaths[l->death_count % RING];
  if (oldest == INT64_MIN || now - oldest > 60 * second) {
    l->pause_ns = 0;
    return;
  }
  l->pause_ns = l->pause_ns ? 2 * l->pause_ns : second;
  if (l->pause_ns > PAUSE_MAX_S * second) l->pause_ns = PAUSE_MAX_S * second;
  l->rest_until = now + l->pause_ns;
}

/* Ends a helper that is gone or has to go; `why` is the first sign of that. */
static int lost(policy_link *l, const err *why, err *e) {
  char how[CHILD_HOW_MAX];
  bool by_us = why->code == ERR_TIMEOUT || why->code == ERR_LIMIT || why->code == ERR_FORMAT;
  child_end(l->child, by_us ? 0 : 300 * ms, how);
  l->child = NULL;
  count_death(l);
  if (by_us) return err_set(e, ERR_POLICY, "the policy helper was killed: %s", why->text);
  return err_set(e, ERR_POLICY, "the policy helper is gone: %s%s", how,
                 l->fresh ? ", right after its start; run it by hand to see why" : "");
}

/* Ends a helper that died, or said something unasked, since the last call: that is not this
 * request's fault. */
static void bury(policy_link *l) {
  if (!l->child || child_idle(l->child)) return;
  err why = {.code = ERR_IO}, told = {0};
  lost(l, &why, &told);
  log_say(l->log, LOG_DEBUG, "between two requests: %s", told.text);
}

/* ---- one request ---- */

static int receive(policy_link *l, child_limit *limit, buf *answer, err *e) {
  unsigned char head[4];
  int rc = child_recv(l->child, head, sizeof head, limit, e);
  if (rc < 0) return rc;
  size_t len =
      (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
  if (len > POLICY_FRAME_MAX)
    return err_set(e, ERR_FORMAT, "it announced an answer of %zu bytes", len);
  while (len > 0) {
    size_t part = len < CHUNK ? len : CHUNK;
    char *to = buf_reserve(answer, part);
    if (!to) return err_set(e, ERR_LIMIT, "no room for its answer");
    rc = child_recv(l->child, to, part, limit, e);
    if (rc < 0) return rc;
    buf_grown(answer, part);
    len -= part;
  }
  return 0;
}

/* The length and as much as fits go out at once: the helper wakes up once. */
static int send_frame(policy_link *l, const char *request, size_t len, child_limit *limit, err *e) {
  enum { HEAD = 4, FIRST = 16 << 10 };
  char first[HEAD + FIRST];
  size_t part = len < FIRST ? len : FIRST;
  for (int i = 0; i < HEAD; i++) first[i] = (char)(len >> 8 * i & 0xff);
  memcpy(first + HEAD, request, part);
  int rc = child_send(l->child, first, HEAD + part, limit, e);
  return rc < 0 ? rc : child_send(l->child, request + part, len - part, limit, e);
}

static int ask_helper(policy_link *l, const char *request, size_t len, buf *answer, err *e) {
  err why = {0};
  bury(l);
  int rc = l->child ? 0 : start(l, e);
  if (rc < 0) return rc;
  child_limit limit = {.wall_ns = l->io->now(l->io, IO_MONO) + WALL_S * second,
                       .cpu_ns =
                           child_cpu_ns(l->child) + (l->fresh ? CPU_MS + START_MS : CPU_MS) * ms};
  rc = send_frame(l, request, len, &limit, &why);
  if (rc == 0) rc = receive(l, &limit, answer, &why);
  if (rc < 0) return lost(l, &why, e);
  l->fresh = false;
  return 0;
}

static int ask_module(policy_link *l, const char *request, size_t len, buf *answer, err *e) {
  int rc = 0;
  if (!l->module) {
    rc = policy_module_open(l->path, &l->module, e);
    if (rc == 0) l->generation++;
  }
  return rc < 0 ? rc : policy_module_call(l->module, request, len, answer, e);
}

int policy_link_call(policy_link *l, const char *request, size_t len, buf *answer, err *e) {
  size_t before = answer->len;
  if (len > POLICY_FRAME_MAX)
    return err_set(e, ERR_LIMIT, "a question of %zu bytes is too long for a policy", len);
  int rc = (l->in_process ? ask_module : ask_helper)(l, request, len, answer, e);
  if (rc < 0 && answer->data) { /* half an answer is none */
    answer->len = before;
    answer->data[before] = '\0';
  }
  return rc;
}
