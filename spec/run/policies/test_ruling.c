/* Which chains rule what is kept, and for how long. The helper is that of policy_helper.h: it answers what the memory
 * says. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy_helper.h"
#include "run/policies/ruling.h"

#define KEEPS "{\"ok\":true,\"has\":{\"keep\":[\"p\"]}}"

enum { COUNT = 3 };

static const policy_item items[COUNT] = {{.number = 1, .name = "a", .dir = "a"},
                                         {.number = 2, .name = "b", .dir = "b"},
                                         {.number = 3, .name = "c", .dir = "c", .newest = true}};

/* A chain of its own, which keeps the items at which `keeps` has a 1. */
static void add(policy_world *w, ruling *r, const char *loads, const char *keeps, int64_t until) {
  policy *p;
  ruling_memories m = {0};
  char answer[300];
  err e = {0};
  if (policy_world_open(w, loads, NULL, &p, &e) < 0) fail_msg("%s", e.text);
  snprintf(answer, sizeof answer,
           "{\"ok\":true,\"answer\":{\"keep\":\"%s\",\"why\":[1,1,1],\"reasons\":[\"by %s\"]},"
           "\"by\":\"p\"}",
           keeps, keeps);
  char *memory = policy_world_memory(answer);
  assert_true(ruling_remember(&m, "g", memory));
  free(memory);
  assert_int_equal(ruling_add(r, p, until, &m, &e), 0);
}

static const char *kept(ruling *r, bool *answered) {
  static char text[COUNT + 1];
  policy_kept out[COUNT];
  *answered = ruling_select(r, POLICY_KEEP, "g", items, COUNT, out);
  for (int i = 0; i < COUNT; i++) text[i] = out[i].keep ? '1' : '0';
  return text;
}

static void what_any_of_them_keeps_stays(void **state) {
  policy_world *w = *state;
  ruling r = {0};
  bool answered;
  assert_string_equal(kept(&r, &answered), "000"); /* there is none */
  assert_true(answered);
  add(w, &r, KEEPS, "100", 10);
  add(w, &r, KEEPS, "010", 20);
  assert_string_equal(kept(&r, &answered), "110");
  assert_true(answered);
  policy_kept newest[COUNT] = {
      {.reason = "new"}, {.reason = "new"}, {.keep = true, .reason = "new"}};
  policy_kept others[COUNT];
  ruling_select(&r, POLICY_KEEP, "g", items, COUNT, others);
  ruling_join(newest, others, COUNT);
  assert_true(newest[0].keep && newest[1].keep && newest[2].keep);
  assert_string_equal(newest[0].reason, "by 100");
  assert_string_equal(newest[2].reason, "new");
  ruling_close(&r);
}

static void each_rules_until_its_own_time_is_over(void **state) {
  policy_world *w = *state;
  ruling r = {0};
  bool answered;
  add(w, &r, KEEPS, "100", 30);
  add(w, &r, KEEPS, "010", 20);
  assert_int_equal(ruling_due(&r), 20);
  assert_int_equal(ruling_last(&r), 30);
  assert_int_equal(ruling_end(&r, 19), 0);
  assert_int_equal(ruling_end(&r, 20), 1);
  assert_string_equal(kept(&r, &answered), "100");
  assert_int_equal(ruling_end(&r, INT64_MAX - 1), 1);
  assert_int_equal(ruling_due(&r), INT64_MAX);
  assert_int_equal(ruling_last(&r), 0);
  assert_string_equal(kept(&r, &answered), "000");
  assert_non_null(policy_rules(r.first)); /* those of the run */
  ruling_close(&r);
}

static void one_without_a_good_answer_keeps_all(void **state) {
  policy_world *w = *state;
  ruling r = {0};
  bool answered;
  add(w, &r, KEEPS, "000", 10);
  add(w, &r, KEEPS, "10", 10); /* not one for each */
  assert_string_equal(kept(&r, &answered), "111");
  assert_false(answered);
  assert_true(ruling_fallbacks(&r) > 0);
  ruling_close(&r);
  add(w, &r, "{\"ok\":true,\"has\":{}}", "000", 10);
  assert_string_equal(kept(&r, &answered), "111");
  assert_false(answered);
  ruling_close(&r);
}

int main(int argc, char **argv) {
  (void)argc;
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      IN_POLICY_WORLD(what_any_of_them_keeps_stays),
      IN_POLICY_WORLD(each_rules_until_its_own_time_is_over),
      IN_POLICY_WORLD(one_without_a_good_answer_keeps_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
