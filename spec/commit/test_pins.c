#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/pins.h"
#include "store_lossy.h"
#include "store_place.h"

static store *at(void **state) {
  return ((store_place *)*state)->s;
}

static void put_pin(store *s, const char *prefix, uint64_t commit, int64_t life, char id[33]) {
  pin_request r = {.dir = "last.ckpt.~7", .by = "user", .commit = commit, .life_ns = life};
  err e = {0};
  if (pins_put(s, prefix, &r, id, false, &e) < 0) fail_msg("%s", e.text);
}

static pins list(store *s, const char *prefix) {
  pins p;
  err e = {0};
  if (pins_list(s, prefix, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static int64_t now(store *s) {
  return s->io->now(s->io, IO_WALL);
}

static const int64_t second = 1000000000;

static void a_place_without_pins_has_none(void **state) {
  pins p = list(at(state), "");
  assert_int_equal(p.count, 0);
  pins_free(&p);
}

static void a_pin_is_read_back_as_it_was_put(void **state) {
  char id[33];
  put_pin(at(state), "exp/T1", 7, 60 * second, id);
  pins p = list(at(state), "exp/T1");
  assert_int_equal(p.count, 1);
  assert_string_equal(p.at[0].id, id);
  assert_int_equal(strlen(id), 32);
  assert_string_equal(p.at[0].dir, "last.ckpt.~7");
  assert_string_equal(p.at[0].by, "user");
  assert_int_equal(p.at[0].commit, 7);
  assert_int_equal(p.at[0].expires_ns - p.at[0].created_ns, 60 * second);
  assert_false(pin_expired(&p.at[0], now(at(state))));
  assert_true(pin_expired(&p.at[0], now(at(state)) + 62 * second));
  pins_free(&p);
  p = list(at(state), "");
  assert_int_equal(p.count, 0);
  pins_free(&p);
}

static void a_pin_without_an_end_never_expires(void **state) {
  char id[33];
  put_pin(at(state), "", 7, 0, id);
  pins p = list(at(state), "");
  assert_int_equal(p.at[0].expires_ns, 0);
  assert_false(pin_expired(&p.at[0], INT64_MAX));
  pins_free(&p);
}

static void a_renewed_pin_is_one_pin(void **state) {
  char id[33];
  put_pin(at(state), "", 7, second, id);
  pin_request r = {.dir = "d", .by = "restore", .commit = 7, .life_ns = 1000 * second};
  assert_int_equal(pins_put(at(state), "", &r, id, true, NULL), 0);
  pins p = list(at(state), "");
  assert_int_equal(p.count, 1);
  assert_false(pin_expired(&p.at[0], now(at(state)) + 900 * second));
  pins_free(&p);
}

static void a_removed_pin_is_gone_and_a_wrong_id_is_told(void **state) {
  char a[33], b[33];
  put_pin(at(state), "", 7, 0, a);
  put_pin(at(state), "", 8, 0, b);
  assert_int_equal(pins_remove(at(state), "", a, NULL), 0);
  assert_int_equal(pins_remove(at(state), "", a, NULL), ERR_NOENT);
  assert_int_equal(pins_remove(at(state), "", "", NULL), ERR_NOENT);
  assert_int_equal(pins_remove(at(state), "", "../log/00000000000000000000.json", NULL), ERR_NOENT);
  assert_true(pins_remove(at(state), "", "..", NULL) < 0);
  pins p = list(at(state), "");
  assert_int_equal(p.count, 1);
  assert_int_equal(p.at[0].commit, 8);
  pins_free(&p);
}

static void a_makers_clock_that_is_behind_shortens_no_pin(void **state) {
  store_put_text(
      at(state), ".ckpt/pins/aa",
      "{\"format\":0,\"reader\":0,\"dir\":\"d\",\"commit\":3,\"host\":\"h\",\"by\":\"x\","
      "\"created_ns\":1000,\"expires_ns\":60000001000}",
      STORE_IF_ABSENT);
  pins p = list(at(state), "");
  assert_int_equal(p.count, 1);
  assert_false(pin_expired(&p.at[0], now(at(state)) + 50 * second));
  assert_true(pin_expired(&p.at[0], now(at(state)) + 70 * second));
  pins_free(&p);
}

static void a_makers_clock_that_is_ahead_lengthens_it(void **state) {
  store_put_text(
      at(state), ".ckpt/pins/aa",
      "{\"format\":0,\"reader\":0,\"dir\":\"d\",\"commit\":3,\"host\":\"h\",\"by\":\"x\","
      "\"created_ns\":8000000000000000000,\"expires_ns\":8000000060000000000}",
      STORE_IF_ABSENT);
  pins p = list(at(state), "");
  assert_false(pin_expired(&p.at[0], now(at(state)) + 3600 * second));
  pins_free(&p);
}

static void times_that_make_no_sense_pin_for_ever(void **state) {
  store_put_text(
      at(state), ".ckpt/pins/aa",
      "{\"format\":0,\"reader\":0,\"dir\":\"d\",\"commit\":3,\"host\":\"h\",\"by\":\"x\","
      "\"created_ns\":500,\"expires_ns\":400}",
      STORE_IF_ABSENT);
  pins p = list(at(state), "");
  assert_false(pin_expired(&p.at[0], INT64_MAX - 1));
  pins_free(&p);
}

static void what_nobody_can_read_is_counted_and_named(void **state) {
  static const char *const texts[] = {
      "",
      "{",
      "[]",
      "{}",
      "{\"format\":0,\"reader\":99}",
      "{\"format\":0,\"reader\":0,\"dir\":\"d\",\"commit\":-3,\"host\":\"h\",\"by\":\"x\","
      "\"created_ns\":1}",
      "{\"format\":0,\"reader\":0,\"dir\":7,\"commit\":3,\"host\":\"h\",\"by\":\"x\","
      "\"created_ns\":1}"};
  char key[64], id[33];
  size_t n = sizeof texts / sizeof texts[0];
  for (size_t i = 0; i < n; i++) {
    snprintf(key, sizeof key, ".ckpt/pins/%zu", i);
    store_put_text(at(state), key, texts[i], STORE_IF_ABSENT);
  }
  char *huge = calloc(1, 1 << 20);
  memset(huge, ' ', (1 << 20) - 1);
  store_put_text(at(state), ".ckpt/pins/huge", huge, STORE_IF_ABSENT);
  free(huge);
  put_pin(at(state), "", 7, 0, id);
  pins p = list(at(state), "");
  assert_int_equal(p.count, 1);
  assert_int_equal(p.broken, n + 1);
  assert_non_null(strstr(p.broken_key, ".ckpt/pins/"));
  pins_free(&p);
}

static void a_store_that_does_not_answer_is_no_place_without_pins(void **state) {
  char id[33];
  pins p;
  put_pin(at(state), "", 7, 0, id);
  store_lossy *link = store_lossy_new(at(state), 1, true);
  link->deaf = 1000;
  assert_int_equal(pins_list(&link->base, "", &p, NULL), ERR_IO);
  pins_free(&p);
  store_lossy_free(link);
}

static void held_commits_are_those_with_a_pin_that_counts(void **state) {
  char id[33];
  size_t count;
  put_pin(at(state), "", 7, second, id);
  put_pin(at(state), "", 8, 0, id);
  pins p = list(at(state), "");
  uint64_t *held = pins_held(&p, now(at(state)) + 5 * second, &count);
  assert_int_equal(count, 1);
  assert_int_equal(held[0], 8);
  free(held);
  free(pins_held(&p, INT64_MIN, &count));
  assert_int_equal(count, 2);
  pins_free(&p);
}

/* Else it would hold another commit than it was put for, or end sooner. Where only the name of its
 * sum is another, it is what it was. */
static void a_pin_with_a_byte_changed_may_be_for_any_commit(void **state) {
  char id[33], key[64];
  int passed = 0;
  buf text;
  store *s = at(state);
  put_pin(s, "", 7, 60 * second, id);
  pins was = list(s, "");
  snprintf(key, sizeof key, ".ckpt/pins/%s", id);
  buf_init(&text, 4096);
  assert_int_equal(s->ops->get(s, key, &text, NULL), 0);
  for (size_t i = 0; i < text.len; i++) {
    text.data[i] = (char)(text.data[i] ^ 1 << i % 7);
    assert_int_equal(s->ops->put(s, key, text.data, text.len, STORE_REPLACE, NULL), 0);
    text.data[i] = (char)(text.data[i] ^ 1 << i % 7);
    pins p = list(s, "");
    bool same = p.count == 1 && p.at[0].commit == 7 && p.at[0].expires_ns == was.at[0].expires_ns &&
                p.at[0].created_ns == was.at[0].created_ns;
    if (p.broken != 1 && !same) fail_msg("byte %zu of %s", i, text.data);
    if (p.broken != 1) passed++;
    pins_free(&p);
  }
  assert_int_equal(passed, 3); /* "sum" */
  pins_free(&was);
  buf_free(&text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_place_without_pins_has_none),
      TEST(a_pin_is_read_back_as_it_was_put),
      TEST(a_pin_without_an_end_never_expires),
      TEST(a_renewed_pin_is_one_pin),
      TEST(a_removed_pin_is_gone_and_a_wrong_id_is_told),
      TEST(a_makers_clock_that_is_behind_shortens_no_pin),
      TEST(a_makers_clock_that_is_ahead_lengthens_it),
      TEST(times_that_make_no_sense_pin_for_ever),
      TEST(what_nobody_can_read_is_counted_and_named),
      TEST(a_pin_with_a_byte_changed_may_be_for_any_commit),
      TEST(a_store_that_does_not_answer_is_no_place_without_pins),
      TEST(held_commits_are_those_with_a_pin_that_counts),
  };
  int failed = 0;
  static const char *const schemes[] = {"file", "mem"};
  for (int i = 0; i < 2; i++) {
    store_place_scheme = schemes[i];
    failed += cmocka_run_group_tests_name(schemes[i], tests, NULL, NULL);
  }
  return failed;
}
