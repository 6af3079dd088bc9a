/* `exec`: a Lua script with `require "ckpt"`, in a program of its own: this one has no Lua in it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "verbs.h"

static int run(const options *o) {
  enum { PATH_ROOM = 4096, ARGS = 4096 };
  ckpt *engine = NULL;
  char path[PATH_ROOM], *args[ARGS];
  size_t count = 1;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_helper(engine, "ckpt-script", path, sizeof path);
  int code = rc < 0 ? command_failed(engine, rc) : EXIT_DONE;
  ckpt_close(engine);
  if (rc < 0) return code;
  if (access(o->command[0], F_OK) != 0 && errno == ENOENT) { /* as shells have it */
    report_error("there is no script %s", o->command[0]);
    return 127;
  }
  args[0] = path;
  for (char **word = o->command; *word; word++) {
    if (count + 1 == ARGS) {
      report_error("exec: more than %d arguments", ARGS - 2);
      return EXIT_USAGE;
    }
    args[count++] = *word;
  }
  args[count] = NULL;
  execv(path, args);
  report_error(
      "cannot start %s, which runs scripts: %s; CKPT_LIBEXEC names the directory where it is", path,
      strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

static const char help[] =
    "Exit code: that of the script; 127 if our program for scripts is not there.\n";

const verb verb_exec = {
    .name = "exec",
    .synopsis = "exec FILE [ARGS...]",
    .summary = "run a Lua script with require \"ckpt\"",
    .text = help,
    .words = {.command = true, .missing = "FILE? ckpt-lua exec FILE [ARGS...]"},
    .run = run,
};
