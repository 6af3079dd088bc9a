#include "detect_rule.h"

#include <stdarg.h>
#include <stdio.h>

#include "detect_condition.h"

/* A file above the checkpoints is written in one piece, and its structure is looked at before it is
 * called complete; the framework writes it again every few seconds. */
static const int64_t above_ns = 1000000000;
static const int64_t ask_again = 5000000000; /* while somebody has it open and no event will tell */

static void say(rule_verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(rule_verdict *v, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(v->reason, sizeof v->reason, fmt, args);
  va_end(args);
}

static void set(rule_verdict *v, detect_state state, int64_t wait) {
  v->state = state;
  v->wait = wait;
}

/* True if it may be called `state` now; else it stays open because somebody has it open. */
static bool nobody_writes(const rule_facts *f, rule_verdict *v) {
  v->ask_writer = f->writer == RULE_UNASKED;
  if (f->writer != RULE_SOMEBODY) return true;
  set(v, DETECT_OPEN, ask_again);
  v->cause = "open";
  say(v, "somebody still has a file of it open for writing");
  return false;
}

/* Returns how long to wait, since a change within the tick of the newest time stamp would leave no
 * trace. Stamps from the future tell nothing, so only our own clock counts then. */
static int64_t racy_for(const rule_facts *f) {
  int64_t age = f->age >= 0 ? f->age : f->quiet;
  return age > f->grain ? 0 : f->grain - age + 1;
}

/* Calls it complete after `need` ns of quiet. */
static void after_quiet(const rule_facts *f, int64_t need, bool ask, const char *what,
                        const char *detail, rule_verdict *v) {
  int64_t left = need - f->quiet, racy = racy_for(f);
  if (left < 0) left = 0;
  if (racy > left) left = racy;
  if (left > 0) {
    set(v, DETECT_OPEN, left);
    v->cause = "not-quiet";
    say(v, "%s%s, quiet %.1f of %g s", what, detail, (double)f->quiet / 1e9, (double)need / 1e9);
    return;
  }
  if (ask && !nobody_writes(f, v)) return;
  set(v, DETECT_COMPLETE, RULE_NEVER);
  v->cause = NULL;
  say(v, "%s%s", what, detail);
}

/* True if it came back to life: a writer that lives is writing its files, so a missing part may
 * still come. */
static bool coming(const rules *r, const rule_facts *f, rule_verdict *v) {
  bool over = f->clean && !f->foreign;
  if (!f->touched || f->dead || over || f->quiet >= r->quiet_ns) return false;
  set(v, DETECT_OPEN, r->quiet_ns - f->quiet);
  return true;
}

static void decide_empty(const rules *r, const rule_facts *f, rule_verdict *v) {
  v->cause = "empty";
  if (coming(r, f, v)) {
    say(v, "it holds no file yet");
  } else if (nobody_writes(f, v)) {
    set(v, DETECT_BROKEN, RULE_NEVER);
    say(v, "it holds no file");
  }
}

static void decide_needed(const rules *r, const rule_facts *f, rule_verdict *v) {
  v->cause = "marker-missing";
  bool ended = f->unproven > 0 || f->dead || f->ended;
  if (!ended || coming(r, f, v)) {
    if (!ended) set(v, DETECT_OPEN, RULE_NEVER);
    say(v, "%s is not there yet", f->needed);
  } else if (nobody_writes(f, v)) {
    set(v, DETECT_BROKEN, RULE_NEVER);
    say(v, "%s is missing, and it is written last", f->needed);
  }
}

static void decide_unproven(const rules *r, const rule_facts *f, const char *cause,
                            const char *what, const char *detail, rule_verdict *v) {
  v->cause = cause;
  if (coming(r, f, v))
    say(v, "%s%s; somebody is at it", what, detail);
  else {
    set(v, DETECT_UNPROVEN, RULE_NEVER);
    say(v, "%s%s%s", f->dead ? "its writer died: " : "", what, detail);
  }
}

/* Decides about a fault that only more writing could mend. While the writer lives it may come at
 * any time; when the writer is gone and nobody has the unit open, waiting for it would never
 * end. */
static void decide_doubtful(const rules *r, const rule_facts *f, const char *cause,
                            const char *what, const char *detail, rule_verdict *v) {
  bool doubted = f->unproven > 0 || f->dead;
  v->cause = cause;
  if (doubted || (f->ended && nobody_writes(f, v)))
    decide_unproven(r, f, cause, what, detail, v);
  else if (!f->ended)
    say(v, "%s%s", what, detail);
}

/* Decides about a unit with an open file: its close will tell, unless it got lost. */
static void decide_open(const rules *r, const rule_facts *f, rule_verdict *v) {
  v->cause = "open";
  say(v, "%s is being written", f->open_name);
  if (!f->ended || !nobody_writes(f, v)) return;
  if (f->quiet < r->settled_ns) { /* the event may still be on its way */
    set(v, DETECT_OPEN, r->settled_ns - f->quiet);
    return;
  }
  set(v, DETECT_UNPROVEN, RULE_NEVER);
  v->cause = "unproven";
  say(v, "nobody has %s open any more, but its close was not seen", f->open_name);
}

/* True if our process ended well. Where another host may write, that proves nothing. */
static bool ended_clean(const rule_facts *f) {
  return f->clean && !f->foreign;
}

/* True if the job may have ended while it removed the unit. */
static bool is_going(const rule_facts *f) {
  return ended_clean(f) && f->shrinking && (f->lacks || f->alone);
}

static bool writer_to_ask(const rule_facts *f) {
  return f->seen > 0 || f->unproven > 0 || f->temporary > 0 || f->blind || f->clean || f->lived;
}

/* True if a marker proves nothing soon: a rank may still have to write its file again, or the unit
 * may be on its way out, or files came long after it, and nothing tells how many more. */
static bool is_unsettled(const rule_facts *f) {
  bool unknown = f->blind || f->seen > 0 || (f->alone && !f->marker_final);
  return f->mixed || f->shrinking || (f->marker_early && unknown);
}

/* True if the unit needs the long time, for the close of a file was not seen, too. */
static bool is_slow(const rule_facts *f) {
  return f->seen > 0 || f->blind || f->mixed || f->shrinking;
}

/* True if one of several tasks may still come with its first file: it was one of them that wrote the
 * marker, and nothing tells how many files there will be. */
static bool may_be_few(const rule_facts *f) {
  return f->several && f->alone && !f->marker_final;
}

/* Returns how long a unit with a marker must be quiet. By its protocol what came before the marker
 * was closed, so a close that nobody saw costs no time; a listing sees writes once in its
 * interval. */
static int64_t marked_for(const rules *r, const rule_facts *f) {
  if (is_unsettled(f) || may_be_few(f)) return r->quiet_ns;
  if (f->lived && !f->foreign) return 0;
  return f->interval > r->marked_ns ? f->interval : r->marked_ns;
}

int64_t rule_proof_after(const rules *r, const rule_facts *f) {
  return f->interval > r->sound_ns ? f->interval : r->sound_ns;
}

/* Decides about files that were closed, where no marker tells. */
static void decide_closed(const rules *r, const rule_facts *f, bool ask, rule_verdict *v) {
  bool early = f->provable && !f->lacks && !f->mixed && !f->shrinking &&
               rule_proof_after(r, f) < r->quiet_ns;
  if (ended_clean(f))
    after_quiet(f, 0, ask, "all files closed", "", v);
  else if (early && f->proof == RULE_SOUND)
    after_quiet(f, rule_proof_after(r, f), ask, "closed, and its structure is whole", "", v);
  else if (early && f->proof == RULE_UNLOOKED && f->quiet < rule_proof_after(r, f))
    after_quiet(f, rule_proof_after(r, f), ask, "all files closed", "", v);
  else
    after_quiet(f, r->quiet_ns, ask, "all files closed",
                early ? ", though its structure does not prove it whole" : "", v);
}

void rule_builtin(const rules *r, const rule_facts *f, rule_verdict *v) {
  bool clean = ended_clean(f), ask = writer_to_ask(f);
  bool unproven = f->unproven > 0 || f->dead, missing = f->lacks && !f->marker_final;
  if (f->renamed && !(f->needed && f->needed_always)) {
    after_quiet(f, r->settled_ns, f->blind, "renamed into place", "", v);
  } else if (f->needed) {
    decide_needed(r, f, v);
  } else if (f->marker && f->marker_old) {
    decide_doubtful(r, f, "marker-old", f->marker, " is older than the data", v);
  } else if (is_going(f) && !unproven) {
    decide_doubtful(r, f, "files-removed", "the last that happened in it was a removal", "", v);
  } else if (missing && f->several && f->ended && !unproven) {
    decide_doubtful(r, f, "superset-missing",
                    "all tasks have ended, and unlike the one before it, it lacks ", f->lacks, v);
  } else if (f->marker && !missing && !f->dead) {
    after_quiet(f, clean ? 0 : marked_for(r, f), ask, f->marker, " is there", v);
  } else if (unproven && missing) {
    decide_unproven(r, f, "superset-missing", "unlike the one before it, it lacks ", f->lacks, v);
  } else if (unproven) {
    decide_unproven(r, f, "unproven", "nothing proves it whole", "", v);
  } else if (f->marker) {
    after_quiet(f, clean ? 0 : r->quiet_ns, ask, "all closed, though it lacks ", f->lacks, v);
  } else {
    decide_closed(r, f, ask, v);
  }
}

/* Decides about a file above the checkpoints: no marker comes after it, and no policy's conditions of
 * a checkpoint are meant for it. */
static void decide_above(const rules *r, const rule_facts *f, rule_verdict *v) {
  static const char closed[] = "closed, above the checkpoints";
  int64_t need = is_slow(f) ? r->marked_ns : above_ns;
  if (need > r->quiet_ns) need = r->quiet_ns;
  if (f->renamed)
    after_quiet(f, r->settled_ns, f->blind, "renamed into place", "", v);
  else if (f->unproven > 0 || f->dead)
    decide_unproven(r, f, "unproven", "nothing proves it whole", "", v);
  else
    after_quiet(f, ended_clean(f) ? 0 : need, writer_to_ask(f), closed, "", v);
}

/* ---- the conditions of a policy ---- */

/* Looks at the structure only where it decides. */
static void look_at_tree(const rules *r, const rule_facts *f, condition_finding *t,
                         rule_verdict *v) {
  condition_finding unsound;
  rule_facts as = *f;
  if (f->sound != RULE_UNLOOKED) {
    condition_look(r, f, t);
    return;
  }
  as.sound = RULE_SOUND;
  condition_look(r, &as, t);
  as.sound = RULE_UNSOUND;
  condition_look(r, &as, &unsound);
  if (unsound.holds == t->holds) return;
  bool one = (unsound.holds > CONDITION_UNKNOWN) != (t->holds > CONDITION_UNKNOWN);
  v->ask_sound = one;
  if (unsound.holds > t->holds) *t = unsound;
}

/* Decides about a unit that only more writing could mend. */
static void decide_short(const rules *r, const rule_facts *f, const condition_finding *t,
                         rule_verdict *v) {
  bool ended = f->unproven > 0 || f->dead || f->ended;
  v->cause = t->cause;
  if (!ended || coming(r, f, v)) {
    say(v, "%s", t->text);
  } else if (nobody_writes(f, v)) {
    set(v, t->at_last < CONDITION_UNKNOWN ? DETECT_BROKEN : DETECT_UNPROVEN, RULE_NEVER);
    say(v, "%s%.*s", f->dead ? "its writer died: " : "", RULE_TEXT_MAX - 32, t->text);
  }
}

static void decide_tree(const rules *r, const rule_facts *f, rule_verdict *v) {
  condition_finding t;
  bool dead = f->dead && !f->renamed, unproven = f->unproven > 0 || dead;
  if (f->needed && f->needed_always) {
    decide_needed(r, f, v);
    return;
  }
  if (is_going(f) && !unproven && !f->renamed) {
    decide_doubtful(r, f, "files-removed", "the last that happened in it was a removal", "", v);
    return;
  }
  look_at_tree(r, f, &t, v);
  if (t.holds <= CONDITION_UNKNOWN && t.wait != RULE_NEVER && !dead) {
    set(v, DETECT_OPEN, t.wait);
    v->cause = t.cause;
    say(v, "%s", t.text);
  } else if (t.holds <= CONDITION_UNKNOWN) {
    decide_short(r, f, &t, v);
  } else if (dead || (unproven && t.holds < CONDITION_PROVEN)) {
    decide_unproven(r, f, "unproven", "nothing proves it whole", "", v);
  } else {
    bool marked = (f->marker && !f->marker_old) || (f->marked & ~f->marked_old);
    int64_t slow = marked ? marked_for(r, f) : r->quiet_ns;
    int64_t need = is_slow(f) && !f->renamed ? slow : r->settled_ns;
    after_quiet(f, ended_clean(f) ? 0 : need, writer_to_ask(f), t.text, "", v);
  }
}

void rule_decide(const rules *r, const rule_facts *f, rule_verdict *v) {
  *v = (rule_verdict){.state = DETECT_OPEN, .wait = RULE_NEVER};
  if (f->open > 0)
    decide_open(r, f, v);
  else if (f->files == 0)
    decide_empty(r, f, v);
  else if (f->removed)
    decide_doubtful(r, f, "files-removed", "files were removed from it", "", v);
  else if (f->above)
    decide_above(r, f, v);
  else if (r->test_count > 0)
    decide_tree(r, f, v);
  else
    rule_builtin(r, f, v);
}
