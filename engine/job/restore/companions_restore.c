#include "companions_restore.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "commit/companions_stored.h"
#include "job/move/transfer.h"
#include "prims/fs.h"

/* ---- what is there ---- */

/* BLOCKED: a link or a file stands where a directory above it should. */
typedef enum standing { ABSENT, EQUAL, OTHER, BLOCKED } standing;

static standing link_standing(const io *io, const manifest_entry *entry, const char *path) {
  char target[FS_PATH_MAX];
  ssize_t len = io->readlink(io, AT_FDCWD, path, target, sizeof target - 1);
  if (len < 0) return OTHER;
  target[len] = 0;
  return strcmp(target, entry->target) == 0 ? EQUAL : OTHER;
}

/* Tells whether a file of the right size has the right bytes. */
static int same_bytes(const io *io, const manifest *m, const manifest_entry *entry,
                      const char *path, bool *same, err *e) {
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (fd < 0) return err_sys(e, fd, "open %s", path);
  size_t room = entry->size < HASH_BLOCK ? (size_t)entry->size + 1 : HASH_BLOCK;
  char *data = malloc(room);
  int rc = data ? 0 : err_set(e, ERR_NOMEM, "compare %s: out of memory", path);
  *same = true;
  for (size_t i = 0; rc == 0 && *same && i < hash_block_count(entry->size); i++) {
    uint64_t left = entry->size - (uint64_t)i * HASH_BLOCK;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    digest d;
    ssize_t got = fs_fill(io, fd, data, want);
    if (got < 0) rc = err_sys(e, (int)got, "read %s", path);
    if (rc == 0) rc = hash_bytes(m->hash, data, (size_t)got, &d, e);
    if (rc == 0) *same = digest_equal(&d, &entry->blocks[i]);
  }
  free(data);
  io->close(io, fd);
  return rc;
}

static int standing_of(const io *io, const manifest *m, const manifest_entry *entry,
                       const char *path, standing *out, err *e) {
  struct stat st;
  bool same = false;
  int rc = io->lstat(io, AT_FDCWD, path, &st);
  *out = rc == -ENOENT ? ABSENT : rc < 0 ? BLOCKED : OTHER;
  if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP) return 0;
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (entry->type == MANIFEST_LINK && S_ISLNK(st.st_mode)) *out = link_standing(io, entry, path);
  if (entry->type != MANIFEST_FILE || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != entry->size)
    return 0;
  rc = same_bytes(io, m, entry, path, &same, e);
  if (rc == 0 && same) *out = EQUAL;
  return rc;
}

static int blocked(const char *path, err *e) {
  return err_set(e, ERR_EXISTS,
                 "%s, which was saved with the checkpoint, would lie below a symbolic link or a "
                 "file, and nothing is written through one: move that away, restore elsewhere, or "
                 "restore the checkpoint alone (`alone`)",
                 path);
}

int companions_check_free(const io *io, const manifest *m, const char *dir, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < m->count; i++) {
    const manifest_entry *entry = &m->entries[i];
    char path[FS_PATH_MAX];
    standing there;
    if (entry->type == MANIFEST_DIR) continue;
    rc = fs_join(path, dir, entry->name, e);
    if (rc == 0) rc = standing_of(io, m, entry, path, &there, e);
    if (rc == 0 && there == OTHER)
      rc = err_set(e, ERR_EXISTS,
                   "%s, which was saved with the checkpoint, is there already and differs: move it "
                   "away, restore elsewhere, or restore the checkpoint alone (`alone`)",
                   path);
    if (rc == 0 && there == BLOCKED) rc = blocked(path, e);
  }
  return rc;
}

/* ---- what is missing ---- */

static int add_copy(manifest *part, const manifest_entry *entry, err *e) {
  manifest_entry *copy = manifest_add(part, entry->type, entry->name, entry->target);
  size_t count = hash_block_count(entry->size);
  if (copy) {
    copy->mode = entry->mode;
    copy->mtime_ns = entry->mtime_ns;
    copy->size = entry->size;
    copy->file = entry->file;
    if (entry->type != MANIFEST_FILE) return 0;
    copy->blocks = calloc(count ? count : 1, sizeof *copy->blocks);
  }
  if (!copy || !copy->blocks)
    return err_set(e, ERR_NOMEM, "restore %s: out of memory", entry->name);
  if (count) memcpy(copy->blocks, entry->blocks, count * sizeof *copy->blocks);
  return 0;
}

static bool lies(const companions_target *to, const manifest_entry *entry, const char *path) {
  return to->lies && !strchr(entry->name, '/') && to->lies(to->ctx, entry->name, path);
}

static bool wanted(const companions_target *to, const manifest_entry *entry) {
  if (entry->type == MANIFEST_DIR) return false;
  return !to->wants || to->wants(to->ctx, entry->name, entry->type == MANIFEST_LINK);
}

/* Chooses the companions that have to be fetched, as a manifest of their own. */
static int choose(const io *io, const manifest *m, const companions_target *to, manifest *part,
                  err *e) {
  bool replace = to->clear && !to->only_missing;
  manifest_init(part);
  part->kind = MATCH_DIR;
  part->hash = m->hash;
  part->mode = 0700;
  part->unit = strdup(m->unit);
  if (!part->unit) return err_set(e, ERR_NOMEM, "restore what was saved: out of memory");
  for (size_t i = 0; i < m->count; i++) {
    const manifest_entry *entry = &m->entries[i];
    char path[FS_PATH_MAX];
    standing there = ABSENT;
    if (!wanted(to, entry)) continue;
    int rc = fs_join(path, to->dir, entry->name, e);
    if (rc == 0) rc = standing_of(io, m, entry, path, &there, e);
    if (rc == 0 && there == BLOCKED)
      log_say(
          to->log, LOG_ERROR,
          "%s, which was saved beside %s, is NOT put back: it would lie below a symbolic link or "
          "a file, and nothing is written through one",
          path, m->unit);
    if (rc == 0 &&
        (there == ABSENT || (there == OTHER && (replace || (to->clear && lies(to, entry, path))))))
      rc = add_copy(part, entry, e);
    if (rc < 0) return rc;
  }
  return manifest_seal(part, e);
}

/* ---- placing ---- */

/* True for a file that may name a checkpoint: it must not do so before everything else is there. */
static bool is_pointer(const manifest_entry *entry) {
  return !strchr(entry->name, '/') &&
         (entry->type == MANIFEST_LINK || entry->size <= COMPANIONS_LIST_MAX);
}

static int place(const io *io, const manifest_entry *entry, const char *stage,
                 const companions_target *to, err *e) {
  char from[FS_PATH_MAX], path[FS_PATH_MAX], parent[FS_PATH_MAX];
  struct stat st;
  int rc = fs_join(from, stage, entry->name, e);
  if (rc == 0) rc = fs_join(path, to->dir, entry->name, e);
  if (rc < 0) return rc;
  if (lies(to, entry, from)) {
    log_say(to->log, LOG_INFO,
            "%s is not put back as it was saved: it names a checkpoint that is not there", path);
    return fs_remove_tree(io, from, e);
  }
  fs_parent(path, parent);
  if (!to->clear || io->lstat(io, AT_FDCWD, path, &st) < 0) {
    rc = fs_mkdirs(io, parent, 0777, e);
    return rc < 0 ? rc : fs_move(io, from, path, e);
  }
  rc = to->clear(to->ctx, entry->name, e);
  if (rc < 0) return rc;
  if (S_ISDIR(st.st_mode)) return fs_move(io, from, path, e);
  /* Nobody finds the name without a file. */
  rc = io->rename(io, AT_FDCWD, from, AT_FDCWD, path, 0);
  if (rc < 0) return err_sys(e, rc, "rename %s to %s", from, path);
  return fs_sync_dir(io, parent, e);
}

static int place_all(const io *io, const manifest *part, const char *stage,
                     const companions_target *to, err *e) {
  int rc = 0;
  for (int last = 0; last < 2; last++)
    for (size_t i = 0; rc == 0 && i < part->count; i++)
      if (part->entries[i].type != MANIFEST_DIR && is_pointer(&part->entries[i]) == last)
        rc = place(io, &part->entries[i], stage, to, e);
  return rc;
}

/* ---- paths that lead nowhere ---- */

static bool is_path_byte(char c) {
  return c && !isspace((unsigned char)c) && !strchr("\"'<>,;()[]{}|", c);
}

static bool leads_nowhere(const io *io, const char *path) {
  struct stat st;
  int rc = io->lstat(io, AT_FDCWD, path, &st);
  return rc == -ENOENT || rc == -ENOTDIR;
}

/* Logs each absolute path that leads nowhere, if it has at least two components, and stands at the
 * beginning of a word. */
static void look_for_paths(const io *io, const log_sink *log, const char *file, const char *text) {
  enum { SAID_MAX = 3 };
  int said = 0;
  for (const char *at = text; said < SAID_MAX && (at = strchr(at, '/'));) {
    char path[FS_PATH_MAX];
    size_t len = 0, parts = 0;
    while (is_path_byte(at[len])) parts += at[len++] == '/';
    bool begins = at == text || !is_path_byte(at[-1]) || at[-1] == '=' || at[-1] == ':';
    if (begins && parts > 1 && at[1] != '/' && len < sizeof path) {
      memcpy(path, at, len);
      path[len] = 0;
      if (leads_nowhere(io, path)) {
        said++;
        log_say(log, LOG_WARN, "%s names %s, which is not there: it was saved elsewhere", file,
                path);
      }
    }
    at += len ? len : 1;
  }
}

static void check_pointer(const io *io, const log_sink *log, const manifest_entry *entry,
                          const char *path) {
  buf text;
  if (entry->type == MANIFEST_LINK) {
    if (*entry->target == '/' && leads_nowhere(io, entry->target))
      log_say(log, LOG_WARN, "the link %s leads to %s, which is not there", path, entry->target);
    return;
  }
  if (entry->size > COMPANIONS_POINTER_MAX) return;
  buf_init(&text, COMPANIONS_POINTER_MAX + 2);
  if (fs_read(io, path, COMPANIONS_POINTER_MAX, &text, NULL) == 0 && text.len &&
      !memchr(text.data, 0, text.len)) {
    buf_add(&text, "", 1);
    if (!buf_failed(&text)) look_for_paths(io, log, path, text.data);
  }
  buf_free(&text);
}

static void check_pointers(const io *io, const log_sink *log, const manifest *part,
                           const char *dir) {
  for (size_t i = 0; i < part->count; i++) {
    char path[FS_PATH_MAX];
    if (fs_join(path, dir, part->entries[i].name, NULL) == 0)
      check_pointer(io, log, &part->entries[i], path);
  }
}

/* ---- all of it ---- */

static int fetch(const restore *r, const manifest *part, const char *key,
                 const companions_target *to, err *e) {
  char nonce[33], stage[FS_PATH_MAX];
  transfer t = {.io = r->io, .store = r->store, .pool = r->pool, .cancel = r->cancel};
  int rc = io_nonce(r->io, nonce);
  if (rc < 0) return err_sys(e, rc, "no random name for the staging of %s", part->unit);
  rc = fs_join(stage, r->staging, nonce, e);
  if (rc == 0) rc = fs_mkdirs(r->io, stage, 0700, e);
  if (rc < 0) return rc;
  rc = transfer_down(&t, part, key, stage, e);
  if (rc == 0) rc = place_all(r->io, part, stage, to, e);
  if (rc < 0)
    fs_discard(r->io, stage, e);
  else
    rc = fs_remove_tree(r->io, stage, e);
  return rc;
}

int companions_restore(const restore *r, const manifest *m, const char *key,
                       const companions_target *to, err *e) {
  manifest part = {0};
  bool strict = !to->clear && !to->only_missing;
  int rc = strict ? companions_check_free(r->io, m, to->dir, e) : 0;
  if (rc == 0) rc = choose(r->io, m, to, &part, e);
  if (rc == 0 && part.count > 0) rc = fetch(r, &part, key, to, e);
  if (rc == 0) check_pointers(r->io, to->log, &part, to->dir);
  int count = (int)part.count;
  manifest_free(&part);
  return rc < 0 ? rc : count;
}
