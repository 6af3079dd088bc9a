/* detect: turns file-system events into "this unit is complete".
 *
 * The truth is a listing; an event is a wake-up, and evidence of facts that no listing shows: that
 * a file was renamed into place, or that its writer closed it. Just before a unit is called
 * complete it is listed once more, and any difference to the known picture starts its quiet time
 * again.
 *
 * Pure but for the listing: time and tree come from the io vtable, events may be fed by hand, so a
 * recorded training replays in milliseconds. One thread. Nothing is written below the root. */
#ifndef EVENT_DETECT_H
#define EVENT_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "event/rules.h"
#include "prims/hash.h"
#include "prims/match.h"
#include "prims/watch.h"

typedef enum detect_mode {
  DETECT_AUTO, /* inotify; polling where the file system hides other hosts' writes, or the watches
                  are used up */
  DETECT_POLL, /* list every poll_ns */
  DETECT_FED,  /* neither: the caller feeds events (tests, recordings) and calls detect_list(); with
                  a poll_ns it polls, whatever the file system */
} detect_mode;

/* Asks others that write into the tree, and whose files are not seen open from here, whether they see
 * the unit as it stands with this stamp (stamp.h), and nobody there has a file of it open. True: then
 * it is complete for them too. Else `why` says whom it waits for, and *wait for how many ns. */
typedef bool detect_agree_fn(void *ctx, const char *path, match_kind kind, uint64_t stamp,
                             char *why, size_t room, int64_t *wait);

typedef struct detect_options {
  const io *io;
  const log_sink *log; /* may be NULL */
  const char *root;    /* the watched directory; must exist */
  const rules *rules;  /* borrowed for the detector's life */
  detect_mode mode;
  int64_t poll_ns; /* 0: 5 s */
  bool (*has_writer)(
      const char *path);  /* does anybody have it open for writing? NULL: asks /proc */
  detect_agree_fn *agree; /* NULL: nobody else writes there */
  void *agree_ctx;
  /* Paths that are units by the caller's log or journal, relative to the root, borrowed for the
   * call: where such a path is a directory whose pattern asks for a proof ("{step}/"), it is a unit
   * from the first listing on, and nothing below it is one. Paths that are not there, or match no
   * pattern, are passed over. */
  const char *const *known;
  size_t known_count;
} detect_options;

typedef enum detect_state {
  DETECT_OPEN,     /* being written, or not yet quiet */
  DETECT_COMPLETE, /* may be saved */
  DETECT_UNPROVEN, /* only ever seen by a listing, or its writer died: nothing proves it whole */
  DETECT_BROKEN,   /* provably incomplete and nobody writes it */
  DETECT_GONE,     /* removed */
} detect_state;

typedef struct detect_unit {
  const char *path;  /* relative to the root: "exp/T7/checkpoint-3"; all strings: valid until the
                        next call */
  const char *group; /* "exp/T7"; "" for the root */
  const char *name;  /* "checkpoint-3" */
  match_kind kind;
  int64_t step; /* or MATCH_NO_STEP */
  detect_state state;
  const char
      *aside; /* GONE: where it lies now, since it was moved below the directory that it was in;
                        * else NULL */
  const char *reason;  /* its proof, or the missing part: "marker there, quiet 0.4 of 5 s" */
  const char *cause;   /* one word for the missing part, static (docs/why.md): "open", "not-quiet",
                        * "marker-missing", ...; NULL where nothing is missing */
  uint32_t generation; /* how often it was complete and then written again */
  bool in_place;       /* written again under its own name, or without a number in its name: a save
                        * reads a snapshot of it, not the unit itself */
  bool reused;         /* no number is in its name: the next save of its kind has the same name */
  bool lacking;        /* a file is missing that the unit of its kind before it had, or that it had
                        * itself when it was complete */
  bool above; /* a file above the checkpoints (rules.above): it belongs to a resume, and is none */
  bool alone; /* a directory without a marker, and no unit of its kind is known: nothing tells
                 whether a file is missing */
  uint64_t files, bytes;
  uint64_t stamp;     /* of its files when it was last judged: stamp.h */
  digest fingerprint; /* over names, sizes, mtimes and inodes */
  int64_t changed_ns; /* IO_WALL time of the newest mtime or ctime in it */
  int64_t stirred_at; /* IO_MONO time of its last change that was noticed */
  int64_t made_ns;    /* IO_WALL time of the newest mtime, which stays when it is copied or given to
                       * another user */
} detect_unit;

typedef struct detect detect;

/* Opens, sets the watches, and lists the tree. Units that are there already are UNPROVEN, BROKEN,
 * or, if a marker proves them, on their way to COMPLETE. */
int detect_open(const detect_options *options, detect **out, err *e);
void detect_close(detect *d); /* NULL is fine */

int detect_fd(const detect *d); /* readable when detect_run() has events; -1 when polling or fed */
bool detect_polling(const detect *d);
/* IO_MONO time at which detect_run() should be called though nothing is readable; INT64_MAX: never,
 * so an idle tree costs no wake-up unless it is polled. */
int64_t detect_due(const detect *d);

/* Takes in events, lists what needs it, and moves units on. */
int detect_run(detect *d, err *e);
/* Take in one event by hand (DETECT_FED; paths relative to the root), or a full listing. */
int detect_feed(detect *d, const watch_event *event, err *e);
int detect_list(detect *d, err *e);

/* Gives the next unit whose state changed since it was last handed out: 1 and *out, or 0. */
int detect_next(detect *d, detect_unit *out);
/* Looks one up by path: 1 and *out, or 0. */
int detect_find(detect *d, const char *path, detect_unit *out);
/* Walks all units that are there, in byte order of their paths. */
typedef int detect_unit_fn(void *ctx, const detect_unit *unit);
int detect_each(detect *d, detect_unit_fn *fn, void *ctx);

/* Tells the detector that a unit is complete: the caller's journal recorded it so with this
 * fingerprint, or a structural check passed. Moves an UNPROVEN or OPEN unit to COMPLETE if it still
 * looks so; 1 if it did, 0 if the tree has changed since. `fingerprint` NULL: whatever it is, by
 * the word of somebody who knows. */
int detect_prove(detect *d, const char *path, const digest *fingerprint, const char *reason,
                 err *e);

/* Hands in names of the files in the newest complete unit of this group: a unit of the same kind
 * that lacks one of them is not yet complete. The detector learns them itself; after a restart the
 * caller hands in those of the last commit (names relative to the unit, `series` as
 * match_series). */
int detect_learn(detect *d, const char *group, const char *unit_name, const char *const *names,
                 size_t count, err *e);

/* Tells the detector that the writer is gone. `clean`: it ended with 0, so the files that it closed
 * are complete without waiting, unless somebody else still has one open. Otherwise (a signal, an
 * error) the kernel closed its files for it: events at a unit at its death count for nothing, and a
 * unit that was not complete by then becomes UNPROVEN or BROKEN. But if all its files were closed,
 * a marker last, while the writer still lived (0.2 s before this call; 1 s if there is no unit
 * before it to compare with), the unit is complete at once. Call it as soon as the end is known,
 * after a detect_run.
 *
 * From here on no unit stays OPEN for ever: one that nobody has open is in another state once
 * detect_due() says INT64_MAX, or, when polling, after the quiet time. detect_writer_new: another
 * writer was started. */
void detect_writer_gone(detect *d, bool clean);
void detect_writer_new(detect *d);
/* Tells the detector that one of several writers died `lag_ns` ago at most, and the others live on: for
 * each unit that is not complete yet it is as detect_writer_gone says; what is written after that
 * counts as before. */
void detect_writer_died(detect *d, int64_t lag_ns);
/* Tells it whether others write into the tree. At first they do if there is somebody to be asked
 * (`agree`). */
void detect_several(detect *d, bool several);
/* Tells it that of some writers nobody knows whether they write: what is not complete now will never be
 * proven, and `why` says why. detect_writer_gone() comes next. */
void detect_doubt(detect *d, const char *why);

/* Counts files that were written since the start and belong to no unit and no exclude; *example is
 * one of them, relative to the root, or NULL. */
uint64_t detect_unmatched(const detect *d, const char **example);
/* True if there was ever a file below the root, whatever its name: at the start, or since. */
bool detect_saw_file(const detect *d);

#endif
