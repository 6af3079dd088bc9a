#include "thinned.h"

#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "commit/manifest_read.h"

static void read_manifest(store *s, runlog *log, uint64_t n, char key[STORE_KEY_MAX], manifest *m) {
  const runlog_commit *c = runlog_find_commit(runlog_view(log), n);
  assert_non_null(c);
  assert_int_equal(runlog_key_dir(log, c->dir, key, NULL), 0);
  assert_int_equal(manifest_read(s, key, m, NULL), 0);
}

void thin_commit(store *s, runlog *log, uint64_t n, const char *glob) {
  char key[STORE_KEY_MAX];
  manifest m;
  manifest_rest rest;
  err e = {0};
  runlog_thinned how = {.newest = 2, .policy = "test", .reason = "two are newer"};
  read_manifest(s, log, n, key, &m);
  assert_true(names_add(&how.globs, glob));
  assert_null(manifest_thin_judge(&m, &how.globs, &rest));
  if (runlog_thin(log, n, &how, &rest, NULL, NULL, &e) < 0) fail_msg("%s", e.text);
  names_free(&how.globs);
  manifest_free(&m);
}

void thin_note(store *s, runlog *log, uint64_t n) {
  char key[STORE_KEY_MAX], note[STORE_KEY_MAX];
  manifest m;
  buf text;
  read_manifest(s, log, n, key, &m);
  const runlog_thinned *thin = &runlog_find_commit(runlog_view(log), n)->thin;
  buf_init(&text, MANIFEST_THIN_BYTES_MAX);
  assert_int_equal(manifest_thin_print(&m, &thin->globs, thin->newest, &text, NULL), 0);
  assert_int_equal(manifest_note_key(key, note, NULL), 0);
  assert_int_equal(store_put_marked(s, note, text.data, text.len, STORE_IF_ABSENT, m.attempt, NULL),
                   0);
  buf_free(&text);
  manifest_free(&m);
}

int thin_remove(store *s, runlog *log, uint64_t n) {
  char key[STORE_KEY_MAX], file[2 * STORE_KEY_MAX];
  manifest m;
  int count = 0;
  read_manifest(s, log, n, key, &m);
  const names *globs = &runlog_find_commit(runlog_view(log), n)->thin.globs;
  for (size_t i = 0; i < m.count; i++) {
    if (m.entries[i].type != MANIFEST_FILE || !manifest_thin_means(&m, &m.entries[i], globs))
      continue;
    snprintf(file, sizeof file, "%s/%s", key, m.entries[i].name);
    count += s->ops->remove(s, file, NULL) == 0;
  }
  manifest_free(&m);
  return count;
}

void thin_whole(store *s, runlog *log, uint64_t n, const char *glob) {
  thin_commit(s, log, n, glob);
  thin_note(s, log, n);
  assert_true(thin_remove(s, log, n) > 0);
}
