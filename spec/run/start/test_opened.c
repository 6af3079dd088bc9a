#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "run/start/opened.h"
#include "tmpdir.h"

static int set_up(void **state) {
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "checkpoint-3"));
  make_dir(tmpdir_path(dir, "checkpoint-3/deep"));
  write_file(tmpdir_path(dir, "checkpoint-3/model.bin"), "weights");
  write_file(tmpdir_path(dir, "checkpoint-3/deep/shard"), "more");
  write_file(tmpdir_path(dir, "last.pt"), "one file");
  write_file(tmpdir_path(dir, "ckpt-7.index"), "i");
  write_file(tmpdir_path(dir, "ckpt-70.index"), "i");
  *state = dir;
  return 0;
}

static int tear_down(void **state) {
  tmpdir_remove(*state);
  return 0;
}

static opened *begin(const char *dir, const char *name) {
  opened *o = opened_begin(io_system(), tmpdir_path(dir, name));
  assert_non_null(o);
  assert_int_equal(opened_say(o), OPENED_NEVER);
  return o;
}

/* What another process does. */
static void sh(const char *dir, const char *command) {
  char line[900];
  snprintf(line, sizeof line, "cd '%s' && { %s; } >/dev/null", dir, command);
  assert_int_equal(system(line), 0);
}

static void must_say(const char *dir, const char *name, const char *command, opened_word word) {
  opened *o = begin(dir, name);
  sh(dir, command);
  assert_int_equal(opened_say(o), word);
  assert_int_equal(opened_say(o), word); /* and it stays so */
  opened_free(o);
}

static void a_file_that_is_read_was_opened(void **state) {
  must_say(*state, "checkpoint-3", "cat checkpoint-3/model.bin", OPENED_YES);
  must_say(*state, "checkpoint-3", "cat checkpoint-3/deep/shard", OPENED_YES);
  must_say(*state, "last.pt", "cat last.pt", OPENED_YES);
  must_say(*state, "ckpt-7", "cat ckpt-7.index", OPENED_YES);
}

static void a_look_at_names_and_sizes_opens_nothing(void **state) {
  must_say(*state, "checkpoint-3", "ls -lR . && find . -size +0 && stat checkpoint-3/model.bin",
           OPENED_NEVER);
  must_say(*state, "last.pt", "ls -l && cat ckpt-7.index", OPENED_NEVER);
  must_say(*state, "ckpt-7", "ls -l && cat ckpt-70.index last.pt", OPENED_NEVER);
}

static void a_thousand_opens_are_one(void **state) {
  must_say(*state, "checkpoint-3",
           "i=0; while [ $i -lt 1000 ]; do read x <checkpoint-3/model.bin || :; read x "
           "<checkpoint-3/deep/shard || :; i=$((i+1)); done",
           OPENED_YES);
}

static void what_cannot_be_watched_is_unseen(void **state) {
  assert_null(opened_begin(io_system(), tmpdir_path(*state, "no/such/place")));
  assert_int_equal(opened_say(NULL), OPENED_UNSEEN);
  opened_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_that_is_read_was_opened),
      cmocka_unit_test(a_look_at_names_and_sizes_opens_nothing),
      cmocka_unit_test(a_thousand_opens_are_one),
      cmocka_unit_test(what_cannot_be_watched_is_unseen),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
