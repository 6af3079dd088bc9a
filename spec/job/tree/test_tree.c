#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit/manifest/manifest_thin.h"
#include "job/tree/tree.h"
#include "job/tree/tree_stage.h"
#include "prims/fs.h"
#include "fault_dir.h"

static atomic_int cancel;
static _Atomic uint64_t done, total;
static log_sink quiet;

static int enter(void **unused) {
  fault_dir_enter(fault_dir_memory());
  cancel = 0;
  make_dir(in("src"));
  make_dir(in("src/sub"));
  make_dir(in("src/sub/empty"));
  write_file(in("src/a"), "aaaa");
  write_file(in("src/sub/b"), "bb");
  if (symlink("a", in("src/link")) != 0) abort();
  return 0;
}

static tree_job with(const io *io) {
  return (tree_job){.io = io, .log = &quiet, .cancel = &cancel, .done = &done, .total = &total};
}

static int up_with(const io *io) {
  tree_job p = with(io);
  tree_moved moved = {0};
  err e = {0};
  return tree_upload(&p, in("src"), in("there"), &moved, &e);
}

static int down_with(const io *io, const char *to, bool merge, err *e) {
  tree_job p = with(io);
  tree_moved moved = {0};
  p.merge = merge;
  return tree_download(&p, in("there"), to, &moved, e);
}

static void must_be_whole(const char *at) {
  char target[16] = "";
  assert_true(file_is(tmpdir_path(at, "a"), "aaaa"));
  assert_true(file_is(tmpdir_path(at, "sub/b"), "bb"));
  assert_true(path_exists(tmpdir_path(at, "sub/empty")));
  assert_int_equal(readlink(tmpdir_path(at, "link"), target, sizeof target - 1), 1);
  assert_string_equal(target, "a");
}

static void download_must_be_whole(const char *name) {
  err e = {0};
  const char *to = in(name);
  if (down_with(io_unflushed(), to, false, &e) < 0) fail_msg("%s", e.text);
  must_be_whole(to);
}

/* ---- whatever fails ---- */

static bool has_record(void) {
  return path_exists(in("there/" MANIFEST_NAME));
}

static void an_upload_that_fails_anywhere_leaves_no_record_or_a_true_one(void **unused) {
  long failed = 1, tries = 0;
  for (long n = 1; failed > 0; n++, tries++) {
    write_file(in("src/a"), n % 2 ? "aaaa" : "AAAA");
    io_fault_once(fault, CALL_ANY, n, EIO);
    int rc = up_with(io_fault_io(fault));
    failed = io_fault_failed(fault, CALL_ANY);
    if (rc == 0) assert_true(has_record());
    if (has_record()) {
      err e = {0};
      if (down_with(io_unflushed(), in("to"), false, &e) < 0) fail_msg("%ld: %s", n, e.text);
      if (rc == 0) assert_true(file_is(in("to/a"), n % 2 ? "aaaa" : "AAAA"));
      tmpdir_remove(strdup(in("to")));
    }
  }
  assert_true(tries > 50);
  write_file(in("src/a"), "aaaa");
  assert_int_equal(up_with(io_unflushed()), 0);
  download_must_be_whole("last");
}

/* The files that are there already are written down before anything else happens. */
static void an_upload_that_was_cut_sends_only_what_is_missing(void **unused) {
  tree_job p = with(io_unflushed());
  for (long n = 1, failed = 1; failed > 0; n += 3) {
    tree_moved moved = {0};
    write_file(in("src/a"), "aaaa");
    assert_int_equal(up_with(io_unflushed()), 0);
    write_file(in("src/a"), "other");
    io_fault_once(fault, CALL_ANY, n, EIO);
    up_with(io_fault_io(fault));
    failed = io_fault_failed(fault, CALL_ANY);
    err e = {0};
    if (tree_upload(&p, in("src"), in("there"), &moved, &e) < 0) fail_msg("%s", e.text);
    assert_true(moved.files <= 1);
    assert_false(path_exists(in("there/" TREE_PART_NAME)));
  }
}

static void a_place_that_an_upload_was_cut_to_is_not_taken_for_whole(void **unused) {
  bool cut = false;
  for (long n = 1, failed = 1; failed > 0; n++) {
    err e = {0};
    if (path_exists(in("there"))) tmpdir_remove(strdup(in("there")));
    io_fault_once(fault, CALL_ANY, n, EIO);
    up_with(io_fault_io(fault));
    failed = io_fault_failed(fault, CALL_ANY);
    int rc = down_with(io_unflushed(), in("to"), false, &e);
    if (rc == 0) must_be_whole(in("to"));
    if (rc < 0) assert_true(rc == ERR_NOENT || rc == ERR_CONFLICT);
    cut |= rc == ERR_CONFLICT;
    if (rc == 0) tmpdir_remove(strdup(in("to")));
  }
  assert_true(cut);
}

/* A checkpoint's directory in a target is such a place. */
static void what_was_taken_of_a_checkpoint_is_not_missed(void **unused) {
  manifest m;
  names globs = {0};
  buf text, note;
  err e = {0};
  assert_int_equal(up_with(io_unflushed()), 0);
  buf_init(&text, 1 << 20);
  buf_init(&note, MANIFEST_THIN_BYTES_MAX);
  assert_int_equal(fs_read(io_system(), in("there/" MANIFEST_NAME), 1 << 20, &text, NULL), 0);
  assert_int_equal(manifest_parse(text.data, text.len, "it", &m, NULL), 0);
  assert_true(names_add(&globs, "b"));
  assert_int_equal(manifest_thin_print(&m, &globs, 2, &note, NULL), 0);
  assert_int_equal(unlink(in("there/sub/b")), 0);
  assert_true(down_with(io_unflushed(), in("to"), false, &e) < 0);
  write_file(in("there/" MANIFEST_THIN_NAME), note.data);
  if (down_with(io_unflushed(), in("to"), false, &e) < 0) fail_msg("%s", e.text);
  assert_true(file_is(in("to/a"), "aaaa"));
  assert_false(path_exists(in("to/sub/b")));
  assert_false(path_exists(in("to/" MANIFEST_THIN_NAME)));
  buf_free(&text);
  buf_free(&note);
  names_free(&globs);
  manifest_free(&m);
}

static void a_place_that_is_half_removed_is_not_taken_for_whole(void **unused) {
  bool cut = false;
  tree_job p = with(io_fault_io(fault));
  for (long n = 1, failed = 1; failed > 0; n++) {
    err e = {0};
    assert_int_equal(up_with(io_unflushed()), 0);
    io_fault_once(fault, CALL_ANY, n, EIO);
    tree_delete(&p, in("there"), &e);
    failed = io_fault_failed(fault, CALL_ANY);
    int rc = down_with(io_unflushed(), in("to"), false, &e);
    if (rc == 0) must_be_whole(in("to"));
    if (rc < 0) assert_true(rc == ERR_NOENT || rc == ERR_CONFLICT);
    cut |= rc == ERR_CONFLICT;
    if (rc == 0) tmpdir_remove(strdup(in("to")));
  }
  assert_true(cut);
  assert_false(path_exists(in("there")));
}

/* ---- places within a place ---- */

static int up_sub(void) {
  tree_job p = with(io_unflushed());
  tree_moved moved = {0};
  char to[400];
  snprintf(to, sizeof to, "%s/sub", in("there"));
  return tree_upload(&p, in("src/sub"), to, &moved, NULL);
}

/* The record of a place within says nothing of them: only the one of the whole can. */
static void links_directories_and_modes_below_a_place_within_are_kept(void **unused) {
  char target[16] = "";
  struct stat st;
  assert_int_equal(up_sub(), 0);
  assert_int_equal(up_with(io_unflushed()), 0);
  if (symlink("b", in("src/sub/new")) != 0) abort();
  make_dir(in("src/sub/bare"));
  if (chmod(in("src/sub/b"), 0600) != 0) abort();
  assert_int_equal(up_with(io_unflushed()), 0);
  download_must_be_whole("to");
  assert_int_equal(readlink(in("to/sub/new"), target, sizeof target), 1);
  assert_true(path_exists(in("to/sub/bare")));
  assert_int_equal(stat(in("to/sub/b"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
}

/* Where the record of the whole is, all is there, whatever failed a moment later. */
static void a_place_whose_parts_were_joined_is_whole_or_says_that_it_is_not(void **unused) {
  for (long n = 1, failed = 1; failed > 0; n++) {
    err e = {0};
    if (path_exists(in("there"))) tmpdir_remove(strdup(in("there")));
    assert_int_equal(up_sub(), 0);
    write_file(in("src/sub/b"), "BB");
    io_fault_once(fault, CALL_ANY, n, EIO);
    up_with(io_fault_io(fault));
    failed = io_fault_failed(fault, CALL_ANY);
    bool has = has_record();
    int rc = down_with(io_unflushed(), in("to"), false, &e);
    if (has) assert_int_equal(rc, 0);
    if (has) assert_true(file_is(in("to/sub/b"), "BB"));
    if (rc == 0) tmpdir_remove(strdup(in("to")));
    write_file(in("src/sub/b"), "bb");
  }
}

/* Only the removal of what is half done may fail and leave it; who comes next does it. */
static void nothing_may_be_left(const char *parent) {
  err e = {0};
  char to[400];
  snprintf(to, sizeof to, "%s/to", parent);
  if (down_with(io_unflushed(), to, false, &e) < 0) fail_msg("%s", e.text);
  must_be_whole(to);
  assert_int_equal(count_entries(parent), 1);
}

static void a_download_that_fails_anywhere_shows_nothing(void **unused) {
  long failed = 1, tries = 0;
  char to[400];
  assert_int_equal(up_with(io_unflushed()), 0);
  for (long n = 1; failed > 0; n++, tries++) {
    char *parent = strdup(in("down"));
    make_dir(parent);
    snprintf(to, sizeof to, "%s/to", parent);
    io_fault_once(fault, CALL_ANY, n, EIO);
    err e = {0};
    int rc = down_with(io_fault_io(fault), to, false, &e);
    failed = io_fault_failed(fault, CALL_ANY);
    if (path_exists(to)) {
      must_be_whole(to); /* the last flush may have failed: it is there then, whole */
      if (rc == 0) assert_int_equal(count_entries(parent), 1);
    } else {
      assert_true(rc < 0);
      assert_true(e.text[0] != 0);
      nothing_may_be_left(parent);
    }
    tmpdir_remove(parent);
  }
  assert_true(tries > 50);
}

static void a_merge_that_fails_anywhere_leaves_each_file_old_or_new(void **unused) {
  long failed = 1;
  assert_int_equal(up_with(io_unflushed()), 0);
  for (long n = 1; failed > 0; n++) {
    char *to = strdup(in("to"));
    make_dir(to);
    write_file(tmpdir_path(to, "a"), "old");
    write_file(tmpdir_path(to, "mine"), "mine");
    io_fault_once(fault, CALL_ANY, n, EIO);
    int rc = down_with(io_fault_io(fault), to, true, NULL);
    failed = io_fault_failed(fault, CALL_ANY);
    bool is_old = file_is(tmpdir_path(to, "a"), "old");
    assert_true(is_old || file_is(tmpdir_path(to, "a"), "aaaa"));
    assert_true(file_is(tmpdir_path(to, "mine"), "mine"));
    if (rc == 0) assert_false(is_old);
    assert_int_equal(down_with(io_unflushed(), to, true, NULL), 0);
    must_be_whole(to);
    tmpdir_remove(to);
  }
}

static void a_copy_that_fails_anywhere_shows_nothing(void **unused) {
  long failed = 1;
  tree_job p = with(io_fault_io(fault));
  for (long n = 1; failed > 0; n++) {
    char *parent = strdup(in("copies"));
    char to[400];
    tree_moved moved;
    err e = {0};
    make_dir(parent);
    snprintf(to, sizeof to, "%s/to", parent);
    io_fault_once(fault, CALL_ANY, n, EIO);
    int rc = tree_copy(&p, in("src"), to, &moved, &e);
    failed = io_fault_failed(fault, CALL_ANY);
    if (path_exists(to)) must_be_whole(to);
    if (rc == 0) assert_int_equal(count_entries(parent), 1);
    if (rc < 0 && !path_exists(to)) {
      tree_job sound = with(io_unflushed());
      assert_int_equal(tree_copy(&sound, in("src"), to, &moved, NULL), 0);
      assert_int_equal(count_entries(parent), 1);
    }
    tmpdir_remove(parent);
  }
}

/* ---- the staging ---- */

static void a_staging_of_somebody_alive_is_left_alone(void **unused) {
  tree_stage one, other;
  char path[FS_PATH_MAX];
  assert_int_equal(tree_stage_open(&one, io_unflushed(), in("x"), false, NULL), 0);
  memcpy(path, one.path, sizeof path);
  assert_int_equal(tree_stage_open(&other, io_unflushed(), in("x"), false, NULL), 0);
  assert_true(path_exists(path));
  tree_stage_drop(&other, NULL);
  /* As a process that dies: its lock goes, its directory stays. */
  lock_drop(&one.held);
  fs_held_free(one.where);
  assert_int_equal(tree_stage_open(&other, io_unflushed(), in("x"), false, NULL), 0);
  assert_false(path_exists(path));
  tree_stage_drop(&other, NULL);
  assert_int_equal(count_entries(dir), 1);
}

static void a_directory_of_the_user_with_such_a_name_is_left_alone(void **unused) {
  tree_stage one;
  make_dir(in(".x.ckpt-1000"));
  write_file(in(".x.ckpt-1000/weights"), "weights");
  assert_int_equal(tree_stage_open(&one, io_unflushed(), in("x"), false, NULL), 0);
  tree_stage_drop(&one, NULL);
  assert_true(file_is(in(".x.ckpt-1000/weights"), "weights"));
}

static void of_two_who_make_the_same_directory_one_does(void **unused) {
  tree_stage one, other;
  assert_int_equal(tree_stage_open(&one, io_unflushed(), in("x"), false, NULL), 0);
  assert_int_equal(tree_stage_open(&other, io_unflushed(), in("x"), false, NULL), 0);
  write_file(tmpdir_path(one.path, "who"), "one");
  write_file(tmpdir_path(other.path, "who"), "other");
  assert_int_equal(tree_stage_show(&other, NULL), 0);
  assert_int_equal(tree_stage_show(&one, NULL), ERR_EXISTS);
  assert_true(file_is(in("x/who"), "other"));
  assert_int_equal(count_entries(dir), 2);
}

/* ---- an upload meanwhile ---- */

/* Does what an upload does before it sends, as soon as somebody opens the record, which the store
 * does below the directory that it holds. */
static int open_late(const io *self, int at, const char *path, int flags, mode_t mode) {
  const io *real = io_unflushed();
  const char *name = strrchr(path, '/');
  if (strcmp(name ? name + 1 : path, MANIFEST_NAME) == 0 && !(flags & O_PATH) && has_record()) {
    rename(in("there/" MANIFEST_NAME), in("there/" TREE_PART_NAME));
    write_file(in("there/a"), "AAAA");
  }
  return real->open(real, at, path, flags, mode);
}

static void what_is_replaced_while_it_is_looked_at_is_not_brought(void **unused) {
  err e = {0};
  io late = *io_unflushed();
  late.open = open_late;
  late.open_beneath = NULL; /* or open_late would not be asked */
  assert_int_equal(up_with(io_unflushed()), 0);
  char *to = strdup(in("to"));
  assert_int_equal(down_with(&late, to, false, &e), ERR_CONFLICT);
  assert_non_null(strstr(e.text, "is being written to"));
  assert_false(path_exists(to));
  free(to);
}

static void a_merge_goes_into_another_file_system_too(void **unused) {
  char *volume = tmpdir_new();
  err e = {0};
  assert_int_equal(up_with(io_unflushed()), 0);
  if (symlink(volume, in("to")) != 0) abort();
  write_file(tmpdir_path(volume, "mine"), "mine");
  int rc = down_with(io_unflushed(), in("to"), true, &e);
  if (rc < 0) fail_msg("%s", e.text);
  must_be_whole(volume);
  assert_int_equal(count_entries(volume), 4);
  tmpdir_remove(volume);
}

/* ---- hostile places ---- */

/* The same record with `name` (five bytes) for "sub/b". */
static int down_with_name(const char *name) {
  err e = {0};
  char *text = read_file(in("there/" MANIFEST_NAME), NULL);
  char *at = strstr(text, "\"sub/b\"");
  assert_non_null(at);
  memcpy(at + 1, name, 5);
  write_file(in("there/" MANIFEST_NAME), text);
  int rc = down_with(io_unflushed(), in("to"), false, &e);
  memcpy(at + 1, "sub/b", 5);
  write_file(in("there/" MANIFEST_NAME), text);
  free(text);
  return rc;
}

static void a_record_that_names_what_is_outside_brings_nothing(void **unused) {
  assert_int_equal(up_with(io_unflushed()), 0);
  /* Refused for the name itself, before anything is compared with a digest. */
  assert_int_equal(down_with_name("../bb"), ERR_FORMAT);
  assert_int_equal(down_with_name("/tmpb"), ERR_FORMAT);
  assert_int_equal(down_with_name("a/../"), ERR_FORMAT);
  assert_int_equal(down_with_name("sub/c"), ERR_CORRUPT);
  assert_int_equal(count_entries(dir), 2);
  assert_int_equal(down_with_name("sub/b"), 0);
}

/* An object below what the record has as a link would be written through it. */
static void nothing_is_written_through_a_link_that_the_record_brings(void **unused) {
  err e = {0};
  make_dir(in("outside"));
  if (symlink(in("outside"), in("src/out")) != 0) abort();
  assert_int_equal(up_with(io_unflushed()), 0);
  make_dir(in("there/out"));
  write_file(in("there/out/evil"), "evil");
  assert_int_equal(down_with(io_unflushed(), in("to"), false, &e), 0);
  assert_false(path_exists(in("outside/evil")));
  must_be_whole(in("to"));
}

/* Stores keep that name for themselves, and no listing tells of what is below it. */
static void what_could_not_be_brought_back_is_not_sent(void **unused) {
  err e = {0};
  tree_job p = with(io_unflushed());
  tree_moved moved = {0};
  make_dir(in("src/sub/.ckpt"));
  write_file(in("src/sub/.ckpt/mine"), "mine");
  assert_int_equal(tree_upload(&p, in("src"), in("there"), &moved, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "src/sub/.ckpt/mine"));
  assert_false(has_record());
  const char *const excludes[] = {"*/.ckpt", NULL};
  p.excludes = excludes;
  assert_int_equal(tree_upload(&p, in("src"), in("there"), &moved, &e), 0);
  download_must_be_whole("to");
}

static void a_link_to_a_place_is_not_removed_nor_what_it_leads_to(void **unused) {
  err e = {0};
  tree_job p = with(io_unflushed());
  assert_int_equal(up_with(io_unflushed()), 0);
  if (symlink("there", in("latest")) != 0) abort();
  assert_int_equal(tree_delete(&p, in("latest"), &e), ERR_INVAL);
  download_must_be_whole("to");
}

static void a_cancel_before_the_end_ends_each_of_them(void **unused) {
  tree_job p = with(io_unflushed());
  tree_moved moved;
  assert_int_equal(up_with(io_unflushed()), 0);
  write_file(in("src/new"), "new");
  cancel = 1;
  assert_int_equal(up_with(io_unflushed()), ERR_CANCELED);
  assert_int_equal(tree_copy(&p, in("src"), in("copy"), &moved, NULL), ERR_CANCELED);
  cancel = 0;
  assert_int_equal(up_with(io_unflushed()), 0);
  cancel = 1;
  assert_int_equal(down_with(io_unflushed(), in("to"), false, NULL), ERR_CANCELED);
  assert_int_equal(count_entries(dir), 2);
}

int main(void) {
#define PROMISE(f) cmocka_unit_test_setup_teardown(f, enter, fault_dir_leave)
  const struct CMUnitTest tests[] = {
      PROMISE(an_upload_that_fails_anywhere_leaves_no_record_or_a_true_one),
      PROMISE(an_upload_that_was_cut_sends_only_what_is_missing),
      PROMISE(a_place_that_an_upload_was_cut_to_is_not_taken_for_whole),
      PROMISE(a_place_that_is_half_removed_is_not_taken_for_whole),
      PROMISE(what_was_taken_of_a_checkpoint_is_not_missed),
      PROMISE(links_directories_and_modes_below_a_place_within_are_kept),
      PROMISE(a_place_whose_parts_were_joined_is_whole_or_says_that_it_is_not),
      PROMISE(a_download_that_fails_anywhere_shows_nothing),
      PROMISE(a_merge_that_fails_anywhere_leaves_each_file_old_or_new),
      PROMISE(a_copy_that_fails_anywhere_shows_nothing),
      PROMISE(a_staging_of_somebody_alive_is_left_alone),
      PROMISE(a_directory_of_the_user_with_such_a_name_is_left_alone),
      PROMISE(of_two_who_make_the_same_directory_one_does),
      PROMISE(what_is_replaced_while_it_is_looked_at_is_not_brought),
      PROMISE(a_merge_goes_into_another_file_system_too),
      PROMISE(a_record_that_names_what_is_outside_brings_nothing),
      PROMISE(nothing_is_written_through_a_link_that_the_record_brings),
      PROMISE(what_could_not_be_brought_back_is_not_sent),
      PROMISE(a_link_to_a_place_is_not_removed_nor_what_it_leads_to),
      PROMISE(a_cancel_before_the_end_ends_each_of_them),
  };
  return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
