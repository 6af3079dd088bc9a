#include "rules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"

enum { NAMES_MAX = 128 }; /* a test holds that nothing is cut off */

static const int64_t second = 1000000000;

/* The lists of all rows of the table, put together when they are first asked for. */
static struct {
  const char *units[NAMES_MAX], *proven[NAMES_MAX], *above[NAMES_MAX], *excludes[NAMES_MAX];
  rules_marker markers[NAMES_MAX];
} all;

static rules builtin = {
    .units = all.units,
    .proven = all.proven,
    .above = all.above,
    .excludes = all.excludes,
    .markers = all.markers,
    .quiet_ns = 30 * second,
    .marked_ns = 3 * second / 2,
    .sound_ns = second,
    .settled_ns = second / 10,
};

static void append(const char **to, const char *const *from) {
  size_t n = 0;
  while (to[n]) n++;
  for (; *from && n + 1 < NAMES_MAX; from++) to[n++] = *from;
}

static void gather(void) {
  for (const framework *f = frameworks(); f->name; f++) {
    append(all.units, f->units);
    append(all.proven, f->proven);
    append(all.above, f->above);
    append(all.excludes, f->temporary);
    for (const rules_marker *m = f->markers; m->name && builtin.marker_count < NAMES_MAX; m++)
      all.markers[builtin.marker_count++] = *m;
  }
}

const rules *rules_builtin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, gather);
  return &builtin;
}

bool rules_excludes_builtin(const char *pattern) {
  const char *const *excludes = rules_builtin()->excludes;
  return excludes[names_index(excludes, pattern)] != NULL;
}

static size_t count_of(const char *const *list) {
  size_t n = 0;
  while (list && list[n]) n++;
  return n;
}

static void free_list(const char *const *list) {
  for (size_t i = 0; list && list[i]; i++) free((char *)list[i]);
  free((void *)list);
}

/* Copies both lists, one after the other. */
static const char *const *copy_lists(const char *const *a, const char *const *b) {
  const char **out = calloc(count_of(a) + count_of(b) + 1, sizeof *out);
  size_t n = 0;
  bool whole = out != NULL;
  for (; whole && a && *a; a++) whole = (out[n++] = strdup(*a)) != NULL;
  for (; whole && b && *b; b++) whole = (out[n++] = strdup(*b)) != NULL;
  if (whole) return (const char *const *)out;
  free_list((const char *const *)out);
  return NULL;
}

static int check_marker(const char *name, err *e) {
  if (*name == '\0') return err_set(e, ERR_INVAL, "a marker's name is empty");
  if (strlen(name) > 255) return err_set(e, ERR_INVAL, "marker \"%.40s...\" is too long", name);
  if (strchr(name, '/'))
    return err_set(e, ERR_INVAL, "marker \"%s\": a file at the top of the checkpoint, no slash",
                   name);
  return 0;
}

static int check_list(const char *const *list, int (*check)(const char *, err *), err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && list && list[i]; i++) rc = check(list[i], e);
  return rc;
}

static int check_unit(const char *pattern, err *e) {
  return match_unit_check(pattern, NULL, e);
}

/* It is one file, so that 1.0 can read it, and is not told from others by a step. */
static int check_above(const char *pattern, err *e) {
  size_t len = strlen(pattern);
  int rc = match_exclude_check(pattern, e);
  if (rc == 0 && pattern[len - 1] == '/')
    rc = err_set(e, ERR_INVAL, "pattern \"%s\": this is a directory, and files are meant", pattern);
  return rc;
}

static int check_known(const rules_marker *m, err *e) {
  int rc = check_marker(m->name, e);
  if (rc < 0 || !m->signature) return rc;
  if (strchr(m->signature, '/'))
    return err_set(e, ERR_INVAL, "marker \"%s\": \"%s\" is a name at the top, without a slash",
                   m->name, m->signature);
  return match_exclude_check(m->signature, e);
}

static bool is_branch(rules_op op) {
  return op == RULES_ALL || op == RULES_ANY || op == RULES_NONE;
}

static int check_parts(const char *glob, err *e) {
  enum { MOST = 255 };
  if (*glob && strlen(glob) <= MOST) return 0;
  return err_set(e, ERR_INVAL, "a glob of parts has 1 to %d bytes", MOST);
}

/* Checks one test by itself; a branch also counts how often each of its parts is used. */
static int check_test(const rules_spec *s, size_t at, unsigned *used, err *e) {
  const rules_test *t = &s->tests[at];
  if ((unsigned)t->op > RULES_KNOWN)
    return err_set(e, ERR_INVAL, "condition %zu is of no known kind", at + 1);
  if (t->op == RULES_MARKER && !t->name)
    return err_set(e, ERR_INVAL, "condition %zu: the marker has no name", at + 1);
  if (t->op == RULES_MARKER) return check_marker(t->name, e);
  if (t->op == RULES_PARTS && (!t->name || t->count == 0))
    return err_set(e, ERR_INVAL, "condition %zu: the parts have no name, or no number", at + 1);
  if (t->op == RULES_PARTS) return check_parts(t->name, e);
  if (t->op == RULES_QUIET && t->ns < 0)
    return err_set(e, ERR_INVAL, "condition %zu: a quiet time cannot be negative", at + 1);
  if (!is_branch(t->op)) return 0;
  /* Parts stand behind their branch, so nothing can be a part of itself. */
  if (t->count == 0 || t->first <= at || t->first > s->test_count ||
      t->count > s->test_count - t->first)
    return err_set(e, ERR_INVAL, "condition %zu: all, any and none need something in them", at + 1);
  for (size_t i = 0; i < t->count; i++) used[t->first + i]++;
  return 0;
}

/* Checks that the tests are a tree: each part has one place, or looking at it could take for
 * ever. */
static int check_tests(const rules_spec *s, err *e) {
  unsigned used[RULES_TESTS_MAX] = {1};
  int rc = 0;
  if (s->test_count > RULES_TESTS_MAX)
    return err_set(e, ERR_LIMIT, "at most %d conditions of completeness", RULES_TESTS_MAX);
  for (size_t i = 0; rc == 0 && i < s->test_count; i++) rc = check_test(s, i, used, e);
  for (size_t i = 0; rc == 0 && i < s->test_count; i++)
    if (used[i] != 1) rc = err_set(e, ERR_INVAL, "condition %zu is not in one place", i + 1);
  return rc;
}

static int check_spec(const rules_spec *s, err *e) {
  int rc = check_list(s->units, check_unit, e);
  if (rc == 0) rc = check_list(s->proven, check_unit, e);
  if (rc == 0) rc = check_list(s->above, check_above, e);
  if (rc == 0) rc = check_list(s->excludes, match_exclude_check, e);
  if (rc == 0) rc = check_list(s->markers, check_marker, e);
  for (size_t i = 0; rc == 0 && s->known && i < s->known_count; i++)
    rc = check_known(&s->known[i], e);
  if (rc == 0) rc = check_tests(s, e);
  if (rc == 0 && s->units && !*s->units) rc = err_set(e, ERR_INVAL, "the list of units is empty");
  return rc;
}

/* Copies a whole row: half of it would turn a required marker into one that only helps. */
static bool copy_marker(const rules_marker *from, rules_marker *to) {
  to->name = strdup(from->name);
  to->signature = from->signature ? strdup(from->signature) : NULL;
  to->newest = from->newest;
  to->final = from->final;
  return to->name && (to->signature || !from->signature);
}

/* Copies the markers; those that a user asks for by name stand in place of all others. */
static bool copy_markers(const rules_spec *s, rules *r) {
  const rules *ours = rules_builtin();
  const rules_marker *known = s->known ? s->known : ours->markers;
  size_t count = s->markers ? count_of(s->markers) : s->known ? s->known_count : ours->marker_count;
  rules_marker *out = calloc(count + 1, sizeof *out);
  bool whole = out != NULL;
  r->markers = out;
  r->marker_count = whole ? count : 0;
  for (size_t i = 0; whole && i < count; i++) {
    rules_marker by_user = {.name = s->markers ? s->markers[i] : NULL, .signature = RULES_ALWAYS};
    whole = copy_marker(s->markers ? &by_user : &known[i], &out[i]);
  }
  return whole;
}

static bool copy_tests(const rules_spec *s, rules *r) {
  rules_test *out = calloc(s->test_count + 1, sizeof *out);
  bool whole = out != NULL;
  r->tests = out;
  r->test_count = whole ? s->test_count : 0;
  for (size_t i = 0; whole && i < s->test_count; i++) {
    out[i] = s->tests[i];
    bool named = s->tests[i].op == RULES_MARKER || s->tests[i].op == RULES_PARTS;
    out[i].name = named ? strdup(s->tests[i].name) : NULL;
    whole = out[i].name || !named;
  }
  return whole;
}

static int64_t time_or(int64_t ns, int64_t otherwise) {
  return ns > 0 ? ns : otherwise;
}

int rules_make(const rules_spec *s, rules **out, err *e) {
  *out = NULL;
  int rc = check_spec(s, e);
  if (rc < 0) return rc;
  rules *r = calloc(1, sizeof *r);
  if (!r) return err_set(e, ERR_NOMEM, "rules: out of memory");
  const rules *ours = rules_builtin();
  r->units = copy_lists(s->units ? s->units : ours->units, NULL);
  /* A user who writes a pattern means it: only patterns of the default list ask for a proof by
   * themselves. */
  r->proven = copy_lists(s->proven ? s->proven : s->units ? NULL : ours->proven, NULL);
  r->above = copy_lists(s->above ? s->above : ours->above, NULL);
  r->excludes = copy_lists(ours->excludes, s->excludes);
  r->quiet_ns = time_or(s->quiet_ns, ours->quiet_ns);
  r->marked_ns = time_or(s->marked_ns, ours->marked_ns);
  r->sound_ns = time_or(s->sound_ns, ours->sound_ns);
  r->settled_ns = time_or(s->settled_ns, ours->settled_ns);
  /* A marker and a structure are more proof than silence: they never wait longer. */
  if (r->marked_ns > r->quiet_ns) r->marked_ns = r->quiet_ns;
  if (r->sound_ns > r->quiet_ns) r->sound_ns = r->quiet_ns;
  bool copied = copy_markers(s, r);
  copied = copy_tests(s, r) && copied;
  if (!copied || !r->units || !r->proven || !r->above || !r->excludes) {
    rules_free(r);
    return err_set(e, ERR_NOMEM, "rules: out of memory");
  }
  *out = r;
  return 0;
}

int rules_custom(const char *const *user_units, const char *const *user_excludes,
                 const char *const *user_markers, int64_t quiet_ns, rules **out, err *e) {
  return rules_make(&(rules_spec){.units = user_units,
                                  .excludes = user_excludes,
                                  .markers = user_markers,
                                  .quiet_ns = quiet_ns == 0 ? RULES_NO_TIME : quiet_ns},
                    out, e);
}

void rules_free(rules *r) {
  if (!r || r == &builtin) return;
  free_list(r->units);
  free_list(r->proven);
  free_list(r->above);
  free_list(r->excludes);
  for (size_t i = 0; i < r->marker_count; i++) {
    free((char *)r->markers[i].name);
    free((char *)r->markers[i].signature);
  }
  for (size_t i = 0; i < r->test_count; i++) free((char *)r->tests[i].name);
  free((void *)r->markers);
  free((void *)r->tests);
  free(r);
}

const char *rules_match(const rules *r, const char *path, bool is_dir, match_unit *out) {
  for (size_t i = 0; r->units[i]; i++)
    if (match_unit_path(r->units[i], path, is_dir, out)) return r->units[i];
  for (size_t i = 0; !is_dir && r->above[i]; i++)
    if (match_unit_path(r->above[i], path, false, out)) {
      out->step = MATCH_NO_STEP;
      return r->above[i];
    }
  return NULL;
}

bool rules_is_above(const rules *r, const char *pattern) {
  return pattern && r->above[names_index(r->above, pattern)] != NULL;
}

bool rules_needs_proof(const rules *r, const char *pattern) {
  for (size_t i = 0; r->proven[i]; i++)
    if (strcmp(r->proven[i], pattern) == 0) return true;
  return false;
}

static bool is_left(const rules *r, const char *path, bool is_dir) {
  for (size_t i = 0; r->left && r->left[i]; i++)
    if (match_exclude(r->left[i], path, is_dir)) return true;
  return false;
}

static bool is_excluded_of_all(const rules *r, const char *path, bool is_dir) {
  if (r->shell && match_excluded(r->shell, path)) return true;
  for (size_t i = 0; r->excludes[i]; i++)
    if (match_exclude(r->excludes[i], path, is_dir)) return true;
  return false;
}

bool rules_excluded(const rules *r, const char *path, bool is_dir) {
  return is_left(r, path, is_dir) || is_excluded_of_all(r, path, is_dir);
}

bool rules_excluded_here(const rules *r, const char *path, bool is_dir) {
  return is_left(r, path, is_dir) && !is_excluded_of_all(r, path, is_dir);
}

bool rules_excluded_by_wish(const rules *r, const char *path, bool is_dir) {
  if (is_left(r, path, is_dir)) return true;
  for (size_t i = 0; r->excludes[i]; i++)
    if (!rules_excludes_builtin(r->excludes[i]) && match_exclude(r->excludes[i], path, is_dir))
      return true;
  return false;
}

const rules_marker *rules_marker_named(const rules *r, const char *name) {
  for (size_t i = 0; i < r->marker_count; i++)
    if (strcmp(r->markers[i].name, name) == 0) return &r->markers[i];
  return NULL;
}

bool rules_marker_by_user(const rules_marker *m) {
  return m->signature && strcmp(m->signature, RULES_ALWAYS) == 0;
}

bool rules_is_marker(const rules *r, const char *name) {
  if (rules_marker_named(r, name)) return true;
  for (size_t i = 0; i < r->test_count; i++)
    if (r->tests[i].op == RULES_MARKER && strcmp(r->tests[i].name, name) == 0) return true;
  return false;
}

bool rules_is_contents(const char *name) {
  return strcmp(name, ".ckpt-manifest.json") == 0 || strcmp(name, ".ckpt-thin.json") == 0;
}

static bool needs(const rules *r, const rules_test *t, rules_op op, const char *name) {
  if (t->op == op) return !name || strcmp(t->name, name) == 0;
  for (size_t i = 0; t->op == RULES_ALL && i < t->count; i++)
    if (needs(r, &r->tests[t->first + i], op, name)) return true;
  return false;
}

bool rules_needs(const rules *r, rules_op op, const char *name) {
  return r->test_count > 0 ? needs(r, &r->tests[0], op, name) : op == RULES_KNOWN;
}
