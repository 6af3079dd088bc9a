#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commit/lease.h"
#include "prims/proc.h"
#include "store_lossy.h"
#include "tmpdir.h"

static const char key[] = "g/.ckpt/lease";

/* A store whose clock the test moves. */
static int64_t clock_ns = 1700000000000000000;
static int64_t slept_ns;
static void (*on_nap)(void); /* what happens meanwhile; NULL: nothing */

static void test_sleep(const io *self, int64_t ns) {
  clock_ns += ns;
  slept_ns += ns;
  if (on_nap) on_nap();
}

static int64_t test_now(const io *self, io_clock which) {
  return clock_ns;
}

static io test_io;

static void pass(int64_t seconds) {
  clock_ns += seconds * 1000000000;
}

static store *open_store(const char *where) {
  uri u;
  store *s = NULL;
  test_io = *io_system();
  test_io.now = test_now;
  test_io.sleep = test_sleep;
  slept_ns = 0;
  on_nap = NULL;
  assert_int_equal(uri_parse(where, &u, NULL), 0);
  assert_int_equal(store_open(&u, &test_io, NULL, &s, NULL), 0);
  return s;
}

static runlog_term term_of(const char *launch, const char *job, const char *host, const char *dir) {
  runlog_term t = {.n = 4, .writer = {.pid = 77}};
  snprintf(t.writer.launch, sizeof t.writer.launch, "%s", launch);
  snprintf(t.writer.job, sizeof t.writer.job, "%s", job);
  snprintf(t.writer.host, sizeof t.writer.host, "%s", host);
  snprintf(t.writer.state, sizeof t.writer.state, "%s", dir);
  return t;
}

static void renew(store *s, const runlog_term *t) {
  err e = {0};
  if (lease_renew(s, "g", t->n, &t->writer, &e) != 0) fail_msg("%s", e.text);
}

static int64_t told_s; /* that a lease is waited for */
static void tell(void *ctx, int64_t seconds, bool other) {
  told_s = seconds;
}
static const lease_wait wait = {.begins = tell};

static int check(store *s, const runlog_term *t, const runlog_term *me, bool take_over, err *e) {
  return lease_check(s, "g", t, &me->writer, take_over, &wait, e);
}

static int count_one(void *ctx, const char *name, bool is_prefix, const store_object *object) {
  ++*(int *)ctx;
  return 0;
}

static int objects(store *s) {
  int count = 0;
  assert_int_equal(s->ops->list(s, "g", false, count_one, &count, NULL), 0);
  return count;
}

static void somebody_else_waits_while_the_lease_is_renewed(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "slurm:1", "node\x1b", "/s"), me = term_of("two", "", "b", "/s");
  err e = {0};
  renew(s, &old);
  pass(400);
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "node%1B"));
  assert_non_null(strstr(e.text, "pid 77"));
  assert_non_null(strstr(e.text, "launch one"));
  assert_non_null(strstr(e.text, "slurm:1"));
  assert_non_null(strstr(e.text, "400 s ago"));
  assert_non_null(strstr(e.text, "in 500 s"));
  assert_non_null(strstr(e.text, "`take_over`"));
  assert_int_equal(objects(s), 1); /* the probe is gone */
  renew(s, &old);
  pass(LEASE_LIFE_S - 1);
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  pass(1);
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  store_close(s);
}

static void a_lease_from_the_future_counts_as_fresh(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  err e = {0};
  pass(100000);
  renew(s, &old);
  pass(-100000);
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  assert_non_null(strstr(e.text, " 0 s ago"));
  store_close(s);
}

static runlog_term on_machine(runlog_term t, const char *machine, const char *boot,
                              const char *place) {
  snprintf(t.writer.machine, sizeof t.writer.machine, "%s", machine);
  snprintf(t.writer.boot, sizeof t.writer.boot, "%s", boot);
  snprintf(t.writer.place, sizeof t.writer.place, "%s", place);
  return t;
}

static void the_same_job_takes_over_at_once(void **state) {
  static const struct {
    const char *launch, *job, *machine, *boot, *place;
    int code;
  } cases[] = {
      {"L", "J", "M", "B", "P", 0},        {"L", "", "", "", "", 0},
      {"x", "J", "x", "x", "x", 0},        {"x", "x", "M", "B", "P", 0},
      {"x", "x", "M", "B", "x", ERR_HELD}, {"x", "x", "x", "B", "P", ERR_HELD},
      {"x", "x", "", "B", "P", ERR_HELD},  {"", "", "", "", "", ERR_HELD},
      {"x", "", "M", "B", "", ERR_HELD},
  };
  store *s = open_store("mem://lease");
  runlog_term old = on_machine(term_of("L", "J", "H", "S"), "M", "B", "P");
  renew(s, &old);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    /* The host's name and the state's path are always the same: they prove nothing. */
    runlog_term me = on_machine(term_of(cases[i].launch, cases[i].job, "H", "S"), cases[i].machine,
                                cases[i].boot, cases[i].place);
    assert_int_equal(check(s, &old, &me, false, NULL), cases[i].code);
    assert_int_equal(check(s, &old, &me, true, NULL), 0);
  }
  assert_int_equal(slept_ns, 0);
  /* What both do not say is not the same, but for the id of a machine that has none. */
  runlog_term blank = term_of("", "", "", "");
  assert_int_equal(check(s, &blank, &blank, false, NULL), ERR_HELD);
  runlog_term nameless = on_machine(blank, "", "B", "P");
  assert_int_equal(check(s, &nameless, &nameless, false, NULL), 0);
  store_close(s);
}

/* A process that has ended, under a number that is nobody's or another one's by now. */
static runlog_term of_dead(runlog_term t, const char *place) {
  t = on_machine(t, "M", "B", place);
  snprintf(t.writer.pids, sizeof t.writer.pids, "N");
  t.writer.pid = getpid();
  t.writer.start = 1; /* we have begun later */
  return t;
}

static void that_its_process_is_gone_is_said_of_the_same_space_alone(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = of_dead(term_of("one", "", "H", "/s"), "P1");
  runlog_term me = of_dead(term_of("two", "", "H", "/t"), "P2");
  err e = {0};
  renew(s, &old);
  pass(300);
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  assert_null(strstr(e.text, "alive"));
  assert_non_null(strstr(e.text, "the last writer's process is gone"));
  assert_non_null(strstr(e.text, "in 600 s"));
  assert_non_null(strstr(e.text, "its state /s"));
  assert_non_null(strstr(e.text, "`take_over`"));
  assert_int_equal(check(s, &old, &me, true, &e), 0);
  runlog_term others[6];
  for (size_t i = 0; i < 6; i++) others[i] = me;
  strcpy(others[0].writer.pids, "another");
  strcpy(others[1].writer.pids, "");
  strcpy(others[2].writer.boot, "another");
  strcpy(others[3].writer.host, "another");
  strcpy(others[4].writer.machine, "another");
  strcpy(others[5].writer.boot, "");
  for (size_t i = 0; i < 6; i++) {
    if (i == 2 || i == 5) strcpy(others[i].writer.machine, "x"); /* or its end is waited for */
    assert_int_equal(check(s, &old, &others[i], false, &e), ERR_HELD);
    assert_non_null(strstr(e.text, "another writer is alive"));
  }
  /* One of an older version says nothing of its space. */
  runlog_term older = old;
  older.writer.pids[0] = 0;
  assert_int_equal(check(s, &older, &me, false, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "another writer is alive"));
  store_close(s);
}

static void of_one_that_lives_or_whose_lease_is_another_ones_it_is_not_said(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = of_dead(term_of("one", "", "H", "/s"), "P1");
  runlog_term me = of_dead(term_of("two", "", "H", "/t"), "P2");
  err e = {0};
  runlog_term alive = old;
  assert_int_equal(proc_identity(getpid(), &alive.writer.start, NULL, NULL), 0);
  renew(s, &alive);
  assert_int_equal(check(s, &alive, &me, false, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "another writer is alive"));
  runlog_term newer = old; /* whose lease an older one has just put its own over */
  newer.n = old.n + 1;
  assert_int_equal(check(s, &newer, &me, false, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "another writer is alive"));
  store_close(s);
}

static store *renewed_in;
static runlog_term renewed_by;
static int64_t renewed_at_ns;

static void renew_then(void) {
  if (clock_ns < renewed_at_ns) return;
  renewed_at_ns = INT64_MAX;
  renew(renewed_in, &renewed_by);
}

static void release_then(void) {
  if (clock_ns < renewed_at_ns) return;
  renewed_at_ns = INT64_MAX;
  lease_release(renewed_in, "g", renewed_by.n, &renewed_by.writer, NULL);
}

static void after_a_reboot_the_lease_is_waited_for(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = on_machine(term_of("one", "", "a", "/s"), "M", "B1", "P1"),
              me = on_machine(term_of("two", "", "b", "/t"), "M", "B2", "P2");
  err e = {0};
  renew(s, &old);
  pass(400);
  assert_int_equal(check(s, &old, &me, true, &e), 0); /* asked to, it does not wait */
  assert_int_equal(slept_ns, 0);
  assert_int_equal(told_s, 0);
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  assert_int_equal(told_s, 500);
  assert_true(slept_ns >= (int64_t)500 * 1000000000 && slept_ns < (int64_t)540 * 1000000000);
  slept_ns = 0;
  assert_int_equal(check(s, &old, &me, false, &e), 0); /* it is over */
  assert_int_equal(slept_ns, 0);
  /* A clone of that machine is alive: it is seen at the next look. */
  renew(s, &old);
  renewed_in = s, renewed_by = old, renewed_at_ns = clock_ns + (int64_t)299 * 1000000000;
  on_nap = renew_then;
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "`take_over`"));
  assert_true(slept_ns <= (int64_t)331 * 1000000000);
  /* Or it ends well meanwhile. */
  slept_ns = 0;
  renewed_at_ns = clock_ns + (int64_t)20 * 1000000000;
  on_nap = release_then;
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  assert_true(slept_ns <= (int64_t)31 * 1000000000);
  store_close(s);
}

static char said[2048];

static void hear(void *ctx, log_level level, const char *text) {
  snprintf(said, sizeof said, "%s", text);
}

/* Containers of one image, and machines that were cloned, have one id. */
static void a_wait_for_another_boot_does_not_claim_that_it_was_this_machine(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = on_machine(term_of("one", "", "node-a", "/s"), "M", "B1", "P1"),
              me = on_machine(term_of("two", "", "node-b", "/t"), "M", "B2", "P2");
  err e = {0};
  s->log.fn = hear;
  renew(s, &old);
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  assert_non_null(strstr(said, "host node-a"));
  assert_non_null(strstr(said, "another host with the /etc/machine-id of this one"));
  assert_null(strstr(said, "started anew"));
  snprintf(me.writer.host, sizeof me.writer.host, "node-a");
  renew(s, &old);
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  assert_non_null(strstr(said, "on this machine before it was started anew, or on another one with "
                               "its name and /etc/machine-id"));
  store_close(s);
}

static void a_wait_for_a_lease_can_be_canceled(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = on_machine(term_of("one", "", "a", "/s"), "M", "B1", "P"),
              me = on_machine(term_of("two", "", "a", "/s"), "M", "B2", "P");
  err e = {0};
  atomic_int stop = 1;
  renew(s, &old);
  s->cancel = &stop;
  assert_int_equal(check(s, &old, &me, false, &e), ERR_CANCELED);
  s->cancel = NULL;
  store_close(s);
}

static void without_a_term_or_a_lease_nobody_waits(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  assert_int_equal(check(s, &old, &me, false, NULL), 0);
  assert_int_equal(objects(s), 0);
  renew(s, &old);
  old.n = RUNLOG_NONE;
  assert_int_equal(check(s, &old, &me, false, NULL), 0);
  store_close(s);
}

static void a_broken_lease_is_held_by_somebody_unknown(void **state) {
  char *large = malloc(100000);
  memset(large, ' ', 99999);
  large[99999] = 0;
  const char *const texts[] = {
      "",
      "{",
      "[]",
      "null",
      "{\"format\":0,\"reader\":0}",
      "{\"format\":9,\"reader\":9}",
      large,
      "{\"format\":0,\"reader\":0,\"term\":4,\"host\":\"%0\",\"pid\":1,\"launch\":\"\"}",
  };
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    err e = {0};
    assert_int_equal(s->ops->put(s, key, texts[i], strlen(texts[i]), STORE_REPLACE, NULL), 0);
    pass(100);
    assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
    assert_non_null(strstr(e.text, "unknown"));
    assert_non_null(strstr(e.text, "100 s ago"));
    assert_int_equal(lease_release(s, "g", 4, &old.writer, NULL), 0);
    assert_int_equal(objects(s), 1); /* not known to be ours, so it stays */
    pass(LEASE_LIFE_S);
    assert_int_equal(check(s, &old, &me, false, NULL), 0);
  }
  store_close(s);
  free(large);
}

static void only_our_own_lease_is_released(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  assert_int_equal(lease_release(s, "g", 4, &old.writer, NULL), 0); /* there is none */
  assert_int_equal(objects(s), 0);
  renew(s, &old);
  assert_int_equal(lease_release(s, "g", 3, &old.writer, NULL), 0);
  assert_int_equal(lease_release(s, "g", 5, &old.writer, NULL), 0);
  assert_int_equal(check(s, &old, &me, false, NULL), ERR_HELD);
  assert_int_equal(lease_release(s, "g", 4, &old.writer, NULL), 0);
  assert_int_equal(check(s, &old, &me, false, NULL), 0);
  store_close(s);
}

/* The old launch looks, the new one opens its term and writes its lease, the old one releases. */
static void a_release_that_comes_late_lets_nobody_push_the_new_term_aside(void **state) {
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "", "a", "/s"), now = term_of("two", "", "b", "/s"),
              me = term_of("three", "", "c", "/s");
  lease_seen seen;
  buf late;
  buf_init(&late, 4096);
  now.n = 5;
  renew(s, &old);
  assert_int_equal(lease_release(s, "g", 4, &old.writer, NULL), 0);
  assert_int_equal(s->ops->get(s, key, &late, NULL), 0);
  renew(s, &now);
  assert_int_equal(s->ops->put(s, key, late.data, late.len, STORE_REPLACE, NULL), 0);
  assert_int_equal(check(s, &now, &me, false, NULL), ERR_HELD);
  assert_int_equal(lease_look(s, "g", 5, &seen, NULL), 0);
  assert_true(seen.present && !seen.released);
  assert_int_equal(lease_look(s, "g", 4, &seen, NULL), 0);
  assert_true(seen.released);
  buf_free(&late);
  store_close(s);
}

static void a_lease_that_cannot_be_read_stops_the_check(void **state) {
  store *s = open_store("mem://lease");
  store_lossy *lossy = store_lossy_new(s, 1, true);
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  err e = {0};
  renew(s, &old);
  lossy->deaf = 1000;
  assert_int_equal(check(&lossy->base, &old, &me, false, &e), ERR_IO);
  assert_non_null(strstr(e.text, "lease"));
  lossy->deaf = 0;
  lossy->never = 1000;
  assert_int_equal(check(&lossy->base, &old, &me, false, &e), ERR_IO);
  assert_int_equal(lease_renew(&lossy->base, "g", 4, &old.writer, &e), ERR_IO);
  store_lossy_free(lossy);
  store_close(s);
}

static void a_file_stores_own_clock_is_the_one_that_counts(void **state) {
  char *dir = tmpdir_new(), path[500];
  store *s = open_store(dir); /* its clock says 2023; the files' times are of today */
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  err e = {0};
  renew(s, &old);
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  snprintf(path, sizeof path, "%s/%s", dir, key);
  struct timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= LEASE_LIFE_S + 5;
  times[1] = times[0];
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  renew(s, &old);
  assert_int_equal(check(s, &old, &me, false, &e), ERR_HELD);
  assert_int_equal(lease_release(s, "g", 4, &old.writer, NULL), 0);
  assert_int_equal(check(s, &old, &me, false, &e), 0);
  store_close(s);
  tmpdir_remove(dir);
}

static void another_writers_end_is_waited_for_where_that_is_wanted(void **state) {
  const int64_t second = 1000000000;
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/t");
  err e = {0};
  renew(s, &old);
  lease_wait patient = {.begins = tell, .until_ns = clock_ns + 600 * second};
  renewed_in = s, renewed_by = old, renewed_at_ns = clock_ns + 20 * second;
  on_nap = release_then;
  told_s = 0;
  assert_int_equal(lease_check(s, "g", &old, &me.writer, false, &patient, &e), 0);
  assert_int_equal(told_s, 600);
  assert_true(slept_ns >= 20 * second && slept_ns < 60 * second);

  on_nap = NULL; /* it is not longer waited for than was said */
  slept_ns = 0;
  renew(s, &old);
  patient.until_ns = clock_ns + 100 * second;
  assert_int_equal(lease_check(s, "g", &old, &me.writer, false, &patient, &e), ERR_HELD);
  assert_true(slept_ns >= 99 * second && slept_ns <= 100 * second);

  slept_ns = 0; /* a lease that runs out is over */
  renew(s, &old);
  pass(LEASE_LIFE_S - 50);
  patient.until_ns = clock_ns + 1000 * second;
  assert_int_equal(lease_check(s, "g", &old, &me.writer, false, &patient, &e), 0);
  assert_true(slept_ns < 100 * second);
  store_close(s);
}

static const char *over_job;
static bool says_over(void *ctx, const char *job) {
  return strcmp(job, over_job) == 0;
}

static void a_writer_whose_job_is_over_is_not_waited_for(void **state) {
  const int64_t second = 1000000000;
  store *s = open_store("mem://lease");
  runlog_term old = term_of("one", "slurm:a/1", "a", "/s"), me = term_of("two", "", "b", "/t");
  lease_wait patient = {.over = says_over, .until_ns = clock_ns + 60 * second};
  renew(s, &old);
  over_job = "slurm:a/2";
  assert_int_equal(lease_check(s, "g", &old, &me.writer, false, &patient, NULL), ERR_HELD);
  slept_ns = 0;
  over_job = "slurm:a/1";
  patient.until_ns = clock_ns + 60 * second;
  assert_int_equal(lease_check(s, "g", &old, &me.writer, false, &patient, NULL), 0);
  assert_int_equal(slept_ns, 0);
  patient.until_ns = 0; /* nobody asked to wait: the user is */
  assert_int_equal(lease_check(s, "g", &old, &me.writer, false, &patient, NULL), ERR_HELD);
  store_close(s);
}

static void a_key_that_is_too_long_is_refused(void **state) {
  store *s = open_store("mem://lease");
  char prefix[STORE_KEY_MAX] = {0};
  runlog_term old = term_of("one", "", "a", "/s"), me = term_of("two", "", "b", "/s");
  memset(prefix, 'p', sizeof prefix - 1);
  assert_int_equal(lease_check(s, prefix, &old, &me.writer, false, NULL, NULL), ERR_LIMIT);
  assert_int_equal(lease_renew(s, prefix, 4, &old.writer, NULL), ERR_LIMIT);
  assert_int_equal(lease_release(s, prefix, 4, &old.writer, NULL), ERR_LIMIT);
  store_close(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(somebody_else_waits_while_the_lease_is_renewed),
      cmocka_unit_test(a_lease_from_the_future_counts_as_fresh),
      cmocka_unit_test(the_same_job_takes_over_at_once),
      cmocka_unit_test(that_its_process_is_gone_is_said_of_the_same_space_alone),
      cmocka_unit_test(of_one_that_lives_or_whose_lease_is_another_ones_it_is_not_said),
      cmocka_unit_test(after_a_reboot_the_lease_is_waited_for),
      cmocka_unit_test(a_wait_for_another_boot_does_not_claim_that_it_was_this_machine),
      cmocka_unit_test(a_wait_for_a_lease_can_be_canceled),
      cmocka_unit_test(another_writers_end_is_waited_for_where_that_is_wanted),
      cmocka_unit_test(a_writer_whose_job_is_over_is_not_waited_for),
      cmocka_unit_test(without_a_term_or_a_lease_nobody_waits),
      cmocka_unit_test(a_broken_lease_is_held_by_somebody_unknown),
      cmocka_unit_test(only_our_own_lease_is_released),
      cmocka_unit_test(a_release_that_comes_late_lets_nobody_push_the_new_term_aside),
      cmocka_unit_test(a_lease_that_cannot_be_read_stops_the_check),
      cmocka_unit_test(a_file_stores_own_clock_is_the_one_that_counts),
      cmocka_unit_test(a_key_that_is_too_long_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
