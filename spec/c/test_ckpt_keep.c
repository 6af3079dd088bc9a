/* ckpt_show, ckpt_pin, ckpt_unpin; and ckpt_remove, ckpt_plan beside them, on a target that the
 * core filled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ckpt.h"
#include "tmpdir.h"
#include "world.h"

typedef struct scene {
  world *w;
  runlog *log, *group;
  ckpt *c;
  char uri[600], at[700];
} scene;

static void save(scene *s, runlog *log, const char *path, int64_t step) {
  make_unit(s->w, path, MATCH_DIR, (unsigned)step);
  job *j = job_for(s->w, log, path, MATCH_DIR, step, 0);
  j->metrics = strdup("{\"loss\":0.25}");
  snprintf(j->reason, sizeof j->reason, "complete");
  job_run(j);
  assert_int_equal(j->status, 0);
  job_free(j);
}

static scene *scene_new(void) {
  scene *s = calloc(1, sizeof *s);
  s->w = world_new("file", world_io());
  s->log = world_begin(s->w->env.store, "", "one");
  s->group = world_begin(s->w->env.store, "exp/T1", "one");
  for (int i = 1; i <= 4; i++) {
    char name[40];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    save(s, s->log, name, i);
  }
  save(s, s->group, "exp/T1/checkpoint-9", 9);
  assert_int_equal(ckpt_open(&s->c, NULL), 0);
  snprintf(s->uri, sizeof s->uri, "file://%s/root", s->w->place.dir);
  return s;
}

static void scene_free(scene *s) {
  ckpt_close(s->c);
  runlog_close(s->log);
  runlog_close(s->group);
  world_free(s->w);
  free(s);
}

static const char *place(scene *s, const char *name) {
  snprintf(s->at, sizeof s->at, "%s/%s", s->uri, name);
  return s->at;
}

static const runlog_commit *find(scene *s, const char *unit) {
  assert_int_equal(runlog_refresh(s->log, NULL), 0);
  return runlog_newest_ever(runlog_view(s->log), unit);
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

static void show_tells_what_log_and_manifest_know(void **state) {
  (void)state;
  scene *s = scene_new();
  json_t *o = show(s, s->uri, "checkpoint-3");
  assert_string_equal(text_of(o, "name"), "checkpoint-3");
  assert_string_equal(text_of(o, "policy"), "test");
  assert_string_equal(text_of(o, "reason"), "complete");
  assert_string_equal(text_of(o, "kind"), "dir");
  assert_int_equal(json_integer_value(json_object_get(o, "step")), 3);
  json_t *loss = json_object_get(json_object_get(o, "metrics"), "loss");
  assert_true(json_real_value(loss) > 0.2 && json_real_value(loss) < 0.3);
  json_t *files = json_object_get(o, "files");
  size_t regular = 0, links = 0, i;
  json_t *f;
  json_array_foreach(files, i, f) {
    if (strcmp(text_of(f, "type"), "link") == 0) links++;
    if (strcmp(text_of(f, "type"), "file") != 0) continue;
    regular++;
    assert_int_equal(strlen(text_of(f, "digest")), 32);
    assert_true(json_is_integer(json_object_get(f, "size")));
  }
  assert_int_equal(regular, 3);
  assert_int_equal(links, 1);
  assert_int_equal(json_array_size(json_object_get(o, "pins")), 0);
  json_decref(o);
  scene_free(s);
}

static void show_takes_a_group_a_place_or_nothing_for_a_name(void **state) {
  (void)state;
  scene *s = scene_new();
  static const char *const ways[][2] = {{"", "exp/T1/checkpoint-9"},
                                        {"exp/T1", NULL},
                                        {"exp/T1/checkpoint-9", NULL},
                                        {"", NULL}}; /* it is the newest of all */
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    json_t *o = show(s, *ways[i][0] ? place(s, ways[i][0]) : s->uri, ways[i][1]);
    assert_string_equal(text_of(o, "name"), "checkpoint-9");
    json_decref(o);
  }
  json_t *o = show(s, place(s, "checkpoint-2"), NULL);
  assert_string_equal(text_of(o, "name"), "checkpoint-2");
  json_decref(o);
  scene_free(s);
}

static void what_is_not_there_is_not_shown(void **state) {
  (void)state;
  scene *s = scene_new();
  const char *json = "x";
  assert_int_equal(ckpt_show(s->c, s->uri, "checkpoint-77", &json), CKPT_ENOENT);
  assert_null(json);
  assert_non_null(strstr(ckpt_error(s->c), "checkpoint-77"));
  assert_true(ckpt_show(s->c, "/nowhere/at/all", NULL, &json) < 0);
  assert_true(ckpt_show(s->c, "mem://nothing", NULL, &json) < 0);
  assert_int_equal(ckpt_show(s->c, "", NULL, &json), CKPT_EINVAL);
  assert_int_equal(ckpt_show(s->c, NULL, NULL, &json), CKPT_EINVAL);
  const runlog_commit *c = find(s, "checkpoint-1");
  assert_int_equal(runlog_drop(s->log, c->n, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(ckpt_show(s->c, s->uri, "checkpoint-1", &json), CKPT_ENOENT);
  scene_free(s);
}

/* ---- pins ---- */

static void a_pinned_checkpoint_is_shown_so_and_refuses_removal(void **state) {
  (void)state;
  scene *s = scene_new();
  char id[33];
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-2", 3600, id), 0);
  json_t *o = show(s, s->uri, "checkpoint-2");
  json_t *pin = json_array_get(json_object_get(o, "pins"), 0);
  assert_string_equal(text_of(pin, "id"), id);
  assert_string_equal(text_of(pin, "by"), "user");
  assert_true(json_is_false(json_object_get(pin, "expired")));
  json_decref(o);
  ckpt_remove_options r = {.size = sizeof r, .uri = s->uri, .name = "checkpoint-2"};
  assert_int_equal(ckpt_remove(s->c, &r, NULL, NULL), CKPT_EHELD);
  assert_non_null(strstr(ckpt_error(s->c), "pinned"));
  r.flags = CKPT_REMOVE_ALL;
  assert_int_equal(ckpt_remove(s->c, &r, NULL, NULL), CKPT_EHELD);
  assert_int_equal(ckpt_unpin(s->c, s->uri, id), 1);
  assert_int_equal(ckpt_unpin(s->c, s->uri, id), CKPT_ENOENT);
  assert_int_equal(ckpt_remove(s->c, &r, NULL, NULL), 0);
  scene_free(s);
}

static void all_pins_of_a_checkpoint_go_by_its_name(void **state) {
  (void)state;
  scene *s = scene_new();
  char a[33], b[33], c[33];
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-2", 0, a), 0);
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-2", 0.5, b), 0);
  assert_int_equal(ckpt_pin(s->c, s->uri, "exp/T1/checkpoint-9", 0, c), 0);
  assert_int_equal(ckpt_unpin(s->c, s->uri, "checkpoint-2"), 2);
  assert_int_equal(ckpt_unpin(s->c, s->uri, "checkpoint-2"), CKPT_ENOENT);
  assert_int_equal(ckpt_unpin(s->c, s->uri, c), 1);
  scene_free(s);
}

static void a_pin_of_nothing_or_of_no_time_is_refused(void **state) {
  (void)state;
  scene *s = scene_new();
  char id[33] = "x";
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-77", 0, id), CKPT_ENOENT);
  assert_string_equal(id, "");
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-1", -1, id), CKPT_EINVAL);
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-1", NAN, id), CKPT_EINVAL);
  assert_int_equal(ckpt_pin(s->c, s->uri, "checkpoint-1", INFINITY, id), 0);
  scene_free(s);
}

static void what_is_no_share_is_not_taken_for_the_default(void **state) {
  (void)state;
  scene *s = scene_new();
  for (size_t i = 0; i < 4; i++) {
    double share = (double[]){NAN, -0.5, 1.5, INFINITY}[i];
    ckpt_plan_options plan = {.size = sizeof plan, .uri = s->uri, .max_delete = share};
    assert_int_equal(ckpt_plan(s->c, &plan, NULL, NULL), CKPT_EINVAL);
    assert_non_null(strstr(ckpt_error(s->c), "max_delete"));
    ckpt_run_options o = {.size = sizeof o, .dir = "/tmp", .to = s->uri, .max_delete = share};
    ckpt_run *run;
    assert_int_equal(ckpt_run_open(s->c, &run, &o), CKPT_EINVAL);
    assert_non_null(strstr(ckpt_error(s->c), "max_delete"));
  }
  ckpt_plan_options whole = {.size = sizeof whole, .uri = s->uri, .max_delete = 1};
  assert_int_equal(ckpt_plan(s->c, &whole, NULL, NULL), 0);
  scene_free(s);
}

static void what_nobody_can_read_as_a_pin_can_be_removed(void **state) {
  (void)state;
  scene *s = scene_new();
  store_put_text(s->w->env.store, ".ckpt/pins/odd", "?", STORE_IF_ABSENT);
  assert_int_equal(ckpt_unpin(s->c, s->uri, "odd"), 1);
  assert_false(store_holds(s->w->env.store, ".ckpt/pins/odd"));
  scene_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(show_tells_what_log_and_manifest_know),
      cmocka_unit_test(show_takes_a_group_a_place_or_nothing_for_a_name),
      cmocka_unit_test(what_is_not_there_is_not_shown),
      cmocka_unit_test(a_pinned_checkpoint_is_shown_so_and_refuses_removal),
      cmocka_unit_test(all_pins_of_a_checkpoint_go_by_its_name),
      cmocka_unit_test(a_pin_of_nothing_or_of_no_time_is_refused),
      cmocka_unit_test(what_is_no_share_is_not_taken_for_the_default),
      cmocka_unit_test(what_nobody_can_read_as_a_pin_can_be_removed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
