/* The half of the log that speaks to a store: reading to the end, and appending one entry. What
 * each operation appends is in runlog_entries.c. */
#include "runlog_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  ENTRY_BYTES_MAX = 1 << 20,
  PUT_TRIES = 3,         /* of one entry whose fate is unknown */
  COLLISIONS_MAX = 1000, /* of one operation with other writers */
};

/* ---- keys ---- */

int runlog_join(const char *prefix, const char *rest, char out[STORE_KEY_MAX], err *e) {
  int len = snprintf(out, STORE_KEY_MAX, "%s%s%s", prefix, prefix[0] ? "/" : "", rest);
  if (len < 0 || len >= STORE_KEY_MAX)
    return err_set(e, ERR_LIMIT, "the key \"%.100s.../%.300s\" is longer than %d bytes", prefix,
                   rest, STORE_KEY_MAX - 1);
  return store_key_check(out, e);
}

int runlog_key_entry(const char *prefix, uint64_t n, char out[STORE_KEY_MAX], err *e) {
  char name[64];
  snprintf(name, sizeof name, ".ckpt/log/%020" PRIu64 ".json", n);
  return runlog_join(prefix, name, out, e);
}

const char *runlog_prefix(const runlog *log) {
  return log->prefix;
}

int runlog_key_dir(const runlog *log, const char *dir, char out[STORE_KEY_MAX], err *e) {
  return runlog_join(log->prefix, dir, out, e);
}

int runlog_key_staging(const runlog *log, uint64_t attempt, char out[STORE_KEY_MAX], err *e) {
  char name[64];
  snprintf(name, sizeof name, ".ckpt/staging/%" PRIu64, attempt);
  return runlog_join(log->prefix, name, out, e);
}

int runlog_entry_time(const runlog *log, uint64_t n, int64_t *out, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  int rc = runlog_key_entry(log->prefix, n, key, e);
  if (rc == 0) rc = log->s->ops->head(log->s, key, &object, e);
  if (rc == 0) *out = object.mtime_ns;
  return rc;
}

/* ---- texts ---- */

static void add_time(buf *out, int64_t time_ns) {
  char text[32] = "an unknown time";
  time_t seconds = (time_t)(time_ns / 1000000000);
  struct tm parts;
  if (gmtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  buf_str(out, text);
}

/* ERR_FENCED, and who it was: somebody will have to find that process. */
static int check_fence(const runlog *log, err *e) {
  const runlog_term *now = &log->st.term;
  if (log->term == RUNLOG_NONE || now->n == log->term) return 0;
  buf who;
  buf_init(&who, ERR_TEXT_MAX);
  buf_str(&who, "host ");
  js_name_escape(now->writer.host, &who);
  buf_fmt(&who, ", pid %" PRId64 ", launch ", now->writer.pid);
  js_name_escape(now->writer.launch, &who);
  buf_str(&who, ", since ");
  add_time(&who, now->time_ns);
  err_set(e, ERR_FENCED,
          "fenced: term %" PRIu64 " was opened by %s; this writer (term %" PRIu64 ") must stop",
          now->n, buf_failed(&who) ? "another writer" : who.data, log->term);
  buf_free(&who);
  return ERR_FENCED;
}

int runlog_check_run(const runlog *log, const char *run_id, bool continue_run, err *e) {
  if (continue_run || !*log->st.run_id || strcmp(log->st.run_id, run_id) == 0) return 0;
  const runlog_commit *last = runlog_newest(&log->st, NULL);
  buf text;
  buf_init(&text, ERR_TEXT_MAX);
  buf_str(&text, "this place belongs to run \"");
  js_name_escape(log->st.run_id, &text);
  buf_str(&text, "\", this is run \"");
  js_name_escape(run_id, &text);
  buf_str(&text, "\"; its last commit is ");
  if (last) {
    buf_str(&text, "\"");
    js_name_escape(last->dir, &text);
    buf_str(&text, "\" of ");
    add_time(&text, last->time_ns);
  } else {
    buf_str(&text, "none");
  }
  buf_str(&text, "; to go on with that run all the same: --continue-run");
  err_set(e, ERR_OTHER_RUN, "%s",
          buf_failed(&text) ? "this place belongs to another run (--continue-run)" : text.data);
  buf_free(&text);
  return ERR_OTHER_RUN;
}

/* ---- reading ---- */

static int read_entry(const runlog *log, uint64_t n, json_t **out, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, ENTRY_BYTES_MAX);
  int rc = runlog_key_entry(log->prefix, n, key, e);
  if (rc == 0) rc = log->s->ops->get(log->s, key, &text, e);
  if (rc == 0)
    rc = js_parse(text.data ? text.data : "", text.len, key, out, e);
  else if (rc == ERR_LIMIT)
    err_set(e, rc, "%s: a log entry is larger than %d bytes", key, ENTRY_BYTES_MAX);
  buf_free(&text);
  return rc;
}

static int fold(runlog *log, const json_t *entry, err *e) {
  const char *ignored = NULL;
  uint64_t n = log->st.next;
  int rc = runlog_apply(&log->st, entry, &ignored, e);
  if (rc == 0 && ignored)
    log_say(&log->s->log, LOG_WARN, "%s: log entry %" PRIu64 " is ignored: %s", log->prefix, n,
            ignored);
  return rc;
}

int runlog_catch_up(runlog *log, err *e) {
  for (;;) {
    json_t *entry = NULL;
    err why = {0};
    int rc = read_entry(log, log->st.next, &entry, &why);
    if (rc == ERR_NOENT) return 0;
    if (rc == 0) rc = fold(log, entry, &why);
    json_decref(entry);
    if (rc < 0) return err_set(e, rc, "%s", why.text);
  }
}

int runlog_open(store *s, const char *prefix, runlog **out, err *e) {
  char key[STORE_KEY_MAX];
  *out = NULL;
  int rc = runlog_key_entry(prefix, 0, key, e);
  if (rc < 0) return rc;
  runlog *log = calloc(1, sizeof *log);
  if (!log) return err_set(e, ERR_NOMEM, "open a log: out of memory");
  log->s = s;
  log->term = log->st.term.n = RUNLOG_NONE;
  memcpy(log->prefix, prefix, strlen(prefix) + 1);
  rc = runlog_catch_up(log, e);
  if (rc < 0)
    runlog_close(log);
  else
    *out = log;
  return rc;
}

void runlog_close(runlog *log) {
  if (!log) return;
  runlog_state_free(&log->st);
  free(log);
}

const runlog_state *runlog_view(const runlog *log) {
  return &log->st;
}

int runlog_refresh(runlog *log, err *e) {
  int rc = runlog_catch_up(log, e);
  return rc < 0 ? rc : check_fence(log, e);
}

/* ---- appending ---- */

void runlog_set(json_t *object, const char *key, json_t *value, int *bad) {
  *bad |= json_object_set_new(object, key, value);
}

/* Completes an entry for the log's end and prints it. */
static int finish(const runlog *log, json_t *entry, const char *nonce, buf *out, err *e) {
  const io *io = log->s->io;
  int bad = 0;
  runlog_set(entry, "format", json_integer(RUNLOG_FORMAT), &bad);
  runlog_set(entry, "reader", json_integer(RUNLOG_READER), &bad);
  runlog_set(entry, "n", json_integer((json_int_t)log->st.next), &bad);
  runlog_set(entry, "nonce", json_string(nonce), &bad);
  runlog_set(entry, "time_ns", json_integer(io->now(io, IO_WALL)), &bad);
  if (bad) return err_set(e, ERR_NOMEM, "append to the log: out of memory");
  return js_print(entry, out, e);
}

/* Puts `text` as entry n until it is known whose entry stands there: 1 ours, 0 another's. A put
 * that failed may have been done all the same, or be done later: only what can be read counts, and
 * the same bytes may be put again, because they can only be made once. Our own entry that was seen
 * after a failure is put again too: what a store answers to be there already is durable, and what
 * merely can be read need not be. */
static int settle(const runlog *log, uint64_t n, const char *nonce, const buf *text, err *e) {
  char key[STORE_KEY_MAX];
  int rc = runlog_key_entry(log->prefix, n, key, e);
  for (int tries = 0; rc >= 0 && tries < PUT_TRIES; tries++) {
    err why = {0}, unread = {0};
    json_t *there = NULL;
    int put = log->s->ops->put(log->s, key, text->data, text->len, STORE_IF_ABSENT, &why);
    if (put == 0 && store_can(log->s, STORE_CAP_IF_ABSENT)) return 1;
    int got = read_entry(log, n, &there, &unread);
    const char *found = got == 0 ? json_string_value(json_object_get(there, "nonce")) : NULL;
    bool ours = found && strcmp(found, nonce) == 0;
    json_decref(there);
    if (got == 0 && (!ours || put == 0 || put == ERR_EXISTS)) return ours;
    if (got < 0 && got != ERR_NOENT && err_class_of(got) != ERR_CLASS_RETRYABLE)
      return err_set(e, got, "%s", unread.text);
    if (put < 0 && put != ERR_EXISTS && err_class_of(put) != ERR_CLASS_RETRYABLE)
      return err_set(e, put, "append to the log: %s", why.text);
    if (tries + 1 < PUT_TRIES) continue;
    if (put < 0 && put != ERR_EXISTS) return err_set(e, put, "append to the log: %s", why.text);
    rc = err_set(e, ERR_IO, "append to the log: %s was put, but cannot be read: %s", key,
                 unread.text);
  }
  return rc;
}

/* The entry before ours must still stand: a target that was moved away or unmounted would be made
 * anew by our put, as a log that begins in the middle and that nobody can read. */
static int check_ground(runlog *log, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  if (log->st.next == 0) return 0;
  int rc = runlog_key_entry(log->prefix, log->st.next - 1, key, e);
  if (rc == 0) rc = log->s->ops->head(log->s, key, &object, e);
  if (rc != ERR_NOENT) return rc;
  return err_set(e, ERR_NOSTORE,
                 "the log has vanished (%s is gone): was the target moved, removed or unmounted?",
                 key);
}

/* Appends one entry: 1 if it stands and is folded. 0 if another writer had the number: what is new
 * is folded, and the caller plans again from that. */
static int append(runlog *log, json_t *entry, err *e) {
  char nonce[33];
  buf text;
  buf_init(&text, ENTRY_BYTES_MAX);
  int rc = io_nonce(log->s->io, nonce);
  rc = rc < 0 ? err_sys(e, rc, "append to the log: random numbers")
              : finish(log, entry, nonce, &text, e);
  if (rc == 0) rc = check_ground(log, e);
  if (rc == 0) rc = settle(log, log->st.next, nonce, &text, e);
  if (rc == 0) rc = runlog_catch_up(log, e);
  if (rc == 1) {
    const char *ignored = NULL;
    rc = runlog_apply(&log->st, entry, &ignored, e);
    if (rc == 0) rc = 1;
    if (ignored) rc = err_set(e, ERR_INTERNAL, "our own log entry breaks a rule: %s", ignored);
  }
  buf_free(&text);
  return rc;
}

/* Plans and appends until the entry stands. */
int runlog_carry_out(runlog *log, runlog_plan_fn *plan, const runlog_request *r, err *e) {
  for (int i = 0; i < COLLISIONS_MAX; i++) {
    json_t *entry = NULL;
    int rc = check_fence(log, e);
    if (rc == 0) rc = plan(log, r, &entry, e);
    if (rc == 0 && entry) rc = append(log, entry, e);
    bool done = rc != 0 || !entry;
    json_decref(entry);
    if (done) return rc < 0 ? rc : 0;
  }
  return err_set(e, ERR_CONFLICT, "append to the log: lost %d races in a row", COLLISIONS_MAX);
}

/* A new entry; NULL adds up in `bad`, as in runlog_set(). */
json_t *runlog_new_entry(const char *type, uint64_t term, int *bad) {
  json_t *entry = json_object();
  runlog_set(entry, "type", json_string(type), bad);
  if (term != RUNLOG_NONE) runlog_set(entry, "term", json_integer((json_int_t)term), bad);
  return entry;
}

int runlog_hand_over(json_t *entry, int bad, json_t **out, err *e) {
  if (!bad) {
    *out = entry;
    return 0;
  }
  json_decref(entry);
  return err_set(e, ERR_NOMEM, "append to the log: out of memory");
}
