#include "watchers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "prims/hash.h"

enum { FORMAT = 1, GROWTH = 1 << 20, FILE_MOST = 64 << 20, LINE_MOST = 8 * FS_PATH_MAX };

/* ---- our own ---- */

/* The name is of the directory that holds the state, not of its path: containers have equal paths.
 * Its device is left out, which may have another number after a reboot. */
static int name_of(const io *io, const char *state, char out[33], err *e) {
  char text[FS_PATH_MAX + 64], hex[HASH_HEX_MAX];
  struct stat st;
  int64_t birth = 0;
  int fd = io->open(io, AT_FDCWD, state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "open the state directory %s", state);
  int rc = io->fstat(io, fd, &st);
  bool born = rc == 0 && io->birth && io->birth(io, fd, &birth) == 0;
  io->close(io, fd); /* nothing was written */
  if (rc < 0) return err_sys(e, rc, "look at the state directory %s", state);
  int len = snprintf(text, sizeof text, "%" PRIx64 ":%" PRId64 ":%s", (uint64_t)st.st_ino, birth,
                     born ? "" : state);
  rc = hash_sha256_hex(text, (size_t)len, hex, e);
  if (rc == 0) snprintf(out, 33, "%.32s", hex);
  return rc;
}

static int add_line(json_t *line, buf *out, err *e) {
  int rc = line ? js_print(line, out, e) : err_set(e, ERR_NOMEM, "watchers: out of memory");
  json_decref(line);
  buf_add(out, "\n", 1);
  return rc == 0 && buf_failed(out) ? err_set(e, buf_failed(out), "watchers: too large") : rc;
}

static int card_line(const watcher_card *c, buf *out, err *e) {
  json_t *o = json_object(), *excludes = json_array();
  int bad = 0;
  for (size_t i = 0; c->excludes && c->excludes[i]; i++)
    if (json_array_append_new(excludes, js_name_new(c->excludes[i])) < 0) bad = 1;
  js_set(o, "format", json_integer(FORMAT), &bad);
  js_set(o, "reader", json_integer(FORMAT), &bad);
  js_set(o, "state", js_name_new(c->state), &bad);
  js_set(o, "target", js_name_new(c->target), &bad);
  js_set(o, "run", js_name_new(c->run), &bad);
  js_set(o, "host", js_name_new(c->host), &bad);
  js_set(o, "pid", json_integer(c->pid), &bad);
  js_set(o, "excludes", excludes, &bad);
  if (bad) {
    json_decref(o);
    o = NULL;
  }
  return add_line(o, out, e);
}

/* A line that did not get through whole is passed over by who reads it. */
static int append(const io *io, watcher *w, const buf *text, err *e) {
  w->size += text->len;
  return fs_write_all(io, w->file.fd, text->data, text->len, w->path, e);
}

int watcher_again(const io *io, watcher *w, const watcher_card *card, err *e) {
  buf text;
  buf_init(&text, FILE_MOST);
  int rc = card_line(card, &text, e);
  int cut = rc == 0 ? io->ftruncate(io, w->file.fd, 0) : 0;
  if (cut < 0) rc = err_sys(e, cut, "cut %s", w->path);
  w->size = 0;
  if (rc == 0) rc = append(io, w, &text, e);
  w->most = 2 * w->size + GROWTH;
  buf_free(&text);
  return rc;
}

/* The directory goes with the last that leaves it, which may be just now. */
static int open_file(const io *io, const char *dir, watcher *w, err *e) {
  enum { TRIES = 5 };
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
  int fd = -ENOENT;
  for (int i = 0; i < TRIES && fd == -ENOENT; i++) {
    int rc = fs_mkdirs(io, dir, 0777, e);
    if (rc < 0) return rc;
    struct stat st;
    w->found = io->lstat(io, AT_FDCWD, w->path, &st) == 0;
    fd = io->open(io, AT_FDCWD, w->path, flags, 0666);
  }
  return fd < 0 ? err_sys(e, fd, "open %s", w->path) : lock_take_open(fd, w->path, &w->file, e);
}

int watcher_join(const io *io, const char *home, const watcher_card *card, watcher *out, err *e) {
  char dir[FS_PATH_MAX], name[33];
  *out = (watcher){.file.fd = -1};
  int rc = fs_join(dir, home, "watchers", e);
  if (rc == 0) rc = name_of(io, card->state, name, e);
  if (rc == 0) rc = fs_join(out->path, dir, name, e);
  if (rc == 0) rc = open_file(io, dir, out, e);
  if (rc == 0) rc = watcher_again(io, out, card, e);
  if (rc < 0) lock_drop(&out->file);
  return rc;
}

int watcher_done(const io *io, watcher *w, const char *unit, uint64_t stamp, err *e) {
  char hex[24];
  buf line;
  buf_init(&line, LINE_MOST);
  snprintf(hex, sizeof hex, "%016" PRIx64, stamp);
  int rc = add_line(json_pack("{s:o, s:s}", "unit", js_name_new(unit), "stamp", hex), &line, e);
  if (rc == 0) rc = append(io, w, &line, e);
  buf_free(&line);
  return rc;
}

int watcher_log(const io *io, watcher *w, const char *group, const char *log, err *e) {
  buf line;
  buf_init(&line, LINE_MOST);
  int rc = add_line(json_pack("{s:o, s:s}", "group", js_name_new(group), "log", log), &line, e);
  if (rc == 0) rc = append(io, w, &line, e);
  buf_free(&line);
  return rc;
}

bool watcher_is_long(const watcher *w) {
  return w->file.fd >= 0 && w->size > w->most;
}

void watcher_leave(const io *io, watcher *w, bool stays) {
  char dir[FS_PATH_MAX];
  if (w->file.fd < 0) return;
  if (!stays) {
    io->unlink(io, AT_FDCWD, w->path, 0);
    fs_parent(w->path, dir);
    io->unlink(io, AT_FDCWD, dir, AT_REMOVEDIR); /* if nobody else is there */
  }
  lock_drop(&w->file);
}

/* ---- the others ---- */

static void seen_free(watcher_seen *w) {
  free(w->file);
  free(w->state);
  free(w->target);
  free(w->run);
  free(w->host);
  names_free(&w->excludes);
  for (size_t i = 0; i < w->count; i++) free(w->units[i].path);
  free(w->units);
  for (size_t i = 0; i < w->group_count; i++) {
    free(w->groups[i].path);
    free(w->groups[i].log);
  }
  free(w->groups);
}

void watchers_free(watchers *w) {
  for (size_t i = 0; i < w->count; i++) seen_free(&w->at[i]);
  free(w->at);
  *w = (watchers){0};
}

static int take_excludes(const json_t *card, const char *what, watcher_seen *w) {
  json_t *list = NULL, *item;
  size_t i;
  int rc = js_get_array(card, "excludes", what, &list, NULL);
  json_array_foreach(list, i, item) {
    buf text;
    buf_init(&text, FS_PATH_MAX);
    if (rc == 0) rc = json_is_string(item) ? 0 : ERR_FORMAT;
    if (rc == 0) rc = js_name_unescape(json_string_value(item), &text, NULL);
    if (rc == 0 && (buf_failed(&text) || !names_add(&w->excludes, text.data ? text.data : "")))
      rc = ERR_NOMEM;
    buf_free(&text);
  }
  return rc;
}

/* The first line. Of a file that begins otherwise nothing is known: its watcher is done with
 * nothing. */
static int take_card(const char *line, size_t len, watcher_seen *w) {
  static const char *const keys[] = {"state", "target", "run", "host"};
  char **const to[] = {&w->state, &w->target, &w->run, &w->host};
  json_t *card = NULL;
  int rc = js_parse(line, len, w->file, &card, NULL);
  if (rc == 0) rc = js_check_reader(card, w->file, FORMAT, NULL);
  for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof(void *); i++) {
    char *name = NULL;
    rc = js_get_name(card, keys[i], w->file, &name, NULL);
    *to[i] = name;
  }
  if (rc == 0) rc = js_get_int(card, "pid", w->file, &w->pid, NULL);
  if (rc == 0) rc = take_excludes(card, w->file, w);
  json_decref(card);
  return rc;
}

static void take_unit(const json_t *value, watcher_seen *w) {
  const char *hex = "";
  char *path = NULL, *end = NULL;
  bool read = js_get_str(value, "stamp", w->file, &hex, NULL) == 0 &&
              js_get_name(value, "unit", w->file, &path, NULL) == 0;
  uint64_t stamp = strtoull(hex, &end, 16);
  if (read && *hex && !*end && VEC_ROOM(w->units, w->count, w->room))
    w->units[w->count++] = (watcher_unit){path, stamp};
  else
    free(path);
}

static void take_group(const json_t *value, watcher_seen *w) {
  char *path = NULL, *log = NULL;
  bool read = js_get_name(value, "group", w->file, &path, NULL) == 0 &&
              js_get_name(value, "log", w->file, &log, NULL) == 0;
  if (read && VEC_ROOM(w->groups, w->group_count, w->group_room)) {
    w->groups[w->group_count++] = (watcher_group){path, log};
  } else {
    free(path);
    free(log);
  }
}

/* A line that cannot be read says nothing: without it, more stays. */
static void take_line(const char *line, size_t len, watcher_seen *w) {
  json_t *value = NULL;
  if (js_parse(line, len, w->file, &value, NULL) == 0) {
    if (json_object_get(value, "unit")) take_unit(value, w);
    if (json_object_get(value, "log")) take_group(value, w);
  }
  json_decref(value);
}

static int take_lines(const buf *text, watcher_seen *w) {
  const char *at = text->data, *end = at ? at + text->len : at;
  for (bool first = true; at < end; first = false) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) break; /* it is being written */
    size_t len = (size_t)(stop - at);
    int rc = first ? take_card(at, len, w) : 0;
    if (rc < 0) return rc;
    if (!first) take_line(at, len, w);
    w->known = true;
    at = stop + 1;
  }
  return w->known ? 0 : ERR_FORMAT;
}

static int unknown(char **text) {
  if (!*text) *text = strdup("?");
  return *text ? 0 : ERR_NOMEM;
}

struct look {
  const io *io;
  const char *dir, *own;
  watchers *out;
};

static int on_file(void *ctx, const fs_entry *entry, err *e) {
  struct look *l = ctx;
  watcher_seen w = {0};
  char path[FS_PATH_MAX];
  buf text;
  if (fs_join(path, l->dir, entry->name, e) < 0) return ERR_LIMIT;
  if (strcmp(path, l->own) == 0) return 0;
  buf_init(&text, FILE_MOST);
  int rc = (w.file = strdup(path)) ? 0 : ERR_NOMEM;
  bool read =
      rc == 0 && S_ISREG(entry->st->st_mode) && fs_read(l->io, path, FILE_MOST, &text, NULL) == 0;
  if (read) rc = take_lines(&text, &w) == ERR_NOMEM ? ERR_NOMEM : 0;
  w.alive = rc == 0 && lock_is_held(path);
  char **const texts[] = {&w.state, &w.target, &w.run, &w.host};
  for (size_t i = 0; rc == 0 && i < sizeof texts / sizeof *texts; i++) rc = unknown(texts[i]);
  if (rc == 0 && VEC_ROOM(l->out->at, l->out->count, l->out->room)) {
    l->out->at[l->out->count++] = w;
  } else {
    seen_free(&w);
    rc = err_set(e, ERR_NOMEM, "read %s: out of memory", path);
  }
  buf_free(&text);
  return rc;
}

/* Visits the files; a directory that is not there has none. Those below a directory are no
 * watchers' of ours. */
static int each_file(const io *io, const char *home, char dir[FS_PATH_MAX], fs_visit *visit,
                     void *ctx, err *e) {
  struct stat st;
  int rc = fs_join(dir, home, "watchers", e);
  if (rc < 0) return rc;
  rc = io->lstat(io, AT_FDCWD, dir, &st);
  if (rc == -ENOENT) return 0;
  return rc < 0 ? err_sys(e, rc, "look at %s", dir) : fs_list(io, dir, visit, ctx, e);
}

int watchers_look(const io *io, const char *home, const watcher *own, watchers *out, err *e) {
  char dir[FS_PATH_MAX];
  struct look l = {io, dir, own ? own->path : "", out};
  err why = {0};
  *out = (watchers){0};
  int rc = each_file(io, home, dir, on_file, &l, &why);
  if (rc == ERR_NOENT) rc = 0; /* the last one left just now */
  if (rc < 0) watchers_free(out);
  if (rc < 0 && e) *e = why;
  return rc;
}

bool watcher_is_done(const watcher_seen *w, const char *unit, uint64_t stamp) {
  for (size_t i = w->count; i-- > 0;)
    if (w->units[i].stamp == stamp && strcmp(w->units[i].path, unit) == 0) return true;
  return false;
}

bool watcher_has_log(const watcher_seen *w, const char *group, const char *log) {
  for (size_t i = 0; *log && i < w->group_count; i++)
    if (strcmp(w->groups[i].path, group) == 0 && strcmp(w->groups[i].log, log) == 0) return true;
  return false;
}

struct summing {
  const char *dir;
  uint64_t sum;
};

static int sum_file(void *ctx, const fs_entry *entry, err *e) {
  struct summing *s = ctx;
  char path[FS_PATH_MAX];
  (void)e;
  uint64_t x = (uint64_t)entry->st->st_ino * 2;
  x += fs_join(path, s->dir, entry->name, NULL) == 0 && lock_is_held(path);
  x = (x ^ (uint64_t)entry->st->st_size) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= (uint64_t)entry->st->st_mtim.tv_sec * 1000000000 + (uint64_t)entry->st->st_mtim.tv_nsec;
  s->sum += x * UINT64_C(0xd6e8feb86659fd93) | 1;
  return 0;
}

uint64_t watchers_sum(const io *io, const char *home) {
  char dir[FS_PATH_MAX];
  struct summing s = {.dir = dir};
  return each_file(io, home, dir, sum_file, &s, NULL) < 0 ? 0 : s.sum;
}
