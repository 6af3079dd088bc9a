/* run_stall: names a save that makes no progress, so that nothing waits in silence; after ten times
 * as long the save is stopped and tried again. A save that cannot be stopped (a call into a file
 * system that hangs) is at least named. */
#include <inttypes.h>

#include "base/seconds.h"
#include "run/run_state.h"

enum { STALLS_MAX = 10 /* times stall_ns */ };

/* Ranks have their own deadline, which names the missing ones. */
static int64_t longest(const run *r) {
  int64_t all = r->ranks.world > 1 ? r->ranks.wait_ns : 0;
  if (r->stall_ns > SECONDS_FOREVER / STALLS_MAX) return SECONDS_FOREVER;
  return seconds_later(STALLS_MAX * r->stall_ns, all);
}

static void say(const run *r, const run_save *s, int64_t silent_ns) {
  const char *what = atomic_load(&s->job.doing.what);
  char ranks[160] = "";
  ranks_missing_text(s->job.doing.ranks, r->ranks.world, ranks, sizeof ranks);
  log_say(r->env->log, LOG_WARN,
          "%s: no progress for %" PRId64 " s (%s%s%s): %" PRIu64 " of %" PRIu64 " bytes are at %s",
          s->unit->path, silent_ns / 1000000000, what ? what : "at its beginning",
          *ranks ? ", " : "", ranks, (uint64_t)atomic_load(&s->job.moved),
          (uint64_t)atomic_load(&s->job.total), r->places.target_text);
}

static int64_t look_at(const run *r, run_save *s, int64_t now) {
  uint64_t moved = atomic_load(&s->job.moved) + atomic_load(&s->job.doing.alive);
  int64_t since = atomic_load(&s->job.doing.since);
  if (s->alive_at == 0 || moved != s->moved) s->alive_at = now;
  if (since > s->alive_at) s->alive_at = since;
  if (s->alive_at > s->said_at) s->said_at = s->alive_at;
  s->moved = moved;
  int64_t silent = now - s->alive_at;
  if (now - s->said_at >= r->stall_ns) {
    say(r, s, silent);
    s->said_at = now;
  }
  if (silent >= longest(r) && !s->stalled && !atomic_load(&s->job.cancel)) {
    s->stalled = true;
    atomic_store(&s->job.cancel, JOB_LEAVE);
  }
  return seconds_later(s->said_at, r->stall_ns);
}

int64_t run_watch_stalls(run *r, int64_t now) {
  int64_t due = INT64_MAX;
  for (size_t i = 0; i < r->group_count; i++) {
    if (!r->groups[i]->save) continue;
    int64_t next = look_at(r, r->groups[i]->save, now);
    if (next < due) due = next;
  }
  return due;
}
