/* resume: what a start puts into the empty directory of a trial whose machine is gone: by the rules of
 * a run (plan/recover.h), and what the policy's `restore` says beside that. */
#include <stdlib.h>
#include <string.h>

#include "lab/world.h"
#include "plan/recover.h"
#include "prims/match_series.h"

enum { SERIES_MAX = 512 };

/* What is told of each commit of its log while that is decided. */
typedef struct choice {
  policy_item *items;
  policy_kept *said;
  recover_commit *commits;
  char (*series)[SERIES_MAX];
  bool *comes;
} choice;

static bool choice_new(choice *c, size_t commits) {
  const size_t room = commits + 1;
  *c = (choice){.items = calloc(room, sizeof *c->items),
                .said = calloc(room, sizeof *c->said),
                .commits = calloc(room, sizeof *c->commits),
                .series = calloc(room, sizeof *c->series),
                .comes = calloc(room, sizeof *c->comes)};
  return c->items && c->said && c->commits && c->series && c->comes;
}

static void choice_free(choice *c) {
  free(c->items);
  free(c->said);
  free(c->commits);
  free(c->series);
  free(c->comes);
}

/* The newest of each kind. */
static bool choose_newest(const runlog_state *log, choice *c) {
  recover_plan plan = {0};
  size_t count = 0;
  for (size_t i = 0; i < log->commit_count; i++) {
    const runlog_commit *commit = &log->commits[i];
    if (commit->life != RUNLOG_LIVE) continue;
    match_series(commit->unit, c->series[count], SERIES_MAX);
    c->commits[count] =
        (recover_commit){commit->unit, c->series[count], commit->step, i, commit->time_ns};
    count++;
  }
  int rc = recover_plan_group(NULL, 0, c->commits, count, &plan, NULL);
  for (size_t i = 0; rc == 0 && i < plan.count; i++) c->comes[plan.actions[i].index] = true;
  free(plan.actions);
  return rc == 0;
}

/* Of several generations of a name the newest has it. */
static void choose_more(lab *l, lab_trial *t, choice *c) {
  const runlog_state *log = &t->log;
  if (!policy_has(l->policy, POLICY_RESTORE)) return;
  const size_t count = lab_items(t, c->items);
  if (!policy_select(l->policy, POLICY_RESTORE, t->name, c->items, count, &t->memory, c->said))
    return;
  for (size_t i = 0; i < count; i++) {
    const runlog_commit *commit = runlog_find_commit(log, c->items[i].number);
    if (c->said[i].keep && commit && runlog_newest(log, commit->unit) == commit)
      c->comes[commit - log->commits] = true;
  }
}

void lab_resume(lab *l, lab_trial *t) {
  const runlog_state *log = &t->log;
  choice c;
  if (lab_live(t) == 0) return;
  bool good = choice_new(&c, log->commit_count) && choose_newest(log, &c);
  if (good) choose_more(l, t, &c);
  for (size_t i = 0; good && i < log->commit_count; i++)
    if (c.comes[i]) good = names_add(&l->news.restored, log->commits[i].unit);
  if (!good) l->broken = true;
  choice_free(&c);
}
