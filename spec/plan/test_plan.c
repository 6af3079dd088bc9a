#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

static detect_unit facts_of(const char *path) {
  return (detect_unit){.path = path, .kind = MATCH_DIR, .step = 3, .state = DETECT_COMPLETE};
}

static plan make(const char *path, policy_action action, bool in_place, bool publish) {
  plan p;
  err e = {0};
  detect_unit facts = facts_of(path);
  decision want = {.action = action};
  facts.in_place = in_place;
  if (plan_save(&facts, &want, publish, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static const char *ops_of(const plan *p) {
  static char text[256];
  text[0] = 0;
  for (int i = 0; i < p->count; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
             plan_op_name(p->ops[i]));
  return text;
}

static void each_decision_has_its_operations(void **unused) {
  plan p = make("a/ck-3", POLICY_SAVE, false, true);
  assert_string_equal(ops_of(&p), "attempt upload manifest publish commit");
  assert_string_equal(p.unit, "a/ck-3");
  assert_int_equal(p.step, 3);
  p = make("ck-3", POLICY_SAVE, false, false);
  assert_string_equal(ops_of(&p), "attempt upload manifest commit");
  p = make("last.pt", POLICY_SAVE_IF_SOUND, true, true);
  assert_string_equal(ops_of(&p), "prove snapshot attempt upload manifest publish commit");
  p = make("ck-3", POLICY_WAIT, true, true);
  assert_int_equal(p.count, 0);
}

static void every_plan_that_is_made_passes_the_check(void **unused) {
  for (int i = 0; i < 12; i++) {
    plan p = make("ck-3", (policy_action)(i % 3), i / 3 % 2, i / 6);
    assert_int_equal(plan_check(&p, NULL), 0);
  }
}

/* What must have been done before an operation, whatever else is in the plan; the table is written
 * from the meaning of the operations, not from their numbers. */
static bool safe(const plan *p) {
  static const struct {
    plan_op first, then;
  } order[] = {{PLAN_PROVE, PLAN_SNAPSHOT}, /* a torn unit is not worth a copy */
               {PLAN_PROVE, PLAN_ATTEMPT},  /* nothing is announced of what is not sound */
               {PLAN_SNAPSHOT, PLAN_ATTEMPT},
               {PLAN_ATTEMPT, PLAN_UPLOAD},    /* nobody writes into a directory without it */
               {PLAN_UPLOAD, PLAN_COMPANIONS}, /* it is taken after what it names */
               {PLAN_UPLOAD, PLAN_GATHER},     /* a part record says what was sent */
               {PLAN_COMPANIONS, PLAN_GATHER}, /* whoever sees rank 0's sees what is beside it */
               {PLAN_COMPANIONS, PLAN_MANIFEST},
               {PLAN_GATHER, PLAN_MANIFEST},  /* it is made of all parts */
               {PLAN_UPLOAD, PLAN_MANIFEST},  /* it has the digests, and says that all is there */
               {PLAN_MANIFEST, PLAN_PUBLISH}, /* it appears with the files */
               {PLAN_PUBLISH, PLAN_COMMIT},
               {PLAN_MANIFEST, PLAN_COMMIT}};
  static const plan_op needed[] = {PLAN_ATTEMPT, PLAN_UPLOAD, PLAN_MANIFEST, PLAN_COMMIT};
  int at[PLAN_COMMIT + 1];
  memset(at, -1, sizeof at);
  if (p->count == 0) return true;
  for (int i = 0; i < p->count; i++) {
    if (at[p->ops[i]] >= 0) return false; /* twice */
    at[p->ops[i]] = i;
  }
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (at[needed[i]] < 0) return false;
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    int first = at[order[i].first], then = at[order[i].then];
    if (first >= 0 && then >= 0 && first > then) return false;
  }
  return true;
}

/* All sequences of up to 4 operations with repetitions, and all permutations of all subsets. */
static long tried, passed;

static void compare(const plan *p) {
  tried++;
  passed += safe(p);
  if ((plan_check(p, NULL) == 0) != safe(p)) fail_msg("%s: safe is %d", ops_of(p), safe(p));
}

static void grow(plan *p, unsigned used) {
  compare(p);
  if (p->count == PLAN_COMMIT + 1) return;
  for (int op = 0; op <= PLAN_COMMIT; op++) {
    if (used >> op & 1 && p->count > 3) continue;
    p->ops[p->count++] = (plan_op)op;
    grow(p, used | 1u << op);
    p->count--;
  }
}

static void of_all_orders_exactly_the_safe_ones_pass(void **unused) {
  plan p = {.unit = "ck-3"};
  grow(&p, 0);
  assert_true(tried > 13700); /* the permutations of all subsets of 7 alone */
  assert_true(passed >= 9); /* nothing, and the four with prove, snapshot and publish or without */
}

static void more_operations_than_there_are_never_pass(void **unused) {
  plan p = make("ck-3", POLICY_SAVE, false, true);
  p.count = PLAN_OPS_MAX + 1;
  assert_int_equal(plan_check(&p, NULL), ERR_INVAL);
  p.count = -1;
  assert_int_equal(plan_check(&p, NULL), ERR_INVAL);
  p = make("ck-3", POLICY_SAVE, false, true);
  p.ops[0] = (plan_op)99;
  assert_int_equal(plan_check(&p, NULL), ERR_INVAL);
  p.ops[0] = (plan_op)-1;
  assert_int_equal(plan_check(&p, NULL), ERR_INVAL);
}

static void a_unit_that_leaves_the_directory_never_passes(void **unused) {
  static const char *const bad[] = {"", "/etc", "../ck-3", "a/../../b", "a//b", "a/", ".", "a/./b"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    err e = {0};
    plan p = make("x", POLICY_SAVE, false, true);
    snprintf(p.unit, sizeof p.unit, "%s", bad[i]);
    assert_int_equal(plan_check(&p, &e), ERR_INVAL);
    assert_memory_equal(e.text, "plan: ", 6);
    assert_int_equal(plan_check(&p, NULL), ERR_INVAL);
  }
}

static void a_path_that_is_too_long_is_an_error_and_no_other_path(void **unused) {
  err e = {0};
  char path[PLAN_UNIT_MAX + 10];
  memset(path, 'x', sizeof path);
  path[PLAN_UNIT_MAX] = 0;
  plan p;
  detect_unit facts = facts_of(path);
  decision want = {.action = POLICY_SAVE};
  assert_int_equal(plan_save(&facts, &want, true, &p, &e), ERR_LIMIT);
  assert_int_equal(p.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_decision_has_its_operations),
      cmocka_unit_test(every_plan_that_is_made_passes_the_check),
      cmocka_unit_test(of_all_orders_exactly_the_safe_ones_pass),
      cmocka_unit_test(more_operations_than_there_are_never_pass),
      cmocka_unit_test(a_unit_that_leaves_the_directory_never_passes),
      cmocka_unit_test(a_path_that_is_too_long_is_an_error_and_no_other_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
