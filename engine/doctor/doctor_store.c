/* doctor_store: what every store promises, tried out call by call. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_impl.h"

enum { LARGE = 9 << 20, PIECE = 1 << 20, SMALL_MAX = 4096 };

static void key_of(const doctor *d, const char *name, char out[STORE_KEY_MAX]) {
  snprintf(out, STORE_KEY_MAX, "%.500s/%s", d->base, name);
}

static const char no_write[] =
    "give these credentials the right to write here (s3:PutObject), or the directory the right for "
    "this user";

/* ---- small objects ---- */

static bool holds(doctor *d, const char *key, const char *text, err *e) {
  buf got;
  buf_init(&got, SMALL_MAX);
  int rc = d->store->ops->get(d->store, key, &got, e);
  bool same = rc == 0 && got.len == strlen(text) && memcmp(got.data, text, got.len) == 0;
  if (rc == 0 && !same) err_set(e, ERR_CORRUPT, "%s came back as other bytes", key);
  buf_free(&got);
  return same;
}

static bool try_write(doctor *d, const char *key) {
  err why = {0};
  const store_ops *ops = d->store->ops;
  if (ops->put(d->store, key, "one", 3, STORE_IF_ABSENT, &why) < 0) {
    doctor_fault(d, "write", &why, "nothing can be written", no_write);
    return false;
  }
  if (!holds(d, key, "one", &why)) {
    doctor_fault(d, "read", &why, "what was written cannot be read back",
                 "give the right to read (s3:GetObject)");
    return true;
  }
  doctor_say(d, "write", STORE_FINE, "", "an object can be written, and is read back as it was");
  return true;
}

static int find_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)object;
  return !is_prefix && strcmp(key, ctx) == 0;
}

static void try_list(doctor *d, char *key) {
  err why = {0};
  int rc = d->store->ops->list(d->store, d->base, false, find_key, key, &why);
  if (rc > 0)
    doctor_say(d, "list", STORE_FINE, "", "a new object is in a listing at once");
  else if (rc == 0)
    doctor_say(d, "list", STORE_FAULT, "use a store whose listings are consistent",
               "a listing does not tell what was just written");
  else
    doctor_fault(d, "list", &why, "nothing can be listed",
                 "give the right to list (s3:ListBucket)");
}

static void try_replace(doctor *d, const char *key) {
  err why = {0};
  const store_ops *ops = d->store->ops;
  int rc = ops->put(d->store, key, "two", 3, STORE_REPLACE, &why);
  if (rc < 0 || !holds(d, key, "two", &why)) {
    doctor_fault(d, "replace", &why, "an object cannot be replaced",
                 "leases and hints are replaced: give the right to overwrite below .ckpt");
    return;
  }
  if (!ops->get_tagged || !ops->replace_if) return;
  char tag[STORE_TAG_MAX];
  buf got;
  buf_init(&got, SMALL_MAX);
  rc = ops->get_tagged(d->store, key, &got, tag, &why);
  if (rc == 0) rc = ops->replace_if(d->store, key, "three", 5, tag, &why);
  int again = rc == 0 ? ops->replace_if(d->store, key, "four", 4, tag, NULL) : 0;
  buf_free(&got);
  if (rc == 0 && again == ERR_CONFLICT)
    doctor_say(d, "replace", STORE_FINE, "",
               "of two who replace one object, the second is told that it changed");
  else
    doctor_say(d, "replace", STORE_WARNING,
               "use another server where several programs set metadata of one checkpoint",
               "the server does not hold a replacement against what it replaces (If-Match): of two "
               "who do it at once, one may be lost unseen%s%s",
               rc < 0 ? ": " : "", rc < 0 ? why.text : "");
}

/* ---- who wins ---- */

static void try_race(doctor *d, const char *key) {
  static const char alone[] = "where nobody else ever writes to this target, give `single_writer`; "
                              "else take another server "
                              "or file system";
  err why = {0};
  const store_ops *ops = d->store->ops;
  int rc = ops->put(d->store, key, "late", 4, STORE_IF_ABSENT, &why);
  if (rc != ERR_EXISTS) {
    doctor_say(d, "race", STORE_FAULT, alone,
               "an object that is there was written over, though only a new one was asked for: "
               "writers cannot be told apart here%s%s",
               rc < 0 ? ": " : "", rc < 0 ? why.text : "");
    return;
  }
  if (ops->race && ops->race(d->store, &why) < 0) {
    doctor_fault(d, "race", &why, "of several writers at once not exactly one wins", alone);
    return;
  }
  doctor_say(d, "race", STORE_FINE, "",
             "of several who make one object exactly one wins: two writers cannot both commit");
}

/* ---- large objects ---- */

static int send(doctor *d, const char *key, const char *piece, size_t most, unsigned how, err *e) {
  store_writer *w;
  const store_ops *ops = d->store->ops;
  int rc = ops->write_open(d->store, key, LARGE, how, NULL, &w, e);
  if (rc < 0) return rc;
  for (size_t at = 0; rc == 0 && at < most; at += PIECE) rc = ops->write(w, piece, PIECE, e);
  if (rc == 0 && most == LARGE) return ops->write_close(w, e);
  ops->write_abort(w);
  return rc;
}

static int compare(doctor *d, const char *key, const char *piece, char *room, err *e) {
  ssize_t got = PIECE;
  for (uint64_t at = 0; got == PIECE && at < LARGE; at += PIECE) {
    got = d->store->ops->read(d->store, key, at, room, PIECE, e);
    if (got >= 0 && (got != PIECE || memcmp(room, piece, PIECE) != 0))
      return err_set(e, ERR_CORRUPT, "%s came back as other bytes", key);
  }
  return got < 0 ? (int)got : 0;
}

static double seconds_since(const doctor *d, int64_t begun) {
  double s = (double)(d->io->now(d->io, IO_MONO) - begun) / 1e9;
  return s > 0.001 ? s : 0.001;
}

static void try_large(doctor *d, const char *piece, char *room) {
  char key[STORE_KEY_MAX];
  err why = {0};
  key_of(d, "large", key);
  int64_t begun = d->io->now(d->io, IO_MONO);
  int rc = send(d, key, piece, LARGE, 0, &why);
  double sent = seconds_since(d, begun);
  if (rc < 0) {
    doctor_fault(d, "large", &why, "a large object cannot be written",
                 "give the right to upload in parts, and room for it");
    return;
  }
  begun = d->io->now(d->io, IO_MONO);
  rc = compare(d, key, piece, room, &why);
  if (rc < 0)
    doctor_fault(d, "large", &why, "a large object cannot be read back", "");
  else
    doctor_say(d, "large", STORE_FINE, "",
               "a large object (%d MiB, in parts where there are such) went there at %.1f MB/s and "
               "came back at %.1f MB/s, as it was",
               LARGE >> 20, LARGE / sent / 1e6, LARGE / seconds_since(d, begun) / 1e6);
}

typedef struct left {
  doctor *d;
  char key[STORE_KEY_MAX];
  size_t seen;
  int status;
} left;

static int on_left(void *ctx, const store_unfinished *what) {
  left *l = ctx;
  if (what->raw || strcmp(what->key, l->key) != 0) return 0;
  l->seen++;
  return 0;
}

static int drop_left(void *ctx, const store_unfinished *what) {
  left *l = ctx;
  if (what->raw || strcmp(what->key, l->key) != 0) return 0;
  err ignored = {0};
  l->status = l->d->store->ops->discard(l->d->store, what, &ignored);
  return 0;
}

/* An upload that is cut stays on a server, and costs, until somebody finds it. */
static void try_unfinished(doctor *d, const char *piece) {
  err why = {0};
  left l = {.d = d};
  const store_ops *ops = d->store->ops;
  if (d->dir || !store_can(d->store, STORE_CAP_RESUME) || !ops->unfinished) return;
  key_of(d, "unfinished", l.key);
  int rc = send(d, l.key, piece, LARGE - PIECE, STORE_RESUME, &why);
  if (rc == 0) rc = ops->unfinished(d->store, d->base, on_left, &l, &why);
  if (rc == 0) rc = ops->unfinished(d->store, d->base, drop_left, &l, &why);
  size_t seen = l.seen;
  l.seen = 0;
  if (rc == 0 && l.status == 0) rc = ops->unfinished(d->store, d->base, on_left, &l, &why);
  if (rc == 0 && seen == 1 && l.status == 0 && l.seen == 0)
    doctor_say(d, "unfinished", STORE_FINE, "",
               "an upload that was cut is found and removed: it can be gone on with, and costs "
               "nothing when nobody does");
  else
    doctor_say(d, "unfinished", STORE_WARNING,
               "add a lifecycle rule that aborts incomplete uploads "
               "(AbortIncompleteMultipartUpload), or give the rights to list and abort them",
               "an upload that was cut is %s: its parts stay and cost until a rule of the bucket "
               "removes them%s%s",
               seen != 1 ? "not told by the server" : "told, but not removed", rc < 0 ? ": " : "",
               rc < 0 ? why.text : "");
}

/* ---- the end ---- */

static void try_delete(doctor *d, const char *key) {
  err why = {0};
  store_object object;
  int rc = d->store->ops->remove(d->store, key, &why);
  if (rc == 0 && d->store->ops->head(d->store, key, &object, NULL) == 0)
    rc = err_set(&why, ERR_IO, "%s is still there", key);
  if (rc == 0)
    doctor_say(d, "delete", STORE_FINE, "", "an object can be deleted");
  else
    doctor_say(d, "delete", STORE_WARNING,
               "run with `no_delete`, and let a role that may delete run `collect`; or give the "
               "right (s3:DeleteObject)",
               "nothing can be deleted: saving works, and what no rule keeps stays: %s", why.text);
}

static void try_clock(doctor *d, const char *key, int64_t before) {
  enum { OFF_S = 5 };
  store_object object;
  err why = {0};
  if (d->store->ops->examine || d->store->ops->head(d->store, key, &object, &why) < 0) return;
  int64_t off = (object.mtime_ns - before) / 1000000000;
  if (off >= -OFF_S && off <= OFF_S)
    doctor_say(d, "clock", STORE_FINE, "", "the store's clock and this machine's agree");
  else
    doctor_say(d, "clock", STORE_WARNING, "set both clocks",
               "the store's clock is %" PRId64 " s %s this machine's: ages of leases, pins and "
               "removals go by the store's",
               off < 0 ? -off : off, off < 0 ? "behind" : "ahead of");
}

bool doctor_try_store(doctor *d) {
  char key[STORE_KEY_MAX];
  key_of(d, "small", key);
  char *piece = malloc(PIECE), *room = malloc(PIECE);
  int64_t before = d->io->now(d->io, IO_WALL);
  bool written = piece && room && d->io->random(d->io, piece, PIECE) == 0 && try_write(d, key);
  if (written) {
    try_clock(d, key, before);
    try_list(d, key);
    try_replace(d, key);
    try_race(d, key);
    try_large(d, piece, room);
    try_unfinished(d, piece);
    try_delete(d, key);
  }
  free(piece);
  free(room);
  return written;
}
