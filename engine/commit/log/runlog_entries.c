/* runlog_entries: the entries that the operations on a log append. Each plans its entry on the log
 * as it is known, and plans again when another writer came first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runlog_fold.h"

/* ---- run and term ---- */

static int plan_run(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  if (log->st.next > 0) return 0;
  int bad = 0;
  json_t *entry = runlog_new_entry("run", RUNLOG_NONE, &bad);
  js_set(entry, "run", js_name_new(r->text), &bad);
  return runlog_hand_over(entry, bad, out, e);
}

/* The run's id is checked anew whenever somebody came first: after an `end` the place belongs to
 * the run whose term is made first. */
static int plan_term(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  int bad = 0, rc = runlog_check_run(log, r->title, e);
  if (rc < 0) return rc;
  if (r->title->asked && log->st.term.n != r->title->newest)
    return err_set(e, ERR_CONFLICT, "%s: another writer has begun just now", log->prefix);
  json_t *entry = runlog_new_entry("term", log->st.next, &bad);
  runlog_set_writer(entry, r->who, &bad);
  js_set(entry, "epochs", json_true(), &bad);
  if (log->st.ended)
    js_set(entry, "run", js_name_new(r->title->id), &bad);
  else if (!runlog_admits(&log->st, r->title->id))
    js_set(entry, "joins", js_name_new(r->title->id), &bad);
  return runlog_hand_over(entry, bad, out, e);
}

int runlog_begin(runlog *log, const char *run_id, const runlog_writer *who, bool continue_run,
                 err *e) {
  runlog_title title = {.id = run_id, .continue_run = continue_run};
  return runlog_begin_as(log, &title, who, e);
}

int runlog_begin_as(runlog *log, const runlog_title *title, const runlog_writer *who, err *e) {
  if (title->id[0] == 0 || strlen(title->id) >= RUNLOG_ID_MAX)
    return err_set(e, ERR_INVAL, "a run's id has 1 to %d bytes", RUNLOG_ID_MAX - 1);
  if (who->pid < 0 || who->start > INT64_MAX)
    return err_set(e, ERR_INVAL, "a writer's pid or start time is out of range");
  if (log->term != RUNLOG_NONE)
    return err_set(e, ERR_INVAL, "this handle has opened term %" PRIu64 " already", log->term);
  runlog_request r = {.text = title->id, .title = title, .who = who};
  int rc = runlog_catch_up(log, e);
  if (rc == 0) rc = runlog_carry_out(log, plan_run, &r, e);
  if (rc < 0) return rc;
  if (log->st.run_id[0] == 0)
    return err_set(e, ERR_FORMAT, "%s: the log's first entry names no run", log->prefix);
  rc = runlog_carry_out(log, plan_term, &r, e);
  if (rc == 0) log->term = log->st.term.n;
  return rc;
}

/* A writer that appends anything meanwhile is alive. */
static int plan_quiet_term(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  if (log->st.next == r->number) return plan_term(log, r, out, e);
  return err_set(e, ERR_CONFLICT, "%s: somebody writes to this log just now", log->prefix);
}

int runlog_begin_quiet(runlog *log, const runlog_writer *who, err *e) {
  char id[RUNLOG_ID_MAX];
  runlog_title title = {.id = memcpy(id, log->st.run_id, sizeof id)};
  runlog_request r = {.title = &title, .number = log->st.next, .who = who};
  if (log->term != RUNLOG_NONE || log->st.run_id[0] == 0)
    return err_set(e, ERR_INVAL, "%s: a quiet term needs a log, and none of ours", log->prefix);
  int rc = runlog_carry_out(log, plan_quiet_term, &r, e);
  if (rc == 0) log->term = log->st.term.n;
  return rc;
}

int runlog_need_term(const runlog *log, err *e) {
  return log->term == RUNLOG_NONE ? err_set(e, ERR_INVAL, "no term was opened on this log") : 0;
}

/* ---- attempts ---- */

static int found_one(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)ctx, (void)key, (void)is_prefix, (void)object;
  return 1;
}

/* Returns 1 if anything is at the key or below it. If the store refuses to look at it (a symbolic
 * link, say), it is something too. */
static int occupied(store *s, const char *key, err *e) {
  store_object object;
  err why = {0};
  int rc = s->ops->head(s, key, &object, &why);
  if (rc == 0 || rc == ERR_INVAL) return 1;
  if (rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
  return s->ops->list(s, key, true, found_one, NULL, e);
}

/* Refuses a unit with a log below its name: the log's entries would lie within a checkpoint. */
static int refuse_group(const runlog *log, const char *unit, err *e) {
  char group[STORE_KEY_MAX], key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  int rc = runlog_join(log->prefix, unit, group, e);
  if (rc == 0) rc = runlog_key_entry(group, 0, key, e);
  if (rc < 0) return rc;
  rc = log->s->ops->head(log->s, key, &object, &why);
  if (rc == 0)
    return err_set(e, ERR_INVAL,
                   "\"%.200s\" cannot be a unit: %s is the log of a group of that name", unit, key);
  return rc == ERR_NOENT || rc == ERR_INVAL ? 0 : err_set(e, rc, "%s", why.text);
}

/* Chooses the plain name, or the next generation's. The entry's own number makes that one unique,
 * so it is chosen anew whenever the number changes. Returns 1 for a name that 1.0 does not know. */
static int choose_dir(const runlog *log, const char *unit, char out[STORE_KEY_MAX], err *e) {
  char key[STORE_KEY_MAX];
  int rc = runlog_plain_free(&log->st, unit) ? runlog_key_dir(log, unit, key, e) : 1;
  if (rc == 0) rc = occupied(log->s, key, e);
  if (rc < 0) return rc;
  bool later = rc > 0;
  if (later)
    rc = runlog_later_dir(unit, log->st.next, out, e);
  else
    snprintf(out, STORE_KEY_MAX, "%s", unit);
  if (rc == 0) rc = runlog_key_dir(log, out, key, e);
  return rc < 0 ? rc : later && runlog_is_short_dir(unit, out);
}

static int plan_attempt(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  char dir[STORE_KEY_MAX];
  if (r->nonce && runlog_find_nonce(&log->st, r->nonce)) return 0;
  int bad = 0, rc = refuse_group(log, r->text, e);
  if (rc == 0) rc = choose_dir(log, r->text, dir, e);
  if (rc < 0) return rc;
  json_t *entry = runlog_new_entry("attempt", log->term, &bad);
  if (rc == 1) runlog_set_number(entry, "reader", RUNLOG_READER, &bad);
  js_set(entry, "unit", js_name_new(r->text), &bad);
  js_set(entry, "dir", js_name_new(dir), &bad);
  runlog_set_number(entry, "world", log->st.term.writer.world, &bad);
  if (r->nonce) js_set(entry, "nonce", json_string(r->nonce), &bad);
  if (log->s->ops->spell) runlog_set_plain(entry, &bad);
  return runlog_hand_over(entry, bad, out, e);
}

int runlog_attempt_begin(runlog *log, const char *unit, uint64_t *out, err *e) {
  int rc = runlog_need_term(log, e);
  if (rc == 0) rc = runlog_unit_check(unit, e);
  if (rc == 0) rc = runlog_carry_out(log, plan_attempt, &(runlog_request){.text = unit}, e);
  if (rc == 0) *out = log->st.next - 1;
  return rc;
}

static int get_attempt(const runlog *log, uint64_t n, const runlog_attempt **out, err *e) {
  *out = runlog_find_attempt(&log->st, n);
  return *out ? 0 : err_set(e, ERR_INVAL, "the log has no attempt %" PRIu64, n);
}

static int closed(const runlog_attempt *attempt, err *e) {
  return err_set(e, ERR_CONFLICT, "attempt %" PRIu64 " of \"%.200s\" is %s already", attempt->n,
                 attempt->unit, attempt->fate == RUNLOG_SWEPT ? "given up" : "committed");
}

int runlog_attempt_staged(runlog *log, const char *unit, const char *nonce, uint64_t *out, err *e) {
  int rc = runlog_need_term(log, e);
  if (rc == 0) rc = runlog_unit_check(unit, e);
  if (rc == 0)
    rc = runlog_carry_out(log, plan_attempt, &(runlog_request){.text = unit, .nonce = nonce}, e);
  if (rc < 0) return rc;
  const runlog_attempt *attempt = runlog_find_nonce(&log->st, nonce);
  *out = attempt->n;
  return attempt->fate == RUNLOG_OPEN ? 0 : closed(attempt, e);
}

static int entry_about(const char *type, const runlog *log, uint64_t attempt, json_t **out,
                       err *e) {
  int bad = 0;
  json_t *entry = runlog_new_entry(type, log->term, &bad);
  runlog_set_number(entry, "attempt", attempt, &bad);
  return runlog_hand_over(entry, bad, out, e);
}

static int plan_adopt(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_attempt *attempt;
  int rc = get_attempt(log, r->number, &attempt, e);
  if (rc < 0) return rc;
  if (attempt->fate != RUNLOG_OPEN) return closed(attempt, e);
  return attempt->owner == log->term ? 0 : entry_about("adopt", log, r->number, out, e);
}

int runlog_adopt(runlog *log, uint64_t attempt, err *e) {
  int rc = runlog_need_term(log, e);
  return rc < 0 ? rc : runlog_carry_out(log, plan_adopt, &(runlog_request){.number = attempt}, e);
}

bool runlog_was_found(const runlog *log, uint64_t attempt) {
  return log->at.epoch > 0 && attempt < log->at.first;
}

static int plan_sweep(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_attempt *attempt;
  int rc = get_attempt(log, r->number, &attempt, e);
  if (rc < 0 || attempt->fate == RUNLOG_SWEPT) return rc;
  if (attempt->fate == RUNLOG_COMMITTED) return closed(attempt, e);
  if (log->term == RUNLOG_NONE && runlog_was_found(log, attempt->n))
    return err_set(e, ERR_HELD,
                   "attempt %" PRIu64 " of \"%.200s\" was found by a repair: the next run decides "
                   "whether it is a commit",
                   attempt->n, attempt->unit);
  if (log->term == RUNLOG_NONE && attempt->owner == log->st.term.n)
    return err_set(e, ERR_HELD,
                   "attempt %" PRIu64 " of \"%.200s\" belongs to term %" PRIu64
                   ", which may still go on with it",
                   attempt->n, attempt->unit, attempt->owner);
  return entry_about("sweep", log, r->number, out, e);
}

int runlog_sweep(runlog *log, uint64_t attempt, err *e) {
  return runlog_carry_out(log, plan_sweep, &(runlog_request){.number = attempt}, e);
}

/* ---- commit ---- */

static char *fitting(char *metrics) {
  return metrics && strlen(metrics) <= RUNLOG_METRICS_MAX ? metrics : NULL;
}

/* If the attempt is committed already with the same root, nothing is left to do: an earlier call's
 * answer may have been lost for good. */
static int plan_commit(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_attempt *attempt;
  const manifest *m = r->m;
  int bad = 0, rc = get_attempt(log, r->number, &attempt, e);
  if (rc < 0) return rc;
  const runlog_commit *done = runlog_commit_of(&log->st, r->number);
  if (done && digest_equal(&done->root, &m->root)) return 0;
  if (attempt->fate != RUNLOG_OPEN) return closed(attempt, e);
  if (attempt->owner != log->term)
    return err_set(e, ERR_CONFLICT,
                   "attempt %" PRIu64 " belongs to term %" PRIu64 ": adopt it first", attempt->n,
                   attempt->owner);
  if (strcmp(attempt->unit, m->unit) != 0)
    return err_set(e, ERR_INVAL, "attempt %" PRIu64 " is of \"%.200s\", the manifest of \"%.200s\"",
                   attempt->n, attempt->unit, m->unit);
  rc = entry_about("commit", log, r->number, out, e);
  if (rc < 0) return rc;
  runlog_set_facts(*out,
                   &(runlog_commit){.kind = m->kind,
                                    .step = m->step,
                                    .files = manifest_files(m),
                                    .bytes = manifest_bytes(m),
                                    .left_out = m->left_out,
                                    .left_here = m->left_here,
                                    .above = m->above,
                                    .root = m->root,
                                    .manifest = m->text,
                                    .companions = r->companions,
                                    .needs = (char *)r->needs,
                                    .metrics = fitting(m->metrics),
                                    .policy = m->policy,
                                    .reason = (char *)r->reason},
                   &bad);
  return runlog_hand_over(*out, bad, out, e);
}

int runlog_commit_attempt(runlog *log, uint64_t attempt, const manifest *m, const runlog_note *note,
                          uint64_t *out, err *e) {
  runlog_request r = {.number = attempt, .m = m};
  if (note) r.reason = note->reason, r.companions = note->companions, r.needs = note->needs;
  int rc = runlog_need_term(log, e);
  if (rc == 0 && m->root.len == 0) rc = err_set(e, ERR_INVAL, "the manifest is not sealed");
  if (rc == 0) rc = runlog_carry_out(log, plan_commit, &r, e);
  if (rc == 0) runlog_point_at_commit(log);
  if (rc == 0 && out) *out = runlog_commit_of(&log->st, attempt)->n;
  return rc;
}

/* ---- drop, delete and bad ---- */

static void entry_on_commit(const char *type, const runlog *log, uint64_t commit, json_t **out,
                            int *bad) {
  *out = runlog_new_entry(type, log->term, bad);
  runlog_set_number(*out, "commit", commit, bad);
}

static int get_commit(const runlog *log, uint64_t n, const runlog_commit **out, err *e) {
  *out = runlog_find_commit(&log->st, n);
  return *out ? 0 : err_set(e, ERR_INVAL, "the log has no commit %" PRIu64, n);
}

static int ask_may(const runlog *log, const runlog_request *r, const runlog_commit *c, err *e) {
  if (!r->may || r->may(r->ctx, &log->st, c)) return 0;
  return err_set(e, ERR_CONFLICT, "%s: what the log says by now forbids it",
                 c ? c->dir : "the end of the run");
}

static int plan_drop(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_commit *c;
  int bad = 0, rc = get_commit(log, r->number, &c, e);
  if (rc < 0 || c->life != RUNLOG_LIVE) return rc;
  rc = ask_may(log, r, c, e);
  if (rc < 0) return rc;
  entry_on_commit("drop", log, r->number, out, &bad);
  runlog_set_text(*out, "policy", r->policy, &bad);
  runlog_set_text(*out, "reason", r->reason, &bad);
  return runlog_hand_over(*out, bad, out, e);
}

int runlog_drop(runlog *log, uint64_t commit, const char *policy, const char *reason,
                runlog_may_fn *may, void *ctx, err *e) {
  runlog_request r = {.number = commit, .policy = policy, .reason = reason, .may = may, .ctx = ctx};
  return runlog_carry_out(log, plan_drop, &r, e);
}

static int plan_delete(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_commit *c;
  int bad = 0, rc = get_commit(log, r->number, &c, e);
  if (rc < 0 || c->life == RUNLOG_DELETED) return rc;
  if (c->life == RUNLOG_LIVE)
    return err_set(e, ERR_INVAL, "%s is live: it has to be dropped before it is deleted", c->dir);
  rc = ask_may(log, r, c, e);
  if (rc < 0) return rc;
  entry_on_commit("delete", log, r->number, out, &bad);
  return runlog_hand_over(*out, bad, out, e);
}

int runlog_delete(runlog *log, uint64_t commit, runlog_may_fn *may, void *ctx, err *e) {
  runlog_request r = {.number = commit, .may = may, .ctx = ctx};
  return runlog_carry_out(log, plan_delete, &r, e);
}

/* A dropped commit is chosen no more, and needs no mark. */
static int plan_mark(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_commit *c;
  int bad = 0, rc = get_commit(log, r->number, &c, e);
  if (rc < 0) return rc;
  if (c->life != RUNLOG_LIVE)
    return err_set(e, ERR_INVAL, "%s is not there any more: it cannot be marked", c->dir);
  if (c->bad == r->bad) return 0;
  entry_on_commit("bad", log, r->number, out, &bad);
  if (!r->bad) js_set(*out, "good", json_true(), &bad);
  runlog_set_text(*out, "reason", r->reason, &bad);
  runlog_set_lines(*out, "lines", r->lines, &bad);
  return runlog_hand_over(*out, bad, out, e);
}

int runlog_mark_failed(runlog *log, uint64_t commit, const char *reason, const char *lines,
                       err *e) {
  runlog_request r = {.number = commit, .bad = true, .reason = reason, .lines = lines};
  return runlog_carry_out(log, plan_mark, &r, e);
}

int runlog_mark(runlog *log, uint64_t commit, bool bad, const char *reason, err *e) {
  runlog_request r = {.number = commit, .bad = bad, .reason = reason};
  return runlog_carry_out(log, plan_mark, &r, e);
}

/* It is a mark that says what is so already: 1.0 passes over it. */
static int plan_numbers(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_commit *c;
  int bad = 0, rc = get_commit(log, r->number, &c, e);
  if (rc < 0 || c->life != RUNLOG_LIVE) return rc;
  if (c->metrics && strcmp(c->metrics, r->metrics) == 0) return 0;
  entry_on_commit("bad", log, r->number, out, &bad);
  if (!c->bad) js_set(*out, "good", json_true(), &bad);
  runlog_set_metrics(*out, r->metrics, &bad);
  return runlog_hand_over(*out, bad, out, e);
}

int runlog_tell_numbers(runlog *log, uint64_t commit, const char *metrics, err *e) {
  if (strlen(metrics) > RUNLOG_METRICS_MAX)
    return err_set(e, ERR_LIMIT, "the numbers of a checkpoint have at most %d bytes",
                   RUNLOG_METRICS_MAX);
  runlog_request r = {.number = commit, .metrics = metrics};
  return runlog_carry_out(log, plan_numbers, &r, e);
}

/* ---- end ---- */

static int plan_end(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  int bad = 0;
  if (!*log->st.run_id) return err_set(e, ERR_NOENT, "there is no run that could be removed");
  if (log->st.ended) return 0;
  int rc = ask_may(log, r, NULL, e);
  if (rc < 0) return rc;
  json_t *entry = runlog_new_entry("end", log->term, &bad);
  runlog_set_text(entry, "reason", r->reason, &bad);
  return runlog_hand_over(entry, bad, out, e);
}

int runlog_end(runlog *log, const char *reason, runlog_may_fn *may, void *ctx, err *e) {
  runlog_request r = {.reason = reason, .may = may, .ctx = ctx};
  return runlog_carry_out(log, plan_end, &r, e);
}
