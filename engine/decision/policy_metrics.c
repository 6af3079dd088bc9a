/* policy_metrics: gathers the numbers that belong to a checkpoint, from the sources that its policy
 * names.
 *
 * The sources were written by a training script: any part of them may be missing, huge or no JSON,
 * and costs that part, never the save. */
#include <ctype.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_impl.h"
#include "prims/fs.h"

enum {
  SOURCES_MAX = 16,
  FILE_MAX = 16 << 20,
  TAIL_MAX = 256 << 10, /* of a file of lines */
  MEMBERS_MAX = 64,
  MEMBER_BYTES_MAX = 512,
  BYTES_MAX = 4096,
  NAME_BYTES_MAX = 1024,
};

/* The metrics that were gathered so far. */
typedef struct metrics {
  json_t *flat;
  size_t bytes;
  char *warning; /* POLICY_REASON_MAX, the first one stays; may be NULL */
} metrics;

static void warn(const metrics *m, const char *what, const char *why) {
  char text[POLICY_REASON_MAX];
  if (!m->warning || *m->warning) return;
  snprintf(text, sizeof text, "%.100s: %.140s", what, why);
  policy_plain(text, m->warning, POLICY_REASON_MAX);
}

/* The host may have set a locale that writes 1,5: to strtod "1.5" would be 1. Infinity: too large,
 * or out of memory; both cost the metric. */
static double number_of(const char *text) {
  locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  double value = plain ? strtod_l(text, NULL, plain) : HUGE_VAL;
  if (plain) freelocale(plain);
  return value;
}

/* ---- members ---- */

/* All numbers were read as reals, so that a huge one cannot break the rest: a step is made whole
 * again here. NULL: a metric cannot be such a value. */
static json_t *metric_value(const json_t *value) {
  int64_t whole;
  if (json_is_string(value) || json_is_boolean(value)) return json_incref((json_t *)value);
  if (!json_is_number(value)) return NULL;
  if (policy_whole(value, -(INT64_C(1) << 53), INT64_C(1) << 53, &whole))
    return json_integer(whole);
  return json_incref((json_t *)value);
}

static void add(metrics *m, const char *key, const json_t *value) {
  buf text;
  json_t *metric = metric_value(value);
  if (!metric || json_object_get(m->flat, key)) { /* the source that is named first counts */
    json_decref(metric);
    return;
  }
  json_t *member = json_pack("{s:O}", key, metric);
  buf_init(&text, MEMBER_BYTES_MAX);
  if (!member || js_print(member, &text, NULL) < 0)
    warn(m, key, "too long for a metric");
  else if (json_object_size(m->flat) >= MEMBERS_MAX || m->bytes + text.len > BYTES_MAX)
    warn(m, key, "there are too many metrics");
  else if (json_object_set(m->flat, key, metric) == 0)
    m->bytes += text.len;
  buf_free(&text);
  json_decref(member);
  json_decref(metric);
}

/* Adds all members. Objects in it get names with a dot; deeper ones are left out. */
static void add_all(metrics *m, json_t *object) {
  const char *key, *inner_key;
  json_t *value, *inner;
  json_object_foreach(object, key, value) {
    if (!json_is_object(value)) {
      add(m, key, value);
      continue;
    }
    json_object_foreach(value, inner_key, inner) {
      char name[NAME_BYTES_MAX];
      int n = snprintf(name, sizeof name, "%s.%s", key, inner_key);
      if (n < (int)sizeof name) add(m, name, inner);
    }
  }
}

/* ---- JSON as Python writes it ---- */

/* Blanks a word that is no number. NaN and Infinity are no JSON, nor is 1e999 for us; one of them
 * must not cost the rest. An empty list goes in its place, which is never a metric. */
static void blank(char *from, const char *to) {
  memset(from, ' ', (size_t)(to - from));
  from[0] = '[';
  from[1] = ']';
}

static const char *skip_string(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\') at++;
  return at < end ? at + 1 : end;
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

/* True if this word would be refused, or is no number that we can hold. */
static bool is_unfit(const char *from, const char *to) {
  const char *digits = *from == '-' ? from + 1 : from;
  size_t len = (size_t)(to - digits);
  if ((len == 3 && memcmp(digits, "NaN", 3) == 0) ||
      (len == 8 && memcmp(digits, "Infinity", 8) == 0))
    return true;
  if (to - from < 2 || !isdigit((unsigned char)*digits)) return false;
  char number[400]; /* with more digits it is too large, or too exact for a metric */
  if (len >= sizeof number) return true;
  memcpy(number, digits, len);
  number[len] = '\0';
  return !isfinite(number_of(number));
}

static json_t *parse(char *text, size_t len, err *e) {
  const char *end = text + len;
  json_error_t why;
  for (char *at = text; at < end;) {
    char *from = at;
    if (*at == '"') {
      at = (char *)skip_string(at, end);
      continue;
    }
    while (at < end && is_word(*at)) at++;
    if (at == from)
      at++;
    else if (is_unfit(from, at))
      blank(from, at);
  }
  if (js_weigh(text, len, "it", e) < 0) return NULL;
  json_t *value = json_loadb(text, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);
  if (!value) err_set(e, ERR_FORMAT, "no valid JSON: %s at line %d", why.text, why.line);
  return value;
}

/* ---- sources ---- */

/* `quiet`: that it does not lead anywhere is told nobody, who did not ask for it. */
static void add_path(metrics *m, json_t *top, const char *file, const char *path, bool quiet) {
  char key[POLICY_KEY_MAX], why[POLICY_REASON_MAX];
  json_t *value = policy_path_find(top, path, key);
  snprintf(why, sizeof why, "it has no %s", path);
  if (!value && !quiet)
    warn(m, file, why);
  else if (json_is_object(value))
    add_all(m, value);
  else if (value && *key)
    add(m, key, value);
  json_decref(value);
}

/* A unit that is no directory has its files beside it. */
static int find_file(const char *root, const detect_unit *u, const char *file, char *out, err *e) {
  char unit[FS_PATH_MAX], dir[FS_PATH_MAX];
  int rc = fs_join(unit, root, u->path, e);
  if (rc < 0) return rc;
  if (u->kind != MATCH_DIR) fs_parent(unit, dir);
  return fs_join(out, u->kind == MATCH_DIR ? unit : dir, file, e);
}

/* Reads the end of a file: whole lines of it. */
static int read_tail(const io *io, const char *path, buf *out, err *e) {
  struct stat st;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open it");
  int rc = io->fstat(io, fd, &st);
  if (rc == 0 && !S_ISREG(st.st_mode)) rc = err_set(e, ERR_INVAL, "it is no regular file");
  off_t at = rc == 0 && st.st_size > TAIL_MAX ? st.st_size - TAIL_MAX : 0;
  bool cut = at > 0;
  while (rc == 0) {
    char *to = buf_reserve(out, 4096);
    ssize_t n = to ? io->pread(io, fd, to, 4096, at) : 0;
    if (n < 0) rc = err_sys(e, (int)n, "cannot read it");
    if (n <= 0) break;
    buf_grown(out, (size_t)n);
    at += n;
  }
  io->close(io, fd);
  const char *line = cut && rc == 0 && out->data ? memchr(out->data, '\n', out->len) : NULL;
  if (line) {
    out->len -= (size_t)(line + 1 - out->data);
    memmove(out->data, line + 1, out->len + 1);
  } else if (cut && rc == 0) {
    rc = err_set(e, ERR_LIMIT, "its last line is too long");
  }
  return rc;
}

/* Parses the last line; if it is torn, the one before. */
static json_t *parse_last(buf *text, err *e) {
  json_t *value = NULL;
  size_t end = text->len;
  err_set(e, ERR_FORMAT, "it has no line");
  for (int tries = 0; !value && tries < 2; tries++) {
    while (end > 0 && isspace((unsigned char)text->data[end - 1])) end--;
    size_t begin = end;
    while (begin > 0 && text->data[begin - 1] != '\n') begin--;
    if (begin == end) break;
    value = parse(text->data + begin, end - begin, e);
    end = begin;
  }
  return value;
}

static void add_file(metrics *m, const io *io, const char *root, const detect_unit *u,
                     const json_t *source, bool lines, bool alone) {
  const char *file = json_string_value(json_object_get(source, "file")),
             *inner = json_string_value(json_object_get(source, "path"));
  bool own = json_is_true(json_object_get(source, "own"));
  char path[FS_PATH_MAX];
  json_t *value = NULL;
  buf text;
  err why = {0};
  if (own && u->kind != MATCH_DIR) return; /* what is beside it may be another one's */
  buf_init(&text, lines ? TAIL_MAX + 4096 : FILE_MAX);
  int rc = find_file(root, u, file, path, &why);
  if (rc == 0)
    rc = lines ? read_tail(io, path, &text, &why) : fs_read(io, path, FILE_MAX, &text, &why);
  if (rc == 0)
    value = lines ? parse_last(&text, &why) : parse(text.data ? text.data : "", text.len, &why);
  if (value)
    add_path(m, value, file, inner ? inner : "", own);
  else if (rc != ERR_NOENT)
    warn(m, file, why.text);
  else if (alone) /* of several sources, any may be there */
    warn(m, file, "there is no such file in the checkpoint");
  json_decref(value);
  buf_free(&text);
}

/* Returns the length of a number, as in "epoch=3-val_loss=0.25.ckpt": digits, a point with digits
 * behind it, an exponent with digits. */
static size_t number_len(const char *at) {
  size_t n = *at == '-' || *at == '+', digits = strspn(at + n, "0123456789");
  if (digits == 0) return 0;
  n += digits;
  if (at[n] == '.' && isdigit((unsigned char)at[n + 1])) n += 1 + strspn(at + n + 1, "0123456789");
  if (at[n] == 'e' || at[n] == 'E') {
    size_t more = n + 1 + (at[n + 1] == '-' || at[n + 1] == '+');
    if (isdigit((unsigned char)at[more])) n = more + strspn(at + more, "0123456789");
  }
  return n;
}

/* Reads a number at the beginning of a text: its length, or 0. */
static size_t add_number(metrics *m, const char *key, const char *at) {
  size_t len = number_len(at);
  char text[64];
  if (len == 0 || len >= sizeof text) return 0;
  memcpy(text, at, len);
  text[len] = '\0';
  json_t *value = json_real(number_of(text)); /* NULL: infinite */
  add(m, key, value);
  json_decref(value);
  return len;
}

static bool is_name(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Each NAME=NUMBER, as Lightning writes them: "epoch=3-val_loss=0.126.ckpt". */
static void add_names(metrics *m, const char *name) {
  for (const char *at = strchr(name, '='); at; at = strchr(at + 1, '=')) {
    const char *from = at;
    char key[256];
    while (from > name && is_name(from[-1])) from--;
    size_t len = (size_t)(at - from);
    if (len == 0 || len >= sizeof key) continue;
    memcpy(key, from, len);
    key[len] = '\0';
    add_number(m, key, at + 1);
  }
}

/* "loss=" is not found in "val_loss=". */
static bool at_word(const char *name, const char *at, const char *after) {
  return at == name || !isalnum((unsigned char)*after) ||
         !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
}

static void add_name(metrics *m, const char *name, const json_t *source) {
  const char *key = json_string_value(json_object_get(source, "key")),
             *after = json_string_value(json_object_get(source, "after"));
  for (const char *at = strstr(name, after); at; at = strstr(at + 1, after))
    if (at_word(name, at, after) && add_number(m, key, at + strlen(after)) > 0) return;
}

/* That it names a checkpoint is no number of that. */
static void add_result(metrics *m, const char *result) {
  buf text;
  if (!result) return;
  buf_init(&text, FILE_MAX);
  buf_str(&text, result);
  json_t *value = text.data ? parse(text.data, text.len, NULL) : NULL;
  if (json_is_string(json_object_get(value, "checkpoint"))) json_object_del(value, "checkpoint");
  if (json_is_object(value)) add_all(m, value);
  json_decref(value);
  buf_free(&text);
}

struct source {
  const char *from, *file, *path;
};

/* Where the numbers are if no policy says it: what the known frameworks write into a checkpoint or
 * its name, then what was reported. policies/default.lua says the same. */
static const struct source known_sources[] = {
    {"json", "trainer_state.json", "log_history[step=global_step]"}, /* Hugging Face Trainer */
    {"json", "metrics/metrics", ""},                                 /* Orbax */
    {"names", NULL, NULL},                                           /* Lightning */
    {"notify", NULL, NULL},
};

static json_t *sources_of(const policy *p) {
  json_t *named = json_object_get(p->data, "metrics");
  if (json_array_size(named) > 0) return json_incref(named);
  json_t *all = json_array();
  for (size_t i = 0; i < sizeof known_sources / sizeof *known_sources; i++) {
    const struct source *s = &known_sources[i];
    json_array_append_new(all, s->file ? json_pack("{s:s, s:s, s:s, s:b}", "from", s->from, "file",
                                                   s->file, "path", s->path, "own", 1)
                                       : json_pack("{s:s}", "from", s->from));
  }
  return all;
}

static void add_source(metrics *m, const policy *p, const char *root, const detect_unit *unit,
                       const json_t *source, const char *result, bool alone) {
  const char *from = json_string_value(json_object_get(source, "from"));
  if (strcmp(from, "notify") == 0)
    add_result(m, result);
  else if (strcmp(from, "name") == 0)
    add_name(m, unit->name, source);
  else if (strcmp(from, "names") == 0)
    add_names(m, unit->name);
  else
    add_file(m, p->io, root, unit, source, strcmp(from, "jsonl") == 0, alone);
}

static char *print(metrics *m) {
  buf text;
  buf_init(&text, BYTES_MAX);
  if (json_object_size(m->flat) > 0) js_print(m->flat, &text, NULL);
  json_decref(m->flat);
  char *taken = buf_take(&text);
  buf_free(&text);
  return taken;
}

char *policy_metrics(const policy *p, const char *root, const detect_unit *unit, const char *result,
                     char warning[POLICY_REASON_MAX]) {
  json_t *sources = sources_of(p);
  size_t count = json_array_size(sources);
  metrics m = {.flat = json_object(), .warning = warning};
  if (warning) *warning = '\0';
  for (size_t i = 0; i < count; i++)
    add_source(&m, p, root, unit, json_array_get(sources, i), result, count == 1);
  json_decref(sources);
  return print(&m);
}

char *policy_numbers(const char *result, const char *newer) {
  metrics m = {.flat = json_object()};
  add_result(&m, newer);
  add_result(&m, result);
  return print(&m);
}

/* ---- the check at the start ---- */

static bool is_inside(const char *file) {
  if (*file == '/' || *file == '\0' || strlen(file) >= NAME_BYTES_MAX) return false;
  for (const char *at = file; at; at = strchr(at, '/')) {
    if (*at == '/') at++;
    if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0')) return false;
  }
  return true;
}

static const char *text_of(const json_t *source, const char *key) {
  const char *text = json_string_value(json_object_get(source, key));
  return text && *text && strlen(text) < NAME_BYTES_MAX ? text : NULL;
}

static int check_source(const json_t *source, err *e) {
  const char *from = json_string_value(json_object_get(source, "from"));
  if (!from) return err_set(e, ERR_POLICY, "metrics: a source is none");
  if (strcmp(from, "notify") == 0 || strcmp(from, "names") == 0) return 0;
  if (strcmp(from, "name") == 0)
    return text_of(source, "key") && text_of(source, "after")
               ? 0
               : err_set(e, ERR_POLICY, "metrics: from.name needs `key` and `after`");
  if (strcmp(from, "json") != 0 && strcmp(from, "jsonl") != 0)
    return err_set(e, ERR_POLICY, "metrics: there is no such source");
  const char *file = text_of(source, "file");
  const json_t *path = json_object_get(source, "path");
  if (!file || !is_inside(file))
    return err_set(e, ERR_POLICY, "metrics: from.%s needs a file within the checkpoint", from);
  if (path && !json_is_null(path) &&
      (!json_is_string(path) || !policy_path_good(json_string_value(path))))
    return err_set(e, ERR_POLICY,
                   "metrics: from.%s(\"%.100s\"): the path is none: "
                   "names with dots between them, and [n]",
                   from, file);
  return 0;
}

int policy_metrics_check(const json_t *sources, err *e) {
  ssize_t count = policy_list(sources);
  int rc = 0;
  if (count < 0 || count > SOURCES_MAX)
    return err_set(e, ERR_POLICY, "metrics: at most %d sources", SOURCES_MAX);
  for (ssize_t i = 0; rc == 0 && i < count; i++)
    rc = check_source(json_array_get(sources, (size_t)i), e);
  return rc;
}
