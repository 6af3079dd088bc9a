/* staging_begin: begins a staging: our own of an earlier try, one of an older term for this unit,
 * or a new one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "commit/manifest_read.h"
#include "staging_impl.h"

/* This file says whose a staging is, until the manifest says it. No checkpoint is shown with it. */
static const char label[] = ".ckpt-staging.json";
enum { LABEL_MAX = 64 << 10 };

static int key_of(const staging *st, const char *name, char out[STORE_KEY_MAX], err *e) {
  if (snprintf(out, STORE_KEY_MAX, "%s/%s", st->key, name) < STORE_KEY_MAX) return 0;
  return err_set(e, ERR_LIMIT, "%s/%s: the store's name for it is too long", st->key, name);
}

/* ---- the label ---- */

/* A checkpoint with a file of that name has no label, and another term does not go on with it. */
static int put_label(store *s, const staging *st, const char *unit, const staging_files *files,
                     err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  manifest_type type;
  uint64_t size;
  if (files->find(files->ctx, label, &type, &size)) return 0;
  buf_init(&text, LABEL_MAX);
  json_t *top = json_pack("{s:i, s:i, s:o}", "format", RUNLOG_FORMAT, "reader", RUNLOG_READER,
                          "unit", js_name_new(unit));
  int rc = top ? js_print(top, &text, e) : err_set(e, ERR_NOMEM, "stage %s: out of memory", unit);
  if (rc == 0) rc = key_of(st, label, key, e);
  if (rc == 0) rc = s->ops->put(s, key, text.data, text.len, STORE_IF_ABSENT, e);
  json_decref(top);
  buf_free(&text);
  return rc == ERR_EXISTS ? 0 : rc;
}

static bool label_says(store *s, const staging *st, const char *unit) {
  char key[STORE_KEY_MAX], *said = NULL;
  json_t *top = NULL;
  buf text;
  buf_init(&text, LABEL_MAX);
  int rc = key_of(st, label, key, NULL);
  if (rc == 0) rc = s->ops->get(s, key, &text, NULL);
  if (rc == 0) rc = js_parse(text.data ? text.data : "", text.len, key, &top, NULL);
  if (rc == 0) rc = js_get_name(top, "unit", key, &said, NULL);
  bool same = rc == 0 && strcmp(said, unit) == 0;
  free(said);
  json_decref(top);
  buf_free(&text);
  return same;
}

/* The label is removed when the manifest stands, so that is read if there is none. */
static bool is_of(store *s, const staging *st, const char *unit) {
  manifest m = {0};
  if (label_says(s, st, unit)) return true;
  if (manifest_read(s, st->key, &m, NULL) < 0) return false;
  bool same = strcmp(m.unit, unit) == 0;
  manifest_free(&m);
  return same;
}

int staging_seal(store *s, const staging *st, err *e) {
  char key[STORE_KEY_MAX];
  int rc = key_of(st, label, key, e);
  if (rc == 0) rc = s->ops->remove(s, key, e);
  return rc == 0 && s->ops->flush ? s->ops->flush(s, st->key, e) : rc;
}

/* ---- what is there already ---- */

typedef struct strays {
  const staging_files *files;
  size_t skip; /* of a key: the staging's and a slash */
  names keys;
} strays;

static int note_stray(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  strays *l = ctx;
  const char *name = key + l->skip;
  manifest_type type;
  uint64_t size;
  bool wanted = l->files->find(l->files->ctx, name, &type, &size);
  (void)is_prefix;
  if (!wanted && strcmp(name, label) == 0) return 0;
  if (wanted && type == MANIFEST_FILE && size == object->size) return 0;
  return names_add(&l->keys, key) ? 0 : ERR_NOMEM;
}

/* Removes the files that the checkpoint does not have, or has in another size. Its manifest goes,
 * too: it is made anew, for the files that are there by then. */
static int remove_strays(store *s, const staging *st, const staging_files *files, err *e) {
  strays l = {.files = files, .skip = strlen(st->key) + 1};
  err why = {0};
  int rc = s->ops->list(s, st->key, false, note_stray, &l, &why);
  for (size_t i = 0; rc == 0 && i < l.keys.count; i++) rc = s->ops->remove(s, l.keys.at[i], &why);
  names_free(&l.keys);
  if (rc >= 0) return 0;
  return err_set(e, rc, "go on with what is staged: %s", *why.text ? why.text : err_text(rc));
}

/* ---- which one ---- */

static int drop_own(store *s, const runlog *log, const staging_list *all, const char *keep,
                    err *e) {
  const runlog_state *state = runlog_view(log);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < all->count; i++) {
    const staging_seen *one = &all->at[i];
    if (one->gone || one->term != state->term.n || strcmp(one->nonce, keep) == 0 ||
        runlog_find_nonce(state, one->nonce))
      continue;
    rc = staging_remove(s, one->key, e);
  }
  return rc;
}

/* Finds the newest staging of an older term that has files of this unit, and that no entry
 * names. */
static const staging_seen *left_of(store *s, const runlog *log, const staging_list *all,
                                   const char *unit, const log_sink *sink) {
  const runlog_state *state = runlog_view(log);
  const staging_seen *best = NULL;
  staging st;
  for (size_t i = 0; i < all->count; i++) {
    const staging_seen *one = &all->at[i];
    if (one->gone || one->beside || one->term >= state->term.n || (best && best->term > one->term))
      continue;
    if (runlog_find_nonce(state, one->nonce) ||
        staging_name(runlog_prefix(log), one->term, one->nonce, &st, NULL) < 0)
      continue;
    if (staging_is_ours(s, one->key, sink) && is_of(s, &st, unit)) best = one;
  }
  return best;
}

/* Renames it to our own name, which its former writer does not know. Returns 0 if it has gone. */
static int take_over(store *s, const runlog *log, const staging_seen *left, const staging *to,
                     const log_sink *sink, err *e) {
  staging from;
  err why = {0};
  int rc = staging_name(runlog_prefix(log), left->term, left->nonce, &from, e);
  if (rc == 0) rc = s->ops->publish(s, left->key, to->key, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (!staging_is_ours(s, to->key, sink))
    return err_set(e, ERR_CONFLICT, "%s was changed by another user just now", to->key);
  /* Its companions are saved anew, as they are now. */
  rc = staging_remove(s, from.companions, e);
  return rc < 0 ? rc : 1;
}

static int go_on(store *s, runlog *log, const char *unit, const staging_list *all,
                 const log_sink *sink, staging *out, bool *again, err *e) {
  char nonce[33];
  int rc = io_nonce(s->io, nonce);
  if (rc < 0) return err_sys(e, rc, "stage %s: random numbers", unit);
  rc = staging_name(runlog_prefix(log), runlog_view(log)->term.n, nonce, out, e);
  const staging_seen *left = rc == 0 ? left_of(s, log, all, unit, sink) : NULL;
  if (left) rc = take_over(s, log, left, out, sink, e);
  *again = rc == 1;
  if (*again) log_say(sink, LOG_INFO, "%s: going on with what an earlier run has staged", unit);
  return rc < 0 ? rc : 0;
}

int staging_begin(store *s, runlog *log, const char *unit, const staging_files *files,
                  const char *nonce, const log_sink *sink, staging *out, bool *again, err *e) {
  staging_list all;
  /* If an entry names it, that attempt was given up since, or is another job's: the name is used
   * up. */
  bool known = *nonce && !runlog_find_nonce(runlog_view(log), nonce);
  int rc = staging_look(s, log, &all, e);
  if (rc < 0) return rc;
  rc = drop_own(s, log, &all, known ? nonce : "", e);
  *again = known;
  if (rc == 0 && known)
    rc = staging_name(runlog_prefix(log), runlog_view(log)->term.n, nonce, out, e);
  else if (rc == 0)
    rc = go_on(s, log, unit, &all, sink, out, again, e);
  staging_list_free(&all);
  /* First the label: without it and without the manifest, which goes with the strays, a run that is
   * killed in between leaves files of which the next one cannot tell whose they are. */
  if (rc == 0) rc = put_label(s, out, unit, files, e);
  return rc == 0 && *again ? remove_strays(s, out, files, e) : rc;
}
