/* start: all that happens before the job runs: the run is opened, what an earlier trainer left
 * alive is ended, the directory is made ready, and the job gets its environment. */
#ifndef RUNNER_START_H
#define RUNNER_START_H

#include "ckpt.h"
#include "listener.h"
#include "options.h"
#include "outcome.h"
#include "progress.h"
#include "role.h"
#include "supervise.h"

/* What a job gets in its environment; NULL: that variable is not set. */
typedef struct start_job {
  const char *dir, *socket, *state_id, *resume, *restored_from;
  const char *launch; /* NULL: it is the only task */
  uint32_t task;      /* of the launch */
} start_job;

/* Starts the command of `o` with it. 0, or an exit code and what it was in `error`, after that was
 * said on stderr. */
int start_command(supervisor *sup, const options *o, const start_job *job, char *error,
                  size_t room);

typedef struct session {
  const options *o;
  const role *role; /* one that watches */
  ckpt *engine;
  ckpt_run *run;
  supervisor sup;
  listener *listener;
  outcome out;
  progress progress; /* of the restore at the start, then of the run */
  uint32_t found;    /* complete checkpoints that were there at the start */
  char error[1024];  /* what out.text points to */
} session;

/* What the engine is told of a run; the strings are those of `o`. `command` may be NULL. */
ckpt_run_options start_options(const options *o, const char *command);

/* Opens engine and run; ends old trainers and prepares the directory (`run`), or looks at what it
 * has
 * (`sync`); begins to watch, and starts the job. Returns 0 or the exit code, after it said why on
 * stderr; s->run may then be open or not. session_close() is due in both cases. */
int session_start(session *s, const options *o, const role *role);
/* Closes what is open; blocks until the engine's threads have ended. */
void session_close(session *s);

#endif
