/* collect_litter: collects the leftovers of saves and checkpoints that the log has let go: the
 * process that let them go may have died, and a writer that was pushed aside may have gone on for a
 * while. Listings find them; a name that no attempt of the log has is somebody else's, and left
 * alone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect_impl.h"
#include "commit/removal.h"
#include "commit/settle.h"
#include "commit/staging.h"
#include "prims/fs.h"
#include "commit/manifest_read.h"

static int note_prefix(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? store_keys_add(ctx, key, true, object) : 0;
}

static int note_object(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? 0 : store_keys_add(ctx, key, false, object);
}

static int not_listed(int rc, const err *why, err *e) {
  return err_set(e, rc, "look for what is left: %s", *why->text ? why->text : err_text(rc));
}

static int list(const collecting *g, const char *key, bool delimited, store_list_fn *fn,
                store_keys *out, err *e) {
  err why = {0};
  int rc = g->c->store->ops->list(g->c->store, key, delimited, fn, out, &why);
  return rc < 0 ? not_listed(rc, &why, e) : 0;
}

static int list_dirs(const collecting *g, const char *key, store_keys *out, err *e) {
  err why = {0};
  int rc = store_list_dirs(g->c->store, key, note_prefix, out, &why);
  return rc < 0 ? not_listed(rc, &why, e) : 0;
}

/* Returns the key without the log's own place before it. */
static const char *within(const collecting *g, const char *key) {
  size_t len = strlen(runlog_prefix(g->c->log));
  return len ? key + len + 1 : key;
}

static void tell(collecting *g, const char *what, const char *key, const char *reason,
                 uint64_t bytes, int status) {
  collect_tell(g, &(collected){.what = what,
                               .name = within(g, key),
                               .reason = reason,
                               .bytes = bytes,
                               .status = status});
}

/* ---- under the attempts' own directories ---- */

static const char *reason_of(const runlog_attempt *a) {
  return a->fate == RUNLOG_SWEPT ? "of a save that was given up"
                                 : "of a checkpoint that is deleted";
}

const runlog_commit *collect_live_there(const collecting *g, const char *key) {
  const runlog_state *state = runlog_view(g->c->log);
  const runlog_commit *live = NULL;
  manifest m = {0};
  if (manifest_read(g->c->store, key, &m, NULL) < 0) return NULL;
  for (size_t i = state->commit_count; i-- > 0 && !live;)
    if (state->commits[i].life == RUNLOG_LIVE && digest_equal(&state->commits[i].root, &m.root))
      live = &state->commits[i];
  manifest_free(&m);
  return live;
}

/* Tells of objects under an attempt's former name that are not the attempt's. */
static void tell_left(collecting *g, const char *key, const removal_found *f) {
  char reason[STORE_KEY_MAX + 200];
  const runlog_commit *live = collect_live_there(g, key);
  if (live)
    snprintf(reason, sizeof reason, "it holds the data of %s, which is committed: its place is %s",
             live->unit, live->dir);
  else
    snprintf(reason, sizeof reason,
             "%" PRIu64
             " object%s (%s first) that no checkpoint here names; to remove: `collect.remove`",
             f->others, f->others == 1 ? "" : "s", within(g, f->other));
  tell(g, "left", key, reason, f->other_bytes, 0);
}

/* Clears an attempt's directory. Returns true if anything was told. */
static bool clear_attempt(collecting *g, const runlog_attempt *a, const char *key) {
  const collect *c = g->c;
  removal_found f;
  err why = {0};
  int rc = removal_clear(c->store, c->log, a->n, c->dry, c->sink, &f, &why);
  if (rc < 0 || f.objects) tell(g, "litter", key, rc < 0 ? why.text : reason_of(a), f.bytes, rc);
  if (rc == 0 && f.others) tell_left(g, key, &f);
  return rc < 0 || f.objects || f.others;
}

static int by_dir(const void *a, const void *b) {
  return strcmp((*(const runlog_attempt *const *)a)->dir, (*(const runlog_attempt *const *)b)->dir);
}

static int dir_and_attempt(const void *key, const void *attempt) {
  return strcmp(key, (*(const runlog_attempt *const *)attempt)->dir);
}

/* Lists the attempts of which nothing should be there, sorted by their directories. */
static const runlog_attempt **sort_gone(const collecting *g, size_t *count) {
  const runlog_state *state = runlog_view(g->c->log);
  const runlog_attempt **gone = calloc(state->attempt_count + 1, sizeof(runlog_attempt *));
  *count = 0;
  for (size_t i = 0; gone && i < state->attempt_count; i++)
    if (collect_is_gone(g, &state->attempts[i])) gone[(*count)++] = &state->attempts[i];
  if (gone && *count) qsort(gone, *count, sizeof(runlog_attempt *), by_dir);
  return gone;
}

static void collect_dirs(collecting *g) {
  size_t count = 0;
  store_keys dirs = {0};
  err why = {0};
  const runlog_attempt **gone = sort_gone(g, &count);
  int rc = gone ? 0 : err_set(&why, ERR_NOMEM, "look for what is left: out of memory");
  if (rc == 0 && count) rc = list(g, runlog_prefix(g->c->log), true, note_prefix, &dirs, &why);
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; rc == 0 && i < dirs.count && !g->stopped; i++) {
    const runlog_attempt **a =
        bsearch(fs_base(dirs.at[i].key), gone, count, sizeof(runlog_attempt *), dir_and_attempt);
    /* A group's is not ours; one that cannot be looked at may be a group's. */
    if (a && settle_has_log(g->c->store, dirs.at[i].key, NULL) == 0)
      clear_attempt(g, *a, dirs.at[i].key);
  }
  store_keys_free(&dirs);
  free(gone);
}

/* ---- under the attempts' numbers ---- */

static void clear_key(collecting *g, const char *key, const char *reason) {
  const collect *c = g->c;
  err why = {0};
  uint64_t bytes = collect_measure(g, key);
  int rc = c->dry ? 0 : c->store->ops->remove_prefix(c->store, key, &why);
  tell(g, "litter", key, rc < 0 ? why.text : reason, bytes, rc);
}

/* Of an attempt of which nothing should be there: a repair may have opened it again, so nothing goes
 * before its removal was begun. */
static void clear_gone(collecting *g, const runlog_attempt *a, const char *key) {
  const collect *c = g->c;
  err why = {0};
  int rc = removal_clear(c->store, c->log, a->n, c->dry, c->sink, NULL, &why);
  if (rc < 0)
    tell(g, "litter", key, why.text, 0, rc);
  else
    clear_key(g, key, reason_of(a));
}

/* Reads a number "17", and nothing else that strtoull would take. */
static bool read_number(const char *text, uint64_t *out) {
  char again[24];
  *out = strtoull(text, NULL, 10);
  snprintf(again, sizeof again, "%" PRIu64, *out);
  return strcmp(text, again) == 0;
}

/* Companions that a commit names stay; those of other terms are in no commit. */
static void collect_other_terms(collecting *g, const runlog_attempt *a, const char *key) {
  const runlog_commit *c = runlog_commit_of(runlog_view(g->c->log), a->n);
  store_keys terms = {0};
  err why = {0};
  uint64_t n;
  int rc = list(g, key, true, note_prefix, &terms, &why);
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; rc == 0 && i < terms.count && !g->stopped; i++)
    if (c && read_number(fs_base(terms.at[i].key), &n) &&
        (!c->companions.files || n != c->companions.term))
      clear_key(g, terms.at[i].key, "the checkpoint does not name it");
  store_keys_free(&terms);
}

static int is_it(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)object;
  return is_prefix && strcmp(key, ctx) == 0;
}

/* Collects the rest of a removal that died: a directory may be all that there is, or hold something
 * that is no object, such as a link of somebody's. */
static void collect_hollow(collecting *g, const char *key) {
  store *s = g->c->store;
  char place[STORE_KEY_MAX], inside[STORE_KEY_MAX + 16];
  err why = {0};
  snprintf(place, sizeof place, "%.*s", (int)(fs_base(key) - key - 1), key);
  snprintf(inside, sizeof inside, "%s/none", key);
  int rc = g->c->dry ? 0 : store_remove_below(s, key, (const char *const[]){inside}, 1, &why);
  if (rc == 0) rc = store_list_dirs(s, place, is_it, (void *)key, &why);
  if (rc < 0) tell(g, "litter", key, why.text, 0, rc);
  if (rc > 0)
    tell(g, "left", key,
         "what is in it is no file, and of no checkpoint here; to remove: `collect.remove`", 0, 0);
}

/* Goes on with a removal that was cut short, of the attempt with this id. */
static void collect_begun(collecting *g, const char *key, const char *id) {
  const runlog_state *state = runlog_view(g->c->log);
  char own[RUNLOG_NONCE_MAX];
  for (size_t i = 0; i < state->attempt_count; i++) {
    const runlog_attempt *a = &state->attempts[i];
    if (!collect_is_gone(g, a) || runlog_attempt_id(g->c->log, a->n, own, NULL) < 0) continue;
    if (strcmp(own, id) != 0) continue;
    if (!clear_attempt(g, a, key) && store_can(g->c->store, STORE_CAP_PUBLISH))
      collect_hollow(g, key);
    return;
  }
}

/* Staging and part records have done their work once their save is committed. */
static void collect_numbered(collecting *g, const char *key, bool companions) {
  uint64_t n;
  if (strncmp(fs_base(key), "gone.", 5) == 0) {
    collect_begun(g, key, fs_base(key) + 5);
    return;
  }
  const runlog_attempt *a =
      read_number(fs_base(key), &n) ? runlog_find_attempt(runlog_view(g->c->log), n) : NULL;
  if (!a || a->fate == RUNLOG_OPEN) return;
  if (collect_is_gone(g, a))
    clear_gone(g, a, key);
  else if (companions)
    collect_other_terms(g, a, key);
  else
    clear_key(g, key, "of a save that is committed");
}

static void collect_numbers(collecting *g, const char *key, bool companions) {
  store_keys numbers = {0};
  err why = {0};
  int rc = list_dirs(g, key, &numbers, &why);
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; rc == 0 && i < numbers.count && !g->stopped; i++)
    collect_numbered(g, numbers.at[i].key, companions);
  store_keys_free(&numbers);
}

/* ---- objects of a moment ---- */

static void clear_old(collecting *g, const store_keys *objects, const char *begins) {
  const int64_t day = (int64_t)COLLECT_DAY_S * 1000000000;
  const collect *c = g->c;
  for (size_t i = 0; i < objects->count && !g->stopped; i++) {
    err why = {0};
    if (strncmp(fs_base(objects->at[i].key), begins, strlen(begins)) != 0) continue;
    if (objects->at[i].object.mtime_ns > g->now - day) continue;
    int rc = c->dry ? 0 : c->store->ops->remove(c->store, objects->at[i].key, &why);
    tell(g, "temporary", objects->at[i].key, rc < 0 ? why.text : "older than a day", 0, rc);
  }
}

static void collect_temporary(collecting *g, const char *key) {
  store_keys objects = {0};
  err why = {0};
  int rc = list(g, key, false, note_object, &objects, &why);
  if (rc < 0)
    collect_failed(g, "temporary", rc, why.text);
  else
    clear_old(g, &objects, "");
  store_keys_free(&objects);
}

static int tell_staged(void *ctx, const char *key, const char *reason, uint64_t bytes, bool other,
                       int status) {
  collecting *g = ctx;
  tell(g, other ? "left" : "litter", key, reason, bytes, status);
  return g->stopped;
}

/* Collects stagings of saves that were not announced: of an older term, when their grace period is
 * over. */
static void collect_staged(collecting *g) {
  const collect *c = g->c;
  err why = {0};
  int rc = staging_tidy(c->store, c->log, g->now, c->grace_ns, c->dry, tell_staged, g, &why);
  if (rc < 0 && !g->stopped) collect_failed(g, "litter", rc, why.text);
}

static void collect_clearing(collecting *g, const char *key) {
  store_keys objects = {0};
  err why = {0};
  int rc = list(g, key, true, note_object, &objects, &why);
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; rc == 0 && i < objects.count && !g->stopped; i++)
    collect_begun(g, objects.at[i].key, fs_base(objects.at[i].key));
  store_keys_free(&objects);
}

static void collect_own_directory(collecting *g, const char *key) {
  const char *name = fs_base(key);
  if (strcmp(name, "staging") == 0) collect_staged(g);
  if (strcmp(name, "clearing") == 0) collect_clearing(g, key);
  if (strcmp(name, "thinned") == 0) collect_thin_marks(g, key);
  if (strcmp(name, "staging") == 0 || strcmp(name, "parts") == 0)
    collect_numbers(g, key, false);
  else if (strcmp(name, "with") == 0)
    collect_numbers(g, key, true);
  else if (strcmp(name, "tmp") == 0 || strcmp(name, "ranks") == 0)
    collect_temporary(g, key);
}

void collect_litter(collecting *g) {
  store_keys dirs = {0}, objects = {0};
  char own[STORE_KEY_MAX];
  err why = {0};
  collect_dirs(g);
  if (g->stopped) return;
  int rc = runlog_join(runlog_prefix(g->c->log), ".ckpt", own, &why);
  if (rc == 0) rc = list_dirs(g, own, &dirs, &why);
  if (rc == 0) rc = list(g, own, true, note_object, &objects, &why);
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; rc == 0 && i < dirs.count && !g->stopped; i++)
    collect_own_directory(g, dirs.at[i].key);
  if (rc == 0) clear_old(g, &objects, "lease-probe.");
  store_keys_free(&dirs);
  store_keys_free(&objects);
}
