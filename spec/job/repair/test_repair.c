/* What a repair does with writers, readers and other repairs around it, and when it is killed at
 * each of its calls. What it makes of which loss: spec/runner/repair_spec.lua. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commit/log/runlog_impl.h"
#include "commit/log/runlog_ruin.h"
#include "commit/removal.h"
#include "commit/settle.h"
#include "commit/staging.h"
#include "job/repair/repair.h"
#include "manifest_make.h"
#include "store_failing.h"
#include "world.h"

enum { SAVES = 3 };

static const char *const units[] = {"checkpoint-1", "checkpoint-2", "checkpoint-3"};

/* A log of three saves, whose writer goes on. */
static runlog *saved(world *w) {
  runlog *log = world_log(w, "", "one");
  for (int i = 0; i < SAVES; i++) {
    make_unit(w, units[i], MATCH_DIR, (unsigned)i + 1);
    save_unit(w, log, units[i], MATCH_DIR, i + 1);
  }
  return log;
}

static void lose(const world *w, uint64_t n) {
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_entry("", n, key, NULL), 0);
  if (!w || !w->env.store) abort();
  assert_int_equal(w->env.store->ops->remove(w->env.store, key, NULL), 0);
}

static int mend(store *s, err *e) {
  const repair how = {.store = s, .prefix = "", .take_over = true};
  return repair_log(&how, e);
}

static void all_are_there(const world *w, int count) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(w->env.store, "", &log, &e) < 0) fail_msg("%s", e.text);
  const runlog_state *st = runlog_view(log);
  assert_int_equal(st->commit_count, count);
  for (int i = 0; i < count; i++) {
    assert_string_equal(st->commits[i].unit, units[i]);
    assert_int_equal(st->commits[i].life, RUNLOG_LIVE);
    const char *why = restored_differs(w, "", &st->commits[i], units[i]);
    if (why) fail_msg("%s: %s", units[i], why);
  }
  runlog_close(log);
}

/* (f): it has read what was lost since, and finds its place free. */
static void a_writer_behind_a_lost_end_is_told_that_it_counts_for_nothing(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w);
    err e = {0};
    uint64_t n = 0, end = runlog_view(log)->next;
    for (uint64_t i = end - 2; i < end; i++) lose(w, i);
    lose(w, end - 3);
    assert_int_equal(mend(w->env.store, NULL), 0);
    /* Its ground is gone, so it would stop here; a ground that came back does not help it. */
    assert_int_equal(runlog_attempt_begin(log, "late", &n, &e), ERR_NOSTORE);
    char key[STORE_KEY_MAX];
    assert_int_equal(runlog_key_entry("", end - 1, key, NULL), 0);
    w->env.store->ops->put(w->env.store, key, "{}", 2, STORE_IF_ABSENT, NULL);
    assert_int_equal(runlog_attempt_begin(log, "late", &n, &e), ERR_FENCED);
    assert_non_null(strstr(e.text, "a repair of this log (epoch 1) was begun"));
    all_are_there(w, SAVES);
  }
  (void)state;
}

static void who_puts_while_it_reads_is_read_or_fenced(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w);
    runlog_ruin r = {0};
    char digest[HASH_HEX_MAX];
    uint64_t epoch = 0, n = 0;
    lose(w, 2);
    assert_int_equal(runlog_ruin_read(w->env.store, "", &r, NULL), 0);
    assert_int_equal(runlog_ruin_claim(&r, "n", &epoch, digest, NULL), 0);
    assert_int_equal(epoch, 1);
    assert_int_equal(runlog_attempt_begin(log, "late", &n, NULL), ERR_FENCED);
    /* It stands all the same, where the end would be put: all is read again. */
    assert_int_equal(runlog_ruin_close(&r, epoch, NULL), 1);
    runlog_ruin_free(&r);
    assert_int_equal(mend(w->env.store, NULL), 0);
    all_are_there(w, SAVES);
  }
  (void)state;
}

static void a_removal_that_was_begun_before_removes_nothing(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w);
    err e = {0};
    uint64_t first = runlog_view(log)->commits[0].n;
    assert_int_equal(runlog_drop(log, first, NULL, NULL, NULL, NULL, NULL), 0);
    assert_int_equal(runlog_delete(log, first, NULL, NULL, NULL), 0);
    uint64_t end = runlog_view(log)->next;
    lose(w, end - 1);
    lose(w, end - 2);
    lose(w, end - 3); /* so that something shows that the end is lost */
    assert_int_equal(mend(w->env.store, NULL), 0);
    all_are_there(w, SAVES);
    const runlog_commit *c = runlog_find_commit(runlog_view(log), first);
    assert_int_equal(settle_remove(w->env.store, log, c, NULL, &e), ERR_FENCED);
    all_are_there(w, SAVES);
  }
  (void)state;
}

/* What says that it was given up is lost: it is open again, and a run may go on with it. */
static void lose_its_end(const world *w, runlog *log, uint64_t attempt) {
  assert_int_equal(runlog_sweep(log, attempt, NULL), 0);
  uint64_t end = runlog_view(log)->next - 1;
  assert_int_equal(runlog_mark(log, runlog_view(log)->commits[0].n, true, "it does not load", NULL),
                   0);
  lose(w, end);
  assert_int_equal(mend(w->env.store, NULL), 0);
}

static void what_was_sent_stays_where_its_end_was_lost(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *log = saved(w);
    char dir[STORE_KEY_MAX], data[STORE_KEY_MAX + 20], with[STORE_KEY_MAX + 20];
    uint64_t n = 0;
    assert_int_equal(runlog_attempt_begin(log, "late", &n, NULL), 0);
    if (store_can(s, STORE_CAP_PUBLISH))
      assert_int_equal(runlog_key_staging(log, n, dir, NULL), 0);
    else
      assert_int_equal(runlog_key_dir(log, "late", dir, NULL), 0);
    snprintf(data, sizeof data, "%s/model.pt", dir);
    put_small_of(s, log, n, data);
    assert_int_equal(runlog_key_companions("", n, runlog_view(log)->term.n, dir, NULL), 0);
    snprintf(with, sizeof with, "%s/latest", dir);
    assert_int_equal(store_put_text(s, with, "with", STORE_IF_ABSENT), 0);
    lose_its_end(w, log, n);
    assert_int_equal(settle_clear(s, log, n, NULL, NULL), ERR_FENCED);
    assert_true(store_holds(s, data));
    assert_true(store_holds(s, with));
  }
  (void)state;
}

static bool finds_none(const void *ctx, const char *name, manifest_type *type, uint64_t *size) {
  (void)ctx, (void)name, (void)type, (void)size;
  return false;
}

static void what_was_staged_stays_where_its_end_was_lost(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *log = saved(w);
  char data[STORE_KEY_MAX + 20];
  staging st;
  bool again;
  uint64_t n = 0;
  const staging_files none = {NULL, finds_none};
  assert_int_equal(staging_begin(s, log, "late", &none, "", NULL, &st, &again, NULL), 0);
  snprintf(data, sizeof data, "%s/model.pt", st.key);
  assert_int_equal(store_put_text(s, data, "data", STORE_IF_ABSENT), 0);
  assert_int_equal(runlog_attempt_staged(log, "late", st.nonce, &n, NULL), 0);
  lose_its_end(w, log, n);
  assert_int_equal(settle_clear(s, log, n, NULL, NULL), ERR_FENCED);
  assert_true(store_holds(s, data));
  settle_staged(s, log, INT64_MAX, NULL);
  assert_true(store_holds(s, data));
}

static void a_reader_goes_on_in_the_new_log(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w), *reader = NULL;
    (void)log;
    assert_int_equal(runlog_open(w->env.store, "", &reader, NULL), 0);
    lose(w, 2);
    assert_int_equal(mend(w->env.store, NULL), 0);
    uint64_t first = runlog_view(reader)->commits[0].n;
    runlog *next = world_log(w, "", "two");
    assert_int_equal(runlog_drop(next, first, NULL, NULL, NULL, NULL, NULL), 0);
    assert_int_equal(runlog_refresh(reader, NULL), 0);
    assert_int_equal(runlog_find_commit(runlog_view(reader), first)->life, RUNLOG_DROPPED);
    runlog_close(reader);
  }
  (void)state;
}

/* A directory that is named by its attempt's number is that attempt's, wherever its entry was. */
static void a_second_save_of_a_name_keeps_its_number_behind_a_lost_end(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w), *fresh = NULL;
    err e = {0};
    save_unit(w, log, units[SAVES - 1], MATCH_DIR, SAVES);
    const runlog_state *st = runlog_view(log);
    uint64_t n = st->attempts[SAVES].n;
    assert_string_not_equal(st->attempts[SAVES].dir, units[SAVES - 1]);
    for (uint64_t i = n; i < st->next; i++) lose(w, i);
    lose(w, n - 2);
    assert_int_equal(mend(w->env.store, NULL), 0);
    if (runlog_open(w->env.store, "", &fresh, &e) < 0) fail_msg("%s", e.text);
    st = runlog_view(fresh);
    assert_int_equal(st->commit_count, SAVES + 1);
    assert_int_equal(st->commits[SAVES].attempt, n);
    assert_string_equal(st->commits[SAVES].unit, units[SAVES - 1]);
    runlog_close(fresh);
  }
  (void)state;
}

/* What they hold is the same, so their manifests' roots are. */
static void of_two_equal_saves_each_keeps_its_own(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w), *fresh = NULL;
    err e = {0};
    save_unit(w, log, units[SAVES - 1], MATCH_DIR, SAVES);
    save_unit(w, log, units[SAVES - 1], MATCH_DIR, SAVES);
    const runlog_state *st = runlog_view(log);
    lose(w, st->commits[SAVES].n);
    lose(w, st->attempts[SAVES + 1].n);
    assert_int_equal(mend(w->env.store, NULL), 0);
    if (runlog_open(w->env.store, "", &fresh, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(runlog_view(fresh)->commit_count, SAVES + 2);
    for (int i = 0; i < SAVES + 2; i++)
      assert_string_equal(runlog_view(fresh)->commits[i].dir, st->commits[i].dir);
    runlog_close(fresh);
  }
  (void)state;
}

static int64_t an_hour_ago(const io *io, io_clock which) {
  (void)io;
  int64_t now = world_io()->now(world_io(), which);
  return which == IO_WALL ? now - INT64_C(3600) * 1000000000 : now;
}

/* Its manifest says that it is older than what was committed before it. */
static void a_save_of_a_slow_clock_is_no_older_one(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = world_log(w, "", "one");
    io slow = *world_io();
    char key[STORE_KEY_MAX];
    slow.now = an_hour_ago;
    for (int i = 0; i < SAVES; i++) {
      make_unit(w, units[i], MATCH_DIR, (unsigned)i + 1);
      if (i == SAVES - 1) w->env.io = &slow;
      save_unit(w, log, units[i], MATCH_DIR, i + 1);
    }
    w->env.io = world_io();
    const runlog_commit *last = &runlog_view(log)->commits[SAVES - 1];
    lose(w, last->attempt);
    store *s = w->env.store;
    assert_int_equal(runlog_key_entry("", last->n, key, NULL), 0);
    assert_int_equal(s->ops->put(s, key, "{\"torn", 6, STORE_REPLACE, NULL), 0);
    assert_int_equal(mend(s, NULL), 0);
    all_are_there(w, SAVES);
  }
  (void)state;
}

/* The commits are made anew, and each of them may have been made before. */
static void saves_that_follow_newer_ones_stay_what_they_were(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = world_log(w, "", "one");
    char path[512];
    for (int i = 0; i < SAVES; i++) {
      const struct timespec made[2] = {{2000000000 - i, 0}, {2000000000 - i, 0}};
      make_unit(w, units[i], MATCH_DIR, (unsigned)i + 1);
      if (snprintf(path, sizeof path, "%s/%s/made", w->root, units[i]) >= (int)sizeof path) abort();
      FILE *file = fopen(path, "w");
      if (!file || fclose(file) != 0 || utimensat(AT_FDCWD, path, made, 0) < 0) abort();
      save_unit(w, log, units[i], MATCH_DIR, i + 1);
    }
    for (uint64_t i = 0; i < runlog_view(log)->next; i++) lose(w, i);
    assert_int_equal(mend(w->env.store, NULL), 0);
    all_are_there(w, SAVES);
  }
  (void)state;
}

/* They stand under the attempt's number, which no entry tells. */
static void what_was_saved_beside_it_is_found(void **state) {
  static const char *const with[] = {"train.log", NULL};
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = world_log(w, "", "one"), *fresh = NULL;
    char path[512];
    err e = {0};
    if (snprintf(path, sizeof path, "%s/train.log", w->root) >= (int)sizeof path) abort();
    FILE *file = fopen(path, "w");
    if (!file || fputs("loss 1\n", file) < 0 || fclose(file) != 0) abort();
    w->env.companions = with;
    make_unit(w, units[0], MATCH_DIR, 1);
    job *j = job_for(w, log, units[0], MATCH_DIR, 1, 0);
    const detect_unit facts = {.path = units[0], .kind = MATCH_DIR, .step = 1};
    const decision want = {.action = POLICY_SAVE};
    unsigned can = store_can(w->env.store, STORE_CAP_PUBLISH) ? PLAN_CAN_PUBLISH : 0;
    assert_int_equal(plan_save(&facts, &want, can | PLAN_HAS_COMPANIONS, &j->plan, NULL), 0);
    job_run(j);
    if (j->status < 0) fail_msg("%s", j->error.text);
    job_free(j);
    const runlog_commit *c = runlog_view(log)->commits;
    uint64_t attempt = c->attempt;
    assert_int_equal(c->companions.files, 1);
    lose(w, c->n);
    lose(w, attempt);
    assert_int_equal(mend(w->env.store, NULL), 0);
    if (runlog_open(w->env.store, "", &fresh, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(runlog_view(fresh)->commit_count, 1);
    assert_int_equal(runlog_view(fresh)->commits[0].attempt, attempt);
    assert_int_equal(runlog_view(fresh)->commits[0].companions.files, 1);
    runlog_close(fresh);
  }
  (void)state;
}

/* Nothing is appended to such a log, so there must be a way out. */
static void a_head_that_names_another_commit_is_mended(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved(w), *next = NULL;
    runlog_writer who = {.launch = "two", .world = 1};
    buf text;
    buf_init(&text, 4096);
    buf_fmt(&text, "{\"format\":1,\"reader\":1,\"commit\":{\"n\":%d,\"digest\":\"%032d\"}}",
            (int)runlog_view(log)->commits[SAVES - 1].n, 0);
    assert_int_equal(runlog_seal(&text, NULL), 0);
    store *s = w->env.store;
    assert_int_equal(s->ops->put(s, ".ckpt/head", text.data, text.len, STORE_REPLACE, NULL), 0);
    buf_free(&text);
    assert_int_equal(runlog_open(s, "", &next, NULL), 0);
    assert_int_equal(runlog_begin(next, runlog_view(log)->run_id, &who, false, NULL), ERR_CORRUPT);
    runlog_close(next);
    assert_int_equal(mend(s, NULL), 0);
    all_are_there(w, SAVES);
    assert_int_equal(runlog_open(s, "", &next, NULL), 0);
    assert_int_equal(runlog_begin(next, runlog_view(log)->run_id, &who, false, NULL), 0);
    runlog_close(next);
  }
  (void)state;
}

/* Whatever it had done by then, readers read, and a second one mends it. */
static void one_that_is_killed_at_any_call_is_mended_by_the_next(void **state) {
  for (int tail = 0; tail < 2; tail++)
    for (long nth = 1, more = 1; more; nth++) {
      world *w = world_next(NULL, world_io());
      for (; w && strcmp(w->env.store->ops->scheme, "mem") != 0; w = world_next(w, world_io()))
        continue;
      assert_non_null(w);
      runlog *log = saved(w);
      uint64_t end = runlog_view(log)->next;
      lose(w, tail ? end - 1 : 3);
      if (tail) lose(w, end - 2);
      store_failing *f = store_failing_new(w->env.store);
      store_failing_set(f,
                        (store_failing_plan){
                            .nth = nth, .code = ERR_CANCELED, .for_good = true, .done = nth % 2});
      mend(store_failing_store(f), NULL);
      more = store_failing_failed(f) > 0;
      store_failing_free(f);
      err e = {0};
      int rc = mend(w->env.store, &e);
      if (rc < 0) fail_msg("killed at call %ld: %s", nth, e.text);
      all_are_there(w, SAVES);
      world_log(w, "", "two");
      assert_int_equal(mend(w->env.store, &e), 0);
      all_are_there(w, SAVES);
      while ((w = world_next(w, world_io()))) continue;
    }
  (void)state;
}

static void what_is_no_epoch_is_refused(void **state) {
  runlog_epoch out;
  static const char *const wrong[] = {"", "{", "[]", "{\"format\":1,\"reader\":9,\"epoch\":1}",
                                      ("{\"format\":1,\"reader\":2,\"epoch\":-1,\"host\":\"h\","
                                       "\"pid\":1,\"time_ns\":1,\"nonce\":\"n\"}")};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_true(runlog_epoch_parse(wrong[i], strlen(wrong[i]), "it", &out, NULL) < 0);
  static const char good[] = "{\"format\":1,\"reader\":2,\"epoch\":3,\"host\":\"h\",\"pid\":1,"
                             "\"time_ns\":1,\"nonce\":\"n\"}";
  assert_int_equal(runlog_epoch_parse(good, strlen(good), "it", &out, NULL), 0);
  assert_int_equal(out.epoch, 3);
  (void)state;
}

/* A second handle has epochs of its own, which name where the older entries stand. */
static void a_handle_on_a_repaired_log_is_copied(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    saved(w);
    const char *nonce = NULL;
    lose(w, 2);
    assert_int_equal(mend(w->env.store, NULL), 0);
    runlog *copy = NULL, *log = world_log(w, "", "two");
    assert_int_equal(runlog_copy(log, &copy, NULL), 0);
    uint64_t first = runlog_view(copy)->commits[0].n;
    assert_int_equal(runlog_nonce(copy, first, &nonce, NULL), 0);
    runlog_close(copy);
    assert_int_equal(runlog_refresh(log, NULL), 0);
    all_are_there(w, SAVES);
  }
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_writer_behind_a_lost_end_is_told_that_it_counts_for_nothing),
      cmocka_unit_test(who_puts_while_it_reads_is_read_or_fenced),
      cmocka_unit_test(a_removal_that_was_begun_before_removes_nothing),
      cmocka_unit_test(what_was_sent_stays_where_its_end_was_lost),
      IN_A_FILE_WORLD(what_was_staged_stays_where_its_end_was_lost),
      cmocka_unit_test(a_reader_goes_on_in_the_new_log),
      cmocka_unit_test(a_second_save_of_a_name_keeps_its_number_behind_a_lost_end),
      cmocka_unit_test(of_two_equal_saves_each_keeps_its_own),
      cmocka_unit_test(a_save_of_a_slow_clock_is_no_older_one),
      cmocka_unit_test(saves_that_follow_newer_ones_stay_what_they_were),
      cmocka_unit_test(what_was_saved_beside_it_is_found),
      cmocka_unit_test(a_head_that_names_another_commit_is_mended),
      cmocka_unit_test(one_that_is_killed_at_any_call_is_mended_by_the_next),
      cmocka_unit_test(a_handle_on_a_repaired_log_is_copied),
      cmocka_unit_test(what_is_no_epoch_is_refused),
  };
  return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
