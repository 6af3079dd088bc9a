/* policy_check_tell: says where in its file a finding is. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_check_impl.h"

enum { TEXT_MAX = 600, WORD_MAX = 100 };

bool checking_over(const checking *c) {
  return c->stopped != 0 || c->o->io->now(c->o->io, IO_MONO) > c->deadline;
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Finds a whole word between two places of the text; NULL: it is not there. */
static const char *find_word(const char *from, const char *to, const char *word) {
  size_t len = strlen(word);
  if (len == 0) return NULL;
  for (const char *at = from; (at = strstr(at, word)) != NULL && at + len <= to; at++) {
    bool begins = at == from || !is_word(at[-1]) || !is_word(*word);
    bool ends = at + len == to || !is_word(at[len]) || !is_word(word[len - 1]);
    if (begins && ends) return at;
  }
  return NULL;
}

static const char *line_end(const char *line) {
  return line + strcspn(line, "\n");
}

static const char *nth_line(const char *text, unsigned line) {
  for (; line > 1 && *text; line--) {
    text = line_end(text);
    if (*text) text++;
  }
  return line == 1 ? text : NULL;
}

/* Finds the line on which a key stands that gets a value: "sync = ". */
static unsigned line_of_key(const char *text, const char *key) {
  size_t len = strlen(key);
  unsigned n = 1;
  for (const char *line = text; *line; n++) {
    const char *end = line_end(line), *at = find_word(line, end, key);
    if (at) {
      const char *after = at + len + strspn(at + len, " \t");
      size_t dashes = (size_t)(at - line);
      const char *comment = strstr(line, "--");
      bool commented = comment && comment < line + dashes;
      if (*after == '=' && after[1] != '=' && !commented) return n;
    }
    line = *end ? end + 1 : end;
  }
  return 0;
}

static void tell(checking *c, policy_finding *f, const char *word, const char *more) {
  char key[TEXT_MAX + 40], text[2 * TEXT_MAX];
  const char *line = f->line ? nth_line(c->text, f->line) : NULL;
  const char *at = line && word ? find_word(line, line_end(line), word) : NULL;
  if (at) f->column = (unsigned)(at - line) + 1;
  snprintf(key, sizeof key, "%u:%s", f->line, f->text);
  if (c->stopped || json_object_get(c->told, key)) return;
  json_object_set_new(c->told, key, json_true());
  if (f->level == POLICY_FAULT) c->faulty = true;
  snprintf(text, sizeof text, "%.*s%.*s", TEXT_MAX, f->text, TEXT_MAX - 1, more);
  policy_finding told = *f;
  told.text = text;
  c->stopped = c->fn ? c->fn(c->ctx, &told) : 0;
}

/* Passes over what only says that something is wrong. */
static const char *pass_over(const char *text) {
  static const char *const said[] = {"it raised an error: ", "its answer is none: "};
  const char *colon = strstr(text, ": ");
  if (strncmp(text, "policy ", 7) == 0 && colon) text = colon + 2;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (strncmp(text, said[i], strlen(said[i])) == 0) text += strlen(said[i]);
  return text;
}

/* Takes the place out of a text: "it ran too long: mine.lua:7: rest". What stands before it stays. */
static void take_place(const checking *c, const char *text, unsigned *line, char plain[TEXT_MAX]) {
  text = pass_over(text);
  const char *at = strstr(text, c->file), *rest = text;
  size_t len = strlen(c->file), before = 0;
  char whole[TEXT_MAX], *end;
  *line = 0;
  if (at && at[len] == ':') {
    unsigned long n = strtoul(at + len + 1, &end, 10);
    if (n > 0 && n < 1000000 && *end == ':') *line = (unsigned)n;
    rest = *line ? end + 1 : at + len + 1;
    rest += strspn(rest, " ");
    before = (size_t)(at - text);
  }
  snprintf(whole, sizeof whole, "%.*s%s", (int)before, text, rest);
  policy_plain(whole, plain, TEXT_MAX);
}

/* Takes a key with which a message begins: "unit: ...". */
static const char *first_word(const char *text, char word[WORD_MAX]) {
  size_t len = 0;
  while (is_word(text[len])) len++;
  if (len == 0 || len >= WORD_MAX || text[len] != ':') return NULL;
  snprintf(word, WORD_MAX, "%.*s", (int)len, text);
  return word;
}

/* Takes the first word in quotes, which mostly is the name that a message is about. */
static const char *quoted_word(const char *text, char word[WORD_MAX]) {
  const char *open = strpbrk(text, "'\"`");
  const char *end = open ? strchr(open + 1, *open) : NULL;
  size_t len = end ? (size_t)(end - open - 1) : 0;
  if (len == 0 || len >= WORD_MAX) return NULL;
  snprintf(word, WORD_MAX, "%.*s", (int)len, open + 1);
  return word;
}

void checking_tell(checking *c, policy_level level, const char *topic, const char *text,
                   const char *more) {
  char word[WORD_MAX], plain[TEXT_MAX];
  policy_finding f = {.level = level, .topic = topic};
  take_place(c, text, &f.line, plain);
  f.text = plain;
  const char *named = f.line ? NULL : first_word(plain, word);
  if (named) f.line = line_of_key(c->text, named);
  if (f.line == 0 || !named) named = quoted_word(plain, word);
  if (named && f.line == 0) f.line = line_of_key(c->text, named);
  tell(c, &f, named, more);
}

/* Tells of a word in a line that is known. */
static void tell_line(checking *c, policy_finding f, const char *word, const char *text) {
  char plain[TEXT_MAX];
  policy_plain(text, plain, sizeof plain);
  f.text = plain;
  tell(c, &f, word, "");
}

void checking_tell_at(checking *c, policy_level level, const char *topic, const char *where,
                      const char *word, const char *text) {
  policy_finding f = {.level = level, .topic = topic};
  const char *colon = where ? strrchr(where, ':') : NULL; /* a helper may answer anything */
  if (colon) f.line = (unsigned)strtoul(colon + 1, NULL, 10);
  tell_line(c, f, word, text);
}

void checking_tell_key(checking *c, policy_level level, const char *topic, const char *key,
                       const char *text) {
  policy_finding f = {.level = level, .topic = topic, .line = line_of_key(c->text, key)};
  tell_line(c, f, key, text);
}

void checking_tell_word(checking *c, policy_level level, const char *topic, const char *word,
                        const char *text) {
  policy_finding f = {.level = level, .topic = topic};
  size_t len = strlen(word);
  for (const char *at = c->text; (at = strstr(at, word)) != NULL; at++) {
    bool quoted = at > c->text && (at[-1] == '"' || at[-1] == '\'') && at[len] == at[-1];
    if (!quoted) continue;
    for (const char *p = c->text; p < at; p++)
      if (*p == '\n') f.line++;
    f.line++;
    break;
  }
  tell_line(c, f, word, text);
}
