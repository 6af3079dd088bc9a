/* evict_file: tells others what it costs to end the job: in `status`, and in the file evict.json of the state
 * directory, which a scheduler can read without asking anybody. */
#ifndef RUNNER_JOB_EVICT_FILE_H
#define RUNNER_JOB_EVICT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt.h"
#include "runner/cli/record.h"

typedef struct evict {
  uint32_t rank, world;
  double next_at;     /* clock_s(): when to look again though nothing happens; INFINITY: never */
  double looked_at;   /* -INFINITY: it was not looked yet */
  ckpt_evict written; /* but for `name`; `time` 0: nothing was written */
  bool failed;        /* it could not be */
} evict;

void evict_init(evict *e, uint32_t rank, uint32_t world);
/* Writes the file, if what is in it is no longer so. To be called when something may have happened: it
 * looks each two seconds at most, and while something is sent each five seconds at least. True: it
 * is another one than before. */
bool evict_look(evict *e, ckpt_run *run, double now);
/* It is looked at next time, however short ago that was: somebody waited for what has changed. */
void evict_hasten(evict *e);
/* Takes the file away: no run is alive there. */
void evict_forget(const char *state);

/* Writes the members. */
void evict_json(record *r, const ckpt_evict *cost);
void evict_print(FILE *f, const ckpt_evict *cost);

#endif
