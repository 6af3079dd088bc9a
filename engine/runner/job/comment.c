#include "comment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runner/cli/report.h"

static const double least_s = 120;

void comment_init(comment *c, unsigned where, uint32_t rank) {
  *c =
      (comment){.where = rank == 0 ? where : COMMENT_OFF, .next_at = INFINITY, .put_at = -INFINITY};
  if (c->where != COMMENT_OFF && !getenv("SLURM_JOB_ID")) {
    report_warning("--slurm-comment: this is no job of Slurm's");
    c->where = COMMENT_OFF;
  }
}

void comment_note(comment *c) {
  if (c->where == COMMENT_OFF) return;
  c->changed = true;
  c->next_at = c->put_at + least_s;
}

static void put_seconds(FILE *f, const char *key, double seconds) {
  if (seconds < 0)
    fprintf(f, " %s=-", key);
  else
    fprintf(f, " %s=%.0f", key, seconds);
}

static void write_text(FILE *f, const ckpt_evict *e) {
  fputs("ckpt-lua", f);
  put_seconds(f, "time", e->time);
  put_seconds(f, "last_durable_time", e->last_durable_time);
  put_seconds(f, "step", (double)e->step);
  fprintf(f, " bytes_pending=%llu", (unsigned long long)e->bytes_pending);
  put_seconds(f, "seconds_to_durable", e->seconds_to_durable);
  put_seconds(f, "lost_since", e->lost_since);
}

void comment_look(comment *c, ckpt *engine, ckpt_run *run, double now) {
  ckpt_evict cost = {.size = sizeof cost};
  char *text = NULL;
  size_t size = 0;
  uint64_t job;
  if (!c->changed || now < c->next_at) return;
  FILE *f = ckpt_run_evict(run, &cost) < 0 ? NULL : open_memstream(&text, &size);
  if (f) write_text(f, &cost);
  bool whole = f && fclose(f) == 0;
  c->changed = false;
  c->put_at = now;
  c->next_at = INFINITY;
  uint32_t which = c->where == COMMENT_ADMIN ? CKPT_COMMENT_ADMIN : CKPT_COMMENT_USER;
  if (whole && ckpt_comment(engine, which, text, &job) < 0)
    report_debug("the comment of the job was not put: %s", ckpt_error(engine));
  free(text);
}

void comment_take(comment *c, const ckpt_completion *what) {
  if (what->kind != CKPT_COMMENTED || what->status >= 0) return;
  if (what->status != CKPT_EACCESS && what->status != CKPT_EHELD) {
    report_debug("the comment of the job was not put: %s", what->reason);
    comment_note(c);
    return;
  }
  report_warning("--slurm-comment: %s; it is left alone from here on%s", what->reason,
                 what->status == CKPT_EACCESS && c->where == COMMENT_ADMIN
                     ? " (--slurm-comment user writes into Comment, which a user may)"
                     : "");
  c->where = COMMENT_OFF;
  c->changed = false;
  c->next_at = INFINITY;
}
