#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/policy.h"

static decision decide(detect_state state) {
  detect_unit facts = {.path = "ck-3", .state = state, .reason = "as it is"};
  return policy_decide(&facts);
}

static void what_is_complete_is_saved(void **unused) {
  (void)unused;
  assert_int_equal(decide(DETECT_COMPLETE).action, POLICY_SAVE);
}

static void what_is_unproven_is_saved_only_after_a_structural_check(void **unused) {
  (void)unused;
  assert_int_equal(decide(DETECT_UNPROVEN).action, POLICY_SAVE_IF_SOUND);
  detect_unit missing = {.state = DETECT_UNPROVEN, .lacking = true};
  assert_int_equal(policy_decide(&missing).action, POLICY_WAIT);
  detect_unit first = {.state = DETECT_UNPROVEN, .alone = true};
  assert_int_equal(policy_decide(&first).action, POLICY_WAIT);
}

static void what_is_open_broken_or_gone_is_left_alone(void **unused) {
  (void)unused;
  assert_int_equal(decide(DETECT_OPEN).action, POLICY_WAIT);
  assert_int_equal(decide(DETECT_BROKEN).action, POLICY_WAIT);
  assert_int_equal(decide(DETECT_GONE).action, POLICY_WAIT);
}

static void a_state_that_is_not_known_is_left_alone(void **unused) {
  (void)unused;
  assert_int_equal(decide((detect_state)99).action, POLICY_WAIT);
}

static void the_decision_names_its_policy_and_the_facts_reason(void **unused) {
  (void)unused;
  for (int state = DETECT_OPEN; state <= DETECT_GONE; state++) {
    decision d = decide((detect_state)state);
    assert_string_equal(d.policy, "builtin");
    assert_string_equal(d.reason, "as it is");
    assert_int_equal(d.queue, POLICY_NEWEST);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_complete_is_saved),
      cmocka_unit_test(what_is_unproven_is_saved_only_after_a_structural_check),
      cmocka_unit_test(what_is_open_broken_or_gone_is_left_alone),
      cmocka_unit_test(a_state_that_is_not_known_is_left_alone),
      cmocka_unit_test(the_decision_names_its_policy_and_the_facts_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
