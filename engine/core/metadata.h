/* metadata: the file MANIFEST_METADATA at the top of a checkpoint, as it stands in the store.
 *
 * It is the user's: it may be replaced there after the save (never removed), so what differs from
 * the manifest's record of it is no damage, and its digest tells nothing but that. */
#ifndef CORE_METADATA_H
#define CORE_METADATA_H

#include "core/manifest.h"
#include "store/store.h"

/* Appends what stands at `key` now. *mtime_ns: the record's if that is what was saved, else when it
 * was replaced, by the store's clock. ERR_CORRUPT if it is missing, or larger than
 * MANIFEST_METADATA_MAX. */
int metadata_read(store *s, const char *key, hash_kind hash, const manifest_entry *record, buf *out,
                  int64_t *mtime_ns, err *e);

#endif
