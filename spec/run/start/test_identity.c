#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/start/identity.h"
#include "io_fault.h"
#include "prims/fs.h"
#include "tmpdir.h"

static const char boot[] = "11111111-2222-4333-8444-555555555555";
static const char other_boot[] = "99999999-2222-4333-8444-555555555555";
static char *dir;

static int enter(void **unused) {
  dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "s"));
  return 0;
}

static int leave(void **unused) {
  tmpdir_remove(dir);
  return 0;
}

/* Locks `name` below the scratch directory and takes its identity. */
static int take_at(const io *io, const char *name, const char *now, identity *out, err *e) {
  char state[4096], path[4200];
  lock held;
  snprintf(state, sizeof state, "%s", tmpdir_path(dir, name));
  snprintf(path, sizeof path, "%s/lock", state);
  assert_int_equal(lock_take(path, true, &held, e), 0);
  int rc = identity_take(io, state, &held, now, out, e);
  if (rc == 0) rc = identity_write(io, state, now, out, e);
  lock_drop(&held);
  return rc;
}

static identity take(const char *name, const char *now) {
  identity id;
  err e = {0};
  if (take_at(io_unflushed(), name, now, &id, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(strlen(id.id), 32);
  return id;
}

static void copy(const char *from, const char *to) {
  char path[4096];
  snprintf(path, sizeof path, "%s", tmpdir_path(dir, from));
  assert_int_equal(fs_copy_tree(io_unflushed(), path, tmpdir_path(dir, to), false, NULL, NULL), 0);
}

static void a_directory_keeps_its_id_from_run_to_run(void **state) {
  identity first = take("s", boot), second = take("s", boot);
  assert_string_equal(first.id, second.id);
  assert_string_equal(second.former, "");
  assert_int_equal(path_mode(tmpdir_path(dir, "s/identity")), 0600);
}

static void it_keeps_it_under_another_name(void **state) {
  char from[4096];
  identity first = take("s", boot);
  snprintf(from, sizeof from, "%s", tmpdir_path(dir, "s"));
  assert_int_equal(rename(from, tmpdir_path(dir, "t")), 0);
  assert_string_equal(take("t", boot).id, first.id);
}

static void a_copy_gets_its_own(void **state) {
  identity first = take("s", boot);
  copy("s", "t");
  identity second = take("t", boot);
  assert_string_not_equal(first.id, second.id);
  assert_string_equal(second.former, first.id);
  assert_string_equal(second.socket, "");
  assert_string_equal(take("t", boot).id, second.id);
  assert_string_equal(take("s", boot).id, first.id);
}

static void so_does_one_that_came_to_the_place_of_the_first(void **state) {
  char from[4096];
  identity first = take("s", boot);
  snprintf(from, sizeof from, "%s", tmpdir_path(dir, "s"));
  assert_int_equal(rename(from, tmpdir_path(dir, "away")), 0);
  copy("away", "s");
  assert_string_not_equal(take("s", boot).id, first.id);
}

static int64_t born = 1;
static int other_birth(const io *self, int fd, int64_t *ns) {
  *ns = born;
  return born < 0 ? (int)born : 0;
}

/* An inode's number is given again: only its birth tells then. */
static void so_does_a_new_directory_with_the_old_ones_number(void **state) {
  io io = *io_unflushed();
  identity first, second;
  io.birth = other_birth;
  born = 1000;
  assert_int_equal(take_at(&io, "s", boot, &first, NULL), 0);
  born = 1001;
  assert_int_equal(take_at(&io, "s", boot, &second, NULL), 0);
  assert_string_not_equal(first.id, second.id);
  assert_string_equal(second.former, first.id);
  /* Where births are not kept, the number has to do. */
  born = -ENODATA;
  assert_int_equal(take_at(&io, "s", boot, &first, NULL), 0);
  assert_int_equal(take_at(&io, "s", boot, &second, NULL), 0);
  assert_string_equal(first.id, second.id);
  born = -EIO;
  assert_int_equal(take_at(&io, "s", boot, &second, NULL), ERR_IO);
  io.birth = NULL;
  assert_int_equal(take_at(&io, "s", boot, &second, NULL), 0);
  assert_string_equal(first.id, second.id);
}

static void on_another_boot_it_is_another(void **state) {
  identity first = take("s", boot), second = take("s", other_boot);
  assert_string_not_equal(first.id, second.id);
  assert_string_equal(second.former, first.id);
}

static void what_cannot_be_understood_names_nobody(void **state) {
  static const char *const texts[] = {
      "",
      "{",
      "{}",
      "[1]",
      "{\"format\":1,\"reader\":9}",
      "{\"format\":1,\"reader\":1,\"id\":\"x\",\"directory\":\"\",\"boot\":\"\",\"socket\":\"\"}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    write_file(tmpdir_path(dir, "s/identity"), texts[i]);
    assert_string_equal(take("s", boot).former, "");
  }
  write_pattern(tmpdir_path(dir, "s/identity"), 100000, 1);
  take("s", boot);
}

static void what_another_user_wrote_is_not_believed(void **state) {
  identity first = take("s", boot);
  if (chown(tmpdir_path(dir, "s/identity"), 12345, 12345) < 0) skip();
  identity second = take("s", boot);
  assert_string_not_equal(first.id, second.id);
  assert_string_equal(second.former, "");
}

static void the_lock_has_to_be_that_of_the_directory(void **state) {
  char path[4096];
  identity id;
  err e = {0};
  lock held;
  make_dir(tmpdir_path(dir, "t"));
  take("t", boot);
  snprintf(path, sizeof path, "%s", tmpdir_path(dir, "s/lock"));
  assert_int_equal(lock_take(path, true, &held, NULL), 0);
  snprintf(path, sizeof path, "%s", tmpdir_path(dir, "t"));
  assert_int_equal(identity_take(io_unflushed(), path, &held, boot, &id, &e), ERR_CONFLICT);
  assert_string_equal(id.id, "");
  lock_drop(&held);
}

static int find(const char *name, const char *now, identity *out, err *e) {
  return identity_find(io_unflushed(), tmpdir_path(dir, name), now, out, e);
}

static void others_find_a_run_by_it_and_not_by_a_copy(void **state) {
  identity id, found;
  err e = {0};
  assert_int_equal(find("s", boot, &found, &e), ERR_NOENT);
  id = take("s", boot);
  snprintf(id.socket, sizeof id.socket, "/run/x y%%\n\xff");
  snprintf(id.launch, sizeof id.launch, "slurm:1.0@n\xff");
  snprintf(id.host, sizeof id.host, "a host");
  assert_int_equal(identity_write(io_unflushed(), tmpdir_path(dir, "s"), boot, &id, &e), 0);
  assert_int_equal(find("s", boot, &found, &e), 0);
  assert_string_equal(found.id, id.id);
  assert_string_equal(found.socket, id.socket);
  assert_string_equal(found.launch, id.launch);
  copy("s", "t");
  assert_int_equal(find("t", boot, &found, &e), ERR_NOENT);
  assert_string_equal(found.socket, "");
  assert_string_equal(found.boot, "");
}

/* Where a directory is seen by two machines, its device may differ as well. */
static void elsewhere_it_says_only_where_that_was(void **state) {
  identity id = take("s", boot), found;
  snprintf(id.socket, sizeof id.socket, "/run/x");
  snprintf(id.host, sizeof id.host, "a host");
  assert_int_equal(identity_write(io_unflushed(), tmpdir_path(dir, "s"), boot, &id, NULL), 0);
  copy("s", "t");
  for (int i = 0; i < 2; i++) {
    assert_int_equal(find(i ? "t" : "s", other_boot, &found, NULL), ERR_NOENT);
    assert_string_equal(found.host, "a host");
    assert_string_equal(found.boot, boot);
    assert_string_equal(found.id, "");
    assert_string_equal(found.socket, "");
  }
}

static void a_call_that_fails_is_an_error_and_never_another_id(void **state) {
  identity first = take("s", boot);
  io_fault *fault = io_fault_new(io_unflushed());
  for (long n = 1;; n++) {
    identity id;
    err e = {0};
    int fds = count_fds();
    io_fault_once(fault, CALL_ANY, n, EIO);
    int rc = take_at(io_fault_io(fault), "s", boot, &id, &e);
    assert_int_equal(count_fds(), fds);
    if (rc < 0) assert_true(e.code == rc && *e.text);
    if (rc == 0) assert_string_equal(id.id, first.id);
    assert_string_equal(take("s", boot).id, first.id);
    if (io_fault_failed(fault, CALL_ANY) == 0) break;
  }
  io_fault_free(fault);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)
  const struct CMUnitTest tests[] = {
      TEST(a_directory_keeps_its_id_from_run_to_run),
      TEST(it_keeps_it_under_another_name),
      TEST(a_copy_gets_its_own),
      TEST(so_does_one_that_came_to_the_place_of_the_first),
      TEST(so_does_a_new_directory_with_the_old_ones_number),
      TEST(on_another_boot_it_is_another),
      TEST(what_cannot_be_understood_names_nobody),
      TEST(what_another_user_wrote_is_not_believed),
      TEST(the_lock_has_to_be_that_of_the_directory),
      TEST(others_find_a_run_by_it_and_not_by_a_copy),
      TEST(elsewhere_it_says_only_where_that_was),
      TEST(a_call_that_fails_is_an_error_and_never_another_id),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
