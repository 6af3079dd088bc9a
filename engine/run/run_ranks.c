/* run_ranks: the ranks of one launch start together: rank 0 first, since it settles, marks and
 * restores, and that decides which checkpoint all of them resume from.
 *
 * It says so in one small object for each launch, <target>/.ckpt/ranks/<digest of the launch id>;
 * the others wait for that. When it has failed, or has ended, it says that there, too: nobody waits
 * for a rank that will not come.
 *
 * Tasks of one launch that write into one directory are no ranks: one of them, which may be a rank,
 * watches for all, and asks the others (launch/hub.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "commit/lease.h"
#include "commit/ranks_said.h"
#include "prims/proc.h"
#include "run/run_state.h"

/* Names the checkpoint to resume from as every rank can say it: the directories have different
 * names. */
static const char *resume_of(const run *r) {
  size_t len = strlen(r->places.dir);
  if (!r->resume) return "";
  return strncmp(r->resume, r->places.dir, len) == 0 && r->resume[len] == '/' ? r->resume + len + 1
                                                                              : r->resume;
}

/* Names the commit that this is; "": it is none, or its log is not known. */
static void commit_of(const run *r, char *out, size_t room) {
  const runlog_ref *c = &r->resumed_commit;
  bool known = r->resumed_group && c->n != RUNLOG_NONE && *c->log && *c->entry;
  if (room) *out = 0;
  if (known) snprintf(out, room, "%s/%" PRIu64 "/%s", c->log, c->n, c->entry);
}

/* ---- rank 0 ---- */

/* The units that the policies did not want: the other ranks learn it from us alone. */
static bool add_refused(const run *r, names *out) {
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    bool refused = u->phase == UNIT_SKIPPED || (u->phase == UNIT_DROPPED && u->unwanted);
    if (refused && !u->passed_over && !names_add(out, u->path)) return false;
  }
  return !r->refused.unit || names_add(out, r->refused.unit);
}

/* `over`: NULL, or why this rank is not there any more, in `text`; "": it has ended well. */
static int put_record(const run *r, bool ready, const err *over, err *e) {
  ranks_said said = {.ready = ready, .over = over != NULL};
  said.elsewhere = over && over->code == ERR_OTHER_RUN;
  snprintf(said.why, sizeof said.why, "%s", over ? over->text : "");
  snprintf(said.resume, sizeof said.resume, "%s", ready ? resume_of(r) : "");
  if (ready) commit_of(r, said.commit, sizeof said.commit);
  snprintf(said.waits, sizeof said.waits, "%s", r->identity.waits);
  int rc = over && !add_refused(r, &said.refused)
               ? err_set(e, ERR_NOMEM, "tell the ranks: out of memory")
               : ranks_said_put(r->store, &r->ranks, &said, e);
  ranks_said_free(&said);
  return rc;
}

/* Records of launches that are over: after a day none of their ranks waits any more. */
struct stale {
  char keys[64][STORE_KEY_MAX]; /* the rest goes with the next launch, or with gc */
  size_t count;
  char own[STORE_KEY_MAX];
  int64_t now;
};

static int on_record(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  struct stale *old = ctx;
  const int64_t day = (int64_t)86400 * 1000000000;
  if (is_prefix || strcmp(key, old->own) == 0 || old->now - object->mtime_ns < day) return 0;
  snprintf(old->keys[old->count++], STORE_KEY_MAX, "%s", key);
  return old->count == sizeof old->keys / sizeof *old->keys;
}

static void forget_old(const run *r) {
  struct stale *old = calloc(1, sizeof *old);
  store_object mine = {0};
  store *s = r->store;
  err why = {0};
  int rc = old ? ranks_said_key(&r->ranks, old->own, &why) : ERR_NOMEM;
  if (rc == 0) rc = s->ops->head(s, old->own, &mine, &why);
  if (rc == 0) old->now = mine.mtime_ns;
  if (rc == 0) rc = s->ops->list(s, RANKS_SAID, false, on_record, old, &why);
  for (size_t i = 0; rc >= 0 && i < old->count; i++) {
    int gone = s->ops->remove(s, old->keys[i], &why);
    if (gone < 0) rc = gone;
  }
  if (rc < 0) log_say(r->env->log, LOG_DEBUG, "records of old launches stay: %s", why.text);
  free(old);
}

static void say_over(run *r, const err *over) {
  err why = {0};
  if (r->ranks.world < 2 || !r->store || r->ranks_over) return;
  r->ranks_over = true;
  if (put_record(r, r->prepared, over, &why) < 0)
    log_say(r->env->log, LOG_DEBUG, "the other ranks are not told of the end: %s", why.text);
}

void run_ranks_failed(run *r, const err *e) {
  const err unknown = {.text = "it could not begin"};
  say_over(r, e && *e->text ? e : &unknown);
}

void run_ranks_wait(const run *r) {
  err why = {0};
  if (r->ranks.world < 2 || r->ranks.rank > 0) return;
  if (put_record(r, false, NULL, &why) < 0)
    log_say(r->env->log, LOG_WARN, "the other ranks are not told that a lease is waited for: %s",
            why.text);
}

void run_ranks_close(run *r) {
  const err well = {0};
  if (r->ranks_begun && !atomic_load(&r->stop)) say_over(r, &well);
}

/* Tells the others of a start that was refused before it came to the store. What is alive here under the
 * same launch id is this very rank, which speaks for itself. */
void run_ranks_refused(run *r, const err *e) {
  enum { PATIENCE_S = 15 };
  identity there = {0};
  char boot[PROC_BOOT_MAX] = "";
  err why = {0};
  if (r->ranks.world < 2 || r->store || !e || e->code != ERR_HELD) return;
  if (proc_boot_id(boot, NULL) == 0 &&
      identity_find(r->env->io, r->places.state, boot, &there, NULL) == 0 &&
      strcmp(there.launch, r->ranks.launch) == 0)
    return;
  if (store_open(&r->places.target, r->outer, r->env->log, &r->store, &why) < 0) return;
  atomic_store(&r->store->patience_ns, PATIENCE_S * (int64_t)1000000000);
  say_over(r, e);
}

/* ---- the others ---- */

static int has_ended(const run *r, const ranks_said *seen, err *e) {
  return err_set(e, seen->elsewhere ? ERR_OTHER_RUN : ERR_CONFLICT,
                 "rank %" PRIu32 " of %" PRIu32 ": rank 0 of launch \"%s\" has ended%s%s: start "
                 "all ranks anew, under a launch id of their own",
                 r->ranks.rank, r->ranks.world, r->ranks.launch, *seen->why ? ": " : " already",
                 seen->why);
}

/* A job may be over before the last rank has looked: with nothing left to do, that is no reason to fail the
 * others. They go on from what it has named. */
static bool has_served(const ranks_said *seen) {
  return seen->ready && (!seen->over || (!*seen->why && !seen->elsewhere));
}

/* Keeps how long rank 0 is waited for, and the signs of it so far. */
typedef struct awaited {
  int64_t until, over_since; /* IO_MONO; over_since 0: it is not over */
  bool begun, waits;
  bool fresh; /* a look found it not over: what is said from then on is said by a process of now */
} awaited;

/* Gives rank 0 more time once it is seen to have begun: it may have much to bring back. The time
 * for which it has to wait for a lease first does not count either. */
static void give_time(const run *r, const ranks_said *seen, awaited *a, int64_t now) {
  enum { FOR_A_RESTORE = 6 };
  const int64_t life = (int64_t)LEASE_LIFE_S * 1000000000;
  if (*seen->waits && !a->waits) {
    a->waits = true;
    a->begun = false; /* its time counts from the end of the wait */
    a->until = seconds_later(seconds_later(now, life), r->ranks.wait_ns);
    log_say(r->env->log, LOG_WARN, "rank 0 waits for %s", seen->waits);
  }
  if (*seen->waits || a->begun) return;
  a->begun = true;
  if (a->waits) a->until = seconds_later(now, r->ranks.wait_ns);
  for (int i = 0; i < FOR_A_RESTORE; i++) a->until = seconds_later(a->until, r->ranks.wait_ns);
  log_say(r->env->log, LOG_INFO, "rank 0 makes the target ready: waiting for it");
}

/* A restore of rank 0 may take an hour, in which there is nothing to see. */
static int64_t longer(int64_t pause) {
  const int64_t longest = 15 * SECOND_NS;
  pause += pause / 2;
  return pause < longest ? pause : longest;
}

/* Sleeps so long, but not beyond `until`; that the run is to stop is heard within a second. */
static void pause_for(const run *r, int64_t pause, int64_t until) {
  const io *io = r->env->io;
  int64_t left = until - io->now(io, IO_MONO);
  if (left > pause) left = pause;
  for (; left > 0 && !atomic_load(&r->stop); left -= SECOND_NS)
    io->sleep(io, left < SECOND_NS ? left : SECOND_NS);
}

static void note_fresh(const run *r, awaited *a) {
  if (!a->fresh) log_say(r->env->log, LOG_INFO, "looking for rank 0 of the launch");
  a->fresh = true;
}

static int await_ready(run *r, err *e) {
  const int64_t least = ranks_pause_least(r->ranks.world);
  const int64_t returns = 5 * SECOND_NS; /* a launcher may start rank 0 alone once more */
  const io *io = r->env->io;
  awaited a = {.until = seconds_later(io->now(io, IO_MONO), r->ranks.wait_ns)};
  for (int64_t pause = least;; pause = longer(pause)) {
    ranks_said seen = {0};
    err why = {0};
    int rc = ranks_said_get(r->store, &r->ranks, 0, &seen, &why);
    ranks_said_free(&seen); /* what was refused is asked for at the end */
    if ((rc == 0 && !seen.over) || rc == ERR_NOENT) note_fresh(r, &a);
    if (rc == 0 && a.fresh && has_served(&seen)) return 0;
    int64_t now = io->now(io, IO_MONO);
    if (rc != 0 || !seen.over)
      a.over_since = 0;
    else if (!a.over_since)
      a.over_since = now;
    if (a.over_since && now - a.over_since >= returns) return has_ended(r, &seen, e);
    if (rc == 0 && !seen.over) give_time(r, &seen, &a, now);
    if (rc < 0 && rc != ERR_NOENT && err_class_of(rc) != ERR_CLASS_RETRYABLE)
      return err_set(e, rc, "%s", why.text);
    if (now >= a.until)
      return err_set(
          e, ERR_TIMEOUT,
          "rank %" PRIu32 " of %" PRIu32 ": rank 0 of launch \"%s\" %s: is it alive, and "
          "has it the same target? (`rank_wait`)%s%s",
          r->ranks.rank, r->ranks.world, r->ranks.launch,
          a.begun ? "has begun, but does not become ready" : "did not begin",
          rc < 0 && rc != ERR_NOENT ? ": " : "", rc < 0 && rc != ERR_NOENT ? why.text : "");
    pause_for(r, a.over_since ? least : pause, a.until);
  }
}

/* ---- both ---- */

int run_ranks_await(run *r, err *e) {
  int rc = ranks_said_remove(r->store, &r->ranks, e);
  if (rc < 0) return rc;
  pause_for(r, ranks_pause_first(r->ranks.rank), INT64_MAX);
  return await_ready(r, e);
}

int run_ranks_begun(run *r, err *e) {
  if (r->ranks.world < 2) return 0;
  int rc = run_follows(r) ? 0 : put_record(r, false, NULL, e);
  r->ranks_begun = rc == 0;
  if (run_follows(r)) return 0;
  if (rc == 0) forget_old(r);
  return rc;
}

static int resumes_elsewhere(const run *r, const ranks_said *seen, err *e) {
  return err_set(e, ERR_CONFLICT,
                 "rank 0 resumes from %s, rank %" PRIu32
                 " would from %s: start all ranks anew, with "
                 "the same `restore`",
                 *seen->resume ? seen->resume : "nothing", r->ranks.rank,
                 *resume_of(r) ? resume_of(r) : "nothing");
}

/* A trainer whose ranks go on from different checkpoints computes nonsense, and nothing else would
 * notice. */
int run_ranks_ready(run *r, err *e) {
  char ours[RANKS_SAID_TEXT_MAX];
  ranks_said seen = {0};
  if (r->ranks.world < 2) return 0;
  if (r->ranks.rank == 0) return put_record(r, true, NULL, e);
  int rc = ranks_said_get(r->store, &r->ranks, 0, &seen, e);
  ranks_said_free(&seen);
  if (rc == 0 && seen.over && !has_served(&seen)) return has_ended(r, &seen, e);
  if (rc < 0) return rc;
  commit_of(r, ours, sizeof ours);
  bool same = !*seen.commit || !*ours || strcmp(seen.commit, ours) == 0;
  if (strcmp(seen.resume, resume_of(r)) != 0) return resumes_elsewhere(r, &seen, e);
  if (same) return 0;
  return err_set(e, ERR_CONFLICT,
                 "rank 0 resumes from %s as commit %s, rank %" PRIu32
                 " would as commit %s, which is another save of that name: start all ranks anew",
                 seen.resume, seen.commit, r->ranks.rank, ours);
}

bool run_follows(const run *r) {
  return r->ranks.rank > 0;
}

/* ---- the other tasks that write into the directory ---- */

int run_tasks_open(run *r, err *e) {
  names excludes = {0};
  char hidden[2 * FS_PATH_MAX];
  bool beside = *r->home.path;
  const char *home = beside ? r->home.path : r->places.state;
  if (r->task_count < 2) return 0;
  snprintf(
      hidden, sizeof hidden,
      "they meet in %s, which each of them has to see as its `state`, for they cannot meet beside "
      "the directory: %s",
      home, r->home.why);
  bool ok = run_own_excludes(r, &excludes);
  hub_options o = {.io = r->env->io,
                   .log = r->env->log,
                   .home = home,
                   .launch = r->group_env.writer.launch,
                   .index = r->task_index,
                   .count = r->task_count,
                   .excludes = names_list(&excludes),
                   .wait_ns = r->ranks.wait_ns,
                   .hidden = beside ? NULL : hidden};
  int rc = ok ? hub_open(&o, &r->hub, e) : err_set(e, ERR_NOMEM, "ask other tasks: out of memory");
  names_free(&excludes);
  return rc;
}

bool run_tasks_agree(void *ctx, const char *path, match_kind kind, uint64_t stamp, char *why,
                     size_t room, int64_t *wait) {
  const run *r = ctx;
  return hub_agrees(r->hub, path, kind, stamp, why, room, wait);
}

/* Where no other task runs below us it is as if there were none. */
static bool note_alone(run *r) {
  bool alone = hub_alone(r->hub);
  detect_several(r->detect, !alone);
  return alone;
}

bool run_tasks_left(run *r, bool clean) {
  if (!r->hub) return false;
  hub_ended(r->hub, clean);
  if (note_alone(r)) return false;
  r->own_end = true;
  if (!clean) detect_writer_died(r->detect, 0);
  return true;
}

void run_tasks_again(run *r) {
  if (r->hub) hub_begun(r->hub);
  r->own_end = false;
}

/* Just before the time is over: there has to be some left for what is not proven to be named. */
static int64_t end_of_wait(const run *r) {
  return r->preempted ? r->end_at - SECOND_NS / 2 : INT64_MAX;
}

static bool is_busy(const run *r) {
  size_t i = 0;
  while (i < r->unit_count && r->units[i]->phase != UNIT_SETTLING) i++;
  return i < r->unit_count;
}

int64_t run_tasks_step(run *r) {
  int64_t due, lag;
  char left[200], why[256];
  if (!r->hub || (r->writer_gone && !r->own_end)) return INT64_MAX;
  hub_state state = hub_step(r->hub, is_busy(r), end_of_wait(r), &due);
  note_alone(r);
  if (hub_lost_one(r->hub, &lag)) detect_writer_died(r->detect, lag);
  if (state == HUB_LIVES) return due;
  r->own_end = false;
  if (state == HUB_UNKNOWN) {
    hub_name_left(r->hub, left, sizeof left);
    snprintf(why, sizeof why, "%s not known to have ended, and may still write there", left);
    log_say(r->env->log, LOG_WARN, "%s: what is not complete by now is not proven", why);
    detect_doubt(r->detect, why);
  }
  run_writers_gone(r, state == HUB_OVER && hub_clean(r->hub));
  return INT64_MAX;
}
