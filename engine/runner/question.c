#include "question.h"

#include <stdlib.h>
#include <string.h>

#include "flat.h"
#include "outcome.h"
#include "text.h"
#include "verbs.h"

static const char mark[] = "{\"$ckpt\"";

bool is_question(const char *line) {
  return strncmp(line, mark, sizeof mark - 1) == 0;
}

/* ---- wait ---- */

typedef struct waited {
  const char *name;
  FILE *out;
  bool found;
} waited;

/* A unit is named by its path, or by its own name; the path may begin outside of the directory. */
static bool is_named(const char *unit, const char *name) {
  const char *slash = strrchr(unit, '/');
  size_t len = strlen(name), tail = strlen(unit);
  bool whole = len > tail && name[len - tail - 1] == '/' && strcmp(name + len - tail, unit) == 0;
  return whole || strcmp(unit, name) == 0 || (slash && strcmp(slash + 1, name) == 0);
}

static bool is_one_of(const char *cause, const char *const *list) {
  while (*list && strcmp(*list, cause) != 0) list++;
  return *list != NULL;
}

/* What is not pending need not be durable: it may be unknown, or left alone. Where the tree is
 * polled, it may be there and not have been listed yet. */
static void judge_named(ckpt_run *run, const char *name, FILE *out) {
  static const char *const over[] = {"committed",   "dropped",     "deleted", "skipped",
                                     "null-marker", "temp-marker", "let-go",  NULL};
  static const char *const soon[] = {"not-watched", "open",     "not-quiet", "waiting",
                                     "uploading",   "retrying", NULL};
  const char *cause = "", *text = "";
  ckpt_event look = {.size = sizeof look, .kind = CKPT_EVENT_LIST};
  if (ckpt_run_why(run, name, NULL, NULL, &cause, &text) < 0) {
    fputs("failed: it is not known what became of it\n", out);
  } else if (is_one_of(cause, over)) {
    fputs("done\n", out);
  } else {
    bool waits = is_one_of(cause, soon);
    fputs(waits ? "waiting: " : "failed: ", out);
    text_plain(out, name);
    fputs(": ", out);
    text_plain(out, text);
    fputc('\n', out);
    if (waits) ckpt_notify(run, &look, NULL); /* one that fails is made up for by the next poll */
  }
}

static void take_pending(void *ctx, const ckpt_pending *p) {
  waited *w = ctx;
  if (w->found || !p->unit || (w->name && !is_named(p->unit, w->name))) return;
  w->found = true;
  text_plain(w->out, p->unit);
  fputs(": ", w->out);
  text_plain(w->out, p->reason ? p->reason : "not saved yet");
}

/* What was given up is still in the list of what is not durable; it is waited for no longer. */
static const char *answer_wait(ckpt_run *run, const char *name, FILE *out) {
  ckpt_run_status s = {.size = sizeof s};
  waited w = {.name = name};
  char *text = NULL;
  size_t size = 0;
  w.out = open_memstream(&text, &size);
  if (!w.out) return "out of memory";
  int rc = ckpt_run_get_status(run, &s);
  ckpt_run_pending(run, take_pending, &w);
  bool whole = fclose(w.out) == 0;
  bool waiting = s.pending > 0 && !s.fenced && (w.found || !name);
  bool failed = w.found || (!name && s.newest_status != CKPT_OK) || s.fenced;
  if (whole && rc >= 0 && name && !w.found && !s.fenced) {
    judge_named(run, name, out);
  } else if (whole && rc >= 0) {
    fputs(waiting ? "waiting: " : failed ? "failed: " : "done", out);
    if (waiting || failed) fputs(*text ? text : ckpt_status_name(s.newest_status), out);
    fputc('\n', out);
  }
  free(text);
  return whole && rc >= 0 ? NULL : "the run's state is not known";
}

/* ---- all of them ---- */

const char *question_answer(ckpt_run *run, char *line, FILE *answer) {
  flat f;
  if (flat_read(line, &f)) return "a question is a flat JSON object of texts and booleans";
  const char *verb = flat_text(&f, "$ckpt", "");
  char *name = (char *)flat_text(&f, "name", NULL);
  bool json = flat_bool(&f, "json");
  if (name) flat_decode_name(name);
  if (strcmp(verb, "status") == 0)
    return status_answer(run, json, answer) == 0 ? NULL : "no status";
  if (strcmp(verb, "wait") == 0) return answer_wait(run, name, answer);
  if (strcmp(verb, "why") == 0) {
    if (!name) return "why: which name?";
    return why_answer(run, name, json, answer) == 0 ? NULL : "why is not known";
  }
  return "this question is unknown here: the programs are of different versions";
}
