/* explain_path: finds the unit that a path is, or is a part of, or else the pattern that is nearest
 * to it. */
#include <stdio.h>
#include <string.h>

#include "why/explain.h"
#include "prims/match.h"

/* ---- the nearest pattern ---- */

/* Makes a name or a pattern a short text that can be compared: digits and {step} are '#', {*}, *
 * and ** are '*', a set or ? is '?'. */
static void simplify(const char *from, bool pattern, char out[256]) {
  size_t at = 0;
  while (*from && at < 255) {
    size_t digits = strspn(from, "0123456789"),
           set = pattern && *from == '[' ? strcspn(from, "]") : 0;
    if (digits > 0) {
      out[at++] = '#';
      from += digits;
    } else if (pattern && strncmp(from, "{step}", 6) == 0) {
      out[at++] = '#';
      from += 6;
    } else if (pattern && strncmp(from, "{*}", 3) == 0) {
      out[at++] = '*';
      from += 3;
    } else if (set > 0 && from[set]) {
      out[at++] = '?';
      from += set + 1;
    } else {
      out[at++] = *from++;
    }
  }
  out[at] = '\0';
}

/* Counts the bytes that have to be changed so that `name` fits `pattern`; '*' and '?' fit for
 * nothing. */
static unsigned distance(const char *pattern, const char *name) {
  unsigned row[257], len = (unsigned)strlen(name);
  for (unsigned j = 0; j <= len; j++) row[j] = j;
  for (; *pattern; pattern++) {
    unsigned diagonal = row[0];
    if (*pattern != '*') row[0]++;
    for (unsigned j = 1; j <= len; j++) {
      unsigned above = row[j];
      if (*pattern == '*') {
        row[j] = above < row[j - 1] ? above : row[j - 1];
      } else {
        unsigned best = diagonal + !(*pattern == '?' || *pattern == name[j - 1]);
        if (above + 1 < best) best = above + 1;
        if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
        row[j] = best;
      }
      diagonal = above;
    }
  }
  return row[len];
}

/* Drops a trailing slash, which says that it is a directory, and "./", which says that it stands at
 * the top. */
static unsigned how_far(const char *pattern, const char *path) {
  char p[256] = "", n[256] = "", bare[256];
  size_t len = strlen(pattern);
  if (len > 2 && strncmp(pattern, "./", 2) == 0) pattern += 2;
  snprintf(bare, sizeof bare, "%s", pattern);
  len = strlen(bare);
  if (len > 0 && bare[len - 1] == '/') bare[len - 1] = '\0';
  simplify(bare, true, p);
  simplify(strchr(bare, '/') ? path : fs_base(path), false, n);
  return distance(p, n);
}

static const char *nearest(const rules *r, const char *path, unsigned *far) {
  const char *best = NULL;
  *far = UINT32_MAX;
  for (size_t i = 0; r->units[i]; i++) {
    unsigned now = how_far(r->units[i], path);
    if (now >= *far) continue;
    *far = now;
    best = r->units[i];
  }
  return best;
}

/* ---- no unit ---- */

static void say_no_unit(explain *x, const rules *r, const char *path, char kind) {
  match_unit m;
  unsigned far;
  bool is_dir = kind == 'd';
  const char *pattern = rules_match(r, path, is_dir, &m);
  if (pattern) { /* a bare number: by any other pattern it would be a unit */
    explain_cause(x, "no-unit",
                  "%s fits \"%s\", but such a directory counts only once it was renamed into place "
                  "or holds a marker",
                  path, pattern);
    return;
  }
  pattern = rules_match(r, path, !is_dir, &m);
  if (pattern && m.kind != MATCH_GROUP) {
    explain_cause(x, "no-unit", "%s fits \"%s\", but that is for %s", path, pattern,
                  is_dir ? "files" : "directories");
    return;
  }
  pattern = nearest(r, path, &far);
  if (far > 2 && 3 * far > strlen(fs_base(path)))
    explain_cause(x, "no-unit", "%s is no unit: no pattern is near it; the first one is \"%s\"",
                  path, r->units[0]);
  else if (far == 0)
    explain_cause(x, "no-unit", "%s is no unit: \"%s\" is nearest, but it stands elsewhere", path,
                  pattern);
  else
    explain_cause(x, "no-unit", "%s is no unit: \"%s\" is nearest, %u character%s away", path,
                  pattern, far, far == 1 ? "" : "s");
}

/* ---- excluded ---- */

static const char *excluding(const rules *r, const char *path, bool is_dir) {
  for (size_t i = 0; r->excludes[i]; i++)
    if (match_exclude(r->excludes[i], path, is_dir)) return r->excludes[i];
  return NULL;
}

static bool say_excluded(explain *x, const last_rules *last, const char *path, bool is_dir,
                         bool is_file) {
  const char *pattern = is_dir ? excluding(last->rules, path, true) : NULL;
  if (!pattern && is_file) pattern = excluding(last->rules, path, false);
  if (!pattern) return false;
  explain_cause(x, "excluded", "%s is excluded by \"%s\" (%s%s)", path, pattern,
                rules_excludes_builtin(pattern) ? "a temporary name that frameworks use"
                                                : "policy ",
                rules_excludes_builtin(pattern) ? ""
                : last->policies                ? last->policies
                                                : "of the run");
  return true;
}

/* ---- left out of one ---- */

/* What the newest commit was saved without, with a line's end behind each glob but the last. It may have
 * been found here again since, which says nothing of that. NULL: nothing, or nobody knows. */
static const char *left_of_commit(const explain_history *h) {
  uint64_t commit = 0;
  for (size_t i = h->count; i-- > 0;) {
    const trail_record *r = &h->records[i];
    if (r->what != TRAIL_COMMITTED) continue;
    if (!commit) commit = r->commit;
    if (r->commit == commit && r->left) return r->left;
  }
  return NULL;
}

/* Returns the glob that leaves this path out, in *len bytes; NULL: none does. */
static const char *leaving(const char *globs, const char *path, bool is_dir, size_t *len) {
  char glob[FS_PATH_MAX];
  for (const char *at = globs; *at; at += *len + (at[*len] != 0)) {
    *len = strcspn(at, "\n");
    if (*len >= sizeof glob) continue;
    memcpy(glob, at, *len);
    glob[*len] = 0;
    if (*len > 0 && match_exclude(glob, path, is_dir)) return at;
  }
  return NULL;
}

/* The same of a path, or a directory that it is in, below the unit. */
static const char *leaving_in(const char *globs, const explain_spot *spot, const char *unit,
                              size_t *len) {
  const char *path = spot->path;
  char at[FS_PATH_MAX];
  for (size_t end = 0; path[end];) {
    end += (end > 0) + strcspn(path + end + (end > 0), "/");
    if (end <= strlen(unit)) continue;
    snprintf(at, sizeof at, "%.*s", (int)end, path);
    const char *glob = leaving(globs, at, path[end] || spot->kind != 'f', len);
    if (glob) return glob;
  }
  return NULL;
}

void explain_left(explain *x, const explain_history *h, const explain_spot *spot,
                  const char *unit) {
  const char *globs = left_of_commit(h);
  size_t len = 0;
  if (!globs || strcmp(x->cause, "committed") != 0) return;
  const char *glob = leaving_in(globs, spot, unit, &len);
  if (glob)
    explain_cause(x, "left-out", "%s was saved without it: \"%.*s\", by `exclude` of a policy",
                  unit, (int)len, glob);
}

void explain_taken(explain *x, const explain_stored *s, const explain_spot *spot,
                   const char *unit) {
  size_t len = 0;
  char when[32] = "";
  if (!s->taken || strcmp(x->cause, "committed") != 0) return;
  const char *glob = leaving_in(s->taken, spot, unit, &len);
  if (!glob) return;
  if (s->taken_ns) explain_print_time(s->taken_ns, when);
  explain_cause(x, "taken", "%s has %s without it%s%s: \"%.*s\" of newest_only (%s: %s)", s->where,
                unit, *when ? " since " : "", when, (int)len, glob,
                s->taken_policy ? s->taken_policy : "?", s->taken_reason ? s->taken_reason : "?");
}

/* ---- the walk, from the top down: the outermost unit wins ---- */

typedef struct way {
  explain *x;
  const last_rules *last;
  const explain_spot *spot;
  explain_known_fn *known;
  void *ctx;
  char at[FS_PATH_MAX]; /* the part of the path that is looked at */
  bool dir, file;       /* the kinds that it may be */
} way;

/* Finds the unit whose path `at` begins, or is; false: none. */
static bool is_unit(const way *w, char unit[FS_PATH_MAX]) {
  match_unit m;
  for (int is_dir = 1; is_dir >= 0; is_dir--) {
    if (!(is_dir ? w->dir : w->file)) continue;
    const char *pattern = rules_match(w->last->rules, w->at, is_dir, &m);
    bool waits = pattern && rules_needs_proof(w->last->rules, pattern);
    if (!pattern || (waits && !w->known(w->ctx, w->at))) continue;
    snprintf(unit, FS_PATH_MAX, "%.*s", (int)m.name_len, w->at);
    return true;
  }
  if (!w->known(w->ctx, w->at)) return false;
  snprintf(unit, FS_PATH_MAX, "%s", w->at);
  return true;
}

/* Returns 1 for a unit; 0 to look deeper; -1 if the cause is found. */
static int look(way *w, size_t len, bool last, char unit[FS_PATH_MAX]) {
  const explain_spot *spot = w->spot;
  if (spot->state && len >= spot->state) {
    explain_cause(w->x, "state-file", "%s is a state directory of ckpt-lua, nothing of a training",
                  w->at);
    return -1;
  }
  if (say_excluded(w->x, w->last, w->at, w->dir, w->file)) return -1;
  if (spot->link == len && !w->known(w->ctx, w->at)) {
    explain_cause(w->x, "link", "%s is a symbolic link: what it leads to is not looked at", w->at);
    return -1;
  }
  if (last && spot->kind == 'o') {
    explain_cause(w->x, "special", "%s is neither a file nor a directory", w->at);
    return -1;
  }
  return is_unit(w, unit);
}

/* True if the path is excluded inside of a unit, and so no part of it. */
static bool excluded_inside(way *w, size_t len) {
  const char *path = w->spot->path;
  for (size_t end = len; path[end];) {
    end += 1 + strcspn(path + end + 1, "/");
    snprintf(w->at, sizeof w->at, "%.*s", (int)end, path);
    bool last = !path[end];
    if (say_excluded(w->x, w->last, w->at, !last || w->spot->kind != 'f',
                     last && w->spot->kind != 'd'))
      return true;
  }
  return false;
}

bool explain_unit(explain *x, const last_rules *last, const explain_spot *spot,
                  explain_known_fn *known, void *ctx, char unit[FS_PATH_MAX]) {
  way w = {.x = x, .last = last, .spot = spot, .known = known, .ctx = ctx};
  const char *path = spot->path;
  *unit = '\0';
  for (size_t len = 0; path[len];) {
    len += (len > 0) + strcspn(path + len + (len > 0), "/");
    bool end = !path[len];
    snprintf(w.at, sizeof w.at, "%.*s", (int)len, path);
    w.dir = !end || spot->kind != 'f';
    w.file = end && spot->kind != 'd';
    int found = look(&w, len, end, unit);
    if (found < 0) return false;
    if (found == 0) continue;
    if (!end && excluded_inside(&w, len)) return false;
    bool whole = strcmp(unit, path) == 0;
    explain_add(x, "unit", 0, whole ? "%s is a unit" : "it is a part of the unit %s", unit);
    return true;
  }
  if (!*path)
    explain_cause(x, "directory", "that is the watched directory itself");
  else
    say_no_unit(x, last->rules, path, spot->kind);
  return false;
}
