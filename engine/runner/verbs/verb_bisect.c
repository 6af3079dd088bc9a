/* `bisect`: finds the newest checkpoint that a command of the user's accepts. One candidate at a
 * time is restored into a directory of our own, and removed again. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "runner/cli/words.h"
#include "scratch.h"
#include "verbs.h"

extern char **environ;

typedef enum verdict { UNTRIED, GOOD, BAD, SKIPPED } verdict;
static const char *const verdicts[] = {"untried", "good", "bad", "skipped"};

typedef struct candidate {
  char *group, *name, *dir, *uri;
  uint64_t number;
  verdict verdict;
  char why[300];
} candidate;

typedef struct bisection {
  const options *o;
  ckpt *engine;
  candidate *all; /* in the order of the log: the newest is last */
  size_t count;
  char place[4096]; /* our directory */
  int failed;       /* the exit code of another failure; 0: none */
} bisection;

/* ---- the candidates ---- */

static int take_candidate(void *ctx, const ckpt_item *item) {
  bisection *b = ctx;
  if (item->bad) return 0;
  candidate *all = realloc(b->all, (b->count + 1) * sizeof *all);
  if (!all) return CKPT_ENOMEM;
  b->all = all;
  candidate *c = &b->all[b->count++];
  *c = (candidate){.group = strdup(item->group),
                   .name = strdup(item->name),
                   .dir = strdup(item->dir),
                   .uri = strdup(item->uri),
                   .number = item->number};
  return c->group && c->name && c->dir && c->uri ? 0 : CKPT_ENOMEM;
}

static void free_candidates(bisection *b) {
  for (size_t i = 0; i < b->count; i++) {
    free(b->all[i].group);
    free(b->all[i].name);
    free(b->all[i].dir);
    free(b->all[i].uri);
  }
  free(b->all);
}

static void write_name(FILE *f, const candidate *c) {
  if (*c->group) {
    text_plain(f, c->group);
    fputc('/', f);
  }
  text_plain(f, c->dir);
}

/* Checks that all candidates are of one log: those have an order; candidates of several have
 * none. */
static int check_candidates(const bisection *b) {
  for (size_t i = 1; i < b->count; i++)
    if (strcmp(b->all[i].group, b->all[0].group) != 0) {
      report_error(
          "bisect: %s holds several groups, \"%s\" and \"%s\" among them: name one of them "
          "behind the URI",
          b->o->uri, b->all[0].group, b->all[i].group);
      return EXIT_USAGE;
    }
  if (b->count > 0) return 0;
  report_error("%s has no checkpoint that is not marked bad", b->o->uri);
  return EXIT_NOTHING;
}

/* ---- the command ---- */

/* Replaces each {} in the word. */
static char *filled(const char *word, const char *path) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  for (const char *at; (at = strstr(word, "{}")); word = at + 2)
    fprintf(f, "%.*s%s", (int)(at - word), word, path);
  fputs(word, f);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

static bool make_words(const bisection *b, const char *path, word_list *args, word_list *env) {
  char *resume = NULL;
  bool whole = asprintf(&resume, "CKPT_RESUME=%s", path) > 0;
  for (char **word = b->o->command; whole && *word; word++) {
    char *text = filled(*word, path);
    whole = text && word_list_add(args, text);
    free(text);
  }
  for (char **e = environ; whole && *e; e++)
    if (strncmp(*e, "CKPT_RESUME=", 12) != 0) whole = word_list_add(env, *e);
  whole = whole && word_list_add(env, resume);
  free(resume);
  return whole;
}

/* Starts the command. Its output is for people, ours for scripts: it goes where messages go. ^C is
 * its own to answer, as in a shell. */
static int spawn(char *const *args, char *const *env, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGINT);
  sigaddset(&usual, SIGQUIT);
  int error = posix_spawn_file_actions_init(&files);
  if (error != 0) return error;
  error = posix_spawnattr_init(&attr);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attr, &usual);
    if (error == 0) error = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    if (error == 0) error = posix_spawnp(pid, args[0], &files, &attr, args, env);
    posix_spawnattr_destroy(&attr);
  }
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/* The first signal: we remove restored files before we end; at the second we end at once. */
static volatile sig_atomic_t told, child;

static void on_signal(int signo) {
  int before = errno;
  told = signo;
  if (child > 0 && signo != SIGINT) kill((pid_t)child, signo);
  errno = before;
}

static void take_signals(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction once = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  struct sigaction is;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (sigaction(signals[i], NULL, &is) == 0 && is.sa_handler != SIG_IGN) /* nohup */
      sigaction(signals[i], &once, NULL);
}

/* Returns its wait status, or -1: it could not be run, which has been said. */
static int run_command(const bisection *b, const char *path) {
  word_list args = {0}, env = {0};
  struct sigaction ignore = {.sa_handler = SIG_IGN}, was_int, was_quit;
  pid_t pid = 0;
  int status = -1;
  int error = make_words(b, path, &args, &env) ? 0 : ENOMEM;
  sigaction(SIGINT, &ignore, &was_int);
  sigaction(SIGQUIT, &ignore, &was_quit);
  if (error == 0) error = spawn(args.items, env.items, &pid);
  child = error == 0 ? pid : 0;
  if (child && told) kill(pid, told); /* it came before there was a child to tell */
  if (error != 0)
    report_error("cannot run '%s': %s", b->o->command[0], strerror(error));
  else
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  child = 0;
  sigaction(SIGINT, &was_int, NULL);
  sigaction(SIGQUIT, &was_quit, NULL);
  word_list_free(&args);
  word_list_free(&env);
  return status;
}

/* ---- one try ---- */

static void judge(bisection *b, candidate *c, int status) {
  enum { CANNOT_TELL = 125, NOT_RUN = 126, NOT_FOUND = 127 };
  if (status == -1) {
    b->failed = EXIT_FAILED;
  } else if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM)) {
    b->failed = 128 + WTERMSIG(status); /* somebody wants an end of it */
  } else if (WIFSIGNALED(status)) {
    c->verdict = BAD;
    snprintf(c->why, sizeof c->why, "the command was ended by signal %d", WTERMSIG(status));
  } else if (WEXITSTATUS(status) == NOT_RUN || WEXITSTATUS(status) == NOT_FOUND) {
    report_error("the command ended with code %d: it could not do its work", WEXITSTATUS(status));
    b->failed = EXIT_FAILED;
  } else {
    int code = WEXITSTATUS(status);
    c->verdict = code == 0 ? GOOD : code == CANNOT_TELL ? SKIPPED : BAD;
    snprintf(c->why, sizeof c->why, "the command ended with code %d", code);
  }
}

static void tell(const bisection *b, const candidate *c) {
  char *name = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&name, &size);
  if (!f) return;
  write_name(f, c);
  if (fclose(f) == 0) report_info("%s: %s (%s)", name, verdicts[c->verdict], c->why);
  free(name);
  if (!b->o->json) return;
  record r = record_begin(stdout);
  record_name(&r, "name", c->dir);
  record_count(&r, "number", c->number);
  record_text(&r, "verdict", verdicts[c->verdict]);
  record_text(&r, "why", c->why);
  record_end_line(&r);
}

static verdict try_one(bisection *b, candidate *c) {
  char into[sizeof b->place + 32], path[sizeof into + 4096];
  snprintf(into, sizeof into, "%s/%llu", b->place, (unsigned long long)c->number);
  snprintf(path, sizeof path, "%s/%s", into, c->name);
  ckpt_restore_options restore = {.size = sizeof restore, .uri = c->uri, .dir = into};
  int rc = ckpt_restore(b->engine, &restore, NULL, NULL);
  if (rc == CKPT_ECORRUPT || rc == CKPT_EFORMAT) {
    c->verdict = BAD;
    snprintf(c->why, sizeof c->why, "%.290s", ckpt_error(b->engine));
  } else if (rc < 0) {
    b->failed = command_failed(b->engine, rc);
  } else if (!told && !b->o->command) {
    c->verdict = GOOD;
    snprintf(c->why, sizeof c->why, "its data is what was saved");
  } else if (!told) {
    judge(b, c, run_command(b, path));
  }
  scratch_clear(into);
  if (told) b->failed = 128 + told; /* its verdict counts no more */
  if (!b->failed) tell(b, c);
  return c->verdict;
}

/* ---- the search ---- */

/* Finds the untried candidate between the two that is nearest to their middle. */
static candidate *middle(const bisection *b, size_t low, size_t high) {
  candidate *best = NULL;
  size_t mid = low + (high - low) / 2, least = SIZE_MAX;
  for (size_t i = low; i < high; i++) {
    size_t away = i > mid ? i - mid : mid - i;
    if (b->all[i].verdict != UNTRIED || away >= least) continue;
    best = &b->all[i];
    least = away;
  }
  return best;
}

static void halve(bisection *b) {
  size_t low = 0, high = b->count; /* what is in question; below is good, from high on bad */
  candidate *c = &b->all[b->count - 1];
  for (; c && !b->failed; c = middle(b, low, high)) {
    verdict v = try_one(b, c);
    size_t at = (size_t)(c - b->all);
    if (v == GOOD) low = at + 1;
    if (v == BAD) high = at;
  }
}

static void go_back(bisection *b) {
  for (size_t i = b->count; i-- > 0 && !b->failed;)
    if (try_one(b, &b->all[i]) == GOOD) return;
}

static const candidate *newest_good(const bisection *b) {
  for (size_t i = b->count; i-- > 0;)
    if (b->all[i].verdict == GOOD) return &b->all[i];
  return NULL;
}

/* ---- the end ---- */

/* Marks candidates that are newer than the good one, tried or not: a restore would choose them
 * before it. */
static void mark_newer(bisection *b, const candidate *good) {
  for (candidate *c = b->all; !b->failed && c < b->all + b->count; c++) {
    if (c->verdict != BAD && !(good && c > good && c->verdict == UNTRIED)) continue;
    ckpt_mark_options mark = {.size = sizeof mark,
                              .uri = b->o->uri,
                              .number = c->number,
                              .reason = c->verdict == BAD ? c->why : "newer than one that is bad"};
    char reason[250];
    snprintf(reason, sizeof reason, "bisect: %.240s", mark.reason);
    mark.reason = reason;
    int rc = ckpt_mark(b->engine, &mark, NULL, NULL);
    if (rc < 0) b->failed = command_failed(b->engine, rc);
  }
}

/* True if no candidate was left open that may be good, too. With halving, those are before the next
 * bad one. */
static bool is_sure(const bisection *b, const candidate *good) {
  for (const candidate *c = good + 1; c < b->all + b->count; c++) {
    if (c->verdict == SKIPPED) return false;
    if (c->verdict == BAD && !b->o->linear) return true;
  }
  return true;
}

static int print_result(const bisection *b, const candidate *good) {
  if (b->o->json) {
    record r = record_begin(stdout);
    if (good)
      record_name(&r, "newest_good", good->dir);
    else
      record_text(&r, "newest_good", NULL);
    record_end_line(&r);
  } else if (good) {
    write_name(stdout, good);
    putchar('\n');
  }
  if (!good) report_error("none of %zu checkpoints is good", b->count);
  if (good && !is_sure(b, good))
    report_warning("a newer one could not be told, and may be good, too");
  return !good ? EXIT_NOTHING : is_sure(b, good) ? EXIT_DONE : EXIT_PARTIAL;
}

static int search(bisection *b) {
  if (b->o->linear)
    go_back(b);
  else
    halve(b);
  const candidate *good = newest_good(b);
  if (!b->failed && b->o->mark) mark_newer(b, good);
  return b->failed ? b->failed : print_result(b, good);
}

static int run(const options *o) {
  bisection b = {.o = o};
  int code = EXIT_DONE;
  int rc = command_open(&b.engine, o);
  if (rc == 0) rc = ckpt_list(b.engine, o->uri, take_candidate, &b);
  if (rc < 0) {
    code = rc == CKPT_ENOMEM ? EXIT_FAILED : command_failed(b.engine, rc);
  } else {
    code = check_candidates(&b);
    if (code == 0 && (code = scratch_make("bisect", b.o->dir, b.place, sizeof b.place)) == 0) {
      take_signals();
      code = search(&b);
      scratch_remove(b.place);
    }
  }
  free_candidates(&b);
  ckpt_close(b.engine);
  return command_end(code);
}

static const option_spec opt_dir = {"dir", "DIR", "where candidates are restored, one at a time",
                                    take_text, .at = OF(dir)};
static const option_spec opt_linear = {
    "linear", NULL, "try the newest first, then the one before it", take_set, .at = OF(linear)};
static const option_spec opt_mark = {
    "mark", NULL, "mark those bad that are newer than the one found", take_set, .at = OF(mark)};

static const char help[] =
    "Each candidate is restored into a temporary directory, one at a time, and COMMAND is run "
    "with\n"
    "its path in place of {} and in CKPT_RESUME. It ends with 0 if the checkpoint is good, with "
    "125\n"
    "if it cannot tell, else it is bad. Without COMMAND one is good whose data is what was saved.\n"
    "Halves what is left each time, as if all from some point on were bad; --linear does not.\n"
    "Prints the name. Exit code: 4 none is good, 3 some could not be told.\n";

const verb verb_bisect = {
    .name = "bisect",
    .synopsis = "bisect URI [--linear] [--mark] [options] [-- COMMAND...]",
    .summary = "find the newest checkpoint that a command of yours accepts",
    .text = help,
    .options = (const option_spec *const[]){&opt_dir, &opt_linear, &opt_mark, &option_json, NULL},
    .words = {1, INT_MAX, "URI", {OF(uri)}, OF(command), false},
    .run = run,
};
