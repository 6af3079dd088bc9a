/* The judge: reads the log by its rules, without the engine's code, and looks at every change of
 * the store. The rules are strict: writers that follow them never make an entry that readers would
 * have to pass over. */
#include "judge_impl.h"

const char *const judge_types[] = {"run",  "term",   "attempt", "adopt", "sweep",   "commit",
                                   "drop", "delete", "bad",     "end",   "snapshot"};

judged known;

/* Whether only results count: what is committed is whole, and can be read. A seeded fault that
 * breaks a rule must show by what it does, not by the rule's own letters. */
bool judge_results_only;

void judge_clear(void) {
  known.head_commit = 0;
  for (size_t i = 0; i < known.commit_count; i++) free(known.commits[i].manifest);
  known.attempt_count = known.commit_count = 0;
  known.entries = known.epoch = known.first = 0;
  known.rewritten = false;
  lost_clear();
  known.newest_term = -1;
  memset(known.openers_then, 0, sizeof known.openers_then);
  known.ended = false;
  memset(known.joined, 0, sizeof known.joined);
  known.attempted_at = INT64_MIN;
  *known.flags = 0;
  known.flags_since = 0;
  runlog_state_free(&known.shadow);
}

void judge_forget_head(void) {
  known.head_commit = 0;
}

long long judge_entries(void) {
  return known.entries;
}

bool judge_ended_with(uint64_t commit) {
  for (size_t i = 0; i < known.commit_count; i++)
    if (known.commits[i].n == (long long)commit) return known.commits[i].ended;
  return false;
}

bool judge_has_deleted(uint64_t commit) {
  for (size_t i = 0; i < known.commit_count; i++)
    if (known.commits[i].n == (long long)commit) return known.commits[i].deleted;
  return false;
}

const judge_commit *judge_newest(void) {
  for (size_t i = known.commit_count; i-- > 0;)
    if (!known.commits[i].dropped && !known.commits[i].bad) return &known.commits[i];
  return NULL;
}

bool judge_any_dropped(void) {
  for (size_t i = 0; i < known.commit_count; i++)
    if (known.commits[i].dropped && !known.commits[i].deleted) return true;
  return false;
}

judge_attempt *judge_attempt_of(long long n) {
  for (size_t i = known.attempt_count; i-- > 0;)
    if (known.attempts[i].n == n) return &known.attempts[i];
  return NULL;
}

judge_attempt *judge_attempt_named(const char *nonce) {
  for (size_t i = known.attempt_count; i-- > 0;)
    if (strcmp(known.attempts[i].nonce, nonce) == 0) return &known.attempts[i];
  return NULL;
}

judge_attempt *judge_attempt_in(const char *dir) {
  for (size_t i = known.attempt_count; i-- > 0;)
    if (strcmp(known.attempts[i].dir, dir) == 0) return &known.attempts[i];
  return NULL;
}

judge_commit *judge_commit_at(long long n) {
  for (size_t i = known.commit_count; i-- > 0;)
    if (known.commits[i].n == n) return &known.commits[i];
  return NULL;
}

judge_commit *judge_commit_of(const judge_attempt *a) {
  for (size_t i = known.commit_count; i-- > 0;)
    if (known.commits[i].of == a) return &known.commits[i];
  return NULL;
}

bool judge_is_clear(void) {
  return !known.rewritten;
}

judge_commit *judge_commit_in(const char *dir) {
  for (size_t i = known.commit_count; i-- > 0;)
    if (strcmp(known.commits[i].of->dir, dir) == 0) return &known.commits[i];
  return NULL;
}

long long judge_epoch(long long *its_first) {
  *its_first = known.first;
  return known.epoch;
}

/* The tail is lost: who has read it goes on behind it, who has not makes other entries. */
void judge_lost_tail(void) {
  known.rewritten = true;
}

/* A reader that came by a snapshot must know the same. */
void judge_compare(const runlog_state *s) {
  if (s->next != known.shadow.next || s->term.n != known.shadow.term.n ||
      s->ended != known.shadow.ended || s->joined_count != known.shadow.joined_count ||
      s->flags_since != known.shadow.flags_since || strcmp(s->flags, known.shadow.flags) != 0 ||
      s->attempt_count != known.shadow.attempt_count ||
      s->commit_count != known.shadow.commit_count)
    sim_violation("a reader sees another state than who read all entries");
  for (size_t i = 0; i < s->attempt_count; i++) {
    const runlog_attempt *a = &s->attempts[i], *b = &known.shadow.attempts[i];
    const judge_attempt *c = judge_attempt_of((long long)a->n);
    if (!c || a->n != b->n || a->owner != b->owner || a->fate != b->fate || a->world != b->world ||
        strcmp(a->dir, b->dir) != 0 || strcmp(a->unit, b->unit) != 0 || (long long)a->n != c->n ||
        (int)a->fate != (int)c->fate || strcmp(a->dir, c->dir) != 0 ||
        (c->fate == FATE_OPEN && (long long)a->owner != c->owner))
      sim_violation("a reader sees attempt %llu in another way", (unsigned long long)a->n);
  }
  for (size_t i = 0; i < s->commit_count; i++) {
    const runlog_commit *a = &s->commits[i], *b = &known.shadow.commits[i];
    const judge_commit *c = judge_commit_at((long long)a->n);
    if (!c || a->n != b->n || a->attempt != b->attempt || a->life != b->life || a->bad != b->bad ||
        !digest_equal(&a->root, &b->root) || (a->life == RUNLOG_LIVE) == c->dropped ||
        (a->life == RUNLOG_DELETED) != c->deleted || a->bad != c->bad)
      sim_violation("a reader sees commit %llu in another way", (unsigned long long)a->n);
  }
}

long long judge_number(const json_t *entry, const char *key) {
  const json_t *value = json_object_get(entry, key);
  return json_is_integer(value) ? json_integer_value(value) : -1;
}

void judge_text(const json_t *entry, const char *key, char *out, size_t room) {
  const char *text = json_string_value(json_object_get(entry, key));
  snprintf(out, room, "%s", text ? text : "");
}

void judge_told(const actor *by, uint64_t n, const char *unit, unsigned version) {
  if (lost_told(by, (long long)n, unit, version)) return;
  const judge_commit *c = judge_commit_at((long long)n);
  if (!c)
    sim_violation("%s was told of commit %llu, which is not there", by->name,
                  (unsigned long long)n);
  const judge_attempt *a = c->of;
  if (strcmp(a->unit, unit) != 0 || c->version != version)
    sim_violation("%s saved %s version %u, and commit %llu is %s version %u", by->name, unit,
                  version, (unsigned long long)n, a->unit, c->version);
}
