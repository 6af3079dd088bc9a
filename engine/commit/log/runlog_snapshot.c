/* runlog_snapshot: snapshots of the log, and the hint that leads to the newest one.
 *
 * A snapshot is an entry like any other: it stands in its place for ever, and a reader that knows
 * the entries before it does not look at its state. It only saves requests to those who begin
 * there. */
#include <stdio.h>
#include <string.h>

#include "runlog_fold.h"

enum { HEAD_ROOM = 512 /* room for the members of every entry */ };

/* ---- the digest of a state ---- */

/* Makes the digest of the text that js_print_in_full() gives, which is the same for the same values,
 * and for 1.0. */
int runlog_state_digest(const json_t *state, char out[HASH_HEX_MAX], err *e) {
  buf text;
  digest sum;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX);
  int rc = js_print_in_full(state, &text, e);
  if (rc == 0) rc = hash_bytes(HASH_XXH3_128, text.data, text.len, &sum, e);
  if (rc == 0) digest_hex(&sum, out);
  buf_free(&text);
  return rc;
}

/* ---- reading ---- */

/* Reads the state that a snapshot entry holds, with the entry itself folded in. Its sum proves all
 * of the text; where it has none, it is of 1.0, and the digest of the state tells. */
int runlog_take_snapshot(const json_t *entry, const buf *text, uint64_t n, runlog_state *out,
                         err *e) {
  const char *said = NULL, *ignored = NULL;
  char what[48], sum[HASH_HEX_MAX];
  uint64_t through = 0;
  const json_t *state = json_object_get(entry, "state");
  const bool proven = text && json_object_get(entry, "sum");
  snprintf(what, sizeof what, "the snapshot in log entry %llu", (unsigned long long)n);
  int rc = js_check_reader(entry, what, RUNLOG_READER, e);
  if (rc == 0) rc = js_get_str(entry, "digest", what, &said, e);
  if (rc == 0) rc = runlog_get_number(entry, "through", what, &through, e);
  if (rc == 0 && (through + 1 != n || !state))
    rc = err_set(e, ERR_FORMAT, "%s is not of the state before it", what);
  if (rc == 0 && !proven) rc = runlog_state_digest(state, sum, e);
  if (rc == 0 && !proven && strcmp(said, sum) != 0)
    rc = err_set(e, ERR_CORRUPT, "%s does not match its digest", what);
  if (rc == 0)
    rc = proven && json_is_null(state) ? runlog_state_load_text(text, through, what, out, e)
                                       : runlog_state_load(state, through, what, out, e);
  if (rc == 0) rc = runlog_apply(out, entry, &ignored, e);
  if (rc == 0 && ignored) rc = err_set(e, ERR_FORMAT, "%s is ignored: %s", what, ignored);
  return rc;
}

/* True unless two known nonces differ. */
static bool same_nonce(const char *a, const char *b) {
  return !*a || !*b || strcmp(a, b) == 0;
}

/* True if `later` is the same log, further on: all entries that were read themselves must be in
 * it. */
static bool continues(const runlog_state *later, const runlog_state *read) {
  if (!same_nonce(later->nonce, read->nonce)) return false;
  for (size_t i = 0; i < read->attempt_count; i++) {
    const runlog_attempt *a = &read->attempts[i], *b = runlog_find_attempt(later, a->n);
    if (!b || strcmp(a->unit, b->unit) != 0 || strcmp(a->dir, b->dir) != 0 ||
        !same_nonce(a->nonce, b->nonce))
      return false;
  }
  for (size_t i = 0; i < read->commit_count; i++) {
    const runlog_commit *a = &read->commits[i], *b = runlog_find_commit(later, a->n);
    if (!b || a->attempt != b->attempt || !digest_equal(&a->root, &b->root) ||
        !same_nonce(a->nonce, b->nonce))
      return false;
  }
  return true;
}

int runlog_begin_at(runlog *log, uint64_t n, const json_t *entry, const buf *text, err *e) {
  runlog_state later = {0};
  const char *why = runlog_judge_text(n, entry, text);
  int rc = why ? err_set(e, ERR_CORRUPT, "the snapshot in log entry %llu: %s",
                         (unsigned long long)n, why)
               : 0;
  if (rc == 0) rc = runlog_take_snapshot(entry, text, n, &later, e);
  if (rc == 0 && !continues(&later, &log->st))
    rc = err_set(e, ERR_FORMAT, "the snapshot in log entry %llu is of another log",
                 (unsigned long long)n);
  if (rc == 0) {
    runlog_state read = log->st;
    memcpy(later.nonce, read.nonce, sizeof later.nonce); /* entry 0 was read itself */
    log->st = later;
    later = read;
    log->last.len = 0; /* what was read itself lies far before it */
    runlog_prove(log, n, entry, text);
  }
  runlog_state_free(&later);
  return rc;
}

/* ---- writing ---- */

static size_t text_size(const char *text) {
  return text ? strlen(text) : 0;
}

/* Refuses a state that is far too large before any tree is made of it: a tree takes some ten times
 * its text. So the texts, and the least that each attempt and commit takes, are counted. */
static int check_size(const runlog_state *s, err *e) {
  enum { ATTEMPT_LEAST = 20, COMMIT_LEAST = 80 };
  size_t least = s->attempt_count * ATTEMPT_LEAST + s->commit_count * COMMIT_LEAST;
  for (size_t i = 0; i < s->attempt_count; i++) least += strlen(s->attempts[i].unit);
  for (size_t i = 0; i < s->commit_count; i++) {
    const runlog_commit *c = &s->commits[i];
    least += text_size(c->metrics) + text_size(c->policy) + text_size(c->reason);
    least += text_size(c->needs) + text_size(c->bad_reason) + text_size(c->bad_lines);
    least += text_size(c->drop_policy) + text_size(c->drop_reason);
  }
  if (least < RUNLOG_SNAPSHOT_MAX - HEAD_ROOM) return 0;
  return err_set(e, ERR_LIMIT, "a snapshot of the log would be larger than %d bytes",
                 RUNLOG_SNAPSHOT_MAX);
}

/* Makes an entry that holds this state, and the digest of that. */
static int build(const runlog *log, const runlog_state *st, char sum[HASH_HEX_MAX], json_t **out,
                 err *e) {
  int bad = 0;
  json_t *state = runlog_state_new(st);
  if (!state) return err_set(e, ERR_NOMEM, "a snapshot of the log: out of memory");
  json_t *entry = runlog_new_entry("snapshot", log->term, &bad);
  int rc = runlog_state_digest(state, sum, e);
  runlog_set_number(entry, "through", log->st.next - 1, &bad);
  js_set(entry, "digest", json_string(rc == 0 ? sum : ""), &bad);
  js_set(entry, "state", state, &bad);
  if (rc == 0) return runlog_hand_over(entry, bad, out, e);
  json_decref(entry);
  return rc;
}

/* Reads the state as a later reader will. The entry goes as soon as its text is there: a tree takes
 * some ten times that. */
static int read_back(const runlog *log, json_t *entry, runlog_state *out, err *e) {
  buf text;
  json_t *again = NULL;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX - HEAD_ROOM);
  int rc = js_print(entry, &text, e);
  json_decref(entry);
  if (rc == 0) rc = runlog_parse_entry(&text, "a snapshot", &again, e);
  buf_free(&text);
  if (rc == 0)
    rc = runlog_state_load(json_object_get(again, "state"), log->st.next - 1, "a snapshot", out, e);
  json_decref(again);
  return rc;
}

/* A state that cannot be read back must not be written: a reader would come to another one. So the
 * entry is made of the state that was read back, which leaves one tree at a time. */
static int plan_snapshot(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  (void)r;
  char sum[HASH_HEX_MAX] = "", again[HASH_HEX_MAX] = "";
  runlog_state read = {0};
  json_t *entry = NULL;
  int rc = check_size(&log->st, e);
  if (rc == 0) rc = build(log, &log->st, sum, &entry, e);
  if (rc == 0) rc = read_back(log, entry, &read, e);
  entry = NULL;
  if (rc == 0) rc = build(log, &read, again, &entry, e);
  runlog_state_free(&read);
  if (rc == 0 && strcmp(sum, again) != 0) {
    json_decref(entry);
    return err_set(e, ERR_INTERNAL, "a snapshot: the state that is read back is another one");
  }
  if (rc == 0) *out = entry;
  return rc;
}

int runlog_snapshot_now(runlog *log, err *e) {
  const uint64_t before = log->st.snapshot;
  int rc = runlog_need_term(log, e);
  if (rc == 0) rc = runlog_carry_out(log, plan_snapshot, &(runlog_request){0}, e);
  if (rc == ERR_LIMIT || rc == ERR_INTERNAL) log->no_snapshots = true;
  if (rc < 0 && log->st.snapshot != before) log->hint_due = true; /* it stands all the same */
  return rc < 0 ? rc : runlog_put_head(log, e);
}

static bool is_due(const runlog *log) {
  const runlog_state *st = &log->st;
  uint64_t since = st->snapshot == RUNLOG_NONE ? st->next : st->next - st->snapshot - 1;
  uint64_t part = st->next / RUNLOG_SNAPSHOT_PART;
  if (part > RUNLOG_SNAPSHOT_MOST) part = RUNLOG_SNAPSHOT_MOST;
  return since >= RUNLOG_SNAPSHOT_EACH && since >= part;
}

int runlog_snapshot(runlog *log, err *e) {
  if (log->hint_due) return runlog_put_head(log, e);
  return log->no_snapshots || !is_due(log) ? 0 : runlog_snapshot_now(log, e);
}
