#include "with_cmocka.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prims/pool.h"

static void pause_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* A gate at which tasks wait, so that a test can hold all workers busy. */
typedef struct gate {
  atomic_int arrived;
  atomic_bool open;
} gate;

static void wait_at_gate(void *arg) {
  gate *g = arg;
  atomic_fetch_add(&g->arrived, 1);
  while (!atomic_load(&g->open)) pause_ms(1);
}

static void hold_workers(pool *p, gate *g) {
  for (unsigned i = 0; i < pool_workers(p); i++) {
    assert_int_equal(pool_submit(p, wait_at_gate, NULL, g, NULL), 0);
    while (atomic_load(&g->arrived) < (int)i + 1) pause_ms(1);
  }
}

static void count(void *arg) {
  atomic_fetch_add((atomic_int *)arg, 1);
}

static void a_full_queue_refuses_at_once_and_loses_nothing(void **state) {
  pool *p = NULL;
  gate g = {0};
  atomic_int done = 0;
  assert_int_equal(pool_open(&p, 2, 3, NULL), 0);
  assert_int_equal(pool_workers(p), 2);
  hold_workers(p, &g);
  for (int i = 0; i < 3; i++) assert_int_equal(pool_submit(p, count, NULL, &done, NULL), 0);
  err e = {0};
  assert_int_equal(pool_submit(p, count, NULL, &done, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, "full"));
  assert_int_equal(atomic_load(&done), 0);
  atomic_store(&g.open, true);
  pool_close(p);
  assert_int_equal(atomic_load(&done), 3);
}

static void open_the_gate_later(void *arg) {
  pause_ms(20);
  atomic_store(&((gate *)arg)->open, true);
}

static void closing_runs_the_tasks_that_still_wait(void **state) {
  pool *p = NULL;
  gate g = {0};
  atomic_int done = 0;
  assert_int_equal(pool_open(&p, 2, 200, NULL), 0);
  assert_int_equal(pool_submit(p, wait_at_gate, NULL, &g, NULL), 0);
  assert_int_equal(pool_submit(p, open_the_gate_later, NULL, &g, NULL), 0);
  for (int i = 0; i < 100; i++) assert_int_equal(pool_submit(p, count, NULL, &done, NULL), 0);
  pool_close(p);
  assert_int_equal(atomic_load(&done), 100);
  pool_close(NULL);
}

typedef struct chain {
  pool *p;
  atomic_int left;
} chain;

static void submit_the_next(void *arg) {
  chain *c = arg;
  if (atomic_fetch_sub(&c->left, 1) > 1)
    assert_int_equal(pool_submit(c->p, submit_the_next, NULL, c, NULL), 0);
}

/* What hangs may come back after the owner is gone: then what waited behind it has its turn. */
static void a_pool_that_is_left_is_waited_for_by_nobody_and_ends_by_itself(void **state) {
  (void)state;
  pool *p = NULL;
  static gate g;
  static atomic_int done;
  assert_int_equal(pool_open(&p, 1, 2, NULL), 0);
  hold_workers(p, &g);
  assert_int_equal(pool_submit(p, count, NULL, &done, NULL), 0);
  pool_leave(p); /* comes back, though the worker stands at the gate */
  assert_int_equal(atomic_load(&done), 0);
  atomic_store(&g.open, true);
  for (int i = 0; i < 10000 && atomic_load(&done) == 0; i++) pause_ms(1);
  assert_int_equal(atomic_load(&done), 1);
  pool_leave(NULL);
}

static void a_task_may_submit_even_while_the_pool_closes(void **state) {
  chain c = {.left = 50};
  assert_int_equal(pool_open(&c.p, 2, 1, NULL), 0);
  assert_int_equal(pool_submit(c.p, submit_the_next, NULL, &c, NULL), 0);
  pool_close(c.p);
  assert_int_equal(atomic_load(&c.left), 0);
}

/* What the owner has heard of, on its own thread. */
typedef struct told {
  pool *p;
  pthread_t owner;
  int order[8], count;
} told;

typedef struct teller {
  told *to;
  int name;
  bool nested; /* its done() waits for the next one's */
} teller;

static void nothing(void *ctx) {
  (void)ctx;
}

static void note(void *ctx) {
  const teller *t = ctx;
  assert_true(pthread_equal(pthread_self(), t->to->owner));
  t->to->order[t->to->count++] = t->name;
  if (t->nested) pool_settle(t->to->p, true);
}

static bool is_readable(const pool *p, int timeout_ms) {
  struct pollfd fd = {.fd = pool_fd(p), .events = POLLIN};
  return poll(&fd, 1, timeout_ms) == 1;
}

static void what_ends_is_settled_on_the_owners_thread_in_the_order_in_which_it_ended(void **state) {
  (void)state;
  told to = {.owner = pthread_self()};
  teller t[4];
  assert_int_equal(pool_open(&to.p, 1, 8, NULL), 0);
  pool_settle(to.p, false);
  assert_false(is_readable(to.p, 0));
  for (int i = 0; i < 4; i++) {
    t[i] = (teller){.to = &to, .name = i};
    assert_int_equal(pool_submit(to.p, nothing, note, &t[i], NULL), 0);
  }
  while (to.count < 4) {
    assert_true(is_readable(to.p, 10000));
    pool_settle(to.p, false);
  }
  for (int i = 0; i < 4; i++) assert_int_equal(to.order[i], i);
  pool_settle(to.p, false);
  assert_false(is_readable(to.p, 0));
  pool_close(to.p);
}

/* Who polls would not come back to what else hangs on it: another run's save, say. */
static void who_waits_for_an_end_leaves_the_descriptor_readable(void **state) {
  (void)state;
  told to = {.owner = pthread_self()};
  teller t = {.to = &to, .name = 7};
  assert_int_equal(pool_open(&to.p, 1, 8, NULL), 0);
  assert_int_equal(pool_submit(to.p, nothing, note, &t, NULL), 0);
  pool_settle(to.p, true);
  assert_int_equal(to.order[0], 7);
  assert_true(is_readable(to.p, 0));
  pool_settle(to.p, false);
  assert_false(is_readable(to.p, 0));
  pool_close(to.p);
}

/* A task may end between a poll, which did not see it, and the call. */
static void who_settles_hears_of_what_no_poll_has_told(void **state) {
  (void)state;
  told to = {.owner = pthread_self()};
  teller t = {.to = &to, .name = 7};
  assert_int_equal(pool_open(&to.p, 1, 8, NULL), 0);
  assert_false(is_readable(to.p, 0));
  assert_false(pool_settle(to.p, false));
  assert_int_equal(pool_submit(to.p, nothing, note, &t, NULL), 0);
  bool heard = false;
  while (to.count == 0) heard = pool_settle(to.p, false);
  assert_true(heard);
  while (pool_settle(to.p, false)) continue; /* its descriptor may have been readable since */
  assert_int_equal(pool_submit(to.p, nothing, note, &t, NULL), 0);
  assert_true(pool_settle(to.p, true));
  assert_true(pool_settle(to.p, false)); /* for others, whose task it may have been */
  assert_false(pool_settle(to.p, false));
  pool_close(to.p);
}

static void an_end_may_wait_for_the_next_one(void **state) {
  (void)state;
  told to = {.owner = pthread_self()};
  teller first = {.to = &to, .name = 1, .nested = true}, second = {.to = &to, .name = 2};
  assert_int_equal(pool_open(&to.p, 1, 8, NULL), 0);
  assert_int_equal(pool_submit(to.p, nothing, note, &first, NULL), 0);
  assert_int_equal(pool_submit(to.p, nothing, note, &second, NULL), 0);
  pool_settle(to.p, true);
  assert_int_equal(to.count, 2);
  assert_int_equal(to.order[1], 2);
  pool_close(to.p);
}

static void what_nobody_settles_goes_with_the_pool(void **state) {
  (void)state;
  told to = {.owner = pthread_self()};
  teller t = {.to = &to};
  assert_int_equal(pool_open(&to.p, 1, 8, NULL), 0);
  assert_int_equal(pool_submit(to.p, nothing, note, &t, NULL), 0);
  pool_close(to.p);
  assert_int_equal(to.count, 0);
}

enum { ITEMS = 2000 };

typedef struct tally {
  atomic_int seen[ITEMS];
  atomic_int now, most;
  size_t fail_at;
} tally;

static int tick(void *ctx, size_t i) {
  tally *t = ctx;
  int now = atomic_fetch_add(&t->now, 1) + 1, most = atomic_load(&t->most);
  while (now > most && !atomic_compare_exchange_weak(&t->most, &most, now)) continue;
  atomic_fetch_add(&t->seen[i], 1);
  if (i % 64 == 0) pause_ms(1);
  atomic_fetch_sub(&t->now, 1);
  return t->fail_at && i >= t->fail_at ? ERR_CORRUPT : 0;
}

static void each_item_runs_once_and_at_most_width_at_a_time(void **state) {
  static tally t;
  pool *p = NULL;
  assert_int_equal(pool_open(&p, 6, 4, NULL), 0);
  const unsigned widths[] = {0, 1, 3, 7, 1000};
  for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
    memset(&t, 0, sizeof t);
    assert_int_equal(pool_each(p, ITEMS, widths[w], tick, &t), 0);
    for (size_t i = 0; i < ITEMS; i++) assert_int_equal(atomic_load(&t.seen[i]), 1);
    int limit = widths[w] < 1 ? 1 : widths[w] < 7 ? (int)widths[w] : 7;
    assert_true(atomic_load(&t.most) <= limit);
    if (widths[w] > 1) assert_true(atomic_load(&t.most) > 1);
  }
  assert_int_equal(pool_each(p, 0, 4, tick, &t), 0);
  pool_close(p);
}

static void a_failed_item_stops_the_hand_out_and_is_returned(void **state) {
  static tally t;
  t.fail_at = 100;
  pool *p = NULL;
  assert_int_equal(pool_open(&p, 3, 4, NULL), 0);
  assert_int_equal(pool_each(p, ITEMS, 4, tick, &t), ERR_CORRUPT);
  int ran = 0;
  for (size_t i = 0; i < ITEMS; i++) ran += atomic_load(&t.seen[i]);
  assert_true(ran > 100 && ran <= 104); /* those that ran beside it are finished */
  assert_int_equal(atomic_load(&t.now), 0);
  pool_close(p);
}

static void each_goes_on_without_help_when_all_workers_are_busy(void **state) {
  static tally t;
  pool *p = NULL;
  gate g = {0};
  assert_int_equal(pool_open(&p, 2, 1, NULL), 0);
  hold_workers(p, &g);
  assert_int_equal(pool_each(p, ITEMS, 8, tick, &t), 0);
  assert_int_equal(atomic_load(&t.most), 1);
  atomic_store(&g.open, true);
  pool_close(p);
}

typedef struct nest {
  pool *p;
  int depth;
  atomic_int leaves;
} nest;

static int descend(void *ctx, size_t i);

static int descend_from(nest *n, int depth) {
  nest below = {.p = n->p, .depth = depth};
  int rc = pool_each(n->p, 4, 4, descend, &below);
  atomic_fetch_add(&n->leaves, atomic_load(&below.leaves));
  return rc;
}

static int descend(void *ctx, size_t i) {
  nest *n = ctx;
  if (n->depth > 1) return descend_from(n, n->depth - 1);
  atomic_fetch_add(&n->leaves, 1);
  return 0;
}

static void nest_in_a_task(void *arg) {
  nest *n = arg;
  assert_int_equal(descend_from(n, 4), 0);
}

static void nested_eachs_on_busy_workers_do_not_deadlock(void **state) {
  for (unsigned workers = 1; workers <= 3; workers++) {
    nest n = {0};
    assert_int_equal(pool_open(&n.p, workers, 64, NULL), 0);
    for (int i = 0; i < 20; i++)
      assert_int_equal(pool_submit(n.p, nest_in_a_task, NULL, &n, NULL), 0);
    assert_int_equal(descend_from(&n, 4), 0);
    pool_close(n.p);
    assert_int_equal(atomic_load(&n.leaves), 21 * 256);
  }
}

static void *call_each(void *arg) {
  static const int rounds = 50;
  for (int i = 0; i < rounds; i++) {
    nest n = {.p = arg, .depth = 1};
    assert_int_equal(pool_each(n.p, 16, 4, descend, &n), 0);
    assert_int_equal(atomic_load(&n.leaves), 16);
  }
  return NULL;
}

static void several_threads_may_share_the_pool(void **state) {
  pool *p = NULL;
  pthread_t threads[4];
  atomic_int done = 0;
  assert_int_equal(pool_open(&p, 3, 1000, NULL), 0);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_each, p), 0);
  for (int i = 0; i < 1000; i++) assert_int_equal(pool_submit(p, count, NULL, &done, NULL), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  pool_close(p);
  assert_int_equal(atomic_load(&done), 1000);
}

static void read_mask(void *arg) {
  pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void signals_are_blocked_in_workers_and_as_before_in_the_caller(void **state) {
  pool *p = NULL;
  sigset_t before, after, in_worker;
  sigemptyset(&in_worker);
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  assert_int_equal(pool_open(&p, 1, 1, NULL), 0);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  assert_int_equal(pool_submit(p, read_mask, NULL, &in_worker, NULL), 0);
  pool_close(p);
  const int asked[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGPIPE, SIGALRM, SIGPROF};
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    assert_int_equal(sigismember(&in_worker, asked[i]), 1);
    assert_int_equal(sigismember(&after, asked[i]), sigismember(&before, asked[i]));
  }
}

static void bad_sizes_are_refused(void **state) {
  pool *p = NULL;
  err e = {0};
  assert_int_equal(pool_open(&p, 0, 1, &e), ERR_INVAL);
  assert_int_equal(pool_open(&p, 65, 1, &e), ERR_INVAL);
  assert_int_equal(pool_open(&p, 1, 0, &e), ERR_INVAL);
  assert_int_equal(pool_open(&p, 1, SIZE_MAX, &e), ERR_INVAL);
  assert_null(p);
  assert_int_equal(pool_open(&p, 64, 1, &e), 0);
  pool_close(p);
}

/* In a child, with little address space: the stacks of 64 threads do not fit. */
static void threads_that_cannot_start_are_an_error_and_leave_nothing(void **state) {
  if (SANITIZED) {
    print_message("skipped: a sanitizer needs terabytes of address space\n");
    skip();
  }
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct rlimit small = {200u << 20, 200u << 20};
    pool *p = NULL;
    err e = {0};
    setrlimit(RLIMIT_AS, &small);
    int rc = pool_open(&p, 64, 1, &e);
    _exit(rc == ERR_LIMIT && !p && strstr(e.text, "worker thread") ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_queue_refuses_at_once_and_loses_nothing),
      cmocka_unit_test(closing_runs_the_tasks_that_still_wait),
      cmocka_unit_test(a_pool_that_is_left_is_waited_for_by_nobody_and_ends_by_itself),
      cmocka_unit_test(a_task_may_submit_even_while_the_pool_closes),
      cmocka_unit_test(what_ends_is_settled_on_the_owners_thread_in_the_order_in_which_it_ended),
      cmocka_unit_test(who_waits_for_an_end_leaves_the_descriptor_readable),
      cmocka_unit_test(who_settles_hears_of_what_no_poll_has_told),
      cmocka_unit_test(an_end_may_wait_for_the_next_one),
      cmocka_unit_test(what_nobody_settles_goes_with_the_pool),
      cmocka_unit_test(each_item_runs_once_and_at_most_width_at_a_time),
      cmocka_unit_test(a_failed_item_stops_the_hand_out_and_is_returned),
      cmocka_unit_test(each_goes_on_without_help_when_all_workers_are_busy),
      cmocka_unit_test(nested_eachs_on_busy_workers_do_not_deadlock),
      cmocka_unit_test(several_threads_may_share_the_pool),
      cmocka_unit_test(signals_are_blocked_in_workers_and_as_before_in_the_caller),
      cmocka_unit_test(bad_sizes_are_refused),
      cmocka_unit_test(threads_that_cannot_start_are_an_error_and_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
