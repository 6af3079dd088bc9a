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

static int digest_text(const buf *text, char out[HASH_HEX_MAX], err *e) {
  digest sum;
  int rc = hash_bytes(HASH_XXH3_128, text->data, text->len, &sum, e);
  if (rc == 0) digest_hex(&sum, out);
  return rc;
}

/* Makes the digest of the text that js_print_in_full() gives, which is the same for the same values,
 * and for 1.0. */
int runlog_state_digest(const runlog_state *st, char out[HASH_HEX_MAX], err *e) {
  buf text;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX);
  int rc = runlog_state_print(st, js_print_in_full, &text, e);
  if (rc == 0) rc = digest_text(&text, out, e);
  buf_free(&text);
  return rc;
}

/* Does the same for one that was read as a tree, whatever is in it. */
static int digest_tree(const json_t *state, char out[HASH_HEX_MAX], err *e) {
  buf text;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX);
  int rc = js_print_in_full(state, &text, e);
  if (rc == 0) rc = digest_text(&text, out, e);
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
  if (rc == 0 && !proven) rc = digest_tree(state, sum, e);
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

/* A state that cannot be read back must not be written: a reader would come to another one. */
static int read_back(const runlog *log, const buf *state, const char *sum, err *e) {
  runlog_state read = {0};
  char again[HASH_HEX_MAX] = "";
  int rc =
      runlog_state_load_pieces(state->data, state->len, log->st.next - 1, "a snapshot", &read, e);
  if (rc == 0) rc = runlog_state_digest(&read, again, e);
  runlog_state_free(&read);
  if (rc == 0 && strcmp(sum, again) != 0)
    rc = err_set(e, ERR_INTERNAL, "a snapshot: the state that is read back is another one");
  return rc;
}

/* The text of the state is far larger than the rest of the entry, and goes beside it. */
static int plan_snapshot(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  char sum[HASH_HEX_MAX] = "";
  int bad = 0;
  buf_clear(r->state);
  int rc = runlog_state_digest(&log->st, sum, e);
  if (rc == 0) rc = runlog_state_print(&log->st, js_print, r->state, e);
  if (rc == 0) rc = read_back(log, r->state, sum, e);
  if (rc == ERR_LIMIT)
    return err_set(e, rc, "a snapshot of the log would be larger than %d bytes",
                   RUNLOG_SNAPSHOT_MAX);
  if (rc < 0) return rc;
  json_t *entry = runlog_new_entry("snapshot", log->term, &bad);
  if (runlog_any_thin(&log->st)) runlog_set_number(entry, "reader", RUNLOG_READER, &bad);
  runlog_set_number(entry, "through", log->st.next - 1, &bad);
  js_set(entry, "digest", json_string(sum), &bad);
  js_set(entry, "state", json_null(), &bad); /* its place */
  return runlog_hand_over(entry, bad, out, e);
}

int runlog_snapshot_now(runlog *log, err *e) {
  const uint64_t before = log->st.snapshot;
  buf state;
  buf_init(&state, RUNLOG_SNAPSHOT_MAX - HEAD_ROOM);
  int rc = runlog_need_term(log, e);
  if (rc == 0) rc = runlog_carry_out(log, plan_snapshot, &(runlog_request){.state = &state}, e);
  buf_free(&state);
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
