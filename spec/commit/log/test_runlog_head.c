/* The head of a log names its newest commit: entries that were lost at the end are noticed. Whatever
 * else is wrong with it costs requests, and nothing else. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "manifest_make.h"
#include "store_failing.h"
#include "world.h"

static int64_t slept;
static void note_sleep(const io *io, int64_t ns) {
  (void)io;
  slept += ns;
}

typedef struct place {
  world *w;
  store *s;
  runlog *log;
  io io;
} place;

static void place_new(place *p, void **state) {
  *p = (place){.w = world_new(*state ? "file" : "mem", world_io())};
  p->s = p->w->env.store;
  p->s->lag_ns = 0;
  p->io = *p->s->io;
  p->io.sleep = note_sleep;
  if (!*state) p->s->io = &p->io; /* that of a file store is its own */
  p->log = world_begin(p->s, "g", "one");
  slept = 0;
}

static void place_free(place *p) {
  runlog_close(p->log);
  if (p->s->io == &p->io) p->s->io = world_io();
  world_free(p->w);
}

static buf text_at(place *p, const char *key) {
  buf text;
  buf_init(&text, 1 << 24);
  assert_int_equal(p->s->ops->get(p->s, key, &text, NULL), 0);
  return text;
}

static void put_at(place *p, const char *key, const buf *text) {
  assert_int_equal(p->s->ops->put(p->s, key, text->data, text->len, STORE_REPLACE, NULL), 0);
}

static const char head[] = "g/.ckpt/head";

static runlog_hint head_of(place *p) {
  runlog_hint h;
  buf text = text_at(p, head);
  err e = {0};
  if (runlog_hint_parse(&text, "head", &h, &e) < 0) fail_msg("%s", e.text);
  buf_free(&text);
  return h;
}

static void key_of(uint64_t n, char out[STORE_KEY_MAX]) {
  assert_int_equal(runlog_key_entry("g", n, out, NULL), 0);
}

/* 0, or how it is damaged; then it must have refused each writer. */
static int opened(place *p) {
  runlog *log = NULL;
  runlog_writer who = {.launch = "two", .host = "h"};
  err e = {0};
  if (runlog_open(p->s, "g", &log, &e) < 0) fail_msg("%s", e.text);
  int rc = runlog_check_damage(log, NULL);
  if (rc < 0) assert_int_equal(runlog_begin(log, "one", &who, true, NULL), ERR_CORRUPT);
  runlog_close(log);
  return rc;
}

static void the_head_names_the_newest_commit_and_its_digest(void **state) {
  place p;
  place_new(&p, state);
  for (int i = 0; i < 4; i++) {
    char key[STORE_KEY_MAX];
    digest d;
    uint64_t n = world_commit(p.log, "a");
    if (i == 2) assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
    runlog_hint h = head_of(&p);
    key_of(n, key);
    buf text = text_at(&p, key);
    assert_int_equal(hash_bytes(HASH_XXH3_128, text.data, text.len, &d, NULL), 0);
    assert_int_equal(h.commit, n);
    assert_true(digest_equal(&h.digest, &d));
    assert_int_equal(h.snapshot, i < 2 ? RUNLOG_NONE : p.log->st.snapshot);
    buf_free(&text);
  }
  assert_int_equal(opened(&p), 0);
  place_free(&p);
}

/* One that was frozen between its commit and the head. */
static void the_head_is_never_put_to_a_lower_number(void **state) {
  place p;
  place_new(&p, state);
  runlog *slow = NULL;
  world_commit(p.log, "a");
  assert_int_equal(runlog_open(p.s, "g", &slow, NULL), 0);
  uint64_t n = world_commit(p.log, "b");
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  runlog_point_at_commit(slow);
  assert_int_equal(head_of(&p).commit, n);
  assert_int_equal(head_of(&p).snapshot, n + 1);
  assert_int_equal(opened(&p), 0);
  runlog_close(slow);
  place_free(&p);
}

static void entries_that_were_lost_at_the_end_are_noticed(void **state) {
  place p;
  char key[STORE_KEY_MAX];
  place_new(&p, state);
  world_commit(p.log, "a");
  uint64_t n = world_commit(p.log, "b");
  key_of(n, key);
  buf text = text_at(&p, key);
  assert_int_equal(p.s->ops->remove(p.s, key, NULL), 0);
  assert_int_equal(opened(&p), ERR_CORRUPT);
  assert_true(*state || (slept > 0 && slept < INT64_C(10000000000)));
  /* Where names of other machines show late, it is waited for them. */
  slept = 0;
  if (!*state) p.s->lag_ns = INT64_C(120000000000);
  assert_int_equal(opened(&p), ERR_CORRUPT);
  assert_true(*state || slept >= INT64_C(120000000000));
  /* It is put back: all is as before. */
  put_at(&p, key, &text);
  slept = 0;
  assert_int_equal(opened(&p), 0);
  assert_int_equal(slept, 0);
  buf_free(&text);
  place_free(&p);
}

static void a_newest_commit_that_was_exchanged_is_noticed(void **state) {
  place p;
  char key[STORE_KEY_MAX];
  place_new(&p, state);
  world_commit(p.log, "a");
  key_of(world_commit(p.log, "b"), key);
  buf text = text_at(&p, key), other;
  json_t *entry = json_loads(text.data, 0, NULL);
  json_object_del(entry, "sum");
  json_object_set_new(entry, "step", json_integer(77));
  buf_init(&other, 1 << 20);
  assert_int_equal(js_print(entry, &other, NULL), 0);
  assert_int_equal(runlog_seal(&other, NULL), 0); /* all sums are right */
  put_at(&p, key, &other);
  assert_int_equal(opened(&p), ERR_CORRUPT);
  put_at(&p, key, &text);
  assert_int_equal(opened(&p), 0);
  json_decref(entry);
  buf_free(&other);
  buf_free(&text);
  place_free(&p);
}

static void a_torn_head_costs_requests_and_nothing_else(void **state) {
  place p;
  place_new(&p, state);
  world_commit(p.log, "a");
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  uint64_t n = world_commit(p.log, "a");
  buf text = text_at(&p, head);
  for (size_t i = 0; i < text.len; i++) {
    for (int bit = 0; bit < 7; bit++) {
      text.data[i] ^= (char)(1 << bit);
      put_at(&p, head, &text);
      if (opened(&p) != 0) fail_msg("byte %zu: %s", i, text.data);
      text.data[i] ^= (char)(1 << bit);
    }
  }
  for (size_t len = 0; len < text.len; len++) {
    buf cut = text;
    cut.len = len;
    put_at(&p, head, &cut);
    assert_int_equal(opened(&p), 0);
  }
  assert_int_equal(slept, 0);
  world_commit(p.log, "b"); /* and is mended by the next commit */
  assert_int_equal(head_of(&p).commit, n + 2);
  buf_free(&text);
  place_free(&p);
}

static void the_head_of_1_0_is_gone_by_as_far_as_it_goes(void **state) {
  place p;
  char text[100];
  place_new(&p, state);
  world_commit(p.log, "a");
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  uint64_t snapshot = runlog_view(p.log)->snapshot;
  snprintf(text, sizeof text, "{\"format\":1,\"reader\":1,\"snapshot\":%d}", (int)snapshot);
  assert_int_equal(store_put_text(p.s, head, text, STORE_REPLACE), 0);
  assert_int_equal(head_of(&p).snapshot, snapshot);
  assert_int_equal(head_of(&p).commit, RUNLOG_NONE);
  assert_int_equal(opened(&p), 0);
  uint64_t n = world_commit(p.log, "b");
  assert_int_equal(head_of(&p).snapshot, snapshot);
  assert_int_equal(head_of(&p).commit, n);
  place_free(&p);
}

static void a_head_that_cannot_be_put_fails_no_commit(void **state) {
  place p;
  uint64_t n;
  manifest m;
  place_new(&p, state);
  store_failing *f = store_failing_new(p.s);
  runlog *log = NULL;
  runlog_writer who = {.launch = "two", .host = "h"};
  assert_int_equal(runlog_open(store_failing_store(f), "g", &log, NULL), 0);
  assert_int_equal(runlog_begin(log, "one", &who, true, NULL), 0);
  make_small(&m, "a", 1);
  /* All fails that comes after the entry's own put, and after the question for a repair. */
  long before = 0;
  for (long nth = 1; nth < 20; nth++) {
    assert_int_equal(runlog_attempt_begin(log, "a", &n, NULL), 0);
    store_failing_set(f, (store_failing_plan){.nth = nth, .code = ERR_ACCESS, .for_good = true});
    int rc = runlog_commit_attempt(log, n, &m, NULL, NULL, NULL);
    if (rc == 0) break;
    before = nth;
    store_failing_set(f, (store_failing_plan){0});
  }
  assert_true(before > 0 && before < 10);
  assert_int_equal(p.s->ops->head(p.s, head, &(store_object){0}, NULL), ERR_NOENT);
  store_failing_set(f, (store_failing_plan){0});
  assert_int_equal(runlog_snapshot(log, NULL), 0); /* not due, but the head is */
  assert_int_equal(head_of(&p).commit, n + 1);
  manifest_free(&m);
  runlog_close(log);
  store_failing_free(f);
  place_free(&p);
}

#define BOTH(f) IN_BOTH_WORLDS(f, NULL, NULL)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(the_head_names_the_newest_commit_and_its_digest),
      BOTH(the_head_is_never_put_to_a_lower_number),
      BOTH(entries_that_were_lost_at_the_end_are_noticed),
      BOTH(a_newest_commit_that_was_exchanged_is_noticed),
      BOTH(a_torn_head_costs_requests_and_nothing_else),
      BOTH(the_head_of_1_0_is_gone_by_as_far_as_it_goes),
      BOTH(a_head_that_cannot_be_put_fails_no_commit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
