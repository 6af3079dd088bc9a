#include "ranks_said.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_names.h"
#include "commit/log/runlog.h"
#include "prims/hash.h"

enum { SAID_FORMAT = 1, SAID_READER = 1, SAID_MAX = 64 << 10 };

static int key_of(const ranks *r, const char *end, char out[STORE_KEY_MAX], err *e) {
  digest d;
  char hex[HASH_HEX_MAX], name[HASH_HEX_MAX + 64];
  int rc = hash_bytes(HASH_XXH3_128, r->launch, strlen(r->launch), &d, e);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  snprintf(name, sizeof name, RANKS_SAID "/%s%s", hex, end);
  return runlog_join("", name, out, e);
}

static int key_of_rank(const ranks *r, uint32_t rank, char out[STORE_KEY_MAX], err *e) {
  char end[32] = "";
  if (rank > 0) snprintf(end, sizeof end, ".over/%" PRIu32, rank);
  return key_of(r, end, out, e);
}

int ranks_said_key(const ranks *r, char out[STORE_KEY_MAX], err *e) {
  return key_of_rank(r, r->rank, out, e);
}

static bool add(json_t *top, const char *key, const char *text) {
  return !text || json_object_set_new(top, key, js_name_new(text)) == 0;
}

static bool add_true(json_t *top, const char *key, bool is) {
  return !is || json_object_set_new(top, key, json_true()) == 0;
}

static bool add_refused(json_t *top, const names *refused) {
  if (refused->count == 0) return true;
  json_t *list = json_array();
  bool ok = list != NULL;
  for (size_t i = 0; ok && i < refused->count; i++)
    ok = json_array_append_new(list, js_name_new(refused->at[i])) == 0;
  if (ok) return json_object_set_new(top, "refused", list) == 0;
  json_decref(list);
  return false;
}

int ranks_said_put(store *s, const ranks *r, const ranks_said *said, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, SAID_MAX);
  json_t *top =
      json_pack("{s:i, s:i, s:o, s:I, s:b, s:o}", "format", SAID_FORMAT, "reader", SAID_READER,
                "launch", js_name_new(r->launch), "world", (json_int_t)r->world, "ready",
                said->ready, "resume", js_name_new(said->resume));
  if (top &&
      !(add(top, "over", said->over ? said->why : NULL) &&
        add_true(top, "elsewhere", said->over && said->elsewhere) &&
        add(top, "commit", *said->commit ? said->commit : NULL) &&
        add(top, "waits", *said->waits ? said->waits : NULL) && add_refused(top, &said->refused))) {
    json_decref(top);
    top = NULL;
  }
  int rc = top ? js_print(top, &text, e) : err_set(e, ERR_NOMEM, "tell the ranks: out of memory");
  if (rc == 0) rc = ranks_said_key(r, key, e);
  if (rc == 0) rc = s->ops->put(s, key, text.data, text.len, STORE_REPLACE, e);
  json_decref(top);
  buf_free(&text);
  return rc;
}

int ranks_said_remove(store *s, const ranks *r, err *e) {
  char key[STORE_KEY_MAX];
  int rc = ranks_said_key(r, key, e);
  return rc < 0 ? rc : s->ops->remove(s, key, e);
}

static int take_refused(const json_t *top, const char *key, names *out, err *e) {
  const json_t *list = json_object_get(top, "refused");
  int rc = js_take_names(list, "refused", key, FS_PATH_MAX, out, e);
  names_sort(out);
  return rc;
}

/* Reads a record. If it is another launch's, under the same digest, or no record at all, it is not
 * there for us. */
static int parse(const ranks *r, const buf *text, const char *key, ranks_said *out, err *e) {
  json_t *top = NULL;
  char *launch = NULL, *resume = NULL, *over = NULL, *waits = NULL, *commit = NULL;
  int64_t world = 0;
  int rc = js_read(text, key, SAID_READER, &top, e);
  if (rc == 0) rc = js_get_name(top, "launch", key, &launch, e);
  if (rc == 0) rc = js_get_int(top, "world", key, &world, e);
  if (rc == 0) rc = js_opt_bool(top, "ready", key, false, &out->ready, e);
  if (rc == 0) rc = js_opt_bool(top, "elsewhere", key, false, &out->elsewhere, e);
  if (rc == 0) rc = js_get_name(top, "resume", key, &resume, e);
  if (rc == 0 && strcmp(launch, r->launch) != 0)
    rc = err_set(e, ERR_CORRUPT, "%s: it is of another launch", key);
  if (rc == 0 && world != r->world)
    rc = err_set(e, ERR_INVAL,
                 "rank 0 of this launch says that there are %" PRId64 " ranks, this one %" PRIu32,
                 world, r->world);
  out->over = json_object_get(top, "over") != NULL;
  if (rc == 0 && out->over) rc = js_get_name(top, "over", key, &over, e);
  if (rc == 0 && json_object_get(top, "waits")) rc = js_get_name(top, "waits", key, &waits, e);
  if (rc == 0 && json_object_get(top, "commit")) rc = js_get_name(top, "commit", key, &commit, e);
  if (rc == 0 && commit) snprintf(out->commit, sizeof out->commit, "%s", commit);
  if (rc == 0 && waits) snprintf(out->waits, sizeof out->waits, "%s", waits);
  if (rc == 0) snprintf(out->resume, sizeof out->resume, "%s", resume);
  if (rc == 0 && over) snprintf(out->why, sizeof out->why, "%s", over);
  if (rc == 0) rc = take_refused(top, key, &out->refused, e);
  free(waits);
  free(commit);
  free(over);
  free(launch);
  free(resume);
  json_decref(top);
  return rc;
}

int ranks_said_get(store *s, const ranks *r, uint32_t rank, ranks_said *out, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  *out = (ranks_said){0};
  buf_init(&text, SAID_MAX);
  int rc = key_of_rank(r, rank, key, e);
  if (rc == 0) rc = s->ops->get(s, key, &text, e);
  if (rc == 0) rc = parse(r, &text, key, out, e);
  buf_free(&text);
  if (rc < 0) ranks_said_free(out);
  return rc == ERR_NOSTORE ? ERR_NOENT : rc;
}

void ranks_said_free(ranks_said *said) {
  names_free(&said->refused);
}

/* ---- who has ended ---- */

struct look {
  const bool *there;
  uint32_t world;
  bool *ended; /* one for each rank */
};

static int on_over(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  struct look *l = ctx;
  const char *name = fs_base(key);
  char *end;
  (void)object;
  unsigned long rank = strtoul(name, &end, 10);
  if (!is_prefix && !*end && end != name && rank > 0 && rank < l->world && !l->there[rank])
    l->ended[rank] = true;
  return 0;
}

/* Returns 1 if it says that it has ended. One that is gone by now was started again. */
static int says_over(store *s, const ranks *r, uint32_t rank, char why[RANKS_SAID_TEXT_MAX],
                     err *e) {
  ranks_said said;
  err gone = {0};
  int rc = ranks_said_get(s, r, rank, &said, &gone);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", gone.text);
  snprintf(why, RANKS_SAID_TEXT_MAX, "%s", said.why);
  bool over = said.over;
  ranks_said_free(&said);
  return over;
}

int ranks_said_over(store *s, const ranks *r, const bool *there, uint32_t *rank,
                    char why[RANKS_SAID_TEXT_MAX], err *e) {
  char place[STORE_KEY_MAX];
  struct look l = {.there = there, .world = r->world, .ended = calloc(r->world, sizeof(bool))};
  if (!l.ended) return err_set(e, ERR_NOMEM, "who of the ranks has ended: out of memory");
  int rc = key_of(r, ".over", place, e);
  if (rc == 0) rc = s->ops->list(s, place, true, on_over, &l, e);
  if (rc == ERR_NOSTORE) rc = 0;
  for (*rank = 1; rc == 0 && *rank < r->world; ++*rank) {
    if (l.ended[*rank]) rc = says_over(s, r, *rank, why, e);
    if (rc != 0) break;
  }
  free(l.ended);
  return rc;
}
