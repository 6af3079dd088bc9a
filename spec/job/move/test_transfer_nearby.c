/* What a restore need not fetch, since this machine has its bytes already. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/move/transfer.h"
#include "io_fault.h"
#include "prims/fs.h"
#include "store_place.h"
#include "tmpdir.h"

enum { MIB = 1 << 20 };

/* A unit that was saved, and a copy of it that is here. */
static char *dir;
static store_place place;
static manifest saved;

static const char *in(const char *name) {
  return tmpdir_path(dir, name);
}

static void no_error(int rc, const err *e) {
  if (rc < 0) fail_msg("%s: %s", err_name(rc), e->text);
}

static int enter(void **unused) {
  err e = {0};
  dir = tmpdir_new();
  store_place_make(&place, io_unflushed());
  make_dir(in("ck-3"));
  make_dir(in("ck-3/sub"));
  make_dir(in("out"));
  write_pattern(in("ck-3/large"), 17 * MIB, 1); /* three blocks */
  write_file(in("ck-3/small"), "weights");
  write_file(in("ck-3/sub/none"), "");
  write_file(in("ck-3/sub/state"), "state");
  transfer t = {.io = io_unflushed(), .store = place.s};
  unit_files from;
  no_error(unit_files_scan(t.io, dir, "ck-3", MATCH_DIR, rules_builtin(), &from, &e), &e);
  no_error(transfer_up(&t, &from, "u", false, false, &e), &e);
  no_error(unit_files_manifest(&from, "ck-3", 3, t.hash, &saved, &e), &e);
  unit_files_free(&from);
  no_error(fs_copy_tree(t.io, in("ck-3"), in("here"), false, NULL, &e), &e);
  return 0;
}

static int leave(void **unused) {
  manifest_free(&saved);
  store_place_remove(&place);
  tmpdir_remove(dir);
  return 0;
}

static bool stood(void *ctx, const char *name, char path[FS_PATH_MAX]) {
  return fs_join(path, in("here"), name, NULL) == 0;
}

static bool stood_nowhere(void *ctx, const char *name, char path[FS_PATH_MAX]) {
  return false;
}

/* Returns what transfer_down() says; *fetched of so many files came, in part, from the store. */
static int down(unsigned *fetched) {
  err e = {0};
  transfer_nearby nearby = {.stood = stood};
  transfer t = {.io = io_unflushed(), .store = place.s, .nearby = &nearby};
  int rc = transfer_down(&t, &saved, "u", in("out"), &e);
  *fetched = nearby.fetched;
  if (rc == 0) assert_int_equal(nearby.files, 4);
  return rc;
}

static void forget(const char *key) {
  err e = {0};
  no_error(place.s->ops->remove(place.s, key, &e), &e);
}

static void must_be_whole(void) {
  static const char *const names[] = {"large", "small", "sub/none", "sub/state"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char a[64], b[64], from[FS_PATH_MAX];
    struct stat was, is;
    snprintf(a, sizeof a, "ck-3/%s", names[i]);
    snprintf(b, sizeof b, "out/%s", names[i]);
    snprintf(from, sizeof from, "%s", in(a));
    if (!files_equal(from, in(b))) fail_msg("the bytes of %s", names[i]);
    if (lstat(from, &was) < 0 || lstat(in(b), &is) < 0) abort();
    assert_int_equal(io_time_ns(was.st_mtim), io_time_ns(is.st_mtim));
    assert_int_equal(was.st_mode, is.st_mode);
  }
}

static void what_is_here_whole_is_not_fetched(void **unused) {
  unsigned fetched;
  forget("u/large");
  forget("u/small");
  forget("u/sub/state");
  assert_int_equal(down(&fetched), 0);
  assert_int_equal(fetched, 0);
  must_be_whole();
}

static void the_copy_stays_as_it_was(void **unused) {
  unsigned fetched;
  struct stat before, after;
  if (lstat(in("here/small"), &before) < 0) abort();
  assert_int_equal(down(&fetched), 0);
  if (lstat(in("here/small"), &after) < 0) abort();
  assert_int_equal(before.st_nlink, after.st_nlink);
  write_file(in("out/small"), "trained");
  assert_true(file_is(in("here/small"), "weights"));
}

static void only_what_differs_or_is_missing_is_fetched(void **unused) {
  unsigned fetched;
  unlink(in("here/small"));
  forget("u/large");
  forget("u/sub/state");
  assert_int_equal(down(&fetched), 0);
  assert_int_equal(fetched, 1);
  must_be_whole();
}

/* The same name, size and times, and another byte. */
static void sizes_and_times_are_not_believed(void **unused) {
  unsigned fetched;
  struct stat st;
  int fd = open(in("here/large"), O_WRONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) < 0 || pwrite(fd, "X", 1, 9 * MIB) != 1) abort();
  struct timespec times[2] = {st.st_atim, st.st_mtim};
  if (futimens(fd, times) < 0) abort();
  close(fd);
  assert_int_equal(down(&fetched), 0);
  assert_int_equal(fetched, 1);
  must_be_whole();
}

static void one_that_was_cut_gives_its_whole_blocks(void **unused) {
  unsigned fetched;
  if (truncate(in("here/large"), 9 * MIB) < 0) abort();
  assert_int_equal(down(&fetched), 0);
  assert_int_equal(fetched, 1);
  must_be_whole();
}

static void neither_links_nor_pipes_nor_directories_are_read(void **unused) {
  unsigned fetched;
  unlink(in("here/small"));
  unlink(in("here/large"));
  unlink(in("here/sub/state"));
  if (symlink("../ck-3/small", in("here/small")) < 0) abort();
  if (mkfifo(in("here/large"), 0600) < 0) abort();
  make_dir(in("here/sub/state"));
  assert_int_equal(down(&fetched), 0);
  assert_int_equal(fetched, 3);
  must_be_whole();
}

static void where_nothing_stood_all_of_it_is_fetched(void **unused) {
  err e = {0};
  transfer_nearby nearby = {.stood = stood_nowhere};
  transfer t = {.io = io_unflushed(), .store = place.s, .nearby = &nearby};
  no_error(transfer_down(&t, &saved, "u", in("out"), &e), &e);
  assert_int_equal(nearby.fetched, 3); /* of the empty one there is nothing to fetch */
  assert_int_equal(nearby.here, 0);
  assert_int_equal(nearby.files, 4);
  must_be_whole();
}

/* What is here makes up for no damage: each block is one that was saved, or it is an error. */
static void damage_in_the_store_is_found_where_it_is_fetched(void **unused) {
  unsigned fetched;
  unlink(in("here/small"));
  forget("u/small");
  assert_int_equal(down(&fetched), ERR_CORRUPT);
}

/* ---- from other tasks ---- */

/* Restores to `to`, where it will stay, as one task of a node does. */
static int down_with(node_share *node, const char *to, transfer_nearby *n) {
  err e = {0};
  char at[FS_PATH_MAX];
  snprintf(at, sizeof at, "%s", in(to));
  *n = (transfer_nearby){.stood = stood_nowhere, .node = node, .turn = 1, .turns = 2};
  transfer t = {.io = io_unflushed(), .store = place.s, .nearby = n, .shown = at};
  return transfer_down(&t, &saved, "u", at, &e);
}

static node_share *open_node(void) {
  node_share *node = node_share_open(io_unflushed(), NULL, dir, "l1", "boot", "target");
  assert_non_null(node);
  return node;
}

static void what_another_task_has_fetched_is_taken_from_there(void **unused) {
  transfer_nearby n;
  node_share *a = open_node(), *b = open_node();
  make_dir(in("first"));
  assert_int_equal(down_with(a, "first", &n), 0);
  assert_int_equal(n.fetched, 3);
  forget("u/large");
  forget("u/small");
  forget("u/sub/state");
  assert_int_equal(down_with(b, "out", &n), 0);
  assert_int_equal(n.fetched, 0);
  assert_int_equal(n.shared, 3);
  assert_int_equal(n.here, 0);
  must_be_whole();
  node_share_close(a);
  node_share_close(b);
}

/* Its job has begun, and writes into what it resumed from. */
static void what_another_task_has_changed_since_is_fetched(void **unused) {
  transfer_nearby n;
  node_share *a = open_node();
  make_dir(in("first"));
  assert_int_equal(down_with(a, "first", &n), 0);
  write_file(in("first/small"), "trained");
  if (truncate(in("first/large"), 9 * MIB) < 0) abort();
  unlink(in("first/sub/state"));
  assert_int_equal(down_with(a, "out", &n), 0);
  assert_int_equal(n.fetched, 3);
  must_be_whole();
  node_share_close(a);
}

static void one_that_fails_leaves_no_note(void **unused) {
  transfer_nearby n;
  node_share *a = open_node();
  make_dir(in("first"));
  forget("u/small");
  assert_int_equal(down_with(a, "first", &n), ERR_CORRUPT);
  assert_int_equal(store_put_text(place.s, "u/small", "weights", STORE_REPLACE), 0);
  assert_int_equal(down_with(a, "out", &n), 0);
  must_be_whole();
  node_share_close(a);
}

/* A task that waits for another one. */
static struct {
  io io;
  atomic_int naps;
} waiting;

enum { PATIENT_NAPS = 5000 };

static void nap(const io *self, int64_t ns) {
  (void)self, (void)ns;
  atomic_fetch_add(&waiting.naps, 1);
  usleep(1000);
}

static int64_t now_by_naps(const io *self, io_clock clock) {
  (void)self, (void)clock;
  return atomic_load(&waiting.naps) < PATIENT_NAPS ? 0 : INT64_MAX / 2;
}

/* The large one is begun when another one is waited for. */
static bool stood_nowhere_yet(void *ctx, const char *name, char path[FS_PATH_MAX]) {
  (void)ctx, (void)path;
  while (strcmp(name, "large") == 0 && atomic_load(&waiting.naps) == 0) usleep(1000);
  return false;
}

static void one_that_fails_waits_for_no_other_task(void **unused) {
  err e = {0};
  pool *workers;
  node_claim held;
  waiting.io = *io_unflushed();
  waiting.io.sleep = nap;
  waiting.io.now = now_by_naps;
  atomic_store(&waiting.naps, 0);
  node_share *a = open_node();
  node_share *b = node_share_open(&waiting.io, NULL, dir, "l1", "boot", "target");
  assert_non_null(b);
  node_share_claim(a, &manifest_find(&saved, "small")->file, NULL, &held);
  assert_true(held.held.fd >= 0);
  forget("u/large");
  assert_int_equal(pool_open(&workers, 4, 16, NULL), 0);
  transfer_nearby n = {.stood = stood_nowhere_yet, .node = b};
  transfer t = {
      .io = io_unflushed(), .store = place.s, .pool = workers, .nearby = &n, .shown = dir};
  assert_int_equal(transfer_down(&t, &saved, "u", in("out"), &e), ERR_CORRUPT);
  assert_in_range(atomic_load(&waiting.naps), 1, PATIENT_NAPS - 1);
  pool_close(workers);
  node_share_end(a, &held, NULL, NULL);
  node_share_close(b);
  node_share_close(a);
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(what_is_here_whole_is_not_fetched),
      T(the_copy_stays_as_it_was),
      T(only_what_differs_or_is_missing_is_fetched),
      T(sizes_and_times_are_not_believed),
      T(one_that_was_cut_gives_its_whole_blocks),
      T(neither_links_nor_pipes_nor_directories_are_read),
      T(where_nothing_stood_all_of_it_is_fetched),
      T(damage_in_the_store_is_found_where_it_is_fetched),
      T(what_another_task_has_fetched_is_taken_from_there),
      T(what_another_task_has_changed_since_is_fetched),
      T(one_that_fails_leaves_no_note),
      T(one_that_fails_waits_for_no_other_task),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
