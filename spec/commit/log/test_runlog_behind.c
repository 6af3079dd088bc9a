/* An entry whose place was free because what stood there was lost: who put it notices, and acts on
 * nothing. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "manifest_make.h"
#include "store_lossy.h"
#include "world.h"

/* Who has read the log up to its own term, and sleeps. */
typedef struct place {
  world *w;
  store *s;
  runlog *sleeper, *other;
} place;

static uint64_t attempt(runlog *log, const char *unit) {
  uint64_t n = 0;
  err e = {0};
  if (runlog_attempt_begin(log, unit, &n, &e) < 0) fail_msg("%s", e.text);
  return n;
}

static int try_commit(runlog *log, uint64_t n, err *e) {
  manifest m;
  make_small(&m, runlog_find_attempt(runlog_view(log), n)->unit, n);
  int rc = runlog_commit_attempt(log, n, &m, NULL, NULL, e);
  manifest_free(&m);
  return rc;
}

static void commit(runlog *log, uint64_t n) {
  err e = {0};
  if (try_commit(log, n, &e) < 0) fail_msg("%s", e.text);
}

/* Entry 0 is the run's, 1 the sleeper's term, 2 its attempt, 3 the other one's term. */
static uint64_t begin(place *p, void **state) {
  *p = (place){.w = world_new(*state ? "file" : "mem", world_io())};
  p->s = p->w->env.store;
  p->s->lag_ns = 0;
  p->sleeper = world_begin(p->s, "g", "one");
  uint64_t n = attempt(p->sleeper, "a");
  p->other = world_begin(p->s, "g", "two");
  assert_int_equal(runlog_view(p->other)->term.n, 3);
  return n;
}

static void end(place *p) {
  runlog_close(p->sleeper);
  runlog_close(p->other);
  world_free(p->w);
}

static void lose(const place *p, uint64_t n) {
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_entry("g", n, key, NULL), 0);
  assert_int_equal(p->s->ops->remove(p->s, key, NULL), 0);
}

static void counts_for_nothing(runlog *log, int rc, int expected, const err *e) {
  if (rc != expected) fail_msg("%d: %s", rc, e->text);
  assert_true(runlog_in_doubt(log));
  /* Nor would what it tries then. */
  assert_int_equal(runlog_check_damage(log, NULL), ERR_CORRUPT);
}

static void a_fenced_writer_in_a_lost_place_is_told(void **state) {
  place p;
  err e = {0};
  uint64_t n = begin(&p, state);
  attempt(p.other, "b");
  lose(&p, 3);
  counts_for_nothing(p.sleeper, try_commit(p.sleeper, n, &e), ERR_FENCED, &e);
  assert_non_null(strstr(e.text, "a newer term has gone on from log entry 4"));
  end(&p);
}

/* No entry stands behind its own; the head tells of one that stood there. */
static void two_lost_places_are_told_by_the_head(void **state) {
  place p;
  err e = {0};
  uint64_t n = begin(&p, state);
  commit(p.other, attempt(p.other, "b"));
  attempt(p.other, "c");
  lose(&p, 3);
  lose(&p, 4);
  counts_for_nothing(p.sleeper, try_commit(p.sleeper, n, &e), ERR_FENCED, &e);
  end(&p);
}

static void a_lost_end_is_told_by_the_head(void **state) {
  place p;
  err e = {0};
  uint64_t n = begin(&p, state);
  commit(p.other, attempt(p.other, "b"));
  for (uint64_t i = 3; i < 6; i++) lose(&p, i);
  counts_for_nothing(p.sleeper, try_commit(p.sleeper, n, &e), ERR_CORRUPT, &e);
  end(&p);
}

/* The commit that the head names was the one whose place is taken. */
static void another_commit_in_its_own_place_is_told_by_the_head(void **state) {
  place p;
  err e = {0};
  uint64_t n = begin(&p, state);
  runlog_hint named = {.snapshot = RUNLOG_NONE, .commit = 3};
  assert_int_equal(runlog_digest("another", 7, &named.digest, NULL), 0);
  p.other->newest = named;
  assert_int_equal(runlog_put_head(p.other, NULL), 0);
  lose(&p, 3);
  counts_for_nothing(p.sleeper, try_commit(p.sleeper, n, &e), ERR_CORRUPT, &e);
  end(&p);
}

/* Its own last entry was lost, and somebody who had not read that has put one there. */
static void another_entry_before_its_own_is_noticed(void **state) {
  place p;
  err e = {0};
  char key[STORE_KEY_MAX];
  begin(&p, state);
  uint64_t n = attempt(p.other, "b");
  assert_int_equal(runlog_key_entry("g", n, key, NULL), 0);
  assert_int_equal(p.s->ops->put(p.s, key, "{}", 2, STORE_REPLACE, NULL), 0);
  counts_for_nothing(p.other, try_commit(p.other, n, &e), ERR_CORRUPT, &e);
  assert_non_null(strstr(e.text, "entry 4 or one beside it was lost"));
  end(&p);
}

/* A guest has no term that could be fenced: it acts on nothing all the same. */
static void a_guest_in_a_lost_place_is_told(void **state) {
  place p;
  err e = {0};
  uint64_t n = begin(&p, state);
  runlog *guest = NULL;
  commit(p.other, attempt(p.other, "b"));
  if (runlog_open(p.s, "g", &guest, NULL) < 0) abort();
  uint64_t at = runlog_view(guest)->next;
  attempt(p.other, "c");
  attempt(p.other, "d");
  lose(&p, at);
  counts_for_nothing(guest, runlog_sweep(guest, n, &e), ERR_CORRUPT, &e);
  runlog_close(guest);
  end(&p);
}

/* ---- and what is no loss ---- */

typedef struct visitor {
  store *s;
  runlog *guest;
  uint64_t commit, expects;
  int comes; /* before so many gets and puts */
} visitor;

/* Somebody appends behind the entry that was put just now. */
static void come(void *ctx) {
  visitor *v = ctx;
  err e = {0};
  if (v->guest || --v->comes > 0) return;
  if (runlog_open(v->s, "g", &v->guest, &e) < 0) fail_msg("%s", e.text);
  if (runlog_view(v->guest)->next < v->expects) {
    runlog_close(v->guest);
    v->guest = NULL;
    return;
  }
  if (runlog_mark(v->guest, v->commit, true, "it does not load", &e) < 0) fail_msg("%s", e.text);
}

static void who_has_read_it_and_goes_on_is_no_loss(void **state) {
  world *w = world_new(*state ? "file" : "mem", world_io());
  store_lossy *lossy = store_lossy_new(w->env.store, 1, true);
  runlog *log = world_begin(&lossy->base, "g", "one");
  commit(log, attempt(log, "a"));
  const runlog_commit *c = runlog_newest(runlog_view(log), NULL);
  uint64_t next = runlog_view(log)->next;
  visitor v = {.s = w->env.store, .commit = c->n, .expects = next + 1};
  lossy->between = come;
  lossy->ctx = &v;
  assert_int_equal(attempt(log, "b"), next);
  if (!v.guest) fail_msg("nobody came in between");
  assert_false(runlog_in_doubt(log));
  lossy->between = NULL;
  assert_int_equal(attempt(log, "c"), next + 2);
  runlog_close(v.guest);
  runlog_close(log);
  store_lossy_free(lossy);
  world_free(w);
}

/* While nobody can tell, nothing is done, and it can be asked again. */
static void what_is_not_answered_stays_in_doubt(void **state) {
  world *w = world_new(*state ? "file" : "mem", world_io());
  store_lossy *lossy = store_lossy_new(w->env.store, 1, true);
  runlog *log = world_begin(&lossy->base, "g", "one");
  uint64_t n = 0;
  lossy->deaf = 1000;
  assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), ERR_IO);
  assert_true(runlog_in_doubt(log));
  lossy->deaf = 0;
  assert_int_equal(runlog_refresh(log, NULL), 0);
  assert_false(runlog_in_doubt(log));
  runlog_close(log);
  store_lossy_free(lossy);
  world_free(w);
}

/* ---- another rank, which waits for the commit ---- */

/* Has it read the commit of an attempt of `p->other`. */
static runlog *reads_commit(place *p) {
  runlog *rank = NULL;
  uint64_t n = attempt(p->other, "b");
  if (runlog_open(p->s, "g", &rank, NULL) < 0) abort();
  assert_int_equal(runlog_follow(rank, "two", 1, NULL), 0);
  uint64_t before = runlog_view(rank)->next;
  assert_int_equal(runlog_read_next(rank, NULL), 0);
  attempt(p->other, "c");
  commit(p->other, n);
  assert_int_equal(runlog_read_next(rank, NULL), 1);
  assert_int_equal(runlog_view(rank)->next, before + 1);
  assert_null(runlog_commit_of(runlog_view(rank), n));
  assert_int_equal(runlog_read_next(rank, NULL), 1);
  assert_non_null(runlog_commit_of(runlog_view(rank), n));
  assert_int_equal(runlog_read_next(rank, NULL), 0);
  assert_true(runlog_in_doubt(rank));
  return rank;
}

static void begin_repair(const place *p) {
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_epoch("g", 1, key, NULL), 0);
  assert_int_equal(p->s->ops->put(p->s, key, "{}", 2, STORE_IF_ABSENT, NULL), 0);
}

static void a_commit_that_the_head_names_is_told_by_a_rank_that_asks_for_no_more(void **state) {
  place p;
  begin(&p, state);
  runlog *rank = reads_commit(&p);
  begin_repair(&p); /* whatever comes later: that commit stood, and a repair finds it */
  assert_int_equal(runlog_confirm(rank, NULL), 0);
  assert_false(runlog_in_doubt(rank));
  runlog_close(rank);
  end(&p);
}

static void a_commit_that_the_head_does_not_name_is_asked_for_as_one_s_own(void **state) {
  for (int repaired = 0; repaired < 2; repaired++) {
    place p;
    begin(&p, state);
    runlog *rank = reads_commit(&p);
    assert_int_equal(p.s->ops->remove(p.s, "g/.ckpt/head", NULL), 0);
    if (repaired) begin_repair(&p);
    assert_int_equal(runlog_confirm(rank, NULL), repaired ? ERR_FENCED : 0);
    assert_int_equal(runlog_in_doubt(rank), repaired);
    runlog_close(rank);
    end(&p);
  }
}

static void a_rank_that_reads_of_a_newer_term_stops(void **state) {
  place p;
  begin(&p, state);
  runlog *rank = reads_commit(&p), *third = world_begin(p.s, "g", "three");
  assert_int_equal(runlog_read_next(rank, NULL), ERR_FENCED);
  assert_int_equal(runlog_follow(rank, "two", 1, NULL), ERR_FENCED);
  runlog_close(third);
  runlog_close(rank);
  end(&p);
}

#define BOTH(f) IN_BOTH_WORLDS(f, NULL, NULL)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(a_fenced_writer_in_a_lost_place_is_told),
      BOTH(two_lost_places_are_told_by_the_head),
      BOTH(a_lost_end_is_told_by_the_head),
      BOTH(another_commit_in_its_own_place_is_told_by_the_head),
      BOTH(another_entry_before_its_own_is_noticed),
      BOTH(a_guest_in_a_lost_place_is_told),
      BOTH(who_has_read_it_and_goes_on_is_no_loss),
      BOTH(what_is_not_answered_stays_in_doubt),
      BOTH(a_commit_that_the_head_names_is_told_by_a_rank_that_asks_for_no_more),
      BOTH(a_commit_that_the_head_does_not_name_is_asked_for_as_one_s_own),
      BOTH(a_rank_that_reads_of_a_newer_term_stops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
