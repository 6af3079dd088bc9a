#include "writer.h"

#include <stdio.h>
#include <string.h>

#include "job/save/job.h"

enum { TRIES = 3, BEGIN_TRIES = 8 };

bool writer_note_failure(const actor *a, int rc, const err *e) {
  sim_count->failures++;
  sim_trace("fails: %s", e->text);
  if (rc == ERR_FENCED) sim_count->fenced++;
  if (rc == ERR_HELD) sim_count->held++;
  if (rc == ERR_OTHER_RUN) sim_count->other_runs++;
  bool torn = rc == ERR_FORMAT || rc == ERR_CORRUPT || (rc == ERR_INTERNAL && !judge_is_clear());
  if (torn && lost_shows(a)) return false;
  if (rc == ERR_INTERNAL || rc == ERR_FORMAT || rc == ERR_VERSION || rc == ERR_CORRUPT)
    sim_violation("%s: %s", a->name, e->text);
  return !a->dead && err_class_of(rc) == ERR_CLASS_RETRYABLE;
}

void writer_open(writer *w, actor *a) {
  const launch_plan *p = &launches[a->launch];
  *w = (writer){.a = a, .plan = p, .resumed = RUNLOG_NONE};
  w->ranks = (ranks){.rank = (uint32_t)a->rank, .world = p->world, .wait_ns = 300 * SECOND};
  snprintf(w->ranks.launch, sizeof w->ranks.launch, "%s", p->id);
  w->env = (group_env){.store = &a->store,
                       .run_id = p->run,
                       .continue_run = p->continue_run,
                       .take_over = p->take_over,
                       .ranks = p->world > 1 ? &w->ranks : NULL};
  runlog_writer *who = &w->env.writer;
  snprintf(who->launch, sizeof who->launch, "%s", p->id);
  snprintf(who->job, sizeof who->job, "%s", p->job);
  snprintf(who->host, sizeof who->host, "%s", p->host);
  snprintf(who->state, sizeof who->state, "/state");
  /* Now and then a job comes with another command line. */
  memset(who->flags, a->launch % 4 == 3 ? 'b' : 'a', sizeof who->flags - 1);
  who->any_flags = p->continue_run;
  who->pid = a->id;
  who->world = p->world;
  group_open(&w->env, "", &w->group, NULL);
}

int writer_begin(writer *w) {
  int rc = ERR_IO;
  for (int i = 0; i < BEGIN_TRIES; i++) {
    err e = {0};
    rc = group_begin(&w->group, &e);
    if (rc == 0) break;
    if (!writer_note_failure(w->a, rc, &e)) break;
    actor_sleep(w->a, (rc == ERR_HELD ? 400 : 2) * SECOND);
  }
  if (rc < 0) return rc;
  const runlog_commit *newest = runlog_newest(runlog_view(w->group.log), NULL);
  if (newest) w->resumed = newest->n;
  w->renewed = sim_now;
  return 0;
}

int writer_save(writer *w, const saved_unit *u, unsigned version) {
  actor *a = w->a;
  static const char *const with[] = {"train.log", NULL};
  char root[128];
  snprintf(root, sizeof root, "%s", units_root(version, w->plan->world, (unsigned)a->rank));
  job_env env = {.io = &a->io,
                 .store = &a->store,
                 .rules = rules_builtin(),
                 .root = root,
                 .staging = units_staging(),
                 .grace_ns = GRACE,
                 .ranks = w->env.ranks,
                 .companions = a->rank == 0 && version % 2 ? with : NULL};
  uint64_t attempt = 0, shape = 0;
  char staging[RUNLOG_NONCE_MAX] = "";
  int rc = ERR_IO;
  for (int i = 0; i < TRIES; i++) {
    detect_unit facts = {.path = u->name, .kind = u->kind, .step = u->step};
    decision want = {.action = POLICY_SAVE};
    job j = {.id = 1, .env = &env, .log = w->group.log, .policy = "sim", .reason = "because"};
    unsigned flags = sim_weather.files ? PLAN_CAN_PUBLISH : 0;
    if (w->plan->world > 1) flags |= PLAN_HAS_RANKS;
    if (env.companions) flags |= PLAN_HAS_COMPANIONS;
    plan_save(&facts, &want, flags, &j.plan, NULL);
    j.keep = i + 1 < TRIES;
    j.attempt = attempt;
    j.attempt_shape = shape;
    memcpy(j.staging, staging, sizeof staging);
    sim_count->jobs++;
    sim_trace("saves %s, version %u", u->name, version);
    a->saves = true;
    const int64_t begun = sim_now, paused = a->paused;
    job_run(&j);
    a->saves = false;
    rc = j.status;
    attempt = j.attempt;
    shape = j.attempt_shape;
    memcpy(staging, j.staging, sizeof staging);
    if (a->dead) return rc;
    if (w->on_end) w->on_end(w, &j, begun, paused);
    if (rc == 0) {
      sim_count->commits++;
      sim_trace("saved %s as commit %llu", u->name, (unsigned long long)j.commit.n);
      judge_told(a, j.commit.n, u->name, version);
      return 0;
    }
    if (!writer_note_failure(a, rc, &j.error)) return rc;
    actor_sleep(a, (1 + (int64_t)sim_roll(5)) * SECOND);
  }
  return rc;
}
