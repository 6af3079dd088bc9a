/* companions: finds the files that stand beside a unit, by the globs of a policy. */
#include "companions.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "job/move/pointer_files.h"
#include "prims/fs.h"
#include "prims/match.h"

void companions_free(companions *c) {
  for (size_t i = 0; i < c->count; i++) free(c->items[i].name);
  free(c->items);
  *c = (companions){0};
}

/* ---- one file ---- */

static int add(companions *c, const char *name, const struct stat *st, err *e) {
  uint64_t size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
  if (c->count == COMPANIONS_MAX || size > COMPANIONS_BYTES_MAX - c->bytes) {
    c->cut = true;
    return 0;
  }
  manifest_type type = S_ISLNK(st->st_mode) ? MANIFEST_LINK : MANIFEST_FILE;
  companion now = {.name = VEC_ROOM(c->items, c->count, c->room) ? strdup(name) : NULL,
                   .type = type,
                   .size = size};
  if (!now.name) return err_set(e, ERR_NOMEM, "list what is saved beside a unit: out of memory");
  c->items[c->count++] = now;
  c->bytes += size;
  return 0;
}

struct look {
  const companions_place *at;
  const char *glob; /* NULL: every file is taken */
  const char *base; /* the walk's names are below it; relative to the group, "": the group itself */
  int depth;        /* components of the glob; INT_MAX: any */
  size_t seen;
  companions *out;
};

static bool is_known(const companions *c, const char *name) {
  for (size_t i = 0; i < c->count; i++)
    if (strcmp(c->items[i].name, name) == 0) return true;
  return false;
}

/* A unit is saved by itself; a link to one is a pointer. */
static bool is_part_of_unit(const struct look *l, const char *name, const struct stat *st, err *e,
                            int *rc) {
  char path[FS_PATH_MAX];
  match_unit ignored;
  *rc = fs_join(path, l->at->group, name, e);
  if (*rc < 0) return true;
  bool is_dir = S_ISDIR(st->st_mode);
  if (rules_excluded(l->at->rules, path, is_dir)) return true;
  /* By name "*.txt" is what LightGBM saves, and so is Megatron's pointer. */
  if (S_ISREG(st->st_mode) && st->st_size <= FS_PATH_MAX && pointers_lead(pointers_row(name)))
    return false;
  return !S_ISLNK(st->st_mode) && rules_match(l->at->rules, path, is_dir, &ignored);
}

static int take(struct look *l, const char *name, const struct stat *st, err *e) {
  int rc;
  if (companions_is_ours(name) || is_part_of_unit(l, name, st, e, &rc))
    return S_ISDIR(st->st_mode) ? FS_SKIP : 0;
  if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)) return 0;
  if (l->glob && !match_glob(l->glob, name)) return 0;
  return is_known(l->out, name) ? 0 : add(l->out, name, st, e);
}

static int components(const char *path) {
  int count = 1;
  for (; *path; path++) count += *path == '/';
  return count;
}

static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  enum { SEEN_MAX = 200000 };
  struct look *l = ctx;
  char name[FS_PATH_MAX];
  if (fs_join(name, l->base, entry->name, NULL) < 0) return 0; /* a longer name cannot be saved */
  if (++l->seen > SEEN_MAX || l->out->cut) {
    l->out->cut = true;
    return S_ISDIR(entry->st->st_mode) ? FS_SKIP : 0;
  }
  int rc = take(l, name, entry->st, e);
  bool deeper = S_ISDIR(entry->st->st_mode) && components(name) < l->depth;
  return rc == 0 && S_ISDIR(entry->st->st_mode) && !deeper ? FS_SKIP : rc;
}

/* ---- one glob ---- */

static bool is_wild(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (text[i] == '*' || text[i] == '?' || text[i] == '[') return true;
  return false;
}

/* Returns the length of a glob's part before its first component with a wildcard, without the
 * slash. */
static size_t plain_part(const char *glob) {
  size_t plain = 0;
  for (const char *at = glob;;) {
    size_t len = strcspn(at, "/");
    if (is_wild(at, len)) return plain;
    plain = (size_t)(at - glob) + len;
    if (!at[len]) return plain;
    at += len + 1;
  }
}

/* True if this directory, or one above it, is a unit, excluded or ours. A walk would only notice
 * below it. */
static bool lies_in_unit(const struct look *l, const char *dir) {
  char part[256], path[FS_PATH_MAX];
  match_unit ignored;
  for (size_t len = 0; *dir; len++) {
    if (dir[len] && dir[len] != '/') continue;
    snprintf(part, sizeof part, "%.*s", (int)len, dir);
    if (companions_is_ours(part) || fs_join(path, l->at->group, part, NULL) < 0 ||
        rules_excluded(l->at->rules, path, true) || rules_match(l->at->rules, path, true, &ignored))
      return true;
    if (!dir[len]) break;
  }
  return false;
}

/* With a glob that matches in one directory, what it does not match there is not looked at: beside a
 * thousand checkpoints that would be a thousand calls for each save. */
static bool may_match(void *ctx, const char *base, unsigned char kind) {
  const struct look *l = ctx;
  char name[FS_PATH_MAX];
  (void)kind;
  return fs_join(name, l->base, base, NULL) == 0 && match_glob(l->glob, name);
}

static int walk(struct look *l, const char *dir, err *e) {
  err why = {0};
  bool flat = l->glob && l->depth == (*l->base ? components(l->base) + 1 : 1);
  int rc = flat ? fs_list_some(l->at->io, dir, may_match, on_entry, l, &why)
                : fs_walk(l->at->io, dir, on_entry, l, &why);
  if (rc == ERR_NOMEM) return err_set(e, rc, "%s", why.text);
  if (rc < 0 && rc != ERR_NOENT)
    log_say(l->at->log, LOG_WARN, "%s is not saved beside a checkpoint: %s", dir, why.text);
  return 0;
}

static int find_one(const companions_place *at, const char *glob, companions *out, err *e) {
  char base[256], name[256], top[FS_PATH_MAX], path[FS_PATH_MAX];
  struct stat st;
  while (glob[0] == '.' && glob[1] == '/') glob += 2;
  size_t len = strlen(glob);
  while (len && glob[len - 1] == '/') len--;
  if (len == 0 || len >= sizeof name || *glob == '/') return 0; /* the policy's check refuses it */
  if (at->near && memchr(glob, '/', len)) return 0;
  memcpy(name, glob, len);
  name[len] = 0;
  size_t plain = plain_part(name);
  memcpy(base, name, plain);
  base[plain] = 0;
  struct look l = {.at = at, .base = base, .out = out, .depth = INT32_MAX};
  if (fs_join(top, at->root, at->group, NULL) < 0 || fs_join(path, top, base, NULL) < 0) return 0;
  if (plain < len && lies_in_unit(&l, base)) return 0;
  if (plain < len) {
    l.glob = name;
    if (at->near || !strstr(name, "**")) l.depth = components(name);
    return walk(&l, path, e);
  }
  /* A name without a wildcard is there or not: no walk is needed. */
  char above[FS_PATH_MAX];
  fs_parent(base, above);
  if (strchr(base, '/') && lies_in_unit(&l, above)) return 0;
  int rc = at->io->lstat(at->io, AT_FDCWD, path, &st);
  if (rc == -ELOOP || rc == -ENOTDIR)
    log_say(at->log, LOG_WARN,
            "%s is not saved beside a checkpoint: it lies below a symbolic link or a file", path);
  if (rc < 0) return 0;
  rc = take(&l, base, &st, e);
  return rc == 0 && S_ISDIR(st.st_mode) && !at->near ? walk(&l, path, e) : rc < 0 ? rc : 0;
}

/* ---- links ---- */

static bool is_pointer(const companions_place *at, const fs_entry *entry) {
  char dir[FS_PATH_MAX], path[FS_PATH_MAX];
  pointer_place place = {.io = at->io, .rules = at->rules, .root = at->root, .group = at->group};
  pointer_file f;
  if (!S_ISLNK(entry->st->st_mode) || fs_join(dir, at->root, at->group, NULL) < 0 ||
      fs_join(path, dir, entry->name, NULL) < 0)
    return false;
  bool yes = pointer_file_read(&place, entry->name, path, &f, NULL) == 0 && f.row;
  pointer_file_drop(&f);
  return yes;
}

static bool may_be_link(void *ctx, const char *name, unsigned char kind) {
  (void)ctx, (void)name;
  return kind == DT_LNK || kind == DT_UNKNOWN;
}

static int take_link(void *ctx, const fs_entry *entry, err *e) {
  struct look *l = ctx;
  int rc = is_pointer(l->at, entry) ? take(l, entry->name, entry->st, e) : 0;
  return rc == 0 && S_ISDIR(entry->st->st_mode) ? FS_SKIP : rc;
}

/* Finds the links in the directory itself that lead to a checkpoint there: they are pointers, whatever
 * they are called. */
static int find_links(const companions_place *at, companions *out, err *e) {
  char top[FS_PATH_MAX];
  err why = {0};
  struct look l = {.at = at, .base = "", .out = out};
  if (fs_join(top, at->root, at->group, NULL) < 0) return 0;
  int rc = fs_list_some(at->io, top, may_be_link, take_link, &l, &why);
  if (rc == ERR_NOMEM) return err_set(e, rc, "%s", why.text);
  if (rc < 0 && rc != ERR_NOENT)
    log_say(at->log, LOG_WARN, "links in %s are not saved beside a checkpoint: %s", top, why.text);
  return 0;
}

int companions_find(const companions_place *at, const char *const *globs, companions *out, err *e) {
  int rc = 0;
  *out = (companions){0};
  for (size_t i = 0; rc == 0 && globs[i]; i++) rc = find_one(at, globs[i], out, e);
  if (rc == 0) rc = find_links(at, out, e);
  if (rc < 0) {
    companions_free(out);
    return rc;
  }
  if (out->cut)
    log_say(at->log, LOG_WARN,
            "what the policy's `with` names in %s/%s is more than %d files or %d MiB: the rest is "
            "not saved",
            at->root, at->group, COMPANIONS_MAX, COMPANIONS_BYTES_MAX >> 20);
  if (out->count) qsort(out->items, out->count, sizeof *out->items, vec_texts);
  return 0;
}

/* ---- what a pointer says ---- */

static bool is_name_byte(unsigned char c) {
  return isalnum(c) || c == '_' || c == '-';
}

/* True if the text names it as a whole: "global_step1" is not named by "global_step10". A stem is
 * named with its ending, too. */
static bool has_name(const char *text, size_t len, const char *name) {
  size_t n = strlen(name);
  const char *end = text + len;
  for (const char *at = text; n && (at = memmem(at, (size_t)(end - at), name, n)); at++) {
    bool begins = at == text || !is_name_byte((unsigned char)at[-1]);
    bool ends = at + n == end || !is_name_byte((unsigned char)at[n]);
    if (begins && ends) return true;
  }
  return false;
}

static bool is_number(const char *text, size_t len, int64_t step) {
  int64_t value = 0;
  while (len && isspace((unsigned char)text[len - 1])) len--;
  while (len && isspace((unsigned char)*text)) text++, len--;
  if (len == 0 || len > 18 || step < 0) return false;
  for (size_t i = 0; i < len; i++) {
    if (!isdigit((unsigned char)text[i])) return false;
    value = value * 10 + (text[i] - '0');
  }
  return value == step;
}

bool companions_name_unit(const char *text, size_t len, const char *unit, int64_t step) {
  return has_name(text, len, unit) || is_number(text, len, step);
}
