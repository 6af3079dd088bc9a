#include "explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/seconds.h"
#include "base/uri.h"
#include "base/vec.h"
#include "plan/standing.h"

/* ---- findings ---- */

void explain_free(explain *x) {
  for (size_t i = 0; i < x->count; i++) free(x->findings[i].text);
  free(x->findings);
  *x = (explain){0};
}

void explain_add(explain *x, const char *topic, int64_t time_ns, const char *fmt, ...) {
  char text[EXPLAIN_TEXT_MAX];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  char *copy = VEC_ROOM(x->findings, x->count, x->room) ? strdup(text) : NULL;
  if (copy)
    x->findings[x->count++] = (explain_finding){topic, copy, time_ns};
  else
    x->starved = true;
}

void explain_cause(explain *x, const char *cause, const char *fmt, ...) {
  char text[EXPLAIN_TEXT_MAX]; /* the arguments may point into the text that it replaces */
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (cause != x->cause) snprintf(x->cause, sizeof x->cause, "%s", cause);
  memcpy(x->text, text, sizeof text);
}

/* ---- the history ---- */

static void drop_record(trail_record *r) {
  for (size_t i = 0; i < TRAIL_TEXTS; i++) free((char *)*trail_text(r, i));
}

static char *copy_of(const char *text) {
  return text ? strdup(text) : NULL;
}

void explain_remember(explain_history *h, const char *unit, const trail_record *r) {
  if (r->what == TRAIL_START || r->what == TRAIL_FENCED) {
    free(h->fenced);
    h->fenced = r->what == TRAIL_FENCED ? copy_of(r->reason ? r->reason : "") : NULL;
  }
  if (r->what == TRAIL_START) h->started_ns = r->time_ns;
  if (!r->unit || strcmp(r->unit, unit) != 0) return;
  if (h->count == EXPLAIN_HISTORY_MAX) {
    drop_record(&h->records[0]);
    memmove(h->records, h->records + 1, (--h->count) * sizeof *h->records);
  }
  trail_record *to = &h->records[h->count++];
  *to = *r;
  for (size_t i = 0; i < TRAIL_TEXTS; i++) *trail_text(to, i) = copy_of(*trail_text(to, i));
}

void explain_forget(explain_history *h) {
  for (size_t i = 0; i < h->count; i++) drop_record(&h->records[i]);
  free(h->fenced);
  *h = (explain_history){0};
}

static const struct {
  const char *topic, *text;
} told[] = {
    [TRAIL_START] = {"run", "a run began"},
    [TRAIL_OPEN] = {"rule", "not complete yet"},
    [TRAIL_COMPLETE] = {"rule", "complete"},
    [TRAIL_UNPROVEN] = {"rule", "left alone"},
    [TRAIL_GONE] = {"seen", "gone from the directory"},
    [TRAIL_SKIPPED] = {"decision", "skipped"},
    [TRAIL_WAITING] = {"queue", "in the queue"},
    [TRAIL_BEGUN] = {"save", "its upload began"},
    [TRAIL_RETRYING] = {"save", "a try failed"},
    [TRAIL_COMMITTED] = {"store", "durable"},
    [TRAIL_LET_GO] = {"queue", "let go"},
    [TRAIL_RETIRED] = {"save", "its upload was stopped"},
    [TRAIL_FAILED] = {"save", "given up"},
    [TRAIL_FENCED] = {"save", "fenced"},
    [TRAIL_DROPPED] = {"retention", "no longer kept in the store"},
    [TRAIL_DELETED] = {"retention", "its data in the store was deleted"},
};

static bool says_policy(const char *policy) {
  return policy && *policy && strcmp(policy, "builtin") != 0;
}

static const char *text_of(const char *text) {
  return text ? text : "";
}

static void add_record(explain *x, const trail_record *r) {
  const char *reason = text_of(r->reason);
  explain_add(x, told[r->what].topic, r->time_ns, "%s%s%s%s%s%s", told[r->what].text,
              *reason ? ": " : "", reason, says_policy(r->policy) ? " (policy " : "",
              says_policy(r->policy) ? r->policy : "", says_policy(r->policy) ? ")" : "");
  for (const char *at = text_of(r->left); *at;) {
    const size_t len = strcspn(at, "\n");
    explain_add(x, "store", r->time_ns, "it was saved without what \"%.*s\" means", (int)len, at);
    at += len + (at[len] != 0);
  }
}

/* ---- the cause ---- */

/* All facts that count, put together. */
typedef struct fate {
  const char *unit;
  bool there;
  const last_rules *last;
  const explain_history *h;
  const explain_live *live;
  trail_record now;              /* the last word about it */
  const trail_record *before;    /* the one before it was gone, or NULL */
  const trail_record *committed; /* the newest commit that the trail knows, or NULL */
  const char *fenced;
} fate;

void explain_print_time(int64_t ns, char out[32]) {
  time_t s = (time_t)(ns / 1000000000);
  struct tm tm;
  if (!gmtime_r(&s, &tm) || strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
    snprintf(out, 32, "an unknown time");
}

static void on_open(explain *x, const fate *f) {
  const char *reason = text_of(f->now.reason), *when = f->live ? "" : " (when the run ended)";
  if (!f->now.cause && says_policy(f->now.policy))
    explain_cause(x, "not-ready", "policy %s does not call it ready%s: %s", f->now.policy, when,
                  reason);
  else
    explain_cause(x, f->now.cause ? f->now.cause : "open", "not complete%s: %s", when, reason);
}

static void on_unproven(explain *x, const fate *f) {
  explain_cause(x, f->now.cause ? f->now.cause : "unproven", "left alone: %s",
                text_of(f->now.reason));
}

static void on_skipped(explain *x, const fate *f) {
  const char *reason = text_of(f->now.reason), *cause = "skipped";
  if (strcmp(reason, TRAIL_SAYS_NULL) == 0) cause = "null-marker";
  if (strcmp(reason, TRAIL_SAYS_TEMP) == 0) cause = "temp-marker";
  explain_cause(x, cause, "policy %s does not want it: %s", text_of(f->now.policy), reason);
}

static void on_waiting(explain *x, const fate *f) {
  const char *behind = f->live ? f->live->behind : NULL;
  if (f->fenced)
    explain_cause(x, "fenced", "this run may write no more: %s", f->fenced);
  else if (!f->live)
    explain_cause(x, "waiting", "it waited for its turn when the run ended");
  else if (behind)
    explain_cause(x, "waiting", "it waits behind %s", behind);
  else if (f->live->next_s > 0)
    explain_cause(x, "waiting", "its turn comes in %.0f s: until then it may still be written",
                  f->live->next_s);
  else
    explain_cause(x, "waiting", "it waits for its turn");
}

static void on_begun(explain *x, const fate *f) {
  if (f->live)
    explain_cause(x, "uploading", "%" PRIu64 " of %" PRIu64 " bytes are there", f->live->moved,
                  f->live->total);
  else
    explain_cause(x, "interrupted", "the run ended while it was sent");
}

static void on_retrying(explain *x, const fate *f) {
  const char *reason = text_of(f->now.reason);
  if (f->fenced)
    explain_cause(x, "fenced", "this run may write no more: %s", f->fenced);
  else if (f->live)
    explain_cause(x, "retrying", "try %u of %u failed, the next one in %.0f s: %s", f->now.tries,
                  f->live->most_tries, f->live->next_s > 0 ? f->live->next_s : 0, reason);
  else
    explain_cause(x, "retrying", "the run ended after try %u, which failed: %s", f->now.tries,
                  reason);
}

static void on_failed(explain *x, const fate *f) {
  const char *reason = text_of(f->now.reason);
  int status = f->now.status;
  if (status == ERR_CANCELED)
    explain_cause(x, "cancelled", "%s", *reason ? reason : "it was cancelled");
  else if (status == ERR_RETIRED)
    explain_cause(x, "changed", "%s", reason);
  else if (status == ERR_FENCED)
    explain_cause(x, "fenced", "this run may write no more: %s", reason);
  else if (err_class_of(status) == ERR_CLASS_RETRYABLE)
    explain_cause(x, "gave-up", "given up after %u tries: %s", f->now.tries, reason);
  else
    explain_cause(x, "refused", "the store refused it: %s", reason);
}

static void on_committed(explain *x, const fate *f) {
  char when[32];
  explain_print_time(f->now.time_ns, when);
  if (f->now.commit)
    explain_cause(x, "committed", "it is in the store since %s, as entry %" PRIu64 " of the log%s",
                  when, f->now.commit, f->there ? "" : "; it was removed here since");
  else
    explain_cause(x, "committed", "it is in the store since %s%s", when,
                  f->there ? "" : "; it was removed here since");
}

enum { WORD_MAX = 400 };

/* " (whose word: why)"; what went with its whole run has none. */
static void put_word(char to[WORD_MAX], const char *policy, const char *reason) {
  const char *whose = text_of(policy), *why = text_of(reason);
  to[0] = 0;
  if (*whose || *why) snprintf(to, WORD_MAX, " (%s%s%s)", whose, *whose && *why ? ": " : "", why);
}

static void on_dropped(explain *x, const fate *f, const char *policy, const char *reason,
                       int64_t drop_ns) {
  char when[32], word[WORD_MAX];
  put_word(word, policy, reason);
  explain_print_time(seconds_later(drop_ns, f->last ? f->last->grace_ns : 0), when);
  if (f->last && f->last->no_delete)
    explain_cause(x, "dropped", "no longer kept%s; its data stays (`no_delete`)", word);
  else if (f->last && f->last->grace_ns == SECONDS_FOREVER)
    explain_cause(x, "dropped", "no longer kept%s; its data stays (its grace has no end)", word);
  else if (f->last && f->last->grace_ns > 0)
    explain_cause(x, "dropped", "no longer kept%s; its data goes not before %s", word, when);
  else
    explain_cause(x, "dropped", "no longer kept%s; its data goes after the grace", word);
}

static void on_gone(explain *x, const fate *f);

static void judge(explain *x, const fate *f) {
  switch (f->now.what) {
  case TRAIL_OPEN: on_open(x, f); break;
  case TRAIL_UNPROVEN: on_unproven(x, f); break;
  case TRAIL_SKIPPED: on_skipped(x, f); break;
  case TRAIL_COMPLETE:
  case TRAIL_WAITING: on_waiting(x, f); break;
  case TRAIL_BEGUN: on_begun(x, f); break;
  case TRAIL_RETRYING: on_retrying(x, f); break;
  case TRAIL_COMMITTED: on_committed(x, f); break;
  case TRAIL_LET_GO: explain_cause(x, "let-go", "%s", text_of(f->now.reason)); break;
  case TRAIL_RETIRED: explain_cause(x, "changed", "%s", text_of(f->now.reason)); break;
  case TRAIL_FAILED: on_failed(x, f); break;
  case TRAIL_FENCED:
    explain_cause(x, "fenced", "this run may write no more: %s", text_of(f->now.reason));
    break;
  case TRAIL_DROPPED: on_dropped(x, f, f->now.policy, f->now.reason, f->now.time_ns); break;
  case TRAIL_DELETED:
    explain_cause(x, "deleted", "its data in the store was deleted: %s", text_of(f->now.reason));
    break;
  case TRAIL_GONE: on_gone(x, f); break;
  case TRAIL_START: break;
  }
}

/* Explains a unit that was removed: the decision before its removal is the cause, since the removal
 * came after. */
static void on_gone(explain *x, const fate *f) {
  fate then = *f;
  bool decided = false;
  if (f->before)
    decided = f->before->what == TRAIL_SKIPPED || f->before->what == TRAIL_LET_GO ||
              f->before->what == TRAIL_FAILED || f->before->what == TRAIL_RETIRED ||
              f->before->what == TRAIL_FENCED || f->before->what == TRAIL_COMMITTED ||
              f->before->what == TRAIL_DROPPED || f->before->what == TRAIL_DELETED;
  if (f->now.cause) {
    explain_cause(x, f->now.cause, "%s", text_of(f->now.reason));
  } else if (decided) {
    then.now = *f->before;
    judge(x, &then);
    if (then.now.what != TRAIL_COMMITTED)
      explain_cause(x, x->cause, "%.900s; it was removed here since", x->text);
  } else {
    explain_cause(x, "removed", "it was removed before it was saved%s%s",
                  f->before && f->before->reason ? "; until then: " : "",
                  f->before ? text_of(f->before->reason) : "");
  }
}

/* Finds the last word: of the trail, or of a live run. */
static void find_now(fate *f) {
  const explain_history *h = f->h;
  for (size_t i = 0; i < h->count; i++) {
    const trail_record *r = &h->records[i];
    if (r->what == TRAIL_GONE)
      f->before = i > 0 && h->records[i - 1].what != TRAIL_GONE ? &h->records[i - 1] : f->before;
    if (r->what == TRAIL_COMMITTED) f->committed = r;
    f->now = *r;
  }
  /* A later word of retention about a commit says nothing about newer content. */
  bool of_store = f->now.what == TRAIL_DROPPED || f->now.what == TRAIL_DELETED;
  if (!f->live || (of_store && f->live->phase == TRAIL_COMMITTED)) return;
  bool same = h->count > 0 && f->now.what == f->live->phase;
  f->now.what = f->live->phase;
  f->now.cause = f->live->cause;
  if (!same || f->live->phase == TRAIL_OPEN) {
    f->now.policy = f->live->policy;
    f->now.reason = f->live->reason;
  }
  f->now.status = f->live->status;
  f->now.tries = f->live->tries;
  if (f->now.what == TRAIL_COMMITTED && f->committed) {
    f->now.time_ns = f->committed->time_ns;
    f->now.commit = f->committed->commit;
  }
}

/* ---- the store ---- */

static void judge_stored(explain *x, const fate *f, const explain_stored *s) {
  char when[32], word[WORD_MAX];
  explain_print_time(s->time_ns, when);
  explain_add(x, "store", s->time_ns, "%s has it as %s, entry %" PRIu64 " of the log%s%s%s%s",
              s->where, s->dir, s->commit.n, s->policy ? "; policy " : "", text_of(s->policy),
              s->reason && *s->reason ? ": " : "", text_of(s->reason));
  if (s->bad)
    explain_add(x, "bad", 0, "it is marked as one that does not load%s%s: no restore chooses it",
                s->bad_reason ? ": " : "", s->bad_reason ? s->bad_reason : "");
  if (s->taken && s->life == RUNLOG_LIVE)
    explain_add(x, "retention", s->taken_ns,
                "without %" PRIu64
                " file%s that %s taken since newer ones have such files; policy %s",
                s->taken_files, s->taken_files == 1 ? "" : "s",
                s->taken_files == 1 ? "was" : "were", s->taken_policy ? s->taken_policy : "?");
  if (s->life == RUNLOG_DROPPED) {
    on_dropped(x, f, s->drop_policy, s->drop_reason, s->drop_ns);
    explain_add(x, "retention", s->drop_ns, "%s", x->text);
  } else if (s->life == RUNLOG_DELETED) {
    put_word(word, s->drop_policy, s->drop_reason);
    explain_cause(x, "deleted", "its data in the store was deleted%s", word);
    explain_add(x, "retention", s->drop_ns, "%s", x->text);
  } else {
    explain_cause(x, "committed", "it is in %s since %s, as entry %" PRIu64 " of the log%s%s",
                  s->where, when, s->commit.n, f->there ? "" : "; it is not here",
                  s->bad ? "; it is marked bad" : "");
  }
}

static bool is_of(const trail_record *r, const runlog_ref *commit) {
  return r->commit == commit->n && strcmp(r->log, commit->log) == 0 &&
         strcmp(r->entry, commit->entry) == 0;
}

/* True if the store's commit of this name is surely none of those that were made or seen here. The
 * name, and the number, may be another one's: in a second target, or one that was restored from an
 * older backup. A record without nonces may name any commit. */
static bool is_others(const explain_history *h, const runlog_ref *commit) {
  bool some = false;
  if (!*commit->log || !*commit->entry || h->count == EXPLAIN_HISTORY_MAX) return false;
  for (size_t i = 0; i < h->count; i++) {
    const trail_record *r = &h->records[i];
    if (r->what != TRAIL_COMMITTED) continue;
    if (!r->log || !r->entry || is_of(r, commit)) return false;
    some = true;
  }
  return some;
}

/* True if it is one of ours, and the newest save from here had another content. */
static bool is_older(const fate *f, const runlog_ref *commit) {
  const char *newest = f->committed ? f->committed->content : NULL;
  bool other = false;
  if (!newest || !*commit->log || !*commit->entry) return false;
  for (size_t i = 0; i < f->h->count; i++) {
    const trail_record *r = &f->h->records[i];
    if (r->what != TRAIL_COMMITTED || !r->log || !r->entry || !is_of(r, commit)) continue;
    if (!r->content || strcmp(r->content, newest) == 0) return false;
    other = true;
  }
  return other;
}

static void judge_others(explain *x, const fate *f, const explain_stored *s, const char *what) {
  bool other = f->last && f->last->target && !uri_same_place(f->last->target, s->where);
  explain_add(x, "store", s->time_ns, "%s has %s under this name, as entry %" PRIu64 " of its log",
              s->where, what, s->commit.n);
  if (other)
    explain_cause(x, "other-store", "it was saved to %s; %s has only %s of that name",
                  f->last->target, s->where, what);
  else
    explain_cause(x, "lost", "it was saved, but %s has only %s of that name", s->where, what);
}

static void judge_store(explain *x, const fate *f, const explain_stored *s) {
  bool known = *x->cause;
  bool local = strcmp(x->cause, "committed") == 0 || strcmp(x->cause, "dropped") == 0;
  if (s->found && local && is_others(f->h, &s->commit)) {
    judge_others(x, f, s, "another content");
  } else if (s->found && local && is_older(f, &s->commit)) {
    judge_others(x, f, s, "an older content");
  } else if (s->found && (!known || local || strcmp(x->cause, "removed") == 0)) {
    judge_stored(x, f, s);
  } else if (s->found) {
    explain_add(x, "store", s->time_ns, "%s has an older content of it, as %s", s->where, s->dir);
  } else if (s->asked && strcmp(x->cause, "committed") == 0) {
    bool other = f->last && f->last->target && !uri_same_place(f->last->target, s->where);
    if (other)
      explain_cause(x, "other-store", "it was saved to %s; %s does not have it", f->last->target,
                    s->where);
    else
      explain_cause(x, "lost", "it was saved, but the log at %s does not have it", s->where);
  } else if (s->asked) {
    explain_add(x, "store", 0, "%s does not have it", s->where);
  }
}

/* ---- the standing ---- */

/* Says of this one what the run's last word says of all. */
static standing_word standing_of(const explain *x, const fate *f) {
  static const struct {
    const char *cause;
    standing_word word;
  } known[] = {
      {"committed", STANDING_DURABLE},      {"dropped", STANDING_NOT_WANTED},
      {"deleted", STANDING_NOT_WANTED},     {"skipped", STANDING_NOT_WANTED},
      {"null-marker", STANDING_NOT_WANTED}, {"temp-marker", STANDING_NOT_WANTED},
      {"torn", STANDING_NOT_PROVEN},        {"quarantined", STANDING_NOT_PROVEN},
      {"not-seen", STANDING_UNKNOWN},       {"not-watched", STANDING_UNKNOWN},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(x->cause, known[i].cause) == 0) return known[i].word;
  if (f->now.what == TRAIL_UNPROVEN) return STANDING_NOT_PROVEN;
  if (f->now.what != TRAIL_OPEN || f->live) return STANDING_NOT_DURABLE;
  return strcmp(x->cause, "not-ready") == 0 ? STANDING_NOT_WANTED : STANDING_NOT_PROVEN;
}

static void judge_unseen(explain *x, const fate *f) {
  if (!f->there)
    explain_cause(x, "not-seen", "there is no %s, and no run has seen it", f->unit);
  else if (f->h->started_ns)
    explain_cause(x, "not-watched", "no run has looked at it since it is there");
  else
    explain_cause(x, "not-watched", "no run has watched this directory yet");
}

void explain_fate(explain *x, const char *unit, bool there, const last_rules *last,
                  const explain_history *h, const explain_live *live, const explain_stored *stored,
                  int64_t now) {
  fate f = {.unit = unit, .there = there, .last = last, .h = h, .live = live, .fenced = h->fenced};
  for (size_t i = 0; i < h->count; i++) add_record(x, &h->records[i]);
  f.now = (trail_record){.time_ns = now};
  find_now(&f);
  if (h->count > 0 || live) judge(x, &f);
  if (f.now.what == TRAIL_OPEN && f.committed)
    explain_add(x, "store", f.committed->time_ns, "an older content of it is in the store");
  if (stored) judge_store(x, &f, stored);
  if (!*x->cause) judge_unseen(x, &f);
  const char *name = standing_name(standing_of(x, &f));
  if (name) explain_add(x, "standing", 0, "%s", name);
}
