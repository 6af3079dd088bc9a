/* `watch`: does as `run` beside a job that somebody else runs. */
#include "runner/cli/run_flags.h"
#include "runner/job/loop.h"
#include "verbs.h"

static int run(const options *o) {
  return loop_run(o, SESSION_WATCH);
}

static const char help[] =
    "Exit code: 0 the newest complete checkpoint is durable, there is nothing to save, or the\n"
    "policy does not want it: the last line says which; else as those of run.\n";

const verb verb_watch = {
    .name = "watch",
    .synopsis = "watch --dir DIR --to URI [options]",
    .summary = "the same beside a job that already runs; ends on TERM or INT",
    .text = help,
    .flags = FLAGS_WATCH,
    .run = run,
};
