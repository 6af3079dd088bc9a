/* The task that watches a directory and those that write there: real files, a clock that is moved. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io_fault.h"
#include "job/move/unit_files.h"
#include "launch/folder.h"
#include "launch/hub.h"
#include "launch/member.h"
#include "launch/rule/launch_record.h"
#include "tmpdir.h"

static io world;
static int64_t clock_ns;

static int64_t now(const io *self, io_clock which) {
  return which == IO_MONO ? clock_ns : io_system()->now(io_system(), which);
}

static void pass(double s) {
  clock_ns += (int64_t)(s * 1e9);
}

static int set_up(void **state) {
  int rc = tmpdir_set_up(state);
  make_dir(tmpdir_path(*state, "home"));
  make_dir(tmpdir_path(*state, "out"));
  make_dir(tmpdir_path(*state, "out/u"));
  write_file(tmpdir_path(*state, "out/u/shard-0"), "bytes");
  world = *io_system();
  world.now = now;
  clock_ns = 1000000000;
  return rc;
}
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tmpdir_tear_down)

static hub *open_hub_that_waits(void **state, uint32_t count, int64_t wait_ns) {
  static const char *const excludes[] = {"*.log", NULL};
  hub *h;
  err e = {0};
  hub_options o = {.io = &world,
                   .home = tmpdir_path(*state, "home"),
                   .launch = "a launch",
                   .count = count,
                   .excludes = excludes,
                   .wait_ns = wait_ns};
  if (hub_open(&o, &h, &e) < 0) fail_msg("%s", e.text);
  return h;
}

static hub *open_hub(void **state, uint32_t count) {
  return open_hub_that_waits(state, count, 60000000000);
}

static member *join(void **state, uint32_t index) {
  member *m;
  err e = {0};
  member_options o = {.io = &world,
                      .dir = tmpdir_path(*state, "out"),
                      .home = tmpdir_path(*state, "elsewhere"),
                      .state = tmpdir_path(*state, "home"),
                      .launch = "a launch",
                      .task = index + 10,
                      .index = index};
  if (member_join(&o, &m, &e) < 0) fail_msg("%s", e.text);
  return m;
}

static uint64_t stamp_of(void **state, const char *unit) {
  unit_files files = {0};
  rules *rules = NULL;
  const char *const excludes[] = {"*.log", NULL};
  assert_int_equal(rules_custom(NULL, excludes, NULL, -1, &rules, NULL), 0);
  assert_int_equal(unit_files_scan_as(io_system(), tmpdir_path(*state, "out"), unit, MATCH_DIR,
                                      rules, UNIT_FILES_PLAIN, &files, NULL),
                   0);
  uint64_t stamp = unit_files_stamp(&files);
  unit_files_free(&files);
  rules_free(rules);
  return stamp;
}

static char why[256];

static bool agrees(void **state, hub *h) {
  int64_t wait = 0;
  pass(0.2);
  bool yes = hub_agrees(h, "u", MATCH_DIR, stamp_of(state, "u"), why, sizeof why, &wait);
  assert_true(yes || wait > 0);
  return yes;
}

static bool step(member *m) {
  int64_t quiet;
  bool over;
  err e = {0};
  if (member_step(m, &quiet, &over, &e) < 0) fail_msg("%s", e.text);
  return over;
}

static void says(const char *what) {
  if (!strstr(why, what)) fail_msg("\"%s\" is not in \"%s\"", what, why);
}

static void a_unit_is_complete_when_each_has_looked_at_it_since(void **state) {
  hub *h = open_hub(state, 3);
  member *one = join(state, 1), *two = join(state, 2);
  step(one);
  step(two);
  assert_false(agrees(state, h)); /* they have not been asked about it before */
  assert_false(agrees(state, h));
  step(one);
  assert_false(agrees(state, h));
  says("task 12 (on ");
  step(two);
  assert_true(agrees(state, h));
  /* Another file of it: all that was said is of before. */
  write_file(tmpdir_path(*state, "out/u/shard-1"), "more");
  assert_false(agrees(state, h));
  step(one);
  step(two);
  assert_true(agrees(state, h));
  member_close(one);
  member_close(two);
  hub_close(h, true);
}

static void what_is_excluded_is_no_difference(void **state) {
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  assert_false(agrees(state, h));
  write_file(tmpdir_path(*state, "out/u/x.log"), "a log");
  step(one);
  assert_true(agrees(state, h));
  member_close(one);
  hub_close(h, true);
}

static void a_file_that_somebody_there_has_open_is_waited_for(void **state) {
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  int ready[2];
  char c = 0;
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    int fd = open(tmpdir_path(*state, "out/u/shard-0"), O_WRONLY | O_APPEND);
    if (fd < 0 || write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  assert_int_equal(read(ready[0], &c, 1), 1);
  assert_false(agrees(state, h));
  step(one);
  assert_false(agrees(state, h));
  says("has a file of it open");
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  close(ready[0]);
  close(ready[1]);
  assert_false(agrees(state, h)); /* the answer is of before */
  pass(1);
  assert_false(agrees(state, h));
  step(one);
  if (!agrees(state, h)) fail_msg("%s", why);
  member_close(one);
  hub_close(h, true);
}

static void one_without_a_word_beside_others_is_unknown_for_the_wait(void **state) {
  int64_t due;
  uint32_t unknown;
  char text[200];
  hub *h = open_hub(state, 3);
  member *one = join(state, 1);
  assert_false(agrees(state, h));
  step(one);
  assert_false(agrees(state, h));
  says("number 2 of the 3 tasks in this directory has not reported yet");
  hub_ended(h, true);
  assert_int_equal(member_end(one, true, NULL), 0);
  pass(1);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  assert_int_equal(hub_left(h, &unknown), 1);
  assert_int_equal(unknown, 1);
  assert_true(due < INT64_MAX);
  pass(58);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  assert_int_equal(hub_step(h, true, clock_ns, &due), HUB_UNKNOWN); /* a deadline */
  hub_name_left(h, text, sizeof text);
  assert_string_equal(text, "number 2 of the 3 tasks in this directory is");
  pass(2);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_OVER);
  assert_true(hub_clean(h));
  assert_false(hub_alone(h));
  member_close(one);
  hub_close(h, true);
}

/* The user started the first one alone below us. */
static void two_minutes_without_a_word_of_any_is_being_alone(void **state) {
  int64_t due;
  uint32_t unknown;
  hub *h = open_hub_that_waits(state, 3, 600000000000);
  pass(118);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  assert_false(agrees(state, h));
  says("number 1 of the 3 tasks in this directory has not reported yet");
  assert_false(hub_alone(h));
  assert_int_equal(hub_step(h, true, clock_ns, &due), HUB_LIVES); /* our own has not ended */
  pass(3);
  assert_true(agrees(state, h));
  assert_true(hub_alone(h));
  hub_ended(h, true);
  assert_int_equal(hub_left(h, &unknown), 0);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_OVER);
  assert_true(hub_clean(h));
  hub_close(h, true);
}

static void keep_text(void *ctx, log_level level, const char *text) {
  (void)level;
  snprintf(ctx, 512, "%s", text);
}

/* They would be taken for such as are not there, and a checkpoint without their shards for a whole one. */
static void who_may_not_see_us_is_never_taken_not_to_be_there(void **state) {
  int64_t due;
  hub *h;
  char said[512] = "";
  const log_sink log = {.fn = keep_text, .ctx = said, .min = LOG_WARN};
  hub_options o = {.io = &world,
                   .log = &log,
                   .home = tmpdir_path(*state, "home"),
                   .launch = "a launch",
                   .count = 2,
                   .wait_ns = 600000000000,
                   .hidden = "they meet elsewhere"};
  assert_int_equal(hub_open(&o, &h, NULL), 0);
  pass(700);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  assert_false(hub_alone(h));
  assert_false(agrees(state, h));
  assert_non_null(strstr(said, "it may still write: they meet elsewhere"));
  hub_ended(h, true);
  pass(601);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_UNKNOWN);
  hub_close(h, true);
}

/* What came before may have taken long, and the others were not told of the directory. */
static void the_two_minutes_count_from_the_start_of_the_job(void **state) {
  int64_t due;
  hub *h = open_hub_that_waits(state, 2, 600000000000);
  pass(115);
  hub_begun(h);
  pass(110);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  assert_false(hub_alone(h));
  pass(11);
  hub_step(h, true, INT64_MAX, &due);
  assert_true(hub_alone(h));
  hub_begun(h); /* another job: it stays found out */
  pass(1);
  hub_step(h, true, INT64_MAX, &due);
  assert_true(hub_alone(h));
  hub_close(h, true);
}

static void one_that_comes_after_all_is_asked_and_the_rest_unknown_again(void **state) {
  int64_t due;
  hub *h = open_hub_that_waits(state, 3, 600000000000);
  pass(121);
  assert_true(agrees(state, h));
  member *one = join(state, 1);
  pass(1);
  hub_step(h, true, INT64_MAX, &due);
  assert_false(hub_alone(h));
  assert_false(agrees(state, h));
  says("number 2 of the 3 tasks in this directory has not reported yet");
  pass(479);
  step(one);
  assert_true(agrees(state, h));
  member_close(one);
  hub_close(h, true);
}

static void one_that_begins_as_ours_ends_is_not_given_up(void **state) {
  int64_t due;
  hub *h = open_hub_that_waits(state, 2, 600000000000);
  pass(121);
  assert_int_equal(hub_step(h, false, INT64_MAX, &due), HUB_LIVES);
  assert_true(hub_alone(h));
  member *one = join(state, 1);
  hub_ended(h, true);
  assert_false(hub_alone(h));
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  member_close(one);
  hub_close(h, true);
}

/* Nothing is being written: then one that has never come is waited for as long as it may take to start. */
static void nobody_is_waited_for_long_of_whom_nothing_hangs(void **state) {
  int64_t due;
  hub *h = open_hub(state, 2);
  pass(20);
  hub_ended(h, true);
  assert_int_equal(hub_step(h, false, INT64_MAX, &due), HUB_LIVES);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  pass(11);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  assert_int_equal(hub_step(h, false, INT64_MAX, &due), HUB_UNKNOWN);
  hub_close(h, true);
}

/* Looks are half a second apart: the last one before the wait is over was of those that may still come. */
static void those_that_never_came_are_given_up_when_the_wait_is_over_and_not_doubted(void **state) {
  int64_t due;
  hub *h = open_hub_that_waits(state, 3, 8000000000);
  hub_ended(h, true);
  pass(7.75);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  pass(0.3);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_OVER);
  assert_true(hub_clean(h) && hub_alone(h));
  hub_close(h, true);
}

static void one_that_lives_is_waited_for_as_long_as_it_does_but_over_no_deadline(void **state) {
  int64_t due;
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  hub_ended(h, true);
  for (int i = 0; i < 100; i++) {
    pass(10);
    assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
    step(one);
    pass(1);
  }
  int64_t end = clock_ns + 5000000000;
  assert_int_equal(hub_step(h, true, end, &due), HUB_LIVES);
  pass(6);
  assert_int_equal(hub_step(h, true, end, &due), HUB_UNKNOWN);
  /* From here on it is silent: unknown, never gone. */
  pass(50);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_LIVES);
  pass(10);
  assert_int_equal(hub_step(h, true, INT64_MAX, &due), HUB_UNKNOWN);
  member_close(one);
  hub_close(h, true);
}

static void all_have_ended_when_each_says_so(void **state) {
  int64_t due, lag;
  hub *h = open_hub(state, 3);
  member *one = join(state, 1), *two = join(state, 2);
  pass(10);
  hub_step(h, false, INT64_MAX, &due);
  hub_ended(h, true);
  member_end(one, true, NULL);
  pass(1);
  assert_int_equal(hub_step(h, false, INT64_MAX, &due), HUB_LIVES);
  assert_true(hub_clean(h));
  pass(2);
  member_end(two, false, NULL);
  assert_int_equal(hub_step(h, false, INT64_MAX, &due), HUB_OVER);
  assert_false(hub_clean(h));
  assert_true(hub_lost_one(h, &lag));
  assert_true(lag == 2000000000); /* when it was last known to live */
  assert_false(hub_lost_one(h, &lag));
  assert_true(agrees(state, h)); /* nobody is left who may write */
  member_close(one);
  member_close(two);
  hub_close(h, true);
}

static void an_end_in_order_is_told_and_another_is_silence(void **state) {
  int64_t quiet;
  bool over;
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  step(one);
  hub_close(h, false);
  pass(31);
  assert_int_equal(member_step(one, &quiet, &over, NULL), 0);
  assert_false(over);
  assert_true(quiet > 30000000000);
  member_close(one);
  h = open_hub(state, 2);
  one = join(state, 1);
  hub_close(h, true);
  assert_true(step(one));
  member_close(one);
}

static void what_another_launch_left_is_removed_and_nobody_of_it_makes_it_again(void **state) {
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  hub_close(h, false);
  char path[FS_PATH_MAX];
  assert_int_equal(folder_make(&world, tmpdir_path(*state, "home"), "another", path, NULL), 0);
  assert_int_equal(count_entries(tmpdir_path(*state, "home/launch")), 1);
  assert_int_equal(count_entries(path), 0);
  assert_true(member_end(one, true, NULL) < 0);
  assert_int_equal(count_entries(tmpdir_path(*state, "home/launch")), 1);
  member_close(one);
}

/* A question that leads out of the directory is answered as one about nothing. */
static void a_question_about_something_elsewhere_tells_nothing(void **state) {
  char folder[FS_PATH_MAX];
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  launch_question q = {.number = 99};
  launch_answer a;
  buf text;
  make_dir(tmpdir_path(*state, "secret"));
  write_file(tmpdir_path(*state, "secret/x"), "x");
  folder_path(tmpdir_path(*state, "home"), "a launch", folder, NULL);
  launch_add(&q.units, &(launch_unit){.path = (char *)"../secret"});
  launch_add(&q.units, &(launch_unit){.path = (char *)"u"});
  buf_init(&text, LAUNCH_BYTES_MAX);
  assert_int_equal(launch_print_question(&q, &text, NULL), 0);
  assert_int_equal(folder_put(&world, folder, "question", &text, NULL), 0);
  step(one);
  buf_free(&text);
  buf_init(&text, LAUNCH_BYTES_MAX);
  assert_int_equal(folder_get(&world, folder, "1", &text, NULL), 0);
  assert_int_equal(launch_parse_answer(&text, &a, NULL), 0);
  assert_true(launch_find(&a.units, "../secret")->stamp == 0);
  assert_true(launch_find(&a.units, "u")->stamp != 0);
  launch_free_question(&q);
  launch_free_answer(&a);
  buf_free(&text);
  member_close(one);
  hub_close(h, true);
}

/* The others would refuse the question, and nothing would ever be complete. */
static void more_excludes_than_a_question_may_have_are_refused(void **state) {
  const char *excludes[LAUNCH_EXCLUDES_MAX + 2] = {0};
  hub *h = NULL;
  err e = {0};
  for (int i = 0; i <= LAUNCH_EXCLUDES_MAX; i++) excludes[i] = "*.log";
  hub_options o = {.io = &world,
                   .home = tmpdir_path(*state, "home"),
                   .launch = "a launch",
                   .count = 2,
                   .excludes = excludes};
  assert_int_equal(hub_open(&o, &h, &e), ERR_LIMIT);
  assert_null(h);
  excludes[LAUNCH_EXCLUDES_MAX] = NULL;
  assert_int_equal(hub_open(&o, &h, &e), 0);
  hub_close(h, true);
}

/* More units are asked about than a question has room for: each gets its answer before long, and those
 * that are gone by then take nobody's place for long. */
static void each_of_many_units_has_its_turn(void **state) {
  enum { UNITS = LAUNCH_UNITS_MAX + 20 };
  hub *h = open_hub(state, 2);
  member *one = join(state, 1);
  bool done[UNITS] = {0};
  int left = UNITS;
  for (int i = 0; i < UNITS; i++) {
    char unit[32];
    snprintf(unit, sizeof unit, "out/v%d", i);
    make_dir(tmpdir_path(*state, unit));
    snprintf(unit, sizeof unit, "out/v%d/x", i);
    write_file(tmpdir_path(*state, unit), "x");
  }
  for (int round = 0; left > LAUNCH_UNITS_MAX && round < 100; round++) {
    /* The first ones are removed meanwhile. */
    for (int i = round < 1 ? 0 : LAUNCH_UNITS_MAX; i < UNITS; i++) {
      char unit[32];
      int64_t wait;
      snprintf(unit, sizeof unit, "v%d", i);
      if (done[i]) continue;
      done[i] = hub_agrees(h, unit, MATCH_DIR, stamp_of(state, unit), why, sizeof why, &wait);
      left -= done[i];
    }
    step(one);
    pass(1);
  }
  assert_int_equal(left, LAUNCH_UNITS_MAX);
  member_close(one);
  hub_close(h, true);
}

/* Call 1 fails, then call 2, ...: what nobody has looked at is not complete, and what failed is made
 * up for before long. */
static void a_failing_call_makes_no_unit_complete(void **state) {
  static const int errors[] = {EIO, ENOSPC, ESTALE};
  const int fds = count_fds();
  long nth = 1, failed = 1;
  for (; failed > 0; nth++) {
    io_fault *f = io_fault_new(io_unflushed());
    int64_t quiet, due;
    bool over;
    hub *h = open_hub(state, 2);
    member *one = join(state, 1);
    world = *io_fault_io(f);
    world.now = now;
    io_fault_once(f, CALL_ANY, nth, errors[nth % 3]);
    assert_false(agrees(state, h));
    int rc = member_step(one, &quiet, &over, NULL);
    pass(0.2);
    bool yes = hub_agrees(h, "u", MATCH_DIR, 4711, why, sizeof why, &due);
    assert_false(yes); /* nobody sees files of this stamp */
    failed = io_fault_failed(f, CALL_ANY);
    io_fault_set(f, (io_fault_plan){0});
    if (rc < 0) assert_true(failed > 0);
    yes = false;
    for (int i = 0; i < 20 && !yes; i++) {
      pass(1);
      hub_step(h, false, INT64_MAX, &due);
      step(one);
      yes = agrees(state, h);
    }
    assert_true(yes);
    member_close(one);
    hub_close(h, true);
    world = *io_system();
    world.now = now;
    io_fault_free(f);
    assert_int_equal(count_fds(), fds);
  }
  assert_true(nth > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      T(a_unit_is_complete_when_each_has_looked_at_it_since),
      T(what_is_excluded_is_no_difference),
      T(a_file_that_somebody_there_has_open_is_waited_for),
      T(one_without_a_word_beside_others_is_unknown_for_the_wait),
      T(two_minutes_without_a_word_of_any_is_being_alone),
      T(the_two_minutes_count_from_the_start_of_the_job),
      T(who_may_not_see_us_is_never_taken_not_to_be_there),
      T(one_that_comes_after_all_is_asked_and_the_rest_unknown_again),
      T(one_that_begins_as_ours_ends_is_not_given_up),
      T(nobody_is_waited_for_long_of_whom_nothing_hangs),
      T(those_that_never_came_are_given_up_when_the_wait_is_over_and_not_doubted),
      T(one_that_lives_is_waited_for_as_long_as_it_does_but_over_no_deadline),
      T(all_have_ended_when_each_says_so),
      T(an_end_in_order_is_told_and_another_is_silence),
      T(what_another_launch_left_is_removed_and_nobody_of_it_makes_it_again),
      T(a_question_about_something_elsewhere_tells_nothing),
      T(more_excludes_than_a_question_may_have_are_refused),
      T(each_of_many_units_has_its_turn),
      T(a_failing_call_makes_no_unit_complete),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
