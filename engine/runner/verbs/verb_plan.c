/* `plan`: shows what retention would do at a target. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"
#include "verbs.h"

static const char *const verdicts[] = {
    [CKPT_KEEP] = "keep", [CKPT_GUARDED] = "guarded", [CKPT_LIMITED] = "limited",
    [CKPT_DROP] = "drop", [CKPT_WAIT] = "wait",       [CKPT_DELETE] = "delete"};
enum { VERDICTS = sizeof verdicts / sizeof *verdicts };

typedef struct planned {
  table table;
  const options *o;
  const ckpt_verdict *verdict; /* whose row is written */
  size_t counts[VERDICTS];
  uint64_t bytes[VERDICTS];
  size_t losers; /* that stay without some of their files */
  uint64_t lost_files, lost_bytes;
} planned;

/* Returns when its data is gone at the earliest; negative: never, as things stand. */
static double seconds_to_go(const options *o, const ckpt_verdict *v) {
  if (v->verdict == CKPT_DELETE) return 0;
  if (o->run.flags & CKPT_NO_DELETE) return -1;
  double left = v->verdict == CKPT_DROP || v->verdict == CKPT_WAIT ? v->wait_s : -1;
  return isinf(left) ? -1 : left;
}

static void json_loses(record *r, const ckpt_verdict *v) {
  if (!v->lost_globs) return;
  record loses = record_begin(record_key(r, "loses"));
  FILE *f = record_key(&loses, "globs");
  for (size_t i = 0; v->lost_globs[i]; i++) {
    fputc(i ? ',' : '[', f);
    text_json(f, v->lost_globs[i]);
  }
  fputc(']', f);
  record_count(&loses, "files", v->lost_files);
  record_count(&loses, "bytes", v->lost_bytes);
  record_seconds(&loses, "in_s", v->lost_wait_s);
  record_end(&loses);
}

static void json_verdict(const options *o, const ckpt_verdict *v) {
  record r = record_begin(stdout);
  record_text(&r, "verdict", verdicts[v->verdict]);
  record_text(&r, "by", v->policy ? v->policy : "");
  record_text(&r, "why", v->reason ? v->reason : "");
  record_seconds(&r, "deleted_in_s", seconds_to_go(o, v));
  json_loses(&r, v);
  item_json_line(&r, v->item);
}

static void write_loses(FILE *f, const ckpt_verdict *v) {
  if (!v->lost_globs) return;
  fprintf(f, "; loses %" PRIu64 " file%s (", v->lost_files, v->lost_files == 1 ? "" : "s");
  text_size(f, v->lost_bytes);
  if (v->lost_wait_s > 0) {
    fputs(") in ", f);
    text_age(f, v->lost_wait_s, 0);
  } else {
    fputs(v->lost_wait_s < 0 ? ") in a later pass" : ") now", f);
  }
  for (size_t i = 0; v->lost_globs[i]; i++) {
    fputs(i ? ", " : ": ", f);
    text_plain(f, v->lost_globs[i]);
  }
}

static void write_cell(FILE *f, int column, const void *ctx) {
  const planned *p = ctx;
  const ckpt_verdict *v = p->verdict;
  double wait_s = seconds_to_go(p->o, v);
  switch (column) {
  case 0: fputs(verdicts[v->verdict], f); break;
  case 1: item_name(f, v->item); break;
  case 2: text_size(f, v->item->bytes); break;
  case 3:
    if (wait_s > 0) {
      fputs("in ", f);
      text_age(f, wait_s, 0);
    } else {
      fputs(wait_s == 0 ? "now" : "-", f);
    }
    break;
  default:
    if (v->policy && *v->policy) {
      text_plain(f, v->policy);
      fputs(": ", f);
    }
    text_plain(f, v->reason ? v->reason : "");
    write_loses(f, v);
  }
}

static int take_verdict(void *ctx, const ckpt_verdict *v) {
  planned *p = ctx;
  if (v->verdict >= VERDICTS) return 0; /* of a newer library */
  p->counts[v->verdict]++;
  p->bytes[v->verdict] += v->item->bytes;
  p->losers += v->lost_globs != NULL;
  p->lost_files += v->lost_files;
  p->lost_bytes += v->lost_bytes;
  if (p->o->json) {
    json_verdict(p->o, v);
    return ferror(stdout);
  }
  p->verdict = v;
  table_add(&p->table, write_cell, p);
  return p->table.failed;
}

static void print_sum(const planned *p) {
  size_t kept = p->counts[CKPT_KEEP] + p->counts[CKPT_GUARDED] + p->counts[CKPT_LIMITED];
  printf("%zu stay%s, %zu would be dropped (", kept, kept == 1 ? "s" : "", p->counts[CKPT_DROP]);
  text_size(stdout, p->bytes[CKPT_DROP]);
  printf("), %zu wait%s for the end of the grace (", p->counts[CKPT_WAIT],
         p->counts[CKPT_WAIT] == 1 ? "s" : "");
  text_size(stdout, p->bytes[CKPT_WAIT]);
  printf("), %zu would be deleted now (", p->counts[CKPT_DELETE]);
  text_size(stdout, p->bytes[CKPT_DELETE]);
  puts(")");
  if (!p->losers) return;
  printf("%zu of those that stay would lose %" PRIu64 " file%s (", p->losers, p->lost_files,
         p->lost_files == 1 ? "" : "s");
  text_size(stdout, p->lost_bytes);
  puts(") that only the newest keep");
}

static int run(const options *o) {
  ckpt *engine = NULL;
  planned p = {
      .table = {.heads = {"VERDICT", "NAME", "SIZE", "DELETED", "WHY"}, .left = 1 | 2 | 16},
      .o = o};
  const ckpt_plan_options options = options_plan(o);
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_plan(engine, &options, take_verdict, &p);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (p.table.failed) {
    report_error("out of memory");
    code = EXIT_FAILED;
  } else if (!o->json) {
    if (p.table.count > 0) table_print(&p.table, stdout);
    print_sum(&p);
  }
  table_free(&p.table);
  ckpt_close(engine);
  return command_end(code);
}

const verb verb_plan = {
    .name = "plan",
    .synopsis = "plan URI [-p POLICY] [options]",
    .summary = "say what retention would do at a target now, and why; changes nothing",
    .flags = FLAGS_PLAN,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
