/* fs_tree: the walk behind all functions for whole trees, for fs_tree*.c alone. */
#ifndef PRIMS_FS_TREE_H
#define PRIMS_FS_TREE_H

#include "prims/fs.h"

/* The names of all directories between the root and here are held at once, and one descriptor for
 * each of them: the caps bound both, whatever somebody puts into a tree. */
enum { FS_DEPTH_MAX = 64 };

/* A directory that is being walked. */
typedef struct fs_level {
  int fd;
  struct stat st;
  size_t path_len; /* of its own name in tree.path */
  buf bytes;       /* the names of its children, each with its NUL */
  char **names;    /* sorted; into `bytes` */
  size_t count, next;
} fs_level;

typedef struct fs_tree fs_tree;

/* A plan says what to do with a tree. Callbacks may be NULL. */
typedef struct fs_plan {
  const io *io;
  const char *root;
  void *ctx;
  bool strict; /* an entry that vanishes is an error */
  bool follow; /* a link counts as what it leads to */
  /* Returns whether an entry is looked at. `kind` is a DT_*, of which DT_UNKNOWN is always possible. */
  bool (*wants)(void *ctx, const char *base, unsigned char kind);

  /* Called for each entry below the root, before its children; `dir` and `base` name it for the
   * *at calls. May return FS_SKIP. */
  int (*entry)(fs_tree *, int dir, const char *base, const fs_entry *entry, err *e);
  /* Called for each directory, the root too, once it is open, and after its children. */
  int (*enter)(fs_tree *, const fs_level *, err *e);
  int (*leave)(fs_tree *, const fs_level *, int dir, const char *base, err *e);
} fs_plan;

struct fs_tree {
  const fs_plan *plan;
  const io *io;
  char path[FS_PATH_MAX]; /* of the current entry, relative to the root */
  char text[2 * FS_PATH_MAX];
  char *dents;
  size_t held; /* bytes of all names */
  int depth;
  fs_level levels[FS_DEPTH_MAX + 1];
};

/* Walks through plan->root as fs_walk says, with these callbacks. */
int fs_tree_walk(const fs_plan *plan, err *e);

#endif
