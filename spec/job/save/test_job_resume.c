/* What a save has left is gone on with, by the next try or by the next run. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/save/job.h"
#include "commit/manifest_read.h"
#include "commit/settle.h"
#include "store_failing.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

enum { SCHEMES = 2 };

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
  world_must_be_clean(t->w);
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

static long commit_put;
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
  world_must_be_clean(w);
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
