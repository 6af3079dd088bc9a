/* log_read: what a log says by all of its entries, whatever a hint says; to be compared with what
 * who began at a snapshot knows. Everything here fails the test when it fails. */
#ifndef SPEC_LOG_READ_H
#define SPEC_LOG_READ_H

#include "commit/log/runlog.h"

/* Free it with runlog_state_free(). */
runlog_state log_read(store *s, const char *prefix);
/* Fails the test if they are not the same to the last member. */
void log_must_equal(const runlog_state *got, const runlog_state *want);

#endif
