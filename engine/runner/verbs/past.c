#include "past.h"

#include <inttypes.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"

typedef struct asked {
  const options *o;
  uint64_t found;
} asked;

/* What no log tells; each is said, so that nobody takes the answer for more than it is. */
static const char *const unknown[] = {"pins",
                                      "what was verified",
                                      "what a start resumed from",
                                      "the memory of a policy",
                                      "when a result came (all count)",
                                      "when a mark as bad was made (it counts)",
                                      "when something was lost (it counts as there)"};
enum { UNKNOWN = sizeof unknown / sizeof *unknown };

static const char *verdict_of(const ckpt_past *p) {
  if (p->stance == CKPT_TO_COME) return "to-come";
  if (p->stance == CKPT_WENT) return "gone";
  switch (p->verdict) {
  case CKPT_KEEP: return "keep";
  case CKPT_GUARDED: return "guarded";
  case CKPT_LIMITED: return "limited";
  case CKPT_DROP: return "drop";
  default: return "?"; /* of a newer library */
  }
}

static void json_past(const asked *a, const ckpt_past *p) {
  record r = record_begin(stdout);
  record_count(&r, "at", a->o->at);
  record_text(&r, "verdict", verdict_of(p));
  record_text(&r, "by", p->policy);
  record_prose(&r, "why", p->reason);
  if (p->after_ns) {
    record_count(&r, "asked_after", p->after);
    record_time(&r, "asked_at", p->after_ns);
  }
  record_count(&r, "stood", p->stood);
  FILE *f = record_key(&r, "unknown");
  for (size_t i = 0; i < UNKNOWN; i++) {
    fputs(i ? "," : "[", f);
    text_json(f, unknown[i]);
  }
  fputc(']', f);
  item_json_line(&r, p->item);
}

static void put_word(const char *policy, const char *reason) {
  if (policy && *policy) {
    text_plain(stdout, policy);
    fputs(": ", stdout);
  }
  text_prose(stdout, reason ? reason : "");
  fputc('\n', stdout);
}

static void print_question(const ckpt_past *p) {
  if (p->stance == CKPT_TO_COME) {
    printf("  it was committed later, as entry %" PRIu64 "\n", p->item->number);
  } else if (p->stance == CKPT_WENT) {
    fputs("  it was dropped before: ", stdout);
    put_word(p->item->drop_policy, p->item->drop_reason);
  } else {
    fputs("  ", stdout);
    put_word(p->policy, p->reason);
    printf("  asked behind commit %" PRIu64 ", at ", p->after);
    text_time(stdout, p->after_ns);
    printf(", of %" PRIu64 " that stood then\n", p->stood);
  }
}

static void print_since(const ckpt_item *item) {
  if (item->life == CKPT_LIVE) {
    puts("  since then: it is kept");
    return;
  }
  if (!item->drop_ns) {
    puts("  since then: it is gone, and the log has no decision on it: its run was removed, or it "
         "was lost");
    return;
  }
  fputs("  since then: dropped at ", stdout);
  text_time(stdout, item->drop_ns);
  fputs(" by ", stdout);
  put_word(item->drop_policy, item->drop_reason);
}

static void print_past(const ckpt_past *p) {
  item_name(stdout, p->item);
  printf(": %s\n", verdict_of(p));
  print_question(p);
  if (p->stance != CKPT_STOOD) return;
  print_since(p->item);
  fputs("  not known of that time:", stdout);
  for (size_t i = 0; i < UNKNOWN; i++) printf("%s %s", i ? "," : "", unknown[i]);
  fputc('\n', stdout);
}

static int take_past(void *ctx, const ckpt_past *past) {
  asked *a = ctx;
  if (!item_is_asked(past->item, a->o->name)) return 0;
  a->found++;
  if (a->o->json)
    json_past(a, past);
  else
    print_past(past);
  return ferror(stdout);
}

int past_answer(const options *o) {
  ckpt *engine = NULL;
  asked a = {.o = o};
  ckpt_plan_options options = options_plan(o);
  options.uri = o->to;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_replay_at(engine, &options, o->at, take_past, &a);
  if (rc >= 0 && a.found == 0)
    report_error("%s: nothing of that name was committed at %s; what a run had that was removed is "
                 "not asked about",
                 o->name, o->to);
  return command_close(engine, rc < 0 ? rc : 0, a.found ? EXIT_DONE : EXIT_NOTHING);
}
