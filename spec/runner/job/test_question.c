/* Questions to a live run, against a run that this file makes up. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "runner/job/answer.h"
#include "runner/job/question.h"

static struct {
  ckpt_run_status status;
  const char *pending; /* a unit that is not durable */
  char asked[64];
  const char *cause; /* that `why` tells */
  unsigned looks;
} made;

int ckpt_run_get_status(ckpt_run *run, ckpt_run_status *out) {
  *out = made.status;
  return 0;
}
int ckpt_run_pending(ckpt_run *run, ckpt_pending_fn *fn, void *ctx) {
  ckpt_pending p = {.size = sizeof p, .unit = made.pending, .reason = "uploading"};
  if (made.pending) fn(ctx, &p);
  return 0;
}
int ckpt_run_why(ckpt_run *run, const char *name, ckpt_finding_fn *fn, void *ctx,
                 const char **cause, const char **text) {
  snprintf(made.asked, sizeof made.asked, "%s", name);
  *cause = made.cause;
  *text = "because";
  return 0;
}
int ckpt_notify(ckpt_run *run, const ckpt_event *event, uint64_t *job) {
  made.looks += event->kind == CKPT_EVENT_LIST;
  return 0;
}
const char *ckpt_status_name(int code) {
  return code == CKPT_EACCESS ? "ACCESS" : "OK";
}
int status_answer(ckpt_run *run, bool json, FILE *out) {
  return fputs(json ? "{}\n" : "text\n", out) < 0;
}
const char *drain_begin(ckpt_run *run, int64_t ms, FILE *out) {
  return fprintf(out, "%d\n", (int)ms) < 0 ? "full" : NULL;
}
const char *drain_answer(ckpt_run *run, int64_t number, bool json, FILE *out) {
  return number == 7 ? fprintf(out, "{\"over\":%s}\n", json ? "true" : "false") < 0 ? "full" : NULL
                     : "it is not known";
}
int why_answer(ckpt_run *run, const char *name, bool json, FILE *out) {
  snprintf(made.asked, sizeof made.asked, "%s", name);
  return 0;
}
void reload_answer(ckpt *engine, ckpt_run *run, const ckpt_reload_options *o, FILE *out) {
  fprintf(out, "%s %s %d\n", o->policies ? o->policies[0] : "own",
          o->settings ? o->settings[0] : "own", (int)o->flags);
}
int reloaded_answer(ckpt_run *run, uint64_t job, bool json, FILE *out) {
  fprintf(out, "%d\n", (int)job);
  return job == 9 ? CKPT_ENOENT : 0;
}

static char answer[256];
static const char *error;

static const char *ask(const char *line) {
  char copy[512];
  snprintf(copy, sizeof copy, "%s", line);
  memset(answer, 0, sizeof answer);
  FILE *f = fmemopen(answer, sizeof answer, "w");
  error = question_answer(NULL, NULL, copy, f);
  fclose(f);
  return answer;
}

static int set_up(void **state) {
  memset(&made, 0, sizeof made);
  made.cause = "committed";
  return 0;
}

static void only_a_line_with_the_mark_is_a_question(void **state) {
  assert_true(is_question("{\"$ckpt\":\"status\"}"));
  assert_false(is_question("{\"loss\":1,\"$ckpt\":\"status\"}"));
  assert_false(is_question("{\"$ckp"));
  assert_false(is_question(""));
}

static void a_status_is_text_or_json(void **state) {
  assert_string_equal(ask("{\"$ckpt\":\"status\",\"json\":true}"), "{}\n");
  assert_string_equal(ask("{\"$ckpt\":\"status\"}"), "text\n");
  assert_null(error);
}

static void why_gets_the_name_as_it_was(void **state) {
  ask("{\"$ckpt\":\"why\",\"name\":\"a%FF%25b\"}");
  assert_null(error);
  assert_string_equal(made.asked, "a\xff%b");
  ask("{\"$ckpt\":\"why\"}");
  assert_non_null(error);
}

static void a_reload_gets_the_policies_that_are_named(void **state) {
  assert_string_equal(ask("{\"$ckpt\":\"reload\"}"), "own own 0\n");
  assert_null(error);
  assert_string_equal(
      ask("{\"$ckpt\":\"reload\",\"policies\":[\"/a%20b.lua\"],\"options\":[\"n=1\"],"
          "\"dry_run\":true}"),
      "/a b.lua n=1 2\n");
  ask("{\"$ckpt\":\"reload\",\"policies\":[{}]}");
  assert_non_null(error);
  ask("{\"$ckpt\":\"reload\",\"policies\":[\"%0\"]}");
  assert_non_null(error);
  assert_string_equal(ask("{\"$ckpt\":\"reloaded\",\"job\":3}"), "3\n");
  assert_null(error);
  ask("{\"$ckpt\":\"reloaded\",\"job\":9}");
  assert_non_null(error);
  ask("{\"$ckpt\":\"reloaded\"}");
  assert_non_null(error);
}

/* It would be a reload of something else, or one that was not meant. */
static void a_reload_that_is_not_understood_is_none(void **state) {
  static const char *const bad[] = {"\"dry_run\":1",
                                    "\"dry_run\":\"true\"",
                                    "\"dry-run\":true",
                                    "\"policies\":\"a\"",
                                    "\"policies\":true",
                                    "\"policies\":[]",
                                    "\"policies\":1",
                                    "\"options\":\"n=1\"",
                                    "\"options\":false",
                                    "\"options\":[1]",
                                    "\"policy\":[\"a\"]",
                                    "\"dry_run\":null",
                                    "\"dry_run\":true,\"dry_run\":false"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char line[200];
    snprintf(line, sizeof line, "{\"$ckpt\":\"reload\",%s}", bad[i]);
    assert_string_equal(ask(line), "");
    assert_non_null(error);
  }
  assert_string_equal(ask("{\"$ckpt\":\"reload\",\"dry_run\":false}"), "own own 0\n");
  assert_string_equal(ask("{\"$ckpt\":\"reloaded\",\"job\":3,\"json\":\"yes\"}"), "");
  assert_string_equal(ask("{\"$ckpt\":\"reloaded\",\"job\":\"3\"}"), "");
}

static void what_is_not_understood_has_a_reason_and_no_answer(void **state) {
  static const char *const bad[] = {"{\"$ckpt\":\"drop\"}", "{\"$ckpt\":true}", "{\"$ckpt\":[]}",
                                    "{\"$ckpt\"", "{\"$ckpt\":\"status\"} x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_string_equal(ask(bad[i]), "");
    assert_non_null(error);
  }
}

static void a_wait_is_done_when_nothing_is_pending(void **state) {
  assert_string_equal(ask("{\"$ckpt\":\"wait\"}"), "done\n");
  made.status.pending = 1;
  made.pending = "exp/checkpoint-3";
  made.status.newest_status = CKPT_EACCESS;
  assert_string_equal(ask("{\"$ckpt\":\"wait\"}"), "waiting: exp/checkpoint-3: uploading\n");
  assert_string_equal(ask("{\"$ckpt\":\"wait\",\"name\":\"checkpoint-3\"}"),
                      "waiting: exp/checkpoint-3: uploading\n");
  assert_string_equal(ask("{\"$ckpt\":\"wait\",\"name\":\"exp/checkpoint-3\"}"),
                      "waiting: exp/checkpoint-3: uploading\n");
  assert_string_equal(ask("{\"$ckpt\":\"wait\",\"name\":\"checkpoint-2\"}"), "done\n");
  assert_string_equal(ask("{\"$ckpt\":\"wait\",\"name\":\"point-3\"}"), "done\n");
}

static void a_wait_for_a_path_from_elsewhere_is_for_its_unit(void **state) {
  made.status.pending = 1;
  made.pending = "exp/checkpoint-3";
  assert_memory_equal(ask("{\"$ckpt\":\"wait\",\"name\":\"/a/out/exp/checkpoint-3\"}"),
                      "waiting: ", 9);
}

static void what_is_not_pending_is_done_only_if_it_is_saved_or_not_wanted(void **state) {
  static const char line[] = "{\"$ckpt\":\"wait\",\"name\":\"checkpoint-3\"}";
  static const char *const done[] = {"committed", "deleted", "skipped", "let-go"};
  static const char *const failed[] = {"not-seen", "torn", "no-unit", "removed", "ambiguous"};
  for (size_t i = 0; i < sizeof done / sizeof *done; i++) {
    made.cause = done[i];
    assert_string_equal(ask(line), "done\n");
  }
  for (size_t i = 0; i < sizeof failed / sizeof *failed; i++) {
    made.cause = failed[i];
    assert_string_equal(ask(line), "failed: checkpoint-3: because\n");
  }
  assert_int_equal(made.looks, 0);
  made.cause = "not-watched"; /* it is there, and the next poll is still to come */
  assert_string_equal(ask(line), "waiting: checkpoint-3: because\n");
  assert_int_equal(made.looks, 1);
}

static void a_wait_fails_for_what_was_given_up(void **state) {
  made.status.newest_status = CKPT_EACCESS;
  assert_string_equal(ask("{\"$ckpt\":\"wait\"}"), "failed: ACCESS\n");
  made.pending = "checkpoint-3"; /* given up, and still in the list */
  assert_string_equal(ask("{\"$ckpt\":\"wait\",\"name\":\"checkpoint-3\"}"),
                      "failed: checkpoint-3: uploading\n");
  made.status.fenced = 1;
  made.status.pending = 1;
  assert_memory_equal(ask("{\"$ckpt\":\"wait\"}"), "failed: ", 8);
}

static void a_drain_has_a_number_and_is_asked_about_by_it(void **state) {
  (void)state;
  assert_string_equal(ask("{\"$ckpt\":\"drain\",\"ms\":30000}"), "30000\n");
  assert_null(error);
  assert_string_equal(ask("{\"$ckpt\":\"drained\",\"drain\":7,\"json\":true}"),
                      "{\"over\":true}\n");
  assert_null(error);
  assert_string_equal(ask("{\"$ckpt\":\"drain\"}"), "-1\n"); /* which is no time */
  assert_string_equal(ask("{\"$ckpt\":\"drain\",\"ms\":\"30000\"}"), "-1\n");
  ask("{\"$ckpt\":\"drained\",\"drain\":8}");
  assert_string_equal(error, "it is not known");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, NULL)
  const struct CMUnitTest tests[] = {
      TEST(only_a_line_with_the_mark_is_a_question),
      TEST(a_status_is_text_or_json),
      TEST(why_gets_the_name_as_it_was),
      TEST(a_reload_gets_the_policies_that_are_named),
      TEST(a_reload_that_is_not_understood_is_none),
      TEST(what_is_not_understood_has_a_reason_and_no_answer),
      TEST(a_wait_is_done_when_nothing_is_pending),
      TEST(a_wait_for_a_path_from_elsewhere_is_for_its_unit),
      TEST(what_is_not_pending_is_done_only_if_it_is_saved_or_not_wanted),
      TEST(a_wait_fails_for_what_was_given_up),
      TEST(a_drain_has_a_number_and_is_asked_about_by_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
