/* store_file: makes objects.
 *
 * Nothing is written under its final name: data goes to <root>/.ckpt/tmp/<nonce>, is flushed, and
 * gets its name by link(2), which exactly one of many racers wins, or by rename(2) where it
 * replaces. A writer that dies leaves its temporary file there, where it does no harm. Staged
 * objects are made in the same way, below .ckpt/tmp/<their directory>, and become visible and
 * durable by publish().
 *
 * So a file that has its name is whole, and was flushed. A resume relies on that: such a file is
 * compared, not written. An unfinished file is written anew from its start, since a writer that was
 * only paused may still hold it open, and would write into the file that we had gone on with. */
#include "store_file.h"
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MODE = 0666, DIR_MODE = 0777, TRIES = 3 };

typedef struct file_writer {
  store_writer base;
  int fd;
  uint64_t size, done;
  bool staged;
  bool resume;  /* an object of the same bytes is as good as ours */
  bool over;    /* it replaces the object that is there */
  bool compare; /* an object stands already: `fd` reads it, and nothing is written */
  int failure;  /* sticky: after a failed write no object may be made */
  char path[FS_PATH_MAX];
  char key[STORE_KEY_MAX + 1];
} file_writer;

/* Flushes the entries of all directories on the way to `dir`. An existing directory proves nothing:
 * a process killed between mkdir and fsync leaves one that the next power loss takes away, with all
 * acknowledged objects in it. */
static int flush_way_to(file_store *s, const char *dir, err *e) {
  const io *io = s->base.io;
  char path[FS_PATH_MAX], up[FS_PATH_MAX];
  int rc = 0;
  memcpy(path, dir, strlen(dir) + 1);
  while (rc == 0 && strlen(path) > strlen(s->root)) {
    fs_parent(path, up);
    memcpy(path, up, sizeof path);
    rc = fs_sync_dir(io, path, e);
  }
  if (rc < 0) return rc;
  /* The directory above the root is not ours: it may be closed to us (/home), and then was there
   * before us. */
  fs_parent(s->root, up);
  rc = fs_sync_dir(io, up, e);
  return rc == ERR_ACCESS ? 0 : rc;
}

/* Makes the directory that `path` lies in, and makes it durable. This is done once for many
 * objects. */
static int make_parent(file_store *s, const char *path, err *e) {
  char dir[FS_PATH_MAX];
  fs_parent(path, dir);
  pthread_mutex_lock(&s->guard);
  bool known = strcmp(s->flushed, dir) == 0;
  pthread_mutex_unlock(&s->guard);
  if (known) return 0;
  int rc = fs_mkdirs(s->base.io, dir, DIR_MODE, e);
  if (rc == 0) rc = flush_way_to(s, dir, e);
  if (rc < 0) return rc;
  pthread_mutex_lock(&s->guard);
  memcpy(s->flushed, dir, strlen(dir) + 1);
  pthread_mutex_unlock(&s->guard);
  return 0;
}

void file_forget_flushed(file_store *s) {
  pthread_mutex_lock(&s->guard);
  s->flushed[0] = 0;
  pthread_mutex_unlock(&s->guard);
}

/* Nothing is written through a link, and the kernel's words for that help nobody. */
static int tmp_refused(const file_store *s, int rc, err *e) {
  if (rc == -ELOOP || rc == -ENOTDIR)
    return err_set(e, ERR_INVAL,
                   "%s/" FILE_STORE_TMP
                   " is, or lies below, a symbolic link or a file, and nothing "
                   "is written through one: remove it, the store makes its own directory",
                   s->root);
  if (rc == -EACCES)
    return err_set(e, ERR_ACCESS,
                   "cannot create a file in %s/" FILE_STORE_TMP
                   ": Permission denied. A target that a group shares needs it writable for the "
                   "group; what 1.0 made is its owner's alone: he can chmod 2770 it",
                   s->root);
  return err_sys(e, rc, "cannot create a file in %s/" FILE_STORE_TMP, s->root);
}

/* The umask and the set-group-ID bit of the directories above say who may write to the target: so
 * they do here, and below. */
static int make_tmp_dir(file_store *s, err *e) {
  char own[FS_PATH_MAX], tmp[FS_PATH_MAX];
  int rc = fs_join(own, s->root, ".ckpt", e);
  if (rc == 0) rc = fs_join(tmp, s->root, FILE_STORE_TMP, e);
  if (rc == 0) rc = fs_mkdirs(s->base.io, own, DIR_MODE, e);
  return rc == 0 ? fs_mkdirs(s->base.io, tmp, DIR_MODE, e) : rc;
}

/* Makes up the name of a temporary file that nobody else has, on any host. */
static int tmp_name(const file_store *s, char out[FS_PATH_MAX], err *e) {
  char dir[FS_PATH_MAX], nonce[33];
  int rc = io_nonce(s->base.io, nonce);
  if (rc < 0) return err_sys(e, rc, "%s: no random bytes for a temporary name", s->root);
  rc = fs_join(dir, s->root, FILE_STORE_TMP, e);
  return rc == 0 ? fs_join(out, dir, nonce, e) : rc;
}

/* A file that cannot be removed stays in the hidden directory and does no harm; the failure that
 * led here is the one to tell. */
static void discard(const file_store *s, const char *path) {
  s->base.io->unlink(s->base.io, AT_FDCWD, path, 0);
}

static int flush_name(const file_store *s, const spot *at, err *e) {
  char dir[FS_PATH_MAX];
  fs_parent(at->path, dir);
  return fs_sync_dir(s->base.io, dir, e);
}

/* Answers an if-absent whose name is taken. The directory is flushed first: the maker of the entry
 * may have died before it was durable, and the caller is about to rely on it. */
static int taken(const file_store *s, const spot *at, err *e) {
  int rc = flush_name(s, at, e);
  return rc < 0 ? rc : err_set(e, ERR_EXISTS, "%s is there already", at->path);
}

/* Checks that an object can be made there. */
static int may_make(const file_store *s, const spot *at, store_how how, err *e) {
  if (at->blocked)
    return err_set(e, ERR_INVAL,
                   "%s: a part of this path is a file, and a directory cannot have "
                   "its name",
                   at->path);
  if (at->st.st_mode && !S_ISREG(at->st.st_mode))
    return err_set(e, ERR_INVAL, "%s is a %s, so no object can have this name", at->path,
                   S_ISDIR(at->st.st_mode) ? "directory" : "special file");
  return at->st.st_mode && how == STORE_IF_ABSENT ? taken(s, at, e) : 0;
}

/* Gives `tmp` a name that nobody has yet. Where there are no hard links, and by the user's word
 * nobody else writes, a look and a rename do as well. `staged`: its directory is flushed later. */
static int name_new(const file_store *s, const char *tmp, const char *path, bool staged, err *e) {
  const io *io = s->base.io;
  err why = {0};
  int rc = staged ? fs_link(io, tmp, path, &why) : fs_link_new(io, tmp, path, &why);
  if (rc == ERR_UNSUPPORTED && s->base.single_writer) return fs_publish(io, tmp, path, e);
  if (rc < 0 && e) *e = why;
  return rc;
}

static int name_once(file_store *s, const char *tmp, const char *path, store_how how, err *e) {
  const io *io = s->base.io;
  int rc = make_parent(s, path, e);
  if (rc < 0) return rc;
  if (how == STORE_IF_ABSENT) return name_new(s, tmp, path, false, e);
  rc = io->rename(io, AT_FDCWD, tmp, AT_FDCWD, path, 0);
  if (rc < 0) return err_sys(e, rc, "cannot replace %s", path);
  char dir[FS_PATH_MAX];
  fs_parent(path, dir);
  return fs_sync_dir(io, dir, e);
}

/* Finds out why no name was given. The look before was a hint: somebody may have taken the name
 * since, or removed its directory after the link was made, and then the object was made and
 * removed. */
static int explain(file_store *s, int rc, spot *at, const char *key, store_how how, err *e) {
  if (rc == ERR_UNSUPPORTED && e)
    err_wrap(
        e,
        "the store %s must lie on one file system with hard links (a local disk, NFS, "
        "Lustre); point the target to one, or give `single_writer` if nobody else writes there",
        s->root);
  if (rc != ERR_EXISTS && rc != ERR_INVAL && rc != ERR_NOENT) return rc;
  int now = file_locate(&s->base, key, at, e);
  if (now == 0) now = may_make(s, at, how, e);
  if (now == 0 && rc == ERR_NOENT)
    now = err_set(e, ERR_CONFLICT, "%s: somebody removes its directory at the same time; try again",
                  at->path);
  return now < 0 ? now : rc;
}

/* A staged name is not flushed: publish() makes all names of the prefix durable at once. */
static int name_staged(const file_store *s, const char *tmp, const char *path, bool make_dir,
                       err *e) {
  char dir[FS_PATH_MAX];
  fs_parent(path, dir);
  int rc = make_dir ? fs_mkdirs(s->base.io, dir, DIR_MODE, e) : 0;
  return rc == 0 ? name_new(s, tmp, path, true, e) : rc;
}

/* Gives the flushed file `tmp` its name. No `tmp` is left, on failure too. */
static int give_name(file_store *s, const char *tmp, spot *at, const char *key, store_how how,
                     bool staged, err *e) {
  int rc = ERR_NOENT;
  for (int i = 0; i < TRIES && rc == ERR_NOENT; i++) {
    if (i) file_forget_flushed(s);
    rc = staged ? name_staged(s, tmp, at->path, i > 0, e) : name_once(s, tmp, at->path, how, e);
  }
  if (rc == 0) return 0;
  discard(s, tmp);
  return explain(s, rc, at, key, how, e);
}

int file_put(store *base, const char *key, const void *data, size_t len, store_how how, err *e) {
  file_store *s = (file_store *)base;
  spot at;
  char tmp[FS_PATH_MAX];
  int rc = file_locate(base, key, &at, e);
  if (rc == 0) rc = may_make(s, &at, how, e);
  if (rc == 0) rc = tmp_name(s, tmp, e);
  if (rc < 0) return rc;
  rc = fs_write_new(base->io, tmp, data, len, FILE_MODE, e);
  for (int i = 0; i < TRIES && rc == ERR_NOENT; i++)
    if ((rc = make_tmp_dir(s, e)) == 0) rc = fs_write_new(base->io, tmp, data, len, FILE_MODE, e);
  if (rc == 0) return give_name(s, tmp, &at, key, how, false, e);
  if (e && (e->sys == ELOOP || e->sys == ENOTDIR || e->sys == EACCES))
    rc = tmp_refused(s, -e->sys, e);
  discard(s, tmp); /* its reply may be lost, and the file made all the same */
  return rc;
}

/* ---- streaming ---- */

static int create(const io *io, const char *path) {
  return io->open(io, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
}

/* Unfinished objects of a prefix lie together, so that they go with it. */
static int tmp_of_prefix(const file_store *s, const char *prefix, char out[FS_PATH_MAX], err *e) {
  char tmp[FS_PATH_MAX];
  int rc = fs_join(tmp, s->root, FILE_STORE_TMP, e);
  return rc == 0 ? fs_join(out, tmp, prefix, e) : rc;
}

int file_remove_unfinished(file_store *s, const char *prefix, err *e) {
  char path[FS_PATH_MAX];
  int rc = tmp_of_prefix(s, prefix, path, e);
  return rc == 0 ? fs_remove_tree(s->base.io, path, e) : rc;
}

static int staged_tmp_name(const file_store *s, const char *key, char dir[FS_PATH_MAX],
                           char out[FS_PATH_MAX], err *e) {
  char parent[FS_PATH_MAX], nonce[33];
  fs_parent(key, parent);
  int rc = io_nonce(s->base.io, nonce);
  if (rc < 0) return err_sys(e, rc, "%s: no random bytes for a temporary name", s->root);
  rc = tmp_of_prefix(s, parent, dir, e);
  return rc == 0 ? fs_join(out, dir, nonce, e) : rc;
}

static int create_tmp(file_store *s, file_writer *w, err *e) {
  char dir[FS_PATH_MAX];
  int rc = w->staged ? staged_tmp_name(s, w->key, dir, w->path, e) : tmp_name(s, w->path, e);
  if (rc < 0) return rc;
  w->fd = create(s->base.io, w->path);
  /* It is tried more than once: whoever publishes or removes the prefix takes its empty directory
   * away. */
  for (int i = 0; i < TRIES && w->fd == -ENOENT; i++) {
    rc = make_tmp_dir(s, e);
    if (rc == 0 && w->staged) rc = fs_mkdirs(s->base.io, dir, DIR_MODE, e);
    if (rc < 0) return rc;
    w->fd = create(s->base.io, w->path);
  }
  if (w->fd >= 0) return 0;
  discard(s, w->path); /* its reply may be lost, and the file made all the same */
  return tmp_refused(s, w->fd, e);
}

static int has_other_bytes(const char *path, err *e) {
  return err_set(e, ERR_EXISTS, "%s is there already, with other bytes", path);
}

/* Opens an object that is there: an earlier try has made it, or somebody else has made something
 * else. */
static int open_to_compare(file_store *s, file_writer *w, const spot *at, err *e) {
  const io *io = s->base.io;
  if ((uint64_t)at->st.st_size != w->size) return has_other_bytes(at->path, e);
  w->compare = true;
  memcpy(w->path, at->path, sizeof w->path);
  /* It may be somebody else's by now: it is only compared, and no link leads out of the store. */
  int root = io->open(io, AT_FDCWD, s->root, O_PATH | O_DIRECTORY, 0);
  if (root < 0) return err_sys(e, root, "cannot open %s", s->root);
  w->fd = fs_open_beneath(io, root, w->key, O_RDONLY | O_NONBLOCK, 0);
  io->close(io, root);
  return w->fd < 0 ? err_sys(e, w->fd, "cannot open %s", at->path) : 0;
}

int file_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                    store_writer **out, err *e) {
  file_store *s = (file_store *)base;
  bool resume = how & STORE_RESUME, over = how & STORE_OVER;
  (void)cancel; /* a call writes no more than it is handed */
  *out = NULL;
  spot at;
  int rc = file_locate(base, key, &at, e);
  /* An existing object is no hindrance to a resume or a replacement. */
  if (rc == 0) rc = may_make(s, &at, resume || over ? STORE_REPLACE : STORE_IF_ABSENT, e);
  if (rc < 0) return rc;
  file_writer *w = malloc(sizeof *w);
  if (!w) return err_set(e, ERR_NOMEM, "no memory to write %s", at.path);
  w->base.store = base;
  w->size = size;
  w->done = 0;
  w->staged = how & STORE_STAGED;
  w->resume = resume;
  w->over = over;
  w->compare = false;
  w->failure = 0;
  memcpy(w->key, key, strlen(key) + 1);
  rc = at.st.st_mode && !over ? open_to_compare(s, w, &at, e) : create_tmp(s, w, e);
  if (rc < 0)
    free(w);
  else
    *out = &w->base;
  return rc;
}

/* True if the next bytes of the existing object are these. */
static int compare_next(file_writer *w, const char *data, size_t len, err *e) {
  const io *io = w->base.store->io;
  char there[1 << 14];
  while (len > 0) {
    size_t want = len < sizeof there ? len : sizeof there;
    ssize_t got = fs_fill(io, w->fd, there, want);
    if (got < 0) return err_sys(e, (int)got, "cannot read %s", w->path);
    if ((size_t)got < want || memcmp(there, data, want) != 0) return has_other_bytes(w->path, e);
    data += want, len -= want;
  }
  return 0;
}

int file_write(store_writer *writer, const void *data, size_t len, err *e) {
  file_writer *w = (file_writer *)writer;
  int rc = w->failure;
  if (rc < 0) return err_set(e, rc, "%s: a write failed before", w->path);
  if (len > w->size - w->done)
    rc = err_set(e, ERR_INVAL, "\"%.200s\": more than the announced %llu bytes", w->key,
                 (unsigned long long)w->size);
  else if (w->compare)
    rc = compare_next(w, data, len, e);
  else
    rc = fs_write_all(writer->store->io, w->fd, data, len, w->path, e);
  if (rc == 0)
    w->done += len;
  else
    w->failure = rc;
  return rc;
}

void file_write_abort(store_writer *writer) {
  file_writer *w = (file_writer *)writer;
  const io *io = writer->store->io;
  io->close(io, w->fd);
  if (!w->compare) discard((file_store *)writer->store, w->path);
  free(w);
}

static int check_whole(const file_writer *w, err *e) {
  if (w->failure)
    return err_set(e, w->failure, "%s: a write failed before, so nothing was made", w->path);
  if (w->done == w->size) return 0;
  return err_set(e, ERR_INVAL, "\"%.200s\": %llu bytes were written, %llu were announced", w->key,
                 (unsigned long long)w->done, (unsigned long long)w->size);
}

static int close_compared(file_writer *w, err *e) {
  w->base.store->io->close(w->base.store->io, w->fd); /* it was only read */
  return check_whole(w, e);
}

/* Flushes and closes. A full disk or quota may show only here, so both results are looked at; and a
 * descriptor whose flush failed is never flushed again, since the kernel may report success
 * then. */
static int finish_data(file_writer *w, err *e) {
  const io *io = w->base.store->io;
  int done, rc = check_whole(w, e);
  if (rc == 0 && !FAULT("file-not-flushed") && (done = io->fsync(io, w->fd)) < 0)
    rc = err_sys(e, done, "cannot flush %s", w->path);
  done = io->close(io, w->fd);
  if (rc == 0 && done < 0) rc = err_sys(e, done, "cannot close %s", w->path);
  return rc;
}

int file_write_close(store_writer *writer, err *e) {
  file_writer *w = (file_writer *)writer;
  file_store *s = (file_store *)writer->store;
  spot at = {0};
  /* An object that was compared was flushed before it had its name; its name may not be durable
   * yet. */
  int rc = w->compare ? close_compared(w, e) : finish_data(w, e);
  if (rc == 0) rc = fs_join(at.path, s->root, w->key, e);
  if (rc < 0 && !w->compare)
    discard(s, w->path);
  else if (rc == 0 && !w->compare)
    rc =
        give_name(s, w->path, &at, w->key, w->over ? STORE_REPLACE : STORE_IF_ABSENT, w->staged, e);
  else if (rc == 0 && !w->staged)
    rc = flush_name(s, &at, e);
  free(w);
  return rc;
}

int file_flush(store *base, const char *prefix, err *e) {
  file_store *s = (file_store *)base;
  spot at;
  int rc = file_locate(base, prefix, &at, e);
  if (rc == 0) rc = fs_sync_tree(base->io, at.path, e);
  return rc == 0 ? flush_way_to(s, at.path, e) : rc;
}

int file_publish(store *base, const char *from, const char *to, err *e) {
  file_store *s = (file_store *)base;
  spot source = {0}, target = {0};
  err why = {0};
  int rc = file_locate(base, from, &source, e);
  if (rc == 0) rc = file_locate(base, to, &target, e);
  if (rc < 0) return rc;
  if (target.st.st_mode) return taken(s, &target, e);
  if (target.blocked) return may_make(s, &target, STORE_IF_ABSENT, e);
  if (!S_ISDIR(source.st.st_mode))
    return err_set(e, ERR_NOENT, "%s: there is no such directory to publish", source.path);
  if (uri_path_within(source.path, target.path))
    return err_set(e, ERR_INVAL, "%s cannot be published below itself, as %s", source.path,
                   target.path);
  rc = fs_sync_tree(base->io, source.path, e);
  if (rc == 0) rc = make_parent(s, target.path, e);
  if (rc == 0) rc = fs_publish(base->io, source.path, target.path, e);
  if (rc == 0 && file_remove_unfinished(s, from, &why) < 0)
    log_say(&base->log, LOG_WARN, "what was cut there stays until gc comes: %s", why.text);
  return rc == ERR_EXISTS ? taken(s, &target, e) : rc;
}
