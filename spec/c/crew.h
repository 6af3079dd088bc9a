/* crew: many hands in one process that take turns on a clock of their own, and a count of what each of them
 * asks of a store. A hand runs until it sleeps, or asks; the next one is whose time has come. So ten
 * thousand ranks are played with the code that real ones run, and each time alike. */
#ifndef SPEC_CREW_H
#define SPEC_CREW_H

#include "store/store.h"

typedef enum crew_kind {
  CREW_LOG,  /* an entry of the log is asked for */
  CREW_HEAD, /* and the log's head */
  CREW_LIST, /* a page of a listing */
  CREW_PART, /* a part is put */
  CREW_READ, /* and read */
  CREW_FILE, /* the files of the checkpoint, its manifest not among them */
  CREW_REST,
  CREW_KINDS,
} crew_kind;

typedef struct crew_asked {
  uint32_t of[CREW_KINDS];
} crew_asked;

/* `answer_ns`: how long a request takes, at least; `send_ns`: a file, from half as long to so long. */
typedef struct crew crew;
crew *crew_new(uint32_t hands, int64_t answer_ns, int64_t send_ns);
void crew_free(crew *c);

/* Reads its clock, and sleeps by it. */
const io *crew_io(crew *c);
int64_t crew_now(const crew *c); /* ns since it began */

/* Has the store count, and answer late. It tells times by whole seconds, as S3 does in a listing. */
void crew_count(crew *c, store *s);

/* Has hand `i` run that at that time. Nothing may fail a test in there: its stack is not the test's. */
void crew_start(crew *c, uint32_t i, int64_t at_ns, void (*run)(void *arg), void *arg);
/* Until all have returned. */
void crew_run(crew *c);

/* What one has asked, and what all have in the busiest second; both since crew_forget(). */
crew_asked crew_asked_by(const crew *c, uint32_t i);
uint32_t crew_asked_beside(const crew *c, uint32_t i); /* all but files */
uint32_t crew_busiest(const crew *c, bool writes);
int64_t crew_last_part(const crew *c); /* when the last part was put */
void crew_forget(crew *c);

#endif
