/* ckpt_ranks: the part of the public API about the place that this process has: what the environment
 * says of a launcher, whether a directory is one that other hosts see too, and what the scheduler says
 * of the end of the job. */
#include <stdio.h>
#include <stdlib.h>

#include "ckpt_state.h"
#include "commit/ranks.h"
#include "prims/fs.h"
#include "run/start/launcher.h"
#include "run/start/slurm.h"

static const char *from_environment(void *ctx, const char *name) {
  (void)ctx;
  return getenv(name);
}

int ckpt_ranks_detect(ckpt *c, ckpt_ranks *out) {
  ranks_found found;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, out, "out");
  if (rc == 0) rc = ranks_detect(from_environment, NULL, &found, &c->error);
  if (rc < 0) return rc;
  ckpt_ranks made = {.rank = found.rank,
                     .world = found.world,
                     .local_rank = found.local_rank,
                     .local_world = found.local_world,
                     .node = found.node,
                     .nodes = found.nodes};
  snprintf(made.launch, sizeof made.launch, "%s", found.launch);
  snprintf(made.source, sizeof made.source, "%s", found.source);
  ckpt_give(out, out->size, &made, sizeof made);
  return 0;
}

int ckpt_dir_is_shared(ckpt *c, const char *dir) {
  char path[FS_PATH_MAX], up[FS_PATH_MAX];
  fs_kind kind;
  int entered = ckpt_enter(c);
  if (entered == 0) entered = ckpt_need(c, dir, "dir");
  if (entered < 0) return entered;
  if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
    return err_set(&c->error, ERR_LIMIT, "%.100s...: the path is too long", dir);
  for (;;) {
    int rc = fs_kind_of(path, &kind, &c->error);
    if (rc == 0) return kind.remote_writers;
    if (rc != ERR_NOENT) return rc;
    fs_parent(path, up);
    snprintf(path, sizeof path, "%s", up);
  }
}

bool ckpt_own_job(char out[SLURM_OWN_MAX]) {
  return slurm_own(getenv("SLURM_JOB_ID"), getenv("SLURM_ARRAY_JOB_ID"),
                   getenv("SLURM_ARRAY_TASK_ID"), out);
}

int ckpt_time_left_detect(ckpt *c, ckpt_time_left *out) {
  char job[SLURM_OWN_MAX];
  slurm_time_left left = {.ends_s = -1, .kill_s = -1};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, out, "out");
  if (rc < 0) return rc;
  if (ckpt_own_job(job)) slurm_time(c->env.io, job, getenv("SLURM_JOB_END_TIME"), &left);
  ckpt_time_left made = {.ends_s = left.ends_s, .kill_s = left.kill_s};
  made.launcher_s = launcher_patience(from_environment, NULL, made.launcher, sizeof made.launcher);
  ckpt_give(out, out->size, &made, sizeof made);
  return 0;
}

int ckpt_requeue(ckpt *c) {
  char job[SLURM_OWN_MAX];
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  if (!ckpt_own_job(job))
    return err_set(&c->error, ERR_UNSUPPORTED,
                   "this is no job of Slurm's (SLURM_JOB_ID is not set): nobody starts it again");
  return slurm_requeue(c->env.io, job, &c->error);
}
