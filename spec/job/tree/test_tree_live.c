/* Trees to which a program writes while they are sent or copied: its logs grow, its files are
 * replaced, rewritten and removed. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commit/manifest/manifest.h"
#include "fault_dir.h"
#include "io_hook.h"
#include "job/tree/tree.h"

/* More than one buffer of a copy, and more than one block of an upload. */
enum { SMALL = 300000, LARGE = (8 << 20) + 5, SHORT = 1000 };

static atomic_int cancel;
static _Atomic uint64_t done, total;
static log_sink quiet;
static size_t size; /* of `log` at first */
static char *src, *there, *to, *file, *fresh;

/* What the program does to `log`; `nth` counts from 1, and tells what it writes. */
typedef void act(unsigned nth);

static struct writer {
  act *act;
  long first, last; /* at these calls of the reader */
  unsigned acts;
} writer;

static void on_call(void *ctx, long call) {
  struct writer *w = ctx;
  if (call >= w->first && call <= w->last) w->act(++w->acts);
}

static int enter(void **unused) {
  fault_dir_enter(fault_dir_memory());
  cancel = 0;
  size = SMALL;
  src = strdup(in("src"));
  there = strdup(in("there"));
  to = strdup(in("to"));
  file = strdup(in("src/log"));
  fresh = strdup(in("new"));
  make_dir(src);
  make_dir(in("src/sub"));
  write_file(in("src/a"), "aaaa");
  write_file(in("src/sub/b"), "bb");
  write_pattern(file, size, 0);
  return 0;
}

static int leave(void **state) {
  char *const paths[] = {src, there, to, file, fresh};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) free(paths[i]);
  return fault_dir_leave(state);
}

static void grow(unsigned nth) {
  (void)nth;
  int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0 || write(fd, "more", 4) != 4) abort();
  close(fd);
}

static void rewrite(unsigned nth) {
  write_pattern(fresh, size, nth);
  size_t len;
  char *text = read_file(fresh, &len);
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || pwrite(fd, text, len, 0) != (ssize_t)len) abort();
  close(fd);
  free(text);
}

static void write_shorter(unsigned nth) {
  if (truncate(file, 10) != 0) abort();
  write_pattern(file, SHORT, nth);
}

static void replace(unsigned nth) {
  write_pattern(fresh, size + nth, nth);
  if (rename(fresh, file) != 0) abort();
}

static void take_away(unsigned nth) {
  (void)nth;
  unlink(file);
}

/* ---- two ways to take a tree: an upload, of which a download shows what arrived, and a copy ---- */

typedef int way(const io *io, err *e);

static tree_job with(const io *io) {
  return (tree_job){.io = io, .log = &quiet, .cancel = &cancel, .done = &done, .total = &total};
}

static int by_upload(const io *io, err *e) {
  tree_job p = with(io), sound = with(io_unflushed());
  tree_moved moved = {0};
  done = 0;
  int rc = tree_upload(&p, src, there, &moved, e);
  if (rc < 0) {
    assert_false(path_exists(in("there/" MANIFEST_NAME)));
    return rc;
  }
  assert_int_equal(done, total);
  assert_int_equal(tree_download(&sound, there, to, &moved, e), 0);
  return 0;
}

static int by_copy(const io *io, err *e) {
  tree_job p = with(io);
  tree_moved moved = {0};
  int rc = tree_copy(&p, src, to, &moved, e);
  if (rc < 0) assert_false(path_exists(to));
  if (rc == 0) assert_int_equal(done, total);
  return rc;
}

static way *const ways[] = {by_upload, by_copy};

/* Lets the program act at these calls. Returns false if the way was over before the first one. */
static bool take(way *how, act *act, long first, long last, int *rc, err *e) {
  if (path_exists(to)) tmpdir_remove(strdup(to));
  if (path_exists(there)) tmpdir_remove(strdup(there));
  write_pattern(file, size, 0);
  usleep(12000); /* past the clock's grain */
  writer = (struct writer){.act = act, .first = first, .last = last};
  int fds = count_fds();
  *rc = how(io_hook_set(on_call, &writer), e);
  assert_int_equal(count_fds(), fds);
  return writer.acts > 0;
}

static void the_rest_is_whole(void) {
  assert_true(file_is(in("to/a"), "aaaa"));
  assert_true(file_is(in("to/sub/b"), "bb"));
}

/* What is there is the beginning of the file here, and not less than that had at first. */
static void the_log_is_a_beginning(void) {
  size_t whole, len;
  char *now = read_file(file, &whole), *there = read_file(in("to/log"), &len);
  assert_non_null(there);
  assert_in_range(len, size, whole);
  assert_memory_equal(now, there, len);
  free(now);
  free(there);
}

static void the_log_is_one_of_those_that_were(unsigned acts) {
  size_t len, known;
  char *there = read_file(in("to/log"), &len);
  bool found = false;
  assert_non_null(there);
  for (unsigned nth = 0; nth <= acts && !found; nth++) {
    write_pattern(in("known"), len, nth);
    char *text = read_file(in("known"), &known);
    found = (len == size || len == SHORT || len == size + nth) && memcmp(text, there, len) == 0;
    free(text);
  }
  assert_true(found);
  free(there);
}

/* ---- */

static void a_file_that_grows_is_taken_as_it_was_when_it_was_opened(void **unused) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    bool acted = true;
    for (long n = 1; acted; n += 7) {
      err e = {0};
      int rc;
      acted = take(ways[i], grow, n, n, &rc, &e);
      if (rc < 0) fail_msg("way %zu, call %ld: %s", i, n, e.text);
      the_log_is_a_beginning();
      the_rest_is_whole();
    }
  }
}

static void one_that_never_stops_to_grow_is_taken_at_the_first_try(void **unused) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    err e = {0};
    int rc;
    take(ways[i], grow, 1, 1000000, &rc, &e);
    if (rc < 0) fail_msg("way %zu: %s", i, e.text);
    the_log_is_a_beginning();
    the_rest_is_whole();
  }
}

/* One write at each call of the reader in turn, or at some of them. */
static void must_be_of_one_moment(way *how, act *act, long step) {
  bool acted = true;
  for (long n = 1; acted; n += step) {
    err e = {0};
    int rc;
    acted = take(how, act, n, n, &rc, &e);
    if (rc < 0) fail_msg("call %ld: %s", n, e.text);
    the_log_is_one_of_those_that_were(writer.acts);
    the_rest_is_whole();
  }
}

static void one_that_is_rewritten_is_taken_as_it_was_at_one_moment(void **unused) {
  act *const acts[] = {rewrite, write_shorter, replace};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (size_t k = 0; k < sizeof acts / sizeof *acts; k++)
      must_be_of_one_moment(ways[i], acts[k], k == 0 ? 2 : 9);
}

static void so_is_one_of_more_than_a_block(void **unused) {
  size = LARGE;
  must_be_of_one_moment(by_upload, rewrite, 5);
}

static void one_that_vanishes_is_left_out(void **unused) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    bool acted = true;
    for (long n = 1; acted; n += 7) {
      err e = {0};
      int rc;
      acted = take(ways[i], take_away, n, n, &rc, &e);
      if (rc < 0) fail_msg("way %zu, call %ld: %s", i, n, e.text);
      the_rest_is_whole();
      write_file(file, "");
    }
  }
}

/* Counts who opens the others to read them. */
static int opened;

static int open_counting(const io *io, int at, const char *path, int flags, mode_t mode) {
  const struct io *hooked = io->ctx;
  const char *name = strrchr(path, '/');
  opened += name && strcmp(name, "/b") == 0 && strstr(path, "/src/") && !(flags & O_PATH);
  return hooked->open(hooked, at, path, flags, mode);
}

static void one_that_is_rewritten_for_ever_is_retired_and_it_alone_is_read_anew(void **unused) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    err e = {0};
    writer = (struct writer){.act = rewrite, .first = 1, .last = 1000000};
    const io *hooked = io_hook_set(on_call, &writer);
    io counting = *hooked;
    counting.open = open_counting;
    counting.ctx = (void *)hooked;
    opened = 0;
    assert_int_equal(ways[i](&counting, &e), ERR_RETIRED);
    assert_non_null(strstr(e.text, "log was rewritten while it was"));
    assert_int_equal(opened, 1);
  }
}

int main(void) {
#define PROMISE(f) cmocka_unit_test_setup_teardown(f, enter, leave)
  const struct CMUnitTest tests[] = {
      PROMISE(a_file_that_grows_is_taken_as_it_was_when_it_was_opened),
      PROMISE(one_that_never_stops_to_grow_is_taken_at_the_first_try),
      PROMISE(one_that_is_rewritten_is_taken_as_it_was_at_one_moment),
      PROMISE(so_is_one_of_more_than_a_block),
      PROMISE(one_that_vanishes_is_left_out),
      PROMISE(one_that_is_rewritten_for_ever_is_retired_and_it_alone_is_read_anew),
  };
  return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
