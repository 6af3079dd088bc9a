#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commit/group.h"
#include "commit/lease.h"
#include "manifest_make.h"
#include "store_failing.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

static group_env env_of(store *s, const char *run_id, const char *launch, const char *host) {
  group_env env = {.store = s, .run_id = run_id};
  snprintf(env.writer.launch, sizeof env.writer.launch, "%s", launch);
  snprintf(env.writer.host, sizeof env.writer.host, "%s", host);
  snprintf(env.writer.state, sizeof env.writer.state, "/state");
  /* A digest, another one for each host. */
  snprintf(env.writer.place, sizeof env.writer.place, "%032x", (unsigned)host[strlen(host) - 1]);
  snprintf(env.writer.boot, sizeof env.writer.boot, "boot");
  return env;
}

/* A run that began a group, committed one checkpoint in it, and is gone without a goodbye. */
static void leave_a_commit(const group_env *env, const char *prefix, const char *unit) {
  group g;
  err e = {0};
  manifest m;
  uint64_t n;
  assert_int_equal(group_open(env, prefix, &g, NULL), 0);
  if (group_begin(&g, &e) < 0) fail_msg("%s", e.text);
  make_small(&m, unit, 1);
  assert_int_equal(runlog_attempt_begin(g.log, unit, &n, NULL), 0);
  char key[STORE_KEY_MAX + 40], dir[STORE_KEY_MAX];
  assert_int_equal(runlog_key_dir(g.log, unit, dir, NULL), 0);
  snprintf(key, sizeof key, "%s/%s", dir, MANIFEST_NAME);
  assert_int_equal(store_put_text(env->store, key, "{}", STORE_IF_ABSENT), 0);
  assert_int_equal(runlog_commit_attempt(g.log, n, &m, NULL, NULL, NULL), 0);
  manifest_free(&m);
  g.term = 0; /* no goodbye: the lease stays */
  group_close(&g);
}

static int try_begin(const group_env *env, const char *prefix, err *e) {
  group g;
  assert_int_equal(group_open(env, prefix, &g, NULL), 0);
  int asked = group_may_begin(&g, e), rc = group_begin(&g, e);
  assert_int_equal(asked, rc);
  group_close(&g);
  return rc;
}

static uint64_t entries(store *s, const char *prefix) {
  runlog *log;
  assert_int_equal(runlog_open(s, prefix, &log, NULL), 0);
  uint64_t next = runlog_view(log)->next;
  runlog_close(log);
  return next;
}

static void another_run_is_refused_with_both_ids_the_last_commit_and_the_flag(void **state) {
  static const char *const prefixes[] = {"", "exp/T7"};
  for (int i = 0; i < 2; i++)
    for (int p = 0; p < 2; p++) {
      world *w = world_new(world_schemes[i], world_io());
      store *s = w->env.store;
      group_env one = env_of(s, "run-one", "L1", "here"), two = env_of(s, "run-two", "L2", "here");
      err e = {0};
      leave_a_commit(&one, prefixes[p], "checkpoint-9");
      uint64_t before = entries(s, prefixes[p]);
      assert_int_equal(try_begin(&two, prefixes[p], &e), ERR_OTHER_RUN);
      assert_int_equal(e.code, ERR_OTHER_RUN);
      assert_non_null(strstr(e.text, p ? "\"run-one:exp/T7\"" : "\"run-one\""));
      assert_non_null(strstr(e.text, p ? "\"run-two:exp/T7\"" : "\"run-two\""));
      assert_non_null(strstr(e.text, "checkpoint-9"));
      assert_non_null(strstr(e.text, "`continue_run`"));
      assert_int_equal(entries(s, prefixes[p]), before);
      two.continue_run = true;
      e = (err){0};
      if (try_begin(&two, prefixes[p], &e) < 0) fail_msg("%s", e.text);
      world_free(w);
    }
}

static void the_same_run_goes_on_in_the_same_log(void **state) {
  world *w = *state;
  group_env env = env_of(w->env.store, "run", "L1", "here");
  leave_a_commit(&env, "", "a");
  group g;
  assert_int_equal(group_open(&env, "", &g, NULL), 0);
  assert_null(g.log);
  assert_int_equal(group_begin(&g, NULL), 0);
  assert_int_equal(g.term, runlog_view(g.log)->term.n);
  assert_int_equal(runlog_view(g.log)->commit_count, 1);
  uint64_t next = runlog_view(g.log)->next;
  assert_int_equal(group_begin(&g, NULL), 0); /* it is begun: nothing happens */
  assert_int_equal(runlog_view(g.log)->next, next);
  group_close(&g);
  group_close(&g); /* a zeroed one is fine */
}

static void opening_and_reading_write_nothing(void **state) {
  world *w = *state;
  group_env env = env_of(w->env.store, "run", "L1", "here");
  group g;
  assert_int_equal(group_open(&env, "exp/T7", &g, NULL), 0);
  assert_int_equal(group_read(&g, NULL), 0);
  assert_int_equal(group_may_begin(&g, NULL), 0);
  group_close(&g);
  assert_int_equal(w->env.store->ops->exists(w->env.store, NULL), ERR_NOSTORE);
}

static void a_lease_of_another_host_holds_unless_it_is_taken_over(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    group_env one = env_of(w->env.store, "run", "L1", "node1");
    group_env two = env_of(w->env.store, "run", "L2", "node2");
    err e = {0};
    leave_a_commit(&one, "g", "a");
    uint64_t before = entries(w->env.store, "g");
    assert_int_equal(try_begin(&two, "g", &e), ERR_HELD);
    assert_non_null(strstr(e.text, "node1"));
    assert_non_null(strstr(e.text, "`take_over`"));
    assert_int_equal(entries(w->env.store, "g"), before);
    two.take_over = true;
    assert_int_equal(try_begin(&two, "g", &e), 0);
    /* That one said goodbye, and anybody may come. */
    assert_int_equal(try_begin(&one, "g", &e), 0);
  }
}

/* What becomes of a term without a lease while it is waited for. */
static struct {
  io io;
  const group_env *writes; /* its lease, at the third look; NULL: it has died */
  uint64_t term;
  int naps;
} late;

static void nap(const io *self, int64_t ns) {
  (void)self, (void)ns;
  if (++late.naps == 2 && late.writes)
    assert_int_equal(lease_renew(late.writes->store, "", late.term, &late.writes->writer, NULL), 0);
}

/* A term of `one`, that has no lease yet. */
static void open_a_term(const group_env *one) {
  runlog *log;
  assert_int_equal(runlog_open(one->store, "", &log, NULL), 0);
  assert_int_equal(runlog_begin(log, "run", &one->writer, false, NULL), 0);
  late.term = runlog_view(log)->term.n;
  late.naps = 0;
  runlog_close(log);
}

static world *world_that_naps(void) {
  late.io = *world_io();
  late.io.sleep = nap;
  return world_new("file", &late.io);
}

static void a_term_that_was_opened_just_now_is_given_time_to_write_its_lease(void **state) {
  world *w = world_that_naps();
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group_env two = env_of(w->env.store, "run", "L2", "node2");
  err e = {0};
  group g;
  open_a_term(&one);
  late.writes = &one;
  assert_int_equal(group_open(&two, "", &g, NULL), 0);
  assert_int_equal(group_begin(&g, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "node1"));
  assert_int_equal(late.naps, 2);
  group_close(&g);
  world_free(w);
}

static void a_term_whose_writer_died_before_its_lease_holds_nobody_up_for_long(void **state) {
  world *w = world_that_naps();
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group_env two = env_of(w->env.store, "run", "L2", "node2");
  group g;
  open_a_term(&one);
  late.writes = NULL;
  assert_int_equal(group_open(&two, "", &g, NULL), 0);
  assert_int_equal(group_begin(&g, NULL), 0);
  assert_in_range(late.naps, 1, 10);
  group_close(&g);
  world_free(w);
}

static void set_time(const world *w, const char *name, int64_t later_s) {
  struct timespec times[2];
  struct stat st;
  const char *path = tmpdir_path(tmpdir_path(w->place.dir, "root"), name);
  if (stat(path, &st) < 0) fail_msg("%s is not there", path);
  times[0] = times[1] = (struct timespec){.tv_sec = st.st_mtim.tv_sec + later_s};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void keep_said(void *ctx, log_level level, const char *text) {
  (void)level;
  snprintf(ctx, 256, "%s", text);
}

static void a_term_of_tomorrow_holds_nobody_up_for_longer_than_one_of_now(void **state) {
  world *w = world_that_naps();
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group_env two = env_of(w->env.store, "run", "L2", "node2");
  char said[256] = "";
  const log_sink log = {.fn = keep_said, .ctx = said, .min = LOG_INFO};
  group g;
  open_a_term(&one);
  set_time(w, ".ckpt/log/00000000000000000000.json", 86400);
  late.writes = NULL;
  two.log = &log;
  assert_int_equal(group_open(&two, "", &g, NULL), 0);
  assert_int_equal(group_may_begin(&g, NULL), 0);
  assert_int_equal(late.naps, 10);
  assert_non_null(strstr(said, "waiting for up to 10 s"));
  assert_non_null(strstr(said, "node1"));
  group_close(&g);
  world_free(w);
}

static void the_same_job_does_not_wait_for_its_own_lease(void **state) {
  world *w = world_that_naps();
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group g;
  open_a_term(&one);
  assert_int_equal(group_open(&one, "", &g, NULL), 0);
  assert_int_equal(group_begin(&g, NULL), 0);
  assert_int_equal(late.naps, 0);
  group_close(&g);
  world_free(w);
}

/* By the lease, the newest term's writer has ended well. */
static bool is_released(store *s) {
  runlog *log = NULL;
  lease_seen seen;
  assert_int_equal(runlog_open(s, "", &log, NULL), 0);
  assert_int_equal(lease_look(s, "", runlog_view(log)->term.n, &seen, NULL), 0);
  runlog_close(log);
  return seen.released;
}

static void the_same_state_directory_or_launch_takes_over_at_once(void **state) {
  world *w = *state;
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group_env again = env_of(w->env.store, "run", "L2", "node1");
  group_env launch = env_of(w->env.store, "run", "L2", "node2");
  leave_a_commit(&one, "", "a");
  leave_a_commit(&again, "", "b");
  leave_a_commit(&launch, "", "c");
}

static void one_that_was_pushed_aside_leaves_the_new_ones_lease(void **state) {
  world *w = *state;
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group_env two = env_of(w->env.store, "run", "L2", "node2");
  group a, b;
  two.take_over = true;
  assert_int_equal(group_open(&one, "", &a, NULL), 0);
  assert_int_equal(group_open(&two, "", &b, NULL), 0);
  assert_int_equal(group_begin(&a, NULL), 0);
  assert_int_equal(group_begin(&b, NULL), 0);
  assert_int_equal(runlog_refresh(a.log, NULL), ERR_FENCED);
  group_close(&a);
  assert_true(store_holds(w->env.store, ".ckpt/lease"));
  assert_int_equal(group_renew(&b, b.term, NULL), 0);
  assert_false(is_released(w->env.store));
  group_close(&b);
  assert_true(is_released(w->env.store));
}

/* It has nothing to save; the next renewal tells it. */
static void one_that_was_pushed_aside_learns_it_when_it_renews(void **state) {
  world *w = *state;
  group_env one = env_of(w->env.store, "run", "L1", "node1");
  group_env two = env_of(w->env.store, "run", "L2", "node2");
  group a, b;
  buf before, after;
  err e = {0};
  two.take_over = true;
  buf_init(&before, 1 << 16);
  buf_init(&after, 1 << 16);
  assert_int_equal(group_open(&one, "", &a, NULL), 0);
  assert_int_equal(group_open(&two, "", &b, NULL), 0);
  assert_int_equal(group_begin(&a, NULL), 0);
  assert_int_equal(group_renew(&a, a.term, NULL), 0);
  assert_int_equal(group_begin(&b, NULL), 0);
  store *s = w->env.store;
  assert_int_equal(s->ops->get(s, ".ckpt/lease", &before, NULL), 0);
  assert_int_equal(group_renew(&a, a.term, &e), ERR_FENCED);
  assert_non_null(strstr(e.text, "node2"));
  assert_int_equal(s->ops->get(s, ".ckpt/lease", &after, NULL), 0);
  assert_string_equal(before.data, after.data);
  buf_free(&before);
  buf_free(&after);
  group_close(&a);
  group_close(&b);
}

static void a_long_prefix_has_an_id_of_its_own(void **state) {
  world *w = *state;
  char a[400], b[400];
  for (int i = 0; i < 390; i++) a[i] = b[i] = i % 50 == 49 ? '/' : 'x';
  a[390] = b[390] = 0;
  b[389] = 'y';
  group_env env = env_of(w->env.store, "run", "L1", "here");
  group g;
  char ids[2][RUNLOG_ID_MAX];
  for (int i = 0; i < 2; i++) {
    leave_a_commit(&env, i ? b : a, "checkpoint-1");
    assert_int_equal(group_open(&env, i ? b : a, &g, NULL), 0);
    assert_int_equal(group_begin(&g, NULL), 0); /* the same id again */
    memcpy(ids[i], runlog_view(g.log)->run_id, RUNLOG_ID_MAX);
    assert_int_equal(strncmp(ids[i], "run:", 4), 0);
    group_close(&g);
  }
  assert_string_not_equal(ids[0], ids[1]);
}

static void an_id_that_leaves_no_room_for_a_group_is_refused_with_the_limit(void **state) {
  world *w = *state;
  char id[RUNLOG_ID_MAX], prefix[200];
  err e = {0};
  memset(prefix, 'p', sizeof prefix);
  prefix[150] = 0;
  memset(id, 'i', sizeof id);
  id[RUNLOG_ID_MAX - 1] = 0;
  group_env env = env_of(w->env.store, id, "L1", "here");
  assert_int_equal(try_begin(&env, "", &e), 0); /* as the root's own it fits */
  assert_int_equal(try_begin(&env, prefix, &e), ERR_LIMIT);
  const char *limit = strstr(e.text, "at most ");
  assert_non_null(limit);
  id[atoi(limit + 8)] = 0; /* the limit that it names is the limit */
  assert_int_equal(try_begin(&env, prefix, &e), 0);
}

/* An unsettled log must not be saved to: the next call settles it, with the same term. */
static void a_beginning_that_failed_half_way_goes_on_with_the_next_call(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, true);
  lossy->base.single_writer = true; /* what is left is given up at once there */
  group_env one = env_of(&lossy->base, "run", "L1", "here");
  group g;
  uint64_t n;
  assert_int_equal(group_open(&one, "", &g, NULL), 0);
  assert_int_equal(group_begin(&g, NULL), 0);
  assert_int_equal(runlog_attempt_begin(g.log, "a", &n, NULL), 0);
  group_close(&g);
  int settled_late = 0;
  for (long puts = 1; puts < 6; puts++) {
    assert_int_equal(group_open(&one, "", &g, NULL), 0);
    lossy->never_at = lossy->puts + puts;
    int rc = group_begin(&g, NULL);
    lossy->never_at = 0;
    uint64_t term = g.term;
    assert_true(rc == 0 || !g.settled);
    settled_late += rc < 0 && term != 0;
    assert_int_equal(group_begin(&g, NULL), 0);
    assert_true(g.settled);
    if (term) assert_int_equal(g.term, term);
    for (size_t i = 0; i < runlog_view(g.log)->attempt_count; i++)
      assert_int_equal(runlog_view(g.log)->attempts[i].fate, RUNLOG_SWEPT);
    assert_int_equal(runlog_attempt_begin(g.log, "a", &n, NULL), 0);
    group_close(&g);
  }
  assert_true(settled_late > 0);
}

static void a_rank_but_the_first_follows_and_writes_nothing(void **state) {
  world *w = *state;
  store *s = w->env.store;
  const ranks first = {.rank = 0, .world = 2, .launch = "L"},
              second = {.rank = 1, .world = 2, .launch = "L"},
              other = {.rank = 1, .world = 2, .launch = "M"},
              larger = {.rank = 1, .world = 3, .launch = "L"};
  group_env one = env_of(s, "run", "L", "here"), two = env_of(s, "another name", "L", "there");
  one.ranks = &first;
  one.writer.world = 2;
  two.ranks = &second;
  group a, b;
  assert_int_equal(group_open(&one, "", &a, NULL), 0);
  assert_int_equal(group_open(&two, "", &b, NULL), 0);
  assert_int_equal(group_begin(&b, NULL), 0); /* rank 0 is not there yet */
  assert_int_equal(b.term, 0);
  assert_int_equal(entries(s, ""), 0);
  assert_int_equal(group_begin(&a, NULL), 0);
  uint64_t next = entries(s, "");
  assert_int_equal(group_may_begin(&b, NULL), 0); /* its lease is no hindrance, nor is its name */
  assert_int_equal(group_begin(&b, NULL), 0);
  assert_int_equal(b.term, a.term);
  assert_int_equal(group_renew(&b, b.term, NULL), 0);
  assert_int_equal(entries(s, ""), next);
  group_close(&b);
  assert_true(store_holds(s, ".ckpt/lease") && !is_released(s)); /* rank 0's */
  two.ranks = &other;
  assert_int_equal(group_open(&two, "", &b, NULL), 0);
  assert_int_equal(group_begin(&b, NULL), 0);
  assert_int_equal(b.term, 0); /* of another launch */
  group_close(&b);
  two.ranks = &larger;
  assert_int_equal(group_open(&two, "", &b, NULL), 0);
  assert_int_equal(group_begin(&b, NULL), ERR_CONFLICT);
  group_close(&b);
  group_close(&a);
  assert_true(is_released(s));
}

/* The other ranks take its absence for the end of rank 0. */
static void the_first_of_several_ranks_does_not_begin_without_its_lease(void **state) {
  const ranks first = {.rank = 0, .world = 2, .launch = "L"};
  for (long nth = 1, more = 1; more; nth++) {
    world *w = world_new("mem", world_io());
    store_failing *failing = store_failing_new(w->env.store);
    group_env env = env_of(store_failing_store(failing), "run", "L", "here");
    group g;
    env.ranks = &first;
    assert_int_equal(group_open(&env, "", &g, NULL), 0);
    store_failing_set(failing, (store_failing_plan){.nth = nth, .code = ERR_IO});
    int rc = group_begin(&g, NULL);
    more = store_failing_failed(failing);
    store_failing_set(failing, (store_failing_plan){0});
    if (rc < 0) rc = group_begin(&g, NULL);
    assert_int_equal(rc, 0);
    assert_true(store_holds(w->env.store, ".ckpt/lease"));
    group_close(&g);
    store_failing_free(failing);
    world_free(w);
  }
}

/* ---- whose a place is ---- */

/* A run that was let in once is known from then on; so is the first one. */
static void a_run_that_was_let_in_needs_no_word_later(void **state) {
  world *w = *state;
  group_env one = env_of(w->env.store, "run-one", "L1", "here");
  group_env two = env_of(w->env.store, "run-two", "L2", "here");
  group_env three = env_of(w->env.store, "run-three", "L3", "here");
  leave_a_commit(&one, "", "a");
  two.continue_run = true;
  assert_int_equal(try_begin(&two, "", NULL), 0);
  two.continue_run = false;
  assert_int_equal(try_begin(&two, "", NULL), 0);
  assert_int_equal(try_begin(&one, "", NULL), 0);
  assert_int_equal(try_begin(&three, "", NULL), ERR_OTHER_RUN);
}

static void a_log_with_the_id_that_1_0_gave_is_gone_on_with(void **state) {
  world *w = *state;
  group_env old = env_of(w->env.store, "digest-of-flags", "L1", "here");
  group_env now = env_of(w->env.store, "digest-of-program", "L2", "here");
  leave_a_commit(&old, "", "a");
  leave_a_commit(&old, "exp/T7", "a");
  assert_int_equal(try_begin(&now, "", NULL), ERR_OTHER_RUN);
  now.former = "digest-of-flags";
  assert_int_equal(try_begin(&now, "", NULL), 0);
  assert_int_equal(try_begin(&now, "exp/T7", NULL), 0);
  now.former = "digest-of-other-flags"; /* it has joined: its flags may change */
  assert_int_equal(try_begin(&now, "", NULL), 0);
  assert_int_equal(try_begin(&old, "", NULL), 0);
}

/* A run that began, announced a save or not, and is gone without a goodbye or with one. */
static void leave_nothing(const group_env *env, bool attempt, bool goodbye) {
  group g;
  uint64_t n;
  assert_int_equal(group_open(env, "", &g, NULL), 0);
  assert_int_equal(group_begin(&g, NULL), 0);
  if (attempt) assert_int_equal(runlog_attempt_begin(g.log, "a", &n, NULL), 0);
  if (!goodbye) g.term = 0;
  group_close(&g);
}

static void make_old(const world *w, const char *name) {
  set_time(w, name, -LEASE_LIFE_S - 5);
}

static void a_place_in_which_nothing_was_committed_is_nobodys(void **state) {
  world *w = *state;
  group_env typo = env_of(w->env.store, "typo", "L1", "here");
  group_env right = env_of(w->env.store, "right", "L2", "afar");
  leave_nothing(&typo, false, true);
  assert_int_equal(try_begin(&right, "", NULL), 0);
  assert_int_equal(try_begin(&right, "", NULL), 0);
  leave_a_commit(&right, "", "a");
  assert_int_equal(try_begin(&typo, "", NULL), ERR_HELD); /* known, but not alone */
  group_env other = env_of(w->env.store, "other", "L3", "afar");
  assert_int_equal(try_begin(&other, "", NULL), ERR_OTHER_RUN);
}

static void a_place_at_which_somebody_may_be_at_work_is_not_vacant(void **state) {
  world *w = *state;
  group_env typo = env_of(w->env.store, "typo", "L1", "here");
  group_env right = env_of(w->env.store, "right", "L2", "afar");
  leave_nothing(&typo, false, false);
  assert_int_equal(try_begin(&right, "", NULL), ERR_OTHER_RUN);
  group_env same = env_of(w->env.store, "right", "L2", "here"); /* holds that writer's lock */
  make_old(w, ".ckpt/lease");
  leave_nothing(&typo, true, true);
  assert_int_equal(try_begin(&right, "", NULL), ERR_OTHER_RUN);
  assert_int_equal(try_begin(&same, "", NULL), ERR_OTHER_RUN);
  make_old(w, ".ckpt/log/00000000000000000003.json");
  assert_int_equal(try_begin(&right, "", NULL), 0);
}

static void the_same_state_directory_needs_not_wait_for_its_own_lease(void **state) {
  world *w = *state;
  group_env typo = env_of(w->env.store, "typo", "L1", "here");
  group_env right = env_of(w->env.store, "right", "L2", "here");
  leave_nothing(&typo, false, false);
  assert_int_equal(try_begin(&right, "", NULL), 0);
}

/* ---- the flags of the job ---- */

static uint64_t flags_since(const world *w, const char *flags, bool any) {
  group_env env = env_of(w->env.store, "run", "L1", "here");
  group g;
  memset(env.writer.flags, *flags, sizeof env.writer.flags - 1);
  env.writer.any_flags = any;
  assert_int_equal(group_open(&env, "", &g, NULL), 0);
  assert_int_equal(group_begin(&g, NULL), 0);
  uint64_t since = runlog_view(g.log)->flags_since;
  assert_true(since == 0 || since <= g.term);
  group_close(&g);
  return since;
}

static void a_term_under_other_flags_parts_what_is_before_it(void **state) {
  world *w = *state;
  assert_int_equal(flags_since(w, "a", false), 0);
  assert_int_equal(flags_since(w, "a", false), 0);
  uint64_t b = flags_since(w, "b", false);
  assert_true(b > 0);
  assert_int_equal(flags_since(w, "b", false), b);
  assert_true(flags_since(w, "a", false) > b);
  assert_int_equal(flags_since(w, "a", true), 0);
  assert_int_equal(flags_since(w, "a", false), 0);
  assert_int_equal(flags_since(w, "c", true), 0);
  assert_true(flags_since(w, "d", false) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(another_run_is_refused_with_both_ids_the_last_commit_and_the_flag),
      IN_A_MEM_WORLD(a_run_that_was_let_in_needs_no_word_later),
      IN_A_MEM_WORLD(a_log_with_the_id_that_1_0_gave_is_gone_on_with),
      IN_A_MEM_WORLD(a_place_in_which_nothing_was_committed_is_nobodys),
      IN_A_FILE_WORLD(a_place_at_which_somebody_may_be_at_work_is_not_vacant),
      IN_A_MEM_WORLD(the_same_state_directory_needs_not_wait_for_its_own_lease),
      IN_A_MEM_WORLD(a_term_under_other_flags_parts_what_is_before_it),
      IN_A_MEM_WORLD(a_rank_but_the_first_follows_and_writes_nothing),
      IN_A_FILE_WORLD(the_same_run_goes_on_in_the_same_log),
      IN_A_FILE_WORLD(opening_and_reading_write_nothing),
      cmocka_unit_test(a_lease_of_another_host_holds_unless_it_is_taken_over),
      IN_A_FILE_WORLD(the_same_state_directory_or_launch_takes_over_at_once),
      cmocka_unit_test(a_term_that_was_opened_just_now_is_given_time_to_write_its_lease),
      cmocka_unit_test(a_term_whose_writer_died_before_its_lease_holds_nobody_up_for_long),
      cmocka_unit_test(a_term_of_tomorrow_holds_nobody_up_for_longer_than_one_of_now),
      cmocka_unit_test(the_same_job_does_not_wait_for_its_own_lease),
      IN_A_FILE_WORLD(one_that_was_pushed_aside_leaves_the_new_ones_lease),
      IN_A_FILE_WORLD(one_that_was_pushed_aside_learns_it_when_it_renews),
      IN_A_MEM_WORLD(a_long_prefix_has_an_id_of_its_own),
      IN_A_MEM_WORLD(an_id_that_leaves_no_room_for_a_group_is_refused_with_the_limit),
      cmocka_unit_test(the_first_of_several_ranks_does_not_begin_without_its_lease),
      IN_A_MEM_WORLD(a_beginning_that_failed_half_way_goes_on_with_the_next_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
