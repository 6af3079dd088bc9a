#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/restore/restore.h"
#include "io_fault.h"
#include "prims/fs.h"
#include "tmpdir.h"
#include "world.h"

/* One saved unit of some kind, and its manifest. */
typedef struct saved {
  world *w;
  runlog *log;
  const runlog_commit *commit;
  manifest manifest;
  match_kind kind;
  const char *unit;
} saved;

static saved save(const char *scheme, match_kind kind) {
  static const char *const names[] = {"checkpoint-1", "last.ckpt", "ckpt-1"};
  saved s = {.w = world_new(scheme, world_io()), .kind = kind, .unit = names[kind]};
  s.log = world_begin(s.w->env.store, "", "one");
  make_unit(s.w, s.unit, kind, 1);
  save_unit(s.w, s.log, s.unit, kind, 1);
  s.commit = &runlog_view(s.log)->commits[0];
  assert_int_equal(restore_manifest(s.w->env.store, "", s.commit, &s.manifest, NULL), 0);
  return s;
}

static void drop(saved *s) {
  manifest_free(&s->manifest);
  runlog_close(s->log);
  world_free(s->w);
}

static int restore_with(const saved *s, const io *io, err *e) {
  restore how = {.io = io, .store = s->w->env.store, .pool = s->w->pool, .staging = s->w->staging};
  return restore_unit(&how, &s->manifest, s->commit->dir, s->w->out, e);
}

static void must_be_absent(const saved *s) {
  assert_int_equal(count_entries(s->w->out), 0);
  assert_int_equal(count_entries(s->w->staging), 0);
}

static void a_name_that_is_taken_is_refused_and_not_touched(void **state) {
  static const char *const taken[] = {"checkpoint-1", "last.ckpt", "ckpt-1.part-2"};
  for (match_kind kind = MATCH_DIR; kind <= MATCH_GROUP; kind++)
    for (int how = 0; how < 3; how++) {
      saved s = save("file", kind);
      const char *name = tmpdir_path(s.w->out, taken[kind]);
      err e = {0};
      if (how == 0) write_file(name, "mine");
      if (how == 1) make_dir(name);
      if (how == 2) assert_int_equal(symlink("nowhere", name), 0);
      assert_int_equal(restore_with(&s, world_io(), &e), ERR_EXISTS);
      assert_non_null(strstr(e.text, taken[kind]));
      assert_true(path_exists(tmpdir_path(s.w->out, taken[kind])));
      if (how == 0) assert_true(file_is(tmpdir_path(s.w->out, taken[kind]), "mine"));
      assert_int_equal(count_entries(s.w->out), 1);
      assert_int_equal(count_entries(s.w->staging), 0);
      drop(&s);
    }
}

static void take_the_name(void *ctx) {
  const saved *s = ctx;
  static const char *const taken[] = {"checkpoint-1", "last.ckpt", "ckpt-1.part-1"};
  write_file(tmpdir_path(s->w->out, taken[s->kind]), "mine");
}

/* After the first look, while the data comes. */
static void a_name_that_is_taken_meanwhile_is_not_touched_either(void **state) {
  static const char *const taken[] = {"checkpoint-1", "last.ckpt", "ckpt-1.part-1"};
  for (match_kind kind = MATCH_DIR; kind <= MATCH_GROUP; kind++) {
    saved s = save("file", kind);
    const io *io = hooked_io(world_io(), "staging/", 3, take_the_name, &s);
    assert_int_equal(restore_with(&s, io, NULL), ERR_EXISTS);
    assert_true(hook_ran());
    assert_true(file_is(tmpdir_path(s.w->out, taken[kind]), "mine"));
    assert_int_equal(count_entries(s.w->out), 1); /* of a group too */
    assert_int_equal(count_entries(s.w->staging), 0);
    drop(&s);
  }
}

/* Keys of data in the store, of each kind. */
static const char *const data_keys[] = {"checkpoint-1/model.bin", "last.ckpt/last.ckpt",
                                        "ckpt-1/ckpt-1.part-1"};

static void damage(const saved *s, int how) {
  const char *key = data_keys[s->kind];
  store *st = s->w->env.store;
  buf data;
  buf_init(&data, 1 << 20);
  assert_int_equal(st->ops->get(st, key, &data, NULL), 0);
  if (how == 0) data.data[data.len / 2] ^= 1;
  if (how == 1) data.len--;
  if (how == 2) assert_int_equal(st->ops->remove(st, key, NULL), 0);
  if (how == 3) data.len = 0;
  if (how != 2)
    assert_int_equal(st->ops->put(st, key, data.data, data.len, STORE_REPLACE, NULL), 0);
  buf_free(&data);
}

static void damaged_or_missing_data_is_corrupt_and_nothing_appears(void **state) {
  for (int i = 0; i < 2; i++)
    for (match_kind kind = MATCH_DIR; kind <= MATCH_GROUP; kind++)
      for (int how = 0; how < 4; how++) {
        saved s = save(world_schemes[i], kind);
        err e = {0};
        damage(&s, how);
        int rc = restore_with(&s, world_io(), &e);
        if (rc != ERR_CORRUPT) fail_msg("%s: %s", err_name(rc), e.text);
        assert_int_equal(e.code, ERR_CORRUPT);
        assert_non_null(strstr(e.text, data_keys[kind]));
        must_be_absent(&s);
        drop(&s);
      }
}

static void a_manifest_that_is_not_the_committed_one_is_corrupt(void **state) {
  saved s = save("mem", MATCH_DIR), other = save("mem", MATCH_FILE);
  store *st = s.w->env.store;
  static const char key[] = "checkpoint-1/" MANIFEST_NAME;
  manifest m = {0};
  err e = {0};
  buf text;
  buf_init(&text, 1 << 20);
  /* Whole and valid, of another checkpoint. */
  assert_int_equal(manifest_print(&other.manifest, &text, NULL), 0);
  assert_int_equal(st->ops->put(st, key, text.data, text.len, STORE_REPLACE, NULL), 0);
  assert_int_equal(restore_manifest(st, "", s.commit, &m, &e), ERR_CORRUPT);
  assert_int_equal(m.count, 0);
  /* The next one of the same name: an older commit is not what is there now. */
  buf_clear(&text);
  make_unit(s.w, s.unit, MATCH_DIR, 2);
  save_unit(s.w, s.log, s.unit, MATCH_DIR, 1);
  s.commit = &runlog_view(s.log)->commits[0];
  assert_int_equal(st->ops->get(st, "checkpoint-1.~4/" MANIFEST_NAME, &text, NULL), 0);
  assert_int_equal(st->ops->put(st, key, text.data, text.len, STORE_REPLACE, NULL), 0);
  assert_int_equal(restore_manifest(st, "", s.commit, &m, &e), ERR_CORRUPT);
  /* Torn, empty, and gone. */
  assert_int_equal(st->ops->put(st, key, text.data, text.len / 2, STORE_REPLACE, NULL), 0);
  assert_int_equal(restore_manifest(st, "", s.commit, &m, &e), ERR_FORMAT);
  assert_int_equal(st->ops->put(st, key, "", 0, STORE_REPLACE, NULL), 0);
  assert_int_equal(restore_manifest(st, "", s.commit, &m, &e), ERR_FORMAT);
  assert_int_equal(st->ops->remove(st, key, NULL), 0);
  assert_int_equal(restore_manifest(st, "", s.commit, &m, &e), ERR_CORRUPT);
  assert_non_null(strstr(e.text, "checkpoint-1"));
  buf_free(&text);
  drop(&other);
  drop(&s);
}

static void a_cancelled_restore_leaves_nothing(void **state) {
  saved s = save("file", MATCH_DIR);
  atomic_int cancel = 1;
  restore how = {
      .io = world_io(), .store = s.w->env.store, .staging = s.w->staging, .cancel = &cancel};
  assert_int_equal(restore_unit(&how, &s.manifest, s.commit->dir, s.w->out, NULL), ERR_CANCELED);
  must_be_absent(&s);
  drop(&s);
}

static void a_staging_on_another_file_system_is_refused(void **state) {
  struct stat here, there;
  char *tmp = tmpdir_new();
  saved s = save("file", MATCH_DIR);
  assert_int_equal(stat(tmp, &here), 0);
  assert_int_equal(stat(s.w->out, &there), 0);
  if (here.st_dev != there.st_dev) {
    restore how = {.io = world_io(), .store = s.w->env.store, .staging = tmp};
    assert_int_equal(restore_unit(&how, &s.manifest, s.commit->dir, s.w->out, NULL),
                     ERR_UNSUPPORTED);
    must_be_absent(&s);
    assert_int_equal(count_entries(tmp), 0);
  }
  drop(&s);
  tmpdir_remove(tmp);
}

/* ---- calls that fail ---- */

/* NULL if nothing of it is there, else the unit must be equal, to the last byte and time. */
static int shown(const saved *s) {
  static const int names[] = {1, 1, 3};
  int count = count_entries(s->w->out);
  if (count == 0) return 0;
  if (count != names[s->kind]) fail_msg("%d of %d names are there", count, names[s->kind]);
  for (size_t i = 0; i < s->manifest.count; i++) {
    char a[4096], b[4096];
    const manifest_entry *m = &s->manifest.entries[i];
    const char *below = s->kind == MATCH_DIR ? "checkpoint-1/" : "";
    snprintf(a, sizeof a, "%s/%s%s", s->w->root, below, m->name);
    snprintf(b, sizeof b, "%s/%s%s", s->w->out, below, m->name);
    struct stat x, y;
    assert_int_equal(lstat(a, &x), 0);
    if (lstat(b, &y) < 0) fail_msg("%s is not there", b);
    if (x.st_mtim.tv_sec != y.st_mtim.tv_sec || x.st_mode != y.st_mode)
      fail_msg("%s: another time or mode", b);
    if (m->type == MANIFEST_FILE && !files_equal(a, b)) fail_msg("%s differs", b);
  }
  return 1;
}

static void empty_dir(char *dir) {
  tmpdir_remove(strdup(dir));
  make_dir(dir);
}

static void any_failing_call_leaves_it_absent_or_whole(void **state) {
  static const io_fault_plan plans[] = {
      {.errnum = EIO},
      {.errnum = ENOSPC, .for_good = true},
      {.errnum = EIO, .done = true},
  };
  for (match_kind kind = MATCH_DIR; kind <= MATCH_GROUP; kind++)
    for (int p = 0; p < 3; p++) {
      saved s = save("file", kind);
      io_fault *fault = io_fault_new(world_io());
      io_fault_plan plan = plans[p];
      int fds = count_fds(), errors = 0;
      for (plan.nth = 1;; plan.nth++) {
        err e = {0};
        s.w->env.store->io = io_fault_io(fault);
        io_fault_set(fault, plan);
        int rc = restore_with(&s, io_fault_io(fault), &e);
        bool failed = io_fault_failed(fault, CALL_ANY) > 0;
        if (rc < 0 && e.code != rc) fail_msg("%s, but %s", err_name(rc), err_name(e.code));
        /* When everything fails, the names of a group cannot be taken back either. */
        bool torn_group = kind == MATCH_GROUP && plan.for_good && rc < 0;
        int there = torn_group ? 0 : shown(&s);
        if (rc == 0) assert_int_equal(there, 1);
        /* What stays in the staging is named. */
        if (count_entries(s.w->staging) && !(rc < 0 && strstr(e.text, s.w->staging)))
          fail_msg("left in the staging after %s: %s", err_name(rc), e.text);
        assert_int_equal(count_fds(), fds);
        errors += rc < 0;
        empty_dir(s.w->out);
        empty_dir(s.w->staging);
        if (!failed) break;
      }
      assert_true(errors > 8);
      s.w->env.store->io = world_io();
      io_fault_free(fault);
      drop(&s);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_that_is_taken_is_refused_and_not_touched),
      cmocka_unit_test(a_name_that_is_taken_meanwhile_is_not_touched_either),
      cmocka_unit_test(damaged_or_missing_data_is_corrupt_and_nothing_appears),
      cmocka_unit_test(a_manifest_that_is_not_the_committed_one_is_corrupt),
      cmocka_unit_test(a_cancelled_restore_leaves_nothing),
      cmocka_unit_test(a_staging_on_another_file_system_is_refused),
      cmocka_unit_test(any_failing_call_leaves_it_absent_or_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
