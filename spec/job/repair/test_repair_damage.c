/* What a reader calls damage, a repair mends: an entry that was exchanged for another one with a sum
 * of its own, at the end of the log, where no entry behind it tells. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "commit/log/runlog_ruin.h"
#include "job/repair/repair.h"
#include "world.h"

static const char *const units[] = {"checkpoint-1", "checkpoint-2"};
enum { SAVES = 2 };

static runlog *saved(world *w) {
  runlog *log = world_log(w, "", "one");
  for (int i = 0; i < SAVES; i++) {
    make_unit(w, units[i], MATCH_DIR, (unsigned)i + 1);
    save_unit(w, log, units[i], MATCH_DIR, i + 1);
  }
  return log;
}

/* Another entry of the same number, with a good sum. */
static void exchange(const world *w, const char *key) {
  store *s = w->env.store;
  buf text;
  buf_init(&text, 1 << 20);
  assert_int_equal(s->ops->get(s, key, &text, NULL), 0);
  char *sum = strstr(text.data, ",\"sum\":\"");
  char *time = NULL; /* the entry's own: a snapshot's state has others before it */
  for (char *at = text.data; (at = strstr(at, "\"time_ns\":1")); at++) time = at;
  if (!sum || !time) abort();
  time[strlen("\"time_ns\":") + 5] ^= 1;
  text.len = (size_t)(sum - text.data);
  buf_str(&text, "}");
  assert_int_equal(runlog_seal(&text, NULL), 0);
  assert_int_equal(s->ops->put(s, key, text.data, text.len, STORE_REPLACE, NULL), 0);
  buf_free(&text);
}

static void mend(const world *w) {
  err e = {0};
  const repair how = {.store = w->env.store, .prefix = "", .take_over = true};
  if (repair_log(&how, &e) < 0) fail_msg("%s", e.text);
}

static int damage_of(const world *w, uint64_t *epoch) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(w->env.store, "", &log, &e) < 0) fail_msg("%s", e.text);
  int rc = runlog_check_damage(log, NULL);
  assert_int_equal(runlog_view(log)->commit_count, SAVES);
  *epoch = log->at.epoch;
  runlog_close(log);
  return rc;
}

static void all_are_there(const world *w) {
  runlog *log = NULL;
  assert_int_equal(runlog_open(w->env.store, "", &log, NULL), 0);
  for (int i = 0; i < SAVES; i++) {
    const runlog_commit *c = &runlog_view(log)->commits[i];
    const char *why = restored_differs(w, "", c, units[i]);
    assert_string_equal(c->unit, units[i]);
    if (why) fail_msg("%s: %s", units[i], why);
  }
  runlog_close(log);
}

static void exchange_last(const world *w, const runlog *log) {
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_at(log, runlog_view(log)->commits[SAVES - 1].n, key, NULL), 0);
  exchange(w, key);
}

static void a_commit_that_is_not_the_one_of_the_head_is_mended(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    uint64_t epoch;
    exchange_last(w, saved(w));
    assert_int_equal(damage_of(w, &epoch), ERR_CORRUPT);
    mend(w);
    assert_int_equal(damage_of(w, &epoch), 0);
    assert_int_equal(epoch, 1);
    world_log(w, "", "two");
    all_are_there(w);
    mend(w);
    assert_int_equal(damage_of(w, &epoch), 0);
    assert_int_equal(epoch, 1); /* nothing is damaged any more */
  }
  (void)state;
}

/* The first entry of an epoch is read apart from the others. */
static void so_is_the_first_entry_of_an_epoch(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    uint64_t epoch;
    exchange_last(w, saved(w));
    mend(w);
    world_log(w, "", "two"); /* an entry behind it */
    exchange(w, ".ckpt/log.1/00000000000000000000.json");
    assert_int_equal(damage_of(w, &epoch), ERR_CORRUPT);
    mend(w);
    assert_int_equal(damage_of(w, &epoch), 0);
    assert_int_equal(epoch, 2);
    world_log(w, "", "three");
    all_are_there(w);
  }
  (void)state;
}

/* A guest that read the damage goes on where the repair has ended. */
static void a_reader_of_the_damage_writes_to_the_mended_log(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *guest = NULL;
    err e = {0};
    exchange_last(w, saved(w));
    assert_int_equal(runlog_open(w->env.store, "", &guest, NULL), 0);
    uint64_t first = runlog_view(guest)->commits[0].n;
    assert_int_equal(runlog_mark(guest, first, true, "", &e), ERR_CORRUPT);
    assert_non_null(strstr(e.text, "`repair`"));
    mend(w);
    assert_int_equal(runlog_refresh(guest, NULL), 0);
    assert_int_equal(runlog_check_damage(guest, NULL), 0);
    if (runlog_mark(guest, first, true, "", &e) < 0) fail_msg("%s", e.text);
    assert_true(runlog_find_commit(runlog_view(guest), first)->bad);
    runlog_close(guest);
  }
  (void)state;
}

/* Numbers were passed over between the two logs. */
static void what_is_proven_counts_the_new_log_alone(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    runlog *log = NULL;
    exchange_last(w, saved(w));
    mend(w);
    world_log(w, "", "two");
    assert_int_equal(runlog_open_whole(w->env.store, "", &log, NULL), 0);
    runlog_proven p = runlog_tell_proven(log);
    assert_int_equal(p.entries, 2); /* the snapshot of the repair, and the term */
    assert_int_equal(p.unproven, 0);
    assert_int_equal(p.behind, 2);
    runlog_close(log);
  }
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_commit_that_is_not_the_one_of_the_head_is_mended),
      cmocka_unit_test(so_is_the_first_entry_of_an_epoch),
      cmocka_unit_test(what_is_proven_counts_the_new_log_alone),
      cmocka_unit_test(a_reader_of_the_damage_writes_to_the_mended_log),
  };
  return cmocka_run_group_tests_name("repair of damage", tests, NULL, NULL);
}
