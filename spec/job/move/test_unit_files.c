#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/move/unit_files.h"
#include "fault_dir.h"
#include "io_hook.h"
#include "prims/fs.h"

enum { MS = 1000000 };
static const int64_t second = 1000000000;

/* A directory unit with a bit of everything, a group, and a single file. */
static int enter(void **unused) {
  fault_dir_enter(fault_dir_memory());
  make_dir(in("exp"));
  make_dir(in("exp/ck-3"));
  make_dir(in("exp/ck-3/sub"));
  make_dir(in("exp/ck-3/empty"));
  write_file(in("exp/ck-3/model.pt"), "weights");
  write_file(in("exp/ck-3/sub/a"), "aa");
  write_file(in("exp/ck-3/sub.a"), "sorts before sub/");
  write_file(in("exp/ck-3/.tmpAbCdEf"), "excluded");
  if (symlink("model.pt", in("exp/ck-3/last")) < 0) return -1;
  write_file(in("exp/g-3.index"), "index");
  write_file(in("exp/g-3.data-00000"), "data");
  write_file(in("exp/g-30.index"), "another one's");
  write_file(in("exp/g-3"), "not of the group");
  make_dir(in("exp/g-3.d"));
  write_file(in("exp/one.pt"), "single");
  return 0;
}

static int scan(const char *path, match_kind kind, unit_files *out, err *e) {
  return unit_files_scan(io_unflushed(), dir, path, kind, rules_builtin(), out, e);
}

static unit_files must_scan(const char *path, match_kind kind) {
  unit_files t;
  err e = {0};
  if (scan(path, kind, &t, &e) < 0) fail_msg("%s: %s", path, e.text);
  return t;
}

/* "name name/ name@ ..." */
static const char *names_of(const unit_files *t) {
  static char text[4096];
  text[0] = 0;
  for (size_t i = 0; i < t->count; i++) {
    static const char *const marks[] = {"", "/", "@"};
    size_t len = strlen(text);
    snprintf(text + len, sizeof text - len, "%s%s%s", i ? " " : "", t->files[i].name,
             marks[t->files[i].type]);
  }
  return text;
}

static void a_directory_has_all_below_it_but_excluded_names(void **unused) {
  chmod(in("exp/ck-3"), 0750);
  unit_files t = must_scan("exp/ck-3", MATCH_DIR);
  assert_string_equal(names_of(&t), "empty/ last@ model.pt sub/ sub.a sub/a");
  assert_int_equal(t.regular, 3);
  assert_int_equal(t.bytes, 7 + 2 + 17);
  assert_int_equal(t.mode, 0750);
  assert_string_equal(t.base, in("exp/ck-3"));
  assert_string_equal(t.files[1].target, "model.pt");
  unit_files_free(&t);
}

static unit_files scan_without(const char *path, match_kind kind, const char *const *globs) {
  rules by = *rules_builtin();
  unit_files t;
  err e = {0};
  by.left = globs;
  if (unit_files_scan(io_unflushed(), dir, path, kind, &by, &t, &e) < 0)
    fail_msg("%s: %s", path, e.text);
  return t;
}

static void what_one_checkpoint_is_saved_without_is_left_out_counted_and_named(void **unused) {
  static const char *const globs[] = {"sub/", "model.*", NULL}, *const index[] = {"*.index", NULL},
                           *const all[] = {"g-3*", NULL};
  unit_files t = scan_without("exp/ck-3", MATCH_DIR, globs);
  assert_string_equal(names_of(&t), "empty/ last@ sub.a");
  assert_int_equal(t.left_out, 2);
  assert_string_equal(t.left_names.at[0], "model.pt");
  assert_string_equal(t.left_names.at[1], "sub/");
  unit_files_free(&t);
  t = scan_without("exp/g-3", MATCH_GROUP, index);
  assert_string_equal(names_of(&t), "g-3.data-00000");
  unit_files_free(&t);
  t = scan_without("exp/g-3", MATCH_GROUP, all);
  assert_int_equal(t.count, 0);
  assert_int_equal(t.left_out, 2);
  unit_files_free(&t);
}

static void what_an_exclude_of_all_leaves_out_does_not_count_for_the_one_alone(void **unused) {
  static const char *const all[] = {"*.a", NULL}, *const globs[] = {"sub/", "*.a", NULL};
  rules by = *rules_builtin();
  unit_files t;
  by.excludes = all;
  assert_int_equal(unit_files_scan(io_unflushed(), dir, "exp/ck-3", MATCH_DIR, &by, &t, NULL), 0);
  assert_int_equal(t.left_out, 1);
  assert_int_equal(t.left_here, 0);
  unit_files_free(&t);
  by.left = globs;
  assert_int_equal(unit_files_scan(io_unflushed(), dir, "exp/ck-3", MATCH_DIR, &by, &t, NULL), 0);
  assert_int_equal(t.left_out, 2);
  assert_int_equal(t.left_here, 1);
  unit_files_free(&t);
}

static int within(const char *path, match_kind kind, const unit_files *whole,
                  const char *const *globs, err *e) {
  rules by = *rules_builtin();
  by.left = globs;
  unit_files part = scan_without(path, kind, globs);
  int rc = unit_files_within(&part, whole, path, &by, e);
  unit_files_free(&part);
  return rc;
}

static void a_part_is_within_the_whole_until_one_of_its_own_files_changes(void **unused) {
  static const char *const globs[] = {"sub/", NULL};
  err e = {0};
  unit_files whole = must_scan("exp/ck-3", MATCH_DIR);
  write_file(in("exp/ck-3/sub/a"), "another");
  assert_int_equal(within("exp/ck-3", MATCH_DIR, &whole, globs, &e), 0);
  write_file(in("exp/ck-3/model.pt"), "other weights");
  assert_int_equal(within("exp/ck-3", MATCH_DIR, &whole, globs, &e), ERR_RETIRED);
  assert_non_null(strstr(e.text, "model.pt changed its size while the unit was listed"));
  unit_files_free(&whole);
}

static void a_part_is_within_the_whole_until_a_file_is_gone_that_it_was_to_have(void **unused) {
  static const char *const globs[] = {"sub/", "*.index", NULL};
  err e = {0};
  unit_files whole = must_scan("exp/ck-3", MATCH_DIR);
  unlink(in("exp/ck-3/sub/a"));
  assert_int_equal(within("exp/ck-3", MATCH_DIR, &whole, globs, &e), 0);
  unlink(in("exp/ck-3/sub.a"));
  assert_int_equal(within("exp/ck-3", MATCH_DIR, &whole, globs, &e), ERR_RETIRED);
  assert_non_null(strstr(e.text, "sub.a vanished while the unit was listed"));
  unit_files_free(&whole);
  whole = must_scan("exp/g-3", MATCH_GROUP);
  unlink(in("exp/g-3.index"));
  assert_int_equal(within("exp/g-3", MATCH_GROUP, &whole, globs, &e), 0);
  unit_files_free(&whole);
}

static void a_group_has_the_files_of_its_stem_and_no_others(void **unused) {
  unit_files t = must_scan("exp/g-3", MATCH_GROUP);
  assert_string_equal(names_of(&t), "g-3.data-00000 g-3.index");
  assert_string_equal(t.base, in("exp"));
  unit_files_free(&t);
}

static void a_single_file_is_itself(void **unused) {
  unit_files t = must_scan("exp/one.pt", MATCH_FILE);
  assert_string_equal(names_of(&t), "one.pt");
  assert_int_equal(t.bytes, 6);
  char path[4096];
  assert_int_equal(unit_files_path(&t, &t.files[0], path, NULL), 0);
  assert_string_equal(path, in("exp/one.pt"));
  unit_files_free(&t);
}

static void units_at_the_top_of_the_tree_are_found_too(void **unused) {
  write_file(in("top-1.bin"), "x");
  unit_files t = must_scan("top-1", MATCH_GROUP);
  assert_string_equal(names_of(&t), "top-1.bin");
  unit_files_free(&t);
  t = must_scan("top-1.bin", MATCH_FILE);
  assert_string_equal(t.base, dir);
  unit_files_free(&t);
}

static void the_time_of_a_unit_is_its_directorys_or_its_newest_files(void **unused) {
  struct timespec old[2] = {{.tv_sec = -1000}, {.tv_sec = -1000, .tv_nsec = 5}};
  struct timespec older[2] = {{.tv_sec = -5000}, {.tv_sec = -5000}};
  utimensat(AT_FDCWD, in("exp/g-3.index"), old, 0);
  utimensat(AT_FDCWD, in("exp/g-3.data-00000"), older, 0);
  unit_files t = must_scan("exp/g-3", MATCH_GROUP);
  assert_int_equal(t.mtime_ns, -1000 * second + 5);
  unit_files_free(&t);
  utimensat(AT_FDCWD, in("exp/ck-3"), old, 0);
  t = must_scan("exp/ck-3", MATCH_DIR);
  assert_int_equal(t.mtime_ns, -1000 * second + 5);
  unit_files_free(&t);
}

static void a_manifest_that_was_copied_along_is_no_data(void **unused) {
  write_file(in("exp/ck-3/" MANIFEST_NAME), "{}");
  write_file(in("exp/ck-3/sub/" MANIFEST_NAME), "{}");
  unit_files t = must_scan("exp/ck-3", MATCH_DIR);
  assert_string_equal(names_of(&t), "empty/ last@ model.pt sub/ sub.a sub/" MANIFEST_NAME " sub/a");
  unit_files_free(&t);
}

static void a_pipe_is_refused_and_named(void **unused) {
  unit_files t;
  err e = {0};
  assert_int_equal(mkfifo(in("exp/ck-3/pipe"), 0600), 0);
  assert_int_equal(scan("exp/ck-3", MATCH_DIR, &t, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "ck-3/pipe"));
  assert_null(t.files);
}

static void what_is_not_there_as_what_it_was_is_retired(void **unused) {
  static const struct {
    const char *path;
    match_kind kind;
  } rows[] = {{"exp/ck-4", MATCH_DIR},      {"no/ck-4", MATCH_DIR},       {"exp/one.pt", MATCH_DIR},
              {"exp/ck-3", MATCH_FILE},     {"exp/no.pt", MATCH_FILE},    {"no/no.pt", MATCH_FILE},
              {"exp/one.pt/x", MATCH_FILE}, {"exp/one.pt/x", MATCH_DIR},  {"exp/none", MATCH_GROUP},
              {"no/none", MATCH_GROUP},     {"exp/one.pt/x", MATCH_GROUP}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    unit_files t;
    err e = {0};
    int rc = scan(rows[i].path, rows[i].kind, &t, &e);
    if (rc != ERR_RETIRED || e.code != rc)
      fail_msg("%s as %d: %d %s", rows[i].path, rows[i].kind, rc, e.text);
  }
}

/* What is there without one name, or retired: nothing else may come of a vanished name. */
static void enoent_at_any_call_is_retired_or_leaves_that_name_out(void **unused) {
  static const struct {
    const char *path;
    match_kind kind;
    size_t count;
  } rows[] = {
      {"exp/ck-3", MATCH_DIR, 6}, {"exp/g-3", MATCH_GROUP, 2}, {"exp/one.pt", MATCH_FILE, 1}};
  for (size_t i = 0; i < 3; i++)
    for (long n = 1;; n++) {
      unit_files t;
      err e = {0};
      int fds = count_fds();
      io_fault_once(fault, CALL_ANY, n, ENOENT);
      int rc = unit_files_scan(io_fault_io(fault), dir, rows[i].path, rows[i].kind, rules_builtin(),
                               &t, &e);
      assert_int_equal(count_fds(), fds);
      if (io_fault_failed(fault, CALL_ANY) == 0) {
        assert_int_equal(rc, 0);
        assert_int_equal(t.count, rows[i].count);
        unit_files_free(&t);
        break;
      }
      if (rc != ERR_RETIRED && rc != 0) fail_msg("call %ld: %d %s", n, rc, e.text);
      if (rc == 0) assert_true(t.count <= rows[i].count);
      unit_files_free(&t);
    }
}

static void an_io_error_at_any_call_is_told_as_one(void **unused) {
  for (long n = 1;; n++) {
    unit_files t;
    err e = {0};
    io_fault_once(fault, CALL_ANY, n, EIO);
    int rc =
        unit_files_scan(io_fault_io(fault), dir, "exp/ck-3", MATCH_DIR, rules_builtin(), &t, &e);
    unit_files_free(&t);
    if (io_fault_failed(fault, CALL_ANY) == 0) break;
    /* a failing close of a directory that was only read loses nothing */
    if (rc != ERR_IO && !(rc == 0 && io_fault_failed(fault, CALL_CLOSE))) fail_msg("%d", rc);
  }
}

struct step {
  long at;
  void (*act)(void);
};

static void on_call(void *ctx, long call) {
  const struct step *s = ctx;
  if (call == s->at) s->act();
}

static void remove_all(void) {
  if (fs_remove_tree(io_unflushed(), in("exp/ck-3"), NULL) < 0) abort();
}

static void replace_by_file(void) {
  if (rename(in("exp/ck-3"), in("aside")) < 0) abort();
  write_file(in("exp/ck-3"), "a file now");
}

static void replace_by_link(void) {
  if (rename(in("exp/ck-3"), in("aside")) < 0 || symlink("../aside", in("exp/ck-3")) < 0) abort();
}

static void replace_link_by_file(void) {
  unlink(in("exp/ck-3/last"));
  write_file(in("exp/ck-3/last"), "a file now");
}

static void replace_sub_by_file(void) {
  if (rename(in("exp/ck-3/sub"), in("exp/aside")) < 0) abort();
  write_file(in("exp/ck-3/sub"), "a file now");
}

/* Something happens to the unit before each single call of a scan: the scan says retired, or the
 * scan after it shows a difference. Never an error, never a silent mixture. */
static void any_change_during_a_scan_shows(void **unused) {
  static void (*const acts[])(void) = {remove_all, replace_by_file, replace_by_link,
                                       replace_link_by_file, replace_sub_by_file};
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
    for (long n = 1;; n++) {
      unit_files t, after;
      err e = {0};
      struct step s = {n, acts[i]};
      const io *io = io_hook_set(on_call, &s);
      int rc = unit_files_scan(io, dir, "exp/ck-3", MATCH_DIR, rules_builtin(), &t, &e);
      if (io_hook_count() < n) {
        unit_files_free(&t);
        break;
      }
      if (rc == 0) {
        rc = scan("exp/ck-3", MATCH_DIR, &after, &e);
        bool early = rc == 0 && unit_files_same(&t, &after, NULL) == 0; /* seen only as it is now */
        if (early) assert_true(acts[i] == replace_link_by_file || acts[i] == replace_sub_by_file);
        if (rc == 0) unit_files_free(&after);
        if (rc == 0) rc = ERR_RETIRED;
        unit_files_free(&t);
      }
      if (rc != ERR_RETIRED) fail_msg("act %zu at call %ld: %d %s", i, n, rc, e.text);
      fault_dir_leave(NULL);
      enter(NULL);
    }
}

/* ---- unit_files_same ---- */

static void write_same_size_and_restore_mtime(void) {
  struct stat st;
  stat(in("exp/ck-3/model.pt"), &st);
  write_file(in("exp/ck-3/model.pt"), "WEIGHTS");
  struct timespec times[2] = {st.st_atim, st.st_mtim};
  utimensat(AT_FDCWD, in("exp/ck-3/model.pt"), times, 0);
}
static void grow(void) {
  write_file(in("exp/ck-3/model.pt"), "weights and more");
}
static void touch(void) {
  utimensat(AT_FDCWD, in("exp/ck-3/model.pt"), NULL, 0);
}
static void rename_over(void) {
  struct stat st;
  stat(in("exp/ck-3/model.pt"), &st);
  write_file(in("exp/other"), "weightz");
  struct timespec times[2] = {st.st_atim, st.st_mtim};
  utimensat(AT_FDCWD, in("exp/other"), times, 0);
  rename(in("exp/other"), in("exp/ck-3/model.pt"));
}
static void add_a_file(void) {
  write_file(in("exp/ck-3/zzz"), "");
}
static void add_an_empty_directory(void) {
  make_dir(in("exp/ck-3/aaa"));
}
static void remove_a_file(void) {
  unlink(in("exp/ck-3/sub/a"));
}
static void replace_a_directory(void) {
  make_dir(in("exp/ck-3/empty2"));
  rmdir(in("exp/ck-3/empty"));
  rename(in("exp/ck-3/empty2"), in("exp/ck-3/empty"));
}
static void repoint_the_link(void) {
  unlink(in("exp/ck-3/last"));
  if (symlink("model.px", in("exp/ck-3/last")) < 0) abort();
}
static void file_to_link(void) {
  unlink(in("exp/ck-3/sub.a"));
  if (symlink("sub/a", in("exp/ck-3/sub.a")) < 0) abort();
}

static void each_kind_of_change_makes_two_trees_differ(void **unused) {
  static const struct {
    void (*change)(void);
    const char *says;
  } rows[] = {
      {write_same_size_and_restore_mtime, "model.pt was written"},
      {grow, "model.pt changed its size"},
      {touch, "model.pt was written"},
      {rename_over, "model.pt was replaced"},
      {add_a_file, "zzz appeared"},
      {add_an_empty_directory, "aaa appeared"},
      {remove_a_file, "sub/a vanished"},
      {replace_a_directory, "empty was replaced"},
      {repoint_the_link, "last was "}, /* replaced, or written: an inode may be used again */
      {file_to_link, "sub.a was replaced"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    err e = {0};
    unit_files before = must_scan("exp/ck-3", MATCH_DIR);
    usleep(12000); /* past the clock's grain: younger changes are what unit_files_racy_ns is for */
    rows[i].change();
    unit_files after = must_scan("exp/ck-3", MATCH_DIR);
    assert_int_equal(unit_files_same(&before, &after, &e), ERR_RETIRED);
    if (!strstr(e.text, rows[i].says)) fail_msg("%s: %s", rows[i].says, e.text);
    unit_files_free(&before);
    unit_files_free(&after);
    fault_dir_leave(NULL);
    enter(NULL);
  }
}

static void an_untouched_unit_is_the_same_though_it_was_read(void **unused) {
  err e = {0};
  unit_files before = must_scan("exp/ck-3", MATCH_DIR);
  free(read_file(in("exp/ck-3/model.pt"), NULL));
  write_file(in("exp/ck-3/.tmpZZZZZZ"), "comes and goes, and moves the directory's time");
  unlink(in("exp/ck-3/.tmpZZZZZZ"));
  unit_files after = must_scan("exp/ck-3", MATCH_DIR);
  assert_int_equal(unit_files_same(&before, &after, &e), 0);
  assert_int_equal(unit_files_same(&before, &before, NULL), 0);
  unit_files_free(&before);
  unit_files_free(&after);
}

static void a_unit_that_now_holds_a_pipe_or_is_gone_is_not_unchanged(void **unused) {
  const io *io = io_unflushed();
  err e = {0};
  unit_files before = must_scan("exp/ck-3", MATCH_DIR);
  assert_int_equal(unit_files_unchanged(io, dir, "exp/ck-3", rules_builtin(), &before, &e), 0);
  assert_int_equal(mkfifo(in("exp/ck-3/pipe"), 0600), 0);
  assert_int_equal(unit_files_unchanged(io, dir, "exp/ck-3", rules_builtin(), &before, &e),
                   ERR_RETIRED);
  assert_int_equal(e.code, ERR_RETIRED);
  remove_all();
  assert_int_equal(unit_files_unchanged(io, dir, "exp/ck-3", rules_builtin(), &before, &e),
                   ERR_RETIRED);
  unit_files_free(&before);
}

/* ---- times ---- */

static unit_files with_times(unit_file *files, size_t count) {
  unit_files t = {.files = files, .count = count};
  for (size_t i = 0; i < count; i++) {
    if (files[i].mtime_ns > t.newest_ns) t.newest_ns = files[i].mtime_ns;
    if (files[i].ctime_ns > t.newest_ns) t.newest_ns = files[i].ctime_ns;
  }
  return t;
}

static void the_wait_is_positive_exactly_for_fresh_files_and_at_most_two_seconds(void **unused) {
  const int64_t now = 1700000000 * second + 123456789;
  static const struct {
    int64_t age, low, high;
  } rows[] = {{0, 1, 50 * MS},
              {5 * MS, 1, 50 * MS},
              {-5 * MS, 6 * MS, 60 * MS},
              {50 * MS, 0, 0},
              {3600LL * 1000000000, 0, 0},
              {-1000000000, 1000000000, 1100000000},
              {-3600LL * 1000000000, 2000000000, 2000000000}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    unit_file f = {.mtime_ns = 17, .ctime_ns = now - rows[i].age};
    unit_files t = with_times(&f, 1);
    int64_t wait = unit_files_racy_ns(&t, now);
    if (wait < rows[i].low || wait > rows[i].high)
      fail_msg("age %lld: %lld", (long long)rows[i].age, (long long)wait);
    assert_true(unit_files_racy_ns(&t, now + wait) == 0 || wait == 2 * second);
  }
  unit_file f = {.ctime_ns = INT64_MAX};
  unit_files t = with_times(&f, 1);
  assert_int_equal(unit_files_racy_ns(&t, now), 2 * second);
  assert_int_equal(unit_files_racy_ns(&t, 0), 2 * second);
  t = with_times(NULL, 0);
  assert_int_equal(unit_files_racy_ns(&t, now), 0);
}

static void whole_seconds_everywhere_mean_a_clock_of_seconds(void **unused) {
  const int64_t now = 1700000000 * second;
  unit_file f[2] = {{.mtime_ns = now - second, .ctime_ns = now - second},
                    {.mtime_ns = now - 9 * second, .ctime_ns = now - 9 * second}};
  unit_files t = with_times(f, 2);
  assert_int_equal(unit_files_racy_ns(&t, now), second);
  assert_int_equal(unit_files_racy_ns(&t, now + second), 0);
  f[1].ctime_ns += 1; /* one time is finer: so are all */
  t = with_times(f, 2);
  assert_int_equal(unit_files_racy_ns(&t, now), 0);
}

static void a_time_in_the_future_is_noticed(void **unused) {
  unit_file f = {.mtime_ns = 1000, .ctime_ns = 5};
  unit_files t = with_times(&f, 1);
  assert_true(unit_files_from_future(&t, 999));
  assert_false(unit_files_from_future(&t, 1000));
}

static void a_file_that_was_just_written_is_racy_on_a_real_file_system(void **unused) {
  write_file(in("exp/one.pt"), "fresh");
  unit_files t = must_scan("exp/one.pt", MATCH_FILE);
  int64_t now = io_system()->now(io_system(), IO_WALL);
  assert_false(unit_files_from_future(&t, now));
  assert_true(unit_files_racy_ns(&t, t.newest_ns + 1) > 0);
  assert_int_equal(unit_files_racy_ns(&t, t.newest_ns + 3 * second), 0);
  unit_files_free(&t);
}

static void years_that_do_not_fit_are_the_largest_number(void **unused) {
  struct timespec far[2] = {{.tv_sec = 10000000000}, {.tv_sec = 10000000000}}; /* the year 2286 */
  struct stat st;
  utimensat(AT_FDCWD, in("exp/one.pt"), far, 0);
  if (stat(in("exp/one.pt"), &st) < 0 || st.st_mtim.tv_sec != far[1].tv_sec) skip();
  unit_files t = must_scan("exp/one.pt", MATCH_FILE);
  assert_true(t.newest_ns == INT64_MAX);
  assert_true(unit_files_from_future(&t, 1700000000 * second));
  assert_int_equal(unit_files_racy_ns(&t, 1700000000 * second), 2 * second);
  unit_files_free(&t);
}

/* ---- manifests ---- */

static void fill_digests(unit_files *t) {
  for (size_t i = 0; i < t->count; i++) {
    unit_file *f = &t->files[i];
    if (f->type != MANIFEST_FILE) continue;
    size_t count = hash_block_count(f->size);
    f->blocks = calloc(count + 1, sizeof *f->blocks);
    for (size_t k = 0; k < count; k++) hash_bytes(HASH_SHA256, f->name, k, &f->blocks[k], NULL);
    hash_of_blocks(HASH_SHA256, f->blocks, count, &f->file, NULL);
  }
}

static void the_manifest_of_a_tree_matches_it_until_something_changes(void **unused) {
  static void (*const changes[])(void) = {grow,          touch,        add_a_file,
                                          remove_a_file, file_to_link, repoint_the_link};
  err e = {0};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    manifest m;
    unit_files t = must_scan("exp/ck-3", MATCH_DIR);
    fill_digests(&t);
    if (unit_files_manifest(&t, "ck-3", 3, HASH_SHA256, &m, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(m.step, 3);
    assert_int_equal(m.mtime_ns, t.mtime_ns);
    assert_int_equal(m.count, t.count);
    assert_true(unit_files_matches(&t, &m));
    unit_files_free(&t);
    usleep(12000);
    changes[i]();
    t = must_scan("exp/ck-3", MATCH_DIR);
    assert_false(unit_files_matches(&t, &m));
    manifest_free(&m);
    unit_files_free(&t);
    fault_dir_leave(NULL);
    enter(NULL);
  }
}

static void a_tree_with_a_name_that_no_manifest_may_have_gives_none(void **unused) {
  manifest m;
  unit_files t = must_scan("exp/ck-3", MATCH_DIR);
  fill_digests(&t);
  assert_true(unit_files_manifest(&t, "a/b", 3, HASH_SHA256, &m, NULL) < 0);
  assert_null(m.entries);
  unit_files_free(&t);
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, fault_dir_leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(a_directory_has_all_below_it_but_excluded_names),
      T(what_one_checkpoint_is_saved_without_is_left_out_counted_and_named),
      T(what_an_exclude_of_all_leaves_out_does_not_count_for_the_one_alone),
      T(a_part_is_within_the_whole_until_one_of_its_own_files_changes),
      T(a_part_is_within_the_whole_until_a_file_is_gone_that_it_was_to_have),
      T(a_group_has_the_files_of_its_stem_and_no_others),
      T(a_single_file_is_itself),
      T(units_at_the_top_of_the_tree_are_found_too),
      T(the_time_of_a_unit_is_its_directorys_or_its_newest_files),
      T(a_manifest_that_was_copied_along_is_no_data),
      T(a_pipe_is_refused_and_named),
      T(what_is_not_there_as_what_it_was_is_retired),
      T(enoent_at_any_call_is_retired_or_leaves_that_name_out),
      T(an_io_error_at_any_call_is_told_as_one),
      T(any_change_during_a_scan_shows),
      T(each_kind_of_change_makes_two_trees_differ),
      T(an_untouched_unit_is_the_same_though_it_was_read),
      T(a_unit_that_now_holds_a_pipe_or_is_gone_is_not_unchanged),
      T(the_wait_is_positive_exactly_for_fresh_files_and_at_most_two_seconds),
      T(whole_seconds_everywhere_mean_a_clock_of_seconds),
      T(a_time_in_the_future_is_noticed),
      T(a_file_that_was_just_written_is_racy_on_a_real_file_system),
      T(years_that_do_not_fit_are_the_largest_number),
      T(the_manifest_of_a_tree_matches_it_until_something_changes),
      T(a_tree_with_a_name_that_no_manifest_may_have_gives_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
