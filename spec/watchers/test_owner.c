/* Who owns a watched directory: one at a time; and what a record of another host needs. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/proc.h"
#include "tmpdir.h"
#include "watchers/owner.h"

static const char *home_in(void **state) {
  return tmpdir_path(*state, "out.ckpt");
}
static const char *dir_in(void **state) {
  return tmpdir_path(*state, "out");
}

static int set_up(void **state) {
  int rc = tmpdir_set_up(state);
  make_dir(tmpdir_path(*state, "out"));
  make_dir(tmpdir_path(*state, "out.ckpt"));
  return rc;
}
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tmpdir_tear_down)

static owner_record here(void) {
  owner_record r = {.pid = getpid(), .run = "run-1", .target = "file:///to"};
  strcpy(r.host, "here");
  strcpy(r.machine, "machine");
  assert_int_equal(proc_boot_id(r.boot, NULL), 0);
  assert_int_equal(proc_identity(getpid(), &r.start, NULL, NULL), 0);
  return r;
}

static int take(void **state, owner *out, err *e) {
  owner_record us = here();
  int rc = owner_take(io_system(), home_in(state), dir_in(state), &us, out, e);
  return rc < 0 ? rc : owner_note(io_system(), out, e);
}

static void must_take(void **state, owner *out) {
  err e = {0};
  if (take(state, out, &e) < 0) fail_msg("%s", e.text);
}

static void one_has_it_and_the_next_when_it_is_given_up(void **state) {
  owner a, b;
  err e = {0};
  must_take(state, &a);
  assert_int_equal(take(state, &b, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "run run-1 to file:///to"));
  assert_false(b.held);
  assert_int_equal(owner_check(io_system(), &a, NULL), 0);
  owner_drop(io_system(), &a);
  must_take(state, &b);
  assert_false(b.by_term);
  assert_true(b.before.released);
  owner_drop(io_system(), &b);
}

/* ---- one that has it for a moment ---- */

static int go[2];

/* The child lets go when we begin to wait for it. */
static void sleep_once(const io *self, int64_t ns) {
  (void)self;
  if (go[1] >= 0) close(go[1]);
  go[1] = -1;
  io_system()->sleep(io_system(), ns);
}

static void one_that_has_it_for_a_moment_is_waited_for(void **state) {
  owner o;
  owner_record us = here();
  io waits = *io_system();
  int ready[2];
  char c;
  waits.sleep = sleep_once;
  assert_int_equal(pipe(go) | pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    us.brief = true;
    close(go[1]);
    int rc = owner_take(io_system(), home_in(state), dir_in(state), &us, &o, NULL);
    if (rc == 0) rc = owner_note(io_system(), &o, NULL);
    if (write(ready[1], "r", 1) != 1 || read(go[0], &c, 1) != 0) rc = -1;
    owner_drop(io_system(), &o);
    _exit(rc ? 1 : 0);
  }
  assert_int_equal(read(ready[0], &c, 1), 1);
  err e = {0};
  int rc = owner_take(&waits, home_in(state), dir_in(state), &us, &o, &e);
  if (rc < 0) fail_msg("%s", e.text);
  assert_int_equal(go[1], -1);
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  owner_drop(io_system(), &o);
}

static void the_directory_itself_is_locked_for_those_without_a_home_in_common(void **state) {
  owner a, b;
  owner_record us = here();
  err e = {0};
  assert_int_equal(owner_take(io_system(), NULL, dir_in(state), &us, &a, &e), 0);
  assert_int_equal(take(state, &b, &e), ERR_HELD);
  assert_int_equal(owner_check(io_system(), &a, NULL), 0);
  owner_drop(io_system(), &a);
}

/* As by a process that was killed: the kernel drops the locks, and the record stays. */
static void die_with(void **state) {
  pid_t pid = fork();
  if (pid == 0) {
    owner o;
    if (take(state, &o, NULL) == 0) _exit(owner_pass(io_system(), &o, "log-1", 7, NULL) ? 2 : 0);
    _exit(1);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

static void a_killed_one_of_this_boot_is_followed_at_once(void **state) {
  owner o;
  die_with(state);
  must_take(state, &o);
  assert_false(o.by_term);
  assert_false(o.before.released);
  owner_drop(io_system(), &o);
}

static void a_removed_lock_file_is_no_lock_any_more(void **state) {
  owner a;
  err e = {0};
  must_take(state, &a);
  assert_int_equal(unlink(tmpdir_path(home_in(state), "dir.lock")), 0);
  assert_int_equal(owner_check(io_system(), &a, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "removed"));
  owner_drop(io_system(), &a);
}

static void a_record_of_another_is_found_before_a_change(void **state) {
  owner a;
  err e = {0};
  must_take(state, &a);
  owner b = a;
  owner_record other = here();
  strcpy(other.nonce, "another");
  strcpy(other.host, "elsewhere");
  b.us = other;
  assert_int_equal(owner_pass(io_system(), &b, "", 0, NULL), ERR_HELD);
  b.us = a.us;
  assert_int_equal(owner_pass(io_system(), &b, "log-1", 3, NULL), 0);
  assert_int_equal(owner_check(io_system(), &a, NULL), 0);
  write_file(tmpdir_path(home_in(state), "dir.lock"), "{\"nobody\": \"of ours\"}");
  assert_int_equal(owner_check(io_system(), &a, &e), ERR_HELD);
  owner_drop(io_system(), &a);
  assert_true(file_is(tmpdir_path(home_in(state), "dir.lock"), "{\"nobody\": \"of ours\"}"));
}

static void a_term_follows_a_smaller_one_of_the_same_log_alone(void **unused) {
  owner_record before = {.known = true, .log = "log-1", .term = 7};
  assert_true(owner_follows(&before, "log-1", 8));
  assert_false(owner_follows(&before, "log-1", 7));
  assert_false(owner_follows(&before, "log-2", 8));
  assert_false(owner_follows(&before, "", 8));
  before.known = false;
  assert_false(owner_follows(&before, "log-1", 8));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      T(one_has_it_and_the_next_when_it_is_given_up),
      T(one_that_has_it_for_a_moment_is_waited_for),
      T(the_directory_itself_is_locked_for_those_without_a_home_in_common),
      T(a_killed_one_of_this_boot_is_followed_at_once),
      T(a_removed_lock_file_is_no_lock_any_more),
      T(a_record_of_another_is_found_before_a_change),
      T(a_term_follows_a_smaller_one_of_the_same_log_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
