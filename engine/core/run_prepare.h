/* run_prepare: what the files share that make a directory ready for a trainer. For run_prepare.c,
 * run_restore.c, run_beside.c, run_damage.c, run_starts.c and run_quarantine.c only. */
#ifndef CORE_RUN_PREPARE_H
#define CORE_RUN_PREPARE_H

#include "core/restore.h"
#include "core/run_state.h"
#include "prims/fs.h"

/* What was restored: where it is, where it came from. */
struct restored {
  char *path, *uri;
};

/* One file or directory in quarantine: where it was, and where it is. */
struct moved {
  char *from, *to;
};

/* A commit that turned out to be damaged: another one is taken. */
struct damaged {
  const run_group *group;
  uint64_t commit;
};

struct prepare {
  run *run;
  run_prepared *out;
  fs_held *held; /* the watched and the state directory, and the staging while it is open */
  const io *io;  /* through it: all that is made, moved or looked at in them */
  restore_staging staging;
  bool moved; /* something was moved or restored: the directory has to be surveyed again */
  char named[FS_PATH_MAX]; /* path of the unit that was asked for by name; "": none */
  struct restored *restored;
  size_t restored_count;
  struct moved *moves; /* what went to quarantine */
  size_t move_count;
  bool back; /* what is newer was marked bad, and went: the run goes back */
  struct damaged *damaged;
  size_t damaged_count;
  const run_group *named_group; /* of the own commit that was asked for by name, and */
  uint64_t named_commit;        /* its number; RUNLOG_NONE: none was */
};

/* run_quarantine.c: what is moved out of the way, and where restores are staged. */
int prepare_hold(struct prepare *p, err *e); /* p->held and p->io; the caller frees p->held */
int prepare_need_staging(struct prepare *p, err *e); /* p->staging, if it is not open yet */
int prepare_close_staging(struct prepare *p, int rc, err *e); /* rc, or its own failure */
/* Moves a unit to <state>/quarantine/<time>-<nonce>/<path>. */
int prepare_quarantine(struct prepare *p, const char *path, match_kind kind, const char *reason,
                       err *e);
/* After a restore that made room and then failed: the directory is as it was. *e has the failure's
 * text, and gets to say what became of the copy. */
void prepare_put_back(struct prepare *p, const char *path, match_kind kind, err *e);

/* run_restore.c */
int prepare_restore_all(struct prepare *p, const survey *s, err *e); /* by the rule */
/* What the policies' `restore` rule wants beside those; `s` as it is after them. */
int prepare_restore_more(struct prepare *p, const survey *s, err *e);
int prepare_restore_named(struct prepare *p, const survey *s, const char *named, err *e);

/* run_beside.c: what was saved beside the commits that the job goes on from is put back, last of
 * all. `s` as it is after the restores. */
int prepare_restore_beside(struct prepare *p, const survey *s, err *e);
/* The same for what was found elsewhere (restore_other). */
typedef struct catalog_pick catalog_pick;
int prepare_restore_picked(struct prepare *p, const struct catalog_pick *pick, err *e);

/* run_damage.c: a commit whose data is not what was saved is not the end, if there is another one.
 */
bool prepare_is_damage(int rc);
bool prepare_is_damaged(const struct prepare *p, const run_group *g, const runlog_commit *c);
/* The newest other good one of its kind, which is taken without it; NULL: there is none. And how to
 * call that. */
const runlog_commit *prepare_other(const struct prepare *p, const run_group *g,
                                   const runlog_commit *than);
const char *prepare_age(const runlog_commit *c, const runlog_commit *than);
/* The commit is marked bad, and passed over from now on. False, and nothing is done, if there is no
 * other of its kind. */
bool prepare_pass_over(struct prepare *p, run_group *g, const runlog_commit *c, const err *why);

/* run_starts.c: a commit from which too many starts failed is marked bad. */
void prepare_judge_starts(struct prepare *p);
/* The job will go on from this commit. */
void prepare_note_start(struct prepare *p, run_group *g, uint64_t commit);

#endif
