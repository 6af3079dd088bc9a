/* Ray's files and checkpoints, made as Ray makes them, and each way in which they may not belong
 * together. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io_fault.h"
#include "run/evidence/vouched.h"
#include "tmpdir.h"

static char *dir;
static detect_unit unit;

static void put(const char *name, const char *text) {
  write_file(tmpdir_path(dir, name), text);
}

/* Seconds after the beginning of the test. */
static void set_time(const char *name, int at) {
  static int64_t now;
  if (!now) now = io_system()->now(io_system(), IO_WALL) / 1000000000;
  const struct timespec times[2] = {{.tv_sec = now + at}, {.tv_sec = now + at}};
  assert_int_equal(utimensat(AT_FDCWD, tmpdir_path(dir, name), times, 0), 0);
}

#define SNAPSHOT "exp/checkpoint_manager_snapshot.json"
#define STATE "tune/experiment_state-2026-01-01_00-00-00.json"

/* Ray Train beside its checkpoint, and Ray Tune above that of a trial. */
static int setup(void **state) {
  static const char *const dirs[] = {"exp",  "exp/checkpoint_1", "exp/checkpoint_1/rank",
                                     "tune", "tune/trial",       "tune/trial/checkpoint_1"};
  dir = tmpdir_new();
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) make_dir(tmpdir_path(dir, dirs[i]));
  put("exp/checkpoint_1/rank/model.bin", "weights");
  put("tune/trial/checkpoint_1/model.bin", "weights");
  set_time("exp/checkpoint_1/rank/model.bin", 1);
  set_time("exp/checkpoint_1/rank", 2);
  set_time("exp/checkpoint_1", 2);
  set_time("tune/trial/checkpoint_1/model.bin", 1);
  set_time("tune/trial/checkpoint_1", 1);
  put(SNAPSHOT, "{\"checkpoint_results\": [{\"checkpoint_dir_name\": \"checkpoint_1\"}]}");
  put(STATE, "{\"trial\": \"{\\\"path\\\": \\\"/elsewhere/tune/trial/checkpoint_1\\\"}\"}");
  set_time(SNAPSHOT, 3);
  set_time(STATE, 3);
  unit = (detect_unit){.path = "exp/checkpoint_1",
                       .group = "exp",
                       .name = "checkpoint_1",
                       .kind = MATCH_DIR,
                       .state = DETECT_UNPROVEN,
                       .cause = "unproven"};
  return 0;
}

static int teardown(void **state) {
  tmpdir_remove(dir);
  return 0;
}

static bool is_vouched_by(const rules *rules) {
  vouchers v = {0};
  err e = {0};
  int rc = vouched(&v, io_system(), dir, rules, &unit, &e);
  vouchers_free(&v);
  if (rc < 0) fail_msg("%s", e.text);
  return rc;
}

static bool is_vouched(void) {
  return is_vouched_by(rules_builtin());
}

static void take_the_trials(void) {
  unit.path = "tune/trial/checkpoint_1";
  unit.group = "tune/trial";
}

static void what_rays_own_file_names_is_whole(void **state) {
  assert_true(is_vouched());
  take_the_trials();
  assert_true(is_vouched());
  unit.name = "checkpoint_2"; /* is named by none */
  unit.path = "tune/trial/checkpoint_2";
  assert_false(is_vouched());
}

static void one_that_was_changed_since_is_not(void **state) {
  set_time("exp/checkpoint_1/rank/model.bin", 4);
  assert_false(is_vouched());
}

/* No time of a file tells that; that of its directory does. */
static void one_of_which_a_file_was_removed_since_is_not(void **state) {
  set_time("exp/checkpoint_1/rank", 4);
  assert_false(is_vouched());
  take_the_trials();
  set_time("tune/trial/checkpoint_1", 4);
  assert_false(is_vouched());
}

/* Fails unless this name in the unit, of whatever is made there, takes the word away. */
static void must_spoil(const char *name) {
  set_time("exp/checkpoint_1", 2);
  assert_false(is_vouched());
  assert_int_equal(unlink(tmpdir_path(dir, name)), 0);
  set_time("exp/checkpoint_1", 2);
  assert_true(is_vouched());
}

static void one_with_an_empty_file_a_link_or_a_temporary_name_is_not(void **state) {
  put("exp/checkpoint_1/empty", "");
  must_spoil("exp/checkpoint_1/empty");
  assert_int_equal(symlink("/etc/passwd", tmpdir_path(dir, "exp/checkpoint_1/link")), 0);
  must_spoil("exp/checkpoint_1/link");
  put("exp/checkpoint_1/model.tmp", "text");
  set_time("exp/checkpoint_1/model.tmp", 1);
  must_spoil("exp/checkpoint_1/model.tmp");
}

/* After a power cut what is on the disk may be less than what the times say. */
static void what_was_written_before_this_boot_is_not(void **state) {
  const int64_t up_s = io_system()->now(io_system(), IO_MONO) / 1000000000;
  const int before = -(int)up_s - 1000;
  set_time("exp/checkpoint_1/rank/model.bin", before);
  set_time("exp/checkpoint_1/rank", before);
  set_time("exp/checkpoint_1", before);
  set_time(SNAPSHOT, before + 500);
  assert_false(is_vouched());
  set_time(SNAPSHOT, 0);
  assert_true(is_vouched());
}

static void a_reason_to_doubt_outweighs_it(void **state) {
  unit.lacking = true;
  assert_false(is_vouched());
  unit.lacking = false;
  unit.cause = "tasks";
  assert_false(is_vouched());
  unit.cause = "unproven";
  unit.state = DETECT_BROKEN;
  assert_false(is_vouched());
}

static void a_policy_with_conditions_of_its_own_outweighs_it(void **state) {
  rules with = *rules_builtin();
  rules_test test = {.op = RULES_MARKER, .name = "DONE"};
  with.tests = &test;
  with.test_count = 1;
  assert_false(is_vouched_by(&with));
}

/* DeepSpeed's first rank writes it, and waits for nobody. */
static void a_pointer_that_is_written_early_does_not_vouch(void **state) {
  unlink(tmpdir_path(dir, SNAPSHOT));
  put("exp/latest", "checkpoint_1");
  set_time("exp/latest", 3);
  assert_false(is_vouched());
}

static void a_file_that_cannot_be_read_tells_nothing(void **state) {
  put(SNAPSHOT, "{\"checkpoint_results\": [{\"checkpoint_dir_name\": \"checkp");
  set_time(SNAPSHOT, 3);
  assert_false(is_vouched());
}

static void no_failure_makes_it_vouch_or_leak(void **state) {
  for (int n = 1;; n++) {
    vouchers v = {0};
    err e = {0};
    io_fault *f = io_fault_new(io_system());
    io_fault_once(f, CALL_ANY, n, 5);
    int rc = vouched(&v, io_fault_io(f), dir, rules_builtin(), &unit, &e);
    vouchers_free(&v);
    bool over = io_fault_failed(f, CALL_ANY) == 0;
    io_fault_free(f);
    if (over) {
      assert_int_equal(rc, 1);
      break;
    }
    if (rc < 0) assert_true(*e.text);
    assert_true(n < 200);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_rays_own_file_names_is_whole),
      TEST(one_that_was_changed_since_is_not),
      TEST(one_of_which_a_file_was_removed_since_is_not),
      TEST(one_with_an_empty_file_a_link_or_a_temporary_name_is_not),
      TEST(what_was_written_before_this_boot_is_not),
      TEST(a_reason_to_doubt_outweighs_it),
      TEST(a_policy_with_conditions_of_its_own_outweighs_it),
      TEST(a_pointer_that_is_written_early_does_not_vouch),
      TEST(a_file_that_cannot_be_read_tells_nothing),
      TEST(no_failure_makes_it_vouch_or_leak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
