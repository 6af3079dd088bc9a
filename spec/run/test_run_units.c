#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static run_unit *take(run_host *h, const char *group, const char *name, detect_state is) {
  char path[300];
  run_unit *u = NULL;
  snprintf(path, sizeof path, "%s%s%s", group, *group ? "/" : "", name);
  detect_unit facts = {.path = path,
                       .group = group,
                       .name = name,
                       .kind = MATCH_FILE,
                       .step = 4,
                       .state = is,
                       .reason = "because",
                       .bytes = 17,
                       .changed_ns = 99};
  assert_int_equal(run_unit_take(run_host_run(h), &facts, &u, NULL), 0);
  return u;
}

static void units_are_found_by_their_path_however_they_came(void **state) {
  run_host *h = *state;
  run *r = run_host_run(h);
  char name[32];
  for (unsigned i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "ckpt-%u.pt", (i * 73) % 200);
    take(h, i % 2 ? "T1" : "", name, DETECT_OPEN);
  }
  assert_int_equal(r->unit_count, 200);
  for (size_t i = 1; i < r->unit_count; i++)
    assert_true(strcmp(r->units[i - 1]->path, r->units[i]->path) < 0);
  for (size_t i = 0; i < r->unit_count; i++)
    assert_ptr_equal(run_unit_find(r, r->units[i]->path), r->units[i]);
  assert_null(run_unit_find(r, "ckpt-1"));
  while (r->unit_count > 1) run_unit_remove(r, r->units[r->unit_count / 2]);
  assert_ptr_equal(run_unit_find(r, r->units[0]->path), r->units[0]);
}

static void a_unit_that_is_known_gets_the_facts_of_now(void **state) {
  run_host *h = *state;
  run_unit *u = take(h, "T1", "ckpt-4.pt", DETECT_OPEN);
  assert_string_equal(u->series, "ckpt-#.pt");
  assert_string_equal(u->group->group.prefix, "T1");
  assert_int_equal(u->want.action, POLICY_WAIT);
  assert_int_equal(u->phase, UNIT_SETTLING);
  u->gone = true;
  run_unit *again = take(h, "T1", "ckpt-4.pt", DETECT_COMPLETE);
  assert_ptr_equal(u, again);
  assert_int_equal(u->want.action, POLICY_SAVE);
  assert_int_equal(u->bytes, 17);
  assert_string_equal(u->reason, "because");
  assert_false(u->gone); /* it is there again */
}

static void what_is_told_of_a_unit_that_was_never_begun_has_no_job_and_no_time(void **state) {
  run_host *h = *state;
  run_unit *u = take(h, "", "ckpt-4.pt", DETECT_BROKEN);
  run_tell(run_host_run(h), u, RUN_UNPROVEN, NULL, 0, "torn");
  const run_seen *s = run_host_last(h, RUN_UNPROVEN, "ckpt-4.pt");
  assert_int_equal(s->job, 0);
  assert_true(s->seconds == 0);
  assert_int_equal(s->step, 4);
  assert_int_equal(s->bytes, 17);
  assert_string_equal(s->reason, "torn");
}

static void a_commit_is_told_with_the_numbers_of_its_job(void **state) {
  run_host *h = *state;
  run_unit *u = take(h, "", "last.pt", DETECT_OPEN);
  job j = {.files = 3, .bytes = 5, .plan.step = 2};
  u->job = 12;
  run_tell(run_host_run(h), u, RUN_COMMITTED, &j, 0, "whole");
  const run_seen *s = run_host_last(h, RUN_COMMITTED, "last.pt");
  assert_int_equal(s->job, 12);
  assert_int_equal(s->files, 3);
  assert_int_equal(s->bytes, 5);
  assert_int_equal(s->step, 2); /* not of what the unit is by now */
}

/* Guards: a best one that was moved away before its turn was lost without a word. */
static void what_is_moved_down_before_it_was_saved_is_told(void **state) {
  run_host *h = *state;
  char from[600], to[600];
  make_dir(run_host_dir(h, "best"));
  run_host_hold_save(h, "model_1.pt", "one");
  snprintf(from, sizeof from, "%s", run_host_dir(h, "model_1.pt"));
  snprintf(to, sizeof to, "%s", run_host_dir(h, "best/model_1.pt"));
  assert_int_equal(rename(from, to), 0);
  run_host_for(h, 0.1);
  assert_true(run_host_logged(h, "moved further down before it was saved"));
  run_host_hold(h, false);
}

/* Deleted so when it is in the store it is nobody's loss. */
static void what_is_moved_down_when_it_is_saved_is_not(void **state) {
  run_host *h = *state;
  char from[600], to[600];
  make_dir(run_host_dir(h, "trash"));
  write_file(run_host_dir(h, "model_1.pt"), "one");
  run_host_until(h, RUN_COMMITTED, "model_1.pt");
  snprintf(from, sizeof from, "%s", run_host_dir(h, "model_1.pt"));
  snprintf(to, sizeof to, "%s", run_host_dir(h, "trash/model_1.pt"));
  assert_int_equal(rename(from, to), 0);
  run_host_for(h, 0.1);
  assert_true(run_host_logged(h, "deleted by moving it there"));
  assert_false(run_host_logged(h, "moved further down before it was saved"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(units_are_found_by_their_path_however_they_came),
      WITH_RUN(a_unit_that_is_known_gets_the_facts_of_now),
      WITH_RUN(what_is_told_of_a_unit_that_was_never_begun_has_no_job_and_no_time),
      WITH_RUN(a_commit_is_told_with_the_numbers_of_its_job),
      WITH_RUN(what_is_moved_down_before_it_was_saved_is_told),
      WITH_RUN(what_is_moved_down_when_it_is_saved_is_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
