/* Conditions of completeness as a policy writes them: what holds, what is nearest, and what speaks
 * against it whatever they say. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/detect_condition.h"
#include "detect_sim.h"

static const int64_t second = 1000000000;

/* ---- trees ---- */

typedef struct tree {
  rules_test tests[RULES_TESTS_MAX];
  size_t count;
  rules *rules;
} tree;

static unsigned leaf(tree *t, rules_op op) {
  t->tests[t->count] = (rules_test){.op = op};
  if (op == RULES_MARKER) t->tests[t->count].name = "DONE";
  if (op == RULES_PARTS) t->tests[t->count] = (rules_test){op, .name = "shard-*", .count = 4};
  if (op == RULES_QUIET) t->tests[t->count].ns = 5 * second;
  return (unsigned)t->count++;
}

static unsigned branch(tree *t, rules_op op, unsigned parts) {
  t->tests[t->count] = (rules_test){.op = op, .first = (unsigned)t->count + 1, .count = parts};
  return (unsigned)t->count++;
}

static const rules *make(tree *t) {
  err e = {0};
  rules_free(t->rules);
  int rc = rules_make(&(rules_spec){.tests = t->tests, .test_count = t->count}, &t->rules, &e);
  if (rc < 0) fail_msg("%s", e.text);
  return t->rules;
}

static const rules *leaf_alone(tree *t, rules_op op) {
  leaf(t, op);
  return make(t);
}

static const rules *branch_of(tree *t, rules_op op, unsigned parts, const rules_op *leaves) {
  branch(t, op, parts);
  for (unsigned i = 0; i < parts; i++) leaf(t, leaves[i]);
  return make(t);
}

static int set_up(void **state) {
  *state = calloc(1, sizeof(tree));
  return *state ? 0 : -1;
}

static int tear_down(void **state) {
  tree *t = *state;
  rules_free(t->rules);
  free(t);
  return 0;
}

/* One closed file, written while we watched, long quiet. */
static rule_facts quiet_file(void) {
  return (rule_facts){.files = 1,
                      .touched = true,
                      .quiet = 3600 * second,
                      .age = 3600 * second,
                      .grain = second / 100};
}

static void end_writer(rule_facts *f) {
  f->ended = true;
  f->writer = RULE_NOBODY;
}

static condition_finding look(const rules *r, const rule_facts *f) {
  condition_finding t;
  condition_look(r, f, &t);
  assert_true(*t.text);
  assert_int_equal(t.holds > CONDITION_UNKNOWN, t.wait == 0);
  return t;
}

static rule_verdict decide(const rules *r, const rule_facts *f) {
  rule_verdict v;
  rule_decide(r, f, &v);
  assert_true(*v.reason);
  assert_true(v.wait > 0);
  if (v.state != DETECT_OPEN) assert_true(v.wait == RULE_NEVER);
  return v;
}

static void says(const rules *r, const rule_facts *f, detect_state state, const char *reason) {
  rule_verdict v = decide(r, f);
  if (v.state != state || strcmp(v.reason, reason) != 0)
    fail_msg("state %d, \"%s\", not %d, \"%s\"", (int)v.state, v.reason, (int)state, reason);
}

/* ---- each leaf ---- */

static void a_rename_holds_only_where_there_was_one(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_RENAMED);
  rule_facts f = quiet_file();
  says(r, &f, DETECT_OPEN, "it was not renamed into place");
  assert_true(decide(r, &f).wait == RULE_NEVER);
  f.ended = f.clean = true;
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_BROKEN, "it was not renamed into place");
  f.renamed = true;
  says(r, &f, DETECT_COMPLETE, "renamed into place");
  f = quiet_file();
  f.touched = false;
  f.unproven = 1;
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_UNPROVEN, "nobody saw whether it was renamed into place");
}

static void closes_that_nobody_saw_need_the_long_silence(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_CLOSED);
  rule_facts f = quiet_file();
  f.quiet = f.age = second;
  says(r, &f, DETECT_COMPLETE, "all files closed");
  f.seen = 1;
  says(r, &f, DETECT_OPEN, "closes were not seen, quiet 1.0 of 30 s");
  assert_true(decide(r, &f).wait == 29 * second);
  f.quiet = f.age = 30 * second;
  assert_true(decide(r, &f).ask_writer);
  f.writer = RULE_SOMEBODY;
  assert_int_equal(decide(r, &f).state, DETECT_OPEN);
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_COMPLETE, "all files closed");
}

static void a_lacking_file_is_named_with_who_had_it(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_SUPERSET);
  rule_facts f = quiet_file();
  says(r, &f, DETECT_COMPLETE, "no file is missing");
  f.lacks = "optimizer.pt";
  f.before = "checkpoint-10";
  says(r, &f, DETECT_OPEN, "lacks optimizer.pt, which checkpoint-10 had");
  end_writer(&f);
  f.quiet = f.age = 3600 * second;
  says(r, &f, DETECT_UNPROVEN, "lacks optimizer.pt, which checkpoint-10 had");
}

static void the_structure_is_only_looked_at_where_it_decides(void **state) {
  tree *t = *state;
  const rules *r = branch_of(t, RULES_ALL, 2, (rules_op[]){RULES_SOUND, RULES_MARKER});
  rule_facts f = quiet_file();
  assert_false(decide(r, &f).ask_sound);
  f.marked = 1 << 2;
  assert_true(decide(r, &f).ask_sound);
  f.sound = RULE_SOUND;
  says(r, &f, DETECT_COMPLETE, "its structure is whole, DONE is there");
  assert_false(decide(r, &f).ask_sound);
  f.sound = RULE_UNSOUND;
  f.unsound = "a.bin: no format we know";
  says(r, &f, DETECT_OPEN, "its structure is not known to be whole: a.bin: no format we know");
}

static void quiet_says_how_far_it_is(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_QUIET);
  rule_facts f = quiet_file();
  f.quiet = f.age = 4 * second / 10;
  says(r, &f, DETECT_OPEN, "quiet 0.4 of 5 s");
  assert_true(decide(r, &f).wait == 46 * second / 10);
  f.clean = f.ended = true; /* there is nothing left to wait for */
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_COMPLETE, "quiet 5 s");
  f.foreign = true;
  assert_int_equal(decide(r, &f).state, DETECT_OPEN);
  /* Silence alone proves nothing of what was there before us. */
  f = quiet_file();
  f.unproven = 1;
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_UNPROVEN, "nothing proves it whole");
}

static void a_marker_is_there_or_old_or_missing(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_MARKER);
  rule_facts f = quiet_file();
  says(r, &f, DETECT_OPEN, "marker DONE is missing");
  f.marked = 1;
  says(r, &f, DETECT_COMPLETE, "DONE is there");
  f.marked_old = 1;
  says(r, &f, DETECT_OPEN, "DONE is older than the data");
  end_writer(&f);
  says(r, &f, DETECT_UNPROVEN, "DONE is older than the data");
  f.marked = f.marked_old = 0;
  says(r, &f, DETECT_BROKEN, "marker DONE is missing");
  /* It needs no event: a listing that shows it is enough. */
  f = quiet_file();
  f.unproven = 2;
  f.touched = false;
  f.marked = 1;
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_COMPLETE, "DONE is there");
}

static void parts_are_counted(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_PARTS);
  rule_facts f = quiet_file();
  f.parts[0] = 3;
  says(r, &f, DETECT_OPEN, "3 of 4 files shard-* are there");
  f.parts[0] = 5;
  says(r, &f, DETECT_COMPLETE, "5 files shard-* are there");
  /* Their number says nothing of a file that nobody saw closed. */
  f.unproven = 1;
  f.writer = RULE_NOBODY;
  says(r, &f, DETECT_UNPROVEN, "nothing proves it whole");
  f = quiet_file();
  f.parts[0] = 3;
  end_writer(&f);
  says(r, &f, DETECT_BROKEN, "3 of 4 files shard-* are there");
}

/* In a tree: at each depth below the unit, and by the whole name there. */
static void parts_are_found_in_the_unit(void **state) {
  tree *t = *state;
  sim *s = sim_new(leaf_alone(t, RULES_PARTS));
  sim_open(s);
  sim_mkdir(s, "checkpoint-1");
  sim_mkdir(s, "checkpoint-1/more");
  sim_save(s, "checkpoint-1/shard-0", 10);
  sim_save(s, "checkpoint-1/shard-1", 10);
  sim_save(s, "checkpoint-1/shard-2", 10);
  sim_save(s, "checkpoint-1/more/shard-3", 10);
  sim_save(s, "checkpoint-1/other", 10);
  sim_after(s, 100 * SIM_S, "checkpoint-1", DETECT_OPEN);
  assert_string_equal(sim_reason(s, "checkpoint-1"), "3 of 4 files shard-* are there");
  sim_save(s, "checkpoint-1/shard-3", 10);
  sim_after(s, 40 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  sim_free(s);
}

static void known_is_the_built_in_rule(void **state) {
  tree *t = *state;
  const rules *r = leaf_alone(t, RULES_KNOWN);
  for (unsigned bits = 0; bits < 1u << 12; bits++) {
    rule_facts f = quiet_file();
    f.clean = bits & 1;
    f.unproven = bits & 2 ? 1 : 0;
    f.lacks = bits & 4 ? "x" : NULL;
    f.marker = bits & 8 ? "m" : NULL;
    f.needed = bits & 16 ? "n" : NULL;
    f.renamed = bits & 32;
    f.ended = (bits & 64) || f.clean;
    f.seen = bits & 128 ? 1 : 0;
    f.marker_old = bits & 256;
    f.mixed = bits & 512;
    f.writer = bits & 1024 ? RULE_NOBODY : RULE_SOMEBODY;
    if (bits & 2048) f.quiet = f.age = second;
    rule_verdict v = decide(r, &f), builtin = decide(rules_builtin(), &f);
    if (v.state == DETECT_COMPLETE) assert_int_equal(builtin.state, DETECT_COMPLETE);
    if (f.writer == RULE_NOBODY && builtin.state == DETECT_COMPLETE && !f.mixed && !f.seen)
      assert_int_equal(v.state, DETECT_COMPLETE);
  }
}

/* ---- combinations ---- */

static void all_names_the_nearest_part_that_fails(void **state) {
  tree *t = *state;
  const rules *r =
      branch_of(t, RULES_ALL, 3, (rules_op[]){RULES_MARKER, RULES_SUPERSET, RULES_QUIET});
  rule_facts f = quiet_file();
  f.marked = 1 << 1;
  f.quiet = f.age = 4 * second / 10;
  says(r, &f, DETECT_OPEN, "DONE is there, quiet 0.4 of 5 s");
  f.lacks = "optimizer.pt";
  f.before = "checkpoint-10";
  says(r, &f, DETECT_OPEN, "lacks optimizer.pt, which checkpoint-10 had");
  f.marked = 0;
  says(r, &f, DETECT_OPEN, "marker DONE is missing");
  f.lacks = NULL;
  f.marked = 1 << 1;
  f.quiet = f.age = 5 * second;
  says(r, &f, DETECT_COMPLETE, "DONE is there, no file is missing, quiet 5 s");
}

static void any_names_the_branch_that_is_nearest(void **state) {
  tree *t = *state;
  const rules *r =
      branch_of(t, RULES_ANY, 3, (rules_op[]){RULES_RENAMED, RULES_MARKER, RULES_QUIET});
  rule_facts f = quiet_file();
  f.quiet = f.age = second;
  says(r, &f, DETECT_OPEN, "quiet 1.0 of 5 s");
  f.marked = 1 << 2;
  says(r, &f, DETECT_COMPLETE, "DONE is there");
}

static void none_fails_while_it_is_there(void **state) {
  tree *t = *state;
  branch(t, RULES_ALL, 2);
  t->tests[t->count++] = (rules_test){.op = RULES_NONE, .first = 3, .count = 1};
  leaf(t, RULES_CLOSED);
  leaf(t, RULES_MARKER);
  const rules *r = make(t);
  rule_facts f = quiet_file();
  says(r, &f, DETECT_COMPLETE, "DONE is not there, all files closed");
  f.marked = 1 << 3;
  says(r, &f, DETECT_OPEN, "DONE is there, which must not be");
  end_writer(&f);
  says(r, &f, DETECT_BROKEN, "DONE is there, which must not be");
}

/* ---- properties, over random facts and trees ---- */

static uint64_t seed = 88172645463325252U;
static uint64_t draw(uint64_t below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % below;
}

static rule_facts random_facts(void) {
  static const int64_t times[] = {0, 50000000, 100000000, 4000000000, 5000000000, 3600000000000};
  rule_facts f = quiet_file();
  uint64_t bits = draw(1 << 16);
  for (size_t i = 0; i < RULES_TESTS_MAX; i++) f.parts[i] = (unsigned)draw(7);
  f.renamed = bits & 1;
  f.seen = bits & 2 ? 1 : 0;
  f.unproven = (bits & 12) == 12 ? 1 : 0;
  f.dead = (bits & 48) == 48;
  f.lacks = bits & 64 ? "x" : NULL;
  f.clean = (bits & 384) == 384;
  f.ended = f.clean || (bits & 512);
  f.blind = (bits & 3072) == 3072;
  f.mixed = (bits & 12288) == 12288;
  f.touched = bits & 16384;
  f.marker = bits & 32768 ? "m" : NULL;
  f.marked = draw(UINT64_MAX);
  f.marked_old = draw(2) ? 0 : draw(UINT64_MAX);
  f.sound = (rule_structure)(1 + draw(2));
  f.quiet = f.age = times[draw(6)];
  f.writer = (rule_writer)draw(3);
  return f;
}

/* Grows a random tree at `at`; leaves of the same kind look the same wherever they stand, but for
 * markers and parts, whose facts are kept by their place. */
static void grow(tree *t, size_t at, int depth, bool markers) {
  static const rules_op leaves[] = {RULES_RENAMED, RULES_CLOSED, RULES_SUPERSET, RULES_SOUND,
                                    RULES_QUIET,   RULES_MARKER, RULES_PARTS};
  size_t kinds = markers ? 7 : 5;
  if (depth == 0 || draw(3) == 0 || t->count + 3 > RULES_TESTS_MAX) {
    rules_op op = leaves[draw(kinds)];
    t->tests[at] = (rules_test){
        .op = op, .name = "DONE", .ns = 5 * second, .count = op == RULES_PARTS ? 4 : 0};
    return;
  }
  unsigned parts = 1 + (unsigned)draw(3);
  t->tests[at] = (rules_test){.op = (rules_op)draw(3), .first = (unsigned)t->count, .count = parts};
  t->count += parts;
  for (unsigned i = 0; i < parts; i++) grow(t, t->tests[at].first + i, depth - 1, markers);
}

static tree random_tree(bool markers) {
  tree t = {.count = 1};
  grow(&t, 0, 3, markers);
  return t;
}

/* `t` with `count` branches of one part above it. */
static tree wrapped(const tree *t, const rules_op *ops, size_t count) {
  tree out = {.count = t->count + count};
  for (size_t i = 0; i < count; i++)
    out.tests[i] = (rules_test){.op = ops[i], .first = (unsigned)i + 1, .count = 1};
  for (size_t i = 0; i < t->count; i++) {
    out.tests[i + count] = t->tests[i];
    out.tests[i + count].first += (unsigned)count;
  }
  return out;
}

static void same(const rule_verdict *a, const rule_verdict *b) {
  assert_int_equal(a->state, b->state);
  assert_true(a->wait == b->wait);
  assert_string_equal(a->reason, b->reason);
}

static void a_branch_of_one_part_is_that_part(void **state) {
  static const rules_op all[] = {RULES_ALL}, any[] = {RULES_ANY}, none[] = {RULES_NONE, RULES_NONE},
                        four[] = {RULES_NONE, RULES_ALL, RULES_NONE, RULES_ANY};
  static const struct {
    const rules_op *ops;
    size_t count;
  } ways[] = {{all, 1}, {any, 1}, {none, 2}, {four, 4}};
  for (int i = 0; i < 400; i++) {
    tree t = random_tree(false);
    if (t.count > RULES_TESTS_MAX - 4) continue;
    const rules *r = make(&t);
    for (size_t w = 0; w < 4; w++) {
      tree other = wrapped(&t, ways[w].ops, ways[w].count);
      const rules *o = make(&other);
      for (int n = 0; n < 20; n++) {
        rule_facts f = random_facts();
        rule_verdict a = decide(r, &f), b = decide(o, &f);
        same(&a, &b);
      }
      rules_free(other.rules);
    }
    rules_free(t.rules);
  }
}

static void what_speaks_against_it_is_overridden_by_no_condition(void **state) {
  for (int i = 0; i < 2000; i++) {
    tree t = random_tree(true);
    const rules *r = make(&t);
    rule_facts f = random_facts();
    rule_facts open = f, none = f, removed = f, dead = f, young = f, busy = f;
    open.open = 1;
    open.open_name = "x";
    assert_int_not_equal(decide(r, &open).state, DETECT_COMPLETE);
    none.files = 0;
    assert_int_not_equal(decide(r, &none).state, DETECT_COMPLETE);
    removed.removed = true;
    assert_int_not_equal(decide(r, &removed).state, DETECT_COMPLETE);
    dead.dead = true;
    dead.renamed = false;
    assert_int_not_equal(decide(r, &dead).state, DETECT_COMPLETE);
    young.age = young.grain / 2;
    assert_int_not_equal(decide(r, &young).state, DETECT_COMPLETE);
    busy.writer = RULE_SOMEBODY;
    busy.seen = 1;
    assert_int_not_equal(decide(r, &busy).state, DETECT_COMPLETE);
    rules_free(t.rules);
  }
}

static void nothing_is_waited_for_for_ever_once_the_writer_is_gone(void **state) {
  for (int i = 0; i < 4000; i++) {
    tree t = random_tree(true);
    const rules *r = make(&t);
    rule_facts f = random_facts();
    end_writer(&f);
    rule_verdict v = decide(r, &f);
    if (v.state == DETECT_OPEN) assert_true(v.wait <= 30 * second);
    f.quiet = f.age = 3600 * second;
    assert_int_not_equal(decide(r, &f).state, DETECT_OPEN);
    rules_free(t.rules);
  }
}

/* The parts of the built-in rule, put together by hand, are never earlier than each of them. */
static void all_is_never_earlier_than_its_parts(void **state) {
  tree *t = *state;
  const rules *r = branch_of(t, RULES_ALL, 4,
                             (rules_op[]){RULES_KNOWN, RULES_CLOSED, RULES_SUPERSET, RULES_QUIET});
  for (int i = 0; i < 20000; i++) {
    rule_facts f = random_facts();
    if (decide(r, &f).state != DETECT_COMPLETE) continue;
    assert_int_equal(decide(rules_builtin(), &f).state, DETECT_COMPLETE);
    for (unsigned part = 2; part <= 4; part++) {
      tree one = {.tests = {t->tests[part]}, .count = 1};
      assert_true(look(make(&one), &f).holds > CONDITION_UNKNOWN);
      rules_free(one.rules);
    }
  }
}

/* ---- through the detector ---- */

static void a_tree_governs_the_detector(void **state) {
  tree *t = *state;
  sim *s =
      sim_new(branch_of(t, RULES_ALL, 3, (rules_op[]){RULES_MARKER, RULES_SUPERSET, RULES_QUIET}));
  sim_open(s);
  sim_mkdir(s, "checkpoint-10");
  sim_save(s, "checkpoint-10/model.bin", 10);
  sim_save(s, "checkpoint-10/optimizer.bin", 10);
  sim_after(s, 100 * SIM_S, "checkpoint-10", DETECT_OPEN);
  assert_string_equal(sim_reason(s, "checkpoint-10"), "marker DONE is missing");
  sim_save(s, "checkpoint-10/DONE", 0);
  int64_t at = s->now;
  sim_wait(s, 1 * SIM_S);
  assert_non_null(strstr(sim_reason(s, "checkpoint-10"), "DONE is there, quiet"));
  sim_after(s, 6 * SIM_S, "checkpoint-10", DETECT_COMPLETE);
  assert_true(sim_when(s, "checkpoint-10", DETECT_COMPLETE, 0) >= at + 5 * SIM_S);
  sim_mkdir(s, "checkpoint-20");
  sim_save(s, "checkpoint-20/model.bin", 10);
  sim_save(s, "checkpoint-20/DONE", 0);
  sim_wait(s, 100 * SIM_S);
  assert_string_equal(sim_reason(s, "checkpoint-20"),
                      "lacks optimizer.bin, which checkpoint-10 had");
  sim_save(s, "checkpoint-20/optimizer.bin", 10);
  sim_after(s, 6 * SIM_S, "checkpoint-20", DETECT_COMPLETE);
  sim_free(s);
}

static void a_marker_of_the_save_before_proves_nothing(void **state) {
  tree *t = *state;
  sim *s = sim_new(leaf_alone(t, RULES_MARKER));
  sim_open(s);
  sim_mkdir(s, "step-1");
  sim_save(s, "step-1/model.bin", 10);
  sim_save(s, "step-1/DONE", 0);
  sim_after(s, 1 * SIM_S, "step-1", DETECT_COMPLETE);
  sim_save(s, "step-1/model.bin", 20);
  sim_after(s, 100 * SIM_S, "step-1", DETECT_OPEN);
  assert_string_equal(sim_reason(s, "step-1"), "DONE is older than the data");
  sim_save(s, "step-1/DONE", 0);
  sim_after(s, 1 * SIM_S, "step-1", DETECT_COMPLETE);
  sim_free(s);
}

static void a_marker_of_the_conditions_makes_a_number_a_unit(void **state) {
  tree *t = *state;
  sim *s = sim_new(leaf_alone(t, RULES_MARKER));
  sim_mkdir(s, "4");
  sim_mkdir(s, "5");
  sim_save(s, "4/model.bin", 10);
  sim_save(s, "5/model.bin", 10);
  sim_save(s, "4/DONE", 0);
  sim_wait(s, 100 * SIM_S);
  sim_open(s);
  sim_after(s, 10 * SIM_S, "4", DETECT_COMPLETE); /* by a listing: no event is needed */
  assert_int_equal(sim_state(s, "5"), DETECT_GONE);
  sim_save(s, "5/DONE", 0);
  sim_wait(s, 10 * SIM_S);
  assert_int_not_equal(sim_state(s, "5"), DETECT_GONE);
  sim_free(s);
}

static void a_death_leaves_what_only_closes_would_prove(void **state) {
  tree *t = *state;
  sim *s = sim_new(branch_of(t, RULES_ALL, 2, (rules_op[]){RULES_CLOSED, RULES_QUIET}));
  sim_open(s);
  sim_save(s, "model_1.pt", 10);
  sim_wait(s, SIM_S);
  detect_writer_gone(s->d, false);
  sim_wait(s, 100 * SIM_S);
  assert_int_not_equal(sim_state(s, "model_1.pt"), DETECT_COMPLETE);
  assert_int_not_equal(sim_state(s, "model_1.pt"), DETECT_OPEN);
  sim_free(s);
}

#define TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TREE(a_rename_holds_only_where_there_was_one),
      TREE(closes_that_nobody_saw_need_the_long_silence),
      TREE(a_lacking_file_is_named_with_who_had_it),
      TREE(the_structure_is_only_looked_at_where_it_decides),
      TREE(quiet_says_how_far_it_is),
      TREE(a_marker_is_there_or_old_or_missing),
      TREE(parts_are_counted),
      TREE(parts_are_found_in_the_unit),
      TREE(known_is_the_built_in_rule),
      TREE(all_names_the_nearest_part_that_fails),
      TREE(any_names_the_branch_that_is_nearest),
      TREE(none_fails_while_it_is_there),
      cmocka_unit_test(a_branch_of_one_part_is_that_part),
      cmocka_unit_test(what_speaks_against_it_is_overridden_by_no_condition),
      cmocka_unit_test(nothing_is_waited_for_for_ever_once_the_writer_is_gone),
      TREE(all_is_never_earlier_than_its_parts),
      TREE(a_tree_governs_the_detector),
      TREE(a_marker_of_the_save_before_proves_nothing),
      TREE(a_marker_of_the_conditions_makes_a_number_a_unit),
      TREE(a_death_leaves_what_only_closes_would_prove),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
