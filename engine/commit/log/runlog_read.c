/* runlog_read: reads a log from a store: the head, the newest snapshot, and the entries behind it.
 *
 * The names of entries are numbers, so a store that answers many requests at once is asked for all
 * that is likely to be there, and for some more: two that are absent, one behind the other, prove the
 * end. An absent one in front of one that was found is asked for again, since its answer may be
 * older. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runlog_impl.h"

enum {
  NESTS_MAX = 400000, /* in a snapshot: as many as the largest one of short names has */
  VALUES_MAX = 4000000,
  AHEAD = 8,       /* so many are asked for behind the last commit that the head names */
  GUESS = 64,      /* and behind a snapshot, where it names none */
  BATCH_MAX = 512, /* entries of one batch */
  BESIDE = 2       /* more in the first one: the head, and whether there was ever a repair */
};

/* ---- one entry ---- */

/* An entry of more than RUNLOG_ENTRY_MAX bytes must be a snapshot. */
int runlog_check_size(const json_t *entry, size_t len, const char *what, err *e) {
  if (len <= RUNLOG_ENTRY_MAX || runlog_is_snapshot(entry)) return 0;
  return err_set(e, ERR_LIMIT, "%s: a log entry is larger than %d bytes", what, RUNLOG_ENTRY_MAX);
}

bool runlog_is_snapshot(const json_t *entry) {
  const char *type = json_string_value(json_object_get(entry, "type"));
  return type && strcmp(type, "snapshot") == 0;
}

int runlog_parse_entry(const buf *text, const char *what, json_t **out, err *e) {
  const char *at = text->data ? text->data : "";
  bool large = text->len > RUNLOG_ENTRY_MAX;
  json_t *entry = NULL;
  int rc = large ? js_check_weight(at, text->len, NESTS_MAX, VALUES_MAX, what, e)
                 : js_weigh(at, text->len, what, e);
  if (rc == 0) rc = js_parse_large(at, text->len, what, &entry, e);
  if (rc == 0) rc = runlog_check_size(entry, text->len, what, e);
  if (rc == 0)
    *out = entry;
  else
    json_decref(entry);
  return rc;
}

static int parse(const store_ask *ask, json_t **out, err *e) {
  *out = NULL;
  if (ask->rc == 0) return runlog_parse_entry(&ask->out, ask->key, out, e);
  if (ask->rc == ERR_LIMIT)
    return err_set(e, ERR_LIMIT, "%s: a log entry is larger than %d bytes", ask->key,
                   RUNLOG_SNAPSHOT_MAX);
  return err_set(e, ask->rc, "%s", ask->why.text);
}

static void ask_again(const runlog *log, store_ask *ask) {
  buf_free(&ask->out);
  buf_init(&ask->out, RUNLOG_SNAPSHOT_MAX);
  ask->why = (err){0};
  ask->rc = log->s->ops->get(log->s, ask->key, &ask->out, &ask->why);
}

/* An answer may be cut, or have another byte: what no entry is, or none that was made so, is asked
 * for once more. */
static int parse_surely(const runlog *log, store_ask *ask, json_t **out, err *e) {
  err why = {0};
  int rc = parse(ask, out, &why);
  if (rc == ERR_FORMAT || (rc == 0 && !runlog_sum_holds(*out, &ask->out))) {
    json_decref(*out);
    ask_again(log, ask);
    rc = parse(ask, out, &why);
  }
  if (rc < 0 && e) *e = why;
  return rc;
}

static int read_key(const runlog *log, const char *key, buf *text, json_t **out, err *e) {
  store_ask ask = {.key = key};
  ask_again(log, &ask);
  int rc = parse_surely(log, &ask, out, e);
  if (text)
    *text = ask.out;
  else
    buf_free(&ask.out);
  return rc;
}

int runlog_read_raw(const runlog *log, uint64_t n, buf *text, json_t **out, err *e) {
  char key[STORE_KEY_MAX];
  *out = NULL;
  int rc = runlog_key_at(log, n, key, e);
  return rc < 0 ? rc : read_key(log, key, text, out, e);
}

int runlog_read_place(const runlog *log, uint64_t epoch, uint64_t place, buf *text, json_t **out,
                      err *e) {
  char key[STORE_KEY_MAX];
  *out = NULL;
  int rc = runlog_key_place(log->prefix, epoch, place, key, e);
  return rc < 0 ? rc : read_key(log, key, text, out, e);
}

int runlog_read_entry(const runlog *log, uint64_t n, json_t **out, err *e) {
  return runlog_read_raw(log, n, NULL, out, e);
}

/* ---- the next entry ---- */

static int fold(runlog *log, const json_t *entry, const buf *text, err *e) {
  const char *ignored = NULL;
  uint64_t n = log->st.next;
  bool holds = runlog_sum_holds(entry, text);
  runlog_prove(log, n, entry, text);
  int rc = runlog_apply(&log->st, entry, &ignored, e);
  if (rc < 0 && !holds) return runlog_unreadable(log, e);
  if (rc == 0 && ignored)
    log_say(&log->s->log, LOG_WARN, "%s%slog entry %" PRIu64 " is ignored: %s", log->prefix,
            *log->prefix ? ": " : "", n, ignored);
  return rc;
}

/* True if the next entry, which cannot be read, was a snapshot: the head says so, or the entry
 * behind it. */
static bool was_snapshot(const runlog *log) {
  json_t *behind = NULL;
  buf text = {0};
  if (log->st.next == 0 || !*log->st.run_id) return false;
  if (log->hint.snapshot == log->st.next) return true;
  bool was = runlog_read_raw(log, log->st.next + 1, &text, &behind, NULL) == 0 &&
             json_object_get(behind, "sum") && runlog_sum_holds(behind, &text) &&
             json_is_true(json_object_get(behind, "behind_snapshot"));
  json_decref(behind);
  buf_free(&text);
  return was;
}

/* A snapshot says nothing that is not before it, and that was read. So it is passed over where it is
 * torn or lost. What follows it may have seen another text of it. */
static void pass_over(runlog *log, const buf *text, const char *why) {
  log_say(&log->s->log, LOG_WARN,
          "%s%slog entry %" PRIu64
          ", a snapshot, is torn or lost, and the log is read without it: %s",
          log->prefix, *log->prefix ? ": " : "", log->st.next, why);
  log->st.snapshot = log->st.next++;
  log->last.len = 0;
  if (text) runlog_take_last(log, text);
  log->loose = true;
}

int runlog_pass_over_lost(runlog *log) {
  if (!was_snapshot(log)) return 0;
  pass_over(log, NULL, "it is not there");
  return 1;
}

/* Takes the next entry from its answer. */
static int take(runlog *log, store_ask *ask, err *e) {
  json_t *entry = NULL;
  err why = {0};
  int rc = parse_surely(log, ask, &entry, &why);
  bool torn = rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_CORRUPT;
  const char *wrong = rc == 0 ? runlog_judge_text(log->st.next, entry, &ask->out) : NULL;
  if ((wrong && runlog_is_snapshot(entry)) || ((wrong || torn) && was_snapshot(log))) {
    pass_over(log, &ask->out, wrong ? wrong : why.text);
    rc = 0;
  } else if (rc == 0) {
    rc = fold(log, entry, &ask->out, &why);
  }
  json_decref(entry);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

/* ---- many entries ---- */

typedef struct batch {
  uint64_t from;
  size_t count;
  store_ask *asks; /* of the entries, and behind them those of the head and the first epoch */
  char (*keys)[STORE_KEY_MAX];
} batch;

static bool is_wide(const runlog *log) {
  return log->s->ops->get_many != NULL;
}

static void batch_free(batch *b) {
  for (size_t i = 0; b->asks && i < b->count + BESIDE; i++) buf_free(&b->asks[i].out);
  free(b->asks);
  free(b->keys);
}

static int batch_ask(const runlog *log, uint64_t from, size_t count, bool beside, batch *b,
                     err *e) {
  *b = (batch){.from = from, .count = count};
  b->asks = calloc(count + BESIDE, sizeof *b->asks);
  b->keys = calloc(count + BESIDE, sizeof *b->keys);
  if (!b->asks || !b->keys) return err_set(e, ERR_NOMEM, "read a log: out of memory");
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < count; i++) rc = runlog_key_at(log, from + i, b->keys[i], e);
  if (rc == 0 && beside) rc = runlog_key_head(log, b->keys[count], e);
  if (rc == 0 && beside) rc = runlog_key_epoch(log->prefix, 1, b->keys[count + 1], e);
  for (size_t i = 0; i < count + BESIDE; i++) {
    b->asks[i].key = b->keys[i];
    buf_init(&b->asks[i].out, i < count ? RUNLOG_SNAPSHOT_MAX : RUNLOG_HEAD_MAX);
  }
  if (rc == 0) store_get_many(log->s, b->asks, count + (beside ? BESIDE : 0));
  return rc;
}

/* True if something stands there, whatever it is. */
static bool is_found(const store_ask *ask) {
  return ask->rc == 0 || ask->rc == ERR_LIMIT || ask->rc == ERR_CORRUPT;
}

/* An absent entry in front of one that was found: it was there first, so it is asked for again. A
 * store, or a cache of file names between it and us, may show them in another order for a moment. */
static int take_absent(runlog *log, store_ask *ask, err *e) {
  ask_again(log, ask);
  for (int i = 1; ask->rc == ERR_NOENT && i < RUNLOG_LOOKS; i++) {
    log->s->io->sleep(log->s->io, RUNLOG_LOOK_PAUSE_NS);
    ask_again(log, ask);
  }
  return ask->rc == ERR_NOENT ? runlog_hole(log, e) : take(log, ask, e);
}

/* Takes what was found, from the first on that is not known yet. Returns 1 at the end of the log, 0
 * if there may be more behind. */
static int batch_take(runlog *log, batch *b, size_t first, err *e) {
  size_t found = b->count;
  int rc = 0;
  while (found > first && !is_found(&b->asks[found - 1])) found--;
  for (size_t i = first; rc == 0 && i < found; i++) {
    store_ask *ask = &b->asks[i];
    rc = ask->rc == ERR_NOENT ? take_absent(log, ask, e) : take(log, ask, e);
    buf_free(&ask->out);
  }
  for (size_t i = found; rc == 0 && i < b->count && i < found + 2; i++)
    if (b->asks[i].rc != ERR_NOENT) rc = err_set(e, b->asks[i].rc, "%s", b->asks[i].why.text);
  if (rc < 0) return rc;
  return found < b->count && (b->count == 1 || found + 1 < b->count);
}

static int read_batch(runlog *log, size_t count, err *e) {
  batch b;
  int rc = batch_ask(log, log->st.next, count, false, &b, e);
  if (rc == 0) rc = batch_take(log, &b, 0, e);
  batch_free(&b);
  return rc;
}

/* Reads on to the end, so many entries in the first batch, and more in each one after it. */
static int read_on(runlog *log, size_t count, err *e) {
  int rc = 0;
  while (rc == 0) {
    rc = read_batch(log, is_wide(log) ? count : 1, e);
    count = count < AHEAD ? AHEAD : count < BATCH_MAX / AHEAD ? AHEAD * count : BATCH_MAX;
  }
  return rc < 0 ? rc : 0;
}

int runlog_catch_up(runlog *log, err *e) {
  return read_on(log, 1, e);
}

int runlog_catch_one(runlog *log, err *e) {
  int rc = read_batch(log, 1, e);
  return rc < 0 ? rc : rc == 0;
}

/* ---- the whole log ---- */

/* Where a repair was ever begun, the log may go on in another place. */
static int take_epoch(runlog *log, const store_ask *ask, err *e) {
  if (ask->rc == ERR_NOENT || ask->rc == ERR_NOSTORE) return 0;
  if (is_found(ask)) return runlog_epoch_enter(log, e);
  return err_set(e, ask->rc, "whether the log was repaired: %s", ask->why.text);
}

/* Reads the head and the first entries, and enters the epoch that counts. Returns 1 if those are
 * all. */
static int read_first(runlog *log, err *e) {
  batch b;
  bool known = log->at.begun > 0 || log->at.epoch > 0, entered;
  size_t count = is_wide(log) ? RUNLOG_SHORT : 0;
  int rc = batch_ask(log, log->st.next, count, true, &b, e);
  if (rc == 0 && !known) rc = take_epoch(log, &b.asks[count + 1], e);
  entered = !known && (log->at.begun > 0 || log->at.epoch > 0);
  if (rc == 0 && !entered) rc = runlog_take_hint(log, &b.asks[count], e);
  if (rc == 0 && !entered && count) rc = batch_take(log, &b, 0, e);
  batch_free(&b);
  if (rc == 0 && entered) return read_first(log, e);
  while (rc == 0 && !count && log->st.next < log->at.first + RUNLOG_SHORT)
    rc = read_batch(log, 1, e);
  return rc;
}

/* How many entries behind `n` are likely to be there, and some more. */
static size_t likely_behind(const runlog *log, uint64_t n, size_t otherwise) {
  uint64_t commit = log->hint.commit;
  if (commit == RUNLOG_NONE || commit < n) return otherwise;
  return commit - n < BATCH_MAX - AHEAD ? (size_t)(commit - n) + AHEAD : BATCH_MAX;
}

/* One that its sum proves is not made a tree of as a whole. */
static int parse_snapshot(const runlog *log, store_ask *ask, json_t **out, err *e) {
  if (ask->rc == 0 && runlog_parse_pieces(&ask->out, ask->key, out, NULL) == 0 &&
      json_object_get(*out, "sum") && runlog_sum_holds(*out, &ask->out))
    return 0;
  json_decref(*out);
  return parse_surely(log, ask, out, e);
}

/* Goes on from the snapshot that the head names, if it is further on than what was read, and behind
 * it. Returns 1 at the end. */
static int jump(runlog *log, err *e) {
  batch b;
  uint64_t n = log->hint.snapshot;
  json_t *entry = NULL;
  err why = {0};
  if (n == RUNLOG_NONE || n < log->st.next) return 0;
  size_t behind = is_wide(log) ? likely_behind(log, n, GUESS) : 0;
  int rc = batch_ask(log, n, 1 + behind, false, &b, e);
  if (rc == 0 && parse_snapshot(log, &b.asks[0], &entry, &why) == 0 &&
      runlog_begin_at(log, n, entry, &b.asks[0].out, &why) == 0) {
    buf_free(&b.asks[0].out);
    rc = behind ? batch_take(log, &b, 1, e) : 0;
  } else if (rc == 0) {
    log_say(&log->s->log, LOG_DEBUG, "%s: the log is read from its beginning: %s", log->prefix,
            why.text);
  }
  json_decref(entry);
  batch_free(&b);
  return rc;
}

static int read_all(runlog *log, bool whole, err *e) {
  log->st.term.n = log->st.snapshot = RUNLOG_NONE;
  int rc = log->at.begun > 0 ? runlog_epoch_enter(log, e) : 0; /* a `moved` has told of it */
  if (rc == 0) rc = read_first(log, e);
  if (rc == 0 && !whole) rc = jump(log, e);
  if (rc == 0) rc = read_on(log, whole ? BATCH_MAX : likely_behind(log, log->st.next, AHEAD), e);
  if (rc < 0) return rc;
  rc = is_wide(log) && log->st.next > 0 ? 0 : runlog_prove_end(log, e);
  return rc < 0 ? rc : runlog_check_end(log, e);
}

static int open_as(store *s, const char *prefix, bool whole, runlog **out, err *e) {
  char key[STORE_KEY_MAX];
  *out = NULL;
  int rc = runlog_key_entry(prefix, 0, key, e);
  if (rc < 0) return rc;
  runlog *log = calloc(1, sizeof *log);
  if (!log) return err_set(e, ERR_NOMEM, "open a log: out of memory");
  log->s = s;
  log->term = log->newest.commit = RUNLOG_NONE;
  memcpy(log->prefix, prefix, strlen(prefix) + 1);
  rc = read_all(log, whole, e);
  /* From one epoch to the next, where their objects are lost. */
  while (runlog_epoch_again(log, rc)) rc = read_all(log, whole, e);
  if (rc < 0)
    runlog_close(log);
  else
    *out = log;
  return rc < 0 ? rc : 0;
}

int runlog_open(store *s, const char *prefix, runlog **out, err *e) {
  return open_as(s, prefix, false, out, e);
}

int runlog_open_whole(store *s, const char *prefix, runlog **out, err *e) {
  return open_as(s, prefix, true, out, e);
}
