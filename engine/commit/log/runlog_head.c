/* runlog_head: the head of a log, an object that is replaced: where the newest snapshot is. It is a
 * hint: whatever is wrong with it costs requests, and nothing else. */
#include <string.h>

#include "runlog_fold.h"

static const char head_name[] = ".ckpt/head";

int runlog_key_head(const runlog *log, char out[STORE_KEY_MAX], err *e) {
  return runlog_join(log->prefix, head_name, out, e);
}

/* ---- reading ---- */

static int parse(const buf *text, const char *what, runlog_hint *out, err *e) {
  json_t *head = NULL;
  int rc = js_read(text, what, RUNLOG_READER, &head, e);
  if (rc == 0) rc = runlog_get_number(head, "snapshot", what, &out->snapshot, e);
  json_decref(head);
  return rc;
}

int runlog_take_hint(runlog *log, const store_ask *ask, err *e) {
  err why = {0};
  int rc = ask->rc;
  const runlog_hint none = {.snapshot = RUNLOG_NONE, .commit = RUNLOG_NONE};
  log->hint = none;
  if (rc == ERR_CANCELED) return err_set(e, rc, "%s", ask->why.text);
  if (rc == 0) rc = parse(&ask->out, ask->key, &log->hint, &why);
  if (rc == 0 || rc == ERR_NOENT) return 0;
  log->hint = none;
  log_say(&log->s->log, LOG_DEBUG, "%s: the head is not gone by: %s", log->prefix,
          *why.text ? why.text : ask->why.text);
  return 0;
}

/* ---- writing ---- */

int runlog_put_head(runlog *log, err *e) {
  char key[STORE_KEY_MAX];
  json_t *head = json_object();
  buf text;
  int bad = 0;
  buf_init(&text, RUNLOG_HEAD_MAX);
  runlog_set_number(head, "format", RUNLOG_FORMAT, &bad);
  runlog_set_number(head, "reader", RUNLOG_READER_1, &bad);
  runlog_set_number(head, "snapshot", log->st.snapshot, &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "the head of the log: out of memory") : 0;
  if (rc == 0) rc = js_print(head, &text, e);
  if (rc == 0) rc = runlog_key_head(log, key, e);
  if (rc == 0) rc = log->s->ops->put(log->s, key, text.data, text.len, STORE_REPLACE, e);
  log->hint_due = rc < 0;
  buf_free(&text);
  json_decref(head);
  return rc;
}
