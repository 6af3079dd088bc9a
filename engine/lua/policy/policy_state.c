#include "policy_state.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "policy_bounds.h"
#include "policy_guard.h"
#include "policy_items.h"
#include "policy_json.h"
#include "policy_text.h"

enum {
  FAILURE_MAX = 2000,
  GARBAGE_MAX = 1 << 20,
  PAUSE = 120,      /* no collection is tried when the cap refuses: keep near it */
  ANSWERS = 6,      /* of M.ask */
  ASK_MORE_MS = 100 /* of CPU time; with BOUNDS_CPU_MS less than a request may use */
};

struct policy_state {
  lua_State *L;
  policy_bounds bounds;
  size_t bare;         /* heap of a state without a policy */
  int library;         /* reference to the rule library's table M */
  policy_cover *cover; /* NULL: nobody asks what is reached */
};

/* The argument of one protected call. */
typedef struct work {
  policy_state *s;
  const policy_request *r;
  packed behind; /* what is left of it */
  bool more;     /* the request has more than one question */
  int event;     /* reference to its event, for the next one; LUA_NOREF: there is none */
  size_t items;  /* of its list, that came packed */
  bool listed;   /* there is such a list */
  const json_t *hook, *before; /* of a question */
  json_t *memory;              /* of it, and then what it left; NULL: empty */
  bool passed;                 /* the answer lets the next hook be asked */
  json_t *held;                /* to be released after the call */
  size_t heap; /* what may be held beyond the bare state, from one request to the next too */
} work;

int policy_state_refuse(buf *answer, const char *kind, const char *text) {
  buf_clear(answer);
  buf_fmt(answer, "{\"ok\":false,\"kind\":\"%s\",\"text\":", kind);
  policy_print_text(text, strnlen(text, FAILURE_MAX), answer);
  buf_str(answer, "}");
  return buf_failed(answer);
}

/* ---- making a state; what is named l_ may raise ---- */

static void l_run(lua_State *L, const policy_text *part, int results) {
  if (luaL_loadbufferx(L, part->text, part->len, part->name, "t") != 0) lua_error(L);
  lua_insert(L, -2);
  lua_call(L, 1, results);
}

/* Empties the table on top. */
static void l_wipe(lua_State *L) {
  for (lua_pushnil(L); lua_next(L, -2); lua_pushnil(L)) {
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_rawset(L, -3);
  }
}

/* Forgets all globals, loaded and preloaded modules. The rule library has in locals what it needs;
 * a policy must not find the rest, by whatever hole. */
static void l_forget(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "package");
  lua_getfield(L, -1, "preload");
  l_wipe(L);
  lua_pop(L, 1);
  l_wipe(L);
  lua_pop(L, 1);
  l_wipe(L);
  lua_pushvalue(L, LUA_GLOBALSINDEX);
  l_wipe(L);
  lua_pop(L, 2);
}

static int l_build(lua_State *L) {
  policy_state *s = lua_touserdata(L, 1);
  luaL_openlibs(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF); /* openlibs turns it on */
  lua_gc(L, LUA_GCSETPAUSE, PAUSE);
  guard_push(L);
  l_run(L, &policy_texts[0], 1); /* the sandbox: takes the guards, returns what is allowed */
  lua_newtable(L);               /* M */
  for (const policy_text *part = &policy_texts[1]; part->name; part++) {
    lua_pushvalue(L, -1);
    l_run(L, part, 0);
  }
  lua_insert(L, -2);
  lua_setfield(L, -2, "base");
  s->library = luaL_ref(L, LUA_REGISTRYINDEX);
  l_forget(L);
  return 0;
}

static policy_state *state_new(const char **why) {
  *why = "out of memory";
  policy_state *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->L = bounds_state(&s->bounds);
  if (!s->L) {
    free(s);
    return NULL;
  }
  if (lua_cpcall(s->L, l_build, s) == 0) {
    lua_gc(s->L, LUA_GCCOLLECT, 0);
    s->bare = s->bounds.used;
    return s;
  }
  *why = "the rule library is broken"; /* an error of ours: the specs see it first */
  policy_state_close(s);
  return NULL;
}

void policy_state_close(policy_state *s) {
  if (!s) return;
  bounds_close(&s->bounds, s->L);
  cover_free(s->cover);
  free(s);
}

/* ---- calls into it ---- */

static void l_library(lua_State *L, const policy_state *s, const char *name) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->library);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

static int l_syntax(lua_State *L) {
  lua_createtable(L, 0, 2);
  lua_insert(L, -2);
  lua_setfield(L, -2, "text");
  lua_pushliteral(L, "syntax");
  lua_setfield(L, -2, "kind");
  return lua_error(L);
}

/* Notes which lines of the policy have code; its function is on top. */
static void l_cover(lua_State *L, const policy_state *s, const char *name) {
  if (!s->cover) return;
  l_library(L, s, "code_lines");
  lua_pushvalue(L, -2);
  lua_call(L, 1, 1);
  cover_code(s->cover, L, name);
}

/* Adds one policy of the chain; the settings are at index 1. */
static void l_add(lua_State *L, const policy_state *s, const json_t *policy) {
  const json_t *text = json_object_get(policy, "text");
  const char *name = json_string_value(json_object_get(policy, "name"));
  l_library(L, s, "environment");
  lua_pushstring(L, name);
  lua_pushvalue(L, 1);
  lua_pushlstring(L, json_string_value(text), json_string_length(text)); /* for a look at it */
  lua_call(L, 3, 1);
  const char *chunk = lua_pushfstring(L, "=%s.lua", name);
  if (luaL_loadbufferx(L, json_string_value(text), json_string_length(text), chunk, "t") != 0)
    l_syntax(L);
  l_cover(L, s, name);
  lua_pushvalue(L, -3); /* environment, chunk name, function, environment */
  lua_setfenv(L, -2);
  lua_call(L, 0, 1);
  l_library(L, s, "add");
  lua_pushstring(L, name);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 4);
  lua_call(L, 3, 0);
  lua_settop(L, 1);
}

/* Pushes a value, or an empty table. */
static void l_value(lua_State *L, const json_t *value) {
  if (value)
    policy_push_json(L, value);
  else
    lua_newtable(L);
}

static int l_load(lua_State *L) {
  work *w = lua_touserdata(L, 1);
  size_t i;
  json_t *policy;
  bounds_arm(&w->s->bounds, L, w->s->bare + w->heap);
  lua_settop(L, 0);
  l_value(L, json_object_get(w->r->json, "settings"));
  json_array_foreach(json_object_get(w->r->json, "chain"), i, policy) l_add(L, w->s, policy);
  l_library(L, w->s, "finish");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  if (!lua_istable(L, -1)) luaL_error(L, "the rule library answers no table");
  if (w->s->cover) {
    l_library(L, w->s, "cover");
    lua_call(L, 0, 0);
  }
  return 1;
}

/* Has nothing collected before the state holds `size` bytes: to look through all for what one question
 * leaves takes longer than to answer it. From there on it is collected near to what is held. */
static void collect_from(const policy_state *s, size_t size) {
  size_t percent = 100 * size / s->bounds.used;
  lua_gc(s->L, LUA_GCSETPAUSE, percent > PAUSE ? (int)percent : PAUSE);
  lua_gc(s->L, LUA_GCRESTART, -1);
  lua_gc(s->L, LUA_GCSETPAUSE, PAUSE);
}

/* Puts what a check makes up in place of what is known; the event is on top. */
static void l_make_up(lua_State *L, const json_t *made_up) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)made_up, key, value) {
    lua_pushstring(L, key);
    policy_push_json(L, value);
    lua_rawset(L, -3);
  }
}

/* Pushes the event of the request, with its list. */
static void l_make_event(lua_State *L, work *w) {
  const json_t *event = json_object_get(w->r->json, "event");
  if (event || !w->behind.at)
    l_value(L, event);
  else
    policy_push_packed(L, &w->behind);
  const json_t *made_up = json_object_get(w->r->json, "made_up");
  if (made_up && lua_istable(L, -1)) l_make_up(L, made_up);
  w->listed = w->behind.at && (event || w->behind.at < w->behind.end);
  if (!w->listed) return;
  if (!lua_istable(L, -1)) luaL_error(L, "the event of the question is broken");
  lua_gc(L, LUA_GCSTOP, 0); /* nothing of a list is garbage; what raises here ends the state */
  w->items = policy_push_items(L, &w->behind, &w->held);
  collect_from(w->s, w->s->bounds.cap / 2); /* what comes now is held to the end */
  lua_setfield(L, -2, "list");
}

/* Pushes the event. All questions of a request have one: nobody writes to it. What its list holds counts
 * as if it had come with the names of its members, as it would in JSON. */
static void l_event(lua_State *L, work *w) {
  enum { NAMES = 150 };
  if (w->event != LUA_NOREF) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, w->event);
  } else {
    l_make_event(L, w);
    if (w->more) {
      lua_pushvalue(L, -1);
      w->event = luaL_ref(L, LUA_REGISTRYINDEX);
    }
  }
  w->s->bounds.cap += POLICY_INPUT_TIMES * NAMES * w->items;
}

static int l_ask(lua_State *L) {
  work *w = lua_touserdata(L, 1);
  bounds_arm(&w->s->bounds, L, w->s->bare + w->heap);
  l_library(L, w->s, "ask");
  l_value(L, w->hook);
  l_event(L, w);
  l_value(L, w->memory);
  if (w->before)
    policy_push_json(L, w->before);
  else
    lua_pushnil(L);
  lua_pushboolean(L, w->listed);
  lua_call(L, 5, ANSWERS);
  return ANSWERS;
}

static int l_check(lua_State *L) {
  work *w = lua_touserdata(L, 1);
  bounds_arm(&w->s->bounds, L, w->s->bare + w->heap);
  l_library(L, w->s, "check");
  policy_push_json(L, w->r->json);
  if (w->behind.at) {
    l_event(L, w);
    lua_setfield(L, -2, "event");
  }
  lua_call(L, 1, 1);
  if (!lua_istable(L, -1)) luaL_error(L, "the rule library answers no table");
  return 1;
}

/* Runs `fn` within the bounds; its results are the stack. 0, or a LUA_ERR* with the error on top.
 */
static int enter(policy_state *s, lua_CFunction fn, work *w) {
  w->s = s;
  w->heap = BOUNDS_HEAP + POLICY_INPUT_TIMES * w->r->size;
  lua_settop(s->L, 0);
  lua_pushcfunction(s->L, fn);
  lua_pushlightuserdata(s->L, w);
  int rc = lua_pcall(s->L, 1, LUA_MULTRET, 0);
  json_decref(w->held);
  w->held = NULL;
  bounds_disarm(&s->bounds, s->L);
  return rc;
}

/* Garbage counts in the cap, and Lua does not collect when the cap refuses. */
static void leave(policy_state *s) {
  const size_t most = s->bare + GARBAGE_MAX;
  lua_settop(s->L, 0);
  if (s->bounds.used > most) lua_gc(s->L, LUA_GCCOLLECT, 0);
  collect_from(s, most);
}

/* Reads a member of the error object on top, if that is a table with such a text: raw, since
 * nothing of the policy may run any more. */
static const char *member(lua_State *L, const char *name) {
  if (!lua_istable(L, -1)) return NULL;
  lua_pushstring(L, name);
  lua_rawget(L, -2);
  const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1); /* the table still holds it */
  return text;
}

/* Writes down why enter() failed. Only an answer that is wrong leaves the state alive. */
static int refuse(policy_state *s, int rc, buf *answer, bool *dead) {
  static const char *const kinds[] = {"syntax", "setting", "answer"};
  lua_State *L = s->L;
  const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : member(L, "text");
  const char *kind = member(L, "kind"), *said = "error";
  for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kind, kinds[i]) == 0) said = kinds[i];
  if (rc == LUA_ERRMEM) {
    said = "memory";
    text = "it holds more memory than it may";
  } else if (s->bounds.over != BOUNDS_KEPT) {
    said = "budget";
  }
  if (!text) text = "it raised an error that is no text";
  *dead = strcmp(said, "answer") != 0;
  return policy_state_refuse(answer, said, text);
}

/* ---- answers ---- */

typedef const char *print_fn(lua_State *L, int index, policy_bounds *b, buf *out);

/* Appends ,"NAME":VALUE for the value at `index`; false: `answer` is a refusal. */
static bool put(policy_state *s, const char *name, int index, print_fn *print, buf *answer) {
  buf_fmt(answer, ",\"%s\":", name);
  const char *why = print(s->L, index, &s->bounds, answer);
  if (!why) return true;
  char text[200];
  buf said;
  buf_init(&said, sizeof text);
  buf_fmt(&said, "its %s cannot be taken: %s", name, why);
  const char *kind = s->bounds.over == BOUNDS_KEPT ? "answer" : "budget";
  policy_state_refuse(answer, kind, said.data ? said.data : why);
  buf_free(&said);
  return false;
}

static bool is_empty(lua_State *L, int index) {
  if (lua_isnil(L, index)) return true;
  if (!lua_istable(L, index)) return false;
  lua_pushvalue(L, index);
  lua_pushnil(L);
  bool empty = !lua_next(L, -2);
  lua_pop(L, empty ? 1 : 3);
  return empty;
}

/* Adds the warning to those of the table on top. It works outside of the bounds. */
static void warn(lua_State *L, const char *warning) {
  lua_pushliteral(L, "warnings");
  lua_rawget(L, -2);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushliteral(L, "warnings");
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_pushstring(L, warning);
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
  lua_pop(L, 1);
}

/* Makes the members of the table on top members of the answer. False: it is a refusal. */
static bool answer_load(policy_state *s, const char *warning, buf *answer) {
  lua_State *L = s->L;
  if (warning) warn(L, warning);
  buf_str(answer, "{\"ok\":true");
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING &&
        !put(s, lua_tostring(L, -2), -1, policy_print_json, answer))
      return false;
  }
  buf_str(answer, "}");
  return true;
}

/* A checkpoint that is not ready, or not wanted, is asked about no more. */
static bool passes(lua_State *L) {
  if (lua_type(L, 1) == LUA_TSTRING) return strcmp(lua_tostring(L, 1), "sync") == 0;
  return lua_isnil(L, 1) || (lua_isboolean(L, 1) && lua_toboolean(L, 1));
}

/* Takes the memory over as the one who asks will read it. */
static bool take_memory(work *w, const char *text, size_t len) {
  json_t *left = NULL;
  if (js_parse(text, len, "memory", &left, NULL) < 0) return false;
  json_decref(w->memory);
  w->memory = left;
  return true;
}

static void answer_ask(work *w, buf *answer) {
  static const char *const names[ANSWERS] = {"answer", "reason",   "by",
                                             "memory", "warnings", "again"};
  static const size_t memory_at = sizeof ",\"memory\":" - 1;
  policy_state *s = w->s;
  bool passed = passes(s->L);
  buf_str(answer, "{\"ok\":true");
  for (int i = 0; i < ANSWERS; i++) {
    bool shown = i == 0 || (i == 4 ? !is_empty(s->L, i + 1) : !lua_isnil(s->L, i + 1));
    print_fn *print = i == 0 && w->listed ? policy_print_rows : policy_print_json;
    size_t at = answer->len + memory_at;
    if (shown && !put(s, names[i], i + 1, print, answer)) return;
    if (shown && i == 3) passed = take_memory(w, answer->data + at, answer->len - at) && passed;
  }
  buf_str(answer, "}");
  w->passed = passed && buf_failed(answer) == 0;
}

/* Tells in an answer what was reached since the one before; the stack is of no more use. What is told
 * is our own, and of bounded size: it is told, too, of what used up its time. */
static void tell_covered(policy_state *s, buf *answer) {
  if (!s->cover || buf_failed(answer)) return;
  s->bounds.over = BOUNDS_KEPT;
  s->bounds.end = (bounds_end){.cpu = INT64_MAX, .wall = INT64_MAX};
  lua_settop(s->L, 0);
  answer->max += cover_room(s->cover);
  answer->data[--answer->len] = '\0'; /* its last brace */
  buf_str(answer, ",\"covered\":{\"files\":[");
  cover_print(s->cover, answer);
  buf_str(answer, "],\"rules\":");
  lua_rawgeti(s->L, LUA_REGISTRYINDEX, s->library);
  lua_getfield(s->L, 1, "covered");
  policy_print_json(s->L, 2, &s->bounds, answer);
  lua_newtable(s->L);
  lua_setfield(s->L, 1, "covered");
  lua_settop(s->L, 0);
  buf_str(answer, "}}");
}

static bool is_request(const json_t *request, const char **why) {
  size_t i;
  json_t *policy;
  const json_t *settings = json_object_get(request, "settings");
  *why = "load: wrong request";
  if (!json_is_array(json_object_get(request, "chain")) || (settings && !json_is_object(settings)))
    return false;
  json_array_foreach(json_object_get(request, "chain"), i, policy) {
    const json_t *text = json_object_get(policy, "text");
    if (!json_is_string(json_object_get(policy, "name")) || !json_is_string(text)) return false;
    *why = "a policy is longer than 256 KiB";
    if (json_string_length(text) > POLICY_TEXT_MAX) return false;
    *why = "load: wrong request";
  }
  return true;
}

/* Has it noted what is reached, if the request asks for that. */
static bool watch(policy_state *s, const json_t *request) {
  if (!json_is_true(json_object_get(request, "cover"))) return true;
  s->cover = s->bounds.cover = cover_new(json_object_get(request, "chain"));
  return s->cover != NULL;
}

int policy_state_load(const json_t *request, size_t size, const char *warning, policy_state **out,
                      buf *answer) {
  const char *why;
  bool dead = false;
  *out = NULL;
  if (!is_request(request, &why)) return policy_state_refuse(answer, "error", why);
  policy_state *s = state_new(&why);
  if (!s) return policy_state_refuse(answer, "memory", why);
  const policy_request r = {.json = request, .size = size};
  if (!watch(s, request)) {
    policy_state_close(s);
    return policy_state_refuse(answer, "memory", "out of memory");
  }
  int rc = enter(s, l_load, &(work){.r = &r});
  bool good = rc == 0 && answer_load(s, warning, answer);
  if (rc != 0) refuse(s, rc, answer, &dead);
  tell_covered(s, answer);
  if (good) {
    leave(s);
    *out = s;
  } else {
    policy_state_close(s);
  }
  return buf_failed(answer);
}

/* One question: `answer` is empty. */
static int ask_once(policy_state *s, work *w, buf *answer, bool *dead) {
  w->passed = false;
  int rc = enter(s, l_ask, w);
  if (rc != 0) {
    rc = refuse(s, rc, answer, dead);
    if (!*dead) leave(s);
    return rc;
  }
  answer_ask(w, answer);
  if (s->bounds.over != BOUNDS_KEPT) *dead = true;
  leave(s);
  return buf_failed(answer);
}

/* Asks the hooks behind the first one, each as if it were asked by itself, and puts their answers
 * into the first one. It ends where an answer ends it, and where the CPU time of one request may not
 * be enough for one more: what is not answered is asked again. */
static int ask_rest(policy_state *s, work *w, bounds_end *until, buf *answer, bool *dead) {
  const json_t *then = json_object_get(w->r->json, "then"), *next;
  buf more;
  size_t i;
  int rc = 0;
  buf_init(&more, POLICY_ANSWER_MAX + 4 * w->r->size);
  answer->max += json_array_size(then) * more.max;
  answer->data[--answer->len] = '\0'; /* its last brace */
  buf_str(answer, ",\"then\":[");
  json_array_foreach(then, i, next) {
    w->hook = json_object_get(next, "hook");
    w->before = json_object_get(next, "before");
    if (rc != 0 || *dead || !w->passed || !json_is_string(w->hook) || bounds_reached(until)) break;
    buf_clear(&more);
    rc = ask_once(s, w, &more, dead);
    if (rc == 0 && i > 0) buf_str(answer, ",");
    if (rc == 0) buf_add(answer, more.data, more.len);
  }
  buf_str(answer, "]}");
  buf_free(&more);
  return rc < 0 ? rc : buf_failed(answer);
}

int policy_state_ask(policy_state *s, const policy_request *r, buf *answer, bool *dead) {
  bounds_end until = bounds_in((int64_t)ASK_MORE_MS * 1000000);
  work w = {.r = r,
            .behind = r->behind,
            .more = json_array_size(json_object_get(r->json, "then")) > 0,
            .event = LUA_NOREF,
            .hook = json_object_get(r->json, "hook"),
            .before = json_object_get(r->json, "before"),
            .memory = json_incref(json_object_get(r->json, "memory"))};
  *dead = false;
  int rc = json_is_string(w.hook) ? ask_once(s, &w, answer, dead)
                                  : policy_state_refuse(answer, "error", "ask: wrong request");
  if (rc == 0 && w.passed && !*dead && w.more) rc = ask_rest(s, &w, &until, answer, dead);
  json_decref(w.memory);
  luaL_unref(s->L, LUA_REGISTRYINDEX, w.event);
  if (w.more && !*dead) leave(s);
  if (rc == 0) tell_covered(s, answer);
  return rc < 0 ? rc : buf_failed(answer);
}

int policy_state_check(policy_state *s, const policy_request *r, buf *answer, bool *dead) {
  *dead = false;
  work w = {.r = r, .behind = r->behind, .event = LUA_NOREF};
  int rc = enter(s, l_check, &w);
  if (rc != 0) {
    rc = refuse(s, rc, answer, dead);
    if (!*dead) leave(s);
    return rc;
  }
  answer_load(s, NULL, answer);
  if (s->bounds.over != BOUNDS_KEPT) *dead = true;
  leave(s);
  return buf_failed(answer);
}
