/* `mark`: says that a checkpoint does not load, or takes that back. */
#include <string.h>

#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

static int print_marked(void *ctx, const ckpt_item *item) {
  const options *o = ctx;
  if (o->json) {
    printf("{\"marked\":\"%s\",\"dry_run\":%s,", o->word, o->dry_run ? "true" : "false");
    item_json(stdout, item);
    fputs("}\n", stdout);
  } else {
    printf("%s %s: ", o->dry_run ? "would mark" : "marked", o->word);
    item_name(stdout, item);
    fputc('\n', stdout);
  }
  return 0;
}

int verb_mark(const options *o) {
  ckpt *engine = NULL;
  ckpt_mark_options options = {.size = sizeof options,
                               .uri = o->uri,
                               .name = o->name,
                               .reason = o->reason,
                               .flags = o->dry_run ? CKPT_DRY_RUN : 0u,
                               .good = strcmp(o->word, "good") == 0};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_mark(engine, &options, print_marked, (void *)o);
  if (rc < 0) code = command_failed(engine, rc);
  ckpt_close(engine);
  return command_end(code);
}
