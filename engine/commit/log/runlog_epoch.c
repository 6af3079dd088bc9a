#include "runlog_epoch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fault.h"
#include "prims/fs.h"
#include "runlog_fold.h"

/* ---- keys ---- */

int runlog_key_epoch(const char *prefix, uint64_t epoch, char out[STORE_KEY_MAX], err *e) {
  char name[64];
  snprintf(name, sizeof name, RUNLOG_EPOCH_PLACE "/%" PRIu64, epoch);
  return runlog_join(prefix, name, out, e);
}

int runlog_key_place(const char *prefix, uint64_t epoch, uint64_t place, char out[STORE_KEY_MAX],
                     err *e) {
  char name[96];
  if (epoch == 0) return runlog_key_entry(prefix, place, out, e);
  snprintf(name, sizeof name, ".ckpt/log.%" PRIu64 "/%020" PRIu64 ".json", epoch, place);
  return runlog_join(prefix, name, out, e);
}

int runlog_key_at(const runlog *log, uint64_t n, char out[STORE_KEY_MAX], err *e) {
  const runlog_epochs *at = &log->at;
  uint64_t epoch = at->epoch, first = at->first;
  for (size_t i = at->old_count; n < first && i-- > 0;)
    epoch = at->old[i].epoch, first = at->old[i].first;
  return runlog_key_place(log->prefix, epoch, n == first ? 0 : n, out, e);
}

void runlog_epochs_free(runlog_epochs *at) {
  free(at->old);
  *at = (runlog_epochs){0};
}

/* ---- the object of an epoch ---- */

int runlog_epoch_parse(const char *text, size_t len, const char *what, runlog_epoch *out, err *e) {
  json_t *object = NULL;
  const char *nonce = NULL;
  *out = (runlog_epoch){0};
  int rc = len > RUNLOG_EPOCH_BYTES_MAX ? err_set(e, ERR_LIMIT, "%s is too large", what)
                                        : js_parse(text, len, what, &object, e);
  if (rc == 0) rc = js_check_reader(object, what, RUNLOG_READER, e);
  if (rc == 0) rc = runlog_get_number(object, "epoch", what, &out->epoch, e);
  if (rc == 0) rc = runlog_get_id(object, "host", what, out->host, sizeof out->host, e);
  if (rc == 0) rc = js_get_int(object, "pid", what, &out->pid, e);
  if (rc == 0) rc = js_get_int(object, "time_ns", what, &out->time_ns, e);
  if (rc == 0) rc = js_get_str(object, "nonce", what, &nonce, e);
  if (rc == 0) runlog_keep_nonce(nonce, out->nonce);
  json_decref(object);
  return rc;
}

/* Appends " by host H, pid P, at T", as far as it is known: an object that cannot be read is an
 * epoch all the same. */
static void add_repairer(const runlog *log, uint64_t epoch, buf *text) {
  runlog_epoch by = {0};
  buf said;
  char key[STORE_KEY_MAX], when[32] = "";
  struct tm parts;
  buf_init(&said, RUNLOG_EPOCH_BYTES_MAX);
  int rc = runlog_key_epoch(log->prefix, epoch, key, NULL);
  if (rc == 0) rc = log->s->ops->get(log->s, key, &said, NULL);
  if (rc == 0) rc = runlog_epoch_parse(said.data ? said.data : "", said.len, "epoch", &by, NULL);
  buf_free(&said);
  if (rc < 0) return;
  time_t seconds = (time_t)(by.time_ns / 1000000000);
  if (gmtime_r(&seconds, &parts)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
  buf_str(text, " by host ");
  js_name_escape(by.host, text);
  buf_fmt(text, ", pid %" PRId64 ", at %s", by.pid, when);
}

int runlog_epoch_fenced(const runlog *log, uint64_t epoch, err *e) {
  buf text;
  buf_init(&text, ERR_TEXT_MAX);
  buf_fmt(&text, "fenced: a repair of this log (epoch %" PRIu64 ") was begun", epoch);
  add_repairer(log, epoch, &text);
  buf_str(&text, "; what this process was about to do must be started anew when it is over");
  err_set(e, ERR_FENCED, "%s", buf_failed(&text) ? "fenced: the log was repaired" : text.data);
  buf_free(&text);
  return ERR_FENCED;
}

int runlog_epoch_open(const runlog *log, err *e) {
  if (log->at.begun > log->at.epoch) {
    buf text;
    buf_init(&text, ERR_TEXT_MAX);
    buf_fmt(&text, "a repair of this log (epoch %" PRIu64 ") was begun", log->at.begun);
    add_repairer(log, log->at.begun, &text);
    buf_str(&text, ", and has not ended: nothing is written until it has. If it runs no more, "
                   "`repair` begins it anew");
    err_set(e, ERR_HELD, "%s", buf_failed(&text) ? "the log is being repaired" : text.data);
    buf_free(&text);
    return ERR_HELD;
  }
  return log->st.moved > log->at.epoch ? runlog_epoch_fenced(log, log->st.moved, e) : 0;
}

/* ---- which one counts ---- */

static int note_epoch(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  uint64_t *newest = ctx, n = 0;
  const char *name = fs_base(key);
  size_t len = strspn(name, "0123456789");
  (void)object;
  if (is_prefix || len == 0 || len > 9 || name[len]) return 0;
  for (size_t i = 0; i < len; i++) n = 10 * n + (uint64_t)(name[i] - '0');
  if (n > *newest) *newest = n;
  return 0;
}

/* Gives the newest epoch that was begun; 0: none. Where there was no repair that takes one
 * request. */
int runlog_epoch_newest(store *s, const char *prefix, uint64_t *out, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  *out = 0;
  int rc = runlog_key_epoch(prefix, 1, key, e);
  if (rc < 0) return rc;
  rc = s->ops->head(s, key, &object, &why);
  if (rc == ERR_NOENT || rc == ERR_NOSTORE) return 0;
  if (rc == 0) rc = runlog_join(prefix, RUNLOG_EPOCH_PLACE, key, &why);
  if (rc == 0) rc = s->ops->list(s, key, true, note_epoch, out, &why);
  if (rc == 0 && *out == 0) *out = 1; /* a listing may be behind */
  return rc < 0 ? err_set(e, rc, "%s", *why.text ? why.text : err_text(rc)) : 0;
}

int runlog_eras_get(const json_t *entry, const char *what, runlog_epochs *out, err *e) {
  json_t *list = NULL, *item;
  size_t i;
  int rc = runlog_get_number(entry, "epoch", what, &out->epoch, e);
  if (rc == 0) rc = runlog_get_number(entry, "n", what, &out->first, e);
  if (rc == 0) rc = js_get_array(entry, "older", what, &list, e);
  if (rc == 0 && (json_array_size(list) == 0 || json_array_size(list) > RUNLOG_EPOCHS_MAX))
    rc = err_set(e, ERR_FORMAT, "%s: \"older\" does not name the epochs before it", what);
  if (rc < 0) return rc;
  out->old = calloc(json_array_size(list), sizeof *out->old);
  if (!out->old) return err_set(e, ERR_NOMEM, "%s: out of memory", what);
  json_array_foreach(list, i, item) {
    runlog_era *era = &out->old[i], *before = i ? era - 1 : NULL;
    rc = runlog_get_number(item, "epoch", what, &era->epoch, e);
    if (rc == 0) rc = runlog_get_number(item, "first", what, &era->first, e);
    if (rc < 0) return rc;
    if (era->epoch >= out->epoch || era->first >= out->first ||
        (before && (era->epoch <= before->epoch || era->first <= before->first)))
      return err_set(e, ERR_FORMAT, "%s: \"older\" is out of order", what);
    out->old_count++;
  }
  return 0;
}

int runlog_epoch_try(runlog *log, uint64_t epoch, err *e) {
  char key[STORE_KEY_MAX];
  json_t *entry = NULL;
  buf text = {0};
  runlog_state st = {0};
  runlog_epochs at = {0};
  err why = {0};
  int rc = runlog_key_place(log->prefix, epoch, 0, key, e);
  if (rc < 0) return rc;
  rc = runlog_read_place(log, epoch, 0, &text, &entry, &why);
  if (rc == ERR_NOENT) {
    buf_free(&text);
    return 0;
  }
  if (rc == 0 && !runlog_sum_holds(entry, &text))
    rc = err_set(&why, ERR_CORRUPT, "%s: its text is not the one that its sum was made of", key);
  const char *type = json_string_value(json_object_get(entry, "type"));
  bool closed = rc == 0 && type && strcmp(type, "moved") == 0;
  if (rc == 0 && !closed) rc = runlog_eras_get(entry, key, &at, &why);
  if (rc == 0 && !closed) rc = runlog_take_snapshot(entry, NULL, at.first, &st, &why);
  if (rc == 0 && !closed && at.epoch != epoch)
    rc = err_set(&why, ERR_FORMAT, "%s is of epoch %" PRIu64, key, at.epoch);
  json_decref(entry);
  if (rc == 0 && !closed) {
    log->st = st;
    log->at = at;
    runlog_take_last(log, &text);
  }
  buf_free(&text);
  if (rc == 0 && !closed) return 1;
  runlog_state_free(&st);
  runlog_epochs_free(&at);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

int runlog_epoch_enter(runlog *log, err *e) {
  uint64_t newest = 0;
  log->st.term.n = log->st.snapshot = RUNLOG_NONE;
  int rc = runlog_epoch_newest(log->s, log->prefix, &newest, e);
  if (newest < log->at.begun) newest = log->at.begun; /* a `moved` has told of it */
  if (newest > RUNLOG_EPOCHS_MAX) newest = RUNLOG_EPOCHS_MAX;
  for (uint64_t epoch = newest; rc == 0 && epoch > 0; epoch--) rc = runlog_epoch_try(log, epoch, e);
  if (FAULT("epoch-counts-early") && newest > log->at.epoch) log->at.epoch = newest;
  if (rc >= 0 && newest > log->at.epoch) log->at.begun = newest;
  return rc < 0 ? rc : 0;
}

bool runlog_epoch_again(runlog *log, int rc) {
  uint64_t moved = log->st.moved;
  if ((rc < 0 && rc != ERR_CORRUPT) || moved <= log->at.epoch || log->at.begun >= moved)
    return false;
  runlog_state_free(&log->st);
  runlog_epochs_free(&log->at);
  runlog_forget_proof(log);
  log->at.begun = moved;
  return true;
}

/* Takes the place of all that a handle knows; nobody's term goes on in another epoch. */
static void become(runlog *log, runlog *fresh) {
  runlog was = *log;
  *log = *fresh;
  log->term = was.term;
  *fresh = was;
}

int runlog_epoch_follow(runlog *log, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  runlog *fresh = NULL;
  err why = {0};
  int rc = runlog_key_epoch(log->prefix, log->at.epoch + 1, key, e);
  if (rc < 0) return rc;
  rc = log->s->ops->head(log->s, key, &object, &why);
  if ((rc == ERR_NOENT || rc == ERR_NOSTORE) && log->st.moved <= log->at.epoch) return 0;
  if (rc < 0 && rc != ERR_NOENT && rc != ERR_NOSTORE) return err_set(e, rc, "%s", why.text);
  rc = runlog_open(log->s, log->prefix, &fresh, e);
  if (rc == 0) become(log, fresh);
  runlog_close(fresh);
  return rc;
}
