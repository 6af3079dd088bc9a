#include "start.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evict_file.h"
#include "processes.h"
#include "program_named.h"
#include "ready.h"
#include "stale_sockets.h"
#include "runner/cli/flags_named.h"
#include "runner/cli/report.h"
#include "runner/cli/words.h"

/* Says a failure of the engine and keeps its text for exit.json. */
static int failed(session *s, const char *what, int status) {
  const char *text = s->engine ? ckpt_error(s->engine) : ckpt_status_name(status);
  char *said = flags_named(text);
  snprintf(s->error, sizeof s->error, "%s: %s", what, said ? said : text);
  free(said);
  report_error("%s", s->error);
  return exit_code_of(status);
}

static int not_started(session *s, const char *what, int error) {
  snprintf(s->error, sizeof s->error, "%s: %s", what, strerror(error));
  report_error("%s", s->error);
  return EXIT_NOT_STARTED;
}

/* ---- the run ---- */

/* Joins the command into one text, before anything of ours is added to it: it tells whether its
 * flags are those of the last start. */
static char *joined(char *const *words) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  for (size_t i = 0; words[i]; i++) fprintf(f, "%s%s", i ? " " : "", words[i]);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

ckpt_run_options start_options(const options *o, session_kind kind, const char *command) {
  ckpt_run_options run = o->run;
  run.size = sizeof run;
  run.command = command;
  run.policies = options_policies(o);
  run.task = run.tasks = 0; /* the role has them */
  if (kind == SESSION_SYNC) run.flags |= CKPT_KEEP_ALL;
  if (kind != SESSION_RUN) run.flags |= CKPT_BESIDE; /* a job in DIR would change it, too */
  return run;
}

/* Removes the ready file before the lock is ours, since a run that waits for a lease holds it: a
 * by-stander that finds both would begin. Where the lock is held, that launch is alive, and its
 * file is true. */
static void forget_ready(session *s) {
  ckpt_place place = {.size = sizeof place}, other = {.size = sizeof other};
  char beside[PATH_MAX];
  ready left = {0};
  if (!s->role->awaited) return;
  if (ckpt_locate(s->engine, s->o->run.dir, s->o->run.state, &place) < 0 || !*place.state) return;
  if (!place.held) ready_forget(place.state, s->role->launch);
  if (!ready_beside(s->o->run.dir, place.state, beside)) return;
  /* One that has another state may have left this one, and be alive. */
  bool says = ready_read(beside, s->role->launch, &left) > 0 && left.state;
  if (!says || (ckpt_locate(s->engine, s->o->run.dir, left.state, &other) == 0 && !other.held))
    ready_forget(beside, s->role->launch);
  ready_free(&left);
}

static int open_run(session *s) {
  const options *o = s->o;
  ckpt_options engine = {.size = sizeof engine,
                         .log_level = report_log_level(),
                         .log = report_log,
                         .flags = o->policy_in_process ? CKPT_POLICY_IN_PROCESS : 0,
                         .progress = progress_heard,
                         .progress_ctx = &s->progress};
  int rc = ckpt_open(&s->engine, &engine);
  if (rc < 0) return failed(s, "cannot start the engine", rc);
  forget_ready(s);
  char *command = o->command ? joined(o->command) : NULL;
  char *program = command ? program_named(o->command) : NULL;
  if (o->command && !program) {
    free(command);
    return not_started(s, "cannot start", ENOMEM);
  }
  ckpt_run_options run = start_options(o, s->kind, command);
  run.program = program;
  run.rank = s->role->rank;
  run.world = s->role->world;
  if (*s->role->launch) run.launch = s->role->launch;
  if (s->kind == SESSION_RUN && s->role->awaited) {
    run.task = s->role->index;
    run.tasks = s->role->count;
    if (run.tasks == 0)
      report_warning(
          "%s does not say how many tasks write into %s: whether a checkpoint is complete "
          "for the others is not asked; --tasks says it",
          s->role->source, o->run.dir);
  }
  rc = ckpt_run_open(s->engine, &s->run, &run);
  free(command);
  free(program);
  if (rc >= 0) return 0;
  int code = failed(s, "cannot open the run", rc);
  /* A policy that was named is not there, not a checkpoint that was asked for. */
  return rc == CKPT_ENOENT ? EXIT_USAGE : code;
}

/* ---- trainers of an earlier run ---- */

typedef struct trainers {
  process_list list;
  const role *role;
  pid_t ancestor; /* one that we descend from ourselves */
  pid_t unproven; /* it was the trainer here, and may not be ended */
  bool full, again;
} trainers;

/* True for a task of this very launch that came up before us: it waits for us, or was told by an
 * earlier start of the same name that all is ready. */
static bool is_fellow(const role *role, pid_t pid) {
  char task[32];
  snprintf(task, sizeof task, "%u", role->task);
  return *role->launch && process_carries(pid, "CKPT_LAUNCH", role->launch) &&
         !process_carries(pid, "CKPT_TASK", task);
}

static void take_trainer(void *ctx, const ckpt_trainer *t) {
  trainers *all = ctx;
  process p = {.pid = t->pid, .start = t->start};
  const char *command = t->command ? t->command : "?", *left = t->left;
  if (!left && is_fellow(all->role, t->pid)) left = "it is of another task of this launch";
  if (t->unproven) all->unproven = t->pid;
  if (left) {
    if (!all->again && !t->unproven)
      report_warning("process %d (%s) may write to this directory and is left alone: %s",
                     (int)t->pid, command, left);
    return;
  }
  process *items = realloc(all->list.items, (all->list.count + 1) * sizeof *items);
  if (!items) {
    all->full = true;
    return;
  }
  all->list.items = items;
  items[all->list.count++] = p;
  if (process_is_ancestor(t->pid))
    all->ancestor = t->pid;
  else
    report_warning("process %d (%s) of an earlier run is still alive: ending it", (int)t->pid,
                   command);
}

static int held(session *s, const char *format, int pid, const char *why) {
  snprintf(s->error, sizeof s->error, format, pid, why);
  report_error("%s", s->error);
  return EXIT_HELD;
}

static int judge_trainers(session *s, const trainers *all) {
  if (all->full) return not_started(s, "cannot look for processes", ENOMEM);
  if (all->ancestor)
    return held(s,
                "process %d, which this command was started from, belongs to the job of an earlier "
                "run in this directory: start it from elsewhere, or unset %s there",
                (int)all->ancestor, "CKPT_STATE_ID");
  if (all->unproven)
    return held(s,
                "process %d was the job of the last run in this directory and is alive, but does "
                "not carry its %s, so it is not ended: see what it is, and end it",
                (int)all->unproven, "CKPT_STATE_ID");
  return 0;
}

/* Ends earlier trainers: two in one directory would write into each other's checkpoints. */
static int end_trainers(session *s) {
  enum { ROUNDS = 3 }; /* a process may start another one while it ends */
  process left = {0};
  int rc = 0;
  for (int round = 0; round < ROUNDS && rc == 0; round++) {
    trainers all = {.role = s->role, .again = round > 0};
    int n = ckpt_run_trainers(s->run, take_trainer, &all);
    if (n < 0) rc = failed(s, "cannot look for processes of an earlier run", n);
    if (rc == 0) rc = judge_trainers(s, &all);
    size_t count = all.list.count;
    int error = rc == 0 && count > 0 ? processes_end(&all.list, s->o->grace_s, &left) : 0;
    processes_free(&all.list);
    if (error != 0)
      rc = held(s, "process %d of an earlier run writes to this directory and cannot be ended: %s",
                (int)left.pid, strerror(-error));
    if (count == 0) return rc;
  }
  if (rc != 0) return rc;
  snprintf(s->error, sizeof s->error, "processes of an earlier run come up again and again");
  report_error("%s", s->error);
  return EXIT_HELD;
}

/* ---- the directory ---- */

static void report_moved(const session *s, const ckpt_prepared *out) {
  const uint32_t torn = out->incomplete, others = out->quarantined - torn;
  const char *state = ckpt_run_state(s->run);
  if (torn > 0)
    report_info("%u incomplete checkpoint%s moved to %s/quarantine", torn, torn == 1 ? "" : "s",
                state);
  if (others > 0)
    report_info("%u checkpoint%s moved to %s/quarantine: not incomplete, and not as this start "
                "needs %s",
                others, others == 1 ? "" : "s", state, others == 1 ? "it" : "them");
}

static int prepare(session *s, ckpt_prepared *out) {
  ckpt_prepare_options options = {.size = sizeof options,
                                  .restore =
                                      s->kind == SESSION_SYNC ? CKPT_RESTORE_NEVER : s->o->restore,
                                  .named = s->o->named};
  *out = (ckpt_prepared){.size = sizeof *out};
  int rc = ckpt_run_prepare(s->run, &options, out);
  if (rc < 0) return failed(s, "cannot make the directory ready", rc);
  if (s->kind == SESSION_SYNC) return 0;
  report_moved(s, out);
  if (out->resume && out->restored_from)
    report_info("resume from %s, restored from %s", out->resume, out->restored_from);
  else if (out->resume)
    report_info("resume from %s", out->resume);
  else
    report_info("nothing to resume from: a fresh start");
  return 0;
}

/* ---- the job's process ---- */

/* Adds "NAME=value" to `list`; nothing for a NULL value. */
static bool add_variable(word_list *list, const char *name, const char *value) {
  char *text;
  if (!value) return true;
  if (asprintf(&text, "%s=%s", name, value) < 0) return false;
  bool ok = word_list_add(list, text);
  free(text);
  return ok;
}

/* Makes the environment. Our variables are not inherited: a run within a run's job would resume
 * from the wrong checkpoint. */
static bool make_environment(const start_job *job, word_list *out) {
  static const char *const names[] = {
      "CKPT_DIR=",           "CKPT_SOCKET=", "CKPT_STATE_ID=",    "CKPT_RESUME=",
      "CKPT_RESTORED_FROM=", "CKPT_LAUNCH=", "CKPT_ANSWER_WAIT=", "CKPT_TASK="};
  char task[32];
  snprintf(task, sizeof task, "%u", job->task);
  for (char **e = environ; *e; e++) {
    bool ours = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      ours = ours || strncmp(*e, names[i], strlen(names[i])) == 0;
    if (!ours && !word_list_add(out, *e)) return false;
  }
  return add_variable(out, "CKPT_DIR", job->dir) && add_variable(out, "CKPT_SOCKET", job->socket) &&
         add_variable(out, "CKPT_STATE_ID", job->state_id) &&
         add_variable(out, "CKPT_RESUME", job->resume) &&
         add_variable(out, "CKPT_RESTORED_FROM", job->restored_from) &&
         add_variable(out, "CKPT_LAUNCH", job->launch) &&
         add_variable(out, "CKPT_TASK", job->launch ? task : NULL);
}

static bool make_arguments(const options *o, const start_job *job, word_list *out) {
  for (char **word = o->command; *word; word++)
    if (!word_list_add(out, *word)) return false;
  return !o->resume_arg || !job->resume || words_split(out, o->resume_arg, job->resume) == 0;
}

int start_command(supervisor *sup, const options *o, const start_job *job, char *error,
                  size_t room) {
  word_list env = {0}, args = {0};
  int rc = 0, why = ENOMEM;
  if (!make_environment(job, &env) || !make_arguments(o, job, &args))
    rc = EXIT_NOT_STARTED;
  else
    rc = supervise_start(sup, args.items, env.items, &why);
  if (rc != 0) {
    snprintf(error, room, "cannot run '%.200s': %s", o->command[0], strerror(why));
    report_error("%s", error);
  }
  word_list_free(&env);
  word_list_free(&args);
  return rc;
}

static int start_child(session *s, const ckpt_prepared *prepared) {
  start_job job = {.dir = ckpt_run_dir(s->run),
                   .socket = s->listener ? ckpt_run_socket(s->run) : NULL,
                   .state_id = ckpt_run_state_id(s->run),
                   .launch = *s->role->launch ? s->role->launch : NULL,
                   .task = s->role->task,
                   .resume = prepared->resume,
                   .restored_from = prepared->restored_from};
  int rc = start_command(&s->sup, s->o, &job, s->error, sizeof s->error);
  if (rc != 0) return rc;
  s->out.has_child = true;
  ckpt_event started = {
      .size = sizeof started, .kind = CKPT_EVENT_CHILD, .pid = (int32_t)s->sup.child};
  if (ckpt_notify(s->run, &started, NULL) < 0)
    report_warning("the job's process is not noted down: %s", ckpt_error(s->engine));
  return 0;
}

/* ---- all of it ---- */

/* Checks that the directory is there: the engine would make it, and a typing error would look like
 * a directory without checkpoints. */
static int check_directory(session *s) {
  static const char scheme[] = "file://";
  const char *dir = s->o->run.dir;
  struct stat st;
  if (strncmp(dir, scheme, sizeof scheme - 1) == 0) dir += sizeof scheme - 1;
  if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode)) return 0;
  snprintf(s->error, sizeof s->error, "there is no directory %s", dir);
  report_error("%s", s->error);
  return EXIT_NOTHING;
}

/* Tells the by-standers of the directory: from now on nobody of us writes there. */
static int say_ready(session *s, const ckpt_prepared *prepared) {
  char beside[PATH_MAX], dir[PATH_MAX], place[READY_PLACE_MAX];
  const char *state = ckpt_run_state(s->run);
  const bool known = ready_place(s->o->run.dir, dir, place);
  const ready says = {.resume = (char *)prepared->resume,
                      .restored_from = (char *)prepared->restored_from,
                      .state = (char *)state,
                      .dir = known ? dir : NULL,
                      .place = known ? place : NULL,
                      .asks = s->role->count > 1};
  if (!s->role->awaited) return 0;
  int rc = ready_say(state, s->role->launch, &says);
  if (rc == 0 && ready_beside(s->o->run.dir, state, beside) &&
      (rc = ready_say(beside, s->role->launch, &says)) < 0) {
    report_debug("%s is not written to: %s", beside, strerror(-rc)); /* it is another user's */
    rc = 0;
  }
  return rc == 0 ? 0
                 : not_started(s, "cannot tell the other tasks that the directory is ready", -rc);
}

/* Tells the by-standers of a failure: they would wait until their time is over. Only a directory
 * that has an identity of ours is written to. Another start of the same launch id that is alive
 * speaks for itself. */
static void say_failed(session *s, int code) {
  ckpt_place place = {.size = sizeof place};
  char beside[PATH_MAX];
  ready left = {0};
  if (!s->role->awaited || !s->engine) return;
  if (ckpt_locate(s->engine, s->o->run.dir, s->o->run.state, &place) < 0) return;
  if (!*place.state_id && !*place.boot) return;
  bool twin = !s->run && place.held && strcmp(place.launch, s->role->launch) == 0;
  if (twin) return;
  ready_fail(place.state, s->role->launch, code);
  if (!ready_beside(s->o->run.dir, place.state, beside)) return;
  /* What is there now is of one that is alive: else it was forgotten. */
  int found = ready_read(beside, s->role->launch, &left);
  if (found == 0 || (found > 0 && left.failed)) ready_fail(beside, s->role->launch, code);
  ready_free(&left);
}

/* Opens the socket. Results are an extra: a run that cannot have a socket trains and saves all the
 * same. Where the engine knows of no place for one, it said so. */
static void listen_for_results(session *s) {
  char text[LISTENER_ERROR_MAX];
  const char *path = ckpt_run_socket(s->run);
  if (*path && listener_open(&s->listener, path, text) != 0)
    report_warning("%s: this run cannot be asked or told results", text);
  stale_sockets_remove(path);
}

static int begin(session *s, session_kind kind, const options *o, const role *role) {
  bool child = kind == SESSION_RUN;
  ckpt_prepared prepared = {.size = sizeof prepared};
  *s = (session){.kind = kind, .o = o, .role = role};
  s->out.text = s->error;
  progress_begin_here(&s->progress, o->level < 0);
  supervise_init(&s->sup);
  s->said = last_lines_begin(STDERR_FILENO, STDOUT_FILENO);
  int rc = kind == SESSION_SYNC ? check_directory(s) : 0;
  if (rc == 0) rc = open_run(s);
  if (rc != 0) return rc;
  outcome_forget(ckpt_run_state(s->run));
  evict_forget(ckpt_run_state(s->run)); /* of one that was killed */
  if (child) rc = end_trainers(s);
  if (rc == 0 && kind != SESSION_WATCH) rc = prepare(s, &prepared);
  if (rc != 0) return rc;
  int error = supervise_begin(&s->sup);
  if (error != 0) return not_started(s, "cannot take signals", -error);
  listen_for_results(s);
  rc = ckpt_run_start(s->run);
  if (rc < 0) return failed(s, "cannot watch the directory", rc);
  if (child) rc = say_ready(s, &prepared);
  if (kind != SESSION_SYNC) progress_share(&s->progress, true);
  return child && rc == 0 ? start_child(s, &prepared) : rc;
}

int session_start(session *s, session_kind kind, const options *o, const role *role) {
  int code = begin(s, kind, o, role);
  if (code != 0) say_failed(s, code);
  return code;
}

void session_close(session *s) {
  last_lines_end(&s->said);
  listener_close(s->listener);
  ckpt_run_close(s->run);
  ckpt_close(s->engine);
  supervise_close(&s->sup);
  outcome_free(&s->out);
}
