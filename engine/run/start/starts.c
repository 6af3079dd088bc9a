#include "starts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prims/fs.h"

enum { FORMAT = 1, TEXT_MAX = 64 << 10 };

static int path_of(const char *state, char path[FS_PATH_MAX], err *e) {
  return fs_join(path, state, "starts.json", e);
}

/* Reads both nonces, or neither. */
static int parse_nonces(const char *path, const json_t *value, runlog_ref *out, err *e) {
  const char *log = "", *entry = ""; /* clang-tidy does not see that they are set */
  if (!json_object_get(value, "log") && !json_object_get(value, "entry")) return 0;
  int rc = js_get_str(value, "log", path, &log, e);
  if (rc == 0) rc = js_get_str(value, "entry", path, &entry, e);
  if (rc < 0) return rc;
  if (strlen(log) >= sizeof out->log || strlen(entry) >= sizeof out->entry)
    return err_set(e, ERR_FORMAT, "%s: the log's names are too long", path);
  snprintf(out->log, sizeof out->log, "%s", log);
  snprintf(out->entry, sizeof out->entry, "%s", entry);
  return 0;
}

/* Earlier versions wrote neither. */
static int parse_texts(const json_t *value, starts *out, err *e) {
  const char *suspect = json_string_value(json_object_get(value, "suspect"));
  const char *lines = json_string_value(json_object_get(value, "lines"));
  snprintf(out->suspect, sizeof out->suspect, "%s", suspect ? suspect : "");
  if (!lines || !*lines) return 0;
  out->lines = strndup(lines, STARTS_LINES_MAX);
  return out->lines ? 0 : err_set(e, ERR_NOMEM, "read the starts: out of memory");
}

static int parse(const char *path, const buf *text, starts *out, err *e) {
  json_t *value = NULL;
  char *group = NULL;
  int64_t commit = 0, newest = 0, failed = 0;
  int rc = js_read(text, path, FORMAT, &value, e);
  if (rc == 0) rc = js_get_name(value, "group", path, &group, e);
  if (rc == 0) rc = js_get_int(value, "commit", path, &commit, e);
  if (rc == 0) rc = js_get_int(value, "newest", path, &newest, e);
  if (rc == 0) rc = js_get_int(value, "failed", path, &failed, e);
  if (rc == 0 && (commit < 0 || newest < commit || failed < 0 || failed > INT32_MAX ||
                  strlen(group) >= sizeof out->group))
    rc = err_set(e, ERR_FORMAT, "%s: the numbers cannot be", path);
  runlog_ref ref = {.n = (uint64_t)commit};
  if (rc == 0) rc = parse_nonces(path, value, &ref, e);
  if (rc == 0) {
    snprintf(out->group, sizeof out->group, "%s", group);
    out->commit = ref;
    out->newest = (uint64_t)newest;
    out->failed = (uint32_t)failed;
    rc = parse_texts(value, out, e);
  }
  free(group);
  json_decref(value);
  return rc;
}

int starts_read(const io *io, const char *state, starts *out, err *e) {
  char path[FS_PATH_MAX];
  buf text;
  err why = {0};
  *out = (starts){0};
  int rc = path_of(state, path, e);
  if (rc < 0) return rc;
  buf_init(&text, TEXT_MAX);
  rc = fs_read(io, path, TEXT_MAX, &text, &why);
  if (rc == 0) rc = parse(path, &text, out, &why);
  buf_free(&text);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0 && e) *e = why;
  return rc;
}

void starts_free(starts *s) {
  free(s->lines);
  s->lines = NULL;
}

static int forget(const io *io, const char *path, err *e) {
  int rc = io->unlink(io, AT_FDCWD, path, 0);
  return rc == 0 || rc == -ENOENT ? 0 : err_sys(e, rc, "remove %s", path);
}

int starts_write(const io *io, const char *state, const starts *s, err *e) {
  char path[FS_PATH_MAX];
  buf text;
  int rc = path_of(state, path, e);
  if (rc < 0 || (s->failed == 0 && !*s->suspect)) return rc < 0 ? rc : forget(io, path, e);
  buf_init(&text, TEXT_MAX);
  json_t *value = json_pack("{s:i, s:i, s:o, s:I, s:I, s:I}", "format", FORMAT, "reader", FORMAT,
                            "group", js_name_new(s->group), "commit", (json_int_t)s->commit.n,
                            "newest", (json_int_t)s->newest, "failed", (json_int_t)s->failed);
  if (value && *s->commit.log) {
    json_object_set_new(value, "log", json_string(s->commit.log));
    json_object_set_new(value, "entry", json_string(s->commit.entry));
  }
  if (value && *s->suspect) json_object_set_new(value, "suspect", json_string(s->suspect));
  if (value && s->lines) json_object_set_new(value, "lines", json_string(s->lines));
  rc = value ? js_print(value, &text, e) : err_set(e, ERR_NOMEM, "write %s: out of memory", path);
  if (rc == 0) rc = fs_replace(io, path, text.data, text.len, 0600, e);
  json_decref(value);
  buf_free(&text);
  return rc;
}

bool starts_same(const starts *s, const starts *now) {
  return (s->failed > 0 || *s->suspect) && runlog_ref_same(&s->commit, &now->commit) &&
         s->newest == now->newest && strcmp(s->group, now->group) == 0;
}

void starts_count(starts *s, const starts *now) {
  uint32_t failed = starts_same(s, now) ? s->failed : 0;
  starts_free(s);
  *s = *now;
  s->failed = failed + 1;
}

void starts_last_line(const char *lines, char *out, size_t room) {
  const char *last = lines ? strrchr(lines, '\n') : NULL;
  snprintf(out, room, "%s", last ? last + 1 : lines ? lines : "");
}
