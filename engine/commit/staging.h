/* staging: the place where a save stands whole before its attempt is announced, on stores that
 * publish().
 *
 * <prefix>/.ckpt/staging/<term>.<nonce>/ has the files, then the manifest; companions lie in
 * <term>.<nonce>.with/. The nonce is drawn when the staging begins and becomes that of the
 * attempt's entry, by which the directory is found again, whatever term adopts the attempt. So a
 * save that fails, for want of room say, has named nothing. Only the writer of its term works in a
 * staging that no entry names. Whoever takes one over, or removes it, renames it first: of two who
 * come for it one has it, and the other, who may hold it open, finds it gone. */
#ifndef COMMIT_STAGING_H
#define COMMIT_STAGING_H

#include "base/log.h"
#include "commit/manifest/manifest.h"
#include "commit/log/runlog.h"

typedef struct staging {
  uint64_t term;
  char nonce[RUNLOG_NONCE_MAX];
  char key[STORE_KEY_MAX], companions[STORE_KEY_MAX];
} staging;

/* The files that a save will put. */
typedef struct staging_files {
  const void *ctx;
  /* Returns whether there is a file of that name; sets `type` and, of a regular file, `size`
   * then. */
  bool (*find)(const void *ctx, const char *name, manifest_type *type, uint64_t *size);
} staging_files;

/* Begins a staging for a save of `unit` with these files. It goes on with that of our earlier try,
 * if `nonce` (or "") names one; else with the newest of an older term that holds files of this unit
 * and is this user's, which it renames; else it makes a new one. *again: files may be there
 * already, only such as the save has with the same size; whether the bytes are the same is not
 * known. Other stagings of our own term are removed: jobs of a log come one after the other. */
int staging_begin(store *s, runlog *log, const char *unit, const staging_files *files,
                  const char *nonce, const log_sink *sink, staging *out, bool *again, err *e);

/* Called after the manifest was put: only files of the checkpoint are in it now. All of it is
 * durable when this returns. */
int staging_seal(store *s, const staging *st, err *e);

/* Returns 1 if the staging of the attempt with that nonce is there; 0 if it is not. */
int staging_find(store *s, const runlog *log, const char *nonce, staging *out, err *e);

/* Returns 1 if the attempt's staging is there, this user's, and has its manifest, so that the owner
 * of the attempt may show and commit it. */
int staging_is_whole(store *s, const runlog *log, const runlog_attempt *a, err *e);

/* Returns 1 as above, with the manifest. */
int staging_read(store *s, const runlog *log, const runlog_attempt *a, manifest *out, err *e);

/* Gives the companions the name that the attempt's commit will say. It is fine if they have it. */
int staging_show_companions(store *s, const runlog *log, const staging *st, uint64_t attempt,
                            err *e);

/* Removes the companions, where the commit will not name them. */
int staging_drop_companions(store *s, const staging *st, err *e);

/* Shows the directory and the companions of an attempt that was adopted, if it stands whole in its
 * staging. Nothing happens if it does not. */
int staging_show(store *s, const runlog *log, const runlog_attempt *a, err *e);

/* Removes both of its directories. It is fine if they are gone. */
int staging_drop(store *s, const staging *st, err *e);
/* Removes the staging of an attempt which was given up, or is deleted, if there is one. */
int staging_drop_of(store *s, const runlog *log, const char *nonce, err *e);

/* Removes the stagings that nobody goes on with: of attempts that are over, those that an earlier
 * removal left, and those of an older term that nothing was written to for `grace_ns` (INT64_MAX:
 * those stay; `now` is by the store's clock). Only this user's go: those of another (`other`) are
 * only told, and with `dry` so are all. If `told` returns other than 0, that ends the call, which
 * returns it. */
typedef int staging_told(void *ctx, const char *key, const char *reason, uint64_t bytes, bool other,
                         int status);
int staging_tidy(store *s, runlog *log, int64_t now, int64_t grace_ns, bool dry, staging_told *told,
                 void *ctx, err *e);

#endif
