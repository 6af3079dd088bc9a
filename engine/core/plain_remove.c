/* plain: removals. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/plain.h"
#include "core/plain_place.h"
#include "prims/fs.h"

typedef struct look {
  bool has_log;
} look;

static int on_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  look *l = ctx;
  (void)is_prefix, (void)object;
  if (strncmp(key, ".ckpt/log/", 10) == 0 || strstr(key, "/.ckpt/log/")) l->has_log = true;
  return 0;
}

static int refuse_log(const plain_place *at, err *e) {
  look l = {0};
  int rc = at->store->ops->list(at->store, "", false, on_key, &l, e);
  if (rc < 0 && rc != ERR_NOSTORE) return rc;
  if (!l.has_log) return 0;
  return err_set(e, ERR_UNSUPPORTED,
                 "a run keeps its checkpoints at this place, with a log: ckpt-lua gc removes it");
}

/* All that it leads to would go, and the link itself could not. */
static int refuse_link(const plain_place *at, err *e) {
  struct stat st;
  if (strcmp(at->where.scheme, "file") != 0 ||
      at->io->lstat(at->io, AT_FDCWD, at->where.path, &st) < 0 || !S_ISLNK(st.st_mode))
    return 0;
  return err_set(e, ERR_INVAL, "%s is a symbolic link: name what it leads to, or remove the link",
                 at->where.path);
}

/* ---- what is in it ---- */

typedef struct names {
  char **list;
  bool *is_prefix;
  size_t count, room;
} names;

static void names_free(names *n) {
  for (size_t i = 0; i < n->count; i++) free(n->list[i]);
  free(n->list);
  free(n->is_prefix);
}

static int on_name(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  names *n = ctx;
  (void)object;
  if (strcmp(key, PLAIN_PART_NAME) == 0) return 0;
  if (n->count == n->room) {
    n->room = n->room ? 2 * n->room : 64;
    char **list = realloc(n->list, n->room * sizeof(char *));
    if (list) n->list = list;
    bool *kinds = realloc(n->is_prefix, n->room * sizeof *kinds);
    if (kinds) n->is_prefix = kinds;
    if (!list || !kinds) return ERR_NOMEM;
  }
  n->is_prefix[n->count] = is_prefix;
  n->list[n->count] = strdup(key);
  return n->list[n->count] && ++n->count ? 0 : ERR_NOMEM;
}

static int remove_names(store *s, const names *n, err *e) {
  static const char nothing[] = "{}\n";
  int rc = s->ops->put(s, PLAIN_PART_NAME, nothing, sizeof nothing - 1, STORE_REPLACE, e);
  if (rc == 0) rc = s->ops->remove(s, MANIFEST_NAME, e);
  for (size_t i = 0; rc == 0 && i < n->count; i++)
    rc = n->is_prefix[i] ? s->ops->remove_prefix(s, n->list[i], e)
                         : s->ops->remove(s, n->list[i], e);
  return rc;
}

/* All but the part of a record, which is there from the first removal to the last: what is half
 * gone never looks whole, nor like what another tool put there. */
static int empty(const plain_place *at, err *e) {
  names n = {0};
  int rc = at->store->ops->list(at->store, "", true, on_name, &n, e);
  if (rc == ERR_NOSTORE) rc = 0;
  if (rc == ERR_NOMEM) rc = err_set(e, rc, "list %s: out of memory", at->where.path);
  if (rc == 0 && n.count > 0) rc = remove_names(at->store, &n, e);
  names_free(&n);
  return rc;
}

/* The place as a name in the one above it: so a directory goes whole, and an object of that name
 * too. */
static int remove_below(const plain *p, const uri *where, err *e) {
  char parent[FS_PATH_MAX];
  uri above = *where;
  store *s = NULL;
  const char *name = fs_base(where->path);
  fs_parent(where->path, parent);
  if (strcmp(parent, ".") == 0) parent[0] = 0;
  memcpy(above.path, parent, strlen(parent) + 1);
  int rc = store_open(&above, p->io, p->log, &s, e);
  if (rc < 0) return rc;
  s->cancel = p->cancel;
  rc = s->ops->remove(s, name, e);
  if (rc == 0) rc = s->ops->remove_prefix(s, name, e);
  store_close(s);
  return rc;
}

int plain_delete(const plain *p, const char *where, err *e) {
  plain_place at = {0};
  int rc = plain_place_open(p, where, &at, e);
  if (rc == 0 && !*fs_base(at.where.path))
    rc = err_set(e, ERR_INVAL, "%s://%s is not removed as a whole: name a place in it",
                 at.where.scheme, at.where.host);
  if (rc == 0) rc = refuse_link(&at, e);
  if (rc == 0) rc = refuse_log(&at, e);
  if (rc == 0) rc = plain_forget_above(p, &at.where, e);
  if (rc == 0) rc = empty(&at, e);
  if (rc == 0) rc = remove_below(p, &at.where, e);
  plain_place_close(&at);
  return rc;
}
