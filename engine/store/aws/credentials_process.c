/* Keys that a program prints: the profile's credential_process. No shell is in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "credentials_parts.h"
#include "prims/program.h"

enum { WORDS_MAX = 128, LINE_MAX_ = 16 << 10, PATIENCE_S = 60, TURN_MS = 50, SAID_MAX = 200 };

/* ---- words ---- */

/* Takes one piece of a word, quoted or not, and moves behind it. Inside double quotes a backslash
 * stands for itself, but before a quote or another one. NULL: a quote is open at the end. */
static const char *take_piece(const char *at, buf *text) {
  char quote = *at == '\'' || *at == '"' ? *at : 0;
  if (!quote) {
    if (*at == '\\' && !*++at) return NULL;
    buf_add(text, at, 1);
    return at + 1;
  }
  for (at++; *at && *at != quote; at++) {
    if (*at == '\\' && quote == '"' && (at[1] == '"' || at[1] == '\\')) at++;
    buf_add(text, at, 1);
  }
  return *at ? at + 1 : NULL;
}

int credentials_split(const char *line, buf *text, char **argv, size_t room, err *e) {
  static const char spaces[] = " \t\r\n";
  size_t starts[WORDS_MAX], count = 0;
  for (const char *at = line + strspn(line, spaces); *at; at += strspn(at, spaces)) {
    if (count + 1 >= room || count == WORDS_MAX)
      return err_set(e, ERR_LIMIT, "credential_process has too many words");
    starts[count++] = text->len;
    while (at && *at && !strchr(spaces, *at)) at = take_piece(at, text);
    if (!at)
      return err_set(e, ERR_FORMAT, "credential_process: a quote is open, or a backslash ends it");
    buf_add(text, "", 1);
  }
  if (buf_failed(text)) return err_set(e, buf_failed(text), "credential_process is too long");
  if (count == 0) return err_set(e, ERR_FORMAT, "credential_process has no program");
  for (size_t i = 0; i < count; i++) argv[i] = text->data + starts[i];
  argv[count] = NULL;
  return 0;
}

/* ---- the program ---- */

/* Our environment with what is laid over it: the texts stay where they are. */
static char **merge_environment(const io *io) {
  char **list = NULL;
  size_t count = 0, room = 0;
  for (char **at = environ; *at; at++) {
    char name[256];
    size_t len = strcspn(*at, "=");
    bool fits = len < sizeof name;
    if (fits) snprintf(name, sizeof name, "%.*s", (int)len, *at);
    if (fits && io_variable_laid(io, name)) continue;
    if (!VEC_ROOM(list, count, room)) goto failed;
    list[count++] = *at;
  }
  for (const char *const *at = io->environment; at && *at; at++) {
    if (!VEC_ROOM(list, count, room)) goto failed;
    list[count++] = (char *)*at;
  }
  if (!VEC_ROOM(list, count, room)) goto failed;
  list[count] = NULL;
  return list;
failed:
  free(list);
  return NULL;
}

static bool is_over(const credentials_ask *a) {
  return (a->cancel && atomic_load(a->cancel)) || (a->stop && atomic_load(a->stop));
}

static int await(const credentials_ask *a, program *p, err *e) {
  int64_t until = a->io->now(a->io, IO_MONO) + PATIENCE_S * INT64_C(1000000000);
  int code, signal;
  while (!program_ended(p, &code, &signal)) {
    int rc = program_turn(p, TURN_MS, e);
    if (rc < 0) return rc;
    if (is_over(a)) return err_set(e, ERR_CANCELED, "credential_process: cancelled");
    if (a->io->now(a->io, IO_MONO) > until)
      return err_set(e, ERR_TIMEOUT, "credential_process has not ended in %d s", PATIENCE_S);
  }
  return 0;
}

/* What it said on its standard error is for people; the last line is often the word. */
static int say_failure(const program *p, const char *name, int code, int signal, err *e) {
  size_t len;
  uint64_t dropped;
  const char *said = program_output(p, 2, &len, &dropped);
  while (len && strchr(" \r\n", said[len - 1])) len--;
  const char *line = said + len;
  while (line > said && line[-1] != '\n') line--;
  char text[SAID_MAX + 1], how[48];
  buf plain;
  snprintf(text, sizeof text, "%.*s", (int)(said + len - line), line);
  buf_init(&plain, sizeof text);
  js_plain(text, SAID_MAX, &plain);
  snprintf(how, sizeof how, code >= 0 ? "ended with exit code %d" : "was ended by signal %d",
           code >= 0 ? code : signal);
  err_set(e, ERR_ACCESS, "credential_process: %.200s %s%s%s", name, how, len ? ": " : "",
          plain.data ? plain.data : "");
  buf_free(&plain);
  return ERR_ACCESS;
}

int credentials_of_output(const char *text, size_t len, const char *profile, credentials *out,
                          err *e) {
  static const credentials_names names = {"AccessKeyId", "SecretAccessKey", "SessionToken",
                                          "Expiration", false};
  char what[200];
  json_t *value = NULL;
  snprintf(what, sizeof what, "what credential_process of the profile \"%.100s\" prints", profile);
  int rc = js_parse_secret(text, len, what, &value, e);
  if (rc < 0) return rc;
  if (json_integer_value(json_object_get(value, "Version")) != 1)
    rc = err_set(e, ERR_FORMAT, "%s: \"Version\" is not 1", what);
  if (rc == 0) rc = credentials_of_json(value, &names, what, out, e);
  json_decref(value);
  return rc;
}

static int run(const credentials_ask *a, const char *profile, char **argv, credentials *out,
               err *e) {
  char **environment = merge_environment(a->io);
  program *p = NULL;
  if (!environment) return err_set(e, ERR_NOMEM, "credential_process: no memory");
  const program_plan plan = {
      .argv = argv, .envp = environment, .keep = JS_SECRET_MAX, .secret = true};
  int rc = program_start(a->io, &plan, &p, e), code, signal;
  free(environment);
  if (rc == 0) rc = await(a, p, e);
  if (rc == 0) {
    size_t len;
    uint64_t dropped;
    const char *text = program_output(p, 1, &len, &dropped);
    program_ended(p, &code, &signal);
    if (code != 0)
      rc = say_failure(p, argv[0], code, signal, e);
    else if (dropped)
      rc = err_set(e, ERR_LIMIT, "credential_process prints too much");
    else
      rc = credentials_of_output(text, len, profile, out, e);
  }
  program_close(p);
  return rc;
}

int credentials_of_process(const credentials_ask *a, const char *profile, credentials *out,
                           err *e) {
  const char *line = profiles_text(a->files, profile, "credential_process");
  char *argv[WORDS_MAX + 1];
  buf words;
  if (!line) return 0;
  buf_init_secret(&words, LINE_MAX_);
  int rc = credentials_split(line, &words, argv, WORDS_MAX + 1, e);
  if (rc == 0) rc = run(a, profile, argv, out, e);
  buf_free(&words);
  if (rc == 0) snprintf(out->from, sizeof out->from, "credential_process");
  return rc < 0 ? rc : 1;
}
