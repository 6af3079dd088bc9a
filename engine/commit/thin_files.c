#include "thin_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/manifest_read.h"

typedef struct taking {
  store *s;
  runlog *log;
  const runlog_commit *c; /* until something is appended or read */
  uint64_t attempt;
  removal_found *found;
  char id[RUNLOG_NONCE_MAX], dir[STORE_KEY_MAX], done[STORE_KEY_MAX];
  manifest m;
  store_keys there;
  int64_t latest;    /* what came later is not what was committed */
  const char **keys; /* of those that go */
  size_t count;
} taking;

static int begin(taking *t, uint64_t commit, err *e) {
  t->c = runlog_find_commit(runlog_view(t->log), commit);
  if (!t->c || t->c->life != RUNLOG_LIVE || !t->c->thin.globs.count)
    return err_set(e, ERR_INVAL, "no files of commit %" PRIu64 " are gone in the log: all stay",
                   commit);
  t->attempt = t->c->attempt;
  int rc = runlog_attempt_id(t->log, t->attempt, t->id, e);
  if (rc == 0) rc = runlog_key_dir(t->log, t->c->dir, t->dir, e);
  return rc < 0 ? rc : removal_key(t->log, THIN_FILES_DONE, t->id, t->done, e);
}

static int is_done(const taking *t, err *e) {
  store_object object;
  err why = {0};
  int rc = t->s->ops->head(t->s, t->done, &object, &why);
  return rc == 0 ? 1 : rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

/* The manifest proves what goes. */
static int read_table(taking *t, err *e) {
  int rc = manifest_read_proven(t->s, t->dir, &t->c->root, &t->c->manifest, &t->m, e);
  if (rc < 0 || !t->m.attempt || strcmp(t->m.attempt, t->id) == 0) return rc;
  return err_set(e, ERR_CORRUPT, "%s: its manifest is another attempt's", t->dir);
}

static int note_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? 0 : store_keys_add(ctx, key, is_prefix, object);
}

static void note_other(const taking *t, const store_found *o) {
  if (t->found->others++ == 0) snprintf(t->found->other, STORE_KEY_MAX, "%s", o->key);
  t->found->other_bytes += o->object.size;
}

static bool is_its(const taking *t, const manifest_entry *entry, const store_object *object) {
  return object->size == entry->size && object->mtime_ns <= t->latest;
}

static int choose(taking *t, err *e) {
  err why = {0};
  const size_t len = strlen(t->dir) + 1;
  int rc = runlog_entry_time(t->log, t->c->n, &t->latest, e);
  if (rc < 0) return rc;
  rc = t->s->ops->list(t->s, t->dir, false, note_key, &t->there, &why);
  if (rc < 0)
    return err_set(e, rc, "look into %s: %s", t->dir, *why.text ? why.text : err_text(rc));
  t->keys = calloc(t->there.count + 1, sizeof *t->keys);
  if (!t->keys) return err_set(e, ERR_NOMEM, "take files of %s: out of memory", t->dir);
  for (size_t i = 0; i < t->there.count; i++) {
    const store_found *o = &t->there.at[i];
    const manifest_entry *entry = manifest_find(&t->m, o->key + len);
    if (!entry || entry->type != MANIFEST_FILE) continue;
    if (!manifest_thin_means(&t->m, entry, &t->c->thin.globs)) continue;
    if (!is_its(t, entry, &o->object)) {
      note_other(t, o);
      continue;
    }
    t->keys[t->count++] = o->key;
    t->found->objects++;
    t->found->bytes += o->object.size;
  }
  return 0;
}

/* Returns 1 if the note there says what the log says. */
static int says_so(const taking *t, err *e) {
  manifest_thin_note note;
  int rc = manifest_read_note(t->s, t->dir, &t->m, &note, e);
  if (rc <= 0) return rc;
  const bool same = names_same(names_list(&note.globs), names_list(&t->c->thin.globs));
  manifest_thin_free(&note);
  return same ? 1
              : err_set(e, ERR_CONFLICT, "%s: the note there says that other files are gone",
                        t->dir);
}

/* One that nobody can read, or that is about another save, gives way. What was put is read back: some stores
 * prove nothing. */
static int put_note(const taking *t, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  int rc = says_so(t, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  buf_init(&text, MANIFEST_THIN_BYTES_MAX);
  rc = manifest_note_key(t->dir, key, e);
  if (rc == 0) rc = manifest_thin_print(&t->m, &t->c->thin.globs, t->c->thin.newest, &text, e);
  if (rc == 0)
    rc = store_put_marked(t->s, key, text.data, text.len, STORE_REPLACE, t->m.attempt, e);
  buf_free(&text);
  if (rc == 0) rc = says_so(t, e);
  if (rc == 0) rc = err_set(e, ERR_IO, "%s was put, and cannot be read", key);
  return rc < 0 ? rc : 0;
}

/* A file system may still show, or have kept, what was removed; and a list may not have shown all that is there. */
static int check_gone(const taking *t, err *e) {
  for (size_t i = 0; i < t->m.count; i++) {
    const manifest_entry *entry = &t->m.entries[i];
    char key[STORE_KEY_MAX];
    store_object object;
    err why = {0};
    if (entry->type != MANIFEST_FILE || !manifest_thin_means(&t->m, entry, &t->c->thin.globs))
      continue;
    int rc = runlog_join(t->dir, entry->name, key, e);
    if (rc < 0) return rc;
    rc = t->s->ops->head(t->s, key, &object, &why);
    if (rc != 0 && rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
    if (rc == 0 && is_its(t, entry, &object))
      return err_set(e, ERR_IO, "%s was to be removed, and is there still", key);
  }
  return 0;
}

static int put_done(const taking *t, err *e) {
  char text[64];
  err why = {0};
  int len = snprintf(text, sizeof text, "{\"attempt\":%" PRIu64 "}\n", t->attempt);
  int rc = t->s->ops->put(t->s, t->done, text, (size_t)len, STORE_IF_ABSENT, &why);
  return rc == 0 || rc == ERR_EXISTS ? 0 : err_set(e, rc, "%s", why.text);
}

static void tell_others(const taking *t, const log_sink *sink) {
  if (t->found->others == 0) return;
  log_say(sink, LOG_WARN,
          "%s: %" PRIu64
          " object%s there (%s first) not what was saved, under a name that is to go: "
          "left",
          t->dir, t->found->others, t->found->others == 1 ? " is" : "s are", t->found->other);
}

static int take(taking *t, err *e) {
  int rc = put_note(t, e);
  const uint64_t n = t->c->n;
  if (rc == 0) rc = runlog_ask_epoch(t->log, e);
  t->c = runlog_find_commit(runlog_view(t->log), n);
  if (rc == 0 && !t->c) rc = err_set(e, ERR_CONFLICT, "%s: its commit is gone", t->dir);
  if (rc == 0 && t->count) rc = store_remove_below(t->s, t->dir, t->keys, t->count, e);
  if (rc == 0) rc = check_gone(t, e);
  return rc == 0 ? put_done(t, e) : rc;
}

int thin_files_remove(store *s, runlog *log, uint64_t commit, bool dry, const log_sink *sink,
                      removal_found *found, err *e) {
  taking t = {.s = s, .log = log, .found = found};
  *found = (removal_found){0};
  int rc = begin(&t, commit, e);
  if (rc == 0) rc = is_done(&t, e);
  found->cleared = rc == 1;
  if (rc != 0) return rc < 0 ? rc : 0;
  rc = read_table(&t, e);
  if (rc == 0) rc = choose(&t, e);
  if (rc == 0 && !dry) rc = take(&t, e);
  if (rc == 0 && !dry) tell_others(&t, sink);
  manifest_free(&t.m);
  store_keys_free(&t.there);
  free(t.keys);
  return rc;
}
