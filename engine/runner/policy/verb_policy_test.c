/* `policy test`: the tests of policies, which are written in Lua for busted, in our program for scripts. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"

enum { PATH_ROOM = 4096, NO_PROGRAM = 127, CANNOT_START = 126 };

static const char script[] = "ckpt/testing/testing_run.lua";

/* Lua's files as the program for scripts finds them: where CKPT_LUADIR says, else seen from that program,
 * in the tree that it was built in, or installed. */
static bool find_script(const char *program, char *path) {
  static const char *const beside[] = {"../../lua", "../../share/lua/5.1"};
  const char *given = getenv("CKPT_LUADIR"), *slash = strrchr(program, '/');
  if (given && *given)
    return snprintf(path, PATH_ROOM, "%s/%s", given, script) < PATH_ROOM && access(path, R_OK) == 0;
  for (size_t i = 0; slash && i < sizeof beside / sizeof *beside; i++) {
    int len =
        snprintf(path, PATH_ROOM, "%.*s/%s/%s", (int)(slash - program), program, beside[i], script);
    if (len < PATH_ROOM && access(path, R_OK) == 0) return true;
  }
  return false;
}

/* The tests themselves ask this very program. */
static bool set_environment(const options *o) {
  char self[PATH_ROOM];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return false;
  self[n] = '\0';
  return setenv("CKPT_RUNNER", self, 1) == 0 &&
         (o->coverage ? setenv("CKPT_COVERAGE", "1", 1) : unsetenv("CKPT_COVERAGE")) == 0;
}

static int start(const char *program, const char *path, char *const *files, size_t count) {
  const char **args = calloc(count + 3, sizeof *args);
  if (!args) {
    report_error("out of memory");
    return EXIT_FAILED;
  }
  args[0] = program;
  args[1] = path;
  for (size_t i = 0; i < count; i++) args[2 + i] = files[i];
  execv(program, (char *const *)args);
  report_error("cannot start %s: %s", program, strerror(errno));
  free(args);
  return errno == ENOENT ? NO_PROGRAM : CANNOT_START;
}

static int run_tests(const options *o, const char *program, const char *path) {
  glob_t found = {0};
  size_t count = 0;
  while (o->command && o->command[count]) count++;
  if (count > 0) return start(program, path, o->command, count);
  glob("*_test.lua", 0, NULL, &found);
  glob("*_spec.lua", GLOB_APPEND, NULL, &found);
  int code = EXIT_NOTHING;
  if (found.gl_pathc > 0)
    code = start(program, path, found.gl_pathv, found.gl_pathc);
  else
    report_error(
        "policy test: no *_test.lua and no *_spec.lua is in this directory: name the FILE");
  globfree(&found);
  return code;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  char program[PATH_ROOM], path[PATH_ROOM];
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_helper(engine, "ckpt-script", program, sizeof program);
  int code = rc < 0 ? command_failed(engine, rc) : EXIT_DONE;
  ckpt_close(engine);
  if (rc < 0) return code;
  if (!find_script(program, path)) {
    report_error("there is no %s beside %s; CKPT_LUADIR names the directory that it is below",
                 script, program);
    return NO_PROGRAM;
  }
  if (set_environment(o)) return run_tests(o, program, path);
  report_error("out of memory");
  return EXIT_FAILED;
}

static const option_spec opt_coverage = {
    "coverage", NULL, "tell which lines and rules of the policies no test has reached", take_set,
    .at = OF(coverage)};

static const char help[] =
    "FILE is a file of tests for busted, which has to be installed; without one they are "
    "*_test.lua\n"
    "and *_spec.lua in this directory. ckpt.testing of `require \"ckpt\"` asks the policies.\n"
    "Exit code: 0 all tests passed, 4 there is no FILE, 127 busted is not there; else a test "
    "failed.\n";

const verb verb_policy_test = {
    .name = "policy test",
    .synopsis = "policy test [FILE...] [options]",
    .summary = "run tests of policies",
    .text = help,
    .options = (const option_spec *const[]){&opt_coverage, NULL},
    .words = {0, 4096, "FILE", {0}, OF(command), false},
    .run = run,
};
