/* policy_diff: has the helper search for a list on which two policies differ, a piece at a time. Both are
 * one chain there, whose policies are asked one by one. */
#include "policy_diff.h"

#include <string.h>

#include "decision/policy_impl.h"

/* A search of all orders of 8 by two metrics is some hundred pieces. */
enum { PIECES_MAX = 4000, LINES_MAX = 16 };

typedef struct diffing {
  policy *p;
  policy_difference_fn *fn;
  void *ctx;
} diffing;

/* Makes a list of the texts in an array, ended by NULL. */
static const char *const *texts_of(const json_t *list, const char *out[LINES_MAX + 1]) {
  size_t n = 0;
  for (size_t i = 0; i < json_array_size(list) && n < LINES_MAX; i++) {
    const char *text = json_string_value(json_array_get(list, i));
    if (text) out[n++] = text;
  }
  out[n] = NULL;
  return out;
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static int tell_item(const diffing *d, const char *key, const json_t *item) {
  const policy_difference told = {.key = key,
                                  .name = text_of(item, "name"),
                                  .facts = text_of(item, "facts"),
                                  .a = json_is_true(json_object_get(item, "a")),
                                  .b = json_is_true(json_object_get(item, "b")),
                                  .why_a = text_of(item, "why_a"),
                                  .why_b = text_of(item, "why_b")};
  return d->fn ? d->fn(d->ctx, &told) : 0;
}

static policy_verdict verdict_of(const json_t *answer) {
  const char *word = text_of(answer, "verdict");
  if (strcmp(word, "differ") == 0) return POLICY_DIFFERENT;
  return strcmp(word, "equal") == 0 ? POLICY_EQUAL : POLICY_NONE_FOUND;
}

static int tell(const diffing *d, const char *key, const json_t *answer) {
  const char *searched[LINES_MAX + 1], *held[LINES_MAX + 1];
  const json_t *list = json_object_get(answer, "list");
  const double lists = json_number_value(json_object_get(answer, "lists"));
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
    rc = tell_item(d, key, json_array_get(list, i));
  const policy_difference told = {.key = key,
                                  .verdict = verdict_of(answer),
                                  .why = text_of(answer, "why"),
                                  .checkpoints = json_array_size(list),
                                  .lists = lists > 0 ? (uint64_t)lists : 0,
                                  .searched =
                                      texts_of(json_object_get(answer, "searched"), searched),
                                  .held = texts_of(json_object_get(answer, "held"), held)};
  return rc == 0 && d->fn ? d->fn(d->ctx, &told) : rc;
}

static int search(const diffing *d, policy_hook hook, err *e) {
  const char *key = policy_hook_name(hook);
  bool done = false;
  int rc = 0;
  json_t *answer = NULL;
  for (bool first = true; rc == 0 && !done; first = false) {
    json_decref(answer);
    rc = policy_check_ask(d->p,
                          json_pack("{s:s, s:s, s:b, s:i}", "what", "diff", "hook", key, "first",
                                    first, "most", PIECES_MAX),
                          NULL, &answer, e);
    done = !json_is_false(json_object_get(answer, "done"));
  }
  if (rc < 0)
    err_wrap(e, "policy diff: %s of %s", key, d->p->names);
  else
    rc = tell(d, key, answer);
  json_decref(answer);
  return rc;
}

int policy_diff(const policy_diff_options *o, policy_difference_fn *fn, void *ctx, err *e) {
  static const policy_hook hooks[] = {POLICY_KEEP, POLICY_KEEP_LOCAL, POLICY_RESTORE};
  const char *const names[] = {o->a, o->b, NULL};
  const policy_options options = {.io = o->io,
                                  .link = o->link,
                                  .id = "diff",
                                  .names = names,
                                  .settings = o->settings,
                                  .dir = o->dir,
                                  .quiet_ns = -1,
                                  .untried = true,
                                  .apart = true};
  diffing d = {.fn = fn, .ctx = ctx};
  int rc = policy_open(&options, &d.p, e);
  if (rc < 0) return rc;
  for (size_t i = 0; rc == 0 && i < sizeof hooks / sizeof *hooks; i++)
    if (hooks[i] == POLICY_KEEP || policy_has(d.p, hooks[i])) rc = search(&d, hooks[i], e);
  policy_close(d.p);
  return rc;
}
