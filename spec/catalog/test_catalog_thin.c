/* A checkpoint of which files are gone since newer ones are there: found, verified, shown, restored and
 * copied as a whole one without them. */
#include "with_cmocka.h"

#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/catalog.h"
#include "job/restore/pinned.h"
#include "job/restore/restore.h"
#include "prims/fs.h"
#include "thinned.h"
#include "tmpdir.h"
#include "world.h"

enum { SAVES = 3 };
#define GLOB "shard*"
#define SHARD "sub/shard\xff"

typedef struct target {
  world *w;
  store *s;
  runlog *log;
  uint64_t n[SAVES];
  char uri[URI_MAX];
} target;

static target make_target(const char *scheme) {
  target t = {.w = world_new(scheme, world_io())};
  buf text;
  buf_init(&text, URI_MAX);
  uri_print(&t.w->place.where, &text);
  snprintf(t.uri, sizeof t.uri, "%s", text.data);
  buf_free(&text);
  t.s = t.w->env.store;
  t.log = world_log(t.w, "", "one");
  for (int i = 0; i < SAVES; i++) t.n[i] = save_numbered(t.w, t.log, i);
  return t;
}

static const runlog_commit *commit(const target *t, int i) {
  return runlog_find_commit(runlog_view(t->log), t->n[i]);
}

typedef struct seen {
  int count, findings;
} seen;

static int on_verified(void *ctx, const catalog_item *item, int status, const char *reason,
                       unsigned findings, const char *links, uint64_t link_count) {
  seen *all = ctx;
  (void)item, (void)status, (void)reason, (void)links, (void)link_count;
  all->count++;
  all->findings += (int)findings;
  return 0;
}

static int verify(const target *t, const char *where, seen *all) {
  err e = {0};
  *all = (seen){0};
  int rc = catalog_verify(world_io(), NULL, t->w->pool, NULL, where, NULL, on_verified, all, &e);
  if (rc < 0) fail_msg("%s", e.text);
  return rc;
}

/* The unit in the watched directory is the checkpoint without what is gone. */
static void take_from_tree(const target *t, const char *unit) {
  char path[4096];
  struct timespec was[2] = {{1400000000, 123456789}, {1400000000, 123456789}};
  snprintf(path, sizeof path, "%s/%s/" SHARD, t->w->root, unit);
  assert_int_equal(unlink(path), 0);
  *strrchr(path, '/') = 0;
  assert_int_equal(utimensat(AT_FDCWD, path, was, 0), 0);
}

/* At each point of the way: the entry alone, with the note, with the files gone. */
static void its_rest_is_restored_exactly_at_each_point_of_the_way(void **state) {
  for (int i = 0; i < 2; i++) {
    target t = make_target(world_schemes[i]);
    take_from_tree(&t, "checkpoint-0");
    thin_commit(t.s, t.log, t.n[0], GLOB);
    must_restore(t.w, "", commit(&t, 0), "checkpoint-0");
    thin_note(t.s, t.log, t.n[0]);
    must_restore(t.w, "", commit(&t, 0), "checkpoint-0");
    assert_int_equal(thin_remove(t.s, t.log, t.n[0]), 1);
    must_restore(t.w, "", commit(&t, 0), "checkpoint-0");
    must_restore(t.w, "", commit(&t, 1), "checkpoint-1");
    world_free(t.w);
  }
  (void)state;
}

static void what_is_gone_is_no_damage_and_anything_else_is(void **state) {
  for (int i = 0; i < 2; i++) {
    target t = make_target(world_schemes[i]);
    seen all;
    thin_whole(t.s, t.log, t.n[0], GLOB);
    assert_int_equal(verify(&t, t.uri, &all), 0);
    assert_int_equal(all.count, SAVES);
    /* Of a whole one the same file is damage. */
    assert_int_equal(t.s->ops->remove(t.s, "checkpoint-1/" SHARD, NULL), 0);
    assert_int_equal(t.s->ops->remove(t.s, "checkpoint-0/model.bin", NULL), 0);
    assert_int_equal(verify(&t, t.uri, &all), 2);
    assert_int_equal(all.findings, 2);
    world_free(t.w);
  }
  (void)state;
}

static void a_manifest_that_is_another_one_is_damage_all_the_same(void **state) {
  target t = make_target("file");
  manifest m;
  err e = {0};
  thin_whole(t.s, t.log, t.n[0], GLOB);
  buf text;
  buf_init(&text, 1 << 20);
  assert_int_equal(t.s->ops->get(t.s, "checkpoint-1/" MANIFEST_NAME, &text, NULL), 0);
  assert_int_equal(
      t.s->ops->put(t.s, "checkpoint-0/" MANIFEST_NAME, text.data, text.len, STORE_REPLACE, NULL),
      0);
  buf_free(&text);
  assert_int_equal(restore_manifest(t.s, "", commit(&t, 0), &m, &e), ERR_CORRUPT);
  world_free(t.w);
  (void)state;
}

static void copy_out(const target *t, const char *dir, const char *to) {
  char from[4096];
  err e = {0};
  snprintf(from, sizeof from, "%s/root/%s", t->w->dir, dir);
  if (fs_copy_tree(io_system(), from, to, false, NULL, &e) < 0) fail_msg("%s", e.text);
}

static void a_copy_says_itself_what_was_taken_from_it(void **state) {
  target t = make_target("file");
  char copy[4096], note[4200], into[4096];
  seen all;
  err e = {0};
  thin_whole(t.s, t.log, t.n[0], GLOB);
  snprintf(copy, sizeof copy, "%s/copy", t.w->dir);
  snprintf(into, sizeof into, "%s/into", t.w->dir);
  snprintf(note, sizeof note, "%s/" MANIFEST_THIN_NAME, copy);
  copy_out(&t, "checkpoint-0", copy);
  assert_int_equal(verify(&t, copy, &all), 0);
  assert_int_equal(all.count, 1);
  catalog_wish wish = {.where = copy, .dir = into};
  if (catalog_restore(world_io(), NULL, t.w->pool, NULL, &wish, NULL, NULL, &e) < 0)
    fail_msg("%s", e.text);
  assert_true(path_exists(tmpdir_path(into, "checkpoint-0/model.bin")));
  assert_false(path_exists(tmpdir_path(into, "checkpoint-0/" MANIFEST_THIN_NAME)));
  /* A note about another save says nothing, and without one what is missing is damage. */
  char *text = NULL;
  FILE *f = fopen(note, "r+");
  assert_non_null(f);
  char bytes[1000] = "";
  size_t len = fread(bytes, 1, sizeof bytes - 1, f);
  text = strstr(bytes, "\"root\":\"");
  assert_non_null(text);
  text[8] = text[8] == '0' ? '1' : '0';
  rewind(f);
  assert_int_equal(fwrite(bytes, 1, len, f), len);
  fclose(f);
  assert_int_equal(verify(&t, copy, &all), 1);
  assert_int_equal(unlink(note), 0);
  assert_int_equal(verify(&t, copy, &all), 1);
  world_free(t.w);
  (void)state;
}

/* ---- while it is read ---- */

static void take_it(void *ctx) {
  target *t = ctx;
  thin_whole(t->s, t->log, t->n[2], GLOB);
}

/* It is taken after it was chosen, and before the pin was there. */
static void a_restore_that_was_begun_reads_the_log_again(void **state) {
  target t = make_target("file");
  char into[4096];
  err e = {0};
  snprintf(into, sizeof into, "%s/into", t.w->dir);
  const io *io = hooked_io(world_io(), ".ckpt/pins", 1, take_it, &t);
  catalog_wish wish = {.where = t.uri, .dir = into};
  if (catalog_restore(io, NULL, NULL, NULL, &wish, NULL, NULL, &e) < 0) fail_msg("%s", e.text);
  assert_true(hook_ran());
  assert_true(path_exists(tmpdir_path(into, "checkpoint-2/model.bin")));
  assert_false(path_exists(tmpdir_path(into, "checkpoint-2/" SHARD)));
  world_free(t.w);
  (void)state;
}

static void a_verification_that_was_begun_finds_no_damage(void **state) {
  target t = make_target("file");
  seen all = {0};
  err e = {0};
  const io *io = hooked_io(world_io(), "checkpoint-2/model.bin", 1, take_it, &t);
  int rc = catalog_verify(io, NULL, NULL, NULL, t.uri, NULL, on_verified, &all, &e);
  if (rc < 0) fail_msg("%s", e.text);
  assert_true(hook_ran());
  assert_int_equal(rc, 0);
  world_free(t.w);
  (void)state;
}

/* Who removes files sees the pin, and leaves them. */
static void what_a_pin_holds_is_read_on_though_the_log_lets_it_go(void **state) {
  target t = make_target("file");
  store *held = NULL;
  char byte;
  assert_int_equal(pinned_open_read(t.s, t.log, commit(&t, 0), "restore", &held, NULL), 0);
  thin_commit(t.s, t.log, t.n[0], GLOB);
  assert_int_equal(held->ops->read(held, "checkpoint-0/" SHARD, 0, &byte, 1, NULL), 1);
  store_close(held);
  assert_int_equal(pinned_open(t.s, "", "checkpoint-0", t.n[0], false, "restore", &held, NULL),
                   ERR_CONFLICT);
  assert_int_equal(pinned_open(t.s, "", "checkpoint-0", t.n[0], true, "restore", &held, NULL), 0);
  store_close(held);
  world_free(t.w);
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(its_rest_is_restored_exactly_at_each_point_of_the_way),
      cmocka_unit_test(what_is_gone_is_no_damage_and_anything_else_is),
      cmocka_unit_test(a_manifest_that_is_another_one_is_damage_all_the_same),
      cmocka_unit_test(a_copy_says_itself_what_was_taken_from_it),
      cmocka_unit_test(a_restore_that_was_begun_reads_the_log_again),
      cmocka_unit_test(a_verification_that_was_begun_finds_no_damage),
      cmocka_unit_test(what_a_pin_holds_is_read_on_though_the_log_lets_it_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
