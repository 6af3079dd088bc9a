#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/pack/pack.h"
#include "job/pack/unpack.h"
#include "prims/lock.h"
#include "io_fault.h"
#include "tmpdir.h"

/* Hostile archives are met by spec/hostile/archives.py; here it is about what pack made. */

static char *libexec(void) {
  static char path[4096];
  const char *build = getenv("CKPT_BUILD");
  snprintf(path, sizeof path, "%s/libexec", build ? build : "build");
  return path;
}

static int pack(const io *io, const char *dir, const char *file, err *e) {
  const pack_options o = {.io = io, .libexec = libexec(), .dir = dir, .file = file};
  return pack_archive(&o, e);
}

static int unpack(const io *io, const char *file, const char *dir, uint64_t most, err *e) {
  const unpack_options o = {
      .io = io, .libexec = libexec(), .file = file, .dir = dir, .bytes_max = most};
  return unpack_archive(&o, e);
}

static int64_t mtime_of(const char *path) {
  struct stat st;
  assert_int_equal(lstat(path, &st), 0);
  return io_time_ns(st.st_mtim);
}

static void set_mtime(const char *path, int64_t s, long ns) {
  const struct timespec times[2] = {{s, ns}, {s, ns}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static const char *const odd = "src/d/\xff\xfe \n";

static char *make_tree(void) {
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "src"));
  make_dir(tmpdir_path(dir, "src/d"));
  make_dir(tmpdir_path(dir, "src/d/empty"));
  write_file(tmpdir_path(dir, "src/d/f"), "hello");
  write_file(tmpdir_path(dir, "src/none"), "");
  write_pattern(tmpdir_path(dir, "src/big"), 3000001, 7);
  write_file(tmpdir_path(dir, odd), "odd");
  assert_int_equal(symlink("../big", tmpdir_path(dir, "src/d/l")), 0);
  chmod(tmpdir_path(dir, "src/d/f"), 04755);
  set_mtime(tmpdir_path(dir, "src/d/f"), 1700000000, 123456789);
  set_mtime(tmpdir_path(dir, "src/d/l"), 1600000000, 1);
  set_mtime(tmpdir_path(dir, "src/d"), 1500000000, 999999999);
  chmod(tmpdir_path(dir, "src/d/empty"), 0500);
  set_mtime(tmpdir_path(dir, "src"), 1400000000, 5);
  return dir;
}

static void expect_tree(const char *dir) {
  char target[64] = "";
  assert_true(file_is(tmpdir_path(dir, "out/d/f"), "hello"));
  assert_true(file_is(tmpdir_path(dir, "out/none"), ""));
  assert_true(files_equal(tmpdir_path(dir, "out/big"), tmpdir_path(dir, "src/big")));
  assert_true(file_is(tmpdir_path(dir, "out/d/\xff\xfe \n"), "odd"));
  assert_int_equal(readlink(tmpdir_path(dir, "out/d/l"), target, sizeof target), 6);
  assert_string_equal(target, "../big");
  assert_int_equal(path_mode(tmpdir_path(dir, "out/d/f")), 0755); /* set-id bits are left out */
  assert_int_equal(path_mode(tmpdir_path(dir, "out/d/empty")), 0500);
  static const char *const names[] = {"", "/d", "/d/f", "/d/l", "/d/empty", "/big"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char from[64], to[64];
    snprintf(from, sizeof from, "src%s", names[i]);
    snprintf(to, sizeof to, "out%s", names[i]);
    assert_int_equal(mtime_of(tmpdir_path(dir, from)), mtime_of(tmpdir_path(dir, to)));
  }
  assert_int_equal(count_entries(tmpdir_path(dir, "out")), 3);
}

static void a_tree_comes_back_with_its_names_bytes_modes_and_times(void **unused) {
  static const char *const files[] = {"a.tar", "a.tar.gz", "a.tgz", "a.tar.zst", "a.tzst"};
  char *dir = make_tree();
  int before = count_fds();
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    const char *file = tmpdir_path(dir, files[i]);
    err e = {0};
    if (pack(io_system(), tmpdir_path(dir, "src"), file, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(path_mode(file), 0600);
    if (unpack(io_system(), file, tmpdir_path(dir, "out"), 0, &e) < 0) fail_msg("%s", e.text);
    expect_tree(dir);
    char command[4200];
    snprintf(command, sizeof command, "chmod -R u+rwx %s/out && rm -r %s/out", dir, dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(count_entries(dir), 2 + (int)i);
  }
  assert_int_equal(count_fds(), before);
  tmpdir_remove(dir);
}

static void equal_trees_give_equal_archives_and_nothing_is_replaced(void **unused) {
  char *dir = make_tree();
  err e = {0};
  const char *a = tmpdir_path(dir, "a.tar.zst"), *b = tmpdir_path(dir, "b.tar.zst");
  assert_int_equal(pack(io_system(), tmpdir_path(dir, "src"), a, &e), 0);
  assert_int_equal(pack(io_system(), tmpdir_path(dir, "src"), b, &e), 0);
  assert_true(files_equal(a, b));
  assert_int_equal(pack(io_system(), tmpdir_path(dir, "src"), b, &e), ERR_EXISTS);
  assert_int_equal(unpack(io_system(), a, tmpdir_path(dir, "src"), 0, &e), ERR_EXISTS);
  make_dir(tmpdir_path(dir, "out"));
  assert_int_equal(unpack(io_system(), a, tmpdir_path(dir, "out"), 0, &e), 0);
  expect_tree(dir);
  tmpdir_remove(dir);
}

static void what_unpack_would_refuse_is_not_packed(void **unused) {
  static const char *const names[] = {"a.zip", "a", "src/a.tar"};
  char *dir = make_tree();
  err e = {0};
  const char *src = tmpdir_path(dir, "src"), *file = tmpdir_path(dir, "a.tar");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_int_equal(pack(io_system(), src, tmpdir_path(dir, names[i]), &e), ERR_INVAL);
  assert_int_equal(mkfifo(tmpdir_path(dir, "src/fifo"), 0600), 0);
  assert_int_equal(pack(io_system(), src, file, &e), ERR_INVAL);
  assert_int_equal(unlink(tmpdir_path(dir, "src/fifo")), 0);
  assert_int_equal(symlink("/etc", tmpdir_path(dir, "src/etc")), 0);
  assert_int_equal(pack(io_system(), src, file, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "absolute"));
  assert_int_equal(pack(io_system(), tmpdir_path(dir, "none"), file, &e), ERR_NOENT);
  assert_int_equal(count_entries(dir), 1);
  tmpdir_remove(dir);
}

static void a_limit_that_is_crossed_leaves_nothing(void **unused) {
  char *dir = make_tree();
  err e = {0};
  const char *file = tmpdir_path(dir, "a.tar.zst");
  assert_int_equal(pack(io_system(), tmpdir_path(dir, "src"), file, &e), 0);
  assert_int_equal(unpack(io_system(), file, tmpdir_path(dir, "out"), 3000000, &e), ERR_LIMIT);
  unpack_options o = {.io = io_system(),
                      .libexec = libexec(),
                      .file = file,
                      .dir = tmpdir_path(dir, "out"),
                      .entries_max = 5};
  assert_int_equal(unpack_archive(&o, &e), ERR_LIMIT);
  o.entries_max = 8;
  o.bytes_max = 3000009;
  assert_int_equal(unpack_archive(&o, &e), 0);
  tmpdir_remove(dir);
}

static void without_its_helper_it_says_which_one(void **unused) {
  char *dir = make_tree();
  err e = {0};
  const pack_options o = {.io = io_system(),
                          .libexec = "/nonexistent",
                          .dir = tmpdir_path(dir, "src"),
                          .file = tmpdir_path(dir, "a.tar")};
  assert_true(pack_archive(&o, &e) < 0);
  assert_non_null(strstr(e.text, "/nonexistent/ckpt-archive"));
  assert_int_equal(count_entries(dir), 1);
  tmpdir_remove(dir);
}

/* Nothing of ours is left beside `dir`'s own: no ".tmp", no ".unpack". */
static void expect_clean(const char *dir, int most) {
  if (count_entries(dir) <= most) return;
  char command[4200];
  snprintf(command, sizeof command, "ls -la %s", dir);
  assert_int_equal(system(command), 0);
  fail_msg("something was left behind");
}

/* Call 1, 2, 3, ... fails until one run passes: all or nothing, each time, and no descriptor lost.
 */
static void each_call_that_fails_leaves_all_or_nothing(void **state) {
  char *dir = *state, src[4096], file[4096], out[4096];
  make_dir(tmpdir_path(dir, "src"));
  make_dir(tmpdir_path(dir, "src/d"));
  write_file(tmpdir_path(dir, "src/d/f"), "hello");
  assert_int_equal(symlink("d/f", tmpdir_path(dir, "src/l")), 0);
  snprintf(src, sizeof src, "%s/src", dir);
  snprintf(file, sizeof file, "%s/a.tar", dir);
  snprintf(out, sizeof out, "%s/out", dir);
  io_fault *f = io_fault_new(io_unflushed());
  int fds = count_fds();
  err e = {0};
  long n = 0;
  do { /* pack */
    unlink(file);
    io_fault_once(f, CALL_ANY, ++n, ENOSPC);
    int rc = pack(io_fault_io(f), src, file, &e);
    assert_true(rc < 0 || path_exists(file));
    if (path_exists(file)) {
      assert_int_equal(unpack(io_unflushed(), file, out, 0, &e), 0);
      assert_true(file_is(tmpdir_path(dir, "out/l"), "hello"));
      tmpdir_remove(strdup(out));
    }
    expect_clean(dir, path_exists(file) ? 2 : 1);
  } while (io_fault_failed(f, CALL_ANY) > 0);
  assert_in_range(n, 20, 1000);
  n = 0;
  do { /* unpack */
    tmpdir_remove(path_exists(out) ? strdup(out) : NULL);
    io_fault_once(f, CALL_ANY, ++n, ENOSPC);
    int rc = unpack(io_fault_io(f), file, out, 0, &e);
    assert_true(rc < 0 || path_exists(out));
    if (path_exists(out)) assert_true(file_is(tmpdir_path(dir, "out/l"), "hello"));
    expect_clean(dir, path_exists(out) ? 3 : 2);
  } while (io_fault_failed(f, CALL_ANY) > 0);
  assert_in_range(n, 20, 1000);
  assert_int_equal(count_fds(), fds);
  io_fault_free(f);
}

static void make_old(const char *path) {
  struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

#define NONCE "0123456789abcdef0123456789abcdef"

static void what_a_killed_one_left_goes_and_what_somebody_works_on_stays(void **unused) {
  char *dir = make_tree();
  err e = {0};
  lock held = {.fd = -1}, held_dir = {.fd = -1};
  char *file = strdup(tmpdir_path(dir, "a.tar"));
  static const char *const files[] = {"a.tar." NONCE ".tmp", "a.tar.1" NONCE ".tmp",
                                      "a.tar.old.tmp", "b.tar." NONCE ".tmp"};
  for (int i = 0; i < 4; i++) {
    write_file(tmpdir_path(dir, files[i]), "x");
    make_old(tmpdir_path(dir, files[i]));
  }
  make_dir(tmpdir_path(dir, ".out." NONCE ".unpack"));
  write_file(tmpdir_path(dir, ".out." NONCE ".unpack/x"), "x");
  make_old(tmpdir_path(dir, ".out." NONCE ".unpack"));
  assert_int_equal(lock_take(tmpdir_path(dir, files[0]), true, &held, NULL), 0);
  assert_int_equal(lock_take_dir(tmpdir_path(dir, ".out." NONCE ".unpack"), &held_dir, NULL), 0);
  for (int round = 0; round < 2; round++) {
    unlink(file);
    assert_int_equal(pack(io_system(), tmpdir_path(dir, "src"), file, &e), 0);
    assert_int_equal(unpack(io_system(), file, tmpdir_path(dir, "out"), 0, &e), 0);
    assert_int_equal(path_exists(tmpdir_path(dir, files[0])), round == 0);
    assert_int_equal(path_exists(tmpdir_path(dir, ".out." NONCE ".unpack")), round == 0);
    tmpdir_remove(strdup(tmpdir_path(dir, "out")));
    lock_drop(&held);
    lock_drop(&held_dir);
  }
  for (int i = 1; i < 4; i++) assert_true(path_exists(tmpdir_path(dir, files[i])));
  free(file);
  tmpdir_remove(dir);
}

static void what_is_no_file_is_refused_and_a_dash_is_standard_input(void **unused) {
  char *dir = make_tree();
  err e = {0};
  const char *file = tmpdir_path(dir, "a.tar.zst");
  assert_int_equal(mkfifo(tmpdir_path(dir, "fifo"), 0600), 0);
  assert_int_equal(unpack(io_system(), tmpdir_path(dir, "fifo"), tmpdir_path(dir, "out"), 0, &e),
                   ERR_INVAL);
  assert_non_null(strstr(e.text, "unpack -"));
  assert_int_equal(pack(io_system(), tmpdir_path(dir, "src"), file, &e), 0);
  int before = dup(STDIN_FILENO), in = open(file, O_RDONLY);
  assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
  assert_int_equal(unpack(io_system(), "-", tmpdir_path(dir, "out"), 0, &e), 0);
  dup2(before, STDIN_FILENO);
  close(before);
  close(in);
  expect_tree(dir);
  tmpdir_remove(dir);
}

/* The first line of a log that begins and ends like this; NULL: none. */
static const char *line_of(const char *log, const char *begin, const char *end) {
  for (; log; log = *log ? strchr(log, '\n') : NULL) {
    log += *log == '\n';
    size_t len = strcspn(log, "\n"), tail = strlen(end);
    if (strncmp(log, begin, strlen(begin)) == 0 && len >= tail &&
        strncmp(log + len - tail, end, tail) == 0)
      return log;
  }
  return NULL;
}

/* What is reported is there after a power loss: all of it is flushed, once, then the name. */
static void what_is_packed_or_unpacked_is_flushed_before_it_has_its_name(void **state) {
  char *dir = *state;
  make_dir(tmpdir_path(dir, "src"));
  make_dir(tmpdir_path(dir, "src/d"));
  write_file(tmpdir_path(dir, "src/d/f"), "hello");
  io_fault *f = io_fault_new(io_unflushed());
  static const char *const flush[][2] = {{"fsync ", ".tmp"}, {"syncfs ", ".unpack/."}};
  const char *file = tmpdir_path(dir, "a.tar");
  for (int i = 0; i < 2; i++) {
    err e = {0};
    io_fault_set(f, (io_fault_plan){0});
    assert_int_equal(i ? unpack(io_fault_io(f), file, tmpdir_path(dir, "out"), 0, &e)
                       : pack(io_fault_io(f), tmpdir_path(dir, "src"), file, &e),
                     0);
    char *log = io_fault_log(f);
    const char *at = line_of(log, flush[i][0], flush[i][1]);
    if (!at) fail_msg("it is not flushed:\n%s", log);
    if (i &&
        (line_of(at, "write ", "") || line_of(at, "mkdir ", "") || line_of(log, "fsync ", "/f")))
      fail_msg("it is not flushed at the end, and once:\n%s", log);
    at = line_of(at, "rename ", "");
    if (!at || !line_of(at, "fsync ", i ? "/." : dir))
      fail_msg("the name is not flushed:\n%s", log);
    free(log);
  }
  io_fault_free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tree_comes_back_with_its_names_bytes_modes_and_times),
      cmocka_unit_test(equal_trees_give_equal_archives_and_nothing_is_replaced),
      cmocka_unit_test(what_unpack_would_refuse_is_not_packed),
      cmocka_unit_test(a_limit_that_is_crossed_leaves_nothing),
      cmocka_unit_test(without_its_helper_it_says_which_one),
      IN_A_DIRECTORY(each_call_that_fails_leaves_all_or_nothing),
      cmocka_unit_test(what_a_killed_one_left_goes_and_what_somebody_works_on_stays),
      cmocka_unit_test(what_is_no_file_is_refused_and_a_dash_is_standard_input),
      IN_A_DIRECTORY(what_is_packed_or_unpacked_is_flushed_before_it_has_its_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
