/* metadata: the file MANIFEST_METADATA at the top of a checkpoint, as it stands in the store.
 *
 * It is the user's: it may be replaced there after the save (never removed). So a difference from
 * the manifest's record is no damage; the recorded digest only tells that there is one. */
#ifndef COMMIT_METADATA_H
#define COMMIT_METADATA_H

#include "commit/manifest/manifest.h"
#include "store/store.h"

/* Appends the file's present text. *mtime_ns: the record's time if the text is the saved one, else
 * the time of the replacement, by the store's clock. ERR_CORRUPT if it is missing, or larger than
 * MANIFEST_METADATA_MAX. */
int metadata_read(store *s, const char *key, hash_kind hash, const manifest_entry *record, buf *out,
                  int64_t *mtime_ns, err *e);

/* Appends the text of one that was set after the save, where the manifest has none; *mtime_ns: when,
 * by the store's clock. Returns 1, or 0 if there is none: one that is too large, or no object, is
 * passed over with a warning. */
int metadata_read_later(store *s, const char *key, buf *out, int64_t *mtime_ns, err *e);

#endif
