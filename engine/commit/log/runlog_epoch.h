/* runlog_epoch: the epochs of a log. A log that has lost entries is repaired by a new one beside
 * it, in the next epoch: that of epoch 0 is .ckpt/log/, that of epoch g .ckpt/log.<g>/.
 *
 * A repair takes the number g by putting .ckpt/epoch/<g>, if that is absent. It closes the log
 * before it: each place of a lost entry, and the first behind the last one, gets a `moved` entry,
 * and so does the first place of each log that an earlier repair left unbegun. Then it puts the
 * first entry of its own log under number 0: a snapshot whose own number is above all that were
 * seen anywhere. From there on the epoch counts.
 *
 * A writer whose read of the log was from before may have found its place free all the same: what
 * it put counts only if it finds no object of the next epoch afterwards (runlog_behind.c). */
#ifndef COMMIT_LOG_RUNLOG_EPOCH_H
#define COMMIT_LOG_RUNLOG_EPOCH_H

#include "runlog.h"

#define RUNLOG_EPOCH_PLACE ".ckpt/epoch"
enum { RUNLOG_EPOCH_BYTES_MAX = 64 << 10, RUNLOG_EPOCHS_MAX = 4096 };

/* An earlier part of the log: from number `first` on its entries stand in that epoch's place. */
typedef struct runlog_era {
  uint64_t epoch, first;
} runlog_era;

/* Where the entries of a log are. */
typedef struct runlog_epochs {
  uint64_t epoch;  /* the one that counts */
  uint64_t first;  /* the number of its first entry */
  uint64_t begun;  /* the newest that was begun, if that does not count yet; else 0 */
  runlog_era *old; /* those before it, the oldest first */
  size_t old_count;
} runlog_epochs;
void runlog_epochs_free(runlog_epochs *at);

/* What the object of an epoch says. */
typedef struct runlog_epoch {
  uint64_t epoch;
  char host[RUNLOG_ID_MAX], nonce[RUNLOG_NONCE_MAX];
  int64_t pid, time_ns;
} runlog_epoch;
/* Reads its text. ERR_FORMAT, ERR_VERSION, ERR_LIMIT. */
int runlog_epoch_parse(const char *text, size_t len, const char *what, runlog_epoch *out, err *e);

/* Makes the keys ".ckpt/epoch/<g>", and of entry `place` in the log of that epoch. */
int runlog_key_epoch(const char *prefix, uint64_t epoch, char out[STORE_KEY_MAX], err *e);
int runlog_key_place(const char *prefix, uint64_t epoch, uint64_t place, char out[STORE_KEY_MAX],
                     err *e);
/* Makes the key of entry `n` of the log, in whichever epoch it was made. */
int runlog_key_at(const runlog *log, uint64_t n, char out[STORE_KEY_MAX], err *e);

/* Finds the epoch that counts, and reads its first entry into the state of a log that was not read
 * yet. In epoch 0 nothing is read. */
int runlog_epoch_enter(runlog *log, err *e);

/* After the log was read: true if it must be read again, since that came upon a later epoch. What
 * was read is forgotten then. */
bool runlog_epoch_again(runlog *log, int rc);

/* Reads the members of a first entry: the epochs before it. */
int runlog_eras_get(const json_t *entry, const char *what, runlog_epochs *out, err *e);

/* ERR_FENCED, with a text that names the repair which has begun that epoch. */
int runlog_epoch_fenced(const runlog *log, uint64_t epoch, err *e);
/* ERR_FENCED if the log that was read is closed; ERR_HELD if it was repaired, but not to the end.
 * It makes no request. */
int runlog_epoch_open(const runlog *log, err *e);
/* For who has no term: goes on in the later epoch, if there is one that counts. */
int runlog_epoch_follow(runlog *log, err *e);

#endif
