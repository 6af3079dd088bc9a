/* `version`: says which program this is. */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "verbs.h"

static int run(const options *o) {
  if (o->json) {
    record r = record_begin(stdout);
    record_text(&r, "name", "ckpt-lua");
    record_text(&r, "version", ckpt_version());
    record_end_line(&r);
  } else {
    printf("ckpt-lua %s\n", ckpt_version());
  }
  return command_end(EXIT_DONE);
}

const verb verb_version = {
    .name = "version",
    .synopsis = "version [--json]",
    .summary = "say which version this is",
    .options = (const option_spec *const[]){&option_json, NULL},
    .run = run,
};
