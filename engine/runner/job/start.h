/* start: does everything before the job runs: opens the run, ends processes that an earlier trainer
 * left alive, makes the directory ready, and gives the job its environment. */
#ifndef RUNNER_JOB_START_H
#define RUNNER_JOB_START_H

#include "ckpt.h"
#include "last_lines.h"
#include "listener.h"
#include "runner/cli/options.h"
#include "outcome.h"
#include "runner/cli/progress.h"
#include "role.h"
#include "supervise.h"

/* A job gets these in its environment; NULL: that variable is not set. */
typedef struct start_job {
  const char *dir, *socket, *state_id, *resume, *restored_from;
  const char *launch; /* NULL: it is the only task */
  uint32_t task;      /* of the launch */
} start_job;

/* Starts the command of `o` with it. Returns 0, or an exit code with the fault in `error`, after
 * that was said on stderr. */
int start_command(supervisor *sup, const options *o, const start_job *job, char *error,
                  size_t room);

/* The purpose of a session: without a job of its own, `watch` lasts and `sync` ends. */
typedef enum session_kind { SESSION_RUN, SESSION_WATCH, SESSION_SYNC } session_kind;

typedef struct session {
  session_kind kind;
  const options *o;
  const role *role; /* a role that watches */
  ckpt *engine;
  ckpt_run *run;
  supervisor sup;
  last_lines said; /* by the job */
  listener *listener;
  outcome out;
  progress progress; /* of the restore at the start, then of the run */
  char error[1024];  /* out.text points into it */
} session;

/* Makes the options of a run for the engine; the strings are those of `o`. `command` may be
 * NULL. */
ckpt_run_options start_options(const options *o, session_kind kind, const char *command);

/* Opens engine and run; ends old trainers and prepares the directory (`run`), or looks at what it
 * has
 * (`sync`); begins to watch, and starts the job. Returns 0 or the exit code, after it said why on
 * stderr; s->run may then be open or not. session_close() is due in both cases. */
int session_start(session *s, session_kind kind, const options *o, const role *role);
/* Closes what is open; blocks until the engine's threads have ended. */
void session_close(session *s);

#endif
