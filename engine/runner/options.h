/* options: what stands on the command line.
 *
 * One table says which options there are, which verbs take them, and what the help says: it cannot
 * know an option that the parser does not, nor the other way round. */
#ifndef RUNNER_OPTIONS_H
#define RUNNER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "words.h"

/* Verbs are bits, so that an option can belong to several. */
enum {
  VERB_RUN = 1 << 0,
  VERB_WATCH = 1 << 1,
  VERB_SYNC = 1 << 2,
  VERB_RESTORE = 1 << 3,
  VERB_LS = 1 << 4,
  VERB_SHOW = 1 << 5,
  VERB_LATEST = 1 << 6,
  VERB_VERIFY = 1 << 7,
  VERB_WHY = 1 << 8,
  VERB_PLAN = 1 << 9,
  VERB_RM = 1 << 10,
  VERB_PIN = 1 << 11,
  VERB_UNPIN = 1 << 12,
  VERB_NOTIFY = 1 << 13,
  VERB_STATUS = 1 << 14,
  VERB_EXEC = 1 << 15,
  VERB_VERSION = 1 << 16,
  VERB_MARK = 1 << 17,
  VERB_BISECT = 1 << 18,
  VERB_GC = 1 << 19,
  VERB_PACK = 1 << 20,
  VERB_UNPACK = 1 << 21,
  VERB_HELP = 1 << 22
};

/* --ranks, --dir-is: ranks.h says what they mean. */
enum { RANKS_AUTO, RANKS_OFF, RANKS_NODE, RANKS_TASK };
enum { DIR_IS_FOUND, DIR_IS_SHARED, DIR_IS_LOCAL };

typedef struct options {
  unsigned verb;
  bool help; /* -h, --help: nothing else was checked */
  int level; /* -1: -q, 1: -v */
  bool json, dry_run;
  /* Strings belong to argv. */
  const char *dir, *to, *state, *run_id, *launch, *resume_arg;
  const char *uri, *name;         /* positional */
  const char *named;              /* --restore NAME|URI */
  const char *word;               /* mark: bad or good */
  const char *file;               /* pack, unpack: the archive */
  uint64_t size_max, entries_max; /* unpack; 0: the default */
  const char *reason;             /* mark */
  char **command; /* run, exec, bisect: within argv, ends with NULL; bisect: or NULL */
  char **words;   /* notify: the same */
  word_list units, excludes, markers, policies, settings;
  unsigned restore; /* CKPT_RESTORE_* */
  double quiet_s;   /* as ckpt_run_options has it: 0 default, negative none */
  double grace_s;
  double max_delete, grace_delete_s; /* as ckpt_run_options has them */
  double pin_s;                      /* 0: for good */
  unsigned ranks, dir_is;            /* RANKS_*, DIR_IS_* */
  unsigned rank, world;              /* world 0: not given */
  double rank_wait_s;
  unsigned bad_after; /* as ckpt_run_options has it */
  bool continue_run, take_over, poll, usr1, require_commit, detach;
  bool policy_in_process, no_delete, single_writer, all, uri_only, wait;
  bool alone, linear, mark;
  const char *remove; /* gc */
  bool remove_run, yes;
} options;

enum { OPTIONS_ERROR_MAX = 512 };

/* Reads the arguments of `verb`; argv[0] is the verb itself. Returns 0, or -1 with one line for the
 * user in `error`. options_free() is due in both cases. Not for two threads at once (getopt). */
int options_parse(options *o, unsigned verb, int argc, char **argv, char error[OPTIONS_ERROR_MAX]);
void options_free(options *o);

/* The options of a verb, a line or two each. */
void options_help(FILE *out, unsigned verb);

/* The policies that hold, ended by NULL: those of -p, else "default"; NULL for `-p builtin`. */
const char *const *options_policies(const options *o);

#endif
