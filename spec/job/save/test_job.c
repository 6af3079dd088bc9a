/* A save of each kind of unit, and of one that changes while it is saved. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/save/job.h"
#include "commit/manifest_read.h"
#include "job/move/unit_files.h"
#include "prims/fs.h"
#include "tmpdir.h"
#include "world.h"

enum { SCHEMES = 2 };

/* ---- what is saved ---- */

typedef struct marked {
  char keys[16][STORE_KEY_MAX];
  size_t count;
} marked;

static int take_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  marked *m = ctx;
  if (m->count < 16) snprintf(m->keys[m->count++], STORE_KEY_MAX, "%s", key);
  return 0;
}

/* Whose they are: the manifest says it, and each object's mark where a store keeps marks. */
static void must_say_whose_they_are(store *s, runlog *log, const runlog_commit *c) {
  char id[RUNLOG_NONCE_MAX], dir[STORE_KEY_MAX];
  manifest m;
  marked found = {.count = 0};
  store_object o;
  assert_int_equal(runlog_attempt_id(log, c->attempt, id, NULL), 0);
  assert_int_equal(strlen(id), 32);
  assert_int_equal(runlog_key_dir(log, c->dir, dir, NULL), 0);
  assert_int_equal(manifest_read(s, dir, &m, NULL), 0);
  assert_string_equal(m.attempt, id);
  manifest_free(&m);
  assert_int_equal(s->ops->list(s, dir, false, take_key, &found, NULL), 0);
  assert_true(found.count > 1);
  for (size_t i = 0; i < found.count; i++) {
    assert_int_equal(s->ops->head(s, found.keys[i], &o, NULL), 0);
    assert_string_equal(o.mark, s->ops->put_marked ? id : "");
  }
}

static void save_and_restore(const world *w, const char *path, match_kind kind, int with) {
  runlog *log = world_begin(w->env.store, "", "one");
  make_unit(w, path, kind, 1);
  job *j = job_for(w, log, path, kind, 3, with);
  j->metrics = strdup("{\"loss\":0.5}");
  job_run(j);
  if (j->status != 0) fail_msg("%s", j->error.text);
  assert_int_equal(j->error.code, 0);
  const runlog_state *state = runlog_view(log);
  const runlog_commit *c = &state->commits[0];
  assert_int_equal(state->commit_count, 1);
  assert_int_equal(j->commit.n, c->n);
  assert_int_equal(j->files, c->files);
  assert_int_equal(j->bytes, c->bytes);
  assert_int_equal(j->time_ns, c->time_ns);
  assert_int_equal(j->moved, c->bytes);
  assert_int_equal(j->total, c->bytes);
  assert_int_equal(c->step, 3);
  assert_int_equal(c->kind, kind);
  must_restore(w, "", c, path);
  must_say_whose_they_are(w->env.store, log, c);
  world_must_be_clean(w);
  job_free(j);
  runlog_close(log);
}

static void each_kind(int with) {
  static const struct {
    const char *path;
    match_kind kind;
  } units[] = {
      {"a/checkpoint-3", MATCH_DIR}, {"a/b/last.ckpt", MATCH_FILE}, {"ckpt-3", MATCH_GROUP}};
  for (int s = 0; s < SCHEMES; s++)
    for (int u = 0; u < 3; u++) {
      world *w = world_new(world_schemes[s], io_system());
      save_and_restore(w, units[u].path, units[u].kind, with);
      world_free(w);
    }
}

static void a_saved_unit_of_each_kind_is_restored_byte_for_byte(void **state) {
  each_kind(0);
}

static void a_snapshot_of_each_kind_is_restored_byte_for_byte(void **state) {
  each_kind(WITH_SNAPSHOT);
}

static void a_name_that_is_saved_again_and_again_keeps_its_generations(void **state) {
  for (world *w = NULL; (w = world_next(w, io_system()));) {
    runlog *log = world_log(w, "", "one");
    for (unsigned i = 0; i < 3; i++) {
      make_unit(w, "last.ckpt", MATCH_FILE, i);
      save_unit(w, log, "last.ckpt", MATCH_FILE, MATCH_NO_STEP);
      const runlog_state *st = runlog_view(log);
      must_restore(w, "", &st->commits[i], "last.ckpt");
      if (i == 0) continue;
      err e = {0};
      assert_int_equal(restore_commit(w, "", &st->commits[0], &e), 0);
      assert_false(
          files_equal(tmpdir_path(w->out, "last.ckpt"), tmpdir_path(w->root, "last.ckpt")));
    }
    world_must_be_clean(w);
  }
}

static void what_is_excluded_is_not_saved_and_does_not_stop_a_snapshot(void **state) {
  for (int with = 0; with <= WITH_SNAPSHOT; with += WITH_SNAPSHOT) {
    world *w = world_new("file", io_system());
    runlog *log = world_log(w, "", "one");
    make_unit(w, "checkpoint-1", MATCH_DIR, 1);
    write_file(tmpdir_path(w->root, "checkpoint-1/half.tmp"), "x");
    assert_int_equal(mkfifo(tmpdir_path(w->root, "checkpoint-1/pipe.tmp"), 0600), 0);
    write_file(tmpdir_path(w->root, "checkpoint-1/.ckpt-manifest.json"), "copied by hand");
    job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, with);
    job_run(j);
    if (j->status != 0) fail_msg("%s", j->error.text);
    assert_int_equal(restore_commit(w, "", &runlog_view(log)->commits[0], NULL), 0);
    assert_true(path_exists(tmpdir_path(w->out, "checkpoint-1/model.bin")));
    assert_false(path_exists(tmpdir_path(w->out, "checkpoint-1/half.tmp")));
    assert_false(path_exists(tmpdir_path(w->out, "checkpoint-1/pipe.tmp")));
    assert_false(path_exists(tmpdir_path(w->out, "checkpoint-1/.ckpt-manifest.json")));
    world_must_be_clean(w);
    job_free(j);
    world_free(w);
  }
}

/* ---- what one is saved without ---- */

static uint64_t stamp_of(const world *w, const char *path, match_kind kind) {
  unit_files t;
  assert_int_equal(unit_files_scan(w->env.io, w->root, path, kind, w->env.rules, &t, NULL), 0);
  uint64_t stamp = unit_files_stamp(&t);
  unit_files_free(&t);
  return stamp;
}

/* A checkpoint of a model and an optimizer, of which the detector has seen both. */
static job *job_without(const world *w, runlog *log, const char *glob, int with) {
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  write_file(tmpdir_path(w->root, "checkpoint-1/optimizer.pt"), "moments");
  job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, with);
  j->stamp = stamp_of(w, "checkpoint-1", MATCH_DIR);
  assert_true(names_add(&j->left, glob));
  return j;
}

static void one_is_saved_without_what_it_is_told_and_the_manifest_tells_by_what(void **state) {
  for (int s = 0; s < SCHEMES * 2; s++) {
    world *w = world_new(world_schemes[s / 2], io_system());
    runlog *log = world_log(w, "", "one");
    manifest m;
    job *j = job_without(w, log, "optim*", s % 2 ? WITH_SNAPSHOT : 0);
    job_run(j);
    if (j->status != 0) fail_msg("%s", j->error.text);
    const runlog_commit *c = &runlog_view(log)->commits[0];
    assert_int_equal(j->total, c->bytes);
    assert_int_equal(c->left_out, 1);
    assert_int_equal(c->left_here, 1);
    assert_int_equal(restore_commit(w, "", c, NULL), 0);
    assert_true(path_exists(tmpdir_path(w->out, "checkpoint-1/model.bin")));
    assert_false(path_exists(tmpdir_path(w->out, "checkpoint-1/optimizer.pt")));
    assert_int_equal(manifest_read(w->env.store, "checkpoint-1", &m, NULL), 0);
    assert_int_equal(m.left_globs.count, 1);
    assert_string_equal(m.left_globs.at[0], "optim*");
    assert_string_equal(m.left_names.at[0], "optimizer.pt");
    manifest_free(&m);
    world_must_be_clean(w);
    job_free(j);
    world_free(w);
  }
}

static void remove_file(void *path) {
  unlink(path);
}

/* It is listed twice, and a file may go between the two. */
static void what_goes_while_it_is_listed_is_not_taken_for_left_out(void **state) {
  bool ran = true;
  for (long n = 1; ran; n++) {
    char model[FS_PATH_MAX];
    world *w = world_new("file", io_system());
    runlog *log = world_log(w, "", "one");
    job *j = job_without(w, log, "optim*", 0);
    snprintf(model, sizeof model, "%s", tmpdir_path(w->root, "checkpoint-1/model.bin"));
    w->env.io = hooked_io(io_system(), "checkpoint-1", n, remove_file, model);
    job_run(j);
    ran = hook_ran();
    if (j->status == 0) {
      assert_int_equal(restore_commit(w, "", &runlog_view(log)->commits[0], NULL), 0);
      if (!path_exists(tmpdir_path(w->out, "checkpoint-1/model.bin")))
        fail_msg("committed without its model, which went at open %ld", n);
    } else {
      assert_true(ran);
    }
    w->env.io = io_system();
    job_free(j);
    world_free(w);
  }
}

static void
one_of_which_nothing_would_be_left_is_saved_whole_and_one_that_has_no_such_file_is_whole(
    void **state) {
  static const char *const globs[] = {"*", "adam.pt"};
  for (int i = 0; i < 2; i++) {
    world *w = world_new("file", io_system());
    runlog *log = world_log(w, "", "one");
    manifest m;
    job *j = job_without(w, log, globs[i], 0);
    job_run(j);
    if (j->status != 0) fail_msg("%s", j->error.text);
    must_restore(w, "", &runlog_view(log)->commits[0], "checkpoint-1");
    assert_int_equal(runlog_view(log)->commits[0].left_out, 0);
    assert_int_equal(manifest_read(w->env.store, "checkpoint-1", &m, NULL), 0);
    assert_int_equal(m.left_globs.count, 0);
    manifest_free(&m);
    job_free(j);
    world_free(w);
  }
}

static void one_is_the_one_that_was_decided_about_by_all_of_its_files(void **state) {
  world *w = world_new("file", io_system());
  runlog *log = world_log(w, "", "one");
  job *j = job_without(w, log, "optim*", 0);
  write_file(tmpdir_path(w->root, "checkpoint-1/optimizer.pt"), "other moments");
  job_run(j);
  assert_int_equal(j->status, ERR_RETIRED);
  assert_int_equal(runlog_view(log)->commit_count, 0);
  world_must_be_clean(w);
  job_free(j);
  world_free(w);
}

/* ---- what is not saved ---- */

static const char empty_zip[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"; /* 22 bytes */

static void a_torn_zip_stops_at_the_proof_and_nothing_is_announced(void **state) {
  world *w = world_new("file", io_system());
  runlog *log = world_log(w, "", "one");
  uint64_t next = runlog_view(log)->next;
  char torn[40] = "PK\3\4\24";
  write_bytes(tmpdir_path(w->root, "model.pt"), torn, sizeof torn);
  job *j = job_for(w, log, "model.pt", MATCH_FILE, 1, WITH_PROVE | WITH_SNAPSHOT);
  job_run(j);
  assert_int_equal(j->status, ERR_RETIRED);
  assert_int_equal(j->outcome, JOB_UNPROVEN);
  assert_int_equal(runlog_refresh(log, NULL), 0);
  assert_int_equal(runlog_view(log)->next, next);
  world_must_be_clean(w);
  job_free(j);
  write_bytes(tmpdir_path(w->root, "model.pt"), empty_zip, sizeof empty_zip);
  j = job_for(w, log, "model.pt", MATCH_FILE, 1, WITH_PROVE);
  job_run(j);
  if (j->status != 0) fail_msg("%s", j->error.text);
  job_free(j);
  world_free(w);
}

static void a_plan_that_does_not_fit_is_not_begun(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    world *w = world_new(world_schemes[s], io_system());
    runlog *log = world_log(w, "", "one");
    uint64_t next = runlog_view(log)->next;
    make_unit(w, "model.pt", MATCH_FILE, 1);
    for (int round = 0; round < 3; round++) {
      job *j = job_for(w, log, "model.pt", MATCH_FILE, 1, 0);
      plan other = {.count = 5,
                    .ops = {PLAN_ATTEMPT, PLAN_UPLOAD, PLAN_MANIFEST, PLAN_PUBLISH, PLAN_COMMIT}};
      if (s == 0) other.count = 4, other.ops[3] = PLAN_COMMIT;
      if (round == 0) j->plan.count = 0;              /* nothing to do is no commit */
      if (round == 1) j->plan.ops[0] = PLAN_MANIFEST; /* out of order */
      if (round == 2) {                               /* for the other store */
        memcpy(j->plan.ops, other.ops, sizeof other.ops);
        j->plan.count = other.count;
      }
      job_run(j);
      assert_int_equal(j->status, ERR_INVAL);
      assert_non_null(strstr(j->error.text, "model.pt"));
      job_free(j);
    }
    assert_int_equal(runlog_refresh(log, NULL), 0);
    assert_int_equal(runlog_view(log)->next, next);
    world_free(w);
  }
}

/* ---- units that change ---- */

static world *now;

static void rewrite_it(void *ctx) {
  write_pattern(tmpdir_path(now->root, "checkpoint-1/model.bin"), 70001, 99);
}
static void grow_it(void *ctx) {
  FILE *f = fopen(tmpdir_path(now->root, "checkpoint-1/model.bin"), "a");
  assert_non_null(f);
  fputs("more", f);
  fclose(f);
}
static void add_to_it(void *ctx) {
  write_file(tmpdir_path(now->root, "checkpoint-1/sub/late"), "x");
}
static void take_from_it(void *ctx) {
  unlink(tmpdir_path(now->root, "checkpoint-1/empty"));
}
static void remove_it(void *ctx) {
  remove_unit(now, "checkpoint-1", MATCH_DIR);
}
static void exchange_it(void *ctx) {
  make_unit(now, "checkpoint-1", MATCH_DIR, 77);
}
static void make_it_a_file(void *ctx) {
  remove_it(ctx);
  write_file(tmpdir_path(now->root, "checkpoint-1"), "x");
}
static void make_it_a_pipe(void *ctx) {
  unlink(tmpdir_path(now->root, "checkpoint-1/model.bin"));
  assert_int_equal(mkfifo(tmpdir_path(now->root, "checkpoint-1/model.bin"), 0600), 0);
}
static void make_it_a_link(void *ctx) {
  rename(tmpdir_path(now->root, "checkpoint-1/model.bin"), tmpdir_path(now->root, "elsewhere"));
  assert_int_equal(symlink("../elsewhere", tmpdir_path(now->root, "checkpoint-1/model.bin")), 0);
}

static void (*const changes[])(void *) = {rewrite_it,     grow_it,        add_to_it,
                                          take_from_it,   remove_it,      exchange_it,
                                          make_it_a_file, make_it_a_pipe, make_it_a_link};
enum { CHANGES = sizeof changes / sizeof changes[0] };

/* `where` the unit is opened for the nth time. */
static void change_it(const char *scheme, int with, const char *where, long nth,
                      void (*change)(void *), bool prove) {
  world *w = now = world_new(scheme, world_io());
  runlog *log = world_log(w, "", "one");
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  w->env.io = hooked_io(world_io(), where, nth, change, NULL);
  job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, with | (prove ? WITH_PROVE : 0));
  job_run(j);
  assert_true(hook_ran());
  if (j->status != ERR_RETIRED)
    fail_msg("%s: %s", err_name(j->status), j->status ? j->error.text : "it was committed");
  assert_int_equal(j->error.code, ERR_RETIRED);
  assert_int_equal(j->outcome, JOB_RETIRED);
  assert_int_equal(runlog_view(log)->commit_count, 0);
  const runlog_state *st = runlog_view(log);
  if (st->attempt_count) assert_int_equal(st->attempts[0].fate, RUNLOG_SWEPT);
  world_must_be_clean(w);
  job_free(j);
  world_free(w);
}

static void a_unit_that_changes_while_it_is_sent_is_retired_without_a_trace(void **state) {
  for (int s = 0; s < SCHEMES; s++)
    for (int c = 0; c < CHANGES; c++) {
      change_it(world_schemes[s], 0, "checkpoint-1/model.bin", 1, changes[c], false);
      change_it(world_schemes[s], 0, "checkpoint-1/sub/shard\xff", 1, changes[c], false);
    }
}

static void
a_unit_that_changes_while_its_snapshot_is_taken_is_retired_without_a_trace(void **state) {
  for (int c = 0; c < CHANGES; c++) {
    change_it("file", WITH_SNAPSHOT, "watched/checkpoint-1/model.bin", 1, changes[c], false);
    change_it("mem", WITH_SNAPSHOT, "watched/checkpoint-1/sub/shard\xff", 1, changes[c], false);
  }
}

static void a_unit_that_is_not_there_is_retired_and_nothing_is_announced(void **state) {
  static const match_kind kinds[] = {MATCH_DIR, MATCH_FILE, MATCH_GROUP};
  world *w = world_new("file", io_system());
  runlog *log = world_log(w, "", "one");
  for (int k = 0; k < 3; k++) {
    job *j = job_for(w, log, "none", kinds[k], 1, 0);
    job_run(j);
    assert_int_equal(j->status, ERR_RETIRED);
    job_free(j);
  }
  assert_int_equal(runlog_view(log)->attempt_count, 0);
  world_must_be_clean(w);
  world_free(w);
}

static void keep_a_copy_and_rewrite(void *ctx) {
  err e = {0};
  if (fs_copy_tree(io_system(), tmpdir_path(now->root, "checkpoint-1"),
                   tmpdir_path(now->dir, "before"), false, NULL, &e) < 0)
    fail_msg("%s", e.text);
  remove_it(NULL);
}

static void the_original_of_a_snapshot_may_be_rewritten_while_it_is_sent(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    world *w = now = world_new(world_schemes[s], world_io());
    runlog *log = world_log(w, "", "one");
    make_unit(w, "checkpoint-1", MATCH_DIR, 1);
    job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, WITH_SNAPSHOT);
    /* The snapshot is read through the staging of this machine: after it was taken and listed. */
    char copy[100];
    snprintf(copy, sizeof copy, "staging/%llu/checkpoint-1/empty", (unsigned long long)j->id);
    w->env.io = hooked_io(io_system(), copy, 2, keep_a_copy_and_rewrite, NULL);
    job_run(j);
    assert_true(hook_ran());
    if (j->status != 0) fail_msg("%s", j->error.text);
    assert_false(path_exists(tmpdir_path(w->root, "checkpoint-1")));
    rename(tmpdir_path(w->dir, "before"), tmpdir_path(w->root, "checkpoint-1"));
    must_restore(w, "", &runlog_view(log)->commits[0], "checkpoint-1");
    world_must_be_clean(w);
    job_free(j);
    world_free(w);
  }
}

static int64_t slow_now(const io *io, io_clock clock) {
  return io_system()->now(io_system(), clock) - 3600 * (int64_t)1000000000;
}

/* Changes a byte in the middle, and puts all times back: only reading twice can tell. ctime cannot
 * be put back, so the tree is looked at through an io that hides it. */
static struct timespec kept;
static int same_ctime(const io *io, int dirfd, const char *path, struct stat *out) {
  int rc = io_system()->lstat(io, dirfd, path, out);
  if (rc == 0) out->st_ctim = (struct timespec){2000000000, 1};
  return rc;
}
static int same_fctime(const io *io, int fd, struct stat *out) {
  int rc = io_system()->fstat(io, fd, out);
  if (rc == 0) out->st_ctim = (struct timespec){2000000000, 1};
  return rc;
}
static void flip_a_byte(void *ctx) {
  const char *path = tmpdir_path(now->root, "last.ckpt");
  FILE *f = fopen(path, "r+");
  assert_non_null(f);
  fseek(f, 100, SEEK_SET);
  fputc('!', f);
  fclose(f);
  struct timespec when[2] = {kept, kept};
  utimensat(AT_FDCWD, path, when, 0);
}

static void where_times_prove_nothing_the_content_is_read_twice(void **state) {
  for (int i = 0; i < 2; i++) {
    io blind = *world_io();
    blind.lstat = same_ctime;
    blind.fstat = same_fctime;
    blind.now = slow_now;
    world *w = now = world_new("mem", io_system());
    runlog *log = world_log(w, "", "one");
    make_unit(w, "last.ckpt", MATCH_FILE, 1);
    struct stat st;
    assert_int_equal(stat(tmpdir_path(w->root, "last.ckpt"), &st), 0);
    kept = st.st_mtim;
    w->env.io = hooked_io(&blind, "watched/last.ckpt", 2, flip_a_byte, NULL);
    job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, i ? WITH_SNAPSHOT : 0);
    job_run(j);
    assert_true(hook_ran());
    if (j->status != ERR_RETIRED) fail_msg("%s: %s", err_name(j->status), j->error.text);
    job_free(j);
    /* And without a change it is saved. */
    w->env.io = &blind;
    j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, i ? WITH_SNAPSHOT : 0);
    job_run(j);
    if (j->status != 0) fail_msg("%s", j->error.text);
    world_must_be_clean(w);
    job_free(j);
    world_free(w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_saved_unit_of_each_kind_is_restored_byte_for_byte),
      cmocka_unit_test(a_snapshot_of_each_kind_is_restored_byte_for_byte),
      cmocka_unit_test(a_name_that_is_saved_again_and_again_keeps_its_generations),
      cmocka_unit_test(what_is_excluded_is_not_saved_and_does_not_stop_a_snapshot),
      cmocka_unit_test(one_is_saved_without_what_it_is_told_and_the_manifest_tells_by_what),
      cmocka_unit_test(what_goes_while_it_is_listed_is_not_taken_for_left_out),
      cmocka_unit_test(
          one_of_which_nothing_would_be_left_is_saved_whole_and_one_that_has_no_such_file_is_whole),
      cmocka_unit_test(one_is_the_one_that_was_decided_about_by_all_of_its_files),
      cmocka_unit_test(a_torn_zip_stops_at_the_proof_and_nothing_is_announced),
      cmocka_unit_test(a_plan_that_does_not_fit_is_not_begun),
      cmocka_unit_test(a_unit_that_changes_while_it_is_sent_is_retired_without_a_trace),
      cmocka_unit_test(a_unit_that_changes_while_its_snapshot_is_taken_is_retired_without_a_trace),
      cmocka_unit_test(a_unit_that_is_not_there_is_retired_and_nothing_is_announced),
      cmocka_unit_test(the_original_of_a_snapshot_may_be_rewritten_while_it_is_sent),
      cmocka_unit_test(where_times_prove_nothing_the_content_is_read_twice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
