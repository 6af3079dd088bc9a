#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_dir.h"
#include "prims/fs.h"

/* Where the tests run: NULL is the temporary file system. */
static const char *place;

static int enter(void **unused) {
  fault_dir_enter(place);
  return 0;
}

/* The log has these lines in this order (each may stand anywhere behind the one before). */
static void log_has_in_order(const char *const *lines, size_t count) {
  int at = -1;
  for (size_t i = 0; i < count; i++) {
    int found = io_fault_find(fault, at + 1, lines[i]);
    if (found < 0) {
      char *log = io_fault_log(fault);
      print_error("\"%s\" is missing after line %d of:\n%s", lines[i], at, log);
      free(log);
    }
    assert_true(found >= 0);
    at = found;
  }
}

static const char *line(const char *verb, const char *name) {
  static char lines[8][4200];
  static unsigned next;
  char *text = lines[next++ % 8];
  snprintf(text, sizeof lines[0], "%s %s/%s", verb, dir, name);
  return text;
}

/* --- paths --- */

static void paths_join_and_split(void **unused) {
  static const char *const joins[][3] = {
      {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"},         {"", "b", "b"},
      {"a", "", "a"},    {"", "", ""},       {"a/b", "c/d", "a/b/c/d"}};
  static const char *const parents[][2] = {
      {"a", "."},   {"a/b", "a"},   {"/a", "/"}, {"/", "/"},  {"a/b/", "a"}, {"a//b", "a"},
      {"//a", "/"}, {"/a/b", "/a"}, {"", "."},   {"a/", "."}, {"///", "/"},  {"./a", "."}};
  char out[FS_PATH_MAX];
  for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
    assert_int_equal(fs_join(out, joins[i][0], joins[i][1], NULL), 0);
    assert_string_equal(out, joins[i][2]);
  }
  for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
    fs_parent(parents[i][0], out);
    assert_string_equal(out, parents[i][1]);
  }
  assert_string_equal(fs_base("a/b"), "b");
  assert_string_equal(fs_base("b"), "b");
  char path[300] = "//a/./b", name[FS_NAME_MAX];
  for (const char *const *want = (const char *const[]){"a", ".", "b", "", NULL}; *want; want++) {
    assert_true(fs_take_name(path, name));
    assert_string_equal(name, *want);
  }
  memset(path, 'x', FS_NAME_MAX);
  path[FS_NAME_MAX] = 0;
  assert_false(fs_take_name(path, name));
  assert_string_equal(fs_base("/"), "");
}

static void a_path_that_is_too_long_is_refused_and_never_cut(void **unused) {
  char out[FS_PATH_MAX], name[5001];
  memset(name, 'a', 5000);
  name[5000] = 0;
  name[4500] = '/';
  err e = {0};
  assert_int_equal(fs_join(out, "x", name, &e), ERR_LIMIT);
  assert_string_equal(out, "");
  fs_parent(name, out);
  assert_string_equal(out, "");
  assert_true(fs_mkdirs(io_, name, 0700, NULL) < 0);
  name[4093] = 0;
  assert_int_equal(fs_join(out, "x", name, NULL), 0); /* 4095 bytes and the NUL */
  name[4093] = 'a';
  name[4094] = 0;
  assert_int_equal(fs_join(out, "x", name, NULL), ERR_LIMIT);
}

/* --- reading --- */

static void reading_gives_the_whole_file_or_an_error(void **unused) {
  buf b;
  buf_init(&b, 1 << 20);
  write_file(in("f"), "hello");
  buf_str(&b, "> ");
  assert_int_equal(fs_read(io_, in("f"), 5, &b, NULL), 0);
  assert_string_equal(b.data, "> hello");
  err e = {0};
  assert_int_equal(fs_read(io_, in("f"), 4, &b, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, in("f")));
  assert_string_equal(b.data, "> hello");
  assert_int_equal(fs_read(io_, in("none"), 5, &b, NULL), ERR_NOENT);
  assert_int_equal(fs_read(io_, dir, 5, &b, NULL), ERR_INVAL);
  write_file(in("empty"), "");
  assert_int_equal(fs_read(io_, in("empty"), 0, &b, NULL), 0);
  assert_int_equal(fs_read(io_, in("f"), 0, &b, NULL), ERR_LIMIT);
  buf_free(&b);
  buf_init(&b, 4); /* the buffer's own cap counts too */
  assert_int_equal(fs_read(io_, in("f"), 100, &b, NULL), ERR_LIMIT);
  assert_int_equal(b.len, 0);
  buf_free(&b);
  buf_init(&b, 5);
  assert_int_equal(fs_read(io_, in("f"), 100, &b, NULL), 0);
  buf_free(&b);
}

static void large_files_and_those_without_a_size_are_read(void **unused) {
  buf b;
  buf_init(&b, 8 << 20);
  write_pattern(in("large"), 3000001, 1);
  assert_int_equal(fs_read(io_, in("large"), 8 << 20, &b, NULL), 0);
  write_bytes(in("again"), b.data, b.len);
  assert_true(files_equal(in("large"), in("again")));
  buf_clear(&b);
  assert_int_equal(fs_read(io_, "/proc/self/status", 1 << 20, &b, NULL), 0); /* st_size is 0 */
  assert_true(b.len > 100);
  buf_free(&b);
}

static void a_fifo_is_refused_without_waiting(void **unused) {
  buf b;
  buf_init(&b, 100);
  assert_int_equal(mkfifo(in("fifo"), 0600), 0);
  assert_int_equal(fs_read(io_, in("fifo"), 100, &b, NULL), ERR_INVAL);
  assert_int_equal(fs_copy_file(io_, in("fifo"), in("copy"), false, NULL, NULL, NULL), ERR_INVAL);
  assert_false(path_exists(in("copy")));
  buf_free(&b);
}

static void a_regular_file_is_opened_and_nothing_else_nor_waited_for(void **unused) {
  struct {
    const char *name;
    int code;
  } const others[] = {{"pipe", -EINVAL}, {"dir", -EINVAL}, {"link", -ELOOP}, {"none", -ENOENT}};
  const int open = count_fds();
  char text[8];
  write_file(in("file"), "bytes");
  assert_int_equal(mkfifo(in("pipe"), 0600), 0);
  make_dir(in("dir"));
  assert_int_equal(symlink("file", in("link")), 0);
  int fd = fs_open_regular(io_, in("file"));
  assert_true(fd >= 0);
  assert_int_equal(fs_fill(io_, fd, text, sizeof text), 5);
  close(fd);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_int_equal(fs_open_regular(io_, in(others[i].name)), others[i].code);
  assert_int_equal(count_fds(), open);
}

/* --- what is written, and in which order --- */

static void a_new_file_has_its_content_and_mode(void **unused) {
  assert_int_equal(fs_write_new(io_, in("f"), "data", 4, 0640, NULL), 0);
  assert_true(file_is(in("f"), "data"));
  assert_int_equal(path_mode(in("f")), 0640);
  assert_int_equal(fs_write_new(io_, in("empty"), NULL, 0, 0600, NULL), 0);
  assert_true(file_is(in("empty"), ""));
}

static void a_new_file_never_replaces_one_nor_follows_a_link(void **unused) {
  write_file(in("f"), "old");
  err e = {0};
  assert_int_equal(fs_write_new(io_, in("f"), "new", 3, 0600, &e), ERR_EXISTS);
  assert_true(file_is(in("f"), "old"));
  assert_int_equal(symlink("target", in("link")), 0);
  assert_int_equal(fs_write_new(io_, in("link"), "new", 3, 0600, NULL), ERR_EXISTS);
  assert_false(path_exists(in("target")));
  assert_true(path_exists(in("link")));
}

static void a_new_file_is_flushed_before_it_is_closed(void **unused) {
  assert_int_equal(fs_write_new(io_, in("f"), "data", 4, 0600, NULL), 0);
  const char *const order[] = {line("write", "f"), line("fsync", "f"), line("close", "f")};
  log_has_in_order(order, 3);
}

static void short_writes_go_on(void **unused) {
  io_fault_short_writes(fault, 3);
  assert_int_equal(fs_write_new(io_, in("f"), "0123456789", 10, 0600, NULL), 0);
  assert_true(file_is(in("f"), "0123456789"));
  assert_int_equal(io_fault_count(fault, CALL_WRITE), 4);
}

static void replacing_swaps_the_content_in_one_step(void **unused) {
  assert_int_equal(fs_replace(io_, in("f"), "one", 3, 0600, NULL), 0);
  assert_true(file_is(in("f"), "one"));
  io_fault_set(fault, (io_fault_plan){0});
  assert_int_equal(fs_replace(io_, in("f"), "two", 3, 0644, NULL), 0);
  assert_true(file_is(in("f"), "two"));
  assert_int_equal(path_mode(in("f")), 0644);
  assert_int_equal(count_entries(dir), 1);
  const char *const order[] = {line("write", "f."),
                               line("fsync", "f."),
                               line("close", "f."),
                               line("rename", "f."),
                               "fsync ",
                               "close "};
  log_has_in_order(order, 6);
  int renamed = io_fault_find(fault, 0, "rename");
  char whole[4200];
  snprintf(whole, sizeof whole, "fsync %s", dir);
  assert_true(io_fault_find(fault, renamed, whole) > renamed);
}

static void publishing_flushes_both_directories_after_the_rename(void **unused) {
  make_dir(in("a"));
  make_dir(in("b"));
  make_dir(in("a/tree"));
  write_file(in("a/tree/f"), "x");
  assert_int_equal(fs_publish(io_, in("a/tree"), in("b/tree"), NULL), 0);
  assert_true(file_is(in("b/tree/f"), "x"));
  assert_false(path_exists(in("a/tree")));
  const char *const order[] = {line("rename", "a/tree"), line("fsync", "b"), line("fsync", "a")};
  log_has_in_order(order, 3);
}

static void linking_flushes_the_directory_after_the_link(void **unused) {
  make_dir(in("d"));
  write_file(in("tmp"), "x");
  assert_int_equal(fs_link_new(io_, in("tmp"), in("d/f"), NULL), 0);
  assert_true(file_is(in("d/f"), "x"));
  assert_false(path_exists(in("tmp")));
  const char *const order[] = {line("link", "tmp"), line("unlink", "tmp"), line("fsync", "d")};
  log_has_in_order(order, 3);
}

static void each_directory_that_is_made_is_flushed_into_its_parent(void **unused) {
  assert_int_equal(fs_mkdirs(io_, in("a//b/c/"), 0755, NULL), 0);
  assert_true(path_exists(in("a/b/c")));
  char top[4200];
  snprintf(top, sizeof top, "fsync %s", dir);
  assert_true(io_fault_find(fault, 0, top) >= 0);
  assert_true(io_fault_find(fault, 0, line("fsync", "a")) >= 0);
  assert_true(io_fault_find(fault, 0, line("fsync", "a//b")) >= 0 ||
              io_fault_find(fault, 0, line("fsync", "a/b")) >= 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 3);
  io_fault_set(fault, (io_fault_plan){0});
  assert_int_equal(fs_mkdirs(io_, in("a/b/c"), 0755, NULL), 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 0);
}

static void making_directories_goes_through_links_but_not_over_files(void **unused) {
  make_dir(in("real"));
  assert_int_equal(symlink("real", in("link")), 0);
  assert_int_equal(symlink("nowhere", in("dangling")), 0);
  write_file(in("file"), "x");
  assert_int_equal(fs_mkdirs(io_, in("link/a"), 0755, NULL), 0);
  assert_true(path_exists(in("real/a")));
  err e = {0};
  assert_int_equal(fs_mkdirs(io_, in("file"), 0755, &e), ERR_EXISTS);
  assert_non_null(strstr(e.text, in("file")));
  assert_true(fs_mkdirs(io_, in("file/a"), 0755, NULL) < 0);
  assert_true(fs_mkdirs(io_, in("dangling/a"), 0755, NULL) < 0);
  assert_int_equal(fs_mkdirs(io_, "", 0755, NULL), ERR_INVAL);
  assert_int_equal(fs_mkdirs(io_, "/", 0755, NULL), 0);
  assert_int_equal(fs_mkdirs(io_, ".", 0755, NULL), 0);
}

/* --- exactly one winner --- */

typedef struct racer {
  pthread_t thread;
  char from[64];
  int rc;
} racer;

static pthread_barrier_t gate;

static void *race(void *arg) {
  racer *r = arg;
  pthread_barrier_wait(&gate);
  r->rc = fs_link_new(io_system(), tmpdir_path(dir, r->from), tmpdir_path(dir, "name"), NULL);
  return NULL;
}

static void of_many_linkers_exactly_one_wins(void **unused) {
  enum { RACERS = 16, ROUNDS = 5 };
  pthread_barrier_init(&gate, NULL, RACERS);
  for (int round = 0; round < ROUNDS; round++) {
    racer racers[RACERS];
    for (int i = 0; i < RACERS; i++) {
      snprintf(racers[i].from, sizeof racers[i].from, "from%d", i);
      write_file(in(racers[i].from), racers[i].from);
    }
    for (int i = 0; i < RACERS; i++) pthread_create(&racers[i].thread, NULL, race, &racers[i]);
    int winners = 0, winner = 0;
    for (int i = 0; i < RACERS; i++) {
      pthread_join(racers[i].thread, NULL);
      if (racers[i].rc == 0) winners++, winner = i;
      if (racers[i].rc != 0) assert_int_equal(racers[i].rc, ERR_EXISTS);
    }
    assert_int_equal(winners, 1);
    assert_true(file_is(in("name"), racers[winner].from));
    assert_int_equal(count_entries(dir), 1); /* the losers' files are gone */
    unlink(in("name"));
  }
  pthread_barrier_destroy(&gate);
}

static void a_link_whose_reply_was_lost_is_recognised(void **unused) {
  static const int replies[] = {EEXIST, EIO, ETIMEDOUT};
  for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
    write_file(in("tmp"), "ours");
    io_fault_set(fault,
                 (io_fault_plan){.kind = CALL_LINK, .nth = 1, .errnum = replies[i], .done = true});
    assert_int_equal(fs_link_new(io_, in("tmp"), in("name"), NULL), 0);
    assert_true(file_is(in("name"), "ours"));
    assert_int_equal(count_entries(dir), 1);
    unlink(in("name"));
  }
}

static void a_taken_name_is_no_lost_reply(void **unused) {
  write_file(in("tmp"), "ours");
  write_file(in("name"), "theirs");
  assert_int_equal(link(in("name"), in("second name")), 0); /* two links, but another file */
  assert_int_equal(fs_link_new(io_, in("tmp"), in("name"), NULL), ERR_EXISTS);
  assert_true(file_is(in("name"), "theirs"));
  assert_false(path_exists(in("tmp")));
}

static void linking_a_file_to_itself_does_not_remove_it(void **unused) {
  write_file(in("f"), "x");
  assert_int_equal(fs_link_new(io_, in("f"), in("f"), NULL), ERR_INVAL);
  assert_true(file_is(in("f"), "x"));
}

static void a_file_system_without_links_is_told_apart(void **unused) {
  static const int refusals[] = {EPERM, ENOSYS, EOPNOTSUPP};
  write_file(in("tmp"), "x");
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    err e = {0};
    io_fault_once(fault, CALL_LINK, 1, refusals[i]);
    assert_int_equal(fs_link_new(io_, in("tmp"), in("name"), &e), ERR_UNSUPPORTED);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_int_equal(e.sys, refusals[i]);
    assert_true(path_exists(in("tmp"))); /* the caller may publish it in another way */
  }
  io_fault_once(fault, CALL_LINK, 1, EIO);
  assert_int_equal(fs_link_new(io_, in("tmp"), in("name"), NULL), ERR_IO);
}

static void publishing_never_replaces_anything(void **unused) {
  write_file(in("file"), "old");
  make_dir(in("empty"));
  make_dir(in("full"));
  write_file(in("full/f"), "old");
  assert_int_equal(symlink("nowhere", in("link")), 0);
  static const char *const targets[] = {"file", "empty", "full", "link"};
  /* Where the kernel knows NOREPLACE, and where it says EINVAL (NFS, FUSE) or ENOSYS. */
  static const int answers[] = {0, EINVAL, ENOSYS};
  for (size_t a = 0; a < 3; a++)
    for (size_t i = 0; i < 4; i++)
      for (int tree = 0; tree < 2; tree++) {
        if (tree) make_dir(in("new"));
        if (!tree) write_file(in("new"), "new");
        io_fault_once(fault, CALL_RENAME, answers[a] ? 1 : 0, answers[a]);
        assert_int_equal(fs_publish(io_, in("new"), in(targets[i]), NULL), ERR_EXISTS);
        assert_true(path_exists(in("new")));
        assert_int_equal(remove(in("new")), 0);
      }
  assert_true(file_is(in("file"), "old"));
  assert_true(file_is(in("full/f"), "old"));
  assert_int_equal(count_entries(in("empty")), 0);
}

static void publishing_works_without_noreplace(void **unused) {
  make_dir(in("a"));
  io_fault_once(fault, CALL_RENAME, 1, EINVAL);
  assert_int_equal(fs_publish(io_, in("a"), in("b"), NULL), 0);
  assert_true(path_exists(in("b")));
  assert_false(path_exists(in("a")));
}

static void a_rename_whose_reply_was_lost_is_recognised(void **unused) {
  static const int replies[] = {ENOENT, EIO, EEXIST};
  for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
    make_dir(in("a"));
    io_fault_set(
        fault, (io_fault_plan){.kind = CALL_RENAME, .nth = 1, .errnum = replies[i], .done = true});
    assert_int_equal(fs_publish(io_, in("a"), in("b"), NULL), 0);
    assert_int_equal(rmdir(in("b")), 0);
  }
}

static void publishing_nothing_or_across_file_systems_is_told_apart(void **unused) {
  err e = {0};
  assert_int_equal(fs_publish(io_, in("none"), in("b"), &e), ERR_NOENT);
  make_dir(in("a"));
  io_fault_once(fault, CALL_RENAME, 1, EXDEV);
  assert_int_equal(fs_publish(io_, in("a"), in("b"), &e), ERR_UNSUPPORTED);
  assert_int_equal(e.sys, EXDEV);
}

/* --- copying and moving --- */

static void set_times(const char *path, time_t seconds) {
  const struct timespec times[2] = {{1, 1}, {seconds, 123456789}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void assert_times(const char *path, time_t seconds) {
  struct stat st;
  assert_int_equal(lstat(path, &st), 0);
  assert_int_equal(st.st_mtim.tv_sec, seconds);
  assert_int_equal(st.st_mtim.tv_nsec, 123456789);
}

static void a_copy_is_equal_however_it_is_made(void **unused) {
  static const size_t sizes[] = {0, 1, 4096, 9000001};
  static const struct {
    io_call kind;
    long nth;
    int errnum;
  } ways[] = {
      {CALL_ANY, 0, 0},
      {CALL_CLONE, 1, EOPNOTSUPP},
      {CALL_COPY_RANGE, 1, EXDEV},
      {CALL_COPY_RANGE, 2, EINVAL}, /* half by one way, half by the other */
  };
  for (size_t s = 0; s < 4; s++) {
    write_pattern(in("from"), sizes[s], (unsigned)s);
    assert_int_equal(chmod(in("from"), 0440), 0);
    set_times(in("from"), 1000000);
    for (size_t w = 0; w < 4; w++) {
      io_fault_once(fault, ways[w].kind, ways[w].nth, ways[w].errnum);
      assert_int_equal(fs_copy_file(io_, in("from"), in("to"), true, NULL, NULL, NULL), 0);
      assert_true(files_equal(in("from"), in("to")));
      assert_int_equal(path_mode(in("to")), 0440);
      assert_times(in("to"), 1000000);
      const char *const order[] = {line("utimens", "to"), line("fsync", "to"), line("close", "to")};
      log_has_in_order(order, 3);
      unlink(in("to"));
    }
    unlink(in("from"));
  }
}

static void a_copy_that_need_not_be_flushed_is_not(void **unused) {
  write_file(in("from"), "x");
  assert_int_equal(fs_copy_file(io_, in("from"), in("to"), false, NULL, NULL, NULL), 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 0);
}

static void a_copy_never_replaces_and_never_follows(void **unused) {
  write_file(in("from"), "new");
  write_file(in("to"), "old");
  assert_int_equal(fs_copy_file(io_, in("from"), in("to"), false, NULL, NULL, NULL), ERR_EXISTS);
  assert_true(file_is(in("to"), "old"));
  assert_int_equal(symlink("from", in("link")), 0);
  assert_int_equal(fs_copy_file(io_, in("link"), in("copy"), false, NULL, NULL, NULL), ERR_INVAL);
  assert_int_equal(fs_copy_file(io_, dir, in("copy"), false, NULL, NULL, NULL), ERR_INVAL);
  assert_int_equal(fs_copy_file(io_, in("none"), in("copy"), false, NULL, NULL, NULL), ERR_NOENT);
  assert_false(path_exists(in("copy")));
}

/* An io that cancels from inside, when the copy is under way. */
static atomic_int stop;
static ssize_t cancelling_read(const io *io, int fd, void *to, size_t len) {
  stop = 1;
  return io_system()->read(io_system(), fd, to, len);
}
static ssize_t no_range(const io *io, int from, int to, size_t len) {
  return -EXDEV;
}
static int no_clone(const io *io, int from, int to) {
  return -EOPNOTSUPP;
}

static void a_cancelled_copy_stops_and_leaves_nothing(void **unused) {
  io slow = *io_system();
  slow.read = cancelling_read;
  slow.copy_range = no_range;
  slow.clone = no_clone;
  write_pattern(in("from"), 20 << 20, 1);
  stop = 0;
  assert_int_equal(fs_copy_file(&slow, in("from"), in("to"), false, &stop, NULL, NULL),
                   ERR_CANCELED);
  assert_false(path_exists(in("to")));
  assert_int_equal(fs_copy_file(io_, in("from"), in("to"), false, &stop, NULL, NULL), ERR_CANCELED);
  assert_false(path_exists(in("to")));
}

static void a_copy_tells_that_it_is_alive(void **unused) {
  _Atomic uint64_t copied = 0;
  io slow = *io_system();
  slow.clone = no_clone;
  write_pattern(in("from"), 20 << 20, 1);
  assert_int_equal(fs_copy_file(&slow, in("from"), in("to"), false, NULL, &copied, NULL), 0);
  assert_int_equal(copied, 20 << 20);
  slow.copy_range = no_range;
  assert_int_equal(fs_copy_file(&slow, in("from"), in("slow"), false, NULL, &copied, NULL), 0);
  assert_int_equal(copied, 40 << 20);
}

static void make_source(void) {
  make_dir(in("from"));
  make_dir(in("from/sub"));
  write_file(in("from/sub/f"), "data");
  assert_int_equal(symlink("sub/f", in("from/link")), 0);
}

static void assert_moved(const char *to) {
  assert_false(path_exists(in("from")));
  assert_true(file_is(tmpdir_path(to, "sub/f"), "data"));
  char target[16] = {0};
  assert_int_equal(readlink(tmpdir_path(to, "link"), target, sizeof target), 5);
  assert_string_equal(target, "sub/f");
}

static void a_move_on_one_file_system_is_a_rename(void **unused) {
  make_source();
  assert_int_equal(fs_move(io_, in("from"), in("to"), NULL), 0);
  assert_moved(in("to"));
  assert_int_equal(io_fault_count(fault, CALL_MKDIR), 0);
}

static void a_move_across_file_systems_copies_flushes_and_removes(void **unused) {
  /* /dev/shm and the temporary directory, where they differ; a refused rename does as well. */
  char *there = access("/dev/shm", W_OK) == 0 && !place ? tmpdir_new_in("/dev/shm") : tmpdir_new();
  make_source();
  io_fault_once(fault, CALL_RENAME, 1, EXDEV);
  assert_int_equal(fs_move(io_, in("from"), tmpdir_path(there, "to"), NULL), 0);
  assert_moved(tmpdir_path(there, "to"));
  assert_int_equal(count_entries(there), 1);
  char published[4200], removed[4200];
  snprintf(published, sizeof published, "fsync %s", there);
  snprintf(removed, sizeof removed, "unlink %s/from", dir);
  const char *const order[] = {"fsync ", "rename ", published, removed};
  log_has_in_order(order, 4);
  write_file(in("from"), "a single file");
  io_fault_once(fault, CALL_RENAME, 1, EXDEV);
  assert_int_equal(fs_move(io_, in("from"), tmpdir_path(there, "file"), NULL), 0);
  assert_true(file_is(tmpdir_path(there, "file"), "a single file"));
  tmpdir_remove(there);
}

static void a_move_never_replaces(void **unused) {
  make_source();
  make_dir(in("to"));
  for (int across = 0; across < 2; across++) {
    err e = {0};
    io_fault_once(fault, CALL_RENAME, across, EXDEV);
    assert_int_equal(fs_move(io_, in("from"), in("to"), &e), ERR_EXISTS);
    assert_int_equal(e.code, ERR_EXISTS);
    assert_true(file_is(in("from/sub/f"), "data"));
    assert_int_equal(count_entries(in("to")), 0);
    assert_int_equal(count_entries(dir), 2);
  }
}

/* --- every call fails once --- */

/* An operation to be tortured: its start, itself, and what must hold after it. */
typedef struct scene {
  const char *name;
  void (*set)(void);
  int (*run)(err *e);
  /* True if the world is as it was, or as it is to be. */
  bool (*is_old)(void);
  bool (*is_new)(void);
  int entries_old, entries_new; /* in `dir`, when nothing is left behind */
  bool in_place;                /* the target is written under its own name */
} scene;

static void no_files(void) {}
static void old_file(void) {
  write_file(in("f"), "old");
}
static void temp_file(void) {
  write_file(in("tmp"), "new");
}
static void big_file(void) {
  write_pattern(in("from"), 300000, 7);
}
static int run_write_new(err *e) {
  return fs_write_new(io_, in("f"), "new", 3, 0600, e);
}
static int run_replace(err *e) {
  return fs_replace(io_, in("f"), "new", 3, 0600, e);
}
static int run_link_new(err *e) {
  return fs_link_new(io_, in("tmp"), in("f"), e);
}
static int run_publish(err *e) {
  return fs_publish(io_, in("tmp"), in("f"), e);
}
static int run_mkdirs(err *e) {
  return fs_mkdirs(io_, in("a/b/c"), 0700, e);
}
static int run_copy(err *e) {
  return fs_copy_file(io_, in("from"), in("to"), true, NULL, NULL, e);
}
static bool f_is_new(void) {
  return file_is(in("f"), "new");
}
static bool f_is_old(void) {
  return file_is(in("f"), "old");
}
static bool f_is_none(void) {
  return !path_exists(in("f"));
}
static bool tmp_is_kept(void) {
  return f_is_none() && file_is(in("tmp"), "new");
}
static bool any_dirs(void) {
  return true;
}
static bool all_dirs(void) {
  return path_exists(in("a/b/c"));
}
static bool no_copy(void) {
  return !path_exists(in("to"));
}
static bool whole_copy(void) {
  return files_equal(in("from"), in("to"));
}

static const scene scenes[] = {
    {"write_new", no_files, run_write_new, f_is_none, f_is_new, 0, 1, true},
    {"replace", old_file, run_replace, f_is_old, f_is_new, 1, 1, false},
    {"link_new", temp_file, run_link_new, tmp_is_kept, f_is_new, 1, 1, false},
    {"publish", temp_file, run_publish, tmp_is_kept, f_is_new, 1, 1, false},
    {"mkdirs", no_files, run_mkdirs, any_dirs, all_dirs, -1, 1, false},
    {"copy_file", big_file, run_copy, no_copy, whole_copy, 1, 2, true},
};

/* One run with one plan. False when there was nothing left to fail. */
static bool survives(const scene *s, io_fault_plan plan) {
  s->set();
  int fds = count_fds();
  io_fault_set(fault, plan);
  err e = {0};
  int rc = s->run(&e);
  bool failed = io_fault_failed(fault, CALL_ANY) > 0;
  /* On a disk that is dead for good all may stay; else only what cannot be removed, and a file
   * whose open was carried out without a reply: it may be somebody else's. */
  bool may_stay = plan.for_good || io_fault_failed(fault, CALL_UNLINK) > 0 ||
                  (plan.done && io_fault_failed(fault, CALL_OPEN) > 0);
  bool is_old = s->is_old(), is_new = s->is_new();
  int entries = count_entries(dir), expected = is_new ? s->entries_new : s->entries_old;
  bool clean = expected < 0 || entries == expected || may_stay;
  bool good = rc == 0  ? is_new && clean
              : rc < 0 ? failed && (is_old || is_new || (may_stay && s->in_place)) && clean &&
                             e.code == rc && *e.text
                       : false;
  if (!good || count_fds() != fds) {
    char *log = io_fault_log(fault);
    print_error(
        "%s, call %ld, errno %d%s%s: rc %d, old %d, new %d, %d entries, %d fds of %d\n%s\n%s",
        s->name, plan.nth, plan.errnum, plan.for_good ? ", for good" : "",
        plan.done ? ", done" : "", rc, is_old, is_new, entries, count_fds(), fds, e.text, log);
    free(log);
    fail();
  }
  tmpdir_remove(dir);
  dir = place ? tmpdir_new_in(place) : tmpdir_new();
  return failed;
}

static void any_failing_call_gives_an_error_or_success_and_no_litter(void **unused) {
  static const int errnums[] = {EIO, ENOSPC};
  for (size_t s = 0; s < sizeof scenes / sizeof scenes[0]; s++)
    for (int mode = 0; mode < 8; mode++) {
      io_fault_plan plan = {.errnum = errnums[mode & 1], .for_good = mode & 2, .done = mode & 4};
      do plan.nth++;
      while (survives(&scenes[s], plan));
      assert_true(plan.nth > 3);
      assert_true(plan.nth < 100);
    }
}

static void a_failed_flush_or_close_is_never_a_success(void **unused) {
  static const io_call kinds[] = {CALL_FSYNC, CALL_WRITE};
  for (size_t s = 0; s < sizeof scenes / sizeof scenes[0]; s++)
    for (size_t k = 0; k < 2; k++)
      for (long nth = 1;; nth++) {
        scenes[s].set();
        io_fault_once(fault, kinds[k], nth, EIO);
        int rc = scenes[s].run(NULL);
        bool failed = io_fault_failed(fault, CALL_ANY) > 0;
        assert_true(rc == (failed ? ERR_IO : 0));
        tmpdir_remove(dir);
        dir = place ? tmpdir_new_in(place) : tmpdir_new();
        if (!failed) break;
      }
  io_fault_once(fault, CALL_CLOSE, 1, EDQUOT);
  err e = {0};
  assert_int_equal(fs_write_new(io_, in("f"), "x", 1, 0600, &e), ERR_NOSPACE);
  assert_non_null(strstr(e.text, in("f")));
  assert_false(path_exists(in("f")));
}

static void after_a_failed_flush_the_same_call_makes_directories_anew(void **unused) {
  io_fault_once(fault, CALL_FSYNC, 1, EIO);
  assert_int_equal(fs_mkdirs(io_, in("a"), 0700, NULL), ERR_IO);
  assert_false(path_exists(in("a")));
  io_fault_set(fault, (io_fault_plan){0});
  assert_int_equal(fs_mkdirs(io_, in("a"), 0700, NULL), 0);
  assert_int_equal(io_fault_count(fault, CALL_FSYNC), 1);
}

static void what_cannot_be_cleaned_up_is_named(void **unused) {
  err e = {0};
  io_fault_set(fault, (io_fault_plan){.kind = CALL_ANY, .nth = 2, .errnum = EIO, .for_good = true});
  assert_int_equal(fs_write_new(io_, in("f"), "x", 1, 0600, &e), ERR_IO);
  assert_non_null(strstr(e.text, "cannot write"));
  assert_non_null(strstr(e.text, "stays behind"));
  assert_true(path_exists(in("f")));
}

static void a_file_system_that_cannot_flush_directories_is_usable(void **unused) {
  make_dir(in("a"));
  io_fault_once(fault, CALL_FSYNC, 1, EINVAL);
  assert_int_equal(fs_sync_dir(io_, in("a"), NULL), 0);
  io_fault_once(fault, CALL_FSYNC, 1, EINVAL); /* but not one for files */
  assert_int_equal(fs_write_new(io_, in("f"), "x", 1, 0600, NULL), ERR_INVAL);
  assert_int_equal(fs_sync_dir(io_, in("none"), NULL), ERR_NOENT);
}

static void all_of_it_works_with_real_flushes(void **unused) {
  const io *real = io_system();
  make_dir(in("d"));
  assert_int_equal(fs_write_new(real, in("tmp"), "x", 1, 0600, NULL), 0);
  assert_int_equal(fs_link_new(real, in("tmp"), in("d/f"), NULL), 0);
  assert_int_equal(fs_replace(real, in("d/f"), "y", 1, 0600, NULL), 0);
  assert_int_equal(fs_mkdirs(real, in("a/b"), 0700, NULL), 0);
  assert_int_equal(fs_copy_tree(real, in("d"), in("a/b/d"), true, NULL, NULL), 0);
  assert_int_equal(fs_sync_tree(real, in("a"), NULL), 0);
  assert_int_equal(fs_publish(real, in("a"), in("c"), NULL), 0);
  assert_true(file_is(in("c/b/d/f"), "y"));
}

static void a_full_disk_gives_an_error_and_leaves_nothing(void **unused) {
  int fd = open("/dev/full", O_WRONLY);
  assert_true(fd >= 0);
  assert_int_equal(fs_write_all(io_, fd, "x", 1, "/dev/full", NULL), ERR_NOSPACE);
  close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, fault_dir_leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(paths_join_and_split),
      TEST(a_path_that_is_too_long_is_refused_and_never_cut),
      TEST(reading_gives_the_whole_file_or_an_error),
      TEST(large_files_and_those_without_a_size_are_read),
      TEST(a_fifo_is_refused_without_waiting),
      TEST(a_regular_file_is_opened_and_nothing_else_nor_waited_for),
      TEST(a_new_file_has_its_content_and_mode),
      TEST(a_new_file_never_replaces_one_nor_follows_a_link),
      TEST(a_new_file_is_flushed_before_it_is_closed),
      TEST(short_writes_go_on),
      TEST(replacing_swaps_the_content_in_one_step),
      TEST(publishing_flushes_both_directories_after_the_rename),
      TEST(linking_flushes_the_directory_after_the_link),
      TEST(each_directory_that_is_made_is_flushed_into_its_parent),
      TEST(making_directories_goes_through_links_but_not_over_files),
      TEST(of_many_linkers_exactly_one_wins),
      TEST(a_link_whose_reply_was_lost_is_recognised),
      TEST(a_taken_name_is_no_lost_reply),
      TEST(linking_a_file_to_itself_does_not_remove_it),
      TEST(a_file_system_without_links_is_told_apart),
      TEST(publishing_never_replaces_anything),
      TEST(publishing_works_without_noreplace),
      TEST(a_rename_whose_reply_was_lost_is_recognised),
      TEST(publishing_nothing_or_across_file_systems_is_told_apart),
      TEST(a_copy_is_equal_however_it_is_made),
      TEST(a_copy_that_need_not_be_flushed_is_not),
      TEST(a_copy_never_replaces_and_never_follows),
      TEST(a_cancelled_copy_stops_and_leaves_nothing),
      TEST(a_copy_tells_that_it_is_alive),
      TEST(a_move_on_one_file_system_is_a_rename),
      TEST(a_move_across_file_systems_copies_flushes_and_removes),
      TEST(a_move_never_replaces),
      TEST(any_failing_call_gives_an_error_or_success_and_no_litter),
      TEST(a_failed_flush_or_close_is_never_a_success),
      TEST(after_a_failed_flush_the_same_call_makes_directories_anew),
      TEST(what_cannot_be_cleaned_up_is_named),
      TEST(a_file_system_that_cannot_flush_directories_is_usable),
      TEST(all_of_it_works_with_real_flushes),
      TEST(a_full_disk_gives_an_error_and_leaves_nothing),
  };
  int failed = cmocka_run_group_tests_name("temporary directory", tests, NULL, NULL);
  place = "/dev/shm";
  if (access(place, W_OK) == 0) failed += cmocka_run_group_tests_name("tmpfs", tests, NULL, NULL);
  return failed;
}
