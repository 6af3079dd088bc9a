#include "detect_same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/detect_model.h"

typedef struct line {
  char path[512];
  match_kind kind;
  bool complete;
  unsigned long long files, bytes;
} line;

typedef struct lines {
  line *at;
  size_t count;
  const detect *knows; /* may be NULL */
} lines;

/* True of a path that is, or lies in, what was a unit and was deleted by moving it below the directory
 * that it was in. */
static bool is_aside(const detect *d, const char *path) {
  const node *n = d->top;
  for (size_t len; n && *path; path += len + (path[len] == '/')) {
    len = strcspn(path, "/");
    n = node_child(n, path, len);
    if (n && n->home && n->excluded) return true;
  }
  return false;
}

static int add(void *ctx, const detect_unit *u) {
  lines *l = ctx;
  /* Whoever was not there when it was moved cannot know that it was deleted so. */
  if (l->knows && is_aside(l->knows, u->path)) return 0;
  line *grown = realloc(l->at, (l->count + 1) * sizeof *grown);
  if (!grown) abort();
  l->at = grown;
  line *new = &grown[l->count++];
  *new = (line){.kind = u->kind,
                .complete = u->state == DETECT_COMPLETE,
                .files = u->files,
                .bytes = u->bytes};
  snprintf(new->path, sizeof new->path, "%s", u->path);
  return 0;
}

static bool same_line(const line *known, const line *found) {
  return strcmp(known->path, found->path) == 0 && known->kind == found->kind &&
         known->files == found->files && (!known->complete || known->bytes == found->bytes);
}

static void tell(char *out, size_t len, const line *l) {
  if (!l)
    snprintf(out, len, "nothing");
  else
    snprintf(out, len, "%s (kind %d, %llu files, %llu bytes)", l->path, (int)l->kind, l->files,
             l->bytes);
}

static bool nobody(const char *path) {
  (void)path;
  return false;
}

static const char *first_difference(const lines *known, const lines *found) {
  static char text[1536];
  char a[640], b[640];
  for (size_t i = 0; i < known->count || i < found->count; i++) {
    const line *k = i < known->count ? &known->at[i] : NULL;
    const line *f = i < found->count ? &found->at[i] : NULL;
    if (k && f && same_line(k, f)) continue;
    tell(a, sizeof a, k);
    tell(b, sizeof b, f);
    snprintf(text, sizeof text, "it knows %s, and there is %s", a, b);
    return text;
  }
  return NULL;
}

const char *detect_same(detect *d, const char *root, const rules *rules) {
  lines known = {0}, found = {.knows = d};
  detect *fresh;
  err e = {0};
  detect_options o = {
      .io = io_system(), .root = root, .rules = rules, .mode = DETECT_FED, .has_writer = nobody};
  if (detect_open(&o, &fresh, &e) < 0) {
    fprintf(stderr, "detect_same: %s\n", e.text);
    abort();
  }
  detect_each(d, add, &known);
  detect_each(fresh, add, &found);
  const char *answer = first_difference(&known, &found);
  detect_close(fresh);
  free(known.at);
  free(found.at);
  return answer;
}
