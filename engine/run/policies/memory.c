#include "memory.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "commit/log/runlog.h"
#include "decision/policy.h"

static const char memory_name[] = ".ckpt/memory";

enum {
  MEMORY_FORMAT = 1,
  MEMORY_READER = 1,
  MEMORY_ROOM = 100 /* room for the members around it */
};

/* Takes the memory out of its document. A text from before format 1 is the memory itself. */
static int unwrap(const buf *text, char **out, err *e) {
  json_t *doc = NULL;
  buf inner;
  int rc = js_parse(text->data ? text->data : "", text->len, memory_name, &doc, e);
  const json_t *memory = json_object_get(doc, "memory");
  bool wrapped = memory && json_object_get(doc, "reader");
  if (rc == 0 && wrapped) rc = js_check_reader(doc, memory_name, MEMORY_READER, e);
  buf_init(&inner, POLICY_MEMORY_MAX);
  if (rc == 0) rc = js_print(wrapped ? memory : doc, &inner, e);
  if (rc == 0) *out = buf_take(&inner);
  buf_free(&inner);
  json_decref(doc);
  return rc;
}

int memory_read(store *s, const log_sink *log, const char *prefix, char **memory,
                memory_state *state, err *e) {
  char key[STORE_KEY_MAX];
  err why = {0};
  buf text;
  *memory = NULL;
  *state = MEMORY_KNOWN;
  int rc = runlog_join(prefix, memory_name, key, e);
  if (rc < 0) return rc;
  buf_init(&text, POLICY_MEMORY_MAX + MEMORY_ROOM);
  rc = s->ops->get(s, key, &text, &why);
  bool answered = rc == 0 || rc == ERR_NOENT || rc == ERR_LIMIT;
  if (rc == 0) rc = unwrap(&text, memory, &why);
  buf_free(&text);
  if (!answered || rc == ERR_NOMEM)
    return err_set(e, rc, "read what the policies remember: %s", why.text);
  if (rc == 0 || rc == ERR_NOENT) return 0;
  *state = MEMORY_BROKEN;
  log_say(
      log, LOG_WARN,
      "what the policies remember cannot be read, so they begin anew, and nothing is dropped by "
      "them nor is it written over: %s; remove %s if it is of no use any more",
      why.text, key);
  return 0;
}

int memory_write(store *s, const char *prefix, const char *memory, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, POLICY_MEMORY_MAX + MEMORY_ROOM);
  buf_fmt(&text, "{\"format\":%d,\"reader\":%d,\"memory\":%s}\n", MEMORY_FORMAT, MEMORY_READER,
          memory);
  int rc = buf_failed(&text);
  if (rc < 0) err_set(e, rc, "write what the policies remember: %s", err_text(rc));
  if (rc == 0) rc = runlog_join(prefix, memory_name, key, e);
  if (rc == 0) rc = s->ops->put(s, key, text.data, text.len, STORE_REPLACE, e);
  buf_free(&text);
  return rc;
}
