/* `policy copy`: a shipped policy as a file of one's own, to be changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "shipped.h"

enum { PATH_ROOM = 4096 };

/* Writes the whole text into a file that is new; what cannot be written whole does not stay. */
static int write_new(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    const char *next = errno == EEXIST ? "; take another name: it is not replaced" : "";
    report_error("cannot write %s: %s%s", path, strerror(errno), next);
    return EXIT_FAILED;
  }
  size_t len = strlen(text), done = 0;
  ssize_t n = 0;
  while (done < len && (n = write(fd, text + done, len - done)) >= 0) done += (size_t)n;
  int fault = n < 0 ? errno : 0;
  if (close(fd) < 0 && fault == 0) fault = errno;
  if (fault == 0) return EXIT_DONE;
  report_error("cannot write %s: %s", path, strerror(fault));
  unlink(path);
  return EXIT_FAILED;
}

static int copy(void *ctx, const ckpt_policy *policy) {
  const options *o = ctx;
  char path[PATH_ROOM];
  if (o->file)
    snprintf(path, sizeof path, "%s", o->file);
  else
    snprintf(path, sizeof path, "%s.lua", policy->name);
  int code = write_new(path, policy->text);
  if (code == EXIT_DONE)
    report_info("wrote %s; name it with -p %s%s", path, strchr(path, '/') ? "" : "./", path);
  return code;
}

static int check(const options *o, char *error) {
  if (o->file && strlen(o->file) >= PATH_ROOM)
    return OPTIONS_FAIL(error, "policy copy: the name of the file is too long");
  return 0;
}

static int run(const options *o) {
  return command_end(shipped_with(o, copy, (void *)o));
}

const verb verb_policy_copy = {
    .name = "policy copy",
    .synopsis = "policy copy NAME [FILE] [options]",
    .summary = "copy a shipped policy to FILE (default: NAME.lua), to be changed there",
    .words = {1, 2, "NAME", {OF(name), OF(file)}, 0, false},
    .check = check,
    .run = run,
};
