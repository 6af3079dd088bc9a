/* `mark`: says that a checkpoint does not load, or takes that back. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "verbs.h"

static int print_marked(void *ctx, const ckpt_item *item) {
  const options *o = ctx;
  if (o->json) {
    record r = record_begin(stdout);
    record_text(&r, "marked", o->word);
    record_bool(&r, "dry_run", o->dry_run);
    item_json_line(&r, item);
  } else {
    printf("%s %s: ", o->dry_run ? "would mark" : "marked", o->word);
    item_name(stdout, item);
    fputc('\n', stdout);
  }
  return 0;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  ckpt_mark_options options = {.size = sizeof options,
                               .uri = o->uri,
                               .name = o->name,
                               .reason = o->reason,
                               .flags = o->dry_run ? CKPT_DRY_RUN : 0u,
                               .good = strcmp(o->word, "good") == 0};
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_mark(engine, &options, print_marked, (void *)o);
  return command_close(engine, rc, EXIT_DONE);
}

static const option_spec opt_reason = {"reason", "TEXT", "why, for those who read it later",
                                       take_text, .at = OF(reason)};

static int check(const options *o, char *error) {
  if (strcmp(o->word, "bad") == 0 || strcmp(o->word, "good") == 0) return 0;
  return OPTIONS_FAIL(error, "mark: '%s' is neither bad nor good", o->word);
}

static const char help[] =
    "Without NAME the newest (good: the newest that is bad). One that is bad is restored only by\n"
    "name; the one before it counts as the newest. Exit code: 4 there is none.\n";

const verb verb_mark = {
    .name = "mark",
    .synopsis = "mark bad|good URI [NAME] [--reason TEXT]",
    .summary = "say that a checkpoint does not load, or take that back",
    .text = help,
    .options = (const option_spec *const[]){&opt_reason, &option_json, &option_dry_run, NULL},
    .words = {2, 3, "WORD (bad or good) and URI", {OF(word), OF(uri), OF(name)}, 0, false},
    .check = check,
    .run = run,
};
