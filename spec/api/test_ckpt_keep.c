/* ckpt_show, ckpt_pin, ckpt_unpin; and ckpt_remove, ckpt_plan beside them, on a target that the
 * core filled. */
#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ckpt.h"
#include "filled.h"
#include "tmpdir.h"

typedef struct scene {
  filled *f;
  ckpt *c;
} scene;

static int set_up(void **state) {
  scene *s = *state = calloc(1, sizeof *s);
  s->f = filled_new();
  return ckpt_open(&s->c, NULL);
}

static int tear_down(void **state) {
  scene *s = *state;
  ckpt_close(s->c);
  filled_free(s->f);
  free(s);
  return 0;
}

static const runlog_commit *find(scene *s, const char *unit) {
  assert_int_equal(runlog_refresh(s->f->log, NULL), 0);
  return runlog_newest_ever(runlog_view(s->f->log), unit);
}

/* ---- show ---- */

static json_t *show(scene *s, const char *uri, const char *name) {
  const char *text = NULL;
  json_t *value = NULL;
  if (ckpt_show(s->c, uri, name, &text) < 0) fail_msg("%s", ckpt_error(s->c));
  assert_int_equal(js_parse(text, strlen(text), "show", &value, NULL), 0);
  return value;
}

static const char *text_of(json_t *o, const char *key) {
  const char *text = json_string_value(json_object_get(o, key));
  return text ? text : "";
}

static void what_is_not_there_is_not_shown(void **state) {
  scene *s = *state;
  const char *json = "x";
  assert_int_equal(ckpt_show(s->c, s->f->uri, "checkpoint-77", &json), CKPT_ENOENT);
  assert_null(json);
  assert_non_null(strstr(ckpt_error(s->c), "checkpoint-77"));
  assert_true(ckpt_show(s->c, "/nowhere/at/all", NULL, &json) < 0);
  assert_true(ckpt_show(s->c, "mem://nothing", NULL, &json) < 0);
  assert_int_equal(ckpt_show(s->c, "", NULL, &json), CKPT_EINVAL);
  assert_int_equal(ckpt_show(s->c, NULL, NULL, &json), CKPT_EINVAL);
  const runlog_commit *c = find(s, "checkpoint-1");
  assert_int_equal(runlog_drop(s->f->log, c->n, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(ckpt_show(s->c, s->f->uri, "checkpoint-1", &json), CKPT_ENOENT);
}

/* ---- pins ---- */

static void a_pinned_checkpoint_is_shown_so_and_refuses_removal(void **state) {
  scene *s = *state;
  char id[33];
  assert_int_equal(ckpt_pin(s->c, s->f->uri, "checkpoint-2", 3600, id), 0);
  json_t *o = show(s, s->f->uri, "checkpoint-2");
  json_t *pin = json_array_get(json_object_get(o, "pins"), 0);
  assert_string_equal(text_of(pin, "id"), id);
  assert_string_equal(text_of(pin, "by"), "user");
  assert_true(json_is_false(json_object_get(pin, "expired")));
  json_decref(o);
  ckpt_remove_options r = {.size = sizeof r, .uri = s->f->uri, .name = "checkpoint-2"};
  assert_int_equal(ckpt_remove(s->c, &r, NULL, NULL), CKPT_EHELD);
  assert_non_null(strstr(ckpt_error(s->c), "pinned"));
  r.flags = CKPT_REMOVE_ALL;
  assert_int_equal(ckpt_remove(s->c, &r, NULL, NULL), CKPT_EHELD);
  assert_int_equal(ckpt_unpin(s->c, s->f->uri, id), 1);
  assert_int_equal(ckpt_unpin(s->c, s->f->uri, id), CKPT_ENOENT);
  assert_int_equal(ckpt_remove(s->c, &r, NULL, NULL), 0);
}

static void a_pin_of_nothing_or_of_no_time_is_refused(void **state) {
  scene *s = *state;
  char id[33] = "x";
  assert_int_equal(ckpt_pin(s->c, s->f->uri, "checkpoint-77", 0, id), CKPT_ENOENT);
  assert_string_equal(id, "");
  assert_int_equal(ckpt_pin(s->c, s->f->uri, "checkpoint-1", -1, id), CKPT_EINVAL);
  assert_int_equal(ckpt_pin(s->c, s->f->uri, "checkpoint-1", NAN, id), CKPT_EINVAL);
  assert_int_equal(ckpt_pin(s->c, s->f->uri, "checkpoint-1", INFINITY, id), 0);
}

static void what_is_no_share_is_not_taken_for_the_default(void **state) {
  scene *s = *state;
  for (size_t i = 0; i < 4; i++) {
    double share = (double[]){NAN, -0.5, 1.5, INFINITY}[i];
    ckpt_plan_options plan = {.size = sizeof plan, .uri = s->f->uri, .max_delete = share};
    assert_int_equal(ckpt_plan(s->c, &plan, NULL, NULL), CKPT_EINVAL);
    assert_non_null(strstr(ckpt_error(s->c), "max_delete"));
    ckpt_run_options o = {.size = sizeof o, .dir = "/tmp", .to = s->f->uri, .max_delete = share};
    ckpt_run *run;
    assert_int_equal(ckpt_run_open(s->c, &run, &o), CKPT_EINVAL);
    assert_non_null(strstr(ckpt_error(s->c), "max_delete"));
  }
  ckpt_plan_options whole = {.size = sizeof whole, .uri = s->f->uri, .max_delete = 1};
  assert_int_equal(ckpt_plan(s->c, &whole, NULL, NULL), 0);
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(what_is_not_there_is_not_shown),
      ON_A_TARGET(a_pinned_checkpoint_is_shown_so_and_refuses_removal),
      ON_A_TARGET(a_pin_of_nothing_or_of_no_time_is_refused),
      ON_A_TARGET(what_is_no_share_is_not_taken_for_the_default),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
