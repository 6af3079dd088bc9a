#include <stdlib.h>

#include "answer.h"
#include "evict_file.h"
#include "outcome.h"
#include "runner/cli/text.h"

static void print_pending(FILE *f, const ckpt_pending *p) {
  fputs("waiting    ", f);
  text_plain(f, p->unit ? p->unit : "?");
  if (p->bytes_left > 0) {
    fputs(", ", f);
    text_size(f, p->bytes_left);
    fputs(" of ", f);
    text_size(f, p->bytes);
    fputs(" left", f);
  }
  fputs(": ", f);
  text_prose(f, p->reason ? p->reason : "");
  fputc('\n', f);
}

static void print_newest(FILE *f, const ckpt_run_status *s) {
  if (!s->newest_unit) {
    text_member(f, "newest", "none is committed yet");
    return;
  }
  fputs("newest     ", f);
  text_plain(f, s->newest_unit);
  if (s->newest_step >= 0) fprintf(f, " (step %lld)", (long long)s->newest_step);
  fputs(", ", f);
  text_age(f, s->newest_age_s, 0);
  fputs(" ago\n", f);
}

static void print_standing(FILE *f, const outcome *o) {
  char *text = NULL;
  size_t size = 0;
  FILE *sentence = open_memstream(&text, &size);
  if (!sentence) return;
  outcome_standing(sentence, o);
  if (fclose(sentence) == 0) text_member(f, "standing", text);
  free(text);
}

static void print_status(FILE *f, ckpt_run *run, const outcome *o, const ckpt_evict *cost) {
  const ckpt_run_status *s = &o->status;
  text_member(f, "directory", ckpt_run_dir(run));
  text_member(f, "target", ckpt_run_target(run));
  text_member(f, "run", ckpt_run_id(run));
  text_member(f, "policies", s->policies ? s->policies : "builtin");
  ruling_print(f, run);
  print_newest(f, s);
  fprintf(f, "committed  %u, ", s->committed);
  text_size(f, s->bytes_committed);
  fprintf(f, " (let go %u, skipped %u, failed %u, not proven whole %u)\n", s->dropped, s->skipped,
          s->failed, s->unproven);
  if (s->policy_fallbacks > 0)
    fprintf(f, "fallbacks  %llu: a policy failed, and the safe answer held\n",
            (unsigned long long)s->policy_fallbacks);
  for (size_t i = 0; i < o->pending_count; i++) print_pending(f, &o->pending[i]);
  if (s->fenced)
    text_member(f, "fenced", "a newer run writes to this target; nothing more is saved");
  evict_print(f, cost);
  print_standing(f, o);
}

static void print_json(FILE *f, ckpt_run *run, const outcome *o, const ckpt_evict *cost) {
  record r = record_begin(f);
  record_bool(&r, "alive", true);
  record_name(&r, "directory", ckpt_run_dir(run));
  record_text(&r, "target", ckpt_run_target(run));
  record_text(&r, "run", ckpt_run_id(run));
  outcome_json_state(&r, o);
  ruling_json(&r, run);
  record inner = record_begin(record_key(&r, "evict"));
  evict_json(&inner, cost);
  record_end(&inner);
  record_end_line(&r);
}

int status_answer(ckpt_run *run, bool json, FILE *out) {
  outcome o = {0};
  ckpt_evict cost = {.size = sizeof cost};
  if (ckpt_run_evict(run, &cost) < 0) return -1;
  outcome_take(&o, run);
  if (json)
    print_json(out, run, &o, &cost);
  else
    print_status(out, run, &o, &cost);
  outcome_free(&o);
  return 0;
}
