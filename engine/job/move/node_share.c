#include "node_share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "node-"
/* Locked by all that are there; who has it alone is the only one. */
#define HERE "here"

struct node_share {
  const io *io;
  const log_sink *log;
  char dir[FS_PATH_MAX];
  lock here;
  pthread_mutex_t mutex;
  node_claim *ours; /* those that we fetch */
};

/* ---- the meeting ---- */

/* In a directory of ours alone nobody else can put a lock, or a note that leads elsewhere. */
static int make_private(const io *io, const char *path, err *e) {
  struct stat st;
  int rc = io->mkdir(io, AT_FDCWD, path, 0700);
  if (rc < 0 && rc != -EEXIST) return err_sys(e, rc, "make %s", path);
  rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0) return 0;
  return err_set(e, ERR_ACCESS, "%s is not a private directory of this user", path);
}

/* True, and locked, if nobody is in that meeting. */
static bool is_left(const char *dir, lock *out) {
  char path[FS_PATH_MAX];
  return fs_join(path, dir, HERE, NULL) == 0 && lock_take(path, true, out, NULL) == 0;
}

struct search {
  const io *io;
  const char *dir, *own; /* path; name in it */
};

static int remove_dead(void *ctx, const fs_entry *entry, err *e) {
  const struct search *s = ctx;
  char path[FS_PATH_MAX];
  lock held = {.fd = -1};
  (void)e;
  if (!S_ISDIR(entry->st->st_mode)) return 0;
  if (strncmp(entry->name, PREFIX, sizeof PREFIX - 1) == 0 && strcmp(entry->name, s->own) != 0 &&
      fs_join(path, s->dir, entry->name, NULL) == 0 && is_left(path, &held))
    fs_remove_tree(s->io, path, NULL); /* what stays of it is in nobody's way */
  lock_drop(&held);
  return FS_SKIP;
}

static int remove_note(void *ctx, const fs_entry *entry, err *e) {
  const node_share *s = ctx;
  char path[FS_PATH_MAX];
  if (strcmp(entry->name, HERE) == 0) return 0;
  int rc = fs_join(path, s->dir, entry->name, e);
  return rc < 0 ? rc : fs_remove_tree(s->io, path, e);
}

/* True if the file that is locked still has its name: another one may just have removed it. */
static bool is_current(const node_share *s, const char *path) {
  struct stat mine, there;
  return s->io->fstat(s->io, s->here.fd, &mine) == 0 &&
         s->io->lstat(s->io, AT_FDCWD, path, &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

/* What stands there, and nobody is, was left by tasks of this launch's name that were killed. */
static int enter(node_share *s, err *e) {
  enum { TRIES = 20 };
  char path[FS_PATH_MAX];
  lock alone = {.fd = -1};
  int rc = fs_join(path, s->dir, HERE, e);
  for (int i = 0; rc == 0 && i < TRIES; i++) {
    if (i > 0) s->io->sleep(s->io, 10000000);
    rc = make_private(s->io, s->dir, e);
    if (rc == 0 && is_left(s->dir, &alone)) rc = fs_list(s->io, s->dir, remove_note, s, e);
    lock_drop(&alone);
    int held = rc == 0 ? lock_take(path, false, &s->here, NULL) : rc;
    if (held == 0 && is_current(s, path)) return 0;
    lock_drop(&s->here);
  }
  return rc < 0 ? rc : err_set(e, ERR_HELD, "%s is always just being removed", s->dir);
}

static int find_place(node_share *s, const char *root, const char *launch, const char *boot,
                      const char *target, err *e) {
  char parent[FS_PATH_MAX], name[64], hex[HASH_HEX_MAX];
  buf text;
  digest d;
  buf_init(&text, 1 << 20);
  buf_fmt(&text, "%s\n%s\n%s", launch, boot, target);
  int rc = buf_failed(&text) ? err_set(e, ERR_NOMEM, "out of memory")
                             : hash_bytes(HASH_XXH3_128, text.data, text.len, &d, e);
  buf_free(&text);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  snprintf(name, sizeof name, PREFIX "%.32s", hex);
  snprintf(parent, sizeof parent, "%.4000s/ckpt-lua-%ld", root, (long)geteuid());
  rc = make_private(s->io, parent, e);
  if (rc == 0) rc = fs_join(s->dir, parent, name, e);
  struct search dead = {s->io, parent, name};
  if (rc == 0) rc = fs_list(s->io, parent, remove_dead, &dead, e);
  return rc;
}

node_share *node_share_open(const io *io, const log_sink *log, const char *root, const char *launch,
                            const char *boot, const char *target) {
  node_share *s = calloc(1, sizeof *s);
  err why = {0};
  if (!s) return NULL;
  s->io = io;
  s->log = log;
  s->here.fd = -1;
  int rc = find_place(s, root, launch, boot, target, &why);
  if (rc == 0) rc = enter(s, &why);
  if (rc == 0) pthread_mutex_init(&s->mutex, NULL);
  if (rc == 0) return s;
  log_say(log, LOG_INFO, "what tasks of this node restore is not shared by them: %s", why.text);
  free(s);
  return NULL;
}

void node_share_close(node_share *s) {
  lock alone = {.fd = -1};
  err why = {0};
  if (!s) return;
  lock_drop(&s->here);
  if (is_left(s->dir, &alone) && fs_remove_tree(s->io, s->dir, &why) < 0)
    log_say(s->log, LOG_DEBUG, "%s", why.text); /* somebody has entered it meanwhile */
  lock_drop(&alone);
  pthread_mutex_destroy(&s->mutex);
  free(s);
}

/* ---- one file ---- */

/* Opens what a note leads to: the two paths, each ended by a NUL. What is no longer staged is shown. */
static int open_noted(const io *io, int note) {
  char text[2 * FS_PATH_MAX];
  ssize_t len = io->pread(io, note, text, sizeof text, 0);
  if (len <= 0 || text[len - 1]) return -1;
  const char *staged = text, *shown = text + strlen(text) + 1;
  if (shown >= text + len || shown + strlen(shown) + 1 != text + len) return -1;
  int fd = fs_open_regular(io, staged);
  return fd < 0 ? fs_open_regular(io, shown) : fd;
}

/* What one who waits has seen of the other: its two times, and since when they are the same. */
typedef struct sight {
  int64_t beat, block;             /* of the file */
  int64_t beat_since, block_since; /* IO_MONO */
} sight;

/* False: the other is stopped, or is held up for longer than a store is waited for. Who follows it would be held
 * up as long by the same store, so all of them together have one patience. */
static bool is_waited_for(const io *io, const char *path, sight *seen) {
  const int64_t s = 1000000000, now = io->now(io, IO_MONO);
  struct stat st;
  if (io->lstat(io, AT_FDCWD, path, &st) == 0) {
    int64_t beat = io_time_ns(st.st_atim), block = io_time_ns(st.st_mtim);
    if (block != seen->block) seen->block_since = now;
    if (block != seen->block || beat != seen->beat) seen->beat_since = now;
    seen->block = block;
    seen->beat = beat;
  }
  return now - seen->beat_since < 30 * s && now - seen->block_since < 600 * s;
}

/* Waits for the lock: ERR_HELD where who has it is not waited for. */
static int take(const node_share *s, const char *path, const atomic_int *cancel, lock *out) {
  const int64_t ms = 1000000;
  const io *io = s->io;
  sight seen = {.beat_since = io->now(io, IO_MONO), .block_since = io->now(io, IO_MONO)};
  for (int64_t pause = 5 * ms;; pause += pause < 200 * ms ? pause / 2 : 0) {
    int rc = lock_take(path, true, out, NULL);
    if (rc != ERR_HELD || (cancel && atomic_load(cancel))) return rc;
    if (!is_waited_for(io, path, &seen)) return rc;
    io->sleep(io, pause);
  }
}

/* A note of one that died, or whose files are gone, is none. Where there is none nothing is touched: that is no
 * block that came. */
static void forget_note(const node_share *s, const node_claim *c) {
  struct stat st;
  if (s->io->fstat(s->io, c->held.fd, &st) < 0 || st.st_size > 0)
    s->io->ftruncate(s->io, c->held.fd, 0);
}

static void note_ours(node_share *s, node_claim *c) {
  pthread_mutex_lock(&s->mutex);
  c->next = s->ours;
  s->ours = c;
  pthread_mutex_unlock(&s->mutex);
}

static void note_ended(node_share *s, const node_claim *c) {
  pthread_mutex_lock(&s->mutex);
  for (node_claim **at = &s->ours; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      break;
    }
  pthread_mutex_unlock(&s->mutex);
}

void node_share_claim(node_share *s, const digest *file, const atomic_int *cancel,
                      node_claim *out) {
  char hex[HASH_HEX_MAX];
  *out = (node_claim){.from = -1, .held = {.fd = -1}};
  if (!s) return;
  digest_hex(file, hex);
  if (fs_join(out->path, s->dir, hex, NULL) < 0) return;
  if (take(s, out->path, cancel, &out->held) < 0) return;
  out->from = open_noted(s->io, out->held.fd);
  if (out->from >= 0) {
    lock_drop(&out->held); /* the next one may read, too */
  } else {
    forget_note(s, out);
    note_ours(s, out);
  }
}

void node_share_alive(node_share *s, const node_claim *c) {
  const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
  if (c->held.fd >= 0) s->io->utimens(s->io, AT_FDCWD, c->path, now, AT_SYMLINK_NOFOLLOW);
}

void node_share_beat(node_share *s) {
  const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
  pthread_mutex_lock(&s->mutex);
  for (const node_claim *c = s->ours; c; c = c->next)
    s->io->utimens(s->io, AT_FDCWD, c->path, now, AT_SYMLINK_NOFOLLOW);
  pthread_mutex_unlock(&s->mutex);
}

void node_share_end(node_share *s, node_claim *c, const char *staged, const char *shown) {
  if (c->held.fd >= 0) note_ended(s, c);
  if (c->from >= 0) s->io->close(s->io, c->from);
  if (c->held.fd >= 0 && staged) {
    /* One that does not fit on its disk is no note, and the next one fetches. */
    if (fs_write_all(s->io, c->held.fd, staged, strlen(staged) + 1, c->path, NULL) == 0)
      fs_write_all(s->io, c->held.fd, shown, strlen(shown) + 1, c->path, NULL);
  }
  lock_drop(&c->held);
  c->from = -1;
}
