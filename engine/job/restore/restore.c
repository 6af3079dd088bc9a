#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "commit/manifest_read.h"
#include "job/move/transfer.h"
#include "prims/fs.h"

int restore_manifest(store *s, const char *prefix, const runlog_commit *c, manifest *out, err *e) {
  char key[STORE_KEY_MAX];
  err why = {0};
  if (snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "/" : "", c->dir) >= (int)sizeof key)
    return err_set(e, ERR_LIMIT, "%s/%s: the name is too long", prefix, c->dir);
  int rc = manifest_read_proven(s, key, &c->root, &c->manifest, out,
                                &why); /* it covers the unit's name */
  if (rc == ERR_LIMIT)
    return err_set(e, ERR_FORMAT, "%s", why.text); /* no saved manifest is as large */
  if (rc == 0 && c->thin.globs.count) rc = manifest_thin(out, &c->thin.globs, &why);
  if (rc == ERR_NOMEM) manifest_free(out);
  if (rc < 0 && e) *e = why;
  if (rc == ERR_NOENT)
    return err_set(e, ERR_CORRUPT,
                   "%s was committed, but its manifest is missing: restore another one (`list` "
                   "shows them)",
                   c->dir);
  return rc;
}

/* Counts the names that a restore makes in the directory. */
static size_t name_count(const manifest *m) {
  return m->kind == MATCH_DIR ? 1 : m->count;
}

static const char *name_at(const manifest *m, size_t i) {
  return m->kind == MATCH_DIR ? m->unit : m->entries[i].name;
}

static int name_is_free(const io *io, const manifest *m, const char *dir, err *e) {
  for (size_t i = 0; i < name_count(m); i++) {
    char to[FS_PATH_MAX];
    struct stat st;
    int rc = fs_join(to, dir, name_at(m, i), e);
    if (rc < 0) return rc;
    if (io->lstat(io, AT_FDCWD, to, &st) == 0)
      return err_set(e, ERR_EXISTS, "%s is there already: move it away, or restore elsewhere", to);
  }
  return 0;
}

/* Takes back the first `count` names. An entry that is still in the staging was never shown, so its
 * name in `dir` is somebody else's. */
static void hide(const io *io, const manifest *m, size_t count, const char *stage,
                 const char *dir) {
  for (size_t i = 0; i < count; i++) {
    char staged[FS_PATH_MAX], shown[FS_PATH_MAX];
    struct stat st;
    if (fs_join(staged, stage, m->entries[i].name, NULL) == 0 &&
        fs_join(shown, dir, m->entries[i].name, NULL) == 0 &&
        io->lstat(io, AT_FDCWD, staged, &st) == -ENOENT)
      io->unlink(io, AT_FDCWD, shown, 0);
  }
}

/* A directory appears by one rename, and so does a file. The files of a group appear one by one, in
 * the order of their names. */
static int show(const io *io, const manifest *m, const char *stage, const char *dir, err *e) {
  for (size_t i = 0; i < name_count(m); i++) {
    char from[FS_PATH_MAX], to[FS_PATH_MAX];
    int rc = fs_join(from, stage, m->kind == MATCH_DIR ? "" : m->entries[i].name, e);
    if (rc == 0) rc = fs_join(to, dir, name_at(m, i), e);
    if (rc == 0) rc = fs_publish(io, from, to, e);
    if (rc < 0) {
      if (m->kind != MATCH_DIR) hide(io, m, i + 1, stage, dir);
      return rc;
    }
  }
  return 0;
}

int restore_unit(const restore *r, const manifest *m, const char *key, const char *dir, err *e) {
  char nonce[33], stage[FS_PATH_MAX], shown[FS_PATH_MAX];
  transfer t = {.io = r->io,
                .store = r->store,
                .pool = r->pool,
                .cancel = r->cancel,
                .later = true,
                .progress = r->progress,
                .nearby = r->nearby,
                .shown = shown};
  int rc = fs_join(shown, dir, m->kind == MATCH_DIR ? m->unit : "", e);
  if (rc == 0) rc = name_is_free(r->io, m, dir, e);
  if (rc < 0) return rc;
  rc = io_nonce(r->io, nonce);
  if (rc < 0) return err_sys(e, rc, "no random name for the staging of %s", m->unit);
  rc = fs_join(stage, r->staging, nonce, e);
  if (rc < 0) return rc;
  rc = fs_mkdirs(r->io, stage, 0700, e);
  if (rc == 0) rc = transfer_down(&t, m, key, stage, e);
  if (rc == 0 && r->may_show) rc = r->may_show(r->ctx, e);
  if (rc == 0) rc = show(r->io, m, stage, dir, e);
  if (rc < 0)
    fs_discard(r->io, stage, e);
  else if (m->kind != MATCH_DIR)
    rc = fs_remove_tree(r->io, stage, e);
  return rc;
}

/* ---- the order of times ---- */

/* A name that was saved again has its place by the last time. */
static bool is_last_of_name(const runlog_state *state, size_t i) {
  for (size_t k = i + 1; k < state->commit_count; k++)
    if (state->commits[k].life == RUNLOG_LIVE &&
        strcmp(state->commits[k].unit, state->commits[i].unit) == 0)
      return false;
  return true;
}

static struct timespec seconds_before(struct timespec t, int seconds) {
  t.tv_sec -= seconds;
  return t;
}

static bool is_before(struct timespec a, struct timespec b) {
  return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

int restore_order(const io *io, const char *dir, const runlog_state *state, err *e) {
  struct timespec next = {0};
  bool any = false;
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    char path[FS_PATH_MAX];
    struct stat st;
    if (c->kind != MATCH_DIR || c->life != RUNLOG_LIVE || !is_last_of_name(state, i)) continue;
    int rc = fs_join(path, dir, c->unit, e);
    if (rc < 0) return rc;
    if (io->lstat(io, AT_FDCWD, path, &st) < 0 || !S_ISDIR(st.st_mode)) continue;
    if (any && !is_before(st.st_mtim, next)) {
      /* The step is a second, since there are file systems that keep no finer times. */
      struct timespec times[2] = {st.st_atim, seconds_before(next, 1)};
      rc = io->utimens(io, AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
      if (rc < 0) return err_sys(e, rc, "set the time of %s", path);
      st.st_mtim = times[1];
    }
    next = st.st_mtim;
    any = true;
  }
  return 0;
}

/* ---- the staging ---- */

/* Opens the lock of a staging, as its owner: -errno, or the descriptor. */
static int open_lock(const io *io, const char *staging, int flags, char path[FS_PATH_MAX]) {
  int rc = fs_join(path, staging, "lock", NULL);
  if (rc < 0) return -ENAMETOOLONG;
  return io->open(io, AT_FDCWD, path, flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0600);
}

struct search {
  const io *io;
  const char *dir;
};

static bool is_staging(const char *name) {
  const size_t len = sizeof RESTORE_STAGING - 1;
  if (strncmp(name, RESTORE_STAGING, len) != 0) return false;
  name += len;
  return !*name ||
         (*name == '.' && strlen(name) == 33 && strspn(name + 1, "0123456789abcdef") == 32);
}

/* A staging without a lock was made just now, or its restore died before it could take one. */
static bool is_dead(const io *io, const char *path, const struct stat *st, lock *held) {
  const int64_t minute = (int64_t)60 * 1000000000;
  char lock_path[FS_PATH_MAX];
  if (!S_ISDIR(st->st_mode) || !fs_is_ours(io, path, st->st_uid)) return false;
  int fd = open_lock(io, path, 0, lock_path);
  if (fd == -ENOENT) return io_time_ns(st->st_mtim) < io->now(io, IO_WALL) - minute;
  return fd >= 0 && lock_take_open(fd, lock_path, held, NULL) == 0;
}

static int remove_dead(void *ctx, const fs_entry *entry, err *e) {
  const struct search *s = ctx;
  char path[FS_PATH_MAX];
  lock held = {.fd = -1};
  (void)e;
  bool dead = is_staging(entry->name) && fs_join(path, s->dir, entry->name, NULL) == 0 &&
              is_dead(s->io, path, entry->st, &held);
  lock_drop(&held);                            /* nobody comes back to it */
  if (dead) fs_remove_tree(s->io, path, NULL); /* the rest of it is in nobody's way */
  return S_ISDIR(entry->st->st_mode) ? FS_SKIP : 0;
}

static int make_staging(fs_held *h, const char *dir, restore_staging *out, err *e) {
  const io *io = fs_held_io(h);
  char nonce[33], name[64], path[FS_PATH_MAX], lock_path[FS_PATH_MAX];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "no random name for a staging in %s", dir);
  snprintf(name, sizeof name, RESTORE_STAGING ".%s", nonce);
  rc = fs_join(path, dir, name, e);
  if (rc == 0) rc = fs_hold_new(h, path, e);
  if (rc < 0) return rc;
  memcpy(out->path, path, strlen(path) + 1);
  int fd = open_lock(io, path, O_CREAT | O_EXCL, lock_path);
  if (fd < 0) return err_sys(e, fd, "cannot make %s", lock_path);
  rc = lock_take_open(fd, lock_path, &out->lock, e);
  return rc == ERR_UNSUPPORTED ? 0 : rc; /* without locks nobody can tell that it is dead, and it
                                          * stays */
}

int restore_remove_dead(const io *io, const char *dir, err *e) {
  struct search s = {io, dir};
  return fs_list(io, dir, remove_dead, &s, e);
}

int restore_open_staging(fs_held *h, const char *dir, restore_staging *out, err *e) {
  *out = (restore_staging){.lock = {.fd = -1}};
  int rc = restore_remove_dead(fs_held_io(h), dir, e);
  if (rc == 0) rc = make_staging(h, dir, out, e);
  return rc < 0 ? restore_close_staging(h, out, rc, e) : 0;
}

int restore_close_staging(fs_held *h, restore_staging *s, int rc, err *e) {
  err why = {0};
  if (!*s->path) return rc;
  /* The lock goes first: NFS and FUSE keep a file that is open under another name, and its
   * directory with it. If another restore takes the staging for dead from here on, it removes what
   * we remove. */
  lock_drop(&s->lock);
  if (rc < 0)
    fs_discard(fs_held_io(h), s->path, e);
  else if (fs_remove_tree(fs_held_io(h), s->path, &why) < 0)
    rc = err_set(e, why.code, "%s", why.text);
  fs_let_go(h, s->path);
  *s->path = 0;
  return rc;
}
