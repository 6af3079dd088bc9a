#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "decision/policy.h"
#include "policy_helper.h"

static decision decide(detect_state state) {
  detect_unit facts = {.path = "ck-3", .state = state, .reason = "as it is"};
  return policy_builtin(&facts);
}

static void what_is_complete_is_saved(void **unused) {
  assert_int_equal(decide(DETECT_COMPLETE).action, POLICY_SAVE);
}

static void what_is_unproven_is_saved_only_after_a_structural_check(void **unused) {
  assert_int_equal(decide(DETECT_UNPROVEN).action, POLICY_SAVE_IF_SOUND);
  detect_unit missing = {.state = DETECT_UNPROVEN, .lacking = true};
  assert_int_equal(policy_builtin(&missing).action, POLICY_WAIT);
  detect_unit first = {.state = DETECT_UNPROVEN, .alone = true};
  assert_int_equal(policy_builtin(&first).action, POLICY_WAIT);
}

static void what_is_open_broken_or_gone_is_left_alone(void **unused) {
  assert_int_equal(decide(DETECT_OPEN).action, POLICY_WAIT);
  assert_int_equal(decide(DETECT_BROKEN).action, POLICY_WAIT);
  assert_int_equal(decide(DETECT_GONE).action, POLICY_WAIT);
}

static void a_state_that_is_not_known_is_left_alone(void **unused) {
  assert_int_equal(decide((detect_state)99).action, POLICY_WAIT);
}

static void the_decision_names_its_policy_and_the_facts_reason(void **unused) {
  for (int state = DETECT_OPEN; state <= DETECT_GONE; state++) {
    decision d = decide((detect_state)state);
    assert_string_equal(d.policy, "builtin");
    assert_string_equal(d.reason, "as it is");
    assert_int_equal(d.queue, POLICY_NEWEST);
  }
}

/* ---- the chain ---- */

static const char all_hooks[] =
    "{\"ok\":true,\"has\":{\"ready\":[\"p\"],\"sync\":[\"p\"],\"queue\":[\"p\"],\"keep\":[\"p\"],"
    "\"keep_local\":[\"p\"],\"restore\":[\"p\"],\"on_error\":[\"p\"],\"on_preempt\":[\"p\"],"
    "\"on_committed\":[\"p\"],\"on_failed\":[\"p\"]}}";

static const detect_unit complete = {.path = "ck-3",
                                     .name = "ck-3",
                                     .group = "",
                                     .kind = MATCH_DIR,
                                     .step = 3,
                                     .state = DETECT_COMPLETE,
                                     .reason = "as it is"};
static const policy_facts facts = {.event = "complete", .group = "", .unit = &complete};

/* A chain with this one hook. */
static policy *with_hook(policy_world *w, const char *hook) {
  char text[200];
  snprintf(text, sizeof text, "{\"ok\":true,\"has\":{\"%s\":[\"p\"]}}", hook);
  return policy_world_must(w, text);
}

/* The decision when the helper answers this; what is then left in memory goes to *left. */
static decision decide_on(policy *p, const char *answer, char **left) {
  decision d;
  char *memory = policy_world_memory(answer);
  policy_decide(p, &facts, &memory, &d);
  if (left)
    *left = memory;
  else
    free(memory);
  return d;
}

static void a_policy_says_what_is_saved_and_why(void **state) {
  policy *p = with_hook(*state, "sync");
  decision d =
      decide_on(p, "{\"ok\":true,\"answer\":\"skip\",\"reason\":\"not yet\",\"by\":\"q\"}", NULL);
  assert_int_equal(d.action, POLICY_SKIP);
  assert_string_equal(d.reason, "not yet");
  assert_string_equal(d.policy, "q");
  d = decide_on(p, "{\"ok\":true,\"answer\":\"sync\",\"reason\":\"it is time\",\"by\":\"q\"}",
                NULL);
  assert_int_equal(d.action, POLICY_SAVE);
  assert_string_equal(d.reason, "it is time");
  d = decide_on(p, "{\"ok\":true,\"answer\":\"sync\"}", NULL);
  assert_string_equal(d.reason, "as it is");
  assert_string_equal(d.policy, "p");
  d = decide_on(p, "{\"ok\":true,\"answer\":null}", NULL);
  assert_int_equal(d.action, POLICY_SAVE);
  assert_string_equal(d.policy, "builtin");
  d = decide_on(p, "{\"ok\":true,\"answer\":\"skip\"}", NULL);
  assert_int_equal(d.action, POLICY_SKIP);
  assert_string_equal(d.reason, "the policy does not want it");
  assert_int_equal(policy_fallbacks(p), 0);
}

static void a_policy_that_is_not_ready_makes_it_wait(void **state) {
  policy *p = with_hook(*state, "ready");
  decision d = decide_on(p, "{\"ok\":true,\"answer\":false,\"reason\":\"two of four\"}", NULL);
  assert_int_equal(d.action, POLICY_WAIT);
  assert_string_equal(d.reason, "two of four");
  d = decide_on(p, "{\"ok\":true,\"answer\":true}", NULL);
  assert_int_equal(d.action, POLICY_SAVE);
}

static void a_policy_says_how_it_queues(void **state) {
  static const char *const words[] = {"newest", "all", "skip", "block"};
  char text[100];
  policy *p = with_hook(*state, "queue");
  for (int i = 0; i < 4; i++) {
    snprintf(text, sizeof text, "{\"ok\":true,\"answer\":\"%s\"}", words[i]);
    assert_int_equal(decide_on(p, text, NULL).queue, i);
  }
  p = policy_world_must(*state, "{\"ok\":true,\"queue\":\"block\"}");
  assert_int_equal(decide_on(p, "", NULL).queue, POLICY_BLOCK);
}

/* The helper here says the same to each question: asked by themselves, `sync` and `queue` would get the
 * answer of `ready`, which is none of theirs. */
static void all_that_a_decision_asks_is_one_exchange(void **state) {
  policy *p = policy_world_must(*state, all_hooks);
  char *left;
  decision d = decide_on(p,
                         "{\"ok\":true,\"answer\":true,\"memory\":{\"n\":1},\"then\":["
                         "{\"ok\":true,\"answer\":\"sync\",\"reason\":\"now\"},"
                         "{\"ok\":true,\"answer\":\"block\",\"memory\":{\"n\":2}}]}",
                         &left);
  assert_int_equal(d.action, POLICY_SAVE);
  assert_int_equal(d.queue, POLICY_BLOCK);
  assert_string_equal(d.reason, "now");
  assert_string_equal(left, "{\"n\":2}");
  assert_int_equal(policy_fallbacks(p), 0);
  free(left);
}

/* Each of these is answered by the next exchange, or falls back once for each hook. */
static void answers_ahead_that_are_none_cost_only_themselves(void **state) {
  static const struct {
    const char *then;
    uint64_t fallbacks;
  } cases[] = {
      {"[]", 2}, /* asked by themselves, both are told `true` */
      {"{}", 2},
      {"7", 2},
      {"null", 2},
      {"[null]", 2},
      {"[7,8]", 2},
      {"[{}]", 2},
      {"[{\"ok\":true,\"answer\":\"sync\"}]", 1},
      {"[{\"ok\":true,\"answer\":\"sync\"},{\"ok\":true,\"answer\":\"sync\"}]", 1},
      {"[{\"ok\":true,\"answer\":\"sync\",\"memory\":5},{\"ok\":true,\"answer\":\"all\"}]", 2},
      {"[{\"ok\":true,\"answer\":\"wrong\"},{\"ok\":true,\"answer\":\"all\"}]", 2},
      {"[{\"ok\":false,\"kind\":\"error\",\"text\":\"x\"},{\"ok\":true,\"answer\":\"all\"}]", 2},
      {"[{\"ok\":true,\"answer\":\"sync\",\"then\":[{\"ok\":true,\"answer\":\"all\"}]}]", 0},
      {"[{\"ok\":true,\"answer\":\"sync\"},{\"ok\":true,\"answer\":\"all\"},"
       "{\"ok\":true,\"answer\":\"skip\"}]",
       0},
  };
  policy *p = policy_world_must(*state, all_hooks);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[400];
    uint64_t before = policy_fallbacks(p);
    snprintf(text, sizeof text, "{\"ok\":true,\"answer\":true,\"then\":%s}", cases[i].then);
    decision d = decide_on(p, text, NULL);
    assert_int_equal(d.action, POLICY_SAVE);
    if (policy_fallbacks(p) - before != cases[i].fallbacks)
      fail_msg("%s: %d", text, (int)(policy_fallbacks(p) - before));
  }
}

static void what_is_not_complete_is_never_asked_about(void **state) {
  policy *p = policy_world_must(*state, all_hooks);
  detect_unit open = complete;
  open.state = DETECT_OPEN;
  policy_facts f = facts;
  f.unit = &open;
  decision d;
  char *memory = policy_world_memory("!abort");
  policy_decide(p, &f, &memory, &d);
  assert_int_equal(d.action, POLICY_WAIT);
  assert_int_equal(policy_fallbacks(p), 0);
  free(memory);
}

static void what_has_to_be_checked_first_stays_so(void **state) {
  policy *p = with_hook(*state, "sync");
  detect_unit unproven = complete;
  unproven.state = DETECT_UNPROVEN;
  policy_facts f = facts;
  f.unit = &unproven;
  decision d;
  char *memory = policy_world_memory("{\"ok\":true,\"answer\":\"sync\"}");
  policy_decide(p, &f, &memory, &d);
  assert_int_equal(d.action, POLICY_SAVE_IF_SOUND);
  free(memory);
}

static const char *const nonsense[] = {
    "",
    "{",
    "null",
    "[]",
    "true",
    "{}",
    "{\"ok\":1}",
    "{\"ok\":false}",
    "{\"ok\":false,\"kind\":\"syntax\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":\"error\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":\"budget\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":\"memory\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":\"answer\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":\"unknown\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":\"setting\",\"text\":\"x\"}",
    "{\"ok\":false,\"kind\":7,\"text\":[]}",
    "{\"ok\":true,\"answer\":\"Skip\"}",
    "{\"ok\":true,\"answer\":\"\"}",
    "{\"ok\":true,\"answer\":1}",
    "{\"ok\":true,\"answer\":[\"skip\"]}",
    "{\"ok\":true,\"answer\":{\"skip\":true}}",
    "{\"ok\":true,\"answer\":\"skip\",\"answer\":\"skip\"}",
    "{\"ok\":true,\"answer\":\"skip\",\"reason\":5}",
    "{\"ok\":true,\"answer\":\"skip\",\"by\":{}}",
    "{\"ok\":true,\"answer\":\"skip\",\"memory\":5}",
    "{\"ok\":true,\"answer\":\"skip\",\"memory\":\"text\"}",
    "{\"ok\":true,\"answer\":\"skip\"} ",
    "{\"ok\":true,\"answer\":NaN}",
    "{\"ok\":true,\"answer\":\"skip\",\"reason\":\"\\u0000\"}",
    "!exit 0",
    "!abort",
    "!half",
};

static void nonsense_is_the_safe_decision_a_warning_and_a_count(void **state) {
  policy_world *w = *state;
  policy *p = with_hook(w, "sync");
  uint64_t count = 0;
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
    if (nonsense[i][0] == '{' && nonsense[i][strlen(nonsense[i]) - 1] == ' ') continue; /* valid */
    char *left;
    decision d = decide_on(p, nonsense[i], &left);
    if (d.action != POLICY_SAVE || strcmp(d.policy, "builtin") != 0)
      fail_msg("%s: action %d by %s", nonsense[i], d.action, d.policy);
    assert_string_equal(d.reason, "as it is");
    count++;
    if (policy_fallbacks(p) != count) fail_msg("%s: not counted", nonsense[i]);
    char *same = policy_world_memory(nonsense[i]);
    assert_string_equal(left, same); /* memory stays as it was */
    free(same);
    free(left);
  }
  assert_non_null(strstr(w->lines.data, "policy p: sync: "));
  assert_non_null(strstr(w->lines.data, "what is complete is saved"));
  assert_int_equal(w->warnings, 1);
}

static void failures_are_told_first_and_then_each_hundredth(void **state) {
  policy_world *w = *state;
  policy *p = with_hook(w, "sync");
  for (int i = 0; i < 250; i++) decide_on(p, "{\"ok\":true,\"answer\":5}", NULL);
  assert_int_equal(policy_fallbacks(p), 250);
  assert_int_equal(w->warnings, 3);
  assert_non_null(strstr(w->lines.data, "it answered 5; \"sync\" or \"skip\" is wanted"));
  assert_non_null(strstr(w->lines.data, "201 times"));
}

static void a_killer_of_the_helper_costs_the_others_nothing(void **state) {
  policy_world *w = *state;
  policy *bad = with_hook(w, "sync"), *good = with_hook(w, "sync");
  for (int i = 0; i < 3; i++) {
    uint64_t generation = policy_link_generation(w->link);
    assert_int_equal(decide_on(bad, "!abort", NULL).action, POLICY_SAVE);
    assert_int_equal(policy_fallbacks(bad), i + 1);
    assert_int_equal(decide_on(good, "{\"ok\":true,\"answer\":\"skip\"}", NULL).action,
                     POLICY_SKIP);
    assert_int_equal(policy_fallbacks(good), 0);
    assert_int_equal(policy_link_generation(w->link), generation + 1);
  }
  /* And it comes back itself. */
  assert_int_equal(decide_on(bad, "{\"ok\":true,\"answer\":\"skip\"}", NULL).action, POLICY_SKIP);
  assert_non_null(strstr(w->lines.data, "signal ABRT killed it"));
}

/* The helper makes room: states that were not used for long go. */
static void a_chain_that_was_dropped_is_loaded_again_and_asked(void **state) {
  policy *p = with_hook(*state, "sync"), *other = with_hook(*state, "sync");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(decide_on(other, "!forget", NULL).action, POLICY_SKIP);
    assert_int_equal(decide_on(p, "{\"ok\":true,\"answer\":\"skip\"}", NULL).action, POLICY_SKIP);
  }
  assert_int_equal(policy_fallbacks(p) + policy_fallbacks(other), 0);
}

static void one_that_died_of_an_answer_is_loaded_for_the_next(void **state) {
  policy *p = with_hook(*state, "sync");
  for (int i = 1; i <= 3; i++) {
    decide_on(p, "{\"ok\":false,\"kind\":\"budget\",\"text\":\"loop\"}", NULL);
    assert_int_equal(policy_fallbacks(p), i);
    assert_int_equal(decide_on(p, "{\"ok\":true,\"answer\":\"skip\"}", NULL).action, POLICY_SKIP);
    assert_int_equal(policy_fallbacks(p), i);
  }
}

static void texts_for_people_are_cut_and_cannot_drive_a_terminal(void **state) {
  policy *p = with_hook(*state, "sync");
  buf text;
  buf_init(&text, 2000);
  buf_str(&text, "{\"ok\":true,\"answer\":\"skip\",\"by\":\"\\u001b[2Jq\\u009b\",\"reason\":\"");
  for (int i = 0; i < 300; i++) buf_str(&text, i ? "\xc3\xa9" : "a\\n\\u001b");
  buf_str(&text, "\"}");
  decision d = decide_on(p, text.data, NULL);
  buf_free(&text);
  assert_int_equal(d.action, POLICY_SKIP);
  assert_string_equal(d.policy, " [2Jq ");
  assert_memory_equal(d.reason, "a  \xc3\xa9", 5);
  assert_int_equal(strlen(d.reason), 255); /* 3 and 126 of two bytes each: no half character */
}

static void memory_is_taken_over_only_with_a_good_answer(void **state) {
  char *left, *big = malloc(POLICY_MEMORY_MAX + 1), text[POLICY_MEMORY_MAX + 200];
  policy *p = with_hook(*state, "sync");
  decide_on(p, "{\"ok\":true,\"answer\":\"skip\",\"memory\":{\"n\":[1,2.5,{}]}}", &left);
  assert_string_equal(left, "{\"n\":[1,2.5,{}]}");
  free(left);
  decide_on(p, "{\"ok\":true,\"answer\":\"skip\",\"memory\":{}}", &left);
  assert_null(left);
  decide_on(p, "{\"ok\":true,\"answer\":\"wrong\",\"memory\":{\"n\":1}}", &left);
  assert_null(strstr(left, "\"n\""));
  free(left);
  for (int over = 0; over < 2; over++) {
    uint64_t before = policy_fallbacks(p);
    size_t fill = POLICY_MEMORY_MAX - strlen("{\"n\":\"\"}") + (size_t)over;
    memset(big, 'x', fill);
    big[fill] = '\0';
    snprintf(text, sizeof text, "{\"ok\":true,\"answer\":\"skip\",\"memory\":{\"n\":\"%s\"}}", big);
    decision d = decide_on(p, text, &left);
    assert_int_equal(d.action, over ? POLICY_SAVE : POLICY_SKIP);
    assert_int_equal(policy_fallbacks(p) - before, over);
    if (!over) assert_int_equal(strlen(left), POLICY_MEMORY_MAX);
    free(left);
  }
  free(big);
}

/* Whoever owns the table sees by the address that there is a new one. */
static void new_memory_is_never_at_the_old_address(void **state) {
  policy *p =
      policy_world_must(*state, "{\"ok\":true,\"has\":{\"ready\":[\"p\"],\"sync\":[\"p\"]}}");
  static const char answer[] = "{\"ok\":true,\"answer\":null,\"memory\":{\"answer\":\"{\\\"ok\\\":"
                               "true,\\\"answer\\\":null,\\\"memory\\\":{}}\"}}";
  for (int i = 0; i < 50; i++) {
    decision d;
    char *memory = policy_world_memory(answer);
    uintptr_t before = (uintptr_t)memory;
    policy_decide(p, &facts, &memory, &d);
    assert_int_not_equal((uintptr_t)memory, before);
    free(memory);
  }
}

static void memory_that_is_no_json_is_an_empty_table(void **state) {
  static const char *const broken[] = {"", "{", "5", "\"x\"", "nonsense", "{\"a\":1,}"};
  policy *p = with_hook(*state, "sync");
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    decision d;
    char *memory = strdup(broken[i]);
    policy_decide(p, &facts, &memory, &d);
    assert_int_equal(d.action, POLICY_SAVE);
    free(memory);
  }
  policy_decide(p, &facts, NULL, &(decision){0});
  assert_int_equal(policy_fallbacks(p), 0);
}

static void the_same_warning_is_logged_once(void **state) {
  policy_world *w = *state;
  policy *p = with_hook(w, "sync");
  for (int i = 0; i < 5; i++)
    decide_on(p,
              "{\"ok\":true,\"answer\":null,\"warnings\":[\"mind \\u001b this\",\"and that\",5]}",
              NULL);
  assert_string_equal(w->lines.data, "policy p: mind   this\npolicy p: and that\n");
}

static void a_flood_of_warnings_ends(void **state) {
  policy_world *w = *state;
  policy *p = with_hook(w, "sync");
  for (int i = 0; i < 500; i++) {
    char text[100];
    snprintf(text, sizeof text, "{\"ok\":true,\"answer\":null,\"warnings\":[\"no. %d\"]}", i);
    decide_on(p, text, NULL);
  }
  assert_in_range(w->warnings, 10, 100);
}

/* ---- other questions ---- */

static policy_remedy remedy_on(policy *p, const char *answer, double *seconds) {
  policy_facts f = facts;
  f.event = "error";
  f.status = ERR_IO;
  f.text = "it broke";
  char *memory = policy_world_memory(answer);
  policy_remedy r = policy_on_error(p, &f, &memory, seconds);
  free(memory);
  return r;
}

static void an_error_may_be_retried_skipped_or_end_it(void **state) {
  policy *p = with_hook(*state, "on_error");
  double s = -1;
  assert_int_equal(
      remedy_on(p, "{\"ok\":true,\"answer\":{\"action\":\"retry\",\"seconds\":2.5}}", &s),
      POLICY_RETRY);
  assert_true(s == 2.5);
  assert_int_equal(
      remedy_on(p, "{\"ok\":true,\"answer\":{\"action\":\"retry\",\"seconds\":1e300}}", &s),
      POLICY_RETRY);
  assert_true(s == 24 * 3600);
  assert_int_equal(remedy_on(p, "{\"ok\":true,\"answer\":{\"action\":\"skip\"}}", &s),
                   POLICY_GIVE_UP);
  assert_int_equal(remedy_on(p, "{\"ok\":true,\"answer\":{\"action\":\"abort\"}}", &s),
                   POLICY_ABORT);
  assert_int_equal(remedy_on(p, "{\"ok\":true,\"answer\":null}", &s), POLICY_BY_CLASS);
  assert_int_equal(policy_fallbacks(p), 0);
  static const char *const wrong[] = {"\"retry\"",
                                      "{}",
                                      "{\"action\":\"retry\"}",
                                      "{\"action\":\"retry\",\"seconds\":-1}",
                                      "{\"action\":\"retry\",\"seconds\":\"5\"}",
                                      "{\"action\":\"again\",\"seconds\":5}",
                                      "{\"action\":7}"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[100];
    snprintf(text, sizeof text, "{\"ok\":true,\"answer\":%s}", wrong[i]);
    assert_int_equal(remedy_on(p, text, &s), POLICY_BY_CLASS);
    assert_int_equal(policy_fallbacks(p), i + 1);
  }
}

static policy_rest rest_on(policy *p, const char *answer) {
  char *memory = policy_world_memory(answer);
  policy_rest r = policy_preempt(p, &facts, &memory);
  free(memory);
  return r;
}

static void when_time_is_short_the_policy_says_what_is_saved(void **state) {
  policy *p = with_hook(*state, "on_preempt");
  assert_int_equal(rest_on(p, "{\"ok\":true,\"answer\":\"all\"}"), POLICY_REST_ALL);
  assert_int_equal(rest_on(p, "{\"ok\":true,\"answer\":\"none\"}"), POLICY_REST_NONE);
  assert_int_equal(rest_on(p, "{\"ok\":true,\"answer\":\"newest\"}"), POLICY_REST_NEWEST);
  assert_int_equal(rest_on(p, "{\"ok\":true,\"answer\":null}"), POLICY_REST_FIT);
  assert_int_equal(policy_fallbacks(p), 0);
  assert_int_equal(rest_on(p, "{\"ok\":true,\"answer\":\"nothing\"}"), POLICY_REST_FIT);
  assert_int_equal(rest_on(p, "!exit 1"), POLICY_REST_FIT);
  assert_int_equal(policy_fallbacks(p), 2);
}

static size_t left_out_on(policy *p, const char *answer, policy_left *left) {
  char *memory = policy_world_memory(answer);
  policy_exclude(p, &facts, &memory, left);
  free(memory);
  size_t count = left->globs.count;
  names_free(&left->globs);
  return count;
}

static void what_one_is_saved_without_is_a_list_of_globs_or_nothing_is_left_out(void **state) {
  static const char *const wrong[] = {"{\"ok\":true,\"answer\":\"optim*\"}",
                                      "{\"ok\":true,\"answer\":[\"optim*\",5]}",
                                      "{\"ok\":true,\"answer\":[\"optim*\",\"a[b\"]}",
                                      "{\"ok\":true,\"answer\":[\"/etc\"]}", "!exit 1"};
  policy *p = with_hook(*state, "exclude");
  policy_left left;
  assert_int_equal(left_out_on(p,
                               "{\"ok\":true,\"answer\":[\"optim*\",\"states/\"],\"by\":\"mine\","
                               "\"reason\":\"no tenth\"}",
                               &left),
                   2);
  assert_string_equal(left.policy, "mine");
  assert_string_equal(left.reason, "no tenth");
  assert_int_equal(left_out_on(p, "{\"ok\":true,\"answer\":null}", &left), 0);
  assert_int_equal(left_out_on(p, "{\"ok\":true,\"answer\":{}}", &left), 0);
  assert_int_equal(policy_fallbacks(p), 0);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(left_out_on(p, wrong[i], &left), 0);
    assert_int_equal(policy_fallbacks(p), i + 1);
  }
}

static void what_is_only_told_may_be_remembered(void **state) {
  policy *p = with_hook(*state, "on_committed");
  char *memory = policy_world_memory("{\"ok\":true,\"answer\":[\"hook\"],\"memory\":{\"n\":1}}");
  policy_tell(p, POLICY_ON_COMMITTED, &facts, &memory);
  assert_string_equal(memory, "{\"n\":1}");
  free(memory);
  memory = policy_world_memory("{\"ok\":true,\"answer\":[5]}");
  policy_tell(p, POLICY_ON_COMMITTED, &facts, &memory);
  assert_int_equal(policy_fallbacks(p), 1);
  policy_tell(p, POLICY_ON_FAILED, &facts, &memory); /* it has none */
  assert_int_equal(policy_fallbacks(p), 1);
  free(memory);
}

/* ---- lists ---- */

enum { ITEMS = 3 };
static const policy_item items[ITEMS] = {
    {.number = 4, .name = "ck-1", .dir = "ck-1", .step = 1},
    {.number = 7, .name = "ck-2", .dir = "ck-2", .step = 2, .newest = true},
    {.number = 9, .name = "ck-3", .dir = "ck-3", .step = MATCH_NO_STEP, .kind = "temp"},
};

static bool select_on(policy *p, policy_hook hook, const char *answer, policy_kept *out) {
  char *memory = policy_world_memory(answer);
  for (int i = 0; i < ITEMS; i++) memset(&out[i], 0x7f, sizeof out[i]);
  bool answered = policy_select(p, hook, "g", items, ITEMS, &memory, out);
  free(memory);
  return answered;
}

static void a_policy_says_which_are_kept(void **state) {
  policy_kept kept[ITEMS];
  policy *p = policy_world_must(*state, all_hooks);
  assert_true(select_on(p, POLICY_KEEP,
                        "{\"ok\":true,\"by\":\"q\",\"answer\":{\"keep\":\"011\",\"why\":[2,0,1],"
                        "\"reasons\":[\"last\",\"old\\n\"]}}",
                        kept));
  assert_false(kept[0].keep);
  assert_true(kept[1].keep && kept[2].keep);
  assert_string_equal(kept[0].reason, "old ");
  assert_string_equal(kept[1].reason, "");
  assert_string_equal(kept[2].policy, "q");
}

#define SAID(keep, why, reasons) "{\"keep\":" keep ",\"why\":" why ",\"reasons\":" reasons "}"

static void a_wrong_list_keeps_all_and_restores_only_the_newest(void **state) {
  static const char *const wrong[] = {
      "{}",
      "[]",
      "5",
      "\"000\"",
      "[{\"keep\":false},{\"keep\":false},{\"keep\":false}]", /* that of another protocol */
      SAID("\"00\"", "[0,0,0]", "[]"),
      SAID("\"0000\"", "[0,0,0]", "[]"),
      SAID("\"\"", "[]", "[]"),
      SAID("\"002\"", "[0,0,0]", "[]"),
      SAID("\"00 \"", "[0,0,0]", "[]"),
      SAID("\"0\\u00300\\u0001\"", "[0,0,0]", "[]"),
      SAID("\"00\\u0000\"", "[0,0,0]", "[]"),
      SAID("\"0\xc3\xa9\"", "[0,0,0]", "[]"),
      SAID("0", "[0,0,0]", "[]"),
      SAID("[0,0,0]", "[0,0,0]", "[]"),
      SAID("null", "[0,0,0]", "[]"),
      SAID("\"000\"", "[0,0]", "[]"),
      SAID("\"000\"", "[0,0,0,0]", "[]"),
      SAID("\"000\"", "{}", "[]"),
      SAID("\"000\"", "null", "[]"),
      SAID("\"000\"", "[0,0,1]", "[]"),
      SAID("\"000\"", "[0,0,2]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,-1]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,0.5]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,1e300]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,9223372036854775807]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,\"1\"]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,null]", "[\"x\"]"),
      SAID("\"000\"", "[0,0,0]", "[7]"),
      SAID("\"000\"", "[0,0,0]", "[null]"),
      SAID("\"000\"", "[0,0,0]", "{}"),
      SAID("\"000\"", "[0,0,0]", "\"x\""),
      SAID("\"000\"", "[0,0,1]", "[\"a\",\"b\",\"c\",\"d\"]"),
      "{\"why\":[0,0,0],\"reasons\":[]}",
      "{\"keep\":\"000\",\"reasons\":[]}",
      "{\"keep\":\"000\",\"why\":[0,0,0]}",
  };
  policy_kept kept[ITEMS];
  policy *p = policy_world_must(*state, all_hooks);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[300];
    snprintf(text, sizeof text, "{\"ok\":true,\"answer\":%s}", wrong[i]);
    for (int hook = POLICY_KEEP; hook <= POLICY_RESTORE; hook++) {
      uint64_t before = policy_fallbacks(p);
      assert_false(select_on(p, (policy_hook)hook, text, kept));
      assert_int_equal(policy_fallbacks(p), before + 1);
      for (int k = 0; k < ITEMS; k++) {
        assert_int_equal(kept[k].keep, hook != POLICY_RESTORE || k == 1);
        assert_string_equal(kept[k].policy, "builtin");
      }
    }
  }
}

static void without_an_opinion_all_stay(void **state) {
  policy_kept kept[ITEMS];
  policy *p = policy_world_must(*state, all_hooks),
         *none = policy_world_must(*state, "{\"ok\":true}");
  assert_false(select_on(p, POLICY_KEEP, "{\"ok\":true,\"answer\":null}", kept));
  for (int k = 0; k < ITEMS; k++) assert_true(kept[k].keep);
  assert_false(select_on(none, POLICY_KEEP_LOCAL, "!abort", kept));
  for (int k = 0; k < ITEMS; k++) assert_true(kept[k].keep);
  assert_int_equal(policy_fallbacks(p) + policy_fallbacks(none), 0);
  policy_item unmarked[ITEMS];
  memcpy(unmarked, items, sizeof items);
  unmarked[1].newest = false;
  assert_false(policy_select(none, POLICY_RESTORE, "", unmarked, ITEMS, NULL, kept));
  for (int k = 0; k < ITEMS; k++) assert_int_equal(kept[k].keep, k == ITEMS - 1);
  assert_false(policy_select(p, POLICY_KEEP, "", items, 0, NULL, kept));
}

/* ---- any answer at all ---- */

static uint64_t seed;
static unsigned draw(unsigned below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(seed >> 33) % below;
}

static json_t *any_value(unsigned depth);

/* Nearly what is said of a list. */
static json_t *any_choice(void) {
  static const char *const bits[] = {"010", "111", "000", "100", "01", "0110", "01x"};
  json_t *why = json_array(), *reasons = json_array();
  for (unsigned n = draw(9) ? ITEMS : draw(5); n > 0; n--)
    json_array_append_new(why, draw(19) ? json_integer(draw(3)) : any_value(1));
  for (unsigned n = draw(9) ? 2 : draw(5); n > 0; n--)
    json_array_append_new(reasons, draw(19) ? json_string("r\x1b") : any_value(1));
  return json_pack("{s:o, s:o, s:o}", "keep",
                   draw(9) ? json_string(bits[draw(draw(2) ? 4 : 7)]) : any_value(1), "why", why,
                   "reasons", reasons);
}

static json_t *any_value(unsigned depth) {
  static const char *const words[] = {"sync", "skip",  "newest",   "all", "none",  "retry",
                                      "",     "\x1b[", "\xc2\x9b", "ok",  "block", "abort"};
  json_t *v;
  switch (draw(depth ? 9 : 6)) {
  case 0: return json_null();
  case 1: return json_true();
  case 2: return json_false();
  case 3: return json_integer((json_int_t)draw(5) - 2);
  case 4: return json_real(draw(2) ? 0.5 : -1e300);
  case 5: return json_string(words[draw(12)]);
  case 6:
    v = json_array();
    for (unsigned n = draw(5); n > 0; n--) json_array_append_new(v, any_value(depth - 1));
    return v;
  case 7: return any_choice();
  default: return json_pack("{s:o, s:o}", "action", any_value(0), "seconds", any_value(0));
  }
}

static char *any_answer(void) {
  json_t *v = json_object();
  json_object_set_new(v, "ok", draw(20) ? json_true() : any_value(1));
  json_object_set_new(v, "answer", any_value(3));
  if (draw(2))
    json_object_set_new(v, "reason",
                        draw(4) ? json_string("\x1b"
                                              "because")
                                : any_value(1));
  if (draw(2)) json_object_set_new(v, "by", draw(4) ? json_string("q") : any_value(1));
  if (draw(3) == 0) json_object_set_new(v, "memory", any_value(2));
  if (draw(3) == 0) json_object_set_new(v, "warnings", any_value(2));
  char *text = json_dumps(v, JSON_COMPACT);
  json_decref(v);
  if (draw(20) == 0) text[draw((unsigned)strlen(text))] = (char)(1 + draw(255));
  if (draw(20) == 0) text[draw((unsigned)strlen(text))] = '\0';
  if (*text == '!') *text = '?';
  return text;
}

static void check_text(const char *text, size_t room) {
  assert_non_null(memchr(text, '\0', room));
  for (const char *at = text; *at; at++) assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
  assert_null(strstr(text, "\xc2\x9b"));
}

/* What a reader of the protocol would expect, from the text itself. */
typedef struct expected {
  bool good; /* around the answer */
  json_t *whole, *answer;
} expected;

static expected expect(const char *text) {
  expected x = {.whole = json_loads(text, JSON_REJECT_DUPLICATES, NULL)};
  json_t *reason = json_object_get(x.whole, "reason"), *by = json_object_get(x.whole, "by"),
         *memory = json_object_get(x.whole, "memory");
  x.answer = json_object_get(x.whole, "answer");
  x.good = json_is_true(json_object_get(x.whole, "ok")) &&
           (!reason || json_is_string(reason) || json_is_null(reason)) &&
           (!by || json_is_string(by) || json_is_null(by)) &&
           (!memory || json_is_object(memory) || json_is_array(memory) || json_is_null(memory));
  return x;
}

static bool says(const expected *x, const char *word) {
  const char *said = json_string_value(x->answer);
  return x->good && said && strcmp(said, word) == 0;
}

static bool is_choice(const expected *x) {
  json_t *why = json_object_get(x->answer, "why"), *reasons = json_object_get(x->answer, "reasons"),
         *one;
  const char *keep = json_string_value(json_object_get(x->answer, "keep"));
  bool good = x->good && keep && strlen(keep) == ITEMS && strspn(keep, "01") == ITEMS &&
              json_array_size(why) == ITEMS && json_is_array(reasons) &&
              json_array_size(reasons) <= ITEMS;
  size_t i;
  json_array_foreach(reasons, i, one) good = good && json_is_string(one);
  json_array_foreach(why, i, one) good =
      good && json_is_number(one) && json_number_value(one) >= 0 &&
      json_number_value(one) == (double)(int)json_number_value(one) &&
      json_number_value(one) <= (double)json_array_size(reasons);
  return good;
}

static void check_memory(char *memory) {
  json_t *value = memory ? json_loads(memory, 0, NULL) : NULL;
  if (memory && !json_is_object(value) && !json_is_array(value)) fail_msg("memory: %s", memory);
  if (memory) assert_true(strlen(memory) <= POLICY_MEMORY_MAX);
  json_decref(value);
  free(memory);
}

static void whatever_the_helper_answers_only_its_words_count(void **state) {
  policy_world *w = *state;
  policy *p = policy_world_must(w, all_hooks), *sync = with_hook(w, "sync");
  int chosen = 0;
  for (seed = 1; seed < 4000; seed++) {
    uint64_t from = seed;
    char *text = any_answer(), *memory;
    expected x = expect(text);
    decision d = decide_on(sync, text, &memory);
    check_memory(memory);
    check_text(d.reason, sizeof d.reason);
    check_text(d.policy, sizeof d.policy);
    if (d.action != (says(&x, "skip") ? POLICY_SKIP : POLICY_SAVE))
      fail_msg("seed %llu: %s", (unsigned long long)from, text);
    if (!says(&x, "skip") && !says(&x, "sync")) assert_string_equal(d.policy, "builtin");
    policy_kept kept[ITEMS];
    bool answered = select_on(p, POLICY_KEEP, text, kept);
    chosen += answered;
    if (answered != is_choice(&x)) fail_msg("seed %llu: %s", (unsigned long long)from, text);
    for (int i = 0; i < ITEMS; i++) {
      check_text(kept[i].reason, sizeof kept[i].reason);
      const char *keep = json_string_value(json_object_get(x.answer, "keep"));
      assert_int_equal(kept[i].keep, !answered || keep[i] == '1');
    }
    policy_rest rest = rest_on(p, text);
    assert_int_equal(rest, says(&x, "all")      ? POLICY_REST_ALL
                           : says(&x, "none")   ? POLICY_REST_NONE
                           : says(&x, "newest") ? POLICY_REST_NEWEST
                                                : POLICY_REST_FIT);
    double seconds = 0;
    policy_remedy remedy = remedy_on(p, text, &seconds);
    if (remedy != POLICY_BY_CLASS) assert_true(x.good && json_is_object(x.answer));
    assert_true(seconds >= 0 && seconds <= 86400);
    json_decref(x.whole);
    free(text);
    seed = from;
  }
  assert_in_range(chosen, 40, 2000);
  for (const char *at = w->lines.data; *at; at++)
    assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
}

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_complete_is_saved),
      cmocka_unit_test(what_is_unproven_is_saved_only_after_a_structural_check),
      cmocka_unit_test(what_is_open_broken_or_gone_is_left_alone),
      cmocka_unit_test(a_state_that_is_not_known_is_left_alone),
      cmocka_unit_test(the_decision_names_its_policy_and_the_facts_reason),
      IN_POLICY_WORLD(a_policy_says_what_is_saved_and_why),
      IN_POLICY_WORLD(a_policy_that_is_not_ready_makes_it_wait),
      IN_POLICY_WORLD(a_policy_says_how_it_queues),
      IN_POLICY_WORLD(all_that_a_decision_asks_is_one_exchange),
      IN_POLICY_WORLD(answers_ahead_that_are_none_cost_only_themselves),
      IN_POLICY_WORLD(what_is_not_complete_is_never_asked_about),
      IN_POLICY_WORLD(what_has_to_be_checked_first_stays_so),
      IN_POLICY_WORLD(nonsense_is_the_safe_decision_a_warning_and_a_count),
      IN_POLICY_WORLD(failures_are_told_first_and_then_each_hundredth),
      IN_POLICY_WORLD(a_killer_of_the_helper_costs_the_others_nothing),
      IN_POLICY_WORLD(a_chain_that_was_dropped_is_loaded_again_and_asked),
      IN_POLICY_WORLD(one_that_died_of_an_answer_is_loaded_for_the_next),
      IN_POLICY_WORLD(texts_for_people_are_cut_and_cannot_drive_a_terminal),
      IN_POLICY_WORLD(memory_is_taken_over_only_with_a_good_answer),
      IN_POLICY_WORLD(new_memory_is_never_at_the_old_address),
      IN_POLICY_WORLD(memory_that_is_no_json_is_an_empty_table),
      IN_POLICY_WORLD(the_same_warning_is_logged_once),
      IN_POLICY_WORLD(a_flood_of_warnings_ends),
      IN_POLICY_WORLD(an_error_may_be_retried_skipped_or_end_it),
      IN_POLICY_WORLD(when_time_is_short_the_policy_says_what_is_saved),
      IN_POLICY_WORLD(what_one_is_saved_without_is_a_list_of_globs_or_nothing_is_left_out),
      IN_POLICY_WORLD(what_is_only_told_may_be_remembered),
      IN_POLICY_WORLD(a_policy_says_which_are_kept),
      IN_POLICY_WORLD(a_wrong_list_keeps_all_and_restores_only_the_newest),
      IN_POLICY_WORLD(without_an_opinion_all_stay),
      IN_POLICY_WORLD(whatever_the_helper_answers_only_its_words_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
