/* runlog_hole: proves that the end which was read is the end. An entry that somebody removed by
 * hand looks like it, and the entries behind it would be forgotten: deletes, terms, commits. */
#include <inttypes.h>

#include "runlog_impl.h"

/* A writer makes entry n only after it has read the one before, so that one was there first. A
 * store, or a cache of file names between it and us, may show them in another order for a
 * moment. */
static int look_again(runlog *log, uint64_t hole, err *e) {
  const io *io = log->s->io;
  int rc = runlog_catch_up(log, e);
  for (int i = 1; rc == 0 && log->st.next == hole && i < RUNLOG_LOOKS; i++) {
    io->sleep(io, RUNLOG_LOOK_PAUSE_NS);
    rc = runlog_catch_up(log, e);
  }
  return rc;
}

int runlog_hole(runlog *log, err *e) {
  char key[STORE_KEY_MAX];
  if (runlog_pass_over_lost(log)) return 0;
  int rc = runlog_key_at(log, log->st.next, key, e);
  return rc < 0 ? rc
                : err_set(e, ERR_CORRUPT,
                          "hole in the log at entry %" PRIu64
                          ": %s is not there, but the one after it is. Nothing is done with this "
                          "log until it is put back, from a copy or an older version of the store, "
                          "or `repair` has made a new one of what is left; the checkpoints "
                          "themselves stand where they were, and can be copied with any tool",
                          log->st.next, key);
}

int runlog_prove_end(runlog *log, err *e) {
  for (;;) {
    const uint64_t end = log->st.next;
    int64_t ignored;
    err why = {0};
    int rc = runlog_entry_time(log, end + 1, &ignored, &why);
    /* That there is nothing at all is not concluded from one answer. */
    if (rc == ERR_NOENT || rc == ERR_NOSTORE) return end == 0 ? runlog_catch_up(log, e) : 0;
    if (rc < 0) return err_set(e, rc, "%s", why.text);
    rc = look_again(log, end, e);
    if (rc < 0 || log->st.next != end) return rc;
    rc = runlog_hole(log, e);
    if (rc == 0) rc = runlog_catch_up(log, e);
    if (rc < 0) return rc;
  }
}
