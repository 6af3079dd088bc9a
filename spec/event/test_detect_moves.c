/* detect on a real directory whose directories are moved out, back, and into one another's place
 * faster than it looks: names meet there that belong to different things. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/detect.h"
#include "detect_same.h"
#include "tmpdir.h"

#define MS INT64_C(1000000)

enum { NEWS = 512 };

/* `out` is watched; what is moved out goes beside it. */
typedef struct scene scene;
struct scene {
  char *dir, *out;
  io io;
  int held;
  int64_t skipped; /* our clock is so far ahead */
  int64_t stopped; /* it stands still here; 0: it goes */
  /* What happens at the detector's n-th look from now on at this path. */
  struct {
    char path[512];
    int looks;  /* 0: nothing is to come */
    bool after; /* right after that look, not right before */
    void (*act)(const scene *s);
  } then;
  rules *rules;
  detect *d;
  struct {
    char path[64];
    detect_state state;
  } news[NEWS];
  size_t count;
};

static scene *here; /* the io of the detector has no other way to it */

static const char *at(const scene *s, const char *name) {
  return tmpdir_path(s->dir, name);
}

static void make_checkpoint(const scene *s, const char *run, int step, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/checkpoint-%d", at(s, run), step);
  make_dir(path);
  write_file(tmpdir_path(path, "model.bin"), text);
  write_file(tmpdir_path(path, "DONE"), "done");
}

static void make_run(const scene *s, const char *run, const char *text) {
  make_dir(at(s, run));
  for (int i = 1; i <= 3; i++) make_checkpoint(s, run, i, text);
}

static void move(const scene *s, const char *from, const char *to) {
  assert_int_equal(rename(at(s, from), at(s, to)), 0);
}

static void exchange(const scene *s, const char *a, const char *b) {
  if (renameat2(AT_FDCWD, at(s, a), AT_FDCWD, at(s, b), RENAME_EXCHANGE) != 0) skip();
}

static int our_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  bool now = here->then.looks > 0 && strcmp(path, here->then.path) == 0 && --here->then.looks == 0;
  if (now && !here->then.after) here->then.act(here);
  int rc = io_system()->lstat(io_system(), dirfd, path, out);
  if (now && here->then.after) here->then.act(here);
  return rc;
}

/* The clock is our own, so no time is waited for. */
static int64_t our_now(const io *io, io_clock clock) {
  if (clock == IO_MONO && here->stopped) return here->stopped;
  return io_system()->now(io_system(), clock) + here->skipped;
}

static void at_look(scene *s, int looks, const char *name, void (*act)(const scene *s)) {
  snprintf(s->then.path, sizeof s->then.path, "%s", at(s, name));
  s->then.looks = looks;
  s->then.act = act;
  s->then.after = false;
}

static int64_t now(void) {
  return our_now(NULL, IO_MONO);
}

static void take_news(scene *s) {
  detect_unit u;
  while (detect_next(s->d, &u)) {
    assert_true(s->count < NEWS);
    s->news[s->count].state = u.state;
    snprintf(s->news[s->count++].path, sizeof s->news->path, "%s", u.path);
  }
}

/* Takes in what has happened, and judges nothing. */
static void take_in(scene *s) {
  err e = {0};
  s->stopped = now();
  if (detect_run(s->d, &e) < 0) fail_msg("%s", e.text);
  s->stopped = 0;
}

static bool readable(const scene *s) {
  struct pollfd p = {.fd = detect_fd(s->d), .events = POLLIN};
  return poll(&p, p.fd >= 0, 0) > 0;
}

static void run_for(scene *s, int64_t ns) {
  err e = {0};
  for (int64_t end = now() + ns; now() < end;) {
    int64_t due = detect_due(s->d), left = (due < end ? due : end) - now();
    if (!readable(s) && left > 0) s->skipped += left;
    if (detect_run(s->d, &e) < 0) fail_msg("%s", e.text);
    take_news(s);
  }
}

static void settle(scene *s) {
  int64_t end = now() + 10000 * MS;
  do run_for(s, 150 * MS);
  while (detect_due(s->d) != INT64_MAX && now() < end);
}

static detect_state state_of(const scene *s, const char *path) {
  detect_unit u;
  return detect_find(s->d, path, &u) ? u.state : DETECT_GONE;
}

/* What was handed out last about a path is what is so. */
static int as_told(void *ctx, const detect_unit *u) {
  const scene *s = ctx;
  for (size_t i = s->count; i-- > 0;)
    if (strcmp(s->news[i].path, u->path) == 0) {
      if (s->news[i].state != u->state)
        fail_msg("%s is in state %d, and %d was told last", u->path, (int)u->state,
                 (int)s->news[i].state);
      return 0;
    }
  fail_msg("%s was never told of", u->path);
  return 0;
}

static void is_right(scene *s) {
  settle(s);
  const char *wrong = detect_same(s->d, s->out, s->rules);
  if (wrong) fail_msg("%s", wrong);
  detect_each(s->d, as_told, s);
}

/* The watches are where they should be, too. */
static void sees_what_comes(scene *s, const char *run) {
  char path[128];
  const char *name = strchr(run, '/') + 1;
  make_checkpoint(s, run, 9, "new");
  is_right(s);
  snprintf(path, sizeof path, "%s/checkpoint-9", name);
  assert_int_equal(state_of(s, path), DETECT_COMPLETE);
}

static void open_watched(scene *s) {
  err e = {0};
  detect_options o = {.io = &s->io, .root = s->out, .rules = s->rules, .mode = DETECT_AUTO};
  if (detect_open(&o, &s->d, &e) < 0) fail_msg("%s", e.text);
  if (detect_polling(s->d)) skip();
  run_for(s, 20 * MS);
}

static int setup(void **state) {
  scene *s = calloc(1, sizeof *s);
  *state = here = s;
  s->io = *io_system();
  s->io.lstat = our_lstat;
  s->io.now = our_now;
  const char *markers[] = {"DONE", NULL};
  if (rules_custom(NULL, NULL, markers, 300 * MS, &s->rules, NULL) < 0) return -1;
  s->rules->marked_ns = 150 * MS;
  s->dir = tmpdir_new();
  s->out = strdup(at(s, "out"));
  make_dir(s->out);
  make_dir(at(s, "away"));
  return 0;
}

static int teardown(void **state) {
  scene *s = *state;
  detect_close(s->d);
  tmpdir_remove(s->dir);
  rules_free(s->rules);
  free(s->out);
  free(s);
  return 0;
}

/* A run whose checkpoints are all complete. */
static void begin(scene *s) {
  open_watched(s);
  make_run(s, "out/run1", "first");
  is_right(s);
  assert_int_equal(state_of(s, "run1/checkpoint-3"), DETECT_COMPLETE);
}

static void what_is_moved_out_and_back_is_the_same(void **state) {
  scene *s = *state;
  begin(s);
  size_t before = s->count;
  for (int i = 0; i < 5; i++) {
    move(s, "out/run1", "away/run1");
    move(s, "away/run1", "out/run1");
    run_for(s, 10 * MS);
  }
  is_right(s);
  assert_int_equal(state_of(s, "run1/checkpoint-3"), DETECT_COMPLETE);
  assert_int_equal(s->count, before); /* nothing is new */
  sees_what_comes(s, "out/run1");
}

static void a_slow_way_back_is_a_removal_and_an_arrival(void **state) {
  scene *s = *state;
  begin(s);
  move(s, "out/run1", "away/run1");
  run_for(s, 20 * MS);
  move(s, "away/run1", "out/run1");
  is_right(s);
  move(s, "out/run1", "away/run1");
  settle(s);
  assert_int_equal(state_of(s, "run1/checkpoint-3"), DETECT_GONE);
  move(s, "away/run1", "out/run1");
  is_right(s);
  sees_what_comes(s, "out/run1");
}

static void a_directory_that_takes_the_place_of_another_is_another(void **state) {
  scene *s = *state;
  begin(s);
  make_run(s, "away/stage", "second, and longer");
  move(s, "out/run1", "away/run1");
  run_for(s, 5 * MS);
  move(s, "away/stage", "out/run1");
  is_right(s);
  sees_what_comes(s, "out/run1");
}

static void what_is_written_anew_where_something_left_is_new(void **state) {
  scene *s = *state;
  begin(s);
  move(s, "out/run1", "away/run1");
  run_for(s, 5 * MS);
  make_run(s, "out/run1", "second, and longer");
  run_for(s, 5 * MS);
  move(s, "out/run1", "away/run2");
  run_for(s, 5 * MS);
  make_run(s, "out/run1", "third");
  is_right(s);
  assert_int_equal(state_of(s, "run1/checkpoint-3"), DETECT_COMPLETE);
  sees_what_comes(s, "out/run1");
}

static void a_directory_is_exchanged_with_a_link(void **state) {
  scene *s = *state;
  begin(s);
  assert_int_equal(symlink("/nowhere", at(s, "away/link")), 0);
  for (int i = 0; i < 7; i++) {
    exchange(s, "out/run1", "away/link");
    run_for(s, (i % 3) * 4 * MS);
  }
  is_right(s);
  assert_int_equal(state_of(s, "run1/checkpoint-3"), DETECT_GONE);
  exchange(s, "out/run1", "away/link");
  is_right(s);
  sees_what_comes(s, "out/run1");
}

static void two_directories_are_exchanged(void **state) {
  scene *s = *state;
  begin(s);
  make_run(s, "out/run2", "second, and longer");
  is_right(s);
  exchange(s, "out/run1", "out/run2");
  is_right(s);
  sees_what_comes(s, "out/run1");
  sees_what_comes(s, "out/run2");
  exchange(s, "out/run1", "out/run2");
  exchange(s, "out/run1/checkpoint-1", "out/run2/checkpoint-2");
  exchange(s, "out/run1", "out/run2");
  exchange(s, "out/run1", "out/run2");
  is_right(s);
  make_checkpoint(s, "out/run1", 10, "new");
  make_checkpoint(s, "out/run2", 10, "new");
  is_right(s);
}

static void two_files_are_exchanged(void **state) {
  scene *s = *state;
  open_watched(s);
  write_file(at(s, "out/a.pt"), "short");
  write_file(at(s, "out/b.pt"), "much longer");
  is_right(s);
  exchange(s, "out/a.pt", "out/b.pt");
  is_right(s);
  assert_int_equal(state_of(s, "a.pt"), DETECT_COMPLETE);
  assert_int_equal(state_of(s, "b.pt"), DETECT_COMPLETE);
}

/* A half-written checkpoint does not become whole because it changed places with another. */
static void an_exchange_proves_nothing(void **state) {
  scene *s = *state;
  open_watched(s);
  make_checkpoint(s, "out", 1, "whole");
  make_dir(at(s, "out/checkpoint-2"));
  write_file(at(s, "out/checkpoint-2/model.bin"), "torn");
  is_right(s);
  assert_int_equal(state_of(s, "checkpoint-2"), DETECT_OPEN);
  exchange(s, "out/checkpoint-1", "out/checkpoint-2");
  is_right(s);
  assert_int_equal(state_of(s, "checkpoint-1"), DETECT_OPEN);
  assert_int_equal(state_of(s, "checkpoint-2"), DETECT_COMPLETE);
}

/* By its events the first one went to run2 and from there back to run1, while it is neither here
 * nor there. */
static void what_was_exchanged_leaves_at_once(void **state) {
  scene *s = *state;
  begin(s);
  make_run(s, "out/run2", "second, and longer");
  is_right(s);
  exchange(s, "out/run1", "out/run2");
  move(s, "out/run2", "away/run1");
  is_right(s);
  assert_int_equal(unlink(at(s, "away/run1/checkpoint-1/model.bin")), 0);
  is_right(s);
  sees_what_comes(s, "out/run1");
}

static void a_directory_that_was_exchanged_with_a_file_leaves_at_once(void **state) {
  scene *s = *state;
  begin(s);
  write_file(at(s, "out/a.pt"), "file");
  is_right(s);
  exchange(s, "out/run1", "out/a.pt");
  move(s, "out/a.pt", "away/run1");
  is_right(s);
}

/* What has a temporary name is not looked at, but it was watched under its own. */
static void an_exchange_with_a_temporary_directory_leaves_the_paths_true(void **state) {
  scene *s = *state;
  open_watched(s);
  make_checkpoint(s, "out", 1, "whole");
  make_dir(at(s, "out/x.tmp"));
  int late = open(at(s, "out/checkpoint-1/late"), O_WRONLY | O_CREAT, 0644);
  assert_true(late >= 0);
  take_in(s);
  exchange(s, "out/checkpoint-1", "out/x.tmp");
  take_in(s);
  close(late);
  is_right(s);
}

/* By the time that the CREATE of m/run1 is read, that path leads to run1 itself. */
static void a_directory_becomes_a_link_to_the_directory_above(void **state) {
  scene *s = *state;
  begin(s);
  make_dir(at(s, "out/m"));
  is_right(s);
  make_dir(at(s, "out/m/run1"));
  move(s, "out/m", "away/m");
  assert_int_equal(symlink(".", at(s, "out/m")), 0);
  is_right(s);
  sees_what_comes(s, "out/run1");
}

static void the_third_run_leaves(const scene *s) {
  move(s, "out/run3", "away/run3");
}

/* The listing after the CREATE of run3 finds in it what came there by the exchange; that is gone by
 * the time that the exchange itself is read. */
static void a_listing_that_was_ahead_of_the_events_misleads_nobody(void **state) {
  scene *s = *state;
  begin(s);
  make_run(s, "out/run2", "second");
  is_right(s);
  make_run(s, "out/run3", "third, and longer");
  exchange(s, "out/run3", "out/run2");
  at_look(s, 2, "out/run3", the_third_run_leaves);
  is_right(s);
  assert_int_equal(s->then.looks, 0);
  sees_what_comes(s, "out/run2");
}

static void ends_and_goes_on(const scene *s) {
  close(s->held);
  move(s, "out/run1", "out/run3");
}

/* It comes back, a file in it is closed, and it goes on: all before its directories have their
 * watches again. That close is not waited for. */
static void a_close_that_nobody_could_hear_is_not_waited_for(void **state) {
  scene *s = *state;
  detect_unit u;
  begin(s);
  s->held = open(at(s, "out/run1/checkpoint-1/late"), O_WRONLY | O_CREAT, 0644);
  assert_true(s->held >= 0 && write(s->held, "1", 1) == 1);
  take_in(s);
  move(s, "out/run1", "out/run2");
  take_in(s);
  move(s, "out/run2", "out/run1");
  at_look(s, 1, "out/run1", ends_and_goes_on);
  s->then.after = true;
  is_right(s);
  assert_int_equal(s->then.looks, 0);
  assert_true(detect_find(s->d, "run3/checkpoint-1", &u));
  if (u.state == DETECT_OPEN) fail_msg("%s", u.reason);
}

static void becomes_a_directory(const scene *s) {
  move(s, "out/epoch-10-of-a-name-as-long-as-it-may-be.pt", "away/f");
  move(s, "away/d", "out/epoch-10-of-a-name-as-long-as-it-may-be.pt");
}

static void becomes_a_link(const scene *s) {
  move(s, "out/epoch-10-of-a-name-as-long-as-it-may-be.pt", "away/f");
  move(s, "away/l", "out/epoch-10-of-a-name-as-long-as-it-may-be.pt");
}

/* Its last look before a file is called complete finds another kind of thing under its name. */
static void is_replaced_at_the_last_look(scene *s, void (*act)(const scene *s)) {
  const char *name = "out/epoch-10-of-a-name-as-long-as-it-may-be.pt";
  open_watched(s);
  make_dir(at(s, "away/d"));
  assert_int_equal(symlink("/nowhere", at(s, "away/l")), 0);
  write_file(at(s, name), "whole");
  take_in(s);
  assert_int_equal(state_of(s, strchr(name, '/') + 1), DETECT_OPEN);
  at_look(s, 1, name, act);
  is_right(s);
  assert_int_equal(s->then.looks, 0);
  assert_int_equal(state_of(s, strchr(name, '/') + 1), DETECT_GONE);
}

static void a_file_becomes_a_directory_at_the_last_look(void **state) {
  is_replaced_at_the_last_look(*state, becomes_a_directory);
}

static void a_file_becomes_a_link_at_the_last_look(void **state) {
  is_replaced_at_the_last_look(*state, becomes_a_link);
}

static bool mount_two(const scene *s) {
  make_dir(at(s, "out/a"));
  make_dir(at(s, "out/b"));
  return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", at(s, "out/a"), "tmpfs", 0, NULL) == 0 &&
         mount("none", at(s, "out/b"), "tmpfs", 0, NULL) == 0;
}

/* Two new file systems give the same inode numbers to different things. */
static int two_mounts(scene *s) {
  struct stat one, other;
  err e = {0};
  detect_unit u;
  if (!mount_two(s)) return 77;
  make_checkpoint(s, "out/a", 1, "whole");
  if (stat(at(s, "out/a/checkpoint-1"), &one) != 0) return 1;
  open_watched(s);
  settle(s);
  if (state_of(s, "a/checkpoint-1") != DETECT_COMPLETE) return 2;
  unlink(at(s, "out/a/checkpoint-1/model.bin"));
  unlink(at(s, "out/a/checkpoint-1/DONE"));
  rmdir(at(s, "out/a/checkpoint-1"));
  make_dir(at(s, "out/b/checkpoint-2"));
  write_file(at(s, "out/b/checkpoint-2/model.bin"), "torn");
  /* As after a rename: its ctime is newer than its mtime. */
  while (stat(at(s, "out/b/checkpoint-2"), &other) == 0 &&
         other.st_ctim.tv_sec == other.st_mtim.tv_sec &&
         other.st_ctim.tv_nsec == other.st_mtim.tv_nsec)
    chmod(at(s, "out/b/checkpoint-2"), 0755);
  if (one.st_ino != other.st_ino) return 77;
  if (detect_list(s->d, &e) < 0) return 3;
  if (!detect_find(s->d, "b/checkpoint-2", &u)) return 4;
  return u.generation == 0 ? 0 : 5;
}

static void the_same_inode_on_another_mount_is_another_thing(void **state) {
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(two_mounts(*state));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* A group of files may have the name of a directory beside it. */
static void a_group_and_a_directory_of_one_name_are_both_judged(void **state) {
  scene *s = *state;
  open_watched(s);
  make_checkpoint(s, "out", 5, "whole");
  write_file(at(s, "out/checkpoint-5.data-00000-of-00001"), "data");
  write_file(at(s, "out/checkpoint-5.index"), "index");
  is_right(s);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(what_is_moved_out_and_back_is_the_same),
      TEST(a_slow_way_back_is_a_removal_and_an_arrival),
      TEST(a_directory_that_takes_the_place_of_another_is_another),
      TEST(what_is_written_anew_where_something_left_is_new),
      TEST(a_directory_is_exchanged_with_a_link),
      TEST(two_directories_are_exchanged),
      TEST(two_files_are_exchanged),
      TEST(an_exchange_proves_nothing),
      TEST(what_was_exchanged_leaves_at_once),
      TEST(a_directory_that_was_exchanged_with_a_file_leaves_at_once),
      TEST(an_exchange_with_a_temporary_directory_leaves_the_paths_true),
      TEST(a_directory_becomes_a_link_to_the_directory_above),
      TEST(a_listing_that_was_ahead_of_the_events_misleads_nobody),
      TEST(a_close_that_nobody_could_hear_is_not_waited_for),
      TEST(a_file_becomes_a_directory_at_the_last_look),
      TEST(a_file_becomes_a_link_at_the_last_look),
      TEST(the_same_inode_on_another_mount_is_another_thing),
      TEST(a_group_and_a_directory_of_one_name_are_both_judged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
