/* prepare_pointers: what prepare*.c ask of the files that name a checkpoint. */
#ifndef RUN_BEGIN_PREPARE_POINTERS_H
#define RUN_BEGIN_PREPARE_POINTERS_H

#include "event/pointers.h"
#include "run/begin/prepare.h"

bool prepare_stands(const struct prepare *p, const char *path); /* as a link, too */
bool prepare_any_whole(const survey *s, const char *prefix);

/* True if what stands at `path`, as the file of this name in the group, names what is not here, or not whole. */
bool prepare_pointer_lies(const struct prepare *p, const survey *s, const char *prefix,
                          const char *name, const char *path);
/* Its framework empties it before it writes it, and takes an empty one for none. */
bool prepare_pointer_is_empty(const struct prepare *p, const char *name, const char *path);

/* True of what a framework moves with each checkpoint, so that it leads to the newest. */
bool prepare_leads_to_one(const char *name, bool link);
/* 1 if one such file or link stands in the group, and names anything. */
int prepare_has_pointer(const struct prepare *p, const char *prefix, err *e);

/* Mends the pointers of all directories with units, each once. Those of p->came_back lead to the newest then. */
int prepare_mend_pointers(struct prepare *p, const survey *s, err *e);

/* A framework fails on a list that leads nowhere, and without it begins anew: neither is for us to choose. */
int prepare_refuse_list(const char *path, const pointer_row *row, const char *lie, err *e);

#endif
