/* journal: this machine's knowledge about the watched tree, kept across a crash of ours.
 *
 * It is one JSON record a line in <state>/journal.jsonl; a crash leaves a torn last line, which is
 * passed over. Records are appended; at its opening, and when it has grown large, all are written
 * anew and put in its place in one step. After a reboot a "complete" or "committed" unit is only
 * "open" again, until somebody has read the bytes: frameworks do not flush, and the pages may be
 * lost. Not so one that was flushed to a server, which did not reboot. A record that cannot be read
 * makes all before it "open". One thread; the state directory's lock is held. */
#ifndef RUN_JOURNAL_H
#define RUN_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/io.h"
#include "commit/log/runlog_ref.h"
#include "prims/hash.h"

typedef enum journal_state {
  JOURNAL_UNKNOWN,   /* no record */
  JOURNAL_OPEN,      /* it was being written, or its record is in doubt */
  JOURNAL_COMPLETE,  /* it was whole, with this fingerprint */
  JOURNAL_COMMITTED, /* and is in a store as `commit` */
  JOURNAL_ASIDE,     /* a checkpoint was deleted by moving it here: it is none any more */
} journal_state;

typedef struct journal_unit {
  char *path;
  journal_state state;
  digest fingerprint;
  runlog_ref commit; /* n RUNLOG_NONE: none */
  char *result;      /* the numbers that were reported for it, as JSON text; NULL: none */
  bool named;        /* that result named it */
  bool watched;      /* OPEN: it was begun on this boot, while a run watched */
  bool flushed;      /* COMPLETE, COMMITTED: its files were flushed, as they were then */
  uint32_t
      parts; /* more than 1: so many ranks save it together, and what is here is one's part; else it is all
                   * here, or a ckpt-lua of before noted it, and nobody knows */
} journal_unit;

typedef struct journal_child {
  pid_t pid, sid; /* pid 0: none is known */
  uint64_t start;
  bool same_boot; /* pids of another boot name nobody */
} journal_child;

/* What was last known of the log of a group at a target. */
typedef struct journal_log {
  char *target, *group;
  runlog_ref newest; /* its newest commit; n RUNLOG_NONE: none yet, and only `log` is known */
} journal_log;

typedef struct journal journal;

/* Reads and rewrites the journal at `path` (made if absent). `boot` is this boot's id. `served`: what
 * was flushed in the watched directory is on a server, whatever becomes of this machine
 * (fs_kind.keeps_flushed). ERR_VERSION, and nothing is touched, if a newer ckpt-lua wrote it. */
int journal_open(const io *io, const char *path, const char *boot, bool served, journal **out,
                 err *e);
void journal_close(journal *j); /* NULL is fine */

/* Finds the record of a unit, whose path and result are valid until the next call that notes or forgets; NULL
 * if the unit is unknown. */
journal_unit journal_find(const journal *j, const char *path);
/* Returns all records, in byte order of their paths: `i` from 0 to journal_count() - 1. */
size_t journal_count(const journal *j);
journal_unit journal_at(const journal *j, size_t i);
journal_child journal_last_child(const journal *j);

/* Finds the log of a group at a target, with the newest commit that this machine knows of; NULL:
 * nothing was ever committed there, as far as is known here. By number, from 0, all of a target. */
const journal_log *journal_find_log(const journal *j, const char *target, const char *group);
const journal_log *journal_log_at(const journal *j, const char *target, size_t i);
/* True if there was a commit to this target. A journal of before 1.1 does not tell targets apart. */
bool journal_has_committed(const journal *j, const char *target);
/* Finds a log by its own name (runlog_ref.log), whatever its target was called, with commits or
 * without; NULL: it is not known here. With `log` NULL: the one that was first noted last. */
const journal_log *journal_known_log(const journal *j, const char *log);

/* Asks `here` for each committed unit whether the target at hand has it. If not, the unit is
 * complete from then on, as the bytes are the same wherever they are; one without a fingerprint is
 * open. Only memory is changed: the file keeps the other target's truth until something is noted of
 * the unit, or all is written anew. If `here` returns below 0, that ends it. */
typedef int journal_here(void *ctx, const journal_unit *u, err *e); /* 1: yes, 0: no */
int journal_keep_here(journal *j, journal_here *here, void *ctx, err *e);

/* Appends a record. `commit` may be NULL: none. `parts`: as in journal_unit. A committed unit without a
 * fingerprint (NULL) was just restored, so its bytes were checked and flushed: only its size and times are left to compare.
 * The lines about complete and committed units are flushed before the call returns. After an error
 * the record is remembered here, and goes to the disk with the next one that works. */
int journal_note(journal *j, const char *path, journal_state state, const digest *fingerprint,
                 const runlog_ref *commit, uint32_t parts, err *e);
/* Notes what was reported for a unit (NULL: nothing), which stays with its record whatever becomes of
 * the unit, until it is gone. It is not flushed. */
int journal_note_result(journal *j, const char *path, const char *result, bool named, err *e);
/* Notes that the files of a unit were flushed after they had this fingerprint. Nothing is noted if its
 * record has another one by now, or is open. */
int journal_note_flushed(journal *j, const char *path, const digest *fingerprint, err *e);
/* `newest` without a commit (n RUNLOG_NONE) notes that this directory was used with that log: what is
 * noted of a commit later stands in its place. */
int journal_note_log(journal *j, const char *target, const char *group, const runlog_ref *newest,
                     err *e);
int journal_forget(journal *j, const char *path, err *e); /* the unit is gone */
int journal_note_child(journal *j, pid_t pid, uint64_t start, pid_t sid, err *e);
int journal_note_child_end(journal *j, err *e);

#endif
