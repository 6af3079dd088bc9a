/* `policy show`: the text of a shipped policy. */
#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "shipped.h"

static int show(void *ctx, const ckpt_policy *policy) {
  const options *o = ctx;
  if (!o->json) {
    fputs(policy->text, stdout);
    return EXIT_DONE;
  }
  record r = record_begin(stdout);
  record_name(&r, "name", policy->name);
  record_text(&r, "about", policy->about);
  record_name(&r, "path", policy->path);
  record_text(&r, "text", policy->text);
  record_end_line(&r);
  return EXIT_DONE;
}

static int run(const options *o) {
  return command_end(shipped_with(o, show, (void *)o));
}

const verb verb_policy_show = {
    .name = "policy show",
    .synopsis = "policy show NAME [options]",
    .summary = "print a shipped policy: its rules, and what can be set with -o",
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {1, 1, "NAME", {OF(name)}, 0, false},
    .run = run,
};
