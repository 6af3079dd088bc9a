/* companions: files beside a unit that belong to a resume (a pointer file like `latest`, results,
 * logs), saved with its commit and put back after it.
 *
 * They stand at <prefix>/.ckpt/with/<attempt>/<term>/, with a manifest of their own, which the
 * commit names. Other than a unit they may be written to at any time: what cannot be read in one
 * piece is left out, and no checkpoint fails for it. */
#ifndef CORE_COMPANIONS_H
#define CORE_COMPANIONS_H

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "core/manifest.h"
#include "core/restore.h"
#include "core/rules.h"
#include "core/runlog.h"
#include "store/store.h"

enum {
  COMPANIONS_MAX = 4096,             /* files of one checkpoint; more are left out */
  COMPANIONS_POINTER_MAX = 64 << 10, /* a file that may name a checkpoint is not larger */
  COMPANIONS_BYTES_MAX = 1 << 30,    /* of all files of one checkpoint */
};

/* ---- which there are ---- */

typedef struct companion {
  char *name;         /* relative to the group's directory */
  manifest_type type; /* a file or a link */
  uint64_t size;
} companion;

typedef struct companions {
  companion *items; /* in byte order of their names, each once */
  size_t count, room;
  uint64_t bytes;
  bool cut; /* there are more than we take */
} companions;

/* Where they are looked for: below <root>/<group>, never in a unit. */
typedef struct companions_place {
  const io *io;
  const log_sink *log;
  const rules *rules;
  const char *root, *group; /* group "": the root itself */
} companions_place;

/* Those that `globs` (ended by NULL, relative to the group's directory; a directory's name stands
 * for all that is in it) name. What cannot be listed is logged and left out. ERR_NOMEM. */
int companions_find(const companions_place *at, const char *const *globs, companions *out, err *e);
void companions_free(companions *c); /* a zeroed one is fine */

/* Does this text name the unit: by its name, or, if it is nothing but a number, by its step? */
bool companions_name_unit(const char *text, size_t len, const char *unit, int64_t step);

/* Does this text, of a size that a pointer has, name a unit that stands in the group's directory
 * and is not `unit`? Its name into other[256]. */
bool companions_name_another(const companions_place *at, const char *text, size_t len,
                             const char *unit, char other[256]);

/* ---- in the store ---- */

/* What stands at runlog_key_with(), for the commit; files 0 if there is no manifest that can be
 * read. A store that does not answer is an error. */
int companions_look(store *s, const char *prefix, uint64_t attempt, uint64_t term, runlog_with *out,
                    err *e);
/* The same of a key. */
int companions_look_at(store *s, const char *key, uint64_t term, runlog_with *out, err *e);
/* The same of the newest term that put any, for an attempt that somebody else has sealed. */
int companions_newest(store *s, const char *prefix, uint64_t attempt, runlog_with *out, err *e);

/* ---- what they may be, when they are saved and when they are put back ---- */

/* A name of ours, relative to the group's directory, is never anybody's data. */
bool companions_is_ours(const char *name);

/* The checkpoints that they stand beside. */
typedef struct companions_units {
  const manifest *unit;      /* their own */
  const runlog_state *state; /* of its log, for the live ones beside it; NULL: not known */
} companions_units;

/* ERR_CORRUPT for what no save makes, so that a store that somebody else can write to cannot use
 * them for it: a name of ours, a name at or below that of a checkpoint (which may have brought a
 * link that leads out), more of them than are taken. */
int companions_check(const manifest *m, const companions_units *units, err *e);

/* ---- restoring ---- */

/* Reads the manifest of those that a commit names, and checks it; they are at `key` then.
 * ERR_CORRUPT if it is not the one, or cannot be of a save. Not for a commit without (with.files is
 * 0). */
int companions_manifest(store *s, const char *prefix, uint64_t attempt, const runlog_with *with,
                        const companions_units *units, manifest *out, char key[STORE_KEY_MAX],
                        err *e);

/* ERR_EXISTS if one of them stands in `dir` already with another content, or would lie below a link
 * or a file. `io` holds `dir` (fs_held), here and below. */
int companions_check_free(const io *io, const manifest *m, const char *dir, err *e);

/* Moves one away that stands in the directory with another content. */
typedef int companions_clear_fn(void *ctx, const char *name, err *e);

typedef struct companions_target {
  const char *dir; /* the group's directory; it exists */
  const log_sink *log;
  bool only_missing;          /* what stands there stays, whatever its content */
  companions_clear_fn *clear; /* else: makes room. NULL: what differs is ERR_EXISTS */
  void *ctx;
} companions_target;

/* Puts those into the directory that are not there as they were saved: fetched into the staging,
 * every block checked, flushed, then renamed, those that may name a checkpoint last. Returns how
 * many, or an error. Nothing is written through a link: what would lie below one, or below a file,
 * is ERR_EXISTS, or logged and left out where `clear` or `only_missing` is set. Absolute paths in
 * them that lead nowhere are logged. `r` and `key` as for restore_unit. */
int companions_restore(const restore *r, const manifest *m, const char *key,
                       const companions_target *to, err *e);

#endif
