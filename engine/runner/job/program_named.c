#include "program_named.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launchers.h"
#include "runner/cli/words.h"

/* Deeper than that nobody nests launchers; a table that led in a circle would be seen. */
enum { DEEPEST = 16 };

/* ---- files ---- */

static bool is_file(const char *word) {
  struct stat st;
  return *word && stat(word, &st) == 0 && S_ISREG(st.st_mode);
}

/* True if the shell would find the program. */
static bool is_program(const char *word) {
  if (strchr(word, '/')) return is_file(word);
  const char *at = getenv("PATH");
  while (at && *at) {
    size_t len = strcspn(at, ":");
    char *path = NULL;
    bool found = asprintf(&path, "%.*s/%s", (int)len, at, word) >= 0 && access(path, X_OK) == 0;
    free(path);
    if (found) return true;
    at += len + (at[len] == ':');
  }
  return false;
}

static char *tagged(const char *tag, const char *text) {
  char *out = NULL;
  return asprintf(&out, "%s:%s", tag, text) < 0 ? NULL : out;
}

/* Names a file by its path without links, so that the directory from which it is named does not
 * matter. One that is not there (yet) is named as it is written. */
static char *file_named(const char *word) {
  char *real = realpath(word, NULL), here[4096];
  char *out = NULL;
  if (real)
    out = tagged("file", real);
  else if (*word != '/' && getcwd(here, sizeof here))
    out = asprintf(&out, "file:%s/%s", here, word) < 0 ? NULL : out;
  else
    out = tagged("file", word);
  free(real);
  return out;
}

/* ---- the table ---- */

static bool listed(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *at = list; at && n && (at = strstr(at, word)); at++)
    if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
  return false;
}

/* True if it is one of the names, or one that ends in * with a version behind it. */
static bool is_named(const char *names, const char *word) {
  while (*names) {
    size_t n = strcspn(names, " ");
    if (names[n - 1] == '*' && strncmp(word, names, n - 1) == 0 &&
        word[n - 1 + strspn(word + n - 1, "0123456789.-w")] == 0)
      return true;
    if (strlen(word) == n && strncmp(word, names, n) == 0) return true;
    names += n + (names[n] == ' ');
  }
  return false;
}

static const launcher *launcher_of(const char *word) {
  const char *slash = strrchr(word, '/');
  for (const launcher *l = launchers; l->names; l++)
    if (is_named(l->names, slash ? slash + 1 : word)) return l;
  return NULL;
}

/* ---- reading ---- */

/* What the words of a launcher come to. */
typedef struct reading {
  char *const *rest;   /* the script, or the command that it starts; NULL: it was not found */
  const char *module;  /* or this */
  const char *code;    /* or this */
  char *const *behind; /* the words behind the module */
} reading;

/* An option whose value is the rest of its word, or the next word. */
static char *const *take(const launcher *l, const char *option, const char *glued,
                         char *const *words, reading *out) {
  const char *value = *glued ? glued : words[1];
  char *const *next = words + (*glued || !words[1] ? 1 : 2);
  if (listed(l->modules, option))
    out->module = value, out->behind = next;
  else if (listed(l->codes, option))
    out->code = value;
  return next;
}

/* Letters behind one dash: the first that takes a value takes all that follows. */
static char *const *take_letters(const launcher *l, char *const *words, reading *out) {
  for (const char *p = words[0] + 1; *p; p++) {
    char option[3] = {words[0][0], *p, 0};
    if (listed(l->values, option) || listed(l->modules, option) || listed(l->codes, option))
      return take(l, option, listed(l->codes, option) ? "" : p + 1, words, out);
  }
  return words + 1;
}

static char *const *take_option(const launcher *l, char *const *words, reading *out) {
  const char *word = *words;
  if (listed(l->values, word) || listed(l->modules, word) || listed(l->codes, word))
    return take(l, word, "", words, out);
  if (listed(l->pairs, word)) return words + 1 + (words[1] != NULL) + (words[1] && words[2]);
  if (l->letters && word[1] != '-') return take_letters(l, words, out);
  return words + 1;
}

static bool is_assignment(const char *word) {
  size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
  return n > 0 && word[n] == '=';
}

static reading read_launcher(const launcher *l, char *const *words) {
  reading out = {0};
  unsigned skip = l->words;
  bool verb = !l->verb;
  while (*words && !out.module && !out.code) {
    const char *word = *words;
    if (strcmp(word, "--") == 0 && verb) {
      words++;
      if (skip == 0) break;
    } else if ((*word == '-' || (*word == '+' && l->letters)) && word[1]) {
      words = take_option(l, words, &out);
    } else if (!verb) {
      if (strcmp(word, l->verb) != 0) return out; /* another verb of it starts nothing */
      verb = true;
      words++;
    } else if (l->assigns && is_assignment(word)) {
      words++;
    } else if (skip > 0) {
      skip--;
      words++;
    } else {
      break;
    }
  }
  if (*words && !out.module && !out.code) out.rest = words;
  return out;
}

/* ---- names ---- */

static char *name_words(char *const *words, int depth);

static char *first_file(char *const *words) {
  for (; *words; words++)
    if (**words != '-' && is_file(*words)) return file_named(*words);
  return NULL;
}

/* A command as text is read like one of words as long as it is one command: else all of it is the
 * program. Files that it makes would change what it is called. */
static char *name_code(const char *code, int depth) {
  word_list words = {0};
  char *out = NULL;
  if (!strpbrk(code, ";|&<>$`(){}\n*?#") && words_split(&words, code, "{}") == 0 && words.count) {
    char *const *at = words.items;
    while (*at && is_assignment(*at)) at++;
    if (*at && (launcher_of(*at) || is_program(*at))) out = name_words(at, depth);
  }
  word_list_free(&words);
  return out ? out : tagged("code", code);
}

static char *name_module(const reading *r, int depth) {
  const launcher *l = launcher_of(r->module);
  bool launches = l && strchr(r->module, '.');
  reading inner = launches ? read_launcher(l, r->behind) : (reading){0};
  if (inner.module) return name_module(&inner, depth);
  if (inner.rest) return is_file(*inner.rest) ? file_named(*inner.rest) : first_file(inner.rest);
  return tagged("module", r->module);
}

/* What stands where a script should. */
static char *name_script(char *const *words) {
  char *file = is_file(*words) ? NULL : first_file(words);
  return file ? file : file_named(*words);
}

static char *name_words(char *const *words, int depth) {
  const launcher *l = depth < DEEPEST ? launcher_of(*words) : NULL;
  reading r = l ? read_launcher(l, words + 1) : (reading){0};
  char *file;
  if (r.module) return name_module(&r, depth + 1);
  if (r.code) return l->shell ? name_code(r.code, depth + 1) : tagged("code", r.code);
  if (r.rest && l->script) return name_script(r.rest);
  if (r.rest && (launcher_of(*r.rest) || is_program(*r.rest))) return name_words(r.rest, depth + 1);
  if (r.rest) return name_script(r.rest);
  if (is_program(*words) || !(file = first_file(words + 1)))
    return strchr(*words, '/') ? file_named(*words) : tagged("name", *words);
  return file;
}

char *program_named(char *const *words) {
  return name_words(words, 0);
}
