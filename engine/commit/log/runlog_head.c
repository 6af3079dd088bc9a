/* runlog_head: the head of a log, an object that is replaced: where the newest snapshot is, and the
 * number and the digest of the newest commit. The first is a hint, which costs requests where it is
 * wrong, and nothing else. The second one is put after that entry stands, and never to a lower
 * number: so a log that ends before it has lost entries. */
#include <inttypes.h>
#include <string.h>

#include "runlog_fold.h"

static const char head_name[] = ".ckpt/head";
static const runlog_hint NOTHING = {.snapshot = RUNLOG_NONE, .commit = RUNLOG_NONE};

int runlog_key_head(const runlog *log, char out[STORE_KEY_MAX], err *e) {
  return runlog_join(log->prefix, head_name, out, e);
}

/* ---- reading ---- */

static int read_commit(const json_t *head, const char *what, runlog_hint *out, err *e) {
  const json_t *commit = json_object_get(head, "commit");
  const char *hex = NULL;
  if (!commit || !json_object_get(head, "sum")) return 0;
  int rc = runlog_get_number(commit, "n", what, &out->commit, e);
  if (rc == 0) rc = js_get_str(commit, "digest", what, &hex, e);
  return rc < 0 ? rc : digest_parse(HASH_XXH3_128, hex, &out->digest, e);
}

/* 1.0 puts a snapshot alone, without a sum. */
int runlog_hint_parse(const buf *text, const char *what, runlog_hint *out, err *e) {
  json_t *head = NULL;
  *out = NOTHING;
  int rc = js_read(text, what, RUNLOG_READER, &head, e);
  if (rc == 0 && !runlog_sum_holds(head, text))
    rc = err_set(e, ERR_FORMAT, "%s: its text is not the one that its sum was made of", what);
  if (rc == 0 && (json_object_get(head, "snapshot") || !json_object_get(head, "commit")))
    rc = runlog_get_number(head, "snapshot", what, &out->snapshot, e);
  if (rc == 0) rc = read_commit(head, what, out, e);
  if (rc < 0) *out = NOTHING;
  json_decref(head);
  return rc;
}

int runlog_take_hint(runlog *log, const store_ask *ask, err *e) {
  err why = {0};
  int rc = ask->rc;
  log->hint = NOTHING;
  if (rc == ERR_CANCELED) return err_set(e, rc, "%s", ask->why.text);
  if (rc == 0) rc = runlog_hint_parse(&ask->out, ask->key, &log->hint, &why);
  if (rc < 0 && rc != ERR_NOENT)
    log_say(&log->s->log, LOG_DEBUG, "%s: the head is not gone by: %s", log->prefix,
            *why.text ? why.text : ask->why.text);
  return 0;
}

/* A commit that the head names was there when the head was put. A store, or a cache of file names
 * between it and us, may need a while to show it. */
int runlog_check_end(runlog *log, err *e) {
  const io *io = log->s->io;
  int64_t pause = log->s->lag_ns / (RUNLOG_LOOKS - 1);
  int rc = 0;
  if (log->hint.commit == RUNLOG_NONE) return 0;
  for (int i = 1; rc == 0 && log->st.next <= log->hint.commit && i < RUNLOG_LOOKS; i++) {
    io->sleep(io, pause > RUNLOG_LOOK_PAUSE_NS ? pause : RUNLOG_LOOK_PAUSE_NS);
    rc = runlog_catch_up(log, e);
  }
  if (rc < 0 || log->st.next > log->hint.commit) return rc;
  runlog_note_damage(log,
                     "its head names entry %" PRIu64 ", a commit, and the log ends before entry "
                     "%" PRIu64 ": entries were lost",
                     log->hint.commit, log->st.next);
  return 0;
}

/* ---- writing ---- */

static void set_commit(json_t *head, const runlog_hint *h, int *bad) {
  char hex[HASH_HEX_MAX];
  json_t *commit = json_object();
  digest_hex(&h->digest, hex);
  runlog_set_number(commit, "n", h->commit, bad);
  js_set(commit, "digest", json_string(hex), bad);
  js_set(head, "commit", commit, bad);
}

static int print(const runlog_hint *h, buf *out, err *e) {
  json_t *head = json_object();
  int bad = 0;
  runlog_set_number(head, "format", RUNLOG_FORMAT, &bad);
  runlog_set_number(head, "reader", RUNLOG_READER_1, &bad);
  if (h->snapshot != RUNLOG_NONE) runlog_set_number(head, "snapshot", h->snapshot, &bad);
  if (h->commit != RUNLOG_NONE) set_commit(head, h, &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "the head of the log: out of memory") : 0;
  if (rc == 0) rc = js_print(head, out, e);
  if (rc == 0) rc = runlog_seal(out, e);
  json_decref(head);
  return rc;
}

/* What the head is to say, where another writer has put `there`. Who is behind that one leaves it its
 * commit, which is the higher number, and its snapshot, which is the newer one. */
static runlog_hint newer(const runlog *log, const runlog_hint *there) {
  runlog_hint h = log->newest;
  bool behind = there->commit != RUNLOG_NONE && there->commit >= log->st.next;
  h.snapshot = log->st.snapshot;
  if (h.snapshot == RUNLOG_NONE || behind) h.snapshot = there->snapshot;
  if (there->commit != RUNLOG_NONE && (h.commit == RUNLOG_NONE || there->commit > h.commit))
    h.commit = there->commit, h.digest = there->digest;
  return h;
}

static bool is_same(const runlog_hint *a, const runlog_hint *b) {
  return a->snapshot == b->snapshot && a->commit == b->commit &&
         (a->commit == RUNLOG_NONE || digest_equal(&a->digest, &b->digest));
}

static int get_head(const runlog *log, const char *key, runlog_hint *out, char tag[STORE_TAG_MAX],
                    err *e) {
  buf text;
  *out = NOTHING;
  *tag = 0;
  buf_init(&text, RUNLOG_HEAD_MAX);
  int rc = log->s->ops->get_tagged ? log->s->ops->get_tagged(log->s, key, &text, tag, e)
                                   : log->s->ops->get(log->s, key, &text, e);
  if (rc == 0) runlog_hint_parse(&text, key, out, NULL); /* a torn one says nothing */
  buf_free(&text);
  return rc == ERR_LIMIT ? 0 : rc;
}

/* One try: ERR_CONFLICT if another writer was quicker. Where nothing can be compared (no tag; NFS)
 * the last one wins, and the number may fall: what is between is unproven then. */
static int put_once(runlog *log, const char *key, err *e) {
  char tag[STORE_TAG_MAX];
  runlog_hint there;
  store *s = log->s;
  buf text;
  int rc = get_head(log, key, &there, tag, e);
  if (rc < 0 && rc != ERR_NOENT) return rc;
  bool absent = rc == ERR_NOENT;
  runlog_hint h = newer(log, &there);
  if (is_same(&h, &there)) return 0;
  buf_init(&text, RUNLOG_HEAD_MAX);
  rc = print(&h, &text, e);
  bool by_tag = rc == 0 && !absent && *tag;
  if (by_tag) rc = s->ops->replace_if(s, key, text.data, text.len, tag, e);
  if ((by_tag && rc == ERR_UNSUPPORTED) || (rc == 0 && !by_tag))
    rc = s->ops->put(s, key, text.data, text.len, absent ? STORE_IF_ABSENT : STORE_REPLACE, e);
  buf_free(&text);
  return rc == ERR_EXISTS || rc == ERR_NOENT ? ERR_CONFLICT : rc;
}

int runlog_put_head(runlog *log, err *e) {
  enum { TRIES = 3 };
  char key[STORE_KEY_MAX];
  int rc = runlog_key_head(log, key, e);
  if (rc < 0) return rc;
  rc = ERR_CONFLICT;
  for (int i = 0; rc == ERR_CONFLICT && i < TRIES; i++) rc = put_once(log, key, e);
  log->hint_due = rc < 0;
  return rc;
}

/* Nothing waits for it, and nothing is lost without it. */
void runlog_point_at_commit(runlog *log) {
  err why = {0};
  if (log->newest.commit == RUNLOG_NONE || log->damaged) return;
  if (runlog_put_head(log, &why) < 0)
    log_say(&log->s->log, LOG_DEBUG, "%s: the head does not name the newest commit yet: %s",
            log->prefix, why.text);
}
