/* For trusted Lua: the log lines of engines (`require "ckpt.core".log`).
 *
 * Engines log from any of their threads, and Lua runs on one: the lines wait in a queue until the
 * owner's thread asks. A queue that nobody empties loses its newest lines, and says how many. */
#include <lauxlib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/shown.h"
#include "lua_ckpt.h"

enum { LINES_MAX = 512 };

typedef struct line {
  char *text;
  int level;
} line;

/* A userdata of its state; engines are closed before it is freed. */
typedef struct queue {
  pthread_mutex_t mutex;
  line lines[LINES_MAX];
  size_t count, lost;
} queue;

static void on_line(void *ctx, int level, const char *text) {
  queue *q = ctx;
  char *copy = strdup(text);
  pthread_mutex_lock(&q->mutex);
  if (copy && q->count < LINES_MAX) {
    q->lines[q->count++] = (line){copy, level};
    copy = NULL;
  } else {
    q->lost++;
  }
  pthread_mutex_unlock(&q->mutex);
  free(copy);
}

static queue *l_queue(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "ckpt.log");
  queue *q = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return q;
}

void l_ckpt_log_to(lua_State *L, ckpt_options *options) {
  options->log = on_line;
  options->log_ctx = l_queue(L);
  options->log_level = CKPT_LOG_INFO;
}

/* Takes the oldest line; false if there is none. */
static bool take_line(queue *q, line *out) {
  pthread_mutex_lock(&q->mutex);
  bool any = q->count > 0;
  if (any) {
    *out = q->lines[0];
    memmove(q->lines, q->lines + 1, --q->count * sizeof *q->lines);
  }
  pthread_mutex_unlock(&q->mutex);
  return any;
}

static size_t take_lost(queue *q) {
  pthread_mutex_lock(&q->mutex);
  size_t lost = q->lost;
  q->lost = 0;
  pthread_mutex_unlock(&q->mutex);
  return lost;
}

/* next() -> level, text of the oldest line; nothing if there is none */
static int l_next(lua_State *L) {
  queue *q = l_queue(L);
  line l;
  if (take_line(q, &l)) {
    buf *anchor = l_ckpt_buf(L, 0); /* owns the text while Lua makes one of its own */
    anchor->data = l.text;
    lua_pushstring(L, log_level_name((log_level)l.level));
    lua_pushstring(L, l.text);
    buf_free(anchor);
    return 2;
  }
  size_t lost = take_lost(q);
  if (lost == 0) return 0;
  lua_pushstring(L, log_level_name(LOG_WARN));
  lua_pushfstring(L, "%d lines of the engine's log are lost: nobody asked for them in time",
                  (int)lost);
  return 2;
}

/* plain(text) -> the text with "?" for each byte that is not to be shown */
static int l_plain(lua_State *L) {
  size_t size, len;
  const char *text = luaL_checklstring(L, 1, &size);
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  for (size_t at = 0; at < size; at += len) {
    bool shown = is_shown((const unsigned char *)text + at, &len);
    for (size_t i = 0; i < len; i++) luaL_addchar(&out, shown ? text[at + i] : '?');
  }
  luaL_pushresult(&out);
  return 1;
}

static int l_free_queue(lua_State *L) {
  queue *q = lua_touserdata(L, 1);
  line l;
  while (take_line(q, &l)) free(l.text);
  return 0;
}

static void l_new_queue(lua_State *L) {
  queue *q = lua_newuserdata(L, sizeof *q);
  *q = (queue){.mutex = PTHREAD_MUTEX_INITIALIZER};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, l_free_queue);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, "ckpt.log");
}

void l_ckpt_register_log(lua_State *L) {
  static const luaL_Reg functions[] = {{"next", l_next}, {"plain", l_plain}, {NULL, NULL}};
  /* After a clear of package.loaded (busted does that) the module is loaded anew, and earlier
   * engines go on to log into the queue that they were given. */
  if (!l_queue(L)) l_new_queue(L);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "log");
}
