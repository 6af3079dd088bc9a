/* spank_ckpt: srun's --ckpt-to and its like, with which each task of a step is run by `ckpt-lua run`.
 *
 * It links no library of ours and reads no file: slurmstepd is root's. All that it does there is done
 * in the process that is to become the task, which is the user's by then: what the user gave is looked
 * at nowhere else. The command's first
 * word is exchanged for the script ckpt-task beside this plugin, which puts the runner in front of it;
 * so Slurm's own way of starting a task, its prologs and limits are as they were. */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(ckpt, 1)

enum { TO, DIR, POLICY, OPTIONS, COUNT };

static bool given[COUNT]; /* in srun, which is the user's */

/* Slurm calls it as root, too, with `remote`: nothing is looked at then. */
static int on_option(int which, const char *value, int remote) {
  (void)value;
  if (!remote) given[which] = true;
  return 0;
}

static struct spank_option options[COUNT] = {
    [TO] = {"ckpt-to", "URI", "save the checkpoints of each task to this target", 1, TO, on_option},
    [DIR] = {"ckpt-dir", "DIR", "where the tasks write their checkpoints", 1, DIR, on_option},
    [POLICY] = {"ckpt-policy", "POLICY", "what is saved, and stays", 1, POLICY, on_option},
    [OPTIONS] = {"ckpt-options", "\"OPTION ...\"", "more options of `ckpt-lua run`", 1, OPTIONS,
                 on_option},
};
/* As ckpt-task reads them. */
static const char *const variables[COUNT] = {"CKPT_TASK_TO", "CKPT_TASK_DIR", "CKPT_TASK_POLICY",
                                             "CKPT_TASK_OPTIONS"};

/* A step that cannot be saved as it was asked for does not begin. A code that we return would be
 * overlooked where the administrator has the plugin as an optional one. In the process of a task what
 * slurmstepd does at its own end must not be done. */
static void refuse(const char *why) {
  slurm_error("ckpt: %s", why);
  if (spank_context() != S_CTX_LOCAL) _exit(2);
  exit(2);
}

/* The commands of such a step are in a file, which only Slurm reads. */
static bool is_multi_prog(void) {
  static char words[1 << 16];
  FILE *f = fopen("/proc/self/cmdline", "re");
  size_t size = f ? fread(words, 1, sizeof words - 1, f) : 0;
  bool found = getenv("SLURM_MULTI_PROG") != NULL;
  if (f) fclose(f);
  for (const char *at = words; at < words + size && strcmp(at, "--") != 0; at += strlen(at) + 1)
    found |= strcmp(at, "--multi-prog") == 0;
  return found;
}

int slurm_spank_init(spank_t spank, int count, char **words) {
  (void)count;
  (void)words;
  spank_context_t context = spank_context();
  /* Not in sbatch and salloc: what they started would be a task, too. */
  if (context != S_CTX_LOCAL && context != S_CTX_REMOTE) return 0;
  for (int i = 0; i < COUNT; i++) {
    if (spank_option_register(spank, &options[i]) == ESPANK_SUCCESS) continue;
    slurm_error("ckpt: --%s cannot be made known to Slurm", options[i].name);
    return -1;
  }
  return 0;
}

/* In srun: what is wrong is said before anything is started, or waited for. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **words) {
  (void)spank;
  (void)count;
  (void)words;
  if (spank_context() != S_CTX_LOCAL) return 0;
  bool both = given[TO] && given[DIR];
  if (!both && (given[TO] || given[DIR] || given[POLICY] || given[OPTIONS]))
    refuse("give both --ckpt-to and --ckpt-dir, or none of the --ckpt options");
  if (both && is_multi_prog())
    refuse("a step with --multi-prog cannot be saved: start `ckpt-lua run` in its file");
  return 0;
}

/* Writes the path of the script beside us. */
static bool find_script(char path[PATH_MAX]) {
  Dl_info here;
  const char *slash =
      dladdr(options, &here) && here.dli_fname ? strrchr(here.dli_fname, '/') : NULL;
  if (!slash) return false;
  int len =
      snprintf(path, PATH_MAX, "%.*s/ckpt-task", (int)(slash - here.dli_fname), here.dli_fname);
  return len < PATH_MAX && access(path, X_OK) == 0;
}

/* In the process of a task, as the user. */
int slurm_spank_task_init(spank_t spank, int count, char **words) {
  static char script[PATH_MAX];
  char **argv = NULL;
  int argc = 0;
  bool any = false, ok = true;
  (void)count;
  (void)words;
  for (int i = 0; i < COUNT; i++) {
    char *value = NULL;
    if (spank_option_getopt(spank, &options[i], &value) != ESPANK_SUCCESS || !value) continue;
    any = true;
    ok &= spank_setenv(spank, variables[i], value, 1) == ESPANK_SUCCESS;
  }
  if (!any) return 0;
  if (!find_script(script))
    refuse("the script ckpt-task is not beside the plugin: install it anew");
  if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1)
    refuse("Slurm does not say what the command of the task is");
  ok &= spank_setenv(spank, "CKPT_TASK_COMMAND", argv[0], 1) == ESPANK_SUCCESS;
  if (!ok) refuse("Slurm does not take what ckpt-task needs in the environment");
  argv[0] = script;
  return 0;
}
