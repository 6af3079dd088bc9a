/* JSON objects, member by member. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "runner/cli/record.h"

static char text[512];

static FILE *open_text(void) {
  return fmemopen(text, sizeof text, "w");
}

static void members_stand_in_order_without_blanks(void **state) {
  (void)state;
  FILE *f = open_text();
  record r = record_begin(f);
  record_text(&r, "text", "a \"b\"\n");
  record_name(&r, "name", "50%\xff");
  record_bool(&r, "yes", true);
  record_count(&r, "count", UINT64_MAX);
  record_step(&r, "step", 7);
  record_seconds(&r, "seconds", 86400);
  record_time(&r, "time", 0);
  record_end_line(&r);
  fclose(f);
  assert_string_equal(text, "{\"text\":\"a \\\"b\\\"\\u000a\",\"name\":\"50%25%FF\",\"yes\":true,"
                            "\"count\":18446744073709551615,\"step\":7,\"seconds\":86400,"
                            "\"time\":\"1970-01-01T00:00:00Z\"}\n");
}

static void what_is_not_known_is_null(void **state) {
  (void)state;
  FILE *f = open_text();
  record r = record_begin(f);
  record_text(&r, "text", NULL);
  record_step(&r, "step", -1);
  record_seconds(&r, "seconds", -1);
  record_name(&r, "name", NULL);
  record_end(&r);
  fclose(f);
  assert_string_equal(text, "{\"text\":null,\"step\":null,\"seconds\":null,\"name\":\"\"}");
}

static void an_object_within_another_has_commas_of_its_own(void **state) {
  (void)state;
  FILE *f = open_text();
  record r = record_begin(f);
  record_bool(&r, "a", false);
  record within = record_begin(record_key(&r, "b"));
  record_end(&within);
  record_bool(&r, "c", true);
  record_end(&r);
  fclose(f);
  assert_string_equal(text, "{\"a\":false,\"b\":{},\"c\":true}");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_stand_in_order_without_blanks),
      cmocka_unit_test(what_is_not_known_is_null),
      cmocka_unit_test(an_object_within_another_has_commas_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
