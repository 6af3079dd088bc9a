#include "role.h"

#include <stdio.h>
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"

#define FAIL(error, ...) (snprintf((error), ROLE_ERROR_MAX, __VA_ARGS__), -1)

/* ---- the role ---- */

/* Numbers the nodes, where the launcher does not: its tasks are dealt out in blocks, as launchers
 * do by default. */
static bool number_nodes(ckpt_ranks *f) {
  if (f->nodes > 0) return true;
  if (f->local_world == 0) return false;
  if (f->world % f->local_world != 0 || f->rank % f->local_world != f->local_rank) return false;
  f->nodes = f->world / f->local_world;
  f->node = f->rank / f->local_world;
  return true;
}

static void one_of(role *out, bool first, bool others) {
  out->watches = first;
  out->awaited = first && others;
}

static int by_node(const ckpt_ranks *found, role *out, char *error) {
  ckpt_ranks f = *found;
  if (!number_nodes(&f))
    return FAIL(error,
                "%s says that this is task %u of %u, and not on which node: say --dir-is shared if "
                "all tasks see one DIR, or --ranks task if each has its own, or --rank and --world",
                f.source, f.rank, f.world);
  one_of(out, f.local_rank == 0, f.world > f.nodes);
  out->index = f.local_rank;
  out->count = f.local_world;
  out->rank = f.node;
  out->world = f.nodes;
  return 0;
}

static int by_launcher(const options *o, const ckpt_ranks *f, int shared, role *out, char *error) {
  out->task = f->rank;
  out->tasks = f->world;
  snprintf(out->source, sizeof out->source, "%s", f->source);
  if (o->ranks == RANKS_TASK) {
    out->rank = f->rank;
    out->world = f->world;
    return 0;
  }
  if (o->dir_is != DIR_IS_FOUND) shared = o->dir_is == DIR_IS_SHARED;
  if (o->ranks == RANKS_NODE) shared = 0;
  if (shared < 0) return FAIL(error, "whether other hosts see DIR is not known: say --dir-is");
  out->shared = shared;
  if (!shared) return by_node(f, out, error);
  one_of(out, f->rank == 0, true);
  out->index = f->rank;
  out->count = f->world;
  return 0;
}

/* The user knows it where not each task of the launcher's is one of ours. */
static int count_tasks(const options *o, role *out, char *error) {
  if (o->run.tasks > 0) out->count = o->run.tasks;
  if (out->count == 0 || out->index < out->count) return 0;
  return FAIL(error, "--tasks %u: this is number %u of them, from 0", out->count, out->index);
}

/* Ranks that meet need a name for their meeting that no other launch has ever had. */
static int take_launch(const options *o, const ckpt_ranks *f, role *out, char *error) {
  const char *launch = o->run.launch ? o->run.launch : f->launch;
  if (out->world == 1 && out->watches && !out->awaited) return 0;
  if (strlen(launch) >= sizeof out->launch)
    return FAIL(error, "--launch-id: at most %zu bytes", sizeof out->launch - 1);
  snprintf(out->launch, sizeof out->launch, "%s", launch);
  if (*launch) return 0;
  return FAIL(
      error,
      "this is task %u of %u (%s), and nothing names this launch that all of them share and "
      "no other launch has: give each --launch-id ID, a new one at each start%s; or --ranks "
      "off, if this task saves alone",
      out->task, out->tasks, *out->source ? out->source : "--rank",
      strcmp(out->source, "torchrun") == 0 ? ", or torchrun --rdzv-id ID" : "");
}

int role_decide(const options *o, const ckpt_ranks *found, int shared, role *out,
                char error[ROLE_ERROR_MAX]) {
  int rc = 0;
  *out = (role){.watches = true, .world = 1, .tasks = 1, .count = 1};
  if (o->run.world > 0) {
    out->rank = out->task = o->run.rank;
    out->world = out->tasks = o->run.world;
  } else if (o->ranks != RANKS_OFF && found->world > 1) {
    rc = by_launcher(o, found, shared, out, error);
    if (rc == 0 && o->ranks != RANKS_TASK) rc = count_tasks(o, out, error);
  }
  return rc < 0 ? rc : take_launch(o, found, out, error);
}

int role_look(const options *o, role *out) {
  ckpt *engine = NULL;
  ckpt_ranks found = {.size = sizeof found};
  char error[ROLE_ERROR_MAX];
  int shared = 0, code = 0;
  *out = (role){.watches = true, .world = 1, .tasks = 1, .count = 1};
  if (o->ranks == RANKS_OFF) return 0;
  int rc = command_open(&engine, o);
  const char *way_out = "";
  if (rc == 0 && o->run.world == 0) {
    rc = ckpt_ranks_detect(engine, &found);
    if (rc < 0) way_out = " (or use --ranks off)";
  }
  if (rc == 0 && found.world > 1) shared = ckpt_dir_is_shared(engine, o->run.dir);
  if (rc < 0 || (shared < 0 && o->dir_is == DIR_IS_FOUND)) {
    report_error("%s%s", ckpt_error(engine), way_out);
    code = EXIT_USAGE;
  } else if (role_decide(o, &found, shared, out, error) < 0) {
    report_error("%s", error);
    code = EXIT_USAGE;
  }
  ckpt_close(engine);
  return code;
}
