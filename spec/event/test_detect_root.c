/* detect when the watched directory itself goes and comes, and what it passes over below it. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "detect_live.h"
#include "tmpdir.h"

#define MS INT64_C(1000000)

static rules *quick;
static int warnings;

static int setup(void **state) {
  int rc = rules_custom(NULL, NULL, NULL, 300 * MS, &quick, NULL);
  if (rc == 0) quick->marked_ns = 200 * MS;
  return rc;
}

static int teardown(void **state) {
  rules_free(quick);
  return 0;
}

static void count_warning(void *ctx, log_level level, const char *text) {
  if (level >= LOG_WARN) warnings++;
}

static const log_sink counting = {.fn = count_warning, .min = LOG_WARN};

static detect *open_at(const char *dir, detect_mode mode) {
  detect *d;
  err e = {0};
  detect_options o = {.io = io_system(),
                      .log = &counting,
                      .root = dir,
                      .rules = quick,
                      .mode = mode,
                      .poll_ns = 50 * MS};
  warnings = 0;
  if (detect_open(&o, &d, &e) < 0) fail_msg("%s", e.text);
  return d;
}

/* A checkpoint in `root`, and what is told of it. */
static void save(const char *root, const char *name) {
  char file[600];
  make_dir(tmpdir_path(root, name));
  snprintf(file, sizeof file, "%s/x", name);
  write_file(tmpdir_path(root, file), name);
}

static void a_root_comes_again(detect_mode mode, bool moved, int64_t pause_ns) {
  char *dir = tmpdir_new(), root[600];
  snprintf(root, sizeof root, "%s/d", dir);
  make_dir(root);
  save(root, "checkpoint-1");
  detect *d = open_at(root, mode);
  save(root, "checkpoint-2");
  live_wait_for(d, "checkpoint-2", DETECT_COMPLETE);
  warnings = 0;
  if (moved)
    assert_int_equal(rename(root, tmpdir_path(dir, "d.old")), 0);
  else
    tmpdir_remove(strdup(root));
  if (pause_ns) {
    live_run_for(d, pause_ns);
    assert_int_equal(live_state(d, "checkpoint-2"), DETECT_GONE);
    assert_int_equal(detect_fd(d), -1);
    assert_true(detect_due(d) <= live_now() + 1000 * MS);
    /* What is done in the old one concerns nobody. */
    if (moved) save(tmpdir_path(dir, "d.old"), "checkpoint-9");
    assert_int_equal(warnings, 1);
  }
  make_dir(root);
  save(root, "checkpoint-3");
  live_wait_for(d, "checkpoint-3", DETECT_COMPLETE);
  save(root, "checkpoint-2");
  live_wait_for(d, "checkpoint-2", DETECT_COMPLETE);
  assert_int_equal(live_state(d, "checkpoint-1"), DETECT_GONE);
  assert_int_equal(live_state(d, "checkpoint-9"), DETECT_GONE);
  if (mode == DETECT_AUTO && !detect_polling(d)) {
    assert_true(detect_fd(d) >= 0);
    live_run_for(d, 1100 * MS); /* the last look at a root that was empty */
    assert_int_equal(detect_due(d), INT64_MAX);
  }
  detect_close(d);
  tmpdir_remove(dir);
}

static void a_root_that_is_made_anew_is_watched_again(void **state) {
  a_root_comes_again(DETECT_AUTO, false, 0);
}

static void a_root_that_is_away_for_a_while_is_watched_again(void **state) {
  a_root_comes_again(DETECT_AUTO, false, 1200 * MS);
}

static void a_root_that_is_moved_away_is_not_followed(void **state) {
  a_root_comes_again(DETECT_AUTO, true, 0);
  a_root_comes_again(DETECT_AUTO, true, 300 * MS);
}

static void a_polled_root_comes_again_too(void **state) {
  a_root_comes_again(DETECT_POLL, false, 0);
  a_root_comes_again(DETECT_POLL, true, 300 * MS);
}

static void the_descriptor_of_the_new_watch_has_another_number(void **state) {
  char *dir = *state, root[600];
  err e = {0};
  snprintf(root, sizeof root, "%s/d", dir);
  make_dir(root);
  detect *d = open_at(root, DETECT_AUTO);
  int fd = detect_fd(d);
  if (fd < 0) skip();
  int before = count_fds();
  for (int i = 0; i < 5; i++) {
    rmdir(root);
    make_dir(root);
    assert_int_equal(detect_run(d, &e), 0);
    assert_int_not_equal(detect_fd(d), -1);
    assert_int_not_equal(detect_fd(d), fd);
    fd = detect_fd(d);
  }
  assert_int_equal(count_fds(), before);
  detect_close(d);
}

static void a_root_that_goes_while_somebody_has_it_open_is_missed(void **state) {
  char *dir = *state, root[600];
  snprintf(root, sizeof root, "%s/d", dir);
  make_dir(root);
  save(root, "checkpoint-1");
  detect *d = open_at(root, DETECT_AUTO);
  int held = open(root, O_RDONLY | O_DIRECTORY);
  assert_true(held >= 0);
  tmpdir_remove(strdup(root));
  make_dir(root);
  save(root, "checkpoint-2");
  live_wait_for(d, "checkpoint-2", DETECT_COMPLETE);
  close(held);
  detect_close(d);
}

static void a_file_or_a_link_in_the_place_of_the_root_is_none(void **state) {
  char *dir = *state, root[600];
  snprintf(root, sizeof root, "%s/d", dir);
  make_dir(root);
  detect *d = open_at(root, DETECT_AUTO);
  rmdir(root);
  write_file(root, "no directory");
  live_run_for(d, 50 * MS);
  assert_int_equal(detect_fd(d), -1);
  unlink(root);
  make_dir(root);
  save(root, "checkpoint-1");
  err e = {0};
  assert_int_equal(detect_list(d, &e), 0); /* asked, it looks at once */
  assert_int_equal(live_state(d, "checkpoint-1"), DETECT_OPEN);
  detect_close(d);
}

static void the_clean_end_of_a_job_that_made_its_root_anew_completes_at_once(void **state) {
  char *dir = *state, root[600];
  snprintf(root, sizeof root, "%s/d", dir);
  make_dir(root);
  detect *d = open_at(root, DETECT_AUTO);
  rmdir(root);
  live_run_for(d, 20 * MS);
  make_dir(root);
  save(root, "checkpoint-1");
  detect_writer_gone(d, true);
  live_run_for(d, 100 * MS);
  assert_int_equal(live_state(d, "checkpoint-1"), DETECT_COMPLETE);
  detect_close(d);
}

/* --- out of reach --- */

/* Makes directories one below the other, by steps: their path has no name in one piece. */
static void dig(const char *from, size_t len, int levels) {
  char name[256];
  int home = open(".", O_RDONLY | O_DIRECTORY);
  memset(name, 'n', len);
  name[len] = '\0';
  assert_int_equal(chdir(from), 0);
  for (int i = 0; i < levels; i++) {
    assert_int_equal(mkdir(name, 0755), 0);
    assert_int_equal(chdir(name), 0);
  }
  write_file("deep.pt", "deep");
  assert_int_equal(fchdir(home), 0);
  close(home);
}

/* tmpdir_remove() needs a path for each. */
static void fill_in(const char *from, size_t len, int levels) {
  char name[256];
  int home = open(".", O_RDONLY | O_DIRECTORY);
  memset(name, 'n', len);
  name[len] = '\0';
  assert_int_equal(chdir(from), 0);
  for (int i = 0; i < levels; i++) assert_int_equal(chdir(name), 0);
  unlink("deep.pt");
  for (int i = 0; i < levels; i++) {
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(rmdir(name), 0);
  }
  assert_int_equal(fchdir(home), 0);
  close(home);
}

static void others_go_on_beside(detect_mode mode, bool before, size_t len, int levels) {
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "logs"));
  if (before) dig(tmpdir_path(dir, "logs"), len, levels);
  detect *d = open_at(dir, mode);
  if (!before) dig(tmpdir_path(dir, "logs"), len, levels);
  save(dir, "checkpoint-1");
  live_wait_for(d, "checkpoint-1", DETECT_COMPLETE);
  assert_int_equal(warnings, 1);
  err e = {0};
  assert_int_equal(detect_list(d, &e), 0);
  assert_int_equal(rename(tmpdir_path(dir, "logs"), tmpdir_path(dir, "old")), 0);
  save(dir, "checkpoint-2");
  live_wait_for(d, "checkpoint-2", DETECT_COMPLETE);
  assert_int_equal(warnings, 1);
  detect_close(d);
  fill_in(tmpdir_path(dir, "old"), len, levels);
  tmpdir_remove(dir);
}

static void a_path_that_is_too_long_stops_nobody_else(void **state) {
  others_go_on_beside(DETECT_AUTO, true, 200, 25);
  others_go_on_beside(DETECT_AUTO, false, 200, 25);
  others_go_on_beside(DETECT_POLL, false, 200, 25);
}

static void a_path_that_is_too_deep_stops_nobody_else(void **state) {
  others_go_on_beside(DETECT_AUTO, true, 1, 1500);
  others_go_on_beside(DETECT_AUTO, false, 1, 300);
  others_go_on_beside(DETECT_POLL, true, 1, 1500);
}

static void a_unit_with_a_path_that_is_too_long_stops_no_other(void **state) {
  char *dir = *state;
  detect *d = open_at(dir, DETECT_AUTO);
  save(dir, "checkpoint-1");
  dig(tmpdir_path(dir, "checkpoint-1"), 200, 25);
  save(dir, "checkpoint-2");
  live_wait_for(d, "checkpoint-2", DETECT_COMPLETE);
  live_run_for(d, 500 * MS);
  detect_close(d);
  fill_in(tmpdir_path(dir, "checkpoint-1"), 200, 25);
}

/* A directory is moved to where what is in it has a path that is too long. */
static void a_unit_that_is_moved_out_of_reach_goes(void **state) {
  char *dir = *state, deep[4096], *end;
  make_dir(tmpdir_path(dir, "a"));
  make_dir(tmpdir_path(dir, "a/b"));
  snprintf(deep, sizeof deep, "%s/", dir);
  detect *d = open_at(dir, DETECT_AUTO);
  save(dir, "a/b/checkpoint-1");
  write_file(tmpdir_path(dir, "a/b/ckpt-3.index"), "i");
  write_file(tmpdir_path(dir, "a/b/ckpt-3.data-00000-of-00001"), "d");
  live_wait_for(d, "a/b/checkpoint-1", DETECT_COMPLETE);
  for (end = deep + strlen(deep); end - deep < 4085 - 200;) {
    memset(end, 'n', 199);
    end[199] = '\0';
    assert_int_equal(mkdir(deep, 0755), 0);
    end += 199;
    *end++ = '/';
  }
  size_t rest = 4090 - (size_t)(end - deep);
  memset(end, 'm', rest);
  end[rest] = '\0';
  live_run_for(d, 50 * MS); /* the watches stand, so the move has both its halves */
  assert_int_equal(rename(tmpdir_path(dir, "a"), deep), 0);
  live_run_for(d, 100 * MS);
  assert_int_equal(live_state(d, "a/b/checkpoint-1"), DETECT_GONE);
  save(dir, "checkpoint-2");
  live_wait_for(d, "checkpoint-2", DETECT_COMPLETE);
  assert_int_equal(rename(deep, tmpdir_path(dir, "a")), 0);
  live_wait_for(d, "a/b/checkpoint-1", DETECT_COMPLETE);
  detect_close(d);
}

/* --- another run's state directory --- */

static void make_state(const char *dir, const char *name) {
  char path[600];
  make_dir(tmpdir_path(dir, name));
  snprintf(path, sizeof path, "%s/lock", name);
  write_file(tmpdir_path(dir, path), "");
  snprintf(path, sizeof path, "%s/quarantine", name);
  make_dir(tmpdir_path(dir, path));
  snprintf(path, sizeof path, "%s/quarantine/last.pt", name);
  write_file(tmpdir_path(dir, path), "torn");
  snprintf(path, sizeof path, "%s/journal.jsonl", name);
  write_file(tmpdir_path(dir, path), "{}\n");
}

static void a_state_directory_is_no_checkpoint(detect_mode mode) {
  char *dir = tmpdir_new();
  make_state(dir, "T1.ckpt");
  detect *d = open_at(dir, mode);
  assert_int_equal(live_state(d, "T1.ckpt"), DETECT_GONE);
  make_state(dir, "T2.ckpt");
  make_dir(tmpdir_path(dir, "T3.ckpt")); /* one that is none */
  write_file(tmpdir_path(dir, "T3.ckpt/weights"), "w");
  live_wait_for(d, "T3.ckpt", DETECT_COMPLETE);
  write_file(tmpdir_path(dir, "T1.ckpt/journal.jsonl"), "{}\n{}\n");
  write_file(tmpdir_path(dir, "T2.ckpt/quarantine/more.pt"), "more");
  assert_int_equal(rename(tmpdir_path(dir, "T1.ckpt"), tmpdir_path(dir, "T4.ckpt")), 0);
  live_run_for(d, 600 * MS);
  const char *none[] = {"T1.ckpt",
                        "T2.ckpt",
                        "T4.ckpt",
                        "T2.ckpt/quarantine/last.pt",
                        "T2.ckpt/quarantine/more.pt",
                        "T4.ckpt/quarantine/last.pt"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_int_equal(live_state(d, none[i]), DETECT_GONE);
  assert_int_equal(detect_unmatched(d, NULL), 0);
  detect_close(d);
  tmpdir_remove(dir);
}

static void another_runs_state_directory_is_no_checkpoint(void **state) {
  a_state_directory_is_no_checkpoint(DETECT_AUTO);
  a_state_directory_is_no_checkpoint(DETECT_POLL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_root_that_is_made_anew_is_watched_again),
      cmocka_unit_test(a_root_that_is_away_for_a_while_is_watched_again),
      cmocka_unit_test(a_root_that_is_moved_away_is_not_followed),
      cmocka_unit_test(a_polled_root_comes_again_too),
      IN_A_DIRECTORY(the_descriptor_of_the_new_watch_has_another_number),
      IN_A_DIRECTORY(a_root_that_goes_while_somebody_has_it_open_is_missed),
      IN_A_DIRECTORY(a_file_or_a_link_in_the_place_of_the_root_is_none),
      IN_A_DIRECTORY(the_clean_end_of_a_job_that_made_its_root_anew_completes_at_once),
      cmocka_unit_test(a_path_that_is_too_long_stops_nobody_else),
      cmocka_unit_test(a_path_that_is_too_deep_stops_nobody_else),
      IN_A_DIRECTORY(a_unit_with_a_path_that_is_too_long_stops_no_other),
      IN_A_DIRECTORY(a_unit_that_is_moved_out_of_reach_goes),
      cmocka_unit_test(another_runs_state_directory_is_no_checkpoint),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
