/* Units of the watched directory that may go: temporary ones when the job has ended well, and what
 * `keep_local` lets go once it is in the store. All else in that directory is the framework's. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run_state.h"
#include "core/tree.h"
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

struct removal {
  run_task task;
  char *path; /* of the unit, below the watched directory */
  match_kind kind;
  uint64_t stamp; /* its files' when it was saved; 0: whatever they are */
  char full[FS_PATH_MAX];
  int status;
  err error;
};

static void removal_free(struct removal *w) {
  if (w) free(w->path);
  free(w);
}

/* What was written since it was saved is in no store yet: it may have been written while this
 * waited for a worker, and before its events were read. */
static int check_saved(const struct removal *w, const io *io, err *e) {
  const run *r = w->task.run;
  tree now = {0};
  if (w->stamp == 0) return 0;
  int rc = tree_scan(io, r->places.dir, w->path, w->kind, r->rules, &now, e);
  if (rc < 0) return rc;
  uint64_t stamp = tree_stamp(&now);
  tree_free(&now);
  return stamp == w->stamp ? 0 : err_set(e, ERR_RETIRED, "%s stays: it was written again", w->path);
}

/* In one step out of the trainer's sight, where that can be: half of a checkpoint must not stay
 * under its name when we are killed. What stays in the staging goes with the next start. */
static void set_aside(const run *r, struct removal *w, const io *io) {
  char nonce[33], aside[FS_PATH_MAX];
  if (io_nonce(io, nonce) == 0 && fs_join(aside, r->places.staging, nonce, NULL) == 0 &&
      io->rename(io, AT_FDCWD, w->full, AT_FDCWD, aside, 0) == 0)
    memcpy(w->full, aside, sizeof w->full);
}

/* In the watched directory that is found now, whoever puts links in it or in its place meanwhile:
 * who owns it may be somebody who may not remove what we may. */
static int remove_unit(struct removal *w, err *e) {
  run *r = w->task.run;
  fs_held *held;
  int rc = fs_held_new(r->env->io, &held, e);
  if (rc < 0) return rc;
  const io *io = fs_held_io(held);
  rc = fs_hold(held, r->places.dir, e);
  if (rc == 0) rc = check_saved(w, io, e);
  if (rc == 0) set_aside(r, w, io);
  if (rc == 0) rc = fs_remove_tree(io, w->full, e);
  fs_held_free(held);
  return rc;
}

static void remove_on_worker(void *arg) {
  struct removal *w = arg;
  run *r = w->task.run;
  w->status = remove_unit(w, &w->error);
  r->env->finished(r->env->ctx, &w->task);
}

static void remove_done(run_task *task) {
  struct removal *w = (struct removal *)task; /* the task is its first member */
  run *r = task->run;
  run_unit *u = run_unit_find(r, w->path);
  if (w->status < 0) {
    log_say(r->env->log, w->status == ERR_RETIRED ? LOG_INFO : LOG_WARN, "%s", w->error.text);
    if (u) u->leaving = false;
  }
  removal_free(w);
}

/* What cannot be begun now is looked at again after the next commit. */
static void removal_begin(run *r, run_unit *u, uint64_t stamp, const char *reason) {
  err full = {0};
  struct removal *w = calloc(1, sizeof *w);
  bool ready = w && u->kind != MATCH_GROUP && (w->path = strdup(u->path)) &&
               fs_join(w->full, r->places.dir, u->path, NULL) == 0;
  if (ready) {
    w->task = (run_task){.run = r, .done = remove_done};
    w->kind = u->kind;
    w->stamp = stamp;
  }
  if (!ready || pool_submit(r->env->pool, remove_on_worker, w, &full) < 0) {
    removal_free(w);
    return;
  }
  r->tasks++;
  u->leaving = true;
  log_say(r->env->log, LOG_INFO, "%s is removed here: %s", u->path, reason);
  run_note(r, u, TRAIL_GONE, reason);
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
    if (r->units[i]->group == g && r->units[i]->phase == UNIT_DURABLE && !r->units[i]->leaving)
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

/* Is there a newer one of its kind here? The last of a kind stays whatever a policy says: a
 * framework that finds nothing starts anew. */
static bool outlived(const local_list *l, size_t i) {
  for (size_t k = i + 1; k < l->count; k++)
    if (strcmp(l->units[k]->series, l->units[i]->series) == 0) return true;
  return false;
}

void run_local_sweep(run *r, run_group *g) {
  local_list l;
  if (r->closing || r->keep_all || !policy_has(r->policy, POLICY_KEEP_LOCAL)) return;
  if (list_durable(r, g, &l) &&
      run_policy_select(r, g, POLICY_KEEP_LOCAL, l.items, l.count, l.kept))
    for (size_t i = 0; i < l.count; i++)
      if (!l.kept[i].keep && outlived(&l, i))
        removal_begin(r, l.units[i], l.units[i]->stamp, l.kept[i].reason);
  list_free(&l);
}

/* In the store, or looked at and not wanted. What a result named stays until it is saved, also when
 * that failed; so does what is incomplete, and what nobody could judge: it may be older than the
 * job. */
static bool may_end(const run_unit *u) {
  if (u->leaving) return false;
  return u->phase == UNIT_DURABLE || (u->phase == UNIT_SKIPPED && !u->asked_for);
}

void run_local_end(run *r) {
  if (r->keep_all) return;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (may_end(u) && run_unit_sort(r, u->path, u->kind) == SORT_TEMP)
      removal_begin(r, u, 0, "it was temporary, and the job has ended");
  }
}
