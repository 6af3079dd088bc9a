#include "trail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "base/vec.h"
#include "prims/fs.h"

/* LINE_ROOM bounds the longest record; UNITS_MAX the units whose last word is remembered; TEXTS_MAX
 * the things that an open unit waits for, one after the other. */
enum {
  LINE_ROOM = 8 * FS_PATH_MAX,
  UNITS_MAX = 1 << 16,
  TEXTS_MAX = 16,
  CHUNK = 64 << 10,
};

/* The last word about one unit. */
typedef struct word {
  char *unit, *line;
  trail_what what;
  uint64_t key;
  bool written;
  uint64_t texts[TEXTS_MAX]; /* those written since it was last anything but open */
  unsigned text_count;
} word;

struct trail {
  const io *io;
  const log_sink *log;
  char path[FS_PATH_MAX], older[FS_PATH_MAX];
  int fd; /* -1: it could not be opened yet */
  size_t size;
  bool torn;   /* the file may not end with a line end */
  bool warned; /* that records cannot be written */
  word *words; /* sorted by unit */
  size_t count, room;
};

static const char *const what_names[] = {"start",   "open",    "complete", "unproven", "gone",
                                         "skipped", "waiting", "begun",    "retrying", "committed",
                                         "let-go",  "retired", "failed",   "fenced",   "dropped",
                                         "deleted", NULL};

static const char *const text_keys[TRAIL_TEXTS] = {"unit", "cause", "policy",  "reason",
                                                   "log",  "entry", "content", "left"};

const char **trail_text(trail_record *r, size_t i) {
  const char **const texts[TRAIL_TEXTS] = {&r->unit, &r->cause, &r->policy,  &r->reason,
                                           &r->log,  &r->entry, &r->content, &r->left};
  return texts[i];
}

/* ---- lines ---- */

static void member(json_t *line, const char *key, const char *text) {
  if (text && *text) json_object_set_new(line, key, js_name_new(text));
}

static void number(json_t *line, const char *key, int64_t value) {
  if (value) json_object_set_new(line, key, json_integer(value));
}

/* Prints a record with its line end; malloced, NULL when out of memory. */
static char *print(const trail_record *r, int64_t time_ns) {
  json_t *line = json_pack("{s:I, s:s}", "t", (json_int_t)time_ns, "what", what_names[r->what]);
  trail_record copy = *r;
  buf out;
  buf_init(&out, LINE_ROOM);
  if (line) {
    for (size_t i = 0; i < TRAIL_TEXTS; i++) member(line, text_keys[i], *trail_text(&copy, i));
    number(line, "status", r->status);
    number(line, "tries", r->tries);
    number(line, "commit", (int64_t)r->commit);
    js_print(line, &out, NULL);
    buf_add(&out, "\n", 1);
  }
  char *text = line ? buf_take(&out) : NULL;
  buf_free(&out);
  json_decref(line);
  return text;
}

/* Hashes a text (FNV-1a). Numbers in it count for nothing. */
static uint64_t mix(uint64_t h, const char *text) {
  for (; text && *text; text++)
    if (!strchr("0123456789.", *text)) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return (h ^ 1) * UINT64_C(1099511628211);
}

static uint64_t key_of(const trail_record *r) {
  uint64_t h = mix(mix(mix(UINT64_C(14695981039346656037), r->cause), r->policy), r->reason);
  const uint64_t rest[] = {r->what, (uint64_t)(int64_t)r->status, r->tries, r->commit};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
    h = (h ^ rest[i]) * UINT64_C(1099511628211);
  return h;
}

/* ---- the last words ---- */

static size_t place_of(const trail *t, const char *unit, bool *there) {
  return vec_place(unit, t->words, t->count, sizeof *t->words, vec_by_text, there);
}

static void forget(word *w) {
  free(w->unit);
  free(w->line);
}

/* Finds or adds the word of a unit. NULL: there is no room for it, its records are just written. */
static word *word_of(trail *t, const char *unit) {
  bool there;
  size_t at = place_of(t, unit, &there);
  if (there) return &t->words[at];
  if (t->count >= UNITS_MAX) return NULL;
  char *copy = VEC_ROOM(t->words, t->count, t->room) ? strdup(unit) : NULL;
  if (!copy) return NULL;
  memmove(&t->words[at + 1], &t->words[at], (t->count - at) * sizeof *t->words);
  t->words[at] = (word){.unit = copy, .written = true};
  t->count++;
  return &t->words[at];
}

/* True if the unit waited for the same before, since it is open: then it is no news. */
static bool said_before(word *w, trail_what what, uint64_t key) {
  if (what != TRAIL_OPEN) {
    w->text_count = 0;
    return false;
  }
  for (unsigned i = 0; i < w->text_count; i++)
    if (w->texts[i] == key) return true;
  if (w->text_count == TEXTS_MAX) return true;
  w->texts[w->text_count++] = key;
  return false;
}

/* ---- the file ---- */

static void warn(trail *t, const err *why) {
  if (!t->warned) log_say(t->log, LOG_WARN, "`why` will know less: %s", why->text);
  t->warned = true;
}

/* Opens the file, with O_NONBLOCK: somebody may have put a pipe there. */
static void open_file(trail *t) {
  struct stat st;
  err e = {0};
  int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  t->fd = t->io->open(t->io, AT_FDCWD, t->path, flags, 0600);
  if (t->fd < 0) {
    err_sys(&e, t->fd, "open %s", t->path);
    t->fd = -1;
    warn(t, &e);
    return;
  }
  int rc = t->io->fstat(t->io, t->fd, &st);
  if (rc >= 0 && S_ISREG(st.st_mode)) {
    t->size = (size_t)st.st_size;
    t->torn = st.st_size > 0;
    return;
  }
  err_set(&e, ERR_IO, "%s is no file", t->path);
  warn(t, &e);
  t->io->close(t->io, t->fd);
  t->fd = -1;
}

static bool append(trail *t, const char *line) {
  err e = {0};
  size_t len = strlen(line);
  int rc = 0;
  if (t->torn) rc = fs_write_all(t->io, t->fd, "\n", 1, t->path, &e);
  if (rc == 0) rc = fs_write_all(t->io, t->fd, line, len, t->path, &e);
  t->torn = rc < 0;
  t->size += len + 1;
  if (rc < 0) warn(t, &e);
  return rc == 0;
}

/* True unless the unit is gone from here, or from the store: the older file tells that as long as
 * it is there. */
static bool still_counts(const word *w) {
  return w->line && w->what != TRAIL_GONE && w->what != TRAIL_DELETED;
}

/* The new file begins with the last word about each unit; half of it stays free. */
static void begin_anew(trail *t) {
  size_t kept = 0;
  for (size_t i = 0; i < t->count; i++) {
    word *w = &t->words[i];
    bool fits = t->size + strlen(w->line ? w->line : "") < TRAIL_BYTES_MAX / 2;
    if (still_counts(w) && fits && append(t, w->line)) {
      w->written = true;
      t->words[kept++] = *w;
    } else {
      forget(w);
    }
  }
  t->count = kept;
}

static void rotate(trail *t) {
  err e = {0};
  int rc = t->io->rename(t->io, AT_FDCWD, t->path, AT_FDCWD, t->older, 0);
  if (rc < 0) {
    err_sys(&e, rc, "rename %s", t->path);
    warn(t, &e);
    return;
  }
  if (t->fd >= 0) t->io->close(t->io, t->fd);
  open_file(t);
  if (t->fd >= 0) begin_anew(t);
}

/* Appends a line. A file that cannot be renamed stops growing at twice its size. */
static bool put(trail *t, const char *line) {
  if (t->fd < 0) open_file(t);
  return t->fd >= 0 && t->size < 2 * (size_t)TRAIL_BYTES_MAX && append(t, line);
}

void trail_note(trail *t, const trail_record *r) {
  if (!t || (unsigned)r->what > TRAIL_DELETED) return;
  int64_t now = r->time_ns ? r->time_ns : t->io->now(t->io, IO_WALL);
  uint64_t key = key_of(r);
  /* This comes first, since it makes the table of words anew. */
  if (t->size > TRAIL_BYTES_MAX) rotate(t);
  word *w = r->unit ? word_of(t, r->unit) : NULL;
  if (w && w->key == key) return;
  char *line = print(r, now);
  if (!line) return;
  bool repeated = w && said_before(w, r->what, key);
  bool written = repeated ? false : put(t, line);
  if (!w) {
    free(line);
    return;
  }
  free(w->line);
  w->line = line;
  w->what = r->what;
  w->key = key;
  w->written = written;
}

/* ---- reading ---- */

static bool parse_what(const char *name, trail_what *out) {
  size_t what = names_index(what_names, name);
  *out = (trail_what)what;
  return what_names[what] != NULL;
}

static char *text_of(const json_t *line, const char *key) {
  char *text = NULL;
  if (json_object_get(line, key)) js_get_name(line, key, "trail", &text, NULL);
  return text;
}

/* Hands one line to `fn` if it is a record of `unit`; any other line is passed over. */
static int read_line(const char *at, size_t len, const char *unit, trail_fn *fn, void *ctx) {
  json_t *line = NULL;
  const char *what;
  trail_record r = {0};
  int64_t status = 0, tries = 0, commit = 0;
  int rc = 0;
  bool known = js_parse(at, len, "trail", &line, NULL) == 0 && json_is_object(line) &&
               js_get_str(line, "what", "trail", &what, NULL) == 0 && parse_what(what, &r.what) &&
               js_get_int(line, "t", "trail", &r.time_ns, NULL) == 0 &&
               js_opt_int(line, "status", "trail", 0, &status, NULL) == 0 &&
               js_opt_int(line, "tries", "trail", 0, &tries, NULL) == 0 &&
               js_opt_int(line, "commit", "trail", 0, &commit, NULL) == 0;
  if (known) {
    for (size_t i = 0; i < TRAIL_TEXTS; i++) *trail_text(&r, i) = text_of(line, text_keys[i]);
    r.status = status < 0 && status > -1000 ? (int)status : 0;
    r.tries = tries > 0 && tries < 1000000 ? (unsigned)tries : 0;
    r.commit = commit > 0 ? (uint64_t)commit : 0;
    if (!unit || (r.unit && strcmp(r.unit, unit) == 0)) rc = fn(ctx, &r);
    for (size_t i = 0; i < TRAIL_TEXTS; i++) free((char *)*trail_text(&r, i));
  }
  json_decref(line);
  return rc;
}

typedef struct reader {
  const char *unit;
  trail_fn *fn;
  void *ctx;
  buf line;
} reader;

/* A line that is longer than any of ours is passed over. */
static int take_chunk(reader *r, const char *at, size_t len) {
  int rc = 0;
  for (const char *end = at + len; rc == 0 && at < end;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    buf_add(&r->line, at, (size_t)((stop ? stop : end) - at));
    if (!stop) break;
    if (!buf_failed(&r->line) && r->line.len > 0)
      rc = read_line(r->line.data, r->line.len, r->unit, r->fn, r->ctx);
    buf_free(&r->line);
    buf_init(&r->line, LINE_ROOM);
    at = stop + 1;
  }
  return rc;
}

/* Reads the end of a file, if it is larger than we would have let it grow. */
static int read_file(const io *io, const char *path, reader *r, err *e) {
  struct stat st;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0) return err_sys(e, fd, "open %s", path);
  char *chunk = malloc(CHUNK);
  int rc = chunk ? io->fstat(io, fd, &st) : -ENOMEM;
  if (rc < 0 || !S_ISREG(st.st_mode)) {
    rc = rc < 0 ? err_sys(e, rc, "look at %s", path) : 0;
    goto out;
  }
  off_t most = 3 * (off_t)TRAIL_BYTES_MAX;
  off_t at = st.st_size > most ? st.st_size - most : 0;
  for (off_t left = most; rc == 0 && left > 0;) {
    ssize_t n = io->pread(io, fd, chunk, CHUNK, at);
    if (n < 0) rc = err_sys(e, (int)n, "read %s", path);
    if (n <= 0) break;
    rc = take_chunk(r, chunk, (size_t)n);
    at += n;
    left -= n;
  }
out:
  buf_free(&r->line);
  buf_init(&r->line, LINE_ROOM);
  free(chunk);
  io->close(io, fd);
  return rc;
}

static int paths_of(const char *dir, char *path, char *older, err *e) {
  int rc = fs_join(path, dir, "why.jsonl", e);
  return rc < 0 ? rc : fs_join(older, dir, "why.1.jsonl", e);
}

int trail_read(const io *io, const char *dir, const char *unit, trail_fn *fn, void *ctx, err *e) {
  char path[FS_PATH_MAX], older[FS_PATH_MAX];
  err why = {0};
  reader r = {.unit = unit, .fn = fn, .ctx = ctx};
  int rc = paths_of(dir, path, older, e);
  if (rc < 0) return rc;
  buf_init(&r.line, LINE_ROOM);
  rc = read_file(io, older, &r, &why);
  bool none = rc == ERR_NOENT && why.code == ERR_NOENT;
  if (none) rc = 0;
  if (rc == 0) {
    why = (err){0};
    rc = read_file(io, path, &r, &why);
    if (rc == ERR_NOENT && why.code == ERR_NOENT && !none) rc = 0;
  }
  if (rc < 0 && why.code == rc && e) *e = why;
  return rc;
}

/* ---- open and close ---- */

static int remember(void *ctx, const trail_record *r) {
  trail *t = ctx;
  word *w = r->unit ? word_of(t, r->unit) : NULL;
  char *line = w ? print(r, r->time_ns) : NULL;
  if (!line) return 0;
  free(w->line);
  w->line = line;
  w->what = r->what;
  return 0;
}

int trail_open(const io *io, const log_sink *log, const char *dir, trail **out, err *e) {
  *out = NULL;
  trail *t = calloc(1, sizeof *t);
  if (!t) return err_set(e, ERR_NOMEM, "open the trail: out of memory");
  t->io = io;
  t->log = log;
  t->fd = -1;
  int rc = paths_of(dir, t->path, t->older, e);
  if (rc < 0) {
    free(t);
    return rc;
  }
  /* Earlier words are carried over when the file is changed; a new run says them again. */
  reader r = {.fn = remember, .ctx = t};
  buf_init(&r.line, LINE_ROOM);
  read_file(io, t->path, &r, NULL); /* a file that cannot be read is not carried over */
  buf_free(&r.line);
  open_file(t);
  *out = t;
  return 0;
}

void trail_close(trail *t) {
  if (!t) return;
  for (size_t i = 0; i < t->count; i++) {
    if (t->words[i].line && !t->words[i].written) put(t, t->words[i].line);
    forget(&t->words[i]);
  }
  if (t->fd >= 0) t->io->close(t->io, t->fd);
  free(t->words);
  free(t);
}
