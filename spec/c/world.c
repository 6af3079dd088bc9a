#include "world.h"

#include "with_cmocka.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit/removal.h"
#include "job/restore/restore.h"
#include "io_fault.h"
#include "log_check.h"
#include "manifest_make.h"
#include "tmpdir.h"

const char *const world_schemes[2] = {"file", "mem"};
char world_in_file[] = "file";

static char *copy_of(const char *text) {
  char *made = strdup(text);
  if (!made) abort();
  return made;
}

static char *sub_dir(const char *dir, const char *name) {
  char *path = copy_of(tmpdir_path(dir, name));
  make_dir(path);
  return path;
}

static void no_sleep(const io *io, int64_t ns) {}

static pthread_once_t quick_once = PTHREAD_ONCE_INIT;
static io quick;

static void make_quick(void) {
  quick = *io_unflushed();
  quick.sleep = no_sleep;
}

const io *world_io(void) {
  pthread_once(&quick_once, make_quick);
  return &quick;
}

world *world_new(const char *scheme, const io *io) {
  world *w = calloc(1, sizeof *w);
  if (!w) abort();
  store_place_scheme = scheme;
  /* Hundreds of worlds: in memory, where there is such a place, unless another one was asked for.
   */
  if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0) store_place_parent = "/dev/shm";
  store_place_make(&w->place, io);
  w->dir = copy_of(w->place.dir);
  w->root = sub_dir(w->dir, "watched");
  w->staging = sub_dir(w->dir, "staging");
  w->out = sub_dir(w->dir, "out");
  if (pool_open(&w->pool, 2, 16, NULL) < 0) abort();
  w->env = (job_env){.io = io,
                     .pool = w->pool,
                     .store = w->place.s,
                     .rules = rules_builtin(),
                     .root = w->root,
                     .staging = w->staging};
  return w;
}

void world_free(world *w) {
  for (size_t i = 0; i < w->log_count; i++) runlog_close(w->logs[i]);
  store_lossy_free(w->lossy);
  pool_close(w->pool);
  store_place_remove(&w->place);
  free(w->dir);
  free(w->root);
  free(w->staging);
  free(w->out);
  free(w);
}

int world_set_up_file(void **state) {
  *state = world_new("file", world_io());
  return 0;
}

int world_set_up_mem(void **state) {
  *state = world_new("mem", world_io());
  return 0;
}

int world_tear_down(void **state) {
  world_free(*state);
  return 0;
}

world *world_next(world *w, const io *io) {
  size_t scheme = w ? w->scheme + 1 : 0;
  if (w) world_free(w);
  if (scheme == sizeof world_schemes / sizeof world_schemes[0]) return NULL;
  w = world_new(world_schemes[scheme], io);
  w->scheme = scheme;
  return w;
}

store *world_store(const world *w) {
  store *s;
  err e = {0};
  if (store_open(&w->place.where, world_io(), NULL, &s, &e) < 0) fail_msg("%s", e.text);
  return s;
}

store_lossy *world_lossy(world *w, bool proof) {
  w->lossy = store_lossy_new(w->place.s, 1, proof);
  w->env.store = &w->lossy->base;
  return w->lossy;
}

runlog *world_begin(store *s, const char *prefix, const char *launch) {
  runlog *log = NULL;
  err e = {0};
  runlog_writer who = {.host = "here", .pid = 7};
  snprintf(who.launch, sizeof who.launch, "%s", launch);
  if (runlog_open(s, prefix, &log, &e) < 0 || runlog_begin(log, "run", &who, false, &e) < 0)
    fail_msg("%s", e.text);
  return log;
}

uint64_t world_commit(runlog *log, const char *unit) {
  uint64_t n, made = 0;
  manifest m;
  err e = {0};
  make_small(&m, unit, runlog_view(log)->next);
  int rc = runlog_attempt_begin(log, unit, &n, &e);
  if (rc == 0) rc = runlog_commit_attempt(log, n, &m, NULL, &made, &e);
  if (rc < 0) fail_msg("%s", e.text);
  manifest_free(&m);
  return made;
}

runlog *world_keep(world *w, runlog *log) {
  if (w->log_count == sizeof w->logs / sizeof w->logs[0]) abort();
  return w->logs[w->log_count++] = log;
}

runlog *world_log(world *w, const char *prefix, const char *launch) {
  return world_keep(w, world_begin(w->env.store, prefix, launch));
}

/* ---- units ---- */

static void set_mtime(const char *path, long seconds) {
  struct timespec when[2] = {{seconds, 123456789}, {seconds, 123456789}};
  if (utimensat(AT_FDCWD, path, when, AT_SYMLINK_NOFOLLOW) < 0) abort();
}

static void make_dir_unit(const char *at, unsigned seed) {
  make_dir(at);
  make_dir(tmpdir_path(at, "sub"));
  make_dir(tmpdir_path(at, "sub/empty"));
  write_pattern(tmpdir_path(at, "model.bin"), 70000 + seed % 7, seed);
  write_pattern(tmpdir_path(at, "sub/shard\xff"), 300, seed + 1);
  write_bytes(tmpdir_path(at, "empty"), "", 0);
  if (symlink("model.bin", tmpdir_path(at, "link")) < 0) abort();
  if (chmod(tmpdir_path(at, "model.bin"), 0640) < 0) abort();
  set_mtime(tmpdir_path(at, "model.bin"), 1700000000);
  set_mtime(tmpdir_path(at, "link"), 1600000000);
  if (chmod(tmpdir_path(at, "sub/empty"), 0750) < 0) abort();
  set_mtime(tmpdir_path(at, "sub/empty"), 1500000000);
  set_mtime(tmpdir_path(at, "sub"), 1400000000);
  set_mtime(at, 1300000000);
}

static void remove_path(const char *path) {
  struct stat st;
  if (lstat(path, &st) < 0) return;
  if (S_ISDIR(st.st_mode))
    tmpdir_remove(copy_of(path));
  else
    unlink(path);
}

void remove_unit(const world *w, const char *path, match_kind kind) {
  char name[4096];
  if (kind != MATCH_GROUP) remove_path(tmpdir_path(w->root, path));
  for (int i = 0; kind == MATCH_GROUP && i < 3; i++) {
    snprintf(name, sizeof name, "%s.part-%d", path, i);
    remove_path(tmpdir_path(w->root, name));
  }
}

static void make_parents(const char *root, const char *path) {
  char part[4096];
  for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
    snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
    if (!path_exists(tmpdir_path(root, part))) make_dir(tmpdir_path(root, part));
  }
}

void make_unit(const world *w, const char *path, match_kind kind, unsigned seed) {
  char name[4096], at[4096];
  remove_unit(w, path, kind);
  make_parents(w->root, path);
  snprintf(at, sizeof at, "%s/%s", w->root, path);
  if (kind == MATCH_DIR) {
    make_dir_unit(at, seed);
  } else if (kind == MATCH_FILE) {
    write_pattern(at, 5000 + seed % 7, seed);
    set_mtime(at, 1700000000);
  } else {
    for (int i = 0; i < 3; i++) {
      snprintf(name, sizeof name, "%s.part-%d", path, i);
      write_pattern(tmpdir_path(w->root, name), 1000 + seed % 7 + (unsigned)i, seed + (unsigned)i);
    }
  }
}

/* ---- jobs ---- */

job *job_for(const world *w, runlog *log, const char *path, match_kind kind, int64_t step,
             int with) {
  static _Atomic uint64_t ids; /* ranks make theirs on threads of their own */
  job *j = calloc(1, sizeof *j);
  if (!j) abort();
  j->id = ++ids;
  j->env = &w->env;
  j->log = log;
  snprintf(j->policy, sizeof j->policy, "test");
  j->plan = (plan){.kind = kind, .step = step};
  snprintf(j->plan.unit, sizeof j->plan.unit, "%s", path);
  plan_op *ops = j->plan.ops;
  int n = 0;
  if (with & WITH_PROVE) ops[n++] = PLAN_PROVE;
  if (with & WITH_SNAPSHOT) ops[n++] = PLAN_SNAPSHOT;
  ops[n++] = PLAN_ATTEMPT;
  ops[n++] = PLAN_UPLOAD;
  ops[n++] = PLAN_MANIFEST;
  if (store_can(w->env.store, STORE_CAP_PUBLISH)) ops[n++] = PLAN_PUBLISH;
  ops[n++] = PLAN_COMMIT;
  j->plan.count = n;
  return j;
}

void job_free(job *j) {
  free(j->metrics);
  names_free(&j->left);
  free(j);
}

uint64_t save_unit(const world *w, runlog *log, const char *path, match_kind kind, int64_t step) {
  job *j = job_for(w, log, path, kind, step, 0);
  job_run(j);
  if (j->status != 0) fail_msg("%s", j->error.text);
  uint64_t n = j->commit.n;
  job_free(j);
  return n;
}

uint64_t save_numbered(const world *w, runlog *log, int i) {
  char name[32];
  snprintf(name, sizeof name, "checkpoint-%d", i);
  make_unit(w, name, MATCH_DIR, (unsigned)i);
  return save_unit(w, log, name, MATCH_DIR, i);
}

/* ---- restoring ---- */

static void empty_out(const world *w) {
  remove_path(w->out);
  make_dir(w->out);
}

int restore_commit(const world *w, const char *prefix, const runlog_commit *c, err *e) {
  store *s = world_store(w);
  manifest m = {0};
  char key[STORE_KEY_MAX];
  restore how = {.io = world_io(), .store = s, .pool = w->pool, .staging = w->staging};
  empty_out(w);
  snprintf(key, sizeof key, "%s%s%s", prefix, *prefix ? "/" : "", c->dir);
  int rc = restore_manifest(s, prefix, c, &m, e);
  if (rc == 0) rc = restore_unit(&how, &m, key, w->out, e);
  manifest_free(&m);
  store_close(s);
  return rc;
}

static bool same_times(const struct stat *a, const struct stat *b) {
  return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static const char *dirs_differ(const char *a, const char *b) {
  char left[4096], right[4096];
  const char *why = NULL;
  DIR *d = opendir(a);
  if (!d) abort();
  for (struct dirent *entry; !why && (entry = readdir(d));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(left, sizeof left, "%s/%s", a, entry->d_name);
    snprintf(right, sizeof right, "%s/%s", b, entry->d_name);
    why = tree_differs(left, right);
  }
  closedir(d);
  return why || count_entries(a) == count_entries(b) ? why : "it has more names";
}

static bool same_target(const char *a, const char *b) {
  char x[4096] = "", y[4096] = "";
  return readlink(a, x, sizeof x - 1) > 0 && readlink(b, y, sizeof y - 1) > 0 && strcmp(x, y) == 0;
}

const char *tree_differs(const char *a, const char *b) {
  static char text[4200];
  struct stat left, right;
  const char *why = NULL;
  if (lstat(a, &left) < 0) return "what it was made of is missing";
  if (lstat(b, &right) < 0)
    why = "is missing";
  else if ((left.st_mode & S_IFMT) != (right.st_mode & S_IFMT))
    why = "has another type";
  else if (!same_times(&left, &right))
    why = "has another mtime";
  else if (S_ISLNK(left.st_mode))
    why = same_target(a, b) ? NULL : "has another target";
  else if (left.st_mode != right.st_mode)
    why = "has another mode";
  else if (S_ISDIR(left.st_mode))
    return dirs_differ(a, b);
  else if (!files_equal(a, b))
    why = "has other bytes";
  if (!why) return NULL;
  snprintf(text, sizeof text, "%s %s", b, why);
  return text;
}

static const char *group_differs(const world *w, const char *unit, const char *path) {
  char left[4096], right[4096];
  const char *why = NULL;
  for (int i = 0; !why && i < 3; i++) {
    snprintf(left, sizeof left, "%s/%s.part-%d", w->root, path, i);
    snprintf(right, sizeof right, "%s/%s.part-%d", w->out, unit, i);
    why = tree_differs(left, right);
  }
  return why;
}

const char *restored_differs(const world *w, const char *prefix, const runlog_commit *c,
                             const char *path) {
  static char text[ERR_TEXT_MAX];
  err e = {0};
  bool group = c->kind == MATCH_GROUP;
  if (restore_commit(w, prefix, c, &e) < 0) {
    snprintf(text, sizeof text, "%s", e.text);
    return text;
  }
  if (count_entries(w->out) != (group ? 3 : 1)) return "its restore made other names";
  if (group) return group_differs(w, c->unit, path);
  return tree_differs(tmpdir_path(w->root, path), tmpdir_path(w->out, c->unit));
}

void must_restore(const world *w, const char *prefix, const runlog_commit *c, const char *path) {
  assert_non_null(c);
  const char *why = restored_differs(w, prefix, c, path);
  if (why) fail_msg("%s: %s", c->dir, why);
  assert_int_equal(count_entries(w->staging), 0);
}

/* ---- what stands in the store ---- */

struct litter {
  const runlog_state *state;
  size_t skip;
  bool *cleared; /* each attempt of the state: given up by a launch of several ranks, and removed */
  char found[STORE_KEY_MAX];
};

/* Parts and companions stand under the number of their attempt. */
static bool beside_a_commit(const runlog_state *state, const char *name) {
  static const char *const beside[] = {".ckpt/parts/", ".ckpt/with/"};
  for (size_t i = 0; i < 2; i++) {
    size_t len = strlen(beside[i]);
    if (strncmp(name, beside[i], len) != 0) continue;
    const runlog_commit *c = runlog_commit_of(state, strtoull(name + len, NULL, 10));
    return c && c->life != RUNLOG_DELETED;
  }
  return false;
}

/* True for objects that a rank was still sending when rank 0 gave the save up: they stay until gc
 * names them. */
static bool came_late(const struct litter *l, const char *name) {
  for (size_t i = 0; i < l->state->attempt_count; i++) {
    size_t len = strlen(l->state->attempts[i].dir);
    if (l->cleared[i] && strncmp(name, l->state->attempts[i].dir, len) == 0 && name[len] == '/')
      return true;
  }
  return false;
}

static bool *find_cleared(store *s, runlog *log) {
  const runlog_state *state = runlog_view(log);
  bool *out = calloc(state->attempt_count + 1, sizeof *out);
  assert_non_null(out);
  for (size_t i = 0; i < state->attempt_count; i++) {
    const runlog_attempt *a = &state->attempts[i];
    char id[RUNLOG_NONCE_MAX], key[STORE_KEY_MAX];
    if (a->fate != RUNLOG_SWEPT || a->world < 2) continue;
    assert_int_equal(runlog_attempt_id(log, a->n, id, NULL), 0);
    assert_int_equal(removal_key(log, REMOVAL_CLEARED, id, key, NULL), 0);
    out[i] = store_holds(s, key);
  }
  return out;
}

static int judge_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  struct litter *l = ctx;
  const char *name = key + l->skip;
  if (strncmp(name, ".ckpt/log/", 10) == 0 || strcmp(name, ".ckpt/lease") == 0) return 0;
  if (strcmp(name, ".ckpt/head") == 0) return 0;
  if (strncmp(name, ".ckpt/pins/", 11) == 0) return 0;
  if (strncmp(name, ".ckpt/cleared/", 14) == 0) return 0; /* stays, as the log does */
  if (strncmp(name, ".ckpt/thinned/", 14) == 0) return 0; /* the same */
  if (beside_a_commit(l->state, name) || came_late(l, name)) return 0;
  if (strncmp(name, ".ckpt/lease-probe.", 18) == 0) return 0; /* a removal of one failed */
  for (size_t i = 0; i < l->state->commit_count; i++) {
    if (l->state->commits[i].life == RUNLOG_DELETED) continue;
    size_t len = strlen(l->state->commits[i].dir);
    if (strncmp(name, l->state->commits[i].dir, len) == 0 && name[len] == '/') return 0;
  }
  snprintf(l->found, sizeof l->found, "%s", key);
  return 1;
}

const char *store_litter(store *s, const char *prefix) {
  static struct litter l;
  runlog *log;
  l = (struct litter){.skip = *prefix ? strlen(prefix) + 1 : 0};
  assert_int_equal(runlog_open(s, prefix, &log, NULL), 0);
  l.state = runlog_view(log);
  l.cleared = find_cleared(s, log);
  int rc = s->ops->list(s, prefix, false, judge_key, &l, NULL);
  free(l.cleared);
  assert_true(rc >= 0);
  for (size_t i = 0; rc == 0 && i < l.state->commit_count; i++) {
    char key[STORE_KEY_MAX + 40];
    snprintf(key, sizeof key, "%s%s%s/%s", prefix, *prefix ? "/" : "", l.state->commits[i].dir,
             MANIFEST_NAME);
    if (l.state->commits[i].life == RUNLOG_DELETED || store_holds(s, key)) continue;
    snprintf(l.found, sizeof l.found, "%.900s is missing", key);
    rc = 1;
  }
  runlog_close(log);
  return rc ? l.found : NULL;
}

void world_must_be_clean(const world *w) {
  store *s = world_store(w);
  const char *litter = store_litter(s, "");
  if (litter) fail_msg("in the store: %s", litter);
  const char *broken = s->ops->exists(s, NULL) == 0 ? log_check(s, "", &(size_t){0}) : NULL;
  if (broken) fail_msg("the log: %s", broken);
  if (count_entries(w->staging)) fail_msg("the local staging is not empty");
  store_close(s);
}

/* ---- hooks ---- */

static pthread_mutex_t hook_mutex = PTHREAD_MUTEX_INITIALIZER; /* uploads open on several threads */
static struct {
  const io *inner;
  const char *what;
  long left;
  void (*hook)(void *ctx);
  void *ctx;
  bool ran;
} hooks;

static void see_open(const char *path) {
  pthread_mutex_lock(&hook_mutex);
  bool fits = !hooks.what || strstr(path, hooks.what);
  if (hooks.hook && !hooks.ran && fits && --hooks.left == 0) {
    hooks.ran = true;
    hooks.hook(hooks.ctx);
  }
  pthread_mutex_unlock(&hook_mutex);
}

static int hooked_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  see_open(path);
  return hooks.inner->open(hooks.inner, dirfd, path, flags, mode);
}

/* Below a held directory. One that is opened only to name what is in it (O_PATH) is no open. */
static int hooked_open_beneath(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  if (!(flags & O_PATH)) see_open(path);
  return hooks.inner->open_beneath(hooks.inner, dirfd, path, flags, mode);
}

const io *hooked_io(const io *inner, const char *what, long nth, void (*hook)(void *ctx),
                    void *ctx) {
  static io made;
  made = *inner;
  made.open = hooked_open;
  if (inner->open_beneath) made.open_beneath = hooked_open_beneath;
  hooks.inner = inner;
  hooks.what = what;
  hooks.left = nth;
  hooks.hook = hook;
  hooks.ctx = ctx;
  hooks.ran = false;
  return &made;
}

bool hook_ran(void) {
  return hooks.ran;
}
