/* From what is known to the one cause. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "why/explain.h"

static last_rules last_of(void) {
  return (last_rules){.rules = (rules *)rules_builtin(),
                      .target = (char *)"file:///s",
                      .policies = (char *)"mine",
                      .grace_ns = INT64_C(3600000000000)};
}

/* ---- which unit ---- */

static bool knows(void *ctx, const char *path) {
  return ctx && strcmp(ctx, path) == 0;
}

static void spot_is(explain_spot spot, const char *known, const char *unit, const char *cause) {
  explain x = {0};
  char found[FS_PATH_MAX];
  last_rules last = last_of();
  bool is = explain_unit(&x, &last, &spot, knows, (void *)known, found);
  if (is != (unit != NULL) || strcmp(x.cause, cause) != 0)
    fail_msg("%s: unit \"%s\", cause \"%s\": %s", spot.path, found, x.cause, x.text);
  if (unit) assert_string_equal(found, unit);
  explain_free(&x);
}

static void a_path_is_a_unit_or_in_one_or_none(void **state) {
  spot_is((explain_spot){"exp/checkpoint-3", 'd', 0, 0}, NULL, "exp/checkpoint-3", "");
  spot_is((explain_spot){"exp/checkpoint-3/a/b.bin", 'f', 0, 0}, NULL, "exp/checkpoint-3", "");
  spot_is((explain_spot){"checkpoint-3", 0, 0, 0}, NULL, "checkpoint-3", "");
  spot_is((explain_spot){"ckpt-4.index", 'f', 0, 0}, NULL, "ckpt-4", "");
  spot_is((explain_spot){"7", 'd', 0, 0}, NULL, NULL, "no-unit");
  spot_is((explain_spot){"7/model.pt", 'f', 0, 0}, NULL, "7/model.pt", "");
  spot_is((explain_spot){"7/x.bin", 'f', 0, 0}, "7", "7", "");
  spot_is((explain_spot){"checkpoint-3", 'f', 0, 0}, NULL, NULL, "no-unit");
  spot_is((explain_spot){"checkpoint-3", 'l', 12, 0}, NULL, NULL, "link");
  spot_is((explain_spot){"a/checkpoint-3", 'd', 1, 0}, NULL, NULL, "link");
  spot_is((explain_spot){"a.pt", 'o', 0, 0}, NULL, NULL, "special");
  spot_is((explain_spot){"tmp/checkpoint-3", 'd', 0, 0}, NULL, NULL, "excluded");
  spot_is((explain_spot){"checkpoint-3/x.tmp", 'f', 0, 0}, NULL, NULL, "excluded");
  spot_is((explain_spot){"e.ckpt/x.pt", 'f', 0, 6}, NULL, NULL, "state-file");
  spot_is((explain_spot){"", 'd', 0, 0}, NULL, NULL, "directory");
}

static void the_nearest_pattern_is_named(void **state) {
  static const char *const near[][2] = {{"checkpont-3", "checkpoint-{step}/"},
                                        {"model.safetensor", "*.safetensors"},
                                        {"exp/step7", "step-{step}/"}};
  last_rules last = last_of();
  for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
    explain x = {0};
    char found[FS_PATH_MAX];
    explain_spot spot = {near[i][0], 'd', 0, 0};
    assert_false(explain_unit(&x, &last, &spot, knows, NULL, found));
    if (!strstr(x.text, near[i][1])) fail_msg("%s", x.text);
    explain_free(&x);
  }
}

/* ---- what became of it ---- */

typedef struct tale {
  explain_history h;
  explain_live live;
  explain_stored stored;
  bool alive, asked, there;
} tale;

static void note(tale *t, trail_what what, const char *reason) {
  explain_remember(&t->h, "u",
                   &(trail_record){.time_ns = 5, .what = what, .unit = "u", .reason = reason});
}

static explain fate_of(const tale *t) {
  explain x = {0};
  last_rules last = last_of();
  explain_fate(&x, "u", t->there, &last, &t->h, t->alive ? &t->live : NULL,
               t->asked ? &t->stored : NULL, 9);
  return x;
}

static void cause_is(tale *t, const char *cause, const char *text) {
  explain x = fate_of(t);
  if (strcmp(x.cause, cause) != 0 || !strstr(x.text, text))
    fail_msg("\"%s\" (%s), not \"%s\" (%s)", x.cause, x.text, cause, text);
  explain_free(&x);
  explain_forget(&t->h);
}

static void the_last_word_is_the_cause(void **state) {
  static const struct {
    trail_what what;
    const char *cause;
  } ends[] = {
      {TRAIL_OPEN, "open"},         {TRAIL_UNPROVEN, "unproven"},   {TRAIL_SKIPPED, "skipped"},
      {TRAIL_WAITING, "waiting"},   {TRAIL_COMPLETE, "waiting"},    {TRAIL_BEGUN, "interrupted"},
      {TRAIL_RETRYING, "retrying"}, {TRAIL_COMMITTED, "committed"}, {TRAIL_LET_GO, "let-go"},
      {TRAIL_RETIRED, "changed"},   {TRAIL_FENCED, "fenced"},       {TRAIL_DROPPED, "dropped"},
      {TRAIL_DELETED, "deleted"},   {TRAIL_GONE, "removed"}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    tale t = {.there = true};
    note(&t, TRAIL_WAITING, "first");
    note(&t, ends[i].what, "why not");
    cause_is(&t, ends[i].cause, "");
  }
}

/* The commit, and that it is found here again by a later start. */
static void what_one_was_saved_without_is_not_called_committed(void **state) {
  static const struct {
    const char *path, *cause;
    char kind;
  } cases[] = {{"u", "committed", 'd'},         {"u/model", "committed", 'f'},
               {"u/optim.pt", "left-out", 'f'}, {"u/states", "left-out", 'd'},
               {"u/states/a", "left-out", 'f'}, {"u/sub/optim.pt", "left-out", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tale t = {.there = true};
    const explain_spot spot = {cases[i].path, cases[i].kind, 0, 0};
    explain_remember(&t.h, "u",
                     &(trail_record){.time_ns = 5,
                                     .what = TRAIL_COMMITTED,
                                     .unit = "u",
                                     .commit = 7,
                                     .left = "optim*\nstates/"});
    explain_remember(
        &t.h, "u",
        &(trail_record){.time_ns = 6, .what = TRAIL_COMMITTED, .unit = "u", .commit = 7});
    explain x = fate_of(&t);
    explain_left(&x, &t.h, &spot, "u");
    if (strcmp(x.cause, cases[i].cause) != 0) fail_msg("%s is \"%s\"", spot.path, x.cause);
    explain_free(&x);
    explain_remember(
        &t.h, "u",
        &(trail_record){.time_ns = 7, .what = TRAIL_COMMITTED, .unit = "u", .commit = 9});
    x = fate_of(&t);
    explain_left(&x, &t.h, &spot, "u");
    assert_string_equal(x.cause, "committed"); /* of the newer one all was saved */
    explain_free(&x);
    explain_forget(&t.h);
  }
}

static void standing_is(tale *t, const char *word) {
  explain x = {0};
  last_rules last = last_of();
  const char *found = "";
  explain_fate(&x, "u", t->there, &last, &t->h, t->alive ? &t->live : NULL,
               t->asked ? &t->stored : NULL, 9);
  for (size_t i = 0; i < x.count; i++)
    if (strcmp(x.findings[i].topic, "standing") == 0) found = x.findings[i].text;
  if (strcmp(found, word) != 0) fail_msg("%s is \"%s\", not \"%s\"", x.cause, found, word);
  explain_free(&x);
  explain_forget(&t->h);
}

static void each_end_has_the_word_that_the_runs_last_line_has(void **state) {
  static const struct {
    trail_what what;
    const char *word;
  } ends[] = {{TRAIL_OPEN, "not_proven"},      {TRAIL_UNPROVEN, "not_proven"},
              {TRAIL_SKIPPED, "not_wanted"},   {TRAIL_WAITING, "not_durable"},
              {TRAIL_COMPLETE, "not_durable"}, {TRAIL_BEGUN, "not_durable"},
              {TRAIL_RETRYING, "not_durable"}, {TRAIL_COMMITTED, "durable"},
              {TRAIL_LET_GO, "not_durable"},   {TRAIL_FAILED, "not_durable"},
              {TRAIL_DROPPED, "not_wanted"},   {TRAIL_DELETED, "not_wanted"},
              {TRAIL_GONE, "not_durable"}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    tale t = {.there = true};
    note(&t, ends[i].what, "why not");
    standing_is(&t, ends[i].word);
  }
  tale t = {.there = true};
  standing_is(&t, "");
  t.asked = true; /* saved, and not in the target at hand */
  t.stored = (explain_stored){.where = "file:///other", .asked = true};
  note(&t, TRAIL_COMMITTED, "");
  standing_is(&t, "not_durable");
  t = (tale){.there = true, .alive = true, .live = {.phase = TRAIL_OPEN}};
  note(&t, TRAIL_OPEN, "");
  standing_is(&t, "not_durable"); /* it may become so */
}

static void a_removal_hides_no_decision(void **state) {
  static const trail_what decided[] = {TRAIL_SKIPPED, TRAIL_LET_GO, TRAIL_RETIRED, TRAIL_COMMITTED};
  static const char *const causes[] = {"skipped", "let-go", "changed", "committed"};
  for (size_t i = 0; i < 4; i++) {
    tale t = {0};
    note(&t, decided[i], "because");
    note(&t, TRAIL_GONE, "removed");
    cause_is(&t, causes[i], "removed here since");
  }
  tale t = {0};
  note(&t, TRAIL_OPEN, "quiet 1 of 30 s");
  note(&t, TRAIL_GONE, "removed");
  cause_is(&t, "removed", "until then: quiet 1 of 30 s");
}

static void failures_are_told_apart(void **state) {
  static const struct {
    int status;
    const char *cause;
  } kinds[] = {{ERR_ACCESS, "refused"},     {ERR_NOSPACE, "refused"}, {ERR_TIMEOUT, "gave-up"},
               {ERR_CANCELED, "cancelled"}, {ERR_RETIRED, "changed"}, {ERR_FENCED, "fenced"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    tale t = {.there = true};
    explain_remember(&t.h, "u",
                     &(trail_record){.what = TRAIL_FAILED,
                                     .unit = "u",
                                     .reason = "so it was",
                                     .status = kinds[i].status,
                                     .tries = 8});
    cause_is(&t, kinds[i].cause, "so it was");
  }
}

static void a_live_run_knows_better(void **state) {
  tale t = {.there = true, .alive = true};
  note(&t, TRAIL_WAITING, "");
  t.live = (explain_live){.phase = TRAIL_BEGUN, .moved = 3, .total = 10};
  cause_is(&t, "uploading", "3 of 10 bytes");
  t.live = (explain_live){.phase = TRAIL_WAITING, .behind = "checkpoint-1"};
  cause_is(&t, "waiting", "behind checkpoint-1");
  t.live = (explain_live){
      .phase = TRAIL_RETRYING, .tries = 2, .most_tries = 8, .next_s = 4, .reason = "no route"};
  cause_is(&t, "retrying", "try 2 of 8 failed, the next one in 4 s: no route");
  t.live = (explain_live){
      .phase = TRAIL_OPEN, .cause = "not-quiet", .reason = "DONE is there, quiet 0.4 of 5 s"};
  note(&t, TRAIL_COMMITTED, "before");
  cause_is(&t, "not-quiet", "quiet 0.4 of 5 s");
  t.live = (explain_live){.phase = TRAIL_OPEN, .policy = "mine", .reason = "not yet"};
  cause_is(&t, "not-ready", "policy mine does not call it ready: not yet");
  t.live = (explain_live){.phase = TRAIL_WAITING};
  explain_remember(&t.h, "u",
                   &(trail_record){.what = TRAIL_FENCED, .unit = "other", .reason = "term 9"});
  cause_is(&t, "fenced", "term 9");
}

static void the_store_has_the_last_word_on_what_is_in_it(void **state) {
  tale t = {.asked = true};
  t.stored = (explain_stored){
      .where = "file:///s", .asked = true, .found = true, .commit = {.n = 7}, .dir = "u"};
  cause_is(&t, "committed", "entry 7");
  t.stored.life = RUNLOG_DROPPED;
  t.stored.drop_policy = "mine";
  t.stored.drop_reason = "keep.last(3)";
  note(&t, TRAIL_COMMITTED, "");
  cause_is(&t, "dropped", "mine: keep.last(3)");
  t.stored.life = RUNLOG_DELETED;
  cause_is(&t, "deleted", "deleted (mine: keep.last(3))");
  t.stored.drop_policy = t.stored.drop_reason = NULL; /* it went with its whole run */
  explain x = fate_of(&t);
  assert_string_equal(x.text, "its data in the store was deleted");
  explain_free(&x);
  t.stored = (explain_stored){.where = "file:///s", .asked = true};
  note(&t, TRAIL_COMMITTED, "");
  cause_is(&t, "lost", "file:///s");
  t.stored.where = "file:///other";
  note(&t, TRAIL_COMMITTED, "");
  cause_is(&t, "other-store", "file:///s");
  note(&t, TRAIL_SKIPPED, "no");
  cause_is(&t, "skipped", "no");
  cause_is(&t, "not-seen", "no run has seen it");
  t.there = true;
  cause_is(&t, "not-watched", "yet");
}

/* A commit of the same name, and even the same number, is this one only by its nonces. */
static void another_commit_of_that_name_is_not_it(void **state) {
  const trail_record saved = {.time_ns = 5,
                              .what = TRAIL_COMMITTED,
                              .unit = "u",
                              .commit = 7,
                              .log = "log-a",
                              .entry = "own-a"};
  trail_record old = saved;
  old.log = old.entry = NULL;
  static const struct {
    const char *where, *log, *entry, *cause, *by_old;
  } cases[] = {{"file:///s", "log-a", "own-a", "committed", "committed"},
               {"file:///s", "log-a", "own-b", "lost", "committed"},
               {"file:///other", "log-b", "own-b", "other-store", "committed"},
               {"file:///other", "", "", "committed", "committed"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tale t = {.asked = true};
    t.stored = (explain_stored){.where = cases[i].where, .asked = true, .found = true, .dir = "u"};
    t.stored.commit.n = 7;
    snprintf(t.stored.commit.log, RUNLOG_NONCE_MAX, "%s", cases[i].log);
    snprintf(t.stored.commit.entry, RUNLOG_NONCE_MAX, "%s", cases[i].entry);
    explain_remember(&t.h, "u", &saved);
    cause_is(&t, cases[i].cause, "");
    explain_remember(&t.h, "u", &old);
    cause_is(&t, cases[i].by_old, "");
  }
}

/* What was saved last may be newer than what the target has, though both are ours. */
static void an_older_content_of_ours_is_not_it(void **state) {
  static const struct {
    const char *in_a, *in_b, *where, *cause, *words;
  } cases[] = {{"v1", "v2", "file:///a", "other-store", "only an older content"},
               {"v1", "v2", "file:///s", "lost", "only an older content"},
               {"v1", "v1", "file:///a", "committed", ""},
               {NULL, "v2", "file:///a", "committed", ""},
               {"v1", NULL, "file:///a", "committed", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tale t = {.there = true, .asked = true};
    trail_record a = {.time_ns = 5, .what = TRAIL_COMMITTED, .unit = "u", .commit = 7};
    trail_record b = {.time_ns = 9, .what = TRAIL_COMMITTED, .unit = "u", .commit = 7};
    a.log = "log-a", a.entry = "own-a", a.content = cases[i].in_a;
    b.log = "log-b", b.entry = "own-b", b.content = cases[i].in_b;
    t.stored = (explain_stored){.where = cases[i].where, .asked = true, .found = true, .dir = "u"};
    t.stored.commit = (runlog_ref){.n = 7, .log = "log-a", .entry = "own-a"};
    explain_remember(&t.h, "u", &a);
    explain_remember(&t.h, "u", &b);
    cause_is(&t, cases[i].cause, cases[i].words);
    explain_remember(&t.h, "u", &a); /* that content was put back, and found there */
    cause_is(&t, "committed", "");
  }
}

static void markers_of_the_policy_are_causes(void **state) {
  tale t = {.there = true};
  note(&t, TRAIL_SKIPPED, TRAIL_SAYS_NULL);
  cause_is(&t, "null-marker", "nothing in it");
  note(&t, TRAIL_SKIPPED, TRAIL_SAYS_TEMP);
  cause_is(&t, "temp-marker", "temporary");
}

static void a_long_history_is_cut_at_its_beginning(void **state) {
  tale t = {.there = true};
  for (int i = 0; i < 1000; i++) note(&t, TRAIL_OPEN, "x");
  note(&t, TRAIL_LET_GO, "the end");
  assert_int_equal(t.h.count, EXPLAIN_HISTORY_MAX);
  cause_is(&t, "let-go", "the end");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_path_is_a_unit_or_in_one_or_none),
      cmocka_unit_test(the_nearest_pattern_is_named),
      cmocka_unit_test(the_last_word_is_the_cause),
      cmocka_unit_test(what_one_was_saved_without_is_not_called_committed),
      cmocka_unit_test(each_end_has_the_word_that_the_runs_last_line_has),
      cmocka_unit_test(a_removal_hides_no_decision),
      cmocka_unit_test(failures_are_told_apart),
      cmocka_unit_test(a_live_run_knows_better),
      cmocka_unit_test(the_store_has_the_last_word_on_what_is_in_it),
      cmocka_unit_test(another_commit_of_that_name_is_not_it),
      cmocka_unit_test(an_older_content_of_ours_is_not_it),
      cmocka_unit_test(markers_of_the_policy_are_causes),
      cmocka_unit_test(a_long_history_is_cut_at_its_beginning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
