#include "vouched.h"

#include <fcntl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "event/pointers.h"
#include "plan/above.h"

/* ---- what the files say ---- */

static void forget(voucher_files *f) {
  for (size_t i = 0; i < f->count; i++) names_free(&f->at[i].says);
  free(f->at);
  *f = (voucher_files){0};
}

void vouchers_free(vouchers *v) {
  forget(&v->beside);
  forget(&v->above);
}

typedef struct reading {
  const io *io;
  voucher_files *files;
  bool above;
} reading;

/* The files above the trials are no pointers by their form: paths are looked for in them. */
static int read_says(const reading *g, const pointer_row *row, const char *path, names *out,
                     err *e) {
  const size_t most = g->above ? (size_t)ABOVE_TEXT_MAX : (size_t)POINTERS_BYTES_MAX;
  buf text;
  buf_init(&text, most);
  int rc = fs_read(g->io, path, most, &text, e);
  if (rc == 0 && text.len)
    rc = g->above ? above_read(text.data, text.len, out, e)
                  : pointers_read(row, text.data, text.len, out, e);
  buf_free(&text);
  return rc;
}

static int on_file(void *ctx, const fs_entry *entry, err *e) {
  reading *g = ctx;
  voucher_files *f = g->files;
  char path[FS_PATH_MAX];
  if (!S_ISREG(entry->st->st_mode)) return FS_SKIP;
  const pointer_row *row = pointers_row(entry->name);
  if (!row || !row->last || (row->form == POINTER_LOG) != g->above) return 0;
  if (fs_join(path, f->dir, entry->name, NULL) < 0) return 0;
  if (!VEC_ROOM(f->at, f->count, f->room)) return err_set(e, ERR_NOMEM, "read %s: no memory", path);
  voucher *file = &f->at[f->count];
  *file = (voucher){.written_ns = io_time_ns(entry->st->st_mtim)};
  err why = {0};
  int rc = read_says(g, row, path, &file->says, &why);
  if (rc < 0) names_free(&file->says);
  if (rc == ERR_NOMEM) return err_set(e, rc, "%s", why.text);
  if (rc == 0) f->count++;
  return 0;
}

static int read_dir(const io *io, voucher_files *f, const char *dir, bool above, err *e) {
  if (strcmp(f->dir, dir) == 0) return 0;
  forget(f);
  snprintf(f->dir, sizeof f->dir, "%s", dir);
  int rc = fs_list(io, dir, on_file, &(reading){io, f, above}, e);
  return rc == ERR_NOENT ? 0 : rc;
}

/* When the newest of them that names it was written; INT64_MIN: none does. */
static int64_t named_at(const voucher_files *f, const char *name) {
  int64_t at = INT64_MIN;
  for (size_t i = 0; i < f->count; i++)
    if (f->at[i].written_ns > at && names_has(&f->at[i].says, name)) at = f->at[i].written_ns;
  return at;
}

/* ---- what is there ---- */

typedef struct contents {
  const char *unit;
  const rules *rules;
  int64_t newest_ns; /* of each time in it: a removal changes that of its directory */
  bool doubtful;
} contents;

static int on_content(void *ctx, const fs_entry *entry, err *e) {
  contents *c = ctx;
  const struct stat *st = entry->st;
  char path[FS_PATH_MAX];
  const bool dir = S_ISDIR(st->st_mode);
  int rc = fs_join(path, c->unit, entry->name, e);
  if (rc < 0) return rc;
  const int64_t at = io_time_ns(st->st_mtim);
  if (at > c->newest_ns) c->newest_ns = at;
  c->doubtful |= !dir && (!S_ISREG(st->st_mode) || st->st_size == 0);
  c->doubtful |= rules_excluded(c->rules, path, dir);
  return 0;
}

/* What was written before this boot may be on the disk in part, whatever the times say. */
static int64_t booted_at(const io *io) {
  return io->now(io, IO_WALL) - io->now(io, IO_MONO);
}

/* It has no say against a reason to doubt. */
static bool may_be_vouched(const rules *rules, const detect_unit *unit) {
  return unit->state == DETECT_UNPROVEN && unit->cause && strcmp(unit->cause, "unproven") == 0 &&
         unit->kind == MATCH_DIR && !unit->lacking && !unit->above && rules->test_count == 0;
}

/* When the newest that names the unit was written. */
static int name_it(vouchers *v, const io *io, const char *root, const detect_unit *unit,
                   int64_t *at, err *e) {
  char dir[FS_PATH_MAX], parent[FS_PATH_MAX], name[FS_PATH_MAX];
  int rc = fs_join(dir, root, unit->group, e);
  if (rc == 0) rc = read_dir(io, &v->beside, dir, false, e);
  if (rc < 0) return rc;
  *at = named_at(&v->beside, unit->name);
  if (!*unit->group || fs_join(name, fs_base(unit->group), unit->name, NULL) < 0) return 0;
  fs_parent(dir, parent);
  rc = read_dir(io, &v->above, parent, true, e);
  if (rc < 0) return rc;
  const int64_t above = named_at(&v->above, name);
  if (above > *at) *at = above;
  return 0;
}

int vouched(vouchers *v, const io *io, const char *root, const rules *rules,
            const detect_unit *unit, err *e) {
  char path[FS_PATH_MAX];
  contents c = {.unit = unit->path, .rules = rules};
  struct stat st;
  fs_kind kind;
  int64_t at;
  if (!may_be_vouched(rules, unit)) return 0;
  int rc = fs_kind_of(root, &kind, e);
  if (rc < 0 || kind.remote_writers) return rc;
  rc = name_it(v, io, root, unit, &at, e);
  if (rc < 0 || at == INT64_MIN || at < booted_at(io)) return rc;
  rc = fs_join(path, root, unit->path, e);
  if (rc < 0) return rc;
  rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  c.newest_ns = io_time_ns(st.st_mtim);
  rc = fs_walk(io, path, on_content, &c, e);
  return rc < 0 ? rc : !c.doubtful && at >= c.newest_ns;
}
