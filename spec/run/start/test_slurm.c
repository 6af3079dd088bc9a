#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "run/start/slurm.h"
#include "tmpdir.h"

static void a_job_is_named_with_its_cluster(void **unused) {
  char job[128];
  slurm_name_job("alpha", "123", job, sizeof job);
  assert_string_equal(job, "slurm:alpha/123");
  slurm_name_job("", "123", job, sizeof job);
  assert_string_equal(job, "slurm:123");
  slurm_name_job(NULL, "123", job, sizeof job);
  assert_string_equal(job, "slurm:123");
  slurm_name_job("alpha", NULL, job, sizeof job);
  assert_string_equal(job, "");
}

static void only_a_job_of_the_same_named_cluster_is_asked_about(void **unused) {
  static const struct {
    const char *ours, *job, *number; /* NULL: it is not asked about */
  } rows[] = {
      {"slurm:alpha/7", "slurm:alpha/123", "123"},
      {"slurm:alpha/7", "slurm:beta/123", NULL},
      {"slurm:alpha/7", "slurm:alph/123", NULL},
      {"slurm:7", "slurm:123", NULL},
      {"slurm:alpha/7", "slurm:123", NULL},
      {"", "slurm:alpha/123", NULL},
      {"slurm:alpha/7", "", NULL},
      {"slurm:alpha/7", "slurm:alpha/", NULL},
      {"slurm:alpha/7", "slurm:alpha/1 --me", NULL},
      {"slurm:alpha/7", "slurm:alpha/-1", NULL},
      {"slurm:alpha/7", "slurm:alpha/123456789012345678901234567890", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char number[SLURM_NUMBER_MAX] = "";
    bool asked = slurm_same_cluster(rows[i].ours, rows[i].job, number);
    if (asked != (rows[i].number != NULL) || (asked && strcmp(number, rows[i].number) != 0))
      fail_msg("row %zu: %d %s", i, asked, number);
  }
}

static void only_a_state_that_is_an_end_is_over(void **unused) {
  static const char *const over[] = {"COMPLETED\n",    "CANCELLED\n", "CANCELLED by 1000\n",
                                     "CANCELLED+\n",   "FAILED",      "TIMEOUT\n",
                                     "OUT_OF_MEMORY\n"};
  static const char *const not_over[] = {"",
                                         "\n",
                                         "RUNNING\n",
                                         "PENDING\n",
                                         "COMPLETING\n",
                                         "SUSPENDED\n",
                                         "REQUEUED\n",
                                         "COMPLETEDX\n",
                                         "COMPLETED\nRUNNING\n",
                                         "slurm_load_jobs error: Invalid job id specified\n"};
  for (size_t i = 0; i < sizeof over / sizeof *over; i++)
    if (!slurm_ended(over[i])) fail_msg("not over: %s", over[i]);
  for (size_t i = 0; i < sizeof not_over / sizeof *not_over; i++)
    if (slurm_ended(not_over[i])) fail_msg("over: %s", not_over[i]);
}

static void a_task_of_an_array_never_means_all_of_them(void **unused) {
  static const struct {
    const char *number, *array, *task, *own;
  } rows[] = {
      {"37", NULL, NULL, "37"},  {"37", "36", "1", "37"}, /* also of an array that submitted us */
      {"36", "36", "3", "36_3"}, {"36", "36", NULL, "36"}, {"36", "", "", "36"},
  };
  char own[SLURM_OWN_MAX];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_true(slurm_own(rows[i].number, rows[i].array, rows[i].task, own));
    assert_string_equal(own, rows[i].own);
  }
  assert_false(slurm_own(NULL, "36", "3", own) || slurm_own("", NULL, NULL, own));
}

static void the_time_to_a_kill_is_read_from_the_configuration(void **unused) {
  assert_true(slurm_kill_wait("JobRequeue              = 1\nKillWait                = 30 sec\n"
                              "LaunchParameters        = (null)\n") == 30);
  assert_true(slurm_kill_wait("KillWait                = 5 sec") == 5);
  assert_true(slurm_kill_wait("MaxKillWait             = 5 sec\n") < 0);
  assert_true(slurm_kill_wait("KillWait\n= 7 sec\n") < 0);
  assert_true(slurm_kill_wait("KillWait                = (null)\n") < 0);
  assert_true(slurm_kill_wait("") < 0 && slurm_kill_wait(NULL) < 0);
}

static void only_an_end_that_is_near_limits_the_grace(void **unused) {
  static const struct {
    const char *end;
    double now, wait, ends, kill;
  } rows[] = {
      {"1000010\n", 1000000, 30, 10, 40}, /* it is preempted: GraceTime, then KillWait */
      {"1000000\n", 1000003, 30, 0, 30},  /* it is cancelled */
      {"1000010\n", 1000000, -1, 10, -1}, /* KillWait is not known */
      {"1090000\n", 1000000, 30, -1, -1}, /* nobody ends it: a signal by hand */
      {"N/A\n", 1000000, 30, -1, -1},     {"NONE\n", 1000000, 30, -1, -1},
      {"", 1000000, 30, -1, -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    slurm_time_left left;
    slurm_judge_end(rows[i].end, rows[i].now, rows[i].wait, &left);
    if (left.ends_s != rows[i].ends || left.kill_s != rows[i].kill)
      fail_msg("row %zu: %g %g", i, left.ends_s, left.kill_s);
  }
}

/* A command of Slurm's that is this script of the shell. */
static void make_command(const char *dir, const char *name, const char *script) {
  char text[200];
  snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
  write_file(tmpdir_path(dir, name), text);
  assert_int_equal(chmod(tmpdir_path(dir, name), 0700), 0);
}

static void a_command_that_does_not_answer_hides_no_other_ones_answer(void **unused) {
  const char *found = getenv("PATH");
  char *dir = tmpdir_new(), *before = strdup(found ? found : ""), path[5000], end[32];
  slurm_time_left left;
  make_command(dir, "squeue", "exec sleep 60");
  make_command(dir, "scontrol", "echo 'KillWait                = 7 sec'");
  snprintf(path, sizeof path, "%s:%s", dir, before);
  snprintf(end, sizeof end, "%lld", (long long)time(NULL));
  setenv("PATH", path, 1);
  slurm_time(io_system(), "7", end, &left);
  setenv("PATH", before, 1);
  assert_true(left.ends_s == 0 && left.kill_s == 7);
  free(before);
  tmpdir_remove(dir);
}

/* A clock that runs faster: what has 10 s has one. */
static int64_t fast_now(const io *io, io_clock clock) {
  (void)io;
  return io_system()->now(io_system(), clock) * 10;
}

static void who_does_not_answer_has_said_nothing_of_a_job(void **unused) {
  static const struct {
    const char *squeue, *said;
    int code;
  } rows[] = {
      {"exec sleep 60", "squeue does not answer", ERR_IO},
      {"echo >&2 'squeue: error: Unable to contact slurm controller'; exit 1",
       "squeue failed: squeue: error: Unable to contact slurm controller", ERR_IO},
      {"exit 1", "squeue failed", ERR_IO},
      {"exit 0", "Slurm does not know it", ERR_CONFLICT},
      {"echo >&2 'slurm_load_jobs error: Invalid job id specified'; exit 1",
       "Slurm does not know it", ERR_CONFLICT},
      {"echo COMPLETED", "Slurm says that it is COMPLETED", ERR_CONFLICT},
  };
  const char *found = getenv("PATH");
  char *dir = tmpdir_new(), *before = strdup(found ? found : ""), path[5000];
  io fast = *io_system();
  fast.now = fast_now;
  make_command(dir, "scontrol", "exit 0");
  snprintf(path, sizeof path, "%s:%s", dir, before);
  setenv("PATH", path, 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    err e = {0};
    make_command(dir, "squeue", rows[i].squeue);
    int rc = slurm_requeue(&fast, "7", &e);
    if (rc != rows[i].code || !strstr(e.text, rows[i].said))
      fail_msg("row %zu: %d %s", i, rc, e.text);
  }
  make_command(dir, "squeue", "echo RUNNING");
  assert_int_equal(slurm_requeue(&fast, "7", NULL), 0);
  setenv("PATH", "/nonexistent", 1);
  err e = {0};
  assert_int_equal(slurm_requeue(&fast, "7", &e), ERR_IO);
  assert_non_null(strstr(e.text, "squeue cannot be started"));
  setenv("PATH", before, 1);
  free(before);
  tmpdir_remove(dir);
}

static void the_comment_of_a_job_is_its_own_line(void **unused) {
  static const char shown[] =
      "JobId=3 JobName=AdminComment=x\n   UserId=root(0)\n   Command=/a Comment=y\n"
      "   Comment=mine, and more\n   AdminComment=ckpt-lua time=1 step=-\n   Power=\n";
  char text[64];
  (void)unused;
  assert_true(slurm_comment_of(shown, false, text, sizeof text));
  assert_string_equal(text, "mine, and more");
  assert_true(slurm_comment_of(shown, true, text, sizeof text));
  assert_string_equal(text, "ckpt-lua time=1 step=-");
  assert_false(slurm_comment_of("JobId=3\n   Power=\n", true, text, sizeof text));
  assert_string_equal(text, "");
  assert_true(slurm_comment_of("Comment=", false, text, sizeof text));
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest promises[] = {
      cmocka_unit_test(a_job_is_named_with_its_cluster),
      cmocka_unit_test(the_comment_of_a_job_is_its_own_line),
      cmocka_unit_test(only_a_job_of_the_same_named_cluster_is_asked_about),
      cmocka_unit_test(only_a_state_that_is_an_end_is_over),
      cmocka_unit_test(a_task_of_an_array_never_means_all_of_them),
      cmocka_unit_test(the_time_to_a_kill_is_read_from_the_configuration),
      cmocka_unit_test(only_an_end_that_is_near_limits_the_grace),
      cmocka_unit_test(a_command_that_does_not_answer_hides_no_other_ones_answer),
      cmocka_unit_test(who_does_not_answer_has_said_nothing_of_a_job),
  };
  return cmocka_run_group_tests(promises, NULL, NULL);
}
