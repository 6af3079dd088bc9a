/* tree: uploads. */
#include <stdlib.h>
#include <string.h>

#include "job/tree/tree.h"
#include "job/move/transfer.h"
#include "job/move/unit_kept.h"
#include "job/move/unit_links.h"
#include "tree_record.h"
#include "tree_local.h"

/* A file that was rewritten while it was read, or that vanished, is read anew, so often: it alone,
 * for what was sent stays as it was sent. */
enum { TRIES = 3 };
/* After so much is sent, it is written down: a cut costs that much at most. */
enum { BATCH_FILES = 2000 };
static const uint64_t BATCH_BYTES = (uint64_t)1 << 30;

typedef struct upload {
  const tree_job *p;
  const char *dir;
  tree_place *at;
  unit_files tree;
  unit_files before; /* that of the try before, with the digests of the files that it sent */
  unit_files send;   /* those files of `tree` that are to be sent; they belong to it */
  size_t *origin;    /* of each in `send`: its place in `tree` */
  tree_moved *out;
} upload;

/* Returns the record's entry if the file at the place is the same as here, as far as size and time
 * can tell. */
static const manifest_entry *recorded(const tree_place *at, const unit_file *f) {
  const manifest_entry *entry = manifest_find(&at->record, f->name);
  if (!entry || entry->type != f->type || at->damaged) return NULL;
  if (f->type == MANIFEST_LINK) return strcmp(entry->target, f->target) == 0 ? entry : NULL;
  if (f->type == MANIFEST_DIR) return entry;
  if (entry->size != f->size || entry->mtime_ns != f->mtime_ns) return NULL;
  const place_object *object = tree_place_find(at, f->name);
  return object && object->size == f->size ? entry : NULL;
}

static int reuse(unit_file *f, const digest *file, const digest *blocks, err *e) {
  size_t count = hash_block_count(f->size);
  f->file = *file;
  f->blocks = malloc((count ? count : 1) * sizeof *f->blocks);
  if (!f->blocks) return err_set(e, ERR_NOMEM, "send %s: out of memory", f->name);
  if (count) memcpy(f->blocks, blocks, count * sizeof *f->blocks);
  return 0;
}

/* Takes a file to be what the try before has sent of it. */
static int keep_sent(unit_file *f, const unit_file *sent, err *e) {
  f->mode = sent->mode;
  f->size = sent->size;
  f->mtime_ns = sent->mtime_ns;
  return reuse(f, &sent->file, sent->blocks, e);
}

/* Decides about one file: its digests are known, or it is put on the list. */
static int choose_file(upload *u, size_t i, const manifest_entry *entry, err *e) {
  unit_file *f = &u->tree.files[i];
  const unit_file *sent = unit_files_find(&u->before, f->name);
  if (sent && sent->type == MANIFEST_FILE && sent->blocks) return keep_sent(f, sent, e);
  if (entry) return reuse(f, &entry->file, entry->blocks, e);
  u->origin[u->send.count] = i;
  u->send.files[u->send.count++] = *f;
  u->send.bytes += f->size;
  return 0;
}

/* Chooses the files that have to be sent. *differs: the record is not as the directory here. */
static int choose(upload *u, bool *differs, err *e) {
  const tree_place *at = u->at;
  const unit_files *t = &u->tree;
  int rc = 0;
  u->send = (unit_files){.base = t->base, .kind = t->kind};
  u->send.files = calloc(t->count + 1, sizeof *u->send.files);
  u->origin = calloc(t->count + 1, sizeof *u->origin);
  if (!u->send.files || !u->origin) return err_set(e, ERR_NOMEM, "send %s: out of memory", u->dir);
  *differs = !at->has_record || at->has_part || at->damaged || t->mode != at->record.mode;
  for (size_t i = 0; rc == 0 && i < t->count; i++) {
    const manifest_entry *entry = recorded(at, &t->files[i]);
    if (!entry || entry->mode != t->files[i].mode) {
      *differs = true;
      tree_record_touch(u->at, t->files[i].name);
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

/* What was sent is what the tree says from now on; it owns the digests. */
static void take_sent(upload *u, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    const unit_file *sent = &u->send.files[i];
    if (!sent->blocks) continue;
    unit_file *file = &u->tree.files[u->origin[i]];
    u->out->bytes += sent->size - file->size;
    *file = *sent;
  }
}

/* Forgets the record's entries of the files that may have been sent: they do not hold any more. */
static void forget(upload *u) {
  manifest *m = &u->at->record;
  for (size_t i = 0; i < u->send.count; i++) {
    const manifest_entry *entry = manifest_find(m, u->send.files[i].name);
    if (entry) m->entries[entry - m->entries].size = UINT64_MAX;
  }
}

static int send_batches(upload *u, const transfer *t, bool twice, err *e) {
  const unsigned how = STORE_OVER | TRANSFER_LIVE;
  int rc = 0, retired = 0;
  for (size_t from = 0, to = 0; rc == 0 && from < u->send.count; from = to) {
    to = batch_end(u, from);
    unit_files batch = {.base = u->send.base,
                        .kind = u->send.kind,
                        .files = u->send.files + from,
                        .count = to - from};
    rc = transfer_up(t, &batch, "", how, twice, e);
    take_sent(u, from, to);
    if (rc == ERR_RETIRED) retired = rc, rc = 0; /* the others go all the same */
    if (rc == 0 && to < u->send.count) rc = tree_record_part(u->at, &u->tree, e);
  }
  return rc == 0 ? retired : rc;
}

static int send(upload *u, err *e) {
  const tree_job *p = u->p;
  int64_t now = p->io->now(p->io, IO_WALL), racy = unit_files_racy_ns(&u->tree, now);
  const transfer t = {.io = p->io,
                      .store = u->at->store,
                      .pool = p->pool,
                      .hash = u->at->record.hash,
                      .cancel = p->cancel,
                      .done = p->done,
                      .total = p->total};
  bool twice = unit_files_from_future(&u->tree, now);
  forget(u);
  int rc = tree_record_begin(u->at, &u->tree, e);
  if (rc == 0 && racy > 0 && u->send.count > 0) p->io->sleep(p->io, racy);
  if (rc == 0) rc = send_batches(u, &t, twice, e);
  return rc == 0 ? tree_record_end(u->at, &u->tree, e) : rc;
}

/* Refuses names that no download would bring back. */
static int check_names(const upload *u, err *e) {
  bool log;
  for (size_t i = 0; i < u->tree.count; i++)
    if (u->tree.files[i].type == MANIFEST_FILE && tree_is_own(u->tree.files[i].name, &log))
      return err_set(e, ERR_INVAL,
                     "%s/%s: what lies below \".ckpt\" is a store's own, and would not come back: "
                     "exclude it",
                     u->dir, u->tree.files[i].name);
  return 0;
}

/* Says what the place will not have, if anything was sent. */
static void tell(const upload *u, bool sent) {
  if (!sent) return;
  unit_links_tell(&u->tree, u->p->log, u->dir);
  unit_kept_tell(unit_kept_look(u->p->io, &u->tree), u->p->log, u->dir);
}

static int try_once(upload *u, err *e) {
  bool differs = false;
  int rc = tree_local_scan(u->p, u->dir, &u->tree, e);
  if (rc < 0) return rc;
  rc = check_names(u, e);
  if (rc == 0) rc = choose(u, &differs, e);
  if (rc == 0 && differs) rc = send(u, e);
  if (rc == 0) tell(u, differs);
  free(u->send.files);
  free(u->origin);
  u->send = (unit_files){0};
  u->origin = NULL;
  unit_files_free(&u->before);
  u->before = u->tree;
  u->tree = (unit_files){0};
  return rc;
}

static int upload_to(upload *u, err *e) {
  tree_place *at = u->at;
  int rc = tree_place_read(u->p, at, true, e);
  if (rc == 0 && at->has_log)
    rc = err_set(e, ERR_UNSUPPORTED,
                 "a run keeps its checkpoints at this place, with a log: upload to another one");
  if (rc < 0) return rc;
  rc = ERR_RETIRED;
  for (int i = 0; i < TRIES && rc == ERR_RETIRED; i++) rc = try_once(u, e);
  unit_files_free(&u->before);
  return rc;
}

int tree_upload(const tree_job *p, const char *dir, const char *uri, tree_moved *out, err *e) {
  tree_place at = {0};
  upload u = {.p = p, .dir = dir, .at = &at, .out = out};
  int rc = tree_local_check(p, dir, e);
  if (rc == 0) rc = tree_local_apart(p, dir, uri, e);
  if (rc == 0) rc = tree_place_open(p, uri, &at, e);
  if (rc == 0) rc = upload_to(&u, e);
  tree_place_close(&at);
  return rc;
}
