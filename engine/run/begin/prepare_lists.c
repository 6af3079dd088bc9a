/* prepare_lists: restores what is named beside the newest checkpoint: by the lists that were saved with it, and
 * by its own files.
 *
 * A list's framework may refuse to start where one of them is missing. What only the checkpoint itself names
 * its framework may want at the end, and lives without: the start does not wait for that (run_later.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "commit/companions_stored.h"
#include "event/pointers.h"
#include "run/begin/prepare.h"

static const survey_unit *unit_here(const survey *s, const char *group, const char *unit) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].group, group) == 0 && strcmp(s->units[i].name, unit) == 0)
      return &s->units[i];
  return NULL;
}

/* ---- what only the checkpoint names ---- */

struct wishing {
  const struct prepare *prepare;
  const char *dir;
  names *out;
};

static int add_bases(names *to, const names *says, err *e) {
  char base[FS_PATH_MAX];
  for (size_t i = 0; i < says->count; i++)
    if (pointers_base(says->at[i], base, sizeof base) && !names_add(to, base))
      return err_set(e, ERR_NOMEM, "prepare: out of memory");
  return 0;
}

static int read_wish(void *ctx, const fs_entry *entry, err *e) {
  const struct wishing *w = ctx;
  const char *key = S_ISREG(entry->st->st_mode) ? pointers_wish(entry->name) : NULL;
  char path[FS_PATH_MAX];
  names says = {0};
  buf text;
  if (!key || fs_join(path, w->dir, entry->name, NULL) < 0)
    return S_ISDIR(entry->st->st_mode) ? FS_SKIP : 0;
  buf_init(&text, POINTERS_BYTES_MAX + 1);
  int rc = 0;
  if (fs_read(w->prepare->io, path, POINTERS_BYTES_MAX, &text, NULL) == 0)
    rc = pointers_read_json(text.data, text.len, key, &says, e);
  if (rc == 0) rc = add_bases(w->out, &says, e);
  names_free(&says);
  buf_free(&text);
  return rc;
}

/* True if a list was saved with it, or that cannot be told. */
static bool has_list(const struct prepare *p, run_group *g, const runlog_commit *c) {
  run *r = p->run;
  char key[STORE_KEY_MAX];
  const manifest *own;
  manifest m = {0};
  bool found = false;
  if (c->companions.files == 0) return false;
  if (run_manifest(r, g, c, &own, NULL) < 0 ||
      companions_manifest(r->store, g->group.prefix, c->attempt, &c->companions,
                          &(companions_units){own, runlog_view(g->group.log)}, &m, key, NULL) < 0)
    return true;
  for (size_t i = 0; i < m.count; i++) {
    const pointer_row *row = pointers_row(m.entries[i].name);
    found |= row && row->form == POINTER_LIST;
  }
  manifest_free(&m);
  return found;
}

/* Finds the names of those for which the start need not wait, of a checkpoint without a list. */
static int find_wishes(const struct prepare *p, run_group *g, const runlog_commit *c, names *out,
                       err *e) {
  char group[FS_PATH_MAX], dir[FS_PATH_MAX];
  struct wishing w = {p, dir, out};
  err why = {0};
  if (!run_later_may(p->run, c) || fs_join(group, p->run->places.dir, g->group.prefix, NULL) < 0 ||
      fs_join(dir, group, c->unit, NULL) < 0)
    return 0;
  int rc = fs_list(p->io, dir, read_wish, &w, &why);
  names_sort_unique(out);
  return rc == ERR_NOMEM ? err_set(e, rc, "%s", why.text) : 0;
}

/* ---- all that is named ---- */

/* What one checkpoint names, and what may still be restored of that. */
struct listing {
  struct prepare *prepare;
  const survey *survey;
  run_group *group;
  char *unit, *needs; /* copies: the log may move */
  names wishes;
  bool required; /* without one of them its framework does not start */
  uint64_t room;
};

/* Half of the free disk; of what its framework lives without, no more than twice the checkpoint's own
 * bytes: a start that ends waits for a person, and that is worse than one that takes long. */
static uint64_t room_for(const struct prepare *p, const runlog_commit *list, bool required) {
  struct statvfs disk;
  uint64_t room = required ? UINT64_MAX : 2 * list->bytes;
  if (statvfs(p->run->places.dir, &disk) < 0) return room;
  uint64_t half = (uint64_t)disk.f_bavail * disk.f_frsize / 2;
  return half < room ? half : room;
}

static int restore_now(const struct listing *l, const runlog_commit *c, const char *unit, err *e) {
  struct prepare *p = l->prepare;
  err why = {0};
  int rc = prepare_restore_commit(p, l->survey, l->group, c, &why);
  if (rc == 0 || !prepare_is_damage(rc)) {
    if (rc < 0 && e) *e = why;
    return rc;
  }
  log_say(p->run->env->log, LOG_ERROR,
          "%s, which what is saved with the newest names, is NOT restored: %s", unit, why.text);
  return 0;
}

/* Restores one of the units that are named, if there is room; the list's own reader tells what comes
 * of one that is not there. */
static int restore_listed(struct listing *l, const char *unit, err *e) {
  struct prepare *p = l->prepare;
  run_group *g = l->group;
  const runlog_commit *c = runlog_newest(runlog_view(g->group.log), unit);
  const survey_unit *here = unit_here(l->survey, g->group.prefix, unit);
  if (!c || prepare_is_damaged(p, g, c) || (here && prepare_loads(p, here))) return 0;
  if (c->bytes > l->room) {
    log_say(p->run->env->log, LOG_WARN,
            "%s is not restored, though what is saved with the newest names it: that and what else "
            "is named is more than %shalf of the free disk",
            unit, l->required ? "" : "twice the newest, or than ");
    return 0;
  }
  l->room -= c->bytes;
  int rc = here ? prepare_make_way(p, here, l->unit, e) : 0;
  if (rc < 0) return rc;
  c = runlog_newest(runlog_view(g->group.log), unit);
  if (names_has(&l->wishes, unit) && run_later_may(p->run, c))
    return run_later_add(p->run, g, c, l->unit, here != NULL, e);
  return restore_now(l, c, unit, e);
}

static int restore_each(struct listing *l, err *e) {
  char unit[FS_PATH_MAX];
  int rc = 0;
  for (const char *at = l->needs; rc == 0 && *at;) {
    size_t len = strcspn(at, "/");
    snprintf(unit, sizeof unit, "%.*s", (int)len, at);
    rc = restore_listed(l, unit, e);
    at += len + (at[len] == '/');
  }
  return rc;
}

static int restore_list(struct prepare *p, run_group *g, const survey *s, const runlog_commit *c,
                        err *e) {
  struct listing l = {.prepare = p,
                      .survey = s,
                      .group = g,
                      .unit = strdup(c->unit),
                      .needs = strdup(c->needs),
                      .required = has_list(p, g, c)};
  int rc = l.unit && l.needs ? 0 : err_set(e, ERR_NOMEM, "prepare: out of memory");
  l.room = room_for(p, c, l.required);
  if (rc == 0 && !l.required) rc = find_wishes(p, g, c, &l.wishes, e);
  if (rc == 0) rc = restore_each(&l, e);
  free(l.unit);
  free(l.needs);
  names_free(&l.wishes);
  return rc;
}

static bool goes_on_from(const struct prepare *p, const run_group *g, const runlog_commit *c) {
  if (*p->named) return p->named_group == g && p->named_commit == c->n;
  return run_newest_of_series(runlog_view(g->group.log), c);
}

/* Restores for the newest of each kind that is here, or the one that was asked for, what is named beside
 * it: a list is put back with it, and its framework may refuse to start where one is missing. */
int prepare_restore_lists(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (g->foreign || !g->group.log) continue;
    for (size_t k = 0; rc == 0 && k < runlog_view(g->group.log)->commit_count; k++) {
      const runlog_commit *c = &runlog_view(g->group.log)->commits[k];
      if (c->needs && goes_on_from(p, g, c) && unit_here(s, g->group.prefix, c->unit))
        rc = restore_list(p, g, s, c, e);
    }
  }
  return rc;
}
