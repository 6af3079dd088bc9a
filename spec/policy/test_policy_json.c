#include "with_cmocka.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "lua/policy/policy_json.h"

static policy_bounds bounds;
static lua_State *L;

static int open_state(void **unused) {
  L = bounds_state(&bounds);
  luaL_openlibs(L);
  bounds_arm(&bounds, L, 0);
  return 0;
}

static int close_state(void **unused) {
  bounds_close(&bounds, L);
  return 0;
}

/* What a Lua expression prints, or why it does not. Static memory. */
static const char *print_within(const char *expression, size_t max) {
  static char said[1000];
  char chunk[1000];
  buf out;
  buf_init(&out, max);
  snprintf(chunk, sizeof chunk, "return %s", expression);
  bounds_arm(&bounds, L, 0);
  assert_int_equal(luaL_dostring(L, chunk), 0);
  bounds_disarm(&bounds, L);
  const char *why = policy_print_json(L, -1, &bounds, &out);
  snprintf(said, sizeof said, "%s", why ? why : out.data);
  assert_int_equal(lua_gettop(L), 1); /* whatever happened, nothing is left on the stack */
  lua_settop(L, 0);
  buf_free(&out);
  return said;
}

static const char *print(const char *expression) {
  return print_within(expression, 1 << 20);
}

static void values_print_as_json(void **unused) {
  assert_string_equal(print("nil"), "null");
  assert_string_equal(print("true"), "true");
  assert_string_equal(print("{1,'two',{three=3}}"), "[1,\"two\",{\"three\":3}]");
  assert_string_equal(print("{}"), "{}");
  assert_string_equal(print("{{},{{}}}"), "[{},[{}]]");
}

static void numbers_keep_their_value(void **unused) {
  assert_string_equal(print("-0"), "0");
  assert_string_equal(print("1e15"), "1000000000000000");
  assert_string_equal(print("-9007199254740991"), "-9007199254740991");
  assert_string_equal(print("0.1"), "0.1");
  assert_string_equal(print("1e300"), "1e300");
  assert_string_equal(print("0/0"), "a number is NaN or infinite");
  assert_string_equal(print("{x=1/0}"), "a number is NaN or infinite");
}

static void texts_are_escaped_and_always_utf_8(void **unused) {
  assert_string_equal(print("'a\"b\\\\c/'"), "\"a\\\"b\\\\c/\"");
  assert_string_equal(print("'\\n\\1\\27'"), "\"\\u000a\\u0001\\u001b\"");
  assert_string_equal(print("'\\0x'"), "\"\xef\xbf\xbdx\"");
  assert_string_equal(print("'\\195\\164'"), "\"\xc3\xa4\"");
  assert_string_equal(print("'\\195'"), "\"\xef\xbf\xbd\"");
  assert_string_equal(print("'\\237\\160\\128'"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  assert_string_equal(print("{['\\255']=1}"), "{\"\xef\xbf\xbd\":1}");
}

static void a_table_is_a_list_or_has_names_and_nothing_between(void **unused) {
  const char *neither = "a table has neither the keys 1..n nor texts alone";
  assert_string_equal(print("{1,x=2}"), neither);
  assert_string_equal(print("{1,nil,3}"), neither);
  assert_string_equal(print("{[0]=1}"), neither);
  assert_string_equal(print("{[1.5]=1}"), neither);
  assert_string_equal(print("{[true]=1}"), neither);
  assert_string_equal(print("{[2^53]=1}"), neither);
  assert_string_equal(print("{a={[{}]=1}}"), neither);
  assert_string_equal(print("{['1']=1}"), "{\"1\":1}");
}

static void what_is_no_data_is_refused(void **unused) {
  const char *no_data = "it has a function, or another thing that is no data";
  assert_string_equal(print("print"), no_data);
  assert_string_equal(print("{x={print}}"), no_data);
  assert_string_equal(print("coroutine.create(print)"), no_data);
  assert_string_equal(print("io.stdout"), no_data);
}

static void no_code_of_the_policy_runs(void **unused) {
  assert_string_equal(print("setmetatable({a=1},{__index=error,__len=error,__tostring=error})"),
                      "{\"a\":1}");
}

static void depth_and_size_are_limited(void **unused) {
  const char *nest = "(function() local t = {} for _ = 1, %d do t = {t} end return t end)()";
  char text[200];
  snprintf(text, sizeof text, nest, POLICY_DEPTH_MAX - 1);
  assert_non_null(strstr(print(text), "[[[{}]]]"));
  snprintf(text, sizeof text, nest, POLICY_DEPTH_MAX);
  assert_string_equal(print(text), "it is nested too deep");
  assert_string_equal(print("(function() local t = {} t[1] = t return t end)()"),
                      "it is nested too deep");
  assert_string_equal(print_within("{'12345678'}", 12), "[\"12345678\"]");
  assert_string_equal(print_within("{'12345678'}", 11), "it is too large");
}

static void a_billion_ways_through_a_small_table_end_at_the_size(void **unused) {
  const char *dag = "(function() local t = {1} for _ = 1, 25 do t = {t, t} end return t end)()";
  assert_string_equal(print_within(dag, 64 << 10), "it is too large");
}

static void tables_that_are_long_to_walk_end_at_the_cpu_time(void **unused) {
  const char *hollow = "(function() local h, all = {}, {}\n"
                       "for i = 1, 60000 do h['k' .. i] = 1 end\n"
                       "for i = 1, 60000 do h['k' .. i] = nil end\n"
                       "for i = 1, 100000 do all[i] = h end return all end)()";
  assert_string_equal(print(hollow), "it takes too long to read");
}

/* ---- what comes in goes out ---- */

static uint32_t seed = 7;

static uint32_t draw(uint32_t n) {
  seed = seed * 1664525 + 1013904223;
  return (seed >> 8) % n;
}

static json_t *make(int depth) {
  static const char *const texts[] = {"", "x", "\"\\\n\x01", "\xc3\xa4\xe2\x82\xac", "1"};
  json_t *v;
  switch (draw(depth > 0 ? 6 : 4)) {
  case 0: return json_boolean(draw(2));
  case 1: return json_integer((json_int_t)draw(1 << 20) - 1000);
  case 2: return json_real(draw(1000) / 7.0 + 0.1);
  case 3: return json_string(texts[draw(5)]);
  case 4:
    v = json_array();
    for (uint32_t n = 1 + draw(4); n > 0; n--) json_array_append_new(v, make(depth - 1));
    return v;
  default:
    v = json_object();
    for (uint32_t n = 1 + draw(4); n > 0; n--)
      json_object_set_new(v, texts[draw(5)], make(depth - 1));
    return v;
  }
}

static void whatever_comes_in_goes_out_the_same(void **unused) {
  bounds_arm(&bounds, L, 0);
  bounds_disarm(&bounds, L);
  for (int i = 0; i < 500; i++) {
    json_t *in = make(6), *back = NULL;
    buf out;
    buf_init(&out, 1 << 20);
    policy_push_json(L, in);
    assert_null(policy_print_json(L, -1, &bounds, &out));
    assert_int_equal(js_parse(out.data, out.len, "printed", &back, NULL), 0);
    assert_true(json_equal(in, back));
    json_decref(in);
    json_decref(back);
    lua_settop(L, 0);
    buf_free(&out);
  }
}

static void null_is_nil(void **unused) {
  json_t *in = json_pack("{s:n,s:[i,n,i]}", "gone", "list", 1, 3);
  policy_push_json(L, in);
  lua_getfield(L, -1, "gone");
  assert_true(lua_isnil(L, -1));
  lua_getfield(L, -2, "list");
  lua_rawgeti(L, -1, 2);
  assert_true(lua_isnil(L, -1));
  lua_rawgeti(L, -2, 3);
  assert_int_equal(lua_tointeger(L, -1), 3);
  lua_settop(L, 0);
  json_decref(in);
}

/* ---- packed ---- */

static int l_unpack(lua_State *from_stack) {
  policy_push_packed(from_stack, lua_touserdata(from_stack, 1));
  return 1;
}

/* Pushes what the first `len` bytes are; false: nothing. */
static bool unpack(const char *bytes, size_t len) {
  packed from = {bytes, bytes + len};
  lua_pushcfunction(L, l_unpack);
  lua_pushlightuserdata(L, &from);
  if (lua_pcall(L, 1, 1, 0) == 0) return from.at == from.end;
  lua_pop(L, 1);
  return false;
}

static const char *const any_json[] = {
    "{}",
    "[]",
    "{\"a\":[1,-0.0,5e-324,1e308,\"x\",\"\",true,false,null,{}],\"\":{\"\\u00e9\":[[[]]]}}",
    "{\"metrics\":{\"loss\":\"Infinity\",\"x\":\"text\",\"metrics\":\"-Infinity\"}}",
    "{\"metrics\":{\"in\":{\"x\":\"Infinity\",\"result\":{\"y\":\"Infinity\"}}}}",
    "{\"metrics\":{\"list\":[\"Infinity\"]},\"result\":\"Infinity\"}",
    "{\"n\":9007199254740993,\"m\":9223372036854775807,\"k\":null,\"list\":[null,1,null]}",
};
enum { JSONS = sizeof any_json / sizeof *any_json };

static json_t *read_json(const char *text) {
  json_t *value = NULL;
  assert_int_equal(js_parse(text, strlen(text), "text", &value, NULL), 0);
  return value;
}

static const char *same =
    "local function same(a, b)\n"
    "  if type(a) ~= 'table' or type(b) ~= 'table' then\n"
    "    return a == b and 1 / (a == 0 and a or 1) == 1 / (b == 0 and b or 1)\n"
    "  end\n"
    "  for k, v in pairs(a) do if not same(v, b[k]) then return false end end\n"
    "  for k in pairs(b) do if a[k] == nil then return false end end\n"
    "  return true\n"
    "end\n"
    "return same";

static void what_comes_packed_is_what_its_json_is(void **unused) {
  for (int i = 0; i < JSONS; i++) {
    json_t *value = read_json(any_json[i]);
    buf bytes;
    buf_init(&bytes, 10000);
    packed_put_json(&bytes, value);
    assert_int_equal(luaL_dostring(L, same), 0);
    policy_push_json(L, value);
    assert_true(unpack(bytes.data, bytes.len));
    lua_call(L, 2, 1);
    assert_true(lua_toboolean(L, -1));
    lua_settop(L, 0);
    buf_free(&bytes);
    json_decref(value);
  }
}

static void what_is_torn_or_forged_is_refused(void **unused) {
  json_t *value = read_json(any_json[2]);
  buf bytes;
  buf_init(&bytes, 10000);
  packed_put_json(&bytes, value);
  for (size_t cut = 0; cut < bytes.len; cut++) assert_false(unpack(bytes.data, cut));
  bytes.data[0] = PACKED_OBJECT + 1;
  assert_false(unpack(bytes.data, bytes.len));
  bytes.data[0] = PACKED_OBJECT;
  static const double counts[] = {-1, 3, 1e9, 1e300, 0.0 / 0.0};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    memcpy(bytes.data + 1, &counts[i], sizeof *counts);
    assert_false(unpack(bytes.data, bytes.len));
  }
  buf_free(&bytes);
  json_decref(value);
}

static void what_is_nested_too_deep_is_refused(void **unused) {
  for (int depth = 60; depth < 70; depth++) {
    json_t *value = json_array();
    for (int i = 1; i < depth; i++) value = json_pack("[o]", value);
    buf bytes;
    buf_init(&bytes, 10000);
    packed_put_json(&bytes, value);
    assert_int_equal(unpack(bytes.data, bytes.len), depth <= 64);
    lua_settop(L, 0);
    buf_free(&bytes);
    json_decref(value);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_print_as_json),
      cmocka_unit_test(numbers_keep_their_value),
      cmocka_unit_test(texts_are_escaped_and_always_utf_8),
      cmocka_unit_test(a_table_is_a_list_or_has_names_and_nothing_between),
      cmocka_unit_test(what_is_no_data_is_refused),
      cmocka_unit_test(no_code_of_the_policy_runs),
      cmocka_unit_test(depth_and_size_are_limited),
      cmocka_unit_test(a_billion_ways_through_a_small_table_end_at_the_size),
      cmocka_unit_test(tables_that_are_long_to_walk_end_at_the_cpu_time),
      cmocka_unit_test(whatever_comes_in_goes_out_the_same),
      cmocka_unit_test(null_is_nil),
      cmocka_unit_test(what_comes_packed_is_what_its_json_is),
      cmocka_unit_test(what_is_torn_or_forged_is_refused),
      cmocka_unit_test(what_is_nested_too_deep_is_refused),
  };
  return cmocka_run_group_tests(tests, open_state, close_state);
}
