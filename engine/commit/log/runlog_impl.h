/* runlog_impl: declarations that runlog.c and runlog_*.c share. */
#ifndef COMMIT_LOG_RUNLOG_IMPL_H
#define COMMIT_LOG_RUNLOG_IMPL_H

#include "runlog.h"
#include "runlog_epoch.h"

enum { RUNLOG_UNIT_MAX = 255 };
/* The bytes of an entry, and of a snapshot: some 30,000 checkpoints. A state that does not fit in
 * has no snapshot, and is read from the last one that did. */
enum { RUNLOG_ENTRY_MAX = 1 << 20, RUNLOG_SNAPSHOT_MAX = 16 << 20 };
/* A log of up to so many entries is read from its beginning without a look at the hint. */
enum { RUNLOG_SHORT = 8 };
/* A snapshot is made when so many entries, and a 64th of all, came since the last one, at most so
 * many: what is behind the newest one is asked for in five rounds of requests at most, whatever the
 * length of the log. */
enum { RUNLOG_SNAPSHOT_EACH = 128, RUNLOG_SNAPSHOT_PART = 64, RUNLOG_SNAPSHOT_MOST = 300 };

/* An absent entry with one behind it is looked for so often, with pauses. */
enum { RUNLOG_LOOKS = 3, RUNLOG_LOOK_PAUSE_NS = 500000000 };
enum { RUNLOG_HEAD_MAX = 4096 };

/* What the head says: RUNLOG_NONE where it says nothing. */
typedef struct runlog_hint {
  uint64_t snapshot;
  uint64_t commit;
  digest digest; /* of the raw text of that commit's entry */
} runlog_hint;

struct runlog {
  store *s;
  char prefix[STORE_KEY_MAX];
  runlog_state st;
  runlog_epochs at;
  uint64_t term;     /* ours, or RUNLOG_NONE */
  bool due;          /* an entry was put, or read, since it was asked whether it counts */
  bool no_snapshots; /* the state has outgrown them */
  bool hint_due;     /* the hint does not name our newest snapshot yet */
  runlog_hint hint;  /* as it was when the log was opened */
  digest last;       /* of the raw text of the entry that was read or made last; empty: not known */
  digest ground;     /* of the one before that; empty: not known */
  runlog_hint newest; /* `commit` alone: the newest that was read or made */
  bool loose;   /* that one was passed over: what its follower read may have been another text */
  bool damaged; /* what was read contradicts itself: nothing may be appended */
  char *damage; /* what was noticed first; may be NULL where there was no memory */
  uint64_t unproven; /* entries that were read and have no sum: another version's */
};

/* An operation is planned on the log as it is known: the plan gives an entry in *out (a new
 * reference), NULL there if nothing is left to do, or an error. */
typedef struct runlog_request {
  const char *text;  /* the run's id, or the unit */
  const char *nonce; /* of the entry, drawn before; NULL: one is drawn for it */
  uint64_t number;   /* of the attempt, or of the commit */
  const runlog_writer *who;
  const manifest *m;
  const char *policy, *reason, *metrics;
  const char *lines; /* of a mark; NULL: none */
  const runlog_thinned *thin;
  const manifest_rest *rest;
  runlog_companions companions;
  const char *needs;
  const runlog_title *title;
  bool bad;
  runlog_may_fn *may;
  void *ctx;
  buf *state; /* a snapshot's: its plan makes the text that goes where it has null */
} runlog_request;
typedef int runlog_plan_fn(const runlog *log, const runlog_request *r, json_t **out, err *e);

int runlog_need_term(const runlog *log, err *e); /* ERR_INVAL if none is ours */
/* Plans and appends until the entry stands. */
int runlog_carry_out(runlog *log, runlog_plan_fn *plan, const runlog_request *r, err *e);
int runlog_catch_up(runlog *log, err *e);  /* reads to the end */
int runlog_catch_one(runlog *log, err *e); /* 1: the next entry was there; 0: it is not */
/* runlog_head.c: takes what the head says, if it can be read; puts it. */
int runlog_key_head(const runlog *log, char out[STORE_KEY_MAX], err *e);
int runlog_take_hint(runlog *log, const store_ask *ask, err *e);
int runlog_hint_parse(const buf *text, const char *what, runlog_hint *out, err *e);
int runlog_put_head(runlog *log, err *e);
/* Puts it after a commit, if it can. */
void runlog_point_at_commit(runlog *log);
/* Notes damage if the log ends before the commit that the head names. */
int runlog_check_end(runlog *log, err *e);
/* The next entry is absent, and one behind it is not: 0 if it was a snapshot, which is passed over,
 * else ERR_CORRUPT. */
int runlog_hole(runlog *log, err *e);
int runlog_pass_over_lost(runlog *log); /* returns 1 if it was */
/* ERR_CORRUPT if there is an entry behind the end that was read. It takes one request where there
 * is none. */
int runlog_prove_end(runlog *log, err *e);
/* runlog_behind.c: asks whether the entry that was put or read last counts, if that is due: ERR_FENCED
 * if a later epoch was begun, or another term has gone on where entries were lost; ERR_CORRUPT if
 * others have. Nobody acts on an entry before. */
int runlog_behind_check(runlog *log, err *e);
int runlog_read_entry(const runlog *log, uint64_t n, json_t **out, err *e);
/* Does the same, and gives its raw text, on failure too if there is one; `text` may be NULL. */
int runlog_read_raw(const runlog *log, uint64_t n, buf *text, json_t **out, err *e);
/* Does the same with what stands under that number in the log of an epoch. */
int runlog_read_place(const runlog *log, uint64_t epoch, uint64_t place, buf *text, json_t **out,
                      err *e);
/* Reads the first entry of that epoch's log into one that was not read yet. Returns 1 if it counts;
 * 0 if it was never begun, or another repair has closed it. */
int runlog_epoch_try(runlog *log, uint64_t epoch, err *e);
/* Gives the newest epoch that was begun, whether it counts or not; 0: none. */
int runlog_epoch_newest(store *s, const char *prefix, uint64_t *out, err *e);
bool runlog_is_snapshot(const json_t *entry);
int runlog_check_size(const json_t *entry, size_t len, const char *what, err *e);
/* Parses an entry, and refuses one that is larger than its type may be. */
int runlog_parse_entry(const buf *text, const char *what, json_t **out, err *e);

/* runlog_proof.c: an entry's `sum` and `prev`. Makes the digest of a raw text. */
int runlog_digest(const char *text, size_t len, digest *out, err *e);
/* Returns NULL, or why the text of entry `n` is not the one that its writer made. */
const char *runlog_judge_text(uint64_t n, const json_t *entry, const buf *text);
/* Looks whether entry `n` is what its writer made, behind what its writer read; it is the last one
 * from here on. */
void runlog_prove(runlog *log, uint64_t n, const json_t *entry, const buf *text);
void runlog_take_last(runlog *log, const buf *text);
/* Remembers entry `n`, which was read or made just now, if it is a commit. */
void runlog_note_commit(runlog *log, uint64_t n, const json_t *entry);
void runlog_forget_proof(runlog *log);
int runlog_unreadable(const runlog *log, err *e); /* says the damage where it ends all reading */
/* Warns of it, and keeps the handle from appending. */
void runlog_note_damage(runlog *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes the digest that a snapshot has of its state. */
int runlog_state_digest(const runlog_state *st, char out[HASH_HEX_MAX], err *e);
/* Reads the state that snapshot `n` holds, with that entry folded in. `text` is its raw text, if its
 * sum has proven that; else NULL. Free the state, on failure too. */
int runlog_take_snapshot(const json_t *entry, const buf *text, uint64_t n, runlog_state *out,
                         err *e);
/* Goes on from the snapshot in entry `n`, if it is whole and of this log. */
int runlog_begin_at(runlog *log, uint64_t n, const json_t *entry, const buf *text, err *e);
/* Does as runlog_snapshot(), due or not. */
int runlog_snapshot_now(runlog *log, err *e);

/* These append JSON of the state, by js_print() or js_print_in_full(), and read it back: ERR_FORMAT if
 * it is no state after entry `through`. *out is freed by runlog_state_free(), on failure too. */
typedef int runlog_print_fn(const json_t *value, buf *out, err *e);
int runlog_state_print(const runlog_state *s, runlog_print_fn *print, buf *out, err *e);
int runlog_state_load(const json_t *state, uint64_t through, const char *what, runlog_state *out,
                      err *e);

/* The same of one attempt or commit, which is behind those that were read. */
int runlog_load_attempt(const json_t *object, uint64_t through, const char *what, runlog_state *out,
                        err *e);
int runlog_load_commit(const json_t *object, uint64_t through, const char *what, runlog_state *out,
                       err *e);
/* runlog_pieces.c: parses a snapshot's text without its state, which is null then; and loads the
 * state of a text that its sum has proven. ERR_FORMAT if the text is not as ours are. */
int runlog_parse_pieces(const buf *text, const char *what, json_t **out, err *e);
int runlog_state_load_text(const buf *text, uint64_t through, const char *what, runlog_state *out,
                           err *e);
/* The same of the text of a state alone. */
int runlog_state_load_pieces(const char *state, size_t len, uint64_t through, const char *what,
                             runlog_state *out, err *e);
/* Puts the text of a state in the place of the null of an entry's. */
int runlog_put_state(buf *entry, const buf *state, err *e);

/* The fold finds what it changes by these: see runlog_find_attempt and runlog_find_commit. */
runlog_attempt *runlog_attempt_at(const runlog_state *s, uint64_t n);
runlog_commit *runlog_commit_at(const runlog_state *s, uint64_t n);
void runlog_free_texts(runlog_commit *c);
/* True if a reader of 1.0 would take what is gone of a commit for damage. */
bool runlog_any_thin(const runlog_state *s);

/* Makes a new entry; `term` RUNLOG_NONE: a guest's. Failures add up in `bad`. */
json_t *runlog_new_entry(const char *type, uint64_t term, int *bad);
/* The entry into *out, or, if anything was `bad`, ERR_NOMEM. */
int runlog_hand_over(json_t *entry, int bad, json_t **out, err *e);

#endif
