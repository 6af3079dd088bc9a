/* A list is saved as it was when its checkpoint became complete, however long that waits for its turn. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

#define LIST "checkpoint_manager_snapshot.json"

static void begin(run_host *h) {
  run_host_policy(h, "return { api = 1, queue = 'all', with = { '" LIST "' } }");
  run_host_begin(h);
}

/* Writes the list as Ray Train does: beside, and renamed. */
static void list(run_host *h, const char *names) {
  char text[400] = "[", part[200], *rest = part, *name, made[600];
  snprintf(part, sizeof part, "%s", names);
  while ((name = strtok_r(rest, " ", &rest)))
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s{\"checkpoint_dir_name\": \"%s\"}",
             strlen(text) > 1 ? ", " : "", name);
  snprintf(text + strlen(text), sizeof text - strlen(text), "]");
  snprintf(made, sizeof made, "%s/made", run_host_top(h));
  write_file(made, text);
  assert_int_equal(rename(made, run_host_dir(h, LIST)), 0);
}

/* It is complete, and waits behind the one that is held. */
static void let_wait(run_host *h, const char *name) {
  run_host_for(h, 0.012);
  write_file(run_host_dir(h, name), name);
  const run_unit *u = NULL;
  for (int i = 0; i < 200 && !(u && u->phase == UNIT_WAITING); i++) {
    run_host_for(h, 0.01);
    u = run_unit_find(run_host_run(h), name);
  }
  assert_non_null(u);
  assert_int_equal(u->phase, UNIT_WAITING);
}

/* How many lists in the store have this text. */
static int lists_with(run_host *h, const char *text) {
  char command[900], line[20] = "";
  snprintf(command, sizeof command, "grep -l '%s' '%s'/.ckpt/with/*/*/" LIST " 2>/dev/null | wc -l",
           text, run_host_store(h, ""));
  FILE *f = popen(command, "r");
  if (!f) abort();
  assert_non_null(fgets(line, sizeof line, f));
  pclose(f);
  return atoi(line);
}

static const char *needs_of(run_host *h, const char *unit) {
  static char out[500];
  run_group *g = run_group_find(run_host_run(h), "");
  const runlog_commit *c = runlog_newest(runlog_view(g->group.log), unit);
  assert_non_null(c);
  snprintf(out, sizeof out, "%s", c->needs ? c->needs : "");
  return out;
}

static void save_the_rest(run_host *h, const char *last) {
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, last);
  run_host_idle(h);
}

static void a_list_that_goes_on_while_its_checkpoint_waits_is_saved_as_it_was(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  list(h, "ckpt-1.pt ckpt-2.pt");
  let_wait(h, "ckpt-2.pt");
  list(h, "ckpt-3.pt");
  run_host_for(h, 0.1);
  save_the_rest(h, "ckpt-2.pt");
  assert_int_equal(lists_with(h, "ckpt-2.pt"), 1);
  assert_string_equal(needs_of(h, "ckpt-2.pt"), "ckpt-1.pt/");
}

/* Else a restore of it would want one that may be in no store. */
static void one_that_names_a_newer_one_too_by_then_is_saved_as_it_was(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  list(h, "ckpt-1.pt ckpt-2.pt");
  let_wait(h, "ckpt-2.pt");
  list(h, "ckpt-2.pt ckpt-3.pt");
  run_host_for(h, 0.1);
  save_the_rest(h, "ckpt-2.pt");
  assert_int_equal(lists_with(h, "ckpt-3.pt"), 0);
  assert_string_equal(needs_of(h, "ckpt-2.pt"), "ckpt-1.pt/");
}

static void one_that_is_written_behind_its_checkpoint_is_taken_while_that_waits(void **state) {
  run_host *h = *state;
  begin(h);
  list(h, "ckpt-1.pt");
  run_host_hold_save(h, "ckpt-1.pt", "one");
  let_wait(h, "ckpt-2.pt");
  list(h, "ckpt-1.pt ckpt-2.pt");
  run_host_for(h, 0.3);
  list(h, "ckpt-3.pt");
  run_host_for(h, 0.1);
  save_the_rest(h, "ckpt-2.pt");
  assert_int_equal(lists_with(h, "ckpt-2.pt"), 1);
}

static void what_is_written_anew_gets_the_list_of_its_new_content(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  list(h, "ckpt-1.pt ckpt-2.pt");
  let_wait(h, "ckpt-2.pt");
  list(h, "ckpt-2.pt ckpt-7.pt");
  run_host_for(h, 0.05);
  write_file(run_host_dir(h, "ckpt-2.pt"), "another content");
  run_host_for(h, 0.3);
  save_the_rest(h, "ckpt-2.pt");
  assert_int_equal(lists_with(h, "ckpt-7.pt"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(a_list_that_goes_on_while_its_checkpoint_waits_is_saved_as_it_was),
      WITH_HOST(one_that_names_a_newer_one_too_by_then_is_saved_as_it_was),
      WITH_HOST(one_that_is_written_behind_its_checkpoint_is_taken_while_that_waits),
      WITH_HOST(what_is_written_anew_gets_the_list_of_its_new_content),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
