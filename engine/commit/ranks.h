/* ranks: tells which of several writers of one launch this process is.
 *
 * A world has a writer for each directory in which a part of a checkpoint appears. Rank 0 opens the
 * term and announces each save; every rank sends its own files and puts a part record; the rank that
 * comes last sees all of them, seals and commits, or rank 0, which waits for them. There is no barrier: a rank that is dead or late is named,
 * and its save is given up when `wait_ns` is over. */
#ifndef COMMIT_RANKS_H
#define COMMIT_RANKS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "commit/log/runlog.h"

enum { RANKS_MAX = 65536, RANKS_WORDS = 4 };

typedef struct ranks {
  uint32_t rank, world;       /* world at least 1; rank < world */
  char launch[RUNLOG_ID_MAX]; /* shared by all ranks of this launch and by no other launch */
  int64_t wait_ns;            /* how long one rank waits for the others */
} ranks;

/* The ranks as the environment tells them. */
typedef struct ranks_found {
  uint32_t rank, world;             /* of all tasks; world 0: no launcher is known */
  uint32_t local_rank, local_world; /* on this host; local_world 0: not known */
  uint32_t node, nodes;             /* nodes 0: not known */
  char launch[RUNLOG_ID_MAX];       /* "": the launcher gives none that is safe */
  char source[32];                  /* "slurm", "torchrun", "openmpi", "pmi", "options" */
} ranks_found;

/* Reads SLURM_*, RANK/WORLD_SIZE/TORCHELASTIC_*, OMPI_*, PMIX_ and PMI_ by way of `get` (getenv).
 * Pure. ERR_INVAL names a variable that is no number, or contradicts another. Without a launcher it
 * returns 0 with world 0. */
typedef const char *ranks_getenv(void *ctx, const char *name);
int ranks_detect(ranks_getenv *get, void *ctx, ranks_found *out, err *e);

/* The shortest pause, in ns, from one look of a rank to its next at what all ranks wait for: however
 * many they are, together they ask the store a thousand times a second. */
int64_t ranks_pause_least(uint32_t world);
/* How long a rank waits before its first look, for the same reason: all of them may come at once. */
int64_t ranks_pause_first(uint32_t rank);

/* Prints "3, 5, 7-12, ..." of `count` rising numbers. `all`: how many there are; not all need be
 * given. */
void ranks_list(const uint32_t *numbers, size_t count, size_t all, char *out, size_t room);

/* Prints "ranks 3, 5 (6 of 8 are there)" of the bits in `missing` (job_doing: the first 256); "" if
 * none is missing. */
void ranks_missing_text(const _Atomic uint64_t missing[RANKS_WORDS], uint32_t world, char *out,
                        size_t room);

#endif
