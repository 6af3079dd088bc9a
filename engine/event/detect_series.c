#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "detect_model.h"

#include "prims/match_series.h"
#include "prims/numbers/match_step.h"

/* A series has the files of the newest complete unit of each kind, so that the next one can be
 * measured by it. */

static series *find_series(const detect *d, const char *group, const char *unit_name) {
  char name[256];
  match_series(unit_name, name, sizeof name);
  for (size_t i = 0; i < d->series_count; i++)
    if (strcmp(d->series[i].group, group) == 0 && strcmp(d->series[i].name, name) == 0)
      return &d->series[i];
  return NULL;
}

const series *series_find(const detect *d, const unit *u) {
  char group[FS_PATH_MAX];
  unit_group(u, group);
  return find_series(d, group, unit_name(u));
}

static int add_series(detect *d, const char *group, const char *unit_name, series **out, err *e) {
  char name[256];
  match_series(unit_name, name, sizeof name);
  if (!VEC_ROOM(d->series, d->series_count, d->series_room))
    return err_set(e, ERR_NOMEM, "watch: out of memory");
  series *s = &d->series[d->series_count];
  *s = (series){.group = strdup(group), .name = strdup(name)};
  if (!s->group || !s->name) {
    free(s->group);
    free(s->name);
    return err_set(e, ERR_NOMEM, "watch: out of memory");
  }
  d->series_count++;
  *out = s;
  return 0;
}

int series_learn(detect *d, const char *group, const char *unit_name, const char *const *files,
                 size_t count, err *e) {
  names copy = {0};
  while (copy.count < count && names_add(&copy, files[copy.count])) continue;
  series *s = find_series(d, group, unit_name);
  int rc = copy.count == count ? 0 : err_set(e, ERR_NOMEM, "watch: out of memory");
  if (rc == 0 && !s) rc = add_series(d, group, unit_name, &s, e);
  if (rc < 0) {
    names_free(&copy);
    return rc;
  }
  names_sort(&copy);
  names_free(&s->files);
  s->files = copy;
  s->step = match_step(unit_name);
  free(s->unit);
  s->unit = strdup(unit_name);
  return 0;
}

void series_free_all(detect *d) {
  for (size_t i = 0; i < d->series_count; i++) {
    free(d->series[i].group);
    free(d->series[i].name);
    free(d->series[i].unit);
    names_free(&d->series[i].files);
  }
  free(d->series);
}
