/* `plan`, `rm`, `pin`, `unpin`: what stays in a target, and what goes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

/* ---- plan ---- */

static const char *const verdicts[] = {
    [CKPT_KEEP] = "keep", [CKPT_GUARDED] = "guarded", [CKPT_LIMITED] = "limited",
    [CKPT_DROP] = "drop", [CKPT_WAIT] = "wait",       [CKPT_DELETE] = "delete"};
enum { VERDICTS = sizeof verdicts / sizeof *verdicts };

typedef struct planned {
  table table;
  const options *o;
  size_t counts[VERDICTS];
  uint64_t bytes[VERDICTS];
} planned;

/* When its data is gone at the earliest; negative: never, as things stand. */
static double seconds_to_go(const options *o, const ckpt_verdict *v) {
  const double a_day = 86400;
  double grace = o->grace_delete_s < 0 ? 0 : o->grace_delete_s > 0 ? o->grace_delete_s : a_day;
  if (v->verdict == CKPT_DELETE) return 0;
  if (o->no_delete) return -1;
  double left = v->verdict == CKPT_DROP ? grace : v->verdict == CKPT_WAIT ? v->wait_s : -1;
  return isinf(left) ? -1 : left;
}

static void json_verdict(const options *o, const ckpt_verdict *v) {
  double wait_s = seconds_to_go(o, v);
  printf("{\"verdict\":\"%s\",\"by\":", verdicts[v->verdict]);
  text_json(stdout, v->policy ? v->policy : "");
  fputs(",\"why\":", stdout);
  text_json(stdout, v->reason ? v->reason : "");
  if (wait_s >= 0)
    printf(",\"deleted_in_s\":%.0f", wait_s);
  else
    fputs(",\"deleted_in_s\":null", stdout);
  fputc(',', stdout);
  item_json(stdout, v->item);
  fputs("}\n", stdout);
}

static void write_cell(FILE *f, int column, const options *o, const ckpt_verdict *v) {
  double wait_s = seconds_to_go(o, v);
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
  }
}

static int take_verdict(void *ctx, const ckpt_verdict *v) {
  planned *p = ctx;
  if (v->verdict >= VERDICTS) return 0; /* of a newer library */
  p->counts[v->verdict]++;
  p->bytes[v->verdict] += v->item->bytes;
  if (p->o->json) {
    json_verdict(p->o, v);
    return ferror(stdout);
  }
  char **row = table_row(&p->table);
  for (int i = 0; i < TABLE_COLUMNS && p->table.heads[i]; i++) {
    FILE *f = table_cell(&p->table, row, i);
    if (f) write_cell(f, i, p->o, v);
    table_close(&p->table, f);
  }
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
}

int verb_plan(const options *o) {
  ckpt *engine = NULL;
  planned p = {
      .table = {.heads = {"VERDICT", "NAME", "SIZE", "DELETED", "WHY"}, .left = 1 | 2 | 16},
      .o = o};
  ckpt_plan_options options = {.size = sizeof options,
                               .uri = o->uri,
                               .policies = options_policies(o),
                               .settings = (const char *const *)o->settings.items,
                               .max_delete = o->max_delete,
                               .grace_delete_s = o->grace_delete_s,
                               .flags = o->no_delete ? CKPT_NO_DELETE : 0};
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

/* ---- rm ---- */

typedef struct removed {
  const options *o;
  size_t count;
} removed;

static int print_removed(void *ctx, const ckpt_item *item) {
  removed *r = ctx;
  const char *what = item->life == CKPT_LIFE_DELETED ? "deleted" : "dropped";
  r->count++;
  if (r->o->json) {
    printf("{\"done\":\"%s\",\"dry_run\":%s,", what, r->o->dry_run ? "true" : "false");
    item_json(stdout, item);
    fputs("}\n", stdout);
    return 0;
  }
  printf("%s%s ", r->o->dry_run ? "would be " : "", what);
  item_name(stdout, item);
  item_size(stdout, item);
  fputc('\n', stdout);
  return 0;
}

int verb_rm(const options *o) {
  ckpt *engine = NULL;
  removed r = {.o = o};
  ckpt_remove_options options = {.size = sizeof options,
                                 .uri = o->uri,
                                 .name = o->name,
                                 .grace_delete_s = o->grace_delete_s,
                                 .flags = (o->all ? CKPT_REMOVE_ALL : 0u) |
                                          (o->dry_run ? CKPT_DRY_RUN : 0u)};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_remove(engine, &options, print_removed, &r);
  if (rc < 0)
    code = command_failed(engine, rc);
  else if (r.count == 0)
    report_info("nothing to remove at %s", o->uri);
  ckpt_close(engine);
  return command_end(code);
}

/* ---- pins ---- */

/* Only looks whether there is such a checkpoint. */
static void write_would_pin(FILE *f, const ckpt_item *item, void *ctx) {
  const options *o = ctx;
  if (o->json) {
    fputs("{\"dry_run\":true,", f);
    item_json(f, item);
    fputs("}\n", f);
  } else {
    fputs("would pin ", f);
    item_name(f, item);
    fputc('\n', f);
  }
}

static void print_pin(const options *o, const char *id) {
  if (!o->json) {
    puts(id); /* for: ckpt-lua unpin URI ID */
    return;
  }
  fputs("{\"name\":", stdout);
  text_json_name(stdout, o->name);
  printf(",\"id\":\"%s\"", id);
  if (o->pin_s > 0)
    printf(",\"seconds\":%.0f}\n", o->pin_s);
  else
    fputs(",\"seconds\":null}\n", stdout);
}

int verb_pin(const options *o) {
  ckpt *engine = NULL;
  char id[33];
  int code = EXIT_DONE;
  if (o->dry_run) return command_newest(o, write_would_pin, (void *)o);
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_pin(engine, o->uri, o->name, o->pin_s, id);
  if (rc < 0)
    code = command_failed(engine, rc);
  else
    print_pin(o, id);
  ckpt_close(engine);
  return command_end(code);
}

int verb_unpin(const options *o) {
  ckpt *engine = NULL;
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_unpin(engine, o->uri, o->name);
  if (rc < 0)
    code = command_failed(engine, rc);
  else if (o->json)
    printf("{\"removed\":%d}\n", rc);
  else
    report_info("%d pin%s removed", rc, rc == 1 ? "" : "s");
  ckpt_close(engine);
  return command_end(code);
}
