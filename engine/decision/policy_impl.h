/* policy_impl: declarations that the files of `policy` share: the chain of a run and its parts. For
 * policy*.c only. */
#ifndef DECISION_POLICY_IMPL_H
#define DECISION_POLICY_IMPL_H

#include "base/buf.h"
#include "base/json.h"
#include "decision/policy.h"
#include "prims/hash.h"

enum { POLICY_FAULT_MAX = 600 };

struct policy {
  const io *io;
  const log_sink *log;
  policy_link *link;
  char *run; /* the run's id, for people */
  char *id;  /* the chain's on the link; no other chain of this process has it */
  char *names;
  buf request;         /* loads the chain; empty: there is none */
  uint64_t generation; /* of the helper that has it loaded; 0: none */
  rules *rules;
  json_t *data;            /* the answer to its loading; NULL: no chain */
  const char **companions; /* the globs in it, ended by NULL; NULL: none */
  policy_newest_only newest;
  policy_queue queue;
  bool has[POLICY_HOOKS];
  char who[POLICY_HOOKS][POLICY_NAME_MAX]; /* the policies that have to be asked, by hook */
  uint64_t fallbacks, failed[POLICY_HOOKS];
  char fault[POLICY_FAULT_MAX]; /* the last one */
  char stays[64]; /* keys that were taken over from the chain before: "markers, with" */
  json_t *told;   /* warnings that were logged: an object with them as keys */
};

/* ---- small things ---- */

/* Makes a text for people, cut to the room. NULL: "". */
void policy_plain(const char *text, char *to, size_t room);
/* Counts the elements of a JSON array. Lua has one empty table: an empty object is an empty list
 * too, as is NULL. -1: it is no list. */
ssize_t policy_list(const json_t *value);
/* Reads a whole number however it was printed (5e9): true if it is one from `min` to `max`. */
bool policy_whole(const json_t *value, int64_t min, int64_t max, int64_t *out);

/* ---- policy_load.c: at the start ---- */

/* Sends the chain to the helper; *answer is a new reference. ERR_INVAL: the settings are wrong;
 * ERR_POLICY: the files are, or the helper died. */
int policy_load(policy *p, json_t **answer, err *e);
/* Drops it there, if it is there: the next question loads it anew. */
void policy_unload(policy *p);

/* These are in policy_files.c. Appends the text of the file. ERR_INVAL: it is over POLICY_FILE_MAX, or has a
 * byte 0, which no Lua that is handed on as text can have. */
int policy_read_file(const io *io, const char *path, buf *text, err *e);
/* The same of a policy, whose name is looked up in `dir` if it is no path. */
int policy_read(const policy_options *o, const char *dir, const char *name, buf *text, err *e);

/* These are in policy_rules.c. */
int policy_make_rules(const policy_options *options, const json_t *data, rules **out, err *e);

/* Makes the list of `with`, whose strings stay those of the data; without one, that of the known
 * frameworks. */
int policy_make_companions(const json_t *data, const char ***out, err *e);

/* policy_newest.c: reads `newest_only`. ERR_POLICY: a glob is none, or would take all of a checkpoint, or what
 * the rules ask a complete one for. */
int policy_make_newest(const json_t *data, const rules *rules, policy_newest_only *out, err *e);

/* policy_shipped.c: puts the directory of the shipped policies into dir[FS_PATH_MAX]. */
int policy_shipped_dir(const io *io, const char *given, char *dir, err *e);

/* policy_path.c: returns what a path leads to (a new reference), or NULL; `key` is the last name in
 * the path, or empty. */
enum { POLICY_KEY_MAX = 256 };
json_t *policy_path_find(json_t *top, const char *path, char key[POLICY_KEY_MAX]);
bool policy_path_good(const char *path);

/* Checks that policy_metrics() understands these sources (policy_metrics.c). */
int policy_metrics_check(const json_t *sources, err *e);

/* ---- policy_ask.c: one question ---- */

typedef struct policy_reply {
  json_t *whole;
  const json_t *answer; /* points into it; NULL: no policy had an answer */
  char by[POLICY_NAME_MAX], reason[POLICY_REASON_MAX];
  char *memory; /* the new one as text, NULL if it is empty; only if has_memory */
  bool has_memory;
  double again_s; /* 0: time alone changes nothing */
} policy_reply;

const char *policy_hook_name(policy_hook hook);

/* Says what became of the helper's chain by a request. */
typedef enum policy_standing {
  POLICY_STANDS,
  POLICY_DEAD,    /* it died of the request, alone or with the helper */
  POLICY_UNKNOWN, /* it was not there: nothing was asked of it */
} policy_standing;

/* Sends a request and looks whether it was carried out; *answer is a new reference. ERR_POLICY, or
 * ERR_INVAL: the settings are wrong; or the helper cannot be started. */
int policy_exchange(policy *p, const char *request, size_t len, json_t **answer,
                    policy_standing *state, err *e);

/* What is asked about. */
typedef struct policy_question {
  buf about; /* the event and its list, packed */
  buf then;  /* the hooks that are asked next, as the members of the list that `ask` has */
} policy_question;

void policy_question_free(policy_question *q);

/* Asks the chain, which is loaded first where the helper does not have it. `question` is borrowed,
 * `memory` a text or NULL; `before` is NULL for a first question, else what it was handed then.
 * On success (0) end with policy_accept() or policy_refuse(); a failure is counted and told
 * already. */
int policy_ask(policy *p, policy_hook hook, const policy_question *question, const char *memory,
               const policy_asked *before, policy_reply *out);
/* The same for an answer that came with an earlier one (`whole`, borrowed). */
int policy_hear(policy *p, policy_hook hook, json_t *whole, policy_reply *out);
/* Appends the memory that a question is handed: it is JSON already, and printed no second time. */
void policy_put_memory(const char *memory, buf *out);
/* Accepts a good answer: takes the memory over (may be NULL), logs its warnings, frees all but `by`
 * and `reason`. */
void policy_accept(policy *p, policy_reply *reply, char **memory);
/* Asks as a trial: nothing is counted, told or remembered. `question` is borrowed. */
int policy_try_on(policy *p, policy_hook hook, const policy_question *question, err *e);
void policy_say_trial(const policy *p, policy_hook hook, const char *why);
/* Refuses an answer: counts and tells it, frees it. */
void policy_refuse(policy *p, policy_hook hook, policy_reply *reply, const char *why);
/* Logs warnings of policies, each once. */
void policy_warn(policy *p, const json_t *warnings);

/* policy_try.c: tries the functions of a chain that was just loaded, and warns of those that fail. */
void policy_try(policy *p);
/* Made-up facts: as much as there could be, or as little. */
policy_facts policy_made_up(const char *event, bool known);
/* The made-up list of three that the hooks of lists are tried with. */
enum { POLICY_MADE_UP_ITEMS = 3 };
void policy_made_up_items(const policy *p, policy_item items[POLICY_MADE_UP_ITEMS]);

/* Asks one thing of a check; `request` is taken over and gets its `op` and `id`; `about` may be NULL.
 * *answer is a new reference. */
int policy_check_ask(policy *p, json_t *request, const policy_question *about, json_t **answer,
                     err *e);

/* ---- policy_facts.c: what a policy sees ---- */

policy_question policy_event(const policy *p, const policy_facts *facts);
policy_question policy_list_question(const policy *p, policy_hook hook, const char *group,
                                     const policy_item *items, size_t count);

/* policy_pack.c: appends one item of a list; `age` in seconds. */
enum { POLICY_PACKED_NEWEST = 1, POLICY_PACKED_PINNED = 2, POLICY_PACKED_DURABLE = 4 };
void policy_pack_item(const policy_item *item, double age, buf *out);
/* Appends a name as a text, in which bytes that are none are shown as %XX. */
void policy_pack_name(const char *name, buf *out);
/* Lua has one kind of number; what is above that of JSON's integers is their last one. */
double policy_pack_count(uint64_t n);

/* policy_localtime.c: appends the time on this host's wall, an object. */
void policy_localtime(int64_t wall_ns, buf *out);

/* ---- policy_answer.c: what a policy said, against the vocabulary. ERR_POLICY: it is not in it.
 * NULL, no answer, is 0 and leaves *out as it is. ---- */

int answer_ready(const json_t *answer, bool *out, err *e);
/* Finds the place of the answer in `words` (NULL ends). */
int answer_word(const json_t *answer, const char *const *words, int *out, err *e);
int answer_remedy(const json_t *answer, policy_remedy *out, double *seconds, err *e);
int answer_names(const json_t *answer, err *e);
/* Adds the globs, each of which is checked. */
int answer_globs(const json_t *answer, names *out, err *e);
/* Fills in keep and reason of each. */
int answer_kept(const json_t *answer, size_t count, policy_kept *out, err *e);
extern const char *const answer_queues[], *const answer_syncs[], *const answer_rests[];

#endif
