#include "change.h"

#include <stdlib.h>
#include <string.h>

#include "lab/events.h"
#include "lab/members.h"
#include "prims/fs.h"

static const char *const words[] = {"CREATE",   "MODIFY", "CLOSE_WRITE", "MOVED_FROM",
                                    "MOVED_TO", "DELETE", "ATTRIB",      "SCAN"};
/* What inotify tells, too, and nothing hangs on. */
static const char *const idle[] = {"ACCESS",  "OPEN", "CLOSE_NOWRITE", "DELETE_SELF", "MOVE_SELF",
                                   "IGNORED", NULL};

void lab_change_free(lab_change *change) {
  free(change->path);
  free(change->link);
  *change = (lab_change){0};
}

bool lab_change_is(const char *line, size_t len) {
  json_t *value = NULL;
  int rc = js_parse(line, len, "", &value, NULL);
  const bool is = rc == 0 && json_object_get(value, "ev") != NULL;
  json_decref(value);
  return is;
}

static bool is_word(const char *text, size_t len, const char *word) {
  return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* 1: it counts. */
static int take_what(const members *in, const json_t *line, lab_change *out) {
  const char *text = json_string_value(json_object_get(line, "ev"));
  const size_t len = text ? strcspn(text, ",") : 0;
  if (text && text[len] && strcmp(text + len, ",ISDIR") != 0) text = NULL;
  for (int i = 0; text && i < LAB_FILE_CHANGES; i++)
    if (is_word(text, len, words[i])) {
      out->what = (lab_change_what)i;
      out->is_dir = text[len] != '\0';
      return 1;
    }
  for (const char *const *w = idle; text && *w; w++)
    if (is_word(text, len, *w)) return 0;
  return members_wrong(in, "ev", "an event of inotify, as \"CLOSE_WRITE\" or \"CREATE,ISDIR\"");
}

static int take_times(const members *in, const json_t *line, int64_t after_ns, lab_change *out) {
  double t = (double)after_ns / 1e9, end = -1;
  int rc = members_seconds(in, line, "t", &t);
  if (rc == 0) rc = members_seconds(in, line, "t_end", &end);
  if (rc < 0) return rc;
  out->at_ns = json_is_number(json_object_get(line, "t")) ? (int64_t)(t * 1e9 + 0.5) : after_ns;
  out->end_ns = end > t ? (int64_t)(end * 1e9 + 0.5) : out->at_ns;
  if (out->at_ns >= after_ns) return 0;
  return err_set(in->e, ERR_INVAL, "%s: \"t\" is %.9g, before the change before it (%.9g)",
                 in->where, t, (double)after_ns / 1e9);
}

static int take_text(const members *in, const json_t *line, const char *key, char **out) {
  json_t *value;
  if (!members_given(line, key, &value)) return 0;
  const char *text = json_string_value(value);
  if (!text || strlen(text) >= FS_PATH_MAX)
    return members_wrong(in, key, "a path of less than 4096 bytes");
  *out = strdup(text);
  return *out ? 0 : err_set(in->e, ERR_NOMEM, "%s: out of memory", in->where);
}

static int take_path(const members *in, const json_t *line, lab_change *out) {
  int rc = take_text(in, line, "path", &out->path);
  if (rc < 0 || (out->path && fs_beneath_check(out->path, NULL) == 0)) return rc;
  return members_wrong(in, "path", "a path below the directory, without \"..\"");
}

static int take_line(const members *in, const json_t *line, int64_t after_ns, lab_change *out) {
  static const char *const known[] = {"t",    "t_end",  "ev", "path", "size",
                                      "link", "cookie", "n",  NULL};
  int64_t cookie = 0;
  if (!json_is_object(line))
    return err_set(in->e, ERR_INVAL, "%s: a change is an object, {\"ev\": ...}", in->where);
  int rc = members_check(in, line, "a change", known);
  const int counts = rc == 0 ? take_what(in, line, out) : rc;
  if (counts <= 0) return counts;
  rc = take_times(in, line, after_ns, out);
  if (rc == 0) rc = take_path(in, line, out);
  if (rc == 0) rc = take_text(in, line, "link", &out->link);
  if (rc == 0) rc = members_whole(in, line, "size", INT64_C(1) << 50, &out->size);
  if (rc == 0) rc = members_whole(in, line, "cookie", UINT32_MAX, &cookie);
  out->cookie = (uint32_t)cookie;
  return rc < 0 ? rc : 1;
}

int lab_change_read(const char *line, size_t len, const char *where, int64_t after_ns,
                    lab_change *out, err *e) {
  json_t *value = NULL;
  const members in = {where, e};
  err why = {0};
  *out = (lab_change){.size = -1};
  int rc = js_parse(line, len, where, &value, &why);
  if (rc < 0) return err_set(e, rc == ERR_FORMAT ? ERR_INVAL : rc, "%s", why.text);
  rc = take_line(&in, value, after_ns, out);
  json_decref(value);
  if (rc <= 0) lab_change_free(out);
  return rc;
}
