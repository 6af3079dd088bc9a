#include "detect_condition.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The parts are evaluated one at a time, by recursion: rules_make() has seen to it that they are a
 * small tree. A `none` is an `all` of negated parts, so that two of them cancel each other
 * exactly. */

static void say(condition_finding *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(condition_finding *t, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(t->text, sizeof t->text, fmt, args);
  va_end(args);
}

static void holds(condition_finding *t, condition_holds how) {
  t->holds = t->at_last = how;
}

static void fails(condition_finding *t, condition_holds at_last, const char *cause) {
  *t = (condition_finding){
      .holds = CONDITION_NO, .at_last = at_last, .missing = 1, .wait = RULE_NEVER, .cause = cause};
}

/* The result when nobody can say. */
static void unknown(condition_finding *t) {
  *t = (condition_finding){.missing = 1, .wait = RULE_NEVER, .cause = "unproven"};
}

static void waits(condition_finding *t, condition_holds at_last, int64_t ns) {
  *t = (condition_finding){
      .holds = CONDITION_NO, .at_last = at_last, .wait = ns, .cause = "not-quiet"};
}

static bool over(const rule_facts *f) {
  return f->clean && !f->foreign;
}

/* ---- leaves ---- */

static void look_renamed(const rule_facts *f, condition_finding *t) {
  if (f->renamed) {
    holds(t, CONDITION_PROVEN);
    say(t, "renamed into place");
  } else if (f->unproven > 0 || f->dead || !f->touched) {
    unknown(t);
    say(t, "nobody saw whether it was renamed into place");
  } else {
    fails(t, CONDITION_NO, "not-renamed");
    say(t, "it was not renamed into place");
  }
}

static void look_closed(const rules *r, const rule_facts *f, condition_finding *t) {
  /* Where closes are not seen, only a long silence stands for them. */
  bool unseen = !over(f) && (f->seen > 0 || f->blind) && f->quiet < r->quiet_ns;
  if (f->unproven > 0 || f->dead) {
    unknown(t);
    say(t, "nobody saw whether its files were closed");
  } else if (unseen) {
    waits(t, CONDITION_PROVEN, r->quiet_ns - f->quiet);
    say(t, "closes were not seen, quiet %.1f of %g s", (double)f->quiet / 1e9,
        (double)r->quiet_ns / 1e9);
  } else {
    holds(t, CONDITION_PROVEN);
    say(t, "all files closed");
  }
}

static void look_superset(const rule_facts *f, condition_finding *t) {
  if (!f->lacks) {
    holds(t, CONDITION_YES);
    say(t, "no file is missing");
    return;
  }
  fails(t, CONDITION_UNKNOWN, "superset-missing");
  say(t, "lacks %s, which %s had", f->lacks, f->before ? f->before : "the one before it");
}

static void look_sound(const rule_facts *f, condition_finding *t) {
  if (f->sound == RULE_SOUND) {
    holds(t, CONDITION_PROVEN);
    say(t, "its structure is whole");
    return;
  }
  fails(t, CONDITION_UNKNOWN, "not-sound");
  say(t, "its structure is not known to be whole%s%s", f->unsound && *f->unsound ? ": " : "",
      f->unsound ? f->unsound : "");
}

static void look_quiet(const rules_test *test, const rule_facts *f, condition_finding *t) {
  if (over(f) || f->quiet >= test->ns) {
    holds(t, CONDITION_YES);
    say(t, "quiet %g s", (double)test->ns / 1e9);
    return;
  }
  waits(t, CONDITION_YES, test->ns - f->quiet);
  say(t, "quiet %.1f of %g s", (double)f->quiet / 1e9, (double)test->ns / 1e9);
}

static void look_marker(const rules_test *test, uint64_t bit, const rule_facts *f,
                        condition_finding *t) {
  bool there = f->marked & bit, old = f->marked_old & bit;
  if (there && !old) {
    holds(t, CONDITION_PROVEN);
    say(t, "%s is there", test->name);
  } else if (there) {
    fails(t, CONDITION_UNKNOWN, "marker-old");
    say(t, "%s is older than the data", test->name);
  } else {
    fails(t, CONDITION_NO, "marker-missing");
    say(t, "marker %s is missing", test->name);
  }
}

/* A number of files speaks for no file of them: that they are closed, or quiet, has to come to it. */
static void look_parts(const rules_test *test, unsigned found, condition_finding *t) {
  if (found >= test->count) {
    holds(t, CONDITION_YES);
    say(t, "%u files %s are there", found, test->name);
    return;
  }
  fails(t, CONDITION_NO, "parts-missing");
  say(t, "%u of %u files %s are there", found, test->count, test->name);
}

static void look_known(const rules *r, const rule_facts *f, condition_finding *t) {
  rule_verdict v = {.state = DETECT_OPEN, .wait = RULE_NEVER};
  rule_builtin(r, f, &v);
  if (v.state == DETECT_COMPLETE)
    holds(t, CONDITION_PROVEN);
  else if (v.state == DETECT_UNPROVEN)
    unknown(t);
  else if (v.wait != RULE_NEVER)
    waits(t, CONDITION_UNKNOWN, v.wait);
  else
    fails(t, CONDITION_NO, NULL);
  if (t->holds <= CONDITION_UNKNOWN) t->cause = v.cause;
  say(t, "%s", v.reason);
}

/* ---- what must not be ---- */

static condition_holds opposite(condition_holds how) {
  return (condition_holds) - (int)how;
}

static void negate(const rules_test *test, condition_finding *t) {
  condition_finding was = *t;
  if (was.holds == CONDITION_UNKNOWN) return;
  if (was.holds > CONDITION_UNKNOWN) {
    fails(t, opposite(was.at_last), "forbidden");
    t->holds = opposite(was.holds);
    say(t, "%.*s, which must not be", RULE_TEXT_MAX - 32, was.text);
    return;
  }
  *t = (condition_finding){.holds = opposite(was.holds), .at_last = opposite(was.at_last)};
  if (test->op == RULES_MARKER)
    say(t, "%s is not there", test->name);
  else
    say(t, "%s", was.text);
}

/* ---- branches ---- */

typedef struct looking {
  const rules *rules;
  const rule_facts *facts;
} looking;

static void look(const looking *l, unsigned at, bool wanted, condition_finding *out);

/* Joins parts that all have to hold: one that does not hold decides, else one that is unknown, else
 * the surest. */
static condition_holds both(condition_holds a, condition_holds b) {
  if (a <= CONDITION_UNKNOWN || b <= CONDITION_UNKNOWN) return a < b ? a : b;
  return a > b ? a : b;
}

static condition_holds either(condition_holds a, condition_holds b) {
  return opposite(both(opposite(a), opposite(b)));
}

static bool nearer(const condition_finding *a, const condition_finding *b) {
  return a->missing != b->missing ? a->missing < b->missing : a->wait < b->wait;
}

static void append(condition_finding *t, const char *text) {
  size_t len = strlen(t->text);
  if (*text && !strstr(t->text, text))
    snprintf(t->text + len, sizeof t->text - len, "%s%s", len ? ", " : "", text);
}

/* Names the failing part alone where only writing can mend it. Where it is a matter of time, the
 * proofs of the rest are named before it: "DONE is there, quiet 0.4 of 5 s". */
static void look_all(const looking *l, const rules_test *test, bool wanted,
                     condition_finding *out) {
  condition_finding proofs = {0}, failing = {0};
  *out = (condition_finding){.holds = CONDITION_PROVEN, .at_last = CONDITION_PROVEN};
  for (unsigned i = 0; i < test->count; i++) {
    condition_finding part;
    look(l, test->first + i, wanted, &part);
    out->holds = i ? both(out->holds, part.holds) : part.holds;
    out->at_last = i ? both(out->at_last, part.at_last) : part.at_last;
    out->missing += part.missing;
    if (part.wait > out->wait) out->wait = part.wait;
    bool first = !*failing.text || (part.missing > 0 && failing.missing == 0) ||
                 (failing.missing == 0 && part.wait > failing.wait);
    if (part.holds > CONDITION_UNKNOWN) {
      append(out, part.text);
      if (part.holds == CONDITION_PROVEN) append(&proofs, part.text);
    } else if (first) {
      failing = part;
    }
  }
  if (out->holds > CONDITION_UNKNOWN) return;
  out->cause = failing.cause;
  *out->text = '\0';
  if (failing.missing == 0) append(out, proofs.text);
  append(out, failing.text);
}

/* Takes the surest of the parts that hold, or else the nearest one. */
static void look_any(const looking *l, const rules_test *test, bool wanted,
                     condition_finding *out) {
  condition_holds how = CONDITION_NO, at_last = CONDITION_NO;
  for (unsigned i = 0; i < test->count; i++) {
    condition_finding part;
    look(l, test->first + i, wanted, &part);
    how = i ? either(how, part.holds) : part.holds;
    at_last = i ? either(at_last, part.at_last) : part.at_last;
    bool better = part.holds > CONDITION_UNKNOWN
                      ? part.holds > out->holds
                      : out->holds <= CONDITION_UNKNOWN && nearer(&part, out);
    if (i == 0 || better) *out = part;
  }
  out->holds = how;
  out->at_last = at_last;
}

static void look_leaf(const looking *l, unsigned at, condition_finding *t) {
  const rules_test *test = &l->rules->tests[at];
  switch (test->op) {
  case RULES_RENAMED: look_renamed(l->facts, t); break;
  case RULES_CLOSED: look_closed(l->rules, l->facts, t); break;
  case RULES_SUPERSET: look_superset(l->facts, t); break;
  case RULES_SOUND: look_sound(l->facts, t); break;
  case RULES_QUIET: look_quiet(test, l->facts, t); break;
  case RULES_MARKER: look_marker(test, UINT64_C(1) << at, l->facts, t); break;
  case RULES_PARTS: look_parts(test, l->facts->parts[at], t); break;
  case RULES_KNOWN: look_known(l->rules, l->facts, t); break;
  case RULES_ALL:
  case RULES_ANY:
  case RULES_NONE: break;
  }
}

static void look(const looking *l, unsigned at, bool wanted, condition_finding *out) {
  const rules_test *test = &l->rules->tests[at];
  *out = (condition_finding){0};
  if (test->op == RULES_NONE) {
    (wanted ? look_all : look_any)(l, test, !wanted, out);
  } else if (test->op == RULES_ALL || test->op == RULES_ANY) {
    ((test->op == RULES_ALL) == wanted ? look_all : look_any)(l, test, wanted, out);
  } else {
    look_leaf(l, at, out);
    if (!wanted) negate(test, out);
  }
}

void condition_look(const rules *r, const rule_facts *f, condition_finding *out) {
  look(&(looking){r, f}, 0, true, out);
}
