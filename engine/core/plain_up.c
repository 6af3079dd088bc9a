/* plain: uploads. */
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "core/transfer.h"
#include "plain_record.h"
#include "plain_tree.h"

/* A directory that somebody writes to is read anew if it changed meanwhile, so often. */
enum { TRIES = 3 };
/* What is sent before it is written down: what a cut costs at most. */
enum { BATCH_FILES = 2000 };
static const uint64_t BATCH_BYTES = (uint64_t)1 << 30;

typedef struct upload {
  const plain *p;
  const char *dir;
  plain_place *at;
  tree tree;
  tree before;    /* that of the try before, with the digests of what it sent */
  tree send;      /* those files of `tree` that are to be sent; they belong to it */
  size_t *origin; /* of each in `send`: its place in `tree` */
  plain_moved *out;
} upload;

/* Is the file at the place what it is here, as far as size and time can tell? */
static const manifest_entry *recorded(const plain_place *at, const tree_file *f) {
  const manifest_entry *entry = manifest_find(&at->record, f->name);
  if (!entry || entry->type != f->type || at->damaged) return NULL;
  if (f->type == MANIFEST_LINK) return strcmp(entry->target, f->target) == 0 ? entry : NULL;
  if (f->type == MANIFEST_DIR) return entry;
  if (entry->size != f->size || entry->mtime_ns != f->mtime_ns) return NULL;
  const place_object *object = plain_place_find(at, f->name);
  return object && object->size == f->size ? entry : NULL;
}

static int reuse(tree_file *f, const digest *file, const digest *blocks, err *e) {
  size_t count = hash_block_count(f->size);
  f->file = *file;
  f->blocks = malloc((count ? count : 1) * sizeof *f->blocks);
  if (!f->blocks) return err_set(e, ERR_NOMEM, "send %s: out of memory", f->name);
  if (count) memcpy(f->blocks, blocks, count * sizeof *f->blocks);
  return 0;
}

/* Did the try before send this very file? */
static const tree_file *sent_before(const upload *u, const tree_file *f) {
  const tree_file *old = plain_tree_find(&u->before, f->name);
  bool same = old && old->type == f->type && old->blocks && old->inode == f->inode &&
              old->size == f->size && old->mtime_ns == f->mtime_ns && old->ctime_ns == f->ctime_ns;
  return same ? old : NULL;
}

/* One file: its digests are known, or it is put on the list. */
static int choose_file(upload *u, size_t i, const manifest_entry *entry, err *e) {
  tree_file *f = &u->tree.files[i];
  const tree_file *old = sent_before(u, f);
  if (old) return reuse(f, &old->file, old->blocks, e);
  if (entry) return reuse(f, &entry->file, entry->blocks, e);
  u->origin[u->send.count] = i;
  u->send.files[u->send.count++] = *f;
  u->send.bytes += f->size;
  return 0;
}

/* Which files have to be sent. *differs: the record says anything else than what is here. */
static int choose(upload *u, bool *differs, err *e) {
  const plain_place *at = u->at;
  const tree *t = &u->tree;
  int rc = 0;
  u->send = (tree){.base = t->base, .kind = t->kind};
  u->send.files = calloc(t->count + 1, sizeof *u->send.files);
  u->origin = calloc(t->count + 1, sizeof *u->origin);
  if (!u->send.files || !u->origin) return err_set(e, ERR_NOMEM, "send %s: out of memory", u->dir);
  *differs = !at->has_record || at->has_part || at->damaged || t->mode != at->record.mode;
  for (size_t i = 0; rc == 0 && i < t->count; i++) {
    const manifest_entry *entry = recorded(at, &t->files[i]);
    if (!entry || entry->mode != t->files[i].mode) {
      *differs = true;
      plain_record_touch(u->at, t->files[i].name);
    }
    if (t->files[i].type == MANIFEST_FILE) rc = choose_file(u, i, entry, e);
  }
  u->out->files += u->send.count;
  u->out->bytes += u->send.bytes;
  atomic_store(u->p->total, atomic_load(u->p->done) + u->send.bytes);
  return rc;
}

/* ---- sending ---- */

static size_t batch_end(const upload *u, size_t from) {
  uint64_t bytes = 0;
  size_t to = from;
  while (to < u->send.count && to - from < BATCH_FILES && bytes < BATCH_BYTES)
    bytes += u->send.files[to++].size;
  return to;
}

/* The digests that the transfer made belong to the tree; those of a batch that failed prove
 * nothing. */
static void take_digests(upload *u, size_t from, size_t to, bool sent) {
  for (size_t i = from; i < to; i++) {
    tree_file *file = &u->tree.files[u->origin[i]];
    if (!sent) {
      free(u->send.files[i].blocks);
      u->send.files[i].blocks = NULL;
      continue;
    }
    file->file = u->send.files[i].file;
    file->blocks = u->send.files[i].blocks;
  }
}

/* What may have been sent is not what the record says any more. */
static void forget(upload *u) {
  manifest *m = &u->at->record;
  for (size_t i = 0; i < u->send.count; i++) {
    const manifest_entry *entry = manifest_find(m, u->send.files[i].name);
    if (entry) m->entries[entry - m->entries].size = UINT64_MAX;
  }
}

static int send_batches(upload *u, const transfer *t, bool twice, err *e) {
  int rc = 0;
  for (size_t from = 0, to = 0; rc == 0 && from < u->send.count; from = to) {
    to = batch_end(u, from);
    tree batch = {.base = u->send.base,
                  .kind = u->send.kind,
                  .files = u->send.files + from,
                  .count = to - from};
    rc = transfer_up(t, &batch, "", STORE_OVER, twice, e);
    take_digests(u, from, to, rc == 0);
    if (rc == 0 && to < u->send.count) rc = plain_record_part(u->at, &u->tree, e);
  }
  return rc;
}

static int send(upload *u, err *e) {
  const plain *p = u->p;
  int64_t now = p->io->now(p->io, IO_WALL), racy = tree_racy_ns(&u->tree, now);
  const transfer t = {.io = p->io,
                      .store = u->at->store,
                      .pool = p->pool,
                      .hash = u->at->record.hash,
                      .cancel = p->cancel,
                      .done = p->done};
  bool twice = tree_from_future(&u->tree, now);
  forget(u);
  int rc = plain_record_begin(u->at, &u->tree, e);
  if (rc == 0 && racy > 0 && u->send.count > 0) p->io->sleep(p->io, racy);
  if (rc == 0) rc = send_batches(u, &t, twice, e);
  return rc == 0 ? plain_record_end(u->at, &u->tree, e) : rc;
}

/* What no download would bring back is not sent. */
static int check_names(const upload *u, err *e) {
  bool log;
  for (size_t i = 0; i < u->tree.count; i++)
    if (u->tree.files[i].type == MANIFEST_FILE && plain_is_own(u->tree.files[i].name, &log))
      return err_set(e, ERR_INVAL,
                     "%s/%s: what lies below \".ckpt\" is a store's own, and would not come back: "
                     "exclude it",
                     u->dir, u->tree.files[i].name);
  return 0;
}

static int try_once(upload *u, err *e) {
  bool differs = false;
  int rc = plain_tree_scan(u->p, u->dir, &u->tree, e);
  if (rc < 0) return rc;
  rc = check_names(u, e);
  if (rc == 0) rc = choose(u, &differs, e);
  if (rc == 0 && differs) rc = send(u, e);
  free(u->send.files);
  free(u->origin);
  u->send = (tree){0};
  u->origin = NULL;
  tree_free(&u->before);
  u->before = u->tree;
  u->tree = (tree){0};
  return rc;
}

static int upload_to(upload *u, err *e) {
  plain_place *at = u->at;
  int rc = plain_place_read(u->p, at, true, e);
  if (rc == 0 && at->has_log)
    rc = err_set(e, ERR_UNSUPPORTED,
                 "a run keeps its checkpoints at this place, with a log: upload to another one");
  if (rc < 0) return rc;
  rc = ERR_RETIRED;
  for (int i = 0; i < TRIES && rc == ERR_RETIRED; i++) rc = try_once(u, e);
  tree_free(&u->before);
  return rc;
}

int plain_upload(const plain *p, const char *dir, const char *uri, plain_moved *out, err *e) {
  plain_place at = {0};
  upload u = {.p = p, .dir = dir, .at = &at, .out = out};
  int rc = plain_tree_check(p, dir, e);
  if (rc == 0) rc = plain_tree_apart(p, dir, uri, e);
  if (rc == 0) rc = plain_place_open(p, uri, &at, e);
  if (rc == 0) rc = upload_to(&u, e);
  plain_place_close(&at);
  return rc;
}
