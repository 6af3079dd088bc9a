#include "with_cmocka.h"

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
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  log_say(&sink, LOG_WARN, "%s: %d left", "/x", 3);
  assert_int_equal(h.lines, 1);
  assert_int_equal(h.level, LOG_WARN);
  assert_string_equal(h.text, "/x: 3 left");
}

static void what_is_below_the_least_level_is_not_said(void **state) {
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
  log_say(NULL, LOG_ERROR, "x");
  log_say(&(log_sink){0}, LOG_ERROR, "x");
}

static void a_name_cannot_forge_a_line_or_drive_a_terminal(void **state) {
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
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  log_say(&sink, LOG_INFO, "%s",
          "Gr\xc3\xb6\xc3\x9f"
          "e \xe6\xa8\xa1\xe5\x9e\x8b\xc2");
  assert_string_equal(h.text, "Gr\xc3\xb6\xc3\x9f"
                              "e \xe6\xa8\xa1\xe5\x9e\x8b\xc2");
}

static void a_long_text_is_cut_after_2000_bytes_or_more(void **state) {
  heard h = {0};
  log_sink sink = {.fn = hear, .ctx = &h};
  char longer[5000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  log_say(&sink, LOG_INFO, "%s", longer);
  assert_in_range(strlen(h.text), 2000, 2100);
}

static void every_level_has_a_name(void **state) {
  assert_string_equal(log_level_name(LOG_DEBUG), "debug");
  assert_string_equal(log_level_name(LOG_INFO), "info");
  assert_string_equal(log_level_name(LOG_WARN), "warning");
  assert_string_equal(log_level_name(LOG_ERROR), "error");
}

/* ---- counting ---- */

static int64_t now_ns;

static int64_t at_now(const io *self, io_clock clock) {
  return now_ns;
}

static const io clock_only = {.now = at_now};

static void say_many(const log_sink *sink, log_level level, int times) {
  for (int i = 0; i < times; i++) log_say(sink, level, "unit %d is torn", i);
}

static void the_eleventh_of_a_kind_is_counted_and_the_count_is_told(void **state) {
  heard h = {0};
  log_counts counts;
  log_counts_init(&counts, &clock_only);
  log_sink sink = {.fn = hear, .ctx = &h, .min = LOG_INFO, .counts = &counts};
  log_sink copy = sink; /* a store has one of its own */
  say_many(&sink, LOG_WARN, 6);
  say_many(&copy, LOG_WARN, 294);
  assert_int_equal(h.lines, 10);
  assert_string_equal(h.text, "unit 3 is torn");
  log_say(&sink, LOG_WARN, "unit %d is torn", 7); /* the same words from another place */
  assert_int_equal(h.lines, 11);
  log_counts_say(&sink);
  assert_int_equal(h.lines, 12);
  assert_int_equal(h.level, LOG_WARN);
  assert_string_equal(h.text, "and 290 more of this kind, for example: unit 4 is torn");
  log_counts_say(&sink);
  assert_int_equal(h.lines, 12);
  log_counts_free(&counts);
}

static void what_is_counted_comes_again_once_an_hour(void **state) {
  heard h = {0};
  log_counts counts;
  log_counts_init(&counts, &clock_only);
  log_sink sink = {.fn = hear, .ctx = &h, .min = LOG_WARN, .counts = &counts};
  for (int minute = 0; minute < 20; minute++) {
    now_ns = (int64_t)minute * 60 * 1000000000;
    say_many(&sink, LOG_ERROR, 1);
  }
  assert_int_equal(h.lines, 10);
  now_ns = INT64_C(69) * 60 * 1000000000; /* an hour after the tenth */
  say_many(&sink, LOG_ERROR, 1);
  assert_int_equal(h.lines, 12);
  assert_int_equal(h.level, LOG_ERROR);
  assert_string_equal(h.text, "unit 0 is torn");
  say_many(&sink, LOG_ERROR, 5);
  assert_int_equal(h.lines, 12);
  log_counts_say(&sink);
  assert_string_equal(h.text, "and 5 more of this kind, for example: unit 0 is torn");
  log_counts_free(&counts);
}

static void nothing_is_counted_of_what_was_asked_for(void **state) {
  heard h = {0};
  log_counts counts;
  log_counts_init(&counts, &clock_only);
  log_sink sink = {.fn = hear, .ctx = &h, .min = LOG_INFO, .counts = &counts};
  say_many(&sink, LOG_INFO, 30);
  assert_int_equal(h.lines, 30);
  sink.min = LOG_DEBUG;
  say_many(&sink, LOG_WARN, 30);
  assert_int_equal(h.lines, 60);
  log_counts_say(&sink);
  assert_int_equal(h.lines, 60);
  log_counts_free(&counts);
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
      cmocka_unit_test(the_eleventh_of_a_kind_is_counted_and_the_count_is_told),
      cmocka_unit_test(what_is_counted_comes_again_once_an_hour),
      cmocka_unit_test(nothing_is_counted_of_what_was_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
