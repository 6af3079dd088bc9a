/* store_file: a directory as a store. Objects are plain files at <root>/<key>, so that any tool can
 * read them in place. Symbolic links below the root are refused: a removal through one would delete
 * somebody else's files. */
#include "store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* fs_walk goes no deeper, and an object that cannot be listed must not be put. */
enum { DEPTH_MAX = 64 };

static bool is_tmp(const char *key) {
  size_t len = sizeof FILE_STORE_TMP - 1;
  return strncmp(key, FILE_STORE_TMP, len) == 0 && (key[len] == 0 || key[len] == '/');
}

static int key_check(const char *key, err *e) {
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  if (is_tmp(key))
    return err_set(e, ERR_INVAL, "the key \"%.200s\" lies in %s, which the store keeps for itself",
                   key, FILE_STORE_TMP);
  int depth = 1;
  for (const char *at = key; *at; at++) depth += *at == '/';
  if (depth > DEPTH_MAX)
    return err_set(e, ERR_LIMIT, "the key \"%.200s\" has more than %d components", key, DEPTH_MAX);
  return 0;
}

/* Looks at each component of at->path behind the root, down to the first that is missing. */
static int look(const file_store *s, spot *at, err *e) {
  const io *io = s->base.io;
  char *part = at->path + strlen(s->root);
  while (part) {
    if (*part == '/') part++;
    char *end = strchr(part, '/');
    if (end) *end = 0;
    int rc = io->lstat(io, AT_FDCWD, at->path, &at->st);
    bool gone = rc == -ENOENT || rc == -ENOTDIR;
    if (rc < 0 && !gone)
      rc = err_sys(e, rc, "%s cannot be looked at", at->path);
    else if (rc == 0 && S_ISLNK(at->st.st_mode))
      rc = err_set(e, ERR_INVAL,
                   "%s is a symbolic link; a store has only directories and regular files",
                   at->path);
    if (end) *end = '/';
    at->blocked = rc == 0 && end && !S_ISDIR(at->st.st_mode);
    if (gone || at->blocked) at->st.st_mode = 0;
    if (rc < 0 || at->blocked) return gone ? 0 : rc;
    part = end;
  }
  return 0;
}

int file_locate(store *base, const char *key, spot *at, err *e) {
  const file_store *s = (const file_store *)base;
  int rc = key_check(key, e);
  if (rc == 0) rc = fs_join(at->path, s->root, key, e);
  if (rc < 0) return rc;
  at->st = (struct stat){0};
  at->blocked = false;
  return look(s, at, e);
}

/* ---- reading ---- */

static int no_object(err *e, const spot *at) {
  return err_set(e, ERR_NOENT, "%s is not there%s", at->path,
                 S_ISDIR(at->st.st_mode) ? ": it is a directory" : "");
}

static int locate_object(store *base, const char *key, spot *at, err *e) {
  int rc = file_locate(base, key, at, e);
  if (rc < 0) return rc;
  if (at->st.st_mode == 0 || S_ISDIR(at->st.st_mode)) return no_object(e, at);
  if (!S_ISREG(at->st.st_mode)) return err_set(e, ERR_INVAL, "%s is not a regular file", at->path);
  return 0;
}

/* Finds an object for those who read its data: where a link, or a device, has taken an object's
 * place, the object is damaged, whatever the link leads to. */
static int locate_data(store *base, const char *key, spot *at, err *e) {
  at->st = (struct stat){0};
  int rc = locate_object(base, key, at, e);
  if (rc != ERR_INVAL || at->st.st_mode == 0) return rc;
  if (e) e->code = ERR_CORRUPT;
  return ERR_CORRUPT;
}

static int file_exists(store *base, err *e) {
  const file_store *s = (const file_store *)base;
  int fd = base->io->open(base->io, AT_FDCWD, s->root, O_PATH | O_DIRECTORY, 0);
  if (fd == -ENOENT || fd == -ENOTDIR)
    return err_set(e, ERR_NOSTORE, "there is no directory %s", s->root);
  if (fd < 0) return err_sys(e, fd, "the directory %s cannot be opened", s->root);
  base->io->close(base->io, fd);
  return 0;
}

int file_get(store *base, const char *key, buf *out, err *e) {
  spot at;
  int rc = locate_data(base, key, &at, e);
  return rc == 0 ? fs_read(base->io, at.path, out->max - out->len, out, e) : rc;
}

static ssize_t read_at(const io *io, int fd, uint64_t at, char *to, size_t len) {
  size_t got = 0;
  /* The kernel refuses a range that ends behind the largest offset; no file reaches so far. */
  uint64_t room = at < INT64_MAX ? INT64_MAX - at : 0;
  if (len > room) len = (size_t)room;
  while (got < len) {
    ssize_t n = io->pread(io, fd, to + got, len - got, (off_t)(at + got));
    if (n < 0) return n;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (ssize_t)got;
}

static ssize_t file_read(store *base, const char *key, uint64_t from, void *to, size_t len,
                         err *e) {
  const io *io = base->io;
  spot at;
  int rc = locate_data(base, key, &at, e);
  if (rc < 0) return rc;
  int fd = io->open(io, AT_FDCWD, at.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open %s", at.path);
  ssize_t got = read_at(io, fd, from, to, len);
  io->close(io, fd); /* nothing was written: nothing can be lost */
  return got < 0 ? err_sys(e, (int)got, "cannot read %s", at.path) : got;
}

static int file_head(store *base, const char *key, store_object *out, err *e) {
  spot at;
  int rc = locate_object(base, key, &at, e);
  if (rc == 0)
    *out = (store_object){.size = (uint64_t)at.st.st_size, .mtime_ns = io_time_ns(at.st.st_mtim)};
  return rc;
}

typedef struct listing {
  file_store *store;
  const char *prefix;
  bool delimited;
  bool dirs; /* only directories are told, empty ones too */
  store_list_fn *fn;
  void *ctx;
  int stopped; /* what fn returned */
} listing;

static int list_below(file_store *s, const char *path, listing *l, err *e);

static int stop_at_once(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)ctx, (void)key, (void)is_prefix, (void)object;
  return 1;
}

/* A directory without an object in it is no prefix: a bucket would not know of it. A directory that
 * we may not look into counts as full. */
static int has_objects(const listing *l, const char *key, err *e) {
  char path[FS_PATH_MAX];
  listing any = {.store = l->store, .prefix = key, .fn = stop_at_once};
  int rc = fs_join(path, l->store->root, key, e);
  if (rc == 0) rc = list_below(l->store, path, &any, e);
  return rc == ERR_ACCESS ? 1 : rc;
}

static int visit(void *ctx, const fs_entry *entry, err *e) {
  listing *l = ctx;
  char key[FS_PATH_MAX];
  bool dir = S_ISDIR(entry->st->st_mode);
  int rc = fs_join(key, l->prefix, entry->name, e);
  if (rc < 0) return rc;
  if (is_tmp(key)) return FS_SKIP;
  if (!dir && (l->dirs || !S_ISREG(entry->st->st_mode))) return 0;
  if (dir && !l->delimited) return 0;
  if (dir && !l->dirs && (rc = has_objects(l, key, e)) <= 0) return rc < 0 ? rc : FS_SKIP;
  if (strlen(key) > STORE_KEY_MAX) {
    log_say(&l->store->base.log, LOG_WARN, "%s/%s is left out: its name is too long for a key",
            l->store->root, key);
    return FS_SKIP;
  }
  store_object object = {.size = (uint64_t)entry->st->st_size,
                         .mtime_ns = io_time_ns(entry->st->st_mtim)};
  l->stopped = l->fn(l->ctx, key, dir, dir && !l->dirs ? NULL : &object);
  if (l->stopped) return ERR_CANCELED;
  return dir ? FS_SKIP : 0;
}

static int list_below(file_store *s, const char *path, listing *l, err *e) {
  const io *io = s->base.io;
  int rc = l->delimited ? fs_list(io, path, visit, l, e) : fs_walk(io, path, visit, l, e);
  if (l->stopped) return l->stopped;
  return rc == ERR_NOENT ? 0 : rc;
}

static int list_it(file_store *s, listing *l, err *e) {
  spot at;
  if (!*l->prefix) {
    /* The root alone may be a link to a directory: "/." goes through it. */
    int rc = fs_join(at.path, s->root, ".", e);
    return rc == 0 ? list_below(s, at.path, l, e) : rc;
  }
  int rc = file_locate(&s->base, l->prefix, &at, e);
  return rc == 0 && S_ISDIR(at.st.st_mode) ? list_below(s, at.path, l, e) : rc;
}

static int file_list(store *base, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                     err *e) {
  file_store *s = (file_store *)base;
  listing l = {.store = s, .prefix = prefix, .delimited = delimited, .fn = fn, .ctx = ctx};
  return list_it(s, &l, e);
}

static int file_list_dirs(store *base, const char *prefix, store_list_fn *fn, void *ctx, err *e) {
  file_store *s = (file_store *)base;
  listing l = {.store = s, .prefix = prefix, .delimited = true, .dirs = true, .fn = fn, .ctx = ctx};
  return list_it(s, &l, e);
}

/* ---- whose it is ---- */

/* The owner must be us, or the one that the file system gives to all files that are made there. */
typedef struct asked {
  const io *io;
  char dir[FS_PATH_MAX];
  uid_t owner; /* found to be ours */
} asked;

static int is_ours(asked *a, const char *path, const struct stat *st, err *e) {
  if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
    return err_set(e, ERR_ACCESS, "%s is neither a directory nor a regular file", path);
  if (st->st_uid != a->owner && !fs_is_ours(a->io, a->dir, st->st_uid))
    return err_set(e, ERR_ACCESS, "%s was made by user %ld, not by this one", path,
                   (long)st->st_uid);
  a->owner = st->st_uid;
  return 0;
}

static int is_entry_ours(void *ctx, const fs_entry *entry, err *e) {
  return is_ours(ctx, entry->name, entry->st, e);
}

static int file_check_owner(store *base, const char *prefix, err *e) {
  asked a = {.io = base->io, .owner = geteuid()};
  spot at;
  int rc = file_locate(base, prefix, &at, e);
  if (rc < 0 || at.st.st_mode == 0) return rc;
  fs_parent(at.path, a.dir);
  rc = is_ours(&a, at.path, &at.st, e);
  return rc == 0 ? fs_walk(base->io, at.path, is_entry_ours, &a, e) : rc;
}

/* ---- removing ---- */

/* Makes a removal durable; also a removal that somebody else began and did not live to flush. */
static int flush_removal(store *base, const spot *at, err *e) {
  char dir[FS_PATH_MAX];
  fs_parent(at->path, dir);
  int rc = fs_sync_dir(base->io, dir, e);
  return rc == ERR_NOENT ? 0 : rc;
}

static int file_remove(store *base, const char *key, err *e) {
  const io *io = base->io;
  spot at;
  int rc = locate_object(base, key, &at, e);
  if (rc < 0 && rc != ERR_NOENT) return rc;
  if (rc == 0) {
    rc = io->unlink(io, AT_FDCWD, at.path, 0);
    if (rc < 0 && rc != -ENOENT) return err_sys(e, rc, "cannot remove %s", at.path);
  }
  return flush_removal(base, &at, e);
}

static int file_remove_prefix(store *base, const char *prefix, err *e) {
  file_store *s = (file_store *)base;
  spot at;
  int rc = file_locate(base, prefix, &at, e);
  if (rc == 0 && S_ISDIR(at.st.st_mode)) {
    file_forget_flushed(s);
    rc = fs_remove_tree(base->io, at.path, e);
  }
  if (rc == 0) rc = file_remove_unfinished(s, prefix, e);
  return rc == 0 ? flush_removal(base, &at, e) : rc;
}

/* Removes the directories from `dir` up to `top` that hold nothing any more. */
static void remove_empty(const io *io, const char *dir, const char *top) {
  char path[FS_PATH_MAX], up[FS_PATH_MAX];
  memcpy(path, dir, strlen(dir) + 1);
  while (strncmp(path, top, strlen(top)) == 0 &&
         io->unlink(io, AT_FDCWD, path, AT_REMOVEDIR) == 0) {
    fs_parent(path, up);
    memcpy(path, up, sizeof path);
  }
}

/* The removals are not flushed one by one: a caller that removes many has written down that they
 * are to go. */
static int file_remove_below(store *base, const char *prefix, const char *const *keys, size_t count,
                             err *e) {
  file_store *s = (file_store *)base;
  char dir[FS_PATH_MAX] = "", last[FS_PATH_MAX] = "";
  spot at, top;
  int rc = file_locate(base, prefix, &top, e);
  file_forget_flushed(s);
  for (size_t i = 0; rc == 0 && i < count; i++) {
    rc = locate_object(base, keys[i], &at, e);
    int gone = rc == 0 ? base->io->unlink(base->io, AT_FDCWD, at.path, 0) : 0;
    if (rc == ERR_NOENT) rc = 0;
    if (gone < 0 && gone != -ENOENT) rc = err_sys(e, gone, "cannot remove %s", at.path);
    fs_parent(at.path, dir);
    if (*last && strcmp(dir, last) != 0) remove_empty(base->io, last, top.path);
    memcpy(last, dir, sizeof last);
  }
  if (*last) remove_empty(base->io, last, top.path);
  return rc == 0 ? flush_removal(base, &top, e) : rc;
}

/* ---- the handle ---- */

static const int64_t LAG_NS = INT64_C(120000000000);

static int file_open(const uri *where, const io *io, const log_sink *log, store **out, err *e) {
  fs_kind kind;
  *out = NULL;
  if (where->path[0] != '/')
    return err_set(e, ERR_INVAL, "\"%.200s\": a file store needs an absolute path", where->path);
  file_store *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "no memory to open the store %s", where->path);
  int rc = fs_join(s->root, where->path, "", e);
  if (rc == 0) rc = fs_check_way(io, s->root, e);
  if (rc == 0) rc = fs_held_new(io, &s->held, e);
  /* The root is held by its name: a store may be made, removed and made again while it is open. */
  if (rc == 0) rc = fs_hold_by_name(s->held, s->root, e);
  if (rc < 0) {
    fs_held_free(s->held);
    free(s);
    return rc;
  }
  s->base = (store){.ops = &store_file_ops, .io = fs_held_io(s->held)};
  /* A client keeps in mind which names a directory does not have. */
  if (fs_kind_of(s->root, &kind, NULL) == 0 && kind.remote_writers) s->base.lag_ns = LAG_NS;
  if (log) s->base.log = *log;
  pthread_mutex_init(&s->guard, NULL);
  *out = &s->base;
  return 0;
}

static void file_close(store *base) {
  file_store *s = (file_store *)base;
  pthread_mutex_destroy(&s->guard);
  fs_held_free(s->held);
  free(s);
}

const store_ops store_file_ops = {
    .version = 1,
    .scheme = "file",
    .caps = STORE_CAP_IF_ABSENT | STORE_CAP_PUBLISH | STORE_CAP_RESUME,
    .open = file_open,
    .close = file_close,
    .exists = file_exists,
    .get = file_get,
    .read = file_read,
    .head = file_head,
    .put = file_put,
    .list = file_list,
    .remove = file_remove,
    .remove_prefix = file_remove_prefix,
    .remove_below = file_remove_below,
    .write_open = file_write_open,
    .write = file_write,
    .write_close = file_write_close,
    .write_abort = file_write_abort,
    .publish = file_publish,
    .unfinished = file_unfinished,
    .discard = file_discard,
    .get_tagged = file_get_tagged,
    .replace_if = file_replace_if,
    .flush = file_flush,
    .list_dirs = file_list_dirs,
    .check_owner = file_check_owner,
};
