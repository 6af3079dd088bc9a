/* doctor: tries out a place, to tell whether checkpoints can be saved there, and what to do if not. */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "store/store.h"

typedef struct doctor_sum {
  unsigned faults, warnings;
  int status; /* of the first fault; 0: there is none */
} doctor_sum;

/* Writes, reads, lists, replaces, races and deletes below <target>/.ckpt, and reads the logs that stand
 * there; then removes what it made, directories too. `fn` is told each finding as it is made. Returns
 * 0 whatever it found: *out counts it; ERR_INVAL for what is no URI. Blocks. */
int doctor_examine(const io *io, const log_sink *log, const char *where, store_finding_fn *fn,
                   void *ctx, doctor_sum *out, err *e);

#endif
