#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool word_list_add(word_list *list, const char *word) {
  char **items = realloc(list->items, (list->count + 2) * sizeof *items);
  if (!items) return false;
  list->items = items;
  items[list->count] = strdup(word);
  items[list->count + 1] = NULL;
  return items[list->count++] != NULL;
}

void word_list_free(word_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
  *list = (word_list){0};
}

int words_split(word_list *out, const char *text, const char *path) {
  char *word = NULL;
  size_t room = 0;
  char quote = 0;
  FILE *f = NULL; /* the word that is being read */
  int rc = 0;
  for (const char *p = text; rc == 0; p++) {
    bool blank = *p == ' ' || *p == '\t' || *p == '\n';
    if (*p == 0 && quote) {
      rc = -1;
    } else if (*p == 0 || (blank && !quote)) {
      if (f) {
        bool whole = fclose(f) == 0;
        if (!whole || !word_list_add(out, word)) rc = -2;
        free(word);
        f = NULL;
        word = NULL;
      }
      if (*p == 0) break;
    } else {
      if (!f) f = open_memstream(&word, &room);
      if (!f)
        rc = -2;
      else if (*p == quote)
        quote = 0;
      else if (!quote && (*p == '\'' || *p == '"'))
        quote = *p;
      else if (p[0] == '{' && p[1] == '}')
        fputs(path, f), p++;
      else if (*p == '\\' && p[1] && (!quote || (quote == '"' && (p[1] == '"' || p[1] == '\\'))))
        fputc(*++p, f);
      else
        fputc(*p, f);
    }
  }
  if (f) {
    fclose(f);
    free(word);
  }
  return rc;
}

/* ---- did you mean ---- */

/* Returns the edit distance between two words, at most WORD_MAX characters of each. */
static size_t distance(const char *a, const char *b) {
  enum { WORD_MAX = 31 };
  size_t row[WORD_MAX + 1];
  size_t n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[m];
}

const char *words_nearest(const char *word, const char *const *words, size_t count) {
  const char *nearest = NULL;
  size_t best = 3; /* further away it would be a guess */
  for (size_t i = 0; i < count; i++) {
    size_t d = distance(word, words[i]);
    if (d < best && d < strlen(words[i])) {
      best = d;
      nearest = words[i];
    }
  }
  return nearest;
}
