/* What gc removes, what it leaves alone, beside live writers, dead ones, and such that come back.
 */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/keep/collect.h"
#include "commit/lease.h"
#include "commit/pins.h"
#include "commit/settle.h"
#include "log_check.h"
#include "manifest_make.h"
#include "world.h"

static const int64_t second = 1000000000, hour = (int64_t)3600 * 1000000000;

/* ---- a clock that the tests move ---- */

static int64_t ahead; /* of the system's, for IO_WALL */

static int64_t moved_now(const io *io, io_clock clock) {
  return world_io()->now(world_io(), clock) + (clock == IO_WALL ? ahead : 0);
}

static const io *moved_io(void) {
  static io made;
  made = *world_io();
  made.now = moved_now;
  return &made;
}

/* ---- a store that can be watched, denied and cut, and that has uploads ---- */

enum { UPLOADS = 16 };

typedef struct gate {
  store base;
  store *inner;
  long calls, writes, fail_at; /* the call of that number, from 1, fails; 0: none */
  bool for_good, deny_writes, deny_removals, busy;
  void (*between)(void *ctx); /* before each call; NULL: nothing */
  void *ctx;
  store_unfinished uploads[UPLOADS];
  size_t upload_count;
} gate;

static int pass(store *base, bool writes, err *e) {
  gate *g = (gate *)base;
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
  return rc == 0 && ((gate *)base)->deny_removals ? err_set(e, ERR_ACCESS, "gate: a removal") : rc;
}

static store *in(store *base) {
  return ((gate *)base)->inner;
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
  gate *g = (gate *)s;
  size_t len = strlen(prefix);
  int rc = pass(s, false, e);
  for (size_t i = 0; rc == 0 && i < g->upload_count; i++)
    if (!len || (strncmp(g->uploads[i].key, prefix, len) == 0 && g->uploads[i].key[len] == '/'))
      rc = fn(ctx, &g->uploads[i]);
  return rc;
}

static int gate_discard(store *s, const store_unfinished *what, err *e) {
  gate *g = (gate *)s;
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

typedef struct scene {
  store_place place;
  store *s; /* the bare one */
  gate gate;
  runlog *logs[2]; /* of begin */
  int64_t grace_ns;
  bool dry;
  size_t told, failed;
  char last[8][64]; /* "what name" of what was told last */
} scene;

static scene *scene_new(const char *scheme) {
  scene *c = calloc(1, sizeof *c);
  ahead = 0;
  store_place_scheme = scheme;
  store_place_make(&c->place, moved_io());
  c->s = c->place.s;
  c->gate = (gate){.base = {.ops = &gate_ops, .io = moved_io()}, .inner = c->s};
  c->grace_ns = 24 * hour;
  return c;
}

static void scene_free(scene *c) {
  size_t entries;
  for (int i = 0; i < 2; i++) runlog_close(c->logs[i]);
  const char *why = log_check(c->s, "", &entries);
  if (why) fail_msg("%s", why);
  store_place_remove(&c->place);
  free(c);
}

/* A writer's log, which the scene closes. */
static runlog *begin(scene *c, const char *prefix, const char *launch) {
  runlog **log = &c->logs[c->logs[0] != NULL];
  assert_null(*log);
  return *log = world_begin(c->s, prefix, launch);
}

static int set_up(void **state) {
  *state = scene_new("mem");
  return 0;
}

static int tear_down(void **state) {
  scene_free(*state);
  return 0;
}

static int on_told(void *ctx, const runlog *log, const collected *what) {
  scene *c = ctx;
  assert_non_null(what->name);
  assert_non_null(what->reason);
  snprintf(c->last[c->told % 8], sizeof *c->last, "%.20s %.40s", what->what, what->name);
  c->told++;
  c->failed += what->status < 0;
  return 0;
}

static bool was_told(const scene *c, const char *line) {
  for (size_t i = 0; i < 8 && i < c->told; i++)
    if (strcmp(c->last[i], line) == 0) return true;
  return false;
}

typedef int collect_fn(const collect *c, err *e);

static int run_on(scene *c, store *s, collect_fn *fn, err *e) {
  runlog *log = NULL;
  c->told = c->failed = 0;
  int rc = runlog_open(s, "", &log, e);
  collect how = {
      .store = s, .log = log, .grace_ns = c->grace_ns, .dry = c->dry, .told = on_told, .ctx = c};
  if (rc == 0) rc = fn(&how, e);
  runlog_close(log);
  return rc;
}

static void must_collect(scene *c) {
  err e = {0};
  if (run_on(c, c->s->ops->publish ? c->s : &c->gate.base, collect_log, &e) != 0)
    fail_msg("%s", e.text);
}

/* ---- what stands there ---- */

static void put_at(scene *c, const char *key) {
  assert_int_equal(store_put_text(c->s, key, "data", STORE_REPLACE), 0);
}

static void put_in(scene *c, const char *dir, const char *name) {
  char key[STORE_KEY_MAX];
  snprintf(key, sizeof key, "%s/%s", dir, name);
  put_at(c, key);
}

static bool holds(const scene *c, const char *dir, const char *name) {
  char key[STORE_KEY_MAX];
  snprintf(key, sizeof key, "%s/%s", dir, name);
  return store_holds(c->s, key);
}

static uint64_t announce(scene *c, runlog *log, const char *unit) {
  uint64_t n = 0;
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_attempt_begin(log, unit, &n, NULL), 0);
  snprintf(key, sizeof key, "%s/model.pt", runlog_find_attempt(runlog_view(log), n)->dir);
  put_small_of(c->s, log, n, key);
  return n;
}

static void seal(scene *c, runlog *log, uint64_t n, manifest *m) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), n);
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, 1 << 20);
  make_small_of(m, log, n);
  assert_int_equal(manifest_print(m, &text, NULL), 0);
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  assert_int_equal(
      store_put_marked(c->s, key, text.data, text.len, STORE_REPLACE, m->attempt, NULL), 0);
  buf_free(&text);
}

static uint64_t commit_announced(scene *c, runlog *log, uint64_t n) {
  manifest m;
  uint64_t number = 0;
  seal(c, log, n, &m);
  assert_int_equal(runlog_commit_attempt(log, n, &m, NULL, &number, NULL), 0);
  manifest_free(&m);
  return number;
}

static uint64_t commit(scene *c, runlog *log, const char *unit) {
  return commit_announced(c, log, announce(c, log, unit));
}

static void lease(scene *c, const runlog *log) {
  const runlog_term *t = &runlog_view(log)->term;
  assert_int_equal(lease_renew(c->s, "", t->n, &t->writer, NULL), 0);
}

/* It has ended well. */
static void release(scene *c, const runlog *log) {
  const runlog_term *t = &runlog_view(log)->term;
  lease(c, log);
  assert_int_equal(lease_release(c->s, "", t->n, &t->writer, NULL), 0);
}

static runlog_fate fate(const scene *c, uint64_t n) {
  runlog *log = NULL;
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  runlog_fate f = runlog_find_attempt(runlog_view(log), n)->fate;
  runlog_close(log);
  return f;
}

/* ---- open saves ---- */

static void what_a_live_writer_is_at_stays_however_old_it_is(void **state) {
  scene *c = *state;
  runlog *live = begin(c, "", "one");
  uint64_t n = announce(c, live, "a");
  ahead = 1000 * hour;
  lease(c, live);
  c->grace_ns = 0;
  must_collect(c);
  assert_int_equal(c->told, 0);
  assert_int_equal(fate(c, n), RUNLOG_OPEN);
  assert_int_equal(runlog_refresh(live, NULL), 0);
  assert_true(holds(c, "a", "model.pt"));
}

static void a_writer_that_began_just_now_is_alive_without_a_lease(void **state) {
  scene *c = *state;
  runlog *live = begin(c, "", "one");
  uint64_t n = announce(c, live, "a");
  ahead = 14 * 60 * second;
  c->grace_ns = 0;
  must_collect(c);
  assert_int_equal(fate(c, n), RUNLOG_OPEN);
  assert_int_equal(runlog_refresh(live, NULL), 0);
}

static void what_a_dead_writer_left_goes_when_the_grace_is_over(void **state) {
  scene *c = *state;
  runlog *dead = begin(c, "", "one");
  uint64_t n = announce(c, dead, "a");
  lease(c, dead);
  put_in(c, ".ckpt/parts/2/1", "0");
  put_in(c, ".ckpt/with/2/1", "latest");
  assert_int_equal(n, 2);
  ahead = 23 * hour;
  must_collect(c);
  assert_int_equal(fate(c, n), RUNLOG_OPEN); /* somebody may yet go on with it */
  ahead = 25 * hour;
  must_collect(c);
  assert_int_equal(fate(c, n), RUNLOG_SWEPT);
  assert_true(was_told(c, "attempt a"));
  assert_null(store_litter(c->s, ""));
  assert_int_equal(runlog_refresh(dead, NULL), ERR_FENCED);
  must_collect(c);
  assert_int_equal(c->told, 0);
}

static void a_save_that_is_whole_is_committed_not_removed(void **state) {
  scene *c = *state;
  runlog *dead = begin(c, "", "one");
  manifest m;
  uint64_t n = announce(c, dead, "a");
  seal(c, dead, n, &m);
  manifest_free(&m);
  ahead = 25 * hour;
  must_collect(c);
  assert_int_equal(fate(c, n), RUNLOG_COMMITTED);
  assert_true(was_told(c, "commit a"));
  assert_true(holds(c, "a", "model.pt"));
}

static void beside_a_live_writer_only_older_terms_unsealed_saves_go(void **state) {
  scene *c = *state;
  runlog *dead = begin(c, "", "one");
  manifest m;
  uint64_t torn = announce(c, dead, "a"), whole = announce(c, dead, "b");
  seal(c, dead, whole, &m);
  manifest_free(&m);
  runlog *live = begin(c, "", "two");
  uint64_t own = announce(c, live, "c");
  ahead = 25 * hour;
  lease(c, live);
  must_collect(c);
  assert_int_equal(fate(c, torn), RUNLOG_SWEPT);
  assert_int_equal(fate(c, whole), RUNLOG_OPEN); /* for its run to commit */
  assert_int_equal(fate(c, own), RUNLOG_OPEN);
  assert_false(holds(c, "a", "model.pt"));
  assert_true(holds(c, "b", "model.pt") && holds(c, "c", "model.pt"));
  assert_int_equal(runlog_refresh(live, NULL), 0);
}

/* ---- what was dropped, pins ---- */

static void what_was_dropped_goes_after_the_grace_and_the_newest_never(void **state) {
  scene *c = *state;
  runlog *log = begin(c, "", "one");
  uint64_t first = commit(c, log, "checkpoint-1");
  uint64_t last = commit(c, log, "checkpoint-2");
  runlog_drop(log, first, "p", "not kept", NULL, NULL, NULL);
  must_collect(c);
  assert_true(holds(c, "checkpoint-1", "model.pt"));
  ahead = 25 * hour;
  must_collect(c);
  assert_true(was_told(c, "checkpoint checkpoint-1"));
  assert_false(holds(c, "checkpoint-1", "model.pt"));
  /* All were dropped by hand: the last one still stays. */
  runlog_refresh(log, NULL);
  runlog_drop(log, last, "user", "all", NULL, NULL, NULL);
  ahead = 100 * hour;
  must_collect(c);
  assert_true(holds(c, "checkpoint-2", "model.pt"));
}

static void a_pin_holds_until_it_expires_and_then_goes_itself(void **state) {
  scene *c = *state;
  char id[PINS_ID_MAX];
  runlog *log = begin(c, "", "one");
  uint64_t n = commit(c, log, "checkpoint-1");
  commit(c, log, "checkpoint-2");
  pin_request r = {.dir = "checkpoint-1", .by = "x", .commit = n, .life_ns = 30 * hour};
  assert_int_equal(pins_put(c->s, "", &r, id, false, NULL), 0);
  runlog_drop(log, n, "p", "not kept", NULL, NULL, NULL);
  ahead = 29 * hour;
  must_collect(c);
  assert_true(holds(c, "checkpoint-1", "model.pt"));
  assert_int_equal(c->told, 0);
  ahead = 31 * hour;
  must_collect(c);
  assert_false(holds(c, "checkpoint-1", "model.pt"));
  assert_int_equal(pins_remove(c->s, "", id, NULL), ERR_NOENT);
}

static void an_object_that_is_no_pin_stops_the_deletes_and_is_named(void **state) {
  scene *c = *state;
  err e = {0};
  runlog *log = begin(c, "", "one");
  uint64_t n = commit(c, log, "checkpoint-1");
  commit(c, log, "checkpoint-2");
  runlog_drop(log, n, "p", "not kept", NULL, NULL, NULL);
  put_at(c, ".ckpt/pins/odd");
  ahead = 25 * hour;
  assert_int_equal(run_on(c, c->s, collect_log, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, ".ckpt/pins/odd"));
  assert_true(holds(c, "checkpoint-1", "model.pt"));
}

/* ---- litter ---- */

static void late_puts_and_foreign_names_stay_and_are_told(void **state) {
  scene *c = *state;
  runlog *log = begin(c, "", "one");
  uint64_t swept = announce(c, log, "a");
  uint64_t n = commit(c, log, "checkpoint-1");
  commit(c, log, "checkpoint-2");
  uint64_t open = announce(c, log, "open");
  runlog_sweep(log, swept, NULL);
  runlog_drop(log, n, "p", "x", NULL, NULL, NULL);
  runlog_delete(log, n, NULL, NULL, NULL);
  char parts[64];
  snprintf(parts, sizeof parts, ".ckpt/parts/%llu/1", (unsigned long long)open);
  put_in(c, parts, "0");
  put_in(c, "checkpoint-1", "late");
  put_in(c, ".ckpt/parts/99/1", "0"); /* of an attempt that may be announced just now */
  put_in(c, "notes", "mine.txt");
  put_at(c, ".ckpt/other/thing");
  lease(c, log);
  must_collect(c);
  assert_false(holds(c, "a", "model.pt") || holds(c, "checkpoint-1", "model.pt"));
  assert_true(was_told(c, "litter a") && was_told(c, "litter checkpoint-1"));
  /* Nothing tells whose that is. It is named, each time, and stays. */
  assert_true(was_told(c, "left checkpoint-1") && holds(c, "checkpoint-1", "late"));
  put_in(c, "a", "model.pt");
  lease(c, log);
  must_collect(c);
  assert_true(was_told(c, "left checkpoint-1") && was_told(c, "left a"));
  assert_int_equal(c->told, 2);
  assert_true(holds(c, "checkpoint-1", "late") && holds(c, "a", "model.pt"));
  assert_true(holds(c, "checkpoint-2", "model.pt") && holds(c, "open", "model.pt"));
  assert_true(holds(c, parts, "0") && holds(c, ".ckpt/parts/99/1", "0"));
  assert_true(holds(c, "notes", "mine.txt") && store_holds(c->s, ".ckpt/other/thing"));
}

static void of_a_committed_save_part_records_go_and_named_companions_stay(void **state) {
  scene *c = *state;
  runlog *log = begin(c, "", "one");
  manifest m;
  uint64_t n = announce(c, log, "a");
  seal(c, log, n, &m);
  runlog_note note = {.companions = {.term = 1, .files = 1, .bytes = 4, .root = m.root}};
  assert_int_equal(runlog_commit_attempt(log, n, &m, &note, NULL, NULL), 0);
  manifest_free(&m);
  put_in(c, ".ckpt/parts/2/1", "0");
  put_in(c, ".ckpt/with/2/1", "latest");
  put_in(c, ".ckpt/with/2/7", "latest");
  must_collect(c);
  assert_false(holds(c, ".ckpt/parts/2/1", "0") || holds(c, ".ckpt/with/2/7", "latest"));
  assert_true(holds(c, ".ckpt/with/2/1", "latest"));
}

static void probes_of_killed_processes_go_after_a_day(void **state) {
  scene *c = *state;
  begin(c, "", "one");
  put_at(c, ".ckpt/lease-probe.old");
  put_at(c, ".ckpt/tmp/old");
  put_at(c, ".ckpt/ranks/old");
  ahead = 23 * hour;
  must_collect(c);
  assert_int_equal(c->told, 0);
  ahead = 25 * hour;
  put_at(c, ".ckpt/lease-probe.new");
  must_collect(c);
  assert_false(store_holds(c->s, ".ckpt/lease-probe.old") || store_holds(c->s, ".ckpt/tmp/old"));
  assert_false(store_holds(c->s, ".ckpt/ranks/old"));
  assert_true(store_holds(c->s, ".ckpt/lease-probe.new"));
}

static void add_upload(scene *c, const char *key, const char *id) {
  c->gate.uploads[c->gate.upload_count++] =
      (store_unfinished){.key = key, .id = id, .begun_ns = moved_now(NULL, IO_WALL)};
}

static bool has_upload(const scene *c, const char *id) {
  for (size_t i = 0; i < c->gate.upload_count; i++)
    if (strcmp(c->gate.uploads[i].id, id) == 0) return true;
  return false;
}

/* Nobody who finds one can tell whose it is, but by the time. */
static void only_uploads_begun_within_a_save_are_its_own(void **state) {
  scene *c = *state;
  add_upload(c, "a/x", "before");
  add_upload(c, "done/x", "before the commit");
  runlog *log = begin(c, "", "one");
  ahead = hour;
  uint64_t swept = announce(c, log, "a");
  add_upload(c, "a/x", "within");
  commit(c, log, "done");
  runlog_sweep(log, swept, NULL);
  assert_int_equal(settle_clear(&c->gate.base, log, swept, NULL, NULL), 0);
  assert_false(has_upload(c, "within"));
  assert_true(has_upload(c, "before"));
  ahead = 2 * hour;
  add_upload(c, "a/x", "late");
  add_upload(c, "done/x", "beside");
  lease(c, log);
  must_collect(c);
  assert_true(has_upload(c, "before") && has_upload(c, "late"));
  assert_true(has_upload(c, "before the commit") && has_upload(c, "beside"));
}

static void uploads_of_open_saves_stay_and_all_others_go(void **state) {
  scene *c = *state;
  runlog *log = begin(c, "", "one");
  begin(c, "exp/T1", "one");
  uint64_t swept = announce(c, log, "a");
  announce(c, log, "open");
  uint64_t done = announce(c, log, "done");
  add_upload(c, "done/x", "done");
  commit_announced(c, log, done);
  runlog_sweep(log, swept, NULL);
  add_upload(c, "a/x", "swept");
  add_upload(c, "open/x", "open");
  add_upload(c, "exp/T1/b/x", "nested");
  add_upload(c, "elsewhere/x", "unknown");
  lease(c, log);
  must_collect(c);
  assert_false(has_upload(c, "swept") || has_upload(c, "done"));
  assert_true(has_upload(c, "open") && has_upload(c, "nested") && has_upload(c, "unknown"));
  ahead = 30 * hour;
  lease(c, log);
  must_collect(c);
  assert_false(has_upload(c, "unknown"));
  assert_true(has_upload(c, "open") && has_upload(c, "nested"));
}

/* ---- dry, denied, cut ---- */

/* Something of everything. */
static void make_mess(scene *c) {
  char id[PINS_ID_MAX];
  runlog *log = world_begin(c->s, "", "one");
  manifest m;
  uint64_t first = commit(c, log, "checkpoint-1"), second_one = commit(c, log, "checkpoint-2");
  commit(c, log, "checkpoint-3");
  uint64_t swept = announce(c, log, "a"), whole = announce(c, log, "b");
  announce(c, log, "c");
  seal(c, log, whole, &m);
  manifest_free(&m);
  runlog_sweep(log, swept, NULL);
  runlog_drop(log, first, "p", "not kept", NULL, NULL, NULL);
  runlog_drop(log, second_one, "p", "not kept", NULL, NULL, NULL);
  runlog_delete(log, second_one, NULL, NULL, NULL);
  pin_request r = {.dir = "checkpoint-3", .by = "x", .commit = first, .life_ns = second};
  assert_int_equal(pins_put(c->s, "", &r, id, false, NULL), 0);
  put_at(c, ".ckpt/lease-probe.old");
  put_in(c, "notes", "mine.txt");
  add_upload(c, "a/x", "swept");
  runlog_close(log);
  ahead = 25 * hour;
}

static void must_be_collected(scene *c) {
  assert_true(holds(c, "checkpoint-3", "model.pt") && holds(c, "b", "model.pt"));
  assert_true(holds(c, "notes", "mine.txt"));
  assert_false(holds(c, "checkpoint-1", "model.pt") || holds(c, "checkpoint-2", "model.pt"));
  assert_false(holds(c, "a", "model.pt") || holds(c, "c", "model.pt"));
  assert_false(store_holds(c->s, ".ckpt/lease-probe.old") || has_upload(c, "swept"));
}

static void a_dry_run_tells_all_and_writes_nothing(void **state) {
  scene *c = *state;
  make_mess(c);
  char *before = store_listing(c->s, "", false);
  c->dry = true;
  c->gate.deny_writes = true;
  must_collect(c);
  size_t foretold = c->told;
  assert_int_equal(c->gate.writes, 0);
  char *after = store_listing(c->s, "", false);
  assert_string_equal(before, after);
  free(before);
  free(after);
  c->dry = c->gate.deny_writes = false;
  must_collect(c);
  assert_int_equal(c->told, foretold);
  must_be_collected(c);
}

static void a_role_that_may_not_delete_is_told_so_and_loses_nothing(void **state) {
  scene *c = *state;
  err e = {0};
  make_mess(c);
  c->gate.deny_removals = true;
  assert_int_equal(run_on(c, &c->gate.base, collect_log, &e), ERR_ACCESS);
  assert_true(c->failed > 0);
  assert_true(holds(c, "checkpoint-3", "model.pt"));
  c->gate.deny_removals = false;
  must_collect(c);
  must_be_collected(c);
}

/* 0 if call number `nth` never came. */
static bool cut_at(long nth, bool for_good) {
  scene *c = scene_new("mem");
  err e = {0};
  make_mess(c);
  c->gate.fail_at = nth;
  c->gate.for_good = for_good;
  int rc = run_on(c, &c->gate.base, collect_log, &e);
  bool reached = c->gate.calls >= nth;
  if (rc < 0) assert_true(*e.text);
  c->gate.fail_at = 0;
  assert_true(holds(c, "checkpoint-3", "model.pt") && holds(c, "b", "model.pt"));
  ahead += 25 * hour; /* its own term is a dead writer's by then */
  must_collect(c);
  must_be_collected(c);
  scene_free(c);
  return reached;
}

static void a_collection_that_is_cut_anywhere_is_finished_by_the_next(void **state) {
  long n = 1;
  while (cut_at(n, true)) n++;
  assert_true(n > 30);
  for (n = 1; cut_at(n, false);) n++;
}

/* ---- on a file system ---- */

static void on_a_disk_staging_of_no_open_save_goes(void **state) {
  scene *c = scene_new("file");
  runlog *log = begin(c, "", "one");
  uint64_t n = 0;
  runlog_attempt_begin(log, "a", &n, NULL);
  assert_int_equal(n, 2);
  put_in(c, ".ckpt/staging/2", "model.pt");
  must_collect(c);
  assert_true(holds(c, ".ckpt/staging/2", "model.pt"));
  runlog_sweep(log, n, NULL);
  put_in(c, "a", "of-somebody-else"); /* no manifest: it was never published */
  must_collect(c);
  assert_false(holds(c, ".ckpt/staging/2", "model.pt"));
  assert_true(holds(c, "a", "of-somebody-else"));
  scene_free(c);
}

/* ---- removing a run ---- */

static void a_removed_run_leaves_its_log_and_what_is_not_its_own(void **state) {
  scene *c = *state;
  err e = {0};
  make_mess(c);
  assert_int_equal(run_on(c, &c->gate.base, collect_run, &e), 0);
  assert_true(holds(c, "notes", "mine.txt"));
  assert_false(holds(c, "checkpoint-3", "model.pt") || holds(c, "b", "model.pt"));
  runlog *log = NULL;
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  assert_true(runlog_view(log)->ended);
  assert_null(runlog_newest(runlog_view(log), NULL));
  runlog_close(log);
  /* The next run goes on in the log; no name comes back. */
  runlog_writer who = {.launch = "next"};
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  assert_int_equal(runlog_begin(log, "another", &who, false, NULL), 0);
  uint64_t n = announce(c, log, "checkpoint-3");
  assert_string_not_equal(runlog_find_attempt(runlog_view(log), n)->dir, "checkpoint-3");
  runlog_close(log);
}

static void a_run_that_is_alive_or_pinned_is_not_removed(void **state) {
  scene *c = *state;
  char id[PINS_ID_MAX];
  err e = {0};
  runlog *log = begin(c, "", "one");
  uint64_t n = commit(c, log, "checkpoint-1");
  lease(c, log);
  assert_int_equal(run_on(c, c->s, collect_check_run, &e), ERR_HELD);
  assert_int_equal(run_on(c, c->s, collect_run, &e), ERR_HELD);
  ahead = hour;
  assert_int_equal(run_on(c, c->s, collect_check_run, &e), 0);
  pin_request r = {.dir = "checkpoint-1", .by = "x", .commit = n};
  assert_int_equal(pins_put(c->s, "", &r, id, false, NULL), 0);
  assert_int_equal(run_on(c, c->s, collect_check_run, &e), ERR_HELD);
  assert_int_equal(run_on(c, c->s, collect_run, &e), ERR_HELD);
  assert_true(holds(c, "checkpoint-1", "model.pt"));
  assert_int_equal(runlog_refresh(log, NULL), 0);
}

/* Its lease was removed by another's late release, or by hand. */
static void a_run_without_a_lease_is_alive_until_its_log_is_quiet(void **state) {
  scene *c = *state;
  err e = {0};
  runlog *log = begin(c, "", "one");
  commit(c, log, "checkpoint-1");
  ahead = 14 * 60 * second;
  assert_int_equal(run_on(c, c->s, collect_check_run, &e), ERR_HELD);
  assert_int_equal(run_on(c, c->s, collect_run, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "try again in"));
  assert_true(holds(c, "checkpoint-1", "model.pt"));
  commit(c, log, "checkpoint-2");
  ahead = 30 * 60 * second;
  assert_int_equal(run_on(c, c->s, collect_run, &e), 0);
  assert_int_equal(runlog_refresh(log, NULL), ERR_FENCED);
}

static void a_run_that_has_ended_well_may_be_removed_at_once(void **state) {
  scene *c = *state;
  runlog *log = begin(c, "", "one");
  commit(c, log, "checkpoint-1");
  lease(c, log);
  assert_int_equal(run_on(c, c->s, collect_run, NULL), ERR_HELD);
  release(c, log);
  assert_int_equal(run_on(c, c->s, collect_run, NULL), 0);
}

/* A reader comes at any moment of the removal: it puts its pin, reads the log, and reads on if that
 * still has what it wants. */
typedef struct reader {
  scene *c;
  uint64_t commit;
  long at; /* before the call of that number */
  bool came, may_read;
} reader;

static void read_now(void *ctx) {
  reader *r = ctx;
  char id[PINS_ID_MAX];
  pin_request pin = {.dir = "checkpoint-1", .by = "restore", .commit = r->commit};
  if (r->c->gate.calls != r->at) return;
  runlog *log = NULL;
  assert_int_equal(pins_put(r->c->s, "", &pin, id, false, NULL), 0);
  assert_int_equal(runlog_open(r->c->s, "", &log, NULL), 0);
  r->came = true;
  r->may_read = runlog_find_commit(runlog_view(log), r->commit)->life == RUNLOG_LIVE;
  runlog_close(log);
}

static void who_pinned_before_the_end_reads_on(void **state) {
  long readers = 0, refused = 0;
  bool more = true;
  for (long at = 1; more; at++) {
    scene *c = scene_new("mem");
    runlog *log = world_begin(c->s, "", "one");
    reader r = {.c = c, .commit = commit(c, log, "checkpoint-1"), .at = at};
    release(c, log);
    runlog_close(log);
    c->gate.between = read_now;
    c->gate.ctx = &r;
    err e = {0};
    int rc = run_on(c, &c->gate.base, collect_run, &e);
    assert_true(rc == 0 || rc == ERR_HELD);
    if (r.came && r.may_read && !holds(c, "checkpoint-1", "model.pt"))
      fail_msg("a reader that came at call %ld lost what it had pinned", at);
    readers += r.came && r.may_read;
    refused += r.came && !r.may_read;
    more = r.came;
    scene_free(c);
  }
  assert_true(readers > 3 && refused > 3);
}

/* The same place is used again while the old run is being removed. */
typedef struct successor {
  scene *c;
  long at;
  bool came;
} successor;

static void begin_again(void *ctx) {
  successor *s = ctx;
  runlog *log = NULL;
  if (s->came || s->c->gate.calls < s->at) return;
  assert_int_equal(runlog_open(s->c->s, "", &log, NULL), 0);
  bool ended = runlog_view(log)->ended;
  runlog_close(log);
  if (!ended) return;
  s->came = true;
  log = world_begin(s->c->s, "", "two");
  lease(s->c, log);
  runlog_close(log);
}

static void who_begins_after_the_end_keeps_its_lease(void **state) {
  long came = 0, lost = 0;
  bool more = true;
  for (long at = 1; more; at++) {
    scene *c = scene_new("mem");
    runlog *log = world_begin(c->s, "", "one");
    successor s = {.c = c, .at = at};
    commit(c, log, "checkpoint-1");
    release(c, log);
    runlog_close(log);
    c->gate.between = begin_again;
    c->gate.ctx = &s;
    assert_int_equal(run_on(c, &c->gate.base, collect_run, NULL), 0);
    came += s.came;
    more = s.came;
    lost += s.came && !store_holds(c->s, ".ckpt/lease");
    scene_free(c);
  }
  assert_true(came > 3);
  /* Between the last look at the log and the removal is one request: a lease is only a hint. */
  if (lost > 1) fail_msg("the lease was lost %ld times of %ld", lost, came);
}

/* ---- random worlds ---- */

/* Before each request of the collector a writer may come back: it opens a term, goes on with what
 * was left, saves, drops, is paused, goes on. Late puts of dead writers arrive at any time. */
typedef struct meddler {
  scene *c;
  uint64_t random;
  runlog *writer; /* NULL: none is alive */
  uint64_t attempt;
  int names;
  long begun, adopted, committed, late;
} meddler;

static unsigned pick(meddler *m, unsigned of) {
  return (unsigned)(next_random(&m->random) >> 20) % of;
}

static void come_back(meddler *m) {
  char launch[32];
  snprintf(launch, sizeof launch, "w%d", m->names++);
  m->writer = world_begin(m->c->s, "", launch);
  m->attempt = RUNLOG_NONE;
  if (pick(m, 4)) lease(m->c, m->writer);
  m->begun++;
}

static void go_on(meddler *m) {
  const runlog_state *st = runlog_view(m->writer);
  for (size_t i = st->attempt_count; i-- > 0 && m->attempt == RUNLOG_NONE;)
    if (st->attempts[i].fate == RUNLOG_OPEN && st->attempts[i].owner < st->term.n) {
      uint64_t n = st->attempts[i].n;
      int rc = runlog_adopt(m->writer, n, NULL);
      assert_true(rc == 0 || rc == ERR_CONFLICT);
      if (rc < 0) return;
      m->attempt = n;
      m->adopted++;
      put_in(m->c, runlog_find_attempt(runlog_view(m->writer), n)->dir, "model.pt");
    }
}

static void finish(meddler *m) {
  manifest sealed;
  seal(m->c, m->writer, m->attempt, &sealed);
  err e = {0};
  int rc = runlog_commit_attempt(m->writer, m->attempt, &sealed, NULL, NULL, &e);
  if (rc < 0) fail_msg("a live writer's commit: %s", e.text);
  manifest_free(&sealed);
  m->attempt = RUNLOG_NONE;
  m->committed++;
}

static void drop_some(meddler *m) {
  const runlog_state *st = runlog_view(m->writer);
  size_t count = st->commit_count;
  if (count > 1)
    runlog_drop(m->writer, st->commits[pick(m, (unsigned)count - 1)].n, "p", "x", NULL, NULL, NULL);
}

static void late_put(meddler *m) {
  runlog *log = NULL;
  assert_int_equal(runlog_open(m->c->s, "", &log, NULL), 0);
  const runlog_state *st = runlog_view(log);
  if (st->attempt_count) {
    const runlog_attempt *a = &st->attempts[pick(m, (unsigned)st->attempt_count)];
    if (a->fate == RUNLOG_SWEPT) put_in(m->c, a->dir, "late"), m->late++;
  }
  runlog_close(log);
}

static void meddle(void *ctx) {
  meddler *m = ctx;
  char name[32];
  if (pick(m, 5)) return;
  if (!m->writer) {
    if (pick(m, 6) == 0)
      come_back(m);
    else
      late_put(m);
    return;
  }
  switch (pick(m, 7)) {
  case 0: go_on(m); break;
  case 1:
  case 2:
    snprintf(name, sizeof name, "checkpoint-%d", m->names++);
    if (m->attempt == RUNLOG_NONE) m->attempt = announce(m->c, m->writer, name);
    break;
  case 3:
  case 4:
    if (m->attempt != RUNLOG_NONE) finish(m);
    break;
  case 5: drop_some(m); break;
  default: late_put(m);
  }
}

/* It dies, with all that it was at. */
static void die(meddler *m) {
  runlog_close(m->writer);
  m->writer = NULL;
  m->attempt = RUNLOG_NONE;
}

static void check_world(meddler *m, unsigned seed) {
  scene *c = m->c;
  runlog *log = NULL;
  err e = {0};
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  const runlog_state *st = runlog_view(log);
  for (size_t i = 0; i < st->commit_count; i++)
    if (st->commits[i].life == RUNLOG_LIVE &&
        (!holds(c, st->commits[i].dir, "model.pt") || !holds(c, st->commits[i].dir, MANIFEST_NAME)))
      fail_msg("seed %u: %s is live and not whole", seed, st->commits[i].dir);
  if (m->writer && runlog_refresh(m->writer, &e) < 0)
    fail_msg("seed %u: a live writer was fenced: %s", seed, e.text);
  if (m->attempt != RUNLOG_NONE) {
    const runlog_attempt *a = runlog_find_attempt(st, m->attempt);
    if (a->fate != RUNLOG_OPEN || !holds(c, a->dir, "model.pt"))
      fail_msg("seed %u: a live writer's save was touched", seed);
  }
  if (!holds(c, "notes", "mine.txt")) fail_msg("seed %u: foreign data is gone", seed);
  runlog_close(log);
}

static void nothing_live_is_ever_removed(void **state) {
  long begun = 0, adopted = 0, committed = 0, late = 0, told = 0;
  for (unsigned seed = 1; seed <= 400; seed++) {
    scene *c = scene_new("mem");
    meddler m = {.c = c, .random = seed, .attempt = RUNLOG_NONE};
    c->grace_ns = seed % 3 ? 0 : hour;
    put_in(c, "notes", "mine.txt");
    come_back(&m);
    for (int i = 0; i < 30; i++) meddle(&m);
    c->gate.between = meddle;
    c->gate.ctx = &m;
    for (int round = 0; round < 5; round++) {
      err e = {0};
      if (m.writer && pick(&m, 2)) {
        die(&m);
        ahead += (int64_t)pick(&m, 3) * hour;
      } else if (m.writer) {
        lease(c, m.writer);
      }
      int rc = run_on(c, &c->gate.base, collect_log, &e);
      /* Somebody else's entry came first, or a term: both are said, and harmless. */
      if (rc != 0 && rc != ERR_CONFLICT && rc != ERR_FENCED) fail_msg("seed %u: %s", seed, e.text);
      told += (long)c->told;
      check_world(&m, seed);
    }
    c->gate.between = NULL;
    if (m.writer) die(&m);
    ahead += 48 * hour;
    must_collect(c);
    must_collect(c);
    check_world(&m, seed);
    begun += m.begun, adopted += m.adopted, committed += m.committed, late += m.late;
    scene_free(c);
  }
  print_message("%ld writers, %ld adopted, %ld committed, %ld late puts, %ld collected\n", begun,
                adopted, committed, late, told);
  assert_true(begun > 500 && adopted > 50 && committed > 500 && late > 100 && told > 500);
}

#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_MEMORY(what_a_live_writer_is_at_stays_however_old_it_is),
      IN_MEMORY(a_writer_that_began_just_now_is_alive_without_a_lease),
      IN_MEMORY(what_a_dead_writer_left_goes_when_the_grace_is_over),
      IN_MEMORY(a_save_that_is_whole_is_committed_not_removed),
      IN_MEMORY(beside_a_live_writer_only_older_terms_unsealed_saves_go),
      IN_MEMORY(what_was_dropped_goes_after_the_grace_and_the_newest_never),
      IN_MEMORY(a_pin_holds_until_it_expires_and_then_goes_itself),
      IN_MEMORY(an_object_that_is_no_pin_stops_the_deletes_and_is_named),
      IN_MEMORY(late_puts_and_foreign_names_stay_and_are_told),
      IN_MEMORY(of_a_committed_save_part_records_go_and_named_companions_stay),
      IN_MEMORY(probes_of_killed_processes_go_after_a_day),
      IN_MEMORY(uploads_of_open_saves_stay_and_all_others_go),
      IN_MEMORY(only_uploads_begun_within_a_save_are_its_own),
      IN_MEMORY(a_dry_run_tells_all_and_writes_nothing),
      IN_MEMORY(a_role_that_may_not_delete_is_told_so_and_loses_nothing),
      cmocka_unit_test(a_collection_that_is_cut_anywhere_is_finished_by_the_next),
      cmocka_unit_test(on_a_disk_staging_of_no_open_save_goes),
      IN_MEMORY(a_removed_run_leaves_its_log_and_what_is_not_its_own),
      IN_MEMORY(a_run_that_is_alive_or_pinned_is_not_removed),
      IN_MEMORY(a_run_without_a_lease_is_alive_until_its_log_is_quiet),
      IN_MEMORY(a_run_that_has_ended_well_may_be_removed_at_once),
      cmocka_unit_test(who_pinned_before_the_end_reads_on),
      cmocka_unit_test(who_begins_after_the_end_keeps_its_lease),
      cmocka_unit_test(nothing_live_is_ever_removed),
  };
  return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
