#include "settle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/vec.h"
#include "commit/companions_stored.h"
#include "commit/manifest_read.h"
#include "commit/removal.h"
#include "commit/staging.h"
#include "prims/fs.h"

/* ---- removing ---- */

/* The places of an attempt's files, and of its part records and companions. */
typedef struct places {
  char staging[STORE_KEY_MAX], dir[STORE_KEY_MAX];
  char parts[STORE_KEY_MAX], companions[STORE_KEY_MAX];
  char nonce[RUNLOG_NONCE_MAX]; /* names a staging of its own */
} places;

static int places_of(const runlog *log, const runlog_attempt *a, places *out, err *e) {
  memcpy(out->nonce, a->nonce, sizeof out->nonce);
  int rc = runlog_key_staging(log, a->n, out->staging, e);
  if (rc == 0) rc = runlog_key_dir(log, a->dir, out->dir, e);
  if (rc == 0) rc = runlog_key_parts(log, a->n, RUNLOG_NONE, out->parts, e);
  return rc < 0 ? rc
                : runlog_key_companions(runlog_prefix(log), a->n, RUNLOG_NONE, out->companions, e);
}

/* Removes part records of its ranks, and companions. They are no other attempt's: the number is in
 * the key. */
static int remove_beside(store *s, const places *at, err *e) {
  int rc = s->ops->remove_prefix(s, at->parts, e);
  return rc < 0 ? rc : s->ops->remove_prefix(s, at->companions, e);
}

int settle_is_sealed(store *s, const char *dir, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  int rc = manifest_key(dir, key, &why);
  if (rc == 0) rc = s->ops->head(s, key, &object, &why);
  if (rc == 0) return 1;
  return rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

int settle_is_whole(store *s, const runlog *log, const runlog_attempt *a, err *e) {
  char dir[STORE_KEY_MAX];
  int rc = runlog_key_dir(log, a->dir, dir, e);
  if (rc == 0) rc = settle_is_sealed(s, dir, e);
  return rc ? rc : staging_is_whole(s, log, a, e);
}

static int is_first_entry(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  static const char end[] = "/.ckpt/log/00000000000000000000.json";
  size_t len = strlen(key);
  (void)ctx, (void)object;
  return !is_prefix && len > sizeof end - 1 && strcmp(key + len - (sizeof end - 1), end) == 0;
}

int settle_has_log(store *s, const char *dir_key, err *e) {
  return s->ops->list(s, dir_key, false, is_first_entry, NULL, e);
}

/* Removes all files of an attempt that the log has let go. Where the user lets nothing be deleted,
 * only its staging goes, which never was anybody's checkpoint. `beside`: there may be part records
 * or companions. */
static int remove_all(store *s, runlog *log, const runlog_attempt *a, bool beside,
                      const log_sink *sink, err *e) {
  places at;
  int rc = places_of(log, a, &at, e);
  if (rc == 0 && store_can(s, STORE_CAP_PUBLISH)) {
    rc = removal_announce(s, log, a->n, e);
    if (rc == 0) rc = s->ops->remove_prefix(s, at.staging, e);
    if (rc == 0) rc = staging_drop_of(s, log, at.nonce, e);
  }
  if (rc < 0) return rc;
  if (s->no_delete) return store_can(s, STORE_CAP_PUBLISH) ? removal_withdraw(s, log, a->n, e) : 0;
  rc = removal_clear(s, log, a->n, false, sink, NULL, e);
  return rc < 0 || !beside ? rc : remove_beside(s, &at, e);
}

int settle_remove(store *s, runlog *log, const runlog_commit *c, const log_sink *sink, err *e) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), c->attempt);
  if (!a || c->life != RUNLOG_DELETED)
    return err_set(e, ERR_INVAL, "%s is not deleted in the log: its data stays", c->dir);
  return remove_all(s, log, a, a->world > 1 || c->companions.files, sink, e);
}

static void remove_or_say(store *s, runlog *log, const runlog_attempt *a, const log_sink *sink) {
  err why = {0};
  if (remove_all(s, log, a, true, sink, &why) < 0)
    log_say(sink, LOG_WARN,
            "files of %s, which the log has let go, are left for a later clean-up: %s", a->dir,
            why.text);
}

int settle_give_up(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e) {
  if (!runlog_find_attempt(runlog_view(log), attempt))
    return err_set(e, ERR_INVAL, "the log has no attempt %llu", (unsigned long long)attempt);
  int rc = runlog_sweep(log, attempt, e);
  if (rc == 0) remove_or_say(s, log, runlog_find_attempt(runlog_view(log), attempt), sink);
  return rc;
}

int settle_clear(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), attempt);
  const runlog_commit *c = a ? runlog_commit_of(runlog_view(log), attempt) : NULL;
  if (c) return settle_remove(s, log, c, sink, e);
  if (!a || a->fate != RUNLOG_SWEPT)
    return err_set(e, ERR_INVAL, "attempt %llu was not given up in the log: its files stay",
                   (unsigned long long)attempt);
  return remove_all(s, log, a, true, sink, e);
}

/* The files of swept attempts and of deleted commits that are still there. */
typedef struct litter {
  const runlog_state *state;
  const bool *gone; /* for each attempt of the state: nothing of it should be there */
  bool *there;      /* for each attempt of the state */
  size_t count;
  names begun; /* those whose removal was cut short: runlog_attempt_id() */
} litter;

static void note(litter *l, size_t i) {
  if (!l->gone[i] || l->there[i]) return;
  l->there[i] = true;
  l->count++;
}

static int on_number(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  litter *l = ctx;
  const char *name = fs_base(key);
  (void)object;
  if (is_prefix && strncmp(name, "gone.", 5) == 0 && !strchr(name + 5, '.'))
    return names_add(&l->begun, name + 5) ? 0 : ERR_NOMEM;
  for (size_t i = 0; is_prefix && i < l->state->attempt_count; i++) {
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)l->state->attempts[i].n);
    const char *nonce = l->state->attempts[i].nonce; /* "<term>.<nonce>" in the staging */
    if (strcmp(name, number) == 0 || (*nonce && strstr(name, nonce))) note(l, i);
  }
  return 0;
}

static int on_clearing(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  litter *l = ctx;
  (void)object;
  return is_prefix || names_add(&l->begun, fs_base(key)) ? 0 : ERR_NOMEM;
}

static int on_dir(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  litter *l = ctx;
  (void)object;
  for (size_t i = 0; is_prefix && i < l->state->attempt_count; i++)
    if (strcmp(fs_base(key), l->state->attempts[i].dir) == 0) note(l, i);
  return 0;
}

/* Finds the attempts of the removals that were cut short. */
static int find_begun(runlog *log, litter *l, err *e) {
  int rc = 0;
  names_sort(&l->begun);
  for (size_t i = 0; rc == 0 && l->begun.count && i < l->state->attempt_count; i++) {
    char id[RUNLOG_NONCE_MAX];
    if (!l->gone[i]) continue;
    rc = runlog_attempt_id(log, l->state->attempts[i].n, id, e);
    if (rc == 0 && names_has(&l->begun, id)) note(l, i);
  }
  return rc;
}

/* Part records, companions and stagings stand under the attempt's number; removals that were begun
 * stand under its id. */
static int find_litter(store *s, runlog *log, litter *l, err *e) {
  static const char *const numbered[] = {".ckpt/parts", ".ckpt/with", ".ckpt/staging"};
  bool stages = store_can(s, STORE_CAP_PUBLISH);
  char key[STORE_KEY_MAX];
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < (stages ? 3 : 2); i++) {
    rc = runlog_key_dir(log, numbered[i], key, e);
    if (rc == 0) rc = s->ops->list(s, key, true, on_number, l, e);
  }
  if (rc == 0) rc = runlog_key_dir(log, ".ckpt/clearing", key, e);
  if (rc == 0) rc = s->ops->list(s, key, true, on_clearing, l, e);
  if (rc == 0) rc = find_begun(log, l, e);
  return rc < 0 ? rc : s->ops->list(s, runlog_prefix(log), true, on_dir, l, e);
}

/* Finds the attempts of which nothing should be there; returns how many they are. */
static size_t find_gone(const runlog_state *state, bool *gone) {
  size_t count = 0, c = 0;
  for (size_t i = 0; i < state->attempt_count; i++)
    gone[i] = state->attempts[i].fate == RUNLOG_SWEPT;
  for (c = 0; c < state->commit_count; c++) {
    const runlog_attempt *a = runlog_find_attempt(state, state->commits[c].attempt);
    if (a && state->commits[c].life == RUNLOG_DELETED) gone[a - state->attempts] = true;
  }
  for (size_t i = 0; i < state->attempt_count; i++) count += gone[i];
  return count;
}

void settle_litter(store *s, runlog *log, const log_sink *sink) {
  const runlog_state *state = runlog_view(log);
  err why = {0};
  /* A log that contradicts itself does not say whose anything is. */
  if (s->no_delete || runlog_check_damage(log, NULL) < 0) return;
  bool *gone = calloc(state->attempt_count + 1, sizeof *gone);
  bool *there = calloc(state->attempt_count + 1, sizeof *there);
  litter l = {.state = state, .gone = gone, .there = there};
  int rc = 0;
  if (!gone || !there)
    rc = err_set(&why, ERR_NOMEM, "out of memory for %zu attempts", state->attempt_count);
  else if (find_gone(state, gone) > 0)
    rc = find_litter(s, log, &l, &why);
  if (rc < 0) log_say(sink, LOG_WARN, "cannot look for what was given up: %s", why.text);
  for (size_t i = 0; l.count && i < state->attempt_count; i++)
    if (there[i]) remove_or_say(s, log, &state->attempts[i], sink);
  names_free(&l.begun);
  free(gone);
  free(there);
}

/* ---- finishing ---- */

bool settle_is_overtaken(const runlog_state *state, uint64_t attempt) {
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].attempt > attempt) return true;
  return false;
}

/* Reads the manifest of a sealed attempt. ERR_NOENT if it has none by which anybody could ever
 * restore it; a store that does not answer is another matter, and so is a newer format. */
static int read_sealed(store *s, const runlog *log, const runlog_attempt *a, manifest *out,
                       err *e) {
  places at;
  int rc = places_of(log, a, &at, e);
  if (rc == 0) rc = manifest_read(s, at.dir, out, e);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT) return ERR_NOENT;
  if (rc != 0 || strcmp(out->unit, a->unit) == 0) return rc;
  manifest_free(out);
  return ERR_NOENT;
}

int settle_flush_shown(store *s, const runlog *log, uint64_t attempt, err *e) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), attempt);
  places at;
  err why = {0};
  if (!store_can(s, STORE_CAP_PUBLISH)) return 0;
  int rc = a ? places_of(log, a, &at, e) : err_set(e, ERR_INVAL, "there is no such attempt");
  if (rc < 0) return rc;
  rc = s->ops->publish(s, at.staging, at.dir, &why); /* its "exists" is durable */
  if (rc == ERR_EXISTS) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  return err_set(e, ERR_CONFLICT, "%s was removed at the same time", at.dir);
}

/* Tells when the content of a commit was complete; 0: nothing tells. */
static int made_of(store *s, const runlog *log, const runlog_commit *c, int64_t *out, err *e) {
  char dir[STORE_KEY_MAX];
  manifest m = {0};
  int rc = runlog_key_dir(log, c->dir, dir, e);
  if (rc == 0) rc = manifest_read(s, dir, &m, e);
  *out = rc == 0 ? manifest_made_ns(&m) : 0;
  manifest_free(&m);
  return rc == ERR_NOENT || rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT ? 0 : rc;
}

/* Of files above the checkpoints each has a line of its own. */
static bool is_of_one_line(bool above, const char *unit, const manifest *m) {
  return above == m->above && (!m->above || strcmp(unit, m->unit) == 0);
}

/* Of those that it was foreseen to commit. NULL: none was complete after this save. */
static const char *newer_ahead(const settle_ahead *ahead, const manifest *m) {
  for (size_t i = ahead ? ahead->count : 0; i-- > 0;) {
    const manifest *one = &ahead->at[i];
    if (is_of_one_line(one->above, one->unit, m) && manifest_made_ns(one) > manifest_made_ns(m))
      return one->unit;
  }
  return NULL;
}

/* Finds a commit that was complete after this save, and is not bad nor let go: the name of its unit,
 * until the log changes. Those from before the save was begun its own writer has judged, who knows
 * more than the times of files. But terms that take over from each other may each leave a save, and
 * none of them has seen the others'. A save without any time has the place in which it was begun.
 * What a repair has found may have been a commit before, and somebody may know it. */
static int find_newer(store *s, const runlog *log, const runlog_attempt *a, const manifest *m,
                      const settle_ahead *ahead, const char **out, err *e) {
  const runlog_state *state = runlog_view(log);
  int rc = 0;
  *out = NULL;
  if (runlog_was_found(log, a->n) || manifest_made_ns(m) == 0) return 0;
  *out = newer_ahead(ahead, m);
  for (size_t i = state->commit_count; rc == 0 && !*out && i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    int64_t made = 0;
    err why = {0};
    if (c->n < a->n) return 0;
    if (c->life != RUNLOG_LIVE || c->bad || !is_of_one_line(c->above, c->unit, m)) continue;
    rc = made_of(s, log, c, &made, &why);
    if (rc < 0) err_set(e, rc, "%s", why.text);
    if (rc == 0 && made > manifest_made_ns(m)) *out = c->unit;
  }
  return rc;
}

/* Reads the manifest of an attempt that stands whole. It is asked for where it was staged first: who
 * shows it meanwhile takes it from there. ERR_NOENT as above. */
static int read_whole(store *s, const runlog *log, const runlog_attempt *a, manifest *out, err *e) {
  int rc = staging_read(s, log, a, out, e);
  return rc == 0 ? read_sealed(s, log, a, out, e) : rc < 0 ? rc : 0;
}

/* Shows an attempt that stands in its staging still, and reads what stands in its place then: that
 * may be somebody else's. */
static int show(store *s, const runlog *log, const runlog_attempt *a, manifest *m, err *e) {
  if (!store_can(s, STORE_CAP_PUBLISH)) return 0;
  manifest_free(m);
  *m = (manifest){0};
  int rc = staging_show(s, log, a, e);
  return rc == 0 ? read_sealed(s, log, a, m, e) : rc;
}

static int give_up_older(store *s, runlog *log, const runlog_attempt *a, const log_sink *sink,
                         err *e) {
  log_say(sink, LOG_INFO, "%s was left unfinished by an earlier run: removing its parts", a->unit);
  return settle_give_up(s, log, a->n, sink, e);
}

static int give_up_late(store *s, runlog *log, const runlog_attempt *a, const char *newer,
                        const log_sink *sink, err *e) {
  log_say(sink, LOG_WARN,
          "%s, which an earlier run has sent, is not saved: newer is committed: %s; where it was "
          "sent from it stays",
          a->unit, newer);
  return settle_give_up(s, log, a->n, sink, e);
}

/* Its companions were put before its manifest. */
static int commit_whole(store *s, runlog *log, const runlog_attempt *a, const manifest *m,
                        const log_sink *sink, err *e) {
  const uint64_t n = a->n;
  runlog_note note = {0};
  log_say(sink, LOG_INFO, "%s was saved whole by an earlier run: committing it", a->unit);
  int rc = companions_newest(s, runlog_prefix(log), n, &note.companions, e);
  if (rc == 0) rc = settle_flush_shown(s, log, n, e);
  return rc < 0 ? rc : runlog_commit_attempt(log, n, m, &note, NULL, e);
}

/* One that is not to be committed is not shown either: where nothing may be deleted, it would stay. */
static int finish(store *s, runlog *log, uint64_t n, const log_sink *sink, err *e) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), n);
  const char *newer = NULL;
  manifest m = {0};
  err why = {0};
  int rc = settle_is_overtaken(runlog_view(log), n) ? ERR_NOENT : read_whole(s, log, a, &m, &why);
  if (rc == 0) rc = find_newer(s, log, a, &m, NULL, &newer, &why);
  if (rc == 0 && !newer) rc = show(s, log, a, &m, &why);
  if (rc == ERR_NOENT)
    rc = give_up_older(s, log, a, sink, e);
  else if (rc < 0)
    err_set(e, rc, "%s", why.text);
  else if (newer)
    rc = give_up_late(s, log, a, newer, sink, e);
  else
    rc = commit_whole(s, log, a, &m, sink, e);
  manifest_free(&m);
  return rc;
}

static const char *unit_behind(const runlog_state *state, uint64_t attempt) {
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].attempt > attempt) return state->commits[i].unit;
  return NULL;
}

int settle_foresee(store *s, const runlog *log, uint64_t attempt, settle_ahead *ahead,
                   const char **newer, err *e) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), attempt);
  manifest m = {0};
  *newer = unit_behind(runlog_view(log), attempt);
  if (*newer) return 0;
  int rc = read_whole(s, log, a, &m, e);
  if (rc == 0) rc = find_newer(s, log, a, &m, ahead, newer, e);
  if (rc == 0 && !*newer && !VEC_ROOM(ahead->at, ahead->count, ahead->room))
    rc = err_set(e, ERR_NOMEM, "out of memory for what would be committed");
  if (rc < 0 || *newer) {
    manifest_free(&m);
    return rc == ERR_NOENT ? 0 : rc;
  }
  ahead->at[ahead->count++] = m;
  return 1;
}

void settle_ahead_free(settle_ahead *ahead) {
  for (size_t i = 0; i < ahead->count; i++) manifest_free(&ahead->at[i]);
  free(ahead->at);
  *ahead = (settle_ahead){0};
}

int settle_finish(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e) {
  int rc = runlog_adopt(log, attempt, e);
  return rc < 0 ? rc : finish(s, log, attempt, sink, e);
}

bool settle_can_go_on(const store *s) {
  return store_can(s, STORE_CAP_RESUME) && !s->single_writer;
}

/* An attempt is adopted only if it can be committed as it stands. Where writers are not arbitrated
 * between, none is: the first writer may still be at it. */
static int settle_one(store *s, runlog *log, uint64_t n, const log_sink *sink, err *e) {
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), n);
  if (s->single_writer) return give_up_older(s, log, a, sink, e);
  int rc = settle_is_whole(s, log, a, e);
  if (rc < 0 || (rc == 0 && settle_can_go_on(s))) return rc;
  rc = runlog_adopt(log, n, e);
  return rc < 0 ? rc : finish(s, log, n, sink, e);
}

/* Returns the number of the first open attempt that is not before `from`; RUNLOG_NONE: none. */
static uint64_t next_open(const runlog *log, uint64_t from) {
  const runlog_state *state = runlog_view(log);
  for (size_t i = 0; i < state->attempt_count; i++)
    if (state->attempts[i].fate == RUNLOG_OPEN && state->attempts[i].n >= from)
      return state->attempts[i].n;
  return RUNLOG_NONE;
}

static int say_staged(void *ctx, const char *key, const char *reason, uint64_t bytes, bool other,
                      int status) {
  (void)bytes;
  log_say(ctx, status < 0 ? LOG_WARN : LOG_DEBUG, "%s %s: %s", key,
          status < 0 ? "is left for a later clean-up"
          : other    ? "stays"
                     : "is removed",
          reason);
  return 0;
}

void settle_staged(store *s, runlog *log, int64_t grace_ns, const log_sink *sink) {
  err why = {0};
  int64_t now = s->io->now(s->io, IO_WALL);
  if (staging_tidy(s, log, now, grace_ns, false, say_staged, (void *)sink, &why) < 0)
    log_say(sink, LOG_WARN, "%s", why.text);
}

int settle_attempts(store *s, runlog *log, const log_sink *sink, err *e) {
  int rc = 0;
  for (uint64_t n = 0; rc == 0 && (n = next_open(log, n)) != RUNLOG_NONE; n++) {
    rc = settle_one(s, log, n, sink, e);
    if (rc == ERR_CONFLICT) rc = 0; /* somebody swept it meanwhile */
  }
  if (rc == 0) settle_litter(s, log, sink);
  if (rc == 0) settle_staged(s, log, INT64_MAX, sink);
  return rc;
}

int settle_own(store *s, runlog *log, uint64_t keep, const log_sink *sink, err *e) {
  int rc = 0;
  for (uint64_t n = 0; rc == 0 && (n = next_open(log, n)) != RUNLOG_NONE; n++) {
    const runlog_state *state = runlog_view(log);
    if (n == keep || runlog_find_attempt(state, n)->owner != state->term.n) continue;
    rc = settle_give_up(s, log, n, sink, e);
    if (rc == ERR_CONFLICT) rc = 0; /* it was committed, only the answer was lost */
  }
  return rc;
}

/* Giving it up may bring what others have appended, and with it another list of attempts. */
static int try_to_give_up(store *s, runlog *log, const runlog_attempt *a, const log_sink *sink) {
  err why = {0};
  char *unit = strdup(a->unit);
  int rc = give_up_older(s, log, a, sink, &why);
  if (rc < 0 && rc != ERR_CONFLICT)
    log_say(sink, LOG_WARN, "what an earlier run left of %s stays for now: %s",
            unit ? unit : "a unit", why.text);
  free(unit);
  return rc;
}

void settle_older(store *s, runlog *log, const log_sink *sink) {
  int rc = 0;
  for (uint64_t n = 0; rc != ERR_FENCED && (n = next_open(log, n)) != RUNLOG_NONE; n++) {
    const runlog_state *state = runlog_view(log);
    const runlog_attempt *a = runlog_find_attempt(state, n);
    if (a->owner < state->term.n) rc = try_to_give_up(s, log, a, sink);
  }
}
