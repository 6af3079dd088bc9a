/* job_ranks: the ranks of one launch save one checkpoint together.
 *
 * Rank 0 decides what is saved, and in which order: the others look in the log for its attempts.
 * Nobody waits at a barrier; everything shared is in the store, so a rank that is gone is only a
 * record that does not come, until a deadline that names it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/seconds.h"
#include "prims/match_series.h"
#include "prims/numbers/match_step.h"
#include "commit/lease.h"
#include "commit/ranks_said.h"
#include "commit/manifest_read.h"
#include "job_vigil.h"

#define SECOND INT64_C(1000000000)
#define LEASE_LATE (10 * SECOND) /* a lease that is not there by then was taken away */
#define SAID_LATE (5 * SECOND)   /* rank 0's last word comes by then */
#define OVER_LOOK (5 * SECOND)   /* from one look at who has ended to the next */
#define LEASE_LOOK (30 * SECOND) /* from one look of a rank at rank 0's lease to the next */
#define SILENCE                                                                                    \
  (30 * SECOND)            /* the lead of each rank, before the next one lists the parts for it */
#define FRESH (5 * SECOND) /* what was read after so short a pause is news */
enum { TURNS = 20 };       /* so many ranks list for others that are silent */

bool job_follows(const job_work *w) {
  return w->env->ranks && w->env->ranks->rank > 0;
}

part job_part_of(const job_work *w) {
  return (part){.mark = w->mark,
                .attempt = w->attempt,
                .term = runlog_view(w->job->log)->term.n,
                .ranks = w->env->ranks};
}

static void show_missing(job_work *w, const parts_seen *seen) {
  uint64_t bits[RANKS_WORDS] = {0};
  for (uint32_t i = 0; seen && i < w->env->ranks->world && i < 64 * RANKS_WORDS; i++)
    if (!seen->there[i]) bits[i / 64] |= UINT64_C(1) << (i % 64);
  for (int i = 0; i < RANKS_WORDS; i++) atomic_store(&w->job->doing.ranks[i], bits[i]);
}

static void show_rank_0(job_work *w, bool missing) {
  atomic_store(&w->job->doing.ranks[0], missing ? 1 : 0);
}

/* ---- a rank finds the attempt ---- */

/* Returns 1 if we are to take part in that attempt. */
static int is_for_us(job_work *w, const runlog_attempt *a, err *e) {
  bool spoken = false;
  part p = job_part_of(w);
  p.attempt = a->n;
  if (a->n == w->job->attempt && w->job->attempt_shape == w->shape) return 1;
  if (w->job->unspoken && a->n >= w->job->unspoken) return 1;
  int rc = parts_spoken(w->env->store, w->job->log, &p, &spoken, e);
  return rc < 0 ? rc : !spoken;
}

static bool is_newer(const runlog_attempt *a, const job *j) {
  return match_same_series(a->unit, job_unit(j)) && match_step(a->unit) > match_step(job_unit(j));
}

/* Tells whether rank 0 passes this unit over. It saves one unit of a group at a time. If it is at a
 * newer one of this series, or was since we wait, it will not come back to this one; if it is at
 * another unit, that one's turn is first. */
static int passed_over(job_work *w, uint64_t since, err *e) {
  job *j = w->job;
  const runlog_state *state = runlog_view(j->log);
  for (size_t i = state->attempt_count; i-- > 0;) {
    const runlog_attempt *a = &state->attempts[i];
    bool open = a->fate == RUNLOG_OPEN && a->owner == state->term.n;
    if ((open || (a->n >= since && a->n > state->term.n)) && is_newer(a, j)) {
      j->outcome = JOB_PASSED_OVER;
      return err_set(e, ERR_RETIRED, "rank 0 saves %s instead", a->unit);
    }
    if (open && strcmp(a->unit, job_unit(j)) != 0) {
      int mine = is_for_us(w, a, e);
      if (mine <= 0) return mine;
      j->outcome = JOB_YIELDED;
      return err_set(e, ERR_RETIRED, "rank 0 saves %s first", a->unit);
    }
  }
  return 0;
}

/* True if this table has our files: by their digests, where they were sent; before that by names
 * and sizes, and the time of at least one of them, since a file that several ranks have may carry
 * another rank's time. */
static bool has_ours(const unit_files *ours, const manifest *m) {
  bool told = ours->bytes == 0;
  for (size_t i = 0; i < ours->count; i++) {
    const unit_file *f = &ours->files[i];
    const manifest_entry *there = manifest_find(m, f->name);
    if (!there || there->type != f->type) return false;
    if (f->type != MANIFEST_FILE) continue;
    if (there->size != f->size || (f->file.len && !digest_equal(&there->file, &f->file)))
      return false;
    told |= f->file.len || there->mtime_ns == f->mtime_ns;
  }
  return told;
}

/* True if the attempt is committed with our files. An attempt of an older term may be committed as
 * that term had left it, whatever we have put there meanwhile, so its manifest is compared. */
static bool committed_with_us(job_work *w) {
  manifest m = {0};
  if (!job_committed(w)) return false;
  if (w->attempt > runlog_view(w->job->log)->term.n) return true;
  if (manifest_read(w->env->store, w->dir, &m, NULL) < 0) return false;
  bool ours = has_ours(w->from, &m);
  manifest_free(&m);
  return ours;
}

/* Returns 1 if an attempt was found, or is committed already. */
static int find_attempt(job_work *w, uint64_t since, err *e) {
  job *j = w->job;
  const runlog_state *state = runlog_view(j->log);
  for (size_t i = state->attempt_count; i-- > 0;) {
    const runlog_attempt *a = &state->attempts[i];
    if (a->owner != state->term.n || a->world != w->env->ranks->world ||
        strcmp(a->unit, job_unit(j)) != 0)
      continue;
    bool again = a->n == j->attempt && j->attempt_shape == w->shape;
    if (a->fate == RUNLOG_SWEPT || (a->fate == RUNLOG_COMMITTED && !again)) continue;
    int mine = is_for_us(w, a, e);
    if (mine < 0) return mine;
    if (!mine) continue;
    w->attempt = a->n;
    w->term = a->owner;
    mine = runlog_key_dir(j->log, a->dir, w->dir, e);
    if (mine < 0) return mine;
    if (a->fate == RUNLOG_COMMITTED) mine = runlog_confirm(j->log, e);
    if (mine < 0) return mine;
    w->over = committed_with_us(w);
    if (w->over || a->fate == RUNLOG_OPEN) return 1;
    w->attempt = RUNLOG_NONE;
  }
  return passed_over(w, since, e);
}

/* True if rank 0 has this unit, or a newer one of its series, and did not want it. */
static bool was_refused(const ranks_said *said, const char *unit) {
  for (size_t i = 0; i < said->refused.count; i++) {
    const char *name = said->refused.at[i];
    if (strcmp(name, unit) == 0 ||
        (match_same_series(name, unit) && match_step(name) > match_step(unit)))
      return true;
  }
  return false;
}

/* Rank 0 did not save what is here. Where it had it and did not want it, all is well; else it may have
 * had none of it, or given it up, and it is missed. Its last word comes just after its lease is gone. */
static int left_alone(job_work *w, int64_t since, err *e) {
  const ranks *us = w->env->ranks;
  ranks_said said = {0};
  bool told = ranks_said_get(w->env->store, us, 0, &said, NULL) == 0 && said.over;
  bool refused = told && was_refused(&said, w->job->plan.unit);
  ranks_said_free(&said);
  if (!told && vigil_now(w) - since < SAID_LATE) return 0;
  w->job->outcome = refused ? JOB_LET_GO : JOB_FORSAKEN;
  return err_set(e, refused ? ERR_RETIRED : ERR_TIMEOUT, "rank 0 has ended without saving it");
}

/* What is seen of rank 0's lease: that it was there, since when it is gone (0: it is not), and when it was
 * looked at last (IO_MONO). */
typedef struct lease_watch {
  bool seen;
  int64_t gone, looked;
} lease_watch;

/* Tells whether rank 0 has ended well: its lease says so, and then nobody announces anything any
 * more. The lease is written just after the term. */
static int rank_0_has_ended(const vigil *v, lease_watch *l, err *e) {
  job_work *w = v->w;
  lease_seen lease;
  const runlog *log = w->job->log;
  const int64_t now = vigil_now(w);
  bool soon = l->gone || vigil_hurries(w);
  if (now - l->looked < (soon ? SAID_LATE / 5 : LEASE_LOOK)) return 0;
  l->looked = now;
  if (lease_look(w->env->store, runlog_prefix(log), runlog_view(log)->term.n, &lease, NULL) < 0)
    return 0;
  l->seen |= lease.present;
  bool taken = !lease.present && (l->seen || vigil_now(w) - v->begun >= LEASE_LATE);
  if (!lease.released && !taken) {
    l->gone = 0;
    return 0;
  }
  if (l->gone == 0) l->gone = vigil_now(w);
  return left_alone(w, l->gone, e);
}

/* The same where rank 0 has no term here: it has not begun, or a newer launch has the log by now, and no
 * lease is its own. Then it is over by its last word, unless its launcher starts it alone once more. */
static int rank_0_said_its_last(const vigil *v, lease_watch *l, err *e) {
  job_work *w = v->w;
  ranks_said said;
  const int64_t now = vigil_now(w);
  bool soon = l->gone || vigil_hurries(w);
  if (now - l->looked < (soon ? SAID_LATE / 5 : LEASE_LOOK)) return 0;
  l->looked = now;
  bool told = ranks_said_get(w->env->store, w->env->ranks, 0, &said, NULL) == 0 && said.over;
  ranks_said_free(&said);
  if (!told)
    l->gone = 0;
  else if (l->gone == 0)
    l->gone = now;
  return told && now - l->gone >= SAID_LATE ? left_alone(w, l->gone, e) : 0;
}

/* Looks for the attempt in what was appended since; the first time in all. What came just now is not read
 * beyond: whatever follows it comes later. */
static int look_for_attempt(const vigil *v, uint64_t *since, err *e) {
  job_work *w = v->w;
  const ranks *us = w->env->ranks;
  runlog *log = w->job->log;
  int rc, found = 0;
  if (*since == RUNLOG_NONE || v->pause > FRESH) {
    rc = runlog_follow(log, us->launch, us->world, e);
    if (rc == 0 && *since == RUNLOG_NONE) *since = runlog_view(log)->next;
    return rc < 0 ? rc : find_attempt(w, *since, e);
  }
  while ((rc = runlog_read_next(log, e)) == 1 && (found = find_attempt(w, *since, e)) == 0) {
  }
  return rc < 0 ? rc : found;
}

int job_follow(job_work *w, err *e) {
  const ranks *us = w->env->ranks;
  job *j = w->job;
  uint64_t since = RUNLOG_NONE;
  vigil v = vigil_begin(w, "waiting for rank 0", us->wait_ns, VIGIL_NEWS);
  lease_watch lease = {.looked = v.begun};
  int rc = vigil_enter(&v, e);
  if (rc < 0) return rc;
  for (;;) {
    err why = {0};
    rc = look_for_attempt(&v, &since, &why);
    if (rc == 0)
      rc = rank_0_has_ended(&v, &lease, &why);
    else if (rc == ERR_NOENT)
      rc = rank_0_said_its_last(&v, &lease, &why);
    show_rank_0(w, rc == 0);
    if (rc == 0 && vigil_is_over(&v)) {
      j->outcome = JOB_WAITED;
      rc = err_set(&why, ERR_TIMEOUT,
                   "%s: rank 0 of %u has not announced it within %lld s (`rank_wait`)%s%s",
                   j->plan.unit, us->world, vigil_seconds(us->wait_ns), *why.text ? ": " : "",
                   why.text);
    }
    if (rc == 0) rc = vigil_nap(&v, &why);
    if (rc == 0) continue;
    show_rank_0(w, false);
    if (rc < 0 && e) *e = why;
    return rc < 0 ? rc : 0;
  }
}

/* ---- all parts ---- */

static bool has_commit(const job_work *w) {
  return runlog_commit_of(runlog_view(w->job->log), w->attempt) != NULL;
}

/* Reads on to the commit, as one of many: mostly that is one key, which is not there yet. */
static int read_to_commit(job_work *w, err *e) {
  int rc = 1;
  while (rc == 1 && !has_commit(w)) rc = runlog_read_next(w->job->log, e);
  return rc >= 0 && has_commit(w) ? runlog_confirm(w->job->log, e) : rc;
}

/* Returns 1 if another rank has committed the save: nothing is left to do. */
static int look_at_log(job_work *w, err *e) {
  runlog *log = w->job->log;
  int rc = job_follows(w) ? read_to_commit(w, e) : runlog_refresh(log, e);
  if (rc < 0) return rc;
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), w->attempt);
  w->over = committed_with_us(w);
  if (w->over) return 1;
  if (a && a->fate == RUNLOG_OPEN) return 0;
  if (a && a->fate == RUNLOG_COMMITTED)
    return err_set(e, ERR_CONFLICT, "%s: rank 0 committed what an earlier launch had saved of it",
                   w->job->plan.unit);
  return err_set(e, ERR_CONFLICT, "%s: rank 0 gave this try of it up", w->job->plan.unit);
}

/* Tells whether a rank gave up. Only rank 0 acts on it: the others see its sweep. */
static int is_spoiled(job_work *w, const part *p, const parts_seen *seen, err *e) {
  bool conflict;
  char why[PARTS_REASON_MAX];
  if (seen->failed >= p->ranks->world || job_follows(w)) return 0;
  int rc = parts_failed(w->env->store, w->job->log, p, seen->failed, &conflict, why, e);
  if (rc < 0) return rc;
  w->spoiled = true;
  return err_set(e, conflict ? ERR_EXISTS : ERR_CONFLICT,
                 "%s: rank %" PRIu32 " has no part of it: %s", w->job->plan.unit, seen->failed,
                 why);
}

/* Looks again for the part of a rank that has ended by now: it may have put it just before. */
static int came_late(job_work *w, const part *p, uint32_t rank, err *e) {
  parts_seen seen = {0};
  int rc = parts_look(w->env->store, w->job->log, p, &seen, e);
  bool there = rc == 0 && seen.there[rank];
  parts_seen_free(&seen);
  return rc < 0 ? rc : there;
}

/* Tells whether a rank that is missing has ended: it is not waited for. Rank 0 alone acts on that. */
static int is_forsaken(job_work *w, const part *p, const parts_seen *seen, int64_t *look_at,
                       err *e) {
  char why[RANKS_SAID_TEXT_MAX];
  uint32_t rank;
  int64_t now = vigil_now(w);
  if (job_follows(w) || now < *look_at) return 0;
  *look_at = seconds_later(now, OVER_LOOK);
  int rc = ranks_said_over(w->env->store, w->env->ranks, seen->there, &rank, why, e);
  if (rc <= 0) return rc;
  rc = came_late(w, p, rank, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  w->spoiled = true;
  w->job->outcome = JOB_FORSAKEN;
  return err_set(e, ERR_TIMEOUT, "%s: rank %" PRIu32 " has no part of it, and has ended%s%s",
                 w->job->plan.unit, rank, *why ? ": " : "", why);
}

static int too_late(job_work *w, const parts_seen *seen, err *e) {
  const ranks *us = w->env->ranks;
  char missing[200];
  parts_missing(seen, us->world, missing, sizeof missing);
  w->spoiled = true;
  w->job->outcome = JOB_WAITED;
  return err_set(
      e, ERR_TIMEOUT,
      "%s: no part of it came from rank%s %s within %lld s (%u of %u are there): are they "
      "alive? (`rank_wait`)",
      w->job->plan.unit, us->world - seen->count == 1 ? "" : "s", missing,
      vigil_seconds(us->wait_ns), seen->count, us->world);
}

/* Returns 1 if the save is over, 0 if all parts are there. */
static int await_parts(job_work *w, const part *p, err *e) {
  vigil v = vigil_begin(w, "waiting for ranks", p->ranks->wait_ns, VIGIL_ALONE);
  int64_t look_at = 0;
  for (;;) {
    parts_seen seen = {0};
    int rc = look_at_log(w, e);
    if (rc == 0) rc = parts_look(w->env->store, w->job->log, p, &seen, e);
    bool all = rc == 0 && seen.count == p->ranks->world;
    if (rc == 0) show_missing(w, &seen);
    if (rc == 0 && !all) rc = is_spoiled(w, p, &seen, e);
    if (rc == 0 && !all) rc = is_forsaken(w, p, &seen, &look_at, e);
    if (rc == 0 && !all && vigil_is_over(&v)) rc = too_late(w, &seen, e);
    parts_seen_free(&seen);
    if (rc == 0 && !all) rc = vigil_nap(&v, e);
    if (rc != 0 || all) {
      show_missing(w, NULL);
      return rc;
    }
  }
}

/* Returns 1 if all parts are there. */
static int sees_all(const job_work *w, const part *p, uint32_t *newest, err *e) {
  parts_seen seen = {0};
  int rc = parts_look_for_all(w->env->store, w->job->log, p, &seen, e);
  bool all = rc == 0 && seen.count == p->ranks->world;
  *newest = seen.newest;
  parts_seen_free(&seen);
  return rc < 0 ? rc : all;
}

static int nobody_commits(job_work *w, err *e) {
  const ranks *us = w->env->ranks;
  w->spoiled = true;
  w->job->outcome = JOB_WAITED;
  return err_set(
      e, ERR_TIMEOUT,
      "%s: it was not committed within %lld s: rank 0 names the ranks of which no part came, "
      "if it is alive (`rank_wait`)",
      w->job->plan.unit, vigil_seconds(us->wait_ns));
}

/* Returns 1 if we came last, and so see the parts of all: who that is all see alike that look then, since
 * each of them would read all parts. Rank 0 may commit beside us: in a bucket one of both does. What is staged
 * in a directory is shown once, and two at once would stage it again: rank 0 has it for itself. */
static int came_last(const job_work *w, const part *p, err *e) {
  uint32_t newest;
  if (store_can(w->env->store, STORE_CAP_PUBLISH)) return 0;
  int all = sees_all(w, p, &newest, e);
  return all < 0 ? all : all && newest == p->ranks->rank;
}

/* Who comes last commits. Else rank 0 lists, which is awaited by one key; while nothing comes, the next
 * rank lists, too, and later the one after it. Returns as await_parts(). */
static int await_commit(job_work *w, const part *p, err *e) {
  const ranks *us = p->ranks;
  const int64_t turn = us->rank <= TURNS ? us->rank * SILENCE : INT64_MAX;
  uint32_t newest;
  vigil v = vigil_begin(w, "waiting for the commit", us->wait_ns + us->wait_ns / 2, VIGIL_KEY);
  int all = 0, rc = came_last(w, p, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  show_rank_0(w, true);
  while (rc == 0 && !all) {
    rc = vigil_nap(&v, e);
    if (rc == 0) rc = look_at_log(w, e);
    if (rc == 0 && vigil_now(w) - v.begun >= turn) all = sees_all(w, p, &newest, e);
    if (all < 0) rc = all;
    if (rc == 0 && !all && vigil_is_over(&v)) rc = nobody_commits(w, e);
  }
  show_rank_0(w, false);
  return rc;
}

/* The commit says what rank 0 would have said. */
static int speak_for_rank_0(job_work *w, const part *p, err *e) {
  if (!job_follows(w)) return 0;
  w->for_rank_0 = true;
  int rc = parts_words_get(w->env->store, w->job->log, p, &w->words, e);
  return rc < 0 ? rc : job_find_companions(w, e);
}

static int put_part(job_work *w, part *p, err *e) {
  char needs[RUNLOG_NEEDS_MAX];
  job *j = w->job;
  job_tell_needs(w, needs);
  const runlog_note note = {.reason = j->reason, .needs = needs};
  if (!job_follows(w)) p->note = &note;
  int rc = job_describe(w, e);
  if (rc == 0) rc = parts_put(w->env->store, j->log, p, &w->manifest, e);
  if (rc == 0 && j->unspoken) j->unspoken = w->attempt + 1;
  j->own_files = manifest_files(&w->manifest);
  j->own_bytes = manifest_bytes(&w->manifest);
  manifest_free(&w->manifest);
  p->note = NULL;
  return rc;
}

int job_gather(job_work *w, err *e) {
  job *j = w->job;
  if (!w->env->ranks) return err_set(e, ERR_INVAL, "%s: there are no other ranks", j->plan.unit);
  part p = job_part_of(w);
  int rc = put_part(w, &p, e);
  if (rc == 0) rc = job_follows(w) ? await_commit(w, &p, e) : await_parts(w, &p, e);
  if (rc == 0) {
    job_at(j, "reading the parts of the ranks");
    rc = parts_gather(w->env->store, j->log, &p, &w->manifest, e);
    w->spoiled |= rc == ERR_EXISTS;
    if (rc == 0) rc = speak_for_rank_0(w, &p, e);
    /* Once the save is committed its records may go: that is no failure of ours. */
    if (rc == ERR_NOENT && look_at_log(w, NULL) == 1) rc = 0;
  }
  return rc < 0 ? rc : 0;
}

/* The manifest has everything that the records of the commit before this one said. The records of
 * this one stay a while longer: other ranks may be reading them. */
void job_forget_parts(job_work *w) {
  runlog *log = w->job->log;
  const runlog_state *state = runlog_view(log);
  char key[STORE_KEY_MAX];
  err why = {0};
  if (!w->env->ranks || job_follows(w) || state->commit_count < 2) return;
  const runlog_commit *before = &state->commits[state->commit_count - 2];
  int rc = runlog_key_parts(log, before->attempt, RUNLOG_NONE, key, &why);
  if (rc == 0) rc = w->env->store->ops->remove_prefix(w->env->store, key, &why);
  if (rc < 0)
    log_say(w->env->log, LOG_DEBUG, "%s: part records stay until gc comes: %s", before->dir,
            why.text);
}

/* ---- after a failure ---- */

int job_give_up_part(job_work *w, int rc) {
  job *j = w->job;
  const part p = job_part_of(w);
  err why = {0};
  if (rc == ERR_FENCED) return rc;
  if (committed_with_us(w)) {
    j->error = (err){0};
    return 0;
  }
  bool later = rc == ERR_CANCELED && atomic_load(&j->cancel) == JOB_LEAVE;
  if (later || (j->keep && err_class_of(rc) == ERR_CLASS_RETRYABLE)) {
    j->attempt = w->attempt;
    j->attempt_shape = w->shape;
    return rc;
  }
  j->attempt = 0;
  if (j->unspoken) j->unspoken = w->attempt + 1;
  if (parts_put_failed(w->env->store, j->log, &p, rc == ERR_EXISTS, j->error.text, &why) < 0)
    log_say(w->env->log, LOG_WARN,
            "%s: the other ranks could not be told that there is no part of "
            "ours: %s",
            j->plan.unit, why.text);
  if (rc != ERR_EXISTS) return rc;
  /* Rank 0 says whether it is tried again, under another name. */
  j->error.code = ERR_CONFLICT;
  return ERR_CONFLICT;
}
