/* companions_stored: the companions of a checkpoint (files saved beside it, by the policy's `with`)
 * as they stand in the store, and the rules for them.
 *
 * Whoever can write to a store can put a record there that no save has made, so a restore holds the
 * record to the rules of a save. */
#ifndef COMMIT_COMPANIONS_STORED_H
#define COMMIT_COMPANIONS_STORED_H

#include "commit/manifest/manifest.h"
#include "commit/log/runlog.h"
#include "store/store.h"

enum {
  COMPANIONS_MAX = 4096,             /* files of one checkpoint; more are left out */
  COMPANIONS_POINTER_MAX = 64 << 10, /* a file that may name a checkpoint is not larger */
  COMPANIONS_LIST_MAX = 8 << 20,     /* nor one that may list several */
  COMPANIONS_BYTES_MAX = 1 << 30,    /* of all files of one checkpoint */
};

/* What stands at the key, for the commit; files 0 if there is no manifest that can be read. A store
 * that does not answer is an error. */
int companions_look_at(store *s, const char *key, uint64_t term, runlog_companions *out, err *e);
/* Does the same for the newest term that put any, for an attempt that somebody else has sealed. */
int companions_newest(store *s, const char *prefix, uint64_t attempt, runlog_companions *out,
                      err *e);

/* True for a name of ours, relative to the group's directory, which is never anybody's data. */
bool companions_is_ours(const char *name);

/* These checkpoints have companions beside them. */
typedef struct companions_units {
  const manifest *unit;      /* the checkpoint that they belong to */
  const runlog_state *state; /* of its log, for the live ones beside it; NULL: not known */
} companions_units;

/* Refuses a manifest that no save makes with ERR_CORRUPT, so that somebody else who can write to
 * the store cannot make a restore write there: a name of ours, a name at or below a checkpoint's
 * (which may have brought a link that leads out), more files than a save takes. */
int companions_check(const manifest *m, const companions_units *units, err *e);

/* Reads and checks the companions' manifest that a commit names; the files are at `key` then.
 * ERR_CORRUPT if it is not that one, or cannot be of a save. Not for a commit without companions
 * (with.files is 0). */
int companions_manifest(store *s, const char *prefix, uint64_t attempt,
                        const runlog_companions *with, const companions_units *units, manifest *out,
                        char key[STORE_KEY_MAX], err *e);

#endif
