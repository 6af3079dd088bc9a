/* judge_epochs: the log behind lost entries, and from one epoch to the next. */
#include "judge_impl.h"

/* Does the manifest stand there that this entry names? Its writer may have meant another attempt,
 * whose number this one got when that was lost; then it must not tell of it. */
static bool is_of(const json_t *commit, const judge_attempt *a) {
  char key[256];
  const char *root = json_string_value(json_object_get(commit, "root"));
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  const object *o = space_find(key);
  json_t *top = o ? json_loadb(o->data, o->len, 0, NULL) : NULL;
  const char *said = json_string_value(json_object_get(top, "root"));
  bool same = root && said && strcmp(root, said) == 0;
  json_decref(top);
  return same;
}

/* An entry that has the number of a lost one, by a writer who does not know that one. It may break
 * rules, and what it says counts until a repair says what does. */
static void fold_loosely(const actor *by, const json_t *entry, long long n) {
  const char *type = json_string_value(json_object_get(entry, "type"));
  judge_attempt *a = judge_attempt_of(judge_number(entry, "attempt"));
  judge_commit *c = judge_commit_at(judge_number(entry, "commit"));
  int t = 0;
  if (n < known.entries) lost_refilled();
  while (type && t < JUDGE_TYPES && strcmp(type, judge_types[t]) != 0) t++;
  if (t == TERM && n < ENTRIES_MAX) judge_fold_term(entry, by, n);
  if (t == ATTEMPT) judge_fold_attempt(entry, n);
  if (t == ADOPT && a && a->fate == FATE_OPEN) a->owner = judge_number(entry, "term");
  if (t == SWEEP && a && judge_commit_of(a))
    judge_commit_of(a)->dropped = judge_commit_of(a)->deleted = true;
  if (t == SWEEP && a && a->fate != FATE_SWEPT) a->fate = FATE_SWEPT;
  if (t == BAD && c) c->bad = !json_is_true(json_object_get(entry, "good")), lost_bad(c);
  if (t == DROP && c && !c->dropped) c->dropped = true, c->dropped_at = sim_now, lost_drop(c);
  if (t == DELETE && c) c->dropped = c->deleted = true, lost_drop(c);
  if (t == END) judge_fold_end();
  if (t != COMMIT || !a) return;
  if (a->fate != FATE_OPEN || !is_of(entry, a)) {
    lost_commit_again(n, a, judge_commit_of(a));
    return;
  }
  c = &known.commits[known.commit_count++];
  *c = (judge_commit){.n = n, .attempt = a->n, .of = a, .with_term = judge_beside(entry)};
  judge_text(entry, "root", c->root, sizeof c->root);
  a->fate = FATE_COMMITTED;
  judge_check_commit(c);
  lost_commit(c);
}

static judge_attempt old_attempts[ENTRIES_MAX];

static judge_commit old_commits[ENTRIES_MAX];

/* Where the first one was lost, a second may have been announced in its directory. */
static const judge_attempt *old_attempt(size_t count, const char *dir, const char *nonce) {
  const judge_attempt *found = NULL;
  for (size_t i = count; i-- > 0;) {
    if (strcmp(old_attempts[i].dir, dir) != 0) continue;
    if (!found || strcmp(old_attempts[i].nonce, nonce) == 0) found = &old_attempts[i];
  }
  return found;
}

static judge_commit *old_commit(size_t count, const char *dir) {
  for (size_t i = count; i-- > 0;)
    if (strcmp(old_attempts[old_commits[i].of - known.attempts].dir, dir) == 0)
      return &old_commits[i];
  return NULL;
}

static bool is_named(const judge_attempt *a) {
  for (size_t k = 0; k < known.shadow.attempt_count; k++)
    if (strcmp(known.shadow.attempts[k].dir, a->dir) == 0) return true;
  return false;
}

/* What no entry tells of any more is nobody's: its files may stay, and go. What an entry tells of is
 * known to a repair, unless others stand where its writer's term was. */
static void take_attempts(long long before, bool clear, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const judge_attempt *old = &old_attempts[i];
    if (is_named(old)) continue;
    if (clear && old->fate == FATE_OPEN && !old->forgotten &&
        lost_stands(before, old->n, "attempt"))
      sim_violation("the repaired log knows nothing of %s, and entry %lld stands", old->dir,
                    old->n);
    known.attempts[known.attempt_count] = old_attempts[i];
    known.attempts[known.attempt_count].fate = FATE_SWEPT;
    known.attempts[known.attempt_count++].forgotten = true;
  }
  for (size_t k = 0; k < known.shadow.attempt_count; k++) {
    const runlog_attempt *s = &known.shadow.attempts[k];
    const judge_attempt *old = old_attempt(count, s->dir, s->nonce);
    judge_attempt *a = &known.attempts[known.attempt_count++];
    if (!old) sim_violation("the repaired log has %s, which nobody announced", s->dir);
    *a = *old;
    a->n = a->taken = (long long)s->n;
    a->owner = (long long)s->owner;
    a->fate = (judge_fate)s->fate;
    a->forgotten = false;
    if (*s->nonce && strcmp(s->nonce, old->nonce) != 0)
      sim_violation("the repaired log has %s with another nonce", s->dir);
  }
}

static void take_commits(size_t count) {
  for (size_t k = 0; k < known.shadow.commit_count; k++) {
    const runlog_commit *s = &known.shadow.commits[k];
    judge_commit *old = old_commit(count, s->dir), *c = &known.commits[known.commit_count++];
    *c = old ? *old : (judge_commit){0};
    if (old) old->manifest = NULL;
    c->n = (long long)s->n;
    c->attempt = (long long)s->attempt;
    c->of = judge_attempt_in(s->dir);
    c->marked = 0;
    c->bad = s->bad;
    c->dropped = s->life != RUNLOG_LIVE;
    c->deleted = s->life == RUNLOG_DELETED;
    c->with_term = s->companions.files ? (long long)s->companions.term : -1;
    digest_hex(&s->root, c->root);
    if (!c->dropped && !c->bad) judge_check_commit(c);
  }
  for (size_t i = 0; i < count; i++) free(old_commits[i].manifest);
}

static void take_state(const actor *by, long long before, bool clear) {
  size_t attempts_then = known.attempt_count, commits_then = known.commit_count;
  memcpy(old_attempts, known.attempts, known.attempt_count * sizeof *known.attempts);
  memcpy(old_commits, known.commits, known.commit_count * sizeof *known.commits);
  known.attempt_count = known.commit_count = 0;
  take_attempts(before, clear, attempts_then);
  take_commits(commits_then);
  known.newest_term = (long long)known.shadow.term.n;
  known.openers_then[known.newest_term] = known.openers[known.newest_term] + 1;
  known.openers[known.newest_term] = by->id;
  known.ended = known.shadow.ended;
  snprintf(known.run_id, sizeof known.run_id, "%.31s", known.shadow.run_id);
  memset(known.joined, 0, sizeof known.joined);
  for (size_t i = 0;
       i < known.shadow.joined_count && i < sizeof known.joined / sizeof *known.joined; i++)
    snprintf(known.joined[i], sizeof known.joined[i], "%.31s", known.shadow.joined[i]);
  snprintf(known.flags, sizeof known.flags, "%.39s", known.shadow.flags);
  known.flags_since = (long long)known.shadow.flags_since;
}

/* The first entry of an epoch: from here on that counts. */
static void on_first(const actor *by, const json_t *entry, long long g) {
  long long n = judge_number(entry, "n");
  err e = {0};
  if (n >= ENTRIES_MAX) sim_violation("the log has %lld entries", n);
  if (!judge_results_only) lost_check_closed(known.epoch, known.first, g);
  lost_check_first(entry, g, known.epoch, known.first);
  runlog_state_free(&known.shadow);
  if (runlog_take_snapshot(entry, NULL, (uint64_t)n, &known.shadow, &e) < 0)
    sim_violation("the first entry of epoch %lld: %s", g, e.text);
  long long before = known.epoch;
  bool clear = !known.rewritten;
  known.epoch = g;
  known.first = n;
  known.entries = n + 1;
  known.rewritten = false;
  take_state(by, before, clear);
  lost_mended();
  lost_promised("in the repaired log");
  sim_count->epochs++;
}

void judge_on_entry(const actor *by, const object *o) {
  long long g, place;
  if (!lost_place(o->key, &g, &place)) sim_violation("%s is no entry", o->key);
  json_t *entry = json_loadb(o->data, o->len, 0, NULL);
  const char *type = json_string_value(json_object_get(entry, "type"));
  if (sim_tracing) sim_trace("entry %.*s", (int)o->len, o->data);
  if (g == known.epoch && type && strcmp(type, "moved") != 0)
    lost_check_ground(by, g, known.first, place);
  if (type && strcmp(type, "moved") == 0)
    sim_count->plugs++;
  else if (g > known.epoch && place > 0)
    sim_violation("%s is made, and its epoch has not begun", o->key);
  else if (g > known.epoch)
    on_first(by, entry, g);
  else if (g == known.epoch && !known.rewritten && place == known.entries)
    judge_on_next(by, entry, place);
  else if (g == known.epoch && !lost_any())
    judge_on_next(by, entry, place); /* it is behind a hole */
  else if (g == known.epoch)
    known.rewritten = true, lost_unclear(), fold_loosely(by, entry, place);
  json_decref(entry);
}
