/* The pure half of the log: folding one entry after the other into the state. Every reader, of any
 * version, must come to the same state, so what is ignored here is as much part of the format as
 * what is taken. */
#include "runlog_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What every entry has. */
typedef struct head {
  uint64_t n;
  uint64_t term; /* the writer's, or RUNLOG_NONE */
  int64_t time_ns;
  char what[40]; /* "log entry 7", for errors */
} head;

/* Makes room for one more element; NULL when out of memory. */
static void *grow(void *array, size_t count, size_t *room, size_t size) {
  if (count < *room) return array;
  size_t more = *room ? 2 * *room : 8;
  void *grown = realloc(array, more * size);
  if (grown) *room = more;
  return grown;
}

static int no_memory(const head *h, err *e) {
  return err_set(e, ERR_NOMEM, "%s: out of memory", h->what);
}

/* Numbers are written as signed 64-bit integers and are never negative. */
static int get_number(const json_t *entry, const char *key, const char *what, uint64_t *out,
                      err *e) {
  int64_t number;
  int rc = js_get_int(entry, key, what, &number, e);
  if (rc < 0) return rc;
  if (number < 0) return err_set(e, ERR_FORMAT, "%s: \"%s\" is negative", what, key);
  *out = (uint64_t)number;
  return 0;
}

static int copy_name(const json_t *entry, const char *key, const char *what, char *out, size_t room,
                     err *e) {
  char *name = NULL;
  int rc = js_get_name(entry, key, what, &name, e);
  if (rc < 0) return rc;
  size_t len = strlen(name);
  if (len < room)
    memcpy(out, name, len + 1);
  else
    rc = err_set(e, ERR_FORMAT, "%s: \"%s\" is longer than %zu bytes", what, key, room - 1);
  free(name);
  return rc;
}

/* The functions below read all of an entry before they judge it, set *why if a rule forbids it, and
 * change the state only when nothing can fail any more. */

static int apply_run(runlog_state *s, const json_t *entry, const head *h, const char **why,
                     err *e) {
  char id[RUNLOG_ID_MAX];
  int rc = copy_name(entry, "run", h->what, id, sizeof id, e);
  if (rc < 0) return rc;
  if (id[0] == 0) return err_set(e, ERR_FORMAT, "%s: the run's id is empty", h->what);
  if (h->n != 0)
    *why = "only the first entry names the run";
  else
    memcpy(s->run_id, id, sizeof id);
  return 0;
}

static int apply_term(runlog_state *s, const json_t *entry, const head *h, const char **why,
                      err *e) {
  runlog_term term = {.n = h->n, .time_ns = h->time_ns};
  runlog_writer *w = &term.writer;
  uint64_t pid = 0;
  int rc = copy_name(entry, "launch", h->what, w->launch, sizeof w->launch, e);
  if (rc == 0) rc = copy_name(entry, "job", h->what, w->job, sizeof w->job, e);
  if (rc == 0) rc = copy_name(entry, "host", h->what, w->host, sizeof w->host, e);
  if (rc == 0) rc = copy_name(entry, "boot", h->what, w->boot, sizeof w->boot, e);
  if (rc == 0) rc = copy_name(entry, "state", h->what, w->state, sizeof w->state, e);
  if (rc == 0) rc = get_number(entry, "pid", h->what, &pid, e);
  if (rc == 0) rc = get_number(entry, "start", h->what, &w->start, e);
  if (rc < 0) return rc;
  w->pid = (int64_t)pid;
  if (h->term != h->n)
    *why = "a term is named by the number of its own entry";
  else
    s->term = term;
  return 0;
}

/* Before the first term nobody's is the newest: an entry without a term must not pass for it. */
static bool of_newest_term(const runlog_state *s, const head *h) {
  return h->term != RUNLOG_NONE && h->term == s->term.n;
}

/* Two attempts never share a directory: its name is derived from what only this entry has. */
static const char *judge_attempt(const runlog_state *s, const head *h, const char *unit,
                                 const char *dir) {
  char later[RUNLOG_UNIT_MAX + 32];
  if (runlog_unit_check(unit, NULL) < 0) return "its unit's name is not allowed";
  if (!of_newest_term(s, h)) return "its writer is not of the newest term";
  snprintf(later, sizeof later, "%s.~%" PRIu64, unit, h->n);
  if (strcmp(dir, later) == 0) return NULL;
  if (strcmp(dir, unit) != 0) return "its directory's name does not follow from its unit's";
  return runlog_plain_free(s, unit) ? NULL : "its directory may belong to another attempt";
}

static int apply_attempt(runlog_state *s, const json_t *entry, const head *h, const char **why,
                         err *e) {
  char *unit = NULL, *dir = NULL;
  int rc = js_get_name(entry, "unit", h->what, &unit, e);
  if (rc == 0) rc = js_get_name(entry, "dir", h->what, &dir, e);
  if (rc != 0) goto out;
  *why = judge_attempt(s, h, unit, dir);
  if (*why) goto out;
  runlog_attempt *grown = grow(s->attempts, s->attempt_count, &s->attempt_room, sizeof *grown);
  if (grown) s->attempts = grown;
  if (!grown || runlog_plain_grow(s) < 0) {
    rc = no_memory(h, e);
    goto out;
  }
  if (strcmp(unit, dir) == 0) {
    s->plain[runlog_plain_slot(s, unit)] = s->attempt_count + 1;
    s->plain_count++;
  }
  s->attempts[s->attempt_count++] =
      (runlog_attempt){.n = h->n, .owner = h->term, .fate = RUNLOG_OPEN, .unit = unit, .dir = dir};
  unit = dir = NULL;
out:
  free(unit);
  free(dir);
  return rc;
}

/* The attempt that an entry is about, if it is still open. */
static int open_attempt(runlog_state *s, const json_t *entry, const head *h, runlog_attempt **out,
                        const char **why, err *e) {
  uint64_t n;
  int rc = get_number(entry, "attempt", h->what, &n, e);
  if (rc < 0) return rc;
  *out = runlog_attempt_at(s, n);
  if (!*out)
    *why = "there is no such attempt";
  else if ((*out)->fate != RUNLOG_OPEN)
    *why = "nothing follows a sweep or a commit";
  return 0;
}

static int apply_adopt(runlog_state *s, const json_t *entry, const head *h, const char **why,
                       err *e) {
  runlog_attempt *attempt;
  int rc = open_attempt(s, entry, h, &attempt, why, e);
  if (rc < 0 || *why) return rc;
  if (!of_newest_term(s, h))
    *why = "its writer is not of the newest term";
  else if (attempt->owner == s->term.n)
    *why = "the attempt's owner is the newest term";
  else
    attempt->owner = h->term;
  return 0;
}

static int apply_sweep(runlog_state *s, const json_t *entry, const head *h, const char **why,
                       err *e) {
  runlog_attempt *attempt;
  int rc = open_attempt(s, entry, h, &attempt, why, e);
  if (rc < 0 || *why) return rc;
  if (attempt->owner == s->term.n && h->term != attempt->owner)
    *why = "the attempt's owner may still go on with it";
  else
    attempt->fate = RUNLOG_SWEPT;
  return 0;
}

static int get_kind(const json_t *entry, const head *h, match_kind *out, err *e) {
  const char *text;
  int rc = js_get_str(entry, "kind", h->what, &text, e);
  if (rc < 0) return rc;
  for (int kind = MATCH_DIR; kind <= MATCH_GROUP; kind++) {
    if (strcmp(text, manifest_kind_name((match_kind)kind)) != 0) continue;
    *out = (match_kind)kind;
    return 0;
  }
  return err_set(e, ERR_FORMAT, "%s: the kind \"%.40s\" is not dir, file or group", h->what, text);
}

static int get_commit(const json_t *entry, const head *h, runlog_commit *out, err *e) {
  const char *name = NULL, *hex = NULL;
  hash_kind hash = HASH_XXH3_128;
  int rc = get_kind(entry, h, &out->kind, e);
  if (rc == 0) rc = js_opt_int(entry, "step", h->what, MATCH_NO_STEP, &out->step, e);
  if (rc == 0 && out->step < MATCH_NO_STEP)
    rc = err_set(e, ERR_FORMAT, "%s: the step is negative", h->what);
  if (rc == 0) rc = get_number(entry, "files", h->what, &out->files, e);
  if (rc == 0) rc = get_number(entry, "bytes", h->what, &out->bytes, e);
  if (rc == 0) rc = js_get_str(entry, "digest", h->what, &name, e);
  if (rc == 0) rc = js_get_str(entry, "root", h->what, &hex, e);
  if (rc == 0) rc = hash_kind_of(name, &hash, e);
  if (rc < 0) return rc;
  if (digest_parse(hash, hex, &out->root, NULL) < 0)
    return err_set(e, ERR_FORMAT, "%s: \"%.80s\" is no digest", h->what, hex);
  return 0;
}

/* A text that the log may carry for people; what is no text says nothing. Its writer made it plain;
 * it is done again, as it will be printed. */
static int get_text(const json_t *entry, const head *h, const char *key, char **out, err *e) {
  const char *text = json_string_value(json_object_get(entry, key));
  buf plain;
  *out = NULL;
  if (!text || !*text) return 0;
  buf_init(&plain, RUNLOG_REASON_MAX);
  js_plain(text, RUNLOG_REASON_MAX - 1, &plain);
  if (!buf_failed(&plain)) *out = buf_take(&plain);
  buf_free(&plain);
  return *out ? 0 : no_memory(h, e);
}

static int get_metrics(const json_t *entry, const head *h, char **out, err *e) {
  const json_t *value = json_object_get(entry, "metrics");
  buf text;
  *out = NULL;
  if (!json_is_object(value)) return 0;
  buf_init(&text, 2 * RUNLOG_METRICS_MAX); /* numbers may be printed in another way */
  int rc = js_print(value, &text, NULL);
  if (rc == 0) *out = buf_take(&text);
  buf_free(&text);
  return rc == 0 || rc == ERR_LIMIT ? 0 : no_memory(h, e);
}

static int get_texts(const json_t *entry, const head *h, runlog_commit *out, err *e) {
  int rc = get_metrics(entry, h, &out->metrics, e);
  if (rc == 0) rc = get_text(entry, h, "policy", &out->policy, e);
  return rc < 0 ? rc : get_text(entry, h, "reason", &out->reason, e);
}

static int apply_commit(runlog_state *s, const json_t *entry, const head *h, const char **why,
                        err *e) {
  runlog_commit commit = {.n = h->n, .time_ns = h->time_ns};
  runlog_attempt *attempt = NULL;
  int rc = get_commit(entry, h, &commit, e);
  if (rc == 0) rc = open_attempt(s, entry, h, &attempt, why, e);
  if (rc < 0 || *why) return rc;
  if (!of_newest_term(s, h))
    *why = "its writer is not of the newest term";
  else if (attempt->owner != h->term)
    *why = "only the attempt's owner may commit it";
  if (*why) return 0;
  runlog_commit *grown = grow(s->commits, s->commit_count, &s->commit_room, sizeof *grown);
  if (!grown) return no_memory(h, e);
  s->commits = grown;
  rc = get_texts(entry, h, &commit, e);
  if (rc < 0) {
    runlog_free_texts(&commit);
    return rc;
  }
  commit.attempt = attempt->n;
  commit.unit = attempt->unit;
  commit.dir = attempt->dir;
  s->commits[s->commit_count++] = commit;
  attempt->fate = RUNLOG_COMMITTED;
  return 0;
}

/* The commit that an entry is about. A guest has no term; who has one must not be fenced. */
static int known_commit(const runlog_state *s, const json_t *entry, const head *h,
                        runlog_commit **out, const char **why, err *e) {
  uint64_t n;
  int rc = get_number(entry, "commit", h->what, &n, e);
  if (rc < 0) return rc;
  *out = runlog_commit_at(s, n);
  if (!*out)
    *why = "there is no such commit";
  else if (h->term != RUNLOG_NONE && !of_newest_term(s, h))
    *why = "its writer is not of the newest term";
  return 0;
}

static int apply_drop(runlog_state *s, const json_t *entry, const head *h, const char **why,
                      err *e) {
  runlog_commit *c;
  char *policy = NULL, *reason = NULL;
  int rc = known_commit(s, entry, h, &c, why, e);
  if (rc == 0 && !*why && c->life != RUNLOG_LIVE) *why = "the commit is dropped already";
  if (rc < 0 || *why) return rc;
  rc = get_text(entry, h, "policy", &policy, e);
  if (rc == 0) rc = get_text(entry, h, "reason", &reason, e);
  if (rc < 0) {
    free(policy);
    return rc;
  }
  c->life = RUNLOG_DROPPED;
  c->drop = h->n;
  c->drop_ns = h->time_ns;
  c->drop_policy = policy;
  c->drop_reason = reason;
  return 0;
}

/* The data goes only after a drop, so that readers had the time to see it. */
static int apply_delete(runlog_state *s, const json_t *entry, const head *h, const char **why,
                        err *e) {
  runlog_commit *c;
  int rc = known_commit(s, entry, h, &c, why, e);
  if (rc == 0 && !*why && c->life != RUNLOG_DROPPED)
    *why = c->life == RUNLOG_LIVE ? "the commit was not dropped" : "the commit is deleted already";
  if (rc == 0 && !*why) c->life = RUNLOG_DELETED;
  return rc;
}

typedef int apply_fn(runlog_state *, const json_t *, const head *, const char **, err *);
static const struct {
  const char *type;
  apply_fn *apply;
} types[] = {
    {"run", apply_run},     {"term", apply_term},     {"attempt", apply_attempt},
    {"adopt", apply_adopt}, {"sweep", apply_sweep},   {"commit", apply_commit},
    {"drop", apply_drop},   {"delete", apply_delete},
};

static int get_head(const json_t *entry, head *h, uint64_t *stated, apply_fn **apply, err *e) {
  const char *type = NULL, *nonce = NULL;
  h->term = RUNLOG_NONE;
  int rc = js_check_reader(entry, h->what, RUNLOG_READER, e);
  if (rc == 0) rc = get_number(entry, "n", h->what, stated, e);
  if (rc == 0) rc = js_get_str(entry, "type", h->what, &type, e);
  if (rc == 0) rc = js_get_str(entry, "nonce", h->what, &nonce, e);
  if (rc == 0) rc = js_get_int(entry, "time_ns", h->what, &h->time_ns, e);
  if (rc == 0 && json_object_get(entry, "term"))
    rc = get_number(entry, "term", h->what, &h->term, e);
  if (rc != 0) return rc;
  *apply = NULL;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (strcmp(type, types[i].type) == 0) *apply = types[i].apply;
  if (!*apply)
    return err_set(e, ERR_VERSION, "%s: its type \"%.40s\" needs a newer ckpt-lua", h->what, type);
  return 0;
}

int runlog_apply(runlog_state *s, const json_t *entry, const char **ignored, err *e) {
  head h = {.n = s->next};
  uint64_t stated = 0;
  apply_fn *apply = NULL;
  const char *why = NULL;
  snprintf(h.what, sizeof h.what, "log entry %" PRIu64, s->next);
  int rc = get_head(entry, &h, &stated, &apply, e);
  if (rc != 0) return rc;
  if (s->next == 0) s->term.n = RUNLOG_NONE; /* a zeroed state would name entry 0 as its term */
  if (stated != s->next)
    why = "its number is not that of its place";
  else if (s->next > 0 && s->run_id[0] == 0)
    why = "the log's first entry names no run";
  else if (s->next == 0 && apply != apply_run)
    why = "the first entry must name the run";
  else
    rc = apply(s, entry, &h, &why, e);
  if (rc < 0) return rc;
  s->next++;
  if (ignored) *ignored = why;
  return 0;
}
