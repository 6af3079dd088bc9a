#include "verified.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_MAX = 4096 };

static const char name[] = ".ckpt/verified";

static int parse(const buf *text, const char *key, uint64_t *out, err *e) {
  json_t *value = NULL;
  int64_t commit = -1, reader = 0; /* format 0 did not have it */
  int rc = js_parse(text->data ? text->data : "", text->len, key, &value, NULL);
  if (rc == 0) rc = js_get_int(value, "commit", key, &commit, NULL);
  if (rc == 0) rc = js_opt_int(value, "reader", key, 0, &reader, NULL);
  json_decref(value);
  if (rc == 0 && commit >= 0 && reader <= RUNLOG_READER) {
    *out = (uint64_t)commit;
    return 0;
  }
  return err_set(e, ERR_FORMAT,
                 "%s does not name a checkpoint: the last one that verified may be any (`verify` "
                 "writes it anew once it is removed)",
                 key);
}

int verified_read(store *s, const char *prefix, uint64_t *out, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  err why = {0};
  *out = RUNLOG_NONE;
  int rc = runlog_join(prefix, name, key, e);
  if (rc < 0) return rc;
  buf_init(&text, TEXT_MAX);
  rc = s->ops->get(s, key, &text, &why);
  if (rc == 0)
    rc = parse(&text, key, out, e);
  else if (rc == ERR_NOENT)
    rc = 0;
  else
    rc = err_set(e, rc, "%s", why.text);
  buf_free(&text);
  return rc;
}

int verified_note(store *s, const char *prefix, uint64_t commit, err *e) {
  char key[STORE_KEY_MAX], text[96];
  uint64_t known = RUNLOG_NONE;
  int rc = verified_read(s, prefix, &known, e);
  if (rc < 0 || (known != RUNLOG_NONE && known >= commit)) return rc;
  rc = runlog_join(prefix, name, key, e);
  if (rc < 0) return rc;
  int len = snprintf(text, sizeof text, "{\"format\":%d,\"reader\":%d,\"commit\":%" PRIu64 "}\n",
                     RUNLOG_FORMAT, RUNLOG_READER_1, commit);
  return s->ops->put(s, key, text, (size_t)len, STORE_REPLACE, e);
}
