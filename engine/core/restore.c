#include "restore.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/settle.h"
#include "core/transfer.h"
#include "prims/fs.h"

int restore_manifest(store *s, const char *prefix, const runlog_commit *c, manifest *out, err *e) {
  char key[STORE_KEY_MAX];
  if (snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "/" : "", c->dir) >= (int)sizeof key)
    return err_set(e, ERR_LIMIT, "%s/%s: the name is too long", prefix, c->dir);
  int rc = settle_read_manifest(s, key, out, e);
  if (rc == ERR_NOENT)
    return err_set(e, ERR_CORRUPT, "%s was committed, but its manifest is missing: %s", c->dir,
                   "restore another one (ckpt-lua ls shows them)");
  if (rc < 0) return rc;
  if (digest_equal(&out->root, &c->root)) return 0;
  manifest_free(out);
  return err_set(e, ERR_CORRUPT, "%s: its manifest is not the one that was committed", c->dir);
}

static int exists(const io *io, const char *path, err *e) {
  struct stat st;
  if (io->lstat(io, AT_FDCWD, path, &st) < 0) return 0;
  return err_set(e, ERR_EXISTS, "%s is there already: move it away, or restore elsewhere", path);
}

/* A directory appears by one rename, and so does a file. The files of a group appear one by one,
 * in the order of their names, each whole. */
static int show(const restore *r, const manifest *m, const char *from, const char *dir, err *e) {
  char source[FS_PATH_MAX], to[FS_PATH_MAX];
  if (m->kind == MATCH_DIR) {
    int rc = fs_join(to, dir, m->unit, e);
    return rc < 0 ? rc : fs_publish(r->io, from, to, e);
  }
  for (size_t i = 0; i < m->count; i++) {
    int rc = fs_join(source, from, m->entries[i].name, e);
    if (rc == 0) rc = fs_join(to, dir, m->entries[i].name, e);
    if (rc == 0) rc = fs_publish(r->io, source, to, e);
    if (rc < 0) return rc;
  }
  return 0;
}

static int names_free(const restore *r, const manifest *m, const char *dir, err *e) {
  char to[FS_PATH_MAX];
  size_t count = m->kind == MATCH_DIR ? 1 : m->count;
  for (size_t i = 0; i < count; i++) {
    int rc = fs_join(to, dir, m->kind == MATCH_DIR ? m->unit : m->entries[i].name, e);
    if (rc == 0) rc = exists(r->io, to, e);
    if (rc < 0) return rc;
  }
  return 0;
}

int restore_unit(const restore *r, const manifest *m, const char *key, const char *dir, err *e) {
  char nonce[33], stage[FS_PATH_MAX];
  err ignored = {0};
  transfer t = {.io = r->io, .store = r->store, .pool = r->pool, .cancel = r->cancel};
  int rc = names_free(r, m, dir, e);
  if (rc < 0) return rc;
  int drawn = io_nonce(r->io, nonce);
  if (drawn < 0) return err_sys(e, drawn, "draw a random name");
  rc = fs_join(stage, r->staging, nonce, e);
  if (rc == 0) rc = fs_mkdirs(r->io, stage, 0700, e);
  if (rc < 0) return rc;
  rc = transfer_down(&t, m, key, stage, e);
  if (rc == 0) rc = show(r, m, stage, dir, e);
  if (fs_remove_tree(r->io, stage, &ignored) < 0 && rc == 0)
    rc = err_set(e, ignored.code, "%s", ignored.text);
  return rc;
}
