/* plain_record: the records that an upload writes, in the order that keeps them true. */
#ifndef CORE_PLAIN_RECORD_H
#define CORE_PLAIN_RECORD_H

#include "core/plain_place.h"
#include "core/tree.h"

/* What no record says of `name` as it is to be: file, link or directory. The records of the places
 * within this one that it lies in will be a part of this one's. */
void plain_record_touch(plain_place *at, const char *name);
/* Before anything is sent: puts the part of a record in the place of the record, and of those that
 * were touched. `local` is all that is to be there; it has digests (blocks) of the files that are
 * there already. */
int plain_record_begin(plain_place *at, const tree *local, err *e);
/* The part, with what is there by now. */
int plain_record_part(const plain_place *at, const tree *local, err *e);
/* When all is there: takes the parts within it away, puts the record, takes its part away. */
int plain_record_end(plain_place *at, const tree *local, err *e);

#endif
