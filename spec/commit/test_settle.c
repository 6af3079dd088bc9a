#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/removal.h"
#include "commit/settle.h"
#include "commit/staging.h"
#include "io_fault.h"
#include "manifest_make.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

static void settle(store *s, runlog *log) {
  err e = {0};
  if (settle_attempts(s, log, NULL, &e) < 0) fail_msg("%s", e.text);
}

static void must_be_clean(store *s) {
  const char *litter = store_litter(s, "");
  if (litter) fail_msg("in the store: %s", litter);
}

/* An attempt of `unit` by this log's writer, with one data file. Its number. */
static uint64_t announce(store *s, runlog *log, const char *unit) {
  uint64_t n = 0;
  char dir[STORE_KEY_MAX], key[STORE_KEY_MAX + 20];
  assert_int_equal(runlog_attempt_begin(log, unit, &n, NULL), 0);
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), n);
  if (store_can(s, STORE_CAP_PUBLISH))
    assert_int_equal(runlog_key_staging(log, n, dir, NULL), 0);
  else
    assert_int_equal(runlog_key_dir(log, a->dir, dir, NULL), 0);
  snprintf(key, sizeof key, "%s/model.pt", dir);
  put_small_of(s, log, n, key);
  return n;
}

/* Puts a manifest's text beside the data and publishes, where that is done. */
static void seal_with(store *s, runlog *log, uint64_t n, const void *text, size_t len) {
  char from[STORE_KEY_MAX], to[STORE_KEY_MAX], key[STORE_KEY_MAX + 40], id[RUNLOG_NONCE_MAX];
  bool publish = store_can(s, STORE_CAP_PUBLISH);
  assert_int_equal(runlog_key_dir(log, runlog_find_attempt(runlog_view(log), n)->dir, to, NULL), 0);
  assert_int_equal(runlog_key_staging(log, n, from, NULL), 0);
  snprintf(key, sizeof key, "%s/%s", publish ? from : to, MANIFEST_NAME);
  assert_int_equal(runlog_attempt_id(log, n, id, NULL), 0);
  assert_int_equal(store_put_marked(s, key, text, len, STORE_IF_ABSENT, id, NULL), 0);
  if (publish) assert_int_equal(s->ops->publish(s, from, to, NULL), 0);
}

static void print_made(runlog *log, uint64_t n, int64_t made_s, manifest *m, buf *text) {
  buf_init(text, 1 << 20);
  make_small_of(m, log, n);
  m->entries[0].mtime_ns = made_s * 1000000000;
  assert_int_equal(manifest_seal(m, NULL), 0);
  assert_int_equal(manifest_print(m, text, NULL), 0);
}

static void seal_made(store *s, runlog *log, uint64_t n, int64_t made_s, manifest *m) {
  buf text;
  print_made(log, n, made_s, m, &text);
  seal_with(s, log, n, text.data, text.len);
  buf_free(&text);
}

static void seal(store *s, runlog *log, uint64_t n, manifest *m) {
  seal_made(s, log, n, 0, m);
}

static void seal_one_made(store *s, runlog *log, uint64_t n, int64_t made_s) {
  manifest m;
  seal_made(s, log, n, made_s, &m);
  manifest_free(&m);
}

static void seal_one(store *s, runlog *log, uint64_t n) {
  seal_one_made(s, log, n, 0);
}

static void commit(store *s, runlog *log, uint64_t n) {
  manifest m;
  seal(s, log, n, &m);
  assert_int_equal(runlog_commit_attempt(log, n, &m, NULL, NULL, NULL), 0);
  manifest_free(&m);
}

static runlog_fate fate_of(const runlog *log, uint64_t n) {
  return runlog_find_attempt(runlog_view(log), n)->fate;
}

static void a_sealed_save_is_committed_as_it_stands(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    uint64_t n = announce(s, old, "a");
    manifest m;
    seal(s, old, n, &m);
    runlog *log = world_log(w, "", "two");
    settle(s, log);
    const runlog_state *st = runlog_view(log);
    assert_int_equal(st->commit_count, 1);
    assert_int_equal(st->commits[0].attempt, n);
    assert_true(digest_equal(&st->commits[0].root, &m.root));
    must_be_clean(s);
    /* Its first writer is told, whatever it tries. */
    assert_int_equal(runlog_commit_attempt(old, n, &m, NULL, NULL, NULL), ERR_FENCED);
    uint64_t next = st->next;
    settle(s, log); /* and it happens once */
    assert_int_equal(runlog_view(log)->next, next);
    manifest_free(&m);
  }
}

/* A part record, and a companion, as an attempt has them. */
static void put_beside(store *s, runlog *log, uint64_t n) {
  char key[STORE_KEY_MAX], name[STORE_KEY_MAX + 20];
  assert_int_equal(runlog_key_parts(log, n, 1, key, NULL), 0);
  snprintf(name, sizeof name, "%s/0", key);
  assert_int_equal(store_put_text(s, name, "part", STORE_IF_ABSENT), 0);
  assert_int_equal(runlog_key_companions(runlog_prefix(log), n, 1, key, NULL), 0);
  snprintf(name, sizeof name, "%s/latest", key);
  assert_int_equal(store_put_text(s, name, "with", STORE_IF_ABSENT), 0);
}

static void one_whose_store_cannot_resume_is_swept_at_once(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, false);
  store *s = &lossy->base;
  runlog *old = world_log(w, "", "one");
  uint64_t n = announce(s, old, "a");
  runlog *log = world_log(w, "", "two");
  settle(s, log);
  assert_int_equal(fate_of(log, n), RUNLOG_SWEPT);
  must_be_clean(s);
}

/* Until then somebody may go on with it. */
static void an_unsealed_save_is_swept_after_a_commit_and_its_files_removed(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    uint64_t n = announce(s, old, "a");
    put_beside(s, old, n);
    runlog *log = world_log(w, "", "two");
    settle(s, log);
    assert_int_equal(fate_of(log, n), RUNLOG_OPEN);
    assert_non_null(store_litter(s, ""));
    settle_older(s, log, NULL);
    assert_int_equal(fate_of(log, n), RUNLOG_SWEPT);
    assert_int_equal(runlog_view(log)->commit_count, 0);
    must_be_clean(s);
  }
}

static void a_manifest_by_which_nobody_could_restore_seals_nothing(void **state) {
  manifest other;
  buf text, flipped;
  buf_init(&text, 1 << 20);
  buf_init(&flipped, 1 << 20);
  make_small(&other, "b", 1);
  assert_int_equal(manifest_print(&other, &text, NULL), 0);
  manifest_free(&other);
  make_small(&other, "a", 1);
  assert_int_equal(manifest_print(&other, &flipped, NULL), 0);
  manifest_free(&other);
  char *size = strstr(flipped.data, "100");
  assert_non_null(size);
  *size = '2';
  const struct {
    const char *text;
    size_t len;
  } cases[] = {{"", 0},
               {"{", 1},
               {"\0\0\0\0", 4},
               {text.data, text.len}, /* another unit's */
               {flipped.data, flipped.len / 2},
               {flipped.data, flipped.len}};
  for (int i = 0; i < 2; i++)
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
      world *w = world_new(world_schemes[i], world_io());
      store *s = w->env.store;
      runlog *old = world_log(w, "", "one");
      uint64_t n = announce(s, old, "a");
      seal_with(s, old, n, cases[c].text, cases[c].len);
      runlog *log = world_log(w, "", "two");
      settle(s, log);
      assert_int_equal(fate_of(log, n), RUNLOG_SWEPT);
      /* In a bucket the marks say whose it is; on a disk nothing does, and it stays. */
      if (i == 1) must_be_clean(s);
      assert_int_equal(store_holds(s, "a/model.pt"), i == 0);
      world_free(w);
    }
  buf_free(&text);
  buf_free(&flipped);
}

static void a_manifest_of_a_newer_format_is_left_for_those_who_can_read_it(void **state) {
  static const char newer[] = "{\"format\":7,\"reader\":7}";
  world *w = world_new("file", world_io());
  store *s = w->env.store;
  err e = {0};
  runlog *old = world_log(w, "", "one");
  uint64_t n = announce(s, old, "a");
  seal_with(s, old, n, newer, sizeof newer - 1);
  runlog *log = world_log(w, "", "two");
  assert_int_equal(settle_attempts(s, log, NULL, &e), ERR_VERSION);
  assert_int_equal(e.code, ERR_VERSION);
  assert_int_equal(fate_of(log, n), RUNLOG_OPEN);
  assert_true(store_holds(s, "a/" MANIFEST_NAME));
  world_free(w);
}

/* A commit is the newest of its log: one that was begun before the newest would take a run back. */
static void an_older_save_is_never_committed_after_a_newer_one(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    manifest a, b;
    uint64_t older = announce(s, old, "checkpoint-1"), newer = announce(s, old, "checkpoint-2");
    seal(s, old, older, &a);
    seal(s, old, newer, &b);
    assert_int_equal(runlog_commit_attempt(old, newer, &b, NULL, NULL, NULL), 0);
    runlog *log = world_log(w, "", "two");
    settle(s, log);
    assert_int_equal(fate_of(log, older), RUNLOG_SWEPT);
    assert_int_equal(runlog_view(log)->commit_count, 1);
    assert_string_equal(runlog_newest(runlog_view(log), NULL)->unit, "checkpoint-2");
    must_be_clean(s);
    manifest_free(&a);
    manifest_free(&b);
  }
}

/* Two saves of terms that took over from each other, of which none came to its end: the second one
 * was begun when the first one stood nowhere yet. */
typedef struct pair {
  uint64_t first, second;
  runlog *one, *two;
} pair;

static pair two_left(world *w) {
  pair p = {.one = world_log(w, "", "one")};
  p.first = announce(w->env.store, p.one, "checkpoint-50");
  p.two = world_log(w, "", "two");
  p.second = announce(w->env.store, p.two, "checkpoint-40");
  return p;
}

static void keep_last(void *ctx, log_level level, const char *text) {
  if (level == LOG_WARN) snprintf(ctx, ERR_TEXT_MAX, "%s", text);
}

static void of_two_that_are_adopted_the_one_that_was_complete_first_does_not_follow(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    pair p = two_left(w);
    char said[ERR_TEXT_MAX] = "";
    const log_sink sink = {.fn = keep_last, .ctx = said, .min = LOG_WARN};
    seal_one_made(s, p.one, p.first, 50);
    seal_one_made(s, p.two, p.second, 40);
    runlog *log = world_log(w, "", "three");
    assert_int_equal(settle_attempts(s, log, &sink, NULL), 0);
    assert_int_equal(fate_of(log, p.second), RUNLOG_SWEPT);
    assert_int_equal(runlog_view(log)->commit_count, 1);
    assert_string_equal(runlog_newest(runlog_view(log), NULL)->unit, "checkpoint-50");
    assert_non_null(strstr(said, "checkpoint-40, which an earlier run has sent, is not saved: newer"
                                 " is committed: checkpoint-50"));
    must_be_clean(s);
  }
}

static void one_that_is_sealed_late_does_not_follow_what_was_adopted_meanwhile(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    pair p = two_left(w);
    seal_one_made(s, p.one, p.first, 50);
    runlog *log = world_log(w, "", "three");
    settle(s, log);
    assert_string_equal(runlog_newest(runlog_view(log), NULL)->unit, "checkpoint-50");
    seal_one_made(s, p.two, p.second, 40);
    log = world_log(w, "", "four");
    settle(s, log);
    assert_int_equal(fate_of(log, p.second), RUNLOG_SWEPT);
    assert_int_equal(runlog_view(log)->commit_count, 1);
    must_be_clean(s);
  }
}

/* A run that went back to an earlier step has completed it later. */
static void of_two_that_are_adopted_the_one_that_was_complete_last_is_the_newest(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    pair p = two_left(w);
    seal_one_made(s, p.one, p.first, 50);
    seal_one_made(s, p.two, p.second, 60);
    runlog *log = world_log(w, "", "three");
    settle(s, log);
    assert_int_equal(runlog_view(log)->commit_count, 2);
    assert_string_equal(runlog_newest(runlog_view(log), NULL)->unit, "checkpoint-40");
    must_be_clean(s);
  }
}

/* Its files tell nothing of its age: an archive, say, from which they came has no times. */
static void one_without_a_time_is_committed_in_its_turn(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    pair p = two_left(w);
    seal_one_made(s, p.one, p.first, 50);
    seal_one_made(s, p.two, p.second, 0);
    runlog *log = world_log(w, "", "three");
    settle(s, log);
    assert_int_equal(runlog_view(log)->commit_count, 2);
    assert_string_equal(runlog_newest(runlog_view(log), NULL)->unit, "checkpoint-40");
    must_be_clean(s);
  }
}

/* ---- where nothing may be deleted ---- */

/* A save that stands whole in its staging, and was not shown. Its number. */
static uint64_t stage(store *s, runlog *log, const char *unit, int64_t made_s) {
  uint64_t n = 0;
  char dir[STORE_KEY_MAX], key[STORE_KEY_MAX + 40];
  manifest m;
  buf text;
  assert_int_equal(runlog_attempt_begin(log, unit, &n, NULL), 0);
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), n);
  snprintf(dir, sizeof dir, ".ckpt/staging/%llu.%s", (unsigned long long)a->owner, a->nonce);
  snprintf(key, sizeof key, "%s/model.pt", dir);
  put_small_of(s, log, n, key);
  print_made(log, n, made_s, &m, &text);
  snprintf(key, sizeof key, "%s/%s", dir, MANIFEST_NAME);
  assert_int_equal(store_put_marked(s, key, text.data, text.len, STORE_IF_ABSENT, a->nonce, NULL),
                   0);
  buf_free(&text);
  manifest_free(&m);
  assert_int_equal(staging_is_whole(s, log, a, NULL), 1);
  return n;
}

static void a_staged_save_that_comes_late_is_not_shown_first(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *one = world_log(w, "", "one");
  uint64_t first = announce(s, one, "checkpoint-50");
  runlog *two = world_log(w, "", "two");
  uint64_t second = stage(s, two, "checkpoint-40", 40);
  seal_one_made(s, one, first, 50);
  s->no_delete = true;
  runlog *log = world_log(w, "", "three");
  settle(s, log);
  assert_int_equal(fate_of(log, second), RUNLOG_SWEPT);
  assert_int_equal(runlog_view(log)->commit_count, 1);
  store_must_list(s, "checkpoint-40", false, "");
  store_must_list(s, ".ckpt/staging", false, "");
  store_must_list(s, ".ckpt/clearing", false, "");
  must_be_clean(s);
}

static void what_is_staged_of_a_save_that_was_given_up_goes_and_leaves_no_word(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *one = world_log(w, "", "one");
  uint64_t n = stage(s, one, "checkpoint-1", 1);
  assert_int_equal(runlog_sweep(one, n, NULL), 0);
  s->no_delete = true;
  runlog *log = world_log(w, "", "two");
  settle(s, log);
  store_must_list(s, ".ckpt/staging", false, "");
  store_must_list(s, ".ckpt/clearing", false, "");
}

/* Nobody may take for done what is only put off. */
static void a_directory_that_may_not_be_deleted_goes_when_it_may(void **state) {
  world *w = *state;
  store *s = w->env.store;
  pair p = two_left(w);
  seal_one_made(s, p.one, p.first, 50);
  seal_one_made(s, p.two, p.second, 40);
  s->no_delete = true;
  runlog *log = world_log(w, "", "three");
  settle(s, log);
  assert_int_equal(fate_of(log, p.second), RUNLOG_SWEPT);
  assert_true(store_holds(s, "checkpoint-40/model.pt"));
  s->no_delete = false;
  log = world_log(w, "", "four");
  settle(s, log);
  assert_false(store_holds(s, "checkpoint-40/model.pt"));
  store_must_list(s, ".ckpt/clearing", false, "");
  must_be_clean(s);
}

static int refuses(store *s, const char *key, err *e) {
  (void)s;
  return err_set(e, ERR_ACCESS, "%s: nothing may be deleted", key);
}

/* Nobody has said there that a removal begins, so there is nothing to take back; and who gives no right
 * to delete is not asked for it. */
static void in_a_bucket_nothing_is_taken_back(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, false);
  store *s = &lossy->base;
  char said[ERR_TEXT_MAX] = "";
  const log_sink sink = {.fn = keep_last, .ctx = said, .min = LOG_WARN};
  runlog *log = world_log(w, "", "one");
  uint64_t n = announce(s, log, "a");
  s->no_delete = true;
  lossy->ops.remove = refuses;
  assert_int_equal(settle_give_up(s, log, n, &sink, NULL), 0);
  assert_string_equal(said, "");
  assert_true(store_holds(s, "a/model.pt"));
}

static void what_does_not_load_keeps_no_older_one_back(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    pair p = two_left(w);
    seal_one_made(s, p.one, p.first, 50);
    runlog *log = world_log(w, "", "three");
    settle(s, log);
    uint64_t bad = runlog_newest(runlog_view(log), NULL)->n;
    assert_int_equal(runlog_mark(log, bad, true, "it does not load", NULL), 0);
    seal_one_made(s, p.two, p.second, 40);
    log = world_log(w, "", "four");
    settle(s, log);
    assert_string_equal(runlog_newest(runlog_view(log), NULL)->unit, "checkpoint-40");
    must_be_clean(s);
  }
}

static void several_sealed_saves_are_committed_in_the_order_they_were_begun(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *old = world_log(w, "", "one");
  uint64_t n[3];
  for (int i = 0; i < 3; i++) n[i] = announce(s, old, "last.ckpt");
  for (int i = 2; i >= 0; i--) {
    seal_one(s, old, n[i]);
  }
  runlog *log = world_log(w, "", "two");
  settle(s, log);
  assert_int_equal(runlog_view(log)->commit_count, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(runlog_view(log)->commits[i].attempt, n[i]);
  must_be_clean(s);
}

static void what_was_swept_before_but_is_still_there_is_removed(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    uint64_t begun = announce(s, old, "a"), sealed = announce(s, old, "b");
    uint64_t kept = announce(s, old, "c");
    seal_one(s, old, sealed);
    put_beside(s, old, begun);
    assert_int_equal(runlog_sweep(old, begun, NULL), 0);
    assert_int_equal(runlog_sweep(old, sealed, NULL), 0);
    commit(s, old, kept);
    runlog *log = world_log(w, "", "two");
    assert_non_null(store_litter(s, ""));
    settle(s, log);
    must_be_clean(s);
    assert_true(store_holds(s, "c/model.pt"));
  }
}

/* With publish() a directory is ours only with its manifest. */
static void somebody_elses_directory_under_the_name_of_a_swept_save_stays(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *old = world_log(w, "", "one");
  announce(s, old, "a");
  assert_int_equal(store_put_text(s, "a/theirs", "x", STORE_IF_ABSENT), 0);
  runlog *log = world_log(w, "", "two");
  settle(s, log);
  settle_older(s, log, NULL);
  settle(s, log);
  store_must_list(s, "a", false, "a/theirs");
  store_must_list(s, ".ckpt/staging", false, "");
}

/* A writer that was pushed aside comes late with its own files, after nothing was found of them. */
static void what_is_shown_after_a_removal_stays(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    manifest m;
    uint64_t n = 0;
    char id[RUNLOG_NONCE_MAX], cleared[STORE_KEY_MAX];
    assert_int_equal(runlog_attempt_begin(old, "a", &n, NULL), 0);
    assert_int_equal(settle_give_up(s, old, n, NULL, NULL), 0);
    assert_int_equal(runlog_attempt_id(old, n, id, NULL), 0);
    assert_int_equal(removal_key(old, REMOVAL_CLEARED, id, cleared, NULL), 0);
    assert_true(store_holds(s, cleared));
    make_small_of(&m, old, n);
    buf text;
    buf_init(&text, 1 << 20);
    assert_int_equal(manifest_print(&m, &text, NULL), 0);
    put_small_of(s, old, n, "a/model.pt");
    assert_int_equal(
        store_put_marked(s, "a/" MANIFEST_NAME, text.data, text.len, STORE_IF_ABSENT, id, NULL), 0);
    buf_free(&text);
    manifest_free(&m);
    runlog *log = world_log(w, "", "two");
    settle(s, log);
    settle_litter(s, log, NULL);
    assert_true(store_holds(s, "a/model.pt"));
    assert_true(store_holds(s, "a/" MANIFEST_NAME));
  }
}

static int see_group(void *ctx, runlog *log, err *e) {
  if (strcmp(runlog_prefix(log), "a") == 0) ++*(int *)ctx;
  return 0;
}

/* Another policy takes the directory "a" for a group, after a save of it as a unit was given up. */
static void a_group_under_the_name_of_a_swept_save_stays_and_is_seen(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    int seen = 0;
    uint64_t n = announce(s, old, "a");
    assert_int_equal(settle_give_up(s, old, n, NULL, NULL), 0);
    runlog *group = world_log(w, "a", "two");
    n = announce(s, group, "checkpoint-1");
    commit(s, group, n);
    runlog *log = world_log(w, "", "two");
    settle(s, log);
    assert_true(store_holds(s, "a/.ckpt/log/00000000000000000000.json"));
    assert_true(store_holds(s, "a/checkpoint-1/model.pt"));
    assert_int_equal(settle_clear(s, log, runlog_view(log)->attempts[0].n, NULL, NULL), 0);
    assert_true(store_holds(s, "a/checkpoint-1/model.pt"));
    assert_int_equal(runlog_groups(s, "", see_group, &seen, NULL), 0);
    assert_int_equal(seen, 1);
  }
}

static void a_newer_term_stops_it(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *old = world_log(w, "", "one");
    uint64_t n = announce(s, old, "a");
    seal_one(s, old, n);
    runlog *log = world_log(w, "", "two"), *newest = world_log(w, "", "three");
    assert_int_equal(settle_attempts(s, log, NULL, NULL), ERR_FENCED);
    assert_int_equal(settle_own(s, old, RUNLOG_NONE, NULL, NULL), ERR_FENCED);
    assert_true(store_holds(s, "a/model.pt"));
    settle(s, newest);
    assert_int_equal(fate_of(newest, n), RUNLOG_COMMITTED);
  }
}

/* What the newer one has begun meanwhile comes into the list in which the older saves are. */
static void of_what_stays_since_a_newer_term_is_there_the_name_is_told(void **state) {
  char said[ERR_TEXT_MAX] = "";
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    announce(s, world_log(w, "", "one"), "a");
    runlog *log = world_log(w, "", "two"), *newer = world_log(w, "", "three");
    for (int i = 0; i < 40; i++) announce(s, newer, "b");
    log_sink sink = {.fn = keep_last, .ctx = said};
    settle_older(s, log, &sink);
    assert_non_null(strstr(said, "what an earlier run left of a stays for now"));
  }
}

static void a_store_that_does_not_answer_decides_nothing(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, true);
  store *s = &lossy->base;
  runlog *old = world_log(w, "", "one");
  uint64_t n = announce(s, old, "a");
  seal_one(s, old, n);
  runlog *log = world_log(w, "", "two");
  assert_int_equal(runlog_adopt(log, n, NULL), 0);
  err e = {0};
  lossy->deaf = 1000;
  assert_int_equal(settle_attempts(s, log, NULL, &e), ERR_IO);
  assert_int_equal(e.code, ERR_IO);
  assert_int_equal(fate_of(log, n), RUNLOG_OPEN);
  lossy->deaf = 0;
  settle(s, log);
  assert_int_equal(fate_of(log, n), RUNLOG_COMMITTED);
  must_be_clean(s);
}

static void what_was_committed_is_not_given_up(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *log = world_log(w, "", "one");
  uint64_t n = announce(s, log, "a");
  commit(s, log, n);
  assert_int_equal(settle_give_up(s, log, n, NULL, NULL), ERR_CONFLICT);
  assert_int_equal(settle_give_up(s, log, 77, NULL, NULL), ERR_INVAL);
  assert_int_equal(settle_own(s, log, RUNLOG_NONE, NULL, NULL), 0);
  assert_true(store_holds(s, "a/model.pt"));
  must_be_clean(s);
}

static void own_leftovers_are_given_up_and_those_of_older_terms_are_not(void **state) {
  world *w = *state;
  store *s = w->env.store;
  runlog *old = world_log(w, "", "one");
  uint64_t theirs = announce(s, old, "a");
  runlog *log = world_log(w, "", "two");
  uint64_t own = announce(s, log, "b");
  assert_int_equal(settle_own(s, log, RUNLOG_NONE, NULL, NULL), 0);
  assert_int_equal(fate_of(log, own), RUNLOG_SWEPT);
  assert_int_equal(fate_of(log, theirs), RUNLOG_OPEN);
  assert_false(store_holds(s, "b/model.pt"));
  assert_true(store_holds(s, "a/model.pt"));
}

/* A groups' log lies deeper, and beside others. */
static void only_the_group_of_the_log_is_touched(void **state) {
  for (world *w = NULL; (w = world_next(w, world_io()));) {
    store *s = w->env.store;
    runlog *a = world_log(w, "exp/a", "one"), *b = world_log(w, "exp/b", "one");
    announce(s, a, "x");
    announce(s, b, "x");
    runlog *log = world_log(w, "exp/a", "two");
    settle(s, log);
    settle_older(s, log, NULL);
    assert_null(store_litter(s, "exp/a"));
    assert_non_null(store_litter(s, "exp/b"));
  }
}

/* ---- every crash point ---- */

/* Nothing works any more from call `nth` on, as if the machine had stopped there; `done`: that call
 * and what came after were carried out, and nobody was there to see it. Then a new term comes,
 * whose own settling may be stopped at call `again`, and a third one that is not. */
static bool crash_at(const char *scheme, long nth, bool done, long again) {
  io_fault *fault = io_fault_new(world_io());
  world *w = world_new(scheme, io_fault_io(fault));
  runlog *log = world_begin(w->env.store, "", "one");
  make_unit(w, "checkpoint-1", MATCH_DIR, 1);
  save_unit(w, log, "checkpoint-1", MATCH_DIR, 1);
  make_unit(w, "last.ckpt", MATCH_FILE, 2);
  job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 2, 0);
  io_fault_set(fault, (io_fault_plan){.nth = nth, .errnum = EIO, .for_good = true, .done = done});
  job_run(j);
  bool crashed = io_fault_failed(fault, CALL_ANY) > 0;
  io_fault_set(fault, (io_fault_plan){0});
  runlog_close(log);

  log = world_begin(w->env.store, "", "two");
  bool sealed = store_holds(w->env.store, "last.ckpt/" MANIFEST_NAME);
  io_fault_set(fault, (io_fault_plan){.nth = again, .errnum = EIO, .for_good = true});
  settle_attempts(w->env.store, log, NULL, NULL);
  io_fault_set(fault, (io_fault_plan){0});
  runlog_close(log);

  store *s = world_store(w);
  log = world_begin(s, "", "three");
  settle(s, log);
  const runlog_state *st = runlog_view(log);
  const runlog_commit *c = runlog_newest(st, "last.ckpt");
  /* A job that lived on after its disk "died" may have swept it itself. */
  if (sealed && !done) assert_non_null(c);
  if (j->status == 0) assert_non_null(c);
  if (c) must_restore(w, "", c, "last.ckpt");
  must_restore(w, "", &st->commits[0], "checkpoint-1");
  store *before = w->env.store;
  w->env.store = s;
  save_unit(w, log, "last.ckpt", MATCH_FILE, 2);
  w->env.store = before;
  must_restore(w, "", runlog_newest(st, "last.ckpt"), "last.ckpt");
  must_be_clean(s);
  runlog_close(log);
  store_close(s);
  job_free(j);
  world_free(w);
  io_fault_free(fault);
  return crashed;
}

static void wherever_a_save_was_stopped_the_next_term_finishes_it_or_removes_it(void **state) {
  long nth = 1;
  while (crash_at("file", nth, false, 0)) nth++;
  assert_true(nth > 50);
  for (nth = 1; crash_at("file", nth, true, 0);) nth++;
  for (nth = 1; crash_at("mem", nth, false, 0);) nth++;
}

static void settling_may_be_stopped_anywhere_and_the_next_term_goes_on(void **state) {
  /* Stopped half way through the data, and sealed. */
  static const long points[] = {30, 60, 90};
  for (int p = 0; p < 3; p++)
    for (long again = 1; again < 60; again += 2) crash_at("file", points[p], false, again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sealed_save_is_committed_as_it_stands),
      cmocka_unit_test(an_unsealed_save_is_swept_after_a_commit_and_its_files_removed),
      IN_A_MEM_WORLD(one_whose_store_cannot_resume_is_swept_at_once),
      cmocka_unit_test(a_manifest_by_which_nobody_could_restore_seals_nothing),
      cmocka_unit_test(a_manifest_of_a_newer_format_is_left_for_those_who_can_read_it),
      cmocka_unit_test(an_older_save_is_never_committed_after_a_newer_one),
      cmocka_unit_test(of_two_that_are_adopted_the_one_that_was_complete_first_does_not_follow),
      cmocka_unit_test(one_that_is_sealed_late_does_not_follow_what_was_adopted_meanwhile),
      cmocka_unit_test(of_two_that_are_adopted_the_one_that_was_complete_last_is_the_newest),
      cmocka_unit_test(one_without_a_time_is_committed_in_its_turn),
      IN_A_FILE_WORLD(a_staged_save_that_comes_late_is_not_shown_first),
      IN_A_FILE_WORLD(what_is_staged_of_a_save_that_was_given_up_goes_and_leaves_no_word),
      IN_A_FILE_WORLD(a_directory_that_may_not_be_deleted_goes_when_it_may),
      IN_A_MEM_WORLD(in_a_bucket_nothing_is_taken_back),
      cmocka_unit_test(what_does_not_load_keeps_no_older_one_back),
      IN_A_FILE_WORLD(several_sealed_saves_are_committed_in_the_order_they_were_begun),
      cmocka_unit_test(what_was_swept_before_but_is_still_there_is_removed),
      IN_A_FILE_WORLD(somebody_elses_directory_under_the_name_of_a_swept_save_stays),
      cmocka_unit_test(what_is_shown_after_a_removal_stays),
      cmocka_unit_test(a_group_under_the_name_of_a_swept_save_stays_and_is_seen),
      cmocka_unit_test(a_newer_term_stops_it),
      cmocka_unit_test(of_what_stays_since_a_newer_term_is_there_the_name_is_told),
      IN_A_MEM_WORLD(a_store_that_does_not_answer_decides_nothing),
      IN_A_FILE_WORLD(what_was_committed_is_not_given_up),
      IN_A_MEM_WORLD(own_leftovers_are_given_up_and_those_of_older_terms_are_not),
      cmocka_unit_test(only_the_group_of_the_log_is_touched),
      cmocka_unit_test(wherever_a_save_was_stopped_the_next_term_finishes_it_or_removes_it),
      cmocka_unit_test(settling_may_be_stopped_anywhere_and_the_next_term_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
