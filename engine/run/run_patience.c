/* run_patience: while a run begins, a store that does not answer is waited for, and that is told. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/seconds.h"
#include "run/run_state.h"
#include "run/start/start_rule.h"
#include "run/wait/ticker.h"

enum { TELL_S = 15 };

/* Called once a second, on a thread of its own. */
static void tell_silence(void *ctx, uint64_t n) {
  run *r = ctx;
  const io *io = r->outer;
  int64_t since = atomic_load(&r->store->silent_ns);
  int64_t silent_s = since ? (io->now(io, IO_MONO) - since) / SECOND_NS : 0;
  (void)n;
  if (silent_s < r->silence_told_s) r->silence_told_s = 0; /* it answered meanwhile */
  if (silent_s - r->silence_told_s < TELL_S) return;
  r->silence_told_s = silent_s;
  log_say(r->env->log, LOG_WARN,
          "%s has not answered for %" PRId64 " s; %" PRId64 " s are waited (`start_wait`)",
          r->places.target_text, silent_s,
          (atomic_load(&r->store->patience_ns) + SECOND_NS - 1) / SECOND_NS);
}

void run_patience_begin(run *r, int64_t wanted_ns) {
  bool before = journal_has_committed(r->journal, r->places.target_text);
  atomic_store(&r->store->patience_ns, start_patience(wanted_ns, before));
  if (uri_dir(&r->places.target)) return; /* a directory answers, or the caller hangs with it */
  ticker_begin(SECOND_NS, tell_silence, r, &r->silence, NULL); /* it is only for show */
}

void run_patience_end(run *r) {
  ticker_end(r->silence);
  r->silence = NULL;
  if (r->store) atomic_store(&r->store->patience_ns, 0);
}

void run_patience_explain(const run *r, err *e) {
  bool outage = e && (e->code == ERR_IO || e->code == ERR_TIMEOUT);
  int64_t patience = r->store ? atomic_load(&r->store->patience_ns) : 0;
  if (outage && patience && atomic_load(&r->store->silent_ns))
    err_set(e, e->code,
            "%.800s; the store did not answer for %" PRId64 " s (`start_wait` waits longer)",
            e->text, (patience + SECOND_NS - 1) / SECOND_NS);
}
