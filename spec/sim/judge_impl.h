/* judge_impl: what the files of the judge share. */
#ifndef SPEC_JUDGE_IMPL_H
#define SPEC_JUDGE_IMPL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/log/runlog_impl.h"
#include "commit/manifest/manifest.h"
#include "sim.h"

enum { ENTRIES_MAX = 4096 };

enum type { RUN, TERM, ATTEMPT, ADOPT, SWEEP, COMMIT, DROP, DELETE, BAD, END, SNAPSHOT };

/* What the judge knows. */
typedef struct judged {
  judge_attempt attempts[ENTRIES_MAX];
  judge_commit commits[ENTRIES_MAX];
  size_t attempt_count, commit_count;
  long long entries, newest_term;
  int openers[ENTRIES_MAX]; /* of each entry that is a term: who made it */
  /* The same before the last repair, and one more; 0: nobody. A repair gives numbers again, and who had
   * one may not know yet that his log is over. */
  int openers_then[ENTRIES_MAX];
  bool ended;
  char run_id[32];
  char joined[4][32]; /* other runs that may go on here */
  int64_t attempted_at;
  char flags[40]; /* of the newest term that says them */
  long long flags_since;
  runlog_state shadow; /* the same, by the engine's own fold */
  long long epoch;     /* the one that counts */
  long long first;     /* number of its first entry */
  bool rewritten; /* numbers that were lost have got other entries: what follows proves nothing */
  long long head_commit; /* the highest number that the head has named; 0: none yet */
} judged;
extern judged known;

#define BROKEN_RULE(...)                                                                           \
  do {                                                                                             \
    if (!judge_results_only && !known.rewritten) sim_violation(__VA_ARGS__);                       \
  } while (0)

/* ---- judge.c ---- */
long long judge_number(const json_t *entry, const char *key); /* -1: none */
void judge_text(const json_t *entry, const char *key, char *out, size_t room);
judge_attempt *judge_attempt_of(long long n);
judge_commit *judge_commit_of(const judge_attempt *a);

/* ---- what a commit promises (judge_commits.c) ---- */
void judge_check_commit(judge_commit *c);
void judge_check_parts(const judge_attempt *a);
unsigned judge_check_file(const judge_attempt *a, const char *file, const json_t *table);
json_t *judge_manifest(const judge_attempt *a);

/* ---- the log (judge_log.c) ---- */
void judge_on_next(const actor *by, const json_t *entry, long long n);
void judge_fold_term(const json_t *entry, const actor *by, long long n);
void judge_fold_attempt(const json_t *entry, long long n);
void judge_fold_end(void);
long long judge_beside(const json_t *commit);

/* ---- behind lost entries, and across epochs (judge_epochs.c) ---- */
void judge_on_entry(const actor *by, const object *o);

/* ---- changes of the store (judge_store.c) ---- */
bool judge_begins(const char *key, const char *where);

/* ---- somebody else's (judge_others.c) ---- */
bool judge_is_over(const judge_attempt *a);
bool judge_is_visitors(const char *key);
void judge_check_visitors(void);

#endif
