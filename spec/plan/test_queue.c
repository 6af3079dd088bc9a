#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/queue.h"
#include "prims/match.h"

enum { MOST = 8, SECOND = 1000000000 };

/* A line is written as its units: a letter for what each is, its kind, its step ('-': none), and the
 * time of its making, which is its place: "Wa5@7". Letters behind it are flags. */
typedef struct line {
  queue q;
  queue_unit units[MOST];
  char series[MOST][2];
} line;

static queue_stage stage_of(char letter) {
  return letter == 'W'   ? QUEUE_WAITS
         : letter == 'R' ? QUEUE_RUNS
         : letter == 'S' ? QUEUE_STORED
                         : QUEUE_AWAY;
}

static void read_flags(queue_unit *u, const char *flags) {
  u->kept = strchr(flags, 'k');
  u->early = strchr(flags, 'e');
  u->above = strchr(flags, 'a');
  u->rests = strchr(flags, 'r');
  u->judged = strchr(flags, 'j');
  u->sure = !strchr(flags, '?') && u->stage != QUEUE_AWAY;
  if (strchr(flags, 'l')) u->next_try = INT64_C(1000) * SECOND; /* its next try is late */
  if (strchr(flags, 's')) u->next_try = INT64_C(30) * SECOND;   /* ... or soon */
}

static void read_line(line *l, const char *text) {
  char copy[200], *rest = NULL;
  *l = (line){.q = {.takes_s = -1}};
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    queue_unit *u = &l->units[l->q.count];
    const char *at = strchr(word, '@');
    char *flags = NULL;
    l->series[l->q.count][0] = word[1];
    int64_t made = strtoll(at + 1, &flags, 10);
    *u = (queue_unit){.series = l->series[l->q.count],
                      .stage = stage_of(word[0]),
                      .step = word[2] == '-' ? MATCH_NO_STEP : strtoll(word + 2, NULL, 10),
                      .made_ns = made,
                      .place = {made, made},
                      .bytes = 100};
    read_flags(u, flags);
    l->q.count++;
  }
  l->q.units = l->units;
}

static bool supersedes(const char *two) {
  line l;
  read_line(&l, two);
  return queue_supersedes(&l.units[1], &l.units[0]);
}

static void a_newer_one_of_its_kind_supersedes_unless_its_step_is_older(void **state) {
  assert_true(supersedes("Wa1@1 Wa2@2"));
  assert_false(supersedes("Wa2@2 Wa1@1"));
  assert_false(supersedes("Wa1@1 Wb2@2"));
  assert_false(supersedes("Wa5@1 Wa4@2"));
  assert_true(supersedes("Wa5@1 Wa-@2"));
  assert_true(supersedes("Wa5@1 Wa6@1"));
  assert_false(supersedes("Wa5@1 Wa5@1"));
}

static bool is_too_late(const char *text, void (*set)(queue *)) {
  line l;
  read_line(&l, text);
  if (set) set(&l.q);
  return queue_too_late(&l.q, &l.units[0]);
}

static void keep_all(queue *q) {
  q->keep_all = true;
}

static void over(queue *q) {
  q->over = true;
}

static void short_of_time(queue *q) {
  q->preempted = true;
}

static void all_at_the_end(queue *q) {
  q->preempted = true;
  q->rest = POLICY_REST_ALL;
}

/* 10 s for each, and so much is left */
static void fit_in(queue *q, int64_t seconds) {
  q->preempted = true;
  q->rest = POLICY_REST_FIT;
  deadline_note(&q->pace, 100, INT64_C(10) * SECOND);
  q->takes_s = 0;
  for (size_t i = 0; i < q->count; i++)
    if (q->units[i].stage == QUEUE_WAITS || q->units[i].stage == QUEUE_RUNS)
      q->takes_s += deadline_takes(&q->pace, q->units[i].bytes);
  q->left_ns = seconds * SECOND;
}

static void fit_in_30(queue *q) {
  fit_in(q, 30);
}

static void an_older_one_never_follows_a_newer_one(void **state) {
  assert_true(is_too_late("Wa1@1 Sa2@2", NULL));
  assert_true(is_too_late("Wa1@1 Ra2@2", NULL));
  assert_true(is_too_late("Wa1@1k Ra2@2", keep_all));
  assert_true(is_too_late("Wa1@1 Wa2@2", NULL));
  assert_false(is_too_late("Wa1@1 Wb2@2", NULL));
  assert_false(is_too_late("Wa1@1 Xa2@2", NULL));
  assert_false(is_too_late("Wa2@2 Sa1@1 Wa1@1", NULL));
}

static void what_may_not_be_whole_lets_nobody_go(void **state) {
  assert_false(is_too_late("Wa1@1 Wa2@2?", NULL));
  assert_false(is_too_late("Wa1@1 Ra2@2?", NULL));
}

static void before_one_that_waits_it_may_have_its_turn(void **state) {
  assert_false(is_too_late("Wa1@1k Wa2@2", NULL));
  assert_false(is_too_late("Wa1@1 Wa2@2", keep_all));
  assert_false(is_too_late("Wa1@1 Wa2@2", over));
  assert_true(is_too_late("Wa1@1e Wa2@2", over));
  assert_true(is_too_late("Wa1@1k Wa2@2", short_of_time));
  assert_false(is_too_late("Wa1@1 Wa2@2", all_at_the_end));
}

static void when_time_is_short_what_fits_stays(void **state) {
  assert_false(is_too_late("Wa1@1 Wa2@2", fit_in_30));
  assert_true(is_too_late("Wa1@1 Wa2@2 Wa3@3", fit_in_30));
  /* One that was dropped, and is to be taken back, takes its time, too. */
  assert_true(is_too_late("Xa1@1 Wa2@2 Wa3@3", fit_in_30));
  assert_false(is_too_late("Xa1@1 Wa2@2", fit_in_30));
}

static void nobody_knows_whether_it_fits_on_ranks_or_without_a_pace(void **state) {
  line l;
  read_line(&l, "Wa1@1");
  fit_in_30(&l.q);
  assert_true(queue_fits(&l.q));
  assert_true(queue_stays(&l.q, &l.units[0]));
  l.q.ranks = true;
  assert_false(queue_fits(&l.q));
  assert_false(queue_stays(&l.q, &l.units[0]));
  l.q.ranks = false;
  l.q.takes_s = -1;
  assert_false(queue_fits(&l.q));
  assert_false(queue_stays(&l.q, &l.units[0]));
}

static void only_what_waits_is_let_go(void **state) {
  line l;
  read_line(&l, "Wa1@1 Ra1@1 Sa1@1 Xa1@1 Wa1@1k Wb1@1 Wa3@3 Wa2@2");
  const char *some = "10000000", *all = "10001000";
  for (size_t i = 0; i < l.q.count; i++) {
    assert_int_equal(queue_goes(&l.q, &l.units[7], &l.units[i], false), some[i] == '1');
    assert_int_equal(queue_goes(&l.q, &l.units[7], &l.units[i], true), all[i] == '1');
  }
}

static bool is_late(const char *text, int64_t newest) {
  line l;
  read_line(&l, text);
  return queue_is_late(&l.q, &l.units[0], (queue_place){newest, newest});
}

static void what_was_complete_before_the_newest_commit_comes_late(void **state) {
  assert_true(is_late("Wa1@1", 2));
  assert_false(is_late("Wa1@2", 2));
  assert_false(is_late("Wa1@3", 2));
  assert_false(is_late("Wa1@1a", 2)); /* above the checkpoints each kind has a line of its own */
  assert_true(is_late("Wa1@1a Sa2@2", 2));
  assert_true(is_late("Wa1@5 Sa2@6", 2));
  assert_false(is_late("Wa1@5 Ra2@6", 2));
}

static void the_time_at_which_it_was_complete_counts_before_that_of_its_files(void **state) {
  assert_true(queue_is_later((queue_place){2, 1}, (queue_place){1, 9}));
  assert_true(queue_is_later((queue_place){1, 9}, (queue_place){1, 1}));
  assert_false(queue_is_later((queue_place){1, 1}, (queue_place){1, 1}));
}

static bool is_outdone(const char *text) {
  line l;
  read_line(&l, text);
  return queue_is_outdone(&l.q, &l.units[0]);
}

static void nobody_is_asked_about_one_that_a_newer_whole_one_outdoes(void **state) {
  assert_false(is_outdone("Xa1@1j"));
  assert_true(is_outdone("Xa1@1j Xa2@2j"));
  assert_true(is_outdone("Xa1@1j Sa2@2"));
  assert_true(is_outdone("Xa1@1j Wa2@2"));
  assert_false(is_outdone("Xa1@1j Wa2@2?"));
  assert_false(is_outdone("Xa1@1j Xa2@2"));
  assert_false(is_outdone("Xa1@1j Sb2@2"));
  assert_false(is_outdone("Xa2@2j Sa1@1"));
}

/* Of the first of the line. */
static queue_word enter(const char *text, policy_queue how, void (*set)(queue *)) {
  line l;
  read_line(&l, text);
  if (set) set(&l.q);
  return queue_enter(&l.q, &l.units[0], how);
}

static void a_policy_says_how_its_checkpoints_queue(void **state) {
  assert_int_equal(enter("Wa2@2 Wa1@1", POLICY_NEWEST, NULL), QUEUE_PUSHES);
  assert_int_equal(enter("Wa2@2? Wa1@1", POLICY_NEWEST, NULL), QUEUE_ENTERS);
  assert_int_equal(enter("Wa1@1 Wa2@2", POLICY_NEWEST, NULL), QUEUE_PASSED);
  assert_int_equal(enter("Wa1@1 Wa2@2", POLICY_ALL, NULL), QUEUE_ENTERS);
  assert_int_equal(enter("Wa1@1 Wa2@2", POLICY_BLOCK, NULL), QUEUE_ENTERS);
  assert_int_equal(enter("Wa2@2", POLICY_NO_QUEUE, NULL), QUEUE_ENTERS);
  assert_int_equal(enter("Wa2@2 Sa1@1 Xa3@3", POLICY_NO_QUEUE, NULL), QUEUE_ENTERS);
  assert_int_equal(enter("Wa2@2 Ra1@1", POLICY_NO_QUEUE, NULL), QUEUE_REFUSED);
  assert_int_equal(enter("Wa2@2 Wb1@1", POLICY_NO_QUEUE, NULL), QUEUE_REFUSED);
}

static void where_all_are_kept_no_policy_refuses_one(void **state) {
  assert_int_equal(enter("Wa2@2 Wa1@1", POLICY_NEWEST, keep_all), QUEUE_ENTERS);
  assert_int_equal(enter("Wa2@2 Ra1@1", POLICY_NO_QUEUE, keep_all), QUEUE_ENTERS);
  assert_int_equal(enter("Wa2@2 Ra3@3", POLICY_NO_QUEUE, keep_all), QUEUE_PASSED);
}

/* Returns the place, from 1, of the one whose turn it is; 0: none. */
static ptrdiff_t next(const char *text, void (*set)(queue *)) {
  line l;
  read_line(&l, text);
  if (set) set(&l.q);
  return queue_next(&l.q, 0) + 1;
}

static void the_oldest_has_its_turn(void **state) {
  assert_int_equal(next("", NULL), 0);
  assert_int_equal(next("Sa1@1 Ra2@2 Xa3@3", NULL), 0);
  assert_int_equal(next("Wa2@2 Wa1@1 Wb3@3", NULL), 2);
  assert_int_equal(next("Wa2@1 Wa1@1", NULL), 2);
}

static void its_next_try_is_waited_for_but_not_for_long(void **state) {
  assert_int_equal(next("Wa1@1s Wa2@2", NULL), 1);
  assert_int_equal(next("Wa1@1l Wa2@2", NULL), 2);
  assert_int_equal(next("Wa1@1l Wa2@2", keep_all), 1);
  assert_int_equal(next("Wa1@1l", NULL), 0);
}

static void follow(queue *q) {
  q->follows = q->ranks = true;
}

static void on_another_rank_whoever_can_begin_begins(void **state) {
  assert_int_equal(next("Wa1@1s Wa2@2", follow), 2);
}

static void a_name_that_rests_goes_only_before_a_newer_one(void **state) {
  assert_int_equal(next("Wa-@1r", NULL), 0);
  assert_int_equal(next("Wa-@1r Wb2@2", NULL), 1);
  assert_int_equal(next("Wa-@3r Wb2@2", NULL), 2);
  assert_int_equal(next("Wa-@1r Wb2@2s", NULL), 2);
  assert_int_equal(next("Wa-@1ra Wb2@2", NULL), 2);
  assert_int_equal(next("Wa-@1r Wb2@2a", NULL), 2);
}

static void when_time_is_short_the_newest_is_first_with_what_belongs_to_its_step(void **state) {
  assert_int_equal(next("Wa1@1 Wa2@2", short_of_time), 2);
  assert_int_equal(next("Wa1@1 Wb2@2 Wa2@3", short_of_time), 2);
  assert_int_equal(next("Wa1@1 Wb-@2 Wa-@3", short_of_time), 3);
  assert_int_equal(next("Wa1@1 Wa2@2s", short_of_time), 1);
  assert_int_equal(next("Wa1@1 Wa2@2", fit_in_30), 1);
  assert_int_equal(next("Wa1@1 Wa2@2 Wa3@3", fit_in_30), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_newer_one_of_its_kind_supersedes_unless_its_step_is_older),
      cmocka_unit_test(an_older_one_never_follows_a_newer_one),
      cmocka_unit_test(what_may_not_be_whole_lets_nobody_go),
      cmocka_unit_test(before_one_that_waits_it_may_have_its_turn),
      cmocka_unit_test(when_time_is_short_what_fits_stays),
      cmocka_unit_test(nobody_knows_whether_it_fits_on_ranks_or_without_a_pace),
      cmocka_unit_test(only_what_waits_is_let_go),
      cmocka_unit_test(what_was_complete_before_the_newest_commit_comes_late),
      cmocka_unit_test(the_time_at_which_it_was_complete_counts_before_that_of_its_files),
      cmocka_unit_test(nobody_is_asked_about_one_that_a_newer_whole_one_outdoes),
      cmocka_unit_test(a_policy_says_how_its_checkpoints_queue),
      cmocka_unit_test(where_all_are_kept_no_policy_refuses_one),
      cmocka_unit_test(the_oldest_has_its_turn),
      cmocka_unit_test(its_next_try_is_waited_for_but_not_for_long),
      cmocka_unit_test(on_another_rank_whoever_can_begin_begins),
      cmocka_unit_test(a_name_that_rests_goes_only_before_a_newer_one),
      cmocka_unit_test(when_time_is_short_the_newest_is_first_with_what_belongs_to_its_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
