/* Quarantine is emptied of what a commit has, and of nothing else, whatever fails. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uri.h"
#include "commit/log/runlog.h"
#include "io_fault.h"
#include "run/quarantine/emptying.h"
#include "run_host.h"
#include "tmpdir.h"

/* Old enough; the other half of the name. */
#define OLD "1000000000-0000000"

typedef struct scene {
  run_host *h;
  char root[600];
  names groups;
  atomic_int cancel;
} scene;

static const char *at(const scene *s, const char *name) {
  return tmpdir_path(s->root, name);
}

/* A target with checkpoint-1, two files, and sub/last.pt in a group of its own. */
static int set_up(void **state) {
  scene *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->h = run_host_new(NULL);
  run_host_begin(s->h);
  make_dir(run_host_dir(s->h, "checkpoint-1"));
  make_dir(run_host_dir(s->h, "checkpoint-1/deep"));
  write_file(run_host_dir(s->h, "checkpoint-1/deep/weights"), "the weights");
  assert_int_equal(symlink("deep/weights", run_host_dir(s->h, "checkpoint-1/link")), 0);
  write_file(run_host_dir(s->h, "checkpoint-1/.metadata.json"), "{\"a\":1}");
  write_file(run_host_dir(s->h, "checkpoint-1/state"), "the state");
  run_host_until(s->h, RUN_COMMITTED, "checkpoint-1");
  make_dir(run_host_dir(s->h, "sub"));
  run_host_write(s->h, "sub/last.pt", "one file", RUN_COMMITTED);
  run_host_close(s->h);
  snprintf(s->root, sizeof s->root, "%s", run_host_state(s->h, "quarantine"));
  make_dir(s->root);
  assert_true(names_add(&s->groups, "") && names_add(&s->groups, "sub"));
  *state = s;
  return 0;
}

static int tear_down(void **state) {
  scene *s = *state;
  names_free(&s->groups);
  run_host_free(s->h);
  free(s);
  return 0;
}

/* A copy of checkpoint-1, as a start moves it away; `part`: what one rank has of it. */
static void hold(const scene *s, const char *name, bool part) {
  char path[300];
  make_dir(at(s, name));
  snprintf(path, sizeof path, "%s/checkpoint-1", name);
  make_dir(at(s, path));
  snprintf(path, sizeof path, "%s/checkpoint-1/deep", name);
  make_dir(at(s, path));
  snprintf(path, sizeof path, "%s/checkpoint-1/deep/weights", name);
  write_file(at(s, path), "the weights");
  if (part) return;
  snprintf(path, sizeof path, "%s/checkpoint-1/link", name);
  assert_int_equal(symlink("deep/weights", at(s, path)), 0);
  snprintf(path, sizeof path, "%s/checkpoint-1/state", name);
  write_file(at(s, path), "the state");
}

static void hold_more(const scene *s, const char *name, const char *file, const char *text) {
  char path[300];
  hold(s, name, false);
  snprintf(path, sizeof path, "%s/checkpoint-1/%s", name, file);
  write_file(at(s, path), text);
}

static void hold_file(const scene *s, const char *name, const char *text) {
  char path[300];
  make_dir(at(s, name));
  snprintf(path, sizeof path, "%s/sub", name);
  make_dir(at(s, path));
  snprintf(path, sizeof path, "%s/sub/last.pt", name);
  write_file(at(s, path), text);
}

static int open_store(const scene *s, const io *io, store **out, err *e) {
  static const log_sink quiet = {0};
  uri where;
  char to[700];
  snprintf(to, sizeof to, "file://%s/store", run_host_top(s->h));
  assert_int_equal(uri_parse(to, &where, NULL), 0);
  return store_open(&where, io, &quiet, out, e);
}

/* As one pass of a run does it. */
static int empty_by(scene *s, const io *io, emptying *out, err *e) {
  store *store = NULL;
  *out = (emptying){.io = io, .root = s->root, .groups = &s->groups, .cancel = &s->cancel};
  int rc = open_store(s, io, &store, e);
  out->store = store;
  if (rc == 0) rc = emptying_run(out, e);
  store_close(store);
  return rc;
}

static emptying empty(scene *s) {
  emptying done;
  err e = {0};
  if (empty_by(s, io_unflushed(), &done, &e) < 0) fail_msg("%s", e.text);
  return done;
}

static void must_stay(scene *s, const char *name) {
  emptying done = empty(s);
  assert_int_equal(done.removed, 0);
  assert_int_equal(done.stay, 1);
  assert_true(path_exists(at(s, name)));
}

static void what_a_commit_has_goes_after_a_day(void **state) {
  scene *s = *state;
  hold(s, OLD "1", false);
  hold_file(s, OLD "2", "one file");
  emptying done = empty(s);
  assert_int_equal(done.removed, 2);
  assert_int_equal(done.stay, 0);
  assert_int_equal(done.bytes, strlen("the weights") + strlen("the state") + strlen("one file"));
  assert_non_null(strstr(done.of, "checkpoint-1 (commit "));
  assert_non_null(strstr(done.of, "sub/last.pt (commit "));
  assert_int_equal(count_entries(s->root), 0);
  assert_int_equal(empty(s).removed, 0);
}

static void the_part_of_a_rank_is_in_the_commit_of_all(void **state) {
  scene *s = *state;
  hold(s, OLD "1", true);
  assert_int_equal(empty(s).removed, 1);
}

static void what_is_younger_stays(void **state) {
  scene *s = *state;
  char young[64];
  snprintf(young, sizeof young, "%lld-00000001",
           (long long)(io_system()->now(io_system(), IO_WALL) / 1000000000));
  hold(s, young, false);
  must_stay(s, young);
}

static void what_has_one_file_more_stays(void **state) {
  hold_more(*state, OLD "1", "notes", "mine");
  must_stay(*state, OLD "1");
}

static void what_the_user_wrote_beside_it_stays(void **state) {
  hold_more(*state, OLD "1", ".metadata.json", "{\"a\":2}");
  must_stay(*state, OLD "1");
}

static void what_was_saved_of_that_goes(void **state) {
  scene *s = *state;
  hold_more(s, OLD "1", ".metadata.json", "{\"a\":1}");
  assert_int_equal(empty(s).removed, 1);
}

static void a_file_that_no_save_takes_stays(void **state) {
  hold_more(*state, OLD "1", "x.tmp", "");
  must_stay(*state, OLD "1");
}

static void what_differs_in_a_byte_stays(void **state) {
  hold_more(*state, OLD "1", "state", "the strte");
  must_stay(*state, OLD "1");
}

static void a_link_that_leads_elsewhere_stays(void **state) {
  scene *s = *state;
  hold(s, OLD "1", false);
  assert_int_equal(remove(at(s, OLD "1/checkpoint-1/link")), 0);
  assert_int_equal(symlink("state", at(s, OLD "1/checkpoint-1/link")), 0);
  must_stay(s, OLD "1");
}

static void what_cannot_be_listed_stays(void **state) {
  scene *s = *state;
  emptying done;
  hold(s, OLD "1", false);
  assert_int_equal(mkfifo(at(s, OLD "1/checkpoint-1/pipe"), 0600), 0);
  assert_int_equal(empty_by(s, io_unflushed(), &done, NULL), ERR_INVAL);
  assert_int_equal(done.stay, 1);
  assert_true(path_exists(at(s, OLD "1/checkpoint-1/state")));
}

static void what_is_no_unit_of_this_target_stays(void **state) {
  scene *s = *state;
  names_free(&s->groups);
  hold_file(s, OLD "1", "one file"); /* its group is not known here */
  assert_true(names_add(&s->groups, ""));
  must_stay(s, OLD "1");
}

/* The only commit at the top is marked bad, or let go. */
static void change_commit(const scene *s, bool bad) {
  store *store;
  runlog *log;
  err e = {0};
  assert_int_equal(open_store(s, io_unflushed(), &store, NULL), 0);
  assert_int_equal(runlog_open(store, "", &log, NULL), 0);
  uint64_t n = runlog_newest(runlog_view(log), "checkpoint-1")->n;
  int rc = bad ? runlog_mark(log, n, true, "it does not load", &e)
               : runlog_drop(log, n, "test", "let go", NULL, NULL, &e);
  if (rc < 0) fail_msg("%s", e.text);
  runlog_close(log);
  store_close(store);
}

static void what_was_marked_bad_keeps_nothing(void **state) {
  hold(*state, OLD "1", false);
  change_commit(*state, true);
  must_stay(*state, OLD "1");
}

static void what_was_let_go_keeps_nothing(void **state) {
  hold(*state, OLD "1", false);
  change_commit(*state, false);
  must_stay(*state, OLD "1");
}

static void what_the_store_has_lost_or_damaged_keeps_nothing(void **state) {
  scene *s = *state;
  const char *file = run_host_store(s->h, "checkpoint-1/state");
  hold(s, OLD "1", false);
  chmod(file, 0600);
  write_file(file, "the strte");
  must_stay(s, OLD "1");
  assert_int_equal(remove(run_host_store(s->h, "checkpoint-1/state")), 0);
  must_stay(s, OLD "1");
}

static void what_others_put_there_is_not_looked_at(void **state) {
  scene *s = *state;
  hold(s, "mine", false);
  hold(s, OLD "1.bak", false);
  write_file(at(s, OLD "2"), "a file");
  assert_int_equal(symlink("mine", at(s, OLD "3")), 0);
  emptying done = empty(s);
  assert_int_equal(done.removed + done.stay, 0);
  assert_int_equal(count_entries(s->root), 4);
  assert_true(path_exists(at(s, "mine/checkpoint-1/state")));
}

static void no_link_leads_it_out(void **state) {
  scene *s = *state;
  char *outside = tmpdir_new();
  hold(s, OLD "1", true);
  write_file(tmpdir_path(outside, "weights"), "the weights");
  assert_int_equal(remove(at(s, OLD "1/checkpoint-1/deep/weights")), 0);
  assert_int_equal(remove(at(s, OLD "1/checkpoint-1/deep")), 0);
  assert_int_equal(symlink(outside, at(s, OLD "1/checkpoint-1/deep")), 0);
  must_stay(s, OLD "1");
  assert_true(file_is(tmpdir_path(outside, "weights"), "the weights"));
  tmpdir_remove(outside);
}

static void what_a_crash_left_half_removed_goes(void **state) {
  scene *s = *state;
  hold(s, OLD "1.removing", true);
  emptying done = empty(s);
  assert_int_equal(done.removed, 0);
  assert_int_equal(count_entries(s->root), 0);
}

static void one_pass_tests_a_few_and_the_next_ones_the_others(void **state) {
  enum { COPIES = EMPTYING_TESTS + 2 };
  scene *s = *state;
  char name[64];
  for (int i = 0; i < COPIES; i++) {
    snprintf(name, sizeof name, OLD "%d", i);
    hold(s, name, true);
  }
  emptying done = empty(s);
  assert_int_equal(done.removed, EMPTYING_TESTS);
  assert_int_equal(done.stay, COPIES - EMPTYING_TESTS);
  assert_true(done.more);
  done = empty(s);
  assert_int_equal(done.removed, COPIES - EMPTYING_TESTS);
  assert_false(done.more);
}

static void one_that_is_stopped_removes_nothing(void **state) {
  scene *s = *state;
  emptying done;
  hold(s, OLD "1", false);
  atomic_store(&s->cancel, 1);
  assert_int_equal(empty_by(s, io_unflushed(), &done, NULL), ERR_CANCELED);
  assert_int_equal(done.removed, 0);
  assert_true(path_exists(at(s, OLD "1/checkpoint-1/state")));
}

/* ---- call N fails ---- */

static bool is_whole(const scene *s, const char *name) {
  char path[300];
  snprintf(path, sizeof path, "%s/checkpoint-1/deep/weights", name);
  if (!file_is(at(s, path), "the weights")) return false;
  snprintf(path, sizeof path, "%s/checkpoint-1/link", name);
  if (!path_exists(at(s, path))) return false;
  snprintf(path, sizeof path, "%s/checkpoint-1/state", name);
  return path_exists(at(s, path));
}

/* What is unique is whole; what is not is whole under its name, or gone from it. */
static void must_hold(const scene *s, long n) {
  if (!is_whole(s, OLD "1") || !file_is(at(s, OLD "1/checkpoint-1/state"), "the strte"))
    fail_msg("call %ld: what differs was touched", n);
  if (!is_whole(s, OLD "2") || !file_is(at(s, OLD "2/checkpoint-1/notes"), "mine"))
    fail_msg("call %ld: what has more was touched", n);
  if (!file_is(at(s, OLD "3/sub/last.pt"), "another"))
    fail_msg("call %ld: another file was touched", n);
  if (path_exists(at(s, OLD "4")) && !is_whole(s, OLD "4"))
    fail_msg("call %ld: half of a copy stands under its name", n);
}

static void no_nap(const io *self, int64_t ns) {
  (void)self;
  (void)ns;
}

static void whatever_call_fails_what_is_unique_stays_whole(void **state) {
  static const io_fault_plan plans[] = {{.errnum = EIO},
                                        {.errnum = ENOENT},
                                        {.errnum = EACCES, .for_good = true},
                                        {.errnum = EIO, .done = true}};
  scene *s = *state;
  emptying done;
  io quick = *io_unflushed();
  quick.sleep = no_nap;
  hold_more(s, OLD "1", "state", "the strte");
  hold_more(s, OLD "2", "notes", "mine");
  hold_file(s, OLD "3", "another");
  io_fault *f = io_fault_new(&quick);
  for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
    io_fault_plan plan = plans[k];
    plan.kind = CALL_ANY;
    do {
      if (!path_exists(at(s, OLD "4"))) hold(s, OLD "4", false);
      plan.nth++;
      io_fault_set(f, plan);
      empty_by(s, io_fault_io(f), &done, NULL);
      must_hold(s, plan.nth);
    } while (io_fault_failed(f, CALL_ANY) > 0);
    assert_int_equal(done.removed, 1);
  }
  io_fault_free(f);
  empty(s); /* and what the last ones left half removed goes */
  assert_int_equal(count_entries(s->root), 3);
  must_hold(s, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(what_a_commit_has_goes_after_a_day),
      T(the_part_of_a_rank_is_in_the_commit_of_all),
      T(what_is_younger_stays),
      T(what_has_one_file_more_stays),
      T(what_the_user_wrote_beside_it_stays),
      T(what_was_saved_of_that_goes),
      T(a_file_that_no_save_takes_stays),
      T(what_differs_in_a_byte_stays),
      T(a_link_that_leads_elsewhere_stays),
      T(what_cannot_be_listed_stays),
      T(what_is_no_unit_of_this_target_stays),
      T(what_was_marked_bad_keeps_nothing),
      T(what_was_let_go_keeps_nothing),
      T(what_the_store_has_lost_or_damaged_keeps_nothing),
      T(what_others_put_there_is_not_looked_at),
      T(no_link_leads_it_out),
      T(what_a_crash_left_half_removed_goes),
      T(one_pass_tests_a_few_and_the_next_ones_the_others),
      T(one_that_is_stopped_removes_nothing),
      T(whatever_call_fails_what_is_unique_stays_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
