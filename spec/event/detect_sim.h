/* detect_sim: a detector on an io_tree, in virtual time, fed by hand.
 *
 * Each sim_ call changes the tree and feeds the events that inotify would give for it. sim_until()
 * lets the time pass and runs the detector whenever it is due. What the detector hands out is kept
 * in order. For tests: everything aborts when it fails. */
#ifndef SPEC_DETECT_SIM_H
#define SPEC_DETECT_SIM_H

#include "event/detect.h"
#include "io_tree.h"

#define SIM_MS INT64_C(1000000)
#define SIM_S INT64_C(1000000000)

typedef struct sim_news {
  int64_t t; /* virtual, ns */
  char path[512];
  detect_state state;
  uint32_t generation;
  char reason[200];
  uint64_t files, bytes;
  bool in_place;
} sim_news;

typedef struct sim {
  io_tree *tree;
  detect *d;
  const rules *rules;
  int64_t now;
  uint32_t cookie;
  bool deaf;                /* events get lost */
  const char *const *known; /* of detect_options */
  size_t known_count;
  detect_agree_fn *agree; /* of detect_options, with the sim */
  sim_news *news;
  size_t count, room;
  /* Called for each news as it comes; may be NULL. */
  void (*on_news)(void *ctx, const sim_news *news);
  void *ctx;
} sim;

/* A tree without a detector yet: what is made now was there before. */
sim *sim_new(const rules *rules); /* NULL: the built-in ones */
void sim_free(sim *s);
/* Opens the detector at the present time. */
void sim_open(sim *s);
void sim_open_mode(sim *s, detect_mode mode, int64_t poll_ns);

/* The fixtures of a test whose state is a sim: with its detector open, or a tree alone, for what
 * was there before. */
int sim_set_up(void **state);
int sim_set_up_tree(void **state);
int sim_tear_down(void **state);
#define WATCHED(test) cmocka_unit_test_setup_teardown(test, sim_set_up, sim_tear_down)
#define NOT_YET_WATCHED(test) cmocka_unit_test_setup_teardown(test, sim_set_up_tree, sim_tear_down)

void sim_until(sim *s, int64_t t_ns); /* absolute */
void sim_wait(sim *s, int64_t ns);
void sim_drain(sim *s); /* takes what is handed out */

void sim_feed(sim *s, watch_kind kind, const char *path, bool is_dir, uint32_t cookie);
void sim_mkdir(sim *s, const char *path);
void sim_create(sim *s, const char *path);
void sim_write(sim *s, const char *path, uint64_t size); /* MODIFY */
void sim_close(sim *s, const char *path);
void sim_begin(sim *s, const char *path, uint64_t size); /* create, write */
void sim_save(sim *s, const char *path, uint64_t size);  /* create, write, close */
void sim_rename(sim *s, const char *from, const char *to);
void sim_arrive(sim *s, const char *path, uint64_t size); /* a bare MOVED_TO */
void sim_remove(sim *s, const char *path);                /* one entry, or an empty directory */
void sim_remove_tree(sim *s, const char *path);           /* as rmtree does */

/* Waits, and fails the test unless the unit is in that state then. */
void sim_after(sim *s, int64_t ns, const char *path, detect_state state);
detect_state sim_state(sim *s, const char *path); /* DETECT_GONE if it is not known */
const char *sim_reason(sim *s, const char *path);
detect_unit sim_unit(sim *s, const char *path);
/* When it was first handed out in this state, from news number `from` on; -1: never. */
int64_t sim_when(const sim *s, const char *path, detect_state state, size_t from);
size_t sim_times(const sim *s, const char *path, detect_state state);

/* The detector's `has_writer` answers the bool, unless the function is set. */
extern bool sim_somebody_writes;
extern bool (*sim_has_writer)(const char *path);

#endif
