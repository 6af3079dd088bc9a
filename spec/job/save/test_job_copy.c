/* A checkpoint of which files are gone, that was copied back into the watched directory. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commit/manifest_read.h"
#include "prims/fs.h"
#include "thinned.h"
#include "tmpdir.h"
#include "world.h"

/* A store keeps links and empty directories in the manifest alone: a copy of a directory lacks them. */
static void make_plain(const world *w, const char *name, unsigned seed) {
  char at[4096];
  snprintf(at, sizeof at, "%s/%s", w->root, name);
  make_dir(at);
  write_pattern(tmpdir_path(at, "model.bin"), 70000, seed);
  write_pattern(tmpdir_path(at, "optimizer.bin"), 9000, seed + 1);
  write_pattern(tmpdir_path(at, "config"), 90, seed + 2);
}

static runlog *saved(world *w) {
  runlog *log = world_log(w, "", "one");
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    make_plain(w, name, (unsigned)i);
    save_unit(w, log, name, MATCH_DIR, i);
  }
  return log;
}

static void copy_back(const world *w, const char *dir) {
  char from[4096], to[4096];
  err e = {0};
  remove_unit(w, dir, MATCH_DIR);
  snprintf(from, sizeof from, "%s/root/%s", w->dir, dir);
  snprintf(to, sizeof to, "%s/%s", w->root, dir);
  if (fs_copy_tree(io_system(), from, to, false, NULL, &e) < 0) fail_msg("%s", e.text);
}

static void must_be_known(const world *w, runlog *log, const char *path) {
  job *j = job_for(w, log, path, MATCH_DIR, 0, 0);
  job_run(j);
  assert_int_equal(j->status, ERR_RETIRED);
  assert_non_null(strstr(j->error.text, "is a copy of what is saved here already"));
  job_free(j);
}

static void it_is_the_commit_and_so_is_a_copy_from_before(void **state) {
  world *w = *state;
  runlog *log = saved(w);
  const uint64_t n = runlog_view(log)->commits[0].n;
  copy_back(w, "checkpoint-0");
  thin_whole(w->env.store, log, n, "optim*");
  must_be_known(w, log, "checkpoint-0");
  copy_back(w, "checkpoint-0");
  assert_false(path_exists(tmpdir_path(w->root, "checkpoint-0/optimizer.bin")));
  assert_true(path_exists(tmpdir_path(w->root, "checkpoint-0/" MANIFEST_THIN_NAME)));
  must_be_known(w, log, "checkpoint-0");
  assert_int_equal(runlog_view(log)->commit_count, 3);
}

static void with_another_file_less_it_is_another_one(void **state) {
  world *w = *state;
  runlog *log = saved(w);
  thin_whole(w->env.store, log, runlog_view(log)->commits[2].n, "optim*");
  copy_back(w, "checkpoint-2");
  assert_int_equal(unlink(tmpdir_path(w->root, "checkpoint-2/config")), 0);
  save_unit(w, log, "checkpoint-2", MATCH_DIR, 2);
  assert_int_equal(runlog_view(log)->commit_count, 4);
}

/* The note is none of its files: another target gets what is there. */
static void elsewhere_it_is_saved_without_the_note(void **state) {
  world *w = *state;
  runlog *log = saved(w), *other = world_log(w, "other", "two");
  manifest m;
  thin_whole(w->env.store, log, runlog_view(log)->commits[0].n, "optim*");
  copy_back(w, "checkpoint-0");
  char in[4096], to[4096];
  snprintf(in, sizeof in, "%s/checkpoint-0", w->root);
  snprintf(to, sizeof to, "%s/other/checkpoint-0", w->root);
  err e = {0};
  if (fs_mkdirs(io_system(), tmpdir_path(w->root, "other"), 0777, &e) < 0 || rename(in, to) < 0)
    fail_msg("%s", e.text);
  const uint64_t n = save_unit(w, other, "other/checkpoint-0", MATCH_DIR, 0);
  assert_int_equal(manifest_read(w->env.store, "other/checkpoint-0", &m, NULL), 0);
  assert_null(manifest_find(&m, MANIFEST_THIN_NAME));
  assert_null(manifest_find(&m, "optimizer.bin"));
  assert_non_null(manifest_find(&m, "model.bin"));
  const runlog_commit *c = runlog_find_commit(runlog_view(other), n);
  const char *why = strstr(c->reason ? c->reason : "", "a copy of what attempt");
  assert_non_null(why);
  assert_non_null(strstr(why, ", without optimizer.bin"));
  manifest_free(&m);
}

static void of_several_that_are_not_there_one_is_named(void **state) {
  world *w = *state;
  runlog *log = saved(w), *other = world_log(w, "other", "two");
  const char *name = "a-name-that-is-too-long-for-the-line-of-a-commit-with-all-else.bin";
  char unit[200];
  snprintf(unit, sizeof unit, "checkpoint-9/%s", name);
  make_plain(w, "checkpoint-9", 9);
  write_bytes(tmpdir_path(w->root, unit), "x", 1);
  thin_whole(w->env.store, log, save_unit(w, log, "checkpoint-9", MATCH_DIR, 9), "*.bin");
  copy_back(w, "checkpoint-9");
  char to[4096];
  snprintf(to, sizeof to, "%s/other/checkpoint-9", w->root);
  assert_int_equal(fs_mkdirs(io_system(), tmpdir_path(w->root, "other"), 0777, NULL), 0);
  assert_int_equal(rename(tmpdir_path(w->root, "checkpoint-9"), to), 0);
  const uint64_t n = save_unit(w, other, "other/checkpoint-9", MATCH_DIR, 9);
  const runlog_commit *c = runlog_find_commit(runlog_view(other), n);
  assert_non_null(c->reason);
  assert_non_null(strstr(c->reason, ", without 3 files, a-name-that"));
  assert_null(strstr(c->reason, name));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_FILE_WORLD(it_is_the_commit_and_so_is_a_copy_from_before),
      IN_A_FILE_WORLD(with_another_file_less_it_is_another_one),
      IN_A_FILE_WORLD(elsewhere_it_is_saved_without_the_note),
      IN_A_FILE_WORLD(of_several_that_are_not_there_one_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
