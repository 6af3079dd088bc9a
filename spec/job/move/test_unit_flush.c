#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "job/move/unit_flush.h"
#include "tmpdir.h"

static void make_unit(const char *dir) {
  make_dir(tmpdir_path(dir, "exp"));
  make_dir(tmpdir_path(dir, "exp/checkpoint-1"));
  make_dir(tmpdir_path(dir, "exp/checkpoint-1/deep"));
  write_file(tmpdir_path(dir, "exp/checkpoint-1/deep/weights"), "weights");
  write_file(tmpdir_path(dir, "exp/checkpoint-1/state"), "state");
}

static int flush(const io *io, const char *dir, err *e) {
  return unit_flush(io, dir, "exp/checkpoint-1", MATCH_DIR, rules_builtin(), e);
}

static void must_be_flushed(io_fault *f, const char *dir, const char *name) {
  char line[600];
  snprintf(line, sizeof line, "fsync %s%s", dir, name);
  if (io_fault_find(f, 0, line) < 0) {
    char *log = io_fault_log(f);
    fail_msg("%s\n%s", line, log);
  }
}

static void each_file_is_flushed_and_each_directory_that_names_it(void **state) {
  const char *dir = *state;
  make_unit(dir);
  io_fault *f = io_fault_new(io_unflushed());
  assert_int_equal(flush(io_fault_io(f), dir, NULL), 0);
  must_be_flushed(f, dir, "/exp/checkpoint-1/deep/weights");
  must_be_flushed(f, dir, "/exp/checkpoint-1/state");
  must_be_flushed(f, dir, "/exp/checkpoint-1");
  must_be_flushed(f, dir, "/exp");
  must_be_flushed(f, dir, "");
  io_fault_free(f);
}

static void a_flush_that_fails_is_told(void **state) {
  const char *dir = *state;
  make_unit(dir);
  io_fault *f = io_fault_new(io_unflushed());
  long n = 0;
  for (bool more = true; more;) {
    io_fault_once(f, CALL_FSYNC, ++n, EIO);
    int rc = flush(io_fault_io(f), dir, NULL);
    more = io_fault_failed(f, CALL_FSYNC) > 0;
    assert_int_equal(rc, more ? ERR_IO : 0);
  }
  assert_in_range(n, 7, 9); /* two files, three directories of the unit's way, and the unit's own */
  io_fault_free(f);
}

/* The watched directory is on another file system than all that is in it. */
static const char *root;
static int lstat_elsewhere(const io *self, int dirfd, const char *path, struct stat *out) {
  (void)self;
  int rc = io_unflushed()->lstat(io_unflushed(), dirfd, path, out);
  if (strcmp(path, root) == 0) out->st_dev++;
  return rc;
}

static void what_is_mounted_there_is_not_called_flushed(void **state) {
  const char *dir = *state;
  err e = {0};
  make_unit(dir);
  root = dir;
  io io = *io_unflushed();
  io.lstat = lstat_elsewhere;
  assert_int_equal(flush(&io, dir, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "is on another file system"));
}

static void one_that_is_gone_is_told(void **state) {
  assert_int_equal(flush(io_unflushed(), *state, NULL), ERR_RETIRED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_DIRECTORY(each_file_is_flushed_and_each_directory_that_names_it),
      IN_A_DIRECTORY(a_flush_that_fails_is_told),
      IN_A_DIRECTORY(what_is_mounted_there_is_not_called_flushed),
      IN_A_DIRECTORY(one_that_is_gone_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
