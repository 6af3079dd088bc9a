/* Begins to watch the directory, which was made ready. */
#include "commit/lease.h"
#include "run/begin/begin.h"
#include "run/run_state.h"

static int take_known(void *ctx, const detect_unit *unit) {
  run *r = ctx;
  if (unit->state != DETECT_UNPROVEN && unit->state != DETECT_OPEN) return 0;
  if (run_dir_inside(r, unit->path) || run_is_aside(r, unit) || run_is_others_part(r, unit))
    return 0;
  journal_unit known = journal_find(r->journal, unit->path);
  bool seen = known.state == JOURNAL_COMPLETE || known.state == JOURNAL_COMMITTED;
  if (!seen && !(r->trust && unit->state == DETECT_UNPROVEN)) return 0;
  run_unit *u;
  return run_unit_take(r, unit, &u, NULL);
}

/* Tells the detector, which has only seen a listing, which units are whole by the journal or the
 * log. The paths are collected first: proving one changes the list that is walked. */
static int prove_known(run *r, err *e) {
  int rc = detect_each(r->detect, take_known, r);
  if (rc < 0) return err_set(e, rc, "list %s: out of memory", r->places.dir);
  for (size_t i = 0; rc >= 0 && i < r->unit_count; i++) {
    const char *path = r->units[i]->path;
    journal_unit known = journal_find(r->journal, path);
    bool seen = known.state == JOURNAL_COMPLETE || known.state == JOURNAL_COMMITTED;
    rc = seen ? detect_prove(r->detect, path, &known.fingerprint, "whole when it was last seen", e)
              : 0;
    if (rc == 0 && r->trust) rc = detect_prove(r->detect, path, NULL, RUN_TRUSTED, e);
  }
  return rc < 0 ? rc : 0;
}

int run_start(run *r, err *e) {
  if (r->started) return err_set(e, ERR_INVAL, "the run is started already");
  if (!r->prepared) {
    run_prepared ignored;
    int rc = run_prepare(r, RUN_NEVER, NULL, &ignored, e);
    if (rc < 0) return rc;
  }
  names known;
  int rc = run_known_paths(r, &known, e);
  if (rc < 0) return rc;
  detect_options o = {.io = r->env->io,
                      .log = r->env->log,
                      .root = r->places.dir,
                      .rules = r->rules,
                      .mode = r->poll ? DETECT_POLL : DETECT_AUTO,
                      .known = (const char *const *)known.at,
                      .known_count = known.count};
  rc = run_tasks_open(r, e);
  if (r->hub) o.agree = run_tasks_agree;
  o.agree_ctx = r;
  if (rc == 0) rc = detect_open(&o, &r->detect, e);
  names_free(&known);
  if (rc == 0) rc = run_manifests_learn(r, r->detect, e);
  if (rc == 0) run_order_begin(r);
  if (rc == 0) rc = prove_known(r, e);
  run_manifests_drop(r);
  if (rc < 0) {
    detect_close(r->detect);
    r->detect = NULL;
    return rc;
  }
  r->lease_at = r->env->io->now(r->env->io, IO_MONO) + (int64_t)LEASE_RENEW_S * 1000000000;
  r->started = true;
  run_patience_end(r);
  run_note_start(r);
  run_record_start(r);
  run_starts_watch(r); /* nothing of ours opens its files from here on: they are committed */
  return 0;
}
