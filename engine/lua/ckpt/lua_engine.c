/* Engines and runs as Lua objects. A run belongs to its engine: closing the engine closes it, too,
 * and a closed handle raises when it is used. */
#include <lauxlib.h>
#include <limits.h>
#include <math.h>

#include "lua_ckpt.h"

static const char engine_type[] = "ckpt.engine", run_type[] = "ckpt.run";

typedef struct run_box {
  ckpt_run *run; /* NULL: closed */
  struct engine_box *engine;
  struct run_box *next;
} run_box;

/* The environment of its userdata holds the runs' userdata by their address, the environment of a
 * run's holds the engine's: each is there as long as the other. */
typedef struct engine_box {
  ckpt *engine; /* NULL: closed */
  run_box *runs;
} engine_box;

static engine_box *l_engine(lua_State *L, int index) {
  engine_box *box = luaL_checkudata(L, index, engine_type);
  if (!box->engine) luaL_argerror(L, index, "this engine is closed");
  return box;
}

static run_box *l_run(lua_State *L, int index) {
  run_box *box = luaL_checkudata(L, index, run_type);
  if (!box->run) luaL_argerror(L, index, "this run is closed");
  return box;
}

static int fail(lua_State *L, ckpt *engine, int code) {
  return l_ckpt_fail(L, ckpt_error(engine), code);
}

/* ---- engines ---- */

static engine_box *l_new_engine(lua_State *L) {
  engine_box *box = lua_newuserdata(L, sizeof *box);
  *box = (engine_box){0};
  luaL_getmetatable(L, engine_type);
  lua_setmetatable(L, -2);
  lua_newtable(L);
  lua_setfenv(L, -2);
  return box;
}

ckpt *l_ckpt_engine(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "ckpt.default");
  engine_box *box = lua_touserdata(L, -1);
  if (!box) {
    box = l_new_engine(L);
    ckpt_options options = {.size = sizeof options};
    l_ckpt_log_to(L, &options);
    int rc = ckpt_open(&box->engine, &options);
    if (rc < 0) luaL_error(L, "%s", box->engine ? ckpt_error(box->engine) : "out of memory");
    lua_setfield(L, LUA_REGISTRYINDEX, "ckpt.default");
  }
  if (!box->engine)
    luaL_error(L, "the engine is closed"); /* lua_close() has closed it before older
                                                            * objects */
  lua_pop(L, 1);
  return box->engine;
}

/* open{workers=, libexec=, policy_in_process=} -> engine */
static int l_open(lua_State *L) {
  static const char *const keys[] = {"workers", "libexec", "policy_in_process", NULL};
  ckpt_options options = {.size = sizeof options};
  if (!lua_isnoneornil(L, 1)) {
    l_ckpt_check_keys(L, 1, keys);
    options.workers = (uint32_t)l_ckpt_number(L, 1, "workers", 0);
    options.libexec = l_ckpt_text(L, 1, "libexec");
    if (l_ckpt_flag(L, 1, "policy_in_process")) options.flags |= CKPT_POLICY_IN_PROCESS;
  }
  engine_box *box = l_new_engine(L);
  l_ckpt_log_to(L, &options);
  int rc = ckpt_open(&box->engine, &options);
  if (rc == 0) return 1;
  return l_ckpt_fail(L, box->engine ? ckpt_error(box->engine) : "out of memory", rc);
}

static int l_engine_close(lua_State *L) {
  engine_box *box = luaL_checkudata(L, 1, engine_type);
  for (run_box *r = box->runs; r; r = r->next) r->run = NULL; /* ckpt_close() closes them */
  box->runs = NULL;
  ckpt_close(box->engine);
  box->engine = NULL;
  return 0;
}

/* fd() -> a descriptor that is readable when dispatch() has work */
static int l_engine_fd(lua_State *L) {
  lua_pushinteger(L, ckpt_fd(l_engine(L, 1)->engine));
  return 1;
}

/* dispatch([milliseconds]) -> how many completions next() will hand out */
static int l_dispatch(lua_State *L) {
  engine_box *box = l_engine(L, 1);
  double wait_ms = luaL_optnumber(L, 2, 0);
  luaL_argcheck(L, !isnan(wait_ms), 2, "nan is no number of milliseconds");
  int rc = ckpt_dispatch(box->engine, wait_ms < 0 || wait_ms > INT_MAX ? -1 : (int)wait_ms);
  if (rc < 0) return fail(L, box->engine, rc);
  lua_pushinteger(L, rc);
  return 1;
}

static const char *kind_name(uint32_t kind) {
  static const char *const names[] = {NULL,       "committed", "dropped",  "retired", "failed",
                                      "retrying", "fenced",    "unproven", "skipped", "expired",
                                      "deleted",  NULL,        "drained"};
  return kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

static const char *class_name(uint32_t class_) {
  static const char *const names[] = {"none", "retryable", "permanent", "fatal"};
  return class_ < 4 ? names[class_] : NULL;
}

/* next() -> a completion, or nil if there is none */
static int l_next(lua_State *L) {
  engine_box *box = l_engine(L, 1);
  ckpt_completion c = {.size = sizeof c};
  int rc = ckpt_next(box->engine, &c);
  if (rc < 0) return fail(L, box->engine, rc);
  if (rc == 0) return 0;
  lua_createtable(L, 0, 11);
  lua_getfenv(L, 1);
  lua_pushlightuserdata(L, c.run);
  lua_rawget(L, -2);
  lua_setfield(L, -3, "run");
  lua_pop(L, 1);
  l_ckpt_set_number(L, "job", (double)c.job);
  l_ckpt_set_text(L, "kind", kind_name(c.kind));
  lua_pushfstring(L, c.status == CKPT_OK ? "%s" : "E%s", ckpt_status_name(c.status));
  lua_setfield(L, -2, "status");
  l_ckpt_set_text(L, "class", class_name(c.class_));
  if (c.step >= 0) l_ckpt_set_number(L, "step", (double)c.step);
  l_ckpt_set_number(L, "files", (double)c.files);
  l_ckpt_set_number(L, "bytes", (double)c.bytes);
  l_ckpt_set_number(L, "seconds", c.seconds);
  l_ckpt_set_text(L, "unit", c.unit);
  l_ckpt_set_text(L, "reason", c.reason);
  return 1;
}

/* ---- runs ---- */

/* Takes settings = { NAME = VALUE } as a list of "NAME=VALUE"; pushes a userdata that owns it. */
static const char *const *l_settings(lua_State *L, int table) {
  lua_getfield(L, table, "settings");
  if (lua_isnil(L, -1)) return NULL;
  luaL_argcheck(L, lua_istable(L, -1), table, "`settings` is not a table NAME = VALUE");
  lua_newtable(L);
  int given = lua_gettop(L) - 1, lines = given + 1, n = 0;
  for (lua_pushnil(L); lua_next(L, given); lua_pop(L, 1)) {
    luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING, table, "`settings` has a key that is no text");
    lua_getglobal(L, "tostring");
    lua_pushvalue(L, -2);
    lua_call(L, 1, 1);
    lua_pushfstring(L, "%s=%s", lua_tostring(L, -3), lua_tostring(L, -1));
    lua_rawseti(L, lines, ++n);
    lua_pop(L, 1);
  }
  lua_newtable(L);
  lua_pushvalue(L, lines);
  lua_setfield(L, -2, "settings");
  return l_ckpt_texts(L, lua_gettop(L), "settings");
}

/* Takes a whole number from 0 on; math.huge, and any number that is too large, gives the
 * largest. */
static uint32_t l_count(lua_State *L, int table, const char *name) {
  double n = l_ckpt_number(L, table, name, 0);
  if (!(n >= 0) || n != floor(n)) luaL_error(L, "`%s` is %f, not a count", name, n);
  return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* The options of a run, and the members that they set. */
enum run_kind { TEXT, TEXTS, NUMBER, COUNT, FLAG, SETTINGS };

#define OF(member) offsetof(ckpt_run_options, member)

static const struct run_option {
  const char *name;
  enum run_kind kind;
  size_t at;
  uint32_t flag;
} run_options[] = {
    {"dir", TEXT, OF(dir), 0},
    {"to", TEXT, OF(to), 0},
    {"state", TEXT, OF(state), 0},
    {"run_id", TEXT, OF(run_id), 0},
    {"command", TEXT, OF(command), 0},
    {"program", TEXT, OF(program), 0},
    {"launch", TEXT, OF(launch), 0},
    {"units", TEXTS, OF(units), 0},
    {"excludes", TEXTS, OF(excludes), 0},
    {"markers", TEXTS, OF(markers), 0},
    {"quiet", NUMBER, OF(quiet_s), 0},
    {"tries", COUNT, OF(tries), 0},
    {"policies", TEXTS, OF(policies), 0},
    {"settings", SETTINGS, OF(settings), 0},
    {"policy_dir", TEXT, OF(policy_dir), 0},
    {"max_delete", NUMBER, OF(max_delete), 0},
    {"grace_delete", NUMBER, OF(grace_delete_s), 0},
    {"rank", COUNT, OF(rank), 0},
    {"world", COUNT, OF(world), 0},
    {"rank_wait", NUMBER, OF(rank_wait_s), 0},
    {"bad_after", COUNT, OF(bad_after), 0},
    {"stall", NUMBER, OF(stall_s), 0},
    {"start_wait", NUMBER, OF(start_wait_s), 0},
    {"wait_lease", NUMBER, OF(wait_lease_s), 0},
    {"environment", TEXTS, OF(environment), 0},
    {"in_place_every", NUMBER, OF(in_place_every_s), 0},
    {"record", TEXT, OF(record), 0},
    {"deadline", NUMBER, OF(deadline_s), 0},
    {"task", COUNT, OF(task), 0},
    {"tasks", COUNT, OF(tasks), 0},
    {"restore_parts", TEXT, OF(restore_parts), 0},
    {"continue_run", FLAG, OF(flags), CKPT_CONTINUE_RUN},
    {"take_over", FLAG, OF(flags), CKPT_TAKE_OVER},
    {"poll", FLAG, OF(flags), CKPT_POLL},
    {"no_delete", FLAG, OF(flags), CKPT_NO_DELETE},
    {"single_writer", FLAG, OF(flags), CKPT_SINGLE_WRITER},
    {"start_anyway", FLAG, OF(flags), CKPT_START_ANYWAY},
    {"trust", FLAG, OF(flags), CKPT_TRUST},
    {"beside", FLAG, OF(flags), CKPT_BESIDE},
    {"owns_dir", FLAG, OF(flags), CKPT_OWNS_DIR},
    {"fresh", FLAG, OF(flags), CKPT_FRESH},
};
enum { RUN_OPTIONS = sizeof run_options / sizeof *run_options };

static void l_run_option(lua_State *L, int table, const struct run_option *o, void *member) {
  switch (o->kind) {
  case TEXT: *(const char **)member = l_ckpt_text(L, table, o->name); break;
  case TEXTS: *(const char *const **)member = l_ckpt_texts(L, table, o->name); break;
  case NUMBER: *(double *)member = l_ckpt_number(L, table, o->name, 0); break;
  case COUNT: *(uint32_t *)member = l_count(L, table, o->name); break;
  case FLAG: *(uint32_t *)member |= l_ckpt_flag(L, table, o->name) ? o->flag : 0; break;
  case SETTINGS: *(const char *const **)member = l_settings(L, table); break;
  }
}

static void l_run_options(lua_State *L, int table, ckpt_run_options *out) {
  const char *keys[RUN_OPTIONS + 1] = {0};
  for (size_t i = 0; i < RUN_OPTIONS; i++) keys[i] = run_options[i].name;
  l_ckpt_check_keys(L, table, keys);
  *out = (ckpt_run_options){.size = sizeof *out};
  for (size_t i = 0; i < RUN_OPTIONS; i++)
    l_run_option(L, table, &run_options[i], (char *)out + run_options[i].at);
  luaL_argcheck(L, out->dir, table, "`dir` is missing");
  luaL_argcheck(L, out->to, table, "`to` is missing");
}

/* engine:run{dir=, to=, ...} -> run */
static int l_new_run(lua_State *L) {
  engine_box *owner = l_engine(L, 1);
  ckpt_run_options options;
  luaL_checkstack(L, 40, "too many options");
  l_run_options(L, 2, &options);
  run_box *box = lua_newuserdata(L, sizeof *box);
  *box = (run_box){.engine = owner};
  luaL_getmetatable(L, run_type);
  lua_setmetatable(L, -2);
  lua_newtable(L);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "engine");
  lua_setfenv(L, -2);
  int rc = ckpt_run_open(owner->engine, &box->run, &options);
  if (rc < 0) {
    int results = fail(L, owner->engine, rc);
    ckpt_run_close(box->run); /* due after a failed open, too */
    box->run = NULL;
    return results;
  }
  box->next = owner->runs;
  owner->runs = box;
  lua_getfenv(L, 1);
  lua_pushlightuserdata(L, box->run);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  return 1;
}

/* Takes it out of its engine's list; its place in the environment goes in l_run_close. */
static void unlink_run(run_box *box) {
  run_box **at = &box->engine->runs;
  while (*at && *at != box) at = &(*at)->next;
  if (*at) *at = box->next;
}

static int l_run_close(lua_State *L) {
  run_box *box = luaL_checkudata(L, 1, run_type);
  if (!box->run) return 0;
  lua_getfenv(L, 1);
  lua_getfield(L, -1, "engine");
  lua_getfenv(L, -1);
  lua_pushlightuserdata(L, box->run);
  lua_pushnil(L);
  lua_rawset(L, -3);
  unlink_run(box);
  ckpt_run_close(box->run);
  box->run = NULL;
  return 0;
}

/* prepare([{restore=, named=}]) -> { resume=, restored_from=, restored=, quarantined=, incomplete=,
 * found= } */
static int l_prepare(lua_State *L) {
  static const char *const keys[] = {"restore", "named", NULL};
  static const char *const modes[] = {"auto", "never", "required", "named", NULL};
  run_box *box = l_run(L, 1);
  ckpt_prepare_options options = {.size = sizeof options};
  ckpt_prepared out = {.size = sizeof out};
  if (!lua_isnoneornil(L, 2)) {
    l_ckpt_check_keys(L, 2, keys);
    /* luaL_checkoption() would take what is no text for the default. */
    const char *mode = l_ckpt_text(L, 2, "restore");
    lua_pushstring(L, mode ? mode : modes[0]);
    options.restore = (uint32_t)luaL_checkoption(L, -1, NULL, modes);
    options.named = l_ckpt_text(L, 2, "named");
  }
  int rc = ckpt_run_prepare(box->run, &options, &out);
  if (rc < 0) return fail(L, box->engine->engine, rc);
  lua_createtable(L, 0, 6);
  l_ckpt_set_text(L, "resume", out.resume);
  l_ckpt_set_text(L, "restored_from", out.restored_from);
  l_ckpt_set_number(L, "restored", out.restored);
  l_ckpt_set_number(L, "quarantined", out.quarantined);
  l_ckpt_set_number(L, "incomplete", out.incomplete);
  l_ckpt_set_number(L, "found", out.found);
  return 1;
}

static int l_done(lua_State *L, const run_box *box, int rc) {
  if (rc < 0) return fail(L, box->engine->engine, rc);
  lua_pushboolean(L, 1);
  return 1;
}

static int l_start(lua_State *L) {
  run_box *box = l_run(L, 1);
  return l_done(L, box, ckpt_run_start(box->run));
}

/* notify{kind=, pid=, clean=, grace=, json=} -> true, or the number of a drain */
static int l_notify(lua_State *L) {
  static const char *const keys[] = {"kind", "pid", "clean", "grace", "json", NULL};
  static const char *const kinds[] = {"child", "exit", "result", "preempt", "list", "drain", NULL};
  run_box *box = l_run(L, 1);
  l_ckpt_check_keys(L, 2, keys);
  lua_getfield(L, 2, "kind");
  ckpt_event event = {.size = sizeof event,
                      .kind = (uint32_t)luaL_checkoption(L, -1, NULL, kinds),
                      .pid = (int32_t)l_ckpt_number(L, 2, "pid", 0),
                      .clean = l_ckpt_flag(L, 2, "clean"),
                      .grace_s = l_ckpt_number(L, 2, "grace", 0),
                      .json = l_ckpt_text(L, 2, "json")};
  uint64_t job = 0;
  int rc = ckpt_notify(box->run, &event, &job);
  if (rc < 0 || job == 0) return l_done(L, box, rc);
  lua_pushnumber(L, (double)job);
  return 1;
}

/* evict() -> what it costs to end the job now */
static int l_evict(lua_State *L) {
  run_box *box = l_run(L, 1);
  ckpt_evict c = {.size = sizeof c};
  int rc = ckpt_run_evict(box->run, &c);
  if (rc < 0) return fail(L, box->engine->engine, rc);
  lua_createtable(L, 0, 9);
  l_ckpt_set_number(L, "time", c.time);
  if (c.last_durable_time >= 0) l_ckpt_set_number(L, "last_durable_time", c.last_durable_time);
  if (c.complete_time >= 0) l_ckpt_set_number(L, "complete_time", c.complete_time);
  l_ckpt_set_text(L, "name", c.name);
  if (c.step >= 0) l_ckpt_set_number(L, "step", (double)c.step);
  l_ckpt_set_number(L, "bytes_pending", (double)c.bytes_pending);
  if (c.seconds_to_durable >= 0) l_ckpt_set_number(L, "seconds_to_durable", c.seconds_to_durable);
  if (c.lost_since >= 0) l_ckpt_set_number(L, "lost_since", c.lost_since);
  l_ckpt_set_number(L, "lost_if_killed_now", c.lost_if_killed_now);
  return 1;
}

static int l_status(lua_State *L) {
  run_box *box = l_run(L, 1);
  ckpt_run_status s = {.size = sizeof s};
  int rc = ckpt_run_get_status(box->run, &s);
  if (rc < 0) return fail(L, box->engine->engine, rc);
  lua_createtable(L, 0, 22);
  l_ckpt_set_number(L, "committed", s.committed);
  l_ckpt_set_number(L, "dropped", s.dropped);
  l_ckpt_set_number(L, "retired", s.retired);
  l_ckpt_set_number(L, "failed", s.failed);
  l_ckpt_set_number(L, "pending", s.pending);
  l_ckpt_set_number(L, "settling", s.settling);
  l_ckpt_set_number(L, "unproven", s.unproven);
  l_ckpt_set_number(L, "bytes_committed", (double)s.bytes_committed);
  l_ckpt_set_number(L, "bytes_left", (double)s.bytes_left);
  if (s.newest_step >= 0) l_ckpt_set_number(L, "newest_step", (double)s.newest_step);
  if (s.newest_age_s >= 0) l_ckpt_set_number(L, "newest_age", s.newest_age_s);
  l_ckpt_set_text(L, "newest_unit", s.newest_unit);
  lua_pushfstring(L, s.newest_status == CKPT_OK ? "%s" : "E%s", ckpt_status_name(s.newest_status));
  lua_setfield(L, -2, "newest_status");
  lua_pushboolean(L, s.fenced != 0);
  lua_setfield(L, -2, "fenced");
  l_ckpt_set_number(L, "unmatched", (double)s.unmatched);
  l_ckpt_set_text(L, "unmatched_example", s.unmatched_example);
  l_ckpt_set_text(L, "standing", ckpt_standing_name(s.standing));
  l_ckpt_set_text(L, "unproven_unit", s.unproven_unit);
  l_ckpt_set_text(L, "unproven_reason", s.unproven_reason);
  l_ckpt_set_text(L, "unwanted_unit", s.unwanted_unit);
  l_ckpt_set_text(L, "unwanted_policy", s.unwanted_policy);
  l_ckpt_set_text(L, "unwanted_reason", s.unwanted_reason);
  return 1;
}

static int on_finding(void *ctx, const ckpt_finding *finding) {
  return ckpt_relay_send(ctx, finding);
}

/* why(name) -> cause, text, { finding, ... } */
static int l_run_why(lua_State *L) {
  run_box *box = l_run(L, 1);
  const char *cause, *text, *name = luaL_checkstring(L, 2);
  ckpt_relay r;
  l_ckpt_begin(&r, L, 3, l_ckpt_push_finding);
  int rc = ckpt_run_why(box->run, name, on_finding, &r, &cause, &text);
  l_ckpt_end(&r);
  if (rc < 0) return fail(L, box->engine->engine, rc);
  lua_pushstring(L, cause);
  lua_pushstring(L, text);
  lua_pushvalue(L, -3);
  return 3;
}

/* reload{policies=, settings=, dry_run=} -> job */
static int l_reload(lua_State *L) {
  static const char *const keys[] = {"policies", "settings", "dry_run", NULL};
  run_box *box = l_run(L, 1);
  ckpt_reload_options options = {.size = sizeof options};
  uint64_t job;
  if (!lua_isnoneornil(L, 2)) {
    l_ckpt_check_keys(L, 2, keys);
    options.policies = l_ckpt_texts(L, 2, "policies");
    options.settings = l_settings(L, 2);
    if (l_ckpt_flag(L, 2, "dry_run")) options.flags = CKPT_DRY_RUN;
  }
  int rc = ckpt_run_reload(box->run, &options, &job);
  if (rc < 0 && job == 0) return fail(L, box->engine->engine, rc);
  lua_pushnumber(L, (lua_Number)job); /* it has begun, whatever else failed: that is told again */
  return 1;
}

static void push_change(lua_State *L, const void *record) {
  const ckpt_reload_change *c = record;
  lua_createtable(L, 0, 8);
  l_ckpt_set_text(L, "group", c->group);
  l_ckpt_set_text(L, "name", c->name);
  l_ckpt_set_number(L, "commit", (double)c->commit);
  if (c->step >= 0) l_ckpt_set_number(L, "step", (double)c->step);
  lua_pushboolean(L, c->before != 0);
  lua_setfield(L, -2, "before");
  lua_pushboolean(L, c->after != 0);
  lua_setfield(L, -2, "after");
  l_ckpt_set_text(L, "before_reason", c->before_reason);
  l_ckpt_set_text(L, "after_reason", c->after_reason);
}

static int on_change(void *ctx, const ckpt_reload_change *change) {
  return ckpt_relay_send(ctx, change);
}

/* reloaded([job]) -> { over, status, ... } */
static int l_reloaded(lua_State *L) {
  run_box *box = l_run(L, 1);
  const uint64_t job = (uint64_t)luaL_optnumber(L, 2, 0);
  ckpt_reloaded s = {.size = sizeof s};
  ckpt_relay r;
  l_ckpt_begin(&r, L, 3, push_change);
  int rc = ckpt_run_reloaded(box->run, job, &s, on_change, &r);
  l_ckpt_end(&r);
  if (rc < 0) return fail(L, box->engine->engine, rc);
  lua_createtable(L, 0, 13);
  lua_pushboolean(L, s.over != 0);
  lua_setfield(L, -2, "over");
  lua_pushboolean(L, s.dry != 0);
  lua_setfield(L, -2, "dry");
  lua_pushfstring(L, s.status == CKPT_OK ? "%s" : "E%s", ckpt_status_name(s.status));
  lua_setfield(L, -2, "status");
  l_ckpt_set_text(L, "text", s.text);
  l_ckpt_set_text(L, "policies", s.policies);
  l_ckpt_set_text(L, "replaced", s.replaced);
  l_ckpt_set_text(L, "stays", s.stays);
  l_ckpt_set_text(L, "newest_only", s.newest_only);
  l_ckpt_set_number(L, "left", s.left_s);
  l_ckpt_set_number(L, "changes_all", (double)s.changes);
  l_ckpt_set_number(L, "uncompared", (double)s.uncompared);
  l_ckpt_set_number(L, "max_delete", s.max_delete);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "changes");
  return 1;
}

static int l_place(lua_State *L) {
  run_box *box = l_run(L, 1);
  lua_createtable(L, 0, 5);
  l_ckpt_set_text(L, "dir", ckpt_run_dir(box->run));
  l_ckpt_set_text(L, "state", ckpt_run_state(box->run));
  l_ckpt_set_text(L, "target", ckpt_run_target(box->run));
  l_ckpt_set_text(L, "id", ckpt_run_id(box->run));
  l_ckpt_set_text(L, "socket", ckpt_run_socket(box->run));
  return 1;
}

void l_ckpt_register_engine(lua_State *L) {
  static const luaL_Reg engine[] = {{"run", l_new_run},        {"dispatch", l_dispatch},
                                    {"next", l_next},          {"fd", l_engine_fd},
                                    {"close", l_engine_close}, {NULL, NULL}};
  static const luaL_Reg run[] = {{"prepare", l_prepare},
                                 {"start", l_start},
                                 {"notify", l_notify},
                                 {"status", l_status},
                                 {"why", l_run_why},
                                 {"place", l_place},
                                 {"reload", l_reload},
                                 {"reloaded", l_reloaded},
                                 {"evict", l_evict},
                                 {"close", l_run_close},
                                 {NULL, NULL}};
  l_ckpt_type(L, engine_type, engine, l_engine_close);
  l_ckpt_type(L, run_type, run, l_run_close);
  lua_pushcfunction(L, l_open);
  lua_setfield(L, -2, "open");
}
