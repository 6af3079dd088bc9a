/* trail: the history of each unit on this machine, so that `why` can tell it, also after the run.
 *
 * It is one JSON record a line in <state>/why.jsonl, bounded: at TRAIL_BYTES_MAX the file becomes
 * why.1.jsonl (which replaces the one before) and a new one begins with the last word about each
 * unit that still counts. Nothing depends on it: a record that cannot be written is a warning once,
 * a line that cannot be read is passed over. It is not flushed. */
#ifndef WHY_TRAIL_H
#define WHY_TRAIL_H

#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"

enum { TRAIL_BYTES_MAX = 4 << 20 };

/* The words about units that hold a marker file of the policy. */
#define TRAIL_SAYS_NULL "its marker says that there is nothing in it to restore"
#define TRAIL_SAYS_TEMP "its marker says that it is temporary, and no result named it"

typedef enum trail_what {
  TRAIL_START,    /* a run began; the detail names its policies and target */
  TRAIL_OPEN,     /* being written, or waits for its rule; the reason says for which part */
  TRAIL_COMPLETE, /* the reason says by what */
  TRAIL_UNPROVEN, /* or broken, torn: left alone */
  TRAIL_GONE,     /* removed from the directory */
  TRAIL_SKIPPED,  /* a policy does not want it */
  TRAIL_WAITING,  /* in the queue */
  TRAIL_BEGUN,    /* its save runs */
  TRAIL_RETRYING, /* a try failed; another comes */
  TRAIL_COMMITTED,
  TRAIL_LET_GO,  /* a newer one took its place in the queue */
  TRAIL_RETIRED, /* changed or vanished while it was read */
  TRAIL_FAILED,  /* given up */
  TRAIL_FENCED,
  TRAIL_DROPPED, /* in the store: no longer kept */
  TRAIL_DELETED, /* in the store: the data is gone */
} trail_what;

typedef struct trail_record {
  int64_t time_ns; /* IO_WALL; 0: now */
  trail_what what;
  const char *unit;   /* path below the watched directory; NULL: the run itself */
  const char *cause;  /* of an OPEN or UNPROVEN one: detect_unit.cause; NULL: not stated */
  const char *policy; /* the policy that decided; NULL: none */
  const char *reason;
  int status; /* of a failure */
  unsigned tries;
  uint64_t commit;         /* its entry's number, 0: none */
  const char *log, *entry; /* the nonces of its log and its entry; NULL: not known */
  const char *content;     /* tells its content from another; NULL: not known */
  const char
      *left; /* the globs by which files were left out of this commit alone, with a line's end
                     * between them; NULL: none */
} trail_record;

/* The texts of a record one by one, from `unit` to `left`. */
enum { TRAIL_TEXTS = 8 };
const char **trail_text(trail_record *r, size_t i);

typedef struct trail trail;

/* Opens for appending; `dir` is the state directory. It never fails because of the content of the
 * file, or because it cannot be written: ERR_NOMEM and ERR_LIMIT (the path) are all. */
int trail_open(const io *io, const log_sink *log, const char *dir, trail **out, err *e);
void trail_close(trail *t); /* NULL is fine */

/* Notes a record. The same record for the same unit twice in a row is written once, and one that
 * says again for what an open unit waits (but for its numbers) only if it is the last word when the
 * trail is closed. `t` may be NULL. */
void trail_note(trail *t, const trail_record *record);

/* Reads all records of `unit` (NULL: of all), oldest first, from both files. Strings are valid
 * during the call. If `fn` returns other than 0, that ends it and is returned. ERR_NOENT if there
 * is no trail at all. */
typedef int trail_fn(void *ctx, const trail_record *record);
int trail_read(const io *io, const char *dir, const char *unit, trail_fn *fn, void *ctx, err *e);

#endif
