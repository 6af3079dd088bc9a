/* explain: from what is known of a path to the one cause for which it is, or is not, in the store.
 * Pure: the rules, what the disk shows of the path, the trail's records, what a live run says of it
 * and what the log at the target says go in; findings and a cause come out. docs/why.md has all
 * causes. */
#ifndef CORE_EXPLAIN_H
#define CORE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/last_rules.h"
#include "core/runlog_ref.h"
#include "core/trail.h"
#include "prims/fs.h"

enum { EXPLAIN_TEXT_MAX = 1024, EXPLAIN_HISTORY_MAX = 64 };

typedef struct explain_finding {
  const char *topic; /* static: "seen", "unit", "rule", "decision", "queue", "save", "store",
                        "retention", "run" */
  char *text;
  int64_t time_ns; /* IO_WALL; 0: of now, or not known */
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
/* The last word counts. */
void explain_cause(explain *x, const char *cause, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- which unit is it? (explain_path.c) ---- */

/* What the disk shows of a path below the watched directory. */
typedef struct explain_spot {
  const char *path; /* relative, normal; "" for the directory itself */
  char kind;        /* 'f' a file, 'd' a directory, 'l' a link, 'o' something else, 0: not there */
  size_t link;      /* so many bytes of the path lead to a symbolic link; 0: none */
  size_t state;     /* ... to a state directory of ckpt-lua; 0: none */
} explain_spot;

/* Is this path known as a unit, by the trail or by the log? */
typedef bool explain_known_fn(void *ctx, const char *path);

/* True, and the unit's path, if it is one or in one. Else the cause says what it is: "link",
 * "state-file", "excluded", "special", "directory", "no-unit" with the nearest pattern. */
bool explain_unit(explain *x, const last_rules *last, const explain_spot *spot,
                  explain_known_fn *known, void *ctx, char unit[FS_PATH_MAX]);

/* ---- what became of it? ---- */

/* Its records, and those of the run, oldest first; the oldest are forgotten when there are many. */
typedef struct explain_history {
  trail_record records[EXPLAIN_HISTORY_MAX]; /* with strings of their own */
  size_t count;
  char *fenced;       /* why the last run was, or NULL */
  int64_t started_ns; /* of the last run; 0: none is known */
} explain_history;
/* Takes a record of any unit; keeps those of `unit` and what concerns the run. */
void explain_remember(explain_history *h, const char *unit, const trail_record *r);
void explain_forget(explain_history *h);

/* What a live run says of it just now. */
typedef struct explain_live {
  trail_what phase;
  const char *cause, *policy, *reason; /* as in trail_record */
  const char *behind;                  /* the unit for which it waits, or NULL */
  uint64_t moved, total;               /* of its save */
  double next_s;                       /* until the next try, or its turn */
  int status;
  unsigned tries, most_tries;
} explain_live;

/* Its newest commit, as a log has it. */
typedef struct explain_stored {
  const char *where; /* the target */
  bool asked, found; /* asked: the log could be read */
  runlog_ref commit;
  int64_t time_ns, drop_ns;
  runlog_life life;
  const char *dir, *policy, *reason, *drop_policy, *drop_reason; /* NULL: not stated */
  bool bad; /* marked as one that does not load */
  const char *bad_reason;
} explain_stored;

/* `live` NULL: no run is there; `stored` NULL: no target was asked. `there`: the disk has it.
 * `now`: IO_WALL. */
void explain_fate(explain *x, const char *unit, bool there, const last_rules *last,
                  const explain_history *h, const explain_live *live, const explain_stored *stored,
                  int64_t now);

#endif
