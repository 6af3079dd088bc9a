#include "with_cmocka.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/recover.h"
#include "manifest_make.h"
#include "prims/match.h"

enum { UNITS = 6, COMMITS = 6 };

/* A small world: what stands in a directory, and what was committed. */
typedef struct world {
  recover_unit units[UNITS];
  recover_commit commits[COMMITS];
  size_t unit_count, commit_count;
  char names[UNITS + COMMITS][32];
} world;

/* "c-3" is of series "c-#" and has step 3; "last" is its own series and has none. */
static const char *series_of(const char *name) {
  return strncmp(name, "c-", 2) == 0 ? "c-#" : strncmp(name, "d-", 2) == 0 ? "d-#" : "last";
}

static int64_t step_of(const char *name) {
  return name[1] == '-' ? atoi(name + 2) : MATCH_NO_STEP;
}

static void add_unit(world *w, const char *name, recover_standing standing) {
  w->units[w->unit_count++] = (recover_unit){
      .name = name, .series = series_of(name), .step = step_of(name), .standing = standing};
}

static void add_commit(world *w, const char *name) {
  w->commits[w->commit_count] =
      (recover_commit){name, series_of(name), step_of(name), w->commit_count, 0};
  w->commit_count++;
}

static recover_plan plan_of(const world *w) {
  recover_plan p;
  assert_int_equal(
      recover_plan_group(w->units, w->unit_count, w->commits, w->commit_count, &p, NULL), 0);
  return p;
}

/* "-c-3" for a quarantine, "+c-2" for a restore. */
static void must_plan(const world *w, const char *expected) {
  char text[512] = "";
  recover_plan p = plan_of(w);
  for (size_t i = 0; i < p.count; i++) {
    const recover_action *a = &p.actions[i];
    bool out = a->what == RECOVER_QUARANTINE;
    assert_non_null(a->reason);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%c%s", i ? " " : "",
             out ? '-' : '+', out ? w->units[a->index].name : w->commits[a->index].unit);
  }
  assert_string_equal(text, expected);
  free(p.actions);
}

static recover_standing standing_of(const char *word) {
  static const char *const words[] = {[RECOVER_COMMITTED] = "committed",
                                      [RECOVER_WHOLE] = "whole",
                                      [RECOVER_SUPERSEDED] = "superseded",
                                      [RECOVER_UNPROVEN] = "unproven",
                                      [RECOVER_TORN] = "torn",
                                      [RECOVER_ALONE] = "alone",
                                      [RECOVER_BAD] = "bad",
                                      [RECOVER_PART] = "part"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(words[i], word) == 0) return (recover_standing)i;
  fail_msg("no unit is %s", word);
  return RECOVER_UNPROVEN;
}

/* What is done where "c-9 c-4" were committed, in this order, and "c-9 committed, c-5 whole" stand
 * in the directory. */
static void must_plan_for(const char *commits, const char *units, const char *expected) {
  world w = {0};
  char names[64], *rest = names, word[16];
  snprintf(names, sizeof names, "%s", commits);
  for (char *name; *names && (name = strsep(&rest, " "));) add_commit(&w, name);
  for (const char *at = units; at && *at; at = strchr(at + 1, ',')) {
    char *name = w.names[w.unit_count];
    assert_int_equal(sscanf(at + strspn(at, ", "), "%31s %15[a-z]", name, word), 2);
    add_unit(&w, name, standing_of(word));
  }
  must_plan(&w, expected);
}

static void an_empty_directory_gets_the_newest_commit_of_each_series(void **unused) {
  must_plan_for("", "", "");
  must_plan_for("c-1 d-9 c-2 last", "", "+d-9 +c-2 +last");
}

static void what_ranks_have_committed_elsewhere_goes_like_what_is_torn(void **unused) {
  must_plan_for("", "c-3 alone", "-c-3");
  must_plan_for("c-2", "c-2 committed, c-3 alone", "-c-3");
  must_plan_for("c-2", "c-2 alone", "-c-2 +c-2");
  must_plan_for("c-5", "c-3 alone", "+c-5");
}

static void so_does_what_ranks_made_after_the_newest_commit(void **unused) {
  for (int later = 0; later < 2; later++) {
    world w = {0};
    add_commit(&w, "c-5");
    add_unit(&w, "c-5", RECOVER_COMMITTED);
    add_unit(&w, "c-3", RECOVER_ALONE);
    w.commits[0].made_ns = 1000;
    w.units[1].made_ns = 999 + 2 * later;
    must_plan(&w, later ? "-c-3" : "");
  }
}

static void a_committed_unit_that_stands_needs_nothing(void **unused) {
  must_plan_for("c-2", "c-2 committed", "");
}

static void a_torn_copy_of_the_newest_commit_makes_room_for_it(void **unused) {
  must_plan_for("c-2", "c-2 torn", "-c-2 +c-2");
}

static void one_that_was_marked_bad_goes_and_what_is_left_is_taken(void **unused) {
  must_plan_for("c-2", "c-3 bad", "-c-3 +c-2");
  must_plan_for("c-2", "c-3 bad, c-2 committed", "-c-3");
}

static void so_does_one_that_nothing_proves(void **unused) {
  must_plan_for("last", "last unproven", "-last +last");
}

static void a_newer_whole_unit_stays_and_nothing_older_is_restored(void **unused) {
  must_plan_for("c-2", "c-3 whole", "");
}

static void an_unproven_copy_stays_if_a_newer_whole_unit_is_what_the_trainer_finds(void **unused) {
  must_plan_for("c-2", "c-2 unproven, c-3 whole", "");
}

static void a_newer_torn_unit_goes_and_the_commit_is_restored(void **unused) {
  must_plan_for("c-2", "c-3 torn", "-c-3 +c-2");
}

static void a_newer_unproven_unit_stays_beside_the_restored_commit(void **unused) {
  must_plan_for("c-2", "c-3 unproven", "+c-2");
}

static void a_torn_unit_without_any_commit_goes_too(void **unused) {
  must_plan_for("", "c-3 torn, last unproven", "-c-3");
}

static void an_older_torn_unit_stays_for_no_trainer_picks_it(void **unused) {
  must_plan_for("c-5", "c-3 torn, c-5 committed", "");
}

static void steps_are_compared_as_numbers(void **unused) {
  must_plan_for("c-9", "c-10 whole", "");
}

static void after_a_way_back_the_last_commit_counts_not_the_highest_step(void **unused) {
  must_plan_for("c-9 c-4", "", "+c-4");
}

static void an_older_commit_under_the_name_of_the_newest_makes_room_for_it(void **unused) {
  must_plan_for("last last", "last superseded", "-last +last");
}

static void a_superseded_unit_that_is_not_the_newest_name_stays(void **unused) {
  must_plan_for("c-2 c-2 c-3", "c-2 superseded", "+c-3");
}

static void after_a_way_back_a_higher_step_that_was_committed_before_serves_nobody(void **unused) {
  must_plan_for("c-9 c-4", "c-9 committed", "+c-4");
  must_plan_for("c-9 c-4", "c-9 committed, c-5 whole", "");
}

/* ---- any world ---- */

static void make_world(world *w, uint64_t *seed) {
  *w = (world){0};
  size_t units = next_random(seed) % (UNITS + 1), commits = next_random(seed) % (COMMITS + 1);
  for (size_t i = 0; i < units + commits; i++) {
    uint64_t r = next_random(seed);
    char *name = w->names[i];
    if (r % 7 == 0)
      snprintf(name, sizeof w->names[i], "last");
    else
      snprintf(name, sizeof w->names[i], "%c-%d", r & 8 ? 'c' : 'd', (int)(r >> 8 & 3));
    bool taken = false; /* a name stands in a directory once */
    for (size_t k = 0; i < units && k < w->unit_count; k++)
      taken = taken || strcmp(w->units[k].name, name) == 0;
    if (i >= units)
      add_commit(w, name);
    else if (!taken)
      add_unit(w, name, (recover_standing)((r >> 16) % 5));
  }
}

static bool whole(const recover_unit *u) {
  return u->standing == RECOVER_COMMITTED || u->standing == RECOVER_WHOLE;
}

/* The promises, written as what must be true of the directory after the actions. */
static const char *broken_promise(const world *w, const recover_plan *p) {
  bool moved[UNITS] = {false}, restored[COMMITS] = {false}, restoring = false;
  for (size_t i = 0; i < p->count; i++) {
    const recover_action *a = &p->actions[i];
    if (a->what == RECOVER_QUARANTINE) {
      if (restoring) return "a quarantine comes after a restore";
      if (a->index >= w->unit_count || moved[a->index]) return "moved twice, or no unit";
      if (whole(&w->units[a->index])) return "a whole unit is moved away";
      moved[a->index] = true;
    } else {
      restoring = true;
      if (a->index >= w->commit_count || restored[a->index]) return "restored twice, or no commit";
      restored[a->index] = true;
    }
  }
  for (size_t c = 0; c < w->commit_count; c++) {
    const recover_commit *at = &w->commits[c];
    bool newest = true, served = restored[c];
    for (size_t k = c + 1; k < w->commit_count; k++)
      newest = newest && strcmp(w->commits[k].series, at->series) != 0;
    if (!newest && restored[c]) return "an older commit is restored";
    for (size_t i = 0; i < w->unit_count; i++) {
      const recover_unit *u = &w->units[i];
      if (restored[c] && !moved[i] && strcmp(u->name, at->unit) == 0) return "the name is taken";
      if (moved[i] || strcmp(u->series, at->series) != 0) continue;
      bool newer = u->step > at->step;
      served = served || (whole(u) && strcmp(u->name, at->unit) == 0) ||
               (u->standing == RECOVER_WHOLE && newer);
      if (newest && newer && u->standing == RECOVER_TORN) return "a newer torn unit stays";
    }
    if (newest && !served) return "nothing to resume from, though there is a commit";
  }
  for (size_t i = 0; i < w->unit_count; i++) {
    const recover_unit *u = &w->units[i];
    bool replaced = false;
    for (size_t c = 0; c < w->commit_count; c++)
      replaced = replaced || (restored[c] && strcmp(w->commits[c].unit, u->name) == 0);
    if (moved[i] && u->standing == RECOVER_UNPROVEN && !replaced) return "unproven, and moved away";
  }
  return NULL;
}

static void in_any_small_world_all_promises_hold(void **unused) {
  long actions = 0;
  for (uint64_t seed = 1; seed <= 200000; seed++) {
    uint64_t state = seed;
    world w;
    make_world(&w, &state);
    recover_plan p = plan_of(&w);
    const char *why = broken_promise(&w, &p);
    if (why) fail_msg("seed %llu: %s", (unsigned long long)seed, why);
    actions += (long)p.count;
    free(p.actions);
  }
  assert_true(actions > 200000);
}

/* Of a rank with a directory of its own: the newest makes room for the whole, older ones stay. */
static void one_ranks_part_of_a_commit_is_neither_torn_nor_a_place_to_go_on_from(void **state) {
  world w = {0};
  add_unit(&w, "c-1", RECOVER_PART);
  add_unit(&w, "c-2", RECOVER_PART);
  add_commit(&w, "c-1");
  add_commit(&w, "c-2");
  must_plan(&w, "-c-2 +c-2");
  recover_plan p = plan_of(&w);
  assert_null(strstr(p.actions[0].reason, "torn"));
  free(p.actions);
}

/* ---- times ---- */

static bool is_newer(int64_t unit_step, int64_t unit_ns, bool seen, int64_t step, int64_t ns) {
  recover_unit u = {.step = unit_step, .made_ns = unit_ns, .seen = seen};
  recover_commit c = {.step = step, .made_ns = ns};
  return recover_is_newer(&u, &c);
}

static void
what_was_complete_later_is_newer_and_a_step_alone_tells_only_without_times(void **unused) {
  assert_true(is_newer(50, 9, false, 40, 5));
  assert_false(is_newer(50, 3, false, 40, 5));
  assert_false(is_newer(50, 3, true, 40, 5));
  assert_true(is_newer(50, 0, false, 40, 5));
  assert_true(is_newer(50, 9, false, 40, 0));
  assert_false(is_newer(30, 0, true, 40, 5));
  /* A lower step may be a copy that somebody has put there. */
  assert_false(is_newer(30, 9, false, 40, 5));
  assert_true(is_newer(30, 9, true, 40, 5));
  assert_true(is_newer(40, 9, false, 40, 5)); /* another metric in its name */
  assert_true(is_newer(50, 5, false, 40, 5)); /* a file system that counts seconds */
  assert_false(is_newer(40, 5, false, 40, 5));
  assert_true(is_newer(MATCH_NO_STEP, 9, false, 40, 5));
  assert_false(is_newer(MATCH_NO_STEP, 3, false, 40, 5));
}

static void a_higher_step_that_was_left_serves_nobody(void **unused) {
  world w = {0};
  add_commit(&w, "c-4");
  add_unit(&w, "c-5", RECOVER_WHOLE);
  w.commits[0].made_ns = 9;
  w.units[0].made_ns = 7;
  must_plan(&w, "+c-4");
  w.units[0].made_ns = 11;
  must_plan(&w, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_ranks_part_of_a_commit_is_neither_torn_nor_a_place_to_go_on_from),
      cmocka_unit_test(an_empty_directory_gets_the_newest_commit_of_each_series),
      cmocka_unit_test(what_ranks_have_committed_elsewhere_goes_like_what_is_torn),
      cmocka_unit_test(so_does_what_ranks_made_after_the_newest_commit),
      cmocka_unit_test(a_committed_unit_that_stands_needs_nothing),
      cmocka_unit_test(a_torn_copy_of_the_newest_commit_makes_room_for_it),
      cmocka_unit_test(one_that_was_marked_bad_goes_and_what_is_left_is_taken),
      cmocka_unit_test(so_does_one_that_nothing_proves),
      cmocka_unit_test(a_newer_whole_unit_stays_and_nothing_older_is_restored),
      cmocka_unit_test(an_unproven_copy_stays_if_a_newer_whole_unit_is_what_the_trainer_finds),
      cmocka_unit_test(a_newer_torn_unit_goes_and_the_commit_is_restored),
      cmocka_unit_test(a_newer_unproven_unit_stays_beside_the_restored_commit),
      cmocka_unit_test(a_torn_unit_without_any_commit_goes_too),
      cmocka_unit_test(an_older_torn_unit_stays_for_no_trainer_picks_it),
      cmocka_unit_test(steps_are_compared_as_numbers),
      cmocka_unit_test(after_a_way_back_the_last_commit_counts_not_the_highest_step),
      cmocka_unit_test(an_older_commit_under_the_name_of_the_newest_makes_room_for_it),
      cmocka_unit_test(a_superseded_unit_that_is_not_the_newest_name_stays),
      cmocka_unit_test(after_a_way_back_a_higher_step_that_was_committed_before_serves_nobody),
      cmocka_unit_test(what_was_complete_later_is_newer_and_a_step_alone_tells_only_without_times),
      cmocka_unit_test(a_higher_step_that_was_left_serves_nobody),
      cmocka_unit_test(in_any_small_world_all_promises_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
