/* Makes a directory ready for a trainer: recover.h says what has to be done, this does it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/catalog.h"
#include "core/restore.h"
#include "core/run_state.h"
#include "prims/fs.h"

/* What was restored: where it is, where it came from. */
struct restored {
  char *path, *uri;
};

/* One file or directory in quarantine: where it was, and where it is. */
struct moved {
  char *from, *to;
};

struct prepare {
  run *run;
  run_prepared *out;
  char staging[FS_PATH_MAX];
  bool inside; /* the staging is in the watched directory: removed before a child starts */
  bool moved;  /* something was moved or restored: the directory has to be surveyed again */
  char named[FS_PATH_MAX]; /* path of the unit that was asked for by name; "": none */
  struct restored *restored;
  size_t restored_count;
  struct moved *moves; /* what went to quarantine */
  size_t move_count;
};

/* ---- staging ---- */

/* What a restore that died left in the directory is removed; one that lives is not disturbed. */
static int clear_staging_inside(run *r, err *e) {
  char staging[FS_PATH_MAX];
  lock held = {.fd = -1};
  int rc = restore_open_staging(r->env->io, r->places.dir, staging, &held, e);
  if (rc == 0) rc = fs_remove_tree(r->env->io, staging, e);
  lock_drop(&held);
  return rc;
}

/* A restore ends in a rename, so it is staged on the file system of the watched directory: in the
 * state directory if that is there too, else inside, where nothing of ours may stay. */
static int open_staging(struct prepare *p, err *e) {
  run *r = p->run;
  char inside[FS_PATH_MAX];
  struct stat st;
  int rc = fs_join(inside, r->places.dir, RESTORE_STAGING, e);
  if (rc == 0 && r->env->io->lstat(r->env->io, AT_FDCWD, inside, &st) == 0)
    rc = clear_staging_inside(r, e);
  int same = rc == 0 ? fs_same_device(r->env->io, r->places.dir, r->places.state, e) : rc;
  if (same < 0) return same;
  p->inside = !same;
  snprintf(p->staging, sizeof p->staging, "%s", same ? r->places.staging : inside);
  return 0;
}

static int close_staging(struct prepare *p, int rc, err *e) {
  err why = {0};
  if (!p->inside || fs_remove_tree(p->run->env->io, p->staging, &why) == 0) return rc;
  return rc < 0 ? rc : err_set(e, why.code, "%s", why.text);
}

/* ---- actions ---- */

static int note_move(struct prepare *p, const char *from, const char *to, err *e) {
  struct moved *all = realloc(p->moves, (p->move_count + 1) * sizeof *all);
  if (all) p->moves = all;
  struct moved now = {all ? strdup(from) : NULL, all ? strdup(to) : NULL};
  if (!now.from || !now.to) {
    free(now.from);
    free(now.to);
    return err_set(e, ERR_NOMEM, "quarantine %s: out of memory", from);
  }
  all[p->move_count++] = now;
  return 0;
}

static int move_file(struct prepare *p, const char *from, const char *to, err *e) {
  char parent[FS_PATH_MAX];
  const io *io = p->run->env->io;
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

/* A restore that made room and then failed leaves the directory as it was: an unproven copy is more
 * than nothing. *e has the failure's text, and gets to say what became of the copy. */
static void put_back(struct prepare *p, const char *path, match_kind kind, err *e) {
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
    bool done = r->env->io->lstat(r->env->io, AT_FDCWD, m->from, &st) == -ENOENT &&
                fs_move(r->env->io, m->to, m->from, NULL) == 0;
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

/* <state>/quarantine/<time>-<nonce>/<path> */
static int quarantine(struct prepare *p, const char *path, match_kind kind, const char *reason,
                      err *e) {
  run *r = p->run;
  const io *io = r->env->io;
  char nonce[33], name[64], root[FS_PATH_MAX], from[FS_PATH_MAX], to[FS_PATH_MAX];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  snprintf(name, sizeof name, "%lld-%.8s", (long long)(io->now(io, IO_WALL) / 1000000000), nonce);
  rc = fs_join(root, r->places.quarantine, name, e);
  if (rc == 0) rc = fs_join(to, root, path, e);
  if (rc == 0) rc = fs_join(from, r->places.dir, path, e);
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
  p->moved = true;
  return journal_forget(r->journal, path, e);
}

static int note_restored(struct prepare *p, const char *path, const char *uri, err *e) {
  struct restored *all = realloc(p->restored, (p->restored_count + 1) * sizeof *all);
  if (all) p->restored = all;
  struct restored now = {all ? strdup(path) : NULL, all ? strdup(uri) : NULL};
  if (!now.path || !now.uri) {
    free(now.path);
    free(now.uri);
    return err_set(e, ERR_NOMEM, "prepare: out of memory");
  }
  all[p->restored_count++] = now;
  p->out->restored++;
  p->moved = true;
  log_say(p->run->env->log, LOG_INFO, "restored %s from %s", path, uri);
  return 0;
}

static bool has_units_below(const survey *s, const char *path) {
  size_t len = strlen(path);
  for (size_t i = 0; i < s->count; i++)
    if (strncmp(s->units[i].path, path, len) == 0 && s->units[i].path[len] == '/') return true;
  return false;
}

/* What is no checkpoint may stand under the name of one: an empty "5/", which Orbax and others take
 * for the newest. */
static int clear_name(struct prepare *p, const survey *s, const char *prefix, const manifest *m,
                      err *e) {
  run *r = p->run;
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  struct stat st;
  size_t count = m->kind == MATCH_DIR ? 1 : m->count;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    rc = fs_join(path, prefix, m->kind == MATCH_DIR ? m->unit : m->entries[i].name, e);
    if (rc == 0) rc = fs_join(absolute, r->places.dir, path, e);
    if (rc < 0 || r->env->io->lstat(r->env->io, AT_FDCWD, absolute, &st) < 0) continue;
    if (has_units_below(s, path)) continue; /* the restore says that the name is taken */
    rc = quarantine(p, path, MATCH_FILE, "it is no checkpoint, and stands where one belongs", e);
  }
  return rc;
}

static int restore_commit(struct prepare *p, const survey *s, run_group *g, const runlog_commit *c,
                          err *e) {
  run *r = p->run;
  const manifest *m;
  char dir[FS_PATH_MAX], path[FS_PATH_MAX], key[STORE_KEY_MAX];
  char uri[sizeof r->places.target_text + STORE_KEY_MAX];
  restore how = {.io = r->env->io, .store = r->store, .pool = r->env->pool, .staging = p->staging};
  int rc = run_manifest(r, g, c, &m, e);
  if (rc == 0) rc = fs_join(dir, r->places.dir, g->group.prefix, e);
  if (rc == 0) rc = fs_mkdirs(r->env->io, dir, 0777, e);
  if (rc == 0) rc = runlog_key_dir(g->group.log, c->dir, key, e);
  if (rc == 0) rc = fs_join(path, g->group.prefix, c->unit, e);
  if (rc == 0) rc = clear_name(p, s, g->group.prefix, m, e);
  if (rc == 0) rc = restore_unit(&how, m, key, dir, e);
  if (rc < 0) return rc;
  snprintf(uri, sizeof uri, "%s/%s", r->places.target_text, key);
  rc = note_restored(p, path, uri, e);
  /* Its bytes were checked on the way: they need not be read again for that. */
  return rc < 0 ? rc : journal_note(r->journal, path, JOURNAL_COMMITTED, NULL, c->n, e);
}

/* What to do about a commit that cannot be restored: its data does not mend itself. */
static int advise(int rc, const char *unit, err *e) {
  if (e && (rc == ERR_CORRUPT || rc == ERR_FORMAT))
    err_set(e, rc,
            "%s (to go on from another checkpoint than %s: --restore NAME; ckpt-lua ls "
            "shows them)",
            e->text, unit);
  return rc;
}

/* The same, with the way back if it fails. */
static int restore_or_put_back(struct prepare *p, const survey *s, run_group *g,
                               const runlog_commit *c, err *e) {
  char path[FS_PATH_MAX];
  err why = {0};
  int rc = restore_commit(p, s, g, c, &why);
  if (rc == 0) return 0;
  advise(rc, c->unit, &why);
  if (fs_join(path, g->group.prefix, c->unit, NULL) == 0) put_back(p, path, c->kind, &why);
  if (e) *e = why;
  return rc;
}

/* ---- by the rule: the newest of each kind ---- */

static size_t units_of(const survey *s, const char *group, recover_unit *out, size_t *index) {
  size_t count = 0;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (strcmp(u->group, group) != 0) continue;
    index[count] = i;
    out[count++] = (recover_unit){u->name, u->series, u->step, u->standing, u->changed_ns};
  }
  return count;
}

static size_t commits_of(const runlog_state *state, recover_commit *out, char (*series)[512]) {
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    detect_series(c->unit, series[i], sizeof series[i]);
    out[i] = (recover_commit){c->unit, series[i], c->step, i};
  }
  return state->commit_count;
}

/* Nothing is moved before the manifests of all that is to be restored were read and are right. */
static int check_restores(struct prepare *p, run_group *g, const recover_plan *plan, err *e) {
  int rc = 0;
  for (size_t i = 0; g && rc == 0 && i < plan->count; i++) {
    const recover_action *a = &plan->actions[i];
    if (a->what != RECOVER_RESTORE) continue;
    const manifest *ignored;
    const runlog_commit *c = &runlog_view(g->group.log)->commits[a->index];
    rc = advise(run_manifest(p->run, g, c, &ignored, e), c->unit, e);
  }
  return rc;
}

static int run_actions(struct prepare *p, run_group *g, const survey *s, const size_t *index,
                       const recover_plan *plan, err *e) {
  int rc = check_restores(p, g, plan, e);
  for (size_t i = 0; rc == 0 && i < plan->count; i++) {
    const recover_action *a = &plan->actions[i];
    if (a->what == RECOVER_QUARANTINE) {
      const survey_unit *u = &s->units[index[a->index]];
      char why[600];
      snprintf(why, sizeof why, "%s (%s)", a->reason, u->reason);
      rc = quarantine(p, u->path, u->kind, why, e);
    } else if (g) { /* without a group there are no commits */
      rc = restore_or_put_back(p, s, g, &runlog_view(g->group.log)->commits[a->index], e);
    }
  }
  return rc;
}

/* `g` NULL: a directory with units of which the target has nothing yet. */
static int recover_group(struct prepare *p, run_group *g, const char *prefix, const survey *s,
                         err *e) {
  static const runlog_state nothing = {0};
  const runlog_state *state = g && g->group.log ? runlog_view(g->group.log) : &nothing;
  recover_plan plan = {0};
  recover_unit *units = calloc(s->count + 1, sizeof *units);
  size_t *index = calloc(s->count + 1, sizeof *index);
  recover_commit *commits = calloc(state->commit_count + 1, sizeof *commits);
  char(*series)[512] = calloc(state->commit_count + 1, sizeof *series);
  int rc = units && index && commits && series
               ? 0
               : err_set(e, ERR_NOMEM, "prepare %s: out of memory", p->run->places.dir);
  if (rc == 0)
    rc = recover_plan_group(units, units_of(s, prefix, units, index), commits,
                            commits_of(state, commits, series), &plan, e);
  if (rc == 0) rc = run_actions(p, g, s, index, &plan, e);
  free(plan.actions);
  free(units);
  free(index);
  free(commits);
  free(series);
  return rc;
}

static int recover_all(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++)
    if (!r->groups[i]->foreign)
      rc = recover_group(p, r->groups[i], r->groups[i]->group.prefix, s, e);
  for (size_t i = 0; rc == 0 && i < s->count; i++) {
    const char *prefix = s->units[i].group;
    bool known = i > 0 && strcmp(prefix, s->units[i - 1].group) == 0;
    for (size_t k = 0; !known && k < r->group_count; k++)
      known = strcmp(r->groups[k]->group.prefix, prefix) == 0;
    if (!known) rc = recover_group(p, NULL, prefix, s, e);
  }
  return rc;
}

/* ---- by name ---- */

/* What stands under the name that was asked for makes room, unless it is that very commit. */
static int make_room(struct prepare *p, const survey *s, const char *path, uint64_t commit,
                     bool *there, err *e) {
  *there = false;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (strcmp(u->path, path) != 0) continue;
    *there = (u->standing == RECOVER_COMMITTED || u->standing == RECOVER_SUPERSEDED) &&
             u->commit == commit;
    return *there
               ? 0
               : quarantine(p, path, u->kind, "another checkpoint was asked for by this name", e);
  }
  return 0;
}

static int restore_own(struct prepare *p, const survey *s, const char *named, err *e) {
  run *r = p->run;
  char prefix[FS_PATH_MAX];
  fs_parent(named, prefix);
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->group.log || strcmp(g->group.prefix, strcmp(prefix, ".") ? prefix : "") != 0) continue;
    const runlog_state *state = runlog_view(g->group.log);
    const runlog_commit *c = runlog_newest(state, fs_base(named));
    if (!c) c = runlog_find_dir(state, fs_base(named));
    if (!c) continue;
    bool there = false;
    const manifest *ignored;
    int rc = fs_join(p->named, g->group.prefix, c->unit, e);
    if (rc == 0) rc = advise(run_manifest(r, g, c, &ignored, e), c->unit, e);
    if (rc == 0) rc = make_room(p, s, p->named, c->n, &there, e);
    return rc < 0 || there ? rc : restore_or_put_back(p, s, g, c, e);
  }
  return err_set(e, ERR_NOENT, "%s has no checkpoint %s (ckpt-lua ls shows what there is)",
                 r->places.target_text, named);
}

/* Another run's checkpoint is read, never written: it belongs to this run once it is saved here. */
static int restore_other(struct prepare *p, const survey *s, const char *named, err *e) {
  run *r = p->run;
  catalog_pick pick = {0};
  err why = {0};
  bool there;
  restore how = {.io = r->env->io, .pool = r->env->pool, .staging = p->staging};
  int rc = catalog_find(r->env->io, r->env->log, named, &pick, &why);
  if (rc == 0) rc = fs_join(p->named, "", pick.manifest.unit, &why);
  if (rc == 0) rc = make_room(p, s, p->named, RUNLOG_NONE, &there, &why);
  if (rc == 0) rc = clear_name(p, s, "", &pick.manifest, &why);
  how.store = pick.store;
  if (rc == 0) rc = restore_unit(&how, &pick.manifest, pick.key, r->places.dir, &why);
  if (rc < 0 && *p->named) put_back(p, p->named, pick.manifest.kind, &why);
  if (rc == 0) rc = note_restored(p, p->named, pick.uri, &why);
  catalog_drop(&pick);
  if (rc < 0 && e) *e = why;
  return rc;
}

/* ---- the end: what is there now ---- */

/* When the content was made. A restored file's own times say when it was restored, so for a commit
 * the manifest tells; one that cannot be read leaves what the files say. */
static int64_t made_at(run *r, const survey_unit *u) {
  const manifest *m;
  int64_t newest = 0;
  for (size_t i = 0; u->standing == RECOVER_COMMITTED && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (strcmp(g->group.prefix, u->group) != 0 || !g->group.log) continue;
    const runlog_commit *c = runlog_newest(runlog_view(g->group.log), u->name);
    if (!c || run_manifest(r, g, c, &m, NULL) < 0) continue;
    for (size_t k = 0; k < m->count; k++)
      if (m->entries[k].mtime_ns > newest) newest = m->entries[k].mtime_ns;
  }
  return newest ? newest : u->changed_ns;
}

/* Of two commits the later one is what the run came to last: after a way back to step 100 it has
 * the lower step. A unit that was not committed has its step alone to speak for it. */
static bool newer(run *r, const survey_unit *a, const survey_unit *b) {
  if (!b) return true;
  bool group = strcmp(a->group, b->group) == 0;
  if (group && a->standing == RECOVER_COMMITTED && b->standing == RECOVER_COMMITTED)
    return a->commit > b->commit;
  if (group && strcmp(a->series, b->series) == 0 && a->step != MATCH_NO_STEP &&
      b->step != MATCH_NO_STEP)
    return a->step > b->step;
  return made_at(r, a) > made_at(r, b);
}

/* The newest unit so far of each sort. Commits are compared with commits first: a mixed order would
 * have circles. */
struct newest {
  const survey_unit *committed, *whole;
};

static void offer(run *r, struct newest *n, const survey_unit *u) {
  const survey_unit **best = u->standing == RECOVER_COMMITTED ? &n->committed : &n->whole;
  if (newer(r, u, *best)) *best = u;
}

static const survey_unit *pick(run *r, const struct newest *n) {
  if (!n->committed || !n->whole) return n->committed ? n->committed : n->whole;
  return newer(r, n->whole, n->committed) ? n->whole : n->committed;
}

/* The journal remembers what was found whole, so that the watch need not be shown it again. With
 * `never` somebody may be writing (`watch`), and only a commit is surely whole. */
static int remember(run *r, const survey_unit *u, run_restore how, err *e) {
  journal_unit known = journal_find(r->journal, u->path);
  if (how == RUN_NEVER && u->standing == RECOVER_WHOLE) return 0;
  journal_state state = u->standing == RECOVER_WHOLE ? JOURNAL_COMPLETE : JOURNAL_COMMITTED;
  if (known.state == state && digest_equal(&known.fingerprint, &u->fingerprint)) return 0;
  return journal_note(r->journal, u->path, state, &u->fingerprint,
                      state == JOURNAL_COMMITTED ? u->commit : RUNLOG_NONE, e);
}

static int set_resume(struct prepare *p, const survey_unit *u, err *e) {
  run *r = p->run;
  char path[FS_PATH_MAX];
  int rc = fs_join(path, r->places.dir, u->path, e);
  if (rc < 0) return rc;
  r->resume = strdup(path);
  if (!r->resume) return err_set(e, ERR_NOMEM, "prepare: out of memory");
  for (size_t i = 0; i < p->restored_count; i++)
    if (strcmp(p->restored[i].path, u->path) == 0) {
      r->restored_from = p->restored[i].uri;
      p->restored[i].uri = NULL;
    }
  return 0;
}

/* With `never` the trainer is not pointed at anything, whatever is there. */
static int conclude(struct prepare *p, const survey *s, run_restore how, err *e) {
  const survey_unit *best = NULL;
  struct newest dirs = {0}, files = {0};
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    bool asked = *p->named && strcmp(u->path, p->named) == 0;
    if (u->standing <= RECOVER_SUPERSEDED) rc = remember(p->run, u, how, e);
    if (u->standing != RECOVER_COMMITTED && u->standing != RECOVER_WHOLE && !asked) {
      log_say(p->run->env->log, LOG_WARN, "%s is not taken for a checkpoint: %s", u->path,
              u->reason);
      continue;
    }
    p->out->found++;
    if (asked)
      best = u;
    else
      offer(p->run, u->kind == MATCH_DIR ? &dirs : &files, u);
  }
  /* A "model.safetensors" beside "checkpoint-N/" is a result, not a place to go on from. */
  if (!*p->named) best = pick(p->run, &dirs);
  if (!*p->named && !best) best = pick(p->run, &files);
  if (rc == 0 && best && how != RUN_NEVER) rc = set_resume(p, best, e);
  if (rc == 0 && !best && (how == RUN_REQUIRED || how == RUN_NAMED))
    rc = err_set(e, ERR_NOENT, "nothing to restore: neither %s nor %s has a checkpoint",
                 p->run->places.target_text, p->run->places.dir);
  return rc;
}

static int act(struct prepare *p, const survey *s, run_restore how, const char *named, err *e) {
  if (how == RUN_NEVER) return 0;
  if (how != RUN_NAMED) return recover_all(p, s, e);
  if (!named || !*named) return err_set(e, ERR_INVAL, "--restore needs a name or a URI");
  bool is_uri = strstr(named, "://") || named[0] == '/';
  return is_uri ? restore_other(p, s, named, e) : restore_own(p, s, named, e);
}

static void free_prepare(struct prepare *p) {
  for (size_t i = 0; i < p->restored_count; i++) {
    free(p->restored[i].path);
    free(p->restored[i].uri);
  }
  free(p->restored);
  for (size_t i = 0; i < p->move_count; i++) {
    free(p->moves[i].from);
    free(p->moves[i].to);
  }
  free(p->moves);
}

int run_prepare(run *r, run_restore how, const char *named, run_prepared *out, err *e) {
  *out = (run_prepared){0};
  if (r->started) return err_set(e, ERR_INVAL, "the run is started already");
  if (r->prepared) return err_set(e, ERR_INVAL, "the run is prepared already");
  struct prepare p = {.run = r, .out = out};
  survey s = {0};
  int rc = open_staging(&p, e);
  if (rc == 0) rc = run_survey(r, &s, e);
  if (rc == 0) rc = act(&p, &s, how, named, e);
  rc = close_staging(&p, rc, e);
  if (rc == 0 && p.moved) {
    run_survey_free(&s);
    rc = run_survey(r, &s, e);
  }
  if (rc == 0) rc = conclude(&p, &s, how, e);
  run_survey_free(&s);
  free_prepare(&p);
  r->prepared = rc == 0;
  out->resume = r->resume;
  out->restored_from = r->restored_from;
  return rc;
}

static int count_child(void *ctx, const proc_info *info) {
  (void)info;
  ++*(int *)ctx;
  return 0;
}

/* Those that carry our socket, and the child that the journal names if it lost its environment. */
int run_trainers(run *r, proc_found *found, void *ctx, err *e) {
  int ignored = 0;
  int count = proc_find_env("CKPT_SOCKET", r->places.socket, found ? found : count_child,
                            found ? ctx : &ignored, e);
  journal_child child = journal_last_child(r->journal);
  if (count == 0 && child.pid > 0 && child.same_boot && proc_alive(child.pid, child.start)) {
    proc_info info = {.pid = child.pid, .sid = child.sid, .start = child.start};
    snprintf(info.command, sizeof info.command, "(the trainer of the last run)");
    if (found) found(ctx, &info);
    count = 1;
  }
  return count;
}
