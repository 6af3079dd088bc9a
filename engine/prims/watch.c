#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/vec.h"

enum {
  BATCH = 64 * 1024,
  MAX_BATCHES = 32, /* for one watch_read: a busy writer must not keep the caller for ever */
  MAX_REMOVALS =
      1024, /* for one watch_read: each makes an event, and too many overflow the queue */
  PATH_BYTES = 64 * 1024,
  PASSAGES = 8, /* between the two renames of an exchange hardly another one is queued */
  MASK = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE |
         IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK,
};

/* One watch descriptor. */
typedef struct node {
  int wd;        /* 0: a free slot (the kernel begins with 1) */
  uint32_t away; /* the cookie of a rename that took it away and has no second half yet, or 0 */
  bool removed;  /* inotify_rm_watch was called; the slot is free after IN_IGNORED */
  char *path;    /* relative to the root, owned; NULL: not in the tree any more */
} node;

/* Something was moved from here; where to is not known yet. */
typedef struct departure {
  uint32_t cookie;
  bool is_dir;
  char *from; /* owned */
} departure;

/* A rename whose both halves were read. */
typedef struct passage {
  char *from, *to; /* owned; NULL: none yet */
} passage;

struct watch {
  int fd, root_wd;
  bool gone;
  char *root;  /* absolute, without links, ends in a slash */
  node *nodes; /* open addressing by wd; `room` is a power of two, at most half of it in use */
  size_t room, used, doomed; /* doomed: nodes without a path that are not removed yet */
  departure *departures;
  size_t departed, departure_room;
  passage passages[PASSAGES]; /* the newest ones, in a ring */
  size_t passed;
  buf path; /* of the event that is being reported */
  struct {  /* the event before this one, if it was a MODIFY */
    int wd;
    char name[NAME_MAX + 1];
  } before;
  _Alignas(struct inotify_event) char batch[BATCH];
};

/* The table. */

static size_t slot_of(const watch *w, int wd) {
  size_t i = ((uint32_t)wd * 2654435769u) & (w->room - 1);
  while (w->nodes[i].wd != 0 && w->nodes[i].wd != wd) i = (i + 1) & (w->room - 1);
  return i;
}

static node *find(const watch *w, int wd) {
  node *n = &w->nodes[slot_of(w, wd)];
  return n->wd == wd && wd > 0 ? n : NULL;
}

static int grow(watch *w) {
  watch bigger = {.room = w->room ? w->room * 2 : 64};
  bigger.nodes = calloc(bigger.room, sizeof *bigger.nodes);
  if (!bigger.nodes) return ERR_NOMEM;
  for (size_t i = 0; i < w->room; i++)
    if (w->nodes[i].wd) bigger.nodes[slot_of(&bigger, w->nodes[i].wd)] = w->nodes[i];
  free(w->nodes);
  w->nodes = bigger.nodes;
  w->room = bigger.room;
  return 0;
}

/* Frees a slot and closes the gap, so that searches which pass it still find what is behind it. */
static void erase(watch *w, node *n) {
  if (!n->path && !n->removed) w->doomed--;
  free(n->path);
  w->used--;
  size_t gap = (size_t)(n - w->nodes);
  w->nodes[gap] = (node){0};
  for (size_t i = (gap + 1) & (w->room - 1); w->nodes[i].wd; i = (i + 1) & (w->room - 1)) {
    node moved = w->nodes[i];
    w->nodes[i] = (node){0};
    w->nodes[slot_of(w, moved.wd)] = moved;
  }
}

/* Takes a node out of the tree. Its watch is removed later, see remove_doomed(). */
static void doom(watch *w, node *n) {
  if (n->path) w->doomed++;
  free(n->path);
  n->path = NULL;
  n->away = 0;
}

/* Sets the path of a descriptor, known or new. */
static int put(watch *w, int wd, const char *path) {
  if ((w->used + 1) * 2 > w->room && grow(w) < 0) return ERR_NOMEM;
  node *n = &w->nodes[slot_of(w, wd)];
  if (n->wd == wd && n->path && strcmp(n->path, path) == 0) {
    n->away = 0;
    return 0;
  }
  char *copy = strdup(path);
  if (!copy) return ERR_NOMEM;
  if (n->wd == 0)
    w->used++;
  else if (!n->path && !n->removed)
    w->doomed--;
  free(n->path);
  *n = (node){.wd = wd, .path = copy};
  return 0;
}

/* Renames. The first half marks a directory and what is below it; the second half gives the marked
 * ones their new paths. Marks, not paths, connect the two: another directory may take the old name
 * in between.
 *
 * One case cannot be told from the events: after `a` went to `b`, something comes from `b` to `a`.
 * Either it is the same one that goes back; or the two were exchanged, and this is the other one,
 * while both have the path `b` here. Then they all lose their paths, and the listing after the
 * MOVED_TO gives each its own. */

static bool is_below(const char *path, const char *top, size_t top_len) {
  return strncmp(path, top, top_len) == 0 && (path[top_len] == 0 || path[top_len] == '/');
}

static int depart(watch *w, const char *path, bool is_dir, uint32_t cookie) {
  size_t len = strlen(path);
  for (size_t i = 0; is_dir && i < w->room; i++) {
    node *n = &w->nodes[i];
    if (n->path && !n->away && is_below(n->path, path, len)) n->away = cookie;
  }
  if (!VEC_ROOM(w->departures, w->departed, w->departure_room)) return ERR_NOMEM;
  char *from = strdup(path);
  if (!from) return ERR_NOMEM;
  w->departures[w->departed++] = (departure){cookie, is_dir, from};
  return 0;
}

static bool has_passed(const watch *w, const char *from, const char *to) {
  for (size_t i = 0; i < PASSAGES; i++) {
    const passage *p = &w->passages[i];
    if (p->from && strcmp(p->from, from) == 0 && strcmp(p->to, to) == 0) return true;
  }
  return false;
}

/* Takes `from`. */
static int remember_passage(watch *w, char *from, const char *to) {
  char *copy = strdup(to);
  if (!copy) {
    free(from);
    return ERR_NOMEM;
  }
  passage *p = &w->passages[w->passed++ % PASSAGES];
  free(p->from);
  free(p->to);
  *p = (passage){from, copy};
  return 0;
}

static int put_below(node *n, size_t from_len, const char *path, uint32_t into_away) {
  size_t len = strlen(path), rest = strlen(n->path) - from_len;
  char *moved = malloc(len + rest + 1);
  if (!moved) return ERR_NOMEM;
  memcpy(moved, path, len);
  memcpy(moved + len, n->path + from_len, rest + 1);
  free(n->path);
  n->path = moved;
  n->away = into_away;
  return 0;
}

/* Handles the second half. `into_away` is the mark of the directory that it was moved into, which
 * may be on its way itself. */
static int arrive(watch *w, watch_event *ev, uint32_t into_away) {
  size_t d = 0;
  int rc = 0;
  while (d < w->departed && w->departures[d].cookie != ev->cookie) d++;
  if (d == w->departed) return 0; /* it came from outside */
  char *from = w->departures[d].from;
  w->departures[d] = w->departures[--w->departed];
  ev->back = has_passed(w, ev->path, from);
  for (size_t i = 0; ev->is_dir && rc == 0 && i < w->room; i++) {
    node *n = &w->nodes[i];
    if (!n->path || n->away != ev->cookie) continue;
    if (ev->back)
      doom(w, n);
    else
      rc = put_below(n, strlen(from), ev->path, into_away);
  }
  int kept = remember_passage(w, from, ev->path);
  return rc < 0 ? rc : kept;
}

static const struct inotify_event *event_at(const watch *w, size_t at) {
  return (const struct inotify_event *)(const void *)(w->batch + at);
}

static size_t size_of(const struct inotify_event *ev) {
  return sizeof *ev + ev->len;
}

/* The kernel queues both halves of a rename one right after the other, so the second is in the same
 * batch or in the next. Called when a batch was read, before it is looked at: a directory that left
 * in an earlier batch and does not arrive in this one has left the tree. */
static void judge_departures(watch *w, size_t len) {
  size_t kept = 0;
  for (size_t d = 0; d < w->departed; d++) {
    departure left = w->departures[d];
    bool arrives = false;
    for (size_t at = 0; at < len && !arrives; at += size_of(event_at(w, at)))
      arrives = (event_at(w, at)->mask & IN_MOVED_TO) && event_at(w, at)->cookie == left.cookie;
    if (arrives) {
      w->departures[kept++] = left;
      continue;
    }
    for (size_t i = 0; left.is_dir && i < w->room; i++)
      if (w->nodes[i].path && w->nodes[i].away == left.cookie) doom(w, &w->nodes[i]);
    free(left.from);
  }
  w->departed = kept;
}

/* After lost events no path but the root's is known to be true. The caller lists everything and
 * adds it again, which gives the descriptors their paths back; what it does not find goes. */
static void forget_all(watch *w) {
  for (size_t i = 0; i < w->departed; i++) free(w->departures[i].from);
  w->departed = 0;
  for (size_t i = 0; i < w->room; i++) {
    node *n = &w->nodes[i];
    if (n->wd && n->wd != w->root_wd && n->path) doom(w, n);
  }
  /* The IN_IGNORED of these may be among the lost events: the kernel does not know them any more.
   * Erasing moves others into the slot, so the slot is looked at again. */
  for (size_t i = 0; i < w->room;)
    if (w->nodes[i].wd && w->nodes[i].removed)
      erase(w, &w->nodes[i]);
    else
      i++;
}

static void remove_doomed(watch *w) {
  size_t budget = MAX_REMOVALS;
  for (size_t i = 0; i < w->room && w->doomed > 0 && budget > 0;) {
    node *n = &w->nodes[i];
    if (!n->wd || n->path || n->removed) {
      i++;
      continue;
    }
    budget--;
    if (inotify_rm_watch(w->fd, n->wd) < 0) {
      erase(w, n); /* the kernel was faster: the directory is gone and its IN_IGNORED was lost */
    } else {
      n->removed = true;
      w->doomed--;
      i++;
    }
  }
}

/* Events. */

static int kind_of(uint32_t mask) {
  static const struct {
    uint32_t bit;
    watch_kind kind;
  } kinds[] = {
      {IN_CREATE, WATCH_CREATE},           {IN_MODIFY, WATCH_MODIFY},
      {IN_CLOSE_WRITE, WATCH_CLOSE_WRITE}, {IN_MOVED_FROM, WATCH_MOVED_FROM},
      {IN_MOVED_TO, WATCH_MOVED_TO},       {IN_DELETE, WATCH_DELETE},
      {IN_ATTRIB, WATCH_ATTRIB},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (mask & kinds[i].bit) return (int)kinds[i].kind;
  return -1;
}

static int report(watch_fn *fn, void *ctx, watch_kind kind, const char *path, bool is_dir) {
  const watch_event out = {.kind = kind, .path = path, .is_dir = is_dir};
  fn(ctx, &out);
  return 1;
}

static bool repeats(watch *w, const struct inotify_event *ev) {
  if (!(ev->mask & IN_MODIFY)) {
    w->before.wd = 0;
    return false;
  }
  bool same = w->before.wd == ev->wd && strcmp(w->before.name, ev->name) == 0;
  w->before.wd = ev->wd;
  strncpy(w->before.name, ev->name, sizeof w->before.name - 1);
  return same;
}

/* An event of an entry of a watched directory. 1 if it was reported, 0 if not, or ERR_*. */
static int entry_event(watch *w, const node *dir, const struct inotify_event *ev, watch_fn *fn,
                       void *ctx) {
  int kind = kind_of(ev->mask), rc = 0;
  if (kind < 0 || repeats(w, ev)) return 0;
  buf_clear(&w->path);
  buf_str(&w->path, dir->path);
  if (w->path.len > 0) buf_str(&w->path, "/");
  buf_str(&w->path, ev->name);
  if (buf_failed(&w->path)) return buf_failed(&w->path);
  watch_event out = {.kind = (watch_kind)kind,
                     .path = w->path.data,
                     .is_dir = ev->mask & IN_ISDIR,
                     .cookie = ev->cookie};
  bool away = dir->away != 0;
  if (kind == WATCH_MOVED_FROM) rc = depart(w, out.path, out.is_dir, ev->cookie);
  if (kind == WATCH_MOVED_TO) rc = arrive(w, &out, dir->away);
  /* The path of a directory that is on its way is not true: the listing at the end of the way is.
   * If the way ends outside the tree, nobody needs to know. */
  if (rc < 0 || away) return rc;
  fn(ctx, &out);
  return 1;
}

/* Handles any event. The node is not used after a report: a watch_add in it may move the node. */
static int one_event(watch *w, const struct inotify_event *ev, watch_fn *fn, void *ctx) {
  if (w->gone) return 0;
  if (ev->mask & IN_Q_OVERFLOW) {
    forget_all(w);
    w->before.wd = 0;
    return report(fn, ctx, WATCH_OVERFLOW, "", false);
  }
  node *n = find(w, ev->wd);
  if (!n) return 0;
  uint32_t end = ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED);
  if (end && ev->wd == w->root_wd) {
    w->gone = true;
    return report(fn, ctx, WATCH_GONE, "", true);
  }
  if (ev->mask & IN_IGNORED) {
    erase(w, n);
    return 0;
  }
  if (!n->path) return 0;
  if (ev->mask & IN_UNMOUNT) {
    /* A file system that was mounted inside the tree: no directory reports that its content went
     * away. IN_IGNORED follows. */
    buf_clear(&w->path);
    buf_str(&w->path, n->path);
    return buf_failed(&w->path) ? buf_failed(&w->path)
                                : report(fn, ctx, WATCH_DELETE, w->path.data, true);
  }
  /* Without a name it is about the directory itself: its parent reports the same with a name. */
  return end || ev->len == 0 ? 0 : entry_event(w, n, ev, fn, ctx);
}

static int batch_events(watch *w, size_t len, watch_fn *fn, void *ctx, err *e) {
  int count = 0;
  for (size_t at = 0; at < len; at += size_of(event_at(w, at))) {
    int rc = one_event(w, event_at(w, at), fn, ctx);
    if (rc < 0)
      return err_set(e, rc, "cannot follow the events below %s: %s", w->root, err_text(rc));
    count += rc;
  }
  return count;
}

int watch_read(watch *w, watch_fn *event, void *ctx, err *e) {
  const io *io = io_system();
  int count = 0;
  w->before.wd = 0; /* repeats are dropped within one call: a later call is later news */
  for (int i = 0; i < MAX_BATCHES; i++) {
    ssize_t len = io->read(io, w->fd, w->batch, sizeof w->batch);
    if (len == -EAGAIN) break;
    if (len <= 0)
      return err_sys(e, len < 0 ? (int)-len : EIO, "cannot read the events below %s", w->root);
    judge_departures(w, (size_t)len);
    int rc = batch_events(w, (size_t)len, event, ctx, e);
    if (rc < 0) return rc;
    count += rc;
  }
  remove_doomed(w);
  return count;
}

/* Opening and adding. */

static int add_failed(const watch *w, int errnum, const char *path, err *e) {
  if (errnum == ENOSPC)
    return err_set(e, ERR_LIMIT,
                   "cannot watch %s%s: this user's inotify watches are used up; raise "
                   "fs.inotify.max_user_watches (sysctl)",
                   w->root, path);
  return err_sys(e, errnum, "cannot watch %s%s", w->root, path);
}

/* Opens a directory below the root, through no link: once a directory above it was replaced by one,
 * its path leads to another place, which may be in this tree under a name of its own. */
static int open_plain(const watch *w, const char *path) {
  const io *io = io_system();
  const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  char name[NAME_MAX + 1];
  int dir = io->open(io, AT_FDCWD, w->root, flags, 0);
  while (dir >= 0 && *path) {
    size_t len = strcspn(path, "/");
    if (len > NAME_MAX) {
      io->close(io, dir);
      return -ENAMETOOLONG;
    }
    memcpy(name, path, len);
    name[len] = 0;
    path += len + (path[len] == '/');
    int below = io->open(io, dir, name, flags | O_NOFOLLOW, 0);
    io->close(io, dir);
    dir = below;
  }
  return dir;
}

/* The watch descriptor, or -errno. */
static int add_plain(const watch *w, const char *path, const char *full) {
  char opened[64];
  int dir = open_plain(w, path);
  if (dir < 0) return dir;
  snprintf(opened, sizeof opened, "/proc/self/fd/%d", dir);
  int wd = inotify_add_watch(w->fd, opened, MASK & ~(uint32_t)IN_DONT_FOLLOW);
  if (wd < 0 && errno == ENOENT) wd = inotify_add_watch(w->fd, full, MASK); /* there is no /proc */
  int rc = wd < 0 ? -errno : wd;
  io_system()->close(io_system(), dir);
  return rc;
}

int watch_add(watch *w, const char *path, err *e) {
  size_t len = strlen(path);
  if (len > 0 && (path[0] == '/' || path[len - 1] == '/'))
    return err_set(e, ERR_INVAL, "cannot watch \"%s\": not a path relative to %s", path, w->root);
  buf full;
  buf_init(&full, PATH_BYTES);
  buf_str(&full, w->root);
  buf_str(&full, path);
  int rc = buf_failed(&full), wd = -1;
  if (rc < 0) {
    err_set(e, rc, "cannot watch %s%s: %s", w->root, path, err_text(rc));
    goto out;
  }
  wd = add_plain(w, path, full.data);
  if (wd < 0) {
    rc = add_failed(w, -wd, path, e);
    goto out;
  }
  rc = put(w, wd, path);
  if (rc < 0) {
    inotify_rm_watch(w->fd, wd);
    err_set(e, rc, "no memory to watch %s%s", w->root, path);
  }
out:
  buf_free(&full);
  return rc;
}

int watch_open(watch **out, const char *root, err *e) {
  *out = NULL;
  watch *w = calloc(1, sizeof *w);
  if (!w) return err_set(e, ERR_NOMEM, "no memory to watch %s", root);
  w->fd = -1;
  buf_init(&w->path, PATH_BYTES);
  int rc = 0;
  char *real = realpath(root, NULL);
  if (!real) {
    rc = err_sys(e, errno, "cannot watch %s", root);
    goto out;
  }
  size_t len = strlen(real);
  w->root = realloc(real, len + 2);
  if (!w->root) {
    free(real);
    rc = err_set(e, ERR_NOMEM, "no memory to watch %s", root);
    goto out;
  }
  if (w->root[len - 1] != '/') memcpy(w->root + len, "/", 2);
  w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (w->fd < 0) {
    rc = errno == EMFILE
             ? err_set(e, ERR_LIMIT,
                       "cannot watch %s: this user's inotify instances are used up; raise "
                       "fs.inotify.max_user_instances (sysctl), or the process's open files "
                       "(ulimit -n)",
                       root)
             : err_sys(e, errno, "cannot watch %s: inotify", root);
    goto out;
  }
  rc = watch_add(w, "", e);
  for (size_t i = 0; rc == 0 && i < w->room; i++)
    if (w->nodes[i].wd) w->root_wd = w->nodes[i].wd;
out:
  if (rc < 0)
    watch_close(w);
  else
    *out = w;
  return rc;
}

int watch_fd(const watch *w) {
  return w->fd;
}

void watch_close(watch *w) {
  if (!w) return;
  if (w->fd >= 0) io_system()->close(io_system(), w->fd);
  for (size_t i = 0; i < w->room; i++) free(w->nodes[i].path);
  for (size_t i = 0; i < w->departed; i++) free(w->departures[i].from);
  for (size_t i = 0; i < PASSAGES; i++) {
    free(w->passages[i].from);
    free(w->passages[i].to);
  }
  free(w->nodes);
  free(w->departures);
  free(w->root);
  buf_free(&w->path);
  free(w);
}
