/* A log is repaired in which files of a commit were let go: what is missing by the entry or by the note
 * beside it is no damage; without both it is. */
#include "with_cmocka.h"

#include "job/repair/repair.h"
#include "thinned.h"
#include "world.h"

enum { SAVES = 3 };
#define GLOB "shard*"

typedef struct scene {
  world *w;
  store *s;
  runlog *log;
  uint64_t n[SAVES];
} scene;

static scene make(world *w) {
  scene s = {.w = w, .s = w->env.store, .log = world_log(w, "", "one")};
  for (int i = 0; i < SAVES; i++) s.n[i] = save_numbered(w, s.log, i);
  return s;
}

static void lose(const scene *s, uint64_t n) {
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_entry("", n, key, NULL), 0);
  assert_int_equal(s->s->ops->remove(s->s, key, NULL), 0);
}

/* Loses the newest entry, with one behind it, so that its number tells. */
static void lose_newest(const scene *s) {
  const uint64_t at = runlog_view(s->log)->next - 1;
  assert_int_equal(runlog_mark(s->log, s->n[1], true, "no", NULL), 0);
  lose(s, at);
}

/* Told of the log last. */
static int note_lost(void *ctx, const char *prefix, const repaired *what) {
  (void)prefix;
  *(uint64_t *)ctx = what->lost;
  return 0;
}

/* Repairs it, and gives the commit of the first save as a reader sees it. */
static const runlog_commit *mended(scene *s) {
  err e = {0};
  runlog *log = NULL;
  const repair how = {.store = s->s, .prefix = "", .take_over = true};
  if (repair_log(&how, &e) < 0 || runlog_open(s->s, "", &log, &e) < 0) fail_msg("%s", e.text);
  world_keep(s->w, log);
  assert_int_equal(runlog_view(log)->commit_count, SAVES);
  return &runlog_view(log)->commits[0];
}

static void is_thin(const scene *s, const runlog_commit *c) {
  const runlog_commit *was = runlog_find_commit(runlog_view(s->log), s->n[0]);
  assert_int_equal(c->thin.globs.count, 1);
  assert_string_equal(c->thin.globs.at[0], GLOB);
  assert_int_equal(c->thin.newest, 2);
  assert_int_equal(c->files, was->files);
  assert_int_equal(c->bytes, was->bytes);
  assert_int_equal(c->left_out, was->left_out);
  assert_int_equal(c->left_here, was->left_here);
  assert_int_equal(c->life, RUNLOG_LIVE);
  assert_false(c->bad);
  err e = {0};
  if (restore_commit(s->w, "", c, &e) < 0) fail_msg("%s", e.text);
}

static void where_its_entry_was_lost_the_note_tells(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    lose_newest(&s);
    is_thin(&s, mended(&s));
  }
  (void)state;
}

static void where_its_commit_was_lost_too_it_is_found_as_what_is_left(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    lose(&s, runlog_view(s.log)->next - 1);
    lose(&s, s.n[0]);
    is_thin(&s, mended(&s));
  }
  (void)state;
}

static void where_its_entry_stands_it_is_whole_without_what_is_gone(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_commit(s.s, s.log, s.n[0], GLOB);
    assert_int_equal(thin_remove(s.s, s.log, s.n[0]), 1);
    lose(&s, s.n[1]); /* something may have been let go there */
    is_thin(&s, mended(&s));
  }
  (void)state;
}

/* It was put before any file went, so all may stand there, and somebody may be about to remove them. */
static void a_note_counts_though_the_files_stand_there(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_commit(s.s, s.log, s.n[0], GLOB);
    thin_note(s.s, s.log, s.n[0]);
    lose_newest(&s);
    is_thin(&s, mended(&s));
  }
  (void)state;
}

static void where_both_are_lost_what_is_missing_is_damage(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    lose_newest(&s);
    assert_int_equal(s.s->ops->remove(s.s, "checkpoint-0/" MANIFEST_THIN_NAME, NULL), 0);
    const runlog_commit *c = mended(&s);
    assert_true(c->bad);
    assert_int_equal(c->thin.globs.count, 0);
  }
  (void)state;
}

/* What another file lacks than those that are gone is damage, note or not. */
static void a_note_excuses_no_other_file(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    lose_newest(&s);
    assert_int_equal(s.s->ops->remove(s.s, "checkpoint-0/model.bin", NULL), 0);
    assert_true(mended(&s)->bad);
  }
  (void)state;
}

/* Saves that no commit is newer than are committed anew, from their manifests, which say what they had. */
static void where_the_end_was_lost_what_is_committed_anew_is_thin_again(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    for (uint64_t n = s.n[0]; n < runlog_view(s.log)->next; n++) lose(&s, n);
    is_thin(&s, mended(&s));
  }
  (void)state;
}

static void where_all_was_lost_it_is_thin_again(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    for (uint64_t n = 0; n < runlog_view(s.log)->next; n++) lose(&s, n);
    is_thin(&s, mended(&s));
  }
  (void)state;
}

/* No number tells that it is missing, and the note does. */
static void where_the_last_entry_was_it_the_note_tells(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    lose(&s, runlog_view(s.log)->next - 1);
    uint64_t lost = 9;
    err e = {0};
    const repair how = {
        .store = s.s, .prefix = "", .take_over = true, .told = note_lost, .ctx = &lost};
    if (repair_log(&how, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(lost, 1);
    is_thin(&s, mended(&s));
  }
  (void)state;
}

static void a_log_that_says_what_its_notes_say_is_left_as_it_is(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    scene s = make(w);
    thin_whole(s.s, s.log, s.n[0], GLOB);
    const uint64_t next = runlog_view(s.log)->next;
    is_thin(&s, mended(&s));
    assert_int_equal(runlog_refresh(s.log, NULL), 0);
    assert_int_equal(runlog_view(s.log)->next, next);
  }
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(where_its_entry_was_lost_the_note_tells),
      cmocka_unit_test(where_its_commit_was_lost_too_it_is_found_as_what_is_left),
      cmocka_unit_test(where_its_entry_stands_it_is_whole_without_what_is_gone),
      cmocka_unit_test(a_note_counts_though_the_files_stand_there),
      cmocka_unit_test(where_both_are_lost_what_is_missing_is_damage),
      cmocka_unit_test(a_note_excuses_no_other_file),
      cmocka_unit_test(where_the_end_was_lost_what_is_committed_anew_is_thin_again),
      cmocka_unit_test(where_all_was_lost_it_is_thin_again),
      cmocka_unit_test(where_the_last_entry_was_it_the_note_tells),
      cmocka_unit_test(a_log_that_says_what_its_notes_say_is_left_as_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
