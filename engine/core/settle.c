#include "settle.h"

#include <stdio.h>
#include <string.h>

int settle_read_manifest(store *s, const char *dir_key, manifest *out, err *e) {
  char key[STORE_KEY_MAX];
  if (snprintf(key, sizeof key, "%s%s%s", dir_key, *dir_key ? "/" : "", MANIFEST_NAME) >=
      (int)sizeof key)
    return err_set(e, ERR_LIMIT, "%s: the name is too long", dir_key);
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = s->ops->get(s, key, &text, e);
  if (rc == 0) rc = manifest_parse(text.data, text.len, key, out, e);
  buf_free(&text);
  return rc;
}

/* 1 if it is sealed and was committed, 0 if it has to be swept. */
static int commit_sealed(store *s, runlog *log, const runlog_attempt *a, const log_sink *sink,
                         err *e) {
  char key[STORE_KEY_MAX];
  manifest m = {0};
  err why = {0};
  int rc = runlog_key_dir(log, a->dir, key, e);
  if (rc < 0) return rc;
  rc = settle_read_manifest(s, key, &m, &why);
  /* No manifest, or none that anybody could ever restore by: there is nothing to commit. A store
   * that does not answer is another matter. */
  if (rc == ERR_NOENT || rc == ERR_CORRUPT || rc == ERR_FORMAT) return 0;
  if (rc < 0) {
    if (e) *e = why;
    return rc;
  }
  if (strcmp(m.unit, a->unit) != 0) {
    manifest_free(&m);
    return 0;
  }
  uint64_t n = a->n;
  log_say(sink, LOG_INFO, "%s was saved whole by an earlier run: committing it", a->unit);
  rc = runlog_commit_attempt(log, n, &m, NULL, e);
  manifest_free(&m);
  return rc < 0 ? rc : 1;
}

static int sweep(store *s, runlog *log, const runlog_attempt *a, const log_sink *sink, err *e) {
  char staging[STORE_KEY_MAX], dir[STORE_KEY_MAX];
  err why = {0};
  int rc = runlog_key_staging(log, a->n, staging, e);
  if (rc == 0) rc = runlog_key_dir(log, a->dir, dir, e);
  if (rc < 0) return rc;
  log_say(sink, LOG_INFO, "%s was left unfinished by an earlier run: removing its parts", a->unit);
  rc = runlog_sweep(log, a->n, e); /* a is not valid any more */
  if (rc < 0) return rc;
  rc = s->ops->remove_prefix(s, staging, &why);
  if (rc == 0) rc = s->ops->remove_prefix(s, dir, &why);
  if (rc < 0) log_say(sink, LOG_WARN, "%s", why.text);
  return 0;
}

static const runlog_attempt *first_open(const runlog_state *state, uint64_t after) {
  for (size_t i = 0; i < state->attempt_count; i++)
    if (state->attempts[i].fate == RUNLOG_OPEN && state->attempts[i].n >= after)
      return &state->attempts[i];
  return NULL;
}

int settle_attempts(store *s, runlog *log, const log_sink *sink, err *e) {
  const runlog_attempt *a;
  uint64_t after = 0;
  while ((a = first_open(runlog_view(log), after))) {
    uint64_t n = a->n;
    after = n + 1;
    if (a->owner != runlog_view(log)->term.n) {
      int rc = runlog_adopt(log, n, e);
      if (rc == ERR_CONFLICT) continue; /* somebody swept it meanwhile */
      if (rc < 0) return rc;
      a = runlog_find_attempt(runlog_view(log), n);
    }
    int rc = commit_sealed(s, log, a, sink, e);
    if (rc == 0) rc = sweep(s, log, runlog_find_attempt(runlog_view(log), n), sink, e);
    if (rc < 0) return rc;
  }
  return 0;
}
