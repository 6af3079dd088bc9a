/* Lists of names in JSON. */
#include "with_cmocka.h"

#include <string.h>

#include "base/json_names.h"

enum { ROOM = 100 };

static int take(const char *text, names *out, err *e) {
  json_t *list = NULL;
  *out = (names){0};
  assert_int_equal(js_parse(text, strlen(text), "text", &list, NULL), 0);
  int rc = js_take_names(list, "refused", "a record", ROOM, out, e);
  json_decref(list);
  return rc;
}

static void each_name_is_taken_as_it_was_escaped(void **unused) {
  (void)unused;
  names out;
  assert_int_equal(take("[\"a b\", \"x%FFy\", \"\"]", &out, NULL), 0);
  assert_int_equal(out.count, 3);
  assert_string_equal(out.at[0], "a b");
  assert_string_equal(out.at[1], "x\xffy");
  assert_string_equal(out.at[2], "");
  names_free(&out);
}

static void what_is_no_list_has_none(void **unused) {
  (void)unused;
  names out = {0};
  assert_int_equal(js_take_names(NULL, "refused", "a record", ROOM, &out, NULL), 0);
  assert_int_equal(take("7", &out, NULL), 0);
  assert_int_equal(out.count, 0);
}

static void what_is_no_name_is_refused_by_its_place(void **unused) {
  (void)unused;
  names out;
  err e = {0};
  assert_int_equal(take("[\"a\", 7]", &out, &e), ERR_FORMAT);
  assert_string_equal(e.text, "a record: \"refused\" is no list of names");
  names_free(&out);
  assert_int_equal(take("[\"%00\"]", &out, NULL), ERR_FORMAT);
  names_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_name_is_taken_as_it_was_escaped),
      cmocka_unit_test(what_is_no_list_has_none),
      cmocka_unit_test(what_is_no_name_is_refused_by_its_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
