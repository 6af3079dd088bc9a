/* list() and exists(): the bucket's keys as the vtable promises them, in byte order of components.
 * A bucket has another order ("a-b" before "a/b"), so a listing is collected and then told. */
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"

enum { KEYS_MAX = 4 << 20 }; /* of one listing: bounded memory */

static int found_some(void *ctx, const s3_page *page, err *e) {
  (void)ctx, (void)page, (void)e;
  return 1;
}

int s3_exists(store *base, err *e) {
  s3_store *s = (s3_store *)base;
  int rc = s3_pages(s, s->prefix, false, 1, found_some, NULL, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  return err_set(e, ERR_NOSTORE, "nothing is at %s%s%s yet", s->shown, *s->prefix ? "/" : "",
                 s->prefix);
}

typedef struct listing {
  s3_store *s;
  bool all; /* nothing may be left out */
  store_keys keys;
} listing;

static int add(store_keys *l, const char *key, const s3_entry *from, err *e) {
  if (l->count == KEYS_MAX)
    return err_set(e, ERR_LIMIT, "a listing with more than %d keys", KEYS_MAX);
  int rc = store_keys_add(l, key, from->is_prefix, &from->object);
  return rc < 0 ? err_set(e, rc, "no memory for a listing") : 0;
}

/* Among ours, keys that none of ours could be, made by other tools ("dir/", "a//b"), are not told: no
 * call of the vtable could be given them. Of another tool's nothing may be left out, but for the
 * empty objects by which some show a directory. */
static int pass_over(const listing *l, const s3_entry *entry, err *e) {
  size_t len = strlen(entry->path);
  bool folder = len == 0 || (entry->path[len - 1] == '/' && entry->object.size == 0);
  if (!l->all || entry->is_prefix || folder) return 0;
  return err_set(e, ERR_INVAL,
                 "%s/%s: this key cannot be the name of a file: it has an empty component, "
                 "\".\" or \"..\" in it, or more than %d bytes",
                 l->s->shown, entry->path, STORE_KEY_MAX);
}

static int add_page(void *ctx, const s3_page *page, err *e) {
  listing *l = ctx;
  int rc = 0;
  char key[STORE_KEY_MAX + 1];
  for (size_t i = 0; rc == 0 && i < page->count; i++) {
    char *path = page->entries[i].path;
    size_t len = strlen(path);
    if (page->entries[i].is_prefix && len && path[len - 1] == '/') path[len - 1] = 0;
    rc = s3_key_of(l->s, path, key) ? add(&l->keys, key, &page->entries[i], e)
                                    : pass_over(l, &page->entries[i], e);
  }
  return rc;
}

/* An object comes before the prefix of its name. */
static int order(const void *x, const void *y) {
  const store_found *a = x, *b = y;
  int by_key = store_key_order(a->key, b->key);
  return by_key ? by_key : a->is_prefix - b->is_prefix;
}

int s3_list(store *base, const char *prefix, bool delimited, store_list_fn *fn, void *ctx, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  listing l = {.s = s, .all = s3_tells_all(s, prefix)};
  int rc = s3_path(s, prefix, path, e);
  if (rc == 0) rc = s3_pages(s, path, delimited, S3_PAGE, add_page, &l, e);
  const store_keys *found = &l.keys;
  if (rc == 0 && found->count) qsort(found->at, found->count, sizeof *found->at, order);
  for (size_t i = 0; rc == 0 && i < found->count; i++)
    rc = fn(ctx, found->at[i].key, found->at[i].is_prefix,
            found->at[i].is_prefix ? NULL : &found->at[i].object);
  store_keys_free(&l.keys);
  return rc;
}
