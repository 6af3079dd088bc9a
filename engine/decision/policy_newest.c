/* policy_newest: files that only the newest checkpoints keep. What is wrong in it would take something from
 * checkpoints that are saved: it is refused before anything begins. */
#include <stdio.h>
#include <string.h>

#include "decision/policy_impl.h"

/* A name that no framework has: a glob that means it means everything. */
static const char any_name[] = "x7q.made-up";

static int refuse(err *e, const char *glob, const char *why) {
  return err_set(e, ERR_POLICY, "newest_only: \"%.80s\" %s", glob, why);
}

enum { GLOB_MAX = 256 };

/* Copies a glob with `?` for each set of bytes. */
static size_t flatten(const char *glob, char out[GLOB_MAX]) {
  size_t len = 0;
  for (const char *end; *glob && len + 1 < GLOB_MAX; glob++) {
    end = *glob == '[' && glob[1] ? strchr(glob + 2, ']') : NULL;
    out[len++] = end ? '?' : *glob;
    if (end) glob = end;
  }
  out[len] = 0;
  return len;
}

/* True if a name can be meant by both globs; of a set any byte is taken to be in it. From the end on, `row[k]` says
 * so of what is left of the first and what is left of the second from k on. */
static bool may_meet(const char *first, const char *second) {
  char a[GLOB_MAX], b[GLOB_MAX];
  bool row[GLOB_MAX + 1] = {false}, last[GLOB_MAX + 1];
  size_t rows = flatten(first, a), len = flatten(second, b);
  for (size_t i = rows + 1; i-- > 0;) {
    memcpy(last, row, sizeof row);
    for (size_t k = len + 1; k-- > 0;) {
      const bool same = a[i] == b[k] || (a[i] == '?' && b[k]) || (b[k] == '?' && a[i]);
      if (a[i] == '*' || b[k] == '*')
        row[k] = (i < rows && last[k]) || (k < len && row[k + 1]);
      else
        row[k] = (i == rows && k == len) || (i < rows && k < len && same && last[k + 1]);
    }
  }
  return row[0];
}

/* Parts are counted by a glob. */
static bool is_asked_for(const rules *r, const char *glob) {
  for (size_t i = 0; i < r->test_count; i++) {
    const rules_test *t = &r->tests[i];
    const char *base = t->name ? strrchr(t->name, '/') : NULL;
    if (t->op == RULES_MARKER && match_exclude(glob, t->name, false)) return true;
    if (t->op == RULES_PARTS && may_meet(glob, base ? base + 1 : t->name)) return true;
  }
  for (size_t i = 0; i < r->marker_count; i++)
    if (match_exclude(glob, r->markers[i].name, false)) return true;
  return false;
}

static int check_glob(const rules *r, const char *glob, err *e) {
  err why = {0};
  if (match_anywhere_check(glob, &why) < 0)
    return err_set(e, ERR_POLICY, "newest_only: %s", why.text);
  if (match_exclude(glob, any_name, false) || match_exclude(glob, any_name, true))
    return refuse(e, glob,
                  "means all that a checkpoint has: nothing of the older ones would be left");
  if (is_asked_for(r, glob))
    return refuse(e, glob,
                  "means what a complete checkpoint has to have: the older ones would lack it");
  return 0;
}

static int add_glob(const json_t *item, const rules *r, policy_newest_only *out, err *e) {
  const char *glob = json_string_value(item);
  if (!glob) return err_set(e, ERR_POLICY, "newest_only: a pattern is no text");
  int rc = check_glob(r, glob, e);
  if (rc == 0 && !names_add(&out->globs, glob))
    rc = err_set(e, ERR_NOMEM, "out of memory for a policy");
  return rc;
}

static void take_names(const json_t *by, policy_newest_only *out) {
  size_t len = 0;
  for (size_t i = 0; i < json_array_size(by) && len < sizeof out->policy; i++) {
    const char *name = json_string_value(json_array_get(by, i));
    int more = snprintf(out->policy + len, sizeof out->policy - len, "%s%s", i ? ", " : "",
                        name ? name : "?");
    len += more > 0 ? (size_t)more : 0;
  }
}

int policy_make_newest(const json_t *data, const rules *rules, policy_newest_only *out, err *e) {
  const json_t *value = json_object_get(data, "newest_only");
  const json_t *files = json_object_get(value, "files");
  int64_t newest = 0;
  if (!value || json_is_null(value)) return 0;
  ssize_t count = policy_list(files);
  if (!files || count < 0) return err_set(e, ERR_POLICY, "newest_only: files: this is no list");
  if (count > POLICY_NEWEST_GLOBS)
    return err_set(e, ERR_POLICY, "newest_only: %zd globs: at most %d", count, POLICY_NEWEST_GLOBS);
  if (!policy_whole(json_object_get(value, "newest"), 1, 1000, &newest))
    return err_set(e, ERR_POLICY, "newest_only: newest is no number from 1 to 1000");
  int rc = 0;
  for (ssize_t i = 0; rc == 0 && i < count; i++)
    rc = add_glob(json_array_get(files, (size_t)i), rules, out, e);
  out->newest = (uint64_t)newest;
  take_names(json_object_get(value, "by"), out);
  return rc;
}

const policy_newest_only *policy_newest(const policy *p) {
  return &p->newest;
}
