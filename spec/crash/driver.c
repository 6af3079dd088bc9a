/* Plays one scenario through ckpt.h, to be killed at any of its system calls:
 *
 *   driver save DIR STORE [FROM...]  watches DIR, renames each FROM into it, ends when all is saved
 *   driver take DIR STORE [FROM...]  the same, and takes over from a writer that may be alive
 *   driver resume DIR STORE          makes DIR ready for a trainer; the newest commit must be there
 *   driver fetch DIR STORE           restores the newest commit into DIR
 *   driver remove DIR STORE          stops keeping checkpoint-1, deletes it, and collects
 *   driver collect DIR STORE         removes what nobody needs any more
 *
 * DRIVER_POLICY: the path of a policy for the runs. DRIVER_LIBEXEC: where the helper programs are.
 * stdout: "committed UNIT" as soon as the engine says so, "ready PATH", "removed UNIT", "left KEY"
 * of what a collection names. Exit status: 0; 1 with the reason on stderr; 77 if strace cannot
 * attach.
 *
 * With one worker the engine has two threads, and each makes the same calls in each run.
 * DRIVER_STRACE (words for a strace command) is attached to the one that DRIVER_THREAD names,
 * "owner" or "worker": strace counts the calls of each thread by themselves, so that with both in
 * one strace the second thread to reach a count could never be hit. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "ckpt.h"

enum { WORDS = 32, PATIENCE_MS = 30000, TURN_MS = 20, IDLE_TURNS = 5, NO_STRACE = 77 };

static ckpt *engine;

static void die(const char *what, const char *why) {
  fprintf(stderr, "driver: %s: %s\n", what, why);
  exit(1);
}

static void check(const char *what, int rc) {
  if (rc < 0) die(what, ckpt_error(engine));
}

/* One write: a reader sees the whole line or nothing of it. */
static void say(const char *what, const char *name) {
  char line[5000];
  int n = snprintf(line, sizeof line, "%s %s\n", what, name);
  if (n < 0 || n >= (int)sizeof line || write(STDOUT_FILENO, line, (size_t)n) != n)
    die("stdout", "cannot be written");
}

static void say_log(void *ctx, int level, const char *text) {
  (void)ctx, (void)level;
  fprintf(stderr, "log: %s\n", text);
}

/* ---- strace ---- */

static pid_t worker(void) {
  pid_t found = 0;
  DIR *d = opendir("/proc/self/task");
  for (struct dirent *e; d && (e = readdir(d));) {
    pid_t tid = (pid_t)atoi(e->d_name);
    if (tid <= 0 || tid == getpid()) continue;
    if (found) die("/proc/self/task", "more threads than an owner and a worker");
    found = tid;
  }
  if (d) closedir(d);
  if (!found) die("/proc/self/task", "there is no worker");
  return found;
}

static void exec_strace(pid_t tid, int messages) {
  char words[4096], number[32], *argv[WORDS] = {"strace", "-p", number};
  int n = 3;
  snprintf(number, sizeof number, "%d", (int)tid);
  snprintf(words, sizeof words, "%s", getenv("DRIVER_STRACE"));
  for (char *w = strtok(words, " "); w && n < WORDS - 1; w = strtok(NULL, " ")) argv[n++] = w;
  dup2(messages, STDERR_FILENO);
  execvp("strace", argv);
  _exit(127);
}

/* Called at the point where the thread `name` is to be traced from. */
static void trace_from_here(const char *name) {
  const char *wanted = getenv("DRIVER_THREAD");
  if (!wanted || strcmp(wanted, name) != 0) return;
  pid_t tid = strcmp(name, "worker") == 0 ? worker() : getpid();
  int ends[2];
  if (pipe(ends) != 0) die("pipe", "failed");
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* Yama lets no child trace its parent */
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    exec_strace(tid, ends[1]);
  }
  close(ends[1]);
  /* strace says "Process N attached". Only then does the scenario go on. */
  char text[1024];
  ssize_t n = pid > 0 ? read(ends[0], text, sizeof text - 1) : 0;
  text[n > 0 ? n : 0] = 0;
  if (strstr(text, " attached")) return; /* the pipe stays: strace must not die of SIGPIPE */
  fprintf(stderr, "driver: strace: %s\n", text);
  exit(NO_STRACE);
}

/* ---- scenarios ---- */

static ckpt_run *open_run(const char *dir, const char *store, uint32_t flags) {
  static const char *const markers[] = {"DONE", NULL};
  const char *const policies[] = {getenv("DRIVER_POLICY"), NULL};
  ckpt_run *run = NULL;
  ckpt_run_options o = {.size = sizeof o,
                        .dir = dir,
                        .to = store,
                        .run_id = "kill",
                        .flags = flags,
                        .markers = markers,
                        .policies = policies[0] ? policies : NULL,
                        .quiet_s = 0.05};
  check("open the run", ckpt_run_open(engine, &run, &o));
  trace_from_here("worker");
  return run;
}

static void prepare(ckpt_run *run, uint32_t how, ckpt_prepared *out) {
  ckpt_prepare_options o = {.size = sizeof o, .restore = how};
  *out = (ckpt_prepared){.size = sizeof *out};
  check("prepare", ckpt_run_prepare(run, &o, out));
}

static void notify(ckpt_run *run, uint32_t kind) {
  ckpt_event event = {.size = sizeof event, .kind = kind, .pid = getpid(), .clean = 1};
  check("notify", ckpt_notify(run, &event, NULL));
}

static uint32_t take_completions(void) {
  ckpt_completion c = {.size = sizeof c};
  uint32_t commits = 0;
  while (ckpt_next(engine, &c) > 0) {
    if (c.kind == CKPT_COMMITTED) {
      say("committed", c.unit);
      commits++;
    } else if (c.kind == CKPT_FAILED || c.kind == CKPT_FENCED || c.kind == CKPT_UNPROVEN) {
      die(c.unit ? c.unit : "run", c.reason ? c.reason : "not saved");
    }
  }
  return commits;
}

/* Until everything that was renamed in is committed, or, after a kill, until nothing is left. */
static void save_all(ckpt_run *run, uint32_t wanted) {
  uint32_t commits = 0;
  for (int turn = 0, idle = 0; turn < PATIENCE_MS / TURN_MS; turn++) {
    check("dispatch", ckpt_dispatch(engine, TURN_MS));
    commits += take_completions();
    ckpt_run_status s = {.size = sizeof s};
    check("status", ckpt_run_get_status(run, &s));
    idle = s.pending == 0 && s.settling == 0 ? idle + 1 : 0;
    if ((idle && wanted && commits >= wanted) || idle >= IDLE_TURNS) {
      if (s.newest_status != CKPT_OK) die("the newest", ckpt_status_name(s.newest_status));
      return;
    }
  }
  die("save", "still not done");
}

/* Returns how many of them were still to be moved: a run that was killed has moved some. */
static uint32_t move_in(const char *dir, char **from, int count) {
  uint32_t moved = 0;
  for (int i = 0; i < count; i++) {
    const char *slash = strrchr(from[i], '/');
    char to[4096];
    snprintf(to, sizeof to, "%s/%s", dir, slash ? slash + 1 : from[i]);
    if (access(from[i], F_OK) != 0) continue;
    if (rename(from[i], to) != 0) die(from[i], "cannot be renamed");
    moved++;
  }
  return moved;
}

static void save(const char *dir, const char *store, uint32_t flags, char **from, int count) {
  /* A trainer goes on when we are killed: what it writes behind its checkpoint is there by now. */
  if (count > 0 && access(from[0], F_OK) != 0) move_in(dir, from, count);
  ckpt_run *run = open_run(dir, store, flags);
  ckpt_prepared ready;
  prepare(run, CKPT_RESTORE_AUTO, &ready);
  check("start", ckpt_run_start(run));
  notify(run, CKPT_EVENT_CHILD);
  uint32_t moved = move_in(dir, from, count);
  notify(run, CKPT_EVENT_LIST);
  notify(run, CKPT_EVENT_EXIT);
  save_all(run, moved);
  ckpt_run_close(run);
}

static void resume(const char *dir, const char *store) {
  ckpt_run *run = open_run(dir, store, 0);
  ckpt_prepared ready;
  prepare(run, CKPT_RESTORE_REQUIRED, &ready);
  if (!ready.resume) die("prepare", "nothing to resume from");
  say("ready", ready.resume);
  ckpt_run_close(run);
}

static int say_item(void *ctx, const ckpt_item *item) {
  (void)ctx;
  say("ready", item->name);
  return 0;
}

static void fetch(const char *dir, const char *store) {
  ckpt_restore_options o = {.size = sizeof o, .uri = store, .dir = dir};
  check("restore", ckpt_restore(engine, &o, say_item, NULL));
}

static int say_collected(void *ctx, const ckpt_collected *c) {
  (void)ctx;
  if (c->status != CKPT_OK) die(c->name, c->reason);
  if (strcmp(c->what, "left") == 0) say("left", c->name);
  return 0;
}

static void collect(const char *store) {
  ckpt_collect_options o = {.size = sizeof o, .uri = store, .grace_delete_s = -1};
  check("collect", ckpt_collect(engine, &o, say_collected, NULL));
}

/* A run that was killed may have removed it. */
static void remove_first(const char *store) {
  ckpt_remove_options o = {
      .size = sizeof o, .uri = store, .name = "checkpoint-1", .grace_delete_s = -1};
  int rc = ckpt_remove(engine, &o, NULL, NULL);
  if (rc != CKPT_ENOENT) check("remove", rc);
  collect(store);
  say("removed", "checkpoint-1");
}

static void play(const char *verb, const char *dir, const char *store, char **from, int count) {
  if (strcmp(verb, "save") == 0)
    save(dir, store, 0, from, count);
  else if (strcmp(verb, "take") == 0)
    save(dir, store, CKPT_TAKE_OVER, from, count);
  else if (strcmp(verb, "resume") == 0)
    resume(dir, store);
  else if (strcmp(verb, "fetch") == 0)
    fetch(dir, store);
  else if (strcmp(verb, "remove") == 0)
    remove_first(store);
  else if (strcmp(verb, "collect") == 0)
    collect(store);
  else
    die(verb, "no such scenario");
}

int main(int argc, char **argv) {
  if (argc < 4) die("usage", "driver VERB DIR STORE [FROM...]");
  ckpt_options o = {.size = sizeof o,
                    .workers = 1,
                    .log_level = CKPT_LOG_WARN,
                    .log = say_log,
                    .libexec = getenv("DRIVER_LIBEXEC")};
  trace_from_here("owner");
  check("open", ckpt_open(&engine, &o));
  play(argv[1], argv[2], argv[3], argv + 4, argc - 4);
  ckpt_close(engine);
  return 0;
}
