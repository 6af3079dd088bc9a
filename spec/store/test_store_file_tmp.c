/* What killed writers leave in a file store's hidden directory: it is told, and can be done away
 * with; nothing else can be by that way. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store_place.h"
#include "tmpdir.h"

typedef struct seen {
  size_t count;
  store_unfinished last;
  char key[64], id[64];
} seen;

static int note(void *ctx, const store_unfinished *what) {
  seen *s = ctx;
  s->count++;
  s->last = *what;
  snprintf(s->key, sizeof s->key, "%s", what->key);
  snprintf(s->id, sizeof s->id, "%s", what->id);
  return 0;
}

static const char *at(void **state, const char *name) {
  return tmpdir_path(((store_place *)*state)->where.path, name);
}

static void temporary_files_are_told_with_size_and_time_and_can_go(void **state) {
  store *s = ((store_place *)*state)->s;
  seen all = {0};
  assert_int_equal(s->ops->unfinished(s, "", note, &all, NULL), 0); /* no root yet */
  assert_int_equal(store_put_text(s, "a", "text", STORE_IF_ABSENT), 0);
  assert_int_equal(s->ops->unfinished(s, "", note, &all, NULL), 0);
  assert_int_equal(all.count, 0);
  write_file(at(state, ".ckpt/tmp/0123"), "half");
  make_dir(at(state, ".ckpt/tmp/dir"));
  assert_int_equal(s->ops->unfinished(s, "a", note, &all, NULL), 0); /* below it there is none */
  assert_int_equal(all.count, 0);
  assert_int_equal(s->ops->unfinished(s, "", note, &all, NULL), 0);
  assert_int_equal(all.count, 1);
  assert_string_equal(all.key, ".ckpt/tmp/0123");
  assert_int_equal(all.last.bytes, 4);
  assert_true(all.last.begun_ns > 1600000000 * (int64_t)1000000000);
  store_unfinished what = {.key = all.key, .id = all.id};
  assert_int_equal(s->ops->discard(s, &what, NULL), 0);
  assert_false(path_exists(at(state, ".ckpt/tmp/0123")));
  assert_int_equal(s->ops->discard(s, &what, NULL), 0);
}

static void nothing_else_can_be_discarded(void **state) {
  store *s = ((store_place *)*state)->s;
  static const char *const odd[] = {
      "a", ".ckpt/tmp", ".ckpt/tmp/", ".ckpt/tmp/../../a", ".ckpt/tmp/..", ""};
  assert_int_equal(store_put_text(s, "a", "text", STORE_IF_ABSENT), 0);
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    store_unfinished what = {.key = odd[i], .id = "x"};
    assert_int_equal(s->ops->discard(s, &what, NULL), ERR_INVAL);
  }
  store_must_hold(s, "a", "text");
}

static int stop(void *ctx, const store_unfinished *what) {
  return 7;
}

static void a_listing_ends_when_it_is_told_to(void **state) {
  store *s = ((store_place *)*state)->s;
  assert_int_equal(store_put_text(s, "a", "text", STORE_IF_ABSENT), 0);
  write_file(at(state, ".ckpt/tmp/0123"), "half");
  assert_int_equal(s->ops->unfinished(s, "", stop, NULL, NULL), 7);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest promises[] = {
      PROMISE(temporary_files_are_told_with_size_and_time_and_can_go),
      PROMISE(nothing_else_can_be_discarded),
      PROMISE(a_listing_ends_when_it_is_told_to),
  };
  return cmocka_run_group_tests_name("store_file_tmp", promises, NULL, NULL);
}
