#include "link_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "prims/fs.h"
#include "prims/fs_held.h"
#include "owner_rights.h"

enum { LINKS_MAX = 40 };

struct link_follower {
  const io *io;
  int fd; /* the directory */
  char path[FS_PATH_MAX];
  pthread_mutex_t mutex; /* of what follows: the user of whom was asked last */
  bool known, outsider;
  owner_rights rights;
};

/* ---- the directory ---- */

static int open_home(link_follower *f, const char *root, err *e) {
  fs_held *held;
  int rc = fs_held_new(f->io, &held, e);
  if (rc < 0) return rc;
  rc = fs_hold(held, root, e);
  if (rc == 0) {
    const io *io = fs_held_io(held);
    f->fd = io->open(io, AT_FDCWD, f->path, O_PATH | O_DIRECTORY, 0);
    if (f->fd < 0) rc = err_sys(e, f->fd, "cannot open %s", f->path);
  }
  fs_held_free(held);
  return rc;
}

int link_follower_new(const io *io, const char *root, const char *path, link_follower **out,
                      err *e) {
  link_follower *f = *out = calloc(1, sizeof *f);
  if (!f) return err_set(e, ERR_NOMEM, "no memory to follow the links in %s", root);
  f->io = io;
  f->fd = -1;
  pthread_mutex_init(&f->mutex, NULL);
  int rc = fs_join(f->path, root, path, e);
  if (rc == 0) rc = open_home(f, root, e);
  if (rc < 0) {
    link_follower_free(f);
    *out = NULL;
  }
  return rc;
}

void link_follower_free(link_follower *f) {
  if (!f) return;
  if (f->fd >= 0) f->io->close(f->io, f->fd);
  pthread_mutex_destroy(&f->mutex);
  free(f);
}

/* ---- what the kernel makes up ---- */

/* Returns 1 for files that are no data: some change when they are read, some never end, some are
 * another process's secrets. */
static int is_made_up(int fd) {
  static const uint32_t kinds[] = {
      0x00009fa0, 0x62656572, 0x00001cd1, /* proc, sysfs, devpts */
      0x64626720, 0x74726163, 0x73636673, /* debugfs, tracefs, securityfs */
      0x0027e0eb, 0x63677270, 0xcafe4a11, /* cgroup, cgroup2, bpf */
      0xf97cff8c, 0x43415d53, 0x62656570, /* selinuxfs, smackfs, configfs */
      0xde5e81e4, 0x6165676c, 0x19800202, /* efivarfs, pstore, mqueue */
      0x42494e4d, 0x6e736673, 0x09041934, /* binfmt_misc, nsfs, anonymous inodes */
      0x50495045, 0x534f434b, 0x65735543, /* pipes, sockets, fusectl */
      0x67596969,                         /* rpc_pipefs */
  };
  struct statfs fs;
  int rc;
  do rc = fstatfs(fd, &fs);
  while (rc < 0 && errno == EINTR);
  if (rc < 0) return -errno;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i] == (uint32_t)fs.f_type) return 1;
  return 0;
}

/* The same by name: /dev has the kind of any file system in memory. */
static int is_below_kernel_dirs(const io *io, int fd) {
  static const char *const tops[] = {"/proc/", "/sys/", "/dev/"};
  char link[64], path[FS_PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t len = io->readlink(io, AT_FDCWD, link, path, sizeof path - 1);
  if (len == -ENOENT) return 1; /* without /proc nobody can tell: it stays out */
  if (len < 0) return (int)len;
  if (*path != '/') return 1;
  path[len] = 0;
  for (size_t i = 0; i < sizeof tops / sizeof *tops; i++)
    if (strncmp(path, tops[i], strlen(tops[i])) == 0) return 1;
  return 0;
}

/* ---- the way ---- */

typedef struct walk {
  const link_follower *f;
  const io *io;
  link_has *has;
  void *ctx;
  uid_t owner; /* of the link with which it began */
  int fd;      /* the directory in which it stands */
  dev_t dev;   /* of that */
  int links;
  bool left;              /* it was outside */
  bool ours;              /* it ended, for now, at a link that belongs to what is saved */
  char here[FS_PATH_MAX]; /* until it leaves: where it stands below the directory */
  char rest[FS_PATH_MAX];
} walk;

/* Stops with an end: not an error, and not 0. */
enum { STOP = 1 };

static int stop(link_followed *out, link_end end) {
  out->end = end;
  return STOP;
}

/* Says what a call's failure means. One that may pass says nothing about the link. */
static int failed(const walk *w, link_followed *out, int rc, err *e) {
  switch (rc) {
  case -ENOENT:
  case -ENOTDIR:
  case -ELOOP:
  case -ENAMETOOLONG: return stop(out, LINK_END_NOWHERE);
  case -EACCES:
  case -EPERM: return stop(out, LINK_END_DENIED);
  default: return err_sys(e, rc, "cannot follow a link in %s", w->f->path);
  }
}

/* Stops at what the kernel makes up, which `answer` says. */
static int unless(const walk *w, int answer, link_followed *out, err *e) {
  if (answer == 0) return 0;
  return answer < 0 ? failed(w, out, answer, e) : stop(out, LINK_END_KERNEL);
}

static int move_to(walk *w, int fd, link_followed *out, err *e) {
  struct stat st;
  int rc = w->io->fstat(w->io, fd, &st);
  bool other = rc == 0 && st.st_dev != w->dev;
  if (w->fd >= 0) w->io->close(w->io, w->fd);
  w->fd = fd;
  if (rc < 0) return failed(w, out, rc, e);
  w->dev = st.st_dev;
  return other ? unless(w, is_made_up(fd), out, e) : 0;
}

static int go_to(walk *w, int from, const char *path, link_followed *out, err *e) {
  int fd = w->io->open(w->io, from, path, O_PATH | O_DIRECTORY, 0);
  return fd < 0 ? failed(w, out, fd, e) : move_to(w, fd, out, e);
}

static int go_up(walk *w, link_followed *out, err *e) {
  char up[FS_PATH_MAX];
  if (!*w->here) w->left = true;
  fs_parent(w->here, up);
  memcpy(w->here, up, strlen(up) + 1);
  if (strcmp(w->here, ".") == 0) *w->here = 0;
  return go_to(w, w->fd, "..", out, e);
}

static bool belongs(const walk *w, const char *name) {
  char path[FS_PATH_MAX];
  if (w->left || fs_join(path, w->here, name, NULL) < 0) return false;
  return !w->has || w->has(w->ctx, path);
}

/* Root could be led by a link of a third user where neither its own nor the first one's word led
 * it. */
static bool may_follow(const walk *w, const struct stat *link) {
  return geteuid() != 0 || link->st_uid == w->owner || link->st_uid == 0;
}

/* Puts the link's text before what is left of the way. */
static int follow(walk *w, int link, link_followed *out, err *e) {
  char target[FS_PATH_MAX], rest[FS_PATH_MAX];
  ssize_t len = w->io->readlink(w->io, link, "", target, sizeof target - 1);
  if (len < 0) return failed(w, out, (int)len, e);
  target[len] = 0;
  if (len == 0 || ++w->links > LINKS_MAX || fs_join(rest, target, w->rest, NULL) < 0)
    return stop(out, LINK_END_NOWHERE);
  memcpy(w->rest, rest, strlen(rest) + 1);
  if (*w->rest != '/') return 0;
  w->left = true;
  return go_to(w, AT_FDCWD, "/", out, e);
}

static int open_file(walk *w, int fd, const struct stat *st, link_followed *out, err *e) {
  char link[64];
  bool others = w->owner != geteuid() || geteuid() == 0;
  int rc = unless(w, is_made_up(fd), out, e);
  if (rc == 0) rc = unless(w, is_below_kernel_dirs(w->io, fd), out, e);
  if (rc != 0) return rc;
  if (others && st->st_uid != w->owner) return stop(out, LINK_END_DENIED);
  /* This opens the very file that was looked at, whatever has its name by now. */
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  out->fd = w->io->open(w->io, AT_FDCWD, link, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
  if (out->fd < 0) return failed(w, out, out->fd, e);
  rc = w->io->fstat(w->io, out->fd, &out->st);
  if (rc < 0) return failed(w, out, rc, e);
  return stop(out, LINK_END_FILE);
}

/* Judges what is at the end of the way. */
static int arrive(walk *w, int fd, const char *name, const struct stat *st, link_followed *out,
                  err *e) {
  if (belongs(w, name)) return stop(out, LINK_END_WITHIN);
  if (S_ISDIR(st->st_mode)) return stop(out, LINK_END_DIR);
  return S_ISREG(st->st_mode) ? open_file(w, fd, st, out, e) : stop(out, LINK_END_SPECIAL);
}

static void note_where(walk *w, const char *name) {
  char path[FS_PATH_MAX];
  if (fs_join(path, w->here, name, NULL) < 0)
    w->left = true; /* it has no name that could be saved */
  else
    memcpy(w->here, path, strlen(path) + 1);
}

/* Goes on from `fd`, which has this name where the walk stands. */
static int pass(walk *w, int fd, const char *name, link_followed *out, err *e) {
  struct stat st;
  int rc = w->io->fstat(w->io, fd, &st);
  if (rc < 0) rc = failed(w, out, rc, e);
  if (rc == 0 && st.st_dev != w->dev) rc = unless(w, is_made_up(fd), out, e);
  if (rc == 0 && S_ISLNK(st.st_mode)) {
    w->ours = w->ours || (!*w->rest && belongs(w, name));
    rc = may_follow(w, &st) ? follow(w, fd, out, e) : stop(out, LINK_END_DENIED);
  } else if (rc == 0 && !*w->rest) {
    rc = arrive(w, fd, name, &st, out, e);
  } else if (rc == 0 && S_ISDIR(st.st_mode)) {
    note_where(w, name);
    return move_to(w, fd, out, e);
  } else if (rc == 0) {
    rc = stop(out, LINK_END_NOWHERE);
  }
  w->io->close(w->io, fd);
  return rc;
}

/* Takes the next component. */
static int step(walk *w, link_followed *out, err *e) {
  char name[FS_NAME_MAX];
  if (!fs_take_name(w->rest, name)) return stop(out, LINK_END_NOWHERE);
  if (!*name || strcmp(name, ".") == 0) return 0;
  if (strcmp(name, "..") == 0) return go_up(w, out, e);
  int fd = w->io->open(w->io, w->fd, name, O_PATH | O_NOFOLLOW, 0);
  return fd < 0 ? failed(w, out, fd, e) : pass(w, fd, name, out, e);
}

/* ---- the link ---- */

/* Opens the link, and the directory in which it stands. */
static int open_link(walk *w, const char *name, const struct stat *is, int *link, err *e) {
  const link_follower *f = w->f;
  char parent[FS_PATH_MAX];
  struct stat st = {0};
  fs_parent(name, parent);
  bool deep = strcmp(parent, ".") != 0;
  if (deep) memcpy(w->here, parent, strlen(parent) + 1);
  w->fd = deep ? fs_open_beneath(f->io, f->fd, parent, O_PATH | O_DIRECTORY, 0)
               : f->io->open(f->io, f->fd, ".", O_PATH | O_DIRECTORY, 0);
  int rc = w->fd < 0 ? w->fd : f->io->fstat(f->io, w->fd, &st);
  if (rc == 0) {
    w->dev = st.st_dev;
    *link = rc = f->io->open(f->io, w->fd, fs_base(name), O_PATH | O_NOFOLLOW, 0);
  }
  if (rc >= 0) rc = f->io->fstat(f->io, *link, &st);
  bool gone = rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -ESTALE || rc == -EXDEV;
  bool other = is && (st.st_ino != is->st_ino || st.st_dev != is->st_dev);
  if (gone || (rc == 0 && (other || !S_ISLNK(st.st_mode))))
    return err_set(e, ERR_RETIRED, "%s/%s was replaced while it was read", f->path, name);
  w->owner = st.st_uid;
  return rc < 0 ? err_sys(e, rc, "cannot look at %s/%s", f->path, name) : 0;
}

/* Learns what this user may, which takes a question to the system's user database. */
static bool learn(link_follower *f, uid_t owner, owner_rights *out) {
  pthread_mutex_lock(&f->mutex);
  if (!f->known || f->rights.uid != owner) {
    owner_rights_of(owner, &f->rights);
    /* Who is not in our user namespace shares a number with all others who are not. */
    f->outsider = fs_is_outsider(f->io, owner);
    f->known = true;
  }
  *out = f->rights;
  bool usable = !f->outsider;
  pthread_mutex_unlock(&f->mutex);
  return usable;
}

static int walk_on(walk *w, int link, link_followed *out, err *e) {
  int rc = follow(w, link, out, e);
  while (rc == 0 && *w->rest) rc = step(w, out, e);
  /* It ended in ".." or at the top: a directory. */
  if (rc == 0) rc = stop(out, w->left ? LINK_END_DIR : LINK_END_WITHIN);
  return rc < 0 ? rc : 0;
}

static int walk_as_owner(walk *w, link_follower *f, int link, link_followed *out, err *e) {
  owner_rights rights;
  owner_rights_before before;
  bool ours = w->owner == geteuid();
  if (!ours && !learn(f, w->owner, &rights)) {
    out->end = LINK_END_DENIED;
    return 0;
  }
  if (ours || geteuid() != 0) return walk_on(w, link, out, e);
  if (owner_rights_take(&rights, &before) < 0) {
    out->end = LINK_END_DENIED;
    return 0;
  }
  int rc = walk_on(w, link, out, e);
  owner_rights_back(&before);
  return rc;
}

int link_follow(link_follower *f, const char *name, const struct stat *is, link_has *has, void *ctx,
                link_followed *out, err *e) {
  walk w = {.f = f, .io = f->io, .has = has, .ctx = ctx, .fd = -1};
  int link = -1;
  *out = (link_followed){.fd = -1};
  int rc = open_link(&w, name, is, &link, e);
  if (rc == 0) rc = walk_as_owner(&w, f, link, out, e);
  if (link >= 0) f->io->close(f->io, link);
  if (w.fd >= 0) f->io->close(f->io, w.fd);
  /* It ends at another link of what is saved, whose end is its own: this one leads there as before.
   * But links in a circle end nowhere. */
  if (rc == 0 && w.ours && w.links <= LINKS_MAX) out->end = LINK_END_WITHIN;
  if (rc == 0 && out->end == LINK_END_FILE) return 0;
  if (out->fd >= 0) f->io->close(f->io, out->fd);
  out->fd = -1;
  return rc;
}

static bool nothing(void *ctx, const char *name) {
  (void)ctx, (void)name;
  return false;
}

int link_follow_again(link_follower *f, const char *name, link_followed *out, err *e) {
  return link_follow(f, name, NULL, nothing, NULL, out, e);
}
