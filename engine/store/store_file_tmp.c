/* store_file: the files that killed writers left in the hidden directory of temporary files. A file
 * there has no name yet, so nobody can say whose it is: only its age tells that nobody is at work
 * on it. */
#include "store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const char hidden[] = FILE_STORE_TMP "/";

typedef struct telling {
  store_unfinished_fn *fn;
  void *ctx;
  int stopped; /* what fn returned */
} telling;

static int tell_one(void *ctx, const fs_entry *entry, err *e) {
  telling *t = ctx;
  char key[FS_PATH_MAX];
  if (!S_ISREG(entry->st->st_mode)) return 0;
  int rc = fs_join(key, FILE_STORE_TMP, entry->name, e);
  if (rc < 0) return rc;
  store_unfinished what = {.key = key,
                           .id = entry->name,
                           .begun_ns = io_time_ns(entry->st->st_mtim),
                           .bytes = (uint64_t)entry->st->st_size};
  t->stopped = t->fn(t->ctx, &what);
  return t->stopped ? ERR_CANCELED : 0;
}

int file_unfinished(store *base, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e) {
  char path[FS_PATH_MAX];
  telling t = {.fn = fn, .ctx = ctx};
  if (*prefix) return 0; /* they all lie at the root */
  int rc = fs_join(path, ((file_store *)base)->root, FILE_STORE_TMP, e);
  if (rc == 0) rc = fs_walk(base->io, path, tell_one, &t, e); /* staged ones lie deeper */
  if (t.stopped) return t.stopped;
  return rc == ERR_NOENT ? 0 : rc;
}

int file_discard(store *base, const store_unfinished *what, err *e) {
  const io *io = base->io;
  char path[FS_PATH_MAX];
  size_t len = sizeof hidden - 1;
  if (strncmp(what->key, hidden, len) != 0 || store_key_check(what->key, NULL) < 0)
    return err_set(e, ERR_INVAL, "\"%.200s\" is no temporary file", what->key);
  int rc = fs_join(path, ((file_store *)base)->root, what->key, e);
  if (rc < 0) return rc;
  rc = io->unlink(io, AT_FDCWD, path, 0);
  return rc < 0 && rc != -ENOENT ? err_sys(e, rc, "cannot remove %s", path) : 0;
}
