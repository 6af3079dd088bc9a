#include "outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/cli/flags_named.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "state_dir.h"

static void copy_pending(void *ctx, const ckpt_pending *p) {
  outcome *o = ctx;
  ckpt_pending *all = realloc(o->pending, (o->pending_count + 1) * sizeof *all);
  if (!all) return;
  o->pending = all;
  all += o->pending_count++;
  *all = *p;
  all->unit = p->unit ? strdup(p->unit) : NULL;
  all->reason = p->reason ? flags_named(p->reason) : NULL;
}

void outcome_take(outcome *o, ckpt_run *run) {
  o->target = ckpt_run_target(run);
  o->run_id = ckpt_run_id(run);
  o->dir = ckpt_run_dir(run);
  o->status = (ckpt_run_status){.size = sizeof o->status};
  if (ckpt_run_get_status(run, &o->status) < 0) { /* what is not known is not durable */
    o->status.newest_status = CKPT_EINTERNAL;
    o->status.standing = CKPT_NOT_DURABLE;
  }
  ckpt_run_pending(run, copy_pending, o);
}

void outcome_free(outcome *o) {
  for (size_t i = 0; i < o->pending_count; i++) {
    free((char *)o->pending[i].unit);
    free((char *)o->pending[i].reason);
  }
  free(o->pending);
  o->pending = NULL;
  o->pending_count = 0;
}

static uint32_t standing_of(const outcome *o) {
  return o->unopened ? 0 : o->status.standing;
}

bool outcome_durable(const outcome *o) {
  return standing_of(o) == CKPT_DURABLE;
}

static bool is_late(const outcome *o) {
  return standing_of(o) == CKPT_NOT_DURABLE;
}

static bool has_no_commit(const outcome *o) {
  return standing_of(o) == CKPT_NOTHING_TO_SAVE || standing_of(o) == CKPT_NOT_WANTED;
}

static void set(outcome *o, int code, const char *reason) {
  o->exit_code = code;
  o->reason = reason;
}

void outcome_decide(outcome *o, bool deadline, bool stopped_as_fenced, bool require_commit) {
  int child = o->has_child ? exit_code_of_wait(o->child_status) : 0;
  /* A child that we stopped ourselves would say 143, and hide why. */
  if (stopped_as_fenced)
    set(o, EXIT_FENCED, "fenced");
  else if (child != 0)
    set(o, child, o->signal ? "signal" : "child");
  else if (o->turned_away)
    set(o, EXIT_HELD, "held");
  else if (o->status.fenced)
    set(o, EXIT_FENCED, "fenced");
  else if (deadline && is_late(o))
    set(o, EXIT_DEADLINE, "deadline");
  else if (o->status.newest_status != CKPT_OK)
    set(o,
        ckpt_class(o->status.newest_status) == CKPT_CLASS_PERMANENT &&
                o->status.newest_status != CKPT_ECORRUPT
            ? EXIT_STORE
            : exit_code_of(o->status.newest_status),
        "store");
  else if (is_late(o))
    set(o, EXIT_GAVE_UP, "store");
  else if (standing_of(o) == CKPT_NOT_PROVEN)
    set(o, EXIT_PARTIAL, "unproven");
  else if (require_commit && has_no_commit(o))
    set(o, EXIT_NOTHING, "nothing");
  else
    set(o, EXIT_DONE, o->signal ? "signal" : "done");
}

void outcome_decide_sync(outcome *o, bool deadline, bool require_commit) {
  const ckpt_run_status *s = &o->status;
  bool partial = o->pending_count > 0 || s->failed > 0 || s->unproven > 0;
  outcome_decide(o, deadline, false, require_commit);
  /* These say more: fenced, out of time, or refused by the store from the beginning. */
  if (s->fenced || s->newest_status == CKPT_ECORRUPT || (deadline && is_late(o)) ||
      (partial && s->committed == 0 && s->failed))
    return;
  if (partial) set(o, EXIT_PARTIAL, "partial");
}

/* ---- the last line ---- */

static void say_newest(FILE *f, const ckpt_run_status *s) {
  if (!s->newest_unit) return;
  fprintf(f, ", newest %s", s->newest_unit);
  if (s->newest_step >= 0) fprintf(f, " (step %lld)", (long long)s->newest_step);
  if (s->newest_age_s >= 0) {
    fputs(", ", f);
    text_age(f, s->newest_age_s, 0);
    fputs(" ago", f);
  }
}

static void say_count(FILE *f, bool *any, uint32_t n, const char *what) {
  if (n == 0) return;
  fprintf(f, "%s %u %s", *any ? "," : ";", n, what);
  *any = true;
}

/* Of what is not waited for, the reason; of the rest, how much it is. */
static void say_left(FILE *f, const ckpt_pending *p) {
  static const char late[] = "not saved: ";
  if (p->reason && strncmp(p->reason, late, sizeof late - 1) == 0) {
    fputs(p->reason + sizeof late - 1, f);
  } else {
    text_size(f, p->bytes_left);
    fputs(" left", f);
  }
}

static void say_pending(FILE *f, const outcome *o) {
  enum { NAMED = 10 }; /* a line is read by people */
  for (size_t i = 0; i < o->pending_count && i < NAMED; i++) {
    const ckpt_pending *p = &o->pending[i];
    fprintf(f, "%s%s (", i == 0 ? "" : ", ", p->unit ? p->unit : "?");
    say_left(f, p);
    fputc(')', f);
  }
  if (o->pending_count > NAMED) fprintf(f, " and %zu more", o->pending_count - NAMED);
}

/* The engine's reasons often begin with the name, which stands before them already. */
static const char *without_name(const char *reason, const char *unit) {
  size_t n = unit ? strlen(unit) : 0;
  bool named =
      reason && n > 0 && strncmp(reason, unit, n) == 0 && strncmp(reason + n, ": ", 2) == 0;
  return named ? reason + n + 2 : reason;
}

static void say_why(FILE *f, const char *unit, const char *policy, const char *reason) {
  reason = without_name(reason, unit);
  fputs(unit ? unit : "?", f);
  bool who = policy && *policy, why = reason && *reason;
  if (who || why)
    fprintf(f, " (%s%s%s%s)", who ? "by " : "", who ? policy : "", who && why ? ": " : "",
            why ? reason : "");
}

static void say_unwanted(FILE *f, const ckpt_run_status *s) {
  say_why(f, s->unwanted_unit, s->unwanted_policy, s->unwanted_reason);
}

static void say_durable(FILE *f, const outcome *o) {
  fprintf(f, "durable%s%s", o->target ? " in " : "", o->target ? o->target : "");
  if (o->status.unwanted_unit) {
    fputs("; not wanted: ", f);
    say_unwanted(f, &o->status);
  }
  if (o->pending_count == 0) return;
  fputs("; not saved: ", f); /* older ones */
  say_pending(f, o);
}

static void say_late(FILE *f, const outcome *o) {
  if (o->pending_count > 0) {
    fputs("NOT durable: ", f);
    say_pending(f, o);
  } else if (o->status.newest_status != CKPT_OK) {
    fprintf(f, "the newest is NOT durable (%s)", ckpt_status_name(o->status.newest_status));
  } else {
    fputs("NOT durable", f);
  }
}

void outcome_standing(FILE *f, const outcome *o) {
  const ckpt_run_status *s = &o->status;
  const char *dir = o->dir ? o->dir : "the directory";
  switch (standing_of(o)) {
  case CKPT_DURABLE: say_durable(f, o); break;
  case CKPT_NOTHING_TO_SAVE:
    fprintf(f, "nothing to save: %s %s",
            s->saw_file ? "no checkpoint was complete in" : "there was no file in", dir);
    break;
  case CKPT_NOT_WANTED:
    fputs("not wanted: ", f);
    say_unwanted(f, s);
    break;
  case CKPT_NOT_PROVEN:
    fputs("NOT proven whole: ", f);
    say_why(f, s->unproven_unit, NULL, s->unproven_reason);
    break;
  case CKPT_NOT_DURABLE: say_late(f, o); break;
  default: break;
  }
}

void outcome_sentence(FILE *f, const outcome *o) {
  const ckpt_run_status *s = &o->status;
  if (o->unopened) {
    fprintf(f, "the run did not begin: %s", o->text ? o->text : "");
    return;
  }
  fprintf(f, "%u committed", s->committed);
  say_newest(f, s);
  if (s->committed > 0) {
    fputs(", ", f);
    text_size(f, s->bytes_committed);
  }
  bool any = false;
  say_count(f, &any, s->dropped, "let go for a newer one");
  say_count(f, &any, s->skipped, "skipped by the policy");
  say_count(f, &any, s->retired, "changed while read");
  say_count(f, &any, s->failed, "failed");
  say_count(f, &any, s->unproven, "not proven whole");
  if (s->policy_fallbacks > 0)
    fprintf(f, "; a policy failed %llu time%s, and the safe answer held",
            (unsigned long long)s->policy_fallbacks, s->policy_fallbacks == 1 ? "" : "s");
  if (s->fenced)
    fputs(o->turned_away ? "; saving has ended, the target is not ours" : "; fenced by a newer run",
          f);
  if (standing_of(o)) fputs("; ", f);
  outcome_standing(f, o);
}

void outcome_print(const outcome *o) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  outcome_sentence(f, o);
  if (fclose(f) == 0) report_last_word("%s", text);
  free(text);
}

/* ---- exit.json ---- */

static void add_child(record *r, const outcome *o) {
  if (!o->has_child) {
    record_text(r, "child", NULL);
    return;
  }
  bool killed = WIFSIGNALED(o->child_status);
  record child = record_begin(record_key(r, "child"));
  record_count(&child, killed ? "signal" : "code",
               (uint64_t)(killed ? WTERMSIG(o->child_status) : WEXITSTATUS(o->child_status)));
  record_end(&child);
}

static void add_newest(record *r, const ckpt_run_status *s) {
  if (!s->newest_unit) {
    record_text(r, "newest", NULL);
    return;
  }
  record newest = record_begin(record_key(r, "newest"));
  record_name(&newest, "unit", s->newest_unit);
  record_step(&newest, "step", s->newest_step);
  fprintf(record_key(&newest, "age_s"), "%.3f", s->newest_age_s >= 0 ? s->newest_age_s : 0.0);
  record_end(&newest);
}

static void add_pending(record *r, const outcome *o) {
  FILE *f = record_key(r, "not_durable");
  fputc('[', f);
  for (size_t i = 0; i < o->pending_count; i++) {
    const ckpt_pending *p = &o->pending[i];
    if (i > 0) fputc(',', f);
    record item = record_begin(f);
    record_name(&item, "unit", p->unit);
    record_text(&item, "reason", p->reason);
    record_count(&item, "bytes", p->bytes);
    record_count(&item, "bytes_left", p->bytes_left);
    record_end(&item);
  }
  fputc(']', f);
}

static void add_unit(record *r, const char *key, const char *unit, const char *policy,
                     const char *reason) {
  if (!unit) {
    record_text(r, key, NULL);
    return;
  }
  record item = record_begin(record_key(r, key));
  record_name(&item, "unit", unit);
  if (policy) record_text(&item, "policy", policy);
  record_text(&item, "reason", reason);
  record_end(&item);
}

void outcome_json_state(record *r, const outcome *o) {
  const ckpt_run_status *s = &o->status;
  record_text(r, "standing", ckpt_standing_name(standing_of(o)));
  record_bool(r, "durable", outcome_durable(o));
  record_bool(r, "fenced", s->fenced);
  record_count(r, "committed", s->committed);
  record_count(r, "dropped", s->dropped); /* as it was called before; the word is retention's */
  record_count(r, "let_go", s->dropped);
  record_count(r, "retired", s->retired);
  record_count(r, "failed", s->failed);
  record_count(r, "unproven", s->unproven);
  record_count(r, "skipped", s->skipped);
  record_text(r, "policies", s->policies);
  record_count(r, "policy_fallbacks", s->policy_fallbacks);
  record_count(r, "bytes_committed", s->bytes_committed);
  record_count(r, "bytes_left", s->bytes_left);
  record_count(r, "unmatched", s->unmatched);
  add_newest(r, s);
  add_unit(r, "not_wanted", s->unwanted_unit, s->unwanted_policy, s->unwanted_reason);
  add_unit(r, "not_proven", s->unproven_unit, NULL, s->unproven_reason);
  add_pending(r, o);
}

/* Writes first what a person wants to know, and of which target it is true: `status` reads these
 * two without knowing the rest. */
static void add_summary(record *r, const outcome *o) {
  char *text = NULL;
  size_t size = 0;
  FILE *sentence = open_memstream(&text, &size);
  if (!sentence) return;
  outcome_sentence(sentence, o);
  record_text(r, "summary", fclose(sentence) == 0 ? text : "");
  free(text);
}

static void json_outcome(FILE *f, const outcome *o) {
  record r = record_begin(f);
  add_summary(&r, o);
  record_text(&r, "target", o->target);
  record_text(&r, "run", o->run_id);
  if (o->dir)
    record_name(&r, "directory", o->dir);
  else
    record_text(&r, "directory", NULL);
  record_text(&r, "host", *o->host ? o->host : NULL);
  record_count(&r, "rank", o->rank);
  record_count(&r, "world", o->world);
  record_text(&r, "version", ckpt_version());
  record_text(&r, "verb", o->verb);
  fprintf(record_key(&r, "exit_code"), "%d", o->exit_code);
  record_text(&r, "reason", o->reason);
  record_text(&r, "error", o->text && *o->text ? o->text : NULL);
  add_child(&r, o);
  record_step(&r, "signal", o->signal ? o->signal : -1);
  outcome_json_state(&r, o);
  record_time(&r, "started", o->begin_ns);
  record_time(&r, "ended", o->end_ns);
  fprintf(record_key(&r, "seconds"), "%.3f", (double)(o->end_ns - o->begin_ns) / 1e9);
  record_end_line(&r);
}

/* A reader must see the old file or the whole new one, also after a power cut. */
static int replace(int dir, const char *from, const char *to) {
  return renameat(dir, from, dir, to) != 0 || fsync(dir) != 0 ? -errno : 0;
}

void outcome_write(const outcome *o, const char *state) {
  static const char to[] = "exit.json", tmp[] = "exit.json.tmp";
  int dir = state_dir_open(state), rc = dir;
  FILE *f;
  if (dir >= 0) rc = state_dir_create(dir, tmp, 0600, &f);
  if (rc == 0) {
    json_outcome(f, o);
    rc = state_dir_finish(f);
  }
  if (rc == 0) rc = replace(dir, tmp, to);
  if (rc < 0) report_warning("cannot write %s/%s: %s", state, to, strerror(-rc));
  if (rc < 0 && dir >= 0) unlinkat(dir, tmp, 0);
  if (dir >= 0) close(dir);
}

void outcome_forget(const char *state) {
  state_dir_forget(state, "exit.json");
}
