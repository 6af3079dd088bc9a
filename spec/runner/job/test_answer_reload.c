/* What is answered about a reload, of a run that this file makes up. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runner/cli/record.h"
#include "runner/job/answer.h"
#include "runner/job/listener.h"

static struct {
  int status;
  uint64_t job, changes;
  size_t told;
  uint64_t uncompared;
  double max_delete;
  const char *newest_only;
  int unknown; /* the status of one that is not known any more */
} made;

int ckpt_run_reload(ckpt_run *run, const ckpt_reload_options *options, uint64_t *job) {
  *job = made.job;
  return made.status;
}

/* Each name is as long as one may be, and has to be escaped. */
int ckpt_run_reloaded(ckpt_run *run, uint64_t job, ckpt_reloaded *out, ckpt_reload_change_fn *fn,
                      void *ctx) {
  char name[256];
  memset(name, '\x01', sizeof name - 1);
  name[sizeof name - 1] = 0;
  *out = (ckpt_reloaded){.size = sizeof *out,
                         .over = 1,
                         .text = "",
                         .policies = "new",
                         .replaced = "old",
                         .stays = "",
                         .newest_only = made.newest_only ? made.newest_only : "",
                         .changes = made.changes,
                         .uncompared = made.uncompared,
                         .max_delete = made.max_delete};
  if (made.unknown) return made.unknown;
  for (size_t i = 0; i < made.told; i++)
    fn(ctx, &(ckpt_reload_change){.size = sizeof(ckpt_reload_change),
                                  .group = "g",
                                  .name = name,
                                  .before = 1,
                                  .before_reason = "kept",
                                  .after_reason = "not kept"});
  return 0;
}

static char *text;

static FILE *begin(void) {
  static size_t size;
  free(text);
  text = NULL;
  FILE *f = open_memstream(&text, &size);
  assert_non_null(f);
  return f;
}

static int set_up(void **state) {
  memset(&made, 0, sizeof made);
  return 0;
}

static int tear_down(void **state) {
  free(text);
  text = NULL;
  return 0;
}

static void one_that_has_begun_is_told_whatever_else_failed(void **state) {
  made.job = 7;
  made.status = CKPT_EFENCED;
  FILE *f = begin();
  reload_answer(NULL, NULL, &(ckpt_reload_options){.size = sizeof(ckpt_reload_options)}, f);
  fclose(f);
  assert_string_equal(text, "job 7\n");
}

static void all_are_counted_and_as_many_told_as_an_answer_has_room_for(void **state) {
  made.changes = 5000;
  made.told = 300;
  for (int json = 0; json < 2; json++) {
    FILE *f = begin();
    assert_int_equal(reloaded_answer(NULL, 1, json, f), 0);
    fclose(f);
    assert_true(strlen(text) > 16 << 10 && strlen(text) <= LISTENER_ANSWER_MAX / 2);
    if (!json) assert_non_null(strstr(text, " more\n"));
  }
  json_t *value = NULL;
  assert_int_equal(js_parse(text + strlen("over 0\n"), strlen(text) - strlen("over 0\n"), "answer",
                            &value, NULL),
                   0);
  const size_t shown = json_array_size(json_object_get(value, "differences"));
  assert_true(shown > 0 && shown < 300);
  assert_int_equal(json_integer_value(json_object_get(value, "differences_all")), 5000);
  json_decref(value);
}

static void few_of_them_are_all_told(void **state) {
  made.changes = made.told = 2;
  FILE *f = begin();
  assert_int_equal(reloaded_answer(NULL, 1, false, f), 0);
  fclose(f);
  assert_non_null(strstr(text, "would go "));
  assert_null(strstr(text, " more\n"));
}

static void what_was_not_compared_is_no_proof_that_both_keep_the_same(void **state) {
  made.uncompared = 3;
  FILE *f = begin();
  assert_int_equal(reloaded_answer(NULL, 1, false, f), 0);
  fclose(f);
  assert_null(strstr(text, "both keep the same"));
  assert_non_null(strstr(text, "3 commits were not compared"));
}

static void files_that_older_ones_lose_are_told(void **state) {
  for (int with = 0; with < 2; with++) {
    made.newest_only = with ? "optimizer.pt (2 keep them)" : "";
    FILE *f = begin();
    assert_int_equal(reloaded_answer(NULL, 1, false, f), 0);
    fclose(f);
    assert_int_equal(with, strstr(text, "older checkpoints lose, for good") != NULL);
  }
}

static void one_that_another_came_after_is_told_to_be_held(void **state) {
  made.unknown = CKPT_ENOENT;
  FILE *f = begin();
  assert_int_equal(reloaded_answer(NULL, 1, false, f), 0);
  fclose(f);
  char first[32];
  snprintf(first, sizeof first, "over %d\n", CKPT_EHELD);
  assert_int_equal(strncmp(text, first, strlen(first)), 0);
  assert_non_null(strstr(text, "another reload was asked for since"));
}

static void what_goes_at_once_is_told_where_it_is_not_all(void **state) {
  made.changes = made.told = 2;
  made.max_delete = 0.25;
  for (int json = 0; json < 2; json++) {
    FILE *f = begin();
    assert_int_equal(reloaded_answer(NULL, 1, json, f), 0);
    fclose(f);
    assert_non_null(strstr(text, json ? "\"max_delete\":0.25"
                                      : "one pass lets 25% of what is kept go at most"));
  }
  made.max_delete = 1;
  FILE *f = begin();
  assert_int_equal(reloaded_answer(NULL, 1, false, f), 0);
  fclose(f);
  assert_null(strstr(text, "one pass"));
}

/* A status has more to say. */
static void a_status_has_room_for_the_rest(void **state) {
  made.changes = made.told = 300;
  FILE *f = begin();
  ruling_print(f, NULL);
  fclose(f);
  assert_true(strlen(text) > 1000 && strlen(text) < 10 << 10);
  assert_non_null(strstr(text, " more\n"));
  f = begin();
  record r = record_begin(f);
  ruling_json(&r, NULL);
  record_end(&r);
  fclose(f);
  assert_true(strlen(text) > 1000 && strlen(text) < 10 << 10);
  assert_non_null(strstr(text, "\"would_go_all\":300"));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(one_that_has_begun_is_told_whatever_else_failed),
      TEST(all_are_counted_and_as_many_told_as_an_answer_has_room_for),
      TEST(few_of_them_are_all_told),
      TEST(what_goes_at_once_is_told_where_it_is_not_all),
      TEST(files_that_older_ones_lose_are_told),
      TEST(one_that_another_came_after_is_told_to_be_held),
      TEST(what_was_not_compared_is_no_proof_that_both_keep_the_same),
      TEST(a_status_has_room_for_the_rest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
