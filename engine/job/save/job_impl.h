/* job_impl: declarations that job.c and job_*.c share: the work of one job, and the operations of a
 * plan. */
#ifndef JOB_SAVE_JOB_IMPL_H
#define JOB_SAVE_JOB_IMPL_H

#include "base/names.h"
#include "commit/parts.h"
#include "commit/staging.h"
#include "job/move/unit_files.h"
#include "job.h"
#include "prims/fs.h"
#include "prims/fs_held.h"

/* The operations of one job hand these to one another. */
typedef struct job_work {
  job *job;
  const job_env *env;
  const rules *rules; /* of the run; or `less`, those without what this one is saved without */
  rules less;
  unit_files source; /* the unit as it stood when the job began */
  unit_files copy;   /* the files of its snapshot, if there is one */
  unit_files *from;  /* the files that are sent: one of the two */
  manifest manifest;
  manifest came_with; /* the table of contents that lies beside the files, if they came out of a
                       * store... */
  bool came_back;     /* ...and by their names and sizes it is theirs */
  char not_here[80];  /* what that save had, and is not here, for people; "": nothing */
  runlog_companions companions; /* the companions, for the commit */
  names needs;                  /* other units that what is saved beside it names */
  int64_t word_until;           /* IO_MONO: a pointer is waited for until then; 0: none was yet */
  fs_held *held; /* the watched directory, through which companions are read; NULL: not yet */
  char snapshot[FS_PATH_MAX];  /* removed at the end; "": nothing */
  uint64_t attempt;            /* RUNLOG_NONE: not announced yet */
  uint64_t term;               /* ours, which owns the attempt */
  char mark[RUNLOG_NONCE_MAX]; /* of the attempt: runlog_attempt_id() */
  uint64_t shape;              /* of the source: its names and their stamps */
  bool resumed;                /* the attempt is the one of an earlier try, or run */
  bool adopted;                /* the attempt is of an earlier run; stays so when another one is
                                * begun */
  bool over;                   /* the attempt was committed, only the answer was lost */
  bool staged;                 /* the files go to the staging, and publish() shows them */
  bool shown;                  /* an earlier try has published all of it already */
  bool ahead;                  /* the save is staged before its attempt is announced, in: */
  staging place;
  char prefix[STORE_KEY_MAX]; /* the files are sent here */
  char dir[STORE_KEY_MAX];    /* the directory in which they will stand */
  unsigned lacks;             /* what of the unit is not kept: unit_kept.h */
  bool twice;                 /* times prove nothing: contents are read twice */
  bool plain_keys;            /* names are keys as they are: not in an attempt that 1.0 began */
  bool for_rank_0;            /* another rank commits, with the words of rank 0 */
  parts_words words;          /* those */
  bool spoiled;               /* a rank gave up: this attempt can never be committed */
} job_work;

const char *job_unit(const job *j); /* its own name, without the path */

/* job_look.c: looks at the files, before anything is announced. */
int job_look(job_work *w, err *e);
int job_check_touched(job_work *w, err *e);
int job_leave_out(job_work *w, err *e); /* takes what it is saved without out of w->source */
int job_prove(job_work *w, err *e);
int job_snapshot(job_work *w, err *e);

/* job_copy.c: knows a unit that came out of a store with its table of contents. job_look_copy() is
 * ERR_RETIRED, with JOB_TOUCHED, if our log has that very commit: then it is no other checkpoint.
 * job_name_copy() makes the reason of the commit say of what it is a copy. */
int job_look_copy(job_work *w, err *e);
void job_name_copy(job_work *w);

/* job_attempt.c: decides whose directory it is, and ends the attempt after a failure. */
int job_attempt_begin(job_work *w, err *e);
/* Fills the result in from the log, if our attempt is committed there, and by our term: a newer one
 * may have adopted it, and other files with it. */
bool job_committed(job_work *w);
/* Announces the save that stands whole in w->place. */
int job_announce(job_work *w, err *e);
/* Gives the job up after a failure, and returns its status. */
int job_give_up(job_work *w, int rc);

/* job_beside.c: small companions, as they were when the unit became complete, or the job began. */
typedef struct job_early {
  char *name, *text;
  size_t len;
  struct stat st; /* of a file */
  bool link;      /* `text` is its target */
} job_early;

bool job_takes_companions(const job_work *w);
int job_look_companions(job_work *w, err *e);                            /* into job.beside */
job_early *job_early_of(const job_work *w, const char *name, bool link); /* NULL: it is not known */
/* True if a link of another name that follows the newest leads to this very unit: a resumed training of
 * Lightning leaves `last.ckpt` where it is, and makes `last-v1.ckpt`. */
bool job_other_link_names_it(const job_work *w, const char *name);

/* An open file, as it was when it was opened: a log that grows is cut off there. */
typedef struct job_source {
  const io *io;
  const char *path;
  int fd;
  struct stat st;
} job_source;

int job_source_open(job_source *s, err *e);
/* Checks that the bytes that were read are of one moment. */
int job_source_unchanged(const job_source *s, err *e);
uint64_t job_small_max(const char *name);
/* These read into malloced memory. */
int job_read_small(const io *io, const char *path, uint64_t most, char **text, size_t *len,
                   struct stat *st, err *e);
int job_read_target(const io *io, const char *path, char **text, size_t *len, err *e);
int job_hold_root(job_work *w, err *e);
const io *job_reading(const job_work *w); /* once that is held */
struct companions;
int job_find_beside(const job_work *w, struct companions *out, err *e);
int job_path_beside(const job_work *w, const char *name, char path[FS_PATH_MAX], err *e);
bool job_names_it(const job_work *w, const char *name, bool link, const char *text, size_t len);

/* job_companions.c: saves the companions that the policy wants (env->with); or, where another rank commits
 * than rank 0, finds those that rank 0 has put before its part. */
int job_companions(job_work *w, err *e);
int job_find_companions(job_work *w, err *e);

/* job_pointers.c: what a file that names checkpoints says of ours. */
typedef enum job_word {
  JOB_WORD_FITS,  /* it names our unit, or nobody follows it */
  JOB_WORD_OLDER, /* it names another one: it may come to name ours */
  JOB_WORD_NEWER, /* it names one that came after ours: it will not come to name ours any more */
} job_word;

/* A reading of a file, or of a link, whose text is its target. */
typedef struct job_said {
  const char *name; /* base name */
  bool link;
  const char *text;
  size_t len;
} job_said;

bool job_is_pointer(const char *name, bool link);
bool job_is_state(const char *name); /* it belongs to the unit as it was when that was complete */
job_word job_word_of(const job_work *w, const job_said *s);
/* The text as it would name our unit, malloced; NULL: that cannot be told. */
char *job_word_for_us(const job_work *w, const job_said *s, size_t *len);
/* Waits a moment for one that is late; false: it is waited for no longer. */
bool job_word_wait(job_work *w);
/* False: it named an older one already when the last one of this kind was saved. */
bool job_word_is_kept_up(const job_work *w, const job_said *s);
void job_word_left_out(job_work *w, const char *path); /* says so, and has the owner say it once */
/* Notes which other units are named: by what is saved beside ours, and by ours. */
int job_note_needs(job_work *w, const job_said *s, err *e);
int job_note_wishes(job_work *w, err *e);
void job_tell_needs(job_work *w, char out[RUNLOG_NEEDS_MAX]); /* for the commit */

/* job_ranks.c: the ranks of a launch save together (env->ranks). Rank 0 announces the attempt; the
 * others wait for it. job_gather puts our part record, waits for all of them, and makes
 * w->manifest of them. */
int job_follow(job_work *w, err *e); /* sets w->attempt, on a rank but the first */
int job_gather(job_work *w, err *e);
part job_part_of(const job_work *w);
bool job_follows(const job_work *w); /* true for every rank but the first */
/* Does as job_give_up() for such a rank: tells the others, if there will be no part of ours. The
 * attempt is rank 0's to sweep. */
int job_give_up_part(job_work *w, int rc);
/* Called after a commit: rank 0 removes the part records of the one before it. */
void job_forget_parts(job_work *w);
/* job_ranks_name.c: called after ERR_EXISTS among ranks: puts into the job's error which rank has that file, too, if
 * it is known. */
void job_name_other_rank(job_work *w);

/* Says what the job begins to wait for. `what` is static. */
void job_at(job *j, const char *what);

/* job_stands.c: sees that each file of the table stands below the prefix, with its size, where the
 * store is no directory: else ERR_IO, and the next try sends it again. */
int job_check_stands(const job_work *w, const char *prefix, const manifest *m, err *e);

/* job_seal.c: goes from the files in the store to the commit. */
int job_describe(job_work *w, err *e);             /* makes w->manifest of what we sent */
void job_set_keys(const job_work *w, manifest *m); /* how its names are spelt */
int job_manifest(job_work *w, err *e);
int job_publish(job_work *w, err *e);
int job_commit(job_work *w, err *e);

#endif
