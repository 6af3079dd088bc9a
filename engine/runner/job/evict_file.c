#include "evict_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "state_dir.h"

static const char name[] = "evict.json", name_tmp[] = "evict.json.tmp";

/* ---- as text and as JSON ---- */

static void add_seconds(record *r, const char *key, double seconds) {
  if (seconds < 0)
    record_text(r, key, NULL);
  else
    fprintf(record_key(r, key), "%.3f", seconds);
}

void evict_json(record *r, const ckpt_evict *c) {
  add_seconds(r, "time", c->time);
  add_seconds(r, "last_durable_time", c->last_durable_time);
  add_seconds(r, "complete_time", c->complete_time);
  if (c->name)
    record_name(r, "name", c->name);
  else
    record_text(r, "name", NULL);
  record_step(r, "step", c->step);
  record_count(r, "bytes_pending", c->bytes_pending);
  add_seconds(r, "seconds_to_durable", c->seconds_to_durable);
  add_seconds(r, "lost_since", c->lost_since);
  add_seconds(r, "lost_if_killed_now", c->lost_if_killed_now);
}

void evict_print(FILE *f, const ckpt_evict *c) {
  fputs("evict      ", f);
  if (c->lost_since < 0) {
    fputs("a kill loses nothing", f);
  } else {
    fputs("a kill loses ", f);
    text_age(f, c->lost_if_killed_now, 0);
    fputs(" of work", f);
  }
  if (c->seconds_to_durable != 0) {
    fputs("; ", f);
    text_size(f, c->bytes_pending);
    fputs(" are not durable yet", f);
  }
  if (c->seconds_to_durable > 0) {
    fputs(", in about ", f);
    text_age(f, c->seconds_to_durable, 0);
  }
  fputc('\n', f);
}

/* ---- the file ---- */

static void write_all(FILE *f, const evict *e, ckpt_run *run, const ckpt_evict *cost) {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) < 0) *host = 0;
  record r = record_begin(f);
  evict_json(&r, cost);
  record_text(&r, "run", ckpt_run_id(run));
  record_text(&r, "target", ckpt_run_target(run));
  record_name(&r, "directory", ckpt_run_dir(run));
  record_text(&r, "host", *host ? host : NULL);
  record_count(&r, "pid", (uint64_t)getpid());
  record_count(&r, "rank", e->rank);
  record_count(&r, "world", e->world);
  record_text(&r, "job", getenv("SLURM_JOB_ID"));
  record_end_line(&r);
}

/* A reader sees the old file or the whole new one. It is not waited for the disk: the loop would stand
 * still that long, and behind a power cut there is no run that the file could tell of. */
static int replace(int dir, const evict *e, ckpt_run *run, const ckpt_evict *cost) {
  FILE *f;
  int rc = state_dir_create(dir, name_tmp, 0600, &f);
  if (rc < 0) return rc;
  write_all(f, e, run, cost);
  if (fclose(f) != 0 || renameat(dir, name_tmp, dir, name) != 0) rc = -errno;
  if (rc < 0) unlinkat(dir, name_tmp, 0);
  return rc;
}

static void write_file(evict *e, ckpt_run *run, const ckpt_evict *cost) {
  int dir = state_dir_open(ckpt_run_state(run)), rc = dir;
  if (dir >= 0) rc = replace(dir, e, run, cost);
  if (rc < 0 && !e->failed)
    report_warning("cannot write %s/%s: %s", ckpt_run_state(run), name, strerror(-rc));
  e->failed = rc < 0;
  if (dir >= 0) close(dir);
}

void evict_forget(const char *state) {
  state_dir_forget(state, name);
}

/* The clock's going on is no news: a reader has the times from which it counts. */
static bool same(const ckpt_evict *a, const ckpt_evict *b) {
  return a->last_durable_time == b->last_durable_time && a->complete_time == b->complete_time &&
         a->bytes_pending == b->bytes_pending && a->lost_since == b->lost_since &&
         (a->seconds_to_durable < 0) == (b->seconds_to_durable < 0);
}

void evict_init(evict *e, uint32_t rank, uint32_t world) {
  *e = (evict){.rank = rank, .world = world, .next_at = -INFINITY, .looked_at = -INFINITY};
}

void evict_hasten(evict *e) {
  e->looked_at = -INFINITY;
}

bool evict_look(evict *e, ckpt_run *run, double now) {
  const double least_s = 2, sending_s = 5;
  ckpt_evict cost = {.size = sizeof cost};
  if (now < e->looked_at + least_s) {
    e->next_at = e->looked_at + least_s;
    return false;
  }
  e->looked_at = now;
  e->next_at = INFINITY;
  if (ckpt_run_evict(run, &cost) < 0) return false; /* the next status says what is wrong with it */
  if (cost.seconds_to_durable != 0) e->next_at = now + sending_s;
  const bool news = e->written.time <= 0 || !same(&cost, &e->written);
  if (!news && !e->failed) return false;
  write_file(e, run, &cost);
  if (e->failed) e->next_at = now + sending_s; /* what stands there is of before */
  e->written = cost;
  e->written.name = NULL;
  return news;
}
