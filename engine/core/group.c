#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lease.h"
#include "core/settle.h"

/* Ranks but the first have no term of their own. Rank 0 alone asks who holds the place, writes the
 * lease, and settles what was left. */
static bool follows(const group *g) {
  return g->env && g->env->ranks && g->env->ranks->rank > 0; /* a zeroed group has none */
}

/* The run's id, with the group's path; a long path's digest stands for it. */
static int id_of(const group *g, char out[RUNLOG_ID_MAX], err *e) {
  const char *run_id = g->env->run_id;
  digest d;
  char hex[HASH_HEX_MAX];
  int len = snprintf(out, RUNLOG_ID_MAX, "%s%s%s", run_id, *g->prefix ? ":" : "", g->prefix);
  if (len < RUNLOG_ID_MAX) return 0;
  int rc = hash_bytes(HASH_XXH3_128, g->prefix, strlen(g->prefix), &d, e);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  if (snprintf(out, RUNLOG_ID_MAX, "%s:%s", run_id, hex) < RUNLOG_ID_MAX) return 0;
  return err_set(e, ERR_LIMIT, "the run id \"%.200s\" is too long: at most %d bytes", run_id,
                 RUNLOG_ID_MAX - 2 - (int)strlen(hex));
}

int group_open(const group_env *env, const char *prefix, group *out, err *e) {
  *out = (group){.env = env, .prefix = strdup(prefix)};
  return out->prefix ? 0 : err_set(e, ERR_NOMEM, "open group %s: out of memory", prefix);
}

int group_read(group *g, err *e) {
  return g->log ? 0 : runlog_open(g->env->store, g->prefix, &g->log, e);
}

void group_release(group *g) {
  err why = {0};
  if (follows(g)) g->term = 0;
  if (g->term && lease_release(g->env->store, g->prefix, g->term, &g->env->writer, &why) < 0)
    log_say(g->env->log, LOG_DEBUG, "the lease stays until it expires: %s", why.text);
  else
    g->term = 0;
}

void group_close(group *g) {
  group_release(g);
  runlog_close(g->log);
  runlog_close(g->second);
  free(g->prefix);
  *g = (group){0};
}

int group_look(group *g, err *e) {
  char id[RUNLOG_ID_MAX];
  int rc = group_read(g, e);
  if (rc < 0 || follows(g)) return rc; /* the launch tells that it is ours, not the directory */
  rc = id_of(g, id, e);
  return rc < 0 ? rc : runlog_check_run(g->log, id, g->env->continue_run, e);
}

int group_may_begin(group *g, err *e) {
  int rc = group_look(g, e);
  if (rc < 0 || follows(g)) return rc;
  return lease_check(g->env->store, g->prefix, &runlog_view(g->log)->term, &g->env->writer,
                     g->env->take_over, g->env->wait, e);
}

static int open_term(group *g, err *e) {
  char id[RUNLOG_ID_MAX];
  int rc = group_read(g, e);
  if (rc == 0) rc = runlog_refresh(g->log, e);
  if (rc == 0) rc = group_may_begin(g, e);
  if (rc == 0) rc = id_of(g, id, e);
  if (rc == 0) rc = runlog_begin(g->log, id, &g->env->writer, g->env->continue_run, e);
  if (rc < 0) return rc;
  g->term = runlog_view(g->log)->term.n;
  return 0;
}

static int write_lease(group *g, err *e) {
  err why = {0};
  bool needed = g->env->ranks && g->env->ranks->world > 1;
  int rc = lease_renew(g->env->store, g->prefix, g->term, &g->env->writer, &why);
  if (rc < 0 && needed)
    return err_set(e, rc, "the lease, which the other ranks wait for, could not be written: %s",
                   why.text);
  if (rc < 0) log_say(g->env->log, LOG_WARN, "the lease could not be written: %s", why.text);
  g->leased = true;
  return 0;
}

/* That rank 0 has not begun yet is no error here: a job of the group waits for it. */
static int follow_term(group *g, err *e) {
  const ranks *us = g->env->ranks;
  err why = {0};
  int rc = group_read(g, e);
  if (rc < 0) return rc;
  rc = runlog_follow(g->log, us->launch, us->world, &why);
  if (rc == 0) g->term = runlog_view(g->log)->term.n;
  return rc == 0 || rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

int group_begin(group *g, err *e) {
  if (follows(g)) return follow_term(g, e);
  int rc = g->term ? 0 : open_term(g, e);
  if (rc == 0 && !g->leased) rc = write_lease(g, e);
  if (rc == 0 && !g->settled) rc = settle_attempts(g->env->store, g->log, g->env->log, e);
  if (rc == 0) g->settled = true;
  return rc;
}

static int check_term(group *g, uint64_t term, err *e) {
  int rc = g->second ? 0 : runlog_open(g->env->store, g->prefix, &g->second, e);
  if (rc < 0) return rc;
  runlog_claim(g->second, term);
  return runlog_refresh(g->second, e);
}

int group_renew(group *g, uint64_t term, err *e) {
  err why = {0};
  if (follows(g) || atomic_exchange(&g->renewing, 1)) return 0;
  int rc = check_term(g, term, &why);
  if (rc == ERR_FENCED)
    err_set(e, rc, "%s", why.text);
  else /* that the log cannot be read just now is no reason to look dead */
    rc = lease_renew(g->env->store, g->prefix, term, &g->env->writer, e);
  atomic_store(&g->renewing, 0);
  return rc;
}
