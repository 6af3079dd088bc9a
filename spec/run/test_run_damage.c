#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_marks.h"
#include "tmpdir.h"

/* Three commits, and nothing here any more. */
static void fill(run_host *h) {
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
  commit_file(h, "ckpt-3.pt", "three");
  for (int i = 1; i <= 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    assert_int_equal(remove(run_host_dir(h, name)), 0);
  }
}

static void damage(run_host *h, const char *key) {
  size_t len;
  char *data = read_file(run_host_store(h, key), &len);
  assert_non_null(data);
  data[len / 2] ^= 1;
  assert_int_equal(remove(run_host_store(h, key)), 0);
  write_bytes(run_host_store(h, key), data, len);
  free(data);
}

static void the_newest_that_verifies_is_taken_and_the_damaged_one_marked_bad(void **state) {
  run_host *h = *state;
  run_prepared p;
  fill(h);
  damage(h, "ckpt-3.pt/ckpt-3.pt");
  prepare_run(h, RUN_AUTO, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-2.pt");
  assert_true(file_is(p.resume, "two"));
  assert_true(commit_is_bad(h, "ckpt-3.pt"));
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
  assert_int_equal(count_entries(run_host_dir(h, "")), 1);
  assert_true(run_host_logged(h, "CANNOT BE RESTORED"));
}

static void several_are_passed_over_whatever_is_damaged_of_them(void **state) {
  run_host *h = *state;
  run_prepared p;
  fill(h);
  damage(h, "ckpt-3.pt/.ckpt-manifest.json");
  assert_int_equal(remove(run_host_store(h, "ckpt-2.pt/.ckpt-manifest.json")), 0);
  prepare_run(h, RUN_REQUIRED, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-1.pt");
  assert_true(commit_is_bad(h, "ckpt-3.pt") && commit_is_bad(h, "ckpt-2.pt"));
}

/* A job that silently began anew would be worse than one that does not start. */
static void if_none_is_whole_it_is_an_error_and_the_last_one_keeps_its_name(void **state) {
  run_host *h = *state;
  run_prepared p;
  fill(h);
  damage(h, "ckpt-1.pt/ckpt-1.pt");
  damage(h, "ckpt-2.pt/ckpt-2.pt");
  damage(h, "ckpt-3.pt/ckpt-3.pt");
  const char *text = prepare_run(h, RUN_AUTO, NULL, ERR_CORRUPT, &p);
  assert_non_null(strstr(text, "`named` NAME"));
  assert_false(commit_is_bad(h, "ckpt-1.pt"));
  assert_int_equal(count_entries(run_host_dir(h, "")), 0);
}

static void one_that_was_asked_for_by_name_is_never_exchanged(void **state) {
  run_host *h = *state;
  run_prepared p;
  fill(h);
  damage(h, "ckpt-3.pt/ckpt-3.pt");
  prepare_run(h, RUN_NAMED, "ckpt-3.pt", ERR_CORRUPT, &p);
  assert_false(commit_is_bad(h, "ckpt-3.pt"));
}

static void a_whole_copy_that_is_here_needs_no_other(void **state) {
  run_host *h = *state;
  run_prepared p;
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
  damage(h, "ckpt-2.pt/ckpt-2.pt");
  prepare_run(h, RUN_AUTO, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-2.pt");
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
}

/* ---- marks ---- */

static void a_bad_one_is_not_restored_and_its_local_copy_goes(void **state) {
  run_host *h = *state;
  run_prepared p;
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
  mark_commit(h, "ckpt-2.pt", true);
  prepare_run(h, RUN_AUTO, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-1.pt");
  assert_false(path_exists(run_host_dir(h, "ckpt-2.pt")));
  assert_int_equal(p.quarantined, 1);
}

static void so_it_does_without_a_journal(void **state) {
  run_host *h = *state;
  run_prepared p;
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
  mark_commit(h, "ckpt-2.pt", true);
  lose_dir(run_host_state(h, ""));
  prepare_run(h, RUN_AUTO, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-1.pt");
  assert_false(path_exists(run_host_dir(h, "ckpt-2.pt")));
}

static void what_was_saved_anew_under_its_name_is_another_one(void **state) {
  run_host *h = *state;
  run_prepared p;
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
  mark_commit(h, "ckpt-2.pt", true);
  run_host_begin(h);
  run_host_write(h, "ckpt-2.pt", "two, and it loads", RUN_COMMITTED);
  run_host_close(h);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
  assert_int_equal(remove(run_host_dir(h, "ckpt-2.pt")), 0);
  prepare_run(h, RUN_AUTO, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-2.pt");
  assert_true(file_is(p.resume, "two, and it loads"));
}

static void a_bad_one_is_restored_by_name(void **state) {
  run_host *h = *state;
  run_prepared p;
  fill(h);
  mark_commit(h, "ckpt-3.pt", true);
  prepare_run(h, RUN_NAMED, "ckpt-3.pt", 0, &p);
  must_resume_from(h, &p, "ckpt-3.pt");
  assert_true(file_is(p.resume, "three"));
}

static void what_is_marked_good_again_is_the_newest_again(void **state) {
  run_host *h = *state;
  run_prepared p;
  fill(h);
  mark_commit(h, "ckpt-3.pt", true);
  mark_commit(h, "ckpt-3.pt", false);
  prepare_run(h, RUN_AUTO, NULL, 0, &p);
  must_resume_from(h, &p, "ckpt-3.pt");
}

static void never_moves_no_bad_one(void **state) {
  run_host *h = *state;
  run_prepared p;
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
  mark_commit(h, "ckpt-2.pt", true);
  prepare_run(h, RUN_NEVER, NULL, 0, &p);
  assert_true(path_exists(run_host_dir(h, "ckpt-2.pt")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(the_newest_that_verifies_is_taken_and_the_damaged_one_marked_bad),
      WITH_HOST(several_are_passed_over_whatever_is_damaged_of_them),
      WITH_HOST(if_none_is_whole_it_is_an_error_and_the_last_one_keeps_its_name),
      WITH_HOST(one_that_was_asked_for_by_name_is_never_exchanged),
      WITH_HOST(a_whole_copy_that_is_here_needs_no_other),
      WITH_HOST(a_bad_one_is_not_restored_and_its_local_copy_goes),
      WITH_HOST(so_it_does_without_a_journal),
      WITH_HOST(what_was_saved_anew_under_its_name_is_another_one),
      WITH_HOST(a_bad_one_is_restored_by_name),
      WITH_HOST(what_is_marked_good_again_is_the_newest_again),
      WITH_HOST(never_moves_no_bad_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
