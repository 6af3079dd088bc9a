/* `policy simulate`: what a policy would have done in a run of which the events are told. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/durations.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"

typedef struct simulated {
  table table;
  const ckpt_simulated *what; /* whose row is written */
  bool json;
  plot *plot; /* NULL: none is asked for */
} simulated;

/* ---- what an event led to ---- */

static void json_names(record *r, const char *key, const char *const *list) {
  FILE *out = record_key(r, key);
  fputc('[', out);
  for (size_t i = 0; list[i]; i++) {
    if (i) fputc(',', out);
    text_json_name(out, list[i]);
  }
  fputc(']', out);
}

static void json_number(record *r, const char *key, double value) {
  fprintf(record_key(r, key), "%.9g", value);
}

static void json_event(const ckpt_simulated *w) {
  record r = record_begin(stdout);
  record_step(&r, "i", w->index);
  fprintf(record_key(&r, "t"), "%.15g", w->t);
  record_text(&r, "event", w->event);
  record_name(&r, "trial", w->trial);
  record_text(&r, "decision", w->sync ? "sync" : "skip");
  record_text(&r, "by", w->policy);
  record_prose(&r, "reason", w->reason);
  record_name(&r, "name", w->unit);
  json_names(&r, "saved", w->saved);
  json_names(&r, "failed", w->failed);
  json_names(&r, "remedies", w->remedies);
  json_names(&r, "let_go", w->let_go);
  json_names(&r, "deleted", w->deleted);
  json_names(&r, "restored", w->restored);
  json_number(&r, "lost_s", w->lost_s);
  record_end_line(&r);
}

/* Writes "saved a, b; "; nothing of an empty list. */
static void write_names(FILE *f, const char *what, const char *const *list, bool *more) {
  if (!list[0]) return;
  fprintf(f, "%s%s ", *more ? "; " : "", what);
  for (size_t i = 0; list[i]; i++) {
    if (i) fputs(", ", f);
    text_plain(f, list[i]);
  }
  *more = true;
}

static void write_effects(FILE *f, const ckpt_simulated *w) {
  bool more = false;
  write_names(f, "restored", w->restored, &more);
  write_names(f, "saved", w->saved, &more);
  write_names(f, "failed", w->failed, &more);
  write_names(f, "let go", w->let_go, &more);
  write_names(f, "deleted", w->deleted, &more);
  if (w->lost_s > 0) {
    fputs(more ? "; lost " : "lost ", f);
    text_age(f, w->lost_s, 1);
  } else if (!more) {
    fputc('-', f);
  }
}

static void write_cell(FILE *f, int column, const void *ctx) {
  const ckpt_simulated *w = ((const simulated *)ctx)->what;
  switch (column) {
  case 0: fprintf(f, "%.1f", w->t); break;
  case 1: fputs(w->event, f); break;
  case 2: text_plain(f, *w->trial ? w->trial : "-"); break;
  case 3: fputs(!w->asked ? "-" : w->sync ? "sync" : "skip", f); break;
  case 4: text_plain(f, *w->unit ? w->unit : "-"); break;
  case 5: write_effects(f, w); break;
  default:
    if (*w->policy) {
      text_plain(f, w->policy);
      fputs(": ", f);
    }
    text_prose(f, w->reason);
  }
}

static int take_event(void *ctx, const ckpt_simulated *what) {
  simulated *s = ctx;
  if (s->plot) plot_span(s->plot, what->t);
  if (s->json) {
    json_event(what);
    return ferror(stdout);
  }
  s->what = what;
  table_add(&s->table, write_cell, s);
  return s->table.failed;
}

/* ---- the sum ---- */

static void json_sum(const ckpt_simulation *sum) {
  record r = record_begin(stdout);
  record_text(&r, "event", "summary");
  record_count(&r, "events", sum->events);
  record_count(&r, "questions", sum->questions);
  record_count(&r, "saves", sum->saved);
  record_count(&r, "failures", sum->failed);
  record_count(&r, "passed_over", sum->let_go);
  record_count(&r, "unsaved", sum->unsaved);
  record_count(&r, "dropped", sum->deleted);
  record_count(&r, "kept", sum->kept);
  record_count(&r, "bytes_sent", sum->bytes_sent);
  record_count(&r, "bytes_kept", sum->bytes_kept);
  record_count(&r, "bytes_most", sum->bytes_most);
  record_count(&r, "crashes", sum->crashes);
  json_number(&r, "lost_s", sum->lost_s);
  json_number(&r, "seconds", sum->seconds);
  record_count(&r, "fallbacks", sum->fallbacks);
  record_end_line(&r);
}

static void print_sum(const ckpt_simulation *s) {
  printf("%" PRIu64 " saved (", s->saved);
  text_size(stdout, s->bytes_sent);
  printf(" sent, %" PRIu64 " tr%s failed), %" PRIu64 " let go, %" PRIu64 " not saved\n", s->failed,
         s->failed == 1 ? "y" : "ies", s->let_go, s->unsaved);
  printf("%" PRIu64 " kept (", s->kept);
  text_size(stdout, s->bytes_kept);
  fputs(" at the end, ", stdout);
  text_size(stdout, s->bytes_most);
  printf(" at most), %" PRIu64 " deleted\n", s->deleted);
  printf("%" PRIu64 " crash%s, ", s->crashes, s->crashes == 1 ? "" : "es");
  text_age(stdout, s->lost_s, 1);
  puts(" of work lost");
  if (s->fallbacks)
    printf("%" PRIu64 " time%s a policy had no good answer, and the safe one held\n", s->fallbacks,
           s->fallbacks == 1 ? "" : "s");
}

static bool draw(const options *o, plot *picture, const ckpt_simulation *sum) {
  const plot_head head = {options_policies(o), o->file, sum};
  plot_span(picture, picture->first + sum->seconds);
  return plot_write(picture, &head, o->plot);
}

static int run(const options *o) {
  ckpt *engine = NULL;
  plot picture = {0};
  simulated s = {
      .table = {.heads = {"T", "EVENT", "TRIAL", "DECISION", "CHECKPOINT", "LED TO", "WHY"},
                .left = 2 | 4 | 8 | 16 | 32 | 64},
      .json = o->json,
      .plot = o->plot ? &picture : NULL};
  if (o->plot && !plot_can_write(o->plot)) return EXIT_FAILED;
  ckpt_simulate_options options = {.size = sizeof options,
                                   .events = strcmp(o->file, "-") == 0 ? "/dev/stdin" : o->file,
                                   .policies = options_policies(o),
                                   .settings = o->run.settings,
                                   .max_delete = o->run.max_delete,
                                   .grace_delete_s = o->run.grace_delete_s,
                                   .bandwidth = o->bandwidth,
                                   .mtbf_s = o->mtbf_s,
                                   .seed = o->seed,
                                   .flags = o->run.flags & CKPT_NO_DELETE,
                                   .moment = o->plot ? plot_take : NULL,
                                   .moment_ctx = &picture};
  ckpt_simulation sum = {.size = sizeof sum};
  int code = EXIT_DONE, rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_simulate(engine, &options, take_event, &s, &sum);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (s.table.failed) {
    report_error("out of memory");
    code = EXIT_FAILED;
  } else if (o->json) {
    json_sum(&sum);
  } else {
    if (s.table.count > 0) table_print(&s.table, stdout);
    print_sum(&sum);
  }
  if (code == EXIT_DONE && o->plot && !draw(o, &picture, &sum)) code = EXIT_FAILED;
  plot_free(&picture);
  table_free(&s.table);
  ckpt_close(engine);
  return command_end(code);
}

/* ---- options ---- */

static int take_bandwidth(options *o, const option_spec *spec, const char *value, char *error) {
  char size[64];
  uint64_t bytes;
  size_t len = strlen(value);
  (void)spec;
  if (len > 2 && strcmp(value + len - 2, "/s") == 0) len -= 2;
  snprintf(size, sizeof size, "%.*s", (int)(len < sizeof size ? len : 0), value);
  if (!size_read(size, &bytes))
    return OPTIONS_FAIL(error, "--bandwidth: '%s' is none; say 100MiB/s or 1GiB/s", value);
  o->bandwidth = (double)bytes;
  return 0;
}

static bool seed_read(const char *text, uint64_t *seed) {
  char *end;
  if (*text < '0' || *text > '9' || strlen(text) > 19) return false;
  *seed = strtoull(text, &end, 10);
  return *end == '\0';
}

static int take_failures(options *o, const option_spec *spec, const char *value, char *error) {
  char copy[128], *rest = NULL;
  bool good = strlen(value) < sizeof copy;
  (void)spec;
  snprintf(copy, sizeof copy, "%s", value);
  for (char *word = strtok_r(copy, ",", &rest); good && word; word = strtok_r(NULL, ",", &rest)) {
    if (strncmp(word, "mtbf=", 5) == 0)
      good = duration_read(word + 5, &o->mtbf_s) && o->mtbf_s > 0 && o->mtbf_s <= 1e9;
    else
      good = strncmp(word, "seed=", 5) == 0 && seed_read(word + 5, &o->seed);
  }
  if (good && o->mtbf_s > 0) return 0;
  return OPTIONS_FAIL(error,
                      "--failures: '%s' is to be mtbf=TIME or mtbf=TIME,seed=N, as in "
                      "mtbf=6h,seed=1",
                      value);
}

static const option_spec opt_failures = {"failures", "mtbf=TIME[,seed=N]",
                                         "make up crashes of the machine, so far apart in the mean",
                                         take_failures, .at = OF(mtbf_s)};
static const option_spec opt_bandwidth = {
    "bandwidth", "SIZE/s", "what a second sends, e.g. 1GiB/s (default: saves take no time)",
    take_bandwidth, .at = OF(bandwidth)};

static const option_spec opt_plot = {"plot", "FILE.svg",
                                     "draw it: what was saved, kept, dropped and lost, when",
                                     take_text, .at = OF(plot)};

static const char help[] =
    "FILE has one JSON object on a line for each event of a run, or, of a trace, for each change\n"
    "of a file in the watched directory; - is standard input. The policy is asked as a run asks\n"
    "it, and the rules that decide are those of a run; the clock is that of the file. Nothing is\n"
    "written but the file of --plot, which has to be new, empty or a picture.\n"
    "Exit code: 2 a line of the file is wrong, or the policy does not load; 1 it\n"
    "is larger than it may be, or the picture cannot be written.\n";

const verb verb_policy_simulate = {
    .name = "policy simulate",
    .synopsis = "policy simulate FILE [-p POLICY] [options]",
    .summary = "say what a policy would save, keep and lose in a run that is told by FILE",
    .text = help,
    .flags = FLAGS_PLAN,
    .options =
        (const option_spec *const[]){&opt_failures, &opt_bandwidth, &opt_plot, &option_json, NULL},
    .words = {1, 1, "FILE", {OF(file)}, 0, false},
    .run = run,
};
