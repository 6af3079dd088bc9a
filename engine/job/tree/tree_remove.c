/* tree: removals. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "job/tree/tree.h"
#include "job/tree/tree_place.h"
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

static int refuse_log(const tree_place *at, err *e) {
  look l = {0};
  int rc = at->store->ops->list(at->store, "", false, on_key, &l, e);
  if (rc < 0 && rc != ERR_NOSTORE) return rc;
  if (!l.has_log) return 0;
  return err_set(e, ERR_UNSUPPORTED,
                 "a run keeps its checkpoints at this place, with a log: `collect` removes it");
}

/* Refuses a link: everything that it leads to would go, and the link itself could not. */
static int refuse_link(const tree_place *at, err *e) {
  struct stat st;
  const char *dir = uri_dir(&at->where);
  if (!dir || at->io->lstat(at->io, AT_FDCWD, dir, &st) < 0 || !S_ISLNK(st.st_mode)) return 0;
  return err_set(e, ERR_INVAL, "%s is a symbolic link: name what it leads to, or remove the link",
                 dir);
}

/* ---- what is in it ---- */

static int on_name(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return strcmp(key, TREE_PART_NAME) == 0 ? 0 : store_keys_add(ctx, key, is_prefix, object);
}

static int remove_names(store *s, const store_keys *n, err *e) {
  static const char nothing[] = "{}\n";
  int rc = s->ops->put(s, TREE_PART_NAME, nothing, sizeof nothing - 1, STORE_REPLACE, e);
  if (rc == 0) rc = s->ops->remove(s, MANIFEST_NAME, e);
  for (size_t i = 0; rc == 0 && i < n->count; i++)
    rc = n->at[i].is_prefix ? s->ops->remove_prefix(s, n->at[i].key, e)
                            : s->ops->remove(s, n->at[i].key, e);
  return rc;
}

/* Removes everything but the partial record, which is there from the first removal to the last: so
 * a place that is half gone never looks whole, nor like files of another tool. */
static int empty(const tree_place *at, err *e) {
  store_keys n = {0};
  int rc = store_spell(at->store, "", STORE_SPELT_PLAIN, e);
  if (rc == 0) rc = at->store->ops->list(at->store, "", true, on_name, &n, e);
  if (rc == ERR_NOSTORE) rc = 0;
  if (rc == ERR_NOMEM) rc = err_set(e, rc, "list %s: out of memory", at->where.path);
  if (rc == 0 && n.count > 0) rc = remove_names(at->store, &n, e);
  store_keys_free(&n);
  return rc;
}

/* Removes the place as a name in the one above it: so a directory goes whole, and an object of that
 * name too. */
static int remove_below(const tree_job *p, const uri *where, err *e) {
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
  rc = store_spell(s, "", STORE_SPELT_RAW, e); /* the name as the URI has it */
  if (rc == 0) rc = s->ops->remove(s, name, e);
  if (rc == 0) rc = s->ops->remove_prefix(s, name, e);
  store_close(s);
  return rc;
}

int tree_delete(const tree_job *p, const char *where, err *e) {
  tree_place at = {0};
  int rc = tree_place_open(p, where, &at, e);
  if (rc == 0 && !*fs_base(at.where.path))
    rc = err_set(e, ERR_INVAL, "%s://%s is not removed as a whole: name a place in it",
                 at.where.scheme, at.where.host);
  if (rc == 0) rc = refuse_link(&at, e);
  if (rc == 0) rc = refuse_log(&at, e);
  if (rc == 0) rc = tree_forget_above(p, &at.where, e);
  if (rc == 0) rc = empty(&at, e);
  if (rc == 0) rc = remove_below(p, &at.where, e);
  tree_place_close(&at);
  return rc;
}
