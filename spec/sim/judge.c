/* The judge: reads the log by its rules, without the engine's code, and looks at every change of
 * the store. The rules are strict: writers that follow them never make an entry that readers would
 * have to pass over. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/lease.h"
#include "commit/log/runlog_impl.h"
#include "commit/manifest/manifest.h"
#include "sim.h"

enum { ENTRIES_MAX = 4096 };

const char *const judge_types[] = {"run",  "term",   "attempt", "adopt", "sweep",   "commit",
                                   "drop", "delete", "bad",     "end",   "snapshot"};
enum type { RUN, TERM, ATTEMPT, ADOPT, SWEEP, COMMIT, DROP, DELETE, BAD, END, SNAPSHOT };

/* What the judge knows. */
typedef struct judged {
  judge_attempt attempts[ENTRIES_MAX];
  judge_commit commits[ENTRIES_MAX];
  size_t attempt_count, commit_count;
  long long entries, newest_term;
  int openers[ENTRIES_MAX]; /* of each entry that is a term: who made it */
  /* The same before the last repair, and one more; 0: nobody. A repair gives numbers again, and who had
   * one may not know yet that his log is over. */
  int openers_then[ENTRIES_MAX];
  bool ended;
  char run_id[32];
  char joined[4][32]; /* other runs that may go on here */
  int64_t attempted_at;
  char flags[40]; /* of the newest term that says them */
  long long flags_since;
  runlog_state shadow; /* the same, by the engine's own fold */
  long long epoch;     /* the one that counts */
  long long first;     /* number of its first entry */
  bool rewritten; /* numbers that were lost have got other entries: what follows proves nothing */
  long long head_commit; /* the highest number that the head has named; 0: none yet */
} judged;

static judged known;

/* Whether only results count: what is committed is whole, and can be read. A seeded fault that
 * breaks a rule must show by what it does, not by the rule's own letters. */
bool judge_results_only;

#define BROKEN_RULE(...)                                                                           \
  do {                                                                                             \
    if (!judge_results_only && !known.rewritten) sim_violation(__VA_ARGS__);                       \
  } while (0)

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

static judge_attempt *judge_attempt_of(long long n) {
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

static judge_commit *judge_commit_of(const judge_attempt *a) {
  for (size_t i = known.commit_count; i-- > 0;)
    if (known.commits[i].of == a) return &known.commits[i];
  return NULL;
}

/* ---- what a commit promises ---- */

static void check_digest(const judge_attempt *a, const object *o, const json_t *entry) {
  char hex[HASH_HEX_MAX];
  digest block, whole;
  const char *said = json_string_value(json_object_get(entry, "digest"));
  hash_bytes(HASH_XXH3_128, o->data, o->len, &block, NULL);
  hash_of_blocks(HASH_XXH3_128, &block, 1, &whole, NULL);
  digest_hex(&whole, hex);
  if (!said || strcmp(said, hex) != 0)
    sim_violation("%s of commit %s has other bytes than its manifest says", o->key, a->dir);
}

/* Version of the bytes at <dir>/<file>; the manifest must name it, with their digest. */
static unsigned judge_check_file(const judge_attempt *a, const char *file, const json_t *table) {
  char key[256], expected[256];
  const json_t *entry;
  size_t i;
  snprintf(key, sizeof key, "%s/%s", a->dir, file);
  const object *o = space_find(key);
  if (!o) sim_violation("%s is missing, and its commit stands", key);
  json_array_foreach(table, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (!name || strcmp(name, file) != 0) continue;
    check_digest(a, o, entry);
    for (unsigned v = 1; v <= VERSIONS; v++) {
      size_t len = units_content(a->unit, v, file, expected, sizeof expected);
      if (len == o->len && memcmp(expected, o->data, len) == 0) return v;
    }
    sim_violation("%s has bytes that nobody saved: %.80s", key, o->data);
  }
  sim_violation("%s is in no manifest", key);
}

static json_t *judge_manifest(const judge_attempt *a) {
  char key[256];
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  const object *o = space_find(key);
  if (!o) sim_violation("%s is missing, and its commit stands", key);
  json_t *top = json_loadb(o->data, o->len, 0, NULL);
  if (!top) sim_violation("%s cannot be read", key);
  return top;
}

/* What was saved beside it. */
static void check_with(const judge_commit *c) {
  char key[256], expected[256];
  snprintf(key, sizeof key, ".ckpt/with/%lld/%lld/train.log", c->attempt, c->with_term);
  const object *o = space_find(key);
  if (!o) sim_violation("%s is missing, and its commit stands", key);
  for (unsigned v = 1; v <= VERSIONS; v++) {
    size_t len = units_content("train.log", v, "train.log", expected, sizeof expected);
    if (len == o->len && memcmp(expected, o->data, len) == 0) return;
  }
  sim_violation("%s has other bytes", key);
}

static void judge_check_commit(judge_commit *c) {
  const judge_attempt *a = c->of;
  json_t *top = judge_manifest(a), *table = json_object_get(top, "files"), *entry;
  const char *root = json_string_value(json_object_get(top, "root"));
  const char *unit = json_string_value(json_object_get(top, "unit"));
  int files = 0;
  size_t k;
  unsigned version = 0;
  if (!root || strcmp(root, c->root) != 0) sim_violation("%s: another manifest is there", a->dir);
  if (!unit || strcmp(unit, a->unit) != 0) sim_violation("%s: a manifest of %s", a->dir, unit);
  for (unsigned i = 0; units_file(a->unit, a->world, i); i++) {
    unsigned v = judge_check_file(a, units_file(a->unit, a->world, i), table);
    if (version && v != version)
      sim_violation("%s is mixed of versions %u and %u", a->dir, version, v);
    version = v;
  }
  json_array_foreach(table, k, entry) {
    const char *type = json_string_value(json_object_get(entry, "type"));
    files += type && strcmp(type, "file") == 0;
  }
  if (files != units_file_count(a->unit, a->world))
    sim_violation("%s: its manifest has %d files of %d", a->dir, files,
                  units_file_count(a->unit, a->world));
  c->version = version;
  json_decref(top);
  if (c->with_term >= 0) check_with(c);
}

/* Each rank of one and the same term has said that its part is there. */
static void judge_check_parts(const judge_attempt *a) {
  char key[256];
  for (long long term = 0; a->world > 1 && term <= known.newest_term; term++) {
    unsigned there = 0;
    for (unsigned r = 0; r < a->world; r++) {
      snprintf(key, sizeof key, ".ckpt/parts/%lld/%lld/%u", a->n, term, r);
      there += space_find(key) != NULL;
    }
    if (there == a->world) return;
  }
  if (a->world > 1) sim_violation("%s: no term has the part records of all ranks", a->dir);
}

/* Is it not let go? Then all of it is there. */
bool judge_stands(uint64_t commit) {
  judge_commit *c = judge_commit_at((long long)commit);
  if (!c || c->deleted) return false;
  judge_check_commit(c);
  return true;
}

static void judge_check_visitors(void);

void judge_all(void) {
  judge_check_visitors();
  for (size_t i = 0; i < known.commit_count; i++)
    if (!known.commits[i].deleted) judge_check_commit(&known.commits[i]);
}

/* ---- the log ---- */

static long long judge_number(const json_t *entry, const char *key) {
  const json_t *value = json_object_get(entry, key);
  return json_is_integer(value) ? json_integer_value(value) : -1;
}

static void judge_text(const json_t *entry, const char *key, char *out, size_t room) {
  const char *text = json_string_value(json_object_get(entry, key));
  snprintf(out, room, "%s", text ? text : "");
}

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

static void judge_fold_attempt(const json_t *entry, long long n) {
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
static long long judge_beside(const json_t *commit) {
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

static void judge_fold_term(const json_t *entry, const actor *by, long long n) {
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

static void judge_fold_end(void) {
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

static void judge_on_next(const actor *by, const json_t *entry, long long n) {
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

/* ---- behind lost entries, and across epochs ---- */

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

static void judge_on_entry(const actor *by, const object *o) {
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

/* ---- changes of the store ---- */

static bool judge_begins(const char *key, const char *where) {
  return strncmp(key, where, strlen(where)) == 0;
}

/* What is staged before it is named: .ckpt/staging/<term>.<nonce>, behind it ".with" if it is what
 * is saved beside it, before it "gone." if it is being removed. */
typedef struct staged {
  bool gone, beside;
  long long term;
  char nonce[40];
} staged;

static bool is_staged(const char *key, staged *out) {
  *out = (staged){0};
  if (!judge_begins(key, ".ckpt/staging/")) return false;
  key += strlen(".ckpt/staging/");
  out->gone = judge_begins(key, "gone.");
  if (out->gone) key += strlen("gone.");
  char *end;
  out->term = strtoll(key, &end, 10);
  if (*end != '.') return false;
  snprintf(out->nonce, sizeof out->nonce, "%.32s", end + 1);
  out->beside = strlen(end) > 33 && judge_begins(end + 33, ".with");
  return true;
}

judge_attempt *judge_attempt_for(const char *key) {
  static const char gone[] = ".ckpt/staging/gone.";
  char dir[STORE_KEY_MAX];
  staged s;
  if (is_staged(key, &s)) return judge_attempt_named(s.nonce);
  for (size_t i = 0; judge_begins(key, gone) && i < known.attempt_count; i++)
    if (judge_begins(key + sizeof gone - 1, known.attempts[i].nonce)) return &known.attempts[i];
  if (judge_begins(key, gone)) return NULL;
  if (judge_begins(key, ".ckpt/staging/") || judge_begins(key, ".ckpt/parts/") ||
      judge_begins(key, ".ckpt/with/"))
    return judge_attempt_of(strtoll(strchr(key + 6, '/') + 1, NULL, 10));
  snprintf(dir, sizeof dir, "%.*s", (int)strcspn(key, "/"), key);
  return judge_attempt_in(dir);
}

static bool of_attempt(const char *key) {
  return !judge_begins(key, ".ckpt/") || judge_begins(key, ".ckpt/staging/") ||
         judge_begins(key, ".ckpt/parts/") || judge_begins(key, ".ckpt/with/");
}

static void may_touch(const actor *by, const staged *s, const char *key) {
  if (!s->gone && s->term == known.newest_term && known.openers[s->term] != by->id)
    BROKEN_RULE("%s is the newest term's own, and %s comes for it", key, by->name);
}

/* What the head names stands, as it says, and nobody takes a number back. */
static void check_head(void) {
  char key[80], hex[HASH_HEX_MAX];
  digest sum;
  const object *head = space_find(".ckpt/head");
  json_t *top = json_loadb(head->data, head->len, 0, NULL);
  const json_t *commit = json_object_get(top, "commit");
  const char *said = json_string_value(json_object_get(commit, "digest"));
  long long n = judge_number(commit, "n");
  if (!top) sim_violation("the head is no object");
  if (n < 0) n = 0;
  if (lost_shows(NULL) || (known.epoch > 0 && n < known.first)) {
    known.head_commit = 0;
    return json_decref(top);
  }
  if (n < known.head_commit)
    sim_violation("the head names commit %lld after %lld", n, known.head_commit);
  known.head_commit = n;
  lost_key(known.epoch, n, key, sizeof key);
  const object *entry = n ? space_find(key) : NULL;
  if (n && (!entry || !judge_commit_at(n)))
    sim_violation("the head names %lld, which is no commit", n);
  if (entry) hash_bytes(HASH_XXH3_128, entry->data, entry->len, &sum, NULL);
  if (entry) digest_hex(&sum, hex);
  if (entry && (!said || strcmp(said, hex) != 0)) sim_violation("the head names another %lld", n);
  json_decref(top);
}

void judge_put(const actor *by, const char *key, bool replaced) {
  if (strcmp(key, ".ckpt/head") == 0) lost_unclear(), check_head();
  if (judge_begins(key, ".ckpt/epoch/") && replaced) sim_violation("%s was overwritten", key);
  if (judge_begins(key, ".ckpt/epoch/")) lost_epoch_taken(by);
  if (judge_begins(key, ".ckpt/log/") || judge_begins(key, ".ckpt/log.")) {
    if (replaced) sim_violation("%s was overwritten", key);
    judge_on_entry(by, space_find(key));
    return;
  }
  staged s;
  if (!of_attempt(key)) return;
  if (is_staged(key, &s)) {
    if (replaced) sim_violation("%s was overwritten", key);
    may_touch(by, &s, key);
    return;
  }
  judge_attempt *a = judge_attempt_for(key);
  if (!a) sim_violation("%s is made, and no attempt was announced there", key);
  judge_commit *c = judge_commit_of(a);
  if (replaced && c && !c->deleted && !judge_begins(key, ".ckpt/")) judge_check_commit(c);
}

/* Where directories are shared by mistake, what one attempt may lose another one needs. */
static void needed_by(const char *key) {
  char dir[STORE_KEY_MAX];
  snprintf(dir, sizeof dir, "%.*s", (int)strcspn(key, "/"), key);
  for (size_t i = 0; i < known.commit_count; i++)
    if (!known.commits[i].deleted && strcmp(known.commits[i].of->dir, dir) == 0)
      sim_violation("%s is removed, and commit %lld stands", key, known.commits[i].n);
}

/* Its files stand where they are to be, all of them: they came there in one step. */
static bool is_shown(const judge_attempt *a) {
  char key[256];
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  return space_find(key) != NULL;
}

/* Of what was saved beside it a commit names that of one term. */
static bool names_term(const judge_commit *c, const char *key) {
  const char *term = strchr(key + strlen(".ckpt/with/"), '/');
  return c->with_term >= 0 && term && strtoll(term + 1, NULL, 10) == c->with_term;
}

/* One by one only its own writer takes anything out of it, and only before it is named. */
static void may_leave_staging(const actor *by, const staged *s, const char *key) {
  const judge_attempt *a = judge_attempt_named(s->nonce);
  if (s->gone) return;
  if (known.openers[s->term] != by->id && known.openers_then[s->term] != by->id + 1)
    BROKEN_RULE("%s is removed by %s, who did not rename it first", key, by->name);
  if (a && a->fate == FATE_OPEN && !is_shown(a))
    BROKEN_RULE("%s is removed, and its attempt stands", key);
}

static void may_move_staging(const actor *by, const staged *s, const char *from, const char *to) {
  const judge_attempt *a = judge_attempt_named(s->nonce);
  char with[64];
  staged t;
  bool again = is_staged(to, &t);
  if (again && a && a->forgotten) a = NULL; /* nobody can know that it was announced */
  if (again && a && a->fate == FATE_OPEN && !is_shown(a))
    BROKEN_RULE("%s is taken away, and its attempt stands", from);
  if (again) {
    if (!a) may_touch(by, s, from);
    if (!t.gone && (a || known.openers[t.term] != by->id || s->term >= t.term))
      BROKEN_RULE("%s is renamed to %s by %s", from, to, by->name);
    return;
  }
  if (!a) sim_violation("%s is shown as %s, and no attempt says so", from, to);
  snprintf(with, sizeof with, ".ckpt/with/%lld/%lld", a->n, s->term);
  if (strcmp(to, s->beside ? with : a->dir) != 0)
    sim_violation("%s is renamed to %s, which is not its own", from, to);
}

/* ---- somebody else's ---- */

static bool judge_is_over(const judge_attempt *a) {
  const judge_commit *c = judge_commit_of(a);
  return a->fate == FATE_SWEPT || (c && c->deleted);
}

static const char visitors[] = "thesis";

void judge_visit(void) {
  char key[256];
  judge_attempt *a = known.attempt_count ? &known.attempts[sim_roll(known.attempt_count)] : NULL;
  if (!a || a->visited || !judge_is_over(a)) return;
  snprintf(key, sizeof key, "%s/%s", a->dir, visitors);
  space_put(key, "mine", 4, "");
  a->visited = true;
  sim_count->visits++;
  sim_trace("somebody puts %s", key);
}

void judge_swap(const char *dir) {
  char key[256];
  judge_attempt *a = judge_attempt_in(dir);
  const judge_commit *other =
      known.commit_count ? &known.commits[sim_roll(known.commit_count)] : NULL;
  if (!a || a->visited || a->swapped || !other || other->attempt == a->n || !other->manifest)
    return;
  for (const object *o = NULL; (o = space_at(space_from(dir))) && space_below(o->key, dir);)
    space_remove(o->key);
  snprintf(key, sizeof key, "%s/%s", dir, visitors);
  space_put(key, "mine", 4, "");
  snprintf(key, sizeof key, "%s/%s", dir, MANIFEST_NAME);
  space_put(key, other->manifest, strlen(other->manifest), "");
  a->visited = a->swapped = true;
  sim_count->swaps++;
  sim_trace("somebody puts another checkpoint in the place of %s", dir);
}

/* A copy of a manifest, where nobody may take it for the save's own any more: the save is cleared,
 * or its removal was cut short: its directory was renamed, or the copy is younger than the commit.
 */
static void restore_backup(judge_attempt *a, const judge_commit *c) {
  char key[256], name[128];
  snprintf(name, sizeof name, ".ckpt/staging/gone.%s/", a->nonce);
  const object *gone = space_at(space_from(name));
  bool begun = gone && judge_begins(gone->key, name);
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  snprintf(name, sizeof name, ".ckpt/cleared/%s", a->nonce);
  bool cleared = space_find(name) != NULL;
  snprintf(name, sizeof name, ".ckpt/clearing/%s", a->nonce);
  if (space_find(key) || (!cleared && !begun && !space_find(name))) return;
  const char *text = c ? c->manifest : "{}";
  space_put(key, text, strlen(text), cleared && !sim_weather.files ? a->nonce : "");
  a->backup = true;
  if (c && !cleared) lost_removed(c);
  sim_count->backups++;
  sim_trace("somebody copies %s back", key);
}

void judge_restore_backups(void) {
  for (size_t i = 0; i < known.attempt_count; i++)
    if (judge_is_over(&known.attempts[i]))
      restore_backup(&known.attempts[i], judge_commit_of(&known.attempts[i]));
}

static bool judge_is_visitors(const char *key) {
  size_t len = strlen(key), own = sizeof visitors - 1;
  return len > own && key[len - own - 1] == '/' && strcmp(key + len - own, visitors) == 0;
}

static bool is_moved(const judge_attempt *a, const char *name) {
  char key[256];
  snprintf(key, sizeof key, ".ckpt/staging/gone.%s/%s", a->nonce, name);
  return space_find(key) != NULL;
}

/* It is where it was put. What dies behind the rename of a directory leaves it there. */
static void judge_check_visitors(void) {
  char key[256];
  for (size_t i = 0; i < known.attempt_count; i++) {
    snprintf(key, sizeof key, "%s/%s", known.attempts[i].dir, MANIFEST_NAME);
    if (known.attempts[i].backup && !space_find(key)) sim_violation("the backup %s is gone", key);
    if (!known.attempts[i].visited) continue;
    if (known.attempts[i].swapped && !is_moved(&known.attempts[i], MANIFEST_NAME) &&
        !space_find(key))
      sim_violation("the manifest of another checkpoint, %s, is gone", key);
    snprintf(key, sizeof key, "%s/%s", known.attempts[i].dir, visitors);
    if (space_find(key)) continue;
    if (!is_moved(&known.attempts[i], visitors)) sim_violation("%s of somebody else is gone", key);
  }
}

/* In a bucket the next one removes by what a manifest says that has gone. */
static void keeps_text(const judge_attempt *a, const char *key) {
  char name[256];
  snprintf(name, sizeof name, "%s/%s", a->dir, MANIFEST_NAME);
  if (sim_weather.files || strcmp(key, name) != 0) return;
  snprintf(name, sizeof name, ".ckpt/clearing/%s", a->nonce);
  const object *kept = space_find(name), *manifest = space_find(key);
  if (kept && manifest && kept->len == manifest->len &&
      memcmp(kept->data, manifest->data, kept->len) == 0)
    return;
  snprintf(name, sizeof name, ".ckpt/cleared/%s", a->nonce);
  if (!space_find(name)) BROKEN_RULE("%s is removed, and its text is kept nowhere", key);
}

static void may_go(const char *key) {
  if (judge_is_visitors(key)) sim_violation("%s, which is somebody else's, is removed", key);
  const judge_attempt *a = judge_attempt_for(key);
  if (!a) sim_violation("%s is removed, and nobody knows whose it is", key);
  const judge_commit *c = judge_commit_of(a);
  if (judge_is_over(a)) {
    if (c) keeps_text(a, key);
    needed_by(key);
    return;
  }
  /* What a save needed on its way is not needed behind the commit. */
  if (c && (judge_begins(key, ".ckpt/staging/") || judge_begins(key, ".ckpt/parts/"))) return;
  if (judge_begins(key, ".ckpt/staging/") && is_shown(a)) return;
  if (c && judge_begins(key, ".ckpt/with/") && !names_term(c, key)) return;
  sim_violation("%s is removed, and its %s stands", key,
                c ? c->dropped ? "commit (dropped only)" : "commit" : "attempt");
}

void judge_remove(const actor *by, const char *key) {
  if (judge_begins(key, ".ckpt/log/") || judge_begins(key, ".ckpt/log.") ||
      judge_begins(key, ".ckpt/epoch/"))
    sim_violation("%s is removed", key);
  staged s;
  if (is_staged(key, &s))
    may_leave_staging(by, &s, key);
  else if (of_attempt(key))
    may_go(key);
  for (int i = 0; i < ACTORS_MAX; i++) {
    const actor *a = actor_at(i);
    if (a && a != by && !a->dead && strcmp(a->pin, key) == 0 && !a->pin_lapsed &&
        sim_now <= a->pin_until)
      sim_violation("%s, which %s holds, is removed", key, a->name);
  }
}

void judge_publish(const actor *by, const char *from, const char *to) {
  char below[STORE_KEY_MAX];
  staged s;
  if (is_staged(from, &s)) {
    may_move_staging(by, &s, from, to);
    return;
  }
  bool shows = judge_begins(from, ".ckpt/staging/");
  snprintf(below, sizeof below, "%s/", shows ? from : to);
  const judge_attempt *a = judge_attempt_for(below);
  if (!a || strcmp(a->dir, shows ? to : from) != 0)
    sim_violation("%s is renamed to %s, which is not its own", from, to);
  if (shows) return;
  snprintf(below, sizeof below, "%s/", from);
  may_go(below);
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
