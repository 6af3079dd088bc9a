/* journal_impl: what the files of the journal share: journal_records.c has the records, journal_lines.c their
 * text, and journal.c the file. */
#ifndef RUN_JOURNAL_JOURNAL_IMPL_H
#define RUN_JOURNAL_JOURNAL_IMPL_H

#include "base/buf.h"
#include "journal.h"

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

#define JOURNAL_NO_COMMIT ((runlog_ref){.n = RUNLOG_NONE})

/* ---- records ---- */

/* Where the unit of this path stands, or would. */
size_t journal_place(const journal *j, const char *path, bool *there);
/* ERR_NOMEM of these; what was noted of the unit that the new record does not say stays or goes with it. */
int journal_put_unit(journal *j, const char *path, journal_state state, const digest *fingerprint,
                     const runlog_ref *commit);
int journal_put_result(journal *j, const char *path, const char *result, bool named);
void journal_put_watched(journal *j, const char *path, bool watched);
void journal_put_flushed(journal *j, const char *path, bool flushed);
void journal_put_parts(journal *j, const char *path, int64_t parts);
void journal_drop_unit(journal *j, const char *path);
/* With no commit, too; NULL: it is not known. */
journal_log *journal_get_log(const journal *j, const char *target, const char *group);
bool journal_log_committed(const journal_log *l);
int journal_put_log(journal *j, const char *target, const char *group, const runlog_ref *newest);
/* Makes every proven record open, but for those of what was deleted: of these the bytes do not
 * matter. The doubt is kept with each record until somebody has looked, or
 * the next start would trust the units that this one did not come to. */
void journal_doubt(journal *j, bool flushed_too);

/* ---- lines ---- */

/* Adds one, with its end; state NULL: as the record says. ERR_NOMEM. */
int journal_unit_line(const journal_unit *u, const char *state, buf *out, err *e);
int journal_log_line(const journal_log *l, buf *out, err *e);
int journal_child_line(const journal_child *c, buf *out, err *e);
int journal_print(const journal *j, buf *out, err *e); /* all of it */
/* Takes in what a file has. ERR_VERSION, ERR_NOMEM. */
int journal_fold(journal *j, const buf *text, err *e);

#endif
