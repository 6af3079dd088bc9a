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

/* The clock of a file system goes in steps of some milliseconds. */
static void let_time_pass(void) {
  usleep(30000);
}

#define SNAPSHOT "exp/checkpoint_manager_snapshot.json"
#define STATE "tune/experiment_state-2026-01-01_00-00-00.json"
#define NEWER_STATE "tune/experiment_state-2026-01-02_00-00-00.json"
#define MODEL "exp/checkpoint_1/rank/model.bin"

static void write_snapshot(void) {
  let_time_pass();
  put(SNAPSHOT, "{\"checkpoint_results\": [{\"checkpoint_dir_name\": \"checkpoint_1\"}]}");
}

static void write_state(const char *name, int step) {
  char text[200];
  let_time_pass();
  snprintf(text, sizeof text,
           "{\"trial\": \"{\\\"path\\\": \\\"/x/tune/trial/checkpoint_%d\\\"}\"}", step);
  put(name, text);
}

/* Ray Train beside its checkpoint, and Ray Tune above that of a trial. */
static int setup(void **state) {
  static const char *const dirs[] = {"exp",  "exp/checkpoint_1", "exp/checkpoint_1/rank",
                                     "tune", "tune/trial",       "tune/trial/checkpoint_1"};
  dir = tmpdir_new();
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) make_dir(tmpdir_path(dir, dirs[i]));
  put(MODEL, "weights");
  put("tune/trial/checkpoint_1/model.bin", "weights");
  write_snapshot();
  write_state(STATE, 1);
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
  let_time_pass();
  put(MODEL, "weight2");
  assert_false(is_vouched());
  write_snapshot();
  assert_true(is_vouched());
}

/* No time of a file tells that; that of its directory does. */
static void one_of_which_a_file_was_removed_since_is_not(void **state) {
  put("exp/checkpoint_1/rank/optimizer.bin", "moments");
  write_snapshot();
  assert_true(is_vouched());
  let_time_pass();
  assert_int_equal(unlink(tmpdir_path(dir, "exp/checkpoint_1/rank/optimizer.bin")), 0);
  assert_false(is_vouched());
}

/* As a copy that keeps the times does which leaves a file out: they are older than the snapshot's. */
static void one_that_came_with_old_times_is_not(void **state) {
  static const char *const names[] = {MODEL, "exp/checkpoint_1/rank", "exp/checkpoint_1"};
  const struct timespec then[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
  let_time_pass();
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(utimensat(AT_FDCWD, tmpdir_path(dir, names[i]), then, 0), 0);
  assert_false(is_vouched());
}

static void a_snapshot_of_the_future_does_not_vouch(void **state) {
  const int64_t now = io_system()->now(io_system(), IO_WALL) / 1000000000;
  const struct timespec then[2] = {{.tv_sec = now + 3600}, {.tv_sec = now + 3600}};
  assert_int_equal(utimensat(AT_FDCWD, tmpdir_path(dir, SNAPSHOT), then, 0), 0);
  assert_false(is_vouched());
}

/* Ray syncs the states of earlier sessions again, and does not look at what they name. */
static void only_the_newest_state_vouches(void **state) {
  take_the_trials();
  write_state(NEWER_STATE, 7);
  write_state(STATE, 1);
  assert_false(is_vouched());
  write_state(NEWER_STATE, 1);
  assert_true(is_vouched());
}

/* Fails unless what was just made under this name in the unit takes the word away, and nothing else
 * does. */
static void must_spoil(const char *name) {
  write_snapshot();
  assert_false(is_vouched());
  assert_int_equal(unlink(tmpdir_path(dir, name)), 0);
  write_snapshot();
  assert_true(is_vouched());
}

static void one_with_an_empty_file_a_link_or_a_temporary_name_is_not(void **state) {
  put("exp/checkpoint_1/empty", "");
  must_spoil("exp/checkpoint_1/empty");
  assert_int_equal(symlink("/etc/passwd", tmpdir_path(dir, "exp/checkpoint_1/link")), 0);
  must_spoil("exp/checkpoint_1/link");
  put("exp/checkpoint_1/model.tmp", "text");
  must_spoil("exp/checkpoint_1/model.tmp");
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
  assert_false(is_vouched());
}

static void a_file_that_cannot_be_read_tells_nothing(void **state) {
  put(SNAPSHOT, "{\"checkpoint_results\": [{\"checkpoint_dir_name\": \"checkp");
  assert_false(is_vouched());
}

/* Lets call after call fail, of which none may make it vouch if `spoiled`, or leak. */
static void let_each_call_fail(bool spoiled) {
  for (int n = 1;; n++) {
    vouchers v = {0};
    err e = {0};
    io_fault *f = io_fault_new(io_system());
    io_fault_once(f, CALL_ANY, n, 5);
    int rc = vouched(&v, io_fault_io(f), dir, rules_builtin(), &unit, &e);
    vouchers_free(&v);
    bool over = io_fault_failed(f, CALL_ANY) == 0;
    io_fault_free(f);
    if (rc < 0) assert_true(*e.text);
    if (spoiled) assert_int_not_equal(rc, 1);
    if (over) assert_int_equal(rc, !spoiled);
    if (over) return;
    assert_true(n < 200);
  }
}

static void no_failure_makes_it_vouch_or_leak(void **state) {
  let_each_call_fail(false);
  put("exp/checkpoint_1/rank/empty", "");
  write_snapshot();
  let_each_call_fail(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_rays_own_file_names_is_whole),
      TEST(one_that_was_changed_since_is_not),
      TEST(one_of_which_a_file_was_removed_since_is_not),
      TEST(one_with_an_empty_file_a_link_or_a_temporary_name_is_not),
      TEST(one_that_came_with_old_times_is_not),
      TEST(a_snapshot_of_the_future_does_not_vouch),
      TEST(only_the_newest_state_vouches),
      TEST(a_reason_to_doubt_outweighs_it),
      TEST(a_policy_with_conditions_of_its_own_outweighs_it),
      TEST(a_pointer_that_is_written_early_does_not_vouch),
      TEST(a_file_that_cannot_be_read_tells_nothing),
      TEST(no_failure_makes_it_vouch_or_leak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
