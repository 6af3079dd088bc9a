#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "runner/cli/record.h"
#include "runner/cli/text.h"

/* Collects the findings: the cause, which comes last, is written before them. */
typedef struct story {
  FILE *out;
  char *text;
  size_t size;
  bool json;
  unsigned count;
  char standing[32]; /* "": not known */
} story;

static int take_finding(void *ctx, const ckpt_finding *f) {
  story *s = ctx;
  if (strcmp(f->topic, "standing") == 0) {
    snprintf(s->standing, sizeof s->standing, "%s", f->text);
    return 0;
  }
  if (s->json) {
    if (s->count++) fputc(',', s->out);
    record r = record_begin(s->out);
    record_text(&r, "topic", f->topic);
    record_prose(&r, "text", f->text);
    if (f->time_ns)
      record_time(&r, "time", f->time_ns);
    else
      record_text(&r, "time", NULL);
    record_end(&r);
    return 0;
  }
  fputs("  ", s->out);
  if (f->time_ns)
    text_time(s->out, f->time_ns);
  else
    fprintf(s->out, "%-20s", "");
  fprintf(s->out, "  %-9s  ", f->topic);
  text_prose(s->out, f->text);
  fputc('\n', s->out);
  return 0;
}

static void print_json(FILE *out, const char *name, const char *cause, const char *text,
                       const story *s) {
  record r = record_begin(out);
  record_name(&r, "name", name);
  record_text(&r, "cause", cause);
  record_prose(&r, "text", text);
  record_text(&r, "standing", *s->standing ? s->standing : NULL);
  fprintf(record_key(&r, "findings"), "[%s]", s->text);
  record_end_line(&r);
}

/* Writes the word as people do: "not durable". */
static void print_standing(FILE *out, const char *word) {
  if (!*word) return;
  fprintf(out, "  %-20s  %-9s  ", "", "standing");
  for (; *word; word++) fputc(*word == '_' ? ' ' : *word, out);
  fputc('\n', out);
}

static void print_text(FILE *out, const char *name, const char *cause, const char *text,
                       const story *s) {
  text_plain(out, name);
  fprintf(out, ": %s\n  ", cause);
  text_prose(out, text);
  fprintf(out, "\n%s", s->text);
  print_standing(out, s->standing);
}

int why_print(ckpt *engine, ckpt_run *run, const ckpt_why_options *o, bool json, FILE *out) {
  story s = {.json = json};
  const char *cause = "", *text = "";
  s.out = open_memstream(&s.text, &s.size);
  if (!s.out) return CKPT_ENOMEM;
  int rc = run ? ckpt_run_why(run, o->name, take_finding, &s, &cause, &text)
               : ckpt_why(engine, o, take_finding, &s, &cause, &text);
  if (fclose(s.out) != 0 && rc >= 0) rc = CKPT_ENOMEM;
  if (rc >= 0) (json ? print_json : print_text)(out, o->name, cause, text, &s);
  free(s.text);
  return rc;
}

int why_answer(ckpt_run *run, const char *name, bool json, FILE *out) {
  ckpt_why_options o = {.size = sizeof o, .name = name};
  return why_print(NULL, run, &o, json, out);
}
