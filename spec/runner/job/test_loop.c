/* The loop of `run` and `watch` against an engine that this file makes up: what takes long, fails
 * or never ends in a real one happens here on demand. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ckpt.h"
#include "runner/job/loop.h"
#include "runner/job/outcome.h"
#include "runner/cli/report.h"
#include "tmpdir.h"

/* ---- the made-up engine; in memory that the test shares with the runner's process ---- */

static struct fake {
  /* what it does */
  int open_status, prepare_status, newest_status;
  bool pending_after_exit; /* the last save never gets durable */
  double durable_after_s;  /* ... or this long after the child's end */
  bool fenced_at_once;     /* as soon as the child runs */
  bool dispatch_fails;
  bool keeping; /* retention never gets done */
  unsigned committed, unmatched;
  unsigned standing; /* if nothing is late; 0: durable */
  bool saw_no_file;
  bool resume;
  int trainer; /* a process of an earlier run */
  uint64_t trainer_start;
  /* what it saw */
  int child, clean, exits, preempts, dispatches, opened, closed;
  double grace_s;
  double left_s;     /* until the scheduler kills us; 0: nobody knows */
  double launcher_s; /* from its SIGTERM to its SIGKILL; 0: there is none */
  int requeued;
  char json[64];
} * fake;

static char *dir;
static double exit_at;
static bool told_fenced;
static int engine_fd = -1;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The runner's clock is a minute ahead once the job says so. Not before the loop asked the engine for
 * the first time: a minute that ended before the loop began to count is none to it. */
double clock_s(void) {
  bool later = fake->dispatches > 0 && path_exists(tmpdir_path(dir, "a minute later"));
  return now_s() + (later ? 60 : 0);
}

const char *ckpt_version(void) {
  return "9";
}
const char *ckpt_status_name(int code) {
  return code == CKPT_EIO ? "IO" : "OTHER";
}
const char *ckpt_standing_name(uint32_t standing) {
  return standing == CKPT_DURABLE ? "durable" : standing == 0 ? NULL : "other";
}
int ckpt_class(int code) {
  return code == CKPT_OK                          ? CKPT_CLASS_NONE
         : code == CKPT_EIO || code == CKPT_EHELD ? CKPT_CLASS_RETRYABLE
         : code == CKPT_EFENCED                   ? CKPT_CLASS_FATAL
                                                  : CKPT_CLASS_PERMANENT;
}
int ckpt_open(ckpt **out, const ckpt_options *options) {
  engine_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  *out = (ckpt *)fake;
  fake->opened++;
  return 0;
}
void ckpt_close(ckpt *engine) {
  fake->closed++;
}
void ckpt_log_counted(ckpt *engine) {}
const char *ckpt_error(const ckpt *engine) {
  return (void)engine, "made up";
}
int ckpt_fd(const ckpt *engine) {
  return (void)engine, engine_fd;
}
int ckpt_run_open(ckpt *engine, ckpt_run **out, const ckpt_run_options *options) {
  if (fake->open_status == 0) *out = (ckpt_run *)fake;
  return fake->open_status;
}
void ckpt_run_close(ckpt_run *run) {}
const char *ckpt_run_socket(const ckpt_run *run) {
  return (void)run, tmpdir_path(dir, "sock");
}
const char *ckpt_run_state_id(const ckpt_run *run) {
  return (void)run, "0123456789abcdef0123456789abcdef";
}
const char *ckpt_run_dir(const ckpt_run *run) {
  return (void)run, dir;
}
const char *ckpt_run_state(const ckpt_run *run) {
  return (void)run, dir;
}
const char *ckpt_run_target(const ckpt_run *run) {
  return (void)run, "mem://x";
}
const char *ckpt_run_id(const ckpt_run *run) {
  return (void)run, "made-up";
}
/* What the verbs call that are linked along, and not used here. */
int ckpt_locate(ckpt *engine, const char *where, const char *state, ckpt_place *out) {
  return CKPT_ENOENT;
}
int ckpt_why(ckpt *engine, const ckpt_why_options *options, ckpt_finding_fn *fn, void *ctx,
             const char **cause, const char **text) {
  return CKPT_ENOENT;
}
int ckpt_run_why(ckpt_run *run, const char *name, ckpt_finding_fn *fn, void *ctx,
                 const char **cause, const char **text) {
  return CKPT_ENOENT;
}
int ckpt_run_reload(ckpt_run *run, const ckpt_reload_options *options, uint64_t *job) {
  return CKPT_ENOENT;
}
int ckpt_run_reloaded(ckpt_run *run, uint64_t job, ckpt_reloaded *out, ckpt_reload_change_fn *fn,
                      void *ctx) {
  return CKPT_ENOENT;
}
int ckpt_find_dir(ckpt *engine, const char *path, char *out, size_t room) {
  return CKPT_ENOENT;
}
/* No launcher is there. */
int ckpt_ranks_detect(ckpt *engine, ckpt_ranks *out) {
  *out = (ckpt_ranks){.size = sizeof *out};
  return 0;
}
int ckpt_dir_is_shared(ckpt *engine, const char *dir) {
  return 0;
}
int ckpt_time_left_detect(ckpt *engine, ckpt_time_left *out) {
  *out = (ckpt_time_left){.size = sizeof *out,
                          .ends_s = fake->left_s > 0 ? 0 : -1,
                          .kill_s = fake->left_s > 0 ? fake->left_s : -1,
                          .launcher_s = fake->launcher_s > 0 ? fake->launcher_s : -1,
                          .launcher = "mpirun kills it then"};
  return 0;
}
int ckpt_task_join(ckpt *engine, ckpt_task **out, const ckpt_task_options *options) {
  *out = NULL;
  return CKPT_ENOENT;
}
int ckpt_task_step(ckpt_task *task, ckpt_task_seen *out) {
  return CKPT_EINVAL;
}
int ckpt_task_end(ckpt_task *task, int clean) {
  return 0;
}
int ckpt_requeue(ckpt *engine) {
  return fake->requeued++, 0;
}
int ckpt_helper_pid(const ckpt *engine) {
  return (void)engine, 0;
}
int ckpt_list(ckpt *engine, const char *uri, ckpt_item_fn *fn, void *ctx) {
  return CKPT_ENOENT;
}
int ckpt_run_trainers(ckpt_run *run, ckpt_trainer_fn *fn, void *ctx) {
  if (!fake->trainer || kill(fake->trainer, 0) != 0) return 0;
  ckpt_trainer t = {.size = sizeof t, .pid = fake->trainer, .start = fake->trainer_start};
  fn(ctx, &t);
  return 1;
}
int ckpt_run_prepare(ckpt_run *run, const ckpt_prepare_options *options, ckpt_prepared *out) {
  if (fake->resume) {
    out->resume = "/some where/checkpoint-3";
    out->restored_from = "file:///t/checkpoint-3";
  }
  return fake->prepare_status;
}
int ckpt_run_start(ckpt_run *run) {
  return (void)run, 0;
}
int ckpt_dispatch(ckpt *engine, int timeout_ms) {
  fake->dispatches++;
  return fake->dispatch_fails ? CKPT_EIO : 0;
}
int ckpt_next(ckpt *engine, ckpt_completion *out) {
  if (!fake->fenced_at_once || told_fenced || !fake->child) return 0;
  told_fenced = true;
  out->kind = CKPT_FENCED;
  out->reason = "term 2 of another host";
  return 1;
}
int ckpt_notify(ckpt_run *run, const ckpt_event *event, uint64_t *job) {
  uint64_t one = 1;
  if (event->kind == CKPT_EVENT_CHILD) fake->child = event->pid;
  if (event->kind == CKPT_EVENT_EXIT) {
    fake->exits++;
    fake->clean = event->clean;
    exit_at = now_s();
  }
  if (event->kind == CKPT_EVENT_PREEMPT) {
    fake->preempts++;
    fake->grace_s = event->grace_s;
  }
  if (event->kind == CKPT_EVENT_RESULT) {
    if (*event->json != '{') return CKPT_EFORMAT;
    snprintf(fake->json, sizeof fake->json, "%s", event->json);
  }
  if (fake->durable_after_s > 0 && event->kind == CKPT_EVENT_EXIT && fork() == 0) {
    struct timespec t = {.tv_nsec = (long)(fake->durable_after_s * 1e9)};
    nanosleep(&t, NULL);
    if (write(engine_fd, &one, sizeof one) < 0) _exit(1);
    _exit(0);
  }
  return 0;
}
static bool is_pending(void) {
  if (fake->durable_after_s > 0) return exit_at > 0 && now_s() < exit_at + fake->durable_after_s;
  return fake->pending_after_exit && exit_at > 0;
}
static bool is_late(void) {
  return is_pending() || fake->newest_status != CKPT_OK || told_fenced;
}
int ckpt_run_get_status(ckpt_run *run, ckpt_run_status *out) {
  *out = (ckpt_run_status){.size = sizeof *out,
                           .committed = fake->committed,
                           .pending = is_pending(),
                           .keeping = fake->keeping,
                           .newest_step = -1,
                           .newest_age_s = -1,
                           .newest_status = is_pending() ? CKPT_EIO : fake->newest_status,
                           .fenced = told_fenced,
                           .unmatched = fake->unmatched,
                           .standing = is_late()        ? CKPT_NOT_DURABLE
                                       : fake->standing ? fake->standing
                                                        : CKPT_DURABLE,
                           .saw_file = !fake->saw_no_file,
                           .unmatched_example = "model.bin"};
  return 0;
}
int ckpt_run_evict(ckpt_run *run, ckpt_evict *out) {
  *out = (ckpt_evict){.size = sizeof *out, .time = 1, .lost_since = -1, .step = -1};
  return (void)run, 0;
}
int ckpt_comment(ckpt *engine, uint32_t which, const char *text, uint64_t *job) {
  return (void)engine, (void)which, (void)text, *job = 1, 0;
}
void ckpt_comment_stop(ckpt *engine) {
  (void)engine;
}
int ckpt_run_drained(ckpt_run *run, uint64_t job, ckpt_drain *out, ckpt_drained_fn *fn, void *ctx) {
  return (void)run, (void)job, (void)out, (void)fn, (void)ctx, CKPT_ENOENT;
}
int ckpt_run_prove(ckpt_run *run) {
  return (void)run, 0;
}
int ckpt_run_pending(ckpt_run *run, ckpt_pending_fn *fn, void *ctx) {
  ckpt_pending p = {.size = sizeof p,
                    .unit = "checkpoint-6",
                    .reason = "uploading",
                    .bytes = 1 << 20,
                    .bytes_left = 312 << 10};
  if (is_pending()) fn(ctx, &p);
  return is_pending();
}

/* ---- a runner in a process of its own ---- */

static options o;
static session_kind kind;
static char *argv[32];
static char *said; /* what it wrote to stderr */

static int set_up(void **state) {
  fake = mmap(NULL, sizeof *fake, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (fake == MAP_FAILED) return -1;
  dir = tmpdir_new();
  o = (options){.run.dir = dir, .run.to = "mem://x", .grace_s = 30, .command = argv};
  kind = SESSION_RUN;
  return 0;
}

static int tear_down(void **state) {
  free(said);
  said = NULL;
  tmpdir_remove(dir);
  return munmap(fake, sizeof *fake);
}

static pid_t start(const char *script) {
  argv[0] = "/bin/sh";
  argv[1] = "-c";
  argv[2] = (char *)script;
  argv[3] = NULL;
  pid_t pid = fork();
  if (pid != 0) return pid;
  int err = open(tmpdir_path(dir, "stderr"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(err, 2);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(30);
  exit_at = 0;
  if (chdir(dir) != 0) _exit(99);
  _exit(loop_run(&o, kind));
}

static int end_of(pid_t pid) {
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  free(said);
  said = read_file(tmpdir_path(dir, "stderr"), NULL);
  return exit_code_of_wait(status);
}

static int run(const char *script) {
  return end_of(start(script));
}

static void await_file(const char *name) {
  for (int i = 0; i < 1000 && !path_exists(tmpdir_path(dir, name)); i++) usleep(10000);
  assert_true(path_exists(tmpdir_path(dir, name)));
}

static bool told(const char *text) {
  if (said && strstr(said, text)) return true;
  print_message("stderr is: %s\n", said ? said : "(none)");
  return false;
}

static bool exit_json_has(const char *text) {
  char *json = read_file(tmpdir_path(dir, "exit.json"), NULL);
  bool has = json && strstr(json, text);
  if (!has) print_message("exit.json is: %s\n", json ? json : "(none)");
  free(json);
  return has;
}

/* ---- the ends ---- */

static void the_childs_code_is_ours(void **state) {
  assert_int_equal(run("exit 0"), 0);
  assert_int_equal(fake->clean, 1);
  assert_true(exit_json_has("\"child\":{\"code\":0}") && exit_json_has("\"durable\":true"));
  assert_int_equal(run("exit 3"), 3);
  assert_int_equal(fake->clean, 0);
  assert_true(exit_json_has("\"exit_code\":3,\"reason\":\"child\""));
  assert_int_equal(run("kill -KILL $$"), 137);
  assert_int_equal(fake->clean, 0);
  assert_true(exit_json_has("\"child\":{\"signal\":9}"));
  assert_true(fake->opened >= 3);
  assert_int_equal(fake->closed, fake->opened);
}

static void a_clean_end_waits_until_all_is_durable(void **state) {
  fake->durable_after_s = 0.4;
  double begin = now_s();
  assert_int_equal(run("exit 0"), 0);
  assert_true(now_s() - begin >= 0.4);
  assert_true(told("waiting for 1 checkpoint"));
}

static void what_the_store_said_decides_when_the_child_ended_well(void **state) {
  fake->newest_status = CKPT_EIO;
  assert_int_equal(run("exit 0"), EXIT_GAVE_UP);
  fake->newest_status = CKPT_EACCESS;
  assert_int_equal(run("exit 0"), EXIT_STORE);
  assert_true(exit_json_has("\"durable\":false"));
  fake->newest_status = CKPT_EFENCED;
  assert_int_equal(run("exit 0"), EXIT_FENCED);
  assert_int_equal(run("exit 9"), 9);
}

static void the_deadline_names_what_is_not_durable(void **state) {
  fake->pending_after_exit = true;
  o.grace_s = 1;
  pid_t pid = start("trap 'exit 0' TERM; touch up; while :; do sleep 0.02; done");
  await_file("up");
  double begin = now_s();
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), EXIT_DEADLINE);
  assert_true(now_s() - begin >= 0.9 - 0.05 && now_s() - begin < 3);
  assert_int_equal(fake->preempts, 1);
  assert_true(fake->grace_s > 0.8 && fake->grace_s < 1);
  assert_int_equal(fake->clean, 1);
  assert_true(told("NOT durable: checkpoint-6 (312 KiB left)"));
  assert_true(exit_json_has("\"reason\":\"deadline\"") && exit_json_has("\"durable\":false"));
  assert_true(exit_json_has("\"unit\":\"checkpoint-6\",\"reason\":\"uploading\",\"bytes\":1048576,"
                            "\"bytes_left\":319488"));
}

static const char saves_on_term[] = "trap 'exit 0' TERM; touch up; while :; do sleep 0.02; done";

static void the_scheduler_says_how_long_the_grace_is_unless_the_user_did(void **state) {
  fake->pending_after_exit = true;
  fake->left_s = 1;
  pid_t pid = start(saves_on_term);
  await_file("up");
  double begin = now_s();
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), EXIT_DEADLINE);
  assert_true(now_s() - begin >= 0.9 - 0.05 && now_s() - begin < 5);
  assert_true(fake->grace_s > 0.8 && fake->grace_s < 1);
  o.grace_s = 1.5;
  o.graced = true;
  unlink(tmpdir_path(dir, "up"));
  pid = start(saves_on_term);
  await_file("up");
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), EXIT_DEADLINE);
  assert_true(fake->grace_s > 1.3 && fake->grace_s < 1.5);
}

/* The warning was minutes before the end, and now nobody knows how long that takes. */
static void what_the_scheduler_said_at_a_warning_is_no_grace_at_the_end(void **state) {
  fake->left_s = 600;
  o.usr1 = true;
  o.grace_s = 4;
  pid_t pid = start("trap 'touch warned' USR1; trap 'exit 0' TERM; touch up;"
                    "while :; do sleep 0.02; done");
  await_file("up");
  kill(pid, SIGUSR1);
  await_file("warned");
  for (int i = 0; i < 500 && fake->preempts == 0; i++) poll(NULL, 0, 10);
  assert_true(fake->grace_s > 500);
  fake->left_s = 0;
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), 0);
  assert_int_equal(fake->preempts, 2);
  assert_true(fake->grace_s > 3.5 && fake->grace_s < 4);
}

static void the_grace_is_no_longer_than_what_the_launcher_leaves(void **state) {
  fake->pending_after_exit = true;
  fake->left_s = 20;
  fake->launcher_s = 1;
  pid_t pid = start(saves_on_term);
  await_file("up");
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), EXIT_DEADLINE);
  assert_true(fake->grace_s > 0.8 && fake->grace_s < 1);
  assert_true(told("within 1 s: mpirun kills it then"));
}

/* It has not begun to end the job, and the user knows it better. */
static void the_launcher_is_in_no_hurry_at_a_warning_nor_where_the_user_said_so(void **state) {
  fake->launcher_s = 1;
  o.usr1 = true;
  o.grace_s = 4;
  pid_t pid = start("trap 'touch warned' USR1; trap 'exit 0' TERM; touch up;"
                    "while :; do sleep 0.02; done");
  await_file("up");
  kill(pid, SIGUSR1);
  await_file("warned");
  for (int i = 0; i < 500 && fake->preempts == 0; i++) poll(NULL, 0, 10);
  assert_true(fake->grace_s > 3.5 && fake->grace_s < 4);
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), 0);
  assert_true(fake->grace_s > 0.8 && fake->grace_s < 1);
  o.graced = true;
  unlink(tmpdir_path(dir, "up"));
  pid = start(saves_on_term);
  await_file("up");
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), 0);
  assert_true(fake->grace_s > 3.5 && fake->grace_s < 4);
}

static void a_job_that_was_told_to_end_is_started_again_by_the_scheduler(void **state) {
  o.requeue = true;
  pid_t pid = start(saves_on_term);
  await_file("up");
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), 0);
  assert_int_equal(fake->requeued, 1);
  assert_int_equal(run("exit 0"), 0); /* it was at its end */
  assert_int_equal(run("exit 143"), 143);
  assert_int_equal(fake->requeued, 1);
  fake->fenced_at_once = true; /* another one has the job's place */
  assert_int_equal(run(saves_on_term), EXIT_FENCED);
  assert_int_equal(fake->requeued, 1);
}

static void a_signal_while_only_saves_are_left_begins_the_grace(void **state) {
  fake->pending_after_exit = true;
  o.grace_s = 0.5;
  pid_t pid = start("exit 0");
  for (int i = 0; i < 500 && !fake->exits; i++) usleep(10000);
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), EXIT_DEADLINE);
  assert_int_equal(fake->preempts, 1);
}

static void who_does_not_end_is_killed_with_the_grace(void **state) {
  o.grace_s = 0.5;
  pid_t pid = start("trap '' TERM; touch up; while :; do sleep 0.02; done");
  await_file("up");
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), 137);
  assert_int_equal(fake->clean, 0);
  assert_true(told("the grace is over"));
}

/* ---- signals ---- */

static void signals_are_passed_on_once(void **state) {
  pid_t pid = start("trap 'echo T >>got' TERM; trap 'echo H >>got' HUP; touch up;"
                    "i=0; while [ $i -lt 40 ]; do sleep 0.02; i=$((i+1)); done; exit 5");
  await_file("up");
  for (int i = 0; i < 3; i++) {
    kill(pid, SIGTERM);
    kill(pid, SIGHUP);
    usleep(60000);
  }
  assert_int_equal(end_of(pid), 5);
  char *got = read_file(tmpdir_path(dir, "got"), NULL);
  assert_true(strcmp(got, "T\nH\n") == 0 || strcmp(got, "H\nT\n") == 0);
  free(got);
  assert_int_equal(fake->preempts, 1);
}

static void a_second_int_kills(void **state) {
  pid_t pid = start("trap 'touch first' INT; touch up; while :; do sleep 0.02; done");
  await_file("up");
  kill(pid, SIGINT);
  await_file("first");
  kill(pid, SIGINT);
  assert_int_equal(end_of(pid), 137);
  assert_true(told("SIGINT came twice"));
}

static void usr1_is_passed_on_by_flag_only_and_begins_no_grace(void **state) {
  const char *script = "trap 'touch warned' USR1; touch up;"
                       "i=0; while [ $i -lt 12 ]; do sleep 0.02; i=$((i+1)); done; exit 0";
  o.grace_s = 0.1;
  for (int flag = 0; flag < 2; flag++) {
    o.usr1 = flag;
    pid_t pid = start(script);
    await_file("up");
    kill(pid, SIGUSR1);
    assert_int_equal(end_of(pid), 0); /* far longer than the grace */
    assert_int_equal(path_exists(tmpdir_path(dir, "warned")), flag);
    assert_int_equal(fake->preempts, flag);
    unlink(tmpdir_path(dir, "up"));
  }
}

/* ---- what the child leaves ---- */

static void what_the_child_leaves_is_ended_before_the_end_is_told(void **state) {
  const char *script =
      "(trap 'sleep 0.2; touch saved; exit' TERM; touch up; while :; do sleep 0.02; done) &"
      "while [ ! -e up ]; do sleep 0.01; done; exit 0";
  assert_int_equal(run(script), 0);
  assert_true(path_exists(tmpdir_path(dir, "saved")));
  assert_int_equal(fake->exits, 1);
  assert_int_equal(fake->clean, 1);
}

static void what_had_to_be_killed_makes_the_end_unclean(void **state) {
  o.grace_s = 0.3;
  assert_int_equal(run("(trap '' TERM; touch up; while :; do sleep 0.02; done) &"
                       "while [ ! -e up ]; do sleep 0.01; done; exit 0"),
                   0);
  assert_int_equal(fake->exits, 1);
  assert_int_equal(fake->clean, 0);
  assert_true(told("killed"));
}

/* ---- fenced ---- */

static void a_fenced_run_stops_its_job(void **state) {
  fake->fenced_at_once = true;
  assert_int_equal(run("trap 'touch stopped; exit 0' TERM; i=0; while [ $i -lt 100 ]; do sleep "
                       "0.02; i=$((i+1)); done"),
                   EXIT_FENCED);
  assert_true(told("a newer run writes to this target"));
  assert_true(exit_json_has("\"fenced\":true"));
}

static void a_detached_run_goes_on(void **state) {
  fake->fenced_at_once = true;
  o.detach = true;
  assert_int_equal(run("sleep 0.1; touch through; exit 0"), EXIT_FENCED);
  assert_true(path_exists(tmpdir_path(dir, "through")));
  assert_int_equal(run("exit 4"), 4);
}

/* ---- starts ---- */

static void commands_that_cannot_run_have_the_codes_of_shells(void **state) {
  argv[0] = NULL;
  pid_t pid = fork();
  if (pid == 0) {
    argv[0] = "/no/such/command";
    argv[1] = NULL;
    int err = open(tmpdir_path(dir, "stderr"), O_WRONLY | O_CREAT, 0600);
    dup2(err, 2);
    _exit(loop_run(&o, kind));
  }
  assert_int_equal(end_of(pid), 127);
  assert_true(told("cannot run '/no/such/command': No such file"));
  assert_true(exit_json_has("\"exit_code\":127,\"reason\":\"start\""));
  assert_true(exit_json_has("\"child\":null"));
}

static void retention_is_waited_for_within_the_grace_and_is_no_reason_to_fail(void **state) {
  fake->keeping = true;
  o.grace_s = 1;
  double begin = now_s();
  assert_int_equal(run("true"), 0);
  double took = now_s() - begin;
  assert_true(took > 0.8 && took < 5);
}

static void a_run_that_cannot_be_opened_starts_nothing(void **state) {
  static const struct {
    int status, code;
  } cases[] = {{CKPT_EINVAL, 2},  {CKPT_EOTHER_RUN, 11}, {CKPT_EHELD, 11}, {CKPT_ENOSTORE, 10},
               {CKPT_EACCESS, 7}, {CKPT_ENOSPACE, 7},    {CKPT_EIO, 6},    {CKPT_ECORRUPT, 5},
               {CKPT_ENOENT, 2},  {CKPT_EFENCED, 14},    {CKPT_EFORMAT, 5}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake->open_status = cases[i].status;
    assert_int_equal(run("touch ran"), cases[i].code);
  }
  fake->open_status = 0;
  fake->prepare_status = CKPT_ENOENT;
  assert_int_equal(run("touch ran"), 4);
  assert_true(exit_json_has("made up"));
  assert_false(path_exists(tmpdir_path(dir, "ran")));
}

static void the_job_is_told_where_to_resume(void **state) {
  o.resume_arg = "--resume '{}'";
  fake->resume = true;
  setenv("CKPT_RESUME", "inherited", 1);
  setenv("CKPT_RESTORED_FROM", "inherited", 1);
  assert_int_equal(run("test \"$CKPT_RESUME\" = '/some where/checkpoint-3' &&"
                       "test \"$CKPT_RESTORED_FROM\" = file:///t/checkpoint-3 &&"
                       "test \"$CKPT_DIR\" = \"$PWD\" && test -S \"$CKPT_SOCKET\" &&"
                       "test \"$0 $1\" = '--resume /some where/checkpoint-3'"),
                   0);
  fake->resume = false;
  assert_int_equal(run("test -z \"${CKPT_RESUME+set}${CKPT_RESTORED_FROM+set}$1\""), 0);
  unsetenv("CKPT_RESUME");
  unsetenv("CKPT_RESTORED_FROM");
}

static void a_trainer_of_an_earlier_run_is_ended_first(void **state) {
  char text[1024];
  unsigned long long start_time = 0;
  pid_t old = fork();
  if (old == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  snprintf(text, sizeof text, "/proc/%d/stat", (int)old);
  FILE *f = fopen(text, "r");
  assert_int_equal(fscanf(f,
                          "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                          "%*d %*d %*d %*d %llu",
                          &start_time),
                   1);
  fclose(f);
  fake->trainer = old;
  fake->trainer_start = start_time;
  /* The old one is our child, a zombie after its end: it has to be reaped for kill() to miss it. */
  signal(SIGCHLD, SIG_IGN);
  pid_t runner = start("touch ran");
  while (kill(old, 0) == 0) usleep(1000);
  signal(SIGCHLD, SIG_DFL);
  end_of(runner);
  assert_true(told("of an earlier run is still alive"));
  assert_true(path_exists(tmpdir_path(dir, "ran")));
}

static void we_never_end_what_we_come_from(void **state) {
  fake->trainer = getpid();
  assert_int_equal(run("touch ran"), EXIT_HELD);
  assert_true(told("started from"));
  assert_false(path_exists(tmpdir_path(dir, "ran")));
}

static void exit_json_of_an_earlier_run_is_removed_at_the_start(void **state) {
  write_file(tmpdir_path(dir, "exit.json"), "old");
  assert_int_equal(run("test ! -e exit.json"), 0);
}

/* ---- the rest ---- */

static void results_reach_the_engine(void **state) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char text[256];
  pid_t pid = start("touch up; while [ ! -e go ]; do sleep 0.02; done");
  await_file("up");
  snprintf(address.sun_path, sizeof address.sun_path, "%s", tmpdir_path(dir, "sock"));
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(write(fd, "{\"loss\":1}\n", 11), 11);
  ssize_t n = read(fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  assert_string_equal(text, "{\"ok\":true}\n");
  assert_int_equal(write(fd, "x\n", 2), 2);
  n = read(fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  assert_string_equal(text, "{\"error\":\"made up\"}\n");
  close(fd);
  write_file(tmpdir_path(dir, "go"), "");
  assert_int_equal(end_of(pid), 0);
  assert_string_equal(fake->json, "{\"loss\":1}");
  assert_false(path_exists(tmpdir_path(dir, "sock")));
}

static void nothing_wakes_an_idle_loop(void **state) {
  pid_t pid = start("touch up; while [ ! -e go ]; do sleep 0.02; done; exit 0");
  await_file("up");
  /* On a busy machine its start may not be over yet: one that is woken is so each time. */
  int before = -1;
  for (int i = 0; i < 20 && before != fake->dispatches; i++) {
    before = fake->dispatches;
    usleep(400000);
  }
  assert_int_equal(fake->dispatches, before);
  write_file(tmpdir_path(dir, "go"), "");
  assert_int_equal(end_of(pid), 0);
}

static void an_engine_that_fails_is_asked_again_with_pauses(void **state) {
  fake->dispatch_fails = true;
  assert_int_equal(run("sleep 0.3; exit 0"), EXIT_GAVE_UP);
  assert_true(fake->dispatches < 10);
  assert_true(told("the engine failed"));
}

static void files_of_no_unit_are_named_at_the_end(void **state) {
  fake->unmatched = 2;
  fake->standing = CKPT_NOTHING_TO_SAVE;
  assert_int_equal(run("exit 0"), 0);
  assert_true(told("2 files were written that belong to no checkpoint, for example model.bin"));
  o.require_commit = true;
  assert_int_equal(run("exit 0"), EXIT_NOTHING);
  fake->committed = 1;
  fake->standing = CKPT_DURABLE;
  assert_int_equal(run("exit 0"), 0);
}

static void a_directory_in_which_no_file_is_seen_is_named_within_a_minute(void **state) {
  fake->saw_no_file = true;
  fake->standing = CKPT_NOTHING_TO_SAVE;
  assert_int_equal(run("touch 'a minute later'; kill -USR1 $PPID;"
                       "until grep -q 'there is no file in' stderr; do sleep 0.02; done"),
                   0);
  assert_true(told(dir));
  assert_true(told("nothing to save: there was no file in /"));
}

static void watch_ends_on_a_signal_without_a_child(void **state) {
  kind = SESSION_WATCH;
  o.command = NULL;
  pid_t pid = start("");
  while (!path_exists(tmpdir_path(dir, "sock"))) usleep(1000);
  usleep(50000);
  kill(pid, SIGTERM);
  assert_int_equal(end_of(pid), 0);
  assert_int_equal(fake->preempts, 1);
  assert_int_equal(fake->exits, 0);
  assert_true(exit_json_has("\"verb\":\"watch\""));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(the_childs_code_is_ours),
      TEST(a_clean_end_waits_until_all_is_durable),
      TEST(what_the_store_said_decides_when_the_child_ended_well),
      TEST(the_deadline_names_what_is_not_durable),
      TEST(the_scheduler_says_how_long_the_grace_is_unless_the_user_did),
      TEST(what_the_scheduler_said_at_a_warning_is_no_grace_at_the_end),
      TEST(the_grace_is_no_longer_than_what_the_launcher_leaves),
      TEST(the_launcher_is_in_no_hurry_at_a_warning_nor_where_the_user_said_so),
      TEST(a_job_that_was_told_to_end_is_started_again_by_the_scheduler),
      TEST(a_signal_while_only_saves_are_left_begins_the_grace),
      TEST(who_does_not_end_is_killed_with_the_grace),
      TEST(signals_are_passed_on_once),
      TEST(a_second_int_kills),
      TEST(usr1_is_passed_on_by_flag_only_and_begins_no_grace),
      TEST(what_the_child_leaves_is_ended_before_the_end_is_told),
      TEST(what_had_to_be_killed_makes_the_end_unclean),
      TEST(a_fenced_run_stops_its_job),
      TEST(a_detached_run_goes_on),
      TEST(commands_that_cannot_run_have_the_codes_of_shells),
      TEST(retention_is_waited_for_within_the_grace_and_is_no_reason_to_fail),
      TEST(a_run_that_cannot_be_opened_starts_nothing),
      TEST(the_job_is_told_where_to_resume),
      TEST(a_trainer_of_an_earlier_run_is_ended_first),
      TEST(we_never_end_what_we_come_from),
      TEST(exit_json_of_an_earlier_run_is_removed_at_the_start),
      TEST(results_reach_the_engine),
      TEST(nothing_wakes_an_idle_loop),
      TEST(an_engine_that_fails_is_asked_again_with_pauses),
      TEST(files_of_no_unit_are_named_at_the_end),
      TEST(a_directory_in_which_no_file_is_seen_is_named_within_a_minute),
      TEST(watch_ends_on_a_signal_without_a_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
