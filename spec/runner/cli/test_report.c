#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/report.h"
#include "tmpdir.h"

static char *dir;
static int real_stderr;

static int set_up(void **state) {
  dir = tmpdir_new();
  real_stderr = dup(2);
  int fd = open(tmpdir_path(dir, "err"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(fd, 2);
  close(fd);
  report_level(0);
  return 0;
}

static int tear_down(void **state) {
  dup2(real_stderr, 2);
  close(real_stderr);
  tmpdir_remove(dir);
  return 0;
}

/* What was written since the last call. */
static const char *said(void) {
  static char text[2048];
  char *all = read_file(tmpdir_path(dir, "err"), NULL);
  snprintf(text, sizeof text, "%s", all);
  free(all);
  if (truncate(tmpdir_path(dir, "err"), 0) != 0) return "cannot truncate";
  return text;
}

static void a_status_has_its_exit_code(void **state) {
  static const struct {
    int status, code;
  } cases[] = {
      {CKPT_OK, 0},           {CKPT_EINVAL, 2},    {CKPT_ENOENT, 4},    {CKPT_ECORRUPT, 5},
      {CKPT_EIO, 6},          {CKPT_ETIMEOUT, 6},  {CKPT_ECONFLICT, 6}, {CKPT_EACCESS, 7},
      {CKPT_ENOSPACE, 7},     {CKPT_ENOSTORE, 10}, {CKPT_EHELD, 11},    {CKPT_EOTHER_RUN, 11},
      {CKPT_EFENCED, 14},     {CKPT_ENOMEM, 1},    {CKPT_EFORMAT, 5},   {CKPT_EVERSION, 1},
      {CKPT_EUNSUPPORTED, 2}, {CKPT_EPOLICY, 2},   {-9999, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(exit_code_of(cases[i].status), cases[i].code);
}

static void a_wait_status_is_told_as_shells_do(void **state) {
  assert_int_equal(exit_code_of_wait(0), 0);
  assert_int_equal(exit_code_of_wait(3 << 8), 3);
  assert_int_equal(exit_code_of_wait(15), 143);
  assert_int_equal(exit_code_of_wait(9 | 0x80), 137); /* with a core */
}

static void a_message_is_one_line(void **state) {
  report_error("no file '%s'", "a\nb\x1b");
  assert_string_equal(said(), "ckpt-lua: no file 'a\\x0ab\\x1b'\n");
  report_warning("w");
  report_info("i");
  report_debug("d");
  assert_string_equal(said(), "ckpt-lua: warning: w\nckpt-lua: i\n");
}

static void a_long_message_is_not_cut(void **state) {
  char text[1500];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  report_error("%s", text);
  assert_int_equal(strlen(said()), strlen("ckpt-lua: \n") + sizeof text - 1);
}

static void quiet_leaves_errors_and_verbose_adds_all(void **state) {
  report_level(-1);
  report_warning("w");
  report_info("i");
  report_log(NULL, CKPT_LOG_WARN, "w");
  assert_string_equal(said(), "");
  report_log(NULL, CKPT_LOG_ERROR, "e");
  report_error("e");
  assert_string_equal(said(), "ckpt-lua: e\nckpt-lua: e\n");
  assert_int_equal(report_log_level(), CKPT_LOG_ERROR);
  report_level(1);
  report_debug("d");
  report_log(NULL, CKPT_LOG_DEBUG, "l");
  assert_string_equal(said(), "ckpt-lua: d\nckpt-lua: l\n");
  assert_int_equal(report_log_level(), CKPT_LOG_DEBUG);
}

static void a_closed_stderr_does_no_harm(void **state) {
  close(2);
  report_error("nobody hears this");
}

static void what_became_of_a_checkpoint_is_one_line(void **state) {
  ckpt_completion c = {.size = sizeof c,
                       .kind = CKPT_COMMITTED,
                       .step = 3,
                       .files = 12,
                       .bytes = 34 << 20,
                       .seconds = 0.42,
                       .unit = "checkpoint-3",
                       .reason = ""};
  report_completion(&c);
  assert_string_equal(said(),
                      "ckpt-lua: committed checkpoint-3 (step 3, 12 files, 34 MiB in 0.4 s)\n");
  c.step = -1;
  c.files = 1;
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: committed checkpoint-3 (1 file, 34 MiB in 0.4 s)\n");
  c.kind = CKPT_FAILED;
  c.reason = "no space";
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: checkpoint-3: could not be saved: no space\n");
  c.kind = CKPT_UNPROVEN;
  c.reason = "checkpoint-3: nothing proves it whole";
  report_completion(&c);
  assert_string_equal(said(),
                      "ckpt-lua: warning: checkpoint-3 was not saved: nothing proves it whole\n");
  c.kind = CKPT_DROPPED; /* these two are no news by default */
  report_completion(&c);
  c.kind = CKPT_RETIRED;
  report_completion(&c);
  c.kind = 99; /* of a newer engine */
  report_completion(&c);
  assert_string_equal(said(), "");
  report_level(-1);
  c.kind = CKPT_FENCED;
  report_completion(&c);
  assert_non_null(strstr(said(), "a newer run writes to this target"));
}

static void files_of_no_unit_are_named_with_the_option_that_helps(void **state) {
  ckpt_run_status s = {.size = sizeof s, .unmatched = 1, .unmatched_example = "m.bin"};
  report_unmatched(&s);
  const char *text = said();
  assert_non_null(strstr(text, "1 file was written that belongs to no checkpoint"));
  assert_non_null(strstr(text, "m.bin"));
  assert_non_null(strstr(text, "--unit"));
}

static void a_status_stands_below_all_messages_until_it_is_taken_away(void **state) {
  report_status("half way");
  assert_string_equal(said(), "\r\033[Kckpt-lua: half way\r");
  report_info("committed");
  assert_string_equal(said(), "\r\033[Kckpt-lua: committed\nckpt-lua: half way\r");
  report_status("nearly");
  assert_string_equal(said(), "\r\033[Kckpt-lua: nearly\r");
  report_status(NULL);
  assert_string_equal(said(), "\r\033[K");
  report_status(NULL);
  report_info("done");
  assert_string_equal(said(), "ckpt-lua: done\n");
}

static void a_reason_to_skip_is_said_once_whatever_its_numbers(void **state) {
  ckpt_completion c = {
      .kind = CKPT_SKIPPED, .step = 3, .unit = "checkpoint-3", .reason = "iteration 3 of 10"};
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: checkpoint-3 (step 3) was skipped: iteration 3 of 10 "
                              "(said once; ckpt-lua why NAME tells of each)\n");
  c.reason = "iteration 4 of 10";
  report_completion(&c);
  assert_string_equal(said(), "");
  c.reason = "too small";
  report_completion(&c);
  assert_non_null(strstr(said(), "too small"));
  report_level(1);
  c.reason = "iteration 5 of 10";
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: checkpoint-3 (step 3) was skipped: iteration 5 of 10\n");
}

static void what_leaves_the_store_is_said_with_its_rule(void **state) {
  ckpt_completion c = {
      .kind = CKPT_EXPIRED, .step = 3, .unit = "checkpoint-3", .reason = "not of the last 3"};
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: checkpoint-3 (step 3) is no longer kept in the store: "
                              "not of the last 3\n");
  c.kind = CKPT_DELETED;
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: checkpoint-3 (step 3) was deleted from the store: "
                              "not of the last 3\n");
}

static void that_a_generation_of_one_name_went_is_said_once(void **state) {
  ckpt_completion c = {.kind = CKPT_EXPIRED, .step = -1, .unit = "last.pt", .reason = "newer stay"};
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: last.pt is no longer kept in the store: newer stay\n");
  report_completion(&c);
  assert_string_equal(said(), "");
  c.unit = "best.pt";
  report_completion(&c);
  assert_non_null(strstr(said(), "best.pt"));
  for (int i = 0; i < 100; i++) {
    char name[20];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    c.unit = name;
    report_completion(&c);
    assert_non_null(strstr(said(), name));
  }
  report_level(1);
  c.unit = "best.pt";
  report_completion(&c);
  report_completion(&c);
  assert_non_null(strstr(strstr(said(), "best.pt") + 1, "best.pt"));
}

static void flags_are_named_in_the_library_s_texts_and_not_in_the_user_s(void **state) {
  ckpt_completion c = {.kind = CKPT_FAILED,
                       .status = CKPT_EHELD,
                       .step = -1,
                       .unit = "my `list` 1",
                       .reason = "push it aside with `take_over`"};
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: my `list` 1: could not be saved: push it aside with "
                              "--take-over\n");
  c.kind = CKPT_RETRYING;
  report_completion(&c);
  assert_string_equal(said(),
                      "ckpt-lua: warning: my `list` 1: could not be saved yet; trying again: "
                      "push it aside with --take-over\n");
  c = (ckpt_completion){
      .kind = CKPT_SKIPPED, .step = 3, .unit = "c", .reason = "not on `list` of `all`"};
  report_level(1);
  report_completion(&c);
  assert_string_equal(said(), "ckpt-lua: c (step 3) was skipped: not on `list` of `all`\n");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_status_has_its_exit_code),
      cmocka_unit_test(a_wait_status_is_told_as_shells_do),
      TEST(a_message_is_one_line),
      TEST(a_long_message_is_not_cut),
      TEST(quiet_leaves_errors_and_verbose_adds_all),
      TEST(a_closed_stderr_does_no_harm),
      TEST(what_became_of_a_checkpoint_is_one_line),
      TEST(files_of_no_unit_are_named_with_the_option_that_helps),
      TEST(a_status_stands_below_all_messages_until_it_is_taken_away),
      TEST(a_reason_to_skip_is_said_once_whatever_its_numbers),
      TEST(what_leaves_the_store_is_said_with_its_rule),
      TEST(that_a_generation_of_one_name_went_is_said_once),
      TEST(flags_are_named_in_the_library_s_texts_and_not_in_the_user_s),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
