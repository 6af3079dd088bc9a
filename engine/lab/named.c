/* named: a result that names a checkpoint belongs to it, in the queue and behind its commit, as in
 * run_results.c. One that is not there yet is told with its numbers when it is. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lab/world.h"
#include "prims/fs.h"

static bool ends_in(const char *path, const char *end) {
  size_t len = strlen(path), tail = strlen(end);
  return tail > 0 && tail <= len && strcmp(path + len - tail, end) == 0 &&
         (tail == len || path[len - tail - 1] == '/');
}

static bool is_meant(const lab_trial *t, const char *name, const char *said) {
  char path[FS_PATH_MAX];
  if (fs_join(path, t->name, name, NULL) < 0) return false;
  return ends_in(path, said) || ends_in(said, path);
}

static void give(lab *l, char **metrics, const char *numbers) {
  char *all = policy_numbers(*metrics, numbers);
  if (!all) {
    l->broken = true;
    return;
  }
  free(*metrics);
  *metrics = all;
}

static void give_all(lab *l, lab_trial *t, const char *said, const char *numbers) {
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (!is_meant(t, u->name, said)) continue;
    if (numbers) give(l, &u->metrics, numbers);
    if (strcmp(u->kind, "temp") == 0) u->kind = "perm"; /* it is asked for */
  }
  for (size_t i = t->log.commit_count; numbers && i-- > 0;) {
    runlog_commit *c = &t->log.commits[i];
    if (c->life != RUNLOG_LIVE || !is_meant(t, c->unit, said)) continue;
    give(l, &c->metrics, numbers);
    t->keep_asked = true;
    return;
  }
}

void lab_result_named(lab *l, lab_trial *t, const char *result) {
  json_t *value = NULL;
  if (js_parse(result, strlen(result), "result", &value, NULL) < 0) return; /* it was read before */
  const char *said = json_string_value(json_object_get(value, "checkpoint"));
  char *numbers = said ? policy_numbers(result, NULL) : NULL;
  if (said) give_all(l, t, said, numbers);
  free(numbers);
  json_decref(value);
}
