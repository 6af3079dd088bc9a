/* `policy check`: what is wrong with a policy, before it governs a run. */
#include <string.h>

#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"

enum { LEVELS = CKPT_FAULT + 1 };

static const char *const levels[LEVELS] = {
    [CKPT_FAULT] = "error", [CKPT_WARNING] = "warning", [CKPT_NOTE] = "note"};

typedef struct checked {
  const options *o;
  size_t counts[LEVELS];
} checked;

static void json_finding(const options *o, const ckpt_remark *f) {
  record r = record_begin(stdout);
  record_text(&r, "level", levels[f->word]);
  record_text(&r, "topic", f->topic);
  record_name(&r, "file", o->file);
  if (f->line) record_count(&r, "line", f->line);
  if (f->column) record_count(&r, "column", f->column);
  record_prose(&r, "text", f->text);
  record_end_line(&r);
}

/* As compilers write it: an editor finds the place. */
static void print_finding(const options *o, const ckpt_remark *f) {
  text_plain(stdout, o->file);
  if (f->line) printf(":%u", f->line);
  if (f->line && f->column) printf(":%u", f->column);
  printf(": %s: ", levels[f->word]);
  text_prose(stdout, f->text);
  putchar('\n');
}

static int take_finding(void *ctx, const ckpt_remark *f) {
  checked *c = ctx;
  if (f->word >= LEVELS || !levels[f->word]) return 0; /* of a newer library */
  c->counts[f->word]++;
  if (c->o->json)
    json_finding(c->o, f);
  else
    print_finding(c->o, f);
  return ferror(stdout);
}

static int run(const options *o) {
  ckpt *engine = NULL;
  checked c = {.o = o};
  ckpt_check_options options = {
      .size = sizeof options, .policy = o->file, .settings = o->run.settings, .dir = o->dir};
  int code = EXIT_DONE, rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_policy_check(engine, &options, take_finding, &c);
  if (rc == CKPT_EPOLICY && c.counts[CKPT_FAULT] > 0)
    code = EXIT_USAGE; /* all was said */
  else if (rc < 0)
    code = command_failed(engine, rc);
  else if (c.counts[CKPT_WARNING] + c.counts[CKPT_NOTE] == 0)
    report_info("nothing is wrong with %s that a check can see", o->file);
  ckpt_close(engine);
  return command_end(code);
}

static const option_spec opt_dir = {
    "dir", "DIR", "hold it against the checkpoints in DIR: names, markers, numbers", take_place,
    .at = OF(dir)};

static const char help[] = "FILE is a path, or the name of a shipped policy. Nothing is written, "
                           "and nothing is asked but\n"
                           "the policy itself. Exit code: 2 it does not load, or would fail in a "
                           "run; warnings are none.\n";

const verb verb_policy_check = {
    .name = "policy check",
    .synopsis = "policy check FILE [--dir DIR] [options]",
    .summary = "say what is wrong with a policy: wrong names, functions that fail, idle rules",
    .text = help,
    .flags = FLAGS_CHECK,
    .options = (const option_spec *const[]){&opt_dir, &option_json, NULL},
    .words = {1, 1, "FILE", {OF(file)}, 0, false},
    .run = run,
};
