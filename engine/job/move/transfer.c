#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "commit/metadata.h"
#include "live_file.h"
#include "prims/fs.h"

/* One block's worth of memory, straight from the kernel: malloc would keep it after free(). */
typedef struct block {
  char *data;
  size_t room;
} block;

static int block_open(block *b, uint64_t size, err *e) {
  b->room = size < HASH_BLOCK ? (size_t)size : HASH_BLOCK;
  if (b->room == 0) b->room = 1;
  b->data = mmap(NULL, b->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b->data != MAP_FAILED) return 0;
  b->data = NULL;
  return err_set(e, ERR_NOMEM, "out of memory for a transfer block of %zu bytes", b->room);
}

static void block_close(block *b) {
  if (b->data) munmap(b->data, b->room);
}

static int canceled(const transfer *t, err *e) {
  if (!t->cancel || !atomic_load(t->cancel)) return 0;
  return err_set(e, ERR_CANCELED, "cancelled");
}

static void moved(const transfer *t, size_t bytes) {
  if (t->done) atomic_fetch_add(t->done, bytes);
  if (t->progress) t->progress->moved(t->progress->ctx, bytes);
}

static void begin(const transfer *t, const char *what, const manifest *m) {
  if (t->progress) t->progress->begin(t->progress->ctx, what, m);
}

static void end(const transfer *t) {
  if (t->progress) t->progress->end(t->progress->ctx);
}

/* The state of one parallel run over the files of a unit. The first error wins, code and text:
 * pool_each may return another one. */
struct batch {
  const transfer *t;
  unit_files *tree;
  const manifest *m;
  const char *prefix, *dir;
  unsigned how; /* STORE_STAGED, STORE_RESUME, TRANSFER_ANEW, TRANSFER_LIVE */
  bool twice;
  transfer_finding *finding;
  void *ctx;
  pthread_mutex_t mutex;
  err first;
  int findings;
};

static int note_error(struct batch *b, const err *e, int rc) {
  pthread_mutex_lock(&b->mutex);
  if (b->first.code == 0) b->first = *e;
  pthread_mutex_unlock(&b->mutex);
  return rc;
}

static void note_finding(struct batch *b, const char *name, const char *text) {
  pthread_mutex_lock(&b->mutex);
  b->findings++;
  if (b->finding) b->finding(b->ctx, name, text);
  pthread_mutex_unlock(&b->mutex);
}

static int run_batch(struct batch *b, size_t count, int (*each)(void *, size_t), err *e) {
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

/* A manifest that was sealed or parsed has been checked: no name in it leaves the directory, each
 * file has its digests, nothing lies below a link. Any other manifest is refused. */
static int checked(const manifest *m, err *e) {
  return m->root.len ? 0 : err_set(e, ERR_INVAL, "the manifest was never sealed");
}

static int make_key(const struct batch *b, const char *name, char *key, err *e) {
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
static int read_block(const transfer *t, const unit_file *f, int fd, const char *path, block *b,
                      size_t want, digest *sums, store_writer *to, err *e) {
  const store_ops *ops = to ? to->store->ops : NULL;
  char *data = ops && ops->write_lend ? ops->write_lend(to, want) : NULL;
  bool lent = data != NULL;
  uint64_t crc64 = 0;
  int rc = lent || b->data ? 0 : block_open(b, f->size, e);
  if (!lent) data = b->data;
  if (rc == 0) rc = fill_and_sum(t, fd, path, data, want, sums, lent ? &crc64 : NULL, e);
  if (rc < 0 || !ops) return rc;
  return lent ? ops->write_lent(to, want, crc64, e) : ops->write(to, data, want, e);
}

/* Reads the file block by block into its digests, and into the writer if there is one, which may
 * count by itself what has arrived. */
static int read_blocks(const transfer *t, const unit_file *f, int fd, const char *path,
                       digest *blocks, store_writer *to, err *e) {
  block b = {0};
  int rc = 0;
  size_t count = hash_block_count(f->size);
  bool tallied = to && store_write_tally(to, &(store_tally){.stored = t->done, .sent = t->sent});
  for (size_t i = 0; rc == 0 && i < count; i++) {
    uint64_t left = f->size - (uint64_t)i * HASH_BLOCK;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    rc = canceled(t, e);
    if (rc == 0) rc = read_block(t, f, fd, path, &b, want, &blocks[i], to, e);
    if (rc == 0 && !tallied) moved(t, want);
  }
  block_close(&b);
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
static int open_to_send(const struct batch *b, unit_file *f, const char *path, bool *prove,
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
static int prove_read(const struct batch *b, const unit_file *f, int fd, const char *path,
                      bool prove, err *e) {
  const transfer *t = b->t;
  if (!(b->how & TRANSFER_LIVE)) return same_file(t->io, f, fd, path, e);
  return live_file_prove(t->io, f, t->hash, fd, path, prove, t->cancel, e);
}

static int stream_file(const struct batch *b, unit_file *f, int fd, const char *path,
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

static int send_file(const struct batch *b, unit_file *f, const char *path, const char *key,
                     err *e) {
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
  struct batch *b = ctx;
  unit_file *f = &b->tree->files[i];
  if (f->type != MANIFEST_FILE) return 0;
  err e = {0};
  char path[FS_PATH_MAX], key[STORE_KEY_MAX];
  int rc = unit_files_path(b->tree, f, path, &e);
  if (rc == 0) rc = make_key(b, f->name, key, &e);
  if (rc == 0) rc = send_file(b, f, path, key, &e);
  /* Another rank may have made the object while we sent ours: the next try finds it there, and
   * compares. */
  bool once_more = rc == ERR_EXISTS && b->how & STORE_RESUME;
  if (once_more && b->how & TRANSFER_ANEW) rc = b->t->store->ops->remove(b->t->store, key, &e);
  if (once_more && (rc == ERR_EXISTS || rc == 0)) rc = send_file(b, f, path, key, &e);
  if (rc < 0) note_error(b, &e, rc);
  return rc == ERR_RETIRED && b->how & TRANSFER_LIVE ? 0 : rc;
}

int transfer_up(const transfer *t, unit_files *from, const char *prefix, unsigned how, bool twice,
                err *e) {
  struct batch b = {.t = t, .tree = from, .prefix = prefix, .how = how, .twice = twice};
  int rc = run_batch(&b, from->count, up_one, e);
  if (rc == 0 && b.first.code != 0 && e) *e = b.first; /* what did not stop the others */
  return rc == 0 ? b.first.code : rc;
}

/* ---- down ---- */

/* One bad answer says nothing of what is stored: what it shows is believed when it shows twice. */
enum { READINGS = 2 };
static bool reads_again(int rc, int reading) {
  return (rc == ERR_CORRUPT || rc == ERR_NOENT) && reading + 1 < READINGS;
}

/* Reads block `i` of a file of the manifest, which has `want` bytes, and checks it. */
static int fetch_block(const transfer *t, const manifest *m, const manifest_entry *entry,
                       const char *key, size_t i, void *to, size_t want, err *e) {
  uint64_t at = (uint64_t)i * HASH_BLOCK;
  digest found;
  ssize_t got = t->store->ops->read(t->store, key, at, to, want, e);
  if (got == ERR_NOENT) return err_set(e, ERR_CORRUPT, "%s is missing", key);
  if (got < 0) return (int)got;
  if ((size_t)got < want)
    return err_set(e, ERR_CORRUPT, "%s ends at byte %llu of %llu", key,
                   (unsigned long long)(at + (uint64_t)got), (unsigned long long)entry->size);
  int rc = hash_block(m->hash, to, want, &found, NULL, e);
  if (rc < 0 || hash_block_equal(&found, &entry->blocks[i]) || FAULT("bytes-not-compared"))
    return rc;
  return err_set(e, ERR_CORRUPT, "%s: block %zu (bytes %llu to %llu) is not what was saved", key, i,
                 (unsigned long long)at, (unsigned long long)(at + want - 1));
}

/* Reads a file of the manifest block by block, each checked, and hands the bytes to `fd` (-1: only
 * checked). */
static int fetch_blocks(const transfer *t, const manifest *m, const manifest_entry *entry,
                        const char *key, int fd, const char *path, err *e) {
  block b;
  int rc = block_open(&b, entry->size, e);
  size_t count = hash_block_count(entry->size);
  for (size_t i = 0; rc == 0 && i < count; i++) {
    uint64_t at = (uint64_t)i * HASH_BLOCK, left = entry->size - at;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    rc = canceled(t, e);
    if (rc < 0) break;
    for (int reading = 0; reading < READINGS; reading++) {
      rc = fetch_block(t, m, entry, key, i, b.data, want, e);
      if (!reads_again(rc, reading)) break;
    }
    if (rc == 0 && fd >= 0) rc = fs_write_all(t->io, fd, b.data, want, path, e);
    if (rc == 0) moved(t, want);
  }
  block_close(&b);
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
  int rc = canceled(t, e);
  for (int reading = 0; rc == 0 && reading < READINGS; reading++) {
    rc = metadata_read(t->store, key, m->hash, entry, &text, mtime_ns, e);
    if (!reads_again(rc, reading)) break;
    rc = 0;
  }
  if (rc == 0 && fd >= 0) rc = fs_write_all(t->io, fd, text.data, text.len, path, e);
  if (rc == 0) moved(t, entry->size);
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

static int down_file(const struct batch *b, const manifest_entry *entry, const char *path, err *e) {
  const io *io = b->t->io;
  char key[STORE_KEY_MAX];
  int rc = make_key(b, entry->name, key, e);
  if (rc < 0) return rc;
  /* It is written as 0600 and opened up at the end: nobody reads half a file by accident. */
  int fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return err_sys(e, fd, "create %s", path);
  int64_t mtime_ns = entry->mtime_ns;
  rc = entry->outside ? fetch_metadata(b->t, b->m, entry, key, fd, path, &mtime_ns, e)
                      : fetch_blocks(b->t, b->m, entry, key, fd, path, e);
  return finish_file(io, fd, path, entry->mode, mtime_ns, rc, e);
}

/* Brings the metadata that the user set when the checkpoint was saved already. */
static int down_later(const struct batch *b, err *e) {
  const io *io = b->t->io;
  char key[STORE_KEY_MAX], path[FS_PATH_MAX];
  int64_t mtime_ns = 0;
  buf text;
  bool may = b->t->later && b->m->kind == MATCH_DIR && !b->m->old;
  if (!may || manifest_find(b->m, MANIFEST_METADATA)) return 0;
  buf_init(&text, MANIFEST_METADATA_MAX);
  int rc = make_key(b, MANIFEST_METADATA, key, e);
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
  struct batch *b = ctx;
  const manifest_entry *entry = &b->m->entries[i];
  if (entry->type != MANIFEST_FILE) return 0;
  err e = {0};
  char path[FS_PATH_MAX];
  int rc = fs_join(path, b->dir, entry->name, &e);
  if (rc == 0) rc = down_file(b, entry, path, &e);
  return rc < 0 ? note_error(b, &e, rc) : 0;
}

/* Makes directories first (files are written into them), links after the files: nothing is ever
 * written through a link that the manifest itself brought. */
static int make_dirs(const struct batch *b, err *e) {
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

static int make_links(const struct batch *b, err *e) {
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
static int finish_dirs(const struct batch *b, err *e) {
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
  struct batch b = {.t = t, .m = m, .prefix = prefix, .dir = to};
  int rc = checked(m, e);
  if (rc < 0) return rc;
  begin(t, "restore", m);
  rc = make_dirs(&b, e);
  if (rc == 0) rc = run_batch(&b, m->count, down_one, e);
  if (rc == 0) rc = make_links(&b, e);
  if (rc == 0) rc = down_later(&b, e);
  if (rc == 0) rc = finish_dirs(&b, e);
  if (rc == 0) rc = fs_sync_tree(t->io, to, e);
  end(t);
  return rc;
}

/* ---- verify ---- */

static int verify_size(const struct batch *b, const manifest_entry *entry, const char *key,
                       err *e) {
  store_object object;
  int rc = b->t->store->ops->head(b->t->store, key, &object, e);
  if (rc < 0 || object.size == entry->size) return rc;
  return err_set(e, ERR_CORRUPT, "%s has %llu bytes, saved were %llu", key,
                 (unsigned long long)object.size, (unsigned long long)entry->size);
}

static int verify_file(const struct batch *b, const manifest_entry *entry, const char *key,
                       err *e) {
  int64_t mtime_ns;
  if (entry->outside) return fetch_metadata(b->t, b->m, entry, key, -1, key, &mtime_ns, e);
  int rc = verify_size(b, entry, key, e);
  for (int reading = 0; reads_again(rc, reading); reading++) rc = verify_size(b, entry, key, e);
  return rc < 0 ? rc : fetch_blocks(b->t, b->m, entry, key, -1, key, e);
}

static int verify_one(void *ctx, size_t i) {
  struct batch *b = ctx;
  const manifest_entry *entry = &b->m->entries[i];
  if (entry->type != MANIFEST_FILE) return 0;
  err e = {0};
  char key[STORE_KEY_MAX];
  int rc = make_key(b, entry->name, key, &e);
  if (rc == 0) rc = verify_file(b, entry, key, &e);
  if (rc == ERR_NOENT || rc == ERR_CORRUPT || rc == ERR_INVAL) { /* INVAL: a link is there now,
                                                                  * say */
    note_finding(b, entry->name, rc == ERR_NOENT ? "missing" : e.text);
    return 0;
  }
  return rc < 0 ? note_error(b, &e, rc) : 0;
}

int transfer_verify(const transfer *t, const manifest *m, const char *prefix,
                    transfer_finding *finding, void *ctx, err *e) {
  struct batch b = {.t = t, .m = m, .prefix = prefix, .finding = finding, .ctx = ctx};
  int rc = checked(m, e);
  if (rc < 0) return rc;
  begin(t, "verify", m);
  rc = run_batch(&b, m->count, verify_one, e);
  end(t);
  return rc < 0 ? rc : b.findings;
}

/* ---- a local copy ---- */

static int local_one(void *ctx, size_t i) {
  struct batch *b = ctx;
  const unit_file *f = &b->tree->files[i];
  const manifest_entry *entry = manifest_find(b->m, f->name); /* metadata may have come later */
  if (f->type != MANIFEST_FILE || !entry || entry->outside || unit_files_was_link(f, entry))
    return 0;
  err e = {0};
  char path[FS_PATH_MAX];
  int rc = unit_files_path(b->tree, f, path, &e);
  if (rc == 0) rc = compare_blocks(b->t, f, path, entry->blocks, ERR_CORRUPT, &e);
  return rc < 0 ? note_error(b, &e, rc) : 0;
}

static int check_bytes(const transfer *t, const unit_files *local, const manifest *m, err *e) {
  transfer same_hash = *t;
  same_hash.hash = m->hash;
  struct batch b = {.t = &same_hash, .tree = (unit_files *)local, .m = m};
  begin(t, "check", m);
  int rc = run_batch(&b, local->count, local_one, e);
  end(t);
  return rc;
}

int transfer_check_local(const transfer *t, const unit_files *local, const manifest *m, err *e) {
  int rc = checked(m, e);
  if (rc < 0) return rc;
  if (!unit_files_matches(local, m))
    return err_set(e, ERR_CORRUPT, "%s has other names, sizes or times than what was saved",
                   local->base);
  return check_bytes(t, local, m, e);
}

int transfer_check_copy(const transfer *t, const unit_files *local, const manifest *m, err *e) {
  int rc = checked(m, e);
  if (rc < 0) return rc;
  if (!unit_files_alike(local, m))
    return err_set(e, ERR_CORRUPT, "%s has other names or sizes than what was saved", local->base);
  return check_bytes(t, local, m, e);
}
