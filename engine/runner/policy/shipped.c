#include "shipped.h"

#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/words.h"

enum { NAMES_MOST = 64, NAME_ROOM = 256 };

typedef struct search {
  const char *name;
  ckpt_policy_fn *fn;
  void *ctx;
  bool found;
  int code;
  char names[NAMES_MOST][NAME_ROOM]; /* for a hint */
  size_t count;
} search;

static int look_at(void *ctx, const ckpt_policy *policy) {
  search *s = ctx;
  if (s->count < NAMES_MOST) snprintf(s->names[s->count++], NAME_ROOM, "%s", policy->name);
  if (strcmp(policy->name, s->name) != 0) return 0;
  s->found = true;
  if (policy->why) report_error("%s", policy->why);
  s->code = policy->why ? EXIT_FAILED : s->fn(s->ctx, policy);
  return 1;
}

static int say_none(const search *s) {
  const char *names[NAMES_MOST];
  for (size_t i = 0; i < s->count; i++) names[i] = s->names[i];
  const char *near = words_nearest(s->name, names, s->count);
  if (near)
    report_error("no policy comes with us that is called \"%s\"; did you mean %s?", s->name, near);
  else
    report_error("no policy comes with us that is called \"%s\"; see: ckpt-lua policy list",
                 s->name);
  return EXIT_USAGE;
}

int shipped_with(const options *o, ckpt_policy_fn *fn, void *ctx) {
  ckpt *engine = NULL;
  search s = {.name = o->name, .fn = fn, .ctx = ctx};
  int code = EXIT_DONE, rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_policies(engine, NULL, look_at, &s);
  if (rc < 0)
    code = command_failed(engine, rc);
  else
    code = s.found ? s.code : say_none(&s);
  ckpt_close(engine);
  return code;
}
