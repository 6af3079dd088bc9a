/* A rank of a launch, from its start to its last word, in the order in which run_ranks.c does it. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/ranks_said.h"
#include "job/move/transfer.h"
#include "job/restore/restore.h"

enum { TRIES = 3 };

ranks_plan ranks_plans[LAUNCHES_MAX];

/* ---- what it says ---- */

static void add_refused(const writer *w, names *out) {
  const ranks_plan *p = &ranks_plans[w->a->launch];
  for (unsigned i = 0; w->a->rank == 0 && i < w->plan->saves; i++)
    if (p->refused >> i & 1) names_add(out, w->plan->save[i].unit.name);
}

/* `over`: as in ranks_said_put. */
static int say(writer *w, bool ready, const char *over, const char *resume) {
  ranks_said said = {.ready = ready, .over = over != NULL};
  err e = {0};
  int rc = ERR_IO;
  snprintf(said.why, sizeof said.why, "%s", over ? over : "");
  snprintf(said.resume, sizeof said.resume, "%s", resume);
  if (over) add_refused(w, &said.refused);
  for (int i = 0; rc < 0 && i < TRIES && !w->a->dead; i++) {
    rc = ranks_said_put(&w->a->store, &w->ranks, &said, &e);
    if (rc < 0) actor_sleep(w->a, SECOND);
  }
  ranks_said_free(&said);
  if (over) sim_trace("says that it has ended%s%s", *over ? ": " : "", over);
  return rc;
}

static int take_back(writer *w) {
  err e = {0};
  int rc = ERR_IO;
  for (int i = 0; rc < 0 && i < TRIES && !w->a->dead; i++) {
    rc = ranks_said_remove(&w->a->store, &w->ranks, &e);
    if (rc < 0) actor_sleep(w->a, SECOND);
  }
  return rc;
}

/* ---- its start ---- */

/* 0: rank 0 is ready, and goes on from `resume`. */
static int await_first(writer *w, char *resume, size_t room) {
  const int64_t until = sim_now + w->ranks.wait_ns;
  int over = 0;
  while (!w->a->dead && sim_now < until) {
    ranks_said said;
    err e = {0};
    int rc = ranks_said_get(&w->a->store, &w->ranks, 0, &said, &e);
    bool ready = rc == 0 && said.ready;
    over = rc == 0 && said.over ? over + 1 : 0;
    if (ready) snprintf(resume, room, "%.60s", said.resume);
    if (rc == 0) ranks_said_free(&said);
    if (ready) return 0;
    if (over > 5) return -1; /* a launcher may start rank 0 alone once more */
    actor_sleep(w->a, SECOND);
  }
  return -1;
}

static void restore_unit_of(writer *w, const char *unit) {
  const runlog_commit *c = *unit ? runlog_newest(runlog_view(w->group.log), unit) : NULL;
  manifest whole = {0}, part = {0};
  bool own = ranks_plans[w->a->launch].own;
  err e = {0};
  if (!c) return;
  const uint64_t n = c->n;
  char dir[STORE_KEY_MAX];
  snprintf(dir, sizeof dir, "%s", c->dir);
  transfer t = {.io = &w->a->io, .store = &w->a->store};
  int rc = restore_manifest(&w->a->store, "", c, &whole, &e);
  w->a->has_read = 0;
  bool parted = rc == 0 && own && manifest_tells_parts(&whole, w->plan->world);
  if (parted) rc = manifest_part(&whole, (uint32_t)w->a->rank, &part, &e);
  if (rc == 0) rc = transfer_verify(&t, parted ? &part : &whole, dir, NULL, NULL, &e);
  if (rc > 0 && !w->a->dead) sim_violation("%s: %d files are missing or wrong", dir, rc);
  if (rc == 0 && !w->a->dead) judge_rank_restored(w->a, n, own);
  free(part.entries);
  manifest_free(&whole);
}

static int begin_first(writer *w, char *resume, size_t room) {
  int rc = writer_begin(w);
  if (rc == 0) rc = say(w, false, NULL, "");
  if (rc < 0) return rc;
  const runlog_commit *newest = runlog_newest(runlog_view(w->group.log), NULL);
  snprintf(resume, room, "%s", newest ? newest->unit : "");
  restore_unit_of(w, resume);
  return say(w, true, NULL, resume);
}

static int begin_other(writer *w, char *resume, size_t room) {
  int rc = take_back(w);
  if (rc == 0) rc = await_first(w, resume, room);
  if (rc == 0) rc = writer_begin(w);
  if (rc == 0) restore_unit_of(w, resume);
  return rc;
}

/* ---- its saves ---- */

/* It was saved while this rank was not there. */
static bool is_done(const writer *w, const char *unit) {
  const runlog_commit *c = runlog_newest(runlog_view(w->group.log), unit);
  return c && w->group.term && c->attempt > w->group.term;
}

static void saves(writer *w) {
  const launch_plan *p = w->plan;
  ranks_plan *truth = &ranks_plans[w->a->launch];
  const unsigned rank = (unsigned)w->a->rank;
  int rc = 0;
  for (unsigned i = 0; rc != ERR_FENCED && !w->a->dead && i < p->saves; i++) {
    if (i == truth->rank[rank].leaves) break;
    if (truth->rank[rank].came_back && is_done(w, p->save[i].unit.name)) continue;
    unsigned version = p->save[i].version;
    if (truth->rank[rank].differs) version = 1 + version % VERSIONS;
    if (rank == 0 && truth->refuses >> i & 1) {
      truth->refused |= 1u << i;
      sim_trace("does not want %s", p->save[i].unit.name);
    } else {
      rc = writer_save(w, &p->save[i].unit, version);
    }
    if (rc != ERR_FENCED) actor_sleep(w->a, (int64_t)sim_roll(20) * SECOND);
  }
}

/* As release_leases() of a run that is cut off and that of one that ends: in either order. */
static void end(writer *w, const char *why) {
  bool lease_first = sim_chance(500);
  if (lease_first) {
    group_release(&w->group);
    actor_sleep(w->a, (int64_t)sim_roll(4) * SECOND);
  }
  say(w, false, why, "");
  group_close(&w->group);
}

void rank_main(actor *a) {
  writer w;
  char resume[64] = "";
  ranks_plan *truth = &ranks_plans[a->launch];
  writer_open(&w, a);
  w.on_end = judge_rank_saved;
  if (truth->rank[a->rank].turned_away) {
    end(&w, "another process of this rank is alive");
  } else {
    int rc = a->rank == 0 ? begin_first(&w, resume, sizeof resume)
                          : begin_other(&w, resume, sizeof resume);
    if (rc == 0) saves(&w);
    end(&w, rc < 0 ? "it could not begin" : "");
  }
  truth->rank[a->rank].here = false;
  truth->first_ended |= a->rank == 0;
  launches[a->launch].alive--;
}
