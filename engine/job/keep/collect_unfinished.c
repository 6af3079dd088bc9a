/* Collecting what was begun and never finished: uploads in parts, and temporary files of killed
 * processes. What belongs to an open save stays, however old it is: its owner, or who takes it
 * over, goes on with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "collect_impl.h"
#include "commit/removal.h"

typedef struct pile {
  store_unfinished *at;
  size_t count, room;
} pile;

static void pile_free(pile *p) {
  for (size_t i = 0; i < p->count; i++) {
    free((char *)p->at[i].key);
    free((char *)p->at[i].id);
  }
  free(p->at);
}

static int note(void *ctx, const store_unfinished *what) {
  pile *p = ctx;
  if (!VEC_ROOM(p->at, p->count, p->room)) return ERR_NOMEM;
  store_unfinished *copy = &p->at[p->count];
  *copy = *what;
  copy->key = strdup(what->key);
  copy->id = strdup(what->id);
  p->count++;
  return copy->key && copy->id ? 0 : ERR_NOMEM;
}

/* Finds the attempt whose directory, or number, a key within the log's place lies below; NULL:
 * none. */
static const runlog_attempt *attempt_of(const runlog_state *state, const char *key) {
  static const char *const numbered[] = {".ckpt/staging/", ".ckpt/parts/", ".ckpt/with/"};
  for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
    size_t len = strlen(numbered[i]);
    char *end;
    if (strncmp(key, numbered[i], len) != 0 || key[len] < '0' || key[len] > '9') continue;
    uint64_t n = strtoull(key + len, &end, 10);
    return *end == '/' ? runlog_find_attempt(state, n) : NULL;
  }
  size_t len = strcspn(key, "/");
  for (size_t i = 0; key[len] && i < state->attempt_count; i++) {
    const char *dir = state->attempts[i].dir;
    if (strncmp(dir, key, len) == 0 && dir[len] == 0) return &state->attempts[i];
  }
  return NULL;
}

/* True if a log further down owns it. A log that cannot be looked for may be there. */
static bool is_below_other_log(const collecting *g, const char *key) {
  char place[STORE_KEY_MAX], first[STORE_KEY_MAX];
  store_object object;
  size_t from = strlen(runlog_prefix(g->c->log));
  snprintf(place, sizeof place, "%s", key);
  for (char *slash = strchr(place + from + (from > 0), '/'); slash;
       slash = strchr(slash + 1, '/')) {
    *slash = 0;
    int rc = runlog_key_entry(place, 0, first, NULL);
    if (rc == 0) rc = g->c->store->ops->head(g->c->store, first, &object, NULL);
    if (rc != ERR_NOENT) return true;
    *slash = '/';
  }
  return false;
}

static bool is_old(const collecting *g, int64_t begun_ns) {
  return begun_ns > 0 && begun_ns <= g->now - (int64_t)COLLECT_DAY_S * 1000000000;
}

/* Anybody may have begun an upload below an attempt's directory. If it cannot be told whose it is,
 * it stays, and is named if the attempt is over. */
static const char *reason_of_save(const collecting *g, const store_unfinished *u,
                                  const runlog_attempt *a, bool own, bool *left) {
  if (a->fate == RUNLOG_OPEN) return NULL;
  if (!own && removal_owns_upload(g->c->store, g->c->log, a, u->begun_ns, NULL) <= 0) {
    *left = collect_is_gone(g, a);
    return *left ? "an upload that no save here began, or one too late; to remove: `collect.remove`"
                 : NULL;
  }
  return a->fate == RUNLOG_SWEPT ? "its save was given up" : "its save is committed";
}

/* Returns why it goes; NULL: it stays. *left: it stays, and is named. */
static const char *reason_of(const collecting *g, const store_unfinished *u, const char *within,
                             bool *left) {
  const runlog_attempt *a = attempt_of(runlog_view(g->c->log), within);
  bool own = strncmp(within, ".ckpt/", 6) == 0; /* no log lies in there */
  if (a) return reason_of_save(g, u, a, own, left);
  if (u->raw) return NULL; /* another tool's */
  if (!is_old(g, u->begun_ns) || (!own && is_below_other_log(g, u->key))) return NULL;
  return "older than a day, and of no save";
}

static void collect_one(collecting *g, const store_unfinished *u) {
  store *s = g->c->store;
  size_t len = strlen(runlog_prefix(g->c->log));
  const char *within = u->key + (len ? len + 1 : 0);
  bool temporary = strncmp(within, ".ckpt/tmp/", 10) == 0, left = false;
  const char *reason = reason_of(g, u, within, &left);
  err why = {0};
  if (!reason) return;
  int rc = g->c->dry || left ? 0 : s->ops->discard(s, u, &why);
  collect_tell(g, &(collected){.what = left        ? "left"
                                       : temporary ? "temporary"
                                                   : "upload",
                               .name = within,
                               .reason = rc < 0 ? why.text : reason,
                               .bytes = u->bytes,
                               .status = rc});
}

void collect_unfinished(collecting *g) {
  store *s = g->c->store;
  pile p = {0};
  err why = {0};
  if (!s->ops->unfinished) return;
  int rc = s->ops->unfinished(s, runlog_prefix(g->c->log), note, &p, &why);
  if (rc < 0) collect_failed(g, "upload", rc, why.text);
  for (size_t i = 0; rc == 0 && i < p.count && !g->stopped; i++) collect_one(g, &p.at[i]);
  pile_free(&p);
}
