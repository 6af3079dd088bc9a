/* judge_log: the rules of the log, entry by entry, as long as none is lost. */
#include "commit/lease.h"
#include "judge_impl.h"
#include "ranks.h"

static bool later_like(const char *unit) {
  const char *mark = strrchr(unit, '~');
  return mark && mark > unit && mark[-1] == '.' && mark[1] &&
         strspn(mark + 1, "0123456789") == strlen(mark + 1);
}

/* Where a directory appears in one step, and no ranks have to agree, all of it stands before it is
 * named. */
static void check_staged(const judge_attempt *a) {
  judge_attempt there = *a;
  snprintf(there.dir, sizeof there.dir, ".ckpt/staging/%lld.%.40s", a->owner, a->nonce);
  json_t *top = judge_manifest(&there), *table = json_object_get(top, "files");
  for (unsigned i = 0; units_file(a->unit, a->world, i); i++)
    judge_check_file(&there, units_file(a->unit, a->world, i), table);
  json_decref(top);
}

void judge_fold_attempt(const json_t *entry, long long n) {
  judge_attempt *a = &known.attempts[known.attempt_count];
  char later[128];
  long long world = judge_number(entry, "world");
  *a = (judge_attempt){
      .n = n, .owner = known.newest_term, .taken = n, .world = world < 1 ? 1 : (unsigned)world};
  judge_text(entry, "unit", a->unit, sizeof a->unit);
  judge_text(entry, "dir", a->dir, sizeof a->dir);
  judge_text(entry, "nonce", a->nonce, sizeof a->nonce);
  snprintf(later, sizeof later, "%s.~%lld", a->unit, n);
  if (strcmp(a->dir, later) != 0 && strcmp(a->dir, a->unit) != 0)
    BROKEN_RULE("entry %lld: the directory %s does not follow from %s", n, a->dir, a->unit);
  if (strcmp(a->dir, a->unit) == 0 && later_like(a->unit))
    BROKEN_RULE("entry %lld: %s has its plain name", n, a->unit);
  const judge_attempt *other = judge_attempt_in(a->dir);
  if (other && !other->forgotten) BROKEN_RULE("entry %lld: two attempts share %s", n, a->dir);
  const object *there = space_at(space_from(a->dir));
  if (there && space_below(there->key, a->dir))
    BROKEN_RULE("entry %lld: %s is there already", n, there->key);
  if (sim_weather.files && a->world == 1 && !judge_results_only && !known.rewritten)
    check_staged(a);
  known.attempted_at = sim_now;
  known.attempt_count++;
}

/* The last commit is the newest: no save follows one that was begun behind it. */
static void check_order(const judge_attempt *a, long long n) {
  for (size_t i = 0; i < known.commit_count; i++)
    if (known.commits[i].of != a && known.commits[i].attempt > a->n)
      sim_violation("entry %lld commits %s, which is older than commit %lld", n, a->dir,
                    known.commits[i].n);
}

/* Who finishes what others left does not let it follow a save that was complete after it: versions are
 * complete one after the other. What was committed before it was begun its own writer has judged, and
 * what is marked while it is looked at may be seen or not. What a repair has found may have been a commit
 * before. */
static void check_line(const actor *by, const judge_commit *c) {
  const judge_attempt *a = c->of;
  if (!by->used || by->saves || a->n < known.first) return;
  for (size_t i = 0; i < known.commit_count; i++) {
    const judge_commit *k = &known.commits[i];
    if (k->n < a->n || k->dropped || k->bad || k->marked > a->taken || k->version <= c->version)
      continue;
    sim_violation("entry %lld adopts %s, version %u, behind commit %lld, version %u", c->n, a->dir,
                  c->version, k->n, k->version);
  }
}

/* The term of what was saved beside it, which is in the name of its place; -1: nothing was. */
long long judge_beside(const json_t *commit) {
  const json_t *with = json_object_get(commit, "with");
  return with ? judge_number(with, "term") : -1;
}

static void fold_about(const actor *by, const json_t *entry, enum type type, long long n,
                       long long term) {
  judge_attempt *a = judge_attempt_of(judge_number(entry, "attempt"));
  if (!a) sim_violation("entry %lld is about no attempt", n);
  if (a->fate != FATE_OPEN) sim_violation("entry %lld follows a sweep or a commit", n);
  if (type == ADOPT) {
    if (a->owner == known.newest_term) sim_violation("entry %lld adopts what has an owner", n);
    a->owner = term;
    a->taken = n;
  } else if (type == SWEEP) {
    if (a->owner == known.newest_term && term != known.newest_term)
      sim_violation("entry %lld: a guest sweeps what has an owner", n);
    a->fate = FATE_SWEPT;
    sim_count->swept_by_guests += term < 0;
  } else {
    judge_commit *c = &known.commits[known.commit_count++];
    *c = (judge_commit){.n = n, .attempt = a->n, .of = a};
    judge_text(entry, "root", c->root, sizeof c->root);
    c->with_term = judge_beside(entry);
    if (a->owner != term) sim_violation("entry %lld commits what it does not own", n);
    check_order(a, n);
    a->fate = FATE_COMMITTED;
    if (a->n > known.first) judge_check_parts(a); /* what was committed before has none any more */
    judge_check_commit(c);
    check_line(by, c);
    lost_commit(c);
    char key[256];
    snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
    c->manifest = strdup(space_find(key)->data);
    sim_count->rank_commits += a->world > 1;
    sim_count->led += by->used && by->rank > 0 && sim_weather.files;
    sim_count->beside += c->with_term >= 0;
  }
}

/* Whoever deletes reads the pins after the drop: one that stood before it has been seen. */
static void may_delete(const judge_commit *c, long long n) {
  for (int i = 0; i < ACTORS_MAX; i++) {
    const actor *a = actor_at(i);
    if (a && a->pin[0] && !a->dead && (long long)a->reads == c->n && a->pin_since < c->dropped_at &&
        sim_now <= a->pin_until && space_find(a->pin))
      sim_violation("entry %lld deletes what %s has pinned since before the drop", n, a->name);
  }
}

static void fold_removal(const json_t *entry, enum type type, long long n) {
  judge_commit *c = judge_commit_at(judge_number(entry, "commit"));
  if (!c) sim_violation("entry %lld is about no commit", n);
  if (type == BAD) {
    const json_t *good = json_object_get(entry, "good");
    c->bad = !json_is_true(good);
    c->marked = n;
    lost_bad(c);
    return;
  }
  if (type == DROP) {
    if (judge_number(entry, "term") >= 0 && c->n < known.flags_since)
      sim_violation("entry %lld drops what was saved under other flags", n);
    if (c->dropped) sim_violation("entry %lld drops it again", n);
    if (judge_newest() == c) sim_violation("entry %lld drops the newest that is not bad", n);
    c->dropped = true;
    c->dropped_at = sim_now;
    lost_drop(c);
    return;
  }
  if (!c->dropped || c->deleted) sim_violation("entry %lld deletes what is not dropped", n);
  if (sim_now - c->dropped_at < GRACE) sim_violation("entry %lld deletes within the grace", n);
  may_delete(c, n);
  c->deleted = true;
}

static bool has_joined(const char *id) {
  for (size_t i = 0; i < sizeof known.joined / sizeof *known.joined; i++)
    if (strcmp(known.joined[i], id) == 0) return true;
  return false;
}

/* A place in which nothing was committed, nor announced for the life of a lease, is nobody's. */
static bool is_vacant(void) {
  for (size_t i = 0; i < known.commit_count; i++)
    if (!known.commits[i].ended) return false;
  return known.attempted_at < sim_now - LEASE_LIFE_S * SECOND;
}

void judge_fold_term(const json_t *entry, const actor *by, long long n) {
  char said[40];
  judge_text(entry, "flags", said, sizeof said);
  if (json_is_true(json_object_get(entry, "any_flags")))
    known.flags_since = 0;
  else if (*said && *known.flags && strcmp(said, known.flags) != 0)
    known.flags_since = n;
  if (*said) memcpy(known.flags, said, sizeof known.flags);
  if (known.ended) memset(known.joined, 0, sizeof known.joined);
  for (size_t i = 0;
       json_object_get(entry, "joins") && i < sizeof known.joined / sizeof *known.joined; i++)
    if (!*known.joined[i]) {
      judge_text(entry, "joins", known.joined[i], sizeof known.joined[i]);
      break;
    }
  known.openers[n] = by->id;
  known.newest_term = n;
  if (known.ended)
    judge_text(entry, "run", known.run_id, sizeof known.run_id); /* of a late request, too */
  known.ended = false;
}

/* Who did not ask for it stays out of another run's log. (Of a late request nobody knows any more
 * whose it is; after an end the place is free.) */
static void check_run(const actor *by, long long n) {
  const launch_plan *p = by->used && by->launch >= 0 ? &launches[by->launch] : NULL;
  if (!p) return;
  if (!known.ended && !p->continue_run && strcmp(p->run, known.run_id) != 0 &&
      !has_joined(p->run) && !is_vacant())
    sim_violation("entry %lld: a term of run %s in the log of run %s", n, p->run, known.run_id);
}

void judge_fold_end(void) {
  for (size_t i = 0; i < known.attempt_count; i++)
    if (known.attempts[i].fate == FATE_OPEN) known.attempts[i].fate = FATE_SWEPT;
  for (size_t i = 0; i < known.commit_count; i++) {
    known.commits[i].ended = known.commits[i].ended || !known.commits[i].deleted;
    known.commits[i].dropped = known.commits[i].deleted = true;
    lost_drop(&known.commits[i]);
  }
  known.ended = true;
}

static void fold(const actor *by, const json_t *entry, enum type type, long long n,
                 long long term) {
  bool by_guest = type == DROP || type == DELETE || type == BAD || type == SWEEP || type == END;
  if ((n == 0) != (type == RUN)) sim_violation("entry %lld: only the first one names the run", n);
  if (type == RUN) {
    judge_text(entry, "run", known.run_id, sizeof known.run_id);
    return;
  }
  if (type == TERM) {
    if (term != n) sim_violation("entry %lld: a term has another number", n);
    sim_count->takeovers += known.newest_term >= 0 && !known.ended;
    check_run(by, n);
    judge_fold_term(entry, by, n);
    return;
  }
  if (term < 0 && !by_guest) sim_violation("entry %lld has no term", n);
  if (term >= 0 && (term != known.newest_term || known.ended))
    sim_violation("entry %lld: its writer was fenced", n);
  if (type == ATTEMPT) judge_fold_attempt(entry, n);
  if (type == ATTEMPT) judge_world(by, known.attempts[known.attempt_count - 1].world, n);
  if (type == ADOPT || type == SWEEP || type == COMMIT) fold_about(by, entry, type, n, term);
  if (type == DROP || type == DELETE || type == BAD) fold_removal(entry, type, n);
  if (type == END) judge_fold_end();
  if (type == SNAPSHOT && judge_number(entry, "through") != n - 1)
    sim_violation("entry %lld: a snapshot of another place", n);
}

static void same_fold(const json_t *entry, long long n) {
  const char *ignored = NULL;
  err e = {0};
  if (runlog_apply(&known.shadow, entry, &ignored, &e) < 0)
    sim_violation("entry %lld: %s", n, e.text);
  if (ignored) sim_violation("entry %lld would be passed over: %s", n, ignored);
}

void judge_on_next(const actor *by, const json_t *entry, long long n) {
  const char *type = json_string_value(json_object_get(entry, "type"));
  int t = 0;
  if (n != known.entries)
    sim_violation("entry %lld is made behind a hole: %lld is missing", n, known.entries);
  if (!type || judge_number(entry, "n") != n) sim_violation("entry %lld cannot be read", n);
  while (t < JUDGE_TYPES && strcmp(type, judge_types[t]) != 0) t++;
  if (t == JUDGE_TYPES) sim_violation("entry %lld has the type %s", n, type);
  if (known.entries + 1 >= ENTRIES_MAX) sim_violation("the log has %lld entries", known.entries);
  fold(by, entry, (enum type)t, n, judge_number(entry, "term"));
  known.entries++;
  sim_count->entries[t]++;
  same_fold(entry, n);
}
