#include "policy_peer.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/policy/policy_json.h"
#include "tmpdir.h"

char *peer_load(const char *id, const char *text, size_t len) {
  buf b;
  buf_init(&b, 16 << 20);
  buf_fmt(&b, "{\"op\":\"load\",\"id\":\"%s\",\"settings\":{},\"chain\":[{\"name\":\"p\",\"text\":",
          id);
  policy_print_text(text, len, &b);
  buf_str(&b, "}]}");
  return buf_take(&b);
}

char *peer_ask(const char *id, const char *hook) {
  buf b;
  buf_init(&b, 1 << 20);
  buf_fmt(&b,
          "{\"op\":\"ask\",\"id\":\"%s\",\"hook\":\"%s\",\"memory\":{},\"event\":{\"step\":3,"
          "\"name\":\"c-3\",\"bytes\":10,\"metrics\":{\"loss\":1},\"grace\":30,\"error\":\"IO\","
          "\"list\":[",
          id, hook);
  for (int i = 0; i < 5; i++)
    buf_fmt(&b, "%s{\"name\":\"c-%d\",\"step\":%d,\"bytes\":10,\"time\":%d}", i ? "," : "", i, i,
            1700000000 + i);
  buf_str(&b, "]}}");
  return buf_take(&b);
}

const char *peer_kind(const char *answer, size_t len) {
  static char kind[32];
  json_t *json = NULL;
  strcpy(kind, "?");
  if (js_parse(answer, len, "answer", &json, NULL) < 0) return kind;
  const json_t *ok = json_object_get(json, "ok");
  const char *said = json_string_value(json_object_get(json, "kind"));
  if (json_is_true(ok)) said = "ok";
  if (said && ok) snprintf(kind, sizeof kind, "%s", said);
  json_decref(json);
  return kind;
}

/* A line "-- 300 times: local v% = %" stands for so many lines, numbered from 0 where a percent
 * sign is. */
static void read_line(const char *line, size_t len, buf *out) {
  unsigned times = 0;
  int skip = 0; /* stays 0 unless all of it was there */
  sscanf(line, "-- %u times: %n", &times, &skip);
  if (skip == 0) {
    buf_add(out, line, len);
    return;
  }
  for (unsigned i = 0; i < times; i++)
    for (const char *at = line + skip; at < line + len; at++)
      if (*at == '%')
        buf_fmt(out, "%u", i);
      else
        buf_add(out, at, 1);
}

static char *read_lines(const char *path, size_t *len) {
  char *text = read_file(path, len);
  buf out;
  buf_init(&out, 16 << 20);
  buf_str(&out, ""); /* a file may be empty */
  for (const char *line = text, *end = text + *len, *next; line < end; line = next) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    next = stop ? stop + 1 : end;
    read_line(line, (size_t)(next - line), &out);
  }
  free(text);
  *len = out.len;
  return buf_take(&out);
}

/* The first line says it, "-- sync: budget"; a file that cannot have one is not to be loaded. */
static void read_hostile(const char *path, hostile *h) {
  snprintf(h->name, sizeof h->name, "%s", strrchr(path, '/') + 1);
  h->text = read_lines(path, &h->len);
  if (sscanf(h->text, "-- %31[a-z_]: %63[a-z ]\n", h->hook, h->kinds) != 2) {
    strcpy(h->hook, "load");
    strcpy(h->kinds, "syntax");
  }
}

hostile *hostile_all(void) {
  glob_t found;
  if (glob("spec/hostile/[0-9]*.lua", 0, NULL, &found) != 0) abort();
  hostile *all = calloc(found.gl_pathc + 1, sizeof *all);
  if (!all) abort();
  for (size_t i = 0; i < found.gl_pathc; i++) read_hostile(found.gl_pathv[i], &all[i]);
  globfree(&found);
  return all;
}

void hostile_free(hostile *all) {
  for (hostile *h = all; h->text; h++) free(h->text);
  free(all);
}

int hostile_expects(const hostile *h, const char *kind) {
  char wanted[64], *rest = wanted;
  snprintf(wanted, sizeof wanted, "%s", h->kinds);
  for (char *word; (word = strsep(&rest, " "));)
    if (strcmp(word, kind) == 0) return 1;
  return 0;
}
