#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "runner/cli/record.h"
#include "runner/cli/text.h"

/* More of them are counted: the listener cuts an answer of 128 KiB off. A name may take some KiB. */
enum { ANSWER_MOST = 64 << 10, RULING_MOST = 8 << 10 };

typedef struct changes {
  FILE *out;
  bool json;
  long most;      /* bytes */
  unsigned shown; /* of them */
  bool full;      /* those behind are not shown */
} changes;

static void json_change(FILE *f, const ckpt_reload_change *c) {
  record r = record_begin(f);
  record_name(&r, "group", c->group);
  record_name(&r, "name", c->name);
  record_count(&r, "commit", c->commit);
  record_step(&r, "step", c->step);
  record_bool(&r, "before", c->before);
  record_bool(&r, "after", c->after);
  record_prose(&r, "before_reason", c->before_reason);
  record_prose(&r, "after_reason", c->after_reason);
  record_end(&r);
}

static void print_change(FILE *f, const ckpt_reload_change *c) {
  fputs(c->after ? "would stay " : "would go   ", f);
  if (*c->group) {
    text_plain(f, c->group);
    fputc('/', f);
  }
  text_plain(f, c->name);
  fputs(": ", f);
  text_prose(f, c->after_reason);
  fputs(c->after ? "; let go by those before: " : "; kept by those before: ", f);
  text_prose(f, c->before_reason);
  fputc('\n', f);
}

static int on_change(void *ctx, const ckpt_reload_change *c) {
  changes *all = ctx;
  char *text = NULL;
  size_t size = 0;
  FILE *one = all->full ? NULL : open_memstream(&text, &size);
  if (!one) return 0;
  (all->json ? json_change : print_change)(one, c);
  all->full = fclose(one) != 0 || ftell(all->out) + (long)size > all->most;
  if (!all->full) {
    if (all->json && all->shown > 0) fputc(',', all->out);
    fwrite(text, 1, size, all->out);
    all->shown++;
  }
  free(text);
  return 0;
}

static void print_rest(FILE *f, const ckpt_reloaded *s, const changes *c) {
  if (s->changes > c->shown)
    fprintf(f, "           and %llu more\n", (unsigned long long)s->changes - c->shown);
}

/* What would go goes a part at a time. */
static void print_limit(FILE *f, const ckpt_reloaded *s) {
  if (s->changes > 0 && s->max_delete < 1)
    fprintf(f, "           one pass lets %g%% of what is kept go at most (--max-delete)\n",
            s->max_delete * 100);
}

static void print_time(FILE *f, double left) {
  if (isinf(left)) {
    fputs("never", f);
    return;
  }
  fputs("in ", f);
  text_age(f, left, 0);
}

static void print_done(FILE *f, const ckpt_reloaded *s, const changes *c, const char *lines) {
  fputs(s->dry ? "would take " : "taken      ", f);
  text_plain(f, s->policies);
  fputs(", in place of ", f);
  text_plain(f, s->replaced);
  fputc('\n', f);
  fputs(lines, f);
  print_rest(f, s, c);
  print_limit(f, s);
  if (*s->stays) {
    fputs("stays      ", f);
    text_plain(f, s->stays);
    fputs(": as those before have it, until the next start\n", f);
  }
  if (s->changes == 0 && s->uncompared == 0)
    fputs("           both keep the same of what is there now\n", f);
  if (*s->newest_only) {
    fputs("files      older checkpoints lose, for good, by newest_only: ", f);
    text_plain(f, s->newest_only);
    fputc('\n', f);
  }
  if (s->uncompared > 0)
    fprintf(f, "           %llu commits were not compared, as that takes long\n",
            (unsigned long long)s->uncompared);
  if (s->left_s <= 0) return;
  fputs("alone      ", f);
  print_time(f, s->left_s);
  fputs(s->dry ? " it would rule" : " it rules", f);
  fputs(" alone what is kept: until then what those before keep stays, too\n", f);
}

static void json_done(FILE *f, const ckpt_reloaded *s, const char *items) {
  record r = record_begin(f);
  record_bool(&r, "taken", !s->dry);
  record_bool(&r, "dry_run", s->dry);
  record_text(&r, "policies", s->policies);
  record_text(&r, "replaced", s->replaced);
  record_text(&r, "stays", s->stays);
  record_text(&r, "newest_only", s->newest_only);
  if (isinf(s->left_s))
    record_text(&r, "left_s", NULL);
  else
    record_seconds(&r, "left_s", s->left_s);
  record_count(&r, "differences_all", s->changes);
  record_count(&r, "uncompared", s->uncompared);
  fprintf(record_key(&r, "max_delete"), "%g", s->max_delete);
  fprintf(record_key(&r, "differences"), "[%s]", items);
  record_end_line(&r);
}

/* A failure is one line, which the verb shows as errors are shown. */
static void print_failure(FILE *out, int status, const char *before, const char *text) {
  fprintf(out, "over %d\n%s", status, before);
  text_prose(out, text);
  fputc('\n', out);
}

static void print_over(FILE *out, const ckpt_reloaded *s, bool json, const changes *c,
                       const char *lines) {
  if (s->status != CKPT_OK) {
    print_failure(out, (int)s->status, "not taken, those before go on: ", s->text);
    return;
  }
  fprintf(out, "over %d\n", CKPT_OK);
  if (json)
    json_done(out, s, lines);
  else
    print_done(out, s, c, lines);
}

int reloaded_answer(ckpt_run *run, uint64_t job, bool json, FILE *out) {
  ckpt_reloaded s = {.size = sizeof s};
  changes c = {.json = json, .most = ANSWER_MOST};
  char *lines = NULL;
  size_t size = 0;
  c.out = open_memstream(&lines, &size);
  if (!c.out) return CKPT_ENOMEM;
  int rc = ckpt_run_reloaded(run, job, &s, on_change, &c);
  if (fclose(c.out) != 0 && rc >= 0) rc = CKPT_ENOMEM;
  if (rc >= 0 && !s.over) fputs("reading\n", out);
  if (rc >= 0 && s.over) print_over(out, &s, json, &c, lines);
  free(lines);
  if (rc != CKPT_ENOENT) return rc;
  print_failure(
      out, CKPT_EHELD, "",
      "another reload was asked for since, and what came of this one is not known any more: "
      "`ckpt-lua status` tells which policies the run has");
  return 0;
}

void reload_answer(ckpt *engine, ckpt_run *run, const ckpt_reload_options *o, FILE *out) {
  uint64_t job = 0;
  int rc = ckpt_run_reload(run, o, &job);
  if (job > 0) /* it has begun, whatever else failed */
    fprintf(out, "job %llu\n", (unsigned long long)job);
  else
    print_failure(out, rc, "", ckpt_error(engine));
}

void ruling_print(FILE *out, ckpt_run *run) {
  ckpt_reloaded s = {.size = sizeof s};
  changes c = {.most = RULING_MOST};
  char *lines = NULL;
  size_t size = 0;
  c.out = open_memstream(&lines, &size);
  if (!c.out) return;
  int rc = ckpt_run_reloaded(run, 0, &s, on_change, &c);
  if (fclose(c.out) == 0 && rc >= 0 && *s.replaced) {
    fputs("beside     ", out);
    text_plain(out, s.replaced);
    fputs(": what it keeps stays; the newest rule alone ", out);
    print_time(out, s.left_s);
    fputc('\n', out);
    fputs(lines, out);
    print_rest(out, &s, &c);
  }
  free(lines);
}

void ruling_json(record *r, ckpt_run *run) {
  ckpt_reloaded s = {.size = sizeof s};
  changes c = {.json = true, .most = RULING_MOST};
  char *items = NULL;
  size_t size = 0;
  c.out = open_memstream(&items, &size);
  if (!c.out) return;
  int rc = ckpt_run_reloaded(run, 0, &s, on_change, &c);
  if (fclose(c.out) == 0 && rc >= 0 && *s.replaced) {
    record_text(r, "policies_before", s.replaced);
    if (!isinf(s.left_s)) record_seconds(r, "policies_before_left_s", s.left_s);
    record_count(r, "would_go_all", s.changes);
    fprintf(record_key(r, "would_go"), "[%s]", items);
  }
  free(items);
}
