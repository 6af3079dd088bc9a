/* `pin`: a checkpoint is not deleted until it is unpinned. */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "verbs.h"

/* Writes what it would pin: it only looks whether there is such a checkpoint. */
static void write_would_pin(FILE *f, const ckpt_item *item, void *ctx) {
  const options *o = ctx;
  if (o->json) {
    record r = record_begin(f);
    record_bool(&r, "dry_run", true);
    item_json_line(&r, item);
  } else {
    fputs("would pin ", f);
    item_name(f, item);
    fputc('\n', f);
  }
}

static void print_pin(const options *o, const char *id) {
  if (!o->json) {
    puts(id); /* for: ckpt-lua unpin URI ID */
    return;
  }
  record r = record_begin(stdout);
  record_name(&r, "name", o->name);
  record_text(&r, "id", id);
  record_seconds(&r, "seconds", o->pin_s > 0 ? o->pin_s : -1);
  record_end_line(&r);
}

static int run(const options *o) {
  ckpt *engine = NULL;
  char id[33];
  if (o->dry_run) return command_newest(o, write_would_pin, (void *)o);
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_pin(engine, o->uri, o->name, o->pin_s, id);
  if (rc >= 0) print_pin(o, id);
  return command_close(engine, rc, EXIT_DONE);
}

static const option_spec opt_life = {
    "for",     "TIME",          "how long, e.g. 7d (default: until it is unpinned)",
    take_time, .at = OF(pin_s), .says = "a pin for no time at all keeps nothing"};

static const char help[] =
    "Prints the pin's id, for unpin. Exit code: 4 there is no such checkpoint.\n";

const verb verb_pin = {
    .name = "pin",
    .synopsis = "pin URI NAME [--for TIME] [options]",
    .summary = "keep a checkpoint from being deleted",
    .text = help,
    .options = (const option_spec *const[]){&opt_life, &option_json, &option_dry_run, NULL},
    .words = {2, 2, "URI and NAME", {OF(uri), OF(name)}, 0, false},
    .run = run,
};
