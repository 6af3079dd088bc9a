/* job_vigil: how a job waits for other ranks: it looks, and pauses a little longer each time. */
#ifndef JOB_SAVE_JOB_VIGIL_H
#define JOB_SAVE_JOB_VIGIL_H

#include "job_impl.h"

typedef struct vigil {
  job_work *w;
  int64_t begun, until, pause; /* IO_MONO; ns */
} vigil;

/* Begins to wait for `what` (static), `longest` ns at most. */
vigil vigil_begin(job_work *w, const char *what, int64_t longest);
bool vigil_is_over(const vigil *v);
/* Pauses until the next look. ERR_CANCELED: the job was. */
int vigil_nap(vigil *v, err *e);
int64_t vigil_now(const job_work *w);
long long vigil_seconds(int64_t ns); /* whole ones, for people */

#endif
