/* collect_key: removes by hand objects that `gc` names as left, under the name of a save or a
 * checkpoint that is over. */
#include <stdio.h>
#include <string.h>

#include "collect_impl.h"
#include "commit/removal.h"
#include "commit/settle.h"

/* Returns the key within the log's own place; NULL: it lies elsewhere. */
static const char *within(const runlog *log, const char *key) {
  size_t len = strlen(runlog_prefix(log));
  if (len == 0) return key;
  return strncmp(key, runlog_prefix(log), len) == 0 && key[len] == '/' ? key + len + 1 : NULL;
}

/* Finds the attempt in whose directory, or in the rest of whose removal, a key lies. */
static const runlog_attempt *attempt_of(const collecting *g, const char *rest) {
  const runlog_state *state = runlog_view(g->c->log);
  size_t gone = strlen(REMOVAL_GONE), len = strcspn(rest, "/");
  bool begun = strncmp(rest, REMOVAL_GONE, gone) == 0;
  if (begun) len = gone + strcspn(rest + gone, "/");
  for (size_t i = 0; i < state->attempt_count; i++) {
    const runlog_attempt *a = &state->attempts[i];
    char id[RUNLOG_NONCE_MAX];
    const char *name = a->dir;
    if (begun && runlog_attempt_id(g->c->log, a->n, id, NULL) < 0) continue;
    if (begun) name = id;
    const char *from = begun ? rest + gone : rest;
    size_t own = begun ? len - gone : len;
    if (strlen(name) == own && strncmp(from, name, own) == 0) return a;
  }
  return NULL;
}

/* Refuses a key where objects may still be somebody's whom we know. */
static int check_key(const collecting *g, const runlog_attempt *a, const char *key, err *e) {
  char dir[STORE_KEY_MAX];
  if (!collect_is_gone(g, a))
    return err_set(e, ERR_HELD, "%s stays: it is of %s, which is kept, pinned or being saved", key,
                   a->dir);
  int rc = runlog_key_dir(g->c->log, a->dir, dir, e);
  if (rc == 0) rc = settle_has_log(g->c->store, dir, e);
  if (rc > 0)
    return err_set(e, ERR_HELD, "%s stays: a group with a log of its own lies there", key);
  if (rc < 0) return rc;
  const runlog_commit *live = collect_live_there(g, dir);
  if (!live) return 0;
  return err_set(e, ERR_HELD, "%s stays: %s holds the data of %s, which is committed", key, dir,
                 live->unit);
}

static int remove_spelt(const collecting *g, const char *key, uint64_t *bytes, err *e) {
  store *s = g->c->store;
  store_object object;
  err why = {0};
  int rc = s->ops->head(s, key, &object, &why);
  *bytes = rc == 0 ? object.size : collect_measure(g, key);
  if (g->c->dry) return 0;
  int asked = runlog_ask_epoch(g->c->log, e);
  if (asked < 0) return asked;
  if (rc == 0) return s->ops->remove(s, key, e);
  return rc == ERR_NOENT ? s->ops->remove_prefix(s, key, e) : err_set(e, rc, "%s", why.text);
}

/* Removes it under the name by which removal_clear() told of it. */
static int remove_key(const collecting *g, const runlog_attempt *a, const char *key,
                      uint64_t *bytes, err *e) {
  store *s = g->c->store;
  char dir[STORE_KEY_MAX];
  int rc = runlog_key_dir(g->c->log, a->dir, dir, e);
  if (rc == 0) rc = store_spell(s, dir, STORE_SPELT_PLAIN, e);
  if (rc < 0) return rc;
  rc = remove_spelt(g, key, bytes, e);
  store_spell(s, dir, STORE_SPELT_1, NULL); /* it is over */
  return rc;
}

int collect_key(const collect *c, const char *key, err *e) {
  collecting g;
  uint64_t bytes = 0;
  const char *rest = within(c->log, key);
  if (!rest) return 0;
  int rc = collect_begin(&g, c, e);
  const runlog_attempt *a = rc == 0 ? attempt_of(&g, rest) : NULL;
  if (rc == 0 && a) {
    rc = check_key(&g, a, key, e);
    /* The attempt's own objects go first, and the directory is written down as cleared. */
    if (rc == 0) rc = removal_clear(c->store, c->log, a->n, c->dry, c->sink, NULL, e);
    if (rc == 0) rc = remove_key(&g, a, key, &bytes, e);
    if (rc == 0)
      collect_tell(
          &g,
          &(collected){.what = "key", .name = rest, .reason = "removed by hand", .bytes = bytes});
    if (rc == 0) rc = g.stopped ? g.stopped : 1;
  }
  collect_free(&g);
  return rc;
}
