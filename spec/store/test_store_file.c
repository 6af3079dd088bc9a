/* What is special of the store in a directory; test_store.c has what all stores promise. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_fault.h"
#include "store_place.h"
#include "tmpdir.h"

static store *store_of(void **state) {
  return ((store_place *)*state)->s;
}

static const char *at(void **state, const char *name) {
  const store_place *p = *state;
  return tmpdir_path(p->where.path, name);
}

static int put(store *s, const char *key) {
  return store_put_text(s, key, key, STORE_IF_ABSENT);
}

static int stage(store *s, const char *key) {
  return store_stream(s, key, key, strlen(key), 2, true);
}

/* ---- publish ---- */

static void a_staged_prefix_appears_at_once(void **state) {
  store *s = store_of(state);
  assert_true(store_can(s, STORE_CAP_PUBLISH));
  assert_int_equal(stage(s, ".ckpt/staging/1/a"), 0);
  assert_int_equal(stage(s, ".ckpt/staging/1/b/c"), 0);
  assert_int_equal(stage(s, ".ckpt/staging/1/b/c"), ERR_EXISTS);
  store_must_list(s, "exp", false, "");
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", "exp/trial/ckpt-1", NULL), 0);
  store_must_list(s, "", false, "exp/trial/ckpt-1/a exp/trial/ckpt-1/b/c");
  store_must_hold(s, "exp/trial/ckpt-1/b/c", ".ckpt/staging/1/b/c");
}

static int note_dir(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  char *all = ctx;
  assert_true(is_prefix);
  assert_true(object && object->mtime_ns > 0);
  snprintf(all + strlen(all), 100 - strlen(all), "%s ", key);
  return 0;
}

/* Where a process was killed, a directory may be all that it made. */
static void directories_are_told_though_nothing_is_in_them(void **state) {
  store *s = store_of(state);
  char all[100] = "";
  assert_int_equal(put(s, "exp/full/a"), 0);
  assert_int_equal(put(s, "exp/file"), 0);
  assert_int_equal(mkdir(at(state, "exp/empty"), 0700), 0);
  assert_int_equal(symlink("full", at(state, "exp/link")), 0);
  assert_int_equal(store_list_dirs(s, "exp", note_dir, all, NULL), 0);
  assert_string_equal(all, "exp/empty exp/full ");
  store_must_list(s, "exp", true, "exp/file exp/full/");
  *all = 0;
  assert_int_equal(store_list_dirs(s, "nothing", note_dir, all, NULL), 0);
  assert_string_equal(all, "");
}

/* Of what is removed nothing stays, and of what others put there all of it. */
static void only_these_objects_and_what_they_leave_empty_go(void **state) {
  store *s = store_of(state);
  static const char *const keys[] = {"exp/a", "exp/b/c", "exp/b/d/e", "exp/was/never"};
  assert_int_equal(put(s, "exp/a"), 0);
  assert_int_equal(put(s, "exp/b/c"), 0);
  assert_int_equal(put(s, "exp/b/d/e"), 0);
  assert_int_equal(mkdir(at(state, "exp/empty"), 0700), 0);
  assert_int_equal(symlink("a", at(state, "exp/b/link")), 0);
  assert_int_equal(put(s, "other"), 0);
  assert_int_equal(s->ops->remove_below(s, "exp", keys, 4, NULL), 0);
  assert_int_equal(access(at(state, "exp/a"), F_OK), -1);
  assert_int_equal(access(at(state, "exp/b/d"), F_OK), -1);
  assert_int_equal(access(at(state, "exp/empty"), F_OK), 0);
  assert_int_equal(unlink(at(state, "exp/b/link")), 0);
  assert_int_equal(rmdir(at(state, "exp/empty")), 0);
  assert_int_equal(s->ops->remove_below(s, "exp", keys, 4, NULL), 0);
  assert_int_equal(access(at(state, "exp"), F_OK), -1);
  store_must_list(s, "", false, "other");
}

static void what_another_user_or_a_link_made_is_not_ours(void **state) {
  store *s = store_of(state);
  err e = {0};
  assert_int_equal(stage(s, ".ckpt/staging/1/a"), 0);
  assert_int_equal(stage(s, ".ckpt/staging/1/b/c"), 0);
  assert_int_equal(s->ops->check_owner(s, ".ckpt/staging/1", &e), 0);
  assert_int_equal(s->ops->check_owner(s, ".ckpt/staging/2", &e), 0); /* nothing is there */
  assert_int_equal(s->ops->flush(s, ".ckpt/staging/1", &e), 0);
  store_must_hold(s, ".ckpt/staging/1/b/c", ".ckpt/staging/1/b/c");
  assert_int_equal(symlink("a", at(state, ".ckpt/staging/1/b/link")), 0);
  assert_int_equal(s->ops->check_owner(s, ".ckpt/staging/1", &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "b/link"));
  assert_int_equal(unlink(at(state, ".ckpt/staging/1/b/link")), 0);
  if (geteuid() != 0) return; /* nobody else can give a file away */
  assert_int_equal(chown(at(state, ".ckpt/staging/1/b"), 1234, (gid_t)-1), 0);
  assert_int_equal(s->ops->check_owner(s, ".ckpt/staging/1", &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "1234"));
}

static void a_publish_onto_what_exists_is_refused_and_nothing_is_lost(void **state) {
  store *s = store_of(state);
  err e = {0};
  const char *all = ".ckpt/staging/1/a ckpt-1/old file";
  assert_int_equal(stage(s, ".ckpt/staging/1/a"), 0);
  assert_int_equal(put(s, "ckpt-1/old"), 0);
  assert_int_equal(put(s, "file"), 0);
  make_dir(at(state, "empty"));
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", "ckpt-1", &e), ERR_EXISTS);
  assert_int_equal(e.code, ERR_EXISTS);
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", "file", NULL), ERR_EXISTS);
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", "empty", NULL), ERR_EXISTS);
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", "file/x", NULL), ERR_INVAL);
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", ".ckpt/staging/1/x", NULL), ERR_INVAL);
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", ".ckpt/staging/1", NULL), ERR_EXISTS);
  assert_int_equal(s->ops->publish(s, "absent", "new", NULL), ERR_NOENT);
  assert_int_equal(s->ops->publish(s, "file", "new", NULL), ERR_NOENT);
  store_must_list(s, "", false, all);
  store_must_hold(s, "ckpt-1/old", "ckpt-1/old");
}

typedef struct racer {
  pthread_t thread;
  pthread_barrier_t *start;
  store *s;
  char from[32];
  int rc;
} racer;

static void *race(void *arg) {
  racer *r = arg;
  pthread_barrier_wait(r->start);
  r->rc = r->s->ops->publish(r->s, r->from, "to/here", NULL);
  return NULL;
}

static void exactly_one_of_many_publishes_wins_and_the_others_keep_theirs(void **state) {
  enum { RACERS = 8 };
  store *s = store_of(state);
  racer r[RACERS];
  pthread_barrier_t start;
  int won = 0;
  pthread_barrier_init(&start, NULL, RACERS);
  for (int i = 0; i < RACERS; i++) {
    char key[64];
    r[i] = (racer){.start = &start, .s = s};
    snprintf(r[i].from, sizeof r[i].from, "staging/%d", i);
    snprintf(key, sizeof key, "%s/k", r[i].from);
    assert_int_equal(stage(s, key), 0);
  }
  for (int i = 0; i < RACERS; i++)
    assert_int_equal(pthread_create(&r[i].thread, NULL, race, &r[i]), 0);
  for (int i = 0; i < RACERS; i++) pthread_join(r[i].thread, NULL);
  pthread_barrier_destroy(&start);
  for (int i = 0; i < RACERS; i++) {
    char key[64];
    snprintf(key, sizeof key, "%s/k", r[i].from);
    won += r[i].rc == 0;
    if (r[i].rc == 0)
      store_must_hold(s, "to/here/k", key);
    else {
      assert_int_equal(r[i].rc, ERR_EXISTS);
      store_must_hold(s, key, key);
    }
  }
  assert_int_equal(won, 1);
}

static void an_aborted_or_wrong_staged_file_leaves_nothing(void **state) {
  store *s = store_of(state);
  store_writer *w;
  assert_int_equal(s->ops->write_open(s, "st/1/a", 2, true, NULL, &w, NULL), 0);
  s->ops->write_abort(w);
  assert_int_equal(s->ops->write_open(s, "st/1/a", 2, true, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "x", 1, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), ERR_INVAL);
  assert_false(path_exists(at(state, "st/1/a")));
}

/* ---- what lies on a disk ---- */

static void an_object_and_a_prefix_cannot_share_a_name(void **state) {
  store *s = store_of(state);
  store_writer *w;
  err e = {0};
  assert_int_equal(put(s, "a/b"), 0);
  assert_int_equal(s->ops->put(s, "a", "x", 1, STORE_IF_ABSENT, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "is a directory"));
  assert_int_equal(s->ops->put(s, "a", "x", 1, STORE_REPLACE, NULL), ERR_INVAL);
  assert_int_equal(s->ops->write_open(s, "a", 1, false, NULL, &w, NULL), ERR_INVAL);
  assert_int_equal(s->ops->put(s, "a/b/c/d", "x", 1, STORE_IF_ABSENT, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "is a file"));
  assert_int_equal(s->ops->put(s, "a/b/c", "x", 1, STORE_REPLACE, NULL), ERR_INVAL);
  assert_int_equal(s->ops->write_open(s, "a/b/c", 1, true, NULL, &w, NULL), ERR_INVAL);
  /* The same when the other one comes in between. */
  assert_int_equal(s->ops->write_open(s, "x", 1, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "1", 1, NULL), 0);
  assert_int_equal(put(s, "x/y"), 0);
  assert_int_equal(s->ops->write_close(w, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "is a directory"));
  assert_int_equal(s->ops->write_open(s, "z/k", 1, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "1", 1, NULL), 0);
  assert_int_equal(put(s, "z"), 0);
  assert_int_equal(s->ops->write_close(w, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "is a file"));
  store_must_list(s, "", false, "a/b x/y z");
  assert_int_equal(count_entries(at(state, ".ckpt/tmp")), 0);
}

static void links_and_special_files_are_neither_listed_nor_touched(void **state) {
  store_place *p = *state;
  store *s = p->s;
  char outside[URI_MAX];
  snprintf(outside, sizeof outside, "%s/outside", p->dir);
  make_dir(outside);
  write_file(tmpdir_path(outside, "precious"), "p");
  assert_int_equal(put(s, "d/k"), 0);
  assert_int_equal(symlink(outside, at(state, "d/out")), 0);
  assert_int_equal(symlink(tmpdir_path(outside, "precious"), at(state, "d/file")), 0);
  assert_int_equal(symlink("nowhere", at(state, "d/dangling")), 0);
  assert_int_equal(mkfifo(at(state, "d/fifo"), 0600), 0);
  store_must_list(s, "", false, "d/k");
  store_must_list(s, "d", true, "d/k");
  const char *keys[] = {"d/out/precious", "d/file", "d/out", "d/dangling", "d/fifo"};
  for (int i = 0; i < 5; i++) {
    buf b;
    char to[4];
    store_object o;
    store_writer *w;
    err e = {0};
    buf_init(&b, 10);
    assert_int_equal(s->ops->get(s, keys[i], &b, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.text, i == 4 ? "regular file" : "symbolic link"));
    assert_int_equal(s->ops->read(s, keys[i], 0, to, 4, NULL), ERR_CORRUPT);
    assert_int_equal(s->ops->head(s, keys[i], &o, NULL), ERR_INVAL);
    assert_int_equal(put(s, keys[i]), ERR_INVAL);
    assert_int_equal(s->ops->put(s, keys[i], "x", 1, STORE_REPLACE, NULL), ERR_INVAL);
    assert_int_equal(s->ops->write_open(s, keys[i], 1, false, NULL, &w, NULL), ERR_INVAL);
    assert_int_equal(s->ops->write_open(s, keys[i], 1, true, NULL, &w, NULL), ERR_INVAL);
    assert_int_equal(s->ops->remove(s, keys[i], NULL), ERR_INVAL);
    if (i < 4) {
      assert_int_equal(s->ops->remove_prefix(s, keys[i], NULL), ERR_INVAL);
      store_must_list(s, keys[i], false, "!INVAL");
    }
    buf_free(&b);
  }
  assert_true(file_is(tmpdir_path(outside, "precious"), "p"));
  assert_int_equal(count_entries(outside), 1);
  assert_int_equal(s->ops->remove_prefix(s, "d", NULL), 0);
  assert_true(file_is(tmpdir_path(outside, "precious"), "p"));
}

static void the_root_may_be_a_link_to_a_directory(void **state) {
  store_place *p = *state;
  store *s = p->s;
  make_dir(tmpdir_path(p->dir, "disk"));
  assert_int_equal(symlink("disk", p->where.path), 0);
  assert_int_equal(s->ops->exists(s, NULL), 0);
  assert_int_equal(put(s, "d/k"), 0);
  store_must_list(s, "", false, "d/k");
  store_must_list(s, "", true, "d/");
  assert_true(path_exists(tmpdir_path(p->dir, "disk/d/k")));
}

static void a_root_that_is_no_directory_is_no_store(void **state) {
  store_place *p = *state;
  write_file(p->where.path, "x");
  assert_int_equal(p->s->ops->exists(p->s, NULL), ERR_NOSTORE);
  assert_true(put(p->s, "k") < 0);
  assert_true(file_is(p->where.path, "x"));
}

static void unfinished_files_of_the_dead_are_hidden_and_left_alone(void **state) {
  store_place *p = *state;
  store *s = p->s;
  assert_int_equal(put(s, ".ckpt/log/0"), 0);
  write_file(at(state, ".ckpt/tmp/dead"), "half");
  store *other;
  assert_int_equal(store_open(&p->where, io_system(), NULL, &other, NULL), 0);
  assert_int_equal(put(other, "k"), 0);
  store_must_list(other, "", false, ".ckpt/log/0 k");
  store_must_list(other, ".ckpt", true, ".ckpt/log/");
  assert_int_equal(other->ops->remove(other, ".ckpt/log/0", NULL), 0);
  store_must_list(other, "", true, "k");
  const char *keys[] = {".ckpt/tmp", ".ckpt/tmp/dead", ".ckpt/tmp/x/y"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(put(other, keys[i]), ERR_INVAL);
    assert_int_equal(other->ops->remove(other, keys[i], NULL), ERR_INVAL);
    assert_int_equal(other->ops->remove_prefix(other, keys[i], NULL), ERR_INVAL);
    store_must_list(other, keys[i], false, "!INVAL");
  }
  assert_int_equal(put(other, ".ckpt/tmpx"), 0);
  assert_int_equal(put(other, "a/.ckpt/tmp/k"), 0);
  store_must_list(other, "", false, ".ckpt/tmpx a/.ckpt/tmp/k k");
  store_close(other);
  assert_true(file_is(at(state, ".ckpt/tmp/dead"), "half"));
}

static void modes_are_those_of_the_umask(void **state) {
  store *s = store_of(state);
  mode_t old = umask(027);
  assert_int_equal(put(s, "d/e/put"), 0);
  assert_int_equal(store_stream(s, "d/stream", "x", 1, 1, false), 0);
  assert_int_equal(stage(s, "st/e/k"), 0);
  assert_int_equal(s->ops->publish(s, "st", "pub/st", NULL), 0);
  umask(old);
  const char *dirs[] = {"", ".ckpt", "d", "d/e", "pub", "pub/st", "pub/st/e", ".ckpt/tmp"};
  const char *files[] = {"d/e/put", "d/stream", "pub/st/e/k"};
  for (int i = 0; i < 8; i++) assert_int_equal(path_mode(at(state, dirs[i])), 0750);
  for (int i = 0; i < 3; i++) assert_int_equal(path_mode(at(state, files[i])), 0640);
}

static void what_is_too_deep_or_long_for_a_disk_is_refused(void **state) {
  store *s = store_of(state);
  char key[STORE_KEY_MAX + 1] = "";
  for (int i = 0; i < 128; i++) key[i] = i % 2 ? '/' : 'a'; /* a/a/.../a/ : 64 components */
  key[127] = 0;
  assert_int_equal(put(s, key), 0);
  store_must_list(s, "", false, key);
  assert_int_equal(s->ops->remove_prefix(s, "a", NULL), 0);
  memcpy(key + 127, "/a", 3);
  assert_int_equal(put(s, key), ERR_LIMIT);
  assert_int_equal(stage(s, key), ERR_LIMIT);
  memset(key, 'n', 256);
  key[256] = 0;
  assert_int_equal(put(s, key), ERR_INVAL);
  assert_int_equal(stage(s, key), ERR_INVAL);
  key[255] = 0;
  assert_int_equal(put(s, key), 0);
  store_must_list(s, "", false, key);
}

static void hear(void *ctx, log_level level, const char *text) {
  assert_int_equal(level, LOG_WARN);
  assert_non_null(strstr(text, "too long"));
  ++*(int *)ctx;
}

static void a_file_with_a_name_too_long_for_a_key_is_left_out_aloud(void **state) {
  store_place *p = *state;
  int heard = 0;
  char path[2048];
  const log_sink log = {.fn = hear, .ctx = &heard};
  store *s;
  assert_int_equal(put(p->s, "k"), 0);
  int len = snprintf(path, sizeof path, "%s", p->where.path);
  for (int i = 0; i < 5; i++) {
    path[len++] = '/';
    memset(path + len, 'd', 250);
    path[len += 250] = 0;
    make_dir(path);
  }
  memcpy(path + len, "/f", 3);
  write_file(path, "x");
  assert_int_equal(store_open(&p->where, io_system(), &log, &s, NULL), 0);
  store_must_list(s, "", false, "k");
  assert_int_equal(heard, 1);
  store_close(s);
}

/* ---- an io that answers as other file systems do ---- */

static int no_link(const io *io, int fromdir, const char *from, int todir, const char *to) {
  return -EPERM;
}

static void a_file_system_without_links_is_refused_with_advice(void **state) {
  store_place *p = *state;
  io io = *io_system();
  store *s;
  err e = {0};
  io.link = no_link;
  assert_int_equal(store_open(&p->where, &io, NULL, &s, NULL), 0);
  assert_int_equal(s->ops->put(s, "d/k", "x", 1, STORE_IF_ABSENT, &e), ERR_UNSUPPORTED);
  assert_int_equal(e.code, ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "point the target"));
  assert_int_equal(store_stream(s, "d/k", "x", 1, 1, false), ERR_UNSUPPORTED);
  assert_int_equal(count_entries(at(state, ".ckpt/tmp")), 0);
  store_must_list(s, "", false, "");
  assert_int_equal(store_put_text(s, "d/k", "x", STORE_REPLACE), 0);
  store_close(s);
}

/* As most FUSE file systems: links are refused, and so are the flags of renameat2. */
static int plain_rename(const io *io, int fromdir, const char *from, int todir, const char *to,
                        unsigned flags) {
  return flags ? -EINVAL : io_system()->rename(io, fromdir, from, todir, to, 0);
}

static void a_single_writer_needs_no_links(void **state) {
  store_place *p = *state;
  io io = *io_system();
  store *s;
  err e = {0};
  io.link = no_link;
  io.rename = plain_rename;
  assert_int_equal(store_open(&p->where, &io, NULL, &s, NULL), 0);
  s->single_writer = true;
  assert_int_equal(store_put_text(s, "d/k", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->put(s, "d/k", "y", 1, STORE_IF_ABSENT, &e), ERR_EXISTS);
  assert_int_equal(store_stream(s, "d/l", "z", 1, 1, false), 0);
  assert_int_equal(stage(s, ".ckpt/staging/1/a"), 0);
  assert_int_equal(stage(s, ".ckpt/staging/1/a"), ERR_EXISTS);
  assert_int_equal(s->ops->publish(s, ".ckpt/staging/1", "ckpt-1", NULL), 0);
  store_must_hold(s, "d/k", "x");
  store_must_list(s, "", false, "ckpt-1/a d/k d/l");
  store_close(s);
}

static int closed_doors(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  const char *closed = io->ctx, *base = strrchr(path, '/');
  bool same = strcmp(path, closed) == 0 || (base && strcmp(base + 1, closed) == 0);
  if (same && !(flags & O_PATH)) return -EACCES;
  return io_system()->open(io_system(), dirfd, path, flags, mode);
}

static void the_directory_above_the_root_may_be_closed_to_us(void **state) {
  store_place *p = *state;
  io io = *io_system();
  store *s;
  make_dir(p->where.path);
  io.open = closed_doors;
  io.ctx = p->dir;
  assert_int_equal(store_open(&p->where, &io, NULL, &s, NULL), 0);
  assert_int_equal(put(s, "d/k"), 0);
  store_close(s);
}

static void a_closed_directory_counts_as_a_prefix_and_fails_a_deep_listing(void **state) {
  store_place *p = *state;
  io io = *io_system();
  io.open_beneath = NULL; /* or closed_doors would not be asked */
  store *s;
  assert_int_equal(put(p->s, "d/k"), 0);
  make_dir(at(state, "lost+found"));
  store_must_list(p->s, "", true, "d/");
  io.open = closed_doors;
  io.ctx = (void *)"lost+found";
  assert_int_equal(store_open(&p->where, &io, NULL, &s, NULL), 0);
  store_must_list(s, "", true, "d/ lost+found/");
  store_must_list(s, "", false, "!ACCESS");
  store_close(s);
}

/* ---- the order of flushes ---- */

typedef struct logged {
  io_fault *f;
  store *s;
} logged;

static void log_start(logged *l, void **state) {
  const store_place *p = *state;
  l->f = io_fault_new(io_system());
  assert_int_equal(store_open(&p->where, io_fault_io(l->f), NULL, &l->s, NULL), 0);
}

static void log_end(logged *l) {
  store_close(l->s);
  io_fault_free(l->f);
}

/* The line, from `from` on, of the next call WHAT on <root>NAME, or on what is in it if NAME ends
 * in a slash. There must be one. */
static int next(logged *l, void **state, int from, const char *what, const char *name) {
  char text[URI_MAX + 256];
  size_t len = (size_t)snprintf(text, sizeof text, "%s %s%s", what,
                                ((const store_place *)*state)->where.path, name);
  char *log = io_fault_log(l->f), *rest = log, *line;
  int found = -1;
  for (int n = 0; found < 0 && (line = strsep(&rest, "\n")); n++) {
    bool exact = strncmp(line, text, len) == 0 && (line[len] == 0 || line[len] == ' ');
    bool inside = text[len - 1] == '/' && strncmp(line, text, len) == 0;
    if (n >= from && (exact || inside)) found = n;
  }
  free(log);
  if (found < 0) fail_msg("no \"%s\" from line %d on in\n%s", text, from, io_fault_log(l->f));
  return found;
}

static void data_is_flushed_before_its_name_and_the_directory_after_it(void **state) {
  logged l;
  log_start(&l, state);
  assert_int_equal(put(l.s, "first/k"), 0);
  for (int i = 0; i < 4; i++) {
    io_fault_set(l.f, (io_fault_plan){0});
    if (i == 0) assert_int_equal(put(l.s, "new/k"), 0);
    if (i == 1) assert_int_equal(store_stream(l.s, "new/l", "data", 4, 3, false), 0);
    if (i == 2) assert_int_equal(store_put_text(l.s, "new/k", "x", STORE_REPLACE), 0);
    if (i == 3) assert_int_equal(store_put_text(l.s, "new/m", "x", STORE_REPLACE), 0);
    int data = next(&l, state, 0, "write", "/.ckpt/tmp/");
    int flush = next(&l, state, data, "fsync", "/.ckpt/tmp/");
    int name = next(&l, state, flush, i < 2 ? "link" : "rename", "/.ckpt/tmp/");
    next(&l, state, name, "fsync", "/new");
    assert_int_equal(io_fault_find(l.f, name, "write"), -1);
  }
  log_end(&l);
}

static void a_new_directory_is_flushed_into_its_parent_even_if_somebody_else_made_it(void **state) {
  logged l;
  make_dir(at(state, ""));
  make_dir(at(state, "a")); /* and died before it was flushed */
  make_dir(at(state, "a/b"));
  log_start(&l, state);
  assert_int_equal(put(l.s, "a/b/k"), 0);
  int link = next(&l, state, 0, "link", "/.ckpt/tmp/");
  assert_true(next(&l, state, 0, "fsync", "/a") < link);
  assert_true(next(&l, state, 0, "fsync", "") < link);
  next(&l, state, link, "fsync", "/a/b");
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(put(l.s, "a/b/l"), 0); /* once is enough */
  assert_int_equal(io_fault_count(l.f, CALL_FSYNC), 2);
  /* A removed directory is flushed anew, whoever made it again. */
  assert_int_equal(l.s->ops->remove_prefix(l.s, "a", NULL), 0);
  make_dir(at(state, "a"));
  make_dir(at(state, "a/b"));
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(put(l.s, "a/b/k"), 0);
  assert_true(io_fault_count(l.f, CALL_FSYNC) >= 4);
  log_end(&l);
}

static void a_name_that_is_taken_is_durable_when_that_is_said(void **state) {
  logged l;
  log_start(&l, state);
  assert_int_equal(put(l.s, "d/k"), 0);
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(put(l.s, "d/k"), ERR_EXISTS);
  next(&l, state, 0, "fsync", "/d");
  assert_int_equal(stage(l.s, "st/k"), 0);
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(l.s->ops->publish(l.s, "st", "d", NULL), ERR_EXISTS);
  next(&l, state, 0, "fsync", "");
  io_fault_set(l.f, (io_fault_plan){.kind = CALL_FSYNC, .nth = 1, .errnum = EIO});
  assert_int_equal(put(l.s, "d/k"), ERR_IO);
  log_end(&l);
}

static void
a_publish_flushes_the_tree_from_below_then_renames_then_flushes_both_parents(void **state) {
  logged l;
  log_start(&l, state);
  assert_int_equal(stage(l.s, "st/1/sub/k"), 0);
  int data = next(&l, state, 0, "write", "/.ckpt/tmp/st/1/sub/");
  int flush = next(&l, state, data, "fsync", "/.ckpt/tmp/st/1/sub/");
  next(&l, state, flush, "link", "/.ckpt/tmp/st/1/sub/");
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(stage(l.s, "st/1/sub/l"), 0);
  assert_int_equal(io_fault_count(l.f, CALL_FSYNC), 1); /* its data, no directory */
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(l.s->ops->publish(l.s, "st/1", "exp/ckpt-1", NULL), 0);
  int sub = next(&l, state, 0, "fsync", "/st/1/sub");
  int top = next(&l, state, sub + 1, "fsync", "/st/1");
  int shown = next(&l, state, top, "rename", "/st/1");
  next(&l, state, shown, "fsync", "/exp");
  next(&l, state, shown, "fsync", "/st");
  log_end(&l);
}

/* ---- going on ---- */

static int write_again(store *s, const char *key, const char *text, size_t chunk, unsigned how) {
  store_writer *w;
  size_t len = strlen(text);
  int rc = s->ops->write_open(s, key, len, how | STORE_RESUME, NULL, &w, NULL);
  if (rc < 0) return rc;
  for (size_t at = 0; rc == 0 && at < len; at += chunk)
    rc = s->ops->write(w, text + at, len - at < chunk ? len - at : chunk, NULL);
  if (rc == 0) return s->ops->write_close(w, NULL);
  s->ops->write_abort(w);
  return rc;
}

static int stage_again(store *s, const char *key, const char *text, size_t chunk) {
  return write_again(s, key, text, chunk, STORE_STAGED);
}

static void what_stands_already_is_compared_and_not_written(void **state) {
  logged l;
  log_start(&l, state);
  assert_int_equal(store_stream(l.s, "st/k", "0123456789", 10, 10, true), 0);
  for (size_t chunk = 1; chunk < 12; chunk += 3) {
    io_fault_set(l.f, (io_fault_plan){0});
    assert_int_equal(stage_again(l.s, "st/k", "0123456789", chunk), 0);
    assert_int_equal(io_fault_count(l.f, CALL_WRITE), 0);
    assert_int_equal(stage_again(l.s, "st/k", "012345678x", chunk), ERR_EXISTS);
    assert_int_equal(stage_again(l.s, "st/k", "x123456789", chunk), ERR_EXISTS);
    assert_int_equal(stage_again(l.s, "st/k", "012345678", chunk), ERR_EXISTS);
    assert_int_equal(stage_again(l.s, "st/k", "0123456789x", chunk), ERR_EXISTS);
    store_must_hold(l.s, "st/k", "0123456789");
  }
  assert_int_equal(stage_again(l.s, "st/new", "abc", 2), 0);
  store_must_hold(l.s, "st/new", "abc");
  /* Who gave it its name may have died before that was durable. */
  assert_int_equal(put(l.s, "d/k"), 0);
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(write_again(l.s, "d/k", "d/k", 2, 0), 0);
  next(&l, state, 0, "fsync", "/d");
  log_end(&l);
}

/* Where a writer was killed, its half of a file has no name yet. */
static void what_was_cut_is_written_anew_and_goes_with_its_prefix(void **state) {
  store *s = ((store_place *)*state)->s;
  for (int how = 0; how < 2; how++) {
    store_writer *cut;
    assert_int_equal(s->ops->write_open(s, "st/sub/k", 9, STORE_STAGED, NULL, &cut, NULL), 0);
    assert_int_equal(s->ops->write(cut, "012", 3, NULL), 0);
    store_must_list(s, "", false, how ? "shown/sub/k" : "");
    assert_int_equal(count_entries(at(state, ".ckpt/tmp/st/sub")), 1);
    assert_int_equal(stage_again(s, "st/sub/k", "012345678", 4), 0);
    if (how == 0) assert_int_equal(s->ops->publish(s, "st", "shown", NULL), 0);
    if (how == 1) assert_int_equal(s->ops->remove_prefix(s, "st", NULL), 0);
    assert_false(path_exists(at(state, ".ckpt/tmp/st")));
    store_must_hold(s, "shown/sub/k", "012345678");
    s->ops->write_abort(cut); /* one that was only paused finds nothing of its own */
  }
}

/* The kernel may have dropped the pages, and says nothing the next time. */
static void a_file_whose_flush_failed_is_written_anew(void **state) {
  logged l;
  log_start(&l, state);
  assert_int_equal(stage(l.s, "st/other"), 0); /* its directories are there */
  io_fault_set(l.f, (io_fault_plan){.kind = CALL_FSYNC, .nth = 1, .errnum = EIO});
  assert_int_equal(store_stream(l.s, "st/k", "data", 4, 4, true), ERR_IO);
  assert_false(store_holds(l.s, "st/k"));
  io_fault_set(l.f, (io_fault_plan){0});
  assert_int_equal(stage_again(l.s, "st/k", "data", 4), 0);
  assert_int_equal(io_fault_count(l.f, CALL_WRITE), 1);
  log_end(&l);
}

static void a_removal_is_flushed_also_when_another_one_made_it(void **state) {
  logged l;
  log_start(&l, state);
  assert_int_equal(put(l.s, "d/k"), 0);
  for (int i = 0; i < 2; i++) {
    io_fault_set(l.f, (io_fault_plan){0});
    assert_int_equal(l.s->ops->remove(l.s, "d/k", NULL), 0);
    next(&l, state, i ? 0 : next(&l, state, 0, "unlink", "/d/k"), "fsync", "/d");
  }
  for (int i = 0; i < 2; i++) {
    io_fault_set(l.f, (io_fault_plan){0});
    assert_int_equal(l.s->ops->remove_prefix(l.s, "d", NULL), 0);
    next(&l, state, 0, "fsync", "");
  }
  log_end(&l);
}

/* ---- every call fails once ---- */

static const char OLD[] = "the old content";
static const char NEW[] = "the new content, which is longer";

static int put_new(store *s) {
  return store_put_text(s, "d/e/new", NEW, STORE_IF_ABSENT);
}
static int put_over(store *s) {
  return store_put_text(s, "d/old", NEW, STORE_REPLACE);
}
static int stream_new(store *s) {
  return store_stream(s, "d/e/new", NEW, sizeof NEW - 1, 7, false);
}
/* As a saver does: what an earlier try staged may be torn, and goes first. */
static int publish_new(store *s) {
  int rc = s->ops->remove_prefix(s, "st", NULL);
  if (rc == 0) rc = store_stream(s, "st/sub/k", NEW, sizeof NEW - 1, 7, true);
  if (rc == 0) rc = s->ops->publish(s, "st", "p/new", NULL);
  if (rc == ERR_EXISTS) s->ops->remove_prefix(s, "st", NULL);
  return rc;
}
static int remove_old(store *s) {
  return s->ops->remove(s, "d/old", NULL);
}
static int remove_all(store *s) {
  return s->ops->remove_prefix(s, "d", NULL);
}
static int read_old(store *s) {
  buf b;
  buf_init(&b, 1000);
  char to[100];
  int rc = s->ops->get(s, "d/old", &b, NULL);
  ssize_t n = rc == 0 ? s->ops->read(s, "d/old", 0, to, sizeof to, NULL) : rc;
  char *names = store_listing(s, "", false);
  if (n >= 0) {
    assert_string_equal(b.data, OLD);
    assert_int_equal(n, sizeof OLD - 1);
  }
  assert_true(names[0] == '!' || strcmp(names, "d/old") == 0);
  if (n >= 0 && names[0] == '!') n = -1;
  free(names);
  buf_free(&b);
  return n < 0 ? (int)n : 0;
}

typedef struct scenario {
  int (*run)(store *);
  const char *before, *after, *also; /* listings that may be seen; `also` after a failure */
} scenario;

static const scenario scenarios[] = {
    {put_new, "d/old", "d/e/new d/old", NULL},
    {put_over, "d/old", "d/old", NULL},
    {stream_new, "d/old", "d/e/new d/old", NULL},
    {publish_new, "d/old", "d/old p/new/sub/k", "d/old st/sub/k"},
    {remove_old, "d/old", "", NULL},
    {remove_all, "d/old", "", NULL},
    {read_old, "d/old", "d/old", NULL},
};

static bool is_whole(store *s, const char *key) {
  buf b;
  buf_init(&b, 1000);
  bool whole = s->ops->get(s, key, &b, NULL) < 0 || strcmp(b.data, NEW) == 0 ||
               (strcmp(key, "d/old") == 0 && strcmp(b.data, OLD) == 0);
  buf_free(&b);
  return whole;
}

/* Nobody who could have cleaned up was kept from it. */
static bool could_clean(io_fault *f, const io_fault_plan *plan) {
  char *log = io_fault_log(f);
  bool kept = false;
  for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
    kept |= strncmp(line, "unlink", 6) == 0 && strstr(line, " = -");
  free(log);
  return !kept && !plan->for_good;
}

/* The machine does not go down in this test: a flush would only take time. */
static int no_flush(const io *io, int fd) {
  return 0;
}

static long fail_once(const scenario *sc, const io_fault_plan *plan) {
  store_place p = {0};
  io quick = *io_system();
  quick.fsync = no_flush;
  io_fault *f = io_fault_new(&quick);
  store_place_make(&p, io_fault_io(f));
  assert_int_equal(store_put_text(p.s, "d/old", OLD, STORE_IF_ABSENT), 0);
  int fds = count_fds();
  io_fault_set(f, *plan);
  int rc = sc->run(p.s);
  long failed = io_fault_failed(f, CALL_ANY);
  assert_int_equal(count_fds(), fds);
  if (could_clean(f, plan) && count_entries(tmpdir_path(p.where.path, ".ckpt/tmp")) > 0)
    fail_msg("call %ld (scenario %d) leaves a temporary file:\n%s", plan->nth,
             (int)(sc - scenarios), io_fault_log(f));
  io_fault_set(f, (io_fault_plan){0});
  char *now = store_listing(p.s, "", false);
  bool before = strcmp(now, sc->before) == 0, after = strcmp(now, sc->after) == 0;
  bool also = sc->also && strcmp(now, sc->also) == 0;
  if (rc == 0 ? !after : !before && !after && !also)
    fail_msg("call %ld with %d (scenario %d): rc %d, and then \"%s\"", plan->nth, plan->errnum,
             (int)(sc - scenarios), rc, now);
  free(now);
  if (rc == 0 && sc->run == put_over) store_must_hold(p.s, "d/old", NEW);
  assert_true(is_whole(p.s, "d/old") && is_whole(p.s, "d/e/new") && is_whole(p.s, "p/new/sub/k"));
  /* Once the disk works again, so does the store. */
  int again = sc->run(p.s);
  assert_true(again == 0 || again == ERR_EXISTS);
  store_must_list(p.s, "", false, sc->after);
  store_place_remove(&p);
  io_fault_free(f);
  return failed;
}

static void a_failing_call_leaves_the_old_state_or_the_new_one(void **state) {
  const int errors[] = {EIO, ENOSPC};
  long runs = 0;
  /* Thousands of directories: on a busy disk that takes ten times as long. */
  if (access("/dev/shm", W_OK) == 0) store_place_parent = "/dev/shm";
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
    for (int way = 0; way < 6; way++) {
      io_fault_plan plan = {.kind = CALL_ANY, .errnum = errors[way % 2]};
      plan.for_good = way / 2 == 1;
      plan.done = way / 2 == 2;
      for (plan.nth = 1; fail_once(&scenarios[i], &plan) > 0; plan.nth++) runs++;
      assert_true(plan.nth > 5);
    }
  store_place_parent = NULL;
  print_message("%ld failures\n", runs);
}

static void short_writes_are_gone_on_with(void **state) {
  logged l;
  log_start(&l, state);
  io_fault_short_writes(l.f, 3);
  assert_int_equal(store_put_text(l.s, "a", NEW, STORE_IF_ABSENT), 0);
  assert_int_equal(store_stream(l.s, "b", NEW, sizeof NEW - 1, 10, false), 0);
  store_must_hold(l.s, "a", NEW);
  store_must_hold(l.s, "b", NEW);
  log_end(&l);
}

/* ---- a put beside a removal of its directory ---- */

static void *put_many(void *arg) {
  racer *r = arg;
  for (int i = 0; i < 100 && (r->rc == 0 || r->rc == ERR_CONFLICT); i++) {
    char key[64];
    snprintf(key, sizeof key, "d/e/%d", i);
    r->rc = i % 2 ? put(r->s, key) : store_stream(r->s, key, key, strlen(key), 3, false);
  }
  return NULL;
}

static void a_put_beside_a_removal_of_its_prefix_succeeds_or_may_be_tried_again(void **state) {
  racer r = {.s = store_of(state)};
  assert_int_equal(pthread_create(&r.thread, NULL, put_many, &r), 0);
  int rc = 0;
  for (int i = 0; i < 100 && (rc == 0 || rc == ERR_CONFLICT); i++)
    rc = r.s->ops->remove_prefix(r.s, "d", NULL);
  pthread_join(r.thread, NULL);
  assert_true(r.rc == 0 || r.rc == ERR_CONFLICT);
  assert_true(rc == 0 || rc == ERR_CONFLICT);
  assert_int_equal(r.s->ops->remove_prefix(r.s, "d", NULL), 0);
  store_must_list(r.s, "", false, "");
  assert_int_equal(count_entries(at(state, ".ckpt/tmp")), 0);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest promises[] = {
      PROMISE(a_staged_prefix_appears_at_once),
      PROMISE(what_stands_already_is_compared_and_not_written),
      PROMISE(what_was_cut_is_written_anew_and_goes_with_its_prefix),
      PROMISE(a_file_whose_flush_failed_is_written_anew),
      PROMISE(a_publish_onto_what_exists_is_refused_and_nothing_is_lost),
      PROMISE(exactly_one_of_many_publishes_wins_and_the_others_keep_theirs),
      PROMISE(an_aborted_or_wrong_staged_file_leaves_nothing),
      PROMISE(an_object_and_a_prefix_cannot_share_a_name),
      PROMISE(links_and_special_files_are_neither_listed_nor_touched),
      PROMISE(the_root_may_be_a_link_to_a_directory),
      PROMISE(a_root_that_is_no_directory_is_no_store),
      PROMISE(unfinished_files_of_the_dead_are_hidden_and_left_alone),
      PROMISE(modes_are_those_of_the_umask),
      PROMISE(what_is_too_deep_or_long_for_a_disk_is_refused),
      PROMISE(a_file_with_a_name_too_long_for_a_key_is_left_out_aloud),
      PROMISE(a_file_system_without_links_is_refused_with_advice),
      PROMISE(directories_are_told_though_nothing_is_in_them),
      PROMISE(only_these_objects_and_what_they_leave_empty_go),
      PROMISE(what_another_user_or_a_link_made_is_not_ours),
      PROMISE(a_single_writer_needs_no_links),
      PROMISE(the_directory_above_the_root_may_be_closed_to_us),
      PROMISE(a_closed_directory_counts_as_a_prefix_and_fails_a_deep_listing),
      PROMISE(data_is_flushed_before_its_name_and_the_directory_after_it),
      PROMISE(a_new_directory_is_flushed_into_its_parent_even_if_somebody_else_made_it),
      PROMISE(a_name_that_is_taken_is_durable_when_that_is_said),
      PROMISE(a_publish_flushes_the_tree_from_below_then_renames_then_flushes_both_parents),
      PROMISE(a_removal_is_flushed_also_when_another_one_made_it),
      cmocka_unit_test(a_failing_call_leaves_the_old_state_or_the_new_one),
      PROMISE(short_writes_are_gone_on_with),
      PROMISE(a_put_beside_a_removal_of_its_prefix_succeeds_or_may_be_tried_again),
  };
  return cmocka_run_group_tests(promises, NULL, NULL);
}
