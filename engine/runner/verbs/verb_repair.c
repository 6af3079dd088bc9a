/* `repair`: makes a new log of what is left of one that has lost entries. */
#include <stdlib.h>
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"
#include "verbs.h"

typedef struct tally {
  const options *o;
  size_t logs, commits, left;
} tally;

static bool is_log(const ckpt_repaired *r) {
  return strcmp(r->what, "log") == 0;
}

static void print_json(const tally *t, const ckpt_repaired *found) {
  record r = record_begin(stdout);
  record_text(&r, "what", found->what);
  record_bool(&r, "dry_run", t->o->dry_run);
  record_name(&r, "group", found->log);
  record_name(&r, "name", found->name);
  record_prose(&r, "reason", found->reason);
  if (is_log(found)) {
    record_count(&r, "lost", found->lost);
    record_count(&r, "torn", found->torn);
    record_count(&r, "epoch", found->epoch);
  }
  record_end_line(&r);
}

static void print_name(const ckpt_repaired *found) {
  text_plain(stdout, found->log);
  if (*found->log && *found->name) putchar('/');
  text_plain(stdout, found->name);
}

static void print_line(const tally *t, const ckpt_repaired *found) {
  bool commit = strcmp(found->what, "commit") == 0;
  if (is_log(found)) {
    fputs("log ", stdout);
    print_name(found);
    printf("%s%llu lost, %llu torn: ", *found->log ? ": " : "", (unsigned long long)found->lost,
           (unsigned long long)found->torn);
  } else {
    fputs(commit && t->o->dry_run ? "would commit" : commit ? "committed" : found->what, stdout);
    putchar(' ');
    print_name(found);
    fputs(": ", stdout);
  }
  text_prose(stdout, found->reason);
  if (found->epoch && is_log(found)) printf(" (epoch %llu)", (unsigned long long)found->epoch);
  putchar('\n');
}

static int take(void *ctx, const ckpt_repaired *found) {
  tally *t = ctx;
  t->logs += is_log(found);
  t->commits += strcmp(found->what, "commit") == 0;
  t->left += strcmp(found->what, "left") == 0 || strcmp(found->what, "bad") == 0;
  if (t->o->json)
    print_json(t, found);
  else
    print_line(t, found);
  return ferror(stdout);
}

static int run(const options *o) {
  ckpt *engine = NULL;
  tally t = {.o = o};
  ckpt_repair_options wish = {.size = sizeof wish,
                              .uri = o->uri,
                              .flags =
                                  (o->dry_run ? CKPT_DRY_RUN : 0u) |
                                  (o->run.flags & CKPT_TAKE_OVER ? CKPT_REPAIR_TAKE_OVER : 0u)};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_repair(engine, &wish, take, &t);
  if (rc < 0) code = command_failed(engine, rc);
  if (rc == 0 && t.logs == 0) {
    report_error("%s: no run has written there", o->uri);
    code = EXIT_NOTHING;
  }
  if (rc == 0 && t.left > 0) code = EXIT_PARTIAL;
  ckpt_close(engine);
  return command_end(code);
}

static const option_spec opt_take_over = {"take-over",
                                          NULL,
                                          "nobody is at work there, or is to be stopped",
                                          take_bit,
                                          .at = OF(run.flags),
                                          .bit = CKPT_TAKE_OVER};

static const char help[] =
    "Where an entry of a run's log is lost or torn, nothing is done with that log any more. This\n"
    "makes a new one of what is left: entries, manifests, part records; each whole save is listed\n"
    "again. Nothing is removed, and what nothing proves is named and stays. --dry-run says what\n"
    "would be done. End all runs of the target first. Each log at or below the place is looked "
    "at;\n"
    "one that is whole is left as it is.\n"
    "Exit code: 0 all is whole, or was made so, 3 something is left that nothing proves, or is "
    "not\n"
    "whole, 4 no run has written there, 11 a writer is alive, or may be (--take-over).\n";

const verb verb_repair = {
    .name = "repair",
    .synopsis = "repair URI|PREFIX [options]",
    .summary = "make a log anew that has lost entries, of what is left",
    .text = help,
    .options = (const option_spec *const[]){&opt_take_over, &option_json, &option_dry_run, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
