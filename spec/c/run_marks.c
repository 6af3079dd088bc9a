#include "run_marks.h"

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog.h"
#include "tmpdir.h"

void commit_file(run_host *h, const char *name, const char *text) {
  run_host_begin(h);
  run_host_write(h, name, text, RUN_COMMITTED);
  run_host_idle(h);
  run_host_close(h);
}

static runlog *open_log(run_host *h, store **s) {
  char where[800];
  uri u;
  runlog *log;
  snprintf(where, sizeof where, "file://%s", run_host_store(h, ""));
  assert_int_equal(uri_parse(where, &u, NULL), 0);
  assert_int_equal(store_open(&u, io_system(), NULL, s, NULL), 0);
  assert_int_equal(runlog_open(*s, "", &log, NULL), 0);
  return log;
}

void mark_commit(run_host *h, const char *unit, bool bad) {
  store *s;
  runlog *log = open_log(h, &s);
  const runlog_commit *c = runlog_newest_ever(runlog_view(log), unit);
  assert_non_null(c);
  assert_int_equal(runlog_mark(log, c->n, bad, "it does not load", NULL), 0);
  runlog_close(log);
  store_close(s);
}

bool commit_is_bad(run_host *h, const char *unit) {
  store *s;
  runlog *log = open_log(h, &s);
  const runlog_commit *c = runlog_newest_ever(runlog_view(log), unit);
  assert_non_null(c);
  bool bad = c->bad;
  runlog_close(log);
  store_close(s);
  return bad;
}

void lose_dir(const char *path) {
  char command[900];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  assert_int_equal(system(command), 0);
}

const char *prepare_run(run_host *h, run_restore how, const char *named, int expect,
                        run_prepared *p) {
  static char text[ERR_TEXT_MAX];
  err e = {0};
  if (!run_host_run(h)) assert_int_equal(run_host_open(h, &e), 0);
  int rc = run_prepare(run_host_run(h), how, named, p, &e);
  if (rc != expect) fail_msg("prepare: %d, %s", rc, e.text);
  snprintf(text, sizeof text, "%s", e.text);
  return text;
}

void must_resume_from(run_host *h, const run_prepared *p, const char *name) {
  assert_non_null(p->resume);
  assert_string_equal(p->resume, run_host_dir(h, name));
}
