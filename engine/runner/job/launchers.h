/* launchers: which words of a command start another program, and which of their options take a
 * value. Data alone: program_named.c reads it. */
#ifndef RUNNER_JOB_LAUNCHERS_H
#define RUNNER_JOB_LAUNCHERS_H

#include <stdbool.h>

/* Lists are words between blanks. */
typedef struct launcher {
  const char *names;   /* of the program, or of the module that is it; one that ends in * also with
                        * a version behind it */
  bool script;         /* what follows is a file that it reads; else it is another command */
  const char *verb;    /* a word that has to follow: `uv run`; NULL: none */
  const char *values;  /* options that take the next word; NULL: none */
  const char *pairs;   /* options that take the next two */
  const char *modules; /* options behind which a module is named */
  const char *codes;   /* options behind which the program itself stands, as text */
  bool shell;          /* such a text is a command */
  bool letters;        /* several letters may stand behind one dash: -uc */
  bool assigns;        /* NAME=value may stand before the command */
  unsigned words;      /* so many words stand before the command: a duration, an image */
} launcher;

/* Ended by one without names. */
extern const launcher launchers[];

#endif
