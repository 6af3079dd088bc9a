/* job_impl: what job.c and job_*.c share: the work of one job, and the operations of a plan. */
#ifndef CORE_JOB_IMPL_H
#define CORE_JOB_IMPL_H

#include "core/staging.h"
#include "core/tree.h"
#include "job.h"
#include "prims/fs.h"
#include "prims/fs_held.h"

/* What the operations of one job hand to one another. */
typedef struct job_work {
  job *job;
  const job_env *env;
  tree source; /* the unit as it stood when the job began */
  tree copy;   /* of its snapshot, if there is one */
  tree *from;  /* what is sent: one of the two */
  manifest manifest;
  runlog_with with;        /* what was saved beside it; for the commit */
  struct job_early *early; /* small files beside it, as they were when the job began */
  size_t early_count;
  fs_held *held; /* the watched directory, for what is read beside the unit; NULL: not yet */
  char snapshot[FS_PATH_MAX];  /* what is removed at the end; "": nothing */
  uint64_t attempt;            /* RUNLOG_NONE: not announced yet */
  uint64_t term;               /* ours, which owns the attempt */
  char mark[RUNLOG_NONCE_MAX]; /* of the attempt: runlog_attempt_id() */
  uint64_t shape;              /* of the source: its names and their stamps */
  bool resumed;                /* the attempt is the one of an earlier try, or run */
  bool adopted;                /* of an earlier run; stays so when another one is begun */
  bool over;                   /* that one was committed, only the answer was lost */
  bool staged;                 /* the files go to the staging, and publish() shows them */
  bool shown;                  /* an earlier try has published all of it already */
  bool ahead;                  /* it is staged before its attempt is announced, in: */
  staging place;
  char prefix[STORE_KEY_MAX]; /* where the files go */
  char dir[STORE_KEY_MAX];    /* where they will stand */
  bool twice;                 /* times prove nothing: contents are read twice */
  bool spoiled;               /* a rank gave up: nothing can come of this attempt any more */
} job_work;

const char *job_unit(const job *j); /* its own name, without the path */

/* job_look.c: the files, before anything is announced */
int job_look(job_work *w, err *e);
int job_check_touched(job_work *w, err *e);
int job_prove(job_work *w, err *e);
int job_snapshot(job_work *w, err *e);

/* job_attempt.c: whose directory it is, and what becomes of it after a failure */
int job_attempt_begin(job_work *w, err *e);
/* Fills the result in from the log, if our attempt is committed there, and by our term: a newer one
 * may have adopted it, and other files with it. */
bool job_committed(job_work *w);
/* Announces what stands whole in w->place. */
int job_announce(job_work *w, err *e);
/* After a failure: what the job's status is. */
int job_give_up(job_work *w, int rc);

/* job_companions.c: what the policy wants saved beside the unit (env->with). Pointers are read when
 * the job begins, for they may name the next unit by the time that this one is sent. */
int job_look_beside(job_work *w, err *e);
void job_early_free(job_work *w);
int job_companions(job_work *w, err *e);

/* job_ranks.c: the ranks of a launch save together (env->ranks). Rank 0 announces the attempt; the
 * others wait for it. job_gather puts our part record, waits for all of them, and makes
 * w->manifest of them. */
int job_follow(job_work *w, err *e); /* sets w->attempt, on a rank but the first */
int job_gather(job_work *w, err *e);
bool job_follows(const job_work *w); /* are we a rank but the first? */
/* job_give_up() of such a rank: tells the others, if there will be no part of ours. The attempt is
 * rank 0's to sweep. */
int job_give_up_part(job_work *w, int rc);
/* After a commit: rank 0 removes the part records of the one before it. */
void job_forget_parts(job_work *w);
/* After ERR_EXISTS among ranks: puts into the job's error who else has that file, if it is known.
 */
void job_name_other_rank(job_work *w);

/* Says what the job begins to wait for. `what` is static. */
void job_at(job *j, const char *what);

/* job_seal.c: from the files in the store to the commit */
int job_describe(job_work *w, err *e); /* makes w->manifest of what we sent */
int job_manifest(job_work *w, err *e);
int job_publish(job_work *w, err *e);
int job_commit(job_work *w, err *e);

#endif
