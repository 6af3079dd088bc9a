/* Only the newest keep certain files: what a pass takes of older checkpoints, and of which it takes nothing. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/lease.h"
#include "commit/manifest_read.h"
#include "commit/pins.h"
#include "io_fault.h"
#include "job/keep/prune_thin.h"
#include "log_check.h"
#include "thinned.h"
#include "tmpdir.h"
#include "world.h"

enum { SAVES = 5 };
#define SHARD "sub/shard\xff"
#define MORE "[se][hm]*" /* the shard, and what is empty */
static const int64_t second = 1000000000;

typedef struct scene {
  world *w;
  store *s;
  runlog *log;
  uint64_t n[SAVES + 1];
  bool marks; /* the newest two that have such files are marked bad when the first one is told */
  prune prune;
  names globs;
  prune_thin_wish wish;
  prune_thin_whole whole;
  prune_rest rest;
  bool left;
  size_t told, dropped;
  uint64_t files, bytes;
} scene;

static void set_up(scene *sc, world *w, int saves) {
  *sc = (scene){.w = w, .s = w->env.store, .log = world_log(w, "", "one")};
  for (int i = 0; i < saves; i++) sc->n[i] = save_numbered(w, sc->log, i);
  assert_true(names_add(&sc->globs, "shard*"));
  sc->left = true; /* a run does not know what earlier ones left */
  sc->wish = (prune_thin_wish){&sc->globs, 2, "p"};
  sc->prune =
      (prune){.store = sc->s, .log = sc->log, .limits = {.max_drop = 1}, .resumed = RUNLOG_NONE};
}

static void tear_down(scene *sc) {
  size_t entries;
  const char *why = log_check(sc->s, "", &entries);
  if (why) fail_msg("%s", why);
  names_free(&sc->globs);
  prune_thin_forget(&sc->whole);
}

static void on_thin(void *ctx, const runlog_commit *c, uint64_t files, uint64_t bytes) {
  scene *sc = ctx;
  assert_true(c->thin.globs.count > 0 && files > 0);
  if (sc->marks && sc->told == 0)
    for (int i = 2; i < 4; i++)
      assert_int_equal(runlog_mark(sc->log, sc->n[i], true, "does not load", NULL), 0);
  sc->told++;
  sc->files += files;
  sc->bytes += bytes;
}

/* One pass, as a run has it. */
static int pass(scene *sc, err *e) {
  sc->told = 0;
  sc->rest = (prune_rest){.wait_ns = INT64_MAX};
  int rc = runlog_refresh(sc->log, e);
  return rc < 0 ? rc
                : prune_thin(&sc->prune, &sc->wish, &sc->whole, sc->dropped, &sc->left, on_thin, sc,
                             &sc->rest, e);
}

static size_t must_pass(scene *sc) {
  err e = {0};
  if (pass(sc, &e) < 0) fail_msg("%s", e.text);
  return sc->told;
}

static bool has(const scene *sc, int i) {
  char key[200];
  snprintf(key, sizeof key, "checkpoint-%d/" SHARD, i);
  return store_holds(sc->s, key);
}

static const runlog_commit *commit(const scene *sc, int i) {
  return runlog_find_commit(runlog_view(sc->log), sc->n[i]);
}

/* Those before `first` have lost the file, in the log and in the store; each is restored as the log says. */
static void whole_from(const scene *sc, int first, int saves) {
  err e = {0};
  for (int i = 0; i < saves; i++) {
    char name[32];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    assert_int_equal(commit(sc, i)->thin.globs.count, i < first);
    assert_int_equal(has(sc, i), i >= first);
    if (i >= first) must_restore(sc->w, "", commit(sc, i), name);
    if (restore_commit(sc->w, "", commit(sc, i), &e) < 0) fail_msg("%s: %s", name, e.text);
  }
}

static void the_two_newest_keep_them_and_the_older_stay_without(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, SAVES);
    const uint64_t bytes = commit(&sc, 0)->bytes;
    assert_int_equal(must_pass(&sc), 3);
    whole_from(&sc, 3, SAVES);
    assert_int_equal(sc.files, 3);
    assert_int_equal(commit(&sc, 0)->bytes + sc.bytes / 3, bytes);
    assert_string_equal(commit(&sc, 0)->thin.policy, "p");
    assert_string_equal(commit(&sc, 0)->thin.reason, "2 newer ones have such files");
    assert_int_equal(commit(&sc, 0)->thin.newest, 2);
    assert_int_equal(must_pass(&sc), 0);
    whole_from(&sc, 3, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

/* Returns how many would lose some in a pass now. */
static size_t planned_now(const scene *sc, const retention_guard *guard, prune_thin_planned *out) {
  const runlog_state *state = runlog_view(sc->log);
  size_t count = 0;
  err e = {0};
  if (prune_thin_plan(&sc->prune, &sc->wish, guard, state, sc->dropped, out, &e) < 0)
    fail_msg("%s", e.text);
  for (size_t i = 0; i < state->commit_count; i++) {
    count += out[i].files && !out[i].later && out[i].wait_ns == 0;
    names_free(&out[i].globs);
  }
  return count;
}

static void a_plan_says_what_a_pass_then_takes(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    prune_thin_planned planned[SAVES];
    set_up(&sc, w, SAVES);
    const retention_guard guard = {
        .pinned = &sc.n[1], .pinned_count = 1, .resumed = RUNLOG_NONE, .verified = RUNLOG_NONE};
    sc.prune.limits.max_drop = 0.2;
    assert_int_equal(planned_now(&sc, &guard, planned), 1);
    assert_true(planned[0].files == 1 && !planned[0].later && planned[2].later);
    assert_true(!planned[1].files && !planned[3].files && !planned[4].files);
    whole_from(&sc, 0, SAVES);
    const uint64_t bytes = planned[0].bytes;
    assert_int_equal(must_pass(&sc), 1);
    assert_true(sc.files == 1 && sc.bytes == bytes && !has(&sc, 0));
    sc.prune.limits.grace_ns = INT64_MAX;
    assert_int_equal(planned_now(&sc, &guard, planned), 0);
    assert_int_equal(planned[2].files, 0);
    tear_down(&sc);
  }
  (void)state;
}

static void until_enough_newer_ones_are_old_enough_nothing_goes(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, SAVES);
    sc.prune.limits.grace_ns = 3600 * second;
    assert_int_equal(must_pass(&sc), 0);
    assert_true(sc.rest.wait_ns > 3500 * second && sc.rest.wait_ns <= 3601 * second);
    whole_from(&sc, 0, SAVES);
    sc.prune.limits.grace_ns = 0;
    sc.prune.limits.no_delete = true;
    assert_int_equal(must_pass(&sc), 0);
    whole_from(&sc, 0, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

static void save_without(scene *sc, int i, const char *what) {
  char name[32], path[80];
  snprintf(name, sizeof name, "checkpoint-%d", i);
  snprintf(path, sizeof path, "%s/%s", name, what);
  make_unit(sc->w, name, MATCH_DIR, (unsigned)i);
  assert_int_equal(remove(tmpdir_path(sc->w->root, path)), 0);
  sc->n[i] = save_unit(sc->w, sc->log, name, MATCH_DIR, i);
}

/* Dates all that is there back by so long: the store tells the time of its entries. */
static void age_store(const world *w, int64_t by) {
  char command[5000];
  snprintf(command, sizeof command, "find '%s' -type f -exec touch -d '-%lld seconds' {} +",
           w->place.where.path, (long long)(by / second));
  assert_int_equal(system(command), 0);
}

/* Who needs these files reads the last one that has them, until others are there. */
static void the_grace_begins_when_newer_ones_have_such_files(void **state) {
  scene sc;
  world *w = world_new("file", world_io());
  set_up(&sc, w, 1);
  save_without(&sc, 1, SHARD);
  save_without(&sc, 2, SHARD);
  age_store(w, 7200 * second);
  for (int i = 3; i < SAVES; i++) sc.n[i] = save_numbered(w, sc.log, i);
  sc.prune.limits.grace_ns = 3600 * second;
  assert_int_equal(must_pass(&sc), 0);
  assert_true(sc.rest.wait_ns > 3000 * second && sc.rest.wait_ns <= 3601 * second);
  age_store(w, 7200 * second);
  assert_int_equal(must_pass(&sc), 1);
  assert_false(has(&sc, 0));
  tear_down(&sc);
  world_free(w);
  (void)state;
}

static void a_pass_takes_no_more_than_its_share_with_what_it_dropped(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, SAVES);
    sc.prune.limits.max_drop = 0.4;
    sc.dropped = 2;
    assert_int_equal(must_pass(&sc), 0);
    sc.dropped = 1;
    assert_int_equal(must_pass(&sc), 1);
    whole_from(&sc, 1, SAVES);
    sc.dropped = 0;
    assert_int_equal(must_pass(&sc), 2);
    whole_from(&sc, 3, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

/* The newest is what is gone on from: one that nobody can read, or that has no such file itself, is no reason to
 * take any of the last that has. */
static void nothing_goes_unless_the_newest_have_it_and_can_be_read(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    buf text;
    set_up(&sc, w, 4);
    thin_whole(sc.s, sc.log, sc.n[3], "shard*"); /* as one that was saved without it */
    assert_int_equal(must_pass(&sc), 1);
    assert_false(has(&sc, 0));
    assert_true(has(&sc, 1) && has(&sc, 2));
    buf_init(&text, 1 << 20);
    const char *key = "checkpoint-2/" MANIFEST_NAME;
    sc.n[4] = save_numbered(w, sc.log, 4);
    assert_int_equal(sc.s->ops->get(sc.s, key, &text, NULL), 0);
    text.data[text.len / 2] ^= 1;
    assert_int_equal(sc.s->ops->put(sc.s, key, text.data, text.len, STORE_REPLACE, NULL), 0);
    assert_int_equal(must_pass(&sc), 0);
    assert_true(has(&sc, 1));
    text.data[text.len / 2] ^= 1;
    assert_int_equal(sc.s->ops->put(sc.s, key, text.data, text.len, STORE_REPLACE, NULL), 0);
    assert_int_equal(must_pass(&sc), 1);
    assert_false(has(&sc, 1));
    buf_free(&text);
    tear_down(&sc);
  }
  (void)state;
}

static void what_the_newest_have_not_of_each_kind_stays(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, 4);
    assert_true(names_add(&sc.globs, "empty"));
    make_unit(w, "checkpoint-4", MATCH_DIR, 4);
    assert_int_equal(remove(tmpdir_path(w->root, "checkpoint-4/empty")), 0);
    sc.n[4] = save_unit(w, sc.log, "checkpoint-4", MATCH_DIR, 4);
    assert_int_equal(must_pass(&sc), 0);
    whole_from(&sc, 0, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

/* A full disk makes such files. */
static void an_empty_file_of_a_newer_one_is_none(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, 3);
    for (int i = 3; i < SAVES; i++) {
      char name[32], shard[64];
      snprintf(name, sizeof name, "checkpoint-%d", i);
      snprintf(shard, sizeof shard, "%s/" SHARD, name);
      make_unit(w, name, MATCH_DIR, (unsigned)i);
      write_file(tmpdir_path(w->root, shard), "");
      sc.n[i] = save_unit(w, sc.log, name, MATCH_DIR, i);
    }
    assert_int_equal(must_pass(&sc), 1);
    whole_from(&sc, 1, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

static void what_is_pinned_or_gone_on_from_keeps_all(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    char id[PINS_ID_MAX];
    set_up(&sc, w, SAVES);
    pin_request pin = {.dir = "checkpoint-0", .by = "user", .commit = sc.n[0]};
    assert_int_equal(pins_put(sc.s, "", &pin, id, false, NULL), 0);
    sc.prune.resumed = sc.n[1];
    assert_int_equal(must_pass(&sc), 1);
    assert_true(has(&sc, 0) && has(&sc, 1));
    assert_false(has(&sc, 2));
    assert_int_equal(pins_remove(sc.s, "", id, NULL), 0);
    sc.prune.resumed = RUNLOG_NONE;
    assert_int_equal(must_pass(&sc), 2);
    whole_from(&sc, 3, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

/* It was marked, or pinned, between the entry and the removal. */
static void between_the_entry_and_the_removal_it_is_asked_again(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    char id[PINS_ID_MAX];
    bool left = false;
    set_up(&sc, w, SAVES);
    for (int i = 0; i < 3; i++) thin_commit(sc.s, sc.log, sc.n[i], "shard*");
    pin_request pin = {.dir = "checkpoint-0", .by = "user", .commit = sc.n[0]};
    assert_int_equal(pins_put(sc.s, "", &pin, id, false, NULL), 0);
    for (int i = 2; i < 4; i++)
      assert_int_equal(runlog_mark(sc.log, sc.n[i], true, "does not load", NULL), 0);
    assert_int_equal(prune_thin_files(&sc.prune, 0, NULL, NULL, &left, NULL), 0);
    assert_true(left && has(&sc, 0) && has(&sc, 1) && has(&sc, 2));
    for (int i = 2; i < 4; i++)
      assert_int_equal(runlog_mark(sc.log, sc.n[i], false, NULL, NULL), 0);
    assert_int_equal(prune_thin_files(&sc.prune, 0, NULL, NULL, &left, NULL), 0);
    assert_true(left && has(&sc, 0));
    assert_false(has(&sc, 1) || has(&sc, 2));
    assert_int_equal(pins_remove(sc.s, "", id, NULL), 0);
    assert_int_equal(prune_thin_files(&sc.prune, 0, NULL, NULL, &left, NULL), 0);
    assert_false(left);
    whole_from(&sc, 3, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

/* The newer ones that have it were marked between the entry and the removal, and the job writes none any more. */
static void the_last_that_has_such_a_file_keeps_it_though_its_entry_is_made(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    bool left = false;
    set_up(&sc, w, 3);
    for (int i = 3; i < SAVES; i++) save_without(&sc, i, SHARD);
    thin_commit(sc.s, sc.log, sc.n[0], "shard*");
    for (int i = 1; i < 3; i++)
      assert_int_equal(runlog_mark(sc.log, sc.n[i], true, "does not load", NULL), 0);
    assert_int_equal(prune_thin_files(&sc.prune, 0, NULL, NULL, &left, NULL), 0);
    assert_true(left && has(&sc, 0));
    for (int i = 1; i < 3; i++)
      assert_int_equal(runlog_mark(sc.log, sc.n[i], false, NULL, NULL), 0);
    assert_int_equal(prune_thin_files(&sc.prune, 0, NULL, NULL, &left, NULL), 0);
    assert_false(left || has(&sc, 0));
    tear_down(&sc);
  }
  (void)state;
}

static void what_is_marked_within_a_pass_is_none_that_has_it(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, 4);
    for (int i = 4; i < 6; i++) save_without(&sc, i, SHARD);
    sc.marks = true;
    assert_int_equal(must_pass(&sc), 1);
    assert_int_equal(commit(&sc, 1)->thin.globs.count, 0);
    assert_true(has(&sc, 0) && has(&sc, 1));
    tear_down(&sc);
  }
  (void)state;
}

static void what_the_newest_have_not_of_each_kind_stays_though_its_entry_is_made(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    bool left = false;
    set_up(&sc, w, 3);
    for (int i = 3; i < SAVES; i++) save_without(&sc, i, SHARD);
    thin_commit(sc.s, sc.log, sc.n[0], MORE);
    for (int i = 1; i < 3; i++)
      assert_int_equal(runlog_mark(sc.log, sc.n[i], true, "does not load", NULL), 0);
    assert_int_equal(prune_thin_files(&sc.prune, 0, NULL, NULL, &left, NULL), 0);
    assert_true(left && has(&sc, 0));
    tear_down(&sc);
  }
  (void)state;
}

/* What has no such file, or nothing else, is looked into once. */
static void what_has_no_such_files_stays_as_it_is(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    set_up(&sc, w, SAVES);
    names_free(&sc.globs);
    assert_true(names_add(&sc.globs, "*"));
    assert_int_equal(must_pass(&sc), 0);
    whole_from(&sc, 0, SAVES);
    assert_int_equal(sc.whole.count, 3);
    names_free(&sc.globs);
    prune_thin_forget(&sc.whole);
    assert_true(names_add(&sc.globs, "none-such"));
    assert_int_equal(must_pass(&sc), 0);
    whole_from(&sc, 0, SAVES);
    tear_down(&sc);
  }
  (void)state;
}

/* Call n fails, once or for good, or its answer is lost: whatever stands then is read as the log says, the two newest
 * are whole, and the next pass ends it. */
/* The note was put before they went. With other globs the entry would say that they are there for good. */
static void where_the_entry_was_lost_it_is_made_of_the_note(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene sc;
    char key[STORE_KEY_MAX];
    set_up(&sc, w, SAVES);
    thin_whole(sc.s, sc.log, sc.n[0], MORE);
    assert_int_equal(runlog_key_entry("", runlog_view(sc.log)->next - 1, key, NULL), 0);
    assert_int_equal(sc.s->ops->remove(sc.s, key, NULL), 0);
    sc.prune.log = sc.log = world_log(w, "", "one");
    assert_int_equal(must_pass(&sc), 3);
    assert_string_equal(commit(&sc, 0)->thin.globs.at[0], MORE);
    assert_string_equal(commit(&sc, 1)->thin.globs.at[0], "shard*");
    err e = {0};
    if (restore_commit(w, "", commit(&sc, 0), &e) < 0) fail_msg("%s", e.text);
    tear_down(&sc);
  }
  (void)state;
}

static void whatever_call_fails_the_next_pass_ends_it(void **state) {
  for (int how = 0; how < 3; how++) {
    long failed = 1;
    for (long nth = 1 + how; failed > 0; nth += 7) {
      world *w = world_new("file", world_io());
      scene sc;
      set_up(&sc, w, 3);
      io_fault *fault = io_fault_new(world_io());
      store *s = NULL;
      runlog *log = NULL;
      err e = {0};
      assert_int_equal(store_open(&w->place.where, io_fault_io(fault), NULL, &s, NULL), 0);
      log = world_begin(s, "", "two");
      runlog *first = sc.log;
      sc.prune.store = s;
      sc.prune.log = sc.log = log;
      io_fault_set(fault, (io_fault_plan){
                              .nth = nth, .errnum = EIO, .for_good = how == 1, .done = how == 2});
      pass(&sc, &e);
      failed = io_fault_failed(fault, CALL_ANY);
      io_fault_set(fault, (io_fault_plan){0});
      runlog_close(log);
      store_close(s);
      sc.prune.store = sc.s;
      sc.prune.log = sc.log = first;
      assert_int_equal(runlog_refresh(first, NULL), ERR_FENCED);
      assert_true(has(&sc, 1) && has(&sc, 2));
      log = world_log(w, "", "three");
      sc.prune.log = sc.log = log;
      for (int i = 0; i < 3; i++) assert_int_equal(restore_commit(w, "", commit(&sc, i), NULL), 0);
      sc.left = true;
      must_pass(&sc);
      whole_from(&sc, 1, 3);
      tear_down(&sc);
      io_fault_free(fault);
      world_free(w);
    }
  }
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_two_newest_keep_them_and_the_older_stay_without),
      cmocka_unit_test(a_plan_says_what_a_pass_then_takes),
      cmocka_unit_test(until_enough_newer_ones_are_old_enough_nothing_goes),
      cmocka_unit_test(the_grace_begins_when_newer_ones_have_such_files),
      cmocka_unit_test(a_pass_takes_no_more_than_its_share_with_what_it_dropped),
      cmocka_unit_test(nothing_goes_unless_the_newest_have_it_and_can_be_read),
      cmocka_unit_test(what_the_newest_have_not_of_each_kind_stays),
      cmocka_unit_test(an_empty_file_of_a_newer_one_is_none),
      cmocka_unit_test(what_is_pinned_or_gone_on_from_keeps_all),
      cmocka_unit_test(between_the_entry_and_the_removal_it_is_asked_again),
      cmocka_unit_test(the_last_that_has_such_a_file_keeps_it_though_its_entry_is_made),
      cmocka_unit_test(what_is_marked_within_a_pass_is_none_that_has_it),
      cmocka_unit_test(what_the_newest_have_not_of_each_kind_stays_though_its_entry_is_made),
      cmocka_unit_test(what_has_no_such_files_stays_as_it_is),
      cmocka_unit_test(where_the_entry_was_lost_it_is_made_of_the_note),
      cmocka_unit_test(whatever_call_fails_the_next_pass_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
