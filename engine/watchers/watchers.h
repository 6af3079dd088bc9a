/* watchers: those that watch one directory, each with a state directory and a target of its own.
 *
 * Each has a file in <home>/watchers, which it holds locked while it lives, and into which it
 * writes what need not stay here for its sake. Nothing is freed in the directory before all of
 * them are done with it. One that was killed will come back, and still counts: its file goes when
 * it ends with nothing left to save, or by the user's hand. */
#ifndef WATCHERS_WATCHERS_H
#define WATCHERS_WATCHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/names.h"
#include "prims/fs.h"
#include "prims/lock.h"

/* What a watcher says of itself. */
typedef struct watcher_card {
  const char *state, *target, *run, *host;
  int64_t pid;
  const char *const *excludes; /* beside the built-in ones; it ends with NULL */
} watcher_card;

/* ---- our own ---- */

typedef struct watcher {
  lock file; /* its descriptor is written to */
  char path[FS_PATH_MAX];
  size_t size, most; /* beyond `most` bytes it is to be written anew */
  bool found;        /* a former process of this state directory had left it */
} watcher;

/* Makes our file, whose name is that of the state directory: a former process of the same one had
 * it, too. It is empty but for the card then, since what that one told is to be proven again.
 * ERR_HELD if another process has it. */
int watcher_join(const io *io, const char *home, const watcher_card *card, watcher *out, err *e);
/* Writes that the unit, as its files stand with this stamp (event/stamp.h), need not stay for us. */
int watcher_done(const io *io, watcher *w, const char *unit, uint64_t stamp, err *e);
/* Writes that the log of this group ("" for the directory's own), whose entry 0 has this nonce, is
 * ours: a unit that stands in it is saved for us, whoever saved it. */
int watcher_log(const io *io, watcher *w, const char *group, const char *log, err *e);
/* Begins anew, as a file grows with each unit: tell all that still holds. */
bool watcher_is_long(const watcher *w);
int watcher_again(const io *io, watcher *w, const watcher_card *card, err *e);
/* `stays`: it counts until it comes back. Else its file goes. */
void watcher_leave(const io *io, watcher *w, bool stays);

/* ---- the others ---- */

typedef struct watcher_unit {
  char *path;
  uint64_t stamp;
} watcher_unit;

typedef struct watcher_group {
  char *path, *log;
} watcher_group;

typedef struct watcher_seen {
  char *file, *state, *target, *run, *host; /* all but `file` are "?" where it cannot be read */
  int64_t pid;
  bool known, alive;
  names excludes;
  watcher_unit *units;
  size_t count, room;
  watcher_group *groups;
  size_t group_count, group_room;
} watcher_seen;

typedef struct watchers {
  watcher_seen *at;
  size_t count, room;
} watchers;

/* Reads the files of all others. `own` may be NULL. Nobody is there where there is no directory. */
int watchers_look(const io *io, const char *home, const watcher *own, watchers *out, err *e);
void watchers_free(watchers *w);

/* True if it is done with the unit of this stamp, which has to be made with its excludes. */
bool watcher_is_done(const watcher_seen *w, const char *unit, uint64_t stamp);

/* True if it saves to this very log. */
bool watcher_has_log(const watcher_seen *w, const char *group, const char *log);

/* A number that changes when one of these files does, or its watcher dies. */
uint64_t watchers_sum(const io *io, const char *home);

#endif
