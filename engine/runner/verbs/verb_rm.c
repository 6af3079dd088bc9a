/* `rm`: drops a checkpoint: it is kept no longer. */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "verbs.h"

typedef struct removed {
  const options *o;
  size_t count;
} removed;

static int print_removed(void *ctx, const ckpt_item *item) {
  removed *r = ctx;
  const char *what = item->life == CKPT_LIFE_DELETED ? "deleted" : "dropped";
  r->count++;
  if (r->o->json) {
    record line = record_begin(stdout);
    record_text(&line, "done", what);
    record_bool(&line, "dry_run", r->o->dry_run);
    item_json_line(&line, item);
    return 0;
  }
  printf("%s%s ", r->o->dry_run ? "would be " : "", what);
  item_name(stdout, item);
  item_size(stdout, item);
  fputc('\n', stdout);
  return 0;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  removed r = {.o = o};
  ckpt_remove_options options = {.size = sizeof options,
                                 .uri = o->uri,
                                 .name = o->name,
                                 .grace_delete_s = o->run.grace_delete_s,
                                 .flags = (o->all ? CKPT_REMOVE_ALL : 0u) |
                                          (o->dry_run ? CKPT_DRY_RUN : 0u)};
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_remove(engine, &options, print_removed, &r);
  if (rc >= 0 && r.count == 0) report_info("nothing to remove at %s", o->uri);
  return command_close(engine, rc, EXIT_DONE);
}

static const option_spec opt_all = {"all", NULL, "every checkpoint, the newest too", take_set,
                                    .at = OF(all)};

static int check(const options *o, char *error) {
  if (!o->name && !o->all)
    return OPTIONS_FAIL(error, "rm: which NAME? (--all: every checkpoint, the newest too)");
  if (o->name && o->all) return OPTIONS_FAIL(error, "rm: either NAME or --all, not both");
  return 0;
}

static const char help[] =
    "It is hidden at once; its data goes in a later pass, when --grace-delete has passed (with\n"
    "--grace-delete 0: now). The newest one and pinned ones are refused: exit code 11.\n";

const verb verb_rm = {
    .name = "rm",
    .synopsis = "rm URI NAME | rm URI --all [options]",
    .summary = "stop keeping a checkpoint, and delete it when the grace is over",
    .text = help,
    .flags = FLAGS_REMOVAL,
    .options = (const option_spec *const[]){&opt_all, &option_json, &option_dry_run, NULL},
    .words = {1, 2, "URI", {OF(uri), OF(name)}, 0, false},
    .check = check,
    .run = run,
};
