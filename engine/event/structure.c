#include "structure.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/structure_format.h"
#include "prims/fs.h"

static bool ends_with(const char *name, const char *ending) {
  size_t n = strlen(name), m = strlen(ending);
  return n >= m && strcmp(name + n - m, ending) == 0;
}

static bool ends_with_one(const char *name, const char *const *endings) {
  for (; *endings; endings++)
    if (ends_with(name, *endings)) return true;
  return false;
}

/* An empty file of one of these names is torn. */
static const char *const never_empty[] = {
    ".pt",   ".pth", ".ckpt",       ".npz",         ".keras",    ".h5",
    ".hdf5", ".pkl", ".pickle",     ".json",        ".pdparams", ".joblib",
    ".ubj",  ".cbm", ".cbsnapshot", ".safetensors", NULL};
static const char *const pickled[] = {".pkl", ".pickle", ".joblib",   ".pt", ".pth",
                                      ".bin", ".ckpt",   ".pdparams", NULL};
static const char *const zipped[] = {".pt", ".pth", ".ckpt", ".npz", ".keras", NULL};

/* Finds the format by the first bytes where a format has some, else by the name. */
static int look(format_file *f, const char *name) {
  uint8_t head[8] = {0};
  if (f->size == 0)
    return ends_with_one(name, never_empty) ? format_says(f, STRUCTURE_TORN, "empty file")
                                            : format_says(f, STRUCTURE_UNKNOWN, "empty file");
  size_t len = f->size < 8 ? (size_t)f->size : 8;
  int rc = format_read(f, 0, head, len);
  if (rc < 0) return rc;
  if (ends_with(name, ".safetensors")) return format_safetensors(f);
  if (ends_with(name, ".json")) return format_json(f);
  if (ends_with(name, ".ubj") && head[0] == '{') return format_ubjson(f);
  if (format_bundle_index(name, head, len)) return format_bundle(f);
  if (structure_is_shard(name)) {
    f->shard = true;
    return format_says(f, STRUCTURE_UNKNOWN, "a shard of tensors");
  }
  if (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0) return format_zip(f);
  if (memcmp(head, "tree\nver", len) == 0 && len == 8) return format_lightgbm(f);
  if (len < 4 && memcmp(head, "PK\3\4", len) == 0 && ends_with_one(name, zipped))
    return format_says(f, STRUCTURE_TORN, "zip: shorter than its first record");
  if (memcmp(head, "\x89HDF\r\n\x1a\n", len) == 0 && (len == 8 || ends_with(name, ".h5")))
    return format_hdf5(f);
  if (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && ends_with_one(name, pickled))
    return format_pickle(f);
  return format_says(f, STRUCTURE_UNKNOWN, "no format that is known");
}

/* A file that was given its size before it was filled looks whole at both ends. Compressing file
 * systems have few blocks too, so this is a doubt and no proof. */
static bool has_holes(const struct stat *st) {
  return st->st_size > 65536 && (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

/* Fills in the verdict, which is UNKNOWN before. */
static int look_from_outside(const io *io, const char *path, format_file *f, err *e) {
  struct stat st;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0) return err_sys(e, fd, "look at %s", path);
  int rc = io->fstat(io, fd, &st);
  if (rc < 0) {
    rc = err_sys(e, rc, "look at %s", path);
    goto out;
  }
  if (!S_ISREG(st.st_mode)) goto out;
  f->io = io;
  f->fd = fd;
  f->size = (uint64_t)st.st_size;
  f->mtime_ns = io_time_ns(st.st_mtim);
  f->path = path;
  f->e = e;
  rc = look(f, fs_base(path));
  if (rc == 0 && (f->verdict == STRUCTURE_SOUND || f->shard) && has_holes(&st)) {
    f->shard = false;
    format_says(f, STRUCTURE_UNKNOWN, "it has holes: perhaps never filled");
  }
out:
  io->close(io, fd);
  return rc;
}

int structure_of_file(const io *io, const char *path, structure *out, char *why, size_t len,
                      err *e) {
  format_file f = {.verdict = STRUCTURE_UNKNOWN, .why = ""};
  *out = STRUCTURE_UNKNOWN;
  if (why && len) *why = '\0';
  int rc = look_from_outside(io, path, &f, e);
  if (rc < 0) return rc;
  *out = f.verdict;
  if (why && len) snprintf(why, len, "%s", f.why);
  return 0;
}

int structure_proves(const io *io, const char *path, structure_proof *out, err *e) {
  format_file f = {.verdict = STRUCTURE_UNKNOWN, .why = ""};
  *out = STRUCTURE_PROVES_NOTHING;
  int rc = look_from_outside(io, path, &f, e);
  if (rc == 0 && f.verdict == STRUCTURE_SOUND) *out = f.proof;
  return rc;
}

/* The directory that a unit's files are in, relative to the root, and the beginning of a group's
 * names. */
typedef struct place {
  char dir[FS_PATH_MAX], stem[FS_PATH_MAX];
} place;

/* A walk over a unit. */
typedef struct look_over {
  const io *io;
  const rules *rules;
  const char *root; /* of the tree */
  place at;
  const char *stem; /* of a group, with its dot; else NULL */
  bool at_top;      /* the unit is the directory itself: markers stand here */
  uint64_t files, unknown;
  uint64_t shards, told;    /* of tensor bundles: the files, and those that an index tells of */
  bool *required, *present; /* by number of the marker; the markers of the tests come behind them */
  structure found;
  char *why;
  size_t len;
} look_over;

static void torn(look_over *l, const char *name, const char *why) {
  l->found = STRUCTURE_TORN;
  if (l->why && l->len) snprintf(l->why, l->len, "%s: %s", name, why);
}

static void note_markers(look_over *l, const char *name, const struct stat *st) {
  for (size_t i = 0; i < l->rules->marker_count; i++) {
    const rules_marker *m = &l->rules->markers[i];
    if (strcmp(name, m->name) == 0) l->present[i] = st->st_size > 0 || rules_marker_by_user(m);
    if (m->signature && match_glob(m->signature, name)) l->required[i] = true;
  }
  for (size_t i = 0; i < l->rules->test_count; i++) {
    const rules_test *t = &l->rules->tests[i];
    if (t->op != RULES_MARKER) continue;
    size_t at = l->rules->marker_count + i;
    l->required[at] = rules_needs(l->rules, RULES_MARKER, t->name);
    if (strcmp(name, t->name) == 0) l->present[at] = true;
  }
}

static int look_at(look_over *l, const char *relative, const char *name, err *e) {
  char path[FS_PATH_MAX];
  format_file f = {.verdict = STRUCTURE_UNKNOWN, .why = ""};
  int rc = fs_join(path, l->root, relative, e);
  if (rc == 0) rc = look_from_outside(l->io, path, &f, e);
  if (rc < 0) return rc;
  l->files++;
  l->shards += f.shard;
  l->told += f.shards;
  if (f.verdict == STRUCTURE_UNKNOWN && !f.shard) l->unknown++;
  if (f.verdict == STRUCTURE_TORN && l->found != STRUCTURE_TORN) torn(l, name, f.why);
  return 0;
}

static int visit(void *ctx, const fs_entry *entry, err *e) {
  look_over *l = ctx;
  char relative[FS_PATH_MAX];
  bool is_dir = S_ISDIR(entry->st->st_mode);
  if (l->stem && strncmp(entry->name, l->stem, strlen(l->stem)) != 0) return is_dir ? FS_SKIP : 0;
  int rc = fs_join(relative, l->at.dir, entry->name, e);
  if (rc < 0) return rc;
  bool ours = l->at_top && rules_is_contents(entry->name);
  if (ours || rules_excluded(l->rules, relative, is_dir)) return is_dir ? FS_SKIP : 0;
  if (is_dir) return l->stem ? FS_SKIP : 0;
  if (!S_ISREG(entry->st->st_mode)) return 0;
  if (l->at_top && !strchr(entry->name, '/')) note_markers(l, entry->name, entry->st);
  return look_at(l, relative, entry->name, e);
}

/* Judges the markers. Those of the frameworks are asked for only where the built-in conditions
 * hold. */
static void judge_markers(look_over *l) {
  size_t known = l->rules->marker_count, count = known + l->rules->test_count;
  bool builtin = rules_needs(l->rules, RULES_KNOWN, NULL);
  for (size_t i = 0; i < count && l->found != STRUCTURE_TORN; i++) {
    bool holds = i >= known || builtin || rules_marker_by_user(&l->rules->markers[i]);
    if (holds && l->required[i] && !l->present[i])
      torn(l, i < known ? l->rules->markers[i].name : l->rules->tests[i - known].name,
           "is missing, and it is written last");
  }
}

static int find_place(const char *path, match_kind kind, place *p, err *e) {
  const char *base = fs_base(path);
  if (strlen(path) + 2 > FS_PATH_MAX) return err_set(e, ERR_LIMIT, "path too long: %s", path);
  snprintf(p->dir, sizeof p->dir, "%s", path);
  snprintf(p->stem, sizeof p->stem, "%s.", base);
  if (kind == MATCH_GROUP) p->dir[base > path ? base - path - 1 : 0] = '\0';
  return 0;
}

static int walk(look_over *l, const char *path, match_kind kind, err *e) {
  char top[FS_PATH_MAX];
  if (kind == MATCH_FILE) return look_at(l, path, fs_base(path), e);
  int rc = fs_join(top, l->root, l->at.dir, e);
  if (rc == 0) rc = (kind == MATCH_GROUP ? fs_list : fs_walk)(l->io, top, visit, l, e);
  if (rc == 0) judge_markers(l);
  return rc;
}

/* `l` has the io, the rules, the root and the room for the reason; what was found is in it. */
static int look_over_unit(look_over *l, const char *path, match_kind kind, err *e) {
  int rc = find_place(path, kind, &l->at, e);
  if (rc < 0) return rc;
  l->found = STRUCTURE_UNKNOWN;
  l->stem = kind == MATCH_GROUP ? l->at.stem : NULL;
  l->at_top = kind == MATCH_DIR;
  size_t markers = l->rules->marker_count + l->rules->test_count;
  l->required = calloc(2 * markers + 1, sizeof *l->required);
  if (!l->required) return err_set(e, ERR_NOMEM, "look at %s: out of memory", path);
  l->present = l->required + markers;
  rc = walk(l, path, kind, e);
  /* Each index that is sound has found its own shards: as many as there are leave none over. */
  bool known = l->files > 0 && l->unknown == 0 && l->shards == l->told;
  if (rc == 0 && l->found != STRUCTURE_TORN && known) l->found = STRUCTURE_SOUND;
  free(l->required);
  return rc;
}

int structure_of_unit(const io *io, const char *root, const char *path, match_kind kind,
                      const rules *rules, structure *out, char *why, size_t len, err *e) {
  look_over l = {.io = io, .rules = rules, .root = root, .why = why, .len = len};
  *out = STRUCTURE_UNKNOWN;
  if (why && len) *why = '\0';
  int rc = look_over_unit(&l, path, kind, e);
  if (rc == 0) *out = l.found;
  return rc;
}

int structure_proves_group(const io *io, const char *root, const char *path, const rules *rules,
                           structure_proof *out, err *e) {
  look_over l = {.io = io, .rules = rules, .root = root};
  *out = STRUCTURE_PROVES_NOTHING;
  int rc = look_over_unit(&l, path, MATCH_GROUP, e);
  if (rc == 0 && l.found == STRUCTURE_SOUND && l.told > 0) *out = STRUCTURE_PROVES_WHOLE;
  return rc;
}
