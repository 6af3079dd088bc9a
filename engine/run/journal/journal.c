#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "journal_impl.h"
#include "prims/fs.h"

/* GROWTH: when so many bytes were appended, over the size that it had, it is written anew. */
enum { JOURNAL_MAX = 256 << 20, GROWTH = 1 << 20, LINE_MAX_BYTES = 8 * FS_PATH_MAX };

/* Doubts the records after a reboot: pages that were never flushed are lost with the machine;
 * frameworks do not flush, and a save reads from memory. A disk of this machine may have lost even
 * what was flushed, if the power went; a server has not noticed, and another boot id may only mean that
 * another machine goes on. */
static void after_reboot(journal *j) {
  j->child.same_boot = false;
  journal_doubt(j, !j->served);
}

/* Writes the journal anew, in one step. On failure the old one stands, and the next append tries
 * again. */
static int renew(journal *j, err *e) {
  buf text;
  buf_init(&text, JOURNAL_MAX);
  if (j->fd >= 0) j->io->close(j->io, j->fd);
  j->fd = -1;
  int rc = journal_print(j, &text, e);
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
  if (rc == 0) rc = journal_fold(j, &text, e);
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
  while (j->count) journal_drop_unit(j, j->units[j->count - 1].path);
  for (size_t i = 0; i < j->log_count; i++) {
    free(j->logs[i].target);
    free(j->logs[i].group);
  }
  free(j->logs);
  free(j->units);
  free(j->path);
  free(j);
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
  int rc = journal_unit_line(&now, NULL, &line, e);
  if (rc == 0) rc = append(j, &line, flush, e);
  buf_free(&line);
  return rc;
}

int journal_note(journal *j, const char *path, journal_state state, const digest *fingerprint,
                 const runlog_ref *commit, uint32_t parts, err *e) {
  int rc = journal_put_unit(j, path, state, fingerprint, commit);
  if (rc < 0) return err_set(e, rc, "journal: out of memory");
  journal_put_parts(j, path, parts);
  journal_put_watched(j, path, state == JOURNAL_OPEN);
  return append_unit(j, path, state != JOURNAL_OPEN, e);
}

int journal_note_result(journal *j, const char *path, const char *result, bool named, err *e) {
  journal_unit known = journal_find(j, path);
  if (!result && !known.result) return 0;
  if (journal_put_result(j, path, result, named) < 0)
    return err_set(e, ERR_NOMEM, "journal: out of memory");
  return append_unit(j, path, false, e);
}

int journal_note_flushed(journal *j, const char *path, const digest *fingerprint, err *e) {
  journal_unit known = journal_find(j, path);
  bool proven = known.state == JOURNAL_COMPLETE || known.state == JOURNAL_COMMITTED;
  if (!proven || known.flushed || !digest_equal(&known.fingerprint, fingerprint)) return 0;
  journal_put_flushed(j, path, true);
  return append_unit(j, path, true, e);
}

int journal_forget(journal *j, const char *path, err *e) {
  bool there;
  journal_place(j, path, &there);
  if (!there) return 0;
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  int rc = journal_unit_line(&(journal_unit){.path = (char *)path, .commit = JOURNAL_NO_COMMIT},
                             "gone", &line, e);
  journal_drop_unit(j, path);
  if (rc == 0) rc = append(j, &line, false, e);
  buf_free(&line);
  return rc;
}

int journal_note_child(journal *j, pid_t pid, uint64_t start, pid_t sid, err *e) {
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  j->child = (journal_child){.pid = pid, .sid = sid, .start = start, .same_boot = true};
  int rc = journal_child_line(&j->child, &line, e);
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
  const journal_log *known = journal_get_log(j, target, group);
  const bool used = newest->n == RUNLOG_NONE;
  if (known && runlog_ref_same(&known->newest, newest)) return 0;
  if (known && used && strcmp(known->newest.log, newest->log) == 0) return 0;
  buf line;
  buf_init(&line, LINE_MAX_BYTES);
  int rc = journal_put_log(j, target, group, newest);
  if (rc < 0) return err_set(e, rc, "journal: out of memory");
  rc = journal_log_line(journal_get_log(j, target, group), &line, e);
  if (rc == 0) rc = append(j, &line, used, e);
  buf_free(&line);
  return rc;
}
