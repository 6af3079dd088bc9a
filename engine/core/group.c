#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lease.h"
#include "core/settle.h"

static int id_of(const group *g, char out[RUNLOG_ID_MAX], err *e) {
  const char *run_id = g->env->run_id;
  int len = snprintf(out, RUNLOG_ID_MAX, "%s%s%s", run_id, *g->prefix ? ":" : "", g->prefix);
  if (len < RUNLOG_ID_MAX) return 0;
  /* A long path: its digest stands for it. */
  digest d;
  char hex[HASH_HEX_MAX];
  int rc = hash_bytes(HASH_XXH3_128, g->prefix, strlen(g->prefix), &d, e);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  if (snprintf(out, RUNLOG_ID_MAX, "%s:%s", run_id, hex) < RUNLOG_ID_MAX) return 0;
  return err_set(e, ERR_LIMIT, "the run id \"%s\" is too long: at most %d bytes", run_id,
                 RUNLOG_ID_MAX - HASH_HEX_MAX - 1);
}

int group_open(const group_env *env, const char *prefix, group *out, err *e) {
  *out = (group){.env = env, .prefix = strdup(prefix)};
  return out->prefix ? 0 : err_set(e, ERR_NOMEM, "open group %s: out of memory", prefix);
}

int group_read(group *g, err *e) {
  return g->log ? 0 : runlog_open(g->env->store, g->prefix, &g->log, e);
}

void group_close(group *g) {
  err ignored = {0};
  if (g->begun &&
      lease_release(g->env->store, g->prefix, runlog_view(g->log)->term.n, &ignored) < 0)
    log_say(g->env->log, LOG_DEBUG, "the lease stays until it expires: %s", ignored.text);
  runlog_close(g->log);
  free(g->prefix);
  *g = (group){0};
}

int group_may_begin(group *g, err *e) {
  char id[RUNLOG_ID_MAX];
  int rc = group_read(g, e);
  if (rc == 0) rc = id_of(g, id, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(g->log);
  if (*state->run_id && strcmp(state->run_id, id) != 0 && !g->env->continue_run) {
    const runlog_commit *last = runlog_newest(state, NULL);
    return err_set(e, ERR_OTHER_RUN,
                   "the target%s%s belongs to run %s (last commit: %s), and this is run %s: name "
                   "another target, or go on in it with --continue-run",
                   *g->prefix ? "'s group " : "", g->prefix, state->run_id,
                   last ? last->dir : "none", id);
  }
  return lease_check(g->env->store, g->prefix, &state->term, &g->env->writer, g->env->take_over, e);
}

int group_begin(group *g, err *e) {
  if (g->begun) return 0;
  char id[RUNLOG_ID_MAX];
  err hint = {0};
  int rc = group_read(g, e);
  if (rc == 0) rc = runlog_refresh(g->log, e);
  if (rc == 0) rc = group_may_begin(g, e);
  if (rc == 0) rc = id_of(g, id, e);
  if (rc == 0) rc = runlog_begin(g->log, id, &g->env->writer, g->env->continue_run, e);
  if (rc < 0) return rc;
  g->begun = true;
  if (group_renew(g, runlog_view(g->log)->term.n, &hint) < 0)
    log_say(g->env->log, LOG_WARN, "the lease could not be written: %s", hint.text);
  return settle_attempts(g->env->store, g->log, g->env->log, e);
}

int group_renew(const group *g, uint64_t term, err *e) {
  return lease_renew(g->env->store, g->prefix, term, &g->env->writer, e);
}
