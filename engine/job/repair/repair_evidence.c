/* repair_evidence: what stands at a log's place beside its entries, and tells what they said. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "commit/lease.h"
#include "commit/manifest_read.h"
#include "commit/pins.h"
#include "commit/ranks.h"
#include "commit/removal.h"
#include "commit/verified.h"
#include "prims/fs.h"
#include "repair_impl.h"

/* ---- listings ---- */

static int list(store *s, const char *prefix, const char *rest, bool delimited, store_keys *out,
                err *e) {
  char key[STORE_KEY_MAX];
  err why = {0};
  *out = (store_keys){0};
  int rc = 0;
  if (*rest)
    rc = runlog_join(prefix, rest, key, e);
  else
    snprintf(key, sizeof key, "%s", prefix);
  if (rc == 0) rc = s->ops->list(s, key, delimited, store_keys_add, out, &why);
  if (rc == ERR_NOENT || rc == ERR_NOSTORE) rc = 0;
  if (rc < 0) err_set(e, rc, "repair: %s", *why.text ? why.text : err_text(rc));
  return rc;
}

static uint64_t number_of(const char *text, char end) {
  char *stop;
  if (*text < '0' || *text > '9') return RUNLOG_NONE;
  uint64_t n = strtoull(text, &stop, 10);
  return *stop == end && stop - text < 16 ? n : RUNLOG_NONE;
}

/* The names in .ckpt/parts, with, staging begin with numbers of the log. */
static int see_numbers(runlog_ruin *r, const char *where, char end, err *e) {
  store_keys keys;
  int rc = list(r->s, r->prefix, where, true, &keys, e);
  for (size_t i = 0; rc == 0 && i < keys.count; i++) {
    uint64_t n = number_of(fs_base(keys.at[i].key), end);
    if (n != RUNLOG_NONE) runlog_ruin_saw(r, n);
  }
  store_keys_free(&keys);
  return rc;
}

static int see_hints(runlog_ruin *r, err *e) {
  uint64_t verified = RUNLOG_NONE;
  lease_seen lease = {0};
  if (verified_read(r->s, r->prefix, &verified, NULL) == 0 && verified != RUNLOG_NONE)
    runlog_ruin_saw(r, verified);
  int rc = lease_look(r->s, r->prefix, RUNLOG_NONE, &lease, e);
  if (rc == 0 && lease.term != RUNLOG_NONE) runlog_ruin_saw(r, lease.term);
  return rc;
}

/* ---- removals that were begun ---- */

static int take_ids(store *s, const char *prefix, const char *where, const char *before, names *out,
                    err *e) {
  store_keys keys;
  size_t skip = strlen(before);
  int rc = list(s, prefix, where, true, &keys, e);
  for (size_t i = 0; rc == 0 && i < keys.count; i++) {
    const char *name = fs_base(keys.at[i].key);
    if (strncmp(name, before, skip) == 0 && !names_add(out, name + skip))
      rc = err_set(e, ERR_NOMEM, "repair: out of memory");
  }
  store_keys_free(&keys);
  return rc;
}

static int find_removals(const runlog_ruin *r, names *out, err *e) {
  int rc = take_ids(r->s, r->prefix, ".ckpt/clearing", "", out, e);
  if (rc == 0) rc = take_ids(r->s, r->prefix, ".ckpt/cleared", "", out, e);
  if (rc == 0) rc = take_ids(r->s, r->prefix, ".ckpt/staging", "gone.", out, e);
  names_sort(out);
  return rc;
}

/* ---- directories ---- */

static int note_size(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? 0 : store_keys_add(ctx, key, is_prefix, object);
}

static bool stands(const store_keys *there, const char *dir, const manifest_entry *entry) {
  size_t len = strlen(dir);
  for (size_t lo = 0, hi = there->count; lo < hi;) {
    size_t mid = lo + (hi - lo) / 2;
    int order = store_key_order(there->at[mid].key + len + 1, entry->name);
    if (order == 0) return there->at[mid].object.size == entry->size;
    if (order < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return false;
}

static int compare(store *s, const char *dir, const manifest *m, err *e) {
  store_keys there = {0};
  err why = {0};
  bool whole = true;
  int rc = s->ops->list(s, dir, false, note_size, &there, &why);
  for (size_t i = 0; rc == 0 && whole && i < m->count; i++)
    whole = m->entries[i].type != MANIFEST_FILE || m->entries[i].outside ||
            stands(&there, dir, &m->entries[i]);
  store_keys_free(&there);
  return rc < 0 ? err_set(e, rc, "%s", *why.text ? why.text : err_text(rc)) : whole;
}

static bool says_nothing(int rc) {
  return rc == ERR_NOENT || rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT ||
         rc == ERR_INVAL;
}

int repair_is_whole(store *s, const char *dir, const runlog_commit *c, err *e) {
  manifest m = {0};
  err why = {0};
  int rc = manifest_read(s, dir, &m, &why);
  if (says_nothing(rc)) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (c->thin.globs.count) rc = manifest_thin(&m, &c->thin.globs, e);
  if (rc == 0) rc = digest_equal(&m.root, &c->root) ? compare(s, dir, &m, e) : 0;
  manifest_free(&m);
  return rc;
}

/* A directory's name follows from its unit's; behind ".~" it has the attempt's number. */
static bool follows(const char *dir, const char *unit, uint64_t *number) {
  const char *mark = strrchr(dir, '~');
  *number = RUNLOG_NONE;
  if (strcmp(dir, unit) == 0) return true;
  if (!mark || mark == dir || mark[-1] != '.') return false;
  *number = number_of(mark + 1, 0);
  return *number != RUNLOG_NONE;
}

static char *copy(const char *text) {
  return text ? strdup(text) : NULL;
}

static int fill(const manifest *m, const char *dir, uint64_t number, runlog_trace *t, err *e) {
  *t = (runlog_trace){.dir = strdup(dir),
                      .unit = strdup(m->unit),
                      .number = number,
                      .pinned = RUNLOG_NONE,
                      .world = 1,
                      .plain_keys = m->plain_keys,
                      .created_ns = m->created_ns,
                      .facts = {.kind = m->kind,
                                .step = m->step,
                                .files = manifest_files(m),
                                .bytes = manifest_bytes(m),
                                .left_out = m->left_out,
                                .left_here = m->left_here,
                                .above = m->above,
                                .root = m->root,
                                .manifest = m->text,
                                .policy = copy(m->policy),
                                .reason = strdup("found whole by a repair")}};
  if (m->metrics && strlen(m->metrics) <= RUNLOG_METRICS_MAX) t->facts.metrics = strdup(m->metrics);
  if (m->attempt && strlen(m->attempt) < sizeof t->id)
    memcpy(t->id, m->attempt, strlen(m->attempt) + 1);
  return t->dir && t->unit && t->facts.reason ? 0 : err_set(e, ERR_NOMEM, "repair: out of memory");
}

/* Who removes files puts the note, and then asks for a repair: so where there is one they are gone, or about
 * to go, whatever stands there now. */
static int take_note(const runlog_ruin *r, const char *key, manifest *m, runlog_thinned *out,
                     err *e) {
  manifest_thin_note note;
  int rc = manifest_read_note(r->s, key, m, &note, e);
  if (rc <= 0) return rc;
  rc = manifest_thin(m, &note.globs, e);
  *out = (runlog_thinned){.globs = note.globs, .newest = note.newest};
  return rc;
}

static int take_dir(const runlog_ruin *r, const char *key, const names *removed,
                    runlog_evidence *out, err *e) {
  manifest m = {0};
  uint64_t number;
  err why = {0};
  int rc = manifest_read(r->s, key, &m, &why);
  if (says_nothing(rc)) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (!follows(fs_base(key), m.unit, &number)) {
    manifest_free(&m);
    return 0;
  }
  runlog_thinned thin = {0};
  rc = take_note(r, key, &m, &thin, e);
  if (rc == 0)
    rc = VEC_ROOM(out->traces, out->count, out->room)
             ? fill(&m, fs_base(key), number, &out->traces[out->count], e)
             : err_set(e, ERR_NOMEM, "repair: out of memory");
  runlog_trace *t = &out->traces[out->count];
  if (rc == 0) {
    t->facts.thin = thin;
    out->count++;
  } else {
    names_free(&thin.globs);
  }
  if (rc == 0) t->gone = *t->id && names_has(removed, t->id);
  if (rc == 0) rc = compare(r->s, key, &m, e);
  if (rc >= 0) t->whole = rc == 1;
  manifest_free(&m);
  return rc < 0 ? rc : 0;
}

static int take_dirs(runlog_ruin *r, const names *removed, runlog_evidence *out, err *e) {
  store_keys dirs;
  int rc = list(r->s, r->prefix, "", true, &dirs, e);
  for (size_t i = 0; rc == 0 && i < dirs.count; i++)
    if (dirs.at[i].is_prefix && strcmp(fs_base(dirs.at[i].key), ".ckpt") != 0)
      rc = take_dir(r, dirs.at[i].key, removed, out, e);
  store_keys_free(&dirs);
  return rc;
}

/* ---- what tells an attempt's number ---- */

/* The manifest of what was saved beside it names the attempt, and stands under its number. */
static int take_companion(runlog_ruin *r, const char *key, runlog_evidence *v, err *e) {
  manifest m = {0};
  err why = {0};
  const char *base = strstr(key, ".ckpt/with/");
  uint64_t n = base ? number_of(base + strlen(".ckpt/with/"), '/') : RUNLOG_NONE;
  if (n == RUNLOG_NONE || strcmp(fs_base(key), MANIFEST_NAME) != 0) return 0;
  int rc = manifest_read_at(r->s, key, &m, &why);
  if (says_nothing(rc)) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  for (size_t i = 0; m.attempt && i < v->count; i++)
    if (strcmp(v->traces[i].id, m.attempt) == 0) v->traces[i].number = n;
  manifest_free(&m);
  return 0;
}

/* In a bucket a part record has the attempt's mark. */
static int take_part(runlog_ruin *r, const char *key, runlog_evidence *v, err *e) {
  store_object object;
  err why = {0};
  const char *base = strstr(key, ".ckpt/parts/");
  uint64_t n = base ? number_of(base + strlen(".ckpt/parts/"), '/') : RUNLOG_NONE;
  uint64_t rank = number_of(fs_base(key), 0);
  if (n == RUNLOG_NONE || rank == RUNLOG_NONE || rank >= RANKS_MAX) return 0;
  int rc = r->s->ops->head(r->s, key, &object, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  for (size_t i = 0; i < v->count; i++) {
    runlog_trace *t = &v->traces[i];
    if (*object.mark && strcmp(t->id, object.mark) == 0) t->number = n;
    if (t->number == n && rank + 1 > t->world) t->world = (uint32_t)rank + 1;
  }
  return 0;
}

static int take_beside(runlog_ruin *r, runlog_evidence *v, err *e) {
  store_keys keys;
  int rc = list(r->s, r->prefix, ".ckpt/with", false, &keys, e);
  for (size_t i = 0; rc == 0 && i < keys.count; i++) rc = take_companion(r, keys.at[i].key, v, e);
  store_keys_free(&keys);
  if (rc == 0) rc = list(r->s, r->prefix, ".ckpt/parts", false, &keys, e);
  for (size_t i = 0; rc == 0 && i < keys.count; i++) rc = take_part(r, keys.at[i].key, v, e);
  store_keys_free(&keys);
  return rc;
}

static int take_pins(runlog_ruin *r, runlog_evidence *v, err *e) {
  pins held;
  int rc = pins_list(r->s, r->prefix, &held, e);
  for (size_t i = 0; rc == 0 && i < held.count; i++) {
    runlog_ruin_saw(r, held.at[i].commit);
    for (size_t k = 0; k < v->count; k++)
      if (strcmp(v->traces[k].dir, held.at[i].dir) == 0) v->traces[k].pinned = held.at[i].commit;
  }
  pins_free(&held);
  return rc;
}

int repair_gather(runlog_ruin *r, runlog_evidence *out, err *e) {
  names *removed = &out->removed;
  int rc = see_numbers(r, ".ckpt/parts", 0, e);
  if (rc == 0) rc = see_numbers(r, ".ckpt/with", 0, e);
  if (rc == 0) rc = see_numbers(r, ".ckpt/staging", '.', e);
  if (rc == 0) rc = see_numbers(r, ".ckpt/staging", 0, e);
  if (rc == 0) rc = see_hints(r, e);
  if (rc == 0) rc = find_removals(r, removed, e);
  if (rc == 0) rc = take_dirs(r, removed, out, e);
  if (rc == 0) rc = take_beside(r, out, e);
  if (rc == 0) rc = take_pins(r, out, e);
  for (size_t i = 0; rc == 0 && i < out->count; i++)
    if (out->traces[i].number != RUNLOG_NONE) runlog_ruin_saw(r, out->traces[i].number);
  return rc;
}

void repair_forget(runlog_evidence *v) {
  for (size_t i = 0; i < v->count; i++) runlog_trace_free(&v->traces[i]);
  free(v->traces);
  names_free(&v->removed);
  *v = (runlog_evidence){0};
}
