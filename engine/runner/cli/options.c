#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "durations.h"

void *option_member(options *o, const option_spec *spec) {
  return (char *)o + spec->at;
}

/* ---- kinds of values ---- */

int take_set(options *o, const option_spec *spec, const char *value, char *error) {
  (void)value, (void)error;
  *(bool *)option_member(o, spec) = true;
  return 0;
}

int take_bit(options *o, const option_spec *spec, const char *value, char *error) {
  (void)value, (void)error;
  *(uint32_t *)option_member(o, spec) |= spec->bit;
  return 0;
}

int take_text(options *o, const option_spec *spec, const char *value, char *error) {
  (void)error;
  *(const char **)option_member(o, spec) = value;
  return 0;
}

int take_place(options *o, const option_spec *spec, const char *value, char *error) {
  const char *before = *(const char **)option_member(o, spec);
  if (before && strcmp(before, value) != 0)
    return OPTIONS_FAIL(error, "--%s is given twice, as '%s' and as '%s': say one of them",
                        spec->name, before, value);
  return take_text(o, spec, value, error);
}

int take_list(options *o, const option_spec *spec, const char *value, char *error) {
  const char *const **list = option_member(o, spec);
  size_t count = 0;
  while (*list && (*list)[count]) count++;
  const char **grown = realloc((void *)*list, (count + 2) * sizeof *grown);
  if (!grown) return OPTIONS_FAIL(error, "out of memory");
  grown[count] = value;
  grown[count + 1] = NULL;
  *list = grown;
  return 0;
}

int take_count(options *o, const option_spec *spec, const char *value, char *error) {
  char *end;
  unsigned long n = strtoul(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || n > spec->most)
    return OPTIONS_FAIL(error, "--%s: '%s' is no number from 0 to %u", spec->name, value,
                        spec->most);
  *(uint32_t *)option_member(o, spec) = (uint32_t)n;
  return 0;
}

int take_choice(options *o, const option_spec *spec, const char *value, char *error) {
  size_t len = strlen(value);
  unsigned place = 0;
  for (const char *at = spec->says; *at; place++) {
    size_t size = strcspn(at, "|");
    if (size == len && memcmp(at, value, len) == 0) {
      *(unsigned *)option_member(o, spec) = place;
      return 0;
    }
    at += size + (at[size] == '|');
  }
  return OPTIONS_FAIL(error, "--%s is one of %s, not '%s'", spec->name, spec->says, value);
}

int take_time(options *o, const option_spec *spec, const char *value, char *error) {
  double *seconds = option_member(o, spec);
  if (!duration_read(value, seconds))
    return OPTIONS_FAIL(error, "--%s: '%s' is no time; say 30s, 5m, 24h, 7d or inf", spec->name,
                        value);
  if (*seconds > 0 || !spec->says) return 0;
  return OPTIONS_FAIL(error, "--%s: %s", spec->name, spec->says);
}

int take_time_or_none(options *o, const option_spec *spec, const char *value, char *error) {
  double *seconds = option_member(o, spec);
  int rc = take_time(o, spec, value, error);
  if (rc == 0 && *seconds == 0) *seconds = -1;
  return rc;
}

/* ---- what many verbs take ---- */

static int take_level(options *o, const option_spec *spec, const char *value, char *error) {
  (void)value, (void)error;
  o->level = spec->letter == 'q' ? -1 : 1;
  return 0;
}

const option_spec option_json = {"json", NULL, "one JSON object for each line", take_set,
                                 .at = OF(json)};
const option_spec option_dry_run = {
    "dry-run",         NULL,         "say what would be done, and write nothing", take_set,
    .at = OF(dry_run), .letter = 'n'};
const option_spec options_common[OPTIONS_COMMON] = {
    {"quiet", NULL, "errors and the last line only", take_level, .letter = 'q'},
    {"verbose", NULL, "say more", take_level, .letter = 'v'},
    {"help", NULL, "this text", take_set, .at = OF(help), .letter = 'h'},
};

void options_free(options *o) {
  free((void *)o->run.units);
  free((void *)o->run.excludes);
  free((void *)o->run.markers);
  free((void *)o->run.policies);
  free((void *)o->run.settings);
  free((void *)o->only);
}

const char *const *options_policies(const options *o) {
  static const char *const implied[] = {"default", NULL};
  if (!o->run.policies) return implied;
  return strcmp(o->run.policies[0], "builtin") == 0 ? NULL : o->run.policies;
}

ckpt_plan_options options_plan(const options *o) {
  return (ckpt_plan_options){.size = sizeof(ckpt_plan_options),
                             .uri = o->uri,
                             .policies = options_policies(o),
                             .settings = o->run.settings,
                             .max_delete = o->run.max_delete,
                             .grace_delete_s = o->run.grace_delete_s,
                             .flags = o->run.flags & CKPT_NO_DELETE};
}
