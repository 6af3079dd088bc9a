/* `policy list`: the policies that come with us. */
#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"

typedef struct listing {
  table table;
  const ckpt_policy *policy; /* whose row is written */
  bool json;
  bool partial; /* a file could not be read */
} listing;

static void write_cell(FILE *f, int column, const void *ctx) {
  const listing *l = ctx;
  text_plain(f, column == 0 ? l->policy->name : l->policy->about);
}

static int list_policy(void *ctx, const ckpt_policy *policy) {
  listing *l = ctx;
  if (policy->why) {
    report_error("%s", policy->why);
    l->partial = true;
  }
  if (l->json) {
    record r = record_begin(stdout);
    record_name(&r, "name", policy->name);
    if (policy->about) record_text(&r, "about", policy->about);
    record_name(&r, "path", policy->path);
    if (policy->why) record_text(&r, "why", policy->why);
    record_end_line(&r);
    return ferror(stdout);
  }
  if (policy->why) return 0;
  l->policy = policy;
  table_add(&l->table, write_cell, l);
  return l->table.failed;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  listing l = {.table = {.heads = {"NAME", "WHAT IT DOES"}, .left = 1 | 2}, .json = o->json};
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_policies(engine, NULL, list_policy, &l);
  int code = l.partial ? EXIT_PARTIAL : EXIT_DONE;
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (l.table.failed) {
    report_error("out of memory");
    code = EXIT_FAILED;
  } else if (!l.json) {
    table_print(&l.table, stdout);
  }
  table_free(&l.table);
  ckpt_close(engine);
  return command_end(code);
}

const verb verb_policy_list = {
    .name = "policy list",
    .synopsis = "policy list [options]",
    .summary = "list the policies that -p NAME means",
    .options = (const option_spec *const[]){&option_json, NULL},
    .run = run,
};
