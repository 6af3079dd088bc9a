#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prims/fs.h"
#include "tmpdir.h"

static void a_name_has_one_spelling_and_stays_below(void **unused) {
  static const char *const good[] = {"a", "a/b", "...", "a/..b", ".a", "a b", "\xff\xfe", "a\\b"};
  static const char *const bad[] = {"",     "/",  "/a", "..",  "../a",  "a/..", "a/../b",
                                    "a//b", "a/", ".",  "./a", "a/./b", "a/.",  "a/../../b"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_int_equal(fs_beneath_check(good[i], NULL), 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (fs_beneath_check(bad[i], NULL) != ERR_INVAL) fail_msg("\"%s\" passed", bad[i]);
}

static void a_name_has_limits(void **unused) {
  char name[FS_PATH_MAX + 1];
  memset(name, 'x', sizeof name);
  name[255] = 0;
  assert_int_equal(fs_beneath_check(name, NULL), 0);
  name[255] = 'x', name[256] = 0;
  assert_int_equal(fs_beneath_check(name, NULL), ERR_LIMIT);
  for (int i = 0; i < 65; i++) name[2 * i] = 'd', name[2 * i + 1] = '/';
  name[127] = 0; /* 64 of them */
  assert_int_equal(fs_beneath_check(name, NULL), 0);
  name[127] = '/', name[129] = 0;
  assert_int_equal(fs_beneath_check(name, NULL), ERR_LIMIT);
}

static void a_link_leads_up_no_further_than_its_root_and_only_at_its_beginning(void **unused) {
  static const char *const good[][2] = {{"l", "a"},    {"l", "a/b"},    {"l", "."},
                                        {"d/l", ".."}, {"d/l", "../x"}, {"d/e/l", "../../x/y"},
                                        {"l", "./a"},  {"l", "..a"},    {"d/l", "./../x"},
                                        {"l", "a/"}};
  static const char *const bad[][2] = {
      {"l", ""},         {"l", "/"},           {"l", "/etc"}, {"l", ".."},      {"d/l", "../.."},
      {"d/l", "a/../b"}, {"d/e/l", "../x/.."}, {"l", "./.."}, {"d/l", "..//.."}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (fs_beneath_check_link(good[i][0], good[i][1], NULL) != 0)
      fail_msg("%s -> %s is refused", good[i][0], good[i][1]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (fs_beneath_check_link(bad[i][0], bad[i][1], NULL) != ERR_INVAL)
      fail_msg("%s -> %s passed", bad[i][0], bad[i][1]);
}

/* With the kernel's own call, and without it. */
static void open_in(const io *io) {
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "in"));
  make_dir(tmpdir_path(dir, "in/d"));
  write_file(tmpdir_path(dir, "out"), "secret");
  write_file(tmpdir_path(dir, "in/d/f"), "x");
  assert_int_equal(symlink("d", tmpdir_path(dir, "in/l")), 0);
  assert_int_equal(symlink("../out", tmpdir_path(dir, "in/out")), 0);
  int root = open(tmpdir_path(dir, "in"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int before = count_fds();
  int fd = fs_open_beneath(io, root, "d/f", O_RDONLY, 0);
  assert_true(fd >= 0);
  close(fd);
  static const char *const bad[] = {"l/f", "l", "out", "../out", "d/../../out", "d/f/x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    fd = fs_open_beneath(io, root, bad[i], O_RDONLY, 0);
    if (fd != -ELOOP && fd != -EXDEV && fd != -ENOTDIR) fail_msg("%s: %d", bad[i], fd);
  }
  assert_int_equal(fs_open_beneath(io, root, "d/none", O_RDONLY, 0), -ENOENT);
  fd = fs_open_beneath(io, root, "d/new", O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(count_fds(), before);
  close(root);
  tmpdir_remove(dir);
}

static void no_link_is_followed_with_the_kernels_call(void **unused) {
  open_in(io_system());
}

static void no_link_is_followed_without_it(void **unused) {
  io old = *io_system();
  old.open_beneath = NULL;
  open_in(&old);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_has_one_spelling_and_stays_below),
      cmocka_unit_test(a_name_has_limits),
      cmocka_unit_test(a_link_leads_up_no_further_than_its_root_and_only_at_its_beginning),
      cmocka_unit_test(no_link_is_followed_with_the_kernels_call),
      cmocka_unit_test(no_link_is_followed_without_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
