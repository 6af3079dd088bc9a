/* transfer: moves the files of a unit between a local directory and a store, with digests computed
 * or checked on the way.
 *
 * Files are spread over the workers of a pool; each holds one block of 8 MiB, mapped for the file
 * and given back after it, so an idle engine holds none. A cancel flag is looked at between blocks.
 */
#ifndef JOB_MOVE_TRANSFER_H
#define JOB_MOVE_TRANSFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "commit/manifest/manifest.h"
#include "job/move/node_share.h"
#include "job/move/progress_sink.h"
#include "job/move/unit_files.h"
#include "prims/fs.h"
#include "prims/pool.h"
#include "store/store.h"

/* What this machine may have already of what transfer_down() brings. Nothing is believed of it but its
 * bytes: each block is held against the manifest, and one that differs comes from the store. */
typedef struct transfer_nearby {
  /* Makes the path of what may have the bytes of the manifest's file of this name; false: nothing
   * does. Called from any thread. */
  bool (*stood)(void *ctx, const char *name, char path[FS_PATH_MAX]);
  void *ctx;
  node_share *node;     /* tasks that bring the same at this time; may be NULL */
  uint32_t turn, turns; /* which of so many this one is, where they are known */
  /* How many it brought, without the user's metadata; of how many something came from the store; how
   * many came else from other tasks, in part; and how many from here alone. An empty one that did not
   * stand here is none of these. */
  atomic_uint files, fetched, shared, here;
} transfer_nearby;

typedef struct transfer {
  const io *io;
  store *store;
  pool *pool;              /* NULL: all on the calling thread */
  hash_kind hash;          /* for uploads */
  const char *mark;        /* each object that is sent is marked with it; may be NULL */
  int64_t since_ns;        /* no upload is gone on with that is older, by the store's clock */
  atomic_int *cancel;      /* may be NULL; not 0: stop with ERR_CANCELED */
  _Atomic uint64_t *done;  /* bytes that are there by now, at the target or here; may be NULL */
  _Atomic uint64_t *sent;  /* of an upload, where the store tells: bytes that went out; may be
                                  * NULL */
  _Atomic uint64_t *total; /* with TRANSFER_LIVE: of how many; may be NULL */
  bool later; /* transfer_down: the user's metadata comes too, if it was set after the save */
  const progress_sink *progress; /* not for transfer_up; may be NULL */
  transfer_nearby *nearby;       /* transfer_down; may be NULL */
  /* Where its files will stand when they are whole; NULL: no other task is told. */
  const char *shown;
} transfer;

/* Sends every regular file of the tree to "<prefix>/<name>" and fills in its digests. A file that
 * is not as the tree says, before or after it was read, is ERR_RETIRED. After a failure the file at
 * fault does not show, but those that were sent before it stay: the prefix is the caller's to
 * remove. `twice`: the content is read again and compared, because the times prove nothing. `how`:
 * STORE_STAGED, STORE_RESUME (store.h), and beside that one TRANSFER_ANEW: an object with other
 * bytes is removed and sent again, for it is ours alone.
 *
 * TRANSFER_LIVE: others may be writing to the tree. Of a file is sent what it has when it is opened,
 * whatever the tree says, and the tree is made to say that; that it grows after that is no matter
 * (fs_live.h). A file that was rewritten, or vanished, is ERR_RETIRED, but the other ones are sent
 * all the same: exactly those that were have blocks. */
enum { TRANSFER_ANEW = 1 << 8, TRANSFER_LIVE = 1 << 9 };
int transfer_up(const transfer *t, unit_files *from, const char *prefix, unsigned how, bool twice,
                err *e);

/* Brings everything of the manifest (sealed or parsed; else ERR_INVAL, here and below) into the
 * directory `to`, which must exist and be empty: data checked block by block (ERR_CORRUPT names
 * file and block), flushed, with mtimes and modes. No set-user-id bits are set; the owner may
 * always enter and write the directories, or they could not be moved. After a failure `to` holds a
 * part. */
int transfer_down(const transfer *t, const manifest *m, const char *prefix, const char *to, err *e);

/* Reads all of it and calls `finding` for each thing that is wrong: a file that is absent, of
 * another size, or whose block differs. `finding` (may be NULL) is called from any thread, one call
 * at a time. Returns how many, or a negative ERR_* if the store fails. */
typedef void transfer_finding(void *ctx, const char *name, const char *text);
int transfer_verify(const transfer *t, const manifest *m, const char *prefix,
                    transfer_finding *finding, void *ctx, err *e);

/* Returns 0 if the local tree matches the manifest (unit_files_matches) and its files have the digests,
 * else ERR_CORRUPT; ERR_RETIRED if it changes meanwhile. */
int transfer_check_local(const transfer *t, const unit_files *local, const manifest *m, err *e);
/* The same, whatever the mtimes are (unit_files_alike). */
int transfer_check_copy(const transfer *t, const unit_files *local, const manifest *m, err *e);

#endif
