#include "home.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "prims/fs_held.h"

/* Before the first journal is written only these can be there. */
static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  static const char *const ours[] = {"lock",     "journal.jsonl", "identity", "socket.",
                                     "dir.lock", "watchers",      "launch",   "ready."};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    if (strncmp(entry->name, ours[i], strlen(ours[i])) == 0) return 0;
  snprintf(ctx, 256, "%s", entry->name);
  return err_set(e, ERR_INVAL, "%s is not ours", entry->name);
}

int home_check_entries(const io *io, const char *path, char *stranger, err *e) {
  *stranger = 0;
  return fs_list(io, path, on_entry, stranger, e);
}

static void none(home *out, const char *why) {
  out->path[0] = 0;
  snprintf(out->why, sizeof out->why, "%.*s", (int)sizeof out->why - 1, why);
}

/* A link in its place is the user's word: the home is elsewhere, for all who see that link. */
static int find_path(const io *io, const char *dir, char out[FS_PATH_MAX], err *e) {
  char path[FS_PATH_MAX];
  struct stat st;
  if (snprintf(path, sizeof path, "%s.ckpt", dir) >= (int)sizeof path)
    return err_set(e, ERR_LIMIT, "%s: the path is too long", dir);
  if (io->lstat(io, AT_FDCWD, path, &st) == 0) return fs_resolve_way(io, path, out, e);
  memcpy(out, path, strlen(path) + 1);
  return 0;
}

/* Whoever may rename there decides who the owner is. */
static int check_dir(const io *io, const char *path, err *e) {
  char journal[FS_PATH_MAX], stranger[256];
  struct stat st;
  int rc = fs_join(journal, path, "journal.jsonl", e);
  if (rc == 0) rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc != 0) return err_sys(e, rc, "look at %s", path);
  if (!S_ISDIR(st.st_mode)) return err_set(e, ERR_INVAL, "%s is no directory", path);
  if ((st.st_mode & 002) && !(st.st_mode & S_ISVTX))
    return err_set(e, ERR_ACCESS, "everybody may write in %s", path);
  if (io->lstat(io, AT_FDCWD, journal, &st) == 0) return 0;
  rc = home_check_entries(io, path, stranger, e);
  return rc < 0 && *stranger ? err_set(e, rc, "%s holds %s, which is not ours", path, stranger)
                             : rc;
}

void home_find(const io *io, const char *dir, const char *state, const char *target, home *out) {
  err why = {0};
  char text[sizeof out->why];
  *out = (home){0};
  int mount = fs_is_mount_point(dir, &why);
  if (mount > 0) {
    snprintf(text, sizeof text, "%.300s is a mount point, so nothing can stand beside it", dir);
    none(out, text);
    return;
  }
  int rc = mount < 0 ? mount : find_path(io, dir, out->path, &why);
  if (rc == 0 && strcmp(out->path, state) == 0) return; /* it was checked before */
  if (rc == 0 && target && (fs_within(io, target, out->path) || fs_within(io, out->path, target)))
    rc = err_set(&why, ERR_INVAL, "%s and the target lie in one another", out->path);
  if (rc == 0) rc = fs_mkdirs(io, out->path, 0700, &why);
  int seen = rc == 0 ? check_dir(io, out->path, &why) : rc;
  if (seen < 0) none(out, why.text);
  out->others = rc == 0 && seen == ERR_ACCESS;
}
