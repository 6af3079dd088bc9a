/* The decision alone: facts in, verdict out. */
#include "with_cmocka.h"

#include <string.h>

#include "event/detect_rule.h"

static const int64_t second = 1000000000;

/* One closed file, long quiet. */
static rule_facts quiet_file(void) {
  return (rule_facts){.files = 1,
                      .touched = true,
                      .quiet = 3600 * second,
                      .age = 3600 * second,
                      .grain = second / 100};
}

static rule_verdict decide(rule_facts f) {
  rule_verdict v;
  rule_decide(rules_builtin(), &f, &v);
  assert_true(*v.reason);
  assert_true(v.wait > 0);
  if (v.state != DETECT_OPEN) assert_true(v.wait == RULE_NEVER);
  return v;
}

static void a_closed_file_is_complete_after_quiet(void **state) {
  rule_facts f = quiet_file();
  assert_int_equal(decide(f).state, DETECT_COMPLETE);
  assert_false(decide(f).ask_writer);
  f.quiet = f.age = 10 * second;
  assert_int_equal(decide(f).state, DETECT_OPEN);
  assert_true(decide(f).wait == 20 * second);
}

static void a_rename_needs_only_to_settle(void **state) {
  rule_facts f = quiet_file();
  f.renamed = true;
  f.unproven = f.seen = 3;
  f.quiet = f.age = second / 10;
  assert_int_equal(decide(f).state, DETECT_COMPLETE);
  f.quiet = f.age = second / 20;
  assert_true(decide(f).wait == second / 20);
}

static void nothing_that_is_open_is_ever_complete(void **state) {
  /* Every combination of what could speak for it. */
  for (unsigned bits = 0; bits < 1024; bits++) {
    rule_facts f = quiet_file();
    f.open = 1;
    f.open_name = "x";
    f.renamed = bits & 1;
    f.marker = bits & 2 ? "m" : NULL;
    f.clean = bits & 4;
    f.unproven = bits & 8 ? 1 : 0;
    f.dead = bits & 16;
    f.seen = bits & 32 ? 1 : 0;
    f.blind = bits & 64;
    f.writer = bits & 128 ? RULE_NOBODY : RULE_UNASKED;
    f.ended = bits & 256;
    f.lived = bits & 512;
    assert_int_equal(decide(f).state, f.ended ? DETECT_UNPROVEN : DETECT_OPEN);
  }
}

static void an_old_or_missing_marker_is_overridden_by_no_silence(void **state) {
  for (unsigned bits = 0; bits < 128; bits++) {
    rule_facts f = quiet_file();
    f.lived = bits & 64;
    f.clean = bits & 1;
    f.unproven = bits & 2 ? 1 : 0;
    f.dead = bits & 4;
    f.seen = bits & 8 ? 1 : 0;
    f.lacks = bits & 16 ? "x" : NULL;
    f.writer = RULE_NOBODY;
    if (bits & 32) {
      f.marker = "m";
      f.marker_old = true;
    } else {
      f.needed = "m";
    }
    assert_int_not_equal(decide(f).state, DETECT_COMPLETE);
  }
}

static void what_nobody_proves_is_never_complete(void **state) {
  rule_facts f = quiet_file();
  f.unproven = 1;
  f.writer = RULE_NOBODY;
  assert_int_equal(decide(f).state, DETECT_UNPROVEN);
  f.clean = true;
  assert_int_equal(decide(f).state, DETECT_UNPROVEN);
  f.marker = "m";
  assert_int_equal(decide(f).state, DETECT_COMPLETE);
  f.lacks = "x";
  assert_int_equal(decide(f).state, DETECT_UNPROVEN);
  f.lacks = NULL;
  f.dead = true;
  assert_int_equal(decide(f).state, DETECT_UNPROVEN);
}

static void somebody_who_has_it_open_keeps_it_open(void **state) {
  rule_facts f = quiet_file();
  f.seen = 1;
  assert_true(decide(f).ask_writer);
  f.writer = RULE_SOMEBODY;
  assert_int_equal(decide(f).state, DETECT_OPEN);
  f.needed = "m";
  f.unproven = 1;
  f.touched = false;
  assert_int_equal(decide(f).state, DETECT_OPEN);
  f.writer = RULE_NOBODY;
  assert_int_equal(decide(f).state, DETECT_BROKEN);
}

static void a_clean_end_spares_the_quiet_time_but_not_the_tick(void **state) {
  rule_facts f = quiet_file();
  f.clean = true;
  f.writer = RULE_NOBODY;
  f.quiet = f.age = second / 1000;
  assert_int_equal(decide(f).state, DETECT_OPEN);
  assert_true(decide(f).wait <= second / 100);
  f.quiet = f.age = second / 50;
  assert_int_equal(decide(f).state, DETECT_COMPLETE);
  f.foreign = true; /* another host may still be at it */
  assert_int_equal(decide(f).state, DETECT_OPEN);
}

static void nothing_is_waited_for_for_ever_once_the_writer_is_gone(void **state) {
  static const int64_t quiets[] = {0, 1000000, 50000000, 3000000000, 20000000000, 3600000000000};
  for (unsigned bits = 0; bits < 1u << 15; bits++) {
    rule_facts f = quiet_file();
    f.ended = true;
    f.clean = bits & 1;
    f.dead = bits & 2;
    f.lived = bits & 4;
    f.files = bits & 8 ? 0 : 3;
    f.open = bits & 16 ? 1 : 0;
    f.open_name = "x";
    f.unproven = bits & 32 ? 1 : 0;
    f.removed = f.shrinking = bits & 64;
    f.renamed = bits & 128;
    f.needed = bits & 256 ? "m" : NULL;
    f.needed_always = bits & 512;
    f.marker = bits & 1024 ? "m" : NULL;
    f.marker_old = bits & 2048;
    f.lacks = bits & 4096 ? "y" : NULL;
    f.touched = bits & 8192;
    f.foreign = f.blind = bits & 16384;
    for (size_t i = 0; i < sizeof quiets / sizeof *quiets; i++) {
      f.quiet = f.age = quiets[i];
      f.writer = RULE_NOBODY;
      rule_verdict v = decide(f);
      if (v.state == DETECT_OPEN) assert_true(v.wait <= 30 * second);
      if (i == 5) assert_int_not_equal(v.state, DETECT_OPEN);
      f.writer = RULE_SOMEBODY;
      v = decide(f);
      if (v.state == DETECT_OPEN) assert_true(v.wait <= 30 * second);
    }
  }
}

static void what_the_living_closed_waits_for_nobody(void **state) {
  rule_facts f = quiet_file();
  f.quiet = f.age = second / 5;
  f.marker = "m";
  assert_int_equal(decide(f).state, DETECT_OPEN);
  f.lived = f.ended = true;
  assert_true(decide(f).ask_writer);
  f.writer = RULE_SOMEBODY;
  assert_int_equal(decide(f).state, DETECT_OPEN);
  f.writer = RULE_NOBODY;
  assert_int_equal(decide(f).state, DETECT_COMPLETE);
  f.grain = 2 * second; /* the tick is waited for all the same */
  assert_int_equal(decide(f).state, DETECT_OPEN);
}

static void a_users_marker_counts_more_than_a_rename(void **state) {
  rule_facts f = quiet_file();
  f.renamed = true;
  f.needed = "DONE";
  assert_int_equal(decide(f).state, DETECT_COMPLETE);
  f.needed_always = true;
  assert_int_equal(decide(f).state, DETECT_OPEN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_closed_file_is_complete_after_quiet),
      cmocka_unit_test(a_rename_needs_only_to_settle),
      cmocka_unit_test(nothing_that_is_open_is_ever_complete),
      cmocka_unit_test(an_old_or_missing_marker_is_overridden_by_no_silence),
      cmocka_unit_test(what_nobody_proves_is_never_complete),
      cmocka_unit_test(somebody_who_has_it_open_keeps_it_open),
      cmocka_unit_test(a_clean_end_spares_the_quiet_time_but_not_the_tick),
      cmocka_unit_test(nothing_is_waited_for_for_ever_once_the_writer_is_gone),
      cmocka_unit_test(what_the_living_closed_waits_for_nobody),
      cmocka_unit_test(a_users_marker_counts_more_than_a_rename),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
