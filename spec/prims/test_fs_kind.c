#include "with_cmocka.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/fs.h"
#include "tmpdir.h"

static char *dir; /* not a local: a child that exits would be said to lose it */

/* Stands in for libc's: this machine does not have the file systems that matter. */
static long fake_magic;
static int fake_error;
int statfs(const char *path, struct statfs *out) {
  if (fake_error) {
    errno = fake_error;
    return -1;
  }
  int rc = (int)syscall(SYS_statfs, path, out);
  if (fake_magic) out->f_type = fake_magic;
  return rc;
}

static void remote_kinds_are_known(void **unused) {
  static const struct {
    long magic;
    const char *name;
  } known[] = {{0x6969, "nfs"},        {0xff534d42, "cifs"}, {0xfe534d42, "smb2"},
               {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"}, {0x00c36400, "ceph"},
               {0x65735546, "fuse"},   {0x01021997, "9p"},   {0x5346414f, "afs"}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    fs_kind kind;
    fake_magic = known[i].magic;
    assert_int_equal(fs_kind_of("/", &kind, NULL), 0);
    assert_string_equal(kind.name, known[i].name);
    assert_true(kind.remote_writers);
  }
  fake_magic = 0;
}

static void local_kinds_are_known(void **unused) {
  static const struct {
    long magic;
    const char *name;
  } known[] = {{0xef53, "ext4"},      {0x58465342, "xfs"},     {0x9123683e, "btrfs"},
               {0x01021994, "tmpfs"}, {0x794c7630, "overlay"}, {0x2fc12fc1, "zfs"},
               {0xf2f52010, "f2fs"}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    fs_kind kind;
    fake_magic = known[i].magic;
    assert_int_equal(fs_kind_of("/", &kind, NULL), 0);
    assert_string_equal(kind.name, known[i].name);
    assert_false(kind.remote_writers);
  }
  fake_magic = 0;
}

static void only_a_server_that_flushes_is_taken_at_its_word(void **unused) {
  static const struct {
    long magic;
    bool keeps;
  } known[] = {{0x6969, true},      {0xff534d42, true},  {0xfe534d42, true},  {0x0bd00bd0, true},
               {0x47504653, true},  {0x00c36400, true},  {0x19830326, true},  {0x65735546, false},
               {0x01021997, false}, {0x73757245, false}, {0x01161970, false}, {0x794c7630, false},
               {0xef53, false},     {0x12345678, false}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    fs_kind kind;
    fake_magic = known[i].magic;
    assert_int_equal(fs_kind_of("/", &kind, NULL), 0);
    if (kind.keeps_flushed != known[i].keeps) fail_msg("%s", kind.name);
  }
  fake_magic = 0;
}

static void an_unknown_kind_counts_as_remote(void **unused) {
  fs_kind kind;
  fake_magic = 0x12345678;
  assert_int_equal(fs_kind_of("/", &kind, NULL), 0);
  assert_string_equal(kind.name, "unknown");
  assert_true(kind.remote_writers);
  fake_magic = 0;
}

static void the_kernels_own_answer_is_understood(void **unused) {
  fs_kind kind;
  err e = {0};
  if (access("/dev/shm", F_OK) == 0) {
    assert_int_equal(fs_kind_of("/dev/shm", &kind, NULL), 0);
    assert_string_equal(kind.name, "tmpfs");
  }
  assert_int_equal(fs_kind_of("/nowhere at all", &kind, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "/nowhere at all"));
  fake_error = EIO;
  assert_int_equal(fs_kind_of("/", &kind, NULL), ERR_IO);
  fake_error = 0;
}

static void mount_points_are_told_from_directories(void **unused) {
  dir = tmpdir_new();
  assert_int_equal(fs_is_mount_point("/", NULL), 1);
  assert_int_equal(fs_is_mount_point("/proc", NULL), 1);
  assert_int_equal(fs_is_mount_point("/proc/sys", NULL), 0);
  assert_int_equal(fs_is_mount_point(dir, NULL), 0);
  const char *file = tmpdir_path(dir, "f"), *link = tmpdir_path(dir, "link");
  write_file(file, "x");
  assert_int_equal(fs_is_mount_point(file, NULL), ERR_INVAL);
  assert_int_equal(symlink("/proc", link), 0);
  assert_int_equal(fs_is_mount_point(link, NULL), 1);
  assert_int_equal(fs_is_mount_point(tmpdir_path(dir, "none"), NULL), ERR_NOENT);
  tmpdir_remove(dir);
}

static void a_bind_mount_of_the_same_file_system_is_a_mount_point(void **unused) {
  dir = tmpdir_new();
  const char *a = tmpdir_path(dir, "a"), *b = tmpdir_path(dir, "b");
  make_dir(a);
  make_dir(b);
  pid_t pid = fork();
  if (pid == 0) { /* a mount namespace of its own, which ends with it */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") != 0 ||
        mount(a, b, "none", MS_BIND, "") != 0)
      _exit(77);
    _exit(fs_is_mount_point(b, NULL) == 1 && fs_is_mount_point(a, NULL) == 0 ? 0 : 1);
  }
  int status;
  waitpid(pid, &status, 0);
  tmpdir_remove(dir);
  if (WEXITSTATUS(status) == 77) {
    print_message("mounting needs root\n");
    skip();
  }
  assert_int_equal(status, 0);
}

static void devices_are_compared_through_links(void **unused) {
  const io *io = io_system();
  dir = tmpdir_new();
  const char *sub = tmpdir_path(dir, "sub"), *link = tmpdir_path(dir, "link");
  make_dir(sub);
  assert_int_equal(symlink("/proc", link), 0);
  assert_int_equal(fs_same_device(io, dir, sub, NULL), 1);
  assert_int_equal(fs_same_device(io, dir, "/proc", NULL), 0);
  assert_int_equal(fs_same_device(io, link, "/proc", NULL), 1);
  assert_int_equal(fs_same_device(io, dir, tmpdir_path(dir, "none"), NULL), ERR_NOENT);
  assert_int_equal(count_entries(dir), 2);
  tmpdir_remove(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(remote_kinds_are_known),
      cmocka_unit_test(local_kinds_are_known),
      cmocka_unit_test(only_a_server_that_flushes_is_taken_at_its_word),
      cmocka_unit_test(an_unknown_kind_counts_as_remote),
      cmocka_unit_test(the_kernels_own_answer_is_understood),
      cmocka_unit_test(mount_points_are_told_from_directories),
      cmocka_unit_test(a_bind_mount_of_the_same_file_system_is_a_mount_point),
      cmocka_unit_test(devices_are_compared_through_links),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
