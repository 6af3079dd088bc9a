#include "with_cmocka.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job/tree/tree.h"
#include "tmpdir.h"

static char *dir;
static atomic_int cancel;
static _Atomic uint64_t done, total;

static const tree_job *tools(void) {
  static tree_job p;
  p = (tree_job){.io = io_system(), .cancel = &cancel, .done = &done, .total = &total};
  return &p;
}

static const char *at(const char *name) {
  return tmpdir_path(dir, name);
}

static const char *uri(const char *name) {
  static char text[PATH_MAX];
  snprintf(text, sizeof text, "file://%s", at(name));
  return text;
}

/* A directory with one file in it. */
static void make(const char *name) {
  char path[PATH_MAX];
  for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
    snprintf(path, sizeof path, "%.*s", (int)(slash - name), name);
    if (!path_exists(at(path))) make_dir(at(path));
  }
  make_dir(at(name));
  snprintf(path, sizeof path, "%s/model", name);
  write_file(at(path), "data");
}

static void upload(const char *from, const char *to) {
  tree_moved moved = {0};
  err e = {0};
  if (tree_upload(tools(), at(from), uri(to), &moved, &e) < 0) fail_msg("%s", e.text);
}

static int download(const char *from, const char *to) {
  tree_moved moved = {0};
  err e = {0};
  return tree_download(tools(), uri(from), at(to), &moved, &e);
}

static void delete_place(const char *name) {
  err e = {0};
  if (tree_delete(tools(), uri(name), &e) < 0) fail_msg("%s", e.text);
}

static void what_is_left_of_a_place_is_whole_without_what_was_deleted(void **unused) {
  make("from/one");
  make_dir(at("from/one/empty"));
  make("from/oneness");
  make("from/two");
  upload("from", "place");
  delete_place("place/one");
  assert_int_equal(download("place", "to"), 0);
  assert_false(path_exists(at("to/one")));
  assert_true(path_exists(at("to/oneness/model")));
  assert_true(path_exists(at("to/two/model")));
}

static void every_record_above_forgets_it(void **unused) {
  make("from/trial/one");
  make("from/trial/two");
  upload("from", "place");
  upload("from/trial", "place/trial");
  delete_place("place/trial/one");
  assert_int_equal(download("place", "to"), 0);
  assert_int_equal(download("place/trial", "to2"), 0);
  assert_false(path_exists(at("to/trial/one")));
  assert_true(path_exists(at("to2/two/model")));
}

static void what_others_took_away_is_still_missed(void **unused) {
  make("from/one");
  make("from/two");
  upload("from", "place");
  assert_int_equal(unlink(at("place/two/model")), 0);
  delete_place("place/one");
  assert_int_equal(download("place", "to"), ERR_CORRUPT);
}

static void a_broken_record_above_is_left_as_it_is(void **unused) {
  make("from/one");
  upload("from", "place");
  write_file(at("place/.ckpt-manifest.json"), "broken");
  delete_place("place/one");
  assert_false(path_exists(at("place/one")));
  assert_true(file_is(at("place/.ckpt-manifest.json"), "broken"));
}

static int setup(void **unused) {
  dir = tmpdir_new();
  return 0;
}

static int teardown(void **unused) {
  tmpdir_remove(dir);
  return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_is_left_of_a_place_is_whole_without_what_was_deleted),
      TEST(every_record_above_forgets_it),
      TEST(what_others_took_away_is_still_missed),
      TEST(a_broken_record_above_is_left_as_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
