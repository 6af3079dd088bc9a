/* What the watchers of one directory tell one another. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tmpdir.h"
#include "watchers/home.h"
#include "watchers/watchers.h"

static const char *const excludes[] = {"*.tmp%", "logs/**", NULL};

static int set_up(void **state) {
  int rc = tmpdir_set_up(state);
  make_dir(tmpdir_path(*state, "home"));
  make_dir(tmpdir_path(*state, "a"));
  make_dir(tmpdir_path(*state, "b"));
  return rc;
}
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tmpdir_tear_down)

static const char *home_of(void **state) {
  return tmpdir_path(*state, "home");
}

static int join(void **state, const char *name, watcher *out) {
  watcher_card card = {.state = tmpdir_path(*state, name),
                       .target = "file:///to",
                       .run = name,
                       .host = "here",
                       .pid = 7,
                       .excludes = excludes};
  return watcher_join(io_system(), home_of(state), &card, out, NULL);
}

static watchers look(void **state, const watcher *own) {
  watchers all;
  assert_int_equal(watchers_look(io_system(), home_of(state), own, &all, NULL), 0);
  return all;
}

static void each_sees_the_others_and_what_they_are_done_with(void **state) {
  watcher a, b;
  assert_int_equal(join(state, "a", &a), 0);
  assert_int_equal(join(state, "b", &b), 0);
  assert_int_equal(watcher_done(io_system(), &b, "x/check\npoint-1", 0xfeedfacecafebeef, NULL), 0);
  watchers seen = look(state, &a);
  assert_int_equal(seen.count, 1);
  assert_string_equal(seen.at[0].run, "b");
  assert_string_equal(seen.at[0].excludes.at[0], "*.tmp%");
  assert_true(seen.at[0].known && seen.at[0].alive);
  assert_true(watcher_is_done(&seen.at[0], "x/check\npoint-1", 0xfeedfacecafebeef));
  assert_false(watcher_is_done(&seen.at[0], "x/check\npoint-1", 0xfeedfacecafebeee));
  assert_false(watcher_is_done(&seen.at[0], "x/checkpoint-1", 0xfeedfacecafebeef));
  watchers_free(&seen);
  watcher_leave(io_system(), &a, false);
  watcher_leave(io_system(), &b, false);
  assert_false(path_exists(tmpdir_path(home_of(state), "watchers")));
}

static void one_that_died_stays_and_has_its_file_again_when_it_comes_back(void **state) {
  watcher a, again, b;
  assert_int_equal(join(state, "a", &a), 0);
  assert_int_equal(watcher_done(io_system(), &a, "u", 5, NULL), 0);
  assert_int_equal(join(state, "a", &again), ERR_HELD);
  assert_int_equal(join(state, "b", &b), 0);
  uint64_t alive = watchers_sum(io_system(), home_of(state));
  watcher_leave(io_system(), &a, true);
  assert_int_not_equal(watchers_sum(io_system(), home_of(state)), alive);
  watchers seen = look(state, &b);
  assert_int_equal(seen.count, 1);
  assert_false(seen.at[0].alive);
  assert_true(watcher_is_done(&seen.at[0], "u", 5)); /* it is in its target, dead or not */
  watchers_free(&seen);
  assert_int_equal(join(state, "a", &again), 0);
  assert_true(again.found);
  assert_string_equal(again.path, a.path);
  seen = look(state, &b);
  assert_int_equal(seen.count, 1);
  assert_false(watcher_is_done(&seen.at[0], "u", 5));
  watchers_free(&seen);
  watcher_leave(io_system(), &again, false);
  watcher_leave(io_system(), &b, false);
}

static void of_a_file_that_cannot_be_read_nothing_is_done(void **state) {
  make_dir(tmpdir_path(home_of(state), "watchers"));
  write_file(tmpdir_path(home_of(state), "watchers/torn"), "{\"format\":1,\"reader\":1");
  write_file(tmpdir_path(home_of(state), "watchers/newer"),
             "{\"format\":9,\"reader\":9}\n{\"unit\":\"u\",\"stamp\":\"05\"}\n");
  write_file(
      tmpdir_path(home_of(state), "watchers/lacking"),
      "{\"format\":1,\"reader\":1,\"state\":\"?\",\"target\":\"t\",\"run\":\"r\",\"host\":\"h\","
      "\"pid\":1}\n{\"unit\":\"u\",\"stamp\":\"05\"}\n");
  watchers seen = look(state, NULL);
  assert_int_equal(seen.count, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_false(seen.at[i].known);
    assert_false(watcher_is_done(&seen.at[i], "u", 5));
    assert_string_equal(seen.at[i].state, "?");
  }
  watchers_free(&seen);
}

static void a_torn_line_is_passed_over(void **state) {
  watcher a;
  assert_int_equal(join(state, "a", &a), 0);
  assert_int_equal(write(a.file.fd, "{\"unit\":\"u", 10), 10);
  watchers seen = look(state, NULL);
  assert_true(seen.at[0].known);
  assert_int_equal(seen.at[0].count, 0);
  watchers_free(&seen);
  watcher_leave(io_system(), &a, false);
}

static void a_long_file_is_begun_anew(void **state) {
  watcher a;
  assert_int_equal(join(state, "a", &a), 0);
  char unit[3000];
  memset(unit, 'u', sizeof unit - 1);
  unit[sizeof unit - 1] = 0;
  uint64_t before = watchers_sum(io_system(), home_of(state));
  for (uint64_t i = 1; !watcher_is_long(&a); i++)
    assert_int_equal(watcher_done(io_system(), &a, unit, i, NULL), 0);
  assert_int_not_equal(watchers_sum(io_system(), home_of(state)), before);
  watcher_card card = {.state = "s", .target = "t", .run = "r", .host = "h"};
  assert_int_equal(watcher_again(io_system(), &a, &card, NULL), 0);
  assert_false(watcher_is_long(&a));
  watchers seen = look(state, NULL);
  assert_int_equal(seen.at[0].count, 0);
  watchers_free(&seen);
  watcher_leave(io_system(), &a, false);
}

/* ---- the home ---- */

static home find(void **state, const char *target) {
  home out;
  home_find(io_system(), tmpdir_path(*state, "a"), tmpdir_path(*state, "b"), target, &out);
  return out;
}

static void the_home_stands_beside_the_directory(void **state) {
  home h = find(state, NULL);
  assert_string_equal(h.path, tmpdir_path(*state, "a.ckpt"));
  assert_int_equal(path_mode(h.path), 0700);
  make_dir(tmpdir_path(*state, "a.ckpt/launch"));
  make_dir(tmpdir_path(*state, "a.ckpt/watchers"));
  write_file(tmpdir_path(*state, "a.ckpt/dir.lock"), "");
  assert_string_equal(find(state, NULL).path, h.path);
}

static void a_link_in_its_place_leads_there(void **state) {
  assert_int_equal(symlink(home_of(state), tmpdir_path(*state, "a.ckpt")), 0);
  assert_string_equal(find(state, NULL).path, home_of(state));
}

static void must_be_none(void **state, const char *target, const char *why) {
  home h = find(state, target);
  assert_string_equal(h.path, "");
  if (!strstr(h.why, why)) fail_msg("%s", h.why);
}

static void what_is_not_ours_is_no_home(void **state) {
  char beside[600];
  snprintf(beside, sizeof beside, "%s", tmpdir_path(*state, "a.ckpt"));
  must_be_none(state, tmpdir_path(*state, "a.ckpt/store"), "target");
  write_file(beside, "weights");
  must_be_none(state, NULL, "a.ckpt");
  assert_int_equal(unlink(beside), 0);
  make_dir(beside);
  write_file(tmpdir_path(*state, "a.ckpt/model.pt"), "weights");
  must_be_none(state, NULL, "model.pt");
  assert_int_equal(unlink(tmpdir_path(*state, "a.ckpt/model.pt")), 0);
  assert_int_equal(chmod(beside, 0777), 0);
  must_be_none(state, NULL, "everybody");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      T(each_sees_the_others_and_what_they_are_done_with),
      T(one_that_died_stays_and_has_its_file_again_when_it_comes_back),
      T(of_a_file_that_cannot_be_read_nothing_is_done),
      T(a_torn_line_is_passed_over),
      T(a_long_file_is_begun_anew),
      T(the_home_stands_beside_the_directory),
      T(a_link_in_its_place_leads_there),
      T(what_is_not_ours_is_no_home),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
