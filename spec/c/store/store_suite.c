#include "store_suite.h"

#include "with_cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_place.h"
#include "tmpdir.h"

enum { RACERS = 16, ROUNDS = 5, MIB = 1 << 20 };

static store *store_of(void **state) {
  return ((store_place *)*state)->s;
}

/* ---- what comes in comes out ---- */

static void an_object_of_any_size_comes_back_byte_by_byte(void **state) {
  store *s = store_of(state);
  const size_t sizes[] = {0, 1, 4095, 4096, 4097, 3 * MIB + 17};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char key[32], *data = make_pattern(sizes[i], (unsigned)i);
    snprintf(key, sizeof key, "d/%zu", sizes[i]);
    assert_int_equal(s->ops->put(s, key, data, sizes[i], STORE_IF_ABSENT, NULL), 0);
    buf got;
    buf_init(&got, 4 * MIB);
    assert_int_equal(s->ops->get(s, key, &got, NULL), 0);
    assert_int_equal(got.len, sizes[i]);
    if (sizes[i]) assert_memory_equal(got.data, data, sizes[i]);
    store_object o;
    assert_int_equal(s->ops->head(s, key, &o, NULL), 0);
    assert_int_equal(o.size, sizes[i]);
    buf_free(&got);
    free(data);
  }
}

static void a_mark_stays_with_its_object(void **state) {
  store *s = store_of(state);
  static const char mark[] = "0123456789abcdef0123456789abcdef";
  store_object o;
  store_writer *w = NULL;
  char *large = make_pattern(9 * MIB, 3);
  assert_int_equal(store_put_marked(s, "d/small", "x", 1, STORE_IF_ABSENT, mark, NULL), 0);
  assert_int_equal(store_put_marked(s, "d/none", "x", 1, STORE_IF_ABSENT, NULL, NULL), 0);
  for (size_t len = 2; len <= 9 * MIB; len += 9 * MIB - 2) {
    assert_int_equal(s->ops->write_open(s, len == 2 ? "d/two" : "d/parts", len, 0, NULL, &w, NULL),
                     0);
    store_write_mark(w, mark);
    assert_int_equal(s->ops->write(w, large, len, NULL), 0);
    assert_int_equal(s->ops->write_close(w, NULL), 0);
  }
  free(large);
  static const char *const keys[] = {"d/small", "d/two", "d/parts", "d/none"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    assert_int_equal(s->ops->head(s, keys[i], &o, NULL), 0);
    assert_string_equal(o.mark, s->ops->put_marked && i < 3 ? mark : "");
  }
}

static void a_streamed_object_of_any_size_comes_back_byte_by_byte(void **state) {
  store *s = store_of(state);
  const size_t sizes[] = {0, 1, 8 * MIB + 1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char key[32], *data = make_pattern(sizes[i], 7), *got = malloc(sizes[i] + 100);
    snprintf(key, sizeof key, "u/v/%zu", sizes[i]);
    assert_int_equal(store_stream(s, key, data, sizes[i], 1000003, false), 0);
    assert_int_equal(s->ops->read(s, key, 0, got, sizes[i] + 100, NULL), sizes[i]);
    assert_memory_equal(got, data, sizes[i]);
    free(data);
    free(got);
  }
}

static void a_read_is_short_only_at_the_end(void **state) {
  store *s = store_of(state);
  char to[8] = "";
  assert_int_equal(store_put_text(s, "k", "0123456789", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->read(s, "k", 0, to, 4, NULL), 4);
  assert_memory_equal(to, "0123", 4);
  assert_int_equal(s->ops->read(s, "k", 7, to, 8, NULL), 3);
  assert_memory_equal(to, "789", 3);
  assert_int_equal(s->ops->read(s, "k", 3, to, 0, NULL), 0);
  assert_int_equal(s->ops->read(s, "k", 10, to, 8, NULL), 0);
  assert_int_equal(s->ops->read(s, "k", 11, to, 8, NULL), 0);
  assert_int_equal(s->ops->read(s, "k", INT64_MAX, to, 8, NULL), 0);
  assert_int_equal(s->ops->read(s, "k", UINT64_MAX, to, 8, NULL), 0);
}

static void a_get_over_the_cap_is_refused_and_the_buffer_is_as_before(void **state) {
  store *s = store_of(state);
  assert_int_equal(store_put_text(s, "k", "0123456789", STORE_IF_ABSENT), 0);
  err e = {0};
  buf b;
  buf_init(&b, 11);
  buf_str(&b, "ab");
  assert_int_equal(s->ops->get(s, "k", &b, &e), ERR_LIMIT);
  assert_int_equal(e.code, ERR_LIMIT);
  assert_string_equal(b.data, "ab");
  assert_int_equal(s->ops->get(s, "absent", &b, &e), ERR_NOENT);
  assert_string_equal(b.data, "ab");
  buf_free(&b);
  buf_init(&b, 12);
  buf_str(&b, "ab");
  assert_int_equal(s->ops->get(s, "k", &b, NULL), 0);
  assert_string_equal(b.data, "ab0123456789");
  buf_free(&b);
}

static void many_objects_are_told_each_for_itself(void **state) {
  enum { MANY = 200, LARGE = 3 << 20 };
  store *s = store_of(state);
  static store_ask asks[MANY];
  static char keys[MANY][32];
  char *large = calloc(1, LARGE + 1);
  assert_non_null(large);
  memset(large, 'x', LARGE);
  for (int i = 0; i < MANY; i++) {
    snprintf(keys[i], sizeof keys[i], "d/%d", i);
    asks[i] = (store_ask){.key = keys[i]};
    buf_init(&asks[i].out, i == 7 ? 3 : LARGE);
    if (i % 3 != 2) assert_int_equal(store_put_text(s, keys[i], keys[i], STORE_IF_ABSENT), 0);
  }
  assert_int_equal(s->ops->put(s, "d/9", large, LARGE, STORE_REPLACE, NULL), 0);
  asks[10].key = "a//b";
  buf_str(&asks[12].out, "before ");
  store_get_many(s, asks, MANY);
  for (int i = 0; i < MANY; i++) {
    int want = i == 7 ? 0 : i == 10 ? ERR_INVAL : i % 3 == 2 ? ERR_NOENT : 0;
    if (asks[i].rc != want) fail_msg("object %d: %d, %s", i, asks[i].rc, asks[i].why.text);
    if (want == 0 && i != 9 && i != 12) assert_string_equal(asks[i].out.data, keys[i]);
    if (i == 9) assert_int_equal(asks[i].out.len, LARGE);
    if (i == 12) assert_string_equal(asks[i].out.data, "before d/12");
    if (want != 0) assert_int_equal(asks[i].out.len, 0);
    buf_free(&asks[i].out);
  }
  assert_int_equal(s->ops->remove(s, "d/9", NULL), 0);
  asks[0] = (store_ask){.key = "d/16"};
  asks[1] = (store_ask){.key = "d/13"};
  buf_init(&asks[0].out, 3);
  buf_init(&asks[1].out, 4);
  store_get_many(s, asks, 2);
  assert_int_equal(asks[0].rc, ERR_LIMIT);
  assert_int_equal(asks[1].rc, 0);
  buf_free(&asks[0].out);
  buf_free(&asks[1].out);
  free(large);
}

static void what_is_absent_is_noent(void **state) {
  store *s = store_of(state);
  assert_false(store_holds(s, "x"));
  assert_int_equal(store_put_text(s, "a/b", "t", STORE_IF_ABSENT), 0);
  const char *absent[] = {"x", "a", "a/x", "a/b/c", "a/b/c/d"};
  for (size_t i = 0; i < 5; i++) {
    err e = {0};
    char to[4];
    store_object o;
    buf b;
    buf_init(&b, 100);
    assert_int_equal(s->ops->get(s, absent[i], &b, &e), ERR_NOENT);
    assert_int_equal(e.code, ERR_NOENT);
    assert_non_null(strstr(e.text, absent[i]));
    assert_int_equal(s->ops->read(s, absent[i], 0, to, 4, &e), ERR_NOENT);
    assert_int_equal(s->ops->head(s, absent[i], &o, &e), ERR_NOENT);
    buf_free(&b);
  }
}

static void a_head_tells_the_time_of_the_write(void **state) {
  store *s = store_of(state);
  const int64_t minute = 60 * INT64_C(1000000000);
  int64_t now = s->io->now(s->io, IO_WALL);
  store_object o;
  assert_int_equal(store_put_text(s, "k", "t", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->head(s, "k", &o, NULL), 0);
  assert_true(o.mtime_ns > now - minute && o.mtime_ns < now + minute);
}

/* ---- who may write ---- */

static void a_put_if_absent_never_replaces(void **state) {
  store *s = store_of(state);
  err e = {0};
  assert_int_equal(store_put_text(s, "d/k", "first", STORE_IF_ABSENT), 0);
  assert_int_equal(store_put_text(s, "d/k", "second", STORE_IF_ABSENT), ERR_EXISTS);
  assert_int_equal(s->ops->put(s, "d/k", "", 0, STORE_IF_ABSENT, &e), ERR_EXISTS);
  assert_int_equal(e.code, ERR_EXISTS);
  assert_non_null(strstr(e.text, "d/k"));
  assert_int_equal(store_stream(s, "d/k", "third", 5, 2, false), ERR_EXISTS);
  store_must_hold(s, "d/k", "first");
  store_must_list(s, "", false, "d/k");
}

static void a_put_between_open_and_close_of_a_stream_wins(void **state) {
  store *s = store_of(state);
  store_writer *w;
  assert_int_equal(s->ops->write_open(s, "k", 4, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "late", 4, NULL), 0);
  assert_int_equal(store_put_text(s, "k", "early", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->write_close(w, NULL), ERR_EXISTS);
  store_must_hold(s, "k", "early");
  store_must_list(s, "", false, "k");
}

static void a_replace_makes_and_replaces(void **state) {
  store *s = store_of(state);
  assert_int_equal(store_put_text(s, "d/k", "first", STORE_REPLACE), 0);
  store_must_hold(s, "d/k", "first");
  assert_int_equal(store_put_text(s, "d/k", "2", STORE_REPLACE), 0);
  store_must_hold(s, "d/k", "2");
  store_must_list(s, "", false, "d/k");
}

typedef struct racer {
  pthread_t thread;
  pthread_barrier_t *start;
  store *s;
  const char *key;
  int id, rc;
} racer;

static void *race(void *arg) {
  racer *r = arg;
  char text[64];
  snprintf(text, sizeof text, "racer %d", r->id);
  pthread_barrier_wait(r->start);
  r->rc = r->id % 4 == 3 ? store_stream(r->s, r->key, text, strlen(text), 3, false)
                         : store_put_text(r->s, r->key, text, STORE_IF_ABSENT);
  return NULL;
}

/* Each racer has its own handle in every second round: processes share no memory. */
static void exactly_one_of_sixteen_racers_wins(void **state) {
  store_place *p = *state;
  for (int round = 0; round < ROUNDS; round++) {
    racer racers[RACERS];
    pthread_barrier_t start;
    char key[32], expected[64];
    int won = 0, lost = 0;
    snprintf(key, sizeof key, "log/%d/entry", round);
    pthread_barrier_init(&start, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
      racers[i] = (racer){.start = &start, .s = p->s, .key = key, .id = i};
      if (round % 2) assert_int_equal(store_open(&p->where, p->s->io, NULL, &racers[i].s, NULL), 0);
      assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++) {
      pthread_join(racers[i].thread, NULL);
      if (racers[i].rc == 0) snprintf(expected, sizeof expected, "racer %d", i);
      won += racers[i].rc == 0;
      lost += racers[i].rc == ERR_EXISTS;
      if (round % 2) store_close(racers[i].s);
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(won, 1);
    assert_int_equal(lost, RACERS - 1);
    store_must_hold(p->s, key, expected);
  }
}

typedef struct changer {
  store *s;
  volatile int done; /* by __atomic */
} changer;

enum { SHORT = 20000, LONG = 90000 };

static void *change(void *arg) {
  changer *c = arg;
  char *a = malloc(SHORT), *b = malloc(LONG);
  memset(a, 'a', SHORT);
  memset(b, 'b', LONG);
  for (int i = 0; i < 100; i++) {
    c->s->ops->put(c->s, "head", a, SHORT, STORE_REPLACE, NULL);
    c->s->ops->put(c->s, "head", b, LONG, STORE_REPLACE, NULL);
  }
  __atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
  free(a);
  free(b);
  return NULL;
}

static void a_reader_sees_the_old_object_or_the_new_one(void **state) {
  changer c = {.s = store_of(state)};
  assert_int_equal(store_put_text(c.s, "head", "", STORE_IF_ABSENT), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, change, &c), 0);
  while (!__atomic_load_n(&c.done, __ATOMIC_ACQUIRE)) {
    buf b;
    buf_init(&b, 2 * LONG);
    assert_int_equal(c.s->ops->get(c.s, "head", &b, NULL), 0);
    assert_true(b.len == 0 || b.len == SHORT || b.len == LONG);
    char expected = b.len == SHORT ? 'a' : 'b';
    for (size_t i = 0; i < b.len; i++)
      if (b.data[i] != expected) fail_msg("a mixed object");
    buf_free(&b);
  }
  pthread_join(thread, NULL);
  store_must_list(c.s, "", false, "head");
}

/* ---- streaming ---- */

static void nothing_shows_before_write_close(void **state) {
  store *s = store_of(state);
  store_writer *w;
  assert_int_equal(s->ops->write_open(s, "d/k", 4, false, NULL, &w, NULL), 0);
  assert_false(store_holds(s, "d/k"));
  assert_int_equal(s->ops->write(w, "data", 4, NULL), 0);
  assert_false(store_holds(s, "d/k"));
  store_must_list(s, "", false, "");
  store_must_list(s, "", true, "");
  assert_int_equal(s->ops->write_close(w, NULL), 0);
  store_must_hold(s, "d/k", "data");
  store_must_list(s, "", false, "d/k");
}

static void an_abort_leaves_nothing(void **state) {
  store *s = store_of(state);
  store_writer *w;
  assert_int_equal(s->ops->write_open(s, "d/k", 4, false, NULL, &w, NULL), 0);
  s->ops->write_abort(w);
  assert_int_equal(s->ops->write_open(s, "d/k", 4, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "dat", 3, NULL), 0);
  s->ops->write_abort(w);
  assert_false(store_holds(s, "d/k"));
  store_must_list(s, "", false, "");
}

static void another_number_of_bytes_than_announced_makes_nothing(void **state) {
  store *s = store_of(state);
  store_writer *w;
  err e = {0};
  assert_int_equal(s->ops->write_open(s, "less", 4, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "dat", 3, NULL), 0);
  assert_int_equal(s->ops->write_close(w, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "announced"));
  assert_int_equal(s->ops->write_open(s, "none", 4, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), ERR_INVAL);
  assert_int_equal(s->ops->write_open(s, "more", 4, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "data", 4, NULL), 0);
  assert_int_equal(s->ops->write(w, "x", 1, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "announced"));
  assert_int_equal(s->ops->write(w, "", 0, NULL), ERR_INVAL); /* a failure is for good */
  assert_int_equal(s->ops->write_close(w, NULL), ERR_INVAL);
  store_must_list(s, "", false, "");
}

static void streams_do_not_mix(void **state) {
  store *s = store_of(state);
  store_writer *a, *b;
  assert_int_equal(s->ops->write_open(s, "a", 2, false, NULL, &a, NULL), 0);
  assert_int_equal(s->ops->write_open(s, "b", 2, false, NULL, &b, NULL), 0);
  assert_int_equal(s->ops->write(a, "1", 1, NULL), 0);
  assert_int_equal(s->ops->write(b, "3", 1, NULL), 0);
  assert_int_equal(s->ops->write(a, "2", 1, NULL), 0);
  assert_int_equal(s->ops->write(b, "4", 1, NULL), 0);
  assert_int_equal(s->ops->write_close(b, NULL), 0);
  assert_int_equal(s->ops->write_close(a, NULL), 0);
  store_must_hold(s, "a", "12");
  store_must_hold(s, "b", "34");
}

/* ---- listing ---- */

static void put_all(store *s, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; i++)
    assert_int_equal(store_put_text(s, keys[i], "x", STORE_IF_ABSENT), 0);
}

static void a_listing_comes_in_byte_order_of_components(void **state) {
  store *s = store_of(state);
  const char *keys[] = {"ab", "b/\xff", "a!", "a-b/q", "b/A", "a/z", "b/\x01", "a/b/c", "B"};
  put_all(s, keys, 9);
  store_must_list(s, "", false, "B a/b/c a/z a! a-b/q ab b/\x01 b/A b/\xff");
  store_must_list(s, "", true, "B a/ a! a-b/ ab b/");
  store_must_list(s, "a", false, "a/b/c a/z");
  store_must_list(s, "a", true, "a/b/ a/z");
  store_must_list(s, "a/b", true, "a/b/c");
  store_must_list(s, "b", true, "b/\x01 b/A b/\xff");
}

static void a_prefix_with_nothing_below_it_lists_nothing(void **state) {
  store *s = store_of(state);
  store_must_list(s, "", false, "");
  store_must_list(s, "", true, "");
  assert_int_equal(store_put_text(s, "d/e/k", "x", STORE_IF_ABSENT), 0);
  store_must_list(s, "d/e/k", false, "");
  store_must_list(s, "d/e/k/l", true, "");
  store_must_list(s, "d/x", false, "");
  store_must_list(s, "x", true, "");
  store_must_list(s, "d/", false, "!INVAL");
  assert_int_equal(s->ops->remove(s, "d/e/k", NULL), 0);
  store_must_list(s, "", true, "");
  store_must_list(s, "d", true, "");
}

typedef struct stopper {
  int calls, stop_at, with;
} stopper;

static int stop(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  stopper *t = ctx;
  assert_non_null(key);
  assert_int_equal(is_prefix, object == NULL);
  return ++t->calls == t->stop_at ? t->with : 0;
}

static void a_callback_can_stop_a_listing(void **state) {
  store *s = store_of(state);
  const char *keys[] = {"a", "b/c", "b/d", "e"};
  put_all(s, keys, 4);
  const int values[] = {1, 7, ERR_FENCED, ERR_NOENT, ERR_CANCELED};
  for (int i = 0; i < 10; i++) {
    stopper t = {.stop_at = 2, .with = values[i / 2]};
    assert_int_equal(s->ops->list(s, "", i % 2, stop, &t, NULL), values[i / 2]);
    assert_int_equal(t.calls, 2);
  }
}

static int remove_it(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  store *s = ctx;
  return s->ops->remove(s, key, NULL);
}

static void a_callback_may_call_the_store(void **state) {
  store *s = store_of(state);
  const char *keys[] = {"a", "b/c", "b/d", "e"};
  put_all(s, keys, 4);
  assert_int_equal(s->ops->list(s, "", false, remove_it, s, NULL), 0);
  store_must_list(s, "", false, "");
}

/* ---- removing ---- */

static void a_removal_is_idempotent(void **state) {
  store *s = store_of(state);
  assert_int_equal(s->ops->remove(s, "d/k", NULL), 0);
  assert_int_equal(store_put_text(s, "d/k", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->remove(s, "d", NULL), 0); /* a prefix is no object */
  assert_int_equal(s->ops->remove(s, "d/k/l", NULL), 0);
  store_must_hold(s, "d/k", "x");
  assert_int_equal(s->ops->remove(s, "d/k", NULL), 0);
  assert_false(store_holds(s, "d/k"));
  assert_int_equal(s->ops->remove(s, "d/k", NULL), 0);
  assert_int_equal(store_put_text(s, "d/k", "again", STORE_IF_ABSENT), 0);
  store_must_hold(s, "d/k", "again");
}

static void a_prefix_is_removed_with_its_slash(void **state) {
  store *s = store_of(state);
  const char *keys[] = {"r/ckpt-1/a", "r/ckpt-1/b/c", "r/ckpt-1.json", "r/ckpt-10/a", "r/ckpt"};
  put_all(s, keys, 5);
  assert_int_equal(s->ops->remove_prefix(s, "r/ckpt-1", NULL), 0);
  store_must_list(s, "", false, "r/ckpt r/ckpt-1.json r/ckpt-10/a");
  assert_int_equal(s->ops->remove_prefix(s, "r/ckpt-1", NULL), 0);
  assert_int_equal(s->ops->remove_prefix(s, "r/ckpt", NULL), 0); /* an object, nothing below it */
  assert_int_equal(s->ops->remove_prefix(s, "nothing/here", NULL), 0);
  assert_int_equal(s->ops->remove_prefix(s, "r/ckpt/x/y", NULL), 0);
  store_must_list(s, "", false, "r/ckpt r/ckpt-1.json r/ckpt-10/a");
  assert_int_equal(s->ops->remove_prefix(s, "r", NULL), 0);
  store_must_list(s, "", false, "");
}

/* ---- keys ---- */

static int every_call_refuses(store *s, const char *key) {
  const store_ops *o = s->ops;
  store_object object;
  store_writer *w;
  char to[4];
  stopper t = {0};
  buf b;
  buf_init(&b, 100);
  err e = {0};
  int code = o->get(s, key, &b, &e);
  assert_int_equal(e.code, code);
  assert_true(code == ERR_INVAL || code == ERR_LIMIT);
  assert_int_equal(o->read(s, key, 0, to, 4, NULL), code);
  assert_int_equal(o->head(s, key, &object, NULL), code);
  assert_int_equal(o->put(s, key, "x", 1, STORE_IF_ABSENT, NULL), code);
  assert_int_equal(o->put(s, key, "x", 1, STORE_REPLACE, NULL), code);
  if (*key) assert_int_equal(o->list(s, key, false, stop, &t, NULL), code);
  if (*key) assert_int_equal(o->list(s, key, true, stop, &t, NULL), code);
  assert_int_equal(o->remove(s, key, NULL), code);
  assert_int_equal(o->remove_prefix(s, key, NULL), code);
  assert_int_equal(o->write_open(s, key, 1, false, NULL, &w, NULL), code);
  assert_null(w);
  if (o->publish) {
    assert_int_equal(o->write_open(s, key, 1, true, NULL, &w, NULL), code);
    assert_int_equal(o->publish(s, "keep", key, NULL), code);
    assert_int_equal(o->publish(s, key, "to", NULL), code);
  }
  assert_int_equal(store_key_check(key, NULL), code);
  buf_free(&b);
  return code;
}

static void every_call_refuses_what_is_no_key(void **state) {
  store *s = store_of(state);
  assert_int_equal(store_put_text(s, "keep/k", "x", STORE_IF_ABSENT), 0);
  const char *bad[] = {"",    "/",   "/x",   "x/",    ".",  "..",  "../x",         "a/..", "a/../b",
                       "./a", "a/.", "a//b", "a/./b", "//", "a//", "keep/../../x", "keep/"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(every_call_refuses(s, bad[i]), ERR_INVAL);
  char *huge = malloc(1 << 20);
  memset(huge, 'a', 1 << 20);
  huge[(1 << 20) - 1] = 0;
  assert_int_equal(every_call_refuses(s, huge), ERR_LIMIT);
  huge[STORE_KEY_MAX + 1] = 0;
  for (int i = 100; i < STORE_KEY_MAX; i += 100) huge[i] = '/';
  assert_int_equal(every_call_refuses(s, huge), ERR_LIMIT);
  free(huge);
  assert_int_equal(store_key_check(NULL, NULL), ERR_INVAL);
  store_must_list(s, "", false, "keep/k");
}

static void the_longest_key_works(void **state) {
  store *s = store_of(state);
  char key[STORE_KEY_MAX + 1];
  memset(key, 'k', sizeof key);
  for (int i = 200; i < STORE_KEY_MAX - 1; i += 200) key[i] = '/';
  key[STORE_KEY_MAX] = 0;
  assert_int_equal(store_put_text(s, key, "x", STORE_IF_ABSENT), 0);
  store_must_hold(s, key, "x");
  store_must_list(s, "", false, key);
  key[STORE_KEY_MAX - 1] = 'l';
  assert_int_equal(store_stream(s, key, "y", 1, 1, false), 0);
  store_must_hold(s, key, "y");
  key[200] = 0;
  assert_int_equal(s->ops->remove_prefix(s, key, NULL), 0);
  store_must_list(s, "", false, "");
}

static void names_may_have_odd_bytes(void **state) {
  store *s = store_of(state);
  const char *odd[] = {"\n",       "\xff\xfe", "%41%n%s", " ",    "...", ".a",  "a.",
                       "\\",       "a\tb",     "*?[",     "\x7f", "~",   "'\"", ";|",
                       "\xe2\x82", "-rf",      "..a",     "a:b",  "{N}", "..."};
  enum { N = sizeof odd / sizeof *odd - 1 };
  for (int i = 0; i < N; i++) {
    char key[64];
    snprintf(key, sizeof key, "o/%s/%s", odd[i], odd[N - 1 - i]);
    assert_int_equal(store_put_text(s, key, odd[i], STORE_IF_ABSENT), 0);
    store_must_hold(s, key, odd[i]);
    char prefix[64];
    snprintf(prefix, sizeof prefix, "o/%s", odd[i]);
    store_must_list(s, prefix, false, key);
  }
  for (int i = 0; i < N; i++) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "o/%s", odd[i]);
    assert_int_equal(s->ops->remove_prefix(s, prefix, NULL), 0);
  }
  store_must_list(s, "", false, "");
}

/* ---- the handle ---- */

static void opening_makes_nothing_and_the_first_put_makes_the_store(void **state) {
  store *s = store_of(state);
  err e = {0};
  assert_int_equal(s->ops->exists(s, &e), ERR_NOSTORE);
  assert_int_equal(e.code, ERR_NOSTORE);
  assert_int_equal(s->ops->remove(s, "a/b", NULL), 0);
  assert_int_equal(s->ops->remove_prefix(s, "a", NULL), 0);
  store_must_list(s, "", false, "");
  assert_int_equal(s->ops->exists(s, NULL), ERR_NOSTORE);
  assert_int_equal(store_put_text(s, "a/b", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->exists(s, NULL), 0);
}

static void two_handles_see_the_same_objects(void **state) {
  store_place *p = *state;
  store *other;
  assert_int_equal(store_open(&p->where, p->s->io, NULL, &other, NULL), 0);
  assert_int_equal(store_put_text(p->s, "d/k", "x", STORE_IF_ABSENT), 0);
  store_must_hold(other, "d/k", "x");
  assert_int_equal(store_put_text(other, "d/k", "y", STORE_IF_ABSENT), ERR_EXISTS);
  assert_int_equal(other->ops->remove(other, "d/k", NULL), 0);
  assert_false(store_holds(p->s, "d/k"));
  store_close(other);
}

static void a_deeper_uri_is_a_store_of_its_own(void **state) {
  store_place *p = *state;
  uri deeper = p->where;
  store *inner;
  size_t len = strlen(deeper.path);
  snprintf(deeper.path + len, sizeof deeper.path - len, "%sexp/1", len ? "/" : "");
  assert_int_equal(store_open(&deeper, p->s->io, NULL, &inner, NULL), 0);
  assert_int_equal(store_put_text(p->s, "exp/10/k", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(inner->ops->exists(inner, NULL), ERR_NOSTORE);
  assert_int_equal(store_put_text(p->s, "exp/1/a/k", "1", STORE_IF_ABSENT), 0);
  assert_int_equal(inner->ops->exists(inner, NULL), 0);
  store_must_list(inner, "", false, "a/k");
  store_must_list(inner, "", true, "a/");
  assert_int_equal(store_put_text(inner, "a/l", "2", STORE_IF_ABSENT), 0);
  store_must_hold(p->s, "exp/1/a/l", "2");
  assert_int_equal(inner->ops->remove_prefix(inner, "a", NULL), 0);
  store_must_list(p->s, "exp", false, "exp/10/k");
  store_close(inner);
}

static void what_a_store_can_do_is_told(void **state) {
  store *s = store_of(state);
  assert_int_equal(s->ops->version, 1);
  assert_true(store_can(s, STORE_CAP_IF_ABSENT));
  assert_int_equal(store_can(s, STORE_CAP_PUBLISH), s->ops->publish != NULL);
}

static void an_unknown_scheme_is_told_which_ones_there_are(void **state) {
  uri where;
  store *s = (store *)&where;
  err e = {0};
  assert_int_equal(uri_parse("gopher://x/y", &where, NULL), 0);
  assert_int_equal(store_open(&where, io_system(), NULL, &s, &e), ERR_UNSUPPORTED);
  assert_null(s);
  assert_non_null(strstr(e.text, "gopher"));
  assert_non_null(strstr(e.text, "file"));
  assert_non_null(strstr(e.text, "mem"));
  store_close(NULL);
}

static int count(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  ++*(int *)ctx;
  return 0;
}

static void *work(void *arg) {
  racer *r = arg;
  pthread_barrier_wait(r->start);
  for (int i = 0; i < 20 && r->rc == 0; i++) {
    char key[64], own[32];
    int n = 0;
    snprintf(own, sizeof own, "t/%d/%d", r->id, i);
    snprintf(key, sizeof key, "%s/k", own);
    r->rc = store_put_text(r->s, key, key, STORE_IF_ABSENT);
    if (r->rc == 0) r->rc = store_put_text(r->s, "t/shared", key, STORE_REPLACE);
    if (r->rc == 0) r->rc = r->s->ops->list(r->s, own, false, count, &n, NULL);
    if (r->rc == 0 && n != 1) r->rc = ERR_INTERNAL;
    if (r->rc == 0 && i % 2) r->rc = r->s->ops->remove_prefix(r->s, own, NULL);
    if (r->rc == 0 && i % 3 == 0) r->rc = r->s->ops->list(r->s, "t", false, count, &n, NULL);
  }
  return NULL;
}

static void one_handle_serves_many_threads(void **state) {
  enum { THREADS = 8 };
  racer racers[THREADS];
  pthread_barrier_t start;
  int n = 0;
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){.start = &start, .s = store_of(state), .id = i};
    assert_int_equal(pthread_create(&racers[i].thread, NULL, work, &racers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(racers[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(racers[i].rc, 0);
  pthread_barrier_destroy(&start);
  store *s = store_of(state);
  assert_int_equal(s->ops->list(s, "t", false, count, &n, NULL), 0);
  assert_int_equal(n, THREADS * 10 + 1);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int store_suite(const char *scheme) {
  const struct CMUnitTest promises[] = {
      PROMISE(an_object_of_any_size_comes_back_byte_by_byte),
      PROMISE(a_streamed_object_of_any_size_comes_back_byte_by_byte),
      PROMISE(a_mark_stays_with_its_object),
      PROMISE(a_read_is_short_only_at_the_end),
      PROMISE(a_get_over_the_cap_is_refused_and_the_buffer_is_as_before),
      PROMISE(many_objects_are_told_each_for_itself),
      PROMISE(what_is_absent_is_noent),
      PROMISE(a_head_tells_the_time_of_the_write),
      PROMISE(a_put_if_absent_never_replaces),
      PROMISE(a_put_between_open_and_close_of_a_stream_wins),
      PROMISE(a_replace_makes_and_replaces),
      PROMISE(exactly_one_of_sixteen_racers_wins),
      PROMISE(a_reader_sees_the_old_object_or_the_new_one),
      PROMISE(nothing_shows_before_write_close),
      PROMISE(an_abort_leaves_nothing),
      PROMISE(another_number_of_bytes_than_announced_makes_nothing),
      PROMISE(streams_do_not_mix),
      PROMISE(a_listing_comes_in_byte_order_of_components),
      PROMISE(a_prefix_with_nothing_below_it_lists_nothing),
      PROMISE(a_callback_can_stop_a_listing),
      PROMISE(a_callback_may_call_the_store),
      PROMISE(a_removal_is_idempotent),
      PROMISE(a_prefix_is_removed_with_its_slash),
      PROMISE(every_call_refuses_what_is_no_key),
      PROMISE(the_longest_key_works),
      PROMISE(names_may_have_odd_bytes),
      PROMISE(opening_makes_nothing_and_the_first_put_makes_the_store),
      PROMISE(two_handles_see_the_same_objects),
      PROMISE(a_deeper_uri_is_a_store_of_its_own),
      PROMISE(what_a_store_can_do_is_told),
      PROMISE(an_unknown_scheme_is_told_which_ones_there_are),
      PROMISE(one_handle_serves_many_threads),
  };
  char name[32];
  store_place_scheme = scheme;
  snprintf(name, sizeof name, "store_%s", scheme);
  return cmocka_run_group_tests_name(name, promises, NULL, NULL);
}
