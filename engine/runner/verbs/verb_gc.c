/* `gc`: removes what nobody needs any more. */
#include <stdlib.h>
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"
#include "verbs.h"

typedef struct tally {
  const options *o;
  size_t gone, failed;
  uint64_t bytes;
} tally;

/* True for a thing that stays, and is named. */
static bool is_left(const ckpt_collected *c) {
  return strcmp(c->what, "left") == 0;
}

static void print_json(const tally *t, const ckpt_collected *c) {
  record r = record_begin(stdout);
  record_bool(&r, "done", c->status == 0 && !is_left(c));
  record_bool(&r, "dry_run", t->o->dry_run);
  record_text(&r, "what", c->what);
  record_name(&r, "group", c->log);
  record_name(&r, "name", c->name);
  record_prose(&r, "reason", c->reason);
  record_count(&r, "bytes", c->bytes);
  record_end_line(&r);
}

static const char *word_for(const tally *t, const ckpt_collected *c) {
  bool commits = strcmp(c->what, "commit") == 0;
  if (t->o->dry_run) return commits ? "would commit" : "would remove";
  return commits ? "committed" : "removed";
}

static void write_line(FILE *f, const tally *t, const ckpt_collected *c) {
  const bool commits = strcmp(c->what, "commit") == 0, files = strcmp(c->what, "files") == 0;
  if (c->status == 0 && !is_left(c)) fprintf(f, "%s ", word_for(t, c));
  fprintf(f, "%s ", commits ? "save" : files ? "files of" : c->what);
  text_plain(f, c->log);
  if (*c->log && *c->name) fputc('/', f);
  text_plain(f, c->name);
  if (c->bytes > 0) {
    fputs(" (", f);
    text_size(f, c->bytes);
    fputc(')', f);
  }
  fputs(c->status == 0 ? ": " : files ? " stay: " : " stays: ", f);
  text_prose(f, c->reason);
}

/* Prints a thing that went as data, and one that did not as a complaint. */
static void print_line(const tally *t, const ckpt_collected *c) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  write_line(f, t, c);
  if (fclose(f) == 0 && c->status < 0) report_error("%s", text);
  if (c->status == 0) puts(text);
  free(text);
}

static int take(void *ctx, const ckpt_collected *c) {
  tally *t = ctx;
  t->gone += c->status == 0 && !is_left(c);
  t->failed += c->status < 0;
  if (c->status == 0 && !is_left(c)) t->bytes += c->bytes;
  if (t->o->json)
    print_json(t, c);
  else
    print_line(t, c);
  return ferror(stdout);
}

static void print_sum(const tally *t) {
  if (t->o->json) {
    record r = record_begin(stdout);
    record_count(&r, "removed", t->gone);
    record_count(&r, "bytes", t->bytes);
    record_count(&r, "failed", t->failed);
    record_bool(&r, "dry_run", t->o->dry_run);
    record_end_line(&r);
    return;
  }
  printf("%s: %zu thing%s (", t->o->dry_run ? "would be done" : "done", t->gone,
         t->gone == 1 ? "" : "s");
  text_size(stdout, t->bytes);
  printf("), %zu failed\n", t->failed);
}

/* Returns the exit code. A log that cannot be read is no damaged checkpoint, and a target that is
 * not there any more is no empty one. */
static int code_of(int rc) {
  int code = exit_code_of(rc);
  return code == EXIT_CORRUPT || code == EXIT_NOTHING || code == EXIT_USAGE ? EXIT_FAILED : code;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  tally t = {.o = o};
  ckpt_collect_options options = {.size = sizeof options,
                                  .remove = o->remove,
                                  .uri = o->uri,
                                  .grace_delete_s = o->run.grace_delete_s,
                                  .flags = (o->dry_run ? CKPT_DRY_RUN : 0u) |
                                           (o->remove_run ? CKPT_COLLECT_RUN : 0u)};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_collect(engine, &options, take, &t);
  if (rc < 0) {
    code = command_failed(engine, rc);
    if (t.failed > 0) code = code_of(rc);
  }
  if (rc == 0 || t.gone + t.failed > 0) print_sum(&t);
  ckpt_close(engine);
  return command_end(code);
}

static const option_spec opt_remove = {"remove", "KEY", "only that, which gc named as left",
                                       take_text, .at = OF(remove)};
static const option_spec opt_remove_run = {"remove-run", NULL,
                                           "remove the runs there whole; only their logs stay",
                                           take_set, .at = OF(remove_run)};
static const option_spec opt_yes = {"yes", NULL, "with --remove-run: do it", take_set,
                                    .at = OF(yes)};

static int check(const options *o, char *error) {
  if (o->remove_run && !o->yes && !o->dry_run)
    return OPTIONS_FAIL(error,
                        "gc --remove-run removes every checkpoint of %s; if that is meant: --yes "
                        "(to look first: --dry-run)",
                        o->uri);
  if (o->remove && o->remove_run)
    return OPTIONS_FAIL(error, "gc: --remove or --remove-run, not both");
  if (o->yes && !o->remove_run) return OPTIONS_FAIL(error, "gc: --yes goes with --remove-run");
  return 0;
}

static const char help[] =
    "Saves that nobody goes on with, what was dropped longer than --grace-delete ago, expired "
    "pins,\n"
    "leftovers of killed processes, uploads of no save; of every run at or below the place. What "
    "a\n"
    "live run may need stays. --remove-run removes the runs whole: only their logs stay.\n"
    "Exit code: 0 all is clean, 1 something stays that should go, 4 no run has written there,\n"
    "11 (--remove-run) the run is alive, or a checkpoint is pinned.\n";

const verb verb_gc = {
    .name = "gc",
    .synopsis = "gc URI|PREFIX [options] | gc URI --remove-run --yes",
    .summary = "remove what nobody needs any more: from any machine, beside a live run too",
    .text = help,
    .flags = FLAGS_REMOVAL,
    .options = (const option_spec *const[]){&opt_remove, &opt_remove_run, &opt_yes, &option_json,
                                            &option_dry_run, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .check = check,
    .run = run,
};
