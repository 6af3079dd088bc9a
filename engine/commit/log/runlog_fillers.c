/* runlog_fillers: entries that stand where another one was lost, of which only those tell that are
 * not their neighbours.
 *
 * Whoever made an entry had read all before it. So where it speaks of a place as of something that
 * does not stand there, that was lost, and what stands came later, by a writer who had not read it,
 * or by a request that was under way for long. Nobody has acted on it, unless a commit or a removal
 * was built on it: then it stays.
 *
 * A sweep is one that the save contradicts: it stands whole, and nobody has begun to remove it. */
#include <string.h>

#include "runlog_fold.h"
#include "runlog_ruin.h"

static bool is_type(const json_t *entry, const char *type) {
  const char *said = json_string_value(json_object_get(entry, "type"));
  return said && strcmp(said, type) == 0;
}

static bool says(const json_t *entry, const char *key, uint64_t n) {
  const json_t *value = json_object_get(entry, key);
  return json_is_integer(value) && json_integer_value(value) == (json_int_t)n;
}

/* Is this the save that an entry commits? The digest of its manifest's whole text proves it. */
static bool is_committed_by(const runlog_trace *t, const json_t *commit) {
  char hex[HASH_HEX_MAX];
  const char *said = json_string_value(json_object_get(commit, "manifest"));
  if (!said || !*t->id || t->facts.manifest.len == 0) return false;
  digest_hex(&t->facts.manifest, hex);
  return strcmp(said, hex) == 0;
}

static bool is_another_attempt(const runlog_evidence *v, const json_t *entry, const json_t *later) {
  const char *nonce = json_string_value(json_object_get(entry, "nonce"));
  bool another = false;
  for (size_t i = 0; nonce && i < v->count; i++) {
    if (!is_committed_by(&v->traces[i], later)) continue;
    if (strcmp(nonce, v->traces[i].id) == 0) return false;
    another = true;
  }
  return another;
}

static const json_t *entry_at(const runlog_ruin *r, uint64_t n) {
  for (size_t i = 0; i < r->count; i++)
    if (r->places[i].n == n && r->places[i].entry) return r->places[i].entry;
  return NULL;
}

/* Can anybody tell which attempt has that number? */
static bool is_known(const runlog_ruin *r, const json_t *number) {
  uint64_t n = json_is_integer(number) ? (uint64_t)json_integer_value(number) : 0;
  return entry_at(r, n) || n < r->st.next;
}

/* A directory has one attempt: does a commit, of which the attempt is lost, prove another one there? */
static bool has_another_dir(const runlog_ruin *r, const runlog_evidence *v, const json_t *entry,
                            const json_t *later) {
  const char *nonce = json_string_value(json_object_get(entry, "nonce"));
  const char *dir = json_string_value(json_object_get(entry, "dir"));
  if (!nonce || !dir || is_known(r, json_object_get(later, "attempt"))) return false;
  for (size_t i = 0; i < v->count; i++) {
    const runlog_trace *t = &v->traces[i];
    if (strcmp(t->dir, dir) == 0 && strcmp(t->id, nonce) != 0 && is_committed_by(t, later))
      return true;
  }
  return false;
}

/* Had the writer of a later entry read another one at that place? */
static bool contradicts(const runlog_ruin *r, const runlog_evidence *v, const runlog_place *p,
                        const json_t *later) {
  const json_t *term = json_object_get(later, "term");
  bool is_term = is_type(p->entry, "term");
  if (says(later, "term", p->n) && !is_term) return true;
  if (is_term && json_is_integer(term) && json_integer_value(term) < (json_int_t)p->n) return true;
  if (says(later, "commit", p->n) && !is_type(p->entry, "commit")) return true;
  bool is_attempt = is_type(p->entry, "attempt"), commits = is_type(later, "commit");
  if (!says(later, "attempt", p->n))
    return is_attempt && commits && has_another_dir(r, v, p->entry, later);
  return !is_attempt || (commits && is_another_attempt(v, p->entry, later));
}

/* Has its writer read the one before it, as far as anybody can tell? One of 1.0 does not say. */
static bool is_chained(const runlog_place *p, const runlog_place *before) {
  char hex[HASH_HEX_MAX];
  if (before->n + 1 != p->n || p->rest == RUNLOG_REST_TORN) return false;
  if (!*p->prev || before->raw.len == 0) return true;
  digest_hex(&before->raw, hex);
  return strcmp(p->prev, hex) == 0;
}

/* Is it of those that nobody acts on? */
static bool is_idle(const runlog_place *p) {
  return p->rest == RUNLOG_REST_ENTRY && p->entry && json_object_get(p->entry, "sum") &&
         (is_type(p->entry, "term") || is_type(p->entry, "attempt") || is_type(p->entry, "adopt"));
}

/* Returns the end of what was built on the entry at `from`; `from` itself if it must stay. */
static size_t end_of(const runlog_ruin *r, size_t from) {
  size_t end = from;
  do {
    if (!is_idle(&r->places[end])) return from;
    end++;
  } while (end < r->count && is_chained(&r->places[end], &r->places[end - 1]));
  return end;
}

static void pass_over(runlog_ruin *r, size_t from, size_t end) {
  for (size_t i = from; i < end; i++) {
    runlog_place *p = &r->places[i];
    json_decref(p->entry);
    p->entry = NULL;
    p->filler = true;
    p->rest = RUNLOG_REST_TORN;
    r->unchained++;
  }
}

static const char *nonce_of_attempt(const runlog_ruin *r, uint64_t n) {
  const json_t *entry = entry_at(r, n);
  const runlog_attempt *a = runlog_find_attempt(&r->st, n);
  return entry ? json_string_value(json_object_get(entry, "nonce")) : a ? a->nonce : NULL;
}

static bool stands_whole(const runlog_ruin *r, const runlog_evidence *v, uint64_t attempt) {
  const char *nonce = nonce_of_attempt(r, attempt);
  for (size_t i = 0; i < v->count; i++) {
    const runlog_trace *t = &v->traces[i];
    bool own = *t->id && (nonce ? strcmp(t->id, nonce) == 0 : t->number == attempt);
    if (own) return t->whole && !t->gone;
  }
  return false;
}

static bool is_lost_behind(const runlog_ruin *r, size_t i) {
  if (i + 1 == r->count) return r->seen != RUNLOG_NONE && r->seen > r->places[i].n;
  const runlog_place *next = &r->places[i + 1];
  return next->n > r->places[i].n + 1 || next->rest != RUNLOG_REST_ENTRY;
}

/* What was lost behind it may be the commit of that save, which its writer had not read. */
static bool is_doubtful_sweep(const runlog_ruin *r, const runlog_evidence *v, size_t i) {
  const runlog_place *p = &r->places[i];
  const json_t *attempt = json_object_get(p->entry, "attempt");
  return p->rest == RUNLOG_REST_ENTRY && is_type(p->entry, "sweep") &&
         json_object_get(p->entry, "sum") && json_is_integer(attempt) && is_lost_behind(r, i) &&
         stands_whole(r, v, (uint64_t)json_integer_value(attempt));
}

void runlog_pass_over_fillers(runlog_ruin *r, const runlog_evidence *v) {
  for (size_t i = 0; i < r->count; i++) {
    if (is_doubtful_sweep(r, v, i)) pass_over(r, i, i + 1);
    size_t end = r->places[i].n > 0 ? end_of(r, i) : i;
    for (size_t k = end; end > i && k < r->count; k++) {
      if (!r->places[k].entry || !contradicts(r, v, &r->places[i], r->places[k].entry)) continue;
      pass_over(r, i, end);
      break;
    }
  }
}
