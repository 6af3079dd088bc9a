#include "with_cmocka.h"

#include <errno.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run_host.h"
#include "tmpdir.h"

enum { NFS = 0x6969, NINE_P = 0x01021997, EXT4 = 0xef53 };

/* Stands in for libc's: this machine has no file system of a network. */
static long magic;
int statfs(const char *path, struct statfs *out) {
  int rc = (int)syscall(SYS_statfs, path, out);
  if (magic) out->f_type = magic;
  return rc;
}

/* Begins a run to which the directory is on such a file system. Its events come all the same, or each
 * test would wait for the next listing. */
static run_prepared begin_on(run_host *h, long kind) {
  run_prepared p;
  err e = {0};
  magic = kind;
  if (run_host_open(h, &e) < 0) fail_msg("%s", e.text);
  magic = 0;
  if (run_prepare(run_host_run(h), RUN_AUTO, NULL, &p, &e) < 0) fail_msg("%s", e.text);
  if (run_start(run_host_run(h), &e) < 0) fail_msg("%s", e.text);
  return p;
}

static void commit_on(run_host *h, long kind, const char *name, const char *text) {
  begin_on(h, kind);
  run_host_write(h, name, text, RUN_COMMITTED);
  run_host_rest(h);
  run_host_close(h);
}

static void damage(run_host *h) {
  static const char text[] = "that nobody saw";
  write_unnoticed(run_host_dir(h, "last.pt"), text, strlen(text));
}

static void must_be_read(run_host *h, long kind, bool read) {
  run_prepared p = begin_on(h, kind);
  assert_non_null(p.resume);
  assert_int_equal(p.restored, read);
  assert_true(file_is(p.resume, read ? "as it was saved" : "that nobody saw"));
  run_host_close(h);
}

static void what_is_journalled_on_this_boot_is_not_read_again(void **state) {
  run_host *h = *state;
  commit_on(h, EXT4, "last.pt", "as it was saved");
  damage(h);
  must_be_read(h, EXT4, false);
}

static void after_a_reboot_it_is(void **state) {
  run_host *h = *state;
  commit_on(h, EXT4, "last.pt", "as it was saved");
  damage(h);
  run_host_reboot(h);
  must_be_read(h, EXT4, true);
}

static void not_where_it_was_flushed_to_a_server(void **state) {
  run_host *h = *state;
  commit_on(h, NFS, "last.pt", "as it was saved");
  damage(h);
  run_host_reboot(h);
  must_be_read(h, NFS, false);
  run_host_reboot(h); /* nor by those that come later */
  must_be_read(h, NFS, false);
}

static void what_only_says_that_it_flushes_is_no_server(void **state) {
  run_host *h = *state;
  commit_on(h, NINE_P, "last.pt", "as it was saved");
  damage(h);
  run_host_reboot(h);
  must_be_read(h, NINE_P, true);
}

static void where_the_flush_failed_it_is_read(void **state) {
  run_host *h = *state;
  run_host_fail_flush(h, EIO);
  commit_on(h, NFS, "last.pt", "as it was saved");
  run_host_fail_flush(h, 0);
  damage(h);
  run_host_reboot(h);
  must_be_read(h, NFS, true);
}

static void what_was_read_for_that_is_flushed_then(void **state) {
  run_host *h = *state;
  commit_on(h, EXT4, "last.pt", "as it was saved");
  run_host_reboot(h);
  begin_on(h, NFS);
  run_host_rest(h);
  run_host_close(h);
  damage(h);
  run_host_reboot(h);
  must_be_read(h, NFS, false);
}

static void what_was_restored_there_is_not_read_after_a_reboot(void **state) {
  run_host *h = *state;
  commit_on(h, NFS, "last.pt", "as it was saved");
  assert_int_equal(remove(run_host_dir(h, "last.pt")), 0);
  run_prepared p = begin_on(h, NFS);
  assert_int_equal(p.restored, 1);
  run_host_close(h); /* the restore has flushed it */
  damage(h);
  run_host_reboot(h);
  must_be_read(h, NFS, false);
}

/* A whole directory, which no store has. */
static void leave_uncommitted(run_host *h, long kind) {
  begin_on(h, kind);
  run_host_fail_store(h, EIO);
  make_dir(run_host_dir(h, "checkpoint-7"));
  write_file(run_host_dir(h, "checkpoint-7/weights"), "of no known format");
  run_host_until(h, RUN_RETRYING, "checkpoint-7");
  run_host_close(h);
  run_host_fail_store(h, 0);
  run_host_reboot(h);
}

static void what_was_whole_and_flushed_there_is_resumed_from_though_no_store_has_it(void **state) {
  run_host *h = *state;
  leave_uncommitted(h, NFS);
  run_prepared p = begin_on(h, NFS);
  assert_non_null(p.resume);
  assert_string_equal(p.resume, run_host_dir(h, "checkpoint-7"));
}

static void on_a_disk_nothing_proves_it_whole(void **state) {
  run_host *h = *state;
  leave_uncommitted(h, EXT4);
  assert_null(begin_on(h, EXT4).resume);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(what_is_journalled_on_this_boot_is_not_read_again),
      WITH_HOST(after_a_reboot_it_is),
      WITH_HOST(not_where_it_was_flushed_to_a_server),
      WITH_HOST(what_only_says_that_it_flushes_is_no_server),
      WITH_HOST(where_the_flush_failed_it_is_read),
      WITH_HOST(what_was_read_for_that_is_flushed_then),
      WITH_HOST(what_was_restored_there_is_not_read_after_a_reboot),
      WITH_HOST(what_was_whole_and_flushed_there_is_resumed_from_though_no_store_has_it),
      WITH_HOST(on_a_disk_nothing_proves_it_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
