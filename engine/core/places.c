#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prims/hash.h"
#include "prims/proc.h"

/* A socket's address has room for 108 bytes; ours has "/ckpt-lua/" and 16 digits behind this. */
enum { RUNTIME_MAX = 69 };

/* Paths (absolute and normal) are compared without links, or a target behind one would hide. What
 * does not exist yet is resolved as far as it does. A link to nothing is refused: what it will lead
 * to is not known. */
static int resolve(const io *io, const char *path, char out[FS_PATH_MAX], err *e) {
  char head[FS_PATH_MAX], real[PATH_MAX];
  int rc = fs_join(head, path, "", e);
  if (rc < 0) return rc;
  while (!realpath(head, real)) {
    struct stat st;
    if (errno != ENOENT) return err_sys(e, errno, "resolve %s", path);
    if (io->lstat(io, AT_FDCWD, head, &st) == 0 && S_ISLNK(st.st_mode))
      return err_set(e, ERR_INVAL, "%s is a link to what is not there", head);
    char *slash = strrchr(head, '/');
    slash[slash == head] = 0; /* the root is always there */
  }
  const char *tail = path + strlen(head);
  return fs_join(out, real, *tail == '/' ? tail + 1 : tail, e);
}

static int local_path(const io *io, const char *option, const char *text, char out[FS_PATH_MAX],
                      err *e) {
  uri u;
  if (!text || !*text) return err_set(e, ERR_INVAL, "%s needs the path of a directory", option);
  int rc = uri_parse(text, &u, e);
  if (rc == 0 && strcmp(u.scheme, "file") != 0)
    rc = err_set(e, ERR_INVAL, "%s %s: a local directory is needed here", option, text);
  if (rc == 0) rc = fs_check_way(io, u.path, e);
  return rc < 0 ? rc : resolve(io, u.path, out, e);
}

static bool is_there(const io *io, const char *path) {
  struct stat st;
  return io->lstat(io, AT_FDCWD, path, &st) == 0;
}

/* The state stands beside the watched directory: frameworks count and sort what is inside it. */
static int place_state(const io *io, const places_options *o, places *p, err *e) {
  if (o->state) return local_path(io, "--state", o->state, p->state, e);
  int mount = is_there(io, p->dir) ? fs_is_mount_point(p->dir, e) : 0;
  if (mount < 0) return mount;
  if (mount)
    return err_set(e, ERR_INVAL,
                   "%s is a mount point, so no state directory can stand beside it: name one with "
                   "--state, outside of it",
                   p->dir);
  char path[FS_PATH_MAX];
  if (snprintf(path, sizeof path, "%s.ckpt", p->dir) >= (int)sizeof path)
    return err_set(e, ERR_LIMIT, "%s: the path is too long", p->dir);
  return resolve(io, path, p->state, e);
}

static int make_dirs(const io *io, const places_options *o, const places *p, err *e) {
  int rc = fs_mkdirs(io, p->dir, 0777, e);
  if (rc < 0) return rc;
  rc = fs_mkdirs(io, p->state, 0700, e);
  if (rc != ERR_ACCESS || o->state) return rc;
  return err_set(e, ERR_INVAL,
                 "%s cannot be made: name a state directory that can be written with --state, "
                 "outside of %s",
                 p->state, p->dir);
}

/* Whoever may rename in it decides what we restore, and what we take for committed. */
static int check_owner(const io *io, const places *p, err *e) {
  struct stat st;
  int rc = io->lstat(io, AT_FDCWD, p->state, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", p->state);
  if (!(st.st_mode & 002) || (st.st_mode & S_ISVTX)) return 0;
  return err_set(e, ERR_ACCESS,
                 "everybody may write in the state directory %s: chmod 700 it, or name another one "
                 "with --state",
                 p->state);
}

bool places_shared(const io *io, const places *p) {
  struct stat st;
  return io->lstat(io, AT_FDCWD, p->state, &st) == 0 &&
         ((st.st_mode & 022) || (st.st_uid != geteuid() && st.st_uid != 0));
}

/* A directory that is ours has a journal; before the first one is written only the lock can be
 * there. Anything else was put there by somebody who does not know that we clear <state>/staging.
 */
static int on_state_entry(void *ctx, const fs_entry *entry, err *e) {
  const char *path = ctx;
  if (strcmp(entry->name, "lock") == 0 || strncmp(entry->name, "journal.jsonl", 13) == 0) return 0;
  return err_set(e, ERR_INVAL,
                 "the state directory %s holds %s and no journal of ours: name an empty one with "
                 "--state",
                 path, entry->name);
}

static int check_state(const io *io, places *p, err *e) {
  struct stat st;
  int rc = io->lstat(io, AT_FDCWD, p->journal, &st);
  if (rc == 0) return 0;
  return rc == -ENOENT ? fs_list(io, p->state, on_state_entry, p->state, e)
                       : err_sys(e, rc, "look at %s", p->journal);
}

static int apart(const char *a, const char *what_a, const char *b, const char *what_b, err *e) {
  if (!uri_path_within(a, b) && !uri_path_within(b, a)) return 0;
  return err_set(e, ERR_INVAL, "%s %s and %s %s must not lie in one another", what_a, a, what_b, b);
}

static int place_target(const io *io, const places_options *o, places *p, err *e) {
  buf text;
  buf_init(&text, URI_MAX);
  int rc = o->to && *o->to ? uri_expand(o->to, &text, e)
                           : err_set(e, ERR_INVAL, "--to is missing: where do checkpoints go?");
  if (rc == 0) rc = uri_parse(text.data, &p->target, e);
  buf_free(&text);
  if (rc == 0 && strcmp(p->target.scheme, "file") == 0) {
    char real[FS_PATH_MAX];
    rc = resolve(io, p->target.path, real, e);
    if (rc == 0) memcpy(p->target.path, real, strlen(real) + 1);
    if (rc == 0) rc = apart(p->dir, "the watched directory", real, "the target", e);
    if (rc == 0) rc = apart(p->state, "the state directory", real, "the target", e);
  }
  if (rc < 0) return rc;
  buf_init(&text, sizeof p->target_text - 1);
  uri_print(&p->target, &text);
  if (buf_failed(&text))
    rc = err_set(e, buf_failed(&text), "the target's name is too long");
  else
    memcpy(p->target_text, text.data, text.len + 1);
  buf_free(&text);
  return rc;
}

static int digest_of(const char *a, const char *b, char hex[HASH_HEX_MAX], err *e) {
  hash *h;
  digest d;
  int rc = hash_begin(HASH_XXH3_128, &h, e);
  if (rc < 0) return rc;
  rc = hash_add(h, a, strlen(a) + 1, e);
  if (rc == 0) rc = hash_add(h, b, strlen(b), e);
  int ended = hash_end(h, rc == 0 ? &d : NULL, e);
  if (rc == 0) rc = ended;
  if (rc == 0) digest_hex(&d, hex);
  return rc;
}

static int name_run(const places_options *o, places *p, err *e) {
  if (o->run_id) {
    size_t len = strlen(o->run_id);
    if (len == 0 || len > RUNLOG_ID_MAX - HASH_HEX_MAX - 2)
      return err_set(e, ERR_INVAL, "--run needs 1 to %d bytes", RUNLOG_ID_MAX - HASH_HEX_MAX - 2);
    memcpy(p->run_id, o->run_id, len + 1);
    return 0;
  }
  char hex[HASH_HEX_MAX];
  int rc = digest_of(o->command ? o->command : "", p->dir, hex, e);
  if (rc == 0) snprintf(p->run_id, sizeof p->run_id, "%.16s", hex);
  return rc;
}

/* A directory of ours alone: a socket in it can be neither replaced nor listened to by others. */
static int private_dir(const io *io, const char *path, err *e) {
  struct stat st;
  int rc = io->mkdir(io, AT_FDCWD, path, 0700);
  if (rc < 0 && rc != -EEXIST) return err_sys(e, rc, "make %s", path);
  rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0) return 0;
  return err_set(e, ERR_ACCESS,
                 "%s is not a private directory of this user: remove it, or set XDG_RUNTIME_DIR",
                 path);
}

/* XDG_RUNTIME_DIR is handed down to users (su) and machines (sbatch) that have no such directory.
 */
static bool usable(const io *io, const char *runtime) {
  struct stat st;
  if (!runtime || *runtime != '/' || strlen(runtime) > RUNTIME_MAX) return false;
  return io->lstat(io, AT_FDCWD, runtime, &st) == 0 && S_ISDIR(st.st_mode) &&
         st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

/* The name is a digest of the state directory: the same for every run on it. */
static int place_socket(const io *io, places *p, err *e) {
  char hex[HASH_HEX_MAX], dir[RUNTIME_MAX + 16];
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  int rc = digest_of("socket", p->state, hex, e);
  if (rc < 0) return rc;
  if (usable(io, runtime))
    snprintf(dir, sizeof dir, "%s/ckpt-lua", runtime);
  else
    snprintf(dir, sizeof dir, "/tmp/ckpt-lua-%ld", (long)geteuid());
  rc = private_dir(io, dir, e);
  if (rc == 0) snprintf(p->socket, sizeof p->socket, "%s/%.16s", dir, hex);
  return rc;
}

int places_look(const io *io, const places_options *o, places *p, err *e) {
  memset(p, 0, sizeof *p);
  int rc = local_path(io, "--dir", o->dir, p->dir, e);
  if (rc == 0) rc = place_state(io, o, p, e);
  if (rc == 0) rc = apart(p->dir, "the watched directory", p->state, "the state directory", e);
  if (rc == 0) rc = place_target(io, o, p, e);
  return rc < 0 ? rc : name_run(o, p, e);
}

int places_open(const io *io, const places_options *o, places *p, err *e) {
  int rc = places_look(io, o, p, e);
  if (rc == 0) rc = make_dirs(io, o, p, e);
  if (rc == 0) rc = check_owner(io, p, e);
  if (rc == 0) rc = place_socket(io, p, e);
  if (rc == 0) rc = fs_join(p->staging, p->state, "staging", e);
  if (rc == 0) rc = fs_join(p->quarantine, p->state, "quarantine", e);
  if (rc == 0) rc = fs_join(p->journal, p->state, "journal.jsonl", e);
  if (rc == 0) rc = fs_join(p->lock, p->state, "lock", e);
  return rc < 0 ? rc : check_state(io, p, e);
}

int places_find(const io *io, const char *dir, const char *state, places *p, err *e) {
  places_options o = {.dir = dir, .state = state};
  memset(p, 0, sizeof *p);
  int rc = dir || !state ? local_path(io, "--dir", dir, p->dir, e) : 0;
  if (rc == 0) rc = place_state(io, &o, p, e);
  return rc < 0 ? rc : place_socket(io, p, e);
}

int places_writer(const io *io, const places *p, const char *launch, runlog_writer *out, err *e) {
  *out = (runlog_writer){.pid = getpid()};
  char nonce[33];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  if (launch && strlen(launch) >= sizeof out->launch)
    return err_set(e, ERR_INVAL, "--launch-id: at most %zu bytes", sizeof out->launch - 1);
  snprintf(out->launch, sizeof out->launch, "%s", launch ? launch : nonce);
  const char *job = getenv("SLURM_JOB_ID");
  if (job && *job) snprintf(out->job, sizeof out->job, "slurm:%.100s", job);
  if (gethostname(out->host, sizeof out->host - 1) < 0) strcpy(out->host, "unknown");
  snprintf(out->state, sizeof out->state, "%.*s", (int)sizeof out->state - 1, p->state);
  rc = proc_boot_id(out->boot, e);
  return rc < 0 ? rc : proc_identity(getpid(), &out->start, NULL, e);
}
