#include "with_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io_fault.h"
#include "job/move/node_share.h"
#include "tmpdir.h"

static char *root;
static digest file;

/* Its time is what was slept. */
static struct {
  io io;
  int64_t slept;
  void (*meanwhile)(void);
} patient;

static int64_t now(const io *self, io_clock clock) {
  return patient.slept;
}

static void sleep_not(const io *self, int64_t ns) {
  patient.slept += ns;
  if (patient.meanwhile) patient.meanwhile();
}

static const char *in(const char *name) {
  return tmpdir_path(root, name);
}

static int enter(void **unused) {
  root = tmpdir_new();
  patient.io = *io_unflushed();
  patient.io.now = now;
  patient.io.sleep = sleep_not;
  patient.slept = 0;
  patient.meanwhile = NULL;
  return hash_bytes(HASH_XXH3_128, "weights", 7, &file, NULL);
}

static int leave(void **unused) {
  tmpdir_remove(root);
  return 0;
}

static node_share *open_as(const char *launch) {
  return node_share_open(&patient.io, NULL, root, launch, "boot", "file:///store");
}

static node_share *open_one(void) {
  node_share *s = open_as("l1");
  assert_non_null(s);
  return s;
}

static bool reads(const node_claim *c, const char *text) {
  char found[64] = "";
  return c->from >= 0 && pread(c->from, found, sizeof found - 1, 0) >= 0 &&
         strcmp(found, text) == 0;
}

static bool is_to_fetch(const node_claim *c) {
  return c->from < 0 && c->held.fd >= 0;
}

static bool is_alone(const node_claim *c) {
  return c->from < 0 && c->held.fd < 0;
}

/* Claims, and ends it at once. */
static void fetch(node_share *s, const char *staged, const char *shown) {
  node_claim c;
  node_share_claim(s, &file, NULL, &c);
  assert_true(is_to_fetch(&c));
  char *at = staged ? strdup(in(staged)) : NULL;
  node_share_end(s, &c, at, in(shown));
  free(at);
}

static void one_fetches_and_the_next_reads_what_it_has(void **unused) {
  node_share *a = open_one(), *b = open_one();
  node_claim c, d;
  write_file(in("staged"), "weights");
  fetch(a, "staged", "shown");
  node_share_claim(b, &file, NULL, &c);
  node_share_claim(a, &file, NULL, &d); /* two at once may read */
  assert_true(reads(&c, "weights") && reads(&d, "weights"));
  node_share_end(b, &c, NULL, NULL);
  node_share_end(a, &d, NULL, NULL);
  assert_int_equal(patient.slept, 0);
  node_share_close(a);
  node_share_close(b);
}

static void what_was_shown_since_is_found(void **unused) {
  node_share *a = open_one();
  node_claim c;
  write_file(in("shown"), "weights");
  fetch(a, "staged", "shown");
  node_share_claim(a, &file, NULL, &c);
  assert_true(reads(&c, "weights"));
  node_share_end(a, &c, NULL, NULL);
  node_share_close(a);
}

static void what_is_gone_or_was_never_there_is_fetched_by_the_next(void **unused) {
  node_share *a = open_one();
  node_claim c;
  fetch(a, "staged", "shown");
  fetch(a, NULL, "shown");
  write_file(in("again"), "weights");
  fetch(a, "again", "shown");
  node_share_claim(a, &file, NULL, &c);
  assert_true(reads(&c, "weights"));
  node_share_end(a, &c, NULL, NULL);
  node_share_close(a);
}

static void neither_a_link_nor_a_pipe_is_read(void **unused) {
  node_share *a = open_one();
  write_file(in("weights"), "weights");
  if (symlink("weights", in("staged")) < 0 || mkfifo(in("shown"), 0600) < 0) abort();
  fetch(a, "staged", "shown");
  fetch(a, "staged", "shown");
  node_share_close(a);
}

/* Another process claims the file, and says so by the lock. */
static pid_t claim_elsewhere(void) {
  int ready[2];
  char byte;
  if (pipe(ready) < 0) abort();
  pid_t pid = fork();
  if (pid == 0) {
    node_claim c;
    node_share_claim(open_as("l1"), &file, NULL, &c);
    if (!is_to_fetch(&c) || write(ready[1], "", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return pid;
}

static pid_t other;

static void end_other(void) {
  if (!other) return;
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  other = 0;
}

static void one_that_dies_leaves_it_to_the_next(void **unused) {
  node_share *a = open_one();
  node_claim c;
  other = claim_elsewhere();
  patient.meanwhile = end_other;
  node_share_claim(a, &file, NULL, &c);
  assert_true(is_to_fetch(&c));
  node_share_end(a, &c, NULL, NULL);
  node_share_close(a);
}

static void one_that_shows_no_sign_of_life_is_not_waited_for(void **unused) {
  node_share *a = open_one();
  node_claim c;
  other = claim_elsewhere();
  node_share_claim(a, &file, NULL, &c);
  assert_true(is_alone(&c));
  assert_true(patient.slept >= 30 * INT64_C(1000000000));
  node_share_end(a, &c, in("staged"), in("shown"));
  end_other();
  node_share_close(a);
}

static node_share *lively;
static node_claim long_claim;

/* True each 5 s. File systems tell times to some milliseconds, and two signs must not have the same. */
static bool is_time(void) {
  static int64_t last;
  if (patient.slept < last) last = 0;
  if (patient.slept - last < NODE_SHARE_BEAT_NS) return false;
  last = patient.slept;
  usleep(12000);
  return true;
}

static void tell_of_life(void) {
  if (is_time() && patient.slept < 90 * INT64_C(1000000000)) node_share_alive(lively, &long_claim);
}

static void one_that_goes_on_is_waited_for(void **unused) {
  node_share *a = open_one();
  node_claim c;
  lively = open_one();
  node_share_claim(lively, &file, NULL, &long_claim);
  patient.meanwhile = tell_of_life;
  node_share_claim(a, &file, NULL, &c);
  assert_true(is_alone(&c));
  assert_true(patient.slept >= 115 * INT64_C(1000000000));
  node_share_end(lively, &long_claim, NULL, NULL);
  node_share_close(lively);
  node_share_close(a);
}

enum { BEATS_S = 90 };
static int64_t beats_ns;

static void beat(void) {
  if (is_time() && patient.slept < beats_ns) node_share_beat(lively);
}

/* Its store does not answer: no block comes. */
static void wait_for_one_that_beats_for(int64_t seconds) {
  node_share *a = open_one();
  node_claim c;
  beats_ns = seconds * INT64_C(1000000000);
  lively = open_one();
  node_share_claim(lively, &file, NULL, &long_claim);
  patient.meanwhile = beat;
  node_share_claim(a, &file, NULL, &c);
  assert_true(is_alone(&c));
  node_share_end(lively, &long_claim, NULL, NULL);
  node_share_beat(lively); /* what has ended shows nothing any more */
  node_share_close(lively);
  node_share_close(a);
}

static void one_that_is_alive_and_waits_for_its_store_is_waited_for(void **unused) {
  wait_for_one_that_beats_for(BEATS_S);
  assert_in_range(patient.slept / 1000000000, BEATS_S + 25, BEATS_S + 35);
}

static void one_that_brings_nothing_for_ten_minutes_is_not_waited_for(void **unused) {
  wait_for_one_that_beats_for(3600);
  assert_in_range(patient.slept / 1000000000, 600, 610);
}

static void give_up_and_try_again(void) {
  node_share_end(lively, &long_claim, NULL, NULL);
  node_share_claim(lively, &file, NULL, &long_claim);
  beat();
}

/* Each would wait for the same store, one behind the other. */
static void the_ten_minutes_are_those_of_all_that_tried(void **unused) {
  node_share *a = open_one();
  node_claim c;
  beats_ns = INT64_MAX;
  lively = open_one();
  node_share_claim(lively, &file, NULL, &long_claim);
  patient.meanwhile = give_up_and_try_again;
  node_share_claim(a, &file, NULL, &c);
  assert_true(is_alone(&c));
  assert_in_range(patient.slept / 1000000000, 600, 610);
  node_share_end(lively, &long_claim, NULL, NULL);
  node_share_close(lively);
  node_share_close(a);
}

static void a_wait_ends_when_the_restore_is_cancelled(void **unused) {
  node_share *a = open_one(), *b = open_one();
  atomic_int cancel = 1;
  node_claim c, d;
  node_share_claim(a, &file, NULL, &c);
  node_share_claim(b, &file, &cancel, &d);
  assert_true(is_alone(&d));
  assert_int_equal(patient.slept, 0);
  node_share_end(a, &c, NULL, NULL);
  node_share_close(a);
  node_share_close(b);
}

static const char *users(void) {
  static char name[64];
  snprintf(name, sizeof name, "ckpt-lua-%ld", (long)geteuid());
  return name;
}

static void the_last_one_removes_the_meeting(void **unused) {
  node_share *a = open_one(), *b = open_one();
  write_file(in("shown"), "weights");
  fetch(a, "staged", "shown");
  node_share_close(a);
  assert_int_equal(count_entries(in(users())), 1);
  node_share_close(b);
  assert_int_equal(count_entries(in(users())), 0);
}

/* They were killed, all of them. */
static void what_dead_ones_left_is_removed_and_not_believed(void **unused) {
  for (int same = 0; same < 2; same++) {
    pid_t pid = fork();
    if (pid == 0) {
      write_file(in("shown"), "other");
      fetch(open_as("l1"), "staged", "shown");
      _exit(0);
    }
    waitpid(pid, NULL, 0);
    assert_int_equal(count_entries(in(users())), 1);
    node_share *a = open_as(same ? "l1" : "l2");
    assert_non_null(a);
    assert_int_equal(count_entries(in(users())), 1);
    fetch(a, NULL, "shown");
    node_share_close(a);
    assert_int_equal(count_entries(in(users())), 0);
  }
}

static void tasks_of_another_launch_are_not_met(void **unused) {
  node_share *a = open_one(), *b = open_as("l2");
  write_file(in("shown"), "weights");
  fetch(a, "staged", "shown");
  fetch(b, "staged", "shown");
  node_share_close(a);
  node_share_close(b);
}

static void a_place_that_others_may_enter_is_not_used(void **unused) {
  node_share_close(open_one());
  chmod(in(users()), 0711);
  assert_null(open_as("l1"));
  rmdir(in(users()));
  make_dir(in("elsewhere"));
  chmod(in("elsewhere"), 0700);
  if (symlink("elsewhere", in(users())) < 0) abort();
  assert_null(open_as("l1"));
  assert_int_equal(count_entries(in("elsewhere")), 0);
}

static void without_a_place_all_is_fetched_alone(void **unused) {
  node_claim c;
  node_share_claim(NULL, &file, NULL, &c);
  assert_true(is_alone(&c));
  node_share_close(NULL);
  assert_null(node_share_open(&patient.io, NULL, in("not there"), "l1", "boot", "target"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(one_fetches_and_the_next_reads_what_it_has),
      T(what_was_shown_since_is_found),
      T(what_is_gone_or_was_never_there_is_fetched_by_the_next),
      T(neither_a_link_nor_a_pipe_is_read),
      T(one_that_dies_leaves_it_to_the_next),
      T(one_that_shows_no_sign_of_life_is_not_waited_for),
      T(one_that_goes_on_is_waited_for),
      T(one_that_is_alive_and_waits_for_its_store_is_waited_for),
      T(one_that_brings_nothing_for_ten_minutes_is_not_waited_for),
      T(the_ten_minutes_are_those_of_all_that_tried),
      T(a_wait_ends_when_the_restore_is_cancelled),
      T(the_last_one_removes_the_meeting),
      T(what_dead_ones_left_is_removed_and_not_believed),
      T(tasks_of_another_launch_are_not_met),
      T(a_place_that_others_may_enter_is_not_used),
      T(without_a_place_all_is_fetched_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
