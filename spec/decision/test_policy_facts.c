#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "decision/policy_impl.h"
#include "policy_helper.h"

static const char hooks[] = "{\"ok\":true,\"has\":{\"sync\":[\"p\"],\"keep\":[\"p\"]}}";

/* As the helper got it: it hands it back as the memory. */
static json_t *event_of(policy_world *w, const policy_facts *f) {
  policy *p = policy_world_must(w, hooks);
  decision d;
  char *memory = policy_world_memory("!remember");
  policy_decide(p, f, &memory, &d);
  json_t *event = json_loads(memory, 0, NULL);
  free(memory);
  return event;
}

/* The value at a path of names, as text. */
static void expect(json_t *event, const char *path, const char *wanted) {
  char names[100], *at = names, *name;
  const json_t *value = event;
  snprintf(names, sizeof names, "%s", path);
  while (value && (name = strsep(&at, "."))) value = json_object_get(value, name);
  char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
  if (!wanted && text) fail_msg("%s: %s", path, text);
  if (wanted && (!text || strcmp(text, wanted) != 0))
    fail_msg("%s: %s", path, text ? text : "none");
  free(text);
}

static void a_policy_sees_what_is_known(void **state) {
  const char *const names[] = {"a.pt", "bad\xff", "c d"};
  detect_unit unit = {.path = "exp/ck-3",
                      .name = "ck-3",
                      .group = "exp",
                      .step = 3,
                      .state = DETECT_COMPLETE,
                      .reason = "renamed",
                      .generation = 2,
                      .in_place = true,
                      .files = 4,
                      .bytes = UINT64_C(1) << 40,
                      .changed_ns = io_system()->now(io_system(), IO_WALL) - INT64_C(5000000000)};
  policy_facts f = {.event = "complete",
                    .group = "exp",
                    .unit = &unit,
                    .kind = "perm",
                    .names = names,
                    .name_count = 3,
                    .metrics = "{\"loss\":0.5}",
                    .result = "{\"training_iteration\":7}",
                    .results = 9,
                    .since = {.results = 2, .checkpoints = 3, .bytes = 10, .seconds = 1.5},
                    .job = {.seconds = 60.5, .left = 0},
                    .saves = {.seconds = 2.5, .spent = 8},
                    .waiting = 1,
                    .running = true,
                    .commits = 12,
                    .grace_s = 30,
                    .status = ERR_NOSPACE,
                    .text = "full",
                    .tries = 2};
  json_t *e = event_of(*state, &f);
  expect(e, "event", "\"complete\"");
  expect(e, "run", "\"run-1\"");
  expect(e, "group", "\"exp\"");
  expect(e, "grace", "30");
  expect(e, "results", "9");
  expect(e, "checkpoint.name", "\"ck-3\"");
  expect(e, "checkpoint.path", "\"exp/ck-3\"");
  expect(e, "checkpoint.step", "3");
  expect(e, "checkpoint.files", "4");
  expect(e, "checkpoint.bytes", "1099511627776");
  expect(e, "checkpoint.kind", "\"perm\"");
  expect(e, "checkpoint.names", "[\"a.pt\",\"bad%FF\",\"c d\"]");
  expect(e, "checkpoint.metrics", "{\"loss\":0.5}");
  expect(e, "checkpoint.in_place", "true");
  expect(e, "checkpoint.generation", "2");
  expect(e, "checkpoint.reason", "\"renamed\"");
  expect(e, "result", "{\"training_iteration\":7}");
  expect(e, "since", "{\"bytes\":10,\"checkpoints\":3,\"results\":2,\"seconds\":1.5}");
  expect(e, "job", "{\"left\":0,\"seconds\":60.5}");
  expect(e, "saves", "{\"seconds\":2.5,\"spent\":8}");
  expect(e, "queue", "{\"running\":true,\"waiting\":1}");
  expect(e, "store", "{\"commits\":12}");
  expect(e, "error",
         "{\"class\":\"permanent\",\"code\":\"NOSPACE\",\"text\":\"full\",\"tries\":2}");
  double age = json_number_value(json_object_get(json_object_get(e, "checkpoint"), "age"));
  assert_true(age > 4.9 && age < 60);
  assert_true(json_number_value(json_object_get(e, "now")) > 1.7e9);
  json_decref(e);
}

/* ---- the clock on the wall ---- */

static void at_time(const char *zone, int64_t seconds, const char *wanted) {
  const char *before = getenv("TZ");
  char *kept = before ? strdup(before) : NULL;
  setenv("TZ", zone, 1);
  tzset();
  buf packed;
  buf_init(&packed, 1000);
  policy_localtime(seconds * INT64_C(1000000000) + 999999999, &packed);
  json_t *t = buf_failed(&packed) == 0 ? policy_helper_event(packed.data, packed.len) : NULL;
  char *text = t ? json_dumps(t, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  if (kept)
    setenv("TZ", kept, 1);
  else
    unsetenv("TZ");
  tzset();
  free(kept);
  buf_free(&packed);
  json_decref(t);
  if (!text)
    fail_msg("no time");
  else
    assert_string_equal(text, wanted);
  free(text);
}

static void the_local_time_is_the_clock_on_the_wall(void **state) {
  (void)state;
  at_time("UTC0", 0,
          "{\"day\":1,\"hour\":0,\"minute\":0,\"month\":1,\"offset\":0,\"second\":0,"
          "\"weekday\":4,\"year\":1970}");
  /* 18:30:05 on a Sunday, and already Monday in India. */
  at_time("IST-5:30", 1795372205,
          "{\"day\":23,\"hour\":0,\"minute\":0,\"month\":11,\"offset\":19800,\"second\":5,"
          "\"weekday\":1,\"year\":2026}");
}

static void a_change_to_or_from_summer_time_is_told_a_day_before(void **state) {
  (void)state;
  static const char zone[] = "CET-1CEST,M3.5.0,M10.5.0/3";
  /* 2026-10-25 00:30 in summer time, which ends at 01:00 UTC. */
  at_time(zone, 1792881000,
          "{\"change\":{\"after\":9000,\"offset\":3600},\"day\":25,\"hour\":0,\"minute\":30,"
          "\"month\":10,\"offset\":7200,\"second\":0,\"weekday\":7,\"year\":2026}");
  /* One second before and at the change: 02:59:59 is followed by 02:00:00. */
  at_time(zone, 1792889999,
          "{\"change\":{\"after\":1,\"offset\":3600},\"day\":25,\"hour\":2,\"minute\":59,"
          "\"month\":10,\"offset\":7200,\"second\":59,\"weekday\":7,\"year\":2026}");
  at_time(zone, 1792890000,
          "{\"day\":25,\"hour\":2,\"minute\":0,\"month\":10,\"offset\":3600,\"second\":0,"
          "\"weekday\":7,\"year\":2026}");
  /* 2026-03-28 22:00, five hours before it begins. */
  at_time(zone, 1774731600,
          "{\"change\":{\"after\":14400,\"offset\":7200},\"day\":28,\"hour\":22,\"minute\":0,"
          "\"month\":3,\"offset\":3600,\"second\":0,\"weekday\":6,\"year\":2026}");
}

static void what_is_not_known_is_not_there(void **state) {
  detect_unit unit = {.path = "ck", .name = "ck", .step = MATCH_NO_STEP, .state = DETECT_COMPLETE};
  policy_facts f = {.event = "end",
                    .group = "",
                    .unit = &unit,
                    .since = {.seconds = -1},
                    .job = {.left = -1},
                    .saves = {.seconds = -1}};
  json_t *e = event_of(*state, &f);
  expect(e, "checkpoint.step", NULL);
  expect(e, "checkpoint.age", NULL);
  expect(e, "checkpoint.metrics", NULL);
  expect(e, "checkpoint.kind", NULL);
  expect(e, "result", NULL);
  expect(e, "error", NULL);
  expect(e, "since.seconds", NULL);
  expect(e, "job", "{\"seconds\":0}");
  expect(e, "saves", "{\"spent\":0}");
  expect(e, "group", "\"\"");
  expect(e, "grace", "0");
  json_decref(e);
}

/* JSON has none of these; the rest of the event must not suffer. */
static void odd_values_cost_only_themselves(void **state) {
  detect_unit unit = {.path = "\xff\x01",
                      .name = "\xff\x01",
                      .state = DETECT_COMPLETE,
                      .bytes = UINT64_MAX,
                      .changed_ns = INT64_MAX};
  policy_facts f = {.event = "preempt",
                    .group = "\xfe",
                    .unit = &unit,
                    .metrics = "{broken",
                    .result = "[1]",
                    .since = {.seconds = INFINITY},
                    .job = {.seconds = INFINITY, .left = NAN},
                    .saves = {.seconds = INFINITY, .spent = NAN},
                    .grace_s = INFINITY};
  json_t *e = event_of(*state, &f);
  expect(e, "event", "\"preempt\"");
  expect(e, "group", "\"%FE\"");
  expect(e, "grace", "1000000000");
  expect(e, "checkpoint.name", "\"%FF%01\"");
  expect(e, "checkpoint.bytes", "9.2233720368547758e18");
  expect(e, "checkpoint.age", "0");
  expect(e, "checkpoint.metrics", NULL);
  expect(e, "result", NULL);
  expect(e, "job", "{\"seconds\":1000000000}");
  expect(e, "saves", "{\"seconds\":1000000000,\"spent\":1000000000}");
  json_decref(e);
  f.grace_s = NAN;
  e = event_of(*state, &f);
  expect(e, "grace", "1000000000");
  json_decref(e);
}

static void a_list_is_handed_over_whole(void **state) {
  const policy_item items[] = {{.number = 7,
                                .name = "ck-1",
                                .dir = "ck-1.~7",
                                .step = 1,
                                .time_ns = INT64_C(1500000000),
                                .files = 2,
                                .bytes = 3,
                                .metrics = "{\"a\":1}",
                                .kind = "temp",
                                .pinned = true},
                               {.name = "ck-2",
                                .dir = "ck-2",
                                .step = MATCH_NO_STEP,
                                .metrics = "nonsense",
                                .newest = true,
                                .durable = true}};
  policy_kept kept[2];
  policy *p = policy_world_must(*state, hooks);
  char *memory = policy_world_memory("!remember");
  policy_select(p, POLICY_KEEP, "g", items, 2, &memory, kept);
  json_t *e = json_loads(memory, 0, NULL), *list = json_object_get(e, "list"),
         *first = json_array_get(list, 0), *second = json_array_get(list, 1);
  assert_int_equal(json_array_size(list), 2);
  expect(e, "event", "\"keep\"");
  expect(e, "group", "\"g\"");
  json_object_del(first, "age");
  char *text = json_dumps(first, JSON_COMPACT | JSON_SORT_KEYS);
  assert_string_equal(text,
                      "{\"bytes\":3,\"dir\":\"ck-1.~7\",\"durable\":false,\"files\":2,\"kind\":"
                      "\"temp\",\"metrics\":{\"a\":1},\"name\":\"ck-1\",\"newest\":false,"
                      "\"number\":7,\"pinned\":true,\"step\":1,\"time\":1.5}");
  free(text);
  expect(second, "number", NULL);
  expect(second, "step", NULL);
  expect(second, "metrics", NULL);
  expect(second, "kind", "\"perm\"");
  expect(second, "newest", "true");
  json_decref(e);
  free(memory);
}

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      IN_POLICY_WORLD(a_policy_sees_what_is_known),
      cmocka_unit_test(the_local_time_is_the_clock_on_the_wall),
      cmocka_unit_test(a_change_to_or_from_summer_time_is_told_a_day_before),
      IN_POLICY_WORLD(what_is_not_known_is_not_there),
      IN_POLICY_WORLD(odd_values_cost_only_themselves),
      IN_POLICY_WORLD(a_list_is_handed_over_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
