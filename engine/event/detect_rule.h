/* detect_rule: decides whether a unit is complete. A pure function of facts. Private to detect. */
#ifndef EVENT_DETECT_RULE_H
#define EVENT_DETECT_RULE_H

#include "event/detect.h"

enum { RULE_TEXT_MAX = 192 };
#define RULE_NEVER INT64_MAX

typedef enum rule_writer { RULE_UNASKED, RULE_NOBODY, RULE_SOMEBODY } rule_writer;

typedef enum rule_structure { RULE_UNLOOKED, RULE_SOUND, RULE_UNSOUND } rule_structure;

typedef struct rule_facts {
  /* files, without excluded ones */
  uint64_t files;
  size_t open, seen, unproven; /* by their evidence; `open` counts excluded ones too, since a file
                                * that is written under a temporary name will get another one */
  const char *open_name;       /* one of those that are open */
  size_t temporary;            /* excluded ones whose close was not seen */
  /* the unit */
  bool renamed; /* it got its name by a rename, and nothing was written into it since */
  bool removed; /* a file that it had when it was settled is gone, and nothing was written since */
  bool shrinking; /* the last change in it was a removal */
  bool dead;      /* its writer died before it was complete */
  bool above;     /* it is a file above the checkpoints */
  bool lived;     /* its writer died too, but had closed all of it before, the marker last */
  bool mixed;     /* some of its files were written again, some not (yet) */
  bool touched;   /* it has changed since the watch began */
  /* markers */
  const char *marker;          /* one that is there, or NULL */
  bool marker_old;             /* the data was written after it */
  bool marker_last;            /* one was written after all the data, as far as events tell, or
                                * the times where closes were not seen */
  const char *marker_behind;   /* one that was begun after all the data was closed, as events tell;
                                * or NULL */
  bool marker_moved;           /* ... and came by a rename */
  bool marker_final;           /* one is there that is written when every rank is done */
  bool marker_early;           /* data was written so long after it that it cannot be the last */
  const char *needed;          /* one that must be there and is not, or NULL */
  bool needed_always;          /* the user asked for it, whatever else is proven */
  uint64_t marked, marked_old; /* markers of the rules' tests that are there, that are old: a bit
                                  for each test */
  unsigned parts[RULES_TESTS_MAX]; /* files that the glob of that test fits */
  const char *lacks;               /* a file that the unit before it had, or NULL */
  const char *before;              /* that unit's name */
  bool alone;                      /* there is no unit before it */
  bool several;                    /* tasks write into it that end each for itself */
  /* times, in ns */
  int64_t quiet;      /* since its last change */
  int64_t age, grain; /* wall time since its newest time stamp; that stamp's granularity */
  /* around it */
  bool ended; /* the writer is gone, whatever has changed since: nothing more may be waited for
                   without a time limit */
  bool clean; /* it ended with 0, and nothing has changed since */
  bool blind; /* closes are not seen: polling */
  int64_t interval; /* ns between two listings, if it is; else 0 */
  bool foreign;     /* other hosts may write, and no writer of theirs shows here */
  rule_writer writer;
  bool provable;        /* it is a file, or a group of them, which its structure may prove whole */
  rule_structure proof; /* ... and does it? */
  rule_structure sound;
  const char *unsound; /* why it is not */
} rule_facts;

typedef struct rule_verdict {
  detect_state state;
  int64_t wait;      /* ns until it is worth another look; RULE_NEVER: an event will tell */
  bool ask_writer;   /* the state holds if nobody has it open: ask, and decide again */
  bool ask_sound;    /* the state holds if its structure is as the rules want it: look, and decide
                      * again */
  const char *cause; /* one word for the reason, static: see detect_unit */
  char reason[RULE_TEXT_MAX];
} rule_verdict;

/* How long one closed file must be quiet before its structure may prove it whole. */
int64_t rule_proof_after(const rules *r, const rule_facts *f);
void rule_decide(const rules *r, const rule_facts *f, rule_verdict *v);
/* Decides by the built-in conditions alone, for a unit that holds files, all of them closed. */
void rule_builtin(const rules *r, const rule_facts *f, rule_verdict *v);

#endif
