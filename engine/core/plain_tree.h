/* plain_tree: the local side of plain transfers: what of a directory they take. */
#ifndef CORE_PLAIN_TREE_H
#define CORE_PLAIN_TREE_H

#include "core/plain.h"
#include "core/tree.h"

/* ERR_NOENT, ERR_INVAL if there is no directory. A link to one is fine. */
int plain_tree_check(const plain *p, const char *dir, err *e);
/* ERR_INVAL if what is to be made, at `to`, lies in the directory, and so would be taken the next
 * time; fine if it is excluded. */
int plain_tree_apart(const plain *p, const char *dir, const char *to, err *e);
/* All of it but what is excluded, and records. */
int plain_tree_scan(const plain *p, const char *dir, tree *out, err *e);
const tree_file *plain_tree_find(const tree *t, const char *name); /* NULL: none */

/* Is it excluded by the patterns? */
bool plain_excluded(const plain *p, const char *name);

#endif
