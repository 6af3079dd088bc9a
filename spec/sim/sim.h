/* sim: the shipped engine on a simulated store, clock and scheduler, all from one seed.
 *
 * Each process of the simulated world (a rank of a launch, a guest, a reader) is a coroutine. It
 * goes on for one store call or one sleep at a time; who is next, what the store does to the call,
 * who dies or is paused, and how the clocks go, the seed says. The judge looks at every change of
 * the store and shares no code with what it judges. */
#ifndef SPEC_SIM_H
#define SPEC_SIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "commit/ranks.h"
#include "commit/log/runlog.h"
#include "store/store.h"

enum { ACTORS_MAX = 24, RANKS = 3, VERSIONS = 4, LATE_MAX = 64 };
#define SECOND INT64_C(1000000000)
#define GRACE (100 * SECOND) /* shorter than a pin's renewal: only pins hold what is dropped */

/* ---- seeded choices ---- */
uint64_t sim_roll(uint64_t sides); /* 0 to sides-1 */
bool sim_chance(unsigned of_1000);

/* ---- counts, of all schedules ---- */
typedef struct sim_counts {
  uint64_t schedules, steps, jobs, commits, failures, lost_requests, lost_replies, late, late_made,
      refused, crashes, pauses, clock_jumps, takeovers, fenced, held, other_runs, readers,
      read_whole, read_gone, pinned_reads, resumed, rank_commits, beside, swept_by_guests,
      snapshots_read, stale_lists, visits, backups, swaps, robbed, disasters, lost, torn, plugs,
      epochs, repairs, mended, promised, removals, forsaken, let_go, passed_over, waited, led,
      frozen, came_back, parts_read, wholes_read, agreed, all_gone, unknown;
  uint64_t entries[16]; /* by judge_types */
} sim_counts;
extern sim_counts *sim_count;

/* ---- actors (sched.c) ---- */
typedef struct actor actor;
typedef void actor_main(actor *a);
struct actor {
  int id;
  char name[32];
  actor_main *main;
  io io; /* its own clocks; files are the real ones */
  store store;
  int64_t wake;          /* sim time; not before */
  bool used, done, dead; /* dead: nothing it does has an effect any more; it only unwinds */
  int64_t wall, mono;    /* its clocks, against the simulated time */
  int64_t spent;         /* how far a dead one's clock ran */
  unsigned calm;         /* 1: nothing goes wrong for it */
  void *stack, *context;
  /* What it is for. */
  int launch, rank;
  uint64_t steps;
  char pin[STORE_KEY_MAX];      /* the pin that it put; "": none */
  int64_t pin_since, pin_until; /* it holds without a gap between these */
  bool pin_lapsed;
  uint64_t reads;                /* the commit that it is for */
  uint64_t born;                 /* the step in which it began */
  bool saw_head;                 /* it got an answer when it asked for the log's head */
  long long read_epoch, read_to; /* the last entry that it has read */
  bool doomed; /* it dies as soon as it has removed a manifest, or renamed a directory */
  bool saves;  /* it is at a save of its own, not at what others left */
  bool humble; /* it repairs only what nobody is at work on, as it looks since `looked` */
  int64_t looked;
  int64_t paused;       /* for how long it stood still, in all */
  int64_t heard[RANKS]; /* when it last read that the rank has ended; 0: never */
  unsigned has_read;    /* a bit for each shard that it read, and READ_SHARED; of restores */
};
enum { READ_SHARED = 1 << RANKS };
extern int64_t sim_now;
extern bool sim_tracing;
extern uint64_t sim_steps;
actor *actor_start(const char *name, actor_main *main, int launch, int rank);
actor *actor_at(int i); /* NULL: that place is free */
void actor_yield(void); /* the running one lets others go on */
void actor_sleep(actor *a, int64_t ns);
void actor_freeze(actor *a, int64_t ns); /* whatever it does, it goes on no sooner */
actor *actor_running(void);
bool actor_step(void); /* one turn of somebody; false: nobody can go on */
bool actor_wait(void); /* moves the time to when the next one wakes; false: nobody sleeps */
void actors_end(void); /* kills and unwinds all */
void actor_unwind(actor *a);
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void sim_violation(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- the objects (space.c) ---- */
typedef struct object {
  char *key, *data;
  size_t len;
  int64_t made;
  char mark[STORE_MARK_MAX];
} object;
void space_clear(void);
object *space_find(const char *key);
size_t space_from(const char *key); /* the first that is not before it */
size_t space_count(void);
object *space_at(size_t i);
bool space_below(const char *key, const char *prefix);
void space_put(const char *key, const void *data, size_t len, const char *mark);
void space_remove(const char *key);
void space_rename(const char *from, const char *to);

/* ---- the store (link.c) ---- */
typedef struct weather {
  unsigned lost, lost_reply, late, refused, pause, crash, jump; /* of 1000 */
  bool files; /* a file store: it can publish, and no request comes late */
  bool whole; /* entries are lost only where that is what somebody has to see */
} weather;
extern weather sim_weather;
void link_open(actor *a);
void late_clear(void);
bool late_arrive(void); /* one of those under way, if any */

/* ---- the units (units.c) ---- */
typedef struct saved_unit {
  char name[64];
  match_kind kind;
  int64_t step;
} saved_unit;
void sim_seed(uint64_t seed);
void units_make(void); /* real files, once for all schedules */
void units_remove(void);
const char *units_root(unsigned version, unsigned world, unsigned rank);
const char *units_staging(void);
saved_unit units_pick(unsigned world);
/* The bytes of a file of a unit; returns their number. */
size_t units_content(const char *unit, unsigned version, const char *file, char *out, size_t room);
/* File number i of a unit, NULL behind the last. */
const char *units_file(const char *unit, unsigned world, unsigned i);
int units_file_count(const char *unit, unsigned world);

/* ---- the judge (judge.c) ---- */
typedef enum judge_fate { FATE_OPEN, FATE_SWEPT, FATE_COMMITTED } judge_fate;
typedef struct judge_attempt {
  long long n, owner;
  long long taken; /* the entry by which its owner has it */
  unsigned world;
  judge_fate fate;
  char unit[64], dir[96], nonce[40];
  bool visited;   /* somebody else has put something in its directory */
  bool backup;    /* its manifest was copied back there */
  bool swapped;   /* another checkpoint's data was put in its place */
  bool forgotten; /* its entry was lost, and nothing tells of it */
} judge_attempt;
typedef struct judge_commit {
  long long n, attempt, with_term;
  long long marked; /* the last entry that called it bad or good; 0: none */
  bool bad, dropped, deleted, ended;
  int64_t dropped_at; /* sim time of the entry's object */
  char root[80];
  judge_attempt *of;
  unsigned version;
  char *manifest; /* as it stood at the commit */
} judge_commit;
extern const char *const judge_types[];
enum { JUDGE_TYPES = 11 };
extern bool judge_results_only;
void judge_clear(void);
void judge_put(const actor *by, const char *key, bool replaced);       /* after it was done */
void judge_remove(const actor *by, const char *key);                   /* before it is done */
void judge_publish(const actor *by, const char *from, const char *to); /* before it is done */
/* A job said that its save is commit n. */
void judge_told(const actor *by, uint64_t n, const char *unit, unsigned version);
/* All of it, once more. */
void judge_all(void);
const judge_commit *judge_newest(void); /* live and not bad; NULL: none */
long long judge_entries(void);
void judge_forget_head(void); /* somebody else has put another one */
bool judge_any_dropped(void); /* does a grace run? */
bool judge_has_deleted(uint64_t commit);
bool judge_stands(uint64_t commit);
/* Was it still there when its run was removed, which waits for nobody? */
bool judge_ended_with(uint64_t commit);
/* Somebody else puts a file of his in the directory of an attempt that is over, if there is one. */
void judge_visit(void);
/* Somebody moves a directory away, and puts a copy of another checkpoint, with a file of his, in
 * its place. */
void judge_swap(const char *dir);
/* Somebody copies the manifests of removed saves back from a backup. Nothing may be on its way. */
void judge_restore_backups(void);
void judge_compare(const runlog_state *s); /* what a fresh reader knows */
/* Has no number that was lost another entry by now? */
bool judge_is_clear(void);
void judge_lost_tail(void);
long long judge_epoch(long long *its_first);    /* the one that counts */
judge_commit *judge_commit_in(const char *dir); /* NULL: none */
judge_commit *judge_commit_at(long long n);
judge_attempt *judge_attempt_in(const char *dir);
judge_attempt *judge_attempt_for(const char *key); /* whatever it is of an attempt */
judge_attempt *judge_attempt_named(const char *nonce);

/* ---- lost entries, and what a repair promises (lost.c) ---- */
extern bool sim_repairs; /* are there lost entries, and repairs? */
void lost_clear(void);
bool lost_any(void);   /* was any entry ever lost? */
bool lost_since(void); /* and no repair begun since? */
void lost_disaster(void);
void lost_let_go(const actor *reader);
void lost_before_put(const actor *by, const char *key);
void lost_removed(const judge_commit *c);
/* Can it be read, and is it of that type? */
bool lost_stands(long long epoch, long long place, const char *type);
void lost_key(long long epoch, long long place, char *out, size_t room);
bool lost_place(const char *key, long long *epoch, long long *place);
void lost_commit(const judge_commit *c);
/* By somebody who does not know what became of the attempt; `c`: its commit, NULL: it was swept. */
void lost_commit_again(long long n, const judge_attempt *a, const judge_commit *c);
void lost_refilled(void);
void lost_drop(const judge_commit *c);
void lost_bad(const judge_commit *c);
/* A job said so: false if no entry was ever lost, and the log alone tells. */
bool lost_is_promised(uint64_t n); /* somebody was told of that commit */
bool lost_told(const actor *by, long long n, const char *unit, unsigned version);
void lost_epoch_taken(const actor *by);
void lost_mended(void); /* the first entry of an epoch stands */
/* Could it have come upon what was lost, and is not mended? NULL: somebody who comes now. */
bool lost_shows(const actor *a);
void lost_check_closed(long long epoch, long long first, long long next);
void lost_check_first(const json_t *entry, long long g, long long before, long long first);
/* Somebody put something that others may not have seen when they opened the log. */
void lost_unclear(void);
/* Who opened a log that contradicts itself puts no entry there. */
void lost_check_ground(const actor *by, long long epoch, long long first, long long n);
/* He is about to remove what belongs to the attempt with this nonce. */
void lost_under_removal(actor *by, const char *nonce);
/* What a job was told of is named. */
void lost_promised(const char *where);
void lost_promised_at_the_end(void);

/* ---- who acts (actors.c, director.c) ---- */
typedef struct launch_plan {
  char id[32], job[32], host[32], run[32];
  unsigned world, alive;
  bool take_over, continue_run;
  unsigned saves;
  struct {
    saved_unit unit;
    unsigned version;
  } save[8];
} launch_plan;
enum { LAUNCHES_MAX = 16 };
extern launch_plan launches[LAUNCHES_MAX];
extern bool calm_done;
void writer_main(actor *a);
void reader_main(actor *a);
void readers_forget(void); /* what an earlier schedule had */
void rm_main(actor *a);
void gc_main(actor *a);
void rob_main(actor *a); /* its rank: which actor it robs */
void sweep_main(actor *a);
void mark_main(actor *a);
void end_main(actor *a);
void repair_main(actor *a); /* its rank: whether somebody says that nobody is at work */
void calm_main(actor *a);
void schedule_run(uint64_t seed);
void schedule_begin(uint64_t seed); /* with nothing in the store */
launch_plan *schedule_launch(void); /* a zeroed one; NULL: there were many */
int schedule_launches(void);
bool schedule_any_writer(void);
void schedule_calm(void); /* all others are gone: one more launch saves, and reads what is there */

#endif
