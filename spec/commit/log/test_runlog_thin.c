/* Files of an older commit go: the entry, who may make it, and what a reader of 1.0 sees. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "log_place.h"
#include "log_read.h"
#include "manifest_make.h"

static uint64_t commit(runlog *log, const char *unit) {
  uint64_t n, made = 0;
  manifest m;
  make_small(&m, unit, runlog_view(log)->next);
  add_file(&m, "optimizer.pt", 900, 1);
  m.left_out = 1;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  assert_int_equal(runlog_attempt_begin(log, unit, &n, NULL), 0);
  assert_int_equal(runlog_commit_attempt(log, n, &m, NULL, &made, NULL), 0);
  manifest_free(&m);
  return made;
}

static bool yes(void *ctx, const runlog_state *st, const runlog_commit *c) {
  (void)st, (void)c;
  return *(bool *)ctx;
}

static int thin_as(runlog *log, uint64_t n, const char *glob, uint64_t files, bool may) {
  runlog_thinned how = {.newest = 2, .policy = "mine", .reason = "two are newer"};
  assert_true(names_add(&how.globs, glob));
  int rc = runlog_thin(log, n, &how, &(manifest_rest){files, 100}, yes, &may, NULL);
  names_free(&how.globs);
  return rc;
}

static int thin(runlog *log, uint64_t n) {
  return thin_as(log, n, "optimizer.pt", 1, true);
}

static const runlog_commit *find(const runlog *log, uint64_t n) {
  return runlog_find_commit(runlog_view(log), n);
}

static void it_is_a_whole_commit_of_what_is_left(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "a");
  commit(p->log, "b");
  assert_int_equal(thin(p->log, a), 0);
  runlog *reader = NULL;
  assert_int_equal(runlog_open(p->s, "", &reader, NULL), 0);
  const runlog_commit *c = find(reader, a);
  assert_int_equal(c->files, 1);
  assert_int_equal(c->bytes, 100);
  assert_int_equal(c->left_out, 2);
  assert_int_equal(c->left_here, 1); /* a policy is shown that this one has less */
  assert_string_equal(c->thin.globs.at[0], "optimizer.pt");
  assert_int_equal(c->thin.newest, 2);
  assert_string_equal(c->thin.policy, "mine");
  assert_string_equal(c->thin.reason, "two are newer");
  assert_int_equal(c->life, RUNLOG_LIVE);
  runlog *copy = NULL;
  assert_int_equal(runlog_copy(reader, &copy, NULL), 0);
  log_must_equal(runlog_view(copy), runlog_view(reader));
  runlog_close(copy);
  runlog_close(reader);
}

static void files_go_once_and_the_same_again_is_fine(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "a"), next;
  assert_int_equal(thin(p->log, a), 0);
  next = runlog_view(p->log)->next;
  assert_int_equal(thin(p->log, a), 0);
  assert_int_equal(thin_as(p->log, a, "model.pt", 1, true), ERR_CONFLICT);
  assert_int_equal(runlog_view(p->log)->next, next);
}

static void it_is_asked_about_on_the_log_as_it_is(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "a"), b = commit(p->log, "b"), c = commit(p->log, "c");
  assert_int_equal(thin_as(p->log, a, "optimizer.pt", 1, false), ERR_CONFLICT);
  assert_int_equal(runlog_mark(p->log, b, true, "no", NULL), 0);
  assert_int_equal(thin(p->log, b), ERR_CONFLICT);
  assert_int_equal(runlog_drop(p->log, c, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(thin(p->log, c), ERR_CONFLICT);
  assert_int_equal(thin(p->log, 777), ERR_INVAL);
  assert_int_equal(thin_as(p->log, a, "*", 0, true), ERR_INVAL);
  assert_int_equal(thin_as(p->log, a, "x", 2, true), ERR_INVAL);
  for (uint64_t i = a; i <= c; i++)
    if (find(p->log, i)) assert_int_equal(find(p->log, i)->thin.globs.count, 0);
}

static void neither_a_guest_nor_who_is_fenced_takes_files(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "a");
  runlog *guest = NULL;
  assert_int_equal(runlog_open(p->s, "", &guest, NULL), 0);
  assert_int_equal(thin(guest, a), ERR_INVAL);
  runlog_close(guest);
  runlog *later = world_begin(p->s, "", "two");
  assert_int_equal(thin(p->log, a), ERR_FENCED);
  assert_int_equal(thin(later, a), 0);
  runlog_close(later);
}

/* Returns the lowest reader that entry n asks for. */
static int64_t reader_of(log_place *p, uint64_t n) {
  json_t *entry = NULL;
  assert_int_equal(runlog_read_entry(p->log, n, &entry, NULL), 0);
  int64_t reader = json_integer_value(json_object_get(entry, "reader"));
  json_decref(entry);
  return reader;
}

static void a_reader_of_1_0_is_kept_from_the_entry_and_from_snapshots_behind_it(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "a");
  assert_int_equal(runlog_snapshot_now(p->log, NULL), 0);
  assert_int_equal(reader_of(p, runlog_view(p->log)->next - 1), 1);
  assert_int_equal(thin(p->log, a), 0);
  assert_int_equal(reader_of(p, runlog_view(p->log)->next - 1), 2);
  assert_int_equal(runlog_snapshot_now(p->log, NULL), 0);
  assert_int_equal(reader_of(p, runlog_view(p->log)->next - 1), 2);
  runlog *reader = NULL;
  assert_int_equal(runlog_open(p->s, "", &reader, NULL), 0);
  assert_int_equal(find(reader, a)->thin.globs.count, 1);
  assert_int_equal(find(reader, a)->left_out, 2);
  assert_int_equal(find(reader, a)->left_here, 1);
  runlog_close(reader);
}

#define RUN "\"type\":\"run\",\"run\":\"r\""
#define TERM                                                                                       \
  "\"type\":\"term\",\"launch\":\"l\",\"job\":\"\",\"host\":\"h\",\"boot\":\"\",\"state\":\"\","   \
  "\"pid\":1,\"start\":1,\"term\":"
#define COMMIT                                                                                     \
  "\"type\":\"commit\",\"term\":1,\"attempt\":2,\"kind\":\"dir\",\"files\":2,\"bytes\":9,"         \
  "\"digest\":\"xxh3-128\",\"root\":\"00112233445566778899aabbccddeeff\""
#define THIN(term, files, bytes)                                                                   \
  "\"type\":\"thin\"," term "\"commit\":3,\"globs\":[\"o*\"],\"newest\":1,\"files\":" #files       \
  ",\"bytes\":" #bytes

static int fold(runlog_state *s, const char *body, const char **ignored) {
  char text[1000];
  json_t *entry = NULL;
  snprintf(text, sizeof text,
           "{\"format\":1,\"reader\":2,\"n\":%llu,\"nonce\":\"x\",\"time_ns\":5,%s}",
           (unsigned long long)s->next, body);
  assert_int_equal(js_parse(text, strlen(text), "test", &entry, NULL), 0);
  int rc = runlog_apply(s, entry, ignored, NULL);
  json_decref(entry);
  return rc;
}

static void an_entry_that_breaks_a_rule_is_ignored_by_all(void **state) {
  static const char *const broken[] = {
      THIN("\"term\":0,", 1, 3),  THIN("", 1, 3),
      THIN("\"term\":1,", 0, 3),  THIN("\"term\":1,", 2, 3),
      THIN("\"term\":1,", 1, 10),
  };
  (void)state;
  runlog_state s = {0};
  const char *why = NULL;
  fold(&s, RUN, NULL);
  fold(&s, TERM "1", NULL);
  fold(&s, "\"type\":\"attempt\",\"term\":1,\"unit\":\"a\",\"dir\":\"a\"", NULL);
  assert_int_equal(fold(&s, COMMIT, &why), 0);
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    assert_int_equal(fold(&s, broken[i], &why), 0);
    assert_non_null(why);
    assert_int_equal(s.commits[0].files, 2);
    assert_int_equal(s.commits[0].thin.globs.count, 0);
  }
  assert_int_equal(fold(&s, THIN("\"term\":1,", 1, 3), &why), 0);
  assert_null(why);
  assert_int_equal(s.commits[0].files, 1);
  fold(&s, THIN("\"term\":1,", 1, 3), &why);
  assert_non_null(why);
  runlog_state_free(&s);
}

static void an_entry_that_does_not_say_what_is_gone_is_broken(void **state) {
  static const char *const broken[] = {
      "\"globs\":[],\"newest\":1",        "\"newest\":1",
      "\"globs\":[\"a/b\"],\"newest\":1", "\"globs\":[\"a\"]",
      "\"globs\":[1],\"newest\":1",       "\"globs\":[\"a\"],\"newest\":-1",
  };
  (void)state;
  runlog_state s = {0};
  fold(&s, RUN, NULL);
  fold(&s, TERM "1", NULL);
  fold(&s, "\"type\":\"attempt\",\"term\":1,\"unit\":\"a\",\"dir\":\"a\"", NULL);
  fold(&s, COMMIT, NULL);
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    char body[300];
    snprintf(body, sizeof body,
             "\"type\":\"thin\",\"term\":1,\"commit\":3,\"files\":1,\"bytes\":3,%s", broken[i]);
    assert_int_equal(fold(&s, body, NULL), ERR_FORMAT);
  }
  runlog_state_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_BOTH_PLACES(it_is_a_whole_commit_of_what_is_left),
      IN_BOTH_PLACES(files_go_once_and_the_same_again_is_fine),
      IN_BOTH_PLACES(it_is_asked_about_on_the_log_as_it_is),
      IN_BOTH_PLACES(neither_a_guest_nor_who_is_fenced_takes_files),
      IN_BOTH_PLACES(a_reader_of_1_0_is_kept_from_the_entry_and_from_snapshots_behind_it),
      cmocka_unit_test(an_entry_that_breaks_a_rule_is_ignored_by_all),
      cmocka_unit_test(an_entry_that_does_not_say_what_is_gone_is_broken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
