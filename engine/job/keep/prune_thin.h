/* prune_thin: takes files of older commits, since newer ones are there, as thinning.h plans it.
 *
 * A pass comes behind the drops: it reads back the manifests of the newer ones, and lets files go in the log. Then
 * it lists the pins, tests the rules again on the log as it is by then, and removes what went. Whoever dies on the
 * way leaves what the next pass, a later term or `gc` does. Everything here blocks. */
#ifndef JOB_KEEP_PRUNE_THIN_H
#define JOB_KEEP_PRUNE_THIN_H

#include "commit/removal.h"
#include "job/keep/prune.h"

/* Told of each commit of which files were removed, or could not be (`status`, why). Returns 0 to go on. */
typedef int prune_thin_removed(void *ctx, const char *dir, const removal_found *found, int status,
                               const char *why);

/* Removes what the log lets go of live commits, and is there still. `now`: the store's clock. *left: of some it
 * stays for now, since they are pinned, or guarded, or it failed. Asks the store nothing if nothing is thin.
 * `told` may be NULL. */
int prune_thin_files(const prune *p, int64_t now, prune_thin_removed *told, void *ctx, bool *left,
                     err *e);

#endif
