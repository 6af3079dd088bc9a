#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog.h"
#include "tmpdir.h"

static store *open_store(const char *where) {
  uri u;
  store *s = NULL;
  assert_int_equal(uri_parse(where, &u, NULL), 0);
  assert_int_equal(store_open(&u, io_system(), NULL, &s, NULL), 0);
  return s;
}

/* Makes a log with an attempt of `unit` (NULL: none) whose files look like a log themselves. */
static void make_log(store *s, const char *prefix, const char *unit) {
  runlog *log = NULL;
  runlog_writer who = {.host = "h"};
  uint64_t n = 0;
  char key[STORE_KEY_MAX];
  err e = {0};
  int rc = runlog_open(s, prefix, &log, &e);
  if (rc == 0) rc = runlog_begin(log, "r", &who, false, &e);
  if (rc == 0 && unit) rc = runlog_attempt_begin(log, unit, &n, &e);
  if (rc != 0) fail_msg("%s: %s", prefix, e.text);
  if (unit) {
    const char *dir = runlog_find_attempt(runlog_view(log), n)->dir;
    snprintf(key, sizeof key, "%s%s%s/.ckpt/log/00000000000000000000.json", prefix,
             *prefix ? "/" : "", dir);
    assert_int_equal(s->ops->put(s, key, "no log", 6, STORE_IF_ABSENT, NULL), 0);
  }
  runlog_close(log);
}

typedef struct seen {
  char text[2000];
  int stop_at, count;
} seen;

static int note(void *ctx, runlog *log, err *e) {
  seen *s = ctx;
  size_t len = strlen(s->text);
  snprintf(s->text + len, sizeof s->text - len, "[%s]", runlog_prefix(log));
  return ++s->count == s->stop_at ? err_set(e, ERR_CANCELED, "stopped") : 0;
}

static void groups_are(store *s, const char *prefix, const char *want) {
  seen found = {0};
  err e = {0};
  int rc = runlog_groups(s, prefix, note, &found, &e);
  if (rc != 0) fail_msg("%s", e.text);
  assert_string_equal(found.text, want);
}

static void fill(store *s) {
  make_log(s, "", "checkpoint-1");
  make_log(s, "exp/b", "a");
  make_log(s, "exp/a", "a");
  make_log(s, "exp/a/deep/er", NULL);
  make_log(s, "exp-2", NULL);
  assert_int_equal(s->ops->put(s, "foreign/tree/file", "x", 1, STORE_IF_ABSENT, NULL), 0);
}

static void each_log_is_found_once_and_in_order(void **state) {
  char *dir = *state ? tmpdir_new() : NULL;
  store *s = open_store(dir ? dir : "mem://groups");
  groups_are(s, "", "");
  groups_are(s, "no/where", "");
  fill(s);
  groups_are(s, "", "[][exp/a][exp/a/deep/er][exp/b][exp-2]");
  groups_are(s, "exp", "[exp/a][exp/a/deep/er][exp/b]");
  groups_are(s, "exp-2", "[exp-2]");
  groups_are(s, "foreign", "");
  store_close(s);
  tmpdir_remove(dir);
}

static void what_the_caller_returns_ends_the_walk(void **state) {
  store *s = open_store("mem://groups");
  fill(s);
  seen found = {.stop_at = 2};
  err e = {0};
  assert_int_equal(runlog_groups(s, "", note, &found, &e), ERR_CANCELED);
  assert_string_equal(found.text, "[][exp/a]");
  store_close(s);
}

static void a_broken_log_is_an_error_and_not_passed_over(void **state) {
  store *s = open_store("mem://groups");
  static const char key[] = "g/.ckpt/log/00000000000000000000.json";
  assert_int_equal(s->ops->put(s, key, "{}", 2, STORE_IF_ABSENT, NULL), 0);
  seen found = {0};
  err e = {0};
  assert_int_equal(runlog_groups(s, "", note, &found, &e), ERR_FORMAT);
  assert_true(e.text[0] != 0);
  store_close(s);
}

static void the_walk_ends_at_sixteen_levels(void **state) {
  store *s = open_store("mem://groups");
  make_log(s, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", NULL);
  make_log(s, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", NULL);
  groups_are(s, "", "[1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16]");
  store_close(s);
}

static char on_file[] = "file";

int main(void) {
  const struct CMUnitTest tests[] = {
      {"each_log_is_found_once_and_in_order (mem)", each_log_is_found_once_and_in_order, NULL, NULL,
       NULL},
      {"each_log_is_found_once_and_in_order (file)", each_log_is_found_once_and_in_order, NULL,
       NULL, on_file},
      cmocka_unit_test(what_the_caller_returns_ends_the_walk),
      cmocka_unit_test(a_broken_log_is_an_error_and_not_passed_over),
      cmocka_unit_test(the_walk_ends_at_sixteen_levels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
