#include "transfer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "live_file.h"
#include "prims/fs.h"
#include "transfer_impl.h"

int transfer_block_open(transfer_block *b, uint64_t size, err *e) {
  b->room = size < HASH_BLOCK ? (size_t)size : HASH_BLOCK;
  if (b->room == 0) b->room = 1;
  b->data = mmap(NULL, b->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b->data != MAP_FAILED) return 0;
  b->data = NULL;
  return err_set(e, ERR_NOMEM, "out of memory for a transfer block of %zu bytes", b->room);
}

void transfer_block_close(transfer_block *b) {
  if (b->data) munmap(b->data, b->room);
}

int transfer_canceled(const transfer *t, err *e) {
  if (!t->cancel || !atomic_load(t->cancel)) return 0;
  return err_set(e, ERR_CANCELED, "cancelled");
}

void transfer_moved(const transfer *t, size_t bytes) {
  if (t->done) atomic_fetch_add(t->done, bytes);
  if (t->progress) t->progress->moved(t->progress->ctx, bytes);
}

void transfer_begin(const transfer *t, const char *what, const manifest *m) {
  if (t->progress) t->progress->begin(t->progress->ctx, what, m);
}

void transfer_end(const transfer *t) {
  if (t->progress) t->progress->end(t->progress->ctx);
}

int transfer_note_error(struct transfer_batch *b, const err *e, int rc) {
  pthread_mutex_lock(&b->mutex);
  if (b->first.code == 0) b->first = *e;
  pthread_mutex_unlock(&b->mutex);
  atomic_store(&b->failed, 1);
  return rc;
}

int transfer_run(struct transfer_batch *b, size_t count, int (*each)(void *, size_t), err *e) {
  int rc = 0;
  pthread_mutex_init(&b->mutex, NULL);
  if (b->t->pool) {
    rc = pool_each(b->t->pool, count, pool_workers(b->t->pool), each, b);
  } else {
    for (size_t i = 0; i < count && rc >= 0; i++) rc = each(b, i);
  }
  pthread_mutex_destroy(&b->mutex);
  if (rc >= 0) return 0;
  if (e) *e = b->first;
  return b->first.code;
}

int transfer_checked(const manifest *m, err *e) {
  return m->root.len ? 0 : err_set(e, ERR_INVAL, "the manifest was never sealed");
}

int transfer_key(const struct transfer_batch *b, const char *name, char *key, err *e) {
  if (snprintf(key, STORE_KEY_MAX, "%s%s%s", b->prefix, *b->prefix ? "/" : "", name) <
      STORE_KEY_MAX)
    return 0;
  return err_set(e, ERR_LIMIT, "%s/%s: the store's name for it is longer than %d bytes", b->prefix,
                 name, STORE_KEY_MAX - 1);
}

/* ---- up ---- */

/* Checks that the open file is still as the tree says, before and after it is read. */
static int same_file(const io *io, const unit_file *f, int fd, const char *path, err *e) {
  struct stat st;
  int rc = io->fstat(io, fd, &st);
  if (rc < 0 && !unit_files_gone(rc)) return err_sys(e, rc, "look at %s", path);
  if (rc == 0 && st.st_ino == f->inode && st.st_dev == f->device &&
      (uint64_t)st.st_size == f->size && io_time_ns(st.st_mtim) == f->mtime_ns &&
      io_time_ns(st.st_ctim) == f->ctime_ns)
    return 0;
  return err_set(e, ERR_RETIRED, "%s changed while it was read", path);
}

static int open_source(const io *io, const unit_file *f, const char *path, err *e) {
  int fd = unit_files_open(io, f, path, e);
  if (fd < 0) return fd;
  int rc = same_file(io, f, fd, path, e);
  if (rc == 0) return fd;
  io->close(io, fd);
  return rc;
}

static int fill(const transfer *t, int fd, const char *path, void *data, size_t want, err *e) {
  ssize_t got = fs_fill(t->io, fd, data, want);
  if (unit_files_gone((int)got))
    return err_set(e, ERR_RETIRED, "%s vanished while it was read", path);
  if (got < 0) return err_sys(e, (int)got, "read %s", path);
  if ((size_t)got < want) return err_set(e, ERR_RETIRED, "%s shrank while it was read", path);
  return 0;
}

/* Reads a block and makes its sums on the way: what was just read need not come from memory again. */
static int fill_and_sum(const transfer *t, int fd, const char *path, char *data, size_t want,
                        digest *out, uint64_t *crc64, err *e) {
  enum { AT_ONCE = 1 << 20 };
  hash_sums sums;
  int rc = hash_sums_begin(t->hash, crc64 != NULL, &sums, e);
  for (size_t at = 0; rc == 0 && at < want; at += AT_ONCE) {
    size_t n = want - at < AT_ONCE ? want - at : AT_ONCE;
    rc = fill(t, fd, path, data + at, n, e);
    if (rc == 0) rc = hash_sums_add(&sums, data + at, n, e);
  }
  int ended = hash_sums_end(&sums, rc == 0 ? out : NULL, e);
  if (rc == 0) rc = ended;
  if (rc == 0 && crc64) *crc64 = sums.crc64;
  return rc;
}

/* Reads one block into memory that the store lends, if it does, or else into ours. */
static int read_block(const transfer *t, const unit_file *f, int fd, const char *path,
                      transfer_block *b, size_t want, digest *sums, store_writer *to, err *e) {
  const store_ops *ops = to ? to->store->ops : NULL;
  char *data = ops && ops->write_lend ? ops->write_lend(to, want) : NULL;
  bool lent = data != NULL;
  uint64_t crc64 = 0;
  int rc = lent || b->data ? 0 : transfer_block_open(b, f->size, e);
  if (!lent) data = b->data;
  if (rc == 0) rc = fill_and_sum(t, fd, path, data, want, sums, lent ? &crc64 : NULL, e);
  if (rc < 0 || !ops) return rc;
  return lent ? ops->write_lent(to, want, crc64, e) : ops->write(to, data, want, e);
}

/* Reads the file block by block into its digests, and into the writer if there is one, which may
 * count by itself what has arrived. */
static int read_blocks(const transfer *t, const unit_file *f, int fd, const char *path,
                       digest *blocks, store_writer *to, err *e) {
  transfer_block b = {0};
  int rc = 0;
  size_t count = hash_block_count(f->size);
  bool tallied = to && store_write_tally(to, &(store_tally){.stored = t->done, .sent = t->sent});
  for (size_t i = 0; rc == 0 && i < count; i++) {
    uint64_t left = f->size - (uint64_t)i * HASH_BLOCK;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    rc = transfer_canceled(t, e);
    if (rc == 0) rc = read_block(t, f, fd, path, &b, want, &blocks[i], to, e);
    if (rc == 0 && !tallied) transfer_moved(t, want);
  }
  transfer_block_close(&b);
  return rc;
}

/* Reads a local file and compares it with the digests of its blocks: `code` if they differ. */
static int compare_blocks(const transfer *t, const unit_file *f, const char *path,
                          const digest *blocks, int code, err *e) {
  size_t count = hash_block_count(f->size);
  if (count == 0) return 0;
  digest *found = calloc(count, sizeof *found);
  if (!found) return err_set(e, ERR_NOMEM, "compare %s: out of memory", path);
  int fd = open_source(t->io, f, path, e);
  int rc = fd < 0 ? fd : read_blocks(t, f, fd, path, found, NULL, e);
  for (size_t i = 0; rc == 0 && i < count; i++)
    if (!digest_equal(&found[i], &blocks[i]))
      rc = err_set(e, code, "%s: block %zu is not what was read before", path, i);
  if (fd >= 0) t->io->close(t->io, fd);
  free(found);
  return rc;
}

/* Opens the file to be sent. *prove: its times will not show whether it is written meanwhile. */
static int open_to_send(const struct transfer_batch *b, unit_file *f, const char *path, bool *prove,
                        err *e) {
  const transfer *t = b->t;
  *prove = b->twice;
  if (!(b->how & TRANSFER_LIVE)) return open_source(t->io, f, path, e);
  bool changed = false;
  uint64_t before = f->size;
  int fd = live_file_open(t->io, f, path, &changed, e);
  *prove |= changed;
  if (fd >= 0 && t->total) atomic_fetch_add(t->total, f->size - before);
  return fd;
}

/* Returns 0 if what was read is the file, as far as can be told before it is shown. */
static int prove_read(const struct transfer_batch *b, const unit_file *f, int fd, const char *path,
                      bool prove, err *e) {
  const transfer *t = b->t;
  if (!(b->how & TRANSFER_LIVE)) return same_file(t->io, f, fd, path, e);
  return live_file_prove(t->io, f, t->hash, fd, path, prove, t->cancel, e);
}

static int stream_file(const struct transfer_batch *b, unit_file *f, int fd, const char *path,
                       const char *key, bool prove, err *e) {
  const transfer *t = b->t;
  const store_ops *ops = t->store->ops;
  const unsigned ours = TRANSFER_ANEW | TRANSFER_LIVE;
  store_writer *to = NULL;
  int rc = ops->write_open(t->store, key, f->size, b->how & ~ours, t->cancel, &to, e);
  if (rc == 0) store_write_mark(to, t->mark);
  if (rc == 0) store_write_since(to, t->since_ns);
  if (rc == 0) rc = read_blocks(t, f, fd, path, f->blocks, to, e);
  if (rc == 0) rc = prove_read(b, f, fd, path, prove, e);
  if (rc == 0) rc = hash_of_blocks(t->hash, f->blocks, hash_block_count(f->size), &f->file, e);
  if (to && rc == 0) store_write_digest(to, t->hash, &f->file);
  if (to && rc == 0)
    rc = ops->write_close(to, e);
  else if (to)
    ops->write_abort(to);
  return rc;
}

static int send_file(const struct transfer_batch *b, unit_file *f, const char *path,
                     const char *key, err *e) {
  const transfer *t = b->t;
  bool prove, live = b->how & TRANSFER_LIVE;
  free(f->blocks); /* of an earlier try */
  f->blocks = NULL;
  int fd = open_to_send(b, f, path, &prove, e);
  if (fd < 0) return fd;
  size_t count = hash_block_count(f->size);
  f->blocks = calloc(count ? count : 1, sizeof *f->blocks);
  int rc = f->blocks ? 0 : err_set(e, ERR_NOMEM, "send %s: out of memory", path);
  if (rc == 0) rc = stream_file(b, f, fd, path, key, prove, e);
  t->io->close(t->io, fd);
  /* Times that lie in the future prove nothing; a second reading does. It moves nothing. */
  transfer again = *t;
  again.done = NULL;
  if (rc == 0 && prove && !live) rc = compare_blocks(&again, f, path, f->blocks, ERR_RETIRED, e);
  if (rc < 0) {
    free(f->blocks);
    f->blocks = NULL;
  }
  return rc;
}

static int up_one(void *ctx, size_t i) {
  struct transfer_batch *b = ctx;
  unit_file *f = &b->tree->files[i];
  if (f->type != MANIFEST_FILE) return 0;
  err e = {0};
  char path[FS_PATH_MAX], key[STORE_KEY_MAX];
  int rc = unit_files_path(b->tree, f, path, &e);
  if (rc == 0) rc = transfer_key(b, f->name, key, &e);
  if (rc == 0) rc = send_file(b, f, path, key, &e);
  /* Another rank may have made the object while we sent ours: the next try finds it there, and
   * compares. */
  bool once_more = rc == ERR_EXISTS && b->how & STORE_RESUME;
  if (once_more && b->how & TRANSFER_ANEW) rc = b->t->store->ops->remove(b->t->store, key, &e);
  if (once_more && (rc == ERR_EXISTS || rc == 0)) rc = send_file(b, f, path, key, &e);
  if (rc < 0) transfer_note_error(b, &e, rc);
  return rc == ERR_RETIRED && b->how & TRANSFER_LIVE ? 0 : rc;
}

int transfer_up(const transfer *t, unit_files *from, const char *prefix, unsigned how, bool twice,
                err *e) {
  struct transfer_batch b = {.t = t, .tree = from, .prefix = prefix, .how = how, .twice = twice};
  int rc = transfer_run(&b, from->count, up_one, e);
  if (rc == 0 && b.first.code != 0 && e) *e = b.first; /* what did not stop the others */
  return rc == 0 ? b.first.code : rc;
}

/* ---- a local copy ---- */

static int local_one(void *ctx, size_t i) {
  struct transfer_batch *b = ctx;
  const unit_file *f = &b->tree->files[i];
  const manifest_entry *entry = manifest_find(b->m, f->name); /* metadata may have come later */
  if (f->type != MANIFEST_FILE || !entry || entry->outside || unit_files_was_link(f, entry))
    return 0;
  err e = {0};
  char path[FS_PATH_MAX];
  int rc = unit_files_path(b->tree, f, path, &e);
  if (rc == 0) rc = compare_blocks(b->t, f, path, entry->blocks, ERR_CORRUPT, &e);
  return rc < 0 ? transfer_note_error(b, &e, rc) : 0;
}

static int check_bytes(const transfer *t, const unit_files *local, const manifest *m, err *e) {
  transfer same_hash = *t;
  same_hash.hash = m->hash;
  struct transfer_batch b = {.t = &same_hash, .tree = (unit_files *)local, .m = m};
  transfer_begin(t, "check", m);
  int rc = transfer_run(&b, local->count, local_one, e);
  transfer_end(t);
  return rc;
}

int transfer_check_local(const transfer *t, const unit_files *local, const manifest *m, err *e) {
  int rc = transfer_checked(m, e);
  if (rc < 0) return rc;
  if (!unit_files_matches(local, m))
    return err_set(e, ERR_CORRUPT, "%s has other names, sizes or times than what was saved",
                   local->base);
  return check_bytes(t, local, m, e);
}

int transfer_check_copy(const transfer *t, const unit_files *local, const manifest *m, err *e) {
  int rc = transfer_checked(m, e);
  if (rc < 0) return rc;
  if (!unit_files_alike(local, m))
    return err_set(e, ERR_CORRUPT, "%s has other names or sizes than what was saved", local->base);
  return check_bytes(t, local, m, e);
}
