/* list() and exists(): the bucket's keys as the vtable promises them, in byte order of components.
 * A bucket has another order ("a-b" before "a/b"), so a listing is collected and then told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"

enum { KEYS_MAX = 4 << 20 }; /* of one listing: bounded memory */

int s3_exists(store *base, err *e) {
  s3_store *s = (s3_store *)base;
  s3_page page;
  char *next = NULL;
  bool found = false;
  unsigned empty = 0;
  int rc;
  do { /* a page may be empty and not the last */
    rc = s3_page_get(s, s->prefix, false, 1, next, &page, e);
    found = page.count > 0;
    if (rc == 0 && !found && page.next && ++empty > S3_EMPTY_MAX) rc = s3_endless(s, e);
    free(next);
    next = page.next;
    page.next = NULL;
    s3_page_free(&page);
  } while (rc == 0 && !found && next);
  free(next);
  if (rc == 0 && !found)
    rc = err_set(e, ERR_NOSTORE, "nothing is at s3://%s%s%s yet", s->bucket, *s->prefix ? "/" : "",
                 s->prefix);
  return rc;
}

typedef struct item {
  char *key;
  bool is_prefix;
  store_object object;
} item;

typedef struct items {
  item *all;
  size_t count, room;
} items;

static void items_free(items *l) {
  for (size_t i = 0; i < l->count; i++) free(l->all[i].key);
  free(l->all);
}

static int add(items *l, const char *key, const s3_entry *from, err *e) {
  if (l->count == KEYS_MAX)
    return err_set(e, ERR_LIMIT, "a listing with more than %d keys", KEYS_MAX);
  if (l->count == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    item *made = realloc(l->all, room * sizeof *made);
    if (!made) return err_set(e, ERR_NOMEM, "no memory for a listing");
    l->all = made;
    l->room = room;
  }
  char *copy = strdup(key);
  if (!copy) return err_set(e, ERR_NOMEM, "no memory for a listing");
  l->all[l->count++] = (item){copy, from->is_prefix, from->object};
  return 0;
}

/* Keys that none of ours could be, made by other tools ("dir/", "a//b"), are not told: no call of
 * the vtable could be given them. */
static int add_page(const s3_store *s, const s3_page *page, items *l, err *e) {
  int rc = 0;
  char key[STORE_KEY_MAX + 1];
  for (size_t i = 0; rc == 0 && i < page->count; i++) {
    char *path = page->entries[i].path;
    size_t len = strlen(path);
    if (page->entries[i].is_prefix && len && path[len - 1] == '/') path[len - 1] = 0;
    if (s3_key_of(s, path, key)) rc = add(l, key, &page->entries[i], e);
  }
  return rc;
}

/* An object comes before the prefix of its name. */
static int order(const void *x, const void *y) {
  const item *a = x, *b = y;
  int by_key = store_key_order(a->key, b->key);
  return by_key ? by_key : a->is_prefix - b->is_prefix;
}

static int collect(s3_store *s, const char *path, bool delimited, items *l, err *e) {
  char *next = NULL;
  unsigned empty = 0;
  int rc;
  do {
    s3_page page;
    rc = s3_page_get(s, path, delimited, S3_PAGE, next, &page, e);
    if (rc == 0) rc = add_page(s, &page, l, e);
    empty = page.count > 0 ? 0 : empty + 1;
    if (rc == 0 && page.next && empty > S3_EMPTY_MAX) rc = s3_endless(s, e);
    free(next);
    next = page.next;
    page.next = NULL;
    s3_page_free(&page);
  } while (rc == 0 && next);
  free(next);
  return rc;
}

int s3_list(store *base, const char *prefix, bool delimited, store_list_fn *fn, void *ctx, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  items found = {0};
  int rc = s3_path(s, prefix, path, e);
  if (rc == 0) rc = collect(s, path, delimited, &found, e);
  if (rc == 0 && found.count) qsort(found.all, found.count, sizeof *found.all, order);
  for (size_t i = 0; rc == 0 && i < found.count; i++)
    rc = fn(ctx, found.all[i].key, found.all[i].is_prefix,
            found.all[i].is_prefix ? NULL : &found.all[i].object);
  items_free(&found);
  return rc;
}
