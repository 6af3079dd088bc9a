/* `policy replay`: what a policy would have kept of what a target has seen. */
#include <inttypes.h>

#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"

static const char *const words[] = {[CKPT_WOULD_KEEP] = "would keep",
                                    [CKPT_WOULD_DROP] = "would drop",
                                    [CKPT_EARLIER] = "earlier",
                                    [CKPT_LATER] = "later"};
enum { WORDS = sizeof words / sizeof *words };

typedef struct replayed {
  table table;
  const ckpt_fate *fate; /* whose row is written */
  bool json;
} replayed;

static void json_fate(const ckpt_fate *f) {
  record r = record_begin(stdout);
  record_text(&r, "difference", words[f->what]);
  if (f->drop_ns) {
    record_time(&r, "would_drop", f->drop_ns);
    record_count(&r, "after", f->after);
  }
  record_text(&r, "by", f->policy);
  record_prose(&r, "why", f->reason);
  if (f->item->life != CKPT_LIVE) {
    record_time(&r, "was_dropped", f->item->drop_ns);
    record_text(&r, "was_by", f->item->drop_policy);
    record_prose(&r, "was_why", f->item->drop_reason);
  }
  item_json_line(&r, f->item);
}

static void write_word(FILE *f, const char *policy, const char *reason) {
  if (*policy) {
    text_plain(f, policy);
    fputs(": ", f);
  }
  text_prose(f, reason);
}

static void write_why(FILE *f, const ckpt_fate *fate) {
  const ckpt_item *item = fate->item;
  write_word(f, fate->policy, fate->reason);
  if (item->life == CKPT_LIVE) return;
  fputs(" (was: ", f);
  write_word(f, item->drop_policy, item->drop_reason);
  fputc(')', f);
}

static void write_cell(FILE *f, int column, const void *ctx) {
  const ckpt_fate *fate = ((const replayed *)ctx)->fate;
  const ckpt_item *item = fate->item;
  switch (column) {
  case 0: fputs(words[fate->what], f); break;
  case 1: item_name(f, item); break;
  case 2: text_size(f, item->bytes); break;
  case 3:
    if (item->life == CKPT_LIVE)
      fputs("kept", f);
    else
      text_time(f, item->drop_ns);
    break;
  case 4:
    if (fate->drop_ns)
      text_time(f, fate->drop_ns);
    else
      fputs("kept", f);
    break;
  default: write_why(f, fate);
  }
}

static int take_fate(void *ctx, const ckpt_fate *fate) {
  replayed *p = ctx;
  if (fate->what == 0 || fate->what >= WORDS) return 0; /* of a newer library */
  if (p->json) {
    json_fate(fate);
    return ferror(stdout);
  }
  p->fate = fate;
  table_add(&p->table, write_cell, p);
  return p->table.failed;
}

/* ---- the sum ---- */

static void json_sum(const ckpt_replay *sum) {
  record r = record_begin(stdout);
  record_text(&r, "difference", "summary");
  record_count(&r, "logs", sum->logs);
  record_count(&r, "commits", sum->commits);
  record_count(&r, "would_keep", sum->would_keep);
  record_count(&r, "would_drop", sum->would_drop);
  record_count(&r, "moved", sum->moved);
  record_count(&r, "was_kept", sum->was_kept);
  record_count(&r, "kept", sum->kept);
  record_count(&r, "was_bytes", sum->was_bytes);
  record_count(&r, "bytes", sum->bytes);
  record_count(&r, "was_most", sum->was_most);
  record_count(&r, "most", sum->most);
  record_count(&r, "fallbacks", sum->fallbacks);
  record_end_line(&r);
}

static void print_kept(const char *what, uint64_t count, uint64_t bytes, uint64_t most) {
  printf("%s%" PRIu64 " kept (", what, count);
  text_size(stdout, bytes);
  fputs(" at the end, ", stdout);
  text_size(stdout, most);
  puts(" at most)");
}

static const char *is_or_are(uint64_t count) {
  return count == 1 ? "is" : "are";
}

static void print_sum(const ckpt_replay *s) {
  printf("%" PRIu64 " checkpoint%s: %" PRIu64 " that %s dropped would be kept, %" PRIu64
         " that %s kept would be dropped, %" PRIu64 " would be dropped at another moment\n",
         s->commits, s->commits == 1 ? "" : "s", s->would_keep, is_or_are(s->would_keep),
         s->would_drop, is_or_are(s->would_drop), s->moved);
  print_kept("as it was:      ", s->was_kept, s->was_bytes, s->was_most);
  print_kept("as it would be: ", s->kept, s->bytes, s->most);
  if (s->fallbacks)
    printf("%" PRIu64 " time%s a policy had no good answer, and the safe one held\n", s->fallbacks,
           s->fallbacks == 1 ? "" : "s");
}

static int run(const options *o) {
  ckpt *engine = NULL;
  replayed p = {.table = {.heads = {"DIFFERENCE", "NAME", "SIZE", "WAS DROPPED", "WOULD BE", "WHY"},
                          .left = 1 | 2 | 8 | 16 | 32},
                .json = o->json};
  const ckpt_plan_options options = options_plan(o);
  ckpt_replay sum = {.size = sizeof sum};
  int code = EXIT_DONE, rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_replay_log(engine, &options, take_fate, &p, &sum);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (p.table.failed) {
    report_error("out of memory");
    code = EXIT_FAILED;
  } else if (o->json) {
    json_sum(&sum);
  } else {
    if (p.table.count > 0) table_print(&p.table, stdout);
    print_sum(&sum);
  }
  table_free(&p.table);
  ckpt_close(engine);
  return command_end(code);
}

static const char help[] = "`keep` is asked after each commit of the log about what the policy "
                           "itself would have left, with\n"
                           "the rules of a run and the time of that commit; what differs is told. "
                           "A mark as bad holds from\n"
                           "the checkpoint's beginning; pins are not known. Nothing is written.\n";

const verb verb_policy_replay = {
    .name = "policy replay",
    .synopsis = "policy replay URI [-p POLICY] [options]",
    .summary = "say what a policy would have kept and dropped of all that a target has seen",
    .text = help,
    .flags = FLAGS_PLAN,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
