/* replay: what policies would have kept of the checkpoints that a log tells of, had they governed the
 * run from its beginning, or had they been asked at one past moment of it: `keep` is asked after each commit about what they themselves have left, by the
 * very rules that a run obeys (plan/retention.h), on a clock that stands at that commit.
 *
 * A log does not say everything. A mark as bad holds from the checkpoint's beginning; nothing is known
 * of pins, of what verified, and of what a start resumed from. Reads no store and writes nothing. */
#ifndef LAB_REPLAY_H
#define LAB_REPLAY_H

#include "commit/log/runlog.h"
#include "decision/policy.h"
#include "plan/retention.h"

typedef struct lab_replay_options {
  const io *io;
  const log_sink *log;
  policy_options policy;   /* its io is made here */
  retention_limits limits; /* without a grace: it changes no decision */
} lab_replay_options;

typedef enum lab_difference {
  LAB_WOULD_KEEP = 1, /* it was dropped */
  LAB_WOULD_DROP,     /* it is kept */
  LAB_EARLIER,        /* it was dropped, after a later commit, */
  LAB_LATER,          /* or an earlier one, than it would be */
} lab_difference;

/* A checkpoint with another fate than it had; valid during the call. */
typedef struct lab_fate {
  const runlog_commit *commit; /* with the fate that it had */
  lab_difference what;
  const runlog_commit *after;  /* after this one it would be dropped; NULL: it would be kept */
  const char *policy, *reason; /* whose word that is */
} lab_fate;

/* Returns 0 to go on; any other value ends the replay and is returned. */
typedef int lab_fate_fn(void *ctx, const lab_fate *fate);

typedef struct lab_replay_sum {
  uint64_t logs, commits;                 /* logs: those with a commit */
  uint64_t would_keep, would_drop, moved; /* moved: earlier or later */
  /* Kept at the end, and at most at one moment: as it was, and as it would be. Without what waits for
   * the end of its grace. */
  uint64_t was_kept, kept, was_bytes, bytes, was_most, most;
  uint64_t fallbacks; /* a policy gave no good answer: the safe one held */
} lab_replay_sum;

typedef struct lab_replay lab_replay;

/* Fails as policy_open(). The options' texts are borrowed. */
int lab_replay_open(const lab_replay_options *o, lab_replay **out, err *e);
/* Plays one log, and tells its differences in the order of the log. */
int lab_replay_log(lab_replay *r, const runlog_state *log, const char *prefix, lab_fate_fn *fn,
                   void *ctx, err *e);

typedef enum lab_stance {
  LAB_STOOD = 1, /* it was committed, and not dropped yet: the policies are asked about it */
  LAB_TO_COME,   /* it was committed later */
  LAB_WENT,      /* it was dropped before */
} lab_stance;

/* What is said of a commit at a past moment; valid during the call. */
typedef struct lab_past {
  const runlog_commit *commit; /* with the fate that it had */
  const runlog_commit
      *after; /* the question is that behind this commit, at its time; NULL: there was none */
  lab_stance stance;
  size_t stood;              /* how many stood there */
  retention_verdict verdict; /* of one that stood */
  const char *policy, *reason;
} lab_past;

/* Returns 0 to go on; any other value ends the call and is returned. */
typedef int lab_past_fn(void *ctx, const lab_past *past);

/* Asks once what is kept of those that stood behind entry `at` of this log, with the clock of the last
 * commit until then; tells each commit of the log, in its order. What was lost, or went with its run, is
 * taken as there: nobody has written down when it went. A mark as bad, and results, hold as they do now. */
int lab_replay_at(lab_replay *r, const runlog_state *log, const char *prefix, uint64_t at,
                  lab_past_fn *fn, void *ctx, err *e);
lab_replay_sum lab_replay_end(const lab_replay *r);
void lab_replay_close(lab_replay *r); /* NULL is fine */

#endif
