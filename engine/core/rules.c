#include "rules.h"

#include <stdlib.h>
#include <string.h>

/* Apart from what follows: "??" and a dash is a trigraph in C11. */
#define Q4 "????"
/* One character of Python's tempfile names. */
#define T1 "[a-z0-9_]"
#define T4 T1 T1 T1 T1

/* Where the last number of a name is not its step (a loss, a rank), a row of its own says which
 * number is; it stands before the general one. */
static const char *const units[] = {
    "checkpoint-{step}/",
    "checkpoint_{step}/",
    "step-{step}/",
    "step_{step}/",
    "global_step{step}/",
    "epoch-{step}/",
    "epoch_{step}/",
    "iter_{step}/",
    "ckpt-{step}/",
    "ckpt_{step}/",
    "checkpoint_[0-9]{*}/", /* Ray: the time of day */
    "*step={step}-*.ckpt/",
    "*step={step}.ckpt/",
    "*.ckpt/", /* Lightning, sharded */
    "{step}/",
    "*step={step}-*.ckpt",
    "*step={step}.ckpt",
    "ep*-ba{step}-rank*.pt", /* composer */
    "*.pt",
    "*.pth",
    "*.ckpt",
    "*.safetensors",
    "*.keras",
    "*.h5",
    "*.ubj",
    "*.npz",
    "*.joblib",
    "*.cbm",
    "*.cbsnapshot",
    "*.pdparams",
    "*.msgpack",
    "checkpoint_{step}", /* flax */
    "ckpt-{step}.*",     /* TensorFlow */
    NULL,
};

static const char *const proven[] = {"{step}/", NULL};

/* Never ".*": .metadata and its kind are data. */
static const char *const excludes[] = {
    ".tmp??????",               /* safetensors, inside a checkpoint */
    "*.tmp",                    /* DCP, CatBoost, and most that people write */
    "tmp-checkpoint-*",         /* transformers 4.36 and 4.37 */
    "*.orbax-checkpoint-tmp*",  /* Orbax */
    "*.__lock",                 /* tensorstore */
    "checkpoint_tmp",           /* flax */
    ".validate_storage_marker", /* Ray */
    "." Q4 Q4 "-" Q4 "-" Q4 "-" Q4 "-" Q4 Q4 Q4 "-*", /* Ray Tune: a UUID */
    "*_temp/",                                        /* TensorFlow */
    "*.tempstate*",
    "checkpoint.tmp*",
    "*.symlink",   /* composer */
    "tmp" T4 T4,   /* ignite */
    "*.bak",       /* CatBoost */
    "tmp/",        /* CatBoost */
    "_checkpoint", /* AdaptDL */
    NULL,
};

static const rules_marker markers[] = {
    {"trainer_state.json", "training_args.bin", false},
    {".metadata", "__*_*.distcp", true},
    {".snapshot_metadata", NULL, true},
    {"commit_success.txt", NULL, false},
    /* Orbax writes it first and again at the end. */
    {"_CHECKPOINT_METADATA", NULL, true},
    {"training_metadata.json", NULL, true},
};

static const int64_t second = 1000000000;

static const rules builtin = {
    .units = units,
    .proven = proven,
    .excludes = excludes,
    .markers = markers,
    .marker_count = sizeof markers / sizeof *markers,
    .quiet_ns = 30 * second,
    .marked_ns = 5 * second,
    .settled_ns = second / 10,
};

const rules *rules_builtin(void) {
  return &builtin;
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

/* A copy of both lists, one after the other. */
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

static int check_lists(const char *const *u, const char *const *x, const char *const *m, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < count_of(u); i++) rc = match_unit_check(u[i], NULL, e);
  for (size_t i = 0; rc == 0 && i < count_of(x); i++) rc = match_exclude_check(x[i], e);
  for (size_t i = 0; rc == 0 && i < count_of(m); i++) rc = check_marker(m[i], e);
  if (rc == 0 && u && !*u) rc = err_set(e, ERR_INVAL, "the list of units is empty");
  return rc;
}

/* The rows of the built-in markers, or the user's, which are required wherever there is a file. */
static const rules_marker *copy_markers(const char *const *names, size_t *count) {
  *count = names ? count_of(names) : builtin.marker_count;
  rules_marker *out = calloc(*count + 1, sizeof *out);
  for (size_t i = 0; out && i < *count; i++) {
    rules_marker from = {.signature = RULES_ALWAYS};
    if (names)
      from.name = names[i];
    else
      from = builtin.markers[i];
    out[i].name = strdup(from.name);
    out[i].signature = from.signature ? strdup(from.signature) : NULL;
    out[i].newest = from.newest;
    /* Half a row would make a marker that is required one that only helps. */
    if (from.signature && !out[i].signature) {
      free((char *)out[i].name);
      out[i].name = NULL;
    }
  }
  return out;
}

static bool copied(const rules *r) {
  if (!r->units || !r->proven || !r->excludes || !r->markers) return false;
  for (size_t i = 0; i < r->marker_count; i++)
    if (!r->markers[i].name) return false;
  return true;
}

int rules_custom(const char *const *user_units, const char *const *user_excludes,
                 const char *const *user_markers, int64_t quiet_ns, rules **out, err *e) {
  *out = NULL;
  int rc = check_lists(user_units, user_excludes, user_markers, e);
  if (rc < 0) return rc;
  rules *r = calloc(1, sizeof *r);
  if (!r) return err_set(e, ERR_NOMEM, "rules: out of memory");
  *r = builtin;
  r->units = copy_lists(user_units ? user_units : units, NULL);
  /* Who writes a pattern means it: only ours of the default list ask for a proof. */
  r->proven = copy_lists(user_units ? NULL : proven, NULL);
  r->excludes = copy_lists(excludes, user_excludes);
  r->markers = copy_markers(user_markers, &r->marker_count);
  if (quiet_ns >= 0) r->quiet_ns = quiet_ns;
  /* A marker is more proof than silence: it never waits longer. */
  if (r->marked_ns > r->quiet_ns) r->marked_ns = r->quiet_ns;
  if (!copied(r)) {
    rules_free(r);
    return err_set(e, ERR_NOMEM, "rules: out of memory");
  }
  *out = r;
  return 0;
}

void rules_free(rules *r) {
  if (!r || r == &builtin) return;
  free_list(r->units);
  free_list(r->proven);
  free_list(r->excludes);
  for (size_t i = 0; r->markers && i < r->marker_count; i++) {
    free((char *)r->markers[i].name);
    free((char *)r->markers[i].signature);
  }
  free((void *)r->markers);
  free(r);
}

const char *rules_match(const rules *r, const char *path, bool is_dir, match_unit *out) {
  for (size_t i = 0; r->units[i]; i++)
    if (match_unit_path(r->units[i], path, is_dir, out)) return r->units[i];
  return NULL;
}

bool rules_needs_proof(const rules *r, const char *pattern) {
  for (size_t i = 0; r->proven[i]; i++)
    if (strcmp(r->proven[i], pattern) == 0) return true;
  return false;
}

bool rules_excluded(const rules *r, const char *path, bool is_dir) {
  for (size_t i = 0; r->excludes[i]; i++)
    if (match_exclude(r->excludes[i], path, is_dir)) return true;
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
