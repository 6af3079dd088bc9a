#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prims/fs.h"

enum { JOURNAL_MAX = 256 << 20, JOURNAL_FORMAT = 0 };

struct journal {
  const io *io;
  char *path;
  int fd;
  bool rebooted;
  journal_unit *units; /* sorted by path */
  size_t count, room;
  journal_child child;
  char boot[RUNLOG_ID_MAX];
};

static const char *const state_names[] = {"unknown", "open", "complete", "committed"};

/* ---- the table ---- */

static size_t place_of(const journal *j, const char *path, bool *there) {
  size_t low = 0, high = j->count;
  while (low < high) {
    size_t mid = (low + high) / 2;
    int order = strcmp(j->units[mid].path, path);
    if (order == 0) {
      *there = true;
      return mid;
    }
    if (order < 0)
      low = mid + 1;
    else
      high = mid;
  }
  *there = false;
  return low;
}

static int put_unit(journal *j, const char *path, journal_state state, const digest *fingerprint,
                    uint64_t commit) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (!there) {
    if (j->count == j->room) {
      size_t room = j->room ? 2 * j->room : 16;
      journal_unit *units = realloc(j->units, room * sizeof *units);
      if (!units) return ERR_NOMEM;
      j->units = units;
      j->room = room;
    }
    char *copy = strdup(path);
    if (!copy) return ERR_NOMEM;
    memmove(&j->units[at + 1], &j->units[at], (j->count - at) * sizeof *j->units);
    j->units[at] = (journal_unit){.path = copy};
    j->count++;
  }
  j->units[at].state = state;
  j->units[at].fingerprint = fingerprint ? *fingerprint : (digest){0};
  j->units[at].commit = commit;
  return 0;
}

static void drop_unit(journal *j, const char *path) {
  bool there;
  size_t at = place_of(j, path, &there);
  if (!there) return;
  free(j->units[at].path);
  memmove(&j->units[at], &j->units[at + 1], (j->count - at - 1) * sizeof *j->units);
  j->count--;
}

journal_unit journal_find(const journal *j, const char *path) {
  bool there;
  size_t at = place_of(j, path, &there);
  return there ? j->units[at] : (journal_unit){.commit = RUNLOG_NONE};
}

/* ---- lines ---- */

static int unit_line(const journal_unit *u, buf *out, err *e) {
  char hex[HASH_HEX_MAX];
  buf name;
  buf_init(&name, 4 * FS_PATH_MAX);
  js_name_escape(u->path, &name);
  digest_hex(&u->fingerprint, hex);
  json_t *line =
      json_pack("{s:s, s:s, s:s, s:s, s:I}", "type", "unit", "path", name.data ? name.data : "",
                "state", state_names[u->state], "fingerprint", u->fingerprint.len ? hex : "",
                "commit", u->commit == RUNLOG_NONE ? (json_int_t)-1 : (json_int_t)u->commit);
  int rc = line ? js_print(line, out, e) : err_set(e, ERR_NOMEM, "journal: out of memory");
  buf_add(out, "\n", 1);
  json_decref(line);
  buf_free(&name);
  return rc;
}

static int child_line(const journal_child *c, buf *out, err *e) {
  json_t *line = json_pack("{s:s, s:I, s:I, s:I}", "type", "child", "pid", (json_int_t)c->pid,
                           "sid", (json_int_t)c->sid, "start", (json_int_t)c->start);
  int rc = line ? js_print(line, out, e) : err_set(e, ERR_NOMEM, "journal: out of memory");
  buf_add(out, "\n", 1);
  json_decref(line);
  return rc;
}

static int head_line(const journal *j, buf *out, err *e) {
  json_t *line =
      json_pack("{s:s, s:i, s:s}", "type", "journal", "format", JOURNAL_FORMAT, "boot", j->boot);
  int rc = line ? js_print(line, out, e) : err_set(e, ERR_NOMEM, "journal: out of memory");
  buf_add(out, "\n", 1);
  json_decref(line);
  return rc;
}

/* ---- reading ---- */

static int fold_unit(journal *j, const json_t *line, err *e) {
  const char *path, *state, *hex;
  int64_t commit;
  digest fingerprint = {0};
  buf name;
  buf_init(&name, FS_PATH_MAX);
  int rc = js_get_str(line, "path", "journal", &path, e);
  if (rc == 0) rc = js_get_str(line, "state", "journal", &state, e);
  if (rc == 0) rc = js_get_str(line, "fingerprint", "journal", &hex, e);
  if (rc == 0) rc = js_get_int(line, "commit", "journal", &commit, e);
  if (rc == 0 && *hex) rc = digest_parse(HASH_XXH3_128, hex, &fingerprint, e);
  if (rc == 0) rc = js_name_unescape(path, &name, e);
  if (rc == 0 && strcmp(state, "gone") == 0) {
    drop_unit(j, name.data);
  } else if (rc == 0) {
    int known = JOURNAL_OPEN;
    while (known <= JOURNAL_COMMITTED && strcmp(state_names[known], state) != 0) known++;
    if (known > JOURNAL_COMMITTED) known = JOURNAL_OPEN; /* not known here: nothing is proven */
    rc = put_unit(j, name.data, (journal_state)known, &fingerprint,
                  commit < 0 ? RUNLOG_NONE : (uint64_t)commit);
  }
  buf_free(&name);
  return rc;
}

static int fold_child(journal *j, const json_t *line, err *e) {
  int64_t pid, sid, start;
  int rc = js_get_int(line, "pid", "journal", &pid, e);
  if (rc == 0) rc = js_get_int(line, "sid", "journal", &sid, e);
  if (rc == 0) rc = js_get_int(line, "start", "journal", &start, e);
  if (rc == 0)
    j->child = (journal_child){
        .pid = (pid_t)pid, .sid = (pid_t)sid, .start = (uint64_t)start, .same_boot = true};
  return rc;
}

static int fold_head(journal *j, const json_t *line, err *e) {
  const char *boot;
  int64_t format;
  int rc = js_get_int(line, "format", "journal", &format, e);
  if (rc == 0 && format > JOURNAL_FORMAT)
    return err_set(e, ERR_VERSION,
                   "%s was written by a newer ckpt-lua: use that one, or name another --state",
                   j->path);
  if (rc == 0) rc = js_get_str(line, "boot", "journal", &boot, e);
  if (rc == 0) j->rebooted = strcmp(boot, j->boot) != 0;
  return rc;
}

/* A line that cannot be read proves nothing and is passed over: the unit that it was about is then
 * unproven, which is the safe side. Only a newer format stops. */
static int fold_line(journal *j, const char *text, size_t len, err *e) {
  json_t *line = NULL;
  const char *type;
  err ignored;
  if (js_parse(text, len, "journal", &line, &ignored) < 0) return 0;
  int rc = js_get_str(line, "type", "journal", &type, &ignored);
  if (rc == 0 && strcmp(type, "journal") == 0)
    rc = fold_head(j, line, e);
  else if (rc == 0 && strcmp(type, "unit") == 0)
    rc = fold_unit(j, line, &ignored);
  else if (rc == 0 && strcmp(type, "child") == 0)
    rc = fold_child(j, line, &ignored);
  json_decref(line);
  return rc == ERR_VERSION || rc == ERR_NOMEM ? rc : 0;
}

static int fold_all(journal *j, const buf *text, err *e) {
  const char *at = text->data, *end = text->data + text->len;
  int rc = 0;
  while (rc == 0 && at && at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) break; /* a torn last line */
    rc = fold_line(j, at, (size_t)(stop - at), e);
    at = stop + 1;
  }
  return rc;
}

/* Pages that were never flushed are lost with the machine. */
static void after_reboot(journal *j) {
  j->child.same_boot = false;
  for (size_t i = 0; i < j->count; i++)
    if (j->units[i].state == JOURNAL_COMPLETE) j->units[i].state = JOURNAL_OPEN;
}

static int rewrite(journal *j, err *e) {
  buf text;
  buf_init(&text, JOURNAL_MAX);
  int rc = head_line(j, &text, e);
  if (rc == 0 && j->child.pid && j->child.same_boot) rc = child_line(&j->child, &text, e);
  for (size_t i = 0; rc == 0 && i < j->count; i++) rc = unit_line(&j->units[i], &text, e);
  if (rc == 0 && buf_failed(&text)) rc = err_set(e, buf_failed(&text), "%s: too large", j->path);
  if (rc == 0) rc = fs_replace(j->io, j->path, text.data, text.len, 0600, e);
  buf_free(&text);
  return rc;
}

int journal_open(const io *io, const char *path, const char *boot, journal **out, err *e) {
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
  strncpy(j->boot, boot, sizeof j->boot - 1);
  int rc = fs_read(io, path, JOURNAL_MAX, &text, e);
  if (rc == ERR_NOENT) rc = 0;
  if (rc == 0) rc = fold_all(j, &text, e);
  if (rc == 0 && j->rebooted) after_reboot(j);
  if (rc == 0) rc = rewrite(j, e);
  if (rc == 0) {
    j->fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
    if (j->fd < 0) rc = err_sys(e, j->fd, "open %s", path);
  }
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
  for (size_t i = 0; i < j->count; i++) free(j->units[i].path);
  free(j->units);
  free(j->path);
  free(j);
}

bool journal_rebooted(const journal *j) {
  return j->rebooted;
}
journal_child journal_last_child(const journal *j) {
  return j->child;
}

/* ---- appending ---- */

static int append(journal *j, const buf *line, bool flush, err *e) {
  int rc = fs_write_all(j->io, j->fd, line->data, line->len, j->path, e);
  if (rc < 0) return rc;
  int flushed = flush ? j->io->fdatasync(j->io, j->fd) : 0;
  return flushed < 0 ? err_sys(e, flushed, "flush %s", j->path) : 0;
}

int journal_note(journal *j, const char *path, journal_state state, const digest *fingerprint,
                 uint64_t commit, err *e) {
  buf line;
  buf_init(&line, 8 * FS_PATH_MAX);
  int rc = put_unit(j, path, state, fingerprint, commit);
  if (rc < 0) return err_set(e, rc, "journal: out of memory");
  journal_unit now = journal_find(j, path);
  rc = unit_line(&now, &line, e);
  if (rc == 0) rc = append(j, &line, state != JOURNAL_OPEN, e);
  buf_free(&line);
  return rc;
}

int journal_forget(journal *j, const char *path, err *e) {
  bool there;
  place_of(j, path, &there);
  if (!there) return 0;
  buf line, name;
  buf_init(&line, 8 * FS_PATH_MAX);
  buf_init(&name, 4 * FS_PATH_MAX);
  js_name_escape(path, &name);
  json_t *gone =
      json_pack("{s:s, s:s, s:s, s:s, s:i}", "type", "unit", "path", name.data ? name.data : "",
                "state", "gone", "fingerprint", "", "commit", -1);
  int rc = gone ? js_print(gone, &line, e) : err_set(e, ERR_NOMEM, "journal: out of memory");
  buf_add(&line, "\n", 1);
  if (rc == 0) rc = append(j, &line, false, e);
  drop_unit(j, path);
  json_decref(gone);
  buf_free(&line);
  buf_free(&name);
  return rc;
}

int journal_note_child(journal *j, pid_t pid, uint64_t start, pid_t sid, err *e) {
  buf line;
  buf_init(&line, 4096);
  j->child = (journal_child){.pid = pid, .sid = sid, .start = start, .same_boot = true};
  int rc = child_line(&j->child, &line, e);
  if (rc == 0) rc = append(j, &line, true, e);
  buf_free(&line);
  return rc;
}

int journal_note_child_end(journal *j, err *e) {
  return journal_note_child(j, 0, 0, 0, e);
}
