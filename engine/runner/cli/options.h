/* options: the words of the command line; how one option is described and read.
 *
 * An option is one row: how it is written, its text in the help, and the member to which its value
 * goes. Those of a run are in run_flags.c, a verb's own ones in the file of the verb. */
#ifndef RUNNER_CLI_OPTIONS_H
#define RUNNER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"

/* --ranks, --dir-is: role.h says what they mean. */
enum { RANKS_AUTO, RANKS_OFF, RANKS_NODE, RANKS_TASK };
enum { DIR_IS_FOUND, DIR_IS_SHARED, DIR_IS_LOCAL };

typedef struct options {
  bool help; /* -h, --help: nothing else was checked */
  int level; /* -1: -q, 1: -v */
  bool json, dry_run;

  /* ---- run, watch, sync; some of it plan, rm and gc, too ---- */
  ckpt_run_options run; /* as the engine gets it, except for the members that start_options()
                         * adds */
  double grace_s;
  unsigned restore;       /* CKPT_RESTORE_* */
  const char *named;      /* --restore NAME|URI */
  const char *resume_arg; /* not split yet */
  unsigned ranks, dir_is; /* RANKS_*, DIR_IS_* */
  unsigned slurm_comment; /* COMMENT_* of comment.h */
  bool ranked;            /* --rank was given: 0 is one, too */
  bool graced;            /* --grace was given */
  bool usr1, requeue, require_commit, detach, policy_in_process;
  bool coverage; /* policy test */

  /* ---- the other verbs; strings belong to argv ---- */
  const char *uri, *name, *word, *file; /* words; mark: bad or good; pack, unpack: the archive */
  char **command; /* of run, exec, bisect: within argv, ends with NULL, or NULL */
  char **words;   /* of notify: as `command` */
  const char *dir, *to, *state, *reason, *remove;
  const char *plot;               /* policy simulate: a file to be made */
  uint64_t size_max, entries_max; /* unpack; 0: the default */
  double pin_s;                   /* 0: for good */
  double drain_s;                 /* how long a drain may take */
  double bandwidth, mtbf_s;       /* policy simulate: bytes a second, 0: none is given; 0: none */
  uint64_t seed, at;              /* at: an entry's number, if `past` */
  const char *const *only;        /* of a restore; to be freed */
  bool past, all, uri_only, wait, alone, linear, mark, remove_run, yes, record, metrics;
} options;

enum { OPTIONS_ERROR_MAX = 512 };

/* Writes one line for the user into `error`; its value is -1. */
#define OPTIONS_FAIL(error, ...) (snprintf((error), OPTIONS_ERROR_MAX, __VA_ARGS__), -1)

/* Reads the value of an option ("" if it takes none) into its member. 0, or -1 with `error`. */
typedef struct option_spec option_spec;
typedef int option_take(options *o, const option_spec *spec, const char *value, char *error);

struct option_spec {
  const char *name;  /* NULL: it has a letter only */
  const char *value; /* its name in the help; NULL: the option takes none */
  const char *help;
  option_take *take;
  size_t at; /* its member: OF(...) */
  char letter;
  unsigned takers;  /* of an option of a run: the verbs that take it, FLAGS_* */
  bool needed;      /* a text that the verb needs */
  double initial;   /* of a time option that is not given */
  uint32_t bit;     /* take_bit */
  uint32_t most;    /* take_count */
  const char *says; /* take_choice: "auto|off"; take_time: the fault of 0, or NULL */
};

#define OF(member) offsetof(options, member)

/* Returns the member that the option sets. */
void *option_member(options *o, const option_spec *spec);

option_take take_set;    /* a bool becomes true */
option_take take_bit;    /* in a uint32_t */
option_take take_text;   /* const char *, within argv */
option_take take_place;  /* does as take_text, and refuses a second one that says otherwise: the
                          * last one would win in silence */
option_take take_list;   /* const char *const *, ended by NULL, and to be freed */
option_take take_count;  /* uint32_t from 0 to `most` */
option_take take_choice; /* unsigned: the place of the value among the words of `says` */
option_take take_time;   /* double, in seconds */

/* Does as take_time for the engine, to which 0 is the default: no time at all is -1. */
option_take take_time_or_none;

/* Many verbs take these. */
extern const option_spec option_json, option_dry_run;
/* Each verb takes these: -q, -v, -h. */
enum { OPTIONS_COMMON = 3 };
extern const option_spec options_common[OPTIONS_COMMON];

void options_free(options *o);

/* Returns the policies that hold, ended by NULL: those of -p, else "default"; NULL for `-p
 * builtin`. */
const char *const *options_policies(const options *o);

/* Returns what the engine gets of a verb with FLAGS_PLAN, for the target at o->uri. */
ckpt_plan_options options_plan(const options *o);

#endif
