/* One schedule: which launches, guests and readers there are, and when the sky falls. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { STEPS_MIN = 200, STEPS_MAX = 20000, LAUNCH_ROOM = 8 };

static int launch_count;

static void pick_saves(launch_plan *p) {
  /* A job that starts again saves what it saved before, and goes on. */
  const launch_plan *before = launch_count > 0 ? &launches[launch_count - 1] : NULL;
  p->saves = 1 + (unsigned)sim_roll(5);
  for (unsigned i = 0; i < p->saves; i++) {
    p->save[i].unit = units_pick(p->world);
    p->save[i].version = 1 + (unsigned)sim_roll(VERSIONS);
    if (before && before->world == p->world && i < before->saves && sim_chance(400)) {
      p->save[i].unit = before->save[i].unit;
      if (sim_chance(600)) p->save[i].version = before->save[i].version;
    } else if (i && sim_chance(300)) {
      p->save[i].unit = p->save[i - 1].unit;
    }
  }
}

/* Starts a launch: the same job again, or another one. */
static void start_launch(void) {
  static const unsigned worlds[] = {1, 1, 1, 1, 2, 3};
  if (launch_count == LAUNCH_ROOM) return;
  launch_plan *p = &launches[launch_count];
  *p = (launch_plan){.world = worlds[sim_roll(6)]};
  bool other_job = sim_chance(300), other_host = sim_chance(400);
  snprintf(p->id, sizeof p->id, "launch-%d", launch_count);
  snprintf(p->job, sizeof p->job, "slurm:%d", other_job ? launch_count : 0);
  snprintf(p->host, sizeof p->host, "host-%d", other_host ? launch_count : 0);
  snprintf(p->run, sizeof p->run, "%s", sim_chance(40) ? "another" : "run");
  p->take_over = sim_chance(400);
  p->continue_run = sim_chance(30);
  pick_saves(p);
  p->alive = p->world;
  char name[32];
  for (unsigned r = 0; r < p->world; r++) {
    snprintf(name, sizeof name, "w%d.%u", launch_count, r);
    if (!actor_start(name, writer_main, launch_count, (int)r)) p->alive--;
  }
  launch_count++;
}

launch_plan *schedule_launch(void) {
  if (launch_count == LAUNCH_ROOM) return NULL;
  launch_plan *p = &launches[launch_count];
  *p = (launch_plan){0};
  snprintf(p->id, sizeof p->id, "launch-%d", launch_count++);
  return p;
}

int schedule_launches(void) {
  return launch_count;
}

bool schedule_any_writer(void) {
  for (int i = 0; i < launch_count; i++)
    if (launches[i].alive) return true;
  return false;
}

static void crash_somebody(void) {
  actor *a = actor_at((int)sim_roll(ACTORS_MAX));
  if (!a) return;
  sim_trace("%s is killed", a->name);
  sim_count->crashes++;
  actor_unwind(a);
}

static void jump_a_clock(void) {
  actor *a = actor_at((int)sim_roll(ACTORS_MAX));
  static const int64_t far[] = {3 * SECOND, 1000 * SECOND, 7200 * SECOND};
  if (!a) return;
  int64_t by = (int64_t)sim_roll((uint64_t)far[sim_roll(3)]);
  if (sim_chance(500)) by = -by;
  a->wall += by;
  if (by > 0 && sim_chance(300)) a->mono += by;
  sim_count->clock_jumps++;
  sim_trace("%s: its clock jumps by %.0f s", a->name, (double)by / 1e9);
}

/* The head is a hint, and may be anything. */
static void spoil_the_hint(void) {
  char text[80];
  int len = snprintf(text, sizeof text, "{\"format\":1,\"reader\":1,\"snapshot\":%lld}",
                     judge_entries() - 4 + (long long)sim_roll(8));
  if (judge_entries() <= 4) return;
  space_put(".ckpt/head", text, sim_chance(100) ? 9 : (size_t)len, "");
  judge_forget_head();
}

/* Where everybody acts at once, nobody comes to an end. */
static bool is_crowded(void) {
  int guests = 0;
  for (int i = 0; i < ACTORS_MAX; i++)
    if (actor_at(i) && actor_at(i)->launch < 0) guests++;
  return guests >= 3;
}

/* A reader that sleeps for longer than its pin holds; NULL: none. */
static actor *sleeper(void) {
  for (int i = 0; i < ACTORS_MAX; i++) {
    actor *a = actor_at(i);
    if (a && a->pin[0] && a->wake > sim_now && a->wake > a->pin_until) return a;
  }
  return NULL;
}

static bool is_robbed(void) {
  for (int i = 0; i < ACTORS_MAX; i++)
    if (actor_at(i) && actor_at(i)->main == rob_main) return true;
  return false;
}

/* What it reads is removed meanwhile, and then it wakes: what it does next shows whether it saw. */
static void rob(actor *reader) {
  if (sim_now <= reader->pin_until)
    sim_now = reader->pin_until + (int64_t)sim_roll(60) * SECOND;
  else if (judge_has_deleted(reader->reads))
    sim_count->robbed++, lost_let_go(reader), reader->wake = sim_now;
  else if (!is_robbed())
    actor_start("robber", rob_main, -1, reader->id);
}

static void start_guest(void) {
  switch (sim_roll(16)) {
  case 0:
  case 1:
  case 2: actor_start("rm", rm_main, -1, 0); break;
  case 3:
  case 4: actor_start("gc", gc_main, -1, 0); break;
  case 5:
  case 10: actor_start("sweep", sweep_main, -1, 0); break;
  case 6:
  case 7:
  case 8: actor_start("mark", mark_main, -1, 0); break;
  case 9: actor_start("end", end_main, -1, 0); break;
  default: actor_start("reader", reader_main, -1, 0);
  }
}

static unsigned some_of(unsigned most) {
  return sim_chance(400) ? 0 : (unsigned)sim_roll(most + 1);
}

/* The share of schedules with last acts is no roll: what the seeds are known for stays. */
static void pick_weather(uint64_t seed) {
  sim_weather = (weather){.files = sim_chance(250)};
  sim_weather.whole = seed % 5 >= (sim_repairs ? 3 : 4);
  sim_weather.lost = some_of(20);
  sim_weather.lost_reply = some_of(60);
  sim_weather.late = some_of(60);
  sim_weather.refused = some_of(20);
  sim_weather.pause = some_of(12);
  sim_weather.crash = some_of(8);
  sim_weather.jump = some_of(8);
}

/* Entries are lost now and then; repairs begin behind it, two at once, too. */
static void lose_and_mend(void) {
  if (sim_chance(lost_any() ? 2 : sim_weather.whole ? 0 : 8)) lost_disaster();
  if (sim_chance(lost_since() ? 30 : lost_any() ? 3 : sim_weather.whole ? 0 : 1) && !is_crowded())
    actor_start("repair", repair_main, -1, sim_chance(700));
}

/* What happens beside the processes. */
static void pass_time(void) {
  sim_now += (int64_t)sim_roll(20000000);
  if (sim_chance(4)) sim_now += (int64_t)sim_roll(1200) * SECOND;
  if (sim_chance(judge_any_dropped() ? 12 : 1))
    sim_now += GRACE + (int64_t)sim_roll(sim_chance(500) ? 60 : 400) * SECOND;
  if (sim_chance(25)) late_arrive();
  if (sim_chance(sim_weather.crash)) crash_somebody();
  if (sim_chance(sim_weather.jump)) jump_a_clock();
  if (sim_chance(30) && !is_crowded()) start_guest();
  if (judge_any_dropped() && sim_chance(12) && !is_crowded()) actor_start("gc", gc_main, -1, 0);
  if (sleeper() && sim_chance(25)) rob(sleeper());
  if (!sim_repairs && sim_chance(3)) spoil_the_hint();
  if (sim_repairs) lose_and_mend();
  if (sim_chance(30)) judge_visit();
  if (!schedule_any_writer() ? sim_chance(100) : sim_chance(4)) start_launch();
}

/* ---- when all others are gone: what seldom comes about while everybody acts ---- */

static void one_turn(void) {
  sim_now += (int64_t)sim_roll(20000000);
  if (!actor_step()) actor_wait();
}

static void let_alone(actor *a, unsigned calm) {
  if (a) a->calm = calm;
  for (int i = 0; a && a->used && !a->dead && i < 4 * STEPS_MIN; i++) one_turn();
}

/* Of each kind the newest stays, so there are several of one. */
static void save_some(unsigned count) {
  launch_plan *p = &launches[launch_count];
  *p = (launch_plan){.id = "late", .job = "slurm:late", .host = "late", .run = "run", .world = 1};
  p->take_over = p->continue_run = true;
  p->alive = 1;
  for (; p->saves < count; p->saves++) {
    p->save[p->saves].version = 1 + (unsigned)sim_roll(VERSIONS);
    do p->save[p->saves].unit = units_pick(1);
    while (p->save[p->saves].unit.step == MATCH_NO_STEP);
  }
  let_alone(actor_start("late", writer_main, launch_count++, 0), 1);
}

/* A reader sleeps for longer than its pin holds, and what it reads is removed meanwhile. */
static void rob_a_sleeper(void) {
  save_some(2);
  actor *reader = actor_start("sleeper", reader_main, -1, 0);
  for (int i = 0; reader->used && reader->wake <= sim_now && i < STEPS_MIN; i++) one_turn();
  bool sleeps = reader->used && reader->pin[0];
  if (sleeps) reader->wake = INT64_MAX;
  save_some(1);
  if (!sleeps) return;
  if (sim_now <= reader->pin_until) sim_now = reader->pin_until + SECOND;
  for (int i = 0; i < 2 && !judge_has_deleted(reader->reads); i++)
    let_alone(actor_start("robber", rob_main, -1, reader->id), 1);
  if (judge_has_deleted(reader->reads)) sim_count->robbed++, lost_let_go(reader);
  reader->wake = sim_now;
  let_alone(reader, 0);
}

/* Somebody removes what was let go, and may die at it, or sleep while the log is repaired. */
static void remove_the_last(void) {
  let_alone(actor_start("rm", rm_main, -1, 0), 1);
  sim_now += 1000 * SECOND; /* no pin holds it any more */
  actor *a = actor_start("gc", gc_main, -1, 0);
  a->doomed = sim_chance(500);
  let_alone(a, 0);
}

static void last_acts(void) {
  if (sim_chance(600))
    rob_a_sleeper();
  else
    save_some(3);
  if (!lost_any()) remove_the_last();
  actors_end();
}

/* Nothing goes wrong any more, but for what is still on its way. */
void schedule_calm(void) {
  bool whole = sim_weather.whole;
  actors_end();
  sim_weather = (weather){.files = sim_weather.files};
  if (whole && !lost_any()) last_acts();
  launch_plan *p = &launches[launch_count];
  if (sim_chance(500)) {
    while (late_arrive()) continue;
    sim_now += SECOND;
    judge_restore_backups();
  }
  *p = (launch_plan){.id = "calm", .job = "slurm:calm", .host = "calm", .run = "run", .world = 1};
  p->take_over = p->continue_run = true;
  pick_saves(p);
  p->alive = 1;
  calm_done = false;
  actor *a = actor_start("calm", calm_main, launch_count, 0);
  a->calm = 1;
  a->wall = 0;
  while (!calm_done) {
    sim_now += (int64_t)sim_roll(20000000);
    if (sim_chance(30)) late_arrive();
    if (!actor_step() && !actor_wait()) break;
    if (sim_steps > 2 * STEPS_MAX) sim_violation("it never ends");
  }
  while (late_arrive()) continue;
  judge_all();
}

void schedule_begin(uint64_t seed) {
  sim_seed(seed);
  judge_clear();
  late_clear();
  space_clear();
  launch_count = 0;
  readers_forget();
}

void schedule_run(uint64_t seed) {
  schedule_begin(seed);
  pick_weather(seed);
  /* What no log knows of. */
  if (sim_chance(150)) space_put("checkpoint-10/foreign", "x", 1, "");
  if (sim_chance(100)) space_put("x/foreign", "x", 1, "");
  start_launch();
  if (sim_chance(300)) start_launch();
  while (sim_steps < 2 * STEPS_MIN ||
         ((schedule_any_writer() || sleeper()) && sim_steps < 4 * STEPS_MIN)) {
    pass_time();
    if (!actor_step()) actor_wait();
  }
  schedule_calm();
  actors_end();
  sim_count->schedules++;
  sim_count->steps += sim_steps;
}
