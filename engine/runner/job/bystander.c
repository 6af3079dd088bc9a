#include "bystander.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/cli/clock.h"
#include "runner/cli/command.h"
#include "processes.h"
#include "ready.h"
#include "runner/cli/report.h"
#include "start.h"
#include "supervise.h"

/* `state`: of the task that watches, where that is known. */
static int locate(const options *o, const char *state, ckpt_place *out) {
  ckpt *engine = NULL;
  *out = (ckpt_place){.size = sizeof *out};
  int rc = command_open(&engine, o), code = 0;
  if (rc == 0) rc = ckpt_locate(engine, o->run.dir, state ? state : o->run.state, out);
  if (rc < 0) code = command_failed(engine, rc);
  ckpt_close(engine);
  return code;
}

/* Reads it where all tasks find it, else where our own state is, which may be the others', too. */
static int read_ready(const options *o, const role *role, const char *state, ready *out) {
  char beside[PATH_MAX];
  int rc = ready_beside(o->run.dir, state, beside) ? ready_read(beside, role->launch, out) : 0;
  return rc == 0 ? ready_read(state, role->launch, out) : rc;
}

/* Reads it of a task that has another state than ours. That one is looked at first here, too. */
static int read_others(const options *o, const role *role, ckpt_place *place, ready *out) {
  char own[PATH_MAX];
  snprintf(own, sizeof own, "%s", place->state);
  if (locate(o, out->state, place) != 0) return -EIO;
  ready_free(out);
  return read_ready(o, role, own, out);
}

/* Reads the ready file, if it is fresh. A launch id that is used once more finds the file of its
 * first use. Only on the boot on which the state was written is it known for sure that nobody has
 * it: locks of other hosts may not be seen here. A file that comes while we wait is of this launch,
 * even if its first task has ended since. */
static int read_fresh(const options *o, const role *role, bool *waited, ckpt_place *place,
                      ready *out) {
  int code =
      locate(o, NULL, place); /* this comes first: its present holder has removed older files */
  if (code != 0) return -EIO;
  int rc = read_ready(o, role, place->state, out);
  if (rc > 0 && out->state && strcmp(out->state, place->state) != 0)
    rc = read_others(o, role, place, out);
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

/* Where it is said relative to a working directory, two tasks may mean two places by one word. */
static const char *full_path(const char *dir, char out[PATH_MAX]) {
  char here[PATH_MAX];
  const bool known = *dir != '/' && getcwd(here, sizeof here) &&
                     snprintf(out, PATH_MAX, "%s/%s", here, dir) < PATH_MAX;
  return known ? out : dir;
}

static int await_ready(const options *o, const role *role, const ckpt_place *place, ready *out) {
  char beside[PATH_MAX], full[PATH_MAX];
  const char *dir = full_path(o->run.dir, full);
  int rc = look(o, role, out);
  if (rc > 0 && !out->failed) return 0;
  if (rc > 0) {
    report_error("task %u of %u: the first one could not make %s ready, and ended with %d: what it "
                 "said is in its own output (launch %s)",
                 role->task, role->tasks, dir, out->failed, role->launch);
    return out->failed;
  }
  if (rc < 0) {
    report_error("cannot read whether %s is ready: %s", place->state, strerror(-rc));
    return EXIT_NOT_STARTED;
  }
  bool apart = o->run.state && !ready_beside(o->run.dir, place->state, beside);
  report_error(
      "task %u of %u: the first one did not make %s ready within %.0f s (--rank-wait; launch "
      "%s): is it alive, and was it given the same --dir%s%s%s",
      role->task, role->tasks, dir, o->run.rank_wait_s, role->launch,
      role->shared ? ", and does this host see the same directory? (--dir-is local)" : "?",
      apart ? " Nothing is beside it, so all tasks have to see the same --state, and this one has "
            : "",
      apart ? place->state : "");
  return EXIT_DEADLINE;
}

/* Nothing of what is written elsewhere would be saved, and nobody asks about it. What is not there under the
 * very path that the first one has may be there on its host alone. */
static int check_directory(const options *o, const role *role, const ready *r) {
  struct stat st;
  char full[PATH_MAX];
  const char *watched = r->dir ? r->dir : "another directory";
  const char *dir = full_path(o->run.dir, full);
  const int why = stat(dir, &st) == 0 ? 0 : errno;
  if (why == 0 && !ready_is_of_another(r, dir)) return 0;
  const bool unseen = why && (why != ENOENT || !r->dir || strcmp(dir, r->dir) == 0);
  if (unseen) {
    report_error("task %u of %u: the first one watches %s, and --dir %s cannot be looked at here "
                 "(%s): all tasks that write into one directory have to see it",
                 role->task, role->tasks, watched, dir, strerror(why));
    return EXIT_NOT_STARTED;
  }
  report_error("task %u of %u: the first one watches %s, and --dir %s is %s: give all tasks that "
               "write into one directory the same --dir, or --ranks task where each has its own",
               role->task, role->tasks, watched, dir, why ? "not there" : "another directory");
  return EXIT_USAGE;
}

/* ---- what it tells ---- */

/* The one that watches, as this task knows it. */
typedef struct watched {
  ckpt *engine;
  ckpt_task *task; /* NULL: nobody asks */
  double next_at;  /* on the monotonic clock: when to look for a question */
  const role *role;
  const char *state; /* its own */
  double quiet_s;    /* so long it has asked nothing */
  bool silent;       /* that is so long that it is not known to live; or it is known to be dead */
  bool finished;     /* it has ended, in order */
} watched;

/* Another host may see where it is asked later than the word that the directory is ready. */
static int find_question(watched *w, const ckpt_task_options *options, bool asked) {
  enum { LOOKS = 25, PAUSE_MS = 200 };
  int rc = ckpt_task_join(w->engine, &w->task, options);
  for (int i = 1; asked && rc == CKPT_ENOENT && i < LOOKS; i++) {
    poll(NULL, 0, PAUSE_MS);
    rc = ckpt_task_join(w->engine, &w->task, options);
  }
  return rc;
}

/* A task that cannot be asked is one of which nobody knows whether it writes: the one that watches says
 * so, too. One that does not even see where it is asked would be taken not to run at all, and what it writes
 * be missed by checkpoints that are called complete: it does not begin. */
static int join(watched *w, const options *o, const role *role, const ready *r, const char *dir) {
  ckpt_task_options options = {.size = sizeof options,
                               .dir = dir,
                               .state = w->state ? w->state : o->run.state,
                               .launch = role->launch,
                               .number = role->task,
                               .task = role->index};
  int rc = command_open(&w->engine, o);
  if (rc == 0) rc = find_question(w, &options, r->asks);
  w->next_at = w->task ? 0 : INFINITY;
  w->role = role;
  if (rc == CKPT_ENOENT && r->asks) {
    report_error("task %u of %u: the first one asks all tasks in %s.ckpt/launch, and this one sees "
                 "nothing of that beside %s: let it see, in a container too, what is beside the "
                 "directory, or give all tasks --owns-dir and the same --state",
                 role->task, role->tasks, r->dir ? r->dir : "its directory", dir);
    return EXIT_USAGE;
  }
  if (rc == CKPT_ENOENT)
    report_debug("%s", ckpt_error(w->engine));
  else if (rc < 0)
    report_warning("task %u of %u: the first one cannot learn of this one, and will call no "
                   "checkpoint complete: %s",
                   role->task, role->tasks, ckpt_error(w->engine));
  return 0;
}

/* The first one would wait for it as for one that has yet to come. */
static void tell_refused(const options *o, const role *role, const ready *r) {
  const ready nothing = {0};
  watched w = {.state = r->state};
  if (!r->dir) return;
  (void)join(&w, o, role, &nothing, r->dir); /* that it sees nothing there is no further error */
  if (w.task && ckpt_task_end(w.task, false) < 0) report_debug("%s", ckpt_error(w.engine));
  ckpt_close(w.engine);
}

/* Whether anything is saved any more is that one's to say, and it may be dead. */
static void tell_of_watched(watched *w, const ckpt_task_seen *seen) {
  const double silent_s = 30;
  bool silent = !seen->over && seen->quiet_s >= silent_s;
  if (seen->over && !w->finished)
    report_warning(
        "task %u of %u: the first one, which watches the directory, has ended: nothing that is "
        "written from now on is saved",
        w->role->task, w->role->tasks);
  else if (silent && !w->silent)
    report_warning(
        "task %u of %u: the first one, which watches the directory, has said nothing for %.0f s: "
        "nothing is known to be saved any more",
        w->role->task, w->role->tasks, seen->quiet_s);
  else if (w->silent && !silent && !seen->over)
    report_info("task %u of %u: the first one watches the directory again", w->role->task,
                w->role->tasks);
  w->finished = seen->over;
  w->silent = silent;
  w->quiet_s = seen->quiet_s;
}

static void answer(watched *w) {
  ckpt_task_seen seen = {.size = sizeof seen, .next_s = 1};
  if (clock_s() < w->next_at) return;
  if (ckpt_task_step(w->task, &seen) < 0) report_debug("%s", ckpt_error(w->engine));
  tell_of_watched(w, &seen);
  w->next_at = clock_s() + seen.next_s;
}

/* What it left running may go on writing: nothing is over before that has ended. */
static bool end_rest(const supervisor *s, double grace_s) {
  process_list rest = {0};
  process left = {0};
  bool found = processes_below(getpid(), &rest) == 0;
  for (size_t i = 0; i < rest.count; i++)
    if (rest.items[i].pid == s->witness) rest.items[i--] = rest.items[--rest.count];
  int rc = found && rest.count > 0 ? processes_end(&rest, grace_s < 5 ? grace_s : 5, &left) : 0;
  if (rc < 0)
    report_warning("cannot end process %d, which the job left: %s", (int)left.pid, strerror(-rc));
  processes_free(&rest);
  return found && rc == 0;
}

/* The one that watches may have died since it asked last. On its host that is seen; elsewhere one that has
 * missed a question is waited for until it asks, or is silent. */
static void look_again(watched *w, const options *o) {
  const double missed_s = 12; /* it asks each 10 s */
  ckpt_place place;
  if (!w->task) return;
  w->next_at = 0;
  answer(w);
  if (w->silent || w->finished || locate(o, w->state, &place) != 0) return;
  bool here = !*place.host && strcmp(place.launch, w->role->launch) == 0;
  if (here && !place.held) {
    report_warning("task %u of %u: the first one, which watches the directory, is dead: nothing is "
                   "saved any more",
                   w->role->task, w->role->tasks);
    w->silent = true;
  }
  while (!here && w->quiet_s >= missed_s && !w->silent && !w->finished) {
    poll(NULL, 0, 500);
    w->next_at = 0;
    answer(w);
  }
}

/* A task that ends well beside a watcher that is not there any more has saved nothing of late. */
static int code_of(const watched *w, int code) {
  if (code != 0 || !(w->silent || w->finished)) return code;
  report_error(
      "task %u of %u: the command ended with 0, and the first task %s before that: what was "
      "written last may not be saved",
      w->role->task, w->role->tasks, w->finished ? "had ended" : "had said nothing any more");
  return EXIT_GAVE_UP;
}

/* One that leaves a writer behind has not ended, as far as the others are concerned. */
static void leave(watched *w, const supervisor *s, const options *o, int code) {
  if (w->task && end_rest(s, o->grace_s) && ckpt_task_end(w->task, code == 0) < 0)
    report_warning("the first task does not learn that this one has ended: %s",
                   ckpt_error(w->engine));
  ckpt_close(w->engine);
}

/* ---- its command ---- */

/* Passes signals on as they come; their sender decides when we must end. */
static void pass_signals(supervisor *s) {
  struct signalfd_siginfo info;
  while (read(s->signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD && !supervise_has_it(s, &info))
      supervise_signal(s, (int)info.ssi_signo);
}

static int wait_for_child(supervisor *s, watched *w) {
  while (!supervise_reap(s)) {
    struct pollfd fd = {.fd = s->signals, .events = POLLIN};
    double left = (w->next_at - clock_s()) * 1000;
    int timeout = isinf(left) ? -1 : left < 0 ? 0 : (int)left + 1;
    if (poll(&fd, 1, timeout) < 0 && errno != EINTR) {
      report_error("cannot wait: %s", strerror(errno));
      return EXIT_FAILED;
    }
    pass_signals(s);
    answer(w);
  }
  return WIFSIGNALED(s->status) ? 128 + WTERMSIG(s->status) : WEXITSTATUS(s->status);
}

int bystander_run(const options *o, const role *role) {
  ckpt_place place;
  char *dir = NULL;
  ready ready = {0};
  supervisor sup;
  watched w = {0};
  char error[1024];
  supervise_init(&sup);
  report_info("task %u of %u: the first one watches %s; waiting until that is ready", role->task,
              role->tasks, o->run.dir);
  int code = locate(o, NULL, &place);
  if (code == 0) code = await_ready(o, role, &place, &ready);
  w.state = ready.state;
  if (code == 0 && (code = check_directory(o, role, &ready)) != 0) tell_refused(o, role, &ready);
  if (code == 0)
    code = locate(o, w.state, &place); /* the first task listens by now, if not before */
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
    code = join(&w, o, role, &ready, dir);
    if (code == 0) code = start_command(&sup, o, &job, error, sizeof error);
    if (code == 0) code = wait_for_child(&sup, &w);
    if (code == 0) look_again(&w, o);
    leave(&w, &sup, o, code);
    code = code_of(&w, code);
    report_share(false);
  }
  free(dir);
  ready_free(&ready);
  supervise_close(&sup);
  return code;
}
