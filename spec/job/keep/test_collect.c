/* What gc removes, what it leaves alone, beside live writers, dead ones, and such that come back.
 */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/pins.h"
#include "commit/settle.h"
#include "gc_scene.h"
#include "world.h"

static const int64_t second = 1000000000;
static const int64_t hour = (int64_t)3600 * 1000000000;

/* ---- open saves ---- */

static void what_a_live_writer_is_at_stays_however_old_it_is(void **state) {
  gc_scene *c = *state;
  runlog *live = gc_begin(c, "", "one");
  uint64_t n = gc_announce(c, live, "a");
  gc_ahead = 1000 * hour;
  gc_lease(c, live);
  c->grace_ns = 0;
  gc_must_collect(c);
  assert_int_equal(c->told, 0);
  assert_int_equal(gc_fate(c, n), RUNLOG_OPEN);
  assert_int_equal(runlog_refresh(live, NULL), 0);
  assert_true(gc_holds(c, "a", "model.pt"));
}

static void a_writer_that_began_just_now_is_alive_without_a_lease(void **state) {
  gc_scene *c = *state;
  runlog *live = gc_begin(c, "", "one");
  uint64_t n = gc_announce(c, live, "a");
  gc_ahead = 14 * 60 * second;
  c->grace_ns = 0;
  gc_must_collect(c);
  assert_int_equal(gc_fate(c, n), RUNLOG_OPEN);
  assert_int_equal(runlog_refresh(live, NULL), 0);
}

static void what_a_dead_writer_left_goes_when_the_grace_is_over(void **state) {
  gc_scene *c = *state;
  runlog *dead = gc_begin(c, "", "one");
  uint64_t n = gc_announce(c, dead, "a");
  gc_lease(c, dead);
  gc_put_in(c, ".ckpt/parts/2/1", "0");
  gc_put_in(c, ".ckpt/with/2/1", "latest");
  assert_int_equal(n, 2);
  gc_ahead = 23 * hour;
  gc_must_collect(c);
  assert_int_equal(gc_fate(c, n), RUNLOG_OPEN); /* somebody may yet go on with it */
  gc_ahead = 25 * hour;
  gc_must_collect(c);
  assert_int_equal(gc_fate(c, n), RUNLOG_SWEPT);
  assert_true(gc_was_told(c, "attempt a"));
  assert_null(store_litter(c->s, ""));
  assert_int_equal(runlog_refresh(dead, NULL), ERR_FENCED);
  gc_must_collect(c);
  assert_int_equal(c->told, 0);
}

static void a_save_that_is_whole_is_committed_not_removed(void **state) {
  gc_scene *c = *state;
  runlog *dead = gc_begin(c, "", "one");
  manifest m;
  uint64_t n = gc_announce(c, dead, "a");
  gc_seal(c, dead, n, &m);
  manifest_free(&m);
  gc_ahead = 25 * hour;
  gc_must_collect(c);
  assert_int_equal(gc_fate(c, n), RUNLOG_COMMITTED);
  assert_true(gc_was_told(c, "commit a"));
  assert_true(gc_holds(c, "a", "model.pt"));
}

/* Two terms that pushed each other aside have each left a save: the second is the older one. */
static void a_save_that_comes_late_is_told_as_such_before_and_after(void **state) {
  gc_scene *c = *state;
  runlog *one = gc_begin(c, "", "one");
  uint64_t first = gc_announce(c, one, "checkpoint-50");
  runlog *two = gc_begin(c, "", "two");
  uint64_t second = gc_announce(c, two, "checkpoint-40");
  gc_seal_made(c, one, first, 50);
  gc_seal_made(c, two, second, 40);
  gc_ahead = 25 * hour;
  for (int dry = 1; dry >= 0; dry--) {
    c->dry = dry;
    gc_must_collect(c);
    assert_int_equal(c->told, 2);
    assert_true(gc_was_told(c, "commit checkpoint-50"));
    assert_string_equal(gc_reason(c, "attempt checkpoint-40"),
                        "it is not saved: newer is committed: checkpoint-50");
  }
  assert_int_equal(gc_fate(c, second), RUNLOG_SWEPT);
}

static void one_that_was_begun_before_the_newest_is_told_as_such(void **state) {
  gc_scene *c = *state;
  runlog *log = gc_begin(c, "", "one");
  uint64_t n = gc_announce(c, log, "checkpoint-1");
  gc_seal_made(c, log, n, 1);
  gc_commit(c, log, "checkpoint-2");
  gc_ahead = 25 * hour;
  for (int dry = 1; dry >= 0; dry--) {
    c->dry = dry;
    gc_must_collect(c);
    assert_string_equal(gc_reason(c, "attempt checkpoint-1"),
                        "it is not saved: newer is committed: checkpoint-2");
  }
  assert_int_equal(gc_fate(c, n), RUNLOG_SWEPT);
}

static void beside_a_live_writer_only_older_terms_unsealed_saves_go(void **state) {
  gc_scene *c = *state;
  runlog *dead = gc_begin(c, "", "one");
  manifest m;
  uint64_t torn = gc_announce(c, dead, "a"), whole = gc_announce(c, dead, "b");
  gc_seal(c, dead, whole, &m);
  manifest_free(&m);
  runlog *live = gc_begin(c, "", "two");
  uint64_t own = gc_announce(c, live, "c");
  gc_ahead = 25 * hour;
  gc_lease(c, live);
  gc_must_collect(c);
  assert_int_equal(gc_fate(c, torn), RUNLOG_SWEPT);
  assert_int_equal(gc_fate(c, whole), RUNLOG_OPEN); /* for its run to commit */
  assert_int_equal(gc_fate(c, own), RUNLOG_OPEN);
  assert_false(gc_holds(c, "a", "model.pt"));
  assert_true(gc_holds(c, "b", "model.pt") && gc_holds(c, "c", "model.pt"));
  assert_int_equal(runlog_refresh(live, NULL), 0);
}

/* ---- what was dropped, pins ---- */

static void what_was_dropped_goes_after_the_grace_and_the_newest_never(void **state) {
  gc_scene *c = *state;
  runlog *log = gc_begin(c, "", "one");
  uint64_t first = gc_commit(c, log, "checkpoint-1");
  uint64_t last = gc_commit(c, log, "checkpoint-2");
  runlog_drop(log, first, "p", "not kept", NULL, NULL, NULL);
  gc_must_collect(c);
  assert_true(gc_holds(c, "checkpoint-1", "model.pt"));
  gc_ahead = 25 * hour;
  gc_must_collect(c);
  assert_true(gc_was_told(c, "checkpoint checkpoint-1"));
  assert_false(gc_holds(c, "checkpoint-1", "model.pt"));
  /* All were dropped by hand: the last one still stays. */
  runlog_refresh(log, NULL);
  runlog_drop(log, last, "user", "all", NULL, NULL, NULL);
  gc_ahead = 100 * hour;
  gc_must_collect(c);
  assert_true(gc_holds(c, "checkpoint-2", "model.pt"));
}

static void a_pin_holds_until_it_expires_and_then_goes_itself(void **state) {
  gc_scene *c = *state;
  char id[PINS_ID_MAX];
  runlog *log = gc_begin(c, "", "one");
  uint64_t n = gc_commit(c, log, "checkpoint-1");
  gc_commit(c, log, "checkpoint-2");
  pin_request r = {.dir = "checkpoint-1", .by = "x", .commit = n, .life_ns = 30 * hour};
  assert_int_equal(pins_put(c->s, "", &r, id, false, NULL), 0);
  runlog_drop(log, n, "p", "not kept", NULL, NULL, NULL);
  gc_ahead = 29 * hour;
  gc_must_collect(c);
  assert_true(gc_holds(c, "checkpoint-1", "model.pt"));
  assert_int_equal(c->told, 0);
  gc_ahead = 31 * hour;
  gc_must_collect(c);
  assert_false(gc_holds(c, "checkpoint-1", "model.pt"));
  assert_int_equal(pins_remove(c->s, "", id, NULL), ERR_NOENT);
}

static void an_object_that_is_no_pin_stops_the_deletes_and_is_named(void **state) {
  gc_scene *c = *state;
  err e = {0};
  runlog *log = gc_begin(c, "", "one");
  uint64_t n = gc_commit(c, log, "checkpoint-1");
  gc_commit(c, log, "checkpoint-2");
  runlog_drop(log, n, "p", "not kept", NULL, NULL, NULL);
  gc_put_at(c, ".ckpt/pins/odd");
  gc_ahead = 25 * hour;
  assert_int_equal(gc_run_on(c, c->s, collect_log, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, ".ckpt/pins/odd"));
  assert_true(gc_holds(c, "checkpoint-1", "model.pt"));
}

/* ---- litter ---- */

static void late_puts_and_foreign_names_stay_and_are_told(void **state) {
  gc_scene *c = *state;
  runlog *log = gc_begin(c, "", "one");
  uint64_t swept = gc_announce(c, log, "a");
  uint64_t n = gc_commit(c, log, "checkpoint-1");
  gc_commit(c, log, "checkpoint-2");
  uint64_t open = gc_announce(c, log, "open");
  runlog_sweep(log, swept, NULL);
  runlog_drop(log, n, "p", "x", NULL, NULL, NULL);
  runlog_delete(log, n, NULL, NULL, NULL);
  char parts[64];
  snprintf(parts, sizeof parts, ".ckpt/parts/%llu/1", (unsigned long long)open);
  gc_put_in(c, parts, "0");
  gc_put_in(c, "checkpoint-1", "late");
  gc_put_in(c, ".ckpt/parts/99/1", "0"); /* of an attempt that may be announced just now */
  gc_put_in(c, "notes", "mine.txt");
  gc_put_at(c, ".ckpt/other/thing");
  gc_lease(c, log);
  gc_must_collect(c);
  assert_false(gc_holds(c, "a", "model.pt") || gc_holds(c, "checkpoint-1", "model.pt"));
  assert_true(gc_was_told(c, "litter a") && gc_was_told(c, "litter checkpoint-1"));
  /* Nothing tells whose that is. It is named, each time, and stays. */
  assert_true(gc_was_told(c, "left checkpoint-1") && gc_holds(c, "checkpoint-1", "late"));
  gc_put_in(c, "a", "model.pt");
  gc_lease(c, log);
  gc_must_collect(c);
  assert_true(gc_was_told(c, "left checkpoint-1") && gc_was_told(c, "left a"));
  assert_int_equal(c->told, 2);
  assert_true(gc_holds(c, "checkpoint-1", "late") && gc_holds(c, "a", "model.pt"));
  assert_true(gc_holds(c, "checkpoint-2", "model.pt") && gc_holds(c, "open", "model.pt"));
  assert_true(gc_holds(c, parts, "0") && gc_holds(c, ".ckpt/parts/99/1", "0"));
  assert_true(gc_holds(c, "notes", "mine.txt") && store_holds(c->s, ".ckpt/other/thing"));
}

static void of_a_committed_save_part_records_go_and_named_companions_stay(void **state) {
  gc_scene *c = *state;
  runlog *log = gc_begin(c, "", "one");
  manifest m;
  uint64_t n = gc_announce(c, log, "a");
  gc_seal(c, log, n, &m);
  runlog_note note = {.companions = {.term = 1, .files = 1, .bytes = 4, .root = m.root}};
  assert_int_equal(runlog_commit_attempt(log, n, &m, &note, NULL, NULL), 0);
  manifest_free(&m);
  gc_put_in(c, ".ckpt/parts/2/1", "0");
  gc_put_in(c, ".ckpt/with/2/1", "latest");
  gc_put_in(c, ".ckpt/with/2/7", "latest");
  gc_must_collect(c);
  assert_false(gc_holds(c, ".ckpt/parts/2/1", "0") || gc_holds(c, ".ckpt/with/2/7", "latest"));
  assert_true(gc_holds(c, ".ckpt/with/2/1", "latest"));
}

static void probes_of_killed_processes_go_after_a_day(void **state) {
  gc_scene *c = *state;
  gc_begin(c, "", "one");
  gc_put_at(c, ".ckpt/lease-probe.old");
  gc_put_at(c, ".ckpt/tmp/old");
  gc_put_at(c, ".ckpt/ranks/old");
  gc_ahead = 23 * hour;
  gc_must_collect(c);
  assert_int_equal(c->told, 0);
  gc_ahead = 25 * hour;
  gc_put_at(c, ".ckpt/lease-probe.new");
  gc_must_collect(c);
  assert_false(store_holds(c->s, ".ckpt/lease-probe.old") || store_holds(c->s, ".ckpt/tmp/old"));
  assert_false(store_holds(c->s, ".ckpt/ranks/old"));
  assert_true(store_holds(c->s, ".ckpt/lease-probe.new"));
}

static bool has_upload(const gc_scene *c, const char *id) {
  for (size_t i = 0; i < c->gate.upload_count; i++)
    if (strcmp(c->gate.uploads[i].id, id) == 0) return true;
  return false;
}

/* Nobody who finds one can tell whose it is, but by the time. */
static void only_uploads_begun_within_a_save_are_its_own(void **state) {
  gc_scene *c = *state;
  gc_add_upload(c, "a/x", "before");
  gc_add_upload(c, "done/x", "before the commit");
  runlog *log = gc_begin(c, "", "one");
  gc_ahead = hour;
  uint64_t swept = gc_announce(c, log, "a");
  gc_add_upload(c, "a/x", "within");
  gc_commit(c, log, "done");
  runlog_sweep(log, swept, NULL);
  assert_int_equal(settle_clear(&c->gate.base, log, swept, NULL, NULL), 0);
  assert_false(has_upload(c, "within"));
  assert_true(has_upload(c, "before"));
  gc_ahead = 2 * hour;
  gc_add_upload(c, "a/x", "late");
  gc_add_upload(c, "done/x", "beside");
  gc_lease(c, log);
  gc_must_collect(c);
  assert_true(has_upload(c, "before") && has_upload(c, "late"));
  assert_true(has_upload(c, "before the commit") && has_upload(c, "beside"));
}

static void uploads_of_open_saves_stay_and_all_others_go(void **state) {
  gc_scene *c = *state;
  runlog *log = gc_begin(c, "", "one");
  gc_begin(c, "exp/T1", "one");
  uint64_t swept = gc_announce(c, log, "a");
  gc_announce(c, log, "open");
  uint64_t done = gc_announce(c, log, "done");
  gc_add_upload(c, "done/x", "done");
  gc_commit_announced(c, log, done);
  runlog_sweep(log, swept, NULL);
  gc_add_upload(c, "a/x", "swept");
  gc_add_upload(c, "open/x", "open");
  gc_add_upload(c, "exp/T1/b/x", "nested");
  gc_add_upload(c, "elsewhere/x", "unknown");
  gc_lease(c, log);
  gc_must_collect(c);
  assert_false(has_upload(c, "swept") || has_upload(c, "done"));
  assert_true(has_upload(c, "open") && has_upload(c, "nested") && has_upload(c, "unknown"));
  gc_ahead = 30 * hour;
  gc_lease(c, log);
  gc_must_collect(c);
  assert_false(has_upload(c, "unknown"));
  assert_true(has_upload(c, "open") && has_upload(c, "nested"));
}

/* ---- dry, denied, cut ---- */

static void must_be_collected(gc_scene *c) {
  assert_true(gc_holds(c, "checkpoint-3", "model.pt") && gc_holds(c, "b", "model.pt"));
  assert_true(gc_holds(c, "notes", "mine.txt"));
  assert_false(gc_holds(c, "checkpoint-1", "model.pt") || gc_holds(c, "checkpoint-2", "model.pt"));
  assert_false(gc_holds(c, "a", "model.pt") || gc_holds(c, "c", "model.pt"));
  assert_false(store_holds(c->s, ".ckpt/lease-probe.old") || has_upload(c, "swept"));
}

static void a_dry_run_tells_all_and_writes_nothing(void **state) {
  gc_scene *c = *state;
  gc_make_mess(c);
  char *before = store_listing(c->s, "", false);
  c->dry = true;
  c->gate.deny_writes = true;
  gc_must_collect(c);
  size_t foretold = c->told;
  assert_int_equal(c->gate.writes, 0);
  char *after = store_listing(c->s, "", false);
  assert_string_equal(before, after);
  free(before);
  free(after);
  c->dry = c->gate.deny_writes = false;
  gc_must_collect(c);
  assert_int_equal(c->told, foretold);
  must_be_collected(c);
}

static void a_role_that_may_not_delete_is_told_so_and_loses_nothing(void **state) {
  gc_scene *c = *state;
  err e = {0};
  gc_make_mess(c);
  c->gate.deny_removals = true;
  assert_int_equal(gc_run_on(c, &c->gate.base, collect_log, &e), ERR_ACCESS);
  assert_true(c->failed > 0);
  assert_true(gc_holds(c, "checkpoint-3", "model.pt"));
  c->gate.deny_removals = false;
  gc_must_collect(c);
  must_be_collected(c);
}

/* 0 if call number `nth` never came. */
static bool cut_at(long nth, bool for_good) {
  gc_scene *c = gc_scene_new("mem");
  err e = {0};
  gc_make_mess(c);
  c->gate.fail_at = nth;
  c->gate.for_good = for_good;
  int rc = gc_run_on(c, &c->gate.base, collect_log, &e);
  bool reached = c->gate.calls >= nth;
  if (rc < 0) assert_true(*e.text);
  c->gate.fail_at = 0;
  assert_true(gc_holds(c, "checkpoint-3", "model.pt") && gc_holds(c, "b", "model.pt"));
  gc_ahead += 25 * hour; /* its own term is a dead writer's by then */
  gc_must_collect(c);
  must_be_collected(c);
  gc_scene_free(c);
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
  gc_scene *c = gc_scene_new("file");
  runlog *log = gc_begin(c, "", "one");
  uint64_t n = 0;
  runlog_attempt_begin(log, "a", &n, NULL);
  assert_int_equal(n, 2);
  gc_put_in(c, ".ckpt/staging/2", "model.pt");
  gc_must_collect(c);
  assert_true(gc_holds(c, ".ckpt/staging/2", "model.pt"));
  runlog_sweep(log, n, NULL);
  gc_put_in(c, "a", "of-somebody-else"); /* no manifest: it was never published */
  gc_must_collect(c);
  assert_false(gc_holds(c, ".ckpt/staging/2", "model.pt"));
  assert_true(gc_holds(c, "a", "of-somebody-else"));
  gc_scene_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_MEMORY(what_a_live_writer_is_at_stays_however_old_it_is),
      IN_MEMORY(a_writer_that_began_just_now_is_alive_without_a_lease),
      IN_MEMORY(what_a_dead_writer_left_goes_when_the_grace_is_over),
      IN_MEMORY(a_save_that_is_whole_is_committed_not_removed),
      IN_MEMORY(a_save_that_comes_late_is_told_as_such_before_and_after),
      IN_MEMORY(one_that_was_begun_before_the_newest_is_told_as_such),
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
  };
  return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
