/* owner: who may change a watched directory: restore into it, move to quarantine, free what
 * `keep_local` lets go. One of its watchers at a time, whatever their state directories are.
 *
 * The owner holds <home>/dir.lock, which the kernel drops when it dies, and the directory's own
 * lock, by which those meet that have no home in common. The kernel of another host knows neither
 * for sure: on a network file system the lock of a host that is cut off passes to another one,
 * while its owner is only frozen. So the lock file says who has it, and a record of another host
 * (or boot) that was not taken back there is passed by a new term of that owner's log alone: it
 * reads its term again before each change, and so finds out. */
#ifndef WATCHERS_OWNER_H
#define WATCHERS_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"
#include "prims/lock.h"

enum { OWNER_TEXT_MAX = 256, OWNER_ID_MAX = 64 };

/* What the lock file says of its holder. */
typedef struct owner_record {
  bool known;    /* it could be read */
  bool empty;    /* nobody has ever written there */
  bool released; /* that owner has given it up */
  bool brief;    /* it is held for a moment only, by one that watches beside others */
  bool copied;   /* on this boot the file was another one: it came along with its directory */
  char nonce[33];
  char host[OWNER_TEXT_MAX], machine[OWNER_ID_MAX], boot[OWNER_ID_MAX];
  int64_t pid;
  uint64_t start;
  char run[OWNER_TEXT_MAX], target[OWNER_TEXT_MAX], state[OWNER_TEXT_MAX];
  char state_id[OWNER_ID_MAX]; /* what the processes of its job carry */
  char log[OWNER_ID_MAX]; /* nonce of entry 0 of its log; "": it has no term yet, and so has changed
                           * nothing: it looks at this record again before it does */
  uint64_t term;
} owner_record;

typedef struct owner {
  bool held;     /* all below is of no account otherwise */
  bool asserted; /* there is no home: the user's word, and the directory's own lock */
  bool by_term;  /* `before` is of another host or boot: see owner_pass() */
  owner_record before, us;
  lock file, dir;
  char path[FS_PATH_MAX]; /* of dir.lock */
} owner;

/* Takes the directory without waiting, but for one that has it only briefly. `home` NULL: by the
 * user's word. `us` says who we are, without nonce, log and term. ERR_HELD names the owner. On
 * failure nothing is held. Nothing is written yet: out->before still stands there. */
int owner_take(const io *io, const char *home, const char *dir, const owner_record *us, owner *out,
               err *e);

/* Writes that it is ours, so that others can name us; if o->by_term, owner_pass() does so later. */
int owner_note(const io *io, const owner *o, err *e);

/* True if our term `term` of the log with this nonce lets us follow the former owner. */
bool owner_follows(const owner_record *before, const char *log, uint64_t term);
/* ERR_HELD with a text that names the former owner, of whom nobody knows whether it lives. */
int owner_refuse(const owner *o, const char *dir, err *e);

/* Writes that it is ours for good, with our term; log "": we have none. ERR_HELD if somebody else took it
 * since. */
int owner_pass(const io *io, owner *o, const char *log, uint64_t term, err *e);

/* Looks whether it still is: 0, ERR_HELD, or why that cannot be told. May be called on any thread,
 * but not beside owner_pass(). */
int owner_check(const io *io, const owner *o, err *e);

/* Gives it up; fine on one that is not held. */
void owner_drop(const io *io, owner *o);

/* True if the record is of a process of this boot of this machine. */
bool owner_of_this_boot(const owner_record *r, const owner_record *us);

/* What the lock file says now; ERR_* if it cannot be looked at. */
int owner_read(const io *io, const char *path, owner_record *out, err *e);

#endif
