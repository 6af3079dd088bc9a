#include "reloads.h"

#include "with_cmocka.h"

#include <stdio.h>

#include "run/run_state.h"
#include "tmpdir.h"

/* Keeps those whose step is a multiple of N. */
const char *reloads_multiples(int n) {
  static char text[2][300];
  static int turn;
  char *to = text[turn++ % 2];
  snprintf(
      to, sizeof text[0],
      "return { api = 1, keep = function(list)\n"
      "  local kept = {}\n"
      "  for _, c in ipairs(list) do if (c.step or 1) %% %d == 0 then kept[#kept + 1] = c end end\n"
      "  return kept, 'by %d' end }",
      n, n);
  return to;
}

const char *reloads_path(run_host *h) {
  return run_host_options(h)->policies[0];
}

void reloads_begin(run_host *h, const char *policy, double grace_s) {
  run_host_options(h)->grace_delete_ns = (int64_t)(grace_s * 1e9);
  run_host_options(h)->max_delete = 1;
  run_host_begin_with(h, policy);
}

run_reload_result reloads_await(run_host *h, uint64_t job) {
  run_reload_result out = {0};
  for (int i = 0; i < 2000 && !out.over; i++) {
    run_host_for(h, 0.005);
    assert_int_equal(run_reloaded(run_host_run(h), job, &out, NULL, NULL, NULL), 0);
  }
  assert_true(out.over);
  return out;
}

run_reload_result reloads_as(run_host *h, const char *text, bool dry) {
  uint64_t job;
  err e = {0};
  write_file(reloads_path(h), text);
  const run_reload_options o = {.dry = dry};
  if (run_reload_ask(run_host_run(h), &o, &job, &e) < 0) fail_msg("%s", e.text);
  return reloads_await(h, job);
}

run_reload_result reloads_take(run_host *h, const char *text) {
  return reloads_as(h, text, false);
}

int reloads_refused(run_host *h, err *e) {
  uint64_t job;
  return run_reload_ask(run_host_run(h), &(run_reload_options){0}, &job, e);
}

void reloads_settle(run_host *h) {
  for (int i = 0; i < 400 && run_host_status(h).keeping; i++) run_host_for(h, 0.005);
  assert_false(run_host_status(h).keeping);
}

void reloads_save(run_host *h, int step) {
  char name[32];
  snprintf(name, sizeof name, "ckpt-%d.pt", step);
  run_host_save(h, name, RUN_COMMITTED);
  reloads_settle(h);
}

void reloads_save_to(run_host *h, int last) {
  for (int i = 1; i <= last; i++) reloads_save(h, i);
}
