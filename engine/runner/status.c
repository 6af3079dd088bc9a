/* `status`: how a run stands, told by the run itself while it is alive, else by what it left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "command.h"
#include "flat.h"
#include "outcome.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

/* ---- the run's side ---- */

static void member(FILE *f, const char *key, const char *value) {
  fprintf(f, "%-10s ", key);
  text_plain(f, value);
  fputc('\n', f);
}

static void print_pending(FILE *f, const ckpt_pending *p) {
  fputs("waiting    ", f);
  text_plain(f, p->unit ? p->unit : "?");
  if (p->bytes_left > 0) {
    fputs(", ", f);
    text_size(f, p->bytes_left);
    fputs(" of ", f);
    text_size(f, p->bytes);
    fputs(" left", f);
  }
  fputs(": ", f);
  text_plain(f, p->reason ? p->reason : "");
  fputc('\n', f);
}

static void print_newest(FILE *f, const ckpt_run_status *s) {
  if (!s->newest_unit) {
    member(f, "newest", "none is committed yet");
    return;
  }
  fputs("newest     ", f);
  text_plain(f, s->newest_unit);
  if (s->newest_step >= 0) fprintf(f, " (step %lld)", (long long)s->newest_step);
  fputs(", ", f);
  text_age(f, s->newest_age_s, 0);
  fputs(" ago\n", f);
}

static void print_status(FILE *f, ckpt_run *run, const outcome *o) {
  const ckpt_run_status *s = &o->status;
  member(f, "directory", ckpt_run_dir(run));
  member(f, "target", ckpt_run_target(run));
  member(f, "run", ckpt_run_id(run));
  member(f, "policies", s->policies ? s->policies : "builtin");
  print_newest(f, s);
  fprintf(f, "committed  %u, ", s->committed);
  text_size(f, s->bytes_committed);
  fprintf(f, " (dropped %u, skipped %u, failed %u, not proven whole %u)\n", s->dropped, s->skipped,
          s->failed, s->unproven);
  if (s->policy_fallbacks > 0)
    fprintf(f, "fallbacks  %llu: a policy failed, and the safe answer held\n",
            (unsigned long long)s->policy_fallbacks);
  for (size_t i = 0; i < o->pending_count; i++) print_pending(f, &o->pending[i]);
  if (s->fenced) member(f, "fenced", "a newer run writes to this target; nothing more is saved");
  member(f, "durable",
         outcome_durable(o) ? "yes: the newest complete checkpoint is in the store"
                            : "NO: see what is waited for");
}

static void print_json(FILE *f, ckpt_run *run, const outcome *o) {
  fputs("{\"alive\":true,\"directory\":", f);
  text_json_name(f, ckpt_run_dir(run));
  fputs(",\"target\":", f);
  text_json(f, ckpt_run_target(run));
  fputs(",\"run\":", f);
  text_json(f, ckpt_run_id(run));
  fputc(',', f);
  outcome_json_state(f, o);
  fputs("}\n", f);
}

int status_answer(ckpt_run *run, bool json, FILE *out) {
  outcome o = {0};
  outcome_take(&o, run);
  if (json)
    print_json(out, run, &o);
  else
    print_status(out, run, &o);
  outcome_free(&o);
  return 0;
}

/* ---- the asker's side ---- */

/* The whole of a file of ours, or NULL with errno. */
static char *read_file(const char *path) {
  enum { MOST = 16 << 20 };
  FILE *f = fopen(path, "re");
  char *text = NULL;
  size_t size = 0;
  FILE *copy = f ? open_memstream(&text, &size) : NULL;
  int c, error = f && !copy ? ENOMEM : errno;
  while (copy && size < MOST && (c = getc(f)) != EOF) putc(c, copy);
  if (copy && (ferror(f) | fclose(copy))) {
    error = EIO;
    free(text);
    text = NULL;
  }
  if (f) fclose(f);
  errno = error;
  return text;
}

/* exit.json is ours: its first member is the sentence, its second one the target. What there was
 * before 1.1 does not name it. */
static const char *summary_of(char *text, const char **target) {
  static const char begin[] = "{\"summary\":", next[] = ",\"target\":";
  char *at = text + sizeof begin - 1;
  const char *summary = strncmp(text, begin, sizeof begin - 1) == 0 ? flat_read_text(&at) : NULL;
  bool named = summary && strncmp(at, next, sizeof next - 1) == 0;
  at += named ? sizeof next - 1 : 0;
  *target = named ? flat_read_text(&at) : NULL;
  return summary;
}

static int print_last(const options *o, const ckpt_place *place, const char *nobody) {
  char *path = NULL, *text = NULL;
  if (*place->state && asprintf(&path, "%s/exit.json", place->state) < 0) path = NULL;
  if (path) text = read_file(path);
  int code = EXIT_DONE;
  if (!text) {
    report_error("%s%s%s%s", nobody, path ? ", and no run has ended there: " : "", path ? path : "",
                 path && errno != ENOENT ? " cannot be read" : "");
    code = EXIT_NOTHING;
  } else if (o->json) {
    text_json_printed(stdout, text);
  } else {
    const char *target, *summary = summary_of(text, &target);
    fputs("no run is alive; the last one ended with: ", stdout);
    text_plain(stdout, summary ? summary : text);
    fputc('\n', stdout);
    if (target) member(stdout, "target", target);
  }
  free(text);
  free(path);
  return code;
}

static bool has_ended(const ckpt_place *place) {
  char *path = NULL;
  bool there = asprintf(&path, "%s/exit.json", place->state) >= 0 && access(path, F_OK) == 0;
  free(path);
  return there;
}

/* The lock is somebody's, and nobody listens yet. One that has said how it ended only lets go. */
static bool is_starting(const ckpt_place *place) {
  return place->held && (*place->waits || !has_ended(place));
}

static int print_starting(const options *o, const ckpt_place *place) {
  if (o->json) { /* "alive" is who answers */
    fputs("{\"starting\":true,\"waits\":", stdout);
    text_json(stdout, place->waits);
    fputs("}\n", stdout);
    return EXIT_DONE;
  }
  member(stdout, "state", place->state);
  fputs("starting   ", stdout);
  if (*place->waits) fputs("waits for ", stdout);
  text_plain(stdout, *place->waits ? place->waits : "the run is alive, and does not listen yet");
  fputc('\n', stdout);
  return EXIT_DONE;
}

int verb_status(const options *o) {
  ckpt_place place;
  char error[ASK_ERROR_MAX];
  ask_result result = ask_find(o, &place, error);
  if (result == ASK_DONE)
    result = ask_question(place.socket, "status", NULL, o->json, stdout, error);
  if (result == ASK_NOBODY && is_starting(&place)) return command_end(print_starting(o, &place));
  if (result == ASK_NOBODY && (o->dir || o->state || *place.socket))
    return command_end(print_last(o, &place, error));
  if (result != ASK_DONE) report_error("%s", error);
  return command_end(ask_exit_code(result));
}
