/* judge_ranks: whether what a rank says of its save is true, and whether it waited for what could come. */
#include "judge_impl.h"
#include "ranks.h"

static const int64_t LOOKS =
    30 * SECOND; /* rank 0: the pauses between two looks at who has ended */
static const int64_t NEWS = 130 * SECOND;  /* another one: between two at rank 0's lease and word */
static const int64_t SLACK = 90 * SECOND;  /* requests, and the last pause */
static const int64_t SILENT = 30 * SECOND; /* of each rank before the next leads */
static const int64_t LAST_WORD = 5 * SECOND; /* it comes by then behind the end of the lease */

/* ---- what is in the store ---- */

/* The last word of a rank; NULL: it has said none. */
static const object *word_of(const writer *w, unsigned rank) {
  char hex[HASH_HEX_MAX], key[128], end[32] = "";
  digest d;
  hash_bytes(HASH_XXH3_128, w->plan->id, strlen(w->plan->id), &d, NULL);
  digest_hex(&d, hex);
  if (rank > 0) snprintf(end, sizeof end, ".over/%u", rank);
  snprintf(key, sizeof key, ".ckpt/ranks/%s%s", hex, end);
  const object *o = space_find(key);
  return o && strstr(o->data, "\"over\"") ? o : NULL;
}

static const object *part_of(const judge_attempt *a, long long term, unsigned rank) {
  char key[128];
  snprintf(key, sizeof key, ".ckpt/parts/%lld/%lld/%u", a->n, term, rank);
  return space_find(key);
}

/* When the last of all parts was put; INT64_MAX: one is missing. */
static int64_t all_since(const judge_attempt *a, long long term) {
  int64_t since = 0;
  for (unsigned r = 0; r < a->world; r++) {
    const object *o = part_of(a, term, r);
    if (!o) return INT64_MAX;
    if (o->made > since) since = o->made;
  }
  return since;
}

/* Since when the lease says that the writer of that term has ended; INT64_MAX: it does not. */
static int64_t released_since(long long term) {
  const object *o = space_find(".ckpt/lease");
  json_t *lease = o ? json_loadb(o->data, o->len, 0, NULL) : NULL;
  bool over =
      json_is_true(json_object_get(lease, "released")) && judge_number(lease, "term") == term;
  json_decref(lease);
  return over ? o->made : INT64_MAX;
}

/* The term of its launch; a log that it reads on in may show a newer one by now. */
static long long term_of(const writer *w) {
  return (long long)(w->group.term ? w->group.term : runlog_view(w->group.log)->term.n);
}

/* The newest attempt at that unit in the term of its launch; NULL: none, or another launch has it now. */
static const judge_attempt *attempt_at(const writer *w, const char *unit) {
  const long long term = term_of(w);
  for (size_t i = known.attempt_count; i-- > 0;)
    if (strcmp(known.attempts[i].unit, unit) == 0 && known.attempts[i].owner == term)
      return &known.attempts[i];
  return NULL;
}

/* ---- rank 0 ---- */

/* It gave a save up since a rank had ended: that rank had said so, and had put nothing before. */
static void check_forsaken(const writer *w, const job *j, const judge_attempt *a, int64_t begun) {
  const char *said = strstr(j->error.text, "rank ");
  unsigned rank = said ? (unsigned)strtoul(said + 5, NULL, 10) : 0;
  sim_count->forsaken++;
  if (rank == 0 || rank >= w->plan->world)
    sim_violation("it gives %s up for rank %u", j->plan.unit, rank);
  if (w->a->heard[rank] < begun)
    sim_violation("it gives %s up for rank %u, which has not said that it has ended", j->plan.unit,
                  rank);
  const object *part = a ? part_of(a, a->owner, rank) : NULL;
  if (part && part->made < w->a->heard[rank])
    sim_violation("it gives %s up for the part of rank %u, which is there", j->plan.unit, rank);
}

static void check_waited_for_ranks(const writer *w, const job *j, const judge_attempt *a,
                                   int64_t paused) {
  for (unsigned r = 1; a && r < w->plan->world; r++) {
    const object *word = word_of(w, r);
    if (word && !part_of(a, a->owner, r) && word->made < sim_now - paused - LOOKS)
      sim_violation("it waited for the part of rank %u of %s, which has said that it has ended", r,
                    j->plan.unit);
  }
}

/* ---- the others ---- */

/* Rank 0 has this one, or a newer one, and did not want it. */
static bool was_refused(const writer *w, int64_t step) {
  for (unsigned i = 0; i < w->plan->saves; i++)
    if (ranks_plans[w->a->launch].refused >> i & 1 && w->plan->save[i].unit.step >= step)
      return true;
  return false;
}

static void check_left_alone(const writer *w, const job *j, int64_t begun) {
  const ranks_plan *truth = &ranks_plans[w->a->launch];
  const long long term = term_of(w);
  bool refused = was_refused(w, j->plan.step), heard = w->a->heard[0] >= begun;
  if (!truth->first_ended && released_since(term) == INT64_MAX && term == known.newest_term &&
      !word_of(w, 0))
    sim_violation("it says that rank 0 has ended, and rank 0 has not");
  if (j->outcome == JOB_LET_GO && !refused)
    sim_violation("it says that rank 0 did not want %s, and rank 0 did", j->plan.unit);
  if (j->outcome == JOB_FORSAKEN && refused && heard && word_of(w, 0))
    sim_violation("rank 0 has told that it did not want %s, and is missed", j->plan.unit);
  int64_t released = released_since(term);
  if (j->outcome == JOB_FORSAKEN && !heard && released < INT64_MAX &&
      sim_now - released < LAST_WORD)
    sim_violation("rank 0's last word about %s is not waited for", j->plan.unit);
}

static void check_waited_for_first(const writer *w, const job *j, int64_t begun, int64_t paused) {
  const object *word = word_of(w, 0);
  int64_t since = released_since(term_of(w));
  if (!word || since == INT64_MAX) return;
  if (word->made > since) since = word->made;
  if (begun > since) since = begun;
  if (since < sim_now - paused - NEWS)
    sim_violation("it waited for rank 0 with %s, which has said that it has ended", j->plan.unit);
}

static void check_waited_for_commit(const writer *w, const job *j, const judge_attempt *a,
                                    int64_t begun, int64_t paused) {
  int64_t since = a && a->fate == FATE_OPEN ? all_since(a, a->owner) : INT64_MAX;
  if (begun > since) since = begun;
  if (since < INT64_MAX && since < sim_now - paused - w->a->rank * SILENT - NEWS)
    sim_violation("all parts of %s are there, and it did not commit it", j->plan.unit);
}

/* ---- each ---- */

static void check_time(const writer *w, const job *j, int64_t begun, int64_t paused) {
  const int64_t wait = w->ranks.wait_ns;
  int64_t most = w->a->rank == 0 ? wait : wait + wait + wait / 2, took = sim_now - begun - paused;
  if (took > most + SLACK)
    sim_violation("it took %lld s over %s", (long long)(took / SECOND), j->plan.unit);
}

void judge_rank_saved(writer *w, const job *j, int64_t begun, int64_t paused_before) {
  const judge_attempt *a = attempt_at(w, j->plan.unit);
  const int64_t paused = w->a->paused - paused_before;
  const bool first = w->a->rank == 0;
  if (w->plan->world < 2) return;
  check_time(w, j, begun, paused);
  if (j->outcome == JOB_FORSAKEN && first) check_forsaken(w, j, a, begun);
  if (j->outcome == JOB_WAITED) sim_count->waited++;
  if (j->outcome == JOB_WAITED && first) check_waited_for_ranks(w, j, a, paused);
  if (j->outcome == JOB_WAITED && strstr(j->error.text, "not announced"))
    check_waited_for_first(w, j, begun, paused);
  if (j->outcome == JOB_WAITED && strstr(j->error.text, "not committed"))
    check_waited_for_commit(w, j, a, begun, paused);
  if (!first && (j->outcome == JOB_LET_GO || j->outcome == JOB_FORSAKEN) &&
      strstr(j->error.text, "has ended"))
    check_left_alone(w, j, begun);
  sim_count->let_go += j->outcome == JOB_LET_GO;
  sim_count->passed_over += j->outcome == JOB_PASSED_OVER;
}

void judge_world(const actor *by, unsigned world, long long n) {
  if (by->used && by->launch >= 0 && world != launches[by->launch].world)
    sim_violation("entry %lld is for %u ranks, and its launch has %u", n, world,
                  launches[by->launch].world);
}

/* ---- what a commit says of the ranks ---- */

void judge_owners(const judge_attempt *a, const json_t *table) {
  const json_t *entry;
  size_t i;
  json_array_foreach(table, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *shard = name ? strstr(name, "shard-") : NULL;
    long long owner = shard ? strtoll(shard + 6, NULL, 10) : -1;
    if (judge_number(entry, "rank") != owner)
      sim_violation("%s: of %s it says that rank %lld alone had it", a->dir, name,
                    judge_number(entry, "rank"));
  }
}

static json_t *head_of(const judge_attempt *a, long long term, unsigned rank) {
  const object *o = part_of(a, term, rank);
  return o ? json_loadb(o->data, strcspn(o->data, "\n"), 0, NULL) : NULL;
}

/* Each is its rank's, and all are of one launch. */
void judge_part(const judge_attempt *a, long long term, unsigned rank) {
  char launch[40], first[40];
  json_t *head = head_of(a, term, rank), *of_first = head_of(a, term, 0);
  judge_text(head, "launch", launch, sizeof launch);
  judge_text(of_first, "launch", first, sizeof first);
  if (judge_number(head, "rank") != rank || judge_number(head, "attempt") != a->n ||
      judge_number(head, "term") != term || strcmp(launch, first) != 0)
    sim_violation("the part of rank %u of %s is of rank %lld of launch %s, and rank 0's of %s",
                  rank, a->dir, judge_number(head, "rank"), launch, first);
  json_decref(head);
  json_decref(of_first);
}

void judge_rank_restored(const actor *a, uint64_t n, bool own) {
  const judge_commit *c = judge_commit_at((long long)n);
  if (!c)
    sim_violation("%s brings back commit %llu, which is not there", a->name, (unsigned long long)n);
  const unsigned world = c->of->world, us = launches[a->launch].world;
  bool parted = own && world > 1 && world == us;
  unsigned all = world > 1 ? (1u << world) - 1 : 0;
  unsigned wanted = READ_SHARED | (parted ? 1u << a->rank : all);
  if (a->has_read != wanted)
    sim_violation("%s brings back %s of %u ranks as one of %u, and reads %x of it, not %x", a->name,
                  c->of->dir, world, us, a->has_read, wanted);
  sim_count->parts_read += parted;
  sim_count->wholes_read += !parted;
}
