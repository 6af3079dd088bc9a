/* Drop, grace, pins, delete, on real stores: what goes, what stays, and what is finished later. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/restore/pinned.h"
#include "job/keep/prune.h"
#include "commit/settle.h"
#include "io_fault.h"
#include "log_check.h"
#include "store_lossy.h"
#include "world.h"

enum { SAVES = 5 };
static const int64_t second = 1000000000;

typedef struct scene {
  world *w;
  runlog *log;
  uint64_t n[SAVES];
  prune prune;
  size_t dropped, deleted;
} scene;

static void on_step(void *ctx, const runlog_commit *c, retention_verdict what) {
  scene *s = ctx;
  *(what == RETENTION_DROP ? &s->dropped : &s->deleted) += 1;
}

static scene *scene_on(const char *scheme, const io *io) {
  scene *s = calloc(1, sizeof *s);
  s->w = world_new(scheme, io);
  s->log = world_begin(s->w->env.store, "", "one");
  for (int i = 0; i < SAVES; i++) s->n[i] = save_numbered(s->w, s->log, i);
  s->prune = (prune){.store = s->w->env.store,
                     .log = s->log,
                     .limits = {.max_drop = 1},
                     .resumed = RUNLOG_NONE,
                     .told = on_step,
                     .ctx = s};
  return s;
}

static scene *scene_new(void **state) {
  return scene_on(*state ? "file" : "mem", world_io());
}

/* Nothing lies about, the log holds, and what is live can be restored. */
static void scene_free(scene *s) {
  size_t entries;
  store *st = world_store(s->w);
  runlog *reader = NULL;
  const char *why = log_check(st, "", &entries);
  if (why) fail_msg("%s", why);
  why = store_litter(st, "");
  if (why) fail_msg("litter: %s", why);
  assert_int_equal(runlog_open(st, "", &reader, NULL), 0);
  const runlog_state *state = runlog_view(reader);
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE)
      must_restore(s->w, "", &state->commits[i], state->commits[i].unit);
  runlog_close(reader);
  store_close(st);
  runlog_close(s->log);
  world_free(s->w);
  free(s);
}

static runlog_life life(const scene *s, int i) {
  return runlog_find_commit(runlog_view(s->log), s->n[i])->life;
}

static bool has_data(const scene *s, int i) {
  char key[64];
  snprintf(key, sizeof key, "checkpoint-%d/model.bin", i);
  return store_holds(s->w->env.store, key);
}

static int drop(scene *s, int first, int last, err *e) {
  prune_wish wishes[SAVES];
  size_t count = 0;
  for (int i = first; i <= last; i++) wishes[count++] = (prune_wish){s->n[i], "p", "not kept"};
  return prune_drop(&s->prune, wishes, count, e);
}

static void must_drop(scene *s, int first, int last) {
  err e = {0};
  if (drop(s, first, last, &e) < 0) fail_msg("%s", e.text);
}

static prune_rest must_delete(scene *s, size_t most) {
  prune_rest rest;
  err e = {0};
  if (prune_delete(&s->prune, most, &rest, &e) < 0) fail_msg("%s", e.text);
  return rest;
}

static void what_is_dropped_and_out_of_grace_is_gone_to_the_last_byte(void **state) {
  scene *s = scene_new(state);
  must_drop(s, 0, 2);
  assert_int_equal(s->dropped, 3);
  assert_true(has_data(s, 0));
  prune_rest rest = must_delete(s, 2);
  assert_true(rest.more);
  assert_int_equal(s->deleted, 2);
  rest = must_delete(s, 2);
  assert_false(rest.more);
  assert_int_equal(rest.wait_ns, INT64_MAX);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(life(s, i), RUNLOG_DELETED);
    assert_false(has_data(s, i));
  }
  assert_true(has_data(s, 3) && has_data(s, 4));
  scene_free(s);
}

static void within_the_grace_nothing_is_deleted(void **state) {
  scene *s = scene_new(state);
  s->prune.limits.grace_ns = 3600 * second;
  must_drop(s, 0, 1);
  prune_rest rest = must_delete(s, 9);
  assert_int_equal(s->deleted, 0);
  assert_true(rest.wait_ns > 3500 * second && rest.wait_ns <= 3601 * second);
  assert_true(has_data(s, 0));
  s->prune.limits.grace_ns = 0;
  s->prune.limits.no_delete = true;
  must_delete(s, 9);
  assert_int_equal(s->deleted, 0);
  scene_free(s);
}

static void the_newest_is_refused_though_it_was_wished_away(void **state) {
  scene *s = scene_new(state);
  must_drop(s, 0, SAVES - 1);
  assert_int_equal(s->dropped, SAVES - 1);
  must_delete(s, 99);
  assert_int_equal(life(s, SAVES - 1), RUNLOG_LIVE);
  scene_free(s);
}

static void wishes_for_what_is_not_there_do_nothing(void **state) {
  scene *s = scene_new(state);
  prune_wish wishes[] = {{1, "p", "r"}, {4000, "p", "r"}};
  assert_int_equal(prune_drop(&s->prune, wishes, 2, NULL), 0);
  assert_int_equal(s->dropped, 0);
  scene_free(s);
}

static void a_pin_holds_back_drop_and_delete_until_it_expires(void **state) {
  scene *s = scene_new(state);
  char id[33], other[33];
  pin_request r = {.dir = "checkpoint-0", .by = "x", .commit = s->n[0], .life_ns = 3600 * second};
  pin_request old = {.dir = "checkpoint-2", .by = "x", .commit = s->n[2], .life_ns = 1};
  assert_int_equal(pins_put(s->w->env.store, "", &old, other, false, NULL), 0);
  must_drop(s, 1, 1);
  assert_int_equal(pins_put(s->w->env.store, "", &r, id, false, NULL), 0);
  must_drop(s, 0, 0);
  assert_int_equal(life(s, 0), RUNLOG_LIVE);
  r.commit = s->n[1];
  assert_int_equal(pins_put(s->w->env.store, "", &r, id, true, NULL), 0);
  prune_rest rest = must_delete(s, 9);
  assert_int_equal(life(s, 1), RUNLOG_DROPPED);
  assert_true(rest.wait_ns <= 300 * second);
  assert_int_equal(pins_remove(s->w->env.store, "", id, NULL), 0);
  must_delete(s, 9);
  assert_int_equal(life(s, 1), RUNLOG_DELETED);
  /* The one that had expired was cleared away. */
  assert_int_equal(pins_remove(s->w->env.store, "", other, NULL), ERR_NOENT);
  scene_free(s);
}

static void a_pin_that_nobody_can_read_stops_everything_and_is_named(void **state) {
  scene *s = scene_new(state);
  err e = {0};
  prune_rest rest;
  must_drop(s, 0, 0);
  store_put_text(s->w->env.store, ".ckpt/pins/odd", "?", STORE_IF_ABSENT);
  assert_int_equal(drop(s, 1, 1, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, ".ckpt/pins/odd"));
  assert_int_equal(prune_delete(&s->prune, 9, &rest, &e), ERR_FORMAT);
  assert_true(has_data(s, 0));
  assert_int_equal(pins_remove(s->w->env.store, "", "odd", NULL), 0);
  scene_free(s);
}

/* A commit that the writer's clock dated back: the store knows better. */
static int64_t years_ago(const io *io, io_clock clock) {
  return world_io()->now(world_io(), clock) - (clock == IO_WALL ? 1000 * 86400 * second : 0);
}

static void a_writers_clock_that_is_behind_shortens_no_grace(void **state) {
  if (!*state) return; /* a mem store has only the writer's clock */
  scene *s = scene_new(state);
  io slow = *world_io();
  slow.now = years_ago;
  s->w->env.store->io = &slow;
  s->prune.limits.grace_ns = 3600 * second;
  must_drop(s, 0, 0);
  s->w->env.store->io = world_io();
  const runlog_commit *c = runlog_find_commit(runlog_view(s->log), s->n[0]);
  assert_true(c->drop_ns < world_io()->now(world_io(), IO_WALL) - 999 * 86400 * second);
  prune_rest rest = must_delete(s, 9);
  assert_int_equal(s->deleted, 0);
  assert_true(rest.wait_ns > 3000 * second);
  scene_free(s);
}

static void told_to_stop_it_stops_after_a_step(void **state) {
  scene *s = scene_new(state);
  atomic_int stop = 1;
  s->prune.stop = &stop;
  must_drop(s, 0, 2);
  assert_int_equal(s->dropped, 0);
  stop = 0;
  must_drop(s, 0, 2);
  stop = 1;
  assert_true(must_delete(s, 9).more);
  assert_int_equal(s->deleted, 0);
  scene_free(s);
}

/* 0 if call number `nth` never came. */
static long cut_at(long nth, bool for_good, bool done) {
  io_fault *fault = io_fault_new(world_io());
  scene *s = scene_on("file", io_fault_io(fault));
  prune_rest rest;
  err e = {0};
  io_fault_set(fault,
               (io_fault_plan){.nth = nth, .errnum = EIO, .for_good = for_good, .done = done});
  int rc = drop(s, 0, 1, &e);
  if (rc == 0) rc = prune_delete(&s->prune, 9, &rest, &e);
  long failed = io_fault_failed(fault, CALL_ANY);
  io_fault_set(fault, (io_fault_plan){0});
  if (rc < 0) assert_true(*e.text);
  must_drop(s, 0, 1);
  must_delete(s, 9);
  settle_litter(s->w->env.store, s->log, NULL);
  assert_int_equal(life(s, 0), RUNLOG_DELETED);
  assert_int_equal(life(s, 1), RUNLOG_DELETED);
  scene_free(s);
  io_fault_free(fault);
  return failed;
}

/* Whatever call fails, the log and the data agree, and a later pass finishes it. */
static void a_removal_that_is_cut_anywhere_is_finished_later(void **state) {
  long n = 1;
  while (cut_at(n, true, n % 2)) n += 1 + n / 40;
  assert_true(n > 30);
  for (n = 1; cut_at(n, false, n % 2);) n += 2 + n / 40;
}

static void a_new_term_finishes_what_a_dead_one_left(void **state) {
  scene *s = scene_new(state);
  must_drop(s, 0, 0);
  assert_int_equal(runlog_delete(s->log, s->n[0], NULL, NULL, NULL), 0); /* and it died */
  assert_true(has_data(s, 0));
  runlog *next = world_begin(s->w->env.store, "", "two");
  assert_int_equal(settle_attempts(s->w->env.store, next, NULL, NULL), 0);
  assert_false(has_data(s, 0));
  runlog_close(next);
  scene_free(s);
}

static void live_data_is_never_removed_as_deleted(void **state) {
  scene *s = scene_new(state);
  const runlog_commit *c = runlog_find_commit(runlog_view(s->log), s->n[0]);
  assert_int_equal(settle_remove(s->w->env.store, s->log, c, NULL, NULL), ERR_INVAL);
  must_drop(s, 0, 0);
  c = runlog_find_commit(runlog_view(s->log), s->n[0]);
  assert_int_equal(settle_remove(s->w->env.store, s->log, c, NULL, NULL), ERR_INVAL);
  settle_litter(s->w->env.store, s->log, NULL);
  assert_true(has_data(s, 0));
  scene_free(s);
}

/* The newest is dropped by hand when the drop of the one before it is on its way: that one is the
 * newest by then. */
static void drop_newest(void *ctx) {
  scene *s = ctx;
  if (life(s, SAVES - 1) != RUNLOG_LIVE) return;
  assert_int_equal(runlog_drop(s->log, s->n[SAVES - 1], "user", "all", NULL, NULL, NULL), 0);
}

struct trap {
  scene *s;
  store_lossy *link;
};

static void at_the_put(void *ctx) {
  struct trap *t = ctx;
  if (t->link->puts == 1) drop_newest(t->s);
}

static void what_became_the_newest_meanwhile_is_not_dropped(void **state) {
  scene *s = scene_new(state);
  struct trap trap = {s, store_lossy_new(s->w->env.store, 1, true)};
  runlog *guest = NULL;
  prune_wish wish = {s->n[SAVES - 2], "p", "r"};
  assert_int_equal(runlog_open(&trap.link->base, "", &guest, NULL), 0);
  prune p = s->prune;
  p.store = &trap.link->base;
  p.log = guest;
  trap.link->between = at_the_put;
  trap.link->ctx = &trap;
  assert_int_equal(prune_drop(&p, &wish, 1, NULL), 0);
  assert_int_equal(s->dropped, 0);
  assert_int_equal(runlog_refresh(s->log, NULL), 0);
  assert_int_equal(life(s, SAVES - 1), RUNLOG_DROPPED);
  assert_int_equal(life(s, SAVES - 2), RUNLOG_LIVE);
  runlog_close(guest);
  store_lossy_free(trap.link);
  scene_free(s);
}

/* ---- with a reader, a guest and a writer in between ---- */

/* Between any two requests of the remover a reader pins and reads, a guest removes by hand, a
 * writer saves: whoever was told that it may read, reads all. */
struct meddler {
  scene *s;
  uint64_t random;
  store *reading; /* a pinned store, open now */
  int commit;     /* that it reads */
  bool busy, saves;
  long reads, refused, lost;
};

static void read_on(struct meddler *m) {
  char key[64], byte;
  snprintf(key, sizeof key, "checkpoint-%d/model.bin", m->commit);
  store *in = m->reading;
  if (in->ops->read(in, key, 0, &byte, 1, NULL) != 1) m->lost++;
  m->reads++;
}

static void begin_to_read(struct meddler *m) {
  char dir[32];
  m->commit = (int)(m->random / 7 % SAVES);
  snprintf(dir, sizeof dir, "checkpoint-%d", m->commit);
  int rc = pinned_open(m->s->w->env.store, "", dir, m->s->n[m->commit], false, "restore",
                       &m->reading, NULL);
  assert_true(rc == 0 || rc == ERR_CONFLICT);
  m->refused += rc == ERR_CONFLICT;
}

static void meddle(void *ctx) {
  struct meddler *m = ctx;
  m->random = m->random * 6364136223846793005u + 1442695040888963407u;
  if (m->busy) return;
  m->busy = true;
  if (m->reading) read_on(m);
  if (!m->reading && (m->random >> 40) % 4 == 0) {
    begin_to_read(m);
  } else if (m->reading && (m->random >> 40) % 6 == 0) {
    store_close(m->reading);
    m->reading = NULL;
  }
  m->busy = false;
}

static void who_may_read_finds_all_of_it(void **state) {
  long reads = 0, refused = 0, deleted = 0;
  for (unsigned seed = 1; seed <= 150; seed++) {
    scene *s = scene_on("mem", world_io());
    store_lossy *link = store_lossy_new(s->w->env.store, seed, true);
    runlog *guest = NULL;
    struct meddler m = {.s = s, .random = seed};
    assert_int_equal(runlog_open(&link->base, "", &guest, NULL), 0);
    prune p = s->prune;
    p.store = &link->base;
    p.log = guest;
    link->between = meddle;
    link->ctx = &m;
    prune_wish wishes[SAVES];
    for (int i = 0; i < SAVES; i++) wishes[i] = (prune_wish){s->n[i], "p", "r"};
    for (int i = 0; i < 6; i++) {
      prune_rest rest;
      err e = {0};
      if (prune_drop(&p, wishes, SAVES, &e) < 0) fail_msg("%s", e.text);
      if (prune_delete(&p, 2, &rest, &e) < 0) fail_msg("%s", e.text);
    }
    if (m.lost) fail_msg("seed %u: a reader lost what it had pinned", seed);
    link->between = NULL;
    store_close(m.reading);
    reads += m.reads;
    refused += m.refused;
    deleted += (long)s->deleted;
    runlog_close(guest);
    store_lossy_free(link);
    scene_free(s);
  }
  print_message("%ld reads, %ld refused, %ld deleted\n", reads, refused, deleted);
  assert_true(reads > 300 && refused > 50 && deleted > 150);
}

/* ---- a pinned store ---- */

static void a_reader_has_a_pin_while_it_reads(void **state) {
  scene *s = scene_new(state);
  store *in = NULL;
  pins p;
  assert_int_equal(
      pinned_open(s->w->env.store, "", "checkpoint-1", s->n[1], false, "restore", &in, NULL), 0);
  assert_int_equal(pins_list(s->w->env.store, "", &p, NULL), 0);
  assert_int_equal(p.count, 1);
  assert_int_equal(p.at[0].commit, s->n[1]);
  assert_int_equal(p.at[0].expires_ns - p.at[0].created_ns, PINS_READER_S * second);
  pins_free(&p);
  store_close(in);
  assert_int_equal(pins_list(s->w->env.store, "", &p, NULL), 0);
  assert_int_equal(p.count, 0);
  pins_free(&p);
  scene_free(s);
}

static void what_is_dropped_is_not_begun_to_be_read(void **state) {
  scene *s = scene_new(state);
  store *in = NULL;
  err e = {0};
  must_drop(s, 1, 1);
  int rc = pinned_open(s->w->env.store, "", "checkpoint-1", s->n[1], false, "restore", &in, &e);
  assert_int_equal(rc, ERR_CONFLICT);
  assert_null(in);
  assert_non_null(strstr(e.text, "not kept"));
  scene_free(s);
}

static int64_t ahead;
static int64_t shifted(const io *io, io_clock clock) {
  return world_io()->now(world_io(), clock) + (clock == IO_MONO ? ahead : 0);
}

/* A reader of the second checkpoint, of which the clock may run ahead. */
typedef struct reader {
  io clock;
  const io *before;
  store *outer, *in;
} reader;

static void reader_begin(reader *r, const scene *s) {
  *r = (reader){.clock = *world_io(), .outer = s->w->env.store};
  r->clock.now = shifted;
  ahead = 0;
  r->before = r->outer->io;
  r->outer->io = &r->clock;
  assert_int_equal(
      pinned_open(r->outer, "", "checkpoint-1", s->n[1], false, "restore", &r->in, NULL), 0);
}

static int reader_byte(const reader *r, err *e) {
  char byte;
  return (int)r->in->ops->read(r->in, "checkpoint-1/model.bin", 0, &byte, 1, e);
}

static void reader_end(reader *r) {
  store_close(r->in);
  r->outer->io = r->before;
}

static void a_long_read_renews_its_pin_and_ends_when_it_is_dropped(void **state) {
  scene *s = scene_new(state);
  reader r;
  pins a, b;
  reader_begin(&r, s);
  assert_int_equal(pins_list(r.outer, "", &a, NULL), 0);
  ahead = 400 * second;
  assert_int_equal(reader_byte(&r, NULL), 1);
  assert_int_equal(pins_list(r.outer, "", &b, NULL), 0);
  assert_int_equal(b.count, 1);
  assert_string_equal(a.at[0].id, b.at[0].id);
  assert_true(b.at[0].created_ns > a.at[0].created_ns);
  pins_free(&a);
  pins_free(&b);
  assert_int_equal(runlog_drop(s->log, s->n[1], "p", "r", NULL, NULL, NULL), 0);
  assert_int_equal(reader_byte(&r, NULL), 1);
  ahead = 800 * second;
  for (int i = 0; i < 2; i++) assert_int_equal(reader_byte(&r, NULL), ERR_CONFLICT);
  reader_end(&r);
  scene_free(s);
}

/* What is behind a lost entry may have let it go while nothing held it. */
static void a_pin_that_lapsed_holds_nothing_beside_a_log_with_a_hole(void **state) {
  scene *s = scene_new(state);
  reader r;
  err e = {0};
  char key[STORE_KEY_MAX];
  buf text;
  reader_begin(&r, s);
  store *outer = r.outer;
  uint64_t hole = runlog_view(s->log)->next;
  for (int i = 0; i < 2; i++)
    assert_int_equal(runlog_drop(s->log, s->n[i], "p", "r", NULL, NULL, NULL), 0);
  buf_init(&text, 1 << 20);
  assert_int_equal(runlog_key_entry("", hole, key, NULL), 0);
  assert_int_equal(outer->ops->get(outer, key, &text, NULL), 0);
  assert_int_equal(outer->ops->remove(outer, key, NULL), 0);
  ahead = 2000 * second;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(reader_byte(&r, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.text, "hole in the log"));
  }
  assert_int_equal(outer->ops->put(outer, key, text.data, text.len, STORE_IF_ABSENT, NULL), 0);
  assert_int_equal(reader_byte(&r, NULL), ERR_CONFLICT);
  buf_free(&text);
  reader_end(&r);
  scene_free(s);
}

static void a_reader_that_may_not_write_reads_without_a_pin(void **state) {
  scene *s = scene_new(state);
  store_lossy *link = store_lossy_new(s->w->env.store, 1, true);
  link->never_at = 1;
  store *in = NULL;
  char byte;
  assert_int_equal(
      pinned_open(&link->base, "", "checkpoint-1", s->n[1], false, "restore", &in, NULL), 0);
  assert_int_equal(in->ops->read(in, "checkpoint-1/model.bin", 0, &byte, 1, NULL), 1);
  store_close(in);
  store_lossy_free(link);
  scene_free(s);
}

#define BOTH(f) IN_BOTH_WORLDS(f, NULL, NULL)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(what_is_dropped_and_out_of_grace_is_gone_to_the_last_byte),
      BOTH(within_the_grace_nothing_is_deleted),
      BOTH(the_newest_is_refused_though_it_was_wished_away),
      BOTH(wishes_for_what_is_not_there_do_nothing),
      BOTH(a_pin_holds_back_drop_and_delete_until_it_expires),
      BOTH(a_pin_that_nobody_can_read_stops_everything_and_is_named),
      BOTH(a_writers_clock_that_is_behind_shortens_no_grace),
      BOTH(told_to_stop_it_stops_after_a_step),
      cmocka_unit_test(a_removal_that_is_cut_anywhere_is_finished_later),
      BOTH(a_new_term_finishes_what_a_dead_one_left),
      BOTH(live_data_is_never_removed_as_deleted),
      BOTH(what_became_the_newest_meanwhile_is_not_dropped),
      cmocka_unit_test(who_may_read_finds_all_of_it),
      BOTH(a_reader_has_a_pin_while_it_reads),
      BOTH(what_is_dropped_is_not_begun_to_be_read),
      BOTH(a_long_read_renews_its_pin_and_ends_when_it_is_dropped),
      BOTH(a_pin_that_lapsed_holds_nothing_beside_a_log_with_a_hole),
      BOTH(a_reader_that_may_not_write_reads_without_a_pin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
