#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "runner/cli/command.h"

static const char *printed(const table *t) {
  static char text[4096];
  FILE *f = fmemopen(text, sizeof text, "w");
  table_print(t, f);
  fclose(f);
  return text;
}

static void write_cell(FILE *f, int column, const void *ctx) {
  const char *const *cells = ctx;
  if (cells[column]) fputs(cells[column], f);
}

static void add(table *t, const char *a, const char *b, const char *c) {
  const char *const cells[] = {a, b, c};
  table_add(t, write_cell, cells);
}

static void columns_are_as_wide_as_their_widest_cell(void **state) {
  table t = {.heads = {"NAME", "N", "WHY"}, .left = 1 | 4};
  add(&t, "a", "100", "because");
  add(&t, "longer", "1", "so");
  assert_string_equal(printed(&t), "NAME      N  WHY\n"
                                   "a       100  because\n"
                                   "longer    1  so\n");
  assert_false(t.failed);
  table_free(&t);
}

static void no_line_ends_in_blanks(void **state) {
  table t = {.heads = {"NAME", "N", "WHY"}, .left = 1 | 4};
  add(&t, "a", NULL, NULL);
  add(&t, "b", NULL, "");
  add(&t, NULL, NULL, "c");
  assert_string_equal(printed(&t), "NAME  N  WHY\na\nb\n         c\n");
  table_free(&t);
}

static void many_rows_are_kept_in_order(void **state) {
  table t = {.heads = {"N"}, .left = 1};
  for (int i = 0; i < 200; i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    add(&t, number, NULL, NULL);
  }
  const char *text = printed(&t);
  assert_memory_equal(text, "N\n0\n1\n", 6);
  assert_non_null(strstr(text, "\n63\n64\n65\n"));
  assert_non_null(strstr(text, "\n198\n199\n"));
  table_free(&t);
}

static void an_item_is_asked_for_by_unit_or_directory_with_or_without_its_group(void **state) {
  ckpt_item item = {.group = "exp/T7", .name = "last.pt", .dir = "last.pt.~7"};
  assert_true(item_is_asked(&item, NULL));
  assert_true(item_is_asked(&item, "last.pt"));
  assert_true(item_is_asked(&item, "last.pt.~7"));
  assert_true(item_is_asked(&item, "exp/T7/last.pt"));
  assert_true(item_is_asked(&item, "exp/T7/last.pt.~7"));
  assert_false(item_is_asked(&item, "last.pt.~8"));
  assert_false(item_is_asked(&item, "T7/last.pt"));
  assert_false(item_is_asked(&item, "exp/T7"));
  assert_false(item_is_asked(&item, ""));
  item.group = "";
  assert_true(item_is_asked(&item, "last.pt"));
  assert_false(item_is_asked(&item, "/last.pt"));
}

static const char *json_of(const ckpt_item *item) {
  static char text[2048];
  FILE *f = fmemopen(text, sizeof text, "w");
  record r = record_begin(f);
  item_json(&r, item);
  fclose(f);
  return text;
}

static void what_the_log_does_not_say_is_absent(void **state) {
  ckpt_item item = {.name = "a\xff", .dir = "a", .step = -1, .files = 2, .life = CKPT_LIVE};
  const char *text = json_of(&item);
  assert_non_null(strstr(text, "\"name\":\"a%FF\""));
  assert_non_null(strstr(text, "\"step\":null"));
  assert_non_null(strstr(text, "\"life\":\"live\""));
  assert_null(strstr(text, "policy"));
  assert_null(strstr(text, "metrics"));
  assert_null(strstr(text, "dropped"));
}

static void a_dropped_one_says_by_whom_and_why(void **state) {
  ckpt_item item = {.name = "a",
                    .dir = "a",
                    .policy = "default",
                    .reason = "each \"one\"",
                    .metrics = "{\"loss\":0.5}",
                    .life = CKPT_LIFE_DROPPED,
                    .drop_policy = "mine",
                    .drop_reason = "not of the last 3"};
  const char *text = json_of(&item);
  assert_non_null(strstr(text, "\"policy\":\"default\",\"reason\":\"each \\\"one\\\"\","
                               "\"metrics\":{\"loss\":0.5},\"life\":\"dropped\","
                               "\"drop_policy\":\"mine\",\"drop_reason\":\"not of the last 3\","
                               "\"dropped\":\"1970-01-01T00:00:00Z\""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
      cmocka_unit_test(no_line_ends_in_blanks),
      cmocka_unit_test(many_rows_are_kept_in_order),
      cmocka_unit_test(an_item_is_asked_for_by_unit_or_directory_with_or_without_its_group),
      cmocka_unit_test(what_the_log_does_not_say_is_absent),
      cmocka_unit_test(a_dropped_one_says_by_whom_and_why),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
