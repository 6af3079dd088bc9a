/* `policy diff`: the shortest list of checkpoints of which two policies keep different ones. */
#include <inttypes.h>

#include "policy_verbs.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/run_flags.h"
#include "runner/cli/text.h"

static const char *const words[] = {
    [CKPT_DIFFERENT] = "differ", [CKPT_EQUAL] = "equal", [CKPT_NONE_FOUND] = "none found"};
enum { WORDS = sizeof words / sizeof *words };

typedef struct compared {
  const options *o;
  table table;
  const ckpt_difference *row; /* that is written */
} compared;

static void json_item(const ckpt_difference *d) {
  record r = record_begin(stdout);
  record_text(&r, "key", d->key);
  record_text(&r, "name", d->name);
  record_prose(&r, "facts", d->facts);
  record_bool(&r, "a", d->a);
  record_bool(&r, "b", d->b);
  record_prose(&r, "why_a", d->why_a);
  record_prose(&r, "why_b", d->why_b);
  record_end_line(&r);
}

static void write_texts(FILE *f, const char *const *texts) {
  for (size_t i = 0; texts[i]; i++) {
    if (i) fputs("; ", f);
    text_prose(f, texts[i]);
  }
}

static void json_texts(record *r, const char *key, const char *const *texts) {
  char joined[1000] = "";
  size_t len = 0;
  for (size_t i = 0; texts[i] && len < sizeof joined; i++)
    len += (size_t)snprintf(joined + len, sizeof joined - len, "%s%s", i ? "; " : "", texts[i]);
  record_prose(r, key, joined);
}

static void json_word(const ckpt_difference *d) {
  record r = record_begin(stdout);
  record_text(&r, "key", d->key);
  record_text(&r, "verdict", words[d->verdict]);
  if (*d->why) record_prose(&r, "why", d->why);
  if (d->checkpoints) record_count(&r, "checkpoints", d->checkpoints);
  record_count(&r, "lists", d->lists);
  json_texts(&r, "searched", d->searched);
  json_texts(&r, "held", d->held);
  record_end_line(&r);
}

static void write_word(FILE *f, bool keeps, const char *why) {
  fputs(keeps ? "kept: " : "goes: ", f);
  text_prose(f, why);
}

static void write_cell(FILE *f, int column, const void *ctx) {
  const ckpt_difference *d = ((const compared *)ctx)->row;
  switch (column) {
  case 0: fputs(d->a != d->b ? "*" : "", f); break;
  case 1: text_prose(f, d->facts); break;
  case 2: write_word(f, d->a, d->why_a); break;
  default: write_word(f, d->b, d->why_b);
  }
}

static void start_table(compared *c) {
  c->table = (table){.heads = {"", "CHECKPOINT", c->o->name, c->o->file}, .left = 1 | 2 | 4 | 8};
}

static void print_word(compared *c, const ckpt_difference *d) {
  switch (d->verdict) {
  case CKPT_DIFFERENT:
    printf("%s: they differ with %" PRIu64 " checkpoint%s, the oldest first:\n", d->key,
           d->checkpoints, d->checkpoints == 1 ? "" : "s");
    table_print(&c->table, stdout);
    break;
  case CKPT_EQUAL: printf("%s: they are equal on all that was searched\n", d->key); break;
  default:
    printf("%s: no difference was found; that there is none is not shown: ", d->key);
    text_prose(stdout, d->why);
    putchar('\n');
  }
  printf("searched: %" PRIu64 " lists: ", d->lists);
  write_texts(stdout, d->searched);
  fputs("\nheld constant: ", stdout);
  write_texts(stdout, d->held);
  putchar('\n');
}

static int take_difference(void *ctx, const ckpt_difference *d) {
  compared *c = ctx;
  if (d->name && c->o->json) {
    json_item(d);
  } else if (d->name) {
    c->row = d;
    table_add(&c->table, write_cell, c);
    return c->table.failed;
  } else if (d->verdict == 0 || d->verdict >= WORDS) {
    return 0; /* of a newer library */
  } else if (c->o->json) {
    json_word(d);
  } else {
    print_word(c, d);
    table_free(&c->table);
    start_table(c);
  }
  return ferror(stdout);
}

static int run(const options *o) {
  ckpt *engine = NULL;
  compared c = {.o = o};
  const ckpt_diff_options options = {
      .size = sizeof options, .a = o->name, .b = o->file, .settings = o->run.settings};
  start_table(&c);
  int code = EXIT_DONE, rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_policy_diff(engine, &options, take_difference, &c);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (c.table.failed) {
    report_error("out of memory");
    code = EXIT_FAILED;
  }
  table_free(&c.table);
  ckpt_close(engine);
  return command_end(code);
}

static const char help[] =
    "A and B are paths, or names of shipped policies. Made-up checkpoints are asked about, the\n"
    "fewest first. \"Equal\" is said only where no function of a policy's own decides, and all "
    "that\n"
    "the rules can tell apart was searched: every order of up to 8 checkpoints by each metric, "
    "and\n"
    "steps, times and sizes below, at and above each constant, together. Nothing is written.\n";

const verb verb_policy_diff = {
    .name = "policy diff",
    .synopsis = "policy diff A B [options]",
    .summary = "say with which checkpoints two policies differ, as few as can be",
    .text = help,
    .flags = FLAGS_CHECK,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {2, 2, "A and B", {OF(name), OF(file)}, 0, false},
    .run = run,
};
