#include "question.h"

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "base/json.h"
#include "listener.h"
#include "runner/cli/text.h"

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

/* True if `name` names the unit: by its path, or by its own name; the path may begin outside of the
 * directory. */
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

/* Judges a unit that is not pending. It need not be durable: it may be unknown, or left alone.
 * Where the tree is polled, it may be there and not have been listed yet. */
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
    text_prose(out, text);
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
  text_prose(w->out, p->reason ? p->reason : "not saved yet");
}

/* Answers "wait". A unit that was given up is still in the list of those that are not durable; it
 * is waited for no longer. */
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
  /* An older one that was left for a newer one is no failure of the run. */
  bool left = !name && s.standing == CKPT_DURABLE;
  bool failed = (w.found && !left) || (!name && s.newest_status != CKPT_OK) || s.fenced;
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

/* True if all members are texts, booleans and numbers. */
static bool is_flat(json_t *object) {
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
    const json_t *value = json_object_iter_value(at);
    if (!json_is_string(value) && !json_is_boolean(value) && !json_is_integer(value)) return false;
  }
  return true;
}

static const char *answer_question(ckpt_run *run, const json_t *question, FILE *answer) {
  const char *verb = json_string_value(json_object_get(question, "$ckpt"));
  const char *name = json_string_value(json_object_get(question, "name"));
  bool json = json_is_true(json_object_get(question, "json"));
  const char *wrong = "this question is unknown here: the programs are of different versions";
  buf plain;
  buf_init(&plain, LISTENER_LINE_MAX);
  if (name && js_name_unescape(name, &plain, NULL) == 0) name = plain.data;
  if (verb && strcmp(verb, "status") == 0)
    wrong = status_answer(run, json, answer) == 0 ? NULL : "no status";
  else if (verb && strcmp(verb, "wait") == 0)
    wrong = answer_wait(run, name, answer);
  else if (verb && strcmp(verb, "why") == 0 && !name)
    wrong = "why: which name?";
  else if (verb && strcmp(verb, "why") == 0)
    wrong = why_answer(run, name, json, answer) == 0 ? NULL : "why is not known";
  buf_free(&plain);
  return wrong;
}

const char *question_answer(ckpt_run *run, const char *line, FILE *answer) {
  const char *wrong = "a question is a flat JSON object of texts and booleans";
  json_t *question = NULL;
  if (js_parse(line, strlen(line), "question", &question, NULL) == 0 && is_flat(question))
    wrong = answer_question(run, question, answer);
  json_decref(question);
  return wrong;
}
