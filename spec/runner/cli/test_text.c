#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "runner/cli/text.h"

static char *text;
static size_t size;
static FILE *begin(void) {
  free(text);
  text = NULL;
  return open_memstream(&text, &size);
}

static const char *end(FILE *f) {
  fclose(f);
  return text;
}

static const char *size_of(uint64_t n) {
  FILE *f = begin();
  text_size(f, n);
  return end(f);
}

static const char *age_of(double s, int fine) {
  FILE *f = begin();
  text_age(f, s, fine);
  return end(f);
}

static const char *json_of(const char *s) {
  FILE *f = begin();
  text_json(f, s);
  return end(f);
}

static const char *name_of(const char *s) {
  FILE *f = begin();
  text_json_name(f, s);
  return end(f);
}

static void sizes_have_three_digits_at_most(void **state) {
  assert_string_equal(size_of(0), "0 B");
  assert_string_equal(size_of(1023), "1023 B");
  assert_string_equal(size_of(1024), "1.0 KiB");
  assert_string_equal(size_of(10188), "9.9 KiB");
  assert_string_equal(size_of(10200), "10 KiB");
  assert_string_equal(size_of((1 << 20) - 1), "1.0 MiB"); /* not 1024 KiB */
  assert_string_equal(size_of(UINT64_C(312) << 20), "312 MiB");
  assert_string_equal(size_of(UINT64_C(1288490189)), "1.2 GiB");
  assert_string_equal(size_of(UINT64_MAX), "16 EiB");
}

static void ages_have_one_unit(void **state) {
  assert_string_equal(age_of(-5, 0), "0 s");
  assert_string_equal(age_of(0.44, 1), "0.4 s");
  assert_string_equal(age_of(3.2, 0), "3 s");
  assert_string_equal(age_of(119, 1), "119 s");
  assert_string_equal(age_of(300, 0), "5 min");
  assert_string_equal(age_of(7200, 0), "2 h");
  assert_string_equal(age_of(86400 * 4, 0), "4 d");
}

static void times_are_utc(void **state) {
  FILE *f = begin();
  text_time(f, INT64_C(1714564800) * 1000000000 + 999999999);
  assert_string_equal(end(f), "2024-05-01T12:00:00Z");
}

static void a_name_cannot_end_a_line_or_speak_to_a_terminal(void **state) {
  FILE *f = begin();
  text_plain(f, "a\nb\x1b[31m\x7f\xff z");
  assert_string_equal(end(f), "a\\x0ab\\x1b[31m\\x7f\\xff z");
  f = begin();
  text_plain(f, "\xc2\x9b"
                "31m \x9b gr\xc3\xbc\xc3\x9f \xe2\x80\xae"
                "cod.exe \xe2\x81\xa6 \xd8\x9c");
  assert_string_equal(end(f), "\\xc2\\x9b"
                              "31m \\x9b gr\xc3\xbc\xc3\x9f \\xe2\\x80\\xae"
                              "cod.exe \\xe2\\x81\\xa6 \\xd8\\x9c");
}

static void json_strings_are_escaped(void **state) {
  assert_string_equal(json_of("a\"b\\c\n\x01/"), "\"a\\\"b\\\\c\\u000a\\u0001/\"");
  assert_string_equal(json_of("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
                      "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
  assert_string_equal(json_of("\xc2\x9b"
                              "1\x7f\xe2\x80\xae"),
                      "\"\\u009b1\\u007f\\u202e\"");
  FILE *f = begin();
  text_json_printed(f, "{\"a\":\"\xc2\x9b\xe2\x81\xa9\xc3\xbc\"}");
  assert_string_equal(end(f), "{\"a\":\"\\u009b\\u2069\xc3\xbc\"}");
}

static void bytes_that_are_not_utf8_never_reach_json(void **state) {
  assert_string_equal(json_of("a\xff"), "\"a\\ufffd\"");
  assert_string_equal(json_of("\xc3"), "\"\\ufffd\"");                       /* cut */
  assert_string_equal(json_of("\xc0\xaf"), "\"\\ufffd\\ufffd\"");            /* overlong */
  assert_string_equal(json_of("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\""); /* surrogate */
  assert_string_equal(json_of("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void each_name_of_a_file_system_survives_json(void **state) {
  assert_string_equal(name_of("plain-1"), "\"plain-1\"");
  assert_string_equal(name_of("100%\n\xff\"\\"), "\"100%25%0A%FF\\\"\\\\\"");
  assert_string_equal(name_of("\xc3\xbc\xc3"), "\"\xc3\xbc%C3\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_have_three_digits_at_most),
      cmocka_unit_test(ages_have_one_unit),
      cmocka_unit_test(times_are_utc),
      cmocka_unit_test(a_name_cannot_end_a_line_or_speak_to_a_terminal),
      cmocka_unit_test(json_strings_are_escaped),
      cmocka_unit_test(bytes_that_are_not_utf8_never_reach_json),
      cmocka_unit_test(each_name_of_a_file_system_survives_json),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(text);
  return failed;
}
