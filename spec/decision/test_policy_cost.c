/* What policies are asked most, with the real helper; with BENCH=FILE what more rounds of it cost is
 * written there (make bench-policy). */

#include "with_cmocka.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decision/policy.h"
#include "tmpdir.h"

static const char text[] =
    "return { api = 1, ready = function(e) return e.checkpoint.files > 1 end,\n"
    "  sync = function(e) return (e.checkpoint.step or 0) % 10 == 0 and 'sync' or 'skip' end,\n"
    "  queue = function(e) return e.queue.running and 'newest' or 'all' end,\n"
    "  keep = any { keep.last(3), keep.best('loss', 2, 'min'), keep.daily(7),\n"
    "    keep.every_steps(100000) } }";

static policy_link *link_open;
static policy *chain;
static char *dir;

static int open_chain(void **unused) {
  const char *build = getenv("CKPT_BUILD"), *names[] = {NULL, NULL};
  char libexec[4096];
  err e = {0};
  dir = tmpdir_new();
  snprintf(libexec, sizeof libexec, "%s/libexec", build ? build : "build");
  names[0] = tmpdir_path(dir, "p.lua");
  write_file(names[0], text);
  policy_link_options link = {.libexec = libexec};
  policy_options o = {.io = io_system(), .id = "run-1", .names = names, .quiet_ns = -1};
  int rc = policy_link_open(&link, &link_open, &e);
  o.link = link_open;
  if (rc == 0) rc = policy_open(&o, &chain, &e);
  if (rc < 0) fprintf(stderr, "%s\n", e.text);
  return rc;
}

static int close_chain(void **unused) {
  policy_close(chain);
  policy_link_close(link_open);
  tmpdir_remove(dir);
  return 0;
}

/* ---- figures ---- */

static const char *bench_file(void) {
  return getenv("BENCH");
}

static double seconds(clockid_t clock) {
  struct timespec t;
  return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec / 1e9 : 0;
}

/* What each round cost: from one look at the clocks to the next, so that what the other process does
 * behind its answer is in it. */
typedef struct costs {
  clockid_t other; /* of the other process's CPU time */
  double cpu_at, wall_at, *cpu, *wall;
  size_t count;
} costs;

static void look(costs *c) {
  c->cpu_at = seconds(CLOCK_PROCESS_CPUTIME_ID) + seconds(c->other);
  c->wall_at = seconds(CLOCK_MONOTONIC);
}

static void begin_costs(costs *c, pid_t other, size_t rounds) {
  *c = (costs){.cpu = calloc(rounds, sizeof *c->cpu), .wall = calloc(rounds, sizeof *c->wall)};
  assert_int_equal(clock_getcpuclockid(other, &c->other), 0);
  look(c);
}

static void add_cost(costs *c) {
  costs before = *c;
  look(c);
  c->cpu[c->count] = c->cpu_at - before.cpu_at;
  c->wall[c->count++] = c->wall_at - before.wall_at;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void end_costs(costs *c, const char *what) {
  FILE *out = bench_file() ? fopen(bench_file(), "a") : NULL;
  size_t n = c->count;
  qsort(c->cpu, n, sizeof *c->cpu, by_size);
  qsort(c->wall, n, sizeof *c->wall, by_size);
  if (out) {
    fprintf(out, "%s, %zu times: CPU of both processes p50 %.1f us, p99 %.1f us; ", what, n,
            1e6 * c->cpu[n / 2], 1e6 * c->cpu[n * 99 / 100]);
    fprintf(out, "wall p50 %.1f us, p99 %.1f us\n", 1e6 * c->wall[n / 2],
            1e6 * c->wall[n * 99 / 100]);
    fclose(out);
  }
  free(c->cpu);
  free(c->wall);
}

/* ---- the floor ---- */

enum { QUESTION = 512, ANSWER = 256 };

static void echo(int from, int to) {
  char text[QUESTION] = {0};
  while (read(from, text, sizeof text) > 0 && write(to, text, ANSWER) == ANSWER) continue;
  _exit(0);
}

/* What a question costs of which nothing is thought: no decision in another process can be cheaper. */
static void an_exchange_takes_what_this_machine_takes_for_it(void **unused) {
  char text[QUESTION] = {0};
  int to[2], from[2];
  costs c;
  if (!bench_file()) skip();
  assert_int_equal(pipe2(to, O_CLOEXEC), 0);
  assert_int_equal(pipe2(from, O_CLOEXEC), 0);
  pid_t other = fork();
  if (other == 0) {
    close(to[1]);
    echo(to[0], from[1]);
  }
  close(to[0]);
  close(from[1]);
  struct pollfd answer = {.fd = from[0], .events = POLLIN};
  begin_costs(&c, other, 5000);
  for (int i = 0; i < 5000; i++) {
    assert_int_equal(write(to[1], text, sizeof text), sizeof text);
    assert_int_equal(poll(&answer, 1, -1), 1);
    assert_int_equal(read(from[0], text, sizeof text), ANSWER);
    add_cost(&c);
  }
  end_costs(&c, "the floor: an exchange of 512 bytes and 256 back, and the looks at the clocks");
  close(to[1]);
  close(from[0]);
  assert_int_equal(waitpid(other, NULL, 0), other);
}

/* ---- a decision ---- */

static void a_decision_is_made_by_all_that_is_asked(void **unused) {
  const size_t count = bench_file() ? 5000 : 100;
  char *memory = NULL;
  costs c;
  begin_costs(&c, policy_link_pid(link_open), count);
  for (size_t i = 0; i < count; i++) {
    detect_unit unit = {.path = "checkpoint-100",
                        .name = "checkpoint-100",
                        .group = "",
                        .step = (int64_t)i,
                        .state = DETECT_COMPLETE,
                        .files = 4,
                        .bytes = 1000000,
                        .reason = "renamed"};
    policy_facts facts = {.event = "complete",
                          .group = "",
                          .unit = &unit,
                          .metrics = "{\"loss\":0.5}",
                          .result = "{\"loss\":0.5,\"training_iteration\":7}",
                          .running = i % 2};
    decision d;
    policy_decide(chain, &facts, &memory, &d);
    add_cost(&c);
    assert_int_equal(d.action, i % 10 ? POLICY_SKIP : POLICY_SAVE);
    if (d.action == POLICY_SAVE) assert_int_equal(d.queue, i % 2 ? POLICY_NEWEST : POLICY_ALL);
  }
  assert_int_equal(policy_fallbacks(chain), 0);
  end_costs(&c, "a decision");
  free(memory);
}

/* ---- retention ---- */

enum { ITEMS = 10000 };

static void ten_thousand_are_judged(void **unused) {
#ifdef __SANITIZE_THREAD__
  skip(); /* so long a list takes the reader all the time that a policy has */
#endif
  const size_t count = bench_file() ? 100 : 1;
  policy_item *items = calloc(ITEMS, sizeof *items);
  policy_kept *kept = calloc(ITEMS, sizeof *kept);
  char(*texts)[2][40] = calloc(ITEMS, sizeof *texts);
  costs c;
  for (int i = 0; i < ITEMS; i++) {
    snprintf(texts[i][0], sizeof texts[i][0], "checkpoint-%d", i + 1);
    snprintf(texts[i][1], sizeof texts[i][1], "{\"loss\":%d}", (i + 1) * 7919 % 10007);
    items[i] = (policy_item){.number = (uint64_t)i + 1,
                             .name = texts[i][0],
                             .dir = texts[i][0],
                             .step = i + 1,
                             .time_ns = (1700000000 + (int64_t)i * 600) * 1000000000,
                             .files = 4,
                             .bytes = 1000000,
                             .metrics = texts[i][1],
                             .newest = i + 1 == ITEMS,
                             .durable = true};
  }
  begin_costs(&c, policy_link_pid(link_open), count);
  for (size_t n = 0; n < count; n++) {
    assert_true(policy_select(chain, POLICY_KEEP, "", items, ITEMS, NULL, kept));
    add_cost(&c);
    int left = 0;
    for (int i = 0; i < ITEMS; i++) left += kept[i].keep;
    assert_int_equal(left, 3 + 2 + 6);
    assert_true(kept[ITEMS - 1].keep);
  }
  end_costs(&c, "retention over 10,000 checkpoints");
  free(items);
  free(kept);
  free(texts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_exchange_takes_what_this_machine_takes_for_it),
      cmocka_unit_test(a_decision_is_made_by_all_that_is_asked),
      cmocka_unit_test(ten_thousand_are_judged),
  };
  return cmocka_run_group_tests(tests, open_chain, close_chain);
}
