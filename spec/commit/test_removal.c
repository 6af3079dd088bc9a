/* What a removal takes, asked of it directly; with settling, collecting and kills around it:
 * test_settle.c, test_collect.c, spec/crash. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "job/keep/collect.h"
#include "commit/removal.h"
#include "manifest_make.h"
#include "store_failing.h"
#include "store_place.h"
#include "thinned.h"
#include "world.h"

static void its_keys_have_the_attempts_id_below_the_logs_place(void **state) {
  world *w = *state;
  static const char *const prefixes[] = {"", "exp/T1"};
  for (int i = 0; i < 2; i++) {
    runlog *log = world_begin(w->env.store, prefixes[i], "one");
    char id[RUNLOG_NONCE_MAX], key[STORE_KEY_MAX], expected[STORE_KEY_MAX];
    uint64_t n = 0;
    assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), 0);
    assert_int_equal(runlog_attempt_id(log, n, id, NULL), 0);
    assert_string_equal(id, runlog_find_attempt(runlog_view(log), n)->nonce);
    static const char *const kinds[] = {REMOVAL_CLEARED, REMOVAL_CLEARING, REMOVAL_GONE};
    for (int k = 0; k < 3; k++) {
      assert_int_equal(removal_key(log, kinds[k], id, key, NULL), 0);
      snprintf(expected, sizeof expected, "%s%s%s%s", prefixes[i], i ? "/" : "", kinds[k], id);
      assert_string_equal(key, expected);
    }
    runlog_close(log);
  }
}

static void seal(store *s, runlog *log, uint64_t n, manifest *m, bool marked) {
  char key[STORE_KEY_MAX];
  buf text;
  const char *dir = runlog_find_attempt(runlog_view(log), n)->dir;
  buf_init(&text, 1 << 20);
  if (marked)
    make_small_of(m, log, n);
  else
    make_small(m, dir, n);
  snprintf(key, sizeof key, "%s/model.pt", dir);
  if (marked)
    put_small_of(s, log, n, key);
  else
    assert_int_equal(store_put_text(s, key, "data", STORE_IF_ABSENT), 0);
  assert_int_equal(manifest_print(m, &text, NULL), 0);
  snprintf(key, sizeof key, "%s/%s", dir, MANIFEST_NAME);
  assert_int_equal(store_put_marked(s, key, text.data, text.len, STORE_IF_ABSENT, m->attempt, NULL),
                   0);
  buf_free(&text);
}

static void nothing_goes_that_the_log_has_not_let_go(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *log = world_log(w, "", "one");
    manifest m;
    uint64_t n = 0;
    assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), 0);
    seal(s, log, n, &m, true);
    assert_int_equal(removal_clear(s, log, n, false, NULL, NULL, NULL), ERR_INVAL);
    assert_int_equal(runlog_commit_attempt(log, n, &m, NULL, NULL, NULL), 0);
    assert_int_equal(removal_clear(s, log, n, false, NULL, NULL, NULL), ERR_INVAL);
    assert_int_equal(removal_clear(s, log, n + 7, false, NULL, NULL, NULL), ERR_INVAL);
    store_must_list(s, "a", false, "a/" MANIFEST_NAME " a/model.pt");
    store_must_list(s, ".ckpt/cleared", false, "");
    manifest_free(&m);
  }
}

static int note_left(void *ctx, const runlog *log, const collected *what) {
  char *all = ctx;
  snprintf(all + strlen(all), 200 - strlen(all), "%s %s ", what->what, what->name);
  return 0;
}

/* Its objects have no mark and its manifest does not say whose it is: what a swept save of that
 * version had sent, and what anybody put there, cannot be told apart. */
static void what_1_0_sent_for_a_swept_save_is_only_named(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *log = world_log(w, "", "one");
    manifest m;
    removal_found f;
    uint64_t n = 0;
    assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), 0);
    seal(s, log, n, &m, false);
    assert_null(m.attempt);
    assert_int_equal(runlog_sweep(log, n, NULL), 0);
    for (int again = 0; again < 2; again++) {
      assert_int_equal(removal_clear(s, log, n, false, NULL, &f, NULL), 0);
      assert_int_equal(f.cleared, again);
      assert_int_equal(f.objects, 0);
      assert_int_equal(f.others, 2);
      assert_string_equal(f.other, "a/" MANIFEST_NAME);
      store_must_list(s, "a", false, "a/" MANIFEST_NAME " a/model.pt");
    }
    char told[200] = "";
    collect c = {.store = s, .log = log, .told = note_left, .ctx = told};
    assert_int_equal(collect_log(&c, NULL), 0);
    assert_string_equal(told, "left a ");
    store_must_list(s, "a", false, "a/" MANIFEST_NAME " a/model.pt");
    manifest_free(&m);
  }
}

static void a_dry_one_counts_what_would_go_and_writes_nothing(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *log = world_log(w, "", "one");
    manifest m;
    removal_found f;
    uint64_t n = 0;
    assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), 0);
    seal(s, log, n, &m, true);
    assert_int_equal(store_put_text(s, "a/theirs", "x", STORE_IF_ABSENT), 0);
    assert_int_equal(runlog_sweep(log, n, NULL), 0);
    for (int dry = 1; dry >= 0; dry--) {
      assert_int_equal(removal_clear(s, log, n, dry, NULL, &f, NULL), 0);
      assert_int_equal(f.objects, 2);
      assert_int_equal(f.others, 1);
      if (!dry) break;
      store_must_list(s, "a", false, "a/" MANIFEST_NAME " a/model.pt a/theirs");
      store_must_list(s, ".ckpt/cleared", false, "");
    }
    store_must_list(s, "a", false, "a/theirs");
    manifest_free(&m);
  }
}

/* Its manifest came behind the first removal, by a rank that had not read that the save was given up;
 * then the entry that said so was lost. */
static bool clears_after_a_failure(world *w, long nth) {
  store *s = w->env.store;
  store_failing *f = store_failing_new(s);
  runlog *log = world_begin(store_failing_store(f), "", "one");
  char id[RUNLOG_NONCE_MAX], key[STORE_KEY_MAX], data[100] = "data";
  uint64_t n = 0, commit = 0;
  manifest m;
  assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), 0);
  assert_int_equal(runlog_attempt_id(log, n, id, NULL), 0);
  assert_int_equal(removal_key(log, REMOVAL_CLEARING, id, key, NULL), 0);
  assert_int_equal(store_put_text(s, key, "{}", STORE_IF_ABSENT), 0);
  seal(s, log, n, &m, true);
  /* Without the mark only the manifest tells whose it is. */
  assert_int_equal(s->ops->put(s, "a/model.pt", data, sizeof data, STORE_REPLACE, NULL), 0);
  assert_int_equal(runlog_commit_attempt(log, n, &m, NULL, &commit, NULL), 0);
  assert_int_equal(runlog_drop(log, commit, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_delete(log, commit, NULL, NULL, NULL), 0);
  store_failing_set(f, (store_failing_plan){.nth = nth, .code = ERR_IO, .for_good = true});
  bool failed = removal_clear(store_failing_store(f), log, n, false, NULL, NULL, NULL) < 0;
  store_failing_set(f, (store_failing_plan){0});
  assert_int_equal(removal_clear(store_failing_store(f), log, n, false, NULL, NULL, NULL), 0);
  store_must_list(s, "a", false, "");
  manifest_free(&m);
  runlog_close(log);
  store_failing_free(f);
  return failed;
}

static void it_goes_on_by_a_manifest_that_came_after_it_was_begun(void **state) {
  bool failed = true;
  for (long nth = 1; failed; nth++) {
    failed = false;
    for (world *w = NULL; (w = world_next(w, world_io()));)
      failed |= clears_after_a_failure(w, nth);
  }
  (void)state;
}

/* A note that says what is gone of it is the checkpoint's own; another's stays, as all does. */
static void a_thin_checkpoint_goes_with_its_note(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *log = world_log(w, "", "one");
    removal_found f;
    for (int i = 0; i < 2; i++) {
      const uint64_t n = save_numbered(w, log, i);
      thin_whole(s, log, n, "shard*");
      if (i == 1)
        assert_int_equal(
            s->ops->put(s, "checkpoint-1/" MANIFEST_THIN_NAME, "{}", 2, STORE_REPLACE, NULL), 0);
      assert_int_equal(runlog_drop(log, n, NULL, NULL, NULL, NULL, NULL), 0);
      assert_int_equal(runlog_delete(log, n, NULL, NULL, NULL), 0);
      const uint64_t attempt = runlog_find_commit(runlog_view(log), n)->attempt;
      assert_int_equal(removal_clear(s, log, attempt, false, NULL, &f, NULL), 0);
      assert_int_equal(f.others, i);
    }
    store_must_list(s, "checkpoint-0", false, "");
    store_must_list(s, "checkpoint-1", false, "checkpoint-1/" MANIFEST_THIN_NAME);
  }
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_MEM_WORLD(its_keys_have_the_attempts_id_below_the_logs_place),
      cmocka_unit_test(nothing_goes_that_the_log_has_not_let_go),
      cmocka_unit_test(what_1_0_sent_for_a_swept_save_is_only_named),
      cmocka_unit_test(a_dry_one_counts_what_would_go_and_writes_nothing),
      cmocka_unit_test(it_goes_on_by_a_manifest_that_came_after_it_was_begun),
      cmocka_unit_test(a_thin_checkpoint_goes_with_its_note),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
