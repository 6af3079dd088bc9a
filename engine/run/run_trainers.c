/* Processes that an earlier run of this directory left alive. One that is ended by mistake is
 * somebody's training: only what carries this very run's id and is this user's is ours to end. */
#include <unistd.h>

#include "run/run_state.h"

struct walk {
  run_trainer_fn *fn;
  void *ctx;
  const char *left; /* why all that this walk finds are left alone; NULL: it depends */
  journal_child child;
  bool child_seen;
  int count; /* that are ours to end */
};

static int tell(struct walk *w, const proc_info *info, const char *left) {
  if (w->child.pid == info->pid && w->child.start == info->start) w->child_seen = true;
  if (!left) w->count++;
  return w->fn ? w->fn(w->ctx, info, left) : 0;
}

static int on_process(void *ctx, const proc_info *info) {
  struct walk *w = ctx;
  const char *left = w->left;
  if (!left && info->uid != geteuid()) left = "it is another user's";
  return tell(w, info, left);
}

/* Tells the job that the journal names, when it does not carry the id: a program may write over its
 * environment, and a state directory may be a copy of a live run's. */
static void tell_child(run *r, struct walk *w) {
  const journal_child *child = &w->child;
  if (w->child_seen || child->pid <= 0 || !child->same_boot) return;
  if (!proc_alive(child->pid, child->start)) return;
  proc_info info = {.pid = child->pid, .sid = child->sid, .start = child->start, .uid = (uid_t)-1};
  snprintf(info.command, sizeof info.command, "(the trainer of the last run)");
  tell(w, &info, *r->identity.former ? RUN_LEFT_COPY : RUN_LEFT_UNPROVEN);
}

int run_trainers(run *r, run_trainer_fn *fn, void *ctx, err *e) {
  struct walk w = {.fn = fn, .ctx = ctx, .child = journal_last_child(r->journal)};
  int rc = proc_find_env(RUN_ID_VARIABLE, r->identity.id, on_process, &w, e);
  if (rc >= 0 && *r->identity.former) {
    w.left = RUN_LEFT_COPY;
    rc = proc_find_env(RUN_ID_VARIABLE, r->identity.former, on_process, &w, e);
  }
  if (rc < 0) return rc;
  tell_child(r, &w);
  return w.count;
}
