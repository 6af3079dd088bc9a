/* detect_model: what the files of detect share: the units found in the tree, and how the tree
 * changes. Private to detect. */
#ifndef CORE_DETECT_MODEL_H
#define CORE_DETECT_MODEL_H

#include "core/detect.h"
#include "core/detect_node.h"
#include "core/detect_rule.h"
#include "prims/fs.h"

typedef struct unit unit;
struct unit {
  char *path;
  uint64_t id; /* another unit may come to its path, and to its address */
  node *root;  /* the directory or the file; of a group: the directory it is in */
  unit *next;  /* of a group: the next one in that directory */
  bool away;   /* its root is in limbo: it stands in detect.away, not in detect.all */
  match_kind kind;
  int64_t step;
  detect_state state;
  char reason[RULE_TEXT_MAX];
  const char *cause; /* as in detect_unit */
  uint32_t generation;
  bool renamed, dead, lived, touched; /* as in rule_facts */
  /* Places in the detector's order of changes. */
  uint64_t settle_seq;            /* when it was last complete, or its writer died; 0: never */
  uint64_t write_seq, shrink_seq; /* newest write; newest removal of a file */
  uint64_t remove_seq;            /* ... of one that was there when it was settled */
  uint64_t touches;               /* how often anything in it changed */
  int64_t last, due;              /* IO_MONO: its last change; when to look again */
  uint64_t files, bytes, stamp;
  bool lacking, alone;
  digest fingerprint;
  int64_t changed, made; /* IO_WALL */
  size_t active;         /* 1 + its place in detect.active; 0: it waits for an event */
  bool queued, handed;
  detect_state handed_state;
  uint32_t handed_generation;
};

/* The files of the newest complete unit of one kind in one group. */
typedef struct series {
  char *group, *name; /* name: as detect_series() */
  char *unit;         /* the name of that unit; NULL: no memory for it */
  int64_t step;
  char **files;
  size_t count;
} series;

/* A node that left its place and may turn up elsewhere. n NULL: an event said that something left
 * which was still there. */
typedef struct limbo {
  node *n;
  uint32_t cookie; /* 0: of a listing */
  int64_t since;   /* IO_MONO */
} limbo;

typedef struct units {
  unit **at;
  size_t count, room;
} units;

typedef struct inode_at {
  uint64_t ino;
  node *n;
} inode_at;

struct detect {
  const io *io;
  const log_sink *log;
  const rules *rules;
  bool (*has_writer)(const char *path);
  char *root;
  watch *watch; /* NULL: polling or fed */
  bool polling, foreign;
  bool lost;   /* the root is gone, and everything that was known below it */
  bool missed; /* events were lost: list everything */
  int64_t poll_ns, next_poll;
  detect_mode mode;
  int64_t root_due;            /* IO_MONO: when to look whether the root is (again) there */
  uint64_t root_dev, root_ino; /* of the root that is watched */
  bool far_said;               /* that paths are out of reach is said once */

  node *top;
  uint64_t seq;
  uint32_t pass;
  bool first;      /* the listing of detect_open: all that is found was there before us */
  inode_at *index; /* while everything is listed: all nodes by inode */
  size_t index_count;
  limbo *limbo;
  size_t limbo_count, limbo_room;

  units all;  /* by path: no two of one kind have the same, and all roots are in the tree */
  units away; /* by path: those in limbo, where what came after them may have left too */
  uint64_t ids;
  units active; /* those with a due time */
  units queue;  /* changed since they were handed out, or gone; in order */
  size_t queue_head;
  unit *out; /* a gone one that was handed out last */
  char group[FS_PATH_MAX];
  series *series;
  size_t series_count;

  struct proc_writers *writers; /* of this pass over the units; NULL: not asked for yet */
  bool fresh;                   /* units of detect_open wait to be judged */
  const char *const *known;     /* of detect_options, during the first listing */
  size_t known_count;
  bool dead, clean;
  uint64_t end_seq; /* when the writer ended with 0 */
  uint64_t unmatched;
  char *example;
  err failed; /* the first error while events were taken in */
};

static inline int64_t model_mono(const detect *d) {
  return d->io->now(d->io, IO_MONO);
}

/* --- units (detect_unit.c) --- */
int units_push(units *u, unit *item, err *e);
unit *unit_at(const detect *d, const char *path);
/* Is the unit that was `id` still there, at this path? What `u` points at may be gone. */
bool unit_still(const detect *d, const unit *u, uint64_t id, const char *path);
/* The unit that this node belongs to, or NULL. */
unit *unit_of(const detect *d, const node *n);
/* Finds the units that `n`, or what is below it, now is. */
int unit_classify(detect *d, node *n, err *e);
/* Makes an unproven directory ("{step}/") a unit, if it is one by its name. */
int unit_promote(detect *d, node *n, err *e);
/* `n` goes into limbo: so do the units at and below it. */
int unit_leave_within(detect *d, node *n, err *e);
/* `n` has its place: its units get their new names, or go. */
int unit_arrive_within(detect *d, node *n, err *e);
/* All units at and below `n` go. */
void unit_drop_within(detect *d, node *n);
/* Its root is another node from here on. */
void unit_take_root(unit *u, node *n);
void unit_drop(detect *d, unit *u);
void unit_free(unit *u);
void unit_set(detect *d, unit *u, detect_state state, const char *reason);
void unit_wake(detect *d, unit *u, int64_t due);
void unit_rest(detect *d, unit *u);
/* A file of it was written, or removed. */
void unit_written(detect *d, unit *u, node *n);
void unit_lost_file(detect *d, unit *u, const node *n);
void unit_stir(detect *d, unit *u);
/* Calls `fn` for each node in it that is not excluded, not for its directory itself. */
void unit_walk(const unit *u, node_fn *fn, void *ctx);
/* The name within the unit; into FS_PATH_MAX bytes. */
int unit_file_name(const unit *u, const node *n, char *out, err *e);
const char *unit_name(const unit *u);
void unit_group(const unit *u, char *out);

/* --- what happens to nodes (detect_model.c) --- */
int model_absolute(const detect *d, const char *path, char *out, err *e);
bool model_excluded(const detect *d, const node *n);
/* Says once that something at this path, or below it, is out of reach. */
void model_say_far(detect *d, const char *path);
void model_prove(detect *d, node *n, node_evidence evidence);
int model_add(detect *d, node *dir, const char *name, const struct stat *st, node_evidence evidence,
              err *e);
/* Something about an entry is new: tells its unit. */
void model_note(detect *d, node *n);
int model_remove(detect *d, node *n, err *e);
/* The root is gone: so is everything below it. Not while everything is listed. */
void model_clear(detect *d);
/* Takes a node off the files that belong to no unit; for node_walk, ctx is the detector. */
void model_uncount(void *ctx, node *n);
/* A name that a state directory of ours may have. */
bool model_state_named(const node *dir);
/* `dir` is another run's state directory: whatever its name matches, nothing in it is looked at. */
void model_exclude_state(detect *d, node *dir);
/* Sets it aside under `cookie`, with all below. */
int model_leave(detect *d, node *n, uint32_t cookie, err *e);
/* `n` (out of limbo, or fresh) now is `name` in `dir`. */
int model_move(detect *d, node *n, bool fresh, node *dir, const char *name, const struct stat *st,
               err *e);
/* Remembers under `cookie` that something left which was still there. */
int limbo_doubt(detect *d, uint32_t cookie, err *e);
/* Takes an entry out of limbo. */
node *limbo_take(detect *d, size_t at);
void limbo_drop(detect *d, size_t at);

/* --- listings (detect_list.c) --- */
/* What is in this directory and below. */
int list_tree(detect *d, node *dir, err *e);
/* What is in a directory that has just got this name. What came with it came by the same rename, so
 * finding it takes no proof away. */
int list_arrived(detect *d, node *parent, const char *name, err *e);
/* Everything, and what moved while nobody looked. */
int list_all(detect *d, err *e);
/* One unit; *changed, after an error too, if it was not as it was known: then it may be gone. */
int list_unit(detect *d, unit *u, bool *changed, err *e);
/* Watches are used up, or events are of no use: poll from here on. */
void list_start_polling(detect *d);

/* --- the root (detect_root.c) --- */
/* Chooses between events and polling, and sets the watch. */
int root_open(detect *d, err *e);
/* Everything below it is gone. Not while everything is listed. */
void root_lost(detect *d);
/* Is what has the root's name still what was opened? A directory that is removed while somebody has
 * it open tells nobody. */
void root_check(detect *d);
void root_look_later(detect *d);
/* The root is there again: from here on everything in it is new, made by somebody who lives. False
 * if it is not there yet, or not due, or if *rc is an error. */
bool root_back(detect *d, int *rc, err *e);

/* --- judging (detect_judge.c) --- */
/* Counts, sizes, fingerprint. */
int judge_measure(detect *d, unit *u, err *e);
int judge(detect *d, unit *u, err *e);
int judge_due(detect *d, err *e);
/* What detect_open found, oldest first: each is measured by the one before it. */
int judge_fresh(detect *d, err *e);
/* Its closes count for nothing, unless it was complete before, or renamed into place, or all of it
 * was closed while the writer still lived, the marker last. */
void judge_writer_died(detect *d, unit *u);
void judge_complete(detect *d, unit *u, const char *reason);

/* --- what the unit before had (detect_series.c) --- */
int series_learn(detect *d, const char *group, const char *unit_name, const char *const *names,
                 size_t count, err *e);
const series *series_find(const detect *d, const unit *u);
void series_free_all(detect *d);

#endif
