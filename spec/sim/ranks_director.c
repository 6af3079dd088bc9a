/* A schedule of launches of several ranks: who ends early, is turned away, is frozen, dies, and comes back.
 * Nothing but what the ranks wait for lets much time pass, so that how long they wait can be judged. */
#include <stdio.h>

#include "ranks.h"

enum { STEPS_MOST = 6000, LIVES_MOST = 3 };

static void pick_saves(launch_plan *p, ranks_plan *truth, unsigned number) {
  p->saves = 2 + (unsigned)sim_roll(4);
  for (unsigned i = 0; i < p->saves; i++) {
    p->save[i].unit = (saved_unit){.kind = MATCH_DIR, .step = (int64_t)(1 + i) * 10};
    snprintf(p->save[i].unit.name, sizeof p->save[i].unit.name, "checkpoint-%u", (1 + i) * 10);
    p->save[i].version = 1 + (number + (unsigned)sim_roll(2)) % VERSIONS;
    if (sim_chance(150)) truth->refuses |= 1u << i;
  }
}

static void start_rank(int launch, unsigned rank) {
  char name[32];
  ranks_plan *truth = &ranks_plans[launch];
  snprintf(name, sizeof name, "w%d.%u", launch, rank);
  if (!actor_start(name, rank_main, launch, (int)rank)) return;
  truth->rank[rank].here = true;
  truth->rank[rank].lives++;
  launches[launch].alive++;
}

/* The same job again, now and then as another number of ranks. */
static void start_launch(void) {
  static const unsigned worlds[] = {3, 3, 3, 2, 2, 1};
  int number = schedule_launches();
  launch_plan *p = schedule_launch();
  if (!p) return;
  ranks_plan *truth = &ranks_plans[number];
  *truth = (ranks_plan){.own = sim_chance(500)};
  p->world = worlds[sim_roll(6)];
  snprintf(p->job, sizeof p->job, "slurm:0");
  snprintf(p->host, sizeof p->host, "host-0");
  snprintf(p->run, sizeof p->run, "run");
  p->take_over = true;
  pick_saves(p, truth, (unsigned)number);
  for (unsigned r = 0; r < p->world; r++) {
    truth->rank[r].leaves = sim_chance(120) ? (unsigned)sim_roll(p->saves) : p->saves;
    truth->rank[r].turned_away = r > 0 && sim_chance(40);
    start_rank(number, r);
  }
}

static actor *some_rank(bool first) {
  actor *found = NULL;
  uint64_t seen = 0;
  for (int i = 0; i < ACTORS_MAX; i++) {
    actor *a = actor_at(i);
    if (a && a->main == rank_main && (!first || a->rank == 0) && sim_roll(++seen) == 0) found = a;
  }
  return found;
}

static void kill_somebody(void) {
  actor *a = some_rank(false);
  if (!a) return;
  sim_trace("%s is killed", a->name);
  sim_count->crashes++;
  actor_unwind(a);
}

/* From a little longer than a rank waits before it leads, to longer than all wait. */
static void freeze_somebody(void) {
  actor *a = some_rank(sim_chance(600));
  if (!a || a->wake > sim_now + 60 * SECOND) return;
  int64_t ns = (int64_t)(20 + sim_roll(sim_chance(700) ? 200 : 1500)) * SECOND;
  sim_trace("%s is frozen for %lld s", a->name, (long long)(ns / SECOND));
  sim_count->frozen++;
  actor_freeze(a, ns);
}

/* A launcher starts one rank alone once more. */
static void start_one_again(void) {
  int number = schedule_launches() - 1;
  const launch_plan *p = &launches[number];
  unsigned rank = (unsigned)sim_roll(p->world);
  ranks_plan *truth = &ranks_plans[number];
  if (p->alive == 0 || truth->rank[rank].here || truth->rank[rank].lives == LIVES_MOST) return;
  truth->rank[rank].came_back = true;
  truth->rank[rank].turned_away = false;
  truth->rank[rank].leaves = p->saves;
  truth->rank[rank].differs = sim_chance(150);
  sim_count->came_back++;
  start_rank(number, rank);
}

static void pass_time(unsigned deaths, unsigned frosts) {
  sim_now += (int64_t)sim_roll(20000000);
  if (sim_chance(25)) late_arrive();
  if (sim_chance(deaths)) kill_somebody();
  if (sim_chance(frosts)) freeze_somebody();
  if (sim_chance(6)) start_one_again();
  if (!schedule_any_writer() ? sim_chance(200) : sim_chance(1)) start_launch();
}

static unsigned some_of(unsigned most) {
  return sim_chance(500) ? 0 : (unsigned)sim_roll(most + 1);
}

void ranks_run(uint64_t seed) {
  schedule_begin(seed);
  sim_weather = (weather){.files = sim_chance(400)};
  sim_weather.lost = some_of(8);
  sim_weather.lost_reply = some_of(30);
  sim_weather.late = some_of(30);
  sim_weather.refused = some_of(8);
  sim_weather.pause = some_of(4);
  unsigned deaths = some_of(4), frosts = some_of(12);
  int most = 2 + (int)sim_roll(2);
  start_launch();
  while (sim_steps < STEPS_MOST && (schedule_any_writer() || schedule_launches() < most)) {
    pass_time(deaths, frosts);
    if (!actor_step()) actor_wait();
  }
  schedule_calm();
  actors_end();
  sim_count->schedules++;
  sim_count->steps += sim_steps;
}
