#include "members.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "lab/events.h"

int members_wrong(const members *m, const char *key, const char *wants) {
  return err_set(m->e, ERR_INVAL, "%s: \"%s\" is to be %s", m->where, key, wants);
}

int members_check(const members *m, const json_t *object, const char *in,
                  const char *const *known) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    size_t i = 0;
    char shown[64];
    while (known[i] && strcmp(known[i], key) != 0) i++;
    if (known[i]) continue;
    buf plain;
    buf_init(&plain, sizeof shown);
    js_plain(key, sizeof shown - 1, &plain);
    snprintf(shown, sizeof shown, "%s", plain.data ? plain.data : "?");
    buf_free(&plain);
    return err_set(m->e, ERR_INVAL, "%s: %s has no member \"%s\"", m->where, in, shown);
  }
  return 0;
}

bool members_given(const json_t *object, const char *key, json_t **value) {
  *value = json_object_get(object, key);
  return *value && !json_is_null(*value);
}

int members_seconds(const members *m, const json_t *object, const char *key, double *out) {
  json_t *value;
  if (!members_given(object, key, &value)) return 0;
  double s = json_is_number(value) ? json_number_value(value) : -1;
  if (!(s >= 0 && s <= LAB_LONGEST_S)) return members_wrong(m, key, "seconds, from 0 to 1e9");
  *out = s;
  return 0;
}

int members_whole(const members *m, const json_t *object, const char *key, int64_t most,
                  int64_t *out) {
  json_t *value;
  if (!members_given(object, key, &value)) return 0;
  double n = json_is_real(value) ? json_real_value(value) : 0;
  bool whole = json_is_integer(value) ||
               (json_is_real(value) && n >= 0 && n <= (double)most && n == (double)(int64_t)n);
  int64_t taken = json_is_integer(value) ? json_integer_value(value) : whole ? (int64_t)n : 0;
  if (!whole || taken < 0 || taken > most)
    return members_wrong(m, key, "a whole number of 0 or more");
  *out = taken;
  return 0;
}
