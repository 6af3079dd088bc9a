/* Entries of the log that are lost or torn, and what a repair promises to who was told of a commit.
 *
 * What is lost shows: an entry stands behind it, the head names a commit behind it, or it is torn.
 * The first entry of an epoch is never lost. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/lease.h"
#include "prims/hash.h"
#include "sim.h"

enum { RECORDS_MAX = 4096 };

/* Each commit that was ever made, in whichever epoch. */
typedef struct record {
  long long n, attempt;
  char dir[96], unit[64];
  unsigned version;
  bool lost;         /* its entry, or that of its attempt */
  bool told, let_go; /* let_go: dropped or bad since, so that nothing is promised */
} record;

bool sim_repairs;
static record records[RECORDS_MAX];
static size_t record_count;
static bool any, since;
static uint64_t lost_at, mended_at; /* steps */
static int64_t lost_ns;             /* the time of the former */
static uint64_t unclear_at;         /* step in which something came that contradicts, or may */

void lost_clear(void) {
  record_count = 0;
  any = since = false;
  lost_at = mended_at = unclear_at = 0;
}

bool lost_any(void) {
  return any;
}

bool lost_since(void) {
  return since;
}

bool lost_place(const char *key, long long *epoch, long long *place) {
  int len = 0;
  *epoch = 0;
  if (sscanf(key, ".ckpt/log/%20lld.json%n", place, &len) == 1 && len && !key[len]) return true;
  return sscanf(key, ".ckpt/log.%lld/%20lld.json%n", epoch, place, &len) == 2 && len && !key[len];
}

/* ---- what was promised ---- */

void lost_commit_again(long long n, const judge_attempt *a, const judge_commit *c) {
  if (record_count == RECORDS_MAX) sim_violation("%d commits", RECORDS_MAX);
  record *r = &records[record_count++];
  *r = (record){
      .n = n, .attempt = a->n, .version = c ? c->version : 0, .let_go = !c || c->dropped || c->bad};
  snprintf(r->dir, sizeof r->dir, "%s", a->dir);
  snprintf(r->unit, sizeof r->unit, "%s", a->unit);
}

void lost_commit(const judge_commit *c) {
  lost_commit_again(c->n, c->of, c);
}

static void let_go(const char *dir) {
  for (size_t i = 0; i < record_count; i++)
    if (strcmp(records[i].dir, dir) == 0) records[i].let_go = true;
}

void lost_drop(const judge_commit *c) {
  let_go(c->of->dir);
}

void lost_bad(const judge_commit *c) {
  let_go(c->of->dir);
}

/* Somebody who had not read a lost entry has put another one in its place: no number may be left for
 * what was lost. */
void lost_refilled(void) {
  for (size_t i = 0; i < record_count; i++) records[i].let_go |= records[i].lost;
}

/* It is named, or it is an attempt which the repair is about to commit. */
static void check_record(const record *r, const char *where, bool committed) {
  const judge_commit *c = judge_commit_in(r->dir);
  const judge_attempt *a = judge_attempt_in(r->dir);
  if (!r->told || r->let_go) return;
  if (c && !c->dropped && !c->bad) return;
  if (!committed && !c && a && !a->forgotten && a->fate == FATE_OPEN) return;
  sim_violation("commit %lld, %s, is promised, and %s it is %s", r->n, r->dir, where,
                !c           ? "no commit"
                : c->dropped ? "dropped"
                             : "bad");
}

bool lost_told(const actor *by, long long n, const char *unit, unsigned version) {
  for (size_t i = record_count; i-- > 0;) {
    record *r = &records[i];
    if (r->n != n || (r->version && r->version != version) || strcmp(r->unit, unit) != 0) continue;
    r->told = true;
    sim_count->promised += any;
    if (judge_is_clear()) check_record(r, "when it was told", false);
    return true;
  }
  if (any)
    sim_violation("%s was told of commit %lld of %s, version %u, which nobody made", by->name, n,
                  unit, version);
  return false;
}

bool lost_is_promised(uint64_t n) {
  for (size_t i = 0; i < record_count; i++)
    if (records[i].n == (long long)n && records[i].told && !records[i].let_go) return true;
  return false;
}

void lost_promised(const char *where) {
  for (size_t i = 0; i < record_count; i++) check_record(&records[i], where, false);
}

void lost_promised_at_the_end(void) {
  for (size_t i = 0; judge_is_clear() && i < record_count; i++)
    check_record(&records[i], "at the end", true);
}

/* ---- epochs ---- */

void lost_key(long long epoch, long long place, char *out, size_t room) {
  if (epoch == 0)
    snprintf(out, room, ".ckpt/log/%020lld.json", place);
  else
    snprintf(out, room, ".ckpt/log.%lld/%020lld.json", epoch, place);
}

static const object *entry_of(long long epoch, long long place) {
  char key[80];
  lost_key(epoch, place, key, sizeof key);
  return space_find(key);
}

static bool has_type(const object *o, const char *type) {
  json_t *entry = o ? json_loadb(o->data, o->len, 0, NULL) : NULL;
  const char *said = json_string_value(json_object_get(entry, "type"));
  bool same = said && strcmp(said, type) == 0;
  json_decref(entry);
  return same;
}

bool lost_stands(long long epoch, long long place, const char *type) {
  return has_type(entry_of(epoch, place), type);
}

/* A writer that renews its lease is alive, and only who says otherwise may begin. */
static void check_lease(const actor *by) {
  const object *lease = space_find(".ckpt/lease");
  json_t *top = lease ? json_loadb(lease->data, lease->len, 0, NULL) : NULL;
  bool over = json_is_true(json_object_get(top, "released"));
  json_decref(top);
  if (lease && !over && lease->made < by->looked && sim_now - lease->made < LEASE_LIFE_S * SECOND)
    sim_violation("%s takes an epoch, and the lease was renewed %lld s ago", by->name,
                  (long long)((sim_now - lease->made) / SECOND));
}

void lost_epoch_taken(const actor *by) {
  if (by->humble) check_lease(by);
  since = false;
  any = true;
  lost_at = sim_steps;
}

void lost_mended(void) {
  mended_at = sim_steps;
}

bool lost_shows(const actor *a) {
  if (!any) return false;
  return since || lost_at >= mended_at || (a && a->born <= mended_at);
}

/* Highest number that stands in the log of an epoch. */
static long long last_of(long long epoch, long long first) {
  char behind[80];
  long long of, last;
  if (epoch == 0)
    snprintf(behind, sizeof behind, ".ckpt/log/~");
  else
    snprintf(behind, sizeof behind, ".ckpt/log.%lld/~", epoch);
  size_t at = space_from(behind);
  if (at == 0 || !lost_place(space_at(at - 1)->key, &of, &last) || of != epoch) return first;
  return last > first ? last : first;
}

static long long number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_integer(value) ? json_integer_value(value) : -1;
}

static const object *epoch_object(long long epoch) {
  char key[64];
  snprintf(key, sizeof key, ".ckpt/epoch/%lld", epoch);
  return space_find(key);
}

/* Was anything lost after that epoch was taken? Another one may have been taken since. */
static bool is_lost_since(long long epoch) {
  const object *o = epoch_object(epoch);
  return o && any && lost_ns >= o->made;
}

/* Nobody finds a free place in what was before. */
void lost_check_closed(long long epoch, long long first, long long next) {
  long long last = last_of(epoch, first), lost = -1;
  for (long long n = epoch ? first + 1 : 0; n <= last; n++)
    if (!entry_of(epoch, n)) lost = n;
  if (is_lost_since(next)) return; /* what was lost meanwhile nobody has read */
  if (lost >= 0) sim_violation("epoch %lld begins, and place %lld before it is free", next, lost);
  bool closed = false;
  for (long long n = epoch ? first + 1 : 0; n <= last; n++) {
    if (!lost_stands(epoch, n, "moved")) continue;
    closed = true;
    json_t *plug = json_loads(entry_of(epoch, n)->data, 0, NULL);
    if (number(plug, "reader") < 2)
      sim_violation("place %lld is closed for epoch %lld, and older programs would read on", n,
                    next);
    json_decref(plug);
  }
  if (!closed) sim_violation("epoch %lld begins, and the end before it is free", next);
}

void lost_check_first(const json_t *entry, long long g, long long before, long long first) {
  char hex[HASH_HEX_MAX];
  digest sum;
  const char *type = json_string_value(json_object_get(entry, "type"));
  const char *prev = json_string_value(json_object_get(entry, "prev"));
  const json_t *older = json_object_get(entry, "older");
  const object *o = epoch_object(g);
  if (!o) sim_violation("epoch %lld begins, and nobody took it", g);
  if (!type || strcmp(type, "snapshot") != 0) sim_violation("epoch %lld begins with %s", g, type);
  hash_bytes(HASH_XXH3_128, o->data, o->len, &sum, NULL);
  digest_hex(&sum, hex);
  if (!prev || strcmp(prev, hex) != 0) sim_violation("epoch %lld: prev is not of its object", g);
  if (number(entry, "epoch") != g) sim_violation("epoch %lld: its first entry has another", g);
  const json_t *era = json_array_get(older, 0);
  for (size_t i = 0; i < json_array_size(older); i++)
    if (number(json_array_get(older, i), "epoch") == before) era = json_array_get(older, i);
  if (number(era, "epoch") != before || number(era, "first") != first)
    sim_violation("epoch %lld does not name the one before it", g);
  if (number(entry, "through") != number(entry, "n") - 1)
    sim_violation("epoch %lld: a snapshot of another place", g);
  if (number(entry, "n") <= last_of(before, first))
    sim_violation("epoch %lld begins with number %lld, and there is %lld", g, number(entry, "n"),
                  last_of(before, first));
}

/* ---- what everybody sees who comes behind a loss ---- */

void lost_unclear(void) {
  unclear_at = sim_steps;
}

static void digest_of(const object *o, char hex[HASH_HEX_MAX]) {
  digest sum;
  hash_bytes(HASH_XXH3_128, o->data, o->len, &sum, NULL);
  digest_hex(&sum, hex);
}

/* Does it name the text of the entry before it? A torn one names nothing, and one behind a snapshot may
 * have read that before it was torn: a torn snapshot is passed over. */
static bool names_before(const object *o, const object *before) {
  char hex[HASH_HEX_MAX];
  json_t *entry = json_loadb(o->data, o->len, 0, NULL);
  const char *prev = json_string_value(json_object_get(entry, "prev"));
  digest_of(before, hex);
  bool same = !entry || json_is_true(json_object_get(entry, "behind_snapshot")) ||
              (prev && strcmp(prev, hex) == 0);
  json_decref(entry);
  return same;
}

static bool is_commit_of_head(const object *o, const json_t *commit) {
  char hex[HASH_HEX_MAX];
  const char *said = json_string_value(json_object_get(commit, "digest"));
  digest_of(o, hex);
  return said && strcmp(said, hex) == 0;
}

/* A snapshot that is lost is passed over, where the entry behind it tells that it was one. */
static bool was_snapshot(long long epoch, long long n) {
  const object *behind = entry_of(epoch, n + 1);
  json_t *entry = behind ? json_loadb(behind->data, behind->len, 0, NULL) : NULL;
  bool was = json_is_true(json_object_get(entry, "behind_snapshot"));
  json_decref(entry);
  return was;
}

/* Snapshots are read without what is before them, and where one is torn it is passed over. */
static long long last_snapshot(long long epoch, long long first, long long n) {
  while (n > first && !has_type(entry_of(epoch, n), "snapshot")) n--;
  return n;
}

/* Is anything before entry `n` missing, or not what the one behind it or the head has read? */
static const char *contradicted(const actor *by, long long epoch, long long first, long long n) {
  const object *head = by->saw_head ? space_find(".ckpt/head") : NULL;
  json_t *top = head ? json_loadb(head->data, head->len, 0, NULL) : NULL;
  const json_t *commit = json_object_get(top, "commit");
  long long named = number(commit, "n");
  const char *why = NULL;
  if (named >= n) why = "the head names a commit behind it";
  for (long long i = last_snapshot(epoch, first, n - 1) + 1; !why && i < n; i++) {
    const object *o = entry_of(epoch, i), *before = entry_of(epoch, i - 1);
    if (!o && !was_snapshot(epoch, i))
      why = "an entry before it is missing";
    else if (!o)
      continue;
    else if (i == named && !is_commit_of_head(o, commit))
      why = "the head names another commit";
    else if (i > first + 1 && before && !names_before(o, before))
      why = "an entry before it had read another one";
  }
  json_decref(top);
  return why;
}

/* Who opened the log when it was as it is has seen it, and appends nothing. */
void lost_check_ground(const actor *by, long long epoch, long long first, long long n) {
  if (!any || by->born <= lost_at || by->born <= unclear_at || n <= first + 1) return;
  const char *why = contradicted(by, epoch, first, n);
  if (why) sim_violation("%s puts entry %lld, and %s", by->name, n, why);
}

/* ---- the disaster ---- */

static long long named_by_head(void) {
  const object *head = space_find(".ckpt/head");
  json_t *top = head ? json_loadb(head->data, head->len, 0, NULL) : NULL;
  long long n = number(json_object_get(top, "commit"), "n");
  json_decref(top);
  return n;
}

static void lose(long long epoch, long long n, bool tear) {
  const object *o = entry_of(epoch, n);
  if (!o) return;
  char key[128];
  snprintf(key, sizeof key, "%s", o->key);
  sim_trace("%s is %s", key, tear ? "torn" : "lost");
  if (tear) {
    char half[64];
    snprintf(half, sizeof half, "%.*s", (int)(o->len < 60 ? o->len / 2 : 50), o->data);
    space_put(key, half, strlen(half), "");
    sim_count->torn++;
  } else {
    space_remove(key);
    sim_count->lost++;
  }
  for (size_t i = 0; i < record_count; i++)
    records[i].lost |= records[i].n == n || records[i].attempt == n;
  any = since = true;
  lost_at = sim_steps;
  lost_ns = sim_now;
}

/* The entry by which the log has let it go; -1: none. */
static long long let_go_by(const judge_attempt *a, long long epoch, long long first,
                           long long last) {
  const judge_commit *c = judge_commit_in(a->dir);
  for (long long n = first + 1; n <= last; n++) {
    const object *o = entry_of(epoch, n);
    json_t *entry = o ? json_loadb(o->data, o->len, 0, NULL) : NULL;
    const char *type = json_string_value(json_object_get(entry, "type"));
    bool drops = type && c && strcmp(type, "drop") == 0 && number(entry, "commit") == c->n;
    bool sweeps = type && strcmp(type, "sweep") == 0 && number(entry, "attempt") == a->n;
    json_decref(entry);
    if (drops || sweeps) return n;
  }
  return -1;
}

/* Somebody is at the removal of what the log has let go. What says so is lost just now, and a repair
 * comes to its end before he goes on. */
void lost_under_removal(actor *by, const char *nonce) {
  const judge_attempt *a = sim_repairs && !any ? judge_attempt_named(nonce) : NULL;
  if (by->calm || by->dead || !a || !sim_chance(150)) return;
  long long first, epoch = judge_epoch(&first), last = last_of(epoch, first);
  long long from = let_go_by(a, epoch, first, last);
  if (from < 0) return;
  sim_count->removals++;
  for (long long n = from; n <= last; n++) lose(epoch, n, n == last);
  judge_lost_tail();
  actor_start("repair", repair_main, -1, 1);
  by->wake = sim_now + 3000 * SECOND;
  actor_yield();
}

/* What a sleeping reader has pinned is deleted, and an entry that he has not read is lost: for him the log
 * ends there, before the one that let it go. */
void lost_let_go(const actor *reader) {
  const judge_commit *c = judge_commit_at((long long)reader->reads);
  long long first, epoch = judge_epoch(&first), from = reader->read_to + 1;
  long long n = c ? let_go_by(c->of, epoch, first, last_of(epoch, first)) : -1;
  if (!sim_repairs || since || reader->read_epoch != epoch || from > n) return;
  if (sim_chance(700)) lose(epoch, from, false);
}

/* Its removal was begun, and its entry is lost: another object will stand in its place. */
void lost_removed(const judge_commit *c) {
  long long first, epoch = judge_epoch(&first);
  if (sim_repairs && c->n > first && sim_chance(500)) lose(epoch, c->n, false);
}

/* He comes too late for a place in the log, and others have gone on from it: what stands there is lost
 * just now, and now and then the one behind it, so that he does not see it. */
void lost_before_put(const actor *by, const char *key) {
  long long first, epoch = judge_epoch(&first), of, n;
  if (!sim_repairs || by->calm || by->dead || !lost_place(key, &of, &n) || of != epoch) return;
  if (n <= first || n >= last_of(epoch, first) || !entry_of(epoch, n)) return;
  if (!sim_chance(any ? 100 : 400)) return;
  if (n + 1 < last_of(epoch, first) && sim_chance(200)) lose(epoch, n + 1, false);
  lose(epoch, n, false);
}

void lost_disaster(void) {
  long long first, epoch = judge_epoch(&first), from = first + 1, last = last_of(epoch, first);
  long long named = named_by_head();
  if (last < from + 4) return;
  sim_count->disasters++;
  if (named > from + 1 && sim_chance(400)) {
    from = named - (long long)sim_roll(3);
    if (from <= first) from = first + 1;
    for (long long n = from; n <= last; n++) lose(epoch, n, n == last && sim_chance(200));
    judge_lost_tail();
  } else if (sim_chance(150)) {
    lose(epoch, last, true);
  } else {
    int count = sim_chance(500) ? 1 : 2 + (int)sim_roll(4);
    while (count-- > 0)
      lose(epoch, from + (long long)sim_roll((uint64_t)(last - from)), sim_chance(300));
  }
}
