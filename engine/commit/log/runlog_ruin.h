/* runlog_ruin: a log that has lost entries: what is left of it, the state that this proves, and the
 * new log that goes on from there (runlog_epoch.h). The order in which these are called, and who
 * may, is in job/repair/repair.h. */
#ifndef COMMIT_LOG_RUNLOG_RUIN_H
#define COMMIT_LOG_RUNLOG_RUIN_H

#include "base/names.h"
#include "runlog_epoch.h"

typedef enum runlog_rest {
  RUNLOG_REST_ENTRY,  /* it can be read */
  RUNLOG_REST_TORN,   /* an object is there, and it is no entry */
  RUNLOG_REST_CLOSED, /* an earlier repair has closed the place */
} runlog_rest;

/* What stands at a place of the log. */
typedef struct runlog_place {
  uint64_t n, epoch;
  runlog_rest rest;
  bool filler;             /* it was put where another one was lost */
  json_t *entry;           /* NULL: it needs not be read again, or it cannot */
  digest raw;              /* of its text; empty: not known */
  char prev[HASH_HEX_MAX]; /* what its writer had read of the one before; "": 1.0 does not say */
} runlog_place;

typedef struct runlog_ruin {
  store *s;
  char prefix[STORE_KEY_MAX];
  runlog_epochs at; /* the one that counts; its first entry can be read, or it is epoch 0 */
  digest base;      /* of that entry's text; empty: not known */
  uint64_t newest;  /* the newest epoch that was begun; 0: none */
  uint64_t unnamed; /* epochs up to that one whose object is lost: readers may not find them */
  runlog_place *places;
  size_t count, room;
  runlog_state st; /* of the newest snapshot that can be read; later of all that is proven */
  uint64_t end;    /* behind the last number under which something stands */
  uint64_t lost, torn;
  uint64_t unchained; /* entries that were exchanged, by the word of the next one or of the head */
  runlog_term term;   /* the newest that was read; its number RUNLOG_NONE: none */
  uint64_t seen;      /* the highest number that was seen anywhere; RUNLOG_NONE: none */
} runlog_ruin;

/* Reads all that is left: each entry, one after the other. A text that needs a newer reader is
 * ERR_VERSION. Free it, on failure too. */
int runlog_ruin_read(store *s, const char *prefix, runlog_ruin *out, err *e);
void runlog_ruin_free(runlog_ruin *r);
/* True if nothing is missing, as far as the entries tell. */
bool runlog_ruin_is_whole(const runlog_ruin *r);
/* Notes that a number was seen somewhere else: no later entry may have it. */
void runlog_ruin_saw(runlog_ruin *r, uint64_t n);
/* Does the newest term's writer ask for later epochs? One of 1.0 does not. */
bool runlog_ruin_heeds(const runlog_ruin *r);

/* A checkpoint's directory, with what its manifest says. */
typedef struct runlog_trace {
  char *dir, *unit;
  char id[RUNLOG_NONCE_MAX]; /* of its attempt; "": not known (1.0) */
  uint64_t number;           /* of its attempt, where a key tells it; else RUNLOG_NONE */
  uint64_t pinned;           /* of its commit, where a pin tells it; else RUNLOG_NONE */
  uint32_t world;
  bool plain_keys;
  int64_t created_ns;
  runlog_commit facts; /* what the manifest tells of a commit; the texts are its own */
  bool whole;          /* each file stands there with its size */
  bool gone;           /* a removal of it was begun */
  bool used;           /* set by the fold: a commit or an open attempt has it */
} runlog_trace;
void runlog_trace_free(runlog_trace *t);

typedef struct runlog_evidence {
  runlog_trace *traces;
  size_t count, room;
  names removed;     /* sorted: the ids of attempts of which a removal was begun */
  const char *run;   /* the run's id, where no entry tells it */
  const char *nonce; /* of the repair */
} runlog_evidence;

/* Passes over what stands where another entry was lost, as entries that are not its neighbours, and
 * the traces, tell. The fold does it first. */
void runlog_pass_over_fillers(runlog_ruin *r, const runlog_evidence *v);
/* Folds all that is left into r->st. Lost entries are concluded from later ones and from the
 * traces, where these leave no choice; a whole save that is older than a commit gets a lost number,
 * so that the newest stays the newest; a whole one that is newer is an open attempt. */
int runlog_ruin_fold(runlog_ruin *r, runlog_evidence *v, err *e);

/* Puts the objects of epochs that were lost, as those of this repair. */
int runlog_ruin_name(runlog_ruin *r, const char *nonce, err *e);
/* Takes the next epoch: *epoch, and the digest of its object as text. ERR_EXISTS: another repair
 * was faster. */
int runlog_ruin_claim(runlog_ruin *r, const char *nonce, uint64_t *epoch, char digest[HASH_HEX_MAX],
                      err *e);
/* Closes each place that has no entry, and the first behind the last. Returns 1 if something stands
 * at one of them by now: all must be read again. */
int runlog_ruin_close(const runlog_ruin *r, uint64_t epoch, err *e);
/* Puts the first entry of the epoch's log, with the folded state and a term of this writer. */
int runlog_ruin_begin(runlog_ruin *r, uint64_t epoch, const char *digest, const char *nonce,
                      const runlog_writer *who, err *e);

#endif
