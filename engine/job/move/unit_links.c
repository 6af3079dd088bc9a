#include "unit_links.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "job/move/unit_kept.h"
#include "prims/fs.h"

int unit_links_hold(const io *io, unit_files *t, const char *root, const char *dir, err *e) {
  err why = {0};
  if (t->links) return 0;
  int rc = link_follower_new(io, root, dir, &t->links, &why);
  if (rc == ERR_ACCESS) return 0; /* what is read is read by the listing, or not at all */
  if (rc == ERR_NOENT || rc == ERR_INVAL)
    return err_set(e, ERR_RETIRED, "%s/%s vanished while it was listed", root, dir);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

int unit_links_open(const unit_file *f, const char *path, err *e) {
  link_followed there;
  err why = {0};
  int rc = link_follow_again(f->followed, f->name, &there, &why);
  if (rc < 0 && rc != ERR_RETIRED) return err_set(e, rc, "%s", why.text);
  if (rc == 0 && there.fd >= 0) return there.fd;
  return err_set(e, ERR_RETIRED, "%s led elsewhere before it was read", path);
}

/* ---- each inode once ---- */

/* The files by inode; of one inode first those that stand in the unit, then by name. */
static int by_inode(const void *a, const void *b) {
  const unit_file *x = *(unit_file *const *)a, *y = *(unit_file *const *)b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  if (x->inode != y->inode) return x->inode < y->inode ? -1 : 1;
  if (!x->followed != !y->followed) return x->followed ? 1 : -1;
  return x < y ? -1 : x > y; /* they are sorted by name */
}

/* Makes the way from the directory of `from` to `to`. */
static char *way_between(const char *from, const char *to) {
  size_t shared = 0, ups = 0;
  for (size_t i = 0; from[i] && from[i] == to[i]; i++)
    if (from[i] == '/') shared = i + 1;
  for (const char *at = from + shared; *at; at++) ups += *at == '/';
  size_t len = 3 * ups + strlen(to + shared);
  char *way = len < FS_PATH_MAX ? malloc(len + 1) : NULL;
  if (!way) return NULL;
  for (size_t i = 0; i < ups; i++) memcpy(way + 3 * i, "../", 3);
  memcpy(way + 3 * ups, to + shared, strlen(to + shared) + 1);
  return way;
}

/* A name that a copy of a tree leaves out must not be what a link leads to. */
static bool may_stand_for(const unit_file *first) {
  static const char record[] = ".ckpt-manifest.";
  return strncmp(fs_base(first->name), record, sizeof record - 1) != 0;
}

static int make_link(unit_files *t, unit_file *f, const unit_file *first, err *e) {
  char *way = way_between(f->name, first->name);
  if (!way && strlen(f->name) + strlen(first->name) >= FS_PATH_MAX / 4)
    return 0; /* it stays twice */
  if (!way) return err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
  t->bytes -= f->size;
  t->regular--;
  free(f->target);
  f->target = way;
  f->type = MANIFEST_LINK;
  f->followed = NULL;
  f->end = LINK_END_WITHIN;
  f->mode = 0777;
  f->size = 0;
  return 0;
}

/* The directory is held only while there is something to open from it. */
static void let_go(unit_files *t) {
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].followed) return;
  link_follower_free(t->links);
  t->links = NULL;
}

int unit_links_unite(unit_files *t, err *e) {
  size_t count = 0;
  int rc = 0;
  let_go(t);
  if (!t->links && !(t->lacks & UNIT_SEVERAL_NAMES)) return 0;
  unit_file **files = malloc((t->count + 1) * sizeof(void *));
  if (!files) return err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].type == MANIFEST_FILE) files[count++] = &t->files[i];
  if (count > 1) qsort(files, count, sizeof(void *), by_inode);
  for (size_t i = 1, first = 0; rc == 0 && i < count; i++) {
    if (files[i]->device != files[first]->device || files[i]->inode != files[first]->inode)
      first = i;
    else if (!files[i]->followed)
      t->lacks |= UNIT_HARD_LINKS;
    else if (!(t->how & UNIT_FILES_EACH) && may_stand_for(files[first]))
      rc = make_link(t, files[i], files[first], e);
  }
  free(files);
  return rc;
}

/* ---- what stays ---- */

void unit_links_tell(const unit_files *t, const log_sink *log, const char *unit) {
  static const char *const ends[] = {
      [LINK_END_DIR] = "a directory",
      [LINK_END_NOWHERE] = "nothing is there",
      [LINK_END_DENIED] = "not a file that the link's owner may read, or not the owner's",
      [LINK_END_SPECIAL] = "a pipe, socket or device",
      [LINK_END_KERNEL] = "below /proc, /sys or /dev",
  };
  const unit_file *first = NULL;
  size_t count = 0;
  for (size_t i = 0; i < t->count; i++) {
    const unit_file *f = &t->files[i];
    if (f->type != MANIFEST_LINK || f->end >= sizeof ends / sizeof *ends || !ends[f->end]) continue;
    if (count++ == 0) first = f;
  }
  if (count == 0) return;
  log_say(log, LOG_WARN,
          "%s: %zu link%s out of it or nowhere, and %s saved without what is there: %s\"%s\" to "
          "\"%s\" (%s)",
          unit, count, count == 1 ? " leads" : "s lead", count == 1 ? "is" : "are",
          count == 1 ? "" : "the first is ", first->name, first->target, ends[first->end]);
}
