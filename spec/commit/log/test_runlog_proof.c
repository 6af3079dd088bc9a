/* The sums of a log: whatever happens to a byte of it by accident is noticed, readers go on where
 * they can, and nobody appends to it. What 1.0 wrote has no sums, and is gone on with. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "world.h"

typedef struct place {
  world *w;
  store *s;
  runlog *log;
} place;

static place place_new(void **state) {
  place p = {.w = world_new(*state ? "file" : "mem", world_io())};
  p.s = p.w->env.store;
  p.log = world_begin(p.s, "g", "one");
  return p;
}

static void place_free(place *p) {
  runlog_close(p->log);
  world_free(p->w);
}

/* The raw text of entry `n`, for the caller to free. */
static char *text_of(place *p, uint64_t n) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, 1 << 24);
  assert_int_equal(runlog_key_entry("g", n, key, NULL), 0);
  assert_int_equal(p->s->ops->get(p->s, key, &text, NULL), 0);
  return buf_take(&text);
}

static void put_text(place *p, uint64_t n, const char *text) {
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_entry("g", n, key, NULL), 0);
  assert_int_equal(p->s->ops->put(p->s, key, text, strlen(text), STORE_REPLACE, NULL), 0);
}

static char *sum_of(const char *text, size_t len) {
  digest d;
  char *hex = calloc(1, HASH_HEX_MAX);
  assert_int_equal(hash_bytes(HASH_XXH3_128, text, len, &d, NULL), 0);
  digest_hex(&d, hex);
  return hex;
}

static const char *member(json_t *entry, const char *name) {
  return json_string_value(json_object_get(entry, name));
}

/* As docs/format.md says it, and made by other code than the engine's. */
static void each_entry_has_the_digest_of_its_text_and_of_the_one_before(void **state) {
  place p = place_new(state);
  world_commit(p.log, "a");
  world_commit(p.log, "b");
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  world_commit(p.log, "c");
  char *prev = NULL;
  for (uint64_t n = 0; n < runlog_view(p.log)->next; n++) {
    char *text = text_of(&p, n);
    char *end = strstr(text, ",\"sum\":\"");
    json_t *entry = json_loads(text, 0, NULL);
    assert_non_null(entry);
    assert_non_null(end);
    assert_int_equal(strlen(end), strlen(",\"sum\":\"") + 32 + strlen("\"}"));
    char *sum = sum_of(text, (size_t)(end - text));
    assert_string_equal(member(entry, "sum"), sum);
    if (n == 0)
      assert_null(member(entry, "prev"));
    else
      assert_string_equal(member(entry, "prev"), prev);
    free(prev);
    prev = sum_of(text, strlen(text));
    free(sum);
    free(text);
    json_decref(entry);
  }
  free(prev);
  place_free(&p);
}

/* What a reader and a writer make of the log as it stands: 0: nothing was noticed. */
static int opened(place *p, bool *readable) {
  p->s->ops->remove(p->s, "g/.ckpt/head", NULL); /* it would prove more: test_runlog_head.c */
  runlog *log = NULL;
  runlog_writer who = {.launch = "two", .host = "h"};
  err e = {0};
  int rc = runlog_open(p->s, "g", &log, &e);
  *readable = rc == 0;
  if (rc < 0) return rc;
  rc = runlog_check_damage(log, &e);
  if (rc < 0 && !strstr(e.text, "entry ")) fail_msg("no entry is named: %s", e.text);
  uint64_t next = runlog_view(log)->next;
  if (rc < 0) {
    int made = runlog_begin(log, "one", &who, true, NULL);
    int guest = runlog_end(log, NULL, NULL, NULL, NULL);
    if (made != ERR_CORRUPT || guest != ERR_CORRUPT)
      fail_msg("%d, %d: it was written to", made, guest);
    assert_int_equal(runlog_view(log)->next, next);
  }
  runlog_close(log);
  return rc;
}

static void each_byte_that_was_changed_is_noticed(void **state) {
  place p = place_new(state);
  uint64_t attempt;
  world_commit(p.log, "a");
  world_commit(p.log, "a");
  assert_int_equal(runlog_drop(p.log, 3, "keep", "why", NULL, NULL, NULL), 0);
  assert_int_equal(runlog_attempt_begin(p.log, "b", &attempt, NULL), 0);
  assert_int_equal(runlog_sweep(p.log, attempt, NULL), 0);
  bool readable;
  assert_int_equal(opened(&p, &readable), 0);
  size_t flips = 0, read = 0;
  for (uint64_t n = 0; n < runlog_view(p.log)->next; n++) {
    char *text = text_of(&p, n);
    for (size_t i = 0; text[i]; i++) {
      char was = text[i];
      text[i] = (char)(was ^ (1 << flips++ % 7));
      if (!text[i]) text[i] = 1;
      put_text(&p, n, text);
      if (opened(&p, &readable) == 0) fail_msg("entry %d, byte %zu: %s", (int)n, i, text);
      read += readable;
      text[i] = was;
    }
    put_text(&p, n, text);
    free(text);
  }
  assert_int_equal(opened(&p, &readable), 0);
  assert_true(read > flips / 3); /* most are read all the same */
  place_free(&p);
}

static void an_entry_of_another_moment_is_noticed(void **state) {
  place p = place_new(state);
  world_commit(p.log, "a");
  char *old = text_of(&p, 3);
  char *other = strdup(old);
  memcpy(strstr(other, "\"nonce\":\"") + 9, "00000000", 8);
  *strstr(other, ",\"sum\"") = 0;
  char *sum = sum_of(other, strlen(other));
  char *whole = calloc(1, strlen(old) + 1);
  snprintf(whole, strlen(old) + 1, "%s,\"sum\":\"%s\"}", other, sum);
  bool readable;
  put_text(&p, 3, whole);
  assert_int_equal(opened(&p, &readable), 0); /* nothing follows it that could tell */
  put_text(&p, 3, old);
  world_commit(p.log, "b");
  put_text(&p, 3, whole);
  assert_int_equal(opened(&p, &readable), ERR_CORRUPT);
  assert_true(readable);
  free(old), free(other), free(sum), free(whole);
  place_free(&p);
}

/* As 1.0 wrote it. */
static void strip(place *p, uint64_t n) {
  char *text = text_of(p, n);
  json_t *entry = json_loads(text, 0, NULL);
  free(text);
  json_object_del(entry, "sum");
  json_object_del(entry, "prev");
  text = json_dumps(entry, JSON_COMPACT | JSON_SORT_KEYS);
  put_text(p, n, text);
  free(text);
  json_decref(entry);
}

static void what_1_0_wrote_is_unproven_and_gone_on_with(void **state) {
  place p = place_new(state);
  bool readable;
  world_commit(p.log, "a");
  for (uint64_t n = 0; n < runlog_view(p.log)->next; n++) strip(&p, n);
  assert_int_equal(opened(&p, &readable), 0);
  runlog_close(p.log);
  assert_int_equal(runlog_open(p.s, "g", &p.log, NULL), 0);
  assert_int_equal(p.log->unproven, 4);
  runlog_writer who = {.launch = "two", .host = "h"};
  assert_int_equal(runlog_begin(p.log, "one", &who, true, NULL), 0);
  world_commit(p.log, "b");
  world_commit(p.log, "c");
  assert_int_equal(opened(&p, &readable), 0);
  strip(&p, 3); /* the same bytes as before: its follower knows them */
  assert_int_equal(opened(&p, &readable), 0);
  strip(&p, runlog_view(p.log)->next - 1); /* 1.0 comes once more */
  assert_int_equal(opened(&p, &readable), 0);
  strip(&p, 4);
  assert_int_equal(opened(&p, &readable), ERR_CORRUPT); /* not what 5 follows */
  place_free(&p);
}

/* A writer that has lost a race makes its entry anew, behind what it has read by then. */
static void an_entry_that_is_planned_again_follows_what_was_there_first(void **state) {
  place p = place_new(state);
  runlog *guest = NULL;
  bool readable;
  world_commit(p.log, "a");
  world_commit(p.log, "b");
  assert_int_equal(runlog_open(p.s, "g", &guest, NULL), 0);
  world_commit(p.log, "c");
  assert_int_equal(runlog_mark(guest, 3, true, NULL, NULL), 0);
  world_commit(p.log, "d");
  assert_int_equal(opened(&p, &readable), 0);
  runlog_close(guest);
  place_free(&p);
}

/* One answer may have another byte: the second one is believed. */
static void damage_on_the_way_is_asked_for_again(void **state) {
  (void)state;
  buf text;
  buf_init(&text, 1000);
  buf_str(&text, "{\"a\":1}");
  assert_int_equal(runlog_seal(&text, NULL), 0);
  json_t *entry = json_loads(text.data, 0, NULL);
  assert_true(runlog_sum_holds(entry, &text));
  text.data[5] = '2';
  assert_false(runlog_sum_holds(entry, &text));
  json_decref(entry);
  buf_free(&text);
}

#define BOTH(f) IN_BOTH_WORLDS(f, NULL, NULL)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(each_entry_has_the_digest_of_its_text_and_of_the_one_before),
      {"each byte that was changed is noticed", each_byte_that_was_changed_is_noticed, NULL, NULL,
       NULL},
      BOTH(an_entry_of_another_moment_is_noticed),
      BOTH(what_1_0_wrote_is_unproven_and_gone_on_with),
      BOTH(an_entry_that_is_planned_again_follows_what_was_there_first),
      cmocka_unit_test(damage_on_the_way_is_asked_for_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
