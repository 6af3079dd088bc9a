#include "with_cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_dir.h"
#include "prims/fs.h"

/* Where the tests run: NULL is the temporary file system. */
static const char *place;

static int enter(void **unused) {
  fault_dir_enter(place);
  return 0;
}

/* What a walk saw: names with '|' behind each. */
typedef struct seen {
  char names[8192];
  int count, max_fds;
  const char *skip, *stop, *remove; /* what to do at this name */
} seen;

static int look(void *ctx, const fs_entry *entry, err *e) {
  seen *s = ctx;
  s->count++;
  int fds = s->max_fds < 0 ? -1 : count_fds();
  if (fds > s->max_fds) s->max_fds = fds;
  size_t len = strlen(s->names);
  if (len + strlen(entry->name) + 2 < sizeof s->names)
    snprintf(s->names + len, sizeof s->names - len, "%s|", entry->name);
  if (s->remove && strcmp(s->remove, entry->name) == 0) {
    unlink(in("t/y"));
    rmdir(in("t/z"));
  }
  if (s->stop && strcmp(s->stop, entry->name) == 0)
    return err_set(e, ERR_CONFLICT, "stopped at %s", entry->name);
  return s->skip && strcmp(s->skip, entry->name) == 0 ? FS_SKIP : 0;
}

static void make_tree(void) {
  make_dir(in("t"));
  make_dir(in("t/b"));
  make_dir(in("t/b/c"));
  write_file(in("t/b/c/f"), "deep");
  write_file(in("t/a"), "first");
  write_file(in("t/b.x"), "between");
  write_file(in("t/B"), "capital");
  assert_int_equal(symlink("b", in("t/link")), 0);
}

static void a_walk_sees_all_in_byte_order(void **unused) {
  seen s = {0};
  make_tree();
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  assert_string_equal(s.names, "B|a|b|b/c|b/c/f|b.x|link|");
}

static void odd_names_come_as_they_are(void **unused) {
  char name[256];
  memset(name, 'n', 255);
  name[255] = 0;
  make_dir(in("t"));
  const char *names[] = {"\n", " ", "-rf", "...", "\xff\xfe", "*", name};
  for (size_t i = 0; i < 7; i++) write_file(tmpdir_path(in("t"), names[i]), "x");
  seen s = {0};
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  char want[600];
  snprintf(want, sizeof want, "\n| |*|-rf|...|%s|\xff\xfe|", name);
  assert_string_equal(s.names, want);
  assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), false, NULL, NULL), 0);
  assert_int_equal(count_entries(in("copy")), 7);
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
  assert_false(path_exists(in("t")));
}

static void a_skipped_directory_is_not_entered(void **unused) {
  seen s = {.skip = "b"};
  make_tree();
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  assert_string_equal(s.names, "B|a|b|b.x|link|");
}

static void a_visitor_can_stop_the_walk_with_its_own_error(void **unused) {
  seen s = {.stop = "b/c"};
  err e = {0};
  make_tree();
  int fds = count_fds();
  assert_int_equal(fs_walk(io_, in("t"), look, &s, &e), ERR_CONFLICT);
  assert_string_equal(e.text, "stopped at b/c");
  assert_string_equal(s.names, "B|a|b|b/c|");
  assert_int_equal(count_fds(), fds);
}

static void a_listing_has_the_children_only(void **unused) {
  seen s = {0};
  make_tree();
  assert_int_equal(fs_list(io_, in("t"), look, &s, NULL), 0);
  assert_string_equal(s.names, "B|a|b|b.x|link|");
  assert_int_equal(io_fault_count(fault, CALL_OPEN), 1);
}

static bool has_dot_or_is_link(void *ctx, const char *name, unsigned char kind) {
  (void)ctx;
  return strchr(name, '.') || kind == DT_LNK;
}

static void a_listing_looks_at_nothing_that_is_not_wanted(void **unused) {
  seen s = {0};
  make_tree();
  int before = io_fault_count(fault, CALL_LSTAT);
  assert_int_equal(fs_list_some(io_, in("t"), has_dot_or_is_link, look, &s, NULL), 0);
  assert_string_equal(s.names, "b.x|link|");
  assert_int_equal(io_fault_count(fault, CALL_LSTAT) - before, 2);
}

static void what_vanishes_during_a_walk_is_left_out(void **unused) {
  make_dir(in("t"));
  write_file(in("t/x"), "x");
  write_file(in("t/y"), "x");
  make_dir(in("t/z"));
  seen s = {.remove = "x"};
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  assert_string_equal(s.names, "x|");
  s.remove = NULL;
  make_dir(in("t/z")); /* and one that vanishes between its visit and its opening */
  io_fault_once(fault, CALL_OPEN, 2, ENOENT);
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  assert_string_equal(s.names, "x|x|z|");
}

static void a_root_that_is_missing_or_no_directory_is_an_error(void **unused) {
  seen s = {0};
  err e = {0};
  make_tree();
  assert_int_equal(fs_walk(io_, in("none"), look, &s, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, in("none")));
  assert_int_equal(fs_walk(io_, in("t/a"), look, &s, NULL), ERR_INVAL);
  assert_int_equal(fs_walk(io_, in("t/link"), look, &s, NULL), ERR_INVAL);
  assert_int_equal(s.count, 0);
}

/* Makes t/d/d/d/..., `depth` directories below t. */
static void make_deep(int depth) {
  char path[4096];
  make_dir(in("t"));
  int len = snprintf(path, sizeof path, "%s", in("t"));
  for (int i = 0; i < depth; i++) {
    len += snprintf(path + len, sizeof path - (size_t)len, "/d");
    make_dir(path);
  }
}

static void depth_and_descriptors_are_bounded(void **unused) {
  make_deep(64);
  seen s = {0};
  int fds = count_fds();
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  assert_int_equal(s.count, 64);
  assert_true(s.max_fds <= fds + 65);
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
  make_deep(65);
  err e = {0};
  assert_int_equal(fs_walk(io_, in("t"), look, &s, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, "64"));
  assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), false, NULL, NULL), ERR_LIMIT);
  assert_false(path_exists(in("copy")));
  assert_int_equal(count_fds(), fds);
}

static void paths_longer_than_the_kernel_takes_are_an_error(void **unused) {
  char name[251];
  memset(name, 'n', 250);
  name[250] = 0;
  int at = open(dir, O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 20; i++) { /* 5,000 bytes: each step is relative */
    assert_int_equal(mkdirat(at, name, 0755), 0);
    int next = openat(at, name, O_RDONLY | O_DIRECTORY);
    close(at);
    at = next;
  }
  close(at);
  seen s = {.max_fds = -1};
  assert_int_equal(fs_walk(io_, dir, look, &s, NULL), ERR_LIMIT);
  int here = open(".", O_RDONLY | O_DIRECTORY); /* nftw could not remove this one either */
  assert_int_equal(chdir(dir), 0);
  for (int i = 0; i < 19; i++) assert_int_equal(chdir(name), 0);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(rmdir(name), 0);
    if (i < 19) assert_int_equal(chdir(".."), 0);
  }
  assert_int_equal(fchdir(here), 0);
  close(here);
}

static void a_listing_that_takes_many_calls_is_complete(void **unused) {
  make_dir(in("t"));
  for (int i = 0; i < 600; i++) {
    char name[256];
    snprintf(name, sizeof name, "t/%0200d", i);
    close(open(in(name), O_CREAT | O_WRONLY, 0600));
  }
  seen s = {.max_fds = -1};
  assert_int_equal(fs_walk(io_, in("t"), look, &s, NULL), 0);
  assert_int_equal(s.count, 600);
  assert_true(io_fault_count(fault, CALL_GETDENTS) > 2);
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
}

static ssize_t endless_getdents(const io *io, int fd, void *to, size_t len) {
  /* Records of 280 bytes: 8 inode, 8 offset, 2 length, 1 type, the name. */
  size_t at = 0;
  for (; len - at >= 280; at += 280) {
    char *record = (char *)to + at;
    uint16_t reclen = 280;
    memset(record, 'x', 280);
    memcpy(record + 16, &reclen, sizeof reclen);
    record[19 + 255] = 0;
  }
  return (ssize_t)at;
}
static ssize_t malformed_getdents(const io *io, int fd, void *to, size_t len) {
  memset(to, 0, 24); /* a length of 0 would be read for ever */
  return 24;
}

static void a_directory_without_end_and_a_malformed_one_are_errors(void **unused) {
  make_tree();
  io bad = *io_system();
  seen s = {0};
  err e = {0};
  bad.getdents = endless_getdents;
  assert_int_equal(fs_walk(&bad, in("t"), look, &s, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, in("t")));
  bad.getdents = malformed_getdents;
  assert_int_equal(fs_walk(&bad, in("t"), look, &s, NULL), ERR_IO);
  assert_int_equal(s.count, 0);
}

static const char *line(const char *verb, const char *name) {
  static char lines[4][4200];
  static unsigned next;
  char *text = lines[next++ % 4];
  snprintf(text, sizeof lines[0], "%s %s", verb, in(name));
  return text;
}

static void a_tree_is_flushed_from_below(void **unused) {
  make_tree();
  assert_int_equal(fs_sync_tree(io_, in("t"), NULL), 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 3);
  int deep = io_fault_find(fault, 0, line("fsync", "t/b/c"));
  int middle = io_fault_find(fault, deep + 1, line("fsync", "t/b"));
  int top = io_fault_find(fault, middle + 1, line("fsync", "t"));
  assert_true(deep >= 0 && middle > deep && top > middle);
  for (long n = 1; n <= 3; n++) {
    io_fault_once(fault, CALL_FSYNC, n, EIO);
    assert_int_equal(fs_sync_tree(io_, in("t"), NULL), ERR_IO);
  }
}

/* --- removing --- */

static void removing_takes_links_and_not_their_targets(void **unused) {
  make_tree();
  make_dir(in("outside"));
  write_file(in("outside/f"), "safe");
  assert_int_equal(symlink("../outside", in("t/out")), 0);
  assert_int_equal(symlink(in("outside/f"), in("t/b/out")), 0);
  assert_int_equal(symlink("outside", in("link")), 0);
  assert_int_equal(mkfifo(in("t/fifo"), 0600), 0);
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
  assert_int_equal(fs_remove_tree(io_, in("link"), NULL), 0);
  assert_false(path_exists(in("t")));
  assert_false(path_exists(in("link")));
  assert_true(file_is(in("outside/f"), "safe"));
}

/* An io that swaps the directory t/b for a link to the outside, just when it has been looked at. */
static int swapping_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  int rc = io_system()->lstat(io_system(), dirfd, path, out);
  if (strcmp(path, "b") == 0 && S_ISDIR(out->st_mode)) {
    rename(in("t/b"), in("moved"));
    assert_int_equal(symlink(in("outside"), in("t/b")), 0);
  }
  return rc;
}

static void a_directory_swapped_for_a_link_leads_nowhere(void **unused) {
  make_tree();
  make_dir(in("outside"));
  write_file(in("outside/f"), "safe");
  io evil = *io_system();
  evil.lstat = swapping_lstat;
  assert_int_equal(fs_remove_tree(&evil, in("t"), NULL), ERR_CONFLICT);
  assert_true(file_is(in("outside/f"), "safe"));
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0); /* the next try takes the link */
  assert_true(file_is(in("outside/f"), "safe"));
}

static void removing_what_is_not_there_is_done(void **unused) {
  assert_int_equal(fs_remove_tree(io_, in("none"), NULL), 0);
  write_file(in("f"), "x");
  assert_int_equal(fs_remove_tree(io_, in("f"), NULL), 0);
  assert_false(path_exists(in("f")));
}

static void roots_and_dots_are_never_removed(void **unused) {
  make_tree();
  static const char *const refused[] = {"",   "/",   "//",  ".",    "..",
                                        "./", "../", "t/.", "t/..", "t/./"};
  int here = open(".", O_RDONLY | O_DIRECTORY);
  assert_int_equal(chdir(dir), 0);
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    io_fault_set(fault, (io_fault_plan){0});
    assert_int_equal(fs_remove_tree(io_, refused[i], NULL), ERR_INVAL);
    assert_int_equal(io_fault_count(fault, CALL_ANY), 0);
  }
  assert_int_equal(fs_remove_tree(io_, "t/", NULL), 0);
  assert_int_equal(fchdir(here), 0);
  close(here);
  assert_false(path_exists(in("t")));
  make_dir(in("...")); /* three dots are a name */
  assert_int_equal(fs_remove_tree(io_, in("..."), NULL), 0);
}

static void read_only_directories_are_removed(void **unused) {
  /* Means little as root, who may write everywhere. */
  make_tree();
  assert_int_equal(chmod(in("t/b/c"), 0555), 0);
  assert_int_equal(chmod(in("t/b"), 0444), 0);
  assert_int_equal(chmod(in("t"), 0555), 0);
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
  assert_false(path_exists(in("t")));
}

static void a_directory_that_fills_up_again_is_a_conflict(void **unused) {
  make_tree();
  err e = {0};
  io_fault_once(fault, CALL_UNLINK, 3,
                ENOENT); /* the second file of t: said to be gone, still there */
  assert_int_equal(fs_remove_tree(io_, in("t"), &e), ERR_CONFLICT);
  assert_int_equal(e.code, ERR_CONFLICT);
  assert_int_equal(err_class_of(e.code), ERR_CLASS_RETRYABLE);
  assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
}

static void a_mount_inside_a_tree_is_not_touched(void **unused) {
  make_tree();
  pid_t pid = fork();
  if (pid == 0) { /* a mount namespace of its own, which ends with it */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") != 0 ||
        mount("none", in("t/b/c"), "tmpfs", 0, "") != 0)
      _exit(77);
    write_file(in("t/b/c/theirs"), "safe");
    int rc = fs_remove_tree(io_system(), in("t"), NULL);
    _exit(rc == ERR_INVAL && file_is(in("t/b/c/theirs"), "safe") ? 0 : 1);
  }
  int status;
  waitpid(pid, &status, 0);
  if (WEXITSTATUS(status) == 77) {
    print_message("mounting needs root\n");
    skip();
  }
  assert_int_equal(status, 0);
}

static void any_failing_call_of_a_removal_is_an_error_and_the_next_try_ends_it(void **unused) {
  static const io_fault_plan plans[] = {
      {.errnum = EIO},
      {.errnum = EACCES, .for_good = true},
      {.errnum = ESTALE},
      {.errnum = EIO, .done = true},
  };
  int fds = count_fds();
  for (int p = 0; p < 4; p++)
    for (long nth = 1;; nth++) {
      make_tree();
      io_fault_plan plan = plans[p];
      plan.nth = nth;
      io_fault_set(fault, plan);
      err e = {0};
      int rc = fs_remove_tree(io_, in("t"), &e);
      bool failed = io_fault_failed(fault, CALL_ANY) > 0;
      io_fault_set(fault, (io_fault_plan){0});
      assert_int_equal(count_fds(), fds);
      assert_true(rc == 0 || (failed && e.code == rc && *e.text));
      if (rc == 0) assert_false(path_exists(in("t")));
      assert_int_equal(fs_remove_tree(io_, in("t"), NULL), 0);
      assert_false(path_exists(in("t")));
      if (!failed) break;
      assert_true(nth < 1000);
    }
}

/* --- copying --- */

static void set_times(const char *path, time_t seconds) {
  const struct timespec times[2] = {{1, 1}, {seconds, 123456789}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void assert_same_stat(const char *a, const char *b) {
  struct stat x, y;
  assert_int_equal(lstat(a, &x), 0);
  assert_int_equal(lstat(b, &y), 0);
  assert_int_equal(x.st_mode, y.st_mode);
  assert_int_equal(x.st_mtim.tv_sec, y.st_mtim.tv_sec);
  assert_int_equal(x.st_mtim.tv_nsec, y.st_mtim.tv_nsec);
}

static const char *const parts[] = {"", "/B", "/a", "/b", "/b.x", "/link", "/b/c", "/b/c/f"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static bool copy_is_whole(void) {
  for (int i = 0; i < PARTS; i++)
    if (!path_exists(tmpdir_path(in("copy"), parts[i]))) return false;
  return files_equal(in("t/b/c/f"), in("copy/b/c/f")) && count_entries(in("copy")) == 5;
}

static void a_copied_tree_is_equal_with_modes_and_times(void **unused) {
  make_tree();
  assert_int_equal(chmod(in("t/b/c/f"), 0400), 0);
  assert_int_equal(chmod(in("t/a"), 0755), 0);
  assert_int_equal(chmod(in("t/b/c"), 0555), 0);
  assert_int_equal(chmod(in("t"), 0500), 0);
  for (int i = PARTS - 1; i >= 0; i--) set_times(tmpdir_path(in("t"), parts[i]), 1000 + i);
  assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), true, NULL, NULL), 0);
  assert_true(copy_is_whole());
  for (int i = 0; i < PARTS; i++)
    assert_same_stat(tmpdir_path(in("t"), parts[i]), tmpdir_path(in("copy"), parts[i]));
  char target[8] = {0};
  assert_int_equal(readlink(in("copy/link"), target, sizeof target), 1);
  assert_string_equal(target, "b");
}

static void a_flushed_copy_flushes_files_then_their_directories(void **unused) {
  make_tree();
  assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), true, NULL, NULL), 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 4 + 3);
  int file = io_fault_find(fault, 0, line("fsync", "copy/b/c/f"));
  int deep = io_fault_find(fault, file + 1, line("fsync", "copy/b/c"));
  int middle = io_fault_find(fault, deep + 1, line("fsync", "copy/b"));
  assert_true(file >= 0 && deep > file && middle > deep);
  assert_true(io_fault_find(fault, middle + 1, line("utimens", "copy")) >= 0);
  io_fault_set(fault, (io_fault_plan){0});
  assert_int_equal(fs_copy_tree(io_, in("t"), in("loose"), false, NULL, NULL), 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 0);
}

static void a_copied_tree_never_replaces_anything(void **unused) {
  make_tree();
  make_dir(in("taken"));
  write_file(in("taken/f"), "old");
  write_file(in("file"), "old");
  assert_int_equal(fs_copy_tree(io_, in("t"), in("taken"), false, NULL, NULL), ERR_EXISTS);
  assert_int_equal(fs_copy_tree(io_, in("t"), in("file"), false, NULL, NULL), ERR_EXISTS);
  assert_true(file_is(in("taken/f"), "old"));
  assert_true(file_is(in("file"), "old"));
  assert_int_equal(fs_copy_tree(io_, in("none"), in("copy"), false, NULL, NULL), ERR_NOENT);
}

static void single_files_and_links_are_copied_too(void **unused) {
  make_tree();
  assert_int_equal(fs_copy_tree(io_, in("t/a"), in("a"), true, NULL, NULL), 0);
  assert_true(file_is(in("a"), "first"));
  assert_int_equal(fs_copy_tree(io_, in("t/link"), in("link"), true, NULL, NULL), 0);
  assert_same_stat(in("t/link"), in("link"));
}

static void a_pipe_in_a_tree_is_refused_and_nothing_stays(void **unused) {
  make_tree();
  assert_int_equal(mkfifo(in("t/b/pipe"), 0600), 0);
  err e = {0};
  assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), false, NULL, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "t/b/pipe"));
  assert_false(path_exists(in("copy")));
}

static void a_part_that_vanishes_makes_the_copy_fail(void **unused) {
  make_tree();
  static const io_call kinds[] = {CALL_LSTAT, CALL_OPEN};
  for (int k = 0; k < 2; k++) {
    err e = {0};
    io_fault_once(fault, kinds[k], 2, ENOENT);
    assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), false, NULL, &e), ERR_RETIRED);
    assert_int_equal(e.code, ERR_RETIRED);
    assert_false(path_exists(in("copy")));
  }
}

static void a_cancelled_copy_of_a_tree_leaves_nothing(void **unused) {
  atomic_int stop = 1;
  make_tree();
  assert_int_equal(fs_copy_tree(io_, in("t"), in("copy"), false, &stop, NULL), ERR_CANCELED);
  assert_false(path_exists(in("copy")));
}

static void any_failing_call_of_a_copy_gives_an_error_or_the_whole_and_no_litter(void **unused) {
  static const io_fault_plan plans[] = {
      {.errnum = EIO},
      {.errnum = ENOSPC},
      {.errnum = ENOSPC, .for_good = true},
      {.errnum = EIO, .done = true},
  };
  int fds = count_fds();
  make_tree();
  for (int p = 0; p < 4; p++)
    for (long nth = 1;; nth++) {
      io_fault_plan plan = plans[p];
      plan.nth = nth;
      io_fault_set(fault, plan);
      err e = {0};
      int rc = fs_copy_tree(io_, in("t"), in("copy"), true, NULL, &e);
      bool failed = io_fault_failed(fault, CALL_ANY) > 0;
      /* A disk that is dead for good, or a first mkdir whose reply was lost: it may not be ours. */
      bool may_stay = plan.for_good || (plan.done && io_fault_failed(fault, CALL_MKDIR) > 0);
      io_fault_set(fault, (io_fault_plan){0});
      assert_int_equal(count_fds(), fds);
      assert_true(rc == 0 || (failed && e.code == rc && *e.text));
      if (rc == 0) assert_true(copy_is_whole());
      if (rc < 0 && !may_stay) assert_false(path_exists(in("copy")));
      assert_int_equal(fs_remove_tree(io_, in("copy"), NULL), 0);
      if (!failed) break;
      assert_true(nth < 1000);
    }
  assert_int_equal(count_entries(dir), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, fault_dir_leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_walk_sees_all_in_byte_order),
      TEST(odd_names_come_as_they_are),
      TEST(a_skipped_directory_is_not_entered),
      TEST(a_visitor_can_stop_the_walk_with_its_own_error),
      TEST(a_listing_has_the_children_only),
      TEST(a_listing_looks_at_nothing_that_is_not_wanted),
      TEST(what_vanishes_during_a_walk_is_left_out),
      TEST(a_root_that_is_missing_or_no_directory_is_an_error),
      TEST(depth_and_descriptors_are_bounded),
      TEST(paths_longer_than_the_kernel_takes_are_an_error),
      TEST(a_listing_that_takes_many_calls_is_complete),
      TEST(a_directory_without_end_and_a_malformed_one_are_errors),
      TEST(a_tree_is_flushed_from_below),
      TEST(removing_takes_links_and_not_their_targets),
      TEST(a_directory_swapped_for_a_link_leads_nowhere),
      TEST(removing_what_is_not_there_is_done),
      TEST(roots_and_dots_are_never_removed),
      TEST(read_only_directories_are_removed),
      TEST(a_directory_that_fills_up_again_is_a_conflict),
      TEST(a_mount_inside_a_tree_is_not_touched),
      TEST(any_failing_call_of_a_removal_is_an_error_and_the_next_try_ends_it),
      TEST(a_copied_tree_is_equal_with_modes_and_times),
      TEST(a_flushed_copy_flushes_files_then_their_directories),
      TEST(a_copied_tree_never_replaces_anything),
      TEST(single_files_and_links_are_copied_too),
      TEST(a_pipe_in_a_tree_is_refused_and_nothing_stays),
      TEST(a_part_that_vanishes_makes_the_copy_fail),
      TEST(a_cancelled_copy_of_a_tree_leaves_nothing),
      TEST(any_failing_call_of_a_copy_gives_an_error_or_the_whole_and_no_litter),
  };
  int failed = cmocka_run_group_tests_name("temporary directory", tests, NULL, NULL);
  place = "/dev/shm";
  if (access(place, W_OK) == 0) failed += cmocka_run_group_tests_name("tmpfs", tests, NULL, NULL);
  return failed;
}
