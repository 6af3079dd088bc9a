#include "removal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/vec.h"
#include "commit/manifest_read.h"
#include "commit/settle.h"

/* An object of a listing. */
typedef struct thing {
  char *key;
  char *id; /* of an upload that was begun and shows no object yet; else NULL */
  uint64_t size;
  int64_t mtime_ns;
  bool ours, raw;
} thing;

typedef struct removing {
  store *s;
  runlog *log;
  const log_sink *sink;
  const runlog_attempt *a;
  const runlog_commit *c; /* NULL: the attempt was given up */
  bool dry, told;         /* `told`: the caller tells what is removed one by one, uploads too */
  removal_found *found;
  char id[RUNLOG_NONCE_MAX];
  char dir[STORE_KEY_MAX], cleared[STORE_KEY_MAX];
  char clearing[STORE_KEY_MAX], gone[STORE_KEY_MAX];
  thing *things; /* the objects there, by the last listing */
  size_t count, room;
} removing;

int removal_key(const runlog *log, const char *what, const char *id, char out[STORE_KEY_MAX],
                err *e) {
  char rest[RUNLOG_NONCE_MAX + 32];
  snprintf(rest, sizeof rest, "%s%s", what, id);
  return runlog_join(runlog_prefix(log), rest, out, e);
}

/* ---- what stands there ---- */

static void things_free(removing *r) {
  for (size_t i = 0; i < r->count; i++) {
    free(r->things[i].key);
    free(r->things[i].id);
  }
  free(r->things);
  r->things = NULL;
  r->count = r->room = 0;
}

static int take_thing(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  removing *r = ctx;
  (void)is_prefix;
  if (!VEC_ROOM(r->things, r->count, r->room)) return ERR_NOMEM;
  thing *t = &r->things[r->count];
  *t = (thing){.key = strdup(key), .size = object->size, .mtime_ns = object->mtime_ns};
  if (!t->key) return ERR_NOMEM;
  r->count++;
  return 0;
}

static int look(removing *r, const char *prefix, err *e) {
  err why = {0};
  things_free(r);
  int rc = r->s->ops->list(r->s, prefix, false, take_thing, r, &why);
  return rc < 0 ? err_set(e, rc, "look for what is left of %s: %s", r->a->dir,
                          *why.text ? why.text : err_text(rc))
                : 0;
}

static const char *name_of(const char *key, const char *prefix) {
  return key + strlen(prefix) + 1;
}

/* ---- is it the attempt's? ---- */

static bool is_ours(const removing *r, const manifest *m) {
  if (m->attempt && strcmp(m->attempt, r->id) != 0) return false;
  return r->c ? digest_equal(&m->root, &r->c->root) : m->attempt != NULL;
}

/* True if the error is about the text itself, and does not say that it could not be read just
 * now. */
static bool is_of_text(int rc) {
  return rc == ERR_NOENT || rc == ERR_FORMAT || rc == ERR_VERSION || rc == ERR_CORRUPT ||
         rc == ERR_LIMIT || rc == ERR_INVAL;
}

/* Returns 1 if this is a manifest of the attempt's, then in *m; 0 if there is none, or another's. A
 * text that nobody can read is nobody's. */
static int read_ours(const removing *r, const char *key, buf *text, manifest *m, err *e) {
  err why = {0};
  buf_clear(text);
  int rc = r->s->ops->get(r->s, key, text, &why);
  if (rc == 0) rc = manifest_parse(text->data ? text->data : "", text->len, key, m, &why);
  if (rc < 0) return is_of_text(rc) ? 0 : err_set(e, rc, "%s", why.text);
  if (is_ours(r, m)) return 1;
  manifest_free(m);
  return 0;
}

/* Does the same for the manifest in a directory, whose key is then in `key`. */
static int read_dir(const removing *r, const char *prefix, char key[STORE_KEY_MAX], buf *text,
                    manifest *m, err *e) {
  int rc = manifest_key(prefix, key, e);
  return rc == 0 ? read_ours(r, key, text, m, e) : rc;
}

/* True for the manifest itself, as it was put. */
static bool is_manifest(const thing *t, const char *prefix, size_t len) {
  return strcmp(name_of(t->key, prefix), MANIFEST_NAME) == 0 && t->size == len;
}

/* True for the user's file at the top, which may be put there after the save. */
static bool is_metadata(const manifest *m, const thing *t, const char *name) {
  return m->kind == MATCH_DIR && !m->old && t->size <= MANIFEST_METADATA_MAX &&
         strcmp(name, MANIFEST_METADATA) == 0;
}

/* Marks the objects that the manifest names as ours, unless they are younger than `latest`. The
 * file at the top that the user may set or replace belongs to the checkpoint as long as its
 * manifest stands. */
static void choose_named(removing *r, const manifest *m, size_t len, const char *prefix,
                         int64_t latest) {
  bool stands = false;
  for (size_t i = 0; i < r->count; i++) {
    thing *t = &r->things[i];
    t->ours = is_manifest(t, prefix, len) && t->mtime_ns <= latest;
    stands |= t->ours;
  }
  for (size_t i = 0; i < r->count; i++) {
    thing *t = &r->things[i];
    const manifest_entry *entry = manifest_find(m, name_of(t->key, prefix));
    if (!entry && stands) t->ours |= is_metadata(m, t, name_of(t->key, prefix));
    if (!entry || entry->type != MANIFEST_FILE) continue;
    t->ours = (t->size == entry->size && t->mtime_ns <= latest) || (entry->outside && stands);
  }
  for (size_t i = 0; FAULT("names-not-asked") && i < r->count; i++) r->things[i].ours = true;
}

/* The note of what is gone of it belongs to it, too, and came after the commit. */
static int choose_note(removing *r, const manifest *m, const char *prefix, err *e) {
  manifest_thin_note note;
  for (size_t i = 0; i < r->count; i++) {
    if (strcmp(name_of(r->things[i].key, prefix), MANIFEST_THIN_NAME) != 0) continue;
    int rc = manifest_read_note(r->s, prefix, m, &note, e);
    if (rc < 0) return rc;
    r->things[i].ours |= rc == 1;
    if (rc == 1) manifest_thin_free(&note);
  }
  return 0;
}

static int choose_marked(removing *r, err *e) {
  for (size_t i = 0; i < r->count; i++) {
    thing *t = &r->things[i];
    store_object object;
    err why = {0};
    int rc = r->s->ops->head(r->s, t->key, &object, &why);
    if (rc < 0 && rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
    t->ours = rc == 0 && strcmp(object.mark, r->id) == 0;
    if (FAULT("marks-not-asked")) t->ours = true;
  }
  return 0;
}

/* ---- taking it away ---- */

static void count_things(const removing *r) {
  for (size_t i = 0; i < r->count; i++) {
    const thing *t = &r->things[i];
    if (t->ours) {
      r->found->objects++;
      r->found->bytes += t->size;
    } else {
      if (r->found->others++ == 0) snprintf(r->found->other, STORE_KEY_MAX, "%s", t->key);
      r->found->other_bytes += t->size;
    }
  }
}

static void tell_others(const removing *r, const char *where) {
  if (r->dry || r->found->others == 0) return;
  log_say(r->sink, LOG_WARN,
          "%s: %" PRIu64 " object%s there (%s first) not of the save that is removed: left, and "
          "named by gc from now on",
          where, r->found->others, r->found->others == 1 ? " is" : "s are", r->found->other);
}

/* Removes all objects that are ours, but for the key `last` (NULL: all of them). */
static int remove_ours(const removing *r, const char *prefix, const char *last, err *e) {
  const char **keys = calloc(r->count + 1, sizeof(char *));
  size_t count = 0;
  if (!keys) return err_set(e, ERR_NOMEM, "remove %s: out of memory", prefix);
  for (size_t i = 0; i < r->count; i++)
    if (r->things[i].ours && (!last || strcmp(r->things[i].key, last) != 0))
      keys[count++] = r->things[i].key;
  int rc = count ? store_remove_below(r->s, prefix, keys, count, e) : 0;
  free(keys);
  return rc;
}

static int put_cleared(const removing *r, err *e) {
  char text[64];
  err why = {0};
  int len = snprintf(text, sizeof text, "{\"attempt\":%" PRIu64 "}\n", r->a->n);
  if (r->dry) return 0;
  int rc = r->s->ops->put(r->s, r->cleared, text, (size_t)len, STORE_IF_ABSENT, &why);
  return rc == 0 || rc == ERR_EXISTS ? 0 : err_set(e, rc, "%s", why.text);
}

static int is_there(const removing *r, const char *key, err *e) {
  store_object object;
  err why = {0};
  int rc = r->s->ops->head(r->s, key, &object, &why);
  return rc == 0 ? 1 : rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

/* Says that a removal begins, where none has said so, and only then asks for a repair of the log. A
 * repair takes an epoch, and only then looks who has said so: one of the two sees the other, and
 * what is removed is in no repaired log. Where a manifest proves what goes, its text was put. */
static int announce(const removing *r, err *e) {
  err why = {0};
  if (r->dry) return 0;
  int rc = r->s->ops->put(r->s, r->clearing, "{}", 2, STORE_IF_ABSENT, &why);
  if (rc < 0 && rc != ERR_EXISTS) return err_set(e, rc, "%s", why.text);
  return FAULT("epoch-not-read-removal") ? 0 : runlog_ask_epoch(r->log, e);
}

/* ---- in a bucket ---- */

/* Returns 1 with the manifest of the deleted commit in *m and *text; it is kept where the next
 * removal finds it, if this one is cut short. 0: no manifest is left that could prove anything. */
static int find_text(const removing *r, buf *text, manifest *m, err *e) {
  char key[STORE_KEY_MAX];
  err why = {0};
  int rc = read_ours(r, r->clearing, text, m, e);
  if (rc != 0) return rc;
  rc = read_dir(r, r->dir, key, text, m, e);
  if (rc <= 0 || r->dry) return rc;
  /* `{}` stands there if a removal was begun before the manifest came: then a repair found its
   * commit, and let it go. */
  rc = r->s->ops->put(r->s, r->clearing, text->data, text->len, STORE_REPLACE, &why);
  if (rc == 0) return 1;
  manifest_free(m);
  return err_set(e, rc, "%s", why.text);
}

/* The manifest goes first: without it nobody takes the rest for a checkpoint. */
static int remove_named(removing *r, const manifest *m, size_t len, err *e) {
  char key[STORE_KEY_MAX];
  int64_t latest = 0;
  int rc = manifest_key(r->dir, key, e);
  if (rc == 0) rc = runlog_entry_time(r->log, r->c->n, &latest, e);
  if (rc < 0) return rc;
  choose_named(r, m, len, r->dir, latest);
  rc = choose_note(r, m, r->dir, e);
  if (rc < 0) return rc;
  count_things(r);
  if (r->dry) return 0;
  for (size_t i = 0; i < r->count; i++) {
    thing *t = &r->things[i];
    if (!t->ours || strcmp(t->key, key) != 0) continue;
    rc = r->s->ops->remove(r->s, key, e);
    if (rc < 0) return rc;
  }
  return remove_ours(r, r->dir, key, e);
}

static int remove_marked(removing *r, err *e) {
  int rc = choose_marked(r, e);
  if (rc < 0) return rc;
  count_things(r);
  return r->dry ? 0 : remove_ours(r, r->dir, NULL, e);
}

static int take_upload(void *ctx, const store_unfinished *what) {
  removing *r = ctx;
  int rc = take_thing(r, what->key, false, &(store_object){.size = what->bytes});
  if (rc < 0) return rc;
  thing *t = &r->things[r->count - 1];
  t->id = strdup(what->id);
  t->raw = what->raw;
  t->mtime_ns = what->begun_ns;
  return t->id ? 0 : ERR_NOMEM;
}

/* Gives the time when the attempt was over; INT64_MAX: it is not cleared yet. */
static int upload_end(store *s, runlog *log, const runlog_attempt *a, int64_t *out, err *e) {
  const runlog_commit *c = runlog_commit_of(runlog_view(log), a->n);
  char id[RUNLOG_NONCE_MAX], key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  if (c) return runlog_entry_time(log, c->n, out, e);
  *out = INT64_MAX;
  int rc = runlog_attempt_id(log, a->n, id, e);
  if (rc == 0) rc = removal_key(log, REMOVAL_CLEARED, id, key, e);
  if (rc < 0) return rc;
  rc = s->ops->head(s, key, &object, &why);
  if (rc == 0) *out = object.mtime_ns;
  return rc == 0 || rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

int removal_owns_upload(store *s, runlog *log, const runlog_attempt *a, int64_t begun_ns, err *e) {
  int64_t from = 0, to = 0;
  if (begun_ns <= 0) return 0;
  int rc = runlog_entry_time(log, a->n, &from, e);
  if (rc == 0) rc = upload_end(s, log, a, &to, e);
  return rc < 0 ? rc : begun_ns >= from && begun_ns <= to;
}

static int drop_upload(removing *r, const thing *t, err *e) {
  int rc = removal_owns_upload(r->s, r->log, r->a, t->mtime_ns, e);
  if (rc <= 0) return rc;
  return r->s->ops->discard(r->s, &(store_unfinished){.key = t->key, .id = t->id, .raw = t->raw},
                            e);
}

/* Removes uploads of which nothing shows yet. */
static int drop_uploads(removing *r, err *e) {
  store *s = r->s;
  err why = {0};
  if (!s->ops->unfinished || r->dry) return 0;
  things_free(r);
  int rc = s->ops->unfinished(s, r->dir, take_upload, r, &why);
  for (size_t i = 0; rc == 0 && i < r->count; i++) rc = drop_upload(r, &r->things[i], &why);
  return rc < 0 ? err_set(e, rc, "%s", *why.text ? why.text : err_text(rc)) : 0;
}

static int clear_bucket(removing *r, err *e) {
  manifest m = {0};
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  /* Where no manifest tells how names are spelt, all that is there is looked at under its own key. */
  int rc = store_spell(r->s, r->dir, STORE_SPELT_PLAIN, e);
  if (rc == 0 && r->c) rc = find_text(r, &text, &m, e);
  bool named = rc == 1;
  if (named) rc = manifest_spell(r->s, r->dir, &m, e);
  if (rc >= 0) rc = announce(r, e);
  if (rc == 0) rc = look(r, r->dir, e);
  if (rc == 0) rc = named ? remove_named(r, &m, text.len, e) : remove_marked(r, e);
  if (rc == 0 && !r->told) rc = drop_uploads(r, e);
  if (rc == 0) rc = put_cleared(r, e);
  if (rc == 0 && !r->dry) rc = r->s->ops->remove(r->s, r->clearing, e);
  if (rc == 0) tell_others(r, r->dir);
  manifest_free(&m);
  buf_free(&text);
  return rc;
}

/* ---- where directories are renamed ---- */

/* Returns 1 if the directory's manifest says that it is the attempt's. */
static int check_dir(const removing *r, const char *prefix, err *e) {
  char key[STORE_KEY_MAX];
  manifest m = {0};
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = read_dir(r, prefix, key, &text, &m, e);
  if (rc == 1) manifest_free(&m);
  buf_free(&text);
  return rc;
}

/* A directory that is called cleared is never looked at again, so it must not be when its manifest
 * was only not found for a moment. */
static int came_back(const char *prefix, err *e) {
  return err_set(e, ERR_CONFLICT, "%s: its manifest came back while it was looked at", prefix);
}

static int still_there(const char *key, err *e) {
  return err_set(e, ERR_IO, "%s was removed, and is there still", key);
}

/* Checks again what the manifest names: a file system may have hidden an object from the listing
 * for a moment. */
static int check_named(const removing *r, const manifest *m, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  for (size_t i = 0; i < m->count; i++) {
    const manifest_entry *entry = &m->entries[i];
    err why = {0};
    if (entry->type != MANIFEST_FILE) continue;
    if (snprintf(key, sizeof key, "%s/%s", r->gone, entry->name) >= (int)sizeof key) continue;
    int rc = r->s->ops->head(r->s, key, &object, &why);
    if (rc == 0 && object.size == entry->size) return still_there(key, e);
    if (rc < 0 && err_class_of(rc) == ERR_CLASS_RETRYABLE) return err_set(e, rc, "%s", why.text);
  }
  return 0;
}

/* Removes the objects that the manifest names from `gone`, and after all of them the manifest
 * itself: a removal that is cut short goes on by it. */
static int empty_named(removing *r, const manifest *m, const char *last, err *e) {
  int rc = remove_ours(r, r->gone, last, e);
  if (rc == 0) rc = check_named(r, m, e);
  if (rc == 0) rc = store_remove_below(r->s, r->gone, (const char *const[]){last}, 1, e);
  if (rc == 0) rc = is_there(r, last, e);
  return rc == 1 ? still_there(last, e) : rc;
}

/* Removes what `gone` holds. `back`: we renamed the directory, and so may put the objects of others
 * back. */
static int empty_gone(removing *r, bool back, err *e) {
  char key[STORE_KEY_MAX];
  manifest m = {0};
  buf text;
  err why = {0};
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = read_dir(r, r->gone, key, &text, &m, e);
  bool ours = rc == 1;
  if (rc >= 0) rc = look(r, r->gone, e);
  if (rc == 0 && !ours && r->count > 0) rc = check_dir(r, r->gone, e);
  if (rc == 1) rc = came_back(r->gone, e);
  if (rc == 0 && ours) {
    choose_named(r, &m, text.len, r->gone, INT64_MAX);
    rc = choose_note(r, &m, r->gone, e);
  }
  if (rc == 0) count_things(r);
  if (rc == 0 && ours && !r->dry) rc = empty_named(r, &m, key, e);
  /* `gone` has vanished by now, unless something is left in it. The rename finds that out, since a
   * listing does not show everything: no links. */
  back = back && rc == 0 && !r->dry && r->s->ops->publish(r->s, r->gone, r->dir, &why) == 0;
  if (rc == 0) tell_others(r, back ? r->dir : r->gone);
  manifest_free(&m);
  buf_free(&text);
  return rc;
}

/* Calls a directory cleared in which nothing can be proved to be ours: if a writer that was pushed
 * aside shows objects later, gc names them. */
static int leave_dir(removing *r, err *e) {
  int rc = look(r, r->dir, e);
  if (rc == 0 && r->count > 0) rc = check_dir(r, r->dir, e);
  if (rc != 0) return rc < 0 ? rc : came_back(r->dir, e);
  count_things(r);
  rc = put_cleared(r, e);
  if (rc == 0) tell_others(r, r->dir);
  return rc;
}

/* Makes the one rename. Returns 1 if the directory is at `gone`, and is ours; 0 if it is as it
 * was. */
static int rename_dir(removing *r, err *e) {
  err why = {0};
  int rc = settle_has_log(r->s, r->dir, e);
  if (rc > 0)
    return err_set(e, ERR_CONFLICT, "%s stays: by now a group with a log of its own lies there",
                   r->dir);
  if (rc == 0) rc = r->s->ops->publish(r->s, r->dir, r->gone, &why);
  if (rc == ERR_NOENT || rc == ERR_EXISTS)
    return err_set(e, ERR_CONFLICT, "%s: somebody else removes it at the same time", r->dir);
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  rc = check_dir(r, r->gone, e);
  if (rc != 0) return rc;
  return r->s->ops->publish(r->s, r->gone, r->dir, e);
}

static int clear_renamed(removing *r, err *e) {
  int rc = look(r, r->gone, e);
  if (rc < 0) return rc;
  if (r->count > 0) { /* an earlier removal began it */
    if (!r->found->cleared) rc = put_cleared(r, e);
    return rc < 0 ? rc : empty_gone(r, false, e);
  }
  if (r->found->cleared) return 0;
  rc = announce(r, e);
  if (rc == 0) rc = check_dir(r, r->dir, e);
  if (rc <= 0) return rc < 0 ? rc : leave_dir(r, e);
  if (r->dry) {
    memcpy(r->gone, r->dir, sizeof r->gone); /* a dry run looks where the directory is still */
    return empty_gone(r, false, e);
  }
  rc = rename_dir(r, e);
  if (rc <= 0) return rc < 0 ? rc : leave_dir(r, e);
  rc = put_cleared(r, e);
  return rc < 0 ? rc : empty_gone(r, true, e);
}

/* ---- both ---- */

static int begin(removing *r, uint64_t attempt, err *e) {
  const runlog_state *state = runlog_view(r->log);
  r->a = runlog_find_attempt(state, attempt);
  r->c = r->a ? runlog_commit_of(state, attempt) : NULL;
  if (!r->a || (r->c ? r->c->life != RUNLOG_DELETED : r->a->fate != RUNLOG_SWEPT))
    return err_set(e, ERR_INVAL, "attempt %" PRIu64 " is not given up in the log: its files stay",
                   attempt);
  int rc = runlog_attempt_id(r->log, attempt, r->id, e);
  if (rc == 0) rc = runlog_key_dir(r->log, r->a->dir, r->dir, e);
  if (rc == 0) rc = removal_key(r->log, REMOVAL_CLEARED, r->id, r->cleared, e);
  if (rc == 0) rc = removal_key(r->log, REMOVAL_CLEARING, r->id, r->clearing, e);
  return rc < 0 ? rc : removal_key(r->log, REMOVAL_GONE, r->id, r->gone, e);
}

/* Who called it cleared had asked. */
int removal_announce(store *s, runlog *log, uint64_t attempt, err *e) {
  removing r = {.s = s, .log = log};
  int rc = begin(&r, attempt, e);
  if (rc == 0) rc = is_there(&r, r.cleared, e);
  return rc == 0 ? announce(&r, e) : rc < 0 ? rc : 0;
}

/* A repair that took its epoch after the announcement looks for such words first, and for what is
 * staged after them: it sees one of the two, or nothing of the attempt. */
int removal_withdraw(store *s, runlog *log, uint64_t attempt, err *e) {
  removing r = {.s = s, .log = log};
  int rc = begin(&r, attempt, e);
  if (rc == 0) rc = look(&r, r.gone, e);
  if (rc == 0 && r.count == 0) rc = check_dir(&r, r.dir, e);
  bool over = rc == 0 && r.count == 0;
  things_free(&r);
  return over ? s->ops->remove(s, r.clearing, e) : rc < 0 ? rc : 0;
}

/* Counts the objects that stand there although it was cleared: nobody may remove them. They are
 * others', and have the names that others gave them. */
static int count_rest(removing *r, err *e) {
  int rc = store_spell(r->s, r->dir, STORE_SPELT_PLAIN, e);
  if (rc == 0) rc = look(r, r->dir, e);
  if (rc == 0) count_things(r);
  return rc;
}

int removal_clear(store *s, runlog *log, uint64_t attempt, bool dry, const log_sink *sink,
                  removal_found *found, err *e) {
  removal_found own = {0};
  removing r = {.s = s,
                .log = log,
                .sink = sink,
                .dry = dry,
                .told = found != NULL,
                .found = found ? found : &own};
  *r.found = own;
  int rc = begin(&r, attempt, e);
  bool renames = store_can(s, STORE_CAP_PUBLISH);
  if (rc == 0) rc = is_there(&r, r.cleared, e);
  if (rc >= 0) {
    r.found->cleared = rc == 1;
    if (FAULT("cleared-not-asked")) r.found->cleared = false;
    rc = 0;
    if (renames)
      rc = clear_renamed(&r, e);
    else if (!r.found->cleared)
      rc = clear_bucket(&r, e);
    if (rc == 0 && !dry && (renames || r.found->cleared)) /* one that cleared it may have died */
      rc = s->ops->remove(s, r.clearing, e);
    if (rc == 0 && found && r.found->cleared) rc = count_rest(&r, e);
  }
  things_free(&r);
  store_spell(s, r.dir, STORE_SPELT_1, NULL); /* it is over */
  return rc;
}
