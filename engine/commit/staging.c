#include "staging.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "commit/manifest_read.h"
#include "commit/removal.h"
#include "prims/fs.h"
#include "staging_impl.h"

static const char place[] = ".ckpt/staging";

int staging_name(const char *prefix, uint64_t term, const char *nonce, staging *out, err *e) {
  char name[160];
  *out = (staging){.term = term};
  snprintf(out->nonce, sizeof out->nonce, "%s", nonce);
  snprintf(name, sizeof name, "%s/%" PRIu64 ".%s", place, term, nonce);
  int rc = runlog_join(prefix, name, out->key, e);
  snprintf(name, sizeof name, "%s/%" PRIu64 ".%s.with", place, term, nonce);
  return rc < 0 ? rc : runlog_join(prefix, name, out->companions, e);
}

/* ---- what is there ---- */

/* Reads a name "17.<nonce>" and, behind it, nothing or ".with". */
static bool read_name(const char *text, staging_seen *out) {
  enum { HEX = 32 };
  char *end, again[24];
  out->gone = strncmp(text, "gone.", 5) == 0;
  if (out->gone) text += 5;
  out->term = strtoull(text, &end, 10);
  int len = snprintf(again, sizeof again, "%" PRIu64 ".", out->term);
  if (*end != '.' || strncmp(text, again, (size_t)len) != 0) return false;
  if (strspn(end + 1, "0123456789abcdef") != HEX) return false;
  memcpy(out->nonce, end + 1, HEX);
  out->nonce[HEX] = 0;
  out->beside = strcmp(end + 1 + HEX, ".with") == 0;
  return out->beside || end[1 + HEX] == 0;
}

static int note(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  staging_list *l = ctx;
  staging_seen one = {.made = object ? object->mtime_ns : INT64_MIN};
  if (!is_prefix || !read_name(fs_base(key), &one)) return 0;
  if (!VEC_ROOM(l->at, l->count, l->room)) return ERR_NOMEM;
  snprintf(one.key, sizeof one.key, "%s", key);
  l->at[l->count++] = one;
  return 0;
}

int staging_look(store *s, const runlog *log, staging_list *out, err *e) {
  char key[STORE_KEY_MAX];
  err why = {0};
  *out = (staging_list){0};
  if (!store_can(s, STORE_CAP_PUBLISH)) return 0;
  int rc = runlog_join(runlog_prefix(log), place, key, &why);
  if (rc == 0) rc = store_list_dirs(s, key, note, out, &why);
  if (rc == 0) return 0;
  staging_list_free(out);
  return err_set(e, rc, "look for what is staged: %s", *why.text ? why.text : err_text(rc));
}

void staging_list_free(staging_list *l) {
  free(l->at);
  *l = (staging_list){0};
}

int staging_find(store *s, const runlog *log, const char *nonce, staging *out, err *e) {
  staging_list all;
  const staging_seen *found = NULL;
  int rc = *nonce ? staging_look(s, log, &all, e) : 0;
  if (rc < 0 || !*nonce) return rc;
  for (size_t i = 0; i < all.count; i++)
    if (!all.at[i].gone && strcmp(all.at[i].nonce, nonce) == 0) found = &all.at[i];
  rc = found ? staging_name(runlog_prefix(log), found->term, found->nonce, out, e) : 0;
  bool there = found != NULL;
  staging_list_free(&all);
  return rc < 0 ? rc : there;
}

bool staging_is_ours(store *s, const char *key, const log_sink *sink) {
  err why = {0};
  if (!s->ops->check_owner || s->ops->check_owner(s, key, &why) == 0) return true;
  log_say(sink, LOG_WARN, "what is staged at %s is not gone on with: %s", key, why.text);
  return false;
}

/* ---- showing ---- */

/* Returns 1 with the manifest if the staging is whole: it is put last. */
static int read_sealed(store *s, const staging *st, const char *unit, manifest *m, err *e) {
  err why = {0};
  int rc = manifest_read(s, st->key, m, &why);
  if (rc < 0 && err_class_of(rc) == ERR_CLASS_RETRYABLE) return err_set(e, rc, "%s", why.text);
  if (rc < 0) return 0;
  if (strcmp(m->unit, unit) == 0 && m->attempt && strcmp(m->attempt, st->nonce) == 0) return 1;
  manifest_free(m);
  return 0;
}

static int read_whole(store *s, const runlog *log, const runlog_attempt *a, staging *out,
                      manifest *m, err *e) {
  int rc = staging_find(s, log, a->nonce, out, e);
  if (rc == 1) rc = read_sealed(s, out, a->unit, m, e);
  if (rc < 1 || staging_is_ours(s, out->key, &s->log)) return rc;
  manifest_free(m);
  return 0;
}

int staging_read(store *s, const runlog *log, const runlog_attempt *a, manifest *out, err *e) {
  staging st;
  return read_whole(s, log, a, &st, out, e);
}

static int find_whole(store *s, const runlog *log, const runlog_attempt *a, staging *out, err *e) {
  manifest m = {0};
  int rc = read_whole(s, log, a, out, &m, e);
  manifest_free(&m);
  return rc;
}

int staging_is_whole(store *s, const runlog *log, const runlog_attempt *a, err *e) {
  staging st;
  return find_whole(s, log, a, &st, e);
}

int staging_show_companions(store *s, const runlog *log, const staging *st, uint64_t attempt,
                            err *e) {
  char to[STORE_KEY_MAX];
  err why = {0};
  int rc = runlog_key_companions(runlog_prefix(log), attempt, st->term, to, e);
  if (rc < 0) return rc;
  rc = s->ops->publish(s, st->companions, to, &why);
  return rc == 0 || rc == ERR_EXISTS ? 0 : err_set(e, rc, "%s", why.text);
}

/* The writer that announced the attempt may be at it still: then it may have shown the directory,
 * and this finds it so. */
int staging_show(store *s, const runlog *log, const runlog_attempt *a, err *e) {
  char to[STORE_KEY_MAX];
  staging st;
  err why = {0};
  int rc = find_whole(s, log, a, &st, &why);
  if (rc == 1)
    rc = runlog_key_dir(log, a->dir, to, &why);
  else if (rc == 0)
    return 0;
  if (rc == 0) rc = staging_show_companions(s, log, &st, a->n, &why);
  if (rc == 0 || rc == ERR_NOENT) rc = s->ops->publish(s, st.key, to, &why);
  return rc == 0 || rc == ERR_EXISTS || rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

/* ---- removing ---- */

int staging_remove(store *s, const char *key, err *e) {
  char gone[STORE_KEY_MAX];
  const char *name = fs_base(key);
  err why = {0};
  if (strncmp(name, "gone.", 5) == 0) return s->ops->remove_prefix(s, key, e);
  if (snprintf(gone, sizeof gone, "%.*sgone.%s", (int)(name - key), key, name) >= (int)sizeof gone)
    return err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", key);
  int rc = s->ops->publish(s, key, gone, &why);
  if (rc == ERR_EXISTS) { /* it is of a removal that was cut short; this one was made behind it */
    rc = s->ops->remove_prefix(s, gone, &why);
    if (rc == 0) rc = s->ops->publish(s, key, gone, &why);
  }
  if (rc == ERR_NOENT) return 0;
  if (rc == 0) rc = s->ops->remove_prefix(s, gone, &why);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

int staging_drop_companions(store *s, const staging *st, err *e) {
  return staging_remove(s, st->companions, e);
}

int staging_drop(store *s, const staging *st, err *e) {
  int beside = staging_drop_companions(s, st, e);
  int rc = staging_remove(s, st->key, beside < 0 ? NULL : e);
  return beside < 0 ? beside : rc;
}

int staging_drop_of(store *s, const runlog *log, const char *nonce, err *e) {
  staging st;
  int rc = staging_find(s, log, nonce, &st, e);
  return rc == 1 ? staging_drop(s, &st, e) : rc;
}

typedef struct load {
  uint64_t bytes;
  int64_t last; /* the time of the last write; INT64_MIN: there is nothing in it */
} load;

static int weigh(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  load *l = ctx;
  (void)key, (void)is_prefix;
  l->bytes += object->size;
  if (object->mtime_ns > l->last) l->last = object->mtime_ns;
  return 0;
}

/* Returns why it should go; NULL: it stays. */
static const char *judge(const runlog_state *state, const staging_seen *one, int64_t idle,
                         int64_t grace) {
  const runlog_attempt *a = runlog_find_nonce(state, one->nonce);
  if (one->gone) return "a removal of it was cut short";
  if (a && a->fate == RUNLOG_OPEN) return NULL;
  if (a)
    return a->fate == RUNLOG_SWEPT ? "of a save that was given up" : "of a save that is committed";
  if (state->term.n == RUNLOG_NONE || one->term >= state->term.n || grace == INT64_MAX) return NULL;
  return idle >= grace ? "it was never finished, and nobody goes on with it" : NULL;
}

/* Returns why it goes; or, with *other set, why it stays: it is not for us to remove. */
static const char *choose(store *s, const runlog_state *state, const staging_seen *one, int64_t now,
                          int64_t grace, load *l, bool *other, err *why) {
  int64_t idle;
  *l = (load){.last = INT64_MIN};
  if (s->ops->list(s, one->key, false, weigh, l, NULL) < 0) return NULL;
  if (l->last == INT64_MIN) l->last = one->made;
  if (__builtin_sub_overflow(now, l->last, &idle)) return NULL; /* it has gone */
  const char *reason = judge(state, one, idle, grace);
  *other = reason && s->ops->check_owner && s->ops->check_owner(s, one->key, why) < 0;
  return *other ? why->text : reason;
}

/* What was given up somebody may go on with, if what says so is lost. */
static int take_away(store *s, runlog *log, const staging_seen *one, err *e) {
  const runlog_attempt *a = one->gone ? NULL : runlog_find_nonce(runlog_view(log), one->nonce);
  bool given_up = a && a->fate == RUNLOG_SWEPT;
  int rc = given_up ? removal_announce(s, log, a->n, e) : 0;
  if (rc == 0) rc = staging_remove(s, one->key, e);
  if (rc < 0 || !given_up) return rc;
  if (s->no_delete) return removal_withdraw(s, log, a->n, e);
  return removal_clear(s, log, a->n, false, NULL, NULL, e);
}

int staging_tidy(store *s, runlog *log, int64_t now, int64_t grace_ns, bool dry, staging_told *told,
                 void *ctx, err *e) {
  staging_list all;
  int stopped = 0, rc = staging_look(s, log, &all, e);
  for (size_t i = 0; rc == 0 && stopped == 0 && i < all.count; i++) {
    const staging_seen *one = &all.at[i];
    load l;
    err why = {0};
    bool other = false;
    const char *reason = choose(s, runlog_view(log), one, now, grace_ns, &l, &other, &why);
    if (!reason) continue;
    int done = dry || other ? 0 : take_away(s, log, one, &why);
    stopped = told(ctx, one->key, done < 0 ? why.text : reason, l.bytes, other, done);
  }
  staging_list_free(&all);
  return rc < 0 ? rc : stopped;
}
