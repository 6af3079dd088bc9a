#include "with_cmocka.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/number.h"

static void prints(double value, const char *want) {
  char text[NUMBER_MAX];
  number_print(value, text);
  assert_string_equal(text, want);
}

static void a_number_comes_back_as_it_was_written(void **state) {
  prints(2.7, "2.7");
  prints(0.1, "0.1");
  prints(0.30000000000000004, "0.30000000000000004");
  prints(100000, "100000.0");
  prints(123456789012, "123456789012.0");
  prints(1e22, "1e22");
  prints(1e-5, "1e-5");
  prints(0.0001, "0.0001");
  prints(-0.0, "-0.0");
  prints(0, "0.0");
  prints(5e-324, "5e-324");
  prints(DBL_MAX, "1.7976931348623157e308");
  prints(-1.5e-10, "-1.5e-10");
}

static void it_is_the_same_number_again(void **state) {
  uint64_t bits = 88172645463325252;
  for (int i = 0; i < 20000; i++) {
    bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
    double value, again;
    char text[NUMBER_MAX];
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    number_print(value, text);
    again = strtod(text, NULL);
    uint64_t found;
    memcpy(&found, &again, sizeof found);
    if (found != bits) fail_msg("%s is not %.17g", text, value);
    json_t *parsed = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!json_is_real(parsed)) fail_msg("%s is no real", text);
    json_decref(parsed);
  }
}

static void becomes(void (*fn)(const char *, size_t, buf *), const char *from, const char *want) {
  buf out;
  buf_init(&out, 1 << 16);
  fn(from, strlen(from), &out);
  assert_string_equal(out.data, want);
  buf_free(&out);
}

static void only_the_reals_of_a_text_are_shortened(void **state) {
  becomes(number_shorten,
          "{\"a 2.7000000000000002\":2.7000000000000002,\"b\":[1,-3,0.5,true,null]}",
          "{\"a 2.7000000000000002\":2.7,\"b\":[1,-3,0.5,true,null]}");
  becomes(number_shorten, "{\"q\\\"1.50\":1.0}", "{\"q\\\"1.50\":1.0}");
  becomes(number_shorten, "18446744073709551616.0", "1.8446744073709552e19");
}

static void what_python_writes_for_nan_is_spelt_out(void **state) {
  becomes(number_spell, "{\"loss\": NaN, \"a\":-Infinity,\"b\":[Infinity,NaN]}",
          "{\"loss\": \"NaN\", \"a\":\"-Infinity\",\"b\":[\"Infinity\",\"NaN\"]}");
  becomes(number_spell, "{\"NaN\":\"x, NaN\",\"n\":NaNa,\"m\":aNaN}",
          "{\"NaN\":\"x, NaN\",\"n\":NaNa,\"m\":aNaN}");
  double value;
  assert_true(number_spelt("-Infinity", &value) && value < 0 && isinf(value));
  assert_true(number_spelt("NaN", &value) && isnan(value));
  assert_false(number_spelt("nan", &value));
}

static void json_prints_short_and_for_digests_as_1_0_did(void **state) {
  json_t *value = json_pack("{s:f, s:[f,i,s]}", "a", 2.7, "b", 0.1, 3, "2.70");
  buf text;
  buf_init(&text, 100);
  assert_int_equal(js_print(value, &text, NULL), 0);
  assert_string_equal(text.data, "{\"a\":2.7,\"b\":[0.1,3,\"2.70\"]}");
  buf_clear(&text);
  assert_int_equal(js_print_in_full(value, &text, NULL), 0);
  assert_string_equal(text.data,
                      "{\"a\":2.7000000000000002,\"b\":[0.10000000000000001,3,\"2.70\"]}");
  buf_free(&text);
  buf_init(&text, 10);
  assert_int_equal(js_print(value, &text, NULL), ERR_LIMIT);
  buf_free(&text);
  json_decref(value);
}

/* A host may have set one that writes 2,7. */
static void the_locale_does_not_matter(void **state) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "de_DE.utf8"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (setlocale(LC_ALL, names[i])) break;
  prints(2.7, "2.7");
  becomes(number_shorten, "[2.7000000000000002]", "[2.7]");
  setlocale(LC_ALL, "C");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_number_comes_back_as_it_was_written),
      cmocka_unit_test(it_is_the_same_number_again),
      cmocka_unit_test(only_the_reals_of_a_text_are_shortened),
      cmocka_unit_test(what_python_writes_for_nan_is_spelt_out),
      cmocka_unit_test(json_prints_short_and_for_digests_as_1_0_did),
      cmocka_unit_test(the_locale_does_not_matter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
