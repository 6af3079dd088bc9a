/* companions: files beside a unit that belong to a resume (a pointer file like `latest`, results,
 * logs), saved with its commit and put back after it.
 *
 * They stand at <prefix>/.ckpt/with/<attempt>/<term>/, with a manifest of their own, which the
 * commit names. Unlike a unit, they may be written to at any time: a file that cannot be read as of
 * one moment is left out, and no checkpoint fails for it. */
#ifndef JOB_SAVE_COMPANIONS_H
#define JOB_SAVE_COMPANIONS_H

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "commit/companions_stored.h"
#include "commit/manifest/manifest.h"
#include "event/rules.h"

typedef struct companion {
  char *name;         /* relative to the group's directory */
  manifest_type type; /* a file or a link */
  uint64_t size;
} companion;

typedef struct companions {
  companion *items; /* in byte order of their names, each once */
  size_t count, room;
  uint64_t bytes;
  bool cut; /* more were found than we take */
} companions;

/* They are looked for below <root>/<group>, never in a unit. */
typedef struct companions_place {
  const io *io;
  const log_sink *log;
  const rules *rules;
  const char *root, *group; /* group "": the root itself */
  bool near; /* only what stands in the group's directory itself: no walk is needed */
} companions_place;

/* Finds the files that `globs` (ended by NULL, relative to the group's directory; a directory's
 * name stands for all files in it) name, and the links in the directory itself that lead to a
 * checkpoint there. A directory that cannot be listed is logged and left out.
 * ERR_NOMEM. */
int companions_find(const companions_place *at, const char *const *globs, companions *out, err *e);
void companions_free(companions *c); /* a zeroed one is fine */

/* True if this text names the unit: by its name, or, if it is nothing but a number, by its step. */
bool companions_name_unit(const char *text, size_t len, const char *unit, int64_t step);

#endif
