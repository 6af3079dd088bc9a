/* Stores of older versions, kept in spec/data: what any 1.x wrote is read, restored, verified and
 * gone on with by every later one. `test_fixtures make DIR` writes such a store anew, with all that
 * a log can say (spec/data/format1/make.sh). The files of its checkpoints follow from their seeds,
 * so that they are compared to the last byte. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/restore/companions_restore.h"
#include "commit/companions_stored.h"
#include "commit/parts.h"
#include "commit/pins.h"
#include "job/restore/restore.h"
#include "commit/log/runlog_impl.h"
#include "job/move/transfer.h"
#include "log_check.h"
#include "log_read.h"
#include "thinned.h"
#include "tmpdir.h"
#include "world.h"

/* ---- the units, the same for ever ---- */

static void set_mtime(const char *path, long seconds) {
  struct timespec when[2] = {{seconds, 123456789}, {seconds, 123456789}};
  if (utimensat(AT_FDCWD, path, when, AT_SYMLINK_NOFOLLOW) < 0) abort();
}

static void make_file(const char *dir, const char *name, size_t size, unsigned seed) {
  write_pattern(tmpdir_path(dir, name), size, seed);
  set_mtime(tmpdir_path(dir, name), 1700000000 + (long)seed);
}

static const char note[] = "{\"note\":\"as saved\"}", later_note[] = "{\"note\":\"written later\"}";

static void fill_dir(const char *at, unsigned seed) {
  make_dir(at);
  make_dir(tmpdir_path(at, "sub"));
  make_dir(tmpdir_path(at, "sub/empty"));
  make_file(at, "model.bin", 300 + seed, seed);
  make_file(at, "sub/odd %name \xc3\xa9", 30, seed + 1);
  make_file(at, "none", 0, seed);
  if (chmod(tmpdir_path(at, "model.bin"), 0640) < 0) abort();
  write_file(tmpdir_path(at, ".metadata.json"), note);
  set_mtime(tmpdir_path(at, ".metadata.json"), 1650000000);
  if (symlink("model.bin", tmpdir_path(at, "link")) < 0) abort();
  set_mtime(tmpdir_path(at, "link"), 1600000000);
  set_mtime(tmpdir_path(at, "sub/empty"), 1500000000);
  set_mtime(tmpdir_path(at, "sub"), 1400000000);
  set_mtime(at, 1300000000 + (long)seed);
}

static void fill(const world *w, const char *path, match_kind kind, unsigned seed) {
  char at[4096], name[300];
  remove_unit(w, path, kind);
  snprintf(at, sizeof at, "%s/%s", w->root, path);
  if (kind == MATCH_DIR) fill_dir(at, seed);
  if (kind == MATCH_FILE) make_file(w->root, path, 200 + seed, seed);
  for (unsigned i = 0; kind == MATCH_GROUP && i < 3; i++) {
    snprintf(name, sizeof name, "%s.part-%u", path, i);
    make_file(w->root, name, 100 + i, seed + i);
  }
}

/* What rank `rank` of two has of a unit: a file that both have, and one of its own. */
static void fill_rank(const char *root, const char *unit, unsigned rank) {
  char at[4096], name[40];
  snprintf(at, sizeof at, "%s/%s", root, unit);
  make_dir(at);
  make_file(at, "shared.json", 50, 77);
  snprintf(name, sizeof name, "shard-%u.bin", rank);
  make_file(at, name, 120, 70 + rank);
  set_mtime(at, 1300000000);
}

/* ---- what is there: one line for each commit ---- */

typedef struct expected {
  const char *group, *dir, *unit;
  match_kind kind;
  unsigned seed;
  int64_t step;
  runlog_life life;
  bool bad;
  int with; /* files that were saved beside it */
} expected;

static const expected all[] = {
    {"", "checkpoint-10", "checkpoint-10", MATCH_DIR, 10, 10, RUNLOG_DELETED, false, 0},
    {"", "last.ckpt", "last.ckpt", MATCH_FILE, 20, MATCH_NO_STEP, RUNLOG_DROPPED, false, 0},
    {"", "last.ckpt.~6", "last.ckpt", MATCH_FILE, 21, MATCH_NO_STEP, RUNLOG_LIVE, false, 0},
    {"", "ckpt-3", "ckpt-3", MATCH_GROUP, 30, 3, RUNLOG_LIVE, false, 0},
    {"", "checkpoint-20", "checkpoint-20", MATCH_DIR, 40, 20, RUNLOG_LIVE, false, 0},
    {"", "checkpoint-40", "checkpoint-40", MATCH_DIR, 50, 40, RUNLOG_LIVE, false, 2},
    {"", "checkpoint-50", "checkpoint-50", MATCH_DIR, 60, 50, RUNLOG_LIVE, true, 0},
    {"exp/T1", "checkpoint-10", "checkpoint-10", MATCH_DIR, 80, 10, RUNLOG_DELETED, false, 0},
    {"exp/T1", "checkpoint-10.~6", "checkpoint-10", MATCH_DIR, 81, 10, RUNLOG_LIVE, false, 0},
};
enum { COMMITS = sizeof all / sizeof all[0], IN_ROOT = 7 };
static const char ranks_dir[] = "checkpoint-7"; /* of the group "ranks" */

/* ---- making it ---- */

static uint64_t save_as(world *w, runlog *log, const expected *x) {
  static const char *const beside[] = {"latest", "results/**", NULL};
  fill(w, x->unit, x->kind, x->seed);
  job *j = job_for(w, log, x->unit, x->kind, x->step, 0);
  snprintf(j->reason, sizeof j->reason, "each checkpoint");
  j->metrics = strdup("{\"eval_loss\":0.25,\"step\":3}");
  if (x->with) {
    write_file(tmpdir_path(w->root, "latest"), x->unit);
    make_dir(tmpdir_path(w->root, "results"));
    make_file(w->root, "results/eval.json", 60, 5);
    w->env.companions = beside;
    memmove(j->plan.ops + 3, j->plan.ops + 2,
            (size_t)(j->plan.count++ - 2) * sizeof j->plan.ops[0]);
    j->plan.ops[2] = PLAN_COMPANIONS; /* behind the upload */
  }
  job_run(j);
  if (j->status != 0) fail_msg("%s", j->error.text);
  uint64_t n = j->commit.n;
  job_free(j);
  w->env.companions = NULL;
  return n;
}

/* Sends a unit to its attempt's directory and seals it there; the commit is to come. */
static void seal(world *w, runlog *log, const expected *x, uint64_t attempt, manifest *m) {
  err e = {0};
  unit_files from;
  char key[STORE_KEY_MAX], name[STORE_KEY_MAX + 40];
  store *s = w->env.store;
  buf text;
  transfer t = {.io = world_io(), .store = s};
  buf_init(&text, MANIFEST_BYTES_MAX);
  fill(w, x->unit, x->kind, x->seed);
  int rc = unit_files_scan(world_io(), w->root, x->unit, x->kind, rules_builtin(), &from, &e);
  if (rc == 0)
    rc = runlog_key_dir(log, runlog_find_attempt(runlog_view(log), attempt)->dir, key, &e);
  if (rc == 0) rc = transfer_up(&t, &from, key, 0, false, &e);
  if (rc == 0) rc = unit_files_manifest(&from, x->unit, x->step, HASH_XXH3_128, m, &e);
  if (rc == 0) rc = manifest_print(m, &text, &e);
  snprintf(name, sizeof name, "%s/%s", key, MANIFEST_NAME);
  if (rc == 0) rc = s->ops->put(s, name, text.data, text.len, STORE_IF_ABSENT, &e);
  if (rc < 0) fail_msg("%s", e.text);
  buf_free(&text);
  unit_files_free(&from);
}

static runlog *begin(store *s, const char *prefix, const char *launch, const char *run,
                     uint32_t world_size) {
  runlog *log = NULL;
  err e = {0};
  runlog_writer who = {.job = "slurm:42",
                       .host = "node-1",
                       .boot = "b",
                       .state = "/state",
                       .pid = 4242,
                       .start = 99,
                       .world = world_size};
  snprintf(who.launch, sizeof who.launch, "%s", launch);
  if (runlog_open(s, prefix, &log, &e) < 0 || runlog_begin(log, run, &who, false, &e) < 0)
    fail_msg("%s", e.text);
  return log;
}

static void must(int rc) {
  if (rc < 0) fail_msg("%s", err_name(rc));
}

static void make_root(world *w) {
  store *s = w->env.store;
  uint64_t commits[IN_ROOT], open, sealed;
  manifest m;
  runlog *log = begin(s, "", "launch-1", "format1", 1);
  for (int i = 0; i < 4; i++) commits[i] = save_as(w, log, &all[i]);
  must(runlog_attempt_begin(log, "checkpoint-30", &open, NULL));
  must(runlog_attempt_begin(log, all[4].unit, &sealed, NULL));
  seal(w, log, &all[4], sealed, &m);
  runlog_close(log); /* it died here */
  log = begin(s, "", "launch-2", "format1", 1);
  must(runlog_sweep(log, open, NULL));
  must(runlog_adopt(log, sealed, NULL));
  must(runlog_commit_attempt(log, sealed, &m, &(runlog_note){.reason = "adopted"}, &commits[4],
                             NULL));
  manifest_free(&m);
  commits[5] = save_as(w, log, &all[5]);
  must(runlog_drop(log, commits[0], "retention", "keep.last(3)", NULL, NULL, NULL));
  must(runlog_delete(log, commits[0], NULL, NULL, NULL));
  must(s->ops->remove_prefix(s, all[0].dir, NULL));
  must(runlog_drop(log, commits[1], "user", "by hand", NULL, NULL, NULL));
  must(runlog_snapshot_now(log, NULL));
  commits[6] = save_as(w, log, &all[6]);
  runlog *guest = NULL;
  must(runlog_open(s, "", &guest, NULL));
  must(runlog_mark(guest, commits[4], true, "a mistake", NULL));
  must(runlog_mark(guest, commits[4], false, NULL, NULL));
  must(runlog_mark(guest, commits[6], true, "did not load", NULL));
  runlog_close(guest);
  char id[PINS_ID_MAX];
  pin_request pin = {.dir = all[2].dir, .by = "user", .commit = commits[2]};
  must(pins_put(s, "", &pin, id, false, NULL));
  must(s->ops->put(s, "checkpoint-20/.metadata.json", later_note, strlen(later_note), STORE_REPLACE,
                   NULL));
  runlog_close(log);
}

/* A run that was removed, and the next one at its place. */
static void make_ended(world *w) {
  store *s = w->env.store;
  runlog *log = begin(s, all[7].group, "launch-1", "first", 1);
  save_as(w, log, &all[7]);
  must(runlog_end(log, "removed by hand", NULL, NULL, NULL));
  runlog_close(log);
  must(s->ops->remove_prefix(s, "exp/T1/checkpoint-10", NULL));
  log = begin(s, all[8].group, "launch-2", "format1:exp/T1", 1);
  save_as(w, log, &all[8]);
  runlog_close(log);
}

/* Puts what nobody has put yet. */
static void put_files(store *s, const unit_files *from, const char *key) {
  for (size_t i = 0; i < from->count; i++) {
    char name[STORE_KEY_MAX], path[4096];
    size_t len;
    snprintf(name, sizeof name, "%s/%s", key, from->files[i].name);
    must(unit_files_path(from, &from->files[i], path, NULL));
    char *bytes = read_file(path, &len);
    int rc = s->ops->put(s, name, bytes, len, STORE_IF_ABSENT, NULL);
    if (rc != ERR_EXISTS) must(rc);
    free(bytes);
  }
}

static void send_part(world *w, runlog *log, const part *p, const char *key) {
  unit_files from;
  manifest table;
  err e = {0};
  uri nowhere;
  transfer t = {.io = world_io()}; /* only for the digests */
  char *root = tmpdir_new();
  must(uri_parse("mem://digests", &nowhere, NULL));
  must(store_open(&nowhere, world_io(), NULL, &t.store, NULL));
  fill_rank(root, ranks_dir, p->ranks->rank);
  int rc = unit_files_scan(world_io(), root, ranks_dir, MATCH_DIR, rules_builtin(), &from, &e);
  if (rc == 0) rc = transfer_up(&t, &from, "x", 0, false, &e);
  if (rc == 0) put_files(w->env.store, &from, key);
  if (rc == 0) rc = unit_files_manifest(&from, ranks_dir, 7, HASH_XXH3_128, &table, &e);
  if (rc == 0) rc = parts_put(w->env.store, log, p, &table, &e);
  if (rc < 0) fail_msg("%s", e.text);
  manifest_free(&table);
  unit_files_free(&from);
  store_close(t.store);
  tmpdir_remove(root);
}

static void make_ranks(world *w) {
  store *s = w->env.store;
  runlog *log = begin(s, "ranks", "launch-8", "format1:ranks", 2);
  ranks r[2] = {{.rank = 0, .world = 2, .launch = "launch-8"},
                {.rank = 1, .world = 2, .launch = "launch-8"}};
  uint64_t n = 0;
  must(runlog_attempt_begin(log, ranks_dir, &n, NULL));
  part p = {.attempt = n, .term = runlog_view(log)->term.n};
  for (unsigned i = 0; i < 2; i++) {
    p.ranks = &r[i];
    send_part(w, log, &p, "ranks/checkpoint-7");
  }
  manifest m;
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  must(parts_gather(s, log, &p, &m, NULL));
  must(manifest_print(&m, &text, NULL));
  must(s->ops->put(s, "ranks/checkpoint-7/" MANIFEST_NAME, text.data, text.len, STORE_IF_ABSENT,
                   NULL));
  must(runlog_commit_attempt(log, n, &m, NULL, NULL, NULL));
  buf_free(&text);
  manifest_free(&m);
  runlog_close(log);
}

static int make_all(const char *to) {
  char command[3000];
  world *w = world_new("file", world_io());
  make_root(w);
  make_ended(w);
  make_ranks(w);
  snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s/root' '%s'", to, w->dir, to);
  int rc = system(command);
  world_free(w);
  return rc == 0 ? 0 : 1;
}

/* ---- a store with checkpoints of which files are gone; 1.0 must not read it ---- */

enum { THIN_SAVES = 4 };
static const char odd[] = "sub/odd %name \xc3\xa9";

/* Of the first they are gone, of the second the entry alone says so by now. */
static int make_thin(const char *to) {
  char command[3000], name[32];
  world *w = world_new("file", world_io());
  store *s = w->env.store;
  runlog *log = begin(s, "", "launch-1", "format1", 1);
  uint64_t n[THIN_SAVES];
  for (int i = 0; i < THIN_SAVES; i++) {
    snprintf(name, sizeof name, "checkpoint-%d", i);
    fill(w, name, MATCH_DIR, (unsigned)i);
    n[i] = save_unit(w, log, name, MATCH_DIR, i);
  }
  thin_whole(s, log, n[0], "odd*");
  must(runlog_snapshot_now(log, NULL));
  thin_commit(s, log, n[1], "odd*");
  runlog_close(log);
  snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s/root' '%s'", to, w->dir, to);
  int rc = system(command);
  world_free(w);
  return rc == 0 ? 0 : 1;
}

/* ---- reading it, for ever ---- */

static const char kept[] = "spec/data/format1/store";

/* A world whose store is a copy of what is kept. */
static world *world_with(const char *fixture) {
  char command[3000];
  world *w = world_new("file", world_io());
  snprintf(command, sizeof command, "rm -rf '%s/root' && cp -r '%s' '%s/root'", w->dir, fixture,
           w->dir);
  assert_int_equal(system(command), 0);
  return w;
}

static runlog *open_log(const world *w, const char *prefix) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(w->env.store, prefix, &log, &e) < 0) fail_msg("%s", e.text);
  return log;
}

/* The snapshots that are kept here are of 1.0 and have no nonces: those entries are asked. */
static void learn_the_nonces(runlog *log) {
  const runlog_state *st = runlog_view(log);
  const char *nonce = NULL;
  for (size_t i = 0; i < st->attempt_count; i++)
    assert_int_equal(runlog_nonce(log, st->attempts[i].n, &nonce, NULL), 0);
  for (size_t i = 0; i < st->commit_count; i++)
    assert_int_equal(runlog_nonce(log, st->commits[i].n, &nonce, NULL), 0);
}

static void check_log(const world *w, const char *prefix) {
  size_t entries;
  const char *why = log_check(w->env.store, prefix, &entries);
  if (why) fail_msg("%s: %s", prefix, why);
  runlog *log = open_log(w, prefix);
  learn_the_nonces(log);
  runlog_state by_all = log_read(w->env.store, prefix);
  log_must_equal(runlog_view(log), &by_all); /* by the snapshot, and without */
  runlog_state_free(&by_all);
  runlog_close(log);
}

static void every_entry_is_read_as_it_was_meant(void **state) {
  world *w = world_with(kept);
  check_log(w, "");
  check_log(w, "exp/T1");
  check_log(w, "ranks");
  for (size_t i = 0; i < COMMITS; i++) {
    runlog *log = open_log(w, all[i].group);
    const runlog_commit *c = runlog_find_dir(runlog_view(log), all[i].dir);
    assert_non_null(c);
    assert_string_equal(c->unit, all[i].unit);
    assert_int_equal(c->kind, all[i].kind);
    assert_int_equal(c->step, all[i].step);
    assert_int_equal(c->life, all[i].life);
    assert_int_equal(c->bad, all[i].bad);
    assert_int_equal(c->companions.files, all[i].with);
    assert_string_equal(c->reason, i == 4 ? "adopted" : "each checkpoint");
    if (i != 4) assert_string_equal(c->metrics, "{\"eval_loss\":0.25,\"step\":3}");
    runlog_close(log);
  }
  world_free(w);
}

static void the_whole_state_is_as_it_was(void **state) {
  world *w = world_with(kept);
  runlog *log = open_log(w, "");
  const runlog_state *st = runlog_view(log);
  assert_string_equal(st->run_id, "format1");
  assert_int_equal(st->commit_count, IN_ROOT);
  assert_int_not_equal(st->snapshot, RUNLOG_NONE);
  assert_string_equal(st->term.writer.launch, "launch-2");
  assert_string_equal(st->term.writer.job, "slurm:42");
  assert_string_equal(runlog_newest(st, NULL)->dir, "checkpoint-40");
  assert_string_equal(runlog_find_dir(st, "checkpoint-50")->bad_reason, "did not load");
  assert_string_equal(runlog_find_dir(st, "checkpoint-10")->drop_reason, "keep.last(3)");
  pins held;
  assert_int_equal(pins_list(w->env.store, "", &held, NULL), 0);
  assert_int_equal(held.count, 1);
  assert_string_equal(held.at[0].dir, "last.ckpt.~6");
  pins_free(&held);
  runlog_close(log);
  log = open_log(w, "exp/T1");
  assert_string_equal(runlog_view(log)->run_id, "format1:exp/T1");
  runlog_close(log);
  log = open_log(w, "ranks");
  assert_int_equal(runlog_view(log)->attempts[0].world, 2);
  assert_int_equal(runlog_view(log)->term.writer.world, 2);
  runlog_close(log);
  world_free(w);
}

static void every_checkpoint_is_restored_to_the_last_byte(void **state) {
  world *w = world_with(kept);
  for (size_t i = 0; i < COMMITS; i++) {
    if (all[i].life == RUNLOG_DELETED) continue;
    runlog *log = open_log(w, all[i].group);
    fill(w, all[i].unit, all[i].kind, all[i].seed);
    const runlog_commit *c = runlog_find_dir(runlog_view(log), all[i].dir);
    if (i == 4) { /* its metadata was replaced in the store */
      err e = {0};
      if (restore_commit(w, "", c, &e) < 0) fail_msg("%s", e.text);
      assert_true(file_is(tmpdir_path(w->out, "checkpoint-20/.metadata.json"), later_note));
      assert_true(files_equal(tmpdir_path(w->root, "checkpoint-20/model.bin"),
                              tmpdir_path(w->out, "checkpoint-20/model.bin")));
    } else {
      must_restore(w, all[i].group, c, all[i].unit);
    }
    runlog_close(log);
  }
  world_free(w);
}

static void what_ranks_saved_together_is_restored_as_one(void **state) {
  world *w = world_with(kept);
  runlog *log = open_log(w, "ranks");
  const runlog_commit *c = runlog_newest(runlog_view(log), NULL);
  manifest m;
  err e = {0};
  ranks r[2] = {{.rank = 0, .world = 2, .launch = "launch-8"},
                {.rank = 1, .world = 2, .launch = "launch-8"}};
  part p = {.attempt = c->attempt, .term = runlog_view(log)->term.n, .ranks = &r[0]};
  if (restore_commit(w, "ranks", c, &e) < 0) fail_msg("%s", e.text);
  for (unsigned i = 0; i < 2; i++) {
    char *root = tmpdir_new(), name[100];
    fill_rank(root, ranks_dir, i);
    snprintf(name, sizeof name, "%s/shard-%u.bin", ranks_dir, i);
    const char *why = tree_differs(tmpdir_path(root, name), tmpdir_path(w->out, name));
    if (why) fail_msg("%s", why);
    tmpdir_remove(root);
    p.ranks = &r[i];
    if (parts_get(w->env.store, log, &p, i, &m, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(manifest_files(&m), 2);
    manifest_free(&m);
  }
  if (parts_gather(w->env.store, log, &p, &m, &e) < 0) fail_msg("%s", e.text);
  assert_true(digest_equal(&m.root, &c->root));
  manifest_free(&m);
  runlog_close(log);
  world_free(w);
}

static void what_was_saved_beside_a_checkpoint_is_found(void **state) {
  world *w = world_with(kept);
  runlog *log = open_log(w, "");
  const runlog_commit *c = runlog_find_dir(runlog_view(log), "checkpoint-40");
  manifest m;
  char key[STORE_KEY_MAX];
  err e = {0};
  const manifest own = {.unit = c->unit, .kind = c->kind};
  const companions_units units = {&own, runlog_view(log)};
  if (companions_manifest(w->env.store, "", c->attempt, &c->companions, &units, &m, key, &e) < 0)
    fail_msg("%s", e.text);
  assert_non_null(manifest_find(&m, "latest"));
  assert_non_null(manifest_find(&m, "results/eval.json"));
  transfer t = {.io = world_io(), .store = w->env.store};
  assert_int_equal(transfer_verify(&t, &m, key, NULL, NULL, &e), 0);
  manifest_free(&m);
  runlog_close(log);
  world_free(w);
}

static void a_later_run_goes_on_in_it(void **state) {
  world *w = world_with(kept);
  runlog *log = open_log(w, "");
  runlog_writer who = {.launch = "later", .host = "h"};
  uint64_t before = runlog_view(log)->next;
  assert_int_equal(runlog_begin(log, "another", &who, false, NULL), ERR_OTHER_RUN);
  assert_int_equal(runlog_begin(log, "format1", &who, false, NULL), 0);
  assert_false(runlog_plain_free(runlog_view(log), "checkpoint-10")); /* it stays taken */
  fill(w, "checkpoint-60", MATCH_DIR, 3);
  fill(w, "last.ckpt", MATCH_FILE, 4);
  uint64_t n = save_unit(w, log, "last.ckpt", MATCH_FILE, MATCH_NO_STEP);
  must_restore(w, "", runlog_find_commit(runlog_view(log), n), "last.ckpt");
  assert_string_not_equal(runlog_find_commit(runlog_view(log), n)->dir, "last.ckpt");
  n = save_unit(w, log, "checkpoint-60", MATCH_DIR, 60);
  must_restore(w, "", runlog_find_commit(runlog_view(log), n), "checkpoint-60");
  assert_true(n > before);
  assert_int_equal(runlog_snapshot_now(log, NULL), 0);
  check_log(w, "");
  runlog_close(log);
  world_free(w);
}

/* It was never released, and what it wrote is read and gone on with all the same. */
static void a_store_of_format_0_is_read_and_gone_on_with(void **state) {
  world *w = world_with("spec/data/format0/store");
  runlog *log = open_log(w, "");
  runlog_writer who = {.launch = "later", .host = "h"};
  manifest m;
  transfer t = {.io = world_io(), .store = w->env.store};
  err e = {0};
  assert_int_equal(runlog_view(log)->term.writer.world, 1);
  assert_int_equal(runlog_find_dir(runlog_view(log), "checkpoint-1")->life, RUNLOG_DROPPED);
  const runlog_commit *c = runlog_newest(runlog_view(log), NULL);
  assert_string_equal(c->dir, "checkpoint-2");
  if (restore_manifest(w->env.store, "", c, &m, &e) < 0) fail_msg("%s", e.text);
  assert_false(manifest_find(&m, MANIFEST_METADATA)->outside);
  assert_int_equal(transfer_verify(&t, &m, c->dir, NULL, NULL, &e), 0);
  manifest_free(&m);
  if (restore_commit(w, "", c, &e) < 0) fail_msg("%s", e.text);
  assert_true(file_is(tmpdir_path(w->out, "checkpoint-2/model.bin"), "weights of step 2\n"));
  assert_int_equal(runlog_begin(log, "format0", &who, false, NULL), 0);
  fill(w, "checkpoint-3", MATCH_DIR, 3);
  uint64_t n = save_unit(w, log, "checkpoint-3", MATCH_DIR, 3);
  must_restore(w, "", runlog_find_commit(runlog_view(log), n), "checkpoint-3");
  check_log(w, "");
  runlog_close(log);
  world_free(w);
}

static void what_is_left_of_thin_ones_is_restored_to_the_last_byte(void **state) {
  world *w = world_with("spec/data/format1/thin");
  runlog *log = open_log(w, "");
  const runlog_state *st = runlog_view(log);
  assert_int_equal(st->commit_count, THIN_SAVES);
  for (int i = 0; i < THIN_SAVES; i++) {
    const runlog_commit *c = &st->commits[i];
    char at[4096];
    fill(w, c->unit, MATCH_DIR, (unsigned)i);
    snprintf(at, sizeof at, "%s/%s/%s", w->root, c->unit, odd);
    assert_int_equal(c->thin.globs.count, i < 2);
    if (i < 2) assert_int_equal(unlink(at), 0);
    snprintf(at, sizeof at, "%s/%s/sub", w->root, c->unit);
    set_mtime(at, 1400000000);
    must_restore(w, "", c, c->unit);
  }
  runlog_close(log);
  world_free(w);
  (void)state;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "make-thin") == 0) return make_thin(argv[2]);
  if (argc == 3 && strcmp(argv[1], "make") == 0) return make_all(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_entry_is_read_as_it_was_meant),
      cmocka_unit_test(the_whole_state_is_as_it_was),
      cmocka_unit_test(every_checkpoint_is_restored_to_the_last_byte),
      cmocka_unit_test(what_ranks_saved_together_is_restored_as_one),
      cmocka_unit_test(what_was_saved_beside_a_checkpoint_is_found),
      cmocka_unit_test(a_later_run_goes_on_in_it),
      cmocka_unit_test(a_store_of_format_0_is_read_and_gone_on_with),
      cmocka_unit_test(what_is_left_of_thin_ones_is_restored_to_the_last_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
