/* runlog_fold: the pure half of the log, which folds one entry after the other into the state.
 * Every reader, of any version, must come to the same state, so the entries that are ignored here
 * are as much part of the format as those that are folded. */
#include "runlog_fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(const runlog_head *h, err *e) {
  return err_set(e, ERR_NOMEM, "%s: out of memory", h->what);
}

/* ---- who may ---- */

/* Before the first term there is no newest one: an entry without a term must not pass for it. */
bool runlog_of_newest_term(const runlog_state *s, const runlog_head *h) {
  return h->term != RUNLOG_NONE && h->term == s->term.n && !s->ended;
}

const char *runlog_judge_writer(const runlog_state *s, const runlog_head *h) {
  if (h->term == RUNLOG_NONE || runlog_of_newest_term(s, h)) return NULL;
  return "its writer is not of the newest term";
}

/* ---- run and term ---- */

static int fold_run(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                    err *e) {
  char id[RUNLOG_ID_MAX];
  int rc = runlog_get_id(entry, "run", h->what, id, sizeof id, e);
  if (rc < 0) return rc;
  if (id[0] == 0) return err_set(e, ERR_FORMAT, "%s: the run's id is empty", h->what);
  if (h->n != 0) *why = "only the first entry names the run";
  if (*why) return 0;
  memcpy(s->run_id, id, sizeof id);
  runlog_keep_nonce(h->nonce, s->nonce);
  return 0;
}

/* A term does not change the run that the place belongs to: only an `end` makes it free. */
static const char *judge_term(const runlog_state *s, const runlog_head *h, const char *run) {
  if (h->term != h->n) return "a term is named by the number of its own entry";
  if (s->ended) return *run ? NULL : "the run has ended, and it does not say which one begins";
  return *run && strcmp(run, s->run_id) != 0 ? "the place belongs to another run" : NULL;
}

/* Other flags make another state of the training: until the user says that it is the same, what
 * was saved before is not this command's to drop. */
static void take_flags(runlog_state *s, const runlog_writer *who, uint64_t n) {
  if (who->any_flags)
    s->flags_since = 0;
  else if (*who->flags && *s->flags && strcmp(who->flags, s->flags) != 0)
    s->flags_since = n;
  if (*who->flags) memcpy(s->flags, who->flags, sizeof s->flags);
}

static int take_joined(runlog_state *s, const char *id, const runlog_head *h, err *e) {
  if (!*id || runlog_admits(s, id) || s->joined_count >= RUNLOG_JOINED_MAX) return 0;
  return runlog_add_joined(s, id) ? 0 : no_memory(h, e);
}

static int fold_term(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                     err *e) {
  runlog_term term = {.n = h->n, .time_ns = h->time_ns};
  char run[RUNLOG_ID_MAX] = "", joins[RUNLOG_ID_MAX] = "";
  int rc = runlog_get_writer(entry, h->what, &term.writer, e);
  if (rc == 0 && json_object_get(entry, "joins"))
    rc = runlog_get_id(entry, "joins", h->what, joins, sizeof joins, e);
  if (rc == 0 && json_object_get(entry, "run"))
    rc = runlog_get_id(entry, "run", h->what, run, sizeof run, e);
  if (rc < 0) return rc;
  *why = judge_term(s, h, run);
  if (*why) return 0;
  rc = s->ended ? 0 : take_joined(s, joins, h, e);
  if (rc < 0) return rc;
  s->term = term;
  take_flags(s, &term.writer, h->n);
  if (!s->ended) return 0;
  s->joined_count = 0;
  memcpy(s->run_id, run, sizeof run);
  free(s->end_reason);
  s->end_reason = NULL;
  s->ended = false;
  s->since = h->n;
  return 0;
}

/* ---- attempts ---- */

enum { DIGITS = 16 }; /* of the digest of a name that was cut */

/* Cuts so many bytes off a text's end at least, and no UTF-8 character in two. */
static size_t cut_len(const char *text, size_t room) {
  size_t len = strlen(text) < room ? strlen(text) : room;
  for (int i = 0; i < 3 && len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80; i++) len--;
  return len;
}

int runlog_later_dir(const char *unit, uint64_t n, char out[STORE_KEY_MAX], err *e) {
  digest sum;
  char hex[HASH_HEX_MAX], number[32];
  int tail = snprintf(number, sizeof number, ".~%" PRIu64, n);
  snprintf(out, STORE_KEY_MAX, "%s%s", unit, number);
  if (strlen(out) <= RUNLOG_DIR_MAX) return 0;
  int rc = hash_bytes(HASH_XXH3_128, unit, strlen(unit), &sum, e);
  if (rc < 0) return rc;
  digest_hex(&sum, hex);
  size_t len = cut_len(unit, RUNLOG_DIR_MAX - (size_t)tail - 1 - DIGITS);
  snprintf(out, STORE_KEY_MAX, "%.*s~%.*s%s", (int)len, unit, DIGITS, hex, number);
  return 0;
}

bool runlog_is_short_dir(const char *unit, const char *dir) {
  size_t len = strlen(unit);
  return strncmp(dir, unit, len) != 0;
}

/* Two attempts never share a directory: its name is derived from the number, which only this entry
 * has. */
const char *runlog_judge_dir(const runlog_state *s, uint64_t n, const char *unit, const char *dir) {
  char later[STORE_KEY_MAX];
  if (runlog_unit_check(unit, NULL) < 0) return "its unit's name is not allowed";
  if (runlog_later_dir(unit, n, later, NULL) == 0 && strcmp(dir, later) == 0) return NULL;
  if (strcmp(dir, unit) != 0) return "its directory's name does not follow from its unit's";
  return runlog_plain_free(s, unit) ? NULL : "its directory may belong to another attempt";
}

static int fold_attempt(runlog_state *s, const json_t *entry, const runlog_head *h,
                        const char **why, err *e) {
  runlog_attempt fresh = {.n = h->n, .owner = h->term, .fate = RUNLOG_OPEN};
  int64_t reader = 0;
  int rc = js_get_name(entry, "unit", h->what, &fresh.unit, e);
  if (rc == 0) rc = js_get_name(entry, "dir", h->what, &fresh.dir, e);
  if (rc == 0) rc = runlog_get_world(entry, h->what, &fresh.world, e);
  if (rc == 0) rc = js_get_int(entry, "reader", h->what, &reader, e);
  if (rc < 0) goto out;
  *why = runlog_of_newest_term(s, h) ? runlog_judge_dir(s, h->n, fresh.unit, fresh.dir)
                                     : "its writer is not of the newest term";
  /* 1.0 passes over such a name: all readers do, unless the entry keeps it from reading on. */
  if (!*why && reader < RUNLOG_READER && runlog_is_short_dir(fresh.unit, fresh.dir))
    *why = "its directory's name does not follow from its unit's";
  if (*why) goto out;
  runlog_keep_nonce(h->nonce, fresh.nonce);
  fresh.plain_keys = runlog_opt_plain(entry);
  rc = runlog_add_attempt(s, &fresh);
  if (rc == 0) return 0;
  no_memory(h, e);
out:
  free(fresh.unit);
  free(fresh.dir);
  return rc;
}

int runlog_open_attempt(const runlog_state *s, const json_t *entry, const runlog_head *h,
                        runlog_attempt **out, const char **why, err *e) {
  uint64_t n;
  int rc = runlog_get_number(entry, "attempt", h->what, &n, e);
  if (rc < 0) return rc;
  *out = runlog_attempt_at(s, n);
  if (!*out)
    *why = "there is no such attempt";
  else if ((*out)->fate != RUNLOG_OPEN)
    *why = "nothing follows a sweep or a commit";
  return 0;
}

static int fold_adopt(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                      err *e) {
  runlog_attempt *attempt;
  int rc = runlog_open_attempt(s, entry, h, &attempt, why, e);
  if (rc < 0 || *why) return rc;
  if (!runlog_of_newest_term(s, h))
    *why = "its writer is not of the newest term";
  else if (attempt->owner == s->term.n)
    *why = "the attempt's owner is the newest term";
  else
    attempt->owner = h->term;
  return 0;
}

static int fold_sweep(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                      err *e) {
  runlog_attempt *attempt;
  int rc = runlog_open_attempt(s, entry, h, &attempt, why, e);
  if (rc < 0 || *why) return rc;
  if (attempt->owner == s->term.n && h->term != attempt->owner)
    *why = "the attempt's owner may still go on with it";
  else
    attempt->fate = RUNLOG_SWEPT;
  return 0;
}

/* ---- the whole log ---- */

/* The checkpoints are gone, but their names never come back into use: so the lists stay. */
static int fold_end(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                    err *e) {
  *why = s->ended ? "the run has ended already" : runlog_judge_writer(s, h);
  if (*why) return 0;
  int rc = runlog_get_text(entry, "reason", h->what, &s->end_reason, e);
  if (rc < 0) return rc;
  for (size_t i = 0; i < s->attempt_count; i++)
    if (s->attempts[i].fate == RUNLOG_OPEN) s->attempts[i].fate = RUNLOG_SWEPT;
  for (size_t i = 0; i < s->commit_count; i++) s->commits[i].life = RUNLOG_DELETED;
  s->ended = true;
  s->end = h->n;
  s->end_ns = h->time_ns;
  return 0;
}

/* A reader of all entries before a snapshot knows better than the snapshot, so its state is not
 * read here. */
static int fold_snapshot(runlog_state *s, const json_t *entry, const runlog_head *h,
                         const char **why, err *e) {
  uint64_t through;
  int rc = runlog_get_number(entry, "through", h->what, &through, e);
  if (rc < 0) return rc;
  if (!runlog_of_newest_term(s, h))
    *why = "its writer is not of the newest term";
  else if (through + 1 != h->n)
    *why = "it is not of the state before it";
  else
    s->snapshot = h->n;
  return 0;
}

/* A repair puts it where an entry was lost, and behind the last one. */
static int fold_moved(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                      err *e) {
  uint64_t epoch;
  (void)why;
  int rc = runlog_get_number(entry, "epoch", h->what, &epoch, e);
  if (rc == 0 && epoch > s->moved) s->moved = epoch;
  return rc;
}

static const struct {
  const char *type;
  runlog_fold_fn *fold;
} types[] = {
    {"run", fold_run},           {"term", fold_term},
    {"attempt", fold_attempt},   {"adopt", fold_adopt},
    {"sweep", fold_sweep},       {"commit", runlog_fold_commit},
    {"drop", runlog_fold_drop},  {"delete", runlog_fold_delete},
    {"bad", runlog_fold_bad},    {"end", fold_end},
    {"snapshot", fold_snapshot}, {"moved", fold_moved},
    {"thin", runlog_fold_thin},
};

static int get_head(const json_t *entry, runlog_head *h, uint64_t *stated, runlog_fold_fn **fold,
                    err *e) {
  const char *type = NULL;
  h->term = RUNLOG_NONE;
  int rc = js_check_reader(entry, h->what, RUNLOG_READER, e);
  if (rc == 0) rc = runlog_get_number(entry, "n", h->what, stated, e);
  if (rc == 0) rc = js_get_str(entry, "type", h->what, &type, e);
  if (rc == 0) rc = js_get_str(entry, "nonce", h->what, &h->nonce, e);
  if (rc == 0) rc = js_get_int(entry, "time_ns", h->what, &h->time_ns, e);
  if (rc == 0 && json_object_get(entry, "term"))
    rc = runlog_get_number(entry, "term", h->what, &h->term, e);
  if (rc != 0) return rc;
  *fold = NULL;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (strcmp(type, types[i].type) == 0) *fold = types[i].fold;
  if (!*fold)
    return err_set(e, ERR_VERSION, "%s: its type \"%.40s\" needs a newer ckpt-lua", h->what, type);
  return 0;
}

int runlog_apply(runlog_state *s, const json_t *entry, const char **ignored, err *e) {
  runlog_head h = {.n = s->next};
  uint64_t stated = 0;
  runlog_fold_fn *fold = NULL;
  const char *why = NULL;
  snprintf(h.what, sizeof h.what, "log entry %" PRIu64, s->next);
  int rc = get_head(entry, &h, &stated, &fold, e);
  if (rc != 0) return rc;
  /* A zeroed state would name entry 0 as its term. */
  if (s->next == 0) s->term.n = s->snapshot = RUNLOG_NONE;
  if (s->moved && fold != fold_moved)
    return err_set(e, ERR_CORRUPT,
                   "%s stands behind one that was lost, and the repair of the log has not ended: "
                   "`repair` begins it anew",
                   h.what);
  if (stated != s->next)
    why = "its number is not that of its place";
  else if (fold == fold_moved)
    rc = fold(s, entry, &h, &why, e);
  else if (s->next > 0 && s->run_id[0] == 0)
    why = "the log's first entry names no run";
  else if (s->next == 0 && fold != fold_run)
    why = "the first entry must name the run";
  else
    rc = fold(s, entry, &h, &why, e);
  if (rc < 0) return rc;
  s->next++;
  if (ignored) *ignored = why;
  return 0;
}
