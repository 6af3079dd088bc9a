/* runlog_proof: what an entry says of its own text, and of the entry before it.
 *
 * The last member of an entry is `sum`, the digest of the text before it; `prev` is the digest of
 * the raw text of the entry before it, as its writer had read it. So a byte that was changed, an
 * entry that was put back from elsewhere or was exchanged is noticed. It guards against accidents,
 * not against one who may write: he can make all sums anew. What 1.0 wrote has neither, and is
 * unproven. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runlog_impl.h"

static const char before_sum[] = ",\"sum\":\"", behind_sum[] = "\"}";
enum {
  HEX = RUNLOG_DIGEST_MAX - 1,
  SUM_LEN = sizeof before_sum - 1 + HEX + sizeof behind_sum - 1, /* of the member, and the end */
};

int runlog_digest(const char *text, size_t len, digest *out, err *e) {
  return hash_bytes(HASH_XXH3_128, text ? text : "", len, out, e);
}

int runlog_seal(buf *text, err *e) {
  digest sum;
  char hex[HASH_HEX_MAX];
  if (text->len == 0 || text->data[text->len - 1] != '}')
    return err_set(e, ERR_INTERNAL, "only an object has a sum");
  int rc = runlog_digest(text->data, text->len - 1, &sum, e);
  if (rc < 0) return rc;
  digest_hex(&sum, hex);
  text->data[--text->len] = 0;
  buf_fmt(text, "%s%s%s", before_sum, hex, behind_sum);
  return buf_failed(text) ? err_set(e, buf_failed(text), "a sum does not fit in any more") : 0;
}

/* Another program may print it anew: then the text is not what it was, whatever it says. */
bool runlog_sum_holds(const json_t *object, const buf *text) {
  const char *said = json_string_value(json_object_get(object, "sum"));
  digest sum;
  char tail[SUM_LEN + 1], hex[HASH_HEX_MAX];
  if (!said) return !json_object_get(object, "sum");
  if (text->len <= SUM_LEN || runlog_digest(text->data, text->len - SUM_LEN, &sum, NULL) < 0)
    return false;
  digest_hex(&sum, hex);
  snprintf(tail, sizeof tail, "%s%.*s%s", before_sum, HEX, hex, behind_sum);
  return memcmp(text->data + text->len - SUM_LEN, tail, SUM_LEN) == 0;
}

/* ---- damage ---- */

void runlog_note_damage(runlog *log, const char *fmt, ...) {
  va_list args;
  char text[ERR_TEXT_MAX / 2];
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  log_say(&log->s->log, LOG_WARN, "%s%sthe log is damaged: %s", log->prefix,
          *log->prefix ? ": " : "", text);
  if (!log->damage) log->damage = strdup(text);
  log->damaged = true;
}

/* What was read is forgotten, and what was noticed in it. */
void runlog_forget_proof(runlog *log) {
  free(log->damage);
  log->damage = NULL;
  log->damaged = log->loose = false;
  log->unproven = 0;
  log->last.len = log->ground.len = 0;
  log->newest = (runlog_hint){.snapshot = RUNLOG_NONE, .commit = RUNLOG_NONE};
}

static int say_damage(const runlog *log, const char *else_can, err *e) {
  return err_set(e, ERR_CORRUPT,
                 "%s%sthe log is damaged: %s. Nothing is appended to it until that is put back, "
                 "from a copy or an older version of the store, or `repair` has made a new one of "
                 "what is left%s",
                 log->prefix, *log->prefix ? ": " : "", log->damage ? log->damage : "", else_can);
}

int runlog_check_damage(const runlog *log, err *e) {
  static const char can[] = "; checkpoints can still be listed, verified and restored";
  return log->damaged ? say_damage(log, can, e) : 0;
}

int runlog_unreadable(const runlog *log, err *e) {
  return say_damage(log, "", e);
}

/* ---- reading ---- */

/* Both came with 1.1, and only the first entry has none before it. */
const char *runlog_judge_text(uint64_t n, const json_t *entry, const buf *text) {
  bool prev = json_is_string(json_object_get(entry, "prev"));
  bool sum = json_object_get(entry, "sum") != NULL;
  if (!runlog_sum_holds(entry, text)) return "its text is not the one that its sum was made of";
  return sum != prev && n > 0 ? "its sum, or its word of the one before, is gone" : NULL;
}

static const char *judge(const runlog *log, uint64_t n, const json_t *entry, const buf *text) {
  const char *prev = json_string_value(json_object_get(entry, "prev"));
  const char *why = runlog_judge_text(n, entry, text);
  digest before;
  if (why || !prev || log->last.len == 0 || log->loose) return why;
  if (digest_parse(HASH_XXH3_128, prev, &before, NULL) == 0 && digest_equal(&before, &log->last))
    return NULL;
  return "the entry before it is not the one that its writer had read";
}

void runlog_prove(runlog *log, uint64_t n, const json_t *entry, const buf *text) {
  const char *why = judge(log, n, entry, text);
  if (why) runlog_note_damage(log, "entry %" PRIu64 ": %s", n, why);
  log->unproven += json_object_get(entry, "sum") == NULL;
  runlog_take_last(log, text);
  log->loose = false;
  runlog_note_commit(log, n, entry);
  if (n == log->hint.commit && !digest_equal(&log->last, &log->hint.digest))
    runlog_note_damage(log, "entry %" PRIu64 ": it is not the commit that the head names", n);
}

void runlog_note_commit(runlog *log, uint64_t n, const json_t *entry) {
  const char *type = json_string_value(json_object_get(entry, "type"));
  if (!type || strcmp(type, "commit") != 0) return;
  log->newest.commit = n;
  log->newest.digest = log->last;
}

void runlog_take_last(runlog *log, const buf *text) {
  log->ground = log->last;
  if (runlog_digest(text->data, text->len, &log->last, NULL) < 0) log->last.len = 0;
}

/* Behind a repair it is the new log, whose numbers begin where those of the old one end. */
runlog_proven runlog_tell_proven(const runlog *log) {
  uint64_t commit = log->hint.commit, next = log->st.next;
  uint64_t first = log->at.epoch ? log->at.first : 0;
  bool named = commit != RUNLOG_NONE && commit >= first;
  return (runlog_proven){.entries = next - first,
                         .unproven = log->unproven,
                         .behind = !named          ? next - first
                                   : next > commit ? next - commit - 1
                                                   : 0};
}
