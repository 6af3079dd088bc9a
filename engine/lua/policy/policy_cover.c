#include "policy_cover.h"

#include <stdlib.h>
#include <string.h>

#include "policy_json.h"

/* What is known of a line, and what of that was told. */
enum { CODE = 1, REACHED = 2, TOLD = 2 /* bits to the left */ };

typedef struct cover_file {
  char *name;
  size_t count; /* of lines, and of one that is none: 0 */
  unsigned char *lines;
} cover_file;

struct policy_cover {
  size_t room, count;
  cover_file files[];
};

static size_t count_lines(const char *text, size_t len) {
  size_t count = 2; /* the first one is 1 */
  for (size_t i = 0; i < len; i++) count += text[i] == '\n' || text[i] == '\r';
  return count;
}

/* False: out of memory. */
static bool add_file(cover_file *f, const char *name, const json_t *text) {
  f->count = count_lines(json_string_value(text), json_string_length(text));
  f->lines = calloc(1, f->count);
  f->name = strdup(name);
  return f->lines && f->name;
}

policy_cover *cover_new(const json_t *chain) {
  enum { EACH = 32 }; /* a rule is a few letters, and told with the name of its file */
  size_t i;
  json_t *policy;
  policy_cover *c = calloc(1, sizeof *c + json_array_size(chain) * sizeof *c->files);
  if (!c) return NULL;
  json_array_foreach(chain, i, policy) {
    const json_t *text = json_object_get(policy, "text");
    const char *name = json_string_value(json_object_get(policy, "name"));
    if (!add_file(&c->files[c->count++], name, text)) {
      cover_free(c);
      return NULL;
    }
    c->room += EACH * (json_string_length(text) + strlen(name) + EACH);
  }
  return c;
}

void cover_free(policy_cover *c) {
  if (!c) return;
  for (size_t i = 0; i < c->count; i++) {
    free(c->files[i].lines);
    free(c->files[i].name);
  }
  free(c);
}

size_t cover_room(const policy_cover *c) {
  return c->room;
}

void cover_code(policy_cover *c, lua_State *L, const char *policy) {
  cover_file *f = c->files;
  while (strcmp(f->name, policy) != 0) f++;
  size_t count = lua_objlen(L, -1);
  for (size_t i = 1; i <= count; i++) {
    lua_rawgeti(L, -1, (int)i);
    size_t line = (size_t)lua_tointeger(L, -1);
    if (line < f->count) f->lines[line] |= CODE;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* True if the chunk is that of the policy: "=NAME.lua". */
static bool is_source(const char *source, const char *name) {
  size_t len = strlen(name);
  return *source == '=' && strncmp(source + 1, name, len) == 0 &&
         strcmp(source + 1 + len, ".lua") == 0;
}

/* Most lines are those of the rule library, and of the others most were met before: whose they are is
 * looked at for the rest. */
void cover_line(policy_cover *c, lua_State *L, lua_Debug *at) {
  size_t line = at->currentline > 0 ? (size_t)at->currentline : 0;
  for (size_t i = 0; i < c->count; i++) {
    cover_file *f = &c->files[i];
    if (line >= f->count || (f->lines[line] & (CODE | REACHED)) != CODE) continue;
    if (lua_getinfo(L, "S", at) && is_source(at->source, f->name)) f->lines[line] |= REACHED;
  }
}

/* Appends the lines of which this was not told yet. */
static void print_lines(cover_file *f, unsigned char what, buf *out) {
  bool first = true;
  for (size_t line = 1; line < f->count; line++) {
    if ((f->lines[line] & (what | what << TOLD)) != what) continue;
    f->lines[line] |= (unsigned char)(what << TOLD);
    buf_fmt(out, first ? "%zu" : ",%zu", line);
    first = false;
  }
}

void cover_print(policy_cover *c, buf *out) {
  for (size_t i = 0; i < c->count; i++) {
    cover_file *f = &c->files[i];
    buf_str(out, i ? ",{\"policy\":" : "{\"policy\":");
    policy_print_text(f->name, strlen(f->name), out);
    buf_str(out, ",\"code\":[");
    print_lines(f, CODE, out);
    buf_str(out, "],\"reached\":[");
    print_lines(f, REACHED, out);
    buf_str(out, "]}");
  }
}
