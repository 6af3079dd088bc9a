#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "journal_impl.h"

enum { JOURNAL_FORMAT = 0 };

static const char *const state_names[] = {"unknown",   "open",  "complete",
                                          "committed", "aside", NULL};

/* ---- writing ---- */

/* Adds a line, and takes its reference. NULL: no memory for it. */
static int add_line(json_t *line, buf *out, err *e) {
  int rc = line ? js_print(line, out, e) : err_set(e, ERR_NOMEM, "journal: out of memory");
  json_decref(line);
  buf_add(out, "\n", 1);
  return rc == 0 && buf_failed(out) ? err_set(e, buf_failed(out), "journal: too large") : rc;
}

int journal_unit_line(const journal_unit *u, const char *state, buf *out, err *e) {
  char hex[HASH_HEX_MAX];
  digest_hex(&u->fingerprint, hex);
  json_t *line =
      json_pack("{s:s, s:o, s:s, s:s, s:I}", "type", "unit", "path", js_name_new(u->path), "state",
                state ? state : state_names[u->state], "fingerprint", hex, "commit",
                u->commit.n == RUNLOG_NONE ? (json_int_t)-1 : (json_int_t)u->commit.n);
  if (line && *u->commit.log && *u->commit.entry) {
    json_object_set_new(line, "log", json_string(u->commit.log));
    json_object_set_new(line, "entry", json_string(u->commit.entry));
  }
  if (line && u->watched) json_object_set_new(line, "watched", json_true());
  if (line && u->flushed) json_object_set_new(line, "flushed", json_true());
  if (line && u->parts) json_object_set_new(line, "parts", json_integer((json_int_t)u->parts));
  if (line && u->result)
    json_object_set_new(line, u->named ? "named" : "result", json_string(u->result));
  return add_line(line, out, e);
}

int journal_log_line(const journal_log *l, buf *out, err *e) {
  json_int_t newest = journal_log_committed(l) ? (json_int_t)l->newest.n : -1;
  return add_line(json_pack("{s:s, s:o, s:o, s:s, s:I, s:s}", "type", "log", "target",
                            js_name_new(l->target), "group", js_name_new(l->group), "log",
                            l->newest.log, "newest", newest, "entry", l->newest.entry),
                  out, e);
}

int journal_child_line(const journal_child *c, buf *out, err *e) {
  return add_line(json_pack("{s:s, s:I, s:I, s:I}", "type", "child", "pid", (json_int_t)c->pid,
                            "sid", (json_int_t)c->sid, "start", (json_int_t)c->start),
                  out, e);
}

static int head_line(const journal *j, buf *out, err *e) {
  return add_line(json_pack("{s:s, s:i, s:o}", "type", "journal", "format", JOURNAL_FORMAT, "boot",
                            js_name_new(j->boot)),
                  out, e);
}

int journal_print(const journal *j, buf *out, err *e) {
  int rc = head_line(j, out, e);
  if (rc == 0 && j->child.pid && j->child.same_boot) rc = journal_child_line(&j->child, out, e);
  for (size_t i = 0; rc == 0 && i < j->log_count; i++) rc = journal_log_line(&j->logs[i], out, e);
  for (size_t i = 0; rc == 0 && i < j->count; i++)
    rc = journal_unit_line(&j->units[i], NULL, out, e);
  return rc;
}

/* ---- reading ---- */

static journal_state state_of(const char *name) {
  size_t known = names_index(state_names, name);
  bool proven = state_names[known] && known > JOURNAL_OPEN;
  return proven ? (journal_state)known : JOURNAL_OPEN; /* not known here: nothing is proven */
}

/* Reads the commit of a line. A line from before 1.1 has the number alone: no target is known by
 * it. */
static runlog_ref commit_of(const json_t *line, int64_t n) {
  runlog_ref commit = JOURNAL_NO_COMMIT;
  const char *log = json_string_value(json_object_get(line, "log"));
  const char *entry = json_string_value(json_object_get(line, "entry"));
  if (n < 0) return commit;
  commit.n = (uint64_t)n;
  snprintf(commit.log, sizeof commit.log, "%s", log ? log : "");
  snprintf(commit.entry, sizeof commit.entry, "%s", entry ? entry : "");
  return commit;
}

/* ERR_FORMAT if it cannot be told which unit it is about. */
static int fold_unit(journal *j, const json_t *line) {
  const char *state, *hex;
  char *path = NULL;
  int64_t commit;
  digest fingerprint = {0};
  int rc = js_get_name(line, "path", "journal", &path, NULL);
  if (rc < 0) return rc;
  bool clear = js_get_str(line, "state", "journal", &state, NULL) == 0 &&
               js_get_str(line, "fingerprint", "journal", &hex, NULL) == 0 &&
               js_get_int(line, "commit", "journal", &commit, NULL) == 0 &&
               (!*hex || digest_parse(HASH_XXH3_128, hex, &fingerprint, NULL) == 0);
  runlog_ref known = clear ? commit_of(line, commit) : JOURNAL_NO_COMMIT;
  const char *named = json_string_value(json_object_get(line, "named"));
  const char *result = named ? named : json_string_value(json_object_get(line, "result"));
  if (!clear)
    rc = journal_put_unit(j, path, JOURNAL_OPEN, NULL, NULL);
  else if (strcmp(state, "gone") == 0)
    journal_drop_unit(j, path);
  else
    rc = journal_put_unit(j, path, state_of(state), &fingerprint, &known);
  if (rc == 0 && clear && strcmp(state, "gone") != 0)
    rc = journal_put_result(j, path, result, named);
  if (rc == 0 && clear)
    journal_put_watched(j, path, json_is_true(json_object_get(line, "watched")));
  if (rc == 0 && clear)
    journal_put_flushed(j, path, json_is_true(json_object_get(line, "flushed")));
  if (rc == 0 && clear)
    journal_put_parts(j, path, (int64_t)json_integer_value(json_object_get(line, "parts")));
  free(path);
  return rc;
}

static int fold_log(journal *j, const json_t *line) {
  char *target = NULL, *group = NULL;
  int64_t n = -1;
  int rc = js_get_name(line, "target", "journal", &target, NULL);
  if (rc == 0) rc = js_get_name(line, "group", "journal", &group, NULL);
  if (rc == 0) rc = js_get_int(line, "newest", "journal", &n, NULL);
  runlog_ref newest = commit_of(line, n);
  const char *log = json_string_value(json_object_get(line, "log"));
  if (n < 0) snprintf(newest.log, sizeof newest.log, "%s", log ? log : "");
  if (rc == 0 && (n >= 0 || *newest.log)) rc = journal_put_log(j, target, group, &newest);
  free(target);
  free(group);
  return rc;
}

static int fold_child(journal *j, const json_t *line) {
  int64_t pid, sid, start;
  int rc = js_get_int(line, "pid", "journal", &pid, NULL);
  if (rc == 0) rc = js_get_int(line, "sid", "journal", &sid, NULL);
  if (rc == 0) rc = js_get_int(line, "start", "journal", &start, NULL);
  if (rc != 0) return rc;
  /* A process is ended by this number one day: it must not be cut to another one. */
  if (pid < 0 || pid > INT32_MAX || sid < 0 || sid > INT32_MAX) return ERR_FORMAT;
  j->child = (journal_child){
      .pid = (pid_t)pid, .sid = (pid_t)sid, .start = (uint64_t)start, .same_boot = true};
  return 0;
}

static int fold_head(journal *j, const json_t *line, err *e) {
  char *boot = NULL;
  int64_t format;
  int rc = js_get_int(line, "format", "journal", &format, NULL);
  if (rc == 0 && format > JOURNAL_FORMAT)
    return err_set(e, ERR_VERSION,
                   "%s was written by a newer ckpt-lua: use that one, or name another `state`",
                   j->path);
  if (rc == 0) rc = js_get_name(line, "boot", "journal", &boot, NULL);
  if (rc != 0) return rc;
  if (strcmp(boot, j->boot) != 0) j->rebooted = true;
  j->headed = true;
  free(boot);
  return 0;
}

/* Takes in a line. A line of an unknown type is passed over. A line that cannot be read (the disk
 * lost it; a torn one has no line end) may have been about any unit: no record before it counts as
 * proven. Only a newer format stops. */
static int fold_line(journal *j, const char *text, size_t len, err *e) {
  json_t *line = NULL;
  const char *type;
  int rc = js_parse(text, len, "journal", &line, NULL);
  if (rc == 0) rc = js_get_str(line, "type", "journal", &type, NULL);
  if (rc == 0 && strcmp(type, "journal") == 0)
    rc = fold_head(j, line, e);
  else if (rc == 0 && strcmp(type, "unit") == 0)
    rc = fold_unit(j, line);
  else if (rc == 0 && strcmp(type, "log") == 0)
    rc = fold_log(j, line);
  else if (rc == 0 && strcmp(type, "child") == 0)
    rc = fold_child(j, line);
  json_decref(line);
  if (rc == ERR_VERSION) return rc;
  if (rc == ERR_NOMEM) return err_set(e, rc, "read %s: out of memory", j->path);
  if (rc < 0) journal_doubt(j, true);
  return 0;
}

int journal_fold(journal *j, const buf *text, err *e) {
  const char *at = text->data ? text->data : "", *end = at + text->len;
  int rc = 0;
  while (rc == 0 && at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) break; /* a torn last line */
    rc = fold_line(j, at, (size_t)(stop - at), e);
    at = stop + 1;
  }
  return rc;
}
