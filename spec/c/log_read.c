#include "log_read.h"

#include "with_cmocka.h"

#include <stdlib.h>

#include "commit/log/runlog_impl.h"

runlog_state log_read(store *s, const char *prefix) {
  runlog_state st = {.term.n = RUNLOG_NONE, .snapshot = RUNLOG_NONE};
  for (;;) {
    char key[STORE_KEY_MAX];
    buf text;
    json_t *entry = NULL;
    const char *ignored = NULL;
    err e = {0};
    buf_init(&text, RUNLOG_SNAPSHOT_MAX);
    int rc = runlog_key_entry(prefix, st.next, key, &e);
    if (rc == 0) rc = s->ops->get(s, key, &text, &e);
    bool end = rc == ERR_NOENT;
    if (rc == 0) rc = runlog_parse_entry(&text, key, &entry, &e);
    if (rc == 0) rc = runlog_apply(&st, entry, &ignored, &e);
    json_decref(entry);
    buf_free(&text);
    if (end) return st;
    if (rc < 0) fail_msg("%s: %s", key, e.text);
  }
}

static char *log_text(const runlog_state *s) {
  buf text;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX);
  assert_int_equal(runlog_state_print(s, js_print, &text, NULL), 0);
  return buf_take(&text);
}

void log_must_equal(const runlog_state *got, const runlog_state *want) {
  char *a = log_text(got), *b = log_text(want);
  assert_string_equal(a, b);
  free(a);
  free(b);
  assert_int_equal(got->next, want->next);
  assert_int_equal(got->snapshot, want->snapshot);
  assert_int_equal(got->ended, want->ended);
  assert_int_equal(got->plain_count, want->plain_count);
  for (size_t i = 0; i < want->attempt_count; i++)
    assert_int_equal(runlog_plain_free(got, want->attempts[i].unit),
                     runlog_plain_free(want, want->attempts[i].unit));
}
