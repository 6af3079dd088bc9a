/* journal: what this machine knows of the watched tree, kept across a crash of ours.
 *
 * One JSON record a line in <state>/journal.jsonl; a torn last line is what a crash leaves and is
 * passed over. Records are appended; at its opening, and when it has grown large, all are written
 * anew and put in its place in one step. After a reboot what was "complete" or "committed" is only
 * "open" again, until somebody has read the bytes: frameworks do not flush, and the pages may be
 * lost. A record that cannot be read makes all before
 * it "open". One thread; the state directory's lock is held. */
#ifndef CORE_JOURNAL_H
#define CORE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/io.h"
#include "core/runlog_ref.h"
#include "prims/hash.h"

typedef enum journal_state {
  JOURNAL_UNKNOWN,   /* no record */
  JOURNAL_OPEN,      /* it was being written, or what was known of it is in doubt */
  JOURNAL_COMPLETE,  /* it was whole, with this fingerprint */
  JOURNAL_COMMITTED, /* and is in a store as `commit` */
} journal_state;

typedef struct journal_unit {
  char *path;
  journal_state state;
  digest fingerprint;
  runlog_ref commit; /* n RUNLOG_NONE: none */
} journal_unit;

typedef struct journal_child {
  pid_t pid, sid; /* pid 0: none is known */
  uint64_t start;
  bool same_boot; /* pids of another boot name nobody */
} journal_child;

typedef struct journal journal;

/* Reads and rewrites the journal at `path` (made if absent). `boot` is this boot's id. ERR_VERSION,
 * and nothing is touched, if a newer ckpt-lua wrote it. */
int journal_open(const io *io, const char *path, const char *boot, journal **out, err *e);
void journal_close(journal *j); /* NULL is fine */

/* Its path is valid until the next call that notes or forgets; NULL if the unit is unknown. */
journal_unit journal_find(const journal *j, const char *path);
/* All records, in byte order of their paths: `i` from 0 to journal_count() - 1. */
size_t journal_count(const journal *j);
journal_unit journal_at(const journal *j, size_t i);
journal_child journal_last_child(const journal *j);

/* Of each committed unit `here` is asked whether the target at hand has it. What it does not have
 * is complete from then on, as the bytes are the same wherever they are; one without a fingerprint
 * is open. Only memory is changed: the file says what was true of the other target until something
 * is noted of the unit, or all is written anew. What `here` returns below 0 ends it. */
typedef int journal_here(void *ctx, const journal_unit *u, err *e); /* 1: yes, 0: no */
int journal_keep_here(journal *j, journal_here *here, void *ctx, err *e);

/* Appends. `commit` may be NULL: none. A committed unit without a fingerprint (NULL) is one that
 * was just restored, its bytes checked: its size and times are all that is left to compare. The
 * lines about complete and committed units are flushed before the call returns. After an error the
 * record is remembered here, and goes to the disk with the next one that works. */
int journal_note(journal *j, const char *path, journal_state state, const digest *fingerprint,
                 const runlog_ref *commit, err *e);
int journal_forget(journal *j, const char *path, err *e); /* the unit is gone */
int journal_note_child(journal *j, pid_t pid, uint64_t start, pid_t sid, err *e);
int journal_note_child_end(journal *j, err *e);

#endif
