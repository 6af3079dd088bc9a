/* job_stands: sees by one listing that all of a save stands in the store, before its manifest makes it
 * whole. A put that was acknowledged is no proof: somebody, or a rule of the bucket, may have removed it
 * since. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job_impl.h"

typedef struct roll {
  const manifest *m;
  size_t skip; /* length of the prefix and a slash, in a key */
  bool *here;  /* by the entry's place in the table */
} roll;

/* The user may replace what is outside of the root digest at any time. */
static bool fits(const manifest_entry *entry, uint64_t size) {
  return entry->outside || entry->size == size;
}

static int call(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  roll *r = ctx;
  if (is_prefix || strlen(key) <= r->skip) return 0;
  const manifest_entry *entry = manifest_find(r->m, key + r->skip);
  if (entry && entry->type == MANIFEST_FILE && fits(entry, object->size))
    r->here[entry - r->m->entries] = true;
  return 0;
}

/* A listing may be older than what was put: what it does not tell is asked for. */
static int ask(store *s, const char *prefix, const manifest_entry *entry, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  if (snprintf(key, sizeof key, "%s/%s", prefix, entry->name) >= (int)sizeof key)
    return err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", entry->name);
  int rc = s->ops->head(s, key, &object, &why);
  if (rc == 0 && fits(entry, object.size)) return 0;
  if (rc < 0 && rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
  return err_set(
      e, ERR_IO,
      "%s was sent, and %s: did somebody remove or replace it? Nothing is committed, and "
      "it is sent again",
      key, rc == 0 ? "has another size now" : "is not there any more");
}

int job_check_stands(const job_work *w, const char *prefix, const manifest *m, err *e) {
  store *s = w->env->store;
  roll r = {.m = m, .skip = strlen(prefix) + 1};
  int rc = 0;
  if (w->staged || m->count == 0) return 0; /* a directory is moved as it was flushed */
  if (manifest_is_odd(m))                   /* of other ranks, too */
    rc = store_spell(s, prefix, w->plain_keys ? STORE_SPELT_PLAIN : STORE_SPELT_1, e);
  r.here = calloc(m->count, sizeof *r.here);
  if (rc == 0 && !r.here) rc = err_set(e, ERR_NOMEM, "%s: out of memory", prefix);
  if (rc == 0) rc = s->ops->list(s, prefix, false, call, &r, e);
  for (size_t i = 0; rc == 0 && i < m->count; i++)
    if (m->entries[i].type == MANIFEST_FILE && !r.here[i]) rc = ask(s, prefix, &m->entries[i], e);
  free(r.here);
  return rc;
}
