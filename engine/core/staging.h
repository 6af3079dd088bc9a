/* staging: where a save stands whole before its attempt is announced, on stores that publish().
 *
 * <prefix>/.ckpt/staging/<term>.<nonce>/ has the files, then the manifest; what is saved beside
 * them lies in <term>.<nonce>.with/. The nonce is drawn when the staging begins and becomes that of
 * the attempt's entry, by which the directory is found again, whatever term adopts the attempt. So
 * a save that fails, for want of room say, has named nothing. Only the writer of its term works in
 * a staging that no entry names. Whoever takes one over, or removes it, renames it first: of two
 * who come for it one has it, and the other, who may hold it open, finds it gone. */
#ifndef CORE_STAGING_H
#define CORE_STAGING_H

#include "base/log.h"
#include "core/runlog.h"
#include "core/tree.h"

typedef struct staging {
  uint64_t term;
  char nonce[RUNLOG_NONCE_MAX];
  char key[STORE_KEY_MAX], with[STORE_KEY_MAX];
} staging;

/* Begins one for a save of `unit` with these files. `nonce`: of an earlier try of ours, or "". That
 * one is gone on with; else the newest of an older term that holds files of this unit and is this
 * user's, which is renamed; else it is a new one. *again: something may be there already, none of
 * which the tree does not have with the same size; whether the bytes are the same is not known.
 * Others of our own term are removed: jobs of a log come one after the other. */
int staging_begin(store *s, runlog *log, const char *unit, const tree *files, const char *nonce,
                  const log_sink *sink, staging *out, bool *again, err *e);

/* After the manifest was put: nothing is in it now that is not the checkpoint's. All of it is
 * durable when it returns. */
int staging_seal(store *s, const staging *st, err *e);

/* 1: the staging of the attempt with that nonce is there; 0: it is not. */
int staging_find(store *s, const runlog *log, const char *nonce, staging *out, err *e);

/* 1: the attempt's staging is there, this user's, and has its manifest, so that whoever owns the
 * attempt may show and commit it. */
int staging_is_whole(store *s, const runlog *log, const runlog_attempt *a, err *e);

/* Gives what lies beside it the name that the attempt's commit will say. Fine if it has that. */
int staging_show_with(store *s, const runlog *log, const staging *st, uint64_t attempt, err *e);

/* Removes what lies beside it, where the commit will not name it. */
int staging_drop_with(store *s, const staging *st, err *e);

/* For an attempt that was adopted: shows its directory, and what is beside it, if it stands whole
 * in its staging. Nothing happens if it does not. */
int staging_show(store *s, const runlog *log, const runlog_attempt *a, err *e);

/* Removes both of its directories. Fine if they are gone. */
int staging_drop(store *s, const staging *st, err *e);
/* That of an attempt which was given up, or is deleted, if there is one. */
int staging_drop_of(store *s, const runlog *log, const char *nonce, err *e);

/* What is in the staging and nobody goes on with: of attempts that are over, what an earlier
 * removal has left, and what an older term left that nothing was written to for `grace_ns`
 * (INT64_MAX: those stay; `now` is by the store's clock). This user's only: another's (`other`) is
 * only told, and so is all with `dry`. Whatever `told` returns, if it is not 0, ends the call,
 * which returns it. */
typedef int staging_told(void *ctx, const char *key, const char *reason, uint64_t bytes, bool other,
                         int status);
int staging_tidy(store *s, const runlog *log, int64_t now, int64_t grace_ns, bool dry,
                 staging_told *told, void *ctx, err *e);

#endif
