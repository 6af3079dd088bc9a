#include "store_replace.h"

#include "with_cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_place.h"

enum { MIB = 1 << 20, RACERS = 8, STEPS = 10 };

static store *store_of(void **state) {
  return ((store_place *)*state)->s;
}

/* ---- streams ---- */

static store_writer *begin(store *s, const char *key, uint64_t size) {
  store_writer *w = NULL;
  assert_int_equal(s->ops->write_open(s, key, size, STORE_OVER, NULL, &w, NULL), 0);
  return w;
}

static void stream_over(store *s, const char *key, const char *data, size_t len) {
  store_writer *w = begin(s, key, len);
  for (size_t at = 0; at < len; at += MIB)
    assert_int_equal(s->ops->write(w, data + at, len - at < MIB ? len - at : MIB, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), 0);
}

static void must_be(store *s, const char *key, const char *data, size_t len) {
  char *got = malloc(len + 10);
  assert_non_null(got);
  assert_int_equal(s->ops->read(s, key, 0, got, len + 10, NULL), len);
  assert_memory_equal(got, data, len);
  free(got);
}

static void a_stream_over_an_object_replaces_it_whatever_the_sizes(void **state) {
  store *s = store_of(state);
  const size_t sizes[] = {5, 9 * MIB, 0, 17 * MIB + 3, 2};
  char *data = malloc(18 * MIB);
  assert_non_null(data);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    memset(data, 'a' + (int)i, 18 * MIB);
    stream_over(s, "d/k", data, sizes[i]);
    must_be(s, "d/k", data, sizes[i]);
  }
  store_must_list(s, "", false, "d/k");
  free(data);
}

static void the_old_object_stays_until_the_stream_is_closed(void **state) {
  store *s = store_of(state);
  assert_int_equal(store_put_text(s, "k", "old", STORE_IF_ABSENT), 0);
  store_writer *w = begin(s, "k", 3);
  assert_int_equal(s->ops->write(w, "new", 3, NULL), 0);
  store_must_hold(s, "k", "old");
  assert_int_equal(s->ops->write_close(w, NULL), 0);
  store_must_hold(s, "k", "new");
}

static void a_stream_that_is_given_up_leaves_the_old_object(void **state) {
  store *s = store_of(state);
  assert_int_equal(store_put_text(s, "k", "old", STORE_IF_ABSENT), 0);
  store_writer *w = begin(s, "k", 3);
  assert_int_equal(s->ops->write(w, "ne", 2, NULL), 0);
  s->ops->write_abort(w);
  store_must_hold(s, "k", "old");
  w = begin(s, "k", 3);
  assert_int_equal(s->ops->write(w, "ne", 2, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), ERR_INVAL);
  store_must_hold(s, "k", "old");
}

/* ---- tags ---- */

static void get_tagged(store *s, const char *key, const char *expected, char tag[STORE_TAG_MAX]) {
  buf text;
  buf_init(&text, 1000);
  assert_int_equal(s->ops->get_tagged(s, key, &text, tag, NULL), 0);
  assert_string_equal(text.data ? text.data : "", expected);
  assert_true(*tag && strlen(tag) < STORE_TAG_MAX);
  buf_free(&text);
}

static void an_object_is_replaced_by_who_saw_it_last_and_by_nobody_else(void **state) {
  store *s = store_of(state);
  char first[STORE_TAG_MAX], second[STORE_TAG_MAX];
  assert_int_equal(store_put_text(s, "d/k", "one", STORE_IF_ABSENT), 0);
  get_tagged(s, "d/k", "one", first);
  assert_int_equal(s->ops->replace_if(s, "d/k", "two", 3, first, NULL), 0);
  assert_int_equal(s->ops->replace_if(s, "d/k", "three", 5, first, NULL), ERR_CONFLICT);
  store_must_hold(s, "d/k", "two");
  get_tagged(s, "d/k", "two", second);
  assert_string_not_equal(first, second);
  assert_int_equal(store_put_text(s, "d/k", "put", STORE_REPLACE), 0);
  assert_int_equal(s->ops->replace_if(s, "d/k", "three", 5, second, NULL), ERR_CONFLICT);
  get_tagged(s, "d/k", "put", second);
  assert_int_equal(s->ops->replace_if(s, "d/k", "", 0, second, NULL), 0);
  store_must_hold(s, "d/k", "");
  store_must_list(s, "", false, "d/k");
}

static void what_is_not_there_is_not_replaced(void **state) {
  store *s = store_of(state);
  char tag[STORE_TAG_MAX];
  buf none;
  buf_init(&none, 10);
  assert_int_equal(s->ops->get_tagged(s, "k", &none, tag, NULL), ERR_NOENT);
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  get_tagged(s, "k", "x", tag);
  assert_int_equal(s->ops->remove(s, "k", NULL), 0);
  assert_int_equal(s->ops->replace_if(s, "k", "y", 1, tag, NULL), ERR_NOENT);
  assert_int_equal(s->ops->replace_if(s, "a//b", "y", 1, tag, NULL), ERR_INVAL);
  assert_false(store_holds(s, "k"));
  buf_free(&none);
}

typedef struct counter {
  pthread_t thread;
  store *s;
  int failed;
} counter;

static int count_up(store *s) {
  char tag[STORE_TAG_MAX], text[32];
  buf now;
  buf_init(&now, 100);
  int rc = s->ops->get_tagged(s, "n", &now, tag, NULL);
  if (rc == 0) {
    int len = snprintf(text, sizeof text, "%d", atoi(now.data) + 1);
    rc = s->ops->replace_if(s, "n", text, (size_t)len, tag, NULL);
  }
  buf_free(&now);
  return rc;
}

static void *count(void *arg) {
  counter *c = arg;
  for (int i = 0; i < STEPS && !c->failed; i++) {
    int rc = ERR_CONFLICT;
    while (rc == ERR_CONFLICT) rc = count_up(c->s);
    c->failed = rc;
  }
  return NULL;
}

/* Each has a handle of its own, as processes have. */
static void no_update_is_lost_among_many_who_replace(void **state) {
  store_place *p = *state;
  counter all[RACERS];
  char expected[32];
  assert_int_equal(store_put_text(p->s, "n", "0", STORE_IF_ABSENT), 0);
  for (int i = 0; i < RACERS; i++) {
    all[i] = (counter){0};
    assert_int_equal(store_open(&p->where, p->s->io, NULL, &all[i].s, NULL), 0);
    assert_int_equal(pthread_create(&all[i].thread, NULL, count, &all[i]), 0);
  }
  for (int i = 0; i < RACERS; i++) {
    pthread_join(all[i].thread, NULL);
    assert_int_equal(all[i].failed, 0);
    store_close(all[i].s);
  }
  snprintf(expected, sizeof expected, "%d", RACERS * STEPS);
  store_must_hold(p->s, "n", expected);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int store_replace_suite(const char *scheme) {
  const struct CMUnitTest promises[] = {
      PROMISE(a_stream_over_an_object_replaces_it_whatever_the_sizes),
      PROMISE(the_old_object_stays_until_the_stream_is_closed),
      PROMISE(a_stream_that_is_given_up_leaves_the_old_object),
      PROMISE(an_object_is_replaced_by_who_saw_it_last_and_by_nobody_else),
      PROMISE(what_is_not_there_is_not_replaced),
      PROMISE(no_update_is_lost_among_many_who_replace),
  };
  char name[40];
  store_place_scheme = scheme;
  snprintf(name, sizeof name, "store_replace_%s", scheme);
  return cmocka_run_group_tests_name(name, promises, NULL, NULL);
}
