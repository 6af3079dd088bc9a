/* detect_model: declarations that the files of detect share: the units found in the tree, and how
 * the tree changes. Private to detect. */
#ifndef EVENT_DETECT_MODEL_H
#define EVENT_DETECT_MODEL_H

#include "base/names.h"
#include "event/detect.h"
#include "event/detect_node.h"
#include "event/detect_rule.h"
#include "prims/fs.h"

typedef struct unit unit;
struct unit {
  char *path;
  char *aside; /* of one that is gone: where it was moved to; else NULL */
  uint64_t id; /* another unit may come to its path, and to its address */
  node *root;  /* the directory or the file; of a group: the directory it is in */
  unit *next;  /* of a group: the next one in that directory */
  bool away;   /* its root is in limbo: it stands in detect.away, not in detect.all */
  match_kind kind;
  int64_t step;
  bool numbered; /* as in match_unit */
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
  bool lacking, alone, above;
  rule_structure proof; /* of a file or a group, when it had changed `proof_touches` times */
  uint64_t proof_touches;
  digest fingerprint;
  int64_t changed, made; /* IO_WALL */
  size_t active;         /* 1 + its place in detect.active; 0: it waits for an event */
  bool queued, handed;
  detect_state handed_state;
  uint32_t handed_generation;
};

/* The files of the newest complete unit of one kind in one group. */
typedef struct series {
  char *group, *name; /* name: as match_series() */
  char *unit;         /* the name of that unit; NULL: no memory for it */
  int64_t step;
  names files; /* sorted */
} series;

/* A node that left its place and may turn up elsewhere. n NULL: an event told of a departure, but
 * the entry was still there. */
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
  detect_agree_fn *agree;
  void *agree_ctx;
  bool several;              /* as in detect_several */
  char doubt[RULE_TEXT_MAX]; /* as in detect_doubt; "": none */
  char *root;
  watch *watch; /* NULL: polling or fed */
  bool polling, foreign;
  bool lost;   /* the root is gone, and all nodes below it */
  bool missed; /* events were lost: list everything */
  int64_t poll_ns, next_poll;
  detect_mode mode;
  int64_t root_due;            /* IO_MONO: when to look whether the root is there (again) */
  uint64_t root_dev, root_ino; /* of the root that is watched */
  bool far_said;               /* that paths are out of reach is said once */

  node *top;
  uint64_t seq;
  uint32_t pass;
  bool first;      /* the listing of detect_open is under way: everything that it finds was there
                    * before us */
  inode_at *index; /* while everything is listed: all nodes by inode */
  size_t index_count;
  limbo *limbo;
  size_t limbo_count, limbo_room;

  units all;  /* by path: no two of one kind have the same, and all roots are in the tree */
  units away; /* by path: those in limbo; the entry that took a unit's place may have left too */
  uint64_t ids;
  units active; /* those with a due time */
  units queue;  /* changed since they were handed out, or gone; in order */
  size_t queue_head;
  unit *out; /* a gone one that was handed out last */
  char group[FS_PATH_MAX];
  series *series;
  size_t series_count, series_room;

  struct proc_writers *writers; /* of this pass over the units; NULL: not asked for yet */
  bool fresh;                   /* units of detect_open wait to be judged */
  const char *const *known;     /* of detect_options, during the first listing */
  size_t known_count;
  bool dead, clean;
  uint64_t end_seq; /* when the writer ended with 0 */
  uint64_t unmatched;
  bool saw_file;
  char *example;
  err failed; /* the first error while events were taken in */
};

static inline int64_t model_mono(const detect *d) {
  return d->io->now(d->io, IO_MONO);
}

/* --- units (detect_unit.c) --- */
unit *unit_at(const detect *d, const char *path);
/* True if the unit that was `id` is still there, at this path; `u` may point at a unit that is
 * gone. */
bool unit_still(const detect *d, const unit *u, uint64_t id, const char *path);
/* The unit that this node belongs to, or NULL. */
unit *unit_of(const detect *d, const node *n);
/* Finds the units that `n`, or a node below it, has become. */
int unit_classify(detect *d, node *n, err *e);
/* Makes a file whose bytes tell that it is one a unit, now that it has some. */
int unit_look_again(detect *d, node *n, err *e);
/* Makes an unproven directory ("{step}/") a unit, if it is one by its name. */
int unit_promote(detect *d, node *n, err *e);
/* Takes the units at and below `n` along when it goes into limbo. */
int unit_leave_within(detect *d, node *n, err *e);
/* Gives the units of `n` their new names when it has its place, or drops them. */
int unit_arrive_within(detect *d, node *n, err *e);
/* Drops all units at and below `n`. */
void unit_drop_within(detect *d, node *n);
/* Makes another node its root. */
void unit_take_root(unit *u, node *n);
void unit_drop(detect *d, unit *u);
/* Notes that it is dropped because its root lies where deleted units are moved to. */
void unit_set_aside(unit *u, const node *n);
void unit_free(unit *u);
void unit_set(detect *d, unit *u, detect_state state, const char *reason);
void unit_wake(detect *d, unit *u, int64_t due);
void unit_rest(detect *d, unit *u);
/* Takes in that a file of it was written, or removed. */
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
/* Says once that something at this path, or below it, is out of reach. */
void model_say_far(detect *d, const char *path);
void model_prove(detect *d, node *n, node_evidence evidence);
int model_add(detect *d, node *dir, const char *name, const struct stat *st, node_evidence evidence,
              err *e);
/* Tells the unit of an entry that something about it is new. */
void model_note(detect *d, node *n);
int model_remove(detect *d, node *n, err *e);
/* Removes everything below the root, which is gone. It must not be called while everything is
 * listed. */
void model_clear(detect *d);
/* Takes a node off the files that belong to no unit; for node_walk, ctx is the detector. */
void model_uncount(void *ctx, node *n);
/* True for a name that a state directory of ours may have. */
bool model_state_named(const node *dir);
/* Excludes `dir`, another run's state directory: whatever its name matches, nothing in it is looked
 * at. */
void model_exclude_state(detect *d, node *dir);
/* Sets it aside under `cookie`, with all nodes below. */
int model_leave(detect *d, node *n, uint32_t cookie, err *e);
/* Makes `n` (out of limbo, or fresh) the entry `name` of `dir`. */
int model_move(detect *d, node *n, bool fresh, node *dir, const char *name, const struct stat *st,
               err *e);
/* Remembers under `cookie` a departure of an entry that was still there. */
int limbo_doubt(detect *d, uint32_t cookie, err *e);
/* Takes an entry out of limbo. */
node *limbo_take(detect *d, size_t at);
void limbo_drop(detect *d, size_t at);

/* --- listings (detect_list.c) --- */
/* Lists this directory and everything below it. */
int list_tree(detect *d, node *dir, err *e);
/* Lists a directory that has just got this name. Its files came by the same rename, so finding them
 * takes no proof away. */
int list_arrived(detect *d, node *parent, const char *name, err *e);
/* Lists everything, and finds entries that moved while nobody looked. */
int list_all(detect *d, err *e);
/* Lists one unit; *changed, after an error too, if it was not as it was known: then it may be
 * gone. */
int list_unit(detect *d, unit *u, bool *changed, err *e);
/* Polls from here on, since watches are used up, or events are of no use. */
void list_start_polling(detect *d);

/* --- the root (detect_root.c) --- */
/* Chooses between events and polling, and sets the watch. */
int root_open(detect *d, err *e);
/* Takes in that everything below the root is gone. It must not be called while everything is
 * listed. */
void root_lost(detect *d);
/* Checks that the entry with the root's name is still the one that was opened. A directory that is
 * removed while somebody has it open tells nobody. */
void root_check(detect *d);
void root_look_later(detect *d);
/* Takes the root back when it is there again: from here on everything in it is new, made by a
 * writer that lives. Returns false if it is not there yet, or not due, or if *rc is an error. */
bool root_back(detect *d, int *rc, err *e);

/* --- judging (detect_judge.c) --- */
/* Measures counts, sizes and fingerprint. */
int judge_measure(detect *d, unit *u, err *e);
int judge(detect *d, unit *u, err *e);
int judge_due(detect *d, err *e);
/* Judges the units that detect_open found, oldest first: each is measured by the one before it. */
int judge_fresh(detect *d, err *e);
/* Takes in that the unit's writer died: its closes count for nothing, unless the unit was complete
 * before, or renamed into place, or all of it was closed while the writer still lived, the marker
 * last. `lag_ns`: so long ago at most. */
void judge_writer_died(detect *d, unit *u, int64_t lag_ns);
/* Takes all files of the unit as they stand for what it had when it was settled. `proven`: they are
 * whole; else each has to be proven that was not closed since it was last settled. */
void judge_settle(unit *u, bool proven);
/* Collects what the rule decides on. */
void judge_gather(detect *d, unit *u, rule_facts *out);
void judge_complete(detect *d, unit *u, const char *reason);
/* Brings the figures of an open unit's reason up to now. Decides nothing, and tells nobody. */
void judge_figures(detect *d, unit *u);

/* --- what the unit before had (detect_series.c) --- */
int series_learn(detect *d, const char *group, const char *unit_name, const char *const *names,
                 size_t count, err *e);
const series *series_find(const detect *d, const unit *u);
void series_free_all(detect *d);

#endif
