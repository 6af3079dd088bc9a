/* tree_record: writes the records of an upload, in the order that keeps them true. */
#ifndef JOB_TREE_TREE_RECORD_H
#define JOB_TREE_TREE_RECORD_H

#include "job/tree/tree_place.h"
#include "job/move/unit_files.h"

/* Notes a `name` (file, link or directory) that no record has as it is to be. The places within
 * this one that it lies in become parts of this one. */
void tree_record_touch(tree_place *at, const char *name);
/* Called before anything is sent: puts a partial record in the place of the record, and of those of
 * the places that were touched. `local` has everything that is to be there; the files that are
 * there already have digests (blocks) in it. */
int tree_record_begin(tree_place *at, const unit_files *local, err *e);
/* Puts the partial record again, with the files that are there by now. */
int tree_record_part(const tree_place *at, const unit_files *local, err *e);
/* Called when everything is there: takes the partial records within it away, puts the record, takes
 * its partial record away. */
int tree_record_end(tree_place *at, const unit_files *local, err *e);

#endif
