/* policy_ask: one question to the chain, and what is done when it does not go well. */
#include <stdlib.h>
#include <string.h>

#include "base/packed.h"
#include "decision/policy_impl.h"

enum {
  TELL_EACH = 100,   /* of the fallbacks of a hook the first is told, and then each of these */
  WARNINGS_MAX = 16, /* of one answer */
  TOLD_MAX = 64,     /* of a run */
  WARNING_MAX = 500, /* bytes */
};

static const struct {
  const char *name, *safe; /* `safe`: what happens without an answer */
} hooks[POLICY_HOOKS] = {
    [POLICY_READY] = {"ready", "what is complete counts as ready"},
    [POLICY_SYNC] = {"sync", "what is complete is saved"},
    [POLICY_QUEUE] = {"queue", "the newest is saved first"},
    [POLICY_EXCLUDE] = {"exclude", "the checkpoint is saved whole"},
    [POLICY_KEEP] = {"keep", "all are kept"},
    [POLICY_KEEP_LOCAL] = {"keep_local", "all local ones stay"},
    [POLICY_RESTORE] = {"restore", "only the newest is restored"},
    [POLICY_ON_ERROR] = {"on_error", "the kind of the error decides"},
    [POLICY_ON_PREEMPT] = {"on_preempt", "what fits is saved, or else the newest"},
    [POLICY_ON_COMMITTED] = {"on_committed", "nothing is done"},
    [POLICY_ON_FAILED] = {"on_failed", "nothing is done"},
};

const char *policy_hook_name(policy_hook hook) {
  return hooks[hook].name;
}

/* ---- what is told ---- */

/* Counts it and, now and then, says it: `why` as a half sentence. */
static void fall_back(policy *p, policy_hook hook, const char *why) {
  char plain[WARNING_MAX];
  policy_plain(why, plain, sizeof plain);
  snprintf(p->fault, sizeof p->fault, "%s: %s", hooks[hook].name, plain);
  p->fallbacks++;
  if (p->failed[hook]++ % TELL_EACH != 0) return;
  log_say(p->log, LOG_WARN, "policy %s: %s: %s; %s (%llu time%s so far)", p->who[hook],
          hooks[hook].name, plain, hooks[hook].safe, (unsigned long long)p->failed[hook],
          p->failed[hook] == 1 ? "" : "s");
}

void policy_warn(policy *p, const json_t *warnings) {
  ssize_t count = policy_list(warnings);
  for (ssize_t i = 0; i < count && i < WARNINGS_MAX; i++) {
    char plain[WARNING_MAX];
    policy_plain(json_string_value(json_array_get(warnings, (size_t)i)), plain, sizeof plain);
    if (!*plain || json_object_size(p->told) >= TOLD_MAX || json_object_get(p->told, plain))
      continue;
    json_object_set_new(p->told, plain, json_true());
    log_say(p->log, LOG_WARN, "policy %s: %s", p->names, plain);
  }
}

/* ---- a request ---- */

/* Tells why a request was not carried out. */
static int refused(const json_t *answer, policy_standing *state, err *e) {
  static const struct {
    const char *kind, *means;
    int code;
    policy_standing state;
  } kinds[] = {
      {"syntax", "", ERR_POLICY, POLICY_DEAD},
      {"setting", "", ERR_INVAL, POLICY_DEAD},
      {"error", "it raised an error: ", ERR_POLICY, POLICY_DEAD},
      {"budget", "it ran too long: ", ERR_POLICY, POLICY_DEAD},
      {"memory", "it used too much memory: ", ERR_POLICY, POLICY_DEAD},
      {"answer", "its answer is none: ", ERR_POLICY, POLICY_STANDS},
      {"unknown", "it is not loaded: ", ERR_POLICY, POLICY_UNKNOWN},
  };
  const char *kind = json_string_value(json_object_get(answer, "kind"));
  char plain[WARNING_MAX];
  policy_plain(json_string_value(json_object_get(answer, "text")), plain, sizeof plain);
  for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kind, kinds[i].kind) != 0) continue;
    *state = kinds[i].state;
    return err_set(e, kinds[i].code, "%s%s", kinds[i].means, *plain ? plain : "no more is known");
  }
  return err_set(e, ERR_POLICY, "it failed: %s", *plain ? plain : "no more is known");
}

int policy_exchange(policy *p, const char *request, size_t len, json_t **answer,
                    policy_standing *state, err *e) {
  buf text;
  json_t *value = NULL;
  *state = POLICY_DEAD;
  buf_init(&text, POLICY_FRAME_MAX);
  int rc = policy_link_call(p->link, request, len, &text, e);
  if (rc == 0) {
    err why = {0};
    if (js_parse(text.data ? text.data : "", text.len, "its answer", &value, &why) < 0)
      rc = err_set(e, ERR_POLICY, "%s", why.text);
  }
  if (rc == 0) {
    *state = POLICY_STANDS;
    if (!json_is_true(json_object_get(value, "ok"))) rc = refused(value, state, e);
  }
  if (rc == 0)
    *answer = value;
  else
    json_decref(value);
  buf_free(&text);
  return rc;
}

/* ---- a question ---- */

void policy_put_memory(const char *memory, buf *out) {
  json_t *value = NULL;
  bool good = memory && js_parse(memory, strlen(memory), "memory", &value, NULL) == 0 &&
              (json_is_object(value) || json_is_array(value));
  json_decref(value);
  buf_str(out, good ? memory : "{}");
}

void policy_question_free(policy_question *q) {
  buf_free(&q->about);
  buf_free(&q->then);
}

/* Puts the event behind the request, with its list. */
static int add_question(const policy_question *q, buf *out, err *e) {
  if (!q) return 0;
  int rc = buf_failed(&q->about);
  if (rc == 0) {
    buf_add(out, "", 1);
    buf_add(out, q->about.data, q->about.len);
    rc = buf_failed(out);
  }
  return rc == ERR_LIMIT ? err_set(e, rc, "the question is too long for a policy")
         : rc < 0        ? err_set(e, rc, "out of memory for the question")
                         : 0;
}

/* `more`: members of the request beside those that each question has; NULL: none. */
static int print_request(const policy *p, policy_hook hook, const policy_question *q,
                         const char *memory, const policy_asked *before, const char *more, buf *out,
                         err *e) {
  json_t *id = json_string(p->id);
  buf_fmt(out, "{\"op\":\"ask\",\"hook\":\"%s\",\"id\":", hooks[hook].name);
  int rc = id ? js_print(id, out, e) : err_set(e, ERR_NOMEM, "out of memory for the question");
  json_decref(id);
  buf_str(out, ",\"memory\":");
  policy_put_memory(memory, out);
  if (before) buf_str(out, ",\"before\":");
  if (before) policy_put_memory(before->memory, out);
  if (q->then.len > 0) buf_fmt(out, ",\"then\":[%s]", q->then.data);
  if (more) buf_str(out, more);
  buf_str(out, "}");
  return rc < 0 ? rc : add_question(q, out, e);
}

/* The helper may be a new one, or may have dropped the chain to make room for others: it is loaded
 * again, and asked once more. A chain that died of the question is not asked again: it would die
 * again. */
static int ask(policy *p, const buf *request, json_t **answer, err *e) {
  for (int round = 0;; round++) {
    policy_standing state;
    if (p->generation == 0 || p->generation != policy_link_generation(p->link)) {
      int rc = policy_load(p, NULL, e);
      if (rc < 0) return rc;
    }
    int rc = policy_exchange(p, request->data, request->len, answer, &state, e);
    if (state != POLICY_STANDS) p->generation = 0;
    if (state != POLICY_UNKNOWN || round > 0) return rc;
  }
}

/* Reads the members around the answer itself. */
static int open_reply(policy *p, policy_hook hook, policy_reply *r, err *e) {
  const json_t *answer = json_object_get(r->whole, "answer"), *by = json_object_get(r->whole, "by"),
               *reason = json_object_get(r->whole, "reason"),
               *memory = json_object_get(r->whole, "memory"),
               *again = json_object_get(r->whole, "again");
  r->answer = json_is_null(answer) ? NULL : answer;
  if ((by && !json_is_string(by) && !json_is_null(by)) ||
      (reason && !json_is_string(reason) && !json_is_null(reason)))
    return err_set(e, ERR_POLICY, "its reason is no text");
  policy_plain(json_string_value(by), r->by, sizeof r->by);
  policy_plain(json_string_value(reason), r->reason, sizeof r->reason);
  if (!*r->by) memcpy(r->by, p->who[hook], sizeof r->by);
  if (json_number_value(again) > 0) r->again_s = json_number_value(again);
  if (!memory || json_is_null(memory)) return 0;
  if (!json_is_object(memory) && !json_is_array(memory))
    return err_set(e, ERR_POLICY, "its memory is no table");
  r->has_memory = true;
  if (json_object_size(memory) + json_array_size(memory) == 0) return 0;
  buf text;
  buf_init(&text, POLICY_MEMORY_MAX);
  int rc = js_print(memory, &text, NULL);
  if (rc == 0) r->memory = buf_take(&text);
  buf_free(&text);
  if (rc == ERR_LIMIT)
    return err_set(e, ERR_POLICY, "its memory is over %d KiB", POLICY_MEMORY_MAX >> 10);
  return rc < 0 ? err_set(e, rc, "its memory: %s", err_text(rc)) : 0;
}

static void reply_free(policy_reply *r) {
  json_decref(r->whole);
  free(r->memory);
  r->whole = NULL;
  r->answer = NULL;
  r->memory = NULL;
}

int policy_try_on(policy *p, policy_hook hook, const policy_question *question, err *e) {
  buf request;
  json_t *answer = NULL;
  buf_init(&request, POLICY_FRAME_MAX);
  int rc =
      print_request(p, hook, question, NULL, NULL, ",\"made_up\":{\"trial\":true}", &request, e);
  if (rc == 0) rc = ask(p, &request, &answer, e);
  json_decref(answer);
  buf_free(&request);
  return rc;
}

int policy_check_ask(policy *p, json_t *request, const policy_question *about, json_t **answer,
                     err *e) {
  buf text;
  *answer = NULL;
  buf_init(&text, POLICY_FRAME_MAX);
  bool whole = request && json_object_set_new(request, "op", json_string("check")) == 0 &&
               json_object_set_new(request, "id", json_string(p->id)) == 0;
  int rc = whole ? js_print(request, &text, e) : err_set(e, ERR_NOMEM, "out of memory for a check");
  if (rc == 0) rc = add_question(about, &text, e);
  if (rc == 0) rc = ask(p, &text, answer, e);
  json_decref(request);
  buf_free(&text);
  return rc;
}

void policy_say_trial(const policy *p, policy_hook hook, const char *why) {
  char plain[WARNING_MAX];
  policy_plain(why, plain, sizeof plain);
  log_say(p->log, LOG_WARN, "policy %s: tried with made-up facts, %s fails: %s; where it does, %s",
          p->who[hook], hooks[hook].name, plain, hooks[hook].safe);
}

int policy_ask(policy *p, policy_hook hook, const policy_question *question, const char *memory,
               const policy_asked *before, policy_reply *out) {
  err why = {0};
  buf request;
  *out = (policy_reply){0};
  buf_init(&request, POLICY_FRAME_MAX);
  int rc = print_request(p, hook, question, memory, before, NULL, &request, &why);
  if (rc == 0) rc = ask(p, &request, &out->whole, &why);
  if (rc == 0) rc = open_reply(p, hook, out, &why);
  buf_free(&request);
  if (rc == 0) return 0;
  fall_back(p, hook, why.text);
  reply_free(out);
  return rc;
}

int policy_hear(policy *p, policy_hook hook, json_t *whole, policy_reply *out) {
  err why = {0};
  policy_standing state = POLICY_STANDS;
  *out = (policy_reply){.whole = json_incref(whole)};
  int rc = json_is_true(json_object_get(whole, "ok")) ? open_reply(p, hook, out, &why)
                                                      : refused(whole, &state, &why);
  if (state != POLICY_STANDS) p->generation = 0;
  if (rc == 0) return 0;
  fall_back(p, hook, why.text);
  reply_free(out);
  return rc;
}

void policy_accept(policy *p, policy_reply *r, char **memory) {
  policy_warn(p, json_object_get(r->whole, "warnings"));
  if (r->has_memory && memory) {
    free(*memory);
    *memory = r->memory;
    r->memory = NULL;
  }
  reply_free(r);
}

void policy_refuse(policy *p, policy_hook hook, policy_reply *r, const char *why) {
  fall_back(p, hook, why);
  reply_free(r);
}
