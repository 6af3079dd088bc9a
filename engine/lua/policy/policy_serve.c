#include "policy_serve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy_state.h"

typedef struct slot {
  char *id; /* owned; NULL: free */
  policy_state *state;
  uint64_t used; /* when, in calls */
} slot;

struct policy_serve {
  const char *warning;
  uint64_t calls;
  slot slots[POLICY_STATES_MAX];
};

typedef struct request {
  policy_request in;
  const char *id;
  buf *answer;
} request;

policy_serve *policy_serve_new(const char *warning) {
  policy_serve *p = calloc(1, sizeof *p);
  if (p) p->warning = warning;
  return p;
}

static void clear(slot *s) {
  policy_state_close(s->state);
  free(s->id);
  *s = (slot){0};
}

void policy_serve_free(policy_serve *p) {
  if (!p) return;
  for (int i = 0; i < POLICY_STATES_MAX; i++) clear(&p->slots[i]);
  free(p);
}

unsigned policy_serve_states(const policy_serve *p) {
  unsigned n = 0;
  for (int i = 0; i < POLICY_STATES_MAX; i++) n += p->slots[i].id != NULL;
  return n;
}

static slot *find(policy_serve *p, const char *id) {
  for (int i = 0; i < POLICY_STATES_MAX; i++)
    if (p->slots[i].id && strcmp(p->slots[i].id, id) == 0) return &p->slots[i];
  return NULL;
}

/* Returns a free slot, or the one that was not used for longest, emptied. */
static slot *take(policy_serve *p) {
  slot *oldest = &p->slots[0];
  for (int i = 0; i < POLICY_STATES_MAX; i++) {
    if (!p->slots[i].id) return &p->slots[i];
    if (p->slots[i].used < oldest->used) oldest = &p->slots[i];
  }
  clear(oldest);
  return oldest;
}

static int load(policy_serve *p, const request *r) {
  slot *s = find(p, r->id);
  if (s) clear(s);
  policy_state *state;
  int rc = policy_state_load(r->in.json, r->in.size, p->warning, &state, r->answer);
  if (!state) return rc;
  s = take(p);
  s->id = strdup(r->id);
  if (!s->id) {
    policy_state_close(state);
    return policy_state_refuse(r->answer, "memory", "out of memory");
  }
  s->state = state;
  s->used = p->calls;
  return rc;
}

typedef int state_fn(policy_state *s, const policy_request *r, buf *answer, bool *dead);

static int enter(policy_serve *p, const request *r, state_fn *fn) {
  slot *s = find(p, r->id);
  if (!s) return policy_state_refuse(r->answer, "unknown", "no such id: load it again");
  bool dead;
  s->used = p->calls;
  int rc = fn(s->state, &r->in, r->answer, &dead);
  if (dead) clear(s);
  return rc;
}

static int ask(policy_serve *p, const request *r) {
  return enter(p, r, policy_state_ask);
}

static int check(policy_serve *p, const request *r) {
  return enter(p, r, policy_state_check);
}

static int drop(policy_serve *p, const request *r) {
  slot *s = find(p, r->id);
  if (s) clear(s);
  buf_str(r->answer, "{\"ok\":true}");
  return buf_failed(r->answer);
}

int policy_serve_call(policy_serve *p, const char *text, size_t len, buf *answer) {
  static const struct {
    const char *name;
    int (*answer)(policy_serve *p, const request *r);
    bool more; /* something packed may stand behind it */
  } ops[] = {
      {"load", load, false}, {"ask", ask, true}, {"check", check, true}, {"drop", drop, false}};
  err e = {0};
  json_t *json = NULL;
  const char *end = memchr(text, '\0', len); /* what is packed begins behind it */
  size_t json_len = end ? (size_t)(end - text) : len;
  buf_init(answer, POLICY_ANSWER_MAX + 4 * len);
  p->calls++;
  /* The request is the engine's own words; its memory is bounded with all else that is done
   * here. */
  if (js_parse_large(text, json_len, "request", &json, &e) < 0)
    return policy_state_refuse(answer, "error", e.text);
  const char *op = json_string_value(json_object_get(json, "op"));
  request r = {.in = {.json = json, .size = len},
               .id = json_string_value(json_object_get(json, "id")),
               .answer = answer};
  if (end) r.in.behind = (packed){end + 1, text + len};
  int rc = 1;
  for (size_t i = 0; op && r.id && i < sizeof ops / sizeof *ops; i++)
    if (strcmp(op, ops[i].name) == 0 && (!end || ops[i].more)) rc = ops[i].answer(p, &r);
  if (rc == 1) rc = policy_state_refuse(answer, "error", "request: wrong \"op\" or \"id\"");
  json_decref(json);
  return rc;
}
