/* What the questions reach of a policy, told with the answers. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "lua/policy/policy_state.h"
#include "policy_peer.h"

typedef struct held {
  policy_state *s;
  json_t *said; /* the last answer */
} held;

static json_t *parse(char *text) {
  json_t *json = NULL;
  assert_non_null(text);
  assert_int_equal(js_parse_large(text, strlen(text), "text", &json, NULL), 0);
  free(text);
  return json;
}

/* Takes the answer over, and says of which kind it is. */
static const char *take(held *h, buf *answer) {
  static char kind[32];
  json_decref(h->said);
  h->said = parse(buf_take(answer));
  const char *why = json_string_value(json_object_get(h->said, "kind"));
  snprintf(kind, sizeof kind, "%s", why ? why : "ok");
  return kind;
}

static const char *load(held *h, const char *text, size_t len) {
  buf answer;
  char *printed = peer_load("a", text, len);
  size_t size = strlen(printed);
  json_t *request = parse(printed);
  json_object_set_new(request, "cover", json_true());
  buf_init(&answer, POLICY_ANSWER_MAX);
  assert_int_equal(policy_state_load(request, size, NULL, &h->s, &answer), 0);
  json_decref(request);
  return take(h, &answer);
}

static const char *begin(held *h, const char *text) {
  *h = (held){0};
  return load(h, text, strlen(text));
}

static const char *ask(held *h, const char *hook) {
  buf answer;
  bool dead;
  json_t *request = parse(peer_ask("a", hook));
  buf_init(&answer, POLICY_ANSWER_MAX);
  assert_int_equal(
      policy_state_ask(h->s, &(policy_request){.json = request, .size = 500}, &answer, &dead), 0);
  json_decref(request);
  if (dead) {
    policy_state_close(h->s);
    h->s = NULL;
  }
  return take(h, &answer);
}

static void drop(held *h) {
  policy_state_close(h->s);
  json_decref(h->said);
}

/* Compares with a part of what was covered: "files" or "rules". */
static void tells(const held *h, const char *part, const char *expected) {
  char *got = json_dumps(json_object_get(json_object_get(h->said, "covered"), part),
                         JSON_COMPACT | JSON_SORT_KEYS);
  assert_string_equal(got ? got : "nothing", expected);
  free(got);
}

static void each_line_and_word_is_told_once_when_it_is_reached(void **unused) {
  held h;
  assert_string_equal(begin(&h, "return {\n  api = 1,\n  sync = function(e, memory)\n"
                                "    if memory.n then\n      return 'skip'\n    end\n"
                                "    memory.n = e.step\n    return 'sync'\n  end,\n"
                                "  keep = keep.last(1),\n}\n"),
                      "ok");
  tells(&h, "files", "[{\"code\":[1,4,5,7,8,9,10,11],\"policy\":\"p\",\"reached\":[1,9,10,11]}]");
  tells(&h, "rules", "{\"made\":[{\"place\":\"p.lua:10: keep.last\",\"policy\":\"p\"}]}");
  assert_string_equal(ask(&h, "sync"), "ok");
  tells(&h, "files", "[{\"code\":[],\"policy\":\"p\",\"reached\":[4,7,8]}]");
  tells(&h, "rules", "{}");
  assert_string_equal(ask(&h, "keep"), "ok");
  tells(&h, "files", "[{\"code\":[],\"policy\":\"p\",\"reached\":[]}]");
  tells(&h, "rules", "{\"no\":[1],\"yes\":[1]}");
  assert_string_equal(ask(&h, "keep"), "ok");
  tells(&h, "rules", "{}");
  drop(&h);
}

static void rules_in_others_and_those_of_must_are_heard(void **unused) {
  held h;
  assert_string_equal(begin(&h, "return { api = 1, keep = any { keep.last(1), keep.last(9) },\n"
                                "would_keep = keep.every_steps(2),\n"
                                "must = { never_fewer_than(2),\n"
                                "survives.last(9),\nfunction() return true end } }"),
                      "ok");
  tells(&h, "rules",
        "{\"made\":[{\"place\":\"p.lua:1: keep.last\",\"policy\":\"p\"},"
        "{\"place\":\"p.lua:1: keep.last\",\"policy\":\"p\"},"
        "{\"place\":\"p.lua:2: keep.every_steps\",\"policy\":\"p\"},"
        "{\"place\":\"p.lua:3: never_fewer_than(2)\",\"policy\":\"p\"},"
        "{\"place\":\"p.lua:4: survives.last(9)\",\"policy\":\"p\"},"
        "{\"place\":\"p.lua:5: its function\",\"policy\":\"p\"}]}");
  assert_string_equal(ask(&h, "keep"), "ok");
  tells(&h, "rules", "{\"no\":[1],\"yes\":[1,2,4,5,6]}");
  drop(&h);
}

static void a_failure_tells_what_it_reached(void **unused) {
  static const struct {
    const char *body, *kind;
  } ends[] = {
      {"error('x')", "error"},
      {"while true do end", "budget"},
      {"local t = {} while true do t[#t + 1] = {} end", "memory"},
      {"return 42", "answer"},
  };
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    held h;
    char text[200];
    snprintf(text, sizeof text, "return { api = 1, sync = function()\n%s\nend }", ends[i].body);
    assert_string_equal(begin(&h, text), "ok");
    assert_string_equal(ask(&h, "sync"), ends[i].kind);
    tells(&h, "files", "[{\"code\":[],\"policy\":\"p\",\"reached\":[2]}]");
    drop(&h);
    snprintf(text, sizeof text, "local function f()\n%s\nend\n f() return {}", ends[i].body);
    assert_string_not_equal(begin(&h, text), "ok");
    tells(&h, "files", "[{\"code\":[2,3,4],\"policy\":\"p\",\"reached\":[2,3,4]}]");
    drop(&h);
  }
}

static void who_does_not_ask_is_told_nothing(void **unused) {
  const char *text = "return { api = 1 }";
  buf answer;
  held h = {0};
  json_t *request = parse(peer_load("a", text, strlen(text)));
  buf_init(&answer, POLICY_ANSWER_MAX);
  assert_int_equal(policy_state_load(request, 100, NULL, &h.s, &answer), 0);
  json_decref(request);
  assert_string_equal(take(&h, &answer), "ok");
  assert_null(json_object_get(h.said, "covered"));
  drop(&h);
}

/* Each has the ends that it has where nobody counts. Those that run until their time is over differ in
 * nothing that counts, and take long. */
static void hostile_policies_are_bounded_while_they_are_counted(void **unused) {
  hostile *all = hostile_all();
  for (const hostile *h = all; h->text; h++) {
    if (strcmp(h->kinds, "budget") == 0) continue;
    held to = {0};
    const char *kind = load(&to, h->text, h->len);
    if (strcmp(h->hook, "load") != 0 && to.s) kind = ask(&to, h->hook);
    if (!hostile_expects(h, kind)) fail_msg("%s: %s, not %s", h->name, kind, h->kinds);
    assert_non_null(json_object_get(to.said, "covered"));
    drop(&to);
  }
  hostile_free(all);
}

#ifndef __SANITIZE_THREAD__ /* so many rules take all the time that a policy has there */
static void a_policy_of_a_thousand_rules_is_told_whole(void **unused) {
  static const char head[] = "local t = {}\n", each[] = "t[#t+1]=keep.last(1)\n",
                    tail[] = "return { api = 1, keep = any(t) }\n";
  held h = {0};
  buf text;
  buf_init(&text, POLICY_TEXT_MAX);
  buf_str(&text, head);
  while (text.len + sizeof each + sizeof tail < POLICY_TEXT_MAX / 8) buf_str(&text, each);
  buf_str(&text, tail);
  assert_string_equal(load(&h, text.data, text.len), "ok");
  const json_t *rules = json_object_get(json_object_get(h.said, "covered"), "rules");
  assert_true(json_array_size(json_object_get(rules, "made")) > 1000);
  buf_free(&text);
  drop(&h);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_line_and_word_is_told_once_when_it_is_reached),
      cmocka_unit_test(rules_in_others_and_those_of_must_are_heard),
      cmocka_unit_test(a_failure_tells_what_it_reached),
      cmocka_unit_test(who_does_not_ask_is_told_nothing),
      cmocka_unit_test(hostile_policies_are_bounded_while_they_are_counted),
#ifndef __SANITIZE_THREAD__
      cmocka_unit_test(a_policy_of_a_thousand_rules_is_told_whole),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
