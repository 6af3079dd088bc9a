#include "runlog_ruin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/vec.h"
#include "prims/fs.h"
#include "runlog_fold.h"

/* No log has so many entries: a name that says so is somebody else's. */
#define NUMBER_MAX (UINT64_C(1) << 52)

void runlog_ruin_free(runlog_ruin *r) {
  for (size_t i = 0; i < r->count; i++) json_decref(r->places[i].entry);
  free(r->places);
  runlog_epochs_free(&r->at);
  runlog_state_free(&r->st);
  *r = (runlog_ruin){0};
}

void runlog_trace_free(runlog_trace *t) {
  free(t->dir);
  free(t->unit);
  runlog_free_texts(&t->facts);
  *t = (runlog_trace){0};
}

void runlog_ruin_saw(runlog_ruin *r, uint64_t n) {
  if (n < NUMBER_MAX && (r->seen == RUNLOG_NONE || n > r->seen)) r->seen = n;
}

bool runlog_ruin_is_whole(const runlog_ruin *r) {
  return r->lost == 0 && r->torn == 0 && r->unchained == 0 && r->unnamed == 0 &&
         r->newest <= r->at.epoch && (r->seen == RUNLOG_NONE || r->seen < r->end) && !r->st.moved;
}

/* Where each term is lost, the sums tell: 1.0 writes none. */
bool runlog_ruin_heeds(const runlog_ruin *r) {
  if (r->term.n != RUNLOG_NONE) return r->term.writer.epochs;
  for (size_t i = 0; i < r->count; i++)
    if (r->places[i].entry && !json_object_get(r->places[i].entry, "sum")) return false;
  return true;
}

/* ---- which epochs, and which places ---- */

static int note_log(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  uint64_t *newest = ctx;
  const char *name = fs_base(key);
  (void)object;
  if (!is_prefix || strncmp(name, "log.", 4) != 0) return 0;
  size_t len = strspn(name + 4, "0123456789");
  uint64_t n = strtoull(name + 4, NULL, 10);
  if (len && len < 10 && !name[4 + len] && n > *newest) *newest = n;
  return 0;
}

/* Finds the newest epoch of which anything stands: its object may be lost, too. */
static int find_newest(runlog_ruin *r, err *e) {
  char key[STORE_KEY_MAX];
  int rc = runlog_epoch_newest(r->s, r->prefix, &r->newest, e);
  if (rc == 0) rc = runlog_join(r->prefix, ".ckpt", key, e);
  if (rc == 0) rc = r->s->ops->list(r->s, key, true, note_log, &r->newest, e);
  return rc == ERR_NOSTORE || rc == ERR_NOENT ? 0 : rc;
}

static int has_object(const runlog_ruin *r, uint64_t epoch, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  int rc = runlog_key_epoch(r->prefix, epoch, key, &why);
  if (rc == 0) rc = r->s->ops->head(r->s, key, &object, &why);
  if (rc == 0) return 1;
  return rc == ERR_NOENT || rc == ERR_NOSTORE ? 0 : err_set(e, rc, "%s", why.text);
}

static int count_unnamed(runlog_ruin *r, err *e) {
  int rc = 0;
  for (uint64_t epoch = 1; rc >= 0 && epoch <= r->newest; epoch++) {
    rc = has_object(r, epoch, e);
    r->unnamed += rc == 0;
  }
  return rc < 0 ? rc : 0;
}

/* Reads the first entry of the newest epoch that has one which can be read. */
static int find_base(runlog_ruin *r, err *e) {
  runlog log = {.s = r->s};
  memcpy(log.prefix, r->prefix, sizeof log.prefix);
  log.st.term.n = log.st.snapshot = RUNLOG_NONE;
  int rc = 0;
  for (uint64_t epoch = r->newest; rc == 0 && epoch > 0; epoch--) {
    err why = {0};
    rc = runlog_epoch_try(&log, epoch, &why);
    bool torn = rc == ERR_FORMAT || rc == ERR_CORRUPT || rc == ERR_LIMIT;
    r->torn += torn;
    if (torn) rc = 0;
    if (rc < 0) err_set(e, rc, "%s", why.text);
  }
  r->st = log.st;
  r->at = log.at;
  r->base = log.last;
  return rc < 0 ? rc : 0;
}

typedef struct listing {
  runlog_ruin *r;
  uint64_t epoch;
} listing;

static int note_place(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  const listing *l = ctx;
  runlog_ruin *r = l->r;
  const char *name = fs_base(key);
  (void)object;
  if (is_prefix || strlen(name) != 25 || strspn(name, "0123456789") != 20) return 0;
  uint64_t n = strtoull(name, NULL, 10);
  if (n >= NUMBER_MAX || (l->epoch > 0 && n == 0)) return 0;
  if (!VEC_ROOM(r->places, r->count, r->room)) return ERR_NOMEM;
  r->places[r->count++] = (runlog_place){.n = n, .epoch = l->epoch};
  return 0;
}

static int by_place(const void *a, const void *b) {
  const runlog_place *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

static int list_places(runlog_ruin *r, err *e) {
  char key[STORE_KEY_MAX], name[64];
  int rc = 0;
  for (uint64_t epoch = r->at.epoch; rc == 0 && epoch <= r->newest; epoch++) {
    listing l = {r, epoch};
    err why = {0};
    snprintf(name, sizeof name, epoch ? ".ckpt/log.%" PRIu64 : ".ckpt/log", epoch);
    rc = runlog_join(r->prefix, name, key, e);
    if (rc == 0) rc = r->s->ops->list(r->s, key, true, note_place, &l, &why);
    if (rc == ERR_NOENT || rc == ERR_NOSTORE) rc = 0;
    if (rc < 0)
      err_set(e, rc, "read what is left of the log: %s", *why.text ? why.text : err_text(rc));
  }
  if (r->count) qsort(r->places, r->count, sizeof *r->places, by_place);
  return rc;
}

/* ---- the entries ---- */

static bool is_entry(const json_t *entry, uint64_t n) {
  const json_t *said = json_object_get(entry, "n");
  return json_is_integer(said) && (uint64_t)json_integer_value(said) == n &&
         json_is_string(json_object_get(entry, "type")) &&
         json_is_string(json_object_get(entry, "nonce")) &&
         json_is_integer(json_object_get(entry, "time_ns"));
}

static bool has_type(const json_t *entry, const char *type) {
  const char *said = json_string_value(json_object_get(entry, "type"));
  return said && strcmp(said, type) == 0;
}

/* What is before a snapshot needs not be read again. */
static void take_base(runlog_ruin *r, size_t at) {
  runlog_state st = {0};
  runlog_place *p = &r->places[at];
  if (runlog_take_snapshot(p->entry, NULL, p->n, &st, NULL) < 0) {
    runlog_state_free(&st);
    p->rest = RUNLOG_REST_TORN;
    return;
  }
  /* Only a snapshot of 1.0 has no nonce; entry 0 was read then. */
  if (!*st.nonce) memcpy(st.nonce, r->st.nonce, sizeof st.nonce);
  runlog_state_free(&r->st);
  r->st = st;
  for (size_t i = 0; i <= at; i++) {
    json_decref(r->places[i].entry);
    r->places[i].entry = NULL;
  }
}

static void note_chain(runlog_place *p, const buf *text) {
  const char *prev = json_string_value(json_object_get(p->entry, "prev"));
  if (runlog_digest(text->data, text->len, &p->raw, NULL) < 0) p->raw.len = 0;
  if (prev && p->n > 0) snprintf(p->prev, sizeof p->prev, "%s", prev);
}

/* One that was exchanged for another, or put back from elsewhere. What follows a torn one, or a place
 * that a repair closed, had read another text there. */
static bool is_behind_another(const runlog_place *p, const digest *before) {
  char hex[HASH_HEX_MAX];
  if (!*p->prev || before->len == 0 || p->rest != RUNLOG_REST_ENTRY) return false;
  digest_hex(before, hex);
  return strcmp(p->prev, hex) != 0;
}

static bool is_unchained(const runlog_ruin *r, size_t i) {
  const runlog_place *p = &r->places[i], *before = i ? p - 1 : NULL;
  if (before && before->n + 1 == p->n)
    return before->rest == RUNLOG_REST_ENTRY && is_behind_another(p, &before->raw);
  return r->at.epoch && p->n == r->at.first + 1 && is_behind_another(p, &r->base);
}

static int read_place(runlog_ruin *r, const runlog *log, size_t at, err *e) {
  runlog_place *p = &r->places[at];
  buf text = {0};
  err why = {0};
  int rc = runlog_read_place(log, p->epoch, p->n, &text, &p->entry, &why);
  if (rc == 0 && runlog_judge_text(p->n, p->entry, &text)) rc = ERR_CORRUPT;
  note_chain(p, &text);
  buf_free(&text);
  if (rc == 0) rc = js_check_reader(p->entry, "an entry of the log", RUNLOG_READER, &why);
  if (rc == 0 && !is_entry(p->entry, p->n)) rc = ERR_FORMAT;
  if (rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_CORRUPT || rc == ERR_NOENT) {
    p->rest = RUNLOG_REST_TORN;
    json_decref(p->entry);
    p->entry = NULL;
    return 0;
  }
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (p->n == 0) runlog_opt_nonce(p->entry, r->st.nonce);
  if (has_type(p->entry, "moved")) {
    uint64_t to = 0;
    p->rest = RUNLOG_REST_CLOSED;
    /* Of a repair of which nothing else may stand any more. */
    if (runlog_get_number(p->entry, "epoch", "a closed place", &to, NULL) == 0 && to > r->newest &&
        to <= RUNLOG_EPOCHS_MAX)
      r->newest = to;
  }
  if (has_type(p->entry, "snapshot")) take_base(r, at);
  return 0;
}

/* Who had not read an entry that was lost has put another one in its place, as the next one tells.
 * Nobody has acted on it (runlog_behind.c): it says nothing, and the place counts as lost. One of 1.0
 * may have been acted on. */
static void pass_over_fillers(runlog_ruin *r) {
  for (size_t i = 1; i < r->count; i++) {
    runlog_place *before = &r->places[i - 1];
    if (!before->entry || !json_object_get(before->entry, "sum") || !is_unchained(r, i)) continue;
    if (has_type(before->entry, "run")) continue;
    json_decref(before->entry);
    before->entry = NULL;
    before->filler = true;
  }
  for (size_t i = 0; i < r->count; i++)
    if (r->places[i].filler) r->places[i].rest = RUNLOG_REST_TORN;
}

/* Counts what is missing, from the first number of the log to the last. */
static void count_lost(runlog_ruin *r) {
  uint64_t next = r->at.epoch ? r->at.first + 1 : 0;
  for (size_t i = 0; i < r->count; i++) {
    const runlog_place *p = &r->places[i];
    if (p->n > next) r->lost += p->n - next;
    if (p->n >= next) next = p->n + 1;
    r->torn += p->rest == RUNLOG_REST_TORN && !p->filler;
    r->unchained += is_unchained(r, i) || p->filler;
    if (p->rest == RUNLOG_REST_CLOSED) r->st.moved = r->newest ? r->newest : 1;
  }
  r->end = next;
  if (next > 0) runlog_ruin_saw(r, next - 1);
}

/* The newest commit has nothing behind it that tells whether it was exchanged, but the head: who had
 * not read a lost entry puts another one in its place, then nothing is missing, and no writer goes
 * on. */
static int compare_head(runlog_ruin *r, const runlog *log, err *e) {
  runlog_hint head;
  char key[STORE_KEY_MAX];
  err why = {0};
  buf text;
  int rc = runlog_key_head(log, key, e);
  if (rc < 0) return rc;
  buf_init(&text, RUNLOG_HEAD_MAX);
  rc = r->s->ops->get(r->s, key, &text, &why);
  bool names = rc == 0 && runlog_hint_parse(&text, key, &head, NULL) == 0;
  buf_free(&text);
  if (names) runlog_ruin_saw(r, head.snapshot);
  if (names) runlog_ruin_saw(r, head.commit);
  for (size_t i = 0; names && i < r->count; i++) {
    const runlog_place *p = &r->places[i];
    r->unchained += p->n == head.commit && p->rest == RUNLOG_REST_ENTRY && p->raw.len &&
                    !digest_equal(&p->raw, &head.digest);
  }
  /* Without a head nothing contradicts; one that cannot be asked for just now may. */
  return rc < 0 && err_class_of(rc) == ERR_CLASS_RETRYABLE ? err_set(e, rc, "%s", why.text) : 0;
}

static void find_term(runlog_ruin *r) {
  r->term = r->st.term;
  for (size_t i = 0; i < r->count; i++) {
    runlog_term term = {.n = r->places[i].n};
    if (!has_type(r->places[i].entry, "term")) continue;
    if (runlog_get_writer(r->places[i].entry, "a term", &term.writer, NULL) == 0) r->term = term;
  }
}

int runlog_ruin_read(store *s, const char *prefix, runlog_ruin *out, err *e) {
  *out = (runlog_ruin){.s = s, .seen = RUNLOG_NONE};
  int rc = runlog_join(prefix, ".ckpt/log", out->prefix, e);
  if (rc < 0) return rc;
  memcpy(out->prefix, prefix, strlen(prefix) + 1);
  out->st.term.n = out->st.snapshot = out->term.n = RUNLOG_NONE;
  rc = find_newest(out, e);
  if (rc == 0) rc = find_base(out, e);
  if (rc == 0) rc = list_places(out, e);
  runlog log = {.s = s};
  memcpy(log.prefix, out->prefix, sizeof log.prefix);
  for (size_t i = 0; rc == 0 && i < out->count; i++) rc = read_place(out, &log, i, e);
  if (rc == 0) rc = count_unnamed(out, e);
  if (rc == 0) pass_over_fillers(out);
  if (rc == 0) count_lost(out);
  if (rc == 0) rc = compare_head(out, &log, e);
  if (rc == 0) find_term(out);
  return rc;
}

/* ---- the new log ---- */

static json_t *document(const runlog_ruin *r, const char *type, uint64_t epoch, const char *nonce,
                        int *bad) {
  const io *io = r->s->io;
  json_t *object = json_object();
  js_set(object, "format", json_integer(RUNLOG_FORMAT), bad);
  js_set(object, "reader", json_integer(RUNLOG_READER), bad);
  if (type) js_set(object, "type", json_string(type), bad);
  runlog_set_number(object, "epoch", epoch, bad);
  js_set(object, "nonce", json_string(nonce), bad);
  js_set(object, "time_ns", json_integer(io->now(io, IO_WALL)), bad);
  return object;
}

/* Prints and releases it. */
static int print(json_t *object, int bad, buf *out, err *e) {
  int rc = bad ? err_set(e, ERR_NOMEM, "repair a log: out of memory") : js_print(object, out, e);
  json_decref(object);
  return rc;
}

/* Puts it until it is known whether it stands. 0: it does; ERR_EXISTS: something else does. */
static int put_once(const runlog_ruin *r, const char *key, const buf *text, err *e) {
  enum { TRIES = 3 };
  int rc = 0;
  for (int i = 0; i < TRIES; i++) {
    err why = {0};
    buf there;
    buf_init(&there, RUNLOG_SNAPSHOT_MAX);
    int put = r->s->ops->put(r->s, key, text->data, text->len, STORE_IF_ABSENT, &why);
    bool proven = put == 0 && store_can(r->s, STORE_CAP_IF_ABSENT);
    rc = proven ? 0 : r->s->ops->get(r->s, key, &there, NULL);
    bool ours = rc == 0 && !proven && there.len == text->len &&
                memcmp(there.data, text->data, text->len) == 0;
    buf_free(&there);
    if (proven || (ours && (put == 0 || put == ERR_EXISTS))) return 0;
    if (rc == 0 && !ours) return err_set(e, ERR_EXISTS, "%s is there already", key);
    rc = err_set(e, put < 0 ? put : ERR_IO, "repair: %s", *why.text ? why.text : key);
    if (put < 0 && put != ERR_EXISTS && err_class_of(put) != ERR_CLASS_RETRYABLE) break;
  }
  return rc;
}

/* Puts the object of an epoch; its text is `text`, which the caller frees. */
static int put_epoch(const runlog_ruin *r, uint64_t epoch, const char *nonce, buf *text, err *e) {
  char key[STORE_KEY_MAX], host[RUNLOG_ID_MAX] = "";
  int bad = 0;
  buf_init(text, RUNLOG_EPOCH_BYTES_MAX);
  if (gethostname(host, sizeof host - 1) < 0) host[0] = 0;
  json_t *object = document(r, NULL, epoch, nonce, &bad);
  js_set(object, "host", js_name_new(host), &bad);
  runlog_set_number(object, "pid", (uint64_t)getpid(), &bad);
  int rc = print(object, bad, text, e);
  if (rc == 0) rc = runlog_key_epoch(r->prefix, epoch, key, e);
  return rc == 0 ? put_once(r, key, text, e) : rc;
}

int runlog_ruin_name(runlog_ruin *r, const char *nonce, err *e) {
  int rc = 0;
  if (r->unnamed == 0) return 0;
  for (uint64_t epoch = 1; rc >= 0 && epoch <= r->newest; epoch++) {
    buf text = {0};
    rc = has_object(r, epoch, e);
    if (rc == 0) rc = put_epoch(r, epoch, nonce, &text, e);
    buf_free(&text);
    if (rc == ERR_EXISTS) rc = 0; /* another repair was faster */
  }
  if (rc < 0) return rc;
  r->unnamed = 0;
  return 0;
}

int runlog_ruin_claim(runlog_ruin *r, const char *nonce, uint64_t *epoch, char hex[HASH_HEX_MAX],
                      err *e) {
  digest sum;
  buf text = {0};
  *epoch = (r->newest > r->at.epoch ? r->newest : r->at.epoch) + 1;
  int rc = put_epoch(r, *epoch, nonce, &text, e);
  if (rc == 0) rc = hash_bytes(HASH_XXH3_128, text.data, text.len, &sum, e);
  if (rc == 0) digest_hex(&sum, hex);
  if (rc == 0) r->newest = *epoch;
  buf_free(&text);
  return rc;
}

/* Returns 1 if something stands there by now. */
static int close_place(const runlog_ruin *r, uint64_t in, uint64_t n, uint64_t epoch, err *e) {
  char key[STORE_KEY_MAX], nonce[33];
  int bad = 0;
  buf text;
  err why = {0};
  buf_init(&text, RUNLOG_EPOCH_BYTES_MAX);
  int rc = io_nonce(r->s->io, nonce);
  if (rc < 0) return err_sys(e, rc, "repair a log: random numbers");
  json_t *entry = document(r, "moved", epoch, nonce, &bad);
  runlog_set_number(entry, "n", n, &bad);
  rc = print(entry, bad, &text, e);
  if (rc == 0) rc = runlog_key_place(r->prefix, in, n, key, e);
  if (rc == 0) rc = put_once(r, key, &text, &why);
  buf_free(&text);
  if (rc == ERR_EXISTS) return 1;
  return rc < 0 && *why.text ? err_set(e, rc, "%s", why.text) : rc;
}

/* Closes the first place of a log that was never begun. Returns 1 if it was begun by now. */
static int close_unbegun(const runlog_ruin *r, uint64_t in, uint64_t epoch, err *e) {
  runlog log = {.s = r->s};
  json_t *entry = NULL;
  err why = {0};
  memcpy(log.prefix, r->prefix, sizeof log.prefix);
  int rc = runlog_read_place(&log, in, 0, NULL, &entry, &why);
  json_decref(entry);
  if (rc == ERR_NOENT) return close_place(r, in, 0, epoch, e);
  /* What is torn there, or closed, was so when all was read. */
  return rc < 0 && err_class_of(rc) == ERR_CLASS_RETRYABLE ? err_set(e, rc, "%s", why.text) : 0;
}

int runlog_ruin_close(const runlog_ruin *r, uint64_t epoch, err *e) {
  uint64_t next = r->at.epoch ? r->at.first + 1 : 0, in = r->at.epoch;
  int rc = 0;
  if (FAULT("no-plug")) return 0;
  for (size_t i = 0; rc == 0 && i < r->count; i++) {
    const runlog_place *p = &r->places[i];
    for (; rc == 0 && next < p->n; next++) rc = close_place(r, in, next, epoch, e);
    if (p->n >= next) next = p->n + 1;
    in = p->epoch;
  }
  if (rc == 0) rc = close_place(r, in, next, epoch, e);
  for (uint64_t i = r->at.epoch + 1; rc == 0 && i < epoch; i++) rc = close_unbegun(r, i, epoch, e);
  return rc;
}

static json_t *older_new(const runlog_ruin *r, int *bad) {
  json_t *list = json_array();
  uint64_t epoch = r->at.epoch;
  for (size_t i = 0; i < r->at.old_count; i++)
    *bad |=
        json_array_append_new(list, json_pack("{s:I,s:I}", "epoch", (json_int_t)r->at.old[i].epoch,
                                              "first", (json_int_t)r->at.old[i].first));
  *bad |= json_array_append_new(
      list, json_pack("{s:I,s:I}", "epoch", (json_int_t)epoch, "first", (json_int_t)r->at.first));
  for (size_t i = 0; i < r->count; i++) {
    if (r->places[i].epoch == epoch) continue;
    epoch = r->places[i].epoch;
    *bad |= json_array_append_new(list, json_pack("{s:I,s:I}", "epoch", (json_int_t)epoch, "first",
                                                  (json_int_t)r->places[i].n));
  }
  return list;
}

/* The term of the repair, and the entry behind it, have numbers above all that were seen. */
static void open_term(runlog_ruin *r, const runlog_writer *who) {
  runlog_state *st = &r->st;
  uint64_t n = r->seen == RUNLOG_NONE || FAULT("numbers-from-zero") ? 0 : r->seen + 1;
  st->term = (runlog_term){.n = n, .time_ns = r->s->io->now(r->s->io, IO_WALL), .writer = *who};
  st->term.writer.epochs = true;
  st->next = n + 1;
  st->moved = 0;
  /* What the repair is about to commit was perhaps committed before: no guest gives it up. */
  for (size_t i = 0; i < st->attempt_count; i++)
    if (st->attempts[i].fate == RUNLOG_OPEN) st->attempts[i].owner = n;
}

int runlog_ruin_begin(runlog_ruin *r, uint64_t epoch, const char *hex, const char *nonce,
                      const runlog_writer *who, err *e) {
  char key[STORE_KEY_MAX], sum[HASH_HEX_MAX] = "";
  int bad = 0;
  buf text, state;
  buf_init(&text, RUNLOG_SNAPSHOT_MAX);
  buf_init(&state, RUNLOG_SNAPSHOT_MAX);
  open_term(r, who);
  int rc = runlog_state_digest(&r->st, sum, e);
  if (rc == 0) rc = runlog_state_print(&r->st, js_print, &state, e);
  json_t *entry = document(r, "snapshot", epoch, nonce, &bad);
  runlog_set_number(entry, "n", r->st.next, &bad);
  runlog_set_number(entry, "term", r->st.term.n, &bad);
  runlog_set_number(entry, "through", r->st.next - 1, &bad);
  js_set(entry, "prev", json_string(hex), &bad);
  js_set(entry, "older", older_new(r, &bad), &bad);
  js_set(entry, "digest", json_string(sum), &bad);
  js_set(entry, "state", json_null(), &bad); /* its place */
  int printed = print(entry, bad, &text, rc < 0 ? NULL : e);
  if (rc == 0) rc = printed;
  if (rc == 0) rc = runlog_put_state(&text, &state, e);
  if (rc == 0) rc = runlog_seal(&text, e);
  if (rc == 0) rc = runlog_key_place(r->prefix, epoch, 0, key, e);
  if (rc == 0) rc = put_once(r, key, &text, e);
  buf_free(&state);
  buf_free(&text);
  return rc;
}
