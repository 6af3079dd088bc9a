/* node_share: the tasks of one launch on one node that restore the same read it from the store once.
 *
 * They meet in a directory of this node that their user alone may enter. It has a file for each file of a
 * checkpoint, named by its digest. Who has that one locked fetches, and notes in it where the bytes are
 * then; the others wait for the lock, and read them there. A dead one's lock is free. The file's two times are
 * signs of life: it was read at the last beat, and written to when the last block came. Who is stopped shows
 * none; who waits for a store that does not answer shows the first.
 *
 * It only saves: where anything is wrong, each fetches by itself. Nothing that is read so is believed:
 * the reader holds it against the digests. Calls are thread-safe, but for open and close. */
#ifndef JOB_MOVE_NODE_SHARE_H
#define JOB_MOVE_NODE_SHARE_H

#include <stdatomic.h>

#include "base/io.h"
#include "base/log.h"
#include "prims/fs.h"
#include "prims/hash.h"
#include "prims/lock.h"

typedef struct node_share node_share;

/* Enters the meeting of those that give the same `launch`, `boot` (of the node) and `target`, below
 * `<root>/ckpt-lua-UID`, and removes there what dead ones have left. NULL: there is none, for a reason
 * that the log has. `io` and `log` are borrowed. */
node_share *node_share_open(const io *io, const log_sink *log, const char *root, const char *launch,
                            const char *boot, const char *target);
/* Leaves it; the last one removes it. NULL is fine. */
void node_share_close(node_share *s);

/* How a file is come by. With neither of both, all of it is to be fetched, and nobody waits for it. */
typedef struct node_claim {
  struct node_claim *next; /* of those that are to fetch */
  int from;  /* open for reading: another task has put the bytes there; -1: none has */
  lock held; /* ours to fetch, and others wait */
  char path[FS_PATH_MAX];
} node_claim;

/* Asks for the file of this digest, and waits for the one who fetches it: for 30 s without a sign of life, or ten
 * minutes without a block, whoever tried meanwhile. *cancel (may be NULL) ends the wait. A claim stays where it
 * is and is ended on the thread that made it, before that makes another. `s` may be NULL. */
void node_share_claim(node_share *s, const digest *file, const atomic_int *cancel, node_claim *out);
/* Tells those that wait that one more block is here. */
void node_share_alive(node_share *s, const node_claim *c);
/* Tells those that wait for any file that we fetch that we are alive: to be called every NODE_SHARE_BEAT_NS. */
#define NODE_SHARE_BEAT_NS (INT64_C(5) * 1000000000)
void node_share_beat(node_share *s);
/* Ends a claim: all bytes are at `staged`, which will be moved to `shown`; NULL: they are not. */
void node_share_end(node_share *s, node_claim *c, const char *staged, const char *shown);

#endif
