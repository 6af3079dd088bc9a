#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "job/save/job.h"
#include "commit/manifest_read.h"
#include "commit/settle.h"
#include "io_fault.h"
#include "log_check.h"
#include "prims/fs.h"
#include "store_failing.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

enum { SCHEMES = 2 };

static void must_be_clean(const world *w) {
  store *s = world_store(w);
  const char *litter = store_litter(s, "");
  if (litter) fail_msg("in the store: %s", litter);
  const char *broken = s->ops->exists(s, NULL) == 0 ? log_check(s, "", &(size_t){0}) : NULL;
  if (broken) fail_msg("the log: %s", broken);
  if (count_entries(w->staging)) fail_msg("the local staging is not empty");
  store_close(s);
}

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
  must_be_clean(w);
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
    must_be_clean(w);
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
    must_be_clean(w);
    job_free(j);
    world_free(w);
  }
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
  assert_true(j->unproven);
  assert_int_equal(runlog_refresh(log, NULL), 0);
  assert_int_equal(runlog_view(log)->next, next);
  must_be_clean(w);
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
  assert_false(j->unproven);
  assert_int_equal(runlog_view(log)->commit_count, 0);
  const runlog_state *st = runlog_view(log);
  if (st->attempt_count) assert_int_equal(st->attempts[0].fate, RUNLOG_SWEPT);
  must_be_clean(w);
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
  must_be_clean(w);
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
    must_be_clean(w);
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
    must_be_clean(w);
    job_free(j);
    world_free(w);
  }
}

/* ---- cancelled, fenced ---- */

static void cancel_it(void *ctx) {
  atomic_store(&((job *)ctx)->cancel, 1);
}

static void a_job_can_be_cancelled_at_any_point_and_leaves_nothing(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    int canceled = 0;
    for (long nth = 1;; nth++) {
      world *w = now = world_new(world_schemes[s], world_io());
      runlog *log = world_log(w, "", "one");
      make_unit(w, "checkpoint-1", MATCH_DIR, 1);
      job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, WITH_SNAPSHOT);
      w->env.io = hooked_io(world_io(), NULL, nth, cancel_it, j);
      w->env.store->io = w->env.io;
      job_run(j);
      bool ran = hook_ran();
      if (j->status == 0)
        must_restore(w, "", &runlog_view(log)->commits[0], "checkpoint-1");
      else
        assert_int_equal(j->status, ERR_CANCELED);
      canceled += j->status != 0;
      assert_int_equal(runlog_view(log)->commit_count, j->status == 0);
      must_be_clean(w);
      w->env.store->io = world_io();
      job_free(j);
      world_free(w);
      if (!ran) break;
    }
    assert_true(canceled > 10);
  }
}

static void another_term_begins(void *ctx) {
  store *s = world_store(ctx);
  runlog_close(world_begin(s, "", "two"));
  store_close(s);
}

/* The zombie made nothing in the log after the newer term, and its files were not touched. */
static void a_job_that_is_fenced_neither_sweeps_nor_commits(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    int fenced = 0;
    for (long nth = 1;; nth++) {
      world *w = now = world_new(world_schemes[s], world_io());
      runlog *log = world_log(w, "", "one");
      make_unit(w, "last.ckpt", MATCH_FILE, 1);
      job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
      w->env.io = hooked_io(world_io(), NULL, nth, another_term_begins, w);
      w->env.store->io = w->env.io;
      job_run(j);
      bool ran = hook_ran();
      w->env.store->io = world_io();
      store *other = world_store(w);
      runlog *seen = NULL;
      assert_int_equal(runlog_open(other, "", &seen, NULL), 0);
      const runlog_state *st = runlog_view(seen);
      if (j->status == ERR_FENCED) {
        fenced++;
        assert_int_equal(st->commit_count, 0);
        if (st->attempt_count) assert_int_equal(st->attempts[0].fate, RUNLOG_OPEN);
      } else {
        assert_int_equal(j->status, 0);
        must_restore(w, "", &st->commits[0], "last.ckpt");
      }
      runlog_close(seen);
      /* The next term has one whole checkpoint, or none, and no litter. */
      runlog *next = world_begin(other, "", "three");
      assert_int_equal(settle_attempts(other, next, NULL, NULL), 0);
      settle_older(other, next, NULL);
      settle_staged(other, next, 0, NULL);
      if (runlog_view(next)->commit_count)
        must_restore(w, "", &runlog_view(next)->commits[0], "last.ckpt");
      runlog_close(next);
      store_close(other);
      must_be_clean(w);
      job_free(j);
      world_free(w);
      if (!ran) break;
    }
    assert_true(s == 1 || fenced > 10);
  }
}

static void begin_and_remove(void *ctx) {
  another_term_begins(ctx);
  remove_unit(ctx, "last.ckpt", MATCH_FILE);
}

static void a_failed_job_that_finds_a_newer_term_says_so(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    world *w = world_new(world_schemes[s], world_io());
    runlog *log = world_log(w, "", "one");
    make_unit(w, "last.ckpt", MATCH_FILE, 1);
    job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
    w->env.io = hooked_io(world_io(), "watched/last.ckpt", 1, begin_and_remove, w);
    job_run(j);
    assert_int_equal(j->status, ERR_FENCED);
    assert_int_equal(j->error.code, ERR_FENCED);
    if (s == 1) assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_OPEN);
    if (s == 0) assert_int_equal(runlog_view(log)->attempt_count, 0);
    job_free(j);
    world_free(w);
  }
}

/* ---- calls that fail ---- */

/* After a job that may have failed: what it says is so, and a next term saves the unit, with what
 * is there of it or without, and leaves nothing but whole checkpoints. */
static void judge(world *w, const job *j, int fds) {
  store *s = world_store(w);
  runlog *log = world_begin(s, "", "next");
  const runlog_state *st = runlog_view(log);
  size_t before = st->commit_count;
  /* A snapshot that cannot be removed is removed when the next run opens its state. */
  tmpdir_remove(strdup(w->staging));
  make_dir(w->staging);
  if (j->status == 0) assert_int_equal(before, 1);
  if (j->status != 0) assert_int_equal(j->error.code, j->status);
  err e = {0};
  if (settle_attempts(s, log, NULL, &e) < 0) fail_msg("%s", e.text);
  st = runlog_view(log);
  /* What the job did not call committed may be found sealed, and is then committed once. */
  assert_true(st->commit_count <= 1);
  if (st->commit_count) must_restore(w, "", &st->commits[0], j->plan.unit);
  store *before_it = w->env.store;
  w->env.store = s;
  save_unit(w, log, j->plan.unit, j->plan.kind, j->plan.step);
  w->env.store = before_it;
  must_restore(w, "", runlog_newest(st, NULL), j->plan.unit);
  runlog_close(log);
  const char *litter = store_litter(s, "");
  if (litter) fail_msg("in the store: %s", litter);
  store_close(s);
  assert_int_equal(count_fds(), fds);
}

static void fail_at(const char *scheme, int with, io_fault_plan how) {
  io_fault *fault = io_fault_new(world_io());
  int failed = 0, reported = 0;
  for (how.nth = 1;; how.nth++) {
    int before = count_fds();
    world *w = world_new(scheme, io_fault_io(fault));
    io_fault_set(fault, (io_fault_plan){0});
    int fds = count_fds();
    runlog *log = world_log(w, "", "one");
    make_unit(w, "last.ckpt", MATCH_FILE, 1);
    job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, with);
    io_fault_set(fault, how);
    job_run(j);
    failed = io_fault_failed(fault, CALL_ANY) > 0;
    io_fault_set(fault, (io_fault_plan){0});
    reported += j->status != 0;
    uint64_t committed = 0;
    if (runlog_refresh(log, NULL) == 0) committed = runlog_view(log)->commit_count;
    if (j->status == 0) assert_int_equal(committed, 1);
    /* A lost answer of everything is the one case in which the job cannot know. */
    if (j->status != 0 && !how.done && !how.for_good) assert_int_equal(committed, 0);
    judge(w, j, fds);
    job_free(j);
    world_free(w);
    assert_int_equal(count_fds(), before);
    if (!failed) break;
  }
  assert_true(how.nth > 20);
  assert_true(reported > 10);
  io_fault_free(fault);
}

static void any_failing_call_gives_a_commit_or_an_error_without_one(void **state) {
  static const io_fault_plan plans[] = {
      {.errnum = EIO},
      {.errnum = ENOSPC, .for_good = true},
      {.errnum = EIO, .done = true},
      {.errnum = EIO, .done = true, .for_good = true},
  };
  for (int p = 0; p < 3; p++) fail_at("file", 0, plans[p]);
  for (int p = 1; p < 4; p++) fail_at("mem", WITH_SNAPSHOT, plans[p]);
}

static void a_lost_answer_of_the_store_never_makes_two_commits(void **state) {
  for (int never = 0; never < 2; never++)
    for (long nth = 1;; nth++) {
      world *w = world_new("mem", world_io());
      store_lossy *lossy = world_lossy(w, true);
      runlog *log = world_log(w, "", "one");
      make_unit(w, "last.ckpt", MATCH_FILE, 1);
      job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
      long from = lossy->puts;
      if (never)
        lossy->never_at = from + nth;
      else
        lossy->lost_at = from + nth;
      job_run(j);
      bool all = lossy->puts < from + nth;
      lossy->never_at = lossy->lost_at = 0;
      assert_int_equal(runlog_refresh(log, NULL), 0);
      assert_int_equal(runlog_view(log)->commit_count, j->status == 0);
      judge(w, j, count_fds());
      job_free(j);
      world_free(w);
      if (all) break;
    }
}

/* The third put of a save on this store is its commit, and it is made; the store is silent then
 * until the job has given up asking, and sweeps. */
static long commit_put;
static void be_silent_a_while(void *ctx) {
  store_lossy *lossy = ctx;
  long tries = lossy->puts - commit_put;
  lossy->deaf = tries >= 0 && tries < 3 ? 1000 : 0;
}

static void a_commit_whose_answer_stays_lost_is_found_in_the_log(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, true);
  runlog *log = world_log(w, "", "one");
  make_unit(w, "last.ckpt", MATCH_FILE, 1);
  job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
  commit_put = lossy->lost_at = lossy->puts + 3;
  lossy->between = be_silent_a_while;
  lossy->ctx = lossy;
  job_run(j);
  assert_true(lossy->puts > commit_put + 2);
  lossy->between = NULL;
  if (j->status != 0) fail_msg("%s", j->error.text);
  assert_int_equal(j->error.code, 0);
  assert_int_equal(j->commit.n, 3); /* after run, term, attempt */
  job_free(j);
  must_be_clean(w);
}

static void a_save_that_could_not_even_be_swept_is_swept_by_the_next_job(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, true);
  runlog *log = world_log(w, "", "one");
  make_unit(w, "last.ckpt", MATCH_FILE, 1);
  job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
  lossy->never_at = lossy->puts + 2; /* the manifest, and all after it */
  job_run(j);
  assert_int_equal(j->status, ERR_IO);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_OPEN);
  job_free(j);
  lossy->never_at = 0;
  save_unit(w, log, "last.ckpt", MATCH_FILE, 1);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_SWEPT);
  must_restore(w, "", &runlog_view(log)->commits[0], "last.ckpt");
  must_be_clean(w);
}

/* ---- going on ---- */

/* A save of checkpoint-1 on a store that loses things; its second try. */
typedef struct tries {
  world *w;
  store_lossy *lossy;
  runlog *log;
  job *first, *second;
} tries;

/* The puts of a save: the attempt, the manifest, the commit. */
static tries first_try(long lost, long never) {
  tries t = {.w = world_new("mem", world_io())};
  t.lossy = world_lossy(t.w, true);
  t.log = world_begin(t.w->env.store, "", "one");
  make_unit(t.w, "checkpoint-1", MATCH_DIR, 1);
  t.first = job_for(t.w, t.log, "checkpoint-1", MATCH_DIR, 1, 0);
  t.first->keep = true;
  t.lossy->lost_at = lost ? t.lossy->puts + lost : 0;
  t.lossy->never_at = never ? t.lossy->puts + never : 0;
  job_run(t.first);
  assert_int_equal(t.first->status, ERR_IO);
  assert_int_equal(t.first->attempt, runlog_view(t.log)->attempts[0].n);
  assert_int_equal(runlog_view(t.log)->attempts[0].fate, RUNLOG_OPEN);
  t.lossy->lost_at = t.lossy->never_at = 0;
  return t;
}

/* `theirs`: what somebody else has put there, which stays; may be NULL. */
static void second_try_beside(tries *t, const char *theirs) {
  t->second = job_for(t->w, t->log, "checkpoint-1", MATCH_DIR, 1, 0);
  t->second->keep = true;
  t->second->attempt = t->first->attempt;
  t->second->attempt_shape = t->first->attempt_shape;
  job_run(t->second);
  if (t->second->status != 0) fail_msg("%s", t->second->error.text);
  assert_int_equal(t->second->attempt, 0);
  assert_int_equal(runlog_view(t->log)->commit_count, 1);
  assert_int_equal(t->second->commit.n, runlog_view(t->log)->commits[0].n);
  must_restore(t->w, "", &runlog_view(t->log)->commits[0], "checkpoint-1");
  if (theirs) {
    assert_true(store_holds(t->w->place.s, theirs));
    assert_int_equal(t->w->place.s->ops->remove(t->w->place.s, theirs, NULL), 0);
  }
  must_be_clean(t->w);
}

static void second_try(tries *t) {
  second_try_beside(t, NULL);
}

static void tries_free(tries *t) {
  job_free(t->first);
  job_free(t->second);
  runlog_close(t->log);
  world_free(t->w);
}

static void the_next_try_goes_on_with_the_same_attempt(void **state) {
  tries t = first_try(0, 2);
  second_try(&t);
  assert_int_equal(runlog_view(t.log)->attempt_count, 1);
  tries_free(&t);
}

static void a_manifest_that_was_put_already_is_taken(void **state) {
  tries t = first_try(2, 3);
  assert_true(store_holds(t.w->place.s, "checkpoint-1/" MANIFEST_NAME));
  second_try(&t);
  assert_int_equal(runlog_view(t.log)->attempt_count, 1);
  tries_free(&t);
}

static void another_manifest_gives_the_attempt_up(void **state) {
  tries t = first_try(0, 2);
  store *s = t.w->place.s;
  assert_int_equal(store_put_text(s, "checkpoint-1/" MANIFEST_NAME, "{}", STORE_IF_ABSENT), 0);
  second_try_beside(&t, "checkpoint-1/" MANIFEST_NAME);
  assert_int_equal(runlog_view(t.log)->attempt_count, 2);
  tries_free(&t);
}

static void other_bytes_at_a_key_give_the_attempt_up(void **state) {
  tries t = first_try(0, 2);
  store *s = t.w->place.s;
  assert_int_equal(store_put_text(s, "checkpoint-1/model.bin", "other", STORE_REPLACE), 0);
  second_try_beside(&t, "checkpoint-1/model.bin");
  const runlog_state *st = runlog_view(t.log);
  assert_int_equal(st->attempt_count, 2);
  assert_int_equal(st->attempts[0].fate, RUNLOG_SWEPT);
  assert_true(strcmp(st->commits[0].dir, "checkpoint-1") != 0);
  tries_free(&t);
}

static void other_files_than_the_first_try_had_begin_a_new_attempt(void **state) {
  tries t = first_try(0, 2);
  make_unit(t.w, "checkpoint-1", MATCH_DIR, 2);
  unlink(tmpdir_path(t.w->root, "checkpoint-1/empty"));
  second_try(&t);
  assert_int_equal(runlog_view(t.log)->attempts[0].fate, RUNLOG_SWEPT);
  tries_free(&t);
}

static void a_file_that_was_renamed_between_leaves_nothing_of_its_old_name(void **state) {
  char from[512];
  tries t = first_try(0, 2);
  assert_true(store_holds(t.w->place.s, "checkpoint-1/model.bin"));
  snprintf(from, sizeof from, "%s", tmpdir_path(t.w->root, "checkpoint-1/model.bin"));
  assert_int_equal(rename(from, tmpdir_path(t.w->root, "checkpoint-1/pytorch.bin")), 0);
  second_try(&t);
  const runlog_state *st = runlog_view(t.log);
  char key[512];
  snprintf(key, sizeof key, "%s/model.bin", st->commits[0].dir);
  assert_false(store_holds(t.w->place.s, key));
  tries_free(&t);
}

static ino_t inode_of(const char *path);

/* Everything but the commit was done: the next try takes it as it stands. */
static void what_is_shown_already_is_committed_by_the_next_try(void **state) {
  int shown = 0;
  for (long nth = 1, more = 1; more; nth++) {
    tries t = {.w = world_new("file", world_io())};
    store_failing *failing = store_failing_new(t.w->place.s);
    t.w->env.store = store_failing_store(failing);
    t.log = world_begin(t.w->env.store, "", "one");
    make_unit(t.w, "checkpoint-1", MATCH_DIR, 1);
    t.first = job_for(t.w, t.log, "checkpoint-1", MATCH_DIR, 1, 0);
    t.first->keep = true;
    store_failing_set(failing, (store_failing_plan){.nth = nth, .code = ERR_IO, .for_good = true});
    job_run(t.first);
    more = store_failing_failed(failing);
    store_failing_set(failing, (store_failing_plan){0});
    bool there = store_holds(t.w->place.s, "checkpoint-1/" MANIFEST_NAME);
    if (more && there && t.first->attempt) {
      shown++;
      ino_t before = inode_of(tmpdir_path(t.w->place.dir, "checkpoint-1/model.bin"));
      second_try(&t);
      assert_int_equal(runlog_view(t.log)->attempt_count, 1);
      assert_true(before == inode_of(tmpdir_path(t.w->place.dir, "checkpoint-1/model.bin")));
    }
    job_free(t.first);
    if (t.second) job_free(t.second);
    runlog_close(t.log);
    store_failing_free(failing);
    world_free(t.w);
  }
  assert_true(shown > 0);
}

static void be_silent_from_the_commit_on(void *ctx) {
  store_lossy *lossy = ctx;
  lossy->deaf = commit_put && lossy->puts >= commit_put ? 1000 : 0;
}

static void a_commit_that_only_the_next_try_can_see_is_made_once(void **state) {
  world *w = world_new("mem", world_io());
  store_lossy *lossy = world_lossy(w, true);
  tries t = {.w = w, .lossy = lossy, .log = world_begin(w->env.store, "", "one")};
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  t.first = job_for(w, t.log, "checkpoint-1", MATCH_DIR, 1, 0);
  t.first->keep = true;
  commit_put = lossy->lost_at = lossy->puts + 3;
  lossy->between = be_silent_from_the_commit_on;
  lossy->ctx = lossy;
  job_run(t.first);
  assert_int_equal(t.first->status, ERR_IO);
  assert_true(t.first->attempt > 0);
  commit_put = lossy->lost_at = 0;
  lossy->between = NULL;
  lossy->deaf = 0;
  second_try(&t);
  assert_int_equal(runlog_view(t.log)->attempt_count, 1);
  tries_free(&t);
}

static void leave_it(void *ctx) {
  atomic_store(&((job *)ctx)->cancel, JOB_LEAVE);
}

/* A save of checkpoint-1 whose writer stops at the nth file that it opens, and is not seen again.
 * False: there is no such file. */
static bool begin_and_die(world *w, long nth) {
  runlog *log = world_begin(w->env.store, "", "one");
  job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, 0);
  w->env.io = hooked_io(world_io(), "watched/checkpoint-1/", nth, leave_it, j);
  job_run(j);
  w->env.io = world_io();
  bool ran = hook_ran();
  if (ran) assert_int_equal(j->status, ERR_CANCELED);
  bool ahead = store_can(w->env.store, STORE_CAP_PUBLISH);
  if (ran && ahead) assert_int_equal(runlog_view(log)->attempt_count, 0);
  if (ran && !ahead) assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_OPEN);
  job_free(j);
  runlog_close(log);
  return ran;
}

/* The first file of the store whose key has both of these in it; "": there is none. */
typedef struct seeker {
  const char *place, *name;
  char key[STORE_KEY_MAX + 1];
} seeker;

static int seek(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  seeker *k = ctx;
  if (strncmp(key, k->place, strlen(k->place)) != 0 || !strstr(key, k->name)) return 0;
  snprintf(k->key, sizeof k->key, "%s", key);
  return 1;
}

static const char *staged_file(store *s, const char *name) {
  static seeker found;
  found = (seeker){.place = ".ckpt/staging/", .name = name};
  assert_true(s->ops->list(s, "", false, seek, &found, NULL) >= 0);
  return found.key;
}

/* What the next run does there: its log. */
static runlog *next_run(world *w) {
  runlog *log = world_begin(w->env.store, "", "two");
  err e = {0};
  if (settle_attempts(w->env.store, log, NULL, &e) < 0) fail_msg("%s", e.text);
  save_unit(w, log, "checkpoint-1", MATCH_DIR, 1);
  must_restore(w, "", runlog_newest(runlog_view(log), NULL), "checkpoint-1");
  must_be_clean(w);
  return log;
}

static ino_t inode_of(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 ? st.st_ino : 0;
}

/* Each point once. How often a file was whole before, and was kept: at a directory it is seen by
 * the file, which keeps its inode. */
static long kept_at_each_point(int scheme) {
  long nth = 1, kept = 0;
  for (bool ran = true; ran; nth++) {
    world *w = world_new(world_schemes[scheme], world_io());
    char sent[4096], published[4096];
    make_unit(w, "checkpoint-1", MATCH_DIR, 1);
    ran = begin_and_die(w, nth);
    snprintf(sent, sizeof sent, "%s/root/%s", w->place.dir,
             staged_file(w->env.store, "/model.bin"));
    snprintf(published, sizeof published, "%s/root/checkpoint-1/model.bin", w->place.dir);
    ino_t before = scheme == 0 && *staged_file(w->env.store, "/model.bin") ? inode_of(sent) : 0;
    runlog *log = next_run(w);
    if (ran) assert_int_equal(runlog_view(log)->attempt_count, 1);
    if (ran && before) assert_true(inode_of(published) == before);
    kept += ran && before;
    runlog_close(log);
    world_free(w);
  }
  assert_true(nth > 3);
  return kept;
}

/* Files are sent side by side: where one is slow, none is whole at any point of a round. */
static void the_next_run_goes_on_with_what_a_dead_one_sent(void **state) {
  long kept = 0;
  for (int round = 0; round < 20 && kept == 0; round++) kept = kept_at_each_point(0);
  assert_true(kept > 0);
  for (int s = 1; s < SCHEMES; s++) kept_at_each_point(s);
}

static void change_a_byte(const world *w, const char *name) {
  size_t len;
  struct stat st;
  const char *path = tmpdir_path(w->root, name);
  assert_int_equal(lstat(path, &st), 0);
  char *data = read_file(path, &len);
  data[len / 2] ^= 1;
  write_bytes(path, data, len);
  struct timespec when[2] = {st.st_mtim, st.st_mtim};
  assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
  free(data);
}

static void change_the_unit(const world *w, unsigned how) {
  char from[4096];
  switch (how) {
  case 0: change_a_byte(w, "checkpoint-1/model.bin"); break;
  case 1: change_a_byte(w, "checkpoint-1/sub/shard\xff"); break;
  case 2: make_unit(w, "checkpoint-1", MATCH_DIR, 2); break;
  case 3: unlink(tmpdir_path(w->root, "checkpoint-1/empty")); break;
  case 4:
    snprintf(from, sizeof from, "%s", tmpdir_path(w->root, "checkpoint-1/model.bin"));
    assert_int_equal(rename(from, tmpdir_path(w->root, "checkpoint-1/other.bin")), 0);
    break;
  case 5: write_bytes(tmpdir_path(w->root, "checkpoint-1/onemore"), "x", 1); break;
  default: break;
  }
}

/* Names in the store below a directory, its manifest left out. */
static int count_objects(store *s, const char *dir) {
  char *names = store_listing(s, dir, false);
  int count = 0;
  for (const char *at = names; at; at = strchr(at + 1, ' ')) count++;
  free(names);
  return count - 1;
}

/* However much of it arrived, and whatever became of the unit since. */
static void what_changed_since_is_committed_as_it_is_now(void **state) {
  int anew = 0;
  for (int s = 0; s < SCHEMES; s++)
    for (unsigned how = 0; how < 7; how++)
      for (long nth = 1; nth < 8; nth++) {
        world *w = world_new(world_schemes[s], world_io());
        make_unit(w, "checkpoint-1", MATCH_DIR, 1);
        bool died = begin_and_die(w, nth);
        change_the_unit(w, how);
        runlog *log = next_run(w);
        const runlog_state *st = runlog_view(log);
        const runlog_commit *c = runlog_newest(st, NULL);
        assert_int_equal(count_objects(w->env.store, c->dir), c->files);
        anew += st->attempt_count > 1;
        if (s == 0 && died) assert_int_equal(st->attempt_count, 1); /* nothing was announced */
        runlog_close(log);
        world_free(w);
      }
  assert_true(anew > 5);
}

static void of_several_that_were_left_the_newest_is_gone_on_with(void **state) {
  world *w = *state;
  store *s = w->env.store;
  uint64_t n[4];
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  for (int i = 0; i < 4; i++) {
    runlog *log = world_begin(s, "", "old");
    assert_int_equal(
        runlog_attempt_begin(log, i == 3 ? "checkpoint-2" : "checkpoint-1", &n[i], NULL), 0);
    runlog_close(log);
  }
  runlog *log = next_run(w);
  const runlog_state *st = runlog_view(log);
  assert_int_equal(st->attempt_count, 4);
  assert_int_equal(st->commits[0].attempt, n[2]);
  /* The others are nobody's after the first commit. */
  for (int i = 0; i < 4; i++)
    assert_int_equal(runlog_find_attempt(st, n[i])->fate, i == 2 ? RUNLOG_COMMITTED : RUNLOG_SWEPT);
  runlog_close(log);
}

/* The user's word stands for the arbitration: it says nothing about a writer that was paused. */
static void where_writers_are_not_arbitrated_between_nothing_is_adopted(void **state) {
  world *w = *state;
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  begin_and_die(w, 2);
  w->env.store->single_writer = true;
  runlog *log = next_run(w);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_SWEPT);
  assert_int_equal(runlog_view(log)->attempt_count, 2);
  runlog_close(log);
}

static void go_on_elsewhere(void *ctx) {
  world *w = ctx;
  const io *before = w->env.io;
  w->env.io = world_io();
  runlog_close(next_run(w));
  w->env.io = before;
}

/* The first writer was only paused: it comes back while the second one sends, and after it. */
static void one_that_was_paused_harms_nothing_of_who_went_on(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    make_unit(w, "checkpoint-1", MATCH_DIR, 1);
    runlog *old = world_log(w, "", "one");
    job *first = job_for(w, old, "checkpoint-1", MATCH_DIR, 1, 0);
    w->env.io = hooked_io(world_io(), "watched/checkpoint-1/sub", 1, go_on_elsewhere, w);
    job_run(first);
    assert_true(hook_ran());
    w->env.io = world_io();
    assert_int_equal(first->status, ERR_FENCED);
    runlog *log = world_log(w, "", "three");
    assert_int_equal(runlog_view(log)->commit_count, 1);
    must_restore(w, "", &runlog_view(log)->commits[0], "checkpoint-1");
    job_free(first);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_saved_unit_of_each_kind_is_restored_byte_for_byte),
      cmocka_unit_test(a_snapshot_of_each_kind_is_restored_byte_for_byte),
      cmocka_unit_test(a_name_that_is_saved_again_and_again_keeps_its_generations),
      cmocka_unit_test(what_is_excluded_is_not_saved_and_does_not_stop_a_snapshot),
      cmocka_unit_test(a_torn_zip_stops_at_the_proof_and_nothing_is_announced),
      cmocka_unit_test(a_plan_that_does_not_fit_is_not_begun),
      cmocka_unit_test(a_unit_that_changes_while_it_is_sent_is_retired_without_a_trace),
      cmocka_unit_test(a_unit_that_changes_while_its_snapshot_is_taken_is_retired_without_a_trace),
      cmocka_unit_test(a_unit_that_is_not_there_is_retired_and_nothing_is_announced),
      cmocka_unit_test(the_original_of_a_snapshot_may_be_rewritten_while_it_is_sent),
      cmocka_unit_test(where_times_prove_nothing_the_content_is_read_twice),
      cmocka_unit_test(a_job_can_be_cancelled_at_any_point_and_leaves_nothing),
      cmocka_unit_test(a_job_that_is_fenced_neither_sweeps_nor_commits),
      cmocka_unit_test(a_failed_job_that_finds_a_newer_term_says_so),
      cmocka_unit_test(any_failing_call_gives_a_commit_or_an_error_without_one),
      cmocka_unit_test(a_lost_answer_of_the_store_never_makes_two_commits),
      IN_A_MEM_WORLD(a_commit_whose_answer_stays_lost_is_found_in_the_log),
      IN_A_MEM_WORLD(a_save_that_could_not_even_be_swept_is_swept_by_the_next_job),
      cmocka_unit_test(the_next_try_goes_on_with_the_same_attempt),
      cmocka_unit_test(a_manifest_that_was_put_already_is_taken),
      cmocka_unit_test(another_manifest_gives_the_attempt_up),
      cmocka_unit_test(other_bytes_at_a_key_give_the_attempt_up),
      cmocka_unit_test(other_files_than_the_first_try_had_begin_a_new_attempt),
      cmocka_unit_test(a_file_that_was_renamed_between_leaves_nothing_of_its_old_name),
      cmocka_unit_test(what_is_shown_already_is_committed_by_the_next_try),
      cmocka_unit_test(a_commit_that_only_the_next_try_can_see_is_made_once),
      cmocka_unit_test(the_next_run_goes_on_with_what_a_dead_one_sent),
      cmocka_unit_test(what_changed_since_is_committed_as_it_is_now),
      IN_A_MEM_WORLD(of_several_that_were_left_the_newest_is_gone_on_with),
      IN_A_MEM_WORLD(where_writers_are_not_arbitrated_between_nothing_is_adopted),
      cmocka_unit_test(one_that_was_paused_harms_nothing_of_who_went_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
