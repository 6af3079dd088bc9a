#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prims/fs.h"

enum { FORMAT = 1, TEXT_MAX = 16 << 10, WHERE_MAX = 80 };

/* The content of the file. */
typedef struct record {
  identity is;
  char where[WHERE_MAX];
} record;

/* Describes the directory in a text that is only ever compared. A file system that keeps no births
 * says so each time. */
static int describe(const io *io, const char *state, char where[WHERE_MAX], err *e) {
  struct stat st;
  int64_t birth = 0;
  int fd = io->open(io, AT_FDCWD, state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "open the state directory %s", state);
  int rc = io->fstat(io, fd, &st);
  int born = rc == 0 && io->birth ? io->birth(io, fd, &birth) : -ENODATA;
  io->close(io, fd); /* nothing was written */
  if (rc == 0 && born < 0 && born != -ENODATA) rc = born;
  if (rc < 0) return err_sys(e, rc, "look at the state directory %s", state);
  int len = snprintf(where, WHERE_MAX, "%" PRIx64 ":%" PRIx64 ":", (uint64_t)st.st_dev,
                     (uint64_t)st.st_ino);
  snprintf(where + len, WHERE_MAX - (size_t)len, born == 0 ? "%" PRId64 : "-", birth);
  return 0;
}

/* Copies a name; "" if it is absent. */
static int copy_name(const json_t *value, const char *key, const char *path, char *out, size_t room,
                     err *e) {
  char *text = NULL;
  if (!json_object_get(value, key)) return 0;
  int rc = js_get_name(value, key, path, &text, e);
  if (rc == 0 && strlen(text) >= room)
    rc = err_set(e, ERR_FORMAT, "%s: its \"%s\" is too long", path, key);
  if (rc == 0) memcpy(out, text, strlen(text) + 1);
  free(text);
  return rc;
}

static int parse(const char *path, const buf *text, record *out, err *e) {
  json_t *value = NULL;
  int rc = js_read(text, path, FORMAT, &value, e);
  if (rc == 0) rc = js_copy_str(value, "id", path, out->is.id, sizeof out->is.id, e);
  if (rc == 0) rc = js_copy_str(value, "directory", path, out->where, sizeof out->where, e);
  if (rc == 0) rc = js_copy_str(value, "boot", path, out->is.boot, sizeof out->is.boot, e);
  if (rc == 0) rc = copy_name(value, "socket", path, out->is.socket, sizeof out->is.socket, e);
  if (rc == 0) rc = copy_name(value, "launch", path, out->is.launch, sizeof out->is.launch, e);
  if (rc == 0) rc = copy_name(value, "host", path, out->is.host, sizeof out->is.host, e);
  if (rc == 0) rc = copy_name(value, "waits", path, out->is.waits, sizeof out->is.waits, e);
  if (rc == 0 && (strlen(out->is.id) != 32 || strspn(out->is.id, "0123456789abcdef") != 32))
    rc = err_set(e, ERR_FORMAT, "%s: no run of ours is named so", path);
  json_decref(value);
  return rc;
}

static int read_record(const io *io, const char *state, record *out, uid_t *owner, err *e) {
  char path[FS_PATH_MAX];
  struct stat st;
  buf text;
  *out = (record){0};
  int rc = fs_join(path, state, "identity", e);
  if (rc < 0) return rc;
  rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  *owner = st.st_uid;
  buf_init(&text, TEXT_MAX);
  rc = fs_read(io, path, TEXT_MAX, &text, e);
  if (rc == 0) rc = parse(path, &text, out, e);
  buf_free(&text);
  if (rc < 0) *out = (record){0};
  return rc;
}

/* Checks that the lock which is held is this directory's. Its path may lead elsewhere than when it
 * was taken: the holder of another directory's lock knows nothing of the processes of this one. */
static int check_lock(const io *io, const char *state, const lock *held, err *e) {
  char path[FS_PATH_MAX];
  struct stat ours, there;
  int rc = fs_join(path, state, "lock", e);
  if (rc < 0) return rc;
  rc = io->fstat(io, held->fd, &ours);
  if (rc >= 0) rc = io->lstat(io, AT_FDCWD, path, &there);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) return 0;
  return err_set(e, ERR_CONFLICT, "%s is not the file that was locked: somebody moves %s", path,
                 state);
}

int identity_take(const io *io, const char *state, const lock *held, const char *boot,
                  identity *out, err *e) {
  record seen;
  uid_t owner;
  char where[WHERE_MAX];
  err why = {0};
  *out = (identity){0};
  int rc = check_lock(io, state, held, e);
  if (rc == 0) rc = describe(io, state, where, e);
  if (rc < 0) return rc;
  rc = read_record(io, state, &seen, &owner, &why);
  /* A file that cannot be understood names nobody; one that cannot be read may be ours all the
   * same. */
  if (rc < 0 && rc != ERR_NOENT && rc != ERR_FORMAT && rc != ERR_VERSION && rc != ERR_LIMIT)
    return err_set(e, rc, "%s", why.text);
  /* Another user could name the id of a run of ours elsewhere. */
  if (rc == 0 && !fs_is_ours(io, state, owner)) seen = (record){0};
  if (rc == 0 && strcmp(seen.where, where) == 0 && strcmp(seen.is.boot, boot) == 0) {
    *out = seen.is;
    return 0;
  }
  memcpy(out->former, seen.is.id, sizeof out->former);
  rc = io_nonce(io, out->id);
  return rc < 0 ? err_sys(e, rc, "draw a random name") : 0;
}

int identity_write(const io *io, const char *state, const char *boot, const identity *id, err *e) {
  char path[FS_PATH_MAX], where[WHERE_MAX];
  buf text;
  int rc = fs_join(path, state, "identity", e);
  if (rc == 0) rc = describe(io, state, where, e);
  if (rc < 0) return rc;
  json_t *value = json_pack("{s:i, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "format", FORMAT,
                            "reader", FORMAT, "id", id->id, "directory", where, "boot", boot,
                            "socket", js_name_new(id->socket), "launch", js_name_new(id->launch),
                            "host", js_name_new(id->host), "waits", js_name_new(id->waits));
  buf_init(&text, TEXT_MAX);
  rc = value ? js_print(value, &text, e) : err_set(e, ERR_NOMEM, "%s: out of memory", path);
  if (rc == 0) buf_add(&text, "\n", 1);
  if (rc == 0 && buf_failed(&text)) rc = err_set(e, buf_failed(&text), "%s is too long", path);
  if (rc == 0) rc = fs_replace(io, path, text.data, text.len, 0600, e);
  buf_free(&text);
  json_decref(value);
  return rc;
}

int identity_find(const io *io, const char *state, const char *boot, identity *out, err *e) {
  record seen;
  uid_t owner;
  char where[WHERE_MAX];
  *out = (identity){0};
  int rc = read_record(io, state, &seen, &owner, e);
  if (rc == 0) rc = describe(io, state, where, e);
  if (rc < 0) return rc;
  if (strcmp(seen.is.boot, boot) != 0) { /* on that boot the same directory may have had another
                                          * device */
    memcpy(out->host, seen.is.host, sizeof out->host);
    memcpy(out->boot, seen.is.boot, sizeof out->boot);
    return err_set(e, ERR_NOENT, "%s/identity was written on another boot", state);
  }
  if (strcmp(seen.where, where) != 0)
    return err_set(e, ERR_NOENT, "%s/identity was written for another directory", state);
  *out = seen.is;
  return 0;
}
