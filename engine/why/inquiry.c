#include "inquiry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/uri.h"
#include "catalog/catalog.h"
#include "commit/manifest_read.h"

/* ---- names that are known ---- */

static bool is_known(void *ctx, const char *path) {
  return names_has(ctx, path);
}

/* Out of memory the list is shorter, and a name in it may be called unknown. */
static int take_name(void *ctx, const trail_record *r) {
  names *l = ctx;
  bool again = r->unit && l->count > 0 && strcmp(l->at[l->count - 1], r->unit) == 0;
  if (r->unit && !again) names_add(l, r->unit);
  return 0;
}

/* ---- paths ---- */

static bool is_there(const io *io, const char *path, struct stat *st) {
  return io->lstat(io, AT_FDCWD, path, st) == 0;
}

/* Makes a path absolute, without "." and "..", and leaves links as they are. */
static int absolute(const char *text, char out[FS_PATH_MAX], err *e) {
  uri u;
  int rc = uri_parse(text, &u, e);
  if (rc == 0 && strcmp(u.scheme, "file") != 0)
    rc = err_set(e, ERR_INVAL, "%s: name a checkpoint or a local path", text);
  if (rc == 0 && strlen(u.path) >= FS_PATH_MAX)
    rc = err_set(e, ERR_LIMIT, "the path is too long: %.80s...", text);
  if (rc == 0) snprintf(out, FS_PATH_MAX, "%s", u.path);
  return rc;
}

/* Resolves the links in a path's directory too, as far as that is there, but not its last
 * component: the question is about that. */
static void resolve_parent(const char *path, char out[FS_PATH_MAX]) {
  char parent[FS_PATH_MAX];
  fs_parent(path, parent);
  char *real = realpath(parent, NULL);
  if (!real || fs_join(out, strcmp(real, "/") == 0 ? "" : real, fs_base(path), NULL) < 0)
    snprintf(out, FS_PATH_MAX, "%s", path);
  free(real);
}

/* Returns the rest of `path` behind `dir`; NULL: it is not below it. */
static const char *below(const char *dir, const char *path) {
  size_t len = strlen(dir);
  if (strncmp(path, dir, len) != 0) return NULL;
  if (path[len] == '\0') return path + len;
  return path[len] == '/' ? path + len + 1 : NULL;
}

static const char *below_either_way(const char *dir, const char *path, char real[FS_PATH_MAX]) {
  const char *rest = below(dir, path);
  if (rest) return rest;
  resolve_parent(path, real);
  return below(dir, real);
}

/* Makes the name a path below the watched directory. False: it lies outside of it. A relative path
 * is one of the working directory if that leads into the watched one to something that is there. */
static bool place_name(const why_scene *s, const char *name, char out[FS_PATH_MAX]) {
  char path[FS_PATH_MAX], real[FS_PATH_MAX], inside[FS_PATH_MAX], other[FS_PATH_MAX];
  struct stat st;
  const char *rest = NULL;
  bool there = false;
  *path = '\0';
  if (absolute(name, path, NULL) == 0) {
    rest = below_either_way(s->dir, path, real);
    there = rest && is_there(s->io, path, &st);
  }
  if (!there && name[0] != '/') {
    if (fs_join(inside, s->dir, name, NULL) < 0 || absolute(inside, other, NULL) < 0) return false;
    const char *within = below(s->dir, other);
    bool here = is_there(s->io, other, &st);
    /* A path that leads elsewhere, and is there, is meant as it stands. */
    bool elsewhere = !rest && !here && strchr(name, '/') && is_there(s->io, path, &st);
    if (within && !elsewhere && (!rest || here)) rest = within;
  }
  if (rest) memcpy(out, rest, strlen(rest) + 1);
  return rest != NULL;
}

static bool is_file(const io *io, const char *dir, const char *name) {
  char path[FS_PATH_MAX];
  struct stat st;
  return fs_join(path, dir, name, NULL) == 0 && is_there(io, path, &st) && S_ISREG(st.st_mode);
}

static bool is_state(const io *io, const char *path) {
  size_t len = strlen(path);
  return len > 5 && strcmp(path + len - 5, ".ckpt") == 0 && is_file(io, path, "lock") &&
         is_file(io, path, "journal.jsonl");
}

static void look_at_spot(const why_scene *s, const char *path, explain_spot *out) {
  char full[FS_PATH_MAX], part[FS_PATH_MAX];
  *out = (explain_spot){.path = path, .kind = *path ? 0 : 'd'};
  for (size_t len = 0; path[len];) {
    struct stat st;
    len += (len > 0) + strcspn(path + len + (len > 0), "/");
    snprintf(part, sizeof part, "%.*s", (int)len, path);
    if (fs_join(full, s->dir, part, NULL) < 0 || !is_there(s->io, full, &st)) return;
    char kind = S_ISREG(st.st_mode)   ? 'f'
                : S_ISDIR(st.st_mode) ? 'd'
                : S_ISLNK(st.st_mode) ? 'l'
                                      : 'o';
    if (!path[len]) out->kind = kind;
    if (kind == 'l') {
      out->link = len;
      return;
    }
    if (kind == 'd' && !out->state && is_state(s->io, full)) out->state = len;
  }
}

/* ---- the target ---- */

typedef struct in_store {
  const char *unit; /* its path, or just a name */
  explain_stored *out;
  char *strings[9];
} in_store;

static char *keep(in_store *s, int i, const char *text) {
  free(s->strings[i]);
  return s->strings[i] = text ? strdup(text) : NULL;
}

/* When it was, the note tells, which is put before any goes; and what, the globs. */
static void take_taken(in_store *s, store *store, const runlog *log, const runlog_commit *c) {
  char dir[STORE_KEY_MAX], key[STORE_KEY_MAX];
  store_object note;
  buf globs;
  buf_init(&globs, MANIFEST_THIN_BYTES_MAX);
  for (size_t i = 0; i < c->thin.globs.count; i++)
    buf_fmt(&globs, "%s%s", i ? "\n" : "", c->thin.globs.at[i]);
  s->out->taken = keep(s, 6, globs.len ? globs.data : NULL);
  s->out->taken_policy = keep(s, 7, c->thin.policy);
  s->out->taken_reason = keep(s, 8, c->thin.reason);
  s->out->taken_files = c->left_here;
  s->out->taken_ns = 0;
  buf_free(&globs);
  if (!s->out->taken || runlog_key_dir(log, c->dir, dir, NULL) < 0) return;
  if (manifest_note_key(dir, key, NULL) < 0 || store->ops->head(store, key, &note, NULL) < 0)
    return;
  s->out->taken_ns = note.mtime_ns;
}

static int take_log(void *ctx, const catalog_place *at, runlog *log, err *e) {
  in_store *s = ctx;
  const runlog_state *state = runlog_view(log);
  const char *base = fs_base(s->unit);
  char path[FS_PATH_MAX];
  (void)e;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (strcmp(c->unit, base) != 0 && strcmp(c->dir, base) != 0) continue;
    bool here = fs_join(path, runlog_prefix(log), base, NULL) == 0 && strcmp(path, s->unit) == 0;
    if (base != s->unit && !here) continue;
    if (s->out->found && c->time_ns < s->out->time_ns) continue;
    s->out->found = true;
    runlog_ref_of(log, c->n, &s->out->commit, NULL); /* on failure the number alone is known */
    s->out->time_ns = c->time_ns;
    s->out->drop_ns = c->drop_ns;
    s->out->life = c->life;
    s->out->dir = keep(s, 0, c->dir);
    s->out->policy = keep(s, 1, c->policy);
    s->out->reason = keep(s, 2, c->reason);
    s->out->drop_policy = keep(s, 3, c->drop_policy);
    s->out->drop_reason = keep(s, 4, c->drop_reason);
    s->out->bad = c->bad;
    s->out->bad_reason = keep(s, 5, c->bad_reason);
    take_taken(s, at->store, log, c);
  }
  return 0;
}

/* Asks the store. If it cannot be read, that is a finding, as everything else may be known. */
static void ask_store(const why_scene *s, const char *to, explain *x, in_store *in) {
  err why = {0};
  in->out->where = to;
  int rc = catalog_logs(s->io, s->log, to, take_log, in, &why);
  in->out->asked = rc == 0 || rc == ERR_NOENT || rc == ERR_NOSTORE;
  if (rc < 0) explain_add(x, "store", 0, "%s", why.text);
}

static void forget_store(in_store *in) {
  for (size_t i = 0; i < sizeof in->strings / sizeof *in->strings; i++) free(in->strings[i]);
}

/* ---- all together ---- */

typedef struct one_unit {
  const char *unit;
  explain_history *history;
} one_unit;

static int take_record(void *ctx, const trail_record *r) {
  one_unit *o = ctx;
  explain_remember(o->history, o->unit, r);
  return 0;
}

static bool saved(const explain_history *h) {
  for (size_t i = 0; i < h->count; i++)
    if (h->records[i].what == TRAIL_COMMITTED) return true;
  return false;
}

static void tell_fate(const why_scene *s, const char *unit, const explain_spot *spot, explain *x) {
  explain_history history = {0};
  explain_live live = {0};
  explain_stored stored = {0};
  one_unit o = {unit, &history};
  in_store in = {.unit = unit, .out = &stored};
  if (s->state)
    trail_read(s->io, s->state, NULL, take_record, &o, NULL); /* without a trail nothing is known */
  bool alive = s->live && s->live(s->ctx, unit, &live);
  const char *to = s->to;
  /* After the run's end others may have dropped its commits: `rm`, or a run elsewhere. */
  if (!to && !alive && s->last && (history.count == 0 || saved(&history))) to = s->last->target;
  if (to) ask_store(s, to, x, &in);
  explain_fate(x, unit, spot->kind != 0, s->last, &history, alive ? &live : NULL,
               to ? &stored : NULL, s->io->now(s->io, IO_WALL));
  explain_left(x, &history, spot, unit);
  explain_taken(x, &stored, spot, unit);
  forget_store(&in);
  explain_forget(&history);
}

/* A unit that is only known by its name. 1: its path is in `out`; several are a cause. */
static int find_by_name(const names *known, const char *name, char out[FS_PATH_MAX], explain *x) {
  char all[512] = "";
  int found = 0;
  for (size_t i = 0; i < known->count; i++) {
    if (strcmp(fs_base(known->at[i]), name) != 0) continue;
    size_t len = strlen(all);
    snprintf(all + len, sizeof all - len, "%s%s", found ? ", " : "", known->at[i]);
    snprintf(out, FS_PATH_MAX, "%s", known->at[i]);
    found++;
  }
  if (found > 1) explain_cause(x, "ambiguous", "several have that name: %s", all);
  return found;
}

static void tell_outside(const why_scene *s, const char *name, explain *x) {
  char path[FS_PATH_MAX], real[FS_PATH_MAX];
  bool ours = s->state && absolute(name, path, NULL) == 0 && below_either_way(s->state, path, real);
  if (ours)
    explain_cause(x, "state-file",
                  "%s is in the state directory of ckpt-lua, nothing of a training", name);
  else
    explain_cause(x, "outside", "%s is not below the watched directory %s", name, s->dir);
}

/* A pattern says something about a name that is nearly one; of "x" it is only a letter away. */
static const char *hint_of(const char *text, const char *path) {
  enum { SHORT = 4 };
  return strstr(text, "is nearest") && strlen(path) >= SHORT ? text : "";
}

/* A name that means nothing here may be one of the store. */
static void tell_absent(const why_scene *s, const char *path, explain *x) {
  char text[EXPLAIN_TEXT_MAX];
  explain_stored stored = {0};
  in_store in = {.unit = path, .out = &stored};
  const char *to = s->to ? s->to : s->last ? s->last->target : NULL;
  snprintf(text, sizeof text, "%s", x->text);
  if (to) ask_store(s, to, x, &in);
  if (stored.found) {
    explain_history none = {0};
    *x->cause = '\0';
    explain_fate(x, path, false, s->last, &none, NULL, &stored, s->io->now(s->io, IO_WALL));
  } else {
    const char *hint = hint_of(text, path);
    explain_cause(x, "not-seen", "nothing of the name %s is %s%s%s%s%s%.700s", path,
                  s->dir ? "here, nor was it ever seen by a run" : "", s->dir && to ? ", nor " : "",
                  to ? "at " : "", to ? to : "", *hint ? "; " : "", hint);
  }
  forget_store(&in);
}

static void tell_path(const why_scene *s, const char *path, const names *known, explain *x) {
  char unit[FS_PATH_MAX];
  explain_spot spot;
  look_at_spot(s, path, &spot);
  if (spot.kind) explain_add(x, "seen", 0, "%s/%s is there", s->dir, path);
  if (explain_unit(x, s->last, &spot, is_known, (void *)known, unit))
    tell_fate(s, unit, &spot, x);
  else if (!spot.kind && strcmp(x->cause, "no-unit") == 0)
    tell_absent(s, path, x);
}

int why_tell(const why_scene *s, const char *name, explain *x, err *e) {
  char path[FS_PATH_MAX], other[FS_PATH_MAX];
  names known = {0};
  struct stat st;
  if (!*name) return err_set(e, ERR_INVAL, "why: a name or a path is needed");
  if (!s->dir) {
    tell_absent(s, name, x);
    return 0;
  }
  trail_read(s->io, s->state, NULL, take_name, &known, NULL); /* no trail: no names */
  names_sort_unique(&known);
  int found = 0;
  bool inside = place_name(s, name, path);
  bool bare = !strchr(name, '/') && !(inside && is_known(&known, path));
  if (bare && !(inside && fs_join(other, s->dir, path, NULL) == 0 && is_there(s->io, other, &st)))
    found = find_by_name(&known, name, path, x);
  if (found == 1 || (found == 0 && inside))
    tell_path(s, path, &known, x);
  else if (found == 0)
    tell_outside(s, name, x);
  names_free(&known);
  return x->starved ? err_set(e, ERR_NOMEM, "why: out of memory") : 0;
}

/* ---- where no run is alive ---- */

bool why_find_dir(const io *io, const char *name, char dir[FS_PATH_MAX]) {
  char state[FS_PATH_MAX];
  *dir = '\0';
  if (absolute(name, dir, NULL) < 0) return false;
  while (*dir) {
    size_t len = strlen(dir);
    bool fits = snprintf(state, sizeof state, "%s.ckpt", dir) < (int)sizeof state;
    if (fits && is_file(io, state, "journal.jsonl")) return true;
    if (is_state(io, dir)) {
      dir[len - 5] = '\0';
      return true;
    }
    *strrchr(dir, '/') = '\0';
  }
  return false;
}

static int real_dir(const char *text, char out[FS_PATH_MAX], err *e) {
  char path[FS_PATH_MAX];
  int rc = absolute(text, path, e);
  if (rc < 0) return rc;
  char *real = realpath(path, NULL); /* a path that is gone has its name still */
  snprintf(out, FS_PATH_MAX, "%s", real && strlen(real) < FS_PATH_MAX ? real : path);
  free(real);
  return 0;
}

/* Returns 1 if they are found; 0 if only the target is known. */
static int find_places(const io *io, const why_options *o, char dir[FS_PATH_MAX],
                       char state[FS_PATH_MAX], err *e) {
  char found[FS_PATH_MAX];
  int rc = o->state ? real_dir(o->state, state, e) : 0;
  if (rc < 0) return rc;
  if (o->dir) {
    rc = real_dir(o->dir, dir, e);
  } else if (!o->state && why_find_dir(io, o->name, found)) {
    rc = real_dir(found, dir, e);
  } else if (o->state) {
    last_rules last;
    rc = last_rules_read(io, state, &last, e);
    if (rc == 0 && !last.dir)
      rc = err_set(e, ERR_INVAL, "%s: name the directory with `dir`", state);
    if (rc == 0) rc = real_dir(last.dir, dir, e);
    last_rules_free(&last);
  } else if (o->to) {
    return 0;
  } else {
    return err_set(e, ERR_INVAL, "%s: which directory is it in? Name it with `dir`", o->name);
  }
  if (rc < 0) return rc;
  if (!o->state && snprintf(state, FS_PATH_MAX, "%s.ckpt", dir) >= FS_PATH_MAX)
    return err_set(e, ERR_LIMIT, "%s: the path is too long", dir);
  return 1;
}

int why_ask(const io *io, const log_sink *log, const why_options *o, explain *out, err *e) {
  char dir[FS_PATH_MAX], state[FS_PATH_MAX];
  *out = (explain){0};
  if (!o->name) return err_set(e, ERR_INVAL, "why: a name or a path is needed");
  int rc = find_places(io, o, dir, state, e);
  if (rc < 0) return rc;
  last_rules last = {0};
  err why = {0};
  if (rc > 0 && last_rules_read(io, state, &last, &why) < 0) {
    last_rules_free(&last);
    if (why.code == ERR_NOENT)
      explain_add(out, "run", 0, "no run has watched %s here: the built-in rule is taken", dir);
    else
      explain_add(out, "run", 0, "the built-in rule is taken: %s", why.text);
  }
  if (!last.rules) last.rules = (rules *)rules_builtin();
  why_scene scene = {.io = io,
                     .log = log,
                     .dir = rc > 0 ? dir : NULL,
                     .state = rc > 0 ? state : NULL,
                     .last = &last,
                     .to = o->to};
  rc = why_tell(&scene, o->name, out, e);
  last_rules_free(&last);
  return rc;
}
