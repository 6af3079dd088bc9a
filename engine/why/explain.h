/* explain: finds, from the known facts about a path, the one cause for which it is, or is not, in
 * the store. Pure: the rules, the disk's view of the path, the trail's records, the words of a live
 * run and of the log at the target go in; findings and a cause come out. docs/why.md has all
 * causes. */
#ifndef WHY_EXPLAIN_H
#define WHY_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "why/last_rules.h"
#include "commit/log/runlog_ref.h"
#include "why/trail.h"
#include "prims/fs.h"

enum { EXPLAIN_TEXT_MAX = 1024, EXPLAIN_HISTORY_MAX = 64 };

typedef struct explain_finding {
  const char *topic; /* static: "seen", "unit", "rule", "decision", "queue", "save", "store",
                        "retention", "run", "standing": as standing_name() */
  char *text;
  int64_t time_ns; /* IO_WALL; 0: it holds now, or the time is not known */
} explain_finding;

typedef struct explain explain;
struct explain {
  explain_finding *findings;
  size_t count, room;
  char cause[32]; /* one word; "" until one is found */
  char text[EXPLAIN_TEXT_MAX];
  bool starved; /* out of memory: findings are missing */
};

void explain_free(explain *x); /* a zeroed one is fine */
void explain_add(explain *x, const char *topic, int64_t time_ns, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Sets the cause; the last call counts. */
void explain_cause(explain *x, const char *cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As the texts have it: of the wall clock. */
void explain_print_time(int64_t ns, char out[32]);

/* ---- which unit is it? (explain_path.c) ---- */

/* The path, below the watched directory, as the disk shows it. */
typedef struct explain_spot {
  const char *path; /* relative, normal; "" for the directory itself */
  char kind;        /* 'f' a file, 'd' a directory, 'l' a link, 'o' something else, 0: not there */
  size_t link;      /* so many bytes of the path lead to a symbolic link; 0: none */
  size_t state;     /* so many bytes of the path lead to a state directory of ckpt-lua; 0: none */
} explain_spot;

/* Tells whether the trail or the log knows this path as a unit. */
typedef bool explain_known_fn(void *ctx, const char *path);

/* Returns true, and the unit's path, if the path is a unit or in one. Otherwise the cause says what
 * it is: "link", "state-file", "excluded", "special", "directory", "no-unit" with the nearest
 * pattern. */
bool explain_unit(explain *x, const last_rules *last, const explain_spot *spot,
                  explain_known_fn *known, void *ctx, char unit[FS_PATH_MAX]);

/* ---- what became of it? ---- */

/* The records of a unit, and those of the run, oldest first; the oldest are forgotten when there
 * are many. */
typedef struct explain_history {
  trail_record records[EXPLAIN_HISTORY_MAX]; /* with strings of their own */
  size_t count;
  char *fenced;       /* why the last run was fenced, or NULL */
  int64_t started_ns; /* of the last run; 0: none is known */
} explain_history;
/* Takes a record of any unit; keeps those of `unit` and of the run. */
void explain_remember(explain_history *h, const char *unit, const trail_record *r);
void explain_forget(explain_history *h);

/* Called behind explain_fate(): of a file in a unit that is committed, tells if that was saved without
 * it. */
void explain_left(explain *x, const explain_history *h, const explain_spot *spot, const char *unit);

/* The present words of a live run about a unit. */
typedef struct explain_live {
  trail_what phase;
  const char *cause, *policy, *reason; /* as in trail_record */
  const char *behind;                  /* the unit for which it waits, or NULL */
  uint64_t moved, total;               /* of its save */
  double next_s;                       /* until the next try, or its turn */
  int status;
  unsigned tries, most_tries;
} explain_live;

/* The newest commit of a unit, as a log has it. */
typedef struct explain_stored {
  const char *where; /* the target */
  bool asked, found; /* `asked`: the log could be read */
  runlog_ref commit;
  int64_t time_ns, drop_ns;
  runlog_life life;
  const char *dir, *policy, *reason, *drop_policy, *drop_reason; /* NULL: not stated */
  bool bad; /* marked as one that does not load */
  const char *bad_reason;
  /* Files were taken since newer ones are there: the globs, a line's end behind each but the last; NULL: none
   * were. `taken_ns`: when, by the store's clock; 0: not known. */
  const char *taken, *taken_policy, *taken_reason;
  int64_t taken_ns;
  uint64_t taken_files;
} explain_stored;

/* Called behind explain_left(): tells of a file or directory in a unit if it was taken there. */
void explain_taken(explain *x, const explain_stored *s, const explain_spot *spot, const char *unit);

/* Explains a unit's fate. `live` NULL: no run is there; `stored` NULL: no target was asked.
 * `there`: the disk has it. `now`: IO_WALL. */
void explain_fate(explain *x, const char *unit, bool there, const last_rules *last,
                  const explain_history *h, const explain_live *live, const explain_stored *stored,
                  int64_t now);

#endif
