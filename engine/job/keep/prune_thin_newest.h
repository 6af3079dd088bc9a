/* prune_thin_newest: which of the newest checkpoints of a kind have certain files themselves, as their manifests
 * say. For prune_thin*.c only. */
#ifndef JOB_KEEP_PRUNE_THIN_NEWEST_H
#define JOB_KEEP_PRUNE_THIN_NEWEST_H

#include "commit/manifest_read.h"
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
} thin_newest;

/* What was read for one set of globs. The first three are filled in before, and `whole`, which may be NULL. */
typedef struct thin_kinds {
  const prune *p;
  const names *globs;
  uint64_t newest; /* so many have such files */
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

bool thin_known_whole(const prune_thin_whole *w, uint64_t n);
/* Out of memory it is read again the next time. */
void thin_note_whole(prune_thin_whole *w, uint64_t n);

#endif
