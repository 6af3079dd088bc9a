/* A list that goes to the policies packed is judged as one in JSON, which the other side reads, too:
 * by the helper and by the module, whatever stands in it. */

#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "decision/policy_impl.h"
#include "lua/policy/policy_serve.h"
#include "policy_helper.h"
#include "policy_peer.h"
#include "tmpdir.h"

/* ---- any list ---- */

static uint64_t seed;
static unsigned draw(unsigned below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(seed >> 33) % below;
}

#define PICK(list) (list)[draw(sizeof(list) / sizeof *(list))]

static const int64_t now_ns = INT64_C(1795372205123456789);
static char long_name[256], long_odd_name[256];

static const char *any_name(void) {
  static const char *const names[] = {"ck-1",
                                      "ck-2",
                                      "checkpoint_000003",
                                      "",
                                      "\xff\x01",
                                      "a\xc3\xa9",
                                      "b\xc3",
                                      "%41",
                                      "c%FF",
                                      "\x1b[2J",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xc0\xaf",
                                      "\"\\\"",
                                      "d\ne",
                                      "\xf0\x9f\x98\x80",
                                      long_name,
                                      long_odd_name};
  return PICK(names);
}

/* As trainings report them. */
static char some_numbers[200];

static void draw_numbers(void) {
  static const char *const forms[] = {"{\"loss\":%.17g,\"acc\":%g}",
                                      "{\"loss\":%.15g,\"acc\":%.3f}",
                                      "{\"loss\":%.16f,\"acc\":%.1e}"};
  double loss = ldexp(draw(1u << 31), (int)draw(80) - 60), acc = draw(100000) / 99999.0;
  snprintf(some_numbers, sizeof some_numbers, PICK(forms), draw(4) ? loss : -loss, acc);
}

static const char *any_metrics(void) {
  static const char *const metrics[] = {
      NULL,
      "{\"loss\":0.1}",
      "{\"loss\":0.30000000000000004,\"acc\":1}",
      "{\"loss\":\"NaN\"}",
      "{\"loss\":\"Infinity\",\"acc\":\"-Infinity\"}",
      "{\"loss\":\"nan\",\"acc\":\"text\"}",
      "{\"loss\":NaN}",
      "{\"loss\":1e999}",
      "{\"loss\":1e308,\"acc\":5e-324}",
      "{\"loss\":-0.0,\"acc\":0}",
      "{\"loss\":9007199254740993,\"acc\":9223372036854775807}",
      "{\"loss\":9223372036854775808}",
      "{\"loss\":null,\"acc\":true}",
      "{\"loss\":[1,null,\"NaN\"],\"acc\":{\"metrics\":{\"x\":\"NaN\"},\"x\":\"NaN\"}}",
      "{\"z\":1,\"a\":2,\"loss\":2}",
      "{\"loss\":1,\"loss\":2}",
      "{\"lo\\u0073s\":3,\"\xc3\xa9\":1,\"\":4}",
      "{\"\\u0000\":1}",
      "{\"a\xff\":1}",
      "{\"loss\":-0,\"acc\":-0.5}",
      "{\"loss\":01}",
      "{\"loss\":1.}",
      "{\"loss\":.5}",
      "{\"loss\":-}",
      "{\"loss\":+1}",
      "{\"loss\":0x10}",
      "{\"loss\":1e}",
      "{\"loss\":1E5,\"acc\":1e+05}",
      "{\"loss\":1e-05,\"acc\":2.5e-99}",
      "{\"loss\":1e100,\"acc\":1e-400}",
      "{\"loss\":123456789012345678,\"acc\":-123456789012345678}",
      "{\"loss\":1234567890123456789}",
      "{\"loss\":0.1234567890123456789}",
      "{\"loss\":1,}",
      "{\"loss\":1,\"acc\"}",
      "{\"loss\":1 }",
      "{\"loss\":1",
      "{,}",
      "{\"loss\":1}}",
      some_numbers,
      some_numbers,
      some_numbers,
      "{\"loss\":1} ",
      "{\"loss\":1}x",
      "{}",
      "[]",
      "[1]",
      "7",
      "",
      "{broken",
  };
  return PICK(metrics);
}

static int64_t any_time(void) {
  static const int64_t times[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1500000000};
  return draw(6) == 0 ? PICK(times) : now_ns - (int64_t)draw(1000000) * INT64_C(1234567891);
}

static int64_t any_step(void) {
  static const int64_t steps[] = {MATCH_NO_STEP, 0, INT64_MAX, INT64_C(9007199254740993)};
  return draw(6) == 0 ? PICK(steps) : (int64_t)draw(1000) * 10;
}

static uint64_t any_count(void) {
  static const uint64_t counts[] = {0, INT64_MAX, UINT64_MAX, UINT64_C(9007199254740993)};
  return draw(6) == 0 ? PICK(counts) : draw(100000);
}

static policy_item any_item(void) {
  static const char *const kinds[] = {NULL, "perm", "temp", "null", "\xff"}, *const suspects[] = {
                                                                                 NULL, NULL, NULL,
                                                                                 "may be bad",
                                                                                 "\xfe\x02"};
  return (policy_item){.number = any_count(),
                       .name = any_name(),
                       .dir = any_name(),
                       .step = any_step(),
                       .time_ns = any_time(),
                       .files = any_count(),
                       .bytes = any_count(),
                       .left_out = any_count(),
                       .metrics = any_metrics(),
                       .kind = PICK(kinds),
                       .newest = draw(4) == 0,
                       .pinned = draw(3) == 0,
                       .durable = draw(4) != 0,
                       .suspect = PICK(suspects)};
}

/* ---- the list in JSON ---- */

static void put(json_t *to, const char *key, json_t *value) {
  assert_int_equal(json_object_set_new(to, key, value), 0);
}

static void put_name(json_t *to, const char *key, const char *name) {
  json_t *value = json_string(name);
  if (name) put(to, key, value ? value : js_name_new(name));
}

static void put_count(json_t *to, const char *key, uint64_t n) {
  put(to, key, json_integer(n < INT64_MAX ? (json_int_t)n : INT64_MAX));
}

static json_t *item_value(const policy_item *item) {
  json_t *one = json_object(), *metrics = NULL;
  double age = (double)now_ns / 1e9 - (double)item->time_ns / 1e9;
  age = age < 0 ? 0 : age > 1e9 ? 1e9 : age;
  if (item->number) put_count(one, "number", item->number);
  put_name(one, "name", item->name);
  put_name(one, "dir", item->dir);
  if (item->step != MATCH_NO_STEP) put(one, "step", json_integer(item->step));
  put(one, "time", json_real((double)item->time_ns / 1e9));
  put(one, "age", json_real(age));
  put_count(one, "files", item->files);
  put_count(one, "bytes", item->bytes);
  if (item->left_out) put_count(one, "left_out", item->left_out);
  if (item->metrics && js_parse(item->metrics, strlen(item->metrics), "m", &metrics, NULL) == 0 &&
      json_is_object(metrics))
    put(one, "metrics", json_incref(metrics));
  json_decref(metrics);
  put_name(one, "kind", item->kind ? item->kind : "perm");
  put(one, "newest", json_boolean(item->newest));
  put(one, "pinned", json_boolean(item->pinned));
  put(one, "durable", json_boolean(item->durable));
  put_name(one, "suspect", item->suspect);
  return one;
}

/* ---- policies ---- */

static const char *const policies[] = {
    /* Remembers all that it sees, to the last bit. */
    "local function show(v)\n"
    "  if type(v) == 'number' then return string.format('%.17g', v) end\n"
    "  if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end\n"
    "  local out = {}\n"
    "  for k, x in pairs(v) do out[#out + 1] = tostring(k) .. '=' .. show(x) end\n"
    "  return '{' .. table.concat(out, ',') .. '}'\n"
    "end\n"
    "local function keep(list, m, e)\n"
    "  m.list, m.event = show(list), show(e)\n"
    "  return { list[1], list[3] }, show(list[2] or {})\n"
    "end\n"
    "return { api = 1, keep = keep, keep_local = keep, restore = keep }",
    "return { api = 1, keep = any { keep.last(2), keep.best('loss', 2, 'min'), keep.daily(3),\n"
    "  keep.every_steps(70) }, keep_local = keep.last(1), restore = keep.best('acc', 1, 'max') }",
    "return { api = 1, keep = all { none { keep.spaced(2) }, keep.within('200d') },\n"
    "  restore = keep.budget(100000) }",
    "return { api = 1, keep = keep.last(1), must = { never_fewer_than(3),\n"
    "  survives.best('loss', 'min') }, keep_local = keep.hourly(4) }",
    /* Its reasons are all different ones, and of odd bytes. */
    "local n = 0\n"
    "return { api = 1, keep = function(list, m)\n"
    "  local kept = {}\n"
    "  for _, c in ipairs(list) do\n"
    "    if c.pinned or (c.metrics and c.metrics.loss == nil) then kept[#kept + 1] = c.name end\n"
    "  end\n"
    "  m[1] = #list\n"
    "  return kept, '\\xff\\27' .. (list[1].dir or '') .. #list\n"
    "end, restore = function(list) return list end }",
    /* Breaks down on some, answers nonsense on others, or has no opinion. */
    "return { api = 1, keep = function(list, m)\n"
    "  m.bad = #list\n"
    "  local loss = list[1].metrics.loss\n"
    "  if loss ~= loss then return 7 end\n"
    "  if #list % 3 == 0 then return nil end\n"
    "  return { list[1] }\n"
    "end }",
};
enum { POLICIES = sizeof policies / sizeof *policies };

/* ---- what is said of it ---- */

typedef struct said {
  bool answered;
  policy_kept *kept;
  char *memory; /* NULL: it is as it was */
  uint64_t fallbacks;
} said;

static int64_t fixed_now(const io *io, io_clock clock) {
  return clock == IO_WALL ? now_ns : io_system()->now(io, clock);
}

static io world;

static json_t *call(policy_serve *s, const char *text, size_t len) {
  buf answer;
  json_t *value = NULL;
  assert_int_equal(policy_serve_call(s, text, len, &answer), 0);
  assert_int_equal(js_parse(answer.data, answer.len, "answer", &value, NULL), 0);
  buf_free(&answer);
  return value;
}

static json_t *ask_in_json(policy_serve *s, const policy *p, policy_hook hook,
                           const policy_item *items, size_t count) {
  buf text;
  policy_question q = policy_list_question(p, hook, "g", items, count);
  json_t *list = json_array(), *event = policy_helper_event(q.about.data, q.about.len);
  for (size_t i = 0; i < count; i++) json_array_append_new(list, item_value(&items[i]));
  put(event, "list", list);
  json_t *request = json_pack("{s:s, s:s, s:s, s:o, s:{}}", "op", "ask", "id", "x", "hook",
                              policy_hook_name(hook), "event", event, "memory");
  buf_init(&text, 64 << 20);
  assert_int_equal(js_print(request, &text, NULL), 0);
  json_t *answer = call(s, text.data, text.len);
  buf_free(&text);
  json_decref(request);
  policy_question_free(&q);
  return answer;
}

static char *memory_of(const json_t *whole) {
  buf text;
  const json_t *memory = json_object_get(whole, "memory");
  if (!memory) return NULL;
  buf_init(&text, POLICY_MEMORY_MAX);
  assert_int_equal(js_print(memory, &text, NULL), 0);
  return buf_take(&text);
}

/* Reads the answer as rows; a chain that broke down is loaded again. */
static said said_in_json(policy_serve *s, const char *text, const policy *p, policy_hook hook,
                         const policy_item *items, size_t count) {
  json_t *whole = ask_in_json(s, p, hook, items, count), *row, *by = json_object_get(whole, "by");
  json_t *rows = json_object_get(whole, "answer");
  size_t i;
  said out = {.kept = calloc(count, sizeof *out.kept), .memory = memory_of(whole)};
  if (!json_is_true(json_object_get(whole, "ok"))) {
    char *load = peer_load("x", text, strlen(text));
    out.fallbacks = 1;
    json_decref(call(s, load, strlen(load)));
    free(load);
  }
  out.answered = json_is_array(rows);
  if (out.answered) assert_int_equal(json_array_size(rows), count);
  json_array_foreach(rows, i, row) {
    policy_kept *k = &out.kept[i];
    k->keep = json_is_true(json_object_get(row, "keep"));
    policy_plain(json_string_value(json_object_get(row, "reason")), k->reason, sizeof k->reason);
    policy_plain(json_string_value(by), k->policy, sizeof k->policy);
  }
  json_decref(whole);
  return out;
}

static said said_packed(policy *p, policy_hook hook, const policy_item *items, size_t count) {
  said out = {.kept = calloc(count, sizeof *out.kept)};
  uint64_t before = policy_fallbacks(p);
  out.answered = policy_select(p, hook, "g", items, count, &out.memory, out.kept);
  out.fallbacks = policy_fallbacks(p) - before;
  return out;
}

static void said_free(said *s) {
  free(s->kept);
  free(s->memory);
}

static void must_be_equal(const said *a, const said *b, size_t count) {
  assert_int_equal(a->answered, b->answered);
  assert_int_equal(a->fallbacks, b->fallbacks);
  assert_string_equal(a->memory ? a->memory : "none", b->memory ? b->memory : "none");
  for (size_t i = 0; a->answered && i < count; i++) {
    assert_int_equal(a->kept[i].keep, b->kept[i].keep);
    assert_string_equal(a->kept[i].reason, b->kept[i].reason);
    assert_string_equal(a->kept[i].policy, b->kept[i].policy);
  }
}

/* ---- the three ways ---- */

typedef struct ways {
  policy_serve *serve;
  policy_link *links[2];
  policy *packed[2]; /* in the helper, in the module */
} ways;

static void open_ways(ways *w, const char *text, const char *file) {
  const char *build = getenv("CKPT_BUILD"), *names[] = {file, NULL};
  char libexec[4096];
  err e = {0};
  snprintf(libexec, sizeof libexec, "%s/libexec", build ? build : "build");
  write_file(file, text);
  w->serve = policy_serve_new(NULL);
  char *load = peer_load("x", text, strlen(text));
  json_t *answer = call(w->serve, load, strlen(load));
  if (!json_is_true(json_object_get(answer, "ok")))
    fail_msg("%s: %s", text, json_string_value(json_object_get(answer, "text")));
  json_decref(answer);
  free(load);
  for (int i = 0; i < 2; i++) {
    policy_link_options link = {.io = &world, .libexec = libexec, .in_process = i == 1};
    if (policy_link_open(&link, &w->links[i], &e) < 0) fail_msg("%s", e.text);
    policy_options o = {.io = &world,
                        .link = w->links[i],
                        .id = "run-1",
                        .names = names,
                        .quiet_ns = -1,
                        .untried = true};
    if (policy_open(&o, &w->packed[i], &e) < 0) fail_msg("%s", e.text);
  }
}

static void close_ways(ways *w) {
  for (int i = 0; i < 2; i++) {
    policy_close(w->packed[i]);
    policy_link_close(w->links[i]);
  }
  policy_serve_free(w->serve);
}

static bool compare(const ways *w, const char *text, policy_hook hook, const policy_item *items,
                    size_t count) {
  said wanted = said_in_json(w->serve, text, w->packed[0], hook, items, count);
  for (int i = 0; i < 2; i++) {
    said found = said_packed(w->packed[i], hook, items, count);
    must_be_equal(&found, &wanted, count);
    said_free(&found);
  }
  bool answered = wanted.answered;
  said_free(&wanted);
  return answered;
}

static void a_packed_list_is_judged_as_one_in_json(void **unused) {
  enum { ITEMS = 24, ROUNDS = 30 };
  char *dir = tmpdir_new();
  for (int n = 0; n < POLICIES; n++) {
    ways w;
    int answered = 0, asked = 0;
    open_ways(&w, policies[n], tmpdir_path(dir, "p.lua"));
    for (seed = 1; seed <= ROUNDS; seed++) {
      uint64_t from = seed;
      policy_item items[ITEMS];
      size_t count = 1 + draw(ITEMS);
      draw_numbers();
      for (size_t i = 0; i < count; i++) items[i] = any_item();
      for (int hook = POLICY_KEEP; hook <= POLICY_RESTORE; hook++) {
        if (!policy_has(w.packed[0], (policy_hook)hook)) continue;
        answered += compare(&w, policies[n], (policy_hook)hook, items, count);
        asked++;
      }
      seed = from;
    }
    /* The last one breaks down mostly. */
    assert_in_range(answered, asked / (n + 1 < POLICIES ? 2 : 100), asked);
    close_ways(&w);
  }
  tmpdir_remove(dir);
}

/* What a policy may hold grows with what it is handed. */
static void a_long_list_has_the_room_that_it_had_in_json(void **unused) {
#ifdef __SANITIZE_THREAD__
  skip(); /* so long a list takes the reader all the time that a policy has */
#endif
  static const char text[] =
      "return { api = 1, keep = function(list)\n"
      "  local held = {}\n"
      "  for i, c in ipairs(list) do held[i] = c.name .. string.rep('x', 4500) end\n"
      "  return { list[1] }, #held .. ' are held'\n"
      "end }";
  enum { COUNT = 3000 };
  char *dir = tmpdir_new(), (*names)[16] = calloc(COUNT, sizeof *names);
  policy_item *items = calloc(COUNT, sizeof *items);
  ways w;
  for (int i = 0; i < COUNT; i++) {
    snprintf(names[i], sizeof *names, "ck-%d", i);
    items[i] = (policy_item){.number = (uint64_t)i + 1,
                             .name = names[i],
                             .dir = names[i],
                             .step = i,
                             .time_ns = now_ns - (COUNT - i) * INT64_C(60000000000)};
  }
  open_ways(&w, text, tmpdir_path(dir, "p.lua"));
  assert_true(compare(&w, text, POLICY_KEEP, items, COUNT));
  close_ways(&w);
  free(items);
  free(names);
  tmpdir_remove(dir);
}

/* ---- a list that is none ---- */

static const char *kind_of(policy_serve *s, const char *list, size_t len) {
  static const char ask[] =
      "{\"op\":\"ask\",\"id\":\"x\",\"hook\":\"keep\",\"event\":{\"event\":\"keep\"}}";
  static const char load[] = "return { api = 1, keep = keep.last(1) }";
  buf request, answer;
  char *loads = peer_load("x", load, strlen(load));
  json_decref(call(s, loads, strlen(loads)));
  free(loads);
  buf_init(&request, 1 << 20);
  buf_add(&request, ask, sizeof ask); /* with its NUL */
  buf_add(&request, list, len);
  assert_int_equal(policy_serve_call(s, request.data, request.len, &answer), 0);
  const char *kind = peer_kind(answer.data, answer.len);
  buf_free(&request);
  buf_free(&answer);
  return kind;
}

static void a_torn_or_forged_list_is_refused(void **unused) {
  enum { FLAGS_AT = 0, NAME_AT = 1 + 7 * 8 };
  static const policy_item item = {.name = "ck", .dir = "ck", .step = 1, .metrics = "{\"a\":1}"};
  policy_serve *s = policy_serve_new(NULL);
  buf list;
  buf_init(&list, 1000);
  policy_pack_item(&item, 1, &list);
  size_t len = list.len;
  policy_pack_item(&item, 1, &list);
  for (size_t cut = 1; cut <= list.len; cut++)
    assert_string_equal(kind_of(s, list.data, cut), cut % len == 0 ? "ok" : "error");
  list.data[FLAGS_AT] = 8;
  assert_string_equal(kind_of(s, list.data, len), "error");
  list.data[FLAGS_AT] = 7;
  list.data[NAME_AT + 4] = '\0'; /* a text with a NUL in it */
  assert_string_equal(kind_of(s, list.data, len), "error");
  list.data[NAME_AT + 4] = 'c';
  list.data[NAME_AT] = 1; /* one that does not end there */
  assert_string_equal(kind_of(s, list.data, len), "error");
  memset(list.data + NAME_AT, 0xfe, 4); /* one that ends beyond all */
  assert_string_equal(kind_of(s, list.data, len), "error");
  buf_free(&list);
  policy_serve_free(s);
}

static void only_questions_may_have_a_list_behind_them(void **unused) {
  static const char load[] = "{\"op\":\"load\",\"id\":\"x\",\"chain\":[]}\0",
                    drop[] = "{\"op\":\"drop\",\"id\":\"x\"}\0", none[] = "\0\0";
  policy_serve *s = policy_serve_new(NULL);
  json_t *all[] = {call(s, load, sizeof load - 1), call(s, drop, sizeof drop - 1),
                   call(s, none, sizeof none - 1)};
  for (size_t i = 0; i < 3; i++) {
    assert_true(json_is_false(json_object_get(all[i], "ok")));
    json_decref(all[i]);
  }
  policy_serve_free(s);
}

int main(void) {
  memset(long_name, 'n', sizeof long_name - 1);
  memset(long_odd_name, '\xf0', sizeof long_odd_name - 1);
  world = *io_system();
  world.now = fixed_now;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_packed_list_is_judged_as_one_in_json),
      cmocka_unit_test(a_long_list_has_the_room_that_it_had_in_json),
      cmocka_unit_test(a_torn_or_forged_list_is_refused),
      cmocka_unit_test(only_questions_may_have_a_list_behind_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
