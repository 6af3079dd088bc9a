/* catalog_impl: what catalog.c and catalog_*.c share. */
#ifndef CORE_CATALOG_IMPL_H
#define CORE_CATALOG_IMPL_H

#include "catalog.h"

/* A pick as an item of a listing; *c is filled in for it, and borrows from the pick. */
catalog_item catalog_item_of(const catalog_pick *pick, runlog_commit *c);
/* ERR_NOENT, with a text that says what there is none of. */
int catalog_nothing_found(const char *where, const char *name, err *e);
bool catalog_is_absent(int rc);

#endif
