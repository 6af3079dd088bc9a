/* `ls` and `latest`: what a target holds. */
#include <stdlib.h>

#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

/* ---- ls ---- */

typedef struct listing {
  table table;
  size_t count;
  int64_t now_ns;
  bool json;
} listing;

enum { BAD = 6 };

static void write_cell(FILE *f, int column, const ckpt_item *item, int64_t now_ns) {
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
  case 4: text_age(f, (double)(now_ns - item->time_ns) / 1e9, 0); break;
  case 5: text_time(f, item->time_ns); break;
  default:
    if (item->bad)
      text_plain(f, item->bad_reason && *item->bad_reason ? item->bad_reason : "no reason given");
  }
}

static int list_item(void *ctx, const ckpt_item *item) {
  listing *l = ctx;
  l->count++;
  if (l->json) {
    fputc('{', stdout);
    item_json(stdout, item);
    fputs("}\n", stdout);
    return ferror(stdout);
  }
  if (item->bad) l->table.heads[BAD] = "BAD"; /* no column for what hardly ever is */
  char **row = table_row(&l->table);
  for (int i = 0; i < TABLE_COLUMNS && l->table.heads[i]; i++) {
    FILE *f = table_cell(&l->table, row, i);
    if (f) write_cell(f, i, item, l->now_ns);
    table_close(&l->table, f);
  }
  return l->table.failed;
}

int verb_ls(const options *o) {
  ckpt *engine = NULL;
  listing l = {.table = {.heads = {"NAME", "STEP", "FILES", "SIZE", "AGE", "COMMITTED"},
                         .left = 1 | 1 << BAD},
               .now_ns = command_wall_ns(),
               .json = o->json};
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

/* ---- latest ---- */

static void write_latest(FILE *f, const ckpt_item *item, void *ctx) {
  const options *o = ctx;
  if (o->json) {
    fputc('{', f);
    item_json(f, item);
    fputc('}', f);
  } else if (o->uri_only) {
    text_plain(f, item->uri ? item->uri : "");
  } else {
    item_name(f, item);
  }
  fputc('\n', f);
}

int verb_latest(const options *o) {
  return command_newest(o, write_latest, (void *)o);
}
