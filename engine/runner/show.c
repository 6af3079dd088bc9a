/* `show`: all that is known of one checkpoint. */
#include <string.h>

#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

static void member(FILE *f, const char *key, const char *value) {
  if (!value || !*value) return;
  fprintf(f, "%-10s ", key);
  text_plain(f, value);
  fputc('\n', f);
}

static void write_item(FILE *f, const ckpt_item *item, void *ctx) {
  (void)ctx;
  fputs("checkpoint ", f);
  item_name(f, item);
  fputc('\n', f);
  if (item->dir && item->name && strcmp(item->dir, item->name) != 0)
    member(f, "saved as", item->name);
  if (item->step >= 0) fprintf(f, "step       %lld\n", (long long)item->step);
  fprintf(f, "files      %llu, ", (unsigned long long)item->files);
  text_size(f, item->bytes);
  fputs("\ncommitted  ", f);
  text_time(f, item->time_ns);
  fputs(", ", f);
  text_age(f, (double)(command_wall_ns() - item->time_ns) / 1e9, 0);
  fprintf(f, " ago, entry %llu of the log\n", (unsigned long long)item->number);
  if (item->bad)
    member(f, "bad", item->bad_reason && *item->bad_reason ? item->bad_reason : "no reason given");
  member(f, "policy", item->policy);
  member(f, "reason", item->reason);
  member(f, "metrics", item->metrics);
  member(f, "root", item->root);
  member(f, "uri", item->uri);
}

/* With --json all that log and manifest say, each file included. */
static int show_json(const options *o) {
  ckpt *engine = NULL;
  const char *json = NULL;
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_show(engine, o->uri, o->name, &json);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else {
    text_json_printed(stdout, json);
    fputc('\n', stdout);
  }
  ckpt_close(engine);
  return command_end(code);
}

int verb_show(const options *o) {
  return o->json ? show_json(o) : command_newest(o, write_item, NULL);
}
