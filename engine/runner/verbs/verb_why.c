/* `why`: tells what became of a checkpoint or a file, and the one reason why it is not in the
 * store. It asks a run that is alive; otherwise its files, or the target. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/job/answer.h"
#include "runner/job/ask.h"
#include "past.h"
#include "runner/cli/run_flags.h"
#include "verbs.h"

static bool is_there(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

/* Resolves the path's directory, but not its last part: the question is about that. NULL: it is not
 * there. */
static char *resolved(const char *name) {
  const char *slash = strrchr(name, '/');
  char *parent = slash ? strndup(name, slash > name ? (size_t)(slash - name) : 1) : strdup(".");
  char *real = parent && is_there(name) ? realpath(parent, NULL) : NULL, *path = NULL;
  const char *base = slash ? slash + 1 : name;
  if (real && asprintf(&path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base) < 0) path = NULL;
  free(real);
  free(parent);
  return path;
}

/* Makes a path whole: the run has another working directory. A path is asked for as a whole if it
 * is there, and leads into the watched directory or is clearly none below it. NULL: the name is
 * asked for as it stands. */
static char *whole_path(const char *name, const char *dir) {
  char *real = dir ? realpath(dir, NULL) : NULL, *path = resolved(name), *below = NULL;
  size_t len = real ? strlen(real) : 0;
  bool inside = path && real && strncmp(path, real, len) == 0 && (path[len] == '/' || !path[len]);
  if (real && asprintf(&below, "%s/%s", real, name) < 0) below = NULL;
  bool outside = !inside && strchr(name, '/') && !(below && is_there(below));
  if (!inside && !outside) {
    free(path);
    path = NULL;
  }
  free(below);
  free(real);
  return path;
}

/* Finds the directory that is meant: that of --dir, else the one that the path is in. */
static const char *find_dir(const options *o, char *room, size_t size) {
  ckpt *engine = NULL;
  ckpt_options quiet = {.size = sizeof quiet};
  if (o->dir || o->state) return o->dir;
  bool found = ckpt_open(&engine, &quiet) == 0 && ckpt_find_dir(engine, o->name, room, size) == 0;
  ckpt_close(engine);
  return found ? room : NULL;
}

static ask_result ask_run(const options *o, const char *dir, FILE *out, char error[ASK_ERROR_MAX]) {
  ckpt_place place;
  options with_dir = *o;
  with_dir.dir = dir;
  ask_result result = ask_find(&with_dir, &place, error);
  if (result != ASK_DONE) return result;
  char *path = whole_path(o->name, dir);
  result = ask_question(place.socket, "why", path ? path : o->name, o->json, out, error);
  free(path);
  return result;
}

static int answer_to(const options *o, FILE *out) {
  char room[PATH_MAX], error[ASK_ERROR_MAX];
  const char *dir = find_dir(o, room, sizeof room);
  /* Without a directory it may be a name that only a target knows. */
  bool place = dir || o->state || (!o->to && getenv("CKPT_SOCKET"));
  ask_result result = place ? ask_run(o, dir, out, error) : ASK_NOBODY;
  if (result == ASK_DONE) return EXIT_DONE;
  if (result != ASK_NOBODY) {
    report_error("%s", error);
    return ask_exit_code(result);
  }
  ckpt *engine = NULL;
  ckpt_why_options options = {
      .size = sizeof options, .name = o->name, .dir = dir, .state = o->state, .to = o->to};
  int rc = command_open(&engine, o);
  if (rc == 0) rc = why_print(engine, NULL, &options, o->json, out);
  return command_close(engine, rc, EXIT_DONE);
}

/* True if the answer is that nothing of the name is known. It may come from a run that lives, as a
 * text. */
static bool is_unknown(const options *o, const char *answer) {
  static const char mark[] = ": not-seen";
  const char *end = strchr(answer, '\n');
  size_t len = end ? (size_t)(end - answer) : strlen(answer), n = sizeof mark - 1;
  if (o->json) return strstr(answer, "\"cause\":\"not-seen\"") != NULL;
  return len > n && memcmp(answer + len - n, mark, n) == 0;
}

/* Prints an answer that was kept; frees it. */
static int print_answer(const options *o, FILE *f, char **answer, int code) {
  bool whole = fclose(f) == 0;
  if (whole && code == EXIT_DONE && is_unknown(o, *answer)) code = EXIT_NOTHING;
  if (whole) fputs(*answer, stdout);
  free(*answer);
  return whole ? code : EXIT_FAILED;
}

static int run(const options *o) {
  if (o->past) return command_end(past_answer(o));
  char *answer = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&answer, &size);
  if (!f) return EXIT_FAILED;
  int code = answer_to(o, f);
  return command_end(print_answer(o, f, &answer, code));
}

static const option_spec opt_to = {"to", "URI", "the target, for what this machine does not know",
                                   take_text, .at = OF(to)};

static int take_at(options *o, const option_spec *spec, const char *value, char *error) {
  char *end;
  errno = 0;
  o->at = strtoull(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno)
    return OPTIONS_FAIL(error, "--%s: the number of an entry, as ls --json has it, not '%s'",
                        spec->name, value);
  o->past = true;
  return 0;
}

static const option_spec opt_at = {
    "at", "N", "ask again what stays, as it was behind entry N of the log at --to", take_at,
    .at = OF(at)};

static int check(const options *o, char *error) {
  const bool judges = o->run.policies || o->run.settings || o->run.max_delete != 0 ||
                      o->run.grace_delete_s != 0 || o->run.flags || o->policy_in_process;
  if (o->past && !o->to)
    return OPTIONS_FAIL(error, "--at asks the log of a target: name it with --to");
  if (o->past && (o->dir || o->state))
    return OPTIONS_FAIL(error,
                        "--at asks the log of a target alone: --dir and --state say nothing of it");
  if (!o->past && judges)
    return OPTIONS_FAIL(error, "a policy is asked with --at N only: else what was decided is told");
  return 0;
}

static const char help[] =
    "Asks the run while it is alive, else reads what it wrote down. With --at the policies of\n"
    "-p are asked again which of the checkpoints stay that stood behind that entry.\n"
    "What of that time no log tells is named in the answer. Exit code: 4 nothing of that name\n"
    "is known.\n";

const verb verb_why = {
    .name = "why",
    .synopsis = "why NAME|PATH [--dir DIR] [--to URI [--at N]] [options]",
    .summary = "say what became of a checkpoint or a file, and why it was not saved",
    .text = help,
    .flags = FLAGS_PLAN,
    .options =
        (const option_spec *const[]){&ask_dir, &opt_to, &opt_at, &ask_state, &option_json, NULL},
    .words = {1, 1, "NAME or PATH", {OF(name)}, 0, false},
    .check = check,
    .run = run,
};
