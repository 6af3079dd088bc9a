/* fs_within: tells whether a directory lies in another one, by whatever mounts and links the two
 * are named. */
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/uri.h"

enum { MOUNTS_MAX = 16 << 20 };

/* The place of a path in its file system, seen from that one's own root. A bind mount shows a part
 * of a file system elsewhere, and no directory above it tells what it is a part of. */
typedef struct disk_place {
  char device[32]; /* as the table of mounts has it; "" if it is not known */
  char path[FS_PATH_MAX];
} disk_place;

/* The table writes space, tab, line end and backslash as \ooo. */
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from; to++) {
    unsigned value;
    if (from[0] == '\\' && sscanf(from + 1, "%3o", &value) == 1 &&
        strspn(from + 1, "01234567") >= 3) {
      *to = (char)value;
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = 0;
}

/* Returns the mount that a path is on; 0 where the kernel does not say (before 5.8). */
static unsigned long long mount_of(const char *path) {
#ifdef STATX_MNT_ID
  struct statx st;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &st) == 0 &&
      (st.stx_mask & STATX_MNT_ID))
    return st.stx_mnt_id;
#else
  (void)path;
#endif
  return 0;
}

static void look_up(const char *mounts, const char *path, disk_place *out) {
  unsigned long long wanted = mount_of(path), id;
  char root[FS_PATH_MAX], point[FS_PATH_MAX];
  out->device[0] = 0;
  for (const char *line = wanted ? mounts : NULL; line; line = strchr(line, '\n')) {
    while (*line == '\n') line++;
    if (sscanf(line, "%llu %*u %31s %4095s %4095s", &id, out->device, root, point) == 4 &&
        id == wanted)
      break;
    out->device[0] = 0;
  }
  if (!out->device[0]) return;
  unescape(root);
  unescape(point);
  if (!uri_path_within(point, path)) { /* it is seen from another root */
    out->device[0] = 0;
    return;
  }
  const char *below = path + strlen(point);
  while (*below == '/') below++;
  if (fs_join(out->path, root, below, NULL) < 0) out->device[0] = 0;
}

/* True if both exist and are the same, whatever led there. */
static bool are_same(const io *io, const char *a, const char *b) {
  struct stat first, second;
  return io->lstat(io, AT_FDCWD, a, &first) == 0 && io->lstat(io, AT_FDCWD, b, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* The places of two names on one file system are believed only if the same directory is found
 * there: some file systems that are mounted twice have a root of their own each time. */
static bool is_below(const io *io, const char *outer, const disk_place *outer_at, const char *inner,
                     const disk_place *inner_at) {
  char there[FS_PATH_MAX];
  if (are_same(io, outer, inner)) return true;
  if (!outer_at->device[0] || strcmp(outer_at->device, inner_at->device) != 0 ||
      !uri_path_within(outer_at->path, inner_at->path))
    return false;
  const char *rest = inner_at->path + strlen(outer_at->path);
  while (*rest == '/') rest++;
  return fs_join(there, outer, rest, NULL) == 0 && are_same(io, there, inner);
}

/* Finds the part of a path that exists, without links. */
static bool real_head(const char *path, char out[PATH_MAX]) {
  char head[FS_PATH_MAX];
  if (fs_join(head, path, "", NULL) < 0) return false;
  while (!realpath(head, out)) {
    char *slash = strrchr(head, '/');
    if (errno != ENOENT || !slash) return false;
    slash[slash == head] = 0; /* the root is always there */
  }
  return true;
}

/* Goes one directory up; false at the root. */
static bool go_up(char *path) {
  char *slash = strrchr(path, '/');
  if (!slash || !path[1]) return false;
  slash[slash == path] = 0;
  return true;
}

bool fs_within(const io *io, const char *outer, const char *inner) {
  char top[PATH_MAX], at[PATH_MAX];
  disk_place top_at, place;
  buf mounts;
  if (uri_path_within(outer, inner)) return true;
  if (!realpath(outer, top) || !real_head(inner, at)) return false;
  buf_init(&mounts, MOUNTS_MAX);
  int rc = fs_read(io, "/proc/self/mountinfo", MOUNTS_MAX, &mounts, NULL);
  const char *table = rc == 0 ? mounts.data : NULL;
  bool found;
  look_up(table, top, &top_at);
  do {
    look_up(table, at, &place);
    found = is_below(io, top, &top_at, at, &place);
  } while (!found && go_up(at));
  buf_free(&mounts);
  return found;
}
