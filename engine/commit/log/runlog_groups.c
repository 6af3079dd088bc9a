/* runlog_groups: finds the logs below a place: the groups of a target. */
#include "runlog.h"

#include <stdbool.h>
#include <string.h>

#include "base/names.h"
#include "prims/fs.h"

/* A place that somebody named may be a whole disk. BARREN_MAX: directories in a row without a log;
 * ENTRIES_MAX: what stands in directories without a log, in all. */
enum { DEPTH_MAX = 16, BARREN_MAX = 5000, ENTRIES_MAX = 200000 };

/* The directories one level below a place. They are collected before any of them is entered, so
 * that a listing is never held open while another one runs. */
typedef struct dirs {
  names keys;
  size_t *left; /* how many more entries are looked at; NULL: all of them */
  int failure;
} dirs;

static int collect(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)object;
  dirs *d = ctx;
  if (d->left && *d->left == 0) return d->failure = ERR_LIMIT;
  if (d->left) --*d->left;
  if (!is_prefix || strcmp(fs_base(key), ".ckpt") == 0) return 0;
  return names_add(&d->keys, key) ? 0 : (d->failure = ERR_NOMEM);
}

/* Collects the keys of the directories that the log's attempts have or had, sorted. An attempt that
 * was given up has none: a group may have its name by now. */
static int owned_dirs(const runlog *log, names *out, err *e) {
  const runlog_state *st = runlog_view(log);
  char key[STORE_KEY_MAX];
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < st->attempt_count; i++) {
    if (st->attempts[i].fate == RUNLOG_SWEPT) continue;
    rc = runlog_key_dir(log, st->attempts[i].dir, key, e);
    if (rc == 0 && !names_add(out, key))
      rc = err_set(e, ERR_NOMEM, "list the groups: out of memory");
  }
  names_sort(out);
  return rc;
}

typedef struct walk {
  store *s;
  runlog_group_fn *fn;
  runlog_unread_fn *unread; /* NULL: a log that cannot be read ends the walk */
  void *ctx;
  bool bounded;
  size_t logs, barren, left; /* barren: since the last log */
  bool over;                 /* it is not walked on */
} walk;

/* Ends the walk: with an error where no log was found, else with a warning, since somebody's files
 * lie beside the runs. */
static int give_up(walk *w, const char *prefix, err *e) {
  w->over = true;
  if (w->logs > 0) {
    log_say(&w->s->log, LOG_WARN,
            "%s: too much lies here that is no run: groups are not looked for from here on",
            prefix);
    return 0;
  }
  return err_set(e, ERR_NOENT,
                 "no run was found in the first %zu directories, and the rest is not looked at: "
                 "name the target itself, not a place above it",
                 w->barren);
}

/* A directory below an unreadable log is not entered, since nobody can say which ones are its
 * checkpoints. */
typedef enum place_kind { NO_LOG, A_LOG, UNREADABLE } place_kind;

/* Reports the log at `prefix`, if there is one. */
static int report(walk *w, const char *prefix, names *owned, place_kind *kind, err *e) {
  runlog *log = NULL;
  err why = {0};
  int rc = runlog_open(w->s, prefix, &log, &why);
  *kind = rc < 0 ? UNREADABLE : runlog_view(log)->next > 0 ? A_LOG : NO_LOG;
  w->logs += *kind != NO_LOG;
  w->barren = *kind != NO_LOG ? 0 : w->barren + 1;
  if (rc < 0 && w->unread) return w->unread(w->ctx, prefix, rc, why.text);
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (*kind == A_LOG) {
    rc = owned_dirs(log, owned, e);
    if (rc == 0) rc = w->fn(w->ctx, log, e);
  }
  runlog_close(log);
  return rc;
}

static int visit(walk *w, const char *prefix, int depth, err *e);

static int visit_below(walk *w, const char *prefix, int depth, const names *owned, dirs *children,
                       err *e) {
  int rc = w->s->ops->list(w->s, prefix, true, collect, children, e);
  if (children->failure == ERR_LIMIT) return give_up(w, prefix, e);
  if (children->failure) return err_set(e, rc, "list the groups: out of memory");
  if (rc < 0) return rc;
  if (depth == DEPTH_MAX && children->keys.count > 0) {
    log_say(&w->s->log, LOG_WARN, "%s: groups deeper than %d levels are not looked for", prefix,
            DEPTH_MAX);
    return 0;
  }
  for (size_t i = 0; rc == 0 && !w->over && i < children->keys.count; i++)
    if (!names_has(owned, children->keys.at[i])) rc = visit(w, children->keys.at[i], depth + 1, e);
  return rc;
}

static int visit(walk *w, const char *prefix, int depth, err *e) {
  names owned = {0};
  dirs children = {0};
  place_kind kind;
  if (w->bounded && w->barren >= BARREN_MAX) return give_up(w, prefix, e);
  int rc = report(w, prefix, &owned, &kind, e);
  if (kind == NO_LOG && w->bounded) children.left = &w->left;
  if (rc == 0 && kind != UNREADABLE) rc = visit_below(w, prefix, depth, &owned, &children, e);
  names_free(&owned);
  names_free(&children.keys);
  return rc;
}

int runlog_groups(store *s, const char *prefix, runlog_group_fn *fn, void *ctx, err *e) {
  walk w = {.s = s, .fn = fn, .ctx = ctx};
  return visit(&w, prefix, 0, e);
}

int runlog_groups_all(store *s, const char *prefix, runlog_group_fn *fn, runlog_unread_fn *unread,
                      void *ctx, err *e) {
  walk w = {.s = s, .fn = fn, .unread = unread, .ctx = ctx, .bounded = true, .left = ENTRIES_MAX};
  return visit(&w, prefix, 0, e);
}
