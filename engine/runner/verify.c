/* `verify`: every byte of one checkpoint, or of all, is read and compared. */
#include "command.h"
#include "progress.h"
#include "report.h"
#include "text.h"
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
    printf("{\"ok\":%s,\"status\":\"%s\",\"findings\":%u,\"reason\":",
           v->status == CKPT_OK ? "true" : "false", ckpt_status_name(v->status), v->findings);
    text_json(stdout, reason);
    fputc(',', stdout);
    item_json(stdout, v->item);
    fputs("}\n", stdout);
    return 0;
  }
  fputs(v->status == CKPT_OK ? "ok   " : "BAD  ", stdout);
  item_name(stdout, v->item);
  if (v->status == CKPT_OK) {
    item_size(stdout, v->item);
    fputc('\n', stdout);
  } else {
    fputs(": ", stdout);
    text_plain(stdout, reason);
    if (v->findings > 1) printf(" (and %u more)", v->findings - 1);
    fputc('\n', stdout);
  }
  return 0;
}

int verb_verify(const options *o) {
  ckpt *engine = NULL;
  progress progress;
  verified all = {.json = o->json};
  int code = EXIT_DONE;
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&engine, o, progress_heard, &progress);
  if (rc == 0) {
    rc = ckpt_verify(engine, o->uri, o->name, print_verified, &all);
    /* Each bad one has had its line already. */
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
