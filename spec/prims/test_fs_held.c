#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prims/fs.h"
#include "prims/fs_held.h"
#include "tmpdir.h"

/* in/ is held. in/d and in/d/f are there; in/out leads to out/, and in/far to out/f. */
typedef struct place {
  char *top;
  fs_held *held;
  const io *io;
  io inner;
} place;

static int refuse(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  return -ENOSYS;
}

static const char *in(const place *p, const char *name) {
  static char at[8][4096];
  static int turn;
  char *out = at[turn++ % 8];
  snprintf(out, 4096, "%s/%s", p->top, name);
  return out;
}

static place open_place(bool by_kernel) {
  place p = {.top = tmpdir_new(), .inner = *io_system()};
  if (!by_kernel) p.inner.open_beneath = refuse;
  make_dir(in(&p, "in"));
  make_dir(in(&p, "in/d"));
  make_dir(in(&p, "out"));
  write_file(in(&p, "in/d/f"), "x");
  write_file(in(&p, "out/f"), "secret");
  if (symlink("../out", in(&p, "in/out")) < 0 || symlink("../out/f", in(&p, "in/far")) < 0) abort();
  return p;
}

/* The inner io does not move any more from here on. */
static void hold(place *p) {
  assert_int_equal(fs_held_new(&p->inner, &p->held, NULL), 0);
  assert_int_equal(fs_hold(p->held, in(p, "in"), NULL), 0);
  p->io = fs_held_io(p->held);
}

static void close_place(place *p) {
  fs_held_free(p->held);
  tmpdir_remove(p->top);
}

static bool in_the_way(int rc) {
  return rc == -ELOOP || rc == -ENOTDIR;
}

static void nothing_goes_through_a_link(bool by_kernel) {
  place p = open_place(by_kernel);
  const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  struct stat before, after, st;
  char text[10];
  int fds = count_fds();
  hold(&p);
  const io *io = p.io;
  assert_int_equal(stat(in(&p, "out/f"), &before), 0);
  static const char *const ways[] = {"in/out/new", "in/./out/new", "in//out/new", "in/far/new"};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const char *to = in(&p, ways[i]);
    assert_true(in_the_way(io->open(io, AT_FDCWD, to, O_WRONLY | O_CREAT, 0600)));
    assert_true(in_the_way(io->mkdir(io, AT_FDCWD, to, 0700)));
    assert_true(in_the_way(io->symlink(io, "x", AT_FDCWD, to)));
    assert_true(in_the_way(io->rename(io, AT_FDCWD, in(&p, "in/d/f"), AT_FDCWD, to, 0)));
    assert_true(in_the_way(io->link(io, AT_FDCWD, in(&p, "in/d/f"), AT_FDCWD, to)));
    assert_true(in_the_way(io->lstat(io, AT_FDCWD, to, &st)));
    assert_true(in_the_way(io->utimens(io, AT_FDCWD, to, times, 0)));
  }
  assert_true(in_the_way(io->unlink(io, AT_FDCWD, in(&p, "in/out/f"), 0)));
  assert_true(
      in_the_way(io->rename(io, AT_FDCWD, in(&p, "in/out/f"), AT_FDCWD, in(&p, "in/taken"), 0)));
  /* The last component is a link: it is itself what is meant, and never what it leads to. */
  assert_true(in_the_way(io->open(io, AT_FDCWD, in(&p, "in/far"), O_WRONLY | O_TRUNC, 0)));
  assert_true(in_the_way(io->open(io, AT_FDCWD, in(&p, "in/far"), O_PATH, 0)));
  assert_true(in_the_way(io->open(io, AT_FDCWD, in(&p, "in/out"), O_RDONLY | O_DIRECTORY, 0)));
  assert_int_equal(io->utimens(io, AT_FDCWD, in(&p, "in/far"), times, 0), 0);
  assert_int_equal(io->readlink(io, AT_FDCWD, in(&p, "in/far"), text, sizeof text), 8);
  assert_int_equal(io->unlink(io, AT_FDCWD, in(&p, "in/far"), 0), 0);
  assert_int_equal(stat(in(&p, "out/f"), &after), 0);
  assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
  assert_int_equal(after.st_nlink, 1);
  assert_int_equal(count_entries(in(&p, "out")), 1);
  fs_held_free(p.held);
  p.held = NULL;
  assert_int_equal(count_fds(), fds);
  close_place(&p);
}

static void no_call_goes_through_a_link_with_openat2(void **unused) {
  nothing_goes_through_a_link(true);
}

static void no_call_goes_through_a_link_without_it(void **unused) {
  nothing_goes_through_a_link(false);
}

static void nothing_goes_up(void **unused) {
  for (int by_kernel = 0; by_kernel < 2; by_kernel++) {
    place p = open_place(by_kernel);
    hold(&p);
    const io *io = p.io;
    assert_int_equal(io->mkdir(io, AT_FDCWD, in(&p, "in/../out/new"), 0700), -EXDEV);
    assert_int_equal(io->mkdir(io, AT_FDCWD, in(&p, "in/d/../../out/new"), 0700), -EXDEV);
    assert_int_equal(io->open(io, AT_FDCWD, in(&p, "in/.."), O_RDONLY, 0), -EXDEV);
    assert_int_equal(count_entries(in(&p, "out")), 1);
    close_place(&p);
  }
}

static void what_is_held_stays_what_it_was(void **unused) {
  for (int by_kernel = 0; by_kernel < 2; by_kernel++) {
    place p = open_place(by_kernel);
    hold(&p);
    const io *io = p.io;
    /* Its owner moves it away and puts a link in its place. */
    assert_int_equal(rename(in(&p, "in"), in(&p, "was")), 0);
    assert_int_equal(symlink("out", in(&p, "in")), 0);
    assert_int_equal(fs_write_new(io, in(&p, "in/a"), "1", 1, 0600, NULL), 0);
    assert_int_equal(fs_mkdirs(io, in(&p, "in/d/e/f"), 0700, NULL), 0);
    assert_int_equal(fs_move(io, in(&p, "in/d/f"), in(&p, "in/d/e/g"), NULL), 0);
    assert_int_equal(fs_remove_tree(io, in(&p, "in/d/e/f"), NULL), 0);
    assert_true(path_exists(in(&p, "was/a")));
    assert_true(path_exists(in(&p, "was/d/e/g")));
    assert_int_equal(count_entries(in(&p, "was/d/e")), 1);
    assert_int_equal(count_entries(in(&p, "out")), 1);
    close_place(&p);
  }
}

static void a_directory_by_name_may_come_and_go(void **unused) {
  for (int by_kernel = 0; by_kernel < 2; by_kernel++) {
    place p = open_place(by_kernel);
    assert_int_equal(fs_held_new(&p.inner, &p.held, NULL), 0);
    assert_int_equal(fs_hold_by_name(p.held, in(&p, "late"), NULL), 0);
    p.io = fs_held_io(p.held);
    assert_int_equal(p.io->open(p.io, AT_FDCWD, in(&p, "late/x"), O_RDONLY, 0), -ENOENT);
    assert_int_equal(fs_mkdirs(p.io, in(&p, "late/d"), 0700, NULL), 0);
    assert_int_equal(symlink("../out", in(&p, "late/out")), 0);
    assert_int_equal(p.io->mkdir(p.io, AT_FDCWD, in(&p, "late/d/e"), 0700), 0);
    assert_true(in_the_way(p.io->mkdir(p.io, AT_FDCWD, in(&p, "late/out/e"), 0700)));
    assert_int_equal(count_entries(in(&p, "out")), 1);
    close_place(&p);
  }
}

/* Between the mkdir and the open: who owns the directory above puts something else there. */
static const place *racing;
static int what;
static int open_after_the_swap(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  const place *p = racing;
  if (p && flags & O_DIRECTORY && strstr(path, "stage")) {
    racing = NULL;
    if (rename(in(p, "in/stage"), in(p, "in/away")) < 0) abort();
    if (what == 0 && symlink("../out", in(p, "in/stage")) < 0) abort();
    if (what == 1 && mkdir(in(p, "in/stage"), 0777) < 0) abort();
    if (what == 1 && chmod(in(p, "in/stage"), 0777) < 0) abort();
    if (what == 2 && rename(in(p, "in/d"), in(p, "in/stage")) < 0) abort();
    if (what == 2 && chmod(in(p, "in/stage"), 0700) < 0) abort();
  }
  return io_system()->open(io, dirfd, path, flags, mode);
}

static void a_new_directory_is_the_one_that_was_made(void **unused) {
  for (what = 0; what < 4; what++) {
    place p = open_place(false);
    err e = {0};
    p.inner.open = open_after_the_swap;
    hold(&p);
    racing = what < 3 ? &p : NULL;
    int rc = fs_hold_new(p.held, in(&p, "in/stage"), &e);
    if (what == 3 && rc < 0) fail_msg("%s", e.text);
    if (what < 3 && rc == 0) fail_msg("%d: held", what);
    if (what == 3) assert_int_equal(fs_hold_new(p.held, in(&p, "in/stage"), &e), ERR_EXISTS);
    if (what == 2) assert_true(path_exists(in(&p, "in/stage/f"))); /* nobody's data goes */
    close_place(&p);
  }
}

/* ---- root in the directories of others ---- */

static void root_follows_no_link_that_somebody_else_made(void **unused) {
  if (geteuid() != 0) skip(); /* others may not write there anyway */
  place p = open_place(true);
  err e = {0};
  hold(&p);
  assert_int_equal(symlink("out", in(&p, "theirs")), 0);
  assert_int_equal(lchown(in(&p, "theirs"), 1234, 1234), 0);
  assert_int_equal(symlink("in", in(&p, "ours")), 0);
  assert_int_equal(symlink("theirs/down", in(&p, "chain")), 0);
  assert_int_equal(symlink(in(&p, "in"), in(&p, "far")), 0);
  assert_int_equal(symlink("round", in(&p, "round")), 0);
  make_dir(in(&p, "out/down"));
  assert_int_equal(fs_hold(p.held, in(&p, "theirs"), &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "user 1234"));
  assert_int_equal(fs_hold(p.held, in(&p, "theirs/down"), NULL), ERR_ACCESS);
  assert_int_equal(fs_hold(p.held, in(&p, "chain"), NULL), ERR_ACCESS);
  assert_int_equal(fs_check_way(&p.inner, in(&p, "theirs/new/deep"), NULL), ERR_ACCESS);
  assert_int_equal(fs_check_way(&p.inner, in(&p, "in/new/deep"), NULL), 0);
  assert_true(fs_hold(p.held, in(&p, "round"), NULL) < 0);
  assert_int_equal(fs_hold(p.held, in(&p, "ours/d/../d/."), NULL), 0);
  assert_int_equal(fs_hold(p.held, in(&p, "far/d"), NULL), 0);
  assert_int_equal(fs_hold(p.held, in(&p, "in/none"), NULL), ERR_NOENT);
  close_place(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_call_goes_through_a_link_with_openat2),
      cmocka_unit_test(no_call_goes_through_a_link_without_it),
      cmocka_unit_test(nothing_goes_up),
      cmocka_unit_test(what_is_held_stays_what_it_was),
      cmocka_unit_test(a_directory_by_name_may_come_and_go),
      cmocka_unit_test(a_new_directory_is_the_one_that_was_made),
      cmocka_unit_test(root_follows_no_link_that_somebody_else_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
