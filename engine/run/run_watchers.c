/* run_watchers: a directory may have several watchers. One of them owns it, and alone restores,
 * quarantines and frees; each tells the others what need not stay for its sake. */
#include <stdio.h>
#include <string.h>

#include "run/run_state.h"

/* ---- the home ---- */

/* It is held as the state directory is. */
void run_find_home(run *r) {
  err why = {0};
  home_find(r->env->io, r->places.dir, r->places.state, uri_dir(&r->places.target), &r->home);
  if (!*r->home.path || strcmp(r->home.path, r->places.state) == 0) return;
  if (fs_hold(r->held, r->home.path, &why) == 0) return;
  r->home.path[0] = 0;
  r->home.others = true;
  snprintf(r->home.why, sizeof r->home.why, "%.*s", (int)sizeof r->home.why - 1, why.text);
}

void run_say_once(run *r, const char *text) {
  for (size_t i = 0; i < r->said.count; i++)
    if (strcmp(r->said.at[i], text) == 0) return;
  names_add(&r->said, text); /* without memory for it it is said again */
  log_say(r->env->log, LOG_WARN, "%s", text);
}

/* ---- the owner ---- */

static owner_record us(const run *r) {
  const runlog_writer *w = &r->group_env.writer;
  owner_record out = {.pid = w->pid, .start = w->start};
  snprintf(out.host, sizeof out.host, "%s", w->host);
  snprintf(out.machine, sizeof out.machine, "%.*s", (int)sizeof out.machine - 1, w->machine);
  snprintf(out.boot, sizeof out.boot, "%.*s", (int)sizeof out.boot - 1, w->boot);
  snprintf(out.run, sizeof out.run, "%.*s", (int)sizeof out.run - 1, r->places.run_id);
  snprintf(out.target, sizeof out.target, "%.*s", (int)sizeof out.target - 1,
           r->places.target_text);
  snprintf(out.state, sizeof out.state, "%.*s", (int)sizeof out.state - 1, r->places.state);
  snprintf(out.state_id, sizeof out.state_id, "%s", r->identity.id);
  return out;
}

/* Without a home, or on a file system without locks, nobody can see who the owner is: the user has
 * to know. */
static int take(const run *r, bool brief, owner *out, err *e) {
  owner_record who = us(r);
  err why = {0};
  int rc = ERR_UNSUPPORTED;
  who.brief = brief;
  *out = (owner){.file.fd = -1, .dir.fd = -1};
  if (*r->home.path)
    rc = owner_take(r->env->io, r->home.path, r->places.dir, &who, out, &why);
  else
    err_set(&why, rc, "%s", r->home.why);
  if (rc == ERR_UNSUPPORTED && r->owns_dir)
    return owner_take(r->env->io, NULL, r->places.dir, &who, out, e);
  if (rc == ERR_UNSUPPORTED)
    return err_set(e, ERR_INVAL,
                   "whether another run restores to %s cannot be seen: %s. If none does, say so "
                   "with `owns_dir`",
                   r->places.dir, why.text);
  if (rc < 0 && e) *e = why;
  return rc;
}

static int on_process(void *ctx, const proc_info *info) {
  *(proc_info *)ctx = *info;
  return 1;
}

/* A killed owner may have left its job, which writes on. That of our own state directory is found
 * and ended later; that of another one is not ours to end. */
static int check_job(const run *r, err *e) {
  const owner_record *before = &r->owner.before;
  proc_info info;
  if (!before->known || before->released || before->copied ||
      !owner_of_this_boot(before, &r->owner.us) || !*before->state_id ||
      strcmp(before->state_id, r->identity.id) == 0)
    return 0;
  int rc = proc_find_env(RUN_ID_VARIABLE, before->state_id, on_process, &info, e);
  if (rc <= 0) return rc;
  return err_set(e, ERR_HELD,
                 "process %d (%.100s) belongs to the job of the last run that owned %s, and may "
                 "write there: go on with that run's state directory, %s (`state`), which ends it, "
                 "or end it",
                 (int)info.pid, info.command, r->places.dir, before->state);
}

int run_own(run *r, err *e) {
  if (r->beside) return 0;
  int rc = take(r, false, &r->owner, e);
  if (rc == 0) rc = check_job(r, e);
  return rc < 0 ? rc : owner_note(r->env->io, &r->owner, e);
}

static void tell_log(run *r, const run_group *g) {
  err why = {0};
  if (r->watcher.file.fd < 0 || !*g->log_name) return;
  if (watcher_log(r->env->io, &r->watcher, g->group.prefix, g->log_name, &why) < 0)
    log_say(r->env->log, LOG_DEBUG, "%s", why.text); /* it is only to spare others a wait */
}

void run_group_name_log(run *r, run_group *g) {
  const char *nonce = NULL;
  if (*g->log_name || !g->group.log || runlog_nonce(g->group.log, 0, &nonce, NULL) < 0) return;
  snprintf(g->log_name, sizeof g->log_name, "%s", nonce ? nonce : "");
  tell_log(r, g);
}

/* The term that stands for us in the lock file: that of the former owner's log, if we follow him so,
 * else the first, which is that of the directory itself if it has one. */
static run_group *term_for(run *r) {
  run_group *first = NULL;
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (g->term == RUNLOG_NONE) continue;
    if (!r->owner.by_term && !first) first = g;
    if (r->owner.by_term && owner_follows(&r->owner.before, g->log_name, g->term)) return g;
  }
  return first;
}

int run_own_by_term(run *r, err *e) {
  for (size_t i = 0; i < r->group_count; i++)
    if (r->groups[i]->term != RUNLOG_NONE) run_group_name_log(r, r->groups[i]);
  if (r->beside) return 0;
  run_group *g = term_for(r);
  if (!g && r->owner.by_term) return owner_refuse(&r->owner, r->places.dir, e);
  return owner_pass(r->env->io, &r->owner, g ? g->log_name : "", g ? g->term : 0, e);
}

int run_own_briefly(const run *r, const char *log, uint64_t term, owner *out, err *e) {
  bool known = term != RUNLOG_NONE;
  int rc = take(r, true, out, e);
  if (rc < 0) return rc;
  if (out->by_term && !(known && owner_follows(&out->before, log, term)))
    rc = owner_refuse(out, r->places.dir, e);
  if (rc == 0) rc = owner_note(r->env->io, out, e);
  if (rc == 0) rc = owner_pass(r->env->io, out, known ? log : "", known ? term : 0, e);
  if (rc < 0) owner_drop(r->env->io, out);
  return rc;
}

int run_may_change(const run *r, const owner *o, group *g, uint64_t term, err *e) {
  int rc = o->held ? owner_check(r->env->io, o, e)
                   : err_set(e, ERR_HELD, "%s is not ours to change", r->places.dir);
  return rc < 0 || !g || term == RUNLOG_NONE ? rc : group_check(g, term, e);
}

/* ---- the others ---- */

/* The built-in excludes are everybody's. */
bool run_own_excludes(const run *r, names *out) {
  bool ok = true;
  for (size_t i = 0; ok && r->rules->excludes[i]; i++)
    if (!rules_excludes_builtin(r->rules->excludes[i])) ok = names_add(out, r->rules->excludes[i]);
  return ok;
}

static watcher_card card(const run *r, const names *excludes) {
  return (watcher_card){.state = r->places.state,
                        .target = r->places.target_text,
                        .run = r->places.run_id,
                        .host = r->group_env.writer.host,
                        .pid = r->group_env.writer.pid,
                        .excludes = names_list(excludes)};
}

static void not_known(run *r, const char *why) {
  char text[ERR_TEXT_MAX];
  snprintf(text, sizeof text,
           "another watcher of %.200s may free there what this one has not saved yet: it cannot be "
           "told: %.500s",
           r->places.dir, why);
  run_say_once(r, text);
}

/* Where there can be no home, nobody frees anything but on a user's word that he is alone. */
void run_join(run *r) {
  names excludes = {0};
  err why = {0};
  if (!*r->home.path && r->home.others) not_known(r, r->home.why);
  if (!*r->home.path) return;
  if (!run_own_excludes(r, &excludes)) err_set(&why, ERR_NOMEM, "out of memory");
  watcher_card ours = card(r, &excludes);
  if (why.code == 0) watcher_join(r->env->io, r->home.path, &ours, &r->watcher, &why);
  if (why.code < 0) not_known(r, why.text);
  names_free(&excludes);
}

static void tell(run *r, run_unit *u) {
  err why = {0};
  if (u->stamp == 0 || u->told == u->stamp) return;
  if (watcher_done(r->env->io, &r->watcher, u->path, u->stamp, &why) == 0)
    u->told = u->stamp;
  else
    not_known(r, why.text);
}

/* Tells all once more that still holds, in a file that has become long. */
static void tell_again(run *r) {
  names excludes = {0};
  err why = {0};
  if (run_own_excludes(r, &excludes)) {
    watcher_card ours = card(r, &excludes);
    if (watcher_again(r->env->io, &r->watcher, &ours, &why) < 0) not_known(r, why.text);
    for (size_t i = 0; i < r->group_count; i++) tell_log(r, r->groups[i]);
    for (size_t i = 0; i < r->unit_count; i++) {
      bool holds = r->units[i]->told && r->units[i]->told == r->units[i]->stamp;
      r->units[i]->told = 0;
      if (holds) tell(r, r->units[i]);
    }
  }
  names_free(&excludes);
}

/* What is older than a durable one of its kind is never saved after it. */
void run_tell_watchers(run *r, const run_unit *u) {
  if (r->watcher.file.fd < 0 || !run_anyway_sure(r, u->group)) return;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *k = r->units[i];
    if (k->told && k->told == k->stamp) continue;
    if (k == u || (k->phase != UNIT_RUNNING && run_supersedes(r, u, k))) tell(r, k);
  }
  if (watcher_is_long(&r->watcher)) tell_again(r);
}

void run_tell_group(run *r, const run_group *g) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->group == g && r->units[i]->phase == UNIT_DURABLE)
      run_tell_watchers(r, r->units[i]);
}

bool run_has_all(const run *r) {
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    bool missed = u->phase == UNIT_DROPPED && u->passed_over;
    if (missed || run_unit_queued(u) || u->phase == UNIT_RUNNING || u->phase == UNIT_FAILED ||
        u->phase == UNIT_SETTLING)
      return false;
    if (u->phase == UNIT_DURABLE && !run_anyway_sure(r, u->group)) return false;
  }
  return true;
}

/* A run that never got as far as to look has saved nothing of what a former one may have left. */
void run_leave(run *r, bool has_all) {
  watcher_leave(r->env->io, &r->watcher, r->started ? !has_all : r->watcher.found);
  owner_drop(r->env->io, &r->owner);
  names_free(&r->said);
}

int run_watchers_of(const io *io, const char *dir, run_watcher_fn *fn, void *ctx, err *e) {
  places p;
  watchers all = {0};
  int rc = places_find(io, dir, NULL, &p, e); /* which is its home, too */
  if (rc == 0) rc = watchers_look(io, p.state, NULL, &all, e);
  for (size_t i = 0; rc == 0 && i < all.count; i++) fn(ctx, &all.at[i]);
  watchers_free(&all);
  return rc;
}
