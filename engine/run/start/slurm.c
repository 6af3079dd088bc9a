#include "slurm.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/seconds.h"
#include "prims/child.h"
#include "prims/program.h"

static const char scheme[] = "slurm:";

void slurm_name_job(const char *cluster, const char *number, char *out, size_t room) {
  out[0] = 0;
  if (!number || !*number) return;
  bool known = cluster && *cluster && strlen(cluster) < 64;
  snprintf(out, room, "%s%s%s%.40s", scheme, known ? cluster : "", known ? "/" : "", number);
}

/* The length of the cluster's name; 0: it has none. */
static size_t cluster_of(const char *job, const char **name) {
  const size_t len = sizeof scheme - 1;
  if (strncmp(job, scheme, len) != 0) return 0;
  *name = job + len;
  const char *slash = strrchr(*name, '/');
  return slash ? (size_t)(slash - *name) : 0;
}

bool slurm_same_cluster(const char *ours, const char *job, char number[SLURM_NUMBER_MAX]) {
  const char *a = NULL, *b = NULL;
  size_t len = cluster_of(ours, &a);
  if (len == 0 || cluster_of(job, &b) != len || memcmp(a, b, len) != 0) return false;
  const char *digits = b + len + 1;
  size_t count = strspn(digits, "0123456789");
  if (count == 0 || digits[count] || count >= SLURM_NUMBER_MAX) return false;
  memcpy(number, digits, count + 1);
  return true;
}

bool slurm_ended(const char *text) {
  static const char *const states[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                       "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                       "TIMEOUT",   NULL};
  size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
  /* sacct says "CANCELLED by 1000" and "CANCELLED+"; several lines are several lives of the job. */
  const char *end = text + len + strcspn(text + len, "\n");
  while (*end == '\n') end++;
  if (len == 0 || *end) return false;
  for (const char *const *s = states; *s; s++)
    if (strlen(*s) == len && strncmp(text, *s, len) == 0) return true;
  return false;
}

/* Runs a command for a few seconds; its output, "" if it failed. */
static void ask(const io *io, char *const argv[], char *out, size_t room) {
  enum { LONGEST_S = 10, TURN_MS = 100 };
  /* Nothing of what the user's shell says of other clusters, or of formats. */
  static const char *const kept[] = {"PATH", "HOME", "USER", "SLURM_CONF", "LD_LIBRARY_PATH", NULL};
  names env = {0};
  program *p = NULL;
  int code = -1, signal = 0;
  const int64_t until = io->now(io, IO_MONO) + LONGEST_S * SECOND_NS;
  out[0] = 0;
  bool whole = child_env(kept, &env);
  const program_plan plan = {
      .argv = argv, .envp = (char *const *)names_list(&env), .keep = room - 1};
  int rc = whole ? program_start(io, &plan, &p, NULL) : ERR_NOMEM;
  names_free(&env);
  if (rc < 0) return; /* Slurm's commands are not here */
  while (!program_ended(p, &code, &signal) && io->now(io, IO_MONO) < until)
    if (program_turn(p, TURN_MS, NULL) < 0) break;
  if (program_ended(p, &code, &signal) && code == 0) {
    size_t len = 0;
    uint64_t dropped = 0;
    const char *text = program_output(p, 1, &len, &dropped);
    if (!dropped && len < room) {
      memcpy(out, text, len);
      out[len] = 0;
    }
  }
  program_close(p);
}

/* squeue knows a job for some minutes after its end, the accounting, if there is one, for longer. A
 * job that waits to be started again is in the queue, so that is asked first. */
bool slurm_is_over(const io *io, const char *ours, const char *job) {
  char number[SLURM_NUMBER_MAX], text[512];
  if (!slurm_same_cluster(ours, job, number)) return false;
  char *const queue[] = {"squeue", "-h", "-t", "all", "-o", "%T", "-j", number, NULL};
  char *const account[] = {"sacct", "-n", "-X", "-P", "-o", "State", "-j", number, NULL};
  ask(io, queue, text, sizeof text);
  if (*text) return slurm_ended(text);
  ask(io, account, text, sizeof text);
  return slurm_ended(text);
}
