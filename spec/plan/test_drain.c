#include "with_cmocka.h"

#include <string.h>

#include "base/err.h"
#include "plan/drain.h"

/* A case is a line of checkpoints: a letter for what each is, then its kind; those of one kind are
 * written oldest first. */
typedef struct one_case {
  const char
      *units; /* W waits, S stored, N unwanted, O open, L left, F failed, G gone, U unproven */
  int end;
  bool over;
  int status, late; /* place from 1; 0: none */
} one_case;

#define T ERR_TIMEOUT

static const one_case cases[] = {
    /* nothing is complete, or all is there */
    {"", 0, true, 0, 0},
    {"S1", 0, true, 0, 0},
    {"S1 S2", 0, true, 0, 0},
    {"O1", 0, true, 0, 0},
    {"N1", 0, true, 0, 0},
    {"S1 N1 O1", 0, true, 0, 0},
    /* what waits is waited for, an older one, too, until time is up */
    {"W1", 0, false, 0, 0},
    {"W1 S1", 0, false, 0, 0},
    {"W1", T, true, T, 1},
    {"W1 S1", T, true, 0, 0},
    {"S1 W1", T, true, T, 2},
    {"S1 W2", T, true, T, 2},
    {"W1", ERR_FENCED, true, ERR_FENCED, 1},
    {"S1", ERR_FENCED, true, 0, 0},
    {"U1", 0, true, 0, 0},
    /* of several kinds each counts, and the newest that is late is named */
    {"W1 S1 W2", T, true, T, 3},
    {"W2 W1", T, true, T, 2},
    /* what comes to nothing */
    {"F1", 0, true, ERR_NOSPACE, 1},
    {"F1 S1", 0, true, 0, 0},
    {"L1 S2", 0, true, T, 1},
    {"L1 S1", 0, true, 0, 0},
    {"G1", 0, true, ERR_RETIRED, 1},
    {"S1 G1", 0, true, 0, 0},
    {"W1 G1", T, true, T, 1},
    {"W1 N1", T, true, T, 1},
};

static size_t read_case(const char *text, drain_unit *units) {
  static const char letters[] = "?WSNOLFGU";
  static const char *const kinds[] = {"a", "b"};
  size_t n = 0;
  for (const char *p = text; *p; p += p[2] ? 3 : 2, n++)
    units[n] = (drain_unit){
        .is = (drain_is)(strchr(letters, *p) - letters),
        .status = *p == 'F' ? ERR_NOSPACE : 0,
        .as = {.group = units, .series = kinds[p[1] - '1'], .made_ns = 7, .step = (int64_t)n}};
  return n;
}

static drain_answer judge(const char *units, standing_facts run, int end) {
  drain_unit all[8];
  standing_unit room[8];
  drain_facts f = {.units = all, .room = room, .run = run, .end = end};
  f.count = read_case(units, all);
  return drain_judge(&f);
}

static void the_newest_of_each_kind_that_is_wanted_has_to_be_durable(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const one_case *c = &cases[i];
    drain_answer a = judge(c->units, (standing_facts){0}, c->end);
    if (a.over != c->over || a.status != c->status || a.late != c->late - 1)
      fail_msg("\"%s\", %d: over %d, status %d, late %td", c->units, c->end, a.over, a.status,
               a.late + 1);
  }
}

static void the_word_is_that_of_a_run_that_stands_so(void **state) {
  (void)state;
  assert_int_equal(judge("", (standing_facts){0}, 0).word, STANDING_NOTHING_TO_SAVE);
  assert_int_equal(judge("", (standing_facts){.stored = true, .seen = true}, 0).word,
                   STANDING_DURABLE);
  assert_int_equal(judge("S1 N2", (standing_facts){0}, 0).word, STANDING_DURABLE);
  assert_int_equal(judge("N1", (standing_facts){0}, 0).word, STANDING_NOT_WANTED);
  assert_int_equal(judge("S1 U1", (standing_facts){0}, 0).word, STANDING_NOT_PROVEN);
  assert_int_equal(judge("S1 L1", (standing_facts){0}, 0).word, STANDING_NOT_DURABLE);
}

static void where_the_run_does_not_call_it_durable_no_drain_does(void **state) {
  (void)state;
  drain_answer a = judge("S1", (standing_facts){.fenced = true}, ERR_FENCED);
  assert_int_equal(a.word, STANDING_NOT_DURABLE);
  assert_int_equal(a.status, ERR_FENCED);
  assert_int_equal(judge("N1", (standing_facts){.fenced = true}, ERR_FENCED).status, ERR_FENCED);
  a = judge("S1", (standing_facts){.lost = true}, 0);
  assert_true(a.over && a.status != 0 && a.late == STANDING_NONE);
}

static void while_the_target_may_answer_for_the_first_time_it_is_waited_for(void **state) {
  (void)state;
  drain_unit one[1];
  standing_unit room[1];
  drain_facts f = {.units = one, .room = room, .unmet = true, .unseen = ERR_TIMEOUT};
  f.run.lost = true;
  f.count = read_case("S1", one);
  assert_false(drain_judge(&f).over);
  f.end = ERR_TIMEOUT;
  assert_int_equal(drain_judge(&f).status, ERR_TIMEOUT);
}

static void one_that_was_given_up_is_never_durable(void **state) {
  (void)state;
  drain_unit one[1];
  standing_unit room[1];
  drain_facts f = {.units = one, .room = room};
  f.count = read_case("F1", one);
  one[0].status = 0; /* of the one that was written in its place */
  assert_int_equal(drain_judge(&f).status, ERR_TIMEOUT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_newest_of_each_kind_that_is_wanted_has_to_be_durable),
      cmocka_unit_test(the_word_is_that_of_a_run_that_stands_so),
      cmocka_unit_test(where_the_run_does_not_call_it_durable_no_drain_does),
      cmocka_unit_test(while_the_target_may_answer_for_the_first_time_it_is_waited_for),
      cmocka_unit_test(one_that_was_given_up_is_never_durable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
