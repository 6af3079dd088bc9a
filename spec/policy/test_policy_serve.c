/* The sandbox inside this process, through the module that a host loads, and all of spec/hostile.
 */

#include "with_cmocka.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lua/policy/policy_serve.h"
#include "policy_peer.h"

static const char good[] = "return { api = 1, sync = function(e) return 'sync', e.name end }";

typedef int call_fn(const char *request, size_t len, char **answer, size_t *answer_len);
typedef void reset_fn(void);

static call_fn *call;
static reset_fn *reset;

static int open_module(void **unused) {
  char path[4096];
  const char *build = getenv("CKPT_BUILD");
  snprintf(path, sizeof path, "%s/libexec/ckpt-policy.so", build ? build : "build");
  void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    fprintf(stderr, "%s\n", dlerror());
    return -1;
  }
  *(void **)&call = dlsym(module, "ckpt_policy_call");
  *(void **)&reset = dlsym(module, "ckpt_policy_reset");
  return call && reset ? 0 : -1;
}

/* Sends the request, frees it, and says what came back. */
static const char *send_text(char *request, char **answer) {
  static char *last;
  size_t len = 0;
  free(last);
  last = NULL;
  assert_non_null(request);
  assert_int_equal(call(request, strlen(request), &last, &len), 0);
  assert_int_equal(strlen(last), len);
  free(request);
  if (answer) *answer = last;
  return peer_kind(last, len);
}

static const char *load(const char *id, const char *text) {
  return send_text(peer_load(id, text, strlen(text)), NULL);
}

static const char *ask(const char *id) {
  return send_text(peer_ask(id, "sync"), NULL);
}

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void meet(const hostile *h) {
  const char *kind = send_text(peer_load("h", h->text, h->len), NULL);
  if (strcmp(h->hook, "load") != 0) {
    if (strcmp(kind, "ok") != 0) fail_msg("%s: load: %s", h->name, kind);
    kind = send_text(peer_ask("h", h->hook), NULL);
  }
  if (!hostile_expects(h, kind)) fail_msg("%s: %s, not %s", h->name, kind, h->kinds);
}

/* What one call costs is bounded by its slowest C function: the limit of the CPU time and that. */
static const double enough_s = 2;

static void each_hostile_policy_comes_back_and_harms_no_other(void **unused) {
  hostile *all = hostile_all();
  int count = 0;
  assert_string_equal(load("good", good), "ok");
  for (const hostile *h = all; h->text; h++, count++) {
    double begin = cpu_s();
    meet(h);
    double took = cpu_s() - begin;
    if (took > enough_s) fail_msg("%s took %.2f s of CPU time", h->name, took);
    if (strcmp(ask("good"), "ok") != 0) fail_msg("%s broke the other state", h->name);
  }
  assert_in_range(count, 100, 1000);
  hostile_free(all);
  reset();
}

static void what_raised_is_dead_and_unknown_until_it_is_loaded_again(void **unused) {
  const char *raises = "return { api = 1, sync = function() error('no') end }";
  assert_string_equal(load("a", raises), "ok");
  assert_string_equal(ask("a"), "error");
  assert_string_equal(ask("a"), "unknown");
  assert_string_equal(load("a", good), "ok");
  assert_string_equal(ask("a"), "ok");
  reset();
}

static void a_wrong_answer_leaves_the_state_alive(void **unused) {
  const char *odd = "return { api = 1, sync = function() return 42 end }";
  assert_string_equal(load("a", odd), "ok");
  assert_string_equal(ask("a"), "answer");
  assert_string_equal(ask("a"), "answer");
  reset();
}

static void a_policy_that_hoards_meets_its_cap_however_little_it_takes_each_time(void **unused) {
  const char *hoards = "local t = {}\n"
                       "return { api = 1, sync = function()\n"
                       "  for _ = 1, 1000 do t[#t + 1] = {} end\n"
                       "  return 'sync'\n"
                       "end }";
  const char *kind = "ok";
  int asked = 0;
  assert_string_equal(load("a", hoards), "ok");
  for (; asked < 1000 && strcmp(kind, "ok") == 0; asked++) kind = ask("a");
  assert_string_equal(kind, "memory");
  assert_in_range(asked, 20, 400);
  reset();
}

static void garbage_of_earlier_requests_is_not_held_against_a_policy(void **unused) {
  const char *litters = "return { api = 1, sync = function()\n"
                        "  local t = {}\n"
                        "  for i = 1, 20000 do t[i] = { i } end\n"
                        "  return 'sync'\n"
                        "end }";
  assert_string_equal(load("a", litters), "ok");
  for (int i = 0; i < 50; i++) assert_string_equal(ask("a"), "ok");
  reset();
}

static void the_least_recently_used_state_gives_way(void **unused) {
  char id[16];
  for (int i = 0; i < POLICY_STATES_MAX; i++) {
    snprintf(id, sizeof id, "s%d", i);
    assert_string_equal(load(id, good), "ok");
  }
  assert_string_equal(ask("s0"), "ok");
  assert_string_equal(load("one more", good), "ok");
  assert_string_equal(ask("s0"), "ok");
  assert_string_equal(ask("s1"), "unknown");
  assert_string_equal(ask("s2"), "ok");
  assert_string_equal(ask("one more"), "ok");
  reset();
}

static void a_dropped_id_is_unknown_and_others_stay(void **unused) {
  assert_string_equal(load("a", good), "ok");
  assert_string_equal(load("b", good), "ok");
  assert_string_equal(send_text(strdup("{\"op\":\"drop\",\"id\":\"a\"}"), NULL), "ok");
  assert_string_equal(send_text(strdup("{\"op\":\"drop\",\"id\":\"never seen\"}"), NULL), "ok");
  assert_string_equal(ask("a"), "unknown");
  assert_string_equal(ask("b"), "ok");
  reset();
  assert_string_equal(ask("b"), "unknown");
}

static void a_failed_load_takes_the_place_of_what_was_loaded_before(void **unused) {
  assert_string_equal(load("a", good), "ok");
  assert_string_equal(load("a", "no Lua"), "syntax");
  assert_string_equal(ask("a"), "unknown");
}

static void a_broken_request_is_answered(void **unused) {
  static const char *const broken[] = {
      "",
      "{",
      "[]",
      "null",
      "7",
      "{\"op\":\"load\"}",
      "{\"op\":\"load\",\"id\":7}",
      "{\"op\":\"load\",\"id\":\"a\"}",
      "{\"op\":\"load\",\"id\":\"a\",\"chain\":7}",
      "{\"op\":\"load\",\"id\":\"a\",\"chain\":[7]}",
      "{\"op\":\"load\",\"id\":\"a\",\"chain\":[{\"name\":7,\"text\":\"\"}]}",
      "{\"op\":\"load\",\"id\":\"a\",\"chain\":[],\"settings\":[]}",
      "{\"op\":\"fly\",\"id\":\"a\"}",
      "{\"op\":7,\"id\":\"a\"}",
      "{\"op\":\"load\",\"op\":\"ask\",\"id\":\"a\"}",
      "{\"op\":\"drop\",\"id\":\"a\"} trailing",
  };
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
    assert_string_equal(send_text(strdup(broken[i]), NULL), "error");
  assert_string_equal(load("a", good), "ok");
  assert_string_equal(send_text(strdup("{\"op\":\"ask\",\"id\":\"a\"}"), NULL), "error");
  assert_string_equal(send_text(strdup("{\"op\":\"ask\",\"id\":\"a\",\"hook\":\"sync\"}"), NULL),
                      "ok");
  reset();
}

static void a_text_over_256_kib_is_refused(void **unused) {
  size_t len = (256 << 10) + 1;
  char *text = malloc(len + 1);
  assert_non_null(text);
  memset(text, ' ', len);
  text[len] = 0;
  assert_string_equal(load("a", text), "error");
#ifndef __SANITIZE_THREAD__ /* so many comments take all the time that a policy has there */
  for (size_t at = 0; at + 8 < len; at += 8) memcpy(text + at, "--or--\n", 7);
#endif
  memcpy(text, good, sizeof good - 1);
  memcpy(text + sizeof good - 1, " --", 3);
  text[len - 1] = 0;
  assert_string_equal(load("a", text), "ok");
  free(text);
  reset();
}

static void all_policies_of_a_chain_live_in_one_state(void **unused) {
  char *answer;
  char *request = strdup("{\"op\":\"load\",\"id\":\"a\",\"chain\":["
                         "{\"name\":\"one\",\"text\":\"return { api = 1 }\"},"
                         "{\"name\":\"two\",\"text\":\"local n = 1 return { api = 1, sync = "
                         "function() return 'skip', 'two says ' .. n end }\"}]}");
  assert_string_equal(send_text(request, NULL), "ok");
  assert_string_equal(send_text(peer_ask("a", "sync"), &answer), "ok");
  assert_non_null(strstr(answer, "\"answer\":\"skip\""));
  assert_non_null(strstr(answer, "\"reason\":\"two says 1\""));
  assert_non_null(strstr(answer, "\"by\":\"two\""));
  reset();
}

static void a_warning_of_the_host_is_told_with_each_load(void **unused) {
  policy_serve *p = policy_serve_new("mind the gap");
  assert_non_null(p);
  for (int i = 0; i < 2; i++) {
    buf answer;
    char *request = peer_load("a", good, strlen(good));
    assert_int_equal(policy_serve_call(p, request, strlen(request), &answer), 0);
    assert_non_null(strstr(answer.data, "\"warnings\":[\"mind the gap\"]"));
    buf_free(&answer);
    free(request);
  }
  assert_int_equal(policy_serve_states(p), 1);
  policy_serve_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_hostile_policy_comes_back_and_harms_no_other),
      cmocka_unit_test(what_raised_is_dead_and_unknown_until_it_is_loaded_again),
      cmocka_unit_test(a_wrong_answer_leaves_the_state_alive),
      cmocka_unit_test(a_policy_that_hoards_meets_its_cap_however_little_it_takes_each_time),
      cmocka_unit_test(garbage_of_earlier_requests_is_not_held_against_a_policy),
      cmocka_unit_test(the_least_recently_used_state_gives_way),
      cmocka_unit_test(a_dropped_id_is_unknown_and_others_stay),
      cmocka_unit_test(a_failed_load_takes_the_place_of_what_was_loaded_before),
      cmocka_unit_test(a_broken_request_is_answered),
      cmocka_unit_test(a_text_over_256_kib_is_refused),
      cmocka_unit_test(all_policies_of_a_chain_live_in_one_state),
      cmocka_unit_test(a_warning_of_the_host_is_told_with_each_load),
  };
  return cmocka_run_group_tests(tests, open_module, NULL);
}
