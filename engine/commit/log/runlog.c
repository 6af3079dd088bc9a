/* runlog: the half of the log that writes to a store: appending one entry. runlog_read.c reads,
 * runlog_entries.c says what each operation appends. */
#include "runlog_fold.h"
#include "base/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
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

static int key_below(const char *prefix, const char *where, uint64_t attempt, uint64_t term,
                     char out[STORE_KEY_MAX], err *e) {
  char name[80];
  int len = snprintf(name, sizeof name, ".ckpt/%s/%" PRIu64, where, attempt);
  if (term != RUNLOG_NONE) snprintf(name + len, sizeof name - (size_t)len, "/%" PRIu64, term);
  return runlog_join(prefix, name, out, e);
}

int runlog_key_companions(const char *prefix, uint64_t attempt, uint64_t term,
                          char out[STORE_KEY_MAX], err *e) {
  return key_below(prefix, "with", attempt, term, out, e);
}

int runlog_key_parts(const runlog *log, uint64_t attempt, uint64_t term, char out[STORE_KEY_MAX],
                     err *e) {
  return key_below(log->prefix, "parts", attempt, term, out, e);
}

/* Finds where a nonce is kept; NULL: no such entry is known. */
static char *nonce_at(const runlog_state *st, uint64_t n) {
  runlog_attempt *a = runlog_attempt_at(st, n);
  runlog_commit *c = a ? NULL : runlog_commit_at(st, n);
  return a ? a->nonce : c ? c->nonce : NULL;
}

int runlog_nonce(runlog *log, uint64_t n, const char **out, err *e) {
  char *kept = n == 0 && log->st.next > 0 ? log->st.nonce : nonce_at(&log->st, n);
  json_t *entry = NULL;
  if (!kept) return err_set(e, ERR_INVAL, "the log has no attempt or commit %" PRIu64, n);
  int rc = *kept ? 0 : runlog_read_entry(log, n, &entry, e);
  if (rc < 0) return rc;
  if (!*kept) runlog_opt_nonce(entry, kept);
  json_decref(entry);
  *out = kept;
  return 0;
}

int runlog_attempt_id(runlog *log, uint64_t n, char out[RUNLOG_NONCE_MAX], err *e) {
  const char *nonce = NULL;
  int rc = runlog_nonce(log, n, &nonce, e);
  if (rc < 0) return rc;
  if (strlen(nonce) == 32 && strspn(nonce, "0123456789abcdef") == 32)
    snprintf(out, RUNLOG_NONCE_MAX, "%s", nonce);
  else
    snprintf(out, RUNLOG_NONCE_MAX, "%" PRIu64, n);
  return 0;
}

static bool says_when(int rc, const json_t *entry) {
  const char *type = json_string_value(json_object_get(entry, "type"));
  return rc == 0 && type && strcmp(type, "moved") != 0;
}

/* Where an entry was lost, and a repair has closed its place, that one's time says nothing: the next
 * one that stands came behind it. */
static int find_standing(const runlog *log, uint64_t *n, err *e) {
  for (; *n < log->at.first; ++*n) {
    json_t *entry = NULL;
    err why = {0};
    int rc = runlog_read_entry(log, *n, &entry, &why);
    bool stands = says_when(rc, entry);
    json_decref(entry);
    if (stands) return 0;
    if (rc < 0 && rc != ERR_NOENT && rc != ERR_FORMAT && rc != ERR_CORRUPT && rc != ERR_LIMIT)
      return err_set(e, rc, "%s", why.text);
  }
  return 0;
}

int runlog_entry_time(const runlog *log, uint64_t n, int64_t *out, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  int rc = find_standing(log, &n, e);
  if (rc == 0) rc = runlog_key_at(log, n, key, e);
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

/* Fails with ERR_FENCED after an `end`: nobody has a term any more. */
static int check_ended(const runlog *log, err *e) {
  if (!log->st.ended) return 0;
  buf text;
  buf_init(&text, ERR_TEXT_MAX);
  buf_fmt(&text, "fenced: the run was removed by log entry %" PRIu64 " of ", log->st.end);
  add_time(&text, log->st.end_ns);
  if (log->st.end_reason) buf_fmt(&text, " (%s)", log->st.end_reason);
  buf_fmt(&text, "; this writer (term %" PRIu64 ") must stop", log->term);
  err_set(e, ERR_FENCED, "%s", buf_failed(&text) ? "fenced: the run was removed" : text.data);
  buf_free(&text);
  return ERR_FENCED;
}

/* Fails with ERR_FENCED, and names the writer: somebody will have to find that process. */
static int check_fence(const runlog *log, err *e) {
  const runlog_term *now = &log->st.term;
  int rc = runlog_epoch_open(log, e);
  if (rc < 0) return rc;
  if (log->term == RUNLOG_NONE) return 0;
  if (FAULT("fence-not-checked")) return 0;
  if (now->n == log->term) return check_ended(log, e);
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

int runlog_check_run(const runlog *log, const runlog_title *title, err *e) {
  const runlog_state *st = &log->st;
  if (title->continue_run || st->ended || !*st->run_id || runlog_admits(st, title->id) ||
      (title->former && runlog_admits(st, title->former)) ||
      (title->vacant && title->vacant == st->next))
    return 0;
  const runlog_commit *last = runlog_newest(&log->st, NULL);
  buf text;
  buf_init(&text, ERR_TEXT_MAX);
  buf_str(&text, "this place belongs to run \"");
  js_name_escape(log->st.run_id, &text);
  buf_str(&text, "\", this is run \"");
  js_name_escape(title->id, &text);
  buf_str(&text, "\"; its last commit is ");
  if (last) {
    buf_str(&text, "\"");
    js_name_escape(last->dir, &text);
    buf_str(&text, "\" of ");
    add_time(&text, last->time_ns);
  } else {
    buf_str(&text, "none");
  }
  buf_str(&text, "; to go on with that run all the same: `continue_run` once, or `run_id` ");
  js_name_escape(st->run_id, &text);
  buf_str(&text, "; for a new one name another target (`to`)");
  err_set(e, ERR_OTHER_RUN, "%s",
          buf_failed(&text) ? "this place belongs to another run (`continue_run`)" : text.data);
  buf_free(&text);
  return ERR_OTHER_RUN;
}

void runlog_close(runlog *log) {
  if (!log) return;
  runlog_state_free(&log->st);
  free(log->damage);
  runlog_epochs_free(&log->at);
  free(log);
}

const runlog_state *runlog_view(const runlog *log) {
  return &log->st;
}

/* Who has no term goes on in a later epoch. The end is looked at last: what follows is done on it. */
static int refresh_reader(runlog *log, err *e) {
  err why = {0};
  int rc = runlog_epoch_follow(log, e);
  if (rc < 0) return rc;
  rc = runlog_catch_up(log, &why);
  if (rc < 0 && !log->st.moved) return err_set(e, rc, "%s", why.text);
  return log->st.moved > log->at.epoch ? runlog_epoch_follow(log, e) : rc;
}

/* What was read may be of another rank of ours, who acts on it only when he knows that no repair was
 * begun: so do we. */
int runlog_refresh(runlog *log, err *e) {
  uint64_t known = log->st.next;
  err why = {0};
  if (log->term == RUNLOG_NONE) return refresh_reader(log, e);
  int rc = runlog_catch_up(log, &why);
  if (rc < 0 && !log->st.moved) return err_set(e, rc, "%s", why.text);
  rc = check_fence(log, e);
  log->due |= log->st.next > known;
  return rc < 0 ? rc : runlog_behind_check(log, e);
}

int runlog_read_next(runlog *log, err *e) {
  err why = {0};
  int rc = runlog_catch_one(log, &why);
  if (rc < 0 && !log->st.moved) return err_set(e, rc, "%s", why.text);
  log->due |= rc == 1;
  int fenced = check_fence(log, e);
  if (fenced < 0) return fenced;
  return rc < 0 ? err_set(e, rc, "%s", why.text) : rc;
}

int runlog_refresh_whole(runlog *log, err *e) {
  int rc = runlog_refresh(log, e);
  return rc < 0 ? rc : runlog_prove_end(log, e);
}

void runlog_claim(runlog *log, uint64_t term) {
  log->term = term;
}

int runlog_follow(runlog *log, const char *launch, uint32_t world, err *e) {
  const runlog_writer *first = &log->st.term.writer;
  int rc = 1;
  if (!*launch) return err_set(e, ERR_INVAL, "to follow a launch its id is needed");
  while (log->term != RUNLOG_NONE && rc == 1) rc = runlog_read_next(log, e);
  if (log->term != RUNLOG_NONE) return rc;
  rc = runlog_refresh(log, e);
  if (rc < 0 || log->term != RUNLOG_NONE) return rc;
  if (log->st.term.n == RUNLOG_NONE || log->st.ended || strcmp(first->launch, launch) != 0)
    return err_set(e, ERR_NOENT, "rank 0 of this launch has not begun yet");
  if (world < 1) world = 1;
  if (first->world != world)
    return err_set(e, ERR_CONFLICT,
                   "rank 0 of this launch says that there are %" PRIu32 " ranks, this one %" PRIu32,
                   first->world, world);
  log->term = log->st.term.n;
  return 0;
}

/* ---- appending ---- */

static json_t *digest_new(const digest *d) {
  char hex[HASH_HEX_MAX];
  digest_hex(d, hex);
  return json_string(hex);
}

/* Completes an entry for the log's end and prints it. It is made anew for each place in the log, so
 * `prev` is of what stands before it there. */
static int finish(const runlog *log, json_t *entry, const char *nonce, const buf *state, buf *out,
                  err *e) {
  const io *io = log->s->io;
  int bad = 0;
  js_set(entry, "format", json_integer(RUNLOG_FORMAT), &bad);
  if (!json_object_get(entry, "reader"))
    js_set(entry, "reader", json_integer(RUNLOG_READER_1), &bad);
  runlog_set_number(entry, "n", log->st.next, &bad);
  js_set(entry, "nonce", json_string(nonce), &bad);
  js_set(entry, "time_ns", json_integer(io->now(io, IO_WALL)), &bad);
  if (log->last.len) js_set(entry, "prev", digest_new(&log->last), &bad);
  if (log->st.next > 0 && log->st.snapshot == log->st.next - 1)
    js_set(entry, "behind_snapshot", json_true(), &bad);
  if (bad) return err_set(e, ERR_NOMEM, "append to the log: out of memory");
  int rc = js_print(entry, out, e);
  if (rc == 0 && state) rc = runlog_put_state(out, state, e);
  if (rc == 0) rc = runlog_seal(out, e);
  return rc < 0 ? rc : runlog_check_size(entry, out->len, "append to the log", e);
}

/* Puts `text` as entry n until it is known whose entry stands there: 1 ours, 0 another's. A put
 * that failed may have been done all the same, or be done later: only what can be read counts, and
 * the same bytes may be put again, because they can only be made once. Our own entry that was seen
 * after a failure is put again too: what a store answers to be there already is durable, and what
 * merely can be read need not be. */
static int settle(const runlog *log, uint64_t n, const char *nonce, const buf *text, err *e) {
  char key[STORE_KEY_MAX];
  int rc = runlog_key_at(log, n, key, e);
  for (int tries = 0; rc >= 0 && tries < PUT_TRIES; tries++) {
    err why = {0}, unread = {0};
    json_t *there = NULL;
    store_how how = FAULT("log-put-replaces") ? STORE_REPLACE : STORE_IF_ABSENT;
    int put = log->s->ops->put(log->s, key, text->data, text->len, how, &why);
    if (put == 0 && store_can(log->s, STORE_CAP_IF_ABSENT)) return 1;
    int got = runlog_read_entry(log, n, &there, &unread);
    const char *found = got == 0 ? json_string_value(json_object_get(there, "nonce")) : NULL;
    bool ours = found && (strcmp(found, nonce) == 0 || FAULT("nonce-not-compared"));
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
  int rc = runlog_key_at(log, log->st.next - 1, key, e);
  if (rc == 0) rc = log->s->ops->head(log->s, key, &object, e);
  if (rc != ERR_NOENT) return rc;
  return err_set(e, ERR_NOSTORE,
                 "the log has vanished (%s is gone): was the target moved, removed or unmounted?",
                 key);
}

/* Takes the nonce of a new entry: its planner may have drawn one, else it is drawn here. */
static int take_nonce(const runlog *log, const json_t *entry, char out[33], err *e) {
  const char *drawn = json_string_value(json_object_get(entry, "nonce"));
  int rc = drawn ? 0 : io_nonce(log->s->io, out);
  if (drawn) snprintf(out, 33, "%s", drawn);
  return rc < 0 ? err_sys(e, rc, "append to the log: random numbers") : 0;
}

/* Appends one entry: 1 if it stands and is folded. 0 if another writer had the number: its entries
 * are folded, and the caller plans again from that. */
static int append(runlog *log, json_t *entry, const buf *state, err *e) {
  char nonce[33];
  buf text;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX);
  int rc = take_nonce(log, entry, nonce, e);
  if (rc == 0) rc = finish(log, entry, nonce, state, &text, e);
  if (rc == 0) rc = check_ground(log, e);
  log->due |= rc == 0;
  if (rc == 0) rc = settle(log, log->st.next, nonce, &text, e);
  if (rc == 0) rc = runlog_catch_up(log, e);
  if (rc == 1) {
    const char *ignored = NULL;
    rc = runlog_apply(&log->st, entry, &ignored, e);
    if (rc == 0) {
      runlog_take_last(log, &text);
      log->loose = false;
      runlog_note_commit(log, log->st.next - 1, entry);
    }
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
    if (rc == 0) rc = runlog_check_damage(log, e);
    if (rc == 0) rc = plan(log, r, &entry, e);
    if (rc == 0 && entry) rc = append(log, entry, r->state, e);
    bool done = rc != 0 || !entry;
    json_decref(entry);
    if (rc == ERR_CORRUPT && log->st.moved) rc = runlog_epoch_open(log, e);
    if (!done) continue;
    int asked = runlog_behind_check(log, rc < 0 ? NULL : e);
    return rc < 0 ? rc : asked;
  }
  return err_set(e, ERR_CONFLICT, "append to the log: lost %d races in a row", COLLISIONS_MAX);
}

/* A new entry; NULL adds up in `bad`, as in js_set(). */
json_t *runlog_new_entry(const char *type, uint64_t term, int *bad) {
  json_t *entry = json_object();
  js_set(entry, "type", json_string(type), bad);
  if (term != RUNLOG_NONE) runlog_set_number(entry, "term", term, bad);
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
