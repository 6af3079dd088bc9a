/* Finding the logs below a place: the groups of a target. */
#include "runlog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

/* The directories one level below a place. They are collected before any of them is entered, so
 * that a listing is never held open while another one runs. */
typedef struct names {
  char **at;
  size_t count, room;
  int failure;
} names;

static void names_free(names *n) {
  for (size_t i = 0; i < n->count; i++) free(n->at[i]);
  free(n->at);
}

static int collect(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)object;
  names *n = ctx;
  const char *slash = strrchr(key, '/');
  if (!is_prefix || strcmp(slash ? slash + 1 : key, ".ckpt") == 0) return 0;
  if (n->count == n->room) {
    size_t room = n->room ? 2 * n->room : 16;
    char **grown = realloc(n->at, room * sizeof *grown);
    if (!grown) return n->failure = ERR_NOMEM;
    n->at = grown;
    n->room = room;
  }
  n->at[n->count] = strdup(key);
  if (!n->at[n->count]) return n->failure = ERR_NOMEM;
  n->count++;
  return 0;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The keys of the directories that the log's attempts have or had, sorted. One that was given up
 * has none: a group may have its name by now. */
static int owned_dirs(const runlog *log, names *out, err *e) {
  const runlog_state *st = runlog_view(log);
  char key[STORE_KEY_MAX];
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < st->attempt_count; i++) {
    if (st->attempts[i].fate == RUNLOG_SWEPT) continue;
    rc = runlog_key_dir(log, st->attempts[i].dir, key, e);
    if (rc == 0 && (rc = collect(out, key, true, NULL)) < 0)
      err_set(e, rc, "list the groups: out of memory");
  }
  if (rc == 0 && out->count > 1) qsort(out->at, out->count, sizeof *out->at, by_text);
  return rc;
}

typedef struct walk {
  store *s;
  runlog_group_fn *fn;
  runlog_unread_fn *unread; /* NULL: a log that cannot be read ends the walk */
  void *ctx;
} walk;

/* Reports the log at `prefix`, if there is one. *closed: what is below it is not to be entered,
 * since nobody can say which directories are its checkpoints. */
static int report(const walk *w, const char *prefix, names *owned, bool *closed, err *e) {
  runlog *log = NULL;
  err why = {0};
  int rc = runlog_open(w->s, prefix, &log, &why);
  *closed = rc < 0;
  if (rc < 0 && w->unread) return w->unread(w->ctx, prefix, rc, why.text);
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (runlog_view(log)->next > 0) {
    rc = owned_dirs(log, owned, e);
    if (rc == 0) rc = w->fn(w->ctx, prefix, e);
  }
  runlog_close(log);
  return rc;
}

static int visit(const walk *w, const char *prefix, int depth, err *e);

static int visit_below(const walk *w, const char *prefix, int depth, const names *owned, err *e) {
  names children = {0};
  int rc = w->s->ops->list(w->s, prefix, true, collect, &children, e);
  if (rc < 0) {
    if (children.failure) err_set(e, rc, "list the groups: out of memory");
    goto out;
  }
  if (depth == DEPTH_MAX && children.count > 0) {
    log_say(&w->s->log, LOG_WARN, "%s: groups deeper than %d levels are not looked for", prefix,
            DEPTH_MAX);
    goto out;
  }
  for (size_t i = 0; rc == 0 && i < children.count; i++)
    if (!owned->count ||
        !bsearch(&children.at[i], owned->at, owned->count, sizeof *owned->at, by_text))
      rc = visit(w, children.at[i], depth + 1, e);
out:
  names_free(&children);
  return rc;
}

static int visit(const walk *w, const char *prefix, int depth, err *e) {
  names owned = {0};
  bool closed = false;
  int rc = report(w, prefix, &owned, &closed, e);
  if (rc == 0 && !closed) rc = visit_below(w, prefix, depth, &owned, e);
  names_free(&owned);
  return rc;
}

int runlog_groups(store *s, const char *prefix, runlog_group_fn *fn, void *ctx, err *e) {
  walk w = {.s = s, .fn = fn, .ctx = ctx};
  return visit(&w, prefix, 0, e);
}

int runlog_groups_all(store *s, const char *prefix, runlog_group_fn *fn, runlog_unread_fn *unread,
                      void *ctx, err *e) {
  walk w = {.s = s, .fn = fn, .unread = unread, .ctx = ctx};
  return visit(&w, prefix, 0, e);
}
