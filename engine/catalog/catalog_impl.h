/* catalog_impl: declarations that catalog.c and catalog_*.c share. */
#ifndef CATALOG_CATALOG_IMPL_H
#define CATALOG_CATALOG_IMPL_H

#include "catalog.h"

/* Is catalog_find(); `foreign` (of URI_MAX bytes, may be NULL) gets the place if all of it is another
 * tool's. */
int catalog_find_here(const io *io, const log_sink *log, const char *where, catalog_pick *out,
                      char *foreign, err *e);
/* Makes a pick an item of a listing; *c is filled in for it, and borrows from the pick. */
catalog_item catalog_item_of(const catalog_pick *pick, runlog_commit *c);
/* Fails with ERR_NOENT, with a text that says which checkpoint was not found. */
int catalog_nothing_found(const char *where, const char *name, err *e);
bool catalog_is_absent(int rc);

#endif
