#include "folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "launch/rule/launch_record.h"
#include "prims/hash.h"

static const char room[] = "launch";

static int name_of(const char *launch, char hex[HASH_HEX_MAX], err *e) {
  digest d;
  int rc = hash_bytes(HASH_XXH3_128, launch, strlen(launch), &d, e);
  if (rc == 0) digest_hex(&d, hex);
  return rc;
}

int folder_path(const char *home, const char *launch, char out[FS_PATH_MAX], err *e) {
  char hex[HASH_HEX_MAX], all[FS_PATH_MAX];
  int rc = name_of(launch, hex, e);
  if (rc == 0) rc = fs_join(all, home, room, e);
  return rc < 0 ? rc : fs_join(out, all, hex, e);
}

typedef struct sweeping {
  const io *io;
  const char *all;
} sweeping;

/* Also what a former use of the same id has left: it speaks of tasks that are gone. */
static int remove_one(void *ctx, const fs_entry *entry, err *e) {
  const sweeping *s = ctx;
  char path[FS_PATH_MAX];
  int rc = fs_join(path, s->all, entry->name, e);
  return rc < 0 ? rc : fs_remove_tree(s->io, path, e);
}

int folder_make(const io *io, const char *home, const char *launch, char out[FS_PATH_MAX], err *e) {
  char all[FS_PATH_MAX];
  int rc = folder_path(home, launch, out, e);
  if (rc == 0) rc = fs_join(all, home, room, e);
  if (rc == 0) rc = fs_mkdirs(io, all, 0700, e);
  if (rc == 0) rc = fs_list(io, all, remove_one, &(sweeping){io, all}, e);
  return rc < 0 ? rc : fs_mkdirs(io, out, 0700, e);
}

static int write_text(const io *io, const char *path, const buf *text, err *e) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  int fd = io->open(io, AT_FDCWD, path, flags, 0600);
  if (fd < 0) return err_sys(e, fd, "write %s", path);
  int rc = fs_write_all(io, fd, text->data, text->len, path, e);
  int closed = io->close(io, fd); /* a network file system writes by then */
  return rc == 0 && closed < 0 ? err_sys(e, closed, "write %s", path) : rc;
}

int folder_put(const io *io, const char *folder, const char *name, const buf *text, err *e) {
  char path[FS_PATH_MAX], draft[FS_PATH_MAX];
  int rc = fs_join(path, folder, name, e);
  if (rc < 0) return rc;
  if (snprintf(draft, sizeof draft, "%s.new", path) >= (int)sizeof draft)
    return err_set(e, ERR_LIMIT, "%s: the path is too long", path);
  rc = write_text(io, draft, text, e);
  if (rc < 0) return rc;
  rc = io->rename(io, AT_FDCWD, draft, AT_FDCWD, path, 0);
  return rc < 0 ? err_sys(e, rc, "rename %s", draft) : 0;
}

int folder_get(const io *io, const char *folder, const char *name, buf *out, err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(path, folder, name, e);
  return rc < 0 ? rc : fs_read(io, path, LAUNCH_BYTES_MAX, out, e);
}
