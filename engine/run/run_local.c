/* run_local: removes units of the watched directory that may go: temporary ones when the job has
 * ended well, and those that `keep_local` lets go once they are in the store. All other files there
 * are the framework's. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "run/run_state.h"
#include "job/move/unit_files.h"
#include "prims/fs.h"

static bool has_file(const run *r, const char *unit, const char *name) {
  char dir[FS_PATH_MAX], path[FS_PATH_MAX];
  struct stat st;
  if (!name || fs_join(dir, r->places.dir, unit, NULL) < 0 || fs_join(path, dir, name, NULL) < 0)
    return false;
  return r->env->io->lstat(r->env->io, AT_FDCWD, path, &st) == 0 && S_ISREG(st.st_mode);
}

unit_sort run_unit_sort(const run *r, const char *path, match_kind kind) {
  if (kind != MATCH_DIR) return SORT_PERM;
  if (has_file(r, path, policy_null_marker(r->policy))) return SORT_NULL;
  return has_file(r, path, policy_temp_marker(r->policy)) ? SORT_TEMP : SORT_PERM;
}

const char *run_sort_name(unit_sort sort) {
  return sort == SORT_NULL ? "null" : sort == SORT_TEMP ? "temp" : "perm";
}

/* ---- removal, on a worker ---- */

struct leaving {
  char *path; /* of the unit, below the watched directory */
  char *reason;
  match_kind kind;
  uint64_t stamp; /* of its files when it was saved; 0: any will do */
  char full[FS_PATH_MAX];
  int status;
  bool waits; /* for another watcher, which `error` names */
  bool gone;
  err error;
};

/* Units of one group that may go. */
struct run_freeing {
  run *run;
  run_freeing *next; /* it waits for this one's end: one at a time, so that we own it once */
  run_group *group;
  uint64_t term;
  char log[RUNLOG_NONCE_MAX];
  struct leaving *units;
  size_t count, room;
  watchers others;
  uint64_t sum; /* as they were looked at */
  owner brief;  /* of one that watches beside others */
  names dead;   /* of these nobody knows when they come back */
  int status;   /* why nothing was begun at all */
  err error;
};

static void freeing_free(run_freeing *w) {
  for (size_t i = 0; i < w->count; i++) {
    free(w->units[i].path);
    free(w->units[i].reason);
  }
  free(w->units);
  watchers_free(&w->others);
  names_free(&w->dead);
  free(w);
}

static int stamp_now(const run *r, const struct leaving *u, const io *io, const rules *rules,
                     uint64_t *out, err *e) {
  unit_files now = {0};
  int rc =
      unit_files_scan_as(io, r->places.dir, u->path, u->kind, rules, UNIT_FILES_PLAIN, &now, e);
  if (rc < 0) return rc;
  *out = unit_files_stamp(&now);
  unit_files_free(&now);
  return 0;
}

/* Checks that the files are the saved ones: newer ones are in no store yet, and may have been
 * written while this waited for a worker, and before its events were read. */
static int check_saved(const run *r, const struct leaving *u, const io *io, err *e) {
  uint64_t stamp = 0;
  if (u->stamp == 0) return 0;
  int rc = stamp_now(r, u, io, r->rules, &stamp, e);
  if (rc < 0) return rc;
  return stamp == u->stamp ? 0 : err_set(e, ERR_RETIRED, "%s stays: it was written again", u->path);
}

/* Takes the unit out of the trainer's sight in one step, where that can be: half of a checkpoint
 * must not stay under its name when we are killed. A leftover in the staging goes with the next
 * start. */
static void set_aside(const run *r, struct leaving *u, const io *io) {
  char nonce[33], aside[FS_PATH_MAX];
  if (io_nonce(io, nonce) == 0 && fs_join(aside, r->places.staging, nonce, NULL) == 0 &&
      io->rename(io, AT_FDCWD, u->full, AT_FDCWD, aside, 0) == 0)
    memcpy(u->full, aside, sizeof u->full);
}

/* Removes the unit from the watched directory that is found now, through no link, whoever puts
 * links in it or in its place meanwhile: its owner may be a user who may not remove what we may. */
static int remove_unit(const run *r, struct leaving *u, err *e) {
  fs_held *held;
  int rc = fs_held_new(r->env->io, &held, e);
  if (rc < 0) return rc;
  const io *io = fs_held_io(held);
  rc = fs_hold(held, r->places.dir, e);
  if (rc == 0) rc = check_saved(r, u, io, e);
  if (rc == 0) set_aside(r, u, io);
  if (rc == 0) rc = fs_remove_tree(io, u->full, e);
  fs_held_free(held);
  return rc;
}

/* ---- the other watchers ---- */

/* True if that watcher has these very files, or does not want them. It may leave out others than we
 * do. */
static bool is_done(const run *r, const watcher_seen *w, const struct leaving *u) {
  rules *theirs = NULL;
  uint64_t stamp = 0;
  bool done =
      w->known && rules_custom(NULL, names_list(&w->excludes), NULL, -1, &theirs, NULL) == 0 &&
      stamp_now(r, u, r->env->io, theirs, &stamp, NULL) == 0 && watcher_is_done(w, u->path, stamp);
  rules_free(theirs);
  return done;
}

static void name_dead(run_freeing *w, const watcher_seen *by) {
  char text[2048];
  if (by->alive) return;
  snprintf(text, sizeof text,
           "what keep_local lets go stays here: another watcher has not saved it, and does not "
           "live as far as is seen from here: state %.300s, run %.100s to %.300s, host %.100s, "
           "process %lld. Start it again; or remove %.300s if it is not to come back",
           by->state, by->run, by->target, by->host, (long long)by->pid, by->file);
  names_add(&w->dead, text); /* without memory for it, the next look says it */
}

/* True if a dead one is no loss, since another one saves to its log, and has these files there: it was
 * started anew with another state directory. We have them ourselves, unless any will do. */
static bool is_followed(const run *r, const run_freeing *w, const watcher_seen *by,
                        const struct leaving *u) {
  const char *group = w->group->group.prefix;
  if (by->alive) return false;
  if (u->stamp && watcher_has_log(by, group, w->log)) return true;
  for (size_t i = 0; i < by->group_count; i++)
    for (size_t k = 0; strcmp(by->groups[i].path, group) == 0 && k < w->others.count; k++) {
      const watcher_seen *next = &w->others.at[k];
      if (next != by && watcher_has_log(next, group, by->groups[i].log) && is_done(r, next, u))
        return true;
    }
  return false;
}

static void ask_others(const run *r, run_freeing *w, struct leaving *u) {
  for (size_t i = 0; i < w->others.count; i++) {
    const watcher_seen *by = &w->others.at[i];
    if (is_done(r, by, u) || is_followed(r, w, by, u)) continue;
    u->waits = true;
    err_set(&u->error, ERR_HELD, "%s stays until the watcher with the state %s has saved it to %s",
            u->path, by->state, by->target);
    name_dead(w, by);
  }
}

/* Finds out who else watches, and that the directory is ours. */
static int begin_freeing(const run *r, run_freeing *w, err *e) {
  const char *home = r->home.path;
  if (*home) w->sum = watchers_sum(r->env->io, home);
  int rc = *home ? watchers_look(r->env->io, home, &r->watcher, &w->others, e) : 0;
  bool any = false;
  for (size_t i = 0; rc == 0 && i < w->count; i++) {
    ask_others(r, w, &w->units[i]);
    any = any || !w->units[i].waits;
  }
  return rc < 0 || !any || !r->beside ? rc : run_own_briefly(r, w->log, w->term, &w->brief, e);
}

static void free_on_worker(void *arg) {
  run_freeing *w = arg;
  run *r = w->run;
  const owner *o = r->beside ? &w->brief : &r->owner;
  w->status = begin_freeing(r, w, &w->error);
  for (size_t i = 0; w->status == 0 && i < w->count; i++) {
    struct leaving *u = &w->units[i];
    if (u->waits) continue;
    w->status = run_may_change(r, o, &w->group->group, w->term, &w->error);
    if (w->status < 0) break;
    u->status = remove_unit(r, u, &u->error);
    u->gone = u->status == 0;
  }
  owner_drop(r->env->io, &w->brief);
}

/* ---- on the owner's thread ---- */

static void submit(run *r);

static void on_left(run *r, const struct leaving *u) {
  log_say(r->env->log, LOG_INFO, "%s is removed here: %s", u->path, u->reason);
  trail_note(r->trail, &(trail_record){.what = TRAIL_GONE, .unit = u->path, .reason = u->reason});
}

static void on_stays(run *r, const struct leaving *u) {
  run_unit *known = run_unit_find(r, u->path);
  bool said = u->waits || u->status == ERR_RETIRED;
  if (known) known->leaving = false;
  if (*u->error.text) log_say(r->env->log, said ? LOG_INFO : LOG_WARN, "%s", u->error.text);
}

/* Nothing was freed, since the directory is not ours (any more), or that cannot be told now. */
static void on_refused(run *r, const run_freeing *w) {
  char text[ERR_TEXT_MAX];
  if (w->status == ERR_FENCED) {
    run_fenced(r, w->group->group.prefix, w->error.text);
  } else if (w->status == ERR_HELD || w->status == ERR_INVAL) {
    snprintf(text, sizeof text, "this watcher frees nothing here: %.800s", w->error.text);
    run_say_once(r, text);
  } else {
    log_say(r->env->log, LOG_WARN, "nothing is freed here now: %s", w->error.text);
  }
}

static void freeing_done(void *ctx) {
  enum { PAUSE_S = 1 };
  run_freeing *w = ctx;
  run *r = w->run;
  r->tasks--;
  for (size_t i = 0; i < w->count; i++) {
    const struct leaving *u = &w->units[i];
    if (u->gone)
      on_left(r, u);
    else
      on_stays(r, u);
    if (w->status == 0 && u->waits) w->group->local_waits = true;
  }
  if (w->status < 0) on_refused(r, w);
  for (size_t i = 0; i < w->dead.count; i++) run_say_once(r, w->dead.at[i]);
  r->local_at = r->env->io->now(r->env->io, IO_MONO) + (int64_t)PAUSE_S * 1000000000;
  w->group->local_sum = w->sum;
  r->freeing = w->next;
  freeing_free(w);
  submit(r);
}

static void give_up(run *r, run_freeing *w) {
  for (size_t i = 0; i < w->count; i++) {
    run_unit *u = run_unit_find(r, w->units[i].path);
    if (u) u->leaving = false;
  }
  freeing_free(w);
}

/* Begins the first one. If it cannot begin now, its units are looked at after the next commit. */
static void submit(run *r) {
  while (r->freeing && !run_submit(r, free_on_worker, freeing_done, r->freeing)) {
    run_freeing *w = r->freeing;
    r->freeing = w->next;
    give_up(r, w);
  }
}

static run_freeing *freeing_new(run *r, run_group *g) {
  run_freeing *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->run = r;
  w->group = g;
  w->term = g->term;
  w->brief.file.fd = w->brief.dir.fd = -1;
  memcpy(w->log, g->log_name, sizeof w->log);
  return w;
}

static void freeing_add(run *r, run_freeing *w, run_unit *u, uint64_t stamp, const char *reason) {
  struct leaving *l = VEC_ROOM(w->units, w->count, w->room) ? &w->units[w->count] : NULL;
  if (!l || u->kind == MATCH_GROUP) return;
  *l = (struct leaving){
      .path = strdup(u->path), .reason = strdup(reason), .kind = u->kind, .stamp = stamp};
  if (!l->path || !l->reason || fs_join(l->full, r->places.dir, u->path, NULL) < 0) {
    free(l->path);
    free(l->reason);
    return;
  }
  w->count++;
  u->leaving = true;
}

static void freeing_begin(run *r, run_freeing *w) {
  run_freeing **end = &r->freeing;
  if (!w) return;
  if (w->count == 0) {
    freeing_free(w);
    return;
  }
  const bool idle = !r->freeing;
  while (*end) end = &(*end)->next;
  *end = w;
  if (idle) submit(r);
}

/* ---- keep_local ---- */

typedef struct local_list {
  run_unit **units;
  policy_item *items;
  policy_kept *kept;
  size_t count;
} local_list;

static int by_age(const void *a, const void *b) {
  const run_unit *x = *(run_unit *const *)a, *y = *(run_unit *const *)b;
  if (x->made_ns != y->made_ns) return x->made_ns < y->made_ns ? -1 : 1;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return strcmp(x->path, y->path);
}

static void list_free(local_list *l) {
  free(l->units);
  free(l->items);
  free(l->kept);
}

static bool list_durable(run *r, run_group *g, local_list *l) {
  *l = (local_list){.units = calloc(r->unit_count + 1, sizeof(run_unit *)),
                    .items = calloc(r->unit_count + 1, sizeof *l->items),
                    .kept = calloc(r->unit_count + 1, sizeof *l->kept)};
  if (!l->units || !l->items || !l->kept) return false;
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->group == g && r->units[i]->phase == UNIT_DURABLE && !r->units[i]->above &&
        !r->units[i]->leaving)
      l->units[l->count++] = r->units[i];
  qsort(l->units, l->count, sizeof(run_unit *), by_age);
  for (size_t i = 0; i < l->count; i++) {
    const run_unit *u = l->units[i];
    l->items[i] = (policy_item){.name = fs_base(u->path),
                                .dir = fs_base(u->path),
                                .step = u->step,
                                .time_ns = u->changed_ns,
                                .bytes = u->bytes,
                                .newest = i + 1 == l->count,
                                .durable = true};
  }
  return true;
}

/* True if there is a newer one of its kind here. The last of a kind stays whatever a policy says: a
 * framework that finds nothing starts anew. */
static bool outlived(const local_list *l, size_t i) {
  for (size_t k = i + 1; k < l->count; k++)
    if (strcmp(l->units[k]->series, l->units[i]->series) == 0) return true;
  return false;
}

/* True if a list names it that stands here, too: its framework may load it at the end of the training, as
 * Hugging Face does the best one. */
static bool is_listed(run *r, const run_group *g, const run_unit *u) {
  char text[ERR_TEXT_MAX];
  if (!names_has(&g->needed, fs_base(u->path))) return false;
  snprintf(text, sizeof text,
           "%.300s stays here, whatever keep_local says: what was saved with the newest names it",
           u->path);
  run_say_once(r, text);
  return true;
}

void run_local_sweep(run *r, run_group *g) {
  local_list l;
  if (r->closing || r->fenced || r->keep_all || !policy_has(r->policy, POLICY_KEEP_LOCAL)) return;
  if (g->remembers != MEMORY_KNOWN || g->needs_unknown) return;
  run_freeing *w = freeing_new(r, g);
  if (w && list_durable(r, g, &l) &&
      run_policy_select(r, g, POLICY_KEEP_LOCAL, l.items, l.count, l.kept))
    for (size_t i = 0; i < l.count; i++)
      if (!l.kept[i].keep && outlived(&l, i) && !is_listed(r, g, l.units[i]))
        freeing_add(r, w, l.units[i], l.units[i]->stamp, l.kept[i].reason);
  if (w) list_free(&l);
  freeing_begin(r, w);
}

int64_t run_local_again(run *r, int64_t now) {
  enum { PAUSE_S = 1 };
  bool any = false;
  for (size_t i = 0; !any && i < r->group_count; i++) any = r->groups[i]->local_waits;
  if (!any || r->freeing || r->closing || r->fenced) return INT64_MAX;
  if (now < r->local_at) return r->local_at;
  r->local_at = now + (int64_t)PAUSE_S * 1000000000;
  const uint64_t sum = watchers_sum(r->env->io, r->home.path);
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->local_waits || g->local_sum == sum) continue;
    g->local_waits = false; /* it waits again, if it has to */
    run_local_sweep(r, g);
  }
  return r->local_at;
}

/* True for a unit that is in the store, or was judged and is not wanted. A unit that a result named
 * stays until it is saved, also when that failed; so does an incomplete one, and one that nobody
 * could judge: it may be older than the job. */
static bool may_end(const run *r, const run_unit *u) {
  if (u->leaving) return false;
  return (u->phase == UNIT_DURABLE && run_anyway_sure(r, u->group)) ||
         (u->phase == UNIT_SKIPPED && !u->asked_for);
}

void run_local_end(run *r) {
  if (r->keep_all) return;
  for (size_t k = 0; k < r->group_count; k++) {
    run_freeing *w = freeing_new(r, r->groups[k]);
    for (size_t i = 0; w && i < r->unit_count; i++) {
      run_unit *u = r->units[i];
      if (u->group == r->groups[k] && may_end(r, u) &&
          run_unit_sort(r, u->path, u->kind) == SORT_TEMP)
        freeing_add(r, w, u, 0, "it was temporary, and the job has ended");
    }
    freeing_begin(r, w);
  }
}
