/* vouched: whether a framework's own file tells that a checkpoint is whole, which nothing else proves.
 *
 * Ray writes the files that name its checkpoints when all of what they name is there (the rows of
 * frameworks.h that are `last`), and goes on from what they name. A start that believed less would go on
 * from an older one than Ray does, and would never save the one that Ray did go on from: it was written
 * within the rest before a kill, and nobody writes it again. */
#ifndef RUN_EVIDENCE_VOUCHED_H
#define RUN_EVIDENCE_VOUCHED_H

#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/names.h"
#include "event/detect.h"
#include "prims/fs.h"

/* One of those files. */
typedef struct voucher {
  int64_t written_ns; /* IO_WALL */
  names says;         /* sorted: "checkpoint_1", or of one above the trials "trial/checkpoint_1" */
} voucher;

/* Those of one directory, while many units below it are asked about. */
typedef struct voucher_files {
  char dir[FS_PATH_MAX];
  voucher *at;
  size_t count, room;
} voucher_files;

typedef struct vouchers {
  voucher_files beside, above;
} vouchers;

/* Returns 1 if such a file, beside a unit or above its trial, names it, and tells of what is there now: it
 * was written on this boot, and is no older than any file or directory in the unit, which holds no empty
 * file, no link and nothing excluded. Only where the unit is a directory that nothing proves and nothing
 * speaks against, no policy has conditions of its own, and all writers of the file system are here.
 * `root` is absolute. *v is zeroed before, and to be freed. A file that cannot be read tells nothing.
 * Blocks. ERR_NOMEM, and errors of reading the unit. */
int vouched(vouchers *v, const io *io, const char *root, const rules *rules,
            const detect_unit *unit, err *e);
void vouchers_free(vouchers *v);

#endif
