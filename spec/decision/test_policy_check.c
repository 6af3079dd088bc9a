/* policy_check as the library has it: whatever a helper answers, and whoever stops listening. What it
 * finds is in spec/runner/policy/check_spec.lua. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_check.h"
#include "io_fault.h"
#include "policy_helper.h"
#include "tmpdir.h"

typedef struct heard {
  int count, faults, stop_after;
  char last[2000], topics[2000];
} heard;

static int hear(void *ctx, const policy_finding *f) {
  heard *h = ctx;
  h->count++;
  h->faults += f->level == POLICY_FAULT;
  snprintf(h->last, sizeof h->last, "%u:%u: %s", f->line, f->column, f->text);
  size_t used = strlen(h->topics);
  snprintf(h->topics + used, sizeof h->topics - used, "%s ", f->topic);
  return h->stop_after && h->count >= h->stop_after ? 7 : 0;
}

/* Checks a policy of this text, which the helper answers with. */
static int check(policy_world *w, const char *text, const char *tree, heard *h, err *e) {
  const char *path = tmpdir_path(w->dir, "p.lua");
  write_file(path, text);
  const policy_check_options o = {
      .io = io_system(), .log = &w->log, .link = w->link, .policy = path, .tree = tree};
  return policy_check(&o, hear, h, e);
}

#define WRITTEN                                                                                    \
  "{\"ok\":true,\"has\":{\"sync\":[\"p\"],\"keep\":[\"p\"]},"                                      \
  "\"written\":{\"sync\":true,\"keep\":true,\"ready\":true,\"on_error\":true},"                    \
  "\"note\":\"//"

static void nonsense_of_a_helper_is_no_finding(void **state) {
  static const char *const answers[] = {
      "{}",
      "[]",
      "nonsense",
      "{\\\"ok\\\":true}",
      "{\\\"ok\\\":true,\\\"answer\\\":7,\\\"memory\\\":[1]}",
      "{\\\"ok\\\":true,\\\"clock\\\":9,\\\"again\\\":\\\"x\\\"}",
      "{\\\"ok\\\":true,\\\"metrics\\\":[1],\\\"results\\\":7,\\\"doubted\\\":{\\\"a\\\":1}}",
      "{\\\"ok\\\":true,\\\"results\\\":{\\\"loss\\\":5}}",
      "{\\\"ok\\\":true,\\\"rounds\\\":-1,\\\"list\\\":[1,{},{\\\"line\\\":1,\\\"text\\\":[]}]}"};
  (void)state;
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    policy_world *w = policy_world_new();
    heard h = {0};
    err e = {0};
    char text[1000];
    snprintf(text, sizeof text, "%s%s\"}", WRITTEN, answers[i]);
    int rc = check(w, text, NULL, &h, &e);
    if (rc != 0 && rc != ERR_POLICY) fail_msg("%s: %d %s", answers[i], rc, e.text);
    assert_int_equal(rc == 0, h.faults == 0);
    policy_world_free(w);
  }
}

static void a_policy_that_does_not_load_is_a_finding_with_its_place(void **state) {
  heard h = {0};
  err e = {0};
  int rc = check(*state, "{\"ok\":false,\"kind\":\"syntax\",\"text\":\"p.lua:1: 'kind' what\"}",
                 NULL, &h, &e);
  assert_int_equal(rc, ERR_POLICY);
  assert_int_equal(h.faults, 1);
  assert_string_equal(h.topics, "load ");
  assert_string_equal(h.last, "1:14: 'kind' what");
}

static void who_stops_listening_ends_it(void **state) {
  heard h = {.stop_after = 1};
  err e = {0};
  assert_int_equal(check(*state, "{\"ok\":false,\"kind\":\"syntax\",\"text\":\"x\"}", NULL, &h, &e),
                   7);
  assert_int_equal(h.count, 1);
}

static void a_file_that_is_not_there_is_no_finding(void **state) {
  policy_world *w = *state;
  heard h = {0};
  err e = {0};
  policy_check_options o = {
      .io = io_system(), .log = &w->log, .link = w->link, .policy = "/nowhere/p.lua"};
  assert_int_equal(policy_check(&o, hear, &h, &e), ERR_INVAL);
  assert_int_equal(check(w, "{\"ok\":true}", "/nowhere/at/all", &h, &e), ERR_NOENT);
  assert_int_equal(h.count, 0);
}

static void a_tree_is_held_against_the_names(void **state) {
  policy_world *w = *state;
  heard h = {0};
  err e = {0};
  const char *tree = tmpdir_path(w->dir, "tree");
  make_dir(tree);
  make_dir(tmpdir_path(tree, "other-1"));
  assert_int_equal(check(w, "{\"ok\":true,\"unit\":[\"x-{step}/\"]}", tree, &h, &e), 0);
  assert_int_equal(h.count, 1);
  assert_string_equal(h.topics, "unit ");
  assert_non_null(strstr(h.last, "\"other-1/\""));
}

/* As of lost+found, which only root may read: that ended the check. */
static void what_cannot_be_read_in_a_tree_is_a_note(void **state) {
  policy_world *w = *state;
  const char *text = "{\"ok\":true,\"unit\":[\"x-{step}/\"]}";
  const char *tree = tmpdir_path(w->dir, "tree"), *path = tmpdir_path(w->dir, "p.lua");
  io_fault *fault = io_fault_new(io_system());
  int told = 0, failed = 0;
  make_dir(tree);
  make_dir(tmpdir_path(tree, "lost"));
  make_dir(tmpdir_path(tree, "x-1"));
  write_file(path, text);
  const policy_check_options o = {
      .io = io_fault_io(fault), .log = &w->log, .link = w->link, .policy = path, .tree = tree};
  for (long nth = 1;; nth++) {
    heard h = {0};
    err e = {0};
    io_fault_once(fault, CALL_OPEN, nth, EACCES);
    int rc = policy_check(&o, hear, &h, &e);
    if (io_fault_failed(fault, CALL_OPEN) == 0) break;
    failed += rc < 0;
    if (rc == 0 && strstr(h.topics, "limit ")) told += strstr(h.last, "/lost: ") != NULL;
  }
  assert_int_equal(told, 1);
  assert_true(failed > 0); /* of the policy itself, and of the top */
  io_fault_free(fault);
}

int main(int argc, char **argv) {
  (void)argc;
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nonsense_of_a_helper_is_no_finding),
      IN_POLICY_WORLD(a_policy_that_does_not_load_is_a_finding_with_its_place),
      IN_POLICY_WORLD(who_stops_listening_ends_it),
      IN_POLICY_WORLD(a_file_that_is_not_there_is_no_finding),
      IN_POLICY_WORLD(a_tree_is_held_against_the_names),
      IN_POLICY_WORLD(what_cannot_be_read_in_a_tree_is_a_note),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
