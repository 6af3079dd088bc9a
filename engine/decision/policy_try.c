/* policy_try: tries the functions of a chain before the start. A wrong name in a function is found when it
 * is called, which may be hours later; so each is called once with made-up facts, as much as there could
 * be and as little. What fails is a warning, no more: the facts of the run may be others. */
#include <string.h>

#include "decision/policy_impl.h"

static const int64_t gib = INT64_C(1) << 30;

static const detect_unit known_unit = {.path = "checkpoint-1000",
                                       .name = "checkpoint-1000",
                                       .group = "",
                                       .kind = MATCH_DIR,
                                       .step = 1000,
                                       .state = DETECT_COMPLETE,
                                       .reason = "made up",
                                       .files = 3,
                                       .bytes = 1 << 30,
                                       .changed_ns = 1};
static const detect_unit bare_unit = {.path = "last.pt",
                                      .name = "last.pt",
                                      .group = "",
                                      .step = MATCH_NO_STEP,
                                      .state = DETECT_COMPLETE,
                                      .reason = "made up"};
static const char *const top[] = {"model.safetensors", "optimizer.pt", "trainer_state.json"};

/* Lua makes up the numbers in `metrics` and `result` by their names; the other is the first checkpoint of
 * a job that reports nothing. */
policy_facts policy_made_up(const char *event, bool known) {
  if (!known)
    return (policy_facts){.event = event,
                          .group = "",
                          .unit = &bare_unit,
                          .since = {.seconds = -1},
                          .job = {.left = -1},
                          .saves = {.seconds = -1}};
  return (policy_facts){.event = event,
                        .group = "",
                        .unit = &known_unit,
                        .kind = "perm",
                        .names = top,
                        .name_count = sizeof top / sizeof *top,
                        .metrics = "{}",
                        .result = "{}",
                        .results = 10,
                        .since = {.results = 2, .checkpoints = 1, .bytes = 1 << 30, .seconds = 60},
                        .job = {.seconds = 3600, .left = 1800},
                        .saves = {.seconds = 20, .spent = 100},
                        .waiting = 1,
                        .commits = 3,
                        .grace_s = 30,
                        .tries = 1};
}

static int try_question(policy *p, policy_hook hook, policy_question q, err *e) {
  int rc = buf_failed(&q.about) == 0 ? policy_try_on(p, hook, &q, e)
                                     : 0; /* out of memory: it is a trial, no more */
  policy_question_free(&q);
  return rc;
}

static int try_facts(policy *p, policy_hook hook, const char *event, err *e) {
  bool failed = hook == POLICY_ON_ERROR || hook == POLICY_ON_FAILED;
  for (int i = 0; i < 2; i++) {
    policy_facts f = policy_made_up(event, i == 0);
    if (failed) f.status = ERR_IO, f.text = "made up";
    if (hook == POLICY_ON_PREEMPT) f.unit = NULL; /* it is about all */
    int rc = try_question(p, hook, policy_event(p, &f), e);
    if (rc < 0) return rc;
  }
  return 0;
}

void policy_made_up_items(const policy *p, policy_item items[POLICY_MADE_UP_ITEMS]) {
  static const char *const units[] = {"last.pt", "checkpoint-500", "checkpoint-1000"};
  const int64_t now = p->io->now(p->io, IO_WALL);
  for (int i = 0; i < POLICY_MADE_UP_ITEMS; i++)
    items[i] = (policy_item){.number = 5 + (uint64_t)i,
                             .name = units[i],
                             .dir = units[i],
                             .step = i > 0 ? 500 * i : MATCH_NO_STEP,
                             .time_ns = now - (POLICY_MADE_UP_ITEMS - i) * 60 * INT64_C(1000000000),
                             .files = i > 0 ? 3 : 1,
                             .bytes = (uint64_t)gib,
                             .metrics = i > 0 ? "{}" : NULL,
                             .newest = i + 1 == POLICY_MADE_UP_ITEMS,
                             .durable = true};
}

static int try_list(policy *p, policy_hook hook, err *e) {
  policy_item items[POLICY_MADE_UP_ITEMS];
  policy_made_up_items(p, items);
  return try_question(p, hook, policy_list_question(p, hook, "", items, POLICY_MADE_UP_ITEMS), e);
}

static int try_hook(policy *p, policy_hook hook, err *e) {
  static const char *const events[] = {"complete", "result", "time", "end", "preempt", NULL};
  switch (hook) {
  case POLICY_READY:
  case POLICY_SYNC:
  case POLICY_QUEUE:
    for (int i = 0; events[i]; i++) {
      int rc = try_facts(p, hook, events[i], e);
      if (rc < 0) return rc;
    }
    return 0;
  case POLICY_EXCLUDE: return try_facts(p, hook, "complete", e);
  case POLICY_KEEP:
  case POLICY_KEEP_LOCAL:
  case POLICY_RESTORE: return try_list(p, hook, e);
  case POLICY_ON_ERROR: return try_facts(p, hook, "error", e);
  case POLICY_ON_PREEMPT: return try_facts(p, hook, "preempt", e);
  case POLICY_ON_COMMITTED: return try_facts(p, hook, "committed", e);
  case POLICY_ON_FAILED: return try_facts(p, hook, "failed", e);
  case POLICY_HOOKS: break;
  }
  return 0;
}

void policy_try(policy *p) {
  const json_t *written = json_object_get(p->data, "written");
  bool any = false;
  for (int hook = 0; hook < POLICY_HOOKS; hook++) {
    err why = {0};
    if (!json_is_true(json_object_get(written, policy_hook_name((policy_hook)hook)))) continue;
    any = true;
    if (try_hook(p, (policy_hook)hook, &why) < 0) policy_say_trial(p, (policy_hook)hook, why.text);
  }
  /* What it warned of, and what it noted in its variables, was of facts that are none. If it cannot be
   * loaded now, it is at the first question. */
  if (!any) return;
  p->generation = 0;
  policy_load(p, NULL, NULL);
}
