#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/job/ready.h"
#include "tmpdir.h"

static void what_was_said_is_read(void **state) {
  char *dir = *state;
  ready r;
  assert_int_equal(ready_read(dir, "l", &r), 0);
  assert_int_equal(
      ready_say(dir, "l", &(ready){"/a/odd\nname ", "s3://b/x", "/state", 0, "/a", "b 1 2", true}),
      0);
  assert_int_equal(ready_read(dir, "l", &r), 1);
  assert_string_equal(r.resume, "/a/odd\nname ");
  assert_string_equal(r.restored_from, "s3://b/x");
  assert_string_equal(r.state, "/state");
  assert_string_equal(r.dir, "/a");
  assert_string_equal(r.place, "b 1 2");
  assert_true(r.asks);
  ready_free(&r);
  assert_int_equal(ready_say(dir, "l", &(ready){0}), 0);
  assert_int_equal(ready_read(dir, "l", &r), 1);
  assert_null(r.resume);
  assert_null(r.restored_from);
  assert_false(r.asks);
  ready_free(&r);
}

static void another_launch_is_another_file_and_earlier_ones_go(void **state) {
  static const char *const launches[] = {"slurm:1.0@n:1", "slurm:1.0@n-1", "../../x", "", "\xff"};
  char *dir = tmpdir_new();
  ready r;
  for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
    assert_int_equal(ready_say(dir, launches[i], &(ready){0}), 0);
    for (size_t k = 0; k < sizeof launches / sizeof *launches; k++) {
      assert_int_equal(ready_read(dir, launches[k], &r), i == k);
      ready_free(&r);
    }
    assert_int_equal(count_entries(dir), 1);
  }
  tmpdir_remove(dir);
}

static void what_is_no_such_file_is_an_error_and_not_a_start(void **state) {
  static const struct {
    const char *bytes;
    size_t len;
  } bad[] = {{"", 0},
             {"ckpt-ready 1", 12},
             {"ckpt-ready 1\0", 13},
             {"ckpt-ready 1\0\0\0", 15},
             {"ckpt-ready 2\0\0\0\0", 16},
             {"ckpt-ready 1\0a\0b\0c", 18},
             {"ckpt-failed 1\0\0\0\0", 17},
             {"ckpt-failed 1\0000\0\0\0", 19},
             {"x\0\0\0\0", 5}};
  char *dir = tmpdir_new(), path[4096];
  ready r;
  assert_int_equal(ready_say(dir, "l", &(ready){0}), 0);
  /* The one file that is there. */
  snprintf(path, sizeof path, "%s", tmpdir_path(dir, "ready.l.af63e14c8601f50b"));
  if (!path_exists(path)) fail_msg("the file has another name");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_bytes(path, bad[i].bytes, bad[i].len);
    assert_int_equal(ready_read(dir, "l", &r), -EBADMSG);
    assert_null(r.resume);
  }
  write_bytes(path, "ckpt-ready 1\0\0\0", 16);
  assert_int_equal(ready_read(dir, "l", &r), 1);
  ready_free(&r);
  tmpdir_remove(dir);
}

static void a_failure_is_told_until_the_next_start(void **state) {
  char *dir = *state;
  ready r;
  assert_int_equal(ready_say(dir, "alive", &(ready){0}), 0);
  assert_int_equal(ready_fail(dir, "l", 11), 0);
  assert_int_equal(ready_read(dir, "l", &r), 1);
  assert_int_equal(r.failed, 11);
  ready_free(&r);
  assert_int_equal(ready_read(dir, "alive", &r), 1); /* nor is another launch's taken away */
  ready_free(&r);
  assert_int_equal(ready_say(dir, "l", &(ready){0}), 0);
  assert_int_equal(ready_read(dir, "l", &r), 1);
  assert_int_equal(r.failed, 0);
  ready_free(&r);
  assert_int_equal(ready_fail(dir, "alive", 11), 0);
  ready_forget(dir, "l");
  assert_int_equal(ready_read(dir, "l", &r), 0);
  assert_int_equal(ready_read(dir, "alive", &r), 1); /* only that one goes */
  ready_free(&r);
  assert_int_equal(ready_fail(tmpdir_path(dir, "none"), "l", 1), -ENOENT);
}

static void a_state_directory_that_is_not_there_is_not_ready(void **state) {
  char *dir = *state;
  ready r;
  assert_int_equal(ready_read(tmpdir_path(dir, "none"), "l", &r), 0);
  assert_int_equal(ready_say(tmpdir_path(dir, "none"), "l", &(ready){0}), -ENOENT);
}

static void a_place_beside_the_directory_is_one_that_is_there_and_not_the_state(void **state) {
  char *dir = *state, out[4096], beside[4096];
  char watched[4096];
  snprintf(watched, sizeof watched, "%s", tmpdir_path(dir, "out"));
  make_dir(watched);
  assert_false(ready_beside(watched, "/state", out));
  write_file(tmpdir_path(dir, "out.ckpt"), "");
  assert_false(ready_beside(watched, "/state", out));
  unlink(tmpdir_path(dir, "out.ckpt"));
  make_dir(tmpdir_path(dir, "elsewhere"));
  assert_int_equal(symlink("elsewhere", tmpdir_path(dir, "out.ckpt")), 0);
  assert_true(ready_beside(watched, "/state", out));
  snprintf(beside, sizeof beside, "%s", tmpdir_path(dir, "elsewhere"));
  assert_string_equal(out, beside);
  assert_int_equal(ready_say(out, "l", &(ready){0}), 0);
  assert_false(ready_beside(watched, beside, out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_DIRECTORY(what_was_said_is_read),
      cmocka_unit_test(another_launch_is_another_file_and_earlier_ones_go),
      cmocka_unit_test(what_is_no_such_file_is_an_error_and_not_a_start),
      IN_A_DIRECTORY(a_failure_is_told_until_the_next_start),
      IN_A_DIRECTORY(a_state_directory_that_is_not_there_is_not_ready),
      IN_A_DIRECTORY(a_place_beside_the_directory_is_one_that_is_there_and_not_the_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
