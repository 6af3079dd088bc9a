/* ruling: the chains of policies that were replaced in the middle of a run. Each goes on ruling what is kept,
 * beside the newest one and by its own memory, until its own grace is over: what any of them keeps, stays. */
#ifndef RUN_POLICIES_RULING_H
#define RUN_POLICIES_RULING_H

#include "decision/policy.h"

/* What a chain remembers of a group, JSON text; NULL: nothing. */
typedef struct ruling_memory {
  char *group, *text;
} ruling_memory;

typedef struct ruling_memories {
  ruling_memory *at;
  size_t count, room;
} ruling_memories;

typedef struct ruling_chain {
  policy *policy;
  int64_t until;
  ruling_memories memories;
} ruling_chain;

/* Each is asked for each commit. */
enum { RULING_MOST = 32 };

/* Zero-initialise it. */
typedef struct ruling {
  ruling_chain *at; /* the newest last */
  size_t count, room;
  policy *first;      /* of all: the rules that a run began with are this one's, and stay */
  uint64_t fallbacks; /* of those that rule no more */
} ruling;

bool ruling_remember(ruling_memories *m, const char *group,
                     const char *text); /* false: no memory */
void ruling_forget(ruling_memories *m);

/* Adds a chain that rules until then, and takes it and its memories over. There are less than RULING_MOST. One that
 * rules already, of the same files, settings and memory, has its time extended instead. */
int ruling_add(ruling *r, policy *replaced, int64_t until, ruling_memories *memories, err *e);
/* Lets go of those whose grace is over by now; returns how many. */
size_t ruling_end(ruling *r, int64_t now);
int64_t ruling_due(const ruling *r);  /* when the next one's is; INT64_MAX: none */
int64_t ruling_last(const ruling *r); /* when the last one's is; 0: none rules */
void ruling_close(ruling *r);

/* Asks all of them: an item stays that any one keeps, and the word on it is that one's. False if a
 * chain has no rule for it, or gave no good answer: then all stay. `out` has room for `count`. True, and nothing is
 * kept, where there is none. */
bool ruling_select(ruling *r, policy_hook hook, const char *group, const policy_item *items,
                   size_t count, policy_kept *out);
bool ruling_has(const ruling *r, policy_hook hook); /* one of them has a rule for it */
/* Has what either keeps stay: `kept` takes over what `by` keeps and it does not. */
void ruling_join(policy_kept *kept, const policy_kept *by, size_t count);
/* What a chain says of a list, where nothing is to be remembered. False, and all stay: it has no rule for it, or
 * gave no good answer. */
bool ruling_opinion(policy *p, policy_hook hook, const char *group, const policy_item *items,
                    size_t count, const char *memory, policy_kept *out);
/* The same of the newest one, whose memory this is, and of those before: what any of them keeps, stays. With
 * `wishes` one without a rule, or a good answer, wishes for nothing; else it keeps all. True if one has
 * answered. */
bool ruling_opinions(ruling *r, policy *newest, const char *memory, policy_hook hook,
                     const char *group, const policy_item *items, size_t count, bool wishes,
                     policy_kept *out);

/* Tells them of a commit, or of a save that was given up; see policy_tell(). */
void ruling_tell(ruling *r, policy_hook hook, const policy_facts *facts);
bool ruling_keeps_few(const ruling *r); /* the core may let older generations go, for all of them */
uint64_t ruling_fallbacks(const ruling *r);
/* Appends their names, the newest first: "mine, default; other". */
void ruling_names(const ruling *r, buf *out);

#endif
