#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "base/vec.h"
#include "prims/fs.h"

/* GROWTH: when so many bytes were appended, over the size that it had, it is written anew. */
enum {
  JOURNAL_MAX = 256 << 20,
  JOURNAL_FORMAT = 0,
  GROWTH = 1 << 20,
  LINE_MAX_BYTES = 8 * FS_PATH_MAX
};

struct journal {
  const io *io;
  char *path;
  int fd; /* -1: its end is not known, it has to be written anew */
  size_t size, size_max;
  bool rebooted, headed; /* headed: a first line was read */
  bool served;
  journal_unit *units; /* sorted by path */
  size_t count, room;
  journal_log *logs;
  size_t log_count, log_room;
  journal_child child;
  char boot[RUNLOG_ID_MAX];
};

static const runlog_ref no_commit = {.n = RUNLOG_NONE};
static const char *const state_names[] = {"unknown",   "open",  "complete",
                                          "committed", "aside", NULL};

/* ---- the table ---- */

static size_t place_of(const journal *j, const char *path, bool *there) {
  return vec_place(path, j->units, j->count, sizeof *j->units, vec_by_text, there);
}

/* True if what stands there by the new record is what was flushed. A restore flushes what it brings. */
static bool stays_flushed(const journal_unit *was, journal_state state, const digest *fingerprint) {
  if (!fingerprint || state <= JOURNAL_OPEN) return state == JOURNAL_COMMITTED;
  if (!was->flushed) return false;
  bool restored = was->state == JOURNAL_COMMITTED && was->fingerprint.len == 0;
  return restored ? state == JOURNAL_COMMITTED : digest_equal(&was->fingerprint, fingerprint);
}

static int put_unit(journal *j, const char *path, journal_state state, const digest *fingerprint,
                    const runlog_ref *commit) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (!there) {
    char *copy = VEC_ROOM(j->units, j->count, j->room) ? strdup(path) : NULL;
    if (!copy) return ERR_NOMEM;
    memmove(&j->units[at + 1], &j->units[at], (j->count - at) * sizeof *j->units);
    j->units[at] = (journal_unit){.path = copy};
    j->count++;
  }
  j->units[at].flushed = stays_flushed(&j->units[at], state, fingerprint);
  j->units[at].state = state;
  j->units[at].fingerprint = fingerprint ? *fingerprint : (digest){0};
  j->units[at].commit = commit ? *commit : no_commit;
  return 0;
}

static int put_result(journal *j, const char *path, const char *result, bool named) {
  bool there;
  size_t at = place_of(j, path, &there);
  int rc = there ? 0 : put_unit(j, path, JOURNAL_OPEN, NULL, NULL);
  char *copy = rc == 0 && result ? strdup(result) : NULL;
  if (rc < 0 || (result && !copy)) return ERR_NOMEM;
  free(j->units[at].result);
  j->units[at].result = copy;
  j->units[at].named = copy && named;
  return 0;
}

static void put_watched(journal *j, const char *path, bool watched) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (there) j->units[at].watched = watched && j->units[at].state == JOURNAL_OPEN;
}

/* What a line says counts, and not what stood before it: one of before 1.1 says nothing. */
static void put_flushed(journal *j, const char *path, bool flushed) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (there) j->units[at].flushed = flushed && j->units[at].state > JOURNAL_OPEN;
}

/* Of an older version, or of one that saves alone, a line says nothing. */
static void put_parts(journal *j, const char *path, int64_t parts) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (there) j->units[at].parts = parts > 1 && parts <= UINT32_MAX ? (uint32_t)parts : 0;
}

static void drop_unit(journal *j, const char *path) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (!there) return;
  free(j->units[at].path);
  free(j->units[at].result);
  memmove(&j->units[at], &j->units[at + 1], (j->count - at - 1) * sizeof *j->units);
  j->count--;
}

journal_unit journal_find(const journal *j, const char *path) {
  bool there = false;
  if (!j) return (journal_unit){.commit = no_commit};
  size_t at = place_of(j, path, &there);
  return there ? j->units[at] : (journal_unit){.commit = no_commit};
}

/* ---- logs ---- */

static journal_log *find_log(const journal *j, const char *target, const char *group) {
  for (size_t i = 0; i < j->log_count; i++)
    if (strcmp(j->logs[i].target, target) == 0 && strcmp(j->logs[i].group, group) == 0)
      return &j->logs[i];
  return NULL;
}

static bool has_commit(const journal_log *l) {
  return l->newest.n != RUNLOG_NONE;
}

const journal_log *journal_find_log(const journal *j, const char *target, const char *group) {
  const journal_log *l = find_log(j, target, group);
  return l && has_commit(l) ? l : NULL;
}

const journal_log *journal_log_at(const journal *j, const char *target, size_t i) {
  for (size_t k = 0; k < j->log_count; k++)
    if (has_commit(&j->logs[k]) && strcmp(j->logs[k].target, target) == 0 && i-- == 0)
      return &j->logs[k];
  return NULL;
}

const journal_log *journal_known_log(const journal *j, const char *log) {
  for (size_t i = j->log_count; i-- > 0;)
    if (!log || strcmp(j->logs[i].newest.log, log) == 0) return &j->logs[i];
  return NULL;
}

bool journal_has_committed(const journal *j, const char *target) {
  for (size_t i = 0; i < j->log_count; i++)
    if (has_commit(&j->logs[i])) return journal_log_at(j, target, 0) != NULL;
  for (size_t i = 0; i < j->count; i++)
    if (j->units[i].commit.n != RUNLOG_NONE) return true;
  return false;
}

static int put_log(journal *j, const char *target, const char *group, const runlog_ref *newest) {
  journal_log *l = find_log(j, target, group);
  if (l) {
    l->newest = *newest;
    return 0;
  }
  journal_log made = {strdup(target), strdup(group), *newest};
  if (!made.target || !made.group || !VEC_ROOM(j->logs, j->log_count, j->log_room)) {
    free(made.target);
    free(made.group);
    return ERR_NOMEM;
  }
  j->logs[j->log_count++] = made;
  return 0;
}

/* ---- lines ---- */

/* Adds a line, and takes its reference. NULL: no memory for it. */
static int add_line(json_t *line, buf *out, err *e) {
  int rc = line ? js_print(line, out, e) : err_set(e, ERR_NOMEM, "journal: out of memory");
  json_decref(line);
  buf_add(out, "\n", 1);
  return rc == 0 && buf_failed(out) ? err_set(e, buf_failed(out), "journal: too large") : rc;
}

static int unit_line(const journal_unit *u, const char *state, buf *out, err *e) {
  char hex[HASH_HEX_MAX];
  digest_hex(&u->fingerprint, hex);
  json_t *line = json_pack("{s:s, s:o, s:s, s:s, s:I}", "type", "unit", "path",
                           js_name_new(u->path), "state", state, "fingerprint", hex, "commit",
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

static int log_line(const journal_log *l, buf *out, err *e) {
  json_int_t newest = has_commit(l) ? (json_int_t)l->newest.n : -1;
  return add_line(json_pack("{s:s, s:o, s:o, s:s, s:I, s:s}", "type", "log", "target",
                            js_name_new(l->target), "group", js_name_new(l->group), "log",
                            l->newest.log, "newest", newest, "entry", l->newest.entry),
                  out, e);
}

static int child_line(const journal_child *c, buf *out, err *e) {
  return add_line(json_pack("{s:s, s:I, s:I, s:I}", "type", "child", "pid", (json_int_t)c->pid,
                            "sid", (json_int_t)c->sid, "start", (json_int_t)c->start),
                  out, e);
}

static int head_line(const journal *j, buf *out, err *e) {
  return add_line(json_pack("{s:s, s:i, s:o}", "type", "journal", "format", JOURNAL_FORMAT, "boot",
                            js_name_new(j->boot)),
                  out, e);
}

/* ---- reading ---- */

/* Makes every proven record open, but for those of what was deleted: of these the bytes do not
 * matter. The doubt is kept with each record until somebody has looked, or
 * the next start would trust the units that this one did not come to. */
static void doubt(journal *j, bool flushed_too) {
  for (size_t i = 0; i < j->count; i++) {
    journal_unit *u = &j->units[i];
    u->watched = false;
    if (u->state <= JOURNAL_OPEN || u->state == JOURNAL_ASIDE || (u->flushed && !flushed_too))
      continue;
    u->state = JOURNAL_OPEN;
    u->flushed = false;
  }
}

static journal_state state_of(const char *name) {
  size_t known = names_index(state_names, name);
  bool proven = state_names[known] && known > JOURNAL_OPEN;
  return proven ? (journal_state)known : JOURNAL_OPEN; /* not known here: nothing is proven */
}

/* Reads the commit of a line. A line from before 1.1 has the number alone: no target is known by
 * it. */
static runlog_ref commit_of(const json_t *line, int64_t n) {
  runlog_ref commit = no_commit;
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
  runlog_ref known = clear ? commit_of(line, commit) : no_commit;
  const char *named = json_string_value(json_object_get(line, "named"));
  const char *result = named ? named : json_string_value(json_object_get(line, "result"));
  if (!clear)
    rc = put_unit(j, path, JOURNAL_OPEN, NULL, NULL);
  else if (strcmp(state, "gone") == 0)
    drop_unit(j, path);
  else
    rc = put_unit(j, path, state_of(state), &fingerprint, &known);
  if (rc == 0 && clear && strcmp(state, "gone") != 0) rc = put_result(j, path, result, named);
  if (rc == 0 && clear) put_watched(j, path, json_is_true(json_object_get(line, "watched")));
  if (rc == 0 && clear) put_flushed(j, path, json_is_true(json_object_get(line, "flushed")));
  if (rc == 0 && clear)
    put_parts(j, path, (int64_t)json_integer_value(json_object_get(line, "parts")));
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
  if (rc == 0 && (n >= 0 || *newest.log)) rc = put_log(j, target, group, &newest);
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
  if (rc < 0) doubt(j, true);
  return 0;
}

static int fold_all(journal *j, const buf *text, err *e) {
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

/* Doubts the records after a reboot: pages that were never flushed are lost with the machine;
 * frameworks do not flush, and a save reads from memory. A disk of this machine may have lost even
 * what was flushed, if the power went; a server has not noticed, and another boot id may only mean that
 * another machine goes on. */
static void after_reboot(journal *j) {
  j->child.same_boot = false;
  doubt(j, !j->served);
}

static int print_all(const journal *j, buf *out, err *e) {
  int rc = head_line(j, out, e);
  if (rc == 0 && j->child.pid && j->child.same_boot) rc = child_line(&j->child, out, e);
  for (size_t i = 0; rc == 0 && i < j->log_count; i++) rc = log_line(&j->logs[i], out, e);
  for (size_t i = 0; rc == 0 && i < j->count; i++)
    rc = unit_line(&j->units[i], state_names[j->units[i].state], out, e);
  return rc;
}

/* Writes the journal anew, in one step. On failure the old one stands, and the next append tries
 * again. */
static int renew(journal *j, err *e) {
  buf text;
  buf_init(&text, JOURNAL_MAX);
  if (j->fd >= 0) j->io->close(j->io, j->fd);
  j->fd = -1;
  int rc = print_all(j, &text, e);
  if (rc == 0) rc = fs_replace(j->io, j->path, text.data, text.len, 0600, e);
  if (rc == 0) {
    j->fd = j->io->open(j->io, AT_FDCWD, j->path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
    if (j->fd < 0) rc = err_sys(e, j->fd, "open %s", j->path);
  }
  j->size = text.len;
  j->size_max = 2 * text.len + GROWTH;
  buf_free(&text);
  return rc;
}

int journal_open(const io *io, const char *path, const char *boot, bool served, journal **out,
                 err *e) {
  *out = NULL;
  buf text;
  buf_init(&text, JOURNAL_MAX);
  journal *j = calloc(1, sizeof *j);
  if (!j || !(j->path = strdup(path))) {
    free(j);
    return err_set(e, ERR_NOMEM, "open %s: out of memory", path);
  }
  j->io = io;
  j->fd = -1;
  j->served = served;
  strncpy(j->boot, boot, sizeof j->boot - 1);
  err why = {0};
  int rc = fs_read(io, path, JOURNAL_MAX, &text, &why);
  /* Only this errno means that there is none: a file that an NFS server mislaid (ESTALE) must not
   * be replaced by an empty one. */
  if (why.sys == ENOENT)
    rc = 0;
  else if (rc < 0 && e)
    *e = why;
  if (rc == 0) rc = fold_all(j, &text, e);
  /* Without a first line nobody knows the boot that the others are of. */
  if ((j->count || j->child.pid) && !j->headed) j->rebooted = true;
  if (rc == 0 && j->rebooted) after_reboot(j);
  if (rc == 0) rc = renew(j, e);
  buf_free(&text);
  if (rc < 0)
    journal_close(j);
  else
    *out = j;
  return rc;
}

void journal_close(journal *j) {
  if (!j) return;
  if (j->fd >= 0) j->io->close(j->io, j->fd);
  while (j->count) drop_unit(j, j->units[j->count - 1].path);
  for (size_t i = 0; i < j->log_count; i++) {
    free(j->logs[i].target);
    free(j->logs[i].group);
  }
  free(j->logs);
  free(j->units);
  free(j->path);
  free(j);
}

size_t journal_count(const journal *j) {
  return j ? j->count : 0;
}

journal_unit journal_at(const journal *j, size_t i) {
  return j->units[i];
}
journal_child journal_last_child(const journal *j) {
  return j->child;
}

int journal_keep_here(journal *j, journal_here *here, void *ctx, err *e) {
  for (size_t i = 0; j && i < j->count; i++) {
    journal_unit *u = &j->units[i];
    if (u->state != JOURNAL_COMMITTED) continue;
    int rc = here(ctx, u, e);
    if (rc < 0) return rc;
    if (rc == 0) u->state = u->fingerprint.len ? JOURNAL_COMPLETE : JOURNAL_OPEN;
  }
  return 0;
}

/* ---- appending ---- */

/* After a failure nobody knows how much of the line is in the file, and a descriptor whose flush
 * failed is not flushed again: the next append writes all anew, this one's state too. So does one
 * that finds that the file has grown, in a run that goes on for weeks. */
static int append(journal *j, const buf *line, bool flush, err *e) {
  if (j->fd < 0 || j->size > j->size_max) {
    int rc = renew(j, e);
    if (rc < 0) return rc;
  }
  int rc = fs_write_all(j->io, j->fd, line->data, line->len, j->path, e);
  int flushed = rc == 0 && flush ? j->io->fdatasync(j->io, j->fd) : 0;
  if (flushed < 0) rc = err_sys(e, flushed, "flush %s", j->path);
  if (rc == 0) {
    j->size += line->len;
    return 0;
  }
  j->io->close(j->io, j->fd);
  j->fd = -1;
  return rc;
}

static int append_unit(journal *j, const char *path, bool flush, err *e) {
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  journal_unit now = journal_find(j, path);
  int rc = unit_line(&now, state_names[now.state], &line, e);
  if (rc == 0) rc = append(j, &line, flush, e);
  buf_free(&line);
  return rc;
}

int journal_note(journal *j, const char *path, journal_state state, const digest *fingerprint,
                 const runlog_ref *commit, uint32_t parts, err *e) {
  int rc = put_unit(j, path, state, fingerprint, commit);
  if (rc < 0) return err_set(e, rc, "journal: out of memory");
  put_parts(j, path, parts);
  put_watched(j, path, state == JOURNAL_OPEN);
  return append_unit(j, path, state != JOURNAL_OPEN, e);
}

int journal_note_result(journal *j, const char *path, const char *result, bool named, err *e) {
  journal_unit known = journal_find(j, path);
  if (!result && !known.result) return 0;
  if (put_result(j, path, result, named) < 0)
    return err_set(e, ERR_NOMEM, "journal: out of memory");
  return append_unit(j, path, false, e);
}

int journal_note_flushed(journal *j, const char *path, const digest *fingerprint, err *e) {
  journal_unit known = journal_find(j, path);
  bool proven = known.state == JOURNAL_COMPLETE || known.state == JOURNAL_COMMITTED;
  if (!proven || known.flushed || !digest_equal(&known.fingerprint, fingerprint)) return 0;
  put_flushed(j, path, true);
  return append_unit(j, path, true, e);
}

int journal_forget(journal *j, const char *path, err *e) {
  bool there;
  place_of(j, path, &there);
  if (!there) return 0;
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  int rc = unit_line(&(journal_unit){.path = (char *)path, .commit = no_commit}, "gone", &line, e);
  drop_unit(j, path);
  if (rc == 0) rc = append(j, &line, false, e);
  buf_free(&line);
  return rc;
}

int journal_note_child(journal *j, pid_t pid, uint64_t start, pid_t sid, err *e) {
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  j->child = (journal_child){.pid = pid, .sid = sid, .start = start, .same_boot = true};
  int rc = child_line(&j->child, &line, e);
  if (rc == 0) rc = append(j, &line, true, e);
  buf_free(&line);
  return rc;
}

int journal_note_child_end(journal *j, err *e) {
  return journal_note_child(j, 0, 0, 0, e);
}

/* A commit is not flushed: an older one that is read after a crash lets no start go on that should not.
 * That a log was used is: without it, the next start of ranks is refused. */
int journal_note_log(journal *j, const char *target, const char *group, const runlog_ref *newest,
                     err *e) {
  const journal_log *known = find_log(j, target, group);
  const bool used = newest->n == RUNLOG_NONE;
  if (known && runlog_ref_same(&known->newest, newest)) return 0;
  if (known && used && strcmp(known->newest.log, newest->log) == 0) return 0;
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  int rc = put_log(j, target, group, newest);
  if (rc < 0) return err_set(e, rc, "journal: out of memory");
  rc = log_line(find_log(j, target, group), &line, e);
  if (rc == 0) rc = append(j, &line, used, e);
  buf_free(&line);
  return rc;
}
