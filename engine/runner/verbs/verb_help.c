/* `help`: describes the verbs. */
#include "verbs.h"

static int run(const options *o) {
  const verb *v = o->name ? verbs_find(o->name) : NULL;
  return o->name && !v ? verbs_unknown(o->name) : verbs_explain(v);
}

const verb verb_help = {
    .name = "help",
    .synopsis = "help [VERB]",
    .summary = "explain a verb",
    .words = {0, 1, NULL, {OF(name)}, 0, false},
    .run = run,
};
