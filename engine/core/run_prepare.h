/* run_prepare: what the files share that make a directory ready for a trainer. For run_prepare.c,
 * run_restore.c and run_quarantine.c only. */
#ifndef CORE_RUN_PREPARE_H
#define CORE_RUN_PREPARE_H

#include "core/run_state.h"
#include "prims/fs.h"

/* What was restored: where it is, where it came from. */
struct restored {
  char *path, *uri;
};

/* One file or directory in quarantine: where it was, and where it is. */
struct moved {
  char *from, *to;
};

struct prepare {
  run *run;
  run_prepared *out;
  char staging[FS_PATH_MAX];
  bool inside; /* the staging is in the watched directory: removed before a child starts */
  bool moved;  /* something was moved or restored: the directory has to be surveyed again */
  char named[FS_PATH_MAX]; /* path of the unit that was asked for by name; "": none */
  struct restored *restored;
  size_t restored_count;
  struct moved *moves; /* what went to quarantine */
  size_t move_count;
};

/* run_quarantine.c: what is moved out of the way, and where restores are staged. */
int prepare_open_staging(struct prepare *p, err *e);
int prepare_close_staging(struct prepare *p, int rc, err *e); /* rc, or its own failure */
/* Moves a unit to <state>/quarantine/<time>-<nonce>/<path>. */
int prepare_quarantine(struct prepare *p, const char *path, match_kind kind, const char *reason,
                       err *e);
/* After a restore that made room and then failed: the directory is as it was. *e has the failure's
 * text, and gets to say what became of the copy. */
void prepare_put_back(struct prepare *p, const char *path, match_kind kind, err *e);

/* run_restore.c */
int prepare_restore_all(struct prepare *p, const survey *s, err *e); /* by the rule */
/* What the policies' `restore` rule wants beside those; `s` as it is after them. */
int prepare_restore_more(struct prepare *p, const survey *s, err *e);
int prepare_restore_named(struct prepare *p, const survey *s, const char *named, err *e);

#endif
