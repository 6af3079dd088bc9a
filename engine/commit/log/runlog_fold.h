/* runlog_fold: declarations that the files of the fold share: reading one entry, and changing the
 * state by it.
 *
 * Each runlog_fold_*() reads all of an entry before it judges it, sets *why if a rule forbids it,
 * and changes the state only when nothing can fail any more. */
#ifndef COMMIT_LOG_RUNLOG_FOLD_H
#define COMMIT_LOG_RUNLOG_FOLD_H

#include "runlog_impl.h"

/* Every entry has these members. */
typedef struct runlog_head {
  uint64_t n;
  uint64_t term; /* the writer's, or RUNLOG_NONE: a guest's */
  int64_t time_ns;
  const char *nonce; /* the entry's own text */
  char what[40];     /* "log entry 7", for errors */
} runlog_head;

typedef int runlog_fold_fn(runlog_state *s, const json_t *entry, const runlog_head *h,
                           const char **why, err *e);

runlog_fold_fn runlog_fold_commit, runlog_fold_drop, runlog_fold_delete, runlog_fold_bad,
    runlog_fold_thin;
/* Finds the commit that an entry is about; *why is set if there is none, or its writer must not. */
int runlog_known_commit(const runlog_state *s, const json_t *entry, const runlog_head *h,
                        runlog_commit **out, const char **why, err *e);

/* True if the entry's writer is the one that may append. Nobody is, before the first term and after
 * an `end`. */
bool runlog_of_newest_term(const runlog_state *s, const runlog_head *h);
/* Returns NULL, or why this writer must not change a commit or end the run: a guest may, and the
 * newest term. */
const char *runlog_judge_writer(const runlog_state *s, const runlog_head *h);

/* Finds the attempt that an entry is about; *why is set unless it is still open. */
int runlog_open_attempt(const runlog_state *s, const json_t *entry, const runlog_head *h,
                        runlog_attempt **out, const char **why, err *e);
/* Adds an attempt (its strings are taken over when it succeeds) to the list and, if its directory
 * is the plain name, to that table. */
int runlog_add_attempt(runlog_state *s, const runlog_attempt *fresh);
/* Makes the name of a unit's next generation: "NAME.~7". Where that has no room in a file system,
 * the name is cut, and has a digest of the whole of it: "NAM~0123456789abcdef.~7". */
enum { RUNLOG_DIR_MAX = 255 };
int runlog_later_dir(const char *unit, uint64_t n, char out[STORE_KEY_MAX], err *e);
/* True if that name was cut. */
bool runlog_is_short_dir(const char *unit, const char *dir);
/* Checks that `dir` follows from `unit` and the number `n`, and is nobody else's: NULL, or why
 * not. */
const char *runlog_judge_dir(const runlog_state *s, uint64_t n, const char *unit, const char *dir);
/* Remembers the id of a run that joined; false when out of memory. */
bool runlog_add_joined(runlog_state *s, const char *id);
/* Makes room for one more commit, at s->commits[s->commit_count]; NULL when out of memory. */
runlog_commit *runlog_next_commit(runlog_state *s);

/* These read members of an entry, or of its description in a snapshot. */
int runlog_get_number(const json_t *object, const char *key, const char *what, uint64_t *out,
                      err *e);
void runlog_keep_nonce(const char *nonce, char out[RUNLOG_NONCE_MAX]);
/* Reads a nonce, which may be absent, as it was before 1.1. */
void runlog_opt_nonce(const json_t *object, char out[RUNLOG_NONCE_MAX]);
void runlog_opt_digest(const json_t *object, const char *key, char out[RUNLOG_DIGEST_MAX]);
/* Reads whether its keys are spelt as they are; 1.0 says nothing. */
bool runlog_opt_plain(const json_t *object);
int runlog_get_world(const json_t *object, const char *what, uint32_t *out, err *e);
int runlog_get_id(const json_t *object, const char *key, const char *what, char *out, size_t room,
                  err *e);
int runlog_get_text(const json_t *object, const char *key, const char *what, char **out, err *e);
int runlog_get_lines(const json_t *object, const char *key, const char *what, char **out, err *e);
void runlog_set_lines(json_t *object, const char *key, const char *lines, int *bad);
int runlog_get_writer(const json_t *object, const char *what, runlog_writer *out, err *e);
/* Reads an object that may be absent, as text; NULL: there is none. */
int runlog_get_metrics(const json_t *object, const char *what, char **out, err *e);
/* Reads all that a `commit` says of its checkpoint, but not the attempt. On failure
 * runlog_free_texts() is still due. */
int runlog_get_facts(const json_t *object, const char *what, runlog_commit *out, err *e);
/* runlog_thin.c: what is gone of a commit, in an entry or in a snapshot. On failure
 * runlog_free_thin() is still due. */
int runlog_get_thin(const json_t *object, const char *what, runlog_thinned *out, err *e);
void runlog_set_thin(json_t *object, const runlog_thinned *thin, int *bad);
bool runlog_copy_thin(const runlog_thinned *from, runlog_thinned *to);
void runlog_free_thin(runlog_thinned *thin);

/* These write members; failures add up in `bad`. */
void runlog_set_number(json_t *object, const char *key, uint64_t number, int *bad);
void runlog_set_text(json_t *object, const char *key, const char *text, int *bad);
void runlog_set_metrics(json_t *object, const char *text, int *bad);
void runlog_set_plain(json_t *object, int *bad);
void runlog_set_writer(json_t *object, const runlog_writer *w, int *bad);
void runlog_set_facts(json_t *object, const runlog_commit *c, int *bad);

#endif
