#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run/start/starts.h"
#include "io_fault.h"
#include "tmpdir.h"

static starts some(const char *group, uint64_t commit, uint64_t newest, uint32_t failed) {
  starts s = {.commit = {commit, "log-a", "own-a"}, .newest = newest, .failed = failed};
  snprintf(s.group, sizeof s.group, "%s", group);
  return s;
}

static void must_be(const starts *s, const char *group, uint64_t commit, uint64_t newest,
                    uint32_t failed) {
  assert_string_equal(s->group, group);
  assert_int_equal(s->commit.n, commit);
  assert_int_equal(s->newest, newest);
  assert_int_equal(s->failed, failed);
}

static void what_is_written_is_read_again(void **state) {
  char *dir = *state;
  starts back;
  starts odd = some("exp/a \"b\" \xff", 7, 9, 2);
  assert_int_equal(starts_write(io_system(), dir, &odd, NULL), 0);
  assert_int_equal(starts_read(io_system(), dir, &back, NULL), 0);
  must_be(&back, odd.group, 7, 9, 2);
  assert_true(runlog_ref_same(&back.commit, &odd.commit));
}

static void nothing_failed_leaves_no_file(void **state) {
  char *dir = *state;
  starts back, none = {0}, s = some("", 1, 1, 1);
  assert_int_equal(starts_read(io_system(), dir, &back, NULL), 0);
  must_be(&back, "", 0, 0, 0);
  assert_int_equal(starts_write(io_system(), dir, &none, NULL), 0);
  assert_int_equal(starts_write(io_system(), dir, &s, NULL), 0);
  assert_int_equal(starts_write(io_system(), dir, &none, NULL), 0);
  assert_int_equal(count_entries(dir), 0);
}

static void only_failures_in_a_row_from_the_same_commit_are_counted(void **state) {
  starts s = {0}, from = some("g", 5, 5, 0);
  starts_count(&s, &from);
  must_be(&s, "g", 5, 5, 1);
  starts_count(&s, &from);
  must_be(&s, "g", 5, 5, 2);
  starts later = some("g", 5, 8, 0), other = some("g", 3, 8, 0), group = some("h", 3, 8, 0);
  starts_count(&s, &later); /* something was committed in between */
  must_be(&s, "g", 5, 8, 1);
  starts_count(&s, &other);
  must_be(&s, "g", 3, 8, 1);
  starts_count(&s, &group);
  must_be(&s, "h", 3, 8, 1);
}

static void the_same_number_of_another_log_is_another_commit(void **state) {
  starts s = {0}, a = some("g", 5, 5, 0), b = a, fork = a, unknown = a;
  snprintf(b.commit.log, sizeof b.commit.log, "log-b");
  snprintf(fork.commit.entry, sizeof fork.commit.entry, "own-b");
  unknown.commit = (runlog_ref){.n = 5};
  const starts others[] = {b, fork, unknown, unknown};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    starts_count(&s, &a);
    starts_count(&s, &others[i]);
    assert_int_equal(s.failed, 1);
  }
}

/* What 1.0 wrote: its start is read, and is no commit of any log that is known. */
static void a_record_without_a_log_is_read_and_is_nobodys(void **state) {
  char *dir = *state;
  starts old, now = some("g", 5, 5, 0);
  write_file(tmpdir_path(dir, "starts.json"), "{\"format\":1,\"reader\":1,\"group\":\"g\","
                                              "\"commit\":5,\"newest\":5,\"failed\":2}");
  assert_int_equal(starts_read(io_system(), dir, &old, NULL), 0);
  must_be(&old, "g", 5, 5, 2);
  assert_false(runlog_ref_same(&old.commit, &now.commit));
  starts_count(&old, &now);
  must_be(&old, "g", 5, 5, 1);
}

static void a_file_that_is_no_record_counts_as_nothing(void **state) {
  char *dir = *state;
  static const char *const texts[] = {
      "",
      "{",
      "[]",
      "{\"format\":1,\"reader\":1}",
      "{\"format\":1,\"reader\":1,\"group\":\"\",\"commit\":-1,\"newest\":1,\"failed\":1}",
      "{\"format\":1,\"reader\":1,\"group\":\"\",\"commit\":5,\"newest\":4,\"failed\":1}",
      "{\"format\":1,\"reader\":1,\"group\":\"\",\"commit\":5,\"newest\":5,\"failed\":4294967296}",
      "{\"format\":1,\"reader\":1,\"group\":7,\"commit\":5,\"newest\":5,\"failed\":1}",
      ("{\"format\":1,\"reader\":1,\"group\":\"\",\"commit\":5,\"newest\":5,\"failed\":1,"
       "\"log\":\"a\"}")};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    starts s = some("x", 1, 1, 9);
    write_file(tmpdir_path(dir, "starts.json"), texts[i]);
    assert_int_equal(starts_read(io_system(), dir, &s, NULL), ERR_FORMAT);
    must_be(&s, "", 0, 0, 0);
  }
  starts s;
  write_file(tmpdir_path(dir, "starts.json"), "{\"format\":2,\"reader\":2}");
  assert_int_equal(starts_read(io_system(), dir, &s, NULL), ERR_VERSION);
}

/* Whatever call fails, the old record is there, or the new one. */
static void a_failed_write_leaves_the_old_record_or_the_new_one(void **state) {
  char *dir = *state;
  starts old = some("g", 5, 5, 1), new = some("g", 5, 5, 2), back;
  io_fault *fault = io_fault_new(io_unflushed());
  bool over = false;
  for (long n = 1; !over; n++) {
    assert_int_equal(starts_write(io_unflushed(), dir, &old, NULL), 0);
    io_fault_once(fault, CALL_ANY, n, ENOSPC);
    int rc = starts_write(io_fault_io(fault), dir, &new, NULL);
    over = io_fault_failed(fault, CALL_ANY) == 0;
    assert_int_equal(starts_read(io_unflushed(), dir, &back, NULL), 0);
    assert_true(back.failed == 1 || back.failed == 2);
    if (rc == 0) assert_int_equal(back.failed, 2);
    if (over) assert_int_equal(rc, 0);
  }
  io_fault_free(fault);
}

static void the_last_line_of_a_job_is_what_it_said_last(void **state) {
  char line[8];
  (void)state;
  starts_last_line("loading\nno GPU", line, sizeof line);
  assert_string_equal(line, "no GPU");
  starts_last_line("alone", line, sizeof line);
  assert_string_equal(line, "alone");
  starts_last_line("longer than there is room", line, sizeof line);
  assert_string_equal(line, "longer ");
  starts_last_line(NULL, line, sizeof line);
  assert_string_equal(line, "");
}

static int setup(void **state) {
  *state = tmpdir_new();
  return 0;
}

static int teardown(void **state) {
  tmpdir_remove(*state);
  return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_is_written_is_read_again),
      TEST(nothing_failed_leaves_no_file),
      TEST(only_failures_in_a_row_from_the_same_commit_are_counted),
      TEST(the_same_number_of_another_log_is_another_commit),
      TEST(a_record_without_a_log_is_read_and_is_nobodys),
      TEST(a_file_that_is_no_record_counts_as_nothing),
      TEST(a_failed_write_leaves_the_old_record_or_the_new_one),
      cmocka_unit_test(the_last_line_of_a_job_is_what_it_said_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
