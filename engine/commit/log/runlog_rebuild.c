/* runlog_rebuild: folds what is left of a log into the state that it proves.
 *
 * Writers that keep the rules make no entry that breaks one. So where an entry breaks one behind a
 * lost entry, that entry is the reason, and what it must have said is concluded. Where several
 * things could have been lost, the one is taken by which no data goes: an attempt of which no end
 * is known is open, a commit whose drop is not known is live. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runlog_fold.h"
#include "runlog_ruin.h"

typedef struct rebuild {
  runlog_ruin *r;
  runlog_evidence *v;
  runlog_state *st;
  uint64_t from;  /* numbers below it are in the snapshot */
  bool tail_lost; /* something names an entry behind the last one */
  uint64_t *used;
  size_t used_count, used_room;
} rebuild;

static int no_memory(err *e) {
  return err_set(e, ERR_NOMEM, "repair a log: out of memory");
}

static const runlog_place *place_at(const rebuild *b, uint64_t n) {
  for (size_t lo = 0, hi = b->r->count; lo < hi;) {
    size_t mid = lo + (hi - lo) / 2;
    if (b->r->places[mid].n == n) return &b->r->places[mid];
    if (b->r->places[mid].n < n)
      lo = mid + 1;
    else
      hi = mid;
  }
  return NULL;
}

static uint64_t number_in(const json_t *entry, const char *key) {
  const json_t *value = json_object_get(entry, key);
  return json_is_integer(value) && json_integer_value(value) >= 0
             ? (uint64_t)json_integer_value(value)
             : RUNLOG_NONE;
}

static bool is_type(const json_t *entry, const char *type) {
  const char *said = json_string_value(json_object_get(entry, "type"));
  return said && strcmp(said, type) == 0;
}

/* ---- numbers that no entry has ---- */

static int use_number(rebuild *b, uint64_t n, err *e) {
  if (!VEC_ROOM(b->used, b->used_count, b->used_room)) return no_memory(e);
  b->used[b->used_count++] = n;
  runlog_ruin_saw(b->r, n);
  return 0;
}

static bool is_free(const rebuild *b, uint64_t n) {
  const runlog_place *p = place_at(b, n);
  if (n < b->from || (p && p->rest == RUNLOG_REST_ENTRY) || n == b->st->term.n) return false;
  for (size_t i = 0; i < b->used_count; i++)
    if (b->used[i] == n) return false;
  return true;
}

/* Finds the first lost number between two others; RUNLOG_NONE: there is none. */
static uint64_t free_between(const rebuild *b, uint64_t above, uint64_t below) {
  uint64_t n = above == RUNLOG_NONE ? b->from : above + 1;
  if (n < b->from) n = b->from;
  for (; n < below; n++)
    if (is_free(b, n)) return n;
  return RUNLOG_NONE;
}

static uint64_t number_above_all(const rebuild *b) {
  return b->r->seen == RUNLOG_NONE ? 0 : b->r->seen + 1;
}

/* ---- what must have stood at a lost place ---- */

static json_t *entry_at(const char *type, uint64_t n, const char *nonce, int *bad) {
  json_t *entry = runlog_new_entry(type, RUNLOG_NONE, bad);
  js_set(entry, "format", json_integer(RUNLOG_FORMAT), bad);
  js_set(entry, "reader", json_integer(RUNLOG_READER), bad);
  runlog_set_number(entry, "n", n, bad);
  js_set(entry, "nonce", json_string(nonce), bad);
  js_set(entry, "time_ns", json_integer(0), bad);
  return entry;
}

static int apply_made(rebuild *b, json_t *entry, int bad, err *e) {
  const char *ignored = NULL;
  uint64_t n = b->st->next;
  int rc = bad ? no_memory(e) : runlog_apply(b->st, entry, &ignored, e);
  json_decref(entry);
  if (rc == 0) rc = use_number(b, n, e);
  return rc;
}

static int make_run(rebuild *b, err *e) {
  int bad = 0;
  json_t *entry = entry_at("run", 0, b->v->nonce, &bad);
  js_set(entry, "run", js_name_new(b->v->run), &bad);
  return apply_made(b, entry, bad, e);
}

static int make_term(rebuild *b, uint64_t n, err *e) {
  runlog_writer who = {.launch = "lost", .world = 1};
  int bad = 0;
  json_t *entry = entry_at("term", n, "", &bad);
  runlog_set_number(entry, "term", n, &bad);
  if (b->st->ended) js_set(entry, "run", js_name_new(b->st->run_id), &bad);
  runlog_set_writer(entry, &who, &bad);
  return apply_made(b, entry, bad, e);
}

/* The save that attempt n made, by its commit: equal saves of one name have equal roots, so one that
 * has the number comes first, and one that has another number is another's. */
static runlog_trace *trace_of_root(const rebuild *b, const json_t *commit, uint64_t n) {
  const char *root = json_string_value(json_object_get(commit, "root"));
  runlog_trace *found = NULL;
  for (size_t i = 0; root && i < b->v->count; i++) {
    char hex[HASH_HEX_MAX];
    digest_hex(&b->v->traces[i].facts.root, hex);
    runlog_trace *t = &b->v->traces[i];
    if (t->used || strcmp(hex, root) != 0 || (t->number != RUNLOG_NONE && t->number != n)) continue;
    if (!found || t->number == n) found = t;
  }
  return found;
}

static runlog_trace *trace_of_number(const rebuild *b, uint64_t n) {
  for (size_t i = 0; i < b->v->count; i++)
    if (b->v->traces[i].number == n) return &b->v->traces[i];
  return NULL;
}

static runlog_trace *trace_of_dir(const rebuild *b, const char *dir) {
  for (size_t i = 0; i < b->v->count; i++)
    if (strcmp(b->v->traces[i].dir, dir) == 0) return &b->v->traces[i];
  return NULL;
}

/* Each directory is one attempt's. */
static bool has_dir(const rebuild *b, const runlog_trace *t) {
  for (size_t i = 0; i < b->st->attempt_count; i++)
    if (strcmp(b->st->attempts[i].dir, t->dir) == 0) return true;
  return false;
}

/* Adds the attempt that made what stands in a directory. */
static int add_attempt(rebuild *b, const runlog_trace *t, uint64_t n, err *e) {
  runlog_attempt a = {.n = n,
                      .owner = b->st->term.n == RUNLOG_NONE ? 0 : b->st->term.n,
                      .world = t->world ? t->world : 1,
                      .fate = RUNLOG_OPEN,
                      .plain_keys = t->plain_keys};
  a.unit = strdup(t->unit);
  a.dir = strdup(t->dir);
  memcpy(a.nonce, t->id, sizeof a.nonce);
  if (a.unit && a.dir && runlog_add_attempt(b->st, &a) == 0) return use_number(b, n, e);
  free(a.unit);
  free(a.dir);
  return no_memory(e);
}

/* Adds a commit of that attempt; both lists are sorted at the end. */
static int add_commit(rebuild *b, runlog_trace *t, uint64_t attempt, uint64_t n, err *e) {
  runlog_attempt *a = NULL;
  for (size_t i = 0; i < b->st->attempt_count; i++)
    if (b->st->attempts[i].n == attempt) a = &b->st->attempts[i];
  runlog_commit *c = a ? runlog_next_commit(b->st) : NULL;
  if (!c) return no_memory(e);
  *c = t->facts;
  t->facts.metrics = t->facts.policy = t->facts.reason = NULL;
  t->facts.thin = (runlog_thinned){0};
  c->n = n;
  c->attempt = attempt;
  c->unit = a->unit;
  c->dir = a->dir;
  c->time_ns = t->created_ns;
  snprintf(c->nonce, sizeof c->nonce, "%.31s%x", b->v->nonce, (unsigned)(n & 15));
  a->fate = RUNLOG_COMMITTED;
  b->st->commit_count++;
  t->used = true;
  return use_number(b, n, e);
}

/* Could a save whose attempt was lost have made a commit of which nothing else is known? */
static bool has_unplaced(const rebuild *b) {
  for (size_t i = 0; i < b->v->count; i++) {
    const runlog_trace *t = &b->v->traces[i];
    if (t->whole && !t->used && !t->gone && *t->id && !runlog_find_nonce(b->st, t->id)) return true;
  }
  return false;
}

/* Of which save was commit n? Saves of a log come one after the other. Where it may have been one or
 * the other, a drop or a bad mark of the wrong one would let go what was promised. */
static runlog_trace *trace_of_commit(const rebuild *b, uint64_t *attempt) {
  if (has_unplaced(b)) return NULL;
  for (size_t i = b->st->attempt_count; i-- > 0;) {
    const runlog_attempt *a = &b->st->attempts[i];
    runlog_trace *t = a->fate == RUNLOG_OPEN ? trace_of_dir(b, a->dir) : NULL;
    *attempt = a->n;
    if (t && !t->used && t->whole) return t;
  }
  return NULL;
}

/* Concludes from a later entry what stood at place n. Returns 1 if it did. */
static int conclude(rebuild *b, uint64_t n, const json_t *later, err *e) {
  uint64_t attempt = RUNLOG_NONE;
  runlog_trace *t;
  int rc = 0;
  if (number_in(later, "term") == n) {
    rc = make_term(b, n, e);
  } else if (number_in(later, "attempt") == n) {
    t = is_type(later, "commit") ? trace_of_root(b, later, n) : trace_of_number(b, n);
    if (!t || has_dir(b, t)) return 0;
    rc = add_attempt(b, t, n, e);
    b->st->next++;
  } else if (number_in(later, "commit") == n) {
    t = trace_of_commit(b, &attempt);
    if (!t) return 0;
    rc = add_commit(b, t, attempt, n, e);
    b->st->next++;
  } else {
    return 0;
  }
  return rc < 0 ? rc : 1;
}

/* Place n is lost. */
static int pass_lost(rebuild *b, size_t next, err *e) {
  uint64_t n = b->st->next;
  int rc = 0;
  if (n == 0) return make_run(b, e);
  for (size_t i = next; rc == 0 && i < b->r->count; i++)
    if (b->r->places[i].entry && b->r->places[i].rest == RUNLOG_REST_ENTRY)
      rc = conclude(b, n, b->r->places[i].entry, e);
  if (rc == 0) {
    runlog_trace *t = trace_of_number(b, n);
    bool known = !t || t->used || !*t->id || runlog_find_nonce(b->st, t->id) || has_dir(b, t);
    if (!known) rc = add_attempt(b, t, n, e);
    b->st->next++;
  }
  return rc < 0 ? rc : 0;
}

/* ---- entries that are there ---- */

static void drop_all(runlog_state *st, uint64_t n) {
  for (size_t i = 0; i < st->attempt_count; i++)
    if (st->attempts[i].fate == RUNLOG_OPEN) st->attempts[i].fate = RUNLOG_SWEPT;
  for (size_t i = 0; i < st->commit_count; i++) st->commits[i].life = RUNLOG_DELETED;
  st->ended = true;
  st->end = n;
}

/* A run that was ended has begun again, and the entry that said so is lost: by the same id, since a
 * place is most often gone on with by the job that had it. */
static void begin_again(runlog_state *st) {
  free(st->end_reason);
  st->end_reason = NULL;
  st->ended = false;
  st->since = st->next;
  st->joined_count = 0;
}

/* Makes true what an entry takes for granted. */
static void grant(rebuild *b, const json_t *entry) {
  runlog_state *st = b->st;
  const char *run = json_string_value(json_object_get(entry, "run"));
  runlog_attempt *a = runlog_attempt_at(st, number_in(entry, "attempt"));
  runlog_commit *c = runlog_commit_at(st, number_in(entry, "commit"));
  uint64_t term = number_in(entry, "term");
  if (is_type(entry, "term") && run && !st->ended && strcmp(run, st->run_id) != 0)
    drop_all(st, st->next);
  if (is_type(entry, "term") && !run && st->ended) begin_again(st);
  if (a && is_type(entry, "commit") && term == st->term.n) a->owner = term;
  if (a && is_type(entry, "commit") && a->fate == RUNLOG_SWEPT) a->fate = RUNLOG_OPEN;
  if (c && is_type(entry, "delete") && c->life == RUNLOG_LIVE) {
    c->life = RUNLOG_DROPPED;
    c->drop = st->next;
  }
}

/* The entry that let files go may be lost; a note beside them is put before any goes. */
static int take_thin(rebuild *b, err *e) {
  for (size_t i = 0; i < b->st->commit_count; i++) {
    runlog_commit *c = &b->st->commits[i];
    const runlog_trace *t = trace_of_dir(b, c->dir);
    if (c->thin.globs.count || !t || !t->facts.thin.globs.count) continue;
    if (!digest_equal(&t->facts.root, &c->root)) continue;
    if (!runlog_copy_thin(&t->facts.thin, &c->thin)) return no_memory(e);
    c->files = t->facts.files;
    c->bytes = t->facts.bytes;
    c->left_out = t->facts.left_out;
    c->left_here = t->facts.left_here;
  }
  return 0;
}

static void note_used(rebuild *b) {
  for (size_t i = 0; i < b->st->commit_count; i++) {
    const runlog_commit *c = &b->st->commits[i];
    runlog_trace *t = trace_of_dir(b, c->dir);
    if (t && digest_equal(&t->facts.root, &c->root)) t->used = true;
  }
}

static int by_n(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Brings the lists into order again; the table of plain names has places in them. */
static int sort_state(runlog_state *st, err *e) {
  runlog_attempt *old = st->attempts;
  size_t count = st->attempt_count;
  int rc = 0;
  if (count) qsort(old, count, sizeof *old, by_n);
  if (st->commit_count) qsort(st->commits, st->commit_count, sizeof *st->commits, by_n);
  free(st->plain);
  st->plain = NULL;
  st->plain_count = st->plain_room = 0;
  st->attempts = NULL;
  st->attempt_count = st->attempt_room = 0;
  for (size_t i = 0; rc == 0 && i < count; i++) rc = runlog_add_attempt(st, &old[i]);
  free(old);
  return rc < 0 ? no_memory(e) : 0;
}

static int fold_places(rebuild *b, err *e) {
  runlog_state *st = b->st;
  runlog_ruin *r = b->r;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->count; i++) {
    runlog_place *p = &r->places[i];
    if (p->n < st->next) continue;
    while (rc == 0 && st->next < p->n) rc = pass_lost(b, i, e);
    if (rc == 0 && (p->rest != RUNLOG_REST_ENTRY || !p->entry)) {
      rc = pass_lost(b, i + 1, e);
      continue;
    }
    if (rc == 0 && st->next == 0 && !is_type(p->entry, "run")) rc = make_run(b, e);
    if (rc < 0) break;
    grant(b, p->entry);
    err why = {0};
    rc = runlog_apply(st, p->entry, NULL, &why);
    if (rc == ERR_FORMAT || rc == ERR_CORRUPT) { /* it parses, and is no entry all the same */
      p->rest = RUNLOG_REST_TORN;
      r->torn++;
      rc = pass_lost(b, i + 1, &why);
    }
    if (rc < 0) err_set(e, rc, "%s", why.text);
    note_used(b);
  }
  return rc;
}

/* ---- whole saves that no commit names ---- */

static int by_time(const void *a, const void *b) {
  const runlog_trace *x = a, *y = b;
  if (x->number != RUNLOG_NONE && y->number != RUNLOG_NONE && x->number != y->number)
    return x->number < y->number ? -1 : 1;
  if (x->created_ns != y->created_ns) return x->created_ns < y->created_ns ? -1 : 1;
  return strcmp(x->dir, y->dir);
}

/* The first commit that is newer than this save: of a later attempt, or where its attempt's number
 * is not known, of a later time. */
static const runlog_commit *newer_commit(const rebuild *b, const runlog_trace *t,
                                         uint64_t attempt) {
  const runlog_commit *first = NULL;
  for (size_t i = 0; i < b->st->commit_count; i++) {
    const runlog_commit *c = &b->st->commits[i];
    bool newer = attempt != RUNLOG_NONE ? c->attempt > attempt : c->time_ns > t->created_ns;
    if (newer && (!first || c->n < first->n)) first = c;
  }
  return first;
}

static uint64_t older_commit(const rebuild *b, const runlog_trace *t) {
  uint64_t last = RUNLOG_NONE;
  for (size_t i = 0; i < b->st->commit_count; i++) {
    const runlog_commit *c = &b->st->commits[i];
    if (c->time_ns <= t->created_ns && (last == RUNLOG_NONE || c->n > last)) last = c->n;
  }
  return last;
}

/* Its own number, as long as no other entry has it; else RUNLOG_NONE. One that is its own was passed
 * over: somebody who had not read its term has put another entry in that one's place. */
static uint64_t number_of_save(const rebuild *b, const runlog_trace *t) {
  const runlog_place *p = t->number == RUNLOG_NONE ? NULL : place_at(b, t->number);
  const char *nonce = json_string_value(json_object_get(p ? p->entry : NULL, "nonce"));
  bool own = nonce && strcmp(nonce, t->id) == 0;
  return t->number != RUNLOG_NONE && (own || is_free(b, t->number)) ? t->number : RUNLOG_NONE;
}

/* Puts a save where it belongs: below `before` if that is a number. Returns 1 if there is a place.
 * `announced`: its attempt is in
 * the state. */
static int place_save(rebuild *b, runlog_trace *t, bool announced, uint64_t attempt,
                      uint64_t before, err *e) {
  bool known = attempt != RUNLOG_NONE;
  uint64_t commit = RUNLOG_NONE;
  if (before != RUNLOG_NONE) {
    if (!known) attempt = free_between(b, older_commit(b, t), before);
    if (!known && attempt == RUNLOG_NONE) attempt = free_between(b, RUNLOG_NONE, before);
    if (attempt == RUNLOG_NONE) return 0;
    commit = t->pinned != RUNLOG_NONE && t->pinned > attempt && t->pinned < before + 1 &&
                     is_free(b, t->pinned)
                 ? t->pinned
                 : free_between(b, attempt, before);
    if (commit == RUNLOG_NONE) return 0; /* nothing shows that it was ever a commit */
  } else if (!known) {
    attempt = number_above_all(b);
  }
  int rc = announced ? 0 : add_attempt(b, t, attempt, e);
  if (rc == 0 && commit != RUNLOG_NONE) rc = add_commit(b, t, attempt, commit, e);
  if (rc == 0) t->used = true;
  return rc < 0 ? rc : 1;
}

/* Is any number behind that entry lost? */
static bool is_lost_behind(const rebuild *b, uint64_t n) {
  return b->tail_lost || free_between(b, n, b->r->end) != RUNLOG_NONE;
}

/* Clocks of hosts differ. A save whose entry was lost had a lost number: where none is left before a
 * commit, it came behind that one, whatever the times say; `newer` is the last it can be before, by
 * its attempt's number. */
static int place_where_it_fits(rebuild *b, runlog_trace *t, bool announced, uint64_t attempt,
                               uint64_t before, uint64_t newer, err *e) {
  int rc = place_save(b, t, announced, attempt, before, e);
  while (rc == 0 && before != RUNLOG_NONE && before < newer) {
    uint64_t next = RUNLOG_NONE;
    for (size_t i = 0; i < b->st->commit_count; i++)
      if (b->st->commits[i].n > before && b->st->commits[i].n < next) next = b->st->commits[i].n;
    if (next == RUNLOG_NONE && !announced && !is_lost_behind(b, before)) break;
    before = next;
    rc = place_save(b, t, announced, attempt, before, e);
  }
  return rc < 0 ? rc : 0;
}

/* A pin holds a commit by its number, so that number stays its own, and what is older comes before
 * it. */
static uint64_t pinned_behind(const rebuild *b, size_t i) {
  uint64_t first = RUNLOG_NONE;
  for (; i < b->v->count; i++) {
    const runlog_trace *t = &b->v->traces[i];
    if (t->used || !t->whole || t->gone || t->pinned == RUNLOG_NONE || !is_free(b, t->pinned))
      continue;
    if (t->pinned + 1 < first) first = t->pinned + 1;
  }
  return first;
}

static int place_one(rebuild *b, size_t i, err *e) {
  runlog_trace *t = &b->v->traces[i];
  if (t->used || !t->whole || t->gone) return 0;
  const runlog_attempt *a = *t->id ? runlog_find_nonce(b->st, t->id) : NULL;
  for (size_t k = 0; !a && k < b->st->attempt_count; k++)
    if (strcmp(b->st->attempts[k].dir, t->dir) == 0) a = &b->st->attempts[k];
  if (a && (a->fate != RUNLOG_OPEN || strcmp(a->dir, t->dir) != 0)) return 0;
  if (!a && !*t->id) return 0; /* what 1.0 saved says of no attempt that it is its own */
  uint64_t attempt = a ? a->n : number_of_save(b, t);
  /* A directory that is named by a number is no other attempt's. */
  if (attempt == RUNLOG_NONE && strcmp(t->dir, t->unit) != 0) return 0;
  const runlog_commit *newer = newer_commit(b, t, attempt);
  uint64_t before = newer ? newer->n : RUNLOG_NONE, pinned = pinned_behind(b, i);
  if (pinned < before) before = pinned;
  uint64_t last = newer && attempt != RUNLOG_NONE ? newer->n : RUNLOG_NONE;
  return place_where_it_fits(b, t, a != NULL, attempt, before, last, e);
}

/* An attempt that was sealed, whose end no entry tells, and of which files are missing by now: its commit
 * may have been told of. It is listed, as bad: nobody takes it by itself, and the next writer does not
 * commit it as whole. */
static int place_broken(rebuild *b, runlog_trace *t, err *e) {
  if (t->used || t->whole || t->gone || !*t->id) return 0;
  const runlog_attempt *a = runlog_find_nonce(b->st, t->id);
  if (!a || a->fate != RUNLOG_OPEN || strcmp(a->dir, t->dir) != 0) return 0;
  const runlog_commit *newer = newer_commit(b, t, a->n);
  uint64_t n = newer ? free_between(b, a->n, newer->n) : number_above_all(b);
  if (n == RUNLOG_NONE) return 0;
  int rc = add_commit(b, t, a->n, n, e);
  if (rc < 0) return rc;
  runlog_commit *c = &b->st->commits[b->st->commit_count - 1];
  c->bad = true;
  c->bad_reason = strdup("not whole when the log was repaired");
  return 0;
}

/* What is pinned comes first: others must leave it room below its number. */
static int place_saves(rebuild *b, err *e) {
  int rc = 0;
  if (b->v->count) qsort(b->v->traces, b->v->count, sizeof *b->v->traces, by_time);
  for (size_t i = 0; rc == 0 && i < b->v->count; i++)
    if (b->v->traces[i].pinned != RUNLOG_NONE) rc = place_one(b, i, e);
  for (size_t i = 0; rc == 0 && i < b->v->count; i++) rc = place_one(b, i, e);
  for (size_t i = 0; rc == 0 && i < b->v->count; i++) rc = place_broken(b, &b->v->traces[i], e);
  return rc;
}

static bool is_removed(const rebuild *b, const runlog_attempt *a) {
  char number[24];
  snprintf(number, sizeof number, "%" PRIu64, a->n);
  return (*a->nonce && names_has(&b->v->removed, a->nonce)) || names_has(&b->v->removed, number);
}

/* What a removal was begun of was let go by the log: readers must not choose it. */
static void let_go(rebuild *b) {
  for (size_t i = 0; i < b->st->attempt_count; i++) {
    runlog_attempt *a = &b->st->attempts[i];
    if (!is_removed(b, a)) continue;
    if (a->fate == RUNLOG_OPEN) a->fate = RUNLOG_SWEPT;
    for (size_t k = 0; k < b->st->commit_count; k++) {
      runlog_commit *c = &b->st->commits[k];
      if (c->attempt != a->n || c->life == RUNLOG_DELETED) continue;
      if (c->life == RUNLOG_LIVE) c->drop = c->n + 1;
      c->life = RUNLOG_DELETED;
    }
  }
}

int runlog_ruin_fold(runlog_ruin *r, runlog_evidence *v, err *e) {
  rebuild b = {.r = r, .v = v, .st = &r->st, .from = r->st.next};
  r->st.moved = 0;
  for (size_t i = 0; i < v->count; i++) {
    v->traces[i].used = false;
    if (v->traces[i].number != RUNLOG_NONE) runlog_ruin_saw(r, v->traces[i].number);
    if (v->traces[i].pinned != RUNLOG_NONE) runlog_ruin_saw(r, v->traces[i].pinned);
  }
  b.tail_lost = r->seen != RUNLOG_NONE && r->seen >= r->end;
  runlog_pass_over_fillers(r, v);
  note_used(&b);
  int rc = fold_places(&b, e);
  if (rc == 0 && !*r->st.run_id) {
    snprintf(r->st.run_id, sizeof r->st.run_id, "%s", v->run);
    runlog_keep_nonce(v->nonce, r->st.nonce);
  }
  if (rc == 0) rc = sort_state(&r->st, e);
  if (rc == 0) rc = place_saves(&b, e);
  if (rc == 0) let_go(&b);
  if (rc == 0) rc = take_thin(&b, e);
  if (rc == 0) rc = sort_state(&r->st, e);
  free(b.used);
  return rc;
}
