/* gs: removes many objects, one request each, some at a time: the API has none for many at once. */
#include <stdlib.h>
#include <string.h>

#include "gs.h"

enum { AT_ONCE = 32, ROUNDS = 8 };

/* Waits for one removal; what is gone already is fine. */
static int land(s3_call *c, err *e) {
  err why = {0};
  int rc = s3_finish(c, &why);
  s3_end(c);
  return rc == 0 || rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

/* After the first failure nothing more is begun. */
static int remove_paths(s3_store *s, const char *const *paths, size_t count, err *e) {
  s3_call *calls = calloc(AT_ONCE, sizeof *calls);
  int rc = 0;
  if (!calls) return err_set(e, ERR_NOMEM, "no memory to remove objects");
  size_t begun = 0, ended = 0;
  while (ended < begun || (rc == 0 && begun < count)) {
    if (rc == 0 && begun < count && begun - ended < AT_ONCE) {
      s3_start(&calls[begun % AT_ONCE], s,
               &(s3_request){.verb = "remove", .method = "DELETE", .path = paths[begun]});
      begun++;
      continue;
    }
    err why = {0};
    int one = land(&calls[ended++ % AT_ONCE], &why);
    if (one < 0 && rc == 0) rc = err_set(e, one, "%s", why.text);
  }
  free(calls);
  return rc;
}

typedef struct removal {
  s3_store *s;
  size_t found;
} removal;

static int remove_page(void *ctx, const s3_page *page, err *e) {
  removal *r = ctx;
  const char **paths = calloc(page->count, sizeof(char *));
  if (!paths) return err_set(e, ERR_NOMEM, "no memory to remove objects");
  for (size_t i = 0; i < page->count; i++) paths[i] = page->entries[i].path;
  int rc = remove_paths(r->s, paths, page->count, e);
  r->found += page->count;
  free(paths);
  return rc;
}

int gs_remove_prefix(store *base, const char *prefix, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX] = "";
  int rc = *prefix ? s3_path(s, prefix, path, e) : store_key_check(prefix, e);
  for (int round = 0; rc == 0 && round < ROUNDS; round++) {
    removal r = {.s = s};
    rc = s3_pages(s, path, false, S3_PAGE, remove_page, &r, e);
    if (rc < 0 || r.found == 0) return rc;
  }
  if (rc < 0) return rc;
  return err_set(e, ERR_CONFLICT,
                 "%s/%.400s: somebody goes on making objects below it while it is removed",
                 s->shown, path);
}

int gs_remove_below(store *base, const char *prefix, const char *const *keys, size_t count,
                    err *e) {
  s3_store *s = (s3_store *)base;
  char(*room)[S3_PATH_MAX] = malloc(AT_ONCE * sizeof *room);
  const char *paths[AT_ONCE];
  int rc = room ? 0 : err_set(e, ERR_NOMEM, "no memory to remove objects");
  (void)prefix;
  for (size_t at = 0; rc == 0 && at < count;) {
    size_t n = 0;
    for (; rc == 0 && n < AT_ONCE && at < count; n++, at++) {
      rc = s3_path(s, keys[at], room[n], e);
      paths[n] = room[n];
    }
    if (rc == 0) rc = remove_paths(s, paths, n, e);
  }
  free(room);
  return rc;
}
