#include "queue.h"

#include <string.h>

static bool is_newer(const queue_unit *a, const queue_unit *b) {
  if (a->made_ns != b->made_ns) return a->made_ns > b->made_ns;
  return a->step > b->step;
}

bool queue_supersedes(const queue_unit *newer, const queue_unit *u) {
  bool steps = newer->step != MATCH_NO_STEP && u->step != MATCH_NO_STEP;
  return strcmp(newer->series, u->series) == 0 && is_newer(newer, u) &&
         !(steps && newer->step < u->step);
}

bool queue_is_later(queue_place a, queue_place b) {
  return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.made_ns > b.made_ns;
}

bool queue_before(const queue_unit *a, const queue_unit *b) {
  if (queue_is_later(a->place, b->place) || queue_is_later(b->place, a->place))
    return queue_is_later(b->place, a->place);
  return a->step < b->step;
}

/* ---- the end ---- */

bool queue_fits(const queue *q) {
  return !q->ranks && deadline_fits(q->takes_s, q->left_ns);
}

/* As queue_fits(), with one that may be taken back, and is not counted yet then. */
static bool fits_too(const queue *q, const queue_unit *u) {
  bool counted = u->stage == QUEUE_WAITS || u->stage == QUEUE_RUNS;
  double more = counted ? 0 : deadline_takes(&q->pace, u->bytes);
  return q->takes_s >= 0 && more >= 0 && !q->ranks && deadline_fits(q->takes_s + more, q->left_ns);
}

bool queue_stays(const queue *q, const queue_unit *u) {
  if (q->keep_all) return true;
  if (q->preempted)
    return q->rest == POLICY_REST_ALL || (q->rest == POLICY_REST_FIT && fits_too(q, u));
  return u->kept || (q->over && !u->early);
}

bool queue_goes(const queue *q, const queue_unit *newer, const queue_unit *u, bool all) {
  return u->stage == QUEUE_WAITS && queue_supersedes(newer, u) && (all || !queue_stays(q, u));
}

/* The newest are the last, as a rule: that is where one is found soon. */
bool queue_too_late(const queue *q, const queue_unit *u) {
  for (size_t i = q->count; i-- > 0;) {
    const queue_unit *k = &q->units[i];
    if (k->sure && queue_supersedes(k, u) && !(k->stage == QUEUE_WAITS && queue_stays(q, u)))
      return true;
  }
  return false;
}

bool queue_is_outdone(const queue *q, const queue_unit *u) {
  for (size_t i = q->count; i-- > 0;) {
    const queue_unit *k = &q->units[i];
    if ((k->sure || k->judged) && k->made_ns > u->made_ns && strcmp(k->series, u->series) == 0)
      return true;
  }
  return false;
}

/* ---- the line ---- */

bool queue_is_before(const queue_unit *u, queue_place newest) {
  return !u->above && queue_is_later(newest, u->place);
}

/* A newer one of its kind that is in the store already: it may have been complete before this one was
 * known to be. */
static bool has_newer_stored(const queue *q, const queue_unit *u) {
  for (size_t i = 0; i < q->count; i++)
    if (q->units[i].stage == QUEUE_STORED && queue_supersedes(&q->units[i], u)) return true;
  return false;
}

bool queue_is_late(const queue *q, const queue_unit *u, queue_place newest) {
  return queue_is_before(u, newest) || has_newer_stored(q, u);
}

/* True if another one runs or waits. */
static bool is_busy(const queue *q) {
  size_t count = 0;
  for (size_t i = 0; i < q->count; i++)
    count += q->units[i].stage == QUEUE_WAITS || q->units[i].stage == QUEUE_RUNS;
  return count > 1;
}

queue_word queue_enter(const queue *q, const queue_unit *u, policy_queue how) {
  if (!q->keep_all && how == POLICY_NO_QUEUE && is_busy(q)) return QUEUE_REFUSED;
  if (!q->keep_all && how != POLICY_NEWEST) return QUEUE_ENTERS;
  if (queue_too_late(q, u)) return QUEUE_PASSED;
  return u->sure && !q->keep_all ? QUEUE_PUSHES : QUEUE_ENTERS;
}

const char *queue_why_not(queue_word word) {
  switch (word) {
  case QUEUE_ENTERS:
  case QUEUE_PUSHES: break;
  case QUEUE_REFUSED: return "another save runs or waits, and the policy wants no queue";
  case QUEUE_PASSED: return "a newer one is saved or waits already";
  }
  return NULL;
}

const char *queue_why_it_goes(const queue *q) {
  return q->preempted ? "there is no time for it: a newer one is first"
                      : "a newer one was complete before this one's turn";
}

/* ---- whose turn it is ---- */

/* When time is short, the newest is first, and what belongs to its step before it, since a restart may
 * need both. What is older comes too late then. */
static ptrdiff_t newest_of(const queue *q, int64_t now) {
  ptrdiff_t newest = QUEUE_NONE, first;
  for (size_t i = 0; i < q->count; i++) {
    const queue_unit *u = &q->units[i];
    if (u->stage != QUEUE_WAITS || u->next_try > now) continue;
    if (newest < 0 || queue_before(&q->units[newest], u)) newest = (ptrdiff_t)i;
  }
  first = newest;
  for (size_t i = 0; newest >= 0 && q->units[newest].step != MATCH_NO_STEP && i < q->count; i++) {
    const queue_unit *u = &q->units[i];
    if (u->stage == QUEUE_WAITS && u->next_try <= now && u->step == q->units[newest].step &&
        queue_before(u, &q->units[first]))
      first = (ptrdiff_t)i;
  }
  return first;
}

/* An older one that waits for its next try keeps the newer ones waiting, for after them it would be too
 * late; but not those of which nobody said that each is wanted, and not for long. */
static bool is_passed(const queue *q, const queue_unit *u, int64_t now) {
  enum { LONGEST_S = 60 };
  if (u->rests) return true;
  if (u->above) return false;
  if (q->follows) return u->next_try > now;
  return !q->keep_all && u->next_try - now > (int64_t)LONGEST_S * 1000000000;
}

/* A name without a step, which could wait, goes before a newer one whose turn it is: behind that one it
 * would be too late for ever, though it may never be written again. */
static ptrdiff_t first_before(const queue *q, ptrdiff_t at, int64_t now) {
  if (at < 0 || q->units[at].above || q->units[at].next_try > now) return at;
  for (size_t i = 0; i < q->count; i++) {
    const queue_unit *k = &q->units[i];
    if (k->stage == QUEUE_WAITS && k->next_try <= now && k->rests && !k->above &&
        queue_before(k, &q->units[at]))
      at = (ptrdiff_t)i;
  }
  return at;
}

static ptrdiff_t oldest_of(const queue *q, int64_t now) {
  ptrdiff_t oldest = QUEUE_NONE;
  for (size_t i = 0; i < q->count; i++) {
    const queue_unit *u = &q->units[i];
    if (u->stage != QUEUE_WAITS || is_passed(q, u, now)) continue;
    if (oldest < 0 || queue_before(u, &q->units[oldest])) oldest = (ptrdiff_t)i;
  }
  return oldest;
}

/* With time for all of them each has its turn; else the newest is worth most. */
static bool oldest_first(const queue *q) {
  return !q->preempted ||
         ((q->rest == POLICY_REST_FIT || q->rest == POLICY_REST_ALL) && queue_fits(q));
}

ptrdiff_t queue_next(const queue *q, int64_t now) {
  return oldest_first(q) ? first_before(q, oldest_of(q, now), now) : newest_of(q, now);
}
