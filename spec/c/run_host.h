/* run_host: stands in for the engine in tests of engine/run: a pool, a queue of what the workers
 * have done, and everything that a run tells, kept in order. Its `io` is the real one, but the test
 * moves the monotonic clock, makes the store fail, and stops a save in the middle of its upload.
 * Scratch directories: <top>/dir is watched, <top>/state, <top>/store. Misuse and waiting for more
 * than 10 s abort. */
#ifndef SPEC_RUN_HOST_H
#define SPEC_RUN_HOST_H

#include <stdatomic.h>

#include "run/begin/begin.h"

typedef struct run_seen {
  run_kind kind;
  int status;
  uint64_t job;
  int64_t step;
  uint64_t files, bytes;
  double seconds;
  char unit[256], reason[512];
} run_seen;

typedef struct run_host run_host;

/* `top` NULL: a new one that run_host_free removes; else that of another host, which shares all
 * three places. */
run_host *run_host_new(const char *top);
/* Makes a host of the same target on another machine: with directories of its own, which a run
 * makes. */
run_host *run_host_elsewhere(run_host *h);
void run_host_free(run_host *h);       /* closes the run */
const char *run_host_top(run_host *h); /* static memory, as tmpdir_path() */

/* The fixtures of a test whose state is a host: one without a run, or one whose run has begun. */
int run_host_set_up(void **state);
int run_host_set_up_run(void **state);
int run_host_tear_down(void **state);
#define WITH_HOST(test) cmocka_unit_test_setup_teardown(test, run_host_set_up, run_host_tear_down)
#define WITH_RUN(test)                                                                             \
  cmocka_unit_test_setup_teardown(test, run_host_set_up_run, run_host_tear_down)

/* Its options: set before run_host_open. Units are complete as soon as they are closed. */
run_options *run_host_options(run_host *h);
/* Policies are asked for real: $CKPT_BUILD/libexec has the helper. Writes <top>/p.lua with this
 * text and makes it the run's; before run_host_open. */
void run_host_policy(run_host *h, const char *text);
int run_host_open(run_host *h, err *e);
void run_host_close(run_host *h); /* the run; its news stay */
/* Open, prepare (auto) and start; each has to work. Gives the prepared. */
run_prepared run_host_begin(run_host *h);
void run_host_begin_with(run_host *h, const char *policy); /* its text, as above */
run *run_host_run(run_host *h);
const run_env *run_host_env(run_host *h);

/* Paths in the watched directory, the state, the store. Static memory, as tmpdir_path(). */
const char *run_host_dir(run_host *h, const char *name);
const char *run_host_state(run_host *h, const char *name);
const char *run_host_store(run_host *h, const char *name);

/* Does what is due, and waits for events, until... */
void run_host_until(run_host *h, run_kind kind, const char *unit); /* ...this was told once more */
/* Writes a watched file, and waits until that is told of it. */
void run_host_write(run_host *h, const char *name, const char *text, run_kind until);
void run_host_tick(run_host *h); /* ...what is written then has a later time */
/* Writes a watched file behind a tick, with its name as its text... */
void run_host_put(run_host *h, const char *name);
void run_host_save(run_host *h, const char *name, run_kind until); /* ...and waits as above */
/* ...and waits until it is complete and waits for its turn, or was let go for a newer one. */
void run_host_let_wait(run_host *h, const char *name);
void run_host_idle(run_host *h); /* ...nothing is pending or settling, no worker is busy */
void run_host_rest(run_host *h); /* ...the same, and no worker is busy with anything of the run */
void run_host_held(run_host *h); /* ...a worker stands still in the store */
void run_host_for(run_host *h, double seconds);
/* Once, without waiting. What run_step returned. */
int run_host_step(run_host *h, err *e);
int64_t run_host_due(run_host *h); /* what the last run_step said, less now; INT64_MAX: never */

/* Returns how often the run told this; unit NULL: of any unit. */
unsigned run_host_count(run_host *h, run_kind kind, const char *unit);
const run_seen *run_host_last(run_host *h, run_kind kind, const char *unit); /* NULL: never */
const char *run_host_reason(run_host *h, run_kind kind, const char *unit); /* of that; "": never */
/* True if the run names this unit as one that is not saved, for a reason that begins so. */
bool run_host_names(run_host *h, const char *unit, const char *reason);
/* "COMMITTED a.pt,DROPPED b.pt": all that was told. Static memory. */
const char *run_host_story(run_host *h);

run_status run_host_status(run_host *h);
/* Lists the commits that the target holds, as "dir dir", oldest first, of all groups. Static
 * memory. */
const char *run_host_commits(run_host *h);
/* Restores a commit's directory and compares its only file's text. */
bool run_host_holds(run_host *h, const char *dir, const char *text);
bool run_host_newest_holds(run_host *h, const char *text); /* the last one of the commits */

void run_host_skip(run_host *h, double seconds);   /* the monotonic clock alone */
void run_host_fail_store(run_host *h, int errnum); /* each write to it; 0: works again */
void run_host_fail_reads(run_host *h, int errnum); /* each file of it that is opened to be read */
void run_host_fail_flush(run_host *h, int errnum); /* of each file in the watched directory */
void run_host_slow_reads(run_host *h, double seconds); /* each file of checkpoint-1 there */
/* From here on nothing of a lease is answered, for a minute at most, until the run cuts its calls off. */
void run_host_silence(run_host *h);
/* Workers stop before they make a file of a checkpoint there: its attempt is announced by then. */
void run_host_hold(run_host *h, bool hold);
/* Writes a watched file, and waits until its save stands still there. */
void run_host_hold_save(run_host *h, const char *name, const char *text);
void run_host_reboot(run_host *h);   /* the journal is of another boot, or of another machine */
void run_host_next_day(run_host *h); /* the wall clock of this machine; the store has its own */
bool run_host_logged(run_host *h, const char *text);
unsigned run_host_logs(run_host *h, const char *text); /* how often */

#endif
