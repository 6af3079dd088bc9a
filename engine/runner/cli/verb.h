/* verb: the description of a verb, by which its command line is read. */
#ifndef RUNNER_CLI_VERB_H
#define RUNNER_CLI_VERB_H

#include "options.h"

enum { VERB_WORDS = 3 };

typedef struct verb {
  const char *name;
  const char *synopsis; /* after "ckpt-lua " */
  const char *summary;
  const char *text;                  /* shown below the options in the help; may be NULL */
  unsigned flags;                    /* FLAGS_*: the options of a run that it takes */
  const option_spec *const *options; /* its own options, ended by NULL; may be NULL. Each verb has
                                      * those of options_common */
  struct {
    int least, most;
    const char *missing;   /* names the missing words, when there are less than the least */
    size_t at[VERB_WORDS]; /* the members of `options` to which the words go; 0: none */
    size_t rest;           /* the member (char **) for the words behind those; 0: none */
    bool command;          /* the first word begins a command, whose options are its own */
  } words;
  /* Checks rules over several options; may be NULL. Returns 0, or -1 with one line for the user. */
  int (*check)(const options *o, char *error);
  int (*run)(const options *o); /* returns the exit code */
  /* What the second word chooses among, ended by NULL: verbs of their own, each named by both words
   * ("policy check"). Such a verb does nothing itself. NULL: there are none. */
  const struct verb *const *subs;
} verb;

/* Returns the one of `v->subs` that this word names; NULL: none is called so. */
const verb *verb_sub(const verb *v, const char *word);

/* Reads the arguments of `v`; argv[0] is the verb itself. Returns 0, or -1 with one line for the
 * user in `error`. options_free() is due in both cases. Not for two threads at once (getopt). */
int verb_parse(const verb *v, options *o, int argc, char **argv, char error[OPTIONS_ERROR_MAX]);

/* Lists its options, a line or two each. */
void verb_list_options(const verb *v, FILE *out);

#endif
