/* The processes of the simulated world, each on the shipped engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/keep/collect.h"
#include "job/restore/pinned.h"
#include "job/keep/prune.h"
#include "job/restore/restore.h"
#include "commit/log/runlog_impl.h"
#include "commit/settle.h"
#include "job/move/transfer.h"
#include "job/repair/repair.h"
#include "sim.h"
#include "writer.h"

enum { TRIES = 3, KEEP = 2 };

launch_plan launches[LAUNCHES_MAX];
bool calm_done;

/* ---- a writer: one rank of a launch ---- */

static void renew(writer *w) {
  if (w->a->rank > 0 || sim_now - w->renewed < 300 * SECOND) return;
  group_renew(&w->group, w->group.term, NULL);
  w->renewed = sim_now;
}

/* Keeps the last ones, as a policy would. */
static int retain(writer *w, size_t most) {
  prune p = {.store = &w->a->store,
             .log = w->group.log,
             .limits = {.max_drop = 0.5, .grace_ns = GRACE},
             .resumed = w->resumed};
  prune_wish wishes[64];
  prune_rest rest;
  size_t count = 0, live = 0;
  const runlog_state *s = runlog_view(w->group.log);
  err e = {0};
  for (size_t i = s->commit_count; i-- > 0;)
    if (s->commits[i].life == RUNLOG_LIVE && !s->commits[i].bad) live++;
  for (size_t i = 0; i < s->commit_count && live > KEEP && count < 64; i++)
    if (s->commits[i].life == RUNLOG_LIVE) {
      wishes[count++] = (prune_wish){s->commits[i].n, "sim", "not among the last"};
      live -= !s->commits[i].bad;
    }
  int rc = prune_drop(&p, wishes, count, &e);
  if (rc == 0) rc = prune_delete(&p, most, &rest, &e);
  if (rc == 0 && rest.litter) settle_litter(&w->a->store, w->group.log, NULL);
  if (rc < 0) writer_note_failure(w->a, rc, &e);
  return rc;
}

/* A snapshot of the log, more often than the engine makes one by itself. */
static int freeze(writer *w) {
  err e = {0};
  int rc = runlog_snapshot_now(w->group.log, &e);
  if (rc < 0) writer_note_failure(w->a, rc, &e);
  return rc;
}

static int writer_saves(writer *w) {
  int rc = 0;
  for (unsigned i = 0; rc != ERR_FENCED && !w->a->dead && i < w->plan->saves; i++) {
    renew(w);
    rc = writer_save(w, &w->plan->save[i].unit, w->plan->save[i].version);
    if (rc != ERR_FENCED && !w->a->dead && w->a->rank == 0 && sim_chance(700)) rc = retain(w, 1);
    if (rc != ERR_FENCED && !w->a->dead && w->a->rank == 0 && sim_chance(150)) rc = freeze(w);
    if (rc != ERR_FENCED) actor_sleep(w->a, (int64_t)sim_roll(600) * SECOND);
  }
  return rc;
}

void writer_main(actor *a) {
  writer w;
  writer_open(&w, a);
  if (writer_begin(&w) == 0) writer_saves(&w);
  group_close(&w.group);
  launches[a->launch].alive--;
}

/* ---- the last launch, when nothing goes wrong any more ---- */

static int read_whole(actor *a, const runlog_commit *c, const char *by);

static int repair_once(actor *a, bool take_over) {
  const repair how = {.store = &a->store, .prefix = "", .take_over = take_over};
  err e = {0};
  a->humble = !take_over;
  a->looked = sim_now;
  sim_count->repairs++;
  int rc = repair_log(&how, &e);
  sim_trace("repair: %s", rc < 0 ? e.text : "done");
  sim_count->mended += rc == 0;
  /* An epoch that a dead one took may still come late. */
  if (rc < 0 && a->calm && rc != ERR_HELD && rc != ERR_FENCED)
    sim_violation("a calm repair fails: %s", e.text);
  return rc;
}

void repair_main(actor *a) {
  for (int i = 0; i < TRIES && !a->dead && repair_once(a, a->rank) < 0; i++)
    actor_sleep(a, (int64_t)sim_roll(20) * SECOND);
}

/* Whatever was lost, and whatever became of repairs, one that is let alone mends it. */
static void mend(actor *a) {
  int rc = -1;
  for (int i = 0; i < 4 * TRIES && rc < 0; i++) rc = repair_once(a, true);
  if (rc < 0) sim_violation("a calm repair does not end");
}

/* Whatever was left behind, a new launch saves, within a bounded time, and what is there is whole.
 */
void calm_main(actor *a) {
  writer w;
  if (lost_any()) mend(a);
  int64_t since = sim_now;
  uint64_t steps = a->steps;
  writer_open(&w, a);
  if (writer_begin(&w) < 0) sim_violation("a calm launch cannot begin");
  if (lost_any()) lost_promised_at_the_end();
  retain(&w, 100);
  for (unsigned i = 0; i < w.plan->saves; i++) {
    int rc = writer_save(&w, &w.plan->save[i].unit, w.plan->save[i].version);
    if (rc != 0 && rc != ERR_RETIRED) sim_violation("a calm launch cannot save: %s", err_text(rc));
  }
  if (sim_now - since > GRACE / 2 || a->steps - steps > 3000)
    sim_violation("a calm save waited for %lld s, %llu steps",
                  (long long)((sim_now - since) / SECOND), (unsigned long long)(a->steps - steps));
  retain(&w, 100);
  group_close(&w.group);
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(&a->store, "", &log, &e) < 0) sim_violation("the log cannot be read: %s", e.text);
  if (judge_is_clear()) judge_compare(runlog_view(log));
  for (size_t i = 0; i < runlog_view(log)->commit_count; i++) {
    const runlog_commit *c = &runlog_view(log)->commits[i];
    if (c->life == RUNLOG_LIVE && read_whole(a, c, "calm") != 0)
      sim_violation("%s is live and cannot be read", c->dir);
  }
  runlog_close(log);
  calm_done = true;
}

/* ---- readers ---- */

/* Is the pin that this reader put still what keeps the data there? */
static bool holds(const actor *a) {
  return a->pin[0] && !a->pin_lapsed && sim_now <= a->pin_until;
}

static int read_once(actor *a, store *s, const runlog_commit *c, err *e) {
  manifest m = {0};
  transfer t = {.io = &a->io, .store = s};
  int rc = restore_manifest(s, "", c, &m, e);
  if (rc == 0) rc = transfer_verify(&t, &m, c->dir, NULL, NULL, e);
  manifest_free(&m);
  return rc > 0 ? err_set(e, ERR_CORRUPT, "%s: %d files are missing or wrong", c->dir, rc) : rc;
}

/* A log with a hole does not tell whether a pin that lapsed holds anything, so nothing is read. What was
 * not let go has to stand all the same, but for a commit that its own writer took for lost: it was put
 * where another entry had been, and one behind it had let its save go. */
static bool is_refused(const actor *a, const runlog_commit *c, const err *e) {
  if (!lost_shows(a)) return false;
  return judge_stands(c->n) || !lost_is_promised(c->n) ||
         strncmp(e->text, "hole in the log", strlen("hole in the log")) == 0;
}

/* What was read last: what is removed by hand is often that, or the rules for readers are not
 * tried.
 */
static uint64_t read_last;

/* 0 if all of it was read and right. */
static int read_whole(actor *a, const runlog_commit *c, const char *by) {
  store *s = NULL;
  err e = {0};
  a->reads = read_last = c->n;
  int rc = pinned_open(&a->store, "", c->dir, c->n, false, by, &s, &e);
  for (int i = 0; rc == 0 && !a->dead && i < (a->calm ? 1 : 4); i++) {
    if (i && sim_chance(150)) break;
    if (i) actor_sleep(a, (int64_t)sim_roll(sim_chance(300) ? 6000 : 280) * SECOND);
    rc = read_once(a, s, c, &e);
    if (holds(a)) sim_count->pinned_reads++;
    if (rc == ERR_CORRUPT && holds(a) && !a->dead && !judge_ended_with(c->n) &&
        !is_refused(a, c, &e))
      sim_violation("%s is pinned, and: %s", c->dir, e.text);
  }
  store_close(s);
  a->pin[0] = 0;
  return rc;
}

void readers_forget(void) {
  read_last = 0;
}

void reader_main(actor *a) {
  runlog *log = NULL;
  err e = {0};
  sim_count->readers++;
  int opened = runlog_open(&a->store, "", &log, &e);
  if (opened == 0) opened = runlog_check_damage(log, &e);
  if ((opened == ERR_CORRUPT || opened == ERR_FORMAT) && !lost_shows(a))
    sim_violation("%s: %s", a->name, e.text);
  if (!log) return;
  const runlog_state *s = runlog_view(log);
  const runlog_commit *c = runlog_newest(s, NULL);
  if (s->commit_count && sim_chance(700)) c = &s->commits[sim_roll(s->commit_count)];
  if (c && c->life == RUNLOG_LIVE) {
    int rc = read_whole(a, c, "restore");
    sim_count->read_whole += rc == 0;
    sim_count->read_gone += rc == ERR_CONFLICT;
  }
  runlog_close(log);
}

/* ---- guests ---- */

static runlog *guest_open(actor *a) {
  runlog *log = NULL;
  err e = {0};
  for (int i = 0; !log && i < TRIES && !a->dead; i++)
    if (runlog_open(&a->store, "", &log, &e) < 0) writer_note_failure(a, e.code, &e);
  return log;
}

static void guest_prune(actor *a, runlog *log, const prune_wish *wish, size_t count) {
  prune p = {.store = &a->store,
             .log = log,
             .limits = {.max_drop = 1, .grace_ns = GRACE, .word = RETENTION_BY_HAND},
             .resumed = RUNLOG_NONE};
  prune_rest rest;
  err e = {0};
  int rc = prune_drop(&p, wish, count, &e);
  if (rc == 0 && count == 0) rc = prune_delete(&p, 100, &rest, &e);
  if (rc < 0) writer_note_failure(a, rc, &e);
}

void rm_main(actor *a) {
  runlog *log = guest_open(a);
  if (!log) return;
  const runlog_state *s = runlog_view(log);
  if (s->commit_count) {
    prune_wish wish = {s->commits[sim_roll(s->commit_count)].n, "rm", "by hand"};
    if (sim_chance(500) && runlog_find_commit(s, read_last)) wish.commit = read_last;
    guest_prune(a, log, &wish, 1);
  }
  runlog_close(log);
}

void gc_main(actor *a) {
  runlog *log = guest_open(a);
  err e = {0};
  if (!log) return;
  collect c = {.store = &a->store, .log = log, .grace_ns = GRACE};
  int rc = collect_log(&c, &e);
  if (rc < 0) writer_note_failure(a, rc, &e);
  runlog_close(log);
}

static void take_pin_and_prune(actor *a, runlog *log, const char *pin, const prune_wish *wish) {
  err e = {0};
  pins_remove(&a->store, "", pin, &e);
  guest_prune(a, log, wish, 1);
  actor_sleep(a, GRACE + SECOND);
  guest_prune(a, log, NULL, 0);
}

/* Somebody removes the pin of a reader that sleeps for too long, as whoever deletes does, and then
 * what it reads. */
void rob_main(actor *a) {
  const actor *reader = actor_at(a->rank);
  if (!reader || !reader->pin[0] || sim_now <= reader->pin_until) return;
  prune_wish wish = {reader->reads, "rm", "by hand"};
  char pin[STORE_KEY_MAX];
  snprintf(pin, sizeof pin, "%s", strrchr(reader->pin, '/') + 1);
  runlog *log = guest_open(a);
  if (!log) return;
  /* It may have woken while the log was read, and renewed its pin. */
  if (sim_now > reader->pin_until) take_pin_and_prune(a, log, pin, &wish);
  runlog_close(log);
}

/* What no owner goes on with may be swept by anybody. */
void sweep_main(actor *a) {
  runlog *log = guest_open(a);
  err e = {0};
  if (!log) return;
  for (size_t i = 0; i < runlog_view(log)->attempt_count; i++) {
    const runlog_attempt *at = &runlog_view(log)->attempts[i];
    if (at->fate != RUNLOG_OPEN || at->owner == runlog_view(log)->term.n) continue;
    int rc = settle_give_up(&a->store, log, at->n, NULL, &e);
    if (rc < 0) writer_note_failure(a, rc, &e);
  }
  runlog_close(log);
}

void mark_main(actor *a) {
  runlog *log = guest_open(a);
  err e = {0};
  if (!log) return;
  const runlog_state *s = runlog_view(log);
  if (s->commit_count) {
    size_t i = sim_chance(600) ? s->commit_count - 1 : (size_t)sim_roll(s->commit_count);
    int rc = runlog_mark(log, s->commits[i].n, sim_chance(750), "it does not load", &e);
    if (rc < 0 && rc != ERR_INVAL && rc != ERR_CONFLICT) writer_note_failure(a, rc, &e);
  }
  runlog_close(log);
}

void end_main(actor *a) {
  runlog *log = guest_open(a);
  err e = {0};
  if (!log) return;
  collect c = {.store = &a->store, .log = log, .grace_ns = GRACE};
  int rc = runlog_view(log)->next > 0 ? collect_run(&c, &e) : 0;
  if (rc < 0) writer_note_failure(a, rc, &e);
  runlog_close(log);
}
