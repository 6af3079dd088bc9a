/* `gc`: what nobody needs any more goes. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

typedef struct tally {
  const options *o;
  size_t gone, failed;
  uint64_t bytes;
} tally;

/* It stays, and is named. */
static bool is_left(const ckpt_collected *c) {
  return strcmp(c->what, "left") == 0;
}

static void print_json(const tally *t, const ckpt_collected *c) {
  printf("{\"done\":%s,\"dry_run\":%s,\"what\":", c->status < 0 || is_left(c) ? "false" : "true",
         t->o->dry_run ? "true" : "false");
  text_json(stdout, c->what);
  fputs(",\"group\":", stdout);
  text_json_name(stdout, c->log);
  fputs(",\"name\":", stdout);
  text_json_name(stdout, c->name);
  fputs(",\"reason\":", stdout);
  text_json(stdout, c->reason);
  printf(",\"bytes\":%llu}\n", (unsigned long long)c->bytes);
}

static const char *word_for(const tally *t, const ckpt_collected *c) {
  bool commits = strcmp(c->what, "commit") == 0;
  if (t->o->dry_run) return commits ? "would commit" : "would remove";
  return commits ? "committed" : "removed";
}

static void write_line(FILE *f, const tally *t, const ckpt_collected *c) {
  bool commits = strcmp(c->what, "commit") == 0;
  if (c->status == 0 && !is_left(c)) fprintf(f, "%s ", word_for(t, c));
  fprintf(f, "%s ", commits ? "save" : c->what);
  text_plain(f, c->log);
  if (*c->log && *c->name) fputc('/', f);
  text_plain(f, c->name);
  if (c->bytes > 0) {
    fputs(" (", f);
    text_size(f, c->bytes);
    fputc(')', f);
  }
  fputs(c->status < 0 ? " stays: " : ": ", f);
  text_plain(f, c->reason);
}

/* What went is data; what did not is a complaint. */
static void print_line(const tally *t, const ckpt_collected *c) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  write_line(f, t, c);
  if (fclose(f) == 0 && c->status < 0) report_error("%s", text);
  if (c->status == 0) puts(text);
  free(text);
}

static int take(void *ctx, const ckpt_collected *c) {
  tally *t = ctx;
  t->gone += c->status == 0 && !is_left(c);
  t->failed += c->status < 0;
  if (c->status == 0 && !is_left(c)) t->bytes += c->bytes;
  if (t->o->json)
    print_json(t, c);
  else
    print_line(t, c);
  return ferror(stdout);
}

static void print_sum(const tally *t) {
  if (t->o->json) {
    printf("{\"removed\":%zu,\"bytes\":%llu,\"failed\":%zu,\"dry_run\":%s}\n", t->gone,
           (unsigned long long)t->bytes, t->failed, t->o->dry_run ? "true" : "false");
    return;
  }
  printf("%s: %zu thing%s (", t->o->dry_run ? "would be done" : "done", t->gone,
         t->gone == 1 ? "" : "s");
  text_size(stdout, t->bytes);
  printf("), %zu failed\n", t->failed);
}

/* A log that cannot be read is no damaged checkpoint, and what is not there any more is no empty
 * target. */
static int code_of(int rc) {
  int code = exit_code_of(rc);
  return code == EXIT_CORRUPT || code == EXIT_NOTHING || code == EXIT_USAGE ? EXIT_FAILED : code;
}

int verb_gc(const options *o) {
  ckpt *engine = NULL;
  tally t = {.o = o};
  ckpt_collect_options options = {.size = sizeof options,
                                  .remove = o->remove,
                                  .uri = o->uri,
                                  .grace_delete_s = o->grace_delete_s,
                                  .flags = (o->dry_run ? CKPT_DRY_RUN : 0u) |
                                           (o->remove_run ? CKPT_COLLECT_RUN : 0u)};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_collect(engine, &options, take, &t);
  if (rc < 0) {
    code = command_failed(engine, rc);
    if (t.failed > 0) code = code_of(rc);
  }
  if (rc == 0 || t.gone + t.failed > 0) print_sum(&t);
  ckpt_close(engine);
  return command_end(code);
}
