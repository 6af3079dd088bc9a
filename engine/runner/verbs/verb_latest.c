/* `latest`: shows the newest checkpoint of a target. */
#include "runner/cli/command.h"
#include "runner/cli/text.h"
#include "verbs.h"

static void write_latest(FILE *f, const ckpt_item *item, void *ctx) {
  const options *o = ctx;
  if (o->json) {
    record r = record_begin(f);
    item_json(&r, item);
    record_end(&r);
  } else if (o->uri_only) {
    text_plain(f, item->uri ? item->uri : "");
  } else {
    item_name(f, item);
  }
  fputc('\n', f);
}

static int run(const options *o) {
  return command_newest(o, write_latest, (void *)o);
}

static const option_spec opt_uri = {"uri", NULL, "print where it is, for other tools", take_set,
                                    .at = OF(uri_only)};

static const char help[] =
    "--uri prints its address, for other tools. Exit code: 4 there is none.\n";

const verb verb_latest = {
    .name = "latest",
    .synopsis = "latest URI [options]",
    .summary = "print the name of the newest checkpoint",
    .text = help,
    .options = (const option_spec *const[]){&opt_uri, &option_json, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
