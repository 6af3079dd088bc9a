#include "gc_scene.h"

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/lease.h"
#include "commit/pins.h"
#include "log_check.h"
#include "manifest_make.h"
#include "world.h"

static const int64_t second = 1000000000, hour = (int64_t)3600 * 1000000000;

/* ---- a clock that the tests move ---- */

int64_t gc_ahead;

int64_t gc_now(const io *io, io_clock clock) {
  return world_io()->now(world_io(), clock) + (clock == IO_WALL ? gc_ahead : 0);
}

static const io *moved_io(void) {
  static io made;
  made = *world_io();
  made.now = gc_now;
  return &made;
}

/* ---- a store that can be watched, denied and cut, and that has uploads ---- */

static int pass(store *base, bool writes, err *e) {
  gc_gate *g = (gc_gate *)base;
  g->calls++;
  g->writes += writes;
  if (g->between && !g->busy) {
    g->busy = true;
    g->between(g->ctx);
    g->busy = false;
  }
  if (writes && g->deny_writes) return err_set(e, ERR_ACCESS, "gate: a write");
  bool fails = g->fail_at && (g->for_good ? g->calls >= g->fail_at : g->calls == g->fail_at);
  return fails && !g->busy ? err_set(e, ERR_IO, "gate: call %ld fails", g->calls) : 0;
}

static int removal(store *base, err *e) {
  int rc = pass(base, true, e);
  return rc == 0 && ((gc_gate *)base)->deny_removals ? err_set(e, ERR_ACCESS, "gate: a removal")
                                                     : rc;
}

static store *in(store *base) {
  return ((gc_gate *)base)->inner;
}

static int gate_get(store *s, const char *key, buf *out, err *e) {
  int rc = pass(s, false, e);
  return rc < 0 ? rc : in(s)->ops->get(in(s), key, out, e);
}

static int gate_head(store *s, const char *key, store_object *out, err *e) {
  int rc = pass(s, false, e);
  return rc < 0 ? rc : in(s)->ops->head(in(s), key, out, e);
}

static int gate_put(store *s, const char *key, const void *data, size_t len, store_how how,
                    err *e) {
  int rc = pass(s, true, e);
  return rc < 0 ? rc : in(s)->ops->put(in(s), key, data, len, how, e);
}

static int gate_put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                           const char *mark, err *e) {
  int rc = pass(s, true, e);
  return rc < 0 ? rc : in(s)->ops->put_marked(in(s), key, data, len, how, mark, e);
}

static int gate_list(store *s, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                     err *e) {
  int rc = pass(s, false, e);
  return rc < 0 ? rc : in(s)->ops->list(in(s), prefix, delimited, fn, ctx, e);
}

static int gate_remove(store *s, const char *key, err *e) {
  int rc = removal(s, e);
  return rc < 0 ? rc : in(s)->ops->remove(in(s), key, e);
}

static int gate_remove_prefix(store *s, const char *prefix, err *e) {
  int rc = removal(s, e);
  return rc < 0 ? rc : in(s)->ops->remove_prefix(in(s), prefix, e);
}

static int gate_unfinished(store *s, const char *prefix, store_unfinished_fn *fn, void *ctx,
                           err *e) {
  gc_gate *g = (gc_gate *)s;
  size_t len = strlen(prefix);
  int rc = pass(s, false, e);
  for (size_t i = 0; rc == 0 && i < g->upload_count; i++)
    if (!len || (strncmp(g->uploads[i].key, prefix, len) == 0 && g->uploads[i].key[len] == '/'))
      rc = fn(ctx, &g->uploads[i]);
  return rc;
}

static int gate_discard(store *s, const store_unfinished *what, err *e) {
  gc_gate *g = (gc_gate *)s;
  int rc = removal(s, e);
  for (size_t i = 0; rc == 0 && i < g->upload_count; i++)
    if (strcmp(g->uploads[i].id, what->id) == 0) {
      g->uploads[i] = g->uploads[--g->upload_count];
      break;
    }
  return rc;
}

static const store_ops gate_ops = {.version = 1,
                                   .scheme = "gate",
                                   .caps = STORE_CAP_IF_ABSENT | STORE_CAP_RESUME,
                                   .get = gate_get,
                                   .head = gate_head,
                                   .put = gate_put,
                                   .put_marked = gate_put_marked,
                                   .list = gate_list,
                                   .remove = gate_remove,
                                   .remove_prefix = gate_remove_prefix,
                                   .unfinished = gate_unfinished,
                                   .discard = gate_discard};

/* ---- a scene ---- */

gc_scene *gc_scene_new(const char *scheme) {
  gc_scene *c = calloc(1, sizeof *c);
  gc_ahead = 0;
  store_place_scheme = scheme;
  store_place_make(&c->place, moved_io());
  c->s = c->place.s;
  c->gate = (gc_gate){.base = {.ops = &gate_ops, .io = moved_io()}, .inner = c->s};
  c->grace_ns = 24 * hour;
  return c;
}

void gc_scene_free(gc_scene *c) {
  size_t entries;
  for (int i = 0; i < 2; i++) runlog_close(c->logs[i]);
  const char *why = log_check(c->s, "", &entries);
  if (why) fail_msg("%s", why);
  store_place_remove(&c->place);
  free(c);
}

runlog *gc_begin(gc_scene *c, const char *prefix, const char *launch) {
  runlog **log = &c->logs[c->logs[0] != NULL];
  assert_null(*log);
  return *log = world_begin(c->s, prefix, launch);
}

int gc_set_up(void **state) {
  *state = gc_scene_new("mem");
  return 0;
}

int gc_tear_down(void **state) {
  gc_scene_free(*state);
  return 0;
}

static int on_told(void *ctx, const runlog *log, const collected *what) {
  gc_scene *c = ctx;
  assert_non_null(what->name);
  assert_non_null(what->reason);
  snprintf(c->last[c->told % 8], sizeof *c->last, "%.20s %.40s", what->what, what->name);
  snprintf(c->why[c->told % 8], sizeof *c->why, "%.95s", what->reason);
  c->told++;
  c->failed += what->status < 0;
  return 0;
}

static const char *find_told(const gc_scene *c, const char *line) {
  for (size_t i = 0; i < 8 && i < c->told; i++)
    if (strcmp(c->last[i], line) == 0) return c->why[i];
  return NULL;
}

bool gc_was_told(const gc_scene *c, const char *line) {
  return find_told(c, line) != NULL;
}

const char *gc_reason(const gc_scene *c, const char *line) {
  const char *why = find_told(c, line);
  if (!why) fail_msg("not told: %s", line);
  return why;
}

int gc_run_on(gc_scene *c, store *s, collect_fn *fn, err *e) {
  runlog *log = NULL;
  c->told = c->failed = 0;
  int rc = runlog_open(s, "", &log, e);
  collect how = {
      .store = s, .log = log, .grace_ns = c->grace_ns, .dry = c->dry, .told = on_told, .ctx = c};
  if (rc == 0) rc = fn(&how, e);
  runlog_close(log);
  return rc;
}

void gc_must_collect(gc_scene *c) {
  err e = {0};
  if (gc_run_on(c, c->s->ops->publish ? c->s : &c->gate.base, collect_log, &e) != 0)
    fail_msg("%s", e.text);
}

/* ---- what stands there ---- */

void gc_put_at(gc_scene *c, const char *key) {
  assert_int_equal(store_put_text(c->s, key, "data", STORE_REPLACE), 0);
}

void gc_put_in(gc_scene *c, const char *dir, const char *name) {
  char key[STORE_KEY_MAX];
  snprintf(key, sizeof key, "%s/%s", dir, name);
  gc_put_at(c, key);
}

bool gc_holds(const gc_scene *c, const char *dir, const char *name) {
  char key[STORE_KEY_MAX];
  snprintf(key, sizeof key, "%s/%s", dir, name);
  return store_holds(c->s, key);
}

uint64_t gc_announce(gc_scene *c, runlog *log, const char *unit) {
  uint64_t n = 0;
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_attempt_begin(log, unit, &n, NULL), 0);
  snprintf(key, sizeof key, "%s/model.pt", runlog_find_attempt(runlog_view(log), n)->dir);
  put_small_of(c->s, log, n, key);
  return n;
}

static void seal_made(gc_scene *c, runlog *log, uint64_t n, int64_t made_s, manifest *m) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), n);
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, 1 << 20);
  make_small_of(m, log, n);
  m->entries[0].mtime_ns = made_s * second;
  assert_int_equal(manifest_seal(m, NULL), 0);
  assert_int_equal(manifest_print(m, &text, NULL), 0);
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  assert_int_equal(
      store_put_marked(c->s, key, text.data, text.len, STORE_REPLACE, m->attempt, NULL), 0);
  buf_free(&text);
}

void gc_seal(gc_scene *c, runlog *log, uint64_t n, manifest *m) {
  seal_made(c, log, n, 0, m);
}

void gc_seal_made(gc_scene *c, runlog *log, uint64_t n, int64_t made_s) {
  manifest m;
  seal_made(c, log, n, made_s, &m);
  manifest_free(&m);
}

uint64_t gc_commit_announced(gc_scene *c, runlog *log, uint64_t n) {
  manifest m;
  uint64_t number = 0;
  gc_seal(c, log, n, &m);
  assert_int_equal(runlog_commit_attempt(log, n, &m, NULL, &number, NULL), 0);
  manifest_free(&m);
  return number;
}

uint64_t gc_commit(gc_scene *c, runlog *log, const char *unit) {
  return gc_commit_announced(c, log, gc_announce(c, log, unit));
}

void gc_lease(gc_scene *c, const runlog *log) {
  const runlog_term *t = &runlog_view(log)->term;
  assert_int_equal(lease_renew(c->s, "", t->n, &t->writer, NULL), 0);
}

void gc_release(gc_scene *c, const runlog *log) {
  const runlog_term *t = &runlog_view(log)->term;
  gc_lease(c, log);
  assert_int_equal(lease_release(c->s, "", t->n, &t->writer, NULL), 0);
}

runlog_fate gc_fate(const gc_scene *c, uint64_t n) {
  runlog *log = NULL;
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  runlog_fate f = runlog_find_attempt(runlog_view(log), n)->fate;
  runlog_close(log);
  return f;
}

void gc_add_upload(gc_scene *c, const char *key, const char *id) {
  c->gate.uploads[c->gate.upload_count++] =
      (store_unfinished){.key = key, .id = id, .begun_ns = gc_now(NULL, IO_WALL)};
}

void gc_make_mess(gc_scene *c) {
  char id[PINS_ID_MAX];
  runlog *log = world_begin(c->s, "", "one");
  manifest m;
  uint64_t first = gc_commit(c, log, "checkpoint-1"),
           second_one = gc_commit(c, log, "checkpoint-2");
  gc_commit(c, log, "checkpoint-3");
  uint64_t swept = gc_announce(c, log, "a"), whole = gc_announce(c, log, "b");
  gc_announce(c, log, "c");
  gc_seal(c, log, whole, &m);
  manifest_free(&m);
  runlog_sweep(log, swept, NULL);
  runlog_drop(log, first, "p", "not kept", NULL, NULL, NULL);
  runlog_drop(log, second_one, "p", "not kept", NULL, NULL, NULL);
  runlog_delete(log, second_one, NULL, NULL, NULL);
  pin_request r = {.dir = "checkpoint-3", .by = "x", .commit = first, .life_ns = second};
  assert_int_equal(pins_put(c->s, "", &r, id, false, NULL), 0);
  gc_put_at(c, ".ckpt/lease-probe.old");
  gc_put_in(c, "notes", "mine.txt");
  gc_add_upload(c, "a/x", "swept");
  runlog_close(log);
  gc_ahead = 25 * hour;
}
