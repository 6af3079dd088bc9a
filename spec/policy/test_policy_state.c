#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/policy/policy_state.h"
#include "policy_peer.h"

typedef struct held {
  policy_state *s;
  buf answer;
} held;

static json_t *parse(char *text) {
  json_t *json = NULL;
  assert_non_null(text);
  assert_int_equal(js_parse(text, strlen(text), "request", &json, NULL), 0);
  free(text);
  return json;
}

static const char *load(held *h, const char *text) {
  json_t *request = parse(peer_load("a", text, strlen(text)));
  buf_init(&h->answer, POLICY_ANSWER_MAX);
  assert_int_equal(policy_state_load(request, strlen(text), NULL, &h->s, &h->answer), 0);
  json_decref(request);
  return peer_kind(h->answer.data, h->answer.len);
}

static const char *ask(held *h, bool *dead) {
  json_t *request = parse(peer_ask("a", "sync"));
  buf_clear(&h->answer);
  assert_int_equal(
      policy_state_ask(h->s, &(policy_request){.json = request, .size = 500}, &h->answer, dead), 0);
  json_decref(request);
  return peer_kind(h->answer.data, h->answer.len);
}

static void drop(held *h) {
  policy_state_close(h->s);
  buf_free(&h->answer);
}

static bool says(const held *h, const char *text) {
  return strstr(h->answer.data, text) != NULL;
}

static void load_answers_the_data_of_a_policy(void **unused) {
  held h;
  assert_string_equal(load(&h, "return { api = 1, unit = 'checkpoint-{step}/', exclude = { '*.x' },"
                               " queue = 'all', on_error = function() return 'skip' end }"),
                      "ok");
  assert_true(says(&h, "\"unit\":[\"checkpoint-{step}/\"]"));
  assert_true(says(&h, "\"exclude\":[\"*.x\"]"));
  assert_true(says(&h, "\"on_error\":[\"p\"]"));
  assert_non_null(h.s);
  drop(&h);
}

static void a_file_that_is_wrong_leaves_no_state_and_names_its_line(void **unused) {
  held h;
  assert_string_equal(load(&h, "\nreturn {"), "syntax");
  assert_true(says(&h, "p.lua:2: "));
  assert_null(h.s);
  drop(&h);
  assert_string_equal(load(&h, "\n\nerror('no')"), "error");
  assert_true(says(&h, "p.lua:3: no"));
  assert_null(h.s);
  drop(&h);
}

static void an_answer_comes_with_its_reason_and_what_is_remembered(void **unused) {
  held h;
  bool dead;
  assert_string_equal(load(&h, "return { api = 1, sync = function(e, memory)\n"
                               "memory.last = e.step return 'skip', 'not now' end }"),
                      "ok");
  assert_string_equal(ask(&h, &dead), "ok");
  assert_false(dead);
  assert_true(says(&h, "\"answer\":\"skip\"") && says(&h, "\"reason\":\"not now\""));
  assert_true(says(&h, "\"by\":\"p\"") && says(&h, "\"last\":3"));
  drop(&h);
}

/* What the sandbox puts in place of Lua's own does the same, in one order. */
static void what_is_wrapped_behaves_as_lua_does(void **unused) {
  static const char *const claims[] = {
      "local s = '' for k in pairs({ b = 1, a = 2, [10] = 3, [9] = 4, [true] = 5 }) do\n"
      "  s = s .. tostring(k) .. ' ' end return s == '9 10 a b true '",
      "return next({}) == nil and next({ y = 1, x = 2 }) == 'x' and next({ y = 1, x = 2 }, 'x') == "
      "'y'",
      "local n = 0 for _ in pairs({ 1, 2, 3 }) do n = n + 1 end return n == 3",
      "local t = { 5, 3, 4, 1, 2 } table.sort(t) return table.concat(t) == '12345'",
      "local t = { 5, 3, 4 } table.sort(t, function(a, b) return a > b end)\n"
      "return table.concat(t) == '543'",
      "local t = { 'b1', 'a1', 'b2', 'a2' }\n"
      "table.sort(t, function(a, b) return a:sub(1, 1) < b:sub(1, 1) end)\n"
      "return table.concat(t) == 'a1a2b1b2'",
      "local t = { 1, 2 } table.insert(t, 4) table.insert(t, 3, 3) table.insert(t, 1, 0)\n"
      "return table.concat(t) == '01234'",
      "local t = { 1, 2, 3 } return table.remove(t, 1) == 1 and table.remove(t) == 3 and #t == 1\n"
      "  and table.remove(t, 9) == nil",
      "return ('a.b'):find('.', 1, true) == 2 and ('abc'):match('b') == 'b'",
      "return ('aXb'):gsub('X', { X = 'y' }) == 'ayb' and (('ab'):gsub('%w', '%0%0')) == 'aabb'",
      "return (('abc'):gsub('%w', function(c) return c:upper() end, 2)) == 'ABc'",
      "local s = '' for w in ('a bc'):gmatch('%a+') do s = s .. w .. ';' end return s == 'a;bc;'",
      "return ('%5.2f|%s|%d|%%'):format(1.234, true, 7) == ' 1.23|true|7|%'",
      "return ('%s %s'):format(nil, 'x') == 'nil x' and ('x'):rep(3) == 'xxx'",
      "return math.floor(1.5) == 1 and #('x'):rep(65536) == 65536",
      "return tostring(1e15) == '1e+15' and tostring(nil) == 'nil' and tonumber('0x10') == 16",
  };
  for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
    held h;
    bool dead;
    char text[500];
    snprintf(text, sizeof text,
             "local function claim() %s end\n"
             "return { api = 1, sync = function() return claim() and 'sync' or 'skip' end }",
             claims[i]);
    assert_string_equal(load(&h, text), "ok");
    if (strcmp(ask(&h, &dead), "ok") != 0 || !says(&h, "\"sync\""))
      fail_msg("%s: %s", claims[i], h.answer.data);
    drop(&h);
  }
}

static void no_opinion_is_null(void **unused) {
  held h;
  bool dead;
  assert_string_equal(load(&h, "return { api = 1, sync = function() end }"), "ok");
  assert_string_equal(ask(&h, &dead), "ok");
  assert_true(says(&h, "{\"ok\":true,\"answer\":null"));
  assert_false(says(&h, "reason"));
  drop(&h);
}

static void what_ends_a_state_says_that_it_is_dead(void **unused) {
  static const struct {
    const char *body, *kind;
    bool dead;
  } ends[] = {
      {"error('x')", "error", true},
      {"error({})", "error", true},
      {"while true do end", "budget", true},
      {"local t = {} while true do t[#t + 1] = {} end", "memory", true},
      {"return 42", "answer", false},
      {"return 'sync'", "ok", false},
  };
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    held h;
    bool dead;
    char text[200];
    snprintf(text, sizeof text, "return { api = 1, sync = function() %s end }", ends[i].body);
    assert_string_equal(load(&h, text), "ok");
    assert_string_equal(ask(&h, &dead), ends[i].kind);
    assert_int_equal(dead, ends[i].dead);
    drop(&h);
  }
}

static void a_request_without_its_parts_is_refused_and_harms_nothing(void **unused) {
  static const char *const wrong[] = {"{}", "{\"hook\":7}", "{\"hook\":null,\"event\":{}}"};
  held h;
  bool dead;
  assert_string_equal(load(&h, "return { api = 1, sync = function() return 'sync' end }"), "ok");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    json_t *request = parse(strdup(wrong[i]));
    buf_clear(&h.answer);
    assert_int_equal(
        policy_state_ask(h.s, &(policy_request){.json = request, .size = 10}, &h.answer, &dead), 0);
    assert_string_equal(peer_kind(h.answer.data, h.answer.len), "error");
    assert_false(dead);
    json_decref(request);
  }
  assert_string_equal(ask(&h, &dead), "ok");
  drop(&h);
}

static void an_answer_of_any_size_fits_or_is_refused(void **unused) {
  held h;
  bool dead;
  assert_string_equal(
      load(&h, "return { api = 1, sync = function() return 'sync', ('x'):rep(100) end }"), "ok");
  for (size_t max = 60; max < 400; max += 7) {
    buf small;
    buf_init(&small, max);
    json_t *request = parse(peer_ask("a", "sync"));
    int rc = policy_state_ask(h.s, &(policy_request){.json = request, .size = 10}, &small, &dead);
    assert_true(rc == 0 || rc == ERR_LIMIT);
    assert_string_equal(ask(&h, &dead), "ok");
    json_decref(request);
    buf_free(&small);
  }
  drop(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(load_answers_the_data_of_a_policy),
      cmocka_unit_test(a_file_that_is_wrong_leaves_no_state_and_names_its_line),
      cmocka_unit_test(an_answer_comes_with_its_reason_and_what_is_remembered),
      cmocka_unit_test(what_is_wrapped_behaves_as_lua_does),
      cmocka_unit_test(no_opinion_is_null),
      cmocka_unit_test(what_ends_a_state_says_that_it_is_dead),
      cmocka_unit_test(a_request_without_its_parts_is_refused_and_harms_nothing),
      cmocka_unit_test(an_answer_of_any_size_fits_or_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
