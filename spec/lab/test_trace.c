/* What `policy simulate` finds complete in a trace is what a detector that watches finds, then. */
#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event/detect_trace.h"
#include "base/io.h"
#include "lab/trace.h"

static trace_rules builtin(void) {
  return (trace_rules){.rules = rules_builtin()};
}

static lab_history played(const char *name) {
  lab_history h;
  err e = {0};
  char path[512];
  const trace_rules by = builtin();
  snprintf(path, sizeof path, "spec/data/traces/%s.jsonl", name);
  FILE *there = fopen(path, "r");
  if (!there)
    snprintf(path, sizeof path, "%.*s../data/traces/%s.jsonl",
             (int)(strrchr(__FILE__, '/') ? strrchr(__FILE__, '/') - __FILE__ + 1 : 0), __FILE__,
             name);
  else
    fclose(there);
  if (lab_history_read(io_system(), path, &h, &e) < 0) fail_msg("%s", e.text);
  if (lab_trace_play(&h, path, &by, NULL, &e) < 0) fail_msg("%s: %s", name, e.text);
  return h;
}

static void path_of(const lab_event *event, char out[600]) {
  snprintf(out, 600, "%s%s%s", event->trial, *event->trial ? "/" : "", event->name);
}

/* The watching one has a clock of whole events, too; both ask at the same moments. */
static void finds_the_same(const char *name, size_t left) {
  char path[600];
  sim *s = trace_replay(name, left);
  lab_history h = played(name);
  size_t at = 1; /* behind the start */
  assert_int_equal(h.events[0].what, LAB_START);
  for (size_t i = 0; i < s->count; i++) {
    const sim_news *n = &s->news[i];
    if (n->state != DETECT_COMPLETE || trace_is_above(n->path)) continue;
    if (at >= h.count) fail_msg("%s: %s is not found", name, n->path);
    path_of(&h.events[at], path);
    assert_string_equal(path, n->path);
    assert_int_equal(h.events[at].bytes, n->bytes);
    const double apart = (double)(h.events[at].at_ns - (n->t - trace_ns(0))) / 1e9;
    if (fabs(apart) > 0.05) fail_msg("%s: %s is found %.3f s later", name, path, apart);
    at++;
  }
  assert_int_equal(at, h.count);
  lab_history_free(&h);
  sim_free(s);
}

static void each_recorded_training_is_seen_as_it_is_when_watched(void **state) {
  static const struct {
    const char *name;
    size_t left;
  } of[] = {{"adaptdl", 1},
            {"orbax", 2},
            {"orbax_trash", 2},
            {"sb3", 4},
            {"lightning", 3},
            {"lightning_link", 2},
            {"hf_trainer", 2},
            {"accelerate", 2},
            {"hf_trainer_ddp", 2},
            {"dcp", 2},
            {"keras", 6},
            {"tf_ckpt", 2},
            {"xgboost", 3},
            {"ray_tune", 7},
            {"ray_train", 2},
            {"ignite", 2},
            {"mmengine", 2},
            {"torchsnapshot", 3},
            {"flax_legacy", 2},
            {"flax_orbax", 2},
            {"deepspeed", 3},
            {"hf_trainer_best", 2},
            {"hf_trainer_slow_rank", 2},
            {"catboost", 1},
            {"lightgbm_joblib", 3}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) finds_the_same(of[i].name, of[i].left);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_recorded_training_is_seen_as_it_is_when_watched),
  };
  return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
