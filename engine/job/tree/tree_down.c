/* tree: downloads. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "commit/manifest/manifest_thin.h"
#include "job/tree/tree.h"
#include "job/tree/tree_place.h"
#include "job/move/transfer.h"
#include "tree_stage.h"
#include "tree_local.h"
#include "prims/fs.h"

typedef struct download {
  const tree_job *p;
  const char *dir;
  tree_place *at;
  tree_stage stage;
  manifest want; /* the entries of the record that are to be fetched; sealed */
  size_t *loose; /* the objects that no record has, fetched as they are: indexes into at->objects */
  size_t loose_count;
  tree_moved *out;
  pthread_mutex_t mutex;
  err first;
} download;

/* ---- what is to be fetched ---- */

/* True if `dir` has the file as it would be fetched, as far as size and time can tell. */
static bool is_here(const download *d, const char *name, uint64_t size, int64_t mtime_ns) {
  char path[FS_PATH_MAX];
  struct stat st;
  return d->p->merge && fs_join(path, d->dir, name, NULL) == 0 &&
         d->p->io->lstat(d->p->io, AT_FDCWD, path, &st) == 0 && S_ISREG(st.st_mode) &&
         (uint64_t)st.st_size == size && io_time_ns(st.st_mtim) == mtime_ns;
}

static int check_there(const download *d, const manifest_entry *entry, err *e) {
  const place_object *object = tree_place_find(d->at, entry->name);
  if (!object)
    return err_set(e, ERR_CORRUPT, "%s is missing: the record of the place has it", entry->name);
  if (object->size == entry->size || entry->outside) return 0;
  return err_set(e, ERR_CORRUPT, "%s has %llu bytes, %llu were uploaded", entry->name,
                 (unsigned long long)object->size, (unsigned long long)entry->size);
}

/* True if it is in a place within this one that is not whole. */
static bool is_cut(const download *d, const char *name) {
  return !d->p->unfinished && tree_place_cut(d->at, name) != NULL;
}

static int choose_recorded(download *d, err *e) {
  const manifest *m = &d->at->record;
  int rc = 0;
  manifest_init(&d->want);
  d->want.hash = m->hash;
  d->want.mode = m->mode;
  d->want.mtime_ns = m->mtime_ns;
  d->want.old = m->old;
  d->want.unit = strdup(m->unit);
  if (!d->want.unit) return err_set(e, ERR_NOMEM, "download: out of memory");
  for (size_t i = 0; rc == 0 && i < m->count; i++) {
    const manifest_entry *entry = &m->entries[i];
    if (tree_excluded(d->p, entry->name) || is_cut(d, entry->name)) continue;
    if (entry->type == MANIFEST_FILE) {
      rc = check_there(d, entry, e);
      bool here = !entry->outside && is_here(d, entry->name, entry->size, entry->mtime_ns);
      if (rc < 0 || here) continue;
      d->out->files++;
      d->out->bytes += entry->size;
    }
    rc = tree_copy_entry(&d->want, entry, e);
  }
  return rc == 0 ? manifest_seal(&d->want, e) : rc;
}

/* True for an object where the record has a directory or a link, or below a name that the record
 * has as a file: it is from a time before the upload, and in the way of the newer entry. */
static bool is_shadowed(const manifest *m, const char *key) {
  char up[FS_PATH_MAX], name[FS_PATH_MAX];
  if (manifest_find(m, key)) return true;
  memcpy(name, key, strlen(key) + 1);
  while (strchr(name, '/')) {
    fs_parent(name, up);
    memcpy(name, up, sizeof name);
    const manifest_entry *entry = manifest_find(m, name);
    if (entry && entry->type != MANIFEST_DIR) return true;
  }
  return false;
}

static int choose_loose(download *d, err *e) {
  const tree_place *at = d->at;
  d->loose = calloc(at->count + 1, sizeof *d->loose);
  if (!d->loose) return err_set(e, ERR_NOMEM, "download: out of memory");
  for (size_t i = 0; i < at->count; i++) {
    const place_object *object = &at->objects[i];
    if (is_shadowed(&at->record, object->key) || tree_excluded(d->p, object->key) ||
        strcmp(fs_base(object->key), MANIFEST_THIN_NAME) == 0 || is_cut(d, object->key) ||
        is_here(d, object->key, object->size, object->mtime_ns))
      continue;
    d->loose[d->loose_count++] = i;
    d->out->files++;
    d->out->bytes += object->size;
  }
  return 0;
}

/* ---- what no record tells of ---- */

static int fetch_into(const download *d, const place_object *o, int fd, const char *path, err *e) {
  const tree_job *p = d->p;
  store *s = d->at->store;
  size_t room = o->size < HASH_BLOCK ? (size_t)o->size + 1 : HASH_BLOCK;
  char *block = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return err_set(e, ERR_NOMEM, "download: out of memory");
  int rc = 0;
  for (uint64_t at = 0; rc == 0 && at < o->size;) {
    size_t want = o->size - at < HASH_BLOCK ? (size_t)(o->size - at) : HASH_BLOCK;
    if (atomic_load(p->cancel)) {
      rc = err_set(e, ERR_CANCELED, "cancelled");
      break;
    }
    ssize_t got = s->ops->read(s, o->key, at, block, want, e);
    if (got < 0)
      rc = (int)got;
    else if ((size_t)got < want)
      rc = err_set(e, ERR_RETIRED, "%s was replaced while it was read", o->key);
    if (rc == 0) rc = fs_write_all(d->stage.io, fd, block, want, path, e);
    at += want;
    if (rc == 0) atomic_fetch_add(p->done, want);
  }
  munmap(block, room);
  return rc;
}

static int fetch_one(const download *d, const place_object *o, err *e) {
  const io *io = d->stage.io;
  char path[FS_PATH_MAX], parent[FS_PATH_MAX];
  int rc = fs_join(path, d->stage.path, o->key, e);
  if (rc < 0) return rc;
  fs_parent(path, parent);
  rc = fs_mkdirs(io, parent, 0777, e);
  if (rc < 0) return rc;
  int fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (fd < 0) return err_sys(e, fd, "create %s", path);
  rc = fetch_into(d, o, fd, path, e);
  struct timespec when = {.tv_sec = o->mtime_ns / 1000000000, .tv_nsec = o->mtime_ns % 1000000000};
  struct timespec times[2] = {when, when};
  if (rc == 0 && o->mtime_ns > 0) io->utimens(io, AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
  int done = rc == 0 ? io->fsync(io, fd) : 0;
  if (done < 0) rc = err_sys(e, done, "flush %s", path);
  done = io->close(io, fd);
  return rc == 0 && done < 0 ? err_sys(e, done, "close %s", path) : rc;
}

static int each_loose(void *ctx, size_t i) {
  download *d = ctx;
  err e = {0};
  int rc = fetch_one(d, &d->at->objects[d->loose[i]], &e);
  if (rc == 0) return 0;
  pthread_mutex_lock(&d->mutex);
  if (d->first.code == 0) d->first = e;
  pthread_mutex_unlock(&d->mutex);
  return rc;
}

static int fetch_loose(download *d, err *e) {
  const tree_job *p = d->p;
  int rc = 0;
  pthread_mutex_init(&d->mutex, NULL);
  if (p->pool)
    rc = pool_each(p->pool, d->loose_count, pool_workers(p->pool), each_loose, d);
  else
    for (size_t i = 0; rc == 0 && i < d->loose_count; i++) rc = each_loose(d, i);
  pthread_mutex_destroy(&d->mutex);
  if (rc < 0 && e) *e = d->first;
  return rc < 0 ? d->first.code : 0;
}

/* ---- all of it ---- */

/* Refuses a place if an upload or a removal has put a partial record since it was listed. */
static int check_no_part(const download *d, err *e) {
  const tree_place *at = d->at;
  store_object o;
  if (d->p->unfinished || at->has_part) return 0;
  int rc = at->store->ops->head(at->store, TREE_PART_NAME, &o, e);
  if (rc == 0) return tree_place_busy(at, e);
  return rc == ERR_NOENT || rc == ERR_NOSTORE ? 0 : rc;
}

/* Refuses a place if an upload or a removal has begun since it was listed. Each puts a partial
 * record before it changes anything. Files of a record are compared with its digests; for the
 * others this is the only check, since the listing may show half of them. */
static int check_quiet(const download *d, err *e) {
  const tree_place *at = d->at;
  store_object o;
  int rc = check_no_part(d, e);
  if (rc < 0 || at->has_record || at->has_part || d->p->unfinished) return rc;
  rc = at->store->ops->head(at->store, MANIFEST_NAME, &o, e);
  if (rc == 0) return tree_place_busy(at, e);
  return rc == ERR_NOENT || rc == ERR_NOSTORE ? 0 : rc;
}

static int fetch(download *d, err *e) {
  const tree_job *p = d->p;
  transfer t = {.store = d->at->store, .pool = p->pool, .cancel = p->cancel, .done = p->done};
  atomic_store(p->total, d->out->bytes);
  int rc = tree_stage_open(&d->stage, p->io, d->dir, p->merge, e);
  if (rc < 0) return rc;
  t.io = d->stage.io;
  rc = fetch_loose(d, e);
  if (rc == 0 && d->loose_count) rc = check_quiet(d, e);
  if (rc == 0) rc = transfer_down(&t, &d->want, "", d->stage.path, e);
  if (rc == 0) return tree_stage_show(&d->stage, e);
  tree_stage_drop(&d->stage, e);
  return rc;
}

static int check_target(const download *d, err *e) {
  struct stat st;
  int rc = d->p->io->lstat(d->p->io, AT_FDCWD, d->dir, &st);
  if (rc == 0 && !d->p->merge) return err_set(e, ERR_EXISTS, "%s is there already", d->dir);
  return rc == 0 ? tree_local_check(d->p, d->dir, e) : 0;
}

/* Refuses a place to which an upload has not ended, and warns of such places within it. */
static int check_finished(const download *d, err *e) {
  const tree_place *at = d->at;
  if (d->p->unfinished) return 0;
  if (at->has_part && !at->has_record)
    return err_set(e, ERR_CONFLICT,
                   "an upload to %s://%s%s%s goes on, or was cut off: upload it again, or ask for "
                   "what there is of it (`unfinished`)",
                   at->where.scheme, at->where.host, *at->where.host ? "/" : "", at->where.path);
  for (size_t i = 0; i < at->record_count; i++)
    if (!at->records[i].is_whole)
      log_say(d->p->log, LOG_WARN, "%s is left out: an upload to it goes on, or was cut off",
              at->records[i].dir);
  return 0;
}

/* What a store keeps for itself lies below a log or a record: else another tool has a directory of
 * that name, and nothing of it is left out in silence. */
static int check_own(const tree_place *at, err *e) {
  if (!*at->own || at->has_log || at->record_count > 0 || uri_dir(&at->where)) return 0;
  return err_set(e, ERR_INVAL,
                 "%s: what lies below a directory \".ckpt\" is a store's own, and is not brought",
                 at->own);
}

static int bring(download *d, err *e) {
  const tree_place *at = d->at;
  int rc = tree_place_read(d->p, d->at, false, e);
  if (rc == 0) rc = check_own(at, e);
  if (rc == 0 && at->count == 0 && at->record_count == 0)
    rc = err_set(e, ERR_NOENT, "nothing is at %s://%s%s%s", at->where.scheme, at->where.host,
                 *at->where.host ? "/" : "", at->where.path);
  if (rc == 0) rc = check_finished(d, e);
  if (rc == 0) rc = choose_recorded(d, e);
  if (rc == 0) rc = choose_loose(d, e);
  if (rc == 0 && !at->has_record) rc = check_quiet(d, e);
  if (rc == 0) rc = fetch(d, e);
  /* The place is not damaged, if it is being replaced. */
  return rc == ERR_CORRUPT && check_no_part(d, NULL) == ERR_CONFLICT ? tree_place_busy(at, e) : rc;
}

int tree_download(const tree_job *p, const char *from, const char *dir, tree_moved *out, err *e) {
  tree_place at = {0};
  download d = {.p = p, .dir = dir, .at = &at, .out = out};
  int rc = check_target(&d, e);
  if (rc == 0) rc = tree_place_open(p, from, &at, e);
  if (rc == 0) rc = bring(&d, e);
  manifest_free(&d.want);
  free(d.loose);
  tree_place_close(&at);
  return rc;
}

/* ---- what another tool wrote ---- */

static int look_foreign(const tree_job *p, tree_place *at, tree_moved *out, err *e) {
  int rc = tree_place_read(p, at, false, e);
  bool ours = at->has_log || at->has_record || at->has_part;
  if (rc == 0 && (ours || at->count == 0))
    rc = err_set(e, ERR_NOENT, "%s://%s%s%s: %s", at->where.scheme, at->where.host,
                 *at->where.host ? "/" : "", at->where.path,
                 ours ? "there is a log or a record of ours" : "nothing is there");
  if (rc == 0) rc = check_own(at, e);
  for (size_t i = 0; rc == 0 && i < at->count; i++) {
    out->files++;
    out->bytes += at->objects[i].size;
  }
  return rc;
}

int tree_fetch_foreign(const tree_job *p, const char *from, const char *dir, tree_moved *out,
                       err *e) {
  tree_place at = {0};
  tree_moved moved;
  *out = (tree_moved){0};
  int rc = tree_place_open(p, from, &at, e);
  if (rc == 0) rc = look_foreign(p, &at, out, e);
  const char *here = rc == 0 ? uri_dir(&at.where) : NULL;
  if (rc == 0 && dir && here)
    rc = tree_copy(p, here, dir, &moved, e);
  else if (rc == 0 && dir)
    rc = tree_download(p, from, dir, &moved, e);
  tree_place_close(&at);
  return rc;
}
