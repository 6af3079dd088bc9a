/* gc_scene: a store with a log, for tests of what gc removes: a clock that the test moves, a store that
 * can be watched, denied and cut, and what writers leave behind. Everything here fails the test when it
 * fails. */
#ifndef SPEC_GC_SCENE_H
#define SPEC_GC_SCENE_H

#include "commit/log/runlog.h"
#include "commit/manifest/manifest.h"
#include "job/keep/collect.h"
#include "store_place.h"

extern int64_t gc_ahead; /* of the system's clock, for IO_WALL */
int64_t gc_now(const io *io, io_clock clock);

enum { GC_UPLOADS = 16 };

typedef struct gc_gate {
  store base;
  store *inner;
  long calls, writes, fail_at; /* the call of that number, from 1, fails; 0: none */
  bool for_good, deny_writes, deny_removals, busy;
  void (*between)(void *ctx); /* before each call; NULL: nothing */
  void *ctx;
  store_unfinished uploads[GC_UPLOADS];
  size_t upload_count;
} gc_gate;

typedef struct gc_scene {
  store_place place;
  store *s; /* the bare one */
  gc_gate gate;
  runlog *logs[2]; /* of begin */
  int64_t grace_ns;
  bool dry;
  size_t told, failed;
  char last[8][64]; /* "what name" of what was told last */
  char why[8][96];  /* and its reason */
} gc_scene;

gc_scene *gc_scene_new(const char *scheme);
void gc_scene_free(gc_scene *c);
/* The fixtures of a test whose state is a scene in memory. */
int gc_set_up(void **state);
int gc_tear_down(void **state);
#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, gc_set_up, gc_tear_down)

/* A writer's log, which the scene closes. */
runlog *gc_begin(gc_scene *c, const char *prefix, const char *launch);
void gc_lease(gc_scene *c, const runlog *log);
void gc_release(gc_scene *c, const runlog *log); /* it has ended well */

typedef int collect_fn(const collect *c, err *e);
/* Runs one of gc's passes on this handle; what it tells is noted. */
int gc_run_on(gc_scene *c, store *s, collect_fn *fn, err *e);
void gc_must_collect(gc_scene *c);
/* Tells what was told, as "what name": of the last eight. */
bool gc_was_told(const gc_scene *c, const char *line);
/* Returns the reason that was told with it. */
const char *gc_reason(const gc_scene *c, const char *line);

void gc_put_at(gc_scene *c, const char *key);
void gc_put_in(gc_scene *c, const char *dir, const char *name);
bool gc_holds(const gc_scene *c, const char *dir, const char *name);
/* Begins a save and puts its one file; seals it, with its manifest to be freed; commits it. */
uint64_t gc_announce(gc_scene *c, runlog *log, const char *unit);
void gc_seal(gc_scene *c, runlog *log, uint64_t n, manifest *m);
/* Seals one whose file was written at that time, in seconds. */
void gc_seal_made(gc_scene *c, runlog *log, uint64_t n, int64_t made_s);
uint64_t gc_commit_announced(gc_scene *c, runlog *log, uint64_t n);
uint64_t gc_commit(gc_scene *c, runlog *log, const char *unit); /* all of it */
runlog_fate gc_fate(const gc_scene *c, uint64_t n);
/* An unfinished upload that began now. */
void gc_add_upload(gc_scene *c, const char *key, const char *id);
/* Something of everything. */
void gc_make_mess(gc_scene *c);

#endif
