#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_impl.h"

/* These are in the order of policy_queue, of (save, skip), and of policy_rest. */
const char *const answer_queues[] = {"newest", "all", "skip", "block", NULL};
const char *const answer_syncs[] = {"sync", "skip", NULL};
const char *const answer_rests[] = {"newest", "all", "none", NULL};

enum { RETRY_MAX_S = 24 * 3600, HOOKS_MAX = 16 };

void policy_plain(const char *text, char *to, size_t room) {
  buf plain;
  buf_init(&plain, room);
  js_plain(text ? text : "", room - 1, &plain);
  to[0] = '\0';
  if (plain.len > 0 && plain.len < room) memcpy(to, plain.data, plain.len + 1);
  buf_free(&plain);
}

ssize_t policy_list(const json_t *value) {
  if (!value || (json_is_object(value) && json_object_size(value) == 0)) return 0;
  return json_is_array(value) ? (ssize_t)json_array_size(value) : -1;
}

bool policy_whole(const json_t *value, int64_t min, int64_t max, int64_t *out) {
  if (json_is_integer(value)) {
    *out = json_integer_value(value);
  } else if (json_is_real(value)) {
    double d = json_real_value(value);
    if (!(fabs(d) < 9e18) || d != floor(d)) return false;
    *out = (int64_t)d;
  } else {
    return false;
  }
  return *out >= min && *out <= max;
}

/* Says what was answered instead, by the beginning of it. */
static int not_in(const json_t *answer, const char *wanted, err *e) {
  char plain[64];
  buf text;
  buf_init(&text, 4096);
  js_print(answer, &text, NULL); /* a text that is too long has a beginning all the same */
  policy_plain(text.data, plain, sizeof plain);
  buf_free(&text);
  return err_set(e, ERR_POLICY, "it answered %s; %s is wanted", *plain ? plain : "nonsense",
                 wanted);
}

int answer_ready(const json_t *answer, bool *out, err *e) {
  if (!answer) return 0;
  if (!json_is_boolean(answer)) return not_in(answer, "true or false", e);
  *out = json_is_true(answer);
  return 0;
}

int answer_word(const json_t *answer, const char *const *words, int *out, err *e) {
  if (!answer) return 0;
  const char *word = json_string_value(answer);
  for (int i = 0; word && words[i]; i++) {
    if (strcmp(word, words[i]) != 0) continue;
    *out = i;
    return 0;
  }
  buf wanted;
  buf_init(&wanted, 128);
  for (size_t i = 0; words[i]; i++) {
    const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";
    buf_fmt(&wanted, "%s\"%s\"", between, words[i]);
  }
  int rc = not_in(answer, wanted.data ? wanted.data : "another word", e);
  buf_free(&wanted);
  return rc;
}

int answer_remedy(const json_t *answer, policy_remedy *out, double *seconds, err *e) {
  static const char *const actions[] = {"retry", "skip", "abort", NULL};
  static const policy_remedy remedies[] = {POLICY_RETRY, POLICY_GIVE_UP, POLICY_ABORT};
  int which = 0;
  if (!answer) return 0;
  const json_t *action = json_object_get(answer, "action"), *pause;
  if (!action) return not_in(answer, "an action", e);
  int rc = answer_word(action, actions, &which, e);
  if (rc < 0) return rc;
  if (remedies[which] == POLICY_RETRY) {
    pause = json_object_get(answer, "seconds");
    double s = json_is_number(pause) ? json_number_value(pause) : -1;
    if (!(s >= 0)) return not_in(answer, "\"retry\" with seconds", e);
    *seconds = s < RETRY_MAX_S ? s : RETRY_MAX_S;
  }
  *out = remedies[which];
  return 0;
}

int answer_names(const json_t *answer, err *e) {
  ssize_t count = policy_list(answer);
  if (count < 0 || count > HOOKS_MAX) return not_in(answer, "a short list of names", e);
  for (ssize_t i = 0; i < count; i++)
    if (!json_is_string(json_array_get(answer, (size_t)i)))
      return not_in(answer, "a list of names", e);
  return 0;
}

int answer_globs(const json_t *answer, names *out, err *e) {
  ssize_t count = policy_list(answer);
  err why = {0};
  if (count < 0 || count > POLICY_LEFT_MAX) return not_in(answer, "a list of globs", e);
  for (ssize_t i = 0; i < count; i++) {
    const char *glob = json_string_value(json_array_get(answer, (size_t)i));
    if (!glob) return not_in(answer, "a list of globs", e);
    if (match_exclude_check(glob, &why) < 0) {
      char plain[POLICY_REASON_MAX];
      policy_plain(why.text, plain, sizeof plain);
      return err_set(e, ERR_POLICY, "%s", plain);
    }
    if (!names_add(out, glob)) return err_set(e, ERR_NOMEM, "out of memory for its globs");
  }
  return 0;
}

/* Fills in the reasons, of which each is there once: a list of 10,000 has few. */
static int fill_reasons(const json_t *why, const json_t *reasons, policy_kept *out, err *e) {
  size_t count = json_array_size(reasons);
  char(*plain)[POLICY_REASON_MAX] = calloc(count + 1, sizeof *plain); /* the first one is none */
  if (!plain) return err_set(e, ERR_NOMEM, "out of memory for its reasons");
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    const json_t *reason = json_array_get(reasons, i);
    if (!json_is_string(reason)) rc = not_in(reason, "a reason", e);
    policy_plain(json_string_value(reason), plain[i + 1], sizeof *plain);
  }
  for (size_t i = 0; rc == 0 && i < json_array_size(why); i++) {
    const json_t *place = json_array_get(why, i);
    int64_t at;
    if (policy_whole(place, 0, (int64_t)count, &at))
      memcpy(out[i].reason, plain[at], sizeof *plain);
    else
      rc = not_in(place, "the place of a reason", e);
  }
  free(plain);
  return rc;
}

int answer_kept(const json_t *answer, size_t count, policy_kept *out, err *e) {
  const json_t *keep = json_object_get(answer, "keep"), *why = json_object_get(answer, "why"),
               *reasons = json_object_get(answer, "reasons");
  if (!json_is_string(keep) || !json_is_array(why) || !json_is_array(reasons))
    return not_in(answer, "which of the checkpoints to keep, and reasons", e);
  size_t said = json_string_length(keep);
  if (said != count || json_array_size(why) != count)
    return err_set(e, ERR_POLICY, "it judged %zu of %zu checkpoints, and gave %zu reasons", said,
                   count, json_array_size(why));
  if (json_array_size(reasons) > count)
    return err_set(e, ERR_POLICY, "it gave %zu reasons for %zu checkpoints",
                   json_array_size(reasons), count);
  const char *bits = json_string_value(keep);
  for (size_t i = 0; i < count; i++) {
    if (bits[i] != '0' && bits[i] != '1') return not_in(keep, "keep = 0 or 1 of each", e);
    out[i].keep = bits[i] == '1';
  }
  return fill_reasons(why, reasons, out, e);
}
