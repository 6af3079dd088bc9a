/* run_state: what the files of `run` share: the run's own struct and its parts. For run*.c only. */
#ifndef CORE_RUN_STATE_H
#define CORE_RUN_STATE_H

#include "core/detect.h"
#include "core/group.h"
#include "core/job.h"
#include "core/journal.h"
#include "core/policy.h"
#include "core/recover.h"
#include "core/run.h"
#include "prims/lock.h"

typedef enum unit_phase {
  UNIT_SETTLING, /* being written, or not yet quiet */
  UNIT_WAITING,  /* wanted; its group saves another one */
  UNIT_RUNNING,
  UNIT_RETRYING, /* failed; waits for its next try */
  UNIT_DURABLE,
  UNIT_FAILED,   /* given up */
  UNIT_UNPROVEN, /* nothing proves it whole, or it is torn */
  UNIT_RETIRED,  /* changed or vanished, the detector will say more; or no longer wanted */
  UNIT_DROPPED,  /* let go for a newer one, which is not in the store yet */
} unit_phase;

typedef struct run_group run_group;
typedef struct run_save run_save;
typedef struct run_known run_known;

/* One unit of the watched tree. */
typedef struct run_unit {
  char *path, *series;
  run_group *group;
  match_kind kind;
  int64_t step;
  bool in_place, gone;
  uint64_t bytes, stamp;
  digest fingerprint;
  int64_t changed_ns;
  decision want;
  char reason[256];
  unit_phase phase;
  uint64_t job;                  /* of its save, tries included; 0: none was begun */
  unsigned tries, retired;       /* retired: in a row, though it looks unchanged */
  int64_t complete_at, next_try; /* IO_MONO; next_try: not begun before */
  int status;                    /* of the last try */
  run_save *save;                /* while RUNNING */
} run_unit;

struct run_group {
  group group;
  uint64_t term;                       /* once begun, as the owner knows it */
  run_save *save;                      /* the one that runs */
  bool foreign;                        /* another writer holds it, and nothing of it is here */
  int64_t newest_step, newest_time_ns; /* of its newest commit; time 0: none */
  char *newest_unit;
};

struct run {
  const run_env *env;
  places places;
  store *store;
  rules *rules;
  lock lock, dir_lock; /* of the state directory; of the watched one */
  journal *journal;
  detect *detect;
  group_env group_env;
  job_env job_env;
  run_group **groups;
  size_t group_count;
  run_known *known; /* manifests of commits */
  size_t known_count;
  char **dirs; /* paths of the committed directories, in byte order */
  size_t dir_count, dir_room;
  run_unit **units; /* sorted by path */
  size_t unit_count, unit_room;
  unsigned tries, tasks; /* tasks: on the workers now */
  bool poll, prepared, started, closing, fenced, preempted, writer_gone;
  int64_t lease_at; /* IO_MONO */
  char *metrics;    /* the last result, as JSON text */
  char *resume, *restored_from;
  uint32_t committed, dropped, retired, failed;
  uint64_t bytes_committed;
};

/* A save on a worker. */
struct run_save {
  run_task task;
  job job;
  run_unit *unit;
  run_group *group;
  uint64_t term; /* found by the worker; RUNLOG_NONE: none yet */
  /* The unit as it was when the save began: it may be another one by now. */
  digest fingerprint;
  char reason[256];
  bool sure;     /* it was known to be whole */
  bool copied;   /* it is sent from a snapshot: what becomes of the original is no matter */
  bool given_up; /* the host cancelled it */
};

/* run_groups.c */
int run_group_get(run *r, const char *prefix, run_group **out, err *e); /* touches no store */
int run_group_begin(run_group *g, err *e);
void run_group_note_newest(run_group *g);
int run_groups_open(run *r, err *e); /* those at the target */
void run_groups_close(run *r);
/* Remembers that `path` is a committed directory: what is in it is its content, never a unit or a
 * group of its own. */
int run_dir_note(run *r, const char *path, err *e);
bool run_dir_inside(const run *r, const char *path); /* strictly below one of them? */
/* The paths that logs and journal know as units, for detect_options.known. */
typedef struct run_paths {
  char **names;
  size_t count, room;
} run_paths;
int run_paths_take(run *r, run_paths *out, err *e); /* before the run has started */
void run_paths_free(run_paths *p);

/* run_units.c */
run_unit *run_unit_find(run *r, const char *path);
int run_unit_take(run *r, const detect_unit *facts, run_unit **out, err *e);
void run_unit_remove(run *r, run_unit *u);
/* Of a commit, `j` has the numbers; else NULL. */
void run_tell(run *r, const run_unit *u, run_kind kind, const job *j, int status,
              const char *reason);

/* run_queue.c */
bool run_unit_queued(const run_unit *u); /* wanted, and not begun */
bool run_unit_sure(const run_unit *u);   /* known to be whole: durable, or on its way */
void run_enqueue(run *r, run_unit *u);
void run_unit_durable(run *r, run_unit *u); /* its content is in the store */
/* Those that were let go for one that did not make it wait again. */
void run_take_back(run *r);
int run_start_saves(run *r, err *e);
void run_hurry(run *r);     /* time is short: older ones go, the newest is next, retries come now */
void run_no_writer(run *r); /* nobody writes any more: what waits for quiet need not */
int64_t run_renew_leases(run *r, int64_t now); /* returns when to call it again */

/* A local unit, held against the journal, the log and its own structure. */
typedef struct survey_unit {
  char *path, *series;
  const char *name; /* in path */
  char *group;
  match_kind kind;
  int64_t step, changed_ns;
  digest fingerprint;
  recover_standing standing;
  uint64_t
      commit; /* of the newest commit of its name; with RECOVER_SUPERSEDED: of the one that it is */
  char reason[256];
} survey_unit;

typedef struct survey {
  survey_unit *units; /* in byte order of their paths */
  size_t count;
} survey;

/* run_survey.c: what stands in the directory while nobody writes there. Blocks. */
int run_survey(run *r, survey *out, err *e);
void run_survey_free(survey *s);
/* Tells the detector what files the newest commits have. */
int run_survey_learn(run *r, detect *d, err *e);

/* run_manifests.c: the manifests of commits, read once and kept until the run has started. */
int run_manifest(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e);
void run_manifests_drop(run *r);

#endif
