/* prepare_above: restores files above the checkpoints, last of all: first the checkpoints that
 * they name, since a tuner that finds its state goes on from those.
 *
 * A state may have been saved before a checkpoint that it names was: if that one was lost with the
 * machine, an older state of which all is there serves better, and the newer one is marked bad. */
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "event/frameworks.h"
#include "prims/match.h"
#include "prims/fs.h"
#include "prims/match_series.h"
#include "run/begin/prepare.h"

/* ---- what a commit names ---- */

static int read_commit(struct prepare *p, run_group *g, const runlog_commit *c, names *out,
                       err *e) {
  run *r = p->run;
  char dir[STORE_KEY_MAX], key[STORE_KEY_MAX];
  const manifest *m; /* it also tells the store how names are spelt there */
  buf text;
  *out = (names){0};
  buf_init(&text, ABOVE_TEXT_MAX);
  int rc = run_manifest(r, g, c, &m, e);
  if (rc == 0) rc = runlog_key_dir(g->group.log, c->dir, dir, e);
  if (rc == 0) rc = runlog_join(dir, c->unit, key, e);
  if (rc == 0) rc = r->store->ops->get(r->store, key, &text, e);
  if (rc == 0 && text.len) rc = above_read(text.data, text.len, out, e);
  buf_free(&text);
  return rc;
}

/* Splits "trial/checkpoint-3" into the path of its group and the unit's name. */
static bool parts_of(const run_group *above, const char *name, char *group, const char **unit) {
  char first[FS_PATH_MAX];
  const char *slash = strchr(name, '/');
  if (!slash) return false;
  snprintf(first, sizeof first, "%.*s", (int)(slash - name), name);
  *unit = slash + 1;
  return fs_join(group, above->group.prefix, first, NULL) == 0;
}

/* Finds what a name means: 1 and the path of the group, if it is the name of a checkpoint. */
static bool is_checkpoint(const struct prepare *p, const run_group *above, const char *name,
                          char *group, const char **unit, int64_t *step) {
  char path[FS_PATH_MAX];
  match_unit m;
  if (!parts_of(above, name, group, unit) || fs_join(path, group, *unit, NULL) < 0) return false;
  const char *pattern = rules_match(p->run->rules, path, true, &m);
  if (!pattern || rules_needs_proof(p->run->rules, pattern)) return false;
  *step = m.step;
  return true;
}

static const survey_unit *unit_here(const survey *s, const char *group, const char *unit) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].group, group) == 0 && strcmp(s->units[i].name, unit) == 0)
      return &s->units[i];
  return NULL;
}

static const runlog_commit *commit_of(const struct prepare *p, const char *group, const char *unit,
                                      run_group **g) {
  *g = run_group_find(p->run, group);
  if (!*g || !(*g)->group.log || (*g)->foreign) return NULL;
  const runlog_commit *c = runlog_newest(runlog_view((*g)->group.log), unit);
  return c && !prepare_is_damaged(p, *g, c) ? c : NULL;
}

/* True if the trial has a later name in the list: it goes on from the last of them, and the others
 * may have been removed on purpose. */
static bool is_outdone(const struct prepare *p, const run_group *above, const names *n, size_t i,
                       int64_t step) {
  size_t len = strcspn(n->at[i], "/") + 1;
  for (size_t k = i + 1; k < n->count && strncmp(n->at[k], n->at[i], len) == 0; k++) {
    char group[FS_PATH_MAX];
    const char *unit;
    int64_t other;
    if (is_checkpoint(p, above, n->at[k], group, &unit, &other) && other >= step) return true;
  }
  return false;
}

/* Returns the first checkpoint that a trial goes on from and that nobody has; NULL: there is none. */
static const char *lacking(const struct prepare *p, const survey *s, const run_group *above,
                           const names *n) {
  for (size_t i = 0; i < n->count; i++) {
    char group[FS_PATH_MAX];
    const char *unit;
    run_group *g;
    int64_t step;
    if (!is_checkpoint(p, above, n->at[i], group, &unit, &step)) continue;
    const survey_unit *here = unit_here(s, group, unit);
    bool whole = here && here->standing <= RECOVER_WHOLE;
    if (!whole && !commit_of(p, group, unit, &g) && !is_outdone(p, above, n, i, step))
      return n->at[i];
  }
  return NULL;
}

/* ---- which generation ---- */

/* True if this commit is the newest good one of its kind, and nothing here serves in its place. */
static bool comes_back(const struct prepare *p, const survey *s, const run_group *g,
                       const runlog_commit *c) {
  if (!c->above || prepare_is_damaged(p, g, c) ||
      !run_newest_of_series(runlog_view(g->group.log), c))
    return false;
  for (size_t i = 0; i < s->count; i++)
    if (s->units[i].above && strcmp(s->units[i].group, g->group.prefix) == 0 &&
        s->units[i].standing <= RECOVER_WHOLE && match_same_series(s->units[i].name, c->unit))
      return false;
  return true;
}

/* Finds the good commit of this kind before entry n. What it returns is valid until the log changes. */
static const runlog_commit *before(const struct prepare *p, const run_group *g, const char *unit,
                                   uint64_t n) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->n < n && c->above && c->life == RUNLOG_LIVE && !c->bad && !prepare_is_damaged(p, g, c) &&
        match_same_series(c->unit, unit))
      return c;
  }
  return NULL;
}

/* Marks all generations after `taken` bad. A user who may not write gets the newest. */
static void pass_over_after(struct prepare *p, run_group *g, const char *unit, uint64_t taken,
                            const char *reason) {
  const runlog_commit *c;
  char text[RUNLOG_REASON_MAX];
  snprintf(text, sizeof text, "%.*s", RUNLOG_REASON_MAX - 1, reason);
  while ((c = before(p, g, unit, RUNLOG_NONE)) && c->n > taken) {
    err why = {0};
    log_say(p->run->env->log, LOG_WARN,
            "%s as it was saved last is not restored: %s; it is marked bad (`mark` good takes that "
            "back), and an OLDER one is taken",
            c->unit, reason);
    if (runlog_mark(g->group.log, c->n, true, text, &why) == 0) continue;
    log_say(p->run->env->log, LOG_WARN, "it could not be marked bad, and is taken: %s", why.text);
    return;
  }
}

/* What was chosen of a group. */
struct choice {
  names named;     /* what the chosen state names */
  int64_t made_ns; /* when it was written; 0: nothing names a checkpoint */
};

static int take(struct prepare *p, const run_group *g, uint64_t n, const names *named,
                struct choice *out, err *e) {
  const runlog_commit *c = runlog_find_commit(runlog_view(g->group.log), n);
  if (!c || named->count == 0) return 0;
  int64_t made = run_order_of_commit(p->run, (run_group *)g, c);
  if (made > out->made_ns) out->made_ns = made;
  return names_add_all(&out->named, names_list(named))
             ? 0
             : err_set(e, ERR_NOMEM, "restore what %s names: out of memory", g->group.prefix);
}

/* Finds the newest generation of a kind of which all is there, and passes over those after it. If
 * there is none, the newest is taken all the same. */
static int choose(struct prepare *p, const survey *s, run_group *g, const char *unit,
                  struct choice *out, err *e) {
  const runlog_commit *c = before(p, g, unit, RUNLOG_NONE);
  const uint64_t newest = c->n;
  uint64_t taken = newest;
  char why[300] = "";
  names newest_names = {0}, found = {0};
  int rc = read_commit(p, g, c, &newest_names, e);
  const char *lacks = rc == 0 ? lacking(p, s, g, &newest_names) : NULL;
  if (lacks) snprintf(why, sizeof why, "it names %.200s, which is not in the store", lacks);
  while (lacks && (c = before(p, g, unit, taken))) {
    taken = c->n;
    names_free(&found);
    if (read_commit(p, g, c, &found, NULL) == 0) lacks = lacking(p, s, g, &found);
  }
  if (lacks) {
    taken = newest;
    log_say(p->run->env->log, LOG_WARN,
            "%s is restored, though %s: what goes on from that checkpoint will fail", unit, why);
  }
  if (rc == 0) rc = take(p, g, taken, taken == newest ? &newest_names : &found, out, e);
  if (rc == 0 && taken != newest) pass_over_after(p, g, unit, taken, why);
  names_free(&newest_names);
  names_free(&found);
  return rc;
}

/* What was written together comes back together: of a kind that names no checkpoint, the generation
 * of the time of the state. */
static void go_along(struct prepare *p, run_group *g, const char *unit, int64_t made_ns) {
  enum { TOGETHER_S = 5 };
  const int64_t latest = made_ns + (int64_t)TOGETHER_S * 1000000000;
  const runlog_commit *c = before(p, g, unit, RUNLOG_NONE);
  const uint64_t newest = c->n;
  while (c && run_order_of_commit(p->run, g, c) > latest) c = before(p, g, unit, c->n);
  if (c && c->n != newest)
    pass_over_after(p, g, unit, c->n, "it is of a later time than the state that is restored");
}

/* ---- what is named ---- */

static bool same_trial(const char *a, const char *b) {
  size_t len = strcspn(a, "/");
  return strncmp(a, b, len) == 0 && b[len] == '/';
}

/* Restores the checkpoints that are named and not here. The last one of a trial comes back whatever its
 * size, others as long as they have twice its bytes at most: a tuner knows more of them than it loads. */
static int restore_named(struct prepare *p, const survey *s, const run_group *above, const names *n,
                         err *e) {
  uint64_t room = 0;
  int rc = 0;
  for (size_t i = n->count; rc == 0 && i-- > 0;) {
    char group[FS_PATH_MAX], path[FS_PATH_MAX];
    const char *unit;
    run_group *g;
    int64_t step;
    err why = {0};
    if (i + 1 < n->count && !same_trial(n->at[i], n->at[i + 1])) room = 0;
    if (!is_checkpoint(p, above, n->at[i], group, &unit, &step)) continue;
    const runlog_commit *c = commit_of(p, group, unit, &g);
    if (!c) continue;
    bool last = !is_outdone(p, above, n, i, step), fits = last || c->bytes <= room;
    room = last ? 2 * c->bytes : fits ? room - c->bytes : room;
    const survey_unit *here = unit_here(s, group, unit);
    if (!fits || (here && prepare_loads(p, here)) || fs_join(path, group, unit, NULL) < 0 ||
        prepare_was_restored(p, path))
      continue;
    rc = here ? prepare_make_way(p, here, above->group.prefix, &why) : 0;
    if (rc == 0) rc = prepare_restore_commit(p, s, g, c, &why);
    /* The trial has another one, which the state does not name. */
    if (prepare_is_damage(rc) && prepare_pass_over(p, g, c, &why)) rc = 0;
    if (rc < 0 && e) *e = why;
  }
  return rc;
}

/* ---- what is nothing without another one ---- */

static bool is_good_of(const struct prepare *p, const run_group *g, const runlog_commit *c,
                       const char *glob) {
  return c->above && c->life == RUNLOG_LIVE && !c->bad && !prepare_is_damaged(p, g, c) &&
         match_glob(glob, c->unit);
}

static bool is_to_be_had(const struct prepare *p, const survey *s, const run_group *g,
                         const char *glob) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = 0; i < state->commit_count; i++)
    if (is_good_of(p, g, &state->commits[i], glob)) return true;
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].group, g->group.prefix) == 0 && s->units[i].above &&
        s->units[i].standing <= RECOVER_WHOLE && match_glob(glob, s->units[i].name))
      return true;
  return false;
}

static int leave_out(struct prepare *p, const run_group *g, const framework *f, const char *lacks,
                     err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  bool said = false;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (!is_good_of(p, g, c, f->together[0])) continue;
    if (!said)
      log_say(p->run->env->log, LOG_WARN,
              "%s of \"%s\" is not restored: no %s was saved with it, and %s fails without one, "
              "where it begins anew without both",
              c->unit, g->group.prefix, lacks, f->name);
    said = true;
    if (!prepare_leave_out(p, g, c)) return err_set(e, ERR_NOMEM, "prepare: out of memory");
  }
  return 0;
}

/* A machine may be lost when only the first of a set was saved. */
static int leave_halves(struct prepare *p, const survey *s, const run_group *g, err *e) {
  int rc = 0;
  for (const framework *f = frameworks(); rc == 0 && f->name; f++) {
    const char *lacks = NULL;
    for (size_t i = 1; f->together[0] && !lacks && f->together[i]; i++)
      if (!is_to_be_had(p, s, g, f->together[i])) lacks = f->together[i];
    if (lacks) rc = leave_out(p, g, f, lacks, e);
  }
  return rc;
}

/* ---- all of them ---- */

/* The kinds of such files in a group that have to come back, by the name of their newest. */
static int kinds_of(const struct prepare *p, const survey *s, const run_group *g, names *out,
                    err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = 0; i < state->commit_count; i++)
    if (comes_back(p, s, g, &state->commits[i]) && !names_add(out, state->commits[i].unit))
      return err_set(e, ERR_NOMEM, "restore %s: out of memory", g->group.prefix);
  return 0;
}

static int restore_group(struct prepare *p, const survey *s, run_group *g, err *e) {
  struct choice chosen = {0};
  names kinds = {0};
  err why = {0};
  int rc = leave_halves(p, s, g, e);
  if (rc == 0) rc = kinds_of(p, s, g, &kinds, &why);
  for (size_t i = 0; rc == 0 && i < kinds.count; i++) {
    int read = choose(p, s, g, kinds.at[i], &chosen, &why);
    /* What cannot be read is judged where it is restored. */
    if (read < 0 && !prepare_is_damage(read) && read != ERR_NOENT && read != ERR_LIMIT) rc = read;
  }
  if (rc < 0 && e && why.code < 0) *e = why;
  for (size_t i = 0; rc == 0 && chosen.made_ns && i < kinds.count; i++)
    go_along(p, g, kinds.at[i], chosen.made_ns);
  names_sort_unique(&chosen.named);
  if (rc == 0) rc = restore_named(p, s, g, &chosen.named, e);
  names_free(&chosen.named);
  names_free(&kinds);
  return rc < 0 ? rc : prepare_recover_group(p, g, g->group.prefix, s, e);
}

int prepare_restore_above(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++)
    if (r->groups[i]->group.log && !r->groups[i]->foreign)
      rc = restore_group(p, s, r->groups[i], e);
  return rc;
}
