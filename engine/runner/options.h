/* options: what stands on the command line.
 *
 * One table says which options there are, which verbs take them, and what the help says: it cannot
 * know an option that the parser does not, nor the other way round. */
#ifndef RUNNER_OPTIONS_H
#define RUNNER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Verbs are bits, so that an option can belong to several. */
enum {
  VERB_RUN = 1,
  VERB_WATCH = 2,
  VERB_RESTORE = 4,
  VERB_LS = 8,
  VERB_VERIFY = 16,
  VERB_VERSION = 32,
  VERB_HELP = 64
};

/* A list that grows; `items` ends with NULL, and is NULL while it is empty. */
typedef struct word_list {
  char **items;
  size_t count;
} word_list;

typedef struct options {
  unsigned verb;
  bool help; /* -h, --help: nothing else was checked */
  int level; /* -1: -q, 1: -v */
  bool json;
  /* Strings belong to argv. */
  const char *dir, *to, *state, *run_id, *launch, *resume_arg;
  const char *uri, *name; /* positional */
  const char *named;      /* --restore NAME|URI */
  char **command;         /* within argv, ends with NULL */
  word_list units, excludes, markers;
  unsigned restore; /* CKPT_RESTORE_* */
  double quiet_s;   /* as ckpt_run_options has it: 0 default, negative none */
  double grace_s;
  bool continue_run, take_over, poll, usr1, require_commit, detach;
} options;

enum { OPTIONS_ERROR_MAX = 512 };

/* Reads the arguments of `verb`; argv[0] is the verb itself. Returns 0, or -1 with one line for the
 * user in `error`. options_free() is due in both cases. Not for two threads at once (getopt). */
int options_parse(options *o, unsigned verb, int argc, char **argv, char error[OPTIONS_ERROR_MAX]);
void options_free(options *o);

/* The options of a verb, a line or two each. */
void options_help(FILE *out, unsigned verb);

/* Of `count` words the one that is nearest to `word`, NULL if none is near: for "did you mean". */
const char *options_nearest(const char *word, const char *const *words, size_t count);

/* Splits `text` into words as a shell does it, as far as blanks and quotes go: '...' is taken as it
 * is, and so is "..." but for \" and \\ in it; outside of quotes a backslash takes the next
 * character as it is. {} in a word becomes `path`, which is never split. Appends to `out`. Returns
 * 0, -1 for a quote that is not closed, -2 when out of memory. */
int options_words(word_list *out, const char *text, const char *path);

/* Appends a copy of `word`; false when out of memory. */
bool word_list_add(word_list *list, const char *word);
void word_list_free(word_list *list);

#endif
