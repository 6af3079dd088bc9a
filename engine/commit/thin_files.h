/* thin_files: takes away the files that the log says to be gone of a commit (runlog_thin), and nothing else:
 * each is one that the commit's manifest names and a glob means, has that size, and is no younger than the
 * object of the `commit` entry.
 *
 * Before any goes, the note beside the manifest is put, and then it is asked whether a repair of the log was
 * begun (ERR_FENCED): a repair goes by the note, so one of the two sees the other. When all are gone
 * .ckpt/thinned/<attempt> is put, and nobody looks there again. If it dies on the way, the next one does all
 * of it once more. */
#ifndef COMMIT_THIN_FILES_H
#define COMMIT_THIN_FILES_H

#include "commit/removal.h"

#define THIN_FILES_DONE ".ckpt/thinned/"

/* Removes them. The commit must be live, and files of it gone by the log: else ERR_INVAL. Whoever calls has read
 * that entry before he listed the pins, and has asked what the newest have (prune_thin_files). `dry`: nothing is written. `found` counts
 * what went, or would; its `cleared`: it was done before. What has another size, or came later, stays, and is told
 * to `sink`. ERR_CONFLICT: the note there says something else. Blocks. */
int thin_files_remove(store *s, runlog *log, uint64_t commit, bool dry, const log_sink *sink,
                      removal_found *found, err *e);

#endif
