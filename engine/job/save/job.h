/* job: one plan being executed, on a worker thread, from the first look at the files to the commit.
 *
 * A job that fails, is cancelled, or finds that the unit changed, gives its attempt up in the log
 * and removes the files that it sent; if it cannot even do that, the next job of the log or the
 * next term does. A job that will be tried again leaves them for the next try. A job that is fenced
 * touches nothing any more. */
#ifndef JOB_SAVE_JOB_H
#define JOB_SAVE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/names.h"
#include "plan/plan.h"
#include "commit/ranks.h"
#include "event/rules.h"
#include "commit/log/runlog_ref.h"
#include "prims/pool.h"
#include "store/store.h"

/* The jobs of one run share this, and it outlives them. */
typedef struct job_env {
  const io *io;
  const log_sink *log;
  pool *pool;
  store *store;
  const rules *rules;
  const char *root;    /* the watched directory */
  const char *staging; /* of this machine: <state>/staging */
  int64_t grace_ns;    /* stagings of an older term are removed after so long; INT64_MAX: never */
  const ranks *ranks;  /* NULL: this process saves alone */
  const char *const
      *companions; /* globs of the companions, relative to the group's directory of a unit;
                            * NULL: none */
  const atomic_bool
      *hurry; /* time is short, or nobody writes any more: a pointer that is late is not
                             * waited for; NULL: never */
} job_env;

/* Tells what a job is doing, for `status` and for the watchdog: written by its worker, read by the
 * owner. */
typedef struct job_doing {
  _Atomic int64_t since;     /* IO_MONO time at which it began to wait for this very thing */
  const char *_Atomic what;  /* static: "reading files", "sending", "waiting for ranks", ... */
  _Atomic uint64_t alive;    /* grows while it does work of which the store has not told yet: as
                              * bytes go out, and with what moves none */
  _Atomic uint64_t ranks[4]; /* while it waits for ranks: a bit for each of the first 256 missing */
} job_doing;

/* What stands beside a unit and is small, as it was early. */
typedef struct job_beside job_beside;

/* What became of a job: one word, by which its owner goes on. */
typedef enum job_outcome {
  JOB_FAILED, /* not committed, as far as can be known while the store is silent; `status` has the error */
  JOB_COMMITTED,
  JOB_RETIRED,  /* the unit changed or vanished */
  JOB_CANCELED, /* its owner stopped it */
  JOB_FENCED,   /* a newer writer has the log */
  JOB_UNPROVEN, /* nothing was done: the structural check did not pass */
  JOB_TOUCHED, /* nothing was done: an older checkpoint was added to, or it is a copy of what is committed; its
                    * `commit` stands */
  JOB_LET_GO,      /* on a rank but the first: rank 0 does not save this one */
  JOB_PASSED_OVER, /* the same, since rank 0 saves a newer one instead */
  JOB_YIELDED,     /* on a rank but the first: rank 0 saves another unit first */
  JOB_WAITED,      /* a rank did not come within the whole --rank-wait */
  JOB_FORSAKEN,    /* a rank that is missing has ended, so that none will come; also rank 0 */
} job_outcome;

enum { JOB_COPY_MAX = 240 };

typedef struct job {
  uint64_t id;
  const job_env *env;
  plan plan;
  runlog *log; /* the group's, with a term of ours; this job's alone while it runs */
  char policy[64], reason[RUNLOG_REASON_MAX]; /* the policy that wanted it, and why */
  char *metrics;                              /* a JSON object as text, or NULL; owned */
  /* match_exclude patterns of what it is saved without, beside the excludes; owned. It is whole, and
   * unchanged, by all of its files. Empty at the end where they left nothing out. */
  names left;
  uint64_t stamp; /* of the files, when the unit was found complete (stamp.h): if it differs,
                   * ERR_RETIRED; 0: not known */

  bool found; /* it stood there before the job began: who would write a pointer to it is gone */
  job_beside
      *beside;   /* what job_beside_look() read, still the caller's; NULL: job_run() reads it */
  uint64_t lost; /* the commit of this unit whose data the store has lost, so that it is saved
                  * again; 0: none */

  /* After a retryable failure the next try of the same files goes on from the files that this one
   * has sent, where the store can (STORE_CAP_RESUME). */
  uint64_t own_files, own_bytes; /* out, of what ranks save together: what of it is ours */
  char without[800]; /* out: what it was saved without, and why, for whoever follows; "": nothing */
  bool keep;         /* there will be a next try: the attempt is left open for it */
  uint64_t
      unspoken; /* in and out alike, on a rank but the first: it has put no record for an attempt from
                      * this number on, so none is looked for; 0: that is not known */
  uint64_t attempt; /* in: left by an earlier try of the unit; out: left by this one; 0: none */
  uint64_t attempt_shape;         /* of the files that it was made for: names and stamps */
  char staging[RUNLOG_NONCE_MAX]; /* in and out alike, where nothing is announced before it stands
                                   * whole: the nonce of the staging (staging.h); "": none */

  atomic_int cancel;      /* set by the owner, JOB_CANCEL or JOB_LEAVE: stop at the next block */
  _Atomic uint64_t moved; /* bytes that the target has, by its own word; less after a failed try */
  _Atomic uint64_t total;
  job_doing doing; /* what it waits for just now */

  /* The result, to be read when the job is over. */
  job_outcome outcome;
  int status; /* 0, or the error that `error` tells; ERR_RETIRED, ERR_TIMEOUT: see `outcome` */
  char copy_of[JOB_COPY_MAX]; /* of what it is a copy, for people; "": of nothing that is known */
  err error;
  runlog_ref commit;
  uint64_t files, bytes;
  int64_t time_ns; /* of the commit */
} job;

/* A job is stopped in one of two ways: it removes the files that it sent; or there is no time for
 * that, and the next term does it. */
enum { JOB_CANCEL = 1, JOB_LEAVE = 2 };

/* Runs the job to its end. Blocks; call it on a worker. */
void job_run(job *j);

/* Ends one that cannot even begin, with this error, which `error` tells. */
void job_end(job *j, int status);

/* Reads what stands beside a unit that waits for its save: pointers and lists may name the next one by then. Of
 * each file the first reading that names the unit is kept, else the last. *known: what was read before, or
 * NULL, and what is known now. *late: one of them does not name the unit yet. Needs no log. */
int job_beside_look(const job_env *env, const char *unit, int64_t step, job_beside **known,
                    bool *late, err *e);
void job_beside_free(job_beside *b); /* NULL is fine */

#endif
