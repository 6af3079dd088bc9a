#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prims/hash.h"
#include "run/start/slurm.h"
#include "prims/proc.h"
#include "watchers/home.h"

/* A socket's address has room for 108 bytes. */
enum { NAME_DIGITS = 16 };

/* Resolves a path. Paths (absolute and normal) are compared without links, or a target behind one
 * would hide. A path that does not exist yet is resolved as far as it does. A link to nothing is
 * refused: nobody knows yet what it will lead to. */
static int resolve(const io *io, const char *path, char out[FS_PATH_MAX], err *e) {
  char head[FS_PATH_MAX], real[FS_PATH_MAX];
  int rc = fs_join(head, path, "", e);
  if (rc < 0) return rc;
  while ((rc = fs_resolve_way(io, head, real, e)) < 0) {
    struct stat st;
    if (rc != ERR_NOENT) return rc;
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
  return rc < 0 ? rc : resolve(io, u.path, out, e);
}

static bool is_there(const io *io, const char *path) {
  struct stat st;
  return io->lstat(io, AT_FDCWD, path, &st) == 0;
}

/* The state stands beside the watched directory: frameworks count and sort what is inside it. */
static int place_state(const io *io, const places_options *o, places *p, err *e) {
  if (o->state) return local_path(io, "`state`", o->state, p->state, e);
  int mount = is_there(io, p->dir) ? fs_is_mount_point(p->dir, e) : 0;
  if (mount < 0) return mount;
  if (mount)
    return err_set(e, ERR_INVAL,
                   "%s is a mount point, so no state directory can stand beside it: name one with "
                   "`state`, outside of it",
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
                 "%s cannot be made: name a state directory that can be written with `state`, "
                 "outside of %s",
                 p->state, p->dir);
}

/* Checks the owner: whoever may rename in it decides which files we restore, and which we take for
 * committed. */
static int check_owner(const io *io, const places *p, err *e) {
  struct stat st;
  int rc = io->lstat(io, AT_FDCWD, p->state, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", p->state);
  if (!(st.st_mode & 002) || (st.st_mode & S_ISVTX)) return 0;
  return err_set(e, ERR_ACCESS,
                 "everybody may write in the state directory %s: chmod 700 it, or name another one "
                 "with `state`",
                 p->state);
}

bool places_shared(const io *io, const places *p) {
  struct stat st;
  return io->lstat(io, AT_FDCWD, p->state, &st) == 0 &&
         ((st.st_mode & 022) || (st.st_uid != geteuid() && st.st_uid != 0));
}

/* A directory that is ours has a journal, or only what comes before the first one. Anything else was
 * put there by somebody who does not know that we clear <state>/staging. */
static int check_state(const io *io, places *p, err *e) {
  struct stat st;
  int rc = io->lstat(io, AT_FDCWD, p->journal, &st);
  if (rc == 0) return 0;
  if (rc != -ENOENT) return err_sys(e, rc, "look at %s", p->journal);
  char stranger[256];
  rc = home_check_entries(io, p->state, stranger, e);
  if (rc == 0 || !*stranger) return rc;
  return err_set(e, ERR_INVAL,
                 "the state directory %s holds %s and no journal of ours: name an empty one with "
                 "`state`",
                 p->state, stranger);
}

static int apart(const io *io, const char *a, const char *what_a, const char *b, const char *what_b,
                 err *e) {
  if (!fs_within(io, a, b) && !fs_within(io, b, a)) return 0;
  return err_set(e, ERR_INVAL, "%s %s and %s %s must not lie in one another", what_a, a, what_b, b);
}

/* Checks that the places lie apart. One that is not there yet is judged by its name alone, so it is
 * asked again when all are made. */
static int all_apart(const io *io, const places *p, err *e) {
  const char *target = uri_dir(&p->target);
  int rc = apart(io, p->dir, "the watched directory", p->state, "the state directory", e);
  if (rc == 0 && target) rc = apart(io, p->dir, "the watched directory", target, "the target", e);
  if (rc == 0 && target) rc = apart(io, p->state, "the state directory", target, "the target", e);
  return rc;
}

/* Prints the target without and with its query. */
static int print_target(places *p, err *e) {
  buf text, way;
  buf_init(&text, sizeof p->target_text - 1);
  buf_init(&way, sizeof p->target_way - 1);
  uri_print(&p->target, &text);
  uri_print_below(&p->target, "", &way);
  int rc = buf_failed(&text) ? buf_failed(&text) : buf_failed(&way);
  if (rc < 0) {
    rc = err_set(e, rc, "the target's name is too long");
  } else {
    memcpy(p->target_text, text.data, text.len + 1);
    memcpy(p->target_way, way.data, way.len + 1);
  }
  buf_free(&text);
  buf_free(&way);
  return rc;
}

static int place_target(const io *io, const places_options *o, places *p, err *e) {
  buf text;
  buf_init(&text, URI_MAX);
  int rc = o->to && *o->to ? uri_expand(o->to, &text, e)
                           : err_set(e, ERR_INVAL, "`to` is missing: where do checkpoints go?");
  if (rc == 0) rc = uri_parse(text.data, &p->target, e);
  buf_free(&text);
  if (rc == 0 && uri_dir(&p->target)) {
    char real[FS_PATH_MAX];
    rc = resolve(io, p->target.path, real, e);
    if (rc == 0) memcpy(p->target.path, real, strlen(real) + 1);
  }
  return rc < 0 ? rc : print_target(p, e);
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
      return err_set(e, ERR_INVAL, "`run_id` needs 1 to %d bytes",
                     RUNLOG_ID_MAX - HASH_HEX_MAX - 2);
    memcpy(p->run_id, o->run_id, len + 1);
    return 0;
  }
  char hex[HASH_HEX_MAX];
  int rc = digest_of(o->command ? o->command : "", p->dir, hex, e);
  if (rc < 0) return rc;
  snprintf(p->run_id, sizeof p->run_id, "%.16s", hex);
  if (!o->command || !o->program) return 0;
  memcpy(p->former, p->run_id, sizeof p->former);
  buf named;
  buf_init(&named, URI_MAX + 64);
  buf_fmt(&named, "program %s", o->program); /* no command line is equal to it by chance */
  rc = buf_failed(&named) ? err_set(e, ERR_INVAL, "the name of the program is too long")
                          : digest_of(named.data, p->dir, hex, e);
  if (rc == 0) snprintf(p->run_id, sizeof p->run_id, "%.16s", hex);
  buf_free(&named);
  return rc;
}

/* Makes the digest of the command: of its flags it is only ever asked whether they are the same. */
static int name_flags(const places_options *o, places *p, err *e) {
  char hex[HASH_HEX_MAX];
  if (!o->command || !o->program) return 0;
  int rc = digest_of("flags", o->command, hex, e);
  if (rc == 0) snprintf(p->flags, sizeof p->flags, "%.32s", hex);
  return rc;
}

/* ---- the socket ---- */

/* In a directory of ours alone a socket can be neither replaced nor listened to by others. */
static int check_private(const io *io, const char *path, err *e) {
  struct stat st;
  int rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0) return 0;
  return err_set(e, ERR_ACCESS, "%s is not a private directory of this user", path);
}

/* Only a file that is made there shows that it can be done: root may write anywhere but on a file
 * system that is read-only. */
static int check_writable(const io *io, const char *path, const char *name, err *e) {
  char probe[FS_PATH_MAX];
  int rc = fs_join(probe, path, name, e);
  if (rc < 0) return rc;
  int fd = io->open(io, AT_FDCWD, probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return err_sys(e, fd, "write in %s", path);
  io->close(io, fd); /* it is empty */
  rc = io->unlink(io, AT_FDCWD, probe, 0);
  return rc < 0 ? err_sys(e, rc, "remove %s", probe) : 0;
}

/* Refuses an XDG_RUNTIME_DIR that was handed down to users (su) or machines (sbatch) that have no
 * such directory. */
static bool usable(const io *io, const char *runtime) {
  struct stat st;
  if (!runtime || *runtime != '/') return false;
  return io->lstat(io, AT_FDCWD, runtime, &st) == 0 && S_ISDIR(st.st_mode) &&
         st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

/* Gives the i-th place for a socket: its directory and the beginning of its name there. False for
 * one that is no place at all. */
static bool candidate(const io *io, const places *p, int i, char dir[FS_PATH_MAX],
                      const char **stem) {
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  int len = 0;
  *stem = i == 2 ? "socket." : "";
  if (i == 0)
    len = usable(io, runtime) ? snprintf(dir, FS_PATH_MAX, "%s/ckpt-lua", runtime) : -1;
  else if (i == 1)
    len = snprintf(dir, FS_PATH_MAX, "/tmp/ckpt-lua-%ld", (long)geteuid());
  else
    len = snprintf(dir, FS_PATH_MAX, "%s", p->state);
  return len > 0 && len < FS_PATH_MAX;
}

static int try_candidate(const io *io, const char *dir, const char *stem, const char *nonce,
                         char out[IDENTITY_SOCKET_MAX], err *e) {
  char name[64];
  snprintf(name, sizeof name, "%s%.*s", stem, NAME_DIGITS, nonce);
  if (snprintf(out, IDENTITY_SOCKET_MAX, "%s/%s", dir, name) >= IDENTITY_SOCKET_MAX)
    return err_set(e, ERR_LIMIT, "%s: a socket's address has room for %d bytes", dir,
                   IDENTITY_SOCKET_MAX - 1);
  int made = io->mkdir(io, AT_FDCWD, dir, 0700);
  int rc =
      made < 0 && made != -EEXIST ? err_sys(e, made, "make %s", dir) : check_private(io, dir, e);
  return rc < 0 ? rc : check_writable(io, dir, name, e);
}

/* True if the former socket of this very state directory can be used again, since its directory is
 * as it was. The next listener clears a leftover there. */
static bool keeps_place(const io *io, const identity *id, const char *nonce) {
  char dir[FS_PATH_MAX];
  if (!*id->socket) return false;
  fs_parent(id->socket, dir);
  return check_private(io, dir, NULL) == 0 && check_writable(io, dir, nonce, NULL) == 0;
}

int places_socket(const io *io, const identity *id, places *p, err *e) {
  char nonce[33], dir[FS_PATH_MAX];
  const char *stem;
  buf all;
  p->socket[0] = 0;
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  if (keeps_place(io, id, nonce)) {
    memcpy(p->socket, id->socket, sizeof p->socket);
    return 0;
  }
  buf_init(&all, ERR_TEXT_MAX);
  for (int i = 0; i < 3; i++) {
    err why = {0};
    if (!candidate(io, p, i, dir, &stem)) continue;
    rc = try_candidate(io, dir, stem, nonce, p->socket, &why);
    if (rc == 0) break;
    buf_fmt(&all, "%s%s", all.len ? "; " : "", why.text);
  }
  if (rc < 0) {
    p->socket[0] = 0;
    rc = err_set(e, ERR_ACCESS, "%s", all.data ? all.data : "no memory");
  }
  buf_free(&all);
  return rc;
}

int places_look(const io *io, const places_options *o, places *p, err *e) {
  memset(p, 0, sizeof *p);
  int rc = local_path(io, "`dir`", o->dir, p->dir, e);
  if (rc == 0) rc = place_state(io, o, p, e);
  if (rc == 0) rc = place_target(io, o, p, e);
  if (rc == 0) rc = all_apart(io, p, e);
  if (rc == 0) rc = name_run(o, p, e);
  return rc < 0 ? rc : name_flags(o, p, e);
}

int places_open(const io *io, const places_options *o, places *p, err *e) {
  int rc = places_look(io, o, p, e);
  if (rc == 0) rc = make_dirs(io, o, p, e);
  if (rc == 0) rc = all_apart(io, p, e);
  if (rc == 0) rc = check_owner(io, p, e);
  if (rc == 0) rc = fs_join(p->staging, p->state, "staging", e);
  if (rc == 0) rc = fs_join(p->quarantine, p->state, "quarantine", e);
  if (rc == 0) rc = fs_join(p->journal, p->state, "journal.jsonl", e);
  if (rc == 0) rc = fs_join(p->lock, p->state, "lock", e);
  return rc < 0 ? rc : check_state(io, p, e);
}

int places_find(const io *io, const char *dir, const char *state, places *p, err *e) {
  places_options o = {.dir = dir, .state = state};
  identity id;
  char boot[PROC_BOOT_MAX];
  memset(p, 0, sizeof *p);
  int rc = dir || !state ? local_path(io, "`dir`", dir, p->dir, e) : 0;
  if (rc == 0) rc = place_state(io, &o, p, e);
  if (rc == 0) rc = proc_boot_id(boot, e);
  if (rc < 0) return rc;
  err why = {0};
  rc = identity_find(io, p->state, boot, &id, &why);
  if (rc == ERR_ACCESS)
    return err_set(e, rc, "%s: what runs there belongs to another user", why.text);
  if (fs_join(p->lock, p->state, "lock", &why) == 0) p->held = lock_is_held(p->lock);
  if (rc == 0) memcpy(p->socket, id.socket, sizeof p->socket);
  if (rc == 0) memcpy(p->state_id, id.id, sizeof p->state_id);
  if (rc == 0) memcpy(p->launch, id.launch, sizeof p->launch);
  if (rc == 0 && p->held) memcpy(p->waits, id.waits, sizeof p->waits);
  if (rc == ERR_NOENT) memcpy(p->host, id.host, sizeof p->host);
  if (rc == ERR_NOENT) memcpy(p->boot, id.boot, sizeof p->boot);
  return 0; /* no known run is an answer, too */
}

/* Makes a digest of an id, which others may compare, and not learn. */
static int digest_of_id(const char *what, const char *id, char out[RUNLOG_DIGEST_MAX], err *e) {
  char text[PROC_SPACE_MAX + 64], hex[HASH_HEX_MAX];
  out[0] = 0;
  if (!*id) return 0;
  int len = snprintf(text, sizeof text, "ckpt-lua %s %s", what, id);
  int rc = hash_sha256_hex(text, (size_t)len, hex, e);
  if (rc == 0) snprintf(out, RUNLOG_DIGEST_MAX, "%.32s", hex);
  return rc;
}

int places_name_writer(const places *p, runlog_writer *out, err *e) {
  char machine[PROC_MACHINE_MAX], space[PROC_SPACE_MAX];
  proc_machine(machine);
  proc_space(space);
  int rc = digest_of_id("machine", machine, out->machine, e);
  if (rc == 0) rc = digest_of_id("pids", space, out->pids, e);
  return rc < 0 ? rc : digest_of_id("state", p->state_id, out->place, e);
}

int places_writer(const io *io, const places *p, const char *launch, runlog_writer *out, err *e) {
  *out = (runlog_writer){.pid = getpid()};
  char nonce[33];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  if (launch && strlen(launch) >= sizeof out->launch)
    return err_set(e, ERR_INVAL, "`launch`: at most %zu bytes", sizeof out->launch - 1);
  snprintf(out->launch, sizeof out->launch, "%s", launch ? launch : nonce);
  slurm_name_job(getenv("SLURM_CLUSTER_NAME"), getenv("SLURM_JOB_ID"), out->job, sizeof out->job);
  if (gethostname(out->host, sizeof out->host - 1) < 0) strcpy(out->host, "unknown");
  snprintf(out->state, sizeof out->state, "%.*s", (int)sizeof out->state - 1, p->state);
  memcpy(out->flags, p->flags, sizeof out->flags);
  rc = proc_boot_id(out->boot, e);
  return rc < 0 ? rc : proc_identity(getpid(), &out->start, NULL, e);
}
