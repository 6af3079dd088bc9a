#include "with_cmocka.h"

#include <malloc.h>

#include <stdio.h>
#include <string.h>

#include "base/json.h"

static json_t *parsed(const char *text) {
  json_t *value = NULL;
  err e = {0};
  if (js_parse(text, strlen(text), "doc", &value, &e) < 0) fail_msg("%s: %s", text, e.text);
  return value;
}

static void is_malformed(const char *text, size_t len, const char *because) {
  json_t *value = NULL;
  err e = {0};
  assert_int_equal(js_parse(text, len, "the doc", &value, &e), ERR_FORMAT);
  assert_null(value);
  assert_non_null(strstr(e.text, "the doc"));
  if (!strstr(e.text, because)) fail_msg("\"%s\" lacks \"%s\"", e.text, because);
}

static void a_document_that_is_not_whole_json_is_refused(void **state) {
  static const char *const texts[] = {
      "",
      "{",
      "{\"a\":1",
      "{} {}",
      "{}x",
      "{\"a\":1,}",
      "{'a':1}",
      "nul",
      "\"\xff\"",
      "\"\xc0\x80\"",
      "\"\\u0000\"",
      "{\"a\":01}",
      "{\"a\":1e999}",
      "9223372036854775808",
      "[1,2",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    is_malformed(texts[i], strlen(texts[i]), "not valid JSON");
  is_malformed("{}\0", 3, "not valid JSON");
}

/* The text of an error goes to terminals and into JSON. */
static void what_is_said_of_it_has_no_control_character(void **state) {
  json_t *value = NULL;
  err e = {0};
  assert_int_equal(js_parse("{\001\033[31m\":1}", 11, "x", &value, &e), ERR_FORMAT);
  for (const char *at = e.text; *at; at++) assert_true((unsigned char)*at >= ' ');
}

static void a_key_that_is_there_twice_is_refused(void **state) {
  static const char text[] = "{\"a\":1,\"a\":2}";
  is_malformed(text, sizeof text - 1, "duplicate");
}

static void a_torn_document_is_never_taken_for_whole(void **state) {
  static const char text[] = "{\"entry\":\"commit\",\"n\":[1,2,{\"x\":true}],\"s\":\"\\u00e9\"}";
  for (size_t len = 0; len < sizeof text - 1; len++) is_malformed(text, len, "not valid");
}

static void nested(int depth, char *out) {
  memset(out, '[', (size_t)depth);
  memset(out + depth, ']', (size_t)depth);
  out[2 * depth] = 0;
}

static void nesting_is_bounded(void **state) {
  static char text[200001];
  nested(64, text);
  json_decref(parsed(text));
  nested(65, text);
  is_malformed(text, strlen(text), "deeper than 64");
  nested(100000, text);
  is_malformed(text, strlen(text), "doc");
  buf objects;
  buf_init(&objects, 1000);
  for (int i = 0; i < 65; i++) buf_str(&objects, "{\"a\":");
  buf_str(&objects, "1");
  for (int i = 0; i < 65; i++) buf_str(&objects, "}");
  is_malformed(objects.data, objects.len, "deeper than 64");
  buf_free(&objects);
}

static void what_would_weigh_too_much_is_refused_before_it_is_parsed(void **state) {
  static const char text[] = "{\"a[,\\\"{\":[1,2,{}],\"b\":3}"; /* 3 nests, 3 commas, one text */
  size_t len = sizeof text - 1;
  json_decref(parsed(text));
  assert_int_equal(js_check_weight(text, len, 3, 3, "doc", NULL), 0);
  assert_int_equal(js_check_weight(text, len, 2, 3, "doc", NULL), ERR_LIMIT);
  assert_int_equal(js_check_weight(text, len, 3, 2, "doc", NULL), ERR_LIMIT);
  assert_int_equal(js_check_weight("", 0, 0, 0, "doc", NULL), 0);
}

static void equal_values_print_equal_bytes(void **state) {
  json_t *a = parsed("{\"b\": [1, 2.5, null], \"a\": {\"y\": \"\\u00e9\", \"x\": true}}");
  json_t *b = parsed("{\"a\":{\"x\":true,\"y\":\"\xc3\xa9\"},\"b\":[1,2.5,null]}");
  buf one, two;
  buf_init(&one, 200);
  buf_init(&two, 200);
  assert_int_equal(js_print(a, &one, NULL), 0);
  assert_int_equal(js_print(b, &two, NULL), 0);
  assert_string_equal(one.data, "{\"a\":{\"x\":true,\"y\":\"\xc3\xa9\"},\"b\":[1,2.5,null]}");
  assert_string_equal(one.data, two.data);
  buf_free(&one);
  buf_free(&two);
  json_decref(a);
  json_decref(b);
}

static void a_print_past_the_cap_is_an_error(void **state) {
  json_t *value = parsed("{\"a\":\"0123456789\"}");
  buf out;
  buf_init(&out, 10);
  err e = {0};
  assert_int_equal(js_print(value, &out, &e), ERR_LIMIT);
  buf_free(&out);
  json_decref(value);
}

static void integers_are_exact_to_64_bits(void **state) {
  json_t *o = parsed("{\"max\":9223372036854775807,\"min\":-9223372036854775808,"
                     "\"odd\":9007199254740993,\"real\":1.0,\"text\":\"1\"}");
  int64_t n = 0;
  assert_int_equal(js_get_int(o, "max", "doc", &n, NULL), 0);
  assert_true(n == INT64_MAX);
  assert_int_equal(js_get_int(o, "min", "doc", &n, NULL), 0);
  assert_true(n == INT64_MIN);
  assert_int_equal(js_get_int(o, "odd", "doc", &n, NULL), 0);
  assert_true(n == 9007199254740993);
  assert_int_equal(js_get_int(o, "real", "doc", &n, NULL), ERR_FORMAT);
  assert_int_equal(js_get_int(o, "text", "doc", &n, NULL), ERR_FORMAT);
  json_decref(o);
}

static void a_wrong_member_is_named_with_its_document(void **state) {
  json_t *o = parsed("{\"a\":null}");
  const char *text = NULL;
  json_t *list = NULL;
  int64_t n = 0;
  err e = {0};
  assert_int_equal(js_get_str(o, "a", "log entry 7", &text, &e), ERR_FORMAT);
  assert_string_equal(e.text, "log entry 7: \"a\" is missing or not a string");
  assert_int_equal(js_get_int(o, "b", "log entry 7", &n, &e), ERR_FORMAT);
  assert_string_equal(e.text, "log entry 7: \"b\" is missing or not an integer");
  assert_int_equal(js_get_array(o, "a", "log entry 7", &list, &e), ERR_FORMAT);
  assert_string_equal(e.text, "log entry 7: \"a\" is missing or not an array");
  json_decref(o);
}

static void members_are_found(void **state) {
  json_t *o = parsed("{\"s\":\"x\",\"l\":[1]}");
  const char *text = NULL;
  json_t *list = NULL;
  assert_int_equal(js_get_str(o, "s", "doc", &text, NULL), 0);
  assert_string_equal(text, "x");
  assert_int_equal(js_get_array(o, "l", "doc", &list, NULL), 0);
  assert_int_equal(json_array_size(list), 1);
  json_decref(o);
}

static void getters_refuse_what_is_no_object(void **state) {
  json_t *list = parsed("[1]");
  const char *text = NULL;
  int64_t n = 0;
  assert_int_equal(js_get_str(list, "a", "doc", &text, NULL), ERR_FORMAT);
  assert_int_equal(js_get_int(NULL, "a", "doc", &n, NULL), ERR_FORMAT);
  json_decref(list);
}

static void an_optional_member_has_a_default_but_no_other_type(void **state) {
  json_t *o = parsed("{\"s\":\"x\",\"n\":5,\"b\":true,\"f\":false,\"null\":null}");
  const char *text = NULL;
  int64_t n = 0;
  bool yes = false;
  assert_int_equal(js_opt_str(o, "s", "doc", "d", &text, NULL), 0);
  assert_string_equal(text, "x");
  assert_int_equal(js_opt_str(o, "none", "doc", "d", &text, NULL), 0);
  assert_string_equal(text, "d");
  assert_int_equal(js_opt_str(o, "n", "doc", "d", &text, NULL), ERR_FORMAT);
  assert_int_equal(js_opt_str(o, "null", "doc", "d", &text, NULL), ERR_FORMAT);
  assert_int_equal(js_opt_int(o, "n", "doc", 9, &n, NULL), 0);
  assert_int_equal(n, 5);
  assert_int_equal(js_opt_int(o, "none", "doc", 9, &n, NULL), 0);
  assert_int_equal(n, 9);
  assert_int_equal(js_opt_int(o, "s", "doc", 9, &n, NULL), ERR_FORMAT);
  assert_int_equal(js_opt_bool(o, "b", "doc", false, &yes, NULL), 0);
  assert_true(yes);
  assert_int_equal(js_opt_bool(o, "f", "doc", true, &yes, NULL), 0);
  assert_false(yes);
  assert_int_equal(js_opt_bool(o, "none", "doc", true, &yes, NULL), 0);
  assert_true(yes);
  assert_int_equal(js_opt_bool(o, "n", "doc", true, &yes, NULL), ERR_FORMAT);
  json_decref(o);
}

static void a_copy_fits_whole_or_is_an_error(void **state) {
  json_t *o = parsed("{\"s\":\"1234\",\"n\":1}");
  char room[5];
  err e = {0};
  assert_int_equal(js_copy_str(o, "s", "doc", room, 5, &e), 0);
  assert_string_equal(room, "1234");
  assert_int_equal(js_copy_str(o, "s", "doc", room, 4, &e), ERR_FORMAT);
  assert_string_equal(e.text, "doc: \"s\" is longer than 3 bytes");
  assert_int_equal(js_copy_str(o, "n", "doc", room, 5, &e), ERR_FORMAT);
  json_decref(o);
}

static void escapes_to(const char *name, const char *want) {
  buf out;
  buf_init(&out, 1000);
  js_name_escape(name, &out);
  assert_string_equal(out.data, want);
  buf_free(&out);
}

static void names_stay_readable_where_they_can(void **state) {
  escapes_to("", "");
  escapes_to("model 1.pt", "model 1.pt");
  escapes_to("Gr\xc3\xb6\xc3\x9f"
             "e-\xf0\x9f\x98\x80",
             "Gr\xc3\xb6\xc3\x9f"
             "e-\xf0\x9f\x98\x80");
  escapes_to("100%\n\x7f\xff", "100%25%0A%7F%FF");
  escapes_to("\xed\xa0\x80", "%ED%A0%80");        /* a surrogate */
  escapes_to("\xc0\xaf", "%C0%AF");               /* an overlong slash */
  escapes_to("\xf4\x90\x80\x80", "%F4%90%80%80"); /* past U+10FFFF */
  escapes_to("\xe2\x82", "%E2%82");               /* cut short */
  escapes_to("\xe0\x80\x80\xf0\x80\x80\x80", "%E0%80%80%F0%80%80%80");
}

/* Every name of up to two bytes, and many with odd tails: out, through JSON, and back.
 */
static void every_name_survives_the_trip(void **state) {
  static const char *const tails[] = {"", "\x80", "\x80\x80", "\xbf\xbf\xbf", "\x9f\x80\x80", "a"};
  for (int a = 1; a < 256; a++)
    for (int b = 0; b < 256; b++)
      for (size_t t = 0; t < sizeof tails / sizeof tails[0]; t++) {
        if (t > 0 && b % 16 != 0 && b % 16 != 15) continue; /* with a tail, only the edges */
        char name[8];
        snprintf(name, sizeof name, "%c%c", a, b);
        size_t len = strlen(name);
        snprintf(name + len, sizeof name - len, "%s", tails[t]);
        buf text, back;
        buf_init(&text, 100);
        buf_init(&back, 100);
        js_name_escape(name, &text);
        json_t *value = json_string(text.data);
        assert_non_null(value);
        assert_int_equal(js_name_unescape(json_string_value(value), &back, NULL), 0);
        assert_string_equal(back.data, name);
        json_decref(value);
        buf_free(&text);
        buf_free(&back);
      }
}

static void a_broken_escape_is_refused(void **state) {
  static const char *const texts[] = {"%", "a%4", "%G0", "%0g", "%ff", "%00", "% 1", "%%41"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    buf out;
    err e = {0};
    buf_init(&out, 100);
    assert_int_equal(js_name_unescape(texts[i], &out, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, texts[i]));
    buf_free(&out);
  }
}

static void a_name_past_the_cap_is_an_error(void **state) {
  buf out;
  buf_init(&out, 3);
  assert_int_equal(js_name_unescape("abcd", &out, NULL), ERR_LIMIT);
  buf_clear(&out);
  js_name_escape("ab%", &out);
  assert_int_equal(buf_failed(&out), ERR_LIMIT);
  buf_free(&out);
}

/* ---- weight ---- */

/* `part` again and again between `before` and `after`, `size` bytes in all. */
static char *bomb(const char *before, const char *part, const char *after, size_t size) {
  size_t n = strlen(part), used = strlen(before);
  char *text = malloc(size + n + strlen(after) + used + 1);
  assert_non_null(text);
  memcpy(text, before, used);
  for (; used < size; used += n) memcpy(text + used, part, n);
  if (text[used - 1] == ',') used--;
  memcpy(text + used, after, strlen(after) + 1);
  return text;
}

static const struct {
  const char *before, *part, *after;
} bombs[] = {{"[", "{},", "]"},         {"[", "[],", "]"},         {"[", "0,", "]"},
             {"[", "0.5,", "]"},        {"[", "\"\",", "]"},       {"[", "\"abc\",", "]"},
             {"[", "{\"a\":0},", "]"},  {"[", "[0],", "]"},        {"[", "null,", "]"},
             {"[", "[[]],", "]"},       {"[", "{\"a\":{}},", "]"}, {"[", "{\"a\":\"b\"},", "]"},
             {"[", "[\"\",0.5],", "]"}, {"{\"a\":[", "{},", "]}"}, {"[", "\"\\u00e9\",", "]"}};

static void what_would_be_too_heavy_is_refused_before_it_is_made(void **state) {
  for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
    char *text = bomb(bombs[i].before, bombs[i].part, bombs[i].after, (size_t)16 << 20);
    json_t *value = NULL;
    err e = {0};
    size_t before = mallinfo2().uordblks;
    int rc = js_parse(text, strlen(text), "the doc", &value, &e);
    if (rc == 0) continue; /* long texts in it are no bomb */
    assert_int_equal(rc, ERR_LIMIT);
    assert_non_null(strstr(e.text, "the doc: more values than such a document may have"));
    assert_true(mallinfo2().uordblks < before + 4096);
    free(text);
  }
}

/* Whatever is let through takes no more than the bound. (Sanitizers count nothing.) */
static void what_is_let_through_takes_no_more_than_the_bound(void **state) {
  for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
    json_t *value = NULL;
    size_t low = 1024, high = (size_t)32 << 20;
    while (high - low > 4096) { /* the largest that is */
      size_t size = low + (high - low) / 2;
      char *text = bomb(bombs[i].before, bombs[i].part, bombs[i].after, size);
      if (js_weigh(text, strlen(text), "x", NULL) == 0)
        low = size;
      else
        high = size;
      free(text);
    }
    char *text = bomb(bombs[i].before, bombs[i].part, bombs[i].after, low);
    struct mallinfo2 before = mallinfo2();
    assert_int_equal(js_parse(text, strlen(text), "x", &value, NULL), 0);
    struct mallinfo2 after = mallinfo2();
    size_t took = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    if (took > JS_WEIGHT_MAX) fail_msg("%s: %zu bytes of %zu", bombs[i].part, took, low);
    json_decref(value);
    free(text);
  }
}

static void brackets_and_commas_in_texts_weigh_their_bytes(void **state) {
  char *text = bomb("[\"", "{[,:\\\"", "\"]", (size_t)8 << 20);
  assert_int_equal(js_weigh(text, strlen(text), "x", NULL), 0);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_document_that_is_not_whole_json_is_refused),
      cmocka_unit_test(what_is_said_of_it_has_no_control_character),
      cmocka_unit_test(a_key_that_is_there_twice_is_refused),
      cmocka_unit_test(a_torn_document_is_never_taken_for_whole),
      cmocka_unit_test(nesting_is_bounded),
      cmocka_unit_test(what_would_weigh_too_much_is_refused_before_it_is_parsed),
      cmocka_unit_test(equal_values_print_equal_bytes),
      cmocka_unit_test(a_print_past_the_cap_is_an_error),
      cmocka_unit_test(integers_are_exact_to_64_bits),
      cmocka_unit_test(a_wrong_member_is_named_with_its_document),
      cmocka_unit_test(members_are_found),
      cmocka_unit_test(getters_refuse_what_is_no_object),
      cmocka_unit_test(an_optional_member_has_a_default_but_no_other_type),
      cmocka_unit_test(a_copy_fits_whole_or_is_an_error),
      cmocka_unit_test(names_stay_readable_where_they_can),
      cmocka_unit_test(every_name_survives_the_trip),
      cmocka_unit_test(a_broken_escape_is_refused),
      cmocka_unit_test(a_name_past_the_cap_is_an_error),
      cmocka_unit_test(what_would_be_too_heavy_is_refused_before_it_is_made),
      cmocka_unit_test(what_is_let_through_takes_no_more_than_the_bound),
      cmocka_unit_test(brackets_and_commas_in_texts_weigh_their_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
