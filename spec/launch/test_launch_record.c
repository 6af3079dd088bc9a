/* What tasks of one launch tell each other comes back as it was, within its limits, or is refused. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/rule/launch_record.h"

static buf text_of(const char *text) {
  buf b;
  buf_init(&b, LAUNCH_BYTES_MAX);
  buf_add(&b, text, strlen(text));
  return b;
}

static int parse_answer(const char *text, launch_answer *out) {
  buf b = text_of(text);
  int rc = launch_parse_answer(&b, out, NULL);
  buf_free(&b);
  return rc;
}

static int parse_question(const char *text, launch_question *out) {
  buf b = text_of(text);
  int rc = launch_parse_question(&b, out, NULL);
  buf_free(&b);
  return rc;
}

static void a_question_comes_back_as_it_was(void **state) {
  launch_question q = {.number = 7, .over = true}, back;
  launch_unit unit = {.path = (char *)"a\xff b/x", .kind = MATCH_GROUP, .stamp = UINT64_MAX};
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  assert_true(names_add(&q.excludes, "*.tmp%"));
  assert_true(launch_add(&q.units, &unit));
  assert_int_equal(launch_print_question(&q, &text, NULL), 0);
  assert_int_equal(launch_parse_question(&text, &back, NULL), 0);
  assert_int_equal(back.number, 7);
  assert_true(back.over);
  assert_string_equal(back.excludes.at[0], "*.tmp%");
  const launch_unit *u = launch_find(&back.units, unit.path);
  assert_non_null(u);
  assert_int_equal(u->kind, MATCH_GROUP);
  assert_true(u->stamp == UINT64_MAX);
  launch_free_question(&q);
  launch_free_question(&back);
  buf_free(&text);
}

static void an_answer_comes_back_as_it_was(void **state) {
  launch_answer a = {.task = 65535, .number = 3, .ended = true, .clean = true, .host = "n3"}, back;
  launch_unit unit = {.path = (char *)"checkpoint-1", .stamp = 9, .open = true};
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  assert_true(launch_add(&a.units, &unit));
  assert_int_equal(launch_print_answer(&a, &text, NULL), 0);
  assert_int_equal(launch_parse_answer(&text, &back, NULL), 0);
  assert_int_equal(back.task, 65535);
  assert_int_equal(back.number, 3);
  assert_true(back.ended && back.clean);
  assert_string_equal(back.host, "n3");
  assert_true(launch_find(&back.units, "checkpoint-1")->open);
  launch_free_answer(&a);
  launch_free_answer(&back);
  buf_free(&text);
}

static void the_largest_question_fits(void **state) {
  enum { LONG = 4000 };
  launch_question q = {0}, back;
  char path[LONG];
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  memset(path, '\x01', sizeof path); /* each byte of it takes three */
  path[LONG - 1] = 0;
  for (int i = 0; i < LAUNCH_UNITS_MAX; i++) {
    path[0] = (char)('a' + i / 16);
    path[1] = (char)('a' + i % 16);
    assert_true(launch_add(&q.units, &(launch_unit){.path = path}));
  }
  assert_false(launch_add(&q.units, &(launch_unit){.path = (char *)"one more"}));
  assert_int_equal(launch_print_question(&q, &text, NULL), 0);
  assert_int_equal(launch_parse_question(&text, &back, NULL), 0);
  assert_int_equal(back.units.count, LAUNCH_UNITS_MAX);
  launch_free_question(&q);
  launch_free_question(&back);
  buf_free(&text);
}

static void what_is_none_is_refused(void **state) {
  static const char *const bad[] = {
      "",
      "{}",
      "[]",
      "{\"format\":1,\"reader\":1}",
      "{\"format\":1,\"reader\":1,\"number\":-1,\"task\":0,\"host\":\"\",\"units\":[]}",
      "{\"format\":1,\"reader\":1,\"number\":1,\"task\":4294967296,\"host\":\"\",\"units\":[]}",
      "{\"format\":1,\"reader\":1,\"number\":1,\"task\":0,\"host\":\"\",\"units\":[{\"path\":\"a\","
      "\"kind\":3,"
      "\"stamp\":0}]}",
      "{\"format\":1,\"reader\":1,\"number\":1,\"task\":0,\"host\":\"\",\"units\":[{\"path\":\"a\","
      "\"kind\":0,"
      "\"stamp\":0},"
      "{\"path\":\"a\",\"kind\":0,\"stamp\":0}]}",
      "{\"format\":1,\"reader\":1,\"number\":1,\"task\":0,\"units\":[]}"};
  launch_answer a;
  launch_question q;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (parse_answer(bad[i], &a) == 0) fail_msg("an answer: %s", bad[i]);
    if (parse_question(bad[i], &q) == 0) fail_msg("a question: %s", bad[i]);
  }
  /* A newer one may mean something that we do not know. */
  assert_int_equal(parse_answer("{\"format\":2,\"reader\":2,\"number\":1,\"task\":0,\"host\":\"\","
                                "\"units\":[]}",
                                &a),
                   ERR_VERSION);
}

static void more_units_or_excludes_than_there_may_be_are_refused(void **state) {
  static const char unit[] = "{\"path\":\"u%d\",\"kind\":0,\"stamp\":1}", exclude[] = "\"x%d\"";
  launch_question q;
  for (int which = 0; which < 2; which++) {
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    fprintf(f, "{\"format\":1,\"reader\":1,\"number\":1,\"%s\":[],\"%s\":[",
            which ? "units" : "excludes", which ? "excludes" : "units");
    for (int i = 0; i <= (which ? LAUNCH_EXCLUDES_MAX : LAUNCH_UNITS_MAX); i++) {
      fputs(i ? "," : "", f);
      which ? fprintf(f, exclude, i) : fprintf(f, unit, i);
    }
    fputs("]}", f);
    fclose(f);
    buf b = text_of(text);
    assert_int_equal(launch_parse_question(&b, &q, NULL), ERR_LIMIT);
    buf_free(&b);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_question_comes_back_as_it_was),
      cmocka_unit_test(an_answer_comes_back_as_it_was),
      cmocka_unit_test(the_largest_question_fits),
      cmocka_unit_test(what_is_none_is_refused),
      cmocka_unit_test(more_units_or_excludes_than_there_may_be_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
