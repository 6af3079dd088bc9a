#include "policy_helper.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/packed.h"
#include "decision/policy_link.h"
#include "tmpdir.h"

bool policy_helper_is_meant(char **argv) {
  const char *slash = strrchr(argv[0], '/');
  return strcmp(slash ? slash + 1 : argv[0], "ckpt-policy") == 0;
}

void policy_helper_install(const char *dir) {
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) abort();
  self[n] = '\0';
  if (symlink(self, tmpdir_path(dir, "ckpt-policy")) != 0) abort();
}

/* Ends when nobody is there any more. */
static void take(void *to, size_t len) {
  for (char *at = to; len > 0;) {
    ssize_t n = read(STDIN_FILENO, at, len);
    if (n <= 0) _exit(0);
    at += n;
    len -= (size_t)n;
  }
}

static void give(const void *bytes, size_t len) {
  for (const char *at = bytes; len > 0;) {
    ssize_t n = write(STDOUT_FILENO, at, len);
    if (n <= 0) _exit(0);
    at += n;
    len -= (size_t)n;
  }
}

static void give_head(uint32_t len) {
  const unsigned char head[4] = {len & 0xff, len >> 8 & 0xff, len >> 16 & 0xff, len >> 24 & 0xff};
  give(head, sizeof head);
}

static void give_frame(const char *text) {
  give_head((uint32_t)strlen(text));
  give(text, strlen(text));
}

static void give_json(json_t *value) {
  char *text = json_dumps(value, JSON_COMPACT);
  give_frame(text);
  free(text);
  json_decref(value);
}

static json_t *print(const json_t *value) {
  char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
  json_t *string = json_string(text);
  free(text);
  return string;
}

/* Each setting's name is an option. */
static void give_settings(const json_t *request) {
  json_t *settings = json_object_get(request, "settings");
  json_t *options = json_pack("[{s:s}, {s:s}]", "name", "keep", "name", "best_of");
  give_json(json_pack("{s:b, s:[o], s:o}", "ok", 1, "notes", print(settings), "options", options));
}

static bool is(const char *order, const char *word) {
  return strncmp(order, word, strlen(word)) == 0;
}

static void give_blanks(uint32_t len) {
  char *blanks = malloc(len + 1);
  memset(blanks, ' ', len);
  give_head(len);
  give(blanks, len);
  free(blanks);
}

static json_t *loaded;

static void obey(const char *order, json_t *request) {
  if (is(order, "!exit")) _exit(atoi(order + 5));
  if (is(order, "!abort")) {
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  if (is(order, "!hang")) pause();
  if (is(order, "!spin"))
    for (volatile unsigned n = 0;; n++) continue;
  if (is(order, "!close")) {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    pause();
  }
  if (is(order, "!half")) {
    give_head(100);
    give("{\"ok\"", 5);
    _exit(0);
  }
  if (is(order, "!huge")) {
    give_head(UINT32_C(2) << 30);
    pause();
  }
  if (is(order, "!long")) give_blanks((uint32_t)atoi(order + 5));
  if (is(order, "!extra")) {
    give_frame("{\"ok\":true}");
    give_frame("{\"ok\":true,\"answer\":false}");
  }
  if (is(order, "!forget")) {
    json_object_clear(loaded);
    give_frame("{\"ok\":true,\"answer\":\"skip\"}");
  }
  if (is(order, "!settings")) give_settings(request);
  if (is(order, "!remember"))
    give_json(json_pack("{s:b, s:n, s:O}", "ok", 1, "answer", "memory",
                        json_object_get(request, "event")));
}

/* True if the helper dies of the error that this answer names. */
static bool is_deadly(const char *said) {
  json_t *answer = json_loads(said, 0, NULL);
  const char *kind = json_string_value(json_object_get(answer, "kind"));
  bool deadly = kind && (strcmp(kind, "error") == 0 || strcmp(kind, "budget") == 0 ||
                         strcmp(kind, "memory") == 0 || strcmp(kind, "unknown") == 0);
  json_decref(answer);
  return deadly;
}

/* The answer to each check, as the policy that was loaded last says it. */
static char *checked;

static void take_checked(const char *said) {
  json_t *data = said ? json_loads(said, 0, NULL) : NULL;
  const char *note = json_string_value(json_object_get(data, "note"));
  free(checked);
  checked = note && strncmp(note, "//", 2) == 0 ? strdup(note + 2) : NULL;
  json_decref(data);
}

/* ---- a packed list ---- */

static void set_number(json_t *item, packed *from, const char *key) {
  double v;
  if (!packed_number(from, &v)) abort();
  if (isnan(v)) return;
  json_object_set_new(item, key, v == floor(v) ? json_integer((json_int_t)v) : json_real(v));
}

static void set_text(json_t *item, packed *from, const char *key) {
  const char *text;
  size_t len;
  if (!packed_text(from, &text, &len)) abort();
  if (!text) return;
  json_t *value = strcmp(key, "metrics") == 0 ? json_loads(text, 0, NULL) : json_string(text);
  json_object_set_new(item, key, value);
}

static json_t *unpack_item(packed *from) {
  static const char *const flags[] = {"newest", "pinned", "durable"},
                           *const numbers[] = {"age",   "number", "step",    "time",
                                               "files", "bytes",  "left_out"},
                           *const texts[] = {"name", "dir", "kind", "suspect", "metrics"};
  json_t *item = json_object();
  unsigned char bits;
  if (!packed_byte(from, &bits)) abort();
  for (size_t i = 0; i < 3; i++) json_object_set_new(item, flags[i], json_boolean(bits >> i & 1));
  for (size_t i = 0; i < 7; i++) set_number(item, from, numbers[i]);
  for (size_t i = 0; i < 5; i++) set_text(item, from, texts[i]);
  return item;
}

/* ---- a packed event ---- */

static json_t *unpack_json(packed *from);

static json_t *unpack_table(packed *from, bool object) {
  json_t *table = object ? json_object() : json_array();
  const char *key;
  size_t len;
  double count;
  if (!packed_number(from, &count)) abort();
  for (int i = 0; i < (int)count; i++) {
    if (object && !packed_text(from, &key, &len)) abort();
    if (object)
      json_object_set_new(table, key, unpack_json(from));
    else
      json_array_append_new(table, unpack_json(from));
  }
  return table;
}

static json_t *unpack_json(packed *from) {
  unsigned char kind;
  const char *text;
  size_t len;
  double v;
  if (!packed_byte(from, &kind)) abort();
  switch (kind) {
  case PACKED_NUMBER:
    if (!packed_number(from, &v)) abort();
    return v == floor(v) && fabs(v) < 1e18 ? json_integer((json_int_t)v) : json_real(v);
  case PACKED_STRING:
    if (!packed_text(from, &text, &len)) abort();
    return json_string(text);
  case PACKED_ARRAY:
  case PACKED_OBJECT: return unpack_table(from, kind == PACKED_OBJECT);
  default: return kind == PACKED_NULL ? json_null() : json_boolean(kind == PACKED_TRUE);
  }
}

/* As the real helper does, it makes the list a member of the event. */
json_t *policy_helper_event(const char *about, size_t len) {
  packed from = {about, about + len};
  json_t *event = unpack_json(&from), *list = from.at < from.end ? json_array() : NULL;
  while (from.at < from.end) json_array_append_new(list, unpack_item(&from));
  if (list) json_object_set_new(event, "list", list);
  return event;
}

static json_t *read_request(const char *text, size_t len) {
  const char *end = memchr(text, '\0', len);
  json_t *request = json_loadb(text, end ? (size_t)(end - text) : len, 0, NULL);
  if (end)
    json_object_set_new(request, "event",
                        policy_helper_event(end + 1, (size_t)(text + len - end - 1)));
  return request;
}

static void answer(const char *text, size_t len) {
  json_t *request = read_request(text, len), *chain = json_object_get(request, "chain"),
         *memory = json_object_get(request, "memory");
  const char *op = json_string_value(json_object_get(request, "op")),
             *id = json_string_value(json_object_get(request, "id"));
  const char *said = "{\"ok\":true}";
  bool asked = op && strcmp(op, "ask") == 0;
  if (chain) said = json_string_value(json_object_get(json_array_get(chain, 0), "text"));
  if (chain) json_object_set_new(loaded, id, json_true());
  if (chain) take_checked(said);
  if (op && strcmp(op, "check") == 0 && checked) said = checked;
  if (op && strcmp(op, "drop") == 0) json_object_del(loaded, id);
  if (asked) said = json_string_value(json_object_get(memory, "answer"));
  if (asked && !json_object_get(loaded, id))
    said = "{\"ok\":false,\"kind\":\"unknown\",\"text\":\"\"}";
  if (said && is_deadly(said)) json_object_del(loaded, id);
  if (!said)
    give_frame("{\"ok\":true}");
  else if (*said == '!')
    obey(said, request);
  else
    give_frame(said);
  json_decref(request);
}

int policy_helper_run(void) {
  loaded = json_object();
  for (;;) {
    unsigned char head[4];
    take(head, sizeof head);
    size_t len =
        (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    char *text = malloc(len + 1);
    take(text, len);
    answer(text, len);
    free(text);
  }
}

/* ---- a link to it ---- */

static void take_line(void *ctx, log_level level, const char *text) {
  policy_world *w = ctx;
  if (level == LOG_WARN) w->warnings++;
  if (level >= LOG_WARN) buf_fmt(&w->lines, "%s\n", text);
}

policy_world *policy_world_new(void) {
  policy_world *w = calloc(1, sizeof *w);
  w->dir = tmpdir_new();
  w->log = (log_sink){.fn = take_line, .ctx = w};
  buf_init(&w->lines, 1 << 20);
  buf_str(&w->lines, "");
  policy_helper_install(w->dir);
  policy_link_options options = {.libexec = w->dir, .log = &w->log};
  if (policy_link_open(&options, &w->link, NULL) < 0) abort();
  return w;
}

void policy_world_free(policy_world *w) {
  for (size_t i = 0; i < w->count; i++) policy_close(w->opened[i]);
  policy_link_close(w->link);
  tmpdir_remove(w->dir);
  buf_free(&w->lines);
  free(w);
}

int policy_world_set_up(void **state) {
  *state = policy_world_new();
  return 0;
}

int policy_world_tear_down(void **state) {
  policy_world_free(*state);
  return 0;
}

int policy_world_open(policy_world *w, const char *text, const policy_options *more, policy **out,
                      err *e) {
  const char *names[] = {tmpdir_path(w->dir, "p.lua"), NULL};
  policy_options options = {.quiet_ns = -1};
  if (more) options = *more;
  if (text) write_file(names[0], text);
  if (text && !options.names) options.names = names;
  if (!options.id) options.id = "run-1";
  if (!options.io) options.io = io_system();
  options.log = &w->log;
  options.link = w->link;
  return policy_open(&options, out, e);
}

policy *policy_world_with(policy_world *w, const char *text, const policy_options *more) {
  policy *p;
  err e = {0};
  if (policy_world_open(w, text, more, &p, &e) < 0 || w->count == POLICY_WORLD_MAX) {
    fprintf(stderr, "%s: %s\n", text ? text : "(options)", e.text);
    abort();
  }
  return w->opened[w->count++] = p;
}

policy *policy_world_must(policy_world *w, const char *text) {
  return policy_world_with(w, text, NULL);
}

char *policy_world_memory(const char *text) {
  json_t *memory = json_pack("{s:s}", "answer", text);
  char *printed = json_dumps(memory, JSON_COMPACT);
  json_decref(memory);
  return printed;
}
