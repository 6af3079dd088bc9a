#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commit/log/runlog.h"
#include "log_check.h"
#include "manifest_make.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

static store *open_store(const char *where) {
  uri u;
  store *s = NULL;
  err e = {0};
  if (uri_parse(where, &u, &e) != 0 || store_open(&u, io_system(), NULL, &s, &e) != 0)
    fail_msg("%s: %s", where, e.text);
  if (!s) abort();
  return s;
}

/* Each test runs on both stores. */
typedef struct place {
  char *dir; /* of a file store; NULL: it is in memory */
  store *s;
  runlog *logs[8]; /* of reader_of and writer_of */
  size_t count;
} place;

static int set_up(void **state) {
  place *p = calloc(1, sizeof *p);
  if (*state) p->dir = tmpdir_new();
  p->s = open_store(p->dir ? tmpdir_path(p->dir, "not/yet/there") : "mem://runlog");
  *state = p;
  return 0;
}

static int tear_down(void **state) {
  place *p = *state;
  for (size_t i = 0; i < p->count; i++) runlog_close(p->logs[i]);
  store_close(p->s);
  tmpdir_remove(p->dir);
  free(p);
  return 0;
}

static runlog *keep(place *p, runlog *log) {
  assert_true(p->count < sizeof p->logs / sizeof p->logs[0]);
  return p->logs[p->count++] = log;
}

static runlog_writer writer(const char *launch) {
  runlog_writer w = {.host = "node\xff", .boot = "b", .state = "/state", .pid = 42, .start = 7};
  snprintf(w.launch, sizeof w.launch, "%s", launch);
  return w;
}

static runlog *read_at(store *s, const char *prefix) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(s, prefix, &log, &e) != 0) fail_msg("open: %s", e.text);
  return log;
}

static runlog *write_at(store *s, const char *prefix, const char *launch) {
  runlog *log = read_at(s, prefix);
  runlog_writer w = writer(launch);
  err e = {0};
  if (runlog_begin(log, "run-1", &w, false, &e) != 0) fail_msg("begin: %s", e.text);
  return log;
}

static runlog *reader_of(place *p, const char *prefix) {
  return keep(p, read_at(p->s, prefix));
}

static runlog *writer_of(place *p, const char *prefix, const char *launch) {
  return keep(p, write_at(p->s, prefix, launch));
}

static uint64_t attempt(runlog *log, const char *unit) {
  uint64_t n = 0;
  err e = {0};
  if (runlog_attempt_begin(log, unit, &n, &e) != 0) fail_msg("attempt of %s: %s", unit, e.text);
  return n;
}

static const char *dir_of(runlog *log, uint64_t n) {
  return runlog_find_attempt(runlog_view(log), n)->dir;
}

static int commit(runlog *log, uint64_t n, uint64_t seed, uint64_t *out, err *e) {
  manifest m;
  make_small(&m, runlog_find_attempt(runlog_view(log), n)->unit, seed);
  int rc = runlog_commit_attempt(log, n, &m, NULL, out, e);
  manifest_free(&m);
  return rc;
}

static void put(store *s, const char *key, const char *text) {
  err e = {0};
  if (s->ops->put(s, key, text, strlen(text), STORE_IF_ABSENT, &e) != 0) fail_msg("%s", e.text);
}

static size_t check(store *s, const char *prefix) {
  size_t entries;
  const char *why = log_check(s, prefix, &entries);
  if (why) fail_msg("%s", why);
  return entries;
}

static void a_place_without_a_log_is_empty(void **state) {
  place *p = *state;
  runlog *log = reader_of(p, "a/b");
  const runlog_state *st = runlog_view(log);
  assert_int_equal(st->next, 0);
  assert_string_equal(st->run_id, "");
  assert_int_equal(st->term.n, RUNLOG_NONE);
  assert_int_equal(runlog_refresh(log, NULL), 0);
  uint64_t n;
  assert_int_equal(runlog_attempt_begin(log, "u", &n, NULL), ERR_INVAL);
  assert_int_equal(runlog_sweep(log, 0, NULL), ERR_INVAL);
  assert_int_equal(runlog_adopt(log, 0, NULL), ERR_INVAL);
  runlog_close(NULL);
}

/* A target that was moved or unmounted would be made anew by the next put. */
static void a_log_that_vanished_is_not_gone_on_with(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "g", "one");
  uint64_t n = attempt(log, "u");
  err e = {0};
  assert_int_equal(p->s->ops->remove_prefix(p->s, "g", NULL), 0);
  assert_int_equal(commit(log, n, 1, NULL, &e), ERR_NOSTORE);
  assert_non_null(strstr(e.text, "vanished"));
  runlog *reader = reader_of(p, "g");
  assert_int_equal(runlog_view(reader)->next, 0);
}

static void a_commit_is_read_back_by_everybody(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "g", "one");
  uint64_t n = attempt(log, "last%\xff.ckpt"), done = 0;
  assert_int_equal(n, 2);
  assert_string_equal(dir_of(log, n), "last%\xff.ckpt");
  assert_int_equal(commit(log, n, 9, &done, NULL), 0);
  assert_int_equal(done, 3);
  runlog *reader = reader_of(p, "g");
  const runlog_state *st = runlog_view(reader);
  assert_int_equal(st->next, 4);
  assert_string_equal(st->run_id, "run-1");
  assert_int_equal(st->term.n, 1);
  assert_string_equal(st->term.writer.host, "node\xff");
  assert_string_equal(st->term.writer.launch, "one");
  assert_int_equal(st->term.writer.start, 7);
  const runlog_commit *c = runlog_newest(st, "last%\xff.ckpt");
  assert_non_null(c);
  assert_int_equal(c->step, 7);
  assert_int_equal(c->files, 1);
  assert_int_equal(c->bytes, 100);
  manifest m;
  make_small(&m, "last%\xff.ckpt", 9);
  assert_true(digest_equal(&c->root, &m.root));
  manifest_free(&m);
  assert_int_equal(check(p->s, "g"), 4);
  char key[STORE_KEY_MAX];
  assert_int_equal(runlog_key_dir(log, "x.~7", key, NULL), 0);
  assert_string_equal(key, "g/x.~7");
  assert_int_equal(runlog_key_staging(log, 7, key, NULL), 0);
  assert_string_equal(key, "g/.ckpt/staging/7");
}

static void another_run_is_refused_by_name(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "", "one");
  commit(log, attempt(log, "checkpoint-8"), 1, NULL, NULL);
  runlog *other = reader_of(p, "");
  runlog_writer w = writer("two");
  err e = {0};
  assert_int_equal(runlog_begin(other, "run-2", &w, false, &e), ERR_OTHER_RUN);
  assert_non_null(strstr(e.text, "\"run-1\""));
  assert_non_null(strstr(e.text, "\"run-2\""));
  assert_non_null(strstr(e.text, "checkpoint-8"));
  assert_non_null(strstr(e.text, "`continue_run`"));
  assert_int_equal(check(p->s, ""), 4); /* nothing was appended */
  assert_int_equal(runlog_begin(other, "run-2", &w, true, &e), 0);
  assert_int_equal(runlog_begin(other, "run-2", &w, true, &e), ERR_INVAL);
  assert_int_equal(runlog_refresh(log, &e), ERR_FENCED);
}

static void a_writers_facts_are_checked_before_they_are_written(void **state) {
  place *p = *state;
  runlog *log = reader_of(p, "");
  runlog_writer w = writer("one");
  char longer[RUNLOG_ID_MAX + 1] = {0};
  memset(longer, 'r', RUNLOG_ID_MAX);
  assert_int_equal(runlog_begin(log, "", &w, false, NULL), ERR_INVAL);
  assert_int_equal(runlog_begin(log, longer, &w, false, NULL), ERR_INVAL);
  w.pid = -1;
  assert_int_equal(runlog_begin(log, "r", &w, false, NULL), ERR_INVAL);
  w.pid = 1;
  w.start = UINT64_MAX;
  assert_int_equal(runlog_begin(log, "r", &w, false, NULL), ERR_INVAL);
  assert_int_equal(check(p->s, ""), 0);
}

static void a_fenced_writer_is_told_by_whom(void **state) {
  place *p = *state;
  runlog *old = writer_of(p, "g", "one");
  uint64_t n = attempt(old, "a");
  writer_of(p, "g", "two");
  err e = {0};
  uint64_t other;
  assert_int_equal(runlog_attempt_begin(old, "b", &other, &e), ERR_FENCED);
  assert_non_null(strstr(e.text, "node%FF"));
  assert_non_null(strstr(e.text, "pid 42"));
  assert_non_null(strstr(e.text, "launch two"));
  assert_non_null(strstr(e.text, "since 20"));
  assert_int_equal(commit(old, n, 1, NULL, NULL), ERR_FENCED);
  assert_int_equal(runlog_sweep(old, n, NULL), ERR_FENCED);
  assert_int_equal(runlog_adopt(old, n, NULL), ERR_FENCED);
  assert_int_equal(runlog_refresh(old, NULL), ERR_FENCED);
  assert_int_equal(check(p->s, "g"), 4);
}

static void a_name_that_is_saved_again_gets_a_generation(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "", "one");
  uint64_t a = attempt(log, "last"), b = attempt(log, "last"), c = attempt(log, "x.~6");
  assert_string_equal(dir_of(log, a), "last");
  assert_string_equal(dir_of(log, b), "last.~3");
  assert_string_equal(dir_of(log, c), "x.~6.~4");
  put(p->s, "foreign/file", "x");
  assert_string_equal(dir_of(log, attempt(log, "foreign")), "foreign.~5");
  put(p->s, "object", "x");
  assert_string_equal(dir_of(log, attempt(log, "object")), "object.~6");
  put(p->s, "foreigner/file", "x");
  assert_string_equal(dir_of(log, attempt(log, "foreigne")), "foreigne");
  assert_int_equal(runlog_sweep(log, a, NULL), 0);
  assert_string_equal(dir_of(log, attempt(log, "last")), "last.~9");
  assert_int_equal(check(p->s, ""), 10);
}

static void a_link_where_the_unit_would_be_is_left_alone(void **state) {
  place *p = *state;
  if (!p->dir) return; /* a bucket has no links */
  runlog *log = writer_of(p, "", "one");
  char path[500];
  snprintf(path, sizeof path, "%s/not/yet/there/u", p->dir);
  assert_int_equal(symlink("/tmp", path), 0);
  assert_string_equal(dir_of(log, attempt(log, "u")), "u.~2");
}

static void a_name_that_cannot_be_a_unit_is_refused(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "g", "one");
  char name[257] = {0};
  uint64_t n = 0;
  static const char *const names[] = {"", ".", "..", ".ckpt", "a/b", "/", "a/"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    err e = {0};
    assert_int_equal(runlog_attempt_begin(log, names[i], &n, &e), ERR_INVAL);
    assert_true(e.text[0] != 0);
  }
  memset(name, 'u', 256);
  assert_int_equal(runlog_attempt_begin(log, name, &n, NULL), ERR_INVAL);
  name[255] = 0;
  assert_int_equal(runlog_attempt_begin(log, name, &n, NULL), 0);
  assert_int_equal(check(p->s, "g"), 3);
}

static bool entry_has(store *s, uint64_t n, const char *text) {
  char key[STORE_KEY_MAX];
  buf entry;
  buf_init(&entry, 1 << 20);
  assert_int_equal(runlog_key_entry("", n, key, NULL), 0);
  assert_int_equal(s->ops->get(s, key, &entry, NULL), 0);
  bool has = strstr(entry.data, text) != NULL;
  buf_free(&entry);
  return has;
}

/* 1.0 would pass over such an entry, so it must not read on. */
static void a_name_that_leaves_no_room_for_its_generation_is_cut(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "", "one");
  char wide[256] = "", dirs[4][300];
  for (size_t len = 247; len <= 255; len += 4) {
    char name[257] = {0};
    memset(name, 'u', len);
    for (int i = 0; i < 2; i++) snprintf(dirs[i], 300, "%s", dir_of(log, attempt(log, name)));
    assert_string_equal(dirs[0], name);
    assert_true(strlen(dirs[1]) <= 255 && strlen(dirs[1]) > len - 2);
    bool cut = strncmp(dirs[1], name, len) != 0;
    uint64_t n = runlog_view(log)->next - 1;
    assert_int_equal(cut, len + 3 > 255);
    assert_true(entry_has(p->s, n, cut ? "\"reader\":2" : "\"reader\":1"));
  }
  for (size_t i = 0; i < 85; i++) memcpy(wide + 3 * i, "\xe6\x97\xa5", 4);
  snprintf(dirs[2], 300, "%s", dir_of(log, attempt(log, wide)));
  snprintf(dirs[3], 300, "%s", dir_of(log, attempt(log, wide)));
  assert_true(strlen(dirs[3]) <= 255);
  const char *mark = strchr(dirs[3], '~');
  assert_int_equal((mark - dirs[3]) % 3, 0); /* no character is cut in two */
  assert_int_equal(check(p->s, ""), 10);
  /* Another reader sees the same. */
  runlog *other = read_at(p->s, "");
  assert_int_equal(runlog_view(other)->attempt_count, 8);
  assert_string_equal(dir_of(other, runlog_view(other)->next - 1), dirs[3]);
  runlog_close(other);
}

static void a_name_that_is_a_group_is_no_unit(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "exp", "one");
  writer_of(p, "exp/trial", "one");
  uint64_t n;
  err e = {0};
  assert_int_equal(runlog_attempt_begin(log, "trial", &n, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "\"trial\""));
  assert_non_null(strstr(e.text, "exp/trial/.ckpt/log/"));
  assert_int_equal(check(p->s, "exp"), 2);
}

static void an_attempt_of_a_dead_term_is_adopted_or_given_up(void **state) {
  place *p = *state;
  runlog *old = write_at(p->s, "g", "one");
  uint64_t a = attempt(old, "a"), b = attempt(old, "b");
  runlog_close(old);
  runlog *log = writer_of(p, "g", "two");
  assert_int_equal(commit(log, a, 1, NULL, NULL), ERR_CONFLICT); /* not adopted yet */
  assert_int_equal(runlog_adopt(log, a, NULL), 0);
  assert_int_equal(runlog_adopt(log, a, NULL), 0); /* again: nothing to do */
  assert_int_equal(commit(log, a, 1, NULL, NULL), 0);
  assert_int_equal(runlog_adopt(log, a, NULL), ERR_CONFLICT);
  assert_int_equal(runlog_sweep(log, a, NULL), ERR_CONFLICT);
  assert_int_equal(runlog_sweep(log, b, NULL), 0);
  assert_int_equal(runlog_sweep(log, b, NULL), 0);
  assert_int_equal(runlog_adopt(log, b, NULL), ERR_CONFLICT);
  assert_int_equal(commit(log, b, 1, NULL, NULL), ERR_CONFLICT);
  assert_int_equal(runlog_adopt(log, 1, NULL), ERR_INVAL);
  assert_int_equal(runlog_sweep(log, 77, NULL), ERR_INVAL);
  assert_int_equal(check(p->s, "g"), 8);
}

static void a_commit_asked_for_twice_is_one_commit(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "g", "one");
  uint64_t a = attempt(log, "a"), first = 0, second = 0;
  assert_int_equal(commit(log, a, 1, &first, NULL), 0);
  assert_int_equal(commit(log, a, 1, &second, NULL), 0);
  assert_int_equal(first, second);
  assert_int_equal(commit(log, a, 2, NULL, NULL), ERR_CONFLICT); /* other contents */
  uint64_t b = attempt(log, "b");
  manifest m;
  make_small(&m, "a", 1);
  assert_int_equal(runlog_commit_attempt(log, b, &m, NULL, NULL, NULL),
                   ERR_INVAL); /* of another unit */
  m.root.len = 0;
  assert_int_equal(runlog_commit_attempt(log, b, &m, NULL, NULL, NULL), ERR_INVAL); /* not sealed */
  manifest_free(&m);
  assert_int_equal(check(p->s, "g"), 5);
}

static void a_broken_entry_stops_every_reader(void **state) {
  place *p = *state;
  static const struct {
    const char *text;
    int code;
  } cases[] = {
      {"", ERR_FORMAT},
      {"{\"format\":0,", ERR_FORMAT},
      {"{}", ERR_FORMAT},
      {"{\"format\":3,\"reader\":3}", ERR_VERSION},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    runlog *log = write_at(p->s, "g", "one"), *none = NULL;
    put(p->s, "g/.ckpt/log/00000000000000000002.json", cases[i].text);
    uint64_t n;
    err e = {0};
    assert_int_equal(runlog_open(p->s, "g", &none, &e), cases[i].code);
    assert_null(none);
    assert_true(e.text[0] != 0);
    assert_int_equal(runlog_refresh(log, NULL), cases[i].code);
    assert_int_equal(runlog_attempt_begin(log, "u", &n, NULL), cases[i].code);
    runlog_close(log);
    assert_int_equal(p->s->ops->remove_prefix(p->s, "g", NULL), 0);
  }
}

/* Taken for the end, it would let a writer fill it, and readers forget what came after it. */
static void an_entry_that_was_removed_is_not_taken_for_the_end(void **state) {
  place *p = *state;
  for (uint64_t hole = 0; hole < 6; hole++) {
    runlog *log = write_at(p->s, "g", "one"), *again = NULL;
    uint64_t a = attempt(log, "a");
    assert_int_equal(commit(log, a, 1, NULL, NULL), 0);
    attempt(log, "b");
    assert_int_equal(runlog_view(log)->next, 5);
    char key[STORE_KEY_MAX];
    assert_int_equal(runlog_key_entry("g", hole, key, NULL), 0);
    assert_int_equal(p->s->ops->remove(p->s, key, NULL), 0);
    err e = {0};
    int rc = runlog_open(p->s, "g", &again, &e);
    if (hole < 4) { /* what was behind the last one nobody can tell */
      assert_int_equal(rc, ERR_CORRUPT);
      assert_null(again);
      assert_non_null(strstr(e.text, "hole in the log"));
      assert_non_null(strstr(e.text, key));
    } else {
      assert_int_equal(rc, 0);
      assert_int_equal(runlog_view(again)->next, hole == 4 ? 4 : 5);
    }
    runlog_close(again);
    runlog_close(log);
    assert_int_equal(p->s->ops->remove_prefix(p->s, "g", NULL), 0);
  }
}

static void an_entry_of_more_than_a_mebibyte_is_refused(void **state) {
  place *p = *state;
  runlog *none = NULL;
  writer_of(p, "g", "one");
  char *text = malloc((1 << 20) + 2);
  memset(text, ' ', (1 << 20) + 1);
  memcpy(text, "{}", 2);
  text[(1 << 20) + 1] = 0;
  put(p->s, "g/.ckpt/log/00000000000000000002.json", text);
  err e = {0};
  assert_int_equal(runlog_open(p->s, "g", &none, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, "00000000000000000002.json"));
  free(text);
}

static void a_prefix_that_is_no_key_is_refused(void **state) {
  place *p = *state;
  runlog *log = NULL;
  char longer[STORE_KEY_MAX + 10] = {0};
  memset(longer, 'p', sizeof longer - 1);
  assert_int_equal(runlog_open(p->s, "../x", &log, NULL), ERR_INVAL);
  assert_int_equal(runlog_open(p->s, "x//y", &log, NULL), ERR_INVAL);
  assert_int_equal(runlog_open(p->s, longer, &log, NULL), ERR_LIMIT);
  longer[STORE_KEY_MAX - 20] = 0;
  assert_int_equal(runlog_open(p->s, longer, &log, NULL), ERR_LIMIT);
  assert_null(log);
}

/* A lost answer costs a put and a get, and makes no second entry. */
static void an_entry_whose_answer_was_lost_is_recognised(void **state) {
  place *p = *state;
  store_lossy *lossy = store_lossy_new(p->s, 1, true);
  runlog *log = write_at(&lossy->base, "g", "one");
  lossy->lost = 1000;
  uint64_t n = attempt(log, "a"); /* the second put answers that it is there */
  assert_int_equal(n, 2);
  assert_int_equal(commit(log, n, 1, NULL, NULL), 0);
  assert_int_equal(check(p->s, "g"), 4);
  runlog_close(log);
  store_lossy_free(lossy);
}

static void a_put_that_never_works_ends_in_an_error(void **state) {
  place *p = *state;
  store_lossy *lossy = store_lossy_new(p->s, 1, true);
  runlog *log = write_at(&lossy->base, "g", "one");
  uint64_t n;
  lossy->never = 1000;
  lossy->puts = 0;
  err e = {0};
  assert_int_equal(runlog_attempt_begin(log, "a", &n, &e), ERR_IO);
  assert_int_equal(lossy->puts, 3);
  lossy->never = 0;
  lossy->deaf = 1000;
  assert_int_equal(runlog_refresh(log, &e), ERR_IO);
  lossy->deaf = 0;
  assert_string_equal(dir_of(log, attempt(log, "a")), "a");
  assert_int_equal(check(p->s, "g"), 3);
  runlog_close(log);
  store_lossy_free(lossy);
}

/* Refused by the caller, the entry stands all the same: the next operation finds it. */
static void a_put_that_arrives_late_is_counted_once(void **state) {
  place *p = *state;
  store_lossy *lossy = store_lossy_new(p->s, 1, true);
  runlog *log = write_at(&lossy->base, "g", "one");
  uint64_t a = attempt(log, "a"), b;
  lossy->late = lossy->never = 0;
  lossy->late = 1000;
  lossy->random = 3;
  manifest m;
  make_small(&m, "a", 1);
  /* The first put is under way, the second and third fail. */
  int rc = runlog_commit_attempt(log, a, &m, NULL, NULL, NULL);
  lossy->late = 0;
  store_lossy_arrive(lossy);
  if (rc < 0) assert_int_equal(runlog_commit_attempt(log, a, &m, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_view(log)->commit_count, 1);
  manifest_free(&m);
  b = attempt(log, "a");
  assert_string_equal(dir_of(log, b), "a.~4");
  assert_int_equal(check(p->s, "g"), 5);
  runlog_close(log);
  store_lossy_free(lossy);
}

static void a_store_without_proof_is_read_after_each_put(void **state) {
  place *p = *state;
  store_lossy *lossy = store_lossy_new(p->s, 1, false);
  runlog *log = write_at(&lossy->base, "g", "one");
  lossy->gets = 0;
  uint64_t n = attempt(log, "a");
  assert_int_equal(lossy->gets, 1 + 4); /* and whether it counts */
  lossy->deaf = 1000;
  assert_int_equal(commit(log, n, 1, NULL, NULL), ERR_IO);
  lossy->deaf = 0;
  assert_int_equal(commit(log, n, 1, NULL, NULL), 0);
  assert_int_equal(check(p->s, "g"), 4);
  runlog_close(log);
  store_lossy_free(lossy);
}

static void a_text_that_controls_terminals_is_shown_escaped(void **state) {
  place *p = *state;
  runlog *log = writer_of(p, "g", "\x1b[2J"), *new = writer_of(p, "g", "\x1b[3J");
  err e = {0};
  assert_int_equal(runlog_refresh(log, &e), ERR_FENCED);
  assert_null(strchr(e.text, 0x1b));
  uint64_t n;
  assert_int_equal(runlog_attempt_begin(new, "a/\x1b", &n, &e), ERR_INVAL);
  assert_null(strchr(e.text, 0x1b));
}

#define BOTH(f) IN_BOTH_WORLDS(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(a_place_without_a_log_is_empty),
      BOTH(a_log_that_vanished_is_not_gone_on_with),
      BOTH(a_commit_is_read_back_by_everybody),
      BOTH(another_run_is_refused_by_name),
      BOTH(a_writers_facts_are_checked_before_they_are_written),
      BOTH(a_fenced_writer_is_told_by_whom),
      BOTH(a_name_that_is_saved_again_gets_a_generation),
      BOTH(a_link_where_the_unit_would_be_is_left_alone),
      BOTH(a_name_that_cannot_be_a_unit_is_refused),
      BOTH(a_name_that_leaves_no_room_for_its_generation_is_cut),
      BOTH(a_name_that_is_a_group_is_no_unit),
      BOTH(an_attempt_of_a_dead_term_is_adopted_or_given_up),
      BOTH(a_commit_asked_for_twice_is_one_commit),
      BOTH(a_broken_entry_stops_every_reader),
      BOTH(an_entry_that_was_removed_is_not_taken_for_the_end),
      BOTH(an_entry_of_more_than_a_mebibyte_is_refused),
      BOTH(a_prefix_that_is_no_key_is_refused),
      BOTH(an_entry_whose_answer_was_lost_is_recognised),
      BOTH(a_put_that_never_works_ends_in_an_error),
      BOTH(a_put_that_arrives_late_is_counted_once),
      BOTH(a_store_without_proof_is_read_after_each_put),
      BOTH(a_text_that_controls_terminals_is_shown_escaped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
