/* recover: plans how to set a directory right before a trainer starts in it. Pure: facts about the
 * local units and the commits of one group go in, a list of actions comes out.
 *
 * A trainer that finds a torn checkpoint crashes on it, and again at each restart. So the newest
 * commit of a series is restored, unless it stands there or something whole and newer does; a local
 * unit under its name that is not proven whole, or is an older commit of that name, is moved to
 * quarantine first. Newer units that are provably torn are moved away too, what ranks have of another
 * job (after the newest commit by its step, or by when it was made), and those that were marked
 * bad. Units that are whole stay, and those of which nothing can be said. */
#ifndef PLAN_RECOVER_H
#define PLAN_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum recover_standing {
  RECOVER_COMMITTED,  /* it is the newest commit of its name, byte for byte as far as we can tell */
  RECOVER_WHOLE,      /* proven whole, not committed */
  RECOVER_SUPERSEDED, /* it is an older commit of its name: another machine has gone on since */
  RECOVER_UNPROVEN,   /* nothing can be said */
  RECOVER_TORN,       /* provably not whole, and nobody has it open */
  RECOVER_BAD,        /* it is a commit that was marked bad: it does not load */
  RECOVER_PART,       /* with several ranks: it has one rank's files of a commit, and not all that
                       * is to be here */
  RECOVER_ALONE, /* with several ranks: proven whole, and no commit of theirs is it: who resumed
                       * from it would have another state than they. And one rank's part of what so
                       * many as we are did not save */
} recover_standing;

/* All of it is here, by a commit or by what proves it. */
bool recover_is_whole(recover_standing standing);

typedef struct recover_unit {
  const char *name;   /* within the group */
  const char *series; /* match_series() of it */
  int64_t step;       /* MATCH_NO_STEP: none */
  recover_standing standing;
  int64_t made_ns; /* when its content was written, as far as its files tell; 0: not known */
  bool seen;  /* it was complete before the eyes of a run of this directory: no copy of it was put
                    * here, so its files tell the truth */
  bool above; /* a file above the checkpoints */
} recover_unit;

typedef struct recover_commit {
  const char *unit;
  const char *series;
  int64_t step;
  size_t index;    /* into the log's commits */
  int64_t made_ns; /* when its content was written; 0: not known */
} recover_commit;

/* True if a unit that was never committed is newer than this commit: if it was complete after it. One
 * with a lower step may be an old one that somebody has put back, unless a run saw it made; a higher
 * step that is older was left for a restart from an earlier one. Where times are not known, or are the
 * same, the step tells. */
bool recover_is_newer(const recover_unit *u, const recover_commit *c);

/* True if one that is of no commit here (RECOVER_ALONE) would take the place of this commit, the newest of its
 * series: by its step, for who loads the highest, or since the job saves what was made after it. NULL:
 * there is none. */
bool recover_displaces(const recover_unit *u, const recover_commit *c);

typedef enum recover_what { RECOVER_QUARANTINE, RECOVER_RESTORE } recover_what;

typedef struct recover_action {
  recover_what what;
  size_t index;       /* of the unit (quarantine) or of the commit in the log (restore) */
  const char *reason; /* static */
} recover_action;

typedef struct recover_plan {
  recover_action *actions; /* quarantines before restores; free() them */
  size_t count;
} recover_plan;

/* `commits` are in the order of the log. Nothing is restored of a series of which a proven newer
 * unit is there: the trainer will find that one. A later commit of the log is newer. */
int recover_plan_group(const recover_unit *units, size_t unit_count, const recover_commit *commits,
                       size_t commit_count, recover_plan *out, err *e);

#endif
