#include "with_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/begin/survey.h"
#include "run_host.h"
#include "tensor_bundle.h"
#include "tmpdir.h"

typedef struct world {
  run_host *h;
  survey s;
} world;

static world the_world;

static int setup(void **state) {
  the_world = (world){.h = run_host_new(NULL)};
  *state = &the_world;
  return 0;
}

static int teardown(void **state) {
  world *w = *state;
  run_survey_free(&w->s);
  run_host_free(w->h);
  return 0;
}

static const survey_unit *survey_of(world *w, const char *path) {
  err e = {0};
  if (!run_host_run(w->h) && run_host_open(w->h, &e) < 0) fail_msg("%s", e.text);
  run_survey_free(&w->s);
  if (run_survey(run_host_run(w->h), &w->s, &e) < 0) fail_msg("%s", e.text);
  for (size_t i = 0; i < w->s.count; i++)
    if (strcmp(w->s.units[i].path, path) == 0) return &w->s.units[i];
  return NULL;
}

static recover_standing standing(world *w, const char *path) {
  const survey_unit *u = survey_of(w, path);
  assert_non_null(u);
  return u->standing;
}

static void put(world *w, const char *name, const char *text) {
  write_file(run_host_dir(w->h, name), text);
}

static void put_zip(world *w, const char *name) {
  static const char zip[22] = {'P', 'K', 5, 6};
  write_bytes(run_host_dir(w->h, name), zip, sizeof zip);
}

static void commit(world *w, const char *name, const char *text) {
  run_host_begin(w->h);
  put(w, name, text);
  run_host_until(w->h, RUN_COMMITTED, name);
  run_host_close(w->h);
}

static void a_commit_is_known_with_its_number(void **state) {
  world *w = *state;
  commit(w, "ckpt-1.pt", "one");
  const survey_unit *u = survey_of(w, "ckpt-1.pt");
  assert_int_equal(u->standing, RECOVER_COMMITTED);
  assert_int_not_equal(u->commit, RUNLOG_NONE);
  assert_string_equal(u->name, "ckpt-1.pt");
  assert_string_equal(u->series, "ckpt-#.pt");
  assert_string_equal(u->group, "");
  assert_int_equal(u->step, 1);
}

static void what_was_written_since_the_commit_is_not_it(void **state) {
  world *w = *state;
  commit(w, "ckpt-1.pt", "one");
  put(w, "ckpt-1.pt", "two");
  assert_int_equal(standing(w, "ckpt-1.pt"), RECOVER_UNPROVEN);
}

static void a_known_format_tells_whole_from_torn(void **state) {
  world *w = *state;
  put_zip(w, "ckpt-1.pt");
  write_bytes(run_host_dir(w->h, "ckpt-2.pt"), "PK\3\4 torn", 9);
  put(w, "ckpt-3.pt", "no format");
  put(w, "ckpt-4.pt", "");
  assert_int_equal(standing(w, "ckpt-1.pt"), RECOVER_WHOLE);
  assert_int_equal(standing(w, "ckpt-2.pt"), RECOVER_TORN);
  assert_int_equal(standing(w, "ckpt-3.pt"), RECOVER_UNPROVEN);
  assert_int_equal(standing(w, "ckpt-4.pt"), RECOVER_TORN);
}

/* It was closed within the rest before a kill, and TensorFlow goes on from it. */
static void a_bundle_of_tensors_is_whole_by_its_index(void **state) {
  static const char zeros[BUNDLE_SHARD];
  world *w = *state;
  write_bytes(run_host_dir(w->h, "ckpt-1.data-00000-of-00001"), zeros, sizeof zeros);
  write_bytes(run_host_dir(w->h, "ckpt-1.index"), bundle_index, sizeof bundle_index);
  write_bytes(run_host_dir(w->h, "ckpt-2.data-00000-of-00001"), zeros, 100);
  write_bytes(run_host_dir(w->h, "ckpt-2.index"), bundle_index, sizeof bundle_index);
  put(w, "ckpt-3.data-00000-of-00001", "and no index");
  assert_int_equal(standing(w, "ckpt-1"), RECOVER_WHOLE);
  assert_int_equal(standing(w, "ckpt-2"), RECOVER_TORN);
  assert_int_equal(standing(w, "ckpt-3"), RECOVER_UNPROVEN);
}

static void put_trial(world *w) {
  make_dir(run_host_dir(w->h, "exp"));
  make_dir(run_host_dir(w->h, "exp/trial_1"));
  make_dir(run_host_dir(w->h, "exp/trial_1/checkpoint_000001"));
  put(w, "exp/trial_1/checkpoint_000001/model.bin", "no format");
}

/* Ray Tune learns of a checkpoint when it is stored, and goes on from what its state names. Its job dies
 * within the rest; the next start saves it. */
static void what_a_run_has_seen_and_the_state_of_ray_tune_names_is_whole_and_saved(void **state) {
  world *w = *state;
  run_host_options(w->h)->quiet_ns = (int64_t)1000 * 1000000000;
  run_host_begin(w->h);
  put_trial(w);
  run_host_for(w->h, 0.2);
  run_host_close(w->h);
  assert_int_equal(standing(w, "exp/trial_1/checkpoint_000001"), RECOVER_UNPROVEN);
  put(w, "exp/experiment_state-2026-01-02.json", "{\"p\": \"/x/exp/trial_1/checkpoint_000001\"}");
  assert_int_equal(standing(w, "exp/trial_1/checkpoint_000001"), RECOVER_WHOLE);
  run_host_close(w->h);
  run_host_begin(w->h);
  run_host_until(w->h, RUN_COMMITTED, "exp/trial_1/checkpoint_000001");
}

/* It may have come with a copy that is not whole. */
static void what_no_run_has_seen_being_written_a_state_does_not_vouch_for(void **state) {
  world *w = *state;
  put_trial(w);
  put(w, "exp/experiment_state-2026-01-02.json", "{\"p\": \"/x/exp/trial_1/checkpoint_000001\"}");
  assert_int_equal(standing(w, "exp/trial_1/checkpoint_000001"), RECOVER_UNPROVEN);
}

/* Holds for a torn file, and the unit that it makes: while another process has it open nobody calls
 * it torn, and then it is. */
static void must_be_torn_once_closed(world *w, const char *file, const char *unit) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    int fd = open(run_host_dir(w->h, file), O_WRONLY | O_CREAT, 0600);
    bool ok = write(fd, "PK\3\4 torn", 9) == 9 && write(ready[1], "x", 1) == 1;
    pause();
    _exit(ok);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  recover_standing open = standing(w, unit);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  close(ready[0]);
  close(ready[1]);
  assert_int_equal(open, RECOVER_UNPROVEN);
  assert_int_equal(standing(w, unit), RECOVER_TORN);
}

static void what_another_process_has_open_is_not_called_torn(void **state) {
  must_be_torn_once_closed(*state, "ckpt-2.pt", "ckpt-2.pt");
}

static void a_group_of_which_another_process_has_a_file_open_is_not_called_torn(void **state) {
  world *w = *state;
  run_host_begin(w->h);
  put(w, "ckpt-1.data-00000-of-00001", "data");
  put(w, "ckpt-1.index", "index");
  run_host_until(w->h, RUN_COMMITTED, "ckpt-1");
  run_host_close(w->h);
  must_be_torn_once_closed(w, "ckpt-2.more", "ckpt-2");
}

static void a_directory_that_lacks_what_the_last_commit_had_is_not_whole(void **state) {
  world *w = *state;
  run_host_begin(w->h);
  make_dir(run_host_dir(w->h, "tmp"));
  put_zip(w, "tmp/model.pt");
  put_zip(w, "tmp/optimizer.pt");
  rename(run_host_dir(w->h, "tmp"), run_host_dir(w->h, "checkpoint-1"));
  run_host_until(w->h, RUN_COMMITTED, "checkpoint-1");
  run_host_close(w->h);
  make_dir(run_host_dir(w->h, "checkpoint-2"));
  put_zip(w, "checkpoint-2/model.pt");
  assert_int_equal(standing(w, "checkpoint-2"), RECOVER_UNPROVEN);
  put_zip(w, "checkpoint-2/optimizer.pt");
  assert_int_equal(standing(w, "checkpoint-2"), RECOVER_WHOLE);
}

static void a_required_marker_that_is_missing_makes_it_torn(void **state) {
  world *w = *state;
  make_dir(run_host_dir(w->h, "checkpoint-2"));
  put_zip(w, "checkpoint-2/training_args.bin");
  assert_int_equal(standing(w, "checkpoint-2"), RECOVER_TORN);
  assert_non_null(strstr(survey_of(w, "checkpoint-2")->reason, "trainer_state.json"));
  put(w, "checkpoint-2/trainer_state.json", "{}");
  assert_int_equal(standing(w, "checkpoint-2"), RECOVER_WHOLE);
}

static void a_manifest_that_cannot_be_read_vouches_for_nothing(void **state) {
  world *w = *state;
  commit(w, "ckpt-1.pt", "one");
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%s'", run_host_state(w->h, ""));
  assert_int_equal(system(command), 0);
  put(w, "../store/ckpt-1.pt/.ckpt-manifest.json", "{");
  assert_int_equal(standing(w, "ckpt-1.pt"), RECOVER_UNPROVEN);
}

static void units_come_in_the_order_of_their_paths_and_excluded_names_not_at_all(void **state) {
  world *w = *state;
  make_dir(run_host_dir(w->h, "T1"));
  put(w, "T1/ckpt-1.pt", "x");
  put(w, "ckpt-2.pt", "x");
  put(w, "ckpt-10.pt", "x");
  put(w, ".tmpabcdef", "x");
  put(w, "ckpt-3.pt.tmp", "x");
  put(w, "notes.txt", "x");
  assert_non_null(survey_of(w, "T1/ckpt-1.pt"));
  assert_int_equal(w->s.count, 3);
  assert_string_equal(w->s.units[0].path, "T1/ckpt-1.pt");
  assert_string_equal(w->s.units[0].group, "T1");
  assert_string_equal(w->s.units[1].path, "ckpt-10.pt");
  assert_string_equal(w->s.units[2].path, "ckpt-2.pt");
}

static void a_survey_writes_nothing(void **state) {
  world *w = *state;
  put_zip(w, "ckpt-1.pt");
  survey_of(w, "ckpt-1.pt");
  char *journal = read_file(run_host_state(w->h, "journal.jsonl"), NULL);
  survey_of(w, "ckpt-1.pt");
  assert_true(file_is(run_host_state(w->h, "journal.jsonl"), journal));
  free(journal);
  assert_int_equal(count_entries(run_host_dir(w->h, "")), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_commit_is_known_with_its_number),
      TEST(what_was_written_since_the_commit_is_not_it),
      TEST(a_known_format_tells_whole_from_torn),
      TEST(a_bundle_of_tensors_is_whole_by_its_index),
      TEST(what_a_run_has_seen_and_the_state_of_ray_tune_names_is_whole_and_saved),
      TEST(what_no_run_has_seen_being_written_a_state_does_not_vouch_for),
      TEST(what_another_process_has_open_is_not_called_torn),
      TEST(a_group_of_which_another_process_has_a_file_open_is_not_called_torn),
      TEST(a_directory_that_lacks_what_the_last_commit_had_is_not_whole),
      TEST(a_required_marker_that_is_missing_makes_it_torn),
      TEST(a_manifest_that_cannot_be_read_vouches_for_nothing),
      TEST(units_come_in_the_order_of_their_paths_and_excluded_names_not_at_all),
      TEST(a_survey_writes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
