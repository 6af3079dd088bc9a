/* run_anyway: a run that began though its store did not answer (`start_anyway`). start_rule.h decides,
 * this finds the facts.
 *
 * Until the store has answered for a group, no save of it begins; a task asks it now and then, for the
 * group at the top of the target first, then for those of which the journal knows a log. Whatever
 * group is begun first, its log is held against what the journal knew. */
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "run/run_state.h"
#include "run/start/start_rule.h"
#include "commit/arbiter.h"
#include "event/structure.h"

/* ---- may it begin? ---- */

static bool is_outage(const run *r, const err *e) {
  return e && (e->code == ERR_IO || e->code == ERR_TIMEOUT) && r->store &&
         atomic_load(&r->store->silent_ns) != 0;
}

/* A group that was opened by half is opened anew. Its lease is ours, should it stand. */
static int forget_groups(run *r, err *e) {
  run_group *root;
  for (size_t i = 0; i < r->group_count; i++) r->groups[i]->group.term = 0;
  run_groups_close(r);
  return run_group_get(r, "", &root, e);
}

bool run_anyway_begin(run *r, bool wished, err *e) {
  start_facts facts = {
      .wished = wished, .outage = is_outage(r, e), .ranks = r->ranks.world > 1, .never = true};
  const char *why = start_refusal(&facts);
  err ignored = {0};
  if (why && *why && facts.outage) err_set(e, e->code, "%.800s; %s", e->text, why);
  if (why || forget_groups(r, &ignored) < 0) return false;
  run_patience_end(r);
  r->anyway = true;
  r->anyway_why = *e;
  r->group_env.admit = run_anyway_admit;
  r->group_env.admit_ctx = r;
  return true;
}

const runlog_ref *run_anyway_log(const run *r, const char *group) {
  const journal_log *log = journal_find_log(r->journal, r->places.target_text, group);
  return log ? &log->newest : NULL;
}

int run_anyway_standing(run *r, survey_unit *u, const journal_unit *known, err *e) {
  const runlog_ref *log = run_anyway_log(r, u->group);
  structure found;
  if (!log || known->state != JOURNAL_COMMITTED || strcmp(known->commit.log, log->log) != 0 ||
      !digest_equal(&known->fingerprint, &u->fingerprint) ||
      run_others_parts(r, known, &u->fingerprint))
    return 0;
  int rc = structure_of_unit(r->env->io, r->places.dir, u->path, u->kind, r->rules, &found,
                             u->reason, sizeof u->reason, e);
  if (rc < 0 || found == STRUCTURE_TORN) return rc < 0 ? rc : 0;
  u->standing = RECOVER_COMMITTED;
  u->commit = known->commit.n;
  return 1;
}

/* True if this very commit stands whole in the directory. */
static bool stands_here(const run *r, const survey *s, const journal_log *log) {
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    journal_unit known = journal_find(r->journal, u->path);
    if (strcmp(u->group, log->group) == 0 && u->standing == RECOVER_COMMITTED &&
        runlog_ref_same(&known.commit, &log->newest))
      return true;
  }
  return false;
}

static bool is_tied(const run *r, const survey *s) {
  const journal_log *log;
  size_t i = 0;
  for (; (log = journal_log_at(r->journal, r->places.target_text, i)); i++)
    if (!stands_here(r, s, log)) return false;
  return i > 0;
}

/* What is known now is what the job comes from, whatever this run commits later. */
static int remember(run *r, err *e) {
  const memory_state unread = run_remembers(r) ? MEMORY_UNREAD : MEMORY_KNOWN;
  const journal_log *log;
  size_t count = 0;
  while (journal_log_at(r->journal, r->places.target_text, count)) count++;
  r->came = calloc(count + 1, sizeof *r->came);
  if (!r->came) return err_set(e, ERR_NOMEM, "begin without the store: out of memory");
  r->groups[0]->remembers = unread; /* the one at the top, whatever is known */
  for (; (log = journal_log_at(r->journal, r->places.target_text, r->came_count));
       r->came_count++) {
    run_group *g;
    int rc = run_group_get(r, log->group, &g, e);
    if (rc < 0) return rc;
    g->remembers = unread;
    char *group = strdup(log->group);
    if (!group) return err_set(e, ERR_NOMEM, "begin without the store: out of memory");
    r->came[r->came_count] = (run_came){group, log->newest};
  }
  return 0;
}

int run_anyway_may(run *r, const survey *s, run_restore how, err *e) {
  const err *first = &r->anyway_why;
  start_facts facts = {.wished = true,
                       .outage = true,
                       .never = how == RUN_NEVER,
                       .named = how == RUN_NAMED,
                       .tied = is_tied(r, s)};
  const char *why = start_refusal(&facts);
  if (why) return err_set(e, first->code, "%.800s; %s", first->text, why);
  int rc = remember(r, e);
  if (rc < 0) return rc;
  log_say(r->env->log, LOG_WARN,
          "the store does not answer, and the job begins all the same (`start_anyway`): what it "
          "saves waits until the store answers: %s",
          first->text);
  return 0;
}

void run_anyway_free(run *r) {
  for (size_t i = 0; i < r->came_count; i++) free(r->came[i].group);
  free(r->came);
}

/* ---- the store answers ---- */

static void fill(const run *r, group *g, start_answer *a, err *e) {
  const runlog_state *state = runlog_view(g->log);
  const runlog_commit *c = runlog_newest_ever(state, NULL);
  a->has_log = *state->run_id != 0;
  a->newest.n = a->came_from.n = RUNLOG_NONE;
  snprintf(a->newest.log, sizeof a->newest.log, "%s", state->nonce);
  if (c) runlog_ref_of(g->log, c->n, &a->newest, e);
  for (size_t i = 0; i < r->came_count; i++)
    if (strcmp(r->came[i].group, g->prefix) == 0) a->came_from = r->came[i].newest;
}

/* Asked, on a worker, of each log before this run's first term on it. */
int run_anyway_admit(void *ctx, group *g, err *e) {
  run *r = ctx;
  err why = {0};
  start_answer answer = {0};
  int rc = group_may_begin(g, &why);
  answer.other_run = rc == ERR_OTHER_RUN;
  answer.held = rc == ERR_HELD;
  if (rc < 0 && !answer.other_run && !answer.held) return err_set(e, rc, "%s", why.text);
  fill(r, g, &answer, &why);
  if (why.code && !answer.other_run && !answer.held) return err_set(e, why.code, "%s", why.text);
  const char *end = start_end(&answer);
  g->turned_away = end != NULL;
  if (end)
    return err_set(e, answer.other_run ? ERR_OTHER_RUN : ERR_HELD, "%s%s%.700s", end,
                   *why.text ? ": " : "", why.text);
  bool due; /* at the start nobody answered */
  rc = arbiter_check(r->store, "", &due, e);
  if (rc == 0 && due) arbiter_note(r->store, "");
  return rc;
}

struct run_meeting {
  run *run;
  run_group *with; /* the list of groups may move while the store is asked */
  bool remembers;  /* what the policies remember is to be read, too */
  char *memory;
  memory_state state;
  int status;
  err error;
};

static void meet_on_worker(void *arg) {
  struct run_meeting *m = arg;
  run *r = m->run;
  char *prefix = m->with->group.prefix;
  m->status = 0;
  if (m->remembers)
    m->status = memory_read(r->store, r->env->log, prefix, &m->memory, &m->state, &m->error);
  if (m->status == 0) m->status = group_begin(&m->with->group, &m->error);
}

/* Finds the group for which the store is asked next; NULL: it has answered for all. */
static run_group *next_to_ask(const run *r) {
  run_group *g = r->groups[0];
  for (size_t i = 0; g && g->term != RUNLOG_NONE; i++)
    g = i < r->came_count ? run_group_find(r, r->came[i].group) : NULL;
  return g;
}

static void met(run *r, run_group *g) {
  g->term = runlog_view(g->group.log)->term.n;
  run_group_name_log(r, g);
  run_tell_group(r, g);
  if (!r->answered)
    log_say(r->env->log, LOG_WARN, "%s answers now: what is complete is saved",
            r->places.target_text);
  r->answered = true;
  r->meet_at = 0;
  g->keep_asked = true;
  run_group_note_newest(g);
  run_group_note_log(r, g, NULL);
}

/* An outage is over some time; a refusal is a person's to mend, so it is said once. */
static void say_unmet(run *r, const err *why) {
  bool outage = err_class_of(why->code) == ERR_CLASS_RETRYABLE;
  bool loud = !outage && !r->meeting_refused;
  log_say(r->env->log, loud ? LOG_WARN : LOG_DEBUG, "the store %s, and nothing is saved yet: %s",
          outage ? "does not answer yet" : "refuses what a save begins with", why->text);
  r->meeting_refused = r->meeting_refused || loud;
}

static void meet_done(void *ctx) {
  struct run_meeting *m = ctx;
  run *r = m->run;
  r->tasks--;
  run_group *g = m->with;
  r->meeting = NULL;
  if (m->status == 0) {
    met(r, g);
    run_memory_recall(r, g, m->memory, m->state);
    m->memory = NULL; /* the group's */
  } else if (g->group.turned_away)
    run_end_saving(r, g->group.prefix, m->status, m->error.text);
  else
    say_unmet(r, &m->error);
  free(m->memory);
  free(m);
}

bool run_anyway_unmet(const run *r) {
  return r->anyway && !r->met && !r->fenced;
}

bool run_anyway_sure(const run *r, const run_group *g) {
  return !r->anyway || g->term != RUNLOG_NONE;
}

/* When time is short, nobody waits: a save asks the store itself. */
static bool waits(const run *r, const run_group *g) {
  return run_anyway_unmet(r) && g->term == RUNLOG_NONE && !r->writer_gone && !r->preempted;
}

bool run_anyway_forgets(const run *r, const run_group *g) {
  return g->remembers == MEMORY_UNREAD && waits(r, g);
}

bool run_anyway_holds(const run *r, const run_group *g) {
  return (r->meeting && g == r->meeting->with) || waits(r, g);
}

int64_t run_anyway_step(run *r, int64_t now) {
  enum { EVERY_S = 10 };
  if (!run_anyway_unmet(r) || r->meeting || r->group_count == 0 || r->closing) return INT64_MAX;
  run_group *root = r->groups[0];
  if (!r->answered) {
    if (root->save || run_keep_busy(root)) return INT64_MAX; /* its log is the worker's */
    if (root->term != RUNLOG_NONE) met(r, root);             /* a save of it was first */
  }
  run_group *next = next_to_ask(r);
  r->met = !next;
  if (!next || next->save) return INT64_MAX;
  if (now < r->meet_at) return r->meet_at;
  r->meet_at = seconds_later(now, EVERY_S * SECOND_NS);
  struct run_meeting *m = calloc(1, sizeof *m);
  if (!m) return r->meet_at;
  m->run = r;
  m->with = next;
  m->remembers = run_remembers(r);
  if (!run_submit(r, meet_on_worker, meet_done, m)) {
    free(m);
    return r->meet_at;
  }
  r->meeting = m;
  return INT64_MAX;
}
