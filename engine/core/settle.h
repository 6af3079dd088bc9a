/* settle: what an earlier term left behind in a log is finished or given up, before a new term
 * saves anything. A sealed save (its manifest is there, so all of it is) is committed as it stands;
 * any other is swept and its files are removed. */
#ifndef CORE_SETTLE_H
#define CORE_SETTLE_H

#include "base/err.h"
#include "base/log.h"
#include "core/runlog.h"

/* The log must have a term of ours and no job of ours running. Litter that cannot be removed is
 * logged, no error. Blocks. */
int settle_attempts(store *s, runlog *log, const log_sink *sink, err *e);

/* Reads and checks the manifest of a checkpoint directory ("<prefix>/<dir>"). ERR_NOENT if there is
 * none. */
int settle_read_manifest(store *s, const char *dir_key, manifest *out, err *e);

#endif
