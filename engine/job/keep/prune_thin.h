/* prune_thin: takes files of older commits, since newer ones are there, as thinning.h plans it.
 *
 * A pass comes behind the drops: it reads back the manifests of the newer ones, and lets files go in the log. Then
 * it lists the pins, tests the rules again on the log as it is by then, and removes what went. Whoever dies on the
 * way leaves what the next pass, a later term or `gc` does. Everything here blocks. */
#ifndef JOB_KEEP_PRUNE_THIN_H
#define JOB_KEEP_PRUNE_THIN_H

#include "commit/removal.h"
#include "job/keep/prune.h"

/* What a policy wants taken of older ones. */
typedef struct prune_thin_wish {
  const names *globs; /* each passes match_anywhere_check(); at most MANIFEST_LEFT_GLOBS */
  uint64_t newest;    /* so many newer ones have such files */
  const char *policy;
} prune_thin_wish;

/* The commits that have no such file, by their numbers: their manifests are read once; and of which kinds it was
 * said that nothing is taken of them, a bit each. Zero-initialise it. */
typedef struct prune_thin_whole {
  uint64_t *at;
  size_t count, room;
  unsigned said;
} prune_thin_whole;
void prune_thin_forget(prune_thin_whole *w);

/* Told once the log says that so much of a commit is gone. `c` is valid in the call. */
typedef void prune_thin_told(void *ctx, const runlog_commit *c, uint64_t files, uint64_t bytes);

/* Lets files of older commits go in the log, as many commits as the share of a pass leaves that has dropped so
 * many, and removes them. It needs a term. Files stay where one of the newer ones cannot be read, or has not each kind
 * of them itself. `wish` NULL: nothing more is to go. *left: of some that are gone in the log files may be there
 * still; where it is false, and nothing may go, the store is asked nothing. rest->wait_ns: until the next grace is
 * over. `told` may be NULL. */
int prune_thin(const prune *p, const prune_thin_wish *wish, prune_thin_whole *whole, size_t dropped,
               bool *left, prune_thin_told *told, void *ctx, prune_rest *rest, err *e);

/* What a pass would take of a commit. */
typedef struct prune_thin_planned {
  uint64_t files, bytes; /* 0 files: nothing */
  names globs;           /* what these mean */
  int64_t wait_ns;       /* until the grace is over */
  bool later;            /* it is over, and the share of one pass is used up by others */
} prune_thin_planned;

/* Plans what prune_thin() would do behind a pass of drops, by the times in the log; reads only. `state`: p->log as
 * it is once so many are dropped. `out` has room for one of each of its commits, in their order; free the globs of
 * each, on failure too. p->resumed is not looked at: `guard` says it. */
int prune_thin_plan(const prune *p, const prune_thin_wish *wish, const retention_guard *guard,
                    const runlog_state *state, size_t dropped, prune_thin_planned *out, err *e);

/* Told of each commit of which files were removed, or could not be (`status`, why). Returns 0 to go on. */
typedef int prune_thin_removed(void *ctx, const char *dir, const removal_found *found, int status,
                               const char *why);

/* Removes what the log lets go of live commits, and is there still. `now`: the store's clock. *left: of some it
 * stays for now, since they are pinned, or guarded, or the newest have it not, or it failed. Asks the store nothing if nothing is thin.
 * `told` may be NULL. */
int prune_thin_files(const prune *p, int64_t now, prune_thin_removed *told, void *ctx, bool *left,
                     err *e);

#endif
