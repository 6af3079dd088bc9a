#include "transfer.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/fault.h"
#include "commit/metadata.h"
#include "prims/fs.h"
#include "transfer_impl.h"

/* ---- down ---- */

/* One bad answer says nothing of what is stored: what it shows is believed when it shows twice. */
enum { READINGS = 2 };
static bool reads_again(int rc, int reading) {
  return (rc == ERR_CORRUPT || rc == ERR_NOENT) && reading + 1 < READINGS;
}

/* A file of the manifest, and where its bytes may come from. */
typedef struct source {
  const manifest_entry *entry;
  const char *key;
  hash_kind hash;
  int near;                 /* what stood here under its name; -1: nothing */
  node_share *node;         /* NULL: no other task is asked */
  const atomic_int *failed; /* not 0: none is waited for, as another file of the batch has failed */
  bool asked;
  node_claim claim;     /* once it was */
  bool fetched, shared; /* something came from the store; from another task */
} source;

/* Reads block `i`, which has `want` bytes, from the store, and checks it. */
static int fetch_block(const transfer *t, const source *s, size_t i, void *to, size_t want,
                       err *e) {
  uint64_t at = (uint64_t)i * HASH_BLOCK;
  digest found;
  ssize_t got = t->store->ops->read(t->store, s->key, at, to, want, e);
  if (got == ERR_NOENT) return err_set(e, ERR_CORRUPT, "%s is missing", s->key);
  if (got < 0) return (int)got;
  if ((size_t)got < want)
    return err_set(e, ERR_CORRUPT, "%s ends at byte %llu of %llu", s->key,
                   (unsigned long long)(at + (uint64_t)got), (unsigned long long)s->entry->size);
  int rc = hash_block(s->hash, to, want, &found, NULL, e);
  if (rc < 0 || hash_block_equal(&found, &s->entry->blocks[i]) || FAULT("bytes-not-compared"))
    return rc;
  return err_set(e, ERR_CORRUPT, "%s: block %zu (bytes %llu to %llu) is not what was saved", s->key,
                 i, (unsigned long long)at, (unsigned long long)(at + want - 1));
}

/* Reads block `i` from a file that may have it; false: it has other bytes, or cannot be read, which the
 * store makes good. */
static bool has_block(const transfer *t, const source *s, int fd, size_t i, char *to, size_t want) {
  off_t at = (off_t)i * HASH_BLOCK;
  size_t len = 0;
  digest found;
  while (len < want) {
    ssize_t got = t->io->pread(t->io, fd, to + len, want - len, at + (off_t)len);
    if (got <= 0) return false;
    len += (size_t)got;
  }
  return hash_block(s->hash, to, want, &found, NULL, NULL) == 0 &&
         hash_block_equal(&found, &s->entry->blocks[i]);
}

/* Brings a block from where it is nearest. The other tasks are asked when something is lacking here. */
static int bring_block(const transfer *t, source *s, size_t i, void *to, size_t want, err *e) {
  int rc = 0;
  if (s->near >= 0 && has_block(t, s, s->near, i, to, want)) return 0;
  if (s->node && !s->asked) {
    s->asked = true;
    node_share_claim(s->node, &s->entry->file, s->failed, &s->claim);
  }
  if (s->claim.from >= 0 && has_block(t, s, s->claim.from, i, to, want)) {
    s->shared = true;
    return 0;
  }
  s->fetched = true;
  for (int reading = 0; reading < READINGS; reading++) {
    rc = fetch_block(t, s, i, to, want, e);
    if (!reads_again(rc, reading)) break;
  }
  if (s->node) node_share_alive(s->node, &s->claim);
  return rc;
}

/* Reads a file of the manifest block by block, each checked, and hands the bytes to `fd` (-1: only
 * checked). */
static int bring_blocks(const transfer *t, source *s, int fd, const char *path, err *e) {
  const uint64_t size = s->entry->size;
  transfer_block b;
  int rc = transfer_block_open(&b, size, e);
  size_t count = hash_block_count(size);
  for (size_t i = 0; rc == 0 && i < count; i++) {
    uint64_t left = size - (uint64_t)i * HASH_BLOCK;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    rc = transfer_canceled(t, e);
    if (rc == 0) rc = bring_block(t, s, i, b.data, want, e);
    if (rc == 0 && fd >= 0) rc = fs_write_all(t->io, fd, b.data, want, path, e);
    if (rc == 0) transfer_moved(t, want);
  }
  transfer_block_close(&b);
  return rc;
}

static int set_times(const io *io, const char *path, int64_t mtime_ns, err *e) {
  struct timespec when = {.tv_sec = mtime_ns / 1000000000, .tv_nsec = mtime_ns % 1000000000};
  if (when.tv_nsec < 0) {
    when.tv_nsec += 1000000000;
    when.tv_sec--;
  }
  struct timespec times[2] = {when, when};
  int rc = io->utimens(io, AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
  return rc < 0 ? err_sys(e, rc, "set the time of %s", path) : 0;
}

/* Fetches the file that the user may have replaced since the save, as it is now. */
static int fetch_metadata(const transfer *t, const manifest *m, const manifest_entry *entry,
                          const char *key, int fd, const char *path, int64_t *mtime_ns, err *e) {
  buf text;
  buf_init(&text, MANIFEST_METADATA_MAX);
  int rc = transfer_canceled(t, e);
  for (int reading = 0; rc == 0 && reading < READINGS; reading++) {
    rc = metadata_read(t->store, key, m->hash, entry, &text, mtime_ns, e);
    if (!reads_again(rc, reading)) break;
    rc = 0;
  }
  if (rc == 0 && fd >= 0) rc = fs_write_all(t->io, fd, text.data, text.len, path, e);
  if (rc == 0) transfer_moved(t, entry->size);
  buf_free(&text);
  return rc;
}

/* Flushes and closes a file that is complete, or closes one that failed. */
static int finish_file(const io *io, int fd, const char *path, mode_t mode, int64_t mtime_ns,
                       int rc, err *e) {
  int done = rc == 0 ? io->chmod(io, fd, mode & 0777) : 0;
  if (done < 0) rc = err_sys(e, done, "set the mode of %s", path);
  if (rc == 0) rc = set_times(io, path, mtime_ns, e);
  done = rc == 0 ? io->fsync(io, fd) : 0;
  if (done < 0) rc = err_sys(e, done, "flush %s", path);
  done = io->close(io, fd);
  if (rc == 0 && done < 0) rc = err_sys(e, done, "close %s", path);
  return rc;
}

/* Opens what may have the bytes of a file already: a descriptor, or one below 0. */
static int open_near(const transfer *t, const manifest_entry *entry) {
  char path[FS_PATH_MAX];
  if (!t->nearby || !t->nearby->stood(t->nearby->ctx, entry->name, path)) return -1;
  return fs_open_regular(t->io, path);
}

static void count(transfer_nearby *n, const source *s) {
  atomic_fetch_add(&n->files, 1);
  atomic_fetch_add(&n->fetched, s->fetched);
  atomic_fetch_add(&n->shared, s->shared && !s->fetched);
  atomic_fetch_add(&n->here, s->near >= 0 && !s->fetched && !s->shared);
}

static int bring_file(const struct transfer_batch *b, const manifest_entry *entry, const char *key,
                      int fd, const char *path, err *e) {
  const transfer *t = b->t;
  char shown[FS_PATH_MAX];
  source s = {.entry = entry,
              .key = key,
              .hash = b->m->hash,
              .near = open_near(t, entry),
              .node = t->shown && t->nearby ? t->nearby->node : NULL,
              .failed = &b->failed,
              .claim = {.from = -1, .held = {.fd = -1}}};
  if (s.node && fs_join(shown, t->shown, entry->name, NULL) < 0) s.node = NULL;
  int rc = bring_blocks(t, &s, fd, path, e);
  if (s.node) node_share_end(s.node, &s.claim, rc == 0 ? path : NULL, shown);
  if (s.near >= 0) t->io->close(t->io, s.near);
  if (rc == 0 && t->nearby) count(t->nearby, &s);
  return rc;
}

static int down_file(const struct transfer_batch *b, const manifest_entry *entry, const char *path,
                     err *e) {
  const io *io = b->t->io;
  char key[STORE_KEY_MAX];
  int rc = transfer_key(b, entry->name, key, e);
  if (rc < 0) return rc;
  /* It is written as 0600 and opened up at the end: nobody reads half a file by accident. */
  int fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return err_sys(e, fd, "create %s", path);
  int64_t mtime_ns = entry->mtime_ns;
  rc = entry->outside ? fetch_metadata(b->t, b->m, entry, key, fd, path, &mtime_ns, e)
                      : bring_file(b, entry, key, fd, path, e);
  return finish_file(io, fd, path, entry->mode, mtime_ns, rc, e);
}

/* Brings the metadata that the user set when the checkpoint was saved already. */
static int down_later(const struct transfer_batch *b, err *e) {
  const io *io = b->t->io;
  char key[STORE_KEY_MAX], path[FS_PATH_MAX];
  int64_t mtime_ns = 0;
  buf text;
  bool may = b->t->later && b->m->kind == MATCH_DIR && !b->m->old;
  if (!may || manifest_find(b->m, MANIFEST_METADATA)) return 0;
  buf_init(&text, MANIFEST_METADATA_MAX);
  int rc = transfer_key(b, MANIFEST_METADATA, key, e);
  if (rc == 0) rc = fs_join(path, b->dir, MANIFEST_METADATA, e);
  if (rc == 0) rc = metadata_read_later(b->t->store, key, &text, &mtime_ns, e);
  if (rc == 1) {
    int fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    rc = fd < 0 ? err_sys(e, fd, "create %s", path) : 0;
    if (rc == 0) rc = fs_write_all(io, fd, text.data ? text.data : "", text.len, path, e);
    if (fd >= 0) rc = finish_file(io, fd, path, 0644, mtime_ns, rc, e);
  }
  buf_free(&text);
  return rc;
}

static int down_one(void *ctx, size_t i) {
  struct transfer_batch *b = ctx;
  const transfer_nearby *n = b->t->nearby;
  /* Each task begins elsewhere, so that they share the fetching, too. */
  if (n && n->turns > 1) i = (i + (uint64_t)b->m->count * n->turn / n->turns) % b->m->count;
  const manifest_entry *entry = &b->m->entries[i];
  if (entry->type != MANIFEST_FILE) return 0;
  err e = {0};
  char path[FS_PATH_MAX];
  int rc = fs_join(path, b->dir, entry->name, &e);
  if (rc == 0) rc = down_file(b, entry, path, &e);
  return rc < 0 ? transfer_note_error(b, &e, rc) : 0;
}

/* Makes directories first (files are written into them), links after the files: nothing is ever
 * written through a link that the manifest itself brought. */
static int make_dirs(const struct transfer_batch *b, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < b->m->count; i++) {
    const manifest_entry *entry = &b->m->entries[i];
    char path[FS_PATH_MAX], parent[FS_PATH_MAX];
    rc = fs_join(path, b->dir, entry->name, e);
    if (rc < 0) break;
    fs_parent(path, parent); /* it need not be in the manifest */
    rc = fs_mkdirs(b->t->io, entry->type == MANIFEST_DIR ? path : parent, 0755, e);
  }
  return rc;
}

static int make_links(const struct transfer_batch *b, err *e) {
  const io *io = b->t->io;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < b->m->count; i++) {
    const manifest_entry *entry = &b->m->entries[i];
    char path[FS_PATH_MAX];
    if (entry->type != MANIFEST_LINK) continue;
    rc = fs_join(path, b->dir, entry->name, e);
    int made = rc == 0 ? io->symlink(io, entry->target, AT_FDCWD, path) : 0;
    if (made < 0) rc = err_sys(e, made, "make the link %s", path);
    if (rc == 0) rc = set_times(io, path, entry->mtime_ns, e);
  }
  return rc;
}

static int finish_dir(const io *io, const char *path, mode_t mode, int64_t mtime_ns, err *e) {
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "open %s", path);
  int rc = io->chmod(io, fd, (mode & 0777) | 0700);
  if (rc < 0) rc = err_sys(e, rc, "set the mode of %s", path);
  io->close(io, fd);
  return rc < 0 ? rc : set_times(io, path, mtime_ns, e);
}

/* Goes deepest first, for a child that is made moves its parent's time: so the sorted table is
 * taken backwards. */
static int finish_dirs(const struct transfer_batch *b, err *e) {
  int rc = 0;
  for (size_t i = b->m->count; rc == 0 && i-- > 0;) {
    const manifest_entry *entry = &b->m->entries[i];
    char path[FS_PATH_MAX];
    if (entry->type != MANIFEST_DIR) continue;
    rc = fs_join(path, b->dir, entry->name, e);
    if (rc == 0) rc = finish_dir(b->t->io, path, entry->mode, entry->mtime_ns, e);
  }
  if (rc == 0 && b->m->kind == MATCH_DIR)
    rc = finish_dir(b->t->io, b->dir, b->m->mode, b->m->mtime_ns, e);
  return rc;
}

int transfer_down(const transfer *t, const manifest *m, const char *prefix, const char *to,
                  err *e) {
  struct transfer_batch b = {.t = t, .m = m, .prefix = prefix, .dir = to};
  int rc = transfer_checked(m, e);
  if (rc < 0) return rc;
  transfer_begin(t, "restore", m);
  rc = make_dirs(&b, e);
  if (rc == 0) rc = transfer_run(&b, m->count, down_one, e);
  if (rc == 0) rc = make_links(&b, e);
  if (rc == 0) rc = down_later(&b, e);
  if (rc == 0) rc = finish_dirs(&b, e);
  if (rc == 0) rc = fs_sync_tree(t->io, to, e);
  transfer_end(t);
  return rc;
}

/* ---- verify ---- */

static void note_finding(struct transfer_batch *b, const char *name, const char *text) {
  pthread_mutex_lock(&b->mutex);
  b->findings++;
  if (b->finding) b->finding(b->ctx, name, text);
  pthread_mutex_unlock(&b->mutex);
}

static int verify_size(const struct transfer_batch *b, const manifest_entry *entry, const char *key,
                       err *e) {
  store_object object;
  int rc = b->t->store->ops->head(b->t->store, key, &object, e);
  if (rc < 0 || object.size == entry->size) return rc;
  return err_set(e, ERR_CORRUPT, "%s has %llu bytes, saved were %llu", key,
                 (unsigned long long)object.size, (unsigned long long)entry->size);
}

static int verify_file(const struct transfer_batch *b, const manifest_entry *entry, const char *key,
                       err *e) {
  int64_t mtime_ns;
  source s = {.entry = entry,
              .key = key,
              .hash = b->m->hash,
              .near = -1,
              .claim = {.from = -1, .held = {.fd = -1}}};
  if (entry->outside) return fetch_metadata(b->t, b->m, entry, key, -1, key, &mtime_ns, e);
  int rc = verify_size(b, entry, key, e);
  for (int reading = 0; reads_again(rc, reading); reading++) rc = verify_size(b, entry, key, e);
  return rc < 0 ? rc : bring_blocks(b->t, &s, -1, key, e);
}

static int verify_one(void *ctx, size_t i) {
  struct transfer_batch *b = ctx;
  const manifest_entry *entry = &b->m->entries[i];
  if (entry->type != MANIFEST_FILE) return 0;
  err e = {0};
  char key[STORE_KEY_MAX];
  int rc = transfer_key(b, entry->name, key, &e);
  if (rc == 0) rc = verify_file(b, entry, key, &e);
  if (rc == ERR_NOENT || rc == ERR_CORRUPT || rc == ERR_INVAL) { /* INVAL: a link is there now,
                                                                  * say */
    note_finding(b, entry->name, rc == ERR_NOENT ? "missing" : e.text);
    return 0;
  }
  return rc < 0 ? transfer_note_error(b, &e, rc) : 0;
}

int transfer_verify(const transfer *t, const manifest *m, const char *prefix,
                    transfer_finding *finding, void *ctx, err *e) {
  struct transfer_batch b = {.t = t, .m = m, .prefix = prefix, .finding = finding, .ctx = ctx};
  int rc = transfer_checked(m, e);
  if (rc < 0) return rc;
  transfer_begin(t, "verify", m);
  rc = transfer_run(&b, m->count, verify_one, e);
  transfer_end(t);
  return rc < 0 ? rc : b.findings;
}
