/* `help`: describes the verbs. */
#include "runner/cli/report.h"
#include "verbs.h"

static int run(const options *o) {
  const verb *v = o->name ? verbs_find(o->name) : NULL;
  if (o->name && !v) return verbs_unknown(o->name);
  if (!v || !o->word) return verbs_explain(v);
  if (!v->subs) {
    report_error("help: %s has no verbs of its own; see: ckpt-lua help %s", v->name, v->name);
    return EXIT_USAGE;
  }
  const verb *own = verb_sub(v, o->word);
  return own ? verbs_explain(own) : verbs_unknown_sub(v, o->word);
}

const verb verb_help = {
    .name = "help",
    .synopsis = "help [VERB]",
    .summary = "explain a verb",
    .words = {0, 2, NULL, {OF(name), OF(word)}, 0, false},
    .run = run,
};
