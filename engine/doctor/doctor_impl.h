/* doctor_impl: declarations that the files of `doctor` share. */
#ifndef DOCTOR_DOCTOR_IMPL_H
#define DOCTOR_DOCTOR_IMPL_H

#include "base/names.h"
#include "doctor.h"

typedef struct doctor {
  const io *io;
  store *store;
  const char *dir;          /* in which the place lies; NULL: in none of this machine */
  char base[STORE_KEY_MAX]; /* what is made stands below this key */
  store_finding_fn *fn;
  void *ctx;
  doctor_sum *sum;
} doctor;

void doctor_tell(void *d, const store_finding *finding); /* a store_finding_fn, which counts */
void doctor_say(doctor *d, const char *topic, store_word word, const char *advice,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Tells an error as a fault. */
void doctor_fault(doctor *d, const char *topic, const err *why, const char *meaning,
                  const char *advice);

/* doctor_store.c: what every store promises. False: nothing can be written there. */
bool doctor_try_store(doctor *d);
/* doctor_disk.c: what a directory needs, of a place that lies in one. */
void doctor_try_disk(doctor *d);
/* Collects the directories that are not there before the doctor comes, the deepest first; and removes
 * them, where nobody has put anything into them meanwhile. */
void doctor_note_dirs(const doctor *d, names *made);
void doctor_drop_dirs(const doctor *d, const names *made);
/* doctor_logs.c: the logs that stand there. */
void doctor_look_at_logs(doctor *d, const log_sink *log, const char *where);

#endif
