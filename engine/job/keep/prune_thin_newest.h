/* prune_thin_newest: which of the newest checkpoints of a kind have certain files themselves, as their manifests
 * say, and what may go of an older one therefore. For prune_thin*.c only. */
#ifndef JOB_KEEP_PRUNE_THIN_NEWEST_H
#define JOB_KEEP_PRUNE_THIN_NEWEST_H

#include "commit/manifest_read.h"
#include "plan/thinning.h"
#include "prune_thin.h"

/* The globs that mean a file of it, a bit each. */
typedef struct thin_have {
  uint64_t files, bytes; /* one, and one that is not empty */
} thin_have;

/* Of one kind of name: the newest that have such files themselves, as they were read back. */
typedef struct thin_newest {
  char *unit;
  uint64_t below; /* only what is before this one may lose any; 0: nothing may */
  thin_have has;  /* each of them */
  uint64_t *at;   /* their numbers */
  size_t count, room;
  uint64_t *had; /* of any that were looked at: those that have such files, or had */
  size_t had_count, had_room;
} thin_newest;

/* What was read for one wish. All before `at` is filled in before; `whole` may be NULL. */
typedef struct thin_kinds {
  const prune *p;
  const runlog_state *state; /* of its log */
  const retention_guard *guard;
  prune_thin_wish wish;
  prune_thin_whole *whole;
  thin_newest *at;
  size_t count, room;
} thin_kinds;
void thin_kinds_free(thin_kinds *k);

/* Puts those of this commit's kind, which are read once; *out is valid until the next call. */
int thin_newest_of(thin_kinds *k, const runlog_commit *c, const thin_newest **out, err *e);

thin_have thin_has(const manifest *m, const names *globs);

/* True if a commit is before them, and each of them has each kind of files that it has. */
bool thin_newest_have(const thin_newest *n, const runlog_commit *c, thin_have its);

/* Reads the table of a commit that has all that was committed: 1; 0: what is there proves nothing. */
int thin_read_table(const prune *p, const runlog_commit *c, manifest *out, err *why);

/* Judges a commit by the rules, and by what is known of it (`whole` is not NULL); nothing is read. */
thinning thin_may(const thin_kinds *k, const runlog_commit *c, const retention_limits *limits);

/* What is to go of a commit, and what stays. */
typedef struct thin_going {
  manifest_rest stays;
  manifest_thin_note note; /* without globs: those of the wish */
  thinning_have have;
} thin_going;

/* Puts the commit since which so many newer ones have such files, or had until they were taken; NULL: there are not so
 * many. What has none does not let the grace begin: until then all who need these files read this one. */
int thin_since(thin_kinds *k, const runlog_commit *c, const runlog_commit **out, err *e);

/* Reads what a commit has: 1 if it has such files and the newest have them, too. Free the note, on failure too. */
int thin_look(thin_kinds *k, const runlog_commit *c, thin_going *out, err *e);

#endif
