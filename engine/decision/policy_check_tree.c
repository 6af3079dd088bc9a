/* policy_check_tree: holds a policy against the names and the numbers in a directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decision/policy_check_impl.h"
#include "prims/fs.h"

enum {
  ENTRIES_MAX = 50000,
  UNITS_MAX = 200, /* whose numbers and markers are looked at */
  NAMES_SHOWN = 5,
  TEXT_ROOM = 600,
  WAITING_MAX = 16 << 20
};

typedef struct tree {
  checking *c;
  size_t entries, units;
  json_t *fits;    /* {GLOB: true}: units that fit something */
  json_t *numbers; /* {NAME: true}: of the units */
  json_t *markers; /* {NAME: true if a unit has it} */
  buf others;      /* names that are no unit, for a message */
  size_t others_shown;
  const char *dir; /* that is listed, relative to the tree; "" for its top */
  buf waiting;     /* the directories that are to be listed, each with its NUL */
  err passed;      /* the first that was passed over */
  size_t passed_count;
} tree;

/* ---- what is there ---- */

static void take_numbers(tree *t, const detect_unit *unit) {
  json_t *all = NULL, *value;
  const char *name;
  char *text = policy_metrics(t->c->p, t->c->o->tree, unit, NULL, NULL);
  if (text && js_parse(text, strlen(text), "metrics", &all, NULL) == 0)
    json_object_foreach(all, name, value) if (!json_is_null(value))
        json_object_set_new(t->numbers, name, json_true());
  json_decref(all);
  free(text);
}

static void look_for_markers(tree *t, const char *path) {
  const io *io = t->c->o->io;
  const char *name;
  json_t *found;
  char dir[FS_PATH_MAX], file[FS_PATH_MAX];
  struct stat st;
  if (fs_join(dir, t->c->o->tree, path, NULL) < 0) return;
  json_object_foreach(t->markers, name, found) {
    if (json_is_true(found) || fs_join(file, dir, name, NULL) < 0) continue;
    if (io->lstat(io, AT_FDCWD, file, &st) == 0) json_object_set_new(t->markers, name, json_true());
  }
}

static void take_unit(tree *t, const char *path, const char *pattern, const match_unit *m) {
  t->units++;
  json_object_set_new(t->fits, pattern, json_true());
  if (t->units > UNITS_MAX) return;
  char own[FS_PATH_MAX], group[FS_PATH_MAX];
  snprintf(own, sizeof own, "%.*s", (int)m->name_len, path);
  fs_parent(own, group);
  take_numbers(t, &(detect_unit){.path = own,
                                 .name = fs_base(own),
                                 .group = strcmp(group, ".") == 0 ? "" : group,
                                 .kind = m->kind,
                                 .step = m->step,
                                 .reason = ""});
  if (m->kind == MATCH_DIR) look_for_markers(t, own);
}

static int visit(void *ctx, const fs_entry *entry, err *e) {
  tree *t = ctx;
  const bool is_dir = S_ISDIR(entry->st->st_mode);
  const rules *r = policy_rules(t->c->p);
  char path[FS_PATH_MAX];
  match_unit m;
  if (++t->entries > ENTRIES_MAX || checking_over(t->c)) return ERR_CANCELED;
  int rc = fs_join(path, t->dir, entry->name, e);
  if (rc < 0 || rules_excluded(r, path, is_dir)) return rc;
  const char *pattern = rules_match(r, path, is_dir, &m);
  if (pattern && !rules_is_above(r, pattern)) {
    take_unit(t, path, pattern, &m);
    return 0;
  }
  if (!*t->dir && t->others_shown++ < NAMES_SHOWN)
    buf_fmt(&t->others, "%s\"%s%s\"", t->others.len ? ", " : "", path, is_dir ? "/" : "");
  if (is_dir) buf_add(&t->waiting, path, strlen(path) + 1);
  return buf_failed(&t->waiting) ? ERR_CANCELED : 0;
}

/* What below the top cannot be read is passed over, as a run does. */
static int forgive(tree *t, int rc, const err *why, err *e) {
  if (*t->dir && rc == ERR_NOENT) return 0;
  if (*t->dir && (rc == ERR_ACCESS || rc == ERR_INVAL || rc == ERR_LIMIT)) {
    if (t->passed_count++ == 0) t->passed = *why;
    return 0;
  }
  if (rc < 0 && e) *e = *why;
  return rc;
}

static int look_through(tree *t, err *e) {
  const char *root = t->c->o->tree;
  char dir[FS_PATH_MAX] = "", path[FS_PATH_MAX];
  size_t at = 0;
  int rc;
  t->dir = dir;
  for (;;) {
    err why = {0};
    rc = fs_join(path, root, dir, &why);
    if (rc == 0) rc = fs_list(t->c->o->io, *dir ? path : root, visit, t, &why);
    rc = forgive(t, rc, &why, e);
    if (rc < 0 || at >= t->waiting.len) break;
    snprintf(dir, sizeof dir, "%s", t->waiting.data + at);
    at += strlen(dir) + 1;
  }
  t->dir = "";
  return rc;
}

/* ---- what is told ---- */

/* A run passes over it, too (lost+found of a file system, say). */
static void tell_passed(tree *t) {
  char text[TEXT_ROOM], more[40] = "";
  if (t->passed_count == 0) return;
  if (t->passed_count > 1) snprintf(more, sizeof more, ", and %zu more", t->passed_count - 1);
  snprintf(text, sizeof text, "not looked at: %.500s%s", t->passed.text, more);
  checking_tell(t->c, POLICY_HINT, "limit", text, "");
}

static void tell_units(tree *t) {
  json_t *units = json_object_get(t->c->p->data, "unit"), *unit;
  char text[TEXT_ROOM];
  size_t i;
  if (t->units == 0) {
    snprintf(text, sizeof text, "nothing in %.200s is a checkpoint by %s%s%.300s", t->c->o->tree,
             units ? "`unit`" : "the names of the known frameworks; say `unit`",
             t->others.len ? "; there are " : ": it is empty", t->others.len ? t->others.data : "");
    checking_tell_key(t->c, POLICY_DOUBT, "unit", "unit", text);
    return;
  }
  json_array_foreach(units, i, unit) {
    const char *glob = json_string_value(unit);
    if (!glob) glob = json_string_value(json_object_get(unit, "glob"));
    if (!glob || json_object_get(t->fits, glob)) continue;
    snprintf(text, sizeof text, "no name in %.200s is a unit by \"%.255s\"", t->c->o->tree, glob);
    checking_tell_word(t->c, POLICY_HINT, "unit", glob, text);
  }
}

static void tell_markers(tree *t) {
  const char *name;
  json_t *found;
  char text[TEXT_ROOM];
  json_object_foreach(t->markers, name, found) {
    if (json_is_true(found) || t->units == 0) continue;
    snprintf(text, sizeof text,
             "no checkpoint in %.200s has the file \"%.255s\": by this rule none is complete",
             t->c->o->tree, name);
    checking_tell_word(t->c, POLICY_DOUBT, "marker", name, text);
  }
}

static void list_names(const json_t *names, char *to, size_t room) {
  const char *name, *gap = "";
  json_t *value;
  size_t used = 0;
  *to = 0;
  json_object_foreach((json_t *)names, name, value) {
    int n = snprintf(to + used, room - used, "%s%.60s", gap, name);
    if (n < 0 || (size_t)n >= room - used) break;
    used += (size_t)n;
    gap = ", ";
  }
}

/* A number that no checkpoint here has may still be reported, unless no source takes that. */
static void tell_numbers(tree *t) {
  const char *name;
  json_t *line;
  char text[TEXT_ROOM], seen[300];
  list_names(t->numbers, seen, sizeof seen);
  json_object_foreach(t->c->metrics, name, line) {
    if (json_object_get(t->numbers, name) || t->units == 0) continue;
    if (*seen)
      snprintf(text, sizeof text, "no checkpoint in %.150s has \"%.100s\" (they have %s)",
               t->c->o->tree, name, seen);
    else
      snprintf(text, sizeof text,
               "no checkpoint in %.150s has a number of its own: \"%.100s\" has to be reported "
               "(`notify` %.100s=0.2)",
               t->c->o->tree, name, name);
    checking_tell_at(t->c, *seen ? POLICY_DOUBT : POLICY_HINT, "metric", json_string_value(line),
                     name, text);
  }
}

/* ---- the whole ---- */

static void find_markers(const json_t *test, json_t *out) {
  static const char *const ops[] = {"all", "any"};
  const char *done = json_string_value(json_object_get(test, "done"));
  const char *name = json_string_value(json_object_get(test, "name"));
  json_t *part;
  size_t i;
  if (done && name && strcmp(done, "marker") == 0) json_object_set_new(out, name, json_false());
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
    json_array_foreach(json_object_get(test, ops[k]), i, part) find_markers(part, out);
}

int checking_tree(checking *c, err *e) {
  tree t = {.c = c, .fits = json_object(), .numbers = json_object(), .markers = json_object()};
  int rc = t.fits && t.numbers && t.markers
               ? 0
               : err_set(e, ERR_NOMEM, "look through %s: out of memory", c->o->tree);
  buf_init(&t.others, TEXT_ROOM);
  buf_init(&t.waiting, WAITING_MAX);
  if (rc == 0) find_markers(json_object_get(c->p->data, "complete"), t.markers);
  if (rc == 0) rc = look_through(&t, e);
  const bool cut = rc == ERR_CANCELED;
  if (cut) {
    if (c->stopped == 0)
      checking_tell(c, POLICY_HINT, "limit",
                    "not all of the directory was looked through: it has too many files", "");
    rc = 0;
  }
  if (rc == 0 && !cut) {
    tell_units(&t);
    tell_markers(&t);
  }
  if (rc == 0) tell_numbers(&t);
  if (rc == 0) tell_passed(&t);
  json_decref(t.fits);
  json_decref(t.numbers);
  json_decref(t.markers);
  buf_free(&t.others);
  buf_free(&t.waiting);
  return rc;
}
