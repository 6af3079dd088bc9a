#include "ranks_said.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commit/log/runlog.h"
#include "prims/hash.h"

enum { SAID_FORMAT = 1, SAID_READER = 1, SAID_MAX = 64 << 10 };

int ranks_said_key(const ranks *r, char out[STORE_KEY_MAX], err *e) {
  digest d;
  char hex[HASH_HEX_MAX], name[HASH_HEX_MAX + 16];
  int rc = hash_bytes(HASH_XXH3_128, r->launch, strlen(r->launch), &d, e);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  snprintf(name, sizeof name, RANKS_SAID "/%s", hex);
  return runlog_join("", name, out, e);
}

static bool add(json_t *top, const char *key, const char *text) {
  return !text || json_object_set_new(top, key, js_name_new(text)) == 0;
}

int ranks_said_put(store *s, const ranks *r, const ranks_said *said, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, SAID_MAX);
  json_t *top =
      json_pack("{s:i, s:i, s:o, s:I, s:b, s:o}", "format", SAID_FORMAT, "reader", SAID_READER,
                "launch", js_name_new(r->launch), "world", (json_int_t)r->world, "ready",
                said->ready, "resume", js_name_new(said->resume));
  if (top && !(add(top, "over", said->over ? said->why : NULL) &&
               add(top, "waits", *said->waits ? said->waits : NULL))) {
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

/* Reads a record. If it is another launch's, under the same digest, or no record at all, it is not
 * there for us. */
static int parse(const ranks *r, const buf *text, const char *key, ranks_said *out, err *e) {
  json_t *top = NULL;
  char *launch = NULL, *resume = NULL, *over = NULL, *waits = NULL;
  int64_t world = 0;
  int rc = js_read(text, key, SAID_READER, &top, e);
  if (rc == 0) rc = js_get_name(top, "launch", key, &launch, e);
  if (rc == 0) rc = js_get_int(top, "world", key, &world, e);
  if (rc == 0) rc = js_opt_bool(top, "ready", key, false, &out->ready, e);
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
  if (rc == 0 && waits) snprintf(out->waits, sizeof out->waits, "%s", waits);
  if (rc == 0) snprintf(out->resume, sizeof out->resume, "%s", resume);
  if (rc == 0 && over) snprintf(out->why, sizeof out->why, "%s", over);
  free(waits);
  free(over);
  free(launch);
  free(resume);
  json_decref(top);
  return rc;
}

int ranks_said_get(store *s, const ranks *r, ranks_said *out, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  *out = (ranks_said){0};
  buf_init(&text, SAID_MAX);
  int rc = ranks_said_key(r, key, e);
  if (rc == 0) rc = s->ops->get(s, key, &text, e);
  if (rc == 0) rc = parse(r, &text, key, out, e);
  buf_free(&text);
  return rc == ERR_NOSTORE ? ERR_NOENT : rc;
}
