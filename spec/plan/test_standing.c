#include "with_cmocka.h"

#include <string.h>

#include "plan/standing.h"

/* A case is a line of units: a letter for what each is, then its kind and its age of making:
 * "S1" is stored, of kind '1'; the units of one kind are written oldest first. */
typedef struct one_case {
  const char *units; /* "W1 S1": W coming, S stored, O open, F failed, N unwanted, P unproven,
                        A aside */
  const char *facts; /* any of "stored", "seen", "lost", "fenced" */
  standing_word word;
  int late, unproven, unwanted; /* places from 1; 0: none */
} one_case;

#define D STANDING_DURABLE
#define E STANDING_NOTHING_TO_SAVE
#define N STANDING_NOT_WANTED
#define P STANDING_NOT_PROVEN
#define X STANDING_NOT_DURABLE

static const one_case cases[] = {
    /* nothing is there: never durable, whatever the target has of others */
    {"", "", E, 0, 0, 0},
    {"", "stored", E, 0, 0, 0},
    {"", "seen", E, 0, 0, 0},
    {"A1", "", E, 0, 0, 0},
    /* what is in the target */
    {"S1", "", D, 0, 0, 0},
    {"", "stored seen", D, 0, 0, 0},
    {"A1", "stored seen", D, 0, 0, 0},
    {"S1 S1 S1", "", D, 0, 0, 0},
    /* what is on its way, or was given up: the newest of a kind counts */
    {"W1", "", X, 1, 0, 0},
    {"S1 W1", "", X, 2, 0, 0},
    {"W1 S1", "", D, 0, 0, 0},
    {"F1", "", X, 1, 0, 0},
    {"S1 F1", "", X, 2, 0, 0},
    {"F1 S1", "", D, 0, 0, 0},
    {"S1 F2", "", X, 2, 0, 0},
    {"F2 S1", "", X, 1, 0, 0},
    {"S1 F2 S1 S2", "", D, 0, 0, 0},
    /* while one is written nobody knows what it will be */
    {"O1", "", X, 0, 0, 0},
    {"S1 O1", "", X, 0, 0, 0},
    {"O1 S1", "", X, 0, 0, 0},
    /* the policy said no */
    {"N1", "", N, 0, 0, 1},
    {"N1 N1", "", N, 0, 0, 2},
    {"N1 N2 A2", "", N, 0, 0, 2},
    {"S1 N1", "", D, 0, 0, 2},
    {"N1 S1", "", D, 0, 0, 0},
    {"N1", "stored", D, 0, 0, 1},
    {"W1 N1", "", X, 1, 0, 2},
    {"N2 S1", "", D, 0, 0, 1},
    /* nothing proves it whole */
    {"P1", "", P, 0, 1, 0},
    {"S1 P1", "", P, 0, 2, 0},
    {"P1 S1", "", D, 0, 0, 0},
    {"P1 P1", "", P, 0, 2, 0},
    {"S1 P2", "", P, 0, 2, 0},
    {"N1 P1", "", P, 0, 2, 1},
    {"P1 W1", "", X, 2, 0, 0},
    {"W1 P1", "", X, 1, 2, 0},
    /* the target is not what it was, or another's by now */
    {"S1", "lost", X, 0, 0, 0},
    {"S1", "fenced", X, 0, 0, 0},
    {"", "fenced", X, 0, 0, 0},
    {"", "stored lost", X, 0, 0, 0},
};

static standing_is meaning(char letter) {
  switch (letter) {
  case 'S': return STANDING_IS_STORED;
  case 'W': return STANDING_IS_COMING;
  case 'O': return STANDING_IS_OPEN;
  case 'F': return STANDING_IS_FAILED;
  case 'N': return STANDING_IS_UNWANTED;
  case 'P': return STANDING_IS_UNPROVEN;
  default: return STANDING_IS_ASIDE;
  }
}

static standing_answer decide(const one_case *c, bool backwards) {
  static const char *const series[] = {"a-", "b-"};
  standing_unit units[8];
  size_t n = 0;
  for (const char *at = c->units; *at; at += at[2] ? 3 : 2, n++)
    units[n] = (standing_unit){.is = meaning(at[0]),
                               .group = "",
                               .series = series[at[1] - '1'],
                               .made_ns = (int64_t)n + 100};
  for (size_t i = 0; backwards && i < n / 2; i++) {
    standing_unit other = units[i];
    units[i] = units[n - 1 - i];
    units[n - 1 - i] = other;
  }
  standing_answer s = standing_decide(&(standing_facts){.units = units,
                                                        .count = n,
                                                        .stored = strstr(c->facts, "stored"),
                                                        .seen = strstr(c->facts, "seen"),
                                                        .lost = strstr(c->facts, "lost"),
                                                        .fenced = strstr(c->facts, "fenced")});
  if (!backwards) return s;
  ptrdiff_t last = (ptrdiff_t)n - 1;
  if (s.late >= 0) s.late = last - s.late;
  if (s.unproven >= 0) s.unproven = last - s.unproven;
  if (s.unwanted >= 0) s.unwanted = last - s.unwanted;
  return s;
}

/* In whatever order the units come. */
static void each_case_has_its_word(void **state) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int backwards = 0; backwards < 2; backwards++) {
      const one_case *c = &cases[i];
      standing_answer s = decide(c, backwards);
      if (s.word != c->word || s.late + 1 != c->late || s.unproven + 1 != c->unproven ||
          s.unwanted + 1 != c->unwanted)
        fail_msg("\"%s\" %s: word %d, late %td, unproven %td, unwanted %td", c->units, c->facts,
                 (int)s.word, s.late + 1, s.unproven + 1, s.unwanted + 1);
    }
}

static void units_of_two_groups_are_of_two_kinds(void **state) {
  int one, two;
  const standing_unit units[] = {
      {.is = STANDING_IS_FAILED, .group = &one, .series = "a-", .made_ns = 1},
      {.is = STANDING_IS_STORED, .group = &two, .series = "a-", .made_ns = 2}};
  standing_answer s = standing_decide(&(standing_facts){.units = units, .count = 2});
  assert_int_equal(s.word, STANDING_NOT_DURABLE);
  assert_int_equal(s.late, 0);
}

/* A refusal that is remembered, of a unit that was asked about again. */
static void one_that_is_wanted_after_all_is_not_called_unwanted(void **state) {
  const standing_unit units[] = {{.is = STANDING_IS_COMING, .series = "a-", .made_ns = 1},
                                 {.is = STANDING_IS_UNWANTED, .series = "a-", .made_ns = 1}};
  standing_answer s = standing_decide(&(standing_facts){.units = units, .count = 2});
  assert_int_equal(s.word, STANDING_NOT_DURABLE);
  assert_int_equal(s.unwanted, STANDING_NONE);
}

static void of_two_that_were_made_at_once_the_higher_step_is_the_newer(void **state) {
  standing_unit units[] = {{.is = STANDING_IS_FAILED, .series = "a-", .made_ns = 1, .step = 9},
                           {.is = STANDING_IS_STORED, .series = "a-", .made_ns = 1, .step = 10}};
  standing_facts facts = {.units = units, .count = 2};
  assert_int_equal(standing_decide(&facts).word, STANDING_DURABLE);
  units[0].step = 11;
  assert_int_equal(standing_decide(&facts).word, STANDING_NOT_DURABLE);
}

static void each_word_has_a_name(void **state) {
  assert_null(standing_name(STANDING_UNKNOWN));
  assert_string_equal(standing_name(STANDING_DURABLE), "durable");
  assert_string_equal(standing_name(STANDING_NOTHING_TO_SAVE), "nothing_to_save");
  assert_string_equal(standing_name(STANDING_NOT_WANTED), "not_wanted");
  assert_string_equal(standing_name(STANDING_NOT_PROVEN), "not_proven");
  assert_string_equal(standing_name(STANDING_NOT_DURABLE), "not_durable");
  assert_null(standing_name((standing_word)99));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_case_has_its_word),
      cmocka_unit_test(units_of_two_groups_are_of_two_kinds),
      cmocka_unit_test(one_that_is_wanted_after_all_is_not_called_unwanted),
      cmocka_unit_test(of_two_that_were_made_at_once_the_higher_step_is_the_newer),
      cmocka_unit_test(each_word_has_a_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
