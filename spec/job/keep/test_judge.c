/* What retention would do with a target. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "filled.h"
#include "job/keep/judge.h"

static int note_verdict(void *ctx, const judged *v) {
  static const char *const words[] = {"keep", "guarded", "limited", "drop", "wait", "delete"};
  filled *f = ctx;
  size_t len = strlen(f->told);
  assert_true(*v->reason);
  snprintf(f->told + len, sizeof f->told - len, "%s%s %s", len ? ", " : "", words[v->verdict],
           v->item->commit->dir);
  return 0;
}

static int judge_as(filled *f, int64_t grace_ns, judge_fn *fn, void *ctx) {
  const io *io = f->w->env.io;
  judge how = {.io = io,
               .limits = {.max_drop = 1, .grace_ns = grace_ns, .now_ns = io->now(io, IO_WALL)}};
  policy_options o = {.io = io, .id = "test", .quiet_ns = -1};
  assert_int_equal(policy_open(&o, &how.policy, NULL), 0);
  f->told[0] = 0;
  int rc = judge_target(&how, f->uri, fn, ctx, NULL);
  policy_close(how.policy);
  return rc;
}

static void without_a_policy_all_that_lives_is_kept(void **state) {
  filled *f = *state;
  assert_int_equal(runlog_refresh(f->log, NULL), 0);
  const runlog_commit *c = runlog_newest_ever(runlog_view(f->log), "checkpoint-1");
  assert_int_equal(runlog_drop(f->log, c->n, NULL, NULL, NULL, NULL, NULL), 0);
  char *before = filled_picture(f);
  assert_int_equal(judge_as(f, INT64_MAX, note_verdict, f), 0);
  assert_string_equal(f->told, "wait checkpoint-1, keep checkpoint-2, keep checkpoint-3, "
                               "keep checkpoint-4, keep checkpoint-9");
  assert_int_equal(judge_as(f, 0, note_verdict, f), 0);
  assert_non_null(strstr(f->told, "delete checkpoint-1"));
  filled_must_be(f, before);
}

static int stop_at_once(void *ctx, const judged *v) {
  (void)v;
  ++*(int *)ctx;
  return 42;
}

static void a_caller_may_stop_it(void **state) {
  int calls = 0;
  assert_int_equal(judge_as(*state, 0, stop_at_once, &calls), 42);
  assert_int_equal(calls, 1);
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, filled_set_up, filled_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(without_a_policy_all_that_lives_is_kept),
      ON_A_TARGET(a_caller_may_stop_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
