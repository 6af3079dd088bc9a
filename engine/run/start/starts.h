/* starts: this machine's memory of the starts from one checkpoint that ended badly, in
 * <state>/starts.json.
 *
 * Only a commit after it says that a checkpoint is good to go on from; so failures are counted only
 * in a row, from the same commit of the same log, and with no entry of a commit since. A record
 * from before 1.1 names no log: it is read, and nobody's. */
#ifndef RUN_START_STARTS_H
#define RUN_START_STARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "commit/log/runlog_ref.h"
#include "store/store.h"

enum { STARTS_REASON_MAX = 200, STARTS_LINES_MAX = 4096 };

typedef struct starts {
  char group[STORE_KEY_MAX]; /* the group whose log it is */
  runlog_ref commit;         /* the commit that was resumed from */
  uint64_t newest;           /* the newest commit of that log then */
  uint32_t failed;           /* so many starts in a row; 0: none */
  /* Why the commit is suspect, though it is not bad: "the job's loss was NaN after it was restored".
   * "": it is not. It is remembered until there is a newer suspect. */
  char suspect[STARTS_REASON_MAX];
  char *lines; /* what the job said last when it failed, as runlog_mark_failed() takes it; NULL: not
                * known */
} starts;

/* Reads the memory; a file that cannot be read counts as none (ERR_FORMAT), and no file is 0 with
 * failed 0. */
int starts_read(const io *io, const char *state, starts *out, err *e);
void starts_free(starts *s); /* a zeroed one is fine */
/* Writes it in one step, durably. failed 0 and not suspect: forgets it. */
int starts_write(const io *io, const char *state, const starts *s, err *e);

/* True if both are of the same commit, and nothing was committed in between. */
bool starts_same(const starts *s, const starts *now);
/* Makes `s` the memory after another failed start from `now` (whose `failed` is not looked at, and
 * whose texts are taken over). */
void starts_count(starts *s, const starts *now);

/* Writes the last of the job's lines into out[room]; `lines` NULL: none is known, and it is "". */
void starts_last_line(const char *lines, char *out, size_t room);

#endif
