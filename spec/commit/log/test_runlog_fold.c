#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog.h"

#define RUN "\"type\":\"run\",\"run\":\"r\""
#define TERM(n)                                                                                    \
  "\"type\":\"term\",\"term\":" #n ",\"launch\":\"l" #n "\",\"job\":\"\",\"host\":\"h\",\"boot\":" \
  "\"\",\"state\":\"/s\",\"pid\":" #n ",\"start\":1"
#define ATTEMPT(t, unit, dir)                                                                      \
  "\"type\":\"attempt\",\"term\":" #t ",\"unit\":\"" unit "\",\"dir\":\"" dir "\""
#define ADOPT(t, a) "\"type\":\"adopt\",\"term\":" #t ",\"attempt\":" #a
#define SWEEP(t, a) "\"type\":\"sweep\",\"term\":" #t ",\"attempt\":" #a
#define GUEST_SWEEP(a) "\"type\":\"sweep\",\"attempt\":" #a
#define COMMIT(t, a)                                                                               \
  "\"type\":\"commit\",\"term\":" #t ",\"attempt\":" #a                                            \
  ",\"kind\":\"dir\",\"step\":3,\"files\":2,\"bytes\":9,\"digest\":\"xxh3-128\",\"root\":"         \
  "\"00112233445566778899aabbccddeeff\""

#define DROP(t, c) "\"type\":\"drop\",\"term\":" #t ",\"commit\":" #c
#define GUEST_DROP(c) "\"type\":\"drop\",\"commit\":" #c
#define BAD(t, c) "\"type\":\"bad\",\"term\":" #t ",\"commit\":" #c
#define GUEST_BAD(c) "\"type\":\"bad\",\"commit\":" #c
#define GUEST_GOOD(c) GUEST_BAD(c) ",\"good\":true"
#define END(t) "\"type\":\"end\",\"term\":" #t
#define GUEST_END "\"type\":\"end\""
#define SNAPSHOT(t, n) "\"type\":\"snapshot\",\"term\":" #t ",\"through\":" #n
#define DELETE(t, c) "\"type\":\"delete\",\"term\":" #t ",\"commit\":" #c

static int apply_text(runlog_state *s, const char *text, const char **ignored, err *e) {
  json_t *entry = NULL;
  if (js_parse(text, strlen(text), "test", &entry, e) != 0) fail_msg("not JSON: %s", text);
  int rc = runlog_apply(s, entry, ignored, e);
  json_decref(entry);
  return rc;
}

/* Folds an entry with the right number. */
static int apply(runlog_state *s, const char *body, const char **ignored, err *e) {
  char text[2000];
  snprintf(text, sizeof text,
           "{\"format\":1,\"reader\":1,\"n\":%llu,\"nonce\":\"x\",\"time_ns\":5,%s}",
           (unsigned long long)s->next, body);
  return apply_text(s, text, ignored, e);
}

static void taken(runlog_state *s, const char *body) {
  const char *ignored = NULL;
  err e = {0};
  if (apply(s, body, &ignored, &e) != 0) fail_msg("%s: %s", body, e.text);
  if (ignored) fail_msg("%s was ignored: %s", body, ignored);
}

static void ignored(runlog_state *s, const char *body) {
  const char *why = NULL;
  err e = {0};
  uint64_t next = s->next, term = s->term.n;
  size_t attempts = s->attempt_count, commits = s->commit_count;
  if (apply(s, body, &why, &e) != 0) fail_msg("%s: %s", body, e.text);
  if (!why) fail_msg("%s was not ignored", body);
  assert_int_equal(s->next, next + 1);
  assert_int_equal(s->term.n, term);
  assert_int_equal(s->attempt_count, attempts);
  assert_int_equal(s->commit_count, commits);
}

static void refused(runlog_state *s, int code, const char *body) {
  err e = {0};
  uint64_t next = s->next;
  int rc = apply(s, body, NULL, &e);
  if (rc != code) fail_msg("%s: %s, not %s", body, err_name(rc), err_name(code));
  assert_int_equal(s->next, next);
  assert_non_null(strstr(e.text, "log entry"));
}

/* The run and its first term: entries 0 and 1. */
static void begun(runlog_state *s) {
  taken(s, RUN);
  taken(s, TERM(1));
}

/* And a save of "a" that it announces: entry 2. */
static void announced(runlog_state *s) {
  begun(s);
  taken(s, ATTEMPT(1, "a", "a"));
}

static int set_up(void **state) {
  *state = calloc(1, sizeof(runlog_state));
  return *state ? 0 : -1;
}

static int tear_down(void **state) {
  runlog_state_free(*state);
  free(*state);
  return 0;
}

static void a_whole_life_is_folded(void **state) {
  runlog_state *s = *state;
  taken(s, RUN);
  assert_string_equal(s->run_id, "r");
  assert_int_equal(s->term.n, RUNLOG_NONE);
  taken(s, TERM(1));
  taken(s, ATTEMPT(1, "a", "a"));
  taken(s, COMMIT(1, 2));
  taken(s, ATTEMPT(1, "a", "a.~4"));
  taken(s, TERM(5));
  taken(s, ADOPT(5, 4));
  taken(s, COMMIT(5, 4));
  taken(s, ATTEMPT(5, "b%FF", "b%FF"));
  taken(s, SWEEP(5, 8));
  assert_int_equal(s->next, 10);
  assert_int_equal(s->term.writer.pid, 5);
  assert_int_equal(s->term.time_ns, 5);
  assert_string_equal(s->term.writer.state, "/s");
  assert_string_equal(s->attempts[2].unit, "b\xff");
  assert_int_equal(s->attempts[2].fate, RUNLOG_SWEPT);
  const runlog_commit *newest = runlog_newest(s, "a");
  assert_int_equal(newest->n, 7);
  assert_int_equal(newest->step, 3);
  assert_int_equal(newest->bytes, 9);
  assert_string_equal(newest->dir, "a.~4");
  assert_ptr_equal(newest, runlog_newest(s, NULL));
  assert_int_equal(runlog_find_dir(s, "a")->n, 3);
  assert_null(runlog_find_dir(s, "b"));
  assert_null(runlog_newest(s, "b"));
  assert_int_equal(runlog_find_attempt(s, 4)->owner, 5);
  assert_null(runlog_find_attempt(s, 5));
  runlog_state_free(s);
}

static void the_first_entry_and_only_that_names_the_run(void **state) {
  runlog_state s = {.term.n = RUNLOG_NONE};
  ignored(&s, TERM(0));
  ignored(&s, RUN); /* too late: whose place it is can never be known */
  ignored(&s, TERM(2));
  assert_string_equal(s.run_id, "");
  runlog_state_free(&s);
  taken(&s, RUN);
  ignored(&s, RUN);
  runlog_state_free(&s);
}

static void an_entry_at_the_wrong_place_is_ignored(void **state) {
  runlog_state *s = *state;
  const char *why = NULL;
  taken(s, RUN);
  assert_int_equal(apply_text(s,
                              "{\"format\":1,\"reader\":1,\"n\":2,\"nonce\":\"x\",\"time_ns\":5,"
                              "\"type\":\"run\",\"run\":\"r\"}",
                              &why, NULL),
                   0);
  assert_non_null(why);
  assert_int_equal(s->next, 2);
}

static void a_term_is_the_number_of_its_entry(void **state) {
  runlog_state *s = *state;
  taken(s, RUN);
  ignored(s, TERM(7));
  taken(s, TERM(2));
  ignored(s, TERM(2));
}

static void a_fenced_writer_changes_nothing(void **state) {
  runlog_state *s = *state;
  announced(s);
  taken(s, TERM(3));
  ignored(s, ATTEMPT(1, "b", "b"));
  ignored(s, COMMIT(1, 2));
  ignored(s, ADOPT(1, 2));
  ignored(s, COMMIT(3, 2)); /* not its own yet */
  taken(s, ADOPT(3, 2));
  ignored(s, ADOPT(3, 2));
  ignored(s, SWEEP(1, 2)); /* the new owner may go on */
  ignored(s, COMMIT(1, 2));
  taken(s, COMMIT(3, 2));
}

static void an_entry_without_a_term_may_only_sweep(void **state) {
  runlog_state *s = *state;
  taken(s, RUN);
  ignored(s, "\"type\":\"attempt\",\"unit\":\"a\",\"dir\":\"a\""); /* no term anywhere */
  taken(s, TERM(2));
  ignored(s, "\"type\":\"attempt\",\"unit\":\"a\",\"dir\":\"a\"");
  taken(s, ATTEMPT(2, "a", "a"));
  ignored(s, GUEST_SWEEP(4));
  ignored(s, "\"type\":\"adopt\",\"attempt\":4");
  taken(s, TERM(7));
  ignored(s, "\"type\":\"adopt\",\"attempt\":4");
  taken(s, GUEST_SWEEP(4));
}

static void nothing_follows_a_sweep_or_a_commit(void **state) {
  runlog_state *s = *state;
  announced(s);
  taken(s, ATTEMPT(1, "b", "b"));
  taken(s, SWEEP(1, 2));
  taken(s, COMMIT(1, 3));
  for (int i = 0; i < 2; i++) {
    ignored(s, i ? SWEEP(1, 2) : SWEEP(1, 3));
    ignored(s, i ? COMMIT(1, 2) : COMMIT(1, 3));
  }
  taken(s, TERM(10));
  ignored(s, ADOPT(10, 2));
  ignored(s, ADOPT(10, 3));
  ignored(s, GUEST_SWEEP(3));
  ignored(s, SWEEP(10, 2));
  ignored(s, SWEEP(10, 1)); /* no attempt at all */
  ignored(s, COMMIT(10, 99));
}

static void two_attempts_never_share_a_directory(void **state) {
  runlog_state *s = *state;
  announced(s);
  ignored(s, ATTEMPT(1, "a", "a"));
  ignored(s, ATTEMPT(1, "a", "a.~5")); /* this is entry 4 */
  ignored(s, ATTEMPT(1, "b", "a"));
  ignored(s, ATTEMPT(1, "b", "c"));
  ignored(s, ATTEMPT(1, "b.~9", "b.~9")); /* might be meant for entry 9 */
  ignored(s, ATTEMPT(1, "b.~0", "b.~0"));
  taken(s, ATTEMPT(1, "b", "b.~9"));
  taken(s, ATTEMPT(1, "b", "b"));
  taken(s, ATTEMPT(1, "b.~9", "b.~9.~11"));
  taken(s, SWEEP(1, 2));
  ignored(s, ATTEMPT(1, "a", "a")); /* swept: late requests may still arrive there */
  taken(s, ATTEMPT(1, "x.~", "x.~"));
  taken(s, ATTEMPT(1, "~6", "~6"));
  taken(s, ATTEMPT(1, "x.~6y", "x.~6y"));
  ignored(s, ATTEMPT(1, ".~6", ".~6"));
}

static void a_directory_outside_of_the_run_is_ignored(void **state) {
  runlog_state *s = *state;
  begun(s);
  ignored(s, ATTEMPT(1, "..", ".."));
  ignored(s, ATTEMPT(1, ".", "."));
  ignored(s, ATTEMPT(1, "", ""));
  ignored(s, ATTEMPT(1, ".ckpt", ".ckpt"));
  ignored(s, ATTEMPT(1, "a/b", "a/b"));
  ignored(s, ATTEMPT(1, "%2E%2E%2Fx", "%2E%2E%2Fx"));
  ignored(s, ATTEMPT(1, "a", "../a"));
}

static void what_is_newer_or_no_entry_is_an_error(void **state) {
  runlog_state *s = *state;
  refused(s, ERR_FORMAT, "\"type\":\"run\"");
  refused(s, ERR_FORMAT, "\"type\":\"run\",\"run\":\"\"");
  refused(s, ERR_FORMAT, "\"type\":\"run\",\"run\":7");
  refused(s, ERR_FORMAT, "\"run\":\"r\"");
  refused(s, ERR_VERSION, "\"type\":\"merge\",\"through\":3");
  char longer[400], id[RUNLOG_ID_MAX + 1] = {0};
  memset(id, 'x', RUNLOG_ID_MAX);
  snprintf(longer, sizeof longer, "\"type\":\"run\",\"run\":\"%s\"", id);
  refused(s, ERR_FORMAT, longer);
  taken(s, RUN);
  refused(s, ERR_FORMAT, "\"type\":\"term\",\"term\":1");
  refused(s, ERR_FORMAT, "\"type\":\"term\",\"term\":-1");
  taken(s, TERM(1));
  refused(s, ERR_FORMAT, "\"type\":\"attempt\",\"term\":1,\"unit\":\"a\"");
  refused(s, ERR_FORMAT, ATTEMPT(1, "a%0", "a"));
  refused(s, ERR_FORMAT, ATTEMPT(1, "a%00", "a"));
  taken(s, ATTEMPT(1, "a", "a"));
  refused(s, ERR_FORMAT, "\"type\":\"commit\",\"term\":1,\"attempt\":2");
  refused(s, ERR_FORMAT, "\"type\":\"sweep\",\"term\":1,\"attempt\":-2");
  refused(s, ERR_FORMAT, "\"type\":\"sweep\",\"term\":1,\"attempt\":\"2\"");
  static const char *const texts[] = {"[]", "null", "{}", "7", "{\"format\":0,\"reader\":0}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    assert_int_equal(apply_text(s, texts[i], NULL, NULL), ERR_FORMAT);
  assert_int_equal(apply_text(s, "{\"format\":2,\"reader\":3,\"all\":\"new\"}", NULL, NULL),
                   ERR_VERSION);
  assert_int_equal(s->next, 3);
}

static void a_commit_with_broken_facts_is_an_error(void **state) {
  runlog_state *s = *state;
  static const struct {
    const char *from, *to;
  } cases[] = {
      {"\"dir\"", "\"tree\""},
      {"\"step\":3", "\"step\":-3"},
      {"\"files\":2", "\"files\":-2"},
      {"\"bytes\":9", "\"bytes\":1.5"},
      {"\"00112233", "\"zz112233"},
      {"\"00112233", "\""},
      {"\"files\":2,", ""},
  };
  announced(s);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[1000];
    const char *body = COMMIT(1, 2), *at = strstr(body, cases[i].from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - body), body, cases[i].to,
             at + strlen(cases[i].from));
    refused(s, ERR_FORMAT, text);
  }
  taken(s, COMMIT(1, 2));
}

/* A quadratic fold would take minutes here. */
static void a_long_log_is_folded_quickly(void **state) {
  runlog_state *s = *state;
  char body[200];
  begun(s);
  for (int i = 0; i < 50000; i++) {
    snprintf(body, sizeof body, ATTEMPT(1, "checkpoint-%d", "checkpoint-%d"), i, i);
    taken(s, body);
  }
  assert_false(runlog_plain_free(s, "checkpoint-0"));
  assert_false(runlog_plain_free(s, "checkpoint-49999"));
  assert_true(runlog_plain_free(s, "checkpoint-50000"));
}

static void a_drop_and_a_delete_are_taken_in_this_order_once(void **state) {
  runlog_state *s = *state;
  announced(s);
  ignored(s, DROP(1, 2));   /* an attempt is no commit */
  ignored(s, DELETE(1, 9)); /* there is none yet */
  taken(s, COMMIT(1, 2));
  ignored(s, DELETE(1, 5));
  assert_int_equal(s->commits[0].life, RUNLOG_LIVE);
  taken(s, GUEST_DROP(5));
  assert_int_equal(s->commits[0].life, RUNLOG_DROPPED);
  assert_int_equal(s->commits[0].drop, 7);
  assert_int_equal(s->commits[0].drop_ns, 5);
  ignored(s, DROP(1, 5));
  taken(s, TERM(9));
  ignored(s, DELETE(1, 5)); /* of a fenced writer */
  taken(s, DELETE(9, 5));
  assert_int_equal(s->commits[0].life, RUNLOG_DELETED);
  ignored(s, DELETE(9, 5));
  ignored(s, GUEST_DROP(5));
}

static void an_entry_about_a_commit_without_its_number_is_broken(void **state) {
  runlog_state *s = *state;
  begun(s);
  assert_int_equal(apply(s, "\"type\":\"drop\"", NULL, NULL), ERR_FORMAT);
  assert_int_equal(apply(s, "\"type\":\"delete\",\"commit\":\"x\"", NULL, NULL), ERR_FORMAT);
  assert_int_equal(apply(s, "\"type\":\"drop\",\"commit\":-1", NULL, NULL), ERR_FORMAT);
}

/* They are for people: a log is not unreadable for their sake. */
static void texts_that_are_no_texts_say_nothing(void **state) {
  runlog_state *s = *state;
  announced(s);
  taken(s, COMMIT(1, 2) ",\"policy\":3,\"reason\":{},\"metrics\":[1]");
  assert_null(s->commits[0].policy);
  assert_null(s->commits[0].reason);
  assert_null(s->commits[0].metrics);
  taken(s, GUEST_DROP(3) ",\"policy\":[],\"reason\":\"\\u001b[1m\"");
  assert_null(s->commits[0].drop_policy);
  assert_string_equal(s->commits[0].drop_reason, " [1m");
}

/* Whoever wrote with a number that is still read is gone on with. */
static void older_and_newer_formats_that_this_reader_may_read_are_folded(void **state) {
  static const char *const heads[] = {"\"format\":0,\"reader\":0", "\"format\":7,\"reader\":1"};
  for (size_t i = 0; i < 2; i++) {
    runlog_state s = {0};
    static const char *const bodies[] = {RUN, TERM(1), ATTEMPT(1, "a", "a"), COMMIT(1, 2)};
    for (size_t k = 0; k < 4; k++) {
      char text[1000];
      const char *why = NULL;
      snprintf(text, sizeof text, "{%s,\"n\":%zu,\"nonce\":\"x\",\"time_ns\":5,\"new\":[1],%s}",
               heads[i], k, bodies[k]);
      assert_int_equal(apply_text(&s, text, &why, NULL), 0);
      assert_null(why);
    }
    assert_int_equal(s.term.writer.world, 1);
    assert_int_equal(s.attempts[0].world, 1);
    runlog_state_free(&s);
  }
}

static void a_world_is_a_number_of_ranks(void **state) {
  runlog_state *s = *state;
  taken(s, RUN);
  refused(s, ERR_FORMAT, TERM(1) ",\"world\":0");
  refused(s, ERR_FORMAT, TERM(1) ",\"world\":\"8\"");
  refused(s, ERR_FORMAT, TERM(1) ",\"world\":9999999");
  taken(s, TERM(1) ",\"world\":8");
  assert_int_equal(s->term.writer.world, 8);
  refused(s, ERR_FORMAT, ATTEMPT(1, "a", "a") ",\"world\":-1");
  taken(s, ATTEMPT(1, "a", "a") ",\"world\":8");
  assert_int_equal(s->attempts[0].world, 8);
}

static void what_was_saved_beside_a_checkpoint_is_part_of_its_commit(void **state) {
  runlog_state *s = *state;
#define WITH "\"with\":{\"term\":1,\"files\":4,\"bytes\":7,\"root\":"
  announced(s);
  refused(s, ERR_FORMAT, COMMIT(1, 2) ",\"with\":[]");
  refused(s, ERR_FORMAT, COMMIT(1, 2) "," WITH "\"0\"}");
  refused(s, ERR_FORMAT, COMMIT(1, 2) ",\"with\":{\"term\":1,\"files\":4}");
  taken(s, COMMIT(1, 2) "," WITH "\"ffeeddccbbaa99887766554433221100\"}");
  assert_int_equal(s->commits[0].companions.term, 1);
  assert_int_equal(s->commits[0].companions.files, 4);
  assert_int_equal(s->commits[0].companions.bytes, 7);
  assert_int_equal(s->commits[0].companions.root.bytes[0], 0xff);
}

/* A mark that says what is so already is passed over by 1.0: so it may bring numbers. */
static void numbers_may_come_after_a_commit(void **state) {
#define NUMBERS(n) ",\"metrics\":{\"loss\":" #n "}"
  runlog_state *s = *state;
  announced(s);
  taken(s, COMMIT(1, 2) NUMBERS(5)); /* 3 */
  taken(s, GUEST_GOOD(3) NUMBERS(2));
  assert_string_equal(s->commits[0].metrics, "{\"loss\":2}");
  ignored(s, GUEST_GOOD(3) ",\"metrics\":[]");
  taken(s, GUEST_BAD(3) NUMBERS(9)); /* it marks, and brings none */
  assert_true(s->commits[0].bad);
  assert_string_equal(s->commits[0].metrics, "{\"loss\":2}");
  taken(s, GUEST_BAD(3) NUMBERS(3)); /* marked already: it brings them */
  assert_true(s->commits[0].bad);
  assert_string_equal(s->commits[0].metrics, "{\"loss\":3}");
  taken(s, GUEST_DROP(3));
  ignored(s, GUEST_BAD(3) NUMBERS(4));
  assert_string_equal(s->commits[0].metrics, "{\"loss\":3}");
}

static void a_bad_commit_is_not_the_newest_until_that_is_taken_back(void **state) {
  runlog_state *s = *state;
  announced(s);
  taken(s, ATTEMPT(1, "b", "b"));
  taken(s, COMMIT(1, 2)); /* 4 */
  taken(s, COMMIT(1, 3)); /* 5 */
  ignored(s, GUEST_BAD(3));
  ignored(s, GUEST_GOOD(5));
  taken(s, GUEST_BAD(5) ",\"reason\":\"did not load\"");
  assert_true(s->commits[1].bad);
  assert_string_equal(s->commits[1].bad_reason, "did not load");
  ignored(s, BAD(1, 5));
  assert_int_equal(runlog_newest(s, NULL)->n, 4);
  assert_null(runlog_newest(s, "b"));
  assert_int_equal(runlog_newest_ever(s, "b")->n, 5);
  assert_int_equal(s->commits[1].life, RUNLOG_LIVE);
  taken(s, GUEST_GOOD(5));
  assert_null(s->commits[1].bad_reason);
  assert_int_equal(runlog_newest(s, NULL)->n, 5);
  taken(s, TERM(11));
  ignored(s, BAD(1, 5)); /* of a fenced writer */
  taken(s, BAD(11, 5));
  taken(s, DROP(11, 4));
  ignored(s, BAD(11, 4)); /* chosen by nobody any more */
  refused(s, ERR_FORMAT, GUEST_BAD(5) ",\"good\":1");
}

static void after_an_end_nothing_of_the_run_is_left_but_its_names(void **state) {
  runlog_state *s = *state;
  announced(s);
  taken(s, COMMIT(1, 2)); /* 3 */
  taken(s, ATTEMPT(1, "b", "b"));
  taken(s, GUEST_END ",\"reason\":\"gone\""); /* 5 */
  assert_true(s->ended);
  assert_int_equal(s->end, 5);
  assert_string_equal(s->end_reason, "gone");
  assert_int_equal(s->commits[0].life, RUNLOG_DELETED);
  assert_int_equal(s->attempts[1].fate, RUNLOG_SWEPT);
  assert_null(runlog_newest(s, NULL));
  ignored(s, ATTEMPT(1, "c", "c"));
  ignored(s, COMMIT(1, 4));
  ignored(s, DROP(1, 3));
  ignored(s, GUEST_DROP(3));
  ignored(s, GUEST_BAD(3));
  ignored(s, GUEST_SWEEP(4));
  ignored(s, SNAPSHOT(1, 11));
  ignored(s, END(1));
  ignored(s, GUEST_END);
  ignored(s, TERM(15)); /* whose? */
  taken(s, TERM(16) ",\"run\":\"other\"");
  assert_false(s->ended);
  assert_null(s->end_reason);
  assert_string_equal(s->run_id, "other");
  assert_int_equal(s->term.n, 16);
  ignored(s, ATTEMPT(1, "c", "c"));
  ignored(s, ATTEMPT(16, "a", "a")); /* its name never comes back */
  ignored(s, ATTEMPT(16, "b", "b"));
  taken(s, ATTEMPT(16, "a", "a.~20"));
  taken(s, COMMIT(16, 20));
  ignored(s, TERM(22) ",\"run\":\"third\""); /* nothing has ended */
  taken(s, TERM(23) ",\"run\":\"other\"");
  ignored(s, END(16));
  taken(s, END(23));
}

static void the_end_of_no_run_is_nothing(void **state) {
  runlog_state s = {.term.n = RUNLOG_NONE};
  ignored(&s, GUEST_END);
  ignored(&s, GUEST_END);
  assert_false(s.ended);
  runlog_state_free(&s);
}

/* What it says of the state is for those who have not read what is before it. */
static void a_snapshot_changes_nothing_for_who_has_read_all_before_it(void **state) {
  runlog_state *s = *state;
  taken(s, RUN);
  assert_int_equal(s->snapshot, RUNLOG_NONE);
  ignored(s, SNAPSHOT(1, 0));
  taken(s, TERM(2));
  ignored(s, SNAPSHOT(2, 1));
  ignored(s, SNAPSHOT(2, 4));
  ignored(s, "\"type\":\"snapshot\",\"through\":4");
  refused(s, ERR_FORMAT, "\"type\":\"snapshot\",\"term\":2");
  taken(s, SNAPSHOT(2, 5) ",\"state\":{\"run\":\"another\"}");
  assert_int_equal(s->snapshot, 6);
  assert_string_equal(s->run_id, "r");
  taken(s, ATTEMPT(2, "a", "a"));
}

#define FOLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLD(a_whole_life_is_folded),
      cmocka_unit_test(the_first_entry_and_only_that_names_the_run),
      FOLD(an_entry_at_the_wrong_place_is_ignored),
      FOLD(a_term_is_the_number_of_its_entry),
      FOLD(a_fenced_writer_changes_nothing),
      FOLD(an_entry_without_a_term_may_only_sweep),
      FOLD(nothing_follows_a_sweep_or_a_commit),
      FOLD(two_attempts_never_share_a_directory),
      FOLD(a_directory_outside_of_the_run_is_ignored),
      FOLD(what_is_newer_or_no_entry_is_an_error),
      FOLD(a_commit_with_broken_facts_is_an_error),
      FOLD(a_long_log_is_folded_quickly),
      FOLD(a_drop_and_a_delete_are_taken_in_this_order_once),
      FOLD(an_entry_about_a_commit_without_its_number_is_broken),
      FOLD(texts_that_are_no_texts_say_nothing),
      cmocka_unit_test(older_and_newer_formats_that_this_reader_may_read_are_folded),
      FOLD(a_world_is_a_number_of_ranks),
      FOLD(what_was_saved_beside_a_checkpoint_is_part_of_its_commit),
      FOLD(numbers_may_come_after_a_commit),
      FOLD(a_bad_commit_is_not_the_newest_until_that_is_taken_back),
      FOLD(after_an_end_nothing_of_the_run_is_left_but_its_names),
      cmocka_unit_test(the_end_of_no_run_is_nothing),
      FOLD(a_snapshot_changes_nothing_for_who_has_read_all_before_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
