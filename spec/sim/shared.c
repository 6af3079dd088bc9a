/* Tasks of one launch that write into one directory, each on its host: the first watches, and asks the
 * others (launch/hub.h). Each sees the directory in its own time, as on a network file system; some never
 * come, fall silent, die and come back.
 *
 * The judge: what is called complete each of them has seen as it is, since that was asked; nobody is
 * called gone who is not; and nobody is waited for beyond the bound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/move/unit_files.h"
#include "launch/hub.h"
#include "launch/member.h"
#include "shared.h"

enum { TASKS = 4, UNITS = 3, PARTS = 6, STEPS_MOST = 4000, VIEW_MAX = 512 };

static const int64_t WAIT = 60 * SECOND;   /* --rank-wait */
static const int64_t SILENT = 30 * SECOND; /* from then on nobody knows */
static const int64_t SLACK = 15 * SECOND;  /* from question to question, and the last pause */
static const int64_t ANSWER = 4 * SECOND;  /* a member looks for a question so often at least */

/* A file that one task has made, and when each sees it. */
typedef struct made {
  unsigned unit, task, part;
  int64_t seen_at[TASKS];
  bool seen[TASKS];
} made;

static struct {
  bool here, came, ended;     /* of the task; ended: it has said so */
  int64_t said_at;            /* when it last put an answer */
  char seen[UNITS][VIEW_MAX]; /* what it saw of each unit when it last answered */
} tasks[TASKS];

static made files[UNITS * TASKS * PARTS];
static size_t file_count;
static unsigned task_count;
static char top[64];
static int64_t asked_since[UNITS]; /* since when the watcher sees the unit as it does */
static char watched[UNITS][VIEW_MAX];

/* ---- the directory, as each host sees it ---- */

static void must_do(int rc, const char *what) {
  if (rc == 0) return;
  perror(what);
  exit(2);
}

static void path_of(char *out, const char *who, unsigned unit, const made *f) {
  if (f)
    snprintf(out, 200, "%s/%s/u-%u/part-%u.%u", top, who, unit, f->task, f->part);
  else
    snprintf(out, 200, "%s/%s/u-%u", top, who, unit);
}

static void show(made *f, unsigned task) {
  char from[200], to[200], who[16];
  snprintf(who, sizeof who, "view-%u", task);
  path_of(from, "server", f->unit, f);
  path_of(to, who, f->unit, NULL);
  mkdir(to, 0755);
  path_of(to, who, f->unit, f);
  must_do(link(from, to), to);
  f->seen[task] = true;
}

static void show_what_is_due(void) {
  for (size_t i = 0; i < file_count; i++)
    for (unsigned t = 0; t < task_count; t++)
      if (!files[i].seen[t] && files[i].seen_at[t] <= sim_now) show(&files[i], t);
}

/* Each but its writer sees it later. */
static void write_part(unsigned unit, unsigned task, unsigned part) {
  char path[200];
  made *f = &files[file_count++];
  *f = (made){.unit = unit, .task = task, .part = part};
  path_of(path, "server", unit, NULL);
  mkdir(path, 0755);
  path_of(path, "server", unit, f);
  FILE *out = fopen(path, "w");
  must_do(out ? 0 : -1, path);
  fprintf(out, "%u.%u of u-%u\n", task, part, unit);
  fclose(out);
  for (unsigned t = 0; t < task_count; t++)
    f->seen_at[t] = sim_now + (t == task ? 0 : (int64_t)sim_roll(8000) * (SECOND / 1000));
  show(f, task);
  sim_trace("writes part-%u.%u of u-%u", task, part, unit);
}

/* What a host sees of a unit: the judge's own look. */
static void look(unsigned task, unsigned unit, char out[VIEW_MAX]) {
  size_t len = 0;
  *out = 0;
  for (size_t i = 0; i < file_count; i++)
    if (files[i].unit == unit && files[i].seen[task])
      len += (size_t)snprintf(out + len, VIEW_MAX - len, "%u.%u ", files[i].task, files[i].part);
}

/* In whichever order they came. */
static bool same_files(const char *a, const char *b) {
  char part[16];
  if (strlen(a) != strlen(b)) return false;
  for (int len = 0, n = 0; sscanf(a + len, "%15s %n", part, &n) == 1; len += n)
    if (!strstr(b, part)) return false;
  return true;
}

static bool stamp_as(unsigned unit, uint64_t *stamp) {
  char name[16], root[100];
  unit_files found = {0};
  snprintf(name, sizeof name, "u-%u", unit);
  snprintf(root, sizeof root, "%s/view-0", top);
  if (unit_files_scan_as(io_system(), root, name, MATCH_DIR, rules_builtin(), UNIT_FILES_PLAIN,
                         &found, NULL) < 0)
    return false;
  *stamp = unit_files_stamp(&found);
  bool any = found.count > 0;
  unit_files_free(&found);
  return any;
}

/* ---- a task that another one watches for ---- */

static void answer(actor *a, member *m) {
  int64_t quiet;
  bool over;
  err e = {0};
  if (member_step(m, &quiet, &over, &e) < 0) sim_violation("%s: %s", a->name, e.text);
  if (quiet > 0) return; /* there was no new question */
  tasks[a->rank].said_at = sim_now;
  for (unsigned u = 0; u < UNITS; u++) look((unsigned)a->rank, u, tasks[a->rank].seen[u]);
}

static member *join_launch(const actor *a) {
  char home[100], view[100];
  member *m;
  err e = {0};
  snprintf(home, sizeof home, "%s/home", top);
  snprintf(view, sizeof view, "%s/view-%d", top, a->rank);
  member_options o = {.io = &a->io,
                      .dir = view,
                      .home = home,
                      .state = "",
                      .launch = "shared",
                      .task = (uint32_t)a->rank,
                      .index = (uint32_t)a->rank};
  if (member_join(&o, &m, &e) < 0) sim_violation("%s: %s", a->name, e.text);
  tasks[a->rank].came = true;
  tasks[a->rank].said_at = sim_now;
  for (unsigned u = 0; u < UNITS; u++) *tasks[a->rank].seen[u] = 0;
  return m;
}

static void pause_between(actor *a, member *m, int64_t ns) {
  for (const int64_t until = sim_now + ns; !a->dead && sim_now < until;) {
    if (m) answer(a, m);
    actor_sleep(a, SECOND / 2 + (int64_t)sim_roll(1000) * (SECOND / 1000));
  }
}

static bool was_written(unsigned unit, unsigned task, unsigned part) {
  for (size_t i = 0; i < file_count; i++)
    if (files[i].unit == unit && files[i].task == task && files[i].part == part) return true;
  return false;
}

static void task_main(actor *a) {
  const unsigned task = (unsigned)a->rank;
  err e = {0};
  member *m = join_launch(a);
  for (unsigned u = 0; !a->dead && u < UNITS; u++) {
    pause_between(a, m, (int64_t)sim_roll(20) * SECOND);
    for (unsigned p = 0; !a->dead && p < 1 + task % 3; p++) {
      if (!was_written(u, task, p)) write_part(u, task, p);
      pause_between(a, m, (int64_t)sim_roll(6) * SECOND);
    }
  }
  if (!a->dead) {
    tasks[task].ended = true;
    tasks[task].said_at = sim_now;
    if (member_end(m, true, &e) < 0) sim_violation("%s: %s", a->name, e.text);
    sim_trace("has ended");
  }
  member_close(m);
  tasks[task].here = false;
}

/* ---- the one that watches ---- */

static void check_complete(unsigned unit, int64_t opened) {
  for (unsigned t = 1; t < task_count; t++) {
    if (tasks[t].ended) continue;
    if (!tasks[t].came) {
      if (sim_now - opened < WAIT)
        sim_violation("u-%u is called complete, and task %u has never said a word", unit, t);
      continue;
    }
    if (!same_files(tasks[t].seen[unit], watched[unit]))
      sim_violation("u-%u is called complete, and task %u saw other files", unit, t);
    if (tasks[t].said_at < asked_since[unit])
      sim_violation("u-%u is called complete, and task %u has not looked since", unit, t);
  }
}

static void watch_unit(hub *h, unsigned unit, int64_t opened) {
  char why[256], now[VIEW_MAX], name[16];
  int64_t wait = 0;
  uint64_t stamp = 0;
  snprintf(name, sizeof name, "u-%u", unit);
  look(0, unit, now);
  if (!stamp_as(unit, &stamp)) return;
  if (!same_files(now, watched[unit])) {
    memcpy(watched[unit], now, sizeof now);
    asked_since[unit] = sim_now;
  }
  if (!hub_agrees(h, name, MATCH_DIR, stamp, why, sizeof why, &wait)) return;
  check_complete(unit, opened);
  sim_count->agreed++;
}

/* When the last of those that have not ended said something. */
static int64_t last_word(int64_t opened) {
  int64_t last = opened;
  for (unsigned t = 1; t < task_count; t++)
    if (!tasks[t].ended && tasks[t].said_at > last) last = tasks[t].said_at;
  return last;
}

static bool all_have_ended(int64_t opened) {
  for (unsigned t = 1; t < task_count; t++)
    if (!tasks[t].ended && (tasks[t].came || sim_now - opened < WAIT)) return false;
  return true;
}

static void check_end(hub_state state, int64_t opened, int64_t ended, int64_t end_at) {
  const int64_t last = last_word(opened);
  if (state == HUB_OVER && !all_have_ended(opened))
    sim_violation("all writers are called gone, and one has not said so");
  if (state == HUB_UNKNOWN && all_have_ended(opened) && sim_now < end_at)
    sim_violation("of one nobody knows, and all have ended");
  if (state == HUB_UNKNOWN && sim_now < end_at && sim_now - last < SILENT - ANSWER)
    sim_violation("one is called unknown that spoke %lld s ago",
                  (long long)((sim_now - last) / SECOND));
  const int64_t since = last > ended ? last : ended;
  if (state == HUB_LIVES && sim_now - since > WAIT + SILENT + SLACK)
    sim_violation("%lld s after the last word somebody is waited for",
                  (long long)((sim_now - since) / SECOND));
  if (state == HUB_LIVES && sim_now > end_at + SLACK)
    sim_violation("at the deadline somebody is waited for");
  sim_count->all_gone += state == HUB_OVER;
  sim_count->unknown += state == HUB_UNKNOWN;
}

static void watch_end(actor *a, hub *h, int64_t opened) {
  const int64_t ended = sim_now;
  const int64_t end_at = sim_chance(300) ? sim_now + (int64_t)sim_roll(80) * SECOND : INT64_MAX / 2;
  hub_state state = HUB_LIVES;
  hub_ended(h, true);
  while (!a->dead && state == HUB_LIVES) {
    int64_t due;
    for (unsigned u = 0; u < UNITS; u++) watch_unit(h, u, opened);
    const int64_t mono = end_at + a->mono;
    state = hub_step(h, sim_chance(500), mono, &due);
    check_end(state, opened, ended, end_at);
    actor_sleep(a, SECOND / 2);
  }
}

static void watcher_main(actor *a) {
  static const char *const excludes[] = {NULL};
  char home[100];
  hub *h;
  err e = {0};
  int64_t due;
  snprintf(home, sizeof home, "%s/home", top);
  hub_options o = {.io = &a->io,
                   .home = home,
                   .launch = "shared",
                   .count = task_count,
                   .excludes = excludes,
                   .wait_ns = WAIT};
  if (hub_open(&o, &h, &e) < 0) sim_violation("%s: %s", a->name, e.text);
  tasks[0].came = true;
  const int64_t opened = sim_now;
  for (unsigned u = 0; !a->dead && u < UNITS; u++) {
    write_part(u, 0, 0);
    for (const int64_t until = sim_now + (int64_t)sim_roll(30) * SECOND;
         !a->dead && sim_now < until;) {
      for (unsigned k = 0; k < UNITS; k++) watch_unit(h, k, opened);
      hub_step(h, sim_chance(500), INT64_MAX, &due);
      actor_sleep(a, SECOND / 4 + (int64_t)sim_roll(1000) * (SECOND / 1000));
    }
  }
  if (!a->dead) watch_end(a, h, opened);
  hub_close(h, true);
  tasks[0].here = false;
}

/* ---- a schedule ---- */

static void start_task(unsigned t) {
  char name[16];
  snprintf(name, sizeof name, "task-%u", t);
  tasks[t].here = true;
  actor_start(name, t == 0 ? watcher_main : task_main, -1, (int)t);
}

static actor *some_task(void) {
  unsigned t = 1 + (unsigned)sim_roll(task_count - 1);
  for (int i = 0; i < ACTORS_MAX; i++)
    if (actor_at(i) && actor_at(i)->main == task_main && actor_at(i)->rank == (int)t)
      return actor_at(i);
  return NULL;
}

static void happen(unsigned deaths, unsigned frosts) {
  actor *a = sim_chance(frosts) ? some_task() : NULL;
  if (a) {
    int64_t ns = (int64_t)sim_roll(sim_chance(500) ? 45 : 150) * SECOND;
    sim_trace("%s is frozen for %lld s", a->name, (long long)(ns / SECOND));
    sim_count->frozen++;
    actor_freeze(a, ns);
  }
  a = sim_chance(deaths) ? some_task() : NULL;
  if (a) {
    sim_trace("%s is killed", a->name);
    sim_count->crashes++;
    actor_unwind(a);
  }
  unsigned t = 1 + (unsigned)sim_roll(task_count - 1);
  if (sim_chance(4) && tasks[t].came && !tasks[t].here && !tasks[t].ended) {
    sim_count->came_back++;
    start_task(t);
  }
}

void shared_make(void) {
  snprintf(top, sizeof top, "%s/ckpt-shared.XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  must_do(mkdtemp(top) ? 0 : -1, top);
}

static void make_room(void) {
  char command[200], path[100];
  snprintf(command, sizeof command, "rm -rf '%s'/*", top);
  must_do(system(command), command);
  static const char *const rooms[] = {"home", "server", "view-0", "view-1", "view-2", "view-3"};
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
    snprintf(path, sizeof path, "%s/%s", top, rooms[i]);
    must_do(mkdir(path, 0755), path);
  }
}

void shared_end(void) {
  char command[200];
  snprintf(command, sizeof command, "rm -rf '%s'", top);
  if (system(command) != 0) fprintf(stderr, "%s stays behind\n", top);
}

void shared_run(uint64_t seed) {
  schedule_begin(seed);
  make_room();
  memset(tasks, 0, sizeof tasks);
  memset(watched, 0, sizeof watched);
  memset(asked_since, 0, sizeof asked_since);
  file_count = 0;
  task_count = 2 + (unsigned)sim_roll(TASKS - 1);
  unsigned deaths = sim_chance(500) ? 0 : 3, frosts = sim_chance(400) ? 0 : 12;
  start_task(0);
  actor_step();
  for (unsigned t = 1; t < task_count; t++)
    if (sim_chance(850)) start_task(t);
  while (tasks[0].here && sim_steps < STEPS_MOST) {
    sim_now += (int64_t)sim_roll(20000000);
    show_what_is_due();
    happen(deaths, frosts);
    if (!actor_step()) actor_wait();
  }
  if (tasks[0].here) sim_violation("it never ends");
  actors_end();
  sim_count->schedules++;
  sim_count->steps += sim_steps;
}
