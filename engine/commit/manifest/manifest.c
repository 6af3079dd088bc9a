#include "manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "base/vec.h"

enum { NAME_BYTES_MAX = 4095, UNIT_BYTES_MAX = 255 };

void manifest_init(manifest *m) {
  *m = (manifest){.kind = MATCH_DIR, .step = MATCH_NO_STEP, .hash = HASH_XXH3_128};
}

bool manifest_left_note(manifest_left *left, const char *name) {
  size_t at = left->count;
  while (at > 0 && strcmp(left->at[at - 1], name) > 0) at--;
  if (at == MANIFEST_LEFT_NAMED || (at > 0 && strcmp(left->at[at - 1], name) == 0)) return true;
  char *copy = strdup(name);
  if (!copy) return false;
  if (left->count == MANIFEST_LEFT_NAMED) free(left->at[--left->count]);
  memmove((void *)(left->at + at + 1), (void *)(left->at + at),
          (left->count - at) * sizeof(char *));
  left->at[at] = copy;
  left->count++;
  return true;
}

bool manifest_left_add(manifest_left *left, const manifest_left *more) {
  for (size_t i = 0; i < more->count; i++)
    if (!manifest_left_note(left, more->at[i])) return false;
  return true;
}

void manifest_left_free(manifest_left *left) {
  for (size_t i = 0; i < left->count; i++) free(left->at[i]);
  *left = (manifest_left){0};
}

void manifest_free(manifest *m) {
  for (size_t i = 0; i < m->count; i++) {
    free(m->entries[i].name);
    free(m->entries[i].blocks);
    free(m->entries[i].target);
  }
  free(m->entries);
  free(m->unit);
  free(m->policy);
  free(m->metrics);
  free(m->attempt);
  manifest_left_free(&m->left_names);
  names_free(&m->left_globs);
  manifest_init(m);
}

manifest_entry *manifest_add(manifest *m, manifest_type type, const char *name,
                             const char *target) {
  if (!VEC_ROOM(m->entries, m->count, m->room)) return NULL;
  manifest_entry fresh = {.type = type, .name = strdup(name)};
  if (target) fresh.target = strdup(target);
  if (!fresh.name || (target && !fresh.target)) {
    free(fresh.name);
    free(fresh.target);
    return NULL;
  }
  m->root = (digest){0}; /* a seal does not outlive a change */
  m->entries[m->count] = fresh;
  return &m->entries[m->count++];
}

/* Sets an error about one name. The name is shown escaped: it may be anything. */
static int refuse(err *e, int code, const char *name, const char *why) {
  buf shown;
  buf_init(&shown, 3 * strlen(name));
  js_name_escape(name, &shown);
  err_set(e, code, "manifest: \"%.300s\": %s", buf_failed(&shown) ? "?" : shown.data, why);
  buf_free(&shown);
  return code;
}

/* Returns NULL, or why the name must not be joined to a directory. */
static const char *unsafe(const char *name) {
  size_t len = strlen(name);
  if (len == 0) return "a name is empty";
  if (len > NAME_BYTES_MAX) return "a name is longer than 4095 bytes";
  if (name[0] == '/') return "a name is absolute";
  for (const char *part = name; part;) {
    size_t size = strcspn(part, "/");
    if (size == 0) return "a name has an empty component";
    if (size == 1 && part[0] == '.') return "a name has a '.' component";
    if (size == 2 && part[0] == '.' && part[1] == '.') return "a name has a '..' component";
    if (part == name && size == strlen(MANIFEST_NAME) && !memcmp(part, MANIFEST_NAME, size))
      return "the name is kept for the manifest itself";
    part = part[size] ? part + size + 1 : NULL;
  }
  return NULL;
}

/* A unit's name becomes a directory's name at a restore, so it is one safe component. The entries
 * of a file or a group are restored beside other units: only the unit's own names may be there. */
static int check_unit(const manifest *m, err *e) {
  if (!m->unit) return err_set(e, ERR_INVAL, "manifest: the unit has no name");
  const char *why = unsafe(m->unit);
  if (why) return refuse(e, ERR_FORMAT, m->unit, why);
  size_t len = strlen(m->unit);
  if (strchr(m->unit, '/')) return refuse(e, ERR_FORMAT, m->unit, "a unit's name is one component");
  if (len > UNIT_BYTES_MAX)
    return refuse(e, ERR_FORMAT, m->unit, "a unit's name is longer than 255 bytes");
  if (m->kind == MATCH_FILE && (m->count != 1 || strcmp(m->entries[0].name, m->unit) != 0 ||
                                m->entries[0].type == MANIFEST_DIR))
    return refuse(e, ERR_FORMAT, m->unit, "a single file's one entry is the file itself");
  for (size_t i = 0; m->kind == MATCH_GROUP && i < m->count; i++) {
    const char *name = m->entries[i].name;
    if (strncmp(name, m->unit, len) != 0 || name[len] != '.' || strchr(name, '/'))
      return refuse(e, ERR_FORMAT, name, "not a name of the unit's group of files");
  }
  return 0;
}

/* 0 for what is below the parent: its name followed by a slash is looked for, because a name such
 * as "a!" sorts between "a" and "a/b". */
static int is_child(const void *parent, const void *entry) {
  const char *name = ((const manifest_entry *)entry)->name;
  size_t len = strlen(parent);
  int order = strncmp(parent, name, len);
  return order ? order : '/' - (int)(unsigned char)name[len];
}

static bool has_child(const manifest *m, size_t at) {
  const manifest_entry *entry = &m->entries[at];
  return vec_find(entry->name, entry + 1, m->count - at - 1, sizeof *entry, is_child);
}

/* The entries are sorted. A restore that wrote through a link, or took a file for a directory,
 * would leave the directory that it was given. */
static int check_names(const manifest *m, err *e) {
  for (size_t i = 0; i < m->count; i++) {
    const manifest_entry *at = &m->entries[i];
    const char *why = unsafe(at->name);
    if (why) return refuse(e, ERR_FORMAT, at->name, why);
    if (i > 0 && strcmp(at->name, at[-1].name) == 0)
      return refuse(e, ERR_FORMAT, at->name, "the name is there twice");
    if (at->type != MANIFEST_DIR && has_child(m, i))
      return refuse(e, ERR_FORMAT, at->name, "an entry lies below what is no directory");
    if ((at->type == MANIFEST_LINK) != (at->target != NULL))
      return refuse(e, ERR_FORMAT, at->name, "a link, and only a link, has a target");
    if (at->target && (at->target[0] == 0 || strlen(at->target) > NAME_BYTES_MAX))
      return refuse(e, ERR_FORMAT, at->name, "a link's target is empty or over 4095 bytes");
  }
  return 0;
}

/* JSON integers are signed 64-bit, here and in the log's commit entry: a larger sum could be
 * written but never read back. */
static int check_numbers(const manifest *m, err *e) {
  if (m->count > MANIFEST_ENTRIES_MAX)
    return err_set(e, ERR_LIMIT, "manifest: %zu entries, more than %d", m->count,
                   MANIFEST_ENTRIES_MAX);
  if (m->step < MATCH_NO_STEP) return err_set(e, ERR_INVAL, "manifest: the step is negative");
  if (m->mode & ~(mode_t)07777)
    return err_set(e, ERR_INVAL, "manifest: mode %o has more than permission bits", m->mode);
  uint64_t sum = 0;
  for (size_t i = 0; i < m->count; i++) {
    const manifest_entry *at = &m->entries[i];
    if (at->mode & ~(mode_t)07777)
      return refuse(e, ERR_INVAL, at->name, "the mode has more than permission bits");
    if (at->type != MANIFEST_FILE) continue;
    if (at->size > (uint64_t)INT64_MAX - sum)
      return refuse(e, ERR_LIMIT, at->name, "the sizes do not fit 63 bits");
    sum += at->size;
  }
  return 0;
}

static int check_digests(const manifest *m, err *e) {
  for (size_t i = 0; i < m->count; i++) {
    const manifest_entry *at = &m->entries[i];
    if (at->type != MANIFEST_FILE) continue;
    size_t count = hash_block_count(at->size);
    if (count > 0 && !at->blocks)
      return refuse(e, ERR_INVAL, at->name, "the digests of its blocks are missing");
    digest whole;
    int rc = hash_of_blocks(m->hash, at->blocks, count, &whole, e);
    if (rc < 0) return rc;
    if (!digest_equal(&whole, &at->file))
      return refuse(e, ERR_CORRUPT, at->name, "the digests of its blocks do not make its digest");
  }
  return 0;
}

/* The canonical form is described in manifest.h. A number is 8 bytes, least significant first. */
static int add_number(hash *h, uint64_t number, err *e) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(number >> (8 * i));
  return hash_add(h, bytes, sizeof bytes, e);
}

static int add_bytes(hash *h, const void *bytes, size_t len, err *e) {
  int rc = add_number(h, len, e);
  return rc < 0 ? rc : hash_add(h, bytes, len, e);
}

static int add_entry(hash *h, const manifest_entry *at, err *e) {
  int rc = add_number(h, at->type, e);
  if (rc == 0) rc = add_bytes(h, at->name, strlen(at->name), e);
  if (rc == 0) rc = add_number(h, at->mode, e);
  if (rc == 0) rc = add_number(h, (uint64_t)at->mtime_ns, e);
  if (at->type == MANIFEST_FILE) {
    if (rc == 0) rc = add_number(h, at->size, e);
    if (rc == 0) rc = add_bytes(h, at->file.bytes, at->file.len, e);
  } else if (at->type == MANIFEST_LINK) {
    if (rc == 0) rc = add_bytes(h, at->target, strlen(at->target), e);
  }
  return rc;
}

static int compute_root(const manifest *m, digest *out, err *e) {
  static const char magic[] = "ckpt-manifest-root-0";
  hash *h = NULL;
  size_t outside = 0;
  for (size_t i = 0; i < m->count; i++) outside += m->entries[i].outside;
  int rc = hash_begin(m->hash, &h, e);
  if (rc == 0) rc = add_bytes(h, magic, sizeof magic - 1, e);
  if (rc == 0) rc = add_bytes(h, m->unit, strlen(m->unit), e);
  if (rc == 0) rc = add_number(h, m->kind, e);
  if (rc == 0) rc = add_number(h, (uint64_t)m->step, e);
  if (rc == 0) rc = add_number(h, m->count - outside, e);
  for (size_t i = 0; rc == 0 && i < m->count; i++)
    if (!m->entries[i].outside) rc = add_entry(h, &m->entries[i], e);
  if (rc == 0) return hash_end(h, out, e);
  hash_end(h, NULL, NULL);
  return rc;
}

static void mark_outside(manifest *m) {
  for (size_t i = 0; i < m->count; i++) {
    manifest_entry *at = &m->entries[i];
    at->outside = !m->old && m->kind == MATCH_DIR && at->type == MANIFEST_FILE &&
                  at->size <= MANIFEST_METADATA_MAX && strcmp(at->name, MANIFEST_METADATA) == 0;
  }
}

int manifest_seal(manifest *m, err *e) {
  m->root = (digest){0};
  mark_outside(m);
  if (m->count > 1) qsort(m->entries, m->count, sizeof *m->entries, vec_texts);
  int rc = check_numbers(m, e);
  if (rc == 0) rc = check_names(m, e);
  if (rc == 0) rc = check_unit(m, e);
  if (rc == 0) rc = check_digests(m, e);
  return rc < 0 ? rc : compute_root(m, &m->root, e);
}

const manifest_entry *manifest_find(const manifest *m, const char *name) {
  return vec_find(name, m->entries, m->count, sizeof *m->entries, vec_by_text);
}

int64_t manifest_made_ns(const manifest *m) {
  int64_t newest = 0;
  for (size_t i = 0; i < m->count; i++)
    if (m->entries[i].type == MANIFEST_FILE && m->entries[i].mtime_ns > newest)
      newest = m->entries[i].mtime_ns;
  return newest;
}

uint64_t manifest_bytes(const manifest *m) {
  uint64_t sum = 0;
  for (size_t i = 0; i < m->count; i++)
    if (m->entries[i].type == MANIFEST_FILE) sum += m->entries[i].size;
  return sum;
}

size_t manifest_files(const manifest *m) {
  size_t files = 0;
  for (size_t i = 0; i < m->count; i++) files += m->entries[i].type == MANIFEST_FILE;
  return files;
}

static const manifest_entry *next_inside(const manifest *m, size_t *at) {
  while (*at < m->count && m->entries[*at].outside) ++*at;
  return *at < m->count ? &m->entries[(*at)++] : NULL;
}

static bool same_bytes(const manifest_entry *x, const manifest_entry *y) {
  if (x->type != y->type || strcmp(x->name, y->name) != 0) return false;
  if (x->type == MANIFEST_LINK) return strcmp(x->target, y->target) == 0;
  return x->type == MANIFEST_DIR || (x->size == y->size && digest_equal(&x->file, &y->file));
}

bool manifest_same_bytes(const manifest *a, const manifest *b) {
  size_t at = 0, bt = 0;
  if (a->kind != b->kind || a->hash != b->hash) return false;
  for (;;) {
    const manifest_entry *x = next_inside(a, &at), *y = next_inside(b, &bt);
    if (!x || !y) return x == y;
    if (!same_bytes(x, y)) return false;
  }
}

bool manifest_name_is_odd(const char *name) {
  buf text;
  bool asks = false;
  for (const unsigned char *at = (const unsigned char *)name; *at && !asks; at++)
    asks = *at == '%' || *at < 0x20 || *at >= 0x7f;
  if (!asks) return false; /* nearly all of them */
  buf_init(&text, 3 * strlen(name));
  js_name_escape(name, &text);
  bool odd = buf_failed(&text) || strcmp(text.data, name) != 0;
  buf_free(&text);
  return odd;
}

bool manifest_is_odd(const manifest *m) {
  for (size_t i = 0; i < m->count; i++)
    if (m->entries[i].type == MANIFEST_FILE && manifest_name_is_odd(m->entries[i].name))
      return true;
  return false;
}

static const char *const kind_names[] = {
    [MATCH_DIR] = "dir", [MATCH_FILE] = "file", [MATCH_GROUP] = "group", NULL};

const char *manifest_kind_name(match_kind kind) {
  return kind_names[kind];
}

int manifest_kind_get(const json_t *object, const char *what, match_kind *out, err *e) {
  const char *text;
  int rc = js_get_str(object, "kind", what, &text, e);
  if (rc < 0) return rc;
  size_t kind = names_index(kind_names, text);
  if (!kind_names[kind])
    return err_set(e, ERR_FORMAT, "%s: the kind \"%.40s\" is not dir, file or group", what, text);
  *out = (match_kind)kind;
  return 0;
}
