/* What is left of a checkpoint of which some files were taken. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "commit/manifest/manifest_thin.h"
#include "manifest_make.h"
#include "prims/match.h"

static names globs_of(const char *a, const char *b) {
  names n = {0};
  assert_true(names_add(&n, a) && (!b || names_add(&n, b)));
  return n;
}

/* Weights, an optimizer in two places, a directory of states, and what the user wrote. */
static void make(manifest *m) {
  manifest_init(m);
  m->unit = strdup("checkpoint-1");
  m->attempt = strdup("0123");
  add_file(m, "model.pt", 100, 1);
  add_file(m, "optimizer.pt", 10, 2);
  add_file(m, "part/optimizer.pt", 20, 3);
  assert_non_null(manifest_add(m, MANIFEST_DIR, "states", NULL));
  assert_non_null(manifest_add(m, MANIFEST_DIR, "part", NULL));
  add_file(m, "states/zero.pt", 30, 4);
  add_file(m, MANIFEST_METADATA, 5, 5);
  assert_int_equal(manifest_seal(m, NULL), 0);
}

static void what_the_globs_mean_is_gone_and_told_and_the_root_stays(void **state) {
  (void)state;
  manifest m;
  make(&m);
  const digest root = m.root;
  names globs = globs_of("optimizer.pt", "states/");
  manifest_rest rest;
  assert_null(manifest_thin_judge(&m, &globs, &rest));
  assert_int_equal(rest.files, 2);
  assert_int_equal(rest.bytes, 105);
  assert_int_equal(manifest_thin(&m, &globs, NULL), 0);
  assert_int_equal(m.count, 3); /* weights, the directory that has nothing now, the user's words */
  assert_non_null(manifest_find(&m, "model.pt"));
  assert_non_null(manifest_find(&m, "part"));
  assert_non_null(manifest_find(&m, MANIFEST_METADATA));
  assert_int_equal(manifest_files(&m), rest.files);
  assert_int_equal(manifest_bytes(&m), rest.bytes);
  assert_int_equal(m.left_out, 3);
  assert_int_equal(m.left_here, 3);
  assert_string_equal(m.left_names.at[0], "optimizer.pt");
  assert_string_equal(m.left_globs.at[1], "states/");
  assert_true(digest_equal(&m.root, &root));
  manifest_free(&m);
  names_free(&globs);
}

static const char *judged(const manifest *m, const char *glob) {
  names globs = globs_of(glob, NULL);
  manifest_rest rest;
  const char *why = manifest_thin_judge(m, &globs, &rest);
  names_free(&globs);
  return why;
}

static void nothing_is_taken_where_a_checkpoint_would_not_be_left(void **state) {
  (void)state;
  manifest m;
  make(&m);
  assert_string_equal(judged(&m, "scheduler.pt"), "it has no such file");
  assert_string_equal(judged(&m, "optimizer.pt/"), "it has no such file");
  assert_string_equal(judged(&m, MANIFEST_METADATA), "it has no such file");
  manifest_free(&m);
  manifest_init(&m);
  m.unit = strdup("a");
  add_file(&m, "x.pt", 1, 1);
  add_file(&m, "y.pt", 1, 2);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  assert_string_equal(judged(&m, "*.pt"), "it has nothing else");
  manifest_free(&m);
  manifest_init(&m);
  m.kind = MATCH_GROUP;
  m.unit = strdup("a");
  add_file(&m, "a.x", 1, 1);
  add_file(&m, "a.y", 1, 2);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  assert_string_equal(judged(&m, "a.y"), "it is no directory");
  manifest_free(&m);
}

static void a_second_name_of_what_would_go_keeps_it(void **state) {
  (void)state;
  manifest m;
  manifest_init(&m);
  m.unit = strdup("a");
  add_file(&m, "optimizer.pt", 1, 1);
  add_file(&m, "model.pt", 1, 2);
  manifest_add(&m, MANIFEST_LINK, "state", "optimizer.pt");
  manifest_add(&m, MANIFEST_LINK, "away", "../elsewhere");
  manifest_add(&m, MANIFEST_LINK, "weights", "model.pt");
  assert_int_equal(manifest_seal(&m, NULL), 0);
  assert_string_equal(judged(&m, "optimizer.pt"), "a link that stays leads to what would go");
  names both = globs_of("optimizer.pt", "state");
  manifest_rest rest;
  assert_null(manifest_thin_judge(&m, &both, &rest));
  names_free(&both);
  manifest_free(&m);
}

static void a_glob_means_a_name_at_any_depth_of_the_checkpoint(void **state) {
  (void)state;
  assert_int_equal(match_anywhere_check("*_optim_states.pt", NULL), 0);
  assert_int_equal(match_anywhere_check("global_step*/", NULL), 0);
  assert_int_equal(match_anywhere_check("./optimizer.pt", NULL), ERR_INVAL);
  assert_int_equal(match_anywhere_check("a/b", NULL), ERR_INVAL);
  assert_int_equal(match_anywhere_check("", NULL), ERR_INVAL);
  assert_int_equal(match_anywhere_check("[", NULL), ERR_INVAL);
}

static void a_note_tells_a_reader_without_a_log_what_is_gone(void **state) {
  (void)state;
  manifest m, other;
  make(&m);
  make(&other);
  free(other.attempt);
  other.attempt = NULL;
  names globs = globs_of("optimizer\xff.pt", "states/");
  manifest_thin_note note;
  buf text;
  buf_init(&text, MANIFEST_THIN_BYTES_MAX);
  assert_int_equal(manifest_thin_print(&m, &globs, 2, &text, NULL), 0);
  assert_int_equal(manifest_thin_parse(text.data, text.len, "a note", &note, NULL), 0);
  assert_true(manifest_thin_is_of(&note, &m));
  assert_false(manifest_thin_is_of(&note, &other));
  assert_int_equal(note.newest, 2);
  assert_true(names_same(names_list(&note.globs), names_list(&globs)));
  manifest_thin_free(&note);
  buf_free(&text);
  names_free(&globs);
  manifest_free(&m);
  manifest_free(&other);
}

static void a_note_that_is_none_says_nothing(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      "{}",
      "{\"format\":1,\"reader\":3,\"root\":\"0\",\"globs\":[\"a\"],\"newest\":1}",
      "{\"format\":1,\"reader\":2,\"root\":\"0\",\"globs\":[],\"newest\":1}",
      "{\"format\":1,\"reader\":2,\"root\":\"0\",\"globs\":[\"a/b\"],\"newest\":1}",
      "{\"format\":1,\"reader\":2,\"root\":\"0\",\"globs\":[\"a\",3],\"newest\":1}",
      "{\"format\":1,\"reader\":2,\"root\":\"0\",\"globs\":[\"a\"],\"newest\":-1}",
      "{\"format\":1,\"reader\":2,\"globs\":[\"a\"],\"newest\":1}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    manifest_thin_note note;
    err e = {0};
    assert_true(manifest_thin_parse(texts[i], strlen(texts[i]), "a note", &note, &e) < 0);
    assert_true(*e.text);
    manifest_thin_free(&note);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_globs_mean_is_gone_and_told_and_the_root_stays),
      cmocka_unit_test(nothing_is_taken_where_a_checkpoint_would_not_be_left),
      cmocka_unit_test(a_second_name_of_what_would_go_keeps_it),
      cmocka_unit_test(a_glob_means_a_name_at_any_depth_of_the_checkpoint),
      cmocka_unit_test(a_note_tells_a_reader_without_a_log_what_is_gone),
      cmocka_unit_test(a_note_that_is_none_says_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
