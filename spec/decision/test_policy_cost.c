/* What policies are asked most, with the real helper; with BENCH=FILE what more rounds of it cost is
 * written there (make bench-policy). */

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of this process and of the helper. */
static double cpu_s(void) {
  clockid_t helper;
  if (clock_getcpuclockid(policy_link_pid(link_open), &helper) != 0) return 0;
  return seconds(CLOCK_PROCESS_CPUTIME_ID) + seconds(helper);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void write_figures(const char *what, double *took, size_t count, double wall, bool first) {
  FILE *out = bench_file() ? fopen(bench_file(), first ? "w" : "a") : NULL;
  qsort(took, count, sizeof *took, by_size);
  if (!out) return;
  fprintf(out, "%s: %zu times; CPU of both processes p50 %.1f us, p99 %.1f us; wall %.1f us\n",
          what, count, 1e6 * took[count / 2], 1e6 * took[count * 99 / 100],
          1e6 * wall / (double)count);
  fclose(out);
}

/* ---- a decision ---- */

static void a_decision_is_made_by_all_that_is_asked(void **unused) {
  const size_t count = bench_file() ? 5000 : 100;
  double *took = calloc(count, sizeof *took), began = seconds(CLOCK_MONOTONIC);
  char *memory = NULL;
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
    double before = cpu_s();
    policy_decide(chain, &facts, &memory, &d);
    took[i] = cpu_s() - before;
    assert_int_equal(d.action, i % 10 ? POLICY_SKIP : POLICY_SAVE);
    if (d.action == POLICY_SAVE) assert_int_equal(d.queue, i % 2 ? POLICY_NEWEST : POLICY_ALL);
  }
  assert_int_equal(policy_fallbacks(chain), 0);
  write_figures("a decision", took, count, seconds(CLOCK_MONOTONIC) - began, true);
  free(memory);
  free(took);
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
  double *took = calloc(count, sizeof *took), began = seconds(CLOCK_MONOTONIC);
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
  for (size_t n = 0; n < count; n++) {
    double before = cpu_s();
    assert_true(policy_select(chain, POLICY_KEEP, "", items, ITEMS, NULL, kept));
    took[n] = cpu_s() - before;
    int left = 0;
    for (int i = 0; i < ITEMS; i++) left += kept[i].keep;
    assert_int_equal(left, 3 + 2 + 6);
    assert_true(kept[ITEMS - 1].keep);
  }
  write_figures("retention over 10,000 checkpoints", took, count, seconds(CLOCK_MONOTONIC) - began,
                false);
  free(items);
  free(kept);
  free(texts);
  free(took);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_decision_is_made_by_all_that_is_asked),
      cmocka_unit_test(ten_thousand_are_judged),
  };
  return cmocka_run_group_tests(tests, open_chain, close_chain);
}
