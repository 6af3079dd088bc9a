#include "with_cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "decision/policy_link.h"
#include "policy_helper.h"
#include "tmpdir.h"

static const int64_t second = 1000000000;

/* A clock that a test can set forward, let run fast, or stop. */
static int64_t ahead, each_call, stands_at;
static int64_t later(const io *io, io_clock clock) {
  if (stands_at) return stands_at;
  ahead += each_call;
  return io_system()->now(io_system(), clock) + ahead;
}
static io skipping;

typedef struct fixture {
  char *dir;
  policy_link *link;
  buf answer;
  err e;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  f->dir = tmpdir_new();
  policy_helper_install(f->dir);
  buf_init(&f->answer, 1 << 20);
  ahead = 0;
  skipping = *io_system();
  skipping.now = later;
  policy_link_options options = {.libexec = f->dir, .io = &skipping};
  *state = f;
  return policy_link_open(&options, &f->link, NULL);
}

static int tear_down(void **state) {
  fixture *f = *state;
  policy_link_close(f->link);
  tmpdir_remove(f->dir);
  buf_free(&f->answer);
  free(f);
  return 0;
}

/* What the helper is to do. */
static int tell(fixture *f, const char *order) {
  json_t *request =
      json_pack("{s:s, s:s, s:[{s:s}]}", "op", "load", "id", "x", "chain", "text", order);
  char *text = json_dumps(request, 0);
  buf_clear(&f->answer);
  f->e = (err){0};
  int rc = policy_link_call(f->link, text, strlen(text), &f->answer, &f->e);
  free(text);
  json_decref(request);
  return rc;
}

static void works(fixture *f) {
  if (tell(f, "{\"ok\":1}") < 0) fail_msg("%s", f->e.text);
  assert_string_equal(f->answer.data, "{\"ok\":1}");
}

static void a_request_gets_its_answer(void **state) {
  fixture *f = *state;
  assert_int_equal(policy_link_pid(f->link), 0);
  assert_int_equal(policy_link_generation(f->link), 0);
  works(f);
  pid_t pid = policy_link_pid(f->link);
  assert_true(pid > 0);
  for (int i = 0; i < 100; i++) works(f);
  assert_int_equal(policy_link_pid(f->link), pid);
  assert_int_equal(policy_link_generation(f->link), 1);
}

static void answers_are_appended(void **state) {
  fixture *f = *state;
  works(f);
  buf_str(&f->answer, "+");
  assert_int_equal(policy_link_call(f->link, "{}", 2, &f->answer, NULL), 0);
  assert_string_equal(f->answer.data, "{\"ok\":1}+{\"ok\":true}");
}

static void long_requests_and_answers_go_through(void **state) {
  fixture *f = *state;
  enum { LEN = 900000 };
  char *text = malloc(LEN + 1);
  memset(text, 'x', LEN);
  text[LEN] = '\0';
  assert_int_equal(tell(f, text), 0);
  assert_int_equal(f->answer.len, LEN);
  assert_memory_equal(f->answer.data, text, LEN);
  free(text);
}

/* Each of these ends the helper; the call says how, and the next one has a new helper. */
static void a_helper_that_fails_is_an_error_once(void **state) {
  static const struct {
    const char *order, *told;
  } ways[] = {
      {"!exit 3", "it ended with exit code 3"},
      {"!abort", "signal ABRT killed it"},
      {"!spin", "CPU time"},
      {"!close", "is gone"},
      {"!half", "it ended with exit code 0"},
      {"!huge", "2147483648 bytes"},
      {"!long 2000000", "no room"},
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    works(f);
    uint64_t generation = policy_link_generation(f->link);
    /* On a busy machine it does not get so much of the processor before its time is over. */
    if (strcmp(ways[i].order, "!spin") == 0) stands_at = skipping.now(&skipping, IO_MONO);
    assert_int_equal(tell(f, ways[i].order), ERR_POLICY);
    stands_at = 0;
    assert_int_equal(f->answer.len, 0);
    /* Had it waited for its time to run out, the text would be another one. */
    if (!strstr(f->e.text, ways[i].told)) fail_msg("%s: %s", ways[i].order, f->e.text);
    assert_int_equal(policy_link_pid(f->link), 0);
    works(f);
    assert_int_equal(policy_link_generation(f->link), generation + 1);
    ahead += 61 * second; /* so that it does not rest */
  }
}

static void one_that_says_nothing_is_killed_after_five_seconds(void **state) {
  fixture *f = *state;
  works(f);
  each_call = second / 10;
  int64_t begun = skipping.now(&skipping, IO_MONO);
  assert_int_equal(tell(f, "!hang"), ERR_POLICY);
  assert_in_range(skipping.now(&skipping, IO_MONO) - begun, 5 * second, 7 * second);
  assert_non_null(strstr(f->e.text, "in time"));
  each_call = 0;
  works(f);
}

static void an_answer_that_nobody_asked_for_is_never_taken_for_the_next(void **state) {
  fixture *f = *state;
  assert_int_equal(tell(f, "!extra"), 0);
  assert_string_equal(f->answer.data, "{\"ok\":true}");
  usleep(100000);
  works(f);
  assert_int_equal(policy_link_generation(f->link), 2);
}

static void one_that_died_between_two_requests_costs_no_answer(void **state) {
  fixture *f = *state;
  works(f);
  pid_t pid = policy_link_pid(f->link);
  kill(pid, SIGKILL);
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
  works(f);
  assert_int_not_equal(policy_link_pid(f->link), pid);
  assert_int_equal(policy_link_generation(f->link), 2);
}

static void after_many_deaths_it_rests_and_answers_at_once(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 6; i++) assert_int_equal(tell(f, "!exit 1"), ERR_POLICY);
  uint64_t generation = policy_link_generation(f->link);
  int64_t pause = second;
  for (int i = 0; i < 4; i++) {
    int64_t begun = io_system()->now(io_system(), IO_MONO);
    assert_int_equal(tell(f, "{\"ok\":1}"), ERR_POLICY);
    assert_non_null(strstr(f->e.text, "too often"));
    assert_true(io_system()->now(io_system(), IO_MONO) - begun < second / 10);
    assert_int_equal(policy_link_generation(f->link), generation);
    ahead += pause - second / 4; /* not yet */
    assert_int_equal(tell(f, "{\"ok\":1}"), ERR_POLICY);
    assert_int_equal(policy_link_generation(f->link), generation);
    ahead += second / 4 + second / 100;
    assert_int_equal(tell(f, "!exit 1"), ERR_POLICY);
    assert_int_equal(policy_link_generation(f->link), ++generation);
    pause *= 2;
  }
  ahead += 61 * second;
  for (int i = 0; i < 5; i++) { /* forgotten by then */
    works(f);
    assert_int_equal(tell(f, "!exit 1"), ERR_POLICY);
  }
  works(f);
}

static void a_helper_that_cannot_be_started_is_another_error(void **state) {
  char *dir = *state;
  policy_link *link;
  buf answer;
  err e = {0};
  buf_init(&answer, 1000);
  policy_link_options options = {.libexec = dir};
  assert_int_equal(policy_link_open(&options, &link, &e), 0);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(policy_link_call(link, "{}", 2, &answer, &e), ERR_NOENT);
    assert_non_null(strstr(e.text, dir));
    assert_non_null(strstr(e.text, "CKPT_LIBEXEC"));
  }
  assert_int_equal(policy_link_generation(link), 0);
  policy_link_close(link);
  write_file(tmpdir_path(dir, "ckpt-policy"), "#!/no/such/interpreter\n");
  policy_link_open(&options, &link, &e);
  assert_true(policy_link_call(link, "{}", 2, &answer, &e) < 0);
  policy_link_close(link);
  policy_link_close(NULL);
  buf_free(&answer);
}

static void the_secrets_of_the_host_stay_with_it(void **state) {
  fixture *f = *state;
  char path[64];
  setenv("AWS_SECRET_ACCESS_KEY", "swordfish", 1);
  setenv("CKPT_SOCKET", "/x", 1);
  works(f);
  snprintf(path, sizeof path, "/proc/%d/environ", (int)policy_link_pid(f->link));
  size_t len;
  char *text = read_file(path, &len);
  for (size_t i = 0; i < len; i++)
    if (text[i] == '\0') text[i] = '\n';
  assert_null(strstr(text, "swordfish"));
  assert_null(strstr(text, "CKPT_SOCKET"));
  free(text);
}

static void a_request_over_the_limit_is_refused(void **state) {
  fixture *f = *state;
  char *much = calloc(1, POLICY_FRAME_MAX + 1);
  assert_int_equal(policy_link_call(f->link, much, POLICY_FRAME_MAX + 1, &f->answer, &f->e),
                   ERR_LIMIT);
  free(much);
  works(f);
}

/* ---- the real one, in both tiers ---- */

typedef struct real {
  policy_link *link;
  buf answer;
} real;

static bool open_real(real *r, bool in_process) {
  char libexec[4096], file[4200];
  const char *build = getenv("CKPT_BUILD");
  if (!build) return false;
  snprintf(libexec, sizeof libexec, "%s/libexec", build);
  snprintf(file, sizeof file, "%s/ckpt-policy%s", libexec, in_process ? ".so" : "");
  if (!path_exists(file)) return false;
  policy_link_options options = {.libexec = libexec, .in_process = in_process};
  buf_init(&r->answer, 1 << 20);
  return policy_link_open(&options, &r->link, NULL) == 0;
}

static json_t *ask_real(real *r, const char *request) {
  err e = {0};
  json_t *answer = NULL;
  buf_clear(&r->answer);
  if (policy_link_call(r->link, request, strlen(request), &r->answer, &e) < 0)
    fail_msg("%s: %s", request, e.text);
  if (js_parse(r->answer.data, r->answer.len, "answer", &answer, &e) < 0) fail_msg("%s", e.text);
  return answer;
}

static void expect_real(real *r, const char *request, const char *kind) {
  json_t *answer = ask_real(r, request);
  if (kind)
    assert_string_equal(json_string_value(json_object_get(answer, "kind")), kind);
  else if (!json_is_true(json_object_get(answer, "ok")))
    fail_msg("%s: %s", request, r->answer.data);
  json_decref(answer);
}

static void check_real(bool in_process) {
  real r = {0};
  if (!open_real(&r, in_process)) skip();
  static const char load[] = "{\"op\":\"load\",\"id\":\"a\",\"chain\":[{\"name\":\"p\",\"text\":"
                             "\"return { api = 1, sync = function(e) if e.event == 'loop' then "
                             "while true do end end return 'skip', 'as told' end }\"}],"
                             "\"settings\":{}}";
  expect_real(&r, load, NULL);
  json_t *answer = ask_real(&r, "{\"op\":\"ask\",\"id\":\"a\",\"hook\":\"sync\",\"event\":"
                                "{\"event\":\"complete\"},\"memory\":{}}");
  assert_string_equal(json_string_value(json_object_get(answer, "answer")), "skip");
  assert_string_equal(json_string_value(json_object_get(answer, "reason")), "as told");
  json_decref(answer);
  expect_real(&r,
              "{\"op\":\"ask\",\"id\":\"a\",\"hook\":\"sync\",\"event\":{\"event\":\"loop\"},"
              "\"memory\":{}}",
              "budget");
  expect_real(&r,
              "{\"op\":\"ask\",\"id\":\"a\",\"hook\":\"sync\",\"event\":{\"event\":\"complete\"}"
              ",\"memory\":{}}",
              "unknown");
  expect_real(&r, load, NULL);
  expect_real(&r, "{\"op\":\"drop\",\"id\":\"a\"}", NULL);
  expect_real(&r,
              "{\"op\":\"load\",\"id\":\"a\",\"chain\":[{\"name\":\"p\",\"text\":\"x y\"}],"
              "\"settings\":{}}",
              "syntax");
  policy_link_close(r.link);
  buf_free(&r.answer);
}

static void the_real_helper_speaks_the_protocol(void **unused) {
  check_real(false);
}

static void the_module_speaks_the_protocol(void **unused) {
  check_real(true);
}

static void a_module_that_is_none_of_ours_is_refused(void **state) {
  char *dir = *state;
  policy_link *link;
  buf answer;
  err e = {0};
  buf_init(&answer, 1000);
  policy_link_options options = {.libexec = dir, .in_process = true};
  assert_int_equal(policy_link_open(&options, &link, &e), 0);
  assert_true(policy_link_call(link, "{}", 2, &answer, &e) < 0);
  assert_non_null(strstr(e.text, "ckpt-policy.so"));
  write_file(tmpdir_path(dir, "ckpt-policy.so"), "this is no library");
  assert_true(policy_link_call(link, "{}", 2, &answer, &e) < 0);
  assert_non_null(strstr(e.text, "ckpt-policy.so"));
  assert_int_equal(policy_link_generation(link), 0);
  policy_link_close(link);
  buf_free(&answer);
}

#define WITH_HELPER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      WITH_HELPER(a_request_gets_its_answer),
      WITH_HELPER(answers_are_appended),
      WITH_HELPER(long_requests_and_answers_go_through),
      WITH_HELPER(a_helper_that_fails_is_an_error_once),
      WITH_HELPER(one_that_says_nothing_is_killed_after_five_seconds),
      WITH_HELPER(an_answer_that_nobody_asked_for_is_never_taken_for_the_next),
      WITH_HELPER(one_that_died_between_two_requests_costs_no_answer),
      WITH_HELPER(after_many_deaths_it_rests_and_answers_at_once),
      IN_A_DIRECTORY(a_helper_that_cannot_be_started_is_another_error),
      WITH_HELPER(the_secrets_of_the_host_stay_with_it),
      WITH_HELPER(a_request_over_the_limit_is_refused),
      cmocka_unit_test(the_real_helper_speaks_the_protocol),
      cmocka_unit_test(the_module_speaks_the_protocol),
      IN_A_DIRECTORY(a_module_that_is_none_of_ours_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
