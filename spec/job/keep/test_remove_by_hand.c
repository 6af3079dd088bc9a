/* What is taken away by hand, and what is refused. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filled.h"
#include "job/keep/remove_by_hand.h"

enum { PLAIN = 0, ALL = 1, DRY = 2 };
#define A_DAY ((int64_t)24 * 3600 * 1000000000)

static err why;

static int remove_as(filled *f, const char *name, int64_t grace, int flags) {
  asked a;
  remove_wish wish = {.everything = flags & ALL, .dry = flags & DRY, .grace_ns = grace};
  f->told[0] = 0;
  why.text[0] = 0;
  return remove_by_hand(filled_ask(f, f->uri, name, &a), &wish, filled_note, f, &why);
}

static void must_remove(filled *f, const char *name, int64_t grace, int flags, const char *told) {
  if (remove_as(f, name, grace, flags) != 0) fail_msg("%s", why.text);
  assert_string_equal(f->told, told);
}

static void must_list(filled *f, const char *expected) {
  f->told[0] = 0;
  assert_int_equal(catalog_each(f->w->env.io, NULL, f->uri, filled_note, f, NULL), 0);
  assert_string_equal(f->told, expected);
}

#define LIVE_ALL "live checkpoint-1, live checkpoint-2, live checkpoint-3, live checkpoint-4"
#define LIVE_GROUP ", live checkpoint-9"

static void a_removed_one_is_hidden_at_once_and_deleted_after_the_grace(void **state) {
  filled *f = *state;
  must_remove(f, "checkpoint-2", A_DAY, PLAIN, "dropped checkpoint-2");
  assert_true(filled_has_data(f, "checkpoint-2"));
  must_list(f, "live checkpoint-1, live checkpoint-3, live checkpoint-4" LIVE_GROUP);
  must_remove(f, "checkpoint-2", A_DAY, PLAIN, ""); /* the grace is a day */
  must_remove(f, "checkpoint-2", 0, PLAIN, "deleted checkpoint-2");
  assert_false(filled_has_data(f, "checkpoint-2"));
}

static void without_a_grace_it_is_gone_at_once(void **state) {
  filled *f = *state;
  must_remove(f, "checkpoint-1", 0, PLAIN, "dropped checkpoint-1, deleted checkpoint-1");
  assert_null(store_litter(f->w->env.store, "exp/T1"));
  assert_false(filled_has_data(f, "checkpoint-1"));
}

static void the_newest_is_refused_without_the_flag_and_nothing_is_written(void **state) {
  filled *f = *state;
  uint64_t next = runlog_view(f->log)->next;
  assert_int_equal(remove_as(f, "checkpoint-4", 0, PLAIN), ERR_HELD);
  assert_non_null(strstr(why.text, "newest"));
  assert_non_null(strstr(why.text, "`all`"));
  assert_int_equal(runlog_refresh(f->log, NULL), 0);
  assert_int_equal(runlog_view(f->log)->next, next);
  must_remove(f, "checkpoint-4", 0, ALL, "dropped checkpoint-4, deleted checkpoint-4");
}

static void without_name_or_flag_nothing_live_goes(void **state) {
  filled *f = *state;
  must_remove(f, NULL, 0, PLAIN, "");
  must_list(f, LIVE_ALL LIVE_GROUP);
  must_remove(f, "checkpoint-1", A_DAY, PLAIN, "dropped checkpoint-1");
  must_remove(f, "checkpoint-3", 0, PLAIN, "dropped checkpoint-3, deleted checkpoint-3");
  assert_true(
      filled_has_data(f, "checkpoint-1")); /* another one's word does not shorten its grace */
  must_remove(f, NULL, 0, PLAIN, "deleted checkpoint-1");
}

static void with_the_flag_everything_goes_in_every_group(void **state) {
  filled *f = *state;
  assert_int_equal(remove_as(f, NULL, 0, ALL), 0);
  must_list(f, "");
  assert_false(filled_has_data(f, "checkpoint-4") || filled_has_data(f, "exp/T1/checkpoint-9"));
  assert_null(store_litter(f->w->env.store, "exp/T1"));
}

static void a_name_that_several_groups_have_removes_none_of_them(void **state) {
  filled *f = *state;
  make_unit(f->w, "exp/T1/checkpoint-1", MATCH_DIR, 1);
  save_unit(f->w, f->group, "exp/T1/checkpoint-1", MATCH_DIR, 1);
  assert_int_equal(remove_as(f, "checkpoint-1", 0, PLAIN), ERR_INVAL);
  assert_true(filled_has_data(f, "checkpoint-1") && filled_has_data(f, "exp/T1/checkpoint-1"));
}

static void a_name_that_is_nowhere_is_told(void **state) {
  assert_int_equal(remove_as(*state, "checkpoint-77", 0, PLAIN), ERR_NOENT);
}

static void a_dry_run_tells_the_same_and_changes_nothing(void **state) {
  filled *f = *state;
  must_remove(f, "checkpoint-1", A_DAY, PLAIN, "dropped checkpoint-1");
  char *before = filled_picture(f);
  must_remove(f, "checkpoint-2", A_DAY, DRY, "dropped checkpoint-2");
  must_remove(f, NULL, 0, DRY, "deleted checkpoint-1");
  assert_int_equal(remove_as(f, "checkpoint-4", A_DAY, DRY), ERR_HELD);
  filled_must_be(f, before);
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, filled_set_up, filled_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(a_removed_one_is_hidden_at_once_and_deleted_after_the_grace),
      ON_A_TARGET(without_a_grace_it_is_gone_at_once),
      ON_A_TARGET(the_newest_is_refused_without_the_flag_and_nothing_is_written),
      ON_A_TARGET(without_name_or_flag_nothing_live_goes),
      ON_A_TARGET(with_the_flag_everything_goes_in_every_group),
      ON_A_TARGET(a_name_that_several_groups_have_removes_none_of_them),
      ON_A_TARGET(a_name_that_is_nowhere_is_told),
      ON_A_TARGET(a_dry_run_tells_the_same_and_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
