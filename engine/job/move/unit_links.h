/* unit_links: the links of a unit that are followed, for the listing of its files. */
#ifndef JOB_MOVE_UNIT_LINKS_H
#define JOB_MOVE_UNIT_LINKS_H

#include "base/log.h"
#include "job/move/link_follow.h"
#include "job/move/unit_files.h"

/* Holds the directory `dir` below `root`, in which the names of the unit stand, if it is not held
 * yet. t->links stays NULL where root may not go there: no link is followed then. ERR_RETIRED if
 * it is gone. */
int unit_links_hold(const io *io, unit_files *t, const char *root, const char *dir, err *e);

/* Opens what the link leads to now: ERR_RETIRED if that is no file. `path` names it. */
int unit_links_open(const unit_file *f, const char *path, err *e);

/* Lets each inode that a link leads to be there once: where it has another name in the unit, or
 * an earlier link leads to it, the link becomes one to that name. The files are sorted. */
int unit_links_unite(unit_files *t, err *e);

/* Says in one warning which links of `unit` stay links that lead out of it, or nowhere. */
void unit_links_tell(const unit_files *t, const log_sink *log, const char *unit);

#endif
