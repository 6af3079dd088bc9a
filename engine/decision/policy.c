#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_impl.h"
#include "prims/fs.h"

static decision decide(policy_action action, const char *reason) {
  decision d = {.action = action, .queue = POLICY_NEWEST, .policy = "builtin"};
  snprintf(d.reason, sizeof d.reason, "%s", reason ? reason : "");
  return d;
}

decision policy_builtin(const detect_unit *facts) {
  switch (facts->state) {
  case DETECT_COMPLETE: return decide(POLICY_SAVE, facts->reason);
  case DETECT_UNPROVEN:
    /* Each file may be whole and another one still be missing: a structural check cannot tell. */
    if (facts->lacking || facts->alone) break;
    return decide(POLICY_SAVE_IF_SOUND, facts->reason);
  case DETECT_OPEN:
  case DETECT_BROKEN:
  case DETECT_GONE: break;
  }
  return decide(POLICY_WAIT, facts->reason);
}

/* ---- the chain ---- */

/* The questions about one event: the memory that one leaves is handed to the next. */
typedef struct talk {
  policy *p;
  policy_question question;
  char *memory;
  bool changed;
  policy_asked *asked; /* by hook; NULL: each question is the first */
  bool ahead;          /* the hooks up to POLICY_QUEUE are asked one after the other */
  json_t *said;        /* the answers to those ahead, that came with the last one; NULL: none */
  size_t heard;        /* how many of them were looked at */
} talk;

static void begin(talk *t, policy *p, policy_question question, char *const *memory) {
  *t = (talk){.p = p, .question = question};
  if (!memory || !*memory) return;
  t->memory = strdup(*memory);
  if (!t->memory) t->question.about.failure = ERR_NOMEM;
}

/* Gives the memory out if it has changed; it has another address then, by which a caller sees
 * it. */
static void end(talk *t, char **memory) {
  bool same = memory && *memory && t->memory && strcmp(*memory, t->memory) == 0;
  if (memory && t->changed && !same) {
    free(*memory);
    *memory = t->memory;
  } else {
    free(t->memory);
  }
  json_decref(t->said);
  policy_question_free(&t->question);
}

/* Takes in that a hook was asked with this memory. Out of memory it counts as not asked. */
static void note_asked(policy_asked *asked, const char *memory) {
  asked->memory = memory ? strdup(memory) : NULL;
  asked->yes = !memory || asked->memory;
}

void policy_asked_clear(policy_asked *asked) {
  for (int i = 0; i < POLICY_DECIDING; i++) {
    free(asked[i].memory);
    asked[i] = (policy_asked){0};
  }
}

typedef int judge_fn(const json_t *answer, void *out, err *e);

/* Has the hooks behind this one asked in the same exchange. Out of memory they are asked later. */
static void ask_ahead(talk *t, policy_hook hook) {
  buf *then = &t->question.then;
  buf_free(then);
  buf_init(then, POLICY_FRAME_MAX);
  for (int next = (int)hook + 1; t->ahead && next < POLICY_DECIDING; next++) {
    if (!t->p->has[next]) continue;
    const policy_asked *asked = t->asked ? &t->asked[next] : NULL;
    if (then->len > 0) buf_str(then, ",");
    buf_fmt(then, "{\"hook\":\"%s\"", policy_hook_name((policy_hook)next));
    if (asked && asked->yes) {
      buf_str(then, ",\"before\":");
      policy_put_memory(asked->memory, then);
    }
    buf_str(then, "}");
  }
  if (buf_failed(then)) buf_free(then);
}

/* Takes the answer to this hook that came with the last one, or asks. */
static int hear(talk *t, policy_hook hook, const policy_asked *before, policy_reply *reply) {
  json_t *whole = json_array_get(t->said, t->heard++);
  if (whole) return policy_hear(t->p, hook, whole, reply);
  ask_ahead(t, hook);
  return policy_ask(t->p, hook, &t->question, t->memory, before, reply);
}

/* What came with an answer was said with the memory that this one left: it counts if that was taken
 * over. */
static void take_said(talk *t, const policy_reply *reply) {
  json_t *then = json_object_get(reply->whole, "then");
  if (!json_is_array(then)) return;
  json_decref(t->said);
  t->said = json_incref(then);
  t->heard = 0;
}

static void forget_said(talk *t) {
  json_decref(t->said);
  t->said = NULL;
}

/* True if a policy had an answer and it is a good one; the texts are then in `reply`. */
static bool ask(talk *t, policy_hook hook, judge_fn *judge, void *out, policy_reply *reply) {
  err why = {0};
  policy_asked *asked = t->asked ? &t->asked[hook] : NULL;
  const policy_asked *before = asked && asked->yes ? asked : NULL;
  if (!t->p->has[hook]) return false;
  if (hear(t, hook, before, reply) < 0) {
    forget_said(t);
    return false;
  }
  if (judge(reply->answer, out, &why) < 0) {
    policy_refuse(t->p, hook, reply, why.text);
    forget_said(t);
    return false;
  }
  take_said(t, reply);
  bool answered = reply->answer != NULL;
  if (asked && !before) note_asked(asked, t->memory);
  if (reply->has_memory) t->changed = true;
  policy_accept(t->p, reply, &t->memory);
  return answered;
}

/* ---- may it be saved? ---- */

static int judge_ready(const json_t *answer, void *out, err *e) {
  return answer_ready(answer, out, e);
}

static int judge_sync(const json_t *answer, void *out, err *e) {
  return answer_word(answer, answer_syncs, out, e);
}

static int judge_queue(const json_t *answer, void *out, err *e) {
  return answer_word(answer, answer_queues, out, e);
}

/* Writes the policy and its reason into the decision. `otherwise`: the reason if the policy gives
 * none; NULL: the reason that is there stays. */
static void by_policy(decision *d, const policy_reply *r, const char *otherwise) {
  d->again_s = r->again_s;
  memcpy(d->policy, r->by, sizeof d->policy);
  if (*r->reason)
    memcpy(d->reason, r->reason, sizeof d->reason);
  else if (otherwise)
    snprintf(d->reason, sizeof d->reason, "%s", otherwise);
}

void policy_decide(policy *p, const policy_facts *facts, char **memory, decision *out) {
  enum { SKIP = 1 }; /* in answer_syncs */
  *out = policy_builtin(facts->unit);
  if (out->action == POLICY_WAIT) return;
  out->queue = p->queue;
  if (!p->has[POLICY_READY] && !p->has[POLICY_SYNC] && !p->has[POLICY_QUEUE]) return;
  talk t;
  policy_reply r;
  bool ready = true;
  int sync = 0, queue = (int)p->queue;
  begin(&t, p, policy_event(p, facts), memory);
  t.asked = facts->asked;
  t.ahead = true;
  if (ask(&t, POLICY_READY, judge_ready, &ready, &r) && !ready) {
    out->action = POLICY_WAIT;
    by_policy(out, &r, "the policy says that it is not ready");
  } else if (ask(&t, POLICY_SYNC, judge_sync, &sync, &r)) {
    if (sync == SKIP) out->action = POLICY_SKIP;
    by_policy(out, &r, sync == SKIP ? "the policy does not want it" : NULL);
  }
  bool wanted = out->action == POLICY_SAVE || out->action == POLICY_SAVE_IF_SOUND;
  if (wanted && ask(&t, POLICY_QUEUE, judge_queue, &queue, &r)) out->queue = (policy_queue)queue;
  end(&t, memory);
}

/* ---- what is it saved without? ---- */

static int judge_globs(const json_t *answer, void *out, err *e) {
  return answer_globs(answer, out, e);
}

void policy_exclude(policy *p, const policy_facts *facts, char **memory, policy_left *out) {
  talk t;
  policy_reply r;
  *out = (policy_left){.globs = {0}};
  if (!p->has[POLICY_EXCLUDE]) return;
  begin(&t, p, policy_event(p, facts), memory);
  if (ask(&t, POLICY_EXCLUDE, judge_globs, &out->globs, &r)) {
    memcpy(out->policy, r.by, sizeof out->policy);
    memcpy(out->reason, r.reason, sizeof out->reason);
  } else {
    names_free(&out->globs); /* some may have been good */
  }
  end(&t, memory);
}

/* ---- when something happens ---- */

static int judge_rest(const json_t *answer, void *out, err *e) {
  return answer_word(answer, answer_rests, out, e);
}

policy_rest policy_preempt(policy *p, const policy_facts *facts, char **memory) {
  int rest = POLICY_REST_FIT;
  talk t;
  policy_reply r;
  if (!p->has[POLICY_ON_PREEMPT]) return POLICY_REST_FIT;
  begin(&t, p, policy_event(p, facts), memory);
  ask(&t, POLICY_ON_PREEMPT, judge_rest, &rest, &r);
  end(&t, memory);
  return (policy_rest)rest;
}

typedef struct remedy {
  policy_remedy what;
  double seconds;
} remedy;

static int judge_remedy(const json_t *answer, void *out, err *e) {
  remedy *r = out;
  return answer_remedy(answer, &r->what, &r->seconds, e);
}

policy_remedy policy_on_error(policy *p, const policy_facts *facts, char **memory,
                              double *seconds) {
  remedy found = {.what = POLICY_BY_CLASS};
  talk t;
  policy_reply r;
  if (!p->has[POLICY_ON_ERROR]) return POLICY_BY_CLASS;
  begin(&t, p, policy_event(p, facts), memory);
  ask(&t, POLICY_ON_ERROR, judge_remedy, &found, &r);
  end(&t, memory);
  if (found.what == POLICY_RETRY) *seconds = found.seconds;
  return found.what;
}

static int judge_names(const json_t *answer, void *out, err *e) {
  (void)out;
  return answer_names(answer, e);
}

void policy_tell(policy *p, policy_hook hook, const policy_facts *facts, char **memory) {
  talk t;
  policy_reply r;
  if (!p->has[hook]) return;
  begin(&t, p, policy_event(p, facts), memory);
  ask(&t, hook, judge_names, NULL, &r);
  end(&t, memory);
}

/* ---- which of them stay? ---- */

static void keep_safely(policy_hook hook, const policy_item *items, size_t count,
                        policy_kept *out) {
  bool marked = false;
  for (size_t i = 0; i < count; i++) marked = marked || items[i].newest;
  for (size_t i = 0; i < count; i++) {
    bool newest = marked ? items[i].newest : i + 1 == count;
    out[i] = (policy_kept){.keep = hook != POLICY_RESTORE || newest, .policy = "builtin"};
    snprintf(out[i].reason, sizeof out[i].reason, "%s",
             hook != POLICY_RESTORE ? "all are kept"
             : newest               ? "it is the newest"
                                    : "it is not the newest");
  }
}

typedef struct choice {
  policy_kept *out;
  size_t count;
} choice;

static int judge_kept(const json_t *answer, void *out, err *e) {
  const choice *c = out;
  return answer ? answer_kept(answer, c->count, c->out, e) : 0;
}

bool policy_select(policy *p, policy_hook hook, const char *group, const policy_item *items,
                   size_t count, char **memory, policy_kept *out) {
  talk t;
  policy_reply r;
  choice c = {.out = out, .count = count};
  bool answered = false;
  if (p->has[hook] && count > 0) {
    begin(&t, p, policy_list_question(p, hook, group, items, count), memory);
    answered = ask(&t, hook, judge_kept, &c, &r);
    end(&t, memory);
  }
  if (!answered) {
    keep_safely(hook, items, count, out);
    return false;
  }
  for (size_t i = 0; i < count; i++) memcpy(out[i].policy, r.by, sizeof out[i].policy);
  return true;
}

bool policy_keeps_few(const policy *p) {
  return !p->data || json_is_true(json_object_get(p->data, "few"));
}

policy_reuse policy_reuses(const policy *p, const char *prefix, const char *unit, bool is_dir) {
  char path[FS_PATH_MAX];
  match_unit m;
  if (fs_join(path, prefix, unit, NULL) < 0) return POLICY_NEW_NAME;
  const char *pattern = rules_match(p->rules, path, is_dir, &m);
  if (!pattern || rules_is_above(p->rules, pattern)) return POLICY_NEW_NAME;
  if (!m.numbered) return POLICY_SAME_NAME;
  return m.called ? POLICY_SAME_IF_FIXED : POLICY_NEW_NAME;
}

const char *const *policy_companions(const policy *p) {
  return p->companions;
}
