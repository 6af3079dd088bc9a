#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/catalog.h"
#include "prims/fs.h"
#include "prims/lock.h"
#include "tmpdir.h"
#include "world.h"

/* A target with a root log (three generations of a file, one directory) and two groups below. */
typedef struct target {
  world *w;
  char uri[URI_MAX];
} target;

static void save_in(const world *w, const char *prefix, const char *unit, match_kind kind,
                    unsigned seed) {
  char path[4096];
  runlog *log = world_begin(w->env.store, prefix, "one");
  snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "/" : "", unit);
  make_unit(w, path, kind, seed);
  save_unit(w, log, path, kind, (int64_t)seed);
  runlog_close(log);
}

static target make_target(const char *scheme) {
  target t = {.w = world_new(scheme, world_io())};
  buf text;
  buf_init(&text, URI_MAX);
  uri_print(&t.w->place.where, &text);
  snprintf(t.uri, sizeof t.uri, "%s", text.data);
  buf_free(&text);
  save_in(t.w, "", "last.ckpt", MATCH_FILE, 1);
  save_in(t.w, "", "checkpoint-2", MATCH_DIR, 2);
  save_in(t.w, "", "last.ckpt", MATCH_FILE, 3);
  save_in(t.w, "exp/b", "checkpoint-2", MATCH_DIR, 4);
  save_in(t.w, "exp/a", "checkpoint-2", MATCH_DIR, 5);
  save_in(t.w, "exp/a", "ckpt-3", MATCH_GROUP, 6);
  return t;
}

static void drop_target(target *t) {
  world_free(t->w);
}

/* "<uri>/<name>"; static memory. */
static const char *at(const target *t, const char *name) {
  static char text[4][2 * URI_MAX];
  static int next;
  char *out = text[next++ % 4];
  snprintf(out, 2 * URI_MAX, "%s/%s", t->uri, name);
  return out;
}

typedef struct seen {
  const target *t;
  char text[2000];
  int stop_at, count, stop;
} seen;

static int note(void *ctx, store *s, const catalog_item *item, err *e) {
  seen *all = ctx;
  size_t len = strlen(all->text);
  snprintf(all->text + len, sizeof all->text - len, "%s%s:%s", len ? " " : "", item->group,
           item->commit->dir);
  char key[STORE_KEY_MAX + 40];
  snprintf(key, sizeof key, "%s%s%s", item->key, *item->key ? "/" : "", MANIFEST_NAME);
  assert_true(store_holds(s, key));
  if (all->t) assert_string_equal(item->uri, at(all->t, item->key));
  return ++all->count == all->stop_at ? all->stop : 0;
}

static void must_list(const char *where, const target *t, const char *expected) {
  seen all = {.t = t};
  err e = {0};
  if (catalog_each(world_io(), NULL, where, note, &all, &e) < 0) fail_msg("%s", e.text);
  assert_string_equal(all.text, expected);
}

static void commits_are_listed_in_the_order_of_their_logs_group_by_group(void **state) {
  for (int i = 0; i < 2; i++) {
    target t = make_target(world_schemes[i]);
    must_list(t.uri, &t,
              ":last.ckpt :checkpoint-2 :last.ckpt.~8 exp/a:checkpoint-2 exp/a:ckpt-3 "
              "exp/b:checkpoint-2");
    must_list(at(&t, "exp/a"), NULL, ":checkpoint-2 :ckpt-3");
    must_list(at(&t, "exp"), NULL, "a:checkpoint-2 a:ckpt-3 b:checkpoint-2");
    drop_target(&t);
  }
}

static int refuse(void *ctx, store *s, const catalog_item *item, err *e) {
  return err_set(e, ERR_LIMIT, "enough");
}

static void what_a_callback_returns_ends_the_walk_and_is_passed_through(void **state) {
  target t = make_target("mem");
  err e = {0};
  for (int n = 1; n <= 6; n++) {
    seen all = {.t = &t, .stop_at = n, .stop = 42};
    assert_int_equal(catalog_each(world_io(), NULL, t.uri, note, &all, &e), 42);
    assert_int_equal(all.count, n);
  }
  assert_int_equal(catalog_each(world_io(), NULL, t.uri, refuse, NULL, &e), ERR_LIMIT);
  assert_string_equal(e.text, "enough");
  char into[4096];
  snprintf(into, sizeof into, "%s/new", t.w->out);
  seen all = {.stop_at = 2, .stop = 7};
  assert_int_equal(catalog_restore(world_io(), NULL, NULL, NULL,
                                   &(catalog_wish){.where = t.uri, .dir = into}, note, &all, &e),
                   7);
  assert_string_equal(all.text, ":last.ckpt.~8 exp/a:ckpt-3");
  assert_false(path_exists(tmpdir_path(into, ".ckpt-restore")));
  drop_target(&t);
}

static void no_place_and_no_log_are_told_apart(void **state) {
  world *w = *state;
  seen all = {0};
  err e = {0};
  catalog_pick pick;
  const char *none = tmpdir_path(w->dir, "none"), *empty = w->out;
  assert_int_equal(catalog_each(world_io(), NULL, none, note, &all, &e), ERR_NOSTORE);
  assert_int_equal(catalog_each(world_io(), NULL, empty, note, &all, &e), ERR_NOENT);
  assert_int_equal(catalog_find(world_io(), NULL, none, &pick, &e), ERR_NOSTORE);
  assert_non_null(strstr(e.text, "none"));
  catalog_drop(&pick);
  assert_int_equal(catalog_find(world_io(), NULL, empty, &pick, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, empty));
  catalog_drop(&pick);
  assert_int_equal(catalog_find(world_io(), NULL, tmpdir_path(none, "deeper"), &pick, &e),
                   ERR_NOSTORE);
  catalog_drop(&pick);
  static const struct {
    const char *where;
    int code;
  } odd[] = {{"mem://nobody", ERR_NOSTORE},
             {"mem://nobody/x", ERR_NOSTORE},
             {"ftp://x/y", ERR_UNSUPPORTED},
             {"", ERR_INVAL},
             {"{CKPT_TEST_UNSET_NAME}/x", ERR_INVAL}};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    int rc = catalog_find(world_io(), NULL, odd[i].where, &pick, &e);
    if (rc != odd[i].code) fail_msg("\"%s\": %s: %s", odd[i].where, err_name(rc), e.text);
    catalog_drop(&pick);
  }
  /* A target whose log has no commit yet is no missing store. */
  runlog_close(world_begin(w->env.store, "", "one"));
  assert_int_equal(catalog_find(world_io(), NULL, tmpdir_path(w->dir, "root"), &pick, &e),
                   ERR_NOENT);
  catalog_drop(&pick);
  assert_int_equal(catalog_find(world_io(), NULL, tmpdir_path(w->dir, "root/x"), &pick, &e),
                   ERR_NOENT);
  catalog_drop(&pick);
  assert_int_equal(catalog_each(world_io(), NULL, tmpdir_path(w->dir, "root"), note, &all, &e), 0);
  assert_int_equal(catalog_verify(world_io(), NULL, NULL, NULL, tmpdir_path(w->dir, "root"), NULL,
                                  NULL, NULL, &e),
                   ERR_NOENT);
  assert_int_equal(all.count, 0);
}

/* ---- finding ---- */

static void must_find(const char *where, const char *unit, int64_t step, bool committed) {
  catalog_pick pick;
  err e = {0};
  if (catalog_find(world_io(), NULL, where, &pick, &e) < 0) fail_msg("%s: %s", where, e.text);
  assert_string_equal(pick.manifest.unit, unit);
  assert_int_equal(pick.manifest.step, step);
  assert_int_equal(pick.committed, committed);
  /* And by its own URI again. */
  catalog_pick again;
  if (catalog_find(world_io(), NULL, pick.uri, &again, &e) < 0) fail_msg("%s", e.text);
  assert_true(digest_equal(&pick.manifest.root, &again.manifest.root));
  catalog_drop(&again);
  catalog_drop(&pick);
}

static void a_target_a_unit_a_generation_and_a_group_are_found(void **state) {
  for (int i = 0; i < 2; i++) {
    target t = make_target(world_schemes[i]);
    must_find(t.uri, "last.ckpt", 3, true);
    must_find(at(&t, ""), "last.ckpt", 3, true);
    must_find(at(&t, "checkpoint-2"), "checkpoint-2", 2, true);
    must_find(at(&t, "checkpoint-2/"), "checkpoint-2", 2, true);
    must_find(at(&t, "last.ckpt"), "last.ckpt", 1, true); /* its directory: the first generation */
    must_find(at(&t, "last.ckpt.~8"), "last.ckpt", 3, true);
    must_find(at(&t, "exp/a"), "ckpt-3", 6, true);
    must_find(at(&t, "exp/b/checkpoint-2"), "checkpoint-2", 4, true);
    catalog_pick pick;
    assert_int_equal(catalog_find(world_io(), NULL, at(&t, "none"), &pick, NULL), ERR_NOENT);
    catalog_drop(&pick);
    assert_int_equal(catalog_find(world_io(), NULL, at(&t, "exp/a/none"), &pick, NULL), ERR_NOENT);
    catalog_drop(&pick);
    drop_target(&t);
  }
}

static void a_unit_that_only_has_later_generations_is_found_by_its_name(void **state) {
  world *w = *state;
  assert_int_equal(store_put_text(w->env.store, "a.ckpt/theirs", "x", STORE_IF_ABSENT), 0);
  save_in(w, "", "a.ckpt", MATCH_FILE, 5);
  must_find(tmpdir_path(w->dir, "root/a.ckpt"), "a.ckpt", 5, true);
}

static void copy_out(const target *t, const char *key, const char *to) {
  char from[4096];
  err e = {0};
  snprintf(from, sizeof from, "%s/root/%s", t->w->dir, key);
  if (fs_copy_tree(io_system(), from, to, false, NULL, &e) < 0) fail_msg("%s", e.text);
}

static int count_bad(void *ctx, const catalog_item *item, int status, const char *reason,
                     unsigned findings, const char *links, uint64_t link_count) {
  seen *all = ctx;
  size_t len = strlen(all->text);
  assert_int_equal(status, findings ? ERR_CORRUPT : 0);
  assert_int_equal(*reason != 0, findings > 0);
  if (findings)
    snprintf(all->text + len, sizeof all->text - len, "%s%s:%s(%u)", len ? " " : "", item->group,
             item->commit->dir, findings);
  return ++all->count == all->stop_at ? all->stop : 0;
}

static void a_copy_of_a_checkpoint_is_found_verified_and_restored_anywhere(void **state) {
  target t = make_target("file");
  static const char *const keys[] = {"checkpoint-2", "last.ckpt.~8", "exp/a/ckpt-3"};
  static const char *const names[] = {"checkpoint-2", "last.ckpt", "ckpt-3.part-1"};
  for (int i = 0; i < 3; i++) {
    char copy[4096], into[4096];
    err e = {0};
    snprintf(copy, sizeof copy, "%s/copy-%d", t.w->dir, i);
    snprintf(into, sizeof into, "%s/into-%d", t.w->dir, i);
    copy_out(&t, keys[i], copy);
    seen all = {0}, told = {0};
    must_find(copy, i == 2 ? "ckpt-3" : names[i], i == 0 ? 2 : i == 1 ? 3 : 6, false);
    assert_int_equal(
        catalog_verify(world_io(), NULL, t.w->pool, NULL, copy, NULL, count_bad, &all, &e), 0);
    assert_int_equal(all.count, 1);
    if (catalog_restore(world_io(), NULL, t.w->pool, NULL,
                        &(catalog_wish){.where = copy, .dir = into}, note, &told, &e) < 0)
      fail_msg("%s", e.text);
    assert_int_equal(told.count, 1);
    assert_true(path_exists(tmpdir_path(into, names[i])));
    assert_false(path_exists(tmpdir_path(into, ".ckpt-restore")));
    /* Damaged, it is neither verified nor restored. */
    char data[4200];
    snprintf(data, sizeof data, "%s/%s", copy, i == 0 ? "model.bin" : names[i]);
    write_pattern(data, 70001, 77);
    all = (seen){0};
    assert_int_equal(
        catalog_verify(world_io(), NULL, t.w->pool, NULL, copy, NULL, count_bad, &all, &e), 1);
    snprintf(into, sizeof into, "%s/other-%d", t.w->dir, i);
    assert_int_equal(catalog_restore(world_io(), NULL, t.w->pool, NULL,
                                     &(catalog_wish){.where = copy, .dir = into}, NULL, NULL, &e),
                     ERR_CORRUPT);
    assert_int_equal(count_entries(into), 0);
  }
  drop_target(&t);
}

/* ---- restoring ---- */

static int restore_to(const target *t, const char *where, const char *name, const char *into,
                      seen *told, err *e) {
  return catalog_restore(world_io(), NULL, t->w->pool, NULL,
                         &(catalog_wish){.where = where, .name = name, .dir = into}, note, told, e);
}

static void the_newest_of_each_group_is_restored_into_its_own_path(void **state) {
  for (int i = 0; i < 2; i++) {
    target t = make_target(world_schemes[i]);
    seen told = {0};
    err e = {0};
    char into[4096];
    snprintf(into, sizeof into, "%s/a/b", t.w->out);
    if (restore_to(&t, t.uri, NULL, into, &told, &e) < 0) fail_msg("%s", e.text);
    assert_string_equal(told.text, ":last.ckpt.~8 exp/a:ckpt-3 exp/b:checkpoint-2");
    assert_true(files_equal(tmpdir_path(into, "last.ckpt"), tmpdir_path(t.w->root, "last.ckpt")));
    assert_true(files_equal(tmpdir_path(into, "exp/a/ckpt-3.part-2"),
                            tmpdir_path(t.w->root, "exp/a/ckpt-3.part-2")));
    assert_true(files_equal(tmpdir_path(into, "exp/b/checkpoint-2/model.bin"),
                            tmpdir_path(t.w->root, "exp/b/checkpoint-2/model.bin")));
    assert_int_equal(count_entries(into), 2);
    /* A second time it is there, and stays. */
    assert_int_equal(restore_to(&t, t.uri, NULL, into, &told, &e), ERR_EXISTS);
    assert_int_equal(count_entries(into), 2);
    drop_target(&t);
  }
}

static void one_is_restored_by_its_unit_its_directory_or_its_group(void **state) {
  static const struct {
    const char *below, *name, *told;
  } cases[] = {
      {"", "last.ckpt", ":last.ckpt.~8"}, /* a name: its newest */
      {"", "last.ckpt.~8", ":last.ckpt.~8"},
      {"", "checkpoint-2", ":checkpoint-2 exp/a:checkpoint-2 exp/b:checkpoint-2"},
      {"", "exp/a/checkpoint-2", "exp/a:checkpoint-2"},
      {"exp/a", "checkpoint-2", ":checkpoint-2"},
      {"exp", "b/checkpoint-2", "b:checkpoint-2"},
      {"last.ckpt", NULL, ":last.ckpt"}, /* a URI: that very directory */
      {"exp/b/checkpoint-2", NULL, ":checkpoint-2"},
  };
  target t = make_target("file");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    seen told = {0};
    err e = {0};
    char into[4096];
    snprintf(into, sizeof into, "%s/into-%zu", t.w->out, i);
    if (restore_to(&t, at(&t, cases[i].below), cases[i].name, into, &told, &e) < 0)
      fail_msg("%s %s: %s", cases[i].below, cases[i].name, e.text);
    assert_string_equal(told.text, cases[i].told);
  }
  seen told = {0};
  err e = {0};
  char into[4096];
  snprintf(into, sizeof into, "%s/none", t.w->out);
  static const char *const absent[] = {"none", "exp/a/none", "exp/a", "../x", ""};
  for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
    assert_int_equal(restore_to(&t, t.uri, absent[i], into, &told, &e), ERR_NOENT);
    assert_non_null(strstr(e.text, absent[i]));
    assert_int_equal(count_entries(into), 0);
  }
  assert_int_equal(restore_to(&t, at(&t, "none"), NULL, into, &told, &e), ERR_NOENT);
  assert_int_equal(restore_to(&t, tmpdir_path(t.w->dir, "none"), NULL, into, &told, &e),
                   ERR_NOSTORE);
  assert_int_equal(told.count, 0);
  drop_target(&t);
}

/* Restores into the same directory while another one is at work there. */
struct second {
  const target *t;
  const char *into;
  int rc;
  err e;
};

static int restore_again(void *ctx, store *s, const catalog_item *item, err *e) {
  struct second *second = ctx;
  second->rc = catalog_restore(
      world_io(), NULL, NULL, NULL,
      &(catalog_wish){.where = second->t->uri, .name = "checkpoint-2", .dir = second->into}, NULL,
      NULL, &second->e);
  return 0;
}

static void two_restores_into_one_directory_do_not_disturb_one_another(void **state) {
  target t = make_target("mem");
  char into[4096];
  snprintf(into, sizeof into, "%s/into", t.w->out);
  struct second second = {.t = &t, .into = into};
  err e = {0};
  int rc = catalog_restore(world_io(), NULL, t.w->pool, NULL,
                           &(catalog_wish){.where = t.uri, .name = "last.ckpt", .dir = into},
                           restore_again, &second, &e);
  if (rc < 0) fail_msg("%s", e.text);
  if (second.rc < 0) fail_msg("%s", second.e.text);
  assert_true(path_exists(tmpdir_path(into, "last.ckpt")));
  assert_true(path_exists(tmpdir_path(into, "checkpoint-2")));
  assert_int_equal(count_entries(into), 3); /* with exp, whose checkpoint-2 it was, too */
  drop_target(&t);
}

static void what_a_dead_restore_left_is_no_hindrance_and_goes(void **state) {
  target t = make_target("mem");
  err e = {0};
  seen told = {0};
  make_dir(tmpdir_path(t.w->out, ".ckpt-restore"));
  write_file(tmpdir_path(t.w->out, ".ckpt-restore/lock"), "");
  make_dir(tmpdir_path(t.w->out, ".ckpt-restore/0123"));
  write_file(tmpdir_path(t.w->out, ".ckpt-restore/0123/half"), "x");
  if (restore_to(&t, t.uri, "last.ckpt", t.w->out, &told, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(count_entries(t.w->out), 1);
  drop_target(&t);
}

/* ---- verifying ---- */

static int verify(const target *t, const char *name, seen *all, err *e) {
  *all = (seen){.stop_at = all->stop_at, .stop = all->stop};
  return catalog_verify(world_io(), NULL, t->w->pool, NULL, t->uri, name, count_bad, all, e);
}

static void change(const target *t, const char *key, int how) {
  store *s = t->w->env.store;
  buf data;
  buf_init(&data, 1 << 20);
  assert_int_equal(s->ops->get(s, key, &data, NULL), 0);
  if (how == 0) data.data[data.len - 1] ^= 1;
  if (how == 1) data.len--;
  if (how == 2)
    assert_int_equal(s->ops->remove(s, key, NULL), 0);
  else
    assert_int_equal(s->ops->put(s, key, data.data, data.len, STORE_REPLACE, NULL), 0);
  buf_free(&data);
}

static void a_verification_counts_what_is_flipped_missing_or_cut_short(void **state) {
  for (int i = 0; i < 2; i++) {
    target t = make_target(world_schemes[i]);
    seen all = {0};
    err e = {0};
    assert_int_equal(verify(&t, NULL, &all, &e), 0);
    assert_int_equal(all.count, 6);
    change(&t, "checkpoint-2/model.bin", 0);
    change(&t, "checkpoint-2/sub/shard\xff", 1);
    assert_int_equal(verify(&t, NULL, &all, &e), 1);
    assert_string_equal(all.text, ":checkpoint-2(2)");
    change(&t, "checkpoint-2/empty", 2);
    change(&t, "exp/a/ckpt-3/ckpt-3.part-0", 2);
    change(&t, "last.ckpt/" MANIFEST_NAME, 0);
    change(&t, "exp/b/checkpoint-2/" MANIFEST_NAME, 2);
    assert_int_equal(verify(&t, NULL, &all, &e), 4);
    assert_string_equal(all.text,
                        ":last.ckpt(1) :checkpoint-2(3) exp/a:ckpt-3(1) exp/b:checkpoint-2(1)");
    assert_int_equal(all.count, 6);
    /* By name. */
    assert_int_equal(verify(&t, "last.ckpt.~8", &all, &e), 0);
    assert_int_equal(all.count, 1);
    assert_int_equal(verify(&t, "exp/a/checkpoint-2", &all, &e), 0);
    assert_int_equal(all.count, 1);
    assert_int_equal(verify(&t, "last.ckpt", &all, &e), 1);
    assert_int_equal(all.count, 2);
    assert_int_equal(verify(&t, "none", &all, &e), ERR_NOENT);
    /* A callback may end it. */
    all = (seen){.stop_at = 2, .stop = 1};
    assert_int_equal(verify(&t, NULL, &all, &e), 2);
    assert_int_equal(all.count, 2);
    drop_target(&t);
  }
}

static void a_file_that_became_a_link_or_a_directory_is_a_finding(void **state) {
  target t = make_target("file");
  seen all = {0};
  err e = {0};
  char data[4096], moved[4096];
  snprintf(data, sizeof data, "%s/root/checkpoint-2/model.bin", t.w->dir);
  snprintf(moved, sizeof moved, "%s/moved", t.w->dir);
  assert_int_equal(rename(data, moved), 0);
  assert_int_equal(symlink(moved, data), 0);
  int bad = verify(&t, NULL, &all, &e);
  if (bad != 1) fail_msg("%s", bad < 0 ? e.text : all.text);
  assert_int_equal(unlink(data), 0);
  make_dir(data);
  assert_int_equal(verify(&t, NULL, &all, &e), 1);
  drop_target(&t);
}

/* ---- hostile places ---- */

static void a_log_of_garbage_or_of_a_newer_format_is_a_clear_error(void **state) {
  static const struct {
    const char *text;
    int code;
  } cases[] = {
      {"", ERR_FORMAT},
      {"garbage", ERR_FORMAT},
      {"[]", ERR_FORMAT},
      {"{\"format\":0,\"reader\":0,\"n\":-1,\"type\":\"run\",\"nonce\":\"x\",\"time_ns\":1}",
       ERR_FORMAT},
      {"{\"format\":3,\"reader\":3,\"n\":0,\"type\":\"run\",\"nonce\":\"x\",\"time_ns\":1}",
       ERR_VERSION},
      {"{\"format\":0,\"reader\":0,\"n\":0,\"type\":\"dance\",\"nonce\":\"x\",\"time_ns\":1}",
       ERR_VERSION},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int deep = 0; deep < 2; deep++) {
      world *w = world_new("file", world_io());
      const char *key =
          deep ? "a/b/.ckpt/log/00000000000000000000.json" : ".ckpt/log/00000000000000000000.json";
      const char *root = tmpdir_path(w->dir, "root");
      char into[4096], where[4096];
      err e = {0};
      seen all = {0};
      snprintf(where, sizeof where, "%s", root);
      snprintf(into, sizeof into, "%s/into", w->dir);
      assert_int_equal(store_put_text(w->env.store, key, cases[i].text, STORE_IF_ABSENT), 0);
      assert_int_equal(catalog_each(world_io(), NULL, where, note, &all, &e), cases[i].code);
      assert_non_null(strstr(e.text, "log"));
      assert_int_equal(catalog_restore(world_io(), NULL, NULL, NULL,
                                       &(catalog_wish){.where = where, .dir = into}, note, &all,
                                       &e),
                       cases[i].code);
      assert_int_equal(count_entries(into), 0);
      assert_int_equal(
          catalog_verify(world_io(), NULL, NULL, NULL, where, NULL, count_bad, &all, &e),
          cases[i].code);
      catalog_pick pick;
      if (!deep) assert_int_equal(catalog_find(world_io(), NULL, where, &pick, &e), cases[i].code);
      if (!deep) catalog_drop(&pick);
      assert_int_equal(all.count, 0);
      world_free(w);
    }
}

static void a_manifest_of_a_newer_format_is_refused_and_not_called_corrupt(void **state) {
  world *w = *state;
  char where[4096];
  err e = {0};
  catalog_pick pick;
  assert_int_equal(
      store_put_text(w->env.store, MANIFEST_NAME, "{\"format\":9,\"reader\":9}", STORE_IF_ABSENT),
      0);
  snprintf(where, sizeof where, "%s/root", w->dir);
  assert_int_equal(catalog_find(world_io(), NULL, where, &pick, &e), ERR_VERSION);
  catalog_drop(&pick);
}

/* ---- what is dropped ---- */

static void drop_in(const target *t, const char *prefix, const char *dir) {
  runlog *log = NULL;
  assert_int_equal(runlog_open(t->w->env.store, prefix, &log, NULL), 0);
  uint64_t n = runlog_find_dir(runlog_view(log), dir)->n;
  assert_int_equal(runlog_drop(log, n, "p", "r", NULL, NULL, NULL), 0);
  runlog_close(log);
}

static int count_item(void *ctx, store *s, const catalog_item *item, err *e) {
  ++*(int *)ctx;
  return 0;
}

static int no_verdict(void *ctx, const catalog_item *item, int status, const char *reason,
                      unsigned findings, const char *links, uint64_t link_count) {
  ++*(int *)ctx;
  return status;
}

static void what_is_dropped_is_neither_listed_found_restored_nor_verified(void **state) {
  target t = make_target("file");
  drop_in(&t, "", "checkpoint-2");
  drop_in(&t, "exp/a", "ckpt-3");
  must_list(t.uri, &t, ":last.ckpt :last.ckpt.~8 exp/a:checkpoint-2 exp/b:checkpoint-2");
  catalog_pick pick;
  err why = {0};
  int rc = catalog_find(world_io(), NULL, at(&t, "checkpoint-2"), &pick, &why);
  assert_int_equal(rc, ERR_NOENT); /* though it lies there, whole, with its manifest */
  assert_non_null(strstr(why.text, "no longer kept"));
  catalog_drop(&pick);
  char *out = tmpdir_new();
  int count = 0;
  err e = {0};
  rc = catalog_restore(world_io(), NULL, NULL, NULL,
                       &(catalog_wish){.where = at(&t, "exp/a"), .name = "ckpt-3", .dir = out},
                       count_item, &count, &e);
  assert_int_equal(rc, ERR_NOENT);
  rc = catalog_restore(world_io(), NULL, NULL, NULL,
                       &(catalog_wish){.where = at(&t, "exp/a"), .dir = out}, count_item, &count,
                       &e);
  if (rc < 0) fail_msg("%s", e.text);
  assert_int_equal(count, 1);
  assert_true(path_exists(tmpdir_path(out, "checkpoint-2")));
  count = 0;
  assert_int_equal(
      catalog_verify(world_io(), NULL, NULL, NULL, t.uri, NULL, no_verdict, &count, &e), 0);
  assert_int_equal(count, 4);
  tmpdir_remove(out);
  drop_target(&t);
}

/* While the first block is read, somebody looks for pins. */
static void see_pins(void *ctx) {
  const target *t = ctx;
  char *found = store_listing(t->w->env.store, ".ckpt/pins", false);
  assert_int_equal(strlen(found), strlen(".ckpt/pins/") + 32);
  free(found);
}

static void a_restore_has_a_pin_while_it_reads_and_none_after(void **state) {
  target t = make_target("file");
  char *out = tmpdir_new();
  err e = {0};
  const io *io = hooked_io(world_io(), "checkpoint-2/model.bin", 1, see_pins, &t);
  int rc = catalog_restore(io, NULL, NULL, NULL,
                           &(catalog_wish){.where = t.uri, .name = "checkpoint-2", .dir = out},
                           NULL, NULL, &e);
  if (rc < 0) fail_msg("%s", e.text);
  assert_true(hook_ran());
  store_must_list(t.w->env.store, ".ckpt/pins", false, "");
  tmpdir_remove(out);
  drop_target(&t);
}

static void drop_it(void *ctx) {
  drop_in(ctx, "", "checkpoint-2");
}

/* It is dropped after it was chosen, and before the pin was there. */
static void what_is_dropped_just_now_is_passed_over_for_the_next(void **state) {
  target t = make_target("file");
  drop_in(&t, "", "last.ckpt.~8");
  char *out = tmpdir_new();
  err e = {0};
  const io *io = hooked_io(world_io(), ".ckpt/pins", 1, drop_it, &t);
  int rc = catalog_restore(io, NULL, NULL, NULL, &(catalog_wish){.where = t.uri, .dir = out}, NULL,
                           NULL, &e);
  if (rc < 0) fail_msg("%s", e.text);
  assert_true(hook_ran());
  assert_true(path_exists(tmpdir_path(out, "last.ckpt")));
  assert_false(path_exists(tmpdir_path(out, "checkpoint-2")));
  tmpdir_remove(out);
  drop_target(&t);
}

static void names_that_are_no_text_are_listed_found_and_restored(void **state) {
  world *w = *state;
  char where[4096], into[4096];
  err e = {0};
  seen told = {0};
  save_in(w, "gr \xff%2F", "we\nird \xc3.ckpt", MATCH_FILE, 3);
  snprintf(where, sizeof where, "%s/root", w->dir);
  snprintf(into, sizeof into, "%s/into", w->dir);
  if (catalog_restore(world_io(), NULL, NULL, NULL, &(catalog_wish){.where = where, .dir = into},
                      note, &told, &e) < 0)
    fail_msg("%s", e.text);
  assert_int_equal(told.count, 1);
  char made[4200], from[4200];
  snprintf(made, sizeof made, "%s/gr \xff%%2F/we\nird \xc3.ckpt", into);
  snprintf(from, sizeof from, "%s/gr \xff%%2F/we\nird \xc3.ckpt", w->root);
  assert_true(files_equal(made, from));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(commits_are_listed_in_the_order_of_their_logs_group_by_group),
      cmocka_unit_test(what_a_callback_returns_ends_the_walk_and_is_passed_through),
      IN_A_FILE_WORLD(no_place_and_no_log_are_told_apart),
      cmocka_unit_test(a_target_a_unit_a_generation_and_a_group_are_found),
      IN_A_FILE_WORLD(a_unit_that_only_has_later_generations_is_found_by_its_name),
      cmocka_unit_test(a_copy_of_a_checkpoint_is_found_verified_and_restored_anywhere),
      cmocka_unit_test(the_newest_of_each_group_is_restored_into_its_own_path),
      cmocka_unit_test(one_is_restored_by_its_unit_its_directory_or_its_group),
      cmocka_unit_test(two_restores_into_one_directory_do_not_disturb_one_another),
      cmocka_unit_test(what_a_dead_restore_left_is_no_hindrance_and_goes),
      cmocka_unit_test(a_verification_counts_what_is_flipped_missing_or_cut_short),
      cmocka_unit_test(a_file_that_became_a_link_or_a_directory_is_a_finding),
      cmocka_unit_test(a_log_of_garbage_or_of_a_newer_format_is_a_clear_error),
      IN_A_FILE_WORLD(a_manifest_of_a_newer_format_is_refused_and_not_called_corrupt),
      IN_A_FILE_WORLD(names_that_are_no_text_are_listed_found_and_restored),
      cmocka_unit_test(what_is_dropped_is_neither_listed_found_restored_nor_verified),
      cmocka_unit_test(a_restore_has_a_pin_while_it_reads_and_none_after),
      cmocka_unit_test(what_is_dropped_just_now_is_passed_over_for_the_next),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
