#include <stdlib.h>

#include "answer.h"
#include "outcome.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"

const char *drain_begin(ckpt_run *run, int64_t ms, FILE *out) {
  ckpt_event event = {.size = sizeof event, .kind = CKPT_EVENT_DRAIN, .grace_s = (double)ms / 1000};
  uint64_t number = 0;
  if (ms < 0) return "drain: `ms` is a whole number of milliseconds, no less than 0";
  /* One that has begun counts, though the step behind it failed. */
  int rc = ckpt_notify(run, &event, &number);
  if (rc == CKPT_ELIMIT) return "drain: so many are under way already: wait for one of them";
  if (number == 0) return rc == CKPT_ENOMEM ? "out of memory" : "drain: the run cannot do it now";
  fprintf(out, "%llu\n", (unsigned long long)number);
  return NULL;
}

/* ---- the checkpoints ---- */

/* What all of them come to. */
typedef struct drained {
  ckpt_run *run;
  FILE *lines; /* of all */
  bool json;
  char *late; /* one that is not durable, and why: for the last word; NULL: none */
} drained;

static const struct {
  const char *json, *text;
} words[] = {
    [CKPT_DRAIN_WAITS] = {"waiting", "waiting    "},
    [CKPT_DRAIN_STORED] = {"durable", "durable    "},
    [CKPT_DRAIN_UNWANTED] = {"not_wanted", "not wanted "},
    [CKPT_DRAIN_OPEN] = {"not_complete", "incomplete "},
    [CKPT_DRAIN_LEFT] = {"too_late", "too late   "},
    [CKPT_DRAIN_FAILED] = {"failed", "failed     "},
    [CKPT_DRAIN_GONE] = {"gone", "gone       "},
    [CKPT_DRAIN_UNPROVEN] = {"not_proven", "not proven "},
};

static void put_unit(FILE *f, const ckpt_drained *u) {
  text_plain(f, u->unit);
  if (u->bytes_left > 0 && u->is == CKPT_DRAIN_WAITS) {
    fputs(", ", f);
    text_size(f, u->bytes_left);
    fputs(" of ", f);
    text_size(f, u->bytes);
    fputs(" left", f);
  }
  if (u->reason && *u->reason) {
    fputs(": ", f);
    text_prose(f, u->reason);
  }
}

static void put_json(FILE *f, const ckpt_drained *u) {
  record r = record_begin(f);
  record_name(&r, "unit", u->unit);
  record_step(&r, "step", u->step);
  record_text(&r, "result", words[u->is].json);
  record_bool(&r, "newest", u->counts);
  record_prose(&r, "reason", u->reason);
  record_count(&r, "bytes", u->bytes);
  record_count(&r, "bytes_left", u->bytes_left);
  record_end_line(&r);
}

static void note_late(drained *d, const ckpt_drained *u) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  put_unit(f, u);
  if (fclose(f) != 0) return;
  free(d->late);
  d->late = text;
}

static void on_unit(void *ctx, const ckpt_drained *u) {
  drained *d = ctx;
  if (u->is >= sizeof words / sizeof *words || !words[u->is].json) return;
  if (u->late) note_late(d, u);
  if (d->json) {
    put_json(d->lines, u);
    return;
  }
  fputs(words[u->is].text, d->lines);
  put_unit(d->lines, u);
  fputc('\n', d->lines);
}

/* ---- the last word ---- */

static void put_last(const drained *d, const ckpt_drain *state) {
  const char *word = ckpt_standing_name(state->standing);
  if (d->json) {
    record r = record_begin(d->lines);
    record_text(&r, "drained", word);
    record_text(&r, "status", ckpt_status_name(state->status));
    record_end_line(&r);
    return;
  }
  fputs("drained    ", d->lines);
  for (const char *p = word; p && *p; p++) fputc(*p == '_' ? ' ' : *p, d->lines);
  if (state->standing == CKPT_DURABLE) {
    fputs(" in ", d->lines);
    text_plain(d->lines, ckpt_run_target(d->run));
  }
  fputc('\n', d->lines);
}

/* What is gone may be there again when somebody asks once more, as what was late is. */
static int code_of(const ckpt_drain *state) {
  const int status = state->over ? state->status : CKPT_OK;
  if (state->over && state->standing == CKPT_NOT_PROVEN) return EXIT_PARTIAL;
  return status == CKPT_ETIMEOUT || status == CKPT_ERETIRED ? EXIT_DEADLINE : exit_code_of(status);
}

static void put_head(FILE *out, const drained *d, const ckpt_drain *state) {
  record r = record_begin(out);
  record_bool(&r, "over", state->over);
  const int code = code_of(state);
  record_count(&r, "code", (uint64_t)code);
  record_text(&r, "status", ckpt_status_name(state->over ? state->status : CKPT_OK));
  record_text(&r, "late", code == EXIT_DONE ? NULL : d->late ? d->late : state->reason);
  record_end_line(&r);
}

const char *drain_answer(ckpt_run *run, int64_t number, bool json, FILE *out) {
  drained d = {.run = run, .json = json};
  ckpt_drain state = {.size = sizeof state};
  char *text = NULL;
  size_t size = 0;
  if (!(d.lines = open_memstream(&text, &size))) return "out of memory";
  int rc = ckpt_run_drained(run, (uint64_t)number, &state, on_unit, &d);
  if (rc >= 0 && state.over) put_last(&d, &state);
  if (fclose(d.lines) != 0) rc = CKPT_ENOMEM;
  if (rc >= 0) put_head(out, &d, &state);
  if (rc >= 0 && state.over) fputs(text, out);
  free(d.late);
  free(text);
  return rc >= 0             ? NULL
         : rc == CKPT_ENOENT ? "drain: this one is not known, or was over long ago"
                             : "drain: how it stands is not known";
}
