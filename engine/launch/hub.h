/* hub: the task that watches a directory asks the others that write there: whether a unit is complete
 * for them too, and whether they have ended. One thread. */
#ifndef LAUNCH_HUB_H
#define LAUNCH_HUB_H

#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "prims/match.h"

typedef struct hub hub;

typedef struct hub_options {
  const io *io;
  const log_sink *log;
  const char *home;      /* folder.h */
  const char *launch;    /* its id */
  uint32_t index, count; /* of the tasks that write there: our own, and all; count at least 2 */
  const char *const *excludes; /* beside the built-in ones; ends with NULL */
  /* For one that says nothing, once our own job has ended; and from the start for one that has never
   * said anything. If none has, two minutes at most. After that such a one is taken not to run below
   * us, and nobody waits for it, until it comes after all. */
  int64_t wait_ns;
  /* Why they may run below us and not see us: then such a one stays unknown, whatever the time. What has to be
   * done stands in it, too. NULL: they see us. */
  const char *hidden;
} hub_options;

/* Makes the folder, and asks the first time: after that the others may begin. */
int hub_open(const hub_options *o, hub **out, err *e);
/* `over`: in order; else it looks as if we had been killed. NULL is fine. */
void hub_close(hub *h, bool over);

/* True if the others see these files too, and have none of them open. Else `why` says which task is
 * waited for, and *wait after how many ns it is worth to ask again. */
bool hub_agrees(hub *h, const char *unit, match_kind kind, uint64_t stamp, char *why, size_t room,
                int64_t *wait);

/* What has become of the tasks. */
typedef enum hub_state {
  HUB_LIVES,   /* some task may still write */
  HUB_OVER,    /* all have ended */
  HUB_UNKNOWN, /* ours has ended, and the time is over: of some nobody knows */
} hub_state;

/* Takes in that our own job has ended. */
void hub_ended(hub *h, bool clean);
/* True if all others are taken not to run below us, when they were last looked for. */
bool hub_alone(const hub *h);
/* One was started, the first or another. */
void hub_begun(hub *h);
/* Reads what was answered, and asks anew where it is due. `busy`: something is being written, so that it
 * matters when a task dies. `end_at`: IO_MONO time after which nobody is waited for; INT64_MAX: none.
 * *due: when to call it again. */
hub_state hub_step(hub *h, bool busy, int64_t end_at, int64_t *due);
/* True if all that have ended did so with 0. */
bool hub_clean(const hub *h);
/* How many others may still write; `unknown`: that have said nothing, or nothing for long. */
uint32_t hub_left(const hub *h, uint32_t *unknown);
/* True if another task ended badly since this was last asked; *lag_ns: how long ago it was known to
 * live. */
bool hub_lost_one(hub *h, int64_t *lag_ns);
/* Names those that are not known to have ended: "task 3 (on n3)", "tasks 1 and 2 of 4". */
void hub_name_left(const hub *h, char *text, size_t room);

#endif
