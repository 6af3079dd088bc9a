/* policy_rules: makes rules of what a chain says about units and their completeness, with the
 * command line's before them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_impl.h"
#include "event/frameworks.h"

enum { LIST_MAX = 1024, MARKERS_MAX = 64, DEPTH_MAX = 16 };
static const int64_t year_ns = INT64_C(365) * 24 * 3600 * 1000000000;

/* All strings belong to the JSON value or to the options. */
typedef struct draft {
  const policy_options *options;
  const char **units, **proven, **above, **excludes;
  rules_test tests[RULES_TESTS_MAX];
  size_t test_count;
  rules_marker known[MARKERS_MAX];
  size_t known_count;
  bool has_known; /* a `known` condition was read */
  bool markers;   /* it has markers of its own */
  int64_t quiet_ns, marked_ns, sound_ns, settled_ns;
} draft;

static int wrong(err *e, const char *key, const char *what) {
  return err_set(e, ERR_POLICY, "%s: %s", key, what);
}

/* Names the key before the text of a check of ours, which has told what is wrong with a pattern. */
static int by_policy(err *e, const char *key) {
  if (e) {
    err_wrap(e, "%s", key);
    e->code = ERR_POLICY;
  }
  return ERR_POLICY;
}

static int list_size(const json_t *value, const char *key, size_t max, size_t *out, err *e) {
  ssize_t n = policy_list(value);
  if (n < 0) return wrong(e, key, "this is no list");
  if ((size_t)n > max) return wrong(e, key, "the list is too long");
  *out = (size_t)n;
  return 0;
}

/* Makes a list with room for the policy's items and the user's, and the NULL behind them. */
static const char **new_list(size_t count, const char *const *more, err *e) {
  while (more && *more++) count++;
  const char **list = calloc(count + 1, sizeof *list);
  if (!list) err_set(e, ERR_NOMEM, "out of memory for a policy's lists");
  return list;
}

/* ---- units and excludes ---- */

static int read_units(const json_t *value, draft *d, err *e) {
  size_t count, n = 0, p = 0;
  int rc = list_size(value, "unit", LIST_MAX, &count, e);
  if (rc < 0 || count == 0) return rc;
  d->units = new_list(count, NULL, e);
  d->proven = d->units ? new_list(count, NULL, e) : NULL;
  if (!d->proven) return ERR_NOMEM;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    const json_t *one = json_array_get(value, i);
    const char *glob = json_string_value(json_is_string(one) ? one : json_object_get(one, "glob"));
    if (!glob) return wrong(e, "unit", "a pattern is no text");
    rc = match_unit_check(glob, NULL, e);
    if (rc < 0) return by_policy(e, "unit");
    d->units[n++] = glob;
    if (json_is_true(json_object_get(one, "proven"))) d->proven[p++] = glob;
  }
  return rc;
}

static int read_above(const json_t *value, draft *d, err *e) {
  size_t count;
  if (!value) return 0;
  int rc = list_size(value, "above", LIST_MAX, &count, e);
  if (rc < 0) return rc;
  d->above = new_list(count, NULL, e); /* an empty list: none */
  if (!d->above) return ERR_NOMEM;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    d->above[i] = json_string_value(json_array_get(value, i));
    if (!d->above[i]) return wrong(e, "above", "a pattern is no text");
    if (match_exclude_check(d->above[i], e) < 0) rc = by_policy(e, "above");
  }
  return rc;
}

static int read_excludes(const json_t *value, const json_t *markers, draft *d, err *e) {
  size_t count, n = 0;
  const char *const *more = d->options->excludes;
  int rc = list_size(value, "exclude", LIST_MAX, &count, e);
  if (rc < 0) return rc;
  d->excludes = new_list(count + 2, more, e);
  if (!d->excludes) return ERR_NOMEM;
  /* Marker files are excluded: a temporary checkpoint is saved without its marker, and so is
   * permanent in the store. */
  for (size_t i = 0; i < 2; i++) {
    const char *name = json_string_value(json_object_get(markers, i == 0 ? "null" : "temp"));
    if (!name) continue;
    rc = match_exclude_check(name, e);
    if (rc < 0) return err_wrap(e, "markers");
    d->excludes[n++] = name;
  }
  for (size_t i = 0; rc == 0 && i < count; i++) {
    const char *glob = json_string_value(json_array_get(value, i));
    if (!glob) return wrong(e, "exclude", "a pattern is no text");
    rc = match_exclude_check(glob, e);
    if (rc < 0) return by_policy(e, "exclude");
    d->excludes[n++] = glob;
  }
  while (more && *more) d->excludes[n++] = *more++;
  return rc;
}

/* ---- complete ---- */

static int read_time(const json_t *object, const char *key, int64_t *out, err *e) {
  const json_t *value = json_object_get(object, key);
  int64_t ns;
  if (!value || json_is_null(value)) return 0;
  if (!policy_whole(value, 0, 10 * year_ns, &ns)) return wrong(e, "complete", "a time is none");
  *out = ns > 0 ? ns : RULES_NO_TIME;
  return 0;
}

static int read_marker(const json_t *value, rules_marker *out, err *e) {
  const json_t *when = json_object_get(value, "when");
  out->name = json_string_value(json_object_get(value, "name"));
  out->signature = json_string_value(when);
  out->newest = json_is_true(json_object_get(value, "newer"));
  out->final = json_is_true(json_object_get(value, "final"));
  if (!out->name || (when && !json_is_null(when) && !out->signature))
    return wrong(e, "complete", "a marker has no name, or no text in `when`");
  return 0;
}

static int read_known(const json_t *value, draft *d, err *e) {
  const json_t *markers = json_object_get(value, "markers");
  if (d->has_known) return wrong(e, "complete", "done.known stands there twice");
  int rc = list_size(markers, "complete: markers", MARKERS_MAX, &d->known_count, e);
  for (size_t i = 0; rc == 0 && i < d->known_count; i++)
    rc = read_marker(json_array_get(markers, i), &d->known[i], e);
  d->has_known = true;
  d->markers = markers && !json_is_null(markers);
  if (rc == 0) rc = read_time(value, "quiet_ns", &d->quiet_ns, e);
  if (rc == 0) rc = read_time(value, "marked_ns", &d->marked_ns, e);
  if (rc == 0) rc = read_time(value, "sound_ns", &d->sound_ns, e);
  if (rc == 0) rc = read_time(value, "settled_ns", &d->settled_ns, e);
  return rc;
}

/* Reads a condition without parts. */
static int read_leaf(const json_t *value, const char *done, draft *d, rules_test *t, err *e) {
  static const struct {
    const char *word;
    rules_op op;
  } words[] = {{"renamed", RULES_RENAMED}, {"closed", RULES_CLOSED}, {"superset", RULES_SUPERSET},
               {"sound", RULES_SOUND},     {"quiet", RULES_QUIET},   {"marker", RULES_MARKER},
               {"parts", RULES_PARTS},     {"known", RULES_KNOWN}};
  size_t i = 0, count = sizeof words / sizeof *words;
  while (i < count && strcmp(words[i].word, done) != 0) i++;
  if (i == count) return wrong(e, "complete", "there is no such condition");
  t->op = words[i].op;
  if (t->op == RULES_KNOWN) return read_known(value, d, e);
  if (t->op == RULES_MARKER) {
    t->name = json_string_value(json_object_get(value, "name"));
    t->newer = json_is_true(json_object_get(value, "newer"));
    if (!t->name) return wrong(e, "complete", "the marker has no name");
  }
  if (t->op == RULES_PARTS) {
    json_int_t count = json_integer_value(json_object_get(value, "count"));
    t->name = json_string_value(json_object_get(value, "name"));
    t->count = count > 0 && count <= UINT_MAX ? (unsigned)count : 0;
    if (!t->name || t->count == 0)
      return wrong(e, "complete", "the parts have no name, or no number");
  }
  if (t->op == RULES_QUIET) {
    if (!json_object_get(value, "ns")) return wrong(e, "complete", "the quiet time is missing");
    int rc = read_time(value, "ns", &t->ns, e);
    if (rc < 0) return rc;
    if (t->ns == RULES_NO_TIME) t->ns = 0;
    /* The command line comes before the policies. */
    if (d->options->quiet_ns >= 0) t->ns = d->options->quiet_ns;
  }
  return 0;
}

/* Reads one condition into tests[at]; the parts of a branch get the next free places. */
static int read_test(const json_t *value, draft *d, size_t at, unsigned depth, err *e) {
  static const char *const branches[] = {"all", "any", "none"};
  static const rules_op ops[] = {RULES_ALL, RULES_ANY, RULES_NONE};
  const char *done = json_string_value(json_object_get(value, "done"));
  if (done) return read_leaf(value, done, d, &d->tests[at], e);
  const json_t *parts = NULL;
  rules_op op = RULES_ALL;
  for (size_t i = 0; !parts && i < 3; i++) {
    parts = json_object_get(value, branches[i]);
    op = ops[i];
  }
  size_t count = 0;
  if (!parts || depth == DEPTH_MAX) return wrong(e, "complete", "a condition is none");
  int rc = list_size(parts, "complete", RULES_TESTS_MAX, &count, e);
  if (rc < 0) return rc;
  if (count == 0) return wrong(e, "complete", "all, any and none need something in them");
  if (count > RULES_TESTS_MAX - d->test_count)
    return wrong(e, "complete", "there are too many conditions");
  d->tests[at] = (rules_test){.op = op, .first = (unsigned)d->test_count, .count = (unsigned)count};
  d->test_count += count;
  for (size_t i = 0; rc == 0 && i < count; i++)
    rc = read_test(json_array_get(parts, i), d, d->tests[at].first + i, depth + 1, e);
  return rc;
}

static int read_complete(const json_t *value, draft *d, err *e) {
  bool user = d->options->markers != NULL;
  size_t at = 0;
  if (!value || json_is_null(value)) return 0;
  d->test_count = user ? 3 : 1;
  if (user) { /* the user's markers are part of the built-in conditions: those have to hold too */
    d->tests[0] = (rules_test){.op = RULES_ALL, .first = 1, .count = 2};
    d->tests[1] = (rules_test){.op = RULES_KNOWN};
    at = 2;
  }
  int rc = read_test(value, d, at, 0, e);
  if (rc == 0 && d->tests[at].op == RULES_KNOWN)
    d->test_count = 0; /* rules without tests do just
                                                                     * that */
  return rc;
}

/* ---- */

int policy_make_rules(const policy_options *o, const json_t *data, rules **out, err *e) {
  *out = NULL;
  draft *d = calloc(1, sizeof *d);
  if (!d) return err_set(e, ERR_NOMEM, "out of memory for the rules of a policy");
  *d = (draft){.options = o, .quiet_ns = -1, .marked_ns = -1, .sound_ns = -1, .settled_ns = -1};
  int rc = read_units(json_object_get(data, "unit"), d, e);
  if (rc == 0) rc = read_above(json_object_get(data, "above"), d, e);
  if (rc == 0)
    rc = read_excludes(json_object_get(data, "exclude"), json_object_get(data, "markers"), d, e);
  if (rc == 0) rc = read_complete(json_object_get(data, "complete"), d, e);
  if (rc == 0) {
    rules_spec spec = {.units = o->units ? o->units : (const char *const *)d->units,
                       .proven = o->units ? NULL : (const char *const *)d->proven,
                       .above = (const char *const *)d->above,
                       .excludes = (const char *const *)d->excludes,
                       .known = d->markers ? d->known : NULL,
                       .known_count = d->known_count,
                       .markers = o->markers,
                       .quiet_ns = d->quiet_ns,
                       .marked_ns = d->marked_ns,
                       .sound_ns = d->sound_ns,
                       .settled_ns = d->settled_ns,
                       .tests = d->tests,
                       .test_count = d->test_count};
    if (o->quiet_ns >= 0) spec.quiet_ns = o->quiet_ns > 0 ? o->quiet_ns : RULES_NO_TIME;
    rc = rules_make(&spec, out, e);
  }
  /* If the user gave patterns, too, the command line may be at fault. */
  if (rc == ERR_INVAL && !(o->units || o->excludes || o->markers)) {
    rc = ERR_POLICY;
    if (e) e->code = rc;
  }
  free(d->units);
  free(d->proven);
  free(d->above);
  free(d->excludes);
  free(d);
  return rc;
}

/* True if one of its components is "..". */
static bool leaves_group(const char *glob) {
  for (const char *at = glob;;) {
    size_t len = strcspn(at, "/");
    if (len == 2 && at[0] == '.' && at[1] == '.') return true;
    if (!at[len]) return false;
    at += len + 1;
  }
}

/* What stands above the checkpoints is saved as that. */
static bool is_above(const char *glob) {
  for (const framework *f = frameworks(); f->name; f++)
    for (size_t i = 0; f->above[i]; i++)
      if (strcmp(f->above[i], glob) == 0) return true;
  return false;
}

/* Without them a framework begins anew, or fails, where its checkpoints alone came back: a policy that
 * says nothing of them must not lose them. */
static int known_companions(const char ***out, err *e) {
  size_t count = 0;
  for (const framework *f = frameworks(); f->name; f++) count += FRAMEWORK_POINTERS;
  const char **list = new_list(count, NULL, e);
  if (!list) return ERR_NOMEM;
  *out = list;
  for (const framework *f = frameworks(); f->name; f++)
    for (const framework_pointer *p = f->pointers; p->name; p++)
      if (!is_above(p->name)) *list++ = p->name;
  return 0;
}

int policy_make_companions(const json_t *data, const char ***out, err *e) {
  const json_t *value = json_object_get(data, "with");
  size_t count = 0;
  *out = NULL;
  if (!value) return known_companions(out, e);
  int rc = list_size(value, "with", LIST_MAX, &count, e);
  if (rc < 0) return rc;
  const char **list = new_list(count, NULL, e);
  if (!list) return ERR_NOMEM;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    list[i] = json_string_value(json_array_get(value, i));
    if (!list[i]) rc = wrong(e, "with", "a pattern is no text");
    if (rc == 0 && match_exclude_check(list[i], e) < 0) rc = by_policy(e, "with");
    if (rc == 0 && leaves_group(list[i])) rc = wrong(e, "with", "a pattern leads out with \"..\"");
  }
  if (rc == 0)
    *out = list;
  else
    free(list);
  return rc;
}
