/* watch: inotify on many directories, with paths instead of watch descriptors.
 *
 * It only reports what the kernel says. The caller lists a directory after it has added it: what
 * was made before the watch has no event. One `watch` serves one root and one thread. */
#ifndef PRIMS_WATCH_H
#define PRIMS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum watch_kind {
  WATCH_CREATE,
  WATCH_MODIFY,
  WATCH_CLOSE_WRITE,
  WATCH_MOVED_FROM,
  WATCH_MOVED_TO,
  WATCH_DELETE,
  WATCH_ATTRIB,   /* mode, times, link count: a file that was linked in has no other event */
  WATCH_OVERFLOW, /* events were lost: list everything again, and add each directory that is found:
                     until then none but the root is watched; path is "" */
  WATCH_GONE,     /* the root itself was removed, moved or unmounted; path is "" */
} watch_kind;

typedef struct watch_event {
  watch_kind kind;
  const char *path; /* relative to the root; valid during the callback */
  bool is_dir;
  uint32_t cookie; /* pairs MOVED_FROM and MOVED_TO; 0: none */
  bool back;       /* of a MOVED_TO: just before, something went the opposite way. It comes back, or
                      the two were exchanged and this is the other one: no event tells which */
} watch_event;

typedef struct watch watch;

/* Opens and adds the root itself. ERR_LIMIT when the user's inotify instances or watches are used
 * up (the text names the sysctl): the caller polls instead. */
int watch_open(watch **out, const char *root, err *e);
void watch_close(watch *w);

/* Readable when watch_read() has something. */
int watch_fd(const watch *w);

/* Adds a directory (relative to the root, no slash at the ends; "" is the root). Adding it twice is
 * fine, and its last name counts. ERR_NOENT if it is gone or is no directory, ERR_LIMIT when the
 * watches are used up. No symbolic link is followed, neither the last
 * component nor one before it. */
int watch_add(watch *w, const char *path, err *e);

/* Reads what is there without blocking and calls `event` for each, in order, with paths as they are
 * at that moment: a MOVED_TO that pairs with the MOVED_FROM of a watched directory has already
 * renamed that watch and all below it; or they have lost their paths, if it is `back`. Add and list
 * a directory in the callback of its MOVED_TO all the same, as after CREATE: it may come from
 * outside, and only the file system knows what is there by now. What is not added by then has no
 * watch any more after a `back`.
 *
 * A directory that was removed loses its watches at once. One that was moved out of the tree loses
 * them when the next events are read and its MOVED_TO is not among them. Nothing that happens in a
 * directory is reported between its MOVED_FROM and its MOVED_TO. A file system that is unmounted
 * inside the tree is a DELETE of its directory. A root that is removed while somebody has it open
 * is GONE when they let go of it; a move of a directory above the root is not seen.
 *
 * MODIFY events that repeat the previous event of the same call are dropped. The callback must not
 * call back but for watch_add. Returns the number of events, or a negative ERR_*: then events may
 * be lost, as after WATCH_OVERFLOW. */
typedef void watch_fn(void *ctx, const watch_event *event);
int watch_read(watch *w, watch_fn *event, void *ctx, err *e);

#endif
