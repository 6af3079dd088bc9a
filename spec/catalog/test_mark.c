/* Which checkpoint a mark is put on. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/mark.h"
#include "filled.h"

static err why;

static int mark(filled *f, const char *name, mark_wish wish) {
  asked a;
  f->told[0] = 0;
  why.text[0] = 0;
  return mark_checkpoint(filled_ask(f, f->uri, name, &a), &wish, filled_note, f, &why);
}

static void must_mark(filled *f, const char *name, mark_wish wish, const char *told) {
  if (mark(f, name, wish) != 0) fail_msg("%s", why.text);
  assert_string_equal(f->told, told);
}

static const runlog_commit *find(runlog *log, const char *unit) {
  assert_int_equal(runlog_refresh(log, NULL), 0);
  return runlog_newest_ever(runlog_view(log), unit);
}

static void the_newest_of_all_is_marked_then_the_one_before_it(void **state) {
  filled *f = *state;
  mark_wish bad = {.reason = "NaN"};
  must_mark(f, NULL, bad, "live checkpoint-9");
  assert_true(find(f->group, "checkpoint-9")->bad);
  must_mark(f, NULL, bad, "live checkpoint-4");
  assert_string_equal(find(f->log, "checkpoint-4")->bad_reason, "NaN");
  must_mark(f, "checkpoint-4", bad, "live checkpoint-4"); /* it is so already */
}

static void a_mark_is_taken_back(void **state) {
  filled *f = *state;
  assert_int_equal(mark(f, NULL, (mark_wish){.good = true}), ERR_NOENT);
  assert_non_null(strstr(why.text, "marked bad"));
  must_mark(f, "checkpoint-2", (mark_wish){0}, "live checkpoint-2");
  must_mark(f, NULL, (mark_wish){.good = true}, "live checkpoint-2");
  assert_false(find(f->log, "checkpoint-2")->bad);
}

static void the_commit_of_that_number_alone_is_marked(void **state) {
  filled *f = *state;
  uint64_t n = find(f->log, "checkpoint-3")->n;
  assert_int_equal(mark(f, "checkpoint-2", (mark_wish){.only = n}), ERR_NOENT);
  must_mark(f, "checkpoint-3", (mark_wish){.only = n}, "live checkpoint-3");
}

static void a_dry_mark_writes_nothing(void **state) {
  filled *f = *state;
  char *before = filled_picture(f);
  must_mark(f, "checkpoint-2", (mark_wish){.dry = true}, "live checkpoint-2");
  filled_must_be(f, before);
}

static void a_name_that_several_have_or_that_is_gone_is_refused(void **state) {
  filled *f = *state;
  make_unit(f->w, "exp/T1/checkpoint-1", MATCH_DIR, 1);
  save_unit(f->w, f->group, "exp/T1/checkpoint-1", MATCH_DIR, 1);
  assert_int_equal(mark(f, "checkpoint-1", (mark_wish){0}), ERR_INVAL);
  assert_int_equal(mark(f, "checkpoint-77", (mark_wish){0}), ERR_NOENT);
  uint64_t n = find(f->log, "checkpoint-3")->n;
  assert_int_equal(runlog_drop(f->log, n, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(mark(f, "checkpoint-3", (mark_wish){0}), ERR_NOENT);
  assert_non_null(strstr(why.text, "no longer kept"));
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, filled_set_up, filled_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(the_newest_of_all_is_marked_then_the_one_before_it),
      ON_A_TARGET(a_mark_is_taken_back),
      ON_A_TARGET(the_commit_of_that_number_alone_is_marked),
      ON_A_TARGET(a_dry_mark_writes_nothing),
      ON_A_TARGET(a_name_that_several_have_or_that_is_gone_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
