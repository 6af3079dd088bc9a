/* `run`: runs a training command, saves its checkpoints, and tells it where to resume. */
#include "runner/cli/run_flags.h"
#include "runner/job/loop.h"
#include "verbs.h"

static int run(const options *o) {
  return loop_run(o, SESSION_RUN);
}

static const char help[] =
    "COMMAND gets in its environment\n"
    "  CKPT_DIR            DIR, absolute\n"
    "  CKPT_RESUME         the checkpoint to resume from; not set on a fresh start\n"
    "  CKPT_RESTORED_FROM  where that was restored from; not set if it was there\n"
    "  CKPT_SOCKET         a socket for results: JSON objects, one on each line\n"
    "  CKPT_STATE_ID       finds what a killed run left alive: leave it in the environment\n"
    "\n"
    "TERM, INT and HUP are passed on once. The job then has the grace to save and end; shortly\n"
    "before it is over the job is killed, and what is not durable is named. A second ^C kills\n"
    "the job at once. The state directory has exit.json afterwards.\n"
    "\n"
    "Exit code: that of COMMAND (128+n for signal n); if it is 0, the newest complete checkpoint\n"
    "is durable, or there is nothing to save, or the policy does not want it (the last line says\n"
    "which), else\n"
    "  3 nothing proves the newest one whole    4 nothing is committed (--require-commit)\n"
    "  6 the store failed, gave up              7 the store refuses (access, space)\n"
    " 13 the grace was over before all was durable\n"
    " 14 a newer run writes to this target    125 we could not start, 126 and 127 as in shells\n";

const verb verb_run = {
    .name = "run",
    .synopsis = "run --dir DIR --to URI [options] [--] COMMAND...",
    .summary = "run a training command, keep its checkpoints safe, and resume from them",
    .text = help,
    .flags = FLAGS_RUN,
    .words = {.command = true, .missing = "command? ckpt-lua run --dir DIR --to URI -- COMMAND..."},
    .run = run,
};
