/* runlog_freeze: turns the state into JSON, as a snapshot holds it, and back.
 *
 * It is printed piece by piece: as one tree it would take ten times its text.
 *
 * Reading checks the rules of the log once more: the order of the numbers, the attempt of each
 * commit, and that no two attempts share a directory. */
#include <stdlib.h>
#include <string.h>

#include "runlog_fold.h"

/* ---- printing ---- */

static void set_nonce(json_t *object, const char *nonce, int *bad) {
  if (*nonce) js_set(object, "nonce", json_string(nonce), bad);
}

static json_t *attempt_new(const runlog_attempt *a, int *bad) {
  json_t *object = json_object();
  runlog_set_number(object, "n", a->n, bad);
  runlog_set_number(object, "term", a->owner, bad);
  js_set(object, "unit", js_name_new(a->unit), bad);
  if (strcmp(a->unit, a->dir) != 0) js_set(object, "dir", js_name_new(a->dir), bad);
  if (a->world != 1) runlog_set_number(object, "world", a->world, bad);
  set_nonce(object, a->nonce, bad);
  if (a->plain_keys) runlog_set_plain(object, bad);
  if (a->fate == RUNLOG_SWEPT) js_set(object, "swept", json_true(), bad);
  return object;
}

static json_t *drop_new(const runlog_commit *c, int *bad) {
  json_t *object = json_object();
  runlog_set_number(object, "n", c->drop, bad);
  js_set(object, "time_ns", json_integer(c->drop_ns), bad);
  runlog_set_text(object, "policy", c->drop_policy, bad);
  runlog_set_text(object, "reason", c->drop_reason, bad);
  return object;
}

static json_t *bad_new(const runlog_commit *c, int *bad) {
  json_t *object = json_object();
  runlog_set_text(object, "reason", c->bad_reason, bad);
  runlog_set_lines(object, "lines", c->bad_lines, bad);
  return object;
}

static json_t *thin_new(const runlog_commit *c, int *bad) {
  json_t *object = json_object();
  runlog_set_thin(object, &c->thin, bad);
  return object;
}

static json_t *commit_new(const runlog_commit *c, int *bad) {
  json_t *object = json_object();
  runlog_set_number(object, "n", c->n, bad);
  runlog_set_number(object, "attempt", c->attempt, bad);
  js_set(object, "time_ns", json_integer(c->time_ns), bad);
  set_nonce(object, c->nonce, bad);
  runlog_set_facts(object, c, bad);
  if (c->bad) js_set(object, "bad", bad_new(c, bad), bad);
  if (c->thin.globs.count) js_set(object, "thin", thin_new(c, bad), bad);
  if (c->drop) js_set(object, "drop", drop_new(c, bad), bad);
  if (c->life == RUNLOG_DELETED) js_set(object, "deleted", json_true(), bad);
  return object;
}

static json_t *term_new(const runlog_term *t, int *bad) {
  json_t *object = json_object();
  runlog_set_number(object, "n", t->n, bad);
  js_set(object, "time_ns", json_integer(t->time_ns), bad);
  runlog_set_writer(object, &t->writer, bad);
  return object;
}

static json_t *joined_new(const runlog_state *s, int *bad) {
  json_t *list = json_array();
  for (size_t i = 0; i < s->joined_count; i++)
    *bad |= json_array_append_new(list, js_name_new(s->joined[i]));
  return list;
}

/* All but the attempts and the commits. */
static json_t *rest_new(const runlog_state *s, int *bad) {
  json_t *state = json_object();
  js_set(state, "run", js_name_new(s->run_id), bad);
  set_nonce(state, s->nonce, bad);
  js_set(state, "term", term_new(&s->term, bad), bad);
  if (s->since) runlog_set_number(state, "since", s->since, bad);
  if (s->joined_count) js_set(state, "joined", joined_new(s, bad), bad);
  if (*s->flags) js_set(state, "flags", json_string(s->flags), bad);
  if (s->flags_since) runlog_set_number(state, "flags_since", s->flags_since, bad);
  return state;
}

/* Prints and releases it. */
static int print_piece(json_t *piece, int bad, runlog_print_fn *print, buf *out, err *e) {
  int rc = bad ? err_set(e, ERR_NOMEM, "the state of the log: out of memory") : 0;
  if (rc == 0) rc = print(piece, out, e);
  json_decref(piece);
  return rc;
}

static int print_rest(const runlog_state *s, runlog_print_fn *print, buf *out, err *e) {
  int bad = 0;
  buf rest;
  buf_init(&rest, RUNLOG_ENTRY_MAX);
  json_t *object = rest_new(s, &bad);
  int rc = print_piece(object, bad, print, &rest, e);
  if (rc == 0) buf_str(out, rest.data + 1); /* its brace stands in front of the attempts */
  buf_free(&rest);
  return rc;
}

/* The members stand in the order of their names, as in all that is printed. */
int runlog_state_print(const runlog_state *s, runlog_print_fn *print, buf *out, err *e) {
  int rc = 0, bad = 0;
  buf_str(out, "{\"attempts\":[");
  for (size_t i = 0; rc == 0 && i < s->attempt_count; i++) {
    if (i) buf_str(out, ",");
    json_t *piece = attempt_new(&s->attempts[i], &bad);
    rc = print_piece(piece, bad, print, out, e);
  }
  buf_str(out, "],\"commits\":[");
  for (size_t i = 0; rc == 0 && i < s->commit_count; i++) {
    if (i) buf_str(out, ",");
    json_t *piece = commit_new(&s->commits[i], &bad);
    rc = print_piece(piece, bad, print, out, e);
  }
  buf_str(out, "],");
  if (rc == 0) rc = print_rest(s, print, out, e);
  if (rc == 0 && buf_failed(out))
    rc = err_set(e, buf_failed(out), "the state of the log: %s", err_text(buf_failed(out)));
  return rc;
}

/* ---- reading ---- */

/* All parts of a state are judged by these. */
typedef struct frozen {
  runlog_state *s;
  uint64_t through;
  const char *what;
} frozen;

static int wrong(const frozen *f, uint64_t n, const char *why, err *e) {
  return err_set(e, ERR_FORMAT, "%s: entry %llu: %s", f->what, (unsigned long long)n, why);
}

static int load_term(const json_t *object, const frozen *f, err *e) {
  runlog_term *term = &f->s->term;
  int rc = runlog_get_number(object, "n", f->what, &term->n, e);
  if (rc == 0) rc = js_get_int(object, "time_ns", f->what, &term->time_ns, e);
  if (rc == 0) rc = runlog_get_writer(object, f->what, &term->writer, e);
  if (rc == 0 && term->n > f->through) rc = wrong(f, term->n, "a term that is still to come", e);
  return rc;
}

/* Logs of 1.0 do not have this member. */
static int load_since(const json_t *state, const frozen *f, err *e) {
  uint64_t *since = &f->s->since;
  int rc =
      json_object_get(state, "since") ? runlog_get_number(state, "since", f->what, since, e) : 0;
  if (rc == 0 && *since > f->s->term.n) rc = wrong(f, *since, "a run that is still to come", e);
  return rc;
}

/* Nor this one: ids of runs that joined, as names. */
static int load_joined(const json_t *state, const frozen *f, err *e) {
  const json_t *list = json_object_get(state, "joined"), *item;
  size_t i;
  int rc = 0;
  json_array_foreach(list, i, item) {
    char id[RUNLOG_ID_MAX];
    json_t *named = json_pack("{s:O}", "id", item);
    rc = named ? runlog_get_id(named, "id", f->what, id, sizeof id, e)
               : err_set(e, ERR_NOMEM, "%s: out of memory", f->what);
    json_decref(named);
    if (rc == 0 && f->s->joined_count >= RUNLOG_JOINED_MAX)
      rc = err_set(e, ERR_FORMAT, "%s: more than %d runs have joined", f->what, RUNLOG_JOINED_MAX);
    if (rc == 0 && !runlog_add_joined(f->s, id))
      rc = err_set(e, ERR_NOMEM, "%s: out of memory", f->what);
    if (rc < 0) break;
  }
  return rc;
}

static int load_flags(const json_t *state, const frozen *f, err *e) {
  uint64_t *since = &f->s->flags_since;
  runlog_opt_digest(state, "flags", f->s->flags);
  int rc = json_object_get(state, "flags_since")
               ? runlog_get_number(state, "flags_since", f->what, since, e)
               : 0;
  if (rc == 0 && *since > f->s->term.n) rc = wrong(f, *since, "flags that are still to come", e);
  return rc;
}

static const char *judge_attempt(const frozen *f, const runlog_attempt *a) {
  const runlog_state *s = f->s;
  if (a->n > f->through || a->owner > s->term.n) return "an attempt that is still to come";
  if (s->attempt_count && a->n <= s->attempts[s->attempt_count - 1].n) return "out of order";
  return runlog_judge_dir(s, a->n, a->unit, a->dir);
}

static int load_attempt(const json_t *object, const frozen *f, err *e) {
  runlog_attempt a = {.fate = RUNLOG_OPEN};
  bool swept = false;
  int rc = runlog_get_number(object, "n", f->what, &a.n, e);
  if (rc == 0) rc = runlog_get_number(object, "term", f->what, &a.owner, e);
  if (rc == 0) rc = js_get_name(object, "unit", f->what, &a.unit, e);
  const char *dir = json_object_get(object, "dir") ? "dir" : "unit";
  if (rc == 0) rc = js_get_name(object, dir, f->what, &a.dir, e);
  if (rc == 0) rc = runlog_get_world(object, f->what, &a.world, e);
  if (rc == 0) rc = js_opt_bool(object, "swept", f->what, false, &swept, e);
  if (rc < 0) goto out;
  if (swept) a.fate = RUNLOG_SWEPT;
  runlog_opt_nonce(object, a.nonce);
  a.plain_keys = runlog_opt_plain(object);
  const char *why = judge_attempt(f, &a);
  if (why)
    rc = wrong(f, a.n, why, e);
  else if ((rc = runlog_add_attempt(f->s, &a)) < 0)
    err_set(e, rc, "%s: out of memory", f->what);
  if (rc == 0) return 0;
out:
  free(a.unit);
  free(a.dir);
  return rc;
}

static int load_drop(const json_t *object, const frozen *f, runlog_commit *c, err *e) {
  int rc = runlog_get_number(object, "n", f->what, &c->drop, e);
  if (rc == 0) rc = js_get_int(object, "time_ns", f->what, &c->drop_ns, e);
  if (rc == 0) rc = runlog_get_text(object, "policy", f->what, &c->drop_policy, e);
  if (rc == 0) rc = runlog_get_text(object, "reason", f->what, &c->drop_reason, e);
  if (rc == 0 && (c->drop <= c->n || c->drop > f->through))
    rc = wrong(f, c->n, "its drop is out of order", e);
  c->life = RUNLOG_DROPPED;
  return rc;
}

static int load_fate(const json_t *object, const frozen *f, runlog_commit *c, err *e) {
  const json_t *drop = json_object_get(object, "drop"), *mark = json_object_get(object, "bad");
  const json_t *thin = json_object_get(object, "thin");
  bool deleted = false;
  int rc = drop ? load_drop(drop, f, c, e) : 0;
  if (rc == 0) rc = js_opt_bool(object, "deleted", f->what, false, &deleted, e);
  if (rc == 0 && mark) rc = runlog_get_text(mark, "reason", f->what, &c->bad_reason, e);
  if (rc == 0 && mark) rc = runlog_get_lines(mark, "lines", f->what, &c->bad_lines, e);
  if (rc == 0 && thin) rc = runlog_get_thin(thin, f->what, &c->thin, e);
  c->bad = mark != NULL;
  if (deleted) c->life = RUNLOG_DELETED;
  return rc;
}

/* Its attempt becomes a committed one: it must not be committed yet. */
static const char *judge_commit(const frozen *f, const runlog_commit *c, const runlog_attempt *a) {
  const runlog_state *s = f->s;
  if (c->n > f->through) return "a commit that is still to come";
  if (s->commit_count && c->n <= s->commits[s->commit_count - 1].n) return "out of order";
  return a && a->n < c->n && a->fate == RUNLOG_OPEN ? NULL : "a commit of no open attempt";
}

static int load_commit(const json_t *object, const frozen *f, err *e) {
  runlog_commit c = {0};
  int rc = runlog_get_number(object, "n", f->what, &c.n, e);
  if (rc == 0) rc = runlog_get_number(object, "attempt", f->what, &c.attempt, e);
  if (rc == 0) rc = js_get_int(object, "time_ns", f->what, &c.time_ns, e);
  if (rc == 0) rc = runlog_get_facts(object, f->what, &c, e);
  if (rc == 0) rc = load_fate(object, f, &c, e);
  if (rc < 0) goto out;
  runlog_attempt *a = runlog_attempt_at(f->s, c.attempt);
  const char *why = judge_commit(f, &c, a);
  runlog_commit *next = why ? NULL : runlog_next_commit(f->s);
  if (why)
    rc = wrong(f, c.n, why, e);
  else if (!next)
    rc = err_set(e, ERR_NOMEM, "%s: out of memory", f->what);
  if (rc < 0) goto out;
  runlog_opt_nonce(object, c.nonce);
  a->fate = RUNLOG_COMMITTED;
  c.unit = a->unit;
  c.dir = a->dir;
  *next = c;
  f->s->commit_count++;
  return 0;
out:
  runlog_free_texts(&c);
  return rc;
}

int runlog_load_attempt(const json_t *object, uint64_t through, const char *what, runlog_state *out,
                        err *e) {
  return load_attempt(object, &(frozen){.s = out, .through = through, .what = what}, e);
}

int runlog_load_commit(const json_t *object, uint64_t through, const char *what, runlog_state *out,
                       err *e) {
  return load_commit(object, &(frozen){.s = out, .through = through, .what = what}, e);
}

int runlog_state_load(const json_t *state, uint64_t through, const char *what, runlog_state *out,
                      err *e) {
  frozen f = {.s = out, .through = through, .what = what};
  json_t *attempts = NULL, *commits = NULL, *item;
  size_t i;
  *out = (runlog_state){.next = through + 1, .snapshot = RUNLOG_NONE};
  int rc = runlog_get_id(state, "run", what, out->run_id, sizeof out->run_id, e);
  if (rc == 0 && !*out->run_id) rc = err_set(e, ERR_FORMAT, "%s names no run", what);
  runlog_opt_nonce(state, out->nonce);
  if (rc == 0) rc = load_term(json_object_get(state, "term"), &f, e);
  if (rc == 0) rc = load_since(state, &f, e);
  if (rc == 0) rc = load_joined(state, &f, e);
  if (rc == 0) rc = load_flags(state, &f, e);
  if (rc == 0) rc = js_get_array(state, "attempts", what, &attempts, e);
  if (rc == 0) rc = js_get_array(state, "commits", what, &commits, e);
  if (rc < 0) return rc;
  json_array_foreach(attempts, i, item) if (rc == 0) rc = load_attempt(item, &f, e);
  json_array_foreach(commits, i, item) if (rc == 0) rc = load_commit(item, &f, e);
  return rc;
}
