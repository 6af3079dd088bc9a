#include "loop.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bystander.h"
#include "comment.h"
#include "evict_file.h"
#include "grace.h"
#include "runner/cli/clock.h"
#include "runner/cli/command.h"
#include "outage.h"
#include "processes.h"
#include "question.h"
#include "runner/cli/report.h"
#include "start.h"

typedef enum phase {
  PHASE_RUNNING,  /* the job lives (`watch`: nobody asked us to end) */
  PHASE_SWEEPING, /* it ended; processes that it left are being ended */
  PHASE_DRAINING, /* nobody writes any more; complete checkpoints become durable */
  PHASE_OVER
} phase;

typedef struct loop {
  session *s;
  phase phase;
  /* Times on the monotonic clock, in seconds; INFINITY: never. */
  double stop_at;      /* nothing is waited for after this: the end of the grace */
  double kill_at;      /* PHASE_SWEEPING: processes that are left get SIGKILL */
  double lost_at;      /* a killed child that still has not ended is given up */
  double kept_at;      /* PHASE_DRAINING: retention is not waited for any longer */
  double unmatched_at; /* when to look for files that belong to no checkpoint */
  double dispatch_at;  /* the engine failed: try again */
  unsigned failures;   /* of the engine: in a row; in all while draining */
  int broken;          /* its last status */
  grace grace;         /* from a signal to the end */
  unsigned kills;      /* rounds of SIGKILL among what the child left */
  uint64_t seen;       /* signals that came, a bit each */
  bool deadline;       /* stop_at came before all was durable */
  outage outage;       /* saves that fail for now */
  evict evict;         /* what others are told, */
  comment comment;     /* and Slurm is */
  bool stopped;        /* we stopped the job because a newer run writes */
  bool cut;            /* the job was told to end, or warned of it, while it was at work */
} loop;

static bool child_lives(const loop *l) {
  return l->s->sup.child > 0 && !l->s->sup.ended;
}

static double earlier(double a, double b) {
  return a < b ? a : b;
}

/* ---- what may be waited for ---- */

static void notify(loop *l, ckpt_event event) {
  event.size = sizeof event;
  if (ckpt_notify(l->s->run, &event, NULL) < 0)
    report_warning("the engine did not take an event: %s", ckpt_error(l->s->engine));
}

static void preempt(loop *l) {
  double left = grace_patience(&l->grace);
  notify(l, (ckpt_event){.kind = CKPT_EVENT_PREEMPT, .grace_s = left > 0 ? left : 0});
}

static void begin_grace(loop *l) {
  double at = clock_s() + grace_patience(&l->grace);
  if (at < l->stop_at) l->stop_at = at;
}

static void kill_child(loop *l, const char *why) {
  report_warning("%s: killing the job (process %d)", why, (int)l->s->sup.child);
  supervise_signal(&l->s->sup, SIGKILL);
  l->lost_at = clock_s() + 5;
}

/* ---- signals ---- */

static void pass_on(loop *l, const struct signalfd_siginfo *info) {
  if (!child_lives(l) || supervise_has_it(&l->s->sup, info)) return;
  int rc = supervise_signal(&l->s->sup, (int)info->ssi_signo);
  if (rc != 0 && rc != -ESRCH)
    report_warning("cannot pass signal %u on to the job: %s", info->ssi_signo, strerror(-rc));
}

static void on_end_signal(loop *l, const struct signalfd_siginfo *info, bool again) {
  const char *name = sigabbrev_np((int)info->ssi_signo);
  if (again) {
    /* Schedulers and terminals repeat a signal: only a user who presses ^C twice means it. */
    if (info->ssi_signo != SIGINT) return;
    if (child_lives(l))
      kill_child(l, "SIGINT came twice");
    else
      l->stop_at = clock_s();
    return;
  }
  pass_on(l, info); /* before anything that takes time */
  if (l->s->out.signal != 0) return;
  l->s->out.signal = (int)info->ssi_signo;
  l->cut |= child_lives(l);
  grace_find(&l->grace, l->s->engine, l->s->o, true);
  begin_grace(l);
  report_info("SIG%s: %s within %g s%s%s", name ? name : "?",
              child_lives(l) ? "the job may save and end" : "what is complete is saved", l->grace.s,
              *l->grace.killer ? ": " : "", l->grace.killer);
  preempt(l);
}

static void on_signal(loop *l, const struct signalfd_siginfo *info) {
  uint64_t bit = UINT64_C(1) << (info->ssi_signo & 63);
  bool again = l->seen & bit;
  l->seen |= bit;
  if (info->ssi_signo == SIGCHLD) {
    supervise_reap(&l->s->sup);
  } else if (info->ssi_signo != SIGUSR1) {
    on_end_signal(l, info, again);
  } else if (!l->s->o->usr1) {
    /* SIGUSR1 would end us, and so leave a job alone that may know well what to do with it. */
    if (!again) report_info("SIGUSR1 is not passed on: --usr1 does that");
  } else if (!again) {
    /* A warning of an end that may be minutes away: no grace begins, that is TERM's to do. */
    report_info("SIGUSR1: the job is warned");
    pass_on(l, info);
    l->cut |= child_lives(l);
    grace_find(&l->grace, l->s->engine, l->s->o, false);
    preempt(l);
  }
}

static void take_signals(loop *l) {
  struct signalfd_siginfo info;
  while (read(l->s->sup.signals, &info, sizeof info) == sizeof info) on_signal(l, &info);
}

/* ---- the engine ---- */

static void on_fenced(loop *l, int status) {
  if (status == CKPT_EHELD || status == CKPT_EOTHER_RUN) l->s->out.turned_away = true;
  if (l->s->o->detach || l->s->out.turned_away) {
    report_warning("the job goes on, and nothing of it is saved");
    return;
  }
  if (!child_lives(l) || l->stopped) return;
  report_info("stopping the job; --on-fenced=detach would let it go on");
  l->stopped = true;
  begin_grace(l);
  supervise_signal(&l->s->sup, SIGTERM);
}

static void take_engine(loop *l) {
  int rc = ckpt_dispatch(l->s->engine, 0);
  l->dispatch_at = INFINITY;
  if (rc < 0) {
    /* Its descriptor may stay readable: without a pause we would turn in circles. */
    unsigned pause = l->failures < 6 ? 1u << l->failures : 60;
    report_error("the engine failed, trying again in %u s: %s", pause, ckpt_error(l->s->engine));
    l->dispatch_at = clock_s() + pause;
    l->failures++;
    l->broken = rc;
  } else {
    /* When nothing but the end is waited for, a failure that comes back now and then must not be
     * waited out for ever. */
    if (l->phase != PHASE_DRAINING) l->failures = 0;
    l->broken = CKPT_OK;
  }
  ckpt_completion c = {.size = sizeof c};
  while (ckpt_next(l->s->engine, &c) == 1) {
    double after;
    if (outage_take(&l->outage, &c, clock_s(), &after) || l->s->o->level > 0) report_completion(&c);
    if (after > 0) outage_say_over(after);
    if (l->s->kind == SESSION_SYNC && c.kind == CKPT_DROPPED)
      report_info("%s: %s", c.unit, c.reason);
    if (l->s->o->json) completion_json(stdout, &c);
    if (c.kind == CKPT_FENCED) on_fenced(l, c.status);
    if (c.kind == CKPT_DRAINED) evict_hasten(&l->evict);
    comment_take(&l->comment, &c);
  }
}

static const char *take_line(void *ctx, char *json, FILE *answer) {
  loop *l = ctx;
  if (is_question(json)) return question_answer(l->s->engine, l->s->run, json, answer);
  ckpt_event event = {.size = sizeof event, .kind = CKPT_EVENT_RESULT, .json = json};
  return ckpt_notify(l->s->run, &event, NULL) < 0 ? ckpt_error(l->s->engine) : NULL;
}

static ckpt_run_status status_of(loop *l) {
  ckpt_run_status status = {.size = sizeof status};
  int rc = ckpt_run_get_status(l->s->run, &status);
  if (rc < 0) l->broken = rc;
  return status;
}

/* ---- phases ---- */

static void describe_end(const loop *l, char *text, size_t room) {
  int status = l->s->sup.status;
  if (WIFSIGNALED(status)) {
    const char *name = sigabbrev_np(WTERMSIG(status));
    snprintf(text, room, "the job was ended by SIG%s", name ? name : "?");
  } else {
    snprintf(text, room, "the job ended with code %d", WEXITSTATUS(status));
  }
}

/* True if somebody wanted its end: us, the user, a scheduler. Shells and trainers say it as 128 +
 * n. */
static bool ended_from_outside(const loop *l) {
  int status = l->s->sup.status;
  if (!l->s->sup.ended || l->s->out.signal || l->stopped) return true;
  int signo = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  return signo == SIGTERM || signo == SIGINT || signo == SIGHUP;
}

/* What is waited for when the job has ended. A launcher may wait for us before it ends the tasks that an
 * end with a failure leaves behind. */
static void begin_draining(loop *l, bool clean) {
  char text[64];
  describe_end(l, text, sizeof text);
  ckpt_run_status status = status_of(l);
  if (status.tasks > 0 && !clean) begin_grace(l);
  if (status.tasks > 0)
    report_info("%s; waiting for %u other task%s of this launch", text, status.tasks,
                status.tasks == 1 ? "" : "s");
  else if (status.pending > 0)
    report_info("%s; waiting for %u checkpoint%s", text, status.pending,
                status.pending == 1 ? "" : "s");
  else
    report_debug("%s", text);
  l->phase = PHASE_DRAINING;
}

/* Takes in that no process of the job lives any more, or that it cannot be ended. */
static void child_is_gone(loop *l) {
  const supervisor *sup = &l->s->sup;
  /* The last output of a killed process may end anywhere, so its files must prove themselves. */
  bool clean = sup->ended && WIFEXITED(sup->status) && WEXITSTATUS(sup->status) == 0 && !l->kills;
  char said[4096];
  last_lines_take(&l->s->said, said, sizeof said);
  notify(l, (ckpt_event){.kind = CKPT_EVENT_EXIT,
                         .pid = (int32_t)sup->child,
                         .clean = clean,
                         .outside = !clean && ended_from_outside(l),
                         .lines = said});
  take_engine(l);
  l->s->out.child_status = sup->ended ? sup->status : SIGKILL;
  progress_share(&l->s->progress, false);
  begin_draining(l, clean);
}

static void signal_rest(const process_list *rest, int signo) {
  for (size_t i = 0; i < rest->count; i++) {
    const process *p = &rest->items[i];
    int rc = process_signal(p->pid, p->start, signo);
    if (rc == 0)
      report_info("the job left process %d (%s): %s", (int)p->pid, p->name,
                  signo == SIGKILL ? "killed" : "ending it");
    else if (rc != -ESRCH)
      report_warning("cannot end process %d (%s), which the job left: %s", (int)p->pid, p->name,
                     strerror(-rc));
  }
}

static bool list_rest(const loop *l, process_list *rest) {
  int rc = processes_below(getpid(), rest);
  if (rc != 0) report_warning("cannot look for what the job left running: %s", strerror(-rc));
  /* The policies' helper and the witness are our children too, and none of the job's. */
  int helper = ckpt_helper_pid(l->s->engine);
  for (size_t i = 0; i < rest->count; i++)
    if (rest->items[i].pid == helper || rest->items[i].pid == l->s->sup.witness)
      rest->items[i--] = rest->items[--rest->count];
  return rc == 0 && rest->count > 0;
}

static void begin_sweep(loop *l) {
  process_list rest = {0};
  /* Its scontrol is below us, too, and none of the job's. */
  if (l->comment.where != COMMENT_OFF) ckpt_comment_stop(l->s->engine);
  if (list_rest(l, &rest)) {
    /* After a signal one of these may be saving: it has the rest of the grace. */
    double least = l->grace.s < 5 ? l->grace.s : 5;
    l->kill_at = isinf(l->stop_at) ? clock_s() + least : l->stop_at;
    l->phase = PHASE_SWEEPING;
    signal_rest(&rest, SIGTERM);
  } else {
    child_is_gone(l);
  }
  processes_free(&rest);
}

static void sweep(loop *l) {
  enum { ROUNDS = 5 };
  process_list rest = {0};
  if (l->kills == 0 && l->stop_at < l->kill_at) l->kill_at = l->stop_at;
  if (!list_rest(l, &rest)) {
    child_is_gone(l);
  } else if (clock_s() >= l->kill_at) {
    if (l->kills++ < ROUNDS) {
      signal_rest(&rest, SIGKILL);
      l->kill_at = clock_s() + 0.5; /* killed processes may have started others just before */
    } else {
      report_warning("%zu processes of the job do not end", rest.count);
      child_is_gone(l);
    }
  }
  processes_free(&rest);
}

static void advance_running(loop *l) {
  if (l->s->sup.child == 0) { /* `watch` */
    if (l->s->out.signal || status_of(l).fenced) l->phase = PHASE_DRAINING;
  } else if (l->s->sup.ended) {
    begin_sweep(l);
  } else if (clock_s() >= l->lost_at) {
    report_warning("the job does not end, although it was killed");
    child_is_gone(l);
  } else if (clock_s() >= l->stop_at && isinf(l->lost_at)) {
    kill_child(l, "the grace is over");
  }
}

static void advance_draining(loop *l) {
  enum { FAILURES = 5 };
  ckpt_run_status status = status_of(l);
  bool saved = status.pending == 0 && status.tasks == 0;
  /* Now checkpoints that are no longer kept are removed; if the store makes that hard, the next run
   * does it. */
  if (saved && isinf(l->kept_at)) l->kept_at = clock_s() + grace_patience(&l->grace);
  if ((saved && (status.keeping == 0 || clock_s() >= l->kept_at)) || status.fenced ||
      l->failures >= FAILURES) {
    l->phase = PHASE_OVER;
  } else if (clock_s() >= l->stop_at) {
    l->deadline = !saved;
    l->phase = PHASE_OVER;
  }
}

/* True if the files fit no pattern of names. If a checkpoint was seen, whatever became of it, its
 * name is not at fault. */
static bool knows_none(const ckpt_run_status *s) {
  return s->unmatched > 0 && s->committed + s->pending + s->dropped + s->retired + s->failed +
                                     s->unproven + s->skipped ==
                                 0;
}

static void check_unmatched(loop *l) {
  ckpt_run_status status = status_of(l);
  l->unmatched_at = INFINITY;
  if (knows_none(&status))
    report_unmatched(&status);
  else if (status.saw_file == 0)
    report_warning("there is no file in %s so far: is it there that the job writes its "
                   "checkpoints? --dir says where that is looked for",
                   ckpt_run_dir(l->s->run));
}

static void look_at_outage(loop *l) {
  ckpt_run_status status = status_of(l);
  double now = clock_s();
  if (outage_due(&l->outage, now, status.pending)) outage_say(&l->outage, now, status.pending);
}

static void advance(loop *l) {
  phase before;
  if (clock_s() >= l->unmatched_at) check_unmatched(l);
  if (clock_s() >= l->outage.next_at) look_at_outage(l);
  do {
    before = l->phase;
    if (l->phase == PHASE_RUNNING)
      advance_running(l);
    else if (l->phase == PHASE_SWEEPING)
      sweep(l);
    else if (l->phase == PHASE_DRAINING)
      advance_draining(l);
  } while (l->phase != before && l->phase != PHASE_OVER);
}

/* ---- waiting ---- */

static int timeout_ms(const loop *l) {
  double at = earlier(earlier(l->unmatched_at, l->dispatch_at), l->s->progress.next_at);
  at = earlier(earlier(at, l->outage.next_at), earlier(l->evict.next_at, l->comment.next_at));
  if (l->phase == PHASE_SWEEPING) at = earlier(at, l->kill_at);
  if (l->phase == PHASE_DRAINING) at = earlier(at, earlier(l->stop_at, l->kept_at));
  /* Once the child was killed, its own end is what is waited for. */
  if (l->phase == PHASE_RUNNING) at = earlier(at, isinf(l->lost_at) ? l->stop_at : l->lost_at);
  if (isinf(at)) return -1;
  double left = (at - clock_s()) * 1000;
  return left <= 0 ? 0 : left > 1e8 ? 100000000 : (int)left + 1;
}

static void tell_others(loop *l) {
  if (evict_look(&l->evict, l->s->run, clock_s())) comment_note(&l->comment);
  if (l->phase != PHASE_SWEEPING) comment_look(&l->comment, l->s->engine, l->s->run, clock_s());
}

static void wait_once(loop *l) {
  enum { OWN = 2 };
  struct pollfd fds[OWN + LISTENER_FDS] = {
      {.fd = l->s->sup.signals, .events = POLLIN},
      {.fd = isinf(l->dispatch_at) ? ckpt_fd(l->s->engine) : -1, .events = POLLIN}};
  size_t clients = listener_fds(l->s->listener, fds + OWN);
  int n = poll(fds, OWN + clients, timeout_ms(l));
  if (n < 0 && errno != EINTR) {
    report_error("cannot wait: %s", strerror(errno));
    l->broken = CKPT_EINTERNAL;
    l->phase = PHASE_OVER;
  }
  if (n > 0) {
    int rc = listener_serve(l->s->listener, fds + OWN, clients, take_line, l);
    if (rc != 0) report_warning("results of the job are no longer taken: %s", strerror(-rc));
  }
  take_signals(l);
  if (isinf(l->dispatch_at) || clock_s() >= l->dispatch_at) take_engine(l);
  progress_look(&l->s->progress, l->s->run, clock_s());
  if (l->s->kind != SESSION_SYNC) tell_others(l);
}

static void run_loop(loop *l) {
  enum { UNMATCHED_S = 45 };
  l->grace.s = l->s->o->grace_s;
  l->stop_at = l->kill_at = l->lost_at = l->kept_at = l->dispatch_at = INFINITY;
  l->unmatched_at = clock_s() + UNMATCHED_S;
  outage_init(&l->outage);
  evict_init(&l->evict, l->s->out.rank, l->s->out.world);
  comment_init(&l->comment, l->s->o->slurm_comment, l->s->out.rank);
  if (l->s->kind == SESSION_SYNC) l->evict.next_at = INFINITY; /* it has no job */
  take_engine(l);
  if (l->s->kind == SESSION_SYNC) { /* the writer is gone: no more files will come */
    notify(l, (ckpt_event){.kind = CKPT_EVENT_EXIT, .clean = true});
    take_engine(l);
    l->phase = PHASE_DRAINING;
  }
  for (advance(l); l->phase != PHASE_OVER; advance(l)) wait_once(l);
  report_status(NULL);
}

/* ---- the verbs ---- */

/* Names the way on, where the user may know better than we do. */
static void offer_trust(const session *s) {
  const ckpt_run_status *status = &s->out.status;
  if (status->unproven == 0 || (s->o->run.flags & CKPT_TRUST)) return;
  report_info("%u not proven whole; if nobody writes there any more, and you know %s complete: "
              "--trust saves %s as %s",
              status->unproven, status->unproven == 1 ? "it is" : "they are",
              status->unproven == 1 ? "it" : "them",
              status->unproven == 1 ? "it stands" : "they stand");
}

static void decide_sync(loop *l) {
  session *s = l->s;
  outcome_decide_sync(&s->out, l->deadline, s->o->require_commit);
  offer_trust(s);
  if (s->out.status.standing != CKPT_NOTHING_TO_SAVE) return;
  snprintf(
      s->error, sizeof s->error,
      "there is no complete checkpoint in %.500s (ckpt-lua help sync: --unit says what one is)",
      ckpt_run_dir(s->run));
  report_warning("%s", s->error);
  if (s->out.exit_code == EXIT_DONE) *s->error = 0;
}

static int finish(loop *l) {
  session *s = l->s;
  /* A sync has looked just now; and when the time is over nothing more is asked. */
  if (s->kind != SESSION_SYNC && !l->deadline && ckpt_run_prove(s->run) < 0)
    report_warning("the target was not looked at once more: %s", ckpt_error(s->engine));
  outcome_take(&s->out, s->run);
  if (knows_none(&s->out.status)) report_unmatched(&s->out.status);
  if (s->kind == SESSION_SYNC)
    decide_sync(l);
  else
    outcome_decide(&s->out, l->deadline, l->stopped, s->o->require_commit);
  if (s->out.exit_code == 0 && l->broken != CKPT_OK) {
    s->out.exit_code = exit_code_of(l->broken);
    s->out.reason = "engine";
  }
  return s->out.exit_code;
}

static const char *const verb_names[] = {
    [SESSION_RUN] = "run", [SESSION_WATCH] = "watch", [SESSION_SYNC] = "sync"};

/* Stands by: we are one of several tasks whose directory another one watches. */
static int stand_by(const options *o, session_kind kind, const role *role) {
  if (kind == SESSION_RUN) return bystander_run(o, role);
  report_info("task %u of %u: the first one watches %s", role->task, role->tasks, o->run.dir);
  return EXIT_DONE;
}

/* Writes the outcome of a session whose run was not opened: the file of an earlier run must not be
 * taken for its end, and may be about another target. It writes only into a state directory that
 * has an identity of ours and that nobody has: a live run writes its own. */
static void leave_unopened(session *s) {
  ckpt_place place = {.size = sizeof place};
  if (!s->engine || ckpt_locate(s->engine, s->o->run.dir, s->o->run.state, &place) < 0) return;
  if (!*place.state_id || place.held) return;
  s->out.unopened = true;
  s->out.target = s->o->run.to;
  s->out.run_id = s->o->run.run_id;
  char *real = realpath(s->o->run.dir, NULL);
  s->out.dir = real ? real : s->o->run.dir;
  outcome_write(&s->out, place.state);
  s->out.dir = NULL;
  free(real);
}

/* Has Slurm start the job again that it told to end. It is the last thing that we do, since Slurm ends
 * the whole job for it; so of several ranks the first one does it, which has committed for all. */
static void requeue(const options *o) {
  ckpt *engine = NULL;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_requeue(engine);
  if (rc == 0)
    report_info("Slurm starts the job again");
  else if (engine)
    report_warning("Slurm does not start the job again: %s", ckpt_error(engine));
  ckpt_close(engine);
}

int loop_run(const options *o, session_kind kind) {
  session s;
  role role = {.watches = true, .world = 1};
  int64_t begin = command_wall_ns();
  int code = kind == SESSION_SYNC ? 0 : role_look(o, &role);
  if (code != 0) return code;
  if (!role.watches) return stand_by(o, kind, &role);
  code = session_start(&s, kind, o, &role);
  loop l = {.s = &s};
  s.out.verb = verb_names[kind];
  s.out.begin_ns = begin;
  s.out.rank = role.rank;
  s.out.world = role.world;
  if (gethostname(s.out.host, sizeof s.out.host - 1) < 0) *s.out.host = 0;
  if (code == 0) {
    run_loop(&l);
    code = finish(&l);
  } else {
    s.out.exit_code = code;
    s.out.reason = "start";
    if (s.run) outcome_take(&s.out, s.run);
  }
  s.out.end_ns = command_wall_ns();
  report_counted(s.engine);
  /* Before the run is closed: its lock is what makes the state directory ours. */
  if (s.run) {
    outcome_print(&s.out);
    outcome_write(&s.out, ckpt_run_state(s.run));
    evict_forget(ckpt_run_state(s.run));
  } else {
    leave_unopened(&s);
  }
  bool again = o->requeue && l.cut && role.rank == 0 && !s.out.status.fenced && !l.stopped;
  session_close(&s);
  if (again) requeue(o);
  return o->json ? command_end(code) : code;
}
