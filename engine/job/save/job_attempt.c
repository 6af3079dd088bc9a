/* job_attempt: the attempt of a job: a new one, one that an earlier try left, or one of an older
 * term; and its end when the job fails. */
#include <stdio.h>
#include <string.h>

#include "commit/settle.h"
#include "job_impl.h"

bool job_committed(job_work *w) {
  job *j = w->job;
  const runlog_state *state = runlog_view(j->log);
  const runlog_attempt *a = runlog_find_attempt(state, w->attempt);
  const runlog_commit *c = runlog_commit_of(state, w->attempt);
  if (!c || a->owner != w->term || runlog_in_doubt(j->log)) return false;
  runlog_ref_of(j->log, c->n, &j->commit, NULL); /* its nonces are known: it was just read */
  j->time_ns = c->time_ns;
  j->files = c->files;
  j->bytes = c->bytes;
  return true;
}

/* Goes on with the attempt of an earlier try, if that was made for these very files and is still
 * ours, by what the log says now. */
static int take_up(job_work *w, err *e) {
  const job *j = w->job;
  if ((j->attempt == 0 && !*j->staging) || j->attempt_shape != w->shape) return 0;
  int rc = runlog_refresh(j->log, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(j->log);
  /* The earlier try may not know that it was announced: the answer may have got lost. */
  const runlog_attempt *a =
      j->attempt ? runlog_find_attempt(state, j->attempt) : runlog_find_nonce(state, j->staging);
  if (!a || a->fate == RUNLOG_SWEPT || a->owner != state->term.n ||
      strcmp(a->unit, job_unit(j)) != 0)
    return 0;
  w->attempt = a->n;
  w->term = a->owner;
  w->over = job_committed(w);
  w->resumed = !w->over;
  return 0;
}

static uint32_t world_of(uint32_t world) {
  return world > 1 ? world : 1;
}

/* Finds the newest attempt at this unit that an older term left open, for as many ranks as we are, and
 * that is newer than every commit.
 * RUNLOG_NONE: there is none. */
static uint64_t left_by_older_term(const job *j) {
  const runlog_state *state = runlog_view(j->log);
  for (size_t i = state->attempt_count; i-- > 0;) {
    const runlog_attempt *a = &state->attempts[i];
    if (settle_is_overtaken(state, a->n)) break;
    if (a->fate == RUNLOG_OPEN && a->owner < state->term.n && strcmp(a->unit, job_unit(j)) == 0 &&
        world_of(a->world) == world_of(state->term.writer.world))
      return a->n;
  }
  return RUNLOG_NONE;
}

/* Goes on with an attempt of an older term at this unit. It is not known which files it was made
 * for: their contents decide, one by one. */
static int adopt(job_work *w, err *e) {
  job *j = w->job;
  uint64_t n = settle_can_go_on(w->env->store) ? left_by_older_term(j) : RUNLOG_NONE;
  err why = {0};
  if (n == RUNLOG_NONE) return 0;
  int rc = runlog_adopt(j->log, n, &why);
  if (rc == ERR_CONFLICT) return 0; /* somebody swept it meanwhile */
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  log_say(w->env->log, LOG_INFO, "%s: going on with what an earlier run has sent", j->plan.unit);
  w->attempt = n;
  w->resumed = w->adopted = true;
  return 0;
}

typedef struct meeting {
  const job_work *w;
  size_t skip; /* length of the attempt's place and a slash, in a key */
  char other[200];
} meeting;

static int meet(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  meeting *m = ctx;
  const char *name = strlen(key) > m->skip ? key + m->skip : "";
  (void)is_prefix;
  if (strcmp(name, MANIFEST_NAME) == 0) return 0;
  const unit_file *f = unit_files_find(m->w->from, name);
  if (f && f->type == MANIFEST_FILE && f->size == object->size) return 0;
  snprintf(m->other, sizeof m->other, "%s", name);
  return 1;
}

/* Checks the files that an older term has sent. A file that this unit does not have would stand in
 * the checkpoint for ever, and one of another size would be found only after much was sent. The
 * files of other ranks are theirs to judge. */
static int check_what_is_there(const job_work *w, err *e) {
  meeting m = {.w = w, .skip = strlen(w->prefix) + 1};
  store *s = w->env->store;
  if (!w->adopted || !w->resumed || w->env->ranks) return 0;
  int rc = s->ops->list(s, w->prefix, false, meet, &m, e);
  if (rc <= 0) return rc;
  return err_set(e, ERR_EXISTS, "%s: what an earlier run sent has another \"%s\"", w->prefix,
                 m.other);
}

static bool find_file(const void *files, const char *name, manifest_type *type, uint64_t *size) {
  const unit_file *f = unit_files_find(files, name);
  if (!f) return false;
  *type = f->type;
  *size = f->size;
  return true;
}

/* Stages the save where a directory can appear in one step: all of it stands before its name is
 * taken, so a failure on the way, for want of room say, costs no name. Ranks have to agree on the
 * place first, so they do not. */
static int stage(job_work *w, err *e) {
  job *j = w->job;
  int rc = runlog_refresh(j->log, e);
  if (rc < 0) return rc;
  const staging_files files = {w->from, find_file};
  rc = staging_begin(w->env->store, j->log, job_unit(j), &files, j->staging, w->env->log, &w->place,
                     &w->resumed, e);
  w->ahead = *w->place.nonce;
  w->term = runlog_view(j->log)->term.n;
  memcpy(w->prefix, w->place.key, sizeof w->prefix);
  memcpy(w->mark, w->place.nonce, sizeof w->mark);
  return rc;
}

static int find_attempt(job_work *w, err *e) {
  runlog *log = w->job->log;
  if (job_follows(w)) return job_follow(w, e);
  int rc = take_up(w, e);
  if (rc == 0 && w->attempt == RUNLOG_NONE && !w->adopted) rc = adopt(w, e);
  /* An earlier job of ours may have failed with the store, and so could not even sweep. */
  if (rc == 0) rc = settle_own(w->env->store, log, w->attempt, w->env->log, e);
  if (rc < 0 || w->attempt != RUNLOG_NONE) return rc;
  if (w->staged && !w->env->ranks) return stage(w, e);
  return runlog_attempt_begin(log, job_unit(w->job), &w->attempt, e);
}

/* Looks whether only the commit of an earlier try has failed. If it has shown its directory, that
 * is compared where it stands: to send it again would be in vain, and it must not go before the new
 * one is there. */
static int find_shown(job_work *w, err *e) {
  w->shown = false;
  if (!w->staged || !w->resumed || w->env->ranks) return 0;
  int rc = settle_is_sealed(w->env->store, w->dir, e);
  w->shown = rc == 1;
  return rc < 0 ? rc : 0;
}

/* Finds where an attempt's files are staged: its own staging, whose companions are put in their
 * place; or, for ranks, and for attempts from before saves were staged first, the one of its
 * number. */
static int find_staging(job_work *w, const runlog_attempt *a, err *e) {
  runlog *log = w->job->log;
  staging st;
  int rc = w->env->ranks ? 0 : staging_find(w->env->store, log, a->nonce, &st, e);
  if (rc <= 0) return rc < 0 ? rc : runlog_key_staging(log, a->n, w->prefix, e);
  memcpy(w->prefix, st.key, sizeof w->prefix);
  rc = staging_show_companions(w->env->store, log, &st, a->n, e);
  return rc == ERR_NOENT ? 0 : rc;
}

static bool has_odd_name(const unit_files *t) {
  for (size_t i = 0; i < t->count; i++)
    if (manifest_name_is_odd(t->files[i].name)) return true;
  return false;
}

/* Says how the files of an attempt are spelt, if that is a difference: in what an earlier run has
 * sent there may be any name. */
static int spell(job_work *w, const runlog_attempt *a, err *e) {
  w->plain_keys = a->plain_keys || !w->env->store->ops->spell;
  if (!w->resumed && !has_odd_name(w->from)) return 0;
  return store_spell(w->env->store, w->prefix, a->plain_keys ? STORE_SPELT_PLAIN : STORE_SPELT_1,
                     e);
}

int job_attempt_begin(job_work *w, err *e) {
  runlog *log = w->job->log;
  int rc = find_attempt(w, e);
  if (rc < 0 || w->ahead) return rc;
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), w->attempt);
  w->term = a->owner;
  rc = runlog_key_dir(log, a->dir, w->dir, e);
  if (rc == 0) rc = runlog_attempt_id(log, w->attempt, w->mark, e);
  if (rc == 0) rc = find_shown(w, e);
  if (rc == 0 && w->staged && !w->shown)
    rc = find_staging(w, a, e);
  else if (rc == 0)
    memcpy(w->prefix, w->dir, sizeof w->prefix);
  if (rc == 0) rc = spell(w, a, e);
  return rc < 0 ? rc : check_what_is_there(w, e);
}

int job_announce(job_work *w, err *e) {
  runlog *log = w->job->log;
  int rc = staging_seal(w->env->store, &w->place, e);
  if (rc == 0) rc = runlog_attempt_staged(log, job_unit(w->job), w->place.nonce, &w->attempt, e);
  if (rc < 0) return rc;
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), w->attempt);
  w->term = a->owner;
  rc = runlog_key_dir(log, a->dir, w->dir, e);
  if (rc < 0) return rc;
  return w->companions.files ? staging_show_companions(w->env->store, log, &w->place, w->attempt, e)
                             : staging_drop_companions(w->env->store, &w->place, e);
}

/* True if the files that were sent are to stay, for another try or for a next term. */
static bool is_left(const job *j, int rc) {
  if (!store_can(j->env->store, STORE_CAP_RESUME)) return false;
  if (rc == ERR_CANCELED) return atomic_load(&j->cancel) == JOB_LEAVE;
  return j->keep && err_class_of(rc) == ERR_CLASS_RETRYABLE;
}

/* Gives up a staging that, as far as is known, was not announced. Returns true if it is done
 * with. */
static bool give_up_staging(job_work *w, int rc, int *status) {
  job *j = w->job;
  err e = {0};
  *status = rc;
  if (is_left(j, rc)) {
    snprintf(j->staging, sizeof j->staging, "%s", w->place.nonce);
    j->attempt_shape = w->shape;
    return true;
  }
  *j->staging = 0;
  int asked = runlog_refresh(j->log, &e);
  const runlog_attempt *a = runlog_find_nonce(runlog_view(j->log), w->place.nonce);
  if (asked == 0 && a) {
    w->attempt = a->n;
    return false;
  }
  if (asked == ERR_FENCED) *status = asked, j->error = e;
  if (asked == 0) asked = staging_drop(w->env->store, &w->place, &e);
  if (asked < 0 && asked != ERR_FENCED)
    log_say(w->env->log, LOG_WARN, "%s: what was staged is left for a later clean-up: %s",
            j->plan.unit, e.text);
  return true;
}

/* Removes the leftovers of an earlier try, which this one did not come to take up: nobody will, if
 * it is not worth another try. The log tells whether it was announced. */
static void forget_earlier(job_work *w, int rc) {
  job *j = w->job;
  err e = {0};
  if ((j->attempt == 0 && !*j->staging) || w->env->ranks || is_left(j, rc)) return;
  int asked = runlog_refresh(j->log, &e);
  const runlog_state *state = runlog_view(j->log);
  const runlog_attempt *a =
      j->attempt ? runlog_find_attempt(state, j->attempt) : runlog_find_nonce(state, j->staging);
  if (asked == 0 && a && a->fate == RUNLOG_OPEN && a->owner == state->term.n)
    asked = settle_give_up(w->env->store, j->log, a->n, w->env->log, &e);
  else if (asked == 0 && !a)
    asked = staging_drop_of(w->env->store, j->log, j->staging, &e);
  if (asked < 0 && asked != ERR_FENCED)
    log_say(w->env->log, LOG_WARN, "%s: what an earlier try left stays for a later clean-up: %s",
            j->plan.unit, e.text);
  j->attempt = 0;
  *j->staging = 0;
}

/* Gives the attempt up after a failure. Maybe only the answer to the commit was lost: the log
 * knows. If it cannot be asked, everything stays where it is, and a later job or a later term
 * settles it. A writer that was pushed aside touches nothing more. */
int job_give_up(job_work *w, int rc) {
  job *j = w->job;
  err e = {0};
  int status = rc;
  if (w->attempt == RUNLOG_NONE && !w->ahead) forget_earlier(w, rc);
  if (w->attempt == RUNLOG_NONE && (!w->ahead || give_up_staging(w, rc, &status))) return status;
  if (w->env->ranks && rc == ERR_EXISTS) job_name_other_rank(w);
  if (job_follows(w)) return job_give_up_part(w, rc);
  if (is_left(j, rc) && !w->spoiled) {
    j->attempt = w->attempt;
    j->attempt_shape = w->shape;
    return rc;
  }
  j->attempt = 0;
  *j->staging = 0;
  int swept = settle_give_up(w->env->store, j->log, w->attempt, w->env->log, &e);
  if (swept == 0) return rc;
  if (job_committed(w)) {
    j->error = (err){0};
    return 0;
  }
  if (swept == ERR_FENCED) {
    j->error = e;
    return swept;
  }
  log_say(w->env->log, LOG_WARN, "%s: the unfinished save is left for a later clean-up: %s",
          j->plan.unit, e.text);
  return rc;
}
