/* `sync`: saves the complete checkpoints of a directory, once; or says what it would save. */
#include "runner/cli/command.h"
#include "runner/cli/progress.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"
#include "runner/job/loop.h"
#include "runner/job/start.h"
#include "verbs.h"

typedef struct foresight {
  bool json;
  size_t count, unproven;
} foresight;

static void print_text(const ckpt_foreseen *u) {
  static const char *const whats[] = {[CKPT_WOULD_SAVE] = "would save  ",
                                      [CKPT_IS_THERE] = "is there    ",
                                      [CKPT_IS_OLDER] = "is older    ",
                                      [CKPT_IS_NOT_PROVEN] = "NOT PROVEN  "};
  fputs(whats[u->what], stdout);
  text_plain(stdout, u->unit);
  if (u->reason && *u->reason) {
    fputs(": ", stdout);
    text_plain(stdout, u->reason);
  }
  putchar('\n');
}

static void print_json(const ckpt_foreseen *u) {
  static const char *const whats[] = {[CKPT_WOULD_SAVE] = "committed",
                                      [CKPT_IS_THERE] = "there",
                                      [CKPT_IS_OLDER] = "older",
                                      [CKPT_IS_NOT_PROVEN] = "unproven"};
  record r = record_begin(stdout);
  record_bool(&r, "dry_run", true);
  record_text(&r, "result", whats[u->what]);
  record_name(&r, "unit", u->unit);
  record_step(&r, "step", u->step);
  record_text(&r, "reason", u->reason ? u->reason : "");
  record_end_line(&r);
}

static int take_foreseen(void *ctx, const ckpt_foreseen *u) {
  foresight *f = ctx;
  if (u->what > CKPT_IS_NOT_PROVEN) return 0; /* of a newer library */
  f->count++;
  f->unproven += u->what == CKPT_IS_NOT_PROVEN;
  if (f->json)
    print_json(u);
  else
    print_text(u);
  return 0;
}

static int foresee(const options *o) {
  ckpt *engine = NULL;
  progress progress;
  foresight f = {.json = o->json};
  ckpt_run_options options = start_options(o, SESSION_SYNC, NULL);
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&engine, o, progress_heard, &progress);
  if (rc == 0) rc = ckpt_foresee(engine, &options, take_foreseen, &f);
  int code = f.unproven > 0 ? EXIT_PARTIAL : EXIT_DONE;
  if (rc >= 0 && f.count == 0) {
    report_warning("there is no complete checkpoint in %s", o->run.dir);
    if (o->require_commit) code = EXIT_NOTHING;
  }
  return command_close(engine, rc, code);
}

static int run(const options *o) {
  return o->dry_run ? foresee(o) : loop_run(o, SESSION_SYNC);
}

static const char help[] =
    "For a directory in which nobody writes any more. Nothing is deleted, neither here nor at the\n"
    "target. What nothing proves to be whole is named and not saved.\n"
    "Exit code: 0 all is durable, there is nothing to save, or the policy wants none of it: the\n"
    "last line says which; 3 some could not be saved; else as those of run.\n";

const verb verb_sync = {
    .name = "sync",
    .synopsis = "sync DIR --to URI [options]",
    .summary = "commit the complete checkpoints of a directory once, and end",
    .text = help,
    .flags = FLAGS_SYNC,
    .options = (const option_spec *const[]){&option_json, &option_dry_run, NULL},
    .words = {0, 1, NULL, {OF(run.dir)}, 0, false},
    .run = run,
};
