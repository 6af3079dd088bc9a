/* plain_record: the records that an upload writes, in the order that keeps them true. */
#ifndef CORE_PLAIN_RECORD_H
#define CORE_PLAIN_RECORD_H

#include "core/plain_place.h"
#include "core/tree.h"

/* Before anything is sent: puts the part of a record in the place of the record, and of those of
 * places within this one that something of `send` goes to. `local` is all that is to be there; it
 * has digests (blocks) of the files that are there already. */
int plain_record_begin(plain_place *at, const tree *local, const tree *send, err *e);
/* The part, with what is there by now. */
int plain_record_part(const plain_place *at, const tree *local, err *e);
/* When all is there: puts the record, and takes the parts away. */
int plain_record_end(plain_place *at, const tree *local, err *e);

#endif
