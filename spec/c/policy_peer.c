#include "policy_peer.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/policy_json.h"
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

/* The first line says it, "-- sync: budget"; a file that cannot have one is not to be loaded. */
static void read_hostile(const char *path, hostile *h) {
  snprintf(h->name, sizeof h->name, "%s", strrchr(path, '/') + 1);
  h->text = read_file(path, &h->len);
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
