/* job_pointers: what a pointer or a list says of the unit that it is saved with. None is saved with a
 * checkpoint that it does not know: a restore would bring a file that leads nowhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/pointers.h"
#include "job/move/pointer_files.h"
#include "job_impl.h"
#include "prims/match_series.h"

static const pointer_row *row_of(const job_said *s) {
  return s->link ? pointers_link() : pointers_row(s->name);
}

static pointer_place place_of(const job_work *w, char group[FS_PATH_MAX]) {
  fs_parent(w->job->plan.unit, group);
  return (pointer_place){.io = w->env->io,
                         .rules = w->env->rules,
                         .root = w->env->root,
                         .group = strcmp(group, ".") == 0 ? "" : group};
}

/* The step of what is named; MATCH_NO_STEP: it has none, or is no unit. */
static int64_t step_of(const pointer_place *at, const pointer_row *row, const char *spelt) {
  match_unit found;
  char *end;
  if (row->form == POINTER_STEP) {
    long long step = strtoll(spelt, &end, 10);
    return *end || step < 0 ? MATCH_NO_STEP : step;
  }
  return pointer_unit(at, spelt, &found) ? found.step : MATCH_NO_STEP;
}

static job_word judge(const job_work *w, const job_said *s, const pointer_row *row,
                      const names *says) {
  char group[FS_PATH_MAX];
  const pointer_place at = place_of(w, group);
  const int64_t own = w->job->plan.step;
  bool newer = false;
  for (size_t i = 0; i < says->count; i++) {
    if (pointers_mean(row, says->at[i], job_unit(w->job), own)) return JOB_WORD_FITS;
    int64_t step = step_of(&at, row, says->at[i]);
    if (row->form != POINTER_LIST && step != MATCH_NO_STEP && step == own) return JOB_WORD_FITS;
    newer |= step != MATCH_NO_STEP && own != MATCH_NO_STEP && step > own;
  }
  if (says->count == 0) return s->len ? JOB_WORD_FITS : JOB_WORD_OLDER;
  if (newer) return JOB_WORD_NEWER;
  return pointers_follow_newest(s->name, s->link) ? JOB_WORD_OLDER : JOB_WORD_FITS;
}

job_word job_word_of(const job_work *w, const job_said *s) {
  const pointer_row *row = row_of(s);
  names says = {0};
  job_word word = JOB_WORD_FITS;
  if (pointers_lead(row) && pointers_read(row, s->text, s->len, &says, NULL) == 0)
    word = judge(w, s, row, &says);
  names_free(&says);
  return word;
}

bool job_is_pointer(const char *name, bool link) {
  return link || pointers_lead(pointers_row(name));
}

bool job_is_state(const char *name) {
  const pointer_row *row = pointers_row(name);
  return row && row->form == POINTER_STATE;
}

/* When one is late, it was written as it would have been for this unit, but for the name. */
char *job_word_for_us(const job_work *w, const job_said *s, size_t *len) {
  const pointer_row *row = row_of(s);
  size_t room = s->len + FS_PATH_MAX;
  names says = {0};
  char *out = NULL;
  if (pointers_lead(row) && pointers_follow_newest(s->name, s->link) &&
      pointers_read(row, s->text, s->len, &says, NULL) == 0 && says.count == 1 &&
      (out = malloc(room)))
    *len = pointers_rewrite(row, s->text, s->len, says.at[0], job_unit(w->job), w->job->plan.step,
                            out, room);
  names_free(&says);
  if (out && *len) return out;
  free(out);
  return NULL;
}

/* ---- waiting ---- */

static bool is_named(const pointer_row *row, const names *says, const runlog_commit *c) {
  for (size_t i = 0; i < says->count; i++)
    if (pointers_mean(row, says->at[i], c->unit, c->step)) return true;
  return false;
}

/* It names one that was saved, and not the last one of its kind: nobody kept it up then, or the job died
 * before it did. To wait for it would make each checkpoint late. */
static bool was_passed_over(const job_work *w, const pointer_row *row, const names *says) {
  const runlog_state *state = runlog_view(w->job->log);
  const runlog_commit *last = NULL;
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || strcmp(c->unit, job_unit(w->job)) == 0 ||
        !match_same_series(c->unit, job_unit(w->job)))
      continue;
    if (is_named(row, says, c)) return last != NULL;
    last = c;
  }
  return false;
}

bool job_word_is_kept_up(const job_work *w, const job_said *s) {
  const pointer_row *row = row_of(s);
  names says = {0};
  bool yes =
      pointers_read(row, s->text, s->len, &says, NULL) < 0 || !was_passed_over(w, row, &says);
  names_free(&says);
  return yes;
}

static int64_t last_write(const unit_files *t) {
  int64_t last = t->mtime_ns;
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].mtime_ns > last) last = t->files[i].mtime_ns;
  return last;
}

bool job_word_wait(job_work *w) {
  enum { NAP_MS = 100 };
  const int64_t most = (int64_t)10 * 1000000000;
  const io *io = w->env->io;
  int64_t now = io->now(io, IO_MONO), age = io->now(io, IO_WALL) - last_write(&w->source);
  if (!w->word_until) w->word_until = now + most - (age > 0 && age < most ? age : 0);
  if (w->job->found || age >= most || now >= w->word_until || atomic_load(&w->job->cancel) ||
      (w->env->hurry && atomic_load(w->env->hurry)))
    return false;
  job_at(w->job, "waiting for the file that names it");
  io->sleep(io, (int64_t)NAP_MS * 1000000);
  return true;
}

void job_word_left_out(job_work *w, const char *path) {
  job *j = w->job;
  log_say(w->env->log, LOG_INFO, "%s is saved without %s, which does not name it", j->plan.unit,
          path);
  snprintf(j->without, sizeof j->without,
           "%.600s does not name the checkpoints beside which it stands, or not within 10 seconds: "
           "they are saved without it",
           path);
}

/* ---- what else it names ---- */

static int need(job_work *w, const char *spelt, err *e) {
  char base[FS_PATH_MAX], group[FS_PATH_MAX];
  const pointer_place at = place_of(w, group);
  if (!pointer_names_unit(&at, spelt) || !pointers_base(spelt, base, sizeof base) ||
      strcmp(base, job_unit(w->job)) == 0)
    return 0;
  return names_add(&w->needs, base) ? 0 : err_set(e, ERR_NOMEM, "note a list: out of memory");
}

static int need_all(job_work *w, const names *says, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < says->count; i++) rc = need(w, says->at[i], e);
  return rc;
}

int job_note_needs(job_work *w, const job_said *s, err *e) {
  const pointer_row *row = row_of(s);
  names says = {0};
  if (!pointers_lead(row) || row->form == POINTER_STEP) return 0;
  int rc = pointers_read(row, s->text, s->len, &says, e);
  if (rc == 0) rc = need_all(w, &says, e);
  names_free(&says);
  return rc;
}

/* What the checkpoint itself names: Hugging Face's trainer_state.json, the best one. */
int job_note_wishes(job_work *w, err *e) {
  const io *io = w->env->io;
  char dir[FS_PATH_MAX], path[FS_PATH_MAX];
  int rc = 0;
  if (w->job->plan.kind != MATCH_DIR || fs_join(dir, w->env->root, w->job->plan.unit, NULL) < 0)
    return 0;
  for (size_t i = 0; rc == 0 && i < w->source.count; i++) {
    const unit_file *f = &w->source.files[i];
    const char *key = f->type == MANIFEST_FILE ? pointers_wish(f->name) : NULL;
    names says = {0};
    buf text;
    if (!key || f->size > POINTERS_BYTES_MAX || fs_join(path, dir, f->name, NULL) < 0) continue;
    buf_init(&text, POINTERS_BYTES_MAX + 1);
    if (fs_read(io, path, POINTERS_BYTES_MAX, &text, NULL) == 0)
      rc = pointers_read_json(text.data, text.len, key, &says, e);
    if (rc == 0) rc = need_all(w, &says, e);
    names_free(&says);
    buf_free(&text);
  }
  return rc;
}

/* Of too many the last ones are told: where names tell an order, these are the newest. */
void job_tell_needs(job_work *w, char out[RUNLOG_NEEDS_MAX]) {
  size_t from, len = 0;
  *out = 0;
  names_sort_unique(&w->needs);
  for (from = w->needs.count; from > 0; from--) {
    size_t more = strlen(w->needs.at[from - 1]) + 1;
    if (len + more >= RUNLOG_NEEDS_MAX) break;
    len += more;
  }
  for (len = 0; from < w->needs.count; from++)
    len += (size_t)snprintf(out + len, RUNLOG_NEEDS_MAX - len, "%s/", w->needs.at[from]);
}
