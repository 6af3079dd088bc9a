#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_dir.h"
#include "prims/fs.h"

static io no_exchange; /* a file system that cannot exchange */

static int rename_plainly(const io *io, int fromdir, const char *from, int todir, const char *to,
                          unsigned flags) {
  return flags & 2 /* RENAME_EXCHANGE */ ? -EINVAL
                                         : io_->rename(io_, fromdir, from, todir, to, flags);
}

static int enter(void **unused) {
  fault_dir_enter(NULL);
  no_exchange = *io_;
  no_exchange.rename = rename_plainly;
  make_dir(in("new"));
  write_file(in("new/f"), "new");
  return 0;
}

static void make_old(void) {
  make_dir(in("to"));
  make_dir(in("to/deep"));
  write_file(in("to/f"), "old");
  write_file(in("to/deep/g"), "old");
}

static bool is_new(void) {
  return file_is(in("to/f"), "new") && count_entries(in("to")) == 1;
}

static void a_tree_takes_a_free_place(void **unused) {
  const char *how;
  assert_int_equal(fs_replace_tree(io_, in("new"), in("to"), &how, NULL), 0);
  assert_string_equal(how, "published");
  assert_true(is_new());
  assert_int_equal(count_entries(dir), 1);
}

static void a_tree_takes_the_place_of_another_in_one_step(void **unused) {
  const char *how;
  make_old();
  assert_int_equal(fs_replace_tree(io_, in("new"), in("to"), &how, NULL), 0);
  assert_string_equal(how, "exchanged");
  assert_true(is_new());
  assert_int_equal(count_entries(dir), 1);
  assert_true(io_fault_find(fault, 0, "fsync") >= 0);
}

static void without_an_exchange_the_old_one_steps_aside(void **unused) {
  const char *how;
  make_old();
  assert_int_equal(fs_replace_tree(&no_exchange, in("new"), in("to/"), &how, NULL), 0);
  assert_string_equal(how, "stepped aside");
  assert_true(is_new());
  assert_int_equal(count_entries(dir), 1);
}

static void a_file_takes_the_place_of_a_tree_and_the_other_way_round(void **unused) {
  const char *how;
  write_file(in("file"), "x");
  assert_int_equal(fs_replace_tree(io_, in("file"), in("new"), &how, NULL), 0);
  assert_true(file_is(in("new"), "x"));
  make_old();
  assert_int_equal(fs_replace_tree(io_, in("to"), in("new"), &how, NULL), 0);
  assert_true(file_is(in("new/f"), "old"));
  assert_int_equal(count_entries(dir), 1);
}

static void what_is_missing_is_named_and_the_old_one_stays(void **unused) {
  const char *how;
  err e = {0};
  make_old();
  assert_int_equal(fs_replace_tree(io_, in("none"), in("to"), &how, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "none"));
  assert_true(file_is(in("to/f"), "old"));
  e = (err){0};
  assert_int_equal(fs_replace_tree(io_, in("new"), in("no/where"), &how, &e), ERR_NOENT);
  assert_true(file_is(in("new/f"), "new"));
}

static void across_file_systems_it_is_refused(void **unused) {
  const char *how;
  err e = {0};
  if (fs_same_device(io_system(), dir, "/dev/shm", NULL) != 0) skip();
  char *other = tmpdir_new_in("/dev/shm");
  int rc = fs_replace_tree(io_, in("new"), tmpdir_path(other, "x"), &how, &e);
  make_dir(tmpdir_path(other, "x"));
  int again = fs_replace_tree(io_, in("new"), tmpdir_path(other, "x"), &how, NULL);
  tmpdir_remove(other);
  assert_int_equal(rc, ERR_UNSUPPORTED);
  assert_int_equal(e.sys, EXDEV);
  assert_int_equal(again, ERR_UNSUPPORTED);
  assert_true(file_is(in("new/f"), "new"));
}

static void an_old_one_that_cannot_be_removed_is_named(void **unused) {
  const char *how;
  err e = {0};
  make_old();
  io_fault_once(fault, CALL_UNLINK, 2, EIO);
  assert_int_equal(fs_replace_tree(io_, in("new"), in("to"), &how, &e), ERR_IO);
  assert_true(is_new());
  assert_non_null(strstr(e.text, "is replaced, but what was there stays behind at"));
  assert_non_null(strstr(e.text, in("new")));
}

/* Somebody makes `to` just when we found it missing, and removes it when we found it there. */
static int flips;
static int rename_in_a_race(const io *io, int fromdir, const char *from, int todir, const char *to,
                            unsigned flags) {
  if (flips > 0) {
    flips--;
    if (flags & 2)
      rmdir(in("to"));
    else if (flags & 1)
      mkdir(in("to"), 0755);
  }
  return io_->rename(io_, fromdir, from, todir, to, flags);
}

static void a_race_with_others_is_run_again(void **unused) {
  const char *how;
  io racing = *io_;
  racing.rename = rename_in_a_race;
  flips = 7;
  assert_int_equal(fs_replace_tree(&racing, in("new"), in("to"), &how, NULL), 0);
  assert_true(is_new());
  assert_int_equal(flips, 0);
  make_dir(in("again"));
  flips = 1000000;
  err e = {0};
  char from[256], to[256]; /* in() would use its memory again */
  snprintf(from, sizeof from, "%s", in("again"));
  snprintf(to, sizeof to, "%s", in("to"));
  rename(to, in("aside"));
  assert_int_equal(fs_replace_tree(&racing, from, to, &how, &e), ERR_CONFLICT);
  assert_non_null(strstr(e.text, in("to")));
  assert_true(path_exists(in("again")));
}

/* With any call failing, a reader finds the old or the new, whole; where the old one steps aside it
 * may be beside. */
static void any_failing_call_leaves_the_old_or_the_new(void **unused) {
  for (int plain = 0; plain < 2; plain++)
    for (long nth = 1;; nth++) {
      const char *how;
      err e = {0};
      tmpdir_remove(dir);
      dir = tmpdir_new();
      make_dir(in("new"));
      write_file(in("new/f"), "new");
      make_old();
      io_fault_once(fault, CALL_ANY, nth, EIO);
      int rc = fs_replace_tree(plain ? &no_exchange : io_, in("new"), in("to"), &how, &e);
      bool failed = io_fault_failed(fault, CALL_ANY) > 0;
      io_fault_set(fault, (io_fault_plan){0});
      assert_true(rc == 0 || (failed && e.code == rc && *e.text));
      if (rc == 0) assert_true(is_new());
      if (rc < 0 && !is_new() && !file_is(in("to/f"), "old"))
        assert_non_null(strstr(e.text, ".old")); /* it says where the old one is */
      if (!failed) break;
      assert_true(nth < 200);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, fault_dir_leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_tree_takes_a_free_place),
      TEST(a_tree_takes_the_place_of_another_in_one_step),
      TEST(without_an_exchange_the_old_one_steps_aside),
      TEST(a_file_takes_the_place_of_a_tree_and_the_other_way_round),
      TEST(what_is_missing_is_named_and_the_old_one_stays),
      TEST(across_file_systems_it_is_refused),
      TEST(an_old_one_that_cannot_be_removed_is_named),
      TEST(a_race_with_others_is_run_again),
      TEST(any_failing_call_leaves_the_old_or_the_new),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
