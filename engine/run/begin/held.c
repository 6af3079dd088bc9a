/* held: groups that another writer holds when a start finds them. Where they are this job's own, as
 * far as can be told, it is with them as with the log of the top: the start is refused, or waits.
 *
 * A writer that was lost with its machine looks alive for as long as its lease stands, and a job that
 * begins fresh meanwhile has lost what it saved. Trials of one experiment may run on several hosts with
 * one target all the same: the groups of another one that lives stay its own, once this host has some of
 * its own to go on with. */
#include <inttypes.h>
#include <string.h>

#include "base/seconds.h"
#include "run/begin/held.h"
#include "run/begin/survey.h"
#include "run/start/slurm.h"

static const runlog_writer *writer_of(const run_group *g) {
  return &runlog_view(g->group.log)->term.writer;
}

static bool same(const char *a, const char *b) {
  return *a && strcmp(a, b) == 0;
}

/* True if both were one launch or job, or had one state directory. */
static bool are_one(const runlog_writer *a, const runlog_writer *b) {
  return same(a->launch, b->launch) || same(a->job, b->job) || same(a->place, b->place);
}

/* What a start knows of whose the groups are. */
typedef struct view {
  run *r;
  survey here;
  bool fresh; /* there is nothing that the job would go on from */
} view;

static bool stands_in(const survey *s, const run_group *g) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].group, g->group.prefix) == 0) return true;
  return false;
}

static void look_if_fresh(view *v) {
  v->fresh = true;
  for (size_t i = 0; v->fresh && i < v->r->group_count; i++) {
    const run_group *g = v->r->groups[i];
    v->fresh = g->foreign || !g->group.log || !runlog_newest(runlog_view(g->group.log), NULL);
  }
  for (size_t i = 0; v->fresh && i < v->here.count; i++)
    v->fresh = v->here.units[i].standing > RECOVER_SUPERSEDED || v->here.units[i].above;
}

/* True if the job has something of its own in a group that is held: this machine knows of it, the
 * writer that had it had one that is ours, or there is nothing else. */
static bool is_ours(const view *v, const run_group *g) {
  const run *r = v->r;
  if (v->fresh || stands_in(&v->here, g) ||
      journal_find_log(r->journal, r->places.target_text, g->group.prefix))
    return true;
  for (size_t i = 0; i < r->group_count; i++)
    if (!r->groups[i]->foreign && r->groups[i]->before &&
        are_one(r->groups[i]->before, writer_of(g)))
      return true;
  return false;
}

/* Finds the next group from `at` that has to be had; NULL: there is none. */
static run_group *next_of_ours(const view *v, size_t *at) {
  while (*at < v->r->group_count) {
    run_group *g = v->r->groups[(*at)++];
    if (run_group_is_held(g) && is_ours(v, g)) return g;
  }
  return NULL;
}

static bool scheduler_says_over(const run *r, const run_group *g) {
  const char *job = writer_of(g)->job;
  if (!r->lease_wait_until || !*job || !slurm_is_over(r->outer, r->group_env.writer.job, job))
    return false;
  log_say(r->env->log, LOG_WARN,
          "the scheduler says that %.100s, whose lease still stands, is over", job);
  return true;
}

/* Asks for a group, and opens no term on it: a start that is refused must leave behind who had what.
 * ERR_HELD: its writer may be alive. */
static int ask(run *r, run_group *g, bool over, err *e) {
  const bool pushes = r->group_env.take_over;
  r->group_env.take_over = pushes || over;
  int rc = group_may_begin(&g->group, e);
  r->group_env.take_over = pushes;
  if (rc < 0) return rc;
  run_group_note_writer(g);
  g->foreign = false;
  g->ours = true;
  g->over = over;
  return 0;
}

/* What one look at all of them found. */
typedef struct look {
  size_t held, taken;
  const run_group *first; /* of those that are held */
  err why;                /* who holds it */
} look;

/* True if one before it has the same writer: that was asked about, and is held. */
static bool was_asked(const view *v, const run_group *g) {
  for (size_t i = 0; i < v->r->group_count && v->r->groups[i] != g; i++)
    if (run_group_is_held(v->r->groups[i]) && is_ours(v, v->r->groups[i]) &&
        are_one(writer_of(v->r->groups[i]), writer_of(g)))
      return true;
  return false;
}

/* Asks for all that the job has to have: of each writer the first, and the others once that is free. */
static int look_once(const view *v, look *out, err *e) {
  run_group *g;
  err why = {0};
  size_t at = 0;
  *out = (look){0};
  while ((g = next_of_ours(v, &at))) {
    int rc = was_asked(v, g) ? ERR_HELD : ask(v->r, g, scheduler_says_over(v->r, g), &why);
    if (rc < 0 && rc != ERR_HELD) return err_set(e, rc, "%s", why.text);
    if (rc == 0) {
      out->taken++;
      continue;
    }
    if (!out->first) {
      out->first = g;
      out->why = why;
    }
    out->held++;
  }
  return 0;
}

/* What was taken tells more of whose the others are. */
static int look_at_all(view *v, look *out, err *e) {
  int rc;
  do {
    look_if_fresh(v);
    rc = look_once(v, out, e);
  } while (rc == 0 && out->taken > 0);
  return rc;
}

static int refuse(const run *r, const look *l, err *e) {
  char more[40] = "";
  if (l->held > 1) snprintf(more, sizeof more, " (and %zu more)", l->held - 1);
  return err_set(
      e, ERR_HELD,
      "\"%.200s\"%s of %.200s has checkpoints of this run: %.800s. The job does not begin "
      "without them (`restore` never begins it anew beside them)",
      l->first->group.prefix, more, r->places.target_text, l->why.text);
}

static int nap(const run *r, int64_t seconds, err *e) {
  for (; seconds > 0; seconds--) {
    if (r->store->cancel && atomic_load(r->store->cancel))
      return err_set(e, ERR_CANCELED, "canceled while a lease was waited for");
    r->outer->sleep(r->outer, SECOND_NS);
  }
  return 0;
}

/* Waits until one of them is free, which may tell that others are not ours, and so on until none is
 * held, or the time is over. */
static int await(view *v, look *l, err *e) {
  enum { LOOK_S = 30 };
  run *r = v->r;
  const runlog_writer *who = writer_of(l->first);
  int64_t pause = 1, left = run_leases_left(r);
  int rc = 0;
  if (left <= 0) return 0;
  log_say(r->env->log, LOG_WARN,
          "\"%s\" has checkpoints of this run, and %s: host %s, pid %" PRId64
          ". Its end is waited for, for up to %" PRId64 " s (`take_over` goes on at once)",
          l->first->group.prefix,
          lease_writer_gone(who, &r->group_env.writer)
              ? "the last writer's process is gone, and its lease stands"
              : "another writer is alive",
          who->host, who->pid, left);
  run_leases_say(r, left);
  while (rc == 0 && l->held > 0 && left > 0) {
    rc = nap(r, pause < left ? pause : left, e);
    if (rc == 0) rc = look_at_all(v, l, e);
    pause = 2 * pause < LOOK_S ? 2 * pause : LOOK_S;
    left = run_leases_left(r);
  }
  run_leases_say(r, 0);
  return rc;
}

/* What holds nothing to go on from may be free by now, too. */
static int ask_for_the_rest(run *r, err *e) {
  err why = {0};
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->foreign || !g->group.log) continue;
    int rc = ask(r, g, false, &why);
    if (rc < 0 && rc != ERR_HELD) return err_set(e, rc, "%s", why.text);
  }
  return 0;
}

/* ERR_HELD unless all that the job has to have is free. */
static int have_all(run *r, err *e) {
  view v = {.r = r};
  look l;
  int rc = run_survey(r, &v.here, e);
  if (rc < 0) return rc;
  rc = look_at_all(&v, &l, e);
  bool waits = rc == 0 && l.held > 0;
  if (waits) rc = await(&v, &l, e);
  if (rc == 0 && l.held > 0) rc = refuse(r, &l, e);
  if (rc == 0 && waits) rc = ask_for_the_rest(r, e);
  run_survey_free(&v.here);
  return rc;
}

int run_held_settle(run *r, bool leave, err *e) {
  if (r->anyway || !run_groups_held(r)) return 0;
  int rc = leave ? 0 : have_all(r, e);
  if (rc == 0) rc = run_groups_begin(r, e);
  return rc < 0 ? rc : run_own_by_term(r, e);
}
