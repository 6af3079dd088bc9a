/* detect_node: the detector's picture of the watched tree: how each name was when it was last
 * looked at, and the news of events about it since. Private to detect. */
#ifndef EVENT_DETECT_NODE_H
#define EVENT_DETECT_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

typedef enum node_type { NODE_FILE, NODE_DIR, NODE_LINK, NODE_OTHER } node_type;

/* The evidence about a file's writer. */
typedef enum node_evidence {
  NODE_UNPROVEN, /* it was there before us, or its writer died */
  NODE_SEEN,     /* it came or changed while we watched, but no event told of a close */
  NODE_OPEN,     /* written, and not closed since */
  NODE_CLOSED,   /* closed by a writer that lived, or renamed into place */
} node_evidence;

struct unit;
typedef struct node node;
struct node {
  node *parent; /* NULL: the root, or detached */
  node **children;
  size_t count, room;
  struct unit *unit;   /* the unit whose root this is; not of a group */
  struct unit *groups; /* the groups that lie in this directory */
  char *name;
  char *home; /* the directory in which it was a unit when it was moved; NULL: it was not */
  uint64_t dev, ino, size, seq; /* seq: of the newest change in the detector's own order */
  uint64_t begun_seq;           /* of the first change since its unit was last settled */
  int64_t mtime_ns, ctime_ns;
  uint32_t pass; /* the listing that saw it last */
  uint8_t type, evidence;
  bool known;    /* device, inode, size and times are filled in */
  bool excluded; /* a temporary name: nothing below it is looked at */
  bool old;      /* it was there when its unit was last settled */
  bool again;    /* it was there before a marker was, and was written after it */
  bool counted;  /* among the files that no unit matches */
  bool listed;   /* a listing found it, no event has told of it since */
  bool moved;    /* it came by a rename, and was not written since */
  bool stayed;   /* an event said that it left, but it was there: detect.c, left() */
};

node_type node_type_of(mode_t mode);

node *node_new(const char *name, size_t len, node_type type); /* NULL: out of memory */
void node_free(node *n); /* with all below; it must be detached; NULL is fine */

void node_set(node *n, const struct stat *st);
bool node_is(const node *n,
             const struct stat *st); /* device and inode: another mount counts its own */
bool node_same(const node *n, const struct stat *st); /* size, mtime, inode */

node *node_child(const node *dir, const char *name, size_t len);
int node_attach(node *dir, node *n, err *e); /* keeps the children in byte order */
void node_detach(node *n);
int node_rename(node *n, const char *name, err *e); /* a detached one */
bool node_within(const node *top, const node *n);

/* Finds the node of a path relative to `top`, or NULL. *parent: that of its directory, NULL if that
 * is not known or excluded; *name: its last component. */
node *node_find(node *top, const char *path, node **parent, const char **name);

/* Puts the path relative to the root into `out` (FS_PATH_MAX; "" for the root itself).
 * ERR_LIMIT. */
int node_path(const node *n, char *out, err *e);

/* Calls `fn` for `n` and all nodes below, parents first. `fn` may change a node, not the tree. */
typedef void node_fn(void *ctx, node *n);
void node_walk(node *n, node_fn *fn, void *ctx);

#endif
