/* sim [--trace] [--results] [--repairs | --ranks | --shared] [FIRST [COUNT]]: runs that many schedules, and prints what was seen in
 * them. --trace: prints what happens, too. --results: only results are judged, not each rule.
 * --repairs: entries of the log are lost, and repaired. --ranks: ranks end, fall silent and come back.
 * --shared: tasks write into one directory. sim --seeds N...: runs those. Exit 3: a violation, with its seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"
#include "shared.h"
#include "sim.h"

enum {
  BATCH = 200,
  BATCH_SHARED = 50,
  BATCH_CPU_S = 60 /* it takes one or two; of tasks, twenty */
};

sim_counts *sim_count;
static void (*play)(uint64_t seed) = schedule_run;
static uint64_t batch = BATCH; /* tasks look who of this machine writes, which takes long */

static void print_counts(void) {
  const sim_counts *c = sim_count;
#define SHOW(name) printf("  %-16s %10llu\n", #name, (unsigned long long)c->name)
  SHOW(schedules);
  SHOW(steps);
  SHOW(jobs);
  SHOW(commits);
  SHOW(rank_commits);
  SHOW(beside);
  SHOW(failures);
  SHOW(lost_requests);
  SHOW(lost_replies);
  SHOW(refused);
  SHOW(late);
  SHOW(late_made);
  SHOW(crashes);
  SHOW(pauses);
  SHOW(clock_jumps);
  SHOW(takeovers);
  SHOW(fenced);
  SHOW(held);
  SHOW(other_runs);
  SHOW(resumed);
  SHOW(swept_by_guests);
  SHOW(visits);
  SHOW(backups);
  SHOW(swaps);
  SHOW(readers);
  SHOW(read_whole);
  SHOW(read_gone);
  SHOW(pinned_reads);
  SHOW(robbed);
  SHOW(disasters);
  SHOW(lost);
  SHOW(torn);
  SHOW(repairs);
  SHOW(mended);
  SHOW(epochs);
  SHOW(plugs);
  SHOW(promised);
  SHOW(removals);
  SHOW(forsaken);
  SHOW(let_go);
  SHOW(passed_over);
  SHOW(waited);
  SHOW(led);
  SHOW(frozen);
  SHOW(came_back);
  SHOW(parts_read);
  SHOW(wholes_read);
  SHOW(agreed);
  SHOW(all_gone);
  SHOW(unknown);
  for (int t = 0; t < JUDGE_TYPES; t++)
    printf("  entry %-10s %10llu\n", judge_types[t], (unsigned long long)c->entries[t]);
}

/* A batch has a process of its own, so that a schedule that breaks the engine breaks that one, and
 * one that never comes back ends. */
static int run_batch(uint64_t first, uint64_t count) {
  int status;
  fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) return 2;
  if (pid == 0) {
    setrlimit(RLIMIT_CPU, &(struct rlimit){BATCH_CPU_S, BATCH_CPU_S + 1});
    for (uint64_t i = 0; i < count; i++) play(first + i);
    judge_clear();
    late_clear();
    space_clear();
    fflush(stdout);
    exit(0);
  }
  if (waitpid(pid, &status, 0) < 0) return 2;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  printf("violation: seeds %llu to %llu: killed by signal %d\n", (unsigned long long)first,
         (unsigned long long)(first + count - 1), WTERMSIG(status));
  return 3;
}

static bool seen_of_ranks(void) {
  const sim_counts *c = sim_count;
  return c->forsaken > 0 && c->let_go > 0 && c->passed_over > 0 && c->led > 0 && c->frozen > 0 &&
         c->came_back > 0 && c->parts_read > 0 && c->wholes_read > 0;
}

/* Schedules in which nothing happens prove nothing. */
static bool seen_all(void) {
  if (play == ranks_run) return seen_of_ranks();
  if (play == shared_run)
    return sim_count->agreed > 0 && sim_count->all_gone > 0 && sim_count->unknown > 0;
  bool all = sim_count->takeovers > 0 && sim_count->beside > 0;
  all &= sim_repairs ? sim_count->epochs > 0 && sim_count->plugs > 0 && sim_count->promised > 0 &&
                           sim_count->removals > 0
                     : sim_count->robbed > 0;
  for (int t = 0; t < JUDGE_TYPES; t++) {
    if (sim_count->entries[t]) continue;
    printf("never seen: an entry %s\n", judge_types[t]);
    all = false;
  }
  return all;
}

static int run_from(uint64_t first, uint64_t count) {
  int rc = 0;
  for (uint64_t done = 0; rc == 0 && done < count; done += batch)
    rc = run_batch(first + done, count - done < batch ? count - done : batch);
  if (rc) {
    printf("caught after %llu schedules\n", (unsigned long long)sim_count->schedules + 1);
    return rc;
  }
  print_counts();
  return count < batch || seen_all() ? 0 : 1;
}

static int run_seeds(char **seeds) {
  int rc = 0;
  for (; rc == 0 && *seeds; seeds++) rc = run_batch(strtoull(*seeds, NULL, 10), 1);
  return rc;
}

int main(int argc, char **argv) {
  int at = 1;
  bool seeds = false;
  for (; at < argc && argv[at][0] == '-'; at++) {
    sim_tracing |= strcmp(argv[at], "--trace") == 0;
    judge_results_only |= strcmp(argv[at], "--results") == 0;
    sim_repairs |= strcmp(argv[at], "--repairs") == 0;
    if (strcmp(argv[at], "--ranks") == 0) play = ranks_run;
    if (strcmp(argv[at], "--shared") == 0) play = shared_run, batch = BATCH_SHARED;
    seeds |= strcmp(argv[at], "--seeds") == 0;
  }
  sim_count =
      mmap(NULL, sizeof *sim_count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (sim_count == MAP_FAILED) return 2;
  units_make();
  if (play == shared_run) shared_make();
  uint64_t first = at < argc ? strtoull(argv[at], NULL, 10) : 1;
  uint64_t count = at + 1 < argc ? strtoull(argv[at + 1], NULL, 10) : sim_tracing ? 1 : 300;
  int rc = seeds ? run_seeds(argv + at) : run_from(first, count);
  if (play == shared_run) shared_end();
  units_remove();
  return rc;
}
