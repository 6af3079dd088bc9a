#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/flat.h"
#include "runner/text.h"

static char buffer[1 << 17];
static flat f;

static const char *take(const char *text) {
  snprintf(buffer, sizeof buffer, "%s", text);
  return flat_read(buffer, &f);
}

static void an_object_of_texts_booleans_and_numbers_is_read(void **state) {
  (void)state;
  assert_null(
      take(" {\"$ckpt\" : \"why\", \"name\":\"a b\",\t\"json\":true,\"n\":42, \"x\":false} \r\n"));
  assert_string_equal(flat_text(&f, "$ckpt", ""), "why");
  assert_string_equal(flat_text(&f, "name", ""), "a b");
  assert_true(flat_bool(&f, "json"));
  assert_false(flat_bool(&f, "x"));
  assert_int_equal(flat_number(&f, "n", 7), 42);
  assert_null(take("{}"));
  assert_int_equal(f.count, 0);
}

static void what_is_not_there_or_of_another_kind_has_the_default(void **state) {
  (void)state;
  assert_null(take("{\"a\":\"true\",\"b\":1,\"c\":true}"));
  assert_false(flat_bool(&f, "a"));
  assert_false(flat_bool(&f, "b"));
  assert_string_equal(flat_text(&f, "c", "none"), "none");
  assert_int_equal(flat_number(&f, "a", 7), 7);
  assert_null(flat_text(&f, "z", NULL));
}

static void escapes_become_what_they_stand_for(void **state) {
  (void)state;
  assert_null(take("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"}"));
  assert_string_equal(flat_text(&f, "a", ""),
                      "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

static void anything_else_is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    " ",
                                    "{",
                                    "}",
                                    "[]",
                                    "null",
                                    "\"a\"",
                                    "{\"a\"}",
                                    "{\"a\":}",
                                    "{\"a\":1",
                                    "{\"a\":1,}",
                                    "{,}",
                                    "{\"a\":1}x",
                                    "{\"a\":1}{}",
                                    "{a:1}",
                                    "{'a':1}",
                                    "{\"a\":{}}",
                                    "{\"a\":[]}",
                                    "{\"a\":null}",
                                    "{\"a\":1.5}",
                                    "{\"a\":-1}",
                                    "{\"a\":1e3}",
                                    "{\"a\":01}",
                                    "{\"a\":9007199254740993}",
                                    "{\"a\":99999999999999999999999999}",
                                    "{\"a\":tru}",
                                    "{\"a\":truefalse}",
                                    "{\"a\":\"b}",
                                    "{\"a\":\"\\\"}",
                                    "{\"a\":\"\\x41\"}",
                                    "{\"a\":\"\\u00g0\"}",
                                    "{\"a\":\"\\u0000\"}",
                                    "{\"a\":\"\\ud800\"}",
                                    "{\"a\":\"\\ud800\\u0041\"}",
                                    "{\"a\":\"\\udc00\"}",
                                    "{\"a\":\"\\u12\"}",
                                    "{\"a\":\"\\",
                                    "{\"a\":\"\n\"}",
                                    "{\"a\":1,\"a\":2}",
                                    "{\"a\" 1}",
                                    "{\"a\":1 \"b\":2}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (!take(bad[i])) fail_msg("taken: %s", bad[i]);
}

static void there_are_sixteen_members_at_most(void **state) {
  (void)state;
  char text[512] = "{";
  for (int i = 0; i < FLAT_MEMBERS; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"k%d\":%d", i ? "," : "", i, i);
  char more[600];
  snprintf(more, sizeof more, "%s}", text);
  assert_null(take(more));
  snprintf(more, sizeof more, "%s,\"z\":1}", text);
  assert_non_null(take(more));
}

/* Every cut and every changed byte of a good one: it may be good or bad, and nothing is read or
 * written outside of it (the buffer is as long as the text, for the sanitizers). */
static void no_damage_makes_it_leave_its_buffer(void **state) {
  (void)state;
  static const char good[] =
      "{\"$ckpt\":\"why\",\"name\":\"a\\u00e9\\ud83d\\ude00\\n\",\"json\":true,\"n\":123}";
  for (size_t n = 0; n < sizeof good; n++) {
    char *cut = strndup(good, n);
    flat_read(cut, &f);
    free(cut);
  }
  for (size_t n = 0; n + 1 < sizeof good; n++)
    for (int c = 1; c < 256; c++) {
      char *other = strdup(good);
      other[n] = (char)c;
      flat_read(other, &f);
      free(other);
    }
}

static void a_long_line_is_read_in_no_time(void **state) {
  (void)state;
  memset(buffer, '[', 65535);
  buffer[65535] = 0;
  assert_non_null(flat_read(buffer, &f));
  memcpy(buffer, "{\"a\":\"", 6);
  memset(buffer + 6, 'x', 65000);
  memcpy(buffer + 65006, "\"}", 3);
  assert_null(flat_read(buffer, &f));
  assert_int_equal(strlen(flat_text(&f, "a", "")), 65000);
}

static void names_of_any_bytes_come_back(void **state) {
  (void)state;
  for (int c = 1; c < 256; c++) {
    char name[] = {'a', (char)c, '%', '4', '1', 0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("{\"n\":", out);
    text_json_name(out, name);
    fputs("}", out);
    fclose(out);
    assert_null(take(text));
    char *back = (char *)flat_text(&f, "n", "");
    flat_decode_name(back);
    assert_string_equal(back, name);
    free(text);
  }
}

static void what_only_looks_like_an_escaped_name_stays(void **state) {
  (void)state;
  char odd[] = "100% %zz %4 %00 %";
  flat_decode_name(odd);
  assert_string_equal(odd, "100% %zz %4 %00 %");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_object_of_texts_booleans_and_numbers_is_read),
      cmocka_unit_test(what_is_not_there_or_of_another_kind_has_the_default),
      cmocka_unit_test(escapes_become_what_they_stand_for),
      cmocka_unit_test(anything_else_is_refused),
      cmocka_unit_test(there_are_sixteen_members_at_most),
      cmocka_unit_test(no_damage_makes_it_leave_its_buffer),
      cmocka_unit_test(a_long_line_is_read_in_no_time),
      cmocka_unit_test(names_of_any_bytes_come_back),
      cmocka_unit_test(what_only_looks_like_an_escaped_name_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
