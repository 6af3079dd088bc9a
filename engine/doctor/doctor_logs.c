/* doctor_logs: the logs that stand at a place, a line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "commit/lease.h"
#include "doctor_impl.h"

static const char *word_of_lease(store *s, const runlog *log, char *text, size_t room) {
  const runlog_term *term = &runlog_view(log)->term;
  lease_seen lease;
  int64_t now = 0;
  err why = {0};
  if (lease_look(s, runlog_prefix(log), term->n, &lease, &why) < 0)
    return "its lease is unreadable";
  if (!lease.present) return "no writer has a lease";
  if (lease.released) return "its last writer has ended";
  now = s->io->now(s->io, IO_WALL);
  int64_t age = (now - lease.renewed_ns) / 1000000000;
  if (age > LEASE_LIFE_S) return "its last writer is silent";
  snprintf(text, room, "a writer on %.100s renewed its lease %" PRId64 " s ago", term->writer.host,
           age < 0 ? 0 : age);
  return text;
}

static int on_log(void *ctx, const catalog_place *at, runlog *log, err *e) {
  doctor *d = ctx;
  const runlog_state *state = runlog_view(log);
  const runlog_commit *c = runlog_newest(state, NULL);
  const char *prefix = runlog_prefix(log);
  char lease[300];
  size_t live = 0;
  err why = {0};
  (void)e;
  if (runlog_check_damage(log, &why) < 0) { /* it is read all the same, and nobody appends to it */
    doctor_fault(d, "log", &why, "nothing can be saved here",
                 "`repair`; docs/repair.md says what comes before");
    return 0;
  }
  for (size_t i = 0; i < state->commit_count; i++) live += state->commits[i].life == RUNLOG_LIVE;
  doctor_say(d, "log", STORE_FINE, "",
             "%s%sthe log of run %s has %zu checkpoint%s in %" PRIu64
             " entries, the newest %s; %s%s",
             *prefix ? prefix : "", *prefix ? ": " : "", state->run_id, live, live == 1 ? "" : "s",
             state->next, c ? c->unit : "none", word_of_lease(at->store, log, lease, sizeof lease),
             state->ended ? "; the run was removed" : "");
  return 0;
}

static int on_unread(void *ctx, const char *prefix, int status, const char *why) {
  char text[ERR_TEXT_MAX + 200];
  snprintf(text, sizeof text, "%s%sthe log cannot be read: %s", prefix, *prefix ? ": " : "", why);
  doctor_tell(ctx, &(store_finding){.topic = "log",
                                    .word = STORE_FAULT,
                                    .status = status,
                                    .text = text,
                                    .advice = "see what the text names; nothing was changed"});
  return 0;
}

void doctor_look_at_logs(doctor *d, const log_sink *log, const char *where) {
  err why = {0};
  int rc = catalog_logs_all(d->io, log, where, on_log, on_unread, d, &why);
  if (rc == ERR_NOENT || rc == ERR_NOSTORE)
    doctor_say(d, "log", STORE_FINE, "", "nothing was ever committed here: a run may begin");
  else if (rc < 0)
    doctor_fault(d, "log", &why, "what was saved here cannot be looked at", "");
}
