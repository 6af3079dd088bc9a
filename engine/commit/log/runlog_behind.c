/* runlog_behind: does the entry count that was put just now? Its place was free, and that has two
 * more reasons than that the log ended there: the log was repaired meanwhile, or an entry that the
 * writer had not read was lost. So before anybody acts on it four things are asked, side by side
 * where the store can: whether a later epoch was begun, whether the next number has an entry, which
 * commit the head names, and what stands before it.
 *
 * Whoever made the next entry had read this one, if that was there first; so it says by `prev`. Where
 * several entries behind each other were lost, the head may still name a commit behind them. Of two
 * who fill lost places that are neighbours, the one who came later sees the other: from behind, or
 * from before. */
#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "runlog_fold.h"

enum { EPOCH, NEXT, HEAD, GROUND, ASKS, TRIES = 3, SEARCHED = 64 };

typedef struct behind {
  store_ask asks[ASKS];
  char keys[ASKS][STORE_KEY_MAX];
  runlog_hint head;
} behind;

/* ---- asking ---- */

static void forget(behind *b) {
  for (int i = 0; i < ASKS; i++) buf_free(&b->asks[i].out);
}

/* Something stands there, or nothing does; all else is no answer. */
static bool is_answer(int rc) {
  return rc == 0 || rc == ERR_NOENT || rc == ERR_LIMIT || rc == ERR_CORRUPT;
}

static const store_ask *unanswered(const behind *b, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!is_answer(b->asks[i].rc)) return &b->asks[i];
  return NULL;
}

static void ask_once(const runlog *log, behind *b, size_t count) {
  forget(b);
  for (int i = 0; i < ASKS; i++) {
    b->asks[i] = (store_ask){.key = b->keys[i]};
    buf_init(&b->asks[i].out,
             i == NEXT || i == GROUND ? RUNLOG_SNAPSHOT_MAX : RUNLOG_EPOCH_BYTES_MAX);
  }
  store_get_many(log->s, b->asks, count);
}

/* The entry before the last one: nobody knows what an earlier epoch had there. */
static bool has_ground(const runlog *log) {
  return log->ground.len > 0 && log->st.next >= log->at.first + 2;
}

/* They decide whether what stands counts, so they are asked more than once. */
static int ask(const runlog *log, behind *b, size_t count, err *e) {
  uint64_t before = has_ground(log) ? log->st.next - 2 : 0;
  int rc = runlog_key_epoch(log->prefix, log->at.epoch + 1, b->keys[EPOCH], e);
  if (rc == 0) rc = runlog_key_at(log, log->st.next, b->keys[NEXT], e);
  if (rc == 0) rc = runlog_key_head(log, b->keys[HEAD], e);
  if (rc == 0) rc = runlog_key_at(log, before, b->keys[GROUND], e);
  if (rc < 0) return rc;
  const store_ask *none = NULL;
  for (int i = 0; i < TRIES; i++) {
    ask_once(log, b, count);
    none = unanswered(b, count);
    if (!none || err_class_of(none->rc) != ERR_CLASS_RETRYABLE) break;
  }
  return none ? err_set(e, none->rc, "whether the log is being repaired: %s", none->why.text) : 0;
}

/* ---- what stands behind ---- */

static bool is_newer(const runlog *log, const json_t *entry) {
  const json_t *term = json_object_get(entry, "term");
  return log->term != RUNLOG_NONE && json_is_integer(term) &&
         json_integer_value(term) > (json_int_t)log->term;
}

/* Has a newer term written anything from `n` on? Holes do not hide it. */
static bool has_successor(const runlog *log, uint64_t n) {
  bool newer = false;
  for (int i = 0, absent = 0; !newer && absent < TRIES && i < SEARCHED; i++) {
    json_t *entry = NULL;
    absent = runlog_read_entry(log, n + (uint64_t)i, &entry, NULL) == ERR_NOENT ? absent + 1 : 0;
    newer = is_newer(log, entry);
    json_decref(entry);
  }
  return newer;
}

/* The place of entry `n` - 1 was free because what stood there is lost. */
static int passed(runlog *log, uint64_t n, err *e) {
  runlog_note_damage(log,
                     "entry %" PRIu64
                     " or one beside it was lost, and others have gone on: what was "
                     "put there just now counts for nothing",
                     n > 0 ? n - 1 : 0);
  if (!has_successor(log, n)) return runlog_check_damage(log, e);
  return err_set(e, ERR_FENCED,
                 "fenced: a newer term has gone on from log entry %" PRIu64
                 " on, and entries before it were lost; this writer (term %" PRIu64
                 ") must stop. `repair` makes a new log of what is left",
                 n, log->term);
}

/* Is entry `n` made by somebody who had read the one before it? Returns 1 if so, with its digest in
 * *last; 0 if there is no such entry. One of 1.0 does not say. */
static int follow(runlog *log, uint64_t n, digest *last, err *e) {
  json_t *entry = NULL;
  buf text = {0};
  err why = {0};
  digest said = {0};
  int rc = runlog_read_raw(log, n, &text, &entry, &why);
  const char *type = json_string_value(json_object_get(entry, "type"));
  const char *prev = json_string_value(json_object_get(entry, "prev"));
  bool moved = type && strcmp(type, "moved") == 0;
  bool chained = rc == 0 && runlog_sum_holds(entry, &text) && prev &&
                 digest_parse(HASH_XXH3_128, prev, &said, NULL) == 0 && digest_equal(&said, last);
  if (rc == 0 && last->len == 0) chained = true; /* nobody can tell */
  if (rc == 0) rc = runlog_digest(text.data, text.len, last, &why);
  json_decref(entry);
  buf_free(&text);
  if (rc == ERR_NOENT) return 0;
  bool torn = rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_CORRUPT || rc == ERR_VERSION;
  if (rc < 0 && !torn) return err_set(e, rc, "%s", why.text);
  if (moved) return runlog_epoch_fenced(log, log->at.epoch + 1, e);
  return chained ? 1 : passed(log, n, e);
}

/* The head was put when that commit stood: a store may need a while to show it. */
static int follow_surely(runlog *log, uint64_t n, digest *last, err *e) {
  const io *io = log->s->io;
  int64_t pause = log->s->lag_ns / (RUNLOG_LOOKS - 1);
  int rc = follow(log, n, last, e);
  for (int i = 1; rc == 0 && i < RUNLOG_LOOKS; i++) {
    io->sleep(io, pause > RUNLOG_LOOK_PAUSE_NS ? pause : RUNLOG_LOOK_PAUSE_NS);
    rc = follow(log, n, last, e);
  }
  return rc == 0 ? passed(log, n, e) : rc;
}

static bool is_text(const store_ask *ask, const digest *expected) {
  digest sum;
  return ask->rc == 0 && runlog_digest(ask->out.data, ask->out.len, &sum, NULL) == 0 &&
         digest_equal(&sum, expected);
}

/* What this writer had read, or made, before its entry still stands there. An answer may be cut, and
 * a store may need a while to show a name. */
static int check_ground(runlog *log, behind *b, err *e) {
  const io *io = log->s->io;
  store_ask *ask = &b->asks[GROUND];
  if (!has_ground(log)) return 0;
  for (int i = 1; !is_text(ask, &log->ground) && i < RUNLOG_LOOKS; i++) {
    if (ask->rc == ERR_NOENT) io->sleep(io, RUNLOG_LOOK_PAUSE_NS);
    buf_free(&ask->out);
    buf_init(&ask->out, RUNLOG_SNAPSHOT_MAX);
    ask->why = (err){0};
    ask->rc = log->s->ops->get(log->s, ask->key, &ask->out, &ask->why);
  }
  if (is_text(ask, &log->ground)) return 0;
  if (!is_answer(ask->rc)) return err_set(e, ask->rc, "%s", ask->why.text);
  return passed(log, log->st.next - 1, e);
}

/* Goes from the last known entry on to the end. */
static int check_end(runlog *log, const behind *b, err *e) {
  uint64_t n = log->st.next, commit = b->head.commit;
  digest last = log->last;
  if (log->loose) last.len = 0;
  if (n > 0 && commit == n - 1 && last.len && !digest_equal(&last, &b->head.digest))
    return passed(log, n, e);
  int rc = is_answer(b->asks[NEXT].rc) && b->asks[NEXT].rc != ERR_NOENT ? 1 : 0;
  for (; rc >= 0; n++) {
    bool named = commit != RUNLOG_NONE && commit >= n;
    if (!named && rc == 0) return 0;
    rc = named ? follow_surely(log, n, &last, e) : follow(log, n, &last, e);
    if (rc == 0) return 0;
  }
  return rc;
}

static int check(runlog *log, behind *b, err *e) {
  int rc = ask(log, b, ASKS, e);
  if (rc < 0) return rc;
  if (b->asks[EPOCH].rc != ERR_NOENT) return runlog_epoch_fenced(log, log->at.epoch + 1, e);
  /* A head that is torn, or from before the last repair, says nothing. */
  b->head.commit = RUNLOG_NONE;
  if (b->asks[HEAD].rc == 0) runlog_hint_parse(&b->asks[HEAD].out, b->keys[HEAD], &b->head, NULL);
  rc = check_ground(log, b, e);
  return rc < 0 ? rc : check_end(log, b, e);
}

int runlog_behind_check(runlog *log, err *e) {
  bool passed_over =
      log->term == RUNLOG_NONE ? FAULT("epoch-not-read-guest") : FAULT("epoch-not-read");
  if (passed_over) log->due = false;
  if (!log->due) return 0;
  behind b = {0};
  int rc = check(log, &b, e);
  forget(&b);
  if (rc == 0) log->due = false;
  return rc;
}

/* True if the head names the last entry that was read, with its text. */
static bool is_named(const runlog *log) {
  char key[STORE_KEY_MAX];
  runlog_hint head = {.commit = RUNLOG_NONE};
  buf text;
  if (log->st.next == 0 || !log->last.len || log->loose || log->damaged) return false;
  buf_init(&text, RUNLOG_HEAD_MAX);
  if (runlog_key_head(log, key, NULL) == 0 && log->s->ops->get(log->s, key, &text, NULL) == 0)
    runlog_hint_parse(&text, key, &head, NULL);
  buf_free(&text);
  return head.commit == log->st.next - 1 && digest_equal(&head.digest, &log->last);
}

int runlog_confirm(runlog *log, err *e) {
  if (log->due && is_named(log)) log->due = false;
  return runlog_behind_check(log, e);
}

/* What the log has let go was asked for when that was appended: only a repair can keep it since. */
int runlog_ask_epoch(runlog *log, err *e) {
  if (log->due) return runlog_behind_check(log, e);
  behind b = {0};
  int rc = ask(log, &b, EPOCH + 1, e);
  if (rc == 0 && b.asks[EPOCH].rc != ERR_NOENT) rc = runlog_epoch_fenced(log, log->at.epoch + 1, e);
  forget(&b);
  log->due = rc < 0;
  return rc;
}

bool runlog_in_doubt(const runlog *log) {
  return log->due;
}
