#include "slurm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/seconds.h"
#include "prims/child.h"
#include "prims/program.h"

static const char scheme[] = "slurm:";

void slurm_name_job(const char *cluster, const char *number, char *out, size_t room) {
  out[0] = 0;
  if (!number || !*number) return;
  bool known = cluster && *cluster && strlen(cluster) < 64;
  snprintf(out, room, "%s%s%s%.40s", scheme, known ? cluster : "", known ? "/" : "", number);
}

/* The length of the cluster's name; 0: it has none. */
static size_t cluster_of(const char *job, const char **name) {
  const size_t len = sizeof scheme - 1;
  if (strncmp(job, scheme, len) != 0) return 0;
  *name = job + len;
  const char *slash = strrchr(*name, '/');
  return slash ? (size_t)(slash - *name) : 0;
}

bool slurm_same_cluster(const char *ours, const char *job, char number[SLURM_NUMBER_MAX]) {
  const char *a = NULL, *b = NULL;
  size_t len = cluster_of(ours, &a);
  if (len == 0 || cluster_of(job, &b) != len || memcmp(a, b, len) != 0) return false;
  const char *digits = b + len + 1;
  size_t count = strspn(digits, "0123456789");
  if (count == 0 || digits[count] || count >= SLURM_NUMBER_MAX) return false;
  memcpy(number, digits, count + 1);
  return true;
}

bool slurm_ended(const char *text) {
  static const char *const states[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                       "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                       "TIMEOUT",   NULL};
  size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
  /* sacct says "CANCELLED by 1000" and "CANCELLED+"; several lines are several lives of the job. */
  const char *end = text + len + strcspn(text + len, "\n");
  while (*end == '\n') end++;
  if (len == 0 || *end) return false;
  for (const char *const *s = states; *s; s++)
    if (strlen(*s) == len && strncmp(text, *s, len) == 0) return true;
  return false;
}

/* A command of Slurm's, and what it answers. */
typedef struct question {
  char *const *argv;
  char *out; /* its output; "" if it failed */
  size_t room;
  program *p;
  char fault[200]; /* why there is no answer; "": there is one */
} question;

static void pose(const io *io, question *q) {
  /* Nothing of what the user's shell says of other clusters, or of formats. */
  static const char *const kept[] = {"PATH", "HOME", "USER", "SLURM_CONF", "LD_LIBRARY_PATH", NULL};
  names env = {0};
  q->out[0] = 0;
  if (child_env(kept, &env) && names_add(&env, "SLURM_TIME_FORMAT=%s")) {
    const program_plan plan = {
        .argv = q->argv, .envp = (char *const *)names_list(&env), .keep = q->room - 1};
    if (program_start(io, &plan, &q->p, NULL) < 0) q->p = NULL; /* Slurm's commands are not here */
  }
  names_free(&env);
}

static bool is_answered(const question *q, int *code) {
  int signal;
  return !q->p || program_ended(q->p, code, &signal);
}

static void say_fault(question *q, bool answered) {
  size_t len = 0;
  uint64_t dropped;
  const char *said = answered ? program_output(q->p, 2, &len, &dropped) : "";
  const char *end = len ? memchr(said, '\n', len) : NULL;
  if (end) len = (size_t)(end - said);
  snprintf(q->fault, sizeof q->fault, "%s %s%s%.*s", q->argv[0],
           !q->p      ? "cannot be started"
           : answered ? "failed"
                      : "does not answer",
           len ? ": " : "", (int)len, said);
}

/* Takes the answer, and ends what has none by now. 0: it did what it was asked to. */
static int take_answer(question *q) {
  int code = -1;
  size_t len = 0;
  uint64_t dropped = 0;
  bool answered = q->p && is_answered(q, &code);
  if (!answered) code = -1;
  if (code == 0) {
    const char *text = program_output(q->p, 1, &len, &dropped);
    if (!dropped && len < q->room) {
      memcpy(q->out, text, len);
      q->out[len] = 0;
    }
  } else {
    say_fault(q, answered);
  }
  if (q->p) program_close(q->p);
  return code == 0 ? 0 : -1;
}

/* Listens to each that has not answered yet. Returns true if there is one. */
static bool listen_to(question *all, size_t count) {
  enum { TURN_MS = 50 };
  bool any = false;
  int code;
  for (size_t i = 0; i < count; i++)
    if (!is_answered(&all[i], &code)) any |= program_turn(all[i].p, TURN_MS, NULL) >= 0;
  return any;
}

/* Poses the questions side by side; `longest_ns` later, or once `stop` (may be NULL) is set, nothing
 * more is waited for. */
static int ask_until(const io *io, question *all, size_t count, int64_t longest_ns,
                     const atomic_int *stop) {
  const int64_t until = io->now(io, IO_MONO) + longest_ns;
  int failed = 0;
  for (size_t i = 0; i < count; i++) pose(io, &all[i]);
  while (listen_to(all, count) && io->now(io, IO_MONO) < until && !(stop && atomic_load(stop)))
    continue;
  for (size_t i = 0; i < count; i++) failed |= take_answer(&all[i]);
  return failed;
}

static int ask_all(const io *io, question *all, size_t count, int64_t longest_ns) {
  return ask_until(io, all, count, longest_ns, NULL);
}

static void ask(const io *io, char *const argv[], char *out, size_t room) {
  question q = {.argv = argv, .out = out, .room = room};
  ask_all(io, &q, 1, 10 * SECOND_NS);
}

/* squeue knows a job for some minutes after its end, the accounting, if there is one, for longer. A
 * job that waits to be started again is in the queue, so that is asked first. */
bool slurm_is_over(const io *io, const char *ours, const char *job) {
  char number[SLURM_NUMBER_MAX], text[512];
  if (!slurm_same_cluster(ours, job, number)) return false;
  char *const queue[] = {"squeue", "-h", "-t", "all", "-o", "%T", "-j", number, NULL};
  char *const account[] = {"sacct", "-n", "-X", "-P", "-o", "State", "-j", number, NULL};
  ask(io, queue, text, sizeof text);
  if (*text) return slurm_ended(text);
  ask(io, account, text, sizeof text);
  return slurm_ended(text);
}

/* ---- the end of our own job ---- */

bool slurm_own(const char *number, const char *array, const char *task, char out[SLURM_OWN_MAX]) {
  if (!number || !*number) return false;
  bool ambiguous = array && strcmp(number, array) == 0 && task && *task;
  snprintf(out, SLURM_OWN_MAX, "%.30s%s%.30s", number, ambiguous ? "_" : "", ambiguous ? task : "");
  return true;
}

double slurm_kill_wait(const char *config) {
  static const char key[] = "KillWait ";
  for (const char *line = config; line && *line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, sizeof key - 1) != 0) continue;
    const char *value = line + strcspn(line, "=\n");
    unsigned seconds;
    if (*value == '=' && sscanf(value, "= %6u sec", &seconds) == 1) return seconds;
  }
  return -1;
}

/* A job without a limit has no end, or one a year away. */
void slurm_judge_end(const char *end, double now_s, double kill_wait_s, slurm_time_left *out) {
  const double nobody_s = 3600;
  unsigned long long at;
  *out = (slurm_time_left){.ends_s = -1, .kill_s = -1};
  if (sscanf(end, "%15llu", &at) != 1) return;
  double left = (double)at - now_s;
  if (left < 0) left = 0;
  if (left > nobody_s) return;
  out->ends_s = left;
  if (kill_wait_s >= 0) out->kill_s = left + kill_wait_s;
}

void slurm_time(const io *io, const char *number, const char *end, slurm_time_left *out) {
  enum { CONFIG_MAX = 64 << 10 };
  char text[64] = "", *config = malloc(CONFIG_MAX);
  char *const queue[] = {"squeue", "-h", "-t", "all", "-o", "%e", "-j", (char *)number, NULL};
  char *const settings[] = {"scontrol", "show", "config", NULL};
  question all[] = {{.argv = queue, .out = text, .room = sizeof text},
                    {.argv = settings, .out = config, .room = CONFIG_MAX}};
  ask_all(io, all, config ? 2 : 1, 2 * SECOND_NS);
  slurm_judge_end(*text ? text
                  : end ? end
                        : "",
                  (double)io->now(io, IO_WALL) / 1e9, slurm_kill_wait(config), out);
  free(config);
}

int slurm_requeue(const io *io, const char *number, err *e) {
  char state[512], said[256];
  char *const queue[] = {"squeue", "-h", "-t", "all", "-o", "%T", "-j", (char *)number, NULL};
  char *const requeue[] = {"scontrol", "requeue", (char *)number, NULL};
  question first = {.argv = queue, .out = state, .room = sizeof state};
  question q = {.argv = requeue, .out = said, .room = sizeof said};
  bool unknown =
      ask_all(io, &first, 1, 10 * SECOND_NS) < 0 && strstr(first.fault, "Invalid job id");
  if (*first.fault && !unknown)
    return err_set(e, ERR_IO, "job %s: nothing is known of it: %s", number, first.fault);
  state[strcspn(state, "\n")] = 0;
  if (!*state) return err_set(e, ERR_CONFLICT, "job %s: Slurm does not know it", number);
  if (strcmp(state, "RUNNING") != 0)
    return err_set(e, ERR_CONFLICT, "job %s: Slurm says that it is %s", number, state);
  if (ask_all(io, &q, 1, 10 * SECOND_NS) == 0) return 0;
  return err_set(e, ERR_IO, "job %s: %s", number, q.fault);
}

/* ---- its comments ---- */

bool slurm_comment_of(const char *shown, bool admin, char *out, size_t room) {
  const char *const key = admin ? "AdminComment=" : "Comment=";
  for (const char *line = shown; line && *line; line = strchr(line, '\n')) {
    line += strspn(line, "\n \t");
    if (strncmp(line, key, strlen(key)) != 0) continue;
    const char *value = line + strlen(key);
    value += strspn(value, " \t");
    snprintf(out, room, "%.*s", (int)strcspn(value, "\n"), value);
    return true;
  }
  if (room) out[0] = 0;
  return false;
}

/* Says what is to be done: a refusal does not pass. */
static int refused(err *e, const char *number, const char *fault) {
  const bool denied = strstr(fault, "permission denied") || strstr(fault, "Invalid user id");
  return err_set(e, denied ? ERR_ACCESS : ERR_IO, "job %s: its comment: %s", number, fault);
}

int slurm_comment(const io *io, const char *number, bool admin, const char *text,
                  const atomic_int *stop, err *e) {
  enum { SHOWN_MAX = 16 << 10, JOB_MAX = 80 };
  const int64_t longest = 10 * SECOND_NS;
  char id[JOB_MAX], there[512], said[256], *shown = malloc(SHOWN_MAX), *set = NULL;
  snprintf(id, sizeof id, "JobId=%s", number);
  if (!shown || asprintf(&set, "%s=%s", admin ? "AdminComment" : "Comment", text) < 0) {
    free(shown);
    return err_set(e, ERR_NOMEM, "job %s: its comment: out of memory", number);
  }
  char *const show[] = {"scontrol", "show", "job", (char *)number, NULL};
  char *const update[] = {"scontrol", "update", id, set, NULL};
  question first = {.argv = show, .out = shown, .room = SHOWN_MAX};
  question second = {.argv = update, .out = said, .room = sizeof said};
  int rc = 0;
  if (ask_until(io, &first, 1, longest, stop) < 0)
    rc = refused(e, number, first.fault);
  else if (!*shown) /* what is not read may be there */
    rc = err_set(e, ERR_IO, "job %s: its comment: what scontrol shows is too long", number);
  else if (slurm_comment_of(shown, admin, there, sizeof there) && *there &&
           strncmp(there, SLURM_OURS, strlen(SLURM_OURS)) != 0)
    rc = err_set(e, ERR_HELD, "job %s: its comment is another's: %.200s", number, there);
  else if (ask_until(io, &second, 1, longest, stop) < 0)
    rc = refused(e, number, second.fault);
  free(set);
  free(shown);
  return rc;
}
