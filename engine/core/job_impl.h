/* job_impl: what job.c and job_*.c share: the work of one job, and the operations of a plan. */
#ifndef CORE_JOB_IMPL_H
#define CORE_JOB_IMPL_H

#include "core/tree.h"
#include "job.h"
#include "prims/fs.h"

/* What the operations of one job hand to one another. */
typedef struct job_work {
  job *job;
  const job_env *env;
  tree source; /* the unit as it stood when the job began */
  tree copy;   /* of its snapshot, if there is one */
  tree *from;  /* what is sent: one of the two */
  manifest manifest;
  char snapshot[FS_PATH_MAX]; /* what is removed at the end; "": nothing */
  uint64_t attempt;           /* RUNLOG_NONE: not announced yet */
  uint64_t shape;             /* of the source: its names and their stamps */
  bool resumed;               /* the attempt is the one of an earlier try */
  bool over;                  /* that one was committed, only the answer was lost */
  bool staged;                /* the files go to the staging, and publish() shows them */
  char prefix[STORE_KEY_MAX]; /* where the files go */
  char dir[STORE_KEY_MAX];    /* where they will stand */
  bool twice;                 /* times prove nothing: contents are read twice */
} job_work;

const char *job_unit(const job *j); /* its own name, without the path */

/* job_look.c: the files, before anything is announced */
int job_look(job_work *w, err *e);
int job_check_touched(job_work *w, err *e);
int job_prove(job_work *w, err *e);
int job_snapshot(job_work *w, err *e);

/* job_attempt.c: whose directory it is, and what becomes of it after a failure */
int job_attempt_begin(job_work *w, err *e);
/* Fills the result in from the log, if our attempt is committed there. */
bool job_committed(job_work *w);
/* After a failure: what the job's status is. */
int job_give_up(job_work *w, int rc);

/* job_seal.c: from the files in the store to the commit */
int job_manifest(job_work *w, err *e);
int job_publish(job_work *w, err *e);
int job_commit(job_work *w, err *e);

#endif
