/* world: a watched directory, a store, and what a job needs between them. For tests: everything
 * here fails the test, or aborts, when it fails; comparisons share no code with the engine. */
#ifndef SPEC_WORLD_H
#define SPEC_WORLD_H

#include "job/save/job.h"
#include "commit/log/runlog.h"
#include "store_lossy.h"
#include "store_place.h"

typedef struct world {
  store_place place;
  char *dir;     /* the scratch directory of all below */
  char *root;    /* the watched one */
  char *staging; /* of this machine */
  char *out;     /* restores go here */
  pool *pool;
  job_env env; /* its store may be exchanged */
  size_t scheme;
  runlog *logs[8]; /* of world_log */
  size_t log_count;
  store_lossy *lossy;
} world;

extern const char *const world_schemes[2]; /* "file" and "mem" */

/* The system's, that flushes nothing and never sleeps: a job waits until the times of a fresh unit
 * prove something, and there are hundreds of those. */
const io *world_io(void);

/* `io` is for the store, the files and the jobs. */
world *world_new(const char *scheme, const io *io);
void world_free(world *w);

/* The fixtures of a test whose state is a world with world_io() and a store of that kind. */
int world_set_up_file(void **state);
int world_set_up_mem(void **state);
int world_tear_down(void **state);
#define IN_A_FILE_WORLD(test)                                                                      \
  cmocka_unit_test_setup_teardown(test, world_set_up_file, world_tear_down)
#define IN_A_MEM_WORLD(test)                                                                       \
  cmocka_unit_test_setup_teardown(test, world_set_up_mem, world_tear_down)

/* A test once for each scheme. When its fixture begins, or itself if it has none, its state is NULL for "mem". */
extern char world_in_file[];
#define IN_BOTH_WORLDS(test, set_up, tear_down)                                                    \
  {#test " (mem)", test, set_up, tear_down, NULL}, {                                               \
#test " (file)", test, set_up, tear_down, world_in_file                                        \
  }

/* For a test in each scheme: a world of the first one for NULL, then the next, with the one before
 * freed; NULL at the end. */
world *world_next(world *w, const io *io);

/* Opens the same store through another handle, with world_io(). Close it. */
store *world_store(const world *w);

/* Makes the store of the jobs one that loses what it is told to lose. The world frees it. */
store_lossy *world_lossy(world *w, bool proof);

/* A log at `prefix` with a new term by a writer of that launch name. Close it. */
runlog *world_begin(store *s, const char *prefix, const char *launch);
/* Opens such a log in the store of the jobs; the world closes it. */
runlog *world_log(world *w, const char *prefix, const char *launch);
/* Begins and commits a save, by a manifest of one file alone (make_small). The commit's number. */
uint64_t world_commit(runlog *log, const char *unit);
/* The world closes this one too. */
runlog *world_keep(world *w, runlog *log);

/* A unit with odd things in it: an empty file, nested and empty directories, links, modes, a name
 * that is no UTF-8. `seed` decides the bytes. Whatever is there goes first. */
void make_unit(const world *w, const char *path, match_kind kind, unsigned seed);
void remove_unit(const world *w, const char *path, match_kind kind);

/* A job for that unit with the plan that the store needs. Free it. */
enum { WITH_PROVE = 1, WITH_SNAPSHOT = 2 };
job *job_for(const world *w, runlog *log, const char *path, match_kind kind, int64_t step,
             int with);
void job_free(job *j);
/* Runs one and fails the test unless it was committed. The commit's number. */
uint64_t save_unit(const world *w, runlog *log, const char *path, match_kind kind, int64_t step);
/* Makes "checkpoint-<i>", which differs from all others, and saves it. The commit's number. */
uint64_t save_numbered(const world *w, runlog *log, int i);

/* Restores a commit of a log into a fresh `w->out`, by a handle of its own. */
int restore_commit(const world *w, const char *prefix, const runlog_commit *c, err *e);
/* NULL, or why the file or tree `b` is not as `a`: names, types, modes, mtimes, links, bytes. */
const char *tree_differs(const char *a, const char *b);
/* Restores it. NULL if it has the same names, types, modes, mtimes, links and bytes as the unit at
 * `path` in the watched directory; else why not (static). */
const char *restored_differs(const world *w, const char *prefix, const runlog_commit *c,
                             const char *path);
/* Restores as restored_differs() does, and fails the test if it differs. */
void must_restore(const world *w, const char *prefix, const runlog_commit *c, const char *path);

/* NULL, or the first key in the store that belongs neither to a log, a lease nor a listed commit,
 * or the commit that lacks its manifest (static memory). Not what a rank sent late. */
const char *store_litter(store *s, const char *prefix);
/* Fails the test if a log is broken, or anything lies about in the store or here. */
void world_must_be_clean(const world *w);

/* An io whose calls run a hook: at the nth open (from 1; 0: never) of a path that contains `what`
 * (NULL: any). One at a time; the hook runs on the calling thread, once. */
const io *hooked_io(const io *inner, const char *what, long nth, void (*hook)(void *ctx),
                    void *ctx);
bool hook_ran(void);

#endif
