/* policy_check_impl: what the files of policy_check share. */
#ifndef DECISION_POLICY_CHECK_IMPL_H
#define DECISION_POLICY_CHECK_IMPL_H

#include "decision/policy_check.h"
#include "decision/policy_impl.h"

typedef struct checking {
  const policy_check_options *o;
  policy *p;                 /* NULL: it does not load */
  char *file;                /* "mine.lua", as errors of Lua name it */
  const char *text;          /* of the file */
  json_t *told;              /* what was told: an object with it as keys */
  json_t *metrics, *results; /* names that it asks for, each with the line that does */
  int64_t deadline;          /* of this part, by IO_MONO */
  bool faulty;
  policy_finding_fn *fn;
  void *ctx;
  int stopped; /* what `fn` returned, if that was not 0 */
} checking;

enum { CHECK_FOR_MS = 10000 };

/* Tells a finding once. `text` may have "mine.lua:7: " in it; the first word in quotes behind that is where
 * it is in that line. `more` is added to it, and makes no other finding of it. */
void checking_tell(checking *c, policy_level level, const char *topic, const char *text,
                   const char *more);
/* The same of a line by its name ("mine.lua:7"), as Lua gives it. `word` (may be NULL) is where in it. */
void checking_tell_at(checking *c, policy_level level, const char *topic, const char *where,
                      const char *word, const char *text);
/* The same of a key of the table that the file returns, wherever that stands. */
void checking_tell_key(checking *c, policy_level level, const char *topic, const char *key,
                       const char *text);

/* The same of a text in quotes, wherever it stands first. */
void checking_tell_word(checking *c, policy_level level, const char *topic, const char *word,
                        const char *text);

/* True if this part has to end: the time is over, or nobody wants more. */
bool checking_over(const checking *c);

/* policy_check_left.c: holds the globs of `exclude` against what they leave. */
void checking_excludes(checking *c);
/* The same of an answer of its functions; NULL and null: it left out nothing. */
void checking_left(checking *c, const json_t *answer);

/* policy_check_tree.c: holds the policy against the names in a directory. */
int checking_tree(checking *c, err *e);

#endif
