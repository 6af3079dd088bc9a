/* store_file: compare-and-swap, for objects that one of several replaces who all saw the same
 * content.
 *
 * A rename replaces whatever stands there. So a writer that compares first holds a lock meanwhile:
 * on the directory itself, which leaves nothing behind and is the same one for everybody who
 * reaches it through another root. */
#include "store_file.h"

#include <string.h>

#include "prims/hash.h"
#include "prims/lock.h"

/* The lock is held for the time of one small write; a holder that takes longer hangs on its
 * disk. */
enum { WAIT_MS = 10000, STEP_MS = 5 };

static int tag_of(const buf *text, size_t from, char tag[STORE_TAG_MAX], err *e) {
  digest d;
  int rc = hash_bytes(HASH_XXH3_128, text->data ? text->data + from : "", text->len - from, &d, e);
  if (rc == 0) digest_hex(&d, tag);
  return rc;
}

int file_get_tagged(store *base, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e) {
  size_t from = out->len;
  int rc = file_get(base, key, out, e);
  return rc < 0 ? rc : tag_of(out, from, tag, e);
}

static int hold(const io *io, const char *dir, lock *held, err *e) {
  err why = {0};
  int rc = ERR_HELD;
  for (int waited = 0; rc == ERR_HELD && waited < WAIT_MS; waited += STEP_MS) {
    rc = lock_take_dir(dir, held, &why);
    if (rc == ERR_HELD) io->sleep(io, (int64_t)STEP_MS * 1000000);
  }
  if (rc == ERR_HELD)
    return err_set(e, rc, "%s: somebody else has been replacing an object there for %d s", dir,
                   WAIT_MS / 1000);
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (held->fd >= 0) return 0;
  return err_set(e, ERR_UNSUPPORTED,
                 "%s: this file system cannot lock a directory (NFS cannot), so nobody can tell "
                 "who of several replaced an object first",
                 dir);
}

int file_replace_if(store *base, const char *key, const void *data, size_t len, const char *tag,
                    err *e) {
  enum { MOST = 64 << 20 };
  char dir[FS_PATH_MAX], now[STORE_TAG_MAX];
  spot at;
  lock held = {.fd = -1};
  buf text;
  int rc = file_locate(base, key, &at, e);
  if (rc < 0) return rc;
  if (at.st.st_mode == 0) return err_set(e, ERR_NOENT, "%s is not there", at.path);
  fs_parent(at.path, dir);
  buf_init(&text, MOST);
  rc = hold(base->io, dir, &held, e);
  if (rc == 0) rc = file_get_tagged(base, key, &text, now, e);
  if (rc == 0 && strcmp(now, tag) != 0)
    rc = err_set(e, ERR_CONFLICT, "%s has been replaced by somebody else", at.path);
  if (rc == 0) rc = file_put(base, key, data, len, STORE_REPLACE, e);
  lock_drop(&held);
  buf_free(&text);
  return rc;
}
