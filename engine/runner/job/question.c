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

static bool is_list_of_texts(const json_t *value) {
  if (!json_is_array(value)) return false;
  for (size_t i = 0; i < json_array_size(value); i++)
    if (!json_is_string(json_array_get(value, i))) return false;
  return true;
}

/* True if all members are texts, booleans, numbers and lists of texts. */
static bool is_flat(json_t *object) {
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
    const json_t *value = json_object_iter_value(at);
    if (!json_is_string(value) && !json_is_boolean(value) && !json_is_integer(value) &&
        !is_list_of_texts(value))
      return false;
  }
  return true;
}

/* ---- reload ---- */

static void list_free(char **list) {
  for (size_t i = 0; list && list[i]; i++) free(list[i]);
  free(list);
}

/* Takes a list of names; *out is NULL if there is none. False: a name is none, or there is no memory. */
static bool take_list(const json_t *value, char ***out) {
  size_t count = json_array_size(value);
  *out = value ? calloc(count + 1, sizeof **out) : NULL;
  for (size_t i = 0; *out && i < count; i++) {
    buf plain;
    buf_init(&plain, LISTENER_LINE_MAX);
    if (js_name_unescape(json_string_value(json_array_get(value, i)), &plain, NULL) == 0)
      (*out)[i] = strdup(plain.data ? plain.data : "");
    buf_free(&plain);
    if ((*out)[i]) continue;
    list_free(*out);
    *out = NULL;
  }
  return *out || !value;
}

static bool is_switch(const json_t *value) {
  return !value || json_is_boolean(value);
}

/* What is misspelled, or of another type, is never taken for a question without it. Returns what is wrong, or NULL. */
static const char *check_reload(json_t *question) {
  static const char *const known[] = {"$ckpt", "policies", "options", "dry_run", NULL};
  const json_t *policies = json_object_get(question, "policies"),
               *settings = json_object_get(question, "options");
  for (void *at = json_object_iter(question); at; at = json_object_iter_next(question, at))
    if (!is_one_of(json_object_iter_key(at), known)) return "reload: a key in it is unknown here";
  if (policies && json_array_size(policies) == 0) return "reload: \"policies\" is no list of names";
  if (settings && !json_is_array(settings)) return "reload: \"options\" is no list of settings";
  if (!is_switch(json_object_get(question, "dry_run")))
    return "reload: \"dry_run\" is neither true nor false";
  return NULL;
}

static const char *answer_reload(ckpt *engine, ckpt_run *run, json_t *question, FILE *out) {
  char **policies, **settings = NULL;
  const char *wrong = check_reload(question);
  if (wrong) return wrong;
  wrong = "reload: a name in it is none";
  if (take_list(json_object_get(question, "policies"), &policies) &&
      take_list(json_object_get(question, "options"), &settings)) {
    const ckpt_reload_options o = {
        .size = sizeof o,
        .policies = (const char *const *)policies,
        .settings = (const char *const *)settings,
        .flags = json_is_true(json_object_get(question, "dry_run")) ? CKPT_DRY_RUN : 0};
    reload_answer(engine, run, &o, out);
    wrong = NULL;
  }
  list_free(policies);
  list_free(settings);
  return wrong;
}

static const char *answer_reloaded(ckpt_run *run, const json_t *question, bool json, FILE *out) {
  const json_int_t job = json_integer_value(json_object_get(question, "job"));
  if (job <= 0) return "reloaded: which one?";
  if (!is_switch(json_object_get(question, "json")))
    return "reloaded: \"json\" is neither true nor false";
  return reloaded_answer(run, (uint64_t)job, json, out) < 0
             ? "what came of it is not known any more: another one was asked for since"
             : NULL;
}

/* ---- all of them ---- */

/* -1: there is none. */
static int64_t whole_number(const json_t *question, const char *key) {
  const json_t *value = json_object_get(question, key);
  return json_is_integer(value) ? json_integer_value(value) : -1;
}

static const char *answer_question(ckpt *engine, ckpt_run *run, json_t *question, FILE *answer) {
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
  else if (verb && strcmp(verb, "reload") == 0)
    wrong = answer_reload(engine, run, question, answer);
  else if (verb && strcmp(verb, "reloaded") == 0)
    wrong = answer_reloaded(run, question, json, answer);
  else if (verb && strcmp(verb, "drain") == 0)
    wrong = drain_begin(run, whole_number(question, "ms"), answer);
  else if (verb && strcmp(verb, "drained") == 0)
    wrong = drain_answer(run, whole_number(question, "drain"), json, answer);
  else if (verb && strcmp(verb, "why") == 0 && !name)
    wrong = "why: which name?";
  else if (verb && strcmp(verb, "why") == 0)
    wrong = why_answer(run, name, json, answer) == 0 ? NULL : "why is not known";
  buf_free(&plain);
  return wrong;
}

const char *question_answer(ckpt *engine, ckpt_run *run, const char *line, FILE *answer) {
  const char *wrong = "a question is a flat JSON object of texts, booleans and lists of texts";
  json_t *question = NULL;
  if (js_parse(line, strlen(line), "question", &question, NULL) == 0 && is_flat(question))
    wrong = answer_question(engine, run, question, answer);
  json_decref(question);
  return wrong;
}
