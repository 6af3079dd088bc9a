/* reloads: a run whose policies are replaced by others, for the tests of that. */
#ifndef SPEC_RELOADS_H
#define SPEC_RELOADS_H

#include "run_host.h"

/* It keeps the first that it saw, which its memory alone knows. */
#define RELOADS_KEEPS_FIRST                                                                        \
  "return { api = 1, keep = function(list, memory)\n"                                              \
  "  memory.first = memory.first or list[1].name\n"                                                \
  "  local kept = {}\n"                                                                            \
  "  for _, c in ipairs(list) do if c.name == memory.first then kept[1] = c end end\n"             \
  "  return kept, 'the first' end }"

/* A policy that keeps those whose step is a multiple of N; the last two of them are valid. */
const char *reloads_multiples(int n);
const char *reloads_path(run_host *h); /* of the policy's file */
/* The run begins with that policy, and with a grace of so many seconds. */
void reloads_begin(run_host *h, const char *policy, double grace_s);
run_reload_result reloads_await(run_host *h, uint64_t job);
/* Writes the policy into its file, and has it taken; `dry`: only told what would differ. */
run_reload_result reloads_as(run_host *h, const char *text, bool dry);
run_reload_result reloads_take(run_host *h, const char *text);
/* Asks for one that the run refuses at once. */
int reloads_refused(run_host *h, err *e);
/* Until nothing is being removed. */
void reloads_settle(run_host *h);
void reloads_save(run_host *h, int step); /* ckpt-STEP.pt */
void reloads_save_to(run_host *h, int last);

#endif
