#include "detect_rule.h"

#include <stdarg.h>
#include <stdio.h>

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
  say(v, "somebody still has a file of it open for writing");
  return false;
}

/* A change within the tick of the newest time stamp would leave no trace. Stamps from the future
 * tell nothing, then only our own clock counts. */
static int64_t racy_for(const rule_facts *f) {
  int64_t age = f->age >= 0 ? f->age : f->quiet;
  return age > f->grain ? 0 : f->grain - age + 1;
}

/* Complete after `need` ns of quiet. */
static void after_quiet(const rule_facts *f, int64_t need, bool ask, const char *what,
                        const char *detail, rule_verdict *v) {
  int64_t left = need - f->quiet, racy = racy_for(f);
  if (left < 0) left = 0;
  if (racy > left) left = racy;
  if (left > 0) {
    set(v, DETECT_OPEN, left);
    say(v, "%s%s, quiet %.1f of %g s", what, detail, (double)f->quiet / 1e9, (double)need / 1e9);
    return;
  }
  if (ask && !nobody_writes(f, v)) return;
  set(v, DETECT_COMPLETE, RULE_NEVER);
  say(v, "%s%s", what, detail);
}

/* It came back to life: files of it are being written by somebody who lives, so what is missing
 * may still come. */
static bool coming(const rules *r, const rule_facts *f, rule_verdict *v) {
  bool over = f->clean && !f->foreign;
  if (!f->touched || f->dead || over || f->quiet >= r->quiet_ns) return false;
  set(v, DETECT_OPEN, r->quiet_ns - f->quiet);
  return true;
}

static void decide_empty(const rules *r, const rule_facts *f, rule_verdict *v) {
  if (coming(r, f, v)) {
    say(v, "it holds no file yet");
  } else if (nobody_writes(f, v)) {
    set(v, DETECT_BROKEN, RULE_NEVER);
    say(v, "it holds no file");
  }
}

static void decide_needed(const rules *r, const rule_facts *f, rule_verdict *v) {
  bool ended = f->unproven > 0 || f->dead || f->ended;
  if (!ended || coming(r, f, v)) {
    if (!ended) set(v, DETECT_OPEN, RULE_NEVER);
    say(v, "%s is not there yet", f->needed);
  } else if (nobody_writes(f, v)) {
    set(v, DETECT_BROKEN, RULE_NEVER);
    say(v, "%s is missing, and it is written last", f->needed);
  }
}

static void decide_unproven(const rules *r, const rule_facts *f, const char *what,
                            const char *detail, rule_verdict *v) {
  if (coming(r, f, v))
    say(v, "%s%s; somebody is at it", what, detail);
  else {
    set(v, DETECT_UNPROVEN, RULE_NEVER);
    say(v, "%s%s%s", f->dead ? "its writer died: " : "", what, detail);
  }
}

/* What only more writing could mend. While the writer lives it may come at any time; when it is
 * gone and nobody has it open, waiting for it would never end. */
static void decide_doubtful(const rules *r, const rule_facts *f, const char *what,
                            const char *detail, rule_verdict *v) {
  bool doubted = f->unproven > 0 || f->dead;
  if (doubted || (f->ended && nobody_writes(f, v)))
    decide_unproven(r, f, what, detail, v);
  else if (!f->ended)
    say(v, "%s%s", what, detail);
}

/* Its close will tell, unless it got lost. */
static void decide_open(const rules *r, const rule_facts *f, rule_verdict *v) {
  say(v, "%s is being written", f->open_name);
  if (!f->ended || !nobody_writes(f, v)) return;
  if (f->quiet < r->settled_ns) { /* the event may still be on its way */
    set(v, DETECT_OPEN, r->settled_ns - f->quiet);
    return;
  }
  set(v, DETECT_UNPROVEN, RULE_NEVER);
  say(v, "nobody has %s open any more, but its close was not seen", f->open_name);
}

void rule_decide(const rules *r, const rule_facts *f, rule_verdict *v) {
  *v = (rule_verdict){.state = DETECT_OPEN, .wait = RULE_NEVER};
  /* Where another host may write, the end of our own process proves nothing. */
  bool clean = f->clean && !f->foreign;
  bool ask = f->seen > 0 || f->unproven > 0 || f->temporary > 0 || f->blind || f->clean || f->lived;
  bool unproven = f->unproven > 0 || f->dead;
  /* The job ended while it removed the unit, for all we know. */
  bool going = clean && f->shrinking && (f->lacks || f->alone);

  if (f->open > 0) {
    decide_open(r, f, v);
  } else if (f->files == 0) {
    decide_empty(r, f, v);
  } else if (f->removed) {
    decide_doubtful(r, f, "files were removed from it", "", v);
  } else if (f->renamed && !(f->needed && f->needed_always)) {
    after_quiet(f, r->settled_ns, f->blind, "renamed into place", "", v);
  } else if (f->needed) {
    decide_needed(r, f, v);
  } else if (f->marker && f->marker_old) {
    decide_doubtful(r, f, f->marker, " is older than the data", v);
  } else if (going && !unproven) {
    decide_doubtful(r, f, "the last that happened in it was a removal", "", v);
  } else if (f->marker && !f->lacks && !f->dead) {
    /* A file whose close nobody saw needs the long time, marker or not; so does a rank that may
     * still have to write its file again; and it may be on its way out. */
    bool slow = f->seen > 0 || f->blind || f->mixed || f->shrinking;
    int64_t need = slow ? r->quiet_ns : f->lived ? 0 : r->marked_ns;
    after_quiet(f, clean ? 0 : need, ask, f->marker, " is there", v);
  } else if (unproven && f->lacks) {
    decide_unproven(r, f, "the one before it has ", f->lacks, v);
  } else if (unproven) {
    decide_unproven(r, f, "nothing proves it whole", "", v);
  } else if (f->marker) {
    after_quiet(f, clean ? 0 : r->quiet_ns, ask, "all closed, though it lacks ", f->lacks, v);
  } else {
    after_quiet(f, clean ? 0 : r->quiet_ns, ask, "all files closed", "", v);
  }
}
