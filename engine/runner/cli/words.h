/* words: lists of words, splitting a text into words, and the nearest of some words. */
#ifndef RUNNER_CLI_WORDS_H
#define RUNNER_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A list that grows; `items` ends with NULL, and is NULL while it is empty. */
typedef struct word_list {
  char **items;
  size_t count;
} word_list;

/* Appends a copy of `word`; false when out of memory. */
bool word_list_add(word_list *list, const char *word);
void word_list_free(word_list *list);

/* Splits `text` into words as a shell does it, as far as blanks and quotes go: '...' is taken as it
 * is, and so is "..." but for \" and \\ in it; outside of quotes a backslash takes the next
 * character as it is. {} in a word becomes `path`, which is never split. Appends to `out`. Returns
 * 0, -1 for a quote that is not closed, -2 when out of memory. */
int words_split(word_list *out, const char *text, const char *path);

/* Returns the one of `count` words that is nearest to `word`, NULL if none is near: for "did you
 * mean". */
const char *words_nearest(const char *word, const char *const *words, size_t count);

#endif
