/* `unpin`: takes back one pin, or all of a checkpoint. */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "verbs.h"

static int run(const options *o) {
  ckpt *engine = NULL;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_unpin(engine, o->uri, o->name);
  if (rc >= 0 && o->json)
    printf("{\"removed\":%d}\n", rc);
  else if (rc >= 0)
    report_info("%d pin%s removed", rc, rc == 1 ? "" : "s");
  return command_close(engine, rc, EXIT_DONE);
}

static const char help[] = "Exit code: 4 there is none.\n";

const verb verb_unpin = {
    .name = "unpin",
    .synopsis = "unpin URI NAME|ID [options]",
    .summary = "take back one pin, or all of a checkpoint",
    .text = help,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {2, 2, "URI and NAME, or the pin's ID", {OF(uri), OF(name)}, 0, false},
    .run = run,
};
