/* Several writers on one log: threads that race for real, and schedules that follow from a seed in
 * which requests and replies are lost or late. Run with a seed as argument: that schedule alone. */
#include "with_cmocka.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "log_check.h"
#include "log_read.h"
#include "manifest_make.h"
#include "store_lossy.h"
#include "tmpdir.h"

/* ---- threads ---- */

enum { WRITERS = 8, LAST_COMMITS = 10 };

typedef struct race {
  const char *where;
  atomic_int begun;
} race;

typedef struct racer {
  race *race;
  pthread_t thread;
  long entries; /* that it was told to have made */
  bool fenced;
  char failure[300];
} racer;

static int one_save(runlog *log, int round, long *entries, err *e) {
  uint64_t n;
  int rc = runlog_attempt_begin(log, round % 2 ? "last.ckpt" : "a", &n, e);
  if (rc < 0) return rc;
  ++*entries;
  if (round % 3 == 0) {
    rc = runlog_sweep(log, n, e);
  } else {
    manifest m;
    make_small(&m, round % 2 ? "last.ckpt" : "a", (uint64_t)round);
    rc = runlog_commit_attempt(log, n, &m, NULL, NULL, e);
    manifest_free(&m);
  }
  *entries += rc == 0;
  return rc;
}

/* Saves until it is fenced; the last one to begin never is, and ends the race. */
static int race_on(racer *r, runlog *log, err *e) {
  runlog_writer who = {.launch = "x", .host = "h"};
  int rc = runlog_begin(log, "run", &who, false, e), left = LAST_COMMITS;
  if (rc < 0) return rc;
  r->entries++;
  atomic_fetch_add(&r->race->begun, 1);
  for (int round = 0; rc == 0 && left > 0; round++) {
    if (atomic_load(&r->race->begun) == WRITERS) left--;
    rc = one_save(log, round, &r->entries, e);
  }
  return rc;
}

static void *race_thread(void *ctx) {
  racer *r = ctx;
  uri u;
  store *s = NULL;
  runlog *log = NULL;
  err e = {0};
  int rc = uri_parse(r->race->where, &u, &e);
  if (rc == 0) rc = store_open(&u, io_system(), NULL, &s, &e);
  if (rc == 0) rc = runlog_open(s, "g", &log, &e);
  if (rc == 0) rc = race_on(r, log, &e);
  r->fenced = rc == ERR_FENCED;
  if (rc < 0 && !r->fenced) snprintf(r->failure, sizeof r->failure, "%.299s", e.text);
  /* Nothing can be done any more, whatever is tried. */
  uint64_t n;
  if (r->fenced && runlog_attempt_begin(log, "b", &n, NULL) != ERR_FENCED)
    snprintf(r->failure, sizeof r->failure, "a fenced writer went on");
  runlog_close(log);
  store_close(s);
  return NULL;
}

static void race_at(const char *where) {
  race shared = {.where = where};
  racer racers[WRITERS] = {0};
  uri u;
  store *s = NULL;
  size_t entries;
  long made = 1; /* the entry of the run */
  int fenced = 0;
  assert_int_equal(uri_parse(where, &u, NULL), 0);
  assert_int_equal(store_open(&u, io_system(), NULL, &s, NULL), 0);
  for (int i = 0; i < WRITERS; i++) {
    racers[i].race = &shared;
    assert_int_equal(pthread_create(&racers[i].thread, NULL, race_thread, &racers[i]), 0);
  }
  for (int i = 0; i < WRITERS; i++) {
    pthread_join(racers[i].thread, NULL);
    made += racers[i].entries;
    fenced += racers[i].fenced;
  }
  for (int i = 0; i < WRITERS; i++)
    if (racers[i].failure[0]) fail_msg("writer %d: %s", i, racers[i].failure);
  const char *why = log_check(s, "g", &entries);
  if (why) fail_msg("%s", why);
  /* All were told the truth: what was made stands once, and nothing else does. */
  assert_int_equal(entries, made);
  assert_int_equal(fenced, WRITERS - 1);
  store_close(s);
}

static void racing_writers_leave_one_log_in_memory(void **state) {
  for (int i = 0; i < 6; i++) race_at("mem://race");
}

static void racing_writers_leave_one_log_in_files(void **state) {
  for (int i = 0; i < 3; i++) {
    char *dir = tmpdir_new();
    race_at(dir);
    tmpdir_remove(dir);
  }
}

/* ---- schedules ---- */

enum { SCHEDULES = 2000, STEPS = 16, TOLD_MAX = 1000 };

typedef struct world world;

/* One writer: a handle that is opened anew after it was fenced or has died. */
typedef struct actor {
  world *world;
  store_lossy *link;
  runlog *log;
  bool began, busy;
} actor;

struct world {
  uint64_t seed, random;
  store *s;
  actor actors[2];
  uint64_t told[TOLD_MAX]; /* commits that a caller was told to stand */
  size_t told_count;
  long acts, fences, failures, removals, marks, ends, snapshots, follows, sweeps;
};

static const char *const units[] = {"a", "last.ckpt", "x.~6", "x", "foreign"};

static uint64_t roll(world *w, uint64_t sides) {
  return next_random(&w->random) % sides;
}

static _Noreturn void give_up(const world *w, const char *text) {
  fail_msg("seed %llu: %s", (unsigned long long)w->seed, text);
  abort();
}

/* An error that a broken network explains is fine; any other is a fault of the code. */
static void judge(actor *a, int rc, const err *e) {
  world *w = a->world;
  w->acts++;
  if (rc == 0 || rc == ERR_CONFLICT) return;
  if (rc == ERR_IO || rc == ERR_TIMEOUT) {
    w->failures++;
    return;
  }
  if (rc != ERR_FENCED) give_up(w, e->text);
  w->fences++;
  uint64_t n;
  if (runlog_attempt_begin(a->log, "a", &n, NULL) != ERR_FENCED)
    give_up(w, "a fenced writer went on");
  runlog_close(a->log);
  a->log = NULL;
  a->began = false;
}

static void act_attempt(actor *a) {
  world *w = a->world;
  err e = {0};
  uint64_t n = 0;
  const char *unit = units[roll(w, sizeof units / sizeof units[0])];
  int rc = runlog_attempt_begin(a->log, unit, &n, &e);
  if (rc == 0) {
    const runlog_attempt *at = runlog_find_attempt(runlog_view(a->log), n);
    char key[STORE_KEY_MAX];
    store_object object;
    if (!at || strcmp(at->unit, unit) != 0) give_up(w, "an attempt is not what it was asked to be");
    snprintf(key, sizeof key, "%s/data", at->dir);
    if (w->s->ops->head(w->s, key, &object, NULL) != ERR_NOENT)
      give_up(w, "an attempt got a directory with data in it");
    if (roll(w, 2)) w->s->ops->put(w->s, key, "x", 1, STORE_IF_ABSENT, NULL);
  }
  judge(a, rc, &e);
}

/* Something else with one of the attempts. */
static void act_about(actor *a) {
  world *w = a->world;
  const runlog_state *st = runlog_view(a->log);
  if (st->attempt_count == 0) return;
  size_t back = (size_t)roll(w, st->attempt_count < 3 ? st->attempt_count : 3);
  const runlog_attempt *at = &st->attempts[st->attempt_count - 1 - back];
  uint64_t attempt = at->n, n = 0;
  manifest m;
  err e = {0};
  int rc;
  switch (roll(w, 4)) {
  case 0: rc = runlog_adopt(a->log, attempt, &e); break;
  case 1: rc = runlog_sweep(a->log, attempt, &e); break;
  default:
    make_small(&m, at->unit, attempt);
    rc = runlog_commit_attempt(a->log, attempt, &m, NULL, &n, &e);
    manifest_free(&m);
    if (rc == 0 && w->told_count < TOLD_MAX) w->told[w->told_count++] = n;
  }
  judge(a, rc, &e);
}

/* Drops or deletes a commit, with the term of the actor or as a guest. */
static void act_remove(actor *a) {
  world *w = a->world;
  err e = {0};
  runlog *log = a->log;
  bool guest = roll(w, 2);
  if (guest && runlog_open(&a->link->base, "", &log, &e) < 0) return;
  const runlog_state *st = runlog_view(log);
  if (st->commit_count) {
    const runlog_commit *c = &st->commits[roll(w, st->commit_count)];
    uint64_t n = c->n;
    bool drops = c->life == RUNLOG_LIVE;
    int rc = drops ? runlog_drop(log, n, "p", "r", NULL, NULL, &e)
                   : runlog_delete(log, n, NULL, NULL, &e);
    if (rc == 0 && runlog_find_commit(runlog_view(log), n)->life == RUNLOG_LIVE)
      give_up(w, "what was dropped is live");
    w->removals += rc == 0;
    if (!guest)
      judge(a, rc, &e);
    else if (rc == ERR_FENCED)
      give_up(w, "a guest was fenced");
  }
  if (guest) runlog_close(log);
}

/* What a guest may, and a writer too: marks, sweeps, and rarely the end of it all. */
static void act_beside(actor *a) {
  world *w = a->world;
  err e = {0};
  runlog *log = a->log;
  bool guest = roll(w, 2);
  int rc = 0;
  if (guest && runlog_open(&a->link->base, "", &log, &e) < 0) return;
  const runlog_state *st = runlog_view(log);
  switch (roll(w, 8)) {
  case 0:
    rc = runlog_end(log, "over", NULL, NULL, &e);
    if (rc == 0 && !runlog_view(log)->ended) give_up(w, "what was ended goes on");
    w->ends += rc == 0;
    break;
  case 1:
  case 2:
  case 3:
    if (!st->attempt_count) break;
    rc = runlog_sweep(log, st->attempts[roll(w, st->attempt_count)].n, &e);
    w->sweeps += rc == 0 && guest;
    break;
  default:
    if (!st->commit_count) break;
    const runlog_commit *c = &st->commits[roll(w, st->commit_count)];
    uint64_t n = c->n;
    bool bad = !c->bad;
    rc = runlog_mark(log, n, bad, "r", &e);
    if (rc == 0 && runlog_find_commit(runlog_view(log), n)->bad != bad)
      give_up(w, "what was marked is not");
    w->marks += rc == 0;
    if (rc == ERR_INVAL) rc = 0; /* it is dropped by now */
  }
  if (!guest)
    judge(a, rc, &e);
  else if (rc == ERR_FENCED)
    give_up(w, "a guest was fenced");
  if (guest) runlog_close(log);
}

static void act_snapshot(actor *a) {
  err e = {0};
  int rc = runlog_snapshot_now(a->log, &e);
  a->world->snapshots += rc == 0;
  judge(a, rc, &e);
}

/* A term of its own, or that of the other one, as a rank of its launch. */
static void act_begin(actor *a) {
  world *w = a->world;
  err e = {0};
  bool first = a == &w->actors[0];
  if (roll(w, 4) == 0) {
    int rc = runlog_follow(a->log, first ? "b" : "a", 2, &e);
    a->began = rc == 0;
    w->follows += rc == 0;
    judge(a, rc == ERR_NOENT ? 0 : rc, &e);
    return;
  }
  runlog_writer who = {.host = "h", .world = 2};
  who.launch[0] = first ? 'a' : 'b';
  int rc = runlog_begin(a->log, "run", &who, false, &e);
  a->began = rc == 0;
  judge(a, rc, &e);
}

static void act(actor *a) {
  world *w = a->world;
  err e = {0};
  a->busy = true;
  if (a->log && roll(w, 20) == 0) { /* it dies; its requests may live on */
    runlog_close(a->log);
    a->log = NULL;
    a->began = false;
  }
  if (!a->log && runlog_open(&a->link->base, "", &a->log, &e) < 0) {
    a->log = NULL;
  } else if (!a->began) {
    act_begin(a);
  } else if (roll(w, 3) == 0) {
    act_attempt(a);
  } else if (roll(w, 10) == 0) {
    act_snapshot(a);
  } else if (roll(w, 8) == 0) {
    act_beside(a);
  } else if (roll(w, 4) == 0) {
    act_remove(a);
  } else {
    act_about(a);
  }
  a->busy = false;
}

/* The other writer acts between two requests of this one. */
static void between(void *ctx) {
  actor *a = ctx;
  actor *other = &a->world->actors[a == &a->world->actors[0]];
  if (!other->busy && roll(a->world, 4) == 0) act(other);
}

static void world_start(world *w, uint64_t seed) {
  uri u;
  *w = (world){.seed = seed, .random = seed};
  assert_int_equal(uri_parse("mem://schedule", &u, NULL), 0);
  assert_int_equal(store_open(&u, io_system(), NULL, &w->s, NULL), 0);
  /* Something that no log knows of. */
  assert_int_equal(w->s->ops->put(w->s, "foreign/data", "x", 1, STORE_IF_ABSENT, NULL), 0);
  for (int i = 0; i < 2; i++) {
    actor *a = &w->actors[i];
    *a = (actor){.world = w};
    a->link = store_lossy_new(w->s, seed * 2 + (uint64_t)i, roll(w, 8) != 0);
    /* Some networks are fine, some are dreadful. */
    a->link->lost = (unsigned)roll(w, 3) * 150;
    a->link->never = (unsigned)roll(w, 3) * 100;
    a->link->late = (unsigned)roll(w, 3) * 100;
    a->link->deaf = (unsigned)roll(w, 3) * 50;
    a->link->between = between;
    a->link->ctx = a;
  }
}

static void world_check(world *w) {
  size_t entries;
  for (int i = 0; i < 2; i++) store_lossy_arrive(w->actors[i].link);
  const char *why = log_check(w->s, "", &entries);
  if (why) give_up(w, why);
  runlog *reader = NULL;
  err e = {0};
  if (runlog_open(w->s, "", &reader, &e) < 0) give_up(w, e.text);
  const runlog_state *st = runlog_view(reader);
  if (st->next != entries) give_up(w, "a reader sees another end");
  runlog_state all = log_read(w->s, "");
  log_must_equal(st, &all);
  runlog_state_free(&all);
  for (size_t i = 0; i < w->told_count; i++) {
    bool found = false;
    for (size_t k = 0; k < st->commit_count; k++) found |= st->commits[k].n == w->told[i];
    if (!found) give_up(w, "a commit that was reported does not stand");
  }
  runlog_close(reader);
}

static void world_end(world *w) {
  for (int i = 0; i < 2; i++) {
    runlog_close(w->actors[i].log);
    store_lossy_free(w->actors[i].link);
  }
  store_close(w->s);
}

static void add_up(world *sum, const world *w) {
  sum->acts += w->acts;
  sum->fences += w->fences;
  sum->failures += w->failures;
  sum->removals += w->removals;
  sum->marks += w->marks;
  sum->ends += w->ends;
  sum->snapshots += w->snapshots;
  sum->follows += w->follows;
  sum->sweeps += w->sweeps;
}

static uint64_t only_seed;

static void lost_and_late_requests_break_no_rule(void **state) {
  world sum = {0};
  long commits = 0;
  uint64_t first = only_seed ? only_seed : 1, last = only_seed ? only_seed : SCHEDULES;
  for (uint64_t seed = first; seed <= last; seed++) {
    world w;
    world_start(&w, seed);
    for (int i = 0; i < STEPS; i++) act(&w.actors[roll(&w, 2)]);
    world_check(&w);
    world_end(&w);
    add_up(&sum, &w);
    commits += (long)w.told_count;
  }
  print_message("%ld operations, %ld commits, %ld fenced, %ld failed, %ld removals, %ld marks, %ld "
                "ends, %ld snapshots, %ld ranks, %ld sweeps by guests\n",
                sum.acts, commits, sum.fences, sum.failures, sum.removals, sum.marks, sum.ends,
                sum.snapshots, sum.follows, sum.sweeps);
  if (only_seed) return;
  /* Schedules in which nothing happens prove nothing. */
  assert_true(commits > SCHEDULES);
  assert_true(sum.removals > SCHEDULES / 4);
  assert_true(sum.fences > SCHEDULES);
  assert_true(sum.failures > SCHEDULES);
  assert_true(sum.marks > 100 && sum.ends > 100 && sum.snapshots > 100);
  assert_true(sum.follows > 100 && sum.sweeps > 20);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(racing_writers_leave_one_log_in_memory),
      cmocka_unit_test(racing_writers_leave_one_log_in_files),
      cmocka_unit_test(lost_and_late_requests_break_no_rule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
