/* runlog_fold: what the files of the fold share: reading one entry, and changing the state by it.
 *
 * Each runlog_fold_*() reads all of an entry before it judges it, sets *why if a rule forbids it,
 * and changes the state only when nothing can fail any more. */
#ifndef CORE_RUNLOG_FOLD_H
#define CORE_RUNLOG_FOLD_H

#include "runlog_impl.h"

/* What every entry has. */
typedef struct runlog_head {
  uint64_t n;
  uint64_t term; /* the writer's, or RUNLOG_NONE: a guest's */
  int64_t time_ns;
  const char *nonce; /* the entry's own text */
  char what[40];     /* "log entry 7", for errors */
} runlog_head;

typedef int runlog_fold_fn(runlog_state *s, const json_t *entry, const runlog_head *h,
                           const char **why, err *e);

runlog_fold_fn runlog_fold_commit, runlog_fold_drop, runlog_fold_delete, runlog_fold_bad;

/* Is the entry's writer the one that may append? Nobody is, before the first term and after an
 * `end`. */
bool runlog_of_newest_term(const runlog_state *s, const runlog_head *h);
/* NULL, or why this writer must not change what is there: a guest may, and the newest term. */
const char *runlog_judge_writer(const runlog_state *s, const runlog_head *h);

/* The attempt that an entry is about; *why is set unless it is still open. */
int runlog_open_attempt(const runlog_state *s, const json_t *entry, const runlog_head *h,
                        runlog_attempt **out, const char **why, err *e);
/* Adds an attempt (its strings are taken over when it succeeds) to the list and, if its directory
 * is the plain name, to that table. */
int runlog_add_attempt(runlog_state *s, const runlog_attempt *fresh);
/* Does `dir` follow from `unit` and the number `n`, and is it nobody else's? NULL, or why not. */
const char *runlog_judge_dir(const runlog_state *s, uint64_t n, const char *unit, const char *dir);
/* Room for one more commit, at s->commits[s->commit_count]; NULL when out of memory. */
runlog_commit *runlog_next_commit(runlog_state *s);

/* Members of an entry, or of what a snapshot says of one. */
int runlog_get_number(const json_t *object, const char *key, const char *what, uint64_t *out,
                      err *e);
void runlog_keep_nonce(const char *nonce, char out[RUNLOG_NONCE_MAX]);
/* One that may be absent, as it was before 1.1. */
void runlog_opt_nonce(const json_t *object, char out[RUNLOG_NONCE_MAX]);
int runlog_get_world(const json_t *object, const char *what, uint32_t *out, err *e);
int runlog_get_id(const json_t *object, const char *key, const char *what, char *out, size_t room,
                  err *e);
int runlog_get_text(const json_t *object, const char *key, const char *what, char **out, err *e);
int runlog_get_writer(const json_t *object, const char *what, runlog_writer *out, err *e);
/* All that a `commit` says of its checkpoint but whose it is. On failure runlog_free_texts() is
 * still due. */
int runlog_get_facts(const json_t *object, const char *what, runlog_commit *out, err *e);

/* The same the other way round; what fails adds up in `bad`. */
void runlog_set_number(json_t *object, const char *key, uint64_t number, int *bad);
void runlog_set_text(json_t *object, const char *key, const char *text, int *bad);
void runlog_set_writer(json_t *object, const runlog_writer *w, int *bad);
void runlog_set_facts(json_t *object, const runlog_commit *c, int *bad);

#endif
