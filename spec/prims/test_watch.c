#include "with_cmocka.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/watch.h"
#include "tmpdir.h"

/* One watched tree, one place beside it, and what was reported. */
typedef struct bench {
  char *dir, root[512], beside[512];
  watch *w;
} bench;

enum { KEPT = 64 };
static struct {
  watch_kind kind;
  char path[600];
  bool is_dir;
  uint32_t cookie;
  bool back;
} got[KEPT];
static int n_got;

static void keep_event(void *ctx, const watch_event *ev) {
  if (n_got < KEPT) {
    got[n_got].kind = ev->kind;
    snprintf(got[n_got].path, sizeof got[0].path, "%s", ev->path);
    got[n_got].is_dir = ev->is_dir;
    got[n_got].cookie = ev->cookie;
    got[n_got].back = ev->back;
  }
  n_got++;
}

/* Reads all there is; the first KEPT events are in got[]. */
static int drain(bench *b) {
  n_got = 0;
  for (int rc = 1; rc != 0;) {
    err e = {0};
    rc = watch_read(b->w, keep_event, NULL, &e);
    if (rc < 0) fail_msg("%s", e.text);
  }
  return n_got;
}

static int find_event(watch_kind kind, const char *path) {
  for (int i = 0; i < n_got && i < KEPT; i++)
    if (got[i].kind == kind && strcmp(got[i].path, path) == 0) return i;
  return -1;
}

static bool saw(watch_kind kind, const char *path) {
  return find_event(kind, path) >= 0;
}

static int setup(void **state) {
  bench *b = calloc(1, sizeof *b);
  if (!b) return -1;
  b->dir = tmpdir_new();
  snprintf(b->root, sizeof b->root, "%s/root", b->dir);
  snprintf(b->beside, sizeof b->beside, "%s/beside", b->dir);
  make_dir(b->root);
  make_dir(b->beside);
  *state = b;
  return watch_open(&b->w, b->root, NULL);
}

static int teardown(void **state) {
  bench *b = *state;
  watch_close(b->w);
  tmpdir_remove(b->dir);
  free(b);
  return 0;
}

static const char *in(const bench *b, const char *name) {
  return tmpdir_path(b->root, name);
}

static void make_and_add(bench *b, const char *name) {
  make_dir(in(b, name));
  assert_int_equal(watch_add(b->w, name, NULL), 0);
}

static void move(const char *from, const char *to) {
  assert_int_equal(rename(from, to), 0);
}

static void exchange(const bench *b, const char *one, const char *other) {
  if (renameat2(AT_FDCWD, in(b, one), AT_FDCWD, in(b, other), RENAME_EXCHANGE) == 0) return;
  print_message("skipped: this file system cannot exchange\n");
  skip();
}

/* How many watches the kernel has for it. */
static int kernel_watches(const bench *b) {
  char name[64], *line = NULL;
  size_t room = 0;
  int count = 0;
  snprintf(name, sizeof name, "/proc/self/fdinfo/%d", watch_fd(b->w));
  FILE *f = fopen(name, "r");
  assert_non_null(f);
  while (getline(&line, &room, f) > 0) count += strncmp(line, "inotify ", 8) == 0;
  free(line);
  fclose(f);
  return count;
}

static void a_write_is_reported_with_its_path_from_the_root(void **state) {
  bench *b = *state;
  make_and_add(b, "a");
  make_and_add(b, "a/b");
  assert_int_equal(watch_add(b->w, "a/b", NULL), 0);
  write_file(in(b, "a/b/x.pt"), "1");
  write_file(in(b, "top"), "1");
  assert_int_equal(chmod(in(b, "top"), 0600), 0);
  assert_int_equal(unlink(in(b, "top")), 0);
  drain(b);
  assert_true(saw(WATCH_CREATE, "a"));
  assert_true(got[find_event(WATCH_CREATE, "a")].is_dir);
  assert_true(saw(WATCH_CREATE, "a/b/x.pt"));
  assert_false(got[find_event(WATCH_CREATE, "a/b/x.pt")].is_dir);
  assert_true(saw(WATCH_MODIFY, "a/b/x.pt"));
  assert_true(saw(WATCH_CLOSE_WRITE, "a/b/x.pt"));
  assert_true(saw(WATCH_ATTRIB, "top"));
  assert_true(saw(WATCH_DELETE, "top"));
  assert_int_equal(drain(b), 0);
}

static void a_renamed_directory_takes_its_watched_subdirectories_along(void **state) {
  bench *b = *state;
  make_and_add(b, "tmp-5");
  make_and_add(b, "tmp-5/x");
  make_and_add(b, "tmp-5/x/y");
  make_and_add(b, "tmp-55"); /* the same beginning, but not below */
  drain(b);
  move(in(b, "tmp-5"), in(b, "checkpoint-5"));
  write_file(in(b, "checkpoint-5/x/y/f"), "1");
  write_file(in(b, "tmp-55/f"), "1");
  drain(b);
  int from = find_event(WATCH_MOVED_FROM, "tmp-5"), to = find_event(WATCH_MOVED_TO, "checkpoint-5");
  assert_true(from >= 0 && to > from);
  assert_int_equal(got[from].cookie, got[to].cookie);
  assert_true(got[to].cookie != 0 && got[to].is_dir);
  assert_true(saw(WATCH_CLOSE_WRITE, "checkpoint-5/x/y/f"));
  assert_true(saw(WATCH_CLOSE_WRITE, "tmp-55/f"));
  /* Deeper, and twice in one batch. */
  move(in(b, "checkpoint-5"), in(b, "tmp-55/c"));
  move(in(b, "tmp-55"), in(b, "z"));
  write_file(in(b, "z/c/x/y/g"), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "z/c/x/y/g"));
  assert_int_equal(kernel_watches(b), 5);
}

static void the_old_name_may_be_taken_at_once(void **state) {
  bench *b = *state;
  make_and_add(b, "latest");
  make_and_add(b, "latest/s");
  make_and_add(b, "next");
  make_and_add(b, "next/s");
  drain(b);
  move(in(b, "latest"), in(b, "old"));
  move(in(b, "next"), in(b, "latest"));
  write_file(in(b, "latest/s/new"), "1");
  write_file(in(b, "old/s/was"), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "latest/s/new"));
  assert_true(saw(WATCH_CLOSE_WRITE, "old/s/was"));
}

static void exchanged_directories_are_right_again_when_they_are_added(void **state) {
  bench *b = *state;
  make_and_add(b, "a");
  make_and_add(b, "b");
  drain(b);
  exchange(b, "a", "b");
  write_file(in(b, "a/from_b"), "1");
  drain(b);
  assert_true(saw(WATCH_MOVED_TO, "a") && saw(WATCH_MOVED_TO, "b"));
  assert_int_equal(watch_add(b->w, "a", NULL), 0);
  assert_int_equal(watch_add(b->w, "b", NULL), 0);
  write_file(in(b, "a/1"), "1");
  write_file(in(b, "b/2"), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "a/1"));
  assert_true(saw(WATCH_CLOSE_WRITE, "b/2"));
}

/* Both have the name `b` for a moment. What happens in one is not told of the other, whether they
 * are added again or not. */
static void an_exchange_gives_neither_the_path_of_the_other(void **state) {
  bench *b = *state;
  make_and_add(b, "a");
  make_and_add(b, "a/s");
  make_and_add(b, "b");
  make_dir(in(b, "b/s")); /* not watched */
  drain(b);
  exchange(b, "a", "b");
  write_file(in(b, "b/s/was_a"), "1");
  write_file(in(b, "a/was_b"), "1");
  drain(b);
  assert_true(saw(WATCH_MOVED_TO, "a") && saw(WATCH_MOVED_TO, "b"));
  assert_false(saw(WATCH_CREATE, "a/s/was_a"));
  assert_false(got[find_event(WATCH_MOVED_TO, "b")].back);
  assert_true(got[find_event(WATCH_MOVED_TO, "a")].back);
  write_file(in(b, "b/s/more"), "1");
  drain(b);
  assert_false(saw(WATCH_CREATE, "a/s/more"));
}

/* Only one of them is watched, and it stays where it came to. */
static void an_exchange_with_what_is_not_watched_is_one_too(void **state) {
  bench *b = *state;
  make_and_add(b, "a");
  make_dir(in(b, "b"));
  drain(b);
  exchange(b, "a", "b");
  drain(b);
  write_file(in(b, "b/f"), "1");
  drain(b);
  assert_false(saw(WATCH_CREATE, "a/f"));
}

/* Else what is there under its own name would be told under that of the link. */
static void no_link_on_the_way_is_followed(void **state) {
  bench *b = *state;
  make_and_add(b, "run");
  make_and_add(b, "run/s");
  assert_int_equal(symlink(".", in(b, "link")), 0);
  assert_int_equal(watch_add(b->w, "link/run", NULL), ERR_NOENT);
  assert_int_equal(watch_add(b->w, "link/run/s", NULL), ERR_NOENT);
  write_file(in(b, "run/s/f"), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "run/s/f"));
}

static void a_file_that_goes_back_is_told_so(void **state) {
  bench *b = *state;
  write_file(in(b, "f"), "1");
  move(in(b, "f"), in(b, "g"));
  move(in(b, "g"), in(b, "h"));
  move(in(b, "h"), in(b, "g"));
  drain(b);
  int first = find_event(WATCH_MOVED_TO, "g");
  assert_false(got[first].back);
  assert_false(got[find_event(WATCH_MOVED_TO, "h")].back);
  assert_int_equal(got[n_got - 1].kind, WATCH_MOVED_TO);
  assert_true(got[n_got - 1].back);
}

static void a_directory_that_is_moved_out_loses_its_watches(void **state) {
  bench *b = *state;
  make_and_add(b, "a");
  make_and_add(b, "a/b");
  drain(b);
  move(in(b, "a"), tmpdir_path(b->beside, "a"));
  write_file(tmpdir_path(b->beside, "a/b/f"), "1"); /* in the same batch */
  drain(b);
  assert_int_equal(n_got, 1);
  assert_true(saw(WATCH_MOVED_FROM, "a"));
  write_file(tmpdir_path(b->beside, "a/b/g"), "1"); /* and in a later one */
  make_and_add(b, "a");                             /* a stranger with the old name stays */
  drain(b);
  write_file(tmpdir_path(b->beside, "a/h"), "1");
  write_file(in(b, "a/k"), "1");
  drain(b);
  assert_int_equal(n_got, 3); /* create, modify, close */
  assert_true(saw(WATCH_CLOSE_WRITE, "a/k"));
  assert_int_equal(kernel_watches(b), 2);
  /* And it may come back. */
  move(tmpdir_path(b->beside, "a"), in(b, "back"));
  drain(b);
  assert_true(saw(WATCH_MOVED_TO, "back"));
  assert_int_equal(watch_add(b->w, "back", NULL), 0);
  write_file(in(b, "back/l"), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "back/l"));
}

static void a_rename_into_the_tree_is_a_moved_to_alone(void **state) {
  bench *b = *state;
  write_file(tmpdir_path(b->beside, "f"), "1");
  make_dir(tmpdir_path(b->beside, "d"));
  move(tmpdir_path(b->beside, "f"), in(b, "f"));
  move(tmpdir_path(b->beside, "d"), in(b, "d"));
  drain(b);
  assert_int_equal(n_got, 2);
  assert_true(saw(WATCH_MOVED_TO, "f") && saw(WATCH_MOVED_TO, "d"));
  assert_true(got[find_event(WATCH_MOVED_TO, "d")].is_dir);
}

static void a_hard_link_is_a_create(void **state) {
  bench *b = *state;
  write_file(tmpdir_path(b->beside, "f"), "1");
  assert_int_equal(link(tmpdir_path(b->beside, "f"), in(b, "f")), 0);
  drain(b);
  assert_true(saw(WATCH_CREATE, "f"));
}

/* Both halves of a rename end up on both sides of the border between two reads of 64 KiB: each
 * event with a short name is 32 bytes, so 2048 fill one. */
static void a_rename_may_be_split_between_two_reads(void **state) {
  bench *b = *state;
  char from[32], to[32], path[64];
  int noise[2] = {open(in(b, "n1"), O_WRONLY | O_CREAT, 0600),
                  open(in(b, "n2"), O_WRONLY | O_CREAT, 0600)};
  make_and_add(b, "d0");
  make_and_add(b, "d0/sub");
  for (int round = 0; round < 8; round++) {
    drain(b);
    for (int i = 0; i < 2043 + round; i++) assert_int_equal(write(noise[i % 2], "1", 1), 1);
    snprintf(from, sizeof from, "d%d", round);
    snprintf(to, sizeof to, "d%d", round + 1);
    move(in(b, from), in(b, to));
    drain(b);
    snprintf(path, sizeof path, "%s/sub/f", to);
    write_file(in(b, path), "1");
    drain(b);
    assert_true(saw(WATCH_CLOSE_WRITE, path));
  }
  assert_int_equal(kernel_watches(b), 3);
  close(noise[0]);
  close(noise[1]);
}

enum { RENAMES = 4000 };

static void *rename_to_and_fro(void *arg) {
  bench *b = arg;
  char one[600], two[600];
  snprintf(one, sizeof one, "%s/one", b->root);
  snprintf(two, sizeof two, "%s/two", b->root);
  for (int i = 0; i < RENAMES; i++)
    if (rename(i % 2 ? two : one, i % 2 ? one : two) != 0) return arg;
  return NULL;
}

/* As the contract asks: each directory is added in the callback of its MOVED_TO. */
static void add_what_came(void *ctx, const watch_event *ev) {
  bench *b = ctx;
  char below[640];
  if (ev->kind != WATCH_MOVED_TO) return;
  snprintf(below, sizeof below, "%s/sub", ev->path);
  int rc = watch_add(b->w, ev->path, NULL);
  if (rc == 0) rc = watch_add(b->w, below, NULL);
  assert_true(rc == 0 || rc == ERR_NOENT); /* it may be on its way back */
}

static void a_reader_that_is_as_fast_as_the_renames_keeps_the_watches(void **state) {
  bench *b = *state;
  make_and_add(b, "one");
  make_and_add(b, "one/sub");
  drain(b);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, rename_to_and_fro, b), 0);
  for (int seen = 0; seen < 2 * RENAMES;) {
    int rc = watch_read(b->w, add_what_came, b, NULL);
    assert_true(rc >= 0);
    seen += rc;
  }
  void *failed = NULL;
  pthread_join(thread, &failed);
  assert_null(failed);
  write_file(in(b, "one/sub/f"), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "one/sub/f"));
  assert_int_equal(kernel_watches(b), 3);
}

static void a_name_may_be_used_again_after_its_directory_is_removed(void **state) {
  bench *b = *state;
  for (int i = 0; i < 200; i++) {
    make_and_add(b, "a");
    write_file(in(b, "a/f"), "1");
    if (i % 2) drain(b);
    assert_int_equal(unlink(in(b, "a/f")), 0);
    assert_int_equal(rmdir(in(b, "a")), 0);
  }
  make_and_add(b, "a");
  drain(b);
  write_file(in(b, "a/g"), "1");
  drain(b);
  assert_int_equal(n_got, 3);
  assert_true(saw(WATCH_CLOSE_WRITE, "a/g"));
  assert_int_equal(kernel_watches(b), 2);
}

static void names_are_bytes(void **state) {
  bench *b = *state;
  char name[300];
  make_and_add(b, "new\nline");
  make_and_add(b, "new\nline/\xff\xfe (deleted)");
  write_file(in(b, "new\nline/\xff\xfe (deleted)/\n"), "1");
  memset(name, 'n', 255);
  name[255] = 0;
  write_file(in(b, name), "1");
  drain(b);
  assert_true(saw(WATCH_CLOSE_WRITE, "new\nline/\xff\xfe (deleted)/\n"));
  assert_true(saw(WATCH_MODIFY, name));
}

static void write_again(void *ctx, const watch_event *ev) {
  assert_int_equal(write(*(int *)ctx, "1", 1), 1);
}

static void a_modify_that_repeats_the_one_before_is_dropped_within_a_call(void **state) {
  bench *b = *state;
  int fd = open(in(b, "f"), O_WRONLY | O_CREAT, 0600);
  assert_true(fd >= 0);
  drain(b);
  assert_int_equal(write(fd, "1", 1), 1);
  /* The callback writes once more: the call's second batch repeats the first. */
  assert_int_equal(watch_read(b->w, write_again, &fd, NULL), 1);
  assert_int_equal(drain(b), 0);
  assert_int_equal(write(fd, "1", 1), 1);
  assert_int_equal(drain(b), 1); /* later news are told again */
  close(fd);
}

static void the_root_that_goes_away_is_told_once(void **state) {
  bench *b = *state;
  char root[700];
  watch *w = NULL;
  for (int removed = 0; removed < 2; removed++) {
    snprintf(root, sizeof root, "%s/other", b->dir);
    make_dir(root);
    assert_int_equal(watch_open(&w, root, NULL), 0);
    if (removed)
      assert_int_equal(rmdir(root), 0);
    else
      move(root, tmpdir_path(b->dir, "moved"));
    n_got = 0;
    assert_int_equal(watch_read(w, keep_event, NULL, NULL), 1);
    assert_int_equal(got[0].kind, WATCH_GONE);
    assert_string_equal(got[0].path, "");
    if (!removed) write_file(tmpdir_path(b->dir, "moved/f"), "1");
    assert_int_equal(watch_read(w, keep_event, NULL, NULL), 0);
    watch_close(w);
  }
}

static void what_cannot_be_watched_is_an_error_with_its_path(void **state) {
  bench *b = *state;
  err e = {0};
  watch *w = NULL;
  assert_int_equal(watch_add(b->w, "no/where", &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "no/where"));
  write_file(in(b, "file"), "1");
  assert_int_equal(watch_add(b->w, "file", &e), ERR_NOENT);
  assert_int_equal(symlink(b->beside, in(b, "link")), 0);
  assert_int_equal(watch_add(b->w, "link", &e), ERR_NOENT);
  assert_int_equal(watch_add(b->w, "/etc", &e), ERR_INVAL);
  assert_int_equal(watch_add(b->w, "a/", &e), ERR_INVAL);
  assert_int_equal(watch_open(&w, in(b, "nothing"), &e), ERR_NOENT);
  assert_int_equal(watch_open(&w, in(b, "file"), &e), ERR_NOENT);
  assert_null(w);
  watch_close(NULL);
}

static void a_root_that_is_a_link_is_watched_where_it_points(void **state) {
  bench *b = *state;
  watch *w = NULL;
  assert_int_equal(symlink(b->beside, tmpdir_path(b->dir, "link")), 0);
  assert_int_equal(watch_open(&w, tmpdir_path(b->dir, "link"), NULL), 0);
  write_file(tmpdir_path(b->beside, "f"), "1");
  n_got = 0;
  assert_true(watch_read(w, keep_event, NULL, NULL) > 0);
  assert_true(saw(WATCH_CREATE, "f"));
  watch_close(w);
}

/* Two thirds of them are more than go in one portion. */
enum { MANY = 1800 };

static void many_directories_keep_their_paths_and_are_let_go(void **state) {
  bench *b = *state;
  char name[64];
  make_and_add(b, "t");
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "t/%d", i);
    make_and_add(b, name);
  }
  drain(b);
  move(in(b, "t"), in(b, "u"));
  for (int i = 0; i < MANY; i += 7) {
    snprintf(name, sizeof name, "u/%d/f", i);
    assert_int_equal(symlink("x", in(b, name)), 0);
    drain(b);
    assert_true(saw(WATCH_CREATE, name));
  }
  for (int i = 0; i < MANY; i += 3) {
    snprintf(name, sizeof name, "u/%d/f", i);
    unlink(in(b, name));
    snprintf(name, sizeof name, "u/%d", i);
    assert_int_equal(rmdir(in(b, name)), 0);
  }
  drain(b);
  assert_int_equal(kernel_watches(b), 2 + MANY - MANY / 3);
  for (int i = 1; i < MANY; i += 3) {
    snprintf(name, sizeof name, "u/%d/g", i);
    assert_int_equal(symlink("x", in(b, name)), 0);
    drain(b);
    assert_true(saw(WATCH_CREATE, name));
  }
  /* Moved out: the watches go in portions, and each portion wakes the reader again. */
  move(in(b, "u"), tmpdir_path(b->beside, "u"));
  assert_int_equal(drain(b), 1);
  write_file(in(b, "wake"), "1");
  assert_int_equal(drain(b), 3);
  for (int i = 0; i < 4; i++) assert_int_equal(watch_read(b->w, keep_event, NULL, NULL), 0);
  assert_int_equal(kernel_watches(b), 1);
}

/* How many events the queue takes; skips the test if they are too many to be made here. */
static long queue_size(void) {
  long most = 0;
  FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld", &most), 1);
  fclose(f);
  assert_true(most > 0);
  if (most > 20000) {
    print_message("skipped: the queue takes %ld events, too many to fill it here\n", most);
    skip();
  }
  return most;
}

/* Two files in turn: the kernel merges events that repeat the last one. */
static void flood(const char *first, const char *second) {
  int one = open(first, O_WRONLY | O_CREAT, 0600), two = open(second, O_WRONLY | O_CREAT, 0600);
  for (long i = queue_size(); i > 0; i--) assert_int_equal(write(i % 2 ? one : two, "1", 1), 1);
  close(one);
  close(two);
}

static void note_overflow(void *ctx, const watch_event *ev) {
  int *seen = ctx;
  if (ev->kind != WATCH_OVERFLOW) return;
  assert_string_equal(ev->path, "");
  ++*seen;
}

static void after_an_overflow_only_what_is_added_again_is_watched(void **state) {
  bench *b = *state;
  int seen = 0;
  queue_size();
  make_and_add(b, "a");
  make_and_add(b, "a/b");
  make_and_add(b, "c");
  drain(b);
  flood(in(b, "a/one"), in(b, "a/two"));
  move(in(b, "a"), in(b, "z")); /* lost */
  move(in(b, "c"), tmpdir_path(b->beside, "c"));
  while (watch_read(b->w, note_overflow, &seen, NULL) > 0) continue;
  assert_int_equal(seen, 1);
  write_file(in(b, "z/b/f"), "1");
  write_file(tmpdir_path(b->beside, "c/f"), "1");
  assert_int_equal(drain(b), 0);
  assert_int_equal(watch_add(b->w, "z", NULL), 0);
  assert_int_equal(watch_add(b->w, "z/b", NULL), 0);
  drain(b);
  write_file(in(b, "z/b/g"), "1");
  write_file(in(b, "top"), "1");
  drain(b);
  assert_int_equal(n_got, 6);
  assert_true(saw(WATCH_CLOSE_WRITE, "z/b/g") && saw(WATCH_CLOSE_WRITE, "top"));
  assert_int_equal(kernel_watches(b), 3);
}

static void add_again(void *ctx, const watch_event *ev) {
  bench *b = ctx;
  if (ev->kind == WATCH_OVERFLOW) assert_int_equal(watch_add(b->w, "renamed", NULL), 0);
}

static void what_is_added_while_the_overflow_is_told_keeps_its_watch(void **state) {
  bench *b = *state;
  queue_size();
  make_and_add(b, "a");
  drain(b);
  flood(in(b, "one"), in(b, "two"));
  move(in(b, "a"), in(b, "renamed"));
  while (watch_read(b->w, add_again, b, NULL) > 0) continue;
  write_file(in(b, "renamed/f"), "1");
  assert_int_equal(drain(b), 3);
  assert_true(saw(WATCH_CLOSE_WRITE, "renamed/f"));
}

static void watches_whose_end_was_lost_are_forgotten(void **state) {
  bench *b = *state;
  int seen = 0;
  char name[32];
  queue_size();
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "d%d", i);
    make_and_add(b, name);
  }
  drain(b);
  flood(in(b, "one"), in(b, "two"));
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "d%d", i);
    assert_int_equal(rmdir(in(b, name)), 0);
  }
  while (watch_read(b->w, note_overflow, &seen, NULL) > 0) continue;
  assert_int_equal(seen, 1);
  make_and_add(b, "d7");
  drain(b);
  write_file(in(b, "d7/f"), "1");
  assert_int_equal(drain(b), 3);
  assert_int_equal(kernel_watches(b), 2);
}

/* Runs `body` in a child with namespaces of its own. Its exit status: 0 good, 77 not possible. */
static void in_a_namespace(int flags, int (*body)(bench *), bench *b) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(unshare(flags) != 0 ? 77 : body(b));
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    print_message("skipped: no right to make a namespace here\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(status), 0);
}

static bool put_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return ok;
}

static int use_up_the_watches(bench *b) {
  err e = {0};
  watch *w = NULL;
  char name[64];
  if (!put_text("/proc/sys/user/max_inotify_watches", "5")) return 77;
  int rc = watch_open(&w, b->root, &e);
  for (int i = 0; rc == 0 && i < 10; i++) {
    snprintf(name, sizeof name, "d%d", i);
    make_dir(in(b, name));
    rc = watch_add(w, name, &e);
  }
  if (rc != ERR_LIMIT || !strstr(e.text, "fs.inotify.max_user_watches")) return 1;
  watch_close(w);
  return 0;
}

static int use_up_the_instances(bench *b) {
  err e = {0};
  watch *w[4] = {0};
  if (!put_text("/proc/sys/user/max_inotify_instances", "2")) return 77;
  int rc = 0;
  for (int i = 0; rc == 0 && i < 4; i++) rc = watch_open(&w[i], b->root, &e);
  for (int i = 0; i < 4; i++) watch_close(w[i]);
  return rc == ERR_LIMIT && strstr(e.text, "fs.inotify.max_user_instances") ? 0 : 1;
}

static void used_up_watches_are_a_limit_that_names_its_sysctl(void **state) {
  in_a_namespace(CLONE_NEWUSER, use_up_the_watches, *state);
}

static void used_up_instances_are_a_limit_that_names_its_sysctl(void **state) {
  in_a_namespace(CLONE_NEWUSER, use_up_the_instances, *state);
}

static int unmount_below(bench *b) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 77;
  make_dir(in(b, "m"));
  if (mount("none", in(b, "m"), "tmpfs", 0, NULL) != 0) return 77;
  watch *own = NULL;
  if (watch_open(&own, in(b, "m"), NULL) != 0 || watch_add(b->w, "m", NULL) != 0) return 1;
  write_file(in(b, "m/f"), "1");
  if (watch_read(own, keep_event, NULL, NULL) != 3) return 2;
  while (watch_read(b->w, keep_event, NULL, NULL) > 0) continue;
  if (umount(in(b, "m")) != 0) return 3;
  n_got = 0;
  if (watch_read(b->w, keep_event, NULL, NULL) != 1 || !saw(WATCH_DELETE, "m")) return 4;
  n_got = 0;
  if (watch_read(own, keep_event, NULL, NULL) != 1 || !saw(WATCH_GONE, "")) return 5;
  watch_close(own);
  return 0;
}

static void an_unmount_is_a_delete_below_the_root_and_the_end_of_the_root(void **state) {
  in_a_namespace(CLONE_NEWNS, unmount_below, *state);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_write_is_reported_with_its_path_from_the_root),
      TEST(a_renamed_directory_takes_its_watched_subdirectories_along),
      TEST(the_old_name_may_be_taken_at_once),
      TEST(exchanged_directories_are_right_again_when_they_are_added),
      TEST(an_exchange_gives_neither_the_path_of_the_other),
      TEST(an_exchange_with_what_is_not_watched_is_one_too),
      TEST(no_link_on_the_way_is_followed),
      TEST(a_file_that_goes_back_is_told_so),
      TEST(a_directory_that_is_moved_out_loses_its_watches),
      TEST(a_rename_into_the_tree_is_a_moved_to_alone),
      TEST(a_hard_link_is_a_create),
      TEST(a_rename_may_be_split_between_two_reads),
      TEST(a_reader_that_is_as_fast_as_the_renames_keeps_the_watches),
      TEST(a_name_may_be_used_again_after_its_directory_is_removed),
      TEST(names_are_bytes),
      TEST(a_modify_that_repeats_the_one_before_is_dropped_within_a_call),
      TEST(the_root_that_goes_away_is_told_once),
      TEST(what_cannot_be_watched_is_an_error_with_its_path),
      TEST(a_root_that_is_a_link_is_watched_where_it_points),
      TEST(many_directories_keep_their_paths_and_are_let_go),
      TEST(after_an_overflow_only_what_is_added_again_is_watched),
      TEST(what_is_added_while_the_overflow_is_told_keeps_its_watch),
      TEST(watches_whose_end_was_lost_are_forgotten),
      TEST(used_up_watches_are_a_limit_that_names_its_sysctl),
      TEST(used_up_instances_are_a_limit_that_names_its_sysctl),
      TEST(an_unmount_is_a_delete_below_the_root_and_the_end_of_the_root),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
