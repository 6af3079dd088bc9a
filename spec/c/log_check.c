#include "log_check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  char type[16], nonce[64], unit[300], dir[300];
  long long n, term, attempt, commit, reader; /* -1: absent */
  long long owner;                            /* of an attempt */
  bool closed, dropped, deleted, bad, good, numbers, thin;
  long long files, bytes;
  long long through;
  bool names_run;
} entry;

static char why[200];

static const char *bad(size_t n, const char *text) {
  snprintf(why, sizeof why, "entry %zu: %s", n, text);
  return why;
}

static void copy_text(const json_t *object, const char *key, char *out, size_t room) {
  const char *text = json_string_value(json_object_get(object, key));
  snprintf(out, room, "%s", text ? text : "");
}

static long long number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* 1 if it is there, 0 if not, -1 if it cannot be read. */
static int load(store *s, const char *prefix, size_t n, entry *out) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, 64 << 20);
  snprintf(key, sizeof key, "%s%s.ckpt/log/%020zu.json", prefix, *prefix ? "/" : "", n);
  int rc = s->ops->get(s, key, &text, NULL);
  json_t *object = rc == 0 ? json_loadb(text.data, text.len, 0, NULL) : NULL;
  buf_free(&text);
  if (rc == ERR_NOENT) return 0;
  if (!object) return -1;
  *out = (entry){.n = number(object, "n"), .owner = -1};
  out->term = number(object, "term");
  out->reader = number(object, "reader");
  out->attempt = number(object, "attempt");
  out->commit = number(object, "commit");
  out->through = number(object, "through");
  out->good = json_is_true(json_object_get(object, "good"));
  out->numbers = json_is_object(json_object_get(object, "metrics"));
  out->files = number(object, "files");
  out->bytes = number(object, "bytes");
  out->names_run = json_is_string(json_object_get(object, "run"));
  copy_text(object, "type", out->type, sizeof out->type);
  copy_text(object, "nonce", out->nonce, sizeof out->nonce);
  copy_text(object, "unit", out->unit, sizeof out->unit);
  copy_text(object, "dir", out->dir, sizeof out->dir);
  json_decref(object);
  return 1;
}

static bool is(const entry *at, const char *type) {
  return strcmp(at->type, type) == 0;
}

/* True for the name of a generation that has no room for all of it. */
static bool is_cut(const entry *at, const char *later, size_t n) {
  char end[40];
  size_t len = strlen(at->dir);
  size_t tail = (size_t)snprintf(end, sizeof end, ".~%zu", n), digits = 16;
  if (strlen(later) <= 255 || at->reader < 2 || len > 255 || len < 255 - 3) return false;
  const char *mark = at->dir + len - tail - digits - 1;
  return strcmp(at->dir + len - tail, end) == 0 && *mark == '~' &&
         strspn(mark + 1, "0123456789abcdef") == digits &&
         strncmp(at->dir, at->unit, (size_t)(mark - at->dir)) == 0;
}

static const char *check_attempt(entry *all, size_t n) {
  entry *at = &all[n];
  char later[400];
  snprintf(later, sizeof later, "%s.~%zu", at->unit, n);
  if (strcmp(at->dir, at->unit) != 0 && strcmp(at->dir, later) != 0 && !is_cut(at, later, n))
    return bad(n, "its directory has another unit's name");
  const char *mark = strrchr(at->unit, '~');
  bool later_like = mark && mark > at->unit && mark[-1] == '.' && mark[1] &&
                    strspn(mark + 1, "0123456789") == strlen(mark + 1);
  if (later_like && strcmp(at->dir, at->unit) == 0)
    return bad(n, "its plain name may be meant for another unit's generation");
  for (size_t i = 0; i < n; i++)
    if (is(&all[i], "attempt") && strcmp(all[i].dir, at->dir) == 0)
      return bad(n, "its directory is another attempt's");
  at->owner = at->term;
  return NULL;
}

static const char *check_about(entry *all, size_t n) {
  entry *at = &all[n];
  if (at->attempt < 0 || at->attempt >= (long long)n || !is(&all[at->attempt], "attempt"))
    return bad(n, "it is about no attempt");
  entry *of = &all[at->attempt];
  if (of->closed) return bad(n, "it follows a sweep or a commit");
  if (is(at, "adopt")) {
    if (of->owner >= at->term) return bad(n, "it adopts what is not older");
    of->owner = at->term;
    return NULL;
  }
  if (is(at, "commit") && of->owner != at->term) return bad(n, "it commits what it does not own");
  of->closed = true;
  return NULL;
}

static const char *check_removal(entry *all, size_t n) {
  entry *at = &all[n];
  if (at->commit < 0 || at->commit >= (long long)n || !is(&all[at->commit], "commit"))
    return bad(n, "it is about no commit");
  entry *of = &all[at->commit];
  bool drop = is(at, "drop");
  if (drop ? of->dropped : !of->dropped || of->deleted) return bad(n, "it comes twice, or early");
  *(drop ? &of->dropped : &of->deleted) = true;
  return NULL;
}

static const char *check_mark(entry *all, size_t n) {
  entry *at = &all[n];
  if (at->commit < 0 || at->commit >= (long long)n || !is(&all[at->commit], "commit"))
    return bad(n, "it is about no commit");
  entry *of = &all[at->commit];
  if (!of->dropped && of->bad != at->good && at->numbers) return NULL; /* it brings these alone */
  if (of->dropped || of->bad != at->good) return bad(n, "it marks what is gone, or is so already");
  of->bad = !at->good;
  return NULL;
}

/* Files of a good commit that is there go once, and some stay; 1.0 must not read on. */
static const char *check_thin(entry *all, size_t n) {
  entry *at = &all[n];
  if (at->commit < 0 || at->commit >= (long long)n || !is(&all[at->commit], "commit"))
    return bad(n, "it is about no commit");
  entry *of = &all[at->commit];
  if (of->dropped || of->bad || of->thin)
    return bad(n, "it takes files of what is not there whole");
  if (at->files < 1 || at->files >= of->files || at->bytes < 0 || at->bytes > of->bytes)
    return bad(n, "it takes nothing, or all");
  if (at->reader < 2) return bad(n, "1.0 would take what is gone for damage");
  of->thin = true;
  return NULL;
}

/* Closes, drops and deletes all: an end leaves nothing that a later entry may name. */
static void end_all(entry *all, size_t n) {
  for (size_t i = 0; i < n; i++) all[i].closed = all[i].dropped = all[i].deleted = true;
}

static const char *check_guest(entry *all, size_t n, long long newest) {
  entry *at = &all[n];
  if (is(at, "drop") || is(at, "delete")) return check_removal(all, n);
  if (is(at, "bad")) return check_mark(all, n);
  if (is(at, "end")) return NULL;
  if (!is(at, "sweep")) return bad(n, "it needs a term");
  const char *found = check_about(all, n);
  return !found && all[at->attempt].owner == newest ? bad(n, "it sweeps what has an owner") : found;
}

static const char *check_term(const entry *at, long long newest, bool ended) {
  if (at->term != at->n || at->n <= newest) return bad((size_t)at->n, "it names another term");
  return at->names_run == ended ? NULL : bad((size_t)at->n, "it names a run, or does not");
}

static const char *check_one(entry *all, size_t n, long long *newest, bool *ended) {
  entry *at = &all[n];
  if (at->n != (long long)n) return bad(n, "it has another number");
  if (is(at, "run") != (n == 0)) return bad(n, "the first entry, and only that, names the run");
  if (n == 0) return NULL;
  if (is(at, "term")) {
    const char *found = check_term(at, *newest, *ended);
    *newest = at->n;
    *ended = false;
    return found;
  }
  if (*ended) return bad(n, "it follows an end");
  if (is(at, "end")) {
    end_all(all, n);
    *ended = true;
  }
  if (at->term < 0) return check_guest(all, n, *newest);
  if (at->term != *newest) return bad(n, "its writer was fenced");
  if (is(at, "end")) return NULL;
  if (is(at, "attempt")) return check_attempt(all, n);
  if (is(at, "adopt") || is(at, "sweep") || is(at, "commit")) return check_about(all, n);
  if (is(at, "drop") || is(at, "delete")) return check_removal(all, n);
  if (is(at, "bad")) return check_mark(all, n);
  if (is(at, "thin")) return check_thin(all, n);
  if (is(at, "snapshot"))
    return at->through == (long long)n - 1 ? NULL : bad(n, "it is of another state");
  return bad(n, "its type is unknown");
}

/* Checks that no entry stands behind the end. */
static const char *check_gap(store *s, const char *prefix, size_t n) {
  entry beyond;
  for (size_t i = n; i < n + 20; i++)
    if (load(s, prefix, i, &beyond) != 0) return bad(i, "it stands behind a gap");
  return NULL;
}

static int by_nonce(const void *a, const void *b) {
  return strcmp(((const entry *)a)->nonce, ((const entry *)b)->nonce);
}

static const char *check_nonces(entry *all, size_t n) {
  if (n > 1) qsort(all, n, sizeof *all, by_nonce);
  for (size_t i = 1; i < n; i++)
    if (strcmp(all[i].nonce, all[i - 1].nonce) == 0)
      return bad((size_t)all[i].n, "its nonce is there twice");
  return NULL;
}

const char *log_check(store *s, const char *prefix, size_t *entries) {
  entry *all = NULL;
  const char *found = NULL;
  long long newest = -1;
  size_t n = 0, room = 0;
  bool ended = false;
  for (; !found; n++) {
    if (n == room) {
      room = room ? 2 * room : 64;
      all = realloc(all, room * sizeof *all);
      if (!all) abort();
    }
    int rc = load(s, prefix, n, &all[n]);
    if (rc == 0) break;
    found = rc < 0 ? bad(n, "it cannot be read") : check_one(all, n, &newest, &ended);
  }
  if (!found) found = check_gap(s, prefix, n);
  if (!found) found = check_nonces(all, n);
  *entries = n;
  free(all);
  return found;
}
