/* `doctor`: tries out a target, before it is relied on. */
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "verbs.h"

typedef struct examination {
  const options *o;
  unsigned counts[CKPT_FAULT + 1];
} examination;

static void print_json(const ckpt_examined *x) {
  static const char *const words[] = {"fine", "note", "warning", "fault"};
  record r = record_begin(stdout);
  record_text(&r, "topic", x->topic);
  record_text(&r, "word", words[x->word]);
  record_text(&r, "status", x->status ? ckpt_status_name(x->status) : NULL);
  record_prose(&r, "text", x->text);
  record_prose(&r, "advice", x->advice);
  record_end_line(&r);
}

static void print_finding(void *ctx, const ckpt_examined *x) {
  static const char *const words[] = {"ok", "note", "WARNING", "FAULT"};
  examination *all = ctx;
  if (x->word > CKPT_FAULT) return;
  all->counts[x->word]++;
  if (all->o->json) {
    print_json(x);
    return;
  }
  printf("%-8s %-11s ", words[x->word], x->topic);
  text_prose(stdout, x->text);
  fputc('\n', stdout);
  if (!*x->advice) return;
  printf("%-8s %-11s to do: ", "", "");
  text_prose(stdout, x->advice);
  fputc('\n', stdout);
}

static void print_end(const examination *all) {
  unsigned faults = all->counts[CKPT_FAULT], warnings = all->counts[CKPT_WARNING];
  if (all->o->json) {
    record r = record_begin(stdout);
    record_bool(&r, "ok", faults == 0);
    record_count(&r, "faults", faults);
    record_count(&r, "warnings", warnings);
    record_end_line(&r);
    return;
  }
  printf("saving there %s: %u fault%s, %u warning%s\n", faults ? "would FAIL" : "would work",
         faults, faults == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s");
}

static int run(const options *o) {
  ckpt *engine = NULL;
  examination all = {.o = o};
  int code = EXIT_DONE, rc = command_open(&engine, o);
  if (rc < 0) return command_close(engine, rc, code);
  rc = ckpt_doctor(engine, o->uri, print_finding, &all);
  if (rc < 0 && all.counts[CKPT_FAULT] == 0) return command_close(engine, rc, code);
  print_end(&all);
  if (rc < 0) code = exit_code_of(rc);
  if (code == EXIT_USAGE) code = EXIT_STORE; /* what the place cannot do is no wrong word */
  ckpt_close(engine);
  return command_end(code);
}

static const char help[] =
    "Writes, reads, races and deletes below the target's .ckpt, and removes it again.\n"
    "Exit code: 0 if saving there would work; else that of the first fault.\n";

const verb verb_doctor = {
    .name = "doctor",
    .synopsis = "doctor URI [options]",
    .summary = "try out whether checkpoints can be saved there",
    .text = help,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
