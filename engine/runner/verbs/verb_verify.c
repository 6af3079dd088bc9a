/* `verify`: reads and compares every byte of one checkpoint, or of all. */
#include "runner/cli/command.h"
#include "runner/cli/progress.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "links.h"
#include "verbs.h"

typedef struct verified {
  bool json;
  size_t good, bad;
} verified;

static int print_verified(void *ctx, const ckpt_verified *v) {
  verified *all = ctx;
  const char *reason = v->reason ? v->reason : "";
  if (v->status == CKPT_OK)
    all->good++;
  else
    all->bad++;
  if (all->json) {
    record r = record_begin(stdout);
    record_bool(&r, "ok", v->status == CKPT_OK);
    record_text(&r, "status", ckpt_status_name(v->status));
    record_count(&r, "findings", v->findings);
    record_prose(&r, "wrong", reason);
    record_json(&r, "links", v->links);
    record_count(&r, "link_count", v->link_count);
    item_json_line(&r, v->item);
    return 0;
  }
  fputs(v->status == CKPT_OK ? "ok   " : "BAD  ", stdout);
  item_name(stdout, v->item);
  if (v->status == CKPT_OK) {
    item_size(stdout, v->item);
    fputc('\n', stdout);
  } else {
    fputs(": ", stdout);
    text_prose(stdout, reason);
    if (v->findings > 1) printf(" (and %u more)", v->findings - 1);
    fputc('\n', stdout);
  }
  links_write_text(stdout, "     link ", v->links, v->link_count);
  return 0;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  progress progress;
  verified all = {.json = o->json};
  int code = EXIT_DONE;
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&engine, o, progress_heard, &progress);
  if (rc == 0) {
    rc = ckpt_verify(engine, o->uri, o->name, print_verified, &all);
    /* Each bad checkpoint has had its line already. */
    if (rc < 0 && (rc != CKPT_ECORRUPT || all.bad == 0)) report_error("%s", ckpt_error(engine));
  }
  if (rc < 0)
    code = exit_code_of(rc);
  else if (all.bad > 0)
    code = EXIT_CORRUPT;
  else if (all.good == 0) {
    report_error("no checkpoint was committed at %s", o->uri);
    code = EXIT_NOTHING;
  }
  ckpt_close(engine);
  return command_end(code);
}

static const char help[] =
    "URI may also be a checkpoint that was copied elsewhere. Exit code: 5 if any is bad.\n";

const verb verb_verify = {
    .name = "verify",
    .synopsis = "verify URI [NAME] [options]",
    .summary = "read every byte of one checkpoint, or of all, and compare",
    .text = help,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {1, 2, "URI", {OF(uri), OF(name)}, 0, false},
    .run = run,
};
