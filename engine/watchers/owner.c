#include "owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prims/proc.h"

enum { FORMAT = 1, RECORD_MAX = 16 << 10 };

/* ---- the record ---- */

/* Copies a name, cut to what there is room for: it is for people, or it fits. */
static int take_name(const json_t *value, const char *key, char *out, size_t room) {
  char *text = NULL;
  int rc = js_get_name(value, key, "dir.lock", &text, NULL);
  if (rc == 0) snprintf(out, room, "%s", text);
  free(text);
  return rc;
}

static int parse(const json_t *value, const struct stat *st, owner_record *out) {
  int64_t start = 0, term = 0, inode = (int64_t)st->st_ino, device = (int64_t)st->st_dev;
  int rc = js_copy_str(value, "nonce", "", out->nonce, sizeof out->nonce, NULL);
  if (rc == 0) rc = js_copy_str(value, "machine", "", out->machine, sizeof out->machine, NULL);
  if (rc == 0) rc = js_copy_str(value, "boot", "", out->boot, sizeof out->boot, NULL);
  if (rc == 0) rc = js_copy_str(value, "state_id", "", out->state_id, sizeof out->state_id, NULL);
  if (rc == 0) rc = js_copy_str(value, "log", "", out->log, sizeof out->log, NULL);
  if (rc == 0) rc = take_name(value, "host", out->host, sizeof out->host);
  if (rc == 0) rc = take_name(value, "run", out->run, sizeof out->run);
  if (rc == 0) rc = take_name(value, "target", out->target, sizeof out->target);
  if (rc == 0) rc = take_name(value, "state", out->state, sizeof out->state);
  if (rc == 0) rc = js_get_int(value, "pid", "", &out->pid, NULL);
  if (rc == 0) rc = js_get_int(value, "start", "", &start, NULL);
  if (rc == 0) rc = js_get_int(value, "term", "", &term, NULL);
  if (rc == 0) rc = js_opt_bool(value, "released", "", false, &out->released, NULL);
  if (rc == 0) rc = js_opt_bool(value, "brief", "", false, &out->brief, NULL);
  if (rc == 0) rc = js_opt_int(value, "inode", "", inode, &inode, NULL);
  if (rc == 0) rc = js_opt_int(value, "device", "", device, &device, NULL);
  out->copied = inode != (int64_t)st->st_ino || device != (int64_t)st->st_dev;
  out->start = (uint64_t)start;
  out->term = (uint64_t)term;
  return rc;
}

/* A record that cannot be read is somebody's, and nobody knows whose. */
int owner_read(const io *io, const char *path, owner_record *out, err *e) {
  json_t *value = NULL;
  struct stat st;
  buf text;
  *out = (owner_record){0};
  int rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (!S_ISREG(st.st_mode)) return err_set(e, ERR_INVAL, "%s is no file", path);
  buf_init(&text, RECORD_MAX);
  rc = fs_read(io, path, RECORD_MAX, &text, e);
  out->empty = rc == 0 && text.len == 0;
  if (rc == 0 && text.len && js_read(&text, "dir.lock", FORMAT, &value, NULL) == 0)
    out->known = parse(value, &st, out) == 0;
  if (rc == 0 && !out->known) *out = (owner_record){.empty = out->empty};
  json_decref(value);
  buf_free(&text);
  return rc;
}

static json_t *print(const owner_record *r, const struct stat *st) {
  json_t *o = json_object();
  int bad = 0;
  js_set(o, "format", json_integer(FORMAT), &bad);
  js_set(o, "reader", json_integer(FORMAT), &bad);
  js_set(o, "nonce", json_string(r->nonce), &bad);
  js_set(o, "host", js_name_new(r->host), &bad);
  js_set(o, "machine", json_string(r->machine), &bad);
  js_set(o, "boot", json_string(r->boot), &bad);
  js_set(o, "pid", json_integer(r->pid), &bad);
  js_set(o, "start", json_integer((json_int_t)r->start), &bad);
  js_set(o, "run", js_name_new(r->run), &bad);
  js_set(o, "target", js_name_new(r->target), &bad);
  js_set(o, "state", js_name_new(r->state), &bad);
  js_set(o, "state_id", json_string(r->state_id), &bad);
  js_set(o, "log", json_string(r->log), &bad);
  js_set(o, "term", json_integer((json_int_t)r->term), &bad);
  js_set(o, "inode", json_integer((json_int_t)st->st_ino), &bad);
  js_set(o, "device", json_integer((json_int_t)st->st_dev), &bad);
  js_set(o, "brief", json_boolean(r->brief), &bad);
  js_set(o, "released", json_boolean(r->released), &bad);
  if (!bad) return o;
  json_decref(o);
  return NULL;
}

/* It is written through the descriptor that has the lock: where a network file system has lost
 * that, it fails. Between the two steps the file is empty, which is nobody's: what stood there was
 * to be replaced. */
static int write_record(const io *io, const owner *o, err *e) {
  struct stat st;
  buf text;
  int rc = io->fstat(io, o->file.fd, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", o->path);
  json_t *value = print(&o->us, &st);
  buf_init(&text, RECORD_MAX);
  rc = value ? js_print(value, &text, e) : err_set(e, ERR_NOMEM, "%s: out of memory", o->path);
  buf_add(&text, "\n", 1);
  if (rc == 0) rc = buf_failed(&text);
  if (rc == 0 && (rc = io->ftruncate(io, o->file.fd, 0)) < 0)
    rc = err_sys(e, rc, "cut %s", o->path);
  if (rc == 0) rc = fs_write_all(io, o->file.fd, text.data, text.len, o->path, e);
  int flushed = rc == 0 ? io->fdatasync(io, o->file.fd) : 0;
  if (flushed < 0) rc = err_sys(e, flushed, "flush %s", o->path);
  buf_free(&text);
  json_decref(value);
  return rc;
}

/* ---- who has it ---- */

static bool same(const char *a, const char *b) {
  return *a && strcmp(a, b) == 0;
}

bool owner_of_this_boot(const owner_record *r, const owner_record *us) {
  return same(r->boot, us->boot) && strcmp(r->machine, us->machine) == 0;
}

static void name(const owner_record *r, char *out, size_t room) {
  if (r->known)
    snprintf(out, room, "process %" PRId64 " on host %.100s, run %.100s to %.160s", r->pid, r->host,
             r->run, r->target);
  else
    snprintf(out, room, "it does not say who it is");
}

static int held(const char *dir, const owner_record *by, err *e) {
  char who[512];
  name(by, who, sizeof who);
  return err_set(e, ERR_HELD,
                 "%s is watched by another process that owns it (%s), which alone restores there: "
                 "wait for its end, or stop it",
                 dir, who);
}

int owner_refuse(const owner *o, const char *dir, err *e) {
  char who[512];
  name(&o->before, who, sizeof who);
  return err_set(e, ERR_HELD,
                 "%s was last owned from another host, or before a reboot (%s), and was not given "
                 "up: that owner may be frozen, and come back. Go on in its target, `to`, which "
                 "stops it; or remove %s when it is gone for good",
                 dir, who, o->path);
}

/* True if the holder is about to give it up, or has not yet written who it is. */
static bool is_passing(const owner_record *r, const owner_record *us) {
  if (r->empty || r->released || r->brief) return true;
  return r->known && owner_of_this_boot(r, us) && !proc_alive((pid_t)r->pid, r->start);
}

static int open_lock(const io *io, owner *o, err *e) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
  int fd = io->open(io, AT_FDCWD, o->path, flags, 0666);
  return fd < 0 ? err_sys(e, fd, "cannot open the lock file %s", o->path)
                : lock_take_open(fd, o->path, &o->file, e);
}

/* One that frees something beside others has it for that long. */
static int take_file(const io *io, const char *dir, owner *o, err *e) {
  enum { TRIES = 100, NAP_NS = 50000000 };
  owner_record by = {0};
  for (int i = 0; i < TRIES; i++) {
    int rc = open_lock(io, o, e);
    if (rc != ERR_HELD) return rc;
    if (owner_read(io, o->path, &by, NULL) < 0 || !is_passing(&by, &o->us)) break;
    io->sleep(io, NAP_NS);
  }
  return held(dir, &by, e);
}

/* On a disk of this host nobody else can have the lock, and a kernel's word is proof. */
static bool needs_term(const owner *o) {
  fs_kind kind = {.remote_writers = true};
  const owner_record *b = &o->before;
  if (b->empty || b->released || owner_of_this_boot(b, &o->us)) return false;
  if (b->known && !*b->log) return false;
  return fs_kind_of(o->path, &kind, NULL) < 0 || kind.remote_writers;
}

static int take_home(const io *io, const char *home, const char *dir, owner *o, err *e) {
  int rc = fs_join(o->path, home, "dir.lock", e);
  if (rc == 0) rc = take_file(io, dir, o, e);
  if (rc == 0) rc = owner_read(io, o->path, &o->before, e);
  if (rc == 0) o->by_term = needs_term(o);
  return rc;
}

static int take_dir(const char *dir, owner *o, err *e) {
  int rc = lock_take_dir(dir, &o->dir, e);
  owner_record nobody = {0};
  return rc == ERR_HELD ? held(dir, &nobody, e) : rc;
}

int owner_take(const io *io, const char *home, const char *dir, const owner_record *us, owner *out,
               err *e) {
  *out = (owner){.us = *us, .asserted = !home, .file.fd = -1, .dir.fd = -1};
  out->us.known = true;
  int rc = io_nonce(io, out->us.nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  if (home) rc = take_home(io, home, dir, out, e);
  if (rc == 0) rc = take_dir(dir, out, e);
  if (rc < 0) {
    lock_drop(&out->file);
    lock_drop(&out->dir);
  }
  out->held = rc == 0;
  return rc;
}

int owner_note(const io *io, const owner *o, err *e) {
  return o->asserted || o->by_term ? 0 : write_record(io, o, e);
}

bool owner_follows(const owner_record *before, const char *log, uint64_t term) {
  return before->known && same(before->log, log) && term > before->term;
}

/* True if the lock file still has what we know of it, and is the one that we hold. */
static int look(const io *io, const owner *o, const char *nonce, err *e) {
  struct stat ours, there;
  owner_record now = {0};
  char who[512];
  int rc = io->fstat(io, o->file.fd, &ours);
  if (rc < 0) return err_sys(e, rc, "look at %s", o->path);
  rc = owner_read(io, o->path, &now, e);
  if (rc == 0) rc = io->lstat(io, AT_FDCWD, o->path, &there);
  if (rc < 0 && rc != ERR_NOENT && rc != -ENOENT) return err_sys(e, rc, "look at %s", o->path);
  if (rc == 0 && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino &&
      strcmp(now.nonce, nonce) == 0)
    return 0;
  name(&now, who, sizeof who);
  return err_set(e, ERR_HELD, "%s is not ours any more: %s", o->path,
                 rc < 0 ? "it was removed" : who);
}

int owner_check(const io *io, const owner *o, err *e) {
  return o->asserted ? 0 : look(io, o, o->us.nonce, e);
}

int owner_pass(const io *io, owner *o, const char *log, uint64_t term, err *e) {
  if (o->asserted) return 0;
  int rc = look(io, o, o->by_term ? o->before.nonce : o->us.nonce, e);
  if (rc < 0) return rc;
  snprintf(o->us.log, sizeof o->us.log, "%s", log);
  o->us.term = term;
  o->by_term = false;
  return write_record(io, o, e);
}

void owner_drop(const io *io, owner *o) {
  if (!o->held) return;
  o->us.released = true;
  if (!o->asserted && !o->by_term && owner_check(io, o, NULL) == 0) write_record(io, o, NULL);
  lock_drop(&o->file);
  lock_drop(&o->dir);
  o->held = false;
}
