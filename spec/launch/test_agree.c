/* When all tasks of a launch agree that a unit is complete. */
#include "with_cmocka.h"

#include <stdlib.h>

#include "launch/rule/agree.h"

enum { TASKS = 4, STAMP = 5, NUMBER = 10 };

typedef struct world {
  launch_answer says[TASKS];
  const launch_answer *answers[TASKS];
  agree_facts facts;
  agree_unit unit;
} world;

/* The first one asks; all others see the unit, and nobody has it open. */
static world all_agree(void) {
  world w = {.unit = {"u", STAMP, NUMBER}};
  for (int i = 1; i < TASKS; i++) {
    w.says[i].number = NUMBER;
    assert_true(launch_add(&w.says[i].units, &(launch_unit){.path = (char *)"u", .stamp = STAMP}));
  }
  return w;
}

static agree_finding judge(world *w) {
  for (int i = 0; i < TASKS; i++)
    w->answers[i] = w->says[i].units.count || w->says[i].ended ? &w->says[i] : NULL;
  w->facts = (agree_facts){w->answers, TASKS, 0};
  agree_finding found = agree_about(&w->facts, &w->unit);
  return found;
}

static void end(world *w) {
  for (int i = 0; i < TASKS; i++) launch_free_answer(&w->says[i]);
}

static void check(world *w, agree_word word, uint32_t index, uint32_t missing) {
  agree_finding found = judge(w);
  assert_int_equal(found.word, word);
  assert_int_equal(found.missing, missing);
  if (word != AGREE_YES) assert_int_equal(found.index, index);
}

static void they_do_when_each_has_seen_these_files_since(void **state) {
  world w = all_agree();
  check(&w, AGREE_YES, 0, 0);
  w.says[2].number = NUMBER + 5; /* a later question was about it, too */
  check(&w, AGREE_YES, 0, 0);
  end(&w);
}

static void an_answer_to_an_older_question_counts_for_nothing(void **state) {
  world w = all_agree();
  w.says[3].number = NUMBER - 1;
  check(&w, AGREE_ASKED, 3, 1);
  end(&w);
}

static void an_answer_about_other_units_counts_for_nothing(void **state) {
  world w = all_agree();
  w.unit.path = "v";
  check(&w, AGREE_ASKED, 1, 3);
  end(&w);
}

static void other_files_and_open_ones_are_no_agreement(void **state) {
  world w = all_agree();
  w.says[1].units.at[0].stamp++;
  check(&w, AGREE_DIFFERS, 1, 1);
  w.says[2].units.at[0].open = true;
  check(&w, AGREE_OPEN, 2, 2);
  end(&w);
}

static void one_that_has_said_nothing_is_unknown_and_not_gone(void **state) {
  world w = all_agree();
  launch_free_answer(&w.says[3]);
  check(&w, AGREE_UNKNOWN, 3, 1);
  assert_int_equal(agree_ends_of(&w.facts).unknown, 1);
  end(&w);
}

static void one_that_has_ended_writes_nothing_more(void **state) {
  world w = all_agree();
  w.says[1].number = 0;
  w.says[1].ended = w.says[1].clean = true;
  w.says[2].units.at[0].stamp++;
  w.says[2].ended = true;
  check(&w, AGREE_YES, 0, 0);
  agree_ends ends = agree_ends_of(&w.facts);
  assert_int_equal(ends.ended, 2);
  assert_int_equal(ends.unclean, 1);
  assert_int_equal(ends.living, 1);
  assert_int_equal(ends.unknown, 0);
  end(&w);
}

/* Every combination of what the three others may have said, against the words of the rule. */
static void it_is_so_for_each_combination(void **state) {
  enum { NOTHING, OLD, OTHER, OPEN, SAME, ENDED, KINDS };
  for (int n = 0; n < KINDS * KINDS * KINDS; n++) {
    world w = all_agree();
    bool all = true;
    for (int i = 1, left = n; i < TASKS; i++, left /= KINDS) {
      int kind = left % KINDS;
      if (kind == NOTHING) launch_free_answer(&w.says[i]);
      if (kind == OLD) w.says[i].number--;
      if (kind == OTHER) w.says[i].units.at[0].stamp++;
      if (kind == OPEN) w.says[i].units.at[0].open = true;
      if (kind == ENDED) w.says[i].ended = true;
      all = all && kind >= SAME;
    }
    assert_int_equal(judge(&w).word == AGREE_YES, all);
    end(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(they_do_when_each_has_seen_these_files_since),
      cmocka_unit_test(an_answer_to_an_older_question_counts_for_nothing),
      cmocka_unit_test(an_answer_about_other_units_counts_for_nothing),
      cmocka_unit_test(other_files_and_open_ones_are_no_agreement),
      cmocka_unit_test(one_that_has_said_nothing_is_unknown_and_not_gone),
      cmocka_unit_test(one_that_has_ended_writes_nothing_more),
      cmocka_unit_test(it_is_so_for_each_combination),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
