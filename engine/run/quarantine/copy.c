#include "copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "job/restore/restore.h"
#include "prims/fs.h"
#include "prims/match_series.h"

/* ---- what is in it ---- */

struct listing {
  const io *io;
  unit_files *files;
};

static int read_link(const struct listing *l, unit_file *f, err *e) {
  char path[FS_PATH_MAX], target[FS_PATH_MAX];
  int rc = unit_files_path(l->files, f, path, e);
  if (rc < 0) return rc;
  ssize_t len = l->io->readlink(l->io, AT_FDCWD, path, target, sizeof target - 1);
  if (len < 0) return err_sys(e, (int)len, "read the link %s", path);
  target[len] = 0;
  f->target = strdup(target);
  return f->target ? 0 : err_set(e, ERR_NOMEM, "list %s: out of memory", path);
}

static int take_entry(void *ctx, const fs_entry *entry, err *e) {
  struct listing *l = ctx;
  unit_files *t = l->files;
  const struct stat *st = entry->st;
  if (S_ISDIR(st->st_mode)) return 0;
  if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
    return err_set(e, ERR_INVAL, "%s/%s is a socket, pipe or device", t->base, entry->name);
  unit_file *f = VEC_ROOM(t->files, t->count, t->room) ? &t->files[t->count] : NULL;
  char *name = f ? strdup(entry->name) : NULL;
  if (!name) return err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
  *f = (unit_file){.name = name,
                   .type = S_ISLNK(st->st_mode) ? MANIFEST_LINK : MANIFEST_FILE,
                   .mode = st->st_mode & 07777,
                   .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
                   .inode = st->st_ino,
                   .device = st->st_dev,
                   .mtime_ns = io_time_ns(st->st_mtim),
                   .ctime_ns = io_time_ns(st->st_ctim)};
  t->count++;
  t->bytes += f->size;
  t->regular += f->type == MANIFEST_FILE;
  return f->type == MANIFEST_LINK ? read_link(l, f, e) : 0;
}

int copy_list(const io *io, const char *path, unit_files *out, err *e) {
  *out = (unit_files){.kind = MATCH_DIR, .base = strdup(path)};
  if (!out->base) return err_set(e, ERR_NOMEM, "list %s: out of memory", path);
  struct listing l = {io, out};
  int rc = fs_walk(io, path, take_entry, &l, e);
  if (rc == 0 && out->count) qsort(out->files, out->count, sizeof *out->files, vec_texts);
  if (rc < 0) unit_files_free(out);
  return rc;
}

/* ---- what it is called ---- */

/* The part of a path below that directory; NULL: it is not there. */
static const char *below(const char *path, const char *dir) {
  size_t len = strlen(dir);
  if (len == 0) return path;
  return strncmp(path, dir, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

bool copy_kind(const unit_files *copy, const names *groups, char group[FS_PATH_MAX],
               char kind[2 * FS_PATH_MAX]) {
  char unit[FS_NAME_MAX], series[512];
  const char *first = copy->count ? copy->files[0].name : NULL;
  if (!first) return false;
  *group = 0;
  for (size_t i = 0; i < groups->count; i++)
    if (below(first, groups->at[i]) && strlen(groups->at[i]) > strlen(group))
      snprintf(group, FS_PATH_MAX, "%s", groups->at[i]);
  const char *rest = below(first, group);
  if (!rest) return false;
  snprintf(unit, sizeof unit, "%.*s", (int)strcspn(rest, "/"), rest);
  match_series(unit, series, sizeof series);
  snprintf(kind, 2 * FS_PATH_MAX, "%s/%s", group, series);
  return true;
}

/* ---- the commit that has it ---- */

/* Makes of the path that a file of the copy had in the watched directory its name in the manifest; NULL:
 * it was nowhere in that unit. */
static const char *name_in(const manifest *m, const char *group, const char *path) {
  const char *rest = below(path, group);
  return rest && m->kind == MATCH_DIR ? below(rest, m->unit) : rest;
}

static bool looks_equal(const unit_file *f, const manifest_entry *entry) {
  if (!entry || f->type != entry->type) return false;
  return f->type == MANIFEST_FILE ? f->size == entry->size : strcmp(f->target, entry->target) == 0;
}

/* Marks what the copy has of the commit. False: it has something else. */
static bool choose(const unit_files *copy, const char *group, const manifest *m, bool *wanted) {
  for (size_t i = 0; i < copy->count; i++) {
    const char *name = name_in(m, group, copy->files[i].name);
    const manifest_entry *entry = name ? manifest_find(m, name) : NULL;
    if (!looks_equal(&copy->files[i], entry)) return false;
    wanted[entry - m->entries] = true;
  }
  return true;
}

/* Makes the same list with the names that the manifest has; it borrows all but its table. */
static int name_alike(const unit_files *copy, const char *group, const manifest *m, unit_files *out,
                      char base[FS_PATH_MAX], err *e) {
  char above[FS_PATH_MAX];
  int rc = fs_join(above, copy->base, group, e);
  if (rc == 0) rc = fs_join(base, above, m->kind == MATCH_DIR ? m->unit : "", e);
  if (rc < 0) return rc;
  *out = *copy;
  out->base = base;
  out->kind = m->kind;
  out->files = calloc(copy->count, sizeof *out->files);
  if (!out->files) return err_set(e, ERR_NOMEM, "compare %s: out of memory", base);
  for (size_t i = 0; i < copy->count; i++) {
    out->files[i] = copy->files[i];
    out->files[i].name = (char *)name_in(m, group, copy->files[i].name);
  }
  return 0;
}

/* Reads both. What was set beside a checkpoint after its save counts as any file here: it may be the
 * user's only words. */
static int prove(const transfer *t, const unit_files *copy, const char *group, const manifest *m,
                 const bool *wanted, const char *key, err *e) {
  char base[FS_PATH_MAX];
  manifest part = {0};
  unit_files local = {0};
  int rc = manifest_choose(m, wanted, &part, e);
  for (size_t i = 0; rc == 0 && i < part.count; i++) part.entries[i].outside = false;
  if (rc == 0) rc = name_alike(copy, group, m, &local, base, e);
  if (rc == 0) rc = transfer_check_copy(t, &local, &part, e);
  const bool differs = rc == ERR_CORRUPT;
  if (rc == 0) rc = transfer_verify(t, &part, key, NULL, NULL, e);
  free(local.files);
  free(part.entries);
  if (differs) return 0;
  return rc < 0 ? rc : rc == 0; /* findings: that one does not verify */
}

static int is_kept_by(const transfer *t, const unit_files *copy, const char *group, runlog *log,
                      const runlog_commit *c, err *e) {
  manifest m;
  char key[STORE_KEY_MAX];
  int rc = restore_manifest(t->store, group, c, &m, e);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_NOENT) return 0;
  if (rc < 0) return rc;
  bool *wanted = calloc(m.count ? m.count : 1, sizeof *wanted);
  if (!wanted) rc = err_set(e, ERR_NOMEM, "compare %s: out of memory", copy->base);
  if (rc == 0) rc = runlog_key_dir(log, c->dir, key, e);
  if (rc == 0 && choose(copy, group, &m, wanted)) rc = prove(t, copy, group, &m, wanted, key, e);
  free(wanted);
  manifest_free(&m);
  return rc;
}

/* True if the log alone does not exclude it: each file of the copy is one of the commit's. */
static bool may_have(const runlog_commit *c, const unit_files *copy, const char *unit) {
  size_t len = strlen(c->unit);
  bool named = strncmp(unit, c->unit, len) == 0 && (c->kind == MATCH_DIR     ? unit[len] == '/'
                                                    : c->kind == MATCH_GROUP ? unit[len] == '.'
                                                                             : unit[len] == 0);
  return named && c->life == RUNLOG_LIVE && !c->bad && c->files >= copy->regular &&
         c->bytes >= copy->bytes;
}

int copy_is_kept(const transfer *t, const unit_files *copy, const char *group, runlog *log,
                 const runlog_commit **by, bool *read, err *e) {
  enum { MANIFESTS = 8 }; /* of a name that is saved again and again there may be thousands */
  const runlog_state *state = runlog_view(log);
  const char *unit = below(copy->files[0].name, group);
  unsigned asked = 0;
  for (size_t i = state->commit_count; unit && i-- > 0 && asked < MANIFESTS;) {
    const runlog_commit *c = &state->commits[i];
    if (!may_have(c, copy, unit)) continue;
    asked++;
    *read = true;
    int rc = is_kept_by(t, copy, group, log, c, e);
    if (rc > 0) *by = c;
    if (rc != 0) return rc;
  }
  return 0;
}
