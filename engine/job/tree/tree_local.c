#include "tree_local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/uri.h"
#include "event/rules.h"
#include "prims/fs.h"
#include "prims/match.h"

bool tree_excluded(const tree_job *p, const char *name) {
  return p->excludes && match_excluded(p->excludes, name);
}

int tree_local_check(const tree_job *p, const char *dir, err *e) {
  struct stat st;
  char path[FS_PATH_MAX];
  int rc = fs_join(path, dir, ".", e);
  if (rc < 0) return rc;
  rc = p->io->lstat(p->io, AT_FDCWD, path, &st);
  if (rc == -ENOENT) return err_set(e, ERR_NOENT, "there is no directory %s", dir);
  if (rc == -ENOTDIR) return err_set(e, ERR_INVAL, "%s is no directory", dir);
  return rc < 0 ? err_sys(e, rc, "look at %s", dir) : 0;
}

int tree_local_apart(const tree_job *p, const char *dir, const char *to, err *e) {
  uri from, where;
  int rc = uri_parse(dir, &from, e);
  if (rc == 0) rc = uri_parse(to, &where, e);
  if (rc < 0 || strcmp(from.scheme, where.scheme) != 0 || !fs_within(p->io, from.path, where.path))
    return rc;
  bool by_name = uri_path_within(from.path, where.path);
  const char *inner = by_name ? where.path + strlen(from.path) : "";
  while (*inner == '/') inner++;
  if (*inner && tree_excluded(p, inner)) return 0;
  return err_set(e, ERR_INVAL, "%s lies in %s, which is what should go there", where.path,
                 from.path);
}

static void take_out(unit_files *t, size_t i) {
  unit_file *f = &t->files[i];
  if (f->type == MANIFEST_FILE) t->bytes -= f->size, t->regular--;
  free(f->name);
  free(f->target);
  memmove(f, f + 1, (t->count - i - 1) * sizeof *f);
  t->count--;
}

/* Takes out records of places that lie within this one, brought here by another tool. */
static void take_out_records(unit_files *t) {
  for (size_t i = t->count; i-- > 0;)
    if (strcmp(fs_base(t->files[i].name), MANIFEST_NAME) == 0 ||
        strcmp(fs_base(t->files[i].name), TREE_PART_NAME) == 0)
      take_out(t, i);
}

int tree_local_scan(const tree_job *p, const char *dir, unit_files *out, err *e) {
  static const char *const none[] = {NULL};
  const rules rules = {.excludes = none, .shell = p->excludes};
  char path[FS_PATH_MAX];
  int rc = fs_join(path, dir, ".", e); /* it may be a link to a directory */
  if (rc == 0) rc = unit_files_scan(p->io, path, "", MATCH_DIR, &rules, out, e);
  if (rc == 0) take_out_records(out);
  return rc;
}
