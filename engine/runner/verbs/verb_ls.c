/* `ls`: lists the checkpoints of a target. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "verbs.h"

typedef struct listing {
  table table;
  size_t count;
  int64_t now_ns;
  const ckpt_item *item; /* whose row is written */
  bool json;
  int metrics, bad; /* columns; 0: there is none */
} listing;

enum { COLUMNS = 6 }; /* that there always are */

/* "eval_loss=2 loss=2.5", for people. */
static void write_metrics(FILE *f, const char *text) {
  json_t *all = NULL, *value;
  const char *key, *gap = "";
  if (!text || js_parse(text, strlen(text), "metrics", &all, NULL) < 0) return;
  json_object_foreach(all, key, value) {
    buf printed;
    buf_init(&printed, strlen(text) + 1);
    const char *plain = json_string_value(value);
    if (plain || js_print(value, &printed, NULL) == 0) {
      fputs(gap, f);
      text_plain(f, key);
      fputc('=', f);
      text_plain(f, plain ? plain : printed.data);
      gap = " ";
    }
    buf_free(&printed);
  }
  json_decref(all);
}

static void write_mark(FILE *f, const ckpt_item *item) {
  if (item->bad)
    text_plain(f, item->bad_reason && *item->bad_reason ? item->bad_reason : "no reason given");
}

static void write_cell(FILE *f, int column, const void *ctx) {
  const listing *l = ctx;
  const ckpt_item *item = l->item;
  switch (column) {
  case 0: item_name(f, item); break;
  case 1:
    if (item->step >= 0)
      fprintf(f, "%lld", (long long)item->step);
    else
      fputc('-', f);
    break;
  case 2: fprintf(f, "%llu", (unsigned long long)item->files); break;
  case 3: text_size(f, item->bytes); break;
  case 4: text_age(f, (double)(l->now_ns - item->time_ns) / 1e9, 0); break;
  case 5: text_time(f, item->time_ns); break;
  default:
    if (column == l->metrics)
      write_metrics(f, item->metrics);
    else
      write_mark(f, item);
  }
}

static int list_item(void *ctx, const ckpt_item *item) {
  listing *l = ctx;
  l->count++;
  if (l->json) {
    record r = record_begin(stdout);
    item_json_line(&r, item);
    return ferror(stdout);
  }
  if (item->bad) l->table.heads[l->bad] = "BAD"; /* rare, so it has no column otherwise */
  l->item = item;
  table_add(&l->table, write_cell, l);
  return l->table.failed;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  listing l = {.table = {.heads = {"NAME", "STEP", "FILES", "SIZE", "AGE", "COMMITTED"},
                         .left = 1 | 1 << COLUMNS | 1 << (COLUMNS + 1)},
               .now_ns = command_wall_ns(),
               .json = o->json,
               .metrics = o->metrics ? COLUMNS : 0,
               .bad = COLUMNS + o->metrics};
  if (o->metrics) l.table.heads[COLUMNS] = "METRICS";
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_list(engine, o->uri, list_item, &l);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (l.table.failed) {
    report_error("out of memory");
    code = EXIT_FAILED;
  } else if (l.count == 0) {
    report_info("no checkpoint was committed at %s", o->uri);
  } else if (!l.json) {
    table_print(&l.table, stdout);
  }
  table_free(&l.table);
  ckpt_close(engine);
  return command_end(code);
}

static const option_spec opt_metrics = {"metrics", NULL, "show the numbers of each, too", take_set,
                                        .at = OF(metrics)};

static const char help[] =
    "Oldest first, group by group. Exit code: 4 no run has written there, 10 no such store.\n";

const verb verb_ls = {
    .name = "ls",
    .synopsis = "ls URI [options]",
    .summary = "list the checkpoints that were committed",
    .text = help,
    .options = (const option_spec *const[]){&opt_metrics, &option_json, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
