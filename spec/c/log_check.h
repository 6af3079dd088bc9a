/* log_check: a second reading of the rules of a run's log, that shares no code with
 * engine/commit/log.
 *
 * It reads the entries themselves and is strict: writers that follow the rules never make an entry
 * that readers would have to ignore. */
#ifndef SPEC_LOG_CHECK_H
#define SPEC_LOG_CHECK_H

#include <stddef.h>

#include "store/store.h"

/* NULL if all entries hold, else which one does not and why (static memory, one thread).
 * *entries: how many there are. */
const char *log_check(store *s, const char *prefix, size_t *entries);

#endif
