/* What fs_copy_tree_as adds; the copy itself is tested with the walks (test_fs_tree.c). */
#include "with_cmocka.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_dir.h"
#include "prims/fs.h"

static int enter(void **unused) {
  fault_dir_enter(NULL);
  make_dir(in("t"));
  make_dir(in("t/d"));
  write_file(in("t/d/f"), "deep");
  write_file(in("t/g"), "flat");
  return 0;
}

static bool is_named(void *ctx, const char *path) {
  return strcmp(path, ctx) == 0;
}

static int copy(const char *from, fs_copy_how how, err *e) {
  return fs_copy_tree_as(io_, in(from), in("copy"), &how, e);
}

static void what_is_left_out_goes_with_all_below_it(void **unused) {
  assert_int_equal(copy("t", (fs_copy_how){.leave_out = is_named, .ctx = "d"}, NULL), 0);
  assert_int_equal(count_entries(in("copy")), 1);
  assert_true(file_is(in("copy/g"), "flat"));
}

static void a_name_in_the_depth_is_given_from_the_root(void **unused) {
  assert_int_equal(copy("t", (fs_copy_how){.leave_out = is_named, .ctx = "d/f"}, NULL), 0);
  assert_int_equal(count_entries(in("copy")), 2);
  assert_int_equal(count_entries(in("copy/d")), 0);
}

static void links_become_what_they_lead_to(void **unused) {
  assert_int_equal(symlink("../t/d", in("t/to_dir")), 0);
  assert_int_equal(symlink("g", in("t/to_file")), 0);
  assert_int_equal(symlink("t", in("root")), 0);
  assert_int_equal(copy("root", (fs_copy_how){.follow = true}, NULL), 0);
  struct stat st;
  assert_int_equal(lstat(in("copy"), &st), 0);
  assert_true(S_ISDIR(st.st_mode));
  assert_int_equal(lstat(in("copy/to_dir"), &st), 0);
  assert_true(S_ISDIR(st.st_mode));
  assert_true(file_is(in("copy/to_dir/f"), "deep"));
  assert_int_equal(lstat(in("copy/to_file"), &st), 0);
  assert_true(S_ISREG(st.st_mode));
}

static void a_link_that_leads_nowhere_is_named(void **unused) {
  err e = {0};
  assert_int_equal(symlink("none", in("t/dangling")), 0);
  assert_int_equal(copy("t", (fs_copy_how){.follow = true}, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "t/dangling"));
  assert_false(path_exists(in("copy")));
  assert_int_equal(copy("t", (fs_copy_how){0}, NULL), 0); /* as a link it is fine */
}

static void a_link_to_above_ends_at_once(void **unused) {
  static const char *const targets[] = {"..", ".", "../d"};
  for (int i = 0; i < 3; i++) {
    err e = {0};
    unlink(in("t/d/round"));
    assert_int_equal(symlink(targets[i], in("t/d/round")), 0);
    assert_int_equal(copy("t", (fs_copy_how){.follow = true}, &e), ERR_INVAL);
    assert_non_null(strstr(e.text, "t/d/round"));
    assert_false(path_exists(in("copy")));
  }
}

static void a_link_to_itself_is_an_error(void **unused) {
  assert_int_equal(symlink("self", in("t/self")), 0);
  assert_true(copy("t", (fs_copy_how){.follow = true}, NULL) < 0);
  assert_false(path_exists(in("copy")));
}

static void the_bytes_of_files_are_counted(void **unused) {
  _Atomic uint64_t copied = 0;
  assert_int_equal(copy("t", (fs_copy_how){.copied = &copied}, NULL), 0);
  assert_true(copied == 8 || copied == 0); /* none where the blocks are shared */
}

static void any_failing_call_of_a_copy_through_links_leaves_nothing(void **unused) {
  int fds = count_fds();
  assert_int_equal(symlink("../t/d", in("t/to_dir")), 0);
  assert_int_equal(symlink("g", in("t/to_file")), 0);
  for (long nth = 1;; nth++) {
    err e = {0};
    io_fault_once(fault, CALL_ANY, nth, EIO);
    int rc = copy("t", (fs_copy_how){.follow = true, .flush = true}, &e);
    bool failed = io_fault_failed(fault, CALL_ANY) > 0;
    io_fault_set(fault, (io_fault_plan){0});
    assert_int_equal(count_fds(), fds);
    assert_true(rc == 0 || (failed && e.code == rc && *e.text));
    assert_true(path_exists(in("copy")) == (rc == 0));
    if (rc == 0) assert_true(file_is(in("copy/to_dir/f"), "deep"));
    assert_int_equal(fs_remove_tree(io_, in("copy"), NULL), 0);
    if (!failed) break;
    assert_true(nth < 1000);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, fault_dir_leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_is_left_out_goes_with_all_below_it),
      TEST(a_name_in_the_depth_is_given_from_the_root),
      TEST(links_become_what_they_lead_to),
      TEST(a_link_that_leads_nowhere_is_named),
      TEST(a_link_to_above_ends_at_once),
      TEST(a_link_to_itself_is_an_error),
      TEST(the_bytes_of_files_are_counted),
      TEST(any_failing_call_of_a_copy_through_links_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
