/* run_results: which checkpoint a result belongs to. One that names a checkpoint is that one's: it
 * waits for it, or goes to it, also behind its commit. To a checkpoint that none names belongs the last
 * one that came before its first write was noticed. Once it has its numbers it keeps them, however often
 * it is asked about, until it is written anew. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "prims/fs.h"
#include "run/run_state.h"

enum { WAITING_MAX = 256, HEARD_MAX = 1024, RETRY_S = 60 };

/* Numbers on their way into the log of a group. */
struct run_telling {
  run *run;
  run_group *group;
  run_late *late;
  size_t count, told;
  int status;
  err error;
};

static void late_free(run_late *late, size_t count) {
  for (size_t i = 0; i < count; i++) free(late[i].metrics);
  free(late);
}

static void forget(run *r, size_t i) {
  free(r->waiting[i].name);
  free(r->waiting[i].numbers);
  r->waiting_count--;
  memmove(&r->waiting[i], &r->waiting[i + 1], (r->waiting_count - i) * sizeof *r->waiting);
}

void run_results_free(run *r) {
  while (r->waiting_count) forget(r, r->waiting_count - 1);
  free(r->waiting);
  for (size_t i = 0; i < r->heard_count; i++) free(r->heard[i].numbers);
  free(r->heard);
  free(r->result);
  free(r->unnamed);
}

void run_results_close(run_group *g) {
  late_free(g->late, g->late_count);
  g->late = NULL;
  g->late_count = 0;
}

/* ---- names ---- */

static bool ends_in(const char *path, size_t len, const char *end, size_t tail) {
  return tail > 0 && tail <= len && memcmp(path + len - tail, end, tail) == 0 &&
         (tail == len || path[len - tail - 1] == '/');
}

/* By its path below the watched directory, or below the working directory, or by its name alone. */
static const char *below(const run *r, const char *name, size_t *len) {
  size_t root = strlen(r->places.dir);
  if (strncmp(name, r->places.dir, root) == 0 && name[root] == '/') name += root + 1;
  *len = strlen(name);
  while (*len > 0 && name[*len - 1] == '/') --*len;
  return name;
}

bool run_result_names(const run *r, const char *name, const char *path) {
  size_t len, full = strlen(path);
  name = below(r, name, &len);
  return ends_in(path, full, name, len) || ends_in(name, len, path, full);
}

/* Of several that a mere name means, in several groups, the one that was written last. */
static run_unit *named_unit(const run *r, const char *name) {
  run_unit *found = NULL;
  size_t len;
  const char *path = below(r, name, &len);
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (strlen(u->path) == len && memcmp(u->path, path, len) == 0) return u;
    if (run_result_names(r, name, u->path) && (!found || u->made_ns > found->made_ns)) found = u;
  }
  return found;
}

/* ---- where the tree is polled ---- */

/* A listing finds a unit seconds after its first write: what was reported in between is told by the
 * times of its files. */

static void hear(run *r, const char *json) {
  if (!detect_polling(r->detect)) return;
  char *numbers = policy_numbers(json, NULL);
  if (r->heard_count == HEARD_MAX) {
    free(r->heard[0].numbers);
    memmove(r->heard, r->heard + 1, --r->heard_count * sizeof *r->heard);
  }
  if (numbers && VEC_ROOM(r->heard, r->heard_count, r->heard_room))
    r->heard[r->heard_count++] = (run_heard){numbers, r->env->io->now(r->env->io, IO_WALL)};
  else
    free(numbers);
}

typedef struct oldest {
  const io *io;
  const char *dir;
  int64_t at_ns; /* 0: none */
} oldest;

static int64_t changed_at(const io *io, const char *path) {
  struct stat st;
  if (io->lstat(io, AT_FDCWD, path, &st) < 0) return 0;
  return (int64_t)st.st_ctim.tv_sec * SECOND_NS + st.st_ctim.tv_nsec;
}

static int look_at(void *ctx, const fs_entry *entry, err *e) {
  oldest *o = ctx;
  char path[FS_PATH_MAX];
  (void)e;
  int64_t at = fs_join(path, o->dir, entry->name, NULL) < 0 ? 0 : changed_at(o->io, path);
  if (at > 0 && (o->at_ns == 0 || at < o->at_ns)) o->at_ns = at;
  return 0;
}

static int64_t first_write(const run *r, const run_unit *u) {
  char path[FS_PATH_MAX];
  oldest o = {.io = r->env->io, .dir = path};
  if (fs_join(path, r->places.dir, u->path, NULL) < 0) return 0;
  if (u->kind != MATCH_DIR) return changed_at(o.io, path);
  fs_list(o.io, path, look_at, &o, NULL);
  return o.at_ns;
}

/* The last result that was reported before it; malloced, or NULL. */
static char *last_before(const run *r, const run_unit *u) {
  const int64_t tick = SECOND_NS / 50; /* as coarse as the clock of files may be */
  bool polls = r->detect && detect_polling(r->detect);
  int64_t at = polls && r->heard_count ? first_write(r, u) : 0;
  if (at == 0) return r->unnamed ? policy_numbers(r->unnamed, NULL) : NULL;
  for (size_t i = r->heard_count; i-- > 0;)
    if (r->heard[i].at_ns <= at + tick) return strdup(r->heard[i].numbers);
  return NULL;
}

/* ---- what a unit has ---- */

/* Takes `numbers` over. */
static void set(run *r, run_unit *u, char *numbers, bool named) {
  err e = {0};
  free(u->result);
  u->result = numbers;
  u->result_named = named;
  u->numbered = false;
  if (journal_note_result(r->journal, u->path, numbers, named, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s: what was reported for it would be lost with this run: %s",
            u->path, e.text);
}

/* What another content under the same name had is not this one's; but what names a step names it for
 * good. */
void run_result_recall(run *r, const char *path, int64_t step, const digest *content) {
  err e = {0};
  const journal_unit known = journal_find(r->journal, path);
  bool same = known.fingerprint.len == 0 || content->len == 0 ||
              digest_equal(&known.fingerprint, content) || (known.named && step != MATCH_NO_STEP);
  if (known.result && !same && journal_note_result(r->journal, path, NULL, false, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s: %s", path, e.text);
}

/* A unit of an earlier run keeps what it had then. */
static bool had_before(run *r, run_unit *u) {
  run_result_recall(r, u->path, u->step, &u->fingerprint);
  journal_unit known = journal_find(r->journal, u->path);
  if (u->begun || known.state == JOURNAL_UNKNOWN) return false;
  u->result = known.result ? strdup(known.result) : NULL;
  u->result_named = u->result && known.named;
  return true;
}

/* Takes what waits for it; NULL: nothing does. */
static char *take_waiting(run *r, const run_unit *u) {
  char *all = NULL;
  for (size_t i = 0; i < r->waiting_count;) {
    if (!run_result_names(r, r->waiting[i].name, u->path)) {
      i++;
      continue;
    }
    char *more = policy_numbers(all, r->waiting[i].numbers);
    free(all);
    all = more;
    forget(r, i);
  }
  return all;
}

void run_result_begin(run *r, run_unit *u) {
  bool before = had_before(r, u), again = u->begun;
  u->begun = true;
  u->numbered = u->result_late = false;
  if (before) return;
  /* A file that comes later does not make another checkpoint of it; a save under the same name does. */
  if (again && u->result_named && u->step != MATCH_NO_STEP && u->phase != UNIT_DURABLE) return;
  char *named = take_waiting(r, u), *last = last_before(r, u);
  set(r, u, policy_numbers(last, named), named != NULL);
  free(named);
  free(last);
}

const char *run_unit_numbers(run *r, run_unit *u, const detect_unit *facts) {
  char warning[POLICY_REASON_MAX] = "";
  if (u->numbered && digest_equal(&u->numbers_of, &facts->fingerprint)) return u->numbers;
  free(u->numbers);
  u->numbers = policy_metrics(r->policy, r->places.dir, facts, u->result, warning);
  u->numbers_of = facts->fingerprint;
  u->numbered = true;
  if (*warning) log_say(r->env->log, LOG_WARN, "%s: metrics: %s", u->path, warning);
  return u->numbers;
}

const char *run_numbers_now(run *r, run_unit *u) {
  detect_unit facts;
  return detect_find(r->detect, u->path, &facts) ? run_unit_numbers(r, u, &facts) : NULL;
}

/* ---- behind its commit ---- */

static void tell_late(run *r, run_unit *u) {
  detect_unit facts;
  run_group *g = u->group;
  journal_unit known = journal_find(r->journal, u->path);
  if (known.commit.n == RUNLOG_NONE || run_follows(r) || !detect_find(r->detect, u->path, &facts))
    return;
  const char *numbers = run_unit_numbers(r, u, &facts);
  char *copy = numbers && VEC_ROOM(g->late, g->late_count, g->late_room) ? strdup(numbers) : NULL;
  if (copy) g->late[g->late_count++] = (run_late){known.commit.n, copy};
}

void run_result_committed(run *r, run_unit *u) {
  if (u->result_late) tell_late(r, u);
  u->result_late = false;
}

bool run_result_busy(const run_group *g) {
  return g->telling != NULL;
}

static bool may_tell(const run *r, const run_group *g) {
  return g->late_count > 0 && !g->save && !g->keeping && !g->telling && !r->closing && !r->fenced &&
         !g->foreign && g->group.log && !run_anyway_holds(r, g);
}

bool run_result_late(const run *r, const run_group *g) {
  return g->telling || may_tell(r, g);
}

static void tell_on_worker(void *arg) {
  struct run_telling *t = arg;
  while (t->status == 0 && t->told < t->count) {
    const run_late *late = &t->late[t->told];
    t->status = runlog_tell_numbers(t->group->group.log, late->commit, late->metrics, &t->error);
    if (t->status == 0) t->told++;
  }
}

/* What could not be told is tried again; the rest comes behind it. */
static void put_back(run_group *g, struct run_telling *t) {
  for (size_t i = t->told; i < t->count; i++) {
    if (!VEC_ROOM(g->late, g->late_count, g->late_room)) return;
    memmove(&g->late[i - t->told + 1], &g->late[i - t->told],
            (g->late_count - (i - t->told)) * sizeof *g->late);
    g->late[i - t->told] = t->late[i];
    t->late[i].metrics = NULL;
    g->late_count++;
  }
}

static void tell_done(void *ctx) {
  struct run_telling *t = ctx;
  run *r = t->run;
  run_group *g = t->group;
  r->tasks--;
  g->telling = NULL;
  g->late_at = 0;
  if (t->status == ERR_FENCED) {
    run_fenced(r, g->group.prefix, t->error.text);
  } else if (t->status < 0) {
    bool again = err_class_of(t->status) == ERR_CLASS_RETRYABLE;
    log_say(r->env->log, LOG_WARN, "what was reported after a commit could not be noted%s: %s",
            again ? " yet" : "", t->error.text);
    g->late_at = seconds_later(r->env->io->now(r->env->io, IO_MONO), RETRY_S * SECOND_NS);
    if (again) put_back(g, t);
  }
  run_keep_list(r, g);
  run_keep_ask(r, g);
  late_free(t->late, t->count);
  free(t);
}

static void begin_telling(run *r, run_group *g) {
  struct run_telling *t = calloc(1, sizeof *t);
  if (!t) return;
  *t = (struct run_telling){.run = r, .group = g, .late = g->late, .count = g->late_count};
  if (!run_submit(r, tell_on_worker, tell_done, t)) {
    free(t); /* it is full; the next step tries again */
    return;
  }
  g->late = NULL;
  g->late_count = g->late_room = 0;
  g->telling = t;
}

int64_t run_result_step(run *r) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO), due = INT64_MAX;
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (may_tell(r, g) && g->late_at <= now) begin_telling(r, g);
    if (!may_tell(r, g)) continue;
    int64_t next = g->late_at > now ? g->late_at : seconds_later(now, SECOND_NS);
    if (next < due) due = next;
  }
  return due;
}

/* ---- a result ---- */

/* Takes `numbers` over. */
static void wait_for(run *r, const char *name, char *numbers) {
  if (r->waiting_count == WAITING_MAX) forget(r, 0);
  char *copy = VEC_ROOM(r->waiting, r->waiting_count, r->waiting_room) ? strdup(name) : NULL;
  if (copy)
    r->waiting[r->waiting_count++] = (run_waiting){copy, numbers};
  else
    free(numbers);
}

/* A name that is used again and again may mean the next save: if the one that is there has its own. */
static bool means_next(const run_unit *u) {
  return u->step == MATCH_NO_STEP && u->result_named && u->phase != UNIT_SETTLING;
}

static void give(run *r, run_unit *u, const char *numbers) {
  set(r, u, policy_numbers(u->result, numbers), true);
  if (u->phase == UNIT_RUNNING)
    u->result_late = true;
  else if (u->phase == UNIT_DURABLE)
    tell_late(r, u);
}

static char *copy_of(char *old, const char *text) {
  char *copy = strdup(text);
  if (!copy) return old; /* out of memory: the one before */
  free(old);
  return copy;
}

void run_result_take(run *r, const char *json, const char *checkpoint) {
  r->result = copy_of(r->result, json);
  if (!checkpoint) {
    r->unnamed = copy_of(r->unnamed, json);
    hear(r, json);
    return;
  }
  char *numbers = policy_numbers(json, NULL);
  if (!numbers) return; /* it asks for a checkpoint, and says nothing of it */
  run_unit *u = named_unit(r, checkpoint);
  if (!u || means_next(u)) {
    wait_for(r, checkpoint, numbers);
  } else {
    give(r, u, numbers);
    free(numbers);
  }
}
