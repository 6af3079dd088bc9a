#include "with_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/job/outcome.h"
#include "runner/cli/report.h"
#include "tmpdir.h"

static char *dir;
static char *text;
static outcome o;

static int set_up(void **state) {
  dir = tmpdir_new();
  text = NULL;
  o = (outcome){.verb = "run",
                .reason = "done",
                .text = "",
                .has_child = true,
                .begin_ns = INT64_C(1714564800) * 1000000000,
                .end_ns = INT64_C(1714564802) * 1000000000 + 500000000,
                .dir = "/data/out",
                .world = 1,
                .status = {.size = sizeof o.status,
                           .newest_step = -1,
                           .newest_age_s = -1,
                           .standing = CKPT_NOTHING_TO_SAVE,
                           .saw_file = 1}};
  return 0;
}

static int tear_down(void **state) {
  free(text);
  tmpdir_remove(dir);
  return 0;
}

static ckpt_run_status *five_commits(void) {
  o.status.committed = 5;
  o.status.standing = CKPT_DURABLE;
  o.status.newest_unit = "checkpoint-500";
  o.status.newest_step = 500;
  o.status.newest_age_s = 3.2;
  o.status.bytes_committed = UINT64_C(1288490189);
  return &o.status;
}

static const char *line(void) {
  int before = dup(2), fd = open(tmpdir_path(dir, "err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(fd, 2);
  outcome_print(&o);
  dup2(before, 2);
  close(before);
  close(fd);
  free(text);
  return text = read_file(tmpdir_path(dir, "err"), NULL);
}

static const char *json(void) {
  outcome_write(&o, dir);
  free(text);
  return text = read_file(tmpdir_path(dir, "exit.json"), NULL);
}

static void the_last_line_says_what_there_is(void **state) {
  assert_string_equal(line(), "ckpt-lua: 0 committed; nothing to save: no checkpoint "
                              "was complete in /data/out\n");
  five_commits();
  o.target = "file:///t";
  assert_string_equal(line(), "ckpt-lua: 5 committed, newest checkpoint-500 (step 500), 3 s ago, "
                              "1.2 GiB; durable in file:///t\n");
  o.status.dropped = 2;
  o.status.retired = 1;
  o.status.failed = 3;
  assert_non_null(
      strstr(line(), "; 2 let go for a newer one, 1 changed while read, 3 failed; durable in "));
}

static bool says(const char *end) {
  size_t len = strlen(line()), n = strlen(end);
  bool so = n < len && strncmp(text + len - 1 - n, end, n) == 0;
  if (!so) print_message("the line is %s", text);
  return so;
}

static void each_standing_has_words_of_its_own(void **state) {
  ckpt_pending old = {.unit = "checkpoint-1", .bytes_left = 1 << 20};
  ckpt_run_status *s = &o.status;
  s->saw_file = 0;
  assert_true(says("; nothing to save: there was no file in /data/out"));
  s->standing = CKPT_NOT_WANTED;
  s->unwanted_unit = "checkpoint-5";
  s->unwanted_policy = "hot";
  s->unwanted_reason = "loss 3 is not better than 2";
  assert_true(says("; not wanted: checkpoint-5 (by hot: loss 3 is not better than 2)"));
  s->standing = CKPT_DURABLE;
  assert_true(says("; durable; not wanted: checkpoint-5 (by hot: loss 3 is not better than 2)"));
  s->unwanted_unit = NULL;
  o.pending = &old;
  o.pending_count = 1;
  assert_true(says("; durable; not saved: checkpoint-1 (1.0 MiB left)"));
  s->standing = CKPT_NOT_DURABLE;
  assert_true(says("; NOT durable: checkpoint-1 (1.0 MiB left)"));
  s->standing = CKPT_NOT_PROVEN;
  s->unproven_unit = "checkpoint-6";
  s->unproven_reason = "its marker is missing";
  assert_true(says("; NOT proven whole: checkpoint-6 (its marker is missing)"));
  s->standing = 0; /* the run did not start */
  assert_true(says("0 committed"));
}

static void what_is_not_durable_is_named_with_the_bytes_left(void **state) {
  ckpt_pending all[12];
  for (int i = 0; i < 12; i++)
    all[i] = (ckpt_pending){.unit = "checkpoint-600", .bytes_left = 312 << 20};
  five_commits()->newest_status = CKPT_EIO;
  o.status.standing = CKPT_NOT_DURABLE;
  o.pending = all;
  o.pending_count = 1;
  assert_non_null(strstr(line(), "; NOT durable: checkpoint-600 (312 MiB left)\n"));
  o.pending_count = 12;
  assert_non_null(strstr(line(), " and 2 more\n"));
  o.pending_count = 0; /* given up: nothing waits, and it is not durable all the same */
  assert_non_null(strstr(line(), "the newest is NOT durable (IO)"));
}

static void exit_json_has_it_all(void **state) {
  ckpt_pending pending = {.unit = "a\"\xff", .reason = "uploading", .bytes = 10, .bytes_left = 4};
  five_commits()->newest_unit = "n\n";
  o.status.standing = CKPT_NOT_DURABLE;
  o.status.bytes_left = 4;
  o.status.unwanted_unit = "w\n";
  o.status.unwanted_policy = "hot";
  o.status.unwanted_reason = "not now";
  o.target = "mem://t";
  o.run_id = "r1";
  snprintf(o.host, sizeof o.host, "node7");
  o.rank = 2;
  o.world = 4;
  o.pending = &pending;
  o.pending_count = 1;
  o.exit_code = 143;
  o.child_status = SIGTERM;
  o.signal = SIGTERM;
  o.text = "why\xff";
  const char *all = json();
  static const char *const parts[] = {
      "{\"summary\":\"5 committed, newest n",
      ",\"version\":\"",
      "\"target\":\"mem://t\",\"run\":\"r1\",\"directory\":\"/data/out\",\"host\":\"node7\",",
      "\"rank\":2,\"world\":4,",
      ",\"bytes_left\":4,\"unmatched\":",
      ",\"not_wanted\":{\"unit\":\"w%0A\",\"policy\":\"hot\",\"reason\":\"not now\"},",
      ",\"not_proven\":null,",
      ",\"skipped\":0,\"policies\":null,\"policy_fallbacks\":0,",
      "\"exit_code\":143,\"reason\":\"done\",\"error\":\"why\\ufffd\",\"child\":{\"signal\":15}",
      "\"signal\":15,\"standing\":\"not_durable\",\"durable\":false,\"fenced\":false,",
      ",\"committed\":5,\"dropped\":0,\"let_go\":0",
      "\"newest\":{\"unit\":\"n%0A\",\"step\":500,\"age_s\":3.200}",
      "\"not_durable\":[{\"unit\":\"a\\\"%FF\",\"reason\":\"uploading\",\"bytes\":10,",
      ",\"bytes\":10,\"bytes_left\":4}]",
      "\"started\":\"2024-05-01T12:00:00Z\",\"ended\":\"2024-05-01T12:00:02Z\",\"seconds\":2.500}"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(all, parts[i])) fail_msg("no %s in %s", parts[i], all);
  assert_int_equal(count_entries(dir), 1); /* and nothing is left over */
}

static void exit_json_has_nulls_for_what_is_not_there(void **state) {
  o.has_child = false;
  const char *all = json();
  assert_non_null(strstr(all, "\"error\":null,\"child\":null,\"signal\":null"));
  assert_non_null(
      strstr(all, "\"newest\":null,\"not_wanted\":null,\"not_proven\":null,\"not_durable\":[]"));
  assert_non_null(strstr(all, "\"standing\":\"nothing_to_save\",\"durable\":false"));
}

static void exit_json_is_replaced_whole_or_not_at_all(void **state) {
  write_file(tmpdir_path(dir, "exit.json"), "old");
  make_dir(tmpdir_path(dir, "exit.json.tmp")); /* cannot be written */
  report_level(-1);
  outcome_write(&o, dir);
  report_level(0);
  assert_true(file_is(tmpdir_path(dir, "exit.json"), "old"));
  outcome_forget(dir);
  assert_false(path_exists(tmpdir_path(dir, "exit.json")));
  outcome_forget(dir); /* none is fine */
}

static int decide(bool deadline, bool stopped, bool require) {
  outcome_decide(&o, deadline, stopped, require);
  return o.exit_code;
}

static void a_run_that_did_not_begin_says_nothing_of_what_is_durable(void **state) {
  o.text = "cannot open the run: no such bucket";
  o.unopened = true;
  assert_false(outcome_durable(&o));
  assert_non_null(strstr(line(), "did not begin: cannot open the run: no such bucket"));
  assert_non_null(strstr(json(), "\"standing\":null,\"durable\":false"));
}

static void zero_means_durable_nothing_to_save_or_not_wanted(void **state) {
  static const uint32_t fine[] = {CKPT_DURABLE, CKPT_NOTHING_TO_SAVE, CKPT_NOT_WANTED};
  for (size_t i = 0; i < 3; i++) {
    o.status.standing = fine[i];
    assert_int_equal(decide(false, false, false), 0);
    assert_int_equal(decide(true, false, false), 0); /* the deadline came, and all was done */
    assert_int_equal(decide(false, false, true), i == 0 ? 0 : EXIT_NOTHING);
    assert_int_equal(outcome_durable(&o), i == 0);
  }
  o.status.standing = CKPT_NOT_PROVEN;
  assert_int_equal(decide(false, false, true), EXIT_PARTIAL);
  o.status.standing = CKPT_NOT_DURABLE;
  assert_int_equal(decide(true, false, false), EXIT_DEADLINE);
  assert_int_equal(decide(false, false, false), EXIT_GAVE_UP); /* it still settles */
  o.status.newest_status = CKPT_EIO;
  assert_int_equal(decide(true, false, false), EXIT_DEADLINE);
  assert_int_equal(decide(false, false, false), EXIT_GAVE_UP);
  o.status.newest_status = CKPT_ENOSPACE;
  assert_int_equal(decide(false, false, false), EXIT_STORE);
  o.status.newest_status = CKPT_ELIMIT;
  assert_int_equal(decide(false, false, false), EXIT_STORE);
  o.status.newest_status = CKPT_ENOMEM;
  assert_int_equal(decide(false, false, false), EXIT_FAILED);
}

static void the_childs_own_code_comes_first(void **state) {
  o.child_status = SIGTERM;
  o.status.standing = CKPT_NOT_DURABLE;
  o.status.newest_status = CKPT_EIO;
  assert_int_equal(decide(true, false, true), 143);
  o.status.fenced = 1;
  assert_int_equal(decide(true, false, true), 143);
  assert_int_equal(decide(true, true, true), EXIT_FENCED); /* but when we stopped it ourselves */
  o.child_status = 0;
  assert_int_equal(decide(false, false, false), EXIT_FENCED);
}

/* What `sync` says of this standing, and so many saved, failed, not proven whole. */
static int sync_code(uint32_t standing, uint32_t committed, uint32_t failed, uint32_t unproven,
                     bool require) {
  outcome all = {0};
  all.status.committed = committed;
  all.status.failed = failed;
  all.status.unproven = unproven;
  all.status.standing = standing;
  all.status.newest_status = failed ? CKPT_EACCESS : CKPT_OK;
  outcome_decide_sync(&all, false, require);
  return all.exit_code;
}

static void a_sync_is_done_or_partial_and_may_need_a_commit(void **state) {
  assert_int_equal(sync_code(CKPT_DURABLE, 2, 0, 0, true), EXIT_DONE);
  assert_int_equal(sync_code(CKPT_DURABLE, 0, 0, 0, true), EXIT_DONE); /* all were there before */
  assert_int_equal(sync_code(CKPT_NOT_WANTED, 0, 0, 0, false), EXIT_DONE);
  assert_int_equal(sync_code(CKPT_NOT_WANTED, 0, 0, 0, true), EXIT_NOTHING);
  assert_int_equal(sync_code(CKPT_NOTHING_TO_SAVE, 0, 0, 0, false), EXIT_DONE);
  assert_int_equal(sync_code(CKPT_NOTHING_TO_SAVE, 0, 0, 0, true), EXIT_NOTHING);
  assert_int_equal(sync_code(CKPT_DURABLE, 2, 0, 1, false), EXIT_PARTIAL);
  assert_int_equal(sync_code(CKPT_NOT_PROVEN, 0, 0, 1, false), EXIT_PARTIAL);
  assert_int_equal(sync_code(CKPT_NOT_DURABLE, 1, 1, 0, false), EXIT_PARTIAL);
  /* the store takes nothing at all */
  assert_int_equal(sync_code(CKPT_NOT_DURABLE, 0, 2, 0, false), EXIT_STORE);
}

static void a_sync_that_is_fenced_or_late_says_that(void **state) {
  outcome all = {.status = {.fenced = 1, .unproven = 1, .standing = CKPT_NOT_DURABLE}};
  outcome_decide_sync(&all, false, false);
  assert_int_equal(all.exit_code, EXIT_FENCED);
  all = (outcome){.status = {.settling = 1, .standing = CKPT_NOT_DURABLE}};
  outcome_decide_sync(&all, true, false);
  assert_int_equal(all.exit_code, EXIT_DEADLINE);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(the_last_line_says_what_there_is),
      TEST(each_standing_has_words_of_its_own),
      TEST(what_is_not_durable_is_named_with_the_bytes_left),
      TEST(exit_json_has_it_all),
      TEST(exit_json_has_nulls_for_what_is_not_there),
      TEST(exit_json_is_replaced_whole_or_not_at_all),
      cmocka_unit_test(a_sync_is_done_or_partial_and_may_need_a_commit),
      cmocka_unit_test(a_sync_that_is_fenced_or_late_says_that),
      TEST(a_run_that_did_not_begin_says_nothing_of_what_is_durable),
      TEST(zero_means_durable_nothing_to_save_or_not_wanted),
      TEST(the_childs_own_code_comes_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
