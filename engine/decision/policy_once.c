#include "policy_once.h"

#include <string.h>

static bool is_held(policy_action action) {
  return action == POLICY_SKIP || action == POLICY_WAIT;
}

void policy_once_clear(policy_once *o) {
  policy_asked_clear(o->asked);
  o->answered = false;
}

bool policy_once_stands(policy_once *o, const digest *content, uint64_t event, decision *want) {
  if (!o->answered || !digest_equal(&o->of, content)) {
    policy_once_clear(o);
    return false;
  }
  if (event != o->event) return false;
  /* Whether it is whole for sure, or to be proven, may have become another matter since. */
  policy_action sound = want->action;
  *want = o->answer;
  if (!is_held(want->action)) want->action = sound;
  return true;
}

void policy_once_preset(policy_once *o, const char *memory) {
  policy_asked_clear(o->asked);
  for (int i = 0; i < POLICY_DECIDING; i++) {
    char *copy = memory ? strdup(memory) : NULL;
    o->asked[i] = (policy_asked){.yes = !memory || copy, .memory = copy};
  }
}

void policy_once_note(policy_once *o, const digest *content, uint64_t event, const decision *want) {
  o->answer = *want;
  o->of = *content;
  o->event = event;
  o->answered = true;
}
