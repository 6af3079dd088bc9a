#include "vouched.h"

#include <fcntl.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "event/pointers.h"
#include "plan/above.h"

/* ---- what the file says ---- */

static void forget(voucher *f) {
  names_free(&f->says);
  *f = (voucher){0};
}

void vouchers_free(vouchers *v) {
  forget(&v->beside);
  forget(&v->above);
}

typedef struct reading {
  const io *io;
  voucher *voucher;
  bool above; /* a state, in which paths are looked for, and no pointer */
} reading;

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

/* The time stands in their names, and they are listed in that order: the last one is what Ray goes on
 * by. One that cannot be read is the last one all the same. */
static int on_file(void *ctx, const fs_entry *entry, err *e) {
  const reading *g = ctx;
  voucher *f = g->voucher;
  char path[FS_PATH_MAX];
  err why = {0};
  if (!S_ISREG(entry->st->st_mode)) return FS_SKIP;
  const pointer_row *row = pointers_row(entry->name);
  if (!row || !row->last || pointers_lead(row) == g->above) return 0;
  names_free(&f->says);
  f->written_ns = io_time_ns(entry->st->st_mtim);
  int rc = fs_join(path, f->dir, entry->name, &why);
  if (rc == 0) rc = read_says(g, row, path, &f->says, &why);
  if (rc < 0) names_free(&f->says);
  return rc == ERR_NOMEM ? err_set(e, rc, "%s", why.text) : 0;
}

static int read_dir(const io *io, voucher *f, const char *dir, bool above, err *e) {
  if (strcmp(f->dir, dir) == 0) return 0;
  forget(f);
  snprintf(f->dir, sizeof f->dir, "%s", dir);
  f->written_ns = INT64_MIN;
  int rc = fs_list(io, dir, on_file, &(reading){io, f, above}, e);
  return rc == ERR_NOENT ? 0 : rc;
}

/* When it was written, if it names that; else INT64_MIN. */
static int64_t named_at(const voucher *f, const char *name) {
  return names_has(&f->says, name) ? f->written_ns : INT64_MIN;
}

/* ---- what is there ---- */

typedef struct contents {
  const char *unit;
  const rules *rules;
  int64_t newest_ns; /* of each time in it */
  bool doubtful;
} contents;

/* A copy gives its files and directories the times of the original, but not that of their last change;
 * a removal changes that of the directory. */
static void take_time(contents *c, const struct stat *st) {
  const int64_t m = io_time_ns(st->st_mtim), at = io_time_ns(st->st_ctim);
  if (m > c->newest_ns) c->newest_ns = m;
  if (at > c->newest_ns) c->newest_ns = at;
}

static int on_content(void *ctx, const fs_entry *entry, err *e) {
  contents *c = ctx;
  const struct stat *st = entry->st;
  char path[FS_PATH_MAX];
  const bool dir = S_ISDIR(st->st_mode);
  int rc = fs_join(path, c->unit, entry->name, e);
  if (rc < 0) return rc;
  take_time(c, st);
  c->doubtful |= !dir && (!S_ISREG(st->st_mode) || st->st_size == 0);
  c->doubtful |= rules_excluded(c->rules, path, dir);
  return 0;
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
  contents c = {.unit = unit->path, .rules = rules, .newest_ns = INT64_MIN};
  struct stat st;
  fs_kind kind = {0};
  int64_t at = INT64_MIN;
  if (!may_be_vouched(rules, unit)) return 0;
  int rc = name_it(v, io, root, unit, &at, e);
  if (rc < 0 || at == INT64_MIN || at > io->now(io, IO_WALL)) return rc;
  rc = fs_join(path, root, unit->path, e);
  if (rc == 0) rc = fs_kind_of(path, &kind, e);
  if (rc < 0 || kind.remote_writers) return rc;
  rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  take_time(&c, &st);
  rc = fs_walk(io, path, on_content, &c, e);
  return rc < 0 ? rc : !c.doubtful && at >= c.newest_ns;
}
