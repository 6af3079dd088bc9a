/* job_vigil: how a job waits for other ranks: it looks, and pauses a little longer each time. Where time is
 * short, or nobody writes any more (job_env.hurry), it looks as often as so many ranks may. */
#ifndef JOB_SAVE_JOB_VIGIL_H
#define JOB_SAVE_JOB_VIGIL_H

#include "job_impl.h"

/* The first pause, and the longest. */
typedef enum vigil_pace {
  VIGIL_ALONE, /* one rank looks: 0.2 s to 5 s */
  VIGIL_NEWS,  /* all may, for what is about to come: 1 s to 60 s */
  VIGIL_KEY,   /* all do, for what takes as long as the slowest: 5 s to 60 s */
} vigil_pace;

typedef struct vigil {
  job_work *w;
  vigil_pace pace;
  int64_t begun, until, pause; /* IO_MONO; ns */
} vigil;

/* Begins to wait for `what` (static), `longest` ns at most. */
vigil vigil_begin(job_work *w, const char *what, int64_t longest, vigil_pace pace);
bool vigil_is_over(const vigil *v);
/* Before the first look: each rank comes at a time of its own. */
int vigil_enter(const vigil *v, err *e);
/* Pauses until the next look. ERR_CANCELED: the job was. */
int vigil_nap(vigil *v, err *e);
bool vigil_hurries(const job_work *w);
int64_t vigil_now(const job_work *w);
long long vigil_seconds(int64_t ns); /* whole ones, for people */

#endif
