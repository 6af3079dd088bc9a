/* Which entry had which number, where what stands there does not tell: one was lost, and somebody who
 * had not read it has put another one in its place, or several were, whose saves are whole. */
#include "with_cmocka.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "commit/pins.h"
#include "job/repair/repair.h"
#include "store_failing.h"
#include "world.h"

enum { SAVES = 3, FIRST_MARK = 4, SECOND = 5, SECOND_MARK = 6, END = 10 };

static const char *const units[] = {"checkpoint-1", "checkpoint-2", "checkpoint-3"};
static const uint64_t commits[] = {3, 7, 9};

static void text_of(const world *w, uint64_t n, buf *text) {
  char key[STORE_KEY_MAX];
  store *s = w->env.store;
  if (!s || runlog_key_entry("", n, key, NULL) < 0) abort();
  buf_init(text, 1 << 20);
  assert_int_equal(s->ops->get(s, key, text, NULL), 0);
}

static json_t *entry_of(const world *w, uint64_t n) {
  buf text;
  text_of(w, n, &text);
  json_t *entry = json_loadb(text.data, text.len, 0, NULL);
  buf_free(&text);
  if (!entry) abort();
  return entry;
}

static void lose(const world *w, uint64_t n) {
  char key[STORE_KEY_MAX];
  store *s = w->env.store;
  if (!s || runlog_key_entry("", n, key, NULL) < 0) abort();
  assert_int_equal(s->ops->remove(s, key, NULL), 0);
}

/* Puts it there, by a writer who has read the one that stands before it. Releases it. */
static void put(const world *w, json_t *entry, uint64_t n) {
  char key[STORE_KEY_MAX], hex[HASH_HEX_MAX];
  store *s = w->env.store;
  digest before;
  buf text;
  if (!s || runlog_key_entry("", n, key, NULL) < 0) abort();
  text_of(w, n - 1, &text);
  assert_int_equal(runlog_digest(text.data, text.len, &before, NULL), 0);
  buf_free(&text);
  digest_hex(&before, hex);
  json_object_del(entry, "sum");
  json_object_set_new(entry, "n", json_integer((json_int_t)n));
  json_object_set_new(entry, "prev", json_string(hex));
  char *printed = json_dumps(entry, JSON_COMPACT | JSON_SORT_KEYS);
  if (!printed) abort();
  buf_init(&text, 1 << 20);
  buf_str(&text, printed);
  assert_int_equal(runlog_seal(&text, NULL), 0);
  assert_int_equal(s->ops->put(s, key, text.data, text.len, STORE_IF_ABSENT, NULL), 0);
  buf_free(&text);
  free(printed);
  json_decref(entry);
}

static void rename_nonce(json_t *entry) {
  json_object_set_new(entry, "nonce", json_string("0123456789abcdef0123456789abcdef"));
}

/* Moves the last three entries one place on: a mark comes between the second save and its commit. */
static void make_room(const world *w) {
  json_t *mark = entry_of(w, FIRST_MARK), *rest[END - SECOND_MARK - 1];
  for (uint64_t i = 0; i < END - SECOND_MARK - 1; i++) {
    rest[i] = entry_of(w, SECOND_MARK + i);
    lose(w, SECOND_MARK + i);
  }
  rename_nonce(mark);
  put(w, mark, SECOND_MARK);
  json_object_set_new(rest[2], "attempt", json_integer(END - 2));
  for (uint64_t i = 0; i < END - SECOND_MARK - 1; i++) put(w, rest[i], SECOND_MARK + 1 + i);
}

/* 0 run, 1 term, 2 and 3 the first save, 4 a mark, 5 the second, 6 a mark, 7 its commit, 8 and 9 the
 * third. */
static void saved(world *w) {
  runlog *log = world_log(w, "", "one"), *whole = NULL;
  store *s = w->env.store;
  for (int i = 0; i < SAVES; i++) {
    make_unit(w, units[i], MATCH_DIR, (unsigned)i + 1);
    save_unit(w, log, units[i], MATCH_DIR, i + 1);
    if (i == 0) assert_int_equal(runlog_mark(log, 3, true, "it does not load", NULL), 0);
  }
  assert_int_equal(runlog_view(log)->next, END - 1);
  make_room(w);
  s->ops->remove(s, ".ckpt/head", NULL);
  assert_int_equal(runlog_open(s, "", &whole, NULL), 0);
  assert_int_equal(runlog_check_damage(whole, NULL), 0);
  assert_int_equal(runlog_view(whole)->next, END);
  assert_int_equal(runlog_view(whole)->commit_count, SAVES);
  runlog_close(whole);
}

/* It stands in the place of the first mark, and what stood behind that is lost, too. Releases it. */
static void put_late(const world *w, json_t *late) {
  rename_nonce(late);
  lose(w, FIRST_MARK);
  lose(w, SECOND);
  put(w, late, FIRST_MARK);
}

static void mend(const world *w) {
  err e = {0};
  const repair how = {.store = w->env.store, .prefix = "", .take_over = true};
  if (repair_log(&how, &e) < 0) fail_msg("%s", e.text);
}

static void all_are_there(const world *w) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(w->env.store, "", &log, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(runlog_view(log)->commit_count, SAVES);
  for (int i = 0; i < SAVES; i++) {
    const runlog_commit *c = &runlog_view(log)->commits[i];
    const char *why = restored_differs(w, "", c, units[i]);
    assert_string_equal(c->dir, units[i]);
    assert_int_equal(c->life, RUNLOG_LIVE);
    assert_int_equal(c->n, commits[i]);
    if (why) fail_msg("%s: %s", units[i], why);
  }
  runlog_close(log);
}

/* The commit tells: it has the digest of the whole manifest, which names the save that it is of. */
static void a_commit_is_not_given_to_a_save_that_got_its_number(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    saved(w);
    json_t *other = entry_of(w, SECOND);
    rename_nonce(other);
    json_object_set_new(other, "unit", json_string("other"));
    json_object_set_new(other, "dir", json_string("other"));
    lose(w, SECOND);
    lose(w, SECOND_MARK);
    put(w, other, SECOND);
    mend(w);
    all_are_there(w);
  }
  (void)state;
}

/* A request for it was under way for long, and its writer has asked again since. */
static void of_two_that_announce_a_directory_the_one_that_is_there_counts(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    saved(w);
    put_late(w, entry_of(w, SECOND));
    mend(w);
    all_are_there(w);
  }
  (void)state;
}

static void a_term_that_came_late_fences_nobody(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    saved(w);
    json_t *late = entry_of(w, 1);
    json_object_set_new(late, "term", json_integer(FIRST_MARK));
    put_late(w, late);
    mend(w);
    all_are_there(w);
  }
  (void)state;
}

/* What others have built a commit on stays: that it counts for nothing would take more with it. */
static void one_on_which_a_commit_was_built_stays(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = NULL;
    saved(w);
    json_t *term = entry_of(w, 1), *attempt = entry_of(w, 8), *commit = entry_of(w, 9);
    for (uint64_t n = FIRST_MARK; n < END - 1; n++) lose(w, n);
    json_object_set_new(term, "term", json_integer(FIRST_MARK));
    json_object_set_new(attempt, "term", json_integer(FIRST_MARK));
    json_object_set_new(commit, "term", json_integer(FIRST_MARK));
    json_object_set_new(commit, "attempt", json_integer(FIRST_MARK + 1));
    rename_nonce(term);
    put(w, term, FIRST_MARK);
    put(w, attempt, FIRST_MARK + 1);
    put(w, commit, FIRST_MARK + 2);
    mend(w);
    assert_int_equal(runlog_open(w->env.store, "", &log, NULL), 0);
    const runlog_commit *c = runlog_find_commit(runlog_view(log), FIRST_MARK + 2);
    assert_non_null(c);
    assert_string_equal(c->dir, units[SAVES - 1]);
    runlog_close(log);
  }
  (void)state;
}

/* The second save is given up by a writer who has not read its commit. */
static void give_up_late(world *w) {
  saved(w);
  json_t *late = entry_of(w, FIRST_MARK);
  rename_nonce(late);
  json_object_del(late, "commit");
  json_object_del(late, "reason");
  json_object_set_new(late, "type", json_string("sweep"));
  json_object_set_new(late, "attempt", json_integer(SECOND));
  json_object_set_new(late, "term", json_integer(1));
  lose(w, SECOND_MARK);
  put(w, late, SECOND_MARK);
}

static const runlog_commit *commit_in(const runlog *log, const char *dir) {
  for (size_t i = 0; i < runlog_view(log)->commit_count; i++)
    if (strcmp(runlog_view(log)->commits[i].dir, dir) == 0) return &runlog_view(log)->commits[i];
  return NULL;
}

static runlog_life life_of_second(const world *w) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(w->env.store, "", &log, &e) < 0) fail_msg("%s", e.text);
  const runlog_commit *second = commit_in(log, units[1]);
  runlog_life life = second ? second->life : RUNLOG_DELETED;
  runlog_close(log);
  return life;
}

static void a_save_that_was_given_up_late_is_committed_still(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    give_up_late(w);
    lose(w, commits[1]);
    mend(w);
    assert_int_equal(life_of_second(w), RUNLOG_LIVE);
  }
  (void)state;
}

static void one_of_which_the_removal_was_begun_is_given_up(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    char key[STORE_KEY_MAX];
    give_up_late(w);
    json_t *attempt = entry_of(w, SECOND);
    const char *nonce = json_string_value(json_object_get(attempt, "nonce"));
    snprintf(key, sizeof key, ".ckpt/clearing/%s", nonce ? nonce : "");
    json_decref(attempt);
    assert_int_equal(w->env.store->ops->put(w->env.store, key, "", 0, STORE_IF_ABSENT, NULL), 0);
    lose(w, commits[1]);
    mend(w);
    assert_int_equal(life_of_second(w), RUNLOG_DELETED);
  }
  (void)state;
}

/* 2 and 3 the first save, 4 and 5 the second, 6 and 7 the third. */
static runlog *saved_in_a_row(world *w) {
  runlog *log = world_log(w, "", "one");
  for (int i = 0; i < SAVES; i++) {
    make_unit(w, units[i], MATCH_DIR, (unsigned)i + 1);
    save_unit(w, log, units[i], MATCH_DIR, i + 1);
  }
  assert_int_equal(runlog_view(log)->next, 2 * SAVES + 2);
  w->env.store->ops->remove(w->env.store, ".ckpt/head", NULL);
  return log;
}

/* Both were under way at a time, and the second one was there first. */
static void a_pinned_save_keeps_its_number_whatever_else_was_lost(void **state) {
  enum { PINNED = 4 };
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = NULL;
    char id[PINS_ID_MAX] = "";
    const pin_request hold = {.dir = units[1], .by = "user", .commit = PINNED};
    saved_in_a_row(w);
    assert_int_equal(pins_put(w->env.store, "", &hold, id, false, NULL), 0);
    for (uint64_t n = 2; n <= 5; n++) lose(w, n);
    mend(w);
    assert_int_equal(runlog_open(w->env.store, "", &log, NULL), 0);
    const runlog_commit *pinned = commit_in(log, units[1]);
    assert_non_null(pinned);
    assert_int_equal(pinned->n, PINNED);
    runlog_close(log);
  }
  (void)state;
}

/* The first save's commit was marked bad, and nothing but its number tells which one that was. */
static void a_mark_is_not_given_to_a_save_that_may_be_another(void **state) {
  enum { FIRST_COMMIT = 4, MARK = 6 };
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = saved_in_a_row(w);
    assert_int_equal(runlog_mark(log, 3, true, "it does not load", NULL), 0);
    json_t *begun = entry_of(w, 4), *mark = entry_of(w, 2 * SAVES + 2);
    for (uint64_t n = MARK; n <= 2 * SAVES + 2; n++) lose(w, n);
    json_object_set_new(mark, "commit", json_integer(FIRST_COMMIT));
    put(w, mark, MARK);
    lose(w, 2);
    put(w, begun, 2);
    for (uint64_t n = 3; n < MARK; n++) lose(w, n);
    mend(w);
    assert_int_equal(runlog_open(w->env.store, "", &log, NULL), 0);
    const runlog_commit *second = commit_in(log, units[1]);
    assert_true(!second || !second->bad); /* else the next writer commits it */
    runlog_close(log);
  }
  (void)state;
}

/* A run begins, and is ended before it has looked at anything. */
static bool begins(store *s) {
  runlog *next = NULL;
  const runlog_writer who = {.host = "there", .launch = "two", .pid = 8};
  bool begun =
      runlog_open(s, "", &next, NULL) == 0 && runlog_begin(next, "run", &who, true, NULL) == 0;
  runlog_close(next);
  return begun;
}

/* Returns false if the repair came to its end. */
static bool is_held_behind_a_repair_that_dies(world *w, long nth, unsigned *held) {
  enum { THIRD = 6 };
  runlog *guest = NULL;
  saved_in_a_row(w);
  lose(w, 3);
  lose(w, THIRD + 1);
  store_failing *f = store_failing_new(w->env.store);
  store_failing_set(f, (store_failing_plan){.nth = nth, .code = ERR_IO, .for_good = true});
  const repair how = {.store = store_failing_store(f), .prefix = "", .take_over = true};
  bool died = repair_log(&how, NULL) < 0;
  store_failing_free(f);
  if (begins(w->env.store) && runlog_open(w->env.store, "", &guest, NULL) == 0) {
    int rc = runlog_sweep(guest, THIRD, NULL);
    const runlog_attempt *third = runlog_find_attempt(runlog_view(guest), THIRD);
    assert_int_not_equal(rc, 0);
    assert_true(third && third->fate != RUNLOG_SWEPT);
    *held += rc == ERR_HELD;
  }
  runlog_close(guest);
  return died;
}

/* Somebody may have been told that it was committed. */
static void a_guest_does_not_give_up_what_a_repair_has_found(void **state) {
  bool died = true;
  unsigned held = 0;
  for (long nth = 1; died; nth++) {
    died = false;
    for (world *w = NULL; (w = world_next(w, world_io()));)
      died |= is_held_behind_a_repair_that_dies(w, nth, &held);
  }
  assert_true(held > 0);
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_commit_is_not_given_to_a_save_that_got_its_number),
      cmocka_unit_test(of_two_that_announce_a_directory_the_one_that_is_there_counts),
      cmocka_unit_test(a_term_that_came_late_fences_nobody),
      cmocka_unit_test(one_on_which_a_commit_was_built_stays),
      cmocka_unit_test(a_save_that_was_given_up_late_is_committed_still),
      cmocka_unit_test(one_of_which_the_removal_was_begun_is_given_up),
      cmocka_unit_test(a_pinned_save_keeps_its_number_whatever_else_was_lost),
      cmocka_unit_test(a_mark_is_not_given_to_a_save_that_may_be_another),
      cmocka_unit_test(a_guest_does_not_give_up_what_a_repair_has_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
