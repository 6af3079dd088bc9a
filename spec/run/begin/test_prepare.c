#include "with_cmocka.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_host.h"
#include "tmpdir.h"

static void write_unit(run_host *h, const char *name, const char *text) {
  write_file(run_host_dir(h, name), text);
}

/* The end record of an empty archive: whole, as far as a zip tells. Its length. */
static size_t make_zip(char bytes[300], const char *comment) {
  size_t len = strlen(comment);
  memset(bytes, 0, 300);
  memcpy(bytes, "PK\5\6", 4);
  bytes[20] = (char)len;
  memcpy(bytes + 22, comment, len);
  return 22 + len;
}

static void write_zip(run_host *h, const char *name, const char *comment) {
  char bytes[300];
  size_t len = make_zip(bytes, comment);
  write_bytes(run_host_dir(h, name), bytes, len);
}

/* What a disk may do. */
static void write_zip_unnoticed(run_host *h, const char *name, const char *comment) {
  char bytes[300];
  size_t len = make_zip(bytes, comment);
  write_unnoticed(run_host_dir(h, name), bytes, len);
}

static void zip_is(const char *path, const char *comment) {
  size_t len;
  char *bytes = read_file(path, &len);
  assert_non_null(bytes);
  assert_int_equal(len, 22 + strlen(comment));
  assert_memory_equal(bytes + 22, comment, strlen(comment));
  free(bytes);
}

static void tear_zip(run_host *h, const char *name) {
  write_bytes(run_host_dir(h, name), "PK\3\4 the first part", 19);
}

/* A Trainer's checkpoint, as far as its marker tells; `whole` or killed while the optimizer was
 * written. */
static void write_hf(run_host *h, const char *name, bool whole) {
  char file[300];
  make_dir(run_host_dir(h, name));
  snprintf(file, sizeof file, "%s/config.json", name);
  write_unit(h, file, "{}");
  snprintf(file, sizeof file, "%s/training_args.bin", name);
  write_unit(h, file, "arguments");
  snprintf(file, sizeof file, "%s/optimizer.pt", name);
  if (!whole) {
    tear_zip(h, file);
    return;
  }
  write_zip(h, file, name);
  snprintf(file, sizeof file, "%s/trainer_state.json", name);
  write_unit(h, file, "{\"global_step\": 1}");
}

/* An earlier run that committed this file. */
static void commit(run_host *h, const char *name, const char *text) {
  run_host_begin(h);
  run_host_write(h, name, text, RUN_COMMITTED);
  run_host_close(h);
}

static void commit_zip(run_host *h, const char *name, const char *comment) {
  run_host_begin(h);
  write_zip(h, name, comment);
  run_host_until(h, RUN_COMMITTED, name);
  run_host_close(h);
}

static void lose(run_host *h, const char *name) {
  assert_int_equal(remove(run_host_dir(h, name)), 0);
}

static void lose_state(run_host *h) {
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%s'", run_host_state(h, ""));
  assert_int_equal(system(command), 0);
}

static run_prepared prepare_as(run_host *h, run_restore how, const char *named, int expect) {
  run_prepared p;
  err e = {0};
  if (!run_host_run(h)) assert_int_equal(run_host_open(h, &e), 0);
  int rc = run_prepare(run_host_run(h), how, named, &p, &e);
  if (rc != expect) fail_msg("prepare: %d, %s", rc, e.text);
  return p;
}

static run_prepared prepare(run_host *h) {
  return prepare_as(h, RUN_AUTO, NULL, 0);
}

static void must_resume(run_host *h, const run_prepared *p, const char *name) {
  assert_non_null(p->resume);
  assert_string_equal(p->resume, run_host_dir(h, name));
}

static void must_be_counts(const run_prepared *p, unsigned restored, unsigned quarantined,
                           unsigned found) {
  assert_int_equal(p->restored, restored);
  assert_int_equal(p->quarantined, quarantined);
  assert_int_equal(p->found, found);
}

/* A listing with contents, for comparing a tree before and after. Free it. */
static char *tree_of(const char *dir) {
  char command[1200];
  snprintf(command, sizeof command,
           "cd '%s' && find . -printf '%%p %%y %%m %%s %%T@ %%i\\n' | sort; "
           "find . -type f -print0 | sort -z | xargs -0r md5sum",
           dir);
  FILE *f = popen(command, "r");
  assert_non_null(f);
  char *text = calloc(1, 65536);
  assert_non_null(text);
  assert_in_range(fread(text, 1, 65535, f), 1, 65534);
  pclose(f);
  return text;
}

/* Frees what was before. */
static void must_still_be(const char *dir, char *before) {
  char *after = tree_of(dir);
  assert_string_equal(before, after);
  free(before);
  free(after);
}

/* ---- nothing there ---- */

static void nothing_anywhere_is_a_fresh_start(void **state) {
  run_host *h = *state;
  run_prepared p = prepare(h);
  assert_null(p.resume);
  assert_null(p.restored_from);
  must_be_counts(&p, 0, 0, 0);
  assert_int_equal(count_entries(run_host_dir(h, "")), 0);
}

static void required_with_nothing_is_an_error(void **state) {
  run_host *h = *state;
  prepare_as(h, RUN_REQUIRED, NULL, ERR_NOENT);
}

static void required_is_content_with_what_is_here(void **state) {
  run_host *h = *state;
  write_zip(h, "ckpt-1.pt", "one");
  run_prepared p = prepare_as(h, RUN_REQUIRED, NULL, 0);
  must_resume(h, &p, "ckpt-1.pt");
  must_be_counts(&p, 0, 0, 1);
}

static void a_run_is_prepared_once_and_before_its_start(void **state) {
  run_host *h = *state;
  prepare(h);
  prepare_as(h, RUN_NEVER, NULL, ERR_INVAL);
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  prepare_as(h, RUN_AUTO, NULL, ERR_INVAL);
  assert_int_equal(run_start(run_host_run(h), NULL), ERR_INVAL);
}

/* ---- the newest commit ---- */

static void a_lost_checkpoint_is_restored_and_named(void **state) {
  run_host *h = *state;
  char uri[700];
  commit(h, "ckpt-3.pt", "three");
  lose(h, "ckpt-3.pt");
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-3.pt");
  must_be_counts(&p, 1, 0, 1);
  assert_true(file_is(p.resume, "three"));
  snprintf(uri, sizeof uri, "file://%s", run_host_store(h, "ckpt-3.pt"));
  assert_string_equal(p.restored_from, uri);
  /* Once the run has started, what was restored is known: it is not saved again. */
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt");
  assert_int_equal(run_host_status(h).newest_status, 0);
}

static void what_is_here_and_committed_is_left_as_it_is(void **state) {
  run_host *h = *state;
  commit(h, "ckpt-3.pt", "three");
  char *before = tree_of(run_host_dir(h, ""));
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-3.pt");
  must_be_counts(&p, 0, 0, 1);
  assert_null(p.restored_from);
  must_still_be(run_host_dir(h, ""), before);
}

static void a_lost_state_directory_costs_no_second_upload(void **state) {
  run_host *h = *state;
  commit(h, "ckpt-3.pt", "three");
  lose_state(h);
  run_prepared p = prepare(h);
  must_be_counts(&p, 0, 0, 1);
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_for(h, 0.1);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt");
}

/* As when it was frozen after its start, and its lease was over. */
static void nothing_is_moved_or_restored_when_a_newer_term_is_there(void **state) {
  run_host *h = *state;
  err e = {0};
  run_prepared ignored;
  run_host_options(h)->places.run_id = "one";
  commit(h, "last.pt", "weights");
  lose(h, "last.pt");
  write_hf(h, "checkpoint-2", false);
  assert_int_equal(run_host_open(h, &e), 0);
  run_host *second = run_host_elsewhere(h);
  run_host_options(second)->places.run_id = "one";
  run_host_options(second)->take_over = true;
  assert_int_equal(run_host_open(second, &e), 0);
  assert_int_equal(run_prepare(run_host_run(h), RUN_AUTO, NULL, &ignored, &e), ERR_FENCED);
  assert_true(path_exists(run_host_dir(h, "checkpoint-2/optimizer.pt")));
  assert_false(path_exists(run_host_dir(h, "last.pt")));
  assert_false(path_exists(run_host_state(h, "quarantine")));
  run_host_free(second);
}

static void a_torn_save_of_the_trainer_is_quarantined_and_the_newest_commit_restored(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  write_hf(h, "checkpoint-2", true);
  run_host_until(h, RUN_COMMITTED, "checkpoint-2");
  run_host_close(h);
  char command[700];
  snprintf(command, sizeof command, "rm -r '%s'", run_host_dir(h, "checkpoint-2"));
  assert_int_equal(system(command), 0);
  write_hf(h, "checkpoint-4", false);
  run_prepared p = prepare(h);
  must_resume(h, &p, "checkpoint-2");
  must_be_counts(&p, 1, 1, 1);
  assert_true(path_exists(run_host_dir(h, "checkpoint-2/trainer_state.json")));
  assert_false(path_exists(run_host_dir(h, "checkpoint-2/.ckpt-manifest.json")));
  assert_false(path_exists(run_host_dir(h, "checkpoint-4")));
  assert_int_equal(count_entries(run_host_dir(h, "")), 1);
  /* Nothing is lost by it. */
  snprintf(command, sizeof command, "test -s '%s'/*/checkpoint-4/optimizer.pt",
           run_host_state(h, "quarantine"));
  assert_int_equal(system(command), 0);
}

static void a_torn_save_goes_even_if_nothing_was_ever_committed(void **state) {
  run_host *h = *state;
  write_hf(h, "checkpoint-4", false);
  run_prepared p = prepare(h);
  assert_null(p.resume);
  must_be_counts(&p, 0, 1, 0);
  assert_int_equal(count_entries(run_host_dir(h, "")), 0);
}

static void what_was_torn_in_place_is_replaced_by_its_commit(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "first");
  tear_zip(h, "last.pt");
  run_prepared p = prepare(h);
  must_resume(h, &p, "last.pt");
  must_be_counts(&p, 1, 1, 1);
  zip_is(p.resume, "first");
}

static void what_was_open_when_we_died_is_replaced_though_it_has_no_known_format(void **state) {
  run_host *h = *state;
  commit(h, "last.pt", "whole, and committed");
  run_host_begin(h);
  FILE *f = fopen(run_host_dir(h, "last.pt"), "w");
  fputs("half", f);
  fflush(f);
  run_host_for(h, 0.1);
  run_host_close(h);
  fclose(f);
  run_prepared p = prepare(h);
  must_be_counts(&p, 1, 1, 1);
  assert_true(file_is(run_host_dir(h, "last.pt"), "whole, and committed"));
}

static void zeros_after_a_power_loss_are_found_though_size_and_times_are_right(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "what a disk may lose");
  write_zip_unnoticed(h, "last.pt", "0000000000 disk 0000");
  run_host_reboot(h);
  run_prepared p = prepare(h);
  must_be_counts(&p, 1, 1, 1);
  zip_is(run_host_dir(h, "last.pt"), "what a disk may lose");
}

static void an_empty_directory_under_a_checkpoints_name_makes_room(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  make_dir(run_host_dir(h, "tmp.orbax-checkpoint-tmp"));
  write_unit(h, "tmp.orbax-checkpoint-tmp/_CHECKPOINT_METADATA", "{}");
  rename(run_host_dir(h, "tmp.orbax-checkpoint-tmp"), run_host_dir(h, "5"));
  run_host_until(h, RUN_COMMITTED, "5");
  run_host_close(h);
  lose(h, "5/_CHECKPOINT_METADATA");
  run_prepared p = prepare(h);
  must_resume(h, &p, "5");
  must_be_counts(&p, 1, 1, 1);
  assert_true(path_exists(run_host_dir(h, "5/_CHECKPOINT_METADATA")));
}

/* ---- what is newer here ---- */

static void an_unproven_newer_unit_is_left_alone(void **state) {
  run_host *h = *state;
  commit(h, "ckpt-3.pt", "three");
  write_unit(h, "ckpt-4.pt", "of no known format");
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-3.pt");
  must_be_counts(&p, 0, 0, 1);
  assert_true(file_is(run_host_dir(h, "ckpt-4.pt"), "of no known format"));
}

static void a_complete_newer_unit_is_resumed_from_and_committed_after_the_start(void **state) {
  run_host *h = *state;
  commit(h, "ckpt-3.pt", "three");
  lose(h, "ckpt-3.pt");
  write_zip(h, "ckpt-4.pt", "four");
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-4.pt");
  must_be_counts(&p, 0, 0, 1);
  assert_null(p.restored_from);
  assert_false(path_exists(run_host_dir(h, "ckpt-3.pt")));
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-4.pt");
  assert_string_equal(run_host_commits(h), "ckpt-3.pt ckpt-4.pt");
}

static void what_the_journal_saw_complete_is_resumed_from_without_a_format(void **state) {
  run_host *h = *state;
  commit(h, "ckpt-3.pt", "three");
  run_host_begin(h);
  run_host_hold_save(h, "ckpt-4.pt", "four");
  run_close(NULL);
  run_host_close(h);
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-4.pt");
  must_be_counts(&p, 0, 0, 2);
}

static void a_marker_of_just_now_proves_a_checkpoint_whole(void **state) {
  run_host *h = *state;
  write_hf(h, "checkpoint-2", true);
  run_prepared p = prepare(h);
  must_resume(h, &p, "checkpoint-2");
}

static void resume_names_what_was_made_last_whatever_was_restored_last(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "older");
  run_host_for(h, 0.02);
  write_zip(h, "ckpt-9.pt", "newer than any commit");
  run_host_for(h, 0.02);
  tear_zip(h, "last.pt"); /* its restored copy has the newest ctime of all */
  run_prepared p = prepare(h);
  must_be_counts(&p, 1, 1, 2);
  must_resume(h, &p, "ckpt-9.pt");
  assert_null(p.restored_from);
  run_host_close(h);
  p = prepare(h); /* nor at the next try */
  must_resume(h, &p, "ckpt-9.pt");
}

/* ---- by name ---- */

static void two_generations(run_host *h) {
  commit_zip(h, "last.pt", "old");
  commit_zip(h, "last.pt", "new");
}

static void a_name_that_is_here_as_committed_is_not_restored_again(void **state) {
  run_host *h = *state;
  two_generations(h);
  run_prepared p = prepare_as(h, RUN_NAMED, "last.pt", 0);
  must_resume(h, &p, "last.pt");
  must_be_counts(&p, 0, 0, 1);
  zip_is(p.resume, "new");
}

static void an_older_generation_is_restored_under_the_original_name(void **state) {
  run_host *h = *state;
  two_generations(h);
  char dirs[400], uri[700];
  snprintf(dirs, sizeof dirs, "%s", run_host_commits(h));
  dirs[strcspn(dirs, " ")] = '\0';
  assert_string_equal(dirs, "last.pt");
  char *newer = strdup(strchr(run_host_commits(h), ' ') + 1);
  assert_non_null(strstr(newer, "last.pt.~"));
  lose(h, "last.pt");
  run_prepared p = prepare_as(h, RUN_NAMED, newer, 0);
  must_resume(h, &p, "last.pt");
  zip_is(p.resume, "new");
  snprintf(uri, sizeof uri, "file://%s", run_host_store(h, newer));
  assert_string_equal(p.restored_from, uri);
  free(newer);
}

static void an_older_name_is_resumed_from_though_a_newer_one_is_here(void **state) {
  run_host *h = *state;
  commit_zip(h, "ckpt-3.pt", "three");
  commit_zip(h, "ckpt-5.pt", "five");
  lose(h, "ckpt-3.pt");
  run_prepared p = prepare_as(h, RUN_NAMED, "ckpt-3.pt", 0);
  must_resume(h, &p, "ckpt-3.pt");
  assert_int_equal(p.restored, 1);
  assert_true(path_exists(run_host_dir(h, "ckpt-5.pt")));
}

static void a_name_that_was_never_committed_is_an_error_and_moves_nothing(void **state) {
  run_host *h = *state;
  commit_zip(h, "ckpt-3.pt", "three");
  char *before = tree_of(run_host_dir(h, ""));
  prepare_as(h, RUN_NAMED, "ckpt-4.pt", ERR_NOENT);
  prepare_as(h, RUN_NAMED, NULL, ERR_INVAL);
  must_still_be(run_host_dir(h, ""), before);
}

static void another_runs_checkpoint_is_pinned_and_read_and_never_written(void **state) {
  run_host *h = *state;
  run_host *other = run_host_new(NULL);
  commit_zip(other, "ckpt-8.pt", "theirs");
  char *before = tree_of(run_host_store(other, "ckpt-8.pt"));
  char *log_before = tree_of(run_host_store(other, ".ckpt/log"));
  char uri[700];
  snprintf(uri, sizeof uri, "file://%s", run_host_store(other, "ckpt-8.pt"));
  run_prepared p = prepare_as(h, RUN_NAMED, uri, 0);
  must_resume(h, &p, "ckpt-8.pt");
  must_be_counts(&p, 1, 0, 1);
  zip_is(p.resume, "theirs");
  assert_string_equal(p.restored_from, uri);
  /* It belongs to this run once it is saved here. */
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-8.pt");
  must_still_be(run_host_store(other, "ckpt-8.pt"), before);
  must_still_be(run_host_store(other, ".ckpt/log"), log_before);
  assert_int_equal(count_entries(run_host_store(other, ".ckpt/pins")), 0); /* it had one */
  run_host_free(other);
}

static void a_uri_with_nothing_behind_it_is_an_error(void **state) {
  run_host *h = *state;
  char uri[700];
  snprintf(uri, sizeof uri, "file://%s/nowhere", run_host_top(h));
  run_prepared p;
  err e = {0};
  assert_int_equal(run_host_open(h, &e), 0);
  int rc = run_prepare(run_host_run(h), RUN_NAMED, uri, &p, &e);
  assert_true(rc == ERR_NOENT || rc == ERR_NOSTORE);
  assert_non_null(strstr(e.text, "nowhere"));
}

/* ---- never ---- */

static void never_moves_nothing_and_points_at_nothing(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "first");
  tear_zip(h, "last.pt");
  write_hf(h, "checkpoint-4", false);
  write_zip(h, "ckpt-1.pt", "one");
  char *before = tree_of(run_host_dir(h, ""));
  run_prepared p = prepare_as(h, RUN_NEVER, NULL, 0);
  assert_null(p.resume);
  must_be_counts(&p, 0, 0, 1);
  must_still_be(run_host_dir(h, ""), before);
}

/* ---- several of them ---- */

static void each_group_gets_its_own_newest_commit(void **state) {
  run_host *h = *state;
  make_dir(run_host_dir(h, "T1"));
  make_dir(run_host_dir(h, "T2"));
  run_host_begin(h);
  write_zip(h, "T1/ckpt-1.pt", "one");
  write_zip(h, "T2/ckpt-2.pt", "two");
  write_zip(h, "best.pt", "best");
  run_host_until(h, RUN_COMMITTED, "best.pt");
  run_host_idle(h);
  run_host_close(h);
  tear_zip(h, "T1/ckpt-1.pt");
  lose(h, "T2/ckpt-2.pt");
  rmdir(run_host_dir(h, "T2"));
  run_prepared p = prepare(h);
  must_be_counts(&p, 2, 1, 3);
  zip_is(run_host_dir(h, "T1/ckpt-1.pt"), "one");
  zip_is(run_host_dir(h, "T2/ckpt-2.pt"), "two");
  zip_is(run_host_dir(h, "best.pt"), "best");
}

static void each_kind_gets_its_own_newest_commit(void **state) {
  run_host *h = *state;
  commit_zip(h, "ckpt-1.pt", "one");
  commit_zip(h, "best.pt", "best");
  commit_zip(h, "ckpt-2.pt", "two");
  lose(h, "best.pt");
  lose(h, "ckpt-1.pt");
  lose(h, "ckpt-2.pt");
  run_prepared p = prepare(h);
  must_be_counts(&p, 2, 0, 2);
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
  zip_is(run_host_dir(h, "best.pt"), "best");
  must_resume(h, &p, "ckpt-2.pt");
}

static void a_group_of_files_is_moved_and_restored_as_one(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  write_unit(h, "ckpt-1.data-00000-of-00001", "data");
  write_unit(h, "ckpt-1.index", "index");
  run_host_until(h, RUN_COMMITTED, "ckpt-1");
  run_host_idle(h);
  run_host_close(h);
  lose(h, "ckpt-1.index");
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-1");
  assert_int_equal(p.restored, 1);
  assert_int_equal(p.quarantined, 1);
  assert_true(file_is(run_host_dir(h, "ckpt-1.index"), "index"));
  assert_true(file_is(run_host_dir(h, "ckpt-1.data-00000-of-00001"), "data"));
}

/* ---- what several machines did ---- */

/* Another machine with the same target restores the newest commit and goes on. */
static void go_on_elsewhere(run_host *h, const char *name, const char *comment) {
  run_host *other = run_host_elsewhere(h);
  run_host_begin(other);
  write_zip(other, name, comment);
  run_host_until(other, RUN_COMMITTED, name);
  run_host_free(other);
}

static void must_have_gone_on(run_host *h) {
  run_prepared p = prepare(h);
  must_resume(h, &p, "last.pt");
  must_be_counts(&p, 1, 1, 1);
  zip_is(p.resume, "step20");
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_for(h, 0.1);
  run_host_idle(h);
  assert_int_equal(run_host_status(h).committed, 0);
}

static void a_copy_from_before_another_machine_went_on_gives_way_to_the_newest(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "step10");
  go_on_elsewhere(h, "last.pt", "step20");
  must_have_gone_on(h);
}

static void it_does_so_without_a_journal_too(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "step10");
  go_on_elsewhere(h, "last.pt", "step20");
  lose_state(h);
  must_have_gone_on(h);
}

static void after_a_reboot_it_does_so_too(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "step10");
  go_on_elsewhere(h, "last.pt", "step20");
  run_host_reboot(h);
  must_have_gone_on(h);
}

static void what_was_written_since_an_older_commit_stays_the_newest(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "step10");
  go_on_elsewhere(h, "last.pt", "step20");
  write_zip(h, "last.pt", "step30");
  run_prepared p = prepare(h);
  must_resume(h, &p, "last.pt");
  must_be_counts(&p, 0, 0, 1);
  zip_is(p.resume, "step30");
}

static void after_a_way_back_resume_names_the_last_commit_on_any_machine(void **state) {
  run_host *h = *state;
  commit_zip(h, "ckpt-100.pt", "100");
  commit_zip(h, "ckpt-200.pt", "200");
  prepare_as(h, RUN_NAMED, "ckpt-100.pt", 0);
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  write_zip(h, "ckpt-110.pt", "110");
  assert_true(run_host_logged(h, "higher step than ckpt-100.pt, which was asked for"));
  run_host_until(h, RUN_COMMITTED, "ckpt-110.pt");
  run_host_close(h);
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-110.pt");
  assert_true(run_host_logged(h, "ckpt-200.pt is here, too, with a higher step than ckpt-110.pt"));
  run_host_close(h);
  lose(h, "ckpt-110.pt");
  p = prepare(h);
  must_resume(h, &p, "ckpt-110.pt");
  must_be_counts(&p, 1, 0, 3);
  run_host_close(h);
  write_zip(h, "ckpt-120.pt", "not committed yet");
  p = prepare(h);
  must_resume(h, &p, "ckpt-120.pt");
  assert_int_equal(unlink(run_host_dir(h, "ckpt-200.pt")), 0);
  const unsigned said = run_host_logs(h, "higher step");
  run_host_close(h);
  prepare(h);
  assert_int_equal(run_host_logs(h, "higher step"), said);
}

static void the_newest_file_is_resumed_from_whatever_it_is_called(void **state) {
  run_host *h = *state;
  commit_zip(h, "ckpt-1.pt", "one");
  commit_zip(h, "last.pt", "later than one");
  run_prepared p = prepare(h);
  must_resume(h, &p, "last.pt");
  must_be_counts(&p, 0, 0, 2);
}

/* ---- doubt ---- */

static void the_doubt_after_a_reboot_outlives_a_run_that_looked_at_nothing(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "what a disk may lose");
  write_zip_unnoticed(h, "last.pt", "0000000000 disk 0000");
  run_host_reboot(h);
  assert_int_equal(run_host_open(h, NULL), 0);
  run_host_close(h);
  run_prepared p = prepare(h);
  must_be_counts(&p, 1, 1, 1);
  zip_is(p.resume, "what a disk may lose");
}

static void without_a_journal_size_and_time_alone_are_not_believed(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "what a disk may lose");
  write_zip_unnoticed(h, "last.pt", "0000000000 disk 0000");
  lose_state(h);
  run_prepared p = prepare(h);
  must_be_counts(&p, 1, 1, 1);
  zip_is(p.resume, "what a disk may lose");
}

/* ---- a restore that cannot work ---- */

/* Moved away and back it has another ctime, and so has its directory: that is all. */
static char *listing_of(run_host *h) {
  char command[700];
  snprintf(command, sizeof command, "cd '%s' && find . -type f -printf '%%p %%m %%s %%T@ %%i\\n'",
           run_host_dir(h, ""));
  FILE *f = popen(command, "r");
  assert_non_null(f);
  char *text = calloc(1, 4096);
  assert_non_null(text);
  assert_in_range(fread(text, 1, 4095, f), 1, 4094);
  pclose(f);
  return text;
}

static void must_fail_and_move_nothing(run_host *h, const char *name, run_restore how,
                                       const char *says) {
  char *before = listing_of(h), command[700];
  run_prepared p;
  err e = {0};
  assert_int_equal(run_host_open(h, &e), 0);
  int rc = run_prepare(run_host_run(h), how, name, &p, &e);
  assert_true(rc == ERR_CORRUPT || rc == ERR_FORMAT);
  assert_int_equal(e.code, rc);
  if (!strstr(e.text, says) || !strstr(e.text, "`named` NAME")) fail_msg("%s", e.text);
  char *after = listing_of(h);
  assert_string_equal(before, after);
  snprintf(command, sizeof command, "! find '%s' -path '*/quarantine/*' -type f | grep .",
           run_host_state(h, ""));
  assert_int_equal(system(command), 0);
  free(before);
  free(after);
  run_host_close(h);
}

static void nothing_is_moved_for_a_restore_whose_manifest_is_damaged(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "first");
  tear_zip(h, "last.pt");
  write_file(run_host_store(h, "last.pt/.ckpt-manifest.json"), "{");
  must_fail_and_move_nothing(h, NULL, RUN_AUTO, "last.pt");
  must_fail_and_move_nothing(h, "last.pt", RUN_NAMED, "last.pt");
}

static void what_made_room_for_a_restore_that_fails_is_back_in_its_place(void **state) {
  run_host *h = *state;
  commit_zip(h, "last.pt", "first");
  tear_zip(h, "last.pt");
  size_t len;
  char *bytes = read_file(run_host_store(h, "last.pt/last.pt"), &len);
  bytes[len - 1] ^= 1;
  chmod(run_host_store(h, "last.pt/last.pt"), 0644);
  write_bytes(run_host_store(h, "last.pt/last.pt"), bytes, len);
  free(bytes);
  must_fail_and_move_nothing(h, NULL, RUN_AUTO, "back in its place");
  must_fail_and_move_nothing(h, "last.pt", RUN_NAMED, "back in its place");
}

/* ---- directories that only their log knows as checkpoints ---- */

static void a_numeric_directory_stays_one_checkpoint_in_later_runs(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  make_dir(run_host_dir(h, ".w"));
  write_zip(h, ".w/model.pt", "one");
  rename(run_host_dir(h, ".w"), run_host_dir(h, "1"));
  run_host_until(h, RUN_COMMITTED, "1");
  run_host_close(h);
  run_prepared p = prepare(h);
  must_resume(h, &p, "1");
  must_be_counts(&p, 0, 0, 1);
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_for(h, 0.1);
  run_host_idle(h);
  run_host_close(h);
  assert_string_equal(run_host_commits(h), "1");
  tear_zip(h, "1/model.pt");
  p = prepare(h);
  must_resume(h, &p, "1");
  must_be_counts(&p, 1, 1, 1);
  zip_is(run_host_dir(h, "1/model.pt"), "one");
}

/* ---- where it is staged ---- */

static void a_state_on_another_file_system_leaves_nothing_in_the_directory(void **state) {
  run_host *h = *state;
  struct stat here, there;
  if (stat(run_host_top(h), &here) < 0 || stat("/dev/shm", &there) < 0 ||
      here.st_dev == there.st_dev || access("/dev/shm", W_OK) < 0)
    skip();
  char *shm = tmpdir_new_in("/dev/shm");
  run_host_options(h)->places.state = shm;
  commit_zip(h, "last.pt", "first");
  make_dir(run_host_dir(h, ".ckpt-restore")); /* of a run that was killed in a restore */
  write_unit(h, ".ckpt-restore/half", "a part");
  write_file(run_host_dir(h, ".ckpt-restore/lock"), "");
  tear_zip(h, "last.pt");
  run_prepared p = prepare(h);
  must_resume(h, &p, "last.pt");
  must_be_counts(&p, 1, 1, 1);
  zip_is(p.resume, "first");
  assert_int_equal(count_entries(run_host_dir(h, "")), 1);
  char command[700];
  snprintf(command, sizeof command, "test -s %s/quarantine/*/last.pt", shm);
  assert_int_equal(system(command), 0);
  run_host_close(h);
  tmpdir_remove(shm);
}

/* ---- what a killed process leaves ---- */

static void
a_process_killed_in_the_middle_of_a_save_leaves_what_a_new_one_puts_right(void **state) {
  run_host *h = *state;
  commit_zip(h, "ckpt-1.pt", "one");
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    run_host *dying = run_host_new(run_host_top(h));
    run_host_begin(dying);
    run_host_hold(dying, true);
    write_zip(dying, "ckpt-2.pt", "two");
    run_host_held(dying);
    kill(getpid(), SIGKILL);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
  run_prepared p = prepare(h);
  must_resume(h, &p, "ckpt-2.pt");
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  assert_int_equal(count_entries(run_host_state(h, "staging")), 0);
  /* What the dead one announced is gone on with, under the name that it took. */
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(nothing_anywhere_is_a_fresh_start),
      WITH_HOST(required_with_nothing_is_an_error),
      WITH_HOST(required_is_content_with_what_is_here),
      WITH_HOST(a_run_is_prepared_once_and_before_its_start),
      WITH_HOST(a_lost_checkpoint_is_restored_and_named),
      WITH_HOST(what_is_here_and_committed_is_left_as_it_is),
      WITH_HOST(a_lost_state_directory_costs_no_second_upload),
      WITH_HOST(nothing_is_moved_or_restored_when_a_newer_term_is_there),
      WITH_HOST(a_torn_save_of_the_trainer_is_quarantined_and_the_newest_commit_restored),
      WITH_HOST(a_torn_save_goes_even_if_nothing_was_ever_committed),
      WITH_HOST(what_was_torn_in_place_is_replaced_by_its_commit),
      WITH_HOST(what_was_open_when_we_died_is_replaced_though_it_has_no_known_format),
      WITH_HOST(zeros_after_a_power_loss_are_found_though_size_and_times_are_right),
      WITH_HOST(an_empty_directory_under_a_checkpoints_name_makes_room),
      WITH_HOST(an_unproven_newer_unit_is_left_alone),
      WITH_HOST(a_complete_newer_unit_is_resumed_from_and_committed_after_the_start),
      WITH_HOST(what_the_journal_saw_complete_is_resumed_from_without_a_format),
      WITH_HOST(a_marker_of_just_now_proves_a_checkpoint_whole),
      WITH_HOST(resume_names_what_was_made_last_whatever_was_restored_last),
      WITH_HOST(a_name_that_is_here_as_committed_is_not_restored_again),
      WITH_HOST(an_older_generation_is_restored_under_the_original_name),
      WITH_HOST(an_older_name_is_resumed_from_though_a_newer_one_is_here),
      WITH_HOST(a_name_that_was_never_committed_is_an_error_and_moves_nothing),
      WITH_HOST(another_runs_checkpoint_is_pinned_and_read_and_never_written),
      WITH_HOST(a_uri_with_nothing_behind_it_is_an_error),
      WITH_HOST(never_moves_nothing_and_points_at_nothing),
      WITH_HOST(each_group_gets_its_own_newest_commit),
      WITH_HOST(each_kind_gets_its_own_newest_commit),
      WITH_HOST(a_group_of_files_is_moved_and_restored_as_one),
      WITH_HOST(a_copy_from_before_another_machine_went_on_gives_way_to_the_newest),
      WITH_HOST(it_does_so_without_a_journal_too),
      WITH_HOST(after_a_reboot_it_does_so_too),
      WITH_HOST(what_was_written_since_an_older_commit_stays_the_newest),
      WITH_HOST(after_a_way_back_resume_names_the_last_commit_on_any_machine),
      WITH_HOST(the_newest_file_is_resumed_from_whatever_it_is_called),
      WITH_HOST(the_doubt_after_a_reboot_outlives_a_run_that_looked_at_nothing),
      WITH_HOST(without_a_journal_size_and_time_alone_are_not_believed),
      WITH_HOST(nothing_is_moved_for_a_restore_whose_manifest_is_damaged),
      WITH_HOST(what_made_room_for_a_restore_that_fails_is_back_in_its_place),
      WITH_HOST(a_numeric_directory_stays_one_checkpoint_in_later_runs),
      WITH_HOST(a_state_on_another_file_system_leaves_nothing_in_the_directory),
      WITH_HOST(a_process_killed_in_the_middle_of_a_save_leaves_what_a_new_one_puts_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
