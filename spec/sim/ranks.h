/* ranks: schedules in which the ranks of a launch end, are refused, fall silent and come back. */
#ifndef SPEC_SIM_RANKS_H
#define SPEC_SIM_RANKS_H

#include "job/save/job.h"
#include "writer.h"

/* What is true of a launch, whatever is said of it. */
typedef struct ranks_plan {
  bool own;         /* each gets back what it had itself */
  unsigned refuses; /* a bit for each save that rank 0 does not want */
  unsigned refused; /* those that it has passed by now */
  struct {
    bool here, came_back;
    bool turned_away; /* its start is refused */
    bool differs;     /* it has written other bytes */
    unsigned leaves;  /* it ends before this save */
    unsigned lives;   /* how often it was started */
  } rank[RANKS];
  bool first_ended; /* rank 0 was not there at some time since it began */
} ranks_plan;

extern ranks_plan ranks_plans[LAUNCHES_MAX];

/* ---- a rank (ranks.c) ---- */
void rank_main(actor *a);

/* ---- a schedule of them (ranks_director.c) ---- */
void ranks_run(uint64_t seed);

/* ---- whether it is true (judge_ranks.c) ---- */
/* A save has ended; it was begun then, and its rank had been paused for so long before. */
void judge_rank_saved(writer *w, const job *j, int64_t begun, int64_t paused);
/* Rank `a` has brought back commit n: what it read of it. */
void judge_rank_restored(const actor *a, uint64_t n, bool own);
/* An attempt for so many ranks was announced. */
void judge_world(const actor *by, unsigned world, long long n);
/* Of each file the manifest tells truly whether one rank alone had it. */
void judge_owners(const judge_attempt *a, const json_t *table);
/* The record of a rank is its own, and its launch's. */
void judge_part(const judge_attempt *a, long long term, unsigned rank);

#endif
