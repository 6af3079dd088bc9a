#include "rules_differ.h"

#include <string.h>

#include "base/names.h"

static bool same_list(const char *const *a, const char *const *b) {
  size_t i = 0;
  for (; a && b && a[i] && b[i]; i++)
    if (strcmp(a[i], b[i]) != 0) return false;
  return (!a || !a[i]) && (!b || !b[i]);
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_markers(const rules *a, const rules *b) {
  if (a->marker_count != b->marker_count) return false;
  for (size_t i = 0; i < a->marker_count; i++) {
    const rules_marker *m = &a->markers[i], *n = &b->markers[i];
    if (!same_text(m->name, n->name) || !same_text(m->signature, n->signature) ||
        m->newest != n->newest || m->final != n->final)
      return false;
  }
  return true;
}

static bool same_test(const rules_test *a, const rules_test *b) {
  return a->op == b->op && a->first == b->first && a->count == b->count &&
         same_text(a->name, b->name) && a->newer == b->newer && a->ns == b->ns;
}

/* The built-in conditions are the same whether they are written out or not. */
static size_t tests_of(const rules *r) {
  return r->test_count == 1 && r->tests[0].op == RULES_KNOWN ? 0 : r->test_count;
}

static bool same_tests(const rules *a, const rules *b) {
  const size_t count = tests_of(a);
  if (tests_of(b) != count) return false;
  for (size_t i = 0; i < count; i++)
    if (!same_test(&a->tests[i], &b->tests[i])) return false;
  return true;
}

static bool same_times(const rules *a, const rules *b) {
  return a->quiet_ns == b->quiet_ns && a->marked_ns == b->marked_ns && a->sound_ns == b->sound_ns &&
         a->settled_ns == b->settled_ns;
}

const char *rules_differ(const rules *a, const rules *b) {
  if (!same_list(a->units, b->units) || !names_same(a->proven, b->proven)) return "unit";
  if (!same_list(a->above, b->above)) return "above";
  if (!names_same(a->excludes, b->excludes) || !names_same(a->shell, b->shell)) return "exclude";
  if (!same_markers(a, b) || !same_times(a, b) || !same_tests(a, b)) return "complete";
  return NULL;
}
