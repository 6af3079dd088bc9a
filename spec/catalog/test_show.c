/* What is shown of a checkpoint. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "catalog/show.h"
#include "filled.h"

static json_t *show(filled *f, const char *uri, const char *name) {
  asked a;
  char *text = NULL;
  json_t *value = NULL;
  err e = {0};
  if (show_checkpoint(filled_ask(f, uri, name, &a), &text, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(js_parse(text, strlen(text), "show", &value, NULL), 0);
  free(text);
  return value;
}

static const char *text_of(json_t *o, const char *key) {
  const char *text = json_string_value(json_object_get(o, key));
  return text ? text : "";
}

static void show_tells_what_log_and_manifest_know(void **state) {
  filled *f = *state;
  json_t *o = show(f, f->uri, "checkpoint-3");
  assert_string_equal(text_of(o, "name"), "checkpoint-3");
  assert_string_equal(text_of(o, "policy"), "test");
  assert_string_equal(text_of(o, "reason"), "complete");
  assert_string_equal(text_of(o, "kind"), "dir");
  assert_int_equal(json_integer_value(json_object_get(o, "step")), 3);
  json_t *loss = json_object_get(json_object_get(o, "metrics"), "loss");
  assert_true(json_real_value(loss) > 0.2 && json_real_value(loss) < 0.3);
  json_t *files = json_object_get(o, "files");
  size_t regular = 0, links = 0, i;
  json_t *file;
  json_array_foreach(files, i, file) {
    if (strcmp(text_of(file, "type"), "link") == 0) links++;
    if (strcmp(text_of(file, "type"), "file") != 0) continue;
    regular++;
    assert_int_equal(strlen(text_of(file, "digest")), 32);
    assert_true(json_is_integer(json_object_get(file, "size")));
  }
  assert_int_equal(regular, 3);
  assert_int_equal(links, 1);
  assert_int_equal(json_array_size(json_object_get(o, "pins")), 0);
  json_decref(o);
}

static void show_takes_a_group_a_place_or_nothing_for_a_name(void **state) {
  filled *f = *state;
  static const char *const ways[][2] = {{"", "exp/T1/checkpoint-9"},
                                        {"exp/T1", NULL},
                                        {"exp/T1/checkpoint-9", NULL},
                                        {"", NULL}}; /* it is the newest of all */
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    json_t *o = show(f, *ways[i][0] ? filled_place(f, ways[i][0]) : f->uri, ways[i][1]);
    assert_string_equal(text_of(o, "name"), "checkpoint-9");
    json_decref(o);
  }
  json_t *o = show(f, filled_place(f, "checkpoint-2"), NULL);
  assert_string_equal(text_of(o, "name"), "checkpoint-2");
  json_decref(o);
}

static void must_refuse(filled *f, const char *uri, const char *name, int status) {
  asked a;
  char *text = NULL;
  err e = {0};
  int rc = asked_parse(f->w->env.io, NULL, uri, name, &a, &e);
  if (rc == 0) rc = show_checkpoint(&a, &text, &e);
  assert_int_equal(rc, status);
  assert_null(text);
}

static void what_is_not_there_is_not_shown(void **state) {
  filled *f = *state;
  must_refuse(f, f->uri, "checkpoint-77", ERR_NOENT);
  must_refuse(f, "/nowhere/at/all", NULL, ERR_NOSTORE);
  must_refuse(f, "", NULL, ERR_INVAL);
  must_refuse(f, NULL, NULL, ERR_INVAL);
  assert_int_equal(runlog_refresh(f->log, NULL), 0);
  const runlog_commit *c = runlog_newest_ever(runlog_view(f->log), "checkpoint-1");
  assert_int_equal(runlog_drop(f->log, c->n, NULL, NULL, NULL, NULL, NULL), 0);
  must_refuse(f, f->uri, "checkpoint-1", ERR_NOENT);
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, filled_set_up, filled_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(show_tells_what_log_and_manifest_know),
      ON_A_TARGET(show_takes_a_group_a_place_or_nothing_for_a_name),
      ON_A_TARGET(what_is_not_there_is_not_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
