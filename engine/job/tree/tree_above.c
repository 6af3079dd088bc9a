/* tree: takes a place that is removed out of the records of the places above. */
#include <stdlib.h>
#include <string.h>

#include "job/tree/tree_place.h"
#include "prims/fs.h"

/* Others may take entries out at the same time, so this is tried up to so many times. */
enum { RACES = 50 };

static bool goes(const char *removed, const char *name) {
  size_t len = strlen(removed);
  return strncmp(name, removed, len) == 0 && (name[len] == 0 || name[len] == '/');
}

/* Takes out the entries that go. Returns how many did. */
static size_t drop(manifest *m, const char *removed) {
  size_t kept = 0, count = m->count;
  for (size_t i = 0; i < count; i++) {
    manifest_entry *entry = &m->entries[i];
    if (!goes(removed, entry->name)) {
      m->entries[kept++] = *entry;
      continue;
    }
    free(entry->name);
    free(entry->blocks);
    free(entry->target);
  }
  m->count = kept;
  return count - kept;
}

static int put(store *s, const manifest *m, const char *tag, err *e) {
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = manifest_print(m, &text, e);
  if (rc == 0) rc = s->ops->replace_if(s, MANIFEST_NAME, text.data, text.len, tag, e);
  /* Where nobody arbitrates, only one writer at a time was promised. */
  if (rc == ERR_UNSUPPORTED)
    rc = s->ops->put(s, MANIFEST_NAME, text.data, text.len, STORE_REPLACE, e);
  buf_free(&text);
  return rc;
}

/* A record that cannot be read is held against nothing, so it stays. A checkpoint of a run is not
 * ours to change. */
static int rewrite(store *s, const buf *text, const char *tag, const char *removed, err *e) {
  manifest m = {0};
  if (manifest_parse(text->data, text->len, MANIFEST_NAME, &m, NULL) < 0) return 0;
  int rc = 0;
  if (!m.policy && m.kind == MATCH_DIR && drop(&m, removed) > 0) {
    rc = manifest_seal(&m, e);
    if (rc == 0) rc = put(s, &m, tag, e);
  }
  manifest_free(&m);
  return rc;
}

/* True if there is no record that could be held against the rest. */
static bool is_nothing(int rc) {
  return rc == ERR_NOENT || rc == ERR_NOSTORE || rc == ERR_ACCESS || rc == ERR_LIMIT;
}

static int forget(store *s, const char *removed, err *e) {
  int rc = ERR_CONFLICT;
  for (int i = 0; i < RACES && rc == ERR_CONFLICT; i++) {
    char tag[STORE_TAG_MAX];
    buf text;
    buf_init(&text, MANIFEST_BYTES_MAX);
    rc = s->ops->get_tagged(s, MANIFEST_NAME, &text, tag, e);
    if (rc == 0) rc = rewrite(s, &text, tag, removed, e);
    buf_free(&text);
    if (is_nothing(rc)) rc = 0; /* a place without a record may be uploaded to just now */
  }
  return rc;
}

int tree_forget_above(const tree_job *p, const uri *where, err *e) {
  tree_place at = {.io = p->io, .where = *where};
  int rc = 0;
  while (rc == 0 && *fs_base(at.where.path)) {
    char parent[FS_PATH_MAX];
    fs_parent(at.where.path, parent);
    if (strcmp(parent, ".") == 0) *parent = 0;
    memcpy(at.where.path, parent, strlen(parent) + 1);
    const char *removed = where->path + strlen(parent);
    while (*removed == '/') removed++;
    rc = store_open(&at.where, p->io, p->log, &at.store, e);
    if (rc < 0) break;
    at.store->cancel = p->cancel;
    rc = forget(at.store, removed, e);
    tree_place_tidy(&at);
    store_close(at.store);
    at.store = NULL;
  }
  return rc;
}
