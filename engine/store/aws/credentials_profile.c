/* The files of profiles: read whole, cut into pieces in place, asked later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "credentials_parts.h"
#include "prims/fs.h"

enum { FILE_MAX = 1 << 20 };

/* A file, while it is read. */
typedef struct reader {
  profiles *to;
  profile_file file;
  unsigned line;
  profile_kind kind;
  const char *section; /* NULL: none yet */
  const char *nest;
} reader;

/* ---- lines ---- */

static char *trim(char *text) {
  text += strspn(text, " \t");
  size_t len = strlen(text);
  while (len > 0 && strchr(" \t\r", text[len - 1])) len--;
  text[len] = 0;
  return text;
}

static int malformed(const reader *r, const char *what, err *e) {
  return err_set(e, ERR_FORMAT, "%.300s, line %u: %s", r->to->path[r->file], r->line, what);
}

static int note(reader *r, const char *key, const char *value, err *e) {
  profiles *p = r->to;
  if (!VEC_ROOM(p->at, p->count, p->room)) return err_set(e, ERR_NOMEM, "no memory for profiles");
  p->at[p->count++] = (profile_entry){.file = r->file,
                                      .kind = r->kind,
                                      .line = r->line,
                                      .section = r->section,
                                      .nest = r->nest,
                                      .key = key,
                                      .value = value};
  return 0;
}

/* Cuts a word off the front of a section's name. */
static bool cut_word(char **name, const char *word) {
  size_t len = strlen(word);
  if (strncmp(*name, word, len) != 0 || ((*name)[len] != ' ' && (*name)[len] != '\t')) return false;
  *name = trim(*name + len + 1);
  return true;
}

/* In ~/.aws/config sections are called "profile NAME", but for "default"; in the file of keys NAME
 * alone is a profile. "[sso-session x]" and its kind are none, whatever they are called. */
static int take_section(reader *r, char *line, err *e) {
  char *end = strchr(line, ']');
  /* Behind the bracket a comment may stand, and nothing else. */
  if (!end || !strchr("#;", *trim(end + 1))) return malformed(r, "a section needs its \"]\"", e);
  *end = 0;
  char *name = trim(line + 1);
  bool config = r->file == PROFILE_CONFIG;
  r->kind = !config || strcmp(name, "default") == 0 ? PROFILE_NAMED : PROFILE_OTHER;
  if (cut_word(&name, "profile"))
    r->kind = PROFILE_NAMED;
  else if (config && cut_word(&name, "sso-session"))
    r->kind = PROFILE_SESSION;
  else if (config && cut_word(&name, "services"))
    r->kind = PROFILE_SERVICES;
  size_t len = strlen(name);
  if (len >= 2 && (*name == '"' || *name == '\'') && name[len - 1] == *name) {
    name[len - 1] = 0;
    name++;
  }
  if (config && strcmp(name, "default") == 0 && r->kind == PROFILE_OTHER) r->kind = PROFILE_NAMED;
  r->section = name;
  r->nest = "";
  return note(r, "", "", e); /* it is there, though it may have no setting */
}

/* A comment begins after a space: a secret key may have a '#' in it. */
static char *cut_comment(char *value) {
  for (char *c = value + 1; *value && *c; c++) {
    if ((*c != '#' && *c != ';') || (c[-1] != ' ' && c[-1] != '\t')) continue;
    *c = 0;
    break;
  }
  return trim(value);
}

static int take_line(reader *r, char *line, err *e) {
  bool indented = *line == ' ' || *line == '\t';
  char *text = trim(line);
  if (!*text || *text == '#' || *text == ';') return 0;
  if (*text == '[') return take_section(r, text, e);
  char *equal = strchr(text, '=');
  /* An indented line that is no setting continues the one before, which is none that we read. */
  if (!equal && indented && r->section) return 0;
  if (!equal || equal == text) return malformed(r, "neither a section nor \"name = value\"", e);
  *equal = 0;
  const char *key = trim(text);
  char *value = cut_comment(trim(equal + 1));
  if (!r->section) return 0;
  if (!indented) r->nest = *value ? "" : key;
  return *value ? note(r, key, value, e) : 0;
}

static int take_text(reader *r, char *text, err *e) {
  int rc = 0;
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; /* some editors put this mark first */
  while (text && rc == 0) {
    char *end = strchr(text, '\n');
    if (end) *end = 0;
    r->line++;
    rc = take_line(r, text, e);
    text = end ? end + 1 : NULL;
  }
  return rc;
}

/* ---- files ---- */

static int read_file(const io *io, profiles *p, profile_file file, bool lenient, err *e) {
  reader r = {.to = p, .file = file, .nest = ""};
  buf *text = &p->text[file];
  const char *path = p->path[file];
  if (!*path) return 0; /* no home */
  err why = {0};
  int rc = fs_read(io, path, FILE_MAX, text, &why);
  if (rc == ERR_NOENT || (rc == ERR_ACCESS && lenient)) return 0;
  if (rc < 0 && e) *e = why;
  if (rc < 0 || !text->len) return rc;
  if (memchr(text->data, 0, text->len))
    return err_set(e, ERR_FORMAT, "%.300s: there is a NUL in it: is it a text?", path);
  return take_text(&r, text->data, e);
}

/* Takes the path of the variable, with "~/" spelled out, else the one below the home; "" without a
 * home. */
static int file_path(const io *io, const char *variable, const char *otherwise, char out[4096],
                     err *e) {
  const char *given = credentials_variable(io, variable), *home = io_variable(io, "HOME");
  out[0] = 0;
  if (!given) given = otherwise;
  if (strncmp(given, "~/", 2) != 0)
    home = NULL;
  else if (!home || !*home)
    return 0;
  int len = home ? snprintf(out, 4096, "%s%s", home, given + 1) : snprintf(out, 4096, "%s", given);
  if (len < 4096) return 0;
  return err_set(e, ERR_LIMIT, "%s: the path is too long", variable);
}

static int take_name(const io *io, profiles *p, err *e) {
  static const char *const variables[] = {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"};
  snprintf(p->name, sizeof p->name, "default");
  for (int i = 0; i < 2; i++) {
    const char *given = credentials_variable(io, variables[i]);
    if (!given) continue;
    p->named = true;
    char where[64];
    snprintf(where, sizeof where, "the variable %s", variables[i]);
    return credentials_copy(p->name, sizeof p->name, given, where, e);
  }
  return 0;
}

int profiles_read(const io *io, bool lenient, profiles *out, err *e) {
  static const char *const variables[] = {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"};
  static const char *const usual[] = {"~/.aws/credentials", "~/.aws/config"};
  *out = (profiles){0};
  for (int i = 0; i < 2; i++) buf_init_secret(&out->text[i], FILE_MAX);
  int rc = take_name(io, out, e);
  for (int i = 0; rc == 0 && i < 2; i++) {
    rc = file_path(io, variables[i], usual[i], out->path[i], e);
    if (rc == 0) rc = read_file(io, out, i, lenient && !credentials_variable(io, variables[i]), e);
  }
  return rc;
}

void profiles_free(profiles *p) {
  for (int i = 0; i < 2; i++) buf_free(&p->text[i]);
  free(p->at);
  p->at = NULL;
  p->count = p->room = 0;
}

/* ---- asking ---- */

bool profiles_has(const profiles *p, profile_file file, const char *section) {
  for (size_t i = 0; i < p->count; i++)
    if (p->at[i].kind == PROFILE_NAMED && (file == PROFILE_BOTH || p->at[i].file == file) &&
        strcmp(p->at[i].section, section) == 0)
      return true;
  return false;
}

static bool is_asked(const profile_entry *at, profile_kind kind, const char *section,
                     const char *nest, const char *key) {
  return at->kind == kind && strcmp(at->section, section) == 0 && strcasecmp(at->nest, nest) == 0 &&
         strcasecmp(at->key, key) == 0;
}

const profile_entry *profiles_get(const profiles *p, profile_file file, profile_kind kind,
                                  const char *section, const char *nest, const char *key) {
  const profile_entry *found = NULL;
  for (size_t i = 0; i < p->count; i++) {
    const profile_entry *at = &p->at[i];
    if (file != PROFILE_BOTH && at->file != file) continue;
    if (!is_asked(at, kind, section, nest, key)) continue;
    /* Of one file the last one counts, of two the file of keys. */
    if (!found || found->file == at->file) found = at;
  }
  return found;
}

const char *profiles_text(const profiles *p, const char *profile, const char *key) {
  const profile_entry *at = profiles_get(p, PROFILE_BOTH, PROFILE_NAMED, profile, "", key);
  return at ? at->value : NULL;
}

int profiles_take(const profiles *p, const profile_entry *entry, char *to, size_t room, err *e) {
  if (!entry) return 0;
  char where[512];
  snprintf(where, sizeof where, "%.300s, line %u: %.60s", p->path[entry->file], entry->line,
           entry->key);
  return credentials_copy(to, room, entry->value, where, e);
}
