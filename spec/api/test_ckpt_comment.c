/* The comment of our job, with a scontrol that is a script: it shows the file `comment`, and writes it. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ckpt.h"
#include "tmpdir.h"

static char *dir, *path_before;
static ckpt *engine;

static const char *in(const char *name) {
  return tmpdir_path(dir, name);
}

static void scontrol(const char *when_shown, const char *when_told) {
  char text[1000];
  snprintf(text, sizeof text,
           "#!/bin/sh\nset -e\ncd %s\n[ \"$2\" = job ] || [ \"$2\" = JobId=7 ]\n"
           "if [ \"$1\" = show ]; then %s; else %s; fi\n",
           dir, when_shown, when_told);
  write_file(in("scontrol"), text);
  assert_int_equal(chmod(in("scontrol"), 0700), 0);
}

static const char shows[] = "echo JobId=7; echo \"   $(cat comment)\"",
                  takes[] = "printf '%s' \"$3\" >comment";

static int enter(void **unused) {
  char path[5000];
  const char *found = getenv("PATH");
  dir = tmpdir_new();
  path_before = strdup(found ? found : "");
  snprintf(path, sizeof path, "%s:%s", dir, path_before);
  setenv("PATH", path, 1);
  setenv("SLURM_JOB_ID", "7", 1);
  write_file(in("comment"), "Comment=");
  scontrol(shows, takes);
  return ckpt_open(&engine, NULL);
}

static int leave(void **unused) {
  ckpt_close(engine);
  unsetenv("SLURM_JOB_ID");
  setenv("PATH", path_before, 1);
  free(path_before);
  tmpdir_remove(dir);
  return 0;
}

static ckpt_completion put(const char *text) {
  uint64_t job;
  ckpt_completion c = {.size = sizeof c};
  if (ckpt_comment(engine, CKPT_COMMENT_USER, text, &job) != 0) fail_msg("%s", ckpt_error(engine));
  while (ckpt_next(engine, &c) == 0) assert_true(ckpt_dispatch(engine, 10000) >= 0);
  assert_int_equal(c.kind, CKPT_COMMENTED);
  assert_int_equal(c.job, job);
  assert_null(c.run);
  return c;
}

static void ours_is_written_and_written_over(void **state) {
  assert_int_equal(put("ckpt-lua step=1").status, CKPT_OK);
  assert_true(file_is(in("comment"), "Comment=ckpt-lua step=1"));
  assert_int_equal(put("ckpt-lua step=2").status, CKPT_OK);
  assert_true(file_is(in("comment"), "Comment=ckpt-lua step=2"));
}

static void another_ones_stays(void **state) {
  write_file(in("comment"), "Comment=project x");
  ckpt_completion c = put("ckpt-lua step=1");
  assert_int_equal(c.status, CKPT_EHELD);
  assert_non_null(strstr(c.reason, "another's: project x"));
  assert_true(file_is(in("comment"), "Comment=project x"));
}

static void a_refusal_and_a_failure_are_told_apart(void **state) {
  scontrol(shows, "echo 'slurm_update error: Access/permission denied' >&2; exit 1");
  assert_int_equal(put("ckpt-lua step=1").status, CKPT_EACCESS);
  scontrol("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", takes);
  ckpt_completion c = put("ckpt-lua step=1");
  assert_int_equal(c.status, CKPT_EIO);
  assert_non_null(strstr(c.reason, "Unable to contact"));
}

static void what_could_be_read_as_two_words_is_refused(void **state) {
  static const char *const wrong[] = {"step=1", "ckpt-lua a\nb", "ckpt-lua a\"b", "ckpt-lua a'b"};
  uint64_t job;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(ckpt_comment(engine, CKPT_COMMENT_USER, wrong[i], &job), CKPT_EINVAL);
  assert_int_equal(ckpt_comment(engine, 2, "ckpt-lua a", &job), CKPT_EINVAL);
  unsetenv("SLURM_JOB_ID");
  assert_int_equal(ckpt_comment(engine, CKPT_COMMENT_USER, "ckpt-lua a", &job), CKPT_EUNSUPPORTED);
}

/* The limit of a scontrol is 10 s; this one would take an hour. */
static void one_that_does_not_answer_holds_up_neither_the_owner_nor_the_end(void **state) {
  uint64_t job;
  scontrol("touch asked; exec sleep 3600", takes);
  assert_int_equal(ckpt_comment(engine, CKPT_COMMENT_USER, "ckpt-lua a", &job), 0);
  assert_int_equal(ckpt_comment(engine, CKPT_COMMENT_USER, "ckpt-lua b", &job), CKPT_ELIMIT);
  while (!path_exists(in("asked"))) assert_true(ckpt_dispatch(engine, 20) >= 0);
  ckpt_close(engine);
  assert_true(file_is(in("comment"), "Comment="));
  assert_int_equal(ckpt_open(&engine, NULL), 0);
}

static void one_that_is_stopped_leaves_no_program_and_another_may_follow(void **state) {
  uint64_t job;
  ckpt_completion c = {.size = sizeof c};
  ckpt_comment_stop(engine); /* none is under way */
  scontrol("echo $$ >asked.new; mv asked.new asked; exec sleep 3600", takes);
  assert_int_equal(ckpt_comment(engine, CKPT_COMMENT_USER, "ckpt-lua a", &job), 0);
  while (!path_exists(in("asked"))) assert_true(ckpt_dispatch(engine, 20) >= 0);
  ckpt_comment_stop(engine);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* there is no child */
  assert_true(ckpt_dispatch(engine, 10000) >= 0);
  assert_int_equal(ckpt_next(engine, &c), 1);
  assert_int_equal(c.status, CKPT_EIO);
  scontrol(shows, takes);
  assert_int_equal(put("ckpt-lua step=1").status, CKPT_OK);
}

static void a_blank_is_no_comment(void **state) {
  write_file(in("comment"), "Comment= ");
  assert_int_equal(put("ckpt-lua step=1").status, CKPT_OK);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)
  const struct CMUnitTest tests[] = {
      TEST(ours_is_written_and_written_over),
      TEST(another_ones_stays),
      TEST(a_refusal_and_a_failure_are_told_apart),
      TEST(what_could_be_read_as_two_words_is_refused),
      TEST(one_that_does_not_answer_holds_up_neither_the_owner_nor_the_end),
      TEST(one_that_is_stopped_leaves_no_program_and_another_may_follow),
      TEST(a_blank_is_no_comment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
