/* prepare_quarantine: moves units that are in the way of a trainer to quarantine. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "job/move/transfer.h"
#include "run/begin/prepare.h"
#include "run/wait/ticker.h"

/* ---- staging ---- */

int prepare_hold(struct prepare *p, err *e) {
  const run *r = p->run;
  int rc = fs_held_new(r->env->io, &p->held, e);
  if (rc == 0) rc = fs_hold(p->held, r->places.dir, e);
  if (rc == 0) rc = fs_hold(p->held, r->places.state, e);
  if (rc < 0) return rc;
  p->io = fs_held_io(p->held);
  return r->beside ? 0 : restore_remove_dead(p->io, r->places.dir, e);
}

/* A group of which nothing is saved yet has no term: that of another one tells as much. */
int prepare_may_change(const struct prepare *p, const char *prefix, err *e) {
  run *r = p->run;
  run_group *g = run_group_find(r, strcmp(prefix, ".") == 0 ? "" : prefix);
  for (size_t i = 0; (!g || g->term == RUNLOG_NONE) && i < r->group_count; i++) g = r->groups[i];
  return run_may_change(r, &r->owner, g ? &g->group : NULL, g ? g->term : RUNLOG_NONE, e);
}

/* Opens the staging. A restore ends in a rename, so it is staged on the file system of the watched
 * directory: in the state directory if that is there too, else inside, where nothing of ours may
 * stay. */
int prepare_need_staging(struct prepare *p, err *e) {
  const places *at = &p->run->places;
  if (*p->staging.path) return 0;
  int same = fs_same_device(p->run->env->io, at->dir, at->state, e);
  if (same < 0) return same;
  return restore_open_staging(p->held, same ? at->staging : at->dir, &p->staging, e);
}

int prepare_close_staging(struct prepare *p, int rc, err *e) {
  return restore_close_staging(p->held, &p->staging, rc, e);
}

/* ---- quarantine ---- */

static int note_move(struct prepare *p, const char *from, const char *to, err *e) {
  struct moved now = {strdup(from), strdup(to)};
  if (!now.from || !now.to || !VEC_ROOM(p->moves, p->move_count, p->move_room)) {
    free(now.from);
    free(now.to);
    return err_set(e, ERR_NOMEM, "quarantine %s: out of memory", from);
  }
  p->moves[p->move_count++] = now;
  return 0;
}

static int move_file(struct prepare *p, const char *from, const char *to, err *e) {
  char parent[FS_PATH_MAX];
  const io *io = p->io;
  fs_parent(to, parent);
  int rc = fs_mkdirs(io, parent, 0700, e);
  if (rc == 0) rc = note_move(p, from, to, e);
  if (rc == 0 && (rc = fs_move(io, from, to, e)) < 0) {
    p->move_count--;
    free(p->moves[p->move_count].from);
    free(p->moves[p->move_count].to);
  }
  return rc;
}

/* Leaves the directory as it was when a restore made room and then failed: an unproven copy is more
 * than nothing. *e has the failure's text, and gets the fate of the copy. */
void prepare_put_back(struct prepare *p, const char *path, match_kind kind, err *e) {
  run *r = p->run;
  char full[FS_PATH_MAX];
  if (fs_join(full, r->places.dir, path, NULL) < 0) return;
  size_t len = strlen(full), back = 0, kept = 0;
  for (size_t i = p->move_count; i-- > 0;) {
    const struct moved *m = &p->moves[i];
    struct stat st;
    bool mine = strncmp(m->from, full, len) == 0 &&
                (m->from[len] == 0 || (kind == MATCH_GROUP && m->from[len] == '.'));
    if (!mine) continue;
    bool done = p->io->lstat(p->io, AT_FDCWD, m->from, &st) == -ENOENT &&
                fs_move(p->io, m->to, m->from, NULL) == 0;
    *(done ? &back : &kept) += 1;
  }
  if (!e || back + kept == 0) return;
  int code = e->code, sys = e->sys;
  err_set(e, code, "%s; what stood under that name was moved to quarantine and %s", e->text,
          kept ? "is still there" : "is back in its place");
  e->sys = sys;
}

struct group_move {
  struct prepare *prepare;
  const char *stem, *from, *to; /* base name of the stem; directories */
};

static int move_member(void *ctx, const fs_entry *entry, err *e) {
  struct group_move *g = ctx;
  size_t len = strlen(g->stem);
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  if (strncmp(entry->name, g->stem, len) != 0 || entry->name[len] != '.') return 0;
  int rc = fs_join(from, g->from, entry->name, e);
  if (rc == 0) rc = fs_join(to, g->to, entry->name, e);
  return rc < 0 ? rc : move_file(g->prepare, from, to, e);
}

/* Finds <state>/quarantine/<time>-<nonce>/<path>, when it is sure that we may change the directory. */
static int find_place(const struct prepare *p, const char *path, char from[FS_PATH_MAX],
                      char to[FS_PATH_MAX], err *e) {
  const places *at = &p->run->places;
  const io *io = p->io;
  char nonce[33], name[64], root[FS_PATH_MAX];
  fs_parent(path, from);
  int rc = prepare_may_change(p, from, e);
  if (rc < 0) return rc;
  rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  snprintf(name, sizeof name, "%lld-%.8s", (long long)(io->now(io, IO_WALL) / 1000000000), nonce);
  rc = fs_join(root, at->quarantine, name, e);
  if (rc == 0) rc = fs_join(to, root, path, e);
  return rc < 0 ? rc : fs_join(from, at->dir, path, e);
}

static int copy_link(const io *io, const char *from, const char *to, err *e) {
  char target[FS_PATH_MAX];
  ssize_t len = io->readlink(io, AT_FDCWD, from, target, sizeof target - 1);
  if (len < 0) return err_sys(e, (int)len, "read the link %s", from);
  target[len] = 0;
  int rc = io->symlink(io, target, AT_FDCWD, to);
  return rc < 0 ? err_sys(e, rc, "make the link %s", to) : 0;
}

int prepare_set_aside(struct prepare *p, const char *path, const char *reason, err *e) {
  char from[FS_PATH_MAX], to[FS_PATH_MAX], parent[FS_PATH_MAX];
  const io *io = p->io;
  struct stat st;
  int rc = find_place(p, path, from, to, e);
  if (rc < 0) return rc;
  fs_parent(to, parent);
  rc = io->lstat(io, AT_FDCWD, from, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", from);
  rc = fs_mkdirs(io, parent, 0700, e);
  if (rc == 0)
    rc = S_ISLNK(st.st_mode) ? copy_link(io, from, to, e)
                             : fs_copy_file(io, from, to, true, NULL, NULL, e);
  if (rc == 0) rc = fs_sync_dir(io, parent, e);
  if (rc == 0)
    log_say(p->run->env->log, LOG_WARN, "%s as it was is kept in %s: %s", path, to, reason);
  return rc;
}

int prepare_quarantine(struct prepare *p, const char *path, match_kind kind, recover_standing as,
                       const char *reason, err *e) {
  run *r = p->run;
  const io *io = p->io;
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  int rc = find_place(p, path, from, to, e);
  if (rc == 0 && kind == MATCH_GROUP) {
    char from_dir[FS_PATH_MAX], to_dir[FS_PATH_MAX];
    fs_parent(from, from_dir);
    fs_parent(to, to_dir);
    struct group_move g = {p, fs_base(path), from_dir, to_dir};
    rc = fs_list(io, from_dir, move_member, &g, e);
  } else if (rc == 0) {
    rc = move_file(p, from, to, e);
  }
  if (rc < 0) return rc;
  log_say(r->env->log, LOG_WARN, "%s was moved to %s: %s", path, to, reason);
  p->out->quarantined++;
  p->out->incomplete += as == RECOVER_TORN || as == RECOVER_UNPROVEN;
  trail_note(
      r->trail,
      &(trail_record){.what = TRAIL_GONE, .unit = path, .cause = "quarantined", .reason = reason});
  p->moved = true;
  return journal_forget(r->journal, path, e);
}

/* ---- what is still of use there ---- */

/* Finds where what stood under this absolute path is now. */
static bool is_now(const struct prepare *p, const char *path, char out[FS_PATH_MAX]) {
  for (size_t i = p->move_count; i-- > 0;) {
    const struct moved *m = &p->moves[i];
    size_t len = strlen(m->from);
    if (strncmp(path, m->from, len) != 0 || (path[len] && path[len] != '/')) continue;
    return fs_join(out, m->to, path[len] ? path + len + 1 : "", NULL) == 0;
  }
  return false;
}

/* What goes to quarantine has many of the files, mostly: one that is torn, or the part of one rank. */
struct old_copy {
  const struct prepare *prepare;
  const manifest *manifest;
  const char *dir; /* that it is restored to */
};

static bool stood(void *ctx, const char *name, char path[FS_PATH_MAX]) {
  const struct old_copy *old = ctx;
  char unit[FS_PATH_MAX], full[FS_PATH_MAX];
  const char *in = old->manifest->kind == MATCH_DIR ? old->manifest->unit : "";
  return fs_join(unit, old->dir, in, NULL) == 0 && fs_join(full, unit, name, NULL) == 0 &&
         is_now(old->prepare, full, path);
}

static void say_brought(const run *r, const char *unit, const transfer_nearby *n) {
  unsigned files = atomic_load(&n->files), fetched = atomic_load(&n->fetched);
  unsigned shared = atomic_load(&n->shared), here = atomic_load(&n->here);
  char others[80] = "";
  if (shared > 0)
    snprintf(others, sizeof others, ", %u come from other tasks of this node", shared);
  if (here + shared > 0)
    log_say(r->env->log, here ? LOG_WARN : LOG_INFO, "%s: %u of %u files fetched%s%s", unit,
            fetched, files, others,
            here ? "; the others were here, with the digests that were saved" : "");
}

static void show_life(void *ctx, uint64_t n) {
  (void)n;
  node_share_beat(ctx);
}

int prepare_bring(const struct prepare *p, restore *how, const manifest *m, const char *key,
                  const char *dir, err *e) {
  struct old_copy old = {p, m, dir};
  const run *r = p->run;
  transfer_nearby nearby = {
      .stood = stood, .ctx = &old, .node = r->node, .turn = r->ranks.rank, .turns = r->ranks.world};
  ticker *life = NULL;
  err why = {0};
  how->nearby = &nearby;
  if (r->node && ticker_begin(NODE_SHARE_BEAT_NS, show_life, r->node, &life, &why) < 0)
    log_say(r->env->log, LOG_INFO, "other tasks wait for blocks of this one alone: %s", why.text);
  int rc = restore_unit(how, m, key, dir, e);
  ticker_end(life);
  if (rc == 0) say_brought(r, m->unit, &nearby);
  return rc;
}

/* ---- what goes last ---- */

bool prepare_goes(const struct prepare *p, const char *path) {
  for (size_t i = 0; i < p->going_count; i++)
    if (strcmp(p->going[i].path, path) == 0) return true;
  return false;
}

int prepare_let_go(struct prepare *p, const char *path, match_kind kind, recover_standing as,
                   const char *reason, err *e) {
  if (prepare_goes(p, path)) return 0;
  struct going now = {strdup(path), strdup(reason), kind, as};
  if (!now.path || !now.reason || !VEC_ROOM(p->going, p->going_count, p->going_room)) {
    free(now.path);
    free(now.reason);
    return err_set(e, ERR_NOMEM, "quarantine %s: out of memory", path);
  }
  p->going[p->going_count++] = now;
  return 0;
}

int prepare_make_way(struct prepare *p, const survey_unit *u, const char *named_by, err *e) {
  char why[700];
  snprintf(why, sizeof why,
           "%.200s names it, it does not load here, and a committed copy is restored (%s)",
           named_by, u->reason);
  return prepare_quarantine(p, u->path, u->kind, u->standing, why, e);
}

/* It has made way already: for a commit that has its name now, or that comes while the job runs. */
static bool has_gone(const struct prepare *p, const struct going *g) {
  char full[FS_PATH_MAX];
  struct stat st;
  if (prepare_was_restored(p, g->path)) return true;
  return g->kind != MATCH_GROUP && fs_join(full, p->run->places.dir, g->path, NULL) == 0 &&
         p->io->lstat(p->io, AT_FDCWD, full, &st) == -ENOENT;
}

static void forget_unit(survey *s, const char *path) {
  for (size_t i = 0; i < s->count; i++) {
    if (strcmp(s->units[i].path, path) != 0) continue;
    free(s->units[i].path);
    free(s->units[i].series);
    free(s->units[i].group);
    memmove(&s->units[i], &s->units[i + 1], (s->count - i - 1) * sizeof *s->units);
    s->count--;
    return;
  }
}

int prepare_quarantine_all(struct prepare *p, survey *s, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < p->going_count; i++) {
    const struct going *g = &p->going[i];
    if (has_gone(p, g)) continue;
    rc = prepare_quarantine(p, g->path, g->kind, g->as, g->reason, e);
    if (rc == 0) forget_unit(s, g->path);
  }
  return rc;
}
