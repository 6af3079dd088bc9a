/* flags_named: the library's texts, in the words of the command line.
 *
 * The library knows no flags: it names an option or a call of its API in backquotes, as `take_over`
 * (ckpt_error() in ckpt.h). Whoever types is told the flag, --take-over. */
#ifndef RUNNER_CLI_FLAGS_NAMED_H
#define RUNNER_CLI_FLAGS_NAMED_H

/* The text with flags and verbs for what it names; what is in backquotes otherwise stays as it is.
 * Free it. NULL: out of memory. */
char *flags_named(const char *text);

#endif
