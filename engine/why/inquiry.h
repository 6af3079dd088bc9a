/* inquiry: gathers the facts about a name or a path (the disk, the trail, a live run, the log at
 * the target) and has them explained. Reads only. */
#ifndef WHY_INQUIRY_H
#define WHY_INQUIRY_H

#include "why/explain.h"

typedef struct why_options {
  const char *name;  /* as the user wrote it: a unit's name or path, or any other path */
  const char *dir;   /* NULL: found from the path, or from `state` */
  const char *state; /* NULL: "<dir>.ckpt" */
  const char *to;    /* NULL: no target is asked, unless nothing else is known of the name */
} why_options;

/* Answers where no run is alive. Blocks on the target, if that is asked. ERR_INVAL if it cannot be
 * found out which directory is meant. `out` is zeroed first; explain_free() it, on failure too. */
int why_ask(const io *io, const log_sink *log, const why_options *options, explain *out, err *e);

/* Finds the watched directory that a path is in, or is: the one that has a state directory beside
 * it. False: there is none. */
bool why_find_dir(const io *io, const char *path, char dir[FS_PATH_MAX]);

/* Tells a live run's words about a unit; false: it does not know it. */
typedef bool why_live_fn(void *ctx, const char *unit, explain_live *out);

/* Answers when all that has to be found out first is known. */
typedef struct why_scene {
  const io *io;
  const log_sink *log;
  const char *dir, *state; /* absolute, without links; dir NULL: only the target is known */
  const last_rules *last;
  const char *to;    /* may be NULL */
  why_live_fn *live; /* NULL: no run is alive */
  void *ctx;
} why_scene;
int why_tell(const why_scene *scene, const char *name, explain *out, err *e);

#endif
