/* runlog_impl: what runlog.c and runlog_*.c share. */
#ifndef CORE_RUNLOG_IMPL_H
#define CORE_RUNLOG_IMPL_H

#include "runlog.h"

enum { RUNLOG_UNIT_MAX = 255 };

struct runlog {
  store *s;
  char prefix[STORE_KEY_MAX];
  runlog_state st;
  uint64_t term; /* ours, or RUNLOG_NONE */
};

/* What an operation wants, judged on the log as it is known: an entry in *out (a new reference),
 * NULL there if nothing is left to do, or an error. */
typedef struct runlog_request {
  const char *text; /* the run's id, or the unit */
  uint64_t number;  /* of the attempt, or of the commit */
  const runlog_writer *who;
  const manifest *m;
  const char *policy, *reason;
  runlog_may_fn *may;
  void *ctx;
} runlog_request;
typedef int runlog_plan_fn(const runlog *log, const runlog_request *r, json_t **out, err *e);

/* Plans and appends until the entry stands. */
int runlog_carry_out(runlog *log, runlog_plan_fn *plan, const runlog_request *r, err *e);
int runlog_catch_up(runlog *log, err *e); /* reads to the end */

/* Of the state, for the fold: see runlog_find_attempt and runlog_find_commit. */
runlog_attempt *runlog_attempt_at(const runlog_state *s, uint64_t n);
runlog_commit *runlog_commit_at(const runlog_state *s, uint64_t n);
void runlog_free_texts(runlog_commit *c);
/* Where `unit` is in the table of plain names, or the empty place where it would be. */
size_t runlog_plain_slot(const runlog_state *s, const char *unit);
int runlog_plain_grow(runlog_state *s); /* keeps the table at most half full */

/* A new entry; `term` RUNLOG_NONE: a guest's. What fails adds up in `bad`. */
json_t *runlog_new_entry(const char *type, uint64_t term, int *bad);
void runlog_set(json_t *object, const char *key, json_t *value, int *bad);
/* The entry into *out, or, if anything was `bad`, ERR_NOMEM. */
int runlog_hand_over(json_t *entry, int bad, json_t **out, err *e);

#endif
