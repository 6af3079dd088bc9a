#include "with_cmocka.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/ckpt_state.h"
#include "tmpdir.h"

enum { MS = 1000000 };

/* ---- a host that keeps what it was told, and a clock that the test moves ---- */

enum { TOLD = 256 };

static struct {
  ckpt_progress told[TOLD];
  char unit[TOLD][32];
  size_t count;
  atomic_int inside; /* calls that run now */
  atomic_bool hold;  /* the next call waits for `go` */
  sem_t held, go;
} host;

static void on_progress(void *ctx, const ckpt_progress *p) {
  if (ctx != &host || p->size != sizeof *p || atomic_fetch_add(&host.inside, 1) != 0) abort();
  if (host.count == TOLD) abort();
  host.told[host.count] = *p;
  snprintf(host.unit[host.count++], sizeof *host.unit, "%s", p->unit);
  if (atomic_exchange(&host.hold, false)) {
    sem_post(&host.held);
    sem_wait(&host.go);
  }
  atomic_fetch_sub(&host.inside, 1);
}

static _Atomic int64_t clock_ns;

static int64_t made_up_now(const io *io, io_clock clock) {
  return atomic_load(&clock_ns);
}

static io made_up;
static ckpt_teller teller;
static const progress_sink *sink;

/* A checkpoint of one file. */
static manifest_entry file = {.name = "model.bin", .size = 1000000};
static manifest made = {.unit = "checkpoint-3", .entries = &file, .count = 1};

static int set_up(void **state) {
  memset(&host, 0, sizeof host);
  sem_init(&host.held, 0, 0);
  sem_init(&host.go, 0, 0);
  made_up = *io_system();
  made_up.now = made_up_now;
  clock_ns = 5 * (int64_t)1000 * MS;
  ckpt_teller_open(&teller, &made_up, on_progress, &host);
  sink = ckpt_teller_sink(&teller);
  alarm(60); /* instead of a deadlock */
  return 0;
}

static int tear_down(void **state) {
  ckpt_teller_close(&teller);
  sem_destroy(&host.held);
  sem_destroy(&host.go);
  alarm(0);
  return 0;
}

static void moved(uint64_t bytes) {
  sink->moved(sink->ctx, bytes);
}

static const ckpt_progress *last(void) {
  assert_true(host.count > 0);
  return &host.told[host.count - 1];
}

/* ---- how often ---- */

static void where_nobody_listens_there_is_nothing_to_tell(void **state) {
  ckpt_teller deaf;
  ckpt_teller_open(&deaf, io_system(), NULL, NULL);
  assert_null(ckpt_teller_sink(&deaf));
  ckpt_teller_close(&deaf);
}

static void it_is_told_at_most_four_times_a_second(void **state) {
  sink->begin(sink->ctx, "restore", &made);
  assert_int_equal(host.count, 1); /* at once, so that a host knows when it began */
  assert_int_equal(host.told[0].bytes, 0);
  for (int i = 0; i < 10000; i++) { /* ten seconds */
    clock_ns += MS;
    moved(100);
  }
  assert_int_equal(host.count, 1 + 40);
  for (size_t i = 1; i < host.count; i++)
    assert_int_equal(host.told[i].bytes - host.told[i - 1].bytes, 25000);
}

static void the_end_is_told_whatever_the_time_is(void **state) {
  sink->begin(sink->ctx, "restore", &made);
  moved(600000);
  moved(400000);
  assert_int_equal(host.count, 1);
  sink->end(sink->ctx);
  assert_int_equal(host.count, 2);
  assert_int_equal(last()->over, 1);
  assert_int_equal(last()->bytes, 1000000);
  assert_int_equal(last()->total, 1000000);
  assert_int_equal(last()->files, 1);
  assert_string_equal(last()->what, "restore");
  assert_string_equal(host.unit[1], "checkpoint-3");
}

static void many_small_checkpoints_have_their_ends_and_share_the_rest(void **state) {
  unsigned ends = 0;
  for (int i = 0; i < 100; i++) { /* a second */
    sink->begin(sink->ctx, "verify", &made);
    clock_ns += 5 * MS;
    moved(1000);
    clock_ns += 5 * MS;
    sink->end(sink->ctx);
    assert_int_equal(last()->bytes, 1000); /* of this one alone */
  }
  for (size_t i = 0; i < host.count; i++) ends += host.told[i].over;
  assert_int_equal(ends, 100);
  assert_in_range(host.count - ends, 3, 5);
}

/* ---- threads ---- */

enum { MOVERS = 4, STEPS = 20000 };

static void *move_much(void *arg) {
  for (int i = 0; i < STEPS; i++) {
    atomic_fetch_add(&clock_ns, MS / 8);
    moved(3);
  }
  return arg;
}

static void of_many_threads_one_tells_and_no_byte_is_lost(void **state) {
  pthread_t movers[MOVERS];
  sink->begin(sink->ctx, "restore", &made);
  for (int i = 0; i < MOVERS; i++) pthread_create(&movers[i], NULL, move_much, NULL);
  for (int i = 0; i < MOVERS; i++) pthread_join(movers[i], NULL);
  sink->end(sink->ctx);
  assert_int_equal(last()->bytes, 3 * MOVERS * STEPS);
  assert_in_range(host.count, 10, 2 + 40); /* ten seconds */
  for (size_t i = 1; i < host.count; i++) assert_true(host.told[i].bytes >= host.told[i - 1].bytes);
}

static void a_host_that_takes_its_time_holds_up_nobody_else(void **state) {
  pthread_t mover;
  sink->begin(sink->ctx, "restore", &made);
  clock_ns += 1000 * (int64_t)MS;
  atomic_store(&host.hold, true);
  pthread_create(&mover, NULL, move_much, NULL);
  sem_wait(&host.held);
  size_t before = host.count;
  for (int i = 0; i < 1000; i++) {
    clock_ns += 1000 * (int64_t)MS;
    moved(5);
  }
  assert_int_equal(host.count, before);
  sem_post(&host.go);
  pthread_join(mover, NULL);
  sink->end(sink->ctx);
  assert_int_equal(last()->bytes, 3 * STEPS + 5000);
}

/* ---- through ckpt.h ---- */

static char *top;

static void must(ckpt *c, int rc) {
  if (rc < 0) fail_msg("%s: %s", ckpt_status_name(rc), ckpt_error(c));
}

static char *in(char room[400], const char *name) {
  snprintf(room, 400, "%s/%s", top, name);
  return room;
}

/* Opens a run on <top>/<dir>, with a state of its own, and makes the directory ready. */
static ckpt_run *open_run(ckpt *c, const char *dir, const char *state, uint32_t flags) {
  char where[400], to[400], state_dir[400];
  ckpt_run *run;
  ckpt_run_options o = {.size = sizeof o,
                        .dir = in(where, dir),
                        .to = in(to, "store"),
                        .state = in(state_dir, state),
                        .run_id = "test",
                        .quiet_s = -1,
                        .flags = flags};
  ckpt_prepare_options how = {.size = sizeof how};
  ckpt_prepared prepared = {.size = sizeof prepared};
  must(c, ckpt_run_open(c, &run, &o));
  must(c, ckpt_run_prepare(run, &how, &prepared));
  return run;
}

static void commit_one(ckpt *c) {
  ckpt_completion done = {.size = sizeof done};
  ckpt_run *run = open_run(c, "dir", "state", 0);
  must(c, ckpt_run_start(run));
  write_file(tmpdir_path(top, "dir/ckpt-3.pt"), "weights");
  time_t end = time(NULL) + 20;
  while (done.kind != CKPT_COMMITTED) {
    assert_true(time(NULL) < end);
    must(c, ckpt_dispatch(c, 100));
    while (done.kind != CKPT_COMMITTED && ckpt_next(c, &done) == 1) continue;
  }
  ckpt_run_close(run);
}

static void must_have_told(const char *what, uint64_t bytes) {
  assert_string_equal(last()->what, what);
  assert_string_equal(host.unit[host.count - 1], "ckpt-3.pt");
  assert_int_equal(last()->over, 1);
  assert_int_equal(last()->bytes, bytes);
  assert_int_equal(last()->total, strlen("weights"));
  assert_int_equal(last()->files, 1);
  host.count = 0;
}

static void each_call_that_moves_data_tells_of_it(void **state) {
  char out[400], to[400];
  ckpt *c;
  top = tmpdir_new();
  ckpt_options o = {.size = sizeof o, .progress = on_progress, .progress_ctx = &host};
  must(NULL, ckpt_open(&c, &o));
  commit_one(c);
  assert_int_equal(host.count, 0); /* an upload has its own way: ckpt_run_pending */
  ckpt_restore_options restore = {
      .size = sizeof restore, .uri = in(to, "store"), .dir = in(out, "out"), .flags = CKPT_DRY_RUN};
  must(c, ckpt_restore(c, &restore, NULL, NULL));
  assert_int_equal(host.count, 0);
  restore.flags = 0;
  must(c, ckpt_restore(c, &restore, NULL, NULL));
  must_have_told("restore", 7);
  ckpt_run_close(open_run(c, "other", "state2", 0)); /* an empty directory */
  must_have_told("restore", 7);
  ckpt_run_close(open_run(c, "dir", "state3", 0)); /* nothing is remembered of what is there */
  must_have_told("check", 7);
  must(c, ckpt_verify(c, to, NULL, NULL, NULL));
  must_have_told("verify", 7);
  must(c, ckpt_verify(c, to, "ckpt-3.pt", NULL, NULL));
  must_have_told("verify", 7);
  write_file(tmpdir_path(top, "store/ckpt-3.pt/ckpt-3.pt"), "WEIGHTS");
  assert_int_equal(ckpt_verify(c, to, NULL, NULL, NULL), CKPT_ECORRUPT);
  must_have_told("verify", 0);
  restore.dir = in(out, "out2");
  assert_int_equal(ckpt_restore(c, &restore, NULL, NULL), CKPT_ECORRUPT);
  must_have_told("restore", 0);
  ckpt_close(c);
  tmpdir_remove(top);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(where_nobody_listens_there_is_nothing_to_tell),
      TEST(it_is_told_at_most_four_times_a_second),
      TEST(the_end_is_told_whatever_the_time_is),
      TEST(many_small_checkpoints_have_their_ends_and_share_the_rest),
      TEST(of_many_threads_one_tells_and_no_byte_is_lost),
      TEST(a_host_that_takes_its_time_holds_up_nobody_else),
      TEST(each_call_that_moves_data_tells_of_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
