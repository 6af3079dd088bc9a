/* Beginning at a snapshot: who does so must know what a reader of the whole log knows, and whoever
 * is misled by a hint must read the log itself. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "log_check.h"
#include "log_read.h"
#include "manifest_make.h"
#include "store_failing.h"
#include "store_lossy.h"
#include "world.h"

typedef struct place {
  world *w;
  store *s;
  runlog *log; /* with a term */
} place;

static place place_new(void **state) {
  place p = {.w = world_new(*state ? "file" : "mem", world_io())};
  p.s = p.w->env.store;
  p.log = world_begin(p.s, "g", "one");
  return p;
}

static void place_free(place *p) {
  size_t entries;
  const char *why = log_check(p->s, "g", &entries);
  if (why) fail_msg("%s", why);
  runlog_close(p->log);
  world_free(p->w);
}

static uint64_t commit_of(runlog *log, const char *unit, int files) {
  uint64_t n, made = 0;
  manifest m;
  err e = {0};
  make_small(&m, unit, runlog_view(log)->next);
  if (files > 1) add_file(&m, "optimizer.pt", 100, 1);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  free(m.metrics);
  m.metrics = strdup("{\"loss\":0.1,\"tiny\":1e-300,\"deep\":[{\"x\":[1,2]}]}");
  runlog_note note = {.reason = "due",
                      .needs = "x/y/",
                      .companions = {.term = 1, .files = 2, .bytes = 3, .root = m.root}};
  int rc = runlog_attempt_begin(log, unit, &n, &e);
  if (rc == 0) rc = runlog_commit_attempt(log, n, &m, &note, &made, &e);
  if (rc < 0) fail_msg("%s", e.text);
  manifest_free(&m);
  return made;
}

static uint64_t commit(runlog *log, const char *unit) {
  return commit_of(log, unit, 1);
}

static void lose_files(runlog *log, uint64_t n) {
  runlog_thinned how = {.newest = 2, .policy = "mine\\", .reason = "two \"newer\""};
  assert_true(names_add(&how.globs, "optim\xff*") && names_add(&how.globs, "%[\"]/"));
  assert_int_equal(runlog_thin(log, n, &how, &(manifest_rest){1, 100}, NULL, NULL, NULL), 0);
  names_free(&how.globs);
}

/* All that there can be. */
static void live_through_everything(place *p) {
  uint64_t a = commit(p->log, "a"), b = commit(p->log, "a"), c = commit(p->log, "b\xff.ckpt");
  uint64_t open;
  assert_int_equal(runlog_attempt_begin(p->log, "swept", &open, NULL), 0);
  assert_int_equal(runlog_sweep(p->log, open, NULL), 0);
  assert_int_equal(runlog_drop(p->log, a, "keep", "only two", NULL, NULL, NULL), 0);
  assert_int_equal(runlog_delete(p->log, a, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_drop(p->log, b, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_mark(p->log, c, true, "it says \"{[\\\" and ends in \\", NULL), 0);
  assert_int_equal(runlog_end(p->log, "over", NULL, NULL, NULL), 0);
  runlog_close(p->log);
  assert_int_equal(runlog_open(p->s, "g", &p->log, NULL), 0);
  runlog_writer who = {.launch = "two", .host = "h\xfe", .state = "/s", .pid = 5, .world = 3};
  memset(who.flags, 'a', sizeof who.flags - 1);
  assert_int_equal(runlog_begin(p->log, "later", &who, false, NULL), 0);
  runlog_close(p->log);
  memset(who.flags, 'b', sizeof who.flags - 1);
  assert_int_equal(runlog_open(p->s, "g", &p->log, NULL), 0);
  assert_int_equal(runlog_begin(p->log, "let in", &who, true, NULL), 0);
  uint64_t d = commit(p->log, "a"), e = commit(p->log, "c");
  assert_int_equal(runlog_mark(p->log, d, true, NULL, NULL), 0);
  assert_int_equal(runlog_tell_numbers(p->log, d, "{\"loss\":0.5}", NULL), 0);
  assert_int_equal(runlog_drop(p->log, e, "x\\\\", "\"", NULL, NULL, NULL), 0);
  assert_int_equal(runlog_attempt_begin(p->log, "open", &open, NULL), 0);
  commit(p->log, "x.~6");
  lose_files(p->log, commit_of(p->log, "thin", 2));
}

/* Opens the log as a reader does; it must know what all entries say. How many it asked for. */
static long gets_to_open(place *p) {
  store_lossy *link = store_lossy_new(p->s, 1, true);
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(&link->base, "g", &log, &e) < 0) fail_msg("%s", e.text);
  runlog_state all = log_read(p->s, "g");
  log_must_equal(runlog_view(log), &all);
  long gets = link->gets;
  runlog_state_free(&all);
  runlog_close(log);
  store_lossy_free(link);
  return gets;
}

static void fill(runlog *log, uint64_t to) {
  while (runlog_view(log)->next < to) commit(log, "last");
}

static void a_reader_that_begins_at_a_snapshot_knows_all(void **state) {
  place p = place_new(state);
  live_through_everything(&p);
  long before = gets_to_open(&p);
  err e = {0};
  if (runlog_snapshot_now(p.log, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(gets_to_open(&p),
                   RUNLOG_SHORT + 4); /* the hint, the epoch, the snapshot, the end */
  assert_true(before > RUNLOG_SHORT + 4);
  commit(p.log, "a");
  commit(p.log, "new");
  assert_int_equal(gets_to_open(&p), RUNLOG_SHORT + 8);
  assert_int_equal(runlog_end(p.log, NULL, NULL, NULL, NULL), 0);
  gets_to_open(&p);
  place_free(&p);
}

static void a_writer_that_began_at_a_snapshot_goes_on_as_ever(void **state) {
  place p = place_new(state);
  live_through_everything(&p);
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  uint64_t mine = 0, open = 0;
  const runlog_state *st = runlog_view(p.log);
  for (size_t i = 0; i < st->attempt_count; i++)
    if (st->attempts[i].fate == RUNLOG_OPEN) open = st->attempts[i].n;
  runlog *later = NULL;
  runlog_writer who = {.launch = "three", .host = "h"};
  assert_int_equal(runlog_open(p.s, "g", &later, NULL), 0);
  assert_int_equal(runlog_begin(later, "later", &who, false, NULL), 0);
  assert_int_equal(runlog_adopt(later, open, NULL), 0);
  assert_int_equal(runlog_attempt_begin(later, "a", &mine, NULL), 0);
  assert_string_not_equal(runlog_find_attempt(runlog_view(later), mine)->dir, "a");
  assert_int_equal(runlog_attempt_begin(later, "fresh", &mine, NULL), 0);
  assert_string_equal(runlog_find_attempt(runlog_view(later), mine)->dir, "fresh");
  const runlog_commit *newest = runlog_newest(runlog_view(later), NULL);
  assert_int_equal(runlog_drop(later, newest->n, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_refresh(p.log, NULL), ERR_FENCED);
  runlog_close(later);
  gets_to_open(&p);
  place_free(&p);
}

static void snapshots_come_as_the_log_grows_and_bound_what_is_asked_for(void **state) {
  place p = place_new(state);
  uint64_t made = 0, last = RUNLOG_NONE;
  for (int i = 0; i < 1000; i++) {
    commit(p.log, "last");
    assert_int_equal(runlog_snapshot(p.log, NULL), 0);
    made += runlog_view(p.log)->snapshot != last;
    last = runlog_view(p.log)->snapshot;
  }
  assert_int_equal(made, 2000 / (RUNLOG_SNAPSHOT_EACH + 1));
  assert_true(gets_to_open(&p) <= RUNLOG_SHORT + 4 + RUNLOG_SNAPSHOT_EACH);
  place_free(&p);
}

static void a_short_log_is_read_with_a_look_at_the_hint(void **state) {
  place p = place_new(state);
  commit(p.log, "a");
  assert_int_equal(gets_to_open(&p), 7);
  assert_int_equal(runlog_snapshot(p.log, NULL), 0);
  assert_int_equal(runlog_view(p.log)->snapshot, RUNLOG_NONE); /* not due */
  place_free(&p);
}

static void put_hint(place *p, const char *text) {
  assert_int_equal(p->s->ops->put(p->s, "g/.ckpt/head", text, strlen(text), STORE_REPLACE, NULL),
                   0);
}

/* Past the end it would leave a hole, if it were believed. */
static void a_hint_that_is_wrong_costs_requests_and_nothing_else(void **state) {
  place p = place_new(state);
  live_through_everything(&p);
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  commit(p.log, "a");
  uint64_t next = runlog_view(p.log)->next;
  static const char *const texts[] = {
      "",
      "{",
      "[]",
      "{\"format\":1,\"reader\":1}",
      "{\"format\":9,\"reader\":9,\"snapshot\":%d}",
      "{\"format\":1,\"reader\":1,\"snapshot\":-1}",
      "{\"format\":1,\"reader\":1,\"snapshot\":\"9\"}",
      "{\"format\":1,\"reader\":1,\"snapshot\":999999}", /* past the end */
      "{\"format\":1,\"reader\":1,\"snapshot\":0}",      /* behind what was read */
      "{\"format\":1,\"reader\":1,\"snapshot\":10}",     /* no snapshot */
      "{\"format\":1,\"reader\":1,\"snapshot\":9223372036854775807}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    put_hint(&p, texts[i]);
    assert_true(gets_to_open(&p) >= (long)next);
    runlog *log = NULL;
    assert_int_equal(runlog_open(p.s, "g", &log, NULL), 0);
    assert_int_equal(runlog_view(log)->next, next);
    runlog_close(log);
  }
  char *large = calloc(1, 10000);
  memset(large, ' ', 9999);
  put_hint(&p, large);
  gets_to_open(&p);
  free(large);
  assert_int_equal(p.s->ops->remove(p.s, "g/.ckpt/head", NULL), 0);
  gets_to_open(&p);
  place_free(&p);
}

static json_t *get_entry(place *p, uint64_t n) {
  json_t *entry = NULL;
  err e = {0};
  if (runlog_read_entry(p->log, n, &entry, &e) < 0) fail_msg("%s", e.text);
  return entry;
}

/* A writer that appends what it likes, as no writer of ours would. */
static void append_raw(place *p, json_t *entry) {
  char key[STORE_KEY_MAX];
  json_object_del(entry, "sum"); /* they are another entry's */
  json_object_del(entry, "prev");
  char *text = json_dumps(entry, JSON_COMPACT | JSON_SORT_KEYS);
  uint64_t n = (uint64_t)json_integer_value(json_object_get(entry, "n"));
  assert_int_equal(runlog_key_entry("g", n, key, NULL), 0);
  assert_int_equal(store_put_text(p->s, key, text, STORE_IF_ABSENT), 0);
  free(text);
  json_decref(entry);
}

static json_t *digested(json_t *entry) {
  char *text = json_dumps(json_object_get(entry, "state"), JSON_COMPACT | JSON_SORT_KEYS);
  digest sum;
  char hex[HASH_HEX_MAX];
  assert_int_equal(hash_bytes(HASH_XXH3_128, text, strlen(text), &sum, NULL), 0);
  digest_hex(&sum, hex);
  json_object_set_new(entry, "digest", json_string(hex));
  free(text);
  return entry;
}

static void damage(json_t *entry, int how) {
  json_t *state = json_object_get(entry, "state"), *first;
  json_t *attempts = json_object_get(state, "attempts"),
         *commits = json_object_get(state, "commits");
  switch (how) {
  case 0: json_object_set_new(state, "run", json_string("another")); return; /* not digested */
  case 1: json_object_del(entry, "state"); return;
  case 2: json_object_set_new(entry, "state", json_null()); return;
  case 3: json_object_set_new(entry, "through", json_integer(3)); break;
  case 4: json_object_set_new(state, "run", json_string("")); break;
  case 5: json_object_set_new(json_object_get(state, "term"), "n", json_integer(1)); break;
  case 6: json_array_append(attempts, json_array_get(attempts, 0)); break; /* out of order */
  case 7: json_array_append(commits, json_array_get(commits, 0)); break;
  case 8: json_object_set_new(json_array_get(attempts, 0), "dir", json_string("..")); break;
  case 9: json_object_set_new(json_array_get(attempts, 1), "dir", json_string("a")); break;
  case 10: json_object_set_new(json_array_get(commits, 0), "attempt", json_integer(0)); break;
  case 11: json_array_remove(attempts, 0); break; /* its commit stays */
  case 12: json_object_set_new(json_array_get(commits, 0), "root", json_string("00")); break;
  case 13: json_object_set_new(state, "attempts", json_object()); break;
  case 14: json_object_set_new(json_array_get(commits, 1), "n", json_integer(999999)); break;
  case 15: /* all of another log */
    json_array_clear(attempts);
    json_array_clear(commits);
    break;
  case 16: json_object_set_new(json_array_get(commits, 0), "nonce", json_string("another")); break;
  case 17: json_object_set_new(json_array_get(attempts, 0), "nonce", json_string("another")); break;
  case 18: json_object_set_new(state, "nonce", json_string("another")); break;
  case 19:
    first = json_array_get(commits, 0);
    json_object_set_new(json_object_get(first, "drop"), "n", json_integer(1));
    break;
  case 20: json_object_set_new(state, "since", json_integer(999999)); break;
  case 21: /* what is gone of it cannot be known */
    json_object_set_new(json_array_get(commits, 0), "thin",
                        json_pack("{s:[],s:i}", "globs", "newest", 1));
    break;
  default: json_object_set_new(json_array_get(attempts, 0), "unit", json_string("renamed"));
  }
  digested(entry);
}

static void a_snapshot_that_is_damaged_or_breaks_a_rule_is_not_begun_at(void **state) {
  for (int how = 0; how < 23; how++) {
    place p = place_new(state);
    live_through_everything(&p);
    assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
    json_t *entry = get_entry(&p, runlog_view(p.log)->snapshot);
    fill(p.log, runlog_view(p.log)->next + 2);
    uint64_t n = runlog_view(p.log)->next;
    json_object_set_new(entry, "n", json_integer((json_int_t)n));
    json_object_set_new(entry, "through", json_integer((json_int_t)n - 1));
    json_object_set_new(entry, "nonce", json_string("unique"));
    damage(entry, how);
    append_raw(&p, entry);
    char hint[100];
    snprintf(hint, sizeof hint, "{\"format\":1,\"reader\":1,\"snapshot\":%d}", (int)n);
    put_hint(&p, hint);
    runlog *log = NULL;
    assert_int_equal(runlog_open(p.s, "g", &log, NULL), 0);
    if (runlog_view(log)->next != n + 1 || runlog_view(log)->attempt_count != 10)
      fail_msg("damage %d was believed", how);
    assert_string_equal(runlog_view(log)->run_id, "later");
    runlog_close(log);
    runlog_close(p.log);
    world_free(p.w);
  }
}

/* The nonce that entry `n` itself has. */
static void nonce_must_be_its_own(place *p, runlog *log, uint64_t n) {
  json_t *entry = get_entry(p, n);
  const char *nonce = NULL, *own = json_string_value(json_object_get(entry, "nonce"));
  err e = {0};
  if (runlog_nonce(log, n, &nonce, &e) < 0) fail_msg("entry %d: %s", (int)n, e.text);
  assert_string_equal(nonce, own);
  json_decref(entry);
}

static void nonces_must_be_known(place *p, runlog *log) {
  const runlog_state *st = runlog_view(log);
  const char *nonce = NULL;
  nonce_must_be_its_own(p, log, 0);
  for (size_t i = 0; i < st->attempt_count; i++) nonce_must_be_its_own(p, log, st->attempts[i].n);
  for (size_t i = 0; i < st->commit_count; i++) nonce_must_be_its_own(p, log, st->commits[i].n);
  assert_int_equal(runlog_nonce(log, 1, &nonce, NULL), ERR_INVAL); /* a term's */
  assert_int_equal(runlog_nonce(log, 999999, &nonce, NULL), ERR_INVAL);
}

static void whoever_begins_at_a_snapshot_knows_the_nonces_without_the_entries(void **state) {
  place p = place_new(state);
  live_through_everything(&p);
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  store_lossy *link = store_lossy_new(p.s, 1, true);
  runlog *log = NULL;
  assert_int_equal(runlog_open(&link->base, "g", &log, NULL), 0);
  long gets = link->gets;
  assert_int_equal(gets, RUNLOG_SHORT + 4);
  const runlog_state *st = runlog_view(log);
  for (size_t i = 0; i < st->commit_count; i++) assert_true(*st->commits[i].nonce);
  const char *nonce = NULL;
  for (size_t i = 0; i < st->attempt_count; i++)
    assert_int_equal(runlog_nonce(log, st->attempts[i].n, &nonce, NULL), 0);
  assert_int_equal(link->gets, gets);
  runlog_close(log);
  store_lossy_free(link);
  nonces_must_be_known(&p, p.log);
  place_free(&p);
}

/* As 1.0 wrote it. */
static void strip(json_t *entry) {
  json_t *state = json_object_get(entry, "state"), *item;
  size_t i;
  json_object_del(state, "nonce");
  json_array_foreach(json_object_get(state, "attempts"), i, item) json_object_del(item, "nonce");
  json_array_foreach(json_object_get(state, "commits"), i, item) json_object_del(item, "nonce");
  digested(entry);
}

static void where_a_snapshot_has_no_nonces_the_entries_are_asked(void **state) {
  place p = place_new(state);
  char hint[100];
  live_through_everything(&p);
  assert_int_equal(runlog_snapshot_now(p.log, NULL), 0);
  json_t *entry = get_entry(&p, runlog_view(p.log)->snapshot);
  uint64_t n = runlog_view(p.log)->next;
  json_object_set_new(entry, "n", json_integer((json_int_t)n));
  json_object_set_new(entry, "through", json_integer((json_int_t)n - 1));
  json_object_set_new(entry, "nonce", json_string("unique"));
  strip(entry);
  append_raw(&p, entry);
  snprintf(hint, sizeof hint, "{\"format\":1,\"reader\":1,\"snapshot\":%d}", (int)n);
  put_hint(&p, hint);
  runlog *log = NULL;
  assert_int_equal(runlog_open(p.s, "g", &log, NULL), 0);
  const runlog_state *st = runlog_view(log);
  assert_int_equal(st->snapshot, n);
  assert_string_equal(st->commits[st->commit_count - 1].nonce, "");
  nonces_must_be_known(&p, log);
  assert_true(*st->commits[st->commit_count - 1].nonce); /* it was remembered */
  runlog_close(log);
  runlog_close(p.log);
  world_free(p.w);
}

static void a_snapshot_whose_hint_was_lost_is_pointed_at_later(void **state) {
  place p = place_new(state);
  store_failing *f = store_failing_new(p.s);
  runlog *log = NULL;
  runlog_writer who = {.launch = "two", .host = "h"};
  fill(p.log, 40);
  assert_int_equal(runlog_open(store_failing_store(f), "g", &log, NULL), 0);
  assert_int_equal(runlog_begin(log, "world", &who, true, NULL), 0);
  long failed = 0;
  for (long nth = 1; !failed; nth++) { /* until the snapshot is there, and the hint is not */
    store_failing_set(f, (store_failing_plan){.nth = nth, .code = ERR_ACCESS});
    int rc = runlog_snapshot_now(log, NULL);
    failed = rc < 0 && runlog_view(log)->snapshot != RUNLOG_NONE;
    if (nth > 50) fail_msg("the hint is put with no request");
  }
  gets_to_open(&p);
  store_failing_set(f, (store_failing_plan){0});
  assert_int_equal(runlog_snapshot(log, NULL), 0);
  assert_int_equal(gets_to_open(&p), RUNLOG_SHORT + 4);
  runlog_close(log);
  store_failing_free(f);
  place_free(&p);
}

static void a_guest_and_a_fenced_writer_make_none(void **state) {
  place p = place_new(state);
  runlog *guest = NULL;
  assert_int_equal(runlog_open(p.s, "g", &guest, NULL), 0);
  assert_int_equal(runlog_snapshot_now(guest, NULL), ERR_INVAL);
  runlog *newer = world_begin(p.s, "g", "two");
  assert_int_equal(runlog_snapshot_now(p.log, NULL), ERR_FENCED);
  assert_false(store_holds(p.s, "g/.ckpt/head"));
  runlog_close(newer);
  runlog_close(guest);
  place_free(&p);
}

/* A log that cannot have one any more goes on without. */
static void a_state_that_is_too_large_has_none(void **state) {
  place p = place_new(state);
  runlog_state *st = (runlog_state *)runlog_view(p.log);
  commit(p.log, "a");
  size_t size = RUNLOG_SNAPSHOT_MAX;
  char *huge = malloc(size + 1);
  memset(huge, 'x', size);
  huge[size] = 0;
  char *unit = st->attempts[0].unit;
  st->attempts[0].unit = huge;
  assert_int_equal(runlog_snapshot_now(p.log, NULL), ERR_LIMIT);
  st->attempts[0].unit = unit;
  free(huge);
  assert_int_equal(runlog_snapshot(p.log, NULL), 0);
  commit(p.log, "b");
  place_free(&p);
}

static void only_a_snapshot_may_be_larger_than_an_entry(void **state) {
  buf text;
  json_t *entry = NULL;
  for (int i = 0; i < 4; i++) {
    static const int codes[] = {0, ERR_LIMIT, 0, ERR_LIMIT};
    buf_init(&text, RUNLOG_SNAPSHOT_MAX);
    buf_fmt(&text, "{\"type\":\"%s\",\"x\":", i < 2 ? (i ? "term" : "snapshot") : "snapshot");
    if (i < 2) {
      buf_str(&text, "\"");
      while (text.len < RUNLOG_ENTRY_MAX) buf_str(&text, "0123456789");
      buf_str(&text, "\"}");
    } else { /* one that weighs too much */
      buf_str(&text, "[");
      for (int k = 0; k < (i == 2 ? 399000 : 400000); k++) buf_str(&text, k ? ",{}" : "{}");
      buf_str(&text, "]}");
    }
    assert_int_equal(runlog_parse_entry(&text, "x", &entry, NULL), codes[i]);
    if (codes[i] == 0) json_decref(entry);
    buf_free(&text);
  }
}

#define BOTH(f) IN_BOTH_WORLDS(f, NULL, NULL)

static int plan_too_large(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  int bad = 0;
  json_t *entry = runlog_new_entry("sweep", log->term, &bad);
  js_set(entry, "attempt", json_integer((json_int_t)r->number), &bad);
  char *text = malloc(RUNLOG_ENTRY_MAX + 1);
  memset(text, 'x', RUNLOG_ENTRY_MAX);
  text[RUNLOG_ENTRY_MAX] = 0;
  js_set(entry, "note", json_string(text), &bad);
  free(text);
  return runlog_hand_over(entry, bad, out, e);
}

/* A log that has it could not be read any more, by anybody. */
static void an_entry_that_nobody_could_read_is_not_written(void **state) {
  place p = place_new(state);
  uint64_t open;
  err e = {0};
  assert_int_equal(runlog_attempt_begin(p.log, "open", &open, NULL), 0);
  uint64_t next = runlog_view(p.log)->next;
  runlog_request r = {.number = open};
  assert_int_equal(runlog_carry_out(p.log, plan_too_large, &r, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, "larger than"));
  assert_int_equal(runlog_view(p.log)->next, next);
  commit(p.log, "a");
  gets_to_open(&p);
  place_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(a_reader_that_begins_at_a_snapshot_knows_all),
      BOTH(a_writer_that_began_at_a_snapshot_goes_on_as_ever),
      BOTH(snapshots_come_as_the_log_grows_and_bound_what_is_asked_for),
      BOTH(a_short_log_is_read_with_a_look_at_the_hint),
      BOTH(a_hint_that_is_wrong_costs_requests_and_nothing_else),
      cmocka_unit_test(a_snapshot_that_is_damaged_or_breaks_a_rule_is_not_begun_at),
      BOTH(whoever_begins_at_a_snapshot_knows_the_nonces_without_the_entries),
      BOTH(where_a_snapshot_has_no_nonces_the_entries_are_asked),
      BOTH(a_snapshot_whose_hint_was_lost_is_pointed_at_later),
      BOTH(a_guest_and_a_fenced_writer_make_none),
      cmocka_unit_test(a_state_that_is_too_large_has_none),
      cmocka_unit_test(only_a_snapshot_may_be_larger_than_an_entry),
      BOTH(an_entry_that_nobody_could_read_is_not_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
