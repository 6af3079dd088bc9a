#include "bystander.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/cli/clock.h"
#include "runner/cli/command.h"
#include "ready.h"
#include "runner/cli/report.h"
#include "start.h"
#include "supervise.h"

static int locate(const options *o, ckpt_place *out) {
  ckpt *engine = NULL;
  *out = (ckpt_place){.size = sizeof *out};
  int rc = command_open(&engine, o), code = 0;
  if (rc == 0) rc = ckpt_locate(engine, o->run.dir, o->run.state, out);
  if (rc < 0) code = command_failed(engine, rc);
  ckpt_close(engine);
  return code;
}

/* Reads the ready file, if it is fresh. A launch id that is used once more finds the file of its
 * first use. Only on the boot on which the state was written is it known for sure that nobody has
 * it: locks of other hosts may not be seen here. A file that comes while we wait is of this launch,
 * even if its first task has ended since. */
static int read_fresh(const options *o, const role *role, bool *waited, ckpt_place *place,
                      ready *out) {
  int code = locate(o, place); /* this comes first: its present holder has removed older files */
  if (code != 0) return -EIO;
  int rc = ready_read(place->state, role->launch, out);
  bool left_over = rc > 0 && !out->failed && !*waited && *place->state_id && !place->held;
  if (left_over) ready_free(out);
  if (rc == 0 || (rc > 0 && out->failed)) *waited = true;
  return left_over ? 0 : rc;
}

/* Tells why the first task waits, which does not count as our time. True if it does wait. */
static bool tell_of_wait(const role *role, const ckpt_place *place, bool *told) {
  if (!*place->waits || strcmp(place->launch, role->launch) != 0) return false;
  if (!*told)
    report_info("task %u of %u: the first one waits for %s", role->task, role->tasks, place->waits);
  return *told = true;
}

/* Waits for the directory. The first task may be started once more by itself: its failure counts
 * when it has stood a while. */
static int look(const options *o, const role *role, ready *out) {
  enum { PAUSE_MS = 200 };
  const double returns_s = 5;
  double until = clock_s() + o->run.rank_wait_s, failed_until = 0;
  bool waited = false, told = false;
  for (;;) {
    ckpt_place place;
    int rc = read_fresh(o, role, &waited, &place, out);
    double now = clock_s();
    if (rc == 0 && tell_of_wait(role, &place, &told)) until = now + o->run.rank_wait_s;
    if (rc < 0 || (rc > 0 && !out->failed)) return rc;
    if (rc == 0) failed_until = 0;
    if (rc > 0 && failed_until == 0) failed_until = now + returns_s;
    if (now >= until || (rc > 0 && now >= failed_until)) return rc;
    ready_free(out);
    poll(NULL, 0, PAUSE_MS);
  }
}

static int await_ready(const options *o, const role *role, const ckpt_place *place, ready *out) {
  int rc = look(o, role, out);
  if (rc > 0 && !out->failed) return 0;
  if (rc > 0) {
    report_error("task %u of %u: the first one could not make %s ready, and ended with %d: what it "
                 "said is in its own output (launch %s)",
                 role->task, role->tasks, o->run.dir, out->failed, role->launch);
    return out->failed;
  }
  if (rc < 0) {
    report_error("cannot read whether %s is ready: %s", place->state, strerror(-rc));
    return EXIT_NOT_STARTED;
  }
  report_error(
      "task %u of %u: the first one did not make %s ready within %.0f s (--rank-wait; launch "
      "%s): is it alive%s",
      role->task, role->tasks, o->run.dir, o->run.rank_wait_s, role->launch,
      role->shared ? ", and does this host see the same directory? (--dir-is local)" : "?");
  return EXIT_DEADLINE;
}

/* Passes signals on as they come; their sender decides when we must end. */
static void pass_signals(supervisor *s) {
  struct signalfd_siginfo info;
  while (read(s->signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD && !supervise_has_it(s, &info))
      supervise_signal(s, (int)info.ssi_signo);
}

static int wait_for_child(supervisor *s) {
  while (!supervise_reap(s)) {
    struct pollfd fd = {.fd = s->signals, .events = POLLIN};
    if (poll(&fd, 1, -1) < 0 && errno != EINTR) {
      report_error("cannot wait: %s", strerror(errno));
      return EXIT_FAILED;
    }
    pass_signals(s);
  }
  return WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status);
}

int bystander_run(const options *o, const role *role) {
  ckpt_place place;
  char *dir = NULL;
  ready ready = {0};
  supervisor sup;
  char error[1024];
  supervise_init(&sup);
  report_info("task %u of %u: the first one watches %s; waiting until that is ready", role->task,
              role->tasks, o->run.dir);
  int code = locate(o, &place);
  if (code == 0) code = await_ready(o, role, &place, &ready);
  if (code == 0) code = locate(o, &place); /* the first task listens by now, if not before */
  if (code == 0 && supervise_begin(&sup) != 0) {
    report_error("cannot take signals");
    code = EXIT_NOT_STARTED;
  }
  if (code == 0 && !(dir = realpath(o->run.dir, NULL))) {
    report_error("cannot find %s, which is ready: %s", o->run.dir, strerror(errno));
    code = EXIT_NOT_STARTED;
  }
  if (code == 0) {
    start_job job = {.dir = dir,
                     .socket = *place.socket ? place.socket : NULL,
                     .state_id = *place.state_id ? place.state_id : NULL,
                     .launch = *role->launch ? role->launch : NULL,
                     .task = role->task,
                     .resume = ready.resume,
                     .restored_from = ready.restored_from};
    report_share(true);
    code = start_command(&sup, o, &job, error, sizeof error);
    if (code == 0) code = wait_for_child(&sup);
    report_share(false);
  }
  free(dir);
  ready_free(&ready);
  supervise_close(&sup);
  return code;
}
