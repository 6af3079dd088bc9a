#include "repair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "commit/arbiter.h"
#include "commit/lease.h"
#include "commit/settle.h"
#include "repair_impl.h"

enum { ROUNDS_MAX = 100 };

typedef struct repairing {
  const repair *how;
  runlog_ruin ruin;
  runlog_evidence evidence;
  char nonce[33], run[RUNLOG_ID_MAX];
  uint64_t epoch; /* 0: none was taken */
  size_t unsaid;  /* commits whose `thin` was the last entry */
  char digest[HASH_HEX_MAX];
  runlog_writer who;
} repairing;

static int tell(const repairing *r, const repaired *what) {
  return r->how->told ? r->how->told(r->how->ctx, r->how->prefix, what) : 0;
}

static void forget(repairing *r) {
  repair_forget(&r->evidence);
  runlog_ruin_free(&r->ruin);
}

static int begin(const repair *how, repairing *r, err *e) {
  *r = (repairing){.how = how};
  int rc = io_nonce(how->store->io, r->nonce);
  if (rc < 0) return err_sys(e, rc, "repair a log: random numbers");
  snprintf(r->run, sizeof r->run, "repaired:%.8s", r->nonce);
  snprintf(r->who.launch, sizeof r->who.launch, "repair:%s", r->nonce);
  if (gethostname(r->who.host, sizeof r->who.host - 1) < 0) r->who.host[0] = 0;
  r->who.pid = getpid();
  return 0;
}

/* Reads all that is left, and folds it. */
static int look(repairing *r, err *e) {
  forget(r);
  r->evidence.run = r->run;
  r->evidence.nonce = r->nonce;
  int rc = runlog_ruin_read(r->how->store, r->how->prefix, &r->ruin, e);
  return rc < 0 ? rc : repair_gather(&r->ruin, &r->evidence, e);
}

/* ---- (a) may it? ---- */

static int held(int64_t age_s, err *e) {
  return err_set(e, ERR_HELD,
                 "a writer is alive: the lease was renewed %" PRId64
                 " s ago. End it first, or, if it has died, try again in %" PRId64
                 " s; `take_over` goes on at once, and stops it",
                 age_s, LEASE_LIFE_S - age_s);
}

static int check_lease(const repairing *r, lease_seen *lease, err *e) {
  store *s = r->how->store;
  int64_t now = s->io->now(s->io, IO_WALL);
  const runlog_term *term = &r->ruin.term;
  int rc = lease_look(s, r->how->prefix, RUNLOG_NONE, lease, e);
  if (rc < 0 || !lease->present) return rc;
  bool over = lease->says_over && (term->n == RUNLOG_NONE || lease->term >= term->n);
  if (over) return 0;
  if (!r->how->dry) rc = lease_store_now(s, r->how->prefix, &now, e);
  int64_t age_s = now > lease->renewed_ns ? (now - lease->renewed_ns) / 1000000000 : 0;
  return rc < 0 ? rc : age_s < LEASE_LIFE_S ? held(age_s, e) : 0;
}

/* A program that does not ask for later epochs may put an entry behind a lost end, and tell that it
 * is done. */
static int may_repair(const repairing *r, err *e) {
  lease_seen lease = {0};
  const runlog_term *term = &r->ruin.term;
  if (r->how->take_over) return 0;
  int rc = check_lease(r, &lease, e);
  if (rc < 0) return rc;
  bool by_lease = lease.present && lease.term != RUNLOG_NONE &&
                  (term->n == RUNLOG_NONE || lease.term > term->n);
  if (by_lease ? lease.epochs : runlog_ruin_heeds(&r->ruin)) return 0;
  return err_set(e, ERR_HELD,
                 "the newest writer of this log (host %.100s, pid %lld) was a ckpt-lua that knows "
                 "nothing of repairs, and would not stop: make sure that none runs any more, "
                 "`collect` and `remove` elsewhere too, then `take_over`",
                 by_lease ? "of the lease" : term->writer.host, (long long)term->writer.pid);
}

/* ---- (c), (d): what is left, and the end of the old log ---- */

static int wait_for_names(const repairing *r, err *e) {
  store *s = r->how->store;
  int64_t left = s->lag_ns;
  if (left > 0)
    log_say(r->how->sink, LOG_WARN,
            "waiting for %lld s, since names that other machines made may not show here before",
            (long long)(left / 1000000000));
  for (; left > 0; left -= 1000000000) {
    if (s->cancel && atomic_load(s->cancel))
      return err_set(e, ERR_CANCELED, "the repair was canceled; `repair` begins it anew");
    s->io->sleep(s->io, left < 1000000000 ? left : 1000000000);
  }
  return 0;
}

static int read_and_close(repairing *r, err *e) {
  for (int i = 0; i < ROUNDS_MAX; i++) {
    int rc = i == 0 && FAULT("log-read-first") ? 0 : look(r, e);
    if (rc == 0) rc = runlog_ruin_close(&r->ruin, r->epoch, e);
    if (rc <= 0) return rc;
  }
  return err_set(e, ERR_CONFLICT, "somebody goes on writing to the old log");
}

/* ---- what the state names, and does not stand ---- */

/* Could an entry that was lost have let this commit go? */
static bool may_be_dropped(const repairing *r, const runlog_commit *c) {
  const runlog_ruin *ruin = &r->ruin;
  uint64_t next = c->n + 1;
  for (size_t i = 0; i < ruin->count; i++) {
    const runlog_place *p = &ruin->places[i];
    if (p->n < next) continue;
    if (p->n > next || p->rest != RUNLOG_REST_ENTRY) return true;
    next = p->n + 1;
  }
  return ruin->seen != RUNLOG_NONE && ruin->seen >= ruin->end;
}

static int check_commits(repairing *r, err *e) {
  runlog_state *st = &r->ruin.st;
  char key[STORE_KEY_MAX];
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < st->commit_count; i++) {
    runlog_commit *c = &st->commits[i];
    if (c->life != RUNLOG_LIVE || c->bad || !may_be_dropped(r, c)) continue;
    rc = runlog_join(r->how->prefix, c->dir, key, e);
    if (rc == 0) rc = repair_is_whole(r->how->store, key, c, e);
    if (rc != 0) continue;
    c->bad = true;
    c->bad_reason = strdup("not whole when the log was repaired");
  }
  return rc < 0 ? rc : 0;
}

/* ---- telling ---- */

static bool was_found(const repairing *r, const runlog_trace *t) {
  for (size_t i = 0; i < r->ruin.count; i++) {
    const json_t *entry = r->ruin.places[i].entry;
    const char *type = json_string_value(json_object_get(entry, "type"));
    const char *root = json_string_value(json_object_get(entry, "root"));
    char hex[HASH_HEX_MAX];
    digest_hex(&t->facts.root, hex);
    if (type && root && strcmp(type, "commit") == 0 && strcmp(root, hex) == 0) return false;
  }
  return true;
}

static const runlog_attempt *attempt_in(const runlog_state *st, const char *dir) {
  for (size_t i = 0; i < st->attempt_count; i++)
    if (strcmp(st->attempts[i].dir, dir) == 0) return &st->attempts[i];
  return NULL;
}

static int tell_trace(const repairing *r, const runlog_trace *t) {
  const runlog_attempt *a = attempt_in(&r->ruin.st, t->dir);
  const runlog_commit *c = a ? runlog_commit_of(&r->ruin.st, a->n) : NULL;
  repaired what = {.name = t->dir, .epoch = r->epoch, .done = !r->how->dry};
  if (t->gone || (c && (c->life != RUNLOG_LIVE || c->bad)))
    return 0; /* the bad are told of apart */
  if (t->used && c && (c->n < r->ruin.st.snapshot + 1 || !was_found(r, t))) return 0;
  if (t->used && a) {
    what.what = "commit";
    what.reason = "its entries were lost, and all of it is here";
    return tell(r, &what);
  }
  if (a && a->fate != RUNLOG_OPEN) return 0;
  what.what = "left";
  what.reason = !t->whole ? "no entry names it, and it is not whole"
                : *t->id  ? "no entry names it, and nothing shows where it belongs: it can be "
                            "restored by its own URI"
                          : "no entry names it, and its manifest names no save (1.0): it can be "
                            "restored by its own URI";
  return tell(r, &what);
}

static int found_one(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)ctx, (void)key, (void)is_prefix, (void)object;
  return 1;
}

/* Files of a save of which no entry tells the end, and no manifest what they are. */
static int tell_unsealed(const repairing *r, const runlog_attempt *a, err *e) {
  char key[STORE_KEY_MAX];
  for (size_t i = 0; i < r->evidence.count; i++)
    if (strcmp(r->evidence.traces[i].dir, a->dir) == 0) return 0;
  int rc = runlog_join(r->how->prefix, a->dir, key, e);
  if (rc == 0) rc = r->how->store->ops->list(r->how->store, key, false, found_one, NULL, e);
  if (rc != 1) return rc;
  return tell(r,
              &(repaired){.what = "left",
                          .name = a->dir,
                          .reason = "no entry tells that it was committed, and it has no manifest",
                          .epoch = r->epoch,
                          .done = !r->how->dry});
}

static int tell_all(const repairing *r, err *e) {
  const runlog_state *st = &r->ruin.st;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < st->attempt_count; i++)
    if (st->attempts[i].fate == RUNLOG_OPEN) rc = tell_unsealed(r, &st->attempts[i], e);
  for (size_t i = 0; rc == 0 && i < r->evidence.count; i++)
    rc = tell_trace(r, &r->evidence.traces[i]);
  for (size_t i = 0; rc == 0 && i < st->commit_count; i++)
    if (st->commits[i].life == RUNLOG_LIVE && st->commits[i].bad)
      rc = tell(r, &(repaired){.what = "bad",
                               .name = st->commits[i].dir,
                               .reason = st->commits[i].bad_reason ? st->commits[i].bad_reason : "",
                               .epoch = r->epoch,
                               .done = !r->how->dry});
  return rc;
}

static int tell_log(const repairing *r, const char *reason) {
  return tell(r, &(repaired){.what = "log",
                             .name = "",
                             .reason = reason,
                             .lost = r->ruin.lost + r->unsaid,
                             .torn = r->ruin.torn,
                             .epoch = r->epoch,
                             .done = !r->how->dry && r->epoch > 0});
}

/* ---- (e) the new log ---- */

/* The trace of a commit beside which a note stands that files of it are gone; else NULL. */
static const runlog_trace *noted(const repairing *r, const runlog_commit *c) {
  for (size_t i = 0; i < r->evidence.count; i++) {
    const runlog_trace *t = &r->evidence.traces[i];
    if (strcmp(t->dir, c->dir) == 0 && digest_equal(&t->facts.root, &c->root))
      return t->facts.thin.globs.count ? t : NULL;
  }
  return NULL;
}

/* A commit that is made of its manifest says what that one had. */
static int take_again(const repairing *r, runlog *log, uint64_t attempt, err *e) {
  const runlog_commit *c = runlog_commit_of(runlog_view(log), attempt);
  const runlog_trace *t = c ? noted(r, c) : NULL;
  if (!t) return 0;
  const manifest_rest stays = {t->facts.files, t->facts.bytes};
  return runlog_thin(log, c->n, &t->facts.thin, &stays, NULL, NULL, e);
}

/* Commits what is whole and newer than the last commit, the oldest first. What the next term is to
 * decide stays open. */
static int commit_saves(const repairing *r, runlog *log, err *e) {
  const runlog_state *st = runlog_view(log);
  for (size_t i = 0; i < st->attempt_count; i++) {
    const runlog_attempt *a = &st->attempts[i];
    const uint64_t n = a->n;
    const runlog_commit *last = st->commit_count ? &st->commits[st->commit_count - 1] : NULL;
    err why = {0};
    if (a->fate != RUNLOG_OPEN || (last && last->attempt > n)) continue;
    int rc = settle_is_whole(r->how->store, log, a, e);
    if (rc == 1) {
      rc = settle_finish(r->how->store, log, n, r->how->sink, &why);
      if (rc == 0) rc = take_again(r, log, n, &why);
    }
    if (rc < 0) return *why.text ? err_set(e, rc, "%s", why.text) : rc;
  }
  return 0;
}

/* The repair's own term ends at once, so that the next run needs not wait. */
static void end_term(const repairing *r, uint64_t term) {
  store *s = r->how->store;
  err why = {0};
  int rc = lease_renew(s, r->how->prefix, term, &r->who, &why);
  if (rc == 0) rc = lease_release(s, r->how->prefix, term, &r->who, &why);
  if (rc < 0) log_say(r->how->sink, LOG_WARN, "the lease could not be written: %s", why.text);
}

static int go_on(const repairing *r, err *e) {
  runlog *log = NULL;
  int rc = runlog_open(r->how->store, r->how->prefix, &log, e);
  if (rc < 0) return rc;
  runlog_claim(log, r->ruin.st.term.n);
  rc = runlog_ask_epoch(log, e);
  if (rc == 0) rc = runlog_refresh(log, e);
  if (rc == 0) rc = commit_saves(r, log, e);
  if (rc == 0) end_term(r, r->ruin.st.term.n);
  runlog_close(log);
  return rc;
}

static int make_log(repairing *r, err *e) {
  int rc = runlog_ruin_fold(&r->ruin, &r->evidence, e);
  if (rc == 0) rc = check_commits(r, e);
  if (rc < 0 || r->how->dry) return rc;
  rc = runlog_ruin_begin(&r->ruin, r->epoch, r->digest, r->nonce, &r->who, e);
  if (rc == ERR_EXISTS)
    return err_set(e, ERR_FENCED, "another repair began after this one, and goes on");
  return rc < 0 ? rc : go_on(r, e);
}

/* ---- the whole ---- */

static int write_all(repairing *r, err *e) {
  int rc = arbiter_check_guest(r->how->store, r->how->prefix, e);
  if (rc == 0) rc = runlog_ruin_name(&r->ruin, r->nonce, e);
  if (rc == 0) rc = runlog_ruin_claim(&r->ruin, r->nonce, &r->epoch, r->digest, e);
  if (rc == ERR_EXISTS)
    return err_set(e, ERR_HELD, "another repair of this log began just now: look what it says");
  if (rc == 0) rc = wait_for_names(r, e);
  return rc < 0 ? rc : read_and_close(r, e);
}

static bool is_nothing(const repairing *r) {
  return r->ruin.count == 0 && r->ruin.newest == 0 && r->ruin.seen == RUNLOG_NONE &&
         r->evidence.count == 0;
}

/* An entry that parses may be none all the same, which its readers say. */
static bool can_be_read(const repairing *r) {
  runlog *log = NULL;
  int rc = runlog_open_whole(r->how->store, r->how->prefix, &log, NULL);
  runlog_close(log);
  return rc != ERR_FORMAT && rc != ERR_CORRUPT;
}

/* A manifest that names an attempt of which no entry tells is a sign, too. */
static bool is_whole(const repairing *r) {
  if (!runlog_ruin_is_whole(&r->ruin)) return false;
  return (r->ruin.count > 0 || r->ruin.at.epoch > 0) && can_be_read(r);
}

static bool knows(const repairing *r, const runlog_trace *t) {
  if (!*t->id || t->gone || runlog_find_nonce(&r->ruin.st, t->id)) return true;
  for (size_t i = 0; i < r->ruin.count; i++) {
    const char *nonce = json_string_value(json_object_get(r->ruin.places[i].entry, "nonce"));
    if (nonce && strcmp(nonce, t->id) == 0) return true;
  }
  return false;
}

/* A save that is whole, the newest, and of which no end is known: its commit may have been the last
 * entry. */
static bool is_uncommitted(const repairing *r, const runlog_trace *t) {
  const runlog_attempt *a = *t->id ? runlog_find_nonce(&r->ruin.st, t->id) : NULL;
  uint64_t n = a && a->fate == RUNLOG_OPEN ? a->n : RUNLOG_NONE;
  for (size_t i = 0; i < r->ruin.count; i++) {
    const json_t *entry = r->ruin.places[i].entry;
    const char *nonce = json_string_value(json_object_get(entry, "nonce"));
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *about = json_object_get(entry, "attempt");
    if (nonce && strcmp(nonce, t->id) == 0) n = r->ruin.places[i].n;
    bool ends = type && (strcmp(type, "commit") == 0 || strcmp(type, "sweep") == 0);
    if (n == RUNLOG_NONE || !type) continue;
    if (ends && (uint64_t)json_integer_value(about) >= n) return false;
    if (strcmp(type, "end") == 0) return false;
  }
  return n != RUNLOG_NONE;
}

static bool has_uncommitted(const repairing *r) {
  for (size_t i = 0; i < r->evidence.count; i++)
    if (r->evidence.traces[i].whole && !r->evidence.traces[i].gone &&
        is_uncommitted(r, &r->evidence.traces[i]))
      return may_repair(r, NULL) == 0;
  return false;
}

/* A whole save that the log does not know. */
static bool is_stranger(const repairing *r, const runlog_trace *t) {
  return t->whole && !knows(r, t);
}

/* Folds what was read, and says how many saves that the log does not know have a place in it. Where none
 * has, a new log would say nothing that this one does not. */
static int place_strangers(repairing *r, size_t *placed, err *e) {
  runlog_evidence *v = &r->evidence;
  bool *strange = calloc(v->count + 1, sizeof *strange);
  if (!strange) return err_set(e, ERR_NOMEM, "repair a log: out of memory");
  size_t strangers = 0;
  for (size_t i = 0; i < v->count; i++) strangers += strange[i] = is_stranger(r, &v->traces[i]);
  *placed = 0;
  int rc = strangers ? runlog_ruin_fold(&r->ruin, v, e) : 0;
  for (size_t i = 0; rc == 0 && i < v->count; i++) *placed += strange[i] && v->traces[i].used;
  free(strange);
  return rc;
}

/* Counts commits that have files by the log, and by the note beside them have not: `thin` was the last entry,
 * so that no number is missing. */
static int count_unsaid(repairing *r, err *e) {
  runlog *log = NULL;
  bool any = false;
  for (size_t i = 0; !any && i < r->evidence.count; i++)
    any = r->evidence.traces[i].facts.thin.globs.count > 0;
  int rc = any ? runlog_open(r->how->store, r->how->prefix, &log, e) : 0;
  const runlog_state *st = rc == 0 && log ? runlog_view(log) : NULL;
  for (size_t i = 0; st && i < st->commit_count; i++) {
    const runlog_commit *c = &st->commits[i];
    r->unsaid += c->life == RUNLOG_LIVE && !c->thin.globs.count && noted(r, c);
  }
  runlog_close(log);
  return rc;
}

static int tell_whole(const repairing *r) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->evidence.count; i++)
    if (is_stranger(r, &r->evidence.traces[i])) rc = tell_trace(r, &r->evidence.traces[i]);
  return rc ? rc : tell_log(r, "no entry is missing");
}

static int repair_it(repairing *r, err *e) {
  int rc = look(r, e);
  if (rc < 0) return rc;
  if (is_nothing(r)) return err_set(e, ERR_NOENT, "there is no log, and nothing of one");
  if (is_whole(r) && !has_uncommitted(r)) {
    size_t placed = 0;
    rc = place_strangers(r, &placed, e);
    if (rc == 0) rc = count_unsaid(r, e);
    if (rc < 0 || placed + r->unsaid == 0) return rc < 0 ? rc : tell_whole(r);
    rc = look(r, e);
  }
  if (rc == 0) rc = may_repair(r, e);
  if (rc == 0 && !r->how->dry) rc = write_all(r, e);
  if (rc == 0) rc = make_log(r, e);
  if (rc == 0) rc = tell_all(r, e);
  return rc != 0 ? rc : tell_log(r, r->how->dry ? "a new log would be made" : "a new log was made");
}

int repair_log(const repair *how, err *e) {
  repairing r;
  int rc = begin(how, &r, e);
  if (rc == 0) rc = repair_it(&r, e);
  forget(&r);
  return rc;
}
