/* A save that stands whole before its attempt is announced: what failures, deaths and other terms
 * make of it, at each point. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/settle.h"
#include "commit/staging.h"
#include "store_failing.h"
#include "tmpdir.h"
#include "world.h"

static void must_be_clean(const world *w) {
  store *s = world_store(w);
  const char *litter = store_litter(s, "");
  if (litter) fail_msg("in the store: %s", litter);
  store_close(s);
}

/* One try of checkpoint-1; what is kept of it for the next one goes from job to job. */
static job *try_once(world *w, runlog *log, const job *before, bool keep) {
  job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, 0);
  j->keep = keep;
  if (before) {
    j->attempt = before->attempt;
    j->attempt_shape = before->attempt_shape;
    memcpy(j->staging, before->staging, sizeof j->staging);
  }
  job_run(j);
  return j;
}

/* A failure at each call of the store, which may have been done all the same. */
static void fail_at_each_call(int code, bool done, bool keep, bool changed) {
  for (long nth = 1, more = 1; more; nth++) {
    world *w = world_new("file", world_io());
    store_failing *failing = store_failing_new(w->place.s);
    w->env.store = store_failing_store(failing);
    runlog *log = world_begin(w->env.store, "", "one");
    make_unit(w, "checkpoint-1", MATCH_DIR, 1);
    store_failing_set(failing, (store_failing_plan){.nth = nth, .code = code, .done = done});
    job *first = try_once(w, log, NULL, keep);
    more = store_failing_failed(failing) > 0;
    store_failing_set(failing, (store_failing_plan){0});
    assert_int_equal(runlog_refresh(log, NULL), 0);
    bool announced = runlog_view(log)->attempt_count > 0;
    if (first->status == 0 && more) { /* the failure was of something that can be done without */
      job_free(first);
      runlog_close(log);
      store_failing_free(failing);
      world_free(w);
      continue;
    }
    if (more) assert_int_equal(first->status, code);
    if (changed) make_unit(w, "checkpoint-1", MATCH_DIR, 9);
    if (more) {
      job *second = try_once(w, log, first, keep);
      if (second->status != 0) fail_msg("call %ld: %s", nth, second->error.text);
      job_free(second);
      const runlog_state *st = runlog_view(log);
      assert_int_equal(st->commit_count, 1);
      /* What fails before it is announced costs no name; what is kept for another try, none either.
       */
      if (!announced || (keep && !changed)) {
        assert_int_equal(st->attempt_count, 1);
        assert_string_equal(st->commits[0].dir, "checkpoint-1");
      }
      if (*first->staging && !announced) assert_string_equal(st->attempts[0].nonce, first->staging);
      must_restore(w, "", &st->commits[0], "checkpoint-1");
    }
    must_be_clean(w);
    job_free(first);
    runlog_close(log);
    store_failing_free(failing);
    world_free(w);
  }
}

static void a_save_that_fails_before_it_is_announced_costs_no_name(void **state) {
  for (int done = 0; done < 2; done++) fail_at_each_call(ERR_NOSPACE, done, false, false);
}

static void the_next_try_goes_on_in_the_same_staging(void **state) {
  for (int done = 0; done < 2; done++) fail_at_each_call(ERR_IO, done, true, false);
}

static void what_changed_between_two_tries_is_staged_again(void **state) {
  for (int done = 0; done < 2; done++) fail_at_each_call(ERR_IO, done, true, true);
}

/* Nobody saves it any more, so nobody goes on with what was kept for that. */
static void vanish_after_call(long nth, bool done, long *more) {
  world *w = world_new("file", world_io());
  store_failing *failing = store_failing_new(w->place.s);
  w->env.store = store_failing_store(failing);
  runlog *log = world_begin(w->env.store, "", "one");
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  store_failing_set(failing, (store_failing_plan){.nth = nth, .code = ERR_IO, .done = done});
  job *first = try_once(w, log, NULL, true);
  *more = store_failing_failed(failing) > 0;
  store_failing_set(failing, (store_failing_plan){0});
  if (*more && first->status != 0) {
    remove_unit(w, "checkpoint-1", MATCH_DIR);
    job *second = try_once(w, log, first, true);
    assert_int_equal(second->status, ERR_RETIRED);
    assert_int_equal(second->attempt, 0);
    assert_string_equal(second->staging, "");
    const runlog_state *st = runlog_view(log);
    for (size_t i = 0; i < st->attempt_count; i++)
      assert_int_not_equal(st->attempts[i].fate, RUNLOG_OPEN);
    if (st->commit_count == 0) must_be_clean(w);
    job_free(second);
  }
  job_free(first);
  runlog_close(log);
  store_failing_free(failing);
  world_free(w);
}

static void what_vanished_between_two_tries_is_removed(void **state) {
  for (int done = 0; done < 2; done++)
    for (long nth = 1, more = 1; more; nth++) vanish_after_call(nth, done, &more);
}

/* ---- another term ---- */

static void stop_it(void *ctx) {
  atomic_store(&((job *)ctx)->cancel, JOB_LEAVE);
}

/* A writer that dies between its attempt and the rename: its log says who it was. */
static void announce_and_die(world *w, const char *launch) {
  store_failing *failing = store_failing_new(w->place.s);
  runlog *log = world_begin(w->place.s, "", launch);
  bool there = false;
  store *before = w->env.store;
  runlog_close(log);
  w->env.store = store_failing_store(failing);
  for (long nth = 1; !there; nth++) {
    log = world_begin(w->place.s, "", launch);
    runlog_close(log);
    assert_int_equal(runlog_open(w->env.store, "", &log, NULL), 0);
    runlog_claim(log, runlog_view(log)->term.n);
    store_failing_set(failing, (store_failing_plan){.nth = nth, .code = ERR_IO, .for_good = true});
    job *j = try_once(w, log, NULL, true);
    assert_int_equal(j->status, ERR_IO);
    store_failing_set(failing, (store_failing_plan){0});
    assert_int_equal(runlog_refresh(log, NULL), 0);
    there = runlog_view(log)->attempt_count > 0;
    job_free(j);
    runlog_close(log);
  }
  w->env.store = before;
  store_failing_free(failing);
}

static void what_stands_whole_is_committed_under_its_own_name(void **state) {
  world *w = *state;
  store *s = w->place.s;
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  announce_and_die(w, "one");
  /* Adopted, and then this one dies, too: its directory keeps the name of the first. */
  runlog *log = world_begin(s, "", "two");
  uint64_t n = runlog_view(log)->attempts[0].n;
  assert_int_equal(runlog_adopt(log, n, NULL), 0);
  runlog_close(log);
  log = world_begin(s, "", "three");
  assert_int_equal(settle_attempts(s, log, NULL, NULL), 0);
  assert_int_equal(runlog_view(log)->commit_count, 1);
  assert_string_equal(runlog_view(log)->commits[0].dir, "checkpoint-1");
  must_restore(w, "", &runlog_view(log)->commits[0], "checkpoint-1");
  must_be_clean(w);
  runlog_close(log);
}

static void what_was_overtaken_is_removed_with_its_staging(void **state) {
  world *w = *state;
  store *s = w->place.s;
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  make_unit(w, "checkpoint-2", MATCH_DIR, 2);
  announce_and_die(w, "one");
  runlog *log = world_begin(s, "", "two");
  save_unit(w, log, "checkpoint-2", MATCH_DIR, 2);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_SWEPT);
  must_be_clean(w);
  runlog_close(log);
}

/* Somebody took its manifest away: nothing says any more that it is whole. */
static void what_lacks_its_manifest_is_given_up(void **state) {
  world *w = *state;
  store *s = w->place.s;
  staging st;
  char key[STORE_KEY_MAX + 40];
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  announce_and_die(w, "one");
  runlog *log = world_begin(s, "", "two");
  const char *nonce = runlog_view(log)->attempts[0].nonce;
  assert_int_equal(staging_find(s, log, nonce, &st, NULL), 1);
  snprintf(key, sizeof key, "%s/%s", st.key, MANIFEST_NAME);
  assert_int_equal(s->ops->remove(s, key, NULL), 0);
  assert_int_equal(settle_attempts(s, log, NULL, NULL), 0);
  assert_int_equal(runlog_view(log)->commit_count, 0);
  settle_older(s, log, NULL);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_SWEPT);
  must_be_clean(w);
  runlog_close(log);
}

/* Of a save that was stopped at this file. */
static void stage_and_die(world *w, const char *unit, const char *launch) {
  runlog *log = world_begin(w->env.store, "", launch);
  job *j = job_for(w, log, unit, MATCH_DIR, 1, 0);
  w->env.io = hooked_io(world_io(), "watched/checkpoint-", 4, stop_it, j);
  job_run(j);
  w->env.io = world_io();
  assert_int_equal(j->status, ERR_CANCELED);
  job_free(j);
  runlog_close(log);
}

static void what_was_staged_of_another_unit_waits_for_the_grace(void **state) {
  world *w = *state;
  store *s = w->place.s;
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  make_unit(w, "checkpoint-2", MATCH_DIR, 1);
  w->env.grace_ns = INT64_MAX;
  stage_and_die(w, "checkpoint-1", "one");
  runlog *log = world_begin(s, "", "two");
  save_unit(w, log, "checkpoint-2", MATCH_DIR, 2);
  assert_non_null(store_litter(s, ""));
  settle_staged(s, log, (int64_t)3600 * 1000000000, NULL);
  assert_non_null(store_litter(s, ""));
  settle_staged(s, log, 0, NULL);
  must_be_clean(w);
  runlog_close(log);
}

/* A removal that was cut short behind its rename is finished by who finds it. */
static void what_is_being_removed_is_removed_by_the_next(void **state) {
  world *w = *state;
  store *s = w->place.s;
  static const char key[] = ".ckpt/staging/gone.1.0123456789abcdef0123456789abcdef/model.bin";
  runlog *log = world_begin(s, "", "one");
  assert_int_equal(store_put_text(s, key, "x", STORE_IF_ABSENT), 0);
  assert_int_equal(settle_attempts(s, log, NULL, NULL), 0);
  must_be_clean(w);
  runlog_close(log);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_save_that_fails_before_it_is_announced_costs_no_name),
      cmocka_unit_test(the_next_try_goes_on_in_the_same_staging),
      cmocka_unit_test(what_changed_between_two_tries_is_staged_again),
      cmocka_unit_test(what_vanished_between_two_tries_is_removed),
      IN_A_FILE_WORLD(what_stands_whole_is_committed_under_its_own_name),
      IN_A_FILE_WORLD(what_was_overtaken_is_removed_with_its_staging),
      IN_A_FILE_WORLD(what_lacks_its_manifest_is_given_up),
      IN_A_FILE_WORLD(what_was_staged_of_another_unit_waits_for_the_grace),
      IN_A_FILE_WORLD(what_is_being_removed_is_removed_by_the_next),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
