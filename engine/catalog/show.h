/* show: makes JSON of everything that is known of one checkpoint. */
#ifndef CATALOG_SHOW_H
#define CATALOG_SHOW_H

#include "asked.h"
#include "commit/manifest/manifest.h"

/* Shows the newest live checkpoint that is meant: its commit, files and pins. *out is the
 * caller's. */
int show_checkpoint(const asked *a, char **out, err *e);

/* The first `most` links of the manifest that lead out of it or nowhere, as a JSON array of objects
 * with "name", "target" and "leads" ("out", "nowhere"); *count is how many there are. *out is the
 * caller's. */
int show_links(const manifest *m, size_t most, uint64_t *count, char **out, err *e);

#endif
