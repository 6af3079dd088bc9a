/* vouched: whether Ray's own file tells that a checkpoint is whole, which nothing else proves.
 *
 * Ray puts a checkpoint into the files of the rows that are `last` (frameworks.h) when all of it is
 * stored, and goes on from there. A start that believed less would go on from an older one than Ray does,
 * and would never save the one that Ray did go on from: it was written within the rest before a kill, and
 * nobody writes it again.
 *
 * Such a file alone proves little: Ray writes an old one anew without a look at what it names, and it may
 * come with a copy of which a part is missing. So the caller asks only about what a run has seen being
 * written on this boot, and no file counts that is older than the last change of anything in it. */
#ifndef RUN_EVIDENCE_VOUCHED_H
#define RUN_EVIDENCE_VOUCHED_H

#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/names.h"
#include "event/detect.h"
#include "prims/fs.h"

/* The one of a directory that counts, while many units below it are asked about. */
typedef struct voucher {
  char dir[FS_PATH_MAX];
  int64_t written_ns; /* IO_WALL; INT64_MIN: there is none */
  names says;         /* sorted: "checkpoint_1", or of one above the trials "trial/checkpoint_1" */
} voucher;

typedef struct vouchers {
  voucher beside, above;
} vouchers;

/* Returns 1 if the newest such file, beside a unit or above its trial, names it, and is no older than the
 * last change of any file or directory in the unit, which holds no empty file, no link and nothing
 * excluded. Only where the unit is a directory that nothing proves and nothing speaks against, no policy
 * has conditions of its own, and all writers of its file system are here. `root` is absolute. *v is
 * zeroed before, and to be freed. A file that cannot be read tells nothing. Blocks. ERR_NOMEM, and errors
 * of reading the unit. */
int vouched(vouchers *v, const io *io, const char *root, const rules *rules,
            const detect_unit *unit, err *e);
void vouchers_free(vouchers *v);

#endif
