/* prepare: declarations that the files share which make a directory ready for a trainer. For
 * prepare*.c only. */
#ifndef RUN_BEGIN_PREPARE_H
#define RUN_BEGIN_PREPARE_H

#include "job/restore/restore.h"
#include "run/begin/begin.h"
#include "run/run_state.h"
#include "prims/fs.h"

/* A restored unit: where it is, and where it came from. */
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

/* A unit that goes to quarantine, once no pointer names it any more. */
struct going {
  char *path, *reason;
  match_kind kind;
  recover_standing as;
};

struct prepare {
  run *run;
  run_prepared *out;
  fs_held *held; /* the watched and the state directory, and the staging while it is open */
  const io *io;  /* everything in them is made, moved or looked at through it */
  restore_staging staging;
  bool moved; /* something was moved or restored: the directory has to be surveyed again */
  char named[FS_PATH_MAX]; /* path of the unit that was asked for by name; "": none */
  struct restored *restored;
  size_t restored_count, restored_room;
  struct moved *moves; /* what went to quarantine */
  size_t move_count, move_room;
  struct going *going;
  size_t going_count, going_room;
  bool above;              /* the turn of files above the checkpoints: they come last */
  char unfit[FS_PATH_MAX]; /* a list that was saved, and names what is not here; "": none is */
  names
      came_back; /* pointers that were missing, and were put back as an older checkpoint had them */
  bool back;     /* what is newer was marked bad, and went: the run goes back */
  struct damaged *damaged;
  size_t damaged_count, damaged_room;
  const run_group *named_group; /* of the own commit that was asked for by name, and */
  uint64_t named_commit;        /* its number; RUNLOG_NONE: none was */
};

/* prepare_quarantine.c: moves units out of the way, and opens the staging of restores. */
int prepare_hold(struct prepare *p, err *e); /* p->held and p->io; the caller frees p->held */
/* Asks right before something in the directory is moved or put there: ERR_FENCED, ERR_HELD. */
int prepare_may_change(const struct prepare *p, const char *prefix, err *e);
int prepare_need_staging(struct prepare *p, err *e); /* p->staging, if it is not open yet */
int prepare_close_staging(struct prepare *p, int rc, err *e); /* rc, or its own failure */
/* Moves a unit that was judged `as` this to <state>/quarantine/<time>-<nonce>/<path>; what is none counts as
 * RECOVER_WHOLE. */
int prepare_quarantine(struct prepare *p, const char *path, match_kind kind, recover_standing as,
                       const char *reason, err *e);
/* Puts a copy of a file or a link there, which something else replaces then. */
int prepare_set_aside(struct prepare *p, const char *path, const char *reason, err *e);
/* Notes that a unit goes there when the pointers are right; prepare_quarantine_all() moves them, and
 * takes them out of the survey. */
int prepare_let_go(struct prepare *p, const char *path, match_kind kind, recover_standing as,
                   const char *reason, err *e);
bool prepare_goes(const struct prepare *p, const char *path);
int prepare_quarantine_all(struct prepare *p, survey *s, err *e);
/* Moves there now what stands under the name of a commit that is wanted and does not load. */
int prepare_make_way(struct prepare *p, const survey_unit *u, const char *named_by, err *e);
/* Restores a unit to `dir` (restore_unit), and fetches only what no copy has that was moved out of its
 * way, and no other task of this node has fetched. */
int prepare_bring(const struct prepare *p, restore *how, const manifest *m, const char *key,
                  const char *dir, err *e);
/* Called after a restore that made room and then failed: puts the directory back as it was. *e has
 * the failure's text, and gets the fate of the copy. */
void prepare_put_back(struct prepare *p, const char *path, match_kind kind, err *e);

/* prepare_restore.c */
int prepare_restore_all(struct prepare *p, const survey *s, err *e); /* by the rule */
/* Restores what the policies' `restore` rule wants beside those; `s` is as surveyed after them. */
int prepare_restore_more(struct prepare *p, const survey *s, err *e);
/* prepare_lists.c: restores what is named beside the newest, or leaves it to run_later.c; `s` as for that. */
int prepare_restore_lists(struct prepare *p, const survey *s, err *e);
int prepare_restore_named(struct prepare *p, const survey *s, const char *named, err *e);

/* Restores one group, by the rule; NULL: a directory with units of which the target has nothing. */
int prepare_recover_group(struct prepare *p, run_group *g, const char *prefix, const survey *s,
                          err *e);
/* Restores one commit, and puts back what it took the place of if that fails. */
int prepare_restore_commit(struct prepare *p, const survey *s, run_group *g, const runlog_commit *c,
                           err *e);
bool prepare_was_restored(const struct prepare *p, const char *path);

/* prepare_above.c: chooses which generation of the files above the checkpoints comes back, and
 * restores the checkpoints that it names; the file itself comes with prepare_recover_group(). */
int prepare_restore_above(struct prepare *p, const survey *s, err *e);

/* prepare_companions.c: puts back the companions of the commits that the job goes on from, last of all. `s`
 * is as surveyed after the restores. */
int prepare_restore_companions(struct prepare *p, const survey *s, err *e);
/* False of a unit that is torn, bad, or lacks a file. Of which nothing can be said else is left to its framework. */
bool prepare_loads(const struct prepare *p, const survey_unit *u);
/* True if a link of this name stands in the group, to a checkpoint there that is whole: Lightning makes
 * its `last.ckpt` as a file or as a link. */
bool prepare_is_linked(const struct prepare *p, const survey *s, const char *prefix,
                       const char *name);
/* Does the same for a checkpoint that was found elsewhere (restore_other). */
typedef struct catalog_pick catalog_pick;
int prepare_restore_picked(struct prepare *p, const struct catalog_pick *pick, err *e);

/* prepare.c: compares two units that are whole; `b` may be NULL. */
bool prepare_newer(run *r, const survey_unit *a, const survey_unit *b);

/* prepare_restore.c: a commit whose data is damaged is not the end, if there is another one. */
bool prepare_is_damage(int rc);
bool prepare_is_damaged(const struct prepare *p, const run_group *g, const runlog_commit *c);
/* Finds the newest other good commit of its kind, which is taken in its place; NULL: there is none.
 * prepare_age() says how to call that one. */
const runlog_commit *prepare_other(const struct prepare *p, const run_group *g,
                                   const runlog_commit *than);
const char *prepare_age(const runlog_commit *c, const runlog_commit *than);
/* Leaves a commit as it is, and out of this start. False: out of memory. */
bool prepare_leave_out(struct prepare *p, const run_group *g, const runlog_commit *c);
/* Marks the commit bad, and passes it over from now on. Returns false, and does nothing, if there
 * is no other of its kind. */
bool prepare_pass_over(struct prepare *p, run_group *g, const runlog_commit *c, const err *why);

/* prepare_starts.c: marks a commit bad from which too many starts failed. */
void prepare_judge_starts(struct prepare *p);

#endif
