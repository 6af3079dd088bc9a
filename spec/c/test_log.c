#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/log.h"

typedef struct heard {
  int lines;
  log_level level;
  char text[4096];
} heard;

static void hear(void *ctx, log_level level, const char *text) {
  heard *h = ctx;
  h->lines++;
  h->level = level;
  snprintf(h->text, sizeof h->text, "%s", text);
}

static void a_line_arrives_with_its_level(void **state) {
  (void)state;
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  log_say(&sink, LOG_WARN, "%s: %d left", "/x", 3);
  assert_int_equal(h.lines, 1);
  assert_int_equal(h.level, LOG_WARN);
  assert_string_equal(h.text, "/x: 3 left");
}

static void what_is_below_the_least_level_is_not_said(void **state) {
  (void)state;
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h, .min = LOG_WARN};
  log_say(&sink, LOG_DEBUG, "x");
  log_say(&sink, LOG_INFO, "x");
  assert_int_equal(h.lines, 0);
  log_say(&sink, LOG_WARN, "x");
  log_say(&sink, LOG_ERROR, "x");
  assert_int_equal(h.lines, 2);
}

static void no_sink_and_no_function_are_silent(void **state) {
  (void)state;
  log_say(NULL, LOG_ERROR, "x");
  log_say(&(log_sink){0}, LOG_ERROR, "x");
}

static void a_name_cannot_forge_a_line_or_drive_a_terminal(void **state) {
  (void)state;
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  log_say(&sink, LOG_INFO, "%s", "a\nerror: b\r\t\033[2J\x7f");
  assert_string_equal(h.text, "a?error: b???[2J?");
  /* U+009B begins a control sequence as ESC [ does. */
  log_say(&sink, LOG_INFO, "%s",
          "a\xc2\x9b"
          "2J");
  assert_string_equal(h.text, "a??2J");
}

static void other_letters_pass_unchanged(void **state) {
  (void)state;
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  log_say(&sink, LOG_INFO, "%s",
          "Gr\xc3\xb6\xc3\x9f"
          "e \xe6\xa8\xa1\xe5\x9e\x8b\xc2");
  assert_string_equal(h.text, "Gr\xc3\xb6\xc3\x9f"
                              "e \xe6\xa8\xa1\xe5\x9e\x8b\xc2");
}

static void a_long_text_is_cut_after_2000_bytes_or_more(void **state) {
  (void)state;
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  char longer[5000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  log_say(&sink, LOG_INFO, "%s", longer);
  assert_in_range(strlen(h.text), 2000, 2100);
}

static void every_level_has_a_name(void **state) {
  (void)state;
  assert_string_equal(log_level_name(LOG_DEBUG), "debug");
  assert_string_equal(log_level_name(LOG_INFO), "info");
  assert_string_equal(log_level_name(LOG_WARN), "warning");
  assert_string_equal(log_level_name(LOG_ERROR), "error");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_line_arrives_with_its_level),
      cmocka_unit_test(what_is_below_the_least_level_is_not_said),
      cmocka_unit_test(no_sink_and_no_function_are_silent),
      cmocka_unit_test(a_name_cannot_forge_a_line_or_drive_a_terminal),
      cmocka_unit_test(other_letters_pass_unchanged),
      cmocka_unit_test(a_long_text_is_cut_after_2000_bytes_or_more),
      cmocka_unit_test(every_level_has_a_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
