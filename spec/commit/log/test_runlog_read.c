/* How a log is read from a store that answers many requests at once: in few rounds whatever its
 * length, with nothing passed over but a snapshot that is torn or lost. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "log_read.h"
#include "world.h"

/* A store in front of another one: it counts how often somebody waits for it, and can show less. */
typedef struct counted {
  store base;
  store_ops ops;
  store *inner;
  long rounds, asked;
  char hidden[STORE_KEY_MAX]; /* asked for with others it is absent, `hides` times */
  int hides;
  char broken[STORE_KEY_MAX]; /* asked for with others it is no answer */
} counted;

static int counted_get(store *base, const char *key, buf *out, err *e) {
  counted *c = (counted *)base;
  c->rounds++;
  c->asked++;
  return c->inner->ops->get(c->inner, key, out, e);
}

static void counted_get_many(store *base, store_ask *asks, size_t count) {
  counted *c = (counted *)base;
  c->rounds++;
  c->asked += (long)count;
  for (size_t i = 0; i < count; i++) {
    if (c->hides > 0 && strcmp(asks[i].key, c->hidden) == 0) {
      c->hides--;
      asks[i].rc = ERR_NOENT;
    } else if (strcmp(asks[i].key, c->broken) == 0) {
      asks[i].rc = err_set(&asks[i].why, ERR_IO, "%s: no answer", asks[i].key);
    } else {
      asks[i].rc = c->inner->ops->get(c->inner, asks[i].key, &asks[i].out, &asks[i].why);
    }
  }
}

static int counted_head(store *base, const char *key, store_object *out, err *e) {
  counted *c = (counted *)base;
  c->rounds++;
  c->asked++;
  return c->inner->ops->head(c->inner, key, out, e);
}

typedef struct place {
  world *w;
  store *s;
  runlog *log;
  counted count;
} place;

static void place_new(place *p) {
  *p = (place){.w = world_new("mem", world_io())};
  p->s = p->w->env.store;
  p->log = world_begin(p->s, "g", "one");
  p->count.inner = p->s;
  p->count.ops = (store_ops){
      .version = 1, .get = counted_get, .get_many = counted_get_many, .head = counted_head};
  p->count.base = (store){.ops = &p->count.ops, .io = p->s->io};
}

static void place_free(place *p) {
  runlog_close(p->log);
  world_free(p->w);
}

static void commit(runlog *log, const char *unit) {
  err e = {0};
  world_commit(log, unit);
  if (runlog_snapshot(log, &e) < 0) fail_msg("%s", e.text);
}

static void key_of(uint64_t n, char out[STORE_KEY_MAX]) {
  assert_int_equal(runlog_key_entry("g", n, out, NULL), 0);
}

/* Opens it, and compares it with what all entries say. */
static runlog *opened(store *s, place *p) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(s, "g", &log, &e) < 0) fail_msg("%s", e.text);
  if (runlog_check_damage(log, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(runlog_view(log)->next, runlog_view(p->log)->next);
  return log;
}

static void must_be_whole(store *s, place *p) {
  runlog *log = opened(s, p);
  runlog_state all = log_read(p->s, "g");
  log_must_equal(runlog_view(log), &all);
  runlog_state_free(&all);
  runlog_close(log);
}

static void a_log_of_any_length_is_read_in_few_rounds(void **state) {
  static const int lengths[] = {0, 2, 3, 4, 20, 80, 126, 127, 128, 129, 300, 1000, 3000};
  place p;
  (void)state;
  place_new(&p);
  int made = 0;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (; made < lengths[i]; made++) commit(p.log, "last.ckpt");
    p.count.rounds = p.count.asked = 0;
    must_be_whole(&p.count.base, &p);
    if (p.count.rounds > 3) fail_msg("%d commits: %ld rounds", made, p.count.rounds);
    if (p.count.asked > 330) fail_msg("%d commits: %ld requests", made, p.count.asked);
  }
  place_free(&p);
}

static void an_absent_entry_in_front_of_one_that_was_found_is_asked_for_again(void **state) {
  (void)state;
  for (uint64_t n = 0; n < 40; n++) {
    place p;
    place_new(&p);
    for (int i = 0; i < 20; i++) commit(p.log, "a");
    key_of(n, p.count.hidden);
    p.count.hides = 1;
    must_be_whole(&p.count.base, &p);
    place_free(&p);
  }
}

static void an_entry_that_is_gone_is_a_hole(void **state) {
  (void)state;
  for (uint64_t n = 1; n < 40; n += 3) {
    place p;
    runlog *log = NULL;
    err e = {0};
    place_new(&p);
    for (int i = 0; i < 20; i++) commit(p.log, "a");
    char key[STORE_KEY_MAX];
    key_of(n, key);
    assert_int_equal(p.s->ops->remove(p.s, key, NULL), 0);
    int rc = runlog_open(&p.count.base, "g", &log, &e);
    if (rc != ERR_CORRUPT || !strstr(e.text, "hole")) fail_msg("%d: %d, %s", (int)n, rc, e.text);
    place_free(&p);
  }
}

static void what_is_not_answered_is_an_error_where_it_is_needed(void **state) {
  place p;
  runlog *log = NULL;
  (void)state;
  place_new(&p);
  for (int i = 0; i < 20; i++) commit(p.log, "a");
  uint64_t next = runlog_view(p.log)->next;
  for (uint64_t n = next - 5; n < next + 2; n++) {
    key_of(n, p.count.broken);
    assert_int_equal(runlog_open(&p.count.base, "g", &log, NULL), ERR_IO);
  }
  key_of(next + 3, p.count.broken);
  must_be_whole(&p.count.base, &p);
  place_free(&p);
}

/* ---- snapshots that are torn or lost ---- */

/* 0: garbage, 1: cut, 2: empty, 3: gone */
static void spoil(place *p, uint64_t n, int how) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, 1 << 24);
  key_of(n, key);
  assert_int_equal(p->s->ops->get(p->s, key, &text, NULL), 0);
  if (how == 3)
    assert_int_equal(p->s->ops->remove(p->s, key, NULL), 0);
  else
    assert_int_equal(p->s->ops->put(p->s, key, how == 0 ? "x" : text.data,
                                    how == 0   ? 1
                                    : how == 1 ? text.len / 2
                                               : 0,
                                    STORE_REPLACE, NULL),
                     0);
  buf_free(&text);
}

static void must_know_what_it_knew(place *p, store *s, const runlog_state *before) {
  runlog *log = opened(s, p);
  log_must_equal(runlog_view(log), before);
  runlog_close(log);
}

static void a_torn_or_lost_snapshot_costs_requests_and_nothing_else(void **state) {
  (void)state;
  for (int how = 0; how < 4; how++) {
    for (int wide = 0; wide < 2; wide++) {
      for (int head = 0; head < 2; head++) {
        place p;
        place_new(&p);
        store *s = wide ? &p.count.base : p.s;
        while (runlog_view(p.log)->snapshot == RUNLOG_NONE) commit(p.log, "a");
        uint64_t n = runlog_view(p.log)->snapshot;
        for (int i = 0; i < 3; i++) commit(p.log, "b");
        runlog_state before = log_read(p.s, "g");
        spoil(&p, n, how);
        if (!head) assert_int_equal(p.s->ops->remove(p.s, "g/.ckpt/head", NULL), 0);
        must_know_what_it_knew(&p, s, &before);
        runlog_state_free(&before);
        /* A writer goes on, and another snapshot stands in the end. */
        runlog *later = NULL;
        runlog_writer who = {.launch = "two", .host = "h"};
        assert_int_equal(runlog_open(p.s, "g", &later, NULL), 0);
        assert_int_equal(runlog_begin(later, "one", &who, true, NULL), 0);
        runlog_close(p.log);
        p.log = later;
        while (runlog_view(p.log)->snapshot == n) commit(p.log, "c");
        commit(p.log, "d");
        p.count.rounds = 0;
        runlog_close(opened(&p.count.base, &p));
        assert_true(p.count.rounds <= 3);
        /* One that reads all of it passes over it, too. */
        assert_int_equal(runlog_open_whole(p.s, "g", &later, NULL), 0);
        assert_int_equal(runlog_check_damage(later, NULL), 0);
        log_must_equal(runlog_view(later), runlog_view(p.log));
        runlog_close(later);
        place_free(&p);
      }
    }
  }
}

/* Nothing follows it: the head alone says what it was. */
static void a_torn_snapshot_at_the_end_is_gone_on_behind(void **state) {
  place p;
  (void)state;
  for (int how = 0; how < 4; how++) {
    place_new(&p);
    while (runlog_view(p.log)->snapshot == RUNLOG_NONE) commit(p.log, "a");
    uint64_t n = runlog_view(p.log)->snapshot;
    spoil(&p, n, how);
    runlog *later = NULL;
    runlog_writer who = {.launch = "two", .host = "h"};
    assert_int_equal(runlog_open(p.s, "g", &later, NULL), 0);
    assert_int_equal(runlog_begin(later, "one", &who, true, NULL), 0);
    runlog_close(p.log);
    p.log = later;
    commit(p.log, "b");
    assert_int_equal(runlog_view(p.log)->next, n + 4);
    runlog_close(opened(&p.count.base, &p));
    place_free(&p);
  }
}

static void any_other_torn_entry_stops_every_reader(void **state) {
  (void)state;
  for (uint64_t n = 0; n < 12; n++) {
    place p;
    runlog *log = NULL;
    place_new(&p);
    for (int i = 0; i < 6; i++) commit(p.log, "a");
    spoil(&p, n, 0);
    assert_int_equal(runlog_open(p.s, "g", &log, NULL), ERR_FORMAT);
    assert_int_equal(runlog_open(&p.count.base, "g", &log, NULL), ERR_FORMAT);
    place_free(&p);
  }
}

static void each_changed_byte_of_a_snapshot_is_noticed_and_costs_nothing(void **state) {
  place p;
  char key[STORE_KEY_MAX];
  buf text;
  (void)state;
  place_new(&p);
  commit(p.log, "a");
  commit(p.log, "b");
  commit(p.log, "b");
  commit(p.log, "b");
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  uint64_t n = runlog_view(p.log)->snapshot;
  commit(p.log, "c");
  runlog_state before = log_read(p.s, "g");
  key_of(n, key);
  buf_init(&text, 1 << 24);
  assert_int_equal(p.s->ops->get(p.s, key, &text, NULL), 0);
  for (size_t i = 0; i < text.len; i++) {
    char was = text.data[i];
    text.data[i] = (char)(was ^ (1 << i % 7));
    assert_int_equal(p.s->ops->put(p.s, key, text.data, text.len, STORE_REPLACE, NULL), 0);
    must_know_what_it_knew(&p, p.s, &before);
    text.data[i] = was;
  }
  buf_free(&text);
  runlog_state_free(&before);
  place_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_log_of_any_length_is_read_in_few_rounds),
      cmocka_unit_test(an_absent_entry_in_front_of_one_that_was_found_is_asked_for_again),
      cmocka_unit_test(an_entry_that_is_gone_is_a_hole),
      cmocka_unit_test(what_is_not_answered_is_an_error_where_it_is_needed),
      cmocka_unit_test(a_torn_or_lost_snapshot_costs_requests_and_nothing_else),
      cmocka_unit_test(a_torn_snapshot_at_the_end_is_gone_on_behind),
      cmocka_unit_test(any_other_torn_entry_stops_every_reader),
      cmocka_unit_test(each_changed_byte_of_a_snapshot_is_noticed_and_costs_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
