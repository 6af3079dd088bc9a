/* prepare_pointers: files that name a checkpoint ("latest", a link) and lie: they name what is torn, or gone. They
 * are put right before any task starts: a framework that follows one crashes, at each start. */
#include "run/begin/prepare_pointers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "job/move/pointer_files.h"
#include "prims/match_series.h"

/* ---- pointers that lie ---- */

static pointer_place place_of(const struct prepare *p, const char *prefix) {
  const run *r = p->run;
  return (pointer_place){.io = p->io,
                         .rules = r->rules,
                         .globs = policy_companions(r->policy),
                         .root = r->places.dir,
                         .group = prefix};
}

/* One of which nothing can be said is left to the framework, unless a file of it is missing. */
bool prepare_loads(const struct prepare *p, const survey_unit *u) {
  if (u->standing == RECOVER_TORN || u->standing == RECOVER_ALONE || u->standing == RECOVER_BAD ||
      prepare_goes(p, u->path))
    return false;
  return u->standing != RECOVER_UNPROVEN || !u->lacking;
}

bool prepare_stands(const struct prepare *p, const char *path) {
  struct stat st;
  return p->io->lstat(p->io, AT_FDCWD, path, &st) == 0;
}

/* A path from the pointer's own directory may lead further down, as TensorFlow's does: what lies there is
 * named, and nothing of that name right here. */
static bool is_further_down(const struct prepare *p, const survey *s, const pointer_place *at,
                            const char *spelt) {
  char path[FS_PATH_MAX], full[FS_PATH_MAX];
  while (strncmp(spelt, "./", 2) == 0) spelt += 2;
  if (*spelt == '/' || !strchr(spelt, '/') || fs_join(path, at->group, spelt, NULL) < 0)
    return false;
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].path, path) == 0) return prepare_loads(p, &s->units[i]);
  return fs_join(full, at->root, path, NULL) == 0 && prepare_stands(p, full);
}

/* It may name what is no checkpoint by the rules; then it is enough that it is there. */
static bool is_here(const struct prepare *p, const survey *s, const pointer_place *at,
                    const pointer_row *row, const char *spelt) {
  char base[FS_PATH_MAX], dir[FS_PATH_MAX], path[FS_PATH_MAX];
  bool known = false;
  if (pointer_leads_out(at, spelt)) return true; /* what is there is not ours to judge */
  if (row->form != POINTER_STEP && is_further_down(p, s, at, spelt)) return true;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (strcmp(u->group, at->group) != 0 || !pointers_mean(row, spelt, u->name, u->step)) continue;
    /* A list is its framework's own word that they were whole. */
    if (prepare_loads(p, u) || (row->form == POINTER_LIST && u->standing == RECOVER_UNPROVEN))
      return true;
    known = true;
  }
  if (known || !pointers_base(spelt, base, sizeof base)) return false;
  return fs_join(dir, at->root, at->group, NULL) == 0 && fs_join(path, dir, base, NULL) == 0 &&
         prepare_stands(p, path);
}

/* The first name that leads nowhere; NULL: all are here. */
static const char *lie_of(const struct prepare *p, const survey *s, const pointer_place *at,
                          const pointer_file *f) {
  for (size_t i = 0; f->row && i < f->says.count; i++)
    if (!is_here(p, s, at, f->row, f->says.at[i])) return f->says.at[i];
  return NULL;
}

bool prepare_pointer_is_empty(const struct prepare *p, const char *name, const char *path) {
  struct stat st;
  const pointer_row *row = pointers_row(name);
  return pointers_lead(row) && row->form != POINTER_LIST &&
         p->io->lstat(p->io, AT_FDCWD, path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

bool prepare_pointer_lies(const struct prepare *p, const survey *s, const char *prefix,
                          const char *name, const char *path) {
  pointer_file f;
  pointer_place at = place_of(p, prefix);
  bool lies = pointer_file_read(&at, name, path, &f, NULL) == 0 && lie_of(p, s, &at, &f);
  pointer_file_drop(&f);
  return lies;
}

bool prepare_is_linked(const struct prepare *p, const survey *s, const char *prefix,
                       const char *name) {
  char dir[FS_PATH_MAX], path[FS_PATH_MAX];
  pointer_file f;
  pointer_place at = place_of(p, prefix);
  if (fs_join(dir, at.root, prefix, NULL) < 0 || fs_join(path, dir, name, NULL) < 0) return false;
  bool yes = pointer_file_read(&at, name, path, &f, NULL) == 0 && f.link && f.says.count &&
             !lie_of(p, s, &at, &f);
  pointer_file_drop(&f);
  return yes;
}

/* ---- mending ---- */

/* The newest unit of a group of the kind of a name that is here and whole; NULL: there is none. */
static const survey_unit *instead_of(const struct prepare *p, const survey *s, const char *prefix,
                                     const pointer_row *row, const char *spelt) {
  char base[FS_PATH_MAX];
  const survey_unit *best = NULL;
  if (!pointers_base(spelt, base, sizeof base)) return NULL;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    bool whole = recover_is_whole(u->standing);
    bool alike =
        row->form == POINTER_STEP ? u->step != MATCH_NO_STEP : match_same_series(u->name, base);
    if (whole && alike && strcmp(u->group, prefix) == 0 && prepare_loads(p, u) &&
        prepare_newer(p->run, u, best))
      best = u;
  }
  return best;
}

bool prepare_any_whole(const survey *s, const char *prefix) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].group, prefix) == 0 && recover_is_whole(s->units[i].standing))
      return true;
  return false;
}

/* Writes it beside, keeps the old one (`why` is NULL: does not), and renames. */
static int replace(struct prepare *p, const char *path, const pointer_file *f, const char *text,
                   size_t len, const char *why, err *e) {
  const io *io = p->io;
  char nonce[33], stage[FS_PATH_MAX], full[FS_PATH_MAX], parent[FS_PATH_MAX];
  int rc = prepare_need_staging(p, e);
  if (rc == 0 && (rc = io_nonce(io, nonce)) < 0) return err_sys(e, rc, "draw a random name");
  if (rc == 0) rc = fs_join(stage, p->staging.path, nonce, e);
  if (rc == 0) rc = fs_join(full, p->run->places.dir, path, e);
  if (rc == 0 && why) rc = prepare_set_aside(p, path, why, e);
  if (rc < 0) return rc;
  fs_parent(full, parent);
  rc = f->link ? io->symlink(io, text, AT_FDCWD, stage)
               : fs_write_new(io, stage, text, len, f->st.st_mode & 0777, e);
  if (rc == 0 || f->link) rc = rc < 0 ? err_sys(e, rc, "make the link %s", stage) : 0;
  if (rc == 0 && (rc = io->rename(io, AT_FDCWD, stage, AT_FDCWD, full, 0)) < 0)
    rc = err_sys(e, rc, "rename %s to %s", stage, full);
  return rc < 0 ? rc : fs_sync_dir(io, parent, e);
}

static int take_away(struct prepare *p, const char *path, const char *why, err *e) {
  int rc = prepare_quarantine(p, path, MATCH_FILE, RECOVER_WHOLE, why, e);
  if (rc == 0) p->out->quarantined--; /* that counts units */
  return rc;
}

int prepare_refuse_list(const char *path, const pointer_row *row, const char *lie, err *e) {
  return err_set(
      e, ERR_CONFLICT,
      "%s names %s%swhich %s not here, whole, and could not be restored: %s would not "
      "start. Restore what is missing (`restore`), or let the policy do so (restore = "
      "keep.last(N)); to begin anew, start in an empty directory with a target of its own",
      path, lie, *lie ? ", " : "checkpoints ", *lie ? "is" : "are", pointers_framework(row));
}

static bool came_back(const struct prepare *p, const char *path) {
  for (size_t i = 0; i < p->came_back.count; i++)
    if (strcmp(p->came_back.at[i], path) == 0) return true;
  return false;
}

static int mend(struct prepare *p, const survey *s, const char *prefix, const char *name,
                const pointer_file *f, const char *lie, err *e) {
  char text[FS_PATH_MAX], path[FS_PATH_MAX], why[700];
  const survey_unit *u = instead_of(p, s, prefix, f->row, lie);
  size_t len = u ? pointers_rewrite(f->row, f->text.data, f->text.len, lie, u->name, u->step, text,
                                    sizeof text)
                 : 0;
  int rc = fs_join(path, prefix, name, e);
  if (rc < 0) return rc;
  snprintf(why, sizeof why, "it names %.200s, which is not here, or not whole%s%.200s", lie,
           len ? "; now it names " : "", len ? u->name : "");
  if (len) return replace(p, path, f, text, len, came_back(p, path) ? NULL : why, e);
  if (f->row->form == POINTER_LIST) return prepare_refuse_list(path, f->row, lie, e);
  if (!prepare_any_whole(s, prefix)) return take_away(p, path, why, e);
  log_say(p->run->env->log, LOG_WARN,
          "%s names %s, which is not here, or not whole: the job may fail on it. Let it name a "
          "checkpoint that is here, or move it away",
          path, lie);
  return 0;
}

/* The unit that the job was told to go on from; else the newest of the kind of that name. */
static const survey_unit *leads_to(const struct prepare *p, const survey *s, const char *prefix,
                                   const pointer_row *row, const char *old) {
  if (!*p->named) return instead_of(p, s, prefix, row, old);
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].path, p->named) == 0 && strcmp(s->units[i].group, prefix) == 0)
      return &s->units[i];
  return NULL;
}

/* Makes one that came back from an older checkpoint lead to the newest one, as its framework was about to. */
static int lead_on(struct prepare *p, const survey *s, const char *prefix, const char *name,
                   const pointer_file *f, err *e) {
  char text[FS_PATH_MAX], path[FS_PATH_MAX];
  pointer_place at = place_of(p, prefix);
  int rc = fs_join(path, prefix, name, e);
  const char *old = f->says.count ? f->says.at[0] : NULL;
  if (rc < 0 || !old || !came_back(p, path)) return rc;
  if (pointer_leads_out(&at, old) || is_further_down(p, s, &at, old)) return 0;
  const survey_unit *u = leads_to(p, s, prefix, f->row, old);
  if (!u || pointers_mean(f->row, old, u->name, u->step)) return 0;
  size_t len =
      pointers_rewrite(f->row, f->text.data, f->text.len, old, u->name, u->step, text, sizeof text);
  if (!len) return 0;
  log_say(p->run->env->log, LOG_WARN, "%s was missing: it names %s now, as it named %.200s before",
          path, u->path, old);
  return replace(p, path, f, text, len, NULL, e);
}

/* It was moved away, or will be, and nothing came in its place. */
static bool has_left(const struct prepare *p, const char *path) {
  char full[FS_PATH_MAX];
  if (prepare_goes(p, path)) return true;
  if (fs_join(full, p->run->places.dir, path, NULL) < 0 || prepare_stands(p, full)) return false;
  for (size_t i = 0; i < p->move_count; i++)
    if (strcmp(p->moves[i].from, full) == 0) return true;
  return false;
}

/* What tells how far a training came is a lie without its weights: Keras would go on in the middle with
 * new ones, and say nothing. Without both it begins anew. */
static int drop_state(struct prepare *p, const char *prefix, const char *name,
                      const pointer_row *row, err *e) {
  char path[FS_PATH_MAX], unit[FS_PATH_MAX], why[300];
  int rc = fs_join(unit, prefix, row->key, e);
  if (rc < 0 || !has_left(p, unit)) return rc;
  snprintf(why, sizeof why, "it belongs to %.200s, which is not whole", unit);
  rc = fs_join(path, prefix, name, e);
  return rc < 0 ? rc : take_away(p, path, why, e);
}

struct mending {
  struct prepare *prepare;
  const survey *survey;
  const char *prefix, *dir;
};

static int mend_entry(void *ctx, const fs_entry *entry, err *e) {
  const struct mending *m = ctx;
  char path[FS_PATH_MAX];
  pointer_file f;
  bool dir = S_ISDIR(entry->st->st_mode);
  if (dir || fs_join(path, m->dir, entry->name, NULL) < 0) return dir ? FS_SKIP : 0;
  const pointer_row *row = pointers_row(entry->name);
  if (row && row->form == POINTER_STATE && S_ISREG(entry->st->st_mode))
    return drop_state(m->prepare, m->prefix, entry->name, row, e);
  pointer_place at = place_of(m->prepare, m->prefix);
  int rc = pointer_file_read(&at, entry->name, path, &f, e);
  const char *lie = rc == 0 ? lie_of(m->prepare, m->survey, &at, &f) : NULL;
  if (lie)
    rc = mend(m->prepare, m->survey, m->prefix, entry->name, &f, lie, e);
  else if (rc == 0)
    rc = lead_on(m->prepare, m->survey, m->prefix, entry->name, &f, e);
  pointer_file_drop(&f);
  return rc;
}

static int mend_pointers(struct prepare *p, const survey *s, const char *prefix, err *e) {
  char dir[FS_PATH_MAX];
  struct mending m = {p, s, prefix, dir};
  err why = {0};
  int rc = fs_join(dir, p->run->places.dir, prefix, e);
  if (rc < 0) return rc;
  rc = fs_list(p->io, dir, mend_entry, &m, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0 && e) *e = why;
  return rc < 0 ? rc : 0;
}

int prepare_mend_pointers(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++)
    if (!r->groups[i]->foreign) rc = mend_pointers(p, s, r->groups[i]->group.prefix, e);
  for (size_t i = 0; rc == 0 && i < s->count; i++) {
    const char *prefix = s->units[i].group;
    bool again = i > 0 && strcmp(prefix, s->units[i - 1].group) == 0;
    if (!again && !run_group_find(r, prefix)) rc = mend_pointers(p, s, prefix, e);
  }
  return rc;
}

/* ---- pointers that are missing ---- */

bool prepare_leads_to_one(const char *name, bool link) {
  const pointer_row *row = pointers_row(name);
  if (strchr(name, '/') || !pointers_follow_newest(name, link)) return false;
  return link || (pointers_lead(row) && row->form != POINTER_LIST);
}

struct leading {
  const struct prepare *prepare;
  const char *prefix, *dir;
};

static int is_leading(void *ctx, const fs_entry *entry, err *e) {
  const struct leading *l = ctx;
  char path[FS_PATH_MAX];
  pointer_file f;
  (void)e;
  if (S_ISDIR(entry->st->st_mode) ||
      !prepare_leads_to_one(entry->name, S_ISLNK(entry->st->st_mode)) ||
      fs_join(path, l->dir, entry->name, NULL) < 0)
    return 0;
  pointer_place at = place_of(l->prepare, l->prefix);
  bool yes = pointer_file_read(&at, entry->name, path, &f, NULL) == 0 && f.says.count > 0;
  pointer_file_drop(&f);
  return yes;
}

int prepare_has_pointer(const struct prepare *p, const char *prefix, err *e) {
  char dir[FS_PATH_MAX];
  struct leading l = {p, prefix, dir};
  int rc = fs_join(dir, p->run->places.dir, prefix, e);
  return rc < 0 ? rc : fs_list(p->io, dir, is_leading, &l, e);
}
