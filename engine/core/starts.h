/* starts: what this machine remembers of the starts from one checkpoint that ended badly, in
 * <state>/starts.json.
 *
 * Nothing else but a commit after it says that a checkpoint is good to go on from; so failures are
 * counted only in a row, from the same commit of the same log, and with no entry of a commit since.
 * A record of before 1.1 names no log: it is read, and nobody's. */
#ifndef CORE_STARTS_H
#define CORE_STARTS_H

#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "core/runlog_ref.h"
#include "store/store.h"

typedef struct starts {
  char group[STORE_KEY_MAX]; /* whose log */
  runlog_ref commit;         /* that was resumed from */
  uint64_t newest;           /* the newest commit of that log then */
  uint32_t failed;           /* so many starts in a row; 0: nothing is remembered */
} starts;

/* What there is to know; what cannot be read counts as nothing (ERR_FORMAT), and no file is 0 with
 * failed 0. */
int starts_read(const io *io, const char *state, starts *out, err *e);
/* In one step, durable. failed 0: forgets it. */
int starts_write(const io *io, const char *state, const starts *s, err *e);

/* `s` after another failed start from `now` (whose `failed` is not looked at). */
void starts_count(starts *s, const starts *now);

#endif
