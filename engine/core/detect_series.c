#include <stdlib.h>
#include <string.h>

#include "detect_model.h"

/* What the newest complete unit of each kind has, so that the next one can be measured by it. */

/* The shards of one model and the files of several ranks are kinds of their own: none is newer than
 * the others. */
void detect_series(const char *unit_name, char *out, size_t len) {
  size_t at = 0;
  for (const char *c = unit_name; *c && at + 1 < len;) {
    size_t digits = strspn(c, "0123456789");
    if (digits && !match_part_number(unit_name, c, c + digits)) {
      out[at++] = '#';
      c += digits;
      continue;
    }
    size_t run = digits ? digits : 1;
    while (run-- && at + 1 < len) out[at++] = *c++;
  }
  if (len) out[at] = '\0';
}

bool detect_same_series(const char *unit_name, const char *other) {
  char a[512], b[512];
  detect_series(unit_name, a, sizeof a);
  detect_series(other, b, sizeof b);
  return strcmp(a, b) == 0;
}

static series *find_series(const detect *d, const char *group, const char *unit_name) {
  char name[256];
  detect_series(unit_name, name, sizeof name);
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
  detect_series(unit_name, name, sizeof name);
  series *grown = realloc(d->series, (d->series_count + 1) * sizeof *grown);
  if (!grown) return err_set(e, ERR_NOMEM, "watch: out of memory");
  d->series = grown;
  series *s = &grown[d->series_count];
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

static void free_names(char **names, size_t count) {
  for (size_t i = 0; i < count; i++) free(names[i]);
  free(names);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int series_learn(detect *d, const char *group, const char *unit_name, const char *const *names,
                 size_t count, err *e) {
  char **copy = calloc(count + 1, sizeof *copy);
  size_t done = 0;
  while (copy && done < count && (copy[done] = strdup(names[done]))) done++;
  series *s = find_series(d, group, unit_name);
  int rc = copy && done == count ? 0 : err_set(e, ERR_NOMEM, "watch: out of memory");
  if (rc == 0 && !s) rc = add_series(d, group, unit_name, &s, e);
  if (rc < 0) {
    free_names(copy, done);
    return rc;
  }
  if (count > 1) qsort(copy, count, sizeof *copy, by_name);
  free_names(s->files, s->count);
  s->files = copy;
  s->count = count;
  s->step = match_last_number(unit_name);
  free(s->unit);
  s->unit = strdup(unit_name);
  return 0;
}

void series_free_all(detect *d) {
  for (size_t i = 0; i < d->series_count; i++) {
    free(d->series[i].group);
    free(d->series[i].name);
    free(d->series[i].unit);
    free_names(d->series[i].files, d->series[i].count);
  }
  free(d->series);
}
