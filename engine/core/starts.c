#include "starts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prims/fs.h"

enum { FORMAT = 1, TEXT_MAX = 16 << 10 };

static int path_of(const char *state, char path[FS_PATH_MAX], err *e) {
  return fs_join(path, state, "starts.json", e);
}

static int parse(const char *path, const buf *text, starts *out, err *e) {
  json_t *value = NULL;
  char *group = NULL;
  int64_t commit = 0, newest = 0, failed = 0;
  int rc = js_parse(text->data ? text->data : "", text->len, path, &value, e);
  if (rc == 0) rc = js_check_reader(value, path, FORMAT, e);
  if (rc == 0) rc = js_get_name(value, "group", path, &group, e);
  if (rc == 0) rc = js_get_int(value, "commit", path, &commit, e);
  if (rc == 0) rc = js_get_int(value, "newest", path, &newest, e);
  if (rc == 0) rc = js_get_int(value, "failed", path, &failed, e);
  if (rc == 0 && (commit < 0 || newest < commit || failed < 0 || failed > INT32_MAX ||
                  strlen(group) >= sizeof out->group))
    rc = err_set(e, ERR_FORMAT, "%s: the numbers cannot be", path);
  if (rc == 0) {
    snprintf(out->group, sizeof out->group, "%s", group);
    out->commit = (uint64_t)commit;
    out->newest = (uint64_t)newest;
    out->failed = (uint32_t)failed;
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

static int forget(const io *io, const char *path, err *e) {
  int rc = io->unlink(io, AT_FDCWD, path, 0);
  return rc == 0 || rc == -ENOENT ? 0 : err_sys(e, rc, "remove %s", path);
}

int starts_write(const io *io, const char *state, const starts *s, err *e) {
  char path[FS_PATH_MAX];
  buf text;
  int rc = path_of(state, path, e);
  if (rc < 0 || s->failed == 0) return rc < 0 ? rc : forget(io, path, e);
  buf_init(&text, TEXT_MAX);
  json_t *value = json_pack("{s:i, s:i, s:o, s:I, s:I, s:I}", "format", FORMAT, "reader", FORMAT,
                            "group", js_name_new(s->group), "commit", (json_int_t)s->commit,
                            "newest", (json_int_t)s->newest, "failed", (json_int_t)s->failed);
  rc = value ? js_print(value, &text, e) : err_set(e, ERR_NOMEM, "write %s: out of memory", path);
  if (rc == 0) rc = fs_replace(io, path, text.data, text.len, 0600, e);
  json_decref(value);
  buf_free(&text);
  return rc;
}

void starts_count(starts *s, const starts *now) {
  bool same = s->failed > 0 && s->commit == now->commit && s->newest == now->newest &&
              strcmp(s->group, now->group) == 0;
  uint32_t failed = same ? s->failed : 0;
  *s = *now;
  s->failed = failed + 1;
}
