#include "stale_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { DIGITS = 16, OLD_S = 3600 };
static const char aside[] = ".gone";

static bool is_name(const char *name) {
  return strspn(name, "0123456789abcdef") == DIGITS && name[DIGITS] == 0;
}

/* One that was moved aside by a start that was killed then. */
static bool is_aside(const char *name) {
  return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, aside) == 0;
}

/* Where other kernels see the directory, one that is listened to there refuses us. */
static bool is_of_this_kernel(int dir) {
  struct statfs fs;
  if (fstatfs(dir, &fs) != 0) return false;
  switch ((unsigned long)fs.f_type) {
  case TMPFS_MAGIC:
  case OVERLAYFS_SUPER_MAGIC:
  case EXT4_SUPER_MAGIC:
  case XFS_SUPER_MAGIC:
  case BTRFS_SUPER_MAGIC: return true;
  default: return false;
  }
}

static bool is_ours_and_old(int dir, const char *name, struct stat *st) {
  if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return S_ISSOCK(st->st_mode) && st->st_uid == geteuid() && time(NULL) - st->st_mtime >= OLD_S;
}

/* A full queue is somebody's. */
static bool is_refused(const char *in, const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int len = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", in, name);
  if (len < 0 || (size_t)len >= sizeof address.sun_path) return false;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool refused = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0 &&
                 errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  return refused;
}

/* An inode's number may be used again at once, the time of its making not. */
static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void remove_one(int dir, const char *in, const char *name) {
  char gone[DIGITS + sizeof aside];
  struct stat seen, now;
  if (!is_ours_and_old(dir, name, &seen) || !is_refused(in, name)) return;
  if (is_aside(name)) {
    unlinkat(dir, name, 0);
    return;
  }
  snprintf(gone, sizeof gone, "%.*s%s", DIGITS, name, aside);
  if (renameat(dir, name, dir, gone) != 0) return;
  if (fstatat(dir, gone, &now, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (is_same(&seen, &now))
    unlinkat(dir, gone, 0);
  else
    renameat2(dir, gone, dir, name, RENAME_NOREPLACE);
}

void stale_sockets_remove(const char *own) {
  char in[PATH_MAX];
  const char *slash = strrchr(own, '/');
  if (!slash || !is_name(slash + 1) || (size_t)(slash - own) >= sizeof in) return;
  memcpy(in, own, (size_t)(slash - own));
  in[slash - own] = 0;
  DIR *list = opendir(in);
  if (!list) return;
  const bool may = is_of_this_kernel(dirfd(list));
  for (const struct dirent *entry; may && (entry = readdir(list));) {
    const char *name = entry->d_name;
    if ((is_name(name) || is_aside(name)) && strcmp(name, slash + 1) != 0)
      remove_one(dirfd(list), in, name);
  }
  closedir(list);
}
