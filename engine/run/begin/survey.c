/* survey: finds the units of the directory, and has each judged. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "prims/fs.h"
#include "prims/match_series.h"
#include "run/begin/survey.h"
#include "run/begin/survey_unit.h"

struct collect {
  run *run;
  survey *survey;
  surroundings around;
  size_t room;
  err *e;
};

static int fill(survey_unit *u, const detect_unit *facts) {
  char series[512];
  match_series(facts->name, series, sizeof series);
  *u = (survey_unit){.path = strdup(facts->path),
                     .series = strdup(series),
                     .group = strdup(facts->group),
                     .kind = facts->kind,
                     .above = facts->above,
                     .step = facts->step,
                     .made_ns = facts->made_ns,
                     .fingerprint = facts->fingerprint,
                     .lacking = facts->lacking,
                     .commit = RUNLOG_NONE};
  if (!u->path || !u->series || !u->group) return ERR_NOMEM;
  u->name = fs_base(u->path);
  return 0;
}

static int on_unit(void *ctx, const detect_unit *facts) {
  struct collect *c = ctx;
  survey *s = c->survey;
  if (facts->state == DETECT_GONE || run_dir_inside(c->run, facts->path)) return 0;
  if (run_is_aside(c->run, facts))
    return run_note_aside(c->run, facts->path, &facts->fingerprint, c->e);
  if (!VEC_ROOM(s->units, s->count, c->room))
    return err_set(c->e, ERR_NOMEM, "survey: out of memory");
  survey_unit *u = &s->units[s->count++];
  if (fill(u, facts) < 0) return err_set(c->e, ERR_NOMEM, "survey: out of memory");
  return survey_unit_judge(c->run, u, facts, &c->around, c->e);
}

/* Nobody writes here now, so no time has to pass before the files may be judged: the survey's
 * clocks are an hour ahead. */
struct later {
  io io;
  const io *real;
};

static int64_t later_now(const io *self, io_clock clock) {
  const io *real = ((const struct later *)self)->real; /* the io is its first member */
  return real->now(real, clock) + (int64_t)3600 * 1000000000;
}

int run_survey(run *r, survey *out, err *e) {
  *out = (survey){0};
  detect *d = NULL;
  struct later later = {*r->outer, r->outer};
  later.io.now = later_now;
  struct collect c = {.run = r, .survey = out, .e = e};
  names known;
  int rc = run_known_paths(r, &known, e);
  if (rc < 0) return rc;
  detect_options o = {.io = &later.io,
                      .log = r->env->log,
                      .root = r->places.dir,
                      .rules = r->rules,
                      .mode = DETECT_FED,
                      .known = (const char *const *)known.at,
                      .known_count = known.count};
  rc = detect_open(&o, &d, e);
  names_free(&known);
  if (rc == 0) rc = run_manifests_learn(r, d, e);
  if (rc == 0) {
    detect_writer_gone(d, true);
    rc = detect_run(d, e);
  }
  if (rc == 0) rc = detect_each(d, on_unit, &c);
  detect_close(d);
  proc_writers_free(c.around.writers);
  vouchers_free(&c.around.vouchers);
  if (rc < 0) run_survey_free(out);
  return rc < 0 ? rc : 0;
}

void run_survey_free(survey *s) {
  for (size_t i = 0; i < s->count; i++) {
    free(s->units[i].path);
    free(s->units[i].series);
    free(s->units[i].group);
  }
  free(s->units);
  *s = (survey){0};
}
