/* job_ranks_name: names the rank that has another file under a name of ours. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "job_vigil.h"

#define RECORD_LATE INT64_C(5000000000) /* a rank without a record by then is named as missing */

/* Finds the longest name of ours that the error's text has, among those of a table (NULL: all). */
static const char *named_file(const job_work *w, const manifest *m) {
  const char *name = NULL;
  size_t longest = 0;
  for (size_t i = 0; i < w->from->count; i++) {
    const char *own = w->from->files[i].name;
    if (strlen(own) <= longest || !strstr(w->job->error.text, own) || (m && !manifest_find(m, own)))
      continue;
    longest = strlen(own);
    name = own;
  }
  return name;
}

static void name_rank(job_work *w, const char *name, const char *both) {
  err_set(&w->job->error, ERR_EXISTS,
          "%s: %s have different files under the name \"%s\": ranks that save together write files "
          "of different names, or equal ones",
          w->job->plan.unit, both, name);
}

static void name_one(job_work *w, const char *name, uint32_t other) {
  uint32_t own = w->env->ranks->rank;
  char both[60];
  snprintf(both, sizeof both, "rank %" PRIu32 " and rank %" PRIu32, other < own ? other : own,
           other < own ? own : other);
  name_rank(w, name, both);
}

/* Names the rank whose record has the file. */
static bool name_by_record(job_work *w, const part *p, const parts_seen *seen) {
  enum { LOOKED_AT = 64 };
  const char *name = NULL;
  for (uint32_t i = 0; !name && i < p->ranks->world && i < LOOKED_AT; i++) {
    manifest m;
    if (!seen->there[i] || i == p->ranks->rank ||
        parts_get(w->env->store, w->job->log, p, i, &m, NULL) < 0)
      continue;
    name = named_file(w, &m);
    if (name) name_one(w, name, i);
    manifest_free(&m);
  }
  return name != NULL;
}

/* Names a rank that has not put a record yet, since files are sent before that. If only one is
 * missing, it is that one; of several, `late`, it is one of them. */
static bool name_by_absence(job_work *w, const parts_seen *seen, bool late) {
  const ranks *us = w->env->ranks;
  const char *name = named_file(w, NULL);
  uint32_t missing = us->world - seen->count, other = 0;
  char list[160], both[240];
  if (missing == 0 || !name) return true;
  while (seen->there[other]) other++;
  if (missing > 1 && !late) return false;
  parts_missing(seen, us->world, list, sizeof list);
  snprintf(both, sizeof both, "rank %" PRIu32 " and one of ranks %s", us->rank, list);
  if (missing == 1)
    name_one(w, name, other);
  else
    name_rank(w, name, both);
  return true;
}

/* True if only ranks of ours can have written to the attempt: this term has announced it, and we
 * try it for the first time. */
static bool is_only_ours(const job_work *w) {
  return !w->resumed && !w->adopted && w->job->attempt != w->attempt &&
         w->attempt > runlog_view(w->job->log)->term.n;
}

void job_name_other_rank(job_work *w) {
  const part p = job_part_of(w);
  vigil v = vigil_begin(w, "looking for who has another file", RECORD_LATE, VIGIL_ALONE);
  bool done = false;
  while (!done) {
    parts_seen seen = {0};
    if (parts_look(w->env->store, w->job->log, &p, &seen, NULL) < 0) return;
    done = name_by_record(w, &p, &seen) || !is_only_ours(w);
    seen.count += !seen.there[p.ranks->rank];
    seen.there[p.ranks->rank] = true;
    if (!done) done = name_by_absence(w, &seen, vigil_is_over(&v));
    parts_seen_free(&seen);
    if (!done && vigil_nap(&v, NULL) < 0) return;
  }
}
