/* `policy reload`: has a live run take other policies, or its own files again. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy_verbs.h"
#include "runner/cli/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/record.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "runner/job/ask.h"

static bool is_relative(const char *name) {
  size_t len = strlen(name);
  if (*name == '/') return false;
  return strchr(name, '/') || (len > 4 && strcmp(name + len - 4, ".lua") == 0);
}

/* The run has another working directory. That there is one, check() has seen. */
static void write_policy(FILE *f, const char *name) {
  char here[PATH_MAX] = "", path[2 * PATH_MAX];
  const bool relative = is_relative(name) && getcwd(here, sizeof here);
  while (relative && strncmp(name, "./", 2) == 0) name += 2;
  snprintf(path, sizeof path, "%s%s%s", here, relative ? "/" : "", name);
  text_json_name(f, path);
}

static void write_list(record *r, const char *key, const char *const *list,
                       void (*write)(FILE *f, const char *name)) {
  if (!list) return;
  FILE *f = record_key(r, key);
  fputc('[', f);
  for (size_t i = 0; list[i]; i++) {
    if (i > 0) fputc(',', f);
    write(f, list[i]);
  }
  fputc(']', f);
}

static void write_request(FILE *f, const options *o) {
  record r = record_begin(f);
  record_text(&r, "$ckpt", "reload");
  write_list(&r, "policies", o->run.policies, write_policy);
  write_list(&r, "options", o->run.settings, text_json_name);
  record_bool(&r, "dry_run", o->dry_run);
  record_end(&r);
}

static void write_question(FILE *f, unsigned long long job, bool json) {
  record r = record_begin(f);
  record_text(&r, "$ckpt", "reloaded");
  record_count(&r, "job", job);
  record_bool(&r, "json", json);
  record_end(&r);
}

/* Asks, and gives the answer, which is the caller's to free; NULL: there is none, and `result` says why. */
static char *ask_line(const ckpt_place *place, const options *o, unsigned long long job,
                      ask_result *result, char error[ASK_ERROR_MAX]) {
  char *line = NULL, *answer = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&line, &size);
  *result = ASK_FAILED;
  snprintf(error, ASK_ERROR_MAX, "out of memory");
  if (!f) return NULL;
  if (job)
    write_question(f, job, o->json);
  else
    write_request(f, o);
  FILE *out = fclose(f) == 0 ? open_memstream(&answer, &size) : NULL;
  if (out) *result = ask(place->socket, line, out, error);
  if (out && fclose(out) != 0) *result = ASK_FAILED;
  free(line);
  if (*result == ASK_DONE) return answer;
  free(answer);
  return NULL;
}

static int end(const char *answer) {
  const int status = (int)strtol(answer + strlen("over "), NULL, 10);
  const char *text = strchr(answer, '\n');
  text = text ? text + 1 : "";
  if (status == CKPT_OK)
    fputs(text, stdout);
  else
    report_error("%.*s", (int)strcspn(text, "\n"), text);
  return exit_code_of(status);
}

static bool begins(const char *text, const char *word) {
  return strncmp(text, word, strlen(word)) == 0;
}

/* The run gives the files up after 10 s, and a check may take some more. */
static int await(const options *o, const ckpt_place *place) {
  enum { PAUSE_MS = 50 };
  const double most_s = 40;
  const double until = clock_s() + most_s;
  unsigned long long job = 0;
  char error[ASK_ERROR_MAX];
  for (;;) {
    ask_result result;
    char *answer = ask_line(place, o, job, &result, error);
    /* One that is busy for long may answer the next time. */
    const bool silent = result == ASK_FAILED || result == ASK_HUNG_UP;
    if (!answer && job > 0 && silent && clock_s() < until) {
      poll(NULL, 0, PAUSE_MS);
      continue;
    }
    if (!answer) {
      report_error("%s", error);
      return ask_exit_code(result);
    }
    const bool over = begins(answer, "over ");
    const int code = over ? end(answer) : 0;
    if (begins(answer, "job ")) job = strtoull(answer + strlen("job "), NULL, 10);
    free(answer);
    if (over) return code;
    if (job == 0 || clock_s() >= until) break;
    poll(NULL, 0, PAUSE_MS);
  }
  report_error(
      "the run has not said within %.0f s what came of it: `ckpt-lua status` tells which policies "
      "it has",
      most_s);
  return EXIT_FAILED;
}

static int run(const options *o) {
  ckpt_place place;
  char error[ASK_ERROR_MAX];
  const ask_result result = ask_find(o, &place, error);
  if (result != ASK_DONE) {
    report_error("%s", error);
    return command_end(ask_exit_code(result));
  }
  return command_end(await(o, &place));
}

static int check(const options *o, char *error) {
  char here[PATH_MAX];
  for (size_t i = 0; o->run.policies && o->run.policies[i]; i++) {
    const char *name = o->run.policies[i];
    if (strcmp(name, "builtin") == 0)
      return OPTIONS_FAIL(error,
                          "-p builtin: a run is started without policies, and takes none away");
    if (is_relative(name) && (strlen(name) >= PATH_MAX || !getcwd(here, sizeof here)))
      return OPTIONS_FAIL(error, "-p %.200s: where that is, is not known; give an absolute path",
                          name);
  }
  return 0;
}

static const option_spec opt_policy = {"policy",
                                       "NAME|PATH",
                                       "these, in place of the files that the run has; repeatable",
                                       take_list,
                                       .at = OF(run.policies),
                                       .letter = 'p'};
static const option_spec opt_option = {
    "option",
    "NAME=VALUE",
    "an option of the policies, in place of the run's; repeatable",
    take_list,
    .at = OF(run.settings),
    .letter = 'o'};

static const char help[] =
    "The run that watches DIR; inside of a job its own. What the policies before keep stays as "
    "long as\n"
    "--grace-delete of the run is. Exit code: 2 the new ones are broken, and those before go on;\n"
    "4 no run is alive; 6, 11 not now.\n";

const verb verb_policy_reload = {
    .name = "policy reload",
    .synopsis = "policy reload [DIR] [-p NAME|PATH ...] [options]",
    .summary = "have a live run take other policies, or its own files again",
    .text = help,
    .options = (const option_spec *const[]){&ask_dir, &ask_state, &opt_policy, &opt_option,
                                            &option_dry_run, &option_json, NULL},
    .words = {0, 1, NULL, {OF(dir)}, 0, false},
    .run = run,
    .check = check,
};
