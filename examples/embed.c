/* Watches a directory and commits what becomes complete in it, from a host's own loop:
 *
 *   embed DIR TARGET
 *
 * It ends when nothing is left to save. A scheduler would put ckpt_fd() into its own poll set instead
 * of waiting in ckpt_dispatch(). */
#include "ckpt.h"

#include <stdio.h>

static int fail(const char *what, const ckpt *engine) {
  fprintf(stderr, "embed: %s: %s\n", what, ckpt_error(engine));
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: embed DIR TARGET\n"), 2;
  ckpt *engine;
  ckpt_run *run;
  ckpt_run_options options = {.size = sizeof options, .dir = argv[1], .to = argv[2]};
  ckpt_completion done = {.size = sizeof done};
  ckpt_run_status status = {.size = sizeof status};
  int result = 0;

  if (ckpt_open(&engine, NULL) < 0) return fail("open", engine);
  if (ckpt_run_open(engine, &run, &options) < 0 || ckpt_run_start(run) < 0) {
    result = fail("run", engine);
  } else {
    /* The writer of what is there has ended well: nothing has to be waited for. */
    ckpt_event ended = {.size = sizeof ended, .kind = CKPT_EVENT_EXIT, .clean = 1};
    ckpt_notify(run, &ended, NULL);
    do {
      if (ckpt_dispatch(engine, 1000) < 0) result = fail("dispatch", engine);
      while (ckpt_next(engine, &done))
        printf("%s: %s\n", done.unit, done.kind == CKPT_COMMITTED ? "committed" : done.reason);
      ckpt_run_get_status(run, &status);
    } while (result == 0 && status.pending);
    /* "durable", "nothing_to_save", "not_wanted"; from "not_proven" on something is missing. */
    printf("%s\n", ckpt_standing_name(status.standing));
    if (status.standing >= CKPT_NOT_PROVEN) result = 1;
  }
  ckpt_close(engine);
  return result;
}
