/* Each function of ckpt.h, with NULL for everything that may be NULL, and in a forked child: the
 * answer is a code, never a crash. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "tmpdir.h"

/* All functions whose first argument is an engine. The engine, or the struct that it fills in, is
 * NULL; an engine with no other arguments at all is the third round. */
#define ENGINE_CALLS(c)                                                                            \
  {"ckpt_fd", ckpt_fd(c)}, {"ckpt_dispatch", ckpt_dispatch(c, 0)},                                 \
      {"ckpt_next", ckpt_next(c, NULL)}, {"ckpt_cancel", ckpt_cancel(c, 7)},                       \
      {"ckpt_ranks_detect", ckpt_ranks_detect(c, NULL)},                                           \
      {"ckpt_dir_is_shared", ckpt_dir_is_shared(c, NULL)},                                         \
      {"ckpt_time_left_detect", ckpt_time_left_detect(c, NULL)},                                   \
      {"ckpt_run_open", ckpt_run_open(c, NULL, NULL)},                                             \
      {"ckpt_run_open", ckpt_run_open(c, &run, NULL)},                                             \
      {"ckpt_task_join", ckpt_task_join(c, NULL, NULL)},                                           \
      {"ckpt_task_join", ckpt_task_join(c, &task, NULL)},                                          \
      {"ckpt_task_join", ckpt_task_join(c, &task, &nowhere)},                                      \
      {"ckpt_locate", ckpt_locate(c, NULL, NULL, NULL)},                                           \
      {"ckpt_locate", ckpt_locate(c, NULL, NULL, &place)},                                         \
      {"ckpt_watchers", ckpt_watchers(c, NULL, on_watcher, NULL)},                                 \
      {"ckpt_watchers", ckpt_watchers(c, "/tmp", NULL, NULL)},                                     \
      {"ckpt_foresee", ckpt_foresee(c, NULL, NULL, NULL)},                                         \
      {"ckpt_foresee", ckpt_foresee(c, NULL, on_foreseen, NULL)},                                  \
      {"ckpt_tree", ckpt_tree(c, NULL, NULL)}, {"ckpt_tree", ckpt_tree(c, NULL, &job)},            \
      {"ckpt_tree_progress", ckpt_tree_progress(c, 7, NULL, NULL)},                                \
      {"ckpt_list", ckpt_list(c, NULL, NULL, NULL)},                                               \
      {"ckpt_restore", ckpt_restore(c, NULL, NULL, NULL)},                                         \
      {"ckpt_verify", ckpt_verify(c, NULL, NULL, NULL, NULL)},                                     \
      {"ckpt_check_logs", ckpt_check_logs(c, NULL)},                                               \
      {"ckpt_doctor", ckpt_doctor(c, NULL, NULL, NULL)},                                           \
      {"ckpt_show", ckpt_show(c, NULL, NULL, NULL)},                                               \
      {"ckpt_show", ckpt_show(c, NULL, NULL, &text)},                                              \
      {"ckpt_pin", ckpt_pin(c, NULL, NULL, 0, NULL)},                                              \
      {"ckpt_pin", ckpt_pin(c, NULL, NULL, 0, id)}, {"ckpt_unpin", ckpt_unpin(c, NULL, NULL)},     \
      {"ckpt_remove", ckpt_remove(c, NULL, NULL, NULL)},                                           \
      {"ckpt_plan", ckpt_plan(c, NULL, NULL, NULL)},                                               \
      {"ckpt_policies", ckpt_policies(c, "/nowhere", NULL, NULL)},                                 \
      {"ckpt_policy_check", ckpt_policy_check(c, NULL, NULL, NULL)},                               \
      {"ckpt_simulate", ckpt_simulate(c, NULL, NULL, NULL, NULL)},                                 \
      {"ckpt_policy_diff", ckpt_policy_diff(c, NULL, NULL, NULL)},                                 \
      {"ckpt_replay_log", ckpt_replay_log(c, NULL, NULL, NULL, NULL)},                             \
      {"ckpt_replay_at", ckpt_replay_at(c, NULL, 0, NULL, NULL)},                                  \
      {"ckpt_comment", ckpt_comment(c, CKPT_COMMENT_USER, NULL, NULL)},                            \
      {"ckpt_comment", ckpt_comment(c, CKPT_COMMENT_USER, "", &job)},                              \
      {"ckpt_mark", ckpt_mark(c, NULL, NULL, NULL)},                                               \
      {"ckpt_collect", ckpt_collect(c, NULL, NULL, NULL)}, {"ckpt_pack", ckpt_pack(c, NULL)},      \
      {"ckpt_repair", ckpt_repair(c, NULL, NULL, NULL)}, {"ckpt_unpack", ckpt_unpack(c, NULL)},    \
      {"ckpt_helper", ckpt_helper(c, NULL, NULL, 0)},                                              \
      {"ckpt_helper", ckpt_helper(c, "ckpt-policy", NULL, 0)},                                     \
      {"ckpt_why", ckpt_why(c, NULL, NULL, NULL, NULL, NULL)},                                     \
      {"ckpt_find_dir", ckpt_find_dir(c, NULL, NULL, 0)}, {                                        \
    "ckpt_find_dir", ckpt_find_dir(c, "/tmp", NULL, 0)                                             \
  }

#define RUN_CALLS(r)                                                                               \
  {"ckpt_run_trainers", ckpt_run_trainers(r, NULL, NULL)},                                         \
      {"ckpt_run_prepare", ckpt_run_prepare(r, NULL, NULL)},                                       \
      {"ckpt_notify", ckpt_notify(r, NULL, NULL)},                                                 \
      {"ckpt_run_get_status", ckpt_run_get_status(r, NULL)},                                       \
      {"ckpt_run_reload", ckpt_run_reload(r, NULL, NULL)},                                         \
      {"ckpt_run_reload", ckpt_run_reload(r, NULL, &job)},                                         \
      {"ckpt_run_reloaded", ckpt_run_reloaded(r, 0, NULL, NULL, NULL)},                            \
      {"ckpt_run_evict", ckpt_run_evict(r, NULL)},                                                 \
      {"ckpt_run_drained", ckpt_run_drained(r, 1, NULL, NULL, NULL)},                              \
      {"ckpt_run_pending", ckpt_run_pending(r, NULL, NULL)}, {                                     \
    "ckpt_run_why", ckpt_run_why(r, NULL, NULL, NULL, NULL, NULL)                                  \
  }

typedef struct answer {
  const char *call;
  int rc;
} answer;

static ckpt_run *run;
static ckpt_place place = {.size = sizeof place};
static ckpt_task *task;
static ckpt_task_options nowhere = {.size = sizeof nowhere};
static ckpt_task_seen seen = {.size = sizeof seen};
static uint64_t job;
static const char *text;
static char id[33];

static int on_foreseen(void *ctx, const ckpt_foreseen *foreseen) {
  (void)ctx, (void)foreseen;
  return 0;
}

static void on_watcher(void *ctx, const ckpt_watcher *watcher) {
  (void)ctx, (void)watcher;
}

static void must_all(const answer *all, size_t count, int rc) {
  for (size_t i = 0; i < count; i++)
    if (all[i].rc != rc) fail_msg("%s: %d, not %d", all[i].call, all[i].rc, rc);
}
#define MUST_ALL(all, rc) must_all(all, sizeof(all) / sizeof *(all), rc)

static void no_engine_is_an_error(void **state) {
  const answer all[] = {ENGINE_CALLS(NULL), {"ckpt_requeue", ckpt_requeue(NULL)}};
  MUST_ALL(all, CKPT_EINVAL);
  assert_non_null(strstr(ckpt_error(NULL), "engine is NULL"));
  assert_int_equal(ckpt_open(NULL, NULL), CKPT_EINVAL);
  assert_int_equal(ckpt_helper_pid(NULL), 0);
  ckpt_comment_stop(NULL);
  ckpt_close(NULL);
  ckpt_log_counted(NULL);
}

static void no_run_is_an_error(void **state) {
  const answer all[] = {RUN_CALLS(NULL),
                        {"ckpt_run_start", ckpt_run_start(NULL)},
                        {"ckpt_run_prove", ckpt_run_prove(NULL)},
                        {"ckpt_task_step", ckpt_task_step(NULL, &seen)}};
  MUST_ALL(all, CKPT_EINVAL);
  assert_int_equal(ckpt_task_end(NULL, 1), 0);
  assert_string_equal(ckpt_run_socket(NULL), "");
  assert_string_equal(ckpt_run_state_id(NULL), "");
  assert_string_equal(ckpt_run_dir(NULL), "");
  assert_string_equal(ckpt_run_state(NULL), "");
  assert_string_equal(ckpt_run_target(NULL), "");
  assert_string_equal(ckpt_run_id(NULL), "");
  ckpt_run_close(NULL);
}

static bool is_fine(const answer *a) {
  return a->rc >= 0 && (strcmp(a->call, "ckpt_fd") == 0 || strcmp(a->call, "ckpt_dispatch") == 0 ||
                        strcmp(a->call, "ckpt_run_trainers") == 0);
}

static ckpt *open_engine(void) {
  ckpt *c;
  assert_int_equal(ckpt_open(&c, NULL), 0);
  return c;
}

static ckpt_run *open_run(ckpt *c, const char *dir) {
  ckpt_run_options o = {.size = sizeof o, .to = tmpdir_path(dir, "store")};
  o.dir = tmpdir_path(dir, "out");
  ckpt_run *r;
  if (ckpt_run_open(c, &r, &o) < 0) fail_msg("%s", ckpt_error(c));
  return r;
}

static void nothing_where_something_is_needed_is_an_error(void **state) {
  ckpt *c = open_engine();
  ckpt_run *r = open_run(c, *state);
  const answer all[] = {ENGINE_CALLS(c), RUN_CALLS(r)};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].rc >= 0 && !is_fine(&all[i])) fail_msg("%s: %d", all[i].call, all[i].rc);
  ckpt_close(c);
}

static int in_a_child(void (*fn)(ckpt *, ckpt_run *), ckpt *c, ckpt_run *r) {
  int status;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    fn(c, r);
    _exit(42);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFEXITED(status)) fail_msg("the child ended by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

static void call_all(ckpt *c, ckpt_run *r) {
  const answer all[] = {ENGINE_CALLS(c), RUN_CALLS(r), {"ckpt_run_start", ckpt_run_start(r)}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].rc != CKPT_EUNSUPPORTED) {
      dprintf(2, "%s: %d\n", all[i].call, all[i].rc);
      _exit(1);
    }
  if (!strstr(ckpt_error(c), "forked child")) _exit(2);
  if (!*ckpt_run_dir(r) || ckpt_helper_pid(c) < 0) _exit(3);
  ckpt_log_counted(c);
  ckpt_run_close(r);
  ckpt_close(c);
}

static void a_forked_child_gets_a_code_and_the_parent_goes_on(void **state) {
  ckpt *c = open_engine();
  ckpt_run *r = open_run(c, *state);
  assert_int_equal(in_a_child(call_all, c, r), 42);
  ckpt_prepared prepared = {.size = sizeof prepared};
  assert_int_equal(ckpt_run_prepare(r, NULL, &prepared), 0);
  assert_int_equal(ckpt_run_start(r), 0);
  assert_int_equal(in_a_child(call_all, c, r), 42);
  assert_true(ckpt_dispatch(c, 0) >= 0);
  ckpt_close(c);
}

/* A pool of workers, say, that lives on when the parent is gone. */
static void let_go_and_stay(ckpt *c, ckpt_run *r) {
  (void)r;
  ckpt_close(c);
}

static void a_child_that_closes_holds_no_lock_of_its_parent(void **state) {
  ckpt *c = open_engine();
  ckpt_run *r = open_run(c, *state);
  int up[2], down[2];
  char byte;
  assert_int_equal(pipe(up), 0);
  assert_int_equal(pipe(down), 0);
  pid_t child = fork();
  if (child == 0) {
    close(down[1]);
    let_go_and_stay(c, r);
    if (write(up[1], "x", 1) != 1 || read(down[0], &byte, 1) != 0) _exit(1);
    _exit(42);
  }
  assert_int_equal(read(up[0], &byte, 1), 1);
  ckpt_place found = {.size = sizeof found};
  assert_int_equal(ckpt_locate(c, tmpdir_path(*state, "out"), NULL, &found), 0);
  assert_true(found.held); /* the parent's is not gone */
  ckpt_close(c);
  c = open_engine();
  open_run(c, *state);
  ckpt_close(c);
  close(down[1]);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  close(up[0]), close(up[1]), close(down[0]);
}

/* A function that is added to the header has to be added here. */
static void no_function_of_the_header_is_left_out(void **state) {
  static const char *const others[] = {"ckpt_version(", "ckpt_status_name(", "ckpt_class(",
                                       "ckpt_standing_name("};
  size_t len, count = 0;
  char *header = read_file("engine/ckpt.h", &len), *here = read_file(__FILE__, &len);
  assert_non_null(header);
  assert_non_null(here);
  for (const char *at = header; (at = strstr(at, "ckpt_")); at++) {
    size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
    const char *line = at;
    char name[80];
    while (line > header && line[-1] != '\n') line--;
    bool declared = strncmp(line, "int ", 4) == 0 || strncmp(line, "void ", 5) == 0 ||
                    strncmp(line, "const ", 6) == 0;
    if (at[n] != '(' || !declared || strcspn(line, "(") != (size_t)(at + n - line)) continue;
    snprintf(name, sizeof name, "%.*s(", (int)n, at);
    bool other = false;
    for (size_t i = 0; i < 4; i++) other = other || strcmp(name, others[i]) == 0;
    if (!other && !strstr(here, name)) fail_msg("%s) is called nowhere here", name);
    count++;
  }
  assert_true(count > 40);
  free(header);
  free(here);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_engine_is_an_error),
      cmocka_unit_test(no_run_is_an_error),
      IN_A_DIRECTORY(nothing_where_something_is_needed_is_an_error),
      IN_A_DIRECTORY(a_forked_child_gets_a_code_and_the_parent_goes_on),
      IN_A_DIRECTORY(a_child_that_closes_holds_no_lock_of_its_parent),
      cmocka_unit_test(no_function_of_the_header_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
