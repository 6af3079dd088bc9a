/* gc goes on with what the log lets go of commits that stay: it takes those files, once, and no other. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit/log/runlog_ruin.h"
#include "commit/pins.h"
#include "commit/thin_files.h"
#include "io_fault.h"
#include "job/keep/collect.h"
#include "thinned.h"
#include "tmpdir.h"
#include "world.h"

enum { SAVES = 4 };
#define GLOB "shard*"
#define SHARD "sub/shard\xff"

typedef struct scene {
  world *w;
  store *s;
  runlog *log;
  uint64_t n[SAVES];
  int told;
} scene;

/* Four checkpoints, and the log lets files of the first go. */
static scene make(world *w) {
  scene sc = {.w = w, .s = w->env.store, .log = world_log(w, "", "one")};
  for (int i = 0; i < SAVES; i++) sc.n[i] = save_numbered(w, sc.log, i);
  thin_commit(sc.s, sc.log, sc.n[0], GLOB);
  return sc;
}

static int on_told(void *ctx, const runlog *log, const collected *what) {
  scene *sc = ctx;
  (void)log;
  sc->told += strcmp(what->name, "checkpoint-0") == 0 && what->status == 0;
  return 0;
}

static int gc_as(scene *sc, store *s, bool dry, err *e) {
  runlog *log = NULL;
  int rc = runlog_open(s, "", &log, e);
  collect c = {.store = s,
               .log = log,
               .grace_ns = (int64_t)3600 * 1000000000,
               .dry = dry,
               .told = on_told,
               .ctx = sc};
  sc->told = 0;
  if (rc == 0) rc = collect_log(&c, e);
  runlog_close(log);
  return rc;
}

/* How many it told of. */
static int gc(scene *sc) {
  err e = {0};
  if (gc_as(sc, sc->s, false, &e) < 0) fail_msg("%s", e.text);
  return sc->told;
}

static bool has(const scene *sc, int i, const char *name) {
  char key[200];
  snprintf(key, sizeof key, "checkpoint-%d/%s", i, name);
  return store_holds(sc->s, key);
}

/* Each is restored as the log says it is. */
static void all_hold(const scene *sc) {
  err e = {0};
  for (int i = 0; i < SAVES; i++) {
    const runlog_commit *c = runlog_find_commit(runlog_view(sc->log), sc->n[i]);
    char name[64];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    if (i > 0) must_restore(sc->w, "", c, name);
    if (restore_commit(sc->w, "", c, &e) < 0) fail_msg("%s: %s", name, e.text);
  }
}

static void what_the_log_lets_go_is_gone_and_nothing_else(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc = make(w);
    err e = {0};
    assert_int_equal(gc_as(&sc, sc.s, true, &e), 0); /* dry */
    assert_int_equal(sc.told, 1);
    assert_true(has(&sc, 0, SHARD));
    assert_false(has(&sc, 0, MANIFEST_THIN_NAME));
    assert_int_equal(gc(&sc), 1);
    assert_false(has(&sc, 0, SHARD));
    assert_true(has(&sc, 0, MANIFEST_THIN_NAME));
    for (int i = 1; i < SAVES; i++) assert_true(has(&sc, i, SHARD));
    all_hold(&sc);
    /* Once: what is put there later stays. */
    assert_int_equal(store_put_text(sc.s, "checkpoint-0/" SHARD, "later", STORE_IF_ABSENT), 0);
    assert_int_equal(gc(&sc), 0);
    assert_true(has(&sc, 0, SHARD));
    all_hold(&sc);
  }
  (void)state;
}

static void what_is_pinned_stays_until_it_is_not(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc = make(w);
    char id[PINS_ID_MAX];
    pin_request pin = {.dir = "checkpoint-0", .by = "user", .commit = sc.n[0]};
    assert_int_equal(pins_put(sc.s, "", &pin, id, false, NULL), 0);
    assert_int_equal(gc(&sc), 0);
    assert_true(has(&sc, 0, SHARD));
    assert_int_equal(pins_remove(sc.s, "", id, NULL), 0);
    assert_int_equal(store_put_text(sc.s, ".ckpt/pins/00112233445566778899aabbccddeeff", "{torn",
                                    STORE_IF_ABSENT),
                     0);
    assert_true(gc_as(&sc, sc.s, false, NULL) < 0);
    assert_true(has(&sc, 0, SHARD));
    assert_int_equal(sc.s->ops->remove(sc.s, ".ckpt/pins/00112233445566778899aabbccddeeff", NULL),
                     0);
    assert_int_equal(gc(&sc), 1);
    assert_false(has(&sc, 0, SHARD));
  }
  (void)state;
}

/* It was let go when newer ones were there: one that is among the newest by now keeps what it has. */
static void what_is_among_the_newest_by_now_keeps_its_files(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc = make(w);
    for (int i = 2; i < SAVES; i++)
      assert_int_equal(runlog_mark(sc.log, sc.n[i], true, "does not load", NULL), 0);
    assert_int_equal(gc(&sc), 0);
    assert_true(has(&sc, 0, SHARD));
    assert_int_equal(runlog_mark(sc.log, sc.n[2], false, NULL, NULL), 0);
    assert_int_equal(gc(&sc), 1);
    assert_false(has(&sc, 0, SHARD));
  }
  (void)state;
}

static void another_file_under_that_name_stays(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc = make(w);
    buf text;
    buf_init(&text, 1000);
    assert_int_equal(sc.s->ops->get(sc.s, "checkpoint-0/" SHARD, &text, NULL), 0);
    assert_int_equal(
        sc.s->ops->put(sc.s, "checkpoint-0/" SHARD, text.data, text.len - 1, STORE_REPLACE, NULL),
        0);
    buf_free(&text);
    gc(&sc);
    assert_true(has(&sc, 0, SHARD));
    all_hold(&sc);
  }
  (void)state;
}

static void a_manifest_of_another_save_proves_nothing(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc = make(w);
    removal_found f;
    buf text;
    buf_init(&text, 1 << 20);
    assert_int_equal(sc.s->ops->get(sc.s, "checkpoint-1/" MANIFEST_NAME, &text, NULL), 0);
    assert_int_equal(sc.s->ops->put(sc.s, "checkpoint-0/" MANIFEST_NAME, text.data, text.len,
                                    STORE_REPLACE, NULL),
                     0);
    buf_free(&text);
    assert_int_equal(thin_files_remove(sc.s, sc.log, sc.n[0], false, NULL, &f, NULL), ERR_CORRUPT);
    assert_true(has(&sc, 0, SHARD));
    assert_int_equal(thin_files_remove(sc.s, sc.log, sc.n[1], false, NULL, &f, NULL), ERR_INVAL);
    assert_true(has(&sc, 1, SHARD));
  }
  (void)state;
}

/* A repair that takes its epoch before sees the note, or the removal sees the epoch. */
static void who_is_behind_a_repair_removes_nothing(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc = make(w);
    runlog_ruin r = {0};
    removal_found f;
    char hex[HASH_HEX_MAX];
    uint64_t epoch = 0;
    assert_int_equal(runlog_ruin_read(sc.s, "", &r, NULL), 0);
    assert_int_equal(runlog_ruin_claim(&r, "n", &epoch, hex, NULL), 0);
    assert_int_equal(thin_files_remove(sc.s, sc.log, sc.n[0], false, NULL, &f, NULL), ERR_FENCED);
    assert_true(has(&sc, 0, SHARD));
    assert_true(has(&sc, 0, MANIFEST_THIN_NAME));
    runlog_ruin_free(&r);
  }
  (void)state;
}

/* Call n fails (some of them by each of these; test-failn plays all), once or for good, or its answer is lost: whatever stands then is read as the log says, and the
 * next one ends it. */
static void whatever_call_fails_the_next_one_ends_it(void **state) {
  for (int how = 0; how < 3; how++) {
    long failed = 1;
    for (long nth = 1 + how; failed > 0; nth += 9) {
      world *w = world_new("file", world_io());
      scene sc = make(w);
      io_fault *fault = io_fault_new(world_io());
      store *s = NULL;
      err e = {0};
      assert_int_equal(store_open(&w->place.where, io_fault_io(fault), NULL, &s, NULL), 0);
      io_fault_set(fault, (io_fault_plan){
                              .nth = nth, .errnum = EIO, .for_good = how == 1, .done = how == 2});
      gc_as(&sc, s, false, &e);
      failed = io_fault_failed(fault, CALL_ANY);
      io_fault_set(fault, (io_fault_plan){0});
      store_close(s);
      all_hold(&sc);
      for (int i = 1; i < SAVES; i++) assert_true(has(&sc, i, SHARD));
      assert_true(has(&sc, 0, SHARD) || has(&sc, 0, MANIFEST_THIN_NAME));
      gc(&sc);
      assert_false(has(&sc, 0, SHARD));
      all_hold(&sc);
      assert_int_equal(gc(&sc), 0);
      io_fault_free(fault);
      world_free(w);
    }
  }
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_log_lets_go_is_gone_and_nothing_else),
      cmocka_unit_test(what_is_pinned_stays_until_it_is_not),
      cmocka_unit_test(what_is_among_the_newest_by_now_keeps_its_files),
      cmocka_unit_test(another_file_under_that_name_stays),
      cmocka_unit_test(a_manifest_of_another_save_proves_nothing),
      cmocka_unit_test(who_is_behind_a_repair_removes_nothing),
      cmocka_unit_test(whatever_call_fails_the_next_one_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
